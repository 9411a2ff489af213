"""Numba kernels of the kinds that scientists write, and their inputs.

In: a name in KERNELS. Out: a `Program`: the kernel as it stands, its arguments, and which of them are differentiated;
`prepare` gives calls of the kernel and of its gradient. Called by kernels.py and by kernels_beside.py.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

import nbgrad as nb


@numba.njit
def pointwise(x, y, out):
    for i in range(len(x)):
        r = math.sqrt(x[i] * x[i] + y[i] * y[i] + 0.1)
        out[i] = math.exp(-r) * math.sin(3.0 * x[i]) + math.log(1.0 + r)


@numba.njit
def stencil(u, k, out):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            around = u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1]
            out[i, j] = u[i, j] + k[i, j] * (around - 4.0 * u[i, j])


@numba.njit
def greens(x, y, softening):
    d = math.sqrt(x * x + y * y) + softening
    return d * d * (math.log(d) - 1.0)


@numba.njit(parallel=True)
def spline(east, north, force_east, force_north, softening, forces, out):
    for i in numba.prange(len(east)):
        out[i] = 0.0
        for j in range(len(forces)):
            out[i] += forces[j] * greens(east[i] - force_east[j], north[i] - force_north[j], softening)


@numba.njit(parallel=True)
def lennard_jones(points):
    energy = 0.0
    for i in numba.prange(len(points) - 1):
        for j in range(i + 1, len(points)):
            dx, dy, dz = points[i, 0] - points[j, 0], points[i, 1] - points[j, 1], points[i, 2] - points[j, 2]
            s = (1.0 / (dx * dx + dy * dy + dz * dz)) ** 3
            energy += 4.0 * (s * s - s)
    return energy


@numba.njit
def push(ux, uy, uz, ex, ey, ez, bx, by, bz, dt):
    for i in range(len(ux)):
        px, py, pz = ux[i] + dt * ex[i], uy[i] + dt * ey[i], uz[i] + dt * ez[i]
        inverse = dt / math.sqrt(1.0 + px * px + py * py + pz * pz)
        tx, ty, tz = inverse * bx[i], inverse * by[i], inverse * bz[i]
        vx, vy, vz = px + py * tz - pz * ty, py + pz * tx - px * tz, pz + px * ty - py * tx
        s = 2.0 / (1.0 + tx * tx + ty * ty + tz * tz)
        ux[i] = px + s * (vy * tz - vz * ty) + dt * ex[i]
        uy[i] = py + s * (vz * tx - vx * tz) + dt * ey[i]
        uz[i] = pz + s * (vx * ty - vy * tx) + dt * ez[i]


@numba.njit
def recursion(number, omega, thickness, speed, density, out):
    """Layers from the bottom up: a displacement and a stress, by waves or by decay, for each frequency."""
    for f in range(len(omega)):
        one, other = 1.0, -density[-1] * speed[-1] ** 2 * number[f]
        for m in range(len(thickness) - 2, -1, -1):
            rigidity = density[m] * speed[m] ** 2
            part = (omega[f] / speed[m]) ** 2 - number[f] ** 2
            if part > 0.0:
                w = math.sqrt(part)
                c, s, t = math.cos(w * thickness[m]), math.sin(w * thickness[m]) / w, -w * math.sin(w * thickness[m])
            else:
                w = math.sqrt(-part)
                decay = math.exp(-2.0 * w * thickness[m])
                c, s, t = 0.5 * (1.0 + decay), 0.5 * (1.0 - decay) / w, 0.5 * w * (1.0 - decay)
            one, other = c * one - s * other / rigidity, c * other - t * rigidity * one
            largest = max(abs(one), abs(other) / rigidity)
            one, other = one / largest, other / largest
        out[f] = one


@numba.njit
def dynamic(x, y, gamma, table):
    for i in range(len(x)):
        for j in range(len(y)):
            a, b, c = -table[i, j + 1] / gamma, -table[i + 1, j] / gamma, -table[i, j] / gamma
            top = max(a, b, c)
            soft = -gamma * (math.log(math.exp(a - top) + math.exp(b - top) + math.exp(c - top)) + top)
            table[i + 1, j + 1] = (x[i] - y[j]) ** 2 + soft


@numba.njit
def work_arrays(thickness, speed, start, out):
    """A vector of five through layers, each a matrix of 5x5 that is filled anew."""
    matrix, vector, new = np.zeros((5, 5)), np.zeros(5), np.zeros(5)
    for i in range(5):
        vector[i] = start[i]
    for m in range(len(thickness)):
        for i in range(5):
            for j in range(5):
                matrix[i, j] = math.cos(thickness[m] * (i + 1)) / (1.0 + (i - j) ** 2 + speed[m])
        size = 0.0
        for i in range(5):
            total = 0.0
            for j in range(5):
                total += matrix[i, j] * vector[j]
            new[i] = total
            size = max(size, abs(total))
        for i in range(5):
            vector[i] = new[i] / size
    for i in range(5):
        out[i] = vector[i]


@numba.njit
def tridiagonal(lower, diagonal, upper, right):
    """The solution comes into the right-hand side; Thomas's method overwrites the upper diagonal, too."""
    n = len(right)
    upper[0] /= diagonal[0]
    right[0] /= diagonal[0]
    for i in range(1, n):
        scale = 1.0 / (diagonal[i] - lower[i] * upper[i - 1])
        upper[i] *= scale
        right[i] = (right[i] - lower[i] * right[i - 1]) * scale
    for i in range(n - 2, -1, -1):
        right[i] -= upper[i] * right[i + 1]


