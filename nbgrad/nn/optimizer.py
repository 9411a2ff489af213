"""Optimizer, the base of all: learning rates, weight decay, state, and one compiled update of all weights.

In: Parameters (or groups of them), a learning rate, and at each call the gradients. Out: the Parameters with new
values. Called by users, by `TrainOneStepCell`, and by the subclasses in optimizers.py, which define one formula each.
An update is an ordinary recorded function that reads Parameters and writes them: `jit` compiles it once, and inside a
function that is compiled itself it becomes part of that.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiled.jit import jit
from ..errors import ArgumentError, CellError, DtypeError, ShapeError
from ..graph.trace import current_trace
from ..process.modes import leaves_made
from ..record.axes_and_dtypes import only
from ..record.tensor import Tensor
from ..remembered.leaves import forgetting
from ..tensors.parameter import Parameter, ParameterTuple
from .cell import Cell
from .layer_arguments import flag
from .optimizer_members import MembersOfOptimizers, StepRates, tensors_of

FLOAT32 = np.dtype(np.float32)
_GROUP_KEYS = ("params", "lr", "weight_decay", "grad_centralization", "order_params")


# ----- Arguments -----


def real_number(name: str, value: Any, least: float = 0.0, below: float = math.inf, open_end: bool = False) -> float:
    """A number in an interval, as a float.

    Parameters
    ----------
    name : str
        Its name in a message.
    value : int or float
    least, below : float
        The interval [least, below), or (least, below) if `open_end`.

    Raises
    ------
    DtypeError
        If it is no number.
    ArgumentError
        If it lies outside.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        message = f"{name} must be a number, but got {value!r:.60} of type {type(value).__name__}."
        raise DtypeError(message)
    if not (least < value if open_end else least <= value) or not value < below:
        upper = f" and less than {below:g}" if below < math.inf else " and finite"
        message = f"{name} must be {'greater than' if open_end else 'at least'} {least:g}{upper}, but got {value!r}."
        raise ArgumentError(message)
    return float(value)


@dataclass
class _Group:
    """Parameters with their own learning rate or weight decay; None for the optimizer's."""

    parameters: list[Any]
    learning_rate: Any = None
    weight_decay: Any = None
    centralized: bool = False
    chosen: bool = True
    """Whether the user made the group; if not, it is just all Parameters."""


def _listed(parameters: Any, what: str) -> list[Any]:
    """An iterable of Parameters or groups as a list that is not empty."""
    if isinstance(parameters, Tensor | str | Mapping) or not isinstance(parameters, Iterable):
        hint = " Give net.trainable_params()." if isinstance(parameters, Cell) else " Put it in a list."
        message = f"{what} must be a list of Parameters or of groups, but got {type(parameters).__name__}.{hint}"
        raise DtypeError(message)
    found = list(parameters)
    if not found:
        message = f"{what} is empty, so there is nothing to train. Give net.trainable_params() of a net with weights."
        raise ArgumentError(message)
    return found


def _groups(parameters: Any) -> tuple[list[_Group], list[Any] | None]:
    """The groups, and the order of all Parameters if one is given; one group if the Parameters are not grouped."""
    listed = _listed(parameters, "parameters")
    if not any(isinstance(entry, Mapping) for entry in listed):
        return [_Group(listed, chosen=False)], None
    groups: list[_Group] = []
    order: list[Any] | None = None
    for position, entry in enumerate(listed):
        if not isinstance(entry, Mapping):
            message = (
                f"parameters holds groups (dicts) and, at position {position}, {type(entry).__name__}. Give Parameters "
                "only, or groups only."
            )
            raise DtypeError(message)
        unknown = [key for key in entry if key not in _GROUP_KEYS]
        if unknown or ("params" in entry) == ("order_params" in entry):
            message = (
                f"Group {position} of parameters must have the key 'params' and may have 'lr', 'weight_decay' and "
                f"'grad_centralization' (or just 'order_params'), but has {', '.join(map(repr, entry)) or 'no keys'}."
            )
            raise ArgumentError(message)
        if "order_params" in entry:
            order = _listed(entry["order_params"], "order_params")
        else:
            members = _listed(entry["params"], f"params of group {position}")
            centralized = flag(entry.get("grad_centralization", False), "grad_centralization")
            groups.append(_Group(members, entry.get("lr"), entry.get("weight_decay"), centralized))
    return groups, order


