"""Small layers: padding, resizing, one-hot rows, norms, products, image quality, layers with their activation.

In: options; then arrays. Out: Cells. Called by users.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..functions.analysis.padding import pad
from ..ops.convolution import unfold
from ..ops.gathering import one_hot
from ..ops.image_forms import resize_bilinear
from ..ops.linear_algebra import matmul
from ..ops.random_tensors import dropout1d, dropout2d, dropout3d
from ..ops.shape_functions import swapaxes, tril, triu
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import only
from ..record.tensor import Tensor
from .activation_layers import LeakyReLU, get_activation
from .cell import Cell
from .convolution_layers import Conv2d
from .dense import Dense
from .layer_arguments import flag, part, positive, real, whole
from .normalisation_layers import BatchNorm1d, BatchNorm2d


class Pad(Cell):
    """Numbers before and after each axis.

    Parameters
    ----------
    paddings : tuple of (int, int)
        One pair for each axis.
    mode : {"CONSTANT", "REFLECT", "SYMMETRIC"}
        Zeros; or what is inside, mirrored without or with the element at the end.

    Raises
    ------
    ArgumentError
        For other modes, and numbers that are no pairs.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.Pad(((0, 0), (1, 2)))(nb.Tensor([[1.0, 2.0]])))
    [[0. 1. 2. 0. 0.]]
    """

    def __init__(self, paddings: Sequence[Any], mode: str = "CONSTANT") -> None:
        super().__init__()
        only("mode", mode, "CONSTANT", "REFLECT", "SYMMETRIC")
        self.paddings = tuple([tuple(int(one) for one in pair) for pair in paddings])
        self.mode = mode
        if any(len(pair) != 2 or min(pair) < 0 for pair in self.paddings):
            message = f"paddings must have a pair of numbers, none negative, for each axis, but is {paddings!r}."
            raise ArgumentError(message)

    def construct(self, x: Any) -> Tensor:
        """The larger array."""
        if as_node(x).ndim != len(self.paddings):
            message = f"paddings has {len(self.paddings)} pairs, but the input the shape {as_node(x).shape}."
            raise ShapeError(message)
        return pad(x, list(self.paddings), mode=self.mode.lower())


class ResizeBilinear(Cell):
    """Images of another size, by straight lines between pixels.

    Parameters
    ----------
    half_pixel_centers : bool
        Whether the centres of pixels keep their places; else their corners do.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.ResizeBilinear()(nb.Tensor([[[[0.0, 2.0]]]]), size=(1, 4)))
    [[[[0. 1. 2. 2.]]]]
    """

    def __init__(self, half_pixel_centers: bool = False) -> None:
        super().__init__()
        self.half_pixel_centers = flag(half_pixel_centers, "half_pixel_centers")

    def construct(
        self, x: Any, size: Any = None, scale_factor: int | None = None, align_corners: bool = False
    ) -> Tensor:
        """Images of the size, or of `scale_factor` times their size."""
        if (size is None) == (scale_factor is None):
            message = "Give ResizeBilinear either size or scale_factor."
            raise ArgumentError(message)
        if scale_factor is not None:
            size = tuple([n * positive(scale_factor, "scale_factor") for n in as_node(x).shape[-2:]])
        return resize_bilinear(x, size, align_corners, self.half_pixel_centers)


class OneHot(Cell):
    """Numbers of classes as rows with one other number.

    Parameters
    ----------
    axis : int
        The new axis.
    depth : int
        The number of classes.
    on_value, off_value : number
    dtype : dtype

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.OneHot(depth=3)(nb.Tensor([1, 0])))
    [[0. 1. 0.]
     [1. 0. 0.]]
    """

    def __init__(
        self, axis: int = -1, depth: int = 1, on_value: float = 1.0, off_value: float = 0.0, dtype: Any = np.float32
    ) -> None:
        super().__init__()
        self.axis, self.depth = whole(axis, "axis"), positive(depth, "depth")
        self.values = tuple(np.asarray([on_value, off_value], np.dtype(dtype)).tolist())
        self.dtype = dtype

    def construct(self, indices: Any) -> Tensor:
        """The rows."""
        on, off = (Tensor(np.asarray(value, np.dtype(self.dtype))) for value in self.values)
        return one_hot(indices, self.depth, on, off, self.axis)


class Norm(Cell):
    """The root of the sum of squares.

    Parameters
    ----------
    axis : int or tuple of int
        All axes by default.
    keep_dims : bool
    """

    def __init__(self, axis: Any = (), keep_dims: bool = False) -> None:
        super().__init__()
        self.axis, self.keep_dims = axis, flag(keep_dims, "keep_dims")

    def construct(self, x: Any) -> Tensor:
        """The norm."""
        value: Any = wrap(as_node(x))
        axes = None if self.axis == () else self.axis
        return np.sqrt(np.sum(value * value, axis=axes, keepdims=self.keep_dims))


class ClipByNorm(Cell):
    """Arrays whose norm is at most a number.

    Parameters
    ----------
    axis : int or tuple of int, optional
        The axes of a norm; all by default.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.ClipByNorm()(nb.Tensor([3.0, 4.0]), nb.Tensor(1.0)))
    [0.6 0.8]
    """

    def __init__(self, axis: Any = None) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Any, clip_norm: Any) -> Tensor:
        """`x * clip_norm / max(norm(x), clip_norm)`."""
        value: Any = wrap(as_node(x))
        limit: Any = wrap(as_node(clip_norm)).astype(value.dtype)
        squares = np.sum(value * value, axis=self.axis, keepdims=True)
        norm = np.sqrt(np.where(squares > 0, squares, 1.0)) * (squares > 0).astype(value.dtype)
        return value * limit / np.maximum(norm, limit)


class MatMul(Cell):
    """Products of matrices, one or both transposed first.

    Parameters
    ----------
    transpose_x1, transpose_x2 : bool
    """

    def __init__(self, transpose_x1: bool = False, transpose_x2: bool = False) -> None:
        super().__init__()
        self.transpose_x1, self.transpose_x2 = flag(transpose_x1, "transpose_x1"), flag(transpose_x2, "transpose_x2")

    def construct(self, x1: Any, x2: Any) -> Tensor:
        """The product."""
        return matmul(
            swapaxes(x1, -1, -2) if self.transpose_x1 else x1, swapaxes(x2, -1, -2) if self.transpose_x2 else x2
        )


class ReduceLogSumExp(Cell):
    """`log(sum(exp(x)))` over axes.

    Parameters
    ----------
    axis : int or tuple of int
    keep_dims : bool
    """

    def __init__(self, axis: Any, keep_dims: bool = False) -> None:
        super().__init__()
        self.axis, self.keep_dims = axis, flag(keep_dims, "keep_dims")

    def construct(self, x: Any) -> Tensor:
        """The logarithm, without overflow."""
        return wrap(as_node(x)).logsumexp(self.axis or None, self.keep_dims)


class Tril(Cell):
    """The elements on and below the k-th diagonal; the others are 0."""

    def construct(self, x: Any, k: int = 0) -> Tensor:
        """The triangle."""
        return tril(x, k)


class Triu(Cell):
    """The elements on and above the k-th diagonal; the others are 0."""

    def construct(self, x: Any, k: int = 0) -> Tensor:
        """The triangle."""
        return triu(x, k)


class Unfold(Cell):
    """Windows of images as columns, with MindSpore's arguments of four numbers.

    Parameters
    ----------
    ksizes, strides, rates : list of int
        [1, rows, columns, 1].
    padding : {"valid", "same"}
        Only "valid".
    """

    def __init__(
        self, ksizes: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str = "valid"
    ) -> None:
        super().__init__()
        only("padding", padding.lower(), "valid")
        for value, name in ((ksizes, "ksizes"), (strides, "strides"), (rates, "rates")):
            if len(value) != 4 or value[0] != 1 or value[3] != 1:
                message = f"{name} must be [1, rows, columns, 1], but got {value!r}."
                raise ArgumentError(message)
        self.ksizes, self.strides, self.rates = tuple(ksizes[1:3]), tuple(strides[1:3]), tuple(rates[1:3])

    def construct(self, x: Any) -> Tensor:
        """The windows: (N, kh * kw * C, oh, ow), the place in the window before the channel."""
        n, c, h, w = as_node(x).shape
        columns: Any = unfold(x, self.ksizes, self.rates, 0, self.strides)
        sizes = [
            (size - rate * (k - 1) - 1) // step + 1
            for size, k, step, rate in zip((h, w), self.ksizes, self.strides, self.rates, strict=True)
        ]
        places = self.ksizes[0] * self.ksizes[1]
        parts = columns.reshape(n, c, places, *sizes)
        return swapaxes(parts, 1, 2).reshape(n, places * c, *sizes)


class PSNR(Cell):
    """The ratio of the largest signal to the noise between images, in decibels: one number for each image.

    Parameters
    ----------
    max_val : number
        The largest value of a pixel.
    """

    def __init__(self, max_val: float = 1.0) -> None:
        super().__init__()
        self.max_val = real(max_val, "max_val")
        if self.max_val <= 0:
            message = f"max_val must be positive, but got {max_val!r}."
            raise ArgumentError(message)

    def construct(self, img1: Any, img2: Any) -> Tensor:
        """`10 * log10(max_val**2 / mse)` of images (N, C, H, W)."""
        one, other = wrap(as_node(img1)), wrap(as_node(img2))
        if one.shape != other.shape or one.ndim != 4 or one.dtype != other.dtype:
            message = f"PSNR takes two arrays of images of one shape (N, C, H, W), but got {one.shape}, {other.shape}."
            raise ShapeError(message)
        difference: Any = one.astype(np.float32) / self.max_val - other.astype(np.float32) / self.max_val
        return -10.0 * np.log10(np.mean(difference * difference, axis=(1, 2, 3)))


class _DropoutOfChannels(Cell):
    """Whole channels left out while training."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = part(p, "p")

    def construct(self, x: Any) -> Tensor:
        """The array, with channels set to 0 and the others divided by 1 - p."""
        return self._function(x, self.p, self.training)

    def _function(self, x: Any, p: float, training: bool) -> Tensor:
        raise NotImplementedError


