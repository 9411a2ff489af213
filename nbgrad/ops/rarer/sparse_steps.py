"""Steps of optimizers with gradients of some rows: MindSpore's class forms `FusedSparseAdam` and others.

In: a weight, its state, the numbers of the rule, gradients of rows, and their positions. Out: the new weight and its
state. class_table.py names them. Gradients of one row are added; Parameters among the arrays are written to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ...record.tensor import Tensor
from ...tensors.parameter import Parameter
from .optimizer_steps import adam_step, ftrl_step, proximal_adagrad_step
from .special_values import value_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def _spread(like: Any, rows: Any, indices: Any) -> tuple[Any, Any]:
    """The sums of the rows at each position of a table, and whether a position has any."""
    table, places = value_of(like), value_of(indices)
    total, count = np.zeros_like(table), np.zeros((len(table),) + (1,) * (table.ndim - 1), np.int32)
    np.add.at(total, places, value_of(rows))
    np.add.at(count, places, 1)
    return total, count > 0


def _on_rows(step: Callable[..., Any], arrays: tuple[Any, ...], chosen: Any) -> tuple[Tensor, ...]:
    """Do a step on copies, and take its results where rows are chosen."""
    old = [value_of(array) for array in arrays]
    copies = [Parameter(value, name=f"rows_{k}") for k, value in enumerate(old)]
    step(*copies)
    found = [np.where(chosen, copy.value(), value) for copy, value in zip(copies, old, strict=True)]
    for array, value in zip(arrays, found, strict=True):
        if isinstance(array, Parameter):
            array.set_data(value)
    return tuple(found)


def adam_of_rows(
    var: Any, m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any,
    gradient: Any, indices: Any, use_locking: bool, use_nesterov: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """One step of Adam, whose gradient is 0 in all other rows."""
    total = _spread(var, gradient, indices)[0]
    numbers = beta1_power, beta2_power, lr, beta1, beta2, epsilon
    step: Any = adam_step
    return step(var, m, v, *numbers, total, use_locking, use_nesterov)


def lazy_adam_of_rows(
    var: Any, m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any,
    gradient: Any, indices: Any, use_locking: bool, use_nesterov: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """One step of Adam for the rows alone."""
    total, chosen = _spread(var, gradient, indices)
    numbers = beta1_power, beta2_power, lr, beta1, beta2, epsilon
    step: Any = adam_step
    return _on_rows(lambda *state: step(*state, *numbers, total, use_locking, use_nesterov), (var, m, v), chosen)


def ftrl_of_rows(
    var: Any, accum: Any, linear: Any, grad: Any, indices: Any, lr: float, l1: float, l2: float, lr_power: float,
    use_locking: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """One step of FTRL for the rows alone."""
    total, chosen = _spread(var, grad, indices)
    numbers = lr, l1, l2, lr_power, use_locking
    step: Any = ftrl_step
    return _on_rows(lambda *state: step(*state, total, *numbers), (var, accum, linear), chosen)


def proximal_adagrad_of_rows(
    var: Any, accum: Any, lr: Any, l1: Any, l2: Any, grad: Any, indices: Any, use_locking: bool
) -> tuple[Tensor, ...]:
    """One step of Adagrad, then towards zero, for the rows alone."""
    total, chosen = _spread(var, grad, indices)
    step: Any = proximal_adagrad_step
    return _on_rows(lambda *state: step(*state, lr, l1, l2, total, use_locking), (var, accum), chosen)


def adam_change(
    m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, gradient: Any,
    use_locking: bool, use_nesterov: bool,
) -> Tensor:  # fmt: skip
    """The number that one step of Adam would add to a weight; the state is updated."""
    numbers = beta1_power, beta2_power, lr, beta1, beta2, epsilon
    return adam_step(np.zeros_like(value_of(m)), m, v, *numbers, gradient, use_locking, use_nesterov)[0]