def _check_members(parameters: Sequence[Any]) -> None:
    """Raise unless all are different Parameters of floating-point numbers. (ParameterTuple checks their names.)"""
    seen: set[int] = set()
    for position, parameter in enumerate(parameters):
        if not isinstance(parameter, Parameter) or parameter.dtype.kind != "f":
            dtype = f" of dtype {parameter.dtype.name}" if isinstance(parameter, Tensor) else ""
            message = (
                "An optimizer trains Parameters of floating-point numbers, but element "
                f"{position} of parameters is {type(parameter).__name__}{dtype}."
            )
            raise DtypeError(message)
        if id(parameter) in seen:
            message = f"The Parameter {parameter.name!r} is given twice (a duplicate) in parameters. Give it once."
            raise ArgumentError(message)
        seen.add(id(parameter))


# ----- The optimizer -----


class Optimizer(MembersOfOptimizers):
    """The base of all optimizers; subclasses define `update`, or a `construct` of their own.

    Parameters
    ----------
    learning_rate : number, Tensor, list of numbers, or Cell
        Fixed; or one for each step, of which the last one is kept; or computed from the global step by a Cell, such as
        `CosineDecayLR`.
    parameters : list of Parameter, or list of dict
        Groups are dicts with `params` and, if they differ from the optimizer's, `lr` and `weight_decay`; a dict with
        only `order_params` gives the order of the gradients. With `grad_centralization`, gradients lose their means
        over all axes but the first, as in MindSpore where the second extent is a multiple of 16.
    weight_decay : number or Cell
        Weights are pulled towards zero by it. Where Parameters are not grouped, those with "beta" or "gamma" in their
        names are left out, as in MindSpore (not by `SGD` and `AdamW`).
    loss_scale : float
        Gradients are divided by it.

    Raises
    ------
    ArgumentError
        For no Parameters, the same one twice, different ones of one name, or numbers out of range. (A ValueError.)
    DtypeError
        For anything else than Parameters of floating-point numbers. (A TypeError.)

    Notes
    -----
    Parameters with `requires_grad=False` are left alone. Float16 weights are updated in float32, in which their state
    is kept. `learning_rate` is a Parameter (a tuple of them, if groups have their own): assigning to it compiles
    nothing.

    Examples
    --------
    >>> import nbgrad as nb
    >>> class Plain(nb.nn.Optimizer):
    ...     def update(self, k, weight, gradient, rate):
    ...         return weight - rate * gradient
    >>> w = nb.Parameter(nb.Tensor([1.0, 2.0]), name="w")
    >>> optimizer = Plain(0.5, [w])
    >>> optimizer((nb.Tensor([1.0, -1.0]),))
    True
    >>> optimizer.learning_rate = nb.Tensor(0.25)
    >>> print(w.value(), optimizer.get_lr(), optimizer.global_step.value())
    [0.5 2.5] 0.25 [1]
    """

    decays_all = False
    """Whether weight decay applies to Parameters called beta or gamma too."""
    decay_in_gradient = True
    """Whether weight decay is added to the gradient; if not, `update` asks for `self.decay(k)`."""
    parameters: ParameterTuple
    global_step: Parameter

    def __init__(
        self, learning_rate: Any, parameters: Any, weight_decay: float | Cell = 0.0, loss_scale: float = 1.0
    ) -> None:
        super().__init__(auto_prefix=False)
        self.loss_scale = real_number("loss_scale", loss_scale, open_end=True)
        groups, order = _groups(parameters)
        members = [(parameter, number) for number, group in enumerate(groups) for parameter in group.parameters]
        _check_members([parameter for parameter, _ in members])
        if order is not None:
            members = _reordered(members, order)
        # Not registered: the weights, and their names, belong to the net.
        object.__setattr__(self, "parameters", ParameterTuple([parameter for parameter, _ in members]))
        self._weight_names = tuple([parameter.name for parameter in self.parameters])
        wide = any(parameter.dtype.itemsize == 8 for parameter in self.parameters)
        self._rate_dtype = np.dtype(np.float64) if wide else FLOAT32
        self.global_step = Parameter(np.zeros(1, np.int32), name="global_step", requires_grad=False)
        rates = [group.learning_rate for group in groups]
        decays = [group.weight_decay for group in groups]
        of_rates, of_decays = (any(value is not None for value in values) for values in (rates, decays))
        rate_names = self._set_up("learning_rate", learning_rate, rates, self._rate, of_rates)
        decay_names = self._set_up("weight_decay", weight_decay, decays, self._checked_decay, of_rates or of_decays)
        self._rate_names = tuple([rate_names[number] for _, number in members])
        self._decay_names: tuple[str | None, ...] = tuple(
            [
                decay_names[number] if groups[number].chosen or self.decays_all or not _is_norm(parameter) else None
                for parameter, number in members
            ]
        )
        for name, names in (("learning_rate", rate_names), ("weight_decay", decay_names)):
            if names[0] != name:  # one for each Parameter, as in MindSpore
                each = tuple([getattr(self, names[number]) for _, number in members])
                object.__setattr__(self, name, each)
        self._group_count = len(groups)
        self._centralized = tuple([groups[number].centralized for _, number in members])
        if type(self).construct is not Optimizer.construct:  # whose maps tell Tensors from numbers
            for name in {*decay_names, "weight_decay"}:
                object.__setattr__(self, name, tensors_of(getattr(self, name)))
        self._compiled = jit(self._step)
        self._follow()

    def _set_up(self, name: str, default: Any, values: Sequence[Any], made: Any, own: bool) -> list[str]:
        """Attributes that hold the learning rates or decays of the groups; the names, in the order of the groups."""
        if not own:
            setattr(self, name, made(default, name))
            return [name] * len(values)
        names = [f"{name}_group_{number}" for number in range(len(values))]
        for attribute, value in zip(names, values, strict=True):
            setattr(self, attribute, made(default if value is None else value, attribute))
        return names

    def _rate(self, value: Any, name: str) -> Parameter | Cell:
        """The holder of a learning rate: a Cell, or a 0-d or 1-d Parameter."""
        if isinstance(value, Cell):
            return value
        if isinstance(value, Tensor):
            array = value.asnumpy()
        elif isinstance(value, Iterable) and not isinstance(value, str | Mapping | np.ndarray):
            array = np.array([real_number("Every learning rate", rate) for rate in value])
        else:
            array = np.array(value if isinstance(value, np.ndarray) else real_number("The learning rate", value))
        if array.ndim > 1 or array.size == 0 or array.dtype.kind not in "fiu":
            message = (
                "The learning rate must be a number, a list of numbers, a Cell, or a Tensor with at most one axis, but "
                f"got an array of shape {array.shape} and dtype {array.dtype}."
            )
            raise ArgumentError(message)
        if not (array >= 0).all():
            message = f"Learning rates must not be negative or NaN, but the smallest is {array.min()}."
            raise ArgumentError(message)
        kind = StepRates if array.ndim else Parameter
        return kind(array.astype(self._rate_dtype), name=name, requires_grad=False)

    def _checked_decay(self, value: Any, name: str) -> float | Cell:
        return value if isinstance(value, Cell) else real_number(name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        grouped = name in ("learning_rate", "weight_decay") and isinstance(self.__dict__.get(name), tuple)
        if grouped and type(self).construct is Optimizer.construct:  # a construct of one's own reads what it assigns
            count = self._group_count
            message = (
                f"The groups have their own {name}: assign to {name}_group_0 ... {name}_group_{count - 1} instead."
            )
            raise ArgumentError(message)
        super().__setattr__(name, value)

    def _state(self) -> dict[str, Any]:
        trainable = tuple([parameter.requires_grad for parameter in self.parameters])
        return {**super()._state(), "trainable": trainable}

    # ----- For subclasses -----

    def new_state(self, prefix: str, initial: float = 0.0) -> ParameterTuple:
        """State for every weight, Parameters called `prefix.<name of the weight>` that `parameters_dict()` has."""
        state = ParameterTuple(
            [
                Parameter(np.full(p.shape, initial, _working(p)), name=f"{prefix}.{p.name}", requires_grad=False)
                for p in self.parameters
            ]
        )
        for parameter, weight in zip(state, self.parameters, strict=True):
            parameter._move(weight.device)
            self.insert_param_to_cell(parameter.name, parameter, check_name_contain_dot=False)
        return state

    def _follow(self) -> None:
        """Move the state of each weight to the weight's device, and the shared state to the first weight's."""
        if not self.parameters or all(p._leaf.device is None for p in (*self.parameters, *self.get_parameters())):
            return
        shared = set(self.get_parameters())
        for value in list(self.__dict__.values()):
            if isinstance(value, ParameterTuple) and value is not self.parameters:
                for state, weight in zip(value, self.parameters, strict=False):
                    shared.discard(state)
                    state._move(weight.device, unread=True)
        for parameter in shared:
            parameter._move(self.parameters[0].device, unread=True)

    def update(self, k: int, weight: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """The new value of weight number `k`; writes its state with `set_data`.

        Parameters
        ----------
        k : int
        weight, gradient : Tensor
            In the dtype to compute in; the gradient after weight decay and scaling.
        rate : Tensor
            The learning rate, 0-d.
        """
        message = f"{type(self).__name__} has no update method. Define update(self, k, weight, gradient, rate)."
        raise CellError(message)

    def steps(self) -> Tensor:
        """The number of this step, from 1: a 0-d float64 Tensor."""
        return (self.global_step.reshape(()) + 1).astype(np.float64)

    def decay(self, k: int) -> Any:
        """The weight decay of weight number `k` at this step: a float, or a 0-d Tensor if a Cell computes it."""
        name = self._decay_names[k]
        return 0.0 if name is None else self._now(name, _working(self.parameters[k]))

    def _now(self, name: str, dtype: np.dtype[Any]) -> Any:
        """The value of an attribute at this step: a 0-d Tensor of a dtype, or a float as it is."""
        value = getattr(self, name)
        if isinstance(value, Cell):
            computed = value(self.global_step)
            if not isinstance(computed, Tensor) or computed.size != 1:
                message = f"{name} is computed by {value.cls_name}, which must return a Tensor of one element."
                raise ShapeError(message)
            value = computed.reshape(())
        elif isinstance(value, Parameter) and value.ndim:
            value = np.take(value, np.minimum(self.global_step.reshape(()), value.size - 1))
        return value.astype(dtype) if isinstance(value, Tensor) else value

    # ----- For users -----

    _target = "CPU"

    @property
    def target(self) -> str:
        """Where MindSpore updates: "CPU", "GPU" or "Ascend"; no effect, since updates run where Parameters lie."""
        return self._target

    @target.setter
    def target(self, value: str) -> None:
        self._set_base_target(value)

    def _set_base_target(self, value: str) -> None:
        """Keep a target; the setters of public optimizers call this."""
        only("target", value, "CPU", "GPU", "Ascend")
        self._target = value

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Put a prefix before the names of all state, and of the weights, as MindSpore does.

        Parameters
        ----------
        prefix : str
        recurse : bool
            Whether the state of Cells that compute the learning rate or weight decay is renamed, too.

        Raises
        ------
        DtypeError
            If the prefix is no string.

        Examples
        --------
        >>> import nbgrad as nb
        >>> optimizer = nb.nn.Momentum(nb.nn.Dense(2, 1).trainable_params(), 0.1, 0.9)
        >>> optimizer.update_parameters_name("first.")
        >>> optimizer.parameters[0].name, optimizer.moments[0].name
        ('first.weight', 'first.moments.weight')
        """
        super().update_parameters_name(prefix, recurse)
        for parameter, name in zip(self.parameters, self._weight_names, strict=True):
            parameter.name = prefix + name

    def get_lr(self) -> Any:
        """The learning rate of the next step: a 0-d Tensor, or one for each Parameter if groups have their own."""
        if isinstance(self.learning_rate, tuple):
            return tuple([self._now(name, self._rate_dtype) for name in self._rate_names])
        return self._now("learning_rate", self._rate_dtype)

    def decay_weight(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Gradients plus weight decay times loss scale times weights; to be divided by the loss scale after that."""
        decayed: list[Tensor] = []
        for k, (parameter, gradient) in enumerate(zip(self.parameters, gradients, strict=True)):
            dtype, decay = _working(parameter), self.decay(k)
            if isinstance(decay, Tensor) or decay:
                gradient = gradient + parameter.value().astype(dtype) * (decay * self.loss_scale)
            decayed.append(gradient)
        return tuple(decayed)

    def gradients_centralization(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Gradients of groups with `grad_centralization` without their means over all axes but the first."""
        found: list[Any] = list(gradients)
        for k, (chosen, gradient) in enumerate(zip(self._centralized, gradients, strict=True)):
            if chosen and gradient.ndim > 1 and gradient.shape[1] % 16 == 0:
                found[k] = gradient - gradient.mean(axis=tuple(range(1, gradient.ndim)), keepdims=True)
        return tuple(found)

    def get_weight_decay(self) -> Any:
        """The weight decay of the next step: a number or a 0-d Tensor, or one for each Parameter."""
        if isinstance(self.weight_decay, tuple):
            return tuple([self.decay(k) for k in range(len(self.parameters))])
        return self._now("weight_decay", self._rate_dtype)

    def scale_grad(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Gradients divided by the loss scale."""
        return tuple(gradients) if self.loss_scale == 1.0 else tuple([g * (1.0 / self.loss_scale) for g in gradients])

    def construct(self, gradients: Sequence[Any]) -> bool:
        """Update all weights."""
        gradients = [Tensor(g).astype(_working(p)) for p, g in zip(self.parameters, gradients, strict=True)]
        if self.decay_in_gradient:
            gradients = self.decay_weight(gradients)
        gradients = self.gradients_centralization(gradients)
        rates = {name: self._now(name, self._rate_dtype) for name in self._rate_names}
        for k, (weight, gradient) in enumerate(zip(self.parameters, self.scale_grad(gradients), strict=True)):
            if weight.requires_grad:
                dtype = _working(weight)
                rate = rates[self._rate_names[k]].astype(dtype)
                weight.set_data(self.update(k, weight.value().astype(dtype), gradient, rate))
        self.global_step.set_data(self.global_step + 1)
        return True

    def __call__(self, gradients: Any, *others: Any) -> bool:
        """Update all weights; nothing is changed if the gradients do not fit.

        Parameters
        ----------
        gradients : tuple or list of Tensor, or Tensor
            One for each of `self.parameters`, in their order; for a single Parameter its gradient.
        *others
            Further arguments of a `construct` of one's own, such as whether numbers were too large; the step is not
            compiled by itself then.

        Returns
        -------
        bool
            True.

        Raises
        ------
        ArgumentError, ShapeError, DtypeError
            If there are too few or too many, or one does not have the shape of its weight, or holds no floats.
        """
        checked = tuple(self._checked(gradients))
        self._follow()
        if others:
            super().__call__(checked, *others)
        elif current_trace() is None:
            with forgetting() if leaves_made else nullcontext():
                self._compiled(*checked)
        else:
            super().__call__(checked)
        return True

    def _step(self, *gradients: Any) -> Tensor:
        """One step of the optimizer, which is compiled."""
        super().__call__(gradients)
        return self.global_step.value()

    def _checked(self, gradients: Any) -> Iterator[Any]:
        given = [gradients] if isinstance(gradients, Tensor | np.ndarray) else gradients
        if not isinstance(given, list | tuple):
            message = f"{self.cls_name} takes a tuple of gradients, but got {type(gradients).__name__}."
            raise DtypeError(message)
        if len(given) != len(self.parameters):
            message = (
                f"{self.cls_name} trains {len(self.parameters)} Parameters, but got {len(given)} gradients. Give one "
                "for each of optimizer.parameters, in their order: nb.grad(f, None, optimizer.parameters)."
            )
            raise ArgumentError(message)
        for parameter, gradient in zip(self.parameters, given, strict=True):
            if not isinstance(gradient, Tensor | np.ndarray) or gradient.dtype.kind != "f":
                dtype = f" of dtype {gradient.dtype}" if hasattr(gradient, "dtype") else ""
                message = (
                    f"The gradient of {parameter.name} must be a Tensor of floating-point numbers, but got "
                    f"{type(gradient).__name__}{dtype}."
                )
                raise DtypeError(message)
            if tuple(gradient.shape) != parameter.shape:
                message = (
                    f"The Parameter {parameter.name} has shape {parameter.shape}, but its gradient has shape "
                    f"{tuple(gradient.shape)}. Gradients must come in the order of optimizer.parameters."
                )
                raise ShapeError(message)
            yield gradient


def opt_init_args_register(fn: Any) -> Any:
    """A decorator for `__init__` of an optimizer, which keeps the arguments in `init_args`, as MindSpore does.

    Examples
    --------
    >>> import nbgrad as nb
    >>> class Scaled(nb.nn.SGD):
    ...     @nb.nn.opt_init_args_register
    ...     def __init__(self, params, rate=0.5):
    ...         super().__init__(params, rate)
    >>> Scaled([nb.Parameter(nb.Tensor([1.0]), name="w")], rate=0.25).init_args
    {'rate': 0.25}
    """
    signature = inspect.signature(fn)

    @functools.wraps(fn)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        fn(self, *args, **kwargs)
        _, _, *named = bound.arguments.items()
        object.__setattr__(self, "init_args", dict(named))

    return init


def _working(parameter: Parameter) -> np.dtype[Any]:
    """The dtype in which a weight is updated: its own, or float32 instead of float16."""
    dtype = np.dtype(parameter.dtype.dtype)
    return FLOAT32 if dtype.itemsize < 4 else dtype


def _is_norm(parameter: Parameter) -> bool:
    """Whether the name is that of a normalisation's weights, which MindSpore does not decay."""
    return "beta" in parameter.name or "gamma" in parameter.name


def _reordered(members: list[tuple[Parameter, int]], order: Sequence[Any]) -> list[tuple[Parameter, int]]:
    """Parameters with their groups in another order."""
    group_of = {id(parameter): number for parameter, number in members}
    if sorted(map(id, order)) != sorted(group_of):
        message = (
            f"order_params must name every Parameter of the groups once, but it has {len(order)} entries for "
            f"{len(members)} Parameters."
        )
        raise ArgumentError(message)
    return [(parameter, group_of[id(parameter)]) for parameter in order]
