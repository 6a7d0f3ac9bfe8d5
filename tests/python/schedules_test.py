"""Schedules as values: every primitive is a method, and named schedules can be built from them."""
import ast
import inspect
import pathlib
import re
import unittest

import harpe
from harpe import Schedule

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/schedules.md"
MESHES = ["tp=4", "node=2,gpu=4", "x=3"]
SMALL = {"moe": {"experts": 12}, "moe_capped": {"experts": 12, "capacity": 512},
         "attention": {"causal": True}, "attention_bwd": {"causal": True}}
GEMM = dict(m=512, n=512, k=512)


def read(node):
    """An argument of a step's text, as a Python value."""
    if isinstance(node, ast.List):
        return [read(element) for element in node.elts]
    is_name = isinstance(node, ast.Name | ast.Attribute)
    return ast.unparse(node) if is_name else ast.literal_eval(node)


def add(schedule, step):
    """Adds the step of a text by calling the method."""
    call, _, results = step.partition(" -> ")
    node = ast.parse(call, mode="eval").body
    method = node.func.id
    arguments = [read(argument) for argument in node.args]
    keywords = {keyword.arg: read(keyword.value) for keyword in node.keywords}
    if results:
        keywords["into"] = results.split(", ")
    if method == "refine":
        del arguments[0]  # the schedule already has the mesh
    if method == "chunk" and "over" not in keywords:
        method = "chunk_leaf"
        del arguments[1]  # the keyword `leaf`
    if "persistent" in keywords:
        keywords["persistent"] = True
    return getattr(schedule, method)(*arguments, **keywords)


def write_ring(**more):
    """Builds the named schedule `ring` of ag_gemm."""
    s = Schedule("ag_gemm", mesh="tp=4", name="ring", **GEMM, **more)
    s = s.tile("M", [4], into=["m0", "m1"]).tile("N", [4], into=["n0", "n1"])
    s = s.shard("a", "m0", "tp").shard("b", "n0", "tp").shard("c", "n0", "tp")
    s = s.parallelize("mm", "n0", "tp").serialize("mm", "m0").shift("mm.m0", ["tp"])
    s = s.stage("mm", "a", over="tp", how="relay", at="m0", by="src")
    s = s.pipeline("mm", "a", over="tp", depth=2).bind("mm", "a", over="tp", via="ce")
    return s.signal("mm", "a", over="tp", kind="event")


class Named(unittest.TestCase):
    def test_are_written_by_methods(self):
        written = 0
        for op in harpe.operators():
            for mesh in MESHES:
                question = dict(mesh=mesh, **SMALL.get(op.name, {}))
                for each in harpe.schedules(op.name, **question):
                    if each.refusal is not None:
                        continue
                    with self.subTest(op.name, mesh=mesh, schedule=each.name):
                        named = Schedule(op.name, schedule=each.name, **question)
                        mine = Schedule(op.name, name=named.name, **question)
                        for step in named.steps:
                            mine = add(mine, step)
                        self.assertEqual(mine, named)
                        self.assertEqual(Schedule(op.name, schedule=str(mine), **question), mine)
                        self.assertEqual(str(mine) + mine.form, harpe.show(
                            op.name, "schedule", schedule=each.name, **question))
                        written += 1
        self.assertGreater(written, 100)

    def test_ring(self):
        self.assertEqual(write_ring(), Schedule("ag_gemm", mesh="tp=4", schedule="ring", **GEMM))


