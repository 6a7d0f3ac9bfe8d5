"""Operators with the signatures of other libraries, for compiler passes and programs that use
those."""

from collections.abc import Sequence
from typing import Any

import torch

from harpe._errors import refuse
from harpe.ops import _linears
from harpe.ops._groups import count_ranks
from harpe.ops._library import define_inference

Tensor = torch.Tensor


def _gather_and_multiply(A_shard: Tensor, Bs: Sequence[Tensor], gather_dim: int, group_name: str, *,
                         return_A: bool = True) -> tuple[Tensor | None, list[Tensor]]:
    x, leading, trailing = _divide(A_shard, gather_dim, "A_shard", "gather_dim")
    transposed = all(B.dim() == 2 and B.t().is_contiguous() for B in Bs)
    weights = [B.t() for B in Bs] if transposed else Bs
    if return_A or len(Bs) != 1:
        made = _linears.multiply_gathered("fused_all_gather_matmul", x, weights, group_name,
                                           transposed=transposed, whole=return_A)
    else:
        multiply = torch.ops.harpe._ag_linear if transposed else torch.ops.harpe._ag_matmul
        made = [multiply(x, weights[0], None, group_name)]
    made = [each.reshape(*leading, -1, *trailing, each.shape[-1]) for each in made]
    return made.pop() if return_A else None, made


def _make_gathered(A_shard: Tensor, Bs: Sequence[Tensor], gather_dim: int, group_name: str, *,
                   return_A: bool = True) -> tuple[Tensor | None, list[Tensor]]:
    shape = [*A_shard.shape[:-1]]
    shape[gather_dim] *= count_ranks(group_name)
    made = [A_shard.new_empty(*shape, n) for n in (A_shard.shape[-1], *(B.shape[1] for B in Bs))]
    return made[0] if return_A else None, made[1:]


def _multiply_and_scatter(A: Tensor, B: Tensor, reduce_op: str, scatter_dim: int,
                          group_name: str) -> Tensor:
    if reduce_op not in ("sum", "avg"):
        raise refuse("reduce_op", "'sum' or 'avg'", f"{reduce_op!r}")
    x, leading, trailing = _divide(A, scatter_dim, "A", "scatter_dim")
    transposed = B.dim() == 2 and B.t().is_contiguous()
    ranks = count_ranks(group_name)
    if A.shape[scatter_dim] % ranks:
        raise refuse("A", f"a multiple of {ranks} along dimension {scatter_dim}, for equal blocks "
                     "of the result", f"of shape {list(A.shape)}")
    multiply = torch.ops.harpe._linear_rs if transposed else torch.ops.harpe._matmul_rs
    made = multiply(x, B.t() if transposed else B, None, group_name)
    if reduce_op == "avg":
        made /= ranks
    return made.reshape(*leading, -1, *trailing, made.shape[-1])


def _make_scattered(A: Tensor, B: Tensor, reduce_op: str, scatter_dim: int,
                    group_name: str) -> Tensor:
    shape = [*A.shape[:-1]]
    shape[scatter_dim] //= count_ranks(group_name)
    return A.new_empty(*shape, B.shape[1])


def _divide(x: Tensor, dim: int, name: str,
            argument: str) -> tuple[Tensor, torch.Size, torch.Size]:
    """Reshapes x to [batch, rows, k], with rows divided over ranks as dimension `dim` was. Returns
    it with the dimensions before `dim`, and those between it and the last."""
    if x.dim() < 2:
        raise refuse(name, "of at least two dimensions", f"of shape {list(x.shape)}")
    if not 0 <= dim < x.dim() - 1:
        raise refuse(argument, f"from 0 to {x.dim() - 2}, so that whole rows are multiplied",
                     f"{dim}")
    leading, trailing = x.shape[:dim], x.shape[dim + 1:-1]
    return x.reshape(leading.numel(), -1, x.shape[-1]), leading, trailing


fused_all_gather_matmul = define_inference(
    "fused_all_gather_matmul", "(Tensor A_shard, Tensor[] Bs, int gather_dim, str group_name, *, "
    "bool return_A=True) -> (Tensor?, Tensor[])", _gather_and_multiply, _make_gathered)
fused_matmul_reduce_scatter = define_inference(
    "fused_matmul_reduce_scatter", "(Tensor A, Tensor B, str reduce_op, int scatter_dim, "
    "str group_name) -> Tensor", _multiply_and_scatter, _make_scattered)

# Options of flash-attention's function that no plan supports, with the values that disable them.
_WITHOUT = {"dropout_p": 0.0, "softcap": 0.0, "alibi_slopes": None, "return_attn_probs": False}


def refuse_options(**options: Any) -> None:
    """Raises Refused: I311, which names the option."""
    for name, value in options.items():
        if value is not None and value != _WITHOUT[name]:
            raise refuse(name, f"{_WITHOUT[name]}; `attention` has no other", f"{value!r}")


def find_window(causal: bool, window_size: tuple[int, int]) -> tuple[bool, int | None]:
    """`causal` and `window` as `attention` takes them."""
    left, right = window_size
    if right > 0 and not causal:
        raise refuse("window_size", "one without keys after the query, or (-1, -1)",
                     f"{window_size}")
    return causal or right == 0, left + 1 if left >= 0 else None
