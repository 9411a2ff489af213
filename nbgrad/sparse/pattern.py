"""The elements of an argument on which each element of a result depends, read off the recorded graph.

In: outputs that are linear in some source nodes: the tangents of a function, as `differentiate.jvp` builds them. Out:
the pattern of the matrix that takes the sources to the outputs. Called by sparse_derivatives.py.

Each element of each node has a set of source elements. Sets are numbered, so that a node's sets are one integer array
of the node's shape: primitives that move elements move these numbers, by the very functions of the reference
interpreter, and only where values are added are sets joined, all of a node at once, as a product of sparse matrices.
The pattern holds every dependency, for all values of the arguments. It is exact for elementwise operations, movement,
gathers, scatters, sums, recurrences and products; where nothing better is known, a node depends on everything that its
operands depend on. Factors, conditions and matrices that are the same in all calls count with their values: what they
multiply by zero or do not select is left out. Positions that are computed from the arguments hold for one recording
only, so they become guards of it: other positions are recorded anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..graph.ir import Node, literal_value, topological
from ..graph.loops.loop_rewrites import written_out
from ..graph.primitives import PRIMITIVES
from ..graph.trace import current_trace
from ..graph.window_rows import without_convolutions
from ..runtime.evaluate import concrete

EMPTY, ALL = 0, 1
"""The numbers of the set of no source element, and of that of all."""
MOST_ENTRIES = 1 << 27
"""Patterns, and the arrays built on the way, with more entries than this are refused."""
LARGEST_FACTOR = 1 << 24
"""A constant matrix counts with its zeros if that takes at most this many entries."""

Ids = np.ndarray
"""The numbers of the sets of a node's elements, in the node's shape."""


def dependencies(outputs: Sequence[Node], sources: Sequence[Node]) -> Any:
    """The pattern of the matrix that takes all sources, flat and one after the other, to all outputs.

    Returns
    -------
    scipy.sparse.csr_array of bool
        Of shape (elements of all outputs, elements of all sources), with sorted indices.

    Raises
    ------
    ArgumentError
        If it has too many entries to be called sparse.
    """
    sets = _Sets(sum(node.size for node in sources))
    known: dict[Node, Ids | None] = {}
    offset = 0
    for node in sources:
        known[node] = sets.single(offset, node.shape)
        offset += node.size
    walk = _Walk(sets)
    outputs = without_convolutions(written_out(outputs))
    for node in topological(outputs):
        if node not in known:
            known[node] = walk.ids(node, [known[source] for source in node.inputs])
    flat = [np.zeros(node.size, np.int32) if (ids := known[node]) is None else ids.ravel() for node in outputs]
    return sets.matrix(np.concatenate([np.zeros(0, np.int32), *flat]))


def _refuse(entries: int) -> None:
    message = (
        f"The dependencies of this function have about {entries:.0e} entries, which is not sparse: use jacfwd, jacrev "
        "or hessian for a matrix, or jvp, vjp or hvp for products with it."
    )
    raise ArgumentError(message)


class _Sets:
    """All sets that were made so far, as the rows of one sparse matrix that grows."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.starts = np.array([0, 0, count, *range(count + 1, 2 * count + 1)], np.int32)
        self.members = np.tile(np.arange(count, dtype=np.int32), 2)
        self.number = count + 2
        self.ones = np.ones(2 * count, np.bool_)

    def single(self, offset: int, shape: tuple[int, ...]) -> Ids:
        """A set of its own for each element of a source."""
        if self.count == 1:
            return np.full(shape, ALL, np.int32)
        return np.arange(offset + 2, offset + 2 + math.prod(shape), dtype=np.int32).reshape(shape)

    def lengths(self, ids: Ids) -> Any:
        """The numbers of members of sets."""
        return self.starts[ids + 1].astype(np.int64) - self.starts[ids]

    def _rows(self) -> Any:
        import scipy.sparse

        members = self.members[: self.starts[self.number]]
        if members.size > self.ones.size:
            self.ones = np.ones(2 * members.size, np.bool_)
        rows = (self.ones[: members.size], members, self.starts[: self.number + 1])
        return scipy.sparse.csr_array(rows, shape=(self.number, self.count))

    def joined(self, rows: np.ndarray, ids: Ids, count: int) -> Ids:
        """For `count` results, the union of the sets `ids` of each; `rows` tells whose set each is."""
        import scipy.sparse

        out = np.zeros(count, np.int32)
        out[rows[ids == ALL]] = ALL
        wanted = (ids > ALL) & (out[rows] != ALL)
        key = distinct(rows[wanted].astype(np.int64) * self.number + ids[wanted])
        rows, ids = key // self.number, (key % self.number).astype(np.int32)
        many = np.bincount(rows, minlength=count)[rows] > 1
        out[rows[~many]] = ids[~many]
        rows, ids = rows[many], ids[many]
        if not rows.size:
            return out
        entries = int(self.lengths(ids).sum())
        if entries > MOST_ENTRIES:
            _refuse(entries)
        begins = np.flatnonzero(np.diff(rows, prepend=-1))
        places = rows[begins]
        starts = np.append(begins, rows.size).astype(np.int32)
        members = (np.ones(ids.size, np.bool_), ids, starts)
        union = scipy.sparse.csr_array(members, shape=(places.size, self.number)) @ self._rows()
        out[places] = self._add(union)
        return out

    def _add(self, union: Any) -> Ids:
        """Numbers for the rows of a matrix as new sets."""
        sizes = np.diff(union.indptr)
        full = sizes == self.count
        numbers = np.cumsum(~full, dtype=np.int32) + (self.number - 1)
        keep = union.indices[np.repeat(~full, sizes)] if full.any() else union.indices
        used, added = int(self.starts[self.number]), int((~full).sum())
        if used + keep.size > MOST_ENTRIES:
            _refuse(used + keep.size)
        self.members = _grown(self.members, used + keep.size)
        self.members[used : used + keep.size] = keep
        self.starts = _grown(self.starts, self.number + added + 1)
        self.starts[self.number + 1 : self.number + added + 1] = used + np.cumsum(sizes[~full])
        self.number += added
        return np.where(full, ALL, numbers).astype(np.int32)

    def matrix(self, ids: Ids) -> Any:
        """The sets of some elements as rows of a matrix."""
        entries = int(self.lengths(ids).sum())
        if entries > MOST_ENTRIES:
            _refuse(entries)
        pattern = self._rows()[ids]
        pattern.sort_indices()
        return pattern


