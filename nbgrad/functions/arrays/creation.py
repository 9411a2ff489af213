"""New arrays: zeros, ranges, grids, diagonals and triangles.

In: shapes, numbers, array-likes. Out: Tensors. NumPy functions without an array argument (`np.zeros`, `np.arange`)
never reach Tensors, so these exist here to be called by name. Constant patterns are comparisons of positions (iota),
which take no memory; diagonals are strided slices of the flat array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, ShapeError
from ...functions.arrays.result_order import memory_order
from ...graph.builders import cast, iota, reshape, slice_axes, transpose
from ...graph.formulas import unslice
from ...graph.ir import INT64, PART_OF, Node, broadcast, elementwise, extent, make
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import axis_of, filled, inexact, integer, only, positions, real_dtype, scalar, shape_of
from ...record.moving_slices import distance
from ...record.numbers import FLOAT64
from ...record.placement import made_on
from ...record.promotion import common_dtype, convert, promote
from ...record.shared_memory import moved
from ...record.tensor import Tensor
from ...record.zero_dimensional import ZeroDimensional
from ...runtime.evaluate import concrete
from ...runtime.memory_order import (
    copied,
    element_of_array,
    like_copy,
    may_differ,
    order_of_loop,
    strides_of,
    with_axis_order,
)
from .joining import stack_nodes
from .shaping import broadcast_node, common_shape
from .viewing import viewing

# ----- On nodes -----


def diagonal_node(node: Node, offset: int, axis1: int, axis2: int) -> Node:
    """The diagonal of two axes, as a new last axis: a strided slice of the two axes made flat."""
    if axis1 == axis2:
        message = f"The two axes of a diagonal must differ, but both are {axis1}."
        raise ShapeError(message)
    others = [a for a in range(node.ndim) if a not in (axis1, axis2)]
    node = transpose(node, (*others, axis1, axis2))
    lead, (rows, columns) = node.shape[:-2], node.shape[-2:]
    length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    flat = reshape(node, (*lead, rows * columns))
    if length <= 0:
        return slice_axes(flat, [*[(0, n, 1) for n in lead], (0, 0, 1)])
    start = offset if offset >= 0 else -offset * columns
    return slice_axes(flat, [*[(0, n, 1) for n in lead], (start, length, columns + 1)])


def diagonal_matrix(node: Node, offset: int) -> Node:
    """The square matrix of zeros with a 1-d node on a diagonal."""
    n = node.size + abs(offset)
    start = offset if offset >= 0 else -offset * n
    return reshape(unslice(node, (n * n,), [(start, node.size, n + 1)]), (n, n))


def below(shape: Sequence[int], offset: int) -> Node:
    """Whether a position of the last two axes is on or below a diagonal: column - row <= offset."""
    shape = tuple(shape)
    last = len(shape) - 1
    limit = positions(shape, last - 1) + scalar(offset, INT64)
    return elementwise("less_equal", positions(shape, last), limit)


# ----- Filled arrays -----


def _or_float(dtype: Any) -> Any:
    return float if dtype is None else dtype


def zeros(shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None) -> Tensor:
    """An array of zeros."""
    return full(shape, 0, _or_float(dtype), order, device=device)


def ones(shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None) -> Tensor:
    """An array of ones."""
    return full(shape, 1, _or_float(dtype), order, device=device)


def empty(shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None) -> Tensor:
    """An array of any values; here they are zeros."""
    return full(shape, 0, _or_float(dtype), order, device=device)


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Tensor:
    """An array that repeats a value; a Tensor as value differentiates."""
    only("order", order, "C", "F")
    value = as_node(fill_value)
    if dtype is not None:
        value = convert(value, real_dtype(dtype))
    shape = shape_of(shape)
    if len(shape) > 1:
        value = element_of_array(value)
    return array_of(copied(made_on(broadcast_node(value, shape), device), order))


def array_of(node: Node) -> Tensor:
    """The Tensor of a new array, which is an array also without axes."""
    if node.shape:
        return wrap(node)
    # A literal may be that of older arrays, but what is written to this one is not written to those.
    tensor = wrap(make("alias", (node,)) if node.weak or node.name == "literal" else node)
    tensor.__class__ = ZeroDimensional
    return tensor


def _like(a: Any, value: Any, dtype: Any, order: str, shape: Any, device: Any) -> Tensor:
    node, order = as_node(a), memory_order(a, order, "K", "C", "F", "A")
    device = node.device if device is None else device
    made = full(node.shape if shape is None else shape, value, node.dtype if dtype is None else dtype, device=device)
    if order == "F" or (order == "K" and may_differ(node) and made.ndim == node.ndim):
        made = array_of(copied(made._node, "F") if order == "F" else like_copy(made._node, node))
    # Like a user's Tensor also in how it promotes.
    return Tensor(made) if node.tensor else made


def zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Tensor:
    """Zeros of the shape and dtype of another array."""
    return _like(a, 0, dtype, order, shape, device)


def ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Tensor:
    """Ones of the shape and dtype of another array."""
    return _like(a, 1, dtype, order, shape, device)


def empty_like(
    prototype: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Tensor:
    """Any values (zeros) of the shape and dtype of another array."""
    return _like(prototype, 0, dtype, order, shape, device)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tensor:
    """A value repeated in the shape and dtype of another array."""
    return _like(a, fill_value, dtype, order, shape, device)


# ----- Diagonals and triangles -----


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Tensor:
    """Ones on the k-th diagonal of an N by M matrix, zeros elsewhere."""
    only("order", order, "C", "F")
    shape = shape_of((N, N if M is None else M))
    offset = positions(shape, 1) - positions(shape, 0)
    ones = cast(elementwise("equal", offset, integer(k, "k")), real_dtype(dtype))
    return array_of(copied(made_on(ones, device), order))


def identity(n: int, dtype: Any = None, *, like: Any = None) -> Tensor:
    """The n by n identity matrix."""
    return eye(n, dtype=float if dtype is None else dtype)


def diag(v: Any, k: int = 0) -> Tensor:
    """The k-th diagonal of a matrix, or the matrix with a 1-d array on its k-th diagonal."""
    node = as_node(v)
    if node.ndim == 1:
        return wrap(diagonal_matrix(node, integer(k, "k")))
    if node.ndim != 2:
        message = f"diag needs one or two axes, but the shape is {node.shape}."
        raise ShapeError(message)
    return diagonal(v, integer(k, "k"))


def diagflat(v: Any, k: int = 0) -> Tensor:
    """The matrix with the flat array on its k-th diagonal."""
    node = as_node(v)
    return wrap(diagonal_matrix(reshape(node, (node.size,)), integer(k, "k")))


@viewing
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonal of two axes, as a new last axis."""
    node = as_node(a)
    if node.ndim < 2:
        message = f"diagonal needs at least two axes, but the shape is {node.shape}."
        raise ShapeError(message)
    first, second = axis_of(axis1, node.ndim), axis_of(axis2, node.ndim)
    found = diagonal_node(node, integer(offset, "offset"), first, second)
    if found.ndim > 1 and may_differ(node):
        # NumPy's is a view that steps along both axes.
        strides = strides_of(node)
        kept = [stride for axis, stride in enumerate(strides) if axis not in (first, second)]
        found.layout = (*kept, strides[first] + strides[second])
    return wrap(found)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float, *, like: Any = None) -> Tensor:
    """Ones on and below the k-th diagonal of an N by M matrix."""
    return wrap(cast(below(shape_of((N, N if M is None else M)), integer(k, "k")), real_dtype(dtype)))


