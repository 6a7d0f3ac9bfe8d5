"""Runs on CPU ranks: arrays of any kind in and out, threads, interrupts, memory."""
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
from unittest import mock

import numpy as np

import harpe
from harpe import _dtypes, _progress

SIZES = dict(m=48, n=32, k=64)


def make_plan(dtype="f32", **more):
    return harpe.plan("ag_gemm", mesh="tp=4", schedule="ring", dtype=dtype, **{**SIZES, **more})


def draw(dtype=np.float32, seed=1):
    rng = np.random.default_rng(seed)
    return {"a": rng.standard_normal((48, 64)).astype(dtype),
            "b": rng.standard_normal((64, 32)).astype(dtype)}


class Arrays(unittest.TestCase):
    def test_results_are_those_of_numpy(self):
        inputs = draw(np.float64)
        out = harpe.run(make_plan("f64"), inputs, check=True)
        # 64 products and additions, each off by half an ulp of the sum of their sizes.
        bound = 65 * 2.0**-53 * (np.abs(inputs["a"]) @ np.abs(inputs["b"]))
        self.assertTrue(np.all(np.abs(out["c"] - inputs["a"] @ inputs["b"]) <= bound))
        self.assertEqual([check.buffer for check in out.checks], ["c"])
        self.assertLessEqual(out.checks[0].error, out.checks[0].bound)
        self.assertEqual(len(out.times_us), 1)
        self.assertGreater(out.bytes_moved, 0)

    def test_kernels_are_chosen_and_told(self):
        plan, inputs = make_plan(), draw()
        own = harpe.run(plan, inputs, check=True, cpu_kernels="own")
        self.assertEqual(own.products, {"f32": "own loops"})
        self.assertEqual(list(harpe.run(plan, inputs).products), ["f32"])
        with self.assertRaisesRegex(ValueError, "'libraries' or 'own', not 'blas'"):
            harpe.run(plan, inputs, cpu_kernels="blas")

    def test_outputs_own_their_memory(self):
        out = harpe.run(make_plan(), draw())
        self.assertTrue(out["c"].flags.owndata and out["c"].flags.writeable)
        self.assertEqual(out["c"].dtype, np.float32)

    def test_strides_and_byte_orders_are_free(self):
        inputs = draw()
        wanted = harpe.run(make_plan(), inputs)["c"]
        wide = np.zeros((96, 192), np.float32)
        wide[::2, 2::3] = inputs["a"]
        packed = np.zeros((48, 64), [("pad", np.int8), ("x", np.float32)])
        packed["x"] = inputs["a"]
        read_only = inputs["a"].copy()
        read_only.flags.writeable = False
        ways = [wide[::2, 2::3], np.asfortranarray(inputs["a"]), inputs["a"][::-1][::-1],
                np.flip(np.flip(inputs["a"]).copy()), inputs["a"].astype(">f4"), packed["x"],
                read_only, inputs["a"].tolist()]
        for way in ways:
            given = harpe.run(make_plan(), {**inputs, "a": way})["c"]
            np.testing.assert_array_equal(given, wanted)

    def test_types_are_rounded_once(self):
        exact = draw(np.float64)
        rounded = {name: array.astype(np.float32) for name, array in exact.items()}
        np.testing.assert_array_equal(harpe.run(make_plan(), exact)["c"],
                                      harpe.run(make_plan(), rounded)["c"])

    def test_bf16_is_ml_dtypes_or_float32(self):
        plan = make_plan("bf16")
        inputs = draw()
        with mock.patch.dict(sys.modules, ml_dtypes=None):
            _dtypes.known.cache_clear()
            self.addCleanup(_dtypes.known.cache_clear)
            plain = harpe.run(plan, inputs)["c"]
            drawn = harpe.draw_inputs(plan)
        self.assertEqual(plain.dtype, np.float32)
        self.assertTrue(np.all(plain.view(np.uint32) & 0xFFFF == 0))
        _dtypes.known.cache_clear()
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is not installed")
        out = harpe.run(plan, {name: array.astype(ml_dtypes.bfloat16)
                               for name, array in inputs.items()})["c"]
        self.assertEqual(out.dtype, ml_dtypes.bfloat16)
        np.testing.assert_array_equal(out.astype(np.float32), plain)
        for name, array in harpe.draw_inputs(plan).items():
            np.testing.assert_array_equal(array.astype(np.float32), drawn[name])

    def test_indices_are_integers(self):
        plan = harpe.plan("attention", mesh="cp=2", schedule="ring", batch=1, seq=32, heads=2,
                          kv_heads=2, head_dim=16, dtype="f32", packed=True)
        inputs = harpe.draw_inputs(plan)
        self.assertEqual(inputs["seg"].dtype, np.int32)
        wide = {**inputs, "seg": inputs["seg"].astype(np.int64)}
        np.testing.assert_array_equal(harpe.run(plan, wide)["o"], harpe.run(plan, inputs)["o"])


