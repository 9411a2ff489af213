"""PyTorch's `torch.optim`: optimizers that take the gradients from the weights' `grad` when `step` is called.

In: Parameters or other leaves, or groups of them. Out: new values of these, in place. Called by users. `Optimizer`
keeps groups and states; a subclass says its `numbers` (what depends on options and the count of steps) and its
`formula` (the new value and the new states of one weight), which is compiled once for all weights of a group.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar

import numpy

from ...autograd.grad_modes import enable_grad, no_grad
from ...compiled.jit import jit
from ...errors import ArgumentError, DtypeError
from ...record.tensor import Tensor
from ...tensors.parameter import Parameter
from .module import forget_gradient

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "RMSprop"]


def _members(params: Any) -> list[Any]:
    found = [params] if isinstance(params, Tensor) else list(params)
    found = [one[1] if isinstance(one, tuple) else one for one in found]
    for one in found:
        if not isinstance(one, Tensor):
            message = f"optimizer can only optimize Tensors, but one of the params is {type(one).__name__}"
            raise DtypeError(message)
        if not isinstance(one, Parameter) and not one.is_leaf:  # pyright: ignore[reportAttributeAccessIssue]
            message = "can't optimize a non-leaf Tensor"
            raise ArgumentError(message)
    return found


def _number(value: Any) -> float:
    return float(value.asnumpy()) if isinstance(value, Tensor) else float(value)


def give_value(weight: Any, value: Any) -> None:
    """Let a weight take a value, in place."""
    if isinstance(weight, Parameter):
        weight.set_data(value)
    else:
        weight.copy_(value)


class Optimizer:
    """The base of optimizers that step by themselves; subclasses define `numbers` and `formula`, or `step`.

    Parameters
    ----------
    params : iterable of Tensor, or of dict
        Groups are dicts with `params`, and options that differ from the defaults.
    defaults : dict
        The options of all groups.
    """

    states: ClassVar[tuple[str, ...]] = ()
    """The names of the states of a weight, which begin with zeros."""

    def __init__(self, params: Any, defaults: Mapping[str, Any]) -> None:
        self.defaults = dict(defaults)
        self.state: Any = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        listed: list[Any] = [params] if isinstance(params, Tensor) else list(params)
        if not listed:
            message = "optimizer got an empty parameter list"
            raise ArgumentError(message)
        for group in listed if isinstance(listed[0], Mapping) else [{"params": listed}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Train the weights of one more group.

        Parameters
        ----------
        param_group : dict
            With `params`, and options that differ from the defaults.
        """
        group = {**self.defaults, **param_group, "params": _members(param_group["params"])}
        known = {id(weight) for one in self.param_groups for weight in one["params"]}
        if any(id(weight) in known for weight in group["params"]):
            message = "some parameters appear in more than one parameter group"
            raise ArgumentError(message)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all weights, or make them zero."""
        for group in self.param_groups:
            for weight in group["params"]:
                forget_gradient(weight, set_to_none)

    # ----- Steps -----

    def numbers(self, group: Mapping[str, Any], count: int) -> dict[str, float]:
        """Numbers that the formula needs, of a group in its step number `count`."""
        del count
        return {"lr": _number(group["lr"]), "decay": float(group.get("weight_decay", 0.0))}

    def choices(self, group: Mapping[str, Any]) -> tuple[Any, ...]:
        """Options that decide which formula is compiled."""
        return (bool(group.get("maximize", False)), float(group.get("weight_decay", 0.0)) != 0.0)

    @staticmethod
    def formula(weight: Any, gradient: Any, states: Any, number: Any, choices: Any) -> tuple[Any, tuple[Any, ...]]:
        """The new value of a weight, and its new states."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change all weights that have gradients.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss and its gradients anew.

        Returns
        -------
        The closure's result.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                self._step(group)
        return loss

    def _step(self, group: dict[str, Any]) -> None:
        by_count: dict[int, list[Any]] = {}
        for weight in group["params"]:
            if weight.grad is None:
                continue
            state = self.state[weight]
            if not state:
                state["step"] = 0
                for name in self.states:
                    state[name] = self.start(name, weight, group)
            state["step"] += 1
            by_count.setdefault(state["step"], []).append(weight)
        for count, weights in by_count.items():
            states = [tuple([self.state[weight][name] for name in self.states]) for weight in weights]
            given = [weight.value() if isinstance(weight, Parameter) else weight.detach() for weight in weights]
            gradients = [weight.grad.detach() for weight in weights]
            step = _compiled(type(self), self.choices(group))
            for weight, (value, new) in zip(
                weights, step(given, gradients, states, self.numbers(group, count)), strict=True
            ):
                give_value(weight, value)
                self.state[weight].update(zip(self.states, new, strict=True))

    def start(self, name: str, weight: Any, group: Mapping[str, Any]) -> Tensor:
        """A state before the first step."""
        del name, group
        return Tensor(np.zeros(weight.shape, weight.asnumpy().dtype))

    # ----- State -----

    def state_dict(self) -> dict[str, Any]:
        """States and groups, with weights by their numbers."""
        numbers = self._numbers()
        return {
            "state": {numbers[id(weight)]: dict(state) for weight, state in self.state.items()},
            "param_groups": [
                {**group, "params": [numbers[id(weight)] for weight in group["params"]]} for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take the states and options of another optimizer, or of an earlier time.

        Raises
        ------
        ArgumentError
            If the groups have other numbers of weights.
        """
        groups = state_dict["param_groups"]
        sizes = [len(group["params"]) for group in groups]
        if sizes != [len(group["params"]) for group in self.param_groups]:
            message = "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            raise ArgumentError(message)
        weights: dict[Any, Any] = {}
        for own, given in zip(self.param_groups, groups, strict=True):
            weights.update(zip(given["params"], own["params"], strict=True))
            own.update({name: value for name, value in given.items() if name != "params"})
        self.state = defaultdict(dict)
        for number, state in state_dict["state"].items():
            self.state[weights[number]] = {name: copy.deepcopy(value) for name, value in state.items()}

    def _numbers(self) -> dict[int, int]:
        weights = [weight for group in self.param_groups for weight in group["params"]]
        return {id(weight): number for number, weight in enumerate(weights)}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {name}: {group[name]}" for name in sorted(set(group) - {"params"})]
        return "\n".join(lines) + "\n)"


@cache
def _compiled(kind: type[Optimizer], choices: tuple[Any, ...]) -> Callable[..., Any]:
    """The step of all weights of a group."""

    def step(weights: Any, gradients: Any, states: Any, numbers: Any) -> list[Any]:
        found = []
        for weight, gradient, state in zip(weights, gradients, states, strict=True):
            own = {name: value.astype(weight.dtype) for name, value in numbers.items()}
            given = -gradient if choices[0] else gradient
            found.append(kind.formula(weight, given, state, own, choices))
        return found

    return jit(step)


def _with_decay(weight: Any, gradient: Any, number: Any, choices: Any) -> Any:
    return gradient + number["decay"] * weight if choices[1] else gradient


def _checked(**options: Any) -> dict[str, Any]:
    """Options in PyTorch's limits."""
    for name in ("lr", "eps", "weight_decay", "momentum", "rho"):
        if name in options and not _number(options[name]) >= 0.0:
            title = "learning rate" if name == "lr" else f"{name} value"
            message = f"Invalid {title}: {options[name]}"
            raise ArgumentError(message)
    for number, beta in enumerate(options.get("betas", ())):
        if not 0.0 <= beta < 1.0:
            message = f"Invalid beta parameter at index {number}: {beta}"
            raise ArgumentError(message)
    return options


class SGD(Optimizer):
    """Gradient descent with momentum.

    Parameters
    ----------
    params : iterable of Tensor, or of dict
    lr, momentum, dampening, weight_decay : float
    nesterov : bool
    maximize : bool
        Whether to climb instead of descending.
    foreach, differentiable, fused
        PyTorch's; have no effect.

    Examples
    --------
    >>> import nbgrad.mint.torch_names as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.SGD([w], lr=0.25, momentum=0.5)
    >>> for _ in range(2):
    ...     optimizer.zero_grad()
    ...     (w * w).sum().backward()
    ...     _ = optimizer.step()
    >>> print(w.detach())
    [0. 0.]
    """

    states = ("momentum_buffer",)

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: Any = None,
        differentiable: bool = False,
        fused: Any = None,
    ) -> None:
        del foreach, differentiable, fused
        if nesterov and (momentum <= 0 or dampening != 0):
            message = "Nesterov momentum requires a momentum and zero dampening"
            raise ArgumentError(message)
        options = _checked(lr=lr, momentum=momentum, weight_decay=weight_decay)
        super().__init__(params, {**options, "dampening": dampening, "nesterov": nesterov, "maximize": maximize})

    def numbers(self, group: Mapping[str, Any], count: int) -> dict[str, float]:
        """The factors of the step."""
        part = 1.0 if count == 1 else 1.0 - group["dampening"]
        return {**super().numbers(group, count), "momentum": float(group["momentum"]), "part": part}

    def choices(self, group: Mapping[str, Any]) -> tuple[Any, ...]:
        """Whether there is a momentum, and whether it looks ahead."""
        return *super().choices(group), group["momentum"] != 0, bool(group["nesterov"])

    @staticmethod
    def formula(weight: Any, gradient: Any, states: Any, number: Any, choices: Any) -> tuple[Any, tuple[Any, ...]]:
        """One step."""
        gradient = _with_decay(weight, gradient, number, choices)
        if not choices[2]:
            return weight - number["lr"] * gradient, states
        speed = number["momentum"] * states[0] + number["part"] * gradient
        step = gradient + number["momentum"] * speed if choices[3] else speed
        return weight - number["lr"] * step, (speed,)


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015).

    Parameters
    ----------
    params : iterable of Tensor, or of dict
    lr : float
    betas : pair of float
        How much of the running means of gradients and of their squares is kept.
    eps : float
        Added to the root of the corrected mean square.
    weight_decay : float
    amsgrad : bool
        Whether to divide by the largest mean square so far.
    maximize : bool
        Whether to climb instead of descending.
    decoupled_weight_decay : bool
        Whether weights decay apart from the gradient, as in AdamW.
    foreach, capturable, differentiable, fused
        PyTorch's; have no effect.
    """

    states = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
        foreach: Any = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: Any = None,
    ) -> None:
        del foreach, capturable, differentiable, fused
        options = _checked(lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay)
        flags = {"amsgrad": amsgrad, "maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, {**options, **flags})

    def numbers(self, group: Mapping[str, Any], count: int) -> dict[str, float]:
        """The factors of the step."""
        rate, (first, second) = _number(group["lr"]), group["betas"]
        return {
            **super().numbers(group, count),
            "keep": 1.0 - rate * group["weight_decay"],
            "first": first,
            "rest_first": 1.0 - first,
            "second": second,
            "rest_second": 1.0 - second,
            "rate": rate / (1.0 - first**count),
            "root": math.sqrt(1.0 - second**count),
            "eps": group["eps"],
        }

    def choices(self, group: Mapping[str, Any]) -> tuple[Any, ...]:
        """Whether the largest mean square divides, and whether weights decay apart."""
        return *super().choices(group), bool(group["amsgrad"]), bool(group["decoupled_weight_decay"])

    @staticmethod
    def formula(weight: Any, gradient: Any, states: Any, number: Any, choices: Any) -> tuple[Any, tuple[Any, ...]]:
        """One step."""
        if choices[3]:
            weight = weight * number["keep"]
        else:
            gradient = _with_decay(weight, gradient, number, choices)
        mean, square, most = states
        mean = number["first"] * mean + number["rest_first"] * gradient
        square = number["second"] * square + number["rest_second"] * gradient * gradient
        most = np.maximum(most, square) if choices[2] else most
        root = np.sqrt(most if choices[2] else square) / number["root"] + number["eps"]
        return weight - number["rate"] * mean / root, (mean, square, most)


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019); parameters as `Adam`."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, decoupled_weight_decay=True, **options)


class RMSprop(Optimizer):
    """Steps by the gradient over the root of its running mean square (Hinton 2012).

    Parameters
    ----------
    params : iterable of Tensor, or of dict
    lr : float
    alpha : float
        How much of the running mean is kept.
    eps, weight_decay, momentum : float
    centered : bool
        Whether the square of the mean is subtracted.
    maximize : bool
    capturable, foreach, differentiable
        PyTorch's; have no effect.
    """

    states = ("square_avg", "momentum_buffer", "grad_avg")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: Any = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        del foreach, capturable, differentiable
        options = _checked(lr=lr, eps=eps, weight_decay=weight_decay, momentum=momentum)
        super().__init__(params, {**options, "alpha": alpha, "centered": centered, "maximize": maximize})

    def numbers(self, group: Mapping[str, Any], count: int) -> dict[str, float]:
        """The factors of the step."""
        own = {"alpha": group["alpha"], "rest": 1.0 - group["alpha"], "eps": group["eps"]}
        return {**super().numbers(group, count), **own, "momentum": float(group["momentum"])}

    def choices(self, group: Mapping[str, Any]) -> tuple[Any, ...]:
        """Whether there is a momentum, and whether the mean is subtracted."""
        return *super().choices(group), group["momentum"] > 0, bool(group["centered"])

    @staticmethod
    def formula(weight: Any, gradient: Any, states: Any, number: Any, choices: Any) -> tuple[Any, tuple[Any, ...]]:
        """One step."""
        gradient = _with_decay(weight, gradient, number, choices)
        square, speed, mean = states
        square = number["alpha"] * square + number["rest"] * gradient * gradient
        mean = number["alpha"] * mean + number["rest"] * gradient if choices[3] else mean
        root = np.sqrt(square - mean * mean if choices[3] else square) + number["eps"]
        if not choices[2]:
            return weight - number["lr"] * gradient / root, (square, speed, mean)
        speed = number["momentum"] * speed + gradient / root
        return weight - number["lr"] * speed, (square, speed, mean)
