"""Elements of cotangents to which all turns of a loop add, as sums in numbers.

In: a block of a derivative, and the arrays that are cotangents. Out: the block in which a loop adds to a number instead
of `a[i]`, where `i` stays the same in all of its turns, and the names of these numbers. Called by derived.py. Without
that each turn waits for the element that the turn before has written to memory, and LLVM makes no vectors of the loop,
as it cannot know that the element is none of the others.

Additions to an array may come in any order, if a loop does nothing else with it. So the sum is added after the loop;
not if it is zero, because then no turn may have had the element, and its index may be none of the array's. Additions to
one element in one block are one addition of their sum, for the same reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..kernel_statements import (
    Atom,
    Block,
    For,
    If,
    Op,
    Set,
    Statement,
    Store,
    While,
    assigned,
    blocks_in,
    copied,
    loaded,
    made,
    stored,
    walk,
    with_blocks,
)
from .independence import NewNames, aliased_arrays

ADDED = "{0} != 0.0"
"""Whether anything was added to a sum."""
_Element = tuple[str, tuple[Atom, ...]]


def with_element_sums(block: Block, cotangents: Collection[str], names: Iterable[str]) -> tuple[Block, set[str]]:
    """The block, and the names of the sums."""
    writer = _Writer(block, cotangents, names)
    return writer.added_once(writer.block(block)), writer.sums


class _Writer(NewNames):
    def __init__(self, block: Block, cotangents: Collection[str], names: Iterable[str]) -> None:
        super().__init__(block, names)
        self.cotangents = cotangents
        self.aliased = aliased_arrays(block)
        self.sums: set[str] = set()

    def block(self, block: Block) -> Block:
        """A block with sums."""
        found: list[Statement] = []
        for statement in block:
            if not isinstance(statement, For | While) or (isinstance(statement, For) and statement.parallel):
                found.append(with_blocks(statement, self.block))
                continue
            sums: dict[_Element, str] = {}
            elements = self.elements(statement)
            loop = with_blocks(statement, lambda inner, e=elements, s=sums: self.summed(inner, e, s))
            found += [Set(name, copied("0.0")) for name in sums.values()]
            found.append(with_blocks(loop, self.block))
            for (array, index), name in sums.items():
                some = self.new("some")
                found.append(Set(some, Op("", (name,), ADDED)))
                found.append(If(some, (Store(array, index, name, True),), ()))
        return tuple(found)

    def is_own(self, array: str) -> bool:
        """Whether an array is a cotangent with one name."""
        return array in self.cotangents and array not in self.aliased

    def elements(self, loop: For | While) -> set[_Element]:
        """The elements to which turns add, and whose index no turn changes, of arrays to which they only add."""
        changing = assigned((loop,))
        others: set[str] = set()
        for one in walk(loop.body):
            if not blocks_in(one) and not (isinstance(one, Store) and one.add):
                others |= loaded([one]) | stored([one]) | made([one])
        return {
            (one.array, one.index)
            for one in walk(loop.body)
            if isinstance(one, Store)
            and self.is_own(one.array)
            and one.array not in others
            and changing.isdisjoint(one.index)
        }

    def summed(self, block: Block, elements: set[_Element], sums: dict[_Element, str]) -> Block:
        """A block that adds to numbers instead of elements."""
        found: list[Statement] = []
        for statement in block:
            if not (isinstance(statement, Store) and (statement.array, statement.index) in elements):
                found.append(with_blocks(statement, lambda inner: self.summed(inner, elements, sums)))
                continue
            key = statement.array, statement.index
            if key not in sums:
                sums[key] = self.new(f"{statement.array}_sum")
                self.sums.add(sums[key])
            found.append(Set(sums[key], Op("add", (sums[key], statement.value), "{0} + {1}")))
        return tuple(found)

    def added_once(self, block: Block) -> Block:
        """A block in which each element of a cotangent gets one addition where several follow one another."""
        found: list[Statement] = []
        open_at: dict[_Element, int] = {}
        """The position of the last addition to an element, since when nothing else touched its array or its index."""
        for statement in block:
            key = (statement.array, statement.index) if isinstance(statement, Store) else ("", ())
            if isinstance(statement, Store) and statement.add and self.is_own(statement.array):
                if key in open_at:
                    before = found[open_at[key]]
                    assert isinstance(before, Store)
                    total = self.new("total")
                    found[open_at[key]] = Set(total, copied(before.value))
                    both = self.new("total")
                    found.append(Set(both, Op("add", (total, statement.value), "{0} + {1}")))
                    statement = Store(*key, both, True)
                open_at[key] = len(found)
                found.append(statement)
                continue
            own = (statement,)
            touched, changed = loaded(own) | stored(own) | made(own), assigned(own)
            if touched or changed:
                open_at = {
                    one: at for one, at in open_at.items() if one[0] not in touched and changed.isdisjoint(one[1])
                }
            found.append(with_blocks(statement, self.added_once))
        return tuple(found)
