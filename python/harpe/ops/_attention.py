"""Attention over a sequence divided over ranks: programs, kernels, fake kernels, gradients."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as functional

import harpe
from harpe._errors import refuse
from harpe.ops import _fallback
from harpe.ops._calls import Asked, Input, Result, execute
from harpe.ops._groups import count_ranks, find
from harpe.ops._layout import check_homes, find_blocks
from harpe.ops._library import define, define_differentiable
from harpe.ops._linears import check_types
from harpe.ops._questions import (DTYPES, accumulate, align_blocks, find_scale, make_mesh, narrow,
                                  sums_of)

Tensor = torch.Tensor

_SEQUENCE = {"q": 1, "k": 1, "v": 1, "o": 1, "lse": 2, "do": 1, "dq": 1, "dk": 1, "dv": 1}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attention:
    """o and lse from q, k and v, or, with `backward`, their gradients; sizes are over all ranks."""
    backward: bool
    batch: int
    seq: int
    kv_seq: int
    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    causal: bool
    window: int  # 0: none
    documents: bool
    scale: float
    layout: str
    dtype: str

    def make_plan(self, ranks: int) -> harpe.Plan:
        return self._plan(ranks, "auto")

    def prove_plan(self, ranks: int, schedule: str) -> harpe.Plan:
        return self._plan(ranks, schedule)

    def _plan(self, ranks: int, schedule: str) -> harpe.Plan:
        # Without a mask, the order of positions does not affect the result.
        layout = self.layout if self.causal and ranks > 1 else "contiguous"
        plan = harpe.plan(self._write(ranks), mesh=make_mesh(ranks), schedule=schedule,
                          layout=layout)
        check_homes(plan, _SEQUENCE, layout)
        return plan

    def _write(self, ranks: int) -> harpe.Program:
        blocks = 2 * ranks if self.layout == "zigzag" else ranks
        p = harpe.ProgramBuilder("attention_bwd" if self.backward else "attention")
        B, Hkv = p.axis("B", self.batch), p.axis("Hkv", self.kv_heads)
        G = p.axis("G", self.heads // self.kv_heads)
        Sq = p.axis("Sq", self.seq, align=align_blocks(self.seq, blocks))
        Skv = p.axis("Skv", self.kv_seq, align=align_blocks(self.kv_seq, blocks))
        D, Dv = p.axis("D", self.head_dim), p.axis("Dv", self.v_head_dim)
        dtype, sums = self.dtype, accumulate(self.dtype)
        queries, keys = [B, Sq, (Hkv, G), D], [B, Skv, Hkv, D]
        results, values, rows = [B, Sq, (Hkv, G), Dv], [B, Skv, Hkv, Dv], [B, (Hkv, G), Sq]
        q, k, v = (p.input(name, dtype, dims) for name, dims in
                   (("q", queries), ("k", keys), ("v", values)))
        made = p.input if self.backward else p.output
        o, lse = made("o", dtype, results), made("lse", sums, rows)
        axes = dict(over=[B, Hkv, G, Sq, Skv], whole=[D, Dv])
        masks = [harpe.Mask("causal", Sq, Skv)] if self.causal else []
        masks += [harpe.Mask("window", Sq, Skv, self.window)] if self.window else []
        if self.documents:
            S = p.axis("S", self.seq)
            axes["whole"].append(S)
            masks += [harpe.Mask("doc", Sq, Skv, p.input("documents", "i32", [B, S]))]
        options: dict[str, Any] = dict(where=masks, scale=self.scale)
        if not self.backward:
            p.nest("fwd", **axes).lse([o, lse], "attn_fwd", q, k, v, **options)
            return p.build()
        do, delta = p.input("do", dtype, results), p.temporary("delta", sums, rows)
        dq, dk, dv = (p.output(name, dtype, dims) for name, dims in
                      (("dq", queries), ("dk", keys), ("dv", values)))
        p.given("fwd", **axes).lse([o, lse], "attn_fwd", q, k, v, **options)
        p.nest("pre", over=[B, Hkv, G, Sq], whole=[Dv]).store(delta, "rowdot", o, do)
        p.nest("bwd", **axes).sum([dq, dk, dv], "attn_bwd", q, k, v, do, lse, delta, **options)
        return p.build()

    def __str__(self) -> str:
        masks = (f"{', causal' * self.causal}{f', window {self.window}' if self.window else ''}"
                 f"{', documents' * self.documents}")
        return (f"attention{'_backward' * self.backward} of "
                f"[{self.batch}, {self.seq}, {self.heads}, {self.head_dim}], "
                f"[{self.batch}, {self.kv_seq}, {self.kv_heads}, {self.v_head_dim}]{masks}, "
                f"scale {self.scale:.6g}, {self.layout}, {self.dtype}")


class _Options(NamedTuple):
    """The options in the operators' schemas."""
    causal: bool
    window: int  # 0: none
    scale: float | None  # None: 1/sqrt(d)
    layout: str


