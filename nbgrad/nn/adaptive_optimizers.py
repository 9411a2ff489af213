"""More optimizers of MindSpore: Adadelta, AdaMax, ASGD, FTRL, Lamb, LARS, LazyAdam, ProximalAdagrad, Rprop.

In: Parameters, a learning rate, the constants of the formula; at each call the gradients. Out: new values of the
Parameters and of the optimizer's state. Called by users. Everything that is not a formula is in optimizer.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..record.tensor import Tensor
from .layer_arguments import flag
from .optimizer import Optimizer, real_number
from .optimizers import Adam, _WithTwoMoments


class Adadelta(Optimizer):
    """Adadelta (Zeiler 2012): steps as large as earlier ones, divided by the size of gradients.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As for `Optimizer`.
    rho : float
        How much of the running means is kept, in [0, 1).
    epsilon : float
        Added to both mean squares.

    Notes
    -----
    `s = rho * s + (1 - rho) * g**2`, `d = g * sqrt(u + epsilon) / sqrt(s + epsilon)`, `u = rho * u + (1 - rho) * d**2`,
    `w -= learning_rate * d`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> w = nb.Parameter(nb.Tensor([1.0]), name="w")
    >>> _ = nb.nn.Adadelta([w], learning_rate=1.0, rho=0.0, epsilon=1.0)([nb.Tensor([0.0])])
    >>> print(w.value())
    [1.]
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1.0,
        rho: float = 0.9,
        epsilon: float = 1e-6,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.rho = real_number("rho", rho, below=1.0)
        self.epsilon = real_number("epsilon", epsilon, open_end=True)
        self.accum, self.accum_update = self.new_state("accum"), self.new_state("accum_update")

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        squares, steps = self.accum[k], self.accum_update[k]
        squares.set_data(self.rho * squares + (1.0 - self.rho) * (gradient * gradient))
        step = gradient * np.sqrt(steps + self.epsilon) / np.sqrt(squares + self.epsilon)
        steps.set_data(self.rho * steps + (1.0 - self.rho) * (step * step))
        return weight - rate * step


