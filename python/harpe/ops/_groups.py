"""Process groups of torch as groups of Harpe, with their plans, in the order of operators
called."""

import atexit
import contextlib
import copy
import dataclasses
import datetime
import logging
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.distributed_c10d import _resolve_process_group

import harpe
from harpe import _harpe
from harpe._errors import make_refusal, refuse
from harpe.ops import _locked

ProcessGroups = dist.ProcessGroup | DeviceMesh | str

log = logging.getLogger("harpe")

TYPES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16",
           torch.bfloat16: "bf16", torch.int32: "i32", torch.int64: "i64"}
_MOST_PLANS = 64  # per group; the least recently used one is dropped
_RESULT_BYTES = 256 << 20  # per group, for results that other ranks write
_ON_MISS = "error", "fallback"
_WANTED_GROUP = "a ProcessGroup with this rank, one dimension of a DeviceMesh or a group's name"


class Question(Protocol):
    """The question of one operator: hashable, the same on all ranks of a group; `str` names it."""

    def make_plan(self, ranks: int) -> harpe.Plan:
        """Called on the first rank; the other ranks take its schedule."""
        ...

    def prove_plan(self, ranks: int, schedule: str) -> harpe.Plan:
        """Makes the plan with the first rank's schedule."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanStatus:
    """A plan in a group's cache."""
    question: str  # the operator with its shapes
    schedule: str
    launches: int
    copied_bytes: int  # between tensors and the group's memory, over all launches


@dataclasses.dataclass(frozen=True, kw_only=True)
class Miss:
    """A question without a plan, which PyTorch's own collectives and GEMMs answer."""
    question: str
    reason: str
    calls: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class RanksStatus:
    """The state of one process group on this rank."""
    name: str
    rank: int
    ranks: int
    on_miss: str
    heap_bytes: int  # memory of this rank that other ranks can access
    tensor_bytes: int  # the part of it in tensors of `empty` and in results
    plans: Sequence[PlanStatus]
    misses: Sequence[Miss]


@dataclasses.dataclass(eq=False, slots=True)
class Answer:
    """The answer to a question about tensors on a device: an executable, or why there is none."""
    question: Question
    device: torch.device
    rank: int
    executable: harpe.Executable | None = None
    error: harpe.Error | None = None
    is_refusing: bool = False  # calls without an executable raise
    has_memory: bool = False  # the group has memory for results
    calls: int = 0  # calls that PyTorch computed

    @property
    def handle(self) -> _harpe.Executable | None:
        return self.executable and self.executable._handle

    def miss(self) -> None:
        """Counts a call without an executable, or raises a copy of the error, whose traceback keeps
        the tensors of this call."""
        if self.is_refusing:
            raise copy.copy(self.error)
        self.calls += 1

    def tell_copied(self) -> None:
        """Logs, once, that results which other ranks write are copied for lack of memory."""
        if self.has_memory:
            log.warning("%s copies results that other ranks write: the group's memory for them, "
                        "which `harpe.init` gives, has no room, or the schedule needs a copy",
                        self.question)

    def note(self, error: BaseException) -> None:
        """Adds the question to a launch's error."""
        error.add_note(f"rank {self.rank} called {self.question}")


