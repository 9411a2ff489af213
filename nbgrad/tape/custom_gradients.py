"""`custom_gradient`: a function that says its own gradient, as TensorFlow's decorator of that name.

In: a function that returns its value and the function of its gradient. Out: a function that returns the value alone,
which carries the rule. Called by users. `custom_vjp` is nbgrad's own form of the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import optree

from ..errors import ArgumentError, DtypeError, ShapeError
from ..graph.builders import beside, cast
from ..graph.ir import Node, make, zeros
from ..record.as_node import as_node, wrap
from ..record.tensor import Tensor
from ..remembered.leaves import detached
from ..transforms.arguments import flatten, name_of


def custom_gradient(f: Callable[..., Any] | None = None) -> Any:
    """A function with its own gradient.

    Parameters
    ----------
    f : callable
        Takes Tensors; returns `(value, grad_fn)`. `grad_fn` takes one cotangent for each Tensor of the value, and gives
        one gradient for each argument, None where there is none. Left out, this gives a decorator.

    Returns
    -------
    callable
        Takes the arguments of `f`; gives the value.

    Raises
    ------
    DtypeError, ArgumentError
        If `f` does not return a pair of a value and a function; when it is differentiated, if `grad_fn` does not give
        one gradient for each argument.
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
        rule = _Rule(gradient, name_of(f), flatten(args)[0])
        nodes = [one._node for one in arguments]
        if not any(node.traced for node in nodes):
            return value
        outputs = [detached(one._node) if isinstance(one, Tensor) else None for one in leaves]
        rule.outputs = [node for node in outputs if node is not None]
        made: list[Any] = []
        for leaf, node in zip(leaves, outputs, strict=True):
            if node is None or node.dtype.kind not in "fc":
                made.append(leaf)
                continue
            position = next(k for k, one in enumerate(rule.outputs) if one is node)
            made.append(wrap(make("custom", (node, *nodes), (rule, position))))
        return optree.tree_unflatten(treespec, made)

    return wrapped


class _Rule:
    """The rule of one call: runs the function of the gradient, for one output at a time."""

    def __init__(self, gradient: Callable[..., Any], name: str, arguments: Sequence[Any]) -> None:
        self.gradient, self.name, self.arguments = gradient, name, arguments
        self.outputs: list[Node] = []

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """The cotangents of the arguments, given that of one output."""
        given = [
            wrap(g) if k == node.params[1] else Tensor._of(beside(zeros(one.shape, one.dtype), one))
            for k, one in enumerate(self.outputs)
        ]
        found = self.gradient(*given)
        listed = list(found) if isinstance(found, tuple | list) else [found]
        if len(listed) != len(self.arguments):
            message = (
                f"custom_gradient function expected to return {len(self.arguments)} gradients, but returned "
                f"{len(listed)} instead: give one for each argument of {self.name}()."
            )
            raise ArgumentError(message)
        results: list[Node | None] = []
        for position, (one, argument) in enumerate(zip(listed, self.arguments, strict=True)):
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
