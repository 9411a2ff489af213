"""`custom_jvp`: a function with its own forward rule.

In: a function and a rule for its tangents. Out: a function of the same values, whose derivatives follow the rule: in
forward mode the rule itself, in reverse mode its transpose, since it is linear in the tangents. Called by users.
`custom_vjp` is the form for reverse rules.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import optree

from ..errors import ArgumentError, ShapeError, TracedValueError
from ..graph.builders import cast
from ..graph.cotangents.shared_rules import SharedRule
from ..graph.differentiate import vjp
from ..graph.ir import Earlier, Node, make, next_serial, placeholder, topological, zeros
from ..graph.trace import current_trace, recording
from ..process.named_objects import NamedObject
from ..record.container_leaves import map_leaves
from ..record.tensor import Tensor
from .arguments import flatten, lift, name_of, node_of
from .custom import ARRAY, Part, as_tensor
from .lent_arrays import kind_of, lends
from .ruled_calls import (
    Arguments,
    Names,
    Numbers,
    checked_numbers,
    in_order,
    positions_of,
    read_from_outside,
    zeros_of,
)


class _TangentRule(SharedRule):
    """One call of a function with its own forward rule."""

    def __init__(self, rule: Callable[..., Any], name: str) -> None:
        self.rule = rule
        self.name = name
        self.argument_count = 0
        """The number of nodes that derivatives are asked by: those of the arguments, and what is read besides."""
        self.arguments = 0
        self.argument_tree: Any = None
        self.argument_leaves: list[Any] = []
        """The leaves of the arguments; `ARRAY` for those that are inputs of the node."""
        self.output_tree: Any = None
        self.outputs: list[tuple[tuple[int, ...], np.dtype[Any]] | None] = []
        """The shapes and dtypes of the leaves of the output; None for those that are no arrays."""

    def tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        """The tangent of one output."""
        found = self._tangents(node, tangents[1 : 1 + self.arguments])[node.params[1]]
        return zeros(node.shape, node.dtype) if found is None else found

    def cotangents_together(self, given: Mapping[int, Node], node: Node) -> list[Node | None]:
        """The cotangents of the arguments: the transpose of the rule."""
        start = next_serial()
        arguments = node.inputs[1 : 1 + self.arguments]
        stand_ins = [placeholder(one.shape, one.dtype) if one.dtype.kind in "fc" else None for one in arguments]
        moving = [one for one in stand_ins if one is not None]
        outer = current_trace()
        try:
            with recording(moving) as trace:  # so that what is recorded is differentiated, also in a backward pass
                if outer is not None:
                    trace.tokens = outer.tokens
                tangents = self._tangents(node, stand_ins)
        except TracedValueError as error:
            raise TracedValueError(self._not_linear("asks for the value of a tangent")) from error
        pairs = [(tangents[k], g) for k, g in given.items()]
        outputs, seeds = [t for t, _ in pairs if t is not None], [g for t, g in pairs if t is not None]
        found = dict(zip(moving, vjp(outputs, seeds, moving), strict=True))
        sent = [one for one in found.values() if one is not None]
        if not set(moving).isdisjoint(topological(sent, Earlier(start))):
            raise TracedValueError(self._not_linear("is not linear in the tangents"))
        results = [None if one is None else found[one] for one in stand_ins]
        besides = zeros_of(node.inputs[1 + self.arguments : 1 + self.argument_count])
        return [*results, *besides]

    def _not_linear(self, why: str) -> str:
        return (
            f"Reverse mode (grad, vjp, jacrev) transposes the forward rule of {self.name}(), which {why}. Write the "
            "tangents as sums of products with the given tangents, or use forward mode: nb.jvp, nb.jacfwd."
        )

    def _tangents(self, node: Node, tangents: Sequence[Node | None]) -> list[Node | None]:
        """The tangents of all leaves of the output, by the user's rule."""
        inputs = iter(zip(node.inputs[1:], tangents, strict=False))
        primals: list[Any] = []
        moves: list[Any] = []
        for leaf in self.argument_leaves:
            if leaf is not ARRAY:
                primals.append(leaf)
                moves.append(type(leaf)(0) if isinstance(leaf, int | float) else None)
                continue
            source, move = next(inputs)
            primals.append(Tensor._of(source))
            moves.append(Tensor._of(zeros(source.shape, source.dtype) if move is None else move))
        points: Any = optree.tree_unflatten(self.argument_tree, primals)
        vectors: Any = optree.tree_unflatten(self.argument_tree, moves)
        returned = self.rule(points, vectors)
        if not isinstance(returned, tuple) or len(returned) != 2:
            message = f"The forward rule of {self.name}() must return a pair (output, tangent)."
            raise ArgumentError(message)
        leaves, tree = flatten(returned[1])
        if len(leaves) == 1 and leaves[0] is None:
            return [None] * len(self.outputs)
        if tree != self.output_tree:
            message = (
                f"The forward rule of {self.name}() must return a tangent with the structure of the output, "
                f"{self.output_tree}, but has returned {tree}."
            )
            raise ArgumentError(message)
        return [self._checked(leaf, output) for leaf, output in zip(leaves, self.outputs, strict=True)]

    def _checked(self, leaf: Any, output: tuple[tuple[int, ...], np.dtype[Any]] | None) -> Node | None:
        if leaf is None or output is None or output[1].kind not in "fc" or kind_of(leaf) == "other":
            return None
        node, (shape, dtype) = node_of(leaf), output
        if node.shape != shape:
            message = (
                f"The forward rule of {self.name}() has returned a tangent of shape {node.shape} for an output of "
                f"shape {shape}."
            )
            raise ShapeError(message)
        return cast(node, dtype)


