"""Numba kernels whose variables hold one of several arrays, with functions of whole arrays, and of complex numbers.

More rows of the table of adjoint_kernels.py.
"""

from __future__ import annotations

import cmath
import math

import numpy as np
from numba import njit

from .adjoint_kernels import numbers, row

values = numbers(8)

# ----- Arrays that change places, and variables that hold one of several arrays -----


@row(values(6), np.zeros(6), 5)
@njit
def leapfrog(u, v, steps):
    for _ in range(steps):
        for i in range(1, len(u) - 1):
            v[i] = u[i] + 0.1 * (u[i - 1] * u[i] - u[i + 1])
        v[0] = u[0] * v[1]
        v[-1] = u[-1]
        u, v = v, u
    return u


@row(values(5), values(5), values(5), 7)
@njit
def three_levels(a, b, c, steps):
    for k in range(steps):
        for i in range(len(a)):
            c[i] = a[i] * b[i - 1] + 0.1 * k
        a, b, c = b, c, a
    return np.sum(a * b) + c[0]


@row(values(6), 0.02)
@njit
def relaxed(start, tolerance):
    u = start.copy()
    w = np.zeros(len(u))
    for _ in range(20):
        change = 0.0
        for i in range(len(u)):
            w[i] = 0.25 * u[i - 1] + 0.5 * math.sin(u[i])
            change = max(change, abs(w[i] - u[i]))
        if change < tolerance:
            break
        u, w = w, u
    return u, w


@row(values(4), 3)
@njit
def relaxed_by_while(u, turns):
    w = np.zeros(len(u))
    k = 0
    while k < turns:
        for i in range(len(u)):
            w[i] = u[i] * u[i - 1]
        u, w = w, u
        k += 1
    return u


@row(values(3), values(3, 3), 4)
@njit
def made_in_each_turn(x, a, turns):
    step = x * 0.1
    for _ in range(turns):
        before = x
        x = np.sin(a @ x) + step
        step = 0.5 * step + 0.1 * (x - before)
        if np.sum(x) > 100.0:
            x = x / 2.0
            break
    return x * step


@row(values(3), 3)
@njit
def of_two_earlier_turns(x, turns):
    before = x
    for _ in range(turns):
        before, x = x, x * 0.5 + before**2
    return x - before


@row(values(5), values(5), 0.9)
@njit
def one_of_two(x, y, limit):
    source = x if x[0] > limit else y
    total = 0.0
    for i in range(len(source)):
        total += source[i] ** 2
        source[i] = total * y[i]
    part = source[1:]
    if total > 2.0:
        part = x[:2]
    part *= 2.0
    x[-1] *= 2.0
    y[-1] *= 3.0
    return total * np.sum(part[::-1])


@row(values(5), 1)
@njit
def returned_by_branch(x, order):
    if order == 0:
        return 0.5, np.zeros(2)
    for i in range(len(x)):
        if i == order + 1:
            return x[i], x[i:]
    grown = np.empty(len(x) + 1)
    grown[:-1] = x
    grown[-1] = x[0] * x[1]
    return x[0], grown


@row(values(4, 3))
@njit
def row_of_the_largest(a):
    best = a[0]
    for i in range(len(a)):
        if a[i, 0] > best[0]:
            best = a[i]
            break
    return best[0] * best[1]


# ----- Functions of arrays, masks, lists -----


@row(values(6), 0.3)
@njit
def lists_of_a_loop(x, scale):
    half = len(x) / 2
    weights = np.array([1.0 / (1.0 + np.exp(-scale * (i - half))) for i in range(len(x))])
    large = [a * b for a, b in zip(x, weights) if a > 0.9]  # noqa: B905 - Numba's zip has no strict
    ends = [a**2 for a in (x[0], x[-1])]
    return weights, sum(large) * len(large) + max(ends) * ends[0]


