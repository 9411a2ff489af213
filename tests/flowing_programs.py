"""Programs whose branches and loops depend on values, as other people write them: plain Python and NumPy."""

from __future__ import annotations

import math

import numpy as np

TOLERANCE = 1e-13


def newton(a):
    """A condition that is no recorded value at first."""
    x, change = 1.0, np.inf
    while change > TOLERANCE * abs(x):
        new = 0.5 * (x + a / x)
        change = abs(new - x)
        x = new
    return x


def newton_with_break(a):
    x = a
    for _ in range(100):
        step = (x * x - a) / (2 * x)
        x = x - step
        if abs(step) < TOLERANCE * abs(a):
            break
    return x


def newton_with_return(a):
    x = 1.0
    for k in range(50):
        f = x * x - a
        if abs(f) < 1e-12 * abs(a):
            return x + 0 * k
        x = x - f / (2 * x)
    return x


def newton_with_else(a):
    x = a
    for _ in range(5):
        if abs(x * x - a) <= 1e-12 * abs(a):
            break
        x = 0.5 * (x + a / x)
    else:
        return -x
    return x


def bisection(a):
    low, high = 0.0, 1.0 + a
    while high - low > 1e-10:
        middle = 0.5 * (low + high)
        if middle * middle > a:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high) * np.sqrt(a)


def series(x):
    """The exponential function, by a loop without a condition."""
    term, total, n = 1.0, 1.0, 1
    while True:
        term = term * x / n
        if abs(term) < 1e-17 * abs(total):
            break
        total = total + term
        n += 1
    return total


def falling(speed):
    """A particle until it hits the ground."""
    x, y, vx, vy = 0.0, 0.0, speed * math.cos(0.7), speed * math.sin(0.7)
    dt = 0.01
    while y >= 0:
        vy -= (9.81 + 0.05 * vy) * dt
        vx -= 0.05 * vx * dt
        x += vx * dt
        y += vy * dt
    return x


def adaptive(stiffness):
    """Bogacki and Shampine's method with steps that are accepted or refused."""

    def slope(y):
        return np.array([y[1], -stiffness * y[0] - 0.1 * y[1] ** 3])

    t, y, h = 0.0, np.array([1.0, 0.0]), 0.1
    while t < 2.0:
        if t + h > 2.0:
            h = 2.0 - t
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + 3 * h / 4 * k2)
        new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = slope(new)
        error = np.max(np.abs(h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8)))
        if error < 1e-5:
            t = t + h
            y = new
        h = h * min(5.0, max(0.2, 0.9 * (1e-5 / error) ** (1 / 3)))
    return y[0]


def roots(a):
    """A loop by a value in a Python loop."""
    total = 0.0
    for k in range(1, 6):
        x = 1.0
        while abs(x * x - k * a) > 1e-11 * abs(a):
            x = 0.5 * (x + k * a / x)
        total += x
    return total


def roots_up_to(a):
    """A loop by a value in another one."""
    total, k = 0.0, 0
    while k < a:
        k += 1
        x = 1.0
        while abs(x * x - k * a) > 1e-11 * a:
            x = 0.5 * (x + k * a / x)
        total = total + x
    return total


def pieces(x):
    if x < 0:
        return -x
    elif x < 1:
        y = x * x
    else:
        y = 2 * x
        if x > 5:
            y = y + np.sin(x)
    return y - 1


def logic(x):
    if (0 < x < 1 and not x > 0.7) or x > 3:
        return x * 2
    return x * x if x < 2 else x * 4


def arrays(x):
    v = np.array([x, 2 * x, x * x])
    if np.sum(v) > 3:
        v[0] = x**3
        v = v * 2
    else:
        v[1:] += np.sin(x)
    return v @ np.arange(1.0, 4.0)


def written(x):
    """Elements of an array that has two names."""
    out = np.zeros(3)
    same = out
    k = 0
    while k < 3 and x > 0:
        out[k] = x * k
        k += 1
        if x > 2:
            out[0] = x
    return same[0] + 2 * same[1] + same[2]


def skipping(x):
    total, k = 0.0, 0
    while total < 3.0 and k < 40:
        k += 1
        if k % 3 == 0:
            continue
        total = total + x / k
    return total * k


def set_in_the_loop(x):
    n = 0
    while n < 3 + 0 * x:
        last = np.sin(n * x)
        n += 1
    return last


def rows_set_in_the_loop(x):
    a = np.ones((4, 2)) * np.array([0.3, 0.7]) * x
    k = 0
    while np.sum(a) < 10.0 * x and k < 4:
        row = a[k]
        row *= 1.0 + row[0] + k
        k += 1
    return np.sum(a * a)


class Solver:
    """A method, with an attribute."""

    def __init__(self, tolerance):
        self.tolerance = tolerance

    def root(self, a):
        x = a
        while abs(x * x - a) > self.tolerance * abs(a):
            x = 0.5 * (x + a / x)
        return x


def by_closure(a):
    def go_on(x):
        return abs(x * x - a) > 1e-12 * abs(a)

    def step(x):
        if abs(x) > 2:
            return 0.5 * (x + a / x)
        return (x + a / x) / 2

    x = 1.0
    while go_on(x):
        x = step(x)
    return x


def collatz(n):
    k = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        k += 1
    return k


def powers(n, x):
    """As many turns as an argument says."""
    y = 1.0
    for i in range(n):
        if i % 3 == 1:
            continue
        y = y * x + i
    return y


