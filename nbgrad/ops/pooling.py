"""Pooling and resampling of images.

In: images `(N, C, H, W)` or `(C, H, W)`, or signals `(N, C, L)` or `(C, L)`. Out: Tensors. Called by users and by
nbgrad.nn. A maximum is found by its position (the primitive `window_argmax`) and gathered, so its gradient goes to the
first maximum of each window, as in PyTorch, and derivatives of any order follow. Means are sums along one axis after
the other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..functions.arrays.shaping import swap
from ..functions.linalg.matrix_products import matmul_node
from ..graph.builders import Pair, Windows, cast, gather, iota, reduce, reshape, unfold, window_argmax
from ..graph.ir import INT64, Node, broadcast, constant, extent
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import inexact, integers, scalar, take_positions
from ..record.tensor import Tensor
from .convolution import Sides, image_node, line_ends, pair, sides, span
from .docstrings import documented
from .normalisation import wide

# ----- Windows -----


def _pool_windows(
    size: Pair, kernel: Pair, stride: Pair, dilation: Pair, padding: Sides, ceil_mode: bool, name: str
) -> Windows:
    """The positions of windows. With `ceil_mode` the last one may reach beyond the image, but starts inside of it.

    Raises
    ------
    ShapeError
        If there is no window, or one that lies in the padding only.
    """
    count: list[int] = []
    for n, k, s, d, (before, after) in zip(size, kernel, stride, dilation, padding, strict=True):
        room = n + before + after - span(k, d)
        many = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (many - 1) * s >= n + before:
            many -= 1
        starts = np.arange(max(many, 0)) * s - before
        inside = starts[:, None] + np.arange(k) * d
        if many < 1 or not ((inside >= 0) & (inside < n)).any(axis=1).all():
            message = (
                f"The windows of {name} do not fit: kernel {kernel}, stride {stride}, dilation {dilation} and padding "
                f"{padding} on an input of {size}. Every window must contain a part of the input."
            )
            raise ShapeError(message)
        count.append(many)
    return kernel, stride, dilation, (padding[0][0], padding[1][0]), (count[0], count[1])


def _half(padding: Sides, kernel: Pair, name: str) -> None:
    if any(max(ends) > k / 2 for ends, k in zip(padding, kernel, strict=True)):
        message = f"padding of {name} must be at most half of the kernel {kernel}, but is {padding}."
        raise ArgumentError(message)


def _without_rows(y: Node, batched_input: bool, axes: int) -> Tensor:
    """A result `(N, C, h, w)` with the axes that the input had."""
    shape = y.shape if axes == 2 else (*y.shape[:2], y.shape[3])
    return wrap(reshape(y, shape if batched_input else shape[1:]))


def _line(value: Any, name: str, ahead: int = 1) -> Pair:
    """An argument for one axis as a pair for images of height 1."""
    numbers = integers(value, name)
    if len(numbers) != 1 or numbers[0] < ahead:
        message = f"{name} must be one integer of at least {ahead} here, but is {value!r}."
        raise ArgumentError(message)
    return ahead, numbers[0]


# ----- Maxima -----


def _picked(x: Node, windows: Windows) -> tuple[Node, Node]:
    """(maxima, their flat positions in their planes)."""
    at = window_argmax(x, windows)
    count, channels, height, width = x.shape
    first = reshape(iota(count * channels) * extent(height * width, INT64), (count, channels, 1, 1))
    return gather(reshape(x, (x.size,)), at + first), at


def _max_pool(
    value: Any,
    axes: int,
    kernel: Pair,
    stride: Pair,
    padding: Sides,
    dilation: Pair,
    return_indices: bool,
    ceil_mode: bool,
    name: str,
) -> Any:
    x, batched_input = image_node(value, name, axes)
    _half(padding, (span(kernel[0], dilation[0]), span(kernel[1], dilation[1])), name)
    windows = _pool_windows((x.shape[2], x.shape[3]), kernel, stride, dilation, padding, bool(ceil_mode), name)
    best, at = _picked(x, windows)
    result = _without_rows(best, batched_input, axes)
    return (result, _without_rows(at, batched_input, axes)) if return_indices else result


@documented
def max_pool2d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    return_indices: bool = False,
    ceil_mode: bool = False,
) -> Any:
    """The greatest element of every window.

    x : array-like, shape (N, C, H, W) or (C, H, W)
    kernel_size, dilation : int or pair of int
    stride : int or pair of int, optional
        By default the kernel's size: windows side by side.
    padding : int, pair of int, or (top, bottom, left, right)
        At most half of the kernel. Padding is never the greatest element.
    return_indices : bool
        Also give the positions `row * W + column` of the elements.
    ceil_mode : bool
        Also use windows that reach beyond the padded image, if they start inside of it.
    -> Tensor, shape (N, C, oh, ow) or (C, oh, ow); with `return_indices` a pair of them
    ShapeError, ArgumentError : If windows do not fit.

    Notes
    -----
    Of equal greatest elements the first gets the gradient; NaN wins.

    >>> nb.ops.max_pool2d(nb.numpy.arange(16.0).reshape(1, 4, 4), 2).asnumpy()
    array([[[ 5.,  7.],
            [13., 15.]]])
    """
    kernel = pair(kernel_size, "kernel_size")
    steps = kernel if stride is None else pair(stride, "stride")
    spread = pair(dilation, "dilation")
    return _max_pool(x, 2, kernel, steps, sides(padding), spread, return_indices, ceil_mode, "max_pool2d")


def max_pool1d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    return_indices: bool = False,
    ceil_mode: bool = False,
) -> Any:
    """`max_pool2d` on `(N, C, L)` or `(C, L)`."""
    kernel = _line(kernel_size, "kernel_size")
    steps = kernel if stride is None else _line(stride, "stride")
    ends = _ends(padding)
    return _max_pool(x, 1, kernel, steps, ends, _line(dilation, "dilation"), return_indices, ceil_mode, "max_pool1d")


def _ends(padding: Any) -> Sides:
    """Padding of one axis: a number, or (before, after)."""
    return (0, 0), line_ends(padding)


def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The greatest elements of as many windows as the output has; parameters as in `adaptive_avg_pool2d`."""
    x, batched_input = image_node(input, "adaptive_max_pool2d")
    size = _adaptive_size(output_size, (x.shape[2], x.shape[3]), "adaptive_max_pool2d")
    best, at = _picked(x, ((0, 0), (1, 1), (1, 1), (0, 0), size))
    result = _without_rows(best, batched_input, 2)
    return (result, _without_rows(at, batched_input, 2)) if return_indices else result


