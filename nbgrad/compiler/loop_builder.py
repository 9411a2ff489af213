"""Collecting one loop: values, accesses and results in the order in which fuse.py asks for them.

In: nodes and the views through which they are read and written. Out: a `Loop` in normal form. Called by fuse.py, once
for each kernel. Equal values and equal accesses are collected once.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ..graph.builders import iota
from ..graph.ir import BOOL, PRIMITIVES, Node, literal, literal_value
from ..graph.shapes import MEMO, Shape, contiguous_strides
from .loops import Access, Loop, Reduction, Store, Value, normalise
from .views import View, whole_of

ANYWHERE = iota(1)
"""Stands for no array at all in accesses that only have ranges."""
TRUE = literal(True, BOOL)
LITERAL, IOTA = PRIMITIVES["literal"], PRIMITIVES["iota"]
SAME = frozenset([PRIMITIVES[name] for name in ("alias", "custom", "stop_gradient")])
"""Primitives whose value is their first input."""


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
        if node.primitive is IOTA:
            slot = -2 if node is ANYWHERE else -1
        else:
            slot = self.slots.setdefault(node, len(self.slots))
        access = Access(slot, view, node.dtype)
        return self.accesses.setdefault(access, len(self.accesses))

    def literal(self, node: Node) -> int:
        """The position of a literal value."""
        return self._known(Value("literal", node.dtype, literal=node.params[0]))

    def _known(self, value: Value) -> int:
        """The position of a value that needs no other, new or known."""
        position = self.known.get(value)
        if position is None:
            position = self.known[value] = len(self.values)
            self.values.append(value)
        return position

    def read(self, source: Node, view: View) -> int:
        """The position of a value read through a view."""
        if source.primitive is not LITERAL:
            operation = "iota" if source.primitive is IOTA else "load"
            return self._known(Value(operation, source.dtype, access=self.access(source, view)))
        if not view.is_masked and baked(source):
            return self.literal(source)
        # A padded truth is the question whether the point lies inside.
        inside = source.dtype == BOOL and bool(literal_value(source))
        position = self.access(ANYWHERE if inside else source, view)
        return self._known(Value("inside" if inside else "load", source.dtype, access=position))

    def apply(self, node: Node, operands: tuple[int, ...]) -> int:
        """The position of a primitive's value."""
        if node.primitive in SAME:
            return operands[0]
        self.values.append(Value(node.primitive.name, node.dtype, operands))
        return len(self.values) - 1

    def store(self, node: Node) -> None:
        """Store a node of this kernel in its own array."""
        self.store_at(node, self.value_of[node], whole_of(node.shape))

    def store_at(self, node: Node, value: int, view: View) -> None:
        """Store a value in a node's array through a view."""
        self.stores.append(Store(value, self.access(node, view)))
        self.targets.append(node)

    def reduce(self, node: Node, value: int) -> None:
        """Reduce a value into a node's array."""
        strides, axes = _reduction(node.inputs[0].shape, node.params[0])
        view = View(self.domain, strides, 0, (None,) * len(strides))
        self.reductions.append(Reduction(node.name, value, self.access(node, view), axes))
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


@lru_cache(MEMO)
def _reduction(shape: Shape, reduced: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """For each axis longer than 1: the stride in the result of a reduction over some axes, and whether it is one."""
    strides = list(contiguous_strides(tuple([n for axis, n in enumerate(shape) if axis not in reduced])))
    full: list[int] = []
    axes: list[bool] = []
    for axis, n in enumerate(shape):
        stride = 0 if axis in reduced else strides.pop(0)
        if n != 1:
            full.append(stride)
            axes.append(axis in reduced)
    return tuple(full), tuple(axes)


def baked(node: Node) -> bool:
    """Whether a literal is part of the kernel. Others are read from memory, so that equal kernels stay equal."""
    return _baked(node.params[0], node.dtype)


@lru_cache(MEMO)
def _baked(data: bytes, dtype: np.dtype[Any]) -> bool:
    value = np.frombuffer(data, dtype)[0].item()
    # An infinite one would be folded into the reduction of a maximum, which is then no vector loop.
    return math.isnan(value) or value in (-1, -0.5, 0, 0.5, 1, 2)
