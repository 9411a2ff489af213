"""Optimizers of `torch.optim` besides the common ones: Adagrad, Adadelta, Adamax, NAdam, RAdam, Rprop.

In: Parameters or other leaves, or groups of them. Out: new values of these, in place. Called by users; the base is in
stepping_optimizers.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy

from ...record.tensor import Tensor
from .stepping_optimizers import Optimizer, _checked, _number, _with_decay

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""

__all__ = ["Adadelta", "Adagrad", "Adamax", "NAdam", "RAdam", "Rprop"]


class Adagrad(Optimizer):
    """Steps by the gradient over the root of the sum of its squares (Duchi, Hazan, Singer 2011).

    Parameters
    ----------
    params : iterable of Tensor, or of dict
    lr, lr_decay, weight_decay, initial_accumulator_value, eps : float
    maximize : bool
    foreach, differentiable, fused
        PyTorch's; have no effect.
    """

    states = ("sum",)

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: Any = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: Any = None,
    ) -> None:
        del foreach, differentiable, fused
        options = _checked(lr=lr, weight_decay=weight_decay, eps=eps)
        own = {"lr_decay": lr_decay, "initial_accumulator_value": initial_accumulator_value, "maximize": maximize}
        super().__init__(params, {**options, **own})

    def start(self, name: str, weight: Any, group: Mapping[str, Any]) -> Tensor:
        """A sum before the first step."""
        return super().start(name, weight, group) + group["initial_accumulator_value"]

    def numbers(self, group: Mapping[str, Any], count: int) -> dict[str, float]:
        """The factors of the step."""
        rate = _number(group["lr"]) / (1.0 + (count - 1) * group["lr_decay"])
        return {**super().numbers(group, count), "rate": rate, "eps": group["eps"]}

    @staticmethod
    def formula(weight: Any, gradient: Any, states: Any, number: Any, choices: Any) -> tuple[Any, tuple[Any, ...]]:
        """One step."""
        gradient = _with_decay(weight, gradient, number, choices)
        total = states[0] + gradient * gradient
        return weight - number["rate"] * gradient / (np.sqrt(total) + number["eps"]), (total,)


class Adadelta(Optimizer):
    """Steps in the units of the weights (Zeiler 2012).

    Parameters
    ----------
    params : iterable of Tensor, or of dict
    lr, rho, eps, weight_decay : float
    maximize : bool
    foreach, capturable, differentiable
        PyTorch's; have no effect.
    """

    states = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: Any = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        del foreach, capturable, differentiable
        super().__init__(params, {**_checked(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay), "maximize": maximize})

    def numbers(self, group: Mapping[str, Any], count: int) -> dict[str, float]:
        """The factors of the step."""
        own = {"rho": group["rho"], "rest": 1.0 - group["rho"], "eps": group["eps"]}
        return {**super().numbers(group, count), **own}

    @staticmethod
    def formula(weight: Any, gradient: Any, states: Any, number: Any, choices: Any) -> tuple[Any, tuple[Any, ...]]:
        """One step."""
        gradient = _with_decay(weight, gradient, number, choices)
        square = number["rho"] * states[0] + number["rest"] * gradient * gradient
        step = np.sqrt(states[1] + number["eps"]) / np.sqrt(square + number["eps"]) * gradient
        steps = number["rho"] * states[1] + number["rest"] * step * step
        return weight - number["lr"] * step, (square, steps)


class _Means(Optimizer):
    """Optimizers with running means of gradients and of their squares."""

    states = ("exp_avg", "exp_avg_sq")

    def numbers(self, group: Mapping[str, Any], count: int) -> dict[str, float]:
        """The factors of the step."""
        first, second = group["betas"]
        own = {"first": first, "rest_first": 1.0 - first, "second": second, "rest_second": 1.0 - second}
        keep = 1.0 - _number(group["lr"]) * group["weight_decay"]
        return {**super().numbers(group, count), **own, "eps": group["eps"], "keep": keep}

    def choices(self, group: Mapping[str, Any]) -> tuple[Any, ...]:
        """Whether weights decay apart."""
        return *super().choices(group), bool(group.get("decoupled_weight_decay", False))

    @staticmethod
    def decayed(weight: Any, gradient: Any, number: Any, choices: Any) -> tuple[Any, Any]:
        """The weight and the gradient with the decay."""
        if choices[2]:
            return weight * number["keep"], gradient
        return weight, _with_decay(weight, gradient, number, choices)

    @staticmethod
    def means(gradient: Any, states: Any, number: Any) -> tuple[Any, Any]:
        """The new running means."""
        mean = number["first"] * states[0] + number["rest_first"] * gradient
        return mean, number["second"] * states[1] + number["rest_second"] * gradient * gradient


class Adamax(_Means):
    """Adam by the largest gradient instead of the mean square (Kingma and Ba 2015).

    Parameters
    ----------
    params : iterable of Tensor, or of dict
    lr : float
    betas : pair of float
    eps, weight_decay : float
    maximize : bool
    foreach, differentiable, capturable
        PyTorch's; have no effect.
    """

    states = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: Any = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        del foreach, differentiable, capturable
        options = _checked(lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay)
        super().__init__(params, {**options, "maximize": maximize})

    def numbers(self, group: Mapping[str, Any], count: int) -> dict[str, float]:
        """The factors of the step."""
        rate = _number(group["lr"]) / (1.0 - group["betas"][0] ** count)
        return {**super().numbers(group, count), "rate": rate}

    @staticmethod
    def formula(weight: Any, gradient: Any, states: Any, number: Any, choices: Any) -> tuple[Any, tuple[Any, ...]]:
        """One step."""
        gradient = _with_decay(weight, gradient, number, choices)
        mean = number["first"] * states[0] + number["rest_first"] * gradient
        largest = np.maximum(number["second"] * states[1], np.abs(gradient) + number["eps"])
        return weight - number["rate"] * mean / largest, (mean, largest)


class NAdam(_Means):
    """Adam with Nesterov's momentum (Dozat 2016).

    Parameters
    ----------
    params : iterable of Tensor, or of dict
    lr : float
    betas : pair of float
    eps, weight_decay, momentum_decay : float
    decoupled_weight_decay : bool
    maximize : bool
    foreach, capturable, differentiable
        PyTorch's; have no effect.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: Any = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        del foreach, capturable, differentiable
        options = _checked(lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay)
        own = {"momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, {**options, **own, "maximize": maximize})

    def numbers(self, group: Mapping[str, Any], count: int) -> dict[str, float]:
        """The factors of the step."""
        (first, second), rate = group["betas"], _number(group["lr"])

        def momentum(t: int) -> float:
            return first * (1.0 - 0.5 * 0.96 ** (t * group["momentum_decay"]))

        product = math.prod(momentum(t) for t in range(1, count + 1))
        now, then = momentum(count), momentum(count + 1)
        return {
            **super().numbers(group, count),
            "by_gradient": rate * (1.0 - now) / (1.0 - product),
            "by_mean": rate * then / (1.0 - product * then),
            "correction": 1.0 - second**count,
        }

    @staticmethod
    def formula(weight: Any, gradient: Any, states: Any, number: Any, choices: Any) -> tuple[Any, tuple[Any, ...]]:
        """One step."""
        weight, gradient = _Means.decayed(weight, gradient, number, choices)
        mean, square = _Means.means(gradient, states, number)
        root = np.sqrt(square / number["correction"]) + number["eps"]
        return weight - (number["by_gradient"] * gradient + number["by_mean"] * mean) / root, (mean, square)


class RAdam(_Means):
    """Adam whose first steps are made without the mean square (Liu et al. 2020); parameters as `NAdam`."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: Any = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        del foreach, capturable, differentiable
        options = _checked(lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay)
        super().__init__(params, {**options, "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize})

    def numbers(self, group: Mapping[str, Any], count: int) -> dict[str, float]:
        """The factors of the step."""
        (first, second), rate = group["betas"], _number(group["lr"])
        limit = 2.0 / (1.0 - second) - 1.0
        length = limit - 2.0 * count * second**count / (1.0 - second**count)
        plain, adaptive = rate / (1.0 - first**count), 0.0
        if length > 5.0:
            part = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
            plain, adaptive = 0.0, plain * math.sqrt(part) * math.sqrt(1.0 - second**count)
        return {**super().numbers(group, count), "plain": plain, "adaptive": adaptive}

    @staticmethod
    def formula(weight: Any, gradient: Any, states: Any, number: Any, choices: Any) -> tuple[Any, tuple[Any, ...]]:
        """One step."""
        weight, gradient = _Means.decayed(weight, gradient, number, choices)
        mean, square = _Means.means(gradient, states, number)
        step = number["plain"] * mean + number["adaptive"] * mean / (np.sqrt(square) + number["eps"])
        return weight - step, (mean, square)


class Rprop(Optimizer):
    """Steps by the signs of gradients alone (Riedmiller and Braun 1993).

    Parameters
    ----------
    params : iterable of Tensor, or of dict
    lr : float
    etas : pair of float
        Factors of a step's length after a change of sign, and without one.
    step_sizes : pair of float
        The shortest and the longest step.
    capturable, foreach, differentiable
        PyTorch's; have no effect.
    maximize : bool
    """

    states = ("prev", "step_size")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: Any = (0.5, 1.2),
        step_sizes: Any = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: Any = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        del capturable, foreach, differentiable
        super().__init__(params, {**_checked(lr=lr), "etas": etas, "step_sizes": step_sizes, "maximize": maximize})

    def start(self, name: str, weight: Any, group: Mapping[str, Any]) -> Tensor:
        """A state before the first step."""
        zeros = super().start(name, weight, group)
        return zeros + _number(group["lr"]) if name == "step_size" else zeros

    def numbers(self, group: Mapping[str, Any], count: int) -> dict[str, float]:
        """The factors of the step."""
        (less, more), (least, most) = group["etas"], group["step_sizes"]
        return {"less": less, "more": more, "least": least, "most": float(most)}

    @staticmethod
    def formula(weight: Any, gradient: Any, states: Any, number: Any, choices: Any) -> tuple[Any, tuple[Any, ...]]:
        """One step."""
        turned = gradient * states[0]
        factor = np.where(turned > 0, number["more"], np.where(turned < 0, number["less"], 1.0))
        length = np.clip(states[1] * factor.astype(weight.dtype), number["least"], number["most"])
        kept = np.where(turned < 0, gradient * 0, gradient)
        return weight - np.sign(kept) * length, (kept, length)