# ----- Means -----


def _window_sums(x: Node, windows: Windows) -> Node:
    """The sum of every window, `(N, C, oh, ow)`; zeros outside of the image."""
    (kh, kw), stride, _, before, count = windows
    height, width = x.shape[2:]
    if before == (0, 0) and stride == (kh, kw) and (count[0] * kh, count[1] * kw) == (height, width):
        return reduce("sum", reshape(x, (*x.shape[:2], count[0], kh, count[1], kw)), (3, 5))
    if kh > 1 or stride[0] > 1 or count[0] != height:
        rows = ((kh, 1), (stride[0], 1), (1, 1), (before[0], 0), (count[0], width))
        x = reduce("sum", unfold(x, rows), (1, 2))
    else:
        x = swap(x, 0, 1)
    # Now channels come before examples, and `unfold` swaps them again.
    columns = ((1, kw), (1, stride[1]), (1, 1), (0, before[1]), count)
    return reduce("sum", unfold(x, columns), (1, 2))


def _divisors(size: int, kernel: int, stride: int, ends: Pair, count: int, include_pad: bool) -> np.ndarray:
    """The number of elements of each window, along one axis, that count."""
    start = np.arange(count) * stride - ends[0]
    stop = np.minimum(start + kernel, size + ends[1])
    return stop - start if include_pad else np.minimum(stop, size) - np.maximum(start, 0)


def _avg_pool(
    value: Any,
    axes: int,
    kernel: Pair,
    stride: Pair,
    padding: Sides,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int,
    name: str,
) -> Tensor:
    x, batched_input = image_node(value, name, axes)
    _half(padding, kernel, name)
    size = (x.shape[2], x.shape[3])
    windows = _pool_windows(size, kernel, stride, (1, 1), padding, bool(ceil_mode), name)
    parts = [
        _divisors(size[k], kernel[k], stride[k], padding[k], windows[4][k], bool(count_include_pad)) for k in (0, 1)
    ]
    counts = np.multiply.outer(parts[0], parts[1])
    total = _window_sums(wide(x), windows)
    if divisor or not counts.size or (counts == counts.flat[0]).all():
        result = total / scalar(divisor or (int(counts.flat[0]) if counts.size else 1), total.dtype)
    else:
        result = total / constant(counts.astype(total.dtype))
    return _without_rows(cast(result, x.dtype), batched_input, axes)