class Methods(unittest.TestCase):
    def test_are_the_primitives_of_the_page(self):
        rows = re.findall(r"^\| `(\w+)\((.*)\)(?: -> (\w+))?` \|.*\| S\d",
                          PAGE.read_text("utf-8"), re.M)
        self.assertGreaterEqual(len(rows), 24)
        methods = {name for name, _ in inspect.getmembers(Schedule, inspect.isfunction)
                   if not name.startswith("_")}
        named = set()
        for primitive, usage, results in rows:
            words = re.findall(r"\w+", usage)
            method = primitive
            if primitive == "chunk" and "leaf" in words:
                method, words = "chunk_leaf", [word for word in words if word != "leaf"]
            if primitive == "refine":
                words.remove("mesh")
            taken = set(inspect.signature(getattr(Schedule, method)).parameters) - {"self", "into"}
            renamed = {"join": {"first", "second"}, "balance": {"axis", "kind", "arguments"},
                       "shift": {"loop", "axes", "offset"}, "reverse": {"loop"}}
            self.assertEqual(taken, renamed.get(method, set(words)), method)
            self.assertEqual("into" in inspect.signature(getattr(Schedule, method)).parameters,
                             bool(results), method)
            self.assertIn("Refused: S", getattr(Schedule, method).__doc__)
            named.add(method)
        self.assertEqual(methods, named)

    def test_of_blocks_and_loops(self):
        s = Schedule("gemm", mesh="node=2,gpu=4", **GEMM)
        s = s.refine("gpu", [2, 2], into=["ring", "pair"])
        s = s.tile("M", [8], into=["m", "mr"]).tile("m", [2, 4], into=["m0", "m1"])
        s = s.join("m0", "m1", into="m").tile("K", [4, 2], into=["k0", "k1"])
        self.assertIn("split M = m:8 * mr:_", s.form)
        s = s.serialize("mm", "k0").serialize("mm", "k1").reorder("mm", ["k1", "k0"])
        s = s.shift("mm.k0", ["pair", "ring"], 1).reverse("mm.k0").replicate("mm", "node")
        self.assertIn("for k0 skew (pair, ring) + 1 rev", s.form)
        s = s.tile("N", [4], into=["n0"]).balance("N", "table", [3, 0, 2, 1])
        s = s.partial("c", "sum", ["ring", "pair"])
        self.assertIn("layout N table(3, 0, 2, 1)", s.form)
        self.assertIn("partial sum@(ring, pair)", s.form)
        self.assertIn("join(N)", s.balance("N", "none").join("N").steps)
        self.assertIn("refine(node2_gpu4, gpu, [2, 2]) -> ring, pair", s.steps)

    def test_of_moves_and_kernels(self):
        s = Schedule("ag_gemm", mesh="tp=4", **GEMM).tile("M", [4, 2], into=["m0", "m1"])
        s = s.serialize("mm", "m0").stage("mm", "a", over="tp", how="direct", by="src", at="m0")
        for method, what in [("chunk", dict(by="m1")), ("compress", dict(wire="f16")),
                             ("pipeline", dict(depth=3)), ("bind", dict(via="sm")),
                             ("signal", dict(kind="flag")), ("budget", dict(sm=16)),
                             ("bind", dict(via="proxy")),
                             ("signal", dict(kind="flag", fence="dest"))]:
            s = getattr(s, method)("mm", ["a"], over="tp", move="stage", **what)
            words = ", ".join(f"{key}={value}" for key, value in what.items())
            self.assertEqual(s.steps[-1], f"{method}(mm, a, over=[tp], move=stage, {words})")
        self.assertIn("by src depth 3 grain m1 wire f16 via proxy signal flag fence dest", s.form)
        s = s.patch("mm", kernel="gemm_sm90", sm=100).budget("mm", sm=96)
        s = s.fuse("all", ["mm"], sm=96, warps=8)
        self.assertIn('leaf kernel "gemm_sm90" sm 96\n', s.form)
        self.assertIn("fuse all = mm sm 96 warps 8\n", s.form)

