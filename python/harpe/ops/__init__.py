"""PyTorch operators that several ranks compute together.

    import harpe.ops as hp
    y = hp.ag_linear(x, w, group=mesh["tp"])    # all_gather(x) w^T
    z = hp.linear_rs(y, w2, group=mesh["tp"])   # reduce_scatter(y w2^T)

Each call executes a proved plan of Harpe, together with all other ranks of `group`: a ProcessGroup,
one dimension of a DeviceMesh, or a group's name. Ranks call a group's operators in the same order
with the same shapes. docs/pytorch.md is the guide.
"""

from collections.abc import Sequence

import torch

from harpe.ops import _attention, _decode, _linear_norm, _linears, _moe, _twins
from harpe.ops._groups import (Miss, PlanStatus, ProcessGroups, RanksStatus, check, empty,
                               find_name, init, reset, status, warming)
from harpe.ops._library import list_tensors
from harpe.ops._locked import lock
from harpe.ops._warmup import warmup

__all__ = ["Miss", "PlanStatus", "RanksStatus", "ag_linear", "ag_linears", "attention", "check",
           "decode", "empty", "flash_attn_func", "fused_all_gather_matmul", "fused_matmul_reduce_scatter",
           "init", "linear_ar", "linear_ar_norm", "linear_rs", "lock", "moe", "reset", "row_buckets",
           "status", "warming", "warmup"]

row_buckets = _linear_norm.ROW_BUCKETS  # row counts of `linear_ar_norm`'s shared plans


def ag_linear(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None = None, *,
              group: ProcessGroups) -> torch.Tensor:
    """y = all_gather(x) w^T + bias.

    x [..., s/P, k], w [n/P, k], bias [n/P] -> y [..., s, n/P], for P ranks. Rank r holds rows r
    s/P, … of x, and rows r n/P, … of the weight in nn.Linear's layout; all ranks' blocks are equal.
    The bias is added before y is rounded.
    Gradients: of x by a GEMM and a reduce-scatter, of w after x is gathered again, of bias locally.
    Saved: x and w. Equal plans give equal bits. Only x is copied, if other ranks read it in this
    schedule, and tensors that are not dense.
    Raises Refused: I311 a group, a type or a shape; N015 another rank calls something else. Fault:
    another rank is lost or late.
    """
    return _linears.ag_linear(x, w, bias, find_name(group))


def ag_linears(x: torch.Tensor, weights: Sequence[torch.Tensor], *,
               group: ProcessGroups) -> list[torch.Tensor]:
    """yi = all_gather(x) wi^T: x is saved once for all weights.

    x [..., s/P, k], wi [ni/P, k] -> yi [..., s, ni/P]. Homes, saved tensors, bits, copies and
    errors as for `ag_linear`. x is sent for each weight while products run, or gathered once,
    whichever is faster by prediction. In the backward pass weights of 4,096 rows a rank and more
    are multiplied one after the other, and their gradients of x are added, each rounded before.
    If any weight is smaller, weights and gradients are copied into one first.
    """
    return _linears.ag_linears(x, list_tensors(weights), find_name(group))


def linear_rs(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None = None, *,
              group: ProcessGroups) -> torch.Tensor:
    """z = reduce_scatter(x w^T) + bias.

    x [..., s, k/P], w [n, k/P], bias [n] -> z [..., s/P, n], for P ranks. Rank r holds columns r
    k/P, … of x and of the weight in nn.Linear's layout, and gets rows r s/P, … of z; P divides s.
    All ranks hold the same bias, which is added before z is rounded.
    Gradients: of x by a gather and a GEMM, of w after z's gradient is gathered again; every rank
    gets the whole gradient of bias. Saved: x and w. Bits, copies and errors as for `ag_linear`.
    """
    return _linears.linear_rs(x, w, bias, find_name(group))


def linear_ar(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None = None, *,
              group: ProcessGroups) -> torch.Tensor:
    """z = all_reduce(x w^T) + bias.

    x [..., s, k/P], w [n, k/P], bias [n] -> z [..., s, n], the same on all P ranks. Rank r holds
    columns r k/P, … of x and of the weight in nn.Linear's layout; all ranks hold the same bias.
    Gradients are local GEMMs: all ranks pass the same gradient of z, which is that of a loss
    counted once. Saved: x and w. Bits, copies and errors as for `ag_linear`.
    """
    return _linears.linear_ar(x, w, bias, find_name(group))


