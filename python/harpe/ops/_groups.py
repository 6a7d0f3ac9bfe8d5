"""Process groups of torch as groups of Harpe: their plans, in the order of the operators called."""

import atexit
import contextlib
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
_MOST_PLANS = 64  # of one group; the one that was used longest ago makes room
_ON_MISS = "error", "fallback"
_WANTED_GROUP = "a ProcessGroup with this rank, one dimension of a DeviceMesh or a group's name"


class Question(Protocol):
    """What one operator asks for: hashable, the same on all ranks of a group; `str` names it."""

    def make_plan(self, ranks: int) -> harpe.Plan:
        """On the first rank, whose schedule the others take."""
        ...

    def prove_plan(self, ranks: int, schedule: str) -> harpe.Plan:
        """With the first rank's schedule."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanStatus:
    """A plan that a group keeps."""
    question: str  # the operator with its shapes
    schedule: str
    launches: int
    copied_bytes: int  # between tensors and the group's memory, of all launches


@dataclasses.dataclass(frozen=True, kw_only=True)
class Miss:
    """A question that has no plan: PyTorch's own collectives and products answer it."""
    question: str
    reason: str
    calls: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class RanksStatus:
    """What one process group has, as this rank knows it."""
    name: str
    rank: int
    ranks: int
    on_miss: str
    heap_bytes: int  # memory of this rank that others reach
    tensor_bytes: int  # of it, in tensors of `empty` and in results
    plans: Sequence[PlanStatus]
    misses: Sequence[Miss]


@dataclasses.dataclass(eq=False, slots=True)
class Answer:
    """To a question about tensors on a device: an executable, or why there is none."""
    question: Question
    device: torch.device
    rank: int
    executable: harpe.Executable | None = None
    error: harpe.Error | None = None
    is_refusing: bool = False  # calls without an executable
    has_memory: bool = False  # the group, for results
    calls: int = 0  # that PyTorch's own way has answered

    @property
    def handle(self) -> _harpe.Executable | None:
        return self.executable and self.executable._handle

    def miss(self) -> None:
        """A call without an executable."""
        if self.is_refusing:
            raise self.error
        self.calls += 1

    def tell_copied(self) -> None:
        """Of results that other ranks write, the first time that there is no room for them."""
        if self.has_memory:
            log.warning("%s copies results that other ranks write: the group's memory for them, "
                        "which `harpe.init` gives, has no room, or the schedule needs a copy",
                        self.question)

    def note(self, error: BaseException) -> None:
        """In an error of a launch."""
        error.add_note(f"rank {self.rank} called {self.question}")