class AdaMax(_WithTwoMoments):
    """AdaMax (Kingma and Ba 2015): as `Adam`, with the largest gradient in place of the mean square.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As for `Optimizer`.
    beta1, beta2 : float
        How much of the mean, and of the largest gradient, is kept, in [0, 1).
    eps : float
        Added to the largest gradient.

    Notes
    -----
    `m = beta1 * m + (1 - beta1) * g`, `v = max(beta2 * v, abs(g))`, and in step t
    `w -= learning_rate / (1 - beta1**t) * m / (v + eps)`.
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self._set_moments(("moment1", "moment2"), beta1, beta2, eps)

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        mean, largest = self.moment1[k], self.moment2[k]
        mean.set_data(self.beta1 * mean + (1.0 - self.beta1) * gradient)
        largest.set_data(np.maximum(self.beta2 * largest, np.abs(gradient)))
        first, _ = self._corrections(weight.dtype)
        return weight - rate / first * mean / (largest + self.eps)


class ASGD(Optimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky 1992): `ax` has the mean of the weights.

    Parameters
    ----------
    params, learning_rate, weight_decay
        As for `Optimizer`.
    lambd : float
        How much weights decay.
    alpha : float
        The power with which the learning rate falls.
    t0 : float
        The step from which on weights are averaged.

    Notes
    -----
    In step t: `w = w * (1 - lambd * eta) - eta * g`, `ax += mu * (w - ax)`; afterwards
    `eta = learning_rate / (1 + lambd * learning_rate * t)**alpha` and `mu = 1 / max(1, t - t0)`, which begin with the
    learning rate and 1. PyTorch's is the same.
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.lambd, self.alpha = real_number("lambd", lambd), real_number("alpha", alpha)
        self.t0 = real_number("t0", t0)
        self.ax = self.new_state("ax")

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        before = (self.steps() - 1).astype(weight.dtype)
        eta = rate / (1.0 + self.lambd * rate * before) ** self.alpha
        mu = 1.0 / np.maximum(1.0, before - self.t0)
        weight = weight * (1.0 - self.lambd * eta) - eta * gradient
        mean = self.ax[k]
        mean.set_data(mean + mu * (weight - mean))
        return weight


class FTRL(Optimizer):
    """Follow the regularised leader (McMahan et al. 2013): weights with small gradients become zero.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As for `Optimizer`.
    initial_accum : float
        The start of the sums of squares.
    lr_power : float
        The power of the sums by which steps fall, at most 0.
    l1, l2 : float
        The weights of the sums of absolute values and of squares.
    use_locking : bool
        MindSpore's; has no effect.

    Notes
    -----
    With `p = -lr_power`: `n = s + g**2`, `z += g - (n**p - s**p) / learning_rate * w`, `s = n`, and
    `w = (sign(z) * l1 - z) / (n**p / learning_rate + 2 * l2)` where `abs(z) > l1`, else 0. MindSpore's routine for CPUs
    leaves l1 out where z is negative, other than its documentation, which is followed here.
    """

    def __init__(
        self,
        params: Any,
        initial_accum: float = 0.1,
        learning_rate: Any = 0.001,
        lr_power: float = -0.5,
        l1: float = 0.0,
        l2: float = 0.0,
        use_locking: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        flag(use_locking, "use_locking")
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.power = real_number("-lr_power", -lr_power)
        self.l1, self.l2 = real_number("l1", l1), real_number("l2", l2)
        self.moments = self.new_state("moments", real_number("initial_accum", initial_accum))
        self.linear = self.new_state("linear")

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        squares, linear = self.moments[k], self.linear[k]
        old = squares.value()
        new = old + gradient * gradient
        scaled = new**self.power / rate
        linear.set_data(linear + gradient - (scaled - old**self.power / rate) * weight)
        squares.set_data(new)
        z = linear.value()
        found: Any = np.where(np.abs(z) > self.l1, (np.sign(z) * self.l1 - z) / (scaled + 2.0 * self.l2), 0.0)
        return found


class Lamb(_WithTwoMoments):
    """Lamb (You et al. 2020): steps of Adam with the length that the weights of a layer have.

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
    With m and v as in `Adam` and their corrections: `r = m / (1 - beta1**t) / (sqrt(v / (1 - beta2**t)) + eps) +
    weight_decay * w`, `w -= learning_rate * norm(w) / norm(r) * r`; where a norm is 0, its quotient is 1.
    """

    decay_in_gradient = False

    def __init__(
        self,
        params: Any,
        learning_rate: Any,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self._set_moments(("lamb_m", "lamb_v"), beta1, beta2, eps)

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        mean, square = self._moments(k, gradient)
        first, second = self._corrections(weight.dtype)
        step = mean / first / (np.sqrt(square / second) + self.eps) + self.decay(k) * weight
        of_weight, of_step = np.sqrt(np.sum(weight * weight)), np.sqrt(np.sum(step * step))
        known = (of_weight > 0) & (of_step > 0)
        return weight - rate * np.where(known, of_weight / np.where(known, of_step, 1.0), 1.0) * step


def _is_weight(parameter: Any) -> bool:
    """Whether a Parameter is no bias and of no layer normalisation, by its name."""
    return "LayerNorm" not in parameter.name and "bias" not in parameter.name


class LARS(Optimizer):
    """LARS (You et al. 2017): another optimizer, whose gradients get lengths in proportion to the weights of a layer.

    Parameters
    ----------
    optimizer : Optimizer
        It updates the weights, which belong to it, and keeps its state. Its weight decay and loss scale are applied
        here from now on, and no longer by it.
    epsilon : float
        Added to the denominator.
    coefficient : float
        The length of a step in proportion to that of the weights.
    use_clip : bool
        Whether steps are at most those of the gradient itself.
    lars_filter : callable
        `lars_filter(parameter)` says whether the gradient of a Parameter is changed; by default, not those of biases
        and layer normalisations, which also have no decay here.

    Raises
    ------
    DtypeError
        If `optimizer` is no Optimizer.

    Notes
    -----
    With the optimizer's decay d and learning rate r: `s = coefficient * norm(w) / (norm(g) + d * norm(w) + epsilon)`,
    clipped to `min(s / r, 1)`, and `g = s * (g + d * w)`. Where one of the norms is 0, s is 1.

    Y. You, I. Gitman, B. Ginsburg, "Large batch training of convolutional networks", 2017, algorithm 1.

    Examples
    --------
    >>> import nbgrad as nb
    >>> w = nb.Parameter(nb.Tensor([3.0, 4.0]), name="w")
    >>> optimizer = nb.nn.LARS(nb.nn.SGD([w], 1.0), coefficient=0.5, epsilon=1e-12)
    >>> _ = optimizer([nb.Tensor([0.0, 100.0])])
    >>> print(w.value())
    [3.  1.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        epsilon: float = 1e-05,
        coefficient: float = 0.001,
        use_clip: bool = False,
        lars_filter: Callable[[Any], bool] = _is_weight,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            message = f"LARS changes the gradients of an optimizer, but got {type(optimizer).__name__}."
            raise DtypeError(message)
        super().__init__(0.0, list(optimizer.parameters))
        self.learning_rate.name = "fake_lr"  # MindSpore's name, other than that of the optimizer's
        self.opt = optimizer
        self.epsilon = real_number("epsilon", epsilon)
        self.coefficient = real_number("coefficient", coefficient)
        self.use_clip = flag(use_clip, "use_clip")
        self._changed = tuple([bool(lars_filter(parameter)) for parameter in self.parameters])
        self.loss_scale, self._decays = optimizer.loss_scale, optimizer._decay_names
        optimizer.loss_scale, optimizer._decay_names = 1.0, (None,) * len(self.parameters)
        self.global_step = optimizer.global_step

    def get_lr(self) -> Any:
        """The learning rate of the optimizer."""
        return self.opt.get_lr()

    def decay(self, k: int) -> Any:
        """The weight decay that the optimizer had."""
        name = self._decays[k]
        return 0.0 if name is None else self.opt._now(name, self._rate_dtype)

    def construct(self, gradients: Any) -> bool:
        """Change the gradients, and let the optimizer update all weights."""
        rates = self.get_lr()
        scaled = self.scale_grad([Tensor(g) for g in gradients])
        changed: list[Tensor] = []
        for k, (weight, gradient) in enumerate(zip(self.parameters, scaled, strict=True)):
            rate = rates[k] if isinstance(rates, tuple) else rates
            changed.append(self._local(k, weight.value(), gradient, rate) if self._changed[k] else gradient)
        return self.opt(tuple(changed))

    def _local(self, k: int, weight: Any, gradient: Any, rate: Any) -> Any:
        """The gradient of a layer at the length that suits its weights."""
        wide = np.float32 if weight.dtype.itemsize < 4 else weight.dtype
        w, g = weight.astype(wide), gradient.astype(wide)
        decay = self.decay(k)
        of_weight, of_gradient = np.sqrt(np.sum(w * w)), np.sqrt(np.sum(g * g))
        known = (of_weight > 0) & (of_gradient > 0)
        length = of_gradient + decay * of_weight + self.epsilon
        share = self.coefficient * of_weight / np.where(known, length, 1.0)
        if self.use_clip:
            share = np.minimum(share / rate.astype(wide), 1.0)
        return np.where(known, share, 1.0) * (g + decay * w)


class LazyAdam(Adam):
    """`Adam`; gradients of embeddings are arrays as all others, so that no rows are left out.

    Notes
    -----
    Differs from MindSpore: there, rows of an embedding that a batch does not use keep their means.
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
    ) -> None:
        super().__init__(params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay, loss_scale)


class ProximalAdagrad(Optimizer):
    """Adagrad with a proximal step for absolute values and squares of weights (Duchi and Singer 2009).

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As for `Optimizer`.
    accum : float
        The start of the sums of squares.
    l1, l2 : float
        The weights of the sums of absolute values and of squares.
    use_locking : bool
        MindSpore's; has no effect.

    Notes
    -----
    `s += g**2`, `a = learning_rate / sqrt(s)`, `p = w - a * g`,
    `w = sign(p) * max(abs(p) - a * l1, 0) / (1 + a * l2)`.
    """

    def __init__(
        self,
        params: Any,
        accum: float = 0.1,
        learning_rate: Any = 0.001,
        l1: float = 0.0,
        l2: float = 0.0,
        use_locking: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        flag(use_locking, "use_locking")
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.l1, self.l2 = real_number("l1", l1), real_number("l2", l2)
        self.accum = self.new_state("accum", real_number("accum", accum, open_end=True))

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        squares = self.accum[k]
        squares.set_data(squares + gradient * gradient)
        size = rate / np.sqrt(squares.value())
        moved = weight - size * gradient
        return np.sign(moved) * np.maximum(np.abs(moved) - size * self.l1, 0.0) / (1.0 + size * self.l2)


class Rprop(Optimizer):
    """Resilient propagation (Riedmiller and Braun 1993): steps of a size of each weight's own, by signs only.

    Parameters
    ----------
    params, learning_rate, weight_decay
        As for `Optimizer`; the learning rate is the first size.
    etas : (float, float)
        The factors of the size where the gradient changes its sign, below 1, and where it keeps it, above 1.
    step_sizes : (float, float)
        The least and the largest size.

    Notes
    -----
    Where the sign changes, the weight stays and its gradient counts as 0 in the next step. PyTorch's is the same.
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.smaller, self.larger = (real_number("etas", one, open_end=True) for one in etas)
        self.least, self.most = (real_number("step_sizes", one, open_end=True) for one in step_sizes)
        if not self.smaller < 1 < self.larger or self.least > self.most:
            message = f"etas must be below and above 1, and step_sizes ascend, but got {etas!r} and {step_sizes!r}."
            raise ArgumentError(message)
        self.prev, self.step_size = self.new_state("prev"), self.new_state("step_size")

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        before, size = self.prev[k], self.step_size[k]
        turn = gradient * before
        old = np.where(self.steps() == 1, rate, size.value())
        factor = np.where(turn > 0, self.larger, np.where(turn < 0, self.smaller, 1.0)).astype(weight.dtype)
        size.set_data(np.clip(old * factor, self.least, self.most))
        kept = np.where(turn < 0, 0.0, gradient)
        before.set_data(kept)
        return weight - np.sign(kept) * size.value()
