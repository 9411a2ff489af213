"""Statements that something needs, without those that nothing does.

In: a block, and the names that are asked for. Out: the block without what none of them depends on: values stored for
nothing, whole loops whose results are not read. Called by reverse.py and derived.py, which write everything that may be
needed, and leave the choice to this pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .kernel_statements import (
    Alias,
    Atom,
    Block,
    Break,
    Copy,
    Extent,
    For,
    If,
    Load,
    New,
    Op,
    Room,
    Set,
    Statement,
    Store,
    Sync,
    While,
    atoms_of,
    is_name,
    walk,
    with_blocks,
)

_Uses = tuple[str, ...]


def _reads(statement: Statement) -> _Uses:
    """The names, of numbers and arrays, that a statement itself reads."""
    names = [atom for atom in atoms_of(statement) if is_name(atom)]
    match statement:
        case Set(_, Op(arrays=arrays)):
            names += arrays
        case Set(_, Extent(array)):
            names.append(_shape(array))
        case Set(_, Load(array)) | Copy(_, array) | Alias(_, array):
            names.append(array)
        case _:
            pass
    return tuple(names)


def _shape(array: str) -> str:
    """The name under which the shape of an array is needed or not: writing to the array does not change it."""
    return f"{array}.shape"


def _gives(statement: Statement) -> str | None:
    """The name that a statement itself changes."""
    match statement:
        case Set(name) | Store(name) | New(name) | Copy(name) | Alias(name) | Room(name) | For(name):
            return name
        case _:
            return None


def without_unused(block: Block, roots: Iterable[str]) -> Block:
    """The statements on which the values of some names depend."""
    reasons: dict[str, list[_Uses]] = {}

    def visit(body: Block, controls: _Uses, loop: str, own: _Uses = ()) -> None:
        """`own` are those of the controls that stand in the same loop."""
        for statement in body:
            if any(isinstance(one, Sync) for one in walk([statement])):
                # A loop that needs nothing else is one barrier: where there is a barrier does not depend on its turns.
                inside = _reads(statement) if isinstance(statement, If) else ()
                reasons.setdefault(f"barrier of {loop}", []).append((*own, *inside))
            name = f"break of {loop}" if isinstance(statement, Break) else _gives(statement)
            if name is not None:
                uses = (*_reads(statement), *controls)
                reasons.setdefault(name, []).append(uses)
                if isinstance(statement, New | Copy | Alias | Room):
                    reasons.setdefault(_shape(name), []).append(uses)
            match statement:
                case If(_, then, orelse):
                    more = _reads(statement)
                    visit(then, (*controls, *more), loop, (*own, *more))
                    visit(orelse, (*controls, *more), loop, (*own, *more))
                case For(_, _, inside) | While(inside):
                    turns = str(id(statement))
                    with_loop = (*_reads(statement), f"break of {turns}", f"barrier of {turns}")
                    visit(inside, (*controls, *with_loop), turns)
                case _:
                    pass

    visit(block, (), "")
    live: set[str] = set()
    work = [*roots, "barrier of "]
    while work:
        name = work.pop()
        if name not in live:
            live.add(name)
            for uses in reasons.get(name, ()):
                work += uses

    def kept(body: Block, loop: str) -> Block:
        found: list[Statement] = []
        for statement in body:
            match statement:
                case If(test, then, orelse):
                    sides = kept(then, loop), kept(orelse, loop)
                    if sides[0] or sides[1]:
                        found.append(If(test, *sides))
                case For(turn, _, inside):
                    rest = kept(inside, str(id(statement)))
                    if _is_idle(rest) and turn not in live:
                        found += _barrier(rest)
                    else:
                        found.append(replace(statement, body=rest))
                case While(inside):
                    rest = kept(inside, str(id(statement)))
                    found += _barrier(rest) if _is_idle(rest) else (replace(statement, body=rest),)
                case Break():
                    if f"break of {loop}" in live:
                        found.append(statement)
                case Sync():
                    found.append(statement)
                case _:
                    makes = isinstance(statement, New | Copy | Alias | Room)
                    if _gives(statement) in live or (makes and _shape(statement.array) in live):
                        found.append(statement)
        return tuple([one for k, one in enumerate(found) if k == 0 or not one == found[k - 1] == Sync()])

    return kept(block, "")


def _is_idle(body: Block) -> bool:
    """Whether a block does nothing but leave the loop around it, and wait."""
    return all(
        isinstance(one, Break | Sync) or (isinstance(one, If) and _is_idle(one.then) and _is_idle(one.orelse))
        for one in body
    )


def _barrier(body: Block) -> Block:
    """One barrier, if there is any in a block."""
    return (Sync(),) if any(isinstance(one, Sync) for one in walk(body)) else ()


def with_plain_copies(block: Block) -> Block:
    """A block in which copies of arrays are the arrays themselves, where neither is changed afterwards."""
    while True:
        written = _written(block)
        copies = {
            statement.array: statement.source
            for statement in walk(block)
            if isinstance(statement, Copy) and statement.array not in written and statement.source not in written
        }
        if not copies:
            return block
        block = _aliased(block, copies)


def _written(block: Block) -> set[str]:
    """The arrays whose elements change, under any of their names."""
    found = {statement.array for statement in walk(block) if isinstance(statement, Store)}
    pairs = [(one.array, one.source) for one in walk(block) if isinstance(one, Alias)]
    changed = True
    while changed:
        changed = False
        for one, other in pairs:
            if (one in found) != (other in found):
                found |= {one, other}
                changed = True
    return found


def _aliased(block: Block, copies: dict[str, Atom]) -> Block:
    return tuple(
        [
            Alias(one.array, one.source)
            if isinstance(one, Copy) and one.array in copies
            else with_blocks(one, lambda inner: _aliased(inner, copies))
            for one in block
        ]
    )
