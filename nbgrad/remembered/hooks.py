"""Hooks on values: functions that see a gradient where it passes, and may put another in its place.

In: outputs, and the nodes in their graph that have hooks. Out: the same outputs over a graph in which each of these
nodes carries its hooks as a rule, so that one walk of `vjp` calls them. Called by backward.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..errors import AutogradError, DtypeError
from ..graph.ir import Node, make, topological, with_inputs
from ..record.as_node import wrap
from ..record.tensor import Tensor

Hook = Callable[[Tensor], Any]


def seen_by(hooks: Iterable[Hook], gradient: Tensor) -> Tensor:
    """A gradient after its hooks, each of which may give another one.

    Raises
    ------
    AutogradError, DtypeError
        If a hook gives something else than a Tensor, or one of another shape or dtype.
    """
    for hook in list(hooks):
        found = hook(gradient)
        if found is None:
            continue
        name = getattr(hook, "__name__", type(hook).__name__)
        if not isinstance(found, Tensor):
            message = f"expected Tensor, but hook {name!r} returned {type(found).__name__!r}"
            raise DtypeError(message)
        if found.shape != gradient.shape:
            message = f"hook {name!r} has changed the size of value (was {gradient.shape}, got {found.shape})"
            raise AutogradError(message)
        if found.dtype != gradient.dtype:
            message = f"hook {name!r} has changed the type of value (was {gradient.dtype}, got {found.dtype})"
            raise AutogradError(message)
        gradient = found
    return gradient


class _HookRule:
    """The derivative of a value with hooks: that of the value itself, as the hooks give it."""

    def __init__(self, hooks: Iterable[Hook]) -> None:
        self.hooks = list(hooks)

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """What goes on to the value."""
        del node
        return [seen_by(self.hooks, wrap(g))._node]


def with_rules(nodes: Sequence[Node], hooks: Mapping[Node, Iterable[Hook]]) -> tuple[list[Node], dict[Node, Node]]:
    """The nodes over a graph whose hooked nodes carry rules; and, for every node that changed, the one whose gradient
    is that after its hooks."""
    carrying: dict[Node, Node] = {}
    behind: dict[Node, Node] = {}
    for node in topological(nodes):
        inputs = tuple([carrying.get(source, source) for source in node.inputs])
        own = node
        if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            own = carrying[node] = behind[node] = with_inputs(node, inputs)
        if node in hooks:
            behind[node] = own
            carrying[node] = make("custom", (own, own), (_HookRule(hooks[node]), 0))
    return [carrying.get(node, node) for node in nodes], behind
