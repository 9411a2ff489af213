"""Polynomials as NumPy's `poly*` functions have them: 1-d arrays of coefficients, the highest power first.

In: array-likes and `np.poly1d`. Out: Tensors, or a `np.poly1d` of Tensors where a `np.poly1d` was given. Called by
users and through table.py. Everything is written as NumPy code on Tensors, so it differentiates by itself.
Roots are eigenvalues of the companion matrix: they differentiate where they are simple.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.polynomial import polyutils

from ...errors import ArgumentError, DtypeError, ShapeError, TracedValueError
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import integer
from ...record.tensor import Tensor
from ..arrays.result_order import like_argument


def _tensor(value: Any) -> Any:
    """A Tensor of an array-like; typed as Any, because NumPy's functions take it."""
    return value if isinstance(value, Tensor) else wrap(as_node(value))


def trimseq(seq: Any) -> Any:
    """Coefficients, the lowest power first, without zeros at the end, as NumPy's polynomials keep them.

    Where values differ, as `vmap` and turns of loops record them, all coefficients stay.
    """
    if not isinstance(seq, Tensor):
        return polyutils.trimseq(seq)
    count = len(seq)
    try:
        while count > 1 and seq[count - 1] == 0:
            count -= 1
    except TracedValueError:
        return seq
    return seq[:count]


def divided(c1: Any, c2: Any, multiply: Any = None) -> tuple[Any, Any]:
    """Quotient and remainder of coefficients, the lowest power first, of polynomials of any kind.

    `multiply` gives the product of two of them; None for powers. Where values differ, as `vmap` records them, whether
    the divisor is zero is not asked.
    """
    first, second = (trimseq(np.atleast_1d(_tensor(one)) * 1.0) for one in (c1, c2))
    try:
        is_zero = bool(second[-1] == 0)
    except TracedValueError:
        is_zero = False
    if is_zero:
        raise ZeroDivisionError
    parts: list[Any] = []
    rest, count = first, len(second)
    if len(first) < count:
        return first[:1] * 0, first
    for k in range(len(first) - count, -1, -1):
        shifted: Any = np.concatenate([np.zeros(k), second]) if multiply is None else multiply([0] * k + [1], second)
        parts.insert(0, rest[-1] / shifted[-1])
        rest = rest[:-1] - parts[0] * shifted[:-1]
    return np.stack(parts), trimseq(rest) if len(rest) else first[:1] * 0


def divided_by_products(multiply: Any, c1: Any, c2: Any) -> tuple[Any, Any]:
    """NumPy's `polyutils._div`."""
    return divided(c1, c2, multiply)


def _coefficients(p: Any, name: str) -> Any:
    """The coefficients of a polynomial as a Tensor with one axis."""
    line = np.atleast_1d(_tensor(p.coeffs if isinstance(p, np.poly1d) else p))
    if line.ndim != 1:
        message = f"{name} needs 1-d coefficients, but their shape is {line.shape}."
        raise ShapeError(message)
    return line


def _like(result: Any, *given: Any) -> Any:
    """A `np.poly1d` of the result if one of the given polynomials is one."""
    return np.poly1d(result) if any(isinstance(p, np.poly1d) for p in given) else result


# ----- Arithmetic -----


def _combined(name: str, a1: Any, a2: Any) -> Any:
    first, second = _coefficients(a1, name), _coefficients(a2, name)
    n = max(first.size, second.size)
    # Zeros in front, for the powers that the shorter one lacks.
    padded = [
        np.concatenate([np.zeros(n - p.size, np.dtype(p.dtype)), p]) if p.size < n else p for p in (first, second)
    ]
    return _like(padded[0] + padded[1] if name == "polyadd" else padded[0] - padded[1], a1, a2)


def polyadd(a1: Any, a2: Any) -> Any:
    """The coefficients of the sum of two polynomials."""
    return _combined("polyadd", a1, a2)


def polysub(a1: Any, a2: Any) -> Any:
    """The coefficients of the difference of two polynomials."""
    return _combined("polysub", a1, a2)


def polymul(a1: Any, a2: Any) -> Any:
    """The coefficients of the product of two polynomials: the convolution of theirs.

    As in NumPy, leading zeros are left out first. Under `vmap` they stay, because all samples have one shape.
    """
    first, second = (_without_leading_zeros(_coefficients(p, "polymul")) for p in (a1, a2))
    return _like(np.convolve(first, second), a1, a2)


def _without_leading_zeros(line: Any) -> Any:
    """The coefficients from the first one on that is not zero; the last one stays."""
    try:
        while line.size > 1 and not bool(line[0] != 0):
            line = line[1:]
    except TracedValueError:
        return line
    return line if line.size else np.zeros_like(line, shape=(1,))


def polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    """Quotient and remainder of two polynomials.

    As in NumPy, leading coefficients of the remainder that are nearly zero are left out, so that its length depends on
    values.

    Returns
    -------
    q, r : Tensor or np.poly1d

    Examples
    --------
    >>> [part.tolist() for part in polydiv([3.0, 5.0, 2.0], [2.0, 1.0])]
    [[1.5, 1.75], [0.25]]
    """
    rest, divisor = _coefficients(u, "polydiv") + 0.0, _coefficients(v, "polydiv") + 0.0
    m, n = rest.size - 1, divisor.size - 1
    quotient = []
    for _ in range(m - n + 1):
        factor = rest[0] / divisor[0]
        quotient.append(factor)
        # The leading term cancels by construction.
        rest = np.concatenate([rest[1 : n + 1] - factor * divisor[1:], rest[n + 1 :]])
    if not quotient:
        q = np.zeros_like(divisor[:1] + rest[:1])
    else:
        q = np.stack(quotient)
        # NumPy keeps the cancelled terms and drops them again; a remainder of degree 0 stays.
        rest = rest if rest.size else np.zeros_like(q[:1])
    while rest.size > 1 and bool(np.abs(rest[0]) <= 1e-8):
        rest = rest[1:]
    return _like(q, u, v), _like(rest, u, v)


