"""Reverse mode: the statements that compute the cotangents of a kernel's arguments.

In: a `ScalarForm`, and the arguments whose cotangents are asked for. Out: `Adjoint`. Called by derived.py.

A block that is run backwards is run forward first, from its state at the start, with a new name for each value; so
straight-line code and branches need no memory. Then come the adjoints of its statements, in reverse order. A loop is run
forward once, while the numbers that it carries are stored, and then turn by turn backwards: these numbers are read, and its
body is a block that is run backwards. So memory is the sum of the lengths of nested loops, not their product, at the price
of one more forward run for each level. Elements of arrays that are overwritten are had again by array_plans.py.

Every value has one cotangent, named after it with `_b`. Only values that have received one send it on. What is written but
not needed is removed at the end (removal.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .array_plans import Arrays, Plan, plans
from .array_values import View
from .dataflow import active_names, is_float, live_in_turns
from .partials import Partials
from .plain_form import Unsupported
from .removal import with_plain_copies, without_unused
from .scalar_form import ScalarForm
from .statements import (
    UNKNOWN,
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
    While,
    assigned,
    breaks,
    copied,
    is_name,
    loaded,
    made,
    stored,
)


@dataclass(frozen=True)
class Adjoint:
    """The reverse kernel of a kernel.

    Attributes
    ----------
    body : Block
        Its statements.
    parameters : list of str
        The kernel's arguments, then the cotangents of `arrays`, then `seeds`.
    arrays : list of str
        The arrays with cotangents: `<name>_b` has that of the final content, and gets that of the initial content.
    seeds : dict of int to str
        The cotangents of the results, by their positions.
    results : list of str
        The atoms of the cotangents of `numbers`.
    numbers : list of str
        The wanted arguments that are numbers.
    """

    body: Block
    parameters: list[str]
    arrays: list[str]
    seeds: dict[int, str]
    results: list[Atom]
    numbers: list[str]
    dtypes: dict[str, str]


@dataclass
class _Scope:
    """The values of one block, and those that have a cotangent."""

    parent: _Scope | None = None
    mine: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)
    demanded: dict[str, None] = field(default_factory=dict)

    def is_open(self, name: str) -> bool:
        """Whether a value has a cotangent here."""
        return name in self.open or (name not in self.mine and self.parent is not None and self.parent.is_open(name))


Names = dict[str, Atom]
Backward = Callable[[list[Statement]], None]


def bar(name: str) -> str:
    """The name of a cotangent."""
    return f"{name}_b"


def reverse(form: ScalarForm, wanted: list[str]) -> Adjoint:
    """The reverse kernel for some of the arguments."""
    return _Reverse(form, wanted).adjoint()


class _Reverse:
    def __init__(self, form: ScalarForm, wanted: list[str]) -> None:
        self.form = form
        self.wanted = wanted
        self.dtypes = dict(form.dtypes)
        self.ranks = dict(form.ranks)
        self.active = active_names(form.body, wanted, form.dtypes)
        self.values: dict[str, str] = {}
        """The number of the kernel that each new name is a value of."""
        self.count = 0
        self.depth = 0
        self.logs: dict[str, int] = {}
        self.head: list[Statement] = []
        self.partials = Partials(lambda dtype: self.new("g", dtype))

    # ----- Names -----

    def new(self, base: str, dtype: str) -> str:
        """A new name of a number."""
        name = base
        while name in self.dtypes:
            self.count += 1
            name = f"{base}_{self.count}"
        self.dtypes[name] = dtype
        return name

    def value_of(self, base: str) -> str:
        """A new name for a value of a number of the kernel."""
        name = self.new(base, self.form.dtypes[base])
        self.values[name] = base
        if base in self.active:
            self.active.add(name)
        return name

    def is_active(self, atom: Atom) -> bool:
        """Whether a value carries a derivative."""
        return atom in self.active and is_float(self.dtypes.get(atom))

    def snapshot(self) -> tuple[int, dict[str, str], set[str], list[Statement], dict[str, int]]:
        """All that writing statements changes."""
        return self.count, dict(self.dtypes), set(self.active), list(self.head), dict(self.logs)

    # ----- The whole kernel -----

    def adjoint(self) -> Adjoint:
        form = self.form
        arrays = [name for name in form.parameters if name in form.ranks]
        written = stored(form.body)
        state = Arrays()
        for name in arrays:
            if name in written:
                state.names[name] = f"{name}_w"
                self.ranks[f"{name}_w"] = form.ranks[name]
                self.dtypes[f"{name}_w"] = form.dtypes[name]
                self.head.append(Copy(f"{name}_w", name))
        scope = _Scope(mine=set(form.parameters))
        forward: list[Statement] = []
        ver: Names = {name: name for name in form.parameters if name not in form.ranks}
        backward = self.block(form.body, ver, state, scope, forward)
        seeds: dict[int, str] = {}
        out: list[Statement] = []
        for k, result in enumerate(form.results):
            if isinstance(result, str) and is_name(result) and is_float(form.dtypes.get(result)):
                seed = self.new(f"seed_{k}", "float64")
                seeds[k] = seed
                self.add(ver[result], seed, scope, out)
            elif isinstance(result, View) and is_float(result.dtype) and k not in form.same:
                seed = self.new(f"seed_{k}", "float64")
                seeds[k] = seed
                if result.array in self.active:
                    self.seed_array(result, seed, state, out)
        backward(out)
        numbers = [name for name in self.wanted if name not in form.ranks]
        results = [bar(name) if scope.is_open(name) else "0.0" for name in numbers]
        wanted_arrays = [name for name in arrays if name in self.wanted]
        roots = [bar(name) for name in wanted_arrays] + [one for one in results if is_name(one)]
        body = without_unused((*self.head, *forward, *out), roots)
        body = with_plain_copies(body)
        bars = [name for name in arrays if name in self.active]
        parameters = [*form.parameters, *map(bar, bars), *seeds.values()]
        return Adjoint(body, parameters, bars, seeds, results, numbers, self.dtypes)

    def seed_array(self, result: View, seed: str, state: Arrays, out: list[Statement]) -> None:
        """Add the cotangent of an array that the kernel returns to that of the array itself."""
        turns = [self.new("e", "int64") for _ in result.extents]
        inner: list[Statement] = []

        def integer(text: str, *atoms: Atom) -> Atom:
            name = self.new("k", "int64")
            inner.append(Set(name, Op("", atoms, text)))
            return name

        value = self.new("g", "float64")
        index = result.index(turns, integer)
        inner += [Set(value, Load(seed, tuple(turns))), Store(bar(result.array), index, value, True)]
        body: Block = tuple(inner)
        for axis in reversed(range(len(turns))):
            count = self.new("n", "int64")
            out.append(Set(count, Extent(seed, axis)))
            body = (For(turns[axis], count, body),)
        out += body

    # ----- Cotangents -----

    def add(self, value: Atom, g: Atom, scope: _Scope, out: list[Statement]) -> None:
        """Add to the cotangent of a value."""
        if not is_name(value) or not self.is_active(value):
            return
        name = bar(value)
        self.dtypes[name] = "float64"
        if not scope.is_open(value):
            if value in scope.mine:
                scope.open.add(value)
                out.append(Set(name, copied(g)))
                return
            scope.demanded[value] = None
        out.append(Set(name, Op("add", (name, g), "{0} + {1}")))

    def require(self, values: dict[str, None], scope: _Scope, out: list[Statement]) -> None:
        """Let values have a cotangent here, to which a block inside adds."""
        for value in values:
            if scope.is_open(value):
                continue
            if value in scope.mine:
                scope.open.add(value)
                out.append(Set(bar(value), copied("0.0")))
            else:
                scope.demanded[value] = None

    # ----- Blocks -----

    def block(self, body: Block, ver: Names, state: Arrays, scope: _Scope, out: list[Statement]) -> Backward:
        """Run a block forward; gives what runs it backwards."""
        steps: list[Backward] = []
        after = [set(state.later)]
        for statement in reversed(body):
            after.append(after[-1] | loaded([statement]))
        later = state.later
        for position, statement in enumerate(body):
            state.later = after[len(body) - 1 - position]
            step = self.statement(statement, ver, state, scope, out)
            if step is not None:
                steps.append(step)
            if isinstance(statement, For | While | If):
                state.seen |= loaded([statement])
        state.later = later

        def backward(out: list[Statement]) -> None:
            for step in reversed(steps):
                step(out)

        return backward

    def statement(
        self, statement: Statement, ver: Names, state: Arrays, scope: _Scope, out: list[Statement]
    ) -> Backward | None:
        """Run one statement forward."""
        match statement:
            case Set(target, value):
                return self.number(target, value, ver, state, scope, out)
            case Store():
                return self.store(statement, ver, state, scope, out)
            case If():
                return self.branch(statement, ver, state, scope, out)
            case For(turn, count, body):
                return _Loop(self, turn, self.now(count, ver), body, ver, state, scope, out).backward
            case While(body):
                return _Loop(self, None, None, body, ver, state, scope, out).backward
            case New(array, shape, dtype, fill):
                shape = tuple([self.now(one, ver) for one in shape])
                fill = self.now(fill, ver) if fill else fill
                out.append(New(array, shape, dtype, fill))
                if array in self.active:
                    self.dtypes[bar(array)] = "float64"
                    out.append(New(bar(array), shape, "float64", "0.0"))
                return None
            case Break():
                return None
            case _:
                raise AssertionError(statement)

    def now(self, atom: Atom, ver: Names) -> Atom:
        """The present value of a number."""
        return ver.get(atom, atom) if is_name(atom) else atom

    def expression(self, value: Expression, ver: Names, state: Arrays) -> Expression:
        """An expression of present values."""
        match value:
            case Op(name, args, text, arrays):
                now = tuple([self.now(one, ver) for one in args])
                return Op(name, now, text, tuple([state.name(one) for one in arrays]))
            case Load(array, index):
                return Load(state.name(array), tuple([self.now(one, ver) for one in index]))
            case Extent(array, axis):
                return Extent(state.name(array), axis)

    def number(
        self, target: str, value: Expression, ver: Names, state: Arrays, scope: _Scope, out: list[Statement]
    ) -> Backward | None:
        """A number gets a value."""
        found = self.expression(value, ver, state)
        if isinstance(found, Op) and found.text == "{0}" and self.same_kind(found.args[0], target):
            ver[target] = found.args[0]
            return None
        name = self.value_of(target)
        ver[target] = name
        scope.mine.add(name)
        out.append(Set(name, found))
        if not self.is_active(name):
            return None
        if isinstance(value, Load):
            assert isinstance(found, Load)
            if value.array not in self.active:
                return None
            place = bar(value.array), found.index

            def into_array(out: list[Statement]) -> None:
                if name in scope.open:
                    out.append(Store(*place, bar(name), True))

            return into_array
        assert isinstance(found, Op)
        if not found.name:
            return None
        if found.name == UNKNOWN:
            shown = found.text.split("(")[0]
            message = (
                f"{self.form.name}() calls {shown}(), of which no derivative is known here. Give nb.primitive a rule, or "
                "write it out."
            )
            raise Unsupported(message)
        op = found

        def backward(out: list[Statement]) -> None:
            if name in scope.open:
                wanted = [self.is_active(one) for one in op.args]
                for one, g in zip(op.args, self.partials.cotangents(op, name, bar(name), wanted, out), strict=True):
                    if g is not None:
                        self.add(one, g, scope, out)

        return backward

    def same_kind(self, atom: Atom, target: str) -> bool:
        """Whether a copy of a value needs no name of its own."""
        if not is_name(atom):
            return not is_float(self.form.dtypes[target]) or "." in atom or "e" in atom
        return self.dtypes.get(atom) == self.form.dtypes[target]

    def store(
        self, statement: Store, ver: Names, state: Arrays, scope: _Scope, out: list[Statement]
    ) -> Backward:
        """An element of an array gets a value."""
        array, add = statement.array, statement.add
        index = tuple([self.now(one, ver) for one in statement.index])
        value = self.now(statement.value, ver)
        name = state.name(array)
        old = ""
        if array not in state.skipped and array in state.later:
            if array in state.kept or array in state.seen:
                old = self.new("old", self.form.dtypes[array])
                out.append(Set(old, Load(name, index)))
            out.append(Store(name, index, value, add))

        def backward(out: list[Statement]) -> None:
            if old:
                out.append(Store(name, index, old))
            if array in self.active:
                g = self.new("g", "float64")
                out.append(Set(g, Load(bar(array), index)))
                if not add:
                    out.append(Store(bar(array), index, "0.0"))
                self.add(value, g, scope, out)

        return backward

    def branch(self, statement: If, ver: Names, state: Arrays, scope: _Scope, out: list[Statement]) -> Backward:
        """One of two blocks."""
        test = self.now(statement.test, ver)
        seen, names = set(state.seen), dict(state.names)
        scopes = (_Scope(scope), _Scope(scope))
        versions: list[Names] = []
        forward: list[list[Statement]] = []
        steps: list[Backward] = []
        ends: list[dict[str, str]] = []
        for body, inner in zip((statement.then, statement.orelse), scopes, strict=True):
            own, lines = dict(ver), []
            state.seen, state.names = set(seen), dict(names)
            steps.append(self.block(body, own, state, inner, lines))
            versions.append(own)
            forward.append(lines)
            ends.append(state.names)
        state.seen = seen
        merged_names = dict(names)
        for array in {**ends[0], **ends[1]}:
            both = [end.get(array, array) for end in ends]
            if both[0] != both[1]:
                self.count += 1
                joined = f"{array}_j{self.count}"
                self.ranks[joined], self.dtypes[joined] = self.ranks[array], self.form.dtypes[array]
                for lines, one in zip(forward, both, strict=True):
                    lines.append(Alias(joined, one))
                merged_names[array] = joined
            else:
                merged_names[array] = both[0]
        state.names = merged_names
        merges: list[tuple[str, Names]] = []
        for number in sorted(assigned(statement.then) | assigned(statement.orelse)):
            both_values = [own.get(number) for own in versions]
            if both_values[0] == both_values[1] or number not in self.form.dtypes:
                continue
            name = self.value_of(number)
            scope.mine.add(name)
            for lines, value in zip(forward, both_values, strict=True):
                lines.append(Set(name, copied(value if value is not None else _zero(self.form.dtypes[number]))))
            ver[number] = name
            merges.append((name, {str(k): value for k, value in enumerate(both_values) if value is not None}))
        out.append(If(test, tuple(forward[0]), tuple(forward[1])))

        def backward(out: list[Statement]) -> None:
            sides: list[list[Statement]] = []
            for k, inner in enumerate(scopes):
                lines: list[Statement] = []
                for name, sources in merges:
                    if name in scope.open and str(k) in sources:
                        self.add(sources[str(k)], bar(name), inner, lines)
                steps[k](lines)
                sides.append(lines)
            for inner in scopes:
                self.require(inner.demanded, scope, out)
            if sides[0] or sides[1]:
                out.append(If(test, tuple(sides[0]), tuple(sides[1])))

        return backward


def _zero(dtype: str) -> Atom:
    return "0.0" if is_float(dtype) else "False" if dtype == "bool" else "0"


class _Loop:
    """A loop: its forward run is written when this is made, `backward` writes the other one."""

    def __init__(
        self,
        outer: _Reverse,
        turn: str | None,
        count: Atom | None,
        body: Block,
        ver: Names,
        state: Arrays,
        scope: _Scope,
        out: list[Statement],
    ) -> None:
        self.outer = outer
        outer.count += 1
        self.serial = outer.count
        self.turn, self.count, self.body, self.scope = turn, count, body, scope
        self.before = dict(ver)
        self.nested = outer.depth > 0
        self.counted = turn is None or breaks(body)
        names = assigned(body) - ({turn} if turn else set())
        header = live_in_turns(body, frozenset())
        self.carried = sorted(name for name in names if name in ver or name in header)
        self.plans = plans(body, turn, state)
        self.inner = Arrays(names=dict(state.names), skipped=set(state.skipped))
        self.logged: list[str] = []
        self.undone: list[str] = []
        """Arrays that must be as before the loop when it has run backwards, and are no more touched by it."""
        self.copies: dict[str, str] = {}
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
                    self.copies[array] = f"{array}_s{self.serial}"
                    outer.ranks[self.copies[array]] = outer.ranks[array]
                    outer.dtypes[self.copies[array]] = outer.form.dtypes[array]
                    if must_keep:
                        self.inner.kept.add(array)
                case Plan.REFILLED:
                    if must_keep:
                        self.logged.append(array)
                        self.undone.append(array)
                case Plan.LOGGED:
                    self.logged.append(array)
                    self.inner.kept.add(array)
        self.not_repeated = {
            array
            for array, plan in self.plans.items()
            if plan is Plan.NOT_READ and array not in state.later
        } | (state.skipped - own)
        for array, copy in self.copies.items():
            out.append(Copy(copy, state.name(array)))
        state.names.update(self.copies)
        self.state_names = dict(state.names)
        self.after = {name: self.name(name) for name in sorted(names | ({turn} if turn else set()))}
        self.total = self.run_forward(ver, out)
        for name, value in self.after.items():
            ver[name] = value
            scope.mine.add(value)

    def name(self, number: str) -> str:
        """The name in the forward run of a number."""
        return self.outer.value_of(number)

    # ----- Forward -----

    def run_forward(self, ver: Names, out: list[Statement]) -> Atom:
        """Write the forward run; gives the number of turns."""
        outer, serial = self.outer, self.serial
        for name in self.carried:
            start = ver.get(name, _zero(outer.form.dtypes[name]))
            out.append(Set(self.after[name], copied(start)))
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
        kept = [(tape, outer.form.dtypes[name], self.after[name]) for name, tape in self.tapes.items()]
        kept += [(mark, "int64", f"top_{self.state_names.get(a, a)}") for a, mark in self.marks.items()]
        for tape, dtype, value in kept:
            self.allocate(tape, dtype, out)
            if self.counted:
                first.append(Room(tape, done, True))
            first.append(Store(tape, (place,), value))
        body = (*first, *self.mutable(self.body))
        if self.turn is not None:
            assert self.count is not None
            out.append(For(self.after[self.turn], self.count, body))
        else:
            out.append(While(body))
        return done

    def allocate(self, tape: str, dtype: str, out: list[Statement]) -> None:
        """Make room for one number a turn."""
        self.outer.dtypes[tape] = dtype
        self.outer.ranks[tape] = 1
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
        for axis in range(rank):
            outer.dtypes[f"log{axis}_{name}"] = "int64"
            outer.head.append(New(f"log{axis}_{name}", ("0",), "int64"))

    def mutable(self, body: Block) -> Block:
        """The statements of the forward run, on variables; overwritten elements are logged."""
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
                        found += self.log(where, place)
                    found.append(Store(where, place, atom(value), add))
                case If(test, then, orelse):
                    found.append(If(atom(test), self.mutable(then), self.mutable(orelse)))
                case For(turn, count, inner):
                    found.append(For(here[turn], atom(count), self.mutable(inner)))
                case While(inner):
                    found.append(While(self.mutable(inner)))
                case New(made_array, shape, dtype, fill):
                    found.append(New(made_array, tuple(map(atom, shape)), dtype, atom(fill) if fill else fill))
                case Break():
                    found.append(statement)
                case _:
                    raise AssertionError(statement)
        return tuple(found)

    def log(self, array: str, index: tuple[Atom, ...]) -> list[Statement]:
        """Keep an element that is overwritten."""
        outer = self.outer
        top = f"top_{array}"
        more = outer.new("more", "int64")
        old = outer.new("old", outer.dtypes[f"log_{array}"])
        lines: list[Statement] = [Set(more, Op("", (top, "1"), "{0} + {1}")), Room(f"log_{array}", more, True)]
        lines += [Set(old, Load(array, index)), Store(f"log_{array}", (top,), old)]
        for axis, one in enumerate(index):
            lines += [Room(f"log{axis}_{array}", more, True), Store(f"log{axis}_{array}", (top,), one)]
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

    def backward(self, out: list[Statement]) -> None:
        """Write the backward run."""
        outer = self.outer
        running = {name for name, value in self.after.items() if value in self.scope.open}
        while True:
            before = outer.snapshot()
            inner = _Scope(self.scope)
            lines, fed = self.turn_backward(running, inner)
            if fed <= running:
                break
            running |= fed
            outer.count, outer.dtypes, outer.active, outer.head, outer.logs = before
        for array in self.undone:
            mark = self.marks[array]
            check = outer.new("any", "bool")
            inside: list[Statement] = []
            self.undo(array, mark, "0", inside)
            out += [Set(check, Op("", (self.total, "0"), "{0} > {1}")), If(check, tuple(inside), ())]
        self.require_running(running, out)
        outer.require(inner.demanded, self.scope, out)
        out.append(For(self.place, self.total, tuple(lines), backwards=True))
        for name in sorted(running):
            if name in self.before and self.after[name] in self.scope.open:
                outer.add(self.before[name], bar(self.after[name]), self.scope, out)

    def require_running(self, running: set[str], out: list[Statement]) -> None:
        """Give the sums that run from turn to turn their first value."""
        for name in sorted(running):
            value = self.after[name]
            if value not in self.scope.open:
                self.scope.open.add(value)
                self.outer.dtypes[bar(value)] = "float64"
                out.append(Set(bar(value), copied("0.0")))

    def turn_backward(self, running: set[str], inner: _Scope) -> tuple[list[Statement], set[str]]:
        """The backward run of one turn, and the carried numbers that it sends cotangents to."""
        outer = self.outer
        lines: list[Statement] = []
        self.place = outer.new(f"back_{self.serial}", "int64")
        ver = {name: value for name, value in self.before.items() if name not in self.after}
        starts: dict[str, str] = {}
        for name in self.carried:
            starts[name] = ver[name] = outer.value_of(name)
            inner.mine.add(ver[name])
            lines.append(Set(ver[name], Load(self.tapes[name], (self.place,))))
        if self.turn is not None:
            ver[self.turn] = self.place
        for array in self.logged:
            if array not in self.undone:
                self.undo(array, self.marks[array], self.place, lines)
        state = Arrays(
            dict(self.inner.names), set(self.inner.skipped), set(self.inner.kept), set(self.inner.seen), set()
        )
        outer.depth += 1
        step = outer.block(self.body, ver, state, inner, lines)
        back: list[Statement] = []
        for name in sorted(running):
            if name in ver:
                outer.add(ver[name], bar(self.after[name]), inner, back)
        step(back)
        outer.depth -= 1
        fed = {name for name, value in starts.items() if value in inner.open and outer.is_active(value)}
        for name in sorted(running):
            start = starts.get(name)
            again = bar(start) if start is not None and start in inner.open else "0.0"
            back.append(Set(bar(self.after[name]), copied(again)))
        return [*lines, *back], fed


__all__ = ["Adjoint", "bar", "reverse"]
