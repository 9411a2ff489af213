"""`custom_gradient`: a function that says its own gradient, as TensorFlow's decorator of that name.

In: a function that returns its value and the function of its gradient. Out: a function that returns the value alone,
which carries the rule. Called by users. `custom_vjp` is nbgrad's own form of the same.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import optree

from ..errors import ArgumentError, DtypeError, ShapeError
from ..graph.builders import beside, cast
from ..graph.cotangents.shared_rules import SharedRule
from ..graph.ir import Node, by_serial, make, zeros
from ..record.as_node import as_node, wrap
from ..record.tensor import Tensor
from ..remembered.leaves import detached
from ..tensors.parameter import Parameter
from ..transforms.arguments import flatten, name_of, node_of
from ..transforms.lent_arrays import kind_of


def custom_gradient(f: Callable[..., Any] | None = None) -> Any:
    """A function with its own gradient.

    Parameters
    ----------
    f : callable
        Takes Tensors; returns `(value, grad_fn)`. `grad_fn` takes one cotangent for each array of the value, and gives
        one gradient for each argument, None where there is none. Where `f` uses trainable Parameters, `grad_fn` also
        gets their list as `variables`, and gives a pair: the gradients of the arguments, and a list of those of the
        Parameters. Left out, this gives a decorator.

    Returns
    -------
    callable
        Takes the arguments of `f`; gives the value.

    Raises
    ------
    DtypeError, ArgumentError
        If `f` does not return a pair of a value and a function, or uses Parameters that `grad_fn` does not take; when
        it is differentiated, if `grad_fn` does not give one gradient for each argument.
    ShapeError
        If a gradient does not have the shape of its argument.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> @nb.custom_gradient
    ... def log1pexp(x):
    ...     e = np.exp(x)
    ...     return np.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))
    >>> x = nb.tensor(100.0, requires_grad=True)
    >>> log1pexp(x).backward()
    >>> print(x.grad)
    1.0
    """
    if f is None:
        return custom_gradient

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        arguments = [one for one in flatten(args)[0] if isinstance(one, Tensor)]
        returned = f(*args, **kwargs)
        if not isinstance(returned, tuple) or len(returned) != 2 or not callable(returned[1]):
            message = f"{name_of(f)}() must return a pair: its value, and the function of its gradient."
            raise DtypeError(message)
        value, gradient = returned
        leaves, treespec = flatten(value)
        nodes = [one._node for one in arguments]
        used = _parameters_in([one._node for one in leaves if isinstance(one, Tensor)], nodes)
        if used and not _takes_variables(gradient):
            message = (
                f"{name_of(f)}() uses the Parameter {next(iter(used)).name!r}, so its grad_fn must accept a "
                "'variables' keyword argument, and return the gradients of these, too."
            )
            raise DtypeError(message)
        rule = _Rule(gradient, name_of(f), flatten(args)[0], list(used))
        nodes += used.values()
        if not any(node.traced for node in nodes):
            return value
        outputs = [None if kind_of(one) == "other" else detached(node_of(one)) for one in leaves]
        rule.outputs = [node for node in outputs if node is not None]
        made: list[Any] = []
        for leaf, node in zip(leaves, outputs, strict=True):
            if node is None or node.dtype.kind not in "fc" or not isinstance(leaf, Tensor):
                made.append(leaf)
                continue
            position = next(k for k, one in enumerate(rule.outputs) if one is node)
            made.append(wrap(make("custom", (node, *nodes), (rule, position))))
        return optree.tree_unflatten(treespec, made)

    return wrapped


def _parameters_in(outputs: Sequence[Node], arguments: Sequence[Node]) -> dict[Parameter, Node]:
    """The trainable Parameters that outputs depend on other than through arguments, and the node of each."""
    used: dict[Parameter, Node] = {}
    for node in by_serial(outputs, frozenset(arguments)):
        owner = node.owner() if node.owner is not None and node.traced else None
        if isinstance(owner, Parameter) and owner.requires_grad and node.dtype.kind in "fc":
            used[owner] = node
    return used


def _takes_variables(gradient: Callable[..., Any]) -> bool:
    """Whether a function takes the keyword `variables`."""
    kinds = {name: one.kind for name, one in inspect.signature(gradient).parameters.items()}
    return "variables" in kinds or inspect.Parameter.VAR_KEYWORD in kinds.values()


class _Rule(SharedRule):
    """The rule of one call: runs the function of the gradient."""

    def __init__(
        self, gradient: Callable[..., Any], name: str, arguments: Sequence[Any], variables: Sequence[Parameter]
    ) -> None:
        self.gradient, self.name, self.arguments, self.variables = gradient, name, arguments, variables
        self.outputs: list[Node] = []

    def cotangents_together(self, given: Mapping[int, Node], node: Node) -> list[Node | None]:
        """The cotangents of the arguments."""
        sent = [
            wrap(given[k]) if k in given else Tensor._of(beside(zeros(one.shape, one.dtype), one))
            for k, one in enumerate(self.outputs)
        ]
        arguments: Sequence[Any] = self.arguments
        if self.variables:
            found, own = self.gradient(*sent, variables=list(self.variables))
        else:
            found, own = self.gradient(*sent), []
        listed = list(found) if isinstance(found, tuple | list) else [found]
        if len(listed) != len(arguments):
            # The `self` of a method, and other things that are no numbers.
            arguments = [one for one in arguments if kind_of(one) != "other"]
        if len(listed) != len(arguments) or len(own) != len(self.variables):
            of_parameters = f" and {len(self.variables)} of Parameters" if self.variables else ""
            message = (
                f"custom_gradient function expected to return {len(arguments)} gradients{of_parameters}, but returned "
                f"{len(listed) + len(own)} instead: give one for each argument of {self.name}()."
            )
            raise ArgumentError(message)
        listed, arguments = [*listed, *own], [*arguments, *self.variables]
        results: list[Node | None] = []
        for position, (one, argument) in enumerate(zip(listed, arguments, strict=True)):
            if not isinstance(argument, Tensor):
                continue
            like = node.inputs[1 + len(results)]
            if one is None or like.dtype.kind not in "fc":
                results.append(None)
                continue
            part = as_node(one)
            if part.shape != like.shape:
                message = (
                    f"The gradient of {self.name}() for argument {position} has shape {part.shape}, but the argument "
                    f"has shape {like.shape}."
                )
                raise ShapeError(message)
            results.append(cast(part, like.dtype))
        return results
