"""Statements without copies of numbers, and without zeros that are overwritten or never read.

In: a block, and the names that are asked for. Out: a shorter block with the same results. Called by reverse.py.

Two kinds of copies go. `x = y` makes `x` another name of `y`, if both are set once, `y` earlier in the same block or in
one around it, and `x` is read in the rest of its own block only. And a sum that runs through a loop unchanged,
`x = v` at the start of a turn and `v = x` at its end, is `v` all the time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from ..dataflow import accesses, affine, definitions
from ..kernel_statements import (
    Atom,
    Block,
    For,
    Load,
    New,
    Op,
    Set,
    Statement,
    Store,
    While,
    assigned,
    atoms_of,
    blocks_in,
    breaks,
    is_name,
    loaded,
    made,
    renamed,
    stored,
    with_blocks,
)
from .independence import aliased_arrays

_Path = tuple[int, ...]
"""A place: the position of a statement, then the number of a block in it, the position of a statement there, ..."""


def shortened(block: Block, roots: Iterable[str]) -> Block:
    """A block without needless copies and zeros; `roots` are the numbers and arrays that are asked for."""
    kept = frozenset(roots)
    while True:
        shorter = _without_copies(_without_constant_sums(block, kept), kept)
        if shorter == block:
            break
        block = shorter
    aliased = aliased_arrays(block)
    return _without_dead_zeros(_without_overwritten_zeros(block, aliased), kept | aliased)


# ----- Copies -----


def _places(block: Block, here: _Path = ()) -> Iterator[tuple[_Path, Statement]]:
    for position, statement in enumerate(block):
        yield (*here, position), statement
        for k, inner in enumerate(blocks_in(statement)):
            yield from _places(inner, (*here, position, k))


def _is_before(one: _Path, other: _Path) -> bool:
    """Whether a statement stands before another one, in the same block or in one around it."""
    return len(one) <= len(other) and one[:-1] == other[: len(one) - 1] and one[-1] < other[len(one) - 1]


class _Names:
    """The places at which each number gets a value, and those at which it is read."""

    def __init__(self, block: Block) -> None:
        self.set_at: dict[str, list[_Path]] = defaultdict(list)
        self.read_at: dict[str, list[_Path]] = defaultdict(list)
        self.copies: dict[_Path, Set] = {}
        for path, statement in _places(block):
            if isinstance(statement, For):
                self.set_at[statement.turn].append((*path, 0, -1))
            elif isinstance(statement, Set):
                self.set_at[statement.target].append(path)
                if isinstance(statement.value, Op) and statement.value.text == "{0}":
                    self.copies[path] = statement
            for atom in atoms_of(statement):
                self.read_at[atom].append(path)


def _source(statement: Set) -> Atom:
    assert isinstance(statement.value, Op)
    return statement.value.args[0]


def _without_copies(block: Block, kept: frozenset[str]) -> Block:
    """A block in which a copy of a number is the number itself."""
    names = _Names(block)
    same: dict[str, str] = {}
    for path, statement in names.copies.items():
        target, source = statement.target, _source(statement)
        if not is_name(source) or target in kept or len(names.set_at[target]) > 1 or len(names.set_at[source]) > 1:
            continue
        if not all(_is_before(one, path) for one in names.set_at[source]):
            continue
        if all(_is_before(path, one) for one in names.read_at[target]):
            same[target] = source
    if not same:
        return block

    def number(name: str) -> str:
        while name in same:
            name = same[name]
        return name

    def without(body: Block) -> Block:
        return tuple([with_blocks(one, without) for one in body if not (isinstance(one, Set) and one.target in same)])

    return renamed(without(block), number)


def _without_constant_sums(block: Block, kept: frozenset[str]) -> Block:
    """A block without `v = x` where `x` is a copy of `v`, made earlier in the same block."""
    names = _Names(block)
    gone: set[_Path] = set()
    for path, statement in names.copies.items():
        target, source = statement.target, _source(statement)
        places = names.set_at[target]
        first = names.set_at.get(source, [])
        if len(places) != 2 or len(first) != 1 or first[0] not in names.copies:
            continue
        (start,) = [one for one in places if one != path]
        copy = names.copies[first[0]]
        is_copy = _source(copy) == target and first[0][:-1] == path[:-1] and first[0][-1] < path[-1]
        # The other value of `v` comes from a block around this one, so that none is set in between.
        if is_copy and len(start) < len(path) and _is_before(start, path):
            gone.add(path)
    if not gone:
        return block

    def without(body: Block, here: _Path) -> Block:
        found: list[Statement] = []
        for position, statement in enumerate(body):
            path = (*here, position)
            if path not in gone:
                count = iter(range(2))
                found.append(with_blocks(statement, lambda inner, p=path, c=count: without(inner, (*p, next(c)))))
        return tuple(found)

    return without(block, ())


# ----- Zeros -----


def _touches(statement: Statement, array: str) -> bool:
    inner = [statement]
    return array in loaded(inner) or array in stored(inner) or array in made(inner)


def _without_overwritten_zeros(block: Block, aliased: frozenset[str]) -> Block:
    """A block in which `a[i] = 0` and a later `a[i] += x` are `a[i] = x`."""
    found: list[Statement | None] = [
        with_blocks(one, lambda inner: _without_overwritten_zeros(inner, aliased)) for one in block
    ]
    for position, zero in enumerate(list(found)):
        if not (isinstance(zero, Store) and zero.value == "0.0" and not zero.add) or zero.array in aliased:
            continue
        for later in range(position + 1, len(found)):
            other = found[later]
            if other is None:
                continue
            if isinstance(other, Store) and (other.array, other.index) == (zero.array, zero.index):
                if other.add:
                    found[later] = Store(other.array, other.index, other.value)
                    found[position] = None
                break
            if _touches(other, zero.array) or breaks([other]) or assigned([other]) & set(zero.index):
                break
    return tuple([one for one in found if one is not None])


def _without_dead_zeros(block: Block, kept: frozenset[str]) -> Block:
    """A block without the zeros in arrays that are not asked for, of which every element is read once at most."""
    zeros = {
        one.array for _, one in _places(block) if isinstance(one, Store) and one.value == "0.0" and not one.add
    } - kept
    dead = {array for array in zeros if _read_once(block, array)}
    if not dead:
        return block

    def without(body: Block) -> Block:
        return tuple([with_blocks(one, without) for one in body if not (isinstance(one, Store) and one.array in dead)])

    return without(block)


def _read_once(block: Block, array: str) -> bool:
    """Whether a block reads each element of an array once at most, and then sets it to zero."""
    indices = accesses(block, array)
    sites = [(path, one) for path, one in _places(block) if _touches_itself(one, array)]
    if indices is None or len(sites) != 2 or indices[0] != indices[1]:
        return False
    (first, load), (second, zero) = sites
    if not (isinstance(load, Set) and isinstance(zero, Store) and _is_before(first, second)):
        return False
    if zero.add or zero.value != "0.0" or first[:-1] != second[:-1]:
        return False
    loops: list[str] = []
    outermost: Block = ()
    body = block
    for depth in range(0, len(first) - 1, 2):
        statement = body[first[depth]]
        if isinstance(statement, While):
            return False
        if isinstance(statement, For):
            outermost = outermost or statement.body
            loops.append(statement.turn)
        body = blocks_in(statement)[first[depth + 1]]
    return is_injective(indices[0], loops, outermost)


def _touches_itself(statement: Statement, array: str) -> bool:
    match statement:
        case Set(_, Load(name)) | Store(name) | New(name):
            return name == array
        case Set(_, Op(arrays=arrays)):
            return array in arrays
        case _:
            return False


def is_injective(index: tuple[Atom, ...], loops: Iterable[str], body: Block) -> bool:
    """Whether turns of loops have different elements at an index, none of which is counted from an array's end.

    So it is if the number of each loop stands along an axis of its own, with a positive factor, beside positive
    constants.
    """
    known = definitions(body)
    forms = [affine(atom, known) for atom in index]
    axes: list[int] = []
    for loop in loops:
        places = [axis for axis, form in enumerate(forms) if loop in form]
        if len(places) != 1 or not _is_positive(forms[places[0]], loop):
            return False
        axes.append(places[0])
    return len(set(axes)) == len(axes)


def _is_positive(form: Mapping[Atom, int], loop: str) -> bool:
    return set(form) <= {loop, "1"} and form[loop] > 0 and form.get("1", 0) >= 0