class Dropout1d(_DropoutOfChannels):
    """Channels of signals left out while training, with the probability p."""

    def _function(self, x: Any, p: float, training: bool) -> Tensor:
        return dropout1d(x, p, training)


class Dropout2d(_DropoutOfChannels):
    """Channels of images left out while training, with the probability p."""

    def _function(self, x: Any, p: float, training: bool) -> Tensor:
        return dropout2d(x, p, training)


class Dropout3d(_DropoutOfChannels):
    """Channels of volumes left out while training, with the probability p."""

    def _function(self, x: Any, p: float, training: bool) -> Tensor:
        return dropout3d(x, p, training)


# ----- Layers with their activation -----


def _activation(activation: Any, alpha: float) -> Any:
    if activation == "leakyrelu":
        return LeakyReLU(alpha)
    if activation is None or isinstance(activation, Cell):
        return activation
    if isinstance(activation, str):
        return get_activation(activation)
    message = f"activation must be a name or a Cell, but got {type(activation).__name__}."
    raise DtypeError(message)


class _WithActivation(Cell):
    """A layer, a normalisation and an activation, of which the last two may be absent."""

    batchnorm: Any
    activation: Any

    def _finished(self, y: Any) -> Any:
        y = self.batchnorm(y) if self.has_bn else y
        return y if self.activation is None else self.activation(y)


