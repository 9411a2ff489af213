"""Long recordings say what they do: a line of progress, and a warning where no loop is found.

In: a look at the recording after every 1024 operations. Out: a line on standard error after two seconds; after 100,000
operations that became no loop, one `LongRecordingWarning` that names the line that has recorded most of them; another
after 20,000 operations of a kernel of Numba that is run as Python. Called by trace.py and, for kernels, by
source/rebinding.py. What is short costs nothing: no operation knows of it.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

from ...errors import LongRecordingWarning, users_line
from ...process.progress import Work
from ..ir import next_serial
from .window import Window

MANY = 100_000
"""Operations without a loop."""
MANY_OF_KERNEL = 20_000
"""Operations of a kernel of Numba that is run as Python."""
_warned: set[Any] = set()
"""The functions that were warned of."""
_kernels: set[tuple[str, str]] = set()
"""The files and names of kernels of Numba that are run as Python."""


def runs_as_python(kernel: FunctionType) -> None:
    """Remember a function that Numba compiles, and whose text is run as Python."""
    _kernels.add((kernel.__code__.co_filename, kernel.__code__.co_name))


def running_kernel() -> CodeType | None:
    """The outermost function now running that Numba would compile."""
    found: CodeType | None = None
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if (frame.f_code.co_filename, frame.f_code.co_name) in _kernels:
            found = frame.f_code
        frame = frame.f_back
    return found


class Watch:
    """The look at one recording, which has begun at a serial number, and at all recordings inside; `fn` is what is
    recorded."""

    __slots__ = ("_first", "_fn", "_kernels", "_last", "_lines", "_work", "has_warned")

    def __init__(self, fn: Callable[..., Any] | None, since: int) -> None:
        self._fn, self._first, self._work = fn, since, Work()
        self._lines: dict[tuple[str, int, str], int] = {}
        self._kernels: Counter[CodeType] = Counter()
        self._last = self._first
        self.has_warned = False

    def is_long(self, window: Window) -> bool:
        """Whether so much is no loop that it is worth a warning, if there is none to be found."""
        if self.has_warned or window.waits:
            return False
        return len(window.nodes) + len(window.before) >= MANY and window.limit < sys.maxsize

    def look(self, window: Window) -> None:
        """Tell how far the recording is; called between two operations of the recorded function."""
        self._work.tell(self._text)
        line = users_line()
        if line is not None:
            self._lines[line] = self._lines.get(line, 0) + 1
        if self.is_long(window):
            self.has_warned = True
            self._warn()
        if _kernels:
            self._look_at_kernel()

    def _look_at_kernel(self) -> None:
        new, self._last = next_serial() - self._last, next_serial()
        kernel = running_kernel()
        if kernel is None or kernel in _warned:
            return
        self._kernels[kernel] += new
        if self._kernels[kernel] >= MANY_OF_KERNEL:
            _warned.add(kernel)
            message = (
                f"{kernel.co_name}() runs one element at a time, {self._kernels[kernel]:,} operations so far. "
                f"nb.kernel({kernel.co_name}) keeps it compiled; its derivatives are made from its text."
            )
            warnings.warn_explicit(message, LongRecordingWarning, kernel.co_filename, kernel.co_firstlineno)

    def end(self) -> None:
        """The recording is over."""
        self._work.end()

    def _text(self) -> str:
        return f"recording {self._name}: {next_serial() - self._first:,} operations, {self._work.seconds:.0f} s"

    @property
    def _name(self) -> str:
        return getattr(self._fn, "__name__", type(self._fn).__name__)

    def _warn(self) -> None:
        fn: Any = self._fn
        code = getattr(inspect.unwrap(fn) if callable(fn) else fn, "__code__", type(fn))
        if code in _warned:
            return
        _warned.add(code)
        filename, number, module = max(self._lines, key=self._lines.__getitem__, default=("", 0, ""))
        most = f", most of them at {filename}:{number}" if filename else ""
        message = (
            f"{self._name}() has recorded {MANY:,} operations that are no loop{most}. Each of them takes memory, and "
            "time to compile. Say the loop by nb.scan or nb.fori_loop, or work on whole arrays as NumPy does."
        )
        warnings.warn_explicit(message, LongRecordingWarning, filename or "<unknown>", number, module or None)
