"""The values that calls return: immutable records, which the extension makes by field name.

Names that end in `_us` are times in microseconds, in `_s` in seconds; memory is in bytes.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from harpe import _html

if TYPE_CHECKING:
    from harpe._errors import Error

_record = dataclasses.dataclass(frozen=True, kw_only=True)


class _Shown:
    """Shows a record in notebooks as one row per field."""

    def _repr_html_(self) -> str:
        return _html.table([(field.name, getattr(self, field.name))
                            for field in dataclasses.fields(self)  # type: ignore[arg-type]
                            if field.repr])


@_record
class Explanation(_Shown):
    """What the registry of diagnostics holds about a code."""
    code: str
    verdict: str  # "illegal", "unproven", "unsupported"
    message: str  # with {placeholders}
    meaning: str
    remedy: str  # or ""


@_record
class ParameterInfo(_Shown):
    name: str
    kind: str  # "integer", "bool", …
    value: str  # the default; or the name of the parameter whose value it takes


@_record
class BufferInfo(_Shown):
    name: str
    role: str  # "in", "out"
    dtype: str  # "f32", or the parameter that names it
    shape: Sequence[str]  # per dimension, in terms of the parameters
    condition: str  # for an optional input: the parameter that turns it on; or ""


@_record
class OperatorInfo:
    name: str
    summary: str
    parameters: Sequence[ParameterInfo]
    buffers: Sequence[BufferInfo]
    text: str = dataclasses.field(repr=False)  # its `.op` file, in the canonical form

    def _repr_html_(self) -> str:
        parameters = [(p.name, p.kind, p.value) for p in self.parameters]
        buffers = [(b.name, b.role, b.dtype, b.shape, b.condition) for b in self.buffers]
        return (_html.table([(self.name, self.summary)])
                + _html.table(parameters, ("parameter", "kind", "default"))
                + _html.table(buffers, ("buffer", "role", "dtype", "shape", "only with")))


@_record
class MachineInfo(_Shown):
    name: str
    summary: str
    processors: int
    levels: str  # how they are connected, innermost first: "8 nvlink x 16 rail"
    text: str = dataclasses.field(repr=False)  # its `.machine` file


@_record
class ScheduleInfo(_Shown):
    name: str
    summary: str
    refusal: "Error | None"  # why it does not apply; None if it applies


@_record
class Script:
    """The contents of a `harpe.Schedule`."""
    name: str
    mesh: str  # as the text names it
    steps: Sequence[str]
    text: str
    form: str


@_record
class HostFacts(_Shown):
    name: str
    cores: int
    vectors: Sequence[str]
    free_bytes: int | None
    products: Sequence[tuple[str, str]]  # the library that computes GEMMs, by type


@_record
class GpuFacts(_Shown):
    id: int
    name: str
    capability: str
    multiprocessors: int
    memory_bytes: int
    free_bytes: int | None
    peers: Sequence[bool]
    problem: str  # why kernels cannot run on it; or ""


@_record
class LibraryFacts(_Shown):
    name: str
    path: str  # "" if not found
    version: str
    problem: str  # why it cannot be used; or ""
    cost: str  # what does not work without the library


@_record
class TransportFacts(_Shown):
    name: str
    is_there: bool
    is_tested: bool
    ordering: str


@_record
class Doctor:
    """What this machine offers."""
    host: HostFacts
    gpus: Sequence[GpuFacts]
    libraries: Sequence[LibraryFacts]  # NVIDIA's driver first
    transports: Sequence[TransportFacts]

    def _repr_html_(self) -> str:
        return "".join(part._repr_html_() for part in
                       (self.host, *self.gpus, *self.libraries, *self.transports))


@_record
class Share(_Shown):
    """A part of a predicted time: "compute", "link", "signal", …"""
    what: str
    us: float


@_record
class Prediction(_Shown):
    """The result of simulating one execution; nothing was measured."""
    machine: str
    time_us: float
    # How far predictions of this operator's plans are from measurements, |predicted / measured -
    # 1|: the median, and the bound that nine of ten do not exceed. None if no plan was measured.
    median_error: float | None
    error_90: float | None
    critical_path: Sequence[Share] = dataclasses.field(repr=False)  # largest first; sums to time_us
    exposed_communication_us: float  # the worst rank's time waiting with nothing to compute
    peak_bytes: int  # of one rank, with its inputs and outputs


@_record
class Why(_Shown):
    """Where a plan's schedule comes from; `str()` is the answer in one sentence."""
    origin: str  # "caller", "text", "cache", "search", "rule"
    text: str
    candidates: int
    unique: int
    feasible: int
    simulated: int
    search_s: float
    runner_up: str  # the second best schedule; or ""
    runner_up_us: float
    refits: Sequence[str]  # transports replaced because the machine lacks them

    def __str__(self) -> str:
        return self.text


