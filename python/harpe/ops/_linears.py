"""Kernels, fake kernels and gradients of the linear operators."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from harpe._errors import refuse
from harpe.ops import _fallback
from harpe.ops._calls import Asked, Input, Result, execute
from harpe.ops._groups import count_ranks
from harpe.ops._library import define, define_differentiable
from harpe.ops._questions import DTYPES, Product, Products, WeightGradient

Tensor = torch.Tensor


class _Multiply:
    """One rule of `Product` as an operator: c from a, b and an optional bias, all this rank's
    parts."""

    def __init__(self, name: str, rule: str, transposed: bool = True) -> None:
        self.name, self.rule, self.transposed = name, rule, transposed
        self._question = self._ask  # the same object at every call

    def compute(self, a: Tensor, b: Tensor, bias: Tensor | None, group: str) -> Tensor:
        made = execute(self._question, (a, b, bias), (), group)
        if made is None:
            return _fallback.multiply(self.rule, a, b if self.transposed else b.t(), bias, group)
        return made[0]

    def make_result(self, a: Tensor, b: Tensor, bias: Tensor | None, group: str) -> Tensor:
        """The fake kernel."""
        return a.new_empty(self._find_shape(a, b, count_ranks(group)))

    def _find_shape(self, a: Tensor, b: Tensor, ranks: int) -> Sequence[int]:
        m = {"ag_gemm": a.shape[-2] * ranks, "gemm_rs": a.shape[-2] // ranks,
             "gemm_ar": a.shape[-2]}[self.rule]
        return *a.shape[:-2], m, b.shape[0 if self.transposed else 1]

    def _ask(self, ranks: int, a: Tensor, b: Tensor, bias: Tensor | None) -> Asked:
        self._check(a, b, bias, ranks)
        n, k = b.shape if self.transposed else b.shape[::-1]
        over = {"ag_gemm": (ranks, ranks, 1)}.get(self.rule, (1, 1, ranks))
        batch, m = a.shape[:-2].numel(), a.shape[-2]
        question = Product(name=self.name, rule=self.rule, batch=batch, m=m * over[0],
                           n=n * over[1], k=k * over[2], dtype=DTYPES[a.dtype],
                           transposed=self.transposed, bias=bias is not None)
        dims = count_dims(a)
        return Asked(question, [Input("a", dims), Input("b", 2),
                               *[Input("bias", 1)] * (bias is not None)],
                     [Result("c" if bias is None else "y", self._find_shape(a, b, ranks), dims,
                             a.dtype)])

    def _check(self, a: Tensor, b: Tensor, bias: Tensor | None, ranks: int) -> None:
        check_types({"x": a, "w": b} | ({} if bias is None else {"bias": bias}))
        n, k = (0, 1) if self.transposed else (1, 0)
        if a.dim() < 2:
            raise refuse("x", "of at least two dimensions", f"of shape {list(a.shape)}")
        if b.dim() != 2 or a.shape[-1] != b.shape[k]:
            raise refuse("w", f"of {a.shape[-1]} columns, as `x` has",
                         f"of shape {list(b.shape)}")
        if bias is not None and bias.shape != (b.shape[n],):
            raise refuse("bias", f"of shape [{b.shape[n]}]", f"of shape {list(bias.shape)}")
        if self.rule == "gemm_rs" and a.shape[-2] % ranks:
            raise refuse("x", f"of a multiple of {ranks} rows, for equal blocks of the result",
                         f"of {a.shape[-2]}")


class _MakeWeightGradient:
    """A rule of `WeightGradient` as an operator: w, and d if it is requested, else an empty
    tensor."""

    def __init__(self, name: str, gathered: str) -> None:
        self.name, self.gathered = name, gathered
        self._question = self._ask

    def compute(self, g: Tensor, x: Tensor, bias: bool, group: str) -> tuple[Tensor, Tensor]:
        ones = g.new_ones(*g.shape[:-1], 1) if bias else None
        made = execute(self._question, (g, x, ones), (), group)
        if made is not None:
            return made[0], made[1].squeeze(1) if bias else g.new_empty(0)
        return _fallback.gathered_weight_gradient(self.gathered, g, x, bias, group)

    def make_result(self, g: Tensor, x: Tensor, bias: bool, group: str) -> tuple[Tensor, Tensor]:
        return g.new_empty(g.shape[-1], x.shape[-1]), g.new_empty(g.shape[-1] if bias else 0)

    def _ask(self, ranks: int, g: Tensor, x: Tensor, ones: Tensor | None) -> Asked:
        check_types({"the gradient": g, "x": x})
        n, k, dims, bias = g.shape[-1], x.shape[-1], count_dims(g), ones is not None
        question = ask_for_gradients(self.name, self.gathered, ranks, g, x, bias=bias)
        return Asked(question, [Input("g", dims), Input("x", dims), *[Input("ones", dims)] * bias],
                     [Result("w", (n, k), 2, g.dtype), *[Result("d", (n, 1), 2, g.dtype)] * bias])


class _MakeGradients:
    """The gradients of a linear layer's input and weight, by one plan."""

    def __init__(self, name: str, gathered: str) -> None:
        self.name, self.gathered = name, gathered
        self._question = self._ask

    def compute(self, g: Tensor, x: Tensor, w: Tensor, group: str) -> tuple[Tensor, Tensor]:
        made = execute(self._question, (g, x, w), (), group)
        if made is not None:
            return made[0], made[1]
        rule = "gemm_rs" if self.gathered == "x" else "ag_gemm"
        of_w, _ = _fallback.gathered_weight_gradient(self.gathered, g, x, False, group)
        return _fallback.multiply(rule, g, w.t(), None, group), of_w

    def make_result(self, g: Tensor, x: Tensor, w: Tensor, group: str) -> tuple[Tensor, Tensor]:
        return x.new_empty(x.shape), w.new_empty(w.shape)

    def _ask(self, ranks: int, g: Tensor, x: Tensor, w: Tensor) -> Asked:
        check_types({"the gradient": g, "x": x, "w": w})
        question = ask_for_gradients(self.name, self.gathered, ranks, g, x, product=True)
        dims = count_dims(g)
        return Asked(question, [Input("g", dims), Input("x", dims), Input("u", 2)],
                     [Result("of_x", tuple(x.shape), dims, x.dtype),
                      Result("w", tuple(w.shape), 2, w.dtype)])


