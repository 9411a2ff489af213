"""The base of optimizers with groups of options, as MindSpore's `experimental.optim` and PyTorch have them.

In: Parameters, or groups of them as dicts, and the defaults of all options. Out: an optimizer whose `param_groups` can
be read and changed between steps. Called by users; torch_optimizers.py has the formulas, and rate_schedulers.py changes
the learning rates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import ArgumentError, CellError
from ...record.tensor import Tensor
from ...tensors.parameter import Parameter
from .. import optimizer as plain


class Group(dict[str, Any]):
    """The options of a group: a new learning rate or weight decay is the optimizer's, too, at its next step."""

    def __init__(self, optimizer: plain.Optimizer, number: int | None, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._optimizer = optimizer
        self._end = "" if number is None else f"_group_{number}"
        super().__setitem__("lr", getattr(optimizer, f"learning_rate{self._end}"))

    def __setitem__(self, name: str, value: Any) -> None:
        if name == "lr" and isinstance(self["lr"], Parameter):
            self["lr"].set_data(Tensor(value).astype(self["lr"].dtype))
            return
        if name == "weight_decay":
            setattr(self._optimizer, f"weight_decay{self._end}", float(value))
        super().__setitem__(name, value)
        options = getattr(self._optimizer, "_options", None)
        if options is not None and self._end:
            options[int(self._end.rpartition("_")[2])][name] = value


def groups_of(optimizer: plain.Optimizer) -> list[Group]:
    """The groups of an optimizer of `nbgrad.nn`, whose options are its learning rate and its weight decay."""
    own = optimizer.__dict__.get("param_groups")
    if own is not None:
        return own
    count = optimizer._group_count
    by_number: dict[str, list[Any]] = {}
    for name, parameter in zip(optimizer._rate_names, optimizer.parameters, strict=True):
        by_number.setdefault(name, []).append(parameter)
    found = []
    for name, members in by_number.items():
        number = int(name.rpartition("_")[2]) if name != "learning_rate" else None
        decay = getattr(optimizer, "weight_decay" if number is None else f"weight_decay_group_{number}", 0.0)
        found.append(Group(optimizer, number, {"params": members, "weight_decay": decay}))
    assert len(found) <= count
    optimizer.__dict__["param_groups"] = found  # asked for once: what is put into a group stays
    return found


class Optimizer(plain.Optimizer):
    """The base of optimizers with groups of options; subclasses define `construct`, or `update` as in `nn.Optimizer`.

    Parameters
    ----------
    params : iterable of Parameter, or of dict
        Groups are dicts with `params` and options that differ from the defaults.
    defaults : dict
        The options of all groups, among them `lr`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> from nbgrad.experimental import optim
    >>> class Plain(optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...
    ...     def construct(self, gradients):
    ...         for number, group in enumerate(self.param_groups):
    ...             start = self.group_start_id[number]
    ...             for k, weight in enumerate(group["params"]):
    ...                 nb.ops.assign(weight, weight - group["lr"] * gradients[start + k])
    >>> w = nb.Parameter(nb.Tensor([1.0, 2.0]), name="w")
    >>> optimizer = Plain([w], 0.5)
    >>> optimizer.param_groups[0]["lr"] = 0.25
    >>> _ = optimizer([nb.Tensor([4.0, 0.0])])
    >>> print(w.value())
    [0. 2.]
    """

    decays_all = True

    def __init__(self, params: Any, defaults: Mapping[str, Any]) -> None:
        listed = [params] if isinstance(params, Tensor) else list(params)
        groups = [dict(one) for one in listed] if any(isinstance(one, Mapping) for one in listed) else []
        self._start(groups or [{"params": listed}], defaults)

    def _start(self, groups: list[dict[str, Any]], defaults: Mapping[str, Any]) -> None:
        complete = [{**defaults, **group, "params": _members(group.get("params"))} for group in groups]
        first = complete[0].get("lr", 0.0)
        chosen = [
            {"params": one["params"], "lr": one.get("lr", first), "weight_decay": one.get("weight_decay", 0.0)}
            for one in complete
        ]
        super().__init__(first, chosen)
        self.defaults = dict(defaults)
        self.state = defaultdict(dict)
        self._options = [
            {name: value for name, value in one.items() if name not in ("params", "lr")} for one in complete
        ]
        self.param_groups = [Group(self, number, one) for number, one in enumerate(complete)]
        self.lrs = [group["lr"] for group in self.param_groups]
        starts = [0]
        for one in complete:
            starts.append(starts[-1] + len(one["params"]))
        self.group_start_id = starts
        self._number_of = tuple([number for number, one in enumerate(complete) for _ in one["params"]])

    def option(self, k: int, name: str) -> Any:
        """An option of weight number `k`, as its group has it now."""
        return self._options[self._number_of[k]][name]

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Train the Parameters of one more group, of optimizers whose formula is a `construct` of their own.

        Parameters
        ----------
        param_group : dict
            With `params`, and options that differ from the defaults.

        Raises
        ------
        CellError
            If the optimizer keeps a state for each weight: all groups are to be given when it is made.
        """
        if type(self).construct is plain.Optimizer.construct:
            message = f"{type(self).__name__} keeps a state for its weights: give all groups when it is made."
            raise CellError(message)
        before = [{**self._options[k], **dict(group)} for k, group in enumerate(self.param_groups)]
        self._start([*before, dict(param_group)], self.defaults)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            for name in sorted(set(group) - {"params"}):
                value = group[name]
                lines.append(f"    {name}: {value.value() if isinstance(value, Parameter) else value}")
        return "\n".join(lines) + "\n)"


def _members(params: Any) -> list[Any]:
    """The Parameters of a group as a list."""
    if params is None:
        message = "A group of Parameters is a dict with the key 'params'."
        raise ArgumentError(message)
    return [params] if isinstance(params, Tensor) or not isinstance(params, Iterable) else list(params)
