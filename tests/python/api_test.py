"""The package's API for plans, searches and the values that they return."""
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

import harpe

GEMM = dict(m=512, n=512, k=512)
MESH = "tp=4"
PROJECT = """program project {
  param tokens = 64
  axis T = tokens grain 4
  axis H = 32 grain 4
  axis F = 48 grain 4
  buffer states : f32[T, H] in
  buffer weights : f32[H, F] in
  buffer result : f32[T, F] out
  nest product over (T, H, F) {
    result sum= matmul(states, weights)
  }
}
"""


def make_plan(**more):
    return harpe.plan("ag_gemm", mesh=MESH, schedule="ring", **{**GEMM, **more})


class Plans(unittest.TestCase):
    def test_have_figures(self):
        plan = make_plan(machine="h200x8")
        self.assertEqual((plan.op, plan.mesh, plan.schedule, plan.ranks),
                         ("ag_gemm", "tp=4", "ring", 4))
        self.assertGreater(plan.predicted_us, 0)
        self.assertEqual(plan.predicted.machine, "h200x8")
        self.assertGreater(plan.memory_bytes, 0)
        self.assertEqual(plan.facts.flops, 2 * 512**3)
        self.assertEqual(plan.why.origin, "caller")
        self.assertEqual(str(plan.why), plan.why.text)
        self.assertGreater(plan.certificate.tasks, 0)
        self.assertIn("ag_gemm on tp=4: ring, predicted", repr(plan))

    def test_have_no_predicted_time_without_a_machine(self):
        plan = make_plan()
        self.assertIsNone(plan.predicted_us)
        self.assertNotIn("predicted", repr(plan))

    def test_homes_are_indices_of_arrays(self):
        plan = make_plan(m=32, n=16, k=8)
        # Every rank owns a block of A's rows.
        self.assertEqual(plan.buffers["a"].homes,
                         [[(slice(8 * rank, 8 * rank + 8), slice(0, 8))] for rank in range(4)])
        self.assertEqual(list(plan.buffers), ["a", "b", "c"])
        self.assertEqual(plan.buffers["c"].role, "out")
        self.assertEqual(list(plan.buffers["c"].shape), [32, 16])
        self.assertEqual(plan.layout, {"M": "contiguous", "N": "contiguous", "K": "whole"})

    def test_keep_to_homes_and_layouts(self):
        question = dict(mesh="cp=4", batch=1, seq=64, heads=4, kv_heads=4, head_dim=16, causal=True,
                        cache=None)
        for layout, second in (("contiguous", [*range(16, 32)]),
                               ("zigzag", [*range(8, 16), *range(48, 56)])):
            plan = harpe.plan("attention", layout=layout, **question)
            self.assertEqual((plan.layout["Sq"], plan.layout["Skv"]), (layout, layout))
            self.assertEqual([len(held) for held in plan.positions("q", 1)], [1, 16, 4, 16])
            self.assertEqual(plan.positions("q", 1)[1].tolist(), second)
            tuned = harpe.tune("attention", layout=layout, machine="h200x8", **question)
            self.assertEqual(tuned.best.layout["Sq"], layout)
            names = {row.schedule for row in harpe.taxes("attention", layout=layout, **question)}
            self.assertEqual("zigzag_ring" in names, layout == "zigzag")
        plan = harpe.plan("attention", homes={"k": "", "v": ""}, layout="contiguous", **question)
        self.assertEqual(plan.positions("k", 3)[1].tolist(), [*range(64)])
        with self.assertRaises(harpe.Refused) as caught:
            harpe.plan("attention", schedule="zigzag_ring", layout="contiguous", **question)
        self.assertEqual(caught.exception.code, "I311")
        self.assertIn("`ring`", caught.exception.notes[1])
        with self.assertRaises(harpe.Refused) as caught:
            plan.positions("q", 4)
        self.assertEqual(caught.exception.code, "I311")
        del question["cache"]
        refusals = {info.name: info.refusal
                    for info in harpe.schedules("attention", layout="zigzag", **question)}
        self.assertIsNone(refusals["zigzag_ring"])
        self.assertEqual(refusals["ring"].code, "I311")

    def test_are_kept_in_files(self):
        plan = make_plan()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "gemm.plan"
            plan.save(path)
            loaded = harpe.load(path)
        self.assertEqual(loaded.show(), plan.show())
        self.assertEqual(loaded.why.origin, "text")
        self.assertEqual(loaded.memory_bytes, plan.memory_bytes)

    def test_texts_read_back(self):
        plan = make_plan()
        again = harpe.plan(plan.show("program"), mesh=MESH, schedule=plan.show("schedule"))
        self.assertEqual(again.memory_bytes, plan.memory_bytes)
        with self.assertRaises(ValueError):
            plan.show("drawing")

    def test_are_simulated(self):
        plan = make_plan(machine="h200x8")
        simulation = plan.simulate()
        self.assertEqual(simulation.time_us, plan.predicted_us)
        self.assertAlmostEqual(sum(share.us for share in simulation.critical_path),
                               simulation.time_us, delta=1e-3 * simulation.time_us)
        # The errors of measured plans of this operator on the shipped machine.
        self.assertLess(simulation.prediction.median_error, simulation.prediction.error_90)
        self.assertIn("±", repr(simulation))
        late = plan.simulate(delay=(1, 500.0))
        self.assertGreater(late.time_us, simulation.time_us + 400)
        fetch = harpe.plan("ag_gemm", mesh=MESH, schedule="fetch", machine="h200x8", **GEMM)
        self.assertGreater(fetch.simulate(launch="host").time_us, fetch.predicted_us)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.json"
            simulation.trace(path)
            self.assertIn('"traceEvents"', path.read_text())
        with self.assertRaises(ValueError):
            plan.simulate(launch="twice")

    def test_are_asked_for_in_one_call(self):
        plan = make_plan(machine="h200x8")
        question = dict(mesh=MESH, schedule="ring", **GEMM)
        simulated = harpe.simulate("ag_gemm", machine="h200x8", **question)
        self.assertEqual(simulated.time_us, harpe.simulate(plan).time_us)
        delayed = harpe.simulate("ag_gemm", machine="h200x8", delay=(1, 50.0), **question)
        self.assertGreater(delayed.time_us, simulated.time_us)
        self.assertEqual(harpe.verify("ag_gemm", **question), harpe.verify(plan))
        self.assertEqual(harpe.show("ag_gemm", stage="schedule", **question),
                         harpe.show(plan, "schedule"))
        with self.assertRaisesRegex(TypeError, "has its mesh already"):
            harpe.show(plan, mesh=MESH)
        with self.assertRaises(harpe.Refused):
            harpe.verify("ag_gemm", mesh=MESH, schedule="none")

    def test_say_how_the_time_divides(self):
        taxes = make_plan(machine="h200x8").taxes()
        parts = (taxes.roofline_us + taxes.launch_us + taxes.synchronization_us
                 + taxes.locality_us + taxes.residual_us)
        self.assertAlmostEqual(parts, taxes.time_us, delta=1e-2 * taxes.time_us)
        every = harpe.taxes("ag_gemm", mesh=MESH, machine="h200x8", cache=None, **GEMM)
        self.assertIn("ring", [each.schedule for each in every])

    def test_are_drawn_in_notebooks(self):
        plan = make_plan(machine="h200x8")
        xml.dom.minidom.parseString(plan._repr_svg_())
        frame = xml.dom.minidom.parseString(
            plan._repr_html_().replace('style="border:0"', 'style="border:0"')).documentElement
        self.assertEqual(frame.tagName, "iframe")
        self.assertEqual(frame.getAttribute("sandbox"), "allow-scripts")
        self.assertIn("<html", frame.getAttribute("srcdoc"))
        self.assertIn("rank", plan.draw())

    def test_of_too_many_ranks_have_no_drawing(self):
        plan = harpe.plan("ag_gemm", mesh="tp=256", schedule="ring", m=1024, n=256, k=64)
        self.assertIsNone(plan._repr_svg_())

    def test_take_files_of_texts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "project.op"
            path.write_text(PROJECT)
            plan = harpe.plan(path, mesh="tp=2", schedule="ring", tokens=96)
        self.assertEqual(plan.op, "project")
        self.assertEqual(list(plan.buffers["result"].shape), [96, 48])


