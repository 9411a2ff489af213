"""Replacements of SciPy's functions in code that `differentiable_source` runs.

In: a function of `scipy.linalg`, `scipy.fft`, `scipy.special` or `scipy.integrate`. Out: a function with its signature
that hands Tensors to nbgrad's, and everything else to SciPy's. Called by replacements.py. SciPy's ufuncs know
Tensors by NumPy's protocol and need nothing here; functions that are written in Python by NumPy's, as most of SciPy
outside of linear algebra, take part by `modules="scipy"`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .. import numpy as ours
from ..errors import ArgumentError
from ..functions.elementwise.ufuncs import call
from ..functions.table import module_of
from ..record.as_node import holds_tensors

Function = Callable[..., Any]
_NEUTRAL = frozenset(
    "overwrite_a overwrite_b overwrite_x check_finite workers assume_a disp lapack_driver plan".split()
)
"""Parameters that change SciPy's method, but not its result."""


def _cholesky(a: Any, lower: bool = False) -> Any:
    return ours.linalg.cholesky(a, upper=not lower)


def _qr(a: Any, mode: str = "full") -> Any:
    names = {"full": "complete", "economic": "reduced", "r": "r"}
    if mode not in names:
        message = f"qr with mode={mode!r} is not supported for Tensors; use {', '.join(map(repr, names))}."
        raise ArgumentError(message)
    found = ours.linalg.qr(a, names[mode])
    return (found,) if mode == "r" else tuple(found)


def _pair(function: Function) -> Function:
    return lambda a: tuple(function(a))


def _softmax(x: Any, axis: Any = None) -> Any:
    return np.exp(_log_softmax(x, axis))


def _log_softmax(x: Any, axis: Any = None) -> Any:
    return x - ours.logsumexp(x, axis, True)


def _linalg(name: str) -> Function:
    return lambda *args, **kwargs: getattr(ours.linalg, name)(*args, **kwargs)


def _ours(name: str) -> Function:
    return lambda *args, **kwargs: getattr(ours, name)(*args, **kwargs)


def _fft(name: str) -> Function:
    return lambda *args, **kwargs: getattr(ours.fft, name)(*args, **kwargs)


def _ours_later(module: str, name: str) -> Function:
    return lambda *args, **kwargs: getattr(module_of(f"analysis.{module}"), name)(*args, **kwargs)


TABLE: dict[str, dict[str, tuple[Function, str]]] = {
    "scipy.linalg": {
        **{name: (_linalg(name), "a") for name in "inv det pinv svdvals eigvals".split()},
        "eigvalsh": (lambda a, lower: ours.linalg.eigvalsh(a, "L" if lower else "U"), "a lower"),
        "eigh": (lambda a, lower: tuple(ours.linalg.eigh(a, "L" if lower else "U")), "a lower"),
        "eig": (_pair(_linalg("eig")), "a"),
        "solve": (_linalg("solve"), "a b"),
        "norm": (_linalg("norm"), "a ord axis keepdims"),
        "svd": (_linalg("svd"), "a full_matrices compute_uv"),
        "qr": (_qr, "a mode"),
        "cholesky": (_cholesky, "a lower"),
        "solve_triangular": (_ours("solve_triangular"), "a b trans lower unit_diagonal"),
        "cho_factor": (_ours("cho_factor"), "a lower"),
        "cho_solve": (_ours("cho_solve"), "c_and_lower b"),
        "lu_factor": (_ours("lu_factor"), "a"),
        "lu_solve": (_ours("lu_solve"), "lu_and_piv b trans"),
        **{name: (_ours(name), "A") for name in ("expm", "logm", "sqrtm")},
        "solve_sylvester": (_ours("solve_sylvester"), "a b q"),
    },
    "scipy.special": {
        "logsumexp": (_ours("logsumexp"), "a axis keepdims"),
        "softmax": (_softmax, "x axis"),
        "log_softmax": (_log_softmax, "x axis"),
    },
    "scipy.integrate": {"trapezoid": (_ours("trapezoid"), "y x dx axis")},
    "scipy.fft": {
        **{name: (_fft(name), "x n axis norm") for name in "fft ifft rfft irfft hfft ihfft".split()},
        **{name: (_fft(name), "x s axes norm") for name in "fft2 ifft2 fftn ifftn rfft2 irfft2 rfftn irfftn".split()},
        **{
            name: (_ours_later("fft_functions", name.replace("2", "n")), "x s axes norm")
            for name in "hfft2 ihfft2 hfftn ihfftn".split()
        },
        **{
            name: (_ours_later("cosine_transforms", name), "x type n axis norm orthogonalize")
            for name in "dct idct dst idst".split()
        },
        **{
            name: (_ours_later("cosine_transforms", name), "x type s axes norm orthogonalize")
            for name in "dctn idctn dstn idstn".split()
        },
    },
}
"""By module and name: our function, and which of SciPy's parameters it takes, in its own order."""