def linear_ar_norm(x: torch.Tensor, w: torch.Tensor, residual: torch.Tensor,
                   norm_weight: torch.Tensor, *, eps: float = 1e-6,
                   group: ProcessGroups) -> tuple[torch.Tensor, torch.Tensor]:
    """residual_out = all_reduce(x w^T) + residual, and y = rms_norm(residual_out) norm_weight.

    x [..., s, k/P], w [n, k/P], residual [..., s, n], norm_weight [n] -> y, residual_out [..., s,
    n], for P ranks. Rank r holds columns r k/P, … of x and of the weight in nn.Linear's layout;
    residual, norm_weight and both results are the same on all ranks. All tensors have one type. The
    all-reduced GEMM is rounded to it, then residual_out is rounded, and y is computed from that:
    y = residual_out / sqrt(mean of residual_out^2 over n + eps) * norm_weight in f32 (f64 for f64),
    rounded once. vLLM's all-reduce and fused_add_rms_norm do the same, except that they also round
    y before it is multiplied by the weight. `residual` is not changed.
    For up to 256 rows (s and the dimensions before it), the plan for a size in
    `harpe.ops.row_buckets` serves all numbers of rows down to the previous size. If such a number of
    rows is not in `row_buckets` itself, x and residual are copied.
    Gradients are local, as in `linear_ar`. Saved: x, w, norm_weight and residual_out. Bits, other
    copies and errors as for `ag_linear`.
    """
    return _linear_norm.linear_ar_norm(x, w, residual, norm_weight, eps, find_name(group))


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, group: ProcessGroups,
              causal: bool = False, window: int | None = None, scale: float | None = None,
              documents: torch.Tensor | None = None, layout: str = "contiguous",
              return_lse: bool = False) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """o = softmax(scale q k^T) v, over all positions of all ranks; lse is the log of its row sums.

    q [b, s/P, h, d], k [b, t/P, g, d], v [b, t/P, g, e] -> o [b, s/P, h, e], lse [b, h, s/P] (f32;
    f64 for f64), for P ranks; g divides h, and h/g query heads share a key head. Rank r holds the
    positions that `harpe.cp.positions` lists: for layout "contiguous", block r of P; for "zigzag",
    blocks r and 2P-1-r of 2P, which gives all ranks the same work under a causal mask. Masks are
    aligned at the last query and the last key. `causal`: a query does not see later keys. `window`,
    with `causal`: a query sees only this many latest keys. `documents` [b, s], if there are as many
    keys as queries: the document number of each position, for the whole sequence in order and the
    same on all ranks; documents packed into one sequence do not see each other. `scale`: 1/sqrt(d)
    by default. A query that sees no key gets 0.
    Gradients: of q, k and v, by one plan; lse has none. Saved: q, k, v, o and lse. Equal plans give
    equal bits. Only tensors that other ranks read in this schedule are copied, and tensors that are
    not dense.
    Raises Refused: I311 a group, a type, a shape or an option; N015 another rank calls something
    else. Fault: another rank is lost or late.
    """
    o, lse = _attention.attention(q, k, v, documents, causal, window or 0, scale, layout,
                                  find_name(group))
    return (o, lse) if return_lse else o


def decode(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, group: ProcessGroups,
           lengths: torch.Tensor | None = None, block_table: torch.Tensor | None = None,
           scale: float | None = None,
           return_lse: bool = False) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """o = softmax(scale q k^T) v, for one new query per sequence; lse is the log of its row sums.

    q [b, h, d], k_cache [b, t/P, g, d], v_cache [b, t/P, g, e], lengths [b] -> o [b, h, e], lse [b,
    h] (f32; f64 for f64), for P ranks; g divides h. Rank r holds positions r t/P, … of the caches;
    q, lengths, o and lse are the same on all ranks. `lengths`, from 0 to t: the number of positions
    of each sequence, over all ranks, that its query sees; by default all. `scale`: 1/sqrt(d) by
    default. A query that sees no key gets 0.
    With `block_table` [b, m] the caches are a pool of n blocks that sequences share: k_cache [n/P,
    page, g, d], v_cache [n/P, page, g, e]; rank r holds blocks r n/P, …. block_table[i, j] is the
    block, numbered over all ranks, of positions j page, … of sequence i, or -1; entries beyond a
    sequence's length are not read. Blocks may be in any order, and in several rows.
    No gradient. Bits and copies as for `attention`; a pool is never copied, lengths and tables are
    copied if they are not i32.
    Raises Refused: I311 a group, a type, a shape, or a pool whose blocks are not contiguous; P220
    and P221, on CPU ranks, a length, a block that does not exist, or a block twice in one row; N015
    another rank calls something else. Fault: another rank is lost or late.
    """
    o, lse = _decode.decode(q, k_cache, v_cache, lengths, block_table, scale, find_name(group))
    return (o, lse) if return_lse else o