def ask_for_gradients(name: str, gathered: str, ranks: int, g: Tensor, x: Tensor, *,
                      bias: bool = False, product: bool = False) -> WeightGradient:
    of_x = gathered == "x"
    return WeightGradient(
        name=name, gathered=gathered, batch=g.shape[:-2].numel(),
        m=(x if of_x else g).shape[-2] * ranks, n=g.shape[-1] * (ranks if of_x else 1),
        k=x.shape[-1] * (1 if of_x else ranks), dtype=DTYPES[g.dtype], bias=bias, product=product)


def multiply_gathered(name: str, x: Tensor, weights: Sequence[Tensor], group: str, *,
                      transposed: bool = True, whole: bool = False) -> list[Tensor]:
    """`Products`: the results, followed by the gathered x if it is requested."""
    made = execute(_ask_products, (x, *weights), (name, transposed, whole), group)
    if made is not None:
        return [*made]
    gathered = _fallback.all_gather(x, group, -2)
    return [torch.nn.functional.linear(gathered, w if transposed else w.t())
            for w in weights] + [gathered] * whole


def _ask_products(ranks: int, x: Tensor, *rest: Any) -> Asked:
    *weights, name, transposed, whole = rest
    check_types({"x": x} | {f"weights[{i}]": w for i, w in enumerate(weights)})
    n = 0 if transposed else 1
    for i, w in enumerate(weights):
        if w.dim() != 2 or w.shape[1 - n] != x.shape[-1]:
            raise refuse(f"weights[{i}]", f"of {x.shape[-1]} {'rows' if n else 'columns'}, as `x` "
                         "has columns", f"of shape {list(w.shape)}")
    question = Products(name=name, batch=x.shape[:-2].numel(), m=x.shape[-2] * ranks,
                        ns=tuple(w.shape[n] * ranks for w in weights), k=x.shape[-1],
                        dtype=DTYPES[x.dtype], transposed=transposed, whole=whole)
    dims = count_dims(x)
    columns = {f"c{i}": w.shape[n] for i, w in enumerate(weights)}
    columns |= {"whole": x.shape[-1]} if whole else {}
    return Asked(question, [Input("a", dims), *(Input(f"b{i}", 2) for i, _ in enumerate(weights))],
                 [Result(each, (*x.shape[:-2], x.shape[-2] * ranks, size), dims, x.dtype)
                  for each, size in columns.items()])


