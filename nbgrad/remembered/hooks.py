"""Changes of a remembered graph: hooks, functions that see a gradient where it passes and may give another, and stops.

In: outputs, and the nodes in their graph that have hooks, or through which nothing shall pass. Out: the same outputs
over a graph in which each of these nodes carries its hooks as a rule, or is stopped, so that one walk of `vjp` is
enough. Called by backward.py and by the tape.
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
        """The cotangent that goes on to the value."""
        del node
        return [seen_by(self.hooks, wrap(g))._node]


def hooked(hooks: Iterable[Hook]) -> Callable[[Node], Node]:
    """The function from a node to the node of the same value that carries hooks."""
    rule = _HookRule(hooks)
    return lambda node: make("custom", (node, node), (rule, 0))


def stopped(node: Node) -> Node:
    """The node of the same value through which no gradient passes."""
    return make("stop_gradient", (node,))


def replaced(
    nodes: Sequence[Node], changes: Mapping[Node, Callable[[Node], Node]]
) -> tuple[list[Node], dict[Node, Node]]:
    """The nodes over a graph in which others stand for some; and, for every node that is another one there, the node
    before its own change: its gradient is that after the hooks of a hooked one."""
    new: dict[Node, Node] = {}
    before: dict[Node, Node] = {}
    for node in topological(nodes):
        inputs = tuple([new.get(source, source) for source in node.inputs])
        own = node
        if any(one is not source for one, source in zip(inputs, node.inputs, strict=True)):
            own = new[node] = before[node] = with_inputs(node, inputs)
        if node in changes:
            before[node] = own
            new[node] = changes[node](own)
    return [new.get(node, node) for node in nodes], before


def restored(found: Sequence[Node | None], before: Mapping[Node, Node], outputs: Sequence[Node]) -> list[Node | None]:
    """Gradients over a graph that `replaced` has made, over the nodes that were there before: a later pass over them
    meets each hook once, at the node that has it.

    Parameters
    ----------
    found : sequence of Node or None
        The gradients.
    before : mapping
        As `replaced` gives it.
    outputs : sequence of Node
        The outputs over the changed graph.
    """
    old = {made: node for node, made in before.items()}
    for node in topological(outputs):
        if isinstance(node.params[0] if node.params else None, _HookRule):
            old[node] = old[node.inputs[0]]
    new: dict[Node, Node] = {}
    for node in topological([one for one in found if one is not None]):
        if node in old:
            new[node] = old[node]
            continue
        inputs = tuple([new[source] for source in node.inputs])
        same = all(one is source for one, source in zip(inputs, node.inputs, strict=True))
        new[node] = node if same else with_inputs(node, inputs)
    return [None if one is None else new[one] for one in found]