class Program(NamedTuple):
    """A kernel with arguments of a size that fits the second-level cache, or nearly."""

    text: str
    kernel: object
    arguments: tuple
    wrt: tuple  # positions that are differentiated
    result: int = 0  # of the results, the one whose weighted sum is differentiated
    restored: tuple = ()  # positions of arrays that a call changes and the next one reads


def program(name):
    """The program of a name."""
    a = np.random.default_rng(0).uniform
    lattice = np.stack(np.meshgrid(*[np.arange(8.0)] * 3, indexing="ij"), -1).reshape(-1, 3) * 1.2
    table = np.full((201, 221), 1e6)
    table[0, 0] = 0.0
    size, layers, grid = 50_000, 50, (500, 500)
    pair, series = a(-1, 1, (2, 100_000)), (a(-1, 1, 200), a(-1, 1, 220))
    momenta, fields = [a(-1, 1, size) for _ in range(3)], [a(-0.5, 0.5, size) for _ in range(6)]
    depth = a(1.0, 3.0, layers), np.sort(a(2.0, 4.0, layers)), a(2.0, 3.0, layers)
    frequency = np.linspace(0.5, 3.0, 100)
    rows = {
        "pointwise": (
            "function of two arrays, 100,000",
            pointwise,
            (*pair, np.zeros(100_000)),
            (0, 1),
        ),
        "stencil": ("five points, 500x500", stencil, (a(0, 1, grid), a(0, 0.2, grid), np.zeros(grid)), (0, 1)),
        "spline": (
            "spline, sums over 400x500 pairs of points, prange",
            spline,
            (*a(0, 9, (2, 400)), *a(0, 9, (2, 500)), 1e-3, a(-1, 1, 500), np.zeros(400)),
            (0, 1, 2, 3, 5),
        ),
        "lennard-jones": ("Lennard-Jones, 512 atoms, prange", lennard_jones, (lattice + a(-0.1, 0.1, (512, 3)),), (0,)),
        "push": ("particle push in place, 50,000", push, (*momenta, *fields, 0.05), tuple(range(9)), 0, (0, 1, 2)),
        "recursion": (
            "recursion over 50 layers with branches, 100 frequencies",
            recursion,
            (frequency / 2.9, frequency, *depth, np.zeros(100)),
            (2, 3, 4),
        ),
        "dynamic": (
            "dynamic programming in place, 200x220",
            dynamic,
            (*series, 0.1, table),
            (0, 1),
        ),
        "work-arrays": (
            "work arrays of 5x5, 500 layers",
            work_arrays,
            (a(0.1, 1, 500), a(1, 2, 500), a(0.5, 1, 5), np.zeros(5)),
            (0, 1, 2),
        ),
        "tridiagonal": (
            "tridiagonal system in place, 20,000",
            tridiagonal,
            (a(0, 0.4, 20_000), a(1, 2, 20_000), a(0, 0.4, 20_000), a(-1, 1, 20_000)),
            (0, 1, 2, 3),
            1,
            (2, 3),
        ),
    }
    return Program(*rows[name])


KERNELS = (
    "pointwise",
    "stencil",
    "spline",
    "lennard-jones",
    "push",
    "recursion",
    "dynamic",
    "work-arrays",
    "tridiagonal",
)


def weights(shape):
    """What the elements of a result are multiplied by, before their sum is differentiated."""
    return 1.0 + 0.5 * np.sin(np.arange(math.prod(shape), dtype=float)).reshape(shape)


def objective(row, differentiated):
    """The weighted sum of a kernel's result, a function of the arguments that are differentiated."""
    places = dict(zip(row.wrt, range(len(row.wrt)), strict=True))

    def weighted(*moving):
        given = [moving[places[k]] if k in places else x for k, x in enumerate(row.arguments)]
        results = differentiated(*given)
        result = results[row.result] if isinstance(results, tuple) else results
        return np.sum(weights(np.shape(result)) * result)

    return weighted


def prepare(row, check="first"):
    """Two functions of no arguments: the kernel as Numba runs it, and the gradient."""
    weighted = objective(row, nb.kernel(row.kernel, check=check))
    inputs = [row.arguments[k] for k in row.wrt]
    gradient = nb.jit(nb.grad(weighted, tuple(range(len(inputs)))))
    scratch = [x.copy() if isinstance(x, np.ndarray) else x for x in row.arguments]

    def primal():
        for k in row.restored:
            scratch[k][...] = row.arguments[k]
        return row.kernel(*scratch)

    return primal, lambda: gradient(*inputs)
