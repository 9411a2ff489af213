"""Single steps of optimizers: MindSpore's class forms `ApplyMomentum`, `Adam`, `ApplyFtrl` and others.

In: a weight, its state, and the numbers of the rule. Out: the new weight, or it and its state.
class_table.py names them. Parameters among the arrays are written to; others stay.
"""

from __future__ import annotations

from typing import Any

import numpy

from ...record.tensor import Tensor
from ...tensors.parameter import Parameter
from .special_values import value_of
from .written_positions import scatter_update

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def _kept(array: Any, value: Any) -> Tensor:
    """The new value, written if the array is a Parameter."""
    found = value.astype(np.dtype(array.dtype.name))
    if isinstance(array, Parameter):
        array.set_data(found)
    return found


def _values(*arrays: Any) -> list[Any]:
    return [value_of(array) for array in arrays]


def _mean(old: Any, new: Any, part: Any) -> Any:
    return part * old + (1.0 - part) * new


# ----- Momentum and plain descent -----


def descent(var: Any, alpha: Any, delta: Any) -> Tensor:
    """One step against the gradient."""
    return _kept(var, value_of(var) - alpha * value_of(delta))


def momentum_step(
    var: Any,
    accum: Any,
    learning_rate: Any,
    gradient: Any,
    momentum: Any,
    use_nesterov: bool,
    use_locking: bool,
    gradient_scale: float,
) -> Tensor:
    """One step of momentum."""
    del use_locking
    w, speed, g = _values(var, accum, gradient)
    speed = speed * momentum + g * gradient_scale
    step = g * gradient_scale + momentum * speed if use_nesterov else speed
    _kept(accum, speed)
    return _kept(var, w - learning_rate * step)


def sgd_step(
    parameters: Any,
    gradient: Any,
    learning_rate: Any,
    accum: Any,
    momentum: Any,
    stat: Any,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
) -> Tensor:
    """One step of momentum that starts with the gradient, where `stat` is above 0."""
    w, g, speed, first = _values(parameters, gradient, accum, stat)
    g = g + weight_decay * w
    speed = np.where(first > 0, g, speed * momentum + g * (1.0 - dampening))
    _kept(accum, speed)
    _kept(stat, np.zeros_like(first))
    return _kept(parameters, w - learning_rate * (g + momentum * speed if nesterov else speed))


# ----- Two moments -----


