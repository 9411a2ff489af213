"""Members of MindSpore's Optimizer that optimizers of public collections use in a `construct` of their own.

In: an optimizer. Out: what it knows of its groups, rates and weights, under MindSpore's names. The base of Optimizer,
whose own methods do not use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ops.parameters import assign_add
from ..record.tensor import Tensor
from ..tensors.parameter import Parameter
from ..transforms.mapped_structures import HyperMap, Map
from .cell import Cell


class StepRates(Parameter):
    """Learning rates, one for each step; called with the global step, as in MindSpore, it gives the one of a step."""

    def __call__(self, global_step: Any) -> Any:
        """The rate of a step, and the last one after them."""
        places: Any = np.minimum(global_step.reshape(()), self.size - 1)
        return np.take(self, places)  # pyright: ignore[reportCallIssue, reportArgumentType]


def _changes(value: Any) -> bool:
    """Whether a rate or a decay is another one in another step."""
    if isinstance(value, tuple):
        return any(_changes(one) for one in value)
    return isinstance(value, Cell | StepRates)


def tensors_of(value: Any) -> Any:
    """Numbers as Tensors, also in a tuple; Cells as they are."""
    if isinstance(value, tuple):
        return tuple([tensors_of(one) for one in value])
    return Tensor(value, np.float32) if isinstance(value, int | float) else value


def _flags(optimizer: Any) -> tuple[bool, ...]:
    """Whether each weight has a decay."""
    decays = [None if name is None else getattr(optimizer, name) for name in optimizer._decay_names]
    return tuple([isinstance(decay, Cell) or bool(decay) for decay in decays])


MEMBERS: dict[str, Callable[[Any], Any]] = {
    "_parameters": lambda optimizer: optimizer.parameters,
    "is_group": lambda optimizer: isinstance(optimizer.weight_decay, tuple),
    "is_group_lr": lambda optimizer: isinstance(optimizer.learning_rate, tuple),
    "dynamic_lr": lambda optimizer: _changes(optimizer.learning_rate),
    "dynamic_weight_decay": lambda optimizer: _changes(optimizer.weight_decay),
    "decay_flags": _flags,
    "exec_weight_decay": lambda optimizer: any(_flags(optimizer)),
    "optim_filter": lambda optimizer: (True,) * len(optimizer.parameters),
    "ps_parameters": lambda optimizer: (False,) * len(optimizer.parameters),
    "cache_enable": lambda optimizer: (False,) * len(optimizer.parameters),
    "param_length": lambda optimizer: len(optimizer.parameters),
    "unique": lambda optimizer: True,
    "use_parallel": lambda optimizer: False,
    "need_scale": lambda optimizer: optimizer.loss_scale != 1.0,
    "reciprocal_scale": lambda optimizer: Tensor(1.0 / optimizer.loss_scale, np.float32),
    "global_step_increase_tensor": lambda optimizer: Tensor([1], np.int32),
    "assignadd": lambda optimizer: assign_add,
    "map_": lambda optimizer: Map(),
    "map_reverse": lambda optimizer: Map(reverse=True),
    "hyper_map": lambda optimizer: HyperMap(),
    "hyper_map_reverse": lambda optimizer: HyperMap(reverse=True),
}
"""Attribute -> what makes it; an optimizer that assigns to one has its own."""


class MembersOfOptimizers(Cell):
    """The attributes of `MEMBERS`, and methods that are there for several processors or sparse gradients.

    Examples
    --------
    >>> import nbgrad as nb
    >>> class Signs(nb.nn.Optimizer):
    ...     def construct(self, gradients):
    ...         rate = self.get_lr()
    ...         for weight, slope in zip(self._parameters, self.flatten_gradients(gradients)):
    ...             nb.ops.assign_sub(weight, rate * nb.ops.sign(slope))
    ...         self.assignadd(self.global_step, self.global_step_increase_tensor)
    >>> w = nb.Parameter(nb.Tensor([1.0, 1.0]), name="w")
    >>> optimizer = Signs([0.5, 0.25], [w])
    >>> for _ in range(2):
    ...     _ = optimizer((nb.Tensor([3.0, -3.0]),))
    >>> print(w.value(), optimizer.dynamic_lr, optimizer.decay_flags)
    [0.25 1.75] True (False,)
    """

    def __getattr__(self, name: str) -> Any:
        made = MEMBERS.get(name)
        return super().__getattr__(name) if made is None else made(self)

    def _is_dynamic_lr_or_weight_decay(self) -> bool:
        """Whether the rate or the decay is another one in another step."""
        return self.dynamic_lr or self.dynamic_weight_decay

    def flatten_gradients(self, gradients: Any) -> Any:
        """The gradients themselves, which are not joined here."""
        return gradients

    def _grad_sparse_indices_deduplicate(self, gradients: Any) -> Any:
        """The gradients themselves, which are never sparse."""
        return gradients

    def broadcast_params(self, optim_result: Any) -> Any:
        """The result itself: no other process has parts of the weights."""
        return optim_result
