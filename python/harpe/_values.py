"""The values that calls return: immutable records, which the extension makes by their fields.

Times are in microseconds where a name ends in `_us`, in seconds in `_s`; memory is in bytes.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from harpe import _html

if TYPE_CHECKING:
    from harpe._errors import Error

_record = dataclasses.dataclass(frozen=True, kw_only=True)


class _Shown:
    """Records in notebooks: a row per field."""

    def _repr_html_(self) -> str:
        return _html.table([(field.name, getattr(self, field.name))
                            for field in dataclasses.fields(self)  # type: ignore[arg-type]
                            if field.repr])


@_record
class Explanation(_Shown):
    """What is registered about the code of an error."""
    code: str
    verdict: str  # "illegal", "unproven", "unsupported"
    message: str  # with {placeholders}
    meaning: str
    remedy: str  # or ""


@_record
class ParameterInfo(_Shown):
    name: str
    kind: str  # "integer", "bool", …
    value: str  # the default; the name of another parameter where it follows that one


@_record
class BufferInfo(_Shown):
    name: str
    role: str  # "in", "out"
    dtype: str  # "f32", or the parameter that names it
    shape: Sequence[str]  # per dimension, in terms of the parameters
    condition: str  # of an input: the parameter that turns it on; or ""


@_record
class OperatorInfo:
    name: str
    summary: str
    parameters: Sequence[ParameterInfo]
    buffers: Sequence[BufferInfo]
    text: str = dataclasses.field(repr=False)  # of its `.op` file, in the canonical form

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
    levels: str  # what joins them, innermost first: "8 nvlink x 16 rail"
    text: str = dataclasses.field(repr=False)  # of its `.machine` file


@_record
class ScheduleInfo(_Shown):
    name: str
    summary: str
    refusal: "Error | None"  # why it does not apply


@_record
class Script:
    """What the library knows of a `harpe.Schedule`."""
    name: str
    mesh: str  # as the text calls it
    steps: Sequence[str]
    text: str
    form: str


@_record
class HostFacts(_Shown):
    name: str
    cores: int
    vectors: Sequence[str]
    free_bytes: int | None
    products: Sequence[tuple[str, str]]  # what multiplies matrices, by type


@_record
class GpuFacts(_Shown):
    id: int
    name: str
    capability: str
    multiprocessors: int
    memory_bytes: int
    free_bytes: int | None
    peers: Sequence[bool]
    problem: str  # why kernels do not run on it; or ""


@_record
class LibraryFacts(_Shown):
    name: str
    path: str  # "" where it was not found
    version: str
    problem: str  # why it cannot be used; or ""
    cost: str  # what does not work without it


@_record
class TransportFacts(_Shown):
    name: str
    is_there: bool
    is_tested: bool
    ordering: str


@_record
class Doctor:
    """What this machine can do."""
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
    """What a simulation of one execution says; nothing was measured."""
    machine: str
    time_us: float
    # How far predicted times of the operator's plans are from measured ones, |predicted / measured
    # - 1|: the median, and what nine of ten do not exceed. None where no plan was measured.
    median_error: float | None
    error_90: float | None
    critical_path: Sequence[Share] = dataclasses.field(repr=False)  # most first; adds up
    exposed_communication_us: float  # of the worst rank: nothing to compute while it waits
    peak_bytes: int  # of one rank, its inputs and outputs included


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
    refits: Sequence[str]  # transfers that the machine makes otherwise than the schedule

    def __str__(self) -> str:
        return self.text


@_record
class PlanFacts(_Shown):
    """A plan in figures."""
    op: str
    mesh: str
    schedule: str
    steps: Sequence[str]  # where a search found it: what it does, a line each
    ranks: int
    tasks: int
    bytes_moved: int  # by one execution, over all ranks
    memory_bytes: int  # of one rank's arena: inputs, outputs and all in between
    flops: float  # of one execution, over all ranks
    balance: float  # the busiest rank's share of them, relative to the mean
    layout: Mapping[str, str]  # as Plan.layout


@_record
class Buffer(_Shown):
    """An input or output of a plan, as a whole tensor, and where its elements live."""
    name: str
    role: str  # "in", "out"
    dtype: str  # "bf16"
    shape: Sequence[int]
    homes: Sequence[Sequence[tuple[slice, ...]]] = dataclasses.field(repr=False)  # by rank
    partial: bool  # ranks with the same elements hold partial results, whose sum is meant


@_record
class Certificate(_Shown):
    """What was proved of a plan for all inputs and all interleavings of ranks: every output is the
    program's, no execution races or blocks."""
    covers: str
    tasks: int
    order_edges: int  # signals and barriers that order them
    blocks_checked: int  # of outputs
    peak_bytes: int  # the largest arena of a rank; 0: not known


@_record
class Taxes(_Shown):
    """How a predicted time divides (docs/taxes.md): the five parts add up to `time_us`."""
    schedule: str
    time_us: float
    roofline_us: float  # the busiest resource at full rate
    launch_us: float  # kernels, copies and signals that start late
    synchronization_us: float  # barriers and waits for whole transfers
    locality_us: float  # intermediates that pass through memory
    residual_us: float  # tails, imbalance, contention
    skew_sensitivity: float  # how much of one rank's delay the whole execution takes over
    bound: str  # the resource of the roofline
    refusal: "Error | None"  # why there are no figures of this schedule


@_record
class Candidate(_Shown):
    label: str
    named: bool  # one of `harpe.schedules`
    schedule: str = dataclasses.field(repr=False)  # its text, as `harpe.plan` takes it
    time_us: float  # predicted
    simulated: bool  # else estimated
    memory_bytes: int
    excluded: str  # why it is listed and not chosen; or ""


@_record
class Refusal(_Shown):
    reason: str
    count: int


@_record
class Comparison(_Shown):
    """An output against the program's reference."""
    buffer: str
    error: float  # the largest difference, relative to the scale of its row
    bound: float  # what rounding may explain
    rows: int
    rows_checked: int


@_record
class GroupStatus(_Shown):
    """What a rank's group holds."""
    # Of memory that other ranks reach: what plans use in turn, tensors, and signals.
    heap_bytes: int
    tensor_bytes: int  # of them, in arrays of `Group.empty`
    executables: int


@_record
class LocalTensor(_Shown):
    """What one rank gives or takes of an input or output: the elements that it holds at home
    (`Plan.layout`) as one array, the blocks one behind the other in the order of their indices
    along each dimension."""
    name: str
    role: str  # "in", "out"
    dtype: str  # "bf16"
    shape: Sequence[int]  # all 0 where the rank holds nothing of it
    # "anywhere": dense arrays are used where they are. "heap": other ranks read or write it, so it
    # is copied to or from the group's memory, unless it lies there (`Group.empty`).
    place: str
