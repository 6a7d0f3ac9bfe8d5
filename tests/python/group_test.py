"""Groups of ranks that are threads: executables on each rank's arrays, refusals, faults, reset."""
import gc
import os
import re
import threading
import time
import unittest

import numpy as np

import harpe

QUESTIONS = {
    "ag_gemm": dict(mesh="tp=3", m=24, n=16, k=32, dtype="f32"),
    "gemm_rs": dict(mesh="tp=4", m=24, n=16, k=32, dtype="f64"),
    "gemm_ar": dict(mesh="tp=2", m=24, n=16, k=32, dtype="f16"),
    "attention": dict(mesh="cp=4", schedule="zigzag_ring", seq=64, heads=4, head_dim=8, causal=True,
                      dtype="f32"),
    "moe": dict(mesh="ep=2", tokens=16, experts=4, topk=2, hidden=8, inter=16, dtype="f32"),
}


def make_plan(op="gemm_ar", **more):
    sizes = dict(mesh="tp=2", schedule="push", m=8, n=6, k=16, dtype="f32", machine="")
    return harpe.plan(op, **{**sizes, **more})


def cut(plan, inputs, rank):
    """The rank's part of every input."""
    return {name: plan.shard(name, whole, rank) for name, whole in inputs.items()}


def run_ranks(ranks, body, exchanges=None, **options):
    """Runs body(group) per rank, each in a thread; returns results or exceptions by rank."""
    results = [None] * ranks

    def run(rank, exchange):
        try:
            results[rank] = body(harpe.Group(exchange=exchange, **{"wait_limit": 20.0, **options}))
        except BaseException as error:  # noqa: B036
            results[rank] = error

    threads = [threading.Thread(target=run, args=each)
               for each in enumerate(exchanges or harpe.local_exchanges(ranks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, AssertionError):
            raise result
    return results


class Store:
    """An exchange written in Python: contributions lie in memory that all ranks share."""

    def __init__(self, rank, given, barrier):
        self.rank, self.ranks = rank, len(given)
        self._given, self._barrier = given, barrier

    def all_gather(self, own):
        self._given[self.rank] = own
        self._barrier.wait(20)
        everything = list(self._given)
        self._barrier.wait(20)
        return everything


def make_stores(ranks):
    given, barrier = [b""] * ranks, threading.Barrier(ranks)
    return [Store(rank, given, barrier) for rank in range(ranks)]


class Tensor:
    """An array that supports only DLPack."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class OnDevice:
    """An object that claims to be in GPU memory."""
    __cuda_array_interface__ = {"shape": (8, 8), "typestr": "<f4", "data": (4096, False),
                                "version": 3}


class Results(unittest.TestCase):
    def test_have_the_bits_of_run(self):
        for op, question in QUESTIONS.items():
            plan = harpe.plan(op, cache=None, **question)
            inputs = harpe.draw_inputs(plan, 4)
            wanted = harpe.run(plan, inputs)

            def body(group, plan=plan, inputs=inputs):
                exe = harpe.compile(plan, group=group)
                own = cut(plan, inputs, group.rank)
                for _ in range(3):
                    outputs = exe(**own)
                return outputs

            for exchanges in harpe.local_exchanges(plan.ranks), make_stores(plan.ranks):
                parts = run_ranks(plan.ranks, body, exchanges)
                for name, whole in wanted.items():
                    found = plan.unshard(name, [part[name] for part in parts])
                    self.assertEqual(found.tobytes(), whole.tobytes(), (op, name))

    def test_takes_addresses(self):
        plan = harpe.plan("gemm", mesh="x=1", m=8, n=8, k=8, dtype="f32", cache=None)
        inputs = harpe.draw_inputs(plan, 4)
        wanted = harpe.run(plan, inputs)["c"]

        def describe(array, dtype="f32"):
            strides = tuple(stride // 4 for stride in array.strides)
            return array.__array_interface__["data"][0], dtype, array.shape, strides

        def body(group):
            exe = harpe.compile(plan, group=group)
            c = np.zeros((8, 8), np.float32)
            exe({name: describe(array) for name, array in inputs.items()}, out={"c": describe(c)})
            for wrong in (1, 2), describe(c, "f31"), describe(c, "f64"):
                with self.assertRaisesRegex(harpe.Refused, "I311"):
                    exe(**inputs, out={"c": wrong})
            return c

        np.testing.assert_array_equal(run_ranks(1, body, harpe.local_exchanges(1))[0], wanted)

    def test_bf16_is_that_of_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is not installed")
        plan = make_plan(dtype="bf16")
        inputs = harpe.draw_inputs(plan)
        wanted = harpe.run(plan, inputs)["c"]

        def body(group):
            own = cut(plan, inputs, group.rank)
            self.assertEqual(own["a"].dtype, ml_dtypes.bfloat16)
            return harpe.compile(plan, group=group)(**own)["c"]

        for found in run_ranks(2, body):
            self.assertEqual(found.dtype, ml_dtypes.bfloat16)
            self.assertEqual(found.tobytes(), wanted.tobytes())

    def test_arrays_are_of_any_kind_and_only_the_heaps_and_strided_ones_are_copied(self):
        plan = make_plan()
        inputs = harpe.draw_inputs(plan)
        wanted = harpe.run(plan, inputs)["c"]

        def body(group):
            exe = harpe.compile(plan, group=group)
            own = cut(plan, inputs, group.rank)
            out = np.full((8, 6), np.nan, np.float32)
            before = exe.copied_bytes
            self.assertIs(exe(own, out={"c": out})["c"], out)
            self.assertEqual(out.tobytes(), wanted.tobytes())
            heap = sum(out.nbytes if each.role == "out" else own[each.name].nbytes
                       for each in exe.tensors.values() if each.place == "heap")
            self.assertGreater(heap, 0)
            self.assertEqual(exe.copied_bytes - before, heap)
            read_only = own["a"].copy()
            read_only.flags.writeable = False
            floats = memoryview(own["a"].tobytes()).cast("B").cast("f", own["a"].shape)
            for a in read_only, Tensor(own["a"]), floats:
                before = exe.copied_bytes
                found = exe(a=a, b=own["b"])["c"]
                self.assertEqual(found.tobytes(), wanted.tobytes())
                self.assertEqual(exe.copied_bytes - before, heap)
            before = exe.copied_bytes
            wide = np.zeros((16, 12), np.float32)
            exe(a=np.asfortranarray(own["a"]), b=own["b"], out={"c": wide[::2, ::-2]})
            self.assertEqual(wide[::2, ::-2].tobytes(), wanted.tobytes())
            self.assertEqual(exe.copied_bytes - before, heap + own["a"].nbytes)
            exe(a=own["a"], b=own["b"], out={"c": Tensor(out)}, stream=0)
            return repr(exe)

        first = run_ranks(2, body)[0]
        self.assertRegex(first, "gemm_ar on tp=2: push, rank 0 of 2, 6 launches")

    def test_tensors_are_what_a_rank_gives_and_takes(self):
        plan = harpe.plan("attention", **QUESTIONS["attention"])

        def body(group):
            exe = harpe.compile(plan, group=group)
            self.assertRegex(repr(group), f"^<harpe.Group rank {group.rank} of 4 on the host, ")
            self.assertEqual(group.status.executables, 1)
            self.assertGreaterEqual(group.status.heap_bytes, plan.memory_bytes)
            return exe.tensors

        tensors = run_ranks(4, body)[1]
        self.assertEqual(list(tensors)[:3], ["q", "k", "v"])
        q = tensors["q"]
        self.assertEqual((q.role, q.dtype, q.shape[1]), ("in", "f32", 16))
        self.assertEqual(q.place, "anywhere")
        self.assertEqual(list(plan.shard("q", harpe.draw_inputs(plan)["q"], 1).shape), q.shape)


class Refusals(unittest.TestCase):
    def refused(self, code, words, call):
        with self.assertRaises(harpe.Refused) as caught:
            call()
        self.assertEqual(caught.exception.code, code, str(caught.exception))
        for word in words:
            self.assertIn(word, caught.exception.message)

    def test_name_the_array(self):
        plan = make_plan()
        inputs = harpe.draw_inputs(plan)

        def body(group):
            exe = harpe.compile(plan, group=group)
            own = cut(plan, inputs, group.rank)
            a, out = own["a"], np.empty((8, 6), np.float32)

            def given(**more):
                return lambda: exe(**{**own, **more})

            def written(array, name="c"):
                return lambda: exe(own, out={name: array})

            fixed = out.copy()
            fixed.flags.writeable = False
            packed = np.zeros((8, 8), [("pad", np.int8), ("x", np.float32)])["x"]
            self.refused("I301", ["`x`", "`gemm_ar`", "`a`, `b`"], given(x=a))
            self.refused("I301", ["`c`"], given(c=out))
            self.refused("I305", ["`a`", "`c`"], written(a, "a"))
            self.refused("I310", ["`b`", "f32 of shape [8, 6]"], lambda: exe(a=a))
            self.refused("I310", ["`c`"], lambda: exe(own, out={}))
            self.refused("I311", ["`a`", "[8, 8]", "[7, 8]"], given(a=a[1:]))
            self.refused("I311", ["`a`", "f32", "f64"], given(a=a.astype(np.float64)))
            self.refused("I311", ["`a`", "format `>f`"], given(a=a.astype(">f4")))
            self.refused("I311", ["`a`", "format `Zd`"], given(a=a.astype(complex)))
            self.refused("I311", ["`a`", "format `O`"], given(a=a.astype(object)))
            self.refused("I311", ["`a`", "a stride of 5 bytes"], given(a=packed))
            self.refused("I311", ["`a`", "9 axes"], given(a=np.zeros((1,) * 9, np.float32)))
            self.refused("I311", ["`a`", "an array", "list"], given(a=[1.0]))
            self.refused("I311", ["`a`", "NoneType"], given(a=None))
            self.refused("I311", ["`a`", "the host's memory"], given(a=OnDevice()))
            self.refused("I311", ["`c`", "read-only"], written(fixed))
            self.refused("I311", ["`c`", "writable by DLPack"], written(Tensor(fixed)))
            self.refused("I311", ["`c`", "a place of its own"],
                         written(np.lib.stride_tricks.as_strided(out, (8, 6), (0, 4))))
            self.refused("I311", ["`c`", "apart from `b`"], written(own["b"]))
            with self.assertRaises(AttributeError):
                exe(own, stream="s")
            self.assertEqual(exe.launches, 0)
            return exe(own)["c"].tobytes()

        wanted = harpe.run(plan, inputs)["c"].tobytes()
        self.assertEqual(run_ranks(2, body), [wanted] * 2)

    def test_of_groups(self):
        exchange = harpe.local_exchanges(1)[0]
        self.refused("I311", ["heap_bytes", "-1"],
                     lambda: harpe.Group(exchange=exchange, heap_bytes=-1))
        self.refused("I311", ["wait_limit"], lambda: harpe.Group(exchange=exchange, wait_limit=0))
        self.refused("I311", ["gpu", "-1"], lambda: harpe.Group(exchange=exchange, gpu=-1))
        self.assertRaises(AttributeError, lambda: harpe.Group(exchange=None))
        group = harpe.Group(exchange=exchange)
        self.refused("I311", ["1 ranks", "2"], lambda: harpe.compile(make_plan(), group=group))

    def test_of_parts(self):
        plan = make_plan()
        inputs = harpe.draw_inputs(plan)
        self.refused("I301", ["`x`"], lambda: plan.shard("x", inputs["a"], 0))
        self.refused("I311", ["rank", "2"], lambda: plan.shard("a", inputs["a"], 2))
        self.refused("I311", ["whole", "[8, 16]"], lambda: plan.shard("a", inputs["b"], 0))
        self.refused("I301", ["`x`"], lambda: plan.unshard("x", []))
        self.refused("I311", ["parts", "2 ranks", "1"], lambda: plan.unshard("a", inputs["a"][:1]))
        self.refused("I311", ["part", "[8, 8]"], lambda: plan.unshard("a", [inputs["b"]] * 2))
        parts = [plan.shard("a", inputs["a"], rank) for rank in range(2)]
        np.testing.assert_array_equal(plan.unshard("a", parts), inputs["a"])


class Exchanges(unittest.TestCase):
    def fail(self, answer):
        """The exception of joining if rank 0's exchange behaves like `answer`."""
        store = make_stores(1)[0]
        store.all_gather = answer
        with self.assertRaises(BaseException) as caught:
            harpe.Group(exchange=store)
        return caught.exception

    def test_errors_become_faults_with_their_message(self):
        def break_down(own):
            raise LookupError("the store is gone")

        fault = self.fail(break_down)
        self.assertIsInstance(fault, harpe.Fault)
        self.assertEqual(fault.code, "N010")
        self.assertIn("LookupError: the store is gone", fault.message)
        self.assertIsInstance(fault.__cause__, LookupError)
        self.assertIn("TypeError", self.fail(lambda own: ["text"]).message)
        self.assertIn("TypeError", self.fail(lambda own: None).message)
        self.assertIn("what 2 of 1 ranks gave", self.fail(lambda own: [own, own]).message)

    def test_interrupts_pass(self):
        def interrupt(own):
            raise KeyboardInterrupt

        self.assertIsInstance(self.fail(interrupt), KeyboardInterrupt)

    def test_refuse_who_cannot_come(self):
        self.assertEqual(harpe.local_exchanges(0), [])
        for ranks, rank in (2, 5), (0, 0), (2, -1):
            with self.assertRaisesRegex(harpe.Refused, "I311.*`ranks?` must be from"):
                harpe.meet(address="localhost:1", rank=rank, ranks=ranks, limit=0.1)
        with self.assertRaises(harpe.Error):
            harpe.meet(address="nowhere", rank=0, ranks=2, limit=0.1)
        with self.assertRaisesRegex(harpe.Refused, "of rank 3 of 2"):
            store = make_stores(2)[0]
            store.rank = 3
            harpe.Group(exchange=store)

    def test_local_ones_can_be_called_and_end(self):
        one, other = harpe.local_exchanges(2, limit=1.0)
        self.assertEqual((other.rank, other.ranks, repr(other)),
                         (1, 2, "<harpe.Exchange rank 1 of 2>"))
        thread = threading.Thread(target=other.all_gather, args=(b"1",))
        thread.start()
        self.assertEqual(one.all_gather(b"0"), [b"0", b"1"])
        thread.join()
        with self.assertRaisesRegex(harpe.Fault, "1 of 2 came within 1000 ms"):
            one.all_gather(b"")


class Faults(unittest.TestCase):
    def test_of_different_plans_name_both_and_end_with_reset(self):
        plans = make_plan(), make_plan("ag_gemm", n=8)
        inputs = [harpe.draw_inputs(plan) for plan in plans]
        wanted = [harpe.run(plan, each)["c"].tobytes() for plan, each in zip(plans, inputs)]

        def body(group):
            with self.assertRaises(harpe.Refused) as caught:
                harpe.compile(plans[group.rank], group=group)
            self.assertEqual(caught.exception.code, "N015")
            exes = [harpe.compile(plan, group=group) for plan in plans]
            own = [cut(plan, each, group.rank) for plan, each in zip(plans, inputs)]
            with self.assertRaisesRegex(harpe.Refused, "same plan on all ranks") as first:
                exes[group.rank](own[group.rank])
            for rank, op in enumerate(["gemm_ar", "ag_gemm"]):
                self.assertIn(f"executable {rank} (`{op}`) on rank {rank}", str(first.exception))
            for call in group.check, lambda: exes[0](own[0]):
                with self.assertRaises(harpe.Refused) as again:
                    call()
                self.assertEqual(str(again.exception), str(first.exception))
            group.reset()
            group.check()
            found = [exe(each)["c"] for exe, each in zip(exes, own)]
            self.assertEqual(found[0].tobytes(), wanted[0])
            return found[1]

        parts = run_ranks(2, body)
        self.assertEqual(plans[1].unshard("c", parts).tobytes(), wanted[1])

    def test_say_who_was_waited_for(self):
        ring = harpe.plan("ag_gemm", mesh="tp=2", schedule="ring", m=8, n=8, k=8)
        for plan in make_plan(), ring:  # in a ring, ranks also wait for later tasks of their own
            inputs = harpe.draw_inputs(plan)

            def body(group, plan=plan, inputs=inputs):
                exe = harpe.compile(plan, group=group)
                if group.rank == 1:
                    return
                with self.assertRaisesRegex(harpe.Fault, r"rank 0 waited \d\.\d s on .* of rank 1"):
                    exe(cut(plan, inputs, 0))

            run_ranks(2, body, wait_limit=0.3)


class Threads(unittest.TestCase):
    def test_of_python_go_on_while_a_launch_waits(self):
        plan = make_plan()
        inputs = harpe.draw_inputs(plan)

        def body(group):
            exe = harpe.compile(plan, group=group)
            if group.rank == 1:
                for _ in range(20):  # rank 0's launch must let this thread run
                    time.sleep(0.005)
            exe(cut(plan, inputs, group.rank))

        self.assertEqual(run_ranks(2, body), [None, None])

    def test_may_drop_and_check_while_another_launches(self):
        plan = make_plan()
        inputs = harpe.draw_inputs(plan)

        def body(group):
            exes = [harpe.compile(plan, group=group) for _ in range(20)]
            last = exes.pop()

            def drop():
                while exes:
                    exes.pop()
                    group.check()

            thread = threading.Thread(target=drop)
            thread.start()
            own = cut(plan, inputs, group.rank)
            found = {last(own)["c"].tobytes() for _ in range(200)}
            thread.join()
            self.assertEqual(group.status.executables, 1)
            return found

        wanted = {harpe.run(plan, inputs)["c"].tobytes()}
        self.assertEqual(run_ranks(2, body), [wanted] * 2)


def measure():
    """Resident KiB, threads and descriptors of this process."""
    gc.collect()
    with open("/proc/self/status", encoding="ascii") as status:
        resident = int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))
    return resident, len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def measure_settled():
    """Waits first, because the system lists joined threads a little longer."""
    counts = []
    while len(counts) < 20 or len(set(counts[-20:])) > 1:
        counts.append(len(os.listdir("/proc/self/task")))
        time.sleep(0.01)
    return measure()