@documented
def avg_pool2d(
    input_x: Any,
    kernel_size: Any = 1,
    stride: Any = 1,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int = 0,
) -> Tensor:
    """The mean of every window.

    input_x : array-like, shape (N, C, H, W) or (C, H, W)
    kernel_size : int or pair of int
    stride : int or pair of int
        None means the kernel's size.
    padding : int, pair of int, or (top, bottom, left, right)
        At most half of the kernel.
    ceil_mode : bool
        Also use windows that reach beyond the padded image, if they start inside of it.
    count_include_pad : bool
        Whether padding counts as zeros, or not at all.
    divisor_override : int
        The divisor of sums, instead of the number of elements; 0 for none.
    -> Tensor, shape (N, C, oh, ow) or (C, oh, ow)
    ShapeError, ArgumentError : If windows do not fit.

    Notes
    -----
    Differs from `torch.nn.functional.avg_pool2d`: the default stride is 1, as in MindSpore.

    >>> nb.ops.avg_pool2d(nb.numpy.arange(16.0).reshape(1, 4, 4), 2, 2).asnumpy()
    array([[[ 2.5,  4.5],
            [10.5, 12.5]]])
    """
    kernel = pair(kernel_size, "kernel_size")
    steps = kernel if stride is None else pair(stride, "stride")
    return _avg_pool(
        input_x, 2, kernel, steps, sides(padding), ceil_mode, count_include_pad, divisor_override, "avg_pool2d"
    )


