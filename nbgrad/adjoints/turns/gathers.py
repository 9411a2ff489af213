"""Stencils backwards: each element collects what the turns around it add to it.

In: a block of a derivative. Out: the block in which nests of loops that add to `a[i - 1]`, `a[i]` and `a[i + 1]` go
over the elements instead, each of which is written once. Called by derived.py.

A statement that adds `v(s)` to element `s + d` of turn s, adds `v(t - d)` to element t. So the nest becomes three:
- the inner elements, to which all the statements add: a sum of values, each computed for another turn;
- the turns near the edges, which add what goes to other elements than the inner ones;
- elements that are set to zero after they were read.

Every turn of every statement runs once, with the index that it had, so that only the order of additions changes. Values
that are dear to compute again are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..dataflow import affine, definitions, live_in_turns
from ..kernel_statements import (
    Atom,
    Block,
    Expression,
    Extent,
    For,
    If,
    Load,
    Op,
    Set,
    Statement,
    Store,
    assigned,
    atoms_of,
    is_name,
    loaded,
    renamed,
)
from .independence import NewNames, aliased_arrays, independence, is_positive, with_loops

_DEARER = 1.5
"""How much more a gather may compute than the loop it replaces; it needs no order of turns, and writes less."""
_Shift = tuple[int, ...]


def with_gathers(block: Block, after: Iterable[str]) -> Block:
    """A block in which nests of loops over stencils collect; `after` are the numbers that are read after it."""
    writer = _Writer(block)
    return with_loops(block, frozenset(after), writer.replace)


@dataclass
class _Nest:
    """Loops around statements without branches, whose order does not matter.

    `levels` are the statements of each loop before the one in it; the statements of the innermost one are its sets,
    then the stores that add, and those of zeros.
    """

    loops: list[tuple[str, Atom]] = field(default_factory=list)
    levels: list[list[Set]] = field(default_factory=list)
    sums: list[Set] = field(default_factory=list)
    added: list[tuple[Store, _Shift]] = field(default_factory=list)
    groups: list[list[int]] = field(default_factory=list)
    zeros: list[Store] = field(default_factory=list)
    parallel: bool = False

    @property
    def sets(self) -> dict[str, Set]:
        """The numbers that it computes."""
        return {one.target: one for level in self.levels for one in level}


class _Writer(NewNames):
    def __init__(self, block: Block) -> None:
        super().__init__(block)
        self.aliased = aliased_arrays(block)

    def replace(self, loop: For, after: frozenset[str]) -> tuple[Statement, ...] | None:
        """The statements that stand for a nest of loops; None where it stays."""
        before: list[Statement] = []
        nest = self.nest(loop, after, before)
        if nest is None or not _is_cheap(nest):
            return None
        shifts = [shift for _, shift in nest.added]
        low = [max(0, *(shift[k] for shift in shifts)) for k in range(len(nest.loops))]
        high = [min(0, *(shift[k] for shift in shifts)) for k in range(len(nest.loops))]
        lengths: list[Atom] = []
        for (_, count), one, other in zip(nest.loops, low, high, strict=True):
            lengths.append(self.new("inner"))
            before.append(Set(lengths[-1], Op("", (count,), f"{{0}} - {one - other}")))
        inside = self.inner_elements(nest, low, lengths)
        zeros = _Copies(self, nest, [0] * len(nest.loops))
        for zero in nest.zeros:
            index = tuple([zeros.atom(one, zeros.still) for one in zero.index])
            zeros.lines[-1].append(Store(zero.array, index, "0.0"))
        cleared = [zeros.loops([count for _, count in nest.loops])] if nest.zeros else []
        edges = self.edges(nest, low, high, before)
        return *before, inside, *edges, *cleared

    # ----- Finding nests -----

    def nest(self, loop: For, after: frozenset[str], before: list[Statement]) -> _Nest | None:
        """A loop as a nest over a stencil; None if it is none. Numbers that are the same throughout go before it."""
        nest = _Nest(parallel=loop.parallel)
        changing = assigned((loop,))
        current, live = loop, after
        inner: list[Statement] = []
        while True:
            shared = independence(current, live, self.aliased)
            if shared is None or not all(is_positive(one, current.turn) for one in shared.own.values()):
                return None
            if current.count in changing:
                return None
            nest.loops.append((current.turn, current.count))
            live = live | live_in_turns(current.body, live)
            if not current.body or not isinstance(current.body[-1], For):
                inner = list(current.body)
                break
            first, last = current.body[:-1], current.body[-1]
            assert isinstance(last, For)
            level: list[Set] = []
            for one in first:
                if not isinstance(one, Set):
                    return None
                if not isinstance(one.value, Load) and changing.isdisjoint(atoms_of(one)):
                    before.append(one)
                    changing.discard(one.target)
                else:
                    level.append(one)
            nest.levels.append(level)
            current = last
        whole = independence(loop, after, self.aliased)
        return (
            nest if whole and self.statements(nest, inner, whole.sums) and self.grouped(nest, loop, changing) else None
        )

    def statements(self, nest: _Nest, inner: list[Statement], sums: Sequence[str]) -> bool:
        """Put the statements of the innermost loop into their places; gives whether all have one."""
        nest.levels.append([])
        for one in inner:
            match one:
                case Set(target) if target in sums:
                    nest.sums.append(one)
                case Set():
                    if not loaded([one]).isdisjoint(zero.array for zero in nest.zeros):
                        return False
                    nest.levels[-1].append(one)
                case Store(_, _, _, True):
                    nest.added.append((one, ()))
                case Store(_, _, "0.0"):
                    nest.zeros.append(one)
                case _:
                    return False
        names = [one.target for level in nest.levels for one in level]
        if len(set(names)) != len(names) or not set(names).isdisjoint(sums):
            return False
        return all(zero.array != one.array for zero in nest.zeros for one, _ in nest.added)

    def grouped(self, nest: _Nest, loop: For, changing: set[str]) -> bool:
        """Find the stores that add to the same elements in other turns; gives whether there are any."""
        known = definitions(loop.body)
        turns = [turn for turn, _ in nest.loops]
        stores = [store for store, _ in nest.added]
        groups: dict[object, list[tuple[int, tuple[int, ...]]]] = {}
        for position, store in enumerate(stores):
            forms = [affine(one, known) for one in store.index]
            constants: list[int] = []
            is_free = all(name in turns or name not in changing for form in forms for name in form)
            for turn in turns:
                axes = [form for form in forms if turn in form]
                is_free &= len(axes) <= 1 and all(abs(form[turn]) == 1 for form in axes)
                is_free &= all(len([one for one in turns if one in form]) == 1 for form in axes)
                constants.append(sum(form.get("1", 0) * form[turn] for form in axes))
            key = (
                store.array,
                *[
                    frozenset((k, v) for k, v in form.items() if k != "1" or not set(turns) & set(form))
                    for form in forms
                ],
            )
            groups.setdefault(key if is_free else position, []).append((position, tuple(constants)))
        found: dict[int, _Shift] = {}
        for members in groups.values():
            # One of the middle stays in its turn.
            middle = min(
                members, key=lambda one: sum(abs(a - b) for _, c in members for a, b in zip(one[1], c, strict=True))
            )
            for position, own in members:
                found[position] = tuple([a - b for a, b in zip(own, middle[1], strict=True)])
            nest.groups.append(sorted([position for position, _ in members], key=lambda k: any(found[k])))
        nest.added = [(store, found[k]) for k, store in enumerate(stores)]
        return any(any(shift) for _, shift in nest.added)

    # ----- Writing -----

    def inner_elements(self, nest: _Nest, low: list[int], lengths: list[Atom]) -> Statement:
        """The elements to which all statements add."""
        copies = _Copies(self, nest, low)
        for group in nest.groups:
            first, _ = nest.added[group[0]]
            index = tuple([copies.atom(one, copies.still) for one in first.index])
            total: Atom = ""
            for store, shift in [nest.added[k] for k in group]:
                value = copies.atom(store.value, shift)
                if total:
                    value = copies.put("sum", Op("add", (total, value), "{0} + {1}"))
                total = value
            copies.lines[-1].append(Store(first.array, index, total, True))
        for one in nest.sums:
            assert isinstance(one.value, Op)
            value = copies.atom(one.value.args[1], copies.still)
            copies.lines[-1].append(Set(one.target, Op("add", (one.target, value), one.value.text)))
        return copies.loops(lengths)

    def edges(self, nest: _Nest, low: list[int], high: list[int], before: list[Statement]) -> Block:
        """The turns that add to other elements than the inner ones."""
        turns = [turn for turn, _ in nest.loops]
        sums = {one.target for one in nest.sums}
        names = {name: self.new(name) for name in (*turns, *nest.sets)}
        bounds: list[tuple[str, str]] = []
        for (_, count), one, other in zip(nest.loops, low, high, strict=True):
            bounds.append((str(one), self.new("end")))
            before.append(Set(bounds[-1][1], Op("", (count,), f"{{0}} - {-other}")))
        blocks: list[list[Statement]] = [
            list(renamed(tuple(level), lambda name: names.get(name, name))) for level in nest.levels
        ]
        tests: dict[_Shift, list[Statement]] = {}
        for one in nest.sums:
            assert isinstance(one.value, Op)
            value = names.get(one.value.args[1], one.value.args[1])
            add = Set(one.target, Op("add", (one.target, value), one.value.text))
            tests.setdefault((0,) * len(turns), []).append(add)
        for store, shift in nest.added:
            (moved,) = renamed((store,), lambda name: names.get(name, name))
            tests.setdefault(shift, []).append(moved)
        assert sums.isdisjoint(names)
        for shift, lines in tests.items():
            test = self.new("outside")
            parts, atoms = [], []
            for k, (turn, (start, end)) in enumerate(zip(turns, bounds, strict=True)):
                parts.append(f"{{{2 * k}}} + {shift[k]} >= {start} and {{{2 * k}}} + {shift[k]} < {{{2 * k + 1}}}")
                atoms += [names[turn], end]
            blocks[-1].append(Set(test, Op("", tuple(atoms), f"not ({' and '.join(parts)})")))
            blocks[-1].append(If(test, tuple(lines), ()))
        # The innermost loop leaves out the turns that only add to inner elements.
        skipped: list[str] = []
        for k, turn in enumerate(turns[:-1]):
            test = self.new("is_inner")
            first, cut = low[k] - high[k], low[k] - high[k]
            text = f"{{0}} >= {first} and {{0}} < {{1}} - {cut}"
            blocks[k].insert(0, Set(test, Op("", (names[turn], nest.loops[k][1]), text)))
            skipped.append(test)
        cut = low[-1] - high[-1]
        width, left, step = self.new("width"), self.new("left"), self.new("step")
        count = nest.loops[-1][1]
        text = f"max({{0}} - {2 * cut}, 0)"
        if skipped:
            text = f"({text} if {' and '.join(f'{{{k + 1}}}' for k in range(len(skipped)))} else 0)"
        head: list[Statement] = [
            Set(width, Op("", (count, *skipped), text)),
            Set(left, Op("", (count, width), "{0} - {1}")),
        ]
        at = Set(names[turns[-1]], Op("", (step, width), f"{{0}} if {{0}} < {cut} else {{0}} + {{1}}"))
        body: Block = (*head, For(step, left, (at, *blocks[-1])))
        for k in range(len(turns) - 2, -1, -1):
            body = (For(names[turns[k]], nest.loops[k][1], (*blocks[k], *body)),)
        return body


class _Copies:
    """Statements of a nest for other turns: `lines` are those of each loop."""

    def __init__(self, writer: _Writer, nest: _Nest, low: Sequence[int]) -> None:
        self.writer, self.nest, self.low = writer, nest, low
        self.sets = nest.sets
        self.turns = {turn: k for k, (turn, _) in enumerate(nest.loops)}
        self.steps = [writer.new(f"{turn}_at") for turn in self.turns]
        self.lines: list[list[Statement]] = [[] for _ in nest.loops]
        self.level: dict[Atom, int] = {step: k for k, step in enumerate(self.steps)}
        self.known: dict[tuple[str, _Shift], str] = {}
        self.still: _Shift = (0,) * len(self.steps)

    def put(self, base: str, value: Expression) -> str:
        """A name for a value, computed in the outermost loop where it is known."""
        name = self.writer.new(base)
        made = Set(name, value)
        self.level[name] = level = max([self.level.get(one, 0) for one in atoms_of(made)], default=0)
        self.lines[level].append(made)
        return name

    def atom(self, atom: Atom, shift: _Shift) -> Atom:
        """The atom for the turn `shift` before the one at hand."""
        if not is_name(atom) or (atom not in self.turns and atom not in self.sets):
            return atom
        if (atom, shift) not in self.known:
            if atom in self.turns:
                k = self.turns[atom]
                far = self.low[k] - shift[k]
                step = self.steps[k]
                self.known[atom, shift] = self.put(atom, Op("", (step, str(far)), "{0} + {1}")) if far else step
            else:
                value = self.sets[atom].value
                match value:
                    case Op(name, args, text, arrays):
                        value = Op(name, tuple([self.atom(one, shift) for one in args]), text, arrays)
                    case Load(array, index):
                        value = Load(array, tuple([self.atom(one, shift) for one in index]))
                    case Extent():
                        pass
                self.known[atom, shift] = self.put(atom, value)
        return self.known[atom, shift]

    def loops(self, counts: Sequence[Atom]) -> Statement:
        """The nest around the lines."""
        nest: list[Statement] = []
        for k in range(len(self.steps) - 1, -1, -1):
            nest = [For(self.steps[k], counts[k], (*self.lines[k], *nest), self.nest.parallel and not k)]
        return nest[0]


def _is_cheap(nest: _Nest) -> bool:
    """Whether it pays to compute values once for each statement that adds them."""
    sets = nest.sets

    def slice_of(atom: Atom, found: set[str]) -> set[str]:
        if atom in sets and atom not in found:
            found.add(atom)
            for one in atoms_of(sets[atom]):
                slice_of(one, found)
        return found

    by_shift: dict[_Shift, set[str]] = {}
    for store, shift in nest.added:
        slice_of(store.value, by_shift.setdefault(shift, set()))
    again = sum(_cost(sets[name].value) for names in by_shift.values() for name in names) + 3 * len(nest.groups)
    once = sum(_cost(one.value) for one in sets.values()) + 3 * len(nest.added)
    return again <= _DEARER * once


def _cost(value: Expression) -> int:
    match value:
        case Op(_, _, text):
            called = "math." in text or "np." in text
            return 20 if called else 4 if "/" in text or "**" in text else 1
        case Load():
            return 1
        case Extent():
            return 0
