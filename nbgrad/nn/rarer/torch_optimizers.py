"""MindSpore's `experimental.optim`: optimizers with PyTorch's parameters, whose groups may have options of their own.

In: Parameters or groups of them. Out: optimizers, which are called with the gradients. Used by users. Formulas are
those of the papers that docstrings name; where MindSpore's differ from PyTorch's, they are MindSpore's.
"""

from __future__ import annotations

from typing import Any

import numpy

from ...errors import ArgumentError
from ...record.tensor import Tensor
from .grouped_optimizers import Optimizer as Optimizer
from .grouped_optimizers import plain

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""

__all__ = [
    "ASGD",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
]


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """Options whose numbers lie where the formulas need them."""
    for name in ("betas", "rho", "alpha"):
        pair = options.get(name, ())
        for value in pair if isinstance(pair, tuple | list) else (pair,):
            plain.real_number(name, value, below=1.0)
    for name in ("eps", "weight_decay", "momentum", "dampening", "lr_decay", "momentum_decay", "lambd", "t0"):
        if name in options:
            plain.real_number(name, options[name])
    return options


class _Formula(Optimizer):
    """An optimizer whose `update` reads options of the weight's group; `states` are the names of its state."""

    states: tuple[str, ...] = ()

    def __init__(self, params: Any, lr: Any, **options: Any) -> None:
        super().__init__(params, _checked({"lr": lr, **options}))
        for name in self.states:
            setattr(self, name, self.new_state(name))

    def _climbing(self, k: int, gradient: Any) -> Any:
        """The gradient, turned around where the group is to climb, with the weight decay."""
        return -gradient if self.option(k, "maximize") else gradient

    def decay_weight(self, gradients: Any) -> tuple[Tensor, ...]:
        """Gradients, turned around for groups that climb, plus weight decay times weights."""
        return super().decay_weight([self._climbing(k, g) for k, g in enumerate(gradients)])

    def _means(self, k: int, gradient: Any, dtype: Any) -> tuple[Any, Any, Any, Any]:
        """Running means of the gradient and its square, and what corrects that they start at 0."""
        first, second = self.option(k, "betas")
        mean, square, t = self.exp_avg[k], self.exp_avg_sq[k], self.steps()
        mean.set_data(first * mean + (1.0 - first) * gradient)
        square.set_data(second * square + (1.0 - second) * gradient * gradient)
        return mean.value(), square.value(), (1.0 - first**t).astype(dtype), (1.0 - second**t).astype(dtype)