class _Exchange:
    """How the ranks of a process group meet: through the group itself."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self._group = group
        self.rank, self.ranks = group.rank(), group.size()

    def all_gather(self, own: Any, /) -> list[Any]:
        everything = [None] * self.ranks
        dist.all_gather_object(everything, own, group=self._group)
        return everything


class Ranks:
    """A process group's plans. All ranks call it with the same questions in the same order."""

    def __init__(self, group: dist.ProcessGroup, *, heap_bytes: int = 0, tensor_bytes: int = 0,
                 result_bytes: int = 0, timeout: datetime.timedelta | None = None,
                 on_miss: str = "fallback") -> None:
        self.process_group = group
        self._name = group.group_name  # which a destroyed group has no more
        self.on_miss = on_miss
        self._options = dict(heap_bytes=heap_bytes, tensor_bytes=tensor_bytes,
                             result_bytes=result_bytes,
                             wait_limit=(timeout or _get_timeout(group)).total_seconds())
        self._exchange = _Exchange(group)
        # By the device that this rank's tensors are on.
        self._groups: dict[torch.device, harpe.Group | harpe.Error] = {}
        self._answers: dict[tuple[Question, torch.device], Answer] = {}
        self.calls = _make_calls()
        self._lock = threading.RLock()

    @property
    def size(self) -> int:
        return self._exchange.ranks

    def find_answer(self, question: Question, device: torch.device) -> Answer:
        """Collective, where the question is new."""
        key = question, device
        with self._lock:
            if key not in self._answers:
                _refuse_capture(question, device)
                if len(self._answers) == _MOST_PLANS:
                    self._forget(min(self._answers.values(), key=self.calls.find_last))
                self._answers[key] = self._answer(*key)
            return self._answers[key]

    def join(self, device: torch.device) -> harpe.Group:
        """Collective, the first time."""
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
        """In the memory for tensors. Collective, the first time. Raises Refused: I311."""
        group = self.join(device)
        elements = math.prod(shape)
        memory = torch.from_dlpack(group.allocate(elements * dtype.itemsize)).untyped_storage()
        return torch.empty(0, dtype=dtype, device=device).set_(
            memory, 0, shape, torch.empty(shape, device="meta").stride())

    def find_groups(self) -> Sequence[harpe.Group]:
        """Those that operators have joined so far."""
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
        """Collective. The first rank searches, all prove, and the library compares the plans."""
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
            return Answer(question, device, rank, error=refused,
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
    """It allocates as graphs of `torch.compile` do, in a fraction of torch.empty's time."""
    guards = torch._C._dynamo.guards
    return _harpe.Calls(torch.Tensor, guards._empty_strided_cpu, guards._empty_strided_cuda,
                        torch.cuda._exchange_device)


def print_schedule(plan: harpe.Plan) -> str:
    """The script alone, without the normal form that it makes."""
    text = plan.show("schedule")
    return text[:text.index("\n}") + 3]


def find(name: str) -> Ranks:
    """Of a process group by its name. A name may be used again once its group has been destroyed,
    so that the group itself is compared."""
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
    """What schemas of operators hold. Raises Refused: I311 no group, or one without this rank."""
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


def init(group: ProcessGroups, *, heap: int = 0, tensors: int = 0, results: int = 0,
         timeout: float | None = None, on_miss: str = "fallback") -> None:
    """Collective, and optional: the first operator does it with the defaults.

    `heap`: bytes of memory that other ranks reach, taken at once; more is taken as plans need it.
    `tensors`: bytes of such memory for tensors (`empty`) and, on CPU ranks, for results that other
    ranks write. `results`: on GPUs, bytes of it for such results. Of both the most of all ranks
    counts, and the first operation with tensors takes them.
    `timeout`: seconds that an operator waits for another rank; None is the process group's.
    `on_miss`: what happens where a plan cannot be made. "fallback": PyTorch's own collectives and
    products run; that is logged once per operator and shapes, and listed by `status`. "error": the
    operator raises why.
    Raises Refused: I311 an argument, or a group that is there already; those of `harpe.Group`.
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
    """Of every process group that operators have used: plans, launches, copies, and what PyTorch's
    own way answers."""
    with _lock:
        known = list(_known.values())
    return [ranks.status for ranks in known]


def empty(shape: Sequence[int], *, dtype: torch.dtype | None = None, group: ProcessGroups,
          device: torch.device | str | None = None) -> torch.Tensor:
    """A tensor in memory of this rank that the other ranks of `group` reach, of any content.

    Operators use it where it is, where they would copy another one: inputs that other ranks read.
    `init(group, tensors=…)` says how much of that memory there is; a tensor's is free again, for
    later work of the same stream, once the tensor and its views are. `device`: by default the
    current GPU, if the group has GPUs and this machine has one, or the CPU.

    On CPU ranks each rank may use such tensors as it likes. On GPUs the tensors of a call are at
    the same place of that memory on all ranks, which they are where ranks make and free the same
    ones in the same order, or on none: else the call is refused (I311).
    Raises Refused: I311 a group, or no free piece of the memory is as long.
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
    """Collective: inside, operators of the group make the plans and kernels that they lack, execute
    nothing, and return 0. Run a model with examples in it before its first step or its capture.

        with harpe.warming(tp): model(example)
    """
    calls = find(find_name(group)).calls
    calls.warming += 1
    try:
        yield
    finally:
        calls.warming -= 1


def check(group: ProcessGroups) -> None:
    """Raises what ended the group's operators, as far as is known now: Fault, or Refused where
    ranks called different operators. Later operators raise the same, until `reset`."""
    for each in find(find_name(group)).find_groups():
        each.check()


def reset(group: ProcessGroups) -> None:
    """Collective, after a failure: gives up what is under way and begins anew.

    Raises Fault: N010 a rank does not come.
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
    # gloo has both; a group of NCCL has no other.
    if torch.cuda.is_available() and any(each.type == "cuda" for each in group._device_types):
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def _refuse_capture(question: Question, device: torch.device) -> None:
    """Plans are made by all ranks together, which a capture must not see."""
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        raise refuse("operator", "called once before it is captured",
                     f"a first call while the stream is captured: {question}")


def _get_timeout(group: dist.ProcessGroup) -> datetime.timedelta:
    devices = {device.type: device for device in group._device_types}
    backend = group._get_backend(devices.get("cpu", next(iter(devices.values()))))
    return backend.options._timeout


_lock = threading.Lock()
_known: dict[str, Ranks] = {}
atexit.register(_known.clear)  # before the interpreter takes the extension down