def first_above(values, level):
    for v in values:
        if v > level:
            return v * 2.0
    return 0.0 * level


def by_generator(x):
    def turns():
        value = x
        while value > 1.0:
            yield value
            value = value / 2

    return sum(turns())


def collected(x):
    found = []
    while x > 1.0:
        found.append(x)
        x = x / 2
    return sum(found)


def different(x):
    if x > 0:
        y = np.array([x, x])
    else:
        y = np.array([x, x, x])
    return np.sum(y)


def one_side_only(x):
    if x > 0:
        y = x * x
    return y


class Stepper:
    """An object that methods change, as SciPy's solvers are."""

    def __init__(self, y):
        self.t, self.y = 0.0, y

    def step(self):
        self.t = self.t + 0.3 * self.y / self.y
        self.y = self.y * 0.8
        return self.t < 1.0


def by_object(x):
    solver = Stepper(x)
    going = True
    while going:
        going = solver.step()
    return solver.y


def remembered(x):
    seen = {}

    def look(key):
        seen[key] = x * key
        return seen[key]

    return look(1.0) if x > 0 else look(2.0)


def in_a_list(x):
    parts = [0.0, 0.0]
    if x > 0:
        parts[0] = x * x
    else:
        parts[1] = x
    return parts[0] + 3 * parts[1]


def left_at_once(x):
    """The first turn may leave the loop."""
    total = 0.0
    for v in np.array([x, 2.0, 3.0]):
        if v > 1:
            break
        total += v
    else:
        total += 100.0
    k = 0
    while k < 3:
        if x < 0.5:
            break
        total += x
        k += 1
    else:
        total += 1000.0
    return total


def counted_in_the_condition(x):
    k, total = 0, 0.0
    while (k := k + 1) < 5:
        if x > 1:
            total += x
            continue
        total -= x * k
        if total < -1:
            break
    return total * k


def set_in_a_comparison(x):
    low, high = 1.0, 4.0
    if (y := 2 * x) < low < high:
        return y
    return 3 * y + x


def left_through_finally(x):
    total = 0.0
    for k in range(4):
        try:
            total += x
            if total > 2:
                break
            if k == 1:
                continue
        finally:
            total += 1.0
    return total


def tried_again(x):
    for k in range(4):
        try:
            return attempt(k, x)
        except ValueError:
            x = x + 1
    return x


def limited(x):
    """Python's extremes, an ordered list, and questions about all numbers."""
    values = [max(0.0, min(1.0, x * k - 0.4)) for k in (0.3, 0.5, 0.7)] + [x * x]
    ordered = sorted(values, key=lambda v: (v - 0.6) ** 2, reverse=True)
    total = max(values) + 2 * min(values, key=lambda v: abs(v - 1.2))
    for k, v in enumerate(ordered):
        total += k * v
    if any(v > 4.0 for v in values):
        return total * x
    return total + 1.0 if all(v < 1.0 for v in values) else total + x


def defined_in_the_loop(x):
    """Each turn defines the function that it calls, which may call itself."""
    y, turns = x, 0.0
    while y > 0.3:

        def slope(v, times=2):
            return -v * x if times == 0 else slope(v, times - 1) * 0.9

        following = y + 0.2 / (1 + x) * slope(y)
        if following < 0.35:
            turns += 3.0
            break
        y, turns = following, turns + 1.0
    return y + turns * x


def halved_until_small(x):
    """A loop that ends when all numbers of a list are small."""
    a, b, turns = x, 2.0 * x, 0.0
    while not all(v < 0.5 for v in (a, b)):
        a, b, turns = a / 2, max(b / 3, 0.1), turns + 1.0
    return a * b + turns * x


def attempt(k, x):
    if k < 2:
        raise ValueError
    return x * k


def rows_until(x):
    """Elements of a matrix, each row to its first large one."""
    table = x * np.arange(1.0, 7.0).reshape(2, 3) ** 2
    total = 0.0
    for i in range(2):
        for j in range(3):
            if table[i, j] > 5:
                break
            total += table[i, j] * (i + 1)
        else:
            total += 10 * table[i, 0]
    return total


def read_late(x, a, b):
    """Many turns, of which later loops read values that nothing seemed to use any more."""
    s = t = 0.0
    u = np.zeros(5)
    while True:
        if not ((w := max(a, x[0]) * (s if b >= t else t)) > min(1.5 * a, 0.3 * b) and abs(w) < 30.0):
            break
        a -= 0.7
        s -= 0.3
        if s < -9:
            break
    if not (t > a):
        return 2.0
    for _ in u:
        a = min((x[0] if t >= u[-4] else x[-3]), u[3] - 2.0)
    for one in x:
        for k in range(1, 5):
            t = np.tanh(u[-1 - k % 5])
            s += t * a
        else:
            t = np.tanh(one) if (b < u[-1] and u[1] < a) else u[3]
            s += t * a
    else:
        s += np.sin(b)
    try:
        a = x[0]
    except ValueError:
        a += -0.7
    t += t if t > 0 else (s - b)
    u[-4] += min((a if x[1] <= x[-3] else u[-2]), max(a, a))
    k = 0
    while k < 3 and (x[2] < 1.5 or t > 2.0):
        k += 1
        u[(k + 2) % 5] += t + u.sum()
        s += a - (u[k % 5] * s)
        u[u > np.sin(x.sum())] = x[-2]
    return s + t * 0.5 + (u * np.arange(5.0)).sum() + x.sum()
