"""Converts callers' arguments to what the extension takes."""

import contextlib
import math
import operator
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from harpe import _harpe
from harpe._errors import refuse
from harpe._progress import Bar


class Source:
    """A value that stands for a text; values of one class with equal texts are equal."""

    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def text(self) -> str:
        """The canonical text, which reads back as an equal value."""
        return self._text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<harpe.{type(self).__name__} {self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


Text = str | os.PathLike[str] | Source
Progress = bool | Callable[[str, int, int], bool | None] | None
Cache = bool | str | os.PathLike[str] | None


Homes = Mapping[str, str] | None
CpuKernels = Literal["libraries", "own"]


def uses_own(cpu_kernels: CpuKernels) -> bool:
    if cpu_kernels not in ("libraries", "own"):
        raise ValueError(f"`cpu_kernels` must be 'libraries' or 'own', not {cpu_kernels!r}")
    return cpu_kernels == "own"


def question(op: Text, mesh: str, machine: Text, schedule: Text, parameters: Mapping[str, object],
             homes: Homes = None, layout: str = "any") -> _harpe.Question:
    if not isinstance(mesh, str):
        raise TypeError(f"`mesh` must be a str such as 'cp=8', not {type(mesh).__name__}")
    if not isinstance(layout, str):
        raise TypeError(f"`layout` must be a str such as 'zigzag', not {type(layout).__name__}")
    for name, home in (homes or {}).items():
        if not isinstance(home, str):
            raise TypeError(f"`homes` must be of str such as 'Skv@cp', and that of `{name}` is "
                            f"{type(home).__name__}")
    return _harpe.Question(op=text_of(op), parameters={name: _value(name, value) for name, value
                                                     in parameters.items()},
                           mesh=mesh, machine=text_of(machine), schedule=text_of(schedule),
                           homes=dict(homes or {}), layout=layout)


def text_of(given: Text) -> str:
    """A name, a path or a text, in the form that the extension takes."""
    return given.text if isinstance(given, Source) else os.fspath(given)


def _value(name: str, value: object) -> int | bool | str:
    if isinstance(value, bool | str):
        return value
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"parameter `{name}` must be an int, a bool or a str, not "
                        f"{type(value).__name__}") from None
    # The library refuses numbers that are out of range and names the range.
    return number if -2**63 <= number < 2**63 else str(number)


@contextlib.contextmanager
def call_options(cache: Cache = None, patience: float | None = None,
                 progress: Progress = None) -> Iterator[_harpe.CallOptions]:
    """Options of one call: the cache's folder, its time limit in seconds, the progress function."""
    bar = Bar() if progress is True else None
    function = bar if bar is not None else progress or None
    try:
        yield _harpe.CallOptions(cache=cache_folder(cache), patience_s=seconds("patience", patience),
                                 progress=function)
    finally:
        if bar is not None:
            bar.close()


def seconds(name: str, limit: float | None) -> int | None:
    return None if limit is None else math.ceil(_time(name, limit))


def milliseconds(name: str, seconds: float) -> int:
    return round(_time(name, seconds) * 1000)


def _time(name: str, seconds: float) -> float:
    try:
        number = float(seconds)
    except (TypeError, ValueError):
        raise TypeError(f"`{name}` must be a number of seconds, not "
                        f"{type(seconds).__name__}") from None
    if not abs(number) < 2**53:
        raise refuse(name, "from 1 ms to 365 days", f"{number} s")
    return number


def integer(name: str, value: int, least: int = 0, below: int = 2**63) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"`{name}` must be an int, not {type(value).__name__}") from None
    if not least <= number < below:
        raise refuse(name, f"from {least} to {below - 1}", str(number))
    return number


def cache_folder(cache: Cache) -> str | None:
    if cache is None or cache is False:
        return None
    if cache is not True:
        return os.fspath(cache)
    for variable, below in ("XDG_CACHE_HOME", "harpe"), ("HOME", ".cache/harpe"):
        root = os.environ.get(variable, "")
        if os.path.isabs(root):
            return os.path.join(root, below)
    warnings.warn("neither XDG_CACHE_HOME nor HOME is an absolute path, so nothing is kept",
                  stacklevel=5)
    return None
