"""Convolutions, their adjoints, and windows as columns.

In: images `(N, C, H, W)` (or one, `(C, H, W)`) and filters. Out: Tensors. Called by users and by nbgrad.nn. A
convolution is the primitive `convolve`, which has a kernel of its own; where windows are the pixels themselves, or
filters have many more numbers than there are pixels, it is a matrix product.
"""

from __future__ import annotations

import math
from typing import Any

from ..errors import ArgumentError, ShapeError
from ..graph import builders
from ..graph.builders import Pair, Windows, cast, reshape, transpose
from ..graph.ir import Node, Params, make
from ..graph.window_rows import product_form
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import FLOAT16, FLOAT32, inexact, integer, integers
from ..record.promotion import promote
from ..record.tensor import Tensor
from .docstrings import documented

Sides = tuple[Pair, Pair]
"""Padding as (before, after), for rows and for columns."""
PAD_MODES = ("valid", "same", "pad")
WEIGHTS_PER_PIXEL = 8000
"""Weights for each output of a filter from which on the time is that of reading them."""


# ----- Arguments -----


def pair(value: Any, name: str, least: int = 1) -> Pair:
    """Two integers from one or two."""
    numbers = integers(value, name)
    if len(numbers) == 1:
        numbers *= 2
    if len(numbers) != 2 or min(numbers) < least:
        message = f"{name} must be one or two integers of at least {least}, but is {value!r}."
        raise ArgumentError(message)
    return numbers[0], numbers[1]


def image_node(value: Any, name: str, axes: int = 2) -> tuple[Node, bool]:
    """An input as `(N, C, H, W)` and whether it had a batch axis; with one spatial axis, H is 1."""
    node = inexact(as_node(value))
    if node.ndim not in (axes + 1, axes + 2):
        letters = "CHW"[: axes + 1] if axes == 2 else "CL"
        message = f"The input of {name} must have shape (N, {', '.join(letters)}) or ({', '.join(letters)}), but has "
        message += f"shape {node.shape}."
        raise ShapeError(message)
    batched_input = node.ndim == axes + 2
    shape = node.shape if batched_input else (1, *node.shape)
    if axes == 1:
        shape = (*shape[:2], 1, shape[2])
    return reshape(node, shape), batched_input


def span(kernel: int, dilation: int) -> int:
    """The number of elements that a dilated kernel covers."""
    return (kernel - 1) * dilation + 1


def sides(padding: Any) -> Sides:
    """Padding in MindSpore's forms: one number, one per axis, or (top, bottom, left, right)."""
    numbers = integers(padding, "padding")
    if len(numbers) not in (1, 2, 4) or min(numbers) < 0:
        message = f"padding must be 1, 2 or 4 integers that are not negative, but is {padding!r}."
        raise ArgumentError(message)
    if len(numbers) == 4:
        return (numbers[0], numbers[1]), (numbers[2], numbers[3])
    return (numbers[0], numbers[0]), (numbers[-1], numbers[-1])


def line_ends(padding: Any) -> Pair:
    """Padding of one axis: one number, or (before, after)."""
    numbers = integers(padding, "padding")
    if len(numbers) not in (1, 2) or min(numbers) < 0:
        message = f"padding must be 1 or 2 integers that are not negative, but is {padding!r}."
        raise ArgumentError(message)
    return numbers[0], numbers[-1]


