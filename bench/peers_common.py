"""What the ways of peers_torch.py share."""
import contextlib
import dataclasses
from typing import Any, Callable

import torch


TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32,
         "f64": torch.float64}


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


def part_of(size, here, what):
    """Of each rank."""
    if size % here.ranks:
        raise ValueError(f"{what} {size} is not divisible by {here.ranks}")
    return size // here.ranks


def draw(here, dtype, seed, *shape):
    """The same on all ranks."""
    generator = torch.Generator(device=here.device)
    generator.manual_seed(seed)
    return torch.randn(*shape, generator=generator, device=here.device, dtype=TYPES[dtype])


def widen(tensor):
    """In the type that references compute in."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor.double()


def rows_apart(got, wanted):
    """The largest difference, relative to the largest number of the wanted row."""
    wanted = widen(wanted)
    got = got.to(wanted.dtype)
    scale = wanted.abs().amax(dim=-1, keepdim=True).clamp_min(1e-30)
    return ((got - wanted).abs() / scale).max().item()
