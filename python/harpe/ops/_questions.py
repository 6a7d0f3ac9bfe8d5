"""The questions of linear operators: programs on tensors in torch's layout, and schedules.

A question is a value, the same on all ranks, with sizes over all ranks. The first rank searches for
a schedule; the other ranks prove a plan with the same schedule.
"""

import dataclasses
from collections.abc import Mapping

import torch

import harpe
from harpe.ops._groups import print_schedule
from harpe.ops._layout import check_homes

DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16"}

_AXIS = "ranks"  # of the mesh


def accumulate(dtype: str) -> str:
    """The type of sums before rounding."""
    return "f64" if dtype == "f64" else "f32"


def sums_of(dtype: torch.dtype) -> torch.dtype:
    """The same as a torch type."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def find_scale(q: torch.Tensor, scale: float | None) -> float:
    """The scale of attention's scores."""
    return q.shape[-1]**-0.5 if scale is None else scale


def narrow(numbers: torch.Tensor | None) -> torch.Tensor | None:
    """Converts to i32, which programs read; keeps floating tensors, which operators refuse."""
    if numbers is None or numbers.dtype is torch.int32 or numbers.is_floating_point():
        return numbers
    return numbers.to(torch.int32)


def align_blocks(size: int, blocks: int) -> int:
    """The largest useful unit, a power of two, that keeps blocks equal."""
    length = size // blocks
    return min(128, length & -length)


def make_schedule(name: str, op: str, steps: list[str]) -> str:
    lines = "".join(f"  {step}\n" for step in steps)
    return f"schedule {name} for {op} on {_AXIS} {{\n{lines}}}\n"


def make_mesh(ranks: int) -> str:
    return f"{_AXIS}={ranks}"


def _push(moved: str) -> list[str]:
    """Ranks send their rows by copy engines."""
    return [f"stage({moved}, how=direct, by=src)", f"bind({moved}, via=ce)",
            f"signal({moved}, kind=flag)"]