def _triangle(m: Any, k: int, lower: bool) -> Tensor:
    node = as_node(m)
    if node.ndim == 0:
        message = "tril and triu need at least one axis."
        raise ShapeError(message)
    shape = node.shape if node.ndim > 1 else (node.size, node.size)
    node, zero = broadcast(node, shape), filled(shape, 0, node.dtype)
    k = integer(k, "k") - (0 if lower else 1)
    # NumPy's mask has two axes; to its loop that says something where the array is in an order of its own.
    mask = broadcast(below(shape[-2:], k), shape) if may_differ(node) else below(shape, k)
    return wrap(elementwise("select", mask, node, zero) if lower else elementwise("select", mask, zero, node))


def tril(m: Any, k: int = 0) -> Tensor:
    """The elements on and below the k-th diagonal of the last two axes, zeros above."""
    return _triangle(m, k, True)


def triu(m: Any, k: int = 0) -> Tensor:
    """The elements on and above the k-th diagonal of the last two axes, zeros below."""
    return _triangle(m, k, False)


# ----- Ranges -----


def arange(
    start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None, like: Any = None
) -> Tensor:
    """Numbers from start up to, but not including, stop, differentiable in start and step.

    The number of elements must be known when the function is recorded, which it is for integers k in `arange(k, k + 3)`
    of the turns of a loop or in vmap, too. With one argument, the numbers from 0 up to it.
    """
    start, stop = (0, start) if stop is None else (start, stop)
    nodes = [as_node(v) for v in (start, stop, step)]
    wanted = np.result_type(INT64, *[n.dtype for n in nodes]) if dtype is None else real_dtype(dtype)
    ends_move = nodes[0].traced and not nodes[2].traced and nodes[2].dtype.kind in "iu"
    if ends_move and (gap := distance(start, stop)) is not None:
        places = elementwise("add", arange(0, gap, step)._node, cast(nodes[0], INT64))
        return wrap(made_on(cast(places, wanted), device))
    numbers = [concrete(n, "int" if n.dtype.kind in "iub" else "float").item() for n in nodes]
    first, last, width = numbers
    if width == 0:
        message = "The step of arange must not be zero."
        raise ArgumentError(message)
    length = int(np.ceil((last - first) / width))
    length = max(0, length)
    work = INT64 if all(isinstance(n, int) for n in numbers) else FLOAT64
    place = cast(iota(length), work)
    # The step that NumPy takes is the difference of the first two elements, after rounding.
    if any(n.traced and n.dtype.kind == "f" for n in (nodes[0], nodes[2])):
        origin, gap = (reshape(cast(n, work), ()) for n in (nodes[0], nodes[2]))
        places = elementwise("add", elementwise("multiply", place, origin + gap - origin), origin)
        return wrap(made_on(cast(places, wanted), device))
    delta = first + width - first
    if delta != 1:
        place = place * scalar(delta, work)
    if first != 0:
        place = place + scalar(first, work)
    return wrap(made_on(cast(place, wanted), device))


