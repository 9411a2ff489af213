"""Objects of nbgrad's in place of SciPy's: names that they lack are the original's.

In: an object of ours, made of one of SciPy's or of recorded values, and a name. Out: what SciPy's object has under that
name, or an error that says that recorded values have none. Called by the classes of splines, grids and densities, which
derive from `ScipyObject`, and by scipy_calls.py, which tells them their originals.
"""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

_CHANGING = frozenset("set_bandwidth set_smoothing_factor set_yi add_xi extend".split())
"""Methods that change SciPy's object, which ours would not see."""


class RecordedMatrix:
    """A sparse matrix of recorded values: functions of SciPy's that get one are ours (sparse_values.py)."""

    values: Any
    """The node of its entries."""

    as_scipys: Callable[[], Any]
    """The method that gives SciPy's matrix, for a matrix of constants."""


class ScipyObject:
    """An object in place of one of SciPy's; `_original` is that, if it was made of plain arrays."""

    def __getattr__(self, name: str) -> Any:
        original = self.__dict__.get("_original")
        if original is not None and not name.startswith("_") and name not in _CHANGING:
            return getattr(original, name)
        message = (
            f"{type(self).__name__} has no {name!r} in a function that is recorded; make the object anew, or outside."
        )
        raise AttributeError(message)


def is_factorisation(value: Any) -> bool:
    """Whether a value is a factorisation of SuperLU's, or a method of one: of a compiled class that names no module."""
    kind = type(value.__self__) if isinstance(value, BuiltinFunctionType) else type(value)
    return kind.__name__ == "SuperLU" and kind.__module__ == "builtins"


def standing_for(ours: Any, original: Any) -> Any:
    """The object of ours for one of SciPy's."""
    made = ours.of(original)
    if made is not original:
        made._original = original
    return made