class Refusals(unittest.TestCase):
    def refused(self, code, words, inputs, **options):
        with self.assertRaises(harpe.Refused) as caught:
            harpe.run(make_plan(), inputs, **options)
        self.assertEqual(caught.exception.code, code, str(caught.exception))
        for word in words:
            self.assertIn(word, caught.exception.message)

    def test_name_the_argument_and_what_was_expected(self):
        inputs = draw()
        self.refused("I310", ["`b`", "f32", "64", "32"], {"a": inputs["a"]})
        self.refused("I301", ["`x`"], {**inputs, "x": inputs["a"]})
        self.refused("I311", ["inputs[a]", "48", "47"], {**inputs, "a": inputs["a"][1:]})
        self.refused("I311", ["inputs[a]", "complex64"],
                     {**inputs, "a": inputs["a"].astype(np.complex64)})
        self.refused("I311", ["inputs[a]", "object"], {**inputs, "a": np.array([None])})
        self.refused("I311", ["inputs[a]", "9 axes"], {**inputs, "a": np.zeros((1,) * 9)})
        self.refused("I311", ["inputs[a]", "i32"], {**inputs, "a": np.zeros((48, 64), np.int32)})
        self.refused("I311", ["`iterations` must be from 1 to"], inputs, iterations=0)
        self.refused("I311", ["wait_limit", "365 days"], inputs, wait_limit=0)
        for endless in float("inf"), float("nan"), 1e300:
            self.refused("I311", ["wait_limit", str(endless)], inputs, wait_limit=endless)
        with self.assertRaisesRegex(TypeError, "`iterations` must be an int, not float"):
            harpe.run(make_plan(), inputs, iterations=1.5)
        with self.assertRaisesRegex(TypeError, "`wait_limit` must be a number of seconds, not str"):
            harpe.run(make_plan(), inputs, wait_limit="soon")
        for seed in -1, 2**64:
            with self.assertRaisesRegex(harpe.Refused, "`seed` must be from 0 to .* but is"):
                harpe.draw_inputs(make_plan(), seed)


class Faults(unittest.TestCase):
    def test_are_what_the_system_refuses(self):
        program = textwrap.dedent("""
            import re, resource, harpe
            plan = harpe.plan("ag_gemm", mesh="tp=4", schedule="ring", m=64, n=64, k=64)
            inputs = harpe.draw_inputs(plan)
            status = open("/proc/self/status").read()
            used = int(re.search(r"VmSize:\\s+(\\d+)", status).group(1)) * 1024
            resource.setrlimit(resource.RLIMIT_AS, (used, used))
            try:
                harpe.run(plan, inputs)
            except RuntimeError as fault:
                print(type(fault).__name__, fault.message)
            """)
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True,
                              text=True)
        self.assertRegex(done.stdout, "^Fault (out of memory|the system gives this process)")


class CommandLine(unittest.TestCase):
    def test_has_the_same_bits(self):
        binary = os.environ["HARPE_BINARY"]
        for dtype in ("f32", "bf16"):
            plan = make_plan(dtype)
            inputs = draw()
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                plan.save(folder / "gemm.plan")
                for key, array in inputs.items():
                    np.save(folder / f"{key}.npy", array)
                subprocess.run([binary, "run", "gemm.plan", "--input", "a=a.npy", "--input",
                                "b=b.npy", "--output", "c=c.npy"], cwd=folder, check=True,
                               capture_output=True)
                wanted = np.load(folder / "c.npy")
            given = harpe.run(plan, inputs)["c"].astype(np.float32)
            self.assertEqual(given.tobytes(), wanted.tobytes())


class Threads(unittest.TestCase):
    def test_runs_go_on_at_once(self):
        plan = make_plan()
        wanted = {seed: harpe.run(plan, draw(seed=seed))["c"].tobytes() for seed in (1, 2)}
        found = {}

        def run(seed):
            found[seed] = [harpe.run(plan, draw(seed=seed))["c"].tobytes() for _ in range(10)]

        threads = [threading.Thread(target=run, args=(seed,)) for seed in wanted]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, {seed: [bits] * 10 for seed, bits in wanted.items()})

    def test_a_search_leaves_the_interpreter_free(self):
        ticks = []
        done = threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.01)

        thread = threading.Thread(target=tick)
        thread.start()
        begin = time.monotonic()
        harpe.tune("ag_gemm", mesh="tp=8", machine="h200x8", cache=None, m=8192, n=8192, k=8192)
        end = time.monotonic()
        done.set()
        thread.join()
        inside = [moment for moment in ticks if begin < moment < end]
        self.assertGreater(len(inside), (end - begin) / 0.01 / 20)


