"""Three of the kernels as users of other libraries write them: spline, lennard-jones, recursion.

In: a library's name and a program's. Out: two functions of no arguments, the value and the gradient, with arrays of
NumPy as results of the second. Called by kernels_beside.py. JAX and PyTorch compute on whole arrays, Warp in kernels.
"""

import numpy as np


def spline(xp, east, north, force_east, force_north, softening, forces):
    """The values at all points: a dense matrix times the forces."""
    x, y = east[:, None] - force_east, north[:, None] - force_north
    d = xp.sqrt(x * x + y * y) + softening
    return (d * d * (xp.log(d) - 1.0)) @ forces


def lennard_jones(xp, points, first, second):
    """The energy, from the indices of all pairs."""
    moved = points[first] - points[second]
    s = (1.0 / xp.sum(moved * moved, 1)) ** 3
    return xp.sum(4.0 * (s * s - s))


def layer(xp, state, given, number, omega):
    """A step of the recursion for all frequencies; the side of a branch that is not taken gets a harmless argument."""
    (one, other), (thickness, speed, density) = state, given
    rigidity = density * speed * speed
    part = (omega / speed) ** 2 - number * number
    wave = part > 0.0
    w = xp.sqrt(xp.where(wave, part, -part))
    decay = xp.exp(xp.where(wave, 0.0 * part, -2.0 * w * thickness))
    angle = xp.where(wave, w * thickness, 0.0 * w)
    c = xp.where(wave, xp.cos(angle), 0.5 * (1.0 + decay))
    s = xp.where(wave, xp.sin(angle), 0.5 * (1.0 - decay)) / w
    t = xp.where(wave, -xp.sin(angle), 0.5 * (1.0 - decay)) * w
    one, other = c * one - s * other / rigidity, c * other - t * rigidity * one
    largest = xp.maximum(xp.abs(one), xp.abs(other) / rigidity)
    return one / largest, other / largest


def start(xp, number, speed, density):
    """The state in the half-space below."""
    return xp.ones_like(number), -density[-1] * speed[-1] ** 2 * number


def in_jax(name, row, weights):
    """By `jax.jit` of `jax.grad`, in float64."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    if name == "spline":

        def value(*given):
            return jnp.sum(weights * spline(jnp, *given))
    elif name == "lennard-jones":
        first, second = np.triu_indices(len(row.arguments[0]), 1)

        def value(points):
            return lennard_jones(jnp, points, first, second)
    else:

        def value(number, omega, thickness, speed, density):
            def step(state, given):
                return layer(jnp, state, given, number, omega), None

            layers = tuple(x[:-1] for x in (thickness, speed, density))
            last, _ = jax.lax.scan(step, start(jnp, number, speed, density), layers, reverse=True)
            return jnp.sum(weights * last[0])

    given = [jnp.asarray(x) for x in row.arguments[: value.__code__.co_argcount or -1]]
    forward, gradient = jax.jit(value), jax.jit(jax.grad(value, row.wrt))
    return (
        lambda: jax.block_until_ready(forward(*given)),
        lambda: [np.asarray(x) for x in jax.block_until_ready(gradient(*given))],
    )


def in_torch(name, row, weights):
    """Eager, in float64."""
    import torch

    torch.set_num_threads(1)
    wanted = [k in row.wrt for k in range(len(row.arguments))]
    tensors = [
        torch.tensor(x, requires_grad=w) if isinstance(x, np.ndarray) else x
        for x, w in zip(row.arguments, wanted, strict=True)
    ]
    weights = torch.as_tensor(weights)
    if name == "lennard-jones":
        first, second = (torch.as_tensor(x) for x in np.triu_indices(len(row.arguments[0]), 1))

    def value():
        if name == "spline":
            return torch.sum(weights * spline(torch, *tensors[:-1]))
        if name == "lennard-jones":
            return lennard_jones(torch, tensors[0], first, second)
        number, omega, *layers, _ = tensors
        state = start(torch, number, *layers[1:])
        for m in range(len(layers[0]) - 2, -1, -1):
            state = layer(torch, state, [x[m] for x in layers], number, omega)
        return torch.sum(weights * state[0])

    def forward():
        with torch.no_grad():
            return value()

    def gradient():
        return [x.numpy() for x in torch.autograd.grad(value(), [tensors[k] for k in row.wrt])]

    return forward, gradient


def in_warp(name, row, weights):
    """By `warp.Tape` on the CPU, in float64. It has no recursion: Warp does not run dynamic loops forward before it
    runs them backwards, so numbers that they carry are not known there."""
    import warp as wp

    wp.config.quiet = True
    wp.init()
    if name == "spline":

        @wp.kernel
        def kernel(
            east: wp.array(dtype=wp.float64),
            north: wp.array(dtype=wp.float64),
            force_east: wp.array(dtype=wp.float64),
            force_north: wp.array(dtype=wp.float64),
            softening: wp.float64,
            forces: wp.array(dtype=wp.float64),
            weights: wp.array(dtype=wp.float64),
            total: wp.array(dtype=wp.float64),
        ):
            i = wp.tid()
            for j in range(forces.shape[0]):
                x, y = east[i] - force_east[j], north[i] - force_north[j]
                d = wp.sqrt(x * x + y * y) + softening
                wp.atomic_add(total, 0, weights[i] * forces[j] * d * d * (wp.log(d) - wp.float64(1.0)))

        given = [*row.arguments[:-1], weights]
    else:

        @wp.kernel
        def kernel(points: wp.array2d(dtype=wp.float64), total: wp.array(dtype=wp.float64)):
            i = wp.tid()
            for j in range(i + 1, points.shape[0]):
                x, y, z = points[i, 0] - points[j, 0], points[i, 1] - points[j, 1], points[i, 2] - points[j, 2]
                q = wp.float64(1.0) / (x * x + y * y + z * z)
                s = q * q * q
                wp.atomic_add(total, 0, wp.float64(4.0) * (s * s - s))

        given = list(row.arguments)
    arrays = [
        wp.array(x, dtype=wp.float64, device="cpu", requires_grad=k in row.wrt) if isinstance(x, np.ndarray) else x
        for k, x in enumerate(given)
    ]
    total = wp.zeros(1, dtype=wp.float64, device="cpu", requires_grad=True)

    def forward():
        total.zero_()
        wp.launch(kernel, len(row.arguments[0]), inputs=[*arrays, total], device="cpu")
        return total

    def gradient():
        with wp.Tape() as tape:
            forward()
        tape.backward(total)
        found = [arrays[k].grad.numpy().copy() for k in row.wrt]
        tape.zero()
        return found

    return forward, gradient


PEERS = {"jax": in_jax, "torch": in_torch, "warp": in_warp}
PROGRAMS = {"jax": ("spline", "lennard-jones", "recursion"), "torch": ("spline", "lennard-jones", "recursion")}
PROGRAMS["warp"] = ("spline", "lennard-jones")