def _compute_ag_linears(x: Tensor, weights: Sequence[Tensor], group: str) -> list[Tensor]:
    return multiply_gathered("ag_linears", x, weights, group)


def _make_ag_linears(x: Tensor, weights: Sequence[Tensor], group: str) -> list[Tensor]:
    m = x.shape[-2] * count_ranks(group)
    return [x.new_empty(*x.shape[:-2], m, w.shape[0]) for w in weights]


def count_dims(x: Tensor) -> int:
    """The number of dimensions of [batch, m, k], or of [m, k] for a batch of one."""
    return 2 if x.shape[:-2].numel() == 1 else 3


def check_types(tensors: Mapping[str, Tensor]) -> None:
    (first, like), *_ = tensors.items()
    if like.dtype not in DTYPES:
        known = ", ".join(str(dtype) for dtype in DTYPES)
        raise refuse(first, f"of one of {known}", f"of {like.dtype}")
    for name, tensor in tensors.items():
        if tensor.dtype != like.dtype or tensor.device != like.device:
            raise refuse(name, f"of {like.dtype} on {like.device}, as `{first}` is",
                         f"of {tensor.dtype} on {tensor.device}")


_GATHER = "(Tensor x, Tensor w, Tensor? bias, str group) -> Tensor"
_BOTH = "(Tensor gradient, Tensor x, Tensor w, str group) -> (Tensor, Tensor)"
_WEIGHTS = "(Tensor gradient, Tensor x, bool bias, str group) -> (Tensor, Tensor)"


def _define_multiply(name: str, rule: str) -> Any:
    """For gradients of the input, which multiply by b untransposed."""
    multiply = _Multiply(name, rule, transposed=False)
    return define(f"_{name}", _GATHER, multiply.compute, multiply.make_result)


def _define_weights(name: str, gathered: str) -> Any:
    weights = _MakeWeightGradient(name, gathered)
    return define(f"_{name}", _WEIGHTS, weights.compute, weights.make_result)


def _define_gradients(name: str, gathered: str) -> Any:
    gradients = _MakeGradients(name, gathered)
    return define(f"_{name}", _BOTH, gradients.compute, gradients.make_result)


_ag_matmul = _define_multiply("ag_matmul", "ag_gemm")
_matmul_rs = _define_multiply("matmul_rs", "gemm_rs")
_ag_linear_weight = _define_weights("ag_linear_weight", "x")
_linear_rs_weight = _define_weights("linear_rs_weight", "g")
_ag_linear_gradients = _define_gradients("ag_linear_gradients", "x")
_linear_rs_gradients = _define_gradients("linear_rs_gradients", "g")