def _ask(ranks: int, backward: bool, asked: _Options, q: Tensor, k: Tensor, v: Tensor,
         documents: Tensor | None) -> Attention:
    return Attention(backward=backward, batch=q.shape[0], seq=q.shape[1] * ranks,
                     kv_seq=k.shape[1] * ranks, heads=q.shape[2], kv_heads=k.shape[2],
                     head_dim=q.shape[3], v_head_dim=v.shape[3], causal=asked.causal,
                     window=asked.window, documents=documents is not None,
                     scale=find_scale(q, asked.scale),
                     layout=asked.layout, dtype=DTYPES[q.dtype])


def _ask_forward(ranks: int, q: Tensor, k: Tensor, v: Tensor, documents: Tensor | None,
                 *options: Any) -> Asked:
    asked = _Options(*options)
    _check(q, k, v, documents, asked, ranks)
    batch, seq, heads, _ = q.shape
    return Asked(_ask(ranks, False, asked, q, k, v, documents),
                 [*(Input(name, 4) for name in "qkv"),
                  *[Input("documents", 2)] * (documents is not None)],
                 [Result("o", (batch, seq, heads, v.shape[3]), 4, q.dtype),
                  Result("lse", (batch, heads, seq), 3, sums_of(q.dtype))])


def _ask_backward(ranks: int, do: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor,
                  documents: Tensor | None, *options: Any) -> Asked:
    inputs = [Input(name, 4) for name in ("do", "q", "k", "v", "o")] + [Input("lse", 3)]
    return Asked(_ask(ranks, True, _Options(*options), q, k, v, documents),
                 inputs + [Input("documents", 2)] * (documents is not None),
                 [Result(f"d{name}", each.shape, 4, each.dtype) for name, each in
                  (("q", q), ("k", k), ("v", v))])


def _compute(q: Tensor, k: Tensor, v: Tensor, documents: Tensor | None,
             *rest: Any) -> tuple[Tensor, ...]:
    *options, group = rest
    documents = narrow(documents)
    made = execute(_ask_forward, (q, k, v, documents), (*options,), group)
    if made is None:
        made = _compute_by_torch(q, *_gather(k, v, group=group), documents, _Options(*options),
                                 group)
    return made


def _make_results(q: Tensor, k: Tensor, v: Tensor, *options: Any) -> tuple[Tensor, Tensor]:
    batch, seq, heads, _ = q.shape
    return (q.new_empty(batch, seq, heads, v.shape[3]),
            q.new_empty(batch, heads, seq, dtype=sums_of(q.dtype)))


def _compute_gradients(do: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor,
                       documents: Tensor | None, *rest: Any) -> tuple[Tensor, ...]:
    *options, group = rest
    documents = narrow(documents)
    made = execute(_ask_backward, (do, q, k, v, o, lse, documents), (*options,), group)
    if made is None:
        with torch.enable_grad():
            inputs = [x.detach().requires_grad_() for x in (q, *_gather(k, v, group=group))]
            o, _ = _compute_by_torch(*inputs, documents, _Options(*options), group)
            dq, dk, dv = torch.autograd.grad(o, inputs, do)
        made = dq, *(_fallback.reduce_scatter(x, group, 1) for x in (dk, dv))
    return made


