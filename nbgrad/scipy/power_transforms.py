"""`scipy.stats`' transform of Yeo and Johnson, and likelihoods of powers: smooth where powers become logarithms.

In: data and a power. Out: Tensors, with derivatives by both. SciPy's code branches at the powers 0 and 2, where its
branch does not depend on the power. Called by code that `differentiable_source` runs, by scipy_table.py.
"""

from __future__ import annotations

from typing import Any

from .. import numpy as np
from ..errors import ArgumentError, DtypeError
from ..functions.elementwise.ufuncs import call


def _real(data: Any) -> Any:
    """Data as floating-point numbers."""
    data = np.asarray(data)
    if data.dtype.kind == "c":
        message = "Power transforms take real numbers, but the data are complex."
        raise DtypeError(message)
    return data if data.dtype.kind == "f" else data * 1.0


def _two_sided(x: Any, up: Any, down: Any) -> Any:
    """((1 + x)**up - 1) / up, and minus the same of -x with `down` below 0 (Yeo and Johnson 2000, equation 2.1)."""
    import scipy.special

    above = x >= 0
    right = call(scipy.special.boxcox1p, np.where(above, x, 0.0), up)
    left = call(scipy.special.boxcox1p, np.where(above, 0.0, -x), down)
    return np.where(above, right, -left)


def yeojohnson(x: Any, lmbda: Any) -> Any:
    """The data, transformed by one power."""
    if lmbda is None:
        message = "yeojohnson of recorded data needs lmbda: the search for the best one has no derivative here."
        raise ArgumentError(message)
    return _two_sided(_real(x), np.asarray(lmbda) * 1.0, 2.0 - np.asarray(lmbda))


def yeojohnson_llf(lmb: Any, data: Any, axis: Any = 0, keepdims: bool = False) -> Any:
    """The logarithm of the likelihood of a power (Yeo and Johnson 2000, equation 3.2), without its constant."""
    x = _real(data)
    spread = np.var(yeojohnson(x, lmb), axis=axis, keepdims=keepdims)
    stretch = np.sum(_two_sided(x, np.asarray(0.0), np.asarray(0.0)), axis=axis, keepdims=keepdims)
    return (lmb - 1) * stretch - _count(stretch, x) / 2 * np.log(spread)


def boxcox_llf(lmb: Any, data: Any, axis: Any = 0, keepdims: bool = False) -> Any:
    """The logarithm of the likelihood of a power (Box and Cox 1964, section 3), without its constant.

    For data over their geometric mean, so that no power overflows.
    """
    import scipy.special

    x = _real(data)
    logs = np.log(x)
    scaled = np.exp(logs - np.mean(logs, axis=axis, keepdims=True))
    spread = np.var(call(scipy.special.boxcox, scaled, np.asarray(lmb) * 1.0), axis=axis, keepdims=keepdims)
    stretch = np.sum(logs, axis=axis, keepdims=keepdims)
    return -stretch - _count(stretch, x) / 2 * np.log(spread)


def _count(reduced: Any, whole: Any) -> float:
    """The elements that one number has been made of."""
    return whole.size / max(np.asarray(reduced).size, 1)
