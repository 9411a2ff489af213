"""`profile`: the programs that run in a block of code, with their calls, times and bytes.

In: nothing. Out: a `Profile`: a table to print, which notebooks show. Called by users. While a profile is open, other
functions stand in place of the calls of jitted functions, of their recording, and of programs of un-jitted
computations; they measure the time around these. Without one, the functions themselves are called.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from threading import get_ident
from typing import Any

from .. import config
from ..errors import users_line
from ..graph.trace import current_trace
from ..process.locks import ForkSafeLock
from ..runtime import evaluate
from ..runtime.cpu_program import Program
from ..transforms.arguments import name_of
from ..transforms.lent_arrays import lent, ndarrays
from . import jit as jit_module
from .explain_kernels import cost
from .jit import Jitted
from .loop_report import file_name
from .page_style import STYLE, size_text, table, time_text
from .signatures import flatten_in_order, signature


@dataclass
class ProgramTimes:
    """A program's part of a profile.

    Attributes
    ----------
    name : str
        The jitted function, or the line of an un-jitted computation.
    arguments : str
        The dtypes and shapes of arrays.
    calls : int
    recording, compiling, running : float
        Seconds; of all calls together.
    bytes : int
        Bytes of arrays that the kernels of a call read and write; 0 for programs of devices.
    memory : int
        Bytes of intermediates of a call.
    """

    name: str
    arguments: str
    calls: int = 0
    recording: float = 0.0
    compiling: float = 0.0
    running: float = 0.0
    bytes: int = 0
    memory: int = 0


class Profile:
    """The programs of a block, in the order of their first calls: print it, or look at `programs`.

    Calls of one thread count inclusively: a jitted function that calls another one by a callback has its time, too.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._rows: dict[Any, ProgramTimes] = {}
        self._kept: list[Any] = []

    @property
    def programs(self) -> list[ProgramTimes]:
        """The programs, those that took longest first."""
        return sorted(self._rows.values(), key=lambda row: -(row.recording + row.compiling + row.running))

    def add(self, name: str, program: Any, recording: float, compiling: float, running: float) -> None:
        """Note a call of a program."""
        with _lock.held():
            row = self._rows.get((name, id(program)))
            if row is None:
                row = self._rows[name, id(program)] = _row(name, program)
                self._kept.append(program)  # so that no other program gets its place in memory
            row.calls += 1
            row.recording += recording
            row.compiling += compiling
            row.running += running

    def _cells(self) -> Iterator[list[str]]:
        for row in self.programs:
            yield [
                row.name,
                row.arguments,
                f"{row.calls:,}",
                time_text(row.recording),
                time_text(row.compiling),
                time_text(row.running),
                time_text(row.running / max(row.calls, 1)),
                size_text(row.bytes),
                size_text(row.memory),
            ]

    def _head(self) -> str:
        inside = sum(row.recording + row.compiling + row.running for row in self._rows.values())
        many = f"{len(self._rows)} program{'s' if len(self._rows) != 1 else ''}"
        return f"{many}: {time_text(inside)} of {time_text(self.seconds)} went into recording, compiling and running"

    def __str__(self) -> str:
        rows = [_HEADS, *self._cells()]
        widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADS))]
        lines = [
            "  ".join(
                cell.rjust(width) if place in _NUMBERS else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([self._head(), *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = [[escape(cell) for cell in row] for row in self._cells()]
        return f'{STYLE}<div class="nbgrad"><p>{self._head()}.</p>{table(_HEADS, cells, _NUMBERS)}</div>'


_HEADS = ["program", "arguments", "calls", "recording", "compiling", "running", "a call", "bytes", "memory"]
_NUMBERS = frozenset(range(2, len(_HEADS)))
_open: list[Profile] = []
_lock = ForkSafeLock()
_recording: dict[int, list[float]] = {}
"""Of each thread, the seconds of recordings and compilations since its last call began."""
_plain_call, _plain_specialize = Jitted.__call__, jit_module.specialize


@contextmanager
def profile() -> Iterator[Profile]:
    """A `with` block in which programs are counted and timed; it gives the `Profile`.

    All threads count. The times of un-jitted computations are those of the programs that compute their values; their
    operations are recorded by the Python code around.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> square = nb.jit(lambda x: np.sum(x * x))
    >>> with nb.profile() as found:
    ...     for _ in range(3):
    ...         _ = square(np.ones(1000))
    >>> (row,) = found.programs
    >>> row.name, row.arguments, row.calls, row.bytes
    ('<lambda>', 'float64[1000]', 3, 8008)
    """
    made = Profile()
    with _lock.held():
        _open.append(made)
        if len(_open) == 1:
            Jitted.__call__ = _timed_call
            jit_module.specialize = _timed_specialize
            evaluate.put_in_front(_timed_program)
    begin = time.perf_counter()
    try:
        yield made
    finally:
        made.seconds = time.perf_counter() - begin
        with _lock.held():
            _open.remove(made)
            if not _open:
                Jitted.__call__ = _plain_call
                jit_module.specialize = _plain_specialize
                evaluate.put_in_front(None)


def _timed_call(self: Jitted, *args: Any, **kwargs: Any) -> Any:
    """The call of a jitted function, timed."""
    if current_trace() is not None:
        return _plain_call(self, *args, **kwargs)
    times = _recording[get_ident()] = [0.0, 0.0]
    begin = time.perf_counter()
    result = _plain_call(self, *args, **kwargs)
    seconds = time.perf_counter() - begin
    program = _program(self, args, {name: value for name, value in kwargs.items() if name != "out"})
    for one in list(_open):
        one.add(name_of(self.fn), program, times[0], times[1], seconds - sum(times))
    return result


def _timed_specialize(*args: Any, **kwargs: Any) -> Any:
    """The recording of a jitted function, timed."""
    begin = time.perf_counter()
    made = _plain_specialize(*args, **kwargs)
    seconds = time.perf_counter() - begin
    compiling = getattr(made.program, "seconds", 0.0)
    times = _recording.setdefault(get_ident(), [0.0, 0.0])
    times[0] += seconds - compiling
    times[1] += compiling
    return made


def _timed_program(found: Callable[..., Any], program_of: Callable[[], Any], is_new: bool) -> Any:
    """An un-jitted computation, timed; its operations are recorded before."""
    begin = time.perf_counter()
    result = found()
    seconds = time.perf_counter() - begin
    program = program_of()
    compiling = getattr(program, "seconds", 0.0) if is_new else 0.0
    place = users_line()
    name = "un-jitted" if place is None else f"{file_name(place[0])}:{place[1]}, un-jitted"
    for one in list(_open):
        one.add(name, program, 0.0, compiling, seconds - compiling)
    return result


def _program(function: Jitted, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The program of a call; None if compilation is switched off."""
    given, treespec = flatten_in_order((args, kwargs))
    key = signature([lent(leaf) for leaf in ndarrays(given)], treespec)[0]
    listed = function.known_for((key, config.roll()))
    return listed[0].program if listed else None


def _row(name: str, program: Any) -> ProgramTimes:
    """A row without calls."""
    if not isinstance(program, Program):
        return ProgramTimes(name, f"on {program.device}" if program is not None else "interpreted")
    bases = program.plan.bases[: len(program.argument_strides)]
    texts = [f"{node.dtype}[{', '.join(map(str, node.shape))}]" for node in bases]
    shown = ", ".join(texts[:3]) + (f" and {len(texts) - 3} more" if len(texts) > 3 else "")
    moved = sum(cost(step)[0] for step in program.plan.steps)
    return ProgramTimes(name, shown, bytes=moved, memory=program.plan.arena_bytes)
