"""Branches and loops in which variables get other arrays: arrays that change places, or that each turn makes anew.

In: branches and loops of a kernel's text. Out: statements, and what each variable holds afterwards. Called by
scalar_form.py, whose class stands upon this one.

While the text is read, a variable that holds an array is known as that array. After a branch it may be one of two
(array_choices.py). In a loop, three cases are known: arrays that change places (`a, b = b, a`) are the same again after
some turns, so that a turn of the loop that is written is that many of the kernel's; an array that each turn makes anew
(`x = x + step`, or `y = x + step` where `y` is read after the loop) is copied into one that stays; a variable that ways
out of the loop leave with several arrays is one of these, by the number of the way out.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Any

from ..kernel_statements import Atom, Block, Break, For, If, Op, Set, Statement, While, breaks, copied, made, walk
from .array_choices import holds_array
from .array_values import Array, Object, Unclear, Value, View, arrays_of
from .kernel_expressions import Expressions
from .kernel_form import DeadBranch

_OTHER = "`{}` stands for another array from turn to turn of a loop"
_LONGEST = 4
"""The most turns after which arrays that change places are taken to be the same again."""
Env = dict[str, Value]


@dataclass
class Exits:
    """The ways out of the loop that is read."""

    number: Atom = ""
    """The number of the way that was taken; empty if it is not asked for."""
    ends: list[Env] = field(default_factory=list)
    """The values of all variables at each `break`."""
    rooms: dict[str, View] = field(default_factory=dict)
    """The arrays that stay, for variables that each turn gives a new one."""


@dataclass
class Turn:
    """A reading of the turns of a loop: the statements, and the variables at the end of the turn."""

    block: list[Statement]
    end: Env
    exits: Exits


class ReboundArrays(Expressions):
    """The part of a reader that knows branches and loops."""

    exits: list[Exits]
    frozen: set[str]

    @abstractmethod
    def block(self, body: Sequence[ast.stmt]) -> None:
        """Take statements apart."""

    # ----- Branches -----

    def branch(self, test: ast.expr, then: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        """Take an `if` apart."""
        decided = self.value(test)
        truth = self.known_truth(decided)
        if truth is not None:
            self.block(then if truth else orelse)
            return
        if not isinstance(decided, str):
            decided = str(self.refuse(test, "asks for the truth of something that is no number."))
        self.either_of(decided, lambda: self.block(then), lambda: self.block(orelse))

    def known_truth(self, value: Value) -> bool | None:
        """The truth of a value that is known while the text is read."""
        if isinstance(value, Object):
            return bool(value.value)
        return value in ("True", "1") if value in ("True", "False", "0", "1") else None

    def either_of(self, test: Atom, *actions: Callable[[], None]) -> None:
        """Add a branch with two actions as its sides."""
        env = self.frame.env
        sides: list[tuple[list[Statement], Env]] = []
        for action in actions:
            self.frame.env, before = dict(env), self.out
            self.out = []
            try:
                action()
                sides.append((self.out, self.frame.env))
            except DeadBranch:
                pass
            self.out = before
        if len(sides) < 2:
            # Numba has seen that one side is never taken.
            if not sides:
                raise DeadBranch
            self.out += sides[0][0]
            self.frame.env = sides[0][1]
            return
        (first, one), (second, two) = sides
        if _leaves(first) != _leaves(second):
            self.frame.env = two if _leaves(first) else one
        else:
            which = test
            if any(holds_array(one.get(name)) and one[name] != two.get(name, one[name]) for name in one):
                text = "{0}" if self.form.dtypes.get(test) == "bool" else "{0} != 0"
                which = self.put(Op("", (test,), text), "bool", "which")
            ends: tuple[list[Statement], list[Statement]] = [], []
            self.frame.env = {
                name: self.joined(name, which, one.get(name, two.get(name)), two.get(name, one.get(name)), *ends)
                for name in {**one, **two}
            }
            first, second = [
                list(_followed(tuple(side), tuple(end))) for side, end in zip((first, second), ends, strict=True)
            ]
        self.out.append(If(test, tuple(first), tuple(second)))

    # ----- Loops -----

    def leave(self) -> None:
        """Take a `break` apart."""
        exits = self.exits[-1]
        self.keep(exits)
        exits.ends.append(dict(self.frame.env))
        if exits.number:
            self.out.append(Set(exits.number, copied(str(len(exits.ends)))))
        self.out.append(Break())

    def while_loop(self, body: Sequence[ast.stmt]) -> None:
        """Take a `while` loop apart."""
        self.looped(body, None, lambda turn: self.block(body), lambda block, count: While(block))

    def looped(
        self,
        body: Sequence[ast.stmt],
        count: Atom | None,
        taken: Callable[[Atom | None], None],
        written: Callable[[Block, Atom | None], Statement],
    ) -> None:
        """Take a loop apart: `taken` reads a turn, whose number may be given, `written` gives the loop of a block."""
        frame = self.frame
        env = dict(frame.env)
        before = start = self.noted()
        rebound = {name for one in body for name in rebound_names(one)} - frame.plain.temporaries
        turn = self.read(lambda: taken(None))
        changed = [name for name in sorted(rebound) if holds_array(env.get(name)) and turn.end.get(name) != env[name]]
        period = _period(changed, env, turn.end)
        if period > 1:
            self.restore(before)
            self.in_several(period, count, taken, [name for name in sorted(rebound) if holds_array(env.get(name))])
            self.forget(rebound, env)
            return
        born = self.born(body, rebound - env.keys(), turn, before)
        if born:
            self.restore(before)
            for name, (shape, dtype) in born.items():
                frame.env[name] = self.local(frame.prefix + name, list(map(self.length_of, shape)), dtype, "0.0")
            self.looped(body, count, taken, written)
            return
        exits, now, own = Exits(), env, made(turn.block)
        rebinds: set[str] = set()
        is_known = True
        while True:
            more = [
                name
                for name in sorted(rebound - exits.rooms.keys())
                if holds_array(now.get(name)) and turn.end.get(name) != now[name]
            ]
            if not more:
                break
            rebinds.update(more)
            ends, starts = [turn.end, *turn.exits.ends], [now[name] for name in sorted(rebinds)]
            is_known = is_known and all(_is_new(end.get(name), own, starts) for end in ends for name in more)
            self.restore(before)
            exits = Exits(rooms=self.rooms(sorted(rebinds)) if is_known else {})
            for name in sorted(rebinds):
                frame.env[name] = exits.rooms.get(name, Unclear(_OTHER.format(name)))
            now, start = dict(frame.env), self.noted()
            turn = self.read(lambda: taken(None), exits)
            own = made(turn.block)
        changed = [] if is_known else sorted(rebinds)
        several = self.several(rebound, turn, own, count)
        if several:
            self.restore(start)
            exits = Exits(self.put(copied("0"), "int64", "way_out"), rooms=exits.rooms)
            turn = self.read(lambda: taken(None), exits)
        self.out.append(written(tuple(turn.block), count))
        frame.env = turn.end
        for name in several:
            self.from_exits(name, [None, *exits.ends] if count is None else [turn.end, *exits.ends], exits.number)
        for name in rebound - set(several):
            held = [end[name] for end in [turn.end, *turn.exits.ends] if name in end]
            same = all(one == held[0] for one in held[1:])
            if held and name not in env and same and not _made_in(held[0], own):
                frame.env[name] = held[0]
            elif any(map(holds_array, held)) and (name in changed or name not in env or not same):
                frame.env[name] = Unclear(_OTHER.format(name))

    def born(
        self, body: Sequence[ast.stmt], names: set[str], turn: Turn, before: tuple[Any, ...]
    ) -> dict[str, tuple[list[str], str]]:
        """The arrays that turns of a loop make and that are read after it: lengths known before it, and dtypes."""
        own, found = made(turn.block), {}
        changed = {one.target for one in walk(turn.block) if isinstance(one, Set)}
        for name in sorted(names):
            ends = [end[name] for end in [turn.end, *turn.exits.ends] if name in end]
            views = [one for one in ends if isinstance(one, View) and one.array in own]
            kinds = {(one.dtype, *[self.form.lengths.get(n, n) for n in one.extents]) for one in views}
            if len(kinds) != 1 or not all(isinstance(one, View) for one in ends):
                continue
            dtype, *lengths = kinds.pop()
            known = all(one in before[2] and one not in changed for text in lengths for one in self.names_in(text))
            if known and _is_read_next(self.frame.plain.body, body, name):
                found[name] = lengths, dtype
        return found

    def rooms(self, names: Sequence[str]) -> dict[str, View]:
        """The arrays that stay, for variables that each turn of a loop gives a new one."""
        found: dict[str, View] = {}
        for name in names:
            value = self.frame.env[name]
            assert isinstance(value, Array)
            found[name] = self.materialized(value, self.frame.prefix + name)
            self.frozen.add(found[name].array)
        return found

    def read(self, action: Callable[[], None], exits: Exits | None = None) -> Turn:
        """Read a turn of a loop."""
        exits = exits or Exits()
        self.exits.append(exits)
        before, self.out = self.out, []
        try:
            action()
            turn, self.out = self.out, []
            self.keep(exits)
            return Turn(list(_followed(tuple(turn), tuple(self.out))), dict(self.frame.env), exits)
        finally:
            self.out = before
            self.exits.pop()

    def noted(self) -> tuple[Any, ...]:
        """All that a reading changes."""
        form, frame = self.form, self.frame
        return (
            dict(frame.env),
            dict(frame.numbers),
            dict(form.dtypes),
            dict(form.ranks),
            dict(form.objects),
            dict(form.lengths),
            form.count,
            len(self.out),
        )

    def restore(self, noted: tuple[Any, ...]) -> None:
        """Forget a reading."""
        form, frame = self.form, self.frame
        env, numbers, dtypes, ranks, objects, lengths, form.count, length = noted
        frame.env, frame.numbers = dict(env), dict(numbers)
        form.dtypes, form.ranks, form.objects = dict(dtypes), dict(ranks), dict(objects)
        form.lengths = dict(lengths)
        del self.out[length:]

    def several(self, rebound: set[str], turn: Turn, own: set[str], count: Atom | None) -> list[str]:
        """The variables that ways out of a loop leave with several arrays, all of them made before the loop."""
        found: list[str] = []
        for name in sorted(rebound):
            ends = [end.get(name) for end in turn.exits.ends] + ([turn.end.get(name)] if count is not None else [])
            held = [one for one in ends if one is not None]
            if len(held) < 2 or not all(holds_array(one) and not _made_in(one, own) for one in held):
                continue
            if any(one != held[0] for one in held):
                found.append(name)
        return found

    def from_exits(self, name: str, ends: Sequence[Env | None], number: Atom) -> None:
        """Give a variable its value after a loop: that of one of the ways out, the first of which is the end."""
        found: Value | None = None
        for k, end in enumerate(ends):
            value = None if end is None else end.get(name)
            if value is None:
                continue
            if found is None or found == value:
                found = value
                continue
            test = self.put(Op("", (number,), f"{{0}} == {k}"), "bool", "which")
            first: list[Statement] = []
            second: list[Statement] = []
            found = self.joined(name, test, value, found, first, second)
            if first or second:
                self.out.append(If(test, tuple(first), tuple(second)))
        if found is not None:
            self.frame.env[name] = found

    def forget(self, rebound: set[str], env: Env) -> None:
        """After a loop whose turns are read several times, arrays of variables of a turn are not known."""
        for name in rebound:
            if holds_array(self.frame.env.get(name)) and name not in env:
                self.frame.env[name] = Unclear(_OTHER.format(name))

    # ----- Arrays that change places -----

    def in_several(
        self, period: int, count: Atom | None, taken: Callable[[Atom | None], None], changed: Sequence[str]
    ) -> None:
        """Add a loop, of which each turn is several of the kernel's; arrays are the same again after these."""
        probe = self.noted()
        leaves = bool(self.read(lambda: taken(None)).exits.ends)
        self.restore(probe)
        if count is None or leaves:
            self.with_exits(period, count, taken, changed)
            return
        whole = self.integer(f"{{0}} // {period}", count)
        turn = self.fresh("turns", "int64")

        def all_of() -> None:
            for k in range(period):
                taken(self.integer(f"{{0}} * {period} + {k}", turn))

        start = dict(self.frame.env)
        found = self.read(all_of)
        self.check_same(changed, start, found.end)
        self.out.append(For(turn, whole, tuple(found.block)))
        done = self.integer(f"{{0}} * {period}", whole)
        left = self.integer("{0} - {1}", count, done)

        def rest(k: int) -> None:
            if k < period - 1:
                test = self.put(Op("", (left,), f"{{0}} > {k}"), "bool", "more")

                def one_more() -> None:
                    taken(self.integer(f"{{0}} + {k}", done))
                    rest(k + 1)

                self.either_of(test, one_more, lambda: None)

        rest(0)

    def with_exits(
        self, period: int, count: Atom | None, taken: Callable[[Atom | None], None], changed: Sequence[str]
    ) -> None:
        """The loop of `in_several` where it may be left at each turn."""
        exits = Exits(self.put(copied("0"), "int64", "way_out"))
        start = dict(self.frame.env)
        turn = self.fresh("turns", "int64")

        def one(k: int) -> list[Statement]:
            before, self.out = self.out, []
            number = None
            if count is not None:
                number = self.integer(f"{{0}} * {period} + {k}", turn)
                if k:
                    over = self.put(Op("", (number, count), "{0} >= {1}"), "bool", "over")
                    ended, _ = self.in_block(lambda: self.leave() or [])
                    self.out, rest = [], self.out
                    taken(number)
                    self.out = [*rest, If(over, tuple(ended), tuple(self.out))]
                    found, self.out = self.out, before
                    return found
            taken(number)
            found, self.out = self.out, before
            return found

        def all_of() -> None:
            blocks = [one(k) for k in range(period)]
            found: Block = ()
            for block in reversed(blocks):
                found = _followed(tuple(block), found)
            self.out += found

        read = self.read(all_of, exits)
        self.check_same(changed, start, read.end)
        if count is None:
            self.form.dtypes.pop(turn)
            self.out.append(While(tuple(read.block)))
        else:
            self.out.append(For(turn, self.integer(f"({{0}} + {period - 1}) // {period}", count), tuple(read.block)))
        for name in changed:
            self.from_exits(name, [None if count is None else start, *exits.ends], exits.number)

    def check_same(self, changed: Sequence[str], start: Env, end: Env) -> None:
        """Refuse a loop after whose turns some variables hold other arrays than before them."""
        for name in changed:
            if end.get(name) != start[name]:
                self.refuse(None, f"has a loop in which {_OTHER.format(name)}. Use two arrays, or copy.")

    # ----- Arrays that each turn makes anew -----

    def keep(self, exits: Exits) -> None:
        """Copy the arrays that a turn has made into those that stay."""
        env = self.frame.env
        given: dict[str, View] = {}
        rooms = {room.array for room in exits.rooms.values()}
        for name, room in exits.rooms.items():
            value = env[name]
            assert isinstance(value, View)
            if value != room:
                given[name] = self.materialized(value, "kept_now") if arrays_of(value) & rooms else value
        for name, value in given.items():
            room = exits.rooms[name]
            same = [
                self.put(Op("", (a, b), "{0} == {1}"), "bool", "fits")
                for a, b in zip(value.extents, room.extents, strict=True)
                if not self.same_length(a, b)
            ]
            self.fitting(same, room, value)
            self.frame.env[name] = room

    def fitting(self, tests: Sequence[Atom], room: View, value: View) -> None:
        """Copy an array into another one; what stays has no numbers where the lengths are not the same."""

        def copy(at: list[Atom]) -> None:
            self.fill_in(room, at, self.number_at(value, at))

        def spoil(at: list[Atom]) -> None:
            self.fill_in(room, at, "math.nan")

        if not tests:
            self.each(room.extents, copy)
            return
        self.either_of(tests[0], lambda: self.fitting(tests[1:], room, value), lambda: self.each(room.extents, spoil))