class custom_jvp(NamedObject):  # noqa: N801  (used as a decorator, like a function)
    """A function with its own forward rule.

    Parameters
    ----------
    fn : callable
        The function.
    nondiff_argnums : int or tuple of int
        The positions of arguments that are not differentiated and may be anything, functions for instance. The rule
        gets them first: `rule(*nondiff, primals, tangents)`.
    nondiff_argnames : str or tuple of str
        The same by the names of parameters.

    Raises
    ------
    ArgumentError
        When a derivative is asked for by a value that the function reads from outside: the rule is about its arguments.
    ShapeError
        If a rule gives a tangent whose shape is not that of the output.
    TracedValueError
        In reverse mode, for a rule that is not linear in the tangents.

    Notes
    -----
    Reverse mode transposes the rule, so one rule serves all transforms. The value is always that of the function; the
    one that a rule returns beside the tangent is not used, and derivatives of any order follow the rule. In JAX,
    derivatives of derivatives take the slope of the value that the rule returns.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> @nb.custom_jvp
    ... def log1pexp(x):
    ...     return np.log(1.0 + np.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (x_dot,) = primals, tangents
    ...     return log1pexp(x), (1 - 1 / (1 + np.exp(x))) * x_dot
    >>> nb.grad(log1pexp)(100.0)
    np.float64(1.0)
    """

    def __init__(self, fn: Callable[..., Any], nondiff_argnums: Numbers = (), nondiff_argnames: Names = ()) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.nondiff = checked_numbers(nondiff_argnums), nondiff_argnames
        self.jvp: Part | None = None
        self._body = Part(fn, f"The function {name_of(fn)}()")

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Give the rule for the tangents of all arguments together.

        Parameters
        ----------
        jvp : callable
            `jvp(primals, tangents)` gets two tuples, with one entry for each argument that is differentiated, and
            gives `(output, tangent)`. Tangents of what does not change are zeros.
        symbolic_zeros : bool
            JAX's option to mark such zeros; only False is possible, since they are dropped here by themselves.

        Returns
        -------
        callable
            The rule, so that this can be a decorator.
        """
        if symbolic_zeros:
            message = (
                "symbolic_zeros is not supported: tangents that are zero are arrays of zeros, and what is multiplied "
                "by them is dropped when the derivative is compiled. Leave the option out."
            )
            raise ArgumentError(message)
        self.jvp = Part(jvp, f"The forward rule of {name_of(self.fn)}()")
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Give one rule for each argument; the tangent of the output is the sum of what they give.

        Parameters
        ----------
        *jvps : callable or None
            `jvp(tangent, output, *primals)` gives the tangent by one argument; None where it is zero.
        """
        if any(self.nondiff):
            message = "defjvps has no place for arguments that are not differentiated: use defjvp with nondiff_argnums."
            raise ArgumentError(message)

        def summed(primals: Any, tangents: Any) -> Any:
            if len(jvps) != len(primals):
                message = (
                    f"{name_of(self.fn)}() was called with {len(primals)} arguments, but defjvps has got {len(jvps)} "
                    "rules. Give one for each, None where the tangent is zero."
                )
                raise ArgumentError(message)
            output = self(*primals)
            parts = [rule(t, output, *primals) for rule, t in zip(jvps, tangents, strict=True) if rule is not None]
            if not parts:
                return output, None
            leaves, trees = zip(*map(flatten, parts), strict=True)
            return output, optree.tree_unflatten(trees[0], [sum(one[1:], one[0]) for one in zip(*leaves, strict=True)])

        self.defjvp(summed)

    def with_functions(self, change: Callable[[Any], Any]) -> custom_jvp:
        """A copy with a changed function and rule."""
        new = copy(self)
        new.fn, new._body = change(self.fn), self._body.changed(change)
        new.jvp = None if self.jvp is None else self.jvp.changed(change)
        return new

    @lends
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; the recorded nodes carry the rule."""
        args = in_order(self.fn, args, kwargs, -1)
        nondiff = positions_of(self.fn, *self.nondiff, len(args)) if any(self.nondiff) else ()
        if not any(isinstance(leaf, Tensor) for leaf in flatten(args)[0]):
            return self.fn(*args)
        name = name_of(self.fn)
        if self.jvp is None:
            message = f"{name}() has no forward rule yet: call {name}.defjvp(rule)."
            raise ArgumentError(message)
        own = Arguments()
        lifted: list[Any] = [
            one if k in nondiff else map_leaves(lambda leaf: own.one(as_tensor(leaf)), lift(one))
            for k, one in enumerate(args)
        ]
        leaves, tree = flatten(tuple([one for k, one in enumerate(lifted) if k not in nondiff]))
        arguments = [leaf._node for leaf in leaves if isinstance(leaf, Tensor)]
        start = next_serial()
        output = self._body(*lifted)
        own.write_back()
        rule = _TangentRule(functools.partial(self.jvp, *[args[k] for k in nondiff]) if nondiff else self.jvp, name)
        rule.argument_tree = tree
        rule.argument_leaves = [ARRAY if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        output_leaves, rule.output_tree = flatten(output)
        output_leaves = [leaf if kind_of(leaf) == "other" else as_tensor(leaf) for leaf in output_leaves]
        nodes = [leaf._node if isinstance(leaf, Tensor) else None for leaf in output_leaves]
        rule.outputs = [None if node is None else (node.shape, node.dtype) for node in nodes]
        besides = read_from_outside([node for node in nodes if node is not None], arguments, start, name)
        rule.arguments, rule.argument_count = len(arguments), len(arguments) + len(besides)
        inputs = (*arguments, *besides)
        wrapped = [
            leaf if node is None else Tensor._of(make("custom", (node, *inputs), (rule, position)))
            for position, (leaf, node) in enumerate(zip(output_leaves, nodes, strict=True))
        ]
        return optree.tree_unflatten(rule.output_tree, wrapped)
