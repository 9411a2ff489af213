"""Programs that are Python loops: time steps, filters, recurrences, iterations, lists, arrays that are filled.

In: nothing. Out: `PROGRAMS`, name -> (function of two arrays, the loops that it becomes). Called by test_rolling.py. A
loop is given as (turns, the most nodes of a turn); inner loops that stay written out count as nodes of a turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import nbgrad.numpy as xp

RNG = np.random.default_rng(11)
U, P = np.array([0.3, 0.8, -0.5]), np.array([0.9, 0.4, 1.1])
SEEN, NOISE = RNG.normal(size=(300, 3)), RNG.normal(size=(300, 3))
Program = Callable[[Any, Any], Any]
PROGRAMS: dict[str, tuple[Program, list[tuple[int, int]]]] = {}
BY_VALUE: set[str] = set()
"""Programs in which Python decides by values: `vmap` refuses them."""
SIDES, LENGTHS = RNG.random(size=(300, 2)) < 0.4, RNG.integers(0, 6, size=300)
"""Which side a turn takes, and how many turns a loop in it has: without any order."""


def program(*loops: tuple[int, int]) -> Callable[[Program], Program]:
    """Enter a function into the table."""

    def enter(function: Program) -> Program:
        PROGRAMS[function.__name__] = (function, list(loops))
        return function

    return enter


def _lorenz(u: Any, p: Any) -> Any:
    x, y, z = u[0], u[1], u[2]
    return np.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])


@program((60, 130))
def runge_kutta(u: Any, p: Any) -> Any:
    h = 0.01
    for _ in range(60):
        k1 = _lorenz(u, p)
        k2 = _lorenz(u + h / 2 * k1, p)
        k3 = _lorenz(u + h / 2 * k2, p)
        k4 = _lorenz(u + h * k3, p)
        u = u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return u


@program((80, 40))
def forced(u: Any, p: Any) -> Any:
    """Numbers that depend on the time, and data of the turn and of the one before."""
    total = 0.0
    for k in range(1, 80):
        u = u + 0.1 * (np.sin(0.1 * k) * p - u * u)
        total = total + np.sum((u - SEEN[k]) ** 2) + u[0] * NOISE[k - 1, 1]
    return total


@program((150, 12))
def appended(u: Any, p: Any) -> Any:
    out = []
    for k in range(150):
        u = np.sin(u) * p + 0.1 * k
        out.append(u[0])
    return np.stack(out)


@program((150, 8), (150, 8))
def list_read_twice(u: Any, p: Any) -> Any:
    out = []
    for _ in range(150):
        u = np.sin(u) * p
        out.append(u)
    total = 0.0
    for k in range(150):
        total = total + out[k] * out[k - 1 if k else 0]
    return total


@program((119, 40))
def filled(u: Any, p: Any) -> Any:
    """An array whose elements are written one after the other."""
    x = xp.zeros(120)
    x[0] = u[0]
    for k in range(1, 120):
        x[k] = np.sin(x[k - 1]) * p[0] + u[1]
    return x


@program((39, 80), (39, 50))
def tridiagonal(u: Any, p: Any) -> Any:
    """Thomas's algorithm: one sweep forwards, one backwards."""
    n = 40
    d, c, x = xp.zeros(n) + 2.5, xp.zeros(n), xp.zeros(n)
    c[0] = p[0] / d[0]
    x[0] = u[0] / d[0]
    for i in range(1, n):
        m = d[i] - p[0] * c[i - 1]
        c[i] = p[1] / m * 0.5
        x[i] = (u[1] - p[0] * x[i - 1]) / m
    for i in range(n - 2, -1, -1):
        x[i] = x[i] - c[i] * x[i + 1]
    return x


@program((200, 14))
def two_steps_back(u: Any, p: Any) -> Any:
    a, b = u[0], u[1]
    for _ in range(200):
        a, b = b, p[0] * b + p[1] * a - 0.5 * np.tanh(a)
    return a + b


@program((25, 110))
def steps_in_steps(u: Any, p: Any) -> Any:
    for _ in range(25):
        for _ in range(20):
            u = u + 0.01 * np.sin(u * p)
        u = u * np.exp(-0.1 * u)
    return u


@program((20, 90))
def every_tenth(u: Any, p: Any) -> Any:
    for k in range(200):
        u = u + 0.01 * np.sin(u * p)
        if k % 10 == 0:
            u = u * 0.5 + np.cos(u)
    return u


