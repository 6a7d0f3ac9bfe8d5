"""Computes an operator with PyTorch's collectives and GEMMs if there is no plan."""

import torch
import torch.distributed as dist
import torch.nn.functional as functional
from torch.distributed.distributed_c10d import _resolve_process_group


def all_gather(x: torch.Tensor, group: str, dim: int) -> torch.Tensor:
    ranks = _resolve_process_group(group)
    parts = [torch.empty_like(x, memory_format=torch.contiguous_format)
             for _ in range(ranks.size())]
    dist.all_gather(parts, x.contiguous(), group=ranks)
    return torch.cat(parts, dim)


def all_reduce(x: torch.Tensor, group: str) -> torch.Tensor:
    total = x.contiguous().clone()
    dist.all_reduce(total, group=_resolve_process_group(group))
    return total


def reduce_scatter(x: torch.Tensor, group: str, dim: int) -> torch.Tensor:
    ranks = _resolve_process_group(group)
    return all_reduce(x, group).chunk(ranks.size(), dim)[ranks.rank()].contiguous()


def multiply(rule: str, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None,
             group: str) -> torch.Tensor:
    """a b^T, by the rules of `Product`."""
    if rule == "ag_gemm":
        return functional.linear(all_gather(a, group, -2), b, bias)
    c = functional.linear(a, b)
    c = reduce_scatter(c, group, -2) if rule == "gemm_rs" else all_reduce(c, group)
    return c if bias is None else c + bias


def add_and_normalise(x: torch.Tensor, w: torch.Tensor, residual: torch.Tensor,
                      weight: torch.Tensor, eps: float,
                      group: str) -> tuple[torch.Tensor, torch.Tensor]:
    total = all_reduce(functional.linear(x, w), group) + residual
    return functional.rms_norm(total, weight.shape, weight, eps), total


def weight_gradient(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return g.flatten(0, -2).t() @ x.flatten(0, -2)


def gathered_weight_gradient(gathered: str, g: torch.Tensor, x: torch.Tensor, bias: bool,
                             group: str) -> tuple[torch.Tensor, torch.Tensor]:
    """w and d of `WeightGradient`; d is empty without a bias."""
    if gathered == "x":
        x = all_gather(x, group, -2)
    else:
        g = all_gather(g, group, -2)
    return weight_gradient(g, x), g.flatten(0, -2).sum(0) if bias else g.new_empty(0)