def moe(x: torch.Tensor, topk_ids: torch.Tensor, topk_weights: torch.Tensor, w1: torch.Tensor,
        w3: torch.Tensor, w2: torch.Tensor, *, group: ProcessGroups) -> torch.Tensor:
    """y = the sum over each token's experts of weight * (silu(x w1^T) * (x w3^T)) w2^T.

    x [t/P, k], topk_ids and topk_weights [t/P, choices], w1 and w3 [e/P, f, k], w2 [e/P, k, f] -> y
    [t/P, k], for P ranks. Rank r holds tokens r t/P, … and experts r e/P, …; ids number the experts
    of all ranks. No choice is dropped.
    No gradient. Equal plans give equal bits. Tensors that the schedule sends are copied, and ids
    and weights that are not i32 and f32.
    Raises Refused: I311 a group, a type or a shape; P22x ids; N015 another rank calls something
    else. Fault: another rank is lost or late.
    """
    return _moe.moe(x, topk_ids, topk_weights, w1, w3, w2, find_name(group))


def fused_all_gather_matmul(
        A_shard: torch.Tensor, Bs: Sequence[torch.Tensor], gather_dim: int, group_name: str, *,
        return_A: bool = True) -> tuple[torch.Tensor | None, list[torch.Tensor]]:
    """A = all_gather(A_shard), and A B for each B, with the signature of torch.ops.symm_mem's
    operator.

    A_shard [..., s/P, ..., k], divided along `gather_dim`, Bs [k, n] -> A, or None without
    `return_A`; results [..., s, ..., n]. Registered as torch.ops.harpe.fused_all_gather_matmul. A B
    that is the transpose of a dense matrix is used in that form; if Bs are of both kinds, they are
    copied, which is counted. A single GEMM without A overlaps with the gather, as in `ag_linear`.
    No gradient. Bits and errors as for `ag_linear`.
    """
    return _twins.fused_all_gather_matmul(A_shard, list_tensors(Bs), gather_dim, group_name,
                                          return_A=return_A)


def fused_matmul_reduce_scatter(A: torch.Tensor, B: torch.Tensor, reduce_op: str, scatter_dim: int,
                                group_name: str) -> torch.Tensor:
    """reduce_scatter(A B) along `scatter_dim`, with the signature of torch.ops.symm_mem's operator.

    A [..., s, ..., k], B [k, n] -> [..., s/P, ..., n]; `reduce_op` is "sum" or "avg". Registered as
    torch.ops.harpe.fused_matmul_reduce_scatter. No gradient. Bits and errors as for `linear_rs`.
    """
    return _twins.fused_matmul_reduce_scatter(A, B, reduce_op, scatter_dim, group_name)


def flash_attn_func(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout_p: float = 0.0,
                    softmax_scale: float | None = None, causal: bool = False,
                    window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0,
                    alibi_slopes: torch.Tensor | None = None, deterministic: bool = False,
                    return_attn_probs: bool = False, *, group: ProcessGroups,
                    layout: str = "contiguous") -> torch.Tensor:
    """`attention` with the arguments of flash-attention's function of this name.

    Gradients are deterministic, whatever `deterministic` is. Raises Refused: I311 dropout, softcap,
    ALiBi slopes, probabilities, and windows with later keys; the errors of `attention`.
    """
    _twins.refuse_options(dropout_p=dropout_p, softcap=softcap, alibi_slopes=alibi_slopes,
                          return_attn_probs=return_attn_probs)
    causal, window = _twins.find_window(causal, window_size)
    return attention(q, k, v, group=group, causal=causal, window=window, scale=softmax_scale,
                     layout=layout)
