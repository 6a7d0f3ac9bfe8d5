"""Programs as values, and their builder, which can express any `.op` file."""
import pathlib
import unittest

import harpe
from harpe import Mask, Program, ProgramBuilder

OPERATORS = pathlib.Path(__file__).resolve().parents[2] / "src/ops"


# The shipped operators, written once more.

def write_product(name):
    p = ProgramBuilder(name)
    m, n, k = (p.parameter(size, 1024) for size in "mnk")
    dtype = p.parameter("dtype", "bf16")
    M, N, K = p.axis("M", m, align=128), p.axis("N", n, align=128), p.axis("K", k, align=64)
    a, b = p.input("a", dtype, [M, K]), p.input("b", dtype, [K, N])
    c = p.output("c", dtype, [M, N])
    p.leaf("matmul", flops=2 * M * N * K)
    p.nest("mm", over=[M, N, K]).sum(c, "matmul", a, b)
    return p.build()


def write_normalised_product():
    p = ProgramBuilder("gemm_ar_norm")
    m, n, k = (p.parameter(each, 1024) for each in "mnk")
    eps, dtype = p.parameter("eps", 1e-6), p.parameter("dtype", "bf16")
    M, N, K = (p.axis(name, size, align=align)
               for name, size, align in (("M", m, 128), ("N", n, 128), ("K", k, 64)))
    a, b = p.input("a", dtype, [M, K]), p.input("b", dtype, [K, N])
    residual, weight = p.input("residual", dtype, [M, N]), p.input("weight", dtype, [N])
    c = p.temporary("c", dtype, [M, N])
    out, y = p.output("residual_out", dtype, [M, N]), p.output("y", dtype, [M, N])
    p.leaf("matmul", flops=2 * M * N * K)
    p.leaf("add_rms_norm", flops=5 * M * N)
    p.nest("mm", over=[M, N, K]).sum(c, "matmul", a, b)
    p.nest("norm", over=[M], whole=[N]).store([out, y], "add_rms_norm", c, residual, weight,
                                              eps=eps)
    return p.build()


class Attention:
    """What forward and backward pass have in common."""

    def __init__(self, name):
        self.p = p = ProgramBuilder(name)
        batch, seq = p.parameter("batch", 1), p.parameter("seq", 2048)
        kv_seq, heads = p.parameter("kv_seq", seq), p.parameter("heads", 8)
        kv_heads, head_dim = p.parameter("kv_heads", heads), p.parameter("head_dim", 64)
        v_head_dim, causal = p.parameter("v_head_dim", head_dim), p.parameter("causal", False)
        window, prefix = p.parameter("window", 0), p.parameter("prefix", 0)
        packed, self.dtype = p.parameter("packed", False), p.parameter("dtype", "bf16")
        self.B = B = p.axis("B", batch)
        self.Sq, self.Skv = p.axis("Sq", seq, align=128), p.axis("Skv", kv_seq, align=128)
        self.Hkv, self.G = p.axis("Hkv", kv_heads), p.axis("G", heads / kv_heads)
        self.D, self.Dv, S = p.axis("D", head_dim), p.axis("Dv", v_head_dim), p.axis("S", seq)
        self.heads = (self.Hkv, self.G)
        self.queries = [B, self.Sq, self.heads, self.D]
        self.values = [B, self.Sq, self.heads, self.Dv]
        self.rows = [B, self.heads, self.Sq]
        self.q = p.input("q", self.dtype, self.queries)
        self.k = p.input("k", self.dtype, [B, self.Skv, self.Hkv, self.D])
        self.v = p.input("v", self.dtype, [B, self.Skv, self.Hkv, self.Dv])
        seg = p.input("seg", "i32", [B, S], when=packed)
        self.axes = dict(over=[B, self.Hkv, self.G, self.Sq, self.Skv], whole=[self.D, self.Dv, S])
        at = self.Sq, self.Skv
        self.where = [Mask("causal", *at, when=causal), Mask("window", *at, window, when=window),
                      Mask("prefix", *at, prefix, when=prefix), Mask("doc", *at, seg, when=packed)]

    def count(self, factor):
        return factor * self.B * self.Hkv * self.G * self.Sq

    def add_cost(self):
        self.p.leaf("attn_fwd", flops=self.count(2) * self.Skv * self.D
                    + self.count(2) * self.Skv * self.Dv)

    def compute(self, nest, o, lse):
        nest.lse([o, lse], "attn_fwd", self.q, self.k, self.v, where=self.where)


