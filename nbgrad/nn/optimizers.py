"""The optimizers: one formula each, with MindSpore's names and defaults.

In: Parameters, a learning rate, the constants of the formula; at each call the gradients. Out: new values of the
Parameters and of the optimizer's state. Called by users. Everything that is not a formula is in optimizer.py, where the
shared arguments are described: `learning_rate`, `weight_decay`, `loss_scale`, and the forms of `params`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..record.tensor import Tensor
from ..tensors.parameter import Parameter
from .layer_arguments import flag
from .optimizer import Optimizer, real_number


def _with_momentum(state: Parameter, gradient: Tensor, momentum: float, nesterov: bool) -> Tensor:
    """The direction of a step with momentum; the state becomes the running sum."""
    state.set_data(momentum * state + gradient)
    return gradient + momentum * state if nesterov else state.value()


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if wanted.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As for `Optimizer`. Weight decay applies to all Parameters.
    momentum : float
        How much of the last direction is kept.
    dampening : float
        How much of the gradient is left out of the momentum, from the second step on.
    nesterov : bool
        Whether to look ahead (Sutskever et al. 2013); needs momentum, and no dampening.

    Raises
    ------
    ArgumentError
        For negative numbers, and for `nesterov` without momentum or with dampening.

    Notes
    -----
    `v = momentum * v + (1 - dampening) * g` (`v = g` in the first step), `w -= learning_rate * v`; with `nesterov`,
    `w -= learning_rate * (g + momentum * v)`. The same as PyTorch's.

    Examples
    --------
    >>> import nbgrad as nb
    >>> w = nb.Parameter(nb.Tensor([1.0, 2.0]), name="w")
    >>> optimizer = nb.nn.SGD([w], learning_rate=0.5)
    >>> gradient = nb.grad(lambda: (w * w).sum(), None, optimizer.parameters)
    >>> _ = optimizer(gradient())
    >>> print(w.value())
    [0. 0.]
    """

    decays_all = True

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: Any = 0.0,
        nesterov: bool = False,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.momentum = real_number("momentum", momentum)
        self.dampening = real_number("dampening", dampening)
        self.nesterov = flag(nesterov, "nesterov")
        if nesterov and (self.momentum == 0 or self.dampening != 0):
            message = (
                f"nesterov=True needs momentum > 0 and dampening = 0, but got momentum {momentum} and dampening "
                f"{dampening}."
            )
            raise ArgumentError(message)
        if self.momentum:
            self.accum = self.new_state("accum")

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        if self.momentum:
            if self.dampening:
                kept = np.where(self.steps() == 1, 1.0, 1.0 - self.dampening)
                gradient = gradient * kept.astype(gradient.dtype)
            gradient = _with_momentum(self.accum[k], gradient, self.momentum, self.nesterov)
        return weight - rate * gradient


class Momentum(Optimizer):
    """Gradient descent with momentum.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As for `Optimizer`.
    momentum : float
    use_nesterov : bool

    Notes
    -----
    `v = momentum * v + g`, `w -= learning_rate * v`; with `use_nesterov`, `w -= learning_rate * (g + momentum * v)`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> w = nb.Parameter(nb.Tensor([1.0]), name="w")
    >>> optimizer = nb.nn.Momentum([w], learning_rate=0.25, momentum=0.5)
    >>> for _ in range(2):
    ...     _ = optimizer([nb.Tensor([1.0])])
    >>> print(w.value())
    [0.375]
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any,
        momentum: float,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.momentum = real_number("momentum", momentum)
        self.use_nesterov = flag(use_nesterov, "use_nesterov")
        self.moments = self.new_state("moments")

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        return weight - rate * _with_momentum(self.moments[k], gradient, self.momentum, self.use_nesterov)


class _WithTwoMoments(Optimizer):
    """The base of the variants of Adam: running means of gradients and of their squares."""

    def _set_moments(self, names: tuple[str, str], beta1: float, beta2: float, eps: float) -> None:
        self.beta1 = real_number("beta1", beta1, below=1.0)
        self.beta2 = real_number("beta2", beta2, below=1.0)
        self.eps = real_number("eps", eps, open_end=True)
        self.moment1, self.moment2 = self.new_state(names[0]), self.new_state(names[1])

    def _moments(self, k: int, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Both means after this gradient."""
        mean, square = self.moment1[k], self.moment2[k]
        mean.set_data(self.beta1 * mean + (1.0 - self.beta1) * gradient)
        square.set_data(self.beta2 * square + (1.0 - self.beta2) * (gradient * gradient))
        return mean.value(), square.value()

    def _corrections(self, dtype: Any) -> tuple[Tensor, Tensor]:
        """`1 - beta**t` of both means and the number t of the step, which undo that the means start at zero."""
        steps = self.steps()
        return (1.0 - self.beta1**steps).astype(dtype), (1.0 - self.beta2**steps).astype(dtype)

    def _largest(self, k: int, square: Tensor) -> Tensor:
        """The largest mean square so far (AMSGrad), if it is kept."""
        if not self.use_amsgrad:
            return square
        self.vhat[k].set_data(np.maximum(self.vhat[k], square))
        return self.vhat[k].value()

    def _set_amsgrad(self, use_amsgrad: bool) -> None:
        self.use_amsgrad = flag(use_amsgrad, "use_amsgrad")
        if use_amsgrad:
            self.vhat = self.new_state("vhat")


