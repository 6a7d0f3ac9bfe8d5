"""Schedules as values: lists of primitives, each checked when it is added."""

import operator
import re
from collections.abc import Iterable, Sequence

from harpe import _harpe
from harpe._catalogue import describe
from harpe._program import Array, Axis, Nest, Route
from harpe._question import Source, Text, call_options, question

Name = str | Axis | Array | Nest | Route  # the name of an item of the program, or the item
Names = Name | Sequence[Name]


class Schedule(Source):
    """Where and when the blocks of one operator are computed on one mesh, and how its data move.
    Immutable; equal to schedules with the same text. Calls accept it as their `schedule`.

        s = harpe.Schedule("ag_gemm", mesh="tp=4", name="mine", m=1024)
        s = s.tile("M", [4], into=["m0", "m1"]).shard("a", "m0", "tp")

    `op`, `mesh` and `parameters` as for `harpe.plan`. `schedule`: the schedule to start from:
    empty, or as for `harpe.plan`. `name`: of the new schedule; "" keeps the name of `schedule`.

    Each method adds one primitive and returns a new schedule; docs/schedules.md lists the
    primitives. The compiler checks each step against the steps before it. `into` names new digits,
    loops and parts of mesh axes. `harpe.plan` checks, for the whole schedule, that every operand is
    where it is needed.

    A move is identified by its nest, its buffers and the mesh axes that it crosses. If a buffer has
    a stage and a drain over the same axes, `move` selects one ("stage", "drain").

    Raises Refused: the errors of `harpe.plan` about the question. All methods: S0xx an unknown
    name, an argument of the wrong kind, a step that changes nothing; and the codes that they list.
    """

    def __init__(self, op: Text, /, *, mesh: str, schedule: Text = "", name: str = "",
                 **parameters: object) -> None:
        self._op, self._mesh, self._parameters = op, mesh, parameters
        if schedule:
            self._read(schedule)
        else:
            label = mesh.replace("=", "").replace(",", "_")  # the compiler's name of the mesh
            name = name or "own"
            self._read(f"schedule {_word(name)} for {describe(op).name} on {label} {{\n}}\n")
        if self.name != (name or self.name):
            self._read(f"schedule {_word(name)}" + self.text.removeprefix(f"schedule {self.name}"))

    def _read(self, schedule: Text) -> None:
        with call_options() as options:
            self._script = _harpe.read_schedule(
                question(self._op, self._mesh, "", schedule, self._parameters), options)
        super().__init__(self._script.text)

    @property
    def name(self) -> str:
        return self._script.name

    @property
    def mesh(self) -> str:
        """The ranks, in the form that `harpe.plan` takes."""
        return self._mesh

    @property
    def steps(self) -> tuple[str, ...]:
        """The primitives as text: "shard(a, m0, tp)"."""
        return tuple(self._script.steps)

    @property
    def form(self) -> str:
        """The normal form that the steps produce: blocks, homes, loops and moves (docs/ir.md)."""
        return self._script.form

    def __repr__(self) -> str:
        return f"<harpe.Schedule {self.name} on {self.mesh}: {len(self.steps)} steps>"

    def _add(self, primitive: str, *arguments: object, into: Names = (),
             **keywords: object) -> "Schedule":
        words = [_print(argument) for argument in arguments if argument is not None]
        words += [f"{key}={_print(value)}" for key, value in keywords.items() if value is not None]
        results = [into] if isinstance(into, str) else list(into)  # type: ignore[arg-type]
        step = f"{primitive}({', '.join(words)})"
        if results:
            step += " -> " + ", ".join(map(_word, results))
        made = Schedule.__new__(Schedule)
        made._op, made._mesh, made._parameters = self._op, self._mesh, self._parameters
        made._read(self.text.removesuffix("}\n") + f"  {step}\n}}\n")
        return made

    # Blocks.

    def tile(self, axis: Name, factors: Sequence[int], *, into: Sequence[str]) -> "Schedule":
        """Splits an axis, or a digit, into digits, most significant first. One name more than
        factors names the remainder. If sizes do not divide, blocks are uneven.

        Changes neither space nor time: other steps place the digits and loop over them.
        Refused: S101 to S107 an axis that is tiled already, a digit in use, factors and names."""
        return self._add("tile", axis, factors, into=into)

    def join(self, first: Name, second: Name | None = None, *, into: Names = ()) -> "Schedule":
        """Merges two neighbouring digits of an axis; `join(axis)` undoes its tiling.

        Changes neither space nor time. Refused: S111 to S114, such as digits in use."""
        return self._add("join", first, second, into=into)

    def refine(self, axis: str, factors: Sequence[int], *, into: Sequence[str]) -> "Schedule":
        """Divides one mesh axis into several, major first. Every rank keeps its number.

        Refused: S121 to S125, such as factors whose product is not the axis' size."""
        return self._add("refine", self._script.mesh, axis, factors, into=into)

    def balance(self, axis: Name, kind: str,
                arguments: Sequence[str | int] | None = None) -> "Schedule":
        """The order of an axis' blocks: "zigzag" [d, h], "stripe" [d], "table" [2, 0, 1], or
        "none".

        Space: every buffer with this axis gets this layout, also the caller's. Time: can balance
        the work of ranks under masks. Refused: S131 to S135 digits that do not fit the kind."""
        return self._add("balance", axis, kind, arguments)

    def route_layout(self, route: Name, kind: str, digits: Sequence[str]) -> "Schedule":
        """Groups the slots of a route by the block that their tokens come from: "slab" [c, t].

        Space: rows between two ranks are one message. Refused: S141 to S145, such as unequal
        digits."""
        return self._add("route_layout", route, kind, digits)

    # Homes.

    def shard(self, buffer: Name, digit: str, axes: Names) -> "Schedule":
        """The rank at coordinate i of the mesh axes holds block i of the buffer.

        Space: distributes a home that every rank held whole. Refused: S301 to S304, such as
        different numbers of blocks and ranks."""
        return self._add("shard", buffer, digit, axes)

    def partial(self, buffer: Name, monoid: str, axes: Names) -> "Schedule":
        """Ranks along the mesh axes keep partial results of an output, which "sum", "max" or "lse"
        combines.

        Space: no rank holds the result itself. Refused: S311 to S313, such as inputs."""
        return self._add("partial", buffer, monoid, axes)

    # Nests: which rank computes what, and in which order.

    def parallelize(self, nest: Name, digit: str, axes: Names) -> "Schedule":
        """The rank at coordinate i of the mesh axes computes block i.

        Space: distributes the work. Refused: S201 to S204, such as different numbers of blocks and
        ranks, or mesh axes in use by the nest."""
        return self._add("parallelize", nest, digit, axes)

    def serialize(self, nest: Name, digit: str) -> "Schedule":
        """Makes the digit the innermost loop.

        Time: blocks run one after another, and data may move between them. Refused: S211 digits of
        a sequential axis out of order."""
        return self._add("serialize", nest, digit)

    def replicate(self, nest: Name, axes: Names) -> "Schedule":
        """States that ranks along the mesh axes are meant to compute the same; changes nothing.

        Refused: S221 axes over which the nest is distributed."""
        return self._add("replicate", nest, axes)

    def shift(self, loop: str, axes: Sequence[str], offset: int | None = None) -> "Schedule":
        """Step t of the loop "nest.digit" computes block t + coordinate + offset, modulo the number
        of blocks; axes [] remove the shift.

        Time: ranks work on different blocks at each step, so that a block can travel from rank to
        rank. Refused: S231 to S236, such as a number of ranks that does not divide the number of
        blocks."""
        return self._add("shift", loop, axes, offset)

    def reverse(self, loop: str) -> "Schedule":
        """Runs the loop "nest.digit" backwards, or forwards again.

        Refused: S241 a sequential axis; S242 a relay inside."""
        return self._add("reverse", loop)

    def reorder(self, nest: Name, digits: Sequence[str]) -> "Schedule":
        """Permutes the loops of a nest, outermost first; moves stay with their loop.

        Refused: S251 to S254, such as a loop shifted by one that would be inside it."""
        return self._add("reorder", nest, digits)

    # Moves.

    def stage(self, nest: Name, buffers: Names, *, over: Names, how: str, at: str | None = None,
              by: str | None = None) -> "Schedule":
        """Brings operands to the ranks along `over`, before the nest or inside the loop `at`.

        `how`: "bulk", one exchange of all ranks; "direct", from the rank that holds the block;
        "relay", from the neighbour that used it one step earlier; "inline", no copy: the leaf reads
        it in place. `by`: "src" or "dst", the rank that starts a transfer.
        Space: a slot for what arrives. Time: transfers, which overlap with the leaf if they are
        inside a loop. Refused: S401 a buffer that the nest does not read; S402 a relay whose loop
        is not shifted by these ranks; S403, S404 "inline"."""
        return self._add("stage", nest, buffers, over=over, how=how, at=at, by=by)

    def drain(self, nest: Name, buffers: Names, *, over: Names, how: str, at: str | None = None,
              by: str | None = None) -> "Schedule":
        """Sends partial results to their homes along `over`, after the nest or inside the loop
        `at`. `how` and `by` as for `stage`; "one_shot": every rank sends its whole part to every
        other rank, and each combines all parts.

        Space: a slot for what is sent, and one per sender. Time: transfers, and the combination.
        Refused: S411 a buffer that the nest does not write; S412 to S414 a relay; S415 "inline"."""
        return self._add("drain", nest, buffers, over=over, how=how, at=at, by=by)

    # How a move is made.

    def pipeline(self, nest: Name, buffers: Names, *, over: Names, depth: int,
                 move: str | None = None) -> "Schedule":
        """Gives moves `depth` slots.

        Space: `depth` slots. Time: transfers run depth - 1 steps ahead. Refused: S421; S422 a relay
        needs two; S423 "inline"."""
        return self._add("pipeline", nest, buffers, over=over, depth=depth, move=move)

    def chunk(self, nest: Name, buffers: Names, *, over: Names, by: str,
              move: str | None = None) -> "Schedule":
        """Cuts moves into a transfer and a signal for each value of the digit `by`.

        Time: readers can start with the first chunk. Refused: S431 to S433, such as other
        digits."""
        return self._add("chunk", nest, buffers, over=over, by=by, move=move)

    def chunk_leaf(self, nest: Name, digit: str, *,
                   order: Sequence[str] | None = None) -> "Schedule":
        """One kernel computes all blocks of the digit and waits for each one's chunk. `order`: a
        digit and mesh axes; the kernel visits that digit starting at the rank's coordinate.

        Time: one launch, and no wait for a whole operand. Refused: S441 to S444, such as a leaf
        without such a kernel."""
        return self._add("chunk", nest, "leaf", digit, order=order)

    def bind(self, nest: Name, buffers: Names, *, over: Names, via: str,
             move: str | None = None) -> "Schedule":
        """Sets the transport: "ce", "sm", "tma", "nccl", "proxy", "ibgda".

        Time: the cost of a transfer, and what it takes from the leaf. Refused: S451 to S456 what
        the transport does not support."""
        return self._add("bind", nest, buffers, over=over, via=via, move=move)

    def signal(self, nest: Name, buffers: Names, *, over: Names, kind: str | None = None,
               fence: str | None = None, move: str | None = None) -> "Schedule":
        """How a move signals that its data have arrived: "event", "flag", "counter", "batched"; and
        for NICs the fence that orders the signal behind the data.

        Refused: S461 to S463 what the transport does not support."""
        return self._add("signal", nest, buffers, over=over, kind=kind, fence=fence, move=move)

    def compress(self, nest: Name, buffers: Names, *, over: Names, wire: str,
                 move: str | None = None) -> "Schedule":
        """Rounds a move's elements to the dtype `wire` on the way.

        Time: fewer bytes. Each transfer adds one rounding to the result. Refused: S471 to S474,
        such as a wider dtype."""
        return self._add("compress", nest, buffers, over=over, wire=wire, move=move)

    # Kernels.

    def patch(self, nest: Name, *, kernel: str | None = None, sm: int | None = None) -> "Schedule":
        """Chooses the kernel of the nest's leaf; "any" leaves the choice to the executor.

        Refused: S501 to S505, such as a kernel of another leaf."""
        return self._add("patch", nest, kernel=None if kernel is None else _Quoted(kernel), sm=sm)

    def budget(self, nest: Name, buffers: Names | None = None, *, sm: int,
               over: Names | None = None, move: str | None = None) -> "Schedule":
        """Gives the leaf, or moves that run on SMs, `sm` SMs.

        Refused: S511 to S513, such as moves of copy engines."""
        return self._add("budget", nest, buffers, over=over, sm=sm, move=move)

    def fuse(self, name: str, nests: Sequence[Name], *, persistent: bool = False,
             sm: int | None = None, warps: int | None = None) -> "Schedule":
        """Makes consecutive nests one launch. `persistent`: its thread blocks stay for the whole
        launch.

        Time: no launch between the nests. Refused: S521 to S526, such as nests that are not
        adjacent or are fused already."""
        return self._add("fuse", name, nests, persistent=persistent or None, sm=sm, warps=warps)


class _Quoted(str):
    """A string that prints in quotes."""


# Text of an argument cannot contain the end of a step.

def _print(value: object) -> str:
    if isinstance(value, _Quoted):
        if '"' in value:
            raise ValueError(f"{str(value)!r} is not a kernel's name")
        return f'"{value}"'
    if isinstance(value, bool):
        return str(value).lower()
    if hasattr(value, "__index__"):
        return str(operator.index(value))
    if isinstance(value, Iterable) and not isinstance(value, str):
        return f"[{', '.join(map(_print, value))}]"
    return _word(value)


def _word(value: object) -> str:
    """A name, or a loop "nest.digit"."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*(\.[A-Za-z_][A-Za-z_0-9]*)?", str(value)):
        raise ValueError(f"{str(value)!r} is not a name: letters, digits and _")
    return str(value)
