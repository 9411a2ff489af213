"""Values that remember how they were made: the bits of a node's `traced`, and the modes of a thread.

In: nothing. Out: the bits, the mode that this thread (or task of asyncio) is in, and two lists that are empty until
somewhere the first value remembers, or a mode is entered: so programs that use neither pay for neither. Called by the
recorder, by evaluate.py, and by the doors for PyTorch's and TensorFlow's ways of asking for gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

TRACED = 1
"""The value depends on an argument of a transform that is being recorded."""
REMEMBERS = 2
"""The value depends on a differentiable leaf."""
RELEASED = 4
"""A backward pass that was not to be repeated has gone through here."""
WATCHED = 8
"""The value depends on one that a tape, or a level of forward mode, watches."""
KEEPS = REMEMBERS | WATCHED
"""The value keeps how it was made when it is computed."""

leaves_made: list[None] = []
"""Not empty as soon as some value remembers."""
entered: list[None] = []
"""Not empty while some thread is in a mode other than the usual one."""
attentive: list[None] = []
"""Not empty while some thread is in a mode in which finished operations are looked at, and once they always are."""
looking: list[None] = []
"""Not empty while some thread is in such a mode: the same call may then give something else than before."""
_always: list[None] = []


class Mode:
    """The way in which values are remembered.

    Parameters
    ----------
    remembers : bool
        Whether they are at all.
    parameters : bool
        Whether trainable Parameters are leaves wherever they are used.
    anomaly : bool
        Whether the user's line is noted for each operation.
    inference : bool
        Whether PyTorch's inference mode was asked for.
    tapes : tuple
        The tapes that are recording, innermost last.
    recording : object
        Where nothing is remembered: the recording in which that was asked for, or None. Those that began later still
        differentiate.
    """

    __slots__ = ("anomaly", "inference", "parameters", "recording", "remembers", "tapes")

    def __init__(
        self,
        remembers: bool = True,
        parameters: bool = False,
        anomaly: bool = False,
        inference: bool = False,
        tapes: tuple[Any, ...] = (),
        recording: Any = None,
    ) -> None:
        self.remembers, self.parameters, self.tapes = remembers, parameters, tapes
        self.anomaly, self.inference, self.recording = anomaly, inference, recording

    @property
    def looks(self) -> bool:
        """Whether finished operations are looked at."""
        return self.anomaly or not self.remembers

    def but(self, **changes: Any) -> Mode:
        """This mode with other settings."""
        settings = {name: getattr(self, name) for name in self.__slots__}
        settings |= changes
        return USUAL if settings == _USUAL else Mode(**settings)


USUAL = Mode()
"""Differentiable leaves are remembered; a Parameter is one only if it was made so."""
_USUAL = {name: getattr(USUAL, name) for name in Mode.__slots__}
_mode: ContextVar[Mode] = ContextVar("nbgrad_mode", default=USUAL)


def mode() -> Mode:
    """The mode of this thread."""
    return _mode.get() if entered else USUAL


def enter(new: Mode) -> Mode:
    """Change the mode of this thread; the one before is given back."""
    before = _mode.get()
    if new is not USUAL:
        entered.append(None)
        leaves_made[:] = [None]
    if new.looks:
        attentive.append(None)
        looking.append(None)
    _mode.set(new)
    if before is not USUAL:
        entered.pop()
    if before.looks:
        attentive.pop()
        looking.pop()
    return before


def look_at_results() -> None:
    """Look at each finished operation from now on, in all modes: there are complex ones that remember."""
    if not _always:
        _always.append(None)
        attentive.append(None)


@contextmanager
def within(**changes: Any) -> Iterator[None]:
    """A block in a mode with other settings."""
    before = enter(mode().but(**changes))
    try:
        yield
    finally:
        enter(before)
