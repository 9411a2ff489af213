"""Cotangents that are written before they are read, so that nobody fills them with zeros first.

In: a block of a derivative, and arrays that are zeros at its start. Out: the block in which the first nest of loops
that adds to such an array, once to each element of a box, writes to it instead, and fills the elements around the box;
and the arrays of which that is so, whose elements may be undefined at the start. Called by derived.py. Each array then
goes through memory once less to be filled, and once less to be read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..dataflow import Affine, affine, definitions
from ..kernel_statements import (
    Atom,
    Block,
    Extent,
    For,
    Op,
    Set,
    Statement,
    Store,
    assigned,
    breaks,
    loaded,
    made,
    stored,
    with_blocks,
)
from .independence import NewNames, aliased_arrays


def with_first_writes(block: Block, zeroed: Iterable[str], names: Iterable[str]) -> tuple[Block, set[str]]:
    """The block, and those of the arrays that it fills; `names` are others that it must not use."""
    writer = _Writer(block, names)
    aliased = aliased_arrays(block)
    filled: set[str] = set()
    for array in zeroed:
        found = None if array in aliased else writer.filled(block, array)
        if found is not None:
            block = found
            filled.add(array)
    return block, filled


@dataclass(frozen=True)
class _Box:
    """The elements to which a nest adds: along each axis the first, and their number."""

    starts: list[int]
    counts: list[Atom]


class _Writer(NewNames):
    def filled(self, block: Block, array: str) -> Block | None:
        """The block that fills an array; None where something else touches it first, or not all is known."""
        for position, statement in enumerate(block):
            if array in _arrays(statement):
                if not isinstance(statement, For):
                    return None
                path = _path(statement, array)
                box = None if path is None else _box(statement, *path)
                if path is None or box is None:
                    return None
                around = self.around(array, box)
                return (*block[:position], *around, _writing(statement, path[1]), *block[position + 1 :])
        return None

    def around(self, array: str, box: _Box) -> list[Statement]:
        """Statements that fill the elements around a box with zeros."""
        rank = len(box.starts)
        lengths, lows, highs, indices = (
            [self.new(f"{array}_{what}") for _ in range(rank)] for what in ("length", "low", "high", "at")
        )
        found: list[Statement] = []
        for axis, (start, count) in enumerate(zip(box.starts, box.counts, strict=True)):
            found.append(Set(lengths[axis], Extent(array, axis)))
            found.append(Set(lows[axis], Op("", (lengths[axis],), f"min({start}, {{0}})")))
            text = f"min(max({start} + {{0}}, {{1}}), {{2}})"
            found.append(Set(highs[axis], Op("", (count, lows[axis], lengths[axis]), text)))
        is_inside: list[Atom] = []
        levels: list[list[Statement]] = []
        for axis in range(rank - 1):
            test = self.new("is_inside")
            text = "{0} >= {1} and {0} < {2}"
            levels.append([Set(test, Op("", (indices[axis], lows[axis], highs[axis]), text))])
            is_inside.append(test)
        last = rank - 1
        ends, begins = lows[last], highs[last]
        inner: list[Statement] = []
        if is_inside:
            chosen = " and ".join(f"{{{2 + k}}}" for k in range(rank - 1))
            ends, begins = self.new("end"), self.new("begin")
            inner.append(Set(ends, Op("", (lows[last], lengths[last], *is_inside), f"{{0}} if {chosen} else {{1}}")))
            inner.append(Set(begins, Op("", (highs[last], lengths[last], *is_inside), f"{{0}} if {chosen} else {{1}}")))
        rest, step, at = self.new("rest"), self.new("step"), self.new("at")
        index = tuple(indices)
        inner.append(For(index[last], ends, (Store(array, index, "0.0"),)))
        inner.append(Set(rest, Op("", (lengths[last], begins), "{0} - {1}")))
        after: Block = (Set(at, Op("", (begins, step), "{0} + {1}")), Store(array, (*index[:last], at), "0.0"))
        inner.append(For(step, rest, after))
        for axis in range(rank - 2, -1, -1):
            inner = [For(indices[axis], lengths[axis], (*levels[axis], *inner))]
        return [*found, *inner]


def _arrays(statement: Statement) -> set[str]:
    return loaded([statement]) | stored([statement]) | made([statement])


def _path(loop: For, array: str) -> tuple[list[For], Store] | None:
    """The loops around the one statement that adds to an array, none of which ends early; None if there are others."""
    loops: list[For] = []
    block: Block = (loop,)
    while True:
        touching = [one for one in block if array in _arrays(one)]
        if len(touching) != 1:
            return None
        match touching[0]:
            case Store(_, _, _, True) as store:
                return loops, store
            case For(_, _, body) as inner if not breaks(body):
                loops.append(inner)
                block = body
            case _:
                return None


def _box(nest: For, loops: list[For], store: Store) -> _Box | None:
    """The elements to which a statement adds, if it does so once to each, and it is known which they are."""
    known = definitions(nest.body)
    changing = assigned([nest])
    turns = {loop.turn: loop for loop in loops}
    if len(turns) != len(loops) or any(loop.count in changing for loop in loops):
        return None
    starts: list[int] = []
    counts: list[Atom] = []
    for atom in store.index:
        form: Affine = dict(affine(atom, known))
        start = form.pop("1", 0)
        count: Atom = "1"
        if form:
            ((name, factor), *more) = form.items()
            if more or factor != 1 or name not in turns:
                return None
            count = turns.pop(name).count
        if start < 0:
            return None
        starts.append(start)
        counts.append(count)
    return None if turns or not starts else _Box(starts, counts)


def _writing(statement: Statement, added: Store) -> Statement:
    """A nest whose one statement writes instead of adding."""
    if statement is added:
        return replace(added, add=False)
    return with_blocks(statement, lambda inner: tuple([_writing(one, added) for one in inner]))
