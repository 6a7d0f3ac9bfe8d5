"""What the ways of peers_torch.py share."""
import contextlib
import dataclasses
from typing import Any, Callable

import torch


@dataclasses.dataclass(frozen=True)
class Here:
    """This process among the others."""
    rank: int
    ranks: int
    device: Any


@dataclasses.dataclass
class Work:
    """One way to do a case: `run` does this rank's part, `difference` is how far its output is from
    the reference, relative to the scale of its rows, and `bound` what rounding explains of that."""
    run: Callable[[], Any]
    difference: Callable[[Any], float]
    bound: float
    capturable: bool = True
    context: Callable[[], Any] = contextlib.nullcontext


def numbers_of(parameters):
    """["m=512", "causal=true"] as {"m": 512, "causal": True}."""
    found = {}
    for word in parameters:
        name, value = word.split("=")
        found[name] = value == "true" if value in ("true", "false") else int(value)
    return found


def part_of(size, here, what):
    """Of each rank."""
    if size % here.ranks:
        raise ValueError(f"{what} {size} is not divisible by {here.ranks}")
    return size // here.ranks


def draw(here, seed, *shape):
    """The same on all ranks."""
    generator = torch.Generator(device=here.device)
    generator.manual_seed(seed)
    return torch.randn(*shape, generator=generator, device=here.device, dtype=torch.bfloat16)


def rows_apart(got, wanted):
    """The largest difference, relative to the largest number of the wanted row."""
    got, wanted = got.float(), wanted.float()
    scale = wanted.abs().amax(dim=-1, keepdim=True).clamp_min(1e-30)
    return ((got - wanted).abs() / scale).max().item()
