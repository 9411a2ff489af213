"""Pooling as layers.

In: windows; then images or signals. Out: Cells. Called by users. Their functions are in `nbgrad.ops.pooling`; the
padding mode "same", which depends on the input's size, is resolved here.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..graph.shapes import Shape
from ..ops import pooling as functions
from ..ops.convolution import PAD_MODES, line_ends, pair, resolve_padding, sides
from ..record.as_node import as_node
from ..record.tensor import Tensor
from .cell import Cell
from .layer_arguments import flag, positive


class _Pool(Cell):
    """Windows over the last `axes` axes."""

    axes: int
    kernel_size: Any
    stride: Any

    def __init__(self, kernel_size: Any, stride: Any, pad_mode: str, padding: Any, ceil_mode: bool) -> None:
        super().__init__()
        if self.axes == 1:
            self.kernel_size, self.stride = positive(kernel_size, "kernel_size"), positive(stride, "stride")
            given: Any = line_ends(padding)
        else:
            self.kernel_size, self.stride = pair(kernel_size, "kernel_size"), pair(stride, "stride")
            given = sides(padding)
        mode = pad_mode.lower() if isinstance(pad_mode, str) else pad_mode
        if mode not in PAD_MODES:
            message = f"pad_mode must be one of {', '.join(PAD_MODES)}, but is {pad_mode!r}."
            raise ArgumentError(message)
        if mode != "pad" and given not in ((0, 0), ((0, 0), (0, 0))):
            message = f"padding={padding!r} is only used with pad_mode='pad', but pad_mode is {pad_mode!r}."
            raise ArgumentError(message)
        self.pad_mode = mode
        self.padding = padding
        self.ceil_mode = flag(ceil_mode, "ceil_mode")
        if mode == "same" and ceil_mode:
            message = "ceil_mode=True has no meaning with pad_mode='same', which covers the whole input already."
            raise ArgumentError(message)

    def _padding_on(self, shape: Shape, dilation: Any = 1) -> Any:
        """Padding for an input of a shape; the functions check the shape."""
        if self.pad_mode != "same" or len(shape) < self.axes:
            return self.padding
        if self.axes == 1:
            return resolve_padding("same", 0, (1, shape[-1]), (1, self.kernel_size), (1, self.stride), (1, dilation))[1]
        rows, columns = resolve_padding(
            "same", 0, (shape[-2], shape[-1]), self.kernel_size, self.stride, pair(dilation, "dilation")
        )
        return (*rows, *columns)

    def extend_repr(self) -> str:
        """The windows."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode.upper()}"


class _MaxPool(_Pool):
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
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode)
        self.dilation = positive(dilation, "dilation") if self.axes == 1 else pair(dilation, "dilation")
        self.return_indices = flag(return_indices, "return_indices")

    def construct(self, x: Any) -> Any:
        """The maxima; with `return_indices` also their positions."""
        function = functions.max_pool1d if self.axes == 1 else functions.max_pool2d
        padding = self._padding_on(as_node(x).shape, self.dilation)
        return function(x, self.kernel_size, self.stride, padding, self.dilation, self.return_indices, self.ceil_mode)


class MaxPool2d(_MaxPool):
    """The greatest element of every window.

    Parameters
    ----------
    kernel_size, stride, dilation : int or pair of int
    pad_mode : {"valid", "same", "pad"}
        No padding; enough for an output of ceil(H / stride) rows; or the padding that `padding` gives.
    padding : int, pair of int, or (top, bottom, left, right)
        Only for `pad_mode="pad"`; at most half of the kernel. Padding is never the greatest element.
    return_indices : bool
        Also give the positions `row * W + column` of the elements.
    ceil_mode : bool
        Also use windows that reach beyond the input, if they start inside of it.

    Raises
    ------
    ArgumentError, DtypeError
        For arguments that cannot be used.

    Notes
    -----
    Differs from `torch.nn.MaxPool2d`: the default stride is 1.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.MaxPool2d(2, 2)(nb.Tensor([[[1.0, 2.0, 5.0], [4.0, 3.0, 6.0]]])))
    [[[4.]]]
    >>> print(nb.nn.MaxPool2d(2, 2, pad_mode="same")(nb.Tensor([[[1.0, 2.0, 5.0], [4.0, 3.0, 6.0]]])))
    [[[4. 6.]]]
    """

    axes = 2


