"""Derivatives by elements as they are read: a matrix of which each column is split into the places that read it.

In: the outputs of a function and its arguments. Out: `Reads`: the function of the elements that it takes from its
arguments (by slices, positions, transposes) before it computes anything, and the column of each; and from the pattern
of that function the `plan` of the products. Called by sparse_derivatives.py.

A residual that reads its unknowns by positions, as a stencil, a mesh or a set of observations does, computes each row
from elements of its own, whatever they are elements of. So all rows share a product s @ A, where the columns of J meet
in many rows: one product for a stencil, two for the two coordinates of an observation. The entries of J are those of A,
or sums of a few, where a row reads an element more than once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..graph.interpret import evaluate_node
from ..graph.ir import Node, make, topological, with_inputs
from .colors import Plan, column_colors
from .pattern import constant_value

MOST_READ = 4
"""At most so often may a row read an element."""
REVERSE_COST = 2
"""The cost of a product s @ A, in products J @ s."""


@dataclass(frozen=True, eq=False)
class Reads:
    """A function of elements as they are read.

    `outputs` are made of the `nodes`, of which none is made of another one; `columns` has for each element of these,
    flat and one after the other, the column of the matrix, or -1.
    """

    outputs: Sequence[Node]
    nodes: Sequence[Node]
    columns: np.ndarray


def read_elements(outputs: Sequence[Node], wrt: Sequence[Node]) -> Reads | None:
    """The function of the elements that are read; None if it reads the arguments as they are."""
    # Columns are counted from 1; 0 is no column, such as a zero of a border.
    columns: dict[Node, np.ndarray] = {}
    first = 1
    for node in wrt:
        columns[node] = np.arange(first, first + node.size).reshape(node.shape)
        first += node.size
    order = topological(outputs)
    computed: set[Node] = set()
    read: set[Node] = set()
    for node in order:
        if node in columns:
            continue
        moved = _moved(node, columns, computed)
        if moved is not None:
            columns[node] = moved
        elif any(source in columns or source in computed for source in node.inputs):
            computed.add(node)
            read.update([source for source in node.inputs if source in columns])
    read.update([node for node in outputs if node in columns])
    if read.issubset(wrt):
        return None
    new = {node: make("alias", (node,)) for node in order if node in read}
    where = np.concatenate([columns[node].ravel() for node in new]) - 1
    nodes = list(new.values())
    for node in order:
        if node in computed:
            inputs = tuple([new.get(source, source) for source in node.inputs])
            new[node] = node if inputs == node.inputs else with_inputs(node, inputs)
    return Reads([new.get(node, node) for node in outputs], nodes, where)


def _moved(node: Node, columns: dict[Node, np.ndarray], computed: set[Node]) -> np.ndarray | None:
    """The columns of a node's elements, if it only takes elements of arguments."""
    if node.name == "gather":
        source = columns.get(node.inputs[0])
        if source is None:
            return None
        index = constant_value(node.inputs[1])
        return None if index is None else source[index]
    if node.name not in ("reshape", "transpose", "slice", "pad", "concatenate", "alias"):
        return None
    if not any(source in columns for source in node.inputs) or not computed.isdisjoint(node.inputs):
        return None
    if any(source.name == "gather" for source in node.inputs):
        # What a row reads by one position stays together, so that it is read once.
        return None
    found = [columns.get(source) for source in node.inputs]
    values = [np.zeros(s.shape, np.int64) if f is None else f for s, f in zip(node.inputs, found, strict=True)]
    moved = Node(node.primitive, node.inputs, node.params, node.shape, np.dtype(np.int64))
    return evaluate_node(moved, values)


def read_plan(pattern: Any, reads: Reads, width: int) -> tuple[Any, Plan] | None:
    """The pattern of the matrix of `width` columns, and the plan of its products, given the `pattern` of the elements
    as they are read; None if other products are likely to take less."""
    import scipy.sparse

    rows = pattern.shape[0]
    row = np.repeat(np.arange(rows), np.diff(pattern.indptr))
    column = reads.columns[pattern.indices]
    known = column >= 0
    keys = row[known] * np.int64(width) + column[known]
    entries, first, number, often = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    most = int(often.max(initial=1))
    if not entries.size or most > MOST_READ:
        return None
    small = np.int32 if max(entries.size, width) < 1 << 31 else np.int64
    indptr = np.searchsorted(entries // width, np.arange(rows + 1)).astype(small)
    indices = (entries % width).astype(small)
    found = scipy.sparse.csr_array((np.ones(entries.size, np.bool_), indices, indptr), shape=(rows, width))
    fewest = min(int(np.diff(indptr).max()), REVERSE_COST * int(np.bincount(indices).max()))
    per_element = int(np.bincount(pattern.indices).max())
    if REVERSE_COST * per_element > fewest:
        return None
    colors = column_colors(pattern.T.tocsr(), None)
    count = int(colors.max()) + 1
    if REVERSE_COST * count > fewest:
        return None
    size = count * pattern.shape[1]
    at = (colors[row] * np.int64(pattern.shape[1]) + pattern.indices)[known]
    place = np.full((most, entries.size), size)
    place[0] = at[first]
    if most > 1:
        order = np.argsort(number, kind="stable")
        starts = np.cumsum(often) - often
        place[np.arange(order.size) - starts[number[order]], number[order]] = at[order]
    return found, Plan(np.full(width, -1), colors, place)
