"""Training with a scaled loss, so that small gradients of float16 do not vanish: steps, and rules for the scale.

In: a network with its loss, an optimizer, a rule; at each call a batch. Out: the loss, whether gradients have
overflowed, and the scale. Called by users and by `train.Model`. A step whose gradients are not finite changes neither
weights nor the state of the optimizer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DtypeError
from ..record.tensor import Tensor
from ..tensors.parameter import Parameter
from .cell import Cell
from .layer_arguments import positive
from .optimizer import Optimizer, real_number
from .training import TrainOneStepCell


class FixedLossScaleUpdateCell(Cell):
    """A scale that stays.

    Parameters
    ----------
    loss_scale_value : float
    """

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        self.loss_scale_value = real_number("loss_scale_value", loss_scale_value, open_end=True)

    def get_loss_scale(self) -> float:
        """The scale to begin with."""
        return self.loss_scale_value

    def construct(self, loss_scale: Any, overflow: Any) -> Any:
        """Whether gradients have overflowed, as given."""
        return overflow


class DynamicLossScaleUpdateCell(Cell):
    """A scale that falls at an overflow, to 1 at least, and grows after steps without one.

    Parameters
    ----------
    loss_scale_value : float
        The scale to begin with.
    scale_factor : float
        The factor by which it changes.
    scale_window : int
        The number of steps without an overflow after which it grows.

    Examples
    --------
    >>> import nbgrad as nb
    >>> rule = nb.nn.DynamicLossScaleUpdateCell(8.0, scale_factor=2, scale_window=1)
    >>> scale = nb.Parameter(nb.Tensor(8.0), name="scale")
    >>> _ = rule(scale, nb.Tensor(True))
    >>> print(scale.value())
    4.0
    """

    def __init__(self, loss_scale_value: float, scale_factor: float, scale_window: int) -> None:
        super().__init__()
        self.loss_scale_value = real_number("loss_scale_value", loss_scale_value, open_end=True)
        self.scale_factor = real_number("scale_factor", scale_factor, open_end=True)
        self.scale_window = positive(scale_window, "scale_window")
        one, none = np.array(1, np.int32), np.array(0, np.int32)
        self.cur_iter = Parameter(one, name="current_iterator_step", requires_grad=False)
        self.last_overflow_iter = Parameter(none, name="last_overflow_iterator_step", requires_grad=False)

    def get_loss_scale(self) -> float:
        """The scale to begin with."""
        return self.loss_scale_value

    def construct(self, loss_scale: Parameter, overflow: Any) -> Any:
        """Whether gradients have overflowed, as given; the scale, a Parameter, gets its next value."""
        quiet = self.cur_iter - self.last_overflow_iter >= self.scale_window
        lower = np.maximum(loss_scale / self.scale_factor, 1.0)
        higher = np.where(quiet, loss_scale * self.scale_factor, loss_scale)
        loss_scale.set_data(np.where(overflow, lower, higher).astype(loss_scale.dtype))
        self.last_overflow_iter.set_data(np.where(overflow | quiet, self.cur_iter, self.last_overflow_iter))
        self.cur_iter.set_data(self.cur_iter + 1)
        return overflow


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """One step of training with a scaled loss.

    Parameters
    ----------
    network : Cell
        Computes the loss.
    optimizer : Optimizer
    scale_sense : Cell or Tensor
        A rule for the scale, such as `DynamicLossScaleUpdateCell`, or a fixed scale.
    communicator : str or mpi4py.MPI.Comm, optional
        As for `TrainOneStepCell`.

    Raises
    ------
    DtypeError
        If an argument is something else.

    Notes
    -----
    Subclasses with a `construct` of their own find `start_overflow_check`, `get_overflow_status` and
    `process_loss_scale`, as in MindSpore; their steps are not compiled as a whole.

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.WithLossCell(nb.nn.Dense(1, 1, "zeros", "zeros"), nb.nn.MSELoss())
    >>> rule = nb.nn.DynamicLossScaleUpdateCell(1024.0, 2.0, 1000)
    >>> step = nb.nn.TrainOneStepWithLossScaleCell(net, nb.nn.SGD(net.trainable_params(), 0.5), rule)
    >>> loss, overflow, scale = step(nb.Tensor([[1.0]]), nb.Tensor([[1.0]]))
    >>> print(loss, overflow, scale, net.backbone_network.bias.value())
    1.0 False 1024.0 [1.]
    """

    def __init__(self, network: Cell, optimizer: Optimizer, scale_sense: Any, communicator: Any = None) -> None:
        super().__init__(network, optimizer, communicator=communicator)
        self.base = 1.0
        self.is_distributed = self.reducer_flag
        self.loss_scaling_manager: Any = None
        if isinstance(scale_sense, Cell):
            self.loss_scaling_manager = scale_sense
            scale: Any = Tensor(np.array(scale_sense.get_loss_scale(), np.float32))
        elif isinstance(scale_sense, Tensor) and scale_sense.size == 1:
            scale = scale_sense.reshape(()).astype(np.float32)
        else:
            message = f"scale_sense must be a Cell or a Tensor of one element, but got {type(scale_sense).__name__}."
            raise DtypeError(message)
        self.scale_sense = Parameter(scale, name="scale_sense", requires_grad=False)
        if type(self).construct is not TrainOneStepWithLossScaleCell.construct:
            self._compiled = super(TrainOneStepCell, self).__call__

    def set_sense_scale(self, sens: Any) -> None:
        """Give a scale that is fixed another value."""
        self.scale_sense.set_data(Tensor(sens).reshape(()).astype(np.float32))

    def start_overflow_check(self, pre_cond: Any, compute_input: Any) -> tuple[Any, Any]:
        """A status for `get_overflow_status`, and the input as it is; nothing has to be reset."""
        return None, compute_input

    def get_overflow_status(self, status: Any, compute_output: Any) -> Tensor:
        """Whether gradients have a NaN or an infinity: a 0-d Tensor of bool."""
        finite = [np.isfinite(gradient).all() for gradient in _flat(compute_output)]
        found = finite[0]
        for one in finite[1:]:
            found = found & one
        return ~found

    def process_loss_scale(self, overflow: Any) -> Any:
        """Let the rule change the scale; whether gradients have overflowed, as given."""
        if self.loss_scaling_manager is not None:
            return self.loss_scaling_manager(self.scale_sense, overflow)
        return overflow

    def construct(self, *inputs: Any, **kwargs: Any) -> Any:
        """The loss, whether gradients have overflowed, and the scale of this step."""
        scale = self.scale_sense.value()
        loss = self.network(*inputs, **kwargs)
        seed = (loss * 0 + 1) * scale.astype(loss.dtype)
        gradients = self.grad(self.network, self.weights)(*inputs, seed, **kwargs)
        gradients = tuple([gradient / scale.astype(gradient.dtype) for gradient in gradients])
        gradients = self.grad_reducer(gradients)
        overflow = self.get_overflow_status(None, gradients)
        written = [*self.optimizer.parameters, *self.optimizer.get_parameters()]
        before = [parameter.value() for parameter in written]
        self.optimizer(gradients)
        for parameter, old in zip(written, before, strict=True):
            parameter.set_data(np.where(overflow, old, parameter.value()))
        self.process_loss_scale(overflow)
        return loss, overflow, scale


def _flat(values: Any) -> list[Any]:
    return [one for value in values for one in _flat(value)] if isinstance(values, tuple | list) else [values]
