"""What each call of an operator does: checks and a question once for tensors of a kind, then only
addresses."""

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import torch

from harpe.ops._groups import TYPES, Answer, Question, Ranks, find

Tensor = torch.Tensor


class Result(NamedTuple):
    """`dims`: as many dimensions as the program has, as for `Asked.inputs`."""
    name: str
    shape: Sequence[int]
    dims: int
    dtype: torch.dtype


class Asked(NamedTuple):
    """`inputs`: name and dimensions of each tensor in the program. Where a tensor has more, those
    before are one, or none where they have one element."""
    question: Question
    inputs: Sequence[tuple[str, int]]
    results: Sequence[Result]


class _Seen(NamedTuple):
    """A tensor as the program sees it."""
    name: str
    dtype: str
    shape: Sequence[int]
    stride: Sequence[int]  # of a dense one
    merged: int  # 0, or as many dimensions as become one with the next
    dropped: int  # leading dimensions of 1


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """What tensors of a kind need on each call."""
    answer: Answer
    inputs: Sequence[_Seen | None]
    results: Sequence[tuple[_Seen, Sequence[int], torch.dtype]]
    in_heap: frozenset[str]  # results that other ranks write


def execute(ask: Callable[..., Asked], tensors: Sequence[Tensor | None],
            options: tuple[Hashable, ...], group: str) -> list[Tensor] | None:
    """New results; None where there is no plan, and PyTorch's own way is to be taken.

    `ask(ranks, *tensors, *options)` checks, and leaves tensors that are None out of its inputs.
    """
    ranks = find(group)
    key = ask, options, *[each if each is None else (each.shape, each.dtype, each.device)
                          for each in tensors]
    call = ranks.calls.get(key) or _prepare(ranks, key, ask, tensors, options)
    like, made, merged, inputs, out = tensors[0], [], [], {}, {}
    for (name, text, seen, stride, _, _), shape, dtype in call.results:
        each = (ranks.make_result(like.device, shape, dtype) if name in call.in_heap else
                like.new_empty(shape, dtype=dtype))
        made.append(each)
        out[name] = each.data_ptr(), text, seen, stride
    for each, tensor in zip(call.inputs, tensors):
        if each is not None:
            if each.merged:
                tensor = tensor.flatten(0, each.merged)
                merged.append(tensor)  # perhaps a copy: it stays until the launch
            stride = tensor.stride()
            inputs[each.name] = (tensor.data_ptr(), each.dtype, each.shape,
                                 stride[each.dropped:] if each.dropped else stride)
    return made if ranks.launch(call.answer, inputs, out, made) else None


def _prepare(ranks: Ranks, key: Hashable, ask: Callable[..., Asked],
             tensors: Sequence[Tensor | None], options: tuple[Hashable, ...]) -> Call:
    """Collective, where the question is new."""
    asked = ask(ranks.size, *tensors, *options)
    inputs = iter(asked.inputs)
    answer = ranks.find_answer(asked.question, tensors[0].device)
    call = Call(answer,
                [each if each is None else _see(*next(inputs), each.shape, each.dtype)
                 for each in tensors],
                [(_see(each.name, each.dims, each.shape, each.dtype), each.shape, each.dtype)
                 for each in asked.results], ranks.find_shared(answer))
    ranks.calls[key] = call
    return call


def _see(name: str, dims: int, shape: Sequence[int], dtype: torch.dtype) -> _Seen:
    whole = torch.empty(shape, device="meta")
    more = whole.dim() - dims
    merged = more if whole.shape[:more].numel() != 1 else 0
    dropped = 0 if merged else more
    seen = whole.flatten(0, merged) if merged else whole
    return _Seen(name, TYPES[dtype], seen.shape[dropped:], seen.stride()[dropped:], merged, dropped)
