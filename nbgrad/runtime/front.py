"""The front end of programs: from a graph to fused kernels, whatever the target is.

In: output nodes, and the leaves that vary from call to call. Out: a `Front`: the kernels, and their leaves; also the
numbers that kernels read from memory. Called by cpu_program.py and device_turns.py; the plans then place every
array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..compiler.fuse import Fused, Special, fuse
from ..compiler.loops import Loop
from ..compiler.matrices.diagonal_choices import with_diagonals
from ..compiler.moved_operands import with_moved_operands
from ..compiler.operands_across import turned_first
from ..compiler.results_alone import with_results_alone
from ..compiler.row_scatter import add_by_rows
from ..compiler.unroll_axes import with_rows_combined
from ..graph.complex_storage import interleaved
from ..graph.ir import PRIMITIVES, Node, literal_value, on_host
from ..graph.loops.loop_rewrites import pruned
from ..graph.simplify import simplify
from .axis_orders import Order, in_memory_order

LITERAL = PRIMITIVES["literal"]


@dataclass
class Front:
    """A graph as kernels."""

    graph: list[Node]
    """The simplified graph."""
    fused: Fused
    results: list[Node]
    """The outputs before simplification, as arrays of real numbers; `graph`, where axes are put in other orders."""
    arguments: list[Node]
    """The leaves that vary from call to call, as arrays of real numbers, with their axes in the order of memory."""
    constants: list[Node]
    """Further leaves that kernels read."""


class Orders(NamedTuple):
    """Of each argument and each output, its axes in the order of memory, the slowest first; None for C order."""

    arguments: Sequence[Order | None]
    outputs: Sequence[Order | None]


def _of_pairs(order: Order | None, node: Node) -> Order | None:
    """An order for a node that may have got an axis of pairs, which stays the last one."""
    return order if order is None or len(order) == node.ndim else (*order, node.ndim - 1)


def front(
    outputs: Sequence[Node],
    arguments: Sequence[Node],
    *rewrites: Callable[[list[Node], Sequence[Node]], list[Node]],
    orders: Orders | None = None,
    copies: bool = True,
) -> Front:
    """Store complex numbers as pairs, simplify, follow the order of memory, and fuse.

    Parameters
    ----------
    outputs, arguments : sequences of nodes
        The results of the program, and the leaves that its calls give.
    *rewrites : callables
        Each makes of the simplified graph and the leaves another graph for the same values, or gives back the graph.
    orders : Orders, optional
        The orders of axes in memory; all arrays are in C order by default.
    copies : bool, optional
        Whether arrays that a loop would read across are turned first.
    """
    results, leaves = interleaved(outputs, arguments)
    graph = pruned(simplify(results))
    if orders is not None:
        wanted, known = (
            [_of_pairs(order, node) for order, node in zip(both, nodes, strict=True)]
            for both, nodes in ((orders.outputs, results), (orders.arguments, leaves))
        )
        turned, leaves = in_memory_order(graph, wanted, leaves, known)
        results = graph = pruned(simplify(turned))
    for rewrite in rewrites:
        better = rewrite(graph, leaves)
        if better is not graph:
            graph = pruned(simplify(better))
    graph = with_diagonals(with_moved_operands(with_rows_combined(with_results_alone(graph))))
    fused = turned_first(fuse(add_by_rows(graph))) if copies else fuse(graph)
    known = set(leaves)
    read = [n for step in fused.steps for n in step.reads]
    constants = [n for n in dict.fromkeys(read) if n.name in ("constant", "input") and n not in known]
    return Front(graph, fused, results, leaves, constants)


def literals_of(steps: Sequence[Loop | Special]) -> list[Node]:
    """The numbers that kernels read from memory."""
    read = [node for step in steps for node in step.reads if node.primitive is LITERAL]
    return list(dict.fromkeys(read))


def base_words(
    arguments: int, constants: Sequence[Node], literals: Sequence[Node], outputs: int, kept: list[Any]
) -> list[int]:
    """The addresses that a program's steps start from: those of constants and literals, 0 for what a call gives.

    They are of the arena, the arguments, the constants, the literals and the outputs; `kept` gets the arrays.
    """
    words = [0] * (1 + arguments)
    for node in constants:
        assert node.value is not None, node
        array = np.ascontiguousarray(on_host(node.value))
        kept.append(array)
        words.append(array.ctypes.data)
    pool = literal_pool(literals)
    kept.append(pool)
    return [*words, pool.ctypes.data, *[0] * outputs]


def literal_pool(literals: Sequence[Node]) -> np.ndarray:
    """The values of literals, eight bytes each."""
    pool = np.zeros(max(1, len(literals)), np.int64)
    for position, node in enumerate(literals):
        pool[position : position + 1].view(node.dtype)[:1] = literal_value(node)
    return pool