class SGD(_Formula):
    """Gradient descent with momentum.

    Parameters
    ----------
    params : list of Parameter, or list of dict
        Groups are dicts with `params` and options that differ.
    lr : number or Tensor
    momentum, dampening : float
    weight_decay : float
    nesterov : bool
        Whether to look ahead, which needs momentum and no dampening.
    maximize : bool
        Whether to climb instead of descending.

    Examples
    --------
    >>> import nbgrad as nb
    >>> from nbgrad.experimental import optim
    >>> w = nb.Parameter(nb.Tensor([1.0]), name="w")
    >>> optimizer = optim.SGD([{"params": [w], "momentum": 0.5}], lr=0.25)
    >>> for _ in range(2):
    ...     _ = optimizer([nb.Tensor([1.0])])
    >>> print(w.value())
    [0.375]
    """

    states = ("accum",)

    def __init__(
        self,
        params: Any,
        lr: Any,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        if nesterov and (momentum == 0 or dampening != 0):
            message = f"nesterov needs momentum and no dampening, but got {momentum} and {dampening}."
            raise ArgumentError(message)
        super().__init__(
            params,
            lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
        )

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        momentum, speed = self.option(k, "momentum"), self.accum[k]
        if not momentum:
            return weight - rate * gradient
        part = np.where(self.steps() == 1, 1.0, 1.0 - self.option(k, "dampening")).astype(gradient.dtype)
        speed.set_data(momentum * speed + part * gradient)
        step = gradient + momentum * speed if self.option(k, "nesterov") else speed.value()
        return weight - rate * step


class Adam(_Formula):
    """Adam (Kingma and Ba 2015).

    Parameters
    ----------
    params : list of Parameter, or list of dict
    lr : number or Tensor
    betas : pair of float
        How much of the running means of gradients and of their squares is kept.
    eps : float
        Added to the root of the mean square, before its correction.
    weight_decay : float
    amsgrad : bool
        Has no effect, as in MindSpore.
    maximize : bool
        Whether to climb instead of descending.
    """

    states = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        options = {"betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        super().__init__(params, lr, **options, maximize=maximize)

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        mean, square, first, second = self._means(k, gradient, weight.dtype)
        return weight - rate * np.sqrt(second) / first * mean / (np.sqrt(square) + self.option(k, "eps"))


class AdamW(_Formula):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019); parameters as `Adam`.

    Notes
    -----
    `eps` is added to the root of the corrected mean square; with `amsgrad` it is that of the largest one so far.
    """

    states = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    decay_in_gradient = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        options = {"betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        super().__init__(params, lr, **options, maximize=maximize)

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        mean, square, first, second = self._means(k, self._climbing(k, gradient), weight.dtype)
        if self.option(k, "amsgrad"):
            most = self.max_exp_avg_sq[k]
            most.set_data(np.maximum(most, square))
            square = most.value()
        root = np.sqrt(square) / np.sqrt(second) + self.option(k, "eps")
        return weight * (1.0 - rate * self.decay(k)) - rate / first * mean / root


class Adagrad(_Formula):
    """Adagrad (Duchi, Hazan and Singer 2011).

    Parameters
    ----------
    params : list of Parameter, or list of dict
    lr : number or Tensor
    lr_decay : float
        The learning rate in step t is `lr / (1 + (t - 1) * lr_decay)`.
    weight_decay : float
    initial_accumulator_value : float
        The start of the sums of squares.
    eps : float
        Added to their root.
    maximize : bool
    """

    states = ("accum",)

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        options = {"lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps, "maximize": maximize}
        super().__init__(params, lr, initial_accumulator_value=initial_accumulator_value, **options)
        start = plain.real_number("initial_accumulator_value", initial_accumulator_value)
        for state in self.accum:
            state.set_data(state + start)

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        total = self.accum[k]
        total.set_data(total + gradient * gradient)
        rate = rate / (1.0 + (self.steps() - 1.0) * self.option(k, "lr_decay")).astype(weight.dtype)
        return weight - rate * gradient / (np.sqrt(total) + self.option(k, "eps"))


class Adadelta(_Formula):
    """Adadelta (Zeiler 2012).

    Parameters
    ----------
    params : list of Parameter, or list of dict
    lr : number or Tensor
    rho : float
        How much of the running means is kept.
    eps : float
        Added to both mean squares.
    weight_decay : float
    maximize : bool
    """

    states = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize)

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        rho, eps = self.option(k, "rho"), self.option(k, "eps")
        squares, steps = self.square_avg[k], self.acc_delta[k]
        squares.set_data(rho * squares + (1.0 - rho) * gradient * gradient)
        step = gradient * np.sqrt(steps + eps) / np.sqrt(squares + eps)
        steps.set_data(rho * steps + (1.0 - rho) * step * step)
        return weight - rate * step


class Adamax(_Formula):
    """Adamax (Kingma and Ba 2015): the largest gradient in place of the mean square; parameters as `Adam`."""

    states = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize)

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        first, second = self.option(k, "betas")
        mean, largest = self.exp_avg[k], self.exp_inf[k]
        mean.set_data(first * mean + (1.0 - first) * gradient)
        largest.set_data(np.maximum(second * largest, np.abs(gradient) + self.option(k, "eps")))
        return weight - rate / (1.0 - first ** self.steps()).astype(weight.dtype) * mean / largest


class NAdam(_Formula):
    """NAdam (Dozat 2016): Adam with a momentum that looks ahead.

    Parameters
    ----------
    params, lr, betas, eps, weight_decay
        As for `Adam`; `eps` is added to the root of the corrected mean square.
    momentum_decay : float
    """

    states = ("exp_avg", "exp_avg_sq", "mu_product")

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
    ) -> None:
        options = {"betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay}
        super().__init__(params, lr, **options, maximize=False)
        for state in self.mu_product:
            state.set_data(state + 1.0)

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        mean, square, _, second = self._means(k, gradient, weight.dtype)
        first, decay, t = self.option(k, "betas")[0], self.option(k, "momentum_decay"), self.steps()
        now, later = ((first * (1.0 - 0.5 * 0.96 ** ((t + s) * decay))).astype(weight.dtype) for s in (0, 1))
        product = self.mu_product[k]
        product.set_data(product * now)
        root = np.sqrt(square / second) + self.option(k, "eps")
        ahead = rate * (1.0 - now) / (1.0 - product) * gradient
        return weight - ahead / root - rate * later / (1.0 - product * later) * mean / root


class RAdam(_Formula):
    """RAdam (Liu et al. 2020): Adam whose first steps are not divided by a root that is not known yet; parameters as
    `Adam`."""

    states = ("exp_avg", "exp_avg_sq")

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0
    ) -> None:
        super().__init__(params, lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=False)

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        mean, square, first, second = self._means(k, gradient, weight.dtype)
        beta, t = self.option(k, "betas")[1], self.steps()
        limit = 2.0 / (1.0 - beta) - 1.0
        length = limit - 2.0 * t * beta**t / (1.0 - beta**t)
        known = length > 5.0
        safe = np.where(known, length, 6.0)
        rect = np.sqrt((safe - 4.0) * (safe - 2.0) * limit / ((limit - 4.0) * (limit - 2.0) * safe))
        scaled = rect.astype(weight.dtype) * np.sqrt(second) / (np.sqrt(square) + self.option(k, "eps"))
        return weight - rate / first * mean * np.where(known, scaled, 1.0)


class RMSprop(_Formula):
    """RMSprop (Tieleman and Hinton 2012).

    Parameters
    ----------
    params : list of Parameter, or list of dict
    lr : number or Tensor
    alpha : float
        How much of the running means is kept.
    eps : float
        Added to the root of the mean square.
    weight_decay, momentum : float
    centered : bool
        Whether to divide by the root of the variance.
    maximize : bool
    """

    states = ("mean_square", "mean_grad", "moment")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        maximize: bool = False,
    ) -> None:
        options = {"alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        super().__init__(params, lr, **options, centered=centered, maximize=maximize)

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        alpha, momentum, square, speed = self.option(k, "alpha"), self.option(k, "momentum"), self.mean_square[k], None
        square.set_data(alpha * square + (1.0 - alpha) * gradient * gradient)
        spread = square.value()
        if self.option(k, "centered"):
            mean = self.mean_grad[k]
            mean.set_data(alpha * mean + (1.0 - alpha) * gradient)
            spread = spread - mean * mean
        step = gradient / (np.sqrt(spread) + self.option(k, "eps"))
        if momentum:
            speed = self.moment[k]
            speed.set_data(momentum * speed + step)
            step = speed.value()
        return weight - rate * step


class Rprop(_Formula):
    """Resilient propagation (Riedmiller and Braun 1993): steps of a size of each weight's own, by signs only.

    Parameters
    ----------
    params : list of Parameter, or list of dict
    lr : number or Tensor
        The first size.
    etas : pair of float
        The factors of the size where the gradient changes its sign, and where it keeps it.
    step_sizes : pair of float
        The least and the largest size.
    maximize : bool
    """

    states = ("prev", "step_size")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: Any = (0.5, 1.2),
        step_sizes: Any = (1e-6, 50.0),
        *,
        maximize: bool = False,
    ) -> None:
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            message = f"etas must be a number between 0 and 1 and one above, but is {etas!r}."
            raise ArgumentError(message)
        super().__init__(
            params, lr, etas=tuple(etas), step_sizes=tuple(step_sizes), weight_decay=0.0, maximize=maximize
        )

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        (less, more), (least, most) = self.option(k, "etas"), self.option(k, "step_sizes")
        before, size = self.prev[k], self.step_size[k]
        turn = gradient * before
        old = np.where(self.steps() == 1, rate, size.value())
        factor = np.where(turn > 0, more, np.where(turn < 0, less, 1.0)).astype(weight.dtype)
        size.set_data(np.clip(old * factor, least, most))
        kept = np.where(turn < 0, 0.0, gradient)
        before.set_data(kept)
        return weight - np.sign(kept) * size.value()


class ASGD(_Formula):
    """Averaged stochastic gradient descent (Polyak and Juditsky 1992): `ax` has the mean of the weights.

    Parameters
    ----------
    params : list of Parameter, or list of dict
    lr : number or Tensor
    lambd : float
        How much weights decay.
    alpha : float
        The power with which the learning rate falls.
    t0 : float
        The step from which on weights are averaged.
    weight_decay : float
    maximize : bool
    """

    states = ("ax", "eta", "mu")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        maximize: bool = False,
    ) -> None:
        options = {"lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay}
        super().__init__(params, lr, **options, maximize=maximize)

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """One step."""
        t, (lambd, power) = self.steps().astype(weight.dtype), (self.option(k, "lambd"), self.option(k, "alpha"))
        eta, mu, mean = self.eta[k], self.mu[k], self.ax[k]
        now = np.where(t == 1, rate, eta.value())
        part = np.where(t == 1, 1.0, mu.value()).astype(weight.dtype)
        weight = weight * (1.0 - lambd * now) - now * gradient
        mean.set_data(np.where(part == 1, weight, mean + part * (weight - mean)))
        eta.set_data(np.zeros_like(weight) + rate / (1.0 + lambd * rate * t) ** power)
        mu.set_data(np.zeros_like(weight) + 1.0 / np.maximum(1.0, t - self.option(k, "t0")))
        return weight
