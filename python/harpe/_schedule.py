"""Schedules of one's own: lists of primitives, each checked when it is added."""

import operator
import re
from collections.abc import Iterable, Sequence

from harpe import _harpe
from harpe._catalogue import describe
from harpe._program import Array, Axis, Nest, Route
from harpe._question import Source, Text, call_options, question

Name = str | Axis | Array | Nest | Route  # the name of a thing of the program, or the thing
Names = Name | Sequence[Name]


class Schedule(Source):
    """Where and when the blocks of one operator are computed on one mesh, and how its data move.
    Immutable; equal to schedules of the same text. Calls take it as their `schedule`.

        s = harpe.Schedule("ag_gemm", mesh="tp=4", name="mine", m=1024)
        s = s.tile("M", [4], into=["m0", "m1"]).shard("a", "m0", "tp")

    `op`, `mesh` and `parameters` as for `harpe.plan`. `schedule`: where to start: nothing, or a
    schedule as for `harpe.plan`. `name`: of the new schedule; "" keeps that of `schedule`.

    Each method adds one primitive and returns a new schedule; docs/schedules.md lists them. The
    compiler checks the step against those before it. Digits, loops and parts of mesh axes are names
    that `into` gives. Whether every operand is where it is needed is checked by `harpe.plan`, of
    the whole schedule.

    Moves are named by their nest, their buffers and the mesh axes that they go over; where a buffer
    has a stage and a drain over the same axes, `move` says which ("stage", "drain").

    Raises Refused: what `harpe.plan` does about the question. All methods: S0xx an unknown name, an
    argument of the wrong kind, a step that changes nothing; and the codes that they list.
    """

    def __init__(self, op: Text, /, *, mesh: str, schedule: Text = "", name: str = "",
                 **parameters: object) -> None:
        self._op, self._mesh, self._parameters = op, mesh, parameters
        if schedule:
            self._read(schedule)
        else:
            label = mesh.replace("=", "").replace(",", "_")  # as the compiler calls it
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
        """The ranks, as `harpe.plan` takes them."""
        return self._mesh

    @property
    def steps(self) -> tuple[str, ...]:
        """The primitives, as the text has them: "shard(a, m0, tp)"."""
        return tuple(self._script.steps)

    @property
    def form(self) -> str:
        """What the steps make of the program: blocks, homes, loops and moves (docs/ir.md)."""
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
        """Splits an axis, or a digit, into digits, most significant first; one name more than
        factors names the remainder. Blocks of sizes that do not divide are uneven.

        Changes neither space nor time: digits are what other steps place and loop over.
        Refused: S101 to S107 of an axis that is tiled, a digit in use, factors and names."""
        return self._add("tile", axis, factors, into=into)

    def join(self, first: Name, second: Name | None = None, *, into: Names = ()) -> "Schedule":
        """Merges two neighbouring digits of an axis; `join(axis)` undoes its tiling.

        Changes neither space nor time. Refused: S111 to S114, such as digits in use."""
        return self._add("join", first, second, into=into)

    def refine(self, axis: str, factors: Sequence[int], *, into: Sequence[str]) -> "Schedule":
        """Sees one mesh axis as several, major first. Every rank keeps its number.

        Refused: S121 to S125, such as factors whose product is not the axis' size."""
        return self._add("refine", self._script.mesh, axis, factors, into=into)

    def balance(self, axis: Name, kind: str,
                arguments: Sequence[str | int] | None = None) -> "Schedule":
        """Which positions the blocks of an axis hold: "zigzag" [d, h], "stripe" [d], "table"
        [2, 0, 1], or "none".

        Space: every buffer with this axis is laid out so, also the caller's. Time: masks can leave
        ranks equal work. Refused: S131 to S135 of digits that do not suit the kind."""
        return self._add("balance", axis, kind, arguments)

    def route_layout(self, route: Name, kind: str, digits: Sequence[str]) -> "Schedule":
        """Groups the slots of a route by the block that their tokens come from: "slab" [c, t].

        Space: rows between two ranks are one message. Refused: S141 to S145 of unequal digits."""
        return self._add("route_layout", route, kind, digits)

    # Homes.

    def shard(self, buffer: Name, digit: str, axes: Names) -> "Schedule":
        """The rank at coordinate i of the mesh axes holds block i of the buffer.

        Space: a home that every rank had whole is distributed. Refused: S301 to S304, such as
        other numbers of blocks and ranks."""
        return self._add("shard", buffer, digit, axes)

    def partial(self, buffer: Name, monoid: str, axes: Names) -> "Schedule":
        """Ranks along the mesh axes keep partial results of an output, which "sum", "max" or "lse"
        combines.

        Space: no rank holds the result itself. Refused: S311 to S313, such as inputs."""
        return self._add("partial", buffer, monoid, axes)

    # Nests: which rank computes what, and in which order.

    def parallelize(self, nest: Name, digit: str, axes: Names) -> "Schedule":
        """The rank at coordinate i of the mesh axes computes block i.

        Space: work is distributed. Refused: S201 to S204, such as other numbers of blocks and
        ranks, or mesh axes that compute something else already."""
        return self._add("parallelize", nest, digit, axes)

    def serialize(self, nest: Name, digit: str) -> "Schedule":
        """Makes the digit the innermost loop.

        Time: blocks one after another, between which data may move. Refused: S211 of a sequential
        axis out of order."""
        return self._add("serialize", nest, digit)

    def replicate(self, nest: Name, axes: Names) -> "Schedule":
        """Says that ranks along the mesh axes are meant to compute the same; changes nothing.

        Refused: S221 of axes over which the nest is distributed."""
        return self._add("replicate", nest, axes)

    def shift(self, loop: str, axes: Sequence[str], offset: int | None = None) -> "Schedule":
        """Step t of the loop "nest.digit" computes block t + coordinate + offset, modulo their
        number; axes [] take the shift away.

        Time: ranks are at different blocks, so that a block can travel from rank to rank.
        Refused: S231 to S236, such as a number of ranks that does not divide that of blocks."""
        return self._add("shift", loop, axes, offset)

    def reverse(self, loop: str) -> "Schedule":
        """Runs the loop "nest.digit" backwards, or forwards again.

        Refused: S241 of a sequential axis; S242 with a relay inside."""
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
        "relay", from the neighbour that used it a step before; "inline", no copy: the leaf reads it
        where it is. `by`: "src" or "dst", who starts a transfer.
        Space: a slot for what arrives. Time: transfers, which run beside the leaf where they are
        inside a loop. Refused: S401 of what the nest does not read; S402 of a relay whose loop is
        not shifted by these ranks; S403, S404 of "inline"."""
        return self._add("stage", nest, buffers, over=over, how=how, at=at, by=by)

    def drain(self, nest: Name, buffers: Names, *, over: Names, how: str, at: str | None = None,
              by: str | None = None) -> "Schedule":
        """Takes partial results to their homes along `over`, behind the nest or inside the loop
        `at`. `how` and `by` as for `stage`; "one_shot", every rank sends all of its part to every
        other rank, and each combines all.

        Space: a slot for what leaves, and one per sender. Time: transfers, and the combination.
        Refused: S411 of what the nest does not write; S412 to S414 of a relay; S415 of "inline"."""
        return self._add("drain", nest, buffers, over=over, how=how, at=at, by=by)

    # How a move is made.

    def pipeline(self, nest: Name, buffers: Names, *, over: Names, depth: int,
                 move: str | None = None) -> "Schedule":
        """Gives moves `depth` slots.

        Space: so many. Time: transfers run depth - 1 steps ahead. Refused: S421; S422 a relay needs
        two; S423 of "inline"."""
        return self._add("pipeline", nest, buffers, over=over, depth=depth, move=move)

    def chunk(self, nest: Name, buffers: Names, *, over: Names, by: str,
              move: str | None = None) -> "Schedule":
        """Cuts moves into a transfer and a signal for each value of the digit `by`.

        Time: readers may begin with the first chunk. Refused: S431 to S433 of other digits."""
        return self._add("chunk", nest, buffers, over=over, by=by, move=move)

    def chunk_leaf(self, nest: Name, digit: str, *,
                   order: Sequence[str] | None = None) -> "Schedule":
        """One kernel computes all blocks of the digit and waits for each one's chunk. `order`: a
        digit and mesh axes; the kernel starts at the rank's coordinate of that digit.

        Time: one launch, and no wait for a whole operand. Refused: S441 to S444, such as a leaf
        without such a kernel."""
        return self._add("chunk", nest, "leaf", digit, order=order)

    def bind(self, nest: Name, buffers: Names, *, over: Names, via: str,
             move: str | None = None) -> "Schedule":
        """Sets the transport: "ce", "sm", "tma", "nccl", "proxy", "ibgda".

        Time: what a transfer costs and what it takes from the leaf. Refused: S451 to S456 of what
        the transport cannot do."""
        return self._add("bind", nest, buffers, over=over, via=via, move=move)

    def signal(self, nest: Name, buffers: Names, *, over: Names, kind: str | None = None,
               fence: str | None = None, move: str | None = None) -> "Schedule":
        """How a move says that its data have arrived: "event", "flag", "counter", "batched"; and
        on NICs the fence that keeps the signal behind them.

        Refused: S461 to S463 of what the transport cannot do."""
        return self._add("signal", nest, buffers, over=over, kind=kind, fence=fence, move=move)

    def compress(self, nest: Name, buffers: Names, *, over: Names, wire: str,
                 move: str | None = None) -> "Schedule":
        """Rounds a move's elements to the dtype `wire` on the way.

        Time: fewer bytes. The result has one rounding more per transfer. Refused: S471 to S474,
        such as a wider dtype."""
        return self._add("compress", nest, buffers, over=over, wire=wire, move=move)

    # Kernels.

    def patch(self, nest: Name, *, kernel: str | None = None, sm: int | None = None) -> "Schedule":
        """Chooses the kernel of the nest's leaf; "any" leaves it to the executor.

        Refused: S501 to S505, such as a kernel of another leaf."""
        return self._add("patch", nest, kernel=None if kernel is None else _Quoted(kernel), sm=sm)

    def budget(self, nest: Name, buffers: Names | None = None, *, sm: int,
               over: Names | None = None, move: str | None = None) -> "Schedule":
        """Gives the leaf, or moves that run on them, so many SMs.

        Refused: S511 to S513, such as moves of copy engines."""
        return self._add("budget", nest, buffers, over=over, sm=sm, move=move)

    def fuse(self, name: str, nests: Sequence[Name], *, persistent: bool = False,
             sm: int | None = None, warps: int | None = None) -> "Schedule":
        """Makes consecutive nests one launch. `persistent`: its blocks stay for all of it.

        Time: no launch between them. Refused: S521 to S526 of nests that are apart or fused."""
        return self._add("fuse", name, nests, persistent=persistent or None, sm=sm, warps=warps)


class _Quoted(str):
    """Prints in quotes."""


# What a step is written with holds no end of the step.

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
