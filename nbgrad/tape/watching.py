"""Values that are watched for the time of a block: Tensors, and trainable Parameters that are used there.

In: Tensors and Parameters. Out: the nodes that stand for them in the block, and those of what is computed there. Called
by gradient_tape.py and accumulated_tangents.py, which differentiate with respect to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from ..errors import ArgumentError
from ..graph.ir import Node, by_serial, next_serial
from ..process.modes import KEEPS, Mode, enter, mode
from ..record.shared_memory import Original, stand_in
from ..record.tensor import Tensor, node_slot
from ..remembered.hooks import replaced, stopped
from ..remembered.leaves import watched
from ..tensors.parameter import Parameter


class Watching:
    """The watched values of one block, which may be entered again after it was left.

    Parameters
    ----------
    every_parameter : bool
        Whether trainable Parameters are watched wherever they are used.
    """

    def __init__(self, every_parameter: bool) -> None:
        self.every_parameter = every_parameter
        self.tensors: dict[int, tuple[Tensor, Original, Node]] = {}
        """For each watched Tensor, by its id: itself, its value before, and the node that stands for it."""
        self.parameters: dict[Parameter, list[Node]] = {}
        """For each Parameter that was used: the leaves that stood for it, one for each of its values."""
        self.chosen: set[Parameter] = set()
        self.begins: list[float] = []
        self.ends: list[float] = []
        self._before: Mode | None = None

    # ----- The block -----

    @property
    def is_open(self) -> bool:
        """Whether the block goes on."""
        return self._before is not None

    def open(self) -> None:
        """Begin, or go on."""
        now = mode()
        self._before = enter(now.but(tapes=(*now.tapes, self)))
        self.begins.append(next_serial())
        for tensor, before, alias in self.tensors.values():
            if node_slot(tensor) is before.node:
                stand_in(tensor, alias)

    def close(self) -> None:
        """End: watched Tensors are as before."""
        now, before = mode(), self._before
        tapes = tuple([tape for tape in now.tapes if tape is not self])
        enter(before if before is not None and before.tapes == tapes else now.but(tapes=tapes))
        self._before = None
        self.ends.append(next_serial())
        for tensor, original, alias in self.tensors.values():
            if node_slot(tensor) is alias:
                original.restore(tensor)

    # ----- Watched values -----

    def watch(self, value: Any) -> None:
        """Watch a Tensor, or a Parameter.

        Raises
        ------
        ArgumentError
            For anything else.
        """
        if isinstance(value, Parameter):
            self.chosen.add(value)
        elif not isinstance(value, Tensor):
            message = f"Passed in object {value!r} of type {type(value).__name__!r}, not Tensor or Parameter."
            raise ArgumentError(message)
        elif value._node.dtype.kind in "fc" and id(value) not in self.tensors:
            alias = watched(value._node)
            self.tensors[id(value)] = value, stand_in(value, alias), alias

    def takes(self, parameter: Parameter) -> bool:
        """Whether uses of a Parameter are watched: of a trainable one, or of one that was asked for."""
        return (self.every_parameter and parameter.requires_grad) or parameter in self.chosen

    def note(self, parameter: Parameter, leaf: Node) -> None:
        """A Parameter is used, and a leaf stands for its value."""
        if self.takes(parameter):
            leaves = self.parameters.setdefault(parameter, [])
            if not leaves or leaves[-1] is not leaf:
                leaves.append(leaf)

    def watched_nodes(self) -> list[Node]:
        """All nodes that stand for watched values."""
        return [
            *[alias for _, _, alias in self.tensors.values()],
            *[n for one in self.parameters.values() for n in one],
        ]

    # ----- What was computed in the block -----

    def value_of(self, tensor: Tensor) -> Node:
        """The node of a Tensor as the block has seen it."""
        if isinstance(tensor, Parameter):
            if self.takes(tensor) and tensor not in self.parameters and tensor._node.dtype.kind in "fc":
                self.parameters[tensor] = [watched(tensor._node)]  # a target itself, without any operation
            leaves = self.parameters.get(tensor)
            return leaves[-1] if leaves else tensor._node
        found = self.tensors.get(id(tensor))
        return tensor._node if found is None or node_slot(tensor) is not found[1].node else found[2]

    def sources_of(self, tensor: Tensor) -> list[Node]:
        """The nodes that gradients with respect to a Tensor are those of; none if it is not watched."""
        if isinstance(tensor, Parameter):
            return self.parameters.get(tensor, [])
        found = self.tensors.get(id(tensor))
        if found is not None:
            return [found[2]]
        node = tensor._node
        own = set(self.watched_nodes())
        computed = node.traced & KEEPS and self._was_made_here(node) and not own.isdisjoint(by_serial([node]))
        return [node] if computed else []

    def _was_made_here(self, node: Node) -> bool:
        ends = [*self.ends, inf]
        return any(begin < node.serial < end for begin, end in zip(self.begins, ends, strict=False))

    def recorded(self, outputs: Sequence[Node]) -> tuple[Sequence[Node], Sequence[Node] | None]:
        """The outputs, in which nothing made outside of the block passes gradients; and all nodes that they need, if
        they are the same."""
        own = set(self.watched_nodes())
        order = by_serial(outputs)
        first, last = self.begins[0], inf if self.is_open else self.ends[-1]
        kept = [node for node in order if node.traced & KEEPS and node.inputs and node not in own]
        foreign = [node for node in kept if not first < node.serial < last]
        if len(self.begins) > 1:
            foreign = [node for node in kept if not self._was_made_here(node)]
        # What comes before the watched values is not theirs to differentiate.
        foreign = [node for node in foreign if not own.isdisjoint(by_serial([node]))]
        return (replaced(outputs, dict.fromkeys(foreign, stopped))[0], None) if foreign else (outputs, order)