class _Exchange:
    """How the ranks of a process group exchange bytes: through the process group."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self._group = group
        self.rank, self.ranks = group.rank(), group.size()

    def all_gather(self, own: Any, /) -> list[Any]:
        everything = [None] * self.ranks
        dist.all_gather_object(everything, own, group=self._group)
        return everything


class Ranks:
    """The plans of a process group. All ranks call it with the same questions in the same order."""

    def __init__(self, group: dist.ProcessGroup, *, heap_bytes: int = 0, tensor_bytes: int = 0,
                 result_bytes: int | None = None, timeout: datetime.timedelta | None = None,
                 on_miss: str = "fallback") -> None:
        self.process_group = group
        self._name = group.group_name  # kept because a destroyed group has no name
        self.on_miss = on_miss
        self._options = dict(heap_bytes=heap_bytes, tensor_bytes=tensor_bytes,
                             result_bytes=_RESULT_BYTES if result_bytes is None else result_bytes,
                             wait_limit=(timeout or _get_timeout(group)).total_seconds())
        self._exchange = _Exchange(group)
        # By the device of this rank's tensors.
        self._groups: dict[torch.device, harpe.Group | harpe.Error] = {}
        self._answers: dict[tuple[Question, torch.device], Answer] = {}
        self.calls = _make_calls()
        self._lock = threading.RLock()

    @property
    def size(self) -> int:
        return self._exchange.ranks

    def find_answer(self, question: Question, device: torch.device) -> Answer:
        """Collective if the question is new."""
        key = question, device
        with self._lock:
            if key not in self._answers:
                _refuse_capture(question, device)
                if len(self._answers) == _MOST_PLANS:
                    self._forget(min(self._answers.values(), key=self.calls.find_last))
                self._answers[key] = self._answer(*key)
            return self._answers[key]

    def join(self, device: torch.device) -> harpe.Group:
        """Collective at the first call."""
        with self._lock:
            if device not in self._groups:
                try:
                    self._groups[device] = harpe.Group(exchange=self._exchange, gpu=device.index,
                                                       **self._options)
                except harpe.Refused as refused:
                    self._groups[device] = refused
            group = self._groups[device]
            if isinstance(group, harpe.Error):
                raise group
            return group

    def allocate(self, device: torch.device, shape: Sequence[int],
                 dtype: torch.dtype) -> torch.Tensor:
        """Allocates in the memory for tensors. Collective at the first call. Raises Refused:
        I311."""
        group = self.join(device)
        elements = math.prod(shape)
        memory = torch.from_dlpack(group.allocate(elements * dtype.itemsize)).untyped_storage()
        return torch.empty(0, dtype=dtype, device=device).set_(
            memory, 0, shape, torch.empty(shape, device="meta").stride())

    def find_groups(self) -> Sequence[harpe.Group]:
        """The groups that operators have joined so far."""
        with self._lock:
            return [group for group in self._groups.values() if isinstance(group, harpe.Group)]

    @property
    def status(self) -> RanksStatus:
        with self._lock:
            return RanksStatus(
                name=self._name, rank=self._exchange.rank,
                ranks=self._exchange.ranks, on_miss=self.on_miss,
                heap_bytes=sum(group.status.heap_bytes for group in self.find_groups()),
                tensor_bytes=sum(group.status.tensor_bytes for group in self.find_groups()),
                plans=[PlanStatus(question=str(answer.question),
                                  schedule=answer.executable.plan.schedule,
                                  launches=answer.executable.launches,
                                  copied_bytes=answer.executable.copied_bytes)
                       for answer in self._answers.values() if answer.executable],
                misses=[Miss(question=str(answer.question), reason=str(answer.error),
                             calls=answer.calls)
                        for answer in self._answers.values() if answer.error])

    def _forget(self, answer: Answer) -> None:
        del self._answers[answer.question, answer.device]
        self.calls.forget(answer)

    def _answer(self, question: Question, device: torch.device) -> Answer:
        """Collective. The first rank searches, all ranks prove, and the library compares the
        plans."""
        plan, schedule, rank = None, None, self._exchange.rank
        if rank == 0:
            plan = _catch_refusal(lambda: self._make_plan(question, device))
            schedule = plan if isinstance(plan, harpe.Refused) else print_schedule(plan)
        asked = self._exchange.all_gather((str(question), schedule))
        _compare_questions([text for text, _ in asked])
        schedule = asked[0][1]
        try:
            if isinstance(schedule, harpe.Refused):
                raise schedule
            group = self.join(device)
            if plan is None:
                plan = question.prove_plan(self._exchange.ranks, schedule)
            return Answer(question, device, rank, harpe.compile(plan, group=group),
                          has_memory=self._options["tensor_bytes" if device.type == "cpu"
                                                   else "result_bytes"] > 0)
        except harpe.Refused as refused:
            if self.on_miss == "fallback":
                log.warning("%s has no plan, PyTorch's own way runs: %s", question, refused)
            # A copy has no traceback, which would keep the tensors of the call.
            return Answer(question, device, rank, error=copy.copy(refused),
                          is_refusing=self.on_miss == "error")

    def _make_plan(self, question: Question, device: torch.device) -> harpe.Plan:
        if device.type not in ("cpu", "cuda"):
            raise refuse("tensors", "on the CPU or on GPUs of NVIDIA's", f"on `{device}`")
        ranks = self._exchange.ranks
        key = f"{question} on {ranks} rank{'s' * (ranks != 1)}, {device.type}"
        locked = _locked.find(key)
        plan = question.prove_plan(ranks, locked) if locked else question.make_plan(ranks)
        if locked is None:
            _locked.add(key, print_schedule(plan))
        return plan


def _make_calls() -> _harpe.Calls:
    """Allocates as graphs of `torch.compile` do, in a fraction of torch.empty's time."""
    guards = torch._C._dynamo.guards
    return _harpe.Calls(torch.Tensor, guards._empty_strided_cpu, guards._empty_strided_cuda,
                        torch.cuda._exchange_device)


