"""Makes plans and kernels of operators before their first call."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from harpe import ops
from harpe._errors import refuse
from harpe.ops._groups import ProcessGroups, warming

_INTEGERS = "block_table", "documents", "lengths", "topk_ids"
_OPERATORS = ("ag_linear", "ag_linears", "linear_rs", "linear_ar", "linear_ar_norm", "attention",
              "decode", "moe")


def warmup(calls: Iterable[tuple[str, Mapping[str, Any]]], *, group: ProcessGroups,
           dtype: torch.dtype = torch.bfloat16, device: torch.device | str | None = None,
           gradients: bool = False) -> None:
    """Collective: makes the plans and kernels that operators lack for this rank's shapes.

        harpe.warmup([("ag_linear", dict(x=(1, 2048, 8192), w=(2560, 8192)))], group=tp)

    `calls`: operators and their arguments, with a shape (a tuple) for a tensor and a list of shapes
    for `weights`. `dtype`: of floating tensors. `device`: by default the current GPU, or the CPU
    without one. `gradients`: also makes the backward operators.
    Raises Refused: I311 an operator's name or an argument; the errors of the operators.
    """
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    with warming(group):
        for name, arguments in calls:
            if name not in _OPERATORS:
                raise refuse("calls", f"one of {', '.join(_OPERATORS)}", f"'{name}'")
            tensors = {key: _make_tensor(key, value, dtype, device)
                       for key, value in arguments.items()}
            floating = [each for each in tensors.values()
                        if isinstance(each, torch.Tensor) and each.is_floating_point()]
            floating += tensors.get("weights", [])
            for tensor in floating if gradients else ():
                tensor.requires_grad_()
            made = getattr(ops, name)(**tensors, group=group)
            if gradients:
                first = made[0] if isinstance(made, (list, tuple)) else made
                torch.autograd.grad(first.sum(), floating)


def _make_tensor(name: str, value: Any, dtype: torch.dtype, device: torch.device | str) -> Any:
    """A tensor of this shape without memory; no operator reads its elements."""
    if isinstance(value, list):
        return [_make_tensor(name, each, dtype, device) for each in value]
    if not isinstance(value, tuple):
        return value
    kind = torch.int32 if name in _INTEGERS else dtype
    return torch.empty((), dtype=kind, device=device).expand(value)
