"""Shared by the scripts that time implementations in PyTorch."""
import contextlib
import dataclasses
import time
from typing import Any, Callable

import torch


COLD_BYTES = 256 << 20  # more than four times the second-level cache
MOST_COPIES = 16
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32,
         "f64": torch.float64}


@dataclasses.dataclass(frozen=True)
class Here:
    """This process as one of several."""
    rank: int
    ranks: int
    device: Any


@dataclasses.dataclass
class Work:
    """One implementation of a case. `run` executes this rank's part once. `difference` is the
    distance of its output from the reference, relative to the scale of its rows, and `bound` the
    part that rounding explains. Executions take turns at `copies` copies of the weights. `facts`
    returns more fields of the result's line. Requires: it is called after the first execution."""
    run: Callable[[], Any]
    difference: Callable[[Any], float]
    bound: float
    copies: int = 1
    facts: Callable[[], dict] = dict
    capturable: bool = True
    context: Callable[[], Any] = contextlib.nullcontext


def part_of(size, here, what):
    """The size of each rank's part."""
    if size % here.ranks:
        raise ValueError(f"{what} {size} is not divisible by {here.ranks}")
    return size // here.ranks


def draw(here, dtype, seed, *shape):
    """Draws a tensor that is the same on all ranks."""
    generator = torch.Generator(device=here.device)
    generator.manual_seed(seed)
    return torch.randn(*shape, generator=generator, device=here.device, dtype=TYPES[dtype])


def copy_cold(*tensors):
    """A list of these tensors and of copies of them, each a tuple, of COLD_BYTES together.
    Executions that take turns at the copies read them from memory, not from a cache."""
    wanted = -(-COLD_BYTES // sum(each.nbytes for each in tensors))
    return [tensors, *(tuple(each.clone() for each in tensors)
                       for _ in range(min(wanted, MOST_COPIES) - 1))]


def start_clock(device):
    """A function that waits for what follows, and returns the microseconds that it took."""
    if device.type == "cpu":
        begin = time.perf_counter()
        return lambda: (time.perf_counter() - begin) * 1e6
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()

    def stop():
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e3
    return stop


def widen(tensor):
    """Converts to the type in which references compute."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor.double()


def rows_apart(got, wanted):
    """The largest difference, relative to the largest number in the wanted row."""
    wanted = widen(wanted)
    got = got.to(wanted.dtype)
    scale = wanted.abs().amax(dim=-1, keepdim=True).clamp_min(1e-30)
    return ((got - wanted).abs() / scale).max().item()