class Adam(_WithTwoMoments):
    """Adam (Kingma and Ba 2015): steps scaled by running means of gradients and of their squares.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As for `Optimizer`. Weight decay is added to the gradient.
    beta1, beta2 : float
        How much of the running means is kept, in [0, 1).
    eps : float
        Added to the root of the mean square, before the correction of the latter.
    use_locking : bool
        MindSpore's; has no effect.
    use_nesterov : bool
        Whether the step uses `beta1 * m + (1 - beta1) * g` instead of m.
    use_amsgrad : bool
        Whether to divide by the largest mean square so far (Reddi et al. 2018).

    Notes
    -----
    `m = beta1 * m + (1 - beta1) * g`, `v = beta2 * v + (1 - beta2) * g**2`, and in step t
    `w -= learning_rate * sqrt(1 - beta2**t) / (1 - beta1**t) * m / (sqrt(v) + eps)`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> w = nb.Parameter(nb.Tensor([1.0, 2.0]), name="w")
    >>> optimizer = nb.nn.Adam([w], learning_rate=0.5)
    >>> _ = optimizer([nb.Tensor([10.0, -0.1])])
    >>> print(w.asnumpy().round(4), list(optimizer.parameters_dict()))
    [0.5 2.5] ['global_step', 'learning_rate', 'moment1.w', 'moment2.w']
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        use_locking: bool = False,
        use_nesterov: bool = False,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
        use_amsgrad: bool = False,
    ) -> None:
        flag(use_locking, "use_locking")
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.use_nesterov = flag(use_nesterov, "use_nesterov")
        self._set_moments(("moment1", "moment2"), beta1, beta2, eps)
        self._set_amsgrad(use_amsgrad)

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        mean, square = self._moments(k, gradient)
        if self.use_nesterov:
            mean = self.beta1 * mean + (1.0 - self.beta1) * gradient
        first, second = self._corrections(weight.dtype)
        rate = rate * np.sqrt(second) / first
        return weight - rate * mean / (np.sqrt(self._largest(k, square)) + self.eps)


class AdamW(_WithTwoMoments):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019), as in PyTorch.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As for `Optimizer`. Weight decay applies to all Parameters.
    beta1, beta2 : float
        How much of the running means is kept, in [0, 1).
    eps : float
        Added to the root of the corrected mean square.
    use_amsgrad : bool
        Whether to divide by the largest mean square so far.

    Notes
    -----
    With m and v as in `Adam`: `w -= learning_rate * (weight_decay * w + m / (1 - beta1**t) / (sqrt(v / (1 - beta2**t))
    + eps))`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> w = nb.Parameter(nb.Tensor([1.0, 2.0]), name="w")
    >>> _ = nb.nn.AdamW([w], learning_rate=0.5, weight_decay=0.5)([nb.Tensor([10.0, -0.1])])
    >>> print(w.asnumpy().round(4))
    [0.25 2.  ]
    """

    decays_all = True
    decay_in_gradient = False

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: Any = 1e-2,
        loss_scale: float = 1.0,
        use_amsgrad: bool = False,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self._set_moments(("moment1", "moment2"), beta1, beta2, eps)
        self._set_amsgrad(use_amsgrad)

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        mean, square = self._moments(k, gradient)
        first, second = self._corrections(weight.dtype)
        root = np.sqrt(self._largest(k, square)) / np.sqrt(second)
        return weight * (1.0 - rate * self.shrinking(k)) - rate / first * mean / (root + self.eps)

    def shrinking(self, k: int) -> Any:
        """The weight decay of the formula, apart from the gradient."""
        return self.decay(k)


