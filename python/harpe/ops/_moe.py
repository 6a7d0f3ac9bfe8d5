"""Experts and tokens divided over ranks: program, kernel, fake kernel."""

import dataclasses

import torch
import torch.nn.functional as functional

import harpe
from harpe._errors import refuse
from harpe.ops import _fallback
from harpe.ops._calls import Asked, Input, Result, execute
from harpe.ops._groups import find
from harpe.ops._layout import check_homes
from harpe.ops._library import define_inference
from harpe.ops._linears import check_types
from harpe.ops._questions import DTYPES, align_blocks, make_mesh

Tensor = torch.Tensor


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experts:
    """y, divided by tokens like x; weights are divided by experts."""
    tokens: int
    hidden: int
    experts: int
    topk: int
    inter: int
    dtype: str

    def make_plan(self, ranks: int) -> harpe.Plan:
        return self._plan(ranks, "auto")

    def prove_plan(self, ranks: int, schedule: str) -> harpe.Plan:
        return self._plan(ranks, schedule)

    def _plan(self, ranks: int, schedule: str) -> harpe.Plan:
        plan = harpe.plan(self._write(ranks), mesh=make_mesh(ranks), schedule=schedule,
                          layout="contiguous")
        check_homes(plan, dict.fromkeys(("x", "index", "weight", "w1", "w3", "w2", "y"), 0))
        return plan

    def _write(self, ranks: int) -> harpe.Program:
        p, dtype = harpe.ProgramBuilder("moe"), self.dtype
        T = p.axis("T", self.tokens, align=align_blocks(self.tokens, ranks))
        Kc, E = p.axis("Kc", self.topk), p.axis("E", self.experts)
        C = p.axis("C", self.tokens, of=E, align=align_blocks(self.tokens, ranks))
        H, F = p.axis("H", self.hidden), p.axis("F", self.inter)
        x = p.input("x", dtype, [T, H])
        index, weight = p.input("index", "i32", [T, Kc]), p.input("weight", "f32", [T, Kc])
        w1, w3 = p.input("w1", dtype, [E, F, H]), p.input("w3", dtype, [E, F, H])
        w2, y = p.input("w2", dtype, [E, H, F]), p.output("y", dtype, [T, H])
        R = p.route("R", [E, C], [T, Kc], index)
        rows, gate, up, act, made = (p.temporary(name, dtype, [E, C, size]) for name, size in (
            ("rows", H), ("gate", F), ("up", F), ("act", F), ("made", H)))
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

    def __str__(self) -> str:
        return (f"moe of [{self.tokens}, {self.hidden}], {self.topk} of {self.experts} experts of "
                f"{self.inter}, {self.dtype}")


def _compute(x: Tensor, ids: Tensor, weights: Tensor, w1: Tensor, w3: Tensor, w2: Tensor,
             group: str) -> Tensor:
    if not ids.is_floating_point() and weights.is_floating_point():  # otherwise they are refused
        ids, weights = ids.to(torch.int32), weights.to(torch.float32)
    made = execute(_ask, (x, ids, weights, w1, w3, w2), (), group)
    return _compute_by_torch(x, ids, weights, w1, w3, w2, group) if made is None else made[0]


def _ask(ranks: int, x: Tensor, ids: Tensor, weights: Tensor, w1: Tensor, w3: Tensor,
         w2: Tensor) -> Asked:
    _check(x, ids, weights, w1, w3, w2)
    tokens, hidden = x.shape
    question = Experts(tokens=tokens * ranks, hidden=hidden, experts=w1.shape[0] * ranks,
                       topk=ids.shape[1], inter=w1.shape[1], dtype=DTYPES[x.dtype])
    return Asked(question, [Input("x", 2), Input("index", 2), Input("weight", 2),
                            *(Input(name, 3) for name in ("w1", "w3", "w2"))],
                 [Result("y", x.shape, 2, x.dtype)])


def _make_result(x: Tensor, ids: Tensor, weights: Tensor, w1: Tensor, w3: Tensor, w2: Tensor,
                 group: str) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _check(x: Tensor, ids: Tensor, weights: Tensor, w1: Tensor, w3: Tensor, w2: Tensor) -> None:
    check_types({"x": x, "w1": w1, "w3": w3, "w2": w2})
    if x.dim() != 2:
        raise refuse("x", "of shape [tokens, hidden]", f"of shape {list(x.shape)}")
    if ids.dim() != 2 or ids.shape[0] != x.shape[0] or ids.is_floating_point():
        raise refuse("topk_ids", f"integers of shape [{x.shape[0]}, topk]",
                     f"{ids.dtype} of shape {list(ids.shape)}")
    if weights.shape != ids.shape or not weights.is_floating_point():
        raise refuse("topk_weights", f"floating numbers of shape {list(ids.shape)}",
                     f"{weights.dtype} of shape {list(weights.shape)}")
    if w1.dim() != 3 or w1.shape[2] != x.shape[1]:
        raise refuse("w1", f"of shape [experts, size, {x.shape[1]}]", f"of shape {list(w1.shape)}")
    for name, tensor, shape in (("w3", w3, w1.shape), ("w2", w2, w1.transpose(1, 2).shape)):
        if tensor.shape != shape:
            raise refuse(name, f"of shape {list(shape)}", f"of shape {list(tensor.shape)}")


def _compute_by_torch(x: Tensor, ids: Tensor, weights: Tensor, w1: Tensor, w3: Tensor, w2: Tensor,
                      group: str) -> Tensor:
    """Computes each rank's experts on all tokens."""
    x, ids, weights = (_fallback.all_gather(each, group, 0) for each in (x, ids, weights))
    first = find(group).process_group.rank() * w1.shape[0]
    total = torch.zeros_like(x, dtype=torch.float64 if x.dtype == torch.float64 else torch.float32)
    for expert in range(w1.shape[0]):
        token, choice = (ids == first + expert).nonzero(as_tuple=True)
        rows = x[token]
        rows = (functional.silu(rows @ w1[expert].t()) * (rows @ w3[expert].t())) @ w2[expert].t()
        total.index_add_(0, token, rows.to(total.dtype) * weights[token, choice, None])
    return _fallback.reduce_scatter(total, group, 0).to(x.dtype)


moe = define_inference(
    "moe", "(Tensor x, Tensor topk_ids, Tensor topk_weights, Tensor w1, Tensor w3, Tensor w2, "
    "str group) -> Tensor", _compute, _make_result, uncast=(2,))  # weights of choices are f32