@program((100, 14))
def alternating(u: Any, p: Any) -> Any:
    for k in range(200):
        u = np.sin(u * p) if k % 2 else u + 0.1 * np.cos(u)
    return u


@program((120, 10), (100, 12))
def broken_once(u: Any, p: Any) -> Any:
    for k in range(220):
        u = np.sin(u * p) + 0.1 * u if k < 120 else u * 0.99 + np.cos(u) * p * 0.1
    return u


@program((60, 14))
def layers(u: Any, p: Any) -> Any:
    """A value of its own for each turn, which was computed before."""
    for w in [p * (k + 1) * 0.1 for k in range(60)]:
        u = np.tanh(u * w) + u * 0.5 + np.exp(-u * u)
    return u


@program((49, 130))
def kalman(u: Any, p: Any) -> Any:
    a, i3 = np.eye(3) * 0.9, np.eye(3)
    mean, cov, total = u, i3 * p[0], 0.0
    for k in range(50):
        mean, cov = a @ mean, a @ cov @ a.T + 0.1 * i3
        s = cov + 0.5 * i3
        gain = np.linalg.solve(s, cov).T
        error = SEEN[k] - mean
        total = total + error @ np.linalg.solve(s, error) + np.linalg.slogdet(s)[1]
        mean, cov = mean + gain @ error, cov - gain @ cov
    return total


@program((60, 60))
def wave(u: Any, p: Any) -> Any:
    """A stencil in place, with a source that depends on the time and a receiver."""
    a = xp.zeros((12, 12))
    a[5, 5] = u[0]
    b, seen = a * 0.9, []
    for k in range(60):
        lap = a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2] - 4 * a[1:-1, 1:-1]
        c = a * 1.0
        c[1:-1, 1:-1] = 2 * a[1:-1, 1:-1] - b[1:-1, 1:-1] + p[0] * lap * 0.1
        c[5, 5] += np.sin(0.1 * k)
        b, a = a, c
        seen.append(a[3, 3])
    return np.stack(seen)


@program((60, 60))
def gates(u: Any, p: Any) -> Any:
    """A long short-term memory."""
    w = np.outer(p, u)
    h, c, total = u, u * 0.5, 0.0
    for k in range(60):
        gate = 1 / (1 + np.exp(-(w @ h + SEEN[k])))
        c = gate * c + (1 - gate) * np.tanh(w @ SEEN[k])
        h = gate * np.tanh(c)
        total = total + np.sum((h - SEEN[k + 1]) ** 2)
    return total


@program((80, 50))
def adam(u: Any, p: Any) -> Any:
    m = v = 0.0 * u
    for k in range(1, 81):
        g = 2 * (u - p) + 0.3 * np.cos(u)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        u = u - 0.05 * (m / (1 - 0.9**k)) / (np.sqrt(v / (1 - 0.99**k)) + 1e-8)
    return u


@program((100, 16))
def power_iteration(u: Any, p: Any) -> Any:
    a = np.outer(p, p) + np.diag([3.0, 2.0, 1.0])
    for _ in range(100):
        u = a @ u
        u = u / np.sqrt(u @ u)
    return u


@program((60, 25))
def rolled_array(u: Any, p: Any) -> Any:
    """Allen-Cahn on a ring, by np.roll."""
    for _ in range(60):
        u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1)) * p + 0.1 * (u - u**3)
    return u


@program((40, 40))
def minibatches(u: Any, p: Any) -> Any:
    """Rows that a table of random numbers chooses."""
    rows = np.random.default_rng(3).integers(0, 300, size=(40, 8))
    for k in range(40):
        x = SEEN[rows[k]]
        error = x @ u - NOISE[rows[k], 0]
        u = u - 0.05 * p * (x.T @ error) / 8
    return u


@program((80, 16))
def descending(u: Any, p: Any) -> Any:
    """An argument that is read from its end."""
    q = np.concatenate([u, p] * 14)
    total = 0.0
    for k in range(82, 2, -1):
        total = np.sin(total) + q[k] * q[k - 2]
    return total


@program((40, 70))
def spectral(u: Any, p: Any) -> Any:
    """A split step: complex numbers, and a library function in each turn."""
    z = np.concatenate([u, p, u]) + 0j
    phase = np.exp(-0.1j * np.fft.fftfreq(9) ** 2)
    for _ in range(40):
        z = np.fft.ifft(np.fft.fft(z) * phase) * np.exp(-0.1j * np.abs(z) ** 2)
    return np.abs(z) ** 2


