"""Model layers whose weights and sequences are divided over ranks.

    up = harpe.nn.ColumnParallelLinear(4096, 14336, bias=False, group=tp)
    down = harpe.nn.RowParallelLinear(14336, 4096, bias=False, group=tp)
    y = down(torch.nn.functional.silu(up(x)))      # x, y [..., s/P, 4096]

Parameters are this rank's blocks, named as in nn.Linear. `from_linear` cuts them out of a whole
layer that all ranks have. The styles do the same in a whole model:

    parallelize_module(block, tp, {"up": harpe.nn.GatherColwise(),
                                   "down": harpe.nn.RowwiseScatter()})
"""

from typing import Self

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.parallel import ParallelStyle

from harpe import ops
from harpe._errors import refuse
from harpe.ops._groups import ProcessGroups, count_ranks, find, find_name

__all__ = ["ColumnParallelLinear", "ContextParallelAttention", "GatherColwise",
           "RowParallelLinear", "RowwiseScatter"]


class _Divided(torch.nn.Module):
    """`divided`: the dimension of the weight [out_features, in_features] that is divided over
    ranks."""
    divided: int

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *,
                 group: ProcessGroups, device: torch.device | str | None = None,
                 dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.group = find_name(group)  # a name, so that layers can be copied and saved
        ranks, shape = count_ranks(self.group), [out_features, in_features]
        if shape[self.divided] % ranks:
            raise refuse("out_features" if self.divided == 0 else "in_features",
                         f"a multiple of {ranks}, for equal blocks", f"{shape[self.divided]}")
        shape[self.divided] //= ranks
        options: dict = dict(device=device, dtype=dtype)
        self.weight = torch.nn.Parameter(torch.empty(shape, **options))
        length = shape[0] if self.divided == 0 else out_features
        self.bias = torch.nn.Parameter(torch.empty(length, **options)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weights as nn.Linear does, separately on each rank; biases are 0."""
        bound = self.in_features**-0.5 if self.in_features else 0.0
        torch.nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear, *, group: ProcessGroups) -> Self:
        """A copy of this rank's part of a layer."""
        made = cls(linear.in_features, linear.out_features, linear.bias is not None, group=group,
                   device=linear.weight.device, dtype=linear.weight.dtype)
        ranks = find(made.group).process_group

        def cut(whole: torch.Tensor, dim: int) -> torch.Tensor:
            return whole.chunk(ranks.size(), dim)[ranks.rank()]

        with torch.no_grad():
            made.weight.copy_(cut(linear.weight, cls.divided))
            if made.bias is not None:
                made.bias.copy_(cut(linear.bias, 0) if cls.divided == 0 else linear.bias)
        return made

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}, group={self.group}")


class ColumnParallelLinear(_Divided):
    """`harpe.ops.ag_linear`: x [..., s/P, in_features] -> y [..., s, out_features/P]."""
    divided = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ops.ag_linear(x, self.weight, self.bias, group=self.group)


class RowParallelLinear(_Divided):
    """`harpe.ops.linear_rs`: x [..., s, in_features/P] -> z [..., s/P, out_features]."""
    divided = 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ops.linear_rs(x, self.weight, self.bias, group=self.group)


class ContextParallelAttention(torch.nn.Module):
    """`harpe.ops.attention` with its options: q, k and v [b, s/P, heads, size] -> o."""

    def __init__(self, *, group: ProcessGroups, causal: bool = False, window: int | None = None,
                 scale: float | None = None, layout: str = "contiguous") -> None:
        super().__init__()
        self.group = find_name(group)
        self.causal, self.window, self.scale, self.layout = causal, window, scale, layout

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                documents: torch.Tensor | None = None) -> torch.Tensor:
        return ops.attention(q, k, v, group=self.group, causal=self.causal, window=self.window,
                             scale=self.scale, documents=documents, layout=self.layout)

    def extra_repr(self) -> str:
        return (f"causal={self.causal}, window={self.window}, scale={self.scale}, "
                f"layout={self.layout}, group={self.group}")


class _Divide(ParallelStyle):
    """For `parallelize_module`: turns an nn.Linear that all ranks have into a `layer`, whose
    parameters are this rank's parts."""
    layer: type[_Divided]

    def _apply(self, module: torch.nn.Module, device_mesh: DeviceMesh) -> torch.nn.Module:
        if type(module) is not torch.nn.Linear:
            raise refuse("module", "an nn.Linear", f"{type(module).__name__}")
        made = self.layer.from_linear(module, group=device_mesh)
        # Changes the module in place, because `parallelize_module` keeps the module that it passed.
        module.weight, module.bias, module.group = made.weight, made.bias, made.group
        module.__class__ = self.layer
        return module


class GatherColwise(_Divide):
    """nn.Linear -> `ColumnParallelLinear`."""
    layer = ColumnParallelLinear


class RowwiseScatter(_Divide):
    """nn.Linear -> `RowParallelLinear`."""
    layer = RowParallelLinear
