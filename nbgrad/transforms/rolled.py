"""Recordings in which Python's loops are loops again, before anything is derived from them or compiled.

In: the outputs of a recording, with the conditions that `jit` has noted. Out: the same nodes, rolled
(graph/loops/rolling.py), and the conditions of all turns of a loop as one. Called by the transforms and by `jit`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import NbgradError
from ..graph.builders import reduce
from ..graph.ir import Node
from ..graph.loops.scanned_parts import slice_under, stacked
from ..graph.trace import Trace
from ..record.tensor import Tensor
from .arguments import flatten

Guard = tuple[Node, np.ndarray]
Check = tuple[Node, str, type[NbgradError]]


def roll_up(trace: Trace, outputs: Iterable[Node], outside: Collection[Node]) -> None:
    """Roll the graph of all outputs of a recording, at its end; nodes in `outside` stay as they are."""
    if trace.window is not None:
        trace.window.finish([node for node in (*outputs, *trace.tokens) if node.inputs], outside)


def conditions_of(trace: Trace) -> list[Node]:
    """The nodes of the conditions that a recording has noted, which are wanted beside its outputs."""
    return [*[node for node, _ in trace.guards or ()], *[node for node, _, _ in trace.checks]]


def nodes_in(*trees: Any) -> list[Node]:
    """The nodes of all Tensors in containers."""
    return [leaf._node for leaf in flatten(trees)[0] if isinstance(leaf, Tensor)]


def joint_guards(guards: Sequence[Guard]) -> list[Guard]:
    """Guards in which those of the turns of a loop are one."""
    found: list[Guard] = []
    for whole, positions in _joint([node for node, _ in guards], [None] * len(guards)):
        values = [guards[k][1] for k in positions]
        found.append((whole, values[0] if whole is guards[positions[0]][0] else np.stack(values)))
    return found


def joint_checks(checks: Sequence[Check]) -> list[Check]:
    """Checks in which those of the turns of a loop are one."""
    found: list[Check] = []
    for whole, positions in _joint([node for node, _, _ in checks], [one[1:] for one in checks]):
        node, message, error = checks[positions[0]]
        found.append((node if whole is node else reduce("min", whole, range(whole.ndim)), message, error))
    return found


def _joint(nodes: Sequence[Node], kinds: Sequence[Any]) -> Iterator[tuple[Node, list[int]]]:
    """Nodes of one kind that are parts of one array, in one; with the positions of those that it stands for."""
    groups: dict[Any, list[int]] = {}
    for position, (node, kind) in enumerate(zip(nodes, kinds, strict=True)):
        part = slice_under(node)
        groups.setdefault((kind, node if part is None else part.inputs[0]), []).append(position)
    for positions in groups.values():
        while positions:
            whole, count = stacked([nodes[k] for k in positions])
            if whole is None:
                whole, count = nodes[positions[0]], 1
            yield whole, positions[:count]
            positions = positions[count:]