def adam_step(
    var: Any,
    m: Any,
    v: Any,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    gradient: Any,
    use_locking: bool,
    use_nesterov: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """One step of Adam."""
    del use_locking
    w, mean, square, g = _values(var, m, v, gradient)
    mean, square = _mean(mean, g, beta1), _mean(square, g * g, beta2)
    rate = lr * np.sqrt(1.0 - beta2_power) / (1.0 - beta1_power)
    step = _mean(mean, g, beta1) if use_nesterov else mean
    return _kept(var, w - rate * step / (np.sqrt(square) + epsilon)), _kept(m, mean), _kept(v, square)


def amsgrad_step(
    var: Any,
    m: Any,
    v: Any,
    vhat: Any,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
    use_locking: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One step of Adam that divides by the greatest mean square so far."""
    del use_locking
    w, mean, square, greatest, g = _values(var, m, v, vhat, grad)
    mean, square = _mean(mean, g, beta1), _mean(square, g * g, beta2)
    greatest = np.maximum(greatest, square)
    rate = lr * np.sqrt(1.0 - beta2_power) / (1.0 - beta1_power)
    new = w - rate * mean / (np.sqrt(greatest) + epsilon)
    return _kept(var, new), _kept(m, mean), _kept(v, square), _kept(vhat, greatest)


def decayed_step(
    var: Any,
    m: Any,
    v: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    decay: Any,
    gradient: Any,
    use_locking: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """One step of Adam without correction and with weight decay apart from the gradient."""
    del use_locking
    w, mean, square, g = _values(var, m, v, gradient)
    mean, square = _mean(mean, g, beta1), _mean(square, g * g, beta2)
    new = w - lr * (mean / (np.sqrt(square) + epsilon) + decay * w)
    return _kept(var, new), _kept(m, mean), _kept(v, square)


def adamax_step(
    var: Any, m: Any, v: Any, beta1_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, grad: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """One step of AdaMax."""
    w, mean, greatest, g = _values(var, m, v, grad)
    mean, greatest = _mean(mean, g, beta1), np.maximum(beta2 * greatest, np.abs(g))
    new = w - lr / (1.0 - beta1_power) * mean / (greatest + epsilon)
    return _kept(var, new), _kept(m, mean), _kept(v, greatest)


# ----- Sums and means of squares -----


def adadelta_step(
    var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """One step of Adadelta."""
    w, square, moved, g = _values(var, accum, accum_update, grad)
    square = _mean(square, g * g, rho)
    step = np.sqrt(moved + epsilon) / np.sqrt(square + epsilon) * g
    return _kept(var, w - lr * step), _kept(accum, square), _kept(accum_update, _mean(moved, step * step, rho))


def adagrad_step(var: Any, accum: Any, lr: Any, grad: Any, update_slots: bool) -> tuple[Tensor, Tensor]:
    """One step of Adagrad."""
    return adagrad_step_with_epsilon(var, accum, lr, grad, 0.0, update_slots)


def adagrad_step_with_epsilon(
    var: Any, accum: Any, lr: Any, grad: Any, epsilon: float, update_slots: bool
) -> tuple[Tensor, Tensor]:
    """One step of Adagrad; `epsilon` is added to the root."""
    w, total, g = _values(var, accum, grad)
    total = total + g * g if update_slots else total
    return _kept(var, w - lr * g / (np.sqrt(total) + epsilon)), _kept(accum, total)


def averaged_step(
    var: Any,
    gradient_accumulator: Any,
    gradient_squared_accumulator: Any,
    grad: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    global_step: Any,
    use_locking: bool,
) -> Tensor:
    """One step of Adagrad with dual averages."""
    del use_locking
    total, squares, g = _values(gradient_accumulator, gradient_squared_accumulator, grad)
    total, squares = total + g, squares + g * g
    _kept(gradient_accumulator, total)
    _kept(gradient_squared_accumulator, squares)
    step = value_of(global_step).astype(np.float32)
    short = np.sign(total) * np.maximum(np.abs(total) - l1 * step, 0.0)
    return _kept(var, -lr * short / (l2 * step * lr + np.sqrt(squares)))


def rms_step(
    var: Any,
    mean_square: Any,
    moment: Any,
    learning_rate: Any,
    grad: Any,
    decay: Any,
    momentum: Any,
    epsilon: Any,
    use_locking: bool,
) -> Tensor:
    """One step of RMSProp."""
    del use_locking
    w, square, speed, g = _values(var, mean_square, moment, grad)
    square = _mean(square, g * g, decay)
    speed = momentum * speed + learning_rate * g / np.sqrt(square + epsilon)
    _kept(mean_square, square)
    _kept(moment, speed)
    return _kept(var, w - speed)


def centered_rms_step(
    var: Any,
    mean_gradient: Any,
    mean_square: Any,
    moment: Any,
    grad: Any,
    learning_rate: Any,
    decay: Any,
    momentum: Any,
    epsilon: Any,
    use_locking: bool,
) -> Tensor:
    """One step of RMSProp by the variance."""
    del use_locking
    w, mean, square, speed, g = _values(var, mean_gradient, mean_square, moment, grad)
    mean, square = _mean(mean, g, decay), _mean(square, g * g, decay)
    speed = momentum * speed + learning_rate * g / np.sqrt(square - mean * mean + epsilon)
    for array, value in ((mean_gradient, mean), (mean_square, square), (moment, speed)):
        _kept(array, value)
    return _kept(var, w - speed)


# ----- Signs -----


def added_sign_step(
    var: Any, m: Any, lr: Any, alpha: Any, sign_decay: Any, beta: Any, grad: Any
) -> tuple[Tensor, Tensor]:
    """One step that is longer where gradient and mean agree in sign."""
    w, mean, g = _values(var, m, grad)
    mean = _mean(mean, g, beta)
    return _kept(var, w - lr * (alpha + sign_decay * np.sign(g) * np.sign(mean)) * g), _kept(m, mean)


def power_sign_step(
    var: Any, m: Any, lr: Any, logbase: Any, sign_decay: Any, beta: Any, grad: Any
) -> tuple[Tensor, Tensor]:
    """One step times a power of the agreement in sign."""
    w, mean, g = _values(var, m, grad)
    mean = _mean(mean, g, beta)
    return _kept(var, w - lr * np.exp(logbase * sign_decay * np.sign(g) * np.sign(mean)) * g), _kept(m, mean)


# ----- Penalties -----


def _shrunk(w: Any, rate: Any, l1: Any, l2: Any) -> Any:
    """Weights moved towards zero by l1, and shortened by l2."""
    return np.sign(w) * np.maximum(np.abs(w) - rate * l1, 0.0) / (1.0 + rate * l2)


def proximal_step(var: Any, alpha: Any, l1: Any, l2: Any, delta: Any) -> Tensor:
    """One step against the gradient, then towards zero."""
    w, g = _values(var, delta)
    return _kept(var, _shrunk(w - alpha * g, alpha, l1, l2))


def proximal_adagrad_step(
    var: Any, accum: Any, lr: Any, l1: Any, l2: Any, grad: Any, use_locking: bool
) -> tuple[Tensor, Tensor]:
    """One step of Adagrad, then towards zero."""
    del use_locking
    w, total, g = _values(var, accum, grad)
    total = total + g * g
    rate = lr / np.sqrt(total)
    return _kept(var, _shrunk(w - rate * g, rate, l1, l2)), _kept(accum, total)


def ftrl_step(
    var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, lr_power: Any, use_locking: bool
) -> Tensor:
    """One step of FTRL."""
    del use_locking
    w, total, line, g = _values(var, accum, linear, grad)
    new = total + g * g
    line = line + g - (new**-lr_power - total**-lr_power) / lr * w
    bent = l1 * np.sign(line) - line
    found = np.where(np.abs(line) > l1, bent / (new**-lr_power / lr + 2.0 * l2), 0.0)
    _kept(accum, new)
    _kept(linear, line)
    return _kept(var, found)


# ----- Rows of tables -----


def ftrl_rows(
    var: Any, accum: Any, linear: Any, grad: Any, indices: Any, lr: float, l1: float, l2: float, lr_power: float,
    use_locking: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """One step of FTRL for chosen rows of Parameters."""
    rows = [value_of(array)[value_of(indices)] for array in (var, accum, linear)]
    state = [Parameter(row, name=f"rows_{k}") for k, row in enumerate(rows)]
    ftrl_step(state[0], state[1], state[2], grad, lr, l1, l2, lr_power, use_locking)
    found = [scatter_update(array, indices, row) for array, row in zip((var, accum, linear), state, strict=True)]
    return found[0], found[1], found[2]


def adagrad_rows(
    var: Any, accum: Any, grad: Any, indices: Any, lr: float, epsilon: float, use_locking: bool, update_slots: bool
) -> tuple[Tensor, Tensor]:
    """One step of Adagrad for chosen rows of Parameters."""
    del use_locking
    rows = [value_of(array)[value_of(indices)] for array in (var, accum)]
    new, total = adagrad_step_with_epsilon(rows[0], rows[1], lr, grad, epsilon, update_slots)
    return scatter_update(var, indices, new), scatter_update(accum, indices, total)
