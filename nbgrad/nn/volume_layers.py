"""Layers of volumes (N, C, D, H, W), and the transposed convolution of signals.

In: channels, windows, initial values; then arrays. Out: Cells. Called by users. Their functions are in
`nbgrad.ops.volumes` and `nbgrad.ops.convolution`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..ops.convolution import conv_transpose2d
from ..ops.shape_functions import reshape
from ..ops.volumes import avg_pool3d, conv3d, conv_transpose3d, ends_of, max_pool3d, triple
from ..record.as_node import as_node
from ..record.axes_and_dtypes import only
from ..record.tensor import Tensor
from .cell import Cell
from .layer_arguments import default_bias, default_weight, flag, parameter, positive, signal_kernel


class _Volume(Cell):
    """The weights of a convolution of volumes."""

    def __init__(
        self, channels: tuple[Any, Any], kernel: Any, group: Any, has_bias: Any, inits: tuple[Any, Any], dtype: Any,
        transposed: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.in_channels = positive(channels[0], "in_channels")
        self.out_channels = positive(channels[1], "out_channels")
        self.kernel_size = triple(kernel, "kernel_size")
        self.group = positive(group, "group")
        for name, count in (("in_channels", self.in_channels), ("out_channels", self.out_channels)):
            if count % self.group:
                message = f"group must divide {name}={count}, but is {self.group}."
                raise ArgumentError(message)
        first, second = self.out_channels, self.in_channels // self.group
        if transposed:
            first, second = self.in_channels, self.out_channels // self.group
        weight, bias = inits
        shape = (first, second, *self.kernel_size)
        self.weight = parameter(default_weight() if weight is None else weight, shape, dtype)
        self.bias = None
        if flag(has_bias, "has_bias"):
            start = default_bias(second * math.prod(self.kernel_size)) if bias is None else bias
            self.bias = parameter(start, (self.out_channels,), dtype)

    def _check(self, x: Any) -> None:
        shape = as_node(x).shape
        if len(shape) not in (4, 5) or shape[-4] != self.in_channels:
            message = f"The input of {self.cls_name} must have shape (N, {self.in_channels}, D, H, W), but has {shape}."
            raise ShapeError(message)


class Conv3d(_Volume):
    """Convolution of volumes.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride, dilation : int or three int
    pad_mode : {"same", "valid", "pad"}
        As for `Conv2d`.
    padding : int, three int, or (front, back, top, bottom, left, right)
        Only for `pad_mode="pad"`.
    group, has_bias, weight_init, bias_init, dtype
        As for `Conv2d`.
    data_format : {"NCDHW"}

    Attributes
    ----------
    weight : Parameter, shape (out_channels, in_channels / group, kd, kh, kw)
    bias : Parameter, shape (out_channels,)

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.nn.Conv3d(3, 4, (2, 3, 3))(nb.ops.ones((1, 3, 4, 5, 6))).shape
    (1, 4, 4, 5, 6)
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
        data_format: str = "NCDHW",
        dtype: Any = np.float32,
    ) -> None:
        only("data_format", data_format, "NCDHW")
        inits = (weight_init, bias_init)
        super().__init__((in_channels, out_channels), kernel_size, group, has_bias, inits, dtype)
        self.stride, self.dilation = triple(stride, "stride"), triple(dilation, "dilation")
        self.pad_mode, self.padding = pad_mode, padding
        ends_of(pad_mode, padding, (1, 1, 1), self.kernel_size, self.stride, self.dilation)

    def construct(self, x: Any) -> Tensor:
        """The convolution of `x` of shape (N, C, D, H, W) or (C, D, H, W)."""
        self._check(x)
        return conv3d(x, self.weight, self.bias, self.stride, self.pad_mode, self.padding, self.dilation, self.group)