@row(values(7) * np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0]), values(7), np.array([3, 0, -1]))
@njit
def masks_and_positions(x, y, places):
    taken = x[x > 0.0]
    y[y > 1.0] = 0.5 * x[y > 1.0]
    y[places] = y[places] * taken[0]
    x[x < 0.0] *= x[1]
    return np.sum(taken**2) + np.mean(x[places] * y[:3]) + len(taken)


@row(values(5))
@njit
def in_order(x):
    return np.sort(x) * x, np.median(x) * np.ptp(x)


@row(values(3), values(2, 3))
@njit
def joined_arrays(x, a):
    b = np.concatenate((np.deg2rad(x), a[0]))
    c = np.append(np.roll(x, 2), np.rad2deg(x[0]))
    d = np.vstack((a[0], a[1] * x)) * np.hstack((x[:1], x[1:]))
    if np.array_equal(x, x[::-1]):
        return b * 2.0, 0.0
    return b, c[0] * c[3] * np.sum(d)


@row(values(3), values(2, 3))
@njit
def along_axes(x, a):
    f = np.array([x[0], 2.0 * x[1]], dtype=np.float64).astype(np.float64)
    g = np.diag(np.diag(a[:, :2]))
    last = np.sum(a, axis=0)[1] + np.sum(a, 1)[0] + np.sum(np.convolve(x, f) ** 2)
    return last * type(last)(2) * g[1, 1] * np.flip(x)[0]


@row(values(4))
@njit
def without_nan(given):
    x = given.copy()
    x[1] = np.nan
    rest = np.array([1.0, 2.0, 1.5])
    y = x[~np.isnan(x)]
    total = np.nansum(x) * np.nanmean(x) + np.nanvar(x) * np.nanstd(x) + np.nanmax(x) * np.nanmin(x) + np.nanprod(x)
    return total + np.sum(y * rest)


@row(1.3, 0.4, values(4))
@njit
def dtype_of_a_number(a, b, x):
    dtype = np.asarray(a + b).dtype
    state = np.zeros(len(x) + 1, dtype=dtype)
    state[0] = a.real
    for i in range(len(x)):
        state[i + 1] = state[i] * b + x[i] + a.imag
    return state[:-1], -state[1:]


# ----- Loops that are left in the middle of a turn -----


@row(np.eye(4) + 0.1 * values(4, 4), values(4), values(4), 0.01)
@njit
def conjugate_gradients(a, b, x, tolerance):
    r = b - a @ x
    p = r.copy()
    rs = np.dot(r, r)
    for _ in range(20):
        ap = a @ p
        alpha = rs / np.dot(p, ap)
        x += alpha * p
        r -= alpha * ap
        new = np.dot(r, r)
        if new < tolerance:
            break
        p = r + (new / rs) * p
        rs = new


@row(values(3), np.eye(3) + 0.1 * values(3, 3), 4)
@njit
def line_search(x, a, steps):
    f = 0.0
    for _ in range(steps):
        g = a @ x - 1.0
        f = 0.5 * np.dot(x, a @ x) - np.sum(x)
        t = 1.7
        while True:
            y = x - t * g
            if 0.5 * np.dot(y, a @ y) - np.sum(y) <= f - 0.3 * t * np.dot(g, g):
                break
            t *= 0.5
            if t < 1e-8:
                return x, f
        x = y
    return x, f


@row(values(4), 4)
@njit
def read_after_the_loop(x, turns):
    for k in range(turns):
        y = (x[1:] - x[:-1]) * (k + 1)
        z = np.sin(x) * x
        if z[0] > 1.1:
            break
        x = x * 1.1
    return np.sum(y) * z


@row(values(5), 0.05)
@njit
def tested_now_and_then(u, tolerance):
    v = np.zeros_like(u)
    for turn in range(20):
        for i in range(len(u)):
            v[i] = 0.5 * math.sin(u[i]) + 0.3 * u[i - 1]
        if turn % 2 == 1:
            change = 0.0
            for i in range(len(u)):
                change = max(change, abs(v[i] - u[i]))
            if change < tolerance:
                break
        for i in range(1, len(u)):
            v[i] = v[i] * 1.1 + 0.02 * v[i - 1] * v[i] + 0.01 * math.cos(v[i])
        u, v = v, u
    return u, v


