"""Operands across: arrays that a loop would read against the order of memory are turned by a loop of their own first.

In: fused kernels. Out: the same, in which a loop that reads an array far apart along its innermost axis, though the
elements are side by side along another one, reads a copy in its own order. Called by front.py, for the CPU. A map of
few instructions turns them in tiles by itself (tiles.py). For all others the copy, which is such a map, costs a third
of what reading across does.
"""

from __future__ import annotations

import math

from ..graph.ir import PRIMITIVES, Node
from ..graph.shapes import contiguous_strides
from .fuse import Fused, Special
from .loop_builder import LoopBuilder
from .loops import TILE, WALKS, Access, Loop, normalise, tiles_take
from .views import View, whole_of

LEAST = 1 << 10
"""Elements of an array that is worth a loop of its own."""
Copies = dict[tuple[Node, View], Node]


def turned_first(fused: Fused) -> Fused:
    """The kernels, with the copies that they need before them."""
    steps: list[Loop | Special] = []
    copies: Copies = {}
    for step in fused.steps:
        if isinstance(step, Loop) and len(step.shape) > 1 and not step.turned:
            across = [position for position in range(len(step.accesses)) if _is_across(step, position)]
            steps.append(_reading_copies(step, across, copies, steps) if across else step)
        else:
            steps.append(step)
    return Fused(steps, fused.outputs, fused.reasons)


def _is_across(loop: Loop, position: int) -> bool:
    """Whether a loop reads an array across that a copy can turn."""
    buffer, view, dtype = loop.accesses[position]
    if buffer < 0 or position in loop.gathered or loop.buffers[buffer] in loop.targets or view.is_masked:
        return False
    if view.strides[-1] in WALKS or loop.shape[-1] < TILE or not tiles_take(dtype):
        return False
    if not any(s == 1 and n >= TILE for s, n in zip(view.strides[:-1], loop.shape, strict=False)):
        return False
    return math.prod([n for s, n in zip(view.strides, loop.shape, strict=True) if s]) >= LEAST


def _reading_copies(loop: Loop, across: list[int], copies: Copies, steps: list[Loop | Special]) -> Loop:
    """A loop that reads copies of some arrays; loops that make new copies go to the end of `steps`."""
    nodes = [loop.buffers[a.buffer] if a.buffer >= 0 else None for a in loop.accesses]
    views = [a.view for a in loop.accesses]
    for position in across:
        source, view = nodes[position], views[position]
        assert source is not None
        axes = [axis for axis, stride in enumerate(view.strides) if stride]
        shape = tuple([loop.shape[axis] for axis in axes])
        read = View.strided(shape, tuple([view.strides[axis] for axis in axes]), view.offset)
        copy = copies.get((source, read))
        if copy is None:
            copy = copies[source, read] = Node(PRIMITIVES["alias"], (source,), (), shape, source.dtype)
            builder = LoopBuilder(shape)
            builder.store_at(copy, builder.read(source, read), whole_of(shape))
            steps.append(builder.finish())
        strides = [0] * len(view.strides)
        for axis, stride in zip(axes, contiguous_strides(shape), strict=True):
            strides[axis] = stride
        nodes[position], views[position] = copy, View.strided(loop.shape, tuple(strides))
    buffers = list(dict.fromkeys([node for node in nodes if node is not None]))
    accesses = [
        Access(a.buffer if node is None else buffers.index(node), view, a.dtype)
        for a, node, view in zip(loop.accesses, nodes, views, strict=True)
    ]
    changed = Loop(loop.shape, loop.values, tuple(accesses), loop.stores, loop.reductions, tuple(buffers), loop.targets)
    return normalise(changed)