def print_schedule(plan: harpe.Plan) -> str:
    """The script alone, without its normal form."""
    text = plan.show("schedule")
    return text[:text.index("\n}") + 3]


def find(name: str) -> Ranks:
    """Finds a process group by its name. After a group is destroyed its name may be used again, so
    the group object itself is compared."""
    group = _resolve_process_group(name)
    known = _known.get(name)
    if known is not None and known.process_group is group:
        return known
    with _lock:
        known = _known.get(name)
        if known is None or known.process_group is not group:
            known = _known[name] = Ranks(group)
        return known


def find_name(group: ProcessGroups) -> str:
    """The name that operators' schemas take. Raises Refused: I311 no group, or one without this
    rank."""
    if isinstance(group, dist.ProcessGroup):
        return group.group_name
    if isinstance(group, str):
        if not torch.compiler.is_compiling():
            _resolve_name(group)
        return group
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise refuse("group", "one dimension of a DeviceMesh",
                         f"a DeviceMesh of {group.ndim} dimensions")
        group = group.get_group()
    if not isinstance(group, dist.ProcessGroup):
        raise refuse("group", _WANTED_GROUP, f"{group!r}")
    return group.group_name


def _resolve_name(name: str) -> None:
    try:
        _resolve_process_group(name)
    except (LookupError, RuntimeError, ValueError):
        raise refuse("group", _WANTED_GROUP, f"`{name}`") from None


def count_ranks(name: str) -> int:
    return _resolve_process_group(name).size()


def init(group: ProcessGroups, *, heap: int = 0, tensors: int = 0, results: int | None = None,
         timeout: float | None = None, on_miss: str = "fallback") -> None:
    """Sets options of a group. Collective, and optional: the first operator uses the defaults.

    `heap`: bytes of memory that other ranks can access, reserved at once; plans that need more
    extend it. `tensors`: bytes of such memory for tensors (`empty`) and, on CPU ranks, for results
    that other ranks write. `results`: on GPUs, bytes for such results; None is 256 MiB. Results
    without room are copied. Of `tensors` and `results` the largest value of all ranks counts; the
    first operator with tensors reserves them.
    `timeout`: seconds that an operator waits for another rank; None is the process group's timeout.
    `on_miss`: what happens if no plan can be made. "fallback": PyTorch's own collectives and GEMMs
    run; this is logged once per operator and shapes, and `status` lists it. "error": the operator
    raises the reason.
    Raises Refused: I311 an argument, or the group was already joined; the errors of `harpe.Group`.
    """
    if on_miss not in _ON_MISS:
        raise refuse("on_miss", " or ".join(f"'{word}'" for word in _ON_MISS), f"{on_miss!r}")
    name = find_name(group)
    process_group = _resolve_process_group(name)
    limit = None if timeout is None else datetime.timedelta(seconds=timeout)
    with _lock:
        known = _known.get(name)
        if known is not None and known.process_group is process_group:
            raise refuse("group", "a group that no operator has used", f"`{name}`, which is in use")
        made = _known[name] = Ranks(process_group, heap_bytes=heap, tensor_bytes=tensors,
                                    result_bytes=results, timeout=limit, on_miss=on_miss)
    if heap or tensors or results:
        made.join(_device_of(process_group))


