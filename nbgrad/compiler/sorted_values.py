"""Sorted elements without their positions: where only values are asked for, NumPy sorts or selects them.

In: a simplified graph, and its leaves that vary from call to call. Out: the same graph, or one in which `host` nodes,
or on devices "sort" nodes, stand for elements gathered by the positions that sort them. Called by cpu_program.py and
device_turns.py.

A function of the library nbgrad.functions sorts by `argsort` and a gather, so that it differentiates; a program that
needs no derivative does not need the positions either, and NumPy's sorts of numbers alone use the widest vectors of the
machine. Where few places of the sorted rows are read, as by a median, a selection does.

Positions are found by the same sorts where they are worth a call: special.py asks here which, and by what function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..graph.builders import argsort, take_last
from ..graph.host_functions import HostFunction
from ..graph.interpret import interpret
from ..graph.ir import PRIMITIVES, Node, Primitive, make, topological, with_inputs
from ..graph.simplify import simplify
from .cache import cpu_features

ARGSORT, GATHER, SLICE, RESHAPE, INPUT, CONSTANT = (
    PRIMITIVES[name] for name in "argsort gather slice reshape input constant".split()
)
FEWEST = 512
"""Elements from which on a call into Python costs less than it saves."""
LONGEST = 1 << 13
"""Elements of the longest row whose positions are not found faster by merging."""
SHARED = 1 << 18
"""Elements of several rows that threads share."""
MOST_PLACES = 8
"""Places of the sorted rows that one selection finds faster than a sort."""


def _sort(out: np.ndarray, x: np.ndarray) -> None:
    out[...] = x
    out.sort(axis=-1)


def _select(out: np.ndarray, x: np.ndarray, places: tuple[int, ...]) -> None:
    out[...] = x
    out.partition(places, axis=-1)


def sorts_by_values(node: Node) -> bool:
    """Whether positions are found by NumPy's sort of ranks with positions in their last bits, rather than by merging.

    It needs the vectors of AVX2 at least, and is done by one thread, where merging of many rows is done by all.
    """
    fits = node.primitive is ARGSORT and FEWEST <= node.size < SHARED and 1 < node.shape[-1] <= LONGEST
    return fits and "+avx2" in cpu_features()


def _same(inputs: Sequence[Node], params: Any) -> Any:
    return inputs[0].shape, inputs[0].dtype


SORTED = HostFunction("sort", _same, lambda x: np.sort(x, axis=-1), _sort)
SELECTED = HostFunction("partition", _same, lambda x, places: np.partition(x, places, axis=-1), _select)


SORTED_ROWS = Primitive(
    "sort",
    "special",
    _same,
    meaning=lambda x: np.take_along_axis(x, np.argsort(x, axis=-1, kind="stable"), -1),
)
"""Rows with their elements in the order of `argsort`, by a kernel of a device. Only compiled graphs hold it."""


def by_numpy(rows: Node, places: tuple[int, ...] | None) -> Node:
    """A `host` node for sorted rows, of which only `places` are read unless they are None."""
    asked = (SELECTED, places) if places else (SORTED,)
    # The last parameter has the layouts of operand and result, as complex_storage.py adds it.
    return make("host", (rows,), (*asked, ((rows.shape, rows.dtype),) * 2))


def without_positions(
    graph: list[Node],
    varying: Iterable[Node],
    instead: Callable[[Node, tuple[int, ...] | None], Node | None] = by_numpy,
) -> list[Node]:
    """The graph with sorted values in place of gathers by positions that nothing else reads.

    `instead` makes a node of rows and the few places of them that are read (None for all), or gives None.
    """
    nodes = topological(graph)
    if not any(node.primitive is ARGSORT for node in nodes):
        return graph
    readers: dict[Node, list[Node]] = {}
    for node in nodes:
        for source in node.inputs:
            readers.setdefault(source, []).append(node)
    results, leaves = set(graph), set(varying)
    replaced: dict[Node, Node] = {}
    for node in nodes:
        if node.primitive is not ARGSORT or node.size < FEWEST:
            continue
        rows = node.inputs[0]
        indices = [node] if node.ndim == 1 else readers.get(node, [])
        gathers = [reader for index in indices for reader in readers.get(index, ())]
        (expected,) = simplify([take_last(rows, argsort(rows))])
        if results.isdisjoint([node, *indices]) and all(_equal(found, expected, rows, leaves) for found in gathers):
            for found in gathers:
                better = instead(rows, None if found in results else _places(found, readers, leaves))
                if better is not None:
                    replaced[found] = better
    if not replaced:
        return graph
    made: dict[Node, Node] = {}
    for node in nodes:
        better = replaced.get(node)
        source = node if better is None else better
        inputs = tuple([made[part] for part in source.inputs])
        made[node] = source if inputs == source.inputs else with_inputs(source, inputs)
    return [made[node] for node in graph]


def sorted_on_device(graph: list[Node], varying: Iterable[Node], by_digits: Callable[[int, str], bool]) -> list[Node]:
    """The graph with sorted values where a device sorts rows of a length and a dtype `by_digits`."""

    def instead(rows: Node, places: tuple[int, ...] | None) -> Node | None:
        if not by_digits(rows.shape[-1], rows.dtype.name):
            return None
        return Node(SORTED_ROWS, (rows,), (), rows.shape, rows.dtype)

    return without_positions(graph, varying, instead)


def _equal(one: Node, other: Node, rows: Node, varying: set[Node]) -> bool:
    """Whether two nodes are the same computation from the same rows, whatever the varying leaves are."""
    if one is other:
        return True
    if one is rows or other is rows or one.primitive is not other.primitive:
        return False
    if one.primitive is CONSTANT:
        fixed = one not in varying and other not in varying
        return fixed and one.dtype == other.dtype and np.array_equal(one.value, other.value)  # pyright: ignore
    if one.params != other.params or one.shape != other.shape or len(one.inputs) != len(other.inputs):
        return False
    if one.primitive is INPUT:
        return False
    pairs = [one.inputs] if one.name not in ("add", "multiply") else [one.inputs, one.inputs[::-1]]
    return any(all(_equal(a, b, rows, varying) for a, b in zip(p, other.inputs, strict=True)) for p in pairs)


def _places(ordered: Node, readers: dict[Node, list[Node]], varying: set[Node]) -> tuple[int, ...] | None:
    """The few places of sorted rows that are read, if that is known; None if all may be."""
    found: set[int] = set()
    for reader in readers.get(ordered, ()):
        if reader.primitive is SLICE:
            start, length, step = reader.params[0][-1]
            if length > MOST_PLACES:
                return None
            found.update(start + step * k for k in range(length))
        elif reader.primitive is GATHER and ordered.ndim == 1 and reader.inputs[0] is ordered:
            places = _constant_places(reader.inputs[1], varying)
            if places is None:
                return None
            found.update(places)
        else:
            return None
    return tuple(sorted(found)) if 0 < len(found) <= MOST_PLACES else None


def _constant_places(index: Node, varying: set[Node]) -> list[int] | None:
    """The numbers of an index that no call changes."""
    leaves = [node for node in topological([index]) if not node.inputs]
    if index.size > MOST_PLACES or any(node in varying or node.primitive is INPUT for node in leaves):
        return None
    return interpret([index], {})[0].ravel().tolist()
