"""Values that remember how they were made: the bits of a node's `traced`, and the modes of a thread.

In: nothing. Out: the bits, the mode that this thread (or task of asyncio) is in, and two lists that are empty until
somewhere the first value remembers, or a mode is entered: so programs that use neither pay for neither. Called by the
recorder, by evaluate.py, and by the doors for PyTorch's and TensorFlow's ways of asking for gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

TRACED = 1
"""The value depends on an argument of a transform that is being recorded."""
REMEMBERS = 2
"""The value depends on a differentiable leaf, and keeps how it was made when it is computed."""
RELEASED = 4
"""A backward pass has gone through here and was not to be repeated: the value may forget how it was made."""

leaves_made: list[None] = []
"""Not empty as soon as some value remembers."""
attentive: list[None] = []
"""Not empty while some thread is in a mode in which a finished operation is looked at."""


class Mode:
    """How values are remembered: `remembers` at all, also uses of trainable Parameters as leaves (`parameters`), and
    what is done with each finished operation (`noticed`)."""

    __slots__ = ("inference", "noticed", "parameters", "remembers")

    def __init__(
        self,
        remembers: bool = True,
        parameters: bool = False,
        noticed: tuple[Callable[[Any], None], ...] = (),
        inference: bool = False,
    ) -> None:
        self.remembers, self.parameters, self.noticed, self.inference = remembers, parameters, noticed, inference

    def but(self, **changes: Any) -> Mode:
        """This mode with other settings."""
        return Mode(**{**{name: getattr(self, name) for name in self.__slots__}, **changes})


USUAL = Mode()
"""Differentiable leaves are remembered; a Parameter is one only if it was made so."""
_mode: ContextVar[Mode] = ContextVar("nbgrad_mode", default=USUAL)


def mode() -> Mode:
    """The mode of this thread."""
    return _mode.get() if attentive else USUAL


def enter(new: Mode) -> Mode:
    """Change the mode of this thread; the one before is given back."""
    before = _mode.get()
    if new is not USUAL:
        attentive.append(None)
        leaves_made[:] = [None]
    _mode.set(new)
    if before is not USUAL:
        attentive.pop()
    return before


@contextmanager
def within(**changes: Any) -> Iterator[None]:
    """A block in a mode with other settings."""
    before = enter(_mode.get().but(**changes))
    try:
        yield
    finally:
        enter(before)
