"""Values that were computed before, read instead of computed again.

In: a block of a derivative, and the names that are read after it. Out: the block in which an operation on the same
values, or a read of the same element with no write to its array in between, is a copy of the number that has the value,
or that number itself. Called by derived.py. LLVM finds most of these, too, but not across two branches of the same
test, where the backward run of a branch needs the cosine of the forward run.

Each number has the identity of its value: that of the operation and the identities of its operands. Of numbers that
were set in one of two branches, a later branch of the same test sees the identities at the end of the earlier one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .kernel_statements import (
    Block,
    Expression,
    Extent,
    For,
    If,
    Load,
    Op,
    Room,
    Set,
    Statement,
    Sync,
    While,
    assigned,
    atoms_of,
    copied,
    defined,
    made,
    renamed,
    stored,
    walk,
    with_blocks,
)
from .turns.independence import aliased_arrays

_CALLED = re.compile(r"([A-Za-z_][\w.]*)\(")
_PURE = frozenset("abs bool float int len max min plus pow round".split())
"""Functions besides those of `math` and `np` whose results depend on their arguments only."""


def with_common_values(block: Block, after: Collection[str], dtypes: Mapping[str, str]) -> Block:
    """A block in which values are computed once; `dtypes` are those of its numbers, as far as they are known."""
    numbering = _Numbering(block, after, dtypes)
    found = numbering.block(block)
    return renamed(found, lambda name: numbering.names.get(name, name)) if numbering.names else found


@dataclass(frozen=True)
class _Split:
    """The identities of a number at the ends of the two branches of a test."""

    test: int
    ends: tuple[int, int]


class _Numbering:
    """The walk through a block; `names` are numbers that are others under another name."""

    def __init__(self, whole: Block, after: Collection[str], dtypes: Mapping[str, str]) -> None:
        statements = list(walk(whole))
        self.sets = Counter(name for one in statements if (name := defined(one)) is not None)
        self.uses = Counter(atom for one in statements for atom in atoms_of(one))
        self.aliased = aliased_arrays(whole)
        self.after, self.dtypes = frozenset(after), dtypes
        self.now: dict[str, int] = {}
        """The identity of the value of each number and literal, and of the contents and the shape of each array."""
        self.values: dict[Any, int] = {}
        """The identity of each operation on identities."""
        self.holders: dict[int, list[str]] = {}
        """The numbers that got a value, some of which may have lost it."""
        self.splits: dict[int, _Split] = {}
        self.names: dict[str, str] = {}
        self.last = 0

    def fresh(self) -> int:
        """A new identity."""
        self.last += 1
        return self.last

    def identity(self, name: str) -> int:
        """The identity of what a name stands for now."""
        if name not in self.now:
            self.now[name] = self.fresh()
        return self.now[name]

    def forget(self, names: Iterable[str]) -> None:
        """Some names stand for something else from now on."""
        for name in names:
            self.now[name] = self.fresh()

    def key(self, value: Expression) -> Any:
        """An operation on identities; None if it may give something else the next time."""
        match value:
            case Op(_, args, text, arrays):
                if not all(name in _PURE or name.startswith(("math.", "np.")) for name in _CALLED.findall(text)):
                    return None
                return text, *map(self.identity, args), *[self.identity(array) for array in arrays]
            case Load(array, index):
                return None if array in self.aliased else ("load", *map(self.identity, (array, *index)))
            case Extent(array, axis):
                return "extent", axis, self.identity(_shape(array))

    # ----- Statements -----

    def block(self, block: Block) -> Block:
        """A block without values that are there already."""
        found: list[Statement] = []
        for position, statement in enumerate(block):
            match statement:
                case Set():
                    kept = self.number(statement, block[position + 1 :])
                    found += [] if kept is None else [kept]
                case If():
                    found.append(self.branches(statement))
                case For() | While():
                    changed = _changed((statement,))
                    self.forget(changed)
                    found.append(with_blocks(statement, self.block))
                    self.forget(changed)
                case Sync():
                    self.forget(list(self.now))
                    found.append(statement)
                case _:
                    self.forget(_changed((statement,)))
                    found.append(statement)
        return tuple(found)

    def number(self, statement: Set, rest: Block) -> Set | None:
        """A number that is set; None if it is another one in all that follows."""
        target, value = statement.target, statement.value
        if isinstance(value, Op) and value.text == "{0}":
            # Where a number has several sources, it may have another dtype than each of them.
            self.now[target] = self.fresh() if self.sets[target] > 1 else self.identity(value.args[0])
            return statement
        key = self.key(value)
        known = self.values.get(key) if key is not None else None
        if known is None:
            self.now[target] = known = self.fresh()
            if key is not None:
                self.values[key] = known
                self.holders[known] = [target]
            return statement
        holder = next(
            (one for one in self.holders[known] if self.now.get(one) == known and self.is_like(one, target)), None
        )
        self.now[target] = known
        if holder is None or holder == target:
            self.holders[known].append(target)
            return statement
        if self.sets[target] == self.sets[holder] == 1 and target not in self.after:
            inside = sum(atoms_of(one).count(target) for one in walk(rest))
            if inside == self.uses[target]:
                self.names[target] = holder
                return None
        self.holders[known].append(target)
        return Set(target, copied(holder))

    def is_like(self, holder: str, target: str) -> bool:
        """Whether one number has certainly the dtype of another with the same value."""
        if self.sets[holder] == self.sets[target] == 1:
            return True
        dtype = self.dtypes.get(holder)
        return dtype is not None and dtype == self.dtypes.get(target)

    def branches(self, statement: If) -> If:
        """Two branches, each with the identities that an earlier test of the same value has left."""
        test, start = self.identity(statement.test), dict(self.now)
        blocks: list[Block] = []
        ends: list[dict[str, int]] = []
        for side, block in enumerate((statement.then, statement.orelse)):
            self.now = {name: self.after_test(known, test, side) for name, known in start.items()}
            blocks.append(self.block(block))
            ends.append(self.now)
        self.now = {}
        changed = _changed((statement,))
        for name in {**ends[0], **ends[1]}:
            pair = [end.get(name, 0) for end in ends]
            if 0 in pair and name not in changed:
                pair = [max(pair)] * 2  # first met in one of the branches
            before = self.splits.get(start.get(name, 0))
            if pair[0] == pair[1]:
                self.now[name] = pair[0]
            elif before == (split := _Split(test, (pair[0], pair[1]))):
                self.now[name] = start[name]
            else:
                self.now[name] = self.fresh()
                self.splits[self.now[name]] = split
        return If(statement.test, blocks[0], blocks[1])

    def after_test(self, known: int, test: int, side: int) -> int:
        """The identity that a value has in a branch of a test."""
        split = self.splits.get(known)
        return split.ends[side] or known if split is not None and split.test == test else known


def _shape(array: str) -> str:
    return f"{array}.shape"


def _changed(block: Block) -> set[str]:
    """The numbers, the contents and the shapes of arrays that a block may change."""
    rooms = {one.array for one in walk(block) if isinstance(one, Room)}
    arrays = made(block) | rooms
    return assigned(block) | stored(block) | arrays | {_shape(array) for array in arrays}
