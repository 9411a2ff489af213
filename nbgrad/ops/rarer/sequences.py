"""Sequences, sets and blocks: repeated elements, reversed beginnings, blocks of space, distances, decoders.

In: arrays and options. Out: Tensors. Called by users; class_table.py names some of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy

from ...errors import ArgumentError, ShapeError
from ...record.axes_and_dtypes import axis_of, integer
from ...record.tensor import Tensor
from ..declarations import spelled
from ..docstrings import documented
from ..reduction_functions import median
from .special_values import float_of, value_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""

# ----- Sets -----


@spelled
def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None
) -> Any:
    """The elements without those that equal the one before; the values must be known.

    return_inverse : bool
        Whether to give the position of each element among the kept ones, too.
    return_counts : bool
        Whether to give the lengths of the runs, too.
    axis : int, optional
        Compare slices along an axis; all elements, if None.
    -> Tensor, or tuple of Tensor
    """
    x = value_of(input)
    flat = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
    known = np.asarray(flat)
    differs = known[1:] != known[:-1]
    first = np.concatenate([[True][: known.shape[0]], differs.reshape(differs.shape[0], -1).any(axis=1)]).astype(bool)
    starts = np.flatnonzero(first)
    kept = flat[starts]
    found: list[Any] = [kept if axis is None else np.moveaxis(kept, 0, axis)]
    if return_inverse:
        run = np.cumsum(first) - 1
        found.append(Tensor(run.reshape(x.shape) if axis is None else run))
    if return_counts:
        found.append(Tensor(np.diff(np.append(starts, known.shape[0]))))
    return found[0] if len(found) == 1 else tuple(found)


@documented
def unique_with_pad(x: Any, pad_num: Any) -> tuple[Tensor, Tensor]:
    """The different elements of a vector in the order of their first place, with numbers after them, and positions.

    pad_num : number
        Fills the result to the length of x.
    """
    array = np.asarray(value_of(x))
    _, first, inverse = np.unique(array, return_index=True, return_inverse=True)
    order = np.argsort(first)
    values = np.full_like(array, np.asarray(pad_num))
    values[: order.size] = array[first[order]]
    return Tensor(values), Tensor(np.argsort(order)[inverse].astype(array.dtype if array.dtype.kind in "iu" else int))


@documented
def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` elements of a vector, one a row.

    r : int
    with_replacement : bool
        Whether an element may be chosen again.
    """
    x = value_of(input)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array(list(choose(range(x.shape[0]), integer(r, "r"))), np.int64).reshape(-1, r)
    return x[places]


@documented
def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """The numbers of elements in bins of equal width from `min` to `max`, in the dtype of the input.

    bins : int
    min, max : float
        The ends; those of the elements if both are 0. Elements outside do not count.
    """
    x = value_of(input)
    array = np.asarray(x).reshape(-1)
    low, high = (array.min(), array.max()) if min == max == 0 and array.size else (min, max)
    low, high = (low - 1, high + 1) if low == high else (low, high)
    return Tensor(np.histogram(array, bins, (low, high))[0].astype(np.dtype(x.dtype.name)))


