"""Numba kernels that define functions inside themselves, make named tuples, and call many of NumPy's functions.

More rows of the table of adjoint_kernels.py.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
from numba import njit

from .adjoint_kernels import numbers, row

values = numbers(9)

# ----- Functions that a kernel defines inside itself -----


@row(values(5), 0.7)
@njit
def inner_functions(x, c):
    def walked(a, turns, low=0.1):
        found = a
        for k in range(turns):
            if found > 1.0:
                return found * low
            found = found * c + x[k]
        return found

    total = 0.0
    for i in range(len(x)):
        c = c + 0.01 * x[i]
        total += walked(x[i], 3) ** 2 + walked(0.01 * total, 2, 0.3)
    return total


@row(values(2), values(2), 0.1, 4)
@njit
def right_hand_side_inside(start, k, dt, turns):
    def rate(t, y):
        def drag(v):
            return -k[1] * v * abs(v)

        found = np.empty(2)
        found[0] = y[1]
        found[1] = -k[0] * np.sin(y[0]) + drag(y[1]) + 0.1 * np.cos(t)
        return found

    y, t = start.copy(), 0.0
    for _ in range(turns):
        first = rate(t, y)
        second = rate(t + dt, y + dt * first)
        y = y + 0.5 * dt * (first + second)
        t += dt
    return y


@row(values(4), np.zeros(4))
@njit
def inner_functions_that_write(x, out):
    square = lambda a: a * a  # noqa: E731 - a kernel may have it so

    def both(a):
        if a > 0.5:
            return a * a, a
        return a, 2.0 * a * a

    def put(i, found):
        out[i] = found + square(x[i])

    for i in range(len(x)):
        p, q = both(x[i])
        put(i, p * q + (lambda a, b: a * b)(x[0], x[1]))


@row(1.3)
@njit
def newton_of_lambdas(a):
    f = lambda z: z**3 - a * z - 1.0  # noqa: E731
    slope = lambda z: 3.0 * z * z - a  # noqa: E731
    z = 2.0
    while abs(f(z)) > 1e-12:
        z -= f(z) / slope(z)
    return z


# ----- Named tuples, positions and elements -----

Pair = namedtuple("Pair", "low high")


@row(values(5))
@njit
def named_tuples_inside(x):
    def product(p):
        return p.low * p.high

    total = 0.0
    for i in range(len(x) - 1):
        pair = Pair(x[i], high=x[i + 1] * x[i])
        total += product(pair) + pair[0]
        low, high = pair
        total -= math.sin(low * high)
    return Pair(total, x[0])


@row(values(12).reshape(3, 4), values(5))
@njit
def elements_with_positions(m, x):
    total = 0.0
    for (i, j), v in np.ndenumerate(m):
        total += v * v * (i + 2 * j)
    for at, v in np.ndenumerate(x):
        total += v**3 * (at[0] + 1) * m[at[0] % 3, 0]
    for at in np.ndindex(3, 4):
        total -= m[at] ** 3
    return total


# ----- Functions of arrays -----


@row(values(20), values(20), np.array([0.3, 1.2, 2.7]))
@njit
def orders_and_positions(x, y, q):
    order = np.argsort(x)
    first = y[order] * x[order[0]]
    other = y.copy()
    other.sort()
    k = np.searchsorted(np.cumsum(np.abs(x)), q)
    bins = np.digitize(q, np.array([0.5, 1.5]))
    places = np.nonzero(x > 0.0)[0]
    total = np.sum(first * other) + np.sum(y[k] * q)
    total += np.sum(x[places] ** 2 * y[places]) + np.sum(x[np.where(y > 0.2)] ** 3)
    total += np.quantile(x, 0.3) * np.percentile(y, 60.0) + np.sum(np.quantile(x, np.array([0.1, 0.9])) * q[:2])
    return total + np.sum(np.unique(x) * np.arange(20)) + np.sum(bins * q) + x[y.argmax()] * y.var()


@row(values(6), values(6))
@njit
def arrays_in_other_forms(x, y):
    both = np.stack((x, y * x))
    columns = np.column_stack((x, x * y, y))
    total = np.sum(np.stack((x, y), axis=1) @ both) + np.sum(columns[:, 1] * np.expand_dims(x, 0)[0])
    total += np.sum(np.repeat(x, 2)[1:7] * y) + np.sum(np.take(x, np.array([1, 1, 4])) * y[:3])
    total += np.sum(np.delete(x, 2) * y[1:]) + np.sum(np.fliplr(both) * np.flipud(both)) * np.rot90(both)[0, 1]
    total += np.sum(np.bincount(np.array([0, 1, 1, 2, 0, 1]), x) ** 2) + np.sum(np.tri(6) * x)
    total += np.sum(np.swapaxes(both, 0, 1)[1]) ** 2 + np.round(x[0], 1) * y[0] + divmod(x[1], 0.3)[1]
    total += max([v * v for v in x]) * min([v + 1.0 for v in y])
    total += np.sum(np.arange(0.0, y[0] * y[0] + 1.0, 0.25) * x[0])
    return total + np.sum(np.nan_to_num(x) * np.sinc(y)) + x.cumsum()[-1] * x.std()


@row(values(9).reshape(3, 3) + 2.0 * np.eye(3), values(12).reshape(4, 3), values(3))
@njit
def functions_of_matrices(a, b, x):
    q, r = np.linalg.qr(b)
    sign, logarithm = np.linalg.slogdet(a)
    total = (
        np.sum(np.tril(a) * a) + np.sum(np.triu(a, 1) @ a) + np.sum(q * b[::-1]) + np.sum(r * r * r) + sign * logarithm
    )
    total += np.sum(np.kron(a, b)[2] ** 2) + np.sum(np.linalg.matrix_power(a, 3) * np.linalg.matrix_power(a, -1))
    total += np.linalg.norm(x, 1) * np.linalg.norm(x, np.inf) + np.linalg.norm(x, 3) + np.sum(np.vander(x, 3) * a)
    total += np.sum(np.cov(b) ** 2) + np.sum(np.corrcoef(x, a[0])[0, 1] * np.cumprod(x))
    return total + np.trapezoid(x) * np.trapezoid(x, dx=0.1) + np.sum(np.logspace(0.0, x[0], 4))


@row(values(9).reshape(3, 3), values(3))
@njit
def eigenvectors(a, x):
    numbers, vectors = np.linalg.eigh(a @ a.T)
    return vectors @ (np.sqrt(numbers) * x) + vectors[:, 0] * np.linalg.eigvalsh(a)


@row(np.array([2.0, -1.0, 1.0]))
@njit
def eigenvalues_of_a_diagonal(x):
    return np.linalg.eigh(np.diag(x))[0] ** 2 * np.arange(1.0, 4.0)
