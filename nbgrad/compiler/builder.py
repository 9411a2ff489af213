"""Collecting one loop: values, accesses and results in the order in which fuse.py asks for them.

In: nodes and the views through which they are read and written. Out: a `Loop` in normal form. Called by fuse.py, once
for each kernel. Equal values and equal accesses are collected once.
"""

from __future__ import annotations

import numpy as np

from ..graph.ir import BOOL, Node, Shape, literal, literal_value
from ..graph.primitives import iota
from .loops import Access, Loop, Reduction, Store, Value, normalise
from .views import View, contiguous_strides

ANYWHERE = iota(1)
"""Stands for no array at all in accesses that only have ranges."""
TRUE = literal(True, BOOL)


class LoopBuilder:
    """Collects the values, accesses and results of one loop."""

    def __init__(self, domain: Shape) -> None:
        self.domain = domain
        self.values: list[Value] = []
        self.value_of: dict[Node, int] = {}
        self.accesses: dict[Access, int] = {}
        self.slots: dict[Node, int] = {}
        self.targets: list[Node] = []
        self.stores: list[Store] = []
        self.reductions: list[Reduction] = []
        self.known: dict[object, int] = {}

    def access(self, node: Node, view: View) -> int:
        """The position of an access, new or known."""
        if node.name == "iota":
            slot = -2 if node is ANYWHERE else -1
        else:
            slot = self.slots.setdefault(node, len(self.slots))
        access = Access(slot, view, node.dtype)
        return self.accesses.setdefault(access, len(self.accesses))

    def literal(self, node: Node) -> int:
        """The position of a literal value."""
        key = ("literal", node.params[0], node.dtype)
        if key not in self.known:
            self.values.append(Value("literal", node.dtype, literal=node.params[0]))
            self.known[key] = len(self.values) - 1
        return self.known[key]

    def read(self, source: Node, view: View) -> int:
        """The position of a value read through a view."""
        if source.name == "literal" and not view.is_masked and baked(source):
            return self.literal(source)
        # A padded truth is the question whether the point lies inside.
        inside = source.name == "literal" and source.dtype == BOOL and bool(literal_value(source))
        position = self.access(ANYWHERE if inside else source, view)
        if position not in self.known:
            operation = "inside" if inside else "iota" if source.name == "iota" else "load"
            self.values.append(Value(operation, source.dtype, access=position))
            self.known[position] = len(self.values) - 1
        return self.known[position]

    def apply(self, node: Node, operands: tuple[int, ...]) -> int:
        """The position of a primitive's value."""
        if node.name in ("alias", "custom", "stop_gradient"):
            return operands[0]
        self.values.append(Value(node.name, node.dtype, operands))
        return len(self.values) - 1

    def store(self, node: Node) -> None:
        """Store a node of this kernel in its own array."""
        view = View.contiguous(node.shape).squeeze()
        assert view is not None
        self.store_at(node, self.value_of[node], view)

    def store_at(self, node: Node, value: int, view: View) -> None:
        """Store a value in a node's array through a view."""
        self.stores.append(Store(value, self.access(node, view)))
        self.targets.append(node)

    def reduce(self, node: Node, value: int) -> None:
        """Reduce a value into a node's array."""
        source = node.inputs[0]
        strides = list(contiguous_strides(node.shape))
        full: list[int] = []
        axes: list[bool] = []
        for axis, n in enumerate(source.shape):
            reduced = axis in node.params[0]
            stride = 0 if reduced else strides.pop(0)
            if n != 1:
                full.append(stride)
                axes.append(reduced)
        view = View(self.domain, tuple(full), 0, (None,) * len(full))
        self.reductions.append(Reduction(node.name, value, self.access(node, view), tuple(axes)))
        self.targets.append(node)

    def finish(self) -> Loop:
        """The loop in normal form."""
        return normalise(
            Loop(
                self.domain,
                tuple(self.values),
                tuple(self.accesses),
                tuple(self.stores),
                tuple(self.reductions),
                tuple(self.slots),
                tuple(self.targets),
            )
        )


def baked(node: Node) -> bool:
    """Whether a literal is part of the kernel. Others are read from memory, so that equal kernels stay equal."""
    value = literal_value(node)
    return not np.isfinite(value) or value in (-1, -0.5, 0, 0.5, 1, 2)
