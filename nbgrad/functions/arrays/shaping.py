"""The shape of an array: reshape, permute, broadcast, flip, roll.

In: array-likes. Out: Tensors. Called by users, by Tensor's methods, and by the other files of `nbgrad.functions`.
Everything here is movement: no element is computed, and the compiler turns these functions into index maps on reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, ShapeError
from ...graph.builders import cast, slice_axes
from ...graph.builders import reshape as reshape_primitive
from ...graph.builders import transpose as permute
from ...graph.ir import Node, broadcast
from ...graph.shapes import Shape
from ...record import shared_memory
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import (
    array_node,
    at_least,
    axes_of,
    axis_of,
    integers,
    only,
    real_dtype,
    reduced_axes,
    shape_of,
    take_runs,
)
from ...record.tensor import Tensor
from ...record.zero_dimensional import as_array
from ...runtime.memory_order import copied, like_copy, order_of_copy, order_of_loop, with_axis_order
from .result_order import memory_order
from .viewing import viewing, viewing_each

# ----- On nodes -----


def reshape_node(node: Node, shape: Any, order: str = "C") -> Node:
    """The elements in another shape, in C or Fortran order; one extent may be -1."""
    extents = list(integers(shape, "shape"))
    only("order", order, "C", "F")
    if extents.count(-1) > 1:
        message = f"Only one extent of a shape can be -1, but got {tuple(extents)}."
        raise ShapeError(message)
    if -1 in extents:
        known = 1
        for n in extents:
            known *= n if n != -1 else 1
        if known and node.size % known == 0:
            extents[extents.index(-1)] = node.size // known
    wanted = 1
    for n in extents:
        wanted *= n
    if wanted != node.size or any(n < 0 for n in extents):
        message = f"An array of shape {node.shape} cannot be reshaped to {tuple(extents)}."
        raise ShapeError(message)
    if order == "F":
        return transpose_node(reshape_primitive(transpose_node(node), tuple(reversed(extents))))
    return reshape_primitive(node, tuple(extents))


def transpose_node(node: Node, axes: Any = None) -> Node:
    """Axes permuted, reversed by default."""
    if axes is None:
        return permute(node, tuple(range(node.ndim))[::-1])
    order = axes_of(axes, node.ndim)
    if len(order) != node.ndim:
        message = f"axes={axes!r} is not a permutation of the {node.ndim} axes of shape {node.shape}."
        raise ShapeError(message)
    return permute(node, order)


def moveaxis_node(node: Node, source: Any, destination: Any) -> Node:
    """Axes moved to other positions; the others keep their order."""
    sources, destinations = axes_of(source, node.ndim), axes_of(destination, node.ndim)
    if len(sources) != len(destinations):
        message = f"source={source!r} and destination={destination!r} have different numbers of axes."
        raise ShapeError(message)
    order = [a for a in range(node.ndim) if a not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, axis)
    return permute(node, tuple(order))


def broadcast_node(node: Node, shape: Any) -> Node:
    """The node read as a shape, or ShapeError."""
    return broadcast(node, shape_of(shape))


def common_shape(shapes: Sequence[Shape]) -> Shape:
    """The shape that all broadcast to, or ShapeError."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        message = f"The shapes {', '.join(map(str, shapes))} do not broadcast together."
        raise ShapeError(message) from None


def flip_node(node: Node, axes: Sequence[int]) -> Node:
    """Order reversed along axes."""
    return slice_axes(node, [(n - 1, n, -1) if a in axes and n else (0, n, 1) for a, n in enumerate(node.shape)])


def swap(node: Node, first: int, second: int) -> Node:
    """Two axes exchanged."""
    order = list(range(node.ndim))
    order[first], order[second] = order[second], order[first]
    return permute(node, tuple(order))


def with_axes(node: Node, ndim: int) -> Node:
    """New axes as `atleast_2d` and `atleast_3d` place them."""
    if ndim == 3 and 0 < node.ndim < 3:
        return reshape_primitive(node, (1, *node.shape, 1) if node.ndim == 1 else (*node.shape, 1))
    return at_least(node, ndim)


