"""Normalisation layers: of batches, layers, groups, and by the root mean square.

In: sizes and initial values; then arrays. Out: Cells. Called by users. Their functions are in
`nbgrad.ops.normalisation`. Batch normalisation writes its moving statistics while it is recorded, so that compiled
training steps write them too.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..communication.process_groups import communicator, communicator_of_ranks, rank
from ..errors import ArgumentError, ShapeError
from ..ops.normalisation import batch_norm, batch_norm_training, group_norm, layer_norm_from, rms_norm
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import only
from ..record.tensor import Tensor
from .cell import Cell
from .layer_arguments import flag, parameter, part, positive, real, whole
from .layer_forms import WithForms


class _BatchNorm(WithForms):
    """The base of the batch normalisations; they differ in how many axes an input may have."""

    forms: ClassVar[dict[int, str]]
    """The shapes that an input may have, by the number of their axes."""
    formats = ("NCHW",)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
        data_format: str = "NCHW",
        dtype: Any = np.float32,
    ) -> None:
        super().__init__()
        only("data_format", data_format, *self.formats)
        self.num_features = positive(num_features, "num_features")
        self.eps = real(eps, "eps")
        self.momentum = part(momentum, "momentum")
        self.affine = flag(affine, "affine")
        if use_batch_statistics is not None:
            flag(use_batch_statistics, "use_batch_statistics")
        self.use_batch_statistics = use_batch_statistics
        shape = (self.num_features,)
        mean = parameter(moving_mean_init, shape, dtype, False)
        variance = parameter(moving_var_init, shape, dtype, False)
        mean.name, variance.name = "mean", "variance"  # as MindSpore names them
        self.moving_mean, self.moving_variance = mean, variance
        self.gamma = parameter(gamma_init, shape, dtype, affine)
        self.beta = parameter(beta_init, shape, dtype, affine)

    def construct(self, x: Any) -> Tensor:
        """Standardise every channel."""
        shape = as_node(x).shape
        if len(shape) not in self.forms or shape[1] != self.num_features:
            message = (
                f"The input of {self.cls_name} must have shape {' or '.join(self.forms.values())} with "
                f"C = {self.num_features} (num_features), but has shape {shape}."
            )
            raise ShapeError(message)
        by_batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        if not by_batch:
            return batch_norm(x, self.moving_mean, self.moving_variance, self.gamma, self.beta, eps=self.eps)
        y, mean, variance = self._by_batch(x)
        for name, value in (("moving_mean", mean), ("moving_variance", variance)):
            # Where `to_float` casts Parameters, the attribute is a cast copy.
            kept = self._params[name]
            kept.set_data(value.astype(kept.dtype))
        return y

    def _by_batch(self, x: Any) -> tuple[Tensor, Any, Any]:
        """The input standardised by its own statistics, and the new moving ones."""
        moving = (self.moving_mean, self.moving_variance)
        return batch_norm_training(x, *moving, self.gamma, self.beta, 1.0 - self.momentum, self.eps)

    def extend_repr(self) -> str:
        """The arguments."""
        return f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}"


class BatchNorm1d(_BatchNorm):
    """Standardise channels of vectors (N, C) or signals (N, C, L) (Ioffe and Szegedy 2015).

    Parameters
    ----------
    num_features : int
        The number of channels, C.
    eps : float
        Added to the variance.
    momentum : float
        The weight of the old moving statistics in the new ones: `momentum * moving + (1 - momentum) * batch`.
    affine : bool
        Whether gamma and beta are trained.
    gamma_init, beta_init, moving_mean_init, moving_var_init : str, number, Initializer, Tensor or ndarray
    use_batch_statistics : bool, optional
        Standardise by the statistics of the batch (true) or by the moving ones (false); None: by those of the batch
        while training.
    data_format : {"NCHW"}
    dtype : dtype

    Attributes
    ----------
    gamma, beta : Parameter, shape (C,)
    moving_mean, moving_variance : Parameter, shape (C,)
        Not trained, but written by calls that use the statistics of the batch; the variance is the unbiased one.

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For arguments that cannot be used.

    Notes
    -----
    Differs from `torch.nn.BatchNorm1d`: momentum is 1 minus PyTorch's.

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.BatchNorm1d(1, momentum=0.5).set_train()
    >>> print(net(nb.Tensor([[1.0], [3.0]])), net.moving_mean.value(), net.moving_variance.value())
    [[-0.999995]
     [ 0.999995]] [1.] [1.5]
    """

    forms: ClassVar = {2: "(N, C)", 3: "(N, C, L)"}


class BatchNorm2d(_BatchNorm):
    """Standardise channels of images (N, C, H, W); parameters as in `BatchNorm1d`."""

    forms: ClassVar = {4: "(N, C, H, W)"}


class LayerNorm(WithForms):
    """Standardise the last axes of every example (Ba et al. 2016).

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The shape of gamma and beta: that of the axes from `begin_params_axis`.
    begin_norm_axis : int
        The mean and the variance are those over the axes from this one.
    begin_params_axis : int
        The first axis that gamma and beta belong to.
    gamma_init, beta_init : str, number, Initializer, Tensor or ndarray
    epsilon : float
        Added to the variance.
    dtype : dtype

    Attributes
    ----------
    gamma, beta : Parameter, shape `normalized_shape`

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For arguments that cannot be used.

    Notes
    -----
    Differs from `torch.nn.LayerNorm`: epsilon is 1e-7, and two axes need `begin_norm_axis=-2, begin_params_axis=-2`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.LayerNorm((2,))(nb.Tensor([[1.0, 5.0]])))
    [[-1.  1.]]
    """

    def __init__(
        self,
        normalized_shape: Any,
        begin_norm_axis: int = -1,
        begin_params_axis: int = -1,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        epsilon: float = 1e-7,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__()
        self.normalized_shape = _extents(normalized_shape)
        self.begin_norm_axis = whole(begin_norm_axis, "begin_norm_axis")
        self.begin_params_axis = whole(begin_params_axis, "begin_params_axis")
        if self.begin_params_axis < 0 and len(self.normalized_shape) != -self.begin_params_axis:
            count = len(self.normalized_shape)
            message = (
                f"normalized_shape={self.normalized_shape} has {count} axes, but begin_params_axis={begin_params_axis} "
                f"leaves {-self.begin_params_axis}. Pass begin_norm_axis={-count}, begin_params_axis={-count}."
            )
            raise ArgumentError(message)
        self.epsilon = real(epsilon, "epsilon")
        self.gamma = parameter(gamma_init, self.normalized_shape, dtype)
        self.beta = parameter(beta_init, self.normalized_shape, dtype)

    def construct(self, input_x: Any) -> Tensor:
        """Standardise the input, of any shape that ends in `normalized_shape`."""
        return layer_norm_from(
            input_x, self.gamma, self.beta, self.begin_norm_axis, self.begin_params_axis, self.epsilon
        )

    def extend_repr(self) -> str:
        """The axes."""
        return (
            f"normalized_shape={self.normalized_shape}, begin_norm_axis={self.begin_norm_axis}, "
            f"begin_params_axis={self.begin_params_axis}"
        )


def _extents(shape: Any) -> tuple[int, ...]:
    given = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    if not given:
        message = "normalized_shape must have at least one axis."
        raise ArgumentError(message)
    return tuple([positive(n, "normalized_shape") for n in given])


class GroupNorm(Cell):
    """Standardise groups of channels of every example (Wu and He 2018).

    Parameters
    ----------
    num_groups : int
        Divides `num_channels`.
    num_channels : int
    eps : float
        Added to the variance.
    affine : bool
        Whether gamma and beta are trained.
    gamma_init, beta_init : str, number, Initializer, Tensor or ndarray
    dtype : dtype

    Attributes
    ----------
    gamma, beta : Parameter, shape (num_channels,)

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For arguments that cannot be used.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.nn.GroupNorm(2, 4)(nb.ops.ones((1, 4, 3, 3))).shape
    (1, 4, 3, 3)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        dtype: Any = np.float32,
    ) -> None:
        super().__init__()
        self.num_groups = positive(num_groups, "num_groups")
        self.num_channels = positive(num_channels, "num_channels")
        if self.num_channels % self.num_groups:
            message = f"num_groups must divide num_channels={num_channels}, but is {num_groups}."
            raise ArgumentError(message)
        self.eps = real(eps, "eps")
        self.affine = flag(affine, "affine")
        self.gamma = parameter(gamma_init, (self.num_channels,), dtype, affine)
        self.beta = parameter(beta_init, (self.num_channels,), dtype, affine)

    def construct(self, x: Any) -> Tensor:
        """Standardise the input, of shape (N, C, ...)."""
        shape = as_node(x).shape
        if len(shape) < 2 or shape[1] != self.num_channels:
            message = f"The input of GroupNorm must have shape (N, {self.num_channels}, ...), but has shape {shape}."
            raise ShapeError(message)
        return group_norm(x, self.num_groups, self.gamma, self.beta, self.eps)

    def extend_repr(self) -> str:
        """The sizes."""
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}"


