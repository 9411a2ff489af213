"""Shapes under MindSpore's names: reshape, permute, join, split, repeat, pad, triangles, and facts about shapes.

In: Tensors, ndarrays, numbers, axes. Out: Tensors, tuples of Tensors, Python ints. Called by users and by
class_forms.py. All is movement: no element is computed, and the compiler turns it into index maps on reads.
"""

from __future__ import annotations

import math
from functools import wraps
from typing import Any

from ..errors import ArgumentError, RangeError, ShapeError
from ..functions.analysis.padding import pad as with_border
from ..functions.arrays import creation, cumulative, joining, shaping
from ..graph.builders import reshape as reshape_node
from ..graph.builders import slice_axes
from ..graph.builders import transpose as transpose_node
from ..graph.shapes import Shape
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import axis_of, cut, integer, integers
from ..record.tensor import Tensor
from .declarations import also, as_numpy, spelled
from .docstrings import documented

# ----- Facts -----


@spelled
def shape(input_x: Any) -> Shape:
    """The extents of the axes, a tuple of ints."""
    return as_node(input_x).shape


@spelled
def rank(input_x: Any) -> int:
    """The number of axes."""
    return as_node(input_x).ndim


@spelled
def size(input_x: Any) -> int:
    """The number of elements."""
    return as_node(input_x).size


numel = size

# ----- Reshape -----


@as_numpy(shaping.reshape)
def reshape(input: Any, shape: Any) -> Tensor:
    """An array with the elements of another, in another shape.

    shape : int or tuple of int
        One extent may be -1: it is what is left.
    ShapeError : If the elements do not fill the shape.

    >>> nb.ops.reshape(nb.Tensor([1.0, 2.0, 3.0, 4.0]), (2, -1)).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    ...


@spelled
def flatten(input: Any, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """Axes from `start_dim` to `end_dim` made one; by default all but the first, which counts the samples of a batch.

    input : Tensor, ndarray or number
        With less than two axes, the result has one.
    order : {"C", "F"}
        "F" reverses the axes first, as in MindSpore.
    ArgumentError : If `order` is something else.
    ShapeError : If an axis does not exist, or `start_dim` comes after `end_dim`.

    >>> nb.ops.flatten(nb.ops.ones((2, 3, 4))).shape
    (2, 12)
    """
    if order not in ("C", "F"):
        message = f"flatten knows the orders 'C' and 'F', but got {order!r}."
        raise ArgumentError(message)
    node = as_node(input)
    if node.ndim < 2:
        return wrap(reshape_node(node, (node.size,)))
    if order == "F":
        node = transpose_node(node, tuple(range(node.ndim))[::-1])
    first, last = axis_of(start_dim, node.ndim), axis_of(end_dim, node.ndim)
    if first > last:
        message = f"flatten needs start_dim before end_dim, but for shape {node.shape} they are {first} and {last}."
        raise ShapeError(message)
    middle = math.prod(node.shape[first : last + 1])
    return wrap(reshape_node(node, (*node.shape[:first], middle, *node.shape[last + 1 :])))


@as_numpy(shaping.ravel, "The elements in one axis.")
def ravel(input: Any) -> Tensor: ...


@spelled
def squeeze(input: Any, axis: Any = None) -> Tensor:
    """Axes of extent 1 removed: those given, or, for None or (), all of them."""
    return shaping.squeeze(input, None if isinstance(axis, tuple | list) and not axis else axis)


@as_numpy(shaping.expand_dims, "A new axis of extent 1 at a position of the result (or several).")
def expand_dims(input_x: Any, axis: Any) -> Tensor: ...


unsqueeze = expand_dims


def _of_each(function: Any) -> Any:
    """A function of NumPy's, which gives a tuple for one list or tuple of Tensors, too."""

    @wraps(function)
    def apply(*arys: Any, inputs: Any = ()) -> Any:
        arys = (*arys, inputs) if len(inputs) else arys
        if len(arys) == 1 and isinstance(arys[0], list | tuple) and any(isinstance(one, Tensor) for one in arys[0]):
            return tuple([function(one) for one in arys[0]])
        return function(*arys)

    return apply


atleast_1d, atleast_2d, atleast_3d = map(_of_each, (shaping.atleast_1d, shaping.atleast_2d, shaping.atleast_3d))

# ----- Permute -----