def _spaced(start: Node, stop: Node, num: int, endpoint: bool, axis: int) -> tuple[Node, Node]:
    """Points from start to stop along a new axis, and the step between them."""
    shape = common_shape([start.shape, stop.shape])
    count = num - 1 if endpoint else num
    start, stop = broadcast(start, shape), broadcast(stop, shape)
    step = (stop - start) / extent(count if count > 0 else 1, PART_OF.get(start.dtype, start.dtype))
    at = axis_of(axis, len(shape) + 1)
    whole = (*shape[:at], num, *shape[at:])
    one = (*shape[:at], 1, *shape[at:])
    place = positions(whole, at)
    points = cast(place, start.dtype) * reshape(step, one) + reshape(start, one)
    if endpoint and num > 1:
        final = elementwise("equal", place, broadcast(extent(num - 1, INT64), whole))
        points = elementwise("select", final, broadcast(reshape(stop, one), whole), points)
    if at or start.layout is not None or stop.layout is not None:
        # The new axis is the slowest, wherever it is.
        inner = [axis + (axis >= at) for axis in order_of_loop(shape, [strides_of(start), strides_of(stop)])]
        points = with_axis_order(points, [at, *inner])
    return points, step


def _endpoints(start: Any, stop: Any, num: Any) -> tuple[Node, Node, int]:
    count = integer(num, "num")
    if count < 0:
        message = f"The number of points must not be negative, but got {count}."
        raise ArgumentError(message)
    nodes = [as_node(start), as_node(stop)]
    dtype = common_dtype(nodes)
    first, last = promote(nodes, dtype if dtype.kind in "fc" else FLOAT64)
    return first, last, count


