"""Activation functions of neural networks, and softmax.

In: array-likes (integers become floats). Out: Tensors of the same shape and dtype. Called by users and
by nbgrad.nn. Every function is a formula of primitives in which the branch that is not taken is computed at a harmless
point, so that no gradient is NaN. At kinks the derivatives are PyTorch's: relu'(0) = 0, hardtanh' = 0 at both bounds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..functions.elementwise import special_functions as special
from ..graph.builders import cast, reshape
from ..graph.formulas import choose
from ..graph.ir import Node, elementwise
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import axis_of, cut, inexact, real_dtype, scalar
from ..record.tensor import Tensor
from .declarations import as_numpy, spelled
from .docstrings import documented

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
"""The fixed point of Klambauer et al. 2017, Self-normalizing neural networks."""


def _parameter(value: Any, like: Node, name: str) -> Node:
    """A number that shapes an activation: given as a number it is a run-time input, as a 0-d Tensor it differentiates.

    Raises
    ------
    DtypeError, ShapeError
        If it is no number.
    """
    if isinstance(value, bool | int | float):
        return scalar(float(value), like.dtype)
    node = as_node(value)
    if node.size != 1:
        message = f"{name} must be one number, but has shape {node.shape}."
        raise ShapeError(message)
    return cast(reshape(node, ()), like.dtype)


def _zero(x: Node) -> Node:
    return choose(elementwise("isnan", x), x, 0, x)


def _positive(x: Node) -> Node:
    return elementwise("greater", x, 0)


def _negative_part(x: Node) -> Node:
    """x where it is not positive, else 0."""
    return choose(_positive(x), 0, x, x)


# ----- Rectifiers -----


def relu(input: Any) -> Tensor:
    """x where it is positive, else 0; the derivative at 0 is 0. Integers stay integers."""
    x = as_node(input)
    # NaN is not less than 0, and stays NaN.
    return wrap(choose(elementwise("less_equal", x, 0), 0, x, x))


def _clamped(x: Node, low: Node, high: Node) -> Node:
    """x between two bounds, with derivative 0 at both."""
    below, above = elementwise("less_equal", x, low), elementwise("greater_equal", x, high)
    return elementwise("select", below, low, elementwise("select", above, high, x))


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x limited to an interval; the derivative is 1 inside of it and 0 elsewhere, also at both bounds."""
    x = inexact(as_node(input))
    return wrap(_clamped(x, _parameter(min_val, x, "min_val"), _parameter(max_val, x, "max_val")))


def relu6(x: Any) -> Tensor:
    """x limited to the interval from 0 to 6."""
    return hardtanh(x, 0.0, 6.0)


@documented
def leaky_relu(input: Any, alpha: float = 0.2) -> Tensor:
    """x where it is positive, else alpha * x; the derivative at 0 is alpha.

    Notes
    -----
    Differs from `torch.nn.functional.leaky_relu`: the default slope is 0.2, as in MindSpore, not 0.01.

    >>> nb.ops.leaky_relu(nb.Tensor([-1.0, 2.0]), 0.5)
    Tensor(shape=[2], dtype=Float32, value= [-5.00000000e-01,  2.00000000e+00])
    """
    x = inexact(as_node(input))
    return wrap(choose(_positive(x), x, x * _parameter(alpha, x, "alpha"), x))


@documented
def prelu(x: Any, weight: Any) -> Tensor:
    """x where it is positive, else weight * x, with one weight or one per channel.

    x : array-like, shape (N, C, ...)
    weight : array-like, shape (C,) or (1,) or ()
    -> Tensor, shape (N, C, ...)
    ShapeError : If there are neither one nor C weights.
    """
    node, slope = inexact(as_node(x)), inexact(as_node(weight))
    channels = node.shape[1] if node.ndim > 1 else 1
    if slope.ndim > 1 or slope.size not in (1, channels):
        message = f"weight of prelu must have 1 or {channels} elements for x of shape {node.shape}, not {slope.shape}."
        raise ShapeError(message)
    slope = cast(reshape(slope, () if slope.size == 1 else (channels, *[1] * (node.ndim - 2))), node.dtype)
    return wrap(choose(_positive(node), node, node * slope, node))


