"""Layers of two inputs, of tables, of image gradients and of sparse arrays, and a loss by a distance of choice.

In: options; then Tensors. Out: Cells. Called by users.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..functions.elementwise.special_functions import gammaln
from ..ops.gathering import gather
from ..ops.linear_algebra import einsum
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import only
from ..record.tensor import Tensor
from ..tensors.parameter import Parameter
from .cell import Cell
from .layer_arguments import default_bias, flag, parameter, positive, real
from .loss_layers import LossBase


def _value(x: Any) -> Any:
    return wrap(as_node(x))


class BiDense(Cell):
    """`x1 @ W @ x2 + b` for a matrix W of each output.

    Parameters
    ----------
    in1_channels, in2_channels, out_channels : int
    weight_init, bias_init : str, number, Initializer, Tensor or ndarray, optional
        By default uniform up to `1 / sqrt(in1_channels)`.
    has_bias : bool
    dtype : dtype

    Attributes
    ----------
    weight : Parameter, shape (out_channels, in1_channels, in2_channels)
    bias : Parameter, shape (out_channels,)
        None without bias.
    """

    def __init__(
        self,
        in1_channels: int,
        in2_channels: int,
        out_channels: int,
        weight_init: Any = None,
        bias_init: Any = None,
        has_bias: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__()
        sizes = [positive(n, "a number of channels") for n in (out_channels, in1_channels, in2_channels)]
        start = default_bias(sizes[1])
        self.weight = parameter(start if weight_init is None else weight_init, tuple(sizes), dtype)
        self.bias = None
        if flag(has_bias, "has_bias"):
            self.bias = parameter(start if bias_init is None else bias_init, (sizes[0],), dtype)

    def construct(self, input1: Any, input2: Any) -> Tensor:
        """The products of arrays (..., in1_channels) and (..., in2_channels)."""
        product = einsum("...i,kij,...j->...k", _value(input1), self.weight, _value(input2))
        return product if self.bias is None else product + self.bias


class EmbeddingLookup(Cell):
    """Rows of a trained table.

    Parameters
    ----------
    vocab_size, embedding_size : int
        The number of rows, and of elements of a row.
    param_init : str, number, Initializer, Tensor or ndarray
    target : {"CPU", "DEVICE"}
        MindSpore's; has no effect.
    max_norm : {None}
    sparse : bool
        MindSpore's; has no effect.
    dtype : dtype

    Attributes
    ----------
    embedding_table : Parameter, shape (vocab_size, embedding_size)
    BATCH_SLICE, TABLE_ROW_SLICE, TABLE_COLUMN_SLICE : str
        Values of `slice_mode`: how the table is shared among processes; has no effect.
    """

    BATCH_SLICE = "batch_slice"
    FIELD_SLICE = "field_slice"
    TABLE_ROW_SLICE = "table_row_slice"
    TABLE_COLUMN_SLICE = "table_column_slice"

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        param_init: Any = "normal",
        target: str = "CPU",
        slice_mode: str = "batch_slice",
        manual_shapes: Any = None,
        max_norm: float | None = None,
        sparse: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__()
        only("target", target, "CPU", "DEVICE")
        only("max_norm", max_norm, None)
        only("slice_mode", slice_mode, self.BATCH_SLICE, self.TABLE_ROW_SLICE, self.TABLE_COLUMN_SLICE)
        only("manual_shapes", manual_shapes, None)
        flag(sparse, "sparse")
        shape = (positive(vocab_size, "vocab_size"), positive(embedding_size, "embedding_size"))
        self.embedding_table = parameter(param_init, shape, dtype)

    def construct(self, indices: Any) -> Tensor:
        """The rows at positions."""
        return gather(self.embedding_table, indices, 0)


class ImageGradients(Cell):
    """The differences of neighbouring pixels along both axes of images (N, C, H, W), and 0 at the last ones."""

    def construct(self, images: Any) -> tuple[Tensor, Tensor]:
        """Differences along height, and along width."""
        x: Any = _value(images)
        down = np.pad(x[:, :, 1:] - x[:, :, :-1], ((0, 0), (0, 0), (0, 1), (0, 0)))
        right = np.pad(x[..., 1:] - x[..., :-1], ((0, 0), (0, 0), (0, 0), (0, 1)))
        return down, right  # pyright: ignore[reportReturnType] - NumPy's types know no Tensors


class LBeta(Cell):
    """The logarithm of the beta function, elementwise."""

    def construct(self, x: Any, y: Any) -> Tensor:
        """The function of two arrays."""
        first, second = _value(x), _value(y)
        return gammaln(first) + gammaln(second) - gammaln(first + second)


class SparseToDense(Cell):
    """Sparse arrays as Tensors with all their zeros."""

    def construct(self, sparse_tensor: Any) -> Tensor:
        """The Tensor."""
        return sparse_tensor.to_dense()


class ParameterUpdate(Cell):
    """Gives a Parameter new values.

    Parameters
    ----------
    param : Parameter
    """

    def __init__(self, param: Parameter) -> None:
        super().__init__()
        object.__setattr__(self, "_param", param)

    def construct(self, x: Any) -> Tensor:
        """The new value, written to the Parameter."""
        self._param.set_data(_value(x))
        return self._param.value()


class TripletMarginWithDistanceLoss(LossBase):
    """max(0, distance to the positive - distance to the negative + margin), by a distance of choice.

    Parameters
    ----------
    distance_function : callable, optional
        Of two arrays; by default the root of the sum of squares over the last axis.
    swap : bool
        Whether to use the distance between positive and negative where it is less.
    reduction : {"mean", "sum", "none"}
    margin : float
    """

    def __init__(
        self,
        distance_function: Callable[[Any, Any], Any] | None = None,
        swap: bool = False,
        reduction: str = "mean",
        margin: float = 1.0,
    ) -> None:
        super().__init__(reduction)
        object.__setattr__(self, "distance_function", distance_function or _distance)
        self.swap, self.margin = flag(swap, "swap"), real(margin, "margin")

    def construct(self, x: Any, positive: Any, negative: Any) -> Tensor:
        """The loss."""
        anchor, plus, minus = _value(x), _value(positive), _value(negative)
        away: Any = self.distance_function(anchor, minus)
        if self.swap:
            away = np.minimum(away, self.distance_function(plus, minus))
        return self.get_loss(np.maximum(self.distance_function(anchor, plus) - away + self.margin, 0.0))


def _distance(x: Any, y: Any) -> Any:
    return np.sqrt(np.sum((x - y) ** 2, -1))