def _rounded(node: Node, dtype: Any) -> Node:
    if dtype is None:
        return node
    wanted = real_dtype(dtype)
    return cast(elementwise("floor", node) if wanted.kind in "iu" else node, wanted)


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Evenly spaced points from start to stop, differentiable in both; with `retstep`, also the step.

    Parameters
    ----------
    start, stop : array-like
        The ends; arrays give one row of points per element, along the new axis `axis`.
    num : int
        How many points.
    endpoint : bool
        Whether stop is the last point.
    retstep : bool
    dtype : dtype, optional
    axis : int
    """
    first, last, count = _endpoints(start, stop, num)
    points, step = _spaced(first, last, count, endpoint, axis)
    result = wrap(made_on(_rounded(points, dtype), device))
    return (result, wrap(step)) if retstep else result


def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Tensor:
    """Powers of `base` whose exponents are evenly spaced."""
    first, last, count = _endpoints(start, stop, num)
    points, _ = _spaced(first, last, count, endpoint, axis)
    root = as_node(base)
    if root.ndim:
        at = axis_of(axis, points.ndim)
        root = reshape(root, (*root.shape[:at], 1, *root.shape[at:]))
    root, points = (inexact(v) for v in promote([root, points]))
    return wrap(_rounded(elementwise("power", root, points), dtype))


def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Tensor:
    """Points whose ratios are equal, from start to stop, which have one sign; complex ones go along a spiral.

    As in NumPy, the result is float64 or wider unless a dtype is given.
    """
    first, last, count = _endpoints(start, stop, num)
    wide = np.result_type(first.dtype, FLOAT64 if dtype is None else real_dtype(dtype))
    shape = common_shape([first.shape, last.shape])
    first, last = (broadcast(cast(v, wide), shape) for v in (first, last))
    # Turned so that the first point is positive.
    sign = elementwise("sign", first)
    first, last = (elementwise("divide", v, sign) for v in (first, last))
    low, high = (elementwise("log10", v) for v in (first, last))
    points, _ = _spaced(low, high, count, endpoint, axis)
    at = axis_of(axis, len(shape) + 1)
    whole, one = points.shape, (*shape[:at], 1, *shape[at:])
    powers = elementwise("power", filled(whole, 10.0, points.dtype), points)
    place = positions(whole, at)
    powers = elementwise("select", elementwise("equal", place, 0), broadcast(reshape(first, one), whole), powers)
    if endpoint and count > 1:
        final = elementwise("equal", place, broadcast(extent(count - 1, INT64), whole))
        powers = elementwise("select", final, broadcast(reshape(last, one), whole), powers)
    return wrap(_rounded(powers * reshape(sign, one), wide if dtype is None else dtype))


# ----- Grids -----


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid from its 1-d axes; with `sparse`, each has only its own axis."""
    only("indexing", indexing, "xy", "ij")
    nodes = [as_node(x) for x in xi]
    order = list(range(len(nodes)))
    if indexing == "xy" and len(nodes) > 1:
        order[0], order[1] = 1, 0
    lined = [
        reshape(node, tuple([node.size if order[k] == a else 1 for a in range(len(nodes))]))
        for k, node in enumerate(nodes)
    ]
    if sparse:
        grid = [wrap(node) for node in lined]
    else:
        shape = common_shape([node.shape for node in lined])
        grid = [wrap(broadcast(node, shape)) for node in lined]
    if copy:
        return tuple(grid)
    return tuple([moved(x, part) if isinstance(x, Tensor) else part for x, part in zip(xi, grid, strict=True)])


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """Positions along each axis of a grid, stacked; with `sparse`, a tuple of them, each with only its own axis."""
    shape = shape_of(dimensions)
    wanted = real_dtype(dtype)
    if sparse:
        lined = [tuple([n if a == k else 1 for a in range(len(shape))]) for k, n in enumerate(shape)]
        return tuple([wrap(cast(positions(one, k), wanted)) for k, one in enumerate(lined)])
    if not shape:
        return wrap(filled((0,), 0, wanted))
    return wrap(stack_nodes([cast(positions(shape, k), wanted) for k in range(len(shape))], 0))


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of a 1-d array as columns, the highest first unless `increasing`."""
    node = as_node(x)
    if node.ndim != 1:
        message = f"vander needs one axis, but the shape is {node.shape}."
        raise ShapeError(message)
    count = node.size if N is None else integer(N, "N")
    node = cast(node, np.promote_types(node.dtype, INT64))
    shape = (node.size, count)
    exponent = positions(shape, 1)
    if not increasing:
        exponent = elementwise("subtract", broadcast(extent(count - 1, INT64), shape), exponent)
    return wrap(elementwise("power", broadcast(reshape(node, (node.size, 1)), shape), cast(exponent, node.dtype)))


def linalg_diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """The diagonals of the matrices in the last two axes."""
    return diagonal(x, offset, -2, -1)
