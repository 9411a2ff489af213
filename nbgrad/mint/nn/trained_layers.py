"""Layers of `mint.nn` with Parameters: those of `nbgrad.nn` with PyTorch's options, defaults and names of Parameters.

In: options; then Tensors. Out: Cells. Used by users.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import nn
from ...errors import ArgumentError
from ...nn.layer_arguments import flag, parameter
from ...ops import layer_norm
from ...record.axes_and_dtypes import only
from ...record.tensor import Tensor

FLOAT32 = np.float32


def _dtype(dtype: Any) -> Any:
    return FLOAT32 if dtype is None else dtype


class Linear(nn.Dense):
    """`x @ weight.T + bias`, over the last axis.

    Parameters
    ----------
    in_features, out_features : int
    bias : bool
        Whether there is a bias.
    weight_init, bias_init : str, number, Initializer, Tensor or ndarray, optional
        By default uniform up to `1 / sqrt(in_features)`.
    dtype : dtype, optional

    Attributes
    ----------
    weight : Parameter, shape (out_features, in_features)
    bias : Parameter, shape (out_features,)
        None without bias.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, weight_init, bias_init, bias, dtype=_dtype(dtype))
        self.in_features, self.out_features = self.in_channels, self.out_channels


# ----- Normalisation -----


class _WeightAndBias:
    """PyTorch's names of gamma, beta and the moving statistics: attributes, and names of Parameters."""

    gamma: Any
    beta: Any

    @property
    def weight(self) -> Any:
        """The factors."""
        return self.gamma

    @property
    def bias(self) -> Any:
        """The summands."""
        return self.beta

    def _renamed(self) -> None:
        names = {
            "gamma": "weight",
            "beta": "bias",
            "moving_mean": "running_mean",
            "moving_variance": "running_var",
        }
        for own, name in names.items():
            if getattr(self, own, None) is not None:
                getattr(self, own).name = name


class _BatchNorm(_WeightAndBias):
    """PyTorch's options of the layers that standardise channels."""

    moving_mean: Any
    moving_variance: Any

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: Any = None,
    ) -> None:
        by_batch = None if flag(track_running_stats, "track_running_stats") else True
        options: dict[str, Any] = {"use_batch_statistics": by_batch, "dtype": _dtype(dtype)}
        super().__init__(num_features, eps, 1.0 - momentum, affine, **options)  # pyright: ignore[reportCallIssue]
        self.track_running_stats = track_running_stats
        self._renamed()

    @property
    def running_mean(self) -> Any:
        """The moving means."""
        return self.moving_mean

    @property
    def running_var(self) -> Any:
        """The moving variances."""
        return self.moving_variance


class BatchNorm1d(_BatchNorm, nn.BatchNorm1d):
    """Standardise channels of vectors (N, C) or signals (N, C, L).

    Parameters
    ----------
    num_features : int
        The number of channels.
    eps : float
        Added to the variance.
    momentum : float
        The weight of the batch in the moving statistics.
    affine : bool
        Whether weight and bias are trained.
    track_running_stats : bool
        Whether the moving statistics are used outside of training; else those of the batch.
    dtype : dtype, optional
    """


class BatchNorm2d(_BatchNorm, nn.BatchNorm2d):
    """Standardise channels of images; parameters as in `BatchNorm1d`."""


class BatchNorm3d(_BatchNorm, nn.BatchNorm3d):
    """Standardise channels of volumes; parameters as in `BatchNorm1d`."""


class SyncBatchNorm(BatchNorm2d):
    """`BatchNorm2d`; with one process there is no other batch to join."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        dtype: Any = None,
    ) -> None:
        only("process_group", process_group, None)
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    forms = {2: "(N, C)", 3: "(N, C, L)", 4: "(N, C, H, W)", 5: "(N, C, D, H, W)"}  # noqa: RUF012 - as in the base


class GroupNorm(_WeightAndBias, nn.GroupNorm):
    """Standardise groups of channels.

    Parameters
    ----------
    num_groups, num_channels : int
    eps : float
    affine : bool
        Whether weight and bias are trained.
    dtype : dtype, optional
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, dtype: Any = None
    ) -> None:
        super().__init__(num_groups, num_channels, eps, affine, dtype=_dtype(dtype))
        self._renamed()


class LayerNorm(nn.Cell):
    """Standardise the last axes of every example.

    Parameters
    ----------
    normalized_shape : int or tuple of int
        The extents of these axes.
    eps : float
    elementwise_affine : bool
        Whether there are a weight and a bias.
    bias : bool
        Whether there is a bias.
    dtype : dtype, optional
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = flag(elementwise_affine, "elementwise_affine")
        chosen = elementwise_affine and flag(bias, "bias")
        self.weight = parameter("ones", self.normalized_shape, _dtype(dtype)) if elementwise_affine else None
        self.bias = parameter("zeros", self.normalized_shape, _dtype(dtype)) if chosen else None

    def construct(self, input: Any) -> Tensor:
        """Standardise the input, of any shape that ends in `normalized_shape`."""
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extend_repr(self) -> str:
        """The arguments."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


# ----- Others -----


class PReLU(nn.PReLU):
    """x where it is positive, else weight * x, with one learned weight or one for each channel.

    Parameters
    ----------
    num_parameters : int
    init : float
    dtype : dtype, optional
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: Any = None) -> None:
        super().__init__(num_parameters, init, _dtype(dtype))
        self.w.name = "weight"

    @property
    def weight(self) -> Any:
        """The slopes."""
        return self.w


class Embedding(nn.Embedding):
    """Rows of a trained table.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        The number of rows, and of elements of a row.
    padding_idx : int, optional
        A row of zeros.
    max_norm, norm_type, scale_grad_by_freq, sparse
        Only their defaults: None, 2.0, False, False.
    _weight : Tensor, optional
        The table; standard normal numbers by default.
    dtype : dtype, optional
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        dtype: Any = None,
    ) -> None:
        if max_norm is not None or scale_grad_by_freq or sparse or norm_type != 2.0:
            message = "Embedding has neither max_norm nor scale_grad_by_freq nor sparse gradients. Leave them out."
            raise ArgumentError(message)
        from ...tensors.initial_values import Normal

        table = Normal(1.0) if _weight is None else _weight
        super().__init__(
            num_embeddings, embedding_dim, embedding_table=table, dtype=_dtype(dtype), padding_idx=padding_idx
        )
        self.embedding_table.name = "weight"
        self.embedding_table.requires_grad = not flag(_freeze, "_freeze")

    @property
    def weight(self) -> Any:
        """The table."""
        return self.embedding_table
