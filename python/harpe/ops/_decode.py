"""Attention of one new query a sequence, whose keys ranks divide: program, kernel, fake kernel."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import torch

import harpe
from harpe._errors import refuse
from harpe.ops import _fallback
from harpe.ops._calls import Asked, Result, execute
from harpe.ops._groups import find
from harpe.ops._layout import check_homes
from harpe.ops._library import define_inference
from harpe.ops._linears import check_types
from harpe.ops._questions import DTYPES, accumulate, align_blocks, make_mesh, sums_of

Tensor = torch.Tensor


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decode:
    """o and lse, on every rank, of q, which all have, and of k and v, held by their positions."""
    batch: int
    kv_seq: int
    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    scale: float
    lengths: bool
    dtype: str

    def make_plan(self, ranks: int) -> harpe.Plan:
        return self.prove_plan(ranks, "allreduce")

    def prove_plan(self, ranks: int, schedule: str) -> harpe.Plan:
        plan = harpe.plan(self._write(ranks), mesh=make_mesh(ranks), schedule=schedule)
        check_homes(plan, {"k": 1, "v": 1})
        return plan

    def _write(self, ranks: int) -> harpe.Program:
        p = harpe.ProgramBuilder("decode")
        B, Hkv = p.axis("B", self.batch), p.axis("Hkv", self.kv_heads)
        G = p.axis("G", self.heads // self.kv_heads)
        Skv = p.axis("Skv", self.kv_seq, align=align_blocks(self.kv_seq, ranks))
        D, Dv = p.axis("D", self.head_dim), p.axis("Dv", self.v_head_dim)
        q = p.input("q", self.dtype, [B, (Hkv, G), D])
        k, v = (p.input(name, self.dtype, [B, Skv, Hkv, size]) for name, size in
                (("k", D), ("v", Dv)))
        lengths = [p.input("lengths", "i32", [B])] if self.lengths else []
        o = p.output("o", self.dtype, [B, (Hkv, G), Dv])
        lse = p.output("lse", accumulate(self.dtype), [B, (Hkv, G)])
        p.nest("dec", over=[B, Hkv, G, Skv], whole=[D, Dv]).lse(
            [o, lse], "attn_fwd", q, k, v, scale=self.scale,
            where=[harpe.Mask("length", Skv, length) for length in lengths])
        return p.build()

    def __str__(self) -> str:
        return (f"decode of [{self.batch}, {self.heads}, {self.head_dim}], "
                f"[{self.batch}, {self.kv_seq}, {self.kv_heads}, {self.v_head_dim}]"
                f"{', lengths' * self.lengths}, scale {self.scale:.6g}, {self.dtype}")


def _compute(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None, scale: float,
             group: str) -> Sequence[Tensor]:
    if lengths is not None and not lengths.is_floating_point():  # else it is refused
        lengths = lengths.to(torch.int32)
    made = execute(_ask, (q, k, v, lengths), (scale,), group)
    return _compute_by_torch(q, k, v, lengths, scale, group) if made is None else made


def _ask(ranks: int, q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None,
         scale: float) -> Asked:
    _check(q, k, v, lengths)
    batch, heads, _ = q.shape
    question = Decode(batch=batch, kv_seq=k.shape[1] * ranks, heads=heads, kv_heads=k.shape[2],
                      head_dim=q.shape[2], v_head_dim=v.shape[3], scale=scale,
                      lengths=lengths is not None, dtype=DTYPES[q.dtype])
    return Asked(question,
                 [("q", 3), ("k", 4), ("v", 4), *[("lengths", 1)] * (lengths is not None)],
                 [Result("o", (batch, heads, v.shape[3]), 3, q.dtype),
                  Result("lse", (batch, heads), 2, sums_of(q.dtype))])


def _make_results(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None, scale: float,
                  group: str) -> tuple[Tensor, Tensor]:
    batch, heads, _ = q.shape
    return (q.new_empty(batch, heads, v.shape[3]),
            q.new_empty(batch, heads, dtype=sums_of(q.dtype)))


def _check(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None) -> None:
    check_types({"q": q, "k": k, "v": v})
    if q.dim() != 3:
        raise refuse("q", "of shape [batch, heads, size]", f"of shape {list(q.shape)}")
    batch, heads, size = q.shape
    if k.dim() != 4 or (k.shape[0], k.shape[3]) != (batch, size) or heads % k.shape[2]:
        raise refuse("k_cache", f"of shape [{batch}, positions, a divisor of {heads}, {size}]",
                     f"of shape {list(k.shape)}")
    if v.dim() != 4 or v.shape[:3] != k.shape[:3]:
        raise refuse("v_cache", f"of shape {[*k.shape[:3]]} and any size",
                     f"of shape {list(v.shape)}")
    if lengths is not None and (lengths.shape != (batch,) or lengths.is_floating_point()):
        raise refuse("lengths", f"integers of shape [{batch}]",
                     f"{lengths.dtype} of shape {list(lengths.shape)}")


def _compute_by_torch(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None, scale: float,
                      group: str) -> tuple[Tensor, Tensor]:
    """Every rank over its own keys; then their results together, weighted."""
    heads, own = q.shape[1] // k.shape[2], k.shape[1]
    scores = torch.einsum("bhd,bkhd->bhk", q, k.repeat_interleave(heads, 2)) * scale
    scores = scores.to(sums_of(q.dtype))
    if lengths is not None:
        first = find(group).process_group.rank() * own
        at = torch.arange(first, first + own, device=q.device)
        scores = scores.masked_fill((at >= lengths[:, None])[:, None], -math.inf)
    lse = scores.logsumexp(-1)
    o = torch.einsum("bhk,bkhd->bhd", scores.softmax(-1).nan_to_num(0.0).to(v.dtype),
                     v.repeat_interleave(heads, 2))
    every_o, every_lse = (_fallback.all_gather(x[None], group, 0) for x in (o, lse))
    weights = every_lse.softmax(0).nan_to_num(0.0)
    return (every_o * weights[..., None]).sum(0).to(q.dtype), every_lse.logsumexp(0)


decode = define_inference(
    "decode", "(Tensor q, Tensor k_cache, Tensor v_cache, Tensor? lengths, float scale, str group) "
    "-> (Tensor, Tensor)", _compute, _make_results)
