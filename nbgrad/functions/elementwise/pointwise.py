"""Elementwise functions that are no ufuncs: where, clip, round, nan_to_num, sinc, isclose and their relatives.

In: array-likes. Out: Tensors. Called by users, by Tensor's methods and through table.py. Branches are selects,
whose derivative does not leak from the branch that was not taken.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import ArgumentError, BroadcastError, DtypeError, NbgradError, ShapeError
from ...graph.builders import cast, reduce
from ...graph.complex_numbers import is_complex, pair, parts
from ...graph.ir import BOOL, Node, broadcast, elementwise, filled, literal, literal_value, strong
from ...graph.shapes import Shape, joint_shape
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import FLOAT16, deliver, inexact, integer
from ...record.numbers import FLOAT64
from ...record.promotion import common_dtype, convert
from ...record.tensor import Tensor
from ...record.zero_dimensional import as_array
from ...runtime.evaluate import concrete
from ...runtime.memory_order import copied, may_differ
from ..arrays.result_order import like_argument, memory_order
from .ufuncs import apply_ufunc


def _node(result: Any) -> Node:
    """The only result of a ufunc."""
    assert isinstance(result, Node)
    return result


def _common(nodes: list[Node]) -> list[Node]:
    """Nodes in their common dtype."""
    dtype = common_dtype(nodes)
    return [convert(node, dtype) for node in nodes]


def _together(name: str, *nodes: Node) -> None:
    """Raise unless shapes broadcast."""
    shape: Shape = ()
    try:
        for node in nodes:
            shape = joint_shape(shape, node.shape)
    except BroadcastError:
        shapes = " and ".join(str(node.shape) for node in nodes)
        message = f"The shapes {shapes} do not broadcast together in {name}."
        raise ShapeError(message) from None


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Elements of x where a condition is true, of y elsewhere; without x and y, the positions where it is true.

    Parameters
    ----------
    condition : array-like
        Booleans; numbers are true unless they are zero.
    x, y : array-like
        They broadcast with the condition. Elements that are not taken have derivative zero, even if infinite or NaN.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> where([True, False], 1.0, Tensor([2.0, 3.0]))
    Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  3.00000000e+00])
    """
    if x is None and y is None:
        from ..arrays.sorting import nonzero

        return nonzero(condition)
    if x is None or y is None:
        message = "np.where takes either the condition alone, or both x and y."
        raise ArgumentError(message)
    test = convert(as_node(condition), BOOL)
    yes, no = _common([as_node(x), as_node(y)])
    _together("where", test, yes, no)
    return as_array(wrap(elementwise("select", test, yes, no)))


def _may_be_nan(bound: Node) -> bool:
    return bound.dtype.kind == "f" and not (bound.name == "literal" and not np.isnan(literal_value(bound)))


def _beyond(name: str, x: Node, bound: Node) -> Node:
    test = elementwise(name, x, bound)
    return elementwise("logical_or", test, elementwise("isnan", bound)) if _may_be_nan(bound) else test


def clip(a: Any, min: Any = None, max: Any = None, out: Any = None, *, a_min: Any = None, a_max: Any = None) -> Any:
    """Elements limited to an interval; the derivative is 1 inside and at both bounds, 0 outside.

    Parameters
    ----------
    a : array-like
    min, max : array-like, optional
        The bounds; None for no bound. `a_min` and `a_max` are other names for them.
    out : Tensor or ndarray, optional

    Returns
    -------
    Tensor
    """
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if (min is not None and a_min is not None) or (max is not None and a_max is not None):
        message = "Give the bounds of clip either as a_min and a_max or as min and max, not both."
        raise ArgumentError(message)
    # NumPy makes an array of a number to be clipped; the bounds stay numbers.
    given = [strong(as_node(a)), *[as_node(bound) for bound in (low, high) if bound is not None]]
    _together("clip", *given)
    nodes = _common(given)
    result = nodes[0]
    bounds = iter(nodes[1:])
    if low is not None:
        bound = next(bounds)
        result = elementwise("select", _beyond("less", result, bound), bound, result)
    if high is not None:
        bound = next(bounds)
        result = elementwise("select", _beyond("greater", result, bound), bound, result)
    only = nodes[1] if len(nodes) == 2 and nodes[0].dtype.kind == "f" and nodes[0].dtype.itemsize > 2 else None
    if only is not None and only.name == "literal" and literal_value(only) == 0:
        # A single bound wins over what equals it, but for float16: zeros of another sign become the bound.
        result = -(-result + 0.0) if np.signbit(literal_value(only)) else result + 0.0
    return deliver(result, out)


def nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    """NaN and infinities replaced by numbers (0 and the largest finite ones); their derivative is zero.

    With `copy=False` a Tensor is changed in place.
    """
    result = _finite(x, nan, posinf, neginf)
    if copy:
        return result
    if not isinstance(x, Tensor):
        message = "nan_to_num with copy=False changes its argument, which must be a Tensor here."
        raise ArgumentError(message)
    x._replace(result._node)
    return x


@like_argument()
def _finite(x: Any, nan: Any, posinf: Any, neginf: Any) -> Tensor:
    node = as_node(x)
    result = node
    if is_complex(node):
        sides = [_finite(wrap(part), nan, posinf, neginf)._node for part in parts(node)]
        result = pair(*sides)
    elif node.dtype.kind == "f":
        limits = np.finfo(node.dtype)
        replacements = [
            (elementwise("isnan", node), nan),
            (elementwise("equal", node, math.inf), limits.max if posinf is None else posinf),
            (elementwise("equal", node, -math.inf), limits.min if neginf is None else neginf),
        ]
        for test, value in replacements:
            result = elementwise("select", test, broadcast(cast(as_node(value), node.dtype), node.shape), result)
    return wrap(result)