class MaxPool1d(_MaxPool):
    """`MaxPool2d` on signals (N, C, L) or (C, L)."""

    axes = 1


class AvgPool2d(_Pool):
    """The mean of every window.

    Parameters
    ----------
    kernel_size, stride : int or pair of int
    pad_mode : {"valid", "same", "pad"}
        As in `MaxPool2d`. With "same", padding does not count.
    padding : int, pair of int, or (top, bottom, left, right)
        Only for `pad_mode="pad"`; at most half of the kernel.
    ceil_mode : bool
        Also use windows that reach beyond the input, if they start inside of it.
    count_include_pad : bool
        Whether padding counts as zeros, or not at all.
    divisor_override : int, optional
        The divisor of the sums, instead of the number of elements.

    Raises
    ------
    ArgumentError, DtypeError
        For arguments that cannot be used.

    Notes
    -----
    Differs from `torch.nn.AvgPool2d`: the default stride is 1.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.AvgPool2d(2, 2, pad_mode="same")(nb.Tensor([[[1.0, 2.0, 5.0], [4.0, 3.0, 6.0]]])))
    [[[2.5 5.5]]]
    """

    axes = 2

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
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode)
        self.count_include_pad = flag(count_include_pad, "count_include_pad")
        self.divisor_override = None if divisor_override is None else positive(divisor_override, "divisor_override")

    def construct(self, x: Any) -> Tensor:
        """The means."""
        return functions.avg_pool2d(
            x,
            self.kernel_size,
            self.stride,
            self._padding_on(as_node(x).shape),
            self.ceil_mode,
            self.count_include_pad and self.pad_mode != "same",
            self.divisor_override or 0,
        )


class AvgPool1d(_Pool):
    """`AvgPool2d` on signals (N, C, L) or (C, L)."""

    axes = 1

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode)
        self.count_include_pad = flag(count_include_pad, "count_include_pad")

    def construct(self, x: Any) -> Tensor:
        """The means."""
        return functions.avg_pool1d(
            x,
            self.kernel_size,
            self.stride,
            self._padding_on(as_node(x).shape),
            self.ceil_mode,
            self.count_include_pad and self.pad_mode != "same",
        )


# ----- As many windows as the output has -----


class _Adaptive(Cell):
    """Means or maxima that an output's size asks for, over the last `axes` axes."""

    axes = 2

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        sizes = output_size if isinstance(output_size, list | tuple) else (output_size,)
        if len(sizes) not in (1, self.axes):
            message = f"output_size of {self.cls_name} has the wrong number of elements: {output_size!r}."
            raise ArgumentError(message)
        for size in sizes:
            if size is not None:
                positive(size, "output_size")
        self.output_size = tuple(output_size) if isinstance(output_size, list) else output_size

    def extend_repr(self) -> str:
        """The output's size."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool2d(_Adaptive):
    """The means of as many windows as the output has.

    Parameters
    ----------
    output_size : int or pair of (int or None)
        None keeps an extent.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.AdaptiveAvgPool2d(1)(nb.Tensor([[[1.0, 2.0], [3.0, 6.0]]])))
    [[[3.]]]
    """

    def construct(self, x: Any) -> Tensor:
        """The means."""
        return functions.adaptive_avg_pool2d(x, self.output_size)


class AdaptiveMaxPool2d(_Adaptive):
    """The greatest elements of as many windows as the output has; with `return_indices` also their positions."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = flag(return_indices, "return_indices")

    def construct(self, x: Any) -> Any:
        """The maxima."""
        return functions.adaptive_max_pool2d(x, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(_Adaptive):
    """`AdaptiveAvgPool2d` on signals (N, C, L) or (C, L)."""

    axes = 1

    def construct(self, x: Any) -> Tensor:
        """The means."""
        return functions.adaptive_avg_pool1d(x, self.output_size)