@also(input_perm="dims")
@as_numpy(shaping.transpose)
def transpose(input: Any, input_perm: Any) -> Tensor:
    """Axes permuted.

    input_perm : tuple of int
        Axis k of the result is axis `input_perm[k]` of the input.
    ShapeError : If `input_perm` is no permutation of the axes.

    >>> nb.ops.transpose(nb.ops.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    ...


@as_numpy(shaping.transpose, "As `transpose`.")
def permute(input: Any, axis: Any) -> Tensor: ...


def swapaxes(input: Any, axis0: int, axis1: int) -> Tensor:
    """Two axes exchanged."""
    return shaping.swapaxes(input, axis0, axis1)


@as_numpy(shaping.swapaxes, "Two axes exchanged.")
def swapdims(input: Any, dim0: int, dim1: int) -> Tensor: ...
@as_numpy(shaping.moveaxis, "Axes moved to other positions; the others keep their order.")
def moveaxis(x: Any, source: Any, destination: Any) -> Tensor: ...


movedim = moveaxis

# ----- Broadcast -----


@spelled
def broadcast_to(input: Any, shape: Any) -> Tensor:
    """The array read as a larger shape; takes no memory.

    shape : tuple of int
        -1 keeps the extent that the input has there.
    ShapeError : If the shape does not fit, or -1 stands where the input has no axis.

    >>> nb.ops.broadcast_to(nb.Tensor([1.0, 2.0]), (2, -1)).tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """
    node = as_node(input)
    extents = list(integers(shape, "shape"))
    new = len(extents) - node.ndim
    for place, extent in enumerate(extents):
        if extent == -1:
            if place < new:
                message = f"The shape {tuple(extents)} has -1 at axis {place}, which an array of {node.shape} lacks."
                raise ShapeError(message)
            extents[place] = node.shape[place - new]
    return wrap(shaping.broadcast_node(node, extents))


@as_numpy(broadcast_to, "As `broadcast_to`.")
def expand(input_x: Any, size: Any) -> Tensor: ...


@spelled
def expand_as(input: Any, other: Any = None, x: Any = None) -> Tensor:
    """The array read in the shape of another, which may be called `x`."""
    return wrap(shaping.broadcast_node(as_node(input), as_node(x if other is None else other).shape))


@as_numpy(creation.meshgrid, "Coordinates of a grid from its 1-d axes.")
def meshgrid(*inputs: Any, indexing: str = "xy") -> tuple[Tensor, ...]: ...


# ----- Join and split -----


@spelled
def concat(tensors: Any, axis: int = 0) -> Tensor:
    """Arrays joined along an axis.

    tensors : list or tuple of Tensor
        Their other extents are equal; their dtypes are promoted.
    ShapeError : If other extents differ, the axis does not exist, or there is no array.

    >>> nb.ops.concat((nb.Tensor([1.0]), nb.Tensor([2.0, 3.0]))).tolist()
    [1.0, 2.0, 3.0]
    """
    return joining.concatenate(tensors, integer(axis, "axis"))


cat = concat


@as_numpy(joining.stack, "Arrays of one shape joined along a new axis.")
def stack(tensors: Any, axis: int = 0) -> Tensor: ...


@also(tensors="inputs tup")
@as_numpy(joining.hstack, "Arrays joined along the second axis; vectors along their only one.")
def hstack(tensors: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tensor: ...
@also(tensors="inputs tup")
@as_numpy(joining.vstack, "Arrays joined along the first axis; vectors are rows.")
def vstack(tensors: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tensor: ...
@also(tensors="inputs tup")
@as_numpy(joining.dstack, "Arrays joined along the third axis, which those of fewer axes get.")
def dstack(tensors: Any) -> Tensor: ...
@also(tensors="inputs tup")
@as_numpy(joining.column_stack, "Arrays joined along the second axis; vectors are columns.")
def column_stack(tensors: Any) -> Tensor: ...


row_stack = vstack


@spelled
def split(
    tensor: Any, split_size_or_sections: Any = None, axis: int = 0, *, output_num: int | None = None
) -> tuple[Tensor, ...]:
    """Parts along an axis: either `split_size_or_sections` or `output_num` is needed.

    tensor : Tensor or ndarray
    split_size_or_sections : int or list of int
        The length of each part (the last may be shorter), or the lengths of all.
    output_num : int, optional
        The number of equal parts, as in MindSpore before 2.0.
    -> tuple of Tensor
    ArgumentError : If a length is not positive, or neither or both of lengths and `output_num` are given.
    ShapeError : If the lengths do not add up to the extent of the axis.

    >>> [part.tolist() for part in nb.ops.split(nb.ops.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    node = as_node(tensor)
    at = axis_of(axis, node.ndim)
    n = node.shape[at]
    if (split_size_or_sections is None) == (output_num is None):
        message = "split takes the lengths of the parts (split_size_or_sections), or else their number (output_num)."
        raise ArgumentError(message)
    if output_num is not None:
        count = integer(output_num, "output_num")
        if count <= 0 or n % count:
            message = f"An axis of extent {n} cannot be split into {count} equal parts."
            raise ShapeError(message)
        lengths = [n // count] * count
    elif isinstance(split_size_or_sections, list | tuple):
        lengths = integers(split_size_or_sections, "split_size_or_sections")
        if sum(lengths) != n or any(length < 0 for length in lengths):
            message = (
                f"The lengths {lengths} are not parts of axis {at} of shape {node.shape}: they must add up to {n}."
            )
            raise ShapeError(message)
    else:
        width = integer(split_size_or_sections, "split_size_or_sections")
        if width <= 0:
            message = f"The length of the parts must be positive, but got {width}."
            raise ArgumentError(message)
        lengths = [min(width, n - start) for start in range(0, n, width)] or [0]
    parts, start = [], 0
    for length in lengths:
        parts.append(wrap(cut(node, at, start, length)))
        start += length
    return tuple(parts)


@spelled
def chunk(input: Any, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """At most so many parts of equal length along an axis; the last may be shorter."""
    node, count = as_node(input), integer(chunks, "chunks")
    if count <= 0:
        message = f"The number of chunks must be positive, but got {count}."
        raise ArgumentError(message)
    n = node.shape[axis_of(axis, node.ndim)]
    return split(Tensor._of(node), -(-n // count) if n else [0] * count, axis)


@as_numpy(
    joining.array_split,
    "Parts along an axis whose lengths differ by at most one, or the parts between given positions.",
    result=tuple,
)
def tensor_split(input: Any, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]: ...
@as_numpy(
    joining.hsplit,
    "Equal parts along the second axis, of a 1-d array along its only one, or the parts between positions.",
    result=tuple,
)
def hsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]: ...
@as_numpy(joining.vsplit, "Equal parts along the first axis, or the parts between given positions.", result=tuple)
def vsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]: ...
@as_numpy(joining.dsplit, "Equal parts along the third axis, or the parts between given positions.", result=tuple)
def dsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]: ...
@as_numpy(joining.unstack, "The arrays along an axis, which disappears.")
def unstack(input_x: Any, axis: int = 0) -> tuple[Tensor, ...]: ...


unbind = unstack


@spelled
def narrow(input: Any, axis: int, start: int, length: int) -> Tensor:
    """`length` positions of an axis from `start` on.

    RangeError : If the axis has no such positions.
    """
    node = as_node(input)
    at = axis_of(axis, node.ndim)
    first, count = integer(start, "start"), integer(length, "length")
    n = node.shape[at]
    first += n if first < 0 else 0
    if not (0 <= first <= n and 0 <= count <= n - first):
        message = f"Axis {at} of shape {node.shape} has no {count} positions from {start} on."
        raise RangeError(message)
    return wrap(cut(node, at, first, count))


# ----- Repeat -----


@also(multiples="reps dims")
@as_numpy(joining.tile, "The array repeated as a whole along each axis.")
def tile(input: Any, multiples: Any) -> Tensor: ...
@spelled
def repeat_interleave(input: Any, repeats: Any, axis: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Each element repeated along an axis (of the flat array, if None); `repeats` may be one number per position.

    axis : int, optional
    output_size : int, optional
        Has no effect: the extent follows from `repeats`.
    """
    del output_size
    return joining.repeat(input, repeats, axis)


def repeat_elements(x: Any, rep: int, axis: int = 0) -> Tensor:
    """Each element along an axis repeated `rep` times in a row."""
    return joining.repeat(x, integer(rep, "rep"), axis)


# ----- Order along axes -----


@as_numpy(shaping.flip, "Order reversed along axes.")
def flip(input: Any, dims: Any) -> Tensor: ...


@also(input="m")
@as_numpy(shaping.fliplr, "Order reversed along the second axis.")
def fliplr(input: Any) -> Tensor: ...
@also(input="m")
@as_numpy(shaping.flipud, "Order reversed along the first axis.")
def flipud(input: Any) -> Tensor: ...


@as_numpy(
    shaping.roll,
    "Elements shifted along axes (of the flat array, if None); those that leave one end come back at the other.",
)
def roll(input: Any, shifts: Any, dims: Any = None) -> Tensor: ...
@as_numpy(shaping.rot90, "Turned `k` times by a quarter in the plane of two axes.")
def rot90(input: Any, k: int, dims: Any) -> Tensor: ...
@as_numpy(cumulative.diff, "Differences of neighbours along an axis, `n` times.")
def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor: ...


# ----- Triangles and diagonals -----


@as_numpy(creation.tril, "The elements on and below a diagonal of the last two axes, zeros above.")
def tril(input: Any, diagonal: int = 0) -> Tensor: ...
@as_numpy(creation.triu, "The elements on and above a diagonal of the last two axes, zeros below.")
def triu(input: Any, diagonal: int = 0) -> Tensor: ...


@documented
def diag(input: Any) -> Tensor:
    """The array on the diagonal of a new one that has each of its axes twice, and zeros elsewhere.

    A vector gives a matrix. (To read the diagonal of a matrix, use `diagonal`.)

    input : Tensor or ndarray
        At least 1-d.
    -> Tensor
        Of shape `(*input.shape, *input.shape)`.
    ShapeError : If the input is 0-d.

    >>> nb.ops.diag(nb.Tensor([1.0, 2.0])).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    node = as_node(input)
    if node.ndim == 0:
        message = "diag needs at least one axis, but the input is 0-d."
        raise ShapeError(message)
    matrix = creation.diagonal_matrix(reshape_node(node, (node.size,)), 0)
    return wrap(reshape_node(matrix, node.shape * 2))


@as_numpy(creation.diagonal, "The diagonal of two axes, as a new last axis.")
def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor: ...


# ----- Borders -----

_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@spelled
def pad(input_x: Any, padding: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """The array with borders.

    padding : tuple of int
        Widths (before, after) of the last axis, then of the one before it, and so on: an even number of ints. With
        mode "constant", negative widths cut off elements.
    mode : {"constant", "reflect", "replicate", "circular"}
        The border: `value`; or the elements mirrored at the edge, the edge itself, or the elements of the other end.
    value : number, optional
        For mode "constant"; 0 by default. A Tensor differentiates.
    ArgumentError : If the mode does not exist, or has no use for `value`.
    ShapeError : If the number of widths is odd or too large, or a width does not fit the axis.

    >>> nb.ops.pad(nb.Tensor([[1.0, 2.0]]), (1, 0, 0, 1)).tolist()
    [[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]]
    """
    node = as_node(input_x)
    widths = _widths(integers(padding, "padding"), node.shape)
    if mode == "constant":
        kept = [(max(-lo, 0), max(-hi, 0)) for lo, hi in widths]
        node = slice_axes(node, [(lo, n - lo - hi, 1) for n, (lo, hi) in zip(node.shape, kept, strict=True)])
        widths = [(max(lo, 0), max(hi, 0)) for lo, hi in widths]
        return with_border(Tensor._of(node), widths, constant_values=0 if value is None else value)
    if mode not in _MODES:
        message = f"pad knows the modes 'constant', {', '.join(map(repr, _MODES))}, but got {mode!r}."
        raise ArgumentError(message)
    if value is not None:
        message = f"pad takes a value for mode 'constant' only, but the mode is {mode!r}."
        raise ArgumentError(message)
    most = {"reflect": 1, "circular": 0}
    for axis, (n, pair) in enumerate(zip(node.shape, widths, strict=True)):
        if min(pair) < 0 or (mode in most and max(pair) > max(n - most[mode], 0)):
            message = f"The widths {pair} of mode {mode!r} do not fit axis {axis} of shape {node.shape}."
            raise ShapeError(message)
    return with_border(Tensor._of(node), widths, _MODES[mode])


def _widths(flat: tuple[int, ...], shape: Shape) -> list[tuple[int, int]]:
    """Pairs of widths per axis, from those of the last axes, last axis first."""
    if len(flat) % 2 or len(flat) > 2 * len(shape):
        message = f"padding needs an even number of widths, at most {2 * len(shape)} for shape {shape}, but got {flat}."
        raise ShapeError(message)
    pairs = [(flat[k], flat[k + 1]) for k in range(0, len(flat), 2)]
    result = [*[(0, 0)] * (len(shape) - len(pairs)), *reversed(pairs)]
    for n, (lo, hi) in zip(shape, result, strict=True):
        if n + min(lo, 0) + min(hi, 0) < 0:
            message = f"The widths {flat} cut off more elements than the shape {shape} has."
            raise ShapeError(message)
    return result
