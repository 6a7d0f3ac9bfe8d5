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
    # Their types: None for that of the first tensor, which costs less to say.
    results: Sequence[tuple[_Seen, Sequence[int], torch.dtype | None]]
    in_heap: frozenset[str]  # results that other ranks write
    launch: Callable[[Sequence[int], int], None] | None  # of dense tensors; None: there is no plan
    order: Sequence[int] | None  # of inputs and then results, as the executable has them


def execute(ask: Callable[..., Asked], tensors: Sequence[Tensor | None],
            options: tuple[Hashable, ...], group: str) -> list[Tensor] | None:
    """New results; None where there is no plan, and PyTorch's own way is to be taken.

    `ask(ranks, *tensors, *options)` checks, and leaves tensors that are None out of its inputs.
    """
    ranks = find(group)
    kind, addresses, is_dense = [ask, options], [], True
    for each in tensors:
        if each is None:
            kind.append(None)
        else:
            kind += each.shape, each.dtype, each.get_device()
            addresses.append(each.data_ptr())
            is_dense &= each.is_contiguous()
    key = tuple(kind)
    call = ranks.calls.get(key) or _prepare(ranks, key, ask, tensors, options)
    like, made = tensors[0], []
    for seen, shape, dtype in call.results:
        if seen.name in call.in_heap:
            made.append(ranks.make_result(like.device, shape, dtype))
        elif dtype is None:
            made.append(like.new_empty(shape))
        else:
            made.append(like.new_empty(shape, dtype=dtype))
    if is_dense and call.launch is not None:
        for each in made:
            addresses.append(each.data_ptr())
        if call.order is not None:
            addresses = [addresses[at] for at in call.order]
        return made if ranks.launch(call.answer, call.launch, addresses, made) else None
    return made if _launch_strided(ranks, call, tensors, made) else None


def _launch_strided(ranks: Ranks, call: Call, tensors: Sequence[Tensor | None],
                    made: Sequence[Tensor]) -> bool:
    """The same with tensors that are not dense, or without a plan."""
    inputs, kept = {}, []
    for seen, tensor in zip(call.inputs, tensors):
        if seen is not None:
            each = tensor.flatten(0, seen.merged) if seen.merged else tensor
            kept.append(each)  # perhaps a copy: it stays until the launch
            inputs[seen.name] = (each.data_ptr(), seen.dtype, seen.shape,
                                 each.stride()[seen.dropped:])
    out = {seen.name: (each.data_ptr(), seen.dtype, seen.shape, seen.stride)
           for (seen, _, _), each in zip(call.results, made)}

    def launch(given: Any, stream: int) -> None:
        call.answer.executable(given, out=out, stream=stream)

    return ranks.launch(call.answer, launch, inputs, made)


def _prepare(ranks: Ranks, key: Hashable, ask: Callable[..., Asked],
             tensors: Sequence[Tensor | None], options: tuple[Hashable, ...]) -> Call:
    """Collective, where the question is new."""
    asked = ask(ranks.size, *tensors, *options)
    inputs = iter(asked.inputs)
    answer = ranks.find_answer(asked.question, tensors[0].device)
    seen = [each if each is None else _see(*next(inputs), each.shape, each.dtype)
            for each in tensors]
    shared = ranks.find_shared(answer)
    results = [(_see(each.name, each.dims, each.shape, each.dtype), each.shape,
                None if each.dtype == tensors[0].dtype and each.name not in shared else each.dtype)
               for each in asked.results]
    names = [each.name for each in [*seen, *(result for result, _, _ in results)] if each]
    launch, order = None, None
    if answer.executable is not None:
        launch, known = answer.executable.launch_at, [*answer.executable.tensors]
        order = None if names == known else [names.index(name) for name in known]
    call = Call(answer, seen, results, shared, launch, order)
    ranks.calls[key] = call
    return call


def _see(name: str, dims: int, shape: Sequence[int], dtype: torch.dtype) -> _Seen:
    whole = torch.empty(shape, device="meta")
    more = whole.dim() - dims
    merged = more if whole.shape[:more].numel() != 1 else 0
    dropped = 0 if merged else more
    seen = whole.flatten(0, merged) if merged else whole
    return _Seen(name, TYPES[dtype], seen.shape[dropped:], seen.stride()[dropped:], merged, dropped)