class Conv2dBnAct(_WithActivation):
    """A convolution, batch normalisation and an activation.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init, bias_init
        As for `Conv2d`.
    has_bn : bool
        Whether channels are normalised.
    momentum, eps : float
        As for `BatchNorm2d`.
    activation : str or Cell, optional
    alpha : float
        The slope of "leakyrelu" below 0.
    after_fake : bool
        Has no effect.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        has_bn: bool = False,
        momentum: float = 0.997,
        eps: float = 1e-5,
        activation: Any = None,
        alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.conv = Conv2d(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init,
        )  # fmt: skip
        self.has_bn = flag(has_bn, "has_bn")
        self.batchnorm = BatchNorm2d(out_channels, eps, momentum) if has_bn else None
        self.activation = _activation(activation, alpha)

    def construct(self, x: Any) -> Tensor:
        """The activated channels."""
        return self._finished(self.conv(x))


class DenseBnAct(_WithActivation):
    """A dense layer, batch normalisation and an activation.

    Parameters
    ----------
    in_channels, out_channels, weight_init, bias_init, has_bias
        As for `Dense`.
    has_bn, momentum, eps, activation, alpha, after_fake
        As for `Conv2dBnAct`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = None,
        bias_init: Any = None,
        has_bias: bool = True,
        has_bn: bool = False,
        momentum: float = 0.9,
        eps: float = 1e-5,
        activation: Any = None,
        alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.dense = Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        self.has_bn = flag(has_bn, "has_bn")
        self.batchnorm = BatchNorm1d(out_channels, eps, momentum) if has_bn else None
        self.activation = _activation(activation, alpha)

    def construct(self, x: Any) -> Tensor:
        """The activated features."""
        return self._finished(self.dense(x))


class CentralCrop(Cell):
    """The middle of images.

    Parameters
    ----------
    central_fraction : float
        The part of the rows and of the columns that is kept, above 0 and at most 1.

    Raises
    ------
    ArgumentError, ShapeError
        For other parts, and arrays that are not (C, H, W) or (N, C, H, W).

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.CentralCrop(0.5)(nb.Tensor([[[0.0, 1.0, 2.0, 3.0]] * 4])))
    [[[1. 2.]
      [1. 2.]]]
    """

    def __init__(self, central_fraction: float) -> None:
        super().__init__()
        self.central_fraction = part(central_fraction, "central_fraction")
        if self.central_fraction == 0:
            message = "central_fraction must be above 0."
            raise ArgumentError(message)

    def construct(self, image: Any) -> Tensor:
        """The middle: of n rows, those from `int((n - n * central_fraction) / 2)` to as many before the end."""
        x = wrap(as_node(image))
        if x.ndim not in (3, 4):
            message = f"CentralCrop takes images (C, H, W) or (N, C, H, W), but got the shape {x.shape}."
            raise ShapeError(message)
        first = [int((n - n * self.central_fraction) / 2) for n in x.shape[-2:]]
        rows, columns = (slice(k, n - k) for k, n in zip(first, x.shape[-2:], strict=True))
        return x[..., rows, columns]