def status() -> Sequence[RanksStatus]:
    """Plans, launches, copies and PyTorch fallbacks of every process group that operators have
    used."""
    with _lock:
        known = list(_known.values())
    return [ranks.status for ranks in known]


def empty(shape: Sequence[int], *, dtype: torch.dtype | None = None, group: ProcessGroups,
          device: torch.device | str | None = None) -> torch.Tensor:
    """An uninitialised tensor in memory of this rank that the other ranks of `group` can access.

    Operators use it in place where they would copy another tensor: as an input that other ranks
    read. `init(group, tensors=…)` sets the size of that memory. A tensor's memory is free again,
    for later work of the same stream, when the tensor and its views end. `device`: by default the
    current GPU, if the group has GPUs and this machine has one, or the CPU.

    On CPU ranks each rank may use such tensors freely. On GPUs, a tensor of a call must have the
    same offset in that memory on all ranks, or be outside it on all ranks; otherwise the call is
    refused (I311). Offsets are equal if ranks make and free the same tensors in the same order.
    Raises Refused: I311 a group, or no free range of the memory is that long.
    """
    name = find_name(group)
    device = torch.device(device) if device else _device_of(_resolve_process_group(name))
    dtype = dtype or torch.get_default_dtype()
    elements = math.prod(shape)
    if elements == 0:
        return torch.empty(shape, dtype=dtype, device=device)
    return find(name).allocate(device, shape, dtype)


@contextlib.contextmanager
def warming(group: ProcessGroups) -> Iterator[None]:
    """Collective: inside the context, operators of the group make missing plans and kernels,
    execute nothing, and return 0. Run a model with example inputs in it before its first step or
    its capture.

        with harpe.warming(tp): model(example)
    """
    calls = find(find_name(group)).calls
    calls.warming += 1
    try:
        yield
    finally:
        calls.warming -= 1


def check(group: ProcessGroups) -> None:
    """Raises the failure that ended the group's operators, if it is already known: Fault, or
    Refused if ranks called different operators. Later operators raise the same until `reset`."""
    for each in find(find_name(group)).find_groups():
        each.check()


def reset(group: ProcessGroups) -> None:
    """Collective, after a failure: abandons the failed executions and clears faults and signals.

    Raises Fault: N010 a rank does not take part.
    """
    for each in find(find_name(group)).find_groups():
        each.reset()


def _compare_questions(texts: Sequence[str]) -> None:
    for rank, text in enumerate(texts):
        if text != texts[0]:
            notes = [f"rank 0 calls {texts[0]}", f"rank {rank} calls {text}"]
            refused = make_refusal("N015", rank=rank)
            raise harpe.Refused("\n  note: ".join([refused.text, *notes]), refused.code,
                                refused.message, notes, refused.remedy)


def _catch_refusal(make: Callable[[], harpe.Plan]) -> harpe.Plan | harpe.Refused:
    try:
        return make()
    except harpe.Refused as refused:
        return refused


def _device_of(group: dist.ProcessGroup) -> torch.device:
    # gloo supports both devices; an NCCL group has only GPUs.
    if torch.cuda.is_available() and any(each.type == "cuda" for each in group._device_types):
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def _refuse_capture(question: Question, device: torch.device) -> None:
    """Refuses a new question inside a capture, because all ranks make plans together."""
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        raise refuse("operator", "called once before it is captured",
                     f"a first call while the stream is captured: {question}")


def _get_timeout(group: dist.ProcessGroup) -> datetime.timedelta:
    devices = {device.type: device for device in group._device_types}
    backend = group._get_backend(devices.get("cpu", next(iter(devices.values()))))
    return backend.options._timeout


_lock = threading.Lock()
_known: dict[str, Ranks] = {}
atexit.register(_known.clear)  # before the interpreter unloads the extension
