"""Derivatives of higher order along a curve: `jet`, `derivative`, and the derivative at a fixed point, `linearize`.

In: a function of arrays, a point, and the derivatives of a curve through it. Out: the derivatives of the function along
the curve. Called by users. They are nested forward derivatives by the parameter of the curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy

from ..errors import ArgumentError, ShapeError
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import inexact, integer
from ..record.tensor import Tensor
from .jacobians import jvp

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def _floats(value: Any) -> Any:
    return wrap(inexact(as_node(value)))


def _along(fn: Callable[..., Any], points: Sequence[Any], curves: Sequence[Any], step: Any) -> Any:
    """The function at a place of the curve whose derivatives at 0 are given."""
    moved: list[Any] = []
    for point, curve in zip(points, curves, strict=True):
        total: Any = 0.0
        for k in range(curve.shape[0], 0, -1):
            total = (total + curve[k - 1] / math.factorial(k)) * step.astype(curve.dtype)
        moved.append(point + total)
    return fn(*moved)


def _slope(function: Callable[[Any], Any], place: Any) -> Any:
    return jvp(function, place, np.ones_like(place))[1]


def jet(fn: Callable[..., Any], primals: Any, series: Any) -> tuple[Any, Any]:
    """The value of a function and its derivatives along a curve, up to the order of the curve's own.

    Parameters
    ----------
    fn : callable
    primals : Tensor or ndarray, or tuple or list of them
        The point of the curve for parameter 0: one argument, or all of them.
    series : Tensor or ndarray, or tuple or list of them
        The first, second, ... derivative of the curve, along a new first axis.

    Returns
    -------
    out : as `fn` returns it
        The value; a list for several results.
    out_series : Tensor, or list of Tensor
        The derivatives, along a new first axis.

    Raises
    ------
    ArgumentError, ShapeError
        If point and curve do not fit.

    Notes
    -----
    Derivatives are not divided by factorials. The cost grows with two to the power of the order.

    Examples
    --------
    >>> import nbgrad as nb
    >>> value, slopes = nb.ops.jet(lambda x: x**3, nb.Tensor(2.0), nb.Tensor([1.0, 0.0, 0.0]))
    >>> print(value, slopes)
    8.0 [12. 12.  6.]
    """
    several = isinstance(primals, tuple | list)
    points = [_floats(one) for one in (primals if several else (primals,))]
    curves = [_floats(one) for one in (series if isinstance(series, tuple | list) else (series,))]
    if len(points) != len(curves):
        message = f"jet needs one curve for each point, but got {len(points)} points and {len(curves)} curves."
        raise ArgumentError(message)
    for point, curve in zip(points, curves, strict=True):
        if curve.ndim != point.ndim + 1 or curve.shape[1:] != point.shape or curve.shape[0] != curves[0].shape[0]:
            message = (
                f"The curve through a point of shape {point.shape} must have the shape (order, *{point.shape}), and "
                f"one order for all points, but has {curve.shape}."
            )
            raise ShapeError(message)
    along: Callable[[Any], Any] = partial(_along, fn, points, curves)
    start = Tensor(np.zeros((), np.dtype(max((point.dtype.name for point in points), key=np.dtype))))
    found = [along(start)]
    for _ in range(curves[0].shape[0]):
        along = partial(_slope, along)
        found.append(along(start))
    if isinstance(found[0], tuple | list):
        parts = list(zip(*found, strict=True))
        return [values[0] for values in parts], [np.stack(values[1:]) for values in parts]
    return found[0], np.stack(found[1:])


def derivative(fn: Callable[..., Any], primals: Any, order: int) -> tuple[Any, Any]:
    """The value of a function and its derivative of some order in the direction of ones.

    Parameters
    ----------
    fn : callable
        Of an elementwise function, the result has the derivative at each element.
    primals : Tensor or ndarray, or tuple or list of them
        One argument, or all of them.
    order : int
        At least 1.

    Returns
    -------
    out : as `fn` returns it
    derivative : as `fn` returns it
        Lists for several results.

    Raises
    ------
    ArgumentError
        If the order is less than 1.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(*nb.ops.derivative(lambda x: x**3, nb.Tensor([1.0, 2.0]), 2))
    [1. 8.] [ 6. 12.]
    """
    if integer(order, "order") < 1:
        message = f"The order of a derivative is at least 1, but is {order}."
        raise ArgumentError(message)
    points = [_floats(one) for one in (primals if isinstance(primals, tuple | list) else (primals,))]
    curves = [
        np.concatenate([np.ones_like(point)[None], np.zeros((order - 1, *point.shape), np.dtype(point.dtype.name))])
        for point in points
    ]
    value, slopes = jet(fn, points, curves)
    return (value, [one[-1] for one in slopes]) if isinstance(slopes, list) else (value, slopes[-1])


def linearize(fn: Callable[..., Any], inputs: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The value of a function at a point, and the function that multiplies its Jacobian there by vectors.

    Parameters
    ----------
    fn : callable
    inputs : Tensor or ndarray, or tuple or list of them
        One argument, or all of them.

    Returns
    -------
    out : as `fn` returns it
    jvp_fn : callable
        Takes a tangent of each argument, as `jvp` does.

    Examples
    --------
    >>> import nbgrad as nb
    >>> value, product = nb.ops.linearize(lambda x: x * x, nb.Tensor([1.0, 3.0]))
    >>> print(value, product(nb.Tensor([1.0, 0.5])))
    [1. 9.] [2. 3.]
    """

    def product(vectors: Any) -> Any:
        return jvp(fn, inputs, vectors)[1]

    return fn(*inputs) if isinstance(inputs, tuple | list) else fn(inputs), product
