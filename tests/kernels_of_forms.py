"""Numba kernels that call NumPy's functions of forms, positions and sums of arrays.

More rows of the table of adjoint_kernels.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .adjoint_kernels import numbers, row

values = numbers(29)


@row(values(7), values(3))
@njit
def convolutions(x, w):
    total = np.sum(np.convolve(x, w, mode="same") ** 2) + np.sum(np.convolve(w, x, "valid") ** 3)
    total += np.sum(np.correlate(x, w) ** 2) + np.sum(np.correlate(w, x, "full") ** 3 * np.arange(9))
    return total + np.sum(np.correlate(w, x, "same") ** 2 * np.arange(7))


@row(values(6), values(3), values(9).reshape(3, 3))
@njit
def choices_and_broadcast_arrays(x, y, m):
    chosen = np.select([x > 0.5, x < -0.3], [x * x, -x], 2.0)
    first, second = np.broadcast_arrays(y, m)
    return (
        np.sum(chosen**2) + np.sum(np.broadcast_to(y, (3, 3)) * m * m),
        first * second,
        np.sum(np.indices((3, 3))[0] * m) ** 2,
    )


@row(values(12).reshape(2, 3, 2), values(9).reshape(3, 3), values(6))
@njit
def axes_and_parts(t, m, x):
    first, second = np.split(x, 2)
    one, two = np.array_split(x, 2)
    total = np.sum(np.transpose(t, (1, 0, 2)) * np.moveaxis(t, 0, 1)) + np.sum(t.transpose(2, 0, 1)[0] ** 3)
    total += np.sum(np.swapaxes(t, 0, 2)[1]) * m[0, 0] + np.sum(first * second) + np.sum(one * two)
    return total + np.sum(np.expand_dims(m, 1)[:, 0] * m)


@row(values(9).reshape(3, 3), values(6))
@njit
def diagonals_and_turned_matrices(m, x):
    total = np.sum(np.diag(m, 1) * np.diag(m, k=-1)) + np.sum(np.diag(x[:2], -1) * m) + np.trace(m, 1)
    total += np.sum(np.rot90(m, 2) * m) + np.sum(np.roll(m, 2) * m * m)
    total += np.sum(np.flip(m) * m) + np.sum(np.eye(3, k=1) * m) + np.sum(np.tri(3, k=-1) * m)
    return total + np.sum(np.vander(x[:3], 4, increasing=True)[:, 1:] * m) + np.sum(np.kron(x, x[:3]) ** 2)


@row(values(8), values(8), values(9).reshape(3, 3))
@njit
def positions_and_counts(x, y, m):
    total = np.sum(np.partition(x, 3)[:4]) * x[np.argpartition(y, 2)[2]]
    counts, edges = np.histogram(x, 4)
    total += np.sum(counts * edges[1:] ** 2) + np.sum(np.histogram(x, 3, (-2.0, 2.0))[0]) * x[0]
    for k in np.argwhere(x > 0.0)[:, 0]:
        total += x[k] ** 3
    places = np.argwhere(m > 0.0)
    for k in range(len(places)):
        total += m[places[k, 0], places[k, 1]] ** 2
    rows, columns = np.triu_indices(3, k=1)
    for k in range(len(rows)):
        total += m[rows[k], columns[k]] ** 2
    total += np.sum(np.isin(x, x[:2]) * y) + np.sum(np.extract(x > 0.0, y)) ** 2
    total += np.sum(np.setdiff1d(x, y) ** 3) + np.sum(np.argmax(m, axis=0) * x[:3])
    return total + x[(x * y).argmin()] * np.sum(np.repeat(x[:3], np.array([1, 0, 2])) ** 2)


@row(values(8), values(9).reshape(3, 3))
@njit
def sums_of_many_kinds(x, m):
    total = np.sum(np.cumsum(m) ** 2) + np.sum(np.diff(x, 2) ** 2) + np.sum(np.diff(m) ** 3) + np.sum(np.nancumsum(x))
    total += np.nanmedian(x) * np.nanquantile(x, 0.3) + np.average(x, weights=x * x) + np.average(m)
    total += np.sum(np.trapezoid(m, x[:3]) ** 2) + np.sum(np.trapezoid(m, dx=0.5) ** 2)
    total += np.sum(np.cov(m, ddof=0) ** 2) + np.sum(np.cov(m, rowvar=False)[0] ** 2) + np.sum(np.sinc(m))
    filled = m.copy()
    np.fill_diagonal(filled, x[0] * x[1])
    total += np.sum(np.geomspace(1.0, 2.0 + x[0] * x[0], 4)) + np.sum(filled**2)
    return total * np.finfo(np.float64).eps * 1e16 + np.sum(
        np.take_along_axis(m, np.array([[0, 1], [2, 2], [1, 0]]), 1) ** 2
    )
