"""The functions that are measured, written once over a NumPy-like namespace.

In: `xp`, which is numpy for nbgrad and jax.numpy for JAX. Out: plain functions, and their inputs as ndarrays. Used by
the asv classes and by ratios.py, so that every library does the same work on the same numbers.
"""

import numpy as np


def rosenbrock(xp):
    """Rosenbrock's function of any length."""
    return lambda x: xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def fused(xp):
    """Transcendental functions of two arrays, summed."""
    return lambda x, y: xp.sum(xp.log(xp.exp(x * y) + xp.sin(x) ** 2 + 1.0))


def twelve(xp, variant):
    """Twelve elementwise operations and a sum; each variant is another function, so that nothing is cached."""
    steps = [xp.sin, xp.exp, xp.tanh, lambda v: v * v, xp.sqrt, lambda v: 1.0 / (1.0 + v * v), xp.log1p, xp.cos]

    def function(x, y):
        z = x
        for position in range(6):
            z = steps[(position * (variant + 1) + variant) % 8](z * y + (position + variant))
        return xp.sum(z)

    return function


def chain(xp, length):
    """A chain of `length` operations on an array."""

    def function(x, y):
        for _ in range(length // 4):
            x = xp.sin(x) * y + 0.1 * x
        return xp.sum(x)

    return function


def pair(n):
    """Two arrays of n numbers in (0, 1)."""
    rng = np.random.default_rng(0)
    return rng.random(n), rng.random(n)
