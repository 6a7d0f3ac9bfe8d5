"""What each call of an operator does: checks and a question once for tensors of a kind, then only
addresses. `_harpe.Calls` keeps what the first call of a kind finds out."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import torch

from harpe._errors import refuse
from harpe.ops._groups import Answer, Question, Ranks, find

Tensor = torch.Tensor


class Input(NamedTuple):
    """A tensor in the program. Where it has more than `dims` dimensions, those before are one, or
    none where they have one element."""
    name: str
    dims: int
    pool: str = ""  # what errors call a pool of blocks, which is not copied


class Result(NamedTuple):
    """`dims`: as for `Input`."""
    name: str
    shape: Sequence[int]
    dims: int
    dtype: torch.dtype


class Asked(NamedTuple):
    question: Question
    inputs: Sequence[Input]
    results: Sequence[Result]


class Seen(NamedTuple):
    """How a tensor lies in the program."""
    name: str
    merged: int  # 0, or as many dimensions as become one with the next
    dropped: int  # leading dimensions of 1
    pool: str

    def flatten(self, tensor: Tensor) -> Tensor:
        """Of dimensions that do not become one as they lie: a copy."""
        if self.pool:
            raise refuse(self.pool, "blocks that lie one behind the other",
                         f"strides {tensor.stride()}")
        return tensor.flatten(0, self.merged)


class Made(NamedTuple):
    """How a result is allocated."""
    seen: Seen
    shape: Sequence[int]
    stride: Sequence[int]
    dtype: torch.dtype


class Call(NamedTuple):
    """What tensors of a kind need on each call."""
    answer: Answer
    inputs: Sequence[Seen | None]
    results: Sequence[Made]


def execute(ask: Callable[..., Asked], tensors: tuple[Tensor | None, ...],
            options: tuple[Hashable, ...], group: str) -> tuple[Tensor, ...] | None:
    """New results; None where there is no plan, and PyTorch's own way is to be taken.

    `ask(ranks, *tensors, *options)`, one object at every call, checks, and leaves tensors that are
    None out of its inputs.
    """
    ranks = find(group)
    return ranks.calls.execute(_prepare, ranks, ask, tensors, options)


def _prepare(ranks: Ranks, ask: Callable[..., Asked], tensors: Sequence[Tensor | None],
             options: Sequence[Hashable]) -> Call:
    """Collective, where the question is new."""
    asked = ask(ranks.size, *tensors, *options)
    inputs = iter(asked.inputs)
    answer = ranks.find_answer(asked.question, tensors[0].device)
    return Call(answer, [each if each is None else _see(each.shape, *next(inputs))
                         for each in tensors],
                [_make(each) for each in asked.results])


def _see(shape: Sequence[int], name: str, dims: int, pool: str = "") -> Seen:
    more = len(shape) - dims
    merged = more if torch.Size(shape[:more]).numel() != 1 else 0
    return Seen(name, merged, 0 if merged else more, pool)


def _make(result: Result) -> Made:
    name, shape, dims, dtype = result
    stride = torch.empty(shape, device="meta").stride()
    return Made(_see(shape, name, dims), tuple(shape), stride, dtype)
