"""A linear layer with all-reduced results, then a residual connection and a norm."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from harpe._errors import refuse
from harpe.ops import _fallback
from harpe.ops._calls import Asked, Input, Result, execute
from harpe.ops._library import define_differentiable
from harpe.ops._linears import check_types
from harpe.ops._questions import DTYPES, Product, sums_of

Tensor = torch.Tensor

ROW_BUCKETS = 1, 2, 4, 8, 16, 32, 64, 128, 256


def _find_bucket(rows: int) -> int:
    """The number of rows of the plan that serves `rows` rows."""
    return next((each for each in ROW_BUCKETS if each >= rows > 0), rows)


def _compute(x: Tensor, w: Tensor, residual: Tensor, norm_weight: Tensor, eps: float,
             group: str) -> tuple[Tensor, Tensor]:
    rows = x.shape[:-1].numel()
    bucket = _find_bucket(rows)
    if bucket == rows:
        made = execute(_ask, (x, w, residual, norm_weight), (eps,), group)
    else:
        _check(x, w, residual, norm_weight, eps)
        made = execute(_ask, (_pad(x, bucket), w, _pad(residual, bucket), norm_weight), (eps,),
                       group)
    if made is None:
        return _fallback.add_and_normalise(x, w, residual, norm_weight, eps, group)
    y, out = made if bucket == rows else (each[:rows].view(residual.shape) for each in made)
    return y, out


def _pad(tensor: Tensor, rows: int) -> Tensor:
    """Appends uninitialised rows; no row's result depends on another row."""
    padded = tensor.new_empty(rows, tensor.shape[-1])
    own = tensor.flatten(0, -2) if tensor.dim() > 1 else tensor[None]
    padded[:len(own)].copy_(own)
    return padded


def _make_results(x: Tensor, w: Tensor, residual: Tensor, norm_weight: Tensor, eps: float,
                  group: str) -> tuple[Tensor, Tensor]:
    shape = *x.shape[:-1], w.shape[0]
    return x.new_empty(shape), x.new_empty(shape)


def _ask(ranks: int, x: Tensor, w: Tensor, residual: Tensor, norm_weight: Tensor,
         eps: float) -> Asked:
    _check(x, w, residual, norm_weight, eps)
    n, k = w.shape
    question = Product(name="linear_ar_norm", rule="gemm_ar", batch=1, m=x.shape[:-1].numel(), n=n,
                       k=k * ranks, dtype=DTYPES[x.dtype], eps=eps)
    return Asked(question,
                 [Input("a", 2), Input("b", 2), Input("residual", 2), Input("weight", 1)],
                 [Result(each, residual.shape, 2, x.dtype) for each in ("y", "residual_out")])


def _check(x: Tensor, w: Tensor, residual: Tensor, norm_weight: Tensor, eps: float) -> None:
    check_types({"x": x, "w": w, "residual": residual, "norm_weight": norm_weight})
    if x.dim() < 2:
        raise refuse("x", "of at least two dimensions", f"of shape {list(x.shape)}")
    if w.dim() != 2 or x.shape[-1] != w.shape[1]:
        raise refuse("w", f"of {x.shape[-1]} columns, as `x` has", f"of shape {list(w.shape)}")
    wanted = [*x.shape[:-1], w.shape[0]]
    if list(residual.shape) != wanted:
        raise refuse("residual", f"of shape {wanted}", f"of shape {list(residual.shape)}")
    if list(norm_weight.shape) != wanted[-1:]:
        raise refuse("norm_weight", f"of shape {wanted[-1:]}",
                     f"of shape {list(norm_weight.shape)}")
    if not isinstance(eps, (float, int)) or not 0 <= eps < math.inf:
        raise refuse("eps", "a number that is not negative", f"{eps!r}")


def _save(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
    x, w, _, norm_weight, ctx.eps, _ = inputs
    ctx.save_for_backward(x, w, norm_weight, output[1])


def _differentiate(ctx: Any, of_y: Tensor, of_out: Tensor) -> tuple[Any, ...]:
    """Runs on each rank separately, because all ranks have the results."""
    x, w, weight, out = ctx.saved_tensors
    kind = sums_of(x.dtype)
    out, of_y = out.to(kind), of_y.to(kind)
    root = torch.rsqrt(out.square().mean(-1, keepdim=True) + ctx.eps)
    unit, of_unit = out * root, of_y * weight.to(kind)
    of_sum = (of_unit - unit * (of_unit * unit).mean(-1, keepdim=True)) * root + of_out.to(kind)
    g = of_sum.to(x.dtype)
    of_x, of_w, of_residual, of_weight, *_ = ctx.needs_input_grad
    return (g @ w if of_x else None, _fallback.weight_gradient(g, x) if of_w else None,
            g if of_residual else None,
            (of_y * unit).flatten(0, -2).sum(0).to(x.dtype) if of_weight else None, None, None)


linear_ar_norm = define_differentiable(
    "linear_ar_norm", "(Tensor x, Tensor w, Tensor residual, Tensor norm_weight, float eps, "
    "str group) -> (Tensor, Tensor)", _compute, _make_results, save=_save,
    differentiate=_differentiate)
