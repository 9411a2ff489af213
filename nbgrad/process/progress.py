"""One line on standard error that shows how far a long piece of work is.

In: work that tells now and then what it is at. Out: nothing in the first two seconds; then one line, which changes in
place and is removed at the end. Called by recordings and by programs that are compiled.

There is no line in pipes and files, where it could not change, nor with NBGRAD_PROGRESS=0. tqdm draws it, so that it
stands below the bars that users draw with tqdm; it is imported when the first line appears.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from .. import config

PATIENCE = 2.0
"""Seconds before the line appears."""
PERIOD = 0.2
"""Seconds between two of its forms."""


class Work:
    """A piece of work, from now on; used in a `with` block, or ended by `end`."""

    __slots__ = ("_due", "_line", "_start")

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._due = self._start + PATIENCE
        self._line: Any = None

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.perf_counter() - self._start

    def tell(self, text: Callable[[], str]) -> None:
        """Show a line, if it is time: `text` is only asked for then."""
        now = time.perf_counter()
        if now < self._due:
            return
        self._due = now + PERIOD
        if self._line is None:
            if not (config.progress() and _is_seen()):
                self._due = float("inf")
                return
            self._line = _new_line()
        self._line.set_description_str(text())

    def end(self) -> None:
        """Remove the line."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def __enter__(self) -> Work:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def bar(count: int | None, text: str, shown: bool | None = None) -> Any:
    """A bar of tqdm, with `update()`, to be used in a `with` block.

    Parameters
    ----------
    count : int or None
        The number of steps, if it is known.
    text : str
        The name of the work.
    shown : bool, optional
        Whether to show it; by default where a line would be shown, and after the same time.
    """
    if not (config.progress() and _is_seen() if shown is None else shown):
        return _NoBar()
    from tqdm import tqdm

    delay = 0.0 if shown else PATIENCE
    return tqdm(total=count, desc=text, unit="block", delay=delay, leave=bool(shown), dynamic_ncols=True)


class _NoBar:
    """A bar that is not shown."""

    def update(self) -> None:
        """Nothing."""

    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _is_seen() -> bool:
    """Whether standard error is a terminal, or what a notebook shows below a cell."""
    stream = sys.stderr
    if stream is None:
        return False
    return stream.isatty() or type(stream).__module__.partition(".")[0] == "ipykernel"


def _new_line() -> Any:
    from tqdm import tqdm

    class Line(tqdm):
        monitor_interval = 0
        """No thread watches it."""

    return Line(file=sys.stderr, leave=False, bar_format="{desc}", dynamic_ncols=True)