def _dispatching(name: str, original: Function, function: Function, taken: list[str]) -> Function:
    """A function of SciPy's that hands Tensors to ours."""
    signature = inspect.signature(original)

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        if not any(holds_tensors(value) for value in (*args, *kwargs.values())):
            return original(*args, **kwargs)
        given = signature.bind(*args, **kwargs)
        for parameter, value in given.arguments.items():
            default = signature.parameters[parameter].default
            usual = value is default or (isinstance(value, bool | int | float | str) and value == default)
            if not usual and parameter not in taken and parameter not in _NEUTRAL:
                message = f"{name} does not take {parameter} for Tensors; leave it away."
                raise ArgumentError(message)
        given.apply_defaults()
        return function(*[given.arguments[parameter] for parameter in taken])

    dispatch.__name__ = dispatch.__qualname__ = original.__name__
    dispatch.__doc__ = f"As `{name}`; of Tensors, with derivatives."
    return dispatch


class Normal:
    """`scipy.stats.norm`, whose most used functions know Tensors."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._original(*args, **kwargs)

    def _standard(self, name: str, x: Any, loc: Any, scale: Any) -> tuple[Any, bool]:
        """For Tensors, the number of standard deviations above the mean, and True; else SciPy's result, and False."""
        if not any(holds_tensors(value) for value in (x, loc, scale)):
            return getattr(self._original, name)(x, loc, scale), False
        return (ours.asarray(x) - loc) / scale, True

    def pdf(self, x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        """The density."""
        z, known = self._standard("pdf", x, loc, scale)
        return np.exp(-z * z / 2) / (np.sqrt(2 * np.pi) * scale) if known else z

    def logpdf(self, x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        """The logarithm of the density."""
        z, known = self._standard("logpdf", x, loc, scale)
        return -z * z / 2 - np.log(np.sqrt(2 * np.pi) * scale) if known else z

    def cdf(self, x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        """The probability of at most x."""
        return self._ufunc("cdf", "ndtr", 1, x, loc, scale)

    def sf(self, x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        """The probability of more than x."""
        return self._ufunc("sf", "ndtr", -1, x, loc, scale)

    def logcdf(self, x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        """The logarithm of `cdf`."""
        return self._ufunc("logcdf", "log_ndtr", 1, x, loc, scale)

    def _ufunc(self, name: str, ufunc: str, sign: int, x: Any, loc: Any, scale: Any) -> Any:
        import scipy.special

        z, known = self._standard(name, x, loc, scale)
        return call(getattr(scipy.special, ufunc), sign * z) if known else z


@cache
def _found(module: str) -> dict[int, tuple[Any, Any]]:
    """By identity: functions of an imported module, and their replacements."""
    if module == "scipy.stats":
        norm = sys.modules[module].norm
        return {id(norm): (norm, Normal(norm))}
    found: dict[int, tuple[Any, Any]] = {}
    for name, (function, taken) in TABLE[module].items():
        original = getattr(sys.modules[module], name)
        found[id(original)] = original, _dispatching(f"{module}.{name}", original, function, taken.split())
    return found


def implementation_of(multimethod: Any) -> Any:
    """SciPy's own function behind one of its multimethods; the multimethod, if there is none.

    A multimethod (of `scipy.fft`) is an object of compiled code that takes the arrays out of its arguments, by the
    function in `__wrapped__`, and asks a backend.
    """
    for module in ("_basic_backend", "_realtransforms_backend", "_fftlog_backend"):
        found = getattr(sys.modules.get(f"scipy.fft.{module}"), multimethod.__name__, None)
        if found is not None:
            return found
    return multimethod


def replacement_in_scipy(value: Any) -> Any:
    """The replacement of an object of SciPy; the object itself, if there is none."""
    for module in (*TABLE, "scipy.stats"):
        if module in sys.modules and hasattr(sys.modules[module], "__all__"):
            known = _found(module).get(id(value))
            if known is not None and known[0] is value:
                return known[1]
    return value
