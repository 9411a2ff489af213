"""AdaFactor, whose state of a matrix is one number for each row and each column.

In: Parameters, a learning rate, the constants of the formula; at each call the gradients. Out: new values of the
Parameters and of the optimizer's state. Called by users. Everything that is not the formula is in optimizer.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ...errors import ArgumentError
from ...record.tensor import Tensor
from ...tensors.parameter import Parameter, ParameterTuple
from ..layer_arguments import flag
from ..optimizer import FLOAT32, Optimizer, real_number

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


class AdaFactor(Optimizer):
    """AdaFactor (Shazeer and Stern 2018): as Adam, with means of squares of rows and columns instead of elements.

    Parameters
    ----------
    params, weight_decay, loss_scale
        As for `Optimizer`; weights are decayed apart from gradients.
    learning_rate : number, Tensor or Cell, optional
        Needed without `relative_step`, and refused with it.
    eps : pair of float
        Added to squares of gradients; and the least size of weights.
    clip_threshold : float
        The greatest root mean square of a step before the learning rate.
    decay_rate : float
        The power by which means forget, in (0, 1).
    beta1 : float, optional
        How much of the mean of steps is kept; None for no such mean.
    scale_parameter : bool
        Whether steps grow with the root mean square of the weights.
    relative_step : bool
        Whether the learning rate follows from the number of the step t: `min(0.01, 1 / sqrt(t))`.
    warmup_init : bool
        Whether it is `min(1e-6 * t, 1 / sqrt(t))`.
    compression : bool
        Whether means of vectors are kept in float16.

    Notes
    -----
    In step t with `b = 1 - t**-decay_rate` and `s = g**2 + eps[0]`: a vector has `v = b * v + (1 - b) * s`; a matrix
    has `r` and `c`, the same of the means of the rows and columns of s, and `v = outer(r, c) / mean(r)`. The step is
    `u = g / sqrt(v)`, divided by `max(1, rms(u) / clip_threshold)` and times the learning rate, which is times
    `max(eps[1], rms(w))` with `scale_parameter`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> w = nb.Parameter(nb.Tensor([[1.0, 2.0], [3.0, 4.0]]), name="w")
    >>> optimizer = nb.nn.AdaFactor([w], 0.5, beta1=None, scale_parameter=False, relative_step=False)
    >>> _ = optimizer([nb.ops.ones((2, 2))])
    >>> print(w.value())
    [[0.5 1.5]
     [2.5 3.5]]
    """

    decay_in_gradient = False

    def __init__(
        self,
        params: Any,
        learning_rate: Any = None,
        eps: Sequence[float] = (1e-30, 1e-3),
        clip_threshold: float = 1.0,
        decay_rate: float = 0.8,
        beta1: float | None = 0.9,
        weight_decay: Any = 0.0,
        scale_parameter: bool = True,
        relative_step: bool = True,
        warmup_init: bool = False,
        compression: bool = False,
        loss_scale: float = 1.0,
    ) -> None:
        if (learning_rate is None) != flag(relative_step, "relative_step"):
            message = "AdaFactor takes either a learning_rate with relative_step=False, or relative_step=True alone."
            raise ArgumentError(message)
        if flag(warmup_init, "warmup_init") and not relative_step:
            message = "warmup_init changes the learning rate of relative_step=True, which is off."
            raise ArgumentError(message)
        super().__init__(0.0 if learning_rate is None else learning_rate, params, weight_decay, loss_scale)
        if not isinstance(eps, tuple | list) or len(eps) != 2:
            message = f"eps must be a pair of numbers, for squares and for sizes of weights, but is {eps!r}."
            raise ArgumentError(message)
        self.eps = tuple([real_number("eps", one) for one in eps])
        self.clip_threshold = real_number("clip_threshold", clip_threshold)
        self.decay_rate = real_number("decay_rate", decay_rate, below=1.0, open_end=True)
        self.beta1 = 0.0 if beta1 is None else real_number("beta1", beta1)
        fixed = learning_rate is None or isinstance(learning_rate, int | float)
        self.scale_parameter = flag(scale_parameter, "scale_parameter") and fixed
        self.relative_step, self.warmup_init = relative_step, warmup_init
        self.compression = flag(compression, "compression")
        if self.beta1:
            self.exp_avg = self.new_state("exp_avg")
        self.exp_avg_sq_row = self._state_of("exp_avg_sq_row", lambda shape: shape[:-1])
        self.exp_avg_sq_col = self._state_of("exp_avg_sq_col", lambda shape: (*shape[:-2], shape[-1]))
        self.exp_avg_sq = self._state_of("exp_avg_sq", None)

    def _state_of(self, prefix: str, shape_of: Any) -> ParameterTuple:
        """Zeros for every weight, of a shape for matrices or the weight's for vectors; one number for others."""
        made: list[Parameter] = []
        for weight in self.parameters:
            matrix = weight.ndim > 1
            own = weight.shape if shape_of is None else shape_of(weight.shape)
            shape = (1,) if matrix == (shape_of is None) else own
            dtype = np.dtype(weight.dtype.name)
            dtype = FLOAT32 if dtype.itemsize < 4 else dtype
            dtype = np.dtype(np.float16) if self.compression and not matrix and shape_of is None else dtype
            made.append(Parameter(np.zeros(shape, dtype), name=f"{prefix}_{weight.name}", requires_grad=False))
        for state, weight in zip(made, self.parameters, strict=True):
            state._move(weight.device)
            self.insert_param_to_cell(state.name, state, check_name_contain_dot=False)
        return ParameterTuple(made)

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        steps = self.steps()
        dtype = np.dtype(weight.dtype.name)
        if self.relative_step:
            least = 1e-6 * steps if self.warmup_init else 1e-2
            rate = np.minimum(least, 1.0 / np.sqrt(steps)).astype(dtype)
        kept = (1.0 - steps**-self.decay_rate).astype(dtype)
        if self.scale_parameter:
            rate = rate * np.maximum(self.eps[1], _root_mean_square(weight))
        step = gradient * self._inverse_root(k, gradient * gradient + self.eps[0], kept)
        step = step / np.maximum(_root_mean_square(step) / self.clip_threshold, 1.0) * rate
        if self.beta1:
            mean = self.exp_avg[k]
            mean.set_data(self.beta1 * mean + (1.0 - self.beta1) * step)
            step = mean.value()
        decay = self.decay(k)
        if isinstance(decay, Tensor) or decay:
            weight = weight - weight * (decay * rate)
        return weight - step

    def _inverse_root(self, k: int, squares: Tensor, kept: Any) -> Any:
        """One over the root of the mean of squares, which takes in new ones."""
        if squares.ndim < 2:
            state = self.exp_avg_sq[k]
            found = state.value().astype(squares.dtype) * kept + squares * (1.0 - kept)
            state.set_data(found.astype(state.dtype))
            return 1.0 / np.sqrt(found)
        rows, columns = self.exp_avg_sq_row[k], self.exp_avg_sq_col[k]
        rows.set_data(rows * kept + np.mean(squares, -1) * (1.0 - kept))
        columns.set_data(columns * kept + np.mean(squares, -2) * (1.0 - kept))
        by_row = 1.0 / np.sqrt(rows.value() / np.mean(rows.value(), -1, keepdims=True))
        return by_row[..., None] * (1.0 / np.sqrt(columns.value()))[..., None, :]


def _root_mean_square(x: Any) -> Any:
    return np.sqrt(np.mean(x * x))
