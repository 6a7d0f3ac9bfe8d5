"""Ranks as processes: they meet in several ways, match `run` bit for bit, and detect lost ranks."""
import multiprocessing
import os
import signal
import socket
import threading
import time
import unittest

import numpy as np

import harpe

SPAWN = multiprocessing.get_context("spawn")
SOON = 10.0  # milliseconds, where the machine has time for it; the wait limit is a minute
QUESTION = dict(schedule="push", m=24, n=16, k=32, dtype="f32")


def make_plan(ranks):
    return harpe.plan("gemm_rs", mesh=f"tp={ranks}", **QUESTION)


def find_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


class Pipes:
    """An exchange through rank 0, which has a pipe to every other rank."""

    def __init__(self, rank, ranks, pipes):
        self.rank, self.ranks = rank, ranks
        self._pipes = pipes

    def all_gather(self, own):
        if self.rank:
            self._pipes[0].send_bytes(own)
            return self._pipes[0].recv()
        everything = [own, *(pipe.recv_bytes() for pipe in self._pipes)]
        for pipe in self._pipes:
            pipe.send(everything)
        return everything


def make_pipes(ranks):
    pairs = [SPAWN.Pipe() for _ in range(ranks - 1)]
    return [Pipes(0, ranks, [host for host, _ in pairs]),
            *(Pipes(rank, ranks, [guest]) for rank, (_, guest) in enumerate(pairs, 1))]


class Socket:
    """Rendezvous through `harpe.meet`."""

    def __init__(self, rank, ranks, address):
        self.rank, self.ranks, self.address = rank, ranks, address

    def make(self):
        return harpe.meet(address=self.address, rank=self.rank, ranks=self.ranks, secret="s")


class Gloo:
    """An exchange over torch.distributed."""

    def __init__(self, rank, ranks, address):
        self.rank, self.ranks, self.address = rank, ranks, address

    def make(self):
        import torch.distributed as dist
        dist.init_process_group("gloo", f"tcp://{self.address}", rank=self.rank,
                                world_size=self.ranks)
        return self

    def all_gather(self, own):
        import torch.distributed as dist
        everything = [b""] * self.ranks
        dist.all_gather_object(everything, own)
        return everything


def join(exchange):
    return harpe.Group(exchange=exchange.make() if hasattr(exchange, "make") else exchange)


def compute(exchange, answers):
    """One rank computes its part of the GEMM three times."""
    group = join(exchange)
    plan = make_plan(group.ranks)
    exe = harpe.compile(plan, group=group)
    inputs = {name: plan.shard(name, whole, group.rank)
              for name, whole in harpe.draw_inputs(plan).items()}
    parts = [exe(inputs)["c"] for _ in range(3)]
    assert all(part.tobytes() == parts[0].tobytes() for part in parts)
    answers.send(parts[0])


def compute_forever(exchange, answers):
    """Reports that it launches, and later the fault that ended the launches, with the time."""
    group = join(exchange)
    plan = make_plan(group.ranks)
    exe = harpe.compile(plan, group=group)
    inputs = {name: plan.shard(name, whole, group.rank)
              for name, whole in harpe.draw_inputs(plan).items()}
    for _ in range(100):
        exe(inputs)
    answers.send("ready")
    try:
        while True:
            exe(inputs)
    except harpe.Fault as fault:
        answers.send((time.monotonic(), fault.message, str(fault)))
    try:
        group.reset()
    except harpe.Fault as fault:
        answers.send(fault.code)


def join_forever(exchange, answers):
    """Rank 1 never compiles; the other ranks report the fault that ends their wait for it."""
    group = join(exchange)
    answers.send("ready")
    if group.rank == 1:
        time.sleep(60)
    try:
        harpe.compile(make_plan(group.ranks), group=group)
    except harpe.Fault as fault:
        answers.send((time.monotonic(), fault.code))


class Ranks(unittest.TestCase):
    def start(self, body, exchanges):
        """Starts processes; returns them with the pipes for their answers."""
        started = []
        for exchange in exchanges:
            own, theirs = SPAWN.Pipe(duplex=False)
            process = SPAWN.Process(target=body, args=(exchange, theirs), daemon=True)
            process.start()
            theirs.close()
            self.addCleanup(own.close)
            self.addCleanup(process.join)
            self.addCleanup(process.kill)
            started.append((process, own))
        return started

    def receive(self, pipe):
        self.assertTrue(pipe.poll(60), "a rank does not answer")
        return pipe.recv()

    def check_product(self, exchanges):
        plan = make_plan(len(exchanges))
        parts = [self.receive(pipe) for _, pipe in self.start(compute, exchanges)]
        wanted = harpe.run(plan, harpe.draw_inputs(plan))["c"]
        np.testing.assert_array_equal(plan.unshard("c", parts), wanted)

    def test_meet_at_a_socket(self):
        address = find_address()
        self.check_product([Socket(rank, 3, address) for rank in range(3)])

    def test_meet_through_pipes(self):
        self.check_product(make_pipes(2))

    def test_meet_through_torch(self):
        try:
            import torch.distributed  # noqa: F401
        except ImportError:
            self.skipTest("torch is not installed")
        address = find_address()
        self.check_product([Gloo(rank, 2, address) for rank in range(2)])

    def kill_rank_1(self, body):
        """Kills rank 1; returns rank 0's pipe and the time of the kill."""
        address = find_address()
        started = self.start(body, [Socket(rank, 2, address) for rank in range(2)])
        for _, pipe in started:
            self.assertEqual(self.receive(pipe), "ready")
        time.sleep(0.2)
        killed = time.monotonic()
        os.kill(started[1][0].pid, signal.SIGKILL)
        return started[0][1], killed

    def test_name_one_that_is_killed_in_a_launch_at_once(self):
        answers, killed = self.kill_rank_1(compute_forever)
        told, message, text = self.receive(answers)
        self.assertIn("rank 1 answers no more: its process ended", message, text)
        self.assertLess(told - killed, SOON)
        self.assertEqual(self.receive(answers), "N010")  # no rank is left for a reset

    def test_miss_one_that_is_killed_in_an_exchange_at_once(self):
        answers, killed = self.kill_rank_1(join_forever)
        told, code = self.receive(answers)
        self.assertEqual(code, "N010")
        self.assertLess(told - killed, SOON)

    def test_an_interrupt_ends_a_launch_that_waits(self):
        plan = harpe.plan("gemm_ar", mesh="tp=2", schedule="push", m=8, n=6, k=16, dtype="f32")
        inputs = harpe.draw_inputs(plan)
        one, other = harpe.local_exchanges(2)
        parts, interrupted = [None, None], threading.Event()

        def own(rank):
            return {name: plan.shard(name, whole, rank) for name, whole in inputs.items()}

        def come_late():
            group = harpe.Group(exchange=other, wait_limit=60.0)
            exe = harpe.compile(plan, group=group)
            interrupted.wait(60)
            group.reset()
            parts[1] = exe(own(1))["c"]

        thread = threading.Thread(target=come_late)
        thread.start()
        group = harpe.Group(exchange=one, wait_limit=60.0)
        exe = harpe.compile(plan, group=group)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        begin = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            exe(own(0))
        self.assertLess(time.monotonic() - begin, 20)
        with self.assertRaisesRegex(harpe.Fault, "rank 0 waited .* of rank 1"):
            group.check()
        interrupted.set()
        group.reset()
        parts[0] = exe(own(0))["c"]
        thread.join()
        self.assertEqual(plan.unshard("c", parts).tobytes(), harpe.run(plan, inputs)["c"].tobytes())


if __name__ == "__main__":
    unittest.main()
