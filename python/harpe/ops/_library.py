"""Operators in torch's dispatcher, under two names each.

`harpe::_NAME` is bare: it has a kernel and a fake kernel. `harpe::NAME` has a registered gradient
too, which costs every call some microseconds. Eager calls take the bare one, inside an
`autograd.Function` where a gradient is wanted; `torch.compile` takes the other. Where nothing looks
at operators, such as a mode or a profiler, eager calls go to the kernel itself, which saves the
dispatcher's microseconds.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable

_DEVICES = "CPU", "CUDA"
_library = torch.library.Library("harpe", "DEF")
_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter, type(None), str, int, float, bool})

Kernel = Callable[..., Any]


def define(name: str, schema: str, kernel: Kernel, fake: Kernel) -> Kernel:
    """`harpe::NAME`. `schema`: "(Tensor x, str group) -> Tensor". `fake`: the results' shapes."""
    _library.define(f"{name}{schema}", tags=(torch.Tag.pt2_compliant_tag,))
    for device in _DEVICES:
        _library.impl(name, kernel, device)
    torch.library.register_fake(f"harpe::{name}", fake, lib=_library)
    return getattr(torch.ops.harpe, name).default


def _is_watched(arguments: Sequence[Any]) -> bool:
    """Whether the dispatcher has to see a call: for a mode, a transform, a profiler, a subclass of
    tensors, or the fake kernel."""
    first = arguments[0]
    return bool(torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack()
                or torch._C._are_functorch_transforms_active()
                or torch.autograd._profiler_enabled()
                or not _PLAIN.issuperset(map(type, arguments))
                or not (first.is_cuda or first.is_cpu))


def define_differentiable(name: str, schema: str, kernel: Kernel, fake: Kernel, *, save: Kernel,
                          differentiate: Kernel, uncast: Collection[int] = ()) -> Kernel:
    """Both names; returns what chooses between them. Options are those of schemas with lists.

    Under `torch.autocast` that casts arguments as `torch.nn.functional.linear`'s are, but for those
    in `uncast`.
    `save(ctx, inputs, output)` and `differentiate(ctx, *gradients)` as torch.library has them.
    """
    operator = define(f"_{name}", schema, kernel, fake)
    registered = define(name, schema, kernel, fake)
    torch.library.register_autograd(f"harpe::{name}", differentiate, setup_context=save,
                                    lib=_library)

    def bare(*arguments: Any) -> Any:
        if _is_watched(arguments):
            return operator(*arguments)
        made = kernel(*arguments)
        return tuple(made) if isinstance(made, list) else made

    class Differentiable(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            output = bare(*arguments)
            save(ctx, arguments, output)  # a `setup_context` would cost the call a signature
            return output

        backward = staticmethod(once_differentiable(differentiate))

    # A Function does not see tensors in lists.
    always_registered = "Tensor[]" in schema[:schema.index("->")]

    def call(*arguments: Any, **options: Any) -> Any:
        if torch._C._is_any_autocast_enabled() and torch.is_autocast_enabled(
                arguments[0].device.type):
            arguments = tuple(_cast(arguments, uncast))
        if always_registered or torch.compiler.is_compiling():
            return registered(*arguments, **options)
        if torch.is_grad_enabled():
            for each in arguments:
                if isinstance(each, torch.Tensor) and each.requires_grad:
                    return Differentiable.apply(*arguments)
        return bare(*arguments)

    return call


def define_inference(name: str, schema: str, kernel: Kernel, fake: Kernel,
                     uncast: Collection[int] = ()) -> Kernel:
    """Both names, of an operator whose gradient is refused when it is asked for."""
    def differentiate(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError(f"harpe.ops.{name} has no gradient")

    return define_differentiable(name, schema, kernel, fake, save=lambda ctx, inputs, output: None,
                                 differentiate=differentiate, uncast=uncast)


def _cast(arguments: Sequence[Any], uncast: Collection[int] = ()) -> Iterator[Any]:
    """To the type of autocast on each tensor's device; f64 and integers stay."""
    for i, each in enumerate(arguments):
        if isinstance(each, list):
            yield [*_cast(each)]
        elif (isinstance(each, torch.Tensor) and i not in uncast and each.is_floating_point()
              and each.dtype != torch.float64):
            yield each.to(torch.get_autocast_dtype(each.device.type))
        else:
            yield each