# ----- Reshape -----


def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Tensor:
    """The elements in another shape.

    Parameters
    ----------
    a : array-like
    shape : int or tuple of int
        One extent may be -1: it follows from the number of elements.
    order : {"C", "F", "A"}
        Which index changes fastest: the last ("C") or the first ("F"); "A" is "F" for what lies in memory in that
        order.
    copy : bool, optional
        True gives a copy in any case, False an error where NumPy needs one.

    Raises
    ------
    ShapeError
        If the array does not have as many elements.
    ArgumentError
        If copy is False and a copy is needed.
    """
    result = _reshaped(a, shape, memory_order(a, order, "C", "F", "A"))
    if copy is False and isinstance(a, Tensor) and not shared_memory.is_view(result):
        message = f"An array of shape {a.shape} cannot be reshaped to {result.shape} without a copy, but copy is False."
        raise ArgumentError(message)
    return result.copy() if copy else result


@viewing
def _reshaped(a: Any, shape: Any, order: str) -> Tensor:
    return wrap(reshape_node(as_node(a), shape, order))


def ravel(a: Any, order: str = "C") -> Tensor:
    """The elements in one axis; a copy, unless they are side by side in that order.

    Parameters
    ----------
    a : array-like
    order : {"C", "F", "A", "K"}
        Which index changes fastest: the last ("C") or the first ("F"); "A" is "F" for what lies in memory in that
        order; "K" takes the elements as they lie in memory.
    """
    order = memory_order(a, order, "C", "F", "A", "K")
    if order != "K":
        return _raveled(a, None, order)
    place = shared_memory.place_of(a if isinstance(a, Tensor) else Tensor._of(as_node(a)))
    return _raveled(a, tuple(order_of_loop(place.shape, [place.strides])), "C")


def _flat(a: Any, axes: tuple[int, ...] | None, order: str) -> Tensor:
    node = as_node(a)
    return wrap(reshape_node(node if axes is None else permute(node, axes), (-1,), order))


_raveled = viewing(_flat, in_order=True)


@viewing
def squeeze(a: Any, axis: Any = None) -> Tensor:
    """Axes of extent 1 removed: all of them, or those given."""
    node = as_node(a)
    axes = [k for k, n in enumerate(node.shape) if n == 1] if axis is None else reduced_axes(axis, node.ndim)
    for k in axes:
        if node.shape[k] != 1:
            message = f"Axis {k} of shape {node.shape} cannot be squeezed, because its extent is not 1."
            raise ShapeError(message)
    return wrap(reshape_primitive(node, tuple([n for k, n in enumerate(node.shape) if k not in axes])))


@viewing
def expand_dims(a: Any, axis: Any) -> Tensor:
    """New axes of extent 1 at the given positions of the result."""
    node = as_node(a)
    places = integers(axis, "axis")
    axes = axes_of(places, node.ndim + len(places))
    extents = iter(node.shape)
    shape = tuple([1 if k in axes else next(extents) for k in range(node.ndim + len(places))])
    return wrap(reshape_primitive(node, shape))


@viewing_each
def atleast_1d(*arys: Any) -> Any:
    """Arrays with at least one axis; a tuple if there are several."""
    return _each(1, arys)


@viewing_each
def atleast_2d(*arys: Any) -> Any:
    """Arrays with at least two axes; a tuple if there are several."""
    return _each(2, arys)


@viewing_each
def atleast_3d(*arys: Any) -> Any:
    """Arrays with at least three axes; a tuple if there are several."""
    return _each(3, arys)


def _each(ndim: int, arrays: Sequence[Any]) -> Any:
    results = tuple([wrap(with_axes(as_node(a), ndim)) for a in arrays])
    return results[0] if len(results) == 1 else results


# ----- Permute -----


@viewing
def transpose(a: Any, axes: Any = None) -> Tensor:
    """Axes permuted: axis k of the result is axis `axes[k]` of the array; reversed by default."""
    return wrap(transpose_node(as_node(a), axes))


