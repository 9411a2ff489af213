"""Special functions: the error and gamma functions, and the smooth steps and normalisations of machine learning.

In: array-likes. Out: Tensors. Called by users. SciPy is not imported; `scipy.special.erf(x)` of a Tensor records as
well, through scipy_ufuncs.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import DtypeError, ShapeError
from ...graph.builders import cast, reduce, reshape
from ...graph.formulas import choose
from ...graph.ir import Node, broadcast, constant, elementwise, literal, make
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import axes_of, integer, keep
from ...record.numbers import FLOAT64
from ...record.promotion import convert, float_of, loop_dtypes
from ...record.tensor import Tensor
from ...record.zero_dimensional import as_array
from ..arrays.result_order import like_loop
from .scipy_functions import apply as bessel
from .ufuncs import RULES


def _floats(*values: Any) -> list[Node]:
    """Operands in one float dtype: NumPy's for arithmetic, and float64 for integers."""
    nodes = [as_node(value) for value in values]
    dtype = loop_dtypes(np.divide, nodes[:2] if len(nodes) > 1 else [nodes[0], nodes[0]])[0]
    weak = all(node.weak for node in nodes)
    nodes = [convert(node, dtype) for node in nodes]
    try:
        np.broadcast_shapes(*[node.shape for node in nodes])
    except ValueError:
        message = f"The shapes {' and '.join(str(node.shape) for node in nodes)} do not broadcast together."
        raise ShapeError(message) from None
    for node in nodes if weak else ():
        node.weak = True
    return nodes


def _apply(name: str, *values: Any) -> Tensor:
    nodes = _floats(*values)
    result = RULES[name](*nodes)
    assert isinstance(result, Node)
    result.weak = all(node.weak for node in nodes)
    return wrap(result)


def erf(x: Any) -> Tensor:
    """The error function, elementwise."""
    return _apply("erf", x)


def erfc(x: Any) -> Tensor:
    """1 - erf(x), elementwise, accurate for large x."""
    return _apply("erfc", x)


def gammaln(x: Any) -> Tensor:
    """The logarithm of the absolute value of the gamma function, elementwise."""
    return _apply("gammaln", x)


def digamma(x: Any) -> Tensor:
    """The derivative of `gammaln`, elementwise."""
    return _apply("digamma", x)


def expit(x: Any) -> Tensor:
    """1 / (1 + exp(-x)), elementwise."""
    return _apply("expit", x)


sigmoid = expit


def logit(x: Any) -> Tensor:
    """log(x / (1 - x)), elementwise: the inverse of `expit`."""
    return _apply("logit", x)


def xlogy(x: Any, y: Any) -> Tensor:
    """x * log(y), elementwise, and 0 where x is 0."""
    return _apply("xlogy", x, y)


def softplus(x: Any) -> Tensor:
    """log(1 + exp(x)), elementwise, without overflow."""
    (node,) = _floats(x)
    result = elementwise("logaddexp", node, 0)
    result.weak = node.weak
    return wrap(result)


def relu(x: Any) -> Tensor:
    """x where it is positive, else 0, elementwise; the derivative at 0 is 0."""
    node = as_node(x)
    # NaN is not less than 0, and stays NaN.
    result = choose(elementwise("less_equal", node, 0), 0, node, node)
    result.weak = node.weak
    return wrap(result)


def i0(x: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 0, elementwise; its derivative is that of order 1."""
    node = as_node(x)
    if node.dtype.kind == "c":
        message = "i0 works on real numbers, but got complex ones."
        raise DtypeError(message)
    return as_array(wrap(like_loop(bessel("i0", cast(node, float_of(node))), [node])))


def kaiser(M: Any, beta: Any) -> Tensor:
    """Kaiser's window of M points: I0(beta sqrt(1 - t**2)) / I0(beta) for t from -1 to 1; differentiable in beta.

    Examples
    --------
    >>> kaiser(3, 0.0).tolist()
    [1.0, 1.0, 1.0]
    """
    count, shape = integer(M, "M"), as_node(beta)
    if shape.ndim:
        message = f"The beta of a Kaiser window must be one number, but its shape is {shape.shape}."
        raise ShapeError(message)
    places = np.linspace(-1.0, 1.0, count) if count > 1 else np.zeros(max(count, 0))
    scale = cast(shape, FLOAT64)
    rising = bessel("i0", elementwise("multiply", constant(np.sqrt(1.0 - places**2)), scale))
    return wrap(elementwise("divide", rising, bessel("i0", scale)))


def _shifted(node: Node, axes: tuple[int, ...]) -> tuple[Node, Node]:
    """x minus its maximum over axes, and that maximum with its axes kept; no derivative flows through the maximum."""
    kept = keep(node.shape, axes)
    if 0 in [node.shape[axis] for axis in axes]:
        return node, broadcast(literal(0, node.dtype), kept)
    top = reshape(reduce("max", node, axes), kept)
    top = make("stop_gradient", (choose(elementwise("isfinite", top), top, 0, top),))
    return node - top, top


def logsumexp(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(a))) over axes, without overflow; -inf where all elements are -inf, with derivative zero.

    Parameters
    ----------
    a : array-like
    axis : int, tuple of int or None
        The axes to sum over; None for all.
    keepdims : bool
        Whether the reduced axes stay, with extent 1.

    Returns
    -------
    Tensor
    """
    node = as_node(a)
    node = cast(node, float_of(node))
    axes = axes_of(axis, node.ndim)
    shifted, top = _shifted(node, axes)
    kept = top.shape
    total = reshape(reduce("sum", elementwise("exp", shifted), axes), kept)
    nothing = elementwise("equal", total, 0)
    result = choose(nothing, -math.inf, elementwise("log", choose(nothing, 1, total, total)), total) + top
    return wrap(result if keepdims else reshape(result, tuple([n for k, n in enumerate(kept) if k not in axes])))


def softmax(x: Any, axis: Any = -1) -> Tensor:
    """exp(x) divided by its sum over an axis, without overflow."""
    node = as_node(x)
    node = cast(node, float_of(node))
    axes = axes_of(axis, node.ndim)
    powers = elementwise("exp", _shifted(node, axes)[0])
    return wrap(powers / reshape(reduce("sum", powers, axes), keep(node.shape, axes)))


def log_softmax(x: Any, axis: Any = -1) -> Tensor:
    """The logarithm of `softmax`, accurate where softmax is tiny."""
    node = as_node(x)
    node = cast(node, float_of(node))
    axes = axes_of(axis, node.ndim)
    shifted, _ = _shifted(node, axes)
    total = reduce("sum", elementwise("exp", shifted), axes)
    return wrap(shifted - elementwise("log", reshape(total, keep(node.shape, axes))))