class AdamWeightDecay(_WithTwoMoments):
    """Adam with weight decay apart from the gradient, and without correction of the means (BERT's optimizer).

    Parameters
    ----------
    params, learning_rate, weight_decay
        As for `Optimizer`.
    beta1, beta2 : float
        How much of the running means is kept, in [0, 1).
    eps : float
        Added to the root of the mean square.

    Notes
    -----
    With m and v as in `Adam`: `w -= learning_rate * (m / (sqrt(v) + eps) + weight_decay * w)`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> w = nb.Parameter(nb.Tensor([1.0]), name="w")
    >>> _ = nb.nn.AdamWeightDecay([w], learning_rate=0.5, beta1=0.5, beta2=0.75)([nb.Tensor([4.0])])
    >>> print(w.asnumpy().round(4))
    [0.5]
    """

    decay_in_gradient = False

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self._set_moments(("adam_m", "adam_v"), beta1, beta2, eps)

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        mean, square = self._moments(k, gradient)
        return weight - rate * (mean / (np.sqrt(square) + self.eps) + self.decay(k) * weight)


class RMSProp(Optimizer):
    """RMSProp (Tieleman and Hinton 2012): gradients divided by the root of their running mean square.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As for `Optimizer`.
    decay : float
        How much of the running means is kept, in [0, 1).
    momentum : float
        How much of the last step is kept.
    epsilon : float
        Added to the mean square.
    use_locking : bool
        MindSpore's; has no effect.
    centered : bool
        Whether to divide by the root of the variance instead: the square of the running mean is subtracted.

    Notes
    -----
    `s = decay * s + (1 - decay) * g**2`, `m = momentum * m + learning_rate * g / sqrt(s + epsilon)`, `w -= m`; s starts
    at 1, as in MindSpore. PyTorch's starts at 0 and adds epsilon to the root.

    Examples
    --------
    >>> import nbgrad as nb
    >>> w = nb.Parameter(nb.Tensor([1.0]), name="w")
    >>> _ = nb.nn.RMSProp([w], learning_rate=1.0, decay=0.5)([nb.Tensor([1.0])])
    >>> print(w.value())
    [0.]
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        flag(use_locking, "use_locking")
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.kept = real_number("decay", decay, below=1.0)
        self.momentum = real_number("momentum", momentum)
        self.epsilon = real_number("epsilon", epsilon, open_end=True)
        self.centered = flag(centered, "centered")
        self.ms = self.new_state("mean_square", 1.0)
        self.moment = self.new_state("moment")
        if centered:
            self.mg = self.new_state("mean_grad")

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        square, step = self.ms[k], self.moment[k]
        square.set_data(self.kept * square + (1.0 - self.kept) * (gradient * gradient))
        spread = square.value()
        if self.centered:
            mean = self.mg[k]
            mean.set_data(self.kept * mean + (1.0 - self.kept) * gradient)
            # A variance, which rounding alone can make negative.
            spread = np.maximum(spread - mean * mean, 0.0)
        step.set_data(self.momentum * step + rate * gradient / np.sqrt(spread + self.epsilon))
        return weight - step


class Adagrad(Optimizer):
    """Adagrad (Duchi, Hazan, Singer 2011): gradients divided by the root of the sum of all their squares.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As for `Optimizer`.
    accum : float
        The start of the sums.
    update_slots : bool
        Whether squares are added to the sums.

    Notes
    -----
    `s = s + g**2`, `w -= learning_rate * g / sqrt(s)`; where s and g are 0, the weight stays.

    Examples
    --------
    >>> import nbgrad as nb
    >>> w = nb.Parameter(nb.Tensor([1.0]), name="w")
    >>> _ = nb.nn.Adagrad([w], accum=7.0, learning_rate=1.0)([nb.Tensor([3.0])])
    >>> print(w.value())
    [0.25]
    """

    def __init__(
        self,
        params: Any,
        accum: float = 0.1,
        learning_rate: Any = 0.001,
        update_slots: bool = True,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.update_slots = flag(update_slots, "update_slots")
        if accum == 0 and not update_slots:
            message = "With update_slots=False the sums stay at accum, which must then be greater than 0."
            raise ArgumentError(message)
        self.accum = self.new_state("accum", real_number("accum", accum))

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        squares = self.accum[k]
        if self.update_slots:
            squares.set_data(squares + gradient * gradient)
        return weight - rate * gradient / np.sqrt(np.where(squares == 0.0, 1.0, squares))