class Progress(unittest.TestCase):
    def test_is_told_and_may_give_up(self):
        told = []
        question = dict(mesh="tp=8", machine="h200x8", cache=None, m=4096, n=4096, k=4096)
        harpe.plan("ag_gemm", progress=lambda *step: told.append(step), **question)
        self.assertTrue(told)
        self.assertTrue(all(isinstance(stage, str) and done >= 0 and of >= 0
                            for stage, done, of in told))
        with self.assertRaises(harpe.Refused) as caught:
            harpe.plan("ag_gemm", progress=lambda *step: False, **question)
        self.assertEqual(caught.exception.code, "I505")

    def test_what_it_raises_ends_the_search(self):
        def fail(*step):
            raise LookupError("enough")

        for search in harpe.plan, harpe.tune:
            with self.assertRaisesRegex(LookupError, "enough"):
                search("ag_gemm", mesh="tp=8", machine="h200x8", cache=None, progress=fail)

    def test_is_silent_where_there_is_no_terminal(self):
        with mock.patch.dict(sys.modules, {"tqdm": None, "tqdm.auto": None}), \
                mock.patch("sys.stderr") as stderr:
            stderr.isatty.return_value = False
            bar = _progress.Bar()
            bar("searching", 1, 2)
            bar.close()
            stderr.write.assert_not_called()
            stderr.isatty.return_value = True
            bar("searching", 1, 2)
            stderr.write.assert_called_with("\rsearching 1 of 2")

    def test_of_a_run_counts_steps_and_may_give_up(self):
        plan = harpe.plan("ag_gemm", mesh="tp=2", schedule="ring", m=64, n=64, k=64)
        told = []

        def enough(*step):
            told.append(step)
            return step[1] == 0

        with self.assertRaises(harpe.Refused) as caught:
            harpe.run(plan, harpe.draw_inputs(plan), iterations=10**7, progress=enough)
        self.assertEqual(caught.exception.code, "I505")
        stage, done, of = told[-1]
        self.assertEqual(stage, "running")
        self.assertTrue(0 < done < of, told[-1])

    def test_an_interrupt_ends_a_long_search(self):
        self.interrupt("harpe.tune('attention', mesh='cp=64', machine='h200x8x8', cache=None, "
                       "exhaustive=True, seq=1048576, heads=64, kv_heads=8, head_dim=128, "
                       "causal=True)")

    def test_an_interrupt_ends_a_long_run(self):
        self.interrupt("plan = harpe.plan('ag_gemm', mesh='tp=2', schedule='ring', m=64, n=64, "
                       "k=64); harpe.run(plan, harpe.draw_inputs(plan), iterations=10**7)")

    def test_an_interrupt_ends_a_long_check(self):
        self.interrupt("plan = harpe.plan('gemm', mesh='tp=2', m=4096, n=4096, k=4096, "
                       "dtype='f32', machine='', cache=None); "
                       "inputs = harpe.draw_inputs(plan); began = []\n"
                       "def tell(stage, done, of):\n"
                       "    if stage == 'checking' and not began:\n"
                       "        began.append(print('go', flush=True))\n"
                       "harpe.run(plan, inputs, check=True, progress=tell)", begins="", within=5)

    def test_an_interrupt_ends_the_drawing_of_inputs(self):
        self.interrupt("plan = harpe.plan('attention_bwd', mesh='cp=2', schedule='ring', "
                       "seq=32768, heads=2, machine='', cache=None); print('go', flush=True); "
                       "harpe.draw_inputs(plan)", begins="", within=5)

    def interrupt(self, work, begins="print('go', flush=True); ", within=30):
        one_core = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); "
        program = f"{one_core}import harpe; {begins}{work}"
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stdout.readline()
        time.sleep(2)
        self.assertIsNone(process.poll(), "the work is too short for this test")
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, errors = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, within)
        self.assertIn("KeyboardInterrupt", errors)


class Memory(unittest.TestCase):
    def test_calls_keep_none(self):
        plan = make_plan(m=512, n=512, k=512)
        inputs = {"a": np.ones((512, 512), np.float32), "b": np.ones((512, 512), np.float32)}

        def call():
            harpe.run(plan, inputs)
            make_plan()
            with self.assertRaises(harpe.Refused):
                harpe.run(plan, {})

        for _ in range(50):  # until allocators are warm
            call()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(200):
            call()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        self.assertLess(grown, 8 * 1024, "KiB")  # a kept result per call would be 200 MiB


if __name__ == "__main__":
    unittest.main()
