"""Processes as ranks of a gloo group for tests of harpe.ops, and comparisons for the tests.

A test file without torch exits with the code that ctest counts as skipped.
"""
import multiprocessing
import sys
import tempfile
import traceback

try:
    import torch
except ModuleNotFoundError:
    print("skipped: this Python has no torch; HARPE_TORCH_PYTHON names one that does")
    sys.exit(77)

import torch.distributed as dist

# Ranks fork from a process per file that has imported torch and has no threads.
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["torch", "torch.distributed", "harpe.ops"])
_LIMIT = 240  # seconds


class Pool:
    """Ranks that call functions together, and report what they return or raise."""

    def __init__(self, ranks):
        self.ranks = ranks
        self._folder = tempfile.TemporaryDirectory()
        pairs = [_SERVER.Pipe() for _ in range(ranks)]
        self._pipes = [own for own, _ in pairs]
        self.processes = [_SERVER.Process(target=_serve, daemon=True, args=(
            rank, ranks, f"{self._folder.name}/store", other)) for rank, (_, other) in
            enumerate(pairs)]
        for process in self.processes:
            process.start()
        for _, other in pairs:
            other.close()

    def call(self, function, *args):
        """The return value of each rank; raises if a rank raises."""
        self.send(function, *args)
        return self.receive(range(self.ranks))

    def send(self, function, *args):
        for pipe in self._pipes:
            pipe.send((function, args))

    def receive(self, ranks):
        answers = []
        for rank in ranks:
            if not self._pipes[rank].poll(_LIMIT):
                raise TimeoutError(f"rank {rank} does not answer")
            answers.append(self._pipes[rank].recv())
        for failed, answer in answers:
            if failed:
                raise AssertionError(f"on a rank:\n{answer}")
        return [answer for _, answer in answers]

    def close(self):
        for pipe, process in zip(self._pipes, self.processes):
            try:
                pipe.send(None)
            except OSError:  # the rank was killed
                pass
            process.join()
        self._folder.cleanup()


def _serve(rank, ranks, store, pipe):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{store}", rank=rank, world_size=ranks)
    while (asked := pipe.recv()) is not None:
        function, args = asked
        try:
            pipe.send((False, function(*args)))
        except BaseException:  # noqa: B036
            pipe.send((True, traceback.format_exc()))


def cut(whole, dim, group=None):
    """This rank's block along `dim`."""
    group = group or dist.group.WORLD
    return whole.chunk(group.size(), dim)[group.rank()].clone()


def find_status(group):
    import harpe
    return next(each for each in harpe.status() if each.name == group.group_name)


def assert_near(found, exact, terms, scale, what):
    """Checks `found`, a sum of `terms` products whose absolute values add up to `scale`. Allowed
    are one rounding per term in the type of sums, and the roundings of the result and of each
    rank's part in the result's type, together as large as `scale`."""
    sums = torch.float64 if found.dtype == torch.float64 else torch.float32
    bound = ((terms + 8) * torch.finfo(sums).eps + torch.finfo(found.dtype).eps) * scale.double()
    error = (found.double() - exact.double()).abs()
    assert found.shape == exact.shape, (what, found.shape, exact.shape)
    assert bool((error <= bound).all()), (what, (error - bound).max().item())