def _save(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
    x, w, bias, ctx.group = inputs
    ctx.save_for_backward(x, w)


def _differentiate_product(g: Tensor, x: Tensor, w: Tensor, of_x: bool, of_w: bool,
                           group: str) -> tuple[Tensor | None, Tensor | None]:
    """Of the gradients of x and w in `ag_linear` those that are requested."""
    if of_x and of_w:
        return _ag_linear_gradients(g, x, w, group)
    return (_matmul_rs(g, w, None, group) if of_x else None,
            _ag_linear_weight(g, x, False, group)[0] if of_w else None)


def _differentiate_ag_linear(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    x, w = ctx.saved_tensors
    g = g.contiguous()  # autograd expands a sum's gradient: all its elements share memory
    of_x, of_w, of_bias, _ = ctx.needs_input_grad
    return (*_differentiate_product(g, x, w, of_x, of_w, ctx.group),
            g.flatten(0, -2).sum(0) if of_bias else None, None)


def _differentiate_linear_rs(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    x, w = ctx.saved_tensors
    g = g.contiguous()
    of_x, of_w, of_bias, _ = ctx.needs_input_grad
    if of_x and of_w and not of_bias:
        return *_linear_rs_gradients(g, x, w, ctx.group), None, None
    x_ = _ag_matmul(g, w, None, ctx.group) if of_x else None
    w_, bias_ = (_linear_rs_weight(g, x, of_bias, ctx.group) if of_w or of_bias else (None, None))
    return x_, w_, bias_ if of_bias else None, None


def _differentiate_linear_ar(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    x, w = ctx.saved_tensors
    return (g @ w if ctx.needs_input_grad[0] else None,
            g.flatten(0, -2).t() @ x.flatten(0, -2) if ctx.needs_input_grad[1] else None,
            g.flatten(0, -2).sum(0) if ctx.needs_input_grad[2] else None, None)


_LARGE = 4096  # rows of a weight of `ag_linears` on a rank


def _save_ag_linears(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
    x, weights, ctx.group = inputs
    ctx.save_for_backward(x, *weights)


def _differentiate_ag_linears(ctx: Any, gradients: Sequence[Tensor]) -> tuple[Any, ...]:
    if torch.is_grad_enabled() and any(g.requires_grad for g in gradients):
        raise NotImplementedError("harpe.ops.ag_linears has no gradient of its gradient")
    x, *weights = ctx.saved_tensors
    of_x, of_weights, _ = ctx.needs_input_grad
    # Products of large weights take longer than what they send to other ranks, and copying these
    # weights into one would cost more than a product more. Smaller ones are put together.
    are_large = all(w.shape[0] >= _LARGE for w in weights)
    parts = list(zip(gradients, weights)) if are_large else [
        (torch.cat(gradients, -1), torch.cat(weights) if of_x else weights[0])]
    made = [_differentiate_product(g.contiguous(), x, w, of_x, any(of_weights), ctx.group)
            for g, w in parts]
    x_, w_ = made[0][0], [of_w for _, of_w in made]
    for term, _ in (made[1:] if of_x else ()):
        x_ += term
    if not any(of_weights):
        return x_, None, None
    if not are_large:
        w_ = [*w_[0].split([w.shape[0] for w in weights])]  # rows of each, adjacent in memory
    return x_, w_, None


def _define_linear(name: str, rule: str, differentiate: Any) -> Any:
    multiply = _Multiply(name, rule)
    return define_differentiable(name, _GATHER, multiply.compute, multiply.make_result,
                                 save=_save, differentiate=differentiate)


ag_linear = _define_linear("ag_linear", "ag_gemm", _differentiate_ag_linear)
linear_rs = _define_linear("linear_rs", "gemm_rs", _differentiate_linear_rs)
linear_ar = _define_linear("linear_ar", "gemm_ar", _differentiate_linear_ar)
ag_linears = define_differentiable(
    "ag_linears", "(Tensor x, Tensor[] weights, str group) -> Tensor[]", _compute_ag_linears,
    _make_ag_linears, save=_save_ag_linears, differentiate=_differentiate_ag_linears)
