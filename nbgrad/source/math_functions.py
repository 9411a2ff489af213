"""Python's `math` for recorded values: its replacement in functions that `differentiable_source` runs.

In: numbers and Tensors with one element. Out: for numbers the results of `math`; for Tensors 0-d Tensors that keep
their gradient, where `math` would turn them into floats. Called by replacements.py.

Two things differ from `math`: arguments outside a function's domain give NaN or infinity, as in NumPy, instead of a
ValueError, unless a `try` statement waits for that (handled_errors.py); and floor, ceil and trunc of a Tensor give
Python integers, whose derivative is zero.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from functools import reduce
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..functions.elementwise.ufuncs import call
from ..record.as_node import holds_tensors
from ..record.tensor import Tensor
from ..tensors.python_numbers import number
from .handled_errors import raise_as_math


def _scalar(value: Any, name: str) -> Any:
    """A number as it is; a Tensor as `float` converts it."""
    if not isinstance(value, Tensor):
        return value
    if value.size != 1:
        message = f"math.{name} takes single numbers, but got an array of shape {value.shape}. Use np.{name}."
        raise ArgumentError(message)
    return number(value)


def _dispatching(module: ModuleType, name: str, ours: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `math` that hands Tensors to `ours`."""
    original = getattr(module, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(value, Tensor) for value in (*args, *kwargs.values())):
            found = ours(*[_scalar(v, name) for v in args], **{k: _scalar(v, name) for k, v in kwargs.items()})
            raise_as_math(name, args, found)
            return number(found) if isinstance(found, Tensor) and found.dtype.kind in "fc" else found
        return original(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As `{module.__name__}.{name}`; of a Tensor, a 0-d Tensor with its gradient."
    function.__wrapped__ = original  # type: ignore[attr-defined]
    return function


def _ufunc(name: str) -> Callable[..., Any]:
    ufunc = getattr(np, name)
    return lambda *values: call(ufunc, *values)


def _log(x: Any, base: Any = None) -> Any:
    return np.log(x) if base is None else np.log(x) / np.log(base)


def _hypot(*coordinates: Any) -> Any:
    first, *rest = coordinates
    return reduce(np.hypot, rest, np.abs(first))


def _dist(p: Any, q: Any) -> Any:
    return _hypot(*[a - b for a, b in zip(p, q, strict=True)])


def _special(name: str) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        from ..functions.elementwise import special_functions as special

        return getattr(special, name)(x)

    return function


def _gamma(x: Any) -> Any:
    # The sign of gamma changes at each negative integer.
    size = np.exp(_special("gammaln")(x))
    negative = np.logical_and(np.less(x, 0), np.equal(np.remainder(np.floor(x), 2), 1))
    return np.where(negative, -size, size)


def _isclose(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> bool:
    return bool(abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol))


def _sum(values: Any) -> Any:
    return sum(values[1:], values[0]) if isinstance(values, list) else np.sum(values)


def _prod(iterable: Any, *, start: Any = 1) -> Any:
    return reduce(lambda a, b: a * b, iterable, start)


def _remainder(x: Any, y: Any) -> Any:
    return x - np.rint(x / y) * y


REAL: dict[str, Callable[..., Any]] = {
    **{
        name: _ufunc(numpys)
        for name, numpys in {
            **{
                same: same
                for same in (
                    "sin cos tan sinh cosh tanh exp exp2 expm1 log2 log10 log1p sqrt cbrt fabs fmod copysign degrees "
                    "radians ldexp modf nextafter"
                ).split()
            },
            **{f"a{name}": f"arc{name}" for name in "sin cos tan sinh cosh tanh".split()},
            "atan2": "arctan2",
            "pow": "power",
        }.items()
    },
    "log": _log,
    "hypot": _hypot,
    "erf": _special("erf"),
    "erfc": _special("erfc"),
    "lgamma": _special("gammaln"),
    "gamma": _gamma,
    "remainder": _remainder,
    "isclose": _isclose,
    "floor": lambda x: int(np.floor(x)),
    "ceil": lambda x: int(np.ceil(x)),
    "trunc": lambda x: int(np.trunc(x)),
    "isnan": lambda x: bool(np.isnan(x)),
    "isinf": lambda x: bool(np.isinf(x)),
    "isfinite": lambda x: bool(np.isfinite(x)),
    "fma": lambda x, y, z: x * y + z,
}
_OF_SEQUENCES: dict[str, Callable[..., Any]] = {
    "fsum": lambda values: _sum(list(values)),
    "prod": _prod,
    "dist": _dist,
    "sumprod": lambda p, q: _sum([a * b for a, b in zip(p, q, strict=True)]),
}


def _of_complex(name: str) -> Callable[..., Any]:
    """A function of `cmath`, which takes a real number as a complex one: `sqrt(-1.0)` is `1j`."""
    real = REAL[name]
    return lambda *values: real(*[number(v.astype(np.complex128)) if isinstance(v, Tensor) else v + 0j for v in values])


_COMPLEX: dict[str, Callable[..., Any]] = {
    **{
        name: _of_complex(name)
        for name in "sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh exp log log10 sqrt".split()
    },
    "phase": lambda z: np.angle(z),
    "polar": lambda z: (np.abs(z), np.angle(z)),
    "rect": lambda r, phi: r * np.cos(phi) + 1j * (r * np.sin(phi)),
    "isnan": REAL["isnan"],
    "isinf": REAL["isinf"],
    "isfinite": REAL["isfinite"],
}
"""By name: the functions of Tensors in place of those of `math` and `cmath`."""


def _of_sequence(name: str, ours: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `math` that takes sequences, which may hold Tensors."""
    original = getattr(math, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        lists = [arg if isinstance(arg, Tensor) else list(arg) for arg in args]
        if not holds_tensors([*lists, *kwargs.values()]):
            return original(*lists, **kwargs)
        return ours(*lists, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As `math.{name}`; with Tensors, a 0-d Tensor with its gradient."
    function.__wrapped__ = original  # type: ignore[attr-defined]
    return function


def functions() -> dict[Any, Callable[..., Any]]:
    """The functions of `math` and `cmath`, each with its replacement; names that this Python lacks are left out."""
    found: dict[Any, Callable[..., Any]] = {}
    for module, table in ((math, REAL), (cmath, _COMPLEX)):
        for name, ours in table.items():
            if hasattr(module, name):
                found[getattr(module, name)] = _dispatching(module, name, ours)
    for name, ours in _OF_SEQUENCES.items():
        if hasattr(math, name):
            found[getattr(math, name)] = _of_sequence(name, ours)
    return found
