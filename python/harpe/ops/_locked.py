"""The file that pins the schedules of operators."""

import fcntl
import json
import os
import pathlib
import threading

from harpe._errors import refuse

_lock = threading.Lock()
_path: pathlib.Path | None = None
_schedules: dict[str, str] = {}


def lock(path: str | os.PathLike[str] | None) -> None:
    """Makes operators use the schedules in the file; missing ones are searched for and added to it.

    So the same operators have the same plans, and results the same bits, in every run, independent
    of searches and caches. The file is JSON, by operator, shapes, ranks and kind of device; the
    first rank of each group reads and writes it. None: stop using a file. Plans that groups already
    have stay. Raises Refused: I311 the file has another format.
    """
    global _path, _schedules
    found = None if path is None else pathlib.Path(path)
    schedules = {} if found is None else _read(found)
    with _lock:
        _path, _schedules = found, schedules


def find(key: str) -> str | None:
    with _lock:
        return _schedules.get(key)


def add(key: str, schedule: str) -> None:
    """Adds an entry to the file, to which other processes may add as well."""
    with _lock:
        if _path is None:
            return
        _path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(_path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            _schedules.update({key: schedule} | _read(_path))
            new = _path.with_name(f"{_path.name}.{os.getpid()}")
            new.write_text(json.dumps(_schedules, indent=2, sort_keys=True) + "\n")
            new.replace(_path)
        finally:
            os.close(folder)


def _read(path: pathlib.Path) -> dict[str, str]:
    try:
        schedules = json.loads(path.read_text())
        if not all(isinstance(each, str) for each in schedules.values()):
            raise ValueError("schedules are texts")
        return schedules
    except FileNotFoundError:
        return {}
    except (AttributeError, OSError, ValueError) as error:
        raise refuse("path", "a file that `harpe.lock` wrote", f"{path}: {error}") from None
