"""Gradients derived by hand and written as Numba loops, one pass over the data: what generated code competes with.

In: the inputs of a task of benchmarks/tasks.py. Out: the same results in the same order. Called by peers.py and
measured.py as one more library. Only tasks whose derivative is short are here. Sums may be reordered, as in nbgrad; NaN
and infinity may not be assumed away.
"""

import math

import numpy as np
from numba import njit

from .tasks import TASKS

compiled = njit(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")


@compiled
def rosenbrock(x):
    value, gradient = 0.0, np.zeros_like(x)
    for i in range(x.size - 1):
        bend, left = x[i + 1] - x[i] * x[i], 1.0 - x[i]
        value += 100.0 * bend * bend + left * left
        gradient[i] -= 400.0 * bend * x[i] + 2.0 * left
        gradient[i + 1] += 200.0 * bend
    return value, gradient


@compiled
def fused(x, y):
    value, gx, gy = 0.0, np.empty_like(x), np.empty_like(y)
    for i in range(x.size):
        e, s, c = math.exp(x[i] * y[i]), math.sin(x[i]), math.cos(x[i])
        inside = e + s * s + 1.0
        value += math.log(inside)
        gx[i] = (e * y[i] + 2.0 * s * c) / inside
        gy[i] = e * x[i] / inside
    return value, gx, gy


@compiled
def options(spot, strike, years, rate, volatility):
    greeks = np.empty((5, spot.size))
    for i in range(spot.size):
        root = math.sqrt(years[i])
        upper = math.log(spot[i] / strike[i]) + (rate[i] + 0.5 * volatility[i] ** 2) * years[i]
        upper /= volatility[i] * root
        lower = upper - volatility[i] * root
        sold = 0.5 + 0.5 * math.erf(lower * math.sqrt(0.5))
        discounted = strike[i] * math.exp(-rate[i] * years[i]) * sold
        vega = spot[i] * root * math.exp(-0.5 * upper * upper) / math.sqrt(2.0 * math.pi)
        greeks[0, i] = 0.5 + 0.5 * math.erf(upper * math.sqrt(0.5))
        greeks[1, i] = -discounted / strike[i]
        greeks[2, i] = rate[i] * discounted + 0.5 * vega * volatility[i] / years[i]
        greeks[3, i] = years[i] * discounted
        greeks[4, i] = vega
    return greeks[0], greeks[1], greeks[2], greeks[3], greeks[4]


@compiled
def logistic(w, X, y):
    n, d = X.shape
    value, gradient = 0.0, np.zeros(d)
    for i in range(n):
        z = 0.0
        for j in range(d):
            z += X[i, j] * w[j]
        e = math.exp(-abs(z))
        value += math.log1p(e) + max(z, 0.0) - y[i] * z
        slope = (1.0 if z >= 0 else e) / (1.0 + e) - y[i]
        for j in range(d):
            gradient[j] += slope * X[i, j]
    squares = 0.0
    for j in range(d):
        squares += w[j] * w[j]
        gradient[j] = gradient[j] / n + 1e-3 * w[j]
    return value / n + 0.5e-3 * squares, gradient


@compiled
def hvp(w, X, y, v):
    n, d = X.shape
    product = np.zeros(d)
    for i in range(n):
        z, along = 0.0, 0.0
        for j in range(d):
            z += X[i, j] * w[j]
            along += X[i, j] * v[j]
        e = math.exp(-abs(z))
        curvature = along * e / ((1.0 + e) * (1.0 + e))
        for j in range(d):
            product[j] += curvature * X[i, j]
    for j in range(d):
        product[j] = product[j] / n + 1e-3 * v[j]
    return (product,)


@compiled
def jacobian(x, A, B):
    n = x.size
    result = np.empty((n, n))
    for i in range(n):
        a, b = 0.0, 0.0
        for j in range(n):
            a += A[i, j] * x[j]
            b += B[i, j] * x[j]
        t = math.tanh(a)
        left, right = 1.0 - t * t, math.cos(b) * x[i]
        for j in range(n):
            result[i, j] = left * A[i, j] + right * B[i, j]
        result[i, i] += math.sin(b)
    return (result,)


@compiled
def bodies(places, masses):
    """Each pair is visited twice, so that no row is written by another."""
    n = masses.size
    value, gradient = 0.0, np.empty_like(places)
    for i in range(n):
        gx, gy, gz, near = 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            dx, dy, dz = (
                places[i, 0] - places[j, 0],
                places[i, 1] - places[j, 1],
                places[i, 2] - places[j, 2],
            )
            inverse = 1.0 / math.sqrt(dx * dx + dy * dy + dz * dz + 0.01)
            pair = masses[j] * inverse
            near += pair
            pull = pair * inverse * inverse
            gx += pull * dx
            gy += pull * dy
            gz += pull * dz
        value -= 0.5 * masses[i] * (near - 10.0 * masses[i])
        gradient[i, 0], gradient[i, 1], gradient[i, 2] = masses[i] * gx, masses[i] * gy, masses[i] * gz
    return value, gradient


@compiled
def stencil(start, target):
    n, m = start.shape
    states = np.empty((101, n, m))
    states[0] = start
    for step in range(100):
        u, following = states[step], states[step + 1]
        for i in range(n):
            above, below = u[i - 1], u[i + 1 if i + 1 < n else 0]
            for j in range(m):
                c = u[i, j]
                around = above[j] + below[j] + u[i, j - 1] + u[i, j + 1 if j + 1 < m else 0]
                following[i, j] = c + 0.2 * (around - 4.0 * c) + 0.05 * (c - c * c * c)
    value, g, before = 0.0, states[100] - target, np.empty((n, m))
    for i in range(n):
        for j in range(m):
            value += 0.5 * g[i, j] * g[i, j]
    for step in range(99, -1, -1):
        u = states[step]
        for i in range(n):
            above, below = g[i - 1], g[i + 1 if i + 1 < n else 0]
            for j in range(m):
                around = above[j] + below[j] + g[i, j - 1] + g[i, j + 1 if j + 1 < m else 0]
                slope = 0.25 - 0.15 * u[i, j] * u[i, j]
                before[i, j] = 0.2 * around + g[i, j] * slope
        g, before = before, g
    return value, g


FUNCTIONS = {f.__name__: f for f in (rosenbrock, fused, options, logistic, hvp, jacobian, bodies, stencil)}


class ByHand:
    """The functions above as a library."""

    def prepare(self, name):
        if name not in FUNCTIONS:
            message = f"{name} has no loop by hand"
            raise NotImplementedError(message)
        function, inputs = FUNCTIONS[name], TASKS[name].arrays()
        return lambda: function(*inputs), lambda result: [np.asarray(x) for x in result]