@viewing
def matrix_transpose(x: Any, /) -> Tensor:
    """The last two axes exchanged."""
    node = as_node(x)
    if node.ndim < 2:
        message = f"matrix_transpose needs at least two axes, but the shape is {node.shape}."
        raise ShapeError(message)
    return wrap(swap(node, node.ndim - 2, node.ndim - 1))


@viewing
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Tensor:
    """Two axes exchanged."""
    node = as_node(a)
    return wrap(swap(node, axis_of(axis1, node.ndim), axis_of(axis2, node.ndim)))


@viewing
def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Axes moved to other positions; the others keep their order."""
    return wrap(moveaxis_node(as_node(a), source, destination))


@viewing
def rollaxis(a: Any, axis: Any, start: int = 0) -> Tensor:
    """One axis moved before position `start`."""
    node = as_node(a)
    source = axis_of(axis, node.ndim)
    place = integers(start, "start")[0]
    place += node.ndim if place < 0 else 0
    if not 0 <= place <= node.ndim:
        message = f"start={start} is out of bounds for an array with {node.ndim} axes."
        raise ShapeError(message)
    return wrap(moveaxis_node(node, source, place - 1 if source < place else place))


# ----- Broadcast -----


@viewing
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Tensor:
    """The array read as a larger shape; takes no memory."""
    return as_array(wrap(broadcast_node(as_node(array), shape)))


def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Tensor, ...]:
    """Arrays read in their common shape."""
    shape = common_shape([as_node(a).shape for a in args])
    return tuple([broadcast_to(a, shape) for a in args])


# ----- Order along axes -----


def flip(m: Any, axis: Any = None) -> Tensor:
    """Order reversed along axes; along all of them by default. Without axes, there is a scalar."""
    axes = axes_of(axis, as_node(m).ndim)
    return _flipped(m, axes) if as_node(m).ndim else wrap(array_node(m))


@viewing
def _flipped(m: Any, axes: Sequence[int]) -> Tensor:
    return wrap(flip_node(as_node(m), axes))


def _flip_at(name: str, m: Any, axis: int) -> Tensor:
    node = as_node(m)
    if node.ndim <= axis:
        message = f"{name} needs at least {axis + 1} axes, but the shape is {node.shape}."
        raise ShapeError(message)
    return wrap(flip_node(node, (axis,)))


@viewing
def flipud(m: Any) -> Tensor:
    """Order reversed along the first axis."""
    return _flip_at("flipud", m, 0)


@viewing
def fliplr(m: Any) -> Tensor:
    """Order reversed along the second axis."""
    return _flip_at("fliplr", m, 1)


def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    """Elements shifted along axes; those that leave one end come back at the other."""
    node = as_node(a)
    shifts = integers(shift, "shift")
    if axis is None:
        flat = reshape_primitive(node, (node.size,))
        # Several shifts of the flat array add up.
        return as_array(wrap(copied(reshape_primitive(_roll(flat, sum(shifts), 0), node.shape), "C")))
    axes = [axis_of(k, node.ndim) for k in integers(axis, "axis")]
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        message = f"shift={shift!r} and axis={axis!r} have different lengths."
        raise ShapeError(message)
    count = len(shifts) if len(axes) == 1 else len(axes)
    rolled = node
    for k in range(count):
        rolled = _roll(rolled, shifts[k % len(shifts)], axes[k % len(axes)])
    return wrap(like_copy(rolled, node))


def _roll(node: Node, shift: int, axis: int) -> Node:
    n = node.shape[axis]
    step = shift % n if n else 0
    return take_runs(node, axis, [(n - step, step, 1), (0, n - step, 1)]) if step else node


@viewing
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    """Turned by quarters in the plane of two axes."""
    node = as_node(m)
    plane = axes_of(axes, node.ndim)
    if len(plane) != 2:
        message = f"rot90 needs two different axes, but got axes={axes!r}."
        raise ShapeError(message)
    first, second = plane
    turns = k % 4
    if turns == 2:
        return wrap(flip_node(node, plane))
    if turns == 1:
        return wrap(swap(flip_node(node, (second,)), first, second))
    return wrap(flip_node(swap(node, first, second), (second,)) if turns == 3 else node)


# ----- Facts and copies -----


def shape(a: Any) -> Shape:
    """The extents of an array."""
    return as_node(a).shape


def ndim(a: Any) -> int:
    """The number of axes of an array."""
    return as_node(a).ndim


def size(a: Any, axis: Any = None) -> int:
    """The number of elements of an array, or its extent along axes."""
    node = as_node(a)
    count = 1
    for k in axes_of(axis, node.ndim):
        count *= node.shape[k]
    return count


def copy(a: Any, order: str = "K", subok: bool = False) -> Tensor:
    """A copy in memory of its own, in C or Fortran order, or as the array lies ("K", "A")."""
    node, order = as_node(a), memory_order(a, order, "K", "C", "F", "A")
    if order == "K" and isinstance(a, Tensor) and hasattr(a, "_base") and node.primitive.kind != "movement":
        # A view of which only the value is known by now.
        place = shared_memory.place_of(a)
        return as_array(wrap(with_axis_order(node, order_of_copy(place.shape, place.strides, node.dtype.itemsize))))
    return as_array(wrap(copied(node, order)))


def is_shape(x: Tensor, given: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether the arguments of `x.view` are a shape; if not, they are its own dtype, or nothing.

    Raises
    ------
    DtypeError
        For another dtype, in which the same bytes are other numbers.
    """
    kinds = [*options.values(), *[one for one in given if isinstance(one, type | str | np.dtype)]]
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, np.ndarray | Tensor):
            continue
        if kind != x.dtype or not set(options) <= {"dtype", "type"}:
            message = (
                f"A Tensor of {x.dtype} has no view as {kind!r}. Use x.astype(dtype) for the same numbers in another "
                "dtype, or x.asnumpy().view(dtype) for the same bytes, which have no derivative."
            )
            raise DtypeError(message)
    return bool(given) and not kinds


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None, order: str = "K") -> Tensor:
    """The array in another dtype; with copy=False the array itself, if it has that dtype."""
    only("device", device, None, "cpu")
    if not copy and isinstance(x, Tensor) and x.dtype == np.dtype(dtype):
        return x
    return as_array(wrap(cast(copied(as_node(x), memory_order(x, order, "K", "C", "F", "A")), real_dtype(dtype))))


