"""Programs that are loops, each as scientists write it for one library.

In: a library and a number of turns. Out: a function of two arrays, which gives the value and the gradients by both.
Called by loop_worker.py. For nbgrad and autograd the loop is a plain Python one; nbgrad-scan and JAX say it by `scan`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

RNG = np.random.default_rng(0)
SEEN = RNG.normal(size=(20_000, 3))
WEIGHTS = RNG.normal(size=(28, 56)) * 0.3
U, P = np.array([1.0, 1.0, 1.0]), np.array([10.0, 28.0, 8 / 3])
FIELD, SPEED = np.exp(-((np.arange(100) - 50.0) ** 2) / 40), np.full((100, 100), 0.2)
POINT, START = np.array([0.3, 0.8, -0.5]), np.array([1.0, 0.5, 0.2])
TEXT = RNG.normal(size=(20_000, 14))


def rk4(np, turn, p):
    """A step of the Lorenz equations: a function of the state."""

    def slope(u):
        x, y, z = u[0], u[1], u[2]
        return np.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])

    u, h = turn, 0.01
    k1 = slope(u)
    k2 = slope(u + h / 2 * k1)
    k3 = slope(u + h / 2 * k2)
    k4 = slope(u + h * k3)
    return u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def kalman(np, turn, p, seen):
    """A turn of the filter's likelihood: mean, covariance and the sum so far."""
    mean, cov, total = turn
    a, one = np.eye(3) * 0.9, np.eye(3)
    mean, cov = a @ mean, a @ cov @ a.T + 0.1 * p[0] * one
    s = cov + 0.5 * one
    gain = np.linalg.solve(s, cov).T
    error = seen - mean
    total = total + error @ np.linalg.solve(s, error) + np.linalg.slogdet(s)[1]
    return mean + gain @ error, cov - gain @ cov, total


def wave(np, turn, c):
    """A step of the wave equation on a square, by five points."""
    a, b = turn
    lap = a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2] - 4 * a[1:-1, 1:-1]
    new = 2 * a[1:-1, 1:-1] - b[1:-1, 1:-1] + c[1:-1, 1:-1] ** 2 * lap
    return np.pad(new, 1), a


def lstm(np, turn, w, seen):
    """A character through two gates' worth of a long short-term memory of 14 units."""
    h, c, total = turn
    gates = np.concatenate([seen, h]) @ w
    i, f, o = (1 / (1 + np.exp(-gates[14 * k : 14 * k + 14])) for k in range(3))
    c = f * c + i * np.tanh(gates[42:])
    h = o * np.tanh(c)
    return h, c, total + np.sum((h - seen) ** 2)


LATTICE = (
    [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)],
    np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4),
)


def flow(np, turn, omega):
    """A step of a lattice Boltzmann method in two dimensions with nine velocities: collisions, then moves."""
    moves, weights = LATTICE
    density = np.sum(turn, 0)
    ux = (turn[1] + turn[5] + turn[8] - turn[3] - turn[6] - turn[7]) / density
    uy = (turn[2] + turn[5] + turn[6] - turn[4] - turn[7] - turn[8]) / density
    square = 1.5 * (ux * ux + uy * uy)
    after = []
    for k, (x, y) in enumerate(moves):
        along = 3 * (x * ux + y * uy)
        still = weights[k] * density * (1 + along + along * along / 2 - square)
        after.append(np.roll(turn[k] + omega * (still - turn[k]), (y, x), (0, 1)))
    return np.stack(after)


def charged(np, gradient, dt):
    """GradBench's particle between two charges: condition, step, and what is measured at the end."""

    def potential(x, w):
        a, b = np.stack([10.0 + 0.0 * w, 10.0 - w]), np.array([10.0, 0.0])
        return 1 / np.sqrt(np.sum((x - a) ** 2)) + 1 / np.sqrt(np.sum((x - b) ** 2))

    field = gradient(potential)

    def step(x, speed, w):
        return x + dt * speed, speed - dt * field(x, w)

    def end(x, speed):
        at = x - x[1] / speed[1] * speed
        return at[0] ** 2

    return step, end


def fall(step, end, x, speed, w):
    """The particle by Python's `while`."""
    while x[1] + DT * speed[1] > 0:
        x, speed = step(x, speed, w)
    return end(x, speed)


DT = 0.1
FIRST = np.array([0.0, 8.0]), np.array([0.75, 0.0])