class Values(unittest.TestCase):
    def test_are_immutable(self):
        empty = Schedule("gemm", mesh="tp=4", name="mine", **GEMM)
        tiled = empty.tile("M", [4], into=["m0", "m1"])
        self.assertEqual(empty.steps, ())
        self.assertEqual(tiled.steps, ("tile(M, [4]) -> m0, m1",))
        self.assertEqual(repr(tiled), "<harpe.Schedule mine on tp=4: 1 steps>")
        self.assertEqual(len({empty, tiled, empty.tile("M", [4], into=["m0", "m1"])}), 2)
        with self.assertRaises(AttributeError):
            tiled.text = ""

    def test_start_from_others(self):
        ring = write_ring()
        mine = Schedule("ag_gemm", mesh="tp=4", schedule=ring, name="mine", **GEMM)
        self.assertEqual((mine.name, mine.steps), ("mine", ring.steps))
        formed = Schedule("ag_gemm", mesh="tp=4", schedule=ring.form, **GEMM)
        self.assertEqual(formed.form, ring.form)
        both = ring.text + ring.form
        self.assertEqual(Schedule("ag_gemm", mesh="tp=4", schedule=both, **GEMM), ring)
        loose = ring.text.replace("over=[tp]", "over=tp")
        self.assertNotEqual(loose, ring.text)
        self.assertEqual(Schedule("ag_gemm", mesh="tp=4", schedule=loose, **GEMM), ring)

    def test_start_from_what_a_search_found(self):
        question = dict(mesh="cp=4", seq=512, causal=True)
        tuned = harpe.tune("attention", cache=None, **question)
        for candidate in tuned.top:
            found = Schedule("attention", schedule=candidate.schedule, **question)
            self.assertEqual(Schedule("attention", schedule=found, **question), found)
            self.assertTrue(found.steps)

    def test_take_the_things_of_a_builder(self):
        p = harpe.ProgramBuilder("scaled")
        T, H = p.axis("T", 64), p.axis("H", 32)
        x, y = p.input("x", "f32", [T, H]), p.output("y", "f32", [T, H])
        nest = p.nest("n", over=[T, H])
        nest.store(y, "silu", x)
        s = Schedule(p.build(), mesh="tp=4").tile(T, [4], into=["t0", "t1"])
        for buffer in x, y:
            s = s.shard(buffer, "t0", "tp")
        plan = harpe.plan(p.build(), mesh="tp=4", schedule=s.parallelize(nest, "t0", ["tp"]))
        self.assertEqual(plan.schedule, "own")
        self.assertEqual(harpe.run(plan, harpe.draw_inputs(plan), check=True).checks[0].buffer, "y")

    def test_are_taken_by_calls(self):
        ring = write_ring()
        question = dict(mesh="tp=4", **GEMM)
        plan = harpe.plan("ag_gemm", machine="h200x8", schedule=ring, **question)
        named = harpe.plan("ag_gemm", machine="h200x8", schedule="ring", **question)
        self.assertEqual(plan.show(), named.show())
        self.assertEqual(harpe.taxes("ag_gemm", machine="h200x8", schedule=ring, **question),
                         [plan.taxes()])
        self.assertEqual(harpe.verify("ag_gemm", schedule=ring, **question), plan.certificate)
        simulated = harpe.simulate("ag_gemm", machine="h200x8", schedule=ring, **question)
        self.assertEqual(simulated.time_us, plan.predicted_us)


class Refusals(unittest.TestCase):
    def expect(self, code, call):
        with self.assertRaises(harpe.Refused) as caught:
            call()
        self.assertEqual(caught.exception.code, code)
        return caught.exception

    def test_come_at_the_call(self):
        s = Schedule("ag_gemm", mesh="tp=4", name="mine", **GEMM).tile("M", [4], into=["m0", "m1"])
        refused = self.expect("S013", lambda: s.shard("a", "m9", "tp"))
        self.assertEqual(refused.notes, ("in step 2 of schedule `mine`: shard(a, m9, tp)",))
        self.assertEqual(refused.remedy, "tile its axis first")
        self.assertIn("did you mean `m0`?", refused.message)
        self.expect("S302", lambda: s.tile("N", [8], into=["n0", "n1"]).shard("b", "n0", "tp"))
        self.expect("S004", lambda: s.stage("mm", "a", over="tp", how="relayed"))
        self.expect("S402", lambda: s.serialize("mm", "m0").stage("mm", "a", over="tp", how="relay",
                                                                   at="m0"))
        self.assertEqual(len(s.steps), 1)

    def test_of_questions(self):
        self.expect("U112", lambda: Schedule("gemm", mesh="tp:4"))
        self.expect("U108", lambda: Schedule("gemmm", mesh="tp=4"))
        self.expect("P101", lambda: Schedule("gemm", mesh="tp=4", rows=4))
        self.expect("S009", lambda: Schedule("gemm", mesh="tp=4", schedule=write_ring()))

    def test_of_a_whole_schedule_come_with_the_plan(self):
        s = Schedule("ag_gemm", mesh="tp=4", **GEMM).tile("M", [4], into=["m0", "m1"])
        s = s.shard("a", "m0", "tp")
        self.assertTrue(self.expect("F214", lambda: harpe.plan("ag_gemm", mesh="tp=4", schedule=s,
                                                               **GEMM)).message)

    def test_a_step_stays_one_step(self):
        s = Schedule("gemm", mesh="tp=4", **GEMM)
        kernel = 'gemm_sm90") budget(mm, sm=8) patch(mm, kernel="any'
        for wrong in (lambda: s.tile("M, [2]) -> m0\n  tile(N", [4], into=["n0"]),
                      lambda: Schedule("gemm", mesh="tp=4", name="a b"),
                      lambda: s.patch("mm", kernel=kernel)):
            with self.assertRaisesRegex(ValueError, "is not a"):
                wrong()


if __name__ == "__main__":
    unittest.main()