@_record
class PlanFacts(_Shown):
    """A plan in numbers."""
    op: str
    mesh: str
    schedule: str
    steps: Sequence[str]  # if a search found it: what it does, one line per step
    ranks: int
    tasks: int
    bytes_moved: int  # by one execution, over all ranks
    memory_bytes: int  # one rank's arena: inputs, outputs and intermediates
    flops: float  # of one execution, over all ranks
    balance: float  # the busiest rank's flops, relative to the mean
    layout: Mapping[str, str]  # as Plan.layout


@_record
class Buffer(_Shown):
    """An input or output of a plan as a whole tensor, and which rank holds which elements."""
    name: str
    role: str  # "in", "out"
    dtype: str  # "bf16"
    shape: Sequence[int]
    homes: Sequence[Sequence[tuple[slice, ...]]] = dataclasses.field(repr=False)  # by rank
    partial: bool  # ranks with the same elements hold partial results, to be added


@_record
class Certificate(_Shown):
    """What the verifier proved about a plan, for all inputs and all interleavings of ranks: every
    output equals the program's, and no execution races or blocks."""
    covers: str
    tasks: int
    order_edges: int  # signals and barriers that order tasks
    blocks_checked: int  # of outputs
    peak_bytes: int  # the largest arena of a rank; 0: unknown


@_record
class Taxes(_Shown):
    """How a predicted time divides (docs/taxes.md): five parts that add up to `time_us`."""
    schedule: str
    time_us: float
    roofline_us: float  # the busiest resource at full rate
    launch_us: float  # late starts of kernels, copies and signals
    synchronization_us: float  # barriers and waits for whole transfers
    locality_us: float  # intermediates that pass through memory
    residual_us: float  # tails, imbalance, contention
    skew_sensitivity: float  # the part of one rank's delay that delays the end
    bound: str  # the resource that sets the roofline
    refusal: "Error | None"  # why this schedule has no figures


@_record
class Candidate(_Shown):
    label: str
    named: bool  # one of `harpe.schedules`
    schedule: str = dataclasses.field(repr=False)  # its text, as `harpe.plan` accepts it
    time_us: float  # predicted
    simulated: bool  # otherwise estimated
    memory_bytes: int
    excluded: str  # why it is listed but was not chosen; or ""


@_record
class Refusal(_Shown):
    reason: str
    count: int


@_record
class Comparison(_Shown):
    """The comparison of an output with the program's reference."""
    buffer: str
    error: float  # the largest difference, relative to the scale of its row
    bound: float  # the largest difference that rounding may explain
    rows: int
    rows_checked: int


@_record
class GroupStatus(_Shown):
    """The memory of a rank's group."""
    # Memory that other ranks can access: the plans' shared arena, tensors, and signals.
    heap_bytes: int
    tensor_bytes: int  # the part of it in arrays from `Group.empty`
    executables: int


@_record
class LocalTensor(_Shown):
    """One rank's part of an input or output: the elements that the rank holds at home
    (`Plan.layout`), as one array. Along each dimension the blocks follow each other in the order of
    their indices."""
    name: str
    role: str  # "in", "out"
    dtype: str  # "bf16"
    shape: Sequence[int]  # all 0 if the rank holds no element
    # "anywhere": a dense array is used in place. "heap": other ranks read or write it, so a launch
    # copies it to or from the group's memory unless it lies there already (`Group.empty`).
    place: str