def asarray(a: Any, dtype: Any = None, order: str | None = None, **options: Any) -> Tensor:
    """A Tensor of an array-like, in another dtype or order if one is given."""
    for name in options:
        if name not in ("copy", "device", "like"):
            message = f"asarray has no option {name!r}."
            raise ArgumentError(message)
    node = as_node(a)
    if isinstance(a, Tensor) and (dtype is None or node.dtype == np.dtype(dtype)):
        made = a.copy("K") if options.get("copy") else a
    else:
        made = wrap(node if dtype is None else cast(node, real_dtype(dtype)))
    return in_memory_order(made, order)


def array(a: Any, dtype: Any = None, **options: Any) -> Tensor:
    """`asarray` in memory of its own."""
    return asarray(a, dtype, **{"copy": True, "order": "K", **options})


def in_memory_order(a: Tensor, order: str | None) -> Tensor:
    """A Tensor itself if it lies in memory in an order ("C", "F", or "K", "A" and None for any), else a copy that
    does."""
    if order in (None, "K", "A"):
        return a
    order = memory_order(a, order, "C", "F")
    return a if shared_memory.is_in_order(a, order) else wrap(copied(a._node, order))


def ascontiguousarray(a: Any, dtype: Any = None, **options: Any) -> Tensor:
    """`asarray` in C order and with at least one axis."""
    return asarray(at_least_one_axis(a), dtype, "C", **options)


def asfortranarray(a: Any, dtype: Any = None, **options: Any) -> Tensor:
    """`asarray` in Fortran's order and with at least one axis."""
    return asarray(at_least_one_axis(a), dtype, "F", **options)


def at_least_one_axis(a: Any) -> Any:
    """A 0-d array as an array of one element; others as they are."""
    return a if as_node(a).ndim else atleast_1d(a)