def write_attention():
    a = Attention("attention")
    o, lse = a.p.output("o", a.dtype, a.values), a.p.output("lse", "f32", a.rows)
    a.add_cost()
    a.compute(a.p.nest("fwd", **a.axes), o, lse)
    return a.p.build()


def write_attention_bwd():
    a = Attention("attention_bwd")
    p = a.p
    o, lse = p.input("o", a.dtype, a.values), p.input("lse", "f32", a.rows)
    do, delta = p.input("do", a.dtype, a.values), p.temporary("delta", "f32", a.rows)
    dq = p.output("dq", a.dtype, a.queries)
    dk = p.output("dk", a.dtype, [a.B, a.Skv, a.Hkv, a.D])
    dv = p.output("dv", a.dtype, [a.B, a.Skv, a.Hkv, a.Dv])
    a.add_cost()
    p.leaf("rowdot", flops=a.count(2) * a.Dv)
    p.leaf("attn_bwd", flops=a.count(6) * a.Skv * a.D + a.count(4) * a.Skv * a.Dv)
    a.compute(p.given("fwd", **a.axes), o, lse)
    p.nest("pre", over=a.axes["over"][:-1], whole=[a.Dv]).store(delta, "rowdot", o, do)
    p.nest("bwd", **a.axes).sum([dq, dk, dv], "attn_bwd", a.q, a.k, a.v, do, lse, delta,
                                where=a.where)
    return p.build()


def write_decode():
    p = ProgramBuilder("decode")
    batch, kv, heads = p.parameter("batch", 8), p.parameter("kv", 8192), p.parameter("heads", 8)
    kv_heads, head_dim = p.parameter("kv_heads", heads), p.parameter("head_dim", 64)
    v_head_dim, page = p.parameter("v_head_dim", head_dim), p.parameter("page", 0)
    ragged, dtype = p.parameter("ragged", False), p.parameter("dtype", "bf16")
    B, Skv, Hkv = p.axis("B", batch), p.axis("Skv", kv, align=128), p.axis("Hkv", kv_heads)
    G, D, Dv = p.axis("G", heads / kv_heads), p.axis("D", head_dim), p.axis("Dv", v_head_dim)
    Np = p.axis("Np", kv / page)
    q, k = p.input("q", dtype, [B, (Hkv, G), D]), p.input("k", dtype, [B, Skv, Hkv, D])
    v = p.input("v", dtype, [B, Skv, Hkv, Dv])
    pages = p.input("pages", "i32", [B, Np], when=page)
    lengths = p.input("lengths", "i32", [B], when=ragged)
    o, lse = p.output("o", dtype, [B, (Hkv, G), Dv]), p.output("lse", "f32", [B, (Hkv, G)])
    p.leaf("attn_fwd", flops=2 * B * Hkv * G * Skv * D + 2 * B * Hkv * G * Skv * Dv)
    p.nest("dec", over=[B, Hkv, G, Skv], whole=[D, Dv, Np]).lse(
        [o, lse], "attn_fwd", q, k, v, where=[Mask("paged", Skv, page, pages, when=page),
                                              Mask("length", Skv, lengths, when=ragged)])
    return p.build()


