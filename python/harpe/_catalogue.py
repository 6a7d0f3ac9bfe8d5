"""What a question can name, and what this machine offers."""

import os
from collections.abc import Iterable, Sequence

from harpe import _harpe
from harpe._question import Homes, Text, question, text_of
from harpe._values import Doctor, Explanation, MachineInfo, OperatorInfo, ScheduleInfo


def operators() -> Sequence[OperatorInfo]:
    """The shipped operators, their parameters and buffers."""
    return _harpe.operators()


def describe(op: Text, /) -> OperatorInfo:
    """The parameters and buffers of an operator. `op`: a name, a `harpe.Program`, the text of a
    `.op` program, or its path.

    Raises Refused: U108 no such operator; T0xx and P0xx errors in a text.
    """
    return _harpe.describe(text_of(op))


def machines() -> Sequence[MachineInfo]:
    """The shipped machines, for predictions."""
    return _harpe.machines()


def schedules(op: Text, /, *, mesh: str, homes: Homes = None, layout: str = "any",
              **parameters: object) -> Sequence[ScheduleInfo]:
    """The named schedules of an operator on a mesh; `refusal` explains why one does not apply.
    Arguments as for `harpe.plan`.

    Raises Refused: the errors of `harpe.plan` about the operator, its parameters and the mesh.
    """
    return _harpe.schedules(question(op, mesh, "", "auto", parameters, homes, layout))


def explain(code: str) -> Explanation:
    """What the registry of diagnostics holds about a code, such as "F209".

    Raises Refused: U115 no such code.
    """
    return _harpe.explain(code)


def doctor(folders: Iterable[str | os.PathLike[str]] = ()) -> Doctor:
    """This machine's processors, GPUs, libraries and transports; changes nothing.

    `folders` are searched for NVIDIA's libraries before the loader's places.
    """
    return _harpe.doctor([os.fspath(folder) for folder in folders])
