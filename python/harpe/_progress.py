"""The progress display for `progress=True`."""

import sys
from typing import Any


class Bar:
    """One tqdm bar per stage if tqdm is installed; else a line on stderr if that is a terminal."""

    def __init__(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            tqdm = None
        self._tqdm: Any = tqdm
        self._bar: Any = None
        self._stage = ""
        self._width = 0

    def __call__(self, stage: str, done: int, of: int) -> None:
        if self._tqdm is None:
            if sys.stderr.isatty():
                self._write(f"{stage} {done:,} of {of:,}" if of else stage)
            return
        if self._bar is None or stage != self._stage:
            self.close()
            self._bar = self._tqdm(desc=stage, leave=False)
            self._stage = stage
        self._bar.total = of or None
        self._bar.update(done - self._bar.n)

    def _write(self, line: str) -> None:
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._width:
            self._write("")
            sys.stderr.write("\r")
