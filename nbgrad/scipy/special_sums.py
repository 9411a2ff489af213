"""Functions of `scipy.special` that are no ufuncs: sums of exponentials, and products of gamma functions.

In: array-likes, axes. Out: Tensors. Called by code that `differentiable_source` runs, by scipy_table.py.
"""

from __future__ import annotations

from typing import Any

from .. import numpy as np
from ..functions.elementwise.gamma_functions import multigammaln as multigammaln
from ..transforms.custom import stop_gradient


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """log(sum(b exp(a))) over axes, without overflow; with the sign of the sum, if that is asked for."""
    if b is None and not return_sign:
        return np.logsumexp(a, axis, keepdims)
    a = np.asarray(a)
    weights = np.ones(a.shape) if b is None else np.asarray(b) * np.ones(a.shape)
    a = np.where(weights == 0, -np.inf, a * np.ones(weights.shape))
    top = np.max(np.where(np.isfinite(a), a, -np.inf), axis=axis, keepdims=True, initial=-np.inf)
    top = stop_gradient(np.where(np.isfinite(top), top, 0.0))
    total = np.sum(weights * np.exp(a - top), axis=axis, keepdims=True)
    sign = np.sign(total)
    size = np.abs(total) if return_sign else total
    nothing = size == 0
    found = np.where(nothing, -np.inf, np.log(np.where(nothing, 1.0, size))) + top
    if not keepdims:
        found, sign = np.squeeze(found, axis=axis), np.squeeze(sign, axis=axis)
    return (found, sign) if return_sign else found


def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) over its sum."""
    return np.exp(log_softmax(x, axis))


def log_softmax(x: Any, axis: Any = None) -> Any:
    """The logarithm of `softmax`."""
    return np.asarray(x) - np.logsumexp(x, axis, True)
