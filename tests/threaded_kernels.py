"""Numba kernels with loops over `prange`, with arguments: the table of test_adjoint_threads.py.

A row says which arrays of the reverse kernel are written directly, have a copy for each part, or share edges; and how
many loops stay on one thread. The kernels are rows of adjoint_kernels.py too, so that first and second derivatives of
all are compared with differences.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange

from .adjoint_kernels import ROWS, row, values


class Threaded(NamedTuple):
    """How the loops of a reverse kernel run."""

    copies: frozenset[str] = frozenset()
    edges: bool = False
    gathers: bool = False
    serial: bool = False


THREADED: dict[str, Threaded] = {}
_random = np.random.default_rng(11)
_permutation = _random.permutation(37)


def threaded(copies: str = "", **how: bool) -> Any:
    """Put a kernel of the table of kernels into this one."""

    def add(kernel: Any) -> Any:
        THREADED[kernel.py_func.__name__] = Threaded(frozenset(copies.split()), **how)
        return kernel

    return add


@threaded()
@row(values(37), values(37), values(37), 0.3)
@njit(parallel=True)
def pushed(u, v, field, dt):
    for i in prange(len(u)):
        x = u[i] + dt * field[i]
        u[i] = x / math.sqrt(1.0 + x * x + v[i] * v[i])
        v[i] *= x


@threaded(gathers=True)
@row(values(41), values(41), np.zeros(41), 0.1)
@njit(parallel=True)
def line_stencil(u, f, out, w):
    for i in prange(2, len(u) - 1):
        out[i] = f[i] * (u[i - 2] - 2.0 * u[i] * u[i - 1] + u[i + 1]) + w * u[i]


@threaded(gathers=True)
@row(values(11, 9), np.zeros((11, 9)))
@njit(parallel=True)
def plane_stencil(u, out):
    for i in prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            out[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) * u[i, j]


@threaded(gathers=True)
@row(values(5), np.zeros(5))
@njit(parallel=True)
def short_stencil(u, out):
    for i in prange(1, len(u) - 1):
        out[i] = u[i - 1] * u[i + 1] * u[i]


@threaded(edges=True)
@row(values(97), np.zeros(97))
@njit(parallel=True)
def limited(u, out):
    for i in prange(1, len(u) - 1):
        left = u[i] - u[i - 1]
        right = u[i + 1] - u[i]
        if left * right > 0.0:
            out[i] = 2.0 * left * right / (left + right)


@threaded(edges=True)
@row(values(97), np.zeros(97))
@njit(parallel=True)
def around(u, out):
    # At i = 0, u[i - 1] is the last element.
    for i in prange(len(u)):
        out[i] = math.sin(u[i - 1]) * math.exp(u[i - 2]) if u[i] > 0.6 else u[i] * u[i - 1]


@threaded("p_b")
@row(values(21, 3))
@njit(parallel=True)
def pair_energy(p):
    energy = 0.0
    for i in prange(len(p)):
        own = 0.0
        for j in range(i + 1, len(p)):
            r2 = 0.5
            for k in range(3):
                r2 += (p[i, k] - p[j, k]) ** 2
            own += 1e-2 / r2**3
        energy += own
    return energy


@threaded("fe_b forces_b")
@row(values(37) * 4, values(19) * 4, values(19), np.zeros(37), 1.9)
@njit(parallel=True)
def splines(e, fe, forces, out, smallest):
    # The cotangent of `smallest` is summed in the loop over j: no reduction for Numba.
    for i in prange(len(e)):
        for j in range(len(fe)):
            d = abs(e[i] - fe[j])
            if d < smallest:
                d = smallest
            out[i] += d**2 * (math.log(d) - 1.0) * forces[j]


@threaded("x_b")
@row(values(37), values(37), _permutation)
@njit(parallel=True)
def picked(x, w, where):
    total = 0.0
    count = 0
    for i in prange(len(where)):
        total += x[where[i]] ** 2 * w[i] + x[where[i // 2]]
        count += 1
    return total / count


@threaded()
@row(values(37, 7), np.zeros(37))
@njit(parallel=True)
def tapes(a, out):
    for i in prange(a.shape[0]):
        work = np.zeros(7)
        c = 0.3
        for j in range(a.shape[1]):
            c = math.sin(c * a[i, j]) + a[i, 0]
            work[j] = c
        for _ in range(2):
            for j in range(1, 7):
                work[j] = 0.5 * (work[j - 1] * work[j] + a[i, j])
        k = 0
        while c < 3.0:
            c = c * 1.5 + a[i, k]
            k += 1
        out[i] = work[6] * c


@threaded(gathers=True)
@row(values(37), values(37), 4)
@njit(parallel=True)
def in_time(u, f, n):
    for _ in range(n):
        v = u.copy()
        for i in prange(1, len(u) - 1):
            u[i] = v[i] + 0.2 * (v[i - 1] - 2.0 * v[i] + v[i + 1]) * f[i]


@threaded(serial=True)
@row(values(37), values(37), _permutation)
@njit(parallel=True)
def scattered(u, x, where):
    for i in prange(len(where)):
        u[where[i]] = math.sin(u[where[i]]) * x[i]


assert THREADED.keys() <= ROWS.keys()