class Conv3dTranspose(_Volume):
    """The adjoint of a convolution of volumes, which enlarges them.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, dilation, group, has_bias, weight_init, bias_init, dtype
        As for `Conv3d`.
    pad_mode : {"same", "valid", "pad"}
        As for `Conv2dTranspose`.
    padding, output_padding : int or three int
        Only for `pad_mode="pad"`.
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
        output_padding: Any = 0,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        data_format: str = "NCDHW",
        dtype: Any = np.float32,
    ) -> None:
        only("data_format", data_format, "NCDHW")
        inits = (weight_init, bias_init)
        super().__init__((in_channels, out_channels), kernel_size, group, has_bias, inits, dtype, True)
        self.stride, self.dilation = triple(stride, "stride"), triple(dilation, "dilation")
        self.output_padding = triple(output_padding, "output_padding", 0)
        self.pad_mode, self.padding = pad_mode, padding
        ends_of(pad_mode, padding, (1, 1, 1), self.kernel_size, self.stride, self.dilation)
        if pad_mode != "pad" and any(self.output_padding):
            message = f"output_padding={output_padding!r} is only used with pad_mode='pad', not {pad_mode!r}."
            raise ArgumentError(message)

    def construct(self, x: Any) -> Tensor:
        """Enlarge `x` of shape (N, C, D, H, W) or (C, D, H, W)."""
        self._check(x)
        padding, extra = self.padding, self.output_padding
        if self.pad_mode != "pad":
            sizes = tuple([n * s for n, s in zip(as_node(x).shape[-3:], self.stride, strict=True)])
            spans = [d * (k - 1) + 1 for k, d in zip(self.kernel_size, self.dilation, strict=True)]
            if self.pad_mode == "same":
                pairs = ends_of("same", 0, sizes, self.kernel_size, self.stride, self.dilation)
                padding = tuple([one for pair in pairs for one in pair])
            extra = tuple([max(s - k, 0) for s, k in zip(self.stride, spans, strict=True)])
        return conv_transpose3d(x, self.weight, self.bias, self.stride, padding, extra, self.group, self.dilation)


class Conv1dTranspose(Cell):
    """The adjoint of a convolution of signals (N, C, L); arguments as for `Conv2dTranspose`, of one axis.

    Its weight has the shape (in_channels, out_channels / group, 1, k), as in MindSpore.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.nn.Conv1dTranspose(3, 4, 3, stride=2)(nb.ops.ones((1, 3, 5))).shape
    (1, 4, 10)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        pad_mode: str = "same",
        padding: int = 0,
        dilation: int = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__()
        self.in_channels = positive(in_channels, "in_channels")
        self.out_channels = positive(out_channels, "out_channels")
        self.kernel_size, self.stride = positive(kernel_size, "kernel_size"), positive(stride, "stride")
        self.dilation, self.group = positive(dilation, "dilation"), positive(group, "group")
        only("pad_mode", pad_mode, "same", "valid", "pad")
        self.pad_mode, self.padding = pad_mode, padding
        shape = (self.in_channels, self.out_channels // self.group, 1, self.kernel_size)
        self.weight = parameter(default_weight() if weight_init is None else signal_kernel(weight_init), shape, dtype)
        self.bias = None
        if flag(has_bias, "has_bias"):
            start = default_bias(math.prod(shape[1:])) if bias_init is None else bias_init
            self.bias = parameter(start, (self.out_channels,), dtype)

    def construct(self, x: Any) -> Tensor:
        """Enlarge `x` of shape (N, C, L)."""
        shape = as_node(x).shape
        if len(shape) != 3 or shape[1] != self.in_channels:
            message = f"The input of Conv1dTranspose must have shape (N, {self.in_channels}, L), but has {shape}."
            raise ShapeError(message)
        row = reshape(x, (*shape[:2], 1, shape[2]))
        around = (0, 0, self.padding, self.padding) if self.pad_mode == "pad" else 0
        y = conv_transpose2d(
            row, self.weight, self.bias, (1, self.stride), around, 0,
            self.group, (1, self.dilation),
            pad_mode=self.pad_mode,
        )  # fmt: skip
        return reshape(y, (*y.shape[:2], y.shape[3]))


class MaxPool3d(Cell):
    """The greatest element of every window of volumes.

    Parameters
    ----------
    kernel_size, stride : int or three int
    pad_mode : {"valid", "same", "pad"}
    padding : int or three int
        Only for `pad_mode="pad"`.
    dilation : int or three int
        The distance between elements of a window.
    return_indices : bool
        Whether the result has the positions of the elements, too.
    ceil_mode : bool
        Whether windows may reach beyond the end.
    """

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = triple(kernel_size, "kernel_size"), triple(stride, "stride")
        self.pad_mode, self.padding = pad_mode.lower(), padding
        self.dilation = triple(dilation, "dilation")
        self.return_indices = flag(return_indices, "return_indices")
        self.ceil_mode = flag(ceil_mode, "ceil_mode")
        ends_of(self.pad_mode, padding, (1, 1, 1), self.kernel_size, self.stride, self.dilation)

    def construct(self, x: Any) -> Any:
        """The maxima."""
        sizes = self.kernel_size, self.stride, self.padding, self.dilation
        return max_pool3d(x, *sizes, self.ceil_mode, self.return_indices, pad_mode=self.pad_mode)


class AvgPool3d(Cell):
    """The mean of every window of volumes.

    Parameters
    ----------
    kernel_size, stride, pad_mode, padding
        As for `MaxPool3d`.
    ceil_mode : bool
        Also use windows that reach beyond the padded volume, if they start inside of it.
    count_include_pad : bool
        Whether padding counts as zeros; never for `pad_mode="same"`.
    divisor_override : int, optional
        Divides sums, in place of the number of elements.
    """

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.ceil_mode = flag(ceil_mode, "ceil_mode")
        self.divisor_override = None if divisor_override is None else positive(divisor_override, "divisor_override")
        self.kernel_size, self.stride = triple(kernel_size, "kernel_size"), triple(stride, "stride")
        self.pad_mode, self.padding = pad_mode.lower(), padding
        self.count_include_pad = flag(count_include_pad, "count_include_pad")
        ends_of(self.pad_mode, padding, (1, 1, 1), self.kernel_size, self.stride, (1, 1, 1))

    def construct(self, x: Any) -> Tensor:
        """The means."""
        whole = self.count_include_pad and self.pad_mode != "same"
        windows = self.kernel_size, self.stride, self.padding, self.ceil_mode, whole, self.divisor_override or 0
        return avg_pool3d(x, *windows, pad_mode=self.pad_mode)