@spelled
def nanmedian(input: Any, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The lower middle element of the numbers along an axis, without NaN, and its position; NaN where there is none."""
    x = value_of(input)
    at = axis_of(axis, x.ndim)
    missing = np.isnan(x)
    order = np.argsort(x, at, kind="stable")
    count = np.sum(~missing, at, keepdims=True)
    middle = np.maximum((count - 1) // 2, 0)
    place = np.take_along_axis(order, middle, at)
    value = np.take_along_axis(x, place, at)
    return (value, place) if keepdims else (np.squeeze(value, at), np.squeeze(place, at))


def median_of(x: Any, global_median: bool, axis: int, keep_dims: bool, ignore_nan: bool) -> tuple[Tensor, Tensor]:
    """The median along an axis or of all elements, and its position."""
    find = nanmedian if ignore_nan else median
    if not global_median:
        return find(x, axis, keep_dims)
    value, _ = find(value_of(x).reshape(-1), 0, False)
    return value, Tensor(0)


@documented
def msort(input: Any) -> Tensor:
    """The elements sorted along the first axis."""
    return np.sort(value_of(input), 0)


@documented
def intopk(x1: Any, x2: Any, k: int) -> Tensor:
    """Whether the element of each row at a position is one of its `k` greatest.

    x1 : Tensor or ndarray, shape (rows, n)
    x2 : Tensor or ndarray of int, shape (rows,)
    k : int
    """
    rows, at = value_of(x1), value_of(x2)
    chosen = np.take_along_axis(rows, at[:, None], 1)
    return np.sum(rows > chosen, 1) < k


# ----- Masks, order -----


@documented
def sequence_mask(lengths: Any, maxlen: int | None = None) -> Tensor:
    """Rows that are true up to a length.

    lengths : Tensor or ndarray of int
    maxlen : int, optional
        The extent of the new last axis; the greatest length by default.
    """
    x = value_of(lengths)
    count = int(np.asarray(x).max(initial=0)) if maxlen is None else integer(np.asarray(maxlen).item(), "maxlen")
    return np.arange(count) < x[..., None]


@documented
def reverse_sequence(x: Any, seq_lengths: Any, seq_dim: int, batch_dim: int = 0) -> Tensor:
    """The beginnings of sequences in reversed order.

    x : Tensor or ndarray
    seq_lengths : Tensor or ndarray of int
        The number of elements to reverse, for each position of `batch_dim`.
    seq_dim, batch_dim : int
        The axes.
    """
    array, lengths = value_of(x), value_of(seq_lengths)
    along, batch = axis_of(seq_dim, array.ndim), axis_of(batch_dim, array.ndim)
    place = np.arange(array.shape[along])
    order = np.where(place < lengths[:, None], lengths[:, None] - 1 - place, place)
    shape = [1] * array.ndim
    shape[batch], shape[along] = order.shape
    order = (order if batch < along else order.T).reshape(shape)
    return np.take_along_axis(array, np.broadcast_to(order, array.shape), along)


def inverse_permutation(input_x: Sequence[int]) -> tuple[int, ...]:
    """The positions of 0, 1, 2, ... in a permutation."""
    order = [int(place) for place in input_x]
    if sorted(order) != list(range(len(order))):
        message = f"InvertPermutation needs each number from 0 to {len(order) - 1} once, but got {order}."
        raise ArgumentError(message)
    return tuple([order.index(k) for k in range(len(order))])


def other_format(input_x: Any, src_format: str, dst_format: str) -> Tensor:
    """The axes of one order of letters, such as "NHWC", as axes of another order."""
    order = np.array([src_format.index(letter) for letter in dst_format])
    x = value_of(input_x)
    return value_of(order.astype(np.dtype(x.dtype.name)))[np.where(x < 0, x + len(order), x)]


# ----- Blocks -----


@documented
def space_to_batch_nd(input_x: Any, block_size: Any, paddings: Any) -> Tensor:
    """Every position within blocks of the last axes as further rows of the batch.

    block_size : int or list of int
        The extents of a block.
    paddings : list of pairs of int
        Zeros before and after the axes.
    """
    x = value_of(input_x)
    ends = [tuple(pair) for pair in np.asarray(paddings).tolist()]
    sizes = list(block_size) if isinstance(block_size, list | tuple) else [block_size] * len(ends)
    first = x.ndim - len(sizes)
    x = np.pad(x, [(0, 0)] * first + ends)
    shape = list(x.shape[:first])
    for extent, size in zip(x.shape[first:], sizes, strict=True):
        if extent % size:
            message = f"Blocks of {size} do not divide an axis of extent {extent}."
            raise ShapeError(message)
        shape += [extent // size, size]
    inner = [first + 2 * k + 1 for k in range(len(sizes))]
    outer = [first + 2 * k for k in range(len(sizes))]
    moved = np.transpose(x.reshape(shape), (*inner, *range(first), *outer))
    return moved.reshape((-1, *x.shape[1:first], *[shape[k] for k in outer]))


@documented
def batch_to_space_nd(input_x: Any, block_shape: Any, crops: Any) -> Tensor:
    """The inverse of `space_to_batch_nd`, with elements cut off from the ends of axes.

    block_shape : int or list of int
    crops : list of pairs of int
    """
    x = value_of(input_x)
    ends = [tuple(pair) for pair in np.asarray(crops).tolist()]
    sizes = list(block_shape) if isinstance(block_shape, list | tuple) else [block_shape] * len(ends)
    first, count = x.ndim - len(sizes), len(sizes)
    batch = x.shape[0] // int(np.prod(sizes))
    apart = x.reshape((*sizes, batch, *x.shape[1:]))
    order = [*range(count, count + first)]
    for k in range(count):
        order += [count + first + k, k]
    extents = [n * size for n, size in zip(x.shape[first:], sizes, strict=True)]
    joined = np.transpose(apart, order).reshape((batch, *x.shape[1:first], *extents))
    return joined[(..., *[slice(low, n - high) for (low, high), n in zip(ends, extents, strict=True)])]


@documented
def mirror_pad(input_x: Any, paddings: Any, mode: str) -> Tensor:
    """The array with borders that mirror it.

    paddings : Tensor or list of pairs of int
        Widths before and after each axis.
    mode : {"REFLECT", "SYMMETRIC"}
        Whether the mirror stands on the last element, or behind it.
    """
    return np.pad(value_of(input_x), [tuple(pair) for pair in np.asarray(paddings).tolist()], mode=mode.lower())


@documented
def padding(x: Any, pad_dim_size: int = 8) -> Tensor:
    """A last axis of extent 1 filled with zeros to an extent.

    pad_dim_size : int
    ShapeError : If the last axis has another extent.
    """
    array = value_of(x)
    if array.ndim < 2 or array.shape[-1] != 1:
        message = f"padding needs at least two axes, the last of extent 1, but the shape is {array.shape}."
        raise ShapeError(message)
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, pad_dim_size - 1)])


@documented
def channel_shuffle(x: Any, groups: int) -> Tensor:
    """Channels (axis 1) in another order: the first of each group, then the second, and so on.

    groups : int
    ShapeError : If the groups do not divide the channels.
    """
    array = value_of(x)
    if array.shape[1] % groups:
        message = f"{groups} groups do not divide {array.shape[1]} channels."
        raise ShapeError(message)
    apart = array.reshape((array.shape[0], groups, -1, *array.shape[2:]))
    return np.swapaxes(apart, 1, 2).reshape(array.shape)


@documented
def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """Channels as blocks of pixels: (..., C r r, H, W) becomes (..., C, H r, W r).

    upscale_factor : int
        The r.
    ShapeError : If its square does not divide the channels.
    """
    x, r = value_of(input), integer(upscale_factor, "upscale_factor")
    if x.ndim < 3 or r < 1 or x.shape[-3] % (r * r):
        message = f"pixel_shuffle by {r} needs images with channels in multiples of {r * r}, but got {x.shape}."
        raise ShapeError(message)
    *lead, channels, height, width = x.shape
    n = len(lead)
    apart = x.reshape((*lead, channels // (r * r), r, r, height, width))
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return np.transpose(apart, order).reshape((*lead, channels // (r * r), height * r, width * r))


@documented
def pixel_unshuffle(input: Any, downscale_factor: int) -> Tensor:
    """The inverse of `pixel_shuffle`.

    downscale_factor : int
    ShapeError : If it does not divide the extents of the images.
    """
    x, r = value_of(input), integer(downscale_factor, "downscale_factor")
    if x.ndim < 3 or r < 1 or x.shape[-2] % r or x.shape[-1] % r:
        message = f"pixel_unshuffle by {r} needs images with extents in multiples of {r}, but got {x.shape}."
        raise ShapeError(message)
    *lead, channels, height, width = x.shape
    n = len(lead)
    apart = x.reshape((*lead, channels, height // r, r, width // r, r))
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return np.transpose(apart, order).reshape((*lead, channels * r * r, height // r, width // r))


# ----- Distances and products -----


@documented
def dist(input: Any, other: Any, p: float = 2) -> Tensor:
    """The p-norm of a difference.

    p : float
    """
    size = np.abs(float_of(input) - float_of(other))
    if p == np.inf:
        return np.max(size)
    return np.sqrt(np.sum(size**2)) if p == 2 else np.sum(size**p) ** (1.0 / p)


@documented
def pdist(input: Any, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all pairs of rows.

    input : Tensor or ndarray, shape (..., n, m)
    p : float
    -> Tensor, shape (..., n (n - 1) / 2)
    """
    x = float_of(input)
    first, second = np.triu_indices(x.shape[-2], 1)
    size = np.abs(x[..., first, :] - x[..., second, :])
    if p == np.inf:
        return np.max(size, -1)
    if p == 0:
        return np.sum(size != 0, -1).astype(np.dtype(x.dtype.name))
    total = np.sum(size**p, -1)
    apart = total > 0
    return np.where(apart, np.where(apart, total, 1) ** (1.0 / p), 0 * total)


@spelled
def renorm(input: Any, p: float, axis: int, maxnorm: float) -> Tensor:
    """Slices along an axis, those whose p-norm is above a limit shortened to it.

    p, maxnorm : float
    """
    x = float_of(input)
    others = tuple([k for k in range(x.ndim) if k != axis_of(axis, x.ndim)])
    length = np.sum(np.abs(x) ** p, others, keepdims=True) ** (1.0 / p)
    return np.where(length > maxnorm, x * (maxnorm / np.where(length > 0, length, 1)), x)


@documented
def batch_dot(x1: Any, x2: Any, axes: Any = None) -> Tensor:
    """Products of two batches, summed over one axis of each.

    axes : int or pair of int, optional
        The axes; by default the last one and the one before the last one, or of matrices the last ones.
    """
    a, b = value_of(x1), value_of(x2)
    if axes is None:
        axes = (a.ndim - 1, 1) if b.ndim == 2 else (a.ndim - 1, b.ndim - 2)
    pair = (axes, axes) if isinstance(axes, int) else tuple(axes)
    first, second = axis_of(pair[0], a.ndim), axis_of(pair[1], b.ndim)
    left, right = np.moveaxis(a, first, -1), np.moveaxis(b, second, 1)
    product = left.reshape((a.shape[0], -1, left.shape[-1])) @ right.reshape((b.shape[0], right.shape[1], -1))
    shape = (a.shape[0], *left.shape[1:-1], *right.shape[2:])
    return product.reshape(shape if len(shape) > 1 else (*shape, 1))


@documented
def bias_add(input_x: Any, bias: Any) -> Tensor:
    """A vector added along the axis of channels, the second one.

    bias : Tensor or ndarray, shape (channels,)
    """
    x, row = value_of(input_x), value_of(bias)
    if x.ndim < 2 or row.shape != (x.shape[1],):
        message = f"bias_add needs one number for each channel of {x.shape}, but got the shape {row.shape}."
        raise ShapeError(message)
    return x + row.reshape((-1,) + (1,) * (x.ndim - 2))


def row_norms(x: Any, p: float, dim: int, maxnorm: float) -> Tensor:
    """`renorm` with the parameter names of its class form."""
    return renorm(x, p, dim, maxnorm)


@documented
def deepcopy(input_x: Any) -> Tensor:
    """A copy."""
    return value_of(input_x).copy()


@documented
def view_as(input: Any, other: Any) -> Tensor:
    """The elements in the shape of another array."""
    return value_of(input).reshape(value_of(other).shape)


@documented
def dyn_shape(input_x: Any) -> Tensor:
    """The extents of the axes as a Tensor of int64."""
    return Tensor(np.array(value_of(input_x).shape, np.int64))


def equal_count(x: Any, y: Any) -> Tensor:
    """The number of elements that are equal, in an array of one element."""
    a, b = value_of(x), value_of(y)
    return np.sum(a == b).reshape(1).astype(np.dtype(a.dtype.name))


# ----- Decoders -----


@documented
def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The likeliest label of each step, without blanks (the last class).

    inputs : Tensor or ndarray, shape (steps, batch, classes)
    sequence_length : Tensor or ndarray of int, shape (batch,)
    merge_repeated : bool
        Whether equal labels that follow each other count once.
    -> indices : Tensor
        Row and place of each label.
    -> values : Tensor
        The labels.
    -> shape : Tensor
        The number of rows, and of labels in the longest one.
    -> log_probability : Tensor, shape (batch, 1)
        Minus the sum of the greatest inputs.
    """
    x, lengths = np.asarray(value_of(inputs)), np.asarray(value_of(sequence_length))
    best = x.argmax(axis=2)
    rows: list[list[int]] = []
    score = np.zeros((x.shape[1], 1), x.dtype)
    for row, length in enumerate(lengths.tolist()):
        labels = best[:length, row]
        score[row] = -x[:length, row].max(axis=1).sum()
        changed = np.append(True, labels[1:] != labels[:-1]) if merge_repeated else np.ones(length, bool)
        rows.append(labels[changed[:length] & (labels != x.shape[2] - 1)].tolist())
    places = [(row, place) for row, labels in enumerate(rows) for place in range(len(labels))]
    values = [label for labels in rows for label in labels]
    longest = max([len(labels) for labels in rows], default=0)
    return (
        Tensor(np.array(places, np.int64).reshape(-1, 2)),
        Tensor(np.array(values, np.int64)),
        Tensor(np.array([len(rows), longest], np.int64)),
        Tensor(score),
    )
