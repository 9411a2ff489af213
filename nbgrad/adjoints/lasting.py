"""Elements of arrays that stay as they were read, until a loop ends.

In: a loop of the kernel. Out: `lasting_loads`: the statements that read an element which no later statement of the loop
overwrites. Called by array_plans.py and taped_loops.py.

A write comes after a read if, of the loops around both, the outer ones are in the same turn, and the next one is in a
later turn, or the write stands after the read in the same turn of all. For each of these cases there must be an axis
along which the two indices, as sums of turns, certainly differ. Indices that may be negative count from the end of an
axis, and say nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .dataflow import Affine, affine, definitions
from .kernel_statements import (
    Alias,
    Atom,
    Block,
    Copy,
    Extent,
    For,
    Load,
    New,
    Op,
    Set,
    Statement,
    Store,
    While,
    assigned,
    blocks_in,
    defined,
    is_name,
    walk,
)

_Loops = tuple[tuple[int, str], ...]
"""The loops around a statement, from the outermost: each with its identity, and the name of its turn."""


@dataclass(frozen=True)
class _Site:
    """A statement that reads or writes an element."""

    position: int
    loops: _Loops
    index: tuple[Affine | None, ...]


class Known:
    """Facts about the numbers of a whole kernel: those that are set once, from others that are, and lengths."""

    def __init__(self, body: Block) -> None:
        statements = list(walk(body))
        times = Counter(name for one in statements if (name := defined(one)) is not None)
        self.operations = {
            name: op
            for name, op in definitions(body).items()
            if all(times[one] <= 1 for one in op.args if is_name(one))
        }
        self.lengths = {
            one.target
            for one in statements
            if isinstance(one, Set) and isinstance(one.value, Extent) and times[one.target] == 1
        }


def lasting_loads(loop: For | While, known: Known) -> dict[str, set[int]]:
    """For each array that a loop writes to, the statements, by identity, that read elements which stay as they are.

    Arrays that are used as a whole have none.
    """
    sites = _Sites(loop, known)
    found: dict[str, set[int]] = {}
    for array, writes in sites.writes.items():
        reads = sites.reads.get(array, {})
        whole = array in sites.whole
        found[array] = {
            key for key, read in reads.items() if not whole and all(sites.is_before(read, one) for one in writes)
        }
    return found


class _Sites:
    """The reads and writes of a loop."""

    def __init__(self, loop: For | While, known: Known) -> None:
        self.operations = {**known.operations, **definitions(loop.body)}
        self.changing = assigned((loop,))
        self.lengths = known.lengths
        self.counts: dict[str, Affine] = {}
        self.reads: dict[str, dict[int, _Site]] = {}
        self.writes: dict[str, list[_Site]] = {}
        self.whole: set[str] = set()
        self.position = 0
        self.turns = Counter(one.turn for one in walk((loop,)) if isinstance(one, For))
        self.visit((loop,), ())

    def visit(self, block: Iterable[Statement], loops: _Loops) -> None:
        """Note the sites of a block."""
        for statement in block:
            self.position += 1
            match statement:
                case Set(_, Load(array, index)):
                    self.reads.setdefault(array, {})[id(statement)] = self.site(index, loops)
                case Store(array, index):
                    self.writes.setdefault(array, []).append(self.site(index, loops))
                case Set(_, Op(arrays=arrays)):
                    self.whole.update(arrays)
                case Copy(array, source) | Alias(array, source):
                    self.whole.update((array, source))
                case New(array):
                    # Another array in each turn.
                    self.whole.add(array)
                case For(turn, count):
                    form = affine(count, self.operations)
                    if self.turns[turn] == 1 and self.is_fixed(form, loops):
                        self.counts[turn] = form
                case _:
                    pass
            for inner in blocks_in(statement):
                own = (id(statement), statement.turn if isinstance(statement, For) else "")
                self.visit(inner, (*loops, own) if isinstance(statement, For | While) else loops)

    def site(self, index: tuple[Atom, ...], loops: _Loops) -> _Site:
        forms = [affine(one, self.operations) for one in index]
        return _Site(self.position, loops, tuple([one if self.is_fixed(one, loops) else None for one in forms]))

    def is_fixed(self, form: Affine, loops: _Loops) -> bool:
        """Whether a sum is made of numbers that are the same throughout, and of turns of the loops around it."""
        turns = {turn for _, turn in loops}
        return all(name in turns or name not in self.changing for name in form)

    # ----- Order -----

    def is_before(self, read: _Site, write: _Site) -> bool:
        """Whether no write comes after a read of the same element."""
        common = 0
        while common < min(len(read.loops), len(write.loops)) and read.loops[common] == write.loops[common]:
            common += 1
        cases = [*range(common), common] if write.position > read.position else [*range(common)]
        return all(
            any(self.differ(one, other, read.loops, write.loops, case) for one, other in self.axes(read, write))
            for case in cases
        )

    def axes(self, read: _Site, write: _Site) -> list[tuple[Affine, Affine]]:
        """The axes along which both indices are known, and not negative."""
        return [
            (one, other)
            for one, other in zip(read.index, write.index, strict=True)
            if one is not None and other is not None and self.is_natural(one) and self.is_natural(other)
        ]

    def is_natural(self, form: Mapping[Atom, int]) -> bool:
        """Whether a sum is certainly not negative."""
        now = dict(form)
        for _ in range(len(self.counts) + 1):
            falling = next((name for name, factor in now.items() if factor < 0 and name in self.counts), None)
            if falling is None:
                break
            factor = now.pop(falling)
            for name, other in self.counts[falling].items():
                now[name] = now.get(name, 0) + factor * other
            now["1"] = now.get("1", 0) - factor
        return all(
            factor == 0 or (factor > 0 and (name == "1" or name in self.turns or name in self.lengths))
            for name, factor in now.items()
        )

    def differ(self, read: Affine, write: Affine, reads: _Loops, writes: _Loops, case: int) -> bool:
        """Whether two indices differ if the write comes later: in turns of loop `case`, or after all common ones."""
        total: Counter[tuple[str, str]] = Counter()
        for form, loops, sign, kind in ((write, writes, 1, "write"), (read, reads, -1, "read")):
            levels = {turn: level for level, (_, turn) in enumerate(loops) if turn}
            for name, factor in form.items():
                level = levels.get(name, -1)
                total["same" if level <= case and level < self.shared(reads, writes) else kind, name] += sign * factor
                if level == case and kind == "write" and level < self.shared(reads, writes):
                    total["later", name] += factor
        low = high = 0
        above = below = True
        for (kind, name), factor in total.items():
            if name == "1":
                low += factor
                high += factor
            elif kind == "later":
                low += factor
                high += factor
                above &= factor >= 0
                below &= factor <= 0
            elif factor and name not in self.turns:
                return False
            else:
                above &= factor >= 0
                below &= factor <= 0
        return (above and low > 0) or (below and high < 0)

    def shared(self, reads: _Loops, writes: _Loops) -> int:
        """The number of loops around both."""
        return next(
            (k for k, (one, other) in enumerate(zip(reads, writes, strict=False)) if one != other),
            min(len(reads), len(writes)),
        )
