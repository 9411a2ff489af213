"""Numba kernels in the shapes that users write, with arguments: the table of test_adjoints.py.

Each row is a kernel as Numba users have it. Values are between 0.5 and 1.5, so that differences are smooth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange


class Row(NamedTuple):
    """A kernel and its arguments."""

    kernel: Any
    arguments: tuple[Any, ...]


ROWS: dict[str, Row] = {}


def numbers(seed: int) -> Callable[..., np.ndarray]:
    """A function that gives arrays of numbers between 0.5 and 1.5."""
    random = np.random.default_rng(seed)
    return lambda *shape: random.uniform(0.5, 1.5, shape)


values = numbers(7)


def row(*arguments: Any) -> Callable[[Any], Any]:
    """Put a kernel into the table."""

    def add(kernel: Any) -> Any:
        ROWS[kernel.py_func.__name__] = Row(kernel, arguments)
        return kernel

    return add


# ----- Numbers that loops carry -----


@row(values(7), np.zeros(7))
@njit
def carried(x, out):
    carry = 1.0
    for i in range(len(x)):
        carry = carry * math.sin(x[i]) + x[i]
        out[i] = carry


@row(values(9))
@njit
def largest_and_last(x):
    best = 0.0
    k = 0
    for i in range(len(x)):
        v = x[i] ** 2
        if v > best:
            best = v
            k = i
    return best * v + x[k]


@row(values(5), values(5), 1.3)
@njit
def branches(x, y, scale):
    total = 0.0
    for i in range(len(x)):
        if x[i] > y[i]:
            total += x[i] ** 2 * scale
        elif x[i] > 0.7:
            total -= math.exp(y[i])
        else:
            continue
        if total > 100:
            break
    return total, scale * total


@row(0.5, 0.3)
@njit
def newton(mean, eccentricity):
    x = mean
    while True:
        step = (x - eccentricity * math.sin(x) - mean) / (1 - eccentricity * math.cos(x))
        x -= step
        if abs(step) < 1e-14:
            break
    return x


@row(0.5, 0.3)
@njit
def newton_returns(mean, eccentricity):
    x = mean
    k = 0
    while k < 50:
        step = (x - eccentricity * math.sin(x) - mean) / (1 - eccentricity * math.cos(x))
        x -= step
        k += 1
        if abs(step) < 1e-14:
            return x
    return -1.0


@row(values(5), values(5))
@njit
def tuples(x, y):
    s = 0.0
    for a, b in zip(x, y):  # noqa: B905 - Numba's zip has no strict
        s += a * b**2
    for i, a in enumerate(x):
        s += a * i
    p, q = s, s * 2
    p, q = q, p
    both = (p, q * p)
    return both[0] * both[1]


@row(values(6), 0.8)
@njit
def jumps(x, limit):
    total = 0.0
    for i in range(len(x)):
        if x[i] < limit:
            if i % 2 == 0:
                continue
            total += 1.5 * x[i]
        total += x[i] * total
        for j in range(i):
            if x[j] > 1.2 and j > 0:
                break
            total += 0.1 * x[j] * x[i - j]
        a = x[i] if total > 1.0 or x[0] > 1.0 else x[i] ** 2
        total += a
    return total


@row(np.array([0.5, 0.6, 0.7]), np.array([2.0, 3.0, 4.0]), 0.9)
@njit
def break_before_long_rest(x, w, limit):
    s, c = 0.0, 1.0
    for i in range(len(x)):
        s += x[i]
        if x[i] > 0.4:
            c += x[i]
            if s > limit:
                break
        c = w[i] * math.sin(x[i]) + 0.5 * math.cos(c) * w[i] - 0.1 * math.sin(c * w[i]) + 0.2 * w[i] * x[i]
    return c


@row(values(5))
@njit
def tuple_of_literals(x):
    t = (0.0, 1.0)
    for i in range(len(x)):
        t = (t[1] * x[i], t[0] + x[i])
    return t[0] + t[1]


@row(values(5), 0)
@njit
def turns_that_do_not_run(x, n):
    i = 2
    for i in range(n):  # noqa: B007 - the number is read after the loop
        pass
    side = x[0]
    if n == 0:
        side = x[0]
    return x[i] * x[i] * side


@row(values(6))
@njit
def counted(x):
    out = np.zeros(len(x))
    k = 1
    total = 0.0
    for a, i in zip(x, range(len(x))):  # noqa: B905 - Numba's zip has no strict
        if 0.7 < a * 1.1 < 1.3 and i > 0:
            out[k] = a * math.sin(out[k - 1] + x[i])
            k += 1
        total += out[k - 1]
    return total


@row(values(5))
@njit
def from_an_earlier_turn(x):
    total = 0.0
    earlier = 1.0
    for k in range(len(x)):
        total += earlier * x[k]
        earlier = min(x[k] ** 2, np.min(x) * 3.0)
    return total


@row(values(4), 3)
@njit
def dead_branches(x, order):
    n = 3
    if n == 2:
        y = x[0]
        return y * y
    if x.ndim == 2:
        return x[0, 0]
    return x[0] ** order


# ----- Arrays -----


@row(values(5))
@njit
def increased(w):
    w += w * w
    part = w[1:3]
    part *= 2.0
    for _ in range(2):
        w -= 0.1 * w[0]
    return np.sum(w)


@row(values(5))
@njit
def expressions_are_made_when_they_stand(a):
    b = a.copy()
    t_1 = b * 2.0
    both = (b * 3.0, 1.5)
    b[:] = b[0] * 3.0
    return np.sum(t_1 * t_1) + np.sum(both[0] * both[1] * b)


@row(values(3), values(3), values(7), 0.9)
@njit
def vectors(p, q, grid, at):
    normal = np.cross(p, q)
    k = np.searchsorted(grid, at, side="right")
    turned = np.array([[normal[0], p[1]], [q[2], normal[2]]])
    return np.linalg.norm(normal - p) * turned[0, 1] + turned[1, 0] + grid[k % 7], np.sqrt(p**2 + q**2)


@row(values(6))
@njit
def overwritten(u):
    for i in range(1, len(u)):
        u[i] = u[i] * u[i - 1]


@row(values(8), values(8) * 4, values(8), values(8))
@njit
def tridiagonal(a, b, c, d):
    n = len(d)
    for i in range(1, n):
        w = a[i] / b[i - 1]
        b[i] = b[i] - w * c[i - 1]
        d[i] = d[i] - w * d[i - 1]
    d[n - 1] = d[n - 1] / b[n - 1]
    for i in range(n - 2, -1, -1):
        d[i] = (d[i] - c[i] * d[i + 1]) / b[i]


@row(values(5, 5), values(5, 5))
@njit
def dynamic_programming(cost, total):
    for i in range(1, cost.shape[0]):
        for j in range(1, cost.shape[1]):
            best = min(total[i - 1, j], total[i, j - 1], total[i - 1, j - 1])
            total[i, j] = cost[i, j] * 1.1 + best * best


@row(values(6, 7), 3)
@njit
def gauss_seidel(u, sweeps):
    for _ in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] * u[i, j + 1])


@row(values(6), 4)
@njit
def repeated(u, times):
    for k in range(times):
        if k % 2 == 0:
            for i in range(1, len(u)):
                if u[i] > 0.8:
                    u[i] = u[i] * math.sqrt(u[i - 1])
        else:
            j = len(u) - 1
            while j > 0:
                u[j - 1] += 0.1 * u[j] ** 2
                j -= 2


@row(values(4, 6), np.zeros(4))
@njit
def work_array(x, out):
    w = np.zeros(6)
    for i in range(x.shape[0]):
        for j in range(6):
            w[j] = math.sin(x[i, j])
        s = 0.0
        for j in range(6):
            s += w[j] * w[5 - j] * w[j]
        out[i] = s


@row(values(5), values(5), 0.7)
@njit
def small_matrices(a, b, angle):
    m = np.zeros((3, 3))
    v = np.zeros(3)
    v[0] = 1.0
    t = np.empty(3)
    for k in range(len(a)):
        for i in range(3):
            for j in range(3):
                m[i, j] = math.cos(a[k] * (i + 1) + angle) if i > j else math.sin(b[k] * (j + 1) * angle)
        for i in range(3):
            t[i] = m[i, 0] * v[0] + m[i, 1] * v[1] + m[i, 2] * v[2]
        norm = math.sqrt(t[0] ** 2 + t[1] ** 2 + t[2] ** 2)
        for i in range(3):
            v[i] = t[i] / norm
    return v[0] + 2 * v[2]


@row(values(6), values(6))
@njit
def whole_arrays(a, b):
    c = a * 2 + np.sin(b)
    a[1:] = c[:-1] * b[1:]
    b[:] += a**2
    return np.sum(c * a) + np.dot(a, b) + a.mean() + np.max(b)


@row(values(3, 3), values(3))
@njit
def matrices(m, x):
    y = m @ x
    z = m.T @ (y * x)
    square = np.dot(m, m)
    return z[0] + z[2] ** 2 + square[1, 2] * square[0, 0] + square.sum()


@row(values(6))
@njit
def views(x):
    return x[-1] * x[0] + x[-2:][0] + x[::-1][1] * x[1:4][-1]


@row(values(4), np.array([2, 0, 3, 1]))
@njit
def indirect(x, index):
    s = 0.0
    for i in index:
        s = s * 0.5 + x[i] * x[index[i]]
    return s


@row(values(5), 3)
@njit
def returned_arrays(x, n):
    out = np.empty((n, len(x)))
    for k in range(n):
        for i in range(len(x)):
            out[k, i] = x[i] ** (k + 1)
    return out, np.sum(x)


# ----- Calls and threads -----


@njit
def _rotated(v, angle):
    first = v[0]
    v[0] = math.cos(angle) * first - math.sin(angle) * v[1]
    v[1] = math.sin(angle) * first + math.cos(angle) * v[1]
    return v


@njit
def _changed_under(b, a):
    a[0] = 5.0 * a[1]
    return np.sum(a * b * b)


@row(values(2), values(4))
@njit
def calls_that_return_their_argument(v, angles):
    for angle in angles:
        v = _rotated(v, angle)
    return _changed_under(v * 2.0, v)


@njit
def _norm(x, y):
    if x > y:
        return math.hypot(x, y)
    return x * y


@njit
def _scaled_row(row_of, factor=2.0):
    for k in range(len(row_of)):
        row_of[k] *= factor


@row(values(5), values(6), np.zeros((5, 6)))
@njit
def calls(a, b, out):
    for i in range(len(a)):
        line = out[i]
        for j in range(len(b)):
            line[j] += _norm(a[i], b[j]) * a[i]
        _scaled_row(line, factor=b[0])
        _scaled_row(line)


@row(values(4, 4), values(4))
@njit(parallel=True)
def threads(a, x):
    out = np.zeros(4)
    for i in prange(4):
        t = 0.0
        for j in range(4):
            t += a[i, j] * x[j]
        out[i] = math.tanh(t)
    return out.sum()


@row(values(4, 3))
@njit(fastmath=True)
def pairs(p):
    energy = 0.0
    for i in range(p.shape[0]):
        for j in range(i + 1, p.shape[0]):
            squares = 0.1
            for k in range(3):
                d = p[i, k] - p[j, k]
                squares += d * d
            sixth = (1.0 / squares) ** 3
            energy += 1e-2 * (sixth - 1.0) * sixth
    return energy


# ----- NumPy's functions -----


@row(values(3, 3) + 2.0 * np.eye(3), values(3), values(3, 2))
@njit
def linear_systems(a, b, c):
    x = np.linalg.solve(a, b)
    y = np.linalg.solve(a, c)
    return x, y, np.linalg.det(a) * np.trace(np.linalg.inv(a)) + np.linalg.norm(y)


@row(values(3, 3), values(3))
@njit
def exchanged_rows(a, b):
    a[0, 0] = 0.0
    return np.linalg.solve(a, b)


@row(values(3, 3))
@njit
def factors(a):
    return np.linalg.cholesky(a @ a.T + np.eye(3))


@row(values(5), values(3), 0.3)
@njit
def curves(x, y, at):
    knots = np.linspace(-2.0, 2.0, 5)
    steps = np.cumsum(x) + np.interp(at, knots, x)
    return np.outer(np.diff(steps), np.cross(y, np.interp(y, knots, x)[:3])) * np.std(y) + np.var(x)


@row(values(6), values(2, 3))
@njit
def other_shapes(x, y):
    table = x.reshape(2, -1)
    table[1, -1] *= table[0, 1]
    line = np.ravel(y)
    line[-2] = table[1, 2] * y[0, 0]
    columns = y.T.ravel()
    columns[np.shape(y)[0] - 2] = 3.0 * np.size(x) * y.ndim
    return table.T * 2.0, np.reshape(line, (3, 2))[1], columns, y[1].reshape((3, 1)) * x[0]


@row(values(4))
@njit
def the_same_array(x):
    y = np.asarray(x)
    y[1] = x[0] * x[2]
    z = np.ascontiguousarray(y)
    z[2] *= 3.0
    w = np.copy(z)
    w[0] = 0.0
    return x[1] * x[2] + w[1]


@row(values(5), 1.5)
@njit
def loops_with_else(x, bound):
    total = 0.0
    for i in range(len(x)):
        if total > bound:
            break
        total += x[i] * x[i]
    else:
        total *= 3.0
    k = 0
    while k < 3:
        if x[k] > 10.0 * bound:
            break
        k += 1
    else:
        total += x[0] * k
        for j in range(3):
            if total < x[j]:
                return total * x[j]
        else:
            total = total * bound
    return total


@row(values(5))
@njit
def sides_that_are_not_taken(x):
    return np.sum(np.where(x > 1.0, np.sqrt(np.maximum(x - 1.0, 0.0)), x * x))


ROOT = np.sqrt(2.0)


@row(values(3), values(3))
@njit
def names_like_derivatives(x, y):
    x_b = np.zeros(3)
    y_t = 0.0
    for i in range(3):
        x_b[i] = x[i] * x[i] * ROOT
        y_t += x_b[i] * y[i]
        x_b[i] *= y_t
    return y_t * x_b[1]
