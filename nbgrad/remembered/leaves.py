"""Differentiable leaves, and what a Tensor knows of its gradient.

In: Tensors. Out: leaves, whose nodes carry the bit that everything made of them inherits; `Memory`, the gradient and
the hooks of a Tensor. Called by Tensor's methods, by writes to Tensors, and by both doors.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ..errors import AutogradError
from ..graph.ir import PRIMITIVES, Node, make
from ..graph.trace import current_trace, depends_on_recording
from ..process.modes import KEEPS, REMEMBERS, TRACED, WATCHED, leaves_made, mode, within
from ..record.tensor import Tensor, node_slot
from ..runtime.evaluate import computed, finish_pending

_CONSTANT = PRIMITIVES["constant"]


class Memory:
    """The gradient of a Tensor, its hooks in the order of their registration, and whether it retains its gradient."""

    __slots__ = ("after", "grad", "hooks", "retains")

    def __init__(self) -> None:
        self.grad: Tensor | None = None
        self.hooks: dict[int, Callable[[Tensor], Any]] = {}
        self.after: dict[int, Callable[[Tensor], Any]] = {}
        """Hooks that get the Tensor after its gradient was accumulated."""
        self.retains = False

    def of_next_value(self) -> Memory:
        """The Memory of a Tensor after a write in place: hooks stay with the value that they were registered on."""
        made = Memory()
        made.grad, made.retains, self.retains = self.grad, self.retains, False
        return made


NOTED: weakref.WeakKeyDictionary[Node, tuple[Memory, weakref.ref[Tensor]]] = weakref.WeakKeyDictionary()
"""Nodes that are no leaves but have hooks or retain their gradients."""


def memory_of(tensor: Tensor) -> Memory:
    """The Memory of a Tensor, made when it is first needed."""
    memory = getattr(tensor, "_memory", None)
    if memory is None:
        memory = tensor._memory = Memory()
    return memory


def forgetting() -> AbstractContextManager[None]:
    """A block in which operations do not remember; functions that are recorded in it are differentiated as ever."""
    return within(remembers=False, recording=current_trace())


def remembers(node: Node) -> bool:
    """Whether a value depends on a differentiable leaf, differentiably as far as its dtype says."""
    return bool(node.traced & REMEMBERS) and node.dtype.kind in "fc"


def is_leaf(node: Node) -> bool:
    """Whether a value is a differentiable leaf itself."""
    return bool(node.traced & REMEMBERS) and node.owner is not None


def leaf_of(tensor: Tensor, node: Node, bit: int = REMEMBERS) -> Node:
    """A leaf with the value of a node, whose gradient is a Tensor's."""
    leaves_made[:] = [None]
    if current_trace() is not None and depends_on_recording(node):
        leaf = make("alias", (node,))
    else:
        leaf = Node(_CONSTANT, (), (), node.shape, node.dtype, computed(node))
        leaf.place, leaf.layout, leaf.tensor = node.place, node.layout, node.tensor
    leaf.traced |= bit
    leaf.owner = weakref.ref(tensor)
    return leaf


def become_leaf(tensor: Tensor) -> None:
    """Make a Tensor a differentiable leaf, unless it remembers already.

    Raises
    ------
    AutogradError
        For a Tensor of integers or booleans.
    """
    if tensor._node.dtype.kind not in "fc":
        message = "only Tensors of floating point and complex dtype can require gradients"
        raise AutogradError(message)
    if not remembers(tensor._node):
        tensor._node = leaf_of(tensor, tensor._node)


def detached(node: Node) -> Node:
    """The value of a node, which does not remember."""
    if node.dtype.kind not in "fc" or not node.traced & KEEPS:
        return node
    if node.value is not None and not node.traced & TRACED:
        constant = Node(_CONSTANT, (), (), node.shape, node.dtype, node.value)
        constant.place, constant.layout, constant.tensor = node.place, node.layout, node.tensor
        return constant
    cut = make("stop_gradient", (node,))
    cut.traced &= TRACED
    return cut


def watched(node: Node) -> Node:
    """A node of the same value, such that everything made of it keeps how."""
    leaves_made[:] = [None]
    alias = make("alias", (node,))
    alias.traced |= WATCHED
    alias.weak = node.weak
    return alias


def parameter_leaf(parameter: Any) -> Node:
    """The leaf in place of a trainable Parameter's value, the same one until it takes another value.

    While a function is compiled, it stands for the value at each call. Tapes that are recording note it.
    """
    now, trace = mode(), current_trace()
    bit = REMEMBERS if parameter._is_leaf(now) else WATCHED
    if trace is not None and trace.guards is not None:
        base = parameter._leaf
        known = getattr(parameter, "_leaf_inside", None)
        if known is None or known[0] is not trace.guards or known[1] is not base or not known[2].traced & bit:
            known = parameter._leaf_inside = trace.guards, base, leaf_of(parameter, base, bit)
    else:
        if parameter._node_outside().value is None:
            finish_pending()
        base = parameter._node_outside()
        known = getattr(parameter, "_leaf_outside", None)
        if known is None or known[1] is not base or not known[2].traced & bit:
            known = parameter._leaf_outside = None, base, leaf_of(parameter, base, bit)
    for tape in now.tapes:
        tape.note(parameter, known[2])
    return known[2]


def source_of(tensor: Any) -> Node:
    """The node that gradients with respect to a Tensor are those of; a Parameter's is the leaf of its value now."""
    trace = current_trace()
    if trace is not None and trace.guards is not None:
        known = getattr(tensor, "_leaf_inside", None)
        return known[2] if known is not None and known[0] is trace.guards and known[1] is tensor._leaf else tensor._node
    known = getattr(tensor, "_leaf_outside", None)
    return known[2] if known is not None and known[1] is tensor._node_outside() else tensor._node


def check_write(tensor: Tensor) -> None:
    """Refuse to write to a differentiable leaf, or to a view of one, while values are remembered.

    Raises
    ------
    AutogradError
        In PyTorch's words.
    """
    if not mode().remembers:
        return
    owner, kind = tensor, "leaf"
    while hasattr(owner, "_base"):
        owner, kind = owner._base[0], "view of a leaf"
    if hasattr(owner, "_held") and not owner._is_leaf(mode()):  # pyright: ignore[reportAttributeAccessIssue]
        return  # a Parameter, which tapes watch with all the values that it has
    node = owner._node
    if is_leaf(node) and node.owner is not None and node.owner() is owner:
        message = (
            f"a {kind} Variable that requires grad is being used in an in-place operation. Write to a copy, "
            "x.clone(), or within nb.no_grad()."
        )
        raise AutogradError(message)


class _Passing:
    """The derivative of a value written while nothing is remembered: gradients go on to the value before, as if nothing
    had been written."""

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """The cotangent of the value before."""
        del node
        return [g]


_PASSING = _Passing()


def written(tensor: Tensor, node: Node) -> Node:
    """The node of a Tensor that a node is written to: a leaf stays one, with another value; while nothing is
    remembered, a computed value stays a computed one."""
    before, now = node_slot(tensor), mode()
    if before.dtype.kind not in "fc" or remembers(node):
        return node
    if is_leaf(before) and before.owner is not None and before.owner() is tensor:
        return leaf_of(tensor, node)
    if now.remembers or before.name == "stop_gradient":
        return node
    if not remembers(before) and now.recording is not current_trace():
        return node
    if before.params and before.params[0] is _PASSING:
        before = before.inputs[1]
    return make("custom", (node, before), (_PASSING, 0))
