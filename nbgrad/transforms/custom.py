"""Derivatives that users control: `stop_gradient` and `custom_vjp`.

In: values, or a function with its own reverse rule. Out: the same values, differentiated as asked. A custom rule holds
in both modes (forward mode is its transpose) and may itself be differentiated. Called by users.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from copy import copy
from typing import Any

import numpy as np
import optree

from ..errors import ArgumentError, NbgradError, ShapeError, TracedValueError
from ..graph.builders import cast
from ..graph.cotangents.shared_rules import SharedRule
from ..graph.ir import Node, make, next_serial, zeros
from ..graph.trace import forget_refusal
from ..process.modes import TRACED
from ..process.named_objects import NamedObject
from ..record.container_leaves import map_leaves
from ..record.tensor import Tensor
from ..tensors.remembering_methods import RECORDED_HOOKS
from .arguments import flatten, lift, name_of, node_of
from .lent_arrays import kind_of, lends
from .ruled_calls import (
    Arguments,
    Names,
    Numbers,
    checked_numbers,
    in_order,
    parameter_count,
    positions_of,
    read_from_outside,
    zeros_of,
)


def stop_gradient(value: Any) -> Any:
    """The value itself, treated as a constant by every derivative.

    Parameters
    ----------
    value : anything
        Tensors in tuples, lists and dicts are found; other values are returned as they are.

    Returns
    -------
    as `value`

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.grad(lambda x: x * nb.stop_gradient(x))(3.0)
    np.float64(3.0)
    """

    def leaf(item: Any) -> Any:
        if not isinstance(item, Tensor):
            return item
        node = make("stop_gradient", (item._node,))
        node.traced &= TRACED
        return Tensor._of(node)

    return map_leaves(leaf, value)


class _Rule(SharedRule):
    """One call of a function with its own rule, with all that running the rule later needs."""

    def __init__(self, backward: Callable[..., Any], name: str) -> None:
        self.backward = backward
        self.name = name
        self.argument_count = 0
        """The number of nodes that it gives cotangents of: those of the arguments, and what is read besides."""
        self.arguments = 0
        self.arrays: list[bool] = []
        """Whether each leaf of the arguments is an array."""
        self.leaf_counts: list[int] = []
        """The number of leaves of each argument."""
        self.residual_tree: Any = None
        self.residual_leaves: list[Any] = []
        self.output_tree: Any = None
        self.outputs: list[tuple[tuple[int, ...], np.dtype[Any]] | None] = []

    def cotangents_together(self, given: Mapping[int, Node], node: Node) -> list[Node | None]:
        """The cotangents of the arguments, and None for the residuals."""
        residual_nodes = iter(node.inputs[1 + self.argument_count :])
        leaves = [Tensor._of(next(residual_nodes)) if leaf is ARRAY else leaf for leaf in self.residual_leaves]
        residuals = optree.tree_unflatten(self.residual_tree, leaves)
        sent = [
            None if kind is None else Tensor._of(given[k] if k in given else zeros(*kind))
            for k, kind in enumerate(self.outputs)
        ]
        found = self.backward(residuals, optree.tree_unflatten(self.output_tree, sent))
        results = self._checked(found, node.inputs[1 : 1 + self.arguments])
        besides = zeros_of(node.inputs[1 + self.arguments : 1 + self.argument_count])
        return [*results, *besides, *[None] * (len(node.inputs) - 1 - self.argument_count)]

    def _checked(self, found: Any, arguments: tuple[Node, ...]) -> list[Node | None]:
        parts = found if isinstance(found, tuple) else (found,)
        if len(parts) == len(self.leaf_counts):  # None says it of a whole container
            pairs = zip(parts, self.leaf_counts, strict=True)
            parts = tuple([[None] * count if part is None else part for part, count in pairs])
        leaves = flatten(parts)[0]
        if len(leaves) == len(self.arrays):
            leaves = [leaf for leaf, is_one in zip(leaves, self.arrays, strict=True) if is_one]
        if len(leaves) != len(arguments):
            message = (
                f"The reverse rule of {self.name}() must return one gradient per array argument, {len(arguments)} in "
                f"all, but returned {len(leaves)}. Return None for arguments without a gradient."
            )
            raise ArgumentError(message)
        results: list[Node | None] = []
        for position, (leaf, argument) in enumerate(zip(leaves, arguments, strict=True)):
            if leaf is None or argument.dtype.kind not in "fc":
                results.append(None)
                continue
            part = node_of(leaf)
            if part.shape != argument.shape:
                message = (
                    f"The reverse rule of {self.name}() returned a gradient of shape {part.shape} for argument "
                    f"{position}, which has shape {argument.shape}."
                )
                raise ShapeError(message)
            results.append(cast(part, argument.dtype))
        return results


ARRAY = object()
"""In place of a leaf of a rule's values: the next input of its node."""


