"""Arrays that a compiled function has read from outside: whether they still hold what was recorded.

In: the arrays that a recording has met, and the function itself. Out: `FrozenArrays`, which raises at a call after one
of them has changed. Called by jit.py, for `jit(f, frozen="check")`.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import numpy as np

from ..errors import TracedValueError
from ..record.as_node import have_same_bits
from ..transforms.arguments import name_of

Met = list[tuple[np.ndarray, np.ndarray]]
"""Arrays that were met, each with the values that were recorded."""


class FrozenArrays:
    """The arrays of one function: those that its recordings have met, and those that its text names."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.met: Met = []
        """Filled by recordings."""
        self._kept: Met = []
        self._named: dict[str, tuple[Any, np.ndarray]] = {}

    def take(self) -> None:
        """Keep what a recording has met, but for arrays that nothing else holds any more: they cannot change."""
        known = {id(array) for array, _ in (*self._kept, *self._named.values())}
        while self.met:
            array, values = self.met.pop()
            owns, references = _references(array)
            if references > _ALONE[owns] and id(array) not in known:
                known.add(id(array))
                self._kept.append((array, values))

    def begin(self) -> Met:
        """Keep what the function's text names, for a recording that fills the list."""
        for name, array in _named_arrays(self.fn):
            if name not in self._named:
                self._named[name] = array, array.copy()
        return self.met

    def check(self) -> None:
        """Look at all arrays.

        Raises
        ------
        TracedValueError
            If one has changed, or its name means another one.
        """
        if self._named:
            now = dict(_named_arrays(self.fn))
            for name, (array, values) in self._named.items():
                other = now.get(name)
                if other is not array and (other is None or not _is_as(other, values)):
                    self._refuse(f"{name} is another value")
                if not _is_as(array, values):
                    self._refuse(f"the array {name} of shape {array.shape} has changed in place")
        for array, values in self._kept:
            if not _is_as(array, values):
                self._refuse(f"an array of shape {array.shape} that it reads from outside has changed in place")

    def _refuse(self, happened: str) -> None:
        name = name_of(self.fn)
        message = (
            f"jit has recorded {name}() with values that are frozen, but {happened} since. Make it an argument of "
            f"{name}(), or compile again with nb.jit({name})."
        )
        raise TracedValueError(message)


def _references(array: np.ndarray) -> tuple[bool, float]:
    """Whether an array owns its memory, and the number of references to the array that does."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner is array, sys.getrefcount(owner) if owner.base is None else math.inf


def _when_alone(met: list[np.ndarray]) -> tuple[bool, float]:
    array = met.pop()
    return _references(array)


_ALONE = dict([_when_alone([np.zeros(2)]), _when_alone([np.zeros(2)[:1]])])
"""The numbers of references where nothing else holds an array that `take` looks at."""


def _is_as(array: np.ndarray, values: np.ndarray) -> bool:
    return array.shape == values.shape and have_same_bits(array, values)


def _named_arrays(fn: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays that the text of a function names."""
    return ((name, value) for name, value in named_values(fn) if type(value) is np.ndarray)


def named_values(fn: Any) -> Iterator[tuple[str, Any]]:
    """The values that the text of a function names: globals, and variables of functions around it."""
    fn = inspect.unwrap(getattr(fn, "__func__", fn))  # of a derivative: the function that is differentiated
    code = getattr(fn, "__code__", None)
    if not isinstance(code, CodeType):
        return
    for name, cell in zip(code.co_freevars, fn.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:  # not set yet
            continue
        yield name, value
    for name in _global_names(code):
        try:
            yield name, fn.__globals__[name]
        except (KeyError, NameError):  # of an attribute, or not set yet
            continue


def _global_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)
