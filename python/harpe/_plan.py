"""Plans and the calls about them."""

import dataclasses
import functools
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harpe import _dtypes, _harpe, _html
from harpe._errors import Refused, make_refusal
from harpe._question import (Cache, Homes, Progress, Text, call_options, question, seconds,
                             text_of)
from harpe._values import (Buffer, Candidate, Certificate, PlanFacts, Prediction, Refusal, Share,
                           Taxes, Why)

_LAUNCHES = ("graph", "host")


class Plan:
    """What every rank does, step by step, to compute one operator on one mesh.

    Immutable; threads may share one. `harpe.plan`, `harpe.tune` and `harpe.load` make plans.
    """

    def __init__(self, handle: _harpe.Plan) -> None:
        self._handle = handle

    @functools.cached_property
    def facts(self) -> PlanFacts:
        """The plan in numbers."""
        return self._handle.facts

    @property
    def op(self) -> str:
        return self.facts.op

    @property
    def mesh(self) -> str:
        return self.facts.mesh

    @property
    def schedule(self) -> str:
        """Its schedule's name; `show("schedule")` is its text."""
        return self.facts.schedule

    @property
    def ranks(self) -> int:
        return self.facts.ranks

    @property
    def memory_bytes(self) -> int:
        """Of one rank: inputs, outputs and intermediates."""
        return self.facts.memory_bytes

    @functools.cached_property
    def predicted(self) -> Prediction | None:
        """What one execution costs on the plan's machine; None if it has no machine."""
        return self._handle.predicted

    @property
    def predicted_us(self) -> float | None:
        return None if self.predicted is None else self.predicted.time_us

    @functools.cached_property
    def why(self) -> Why:
        """Where the schedule comes from; `str(plan.why)` is one sentence."""
        return self._handle.why

    @functools.cached_property
    def buffers(self) -> Mapping[str, Buffer]:
        """Inputs, then outputs, by name."""
        return {buffer.name: buffer for buffer in self._handle.buffers}

    @property
    def layout(self) -> Mapping[str, str]:
        """Which positions a rank holds, for each axis of inputs and outputs: "contiguous" or
        "zigzag", as in `harpe.plan`; "whole" for all positions; or "other"."""
        return self.facts.layout

    def positions(self, buffer: str, rank: int) -> tuple[np.ndarray, ...]:
        """The part of an input or output that a rank holds: per dimension its indices in the whole
        array. `q[np.ix_(*plan.positions("q", rank))]` is the rank's own array.

        Raises Refused: I301, I305 no such input or output; I311 no such rank.
        """
        return tuple(np.concatenate([np.arange(run.start, run.stop) for run in dimension]
                                    or [np.arange(0)])
                     for dimension in _harpe.positions(self._handle, buffer, rank))

    @functools.cached_property
    def certificate(self) -> Certificate:
        """What the verifier proved when the plan was made."""
        return self._handle.certificate

    def show(self, stage: str = "plan") -> str:
        """A text of the plan that can be read back: "program" (`.op`), "schedule" (`.sched`),
        "plan", or "launches" for the launch plan of one H200 per rank.

        Raises Refused, for launches only: G001 a build without the CUDA back end, G0xx the GPUs
        cannot execute the plan.
        """
        return _harpe.show(self._handle, stage)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan's text to a file that `harpe.load` and the command line can read."""
        pathlib.Path(path).write_text(self.show(), encoding="utf-8")

    def simulate(self, machine: Text = "", *, launch: str = "graph",
                 delay: tuple[int, float] | None = None) -> "Simulation":
        """Predicts one execution on a machine; executes nothing.

        `machine`: a name, a text or a file, as for `harpe.plan`; "" is the plan's own machine, or
        the smallest shipped one that the plan fits on. `launch`: "graph" launches all kernels at
        once, "host" one by one. `delay`: (rank, µs by which it starts late).
        Raises Refused: M1xx the plan does not fit the machine; U109 a delay of no rank.
        """
        if launch not in _LAUNCHES:
            raise ValueError(f"launch must be one of {', '.join(_LAUNCHES)}, not {launch!r}")
        asked = text_of(machine), launch == "host", delay
        prediction, _ = _harpe.simulate(self._handle, *asked, trace=False)
        return Simulation(prediction, self._handle, *asked)

    def taxes(self, machine: Text = "") -> Taxes:
        """How the predicted time divides into causes. `machine` as for `simulate`."""
        return _harpe.taxes(self._handle, text_of(machine))

    def shard(self, name: str, array: Any, rank: int) -> np.ndarray:
        """Copies the part that a rank holds at home out of a whole input or output: a new dense
        array of the buffer's type, as the rank's executable takes it.

        `array`: whole, with the shape in `buffers`, of a kind that `harpe.Executable` accepts;
        elements are rounded once if types differ. Raises Refused: I301 no such input or output;
        I311 the array or the rank. ModuleNotFoundError: bf16 without ml_dtypes.
        """
        dtype, shape, elements = _harpe.shard(self._handle, name, array, rank)
        return np.frombuffer(elements, _dtypes.exact(dtype)).reshape(shape)

    def unshard(self, name: str, parts: Sequence[Any]) -> np.ndarray:
        """Joins the parts that the ranks hold, in rank order, into the whole array: a new array of
        the buffer's type, as `harpe.run` returns it.

        Raises Refused: I301 no such input or output; I311 a part, or the number of parts.
        """
        buffer = self.buffers.get(name)
        if buffer is None:
            raise make_refusal("I301", name=name, program=self.op, hint="",
                               known=", ".join(f"`{each}`" for each in self.buffers))
        if len(parts) != self.ranks:
            raise make_refusal("I311", argument="parts", found=len(parts),
                               wanted=f"a part of each of the plan's {self.ranks} ranks")
        whole = np.empty(tuple(buffer.shape), _dtypes.widened(buffer.dtype))
        for rank, part in enumerate(parts):
            _harpe.unshard(self._handle, name, part, rank, whole)
        return whole

    def draw(self) -> str:
        """A drawing in characters: one column per rank, one row per step.

        Raises Refused: U121 more ranks than columns.
        """
        return _harpe.draw(self._handle, svg=False)

    def report(self, machine: Text = "") -> str:
        """An HTML page that needs no network. `machine` as for `simulate`."""
        return _harpe.report(self._handle, text_of(machine))

    def __repr__(self) -> str:
        memory = f"{self.memory_bytes / 2**20:,.1f} MiB a rank"
        time = ("" if self.predicted is None else
                f", predicted {_with_error(self.predicted)} on {self.predicted.machine}")
        return f"<harpe.Plan {self.op} on {self.mesh}: {self.schedule}{time}, {memory}>"

    def _repr_svg_(self) -> str | None:
        try:
            return _harpe.draw(self._handle, svg=True)
        except Refused:  # too many ranks for a drawing
            return None

    def _repr_html_(self) -> str | None:
        try:
            return _html.frame(self.report())
        except Refused:  # no shipped machine is large enough
            return None


