"""Few products that give all entries of a sparse matrix: columns, or rows, that share a product get one color.

In: the pattern of a matrix. Out: a `Plan`: a color for each column whose product is J @ s, a color for each row whose
product is s @ J, and where each entry is found in those products. Called by sparse_derivatives.py.

Columns may share a product if no row has entries in two of them (Curtis, Powell and Reid, "On the estimation of sparse
Jacobian matrices", 1974): columns that meet in a row get different colors (Coleman and More 1983). Rows likewise. A few
dense rows are taken out first and found by products from the left, so that they do not keep the columns apart. A
symmetric matrix needs one of each two mirrored entries, so that a star coloring is enough. All of this is in the survey
by Gebremedhin, Manne and Pothen, "What color is your Jacobian? Graph coloring for computing derivatives", 2005. The
colorings are greedy: in the given order, or with the densest first if that takes fewer colors. For stencils on a grid,
which greedy colorings do not do well, colors that are linear in the index are tried (Newsam and Ramsdell 1983).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .pattern import distinct

MOST_DENSE_ROWS = 64
"""At most this many rows are found apart from the others."""
FEWEST_FOR_STAR = 4
"""A star coloring of a graph with a path of four nodes needs three colors, so fewer than this cannot be improved."""


MOST_LINEAR = 4096
"""At most this many linear colorings are tried on a few rows."""
MOST_TRIED = 16
"""At most this many linear colorings are tried on all rows."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """The products to compute, and the places of the entries in them.

    `columns` has for each column the number of the product J @ s that it is in, `rows` for each row the number of the
    product s @ J; -1 for those in none. `place` has for each entry of the pattern, in its order, the position in the
    products J @ s, one after the other, followed by the products s @ J.
    """

    columns: np.ndarray
    rows: np.ndarray
    place: np.ndarray

    @property
    def forward(self) -> int:
        """The number of products J @ s."""
        return int(self.columns.max(initial=-1)) + 1

    @property
    def reverse(self) -> int:
        """The number of products s @ J."""
        return int(self.rows.max(initial=-1)) + 1


# ----- Any matrix -----


def plan(pattern: Any, outputs: Shape | None = None, inputs: Shape | None = None, only_columns: bool = False) -> Plan:
    """The products for a matrix, by columns, by rows, or a few rows apart and the others by columns.

    `outputs` and `inputs` are the shapes of the arrays whose elements rows and columns are, if each is one array.
    """
    rows, columns = pattern.shape
    by_row = np.diff(pattern.indptr)
    by_column = np.bincount(pattern.indices, minlength=columns)
    dense = _dense_rows(by_row)
    candidates = [
        (int(by_row.max(initial=0)), np.zeros(rows, np.bool_)),
        (int(by_column.max(initial=0)), np.ones(rows, np.bool_)),
    ]
    if only_columns:
        del candidates[1:]
    elif dense.size:
        rest = np.delete(by_row, dense)
        candidates.append((dense.size + int(rest.max(initial=0)), np.isin(np.arange(rows), dense)))
    # A row with k entries needs k colors, so nothing is better than the bounds.
    candidates.sort(key=lambda candidate: candidate[0])
    best: tuple[int, np.ndarray, np.ndarray] | None = None
    for bound, apart in candidates:
        if best is None or bound < best[0]:
            by_columns = column_colors(pattern[~apart] if apart.any() else pattern, inputs)
            row_colors = np.full(rows, -1)
            if apart.any():
                row_colors[apart] = column_colors(pattern[apart].T.tocsr(), outputs if apart.all() else None)
            count = int(by_columns.max(initial=-1)) + int(row_colors.max(initial=-1)) + 2
            if best is None or count < best[0]:
                best = count, by_columns, row_colors
    assert best is not None
    return _located(pattern, best[1], best[2])


def _dense_rows(by_row: np.ndarray) -> np.ndarray:
    """The rows that are better found one by one: as many of the densest as makes the bound lowest."""
    order = np.argsort(-by_row, kind="stable")[: MOST_DENSE_ROWS + 1]
    if order.size < 2:
        return order[:0]
    bounds = by_row[order] + np.arange(order.size)
    return order[: int(np.argmin(bounds))]


def column_colors(pattern: Any, shape: Shape | None) -> np.ndarray:
    """Colors of columns such that no row has two columns of one color; -1 for empty columns."""
    columns = pattern.shape[1]
    lengths = np.diff(pattern.indptr)
    bound = int(lengths.max(initial=0))
    if bound == np.count_nonzero(np.bincount(pattern.indices, minlength=columns)):
        # One row has all columns.
        full = pattern.indices[np.repeat(lengths == bound, lengths)][:bound]
        colors = np.full(columns, -1)
        colors[full] = np.arange(bound)
        return colors
    colors = _by_rank(pattern)
    if colors.max() + 1 == bound and _apart(pattern, colors[pattern.indices]):
        return colors
    turned = pattern.tocsc()
    met = _lists(turned)
    colors = _greedy(met, range(columns), pattern.shape[0])
    if colors.max() >= bound:
        # The columns that meet most others first.
        weight = np.zeros(columns, np.int64)
        np.add.at(weight, pattern.indices, np.repeat(lengths, lengths))
        other = _greedy(met, np.argsort(-weight, kind="stable").tolist(), pattern.shape[0])
        colors = other if other.max() < colors.max() else colors
    if colors.max() >= bound and shape:
        other = _linear_colors(pattern, shape, int(colors.max()))
        colors = colors if other is None else other
    return colors


def _by_rank(pattern: Any) -> np.ndarray:
    """For each column its highest place among the entries of a row; -1 for empty columns. Where rows are alike, these
    are colors, and no others are fewer."""
    rank = np.arange(pattern.indices.size) - np.repeat(pattern.indptr[:-1], np.diff(pattern.indptr))
    colors = np.full(pattern.shape[1], -1)
    np.maximum.at(colors, pattern.indices, rank)
    return colors


def _linear_colors(pattern: Any, shape: Shape, most: int) -> np.ndarray | None:
    """At most `most` colors that are linear in the index, modulo their number; None if there are none."""
    lengths = np.diff(pattern.indptr)
    index = np.indices(shape).reshape(len(shape), -1)
    # A few rows tell quickly that most colorings will not do.
    some = pattern[np.append(np.argmax(lengths), np.linspace(0, lengths.size - 1, 16).astype(int))]
    trials = (
        np.array([*factors, 1, count])
        for count in range(int(lengths.max()), most + 1)
        for factors in itertools.product(range(count), repeat=len(shape) - 1)
    )
    tried = 0
    for trial in itertools.islice(trials, MOST_LINEAR):
        weights, count = trial[:-1], trial[-1]
        if _apart(some, weights @ index[:, some.indices] % count):
            tried += 1
            colors = weights @ index % count
            if _apart(pattern, colors[pattern.indices]):
                colors[np.bincount(pattern.indices, minlength=colors.size) == 0] = -1
                return colors
            if tried == MOST_TRIED:
                break
    return None


def _apart(pattern: Any, colors: np.ndarray) -> bool:
    """Whether the entries of each row have different colors."""
    row = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    return distinct(row * np.int64(colors.max(initial=0) + 1) + colors).size == colors.size


def _lists(pattern: Any) -> list[list[int]]:
    """The indices of each compressed row or column."""
    indices, ends = pattern.indices.tolist(), pattern.indptr.tolist()
    return [indices[start:end] for start, end in itertools.pairwise(ends)]


def _greedy(met: Sequence[Sequence[int]], order: Sequence[int], rows: int) -> np.ndarray:
    """The lowest color for each column that none of the rows that it meets has yet; sets of colors are bits."""
    taken = [0] * rows
    colors = np.full(len(met), -1)
    for column in order:
        here = met[column]
        if not here:
            continue
        known = 0
        for row in here:
            known |= taken[row]
        free = ~known & (known + 1)
        for row in here:
            taken[row] |= free
        colors[column] = free.bit_length() - 1
    return colors


def _located(pattern: Any, columns: np.ndarray, rows: np.ndarray) -> Plan:
    """The plan in which each entry is in the product of its row, if that has one, or else of its column."""
    count, width = pattern.shape
    row = np.repeat(np.arange(count), np.diff(pattern.indptr))
    column = pattern.indices.astype(np.int64)
    forward = int(columns.max(initial=-1)) + 1
    left = forward * count + rows[row] * width + column
    return Plan(columns, rows, np.where(rows[row] >= 0, left, columns[column] * count + row))


# ----- Symmetric matrices -----


def symmetric_plan(pattern: Any, shape: Shape | None = None) -> Plan:
    """The products J @ s for a symmetric matrix, of which each entry may be read in place of its mirror image."""
    n = pattern.shape[0]
    none = np.full(n, -1)
    colors = column_colors(pattern, shape)
    if colors.max(initial=-1) + 1 >= FEWEST_FOR_STAR:
        star = _star_colors(pattern)
        colors = star if star.max() < colors.max() else colors
    row = np.repeat(np.arange(n), np.diff(pattern.indptr))
    column = pattern.indices.astype(np.int64)
    # An entry stands alone in the product of its column if no other column of its color has one in its row.
    _, position, count = np.unique(row * np.int64(n) + colors[column], return_inverse=True, return_counts=True)
    alone = count[position] == 1
    return Plan(colors, none, np.where(alone, colors[column] * n + row, colors[row] * n + column))


def _star_colors(pattern: Any) -> np.ndarray:
    """Colors of the nodes of a graph such that neighbours differ and each path of four nodes has three colors.

    Then the nodes of any two colors form stars: a hub and its leaves. The algorithm of Gebremedhin, Tarafdar, Manne and
    Pothen, "New acyclic and star coloring algorithms with application to computing Hessians", 2007, keeps the hub of
    each edge; here each node keeps its knowledge as sets of colors, which are bits, so that a hub with many leaves
    costs no more than its edges.
    """
    n = pattern.shape[0]
    near = [[w for w in row if w != v] for v, row in enumerate(_lists(pattern))]
    colors = [-1] * n
    around = [0] * n
    """Per node, the colors of its neighbours."""
    hubs = [0] * n
    """Per node, the colors of the hubs of which it is a leaf, in stars of two edges and more."""
    first: list[dict[int, int]] = [{} for _ in range(n)]
    """Per node and color, a neighbour of that color."""
    for v in np.argsort(-np.diff(pattern.indptr), kind="stable").tolist():
        banned = around[v]
        seen: dict[int, int] = {}
        for w in near[v]:
            color = colors[w]
            if color < 0:
                continue
            other = seen.setdefault(color, w)
            if other != w:
                # v joins two nodes of one color: what is behind them must not have v's color.
                banned |= around[other] | around[w]
            # v must not lengthen a star of which w is a leaf.
            banned |= hubs[w]
        bit = ~banned & (banned + 1)
        colors[v] = own = bit.bit_length() - 1
        for w in near[v]:
            if colors[w] >= 0:
                if seen[colors[w]] != w:
                    hubs[w] |= bit
                    hubs[seen[colors[w]]] |= bit
                same = first[w].get(own)
                if same is not None:
                    hubs[v] |= 1 << colors[w]
                    hubs[same] |= 1 << colors[w]
            around[w] |= bit
            first[w].setdefault(own, v)
    found = np.array(colors)
    found[np.diff(pattern.indptr) == 0] = -1
    return found