def _fuse(nest: str, digit: str) -> list[str]:
    """One kernel takes the chunks of `digit` as they arrive, a rank's own ones first."""
    return [f"chunk({nest}, leaf, {digit}, order=[m0, {_AXIS}])",
            f"fuse({nest}_fused, [{nest}], persistent=true)"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Product:
    """c[batch, m, n] = a[batch, m, k] b, plus an optional bias [n].

    `rule` determines the homes and names the shipped operator: "ag_gemm" a by m; b, bias and c by
    n; "gemm_rs" a and b by k, c by m; "gemm_ar" a and b by k, c everywhere.
    `transposed`: b is [n, k], as in nn.Linear, else [k, n].
    `eps`, for "gemm_ar" without a bias: c, rounded, is added to a residual [batch, m, n]; the rows
    of the sum, residual_out, are normalised and multiplied by weight [n]: y.
    """
    name: str  # of the operator of torch
    rule: str
    batch: int
    m: int
    n: int
    k: int
    dtype: str
    transposed: bool = True
    bias: bool = False
    eps: float | None = None

    def make_plan(self, ranks: int) -> harpe.Plan:
        # The search plans a single GEMM of two matrices. Batches, a bias and a norm do not affect
        # the choice: they take every rank equally long after any schedule.
        plain = dataclasses.replace(self, name=self.rule, batch=1, bias=False, eps=None)
        found = harpe.plan(plain._write(ranks), mesh=make_mesh(ranks), layout="contiguous")
        return self.prove_plan(ranks, self._extend(print_schedule(found)))

    def prove_plan(self, ranks: int, schedule: str) -> harpe.Plan:
        plan = harpe.plan(self._write(ranks), mesh=make_mesh(ranks), schedule=schedule)
        check_homes(plan, self._divide())
        return plan

    def _write(self, ranks: int) -> harpe.Program:
        p = harpe.ProgramBuilder(self.name)
        rows, n, k = "gemm_ar" != self.rule, self.rule == "ag_gemm", self.rule != "ag_gemm"
        M = p.axis("M", self.m, align=align_blocks(self.m, ranks if rows else 1))
        N = p.axis("N", self.n, align=align_blocks(self.n, ranks if n else 1))
        K = p.axis("K", self.k, align=align_blocks(self.k, ranks if k else 1))
        leading = [p.axis("B", self.batch), M] if self.batch != 1 else [M]
        a = p.input("a", self.dtype, [*leading, K])
        b = p.input("b", self.dtype, [N, K] if self.transposed else [K, N])
        made = p.output if not self.bias and self.eps is None else p.temporary
        c = made("c", accumulate(self.dtype) if self.bias else self.dtype, [*leading, N])
        p.nest("mm", over=[*leading, N, K]).sum(c, "matmul", a, b)
        if self.bias:
            bias, y = p.input("bias", self.dtype, [N]), p.output("y", self.dtype, [*leading, N])
            p.nest("add", over=[*leading, N]).store(y, "add", c, bias)
        if self.eps is not None:
            residual = p.input("residual", self.dtype, [*leading, N])
            weight = p.input("weight", self.dtype, [N])
            out, y = (p.output(each, self.dtype, [*leading, N]) for each in ("residual_out", "y"))
            p.nest("norm", over=leading, whole=[N]).store([out, y], "add_rms_norm", c, residual,
                                                          weight, eps=self.eps)
        return p.build()

    def _extend(self, schedule: str) -> str:
        """Extends the schedule to this program; the bias is added where the GEMM is."""
        lines = schedule.replace(f" for {self.rule} on ", f" for {self.name} on ", 1).splitlines()
        head = "  shard(c, "
        held = [line.removeprefix(head) for line in lines if line.startswith(head)]
        for where in held if self.bias else ():
            lines[-1:] = [f"  shard(y, {where}", f"  parallelize(add, {where}", "}"]
            if self.rule == "ag_gemm":
                lines[-1:] = [f"  shard(bias, {where}", "}"]
        return "\n".join(lines) + "\n"

    def _divide(self) -> Mapping[str, int]:
        rows = 0 if self.batch == 1 else 1
        n, k = (0, 1) if self.transposed else (1, 0)
        if self.rule == "ag_gemm":
            return {"a": rows, "b": n, "c": rows + 1, "bias": 0, "y": rows + 1}
        return {"a": rows + 1, "b": k} | ({"c": rows, "y": rows} if self.rule == "gemm_rs" else {})

    def __str__(self) -> str:
        b = f"[{self.n}, {self.k}]" if self.transposed else f"[{self.k}, {self.n}]"
        bias = f", bias [{self.n}]" if self.bias else ""
        norm = "" if self.eps is None else f", eps {self.eps:.6g}"
        return f"{self.name} of [{self.batch}, {self.m}, {self.k}], {b}{bias}{norm} {self.dtype}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class WeightGradient:
    """w[n, k], the sum over batch and m of g[batch, m, n] x[batch, m, k]; and d[n], that of g.

    `gathered`, "g" or "x", is divided by m, and each rank sends its rows to all others. The other
    one is divided by its last axis, and w by the same axis. `bias`, only if g is sent: d is
    requested, on every rank. `product`: so is of_x[batch, m, k] = g u, divided as x, for the
    layer's weight u, divided as w. It is computed first, so that rows for w arrive meanwhile.
    """
    name: str
    gathered: str
    batch: int
    m: int
    n: int
    k: int
    dtype: str
    bias: bool = False
    product: bool = False

    def make_plan(self, ranks: int) -> harpe.Plan:
        digit, axis, kept = ("n0", "N", "g") if self.gathered == "x" else ("k0", "K", "x")
        steps = [f"tile(M, [{ranks}, 1, {self._count_chunks(ranks)}]) -> m0, all, chunk, m1",
                 f"tile({axis}, [{ranks}]) -> {digit}, rest",
                 f"shard({self.gathered}, m0, {_AXIS})", f"shard({kept}, {digit}, {_AXIS})"]
        if self.product:
            steps += self._multiply(digit, ranks)
        steps += [f"shard(w, {digit}, {_AXIS})", f"parallelize(mm, {digit}, {_AXIS})"]
        if ranks > 1:
            moved = f"mm, {self.gathered}, over=[{_AXIS}]"
            steps += [*_push(moved), f"chunk({moved}, by=chunk)", *_fuse("mm", "chunk")]
        if self.bias:
            steps += [f"shard(ones, m0, {_AXIS})", f"parallelize(rows, m0, {_AXIS})",
                      f"drain(rows, d, over=[{_AXIS}], how=bulk)"]
        return self.prove_plan(ranks, make_schedule("push", self.name, steps))

    def _multiply(self, digit: str, ranks: int) -> list[str]:
        home = "m0" if self.gathered == "x" else digit
        steps = [f"shard(u, {digit}, {_AXIS})", f"shard(of_x, {home}, {_AXIS})",
                 f"parallelize(product, {digit}, {_AXIS})"]
        if self.gathered == "g":
            moved = _push(f"product, g, over=[{_AXIS}]") if ranks > 1 else []
        else:
            sums = f"product, of_x, over=[{_AXIS}]"
            moved = [f"drain({sums}, how=direct, by=src)"]
            if ranks > 1:
                moved += [f"bind({sums}, via=sm)", f"signal({sums}, kind=counter)"]
        return [*steps, *moved, *(_fuse("product", "all") if ranks > 1 else [])]

    def _count_chunks(self, ranks: int) -> int:
        """The number of chunks of a rank's rows that are sent and summed separately. A kernel takes
        them one after the other: 64 rows, or a multiple, of one batch."""
        stage = 64 * ranks if self.batch == 1 else 0
        return next((chunks for chunks in (4, 2) if stage and self.m % (chunks * stage) == 0), 1)

    def prove_plan(self, ranks: int, schedule: str) -> harpe.Plan:
        plan = harpe.plan(self._write(ranks), mesh=make_mesh(ranks), schedule=schedule)
        rows = 0 if self.batch == 1 else 1
        check_homes(plan, {"ones": rows} | (
            {"x": rows, "g": rows + 1, "w": 0, "u": 0, "of_x": rows} if self.gathered == "x" else
            {"g": rows, "x": rows + 1, "w": 1, "u": 1, "of_x": rows + 1}))
        return plan

    def _write(self, ranks: int) -> harpe.Program:
        p = harpe.ProgramBuilder(self.name)
        of_x = self.gathered == "x"
        M = p.axis("M", self.m, align=align_blocks(self.m, ranks))
        N = p.axis("N", self.n, align=align_blocks(self.n, ranks if of_x else 1))
        K = p.axis("K", self.k, align=align_blocks(self.k, 1 if of_x else ranks))
        leading = [p.axis("B", self.batch), M] if self.batch != 1 else [M]
        g, x = p.input("g", self.dtype, [*leading, N]), p.input("x", self.dtype, [*leading, K])
        w = p.output("w", self.dtype, [N, K])
        if self.bias:
            One = p.axis("One", 1)
            ones = p.input("ones", self.dtype, [*leading, One])
            d = p.output("d", self.dtype, [N, One])
        if self.product:
            u, of_x = p.input("u", self.dtype, [N, K]), p.output("of_x", self.dtype, [*leading, K])
            p.nest("product", over=[*leading, K, N]).sum(of_x, "matmul", g, u)
        p.nest("mm", over=[*leading, N, K]).sum(w, "matmul", g, x)
        if self.bias:
            p.nest("rows", over=[*leading, N, One]).sum(d, "matmul", g, ones)
        return p.build()

    def __str__(self) -> str:
        return (f"{self.name} of [{self.batch}, {self.m}, {self.n}], "
                f"[{self.batch}, {self.m}, {self.k}] {self.dtype}{', with bias' * self.bias}"
                f"{', with product' * self.product}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Products:
    """ci[batch, m, ni] = a[batch, m, k] bi: a, divided by m, is gathered for all of them.

    bi and ci are divided by ni. `transposed`: bi is [ni, k], as in nn.Linear, else [k, ni].
    `whole`: the gathered a is a result too, on every rank.
    """
    name: str
    batch: int
    m: int
    ns: tuple[int, ...]
    k: int
    dtype: str
    transposed: bool = True
    whole: bool = False

    _ONCE = "gather_once"  # the schedule that gathers a before the first product

    def make_plan(self, ranks: int) -> harpe.Plan:
        """The faster plan by prediction: a is gathered once, or is sent for each product, while
        products of rows that are there already run."""
        once = self.prove_plan(ranks, self._gather_once(ranks))
        if self.whole or ranks == 1:
            return once
        pushed = self.prove_plan(ranks, self._send(ranks))
        return min(once, pushed, key=lambda plan: plan.simulate().time_us)

    def prove_plan(self, ranks: int, schedule: str) -> harpe.Plan:
        program = self._write(ranks, schedule.startswith(f"schedule {self._ONCE} "))
        plan = harpe.plan(program, mesh=make_mesh(ranks), schedule=schedule)
        rows, n = 0 if self.batch == 1 else 1, 0 if self.transposed else 1
        check_homes(plan, {"a": rows} | {f"b{i}": n for i, _ in enumerate(self.ns)}
                    | {f"c{i}": rows + 1 for i, _ in enumerate(self.ns)})
        return plan

    def _gather_once(self, ranks: int) -> str:
        steps = [f"tile(M, [{ranks}]) -> m0, m1", f"shard(a, m0, {_AXIS})"]
        if ranks > 1:
            steps += [f"replicate(gather, [{_AXIS}])",
                      f"stage(gather, a, over=[{_AXIS}], how=direct, by=src)"]
        for i, _ in enumerate(self.ns):
            steps += self._divide(i, ranks)
        return make_schedule(self._ONCE, self.name, steps)

    def _send(self, ranks: int) -> str:
        steps = [f"tile(M, [{ranks}, 1]) -> m0, m1, m2", f"shard(a, m0, {_AXIS})"]
        for i, _ in enumerate(self.ns):
            steps += [*self._divide(i, ranks), *_push(f"mm{i}, a, over=[{_AXIS}]"),
                      *_fuse(f"mm{i}", "m1")]
        return make_schedule("push", self.name, steps)

    def _divide(self, i: int, ranks: int) -> list[str]:
        return [f"tile(N{i}, [{ranks}]) -> n{i}, r{i}", f"shard(b{i}, n{i}, {_AXIS})",
                f"shard(c{i}, n{i}, {_AXIS})", f"parallelize(mm{i}, n{i}, {_AXIS})"]

    def _write(self, ranks: int, once: bool) -> harpe.Program:
        p = harpe.ProgramBuilder(self.name)
        M, K = p.axis("M", self.m, align=align_blocks(self.m, ranks)), p.axis("K", self.k)
        leading = [p.axis("B", self.batch), M] if self.batch != 1 else [M]
        N = [p.axis(f"N{i}", n, align=align_blocks(n, ranks)) for i, n in enumerate(self.ns)]
        a = p.input("a", self.dtype, [*leading, K])
        whole = a
        if once:
            whole = (p.output if self.whole else p.temporary)("whole", self.dtype, [*leading, K])
        b = [p.input(f"b{i}", self.dtype, [n, K] if self.transposed else [K, n])
             for i, n in enumerate(N)]
        c = [p.output(f"c{i}", self.dtype, [*leading, n]) for i, n in enumerate(N)]
        if once:
            p.nest("gather", over=[*leading, K]).store(whole, "copy", a)
        for i, n in enumerate(N):
            p.nest(f"mm{i}", over=[*leading, n, K]).sum(c[i], "matmul", whole, b[i])
        return p.build()

    def __str__(self) -> str:
        b = (f"[{n}, {self.k}]" if self.transposed else f"[{self.k}, {n}]" for n in self.ns)
        return (f"{self.name} of [{self.batch}, {self.m}, {self.k}], " + ", ".join(b)
                + f"{', gathered' * self.whole} {self.dtype}")
