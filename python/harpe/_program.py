"""Operators as values: `.op` programs, and a builder for new ones."""

import re
from collections.abc import Iterable, Sequence

from harpe import _harpe
from harpe._question import Source, Text, text_of


class Program(Source):
    """An operator: what is computed, without ranks or times. Immutable; equal to programs with the
    same text. Calls accept it in place of an operator's name.

    `Program("attention")` is a shipped operator; the argument may also be the text of a `.op`
    program or its path. `harpe.ProgramBuilder` makes new ones. `str(program)` is the text, which
    reads back; `harpe.describe` lists parameters and buffers.

    Raises Refused: U108 no such operator; T0xx and P0xx errors in a text.
    """

    def __init__(self, op: Text, /) -> None:
        self._info = _harpe.describe(text_of(op))
        super().__init__(self._info.text)

    @property
    def name(self) -> str:
        return self._info.name

    def __repr__(self) -> str:
        def list_buffers(role: str) -> str:
            return ", ".join(buffer.name for buffer in self._info.buffers if buffer.role == role)
        return f"<harpe.Program {self.name}: {list_buffers('in')} -> {list_buffers('out')}>"


class Size(Source):
    """An expression over parameters and axes, such as `heads / kv_heads` or `2 * M * N * K`.

    The language has `*`, `/` (which must leave no remainder) and `+`, and no parentheses.
    """

    def __mul__(self, other: "Size | int") -> "Size":
        return _join(self, "*", other)

    def __rmul__(self, other: int) -> "Size":
        return _join(other, "*", self)

    def __truediv__(self, other: "Size | int") -> "Size":
        return _join(self, "/", other)

    def __add__(self, other: "Size | int") -> "Size":
        return Size(f"{self} + {other}")

    def __radd__(self, other: int) -> "Size":
        return Size(f"{other} + {self}")


class Parameter(Size):
    """A parameter of a program: usable in sizes, as a buffer's dtype, as a condition."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(_check_name(name))
        self.kind = kind


class Axis(Size):
    """An axis of a program, for buffers and nests, and as a factor of costs."""


class Route(Source):
    """The assignment of tokens' choices to slots of experts, which depends on data."""


class Array(Source):
    """A buffer of a program, as statements access it."""

    def __init__(self, name: str, *renames: str) -> None:
        super().__init__(name + (f"[{', '.join(renames)}]" if renames else ""))
        self._parts = name, *renames

    def at(self, axis: Axis, instead: Axis | Route) -> "Array":
        """The buffer indexed along `axis` by another axis of the nest, or through a route."""
        source = f"{instead}.{axis}" if isinstance(instead, Route) else f"{instead}"
        return Array(*self._parts, f"{axis}={source}")


class Mask(Source):
    """The keys that a query sees: `Mask("window", Sq, Skv, 4096)`. docs/ir.md lists masks.

    `when`: the parameter that turns the mask on.
    """

    def __init__(self, function: str, *arguments: Size | Array | int,
                 when: Parameter | None = None) -> None:
        super().__init__(_print_call(function, arguments) + _print_condition(when))