def _with_error(prediction: Prediction) -> str:
    """The time, with the error bound that nine of ten measured plans of the operator keep."""
    time = f"{prediction.time_us:,.1f} µs"
    if prediction.error_90 is None:
        return time
    return f"{time} ± {100 * prediction.error_90:.0f} %"


class Simulation:
    """The predicted cost of one execution of a plan on a machine."""

    def __init__(self, prediction: Prediction, handle: _harpe.Plan, machine: str,
                 host_launches: bool, delay: tuple[int, float] | None) -> None:
        self.prediction = prediction
        self._handle = handle
        self._asked = machine, host_launches, delay

    @property
    def machine(self) -> str:
        return self.prediction.machine

    @property
    def time_us(self) -> float:
        return self.prediction.time_us

    @property
    def critical_path(self) -> Sequence[Share]:
        """The time by cause, largest first; adds up to `time_us`."""
        return self.prediction.critical_path

    @property
    def exposed_communication_us(self) -> float:
        """The worst rank's time waiting with nothing to compute."""
        return self.prediction.exposed_communication_us

    @property
    def peak_bytes(self) -> int:
        """Of one rank, with its inputs and outputs."""
        return self.prediction.peak_bytes

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the timeline as JSON, for Perfetto or chrome://tracing."""
        _, trace = _harpe.simulate(self._handle, *self._asked, trace=True)
        pathlib.Path(path).write_text(trace, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<harpe.Simulation {_with_error(self.prediction)}, predicted on {self.machine}>"

    def _repr_html_(self) -> str:
        return self.prediction._repr_html_() + _html.table(
            [(share.what, share.us) for share in self.critical_path], ("critical path", "µs"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tuned:
    """The result of a search."""
    best: Plan | None  # proved; None if the ranks are too many to make a plan
    candidates: int  # in the space
    unique: int
    feasible: int  # those that fit the memory
    pruned: int  # excluded by lower bounds of their times
    estimated: int
    simulated: int
    search_s: float
    complete: bool  # False: the budget ended it
    known_since: str  # the date of the cached answer that the search started from; or ""
    top: Sequence[Candidate] = dataclasses.field(repr=False)  # best first
    baselines: Sequence[Candidate] = dataclasses.field(repr=False)  # named schedules, best first
    refused: Sequence[Refusal] = dataclasses.field(repr=False)

    def _repr_html_(self) -> str:
        rows = [(c.label, c.time_us, c.memory_bytes, c.excluded) for c in self.top]
        return (f"<p>{self.candidates:,} candidates, {self.feasible:,} feasible, "
                f"{self.search_s:.2f} s</p>"
                + _html.table(rows, ("schedule", "predicted µs", "bytes of a rank", "excluded")))


def plan(op: Text, /, *, mesh: str, machine: Text = "", schedule: Text = "auto",
         homes: Homes = None, layout: str = "any", cache: Cache = True,
         patience: float | None = None, progress: Progress = None, **parameters: object) -> Plan:
    """Makes a proved plan of an operator; executes nothing.

    `op`: a name from `harpe.operators()`, a `harpe.Program`, the text of a `.op` program, or the
    path of one.
    `mesh`: named axes of the ranks, major first: "cp=8", "node=2,gpu=4".
    `machine`: a name from `harpe.machines()`, the text of a `.machine` file, or its path. ""
    predicts no time, and a search then uses the smallest shipped machine that the mesh fits on.
    `schedule`: a name from `harpe.schedules()`, a `harpe.Schedule`, the text of a `.sched` file,
    its path, or "auto": a search chooses the schedule.
    `homes`: which rank holds which part of inputs and outputs. Each buffer maps to the mesh axes
    that divide its axes: `{"k": "Skv@cp"}`; "" is a full copy on every rank. The schedule places
    all other buffers.
    `layout`: which positions of a divided axis a rank holds. "contiguous": one range, in rank
    order. "zigzag", on axes whose positions masks read: a range from the front and the same one
    counted from the back. "any": what suits the schedule. The search keeps to `homes` and `layout`;
    a schedule given here that contradicts them is refused. `plan.layout` and `plan.positions`
    report the result.
    `cache`: the folder in which `harpe.tune` keeps its answers; "auto" looks there before it
    searches. True is the command line's folder (`$XDG_CACHE_HOME/harpe`, `~/.cache/harpe`); None is
    no cache.
    `patience`: seconds, rounded up, after which a search for "auto" fails.
    `progress`: True shows a bar. A function is called with (stage, done, of), where `of` is 0 if it
    is unknown; if it returns False, the call is cancelled.
    `parameters`: sizes over all ranks and options, as `harpe.describe(op)` lists them.

    Raises Refused: U1xx, I1xx, T0xx, P0xx, S0xx, F1xx, M1xx the question is invalid; I311 the
    schedule contradicts `homes` or `layout`, S704 every schedule does; I503 too many tasks; I505
    `progress` or `patience` ended the call. KeyboardInterrupt ends a search.
    """
    asked = question(op, mesh, machine, schedule, parameters, homes, layout)
    with call_options(cache, patience, progress) as options:
        return Plan(_harpe.plan(asked, options))


def load(path: str | os.PathLike[str], *, progress: Progress = None) -> Plan:
    """Reads a plan from a file that `Plan.save` or the command line wrote, and proves it again,
    because files can be edited. The plan has no machine and no predicted time; `simulate` accepts a
    machine.

    Raises Refused: T0xx, P0xx, I402 about the text; V2xx to V6xx findings about the plan. OSError.
    """
    # Bytes that are not UTF-8 are replaced, so the parser refuses them with their position.
    text = pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    with call_options(progress=progress) as options:
        return Plan(_harpe.parse_plan(text, options))


def tune(op: Text, /, *, mesh: str, machine: Text = "", homes: Homes = None, layout: str = "any",
         top: int = 8, budget: float | None = None, memory_bytes: int | None = None,
         exhaustive: bool = False, any_placement: bool = False, cache: Cache = True,
         progress: Progress = None, **parameters: object) -> Tuned:
    """Searches for the schedules that are predicted to be fastest. If `progress` cancels it, it
    returns what it has found so far.

    `op`, `mesh`, `machine`, `homes`, `layout`, `cache`, `progress`, `parameters` as for
    `harpe.plan`. `top`: number of schedules to list. `budget`: seconds, rounded up, after which the
    search ends with what it has found. `memory_bytes`: per rank; None is the machine's memory.
    `exhaustive`: simulates every candidate. `any_placement`: also searches the homes of inputs and
    outputs, except those in `homes`.

    Raises Refused: those of `harpe.plan`; S701 nothing fits the memory; S702 the budget ended
    before the search found a schedule. KeyboardInterrupt ends the search.
    """
    asked = question(op, mesh, machine, "auto", parameters, homes, layout)
    with call_options(cache, None, progress) as options:
        best, found = _harpe.tune(asked, options, top=top, budget_s=seconds("budget", budget),
                                  memory_bytes=memory_bytes, exhaustive=exhaustive,
                                  any_placement=any_placement)
    return Tuned(best=None if best is None else Plan(best), **found)


def taxes(op: Text, /, *, mesh: str, machine: Text = "", schedule: Text = "auto",
          homes: Homes = None, layout: str = "any", cache: Cache = True, progress: Progress = None,
          **parameters: object) -> Sequence[Taxes]:
    """How the predicted time of a schedule divides into causes. For "auto": every named schedule
    that applies, fastest first, then those that do not fit the machine. Arguments and errors as for
    `harpe.plan`."""
    asked = question(op, mesh, machine, schedule, parameters, homes, layout)
    with call_options(cache, None, progress) as options:
        return _harpe.compare(asked, options)


def simulate(subject: Plan | Text, /, *, machine: Text = "", launch: str = "graph",
             delay: tuple[int, float] | None = None, **question: Any) -> "Simulation":
    """Predicts one execution on a machine; executes nothing.

    `subject`: a plan, or an operator with the arguments of `harpe.plan`. `launch`, `delay` and
    errors as for `Plan.simulate`.
    """
    _check_no_question(subject, question)
    asked = subject if isinstance(subject, Plan) else plan(subject, machine=machine, **question)
    return asked.simulate(machine, launch=launch, delay=delay)


def verify(subject: Plan | Text, /, **question: Any) -> Certificate:
    """The proof of a plan, for all inputs and all interleavings of ranks: every output equals the
    program's, and no execution races or blocks. Every plan is proved when it is made.

    `subject`: a plan, or an operator with the arguments of `harpe.plan`. Raises Refused: V2xx to
    V6xx the first finding; those of `harpe.plan`.
    """
    _check_no_question(subject, question)
    return (subject if isinstance(subject, Plan) else plan(subject, **question)).certificate


def show(subject: Plan | Text, /, stage: str = "plan", **question: Any) -> str:
    """A text that can be read back: "program", "schedule", "plan" or "launches" (`Plan.show`).

    `subject`: a plan, or an operator with the arguments of `harpe.plan`.
    """
    _check_no_question(subject, question)
    return (subject if isinstance(subject, Plan) else plan(subject, **question)).show(stage)


def _check_no_question(subject: object, question: Mapping[str, object]) -> None:
    if isinstance(subject, Plan) and question:
        raise TypeError(f"a plan has its {next(iter(question))} already")
