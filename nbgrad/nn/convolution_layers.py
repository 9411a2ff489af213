"""Convolutions as layers: Conv1d, Conv2d, Conv2dTranspose.

In: channels, windows and initial values; then images. Out: Cells. Called by users. Their functions are in
`nbgrad.ops.convolution`; as in MindSpore the output has `ceil(size / stride)` elements unless another `pad_mode` is
asked for, and there is no bias unless asked for.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..ops.convolution import PAD_MODES, Sides, conv1d, conv2d, conv_transpose2d, line_ends, pair, sides
from ..ops.shape_functions import reshape
from ..record.as_node import as_node
from ..record.axes_and_dtypes import only
from ..record.tensor import Tensor
from .layer_arguments import default_bias, default_weight, flag, parameter, positive, signal_kernel
from .layer_forms import WithForms


class _Convolution(WithForms):
    """The base of the convolution layers: their common arguments, weight and bias."""

    def __init__(
        self,
        channels: tuple[Any, Any],
        windows: tuple[Any, Any, Any],
        pad_mode: str,
        padding: Any,
        sides_of_padding: Sides,
        group: int,
        has_bias: bool,
        inits: tuple[Any, Any],
        dtype: Any,
        transposed: bool = False,
    ) -> None:
        super().__init__()
        self.in_channels = positive(channels[0], "in_channels")
        self.out_channels = positive(channels[1], "out_channels")
        self.kernel_size = pair(windows[0], "kernel_size")
        self.stride = pair(windows[1], "stride")
        self.dilation = pair(windows[2], "dilation")
        self.pad_mode = pad_mode
        self.padding = padding
        self.group = positive(group, "group")
        self.has_bias = flag(has_bias, "has_bias")
        if pad_mode not in PAD_MODES:
            message = f"pad_mode must be one of {', '.join(PAD_MODES)}, but is {pad_mode!r}."
            raise ArgumentError(message)
        if pad_mode != "pad" and sides_of_padding != ((0, 0), (0, 0)):
            message = f"padding={padding!r} is only used with pad_mode='pad', but pad_mode is {pad_mode!r}."
            raise ArgumentError(message)
        for name, count in (("in_channels", self.in_channels), ("out_channels", self.out_channels)):
            if count % self.group:
                message = f"group must divide {name}={count}, but is {self.group}."
                raise ArgumentError(message)
        first, second = self.out_channels, self.in_channels // self.group
        if transposed:
            first, second = self.in_channels, self.out_channels // self.group
        shape = (first, second, *self.kernel_size)
        weight_init, bias_init = inits
        self.weight = parameter(default_weight() if weight_init is None else weight_init, shape, dtype)
        self.bias = None
        if has_bias:
            start = default_bias(second * math.prod(self.kernel_size)) if bias_init is None else bias_init
            self.bias = parameter(start, (self.out_channels,), dtype)

    def _check(self, x: Any, axes: int) -> None:
        """Raise unless an input has the layer's channels; the functions check the rest.

        Raises
        ------
        ShapeError
            If it has others.
        """
        shape = as_node(x).shape
        at = len(shape) - 1 - axes
        if at in (0, 1) and shape[at] != self.in_channels:
            message = (
                f"The input of {self.cls_name} must have {self.in_channels} channels (in_channels) in axis {at}, but "
                f"has shape {shape}."
            )
            raise ShapeError(message)

    def extend_repr(self) -> str:
        """The arguments."""
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, pad_mode={self.pad_mode}, padding={self.padding}, dilation={self.dilation}, "
            f"group={self.group}, has_bias={self.has_bias}"
        )


class Conv2d(_Convolution):
    """Convolution of images.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride, dilation : int or pair of int
    pad_mode : {"same", "valid", "pad"}
        Zeros around such that the output has ceil(H / stride) rows; none; or as much as `padding` says.
    padding : int, pair of int, or (top, bottom, left, right)
        Only for `pad_mode="pad"`.
    group : int
        Channels are split into groups that do not see each other.
    has_bias : bool
    weight_init, bias_init : str, number, Initializer, Tensor or ndarray, optional
        By default uniform up to `1 / sqrt(in_channels / group * kh * kw)`.
    data_format : {"NCHW"}
    dtype : dtype

    Attributes
    ----------
    weight : Parameter, shape (out_channels, in_channels / group, kh, kw)
    bias : Parameter, shape (out_channels,)
        None without bias.

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For arguments that cannot be used.

    Notes
    -----
    Differs from `torch.nn.Conv2d`: the defaults of `pad_mode` and `has_bias`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.Conv2d(1, 2, 3, weight_init="ones")
    >>> net(nb.ops.ones((1, 1, 3, 3))).asnumpy()[0, 0]
    array([[4., 6., 4.],
           [6., 9., 6.],
           [4., 6., 4.]], dtype=float32)
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
        data_format: str = "NCHW",
        dtype: Any = np.float32,
    ) -> None:
        only("data_format", data_format, "NCHW")
        super().__init__(
            (in_channels, out_channels),
            (kernel_size, stride, dilation),
            pad_mode,
            padding,
            sides(padding),
            group,
            has_bias,
            (weight_init, bias_init),
            dtype,
        )

    def construct(self, x: Any) -> Tensor:
        """Convolve `x` of shape (N, C, H, W) or (C, H, W)."""
        self._check(x, 2)
        return conv2d(x, self.weight, self.bias, self.stride, self.pad_mode, self.padding, self.dilation, self.group)