class Searches(unittest.TestCase):
    def test_find_plans(self):
        tuned = harpe.tune("ag_gemm", mesh=MESH, machine="h200x8", top=3, cache=None, **GEMM)
        self.assertGreater(tuned.candidates, tuned.feasible)
        self.assertGreaterEqual(tuned.search_s, 0)
        self.assertTrue(tuned.complete)
        self.assertEqual(len(tuned.top), 3)
        times = [candidate.time_us for candidate in tuned.top]
        self.assertEqual(times, sorted(times))
        self.assertEqual(tuned.best.why.origin, "search")
        self.assertIn("<table>", tuned._repr_html_())
        again = harpe.plan("ag_gemm", mesh=MESH, machine="h200x8",
                           schedule=tuned.top[0].schedule, **GEMM)
        self.assertAlmostEqual(again.predicted_us, tuned.top[0].time_us,
                               delta=1e-6 * again.predicted_us)

    def test_answers_are_kept(self):
        question = dict(mesh=MESH, machine="h200x8", **GEMM)
        with tempfile.TemporaryDirectory() as folder:
            searched = harpe.plan("ag_gemm", cache=folder, **question)
            tuned = harpe.tune("ag_gemm", cache=folder, **question)
            known = harpe.plan("ag_gemm", cache=folder, **question)
            again = harpe.tune("ag_gemm", cache=folder, **question)
        self.assertEqual((searched.why.origin, known.why.origin), ("search", "cache"))
        self.assertEqual(known.show(), tuned.best.show())
        self.assertEqual(tuned.known_since, "")
        self.assertRegex(again.known_since, r"\d{4}-\d\d-\d\d")

    def test_broken_answers_are_warned_of(self):
        question = dict(mesh=MESH, machine="h200x8", **GEMM)
        with tempfile.TemporaryDirectory() as folder:
            harpe.tune("ag_gemm", cache=folder, **question)
            (kept,) = pathlib.Path(folder).iterdir()
            kept.write_text("nothing")
            with self.assertWarnsRegex(UserWarning, kept.name):
                plan = harpe.plan("ag_gemm", cache=folder, **question)
        self.assertEqual(plan.why.origin, "search")

    def test_keep_answers_where_the_command_line_does(self):
        program = ("import harpe; harpe.tune('ag_gemm', mesh='tp=2', machine='h200x8', m=256, "
                   "n=256, k=256)")
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("XDG_CACHE_HOME", "HOME")}
        for variable, below in ("XDG_CACHE_HOME", "harpe"), ("HOME", ".cache/harpe"):
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run([sys.executable, "-c", program], check=True,
                               env={**environment, variable: folder})
                self.assertTrue((pathlib.Path(folder) / below).is_dir(), variable)
        done = subprocess.run([sys.executable, "-c", program], check=True, env=environment,
                              stderr=subprocess.PIPE, text=True)
        self.assertIn("UserWarning: neither XDG_CACHE_HOME nor HOME", done.stderr)

