"""Functions that give positions, orders, counts and truth values, as kernels, as those of array_kernels.py.

In: nothing. Out: `COUNTING_KERNELS`: kernels in plain loops, by NumPy's function and the ranks of its arguments, whose
other parameters are numbers, texts, None or tuples of numbers; `of_ranks`. Called by array_kernels.py, whose table has
them too, and by forming_kernels.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from .order_kernels import _split

RANKS = (1, 2, 3, 4)


# ----- Positions -----


@njit
def _true_positions_of_vector(a):
    count = 0
    for one in a:
        if one != 0:
            count += 1
    found = np.empty((count, 1), np.int64)
    k = 0
    for i in range(a.shape[0]):
        if a[i] != 0:
            found[k, 0] = i
            k += 1
    return found


@njit
def _true_positions_of_matrix(a):
    count = 0
    for one in a.ravel():
        if one != 0:
            count += 1
    found = np.empty((count, 2), np.int64)
    k = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] != 0:
                found[k, 0] = i
                found[k, 1] = j
                k += 1
    return found


@njit
def _rows_and_columns(a):
    found = _true_positions_of_matrix(a)
    return found[:, 0].copy(), found[:, 1].copy()


@njit
def _largest_position(a):
    flat = a.ravel()
    best = 0
    for k in range(1, flat.shape[0]):
        if flat[best] == flat[best] and not flat[k] <= flat[best]:
            best = k
    return best


@njit
def _smallest_position(a):
    flat = a.ravel()
    best = 0
    for k in range(1, flat.shape[0]):
        if flat[best] == flat[best] and not flat[k] >= flat[best]:
            best = k
    return best


@njit
def _largest_by_axis(a, axis):
    rows = axis == 1 or axis == -1
    found = np.empty(a.shape[0] if rows else a.shape[1], np.int64)
    for i in range(found.shape[0]):
        found[i] = _largest_position(a[i, :] if rows else a[:, i])
    return found


@njit
def _smallest_by_axis(a, axis):
    rows = axis == 1 or axis == -1
    found = np.empty(a.shape[0] if rows else a.shape[1], np.int64)
    for i in range(found.shape[0]):
        found[i] = _smallest_position(a[i, :] if rows else a[:, i])
    return found


@njit
def _count(a):
    count = 0
    for one in a.ravel():
        if one != 0:
            count += 1
    return count


@njit
def _any(a):
    return _count(a) > 0


@njit
def _all(a):
    count = 0
    for one in a.ravel():
        if one == 0:
            count += 1
    return count == 0


@njit
def _lower_positions(n, k=0, m=None):
    columns = n if m is None else m
    return _rows_and_columns(np.tril(np.ones((n, columns)), k))


@njit
def _upper_positions(n, k=0, m=None):
    columns = n if m is None else m
    return _rows_and_columns(np.triu(np.ones((n, columns)), k))


@njit
def _lower_positions_from(arr, k=0):
    return _lower_positions(arr.shape[0], k, arr.shape[1])


@njit
def _upper_positions_from(arr, k=0):
    return _upper_positions(arr.shape[0], k, arr.shape[1])


# ----- Orders -----


@njit
def _partitioned(a, kth):
    """The positions of the elements as Numba's np.partition puts them."""
    n = a.shape[0]
    order = np.empty(n, np.int64)
    for i in range(n):
        order[i] = i
    k = kth + n if kth < 0 else kth
    low = 0
    high = n - 1
    i = _split(a, order, low, high)
    while i != k:
        if i < k:
            low = i + 1
        else:
            high = i - 1
        i = _split(a, order, low, high)
    return order


@njit
def _partition(a, kth):
    order = _partitioned(a, kth)
    found = np.empty(a.shape[0], a.dtype)
    for i in range(a.shape[0]):
        found[i] = a[order[i]]
    return found


@njit
def _counts(a, bins=10, range=None):
    low = math.inf if range is None else range[0]
    high = -math.inf if range is None else range[1]
    if range is None:
        for x in a.ravel():
            low = min(low, x)
            high = max(high, x)
    counts = np.zeros(bins, np.int64)
    if high > low:
        ratio = bins / (high - low)
        for x in a.ravel():
            k = math.floor((x - low) * ratio)
            if 0 <= k < bins:
                counts[k] += 1
            elif x == high:
                counts[bins - 1] += 1
    return counts, np.linspace(low, high, bins + 1)


@njit
def _counts_between(a, bins):
    n = bins.shape[0] - 1
    counts = np.zeros(n, np.int64)
    for x in a.ravel():
        if bins[0] <= x <= bins[n]:
            k = min(np.searchsorted(bins, x, side="right") - 1, n - 1)
            counts[k] += 1
    return counts, bins


