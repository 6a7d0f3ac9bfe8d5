"""The exceptions of the package."""

import hashlib
import pathlib
import tempfile
from collections.abc import Sequence

from harpe import _harpe


class Error(Exception):
    """Why a call returned no value.

    `code`: such as "F209", which `harpe.explain` describes; "" for an error without a code.
    `message`: one sentence. `notes`: its context. `remedy`: what to do about it, or "".
    """

    def __init__(self, text: str, code: str = "", message: str = "", notes: Sequence[str] = (),
                 remedy: str = "", reproduction: str = "") -> None:
        super().__init__(text, code, message, tuple(notes), remedy, reproduction)
        self.text = text
        self.code = code
        self.message = message
        self.notes = tuple(notes)
        self.remedy = remedy

    def __str__(self) -> str:
        return self.text


class Refused(Error, ValueError):
    """The call rejected the question, a text or an argument; nothing was executed."""


class Fault(Error, RuntimeError):
    """A failure at run time. The message states which rank waited for which; `notes` contain what
    the other ranks report."""


class Bug(Error, RuntimeError):
    """An invariant of Harpe does not hold. Attach the file `file` to a report."""

    def __init__(self, text: str, code: str = "", message: str = "", notes: Sequence[str] = (),
                 remedy: str = "", reproduction: str = "") -> None:
        super().__init__(text, code, message, notes, remedy, reproduction)
        self.file = _keep(reproduction)
        self.text += f"\n  its reproduction is in `{self.file}`"


def make_refusal(code: str, **fields: object) -> Refused:
    """A refusal with a registered code; `fields` fill in its message."""
    known = _harpe.explain(code)
    message = known.message.format(**fields)
    return Refused(f"error[{code}]: {message}", code, message, remedy=known.remedy)


def refuse(argument: str, wanted: str, found: str) -> Refused:
    """A refusal of one argument of a call."""
    return make_refusal("I311", argument=argument, wanted=wanted, found=found)


def _keep(reproduction: str) -> pathlib.Path:
    """Writes it to the folder for temporary files, under a name that is a hash of the text."""
    name = hashlib.sha256(reproduction.encode()).hexdigest()[:8]
    file = pathlib.Path(tempfile.gettempdir()) / f"harpe-bug-{name}.txt"
    file.write_text(reproduction, encoding="utf-8")
    return file