def avg_pool1d(
    input_x: Any,
    kernel_size: Any = 1,
    stride: Any = 1,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """`avg_pool2d` on `(N, C, L)` or `(C, L)`."""
    kernel = _line(kernel_size, "kernel_size")
    steps = kernel if stride is None else _line(stride, "stride")
    return _avg_pool(input_x, 1, kernel, steps, _ends(padding), ceil_mode, count_include_pad, 0, "avg_pool1d")


def _adaptive_size(output_size: Any, size: Pair, name: str) -> Pair:
    """The output's height and width; None keeps the input's."""
    wanted = list(output_size) if isinstance(output_size, list | tuple) else [output_size]
    if len(wanted) not in (1, 2):
        message = f"output_size of {name} must be one or two integers, but is {output_size!r}."
        raise ArgumentError(message)
    found = [
        n if w is None else integers(w, "output_size")[0]
        for n, w in zip(size, wanted * (3 - len(wanted)), strict=False)
    ]
    if min(found) < 1 or min(size) < 1:
        message = f"{name} cannot make an output of {tuple(found)} from an input of {size}."
        raise ShapeError(message)
    return found[0], found[1]


def _adaptive_mean(x: Node, axis: int, count: int) -> Node:
    """Means along one of the last two axes, of windows from floor(y n / count) to ceil((y + 1) n / count)."""
    n = x.shape[axis]
    if n % count == 0:
        split = reshape(x, (*x.shape[:axis], count, n // count, *x.shape[axis + 1 :]))
        if n == count:
            return x
        return cast(reduce("sum", wide(split), (axis + 1,)) / scalar(n // count, wide(x).dtype), x.dtype)
    places, y = np.arange(n), np.arange(count)[:, None]
    inside = (places >= y * n // count) & (places < -(-(y + 1) * n // count))
    weights = constant((inside / inside.sum(axis=1, keepdims=True)).astype(x.dtype))
    moved = x if axis == x.ndim - 1 else swap(x, x.ndim - 2, x.ndim - 1)
    result = matmul_node(moved, swap(weights, 0, 1))
    return result if axis == x.ndim - 1 else swap(result, x.ndim - 2, x.ndim - 1)


@documented
def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """The means of as many windows as the output has.

    input : array-like, shape (N, C, H, W) or (C, H, W)
    output_size : int or pair of (int or None)
        None keeps an extent. Window y of oh reaches from row floor(y * H / oh) to ceil((y + 1) * H / oh).
    -> Tensor, shape (N, C, oh, ow) or (C, oh, ow)
    ShapeError, ArgumentError : If the output's size is not positive.

    >>> nb.ops.adaptive_avg_pool2d(nb.numpy.arange(6.0).reshape(1, 2, 3), 1).asnumpy()
    array([[[2.5]]])
    """
    x, batched_input = image_node(input, "adaptive_avg_pool2d")
    size = _adaptive_size(output_size, (x.shape[2], x.shape[3]), "adaptive_avg_pool2d")
    return _without_rows(_adaptive_mean(_adaptive_mean(x, 2, size[0]), 3, size[1]), batched_input, 2)


def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """`adaptive_avg_pool2d` on `(N, C, L)` or `(C, L)`."""
    x, batched_input = image_node(input, "adaptive_avg_pool1d", 1)
    wanted = output_size if isinstance(output_size, list | tuple) else [output_size]
    size = _adaptive_size([1, *wanted], (1, x.shape[3]), "adaptive_avg_pool1d")
    return _without_rows(_adaptive_mean(x, 3, size[1]), batched_input, 1)


# ----- Resampling -----


def _resampled(x: Node, axis: int, count: int, step: float, mode: str, align_corners: bool) -> Node:
    """Elements at `count` places along an axis, `step` apart."""
    n = x.shape[axis]
    if mode == "nearest-exact":
        return take_positions(x, axis, np.minimum(((np.arange(count) + 0.5) * step).astype(np.int64), n - 1))
    if mode == "nearest":
        if count % n == 0 and step == n / count:
            column = reshape(x, (*x.shape[:axis], n, 1, *x.shape[axis + 1 :]))
            repeated = broadcast(column, (*x.shape[:axis], n, count // n, *x.shape[axis + 1 :]))
            return reshape(repeated, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
        return take_positions(x, axis, np.minimum((np.arange(count) * step).astype(np.int64), n - 1))
    if align_corners:
        place = np.arange(count) * ((n - 1) / (count - 1) if count > 1 else 0.0)
    else:
        place = np.maximum((np.arange(count) + 0.5) * step - 0.5, 0.0)
    low = np.minimum(place.astype(np.int64), n - 1)
    part = (place - low).astype(x.dtype).reshape(count, *[1] * (x.ndim - axis - 1))
    below = take_positions(x, axis, low)
    above = take_positions(x, axis, np.minimum(low + 1, n - 1))
    return below * constant(1 - part) + above * constant(part)


@documented
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Tensor:
    """Resample signals, images or volumes.

    input : array-like, shape (N, C, L), (N, C, H, W) or (N, C, D, H, W)
    size : int or tuple of int, optional
        The extents of the output.
    scale_factor : float or tuple of float, optional
        The output's extents divided by the input's, instead of `size`.
    mode : {"nearest", "nearest-exact", "linear", "bilinear", "trilinear"}
        "nearest" takes the element in which the start of an output's element lies, "nearest-exact" that of its centre.
        "linear" is for signals, "bilinear" for images, "trilinear" for volumes.
    align_corners : bool, optional
        Whether the first and last elements stay where they are; else elements are areas, and their centres count.
    recompute_scale_factor : bool, optional
        Whether places follow from the sizes instead of from `scale_factor`, where it does not give whole sizes.
    -> Tensor, shape (N, C, ol), (N, C, oh, ow) or (N, C, od, oh, ow)
    ArgumentError, ShapeError : If arguments do not fit.

    >>> import numpy as np, nbgrad as nb
    >>> x = np.array([[[0.0, 1.0]]])
    >>> nb.ops.interpolate(x, 4).asnumpy()
    array([[[0., 0., 1., 1.]]])
    >>> nb.ops.interpolate(x, 3, mode="linear", align_corners=True).asnumpy()
    array([[[0. , 0.5, 1. ]]])
    """
    x = inexact(as_node(input))
    needed = {"nearest": (3, 4, 5), "nearest-exact": (3, 4, 5), "linear": (3,), "bilinear": (4,), "trilinear": (5,)}
    if mode not in needed:
        message = f"mode must be one of {', '.join(repr(m) for m in needed)}, but is {mode!r}."
        raise ArgumentError(message)
    if x.ndim not in needed[mode]:
        message = f"interpolate with mode={mode!r} needs an input with {needed[mode][-1]} axes, but it has {x.shape}."
        raise ShapeError(message)
    if align_corners and mode in ("nearest", "nearest-exact"):
        message = f"align_corners is used with straight lines between elements, not with mode {mode!r}."
        raise ArgumentError(message)
    if (size is None) == (scale_factor is None):
        message = "Give interpolate either size or scale_factor."
        raise ArgumentError(message)
    extents = x.shape[2:]
    if 0 in extents:
        message = f"interpolate cannot resample an input of shape {x.shape}, which is empty."
        raise ShapeError(message)
    counts, steps = resampled_sizes(extents, size, scale_factor, bool(recompute_scale_factor))
    for axis, (count, step) in enumerate(zip(counts, steps, strict=True), 2):
        if count != x.shape[axis] or step != 1:
            x = _resampled(x, axis, count, step, mode, bool(align_corners))
    return wrap(x)


def resampled_sizes(
    extents: tuple[int, ...], size: Any, scale_factor: Any, recompute: bool
) -> tuple[list[int], list[float]]:
    """The output's extents, and the distance of its elements in the input."""
    given = size if scale_factor is None else scale_factor
    numbers = list(given) if isinstance(given, list | tuple) else [given] * len(extents)
    if len(numbers) != len(extents):
        message = f"size or scale_factor must have {len(extents)} elements, but is {given!r}."
        raise ArgumentError(message)
    if scale_factor is None:
        counts = [integers(n, "size")[0] for n in numbers]
    else:
        counts = [math.floor(n * float(f)) for n, f in zip(extents, numbers, strict=True)]
    if min(counts) < 1:
        message = f"The output of interpolate would have extents {tuple(counts)}, which must be positive."
        raise ShapeError(message)
    if scale_factor is None or recompute:
        return counts, [n / m for n, m in zip(extents, counts, strict=True)]
    return counts, [1.0 / float(f) for f in numbers]
