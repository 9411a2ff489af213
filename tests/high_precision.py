"""Derivatives from values alone, by complex steps and in high precision, and the check of a node against them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np

from nbgrad.graph.differentiate import jvp, vjp
from nbgrad.graph.ir import Node, broadcast, constant, placeholder
from nbgrad.runtime.evaluate import compute

from .agreement import quiet

Array = np.ndarray
Function = Callable[..., Any]
Range = tuple[float, float]

FLOAT = np.dtype(float)
FLOATS = ["float64", "float32", "float16"]
EPSILON = {"float64": 1e-15, "float32": 2.5e-7, "float16": 1e-3}


def draw(rng: np.random.Generator, domain: Range, shape: Sequence[int], dtype: str = "float64") -> Array:
    """Random numbers in a domain, none of them within 1e-3 of an integer unless the domain is one of integers."""
    if isinstance(domain[0], int):
        return rng.integers(domain[0], domain[1] + 1, shape).astype(dtype)
    values = rng.uniform(*domain, size=shape)
    return np.where(np.abs(values - np.round(values)) < 1e-3, values + 2e-3, values).astype(dtype)


def nodes_of(arrays: Sequence[Array]) -> list[Node]:
    """Placeholders that hold arrays."""
    return [placeholder(a.shape, a.dtype, a) for a in arrays]


def close(got: Array, want: Any, tolerance: float, where: str) -> None:
    """Relative agreement, of NaN and infinities too."""
    want = np.asarray(want)
    assert got.shape == want.shape, f"{where}: shape {got.shape}, not {want.shape}"
    if want.dtype == object:
        want = want.astype(float)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * 1e-1, err_msg=where)


def derivative(function: Function, arrays: Sequence[Array], directions: Sequence[Array | None], step: str) -> Array:
    """The derivative of a function along a direction, from its values only."""
    with quiet():
        if step == "complex":
            h = 1e-30
            moved = [a if d is None else a + 1j * h * d for a, d in zip(arrays, directions, strict=True)]
            return np.asarray(function(*moved)).imag / h
        if step == "real":
            h = np.longdouble(2.0**-12)

            def at(k: int) -> Any:
                shifted = [
                    a if d is None else a.astype(np.longdouble) + k * h * d
                    for a, d in zip(arrays, directions, strict=True)
                ]
                return np.asarray(function(*shifted)).astype(np.longdouble)

            return np.asarray((at(-2) - 8 * at(-1) + 8 * at(1) - at(2)) / (12 * h)).astype(float)
        with mpmath.workdps(40):
            h = mpmath.mpf(10) ** -10
            up, down = (
                [a if d is None else a + sign * h * d for a, d in zip(arrays, directions, strict=True)]
                for sign in (1, -1)
            )
            return np.asarray((function(*up) - function(*down)) / (2 * h)).astype(float)


def directions_for(arrays: Sequence[Array], fixed: Sequence[int], seed: int) -> list[Array | None]:
    """Random directions for the operands that are differentiated."""
    rng = np.random.default_rng(seed)
    return [
        None if position in fixed or a.dtype.kind != "f" else np.asarray(rng.normal(size=a.shape))
        for position, a in enumerate(arrays)
    ]


def check_derivatives(
    where: str,
    build: Function,
    slope: Function,
    arrays: Sequence[Array],
    step: str = "complex",
    fixed: Sequence[int] = (),
    evaluate: Function = compute,
    tolerance: float = 1e-10,
) -> None:
    """Both modes against the reference, against each other, and the second derivative in two ways."""
    inputs = nodes_of(arrays)
    output = build(*inputs)
    u, v = directions_for(arrays, fixed, 1), directions_for(arrays, fixed, 2)
    moving = [k for k, d in enumerate(u) if d is not None]
    wrt = [inputs[k] for k in moving]
    along_u, along_v = ([constant(d[k]) for k in moving] for d in (u, v))
    weight = constant(np.asarray(np.random.default_rng(3).normal(size=output.shape)))
    (tangent,) = jvp([output], wrt, along_u)
    cotangents = vjp([output], [weight], wrt)
    want = derivative(slope, arrays, u, step)
    if tangent is None:
        assert all(c is None for c in cotangents), f"{where}: a derivative in reverse mode only"
        close(np.zeros(output.shape), want, 1e-6, f"{where}: no derivative, but")
        return
    firsts = [c for c in cotangents if c is not None]
    # Second order: forward over forward, forward over reverse, reverse over reverse.
    (forward_forward,) = jvp([tangent], wrt, along_v)
    over = jvp(firsts, wrt, along_v)
    directional = [c * d for c, d in zip(cotangents, along_u, strict=True) if c is not None]
    back = vjp(directional, [broadcast(constant(np.array(1.0)), d.shape) for d in directional], wrt)
    flat = [tangent, *firsts, *[n for n in (forward_forward, *over, *back) if n is not None]]
    values = dict(zip(flat, evaluate(flat), strict=True))
    close(values[tangent], want, tolerance, f"{where}: forward mode")

    def inner(parts: Sequence[Node | None], vectors: Sequence[Node]) -> float:
        found = [(n, d.value) for n, d in zip(parts, vectors, strict=True) if n is not None]
        return float(sum(np.sum(values[n] * d) for n, d in found if d is not None))

    assert weight.value is not None
    w = weight.value
    left, right = float(np.sum(w * values[tangent])), inner(cotangents, along_u)
    scale = 1 + float(np.sum(np.abs(w * values[tangent])))
    assert abs(left - right) <= tolerance * scale, f"{where}: <w, J u> = {left}, but <J' w, u> = {right}"
    for c, k in [(c, k) for c, k in zip(cotangents, moving, strict=True) if c is not None]:
        assert (values[c].shape, values[c].dtype) == (arrays[k].shape, arrays[k].dtype), f"{where}: cotangent {k}"
    second = inner(list(over), [d for c, d in zip(cotangents, along_u, strict=True) if c is not None])
    again = inner(back, along_v)
    size = 1 + abs(second) + sum(float(np.abs(values[n]).sum()) for n in (*over, *back) if n is not None)
    assert abs(second - again) <= 1e-9 * size, f"{where}: second derivatives {second} and {again} in two orders"
    h = 1e-4

    def first_at(k: int) -> Array:
        moved = [a if d is None else a + k * h * d for a, d in zip(arrays, v, strict=True)]
        return derivative(slope, moved, u, step)

    difference = (first_at(-2) - 8 * first_at(-1) + 8 * first_at(1) - first_at(2)) / (12 * h)
    got = values[forward_forward] if forward_forward is not None else np.zeros(output.shape)
    bound = 1 + float(np.abs(difference).max(initial=0))
    np.testing.assert_allclose(got, difference, rtol=0, atol=2e-7 * bound, err_msg=f"{where}: second derivative")
    summed = float(np.sum(w * difference))
    assert abs(second - summed) <= 1e-6 * (1 + np.abs(w * difference).sum()), f"{where}: second order, reverse mode"