def rebound_names(statement: ast.stmt) -> set[str]:
    """The variables to which a statement gives another value; `x += y` leaves an array the same."""
    found = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    augmented = [n.target for n in ast.walk(statement) if isinstance(n, ast.AugAssign)]
    plain = [n.target for n in ast.walk(statement) if isinstance(n, ast.For)]
    plain += [target for n in ast.walk(statement) if isinstance(n, ast.Assign) for target in n.targets]
    kept = {n.id for target in plain for n in ast.walk(target) if isinstance(n, ast.Name)}
    return found - {one.id for one in augmented if isinstance(one, ast.Name) and one.id not in kept}


def _is_read_next(body: Sequence[ast.stmt], loop: Sequence[ast.stmt], name: str) -> bool:
    """Whether what follows a loop, given by its body, reads a variable before it gives it another value."""
    after = dropwhile(lambda one: one is not loop[-1], _uses(body))
    return next((isinstance(one.ctx, ast.Load) for one in after if isinstance(one, ast.Name) and one.id == name), False)


def _uses(body: Sequence[ast.stmt]) -> Iterator[ast.Name | ast.stmt]:
    """The names in statements in the order of the text, and the last statement of each loop at its end."""
    for statement in body:
        match statement:
            case ast.Assign(targets, value):
                parts: list[ast.AST] = [value, *targets]
            case ast.AugAssign(target, _, value) if isinstance(target, ast.Name):
                parts = [value, ast.Name(target.id, ast.Load())]
            case ast.If(test):
                parts = [test]
            case ast.For(target, iterated):
                parts = [iterated, target]
            case ast.While():
                parts = []
            case _:
                parts = [statement]
        yield from (node for part in parts for node in ast.walk(part) if isinstance(node, ast.Name))
        if isinstance(statement, ast.If | ast.For | ast.While):
            yield from _uses(statement.body)
            yield from _uses(statement.orelse)
        if isinstance(statement, ast.For | ast.While):
            yield statement.body[-1]


