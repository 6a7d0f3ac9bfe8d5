"""The calls of an operator. The first call with tensors of a kind checks them and makes a question;
`_harpe.Calls` keeps the result, and later calls pass only addresses."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import torch

from harpe._errors import refuse
from harpe.ops._groups import Answer, Question, Ranks, find

Tensor = torch.Tensor


class Input(NamedTuple):
    """A tensor in the program. If it has more than `dims` dimensions, the leading ones are merged
    into one, or dropped if they have one element."""
    name: str
    dims: int
    pool: str = ""  # the name in errors of a pool of blocks, which is not copied


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
    """How a tensor maps to the program's buffer."""
    name: str
    merged: int  # 0, or the number of dimensions merged with the next
    dropped: int  # leading dimensions of 1
    pool: str

    def flatten(self, tensor: Tensor) -> Tensor:
        """A view with merged dimensions, or a copy if the memory layout prevents one."""
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
    """What calls with tensors of one kind need."""
    answer: Answer
    inputs: Sequence[Seen | None]
    results: Sequence[Made]


def execute(ask: Callable[..., Asked], tensors: tuple[Tensor | None, ...],
            options: tuple[Hashable, ...], group: str) -> tuple[Tensor, ...] | None:
    """Returns new results; None if there is no plan and PyTorch has to compute them.

    `ask(ranks, *tensors, *options)`, the same object at every call, checks the arguments and omits
    tensors that are None from its inputs.
    """
    ranks = find(group)
    return ranks.calls.execute(_prepare, ranks, ask, tensors, options)


def _prepare(ranks: Ranks, ask: Callable[..., Asked], tensors: Sequence[Tensor | None],
             options: Sequence[Hashable]) -> Call:
    """Collective if the question is new."""
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