def write_experts(name, capped):
    p = ProgramBuilder(name)
    tokens, hidden = p.parameter("tokens", 1024), p.parameter("hidden", 256)
    experts, topk = p.parameter("experts", 16), p.parameter("topk", 2)
    inter = p.parameter("inter", 512)
    capacity = p.parameter("capacity", tokens) if capped else None
    skew, dtype = p.parameter("skew", 0.0), p.parameter("dtype", "bf16")
    T = p.axis("T", tokens, align=64)
    Ta = p.axis("Ta", tokens) if capped else None
    Kc, E = p.axis("Kc", topk), p.axis("E", experts)
    C, H, F = p.axis("C", tokens, of=E, align=64), p.axis("H", hidden), p.axis("F", inter)
    x, router = p.input("x", dtype, [T, H]), p.input("router", "f32", [T, E])
    w1, w3 = p.input("w1", dtype, [E, H, F]), p.input("w3", dtype, [E, H, F])
    w2, y = p.input("w2", dtype, [E, F, H]), p.output("y", dtype, [T, H])
    wanted = p.temporary("wanted", "i32", [T, Kc]) if capped else None
    index, weight = p.temporary("index", "i32", [T, Kc]), p.temporary("weight", "f32", [T, Kc])
    R = p.route("R", [E, C], [T, Kc], index, policy="drop" if capped else "exact",
                load=("zipf", skew))
    rows, gate = p.temporary("rows", dtype, [E, C, H]), p.temporary("gate", dtype, [E, C, F])
    up, act = p.temporary("up", dtype, [E, C, F]), p.temporary("act", dtype, [E, C, F])
    made = p.temporary("made", dtype, [E, C, H])
    for leaf, flops in [("topk", T * E), ("gather_rows", T * Kc), ("matmul", 2 * T * Kc * H * F),
                        ("silu_mul", 4 * T * Kc * F), ("combine_rows", 2 * T * Kc * H)]:
        p.leaf(leaf, flops=flops)
    p.nest("choose", over=[T], whole=[E, Kc]).store([wanted if capped else index, weight], "topk",
                                                    router)
    if capped:
        p.nest("limit", over=[T], whole=[Ta, Kc]).store(
            index, "limit_choices", wanted.at(T, Ta), capacity=capacity, experts=experts)
    p.nest("dispatch", over=[E, C], whole=[H, Kc]).store(rows, "gather_rows", x.at(T, R),
                                                         index.at(T, R))
    expand = p.nest("expand", over=[E, C, F, H])
    expand.sum(gate, "matmul", rows, w1)
    expand.sum(up, "matmul", rows, w3)
    p.nest("activate", over=[E, C, F]).store(act, "silu_mul", gate, up)
    p.nest("reduce", over=[E, C, H, F]).sum(made, "matmul", act, w2)
    p.nest("combine", over=[T, Kc], whole=[H]).sum(y, "combine_rows", made.at(E, R).at(C, R),
                                                   index, weight)
    return p.build()


SHIPPED = [*map(write_product, ("gemm", "ag_gemm", "gemm_rs", "gemm_ar")),
           write_normalised_product(), write_attention(), write_attention_bwd(), write_decode(),
           write_experts("moe", capped=False), write_experts("moe_capped", capped=True)]


class Programs(unittest.TestCase):
    def test_shipped_operators_read_back(self):
        for info in harpe.operators():
            with self.subTest(info.name):
                program = Program(info.name)
                self.assertEqual(str(program), info.text)
                self.assertEqual(program, Program(str(program)))
                self.assertEqual(program, Program(OPERATORS / f"{info.name}.op"))
                self.assertEqual((program.name, harpe.describe(program)), (info.name, info))

    def test_with_values_they_read_back(self):
        text = harpe.show("attention", "program", mesh="cp=2", schedule="ring", causal=True)
        self.assertEqual(str(Program(text)), text)
        self.assertNotIn("param", text)

    def test_are_values(self):
        program = Program("gemm")
        self.assertEqual(len({program, Program("gemm"), Program("decode")}), 2)
        self.assertNotEqual(program, str(program))
        self.assertEqual(repr(program), "<harpe.Program gemm: a, b -> c>")
        for name in "name", "text":
            with self.assertRaises(AttributeError):
                setattr(program, name, "")

    def test_stand_for_operators_in_calls(self):
        program = Program("gemm_rs")
        question = dict(mesh="tp=2", m=64, n=64, k=64)
        plan = harpe.plan(program, schedule="ring", **question)
        self.assertEqual(plan.show(), harpe.plan("gemm_rs", schedule="ring", **question).show())
        self.assertEqual(harpe.describe(program), harpe.describe("gemm_rs"))
        self.assertEqual(len(harpe.schedules(program, **question)),
                         len(harpe.schedules("gemm_rs", **question)))
        self.assertEqual(harpe.verify(program, schedule="ring", **question), plan.certificate)
        self.assertTrue(harpe.taxes(program, machine="h200x8", **question))
        self.assertIsNotNone(harpe.tune(program, machine="h200x8", cache=None, **question).best)


