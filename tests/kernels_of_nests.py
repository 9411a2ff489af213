"""Numba kernels that overwrite arrays in nests of loops: more rows of the table of adjoint_kernels.py."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .adjoint_kernels import numbers, row

values = numbers(9)


@row(values(4))
@njit
def powers(x):
    s = 0.0
    for v in x:
        s += v**6 + v**0.5 + v**1.5 + v**-2 + v**-0.5 + v**2.3
    return s


@row(values(5, 6), np.zeros((5, 6)))
@njit
def relaxed_once(u, new):
    error = 0.0
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            new[i, j] = 0.25 * (u[i, j + 1] + u[i, j - 1] + u[i - 1, j] + u[i + 1, j])
            error = max(error, abs(new[i, j] - u[i, j]))
    return error


@row(values(4), values(4))
@njit
def index_from_the_end(a, b):
    for i in range(len(a)):
        a[i] = math.sin(a[i - 1]) * b[i]


@row(values(3, 4), values(3, 3), values(3, 4))
@njit
def linear_model(x, a, v):
    for t in range(x.shape[1] - 1):
        for i in range(x.shape[0]):
            x[i, t + 1] = v[i, t]
            for j in range(x.shape[0]):
                x[i, t + 1] += a[i, j] * x[j, t]


@row(values(4, 4), np.zeros(4))
@njit
def elimination(a, out):
    n = a.shape[0]
    for k in range(n - 1):
        scale = np.sum(a[k, k + 1 : n])
        if scale <= 0:
            n = k + 1
            break
        for i in range(k + 1, n):
            a[i, k] /= scale
            for j in range(k + 1, n):
                a[i, j] += a[i, k] * a[k, j]
    out[n - 1] = 1
    norm = 1.0
    for k in range(n - 2, -1, -1):
        for i in range(k + 1, n):
            out[k] += out[i] * a[i, k]
        norm += out[k]
    out /= norm


@row(values(4, 5), values(5, 6), np.array([[1, 1], [0, 1], [1, 0]]), values(3))
@njit
def least_paths(cost, total, steps, weights):
    for i in range(1, total.shape[0]):
        for j in range(1, total.shape[1]):
            for k in range(len(steps)):
                reached = total[i - steps[k, 0], j - steps[k, 1]] + weights[k] * cost[i - 1, j - 1]
                if reached < total[i, j] + 0.3:
                    total[i, j] = reached


@row(values(5), values(5, 4), 0.05)
@njit
def until_it_settles(u, m, limit):
    """A nest with a `while`, a break, and an array that is made in each turn."""
    change, turns = 1.0, 0
    while change > limit and turns < 6:
        change = 0.0
        turns += 1
        for i in range(len(u)):
            row = np.zeros(m.shape[1])
            for j in range(m.shape[1]):
                row[j] = m[i, j] * u[i]
                if row[j] < 0.2:
                    break
                m[i, j] = 0.9 * math.sin(row[j])
            new = 0.2 * u[i - 1] * u[i] + 0.3 * row[0]
            change += (new - u[i]) ** 2
            u[i] = new
    return change


@row(3, values(5), values(5, 5))
@njit
def steps_with_copies(times, u, m):
    """A nest within turns that keep an array, and two nests that use the same one."""
    for t in range(times):
        for i in range(1, len(u)):
            for j in range(len(u) - 1, 0, -1):
                m[i, j] = m[i, j] * math.cos(m[i - 1, j]) + 0.1 * u[j]
                u[j] += 0.1 * m[i, j] * u[j - 1]
        for i in range(len(u)):
            u[i] *= math.sin(m[t, i] + u[i])


@row(values(4), values(4))
@njit
def one_turn_more_than_elements(a, b):
    for i in range(len(a) + 1):
        a[i - 1] = math.sin(a[i - 1]) * b[i - 1]