def polyder(p: Any, m: int = 1) -> Any:
    """The coefficients of the m-th derivative of a polynomial."""
    line, times = _coefficients(p, "polyder"), integer(m, "m")
    if times < 0:
        message = f"polyder needs an order of 0 or more, but got m={times}; polyint integrates."
        raise ArgumentError(message)
    for _ in range(times):
        line = line[:-1] * np.arange(line.size - 1, 0, -1)
    return _like(line, p)


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The coefficients of the m-th integral of a polynomial.

    Parameters
    ----------
    p : array-like or np.poly1d
    m : int
        How often to integrate.
    k : array-like, optional
        The constants of integration, one for each time, or one for all; 0 by default.
    """
    line, times = _coefficients(p, "polyint"), integer(m, "m")
    if times < 0:
        message = f"polyint needs an order of 0 or more, but got m={times}; polyder differentiates."
        raise ArgumentError(message)
    constants = np.atleast_1d(_tensor(np.zeros(times) if k is None else k))
    if constants.size == 1 and times > 1:
        constants = constants[0] * np.ones(times)
    if constants.size < times or constants.ndim != 1:
        message = f"polyint needs one constant or {times} of them, but k has shape {constants.shape}."
        raise ShapeError(message)
    for step in range(times):
        line = np.concatenate([line / np.arange(line.size, 0, -1), constants[step : step + 1]])
    return _like(line, p)


# ----- Values -----


@like_argument(1)
def polyval(p: Any, x: Any) -> Any:
    """The polynomial with coefficients `p`, the highest power first, at `x`, by Horner's rule.

    Parameters
    ----------
    p : array-like or np.poly1d
        Coefficients along the first axis.
    x : array-like or np.poly1d
        Where; a polynomial gives the polynomial of the composition.

    Examples
    --------
    >>> polyval([3.0, 0.0, 1.0], np.array([0.0, 5.0])).tolist()
    [1.0, 76.0]
    """
    line = np.atleast_1d(_tensor(p.coeffs if isinstance(p, np.poly1d) else p))
    if isinstance(x, np.poly1d):
        composed = _tensor(np.zeros(1, np.dtype(line.dtype)))
        for k in range(line.shape[0]):
            composed = polyadd(polymul(composed, x.coeffs), line[k])
        return np.poly1d(composed)
    at = _tensor(x)
    result = np.zeros_like(at)
    for k in range(line.shape[0]):
        # The first product is with zeros; it gives the dtype and the shape.
        result = result * at + line[k] if k else np.zeros_like(at) + line[k]
    return result


# ----- Roots -----


def poly(seq_of_zeros: Any) -> Any:
    """The coefficients of the polynomial with given roots, or of the characteristic polynomial of a square matrix."""
    zeros = np.atleast_1d(_tensor(seq_of_zeros))
    real_matrix = zeros.ndim == 2 and np.dtype(zeros.dtype).kind != "c"
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] != 0:
        zeros = np.linalg.eigvals(zeros)
    elif zeros.ndim != 1:
        message = f"poly needs 1-d roots or a square matrix, but the shape is {zeros.shape}."
        raise ShapeError(message)
    if zeros.size == 0:
        return 1.0
    zeros = zeros if np.dtype(zeros.dtype).kind in "fc" else zeros.astype(np.float64)
    line = np.ones_like(zeros[:1])
    for k in range(zeros.size):
        # Times (x - root).
        line = np.concatenate([line, np.zeros_like(line[:1])]) - np.concatenate(
            [np.zeros_like(line[:1]), line * zeros[k]]
        )
    if np.dtype(line.dtype).kind != "c":
        return line
    # Roots that come in conjugate pairs make real coefficients: always for real matrices.
    paired = real_matrix or bool(np.all(np.sort(zeros) == np.sort(np.conj(zeros))))
    return np.real(line).copy() if paired else line


def roots(p: Any) -> Any:
    """The roots of a polynomial, as eigenvalues of its companion matrix; complex, even where all of them are real.

    Leading and trailing coefficients that are zero are left out first, so the number of roots depends on values.
    """
    line = _coefficients(p, "roots")
    found = np.flatnonzero(line.asnumpy()) if not line._node.traced else None
    if found is None:
        # While a function is recorded, one question for each end.
        first, last = 0, line.size - 1
        while first <= last and not bool(line[first] != 0):
            first += 1
        while last > first and not bool(line[last] != 0):
            last -= 1
    else:
        first, last = (int(found[0]), int(found[-1])) if found.size else (line.size, line.size - 1)
    if first > last:
        return _tensor(np.array([]))
    trailing, line = line.size - 1 - last, line[first : last + 1]
    line = line if np.dtype(line.dtype).kind in "fc" else line.astype(np.float64)
    n, dtype = line.size - 1, np.dtype(line.dtype)
    none = np.zeros(trailing, dtype)
    if n == 0:
        return _tensor(none)
    companion = np.concatenate([(-line[1:] / line[0])[None], np.eye(n - 1, n, dtype=dtype)])
    found = np.linalg.eigvals(companion)
    return np.concatenate([found, none]) if trailing else found


# ----- Fits -----


def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """Coefficients of the polynomial of degree `deg` that fits points best; differentiable in x, y and w.

    Parameters
    ----------
    x : array-like of shape (M,)
    y : array-like of shape (M,) or (M, K)
    deg : int
    rcond : float, optional
        Singular values below this share of the largest one count as zero.
    full : bool
        Whether to return the other results of `np.linalg.lstsq`, too.
    w : array-like of shape (M,), optional
        Weights of the residuals (not of their squares).
    cov : bool or "unscaled"
        Whether to return the covariance of the coefficients, too.

    Returns
    -------
    p : Tensor of shape (deg + 1,) or (deg + 1, K)
    residuals, rank, singular_values, rcond
        Only with `full`.
    V : Tensor of shape (deg + 1, deg + 1) or (deg + 1, deg + 1, K)
        Only with `cov`.

    Notes
    -----
    NumPy's warning of a rank that is too small is left out; `full=True` gives the rank.
    """
    at, values, degree = _tensor(x) + 0.0, _tensor(y) + 0.0, integer(deg, "deg")
    if degree < 0:
        message = f"polyfit needs a degree of 0 or more, but got {degree}."
        raise ArgumentError(message)
    if at.ndim != 1 or at.size == 0 or values.ndim not in (1, 2) or values.shape[0] != at.size:
        message = f"polyfit needs x of shape (M,) and y of (M,) or (M, K), but got {at.shape} and {values.shape}."
        raise DtypeError(message)
    tiny = at.size * np.finfo(np.dtype(at.dtype)).eps if rcond is None else rcond
    powers, targets = np.vander(at, degree + 1), values
    if w is not None:
        weights = _tensor(w) + 0.0
        if weights.shape != at.shape:
            message = f"polyfit needs one weight for each of {at.size} points, but w has shape {weights.shape}."
            raise DtypeError(message)
        powers = powers * weights[:, None]
        targets = targets * (weights[:, None] if targets.ndim == 2 else weights)
    # Columns of length one: powers of x differ by many orders of magnitude.
    scale = np.sqrt(np.sum(powers * powers, axis=0))
    powers = powers / scale
    solution, residuals, rank, singular = np.linalg.lstsq(powers, targets, tiny)
    solution = solution / (scale[:, None] if targets.ndim == 2 else scale)
    if full:
        return solution, residuals, rank, singular, tiny
    if cov is False:
        return solution
    spread = np.linalg.inv(powers.T @ powers) / np.outer(scale, scale)
    if cov != "unscaled":
        freedom = at.size - degree - 1
        if freedom <= 0:
            message = f"A scaled covariance needs more than {degree + 1} points, but there are {at.size}."
            raise ArgumentError(message)
        deviations = targets - powers @ (solution * (scale[:, None] if targets.ndim == 2 else scale))
        factor = np.sum(np.abs(deviations) ** 2, axis=0) / freedom
    else:
        factor = 1.0
    return solution, (spread * factor if values.ndim == 1 else spread[:, :, None] * factor)
