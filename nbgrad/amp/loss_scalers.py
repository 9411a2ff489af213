"""Scales of a loss for functional training steps: fixed, or following overflows.

In: a loss or gradients. Out: the same, scaled; and whether gradients are finite. Called by users, also inside functions
that are compiled: a scale is a Parameter, so that a new value compiles nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DtypeError
from ..nn.layer_arguments import positive
from ..nn.optimizer import real_number
from ..record.container_leaves import leaves_of, map_leaves
from ..record.tensor import Tensor
from ..tensors.parameter import Parameter


def all_finite(inputs: Any) -> Tensor:
    """Whether no element of any array is NaN or infinite.

    Parameters
    ----------
    inputs : Tensor, or tuple or list of Tensor

    Returns
    -------
    Tensor
        0-d, of bool.

    Raises
    ------
    DtypeError
        If there is something else than Tensors.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.amp.all_finite((nb.Tensor([1.0]), nb.Tensor([2.0, float("inf")]))))
    False
    """
    finite: Any = None
    for value in leaves_of(inputs):
        if not isinstance(value, Tensor):
            message = f"all_finite takes Tensors, but got {type(value).__name__}."
            raise DtypeError(message)
        one = np.isfinite(value).all()
        finite = one if finite is None else finite & one
    return Tensor(True) if finite is None else finite


def times(factor: Any, inputs: Any) -> Any:
    """Tensors times a factor, in their dtypes."""

    def scaled(value: Any) -> Any:
        return value * factor.astype(value.dtype) if isinstance(value, Tensor) else value

    return map_leaves(scaled, inputs)


def divided(factor: Any, inputs: Any) -> Any:
    """Tensors divided by a factor, in their dtypes."""
    return times(1.0 / factor, inputs)


class LossScaler:
    """The base of scales; subclasses define its three methods."""

    def scale(self, inputs: Any) -> Any:
        """Tensors times the scale."""
        raise NotImplementedError

    def unscale(self, inputs: Any) -> Any:
        """Tensors divided by the scale."""
        raise NotImplementedError

    def adjust(self, grads_finite: Any) -> Any:
        """Change the scale, by whether gradients are finite."""
        raise NotImplementedError


class StaticLossScaler(LossScaler):
    """A scale that stays.

    Parameters
    ----------
    scale_value : number
        At least 1.

    Examples
    --------
    >>> import nbgrad as nb
    >>> scaler = nb.amp.StaticLossScaler(1024)
    >>> print(scaler.scale(nb.Tensor(0.5)), scaler.unscale((nb.Tensor(512.0),))[0])
    512.0 0.5
    """

    def __init__(self, scale_value: float) -> None:
        value = real_number("scale_value", scale_value, least=1.0)
        self.scale_value = Parameter(np.array(value, np.float32), name="scale_value", requires_grad=False)

    def scale(self, inputs: Any) -> Any:
        """Tensors times the scale, in their dtypes."""
        return times(self.scale_value.value(), inputs)

    def unscale(self, inputs: Any) -> Any:
        """Tensors divided by the scale, in their dtypes."""
        return divided(self.scale_value.value(), inputs)

    def adjust(self, grads_finite: Any) -> bool:
        """False: the scale stays."""
        return False


class DynamicLossScaler(StaticLossScaler):
    """A scale that falls where gradients are not finite, to 1 at least, and grows after steps where they are.

    Parameters
    ----------
    scale_value : number
        The scale to begin with, at least 1.
    scale_factor : int
        The factor by which it changes.
    scale_window : int
        The number of steps after which it grows.

    Examples
    --------
    >>> import nbgrad as nb
    >>> scaler = nb.amp.DynamicLossScaler(1024, scale_factor=2, scale_window=1)
    >>> gradients = (nb.Tensor([float("nan")]), nb.Tensor([0.5]))
    >>> scaler.adjust(nb.amp.all_finite(scaler.unscale(gradients)))
    True
    >>> print(scaler.scale_value.value())
    512.0
    """

    def __init__(self, scale_value: float, scale_factor: int, scale_window: int) -> None:
        super().__init__(scale_value)
        self.scale_factor = positive(scale_factor, "scale_factor")
        self.scale_window = positive(scale_window, "scale_window")
        self.counter = Parameter(np.array(0, np.int32), name="counter", requires_grad=False)

    def adjust(self, grads_finite: Any) -> bool:
        """Change the scale; True."""
        scale = self.scale_value.value()
        finite = grads_finite if isinstance(grads_finite, Tensor) else Tensor(grads_finite)
        higher = scale * self.scale_factor
        grows = (self.counter == self.scale_window - 1) & np.isfinite(higher)
        lower = np.maximum(scale / self.scale_factor, 1.0)
        self.scale_value.set_data(np.where(finite, np.where(grows, higher, scale), lower).astype(scale.dtype))
        counted = np.where(finite, (self.counter + 1) % self.scale_window, 0)
        self.counter.set_data(counted.astype(self.counter.dtype))
        return True
