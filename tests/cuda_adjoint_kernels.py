"""Kernels of `cuda.jit` in the shapes that users write, with arguments: the table of test_cuda_kernel_adjoints.py.

Run by Numba's simulator in a process of its own, or by a GPU. Values are between 0.5 and 1.5, so that differences are
smooth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import cuda as numba_cuda
from numba import float64

import nbgrad as nb

cuda: Any = numba_cuda
TILE = 4
WIDE_TILE = TILE + 2
STEP = 1e-3


class Row(NamedTuple):
    """A kernel, its launch, the positions of what is differentiated, and all of its arguments."""

    kernel: Any
    launch: Any
    moving: tuple[int, ...]
    arguments: tuple[Any, ...]


ROWS: dict[str, Row] = {}
_random = np.random.default_rng(11)


def values(*shape: int) -> np.ndarray:
    """Numbers between 0.5 and 1.5."""
    return _random.uniform(0.5, 1.5, shape)


def row(launch: Any, moving: tuple[int, ...], *arguments: Any) -> Callable[[Any], Any]:
    """Put a kernel into the table."""

    def add(kernel: Any) -> Any:
        ROWS[kernel.py_func.__name__] = Row(kernel, launch, moving, arguments)
        return kernel

    return add


# ----- Each thread its own elements -----


@row((2, 4), (0, 1, 2), values(7), values(7), 0.3, 6)
@cuda.jit
def push(x, u, dt, n):
    i = cuda.grid(1)
    if i < n:
        x[i] += dt * u[i] / math.sqrt(1.0 + u[i] ** 2)
        u[i] = u[i] * 0.5 + math.sin(x[i])


@row(((1, 2), (4, 2)), (0, 1), values(3, 4), values(3, 4))
@cuda.jit
def in_place_on_a_grid(u, k):
    x, y = cuda.grid(2)
    if y >= u.shape[0] or x >= u.shape[1]:
        return
    u[y, x] = u[y, x] * k[y, x]
    if x > 0:
        u[y, x] += math.exp(-k[y, x - 1])


@row((2, 2), (0, 1), values(7), values(2), np.zeros(7), 3)
@cuda.jit
def carried_in_strides(x, rate, out, steps):
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        v = 0.4 * x[i]
        for _ in range(steps):
            v = rate[0] * v * (1.0 - v) + rate[1]
        out[i] = v


@row((1, 4), (0,), values(4), np.zeros(4))
@cuda.jit
def stored_in_local_arrays(x, out):
    powers = cuda.local.array(3, float64)
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < x.size:
        powers[0] = 1.0
        for k in range(1, 3):
            powers[k] = powers[k - 1] * x[i]
        v = x[i]
        for k in range(5):
            v = math.sin(v * powers[k % 3])
        out[i] = v


@row((1, 4), (0,), values(3), np.zeros(3), 12)
@cuda.jit
def newton(x, out, most):
    i = cuda.grid(1)
    if i < x.shape[0]:
        r = x[i]
        for _ in range(most):
            change = (r * r * r - x[i]) / (3.0 * r * r)
            r -= change
            if abs(change) < 1e-13:
                break
        out[i] = r


@row((1, 3), (0, 1), values(3), values(3), np.zeros(3), 4, np.array([True, False, True]))
@cuda.jit
def loops_in_loops(x, y, out, n, mask):
    i = cuda.grid(1)
    if not mask[i]:
        out[i] = y[i]
        return
    a = x[i]
    for j in range(n):
        b = a
        for k in range(j + 1):
            b = math.sin(b * y[k % 3]) + a * 0.1
            if b < 0.35:
                break
        a = a + b * 0.3
    out[i] = a * a


@row((2, 4), (0, 1), values(6), values(4), np.zeros(3), np.array([0, 2, 3, 6]), np.array([0, 1, 2, 3, 1, 0]))
@cuda.jit
def sparse_rows(value, x, out, start, column):
    r = cuda.grid(1)
    if r < out.size:
        total = 1.0
        for k in range(start[r], start[r + 1]):
            total = total * value[k] + x[column[k]]
        out[r] = total


@cuda.jit(device=True)
def spring(a, b, stiffness):
    stretch = abs(a - b) - 1.0
    return stiffness * stretch * stretch, stretch


@row((2, 4), (0, 1), np.arange(6.0) * 1.3 + values(6) * 0.2, 2.0, np.zeros(6))
@cuda.jit
def calls_of_device_functions(x, stiffness, energy):
    i = cuda.grid(1)
    if 0 < i < x.shape[0]:
        e, stretch = spring(x[i], x[i - 1], stiffness)
        energy[i] = e * (1.0 + stretch)


# ----- Elements that threads have in common -----


@row((2, 4), (0, 1), values(7), values(5), np.zeros(5), np.array([0, 3, 3, 1, 4, 3, 0]))
@cuda.jit
def scattered(x, weight, out, place):
    i = cuda.grid(1)
    if i < x.shape[0]:
        k = place[i]
        cuda.atomic.add(out, k, math.exp(x[i]) * weight[k])
        cuda.atomic.sub(out, 0, x[i] * weight[2])


@row((2, 4), (0,), values(7), np.zeros(1))
@cuda.jit
def block_sums(x, out):
    parts = cuda.shared.array(shape=TILE, dtype=float64)
    t = cuda.threadIdx.x
    i = cuda.blockIdx.x * cuda.blockDim.x + t
    v = 0.0
    if i < x.size:
        v = math.exp(x[i])
    parts[t] = v
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if t < half:
            parts[t] += parts[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        cuda.atomic.add(out, 0, parts[0])


@row((2, 4), (0,), values(8), np.zeros(2))
@cuda.jit
def block_totals(x, out):
    total = cuda.shared.array(1, float64)
    if cuda.threadIdx.x == 0:
        total[0] = 0.0
    cuda.syncthreads()
    cuda.atomic.add(total, 0, x[cuda.grid(1)])
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = math.log(total[0])


@row((2, 4), (0, 1), values(7), values(3), np.zeros(7))
@cuda.jit
def stencil(x, w, out):
    tile = cuda.shared.array(WIDE_TILE, float64)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    n = x.shape[0]
    tile[t + 1] = x[i] ** 2 if i < n else 0.0
    if t == 0:
        tile[0] = x[i - 1] ** 2 if i > 0 else 0.0
        last = i + TILE
        tile[TILE + 1] = x[last] ** 2 if last < n else 0.0
    cuda.syncthreads()
    if i < n:
        out[i] = w[0] * tile[t] + w[1] * tile[t + 1] + w[2] * tile[t + 2] * tile[t + 1]


@row(((1, 1), (2, 2)), (0, 1), values(2, 3), values(3, 2), np.zeros((2, 2)))
@cuda.jit
def tiled_product(a, b, c):
    rows = cuda.shared.array((2, 2), float64)
    columns = cuda.shared.array((2, 2), float64)
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    total = 0.0
    for k in range((a.shape[1] + 1) // 2):
        if y < a.shape[0] and tx + k * 2 < a.shape[1]:
            rows[ty, tx] = a[y, tx + k * 2]
        else:
            rows[ty, tx] = 0.0
        columns[ty, tx] = 0.0
        if x < b.shape[1] and ty + k * 2 < b.shape[0]:
            columns[ty, tx] = b[ty + k * 2, x]
        cuda.syncthreads()
        for j in range(2):
            total += rows[ty, j] * columns[j, tx]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


@row((1, 4), (0, 1), values(4), 0.2, np.zeros(4), 3)
@cuda.jit
def steps_in_a_tile(x, rate, out, steps):
    tile = cuda.shared.array(TILE, float64)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    for _ in range(steps):
        other = tile[(t + 1) % TILE]
        cuda.syncthreads()
        if t > 0:
            tile[t] = tile[t] + rate * other * tile[t]
        cuda.syncthreads()
    out[t] = tile[t]


@cuda.jit
def log_gammas(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.lgamma(x[i])


# ----- The same element by all threads -----


@row((2, 32), (0, 1), values(50, 2), values(3), np.zeros(50))
@cuda.jit
def all_pairs(x, w, out):
    """Whole warps, one of which ends early, and one thread at a time that leaves a turn out."""
    i = cuda.grid(1)
    n = x.shape[0]
    if i < n:
        total = 0.0
        for j in range(n):
            if j != i:
                dx, dy = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1]
                total += w[j % 3] / (1.0 + dx * dx + dy * dy)
        out[i] = total


# ----- Checks -----


def total_of(name: str, check: str = "never") -> tuple[Any, list[Any]]:
    """A number that depends on all results of a kernel, as a function of what is differentiated, and its arguments."""
    kernel, launch, moving, arguments = ROWS[name]
    function = nb.kernel(kernel, launch=launch, check=check)

    def total(*given: Any) -> Any:
        own = list(arguments)
        for k, value in zip(moving, given, strict=True):
            own[k] = value
        found = function(*own)
        parts = found if isinstance(found, tuple) else (found,)
        return sum(np.sum(np.sin(part * (1 + k))) for k, part in enumerate(parts))

    return total, [arguments[k] for k in moving]


def moved(point: list[Any], along: list[Any], step: float) -> list[Any]:
    """A point a step along a direction."""
    return [x + step * v for x, v in zip(point, along, strict=True)]


def slope(function: Any, point: list[Any], along: list[Any]) -> Any:
    """The derivative along a direction, by differences of fourth order."""
    near = [function(*moved(point, along, k * STEP)) for k in (-2, -1, 1, 2)]
    return (near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * STEP)


def gradient(function: Any, point: list[Any]) -> list[Any]:
    """The gradient by all arguments."""
    found = nb.grad(function, tuple(range(len(point))))(*point)
    return list(found) if isinstance(found, tuple) else [found]


def check(name: str, second_order: bool = True) -> None:
    """Derivatives of first and second order are those of differences of the kernel, and of each other."""
    total, point = total_of(name)
    random = np.random.default_rng(3)
    along = [0.1 * random.standard_normal(np.shape(one)) for one in point]
    found = gradient(total, point)
    dot = sum(np.sum(g * v) for g, v in zip(found, along, strict=True))
    np.testing.assert_allclose(dot, slope(total, point, along), rtol=1e-8, atol=1e-9, err_msg=name)
    _, tangent = nb.jvp(total, tuple(point), tuple(along))
    np.testing.assert_allclose(float(tangent), dot, rtol=1e-11, err_msg=name)
    if not second_order:
        return
    _, second = nb.jvp(lambda *x: tuple(gradient(total, list(x))), tuple(point), tuple(along))
    sides = [gradient(total, moved(point, along, k * STEP)) for k in (-2, -1, 1, 2)]
    for one, a, b, c, d in zip(second, *sides, strict=True):
        np.testing.assert_allclose(one, (a - 8 * b + 8 * c - d) / (12 * STEP), rtol=1e-6, atol=1e-8, err_msg=name)