class RMSNorm(Cell):
    """Divide by the root mean square over the last axes (Zhang and Sennrich 2019).

    Parameters
    ----------
    normalized_shape : int or sequence of int
    gamma_init : str, number, Initializer, Tensor or ndarray
    epsilon : float
        Added to the mean of the squares.
    dtype : dtype

    Attributes
    ----------
    gamma : Parameter, shape `normalized_shape`

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For arguments that cannot be used.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.RMSNorm(2, epsilon=0.0)(nb.Tensor([[1.0, 7.0]])))
    [[0.2 1.4]]
    """

    def __init__(
        self, normalized_shape: Any, gamma_init: Any = "ones", epsilon: float = 1e-6, dtype: Any = np.float32
    ) -> None:
        super().__init__()
        self.normalized_shape = _extents(normalized_shape)
        self.epsilon = real(epsilon, "epsilon")
        self.gamma = parameter(gamma_init, self.normalized_shape, dtype)

    def construct(self, x: Any) -> Tensor:
        """Scale the input, of any shape that ends in `normalized_shape`."""
        return rms_norm(x, self.gamma, self.epsilon)[0]

    def extend_repr(self) -> str:
        """The shape of gamma."""
        return f"normalized_shape={self.normalized_shape}, epsilon={self.epsilon}"