@njit
def _bin_of_number(x, bins, right=False):
    return np.digitize(np.full(1, x), bins, right)[0]


@njit
def _plain_totals(places, weights=None, minlength=0):
    count = minlength
    for k in places:
        count = max(count, k + 1)
    found = np.zeros(count, np.int64)
    for k in places:
        found[k] += 1
    return found


@njit
def _joined_sets(ar1, ar2):
    return np.unique(np.concatenate((ar1, ar2)))


@njit
def _common_elements(ar1, ar2):
    first, second = np.unique(ar1), np.unique(ar2)
    kept = np.zeros(first.shape[0], np.bool_)
    for i in range(first.shape[0]):
        for one in second:
            if one == first[i]:
                kept[i] = True
    return first[kept]


@njit
def _elements_of_one(ar1, ar2, assume_unique=False):
    first = ar1.copy() if assume_unique else np.unique(ar1)
    kept = np.ones(first.shape[0], np.bool_)
    for i in range(first.shape[0]):
        for one in ar2:
            if one == first[i]:
                kept[i] = False
    return first[kept]


@njit
def _is_in(element, test_elements, assume_unique=False, invert=False):
    found = np.empty(element.shape[0], np.bool_)
    for i in range(element.shape[0]):
        inside = False
        for one in test_elements:
            if one == element[i]:
                inside = True
        found[i] = inside != invert
    return found


@njit
def _close(a, b, rtol=1e-5, atol=1e-8):
    return a == b or (abs(a - b) <= atol + rtol * abs(b) and math.isfinite(b))


@njit
def _each_close(a, b, rtol=1e-5, atol=1e-8):
    found = np.empty(a.shape, np.bool_)
    for place in np.ndindex(a.shape):
        found[place] = _close(a[place], b[place], rtol, atol)
    return found


@njit
def _each_close_to_number(a, b, rtol=1e-5, atol=1e-8):
    found = np.empty(a.shape, np.bool_)
    for place in np.ndindex(a.shape):
        found[place] = _close(a[place], b, rtol, atol)
    return found


@njit
def _all_close(a, b, rtol=1e-5, atol=1e-8):
    return _all(_each_close(a, b, rtol, atol))


@njit
def _all_close_to_number(a, b, rtol=1e-5, atol=1e-8):
    return _all(_each_close_to_number(a, b, rtol, atol))


def of_ranks(functions: dict[Any, Any], ranks: tuple[int, ...] = RANKS) -> dict[tuple[Any, tuple[int, ...]], Any]:
    """Kernels of one array of any of some ranks."""
    return {(function, (ndim,)): kernel for function, kernel in functions.items() for ndim in ranks}


COUNTING_KERNELS: dict[tuple[Any, tuple[int | None, ...]], Any] = {
    (np.argwhere, (1,)): _true_positions_of_vector,
    (np.argwhere, (2,)): _true_positions_of_matrix,
    (np.nonzero, (2,)): _rows_and_columns,
    (np.where, (2,)): _rows_and_columns,
    (np.argmax, (2, 0)): _largest_by_axis,
    (np.argmin, (2, 0)): _smallest_by_axis,
    (np.tril_indices, (0,)): _lower_positions,
    (np.triu_indices, (0,)): _upper_positions,
    (np.tril_indices_from, (2,)): _lower_positions_from,
    (np.triu_indices_from, (2,)): _upper_positions_from,
    (np.partition, (1, 0)): _partition,
    (np.argpartition, (1, 0)): _partitioned,
    (np.digitize, (0, 1)): _bin_of_number,
    (np.bincount, (1,)): _plain_totals,
    (np.union1d, (1, 1)): _joined_sets,
    (np.intersect1d, (1, 1)): _common_elements,
    (np.setdiff1d, (1, 1)): _elements_of_one,
    (np.isin, (1, 1)): _is_in,
    (np.isclose, (0, 0)): _close,
    **of_ranks(
        {
            np.argmax: _largest_position,
            np.argmin: _smallest_position,
            np.count_nonzero: _count,
            np.any: _any,
            np.all: _all,
            np.histogram: _counts,
        }
    ),
    **{
        (function, (ndim, rank)): kernel
        for function, rank, kernel in (
            (np.histogram, 1, _counts_between),
            (np.isclose, 0, _each_close_to_number),
            (np.allclose, 0, _all_close_to_number),
        )
        for ndim in RANKS[:3]
    },
    **{
        (function, (ndim, ndim)): kernel
        for function, kernel in ((np.isclose, _each_close), (np.allclose, _all_close))
        for ndim in RANKS[:3]
    },
}
"""Kernels by function and the ranks of their arrays, 0 for numbers; other arguments are numbers, texts or None."""