@row(values(4), 0.3)
@njit
def anew_until_it_is_left(x, limit):
    y = x * 1.0
    for turn in range(9):
        z = np.sin(y) * x
        if turn > 0:
            if np.sum(z) < limit:
                break
            z = z * 1.1
        y = z * 0.9 + 0.1 * x
        y = y * y + 0.3 * z - 0.1 * np.cos(y) * z + 0.01 * np.sin(y)
    return np.sum(y * x)


@row(values(5), values(3), values(5), 3.0)
@njit
def returned_from_an_inner_loop(a, b, x, limit):
    s = 0.5
    for i in range(len(a)):
        if i != 1:
            s = s * 1.1 + a[i]
            for j in range(len(b)):
                s = s * math.sqrt(b[j])
                if s > limit:
                    return
        x[i] = x[i - 1] * 2.0 * s
        x[0] = 0.1 * x[i] * x[0] + s
        x[i] = math.sin(x[i - 1]) * 2.0 * s
        x[0] = 0.1 * x[i] * x[0] + s


@row(values(5), values(3), values(5), 3.0)
@njit
def left_in_the_else_of_an_inner_loop(a, b, x, limit):
    s = 0.5
    for i in range(len(a)):
        if i != 1:
            for j in range(len(b)):
                s = s * b[j]
                if s < 0.2:
                    break
            else:
                s += a[i]
                if s > limit:
                    break
            s += 0.1
        x[i] = x[i - 1] * 2.0 * s
        x[0] = 0.1 * x[i] * x[0] + s
        x[i] = math.sin(x[i - 1]) * 2.0 * s
        x[0] = 0.1 * x[i] * x[0] + s
    return s


# ----- Complex numbers and tuples -----


@row(values(4), values(4), 0.7)
@njit
def complex_locals(x, y, scale):
    z = np.zeros(len(x), np.complex128)
    total = 0.0
    for i in range(len(x)):
        z[i] = complex(x[i], y[i]) * np.exp(1j * scale) / (1.0 + 2j * x[i])
        total += abs(z[i]) + (z[i] ** 2).real * (z[i] ** 1.5).imag
    w = np.conj(z) * np.sqrt(z) + z.real
    w *= 2.0 - 1j
    w[1:] += z[:-1] - scale
    part = w[0] if x[0] > y[0] else 2.0 * w[1]
    return total + np.sum(w * z).real + np.angle(part) + np.vdot(z, w).imag + np.mean(np.abs(w))


@row(values(3), 0.6)
@njit
def complex_functions(x, y):
    z = complex(y, 0.3)
    for k in range(len(x)):
        if k == 1:
            z = x[k] * 1.0
        z = 0.1 * np.sin(z) * np.cosh(z) + np.log(z) - cmath.sqrt(x[k] - 2.0) / z
        z = 0.5 * z.conjugate() * np.tan(0.1 * z.real + 1j) - 1
    u, v = z, (z * 1j) ** (0.5 + 1j)
    u, v = v, u + 1 / v
    return (u * v).real, np.array([u, v, 1.0]).imag


@row(values(6), values(6))
@njit
def masks_of_several_lengths(x, y):
    one = x[x == np.max(x)]
    rest = y[y > 0.0]
    pair = (0.0, 0.0)
    for i in range(len(x)):
        if i == 3:
            pair = (x[i], y[i])
            k = i
            break
    return np.sum(one * rest**2) * pair[1] * k


# ----- Global arrays -----


def _table(numbers):
    """A function that reads an array of its own, under a name that others have too."""
    table = np.array(numbers)

    @njit
    def looked_up(x, k):
        return table[k] * x

    return looked_up


_of_three, _of_four = _table([1.5, 2.5, 3.5]), _table([0.5, 0.25, 0.125, 0.75])


@row(values(4))
@njit
def tables_of_one_name(x):
    return _of_three(x[0], 2) * _of_four(x[1], 3) + _of_four(x[2], 0)