class BatchNorm3d(_BatchNorm):
    """Standardise channels of volumes (N, C, D, H, W); parameters as in `BatchNorm1d`, `data_format` is "NCDHW"."""

    forms: ClassVar = {5: "(N, C, D, H, W)"}
    formats = ("NCDHW", "NCHW")


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation by the batches of all processes; with one process, by its own. Arrays of 2 to 5 axes.

    Parameters
    ----------
    num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init, use_batch_statistics
        As for `BatchNorm1d`.
    process_groups : list of list of int, optional
        Ranks of the processes whose batches belong together; by default all. Each process makes the layer.
    """

    forms: ClassVar = {2: "(N, C)", 3: "(N, C, L)", 4: "(N, C, H, W)", 5: "(N, C, D, H, W)"}

    def __init__(self, num_features: int, *args: Any, process_groups: Any = None, **kwargs: Any) -> None:
        super().__init__(num_features, *args, **kwargs)
        own = [list(ranks) for ranks in process_groups or [] if rank() in ranks]
        self._comm = communicator_of_ranks(own[0]) if own else None if process_groups else communicator()

    def _by_batch(self, x: Any) -> tuple[Tensor, Any, Any]:
        if self._comm is None:
            return super()._by_batch(x)
        x = wrap(as_node(x))
        axes, shape = (0, *range(2, x.ndim)), (1, -1, *[1] * (x.ndim - 2))
        wide = x.astype(np.promote_types(np.dtype(x.dtype), np.float32))
        own = np.array([x.size // self.num_features], wide.dtype)
        sums = self._summed(np.concatenate([wide.sum(axes), own]))
        # Batches of other lengths compile nothing new on other processes: their lengths are among the data.
        count = sums[-1]
        mean = sums[:-1] / count
        variance = self._summed(((wide - mean.reshape(shape)) ** 2).sum(axes)) / count
        y = batch_norm(x, mean, variance, self.gamma, self.beta, eps=self.eps)
        new = (mean, variance * (count / np.maximum(count - 1, 1)))
        old = (self.moving_mean, self.moving_variance)
        moved = [self.momentum * was + (1 - self.momentum) * now for was, now in zip(old, new, strict=True)]
        return y, moved[0], moved[1]

    def _summed(self, x: Any) -> Any:
        from ..mpi import allreduce

        return allreduce(x, comm=self._comm)


class _InstanceNorm(Cell):
    """Standardise every channel of every example."""

    axes: int

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        dtype: Any = np.float32,
    ) -> None:
        super().__init__()
        self.num_features = positive(num_features, "num_features")
        self.eps, self.momentum = real(eps, "eps"), part(momentum, "momentum")
        self.affine = flag(affine, "affine")
        self.gamma = parameter(gamma_init, (self.num_features,), dtype, affine)
        self.beta = parameter(beta_init, (self.num_features,), dtype, affine)

    def construct(self, x: Any) -> Tensor:
        """The standardised array, times gamma and plus beta."""
        shape = as_node(x).shape
        if len(shape) != self.axes + 2 or shape[1] != self.num_features:
            message = (
                f"The input of {self.cls_name} must have {self.axes + 2} axes and {self.num_features} channels, but "
                f"has shape {shape}."
            )
            raise ShapeError(message)
        return group_norm(x, self.num_features, self.gamma, self.beta, self.eps)

    def extend_repr(self) -> str:
        """The arguments."""
        return f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}"


class InstanceNorm1d(_InstanceNorm):
    """Standardise every channel of every signal (N, C, L) (Ulyanov, Vedaldi, Lempitsky 2016).

    Parameters
    ----------
    num_features : int
    eps : float
        Added to the variance.
    momentum : float
        MindSpore's; has no effect: the statistics are always those of the input.
    affine : bool
        Whether gamma and beta are trained.
    gamma_init, beta_init : str, number, Initializer, Tensor or ndarray
    dtype : dtype
    """

    axes = 1


class InstanceNorm2d(_InstanceNorm):
    """Standardise every channel of every image (N, C, H, W); parameters as in `InstanceNorm1d`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.InstanceNorm2d(1, eps=1e-12)(nb.Tensor([[[[1.0, 3.0]]]])))
    [[[[-1.  1.]]]]
    """

    axes = 2


class InstanceNorm3d(_InstanceNorm):
    """Standardise every channel of every volume (N, C, D, H, W); parameters as in `InstanceNorm1d`."""

    axes = 3