def sinc(x: Any) -> Tensor:
    """sin(pi x) / (pi x), and 1 at zero; all derivatives are exact at zero as well."""
    node = inexact(as_node(x))
    if is_complex(node):
        return wrap(_complex_sinc(node))
    order = broadcast(literal(0, node.dtype), node.shape)
    return wrap(elementwise("sinc_derivative", order, node))


def _complex_sinc(z: Node) -> Node:
    """The quotient, and near zero its Taylor series, so that derivatives are right there."""
    near = elementwise("less", elementwise("absolute", z), 0.03)
    angle = elementwise("select", near, filled(math.pi, z.dtype, z.shape), z * math.pi)
    quotient = elementwise("sin", angle) / angle
    square = elementwise("select", near, z * z * math.pi**2, filled(0.0, z.dtype, z.shape))
    series = 1.0 - square * (1 / 6 - square * (1 / 120 - square * (1 / 5040 - square * (1 / 362880))))
    return elementwise("select", near, series, quotient)


def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """To a number of decimals, halves to even; the derivative is zero."""
    node = as_node(a)
    decimals = integer(decimals, "decimals")
    found = _to_decimals(node, decimals)
    if decimals and may_differ(node) and (node.dtype.kind == "f" or (node.dtype.kind in "iu" and decimals < 0)):
        # NumPy does several operations in an array of its own.
        found = copied(found, memory_order(wrap(node), "A", "A"))
    return deliver(found, out)


def _to_decimals(node: Node, decimals: int) -> Node:
    if is_complex(node):
        return pair(*[_to_decimals(part, decimals) for part in parts(node)])
    if node.dtype == np.bool_ and decimals == 0:
        return cast(node, FLOAT16)
    if node.dtype.kind != "f":
        if decimals >= 0:
            return node
        scaled = elementwise("rint", cast(node, FLOAT64) / 10.0**-decimals)
        return cast(scaled * 10.0**-decimals, node.dtype)
    if decimals == 0:
        return elementwise("rint", node)
    factor = 10.0 ** abs(decimals)
    if decimals > 0:
        return elementwise("rint", node * factor) / factor
    return elementwise("rint", node / factor) * factor


around = round


def fix(x: Any, out: Any = None) -> Any:
    """To the integer towards zero; the derivative is zero."""
    return deliver(_node(apply_ufunc(np.trunc, x)), out)


# ----- Comparisons with a tolerance, and other questions -----


def _close(a: Any, b: Any, rtol: Any, atol: Any, equal_nan: bool) -> Node:
    x, y = as_node(a), as_node(b)
    difference = wrap(_node(apply_ufunc(np.absolute, apply_ufunc(np.subtract, *_numbers(x, y)))))
    size = wrap(_node(apply_ufunc(np.absolute, _numbers(y)[0])))
    tolerance = wrap(_node(apply_ufunc(np.add, atol, apply_ufunc(np.multiply, rtol, size))))
    finite = _node(apply_ufunc(np.isfinite, y))
    near = elementwise("logical_and", _node(apply_ufunc(np.less_equal, difference, tolerance)), finite)
    near = elementwise("logical_or", near, _node(apply_ufunc(np.equal, x, y)))
    if equal_nan:
        both = elementwise("logical_and", _node(apply_ufunc(np.isnan, x)), _node(apply_ufunc(np.isnan, y)))
        near = elementwise("logical_or", near, both)
    return near


def _numbers(*nodes: Node) -> list[Node]:
    """Booleans and integers as floats, so that differences do not wrap around."""
    return [node if node.dtype.kind in "fc" else cast(node, FLOAT64) for node in nodes]


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether elements differ by at most `atol + rtol * abs(b)`."""
    return wrap(_close(a, b, rtol, atol, equal_nan))


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements differ by at most `atol + rtol * abs(b)`; a Python bool."""
    return _all(_close(a, b, rtol, atol, equal_nan))


def _all(node: Node) -> bool:
    return bool(concrete(reduce("min", node, range(node.ndim)), "bool")) if node.size else True


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether two arrays have the same shape and elements; a Python bool."""
    try:
        x, y = as_node(a1), as_node(a2)
    except DtypeError:
        return False
    if x.shape != y.shape:
        return False
    same = _node(apply_ufunc(np.equal, x, y))
    if equal_nan:
        both = elementwise("logical_and", _node(apply_ufunc(np.isnan, x)), _node(apply_ufunc(np.isnan, y)))
        same = elementwise("logical_or", same, both)
    return _all(same)


def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether two arrays have the same elements after broadcasting; a Python bool."""
    try:
        return _all(_node(apply_ufunc(np.equal, a1, a2)))
    except NbgradError:
        return False


def isposinf(x: Any, out: Any = None) -> Any:
    """Whether elements are plus infinity."""
    return deliver(_equal_to("isposinf", x, math.inf), out)


def isneginf(x: Any, out: Any = None) -> Any:
    """Whether elements are minus infinity."""
    return deliver(_equal_to("isneginf", x, -math.inf), out)


def _equal_to(name: str, x: Any, limit: float) -> Node:
    node = as_node(x)
    if is_complex(node):
        message = f"{name} is not defined for complex numbers. Apply it to x.real or x.imag."
        raise DtypeError(message)
    return _node(apply_ufunc(np.equal, node, limit))