class Builder(unittest.TestCase):
    def test_writes_every_shipped_operator(self):
        self.assertEqual({program.name for program in SHIPPED},
                         {info.name for info in harpe.operators()})
        for program in SHIPPED:
            with self.subTest(program.name):
                self.assertEqual(program, Program(program.name))

    def test_writes_what_no_shipped_operator_has(self):
        p = ProgramBuilder("further")
        rows, scaled = p.parameter("rows", 8), p.parameter("scaled", 0.5)
        T, K = p.axis("T", 2 + rows * 4, dynamic=True), p.axis("K", 16, align=4)
        U = p.axis("U", 16)
        x, s = p.input("x", "f32", [T, K]), p.input("s", "f32", [T])
        best, total = p.output("best", "f32", [T]), p.output("total", "f32", [T, K])
        table = p.input("table", "f32", [3, T, (K, U)])
        out = p.output("out", "f32", [T, K])
        p.leaf("peak", flops=T * K, bytes=4 * T * K, kernel="peak_rows")
        p.leaf("look", flops=T)
        p.nest("top", over=[T, K]).max(best, "peak", x)
        scale = p.nest("scale", over=[T], whole=[K, U])
        scale.store(out, "rms_scale", x, s, eps=1e-5, factor=scaled)
        p.nest("renamed", over=[T, U], whole=[K], seq=[T]).sum(total, "look", x.at(K, U), table)
        text = str(p.build())
        self.assertIn("axis T = dyn 2 + rows*4\n", text)
        self.assertIn("buffer total : f32[T, K] out\n", text)
        self.assertIn("best max= peak(x)\n", text)
        self.assertIn('leaf peak flops T*K bytes 4*T*K kernel "peak_rows"\n', text)
        self.assertIn("out = rms_scale(x, s; eps=1e-05, factor=scaled)\n", text)
        self.assertIn("total sum= look(x[K=U], table)\n", text)
        self.assertIn(" whole (K) seq (T) {\n", text)

    def test_refuses_to_add_to_what_is_there(self):
        p = ProgramBuilder("added")
        M, N, K = p.axis("M", 8), p.axis("N", 4), p.axis("K", 4)
        a, b = p.input("a", "f32", [M, K]), p.input("b", "f32", [K, N])
        c = p.output("c", "f32", [M, N])
        p.nest("first", over=[M, N, K]).sum(c, "matmul", a, b)
        p.nest("second", over=[M, N, K]).sum(c, "matmul", a, b)
        with self.assertRaisesRegex(harpe.Refused, "nest `first` has written already") as caught:
            harpe.plan(p.build(), mesh="tp=2", schedule="pull", machine="", cache=None)
        self.assertEqual(caught.exception.code, "P026")
        self.assertIn("add(x, t)", caught.exception.remedy)

    def test_refusals_name_code_and_place(self):
        p = ProgramBuilder("wrong")
        T = p.axis("T", 8)
        states = p.input("states", "f32", [T])
        p.nest("n", over=[T]).store(states, "silu", states)
        with self.assertRaises(harpe.Refused) as caught:
            p.build()
        self.assertEqual(caught.exception.code, "P014")
        self.assertIn("line 5", caught.exception.notes[0])
        self.assertTrue(caught.exception.remedy)
        self.assertEqual(str(p).splitlines()[4].strip(), "states = silu(states)")

    def test_takes_names_alone(self):
        p = ProgramBuilder("p")
        for wrong in (lambda: ProgramBuilder("a b"), lambda: p.axis("T = 4 axis S", 4),
                      lambda: p.input("x", "f32[T] in", []), lambda: p.parameter("q", "bf16 }")):
            with self.assertRaises(ValueError):
                wrong()

    def test_sizes_have_no_parentheses(self):
        p = ProgramBuilder("p")
        m, n = p.parameter("m", 4), p.parameter("n", 4)
        self.assertEqual(repr(2 * m * n + m / n + 3), "<harpe.Size 2*m*n + m/n + 3>")
        for wrong in (lambda: (m + n) * 2, lambda: 2 * (m + n), lambda: m / (m * n)):
            with self.assertRaises(ValueError):
                wrong()


if __name__ == "__main__":
    unittest.main()