def elu(input_x: Any, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha * (exp(x) - 1)."""
    x = inexact(as_node(input_x))
    return wrap(choose(_positive(x), x, elementwise("expm1", _negative_part(x)) * _parameter(alpha, x, "alpha"), x))


def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha * (exp(x / alpha) - 1); an alpha of 0 is an ArgumentError."""
    if isinstance(alpha, int | float) and alpha == 0:
        message = "alpha of celu must not be 0, because it divides."
        raise ArgumentError(message)
    node = inexact(as_node(x))
    rate = _parameter(alpha, node, "alpha")
    return wrap(choose(_positive(node), node, elementwise("expm1", _negative_part(node) / rate) * rate, node))


def selu(input_x: Any) -> Tensor:
    """The self-normalising unit: 1.0507 x where x is positive, else 1.7581 (exp(x) - 1)."""
    x = inexact(as_node(input_x))
    return wrap(
        choose(_positive(x), x * SELU_SCALE, elementwise("expm1", _negative_part(x)) * (SELU_SCALE * SELU_ALPHA), x)
    )


# ----- Smooth ones -----


@as_numpy(special.expit, "1 / (1 + exp(-x)).")
def sigmoid(input: Any) -> Tensor: ...


@documented
def gelu(input: Any, approximate: str = "none") -> Tensor:
    """x times the probability that a standard normal variable is below x (Hendrycks and Gimpel 2016).

    approximate : {"none", "tanh"}
        Exact, or `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3)))`.
    ArgumentError : If `approximate` is neither.
    """
    x = inexact(as_node(input))
    if approximate == "none":
        inner = elementwise("erf", x * math.sqrt(0.5))
    elif approximate == "tanh":
        inner = elementwise("tanh", (x + x * x * x * 0.044715) * math.sqrt(2.0 / math.pi))
    else:
        message = f"approximate must be 'none' or 'tanh', but is {approximate!r}."
        raise ArgumentError(message)
    return wrap(x * 0.5 * (inner + 1.0))


def silu(input: Any) -> Tensor:
    """x * sigmoid(x), also called swish."""
    x = inexact(as_node(input))
    return wrap(x * elementwise("expit", x))


def mish(x: Any) -> Tensor:
    """x * tanh(log(1 + exp(x))) (Misra 2019)."""
    node = inexact(as_node(x))
    return wrap(node * elementwise("tanh", elementwise("logaddexp", node, 0)))


def softplus(input: Any, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds the threshold, where both agree to rounding."""
    x = inexact(as_node(input))
    rate = _parameter(beta, x, "beta")
    scaled = x * rate
    linear = elementwise("greater", scaled, _parameter(threshold, x, "threshold"))
    return wrap(choose(linear, x, elementwise("logaddexp", scaled, 0) / rate, x))


def logsigmoid(x: Any) -> Tensor:
    """log(sigmoid(x)), accurate where the sigmoid is tiny."""
    node = inexact(as_node(x))
    return wrap(-elementwise("logaddexp", -node, 0))


def softsign(x: Any) -> Tensor:
    """x / (1 + abs(x))."""
    node = inexact(as_node(x))
    return wrap(node / (elementwise("absolute", node) + 1.0))


def tanhshrink(input: Any) -> Tensor:
    """x - tanh(x)."""
    x = inexact(as_node(input))
    return wrap(x - elementwise("tanh", x))


# ----- Piecewise linear ones -----


def hardsigmoid(input: Any) -> Tensor:
    """x / 6 + 1 / 2, limited to the interval from 0 to 1."""
    x = inexact(as_node(input))
    inner = x * (1.0 / 6.0) + 0.5
    return wrap(choose(elementwise("less_equal", x, -3), 0, choose(elementwise("greater_equal", x, 3), 1, inner, x), x))


def hardswish(input: Any) -> Tensor:
    """x * hardsigmoid(x); at 3 the derivative is 1, at -3 it is 0."""
    x = inexact(as_node(input))
    inner = x * (x + 3.0) * (1.0 / 6.0)
    return wrap(choose(elementwise("less_equal", x, -3), 0, choose(elementwise("greater_equal", x, 3), x, inner, x), x))


def hardshrink(x: Any, lambd: float = 0.5) -> Tensor:
    """x, but 0 where its absolute value is at most lambd."""
    node = inexact(as_node(x))
    inside = elementwise("less_equal", elementwise("absolute", node), _parameter(lambd, node, "lambd"))
    return wrap(choose(inside, 0, node, node))


def softshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd; 0 where its absolute value is at most lambd."""
    x = inexact(as_node(input))
    bound = _parameter(lambd, x, "lambd")
    below = choose(elementwise("less", x, -bound), x + bound, _zero(x), x)
    return wrap(choose(elementwise("greater", x, bound), x - bound, below, x))


soft_shrink = softshrink


# ----- Along an axis -----


def _along(function: Any, input: Any, axis: Any, dtype: Any) -> Tensor:
    """A function along an axis, of a 0-d input as of one element."""
    x = as_node(input)
    x = inexact(x) if dtype is None else cast(x, real_dtype(dtype))
    if x.dtype.kind != "f":
        message = f"dtype must be a floating-point dtype, but is {np.dtype(dtype)}."
        raise DtypeError(message)
    if x.ndim == 0:
        axis_of(axis, 1)
        return wrap(reshape(as_node(function(wrap(reshape(x, (1,))), 0)), ()))
    return function(wrap(x), axis)


@spelled
def softmax(input: Any, axis: int = -1, *, dtype: Any = None) -> Tensor:
    """exp(x) divided by its sum along an axis, without overflow.

    dtype : dtype, optional
        The dtype that the input is converted to first.

    >>> nb.ops.softmax(nb.Tensor([1000.0, 1000.0]))
    Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e-01,  5.00000000e-01])
    """
    return _along(special.softmax, input, axis, dtype)


def log_softmax(logits: Any, axis: int = -1) -> Tensor:
    """The logarithm of `softmax`, accurate where softmax is tiny."""
    return _along(special.log_softmax, logits, axis, None)


def softmin(x: Any, axis: int = -1, *, dtype: Any = None) -> Tensor:
    """`softmax` of -x."""
    return _along(special.softmax, wrap(-inexact(as_node(x))), axis, dtype)


@documented
def glu(x: Any, axis: int = -1) -> Tensor:
    """The first half of an axis times the sigmoid of the second half (Dauphin et al. 2017).

    ShapeError : If the axis cannot be halved.
    """
    node = inexact(as_node(x))
    at = axis_of(axis, node.ndim)
    half, odd = divmod(node.shape[at], 2)
    if odd:
        message = f"glu halves axis {at}, which must be even, but the shape is {node.shape}."
        raise ShapeError(message)
    return wrap(cut(node, at, 0, half) * elementwise("expit", cut(node, at, half, half)))