def _make_gradients(do: Tensor, q: Tensor, k: Tensor, v: Tensor,
                    *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _check(q: Tensor, k: Tensor, v: Tensor, documents: Tensor | None, asked: _Options,
           ranks: int) -> None:
    check_types({"q": q, "k": k, "v": v})
    for name, tensor in ("q", q), ("k", k), ("v", v):
        if tensor.dim() != 4:
            raise refuse(name, "of shape [batch, positions, heads, size]",
                         f"of shape {list(tensor.shape)}")
    find_blocks(q.shape[1] * ranks, ranks, 0, asked.layout)
    find_blocks(k.shape[1] * ranks, ranks, 0, asked.layout)
    if (k.shape[0], k.shape[3]) != (q.shape[0], q.shape[3]) or q.shape[2] % k.shape[2]:
        raise refuse("k", f"of shape [{q.shape[0]}, positions, a divisor of {q.shape[2]}, "
                     f"{q.shape[3]}]", f"of shape {list(k.shape)}")
    if v.shape[:3] != k.shape[:3]:
        raise refuse("v", f"of shape {[*k.shape[:3]]} and any size", f"of shape {list(v.shape)}")
    if asked.window < 0 or (asked.window and not asked.causal):
        raise refuse("window", "a number of keys, with `causal`", f"{asked.window}")
    _check_documents(q, k, documents, ranks)


def _check_documents(q: Tensor, k: Tensor, documents: Tensor | None, ranks: int) -> None:
    if documents is None:
        return
    if k.shape[1] != q.shape[1]:
        raise refuse("k", f"of {q.shape[1]} positions, as `q`, with `documents`",
                     f"of {k.shape[1]}")
    wanted = [q.shape[0], q.shape[1] * ranks]
    if (list(documents.shape) != wanted or documents.is_floating_point()
            or documents.device != q.device):
        raise refuse("documents", f"integers of shape {wanted} on {q.device}",
                     f"{documents.dtype} of shape {list(documents.shape)} on {documents.device}")


def _gather(*tensors: Tensor, group: str) -> list[Tensor]:
    return [_fallback.all_gather(tensor, group, 1) for tensor in tensors]


def _compute_by_torch(q: Tensor, k: Tensor, v: Tensor, documents: Tensor | None, asked: _Options,
                      group: str) -> tuple[Tensor, Tensor]:
    """Computes this rank's queries with all keys, in the order in which ranks hold them."""
    ranks = count_ranks(group)
    own, queries, keys = find(group).process_group.rank(), q.shape[1] * ranks, k.shape[1]

    def list_positions(size: int, rank: int) -> Tensor:
        return torch.cat([torch.arange(block.start, block.stop) for block in
                          find_blocks(size, ranks, rank, asked.layout)])

    heads = q.shape[2] // k.shape[2]
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k.repeat_interleave(heads, 2))
    scores = scores * find_scale(q, asked.scale)
    at_q = list_positions(queries, own)[:, None] - queries
    at_k = torch.cat([list_positions(keys, rank) for rank in range(ranks)]) - keys
    seen = (at_k <= at_q) if asked.causal else torch.ones(len(at_q), len(at_k), dtype=torch.bool)
    if asked.window:
        seen = seen & (at_k > at_q - asked.window)
    seen = seen.to(scores.device)
    if documents is not None:
        of_q, of_k = documents[:, at_q[:, 0]], documents[:, at_k]
        seen = seen & (of_q[:, :, None] == of_k[:, None])[:, None]
    scores = scores.to(sums_of(q.dtype)).masked_fill(~seen, -math.inf)
    weights = functional.softmax(scores, -1).nan_to_num(0.0)  # for queries that see no key
    o = torch.einsum("bhqk,bkhd->bqhd", weights.to(v.dtype), v.repeat_interleave(heads, 2))
    return o, scores.logsumexp(-1)


def _save(ctx: Any, inputs: Sequence[Any], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, documents, *ctx.options = inputs
    o, lse = output
    ctx.save_for_backward(q, k, v, o, lse, documents)
    ctx.mark_non_differentiable(lse)


def _differentiate(ctx: Any, do: Tensor, dlse: Tensor | None) -> tuple[Any, ...]:
    gradients = _attention_backward(do.contiguous(), *ctx.saved_tensors, *ctx.options)
    return *gradients, None, *[None] * len(ctx.options)


_OPTIONS = "Tensor? documents, bool causal, int window, float? scale, str layout, str group"
_attention_backward = define(
    "_attention_backward", "(Tensor gradient, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, "
    f"{_OPTIONS}) -> (Tensor, Tensor, Tensor)", _compute_gradients, _make_gradients)
attention = define_differentiable(
    "attention", f"(Tensor q, Tensor k, Tensor v, {_OPTIONS}) -> (Tensor, Tensor)", _compute,
    _make_results, save=_save, differentiate=_differentiate)