class Memory(unittest.TestCase):
    def check(self, before, after):
        self.assertLess(after[0] - before[0], 4 * 1024, "KiB")
        self.assertEqual(after[1:], before[1:])

    def measure_alone(self, group, gate):
        """Measures while the other ranks are idle."""
        gate.wait()
        found = measure() if group.rank == 0 else (0, 0, 0)
        gate.wait()
        return found

    def test_calls_keep_none(self):
        plan = make_plan(m=64, n=64, k=64)
        inputs = harpe.draw_inputs(plan)
        gate = threading.Barrier(2)

        def body(group):
            exe = harpe.compile(plan, group=group)
            own = cut(plan, inputs, group.rank)
            for count in range(10_500):
                if count == 500:  # allocators are warm by now
                    before = self.measure_alone(group, gate)
                exe({name: array.copy() for name, array in own.items()})  # 64 KiB and an output
                if count % 10 == 0:
                    self.assertRaises(harpe.Refused, exe, a=own["a"])
            after = self.measure_alone(group, gate)
            self.assertEqual(exe.launches, 10_500)
            self.check(before, after)

        self.assertEqual(run_ranks(2, body), [None] * 2)

    def test_groups_keep_none(self):
        plan = make_plan(m=256, n=256, k=256)
        inputs = harpe.draw_inputs(plan)

        def body(group):
            harpe.compile(plan, group=group)(cut(plan, inputs, group.rank))

        def call():
            self.assertEqual(run_ranks(2, body), [None] * 2)

        for _ in range(10):
            call()
        before = measure_settled()
        for _ in range(60):
            call()
        self.check(before, measure_settled())


if __name__ == "__main__":
    unittest.main()