def resolve_padding(pad_mode: str, padding: Any, size: Pair, kernel: Pair, stride: Pair, dilation: Pair) -> Sides:
    """Padding of a convolution in one of MindSpore's modes.

    Raises
    ------
    ArgumentError
        If the mode does not exist, or padding is given in a mode that does not use it.
    """
    if pad_mode not in PAD_MODES:
        message = f"pad_mode must be one of {', '.join(PAD_MODES)}, but is {pad_mode!r}."
        raise ArgumentError(message)
    given = sides(padding)
    if pad_mode == "pad":
        return given
    if given != ((0, 0), (0, 0)):
        message = f"padding={padding!r} is only used with pad_mode='pad', but pad_mode is {pad_mode!r}."
        raise ArgumentError(message)
    if pad_mode == "valid":
        return given
    both: list[Pair] = []
    for n, k, s, d in zip(size, kernel, stride, dilation, strict=True):
        total = max((-(-n // s) - 1) * s + span(k, d) - n, 0)
        both.append((total // 2, total - total // 2))
    return both[0], both[1]


def windows_on(size: Pair, kernel: Pair, stride: Pair, dilation: Pair, padding: Sides, name: str) -> Windows:
    """The windows on images of a size.

    Raises
    ------
    ShapeError
        If a window is larger than the padded image.
    """
    count: list[int] = []
    for n, k, s, d, (before, after) in zip(size, kernel, stride, dilation, padding, strict=True):
        room = n + before + after - span(k, d)
        if room < 0:
            message = (
                f"The windows of {name} are larger than its padded input: kernel {kernel} with dilation {dilation} on "
                f"an image of {size} with padding {padding}."
            )
            raise ShapeError(message)
        count.append(room // s + 1)
    return kernel, stride, dilation, (padding[0][0], padding[1][0]), (count[0], count[1])


def _checked_groups(groups: Any, channels: int, outputs: int, name: str) -> int:
    groups = integer(groups, "groups")
    if groups < 1 or channels % groups or outputs % groups:
        message = (
            f"groups of {name} must divide the {channels} channels of the input and the {outputs} of the output, but "
            f"is {groups}."
        )
        raise ShapeError(message)
    return groups


def _with_bias(y: Node, bias: Any, name: str) -> Node:
    if bias is None:
        return y
    bias_node = as_node(bias)
    if bias_node.shape != (y.shape[1],):
        message = f"The bias of {name} must have shape ({y.shape[1]},), one per output channel, not {bias_node.shape}."
        raise ShapeError(message)
    y, bias_node = promote([y, bias_node])
    return y + reshape(bias_node, (y.shape[1], 1, 1))


# ----- On nodes -----


def _made(name: str, one: Node, other: Node, params: Params, pixels: int) -> Node:
    """A convolution or its transpose, as a product of matrices where that is the better form: where windows are the
    pixels themselves, and where there is little to do beside reading the weights."""
    if one.dtype == FLOAT16:
        # As products of matrices: those of float16 are added in float32.
        return cast(_made(name, cast(one, FLOAT32), cast(other, FLOAT32), params, pixels), FLOAT16)
    few = other.size > WEIGHTS_PER_PIXEL * pixels
    if params[0] == params[1] == (1, 1) or few or 0 in (*one.shape, *other.shape):
        return product_form(name, (one, other), params)
    return make(name, (one, other), params)


def convolve(x: Node, weight: Node, windows: Windows, groups: int) -> Node:
    """`(N, C, H, W)` and `(Cout, C / groups, kh, kw)` to `(N, Cout, oh, ow)`, in one dtype."""
    params = (*windows, x.shape[2:], groups)
    return _made("convolve", x, weight, params, x.shape[0] * math.prod(windows[4]))


def deconvolve(y: Node, weight: Node, windows: Windows, size: Pair, groups: int) -> Node:
    """The transpose of `convolve` in x: `(N, C, oh, ow)` and `(C, Cout / groups, kh, kw)` to `(N, Cout, *size)`."""
    params = (*windows, size, groups)
    return _made("convolve_transposed", y, weight, params, y.shape[0] * math.prod(windows[4]))


# ----- Convolutions -----


@documented
def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    pad_mode: str = "valid",
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution over the last two axes (a cross-correlation, as in every deep-learning library).

    input : array-like, shape (N, C, H, W) or (C, H, W)
    weight : array-like, shape (Cout, C / groups, kh, kw)
    bias : array-like, shape (Cout,), optional
    stride, dilation : int or pair of int
    pad_mode : {"valid", "same", "pad"}
        No padding; zeros around such that the output has ceil(H / stride) rows, the odd one at the end; or as much as
        `padding` says.
    padding : int, pair of int, or (top, bottom, left, right)
        Only for `pad_mode="pad"`.
    groups : int
        Channels are split into groups that do not see each other; C for a depthwise convolution.
    -> Tensor, shape (N, Cout, oh, ow) or (Cout, oh, ow)
    ShapeError, ArgumentError : If shapes do not fit, or padding is given in a mode that does not use it.

    Notes
    -----
    Differs from `torch.nn.functional.conv2d`: padding needs `pad_mode="pad"`.

    >>> x = nb.numpy.arange(9.0).reshape(1, 1, 3, 3)
    >>> nb.ops.conv2d(x, nb.numpy.ones((1, 1, 2, 2))).asnumpy()
    array([[[[ 8., 12.],
             [20., 24.]]]])
    """
    x, batched_input = image_node(input, "conv2d")
    y = _conv(x, inexact(as_node(weight)), bias, stride, pad_mode, padding, dilation, groups, "conv2d")
    return wrap(y if batched_input else reshape(y, y.shape[1:]))


def _conv(
    x: Node,
    weight: Node,
    bias: Any,
    stride: Any,
    pad_mode: str,
    padding: Any,
    dilation: Any,
    groups: Any,
    name: str,
) -> Node:
    if weight.ndim != 4:
        message = f"The weight of {name} has shape {weight.shape}; expected (Cout, C / groups, kh, kw)."
        raise ShapeError(message)
    groups = _checked_groups(groups, x.shape[1], weight.shape[0], name)
    if weight.shape[1] * groups != x.shape[1]:
        message = (
            f"The input of {name} has {x.shape[1]} channels and the weight {weight.shape[1]} in each of {groups} "
            f"groups: the input's shape is {x.shape}, the weight's {weight.shape}."
        )
        raise ShapeError(message)
    x, weight = promote([x, weight])
    size, kernel = (x.shape[2], x.shape[3]), (weight.shape[2], weight.shape[3])
    steps, spread = pair(stride, "stride"), pair(dilation, "dilation")
    around = resolve_padding(pad_mode, padding, size, kernel, steps, spread)
    y = convolve(x, weight, windows_on(size, kernel, steps, spread, around, name), groups)
    return _with_bias(y, bias, name)


def _row(value: Any, name: str, ahead: int) -> tuple[int, int]:
    """An argument for one axis, as a pair for images of height 1."""
    numbers = integers(value, name)
    if len(numbers) != 1:
        message = f"{name} must be one integer for an operation on one axis, but is {value!r}."
        raise ArgumentError(message)
    return ahead, numbers[0]


@documented
def conv1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    pad_mode: str = "valid",
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution over the last axis; parameters as in `conv2d`, with one axis less.

    input : array-like, shape (N, C, L) or (C, L)
    weight : array-like, shape (Cout, C / groups, k)
    bias : array-like, shape (Cout,), optional
    padding : int or (before, after)
    -> Tensor, shape (N, Cout, ol) or (Cout, ol)

    >>> nb.ops.conv1d(nb.numpy.arange(5.0).reshape(1, 5), nb.numpy.ones((1, 1, 2)), stride=2).asnumpy()
    array([[1., 5.]])
    """
    x, batched_input = image_node(input, "conv1d", 1)
    filters = inexact(as_node(weight))
    if filters.ndim != 3:
        message = f"The weight of conv1d has shape {filters.shape}; expected (Cout, C / groups, k)."
        raise ShapeError(message)
    filters = reshape(filters, (*filters.shape[:2], 1, filters.shape[2]))
    y = _conv(
        x,
        filters,
        bias,
        _row(stride, "stride", 1),
        pad_mode,
        (0, 0, *line_ends(padding)),
        _row(dilation, "dilation", 1),
        groups,
        "conv1d",
    )
    shape = (*y.shape[:2], y.shape[3])
    return wrap(reshape(y, shape if batched_input else shape[1:]))


@documented
def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
    *,
    pad_mode: str = "pad",
) -> Tensor:
    """The adjoint of a convolution, which enlarges images: the gradient of `conv2d` by its image, with the same weight.

    input : array-like, shape (N, C, H, W) or (C, H, W)
    weight : array-like, shape (C, Cout / groups, kh, kw)
    bias : array-like, shape (Cout,), optional
    stride, dilation : int or pair of int
    padding : int, pair of int, or (top, bottom, left, right)
        Of the convolution whose adjoint this is: the output is smaller by it.
    output_padding : int or pair of int
        Rows and columns that are added at the end; smaller than stride or dilation.
    pad_mode : {"pad", "valid", "same"}
        With "valid" and "same" this is the adjoint of such a convolution from an image of `stride` times the size (or
        as large as the windows need).
    -> Tensor, shape (N, Cout, oh, ow) or (Cout, oh, ow)
        `oh = (H - 1) * stride - 2 * padding + dilation * (kh - 1) + 1 + output_padding`.
    ShapeError, ArgumentError : If shapes do not fit.

    >>> nb.ops.conv_transpose2d(nb.numpy.ones((1, 1, 2)), nb.numpy.ones((1, 1, 1, 3)), stride=2).asnumpy()
    array([[[1., 1., 2., 1., 1.]]])
    """
    name = "conv_transpose2d"
    x, batched_input = image_node(input, name)
    filters = inexact(as_node(weight))
    if filters.ndim != 4 or filters.shape[0] != x.shape[1]:
        message = f"The weight of {name} has shape {filters.shape}; expected ({x.shape[1]}, Cout / groups, kh, kw)."
        raise ShapeError(message)
    groups = _checked_groups(groups, x.shape[1], x.shape[1], name)
    x, filters = promote([x, filters])
    steps, spread = pair(stride, "stride"), pair(dilation, "dilation")
    extra = pair(output_padding, "output_padding", 0)
    kernel = (filters.shape[2], filters.shape[3])
    count = (x.shape[2], x.shape[3])
    least = [(n - 1) * s + span(k, d) for n, s, k, d in zip(count, steps, kernel, spread, strict=True)]
    if pad_mode == "pad":
        around = sides(padding)
        if any(e >= max(s, d) for e, s, d in zip(extra, steps, spread, strict=True)):
            message = f"output_padding={output_padding!r} must be smaller than the stride or the dilation."
            raise ArgumentError(message)
        size = [n - sum(p) + e for n, p, e in zip(least, around, extra, strict=True)]
    else:
        full = [n * s for n, s in zip(count, steps, strict=True)]
        size = full if pad_mode == "same" else [max(n, m) for n, m in zip(full, least, strict=True)]
        around = resolve_padding(pad_mode, padding, (size[0], size[1]), kernel, steps, spread)
        if extra != (0, 0):
            message = f"output_padding={output_padding!r} is only used with pad_mode='pad', not {pad_mode!r}."
            raise ArgumentError(message)
    if min(size) < 1:
        message = f"The output of {name} would have {size[0]} rows and {size[1]} columns: the padding is too large."
        raise ShapeError(message)
    windows = (kernel, steps, spread, (around[0][0], around[1][0]), count)
    y = _with_bias(deconvolve(x, filters, windows, (size[0], size[1]), groups), bias, name)
    return wrap(y if batched_input else reshape(y, y.shape[1:]))


# ----- Windows as columns -----


@documented
def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of images as columns.

    input : array-like, shape (N, C, H, W) or (C, H, W)
    kernel_size, dilation, stride : int or pair of int
    padding : int, pair of int, or (top, bottom, left, right)
    -> Tensor, shape (N, C * kh * kw, windows) or (C * kh * kw, windows)
    ShapeError : If the windows are larger than the padded image.

    >>> nb.ops.unfold(nb.numpy.arange(6.0).reshape(1, 2, 3), (2, 2)).asnumpy()
    array([[0., 1.],
           [1., 2.],
           [3., 4.],
           [4., 5.]])
    """
    x, batched_input = image_node(input, "unfold")
    kernel, steps, spread = pair(kernel_size, "kernel_size"), pair(stride, "stride"), pair(dilation, "dilation")
    windows = windows_on((x.shape[2], x.shape[3]), kernel, steps, spread, sides(padding), "unfold")
    columns = transpose(builders.unfold(x, windows), (3, 0, 1, 2, 4, 5))
    shape = (x.shape[1] * math.prod(kernel), math.prod(windows[4]))
    return wrap(reshape(columns, (x.shape[0], *shape) if batched_input else shape))


@documented
def fold(
    input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The transpose of `unfold`: columns are added up where their windows lie in an image.

    input : array-like, shape (N, C * kh * kw, windows) or (C * kh * kw, windows)
    output_size : int or pair of int
        Height and width of the result.
    kernel_size, dilation, stride : int or pair of int
    padding : int, pair of int, or (top, bottom, left, right)
    -> Tensor, shape (N, C, H, W) or (C, H, W)
    ShapeError : If the columns are not those of such images.

    >>> nb.ops.fold(nb.numpy.ones((4, 2)), (2, 3), (2, 2)).asnumpy()
    array([[[1., 2., 1.],
            [1., 2., 1.]]])
    """
    columns = inexact(as_node(input))
    size, kernel = pair(output_size, "output_size"), pair(kernel_size, "kernel_size")
    steps, spread = pair(stride, "stride"), pair(dilation, "dilation")
    windows = windows_on(size, kernel, steps, spread, sides(padding), "fold")
    batched_input = columns.ndim == 3
    elements, many = math.prod(kernel), math.prod(windows[4])
    if columns.ndim not in (2, 3) or columns.shape[-2] % elements or columns.shape[-1] != many:
        message = (
            f"The input of fold has shape {columns.shape}; expected (N, C * {elements}, {many}) for images of {size} "
            f"and a kernel of {kernel}."
        )
        raise ShapeError(message)
    count, channels = columns.shape[0] if batched_input else 1, columns.shape[-2] // elements
    columns = reshape(columns, (count, channels, *kernel, *windows[4]))
    images = builders.fold(transpose(columns, (1, 2, 3, 0, 4, 5)), windows, size)
    return wrap(images if batched_input else reshape(images, images.shape[1:]))