class Catalogue(unittest.TestCase):
    def test_lists_what_there_is(self):
        self.assertIn("ag_gemm", [operator.name for operator in harpe.operators()])
        described = harpe.describe("ag_gemm")
        self.assertIn("m", [parameter.name for parameter in described.parameters])
        self.assertIn("<table>", described._repr_html_())
        self.assertEqual(harpe.describe(PROJECT).name, "project")
        self.assertIn("h200x8", [machine.name for machine in harpe.machines()])
        schedules = {each.name: each for each in harpe.schedules("ag_gemm", mesh=MESH, **GEMM)}
        self.assertIsNone(schedules["ring"].refusal)
        refused = [each for each in schedules.values() if each.refusal is not None]
        self.assertTrue(all(isinstance(each.refusal, harpe.Refused) for each in refused))
        self.assertGreater(harpe.doctor().host.cores, 0)
        self.assertRegex(harpe.__version__, r"^\d+\.\d+\.\d+")


class Errors(unittest.TestCase):
    def refused(self, code, call):
        with self.assertRaises(harpe.Refused) as caught:
            call()
        error = caught.exception
        self.assertEqual(error.code, code, str(error))
        self.assertIsInstance(error, ValueError)
        self.assertIn(error.message, str(error))
        return error

    def test_have_codes_and_remedies(self):
        error = self.refused("U108", lambda: harpe.plan("ag_gem", mesh=MESH))
        self.assertIn("ag_gem", error.message)
        self.assertEqual(harpe.explain(error.code).code, "U108")
        self.refused("U115", lambda: harpe.explain("Z999"))
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(copy), copy.code, copy.notes), (str(error), error.code, error.notes))

    def test_name_options_as_programs_give_them(self):
        error = self.refused("U109", lambda: harpe.plan("ag_gemm", mesh=MESH, homes={"a": "M@x"}))
        self.assertTrue(error.message.startswith("`homes` is `a=M@x`, but must be "), error.message)
        self.assertEqual(harpe.explain("S705").remedy, "raise `budget` to look at the rest")

    def test_texts_are_refused_with_line_and_column(self):
        wrong = PROJECT.replace("sum= matmul", "sum matmul")
        with self.assertRaises(harpe.Refused) as caught:
            harpe.plan(wrong, mesh=MESH, schedule="ring")
        self.assertRegex(str(caught.exception) + "".join(caught.exception.notes),
                         r"line 10, column \d+|:10:\d+")

    def test_parameters_are_checked(self):
        for value in (2**80, -1, "many"):
            with self.assertRaises(harpe.Refused):
                make_plan(m=value)
        with self.assertRaises(harpe.Refused):
            make_plan(rows=3)
        with self.assertRaisesRegex(TypeError, "`m` must be an int, a bool or a str, not float"):
            make_plan(m=0.5)
        with self.assertRaises(harpe.Refused):
            harpe.plan("attention", mesh="cp=2", causal=3)
        with self.assertRaisesRegex(TypeError, "`layout` must be a str such as 'zigzag', not bool"):
            make_plan(layout=True)
        with self.assertRaisesRegex(TypeError, "that of `a` is NoneType"):
            make_plan(homes={"a": None})
        with self.assertRaisesRegex(TypeError, "`mesh` must be a str such as 'cp=8', not int"):
            harpe.plan("attention", mesh=2)

    def test_broken_plans_are_refused(self):
        text = make_plan().show()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "gemm.plan"
            path.write_text(text[:len(text) // 2])
            with self.assertRaises(harpe.Refused):
                harpe.load(path)
            path.write_bytes(b"\xff\x00" + text.encode())
            with self.assertRaises(harpe.Refused):
                harpe.load(path)
            with self.assertRaises(FileNotFoundError):
                harpe.load(pathlib.Path(folder) / "none.plan")

    def test_bugs_leave_a_file(self):
        error = harpe.Bug("bug in harpe: x", reproduction="program x {}\n")
        self.addCleanup(error.file.unlink)
        self.assertEqual(error.file.read_text(), "program x {}\n")
        self.assertIn(str(error.file), str(error))
        self.assertIsInstance(error, RuntimeError)

    def test_import_needs_no_torch(self):
        program = "import sys, harpe; sys.exit('torch' in sys.modules)"
        subprocess.run([sys.executable, "-c", program], check=True)


if __name__ == "__main__":
    unittest.main()