def particle(library, mode):
    """Value and derivative by the place of a charge; `mode` says how the field and the whole are differentiated."""
    inner, outer = mode
    if library == "jax":
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        step, end = charged(jnp, jax.grad if inner == "r" else jax.jacfwd, DT)

        def whole(x, speed, w):
            def go_on(state):
                return state[0][1] + DT * state[1][1] > 0

            if outer == "f":
                last = jax.lax.while_loop(go_on, lambda s: step(*s, w), (x, speed))
            else:  # reverse mode needs a number of turns

                def turn(state, _):
                    return jax.lax.cond(go_on(state), lambda s: step(*s, w), lambda s: s, state), None

                last = jax.lax.scan(turn, (x, speed), None, length=1024)[0]
            return end(*last)

        derived = both_ways(jax, outer, whole)
        call = jax.jit(derived)
        return lambda x, speed: jax.block_until_ready(call(x, speed, jnp.array(0.0)))
    import nbgrad as nb
    import nbgrad.numpy as xp

    step, end = charged(xp, nb.grad if inner == "r" else nb.jacfwd, DT)

    def said(x, speed, w):
        last = nb.while_loop(lambda s: s[0][1] + DT * s[1][1] > 0, lambda s: step(*s, w), (x, speed))
        return end(*last)

    falls = nb.differentiable_source(fall) if library == "nbgrad-source" else fall
    whole = said if library == "nbgrad-scan" else partial(falls, step, end)
    call = nb.jit(both_ways(nb, outer, whole))
    return lambda x, speed: call(x, speed, 0.0)


def both_ways(library, outer, whole):
    """Value and derivative by the last argument, in one mode."""

    def reverse(x, speed, w):
        value, slope = library.value_and_grad(whole, 2)(x, speed, w)
        return value, (slope,)

    def forward(x, speed, w):
        value, slope = library.jvp(lambda w: whole(x, speed, w), (w,), (1.0,))
        return value, (slope,)

    return reverse if outer == "r" else forward


def over_turns(np, loop, name, turns):
    """The program of a name: `loop(step, state, data)` goes through all turns and gives the last state."""
    if name == "warm":
        return lambda u, p: np.sum(u * u) + np.sum(p)
    if name == "rk4":
        return lambda u, p: np.sum(loop(lambda s, _: rk4(np, s, p), u, None, turns) ** 2)
    if name == "kalman":
        return lambda m, p: loop(lambda s, d: kalman(np, s, p, d), (m, np.eye(3), 0.0 * m[0]), SEEN[:turns], turns)[2]
    if name == "wave":
        return lambda f, c: np.sum(
            loop(lambda s, _: wave(np, s, c), (f * f[:, None], 0.9 * f * f[:, None]), None, turns)[0] ** 2
        )
    if name == "flow":
        return lambda f, p: np.sum(loop(lambda s, _: flow(np, s, p[0]), f, None, turns)[1] ** 2)
    return lambda h, w: loop(lambda s, d: lstm(np, s, w, d), (h, 0.5 * h, 0.0 * h[0]), TEXT[:turns], turns)[2]


INPUTS = {"rk4": (U, P), "kalman": (POINT, START), "wave": (FIELD, SPEED), "lstm": (np.zeros(14) + 0.1, WEIGHTS)}
INPUTS["flow"] = LATTICE[1][:, None, None] * (1 + 0.1 * RNG.random((9, 40, 100))), np.array([1.2])
INPUTS |= dict.fromkeys(["particle-ff", "particle-fr", "particle-rf", "particle-rr"], FIRST)


def python_loop(step, state, data, turns):
    """The loop in Python."""
    for k in range(turns):
        state = step(state, None if data is None else data[k])
    return state


def said(scan, step, state, data, turns):
    """The loop by a `scan`."""
    return scan(lambda s, d: (step(s, d), None), state, data, length=turns)[0]


def prepared(library, name, turns):
    """The function to call, for a library."""
    if name.startswith("particle"):
        return particle(library, name[-2:])
    if library in ("nbgrad", "nbgrad-source", "nbgrad-scan"):
        import nbgrad as nb
        import nbgrad.numpy as xp

        loop = partial(said, nb.scan) if library == "nbgrad-scan" else python_loop
        return nb.jit(nb.value_and_grad(over_turns(xp, loop, name, turns), (0, 1)))
    if library == "jax":
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        call = jax.jit(jax.value_and_grad(over_turns(jnp, partial(said, jax.lax.scan), name, turns), (0, 1)))
        return lambda *args: jax.block_until_ready(call(*args))
    if library == "autograd":
        import autograd
        import autograd.numpy as anp

        both = autograd.value_and_grad(lambda args: over_turns(anp, python_loop, name, turns)(*args))
        return lambda *args: both(args)
    if (library, name) == ("by-hand", "rk4"):
        from loop_by_hand import rk4_gradient

        return lambda u, p: rk4_gradient(u, p, turns)
    message = f"{library} has no program {name}"
    raise ValueError(message)
