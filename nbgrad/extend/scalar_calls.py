"""Calls in functions of numbers that are recorded: Python's, `math`'s and NumPy's functions of one number.

In: the object that is called, and numbers and Tensors that stand for numbers. Out: the result for Tensors of any shape,
element by element. Called by if_conversion.py. Functions that are not in these tables, and are no ufuncs, are refused,
because a function that is the same for one number (`np.sum`) may be another one for an array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from .. import numpy as ours
from ..functions.elementwise.ufuncs import call
from ..record.tensor import Tensor
from ..source.math_functions import REAL


def truth(value: Any) -> Any:
    """The truth of a number: a Tensor of booleans, or a bool."""
    if not isinstance(value, Tensor):
        return bool(value)
    return value if value.dtype == np.bool_ else call(np.not_equal, value, 0)


def both(a: Any, b: Any) -> Any:
    """`a and b` for truths."""
    if a is True or b is True:
        return b if a is True else a
    return False if a is False or b is False else call(np.logical_and, a, b)


def either(a: Any, b: Any) -> Any:
    """`a or b` for truths."""
    if a is False or b is False:
        return b if a is False else a
    return True if a is True or b is True else call(np.logical_or, a, b)


def negation(a: Any) -> Any:
    """`not a` for a truth."""
    return call(np.logical_not, a) if isinstance(a, Tensor) else not a


def is_number(value: Any) -> bool:
    """Whether something is a number, or a Tensor that stands for one."""
    return isinstance(value, Tensor | bool | int | float | complex | np.generic)


def select(condition: Any, yes: Any, no: Any) -> Any:
    """`yes if condition else no` for numbers; of Python numbers, one that takes the dtype of arrays that it meets."""
    found = ours.where(condition, yes, no)
    found._node.weak = all(_weak(value) for value in (yes, no))
    return found


def _weak(value: Any) -> bool:
    return value._node.weak if isinstance(value, Tensor) else type(value) in (int, float, complex)


def is_boolean(value: Any) -> bool:
    """Whether a number is a truth value."""
    return value.dtype == np.bool_ if isinstance(value, Tensor) else isinstance(value, bool | np.bool_)


def as_integer(value: Any) -> Any:
    """A truth value as 0 or 1; other numbers as they are."""
    if not is_boolean(value):
        return value
    return value.astype(np.int64) if isinstance(value, Tensor) else int(value)


# ----- Python's own -----


def _int(x: Any = 0) -> Any:
    return x.astype(np.int64)


def _float(x: Any = 0.0) -> Any:
    return x if x.dtype.kind == "f" else x.astype(np.float64)


def _extremum(compare: np.ufunc) -> Callable[..., Any]:
    def function(*values: Any) -> Any:
        values = values[0] if len(values) == 1 else values
        found = values[0]
        for value in values[1:]:
            found = select(call(compare, value, found), value, found)
        return found

    return function


def _round(x: Any, digits: Any = None) -> Any:
    return call(np.rint, x).astype(np.int64) if digits is None else np.round(x, digits)


def _sum(values: Any, start: Any = 0) -> Any:
    for value in values:
        start = start + value
    return start


def _rounded(name: str) -> Callable[[Any], Any]:
    """Python's floor, ceil and trunc give integers."""
    return lambda x: call(getattr(np, name), x).astype(np.int64)


def _ufunc(name: str) -> Callable[[Any], Any]:
    return lambda x: call(getattr(np, name), x)


def _isclose(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    bound = call(np.maximum, rel_tol * call(np.maximum, abs(a), abs(b)), abs_tol)
    return either(call(np.equal, a, b), call(np.less_equal, abs(a - b), bound))


_PYTHON: dict[Any, Callable[..., Any]] = {
    abs: abs,
    bool: truth,
    divmod: lambda x, y: (x // y, x % y),
    float: _float,
    int: _int,
    max: _extremum(np.greater),
    min: _extremum(np.less),
    pow: lambda x, y: x**y,
    round: _round,
    sum: _sum,
}
_MATH: dict[str, Callable[..., Any]] = {
    **REAL,
    **{name: _rounded(name) for name in ("floor", "ceil", "trunc")},
    **{name: _ufunc(name) for name in ("isnan", "isinf", "isfinite")},
    "isclose": _isclose,
}
_ELEMENTWISE = "where clip sinc nan_to_num round around fix real imag isclose".split()
"""Functions of NumPy that are no ufuncs, and work element by element."""


@cache
def _table() -> dict[int, tuple[Any, Callable[..., Any]]]:
    """By identity: a function, and the one that is called in its place if there is a Tensor among the arguments."""
    found = {id(original): (original, ours) for original, ours in _PYTHON.items()}
    for name, function in _MATH.items():
        original = getattr(math, name, None)
        if original is not None:
            found[id(original)] = original, function
    for name in _ELEMENTWISE:
        original = getattr(np, name, None)
        if original is not None:
            found[id(original)] = original, select if name == "where" else getattr(ours, name, original)
    return found


def _scalar_dtype(function: Any) -> np.dtype[Any] | None:
    """The dtype of NumPy's scalar types, and of Numba's types of numbers, as a cast."""
    if isinstance(function, type) and issubclass(function, np.number | np.bool_):
        try:
            return np.dtype(function)
        except TypeError:
            return None
    if type(function).__module__.startswith("numba.core.types"):
        try:
            return np.dtype(str(function).replace("boolean", "bool"))
        except TypeError:
            return None
    return None


def scalar_call(function: Any) -> Callable[..., Any] | None:
    """The function of Tensors in place of one of numbers; None if there is none."""
    known = _table().get(id(function))
    if known is not None and known[0] is function:
        return known[1]
    dtype = _scalar_dtype(function)
    if dtype is not None:
        return lambda x: x.astype(dtype) if isinstance(x, Tensor) else dtype.type(x)
    if isinstance(function, np.ufunc) and function.signature is None:
        return function
    return None


def has_tensor(values: Sequence[Any]) -> bool:
    """Whether a Tensor is among values, or in tuples and lists of them."""
    return any(isinstance(v, Tensor) or (isinstance(v, tuple | list) and has_tensor(v)) for v in values)
