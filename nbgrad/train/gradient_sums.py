"""Gradients of several batches added up before an update: the names of MindSpore's module `boost.grad_accumulation`.

In: an optimizer and a number of batches; then a loss and its gradients. Out: the loss, and an update every so many
calls. Called by users and by the training steps of public collections, which derive their own from this one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..nn.cell import Cell
from ..ops.parameters import assign, assign_add
from ..record.axes_and_dtypes import integer
from ..record.tensor import Tensor
from ..tensors.parameter import Parameter
from ..transforms.mapped_structures import HyperMap, MultitypeFuncGraph, partial

__all__ = ["GradientAccumulation", "gradient_accumulation_op", "gradient_clear_op"]

gradient_accumulation_op = MultitypeFuncGraph("gradient_accumulation_op")
"""Adds a gradient, divided by the number of batches, to a Parameter."""
gradient_clear_op = MultitypeFuncGraph("gradient_clear_op")
"""Sets a Parameter to zero."""


@gradient_accumulation_op.register("Number", "Tensor", "Tensor")
def _add(count: int, total: Parameter, gradient: Any) -> Any:
    return assign_add(total, gradient / count)


@gradient_clear_op.register("Tensor")
def _clear(total: Parameter) -> Any:
    return assign(total, np.zeros(total.shape, np.dtype(total.dtype.name)))


class GradientAccumulation(Cell):
    """Adds up the gradients of several calls, and then updates by their mean.

    Parameters
    ----------
    max_accumulation_step : int
        The number of calls for one update.
    optimizer : Optimizer

    Examples
    --------
    >>> import nbgrad as nb
    >>> from nbgrad.boost.grad_accumulation import GradientAccumulation
    >>> w = nb.Parameter(nb.Tensor([1.0]), name="w")
    >>> update = GradientAccumulation(2, nb.nn.SGD([w], learning_rate=1.0))
    >>> for slope in (0.25, 0.5):
    ...     _ = update(nb.Tensor(1.0), (nb.Tensor([slope]),))
    ...     print(w.value())
    [1.]
    [0.625]
    """

    def __init__(self, max_accumulation_step: int, optimizer: Any) -> None:
        super().__init__()
        self._max_accumulation_step = integer(max_accumulation_step, "max_accumulation_step")
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.hyper_map = HyperMap()
        self._grad_accumulation = self.weights.clone(prefix="grad_accumulation", init="zeros")
        self._accumulation_step = Parameter(Tensor(0, np.int32), name="accumulation_step")

    def construct(self, loss: Any, grads: Any) -> Any:
        """The loss, after the gradients are added and perhaps used."""
        self.hyper_map(partial(gradient_accumulation_op, self._max_accumulation_step), self._grad_accumulation, grads)
        assign_add(self._accumulation_step, 1)
        if self._accumulation_step >= self._max_accumulation_step:
            self.optimizer(self._grad_accumulation)
            self.hyper_map(gradient_clear_op, self._grad_accumulation)
            assign(self._accumulation_step, 0)
        return loss
