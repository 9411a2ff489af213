"""Arrays that a statement has chosen by a recorded value, and the arrays from which it chose.

In: a chosen array, which is a new one, and those that it would be in NumPy, on one side or the other. Out: at a write
to one of them while another is in use, which would not see it: `RecordAgain`, by which `jit` records the function anew
with that statement left to Python; an error where no statement can be left to Python. Called by source/, and at each
write of a recording that has chosen arrays.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from types import CodeType
from typing import Any, NoReturn

import numpy as np

from ..errors import TracedValueError
from ..graph.trace import open_traces
from .shared_memory import owner_of
from .tensor import Tensor
from .zero_dimensional import is_scalar

FEW = 256
"""Arrays that are gone are forgotten when more than so many are known, and twice as many as were in use last time."""
_left_to_python: weakref.WeakSet[CodeType] = weakref.WeakSet()
"""Sides and turns of statements that choose arrays which are written to later: facts about code, learnt once."""


class RecordAgain(BaseException):
    """A statement must be left to Python; nothing of users' shall catch it."""


def is_left_to_python(code: CodeType) -> bool:
    """Whether a recording has shown that the statement of a side or a turn must be left to Python."""
    return code in _left_to_python


@dataclass
class _Known:
    """An array: `origins` are the numbers of the arrays that it may be, its own among them."""

    array: weakref.ref[Any]
    origins: frozenset[int]
    chosen: tuple[CodeType, bool] | None = None
    """The code of the statement that has chosen it, and whether that could be left to Python."""


class ChosenArrays:
    """The arrays of a recording that were chosen or chosen from.

    Two of them may be one array in NumPy if they have an origin in common. Views count as the arrays that own their
    memory, and scalars, which nothing writes to, do not count.
    """

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}
        self._numbers = 0
        self._most = FEW
        self._containers: list[tuple[Any, Any, CodeType, bool]] = []

    def origins(self, array: Any) -> frozenset[int]:
        """The numbers of the arrays that an array may be; none for what is no array."""
        owner = _owner(array)
        if owner is None:
            return frozenset()
        known = self._known.get(id(owner))
        if known is None or known.array() is not owner:
            known = self._note(owner, frozenset())
        return known.origins

    def note(self, chosen: Any, origins: Iterable[int], code: CodeType, optional: bool) -> None:
        """A statement has chosen an array: `origins` are those of the arrays that it may be in NumPy."""
        owner = _owner(chosen)
        if owner is not None:
            known = self._note(owner, frozenset(origins))
            known.chosen = code, optional

    def _note(self, owner: Any, origins: frozenset[int]) -> _Known:
        if len(self._known) > self._most:
            self._known = {key: known for key, known in self._known.items() if known.array() is not None}
            self._most = max(FEW, 2 * len(self._known))
        self._numbers += 1
        known = self._known[id(owner)] = _Known(weakref.ref(owner), origins | {self._numbers})
        return known

    def check_write(self, array: Any) -> None:
        """Check that no other array would see a write.

        Raises
        ------
        RecordAgain
            If a statement was turned that can be left to Python.
        TracedValueError
            If it cannot.
        """
        written = self._known.get(id(array))
        if written is None or written.array() is not array:
            return
        for other in list(self._known.values()):
            if other is written or other.array() is None or other.origins.isdisjoint(written.origins):
                continue
            chosen = other.chosen or written.chosen
            assert chosen is not None
            _refuse("an array", "np.copy(x)", *chosen)

    def note_container(self, container: Any, code: CodeType, optional: bool) -> None:
        """A statement has chosen a list or dict, or from one that was there before."""
        self._containers.append((container, container.copy(), code, optional))

    def check_containers(self) -> None:
        """Check that no such list or dict has changed since.

        Raises
        ------
        RecordAgain, TracedValueError
            As `check_write` does.
        """
        for container, before, code, optional in self._containers:
            if not is_same_container(container, before):
                _refuse(f"a {type(container).__name__}", f"{type(container).__name__}(x)", code, optional)


def _refuse(what: str, copy: str, code: CodeType, optional: bool) -> NoReturn:
    if optional and not is_left_to_python(code):
        _left_to_python.add(code)
        raise RecordAgain
    message = (
        f"Elements are set of {what} that may have another name: the statement in line {code.co_firstlineno} "
        f"makes a name one of two by a recorded value, which is a copy here. Set elements of a copy: {copy}."
    )
    raise TracedValueError(message)


def is_same_container(now: Any, before: Any) -> bool:
    """Whether a list, dict or set has the elements of a copy that was made before."""
    if len(now) != len(before):
        return False
    if isinstance(now, dict):
        return all(key in before and before[key] is value for key, value in now.items())
    if isinstance(now, set):
        return now == before
    return all(a is b for a, b in zip(now, before, strict=True))


def chosen_arrays() -> ChosenArrays:
    """Those of the recordings that are going on."""
    traces = open_traces()
    found = next((trace.chosen for trace in traces if trace.chosen is not None), None) or ChosenArrays()
    for trace in traces:
        trace.chosen = found
    return found


def _owner(array: Any) -> Any:
    """The array that owns an array's memory; None for scalars and for what is no array."""
    if isinstance(array, Tensor):
        return None if is_scalar(array) else owner_of(array)
    if not isinstance(array, np.ndarray):
        return None
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