class Part:
    """One part of a rule. It gets Tensors, or plain arrays if it fails on Tensors."""

    def __init__(self, function: Callable[..., Any], title: str) -> None:
        self.function, self.title = function, title
        self.on_host: Any = None

    def changed(self, change: Callable[[Any], Any]) -> Part:
        """A copy with a changed function."""
        return Part(change(self.function), self.title)

    def __call__(self, *args: Any) -> Any:
        if self.on_host is not None:
            return self.on_host(*args)
        try:
            return self.function(*args)
        except Exception as error:
            from .host_code import HostCode

            code = HostCode(self.function, self.title)
            try:
                result = code(*args)
            except Exception:
                if isinstance(error, NbgradError) and not isinstance(error, TracedValueError):
                    raise error from None
                raise
            self.on_host = code
            forget_refusal()
            return result


_forward_of: ContextVar[tuple[custom_vjp, ...]] = ContextVar("nbgrad_forward_of", default=())
"""The functions whose forward rules are running, innermost last."""


class custom_vjp(NamedObject):  # noqa: N801  (used as a decorator, like a function)
    """A function with its own reverse rule.

    Parameters
    ----------
    fn : callable
        The function.
    bprop : callable, optional
        MindSpore's form of a rule: `bprop(*inputs, out, dout)` gives one gradient per input. `defvjp` gives a rule
        in two parts instead.
    nondiff_argnums : int or tuple of int
        The positions of arguments that are not differentiated and may be anything, functions for instance. The
        reverse rule gets them first: `backward(*nondiff, residuals, g)`.
    nondiff_argnames : str or tuple of str
        The same by the names of parameters.

    Raises
    ------
    ArgumentError
        When a derivative is asked for by a value that the function reads from outside: the rule is about its arguments.

    Notes
    -----
    Rules get Tensors. One that needs plain arrays, because it calls SciPy or a simulator, just gets these, also in
    `jit` and `vmap`, where the compiled program calls it. Its results then have no derivative of their own: for
    second derivatives, the part of the rule that they go through must be written with functions that nbgrad records.

    The result has the slope that the rule says in derivatives of any order, as in PyTorch. In JAX, derivatives of
    derivatives take the slope of what the forward rule computes.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> @nb.custom_vjp
    ... def clipped(x):
    ...     return np.exp(x)
    >>> clipped.defvjp(lambda x: (np.exp(x), x), lambda x, g: (g * np.minimum(np.exp(x), 1.0),))
    >>> nb.grad(clipped)(2.0)
    np.float64(1.0)
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        bprop: Callable[..., Any] | None = None,
        nondiff_argnums: Numbers = (),
        nondiff_argnames: Names = (),
    ) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.nondiff = checked_numbers(nondiff_argnums), nondiff_argnames
        self.forward: Part | None = None
        self.backward: Part | None = None
        self._takers = 0
        """The number of parameters of the forward rule."""
        self._reads_parameters = bprop is not None
        """Whether it may read what is differentiated from outside: MindSpore's Cells do, and say nothing of it."""
        if bprop is not None:

            def forward(*args: Any) -> Any:
                out = fn(*args)
                return out, (args, out)

            def backward(residuals: Any, g: Any) -> Any:
                args, out = residuals
                return bprop(*args, out, g)

            self.defvjp(forward, backward)

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Give the rule.

        Parameters
        ----------
        forward : callable
            `forward(*args)` gives `(output, residuals)`. If it calls this function itself, that is without the rule.
        backward : callable
            `backward(residuals, g)` gives a tuple with one gradient per array argument, None where there is none.
        """
        name = name_of(self.fn)
        self._takers = 0 if self._reads_parameters else parameter_count(forward)
        self.forward = Part(forward, f"The forward rule of {name}()")
        self.backward = Part(backward, f"The reverse rule of {name}()")

    def with_functions(self, change: Callable[[Any], Any]) -> custom_vjp:
        """A copy with a changed function and rule."""
        new = copy(self)
        new.fn = change(self.fn)
        if self.forward is not None and self.backward is not None:
            new.forward, new.backward = self.forward.changed(change), self.backward.changed(change)
        return new

    @lends
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; the recorded nodes carry the rule."""
        if kwargs or not 0 <= self._takers <= len(args):
            args = in_order(self.fn, args, kwargs, self._takers)
        nondiff = positions_of(self.fn, *self.nondiff, len(args)) if any(self.nondiff) else ()
        leaves = flatten(args)[0]
        running = _forward_of.get()
        if self in running or not any(isinstance(leaf, Tensor) for leaf in leaves):
            return self.fn(*args)
        if self.forward is None or self.backward is None:
            name = name_of(self.fn)
            message = f"{name}() has no reverse rule yet: call {name}.defvjp(forward, backward)."
            raise ArgumentError(message)
        own = Arguments()
        take = as_tensor if self._reads_parameters else lambda leaf: own.one(as_tensor(leaf))
        lifted: list[Any] = [one if k in nondiff else map_leaves(take, lift(one)) for k, one in enumerate(args)]
        differentiated = [one for k, one in enumerate(lifted) if k not in nondiff]
        lifted_leaves = flatten(tuple(differentiated))[0]
        arguments = [leaf._node for leaf in lifted_leaves if isinstance(leaf, Tensor)]
        start = next_serial()
        token = _forward_of.set((*running, self))
        try:
            returned = self.forward(*lifted)
        finally:
            _forward_of.reset(token)
        own.write_back()
        if not isinstance(returned, tuple) or len(returned) != 2:
            message = f"The forward rule of {name_of(self.fn)}() must return a pair (output, residuals)."
            raise ArgumentError(message)
        output, residuals = returned
        backward = functools.partial(self.backward, *[args[k] for k in nondiff]) if nondiff else self.backward
        rule = _Rule(backward, name_of(self.fn))
        rule.arguments = rule.argument_count = len(arguments)
        rule.arrays = [isinstance(leaf, Tensor) for leaf in lifted_leaves]
        rule.leaf_counts = [len(flatten(one)[0]) for one in differentiated]
        residual_leaves, rule.residual_tree = flatten(residuals)
        residual_nodes = [leaf._node for leaf in residual_leaves if isinstance(leaf, Tensor)]
        rule.residual_leaves = [ARRAY if isinstance(leaf, Tensor) else leaf for leaf in residual_leaves]
        output_leaves, rule.output_tree = flatten(output)
        output_leaves = [leaf if kind_of(leaf) == "other" else as_tensor(leaf) for leaf in output_leaves]
        nodes = [leaf._node if isinstance(leaf, Tensor) else None for leaf in output_leaves]
        rule.outputs = [None if node is None else (node.shape, node.dtype) for node in nodes]
        besides: list[Node] = []
        if not self._reads_parameters:
            besides = read_from_outside([*filter(None, nodes), *residual_nodes], arguments, start, rule.name)
            rule.argument_count += len(besides)
        inputs = (*arguments, *besides, *residual_nodes)
        wrapped = [
            leaf if node is None else Tensor._of(make("custom", (node, *inputs), (rule, position)))
            for position, (leaf, node) in enumerate(zip(output_leaves, nodes, strict=True))
        ]
        return optree.tree_unflatten(rule.output_tree, wrapped)


def as_tensor(leaf: Any) -> Any:
    """Floats and arrays become Tensors too, so that a rule sees one kind of value."""
    return Tensor._of(node_of(leaf)) if kind_of(leaf) in ("float", "array") else leaf


def _hook_recorded(tensor: Tensor, seen: Callable[[Tensor], Tensor]) -> None:
    """Let a recorded Tensor become itself behind a rule, through which the cotangents of its later uses pass."""
    passed = custom_vjp(lambda x: x * 1, bprop=lambda x, out, cotangent: (seen(cotangent),))(tensor)
    tensor._node = passed._node


RECORDED_HOOKS.append(_hook_recorded)