@program((60, 30))
def inner_gradient(u: Any, p: Any) -> Any:
    """A gradient in each turn."""
    import nbgrad as nb

    slope = nb.grad(lambda u: np.sum(np.cos(u) * p))
    for _ in range(60):
        u = u - 0.1 * slope(u) + 0.01 * u * u
    return u


# ----- Turns of several kinds -----


@program((275, 45))
def triangular(u: Any, p: Any) -> Any:
    """Inner loops of 0, 1, 2... turns, a sum that begins anew, numbers of the inner and of the outer turn."""
    total = 0.0
    for k in range(24):
        inner = 0.0
        for j in range(k):
            inner = inner * 0.5 + np.cos(inner * p[0] + 0.1 * k) * u[j % 3]
        total = total + np.sin(inner) * p[1]
    return total * u


@program((323, 55))
def to_the_end(u: Any, p: Any) -> Any:
    """Inner loops of ever fewer turns, which read a value of the outer loop."""
    for k in range(24):
        v = u
        for j in range(k, 24):
            v = v * 0.9 + np.sin(u * 0.1 + v) * SEEN[j]
        u = 0.8 * u + v * p
    return u


@program((275, 45))
def substituted(u: Any, p: Any) -> Any:
    """Forward substitution, with scalars in a list."""
    x: list[Any] = []
    for k in range(24):
        left = u[k % 3]
        for j in range(k):
            left = left - SEEN[k, j % 3] * 0.1 * x[j] * p[2]
        x.append(left / (2 + SEEN[k, 0] ** 2))
    return np.stack(x)


@program((341, 55))
def looked_up(u: Any, p: Any) -> Any:
    """Inner loops of any number of turns, and a value of half the turns ago."""
    total, rows = 0.0, list[Any]()
    for k in range(60):
        for _ in range(int(LENGTHS[k])):
            u = np.tanh(u * p) + 0.1 * SEEN[k]
        rows.append(u[0] * u[1])
        total = total + rows[k // 2] * u[2]
    return total


@program((148, 45))
def irregular(u: Any, p: Any) -> Any:
    """A branch without any order, another one after it in some turns, and values that only some turns give."""
    kept: list[Any] = []
    v = u
    for k in range(150):
        if SIDES[k, 0]:
            u = u + 0.1 * np.sin(v)
            v = v * 0.99
        else:
            v = np.cos(u) * p * 0.5 + SEEN[k]
            kept.append(v[0])
        u = u * 0.999
    return sum(kept) * u + v


@program((99, 65))
def complex_kinds(u: Any, p: Any) -> Any:
    z = u + 1j * p
    for k in range(100):
        z = z * (0.9 + 0.1j) + 0.01
        if SIDES[k, 1]:
            z = z * z.conj() * 0.5 + 0.1j * z
    return z.real * z.imag


def by_value(function: Program) -> Program:
    BY_VALUE.add(function.__name__)
    return function


@by_value
@program((145, 45))
def newton(u: Any, p: Any) -> Any:
    """Newton's iteration in each time step, as many turns as it needs."""
    x = u[0]
    for k in range(40):
        h, y = 0.05 * (1 + k % 5), x
        while True:
            rest = y - x + h * (np.sin(y) + p[0] * y**3 - NOISE[k, 0])
            step = rest / (1 + h * (np.cos(y) + 3 * p[0] * y * y))
            y = y - step
            if abs(step) < 1e-10:
                break
        x = y
    return x * u


@by_value
@program((99, 30))
def bouncing(u: Any, p: Any) -> Any:
    height, speed = u[0] + 1.0, p[1]
    for k in range(100):
        speed = speed - 0.981 * (1 + 0.1 * np.sin(0.1 * k))
        height = height + 0.1 * speed
        if height < 0:
            height = -0.95 * height
            speed = -0.95 * speed + 0.3 * u[1]
    return height * speed * u


@by_value
@program((64, 30))
def adaptive(u: Any, p: Any) -> Any:
    """Steps that are refused, and numbers that Python computes from them."""
    t, h, y = 0.0, 0.3, u
    for _ in range(100):
        first = -p * y + np.sin(3 * t)
        second = -p * (y + h * first) + np.sin(3 * (t + h))
        error = np.max(np.abs(h * (second - first)))
        if error < 1e-2:
            t, y = t + h, y + h * (first + second) / 2
            h = h * 1.3
        else:
            h = h * 0.6
    return y
