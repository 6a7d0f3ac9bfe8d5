"""Attention of one new query per sequence over keys divided over ranks: program and kernels."""

import dataclasses
import math
from typing import Any

import torch

import harpe
from harpe._errors import refuse
from harpe.ops import _fallback
from harpe.ops._calls import Asked, Input, Result, execute
from harpe.ops._groups import find
from harpe.ops._layout import check_homes
from harpe.ops._library import define_inference
from harpe.ops._linears import check_types
from harpe.ops._questions import (DTYPES, accumulate, align_blocks, find_scale, make_mesh, narrow,
                                  sums_of)

Tensor = torch.Tensor


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decode:
    """o and lse, on every rank. All ranks have q; k and v are divided by position.

    With `page`, k and v are a pool of pages that all sequences share, divided by place in the pool;
    a sequence has at most `table` of them.
    """
    batch: int
    kv_seq: int  # positions of a sequence, or of the pool
    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    scale: float
    lengths: bool
    dtype: str
    page: int = 0
    table: int = 0

    def make_plan(self, ranks: int) -> harpe.Plan:
        return self.prove_plan(ranks, "allreduce")

    def prove_plan(self, ranks: int, schedule: str) -> harpe.Plan:
        plan = harpe.plan(self._write(ranks), mesh=make_mesh(ranks), schedule=schedule)
        positions = 0 if self.page else 1
        check_homes(plan, {"k": positions, "v": positions})
        return plan

    def _write(self, ranks: int) -> harpe.Program:
        p = harpe.ProgramBuilder("decode")
        B, Hkv = p.axis("B", self.batch), p.axis("Hkv", self.kv_heads)
        G = p.axis("G", self.heads // self.kv_heads)
        Skv = p.axis("Skv", self.kv_seq, align=align_blocks(self.kv_seq, ranks))
        D, Dv = p.axis("D", self.head_dim), p.axis("Dv", self.v_head_dim)
        q = p.input("q", self.dtype, [B, (Hkv, G), D])
        sequence = [] if self.page else [B]
        k, v = (p.input(name, self.dtype, [*sequence, Skv, Hkv, size]) for name, size in
                (("k", D), ("v", Dv)))
        masks, tables = [], []
        if self.page:
            tables = [p.axis("Np", self.table)]
            table = p.input("block_table", "i32", [B, *tables])
            masks += [harpe.Mask("paged", Skv, self.page, table)]
        if self.lengths:
            masks += [harpe.Mask("length", Skv, p.input("lengths", "i32", [B]))]
        o = p.output("o", self.dtype, [B, (Hkv, G), Dv])
        lse = p.output("lse", accumulate(self.dtype), [B, (Hkv, G)])
        p.nest("dec", over=[B, Hkv, G, Skv], whole=[D, Dv, *tables]).lse(
            [o, lse], "attn_fwd", q, k, v, scale=self.scale, where=masks)
        return p.build()

    def __str__(self) -> str:
        cache = (f"[{self.kv_seq // self.page}, {self.page}, {self.kv_heads}, {self.v_head_dim}]"
                 f", {self.table} blocks a sequence" if self.page else
                 f"[{self.batch}, {self.kv_seq}, {self.kv_heads}, {self.v_head_dim}]")
        return (f"decode of [{self.batch}, {self.heads}, {self.head_dim}], {cache}"
                f"{', lengths' * self.lengths}, scale {self.scale:.6g}, {self.dtype}")


def _compute(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None, table: Tensor | None,
             scale: float | None, group: str) -> tuple[Tensor, Tensor]:
    tensors = q, k, v, narrow(lengths), narrow(table)
    made = execute(_ask, tensors, (scale,), group)
    return _compute_by_torch(*tensors, find_scale(q, scale), group) if made is None else made


def _ask(ranks: int, q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None, table: Tensor | None,
         scale: float | None) -> Asked:
    _check(q, k, v, lengths, table)
    batch, heads, _ = q.shape
    page, positions = (0, k.shape[1]) if table is None else (k.shape[1], k.shape[:2].numel())
    question = Decode(batch=batch, kv_seq=positions * ranks, heads=heads, kv_heads=k.shape[2],
                      head_dim=q.shape[2], v_head_dim=v.shape[3], scale=find_scale(q, scale),
                      lengths=lengths is not None, dtype=DTYPES[q.dtype], page=page,
                      table=0 if table is None else table.shape[1])
    caches = [Input("k", 4), Input("v", 4)] if table is None else [
        Input("k", 3, pool="k_cache"), Input("v", 3, pool="v_cache")]
    return Asked(question,
                 [Input("q", 3), *caches, *[Input("lengths", 1)] * (lengths is not None),
                  *[Input("block_table", 2)] * (table is not None)],
                 [Result("o", (batch, heads, v.shape[3]), 3, q.dtype),
                  Result("lse", (batch, heads), 2, sums_of(q.dtype))])


def _make_results(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None, table: Tensor | None,
                  scale: float | None, group: str) -> tuple[Tensor, Tensor]:
    batch, heads, _ = q.shape
    return (q.new_empty(batch, heads, v.shape[3]),
            q.new_empty(batch, heads, dtype=sums_of(q.dtype)))


def _check(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None,
           table: Tensor | None) -> None:
    check_types({"q": q, "k": k, "v": v})
    if q.dim() != 3:
        raise refuse("q", "of shape [batch, heads, size]", f"of shape {list(q.shape)}")
    batch, heads, size = q.shape
    first = f"{batch}, positions" if table is None else "blocks, positions of a block"
    if (k.dim() != 4 or k.shape[3] != size or not k.shape.numel() or heads % k.shape[2]
            or (table is None and k.shape[0] != batch)):
        raise refuse("k_cache", f"of shape [{first}, a divisor of {heads}, {size}]",
                     f"of shape {list(k.shape)}")
    if v.dim() != 4 or v.shape[:3] != k.shape[:3]:
        raise refuse("v_cache", f"of shape {[*k.shape[:3]]} and any size",
                     f"of shape {list(v.shape)}")
    if lengths is not None and (lengths.shape != (batch,) or lengths.is_floating_point()):
        raise refuse("lengths", f"integers of shape [{batch}]",
                     f"{lengths.dtype} of shape {list(lengths.shape)}")
    if table is not None and (table.dim() != 2 or table.shape[0] != batch or not table.shape[1]
                              or table.is_floating_point()):
        raise refuse("block_table", f"integers of shape [{batch}, most blocks of a sequence]",
                     f"{table.dtype} of shape {list(table.shape)}")


def _find_pages(k: Tensor, v: Tensor, table: Tensor, first: int) -> tuple[Tensor, Tensor, Tensor]:
    """k and v [b, positions, heads, size] of each sequence, as far as they are in this rank's
    blocks, which start at `first`; and the positions."""
    held = table - first
    own = (held >= 0) & (held < k.shape[0])
    k, v = (x[held.clamp(0, len(x) - 1)].flatten(1, 2) for x in (k, v))
    return k, v, own.repeat_interleave(k.shape[1] // table.shape[1], 1)


def _compute_by_torch(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None,
                      table: Tensor | None, scale: float, group: str) -> tuple[Tensor, Tensor]:
    """Attends on every rank over its own keys, then combines the results by their weights."""
    first = find(group).process_group.rank() * k.shape[0 if table is not None else 1]
    if table is not None:
        k, v, seen = _find_pages(k, v, table, first)
        first = 0
    else:
        seen = k.new_ones(k.shape[:2], dtype=torch.bool)
    if lengths is not None:
        at = torch.arange(first, first + k.shape[1], device=q.device)
        seen = seen & (at < lengths[:, None])
    k, v = (x.masked_fill(~seen[..., None, None], 0) for x in (k, v))
    heads = q.shape[1] // k.shape[2]
    scores = torch.einsum("bhd,bkhd->bhk", q, k.repeat_interleave(heads, 2)) * scale
    scores = scores.to(sums_of(q.dtype)).masked_fill(~seen[:, None], -math.inf)
    lse = scores.logsumexp(-1)
    o = torch.einsum("bhk,bkhd->bhd", scores.softmax(-1).nan_to_num(0.0).to(v.dtype),
                     v.repeat_interleave(heads, 2))
    every_o, every_lse = (_fallback.all_gather(x[None], group, 0) for x in (o, lse))
    weights = every_lse.softmax(0).nan_to_num(0.0)
    return (every_o * weights[..., None]).sum(0).to(q.dtype), every_lse.logsumexp(0)


decode = define_inference(
    "decode", "(Tensor q, Tensor k_cache, Tensor v_cache, Tensor? lengths, Tensor? block_table, "
    "float? scale, str group) -> (Tensor, Tensor)", _compute, _make_results)