def _grown(array: np.ndarray, size: int) -> np.ndarray:
    """The array, or one with its contents and room for more."""
    if size <= array.size:
        return array
    larger = np.empty(max(size, 2 * array.size), array.dtype)
    larger[: array.size] = array
    return larger


def distinct(keys: np.ndarray) -> np.ndarray:
    """The different integers of an array, sorted; `np.unique` takes very long for some that are not random."""
    keys = np.sort(keys, axis=None)
    return keys[np.diff(keys, prepend=keys[:1] - 1) != 0]


_INDEX_MAPS = frozenset("reshape transpose broadcast slice pad unfold".split())
"""Primitives of one operand whose results are its elements, or zero."""


class _Walk:
    """The sets of a node's elements, given those of its operands; None stands for empty sets everywhere."""

    def __init__(self, sets: _Sets) -> None:
        self.sets = sets
        self.memory: dict[Any, tuple[Any, Ids]] = {}
        """Results by the identity of the operands, which are kept alive with them."""

    def ids(self, node: Node, operands: list[Ids | None]) -> Ids | None:
        """One node."""
        name = node.name
        if node.dtype.kind not in "fc" or name == "stop_gradient" or all(ids is None for ids in operands):
            return None
        if name in _INDEX_MAPS:
            return self._moved(node, operands[0])
        rule = _RULES.get(name)
        if rule is not None:
            return rule(self, node, operands)
        if node.primitive.kind == "elementwise":
            return self._elementwise(operands)
        if node.primitive.kind == "reduction":
            return self._sum(node, operands)
        return self._everything(node, operands)

    # ----- One element from one element of each operand -----

    def _elementwise(self, operands: Sequence[Ids | None]) -> Ids | None:
        found: Ids | None = None
        for ids in operands:
            found = self.union(found, ids)
        return found

    def union(self, a: Ids | None, b: Ids | None) -> Ids | None:
        """The unions of the sets of two nodes of one shape, element by element."""
        if a is None or a is b:
            return b
        if b is None:
            return a
        key = (id(a), id(b)) if id(a) < id(b) else (id(b), id(a))
        if key not in self.memory:
            low, high = np.minimum(a, b), np.maximum(a, b)
            out = np.where(low == EMPTY, high, low)
            differ = (low > ALL) & (low != high)
            if differ.any():
                number = np.int64(self.sets.number)
                pairs, position = np.unique(low[differ] * number + high[differ], return_inverse=True)
                members = np.stack([pairs // number, pairs % number], axis=1).ravel()
                rows = np.repeat(np.arange(pairs.size), 2)
                out[differ] = self.sets.joined(rows, members, pairs.size)[position]
            self.memory[key] = (a, b), out
        return self.memory[key][1]

    def _multiply(self, node: Node, operands: list[Ids | None]) -> Ids | None:
        """The sets of a product; elements that a constant zero multiplies depend on nothing."""
        for position, (source, ids) in enumerate(zip(node.inputs, operands, strict=True)):
            other = operands[1 - position]
            if ids is None and other is not None:
                factor = constant_value(source)
                if factor is not None and not factor.all():
                    return np.where(factor != 0, other, EMPTY)
        return self._elementwise(operands)

    def _select(self, node: Node, operands: list[Ids | None]) -> Ids | None:
        yes, no = operands[1:]
        condition = constant_value(node.inputs[0])
        if condition is None:
            return self._elementwise([yes, no])
        return np.where(condition, EMPTY if yes is None else yes, EMPTY if no is None else no).astype(np.int32)

    # ----- Movement -----

    def _moved(self, node: Node, ids: Ids | None) -> Ids | None:
        assert ids is not None
        key = (node.name, node.params, node.shape, id(ids))
        if key not in self.memory:
            meaning = node.primitive.meaning
            assert meaning is not None
            self.memory[key] = ids, np.asarray(meaning(node.params, ids))
        return self.memory[key][1]

    def _concatenate(self, node: Node, operands: list[Ids | None]) -> Ids | None:
        parts = [
            np.zeros(s.shape, np.int32) if ids is None else ids for s, ids in zip(node.inputs, operands, strict=True)
        ]
        return np.concatenate(parts, node.params[0])

    def _write(self, node: Node, operands: list[Ids | None]) -> Ids | None:
        pairs = zip(node.inputs[:2], operands[:2], strict=True)
        array, value = (np.zeros(source.shape, np.int32) if ids is None else ids for source, ids in pairs)
        meaning = node.primitive.meaning
        assert meaning is not None
        return meaning(node.params, array, value, *[concrete(start, "int") for start in node.inputs[2:]])

    def _gather(self, node: Node, operands: list[Ids | None]) -> Ids | None:
        ids = operands[0]
        return None if ids is None else ids[concrete(node.inputs[1], "int")]

    # ----- Sums -----

    def _grouped(self, groups: np.ndarray, ids: Ids, shape: tuple[int, ...]) -> Ids:
        """Unions of the sets in each group, one group for each element of a shape."""
        return self.sets.joined(groups.ravel(), ids.ravel(), math.prod(shape)).reshape(shape)

    def _sum(self, node: Node, operands: list[Ids | None]) -> Ids | None:
        ids, axes = operands[0], node.params[0]
        assert ids is not None
        kept = tuple([1 if axis in axes else n for axis, n in enumerate(ids.shape)])
        groups = np.broadcast_to(np.arange(node.size).reshape(kept), ids.shape)
        return self._grouped(groups, ids, node.shape)

    def _scatter_add(self, node: Node, operands: list[Ids | None]) -> Ids | None:
        ids = operands[1]
        return None if ids is None else self._grouped(concrete(node.inputs[0], "int"), ids, node.shape)

    def _fold(self, node: Node, operands: list[Ids | None]) -> Ids | None:
        ids = operands[0]
        assert ids is not None
        # Where each element of a window comes from, counted from 1: outside of the image it is 0.
        pixels = np.arange(1, node.size + 1).reshape(node.shape)
        unfolded = PRIMITIVES["unfold"].meaning
        assert unfolded is not None
        place = unfolded(node.params[:5], pixels)
        inside = place > 0
        return self._grouped(place[inside] - 1, ids[inside], node.shape)

    def _matmul(self, node: Node, operands: list[Ids | None]) -> Ids | None:
        found: Ids | None = None
        for position, ids in enumerate(operands):
            if ids is not None:
                # A product with the tangent on the right is the transpose of one with it on the left.
                other = node.inputs[1 - position]
                if operands[1 - position] is None:
                    matrix = constant_value(other)
                    if matrix is not None and position:
                        matrix = matrix.swapaxes(1, 2)
                else:
                    matrix = None
                shape = node.shape if not position else (node.shape[0], node.shape[2], node.shape[1])
                product = self._times(ids.swapaxes(1, 2) if position else ids, matrix, shape)
                found = self.union(found, product.swapaxes(1, 2) if position else product)
        return found

    def _times(self, ids: Ids, matrix: np.ndarray | None, shape: tuple[int, ...]) -> Ids:
        """The sets of `x @ matrix`; of a matrix that is not known, any element may count."""
        batch, m, n = shape
        if matrix is not None:
            where = np.nonzero(matrix)
            if where[0].size < matrix.size and where[0].size * m <= LARGEST_FACTOR:
                count, k, j = (index[:, None] for index in where)
                row = np.arange(m)
                groups = (count * m + row) * n + j
                return self._grouped(groups, ids[count, row, k], shape)
        groups = np.broadcast_to(np.arange(batch * m).reshape(batch, m, 1), ids.shape)
        return np.broadcast_to(self._grouped(groups, ids, (batch, m))[:, :, None], shape)

    # ----- Running along an axis -----

    def _recurrence(self, node: Node, operands: list[Ids | None]) -> Ids | None:
        """A zero factor begins anew; the factors themselves are not differentiated in a tangent."""
        factors, ids = operands
        if ids is None or factors is not None:
            return self._everything(node, operands)
        constant = constant_value(node.inputs[0])
        return self._running(ids, constant, node.params[0])

    def _running(self, ids: Ids, factors: np.ndarray | None, reverse: bool) -> Ids:
        """Unions of all sets up to each position of the last axis, from the last zero factor on."""
        if reverse:
            ids, factors = ids[..., ::-1], None if factors is None else factors[..., ::-1]
        n = ids.shape[-1]
        if not n:
            return ids
        flat = ids.reshape(-1, n)
        begins = np.zeros(flat.shape, np.bool_) if factors is None else factors.reshape(-1, n) == 0
        begins[:, 0] = True
        run = np.cumsum(begins.ravel()) - 1
        # A union changes at the first occurrence of a set in its run.
        _, firsts = np.unique(run * np.int64(self.sets.number) + flat.ravel(), return_index=True)
        firsts = np.sort(firsts)
        at, member = run[firsts], flat.ravel()[firsts]
        new = np.zeros(flat.size, np.int64)
        new[firsts] = 1
        place = np.cumsum(new) - 1
        earlier = np.arange(at.size) - np.searchsorted(at, at)
        entries = int((earlier + 1).sum())
        if entries > MOST_ENTRIES // 2:
            _refuse(entries)
        groups = np.repeat(np.arange(at.size), earlier + 1)
        within = np.arange(entries) - np.repeat(np.cumsum(earlier + 1) - (earlier + 1), earlier + 1)
        unions = self.sets.joined(
            groups, member[np.repeat(np.arange(at.size) - earlier, earlier + 1) + within], at.size
        )
        out = unions[place].reshape(ids.shape)
        return out[..., ::-1] if reverse else out

    def _triangular_solve(self, node: Node, operands: list[Ids | None]) -> Ids | None:
        """Substitution runs through the rows, from the first or from the last."""
        matrix, ids = operands
        lower, transposed, _ = node.params
        if matrix is not None or ids is None:
            return self._everything(node, operands)
        return self._running(ids.swapaxes(1, 2), None, lower == transposed).swapaxes(1, 2)

    def _lu_solve(self, node: Node, operands: list[Ids | None]) -> Ids | None:
        """Each element of a solution depends on the whole column of the right-hand side."""
        factors, ids = operands
        if factors is not None or ids is None:
            return self._everything(node, operands)
        columns = ids.swapaxes(1, 2)
        return self._running(self._running(columns, None, False), None, True).swapaxes(1, 2)

    # ----- Nothing is known -----

    def _everything(self, node: Node, operands: Sequence[Ids | None]) -> Ids:
        """Each element depends on all that any element of any operand depends on."""
        ids = distinct(np.concatenate([ids.ravel() for ids in operands if ids is not None]))
        whole = self.sets.joined(np.zeros(ids.size, np.int64), ids, 1)
        return np.broadcast_to(whole.reshape((1,) * node.ndim), node.shape)


_RULES: dict[str, Any] = {
    "multiply": _Walk._multiply,
    "select": _Walk._select,
    "gather": _Walk._gather,
    "concatenate": _Walk._concatenate,
    "write": _Walk._write,
    "scatter_add": _Walk._scatter_add,
    "fold": _Walk._fold,
    "matmul": _Walk._matmul,
    "recurrence": _Walk._recurrence,
    "accumulate": _Walk._everything,
    "triangular_solve": _Walk._triangular_solve,
    "lu_solve": _Walk._lu_solve,
}


def constant_value(node: Node) -> np.ndarray | None:
    """The value of a node that has the same value in all calls; None for others."""
    trace = current_trace()
    if trace is not None and trace.varies(node):
        return None
    if node.name == "literal":
        return np.asarray(literal_value(node))
    return concrete(node, "int")
