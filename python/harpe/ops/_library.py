"""Operators in torch's dispatcher, under two names each.

`harpe::_NAME` has only a kernel and a fake kernel. `harpe::NAME` also has a registered gradient,
which costs every call some microseconds. Eager calls use the first, inside an `autograd.Function`
if a gradient is wanted; `torch.compile` uses the second. If no mode or profiler watches operators,
eager calls go directly to the kernel, which saves the dispatcher's microseconds.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from harpe import _harpe
from harpe._errors import refuse

_DEVICES = "CPU", "CUDA"
_library = torch.library.Library("harpe", "DEF")
_KINDS = {"Tensor": "t", "Optional[Tensor]": "o", "List[Tensor]": "l"}
_WANTED = {"t": "a tensor", "o": "a tensor or None", "l": "a list of tensors"}
_GRADIENT, _WATCHED, _CAST, _WRONG = (_harpe.GRADIENT, _harpe.WATCHED, _harpe.CAST, _harpe.WRONG)
_TORCH = (torch.Tensor, torch.nn.Parameter, torch._C._is_any_autocast_enabled,
          torch.is_grad_enabled, torch._C._len_torch_dispatch_stack,
          torch._C._len_torch_function_stack, torch._C._are_functorch_transforms_active,
          torch.autograd._profiler_enabled)

Kernel = Callable[..., Any]


class _Operator:
    """`harpe::NAME`, and how its calls are routed."""

    def __init__(self, name: str, schema: str, kernel: Kernel, fake: Kernel) -> None:
        _library.define(f"{name}{schema}", tags=(torch.Tag.pt2_compliant_tag,))
        for device in _DEVICES:
            _library.impl(name, kernel, device)
        torch.library.register_fake(f"harpe::{name}", fake, lib=_library)
        self.kernel = kernel
        self.registered = getattr(torch.ops.harpe, name).default
        self._arguments = self.registered._schema.arguments
        self.kinds = "".join(_KINDS.get(str(each.type), ".") for each in self._arguments
                             if not each.kwarg_only)

    def check(self, arguments: Sequence[Any]) -> None:
        """Raises Refused: I311 names the first argument that must be a tensor but is none."""
        for each, given in zip(self._arguments, arguments):
            kind = _KINDS.get(str(each.type))
            if kind == "l" and isinstance(given, list):
                for one in given:
                    if not isinstance(one, torch.Tensor):
                        raise refuse(each.name, _WANTED[kind], f"a list with {_describe(one)}")
            elif kind == "l" or (kind and not isinstance(given, torch.Tensor)
                                 and not (kind == "o" and given is None)):
                raise refuse(each.name, _WANTED[kind], _describe(given))


def define(name: str, schema: str, kernel: Kernel, fake: Kernel) -> Kernel:
    """Defines `harpe::NAME`, without gradients. `schema`: "(Tensor x, str group) -> Tensor".
    `fake`: the results' shapes."""
    operator = _Operator(name, schema, kernel, fake)
    find_ways, kinds, registered = _harpe.find_ways, operator.kinds, operator.registered

    def call(*arguments: Any) -> Any:
        if (torch.compiler.is_dynamo_compiling()
                or find_ways(_TORCH, kinds, arguments) & _WATCHED):
            return registered(*arguments)
        return kernel(*arguments)

    return call


def define_differentiable(name: str, schema: str, kernel: Kernel, fake: Kernel, *, save: Kernel,
                          differentiate: Kernel, uncast: Collection[int] = ()) -> Kernel:
    """Defines both names; returns the function that chooses between them. Schemas with lists may
    have options.

    Under `torch.autocast` it casts arguments as `torch.nn.functional.linear` does, except those in
    `uncast`. `save(ctx, inputs, output)` and `differentiate(ctx, *gradients)` are as in
    torch.library.
    """
    bare = _Operator(f"_{name}", schema, kernel, fake).registered
    operator = _Operator(name, schema, kernel, fake)
    torch.library.register_autograd(f"harpe::{name}", differentiate, setup_context=save,
                                    lib=_library)
    differentiable = _make_function(kernel, save, differentiate)
    # What Function.apply adds is for functorch's transforms; these count as watchers.
    apply = super(torch.autograd.Function, differentiable).apply
    apply_watched = _make_function(bare, save, differentiate).apply
    find_ways, kinds, registered = _harpe.find_ways, operator.kinds, operator.registered
    has_lists = "l" in kinds

    def call(*arguments: Any, **options: Any) -> Any:
        if torch.compiler.is_dynamo_compiling():
            return registered(*_cast(arguments, uncast), **options)
        ways = find_ways(_TORCH, kinds, arguments)
        if ways & _CAST and not ways & _WRONG:
            arguments = tuple(_cast(arguments, uncast))
            ways = find_ways(_TORCH, kinds, arguments) & ~_CAST
        if ways == 0:
            return kernel(*arguments, **options)
        if ways == _GRADIENT and not has_lists:
            return apply(*arguments)
        operator.check(arguments)
        # A Function ignores tensors in lists.
        if has_lists or torch.compiler.is_compiling():
            return registered(*arguments, **options)
        return (apply_watched if ways & _GRADIENT else bare)(*arguments)

    return call


def _make_function(compute: Kernel, save: Kernel,
                   differentiate: Kernel) -> type[torch.autograd.Function]:
    """An autograd.Function of `compute`."""
    class Differentiable(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            output = compute(*arguments)
            save(ctx, arguments, output)  # `setup_context` would inspect the signature each time
            return output

        backward = staticmethod(once_differentiable(differentiate))

    return Differentiable


def define_inference(name: str, schema: str, kernel: Kernel, fake: Kernel,
                     uncast: Collection[int] = ()) -> Kernel:
    """Defines both names of an operator that refuses gradients."""
    def differentiate(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError(f"harpe.ops.{name} has no gradient")

    return define_differentiable(name, schema, kernel, fake, save=lambda ctx, inputs, output: None,
                                 differentiate=differentiate, uncast=uncast)


def _cast(arguments: Sequence[Any], uncast: Collection[int] = ()) -> Sequence[Any]:
    """Casts to autocast's type of each tensor's device, if it is on; keeps f64 and integers."""
    return [each if i in uncast else _cast_one(each) for i, each in enumerate(arguments)]


def _cast_one(given: Any) -> Any:
    if isinstance(given, list):
        return [_cast_one(each) for each in given]
    if (not isinstance(given, torch.Tensor) or not given.is_floating_point()
            or given.dtype == torch.float64 or not torch.is_autocast_enabled(given.device.type)):
        return given
    return given.to(torch.get_autocast_dtype(given.device.type))


def list_tensors(tensors: Any) -> Any:
    """Converts what schemas accept as a list; keeps other values, which operators then refuse."""
    return [*tensors] if isinstance(tensors, Sequence) else tensors


def _describe(given: Any) -> str:
    if isinstance(given, torch.Tensor):
        return "a tensor"
    kind = type(given)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return "None" if given is None else f"a {module}{kind.__qualname__}"
