"""Loops that are run backwards.

In: the body of a loop, and the values and arrays before it. Out: `ReverseLoop`: its forward run, in which the numbers
that it carries are stored and overwritten elements are logged, and its backward run, turn by turn. Called by
reverse.py.
"""

from __future__ import annotations

from dataclasses import replace

from .array_plans import Arrays, Plan, overwritten, plans, refilled
from .backward_loops import BackwardLoop
from .cotangents import Names, Scope, Stored, Values, zero_of
from .dataflow import Affine
from .kernel_statements import (
    Alias,
    Atom,
    Block,
    Break,
    Copy,
    Expression,
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
    copied,
    is_name,
    made,
    walk,
)

_CARRIED = "its value at the start of each turn"
_OVERWRITTEN = "an element that each turn overwrites"
_LOGGED = "the elements that are overwritten"
_INDICES = "their indices"
_MARKS = "how much of the log belongs to each turn"


class ReverseLoop(BackwardLoop):
    """A loop whose turns run forward again, from their start, before they run backwards."""

    def __init__(
        self,
        outer: Values,
        loop: For | While,
        ver: Names,
        state: Arrays,
        scope: Scope,
        out: list[Statement],
    ) -> None:
        super().__init__(outer, loop, ver, scope)
        body, turn, line = self.body, self.turn, self.line
        self.nested = outer.depth > 0
        self.plans = plans(loop, state, outer.known, outer.form.common)
        for array, plan in self.plans.items():
            if plan in (Plan.KEPT, Plan.LOGGED) and (id(body), array) in outer.form.refilled:
                self.plans[array] = Plan.REFILLED
        outer.plans.update({(line, array): plan.value for array, plan in self.plans.items()})
        self.inner = Arrays(names=dict(state.names), skipped=set(state.skipped))
        self.logged: list[str] = []
        self.undone: list[str] = []
        """Arrays that must be as before the loop when it has run backwards, and are no more touched by it."""
        self.copies: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        """Names in the forward run of shared arrays: turns that run backwards do not depend on what it writes."""
        self.saved: dict[str, list[tuple[str, Store, tuple[Affine, ...]]]] = {}
        """For arrays whose overwritten elements are kept turn by turn: where, the statement, and the index."""
        own = made(body)
        for array, plan in self.plans.items():
            must_keep = array in state.kept or array in state.seen
            match plan:
                case Plan.NOT_READ:
                    self.inner.skipped.add(array)
                    if must_keep and array in state.later:
                        self.logged.append(array)
                        self.undone.append(array)
                case Plan.OWN:
                    if must_keep or not refilled(body, array):
                        self.copies[array] = f"{array}_s{self.serial}"
                    if must_keep:
                        self.inner.kept.add(array)
                case Plan.FINAL:
                    self.inner.skipped.add(array)
                    if must_keep:
                        self.copies[array] = f"{array}_s{self.serial}"
                        self.inner.names[array] = self.copies[array]
                case Plan.KEPT:
                    self.saved[array] = [
                        (f"was_{array}_{self.serial}_{k}", site, forms)
                        for k, (site, forms) in enumerate(overwritten(body, array, turn or "") or ())
                    ]
                    self.inner.kept.add(array)
                case Plan.REFILLED:
                    if must_keep:
                        self.logged.append(array)
                        self.undone.append(array)
                    elif array in outer.form.shared:
                        self.aliases[array] = f"{array}_s{self.serial}"
                case Plan.LOGGED:
                    self.logged.append(array)
                    self.inner.kept.add(array)
        self.not_repeated = {
            array for array, plan in self.plans.items() if plan is Plan.NOT_READ and array not in state.later
        } | (state.skipped - own)
        for array, copy in self.copies.items():
            outer.ranks[copy], outer.dtypes[copy] = outer.ranks[array], outer.form.dtypes[array]
            outer.store_as(copy, Stored(array, "a copy of the whole array", line))
            out.append(Copy(copy, state.name(array)))
        for array, alias in self.aliases.items():
            outer.ranks[alias], outer.dtypes[alias] = outer.ranks[array], outer.form.dtypes[array]
            out.append(Alias(alias, state.name(array)))
        state.names.update(self.copies | self.aliases)
        self.state_names = dict(state.names)
        self.after = {name: outer.value_of(name) for name in self.names}
        self.total = self.run_forward(ver, out)
        self.leave(ver)

    # ----- Forward -----

    def run_forward(self, ver: Names, out: list[Statement]) -> Atom:
        """Write the forward run; gives the number of turns."""
        outer, serial = self.outer, self.serial
        for name in self.carried:
            start = ver.get(name, zero_of(outer.form.dtypes[name]))
            out.append(Set(self.after[name], copied(start)))
        if self.turn is not None and self.turn in ver:
            out.append(Set(self.after[self.turn], copied(ver[self.turn])))
        self.tapes = {name: f"tape_{name}_{serial}" for name in self.carried}
        self.marks = {array: f"mark_{array}_{serial}" for array in self.logged}
        for array in self.logged:
            self.start_log(array)
        first: list[Statement] = []
        if self.counted:
            done = outer.new(f"turns_{serial}", "int64")
            place: Atom = outer.new(f"turn_{serial}", "int64")
            out.append(Set(done, copied("0")))
            first += [Set(place, copied(done)), Set(done, Op("", (done, "1"), "{0} + {1}"))]
        else:
            done, place = self.count or "0", self.after[self.turn or ""]
        kept = [
            (tape, outer.form.dtypes[name], self.after[name], Stored(name, _CARRIED, self.line, self.body))
            for name, tape in self.tapes.items()
        ]
        kept += [
            (mark, "int64", f"top_{self.state_names.get(a, a)}", Stored(a, _MARKS, self.line, self.body))
            for a, mark in self.marks.items()
        ]
        self.tape_of_site: dict[int, str] = {}
        for array, sites in self.saved.items():
            for tape, site, _ in sites:
                self.allocate(tape, outer.form.dtypes[array], Stored(array, _OVERWRITTEN, self.line, self.body), out)
                self.tape_of_site[id(site)] = tape
        for tape, dtype, value, stored in kept:
            self.allocate(tape, dtype, stored, out)
            if self.counted:
                first.append(Room(tape, done, True))
            first.append(Store(tape, (place,), value))
        body = (*first, *self.mutable(self.body))
        if self.turn is not None:
            assert self.count is not None
            out.append(For(self.after[self.turn], self.count, body, self.parallel, line=self.line))
        else:
            out.append(While(body, line=self.line))
        return done

    def allocate(self, tape: str, dtype: str, stored: Stored, out: list[Statement]) -> None:
        """Make room for one number a turn."""
        self.outer.dtypes[tape] = dtype
        self.outer.ranks[tape] = 1
        self.outer.store_as(tape, stored)
        if self.nested or self.counted:
            self.outer.head.append(New(tape, ("0",), dtype))
            if not self.counted:
                assert self.count is not None
                out.append(Room(tape, self.count, False))
            return
        assert self.count is not None
        length = self.outer.new("length", "int64")
        out += [Set(length, Op("", (self.count,), "max({0}, 0)")), New(tape, (length,), dtype)]

    def start_log(self, array: str) -> None:
        """Have a log of the overwritten elements of an array."""
        outer = self.outer
        name = self.state_names.get(array, array)
        if name in outer.logs:
            return
        outer.logs[name] = rank = outer.ranks[array]
        outer.dtypes[f"top_{name}"] = "int64"
        outer.dtypes[f"log_{name}"] = outer.form.dtypes[array]
        outer.head.append(Set(f"top_{name}", copied("0")))
        outer.head.append(New(f"log_{name}", ("0",), outer.form.dtypes[array]))
        outer.store_as(f"log_{name}", Stored(array, _LOGGED, self.line, is_log=True))
        for axis in range(rank):
            outer.dtypes[f"log{axis}_{name}"] = "int64"
            outer.head.append(New(f"log{axis}_{name}", ("0",), "int64"))
            outer.store_as(f"log{axis}_{name}", Stored(array, _INDICES, self.line, is_log=True))

    def mutable(self, body: Block, roomy: bool = False) -> Block:
        """The statements of the forward run, on variables; overwritten elements are logged.

        `roomy` says that the logs have room for all that the block overwrites.
        """
        here = self.after

        def atom(one: Atom) -> Atom:
            return (here.get(one) or self.before.get(one, one)) if is_name(one) else one

        def array(one: str) -> str:
            return self.state_names.get(one, one)

        def expression(value: Expression) -> Expression:
            match value:
                case Op(name, args, text, arrays):
                    return Op(name, tuple(map(atom, args)), text, tuple(map(array, arrays)))
                case Load(source, index):
                    return Load(array(source), tuple(map(atom, index)))
                case Extent(source, axis):
                    return Extent(array(source), axis)

        found: list[Statement] = []
        for statement in body:
            match statement:
                case Set(target, value):
                    found.append(Set(here[target], expression(value)))
                case Store(target, index, value, add):
                    if target in self.not_repeated:
                        continue
                    where, place = array(target), tuple(map(atom, index))
                    if target in self.logged:
                        found += self.log(where, place, roomy)
                    tape = self.tape_of_site.get(id(statement))
                    if tape is not None:
                        old = self.outer.new("old", self.outer.form.dtypes[target])
                        if target in self.outer.form.added:
                            self.outer.doubtful[old] = target
                        found += [Set(old, Load(where, place)), Store(tape, (here[self.turn or ""],), old)]
                    found.append(Store(where, place, atom(value), add))
                case If(test, then, orelse):
                    found.append(If(atom(test), self.mutable(then, roomy), self.mutable(orelse, roomy)))
                case For(turn, count, inner):
                    ahead = roomy or self.make_room(inner, atom(count), found)
                    again = self.mutable(inner, ahead)
                    found.append(replace(statement, turn=here[turn], count=atom(count), body=again))
                case While(inner):
                    found.append(replace(statement, body=self.mutable(inner)))
                case New(made_array, shape, dtype, fill):
                    found.append(New(made_array, tuple(map(atom, shape)), dtype, atom(fill) if fill else fill))
                case Break() | Sync():
                    found.append(statement)
                case _:
                    raise AssertionError(statement)
        return tuple(found)

    def make_room(self, body: Block, count: Atom, out: list[Statement]) -> bool:
        """Make room in the logs for all turns of an innermost loop; gives whether it is one."""
        if any(isinstance(one, For | While) for one in walk(body)):
            return False
        for array in self.logged:
            sites = sum(1 for one in walk(body) if isinstance(one, Store) and one.array == array)
            if sites:
                name = self.state_names.get(array, array)
                more = self.outer.new("more", "int64")
                out.append(Set(more, Op("", (f"top_{name}", count), f"{{0}} + {{1}} * {sites}")))
                out += self.rooms(name, more)
        return True

    def rooms(self, array: str, length: Atom) -> list[Statement]:
        """Room in the log of an array."""
        rank = self.outer.logs[array]
        return [Room(one, length, True) for one in (f"log_{array}", *[f"log{k}_{array}" for k in range(rank)])]

    def log(self, array: str, index: tuple[Atom, ...], roomy: bool) -> list[Statement]:
        """Keep an element that is overwritten."""
        outer = self.outer
        top = f"top_{array}"
        more = outer.new("more", "int64")
        old = outer.new("old", outer.dtypes[f"log_{array}"])
        if any(array == self.state_names.get(one, one) for one in outer.form.added):
            outer.doubtful[old] = array
        lines: list[Statement] = [Set(more, Op("", (top, "1"), "{0} + {1}"))]
        lines += [] if roomy else self.rooms(array, more)
        lines += [Set(old, Load(array, index)), Store(f"log_{array}", (top,), old)]
        lines += [Store(f"log{axis}_{array}", (top,), one) for axis, one in enumerate(index)]
        return [*lines, Set(top, copied(more))]

    # ----- Backward -----

    def undo(self, array: str, mark: str, place: Atom, out: list[Statement]) -> None:
        """Put the elements back that were overwritten since a mark."""
        outer = self.outer
        name = self.state_names.get(array, array)
        top = f"top_{name}"
        start, count, step = (outer.new(base, "int64") for base in ("start", "count", "step"))
        old = outer.new("old", outer.dtypes[f"log_{name}"])
        lines: list[Statement] = [Set(top, Op("", (top, "1"), "{0} - {1}")), Set(old, Load(f"log_{name}", (top,)))]
        index: list[str] = []
        for axis in range(outer.logs[name]):
            index.append(outer.new("at", "int64"))
            lines.append(Set(index[-1], Load(f"log{axis}_{name}", (top,))))
        lines.append(Store(name, tuple(index), old))
        out += [
            Set(start, Load(mark, (place,))),
            Set(count, Op("", (top, start), "{0} - {1}")),
            For(step, count, tuple(lines)),
        ]

    def position(self, form: Affine, out: list[Statement]) -> Atom:
        """The atom of an index that is a sum of the turn's number and of numbers before the loop."""
        texts = [str(form["1"])] if form.get("1") else []
        names: list[Atom] = []
        for name, factor in form.items():
            if name != "1":
                texts.append(f"{{{len(names)}}}" if factor == 1 else f"{{{len(names)}}} * ({factor})")
                names.append(self.place if name == self.turn else self.before.get(name, name))
        found = self.outer.new("at", "int64")
        out.append(Set(found, Op("", tuple(names), " + ".join(texts) or "0")))
        return found

    def before_turns(self, out: list[Statement]) -> None:
        for array in self.undone:
            check = self.outer.new("any", "bool")
            inside: list[Statement] = []
            self.undo(array, self.marks[array], "0", inside)
            out += [Set(check, Op("", (self.total, "0"), "{0} > {1}")), If(check, tuple(inside), ())]

    def start_turn(self, out: list[Statement]) -> Atom:
        return self.place

    def restore(self, out: list[Statement]) -> None:
        waits = any(isinstance(one, Sync) for one in walk(self.body))
        if waits:
            # Elements are put back between barriers: other threads have read them before, and read them afterwards.
            out.append(Sync())
        for array in self.logged:
            if array not in self.undone:
                self.undo(array, self.marks[array], self.place, out)
        for array, sites in self.saved.items():
            for tape, _, forms in reversed(sites):
                old = self.outer.new("old", self.outer.form.dtypes[array])
                index = tuple([self.position(form, out) for form in forms])
                out += [Set(old, Load(tape, (self.place,))), Store(self.state_names.get(array, array), index, old)]
        if waits:
            out.append(Sync())

    def state(self) -> Arrays:
        inner = self.inner
        return Arrays(dict(inner.names), set(inner.skipped), set(inner.kept), set(inner.seen), set())
