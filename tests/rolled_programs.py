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


CARRIED: dict[str, int] = {}
"""The elements that all loops of a program carry, where that matters."""


def program(*loops: tuple[int, int], carried: int | None = None) -> Callable[[Program], Program]:
    """Enter a function into the table."""

    def enter(function: Program) -> Program:
        PROGRAMS[function.__name__] = (function, list(loops))
        if carried is not None:
            CARRIED[function.__name__] = carried
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


@program((119, 40), carried=1)
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


# ----- Arrays that are filled -----


@program((118, 30), carried=2)
def filled_from_two_before(u: Any, p: Any) -> Any:
    """What is read was written before the loop in the first turns; nothing is known of the rest of the array."""
    x = np.sin(xp.arange(120) * p[2])
    for k in range(2, 120):
        x[k] = 0.5 * x[k - 1] - p[0] * np.sin(x[k - 2]) + x[k] * u[0]
    return x


@program((118, 30), carried=2)
def filled_from_a_window(u: Any, p: Any) -> Any:
    x = xp.zeros(120)
    x[:2] = u[:2]
    for k in range(2, 120):
        x[k] = np.sum(x[k - 2 : k] * p[:2]) + np.sin(u[2] * k)
    return x


@program((99, 30), carried=3)
def filled_by_rows(u: Any, p: Any) -> Any:
    x = xp.zeros((100, 3))
    x[0] = u
    for k in range(99):
        x[k + 1, :] = x[k] + 0.1 * np.sin(x[k]) * p
    return x


@program((60, 40), carried=6)
def filled_inside(u: Any, p: Any) -> Any:
    """A rod whose ends are given: they are read, and never written."""
    x = xp.zeros((61, 8))
    x[0, 1:-1] = np.concatenate([u, p])
    x[:, 0] = p[0]
    x[:, -1] = np.cos(xp.arange(61) * u[0])
    for k in range(60):
        x[k + 1, 1:-1] = x[k, 1:-1] + 0.1 * (x[k, 2:] - 2 * x[k, 1:-1] + x[k, :-2])
    return x


@program((60, 40), carried=3)
def filled_by_columns(u: Any, p: Any) -> Any:
    x = xp.zeros((3, 61)) + p[1]
    x[:, 0] = u
    for k in range(1, 61):
        x[:, k] = np.tanh(x[:, k - 1]) * p + 0.1 * x[:, k]
    return x


@program((100, 40), carried=3)
def filled_together(u: Any, p: Any) -> Any:
    """Several arrays; one is read in the turn that writes it, and one is a column of two."""
    x, y = xp.zeros(101), xp.zeros((101, 2))
    x[0], y[0, 0], y[0, 1] = u[0], u[1], u[2]
    for k in range(1, 101):
        x[k] = 0.9 * x[k - 1] + y[k - 1, 1] * p[0]
        y[k, 0] = np.sin(y[k - 1, 0]) - x[k]
        y[k, 1] = y[k, 0] * p[1]
    return np.concatenate([x, y[:, 0], y[:, 1]])


@program((100, 30), carried=1)
def filled_downwards_with_a_stride(u: Any, p: Any) -> Any:
    x = xp.zeros(201) + p[0]
    x[200] = u[0]
    for k in range(198, -1, -2):
        x[k] = np.sin(x[k + 2]) * p[1] + x[k + 1] * 0.5
    return x


@program((100, 30), carried=1)
def filled_in_two_steps(u: Any, p: Any) -> Any:
    """Each element is written twice."""
    x = xp.zeros(101)
    x[0] = u[0]
    for k in range(1, 101):
        x[k] = x[k - 1] * p[0]
        x[k] += np.sin(0.1 * k) * u[1]
    return x


@program((100, 30), carried=1)
def filled_and_written_ahead(u: Any, p: Any) -> Any:
    """A part of what a turn writes is written again by the next one."""
    x = xp.zeros(101)
    for k in range(100):
        x[k] = x[k] * p[0] + u[0]
        x[k + 1] = np.sin(x[k]) * u[1]
    return x


@program((80, 30), carried=1)
def filled_diagonally(u: Any, p: Any) -> Any:
    x = xp.zeros((81, 81))
    x[0, 0] = u[0]
    for k in range(1, 81):
        x[k, k] = np.cos(x[k - 1, k - 1]) * p[0]
    return np.sum(x, 0) * p[1]


@program((119, 60), carried=2)
def filled_with_complex_numbers(u: Any, p: Any) -> Any:
    z = xp.zeros(120, dtype=complex)
    z[0] = u[0] + 1j * u[1]
    for k in range(1, 120):
        z[k] = z[k - 1] * np.exp(0.1j * p[0]) + 0.1 * p[1]
    return z.real**2 + z.imag


@program((180, 60), carried=21)
def filled_by_loops_in_loops(u: Any, p: Any) -> Any:
    """Dynamic programming: each element is made of three neighbours, two of them a row ago."""
    x = xp.zeros((10, 21))
    x[0, :] = 0.1 * xp.arange(21) * u[0]
    x[:, 0] = 0.2 * xp.arange(10) * u[1]
    for i in range(1, 10):
        for j in range(1, 21):
            x[i, j] = np.logaddexp(x[i - 1, j] * p[0], np.logaddexp(x[i, j - 1], x[i - 1, j - 1] * p[1]))
    return x


@program((20, 32), (20, 45))
def sums_in_elements(u: Any, p: Any) -> Any:
    """A product of a matrix and a vector, element by element, and its norm."""
    x, square = xp.zeros(20), xp.zeros(1)
    for i in range(20):
        x[i] = u[0]
        for j in range(3):
            x[i] += SEEN[i, j] * p[j] * np.sin(u[j])
    for i in range(20):
        x[i] = x[i] * 2 + np.cos(x[i])
        x[i] = x[i] / (1 + np.exp(-x[i])) + np.sin(x[i])
        x[i] = x[i] * p[0]
        square[0] += x[i] ** 2
    return x / np.sqrt(square)


@program((120, 30), carried=20)
def filled_after_a_delay(u: Any, p: Any) -> Any:
    x = xp.zeros(140)
    x[:20] = np.sin(xp.arange(20) * u[0])
    for k in range(20, 140):
        x[k] = x[k - 1] + 0.1 * (p[0] * x[k - 20] - np.sin(x[k - 1]) * p[1])
    return x


@program((100, 30), carried=101)
def filled_and_read_far_back(u: Any, p: Any) -> Any:
    """What was written long ago at a distance that grows: the array is carried."""
    x = xp.zeros(101)
    x[0] = u[0]
    for k in range(1, 101):
        x[k] = x[k // 2] * p[0] + np.sin(0.1 * k)
    return x


@program((100, 30), carried=101)
def filled_and_read_as_a_whole(u: Any, p: Any) -> Any:
    x = xp.zeros(101)
    x[0] = u[0]
    for k in range(1, 101):
        x[k] = np.sum(x) * p[0] * 0.01 + np.sin(0.1 * k)
    return x


@program((100, 40))
def filled_and_kept(u: Any, p: Any) -> Any:
    """The array of each turn is in use afterwards."""
    x, kept = xp.zeros(101), []
    x[0] = u[0]
    for k in range(1, 101):
        x[k] = x[k - 1] * p[0] + np.sin(0.1 * k)
        kept.append(x.copy())
    return np.stack(kept)[::9]


@program((100, 40), carried=10)
def filled_in_a_ring(u: Any, p: Any) -> Any:
    x = xp.zeros(10) + u[0]
    for k in range(100):
        x[k % 10] = np.sin(x[(k + 1) % 10]) * p[0] + u[1]
    return x


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
