"""Functions that make arrays of other forms, and sums along arrays, as kernels, as those of array_kernels.py.

In: nothing. Out: `FORMING_KERNELS`: kernels in plain loops, by NumPy's function and the ranks of its arguments, whose
other parameters are numbers, texts, None or tuples of numbers. Called by array_kernels.py, whose table has them too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from .counting_kernels import RANKS, of_ranks


@njit
def _extracted(condition, arr):
    flat = arr.ravel()
    return flat[condition.ravel() != 0]


# ----- Forms -----


@njit
def _diagonal(v, k=0):
    rows = max(-k, 0)
    columns = max(k, 0)
    n = max(min(v.shape[0] - rows, v.shape[1] - columns), 0)
    found = np.empty(n, v.dtype)
    for i in range(n):
        found[i] = v[i + rows, i + columns]
    return found


@njit
def _diagonal_matrix(v, k=0):
    n = v.shape[0] + abs(k)
    found = np.zeros((n, n), v.dtype)
    for i in range(v.shape[0]):
        found[i + max(-k, 0), i + max(k, 0)] = v[i]
    return found


@njit
def _flat_diagonal_matrix(v, k=0):
    return _diagonal_matrix(v.ravel(), k)


@njit
def _trace(a, offset=0):
    total = 0.0
    for x in _diagonal(a, offset):
        total = total + x
    return total


@njit
def _fill_diagonal(a, val, wrap=False):
    for i in range(min(a.shape[0], a.shape[1])):
        a[i, i] = val


@njit
def _fill_diagonal_by_vector(a, val, wrap=False):
    for i in range(min(a.shape[0], a.shape[1])):
        a[i, i] = val[i % val.shape[0]]


@njit
def _eye(N, M=None, k=0):
    columns = N if M is None else M
    found = np.zeros((N, columns))
    for i in range(N):
        if 0 <= i + k < columns:
            found[i, i + k] = 1.0
    return found


@njit
def _ones_below(N, M=None, k=0):
    return np.tril(np.ones((N, N if M is None else M)), k)


@njit
def _powers(x, N=None, increasing=False):
    columns = x.shape[0] if N is None else N
    found = np.empty((x.shape[0], columns))
    for i in range(x.shape[0]):
        power = 1.0
        for k in range(columns):
            found[i, k if increasing else columns - 1 - k] = power
            power = power * x[i]
    return found


@njit
def _rolled(a, shift):
    flat = a.ravel()
    n = flat.shape[0]
    found = np.empty(n, a.dtype)
    for k in range(n):
        found[(k + shift) % n] = flat[k]
    return found.reshape(a.shape)


@njit
def _reversed_matrix(m):
    return m[::-1, ::-1]


@njit
def _turned(m, k=1):
    quarters = k % 4
    n, columns = m.shape[0], m.shape[1]
    swaps = quarters % 2 == 1
    found = np.empty((columns if swaps else n, n if swaps else columns), m.dtype)
    for i in range(n):
        for j in range(columns):
            if quarters == 0:
                found[i, j] = m[i, j]
            elif quarters == 1:
                found[columns - 1 - j, i] = m[i, j]
            elif quarters == 2:
                found[n - 1 - i, columns - 1 - j] = m[i, j]
            else:
                found[j, n - 1 - i] = m[i, j]
    return found


@njit
def _repeated_each(a, repeats):
    total = 0
    for count in repeats:
        total += count
    found = np.empty(total, a.dtype)
    place = 0
    for i in range(a.shape[0]):
        for _ in range(repeats[i]):
            found[place] = a[i]
            place += 1
    return found


@njit
def _without_several(arr, obj):
    n = arr.shape[0]
    kept = np.ones(n, np.bool_)
    for k in obj:
        kept[k] = False
    return arr[kept]


@njit
def _without_zeros_at_ends(filt):
    first = 0
    last = filt.shape[0]
    while first < last and filt[first] == 0.0:
        first += 1
    while last > first and filt[last - 1] == 0.0:
        last -= 1
    return filt[first:last]


@njit
def _taken_number(a, indices):
    return a.ravel()[indices]


@njit
def _taken_along(arr, indices, axis):
    found = np.empty(indices.shape, arr.dtype)
    for i in range(indices.shape[0]):
        for j in range(indices.shape[1]):
            k = indices[i, j]
            found[i, j] = arr[i, k] if axis == 1 or axis == -1 else arr[k, j]
    return found


@njit
def _kronecker_of_vectors(a, b):
    m = b.shape[0]
    found = np.empty(a.shape[0] * m, (a[:1] * b[:1]).dtype)
    for i in range(a.shape[0]):
        for j in range(m):
            found[i * m + j] = a[i] * b[j]
    return found


@njit
def _kronecker_of_row(a, b):
    return np.kron(np.expand_dims(a, 0), b)


@njit
def _kronecker_by_row(a, b):
    return np.kron(a, np.expand_dims(b, 0))


# ----- Sums -----


@njit
def _convolved(a, v, mode="full"):
    n = a.shape[0]
    m = v.shape[0]
    whole = np.zeros(n + m - 1, (a[:1] * v[:1]).dtype)
    for i in range(n):
        for j in range(m):
            whole[i + j] += a[i] * v[j]
    least = min(n, m)
    if mode == "same":
        return whole[(least - 1) // 2 : (least - 1) // 2 + max(n, m)]
    if mode == "valid":
        return whole[least - 1 : max(n, m)]
    return whole[:]


@njit
def _correlated(a, v, mode="valid"):
    n = a.shape[0]
    m = v.shape[0]
    whole = np.zeros(n + m - 1, (a[:1] * v[:1]).dtype)
    for i in range(n):
        for j in range(m):
            whole[i + m - 1 - j] += a[i] * v[j]
    least = min(n, m)
    if mode == "same":
        first = least // 2 if n < m else (least - 1) // 2
        return whole[first : first + max(n, m)]
    if mode == "valid":
        return whole[least - 1 : max(n, m)]
    return whole[:]


@njit
def _cumulated_numbers(a):
    flat = a.ravel()
    found = np.empty(flat.shape[0], a.dtype)
    total = 0.0
    for i in range(flat.shape[0]):
        if not math.isnan(flat[i]):
            total = total + flat[i]
        found[i] = total
    return found


@njit
def _multiplied_numbers(a):
    flat = a.ravel()
    found = np.empty(flat.shape[0], a.dtype)
    total = 1.0
    for i in range(flat.shape[0]):
        if not math.isnan(flat[i]):
            total = total * flat[i]
        found[i] = total
    return found


@njit
def _cumulated_flat(a):
    return np.cumsum(a.ravel())


@njit
def _multiplied_flat(a):
    return np.cumprod(a.ravel())


@njit
def _differences_again(a, n=1):
    found = a.copy()
    for turn in range(n):
        for i in range(a.shape[0] - 1 - turn):
            found[i] = found[i + 1] - found[i]
    return found[: max(a.shape[0] - n, 0)]


@njit
def _differences_of_rows(a):
    return a[:, 1:] - a[:, :-1]


@njit
def _differences_flat(ary):
    flat = ary.ravel()
    return flat[1:] - flat[:-1]


@njit
def _numbers(a):
    flat = a.ravel()
    return flat[~np.isnan(flat)]


@njit
def _median_of_numbers(a):
    return np.median(_numbers(a))


@njit
def _quantile_of_numbers(a, q):
    return np.quantile(_numbers(a), q)


@njit
def _percentile_of_numbers(a, q):
    return np.percentile(_numbers(a), q)


@njit
def _average(a, axis=None, weights=None):
    return np.mean(a)


@njit
def _weighted_average(a, axis, weights):
    return np.sum(a * weights) / np.sum(weights)


@njit
def _trapezoid_of_rows(y, x=None, dx=1.0):
    found = np.zeros(y.shape[0])
    for i in range(y.shape[0]):
        for j in range(y.shape[1] - 1):
            found[i] += 0.5 * dx * (y[i, j] + y[i, j + 1])
    return found


@njit
def _trapezoid_of_rows_over(y, x):
    found = np.zeros(y.shape[0])
    for i in range(y.shape[0]):
        for j in range(y.shape[1] - 1):
            found[i] += 0.5 * (x[j + 1] - x[j]) * (y[i, j] + y[i, j + 1])
    return found


@njit
def _evenly_scaled(start, stop, num=50):
    # The numbers at both ends are the given ones.
    found = np.exp(np.linspace(math.log(abs(start)), math.log(abs(stop)), num))
    for i in range(num):
        if start < 0.0:
            found[i] = -found[i]
    if num > 0:
        found[0] = start
    if num > 1:
        found[num - 1] = stop
    return found


@njit
def _each_without_nan(x, copy=True, nan=0.0):
    found = np.empty_like(x)
    for place in np.ndindex(x.shape):
        value = x[place]
        if math.isnan(value):
            found[place] = nan
        else:
            found[place] = min(max(value, -1.7976931348623157e308), 1.7976931348623157e308)
    return found


@njit
def _number_without_nan(x, copy=True, nan=0.0):
    if math.isnan(x):
        return nan
    return min(max(x, -1.7976931348623157e308), 1.7976931348623157e308)


@njit
def _each_sine_over_argument(x):
    found = np.empty_like(x)
    for place in np.ndindex(x.shape):
        found[place] = np.sinc(x[place])
    return found


_TRAPEZOID = getattr(np, "trapezoid", None) or np.trapz  # type: ignore[attr-defined]
FORMING_KERNELS: dict[tuple[Any, tuple[int | None, ...]], Any] = {
    (np.diag, (1,)): _diagonal_matrix,
    (np.diag, (2,)): _diagonal,
    (np.trace, (2,)): _trace,
    (np.fill_diagonal, (2, 0)): _fill_diagonal,
    (np.fill_diagonal, (2, 1)): _fill_diagonal_by_vector,
    (np.eye, (0,)): _eye,
    (np.tri, (0,)): _ones_below,
    (np.vander, (1,)): _powers,
    (np.flip, (2,)): _reversed_matrix,
    (np.rot90, (2,)): _turned,
    (np.repeat, (1, 1)): _repeated_each,
    (np.delete, (1, 1)): _without_several,
    (np.trim_zeros, (1,)): _without_zeros_at_ends,
    (np.take_along_axis, (2, 2)): _taken_along,
    (np.kron, (1, 1)): _kronecker_of_vectors,
    (np.kron, (1, 2)): _kronecker_of_row,
    (np.kron, (2, 1)): _kronecker_by_row,
    (np.convolve, (1, 1)): _convolved,
    (np.correlate, (1, 1)): _correlated,
    (np.diff, (1,)): _differences_again,
    (np.diff, (2,)): _differences_of_rows,
    (np.geomspace, (0, 0)): _evenly_scaled,
    (_TRAPEZOID, (2,)): _trapezoid_of_rows,
    (_TRAPEZOID, (2, 1)): _trapezoid_of_rows_over,
    (np.nan_to_num, (0,)): _number_without_nan,
    **of_ranks(
        {
            np.diagflat: _flat_diagonal_matrix,
            np.roll: _rolled,
            np.nancumsum: _cumulated_numbers,
            np.nancumprod: _multiplied_numbers,
            np.ediff1d: _differences_flat,
            np.nanmedian: _median_of_numbers,
            np.average: _average,
            np.nan_to_num: _each_without_nan,
            np.sinc: _each_sine_over_argument,
        }
    ),
    **of_ranks({np.cumsum: _cumulated_flat, np.cumprod: _multiplied_flat}, RANKS[1:]),
    **{
        (function, (ndim, *rest)): kernel
        for function, rest, kernel in (
            (np.nanquantile, (0,), _quantile_of_numbers),
            (np.nanquantile, (1,), _quantile_of_numbers),
            (np.nanpercentile, (0,), _percentile_of_numbers),
            (np.nanpercentile, (1,), _percentile_of_numbers),
            (np.take, (0,), _taken_number),
        )
        for ndim in RANKS[:3]
    },
    **{(np.extract, (ndim, ndim)): _extracted for ndim in RANKS[:3]},
    (np.average, (1, None, 1)): _weighted_average,
    (np.average, (2, None, 2)): _weighted_average,
}
"""Kernels by function and the ranks of their arrays, 0 for numbers; other arguments are numbers, texts or None."""