class Conv1d(_Convolution):
    """Convolution of signals; parameters as in `Conv2d`, with one axis less.

    Parameters
    ----------
    kernel_size, stride, dilation : int
    padding : int or (before, after)
    weight_init : as in Conv2d
        Values have the shape (out_channels, in_channels / group, k).

    Attributes
    ----------
    weight : Parameter, shape (out_channels, in_channels / group, 1, k)
        With an axis of rows, as in MindSpore.
    bias : Parameter, shape (out_channels,)

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.Conv1d(1, 1, 2, pad_mode="valid", weight_init="ones")
    >>> print(net(nb.Tensor([[[1.0, 2.0, 4.0]]])))
    [[[3. 6.]]]
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: int = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        kernel_size, stride = positive(kernel_size, "kernel_size"), positive(stride, "stride")
        super().__init__(
            (in_channels, out_channels),
            ((1, kernel_size), (1, stride), (1, positive(dilation, "dilation"))),
            pad_mode,
            padding,
            ((0, 0), line_ends(padding)),
            group,
            has_bias,
            (signal_kernel(weight_init), bias_init),
            dtype,
        )

    def construct(self, x: Any) -> Tensor:
        """Convolve `x` of shape (N, C, L) or (C, L)."""
        self._check(x, 1)
        shape = self.weight.shape
        weight = reshape(self.weight, (shape[0], shape[1], shape[3]))
        return conv1d(x, weight, self.bias, self.stride[1], self.pad_mode, self.padding, self.dilation[1], self.group)


class Conv2dTranspose(_Convolution):
    """The adjoint of a convolution, which enlarges images.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride, dilation : int or pair of int
    pad_mode : {"same", "valid", "pad"}
        With "same" the output is `stride` times as large as the input; with "valid" as large as the windows need, at
        least as with "same"; with "pad" it is `(H - 1) * stride - 2 * padding + dilation * (kh - 1) + 1 +
        output_padding`.
    padding : int, pair of int, or (top, bottom, left, right)
        Only for `pad_mode="pad"`.
    output_padding : int or pair of int
        Only for `pad_mode="pad"`: rows and columns that are added at the end.
    group, has_bias, weight_init, bias_init, dtype
        As in `Conv2d`.

    Attributes
    ----------
    weight : Parameter, shape (in_channels, out_channels / group, kh, kw)
    bias : Parameter, shape (out_channels,)
        None without bias.

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For arguments that cannot be used.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.nn.Conv2dTranspose(3, 4, 3, stride=2)(nb.ops.ones((1, 3, 5, 6))).shape
    (1, 4, 10, 12)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__(
            (in_channels, out_channels),
            (kernel_size, stride, dilation),
            pad_mode,
            padding,
            sides(padding),
            group,
            has_bias,
            (weight_init, bias_init),
            dtype,
            transposed=True,
        )
        self.output_padding = pair(output_padding, "output_padding", 0)
        if pad_mode != "pad" and self.output_padding != (0, 0):
            message = f"output_padding={output_padding!r} is only used with pad_mode='pad', not {pad_mode!r}."
            raise ArgumentError(message)

    def construct(self, x: Any) -> Tensor:
        """Enlarge `x` of shape (N, C, H, W) or (C, H, W)."""
        self._check(x, 2)
        return conv_transpose2d(
            x,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.group,
            self.dilation,
            pad_mode=self.pad_mode,
        )
