"""Managers of the loss scale, for `train.Model`: a fixed one, and one that follows overflows.

In: a scale, and after each step whether gradients have overflowed. Out: the scale, and the Cell of `nn` that changes it
inside a training step. Called by users and by precision.py.
"""

from __future__ import annotations

from typing import Any

from ..nn.layer_arguments import flag, positive
from ..nn.loss_scaling import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell
from ..nn.optimizer import real_number


class LossScaleManager:
    """The base of managers; subclasses define its three methods."""

    def get_loss_scale(self) -> float:
        """The scale now."""
        raise NotImplementedError

    def update_loss_scale(self, overflow: bool) -> None:
        """Note whether the gradients of a step have overflowed."""
        raise NotImplementedError

    def get_update_cell(self) -> Any:
        """The Cell that changes the scale inside a step, or None."""
        raise NotImplementedError


class FixedLossScaleManager(LossScaleManager):
    """A scale that stays.

    Parameters
    ----------
    loss_scale : float
        If steps are taken at overflows too, the optimizer needs the same `loss_scale`.
    drop_overflow_update : bool
        Whether a step is left out if gradients overflow.

    Examples
    --------
    >>> from nbgrad import amp
    >>> amp.FixedLossScaleManager(1024.0, drop_overflow_update=False).get_loss_scale()
    1024.0
    """

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        self._loss_scale = real_number("loss_scale", loss_scale, least=1.0)
        self._drop_overflow_update = flag(drop_overflow_update, "drop_overflow_update")

    def get_loss_scale(self) -> float:
        """The scale."""
        return self._loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Whether a step is left out if gradients overflow."""
        return self._drop_overflow_update

    def update_loss_scale(self, overflow: bool) -> None:
        """Nothing: the scale stays."""

    def get_update_cell(self) -> Any:
        """A `FixedLossScaleUpdateCell`; None if steps are taken at overflows too."""
        return FixedLossScaleUpdateCell(self._loss_scale) if self._drop_overflow_update else None


class DynamicLossScaleManager(LossScaleManager):
    """A scale that falls at an overflow and grows after steps without one.

    Parameters
    ----------
    init_loss_scale : float
    scale_factor : int
    scale_window : int
        The number of steps without an overflow after which the scale grows.

    Examples
    --------
    >>> from nbgrad import amp
    >>> manager = amp.DynamicLossScaleManager(16, 2, scale_window=2)
    >>> for overflow in (True, False, False, False):
    ...     manager.update_loss_scale(overflow)
    ...     print(manager.get_loss_scale())
    8.0
    8.0
    16.0
    16.0
    """

    def __init__(self, init_loss_scale: float = 2**24, scale_factor: int = 2, scale_window: int = 2000) -> None:
        self.loss_scale = real_number("init_loss_scale", init_loss_scale, least=1.0)
        self.scale_factor = positive(scale_factor, "scale_factor")
        self.scale_window = positive(scale_window, "scale_window")
        self.increase_ratio = self.scale_factor
        self.decrease_ratio = 1 / self.scale_factor
        self.cur_iter = 1
        self.last_overflow_iter = 0

    def get_loss_scale(self) -> float:
        """The scale now."""
        return self.loss_scale

    def update_loss_scale(self, overflow: bool) -> None:
        """Lower the scale at an overflow, to 1 at least; raise it after a window without one."""
        if flag(overflow, "overflow"):
            self.loss_scale = max(self.loss_scale * self.decrease_ratio, 1.0)
            self.last_overflow_iter = self.cur_iter
        elif (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
            self.loss_scale *= self.increase_ratio
        self.cur_iter += 1

    def get_drop_overflow_update(self) -> bool:
        """True: a step is left out if gradients overflow."""
        return True

    def get_update_cell(self) -> Any:
        """A `DynamicLossScaleUpdateCell`."""
        return DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)
