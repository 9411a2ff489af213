"""Nests of loops that overwrite arrays: they run forward once, and what their backward run needs is on tapes.

In: a loop with all loops in it. Out: `TapedLoop`. Called by reverse.py for nests in which a turn cannot run forward
again without a log of all that it overwrites.

What goes on tapes, a number for each turn of the loop around it: the elements that are read and overwritten later,
tests that depend on them, the numbers that loops carry, and those that inner loops leave. Elements that stay as they
were read (lasting.py) are read from the arrays again. Nothing else of the forward run is repeated, but for the
straight-line code of each turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from .array_plans import Arrays
from .backward_loops import BackwardLoop
from .cotangents import Names, Scope, Stored, Values, zero_of
from .dataflow import affine, definitions, live_in_turns
from .kernel_statements import (
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
    made,
    stored,
    walk,
)
from .lasting import lasting_loads

_READ = "elements that are overwritten after they were read"
_TEST = "the sides that branches took"
_CARRIED = "its value at the start of each turn of the nest"
_LEFT = "its value after each run of the loop"
_TURNS = "the number of turns of each run of the loop"


@dataclass(frozen=True)
class Turn:
    """A turn of a nest that runs backwards: `place` is its place on the tapes."""

    nest: Nest
    place: Atom


class TapedLoop(BackwardLoop):
    """A loop of a nest. The outermost one, which gets no turn around it, writes the forward run of the whole nest."""

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
        around: Turn | None = state.turn
        self.outermost = around is None
        if around is None:
            self.nest = Nest(outer, loop, ver, state, out)
            self.after = {name: self.nest.here[name] for name in self.names}
            self.total = self.nest.at(loop) if self.counted else self.count or "0"
        else:
            self.nest = around.nest
            self.after = {name: outer.value_of(name) for name in self.names}
            for name, value in self.after.items():
                out.append(Set(value, Load(self.nest.tapes[id(loop), f"after {name}"], (around.place,))))
            self.total = self.count or "0"
            if self.counted:
                self.total = outer.new(f"turns_{self.serial}", "int64")
                out.append(Set(self.total, Load(self.nest.tapes[id(loop), "turns"], (around.place,))))
        self.loop = loop
        self.tapes = {name: self.nest.tapes[id(loop), name] for name in self.carried}
        self.skipped = state.skipped | self.nest.arrays
        self.array_names = dict(state.names)
        self.leave(ver)

    def before_turns(self, out: list[Statement]) -> None:
        if not self.outermost:
            at = self.nest.at(self.loop)
            text = "{0} - {1}" if self.counted else "{0} - max({1}, 0)"
            out.append(Set(at, Op("", (at, self.total), text)))

    def start_turn(self, out: list[Statement]) -> Atom:
        self.position = self.place
        if not self.outermost:
            self.position = self.outer.new("place", "int64")
            out.append(Set(self.position, Op("", (self.nest.at(self.loop), self.place), "{0} + {1}")))
        return self.position

    def restore(self, out: list[Statement]) -> None:
        pass

    def state(self) -> Arrays:
        return Arrays(dict(self.array_names), set(self.skipped), turn=Turn(self.nest, self.position))


class Nest:
    """The forward run of a nest.

    Attributes
    ----------
    here : dict
        The variable that stands for each number that the nest sets.
    tapes : dict
        The tapes, by the identity of a statement or a loop, and what of it they have.
    arrays : set
        The arrays that the nest writes to.
    """

    def __init__(self, outer: Values, loop: For | While, ver: Names, state: Arrays, out: list[Statement]) -> None:
        self.outer, self.loop = outer, loop
        self.before = dict(ver)
        self.tapes: dict[tuple[int, str], str] = {}
        self.of_loop: dict[int, list[str]] = {}
        self.here = {name: outer.value_of(name) for name in sorted(assigned((loop,)))}
        self.arrays = (stored(loop.body) | made(loop.body)) - state.skipped
        self.lasting = {one for found in lasting_loads(loop, outer.known).values() for one in found}
        self.lasting |= {
            id(one)
            for one in walk(loop.body)
            if isinstance(one, Set) and isinstance(one.value, Load) and one.value.array in state.skipped
        }
        self.skipped = set(state.skipped)
        self.doubtful = self.unknown_later()
        for array in sorted(stored(loop.body) - made(loop.body) - state.skipped):
            if array in state.kept or array in state.seen:
                copy = f"{array}_s{outer.count}"
                outer.ranks[copy], outer.dtypes[copy] = outer.ranks[array], outer.form.dtypes[array]
                outer.store_as(copy, Stored(array, "a copy of the whole array", loop.line))
                out.append(Copy(copy, state.name(array)))
                state.names[array] = copy
        self.names = dict(state.names)
        for name in self.here:
            if name in ver:
                out.append(Set(self.here[name], copied(ver[name])))
        header = live_in_turns(loop.body, frozenset())
        for name in sorted(header & set(self.here) - set(ver)):
            out.append(Set(self.here[name], copied(zero_of(outer.form.dtypes[name]))))
        self.sizes: dict[int, Atom] = {}
        self.ats: dict[int, str] = {}
        self.known = definitions(loop.body)
        self.out = out
        lines: list[Statement] = []
        self.run(loop, None, "", lines)
        out += lines

    def at(self, loop: For | While) -> str:
        """The number of turns that a loop has done in all."""
        if id(loop) not in self.ats:
            name = self.outer.new(f"turns_{self.outer.count}", "int64")
            self.ats[id(loop)] = name
            self.out.append(Set(name, copied("0")))
        return self.ats[id(loop)]

    def unknown_later(self) -> set[str]:
        """The numbers that depend on elements that are overwritten, or on what loops carry."""
        found: set[str] = set()
        for one in walk((self.loop,)):
            if isinstance(one, For | While):
                found |= live_in_turns(one.body, frozenset()) & assigned(one.body)
        statements = [one for one in walk((self.loop,)) if isinstance(one, Set)]
        while True:
            before = len(found)
            for one in statements:
                if self.is_taped(one) or (isinstance(one.value, Op) and not found.isdisjoint(one.value.args)):
                    found.add(one.target)
            if len(found) == before:
                return found

    def is_taped(self, statement: Set) -> bool:
        """Whether the value of a statement is on a tape."""
        match statement.value:
            case Load(array):
                return array in self.arrays and id(statement) not in self.lasting
            case Op(arrays=arrays):
                return not self.arrays.isdisjoint(arrays)
            case Extent():
                return False

    # ----- Tapes -----

    def tape(self, key: tuple[int, str], base: str, dtype: str, of: str, why: str, loop: For | While) -> str:
        """A new tape, with a number for each turn of a loop."""
        outer = self.outer
        outer.count += 1
        name = f"tape_{base}_{outer.count}"
        self.tapes[key] = name
        self.of_loop.setdefault(id(loop), []).append(name)
        outer.dtypes[name], outer.ranks[name] = dtype, 1
        outer.store_as(name, Stored(of, why, loop.line, loop.body))
        return name

    def size(self, loop: For | While, around: For | While | None) -> Atom:
        """The number of turns that a loop does in all, if it is known before the nest; else empty."""
        if not isinstance(loop, For) or breaks(loop.body):
            return ""
        total = "1" if around is None else self.sizes[id(around)]
        form = affine(loop.count, self.known)
        if not total or any(name in self.here for name in form):
            return ""
        texts = [str(form.get("1", 0))]
        names: list[Atom] = []
        for name, factor in form.items():
            if name != "1":
                texts.append(f"{{{len(names)}}} * ({factor})")
                names.append(self.before.get(name, name))
        size = self.outer.new("length", "int64")
        op = Op("", (*names, total), f"max({' + '.join(texts)}, 0) * {{{len(names)}}}")
        self.out.append(Set(size, op))
        return size

    def make(self, loop: For | While, need: Atom, out: list[Statement]) -> None:
        """Make room on the tapes of a loop: at once, if the number of its turns is known, else as it is needed."""
        outer, size = self.outer, self.sizes[id(loop)]
        for tape in self.of_loop.get(id(loop), ()):
            if size and not outer.depth:
                self.out.append(New(tape, (size,), outer.dtypes[tape]))
                continue
            outer.head.append(New(tape, ("0",), outer.dtypes[tape]))
            if size:
                self.out.append(Room(tape, size, False))
            else:
                out.append(Room(tape, need, True))

    # ----- The forward run -----

    def run(self, loop: For | While, around: For | While | None, place: Atom, out: list[Statement]) -> None:
        """Write the forward run of a loop; `place` is that of the turn around it on its tapes."""
        outer = self.outer
        self.sizes[id(loop)] = self.size(loop, around)
        counted = isinstance(loop, While) or breaks(loop.body)
        simple = around is None and not counted
        first: list[Statement] = []
        if simple:
            assert isinstance(loop, For)
            own = self.here[loop.turn]
        else:
            own = outer.new("place", "int64")
            at = self.at(loop)
            turn = "0" if counted else self.here[loop.turn] if isinstance(loop, For) else "0"
            first.append(Set(own, Op("", (at, turn), "{0} + {1}")))
        names = assigned(loop.body) - ({loop.turn} if isinstance(loop, For) else set())
        header = live_in_turns(loop.body, frozenset())
        for name in sorted(names):
            if name in self.before or name in header or around is not None:
                dtype = outer.form.dtypes[name]
                tape = self.tape((id(loop), name), name, dtype, name, _CARRIED, loop)
                first.append(Store(tape, (own,), self.here[name]))
        body = self.block(loop.body, loop, own)
        need = outer.new("need", "int64")
        if counted:
            start = outer.new("start", "int64")
            at = self.at(loop)
            rooms: list[Statement] = [Set(at, Op("", (at, "1"), "{0} + {1}"))]
            self.make(loop, at, rooms)
            out.append(Set(start, copied(at)))
            turns = (first[0], *rooms, *first[1:], *body)
            if isinstance(loop, For):
                out.append(replace(loop, turn=self.here[loop.turn], count=self.atom(loop.count), body=turns))
            else:
                out.append(replace(loop, body=turns))
            if around is not None:
                done = outer.new("done", "int64")
                tape = self.tape((id(loop), "turns"), "turns", "int64", "the loop", _TURNS, around)
                out += [Set(done, Op("", (at, start), "{0} - {1}")), Store(tape, (place,), done)]
        else:
            assert isinstance(loop, For)
            count = self.atom(loop.count)
            rooms = []
            more = "{0} + {1}" if around is None else "{0} + max({1}, 0)"
            at = "0" if simple else self.at(loop)
            rooms.append(Set(need, Op("", (at, count), more)))
            self.make(loop, need, rooms)
            out += rooms
            out.append(replace(loop, turn=self.here[loop.turn], count=count, body=(*first, *body)))
            if not simple:
                out.append(Set(at, Op("", (at, count), "{0} + max({1}, 0)")))
        if around is not None:
            for name in sorted(assigned((loop,))):
                dtype = outer.form.dtypes[name]
                tape = self.tape((id(loop), f"after {name}"), name, dtype, name, _LEFT, around)
                out.append(Store(tape, (place,), self.here[name]))

    def atom(self, one: Atom) -> Atom:
        return (self.here.get(one) or self.before.get(one, one)) if is_name(one) else one

    def atoms(self, many: Iterable[Atom]) -> tuple[Atom, ...]:
        return tuple([self.atom(one) for one in many])

    def array(self, one: str) -> str:
        return self.names.get(one, one)

    def expression(self, value: Expression) -> Expression:
        """An expression of variables."""
        match value:
            case Op(name, args, text, arrays):
                return Op(name, self.atoms(args), text, tuple(map(self.array, arrays)))
            case Load(source, index):
                return Load(self.array(source), self.atoms(index))
            case Extent(source, axis):
                return Extent(self.array(source), axis)

    def block(self, body: Block, loop: For | While, place: Atom) -> Block:
        """The forward run of a block of a loop."""
        outer = self.outer
        found: list[Statement] = []
        for statement in body:
            match statement:
                case Set(target, value):
                    found.append(Set(self.here[target], self.expression(value)))
                    if self.is_taped(statement):
                        of = value.array if isinstance(value, Load) else target
                        tape = self.tape((id(statement), ""), of, outer.form.dtypes[target], of, _READ, loop)
                        found.append(Store(tape, (place,), self.here[target]))
                case Store(target, index, value, add):
                    if target not in self.skipped:
                        found.append(Store(self.array(target), self.atoms(index), self.atom(value), add))
                case If(test, then, orelse):
                    if test in self.doubtful:
                        tape = self.tape((id(statement), ""), "test", "bool", test, _TEST, loop)
                        found.append(Store(tape, (place,), self.atom(test)))
                    sides = self.block(then, loop, place), self.block(orelse, loop, place)
                    found.append(If(self.atom(test), *sides))
                case For() | While():
                    self.run(statement, loop, place, found)
                case New(array, shape, dtype, fill):
                    found.append(New(array, self.atoms(shape), dtype, self.atom(fill) if fill else fill))
                case Break():
                    found.append(statement)
                case _:
                    raise AssertionError(statement)
        return tuple(found)
