"""Facts about blocks of statements: numbers that are live, names that carry derivatives, elements that turns own.

In: blocks of kernel_statements.py. Out: sets of names. Called by reverse.py, tangent.py and array_plans.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from .kernel_statements import (
    Alias,
    Atom,
    Block,
    Break,
    Copy,
    For,
    If,
    Load,
    Op,
    Set,
    Statement,
    Store,
    While,
    assigned,
    atoms_of,
    blocks_in,
    defined,
    is_name,
    walk,
)


def live_at_start(
    block: Block, after: frozenset[str] = frozenset(), at_break: frozenset[str] = frozenset()
) -> frozenset[str]:
    """The numbers whose value at the start of a block is read in it, or after it if they are in `after`."""
    live = after
    for statement in reversed(block):
        names = frozenset([atom for atom in atoms_of(statement) if is_name(atom)])
        match statement:
            case Set(target):
                live = (live - {target}) | names
            case If(_, then, orelse):
                live = live_at_start(then, live, at_break) | live_at_start(orelse, live, at_break) | names
            case For(turn, _, body):
                live = live | (live_in_turns(body, live) - {turn}) | names
            case While(body):
                live = live_in_turns(body, frozenset(), live) | names
            case Break():
                live = at_break
            case _:
                live = live | names
    return live


def live_in_turns(body: Block, after: frozenset[str], at_break: frozenset[str] | None = None) -> frozenset[str]:
    """The numbers whose value at the start of a turn is read in that turn, a later one, or after the loop."""
    # A turn adds names that it reads to those that are live after it, and takes away others. So all that a later turn
    # reads is live at the start of this one as well, and a second round would find nothing more.
    return after | live_at_start(body, after, after if at_break is None else at_break)


def carried_by_turns(body: Block) -> frozenset[str]:
    """The numbers whose value at the start of a turn of a loop may be read in it.

    A number that is set once, in a branch, and read later in branches of the same test only, is not among them.
    """
    return _without_guarded(body, live_in_turns(body, frozenset()))


def unset_at_start(body: Block, after: frozenset[str]) -> frozenset[str]:
    """The numbers that a block may read before it sets them; `after` are read after it."""
    return _without_guarded(body, live_at_start(body, after))


def _without_guarded(body: Block, found: frozenset[str]) -> frozenset[str]:
    """The numbers without those that are read only where they are set, by the same tests."""
    sites: dict[str, list[tuple[_Path, bool]]] = {name: [] for name in found}
    tests: Counter[str] = Counter()
    _note_sites(body, (), sites, tests)
    return frozenset([name for name in found if not _is_set_where_read(sites[name], tests)])


_Path = tuple[tuple[int, str, int], ...]
"""Positions in blocks, each with the test of the branch that is entered there, and its side; "?" for loops."""


def _note_sites(body: Block, here: _Path, sites: dict[str, list[tuple[_Path, bool]]], tests: Counter[str]) -> None:
    for position, statement in enumerate(body):
        for atom in atoms_of(statement):
            if atom in sites:
                sites[atom].append(((*here, (position, "", 0)), False))
        name = defined(statement)
        if name is not None:
            tests[name] += 1
            if name in sites:
                sites[name].append(((*here, (position, "", 0)), True))
        for side, inner in enumerate(blocks_in(statement)):
            test = statement.test if isinstance(statement, If) else "?"
            _note_sites(inner, (*here, (position, test, side)), sites, tests)


def _is_set_where_read(sites: list[tuple[_Path, bool]], tests: Counter[str]) -> bool:
    """Whether all reads come after the one place at which a number is set, under the same tests."""
    places = [path for path, sets in sites if sets]
    if len(places) != 1:
        return False
    (place,) = places
    for path, sets in sites:
        if sets:
            continue
        depth = next((k for k, (one, other) in enumerate(zip(place, path, strict=False)) if one != other), None)
        if depth is None or place[depth][0] >= path[depth][0]:
            return False
        asked = {(test, side) for _, test, side in path[depth:]}
        needed = {(test, side) for _, test, side in place[depth:] if test}
        if not needed <= asked or any(test == "?" or tests[test] > 1 for test, _ in needed):
            return False
    return True


def is_float(dtype: str | None) -> bool:
    """Whether numbers of a dtype carry derivatives."""
    return dtype is not None and dtype.startswith("float")


def active_names(body: Block, wanted: Iterable[str], dtypes: Mapping[str, str]) -> set[str]:
    """The numbers and arrays that depend on the wanted arguments in a differentiable way."""
    active = set(wanted)
    statements = list(walk(body))
    while True:
        before = len(active)
        for statement in statements:
            match statement:
                case Set(target, Op(name, args)) if name and not active.isdisjoint(args):
                    found = target
                case Set(target, Load(array)) if array in active:
                    found = target
                case Store(array, _, value) if value in active:
                    found = array
                case Copy(array, source) | Alias(array, source) if array in active or source in active:
                    # Also backwards, so that there is a derivative to copy.
                    active.add(array)
                    found = source
                case _:
                    continue
            if is_float(dtypes.get(found)):
                active.add(found)
        if len(active) == before:
            return active


# ----- Elements that belong to one turn -----

Affine = dict[Atom, int]
"""A sum of names times integers; "1" is the constant."""


def definitions(body: Block) -> dict[str, Op]:
    """The operations that give numbers their values, of those that a block sets once, before it reads them."""
    carried = carried_by_turns(body)
    times = Counter(name for statement in walk(body) if (name := defined(statement)) is not None)
    return {
        statement.target: statement.value
        for statement in walk(body)
        if isinstance(statement, Set)
        and isinstance(statement.value, Op)
        and times[statement.target] == 1
        and statement.target not in carried
    }


def affine(atom: Atom, known: Mapping[str, Op]) -> Affine:
    """An index as a sum of names that are not computed in the block."""
    if not is_name(atom):
        return {"1": int(atom)} if atom.lstrip("-").isdigit() else {atom: 1}
    op = known.get(atom)
    if op is None:
        return {atom: 1}
    parts = [affine(one, known) for one in op.args]
    match op.text, parts:
        case (("{0}" | "+{0}"), [one]):
            return one
        case "{0} + {1}", [one, other]:
            return _sum(one, other, 1)
        case "{0} - {1}", [one, other]:
            return _sum(one, other, -1)
        case "{0} * {1}", [one, other] if set(one) <= {"1"} or set(other) <= {"1"}:
            factor, rest = (one, other) if set(one) <= {"1"} else (other, one)
            return {name: count * factor.get("1", 0) for name, count in rest.items()}
        case text, [one] if text.startswith("{0} - ") and text[6:].isdigit():
            return _sum(one, {"1": int(text[6:])}, -1)
        case text, [one] if text.startswith("{0} * ") and text[6:].lstrip("-").isdigit():
            return {name: count * int(text[6:]) for name, count in one.items()}
        case text, [one, other] if text.startswith("{0} + {1} * ("):
            factor = int(text[13:-1])
            return _sum(one, {name: count * factor for name, count in other.items()}, 1)
        case _:
            return {atom: 1}


def _sum(one: Affine, other: Affine, sign: int) -> Affine:
    found = dict(one)
    for name, count in other.items():
        found[name] = found.get(name, 0) + sign * count
    return {name: count for name, count in found.items() if count}


def accesses(block: Iterable[Statement], array: str) -> list[tuple[Atom, ...]] | None:
    """The indices of all accesses to an array; None if it is also used as a whole."""
    found: list[tuple[Atom, ...]] = []
    for statement in walk(block):
        match statement:
            case Set(_, Load(name, index)) | Store(name, index) if name == array:
                found.append(index)
            case Set(_, Op(arrays=arrays)) if array in arrays:
                return None
            case Copy(_, source) | Alias(_, source) if source == array:
                return None
            case _:
                pass
    return found


def own_index(body: Block, array: str, turn: str) -> Affine | None:
    """The index, along one axis, by which each turn of a loop has elements of an array that no other turn has."""
    indices = accesses(body, array)
    if not indices:
        return None
    known = definitions(body)
    inside = assigned(body) | {turn}
    for axis in range(len(indices[0])):
        forms = [affine(index[axis], known) for index in indices]
        first = forms[0]
        others = set(first) - {"1", turn}
        if all(form == first for form in forms) and first.get(turn, 0) and others.isdisjoint(inside):
            return first
    return None
