"""What the tests of array functions share: does a NumPy function give the same for Tensors as for arrays, and is its
derivative right?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from nbgrad.graph.differentiate import jvp, vjp
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, constant, placeholder
from nbgrad.graph.trace import recording
from nbgrad.record.tensor import Tensor

Function = Callable[..., Any]


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings about NaN and empty slices from NumPy, which is only the reference here."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def lift(value: Any) -> Any:
    """Arrays become Tensors, also inside of lists."""
    if isinstance(value, np.ndarray):
        return Tensor._of(constant(value.copy()))
    if isinstance(value, list):
        return [lift(v) for v in value]
    return tuple(lift(v) for v in value) if isinstance(value, tuple) else value


def lower(value: Any) -> Any:
    """Tensors become arrays."""
    if isinstance(value, Tensor):
        return value.asnumpy()
    return [lower(v) for v in value] if isinstance(value, list | tuple) else value


def outcome(function: Function, *args: Any, **kwargs: Any) -> Any:
    """What a call returns or raises."""
    try:
        return function(*args, **kwargs)
    except (ValueError, TypeError, IndexError) as error:
        return error


def _compare(got: Any, want: Any, tolerance: float, where: str) -> None:
    if isinstance(want, Exception) or isinstance(got, Exception):
        both = isinstance(want, Exception) and isinstance(got, Exception)
        assert both, f"{where}: NumPy gives {want!r}, a Tensor {got!r}"
    elif isinstance(want, list | tuple):
        assert len(got) == len(want), f"{where}: {len(want)} results, but {len(got)} for a Tensor"
        for one, other in zip(got, want, strict=True):
            _compare(one, other, tolerance, where)
    elif type(want) in (int, float, bool):
        assert got == want, where
    else:
        want = np.asarray(want)
        assert (got.dtype, got.shape) == (want.dtype, want.shape), where
        try:
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=where)
        except AssertionError:
            # A complex number with an infinite part would have to have the other part bit for bit.
            if want.dtype.kind != "c" or not np.isinf(want).any():
                raise
            for part in (np.real, np.imag):
                np.testing.assert_allclose(part(got), part(want), rtol=tolerance, atol=tolerance, err_msg=where)


def agree(function: Function, *args: Any, tolerance: float | None = None, **kwargs: Any) -> None:
    """Assert that a NumPy function gives values, dtypes and shapes for Tensors as for arrays, or that both raise."""
    shown = [f"{a.dtype}{a.shape}" if isinstance(a, np.ndarray) else repr(a)[:80] for a in args]
    where = f"{function.__name__}({', '.join(shown)}, {kwargs})"
    with quiet():
        want = outcome(function, *args, **kwargs)
        lifted = [lift(a) for a in args], {name: lift(v) for name, v in kwargs.items()}
        got = outcome(lambda: lower(function(*lifted[0], **lifted[1])))
    if tolerance is None:
        dtypes = [a.dtype for a in args if isinstance(a, np.ndarray)]
        tolerance = 1e-2 if np.float16 in dtypes else 2e-5 if np.float32 in dtypes else 1e-11
    _compare(got, want, tolerance, where)


def _outputs(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


def record(function: Function, arrays: tuple[np.ndarray, ...]) -> tuple[list[Node], list[Node]]:
    """The graph of a function: the nodes of its arguments and of its floating point results."""
    inputs = [placeholder(a.shape, a.dtype, a) for a in arrays]
    with recording(inputs):
        results = _outputs(function(*[Tensor._of(node) for node in inputs]))
    return inputs, [r._node for r in results if r.dtype.kind == "f"]


def slope(function: Callable[[float], list[np.ndarray]], step: float = 2e-3) -> list[np.ndarray]:
    """The derivative at 0 by a fourth-order central difference."""
    with quiet():
        values = [[np.asarray(v, float) for v in function(k * step)] for k in (-2, -1, 1, 2)]
    return [(a - 8 * b + 8 * c - d) / (12 * step) for a, b, c, d in zip(*values, strict=True)]


def gradients(function: Function, *arrays: np.ndarray) -> list[np.ndarray]:
    """The gradients of the sum of a function's results."""
    inputs, outputs = record(function, arrays)
    seeds = [constant(np.ones(node.shape, node.dtype)) for node in outputs]
    found = vjp(outputs, list(seeds), inputs)
    zeros = [constant(np.zeros(a.shape, a.dtype)) for a in arrays]
    return interpret([g if g is not None else z for g, z in zip(found, zeros, strict=True)])


def check_derivative(function: Function, *arrays: np.ndarray, second: bool = True, tolerance: float = 2e-7) -> None:
    """Assert that forward and reverse mode agree with differences of what NumPy itself computes, to second order."""
    rng = np.random.default_rng(7)
    inputs, outputs = record(function, arrays)
    assert outputs, "no floating point result"
    directions = [rng.normal(size=a.shape) for a in arrays]

    def along(t: float) -> list[np.ndarray]:
        moved = [a + t * d for a, d in zip(arrays, directions, strict=True)]
        return [r for r in _outputs(function(*moved)) if np.asarray(r).dtype.kind == "f"]

    want = slope(along)
    tangents = jvp(outputs, inputs, [constant(d) for d in directions])
    forward = [
        interpret([t])[0] if t is not None else np.zeros(node.shape) for t, node in zip(tangents, outputs, strict=True)
    ]
    for one, other in zip(forward, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg="forward mode")
    weights = [rng.normal(size=node.shape) for node in outputs]
    cotangents = vjp(outputs, [constant(w) for w in weights], inputs)
    reverse = [
        interpret([g])[0] if g is not None else np.zeros(node.shape) for g, node in zip(cotangents, inputs, strict=True)
    ]
    for g, a in zip(reverse, arrays, strict=True):
        assert (g.shape, g.dtype) == (a.shape, a.dtype)
    left = sum(float(np.sum(w * t)) for w, t in zip(weights, want, strict=True))
    right = sum(float(np.sum(g * d)) for g, d in zip(reverse, directions, strict=True))
    np.testing.assert_allclose(right, left, rtol=tolerance, atol=10 * tolerance, err_msg="reverse mode")
    if second:
        _check_second(inputs, cotangents, arrays, directions, tolerance)


def _check_second(inputs: Any, cotangents: Any, arrays: Any, directions: Any, tolerance: float) -> None:
    """Forward over reverse, against differences of the gradient along a direction."""
    found = [g for g in cotangents if g is not None]

    def along(t: float) -> list[np.ndarray]:
        moved = {n: a + t * d for n, a, d in zip(inputs, arrays, directions, strict=True)}
        return interpret(found, moved)

    want = slope(along)
    tangents = jvp(found, inputs, [constant(d) for d in directions])
    for t, other in zip(tangents, want, strict=True):
        value = interpret([t])[0] if t is not None else np.zeros(other.shape)
        np.testing.assert_allclose(value, other, rtol=tolerance, atol=10 * tolerance, err_msg="second order")
