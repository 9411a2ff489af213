"""Functions of arrays whose elements go to other places, as kernels, as those of array_kernels.py.

In: nothing. Out: `ORDER_KERNELS`: kernels in plain loops, by NumPy's function and the ranks of its arguments. Called by
array_kernels.py, whose table has them too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit
def _less(x, y):
    return not math.isnan(x) and (x < y or math.isnan(y))


@njit
def _order_in_place(a, order, low, high):
    """Positions low to high in the order of their elements, by insertion."""
    for i in range(low + 1, high + 1):
        k = order[i]
        j = i
        while j > low and _less(a[k], a[order[j - 1]]):
            order[j] = order[j - 1]
            j -= 1
        order[j] = k


@njit
def _exchanged(order, i, j):
    held = order[i]
    order[i] = order[j]
    order[j] = held


@njit
def _split(a, order, low, high):
    """The place of an element, before which there are none that are larger, and after it none that are smaller."""
    middle = (low + high) // 2
    if _less(a[order[middle]], a[order[low]]):
        _exchanged(order, low, middle)
    if _less(a[order[high]], a[order[middle]]):
        _exchanged(order, high, middle)
    if _less(a[order[middle]], a[order[low]]):
        _exchanged(order, low, middle)
    pivot = order[middle]
    _exchanged(order, high, middle)
    i = low
    j = high - 1
    while True:
        while i < high and _less(a[order[i]], a[pivot]):
            i += 1
        while j >= low and _less(a[pivot], a[order[j]]):
            j -= 1
        if i >= j:
            break
        _exchanged(order, i, j)
        i += 1
        j -= 1
    _exchanged(order, i, high)
    return i


@njit
def _sorting_order(a):
    """The positions that sort an array, those of equal elements in the order that Numba's np.argsort has."""
    n = a.shape[0]
    order = np.empty(n, np.int64)
    for i in range(n):
        order[i] = i
    lows = np.zeros(100, np.int64)
    highs = np.zeros(100, np.int64)
    highs[0] = n - 1
    waiting = 1
    while waiting > 0:
        waiting -= 1
        low = lows[waiting]
        high = highs[waiting]
        while high - low >= 15:
            i = _split(a, order, low, high)
            if high - i > i - low:
                if high > i:
                    lows[waiting] = i + 1
                    highs[waiting] = high
                    waiting += 1
                high = i - 1
            else:
                if i > low:
                    lows[waiting] = low
                    highs[waiting] = i - 1
                    waiting += 1
                low = i + 1
        _order_in_place(a, order, low, high)
    return order


@njit
def _quantile(a, q):
    s = np.sort(a.ravel())
    place = q * (s.shape[0] - 1)
    k = min(int(place), s.shape[0] - 1)
    above = min(k + 1, s.shape[0] - 1)
    return s[k] + (s[above] - s[k]) * (place - k)


@njit
def _quantiles(a, q):
    s = np.sort(a.ravel())
    found = np.empty(q.shape[0])
    for i in range(q.shape[0]):
        place = q[i] * (s.shape[0] - 1)
        k = min(int(place), s.shape[0] - 1)
        above = min(k + 1, s.shape[0] - 1)
        found[i] = s[k] + (s[above] - s[k]) * (place - k)
    return found


@njit
def _percentile(a, q):
    return _quantile(a, q / 100.0)


@njit
def _percentiles(a, q):
    return _quantiles(a, q / 100.0)


@njit
def _true_places(a):
    return np.arange(a.shape[0])[a != 0]


@njit
def _true_places_by_axis(a):
    return (np.arange(a.shape[0])[a != 0],)


@njit
def _repeated(a, count):
    found = np.empty(a.shape[0] * count, a.dtype)
    for i in range(a.shape[0]):
        for k in range(count):
            found[i * count + k] = a[i]
    return found


@njit
def _taken(a, places):
    flat = a.ravel()
    found = np.empty(places.shape[0], a.dtype)
    for i in range(places.shape[0]):
        found[i] = flat[places[i]]
    return found


@njit
def _without(a, place):
    n = a.shape[0]
    found = np.empty(n - 1, a.dtype)
    if place < 0:
        place += n
    for i in range(n - 1):
        found[i] = a[i if i < place else i + 1]
    return found


@njit
def _totals_of_some(places, weights, minlength=0):
    count = minlength
    for k in places:
        count = max(count, k + 1)
    found = np.zeros(count)
    for i in range(places.shape[0]):
        found[places[i]] += weights[i]
    return found


@njit
def _bins(x, bins, right=False):
    n = bins.shape[0]
    falling = n > 1 and bins[0] > bins[n - 1]
    found = np.empty(x.shape[0], np.int64)
    for i in range(x.shape[0]):
        count = 0
        for k in range(n):
            if falling:
                before = bins[k] >= x[i] if right else bins[k] > x[i]
            else:
                before = bins[k] < x[i] if right else bins[k] <= x[i]
            count += 1 if before else 0
        found[i] = count
    return found


@njit
def _different(a):
    s = np.sort(a)
    first = np.ones(s.shape[0], np.bool_)
    for i in range(1, s.shape[0]):
        first[i] = s[i] != s[i - 1]
    return s[first]


@njit
def _upside_down(a):
    return a[::-1]


@njit
def _left_to_right(a):
    return a[:, ::-1]


ORDER_KERNELS: dict[tuple[Any, tuple[int, ...]], Any] = {
    (np.argsort, (1,)): _sorting_order,
    **{(np.quantile, (ndim, 0)): _quantile for ndim in (1, 2)},
    **{(np.quantile, (ndim, 1)): _quantiles for ndim in (1, 2)},
    **{(np.percentile, (ndim, 0)): _percentile for ndim in (1, 2)},
    **{(np.percentile, (ndim, 1)): _percentiles for ndim in (1, 2)},
    (np.flatnonzero, (1,)): _true_places,
    (np.nonzero, (1,)): _true_places_by_axis,
    (np.where, (1,)): _true_places_by_axis,
    (np.repeat, (1, 0)): _repeated,
    **{(np.take, (ndim, 1)): _taken for ndim in (1, 2)},
    (np.delete, (1, 0)): _without,
    (np.bincount, (1, 1)): _totals_of_some,
    (np.digitize, (1, 1)): _bins,
    (np.unique, (1,)): _different,
    **{(np.flipud, (ndim,)): _upside_down for ndim in (1, 2)},
    (np.fliplr, (2,)): _left_to_right,
}
"""Kernels by function and the ranks of all arguments, 0 for numbers."""