class Nest:
    """The statements of one nest: leaves at every point of its axes.

    Each method adds a statement. `targets`: one array or several. `leaf`: the name of the function
    that computes them from the operands (docs/ir.md). `where`: masks. `attributes`: numbers for the
    leaf.
    """

    def __init__(self, name: str, over: Iterable[Axis], whole: Iterable[Axis],
                 seq: Iterable[Axis]) -> None:
        self._name = _check_name(name)
        self._head = f"nest {name} over {_print_group(over)}"
        for word, axes in ("whole", _print_group(whole)), ("seq", _print_group(seq)):
            self._head += f" {word} {axes}" if axes != "()" else ""
        self._statements: list[str] = []

    def __str__(self) -> str:
        return self._name

    def store(self, targets: Array | Sequence[Array], leaf: str, *operands: Array,
              where: Sequence[Mask] = (), **attributes: "Size | float | str") -> None:
        """Stores: each point of the nest has its own element."""
        self._add("=", targets, leaf, operands, where, attributes)

    def sum(self, targets: Array | Sequence[Array], leaf: str, *operands: Array,
            where: Sequence[Mask] = (), **attributes: "Size | float | str") -> None:
        """Sums over the axes that the targets lack."""
        self._add("sum=", targets, leaf, operands, where, attributes)

    def max(self, targets: Array | Sequence[Array], leaf: str, *operands: Array,
            where: Sequence[Mask] = (), **attributes: "Size | float | str") -> None:
        """Maxima over the axes that the targets lack."""
        self._add("max=", targets, leaf, operands, where, attributes)

    def lse(self, targets: Sequence[Array], leaf: str, *operands: Array,
            where: Sequence[Mask] = (), **attributes: "Size | float | str") -> None:
        """Sums weighted by exponentials, and their logarithms: attention's (o, lse)."""
        self._add("lse=", targets, leaf, operands, where, attributes)

    def _add(self, combine: str, targets: Array | Sequence[Array], leaf: str,
             operands: Sequence[Array], where: Sequence[Mask],
             attributes: dict[str, "Size | float | str"]) -> None:
        left = str(targets) if isinstance(targets, Array) else _print_group(targets)
        inside = _print_list(operands)
        if attributes:
            inside += "; " + _print_list(f"{_check_name(name)}={_print_scalar(value)}"
                                         for name, value in attributes.items())
        masks = " where " + " and ".join(map(str, where)) if where else ""
        self._statements.append(f"{left} {combine} {_check_name(leaf)}({inside}){masks}")

    def _print(self, prefix: str) -> str:
        lines = "".join(f"    {statement}\n" for statement in self._statements)
        return f"  {prefix}{self._head} {{\n{lines}  }}\n"