def _leaves(block: Sequence[Statement]) -> bool:
    """Whether a block always ends the loop that it stands in."""
    if not block:
        return False
    last = block[-1]
    return isinstance(last, Break) or (isinstance(last, If) and _leaves(last.then) and _leaves(last.orelse))


def _followed(block: Block, rest: Block) -> Block:
    """A block and another one after it, where the first has not left the loop."""
    if not rest:
        return block
    if block and isinstance(block[-1], If) and breaks(block[-1:]):
        last = block[-1]
        sides = [one if _leaves(one) else _followed(one, rest) for one in (last.then, last.orelse)]
        return (*block[:-1], If(last.test, *sides))
    return (*block, *rest)


def _period(changed: Sequence[str], before: Env, after: Env) -> int:
    """After how many turns variables hold the same arrays again, if turns only exchange them; else 0."""
    sources: dict[str, str] = {}
    for name in changed:
        found = [one for one in changed if before[one] == after.get(name)]
        if len(found) != 1:
            return 0
        sources[name] = found[0]
    if len(set(sources.values())) < len(changed):
        return 0
    now = {name: name for name in changed}
    for turns in range(1, _LONGEST + 1):
        now = {name: now[source] for name, source in sources.items()}
        if all(name == source for name, source in now.items()):
            return turns if changed else 0
    return 0


def _is_new(value: Value | None, own: set[str], before: Sequence[Value]) -> bool:
    """Whether a turn has made an array, or has taken it from another variable that changes."""
    return isinstance(value, View) and (value.array in own or value in before)


def _made_in(value: Value | None, own: set[str]) -> bool:
    """Whether an array, or one in a tuple, is among some."""
    if isinstance(value, list):
        return any(_made_in(one, own) for one in value)
    return isinstance(value, Array) and bool(arrays_of(value) & own)