class ProgramBuilder:
    """Builds a program; `build` checks it and returns the value.

        p = harpe.ProgramBuilder("project")
        tokens, dtype = p.parameter("tokens", 4096), p.parameter("dtype", "bf16")
        T, H, F = p.axis("T", tokens, align=128), p.axis("H", 1024), p.axis("F", 4096)
        states, weights = p.input("states", dtype, [T, H]), p.input("weights", dtype, [H, F])
        result = p.output("result", dtype, [T, F])
        p.nest("product", over=[T, H, F]).sum(result, "matmul", states, weights)
        project = p.build()

    A dimension of a buffer is an axis, a tuple of axes (their row-major product), or a number.
    A dtype is a name such as "f32", or a parameter.
    """

    def __init__(self, name: str) -> None:
        self._name = _check_name(name)
        self._parameters: list[str] = []
        self._declarations: list[str] = []
        self._given: list[Nest] = []
        self._nests: list[Nest] = []

    def parameter(self, name: str, default: "int | bool | float | str | Parameter") -> Parameter:
        """A value that a caller may set. The default determines its kind: an integer, True or
        False, a float, a dtype ("bf16"), or an earlier parameter, whose value it then takes."""
        if isinstance(default, Parameter):
            made = Parameter(name, default.kind)
        else:
            made = Parameter(name, _KINDS.get(type(default), ""))
        kind = f" : {made.kind}" if made.kind else ""
        value = _check_name(default) if isinstance(default, str) else _print_scalar(default)
        self._parameters.append(f"param {name}{kind} = {value}")
        return made

    def axis(self, name: str, size: Size | int, *, align: int = 1, dynamic: bool = False,
             of: Axis | None = None) -> Axis:
        """`align`: the smallest useful block. `dynamic`: the caller sets the length at run time, at
        most `size`. `of`: each position of that axis has its own length, at most `size`."""
        made = Axis(_check_name(name))
        self._declarations.append(f"axis {name} = " + ("dyn " if dynamic or of else "") + f"{size}"
                                  + (f" of {of}" if of else "")
                                  + (f" grain {align}" if align != 1 else ""))
        return made

    def input(self, name: str, dtype: str | Parameter, dims: "Iterable[Dim]",
              when: Parameter | None = None) -> Array:
        """`when`: the parameter that turns it on."""
        return self._buffer(name, dtype, dims, "in" + _print_condition(when))

    def output(self, name: str, dtype: str | Parameter, dims: "Iterable[Dim]") -> Array:
        """A result."""
        return self._buffer(name, dtype, dims, "out")

    def temporary(self, name: str, dtype: str | Parameter, dims: "Iterable[Dim]") -> Array:
        """A buffer that one nest writes and another reads."""
        return self._buffer(name, dtype, dims, "temp")

    def _buffer(self, name: str, dtype: str | Parameter, dims: "Iterable[Dim]", role: str) -> Array:
        extents = _print_list(_print_group(dim) if isinstance(dim, tuple) else dim for dim in dims)
        kind = _check_name(str(dtype))
        self._declarations.append(f"buffer {_check_name(name)} : {kind}[{extents}] {role}")
        return Array(name)

    def route(self, name: str, slots: Iterable[Axis], choices: Iterable[Axis], by: Array, *,
              policy: str = "exact", load: "Sequence[Size | float | str] | None" = None) -> Route:
        """Choice k of token t takes a slot of expert `by[t, k]`. `policy`: "exact", "drop", "pad".
        `load`: how random choices are drawn, such as ("zipf", 1.1)."""
        drawn = f" load {_print_call(str(load[0]), load[1:])}" if load else ""
        self._declarations.append(
            f"route {_check_name(name)} : {_print_group(slots)} <- {_print_group(choices)} "
            f"by {by} {_check_name(policy)}{drawn}")
        return Route(name)

    def leaf(self, name: str, *, flops: Size | int | None = None, bytes: Size | int | None = None,
             kernel: str | None = None) -> None:
        """The cost of a leaf over its whole nest, and the kernel that computes it."""
        costs = {"flops": flops, "bytes": bytes, "kernel": kernel and _print_scalar(kernel)}
        self._declarations.append(f"leaf {_check_name(name)}" + "".join(
            f" {word} {cost}" for word, cost in costs.items() if cost is not None))

    def nest(self, name: str, over: Iterable[Axis], *, whole: Iterable[Axis] = (),
             seq: Iterable[Axis] = ()) -> Nest:
        """A nest over the product of axes. `whole`: axes that are inside the leaf. `seq`: axes of
        `over` that run in order on one rank."""
        self._nests.append(Nest(name, over, whole, seq))
        return self._nests[-1]

    def given(self, name: str, over: Iterable[Axis], *, whole: Iterable[Axis] = (),
              seq: Iterable[Axis] = ()) -> Nest:
        """How some inputs follow from others if the caller does not give them; no rank computes
        it."""
        self._given.append(Nest(name, over, whole, seq))
        return self._given[-1]

    def build(self) -> Program:
        """Checks and returns the program. Raises Refused: T0xx and P0xx errors, with their place in
        the text `str(builder)`."""
        return Program(str(self))

    def __str__(self) -> str:
        lines = [f"  {line}\n" for line in (*self._parameters, *self._declarations)]
        lines += [nest._print("given ") for nest in self._given]
        lines += [nest._print("") for nest in self._nests]
        return f"program {self._name} {{\n{''.join(lines)}}}\n"


Dim = Axis | tuple[Axis, ...] | int
_KINDS = {bool: "bool", float: "float", str: "dtype"}  # kinds of parameters; otherwise an integer


def _join(left: Size | int, operator: str, right: Size | int) -> Size:
    if "+" in f"{left}{right}" or (operator == "/" and re.search(r"[*/]", str(right))):
        raise ValueError(f"({left}) {operator} ({right}): sizes have no parentheses")
    return Size(f"{left}{operator}{right}")


def _check_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", text):
        raise ValueError(f"{text!r} is not a name: letters, digits and _")
    return text


def _print_scalar(value: "Size | Array | float | str") -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)


def _print_list(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


def _print_group(values: Iterable[object]) -> str:
    return f"({_print_list(values)})"


def _print_call(function: str, arguments: Sequence["Size | Array | float | str"]) -> str:
    return f"{_check_name(function)}({_print_list(map(_print_scalar, arguments))})"


def _print_condition(parameter: Parameter | None) -> str:
    return f" if {parameter}" if parameter is not None else ""
