"""Reverse mode: the statements that compute the cotangents of a kernel's arguments.

In: a `ScalarForm`, and the arguments whose cotangents are asked for. Out: `Adjoint`. Called by derived.py.

A block that is run backwards is run forward first, from its state at the start, with a new name for each value; so
straight-line code and branches need no memory. Then come the adjoints of its statements, in reverse order. A loop is
run forward once, while the numbers that it carries are stored, and then turn by turn backwards: these numbers are
read, and its body is a block that is run backwards. So memory is the sum of the lengths of nested loops, not their
product, at the price of one more forward run for each level. Elements of arrays that are overwritten are had again by
array_plans.py.

Every value has one cotangent, named after it with `_b`. Only values that have received one send it on. What is
written but not needed is removed at the end (removal.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from .array_plans import Arrays
from .backward_loops import BackwardLoop
from .cotangents import Backward, Names, Scope, Stored, Values, bar, zero_of
from .dataflow import is_float, unset_at_start
from .kernel_statements import (
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
    Set,
    Statement,
    Store,
    Sync,
    While,
    assigned,
    copied,
    is_name,
    loaded,
    stored,
)
from .nest_choice import is_no_longer, nests_that_log
from .reading.array_values import View
from .reading.kernel_form import ScalarForm
from .reading.plain_form import UnsupportedKernelError
from .removal import with_plain_copies, without_unused
from .reverse_loops import ReverseLoop
from .taped_loops import TapedLoop
from .turns.shortening import shortened


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
    stored : dict of str to Stored
        The arrays that have values for the backward run; some may not be made in the end.
    plans : dict
        How the arrays that loops overwrite are had again, by the user's line and the array.
    sums : frozenset of str
        The cotangents that are sums.
    changed : frozenset of str
        Those of `arrays` whose cotangents it writes to; the others it only reads.
    """

    body: Block
    parameters: list[str]
    arrays: list[str]
    seeds: dict[int, str]
    results: list[Atom]
    numbers: list[str]
    dtypes: dict[str, str]
    stored: dict[str, Stored]
    plans: dict[tuple[str, str], str]
    sums: frozenset[str]
    changed: frozenset[str]

    @property
    def loops(self) -> dict[str, Block]:
        """The body of the loop whose turns each tape is for."""
        return {name: one.loop for name, one in self.stored.items() if one.loop is not None}


def reverse(form: ScalarForm, wanted: list[str], short: bool = False, nests: bool = False) -> Adjoint:
    """The reverse kernel for some of the arguments.

    Parameters
    ----------
    short : bool
        Without needless copies and zeros.
    nests : bool
        Nests of loops that would log what they overwrite may store values on tapes instead, if these are not longer.
    """
    found = _Reverse(form, wanted).adjoint(short)
    loops = nests_that_log(found.body, form.body, found.stored) if nests else frozenset()
    if not loops:
        return found
    taped = _Reverse(form, wanted, loops).adjoint(short)
    return taped if is_no_longer(taped.body, found.body, taped.stored, found.stored) else found


class _Reverse(Values):
    """Runs blocks backwards."""

    # ----- The whole kernel -----

    def adjoint(self, short: bool) -> Adjoint:
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
                self.store_as(f"{name}_w", Stored(name, "a copy that the forward run writes to"))
        scope = Scope(mine=set(form.parameters))
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
                    self.seed_array(result, seed, out)
        backward(out)
        numbers = [name for name in self.wanted if name not in form.ranks]
        results = [bar(name) if scope.is_open(name) else "0.0" for name in numbers]
        wanted_arrays = [name for name in arrays if name in self.wanted]
        roots = [bar(name) for name in wanted_arrays] + [one for one in results if is_name(one)]
        body = without_unused((*self.head, *forward, *out), roots)
        body = with_plain_copies(body)
        if short:
            body = shortened(body, roots)
        doubtful = sorted({self.doubtful[n] for n in assigned(body) if n in self.doubtful})
        if doubtful:
            message = (
                f"{form.name}() adds to `{doubtful[0]}` by atomic operations in a loop, and its derivative needs the "
                "values in between. Add to an array that is not read in the loop."
            )
            raise UnsupportedKernelError(message)
        bars = [name for name in arrays if name in self.active]
        parameters = [*form.parameters, *map(bar, bars), *seeds.values()]
        # Numbers that a loop of no turns leaves without a value, which a later loop carries on.
        unset = unset_at_start(body, frozenset(results)) - {*parameters, *results}
        body = (*[Set(name, copied(zero_of(self.dtypes[name]))) for name in sorted(unset)], *body)
        written = stored(body)
        changed = frozenset([name for name in bars if bar(name) in written])
        sums = frozenset(self.sums)
        return Adjoint(
            body, parameters, bars, seeds, results, numbers, self.dtypes, self.stored, self.plans, sums, changed
        )

    def seed_array(self, result: View, seed: str, out: list[Statement]) -> None:
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

    # ----- Blocks -----

    def block(self, body: Block, ver: Names, state: Arrays, scope: Scope, out: list[Statement]) -> Backward:
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
        self, statement: Statement, ver: Names, state: Arrays, scope: Scope, out: list[Statement]
    ) -> Backward | None:
        """Run one statement forward."""
        match statement:
            case Set():
                return self.number(statement, ver, state, scope, out)
            case Store():
                return self.store(statement, ver, state, scope, out)
            case If():
                return self.branch(statement, ver, state, scope, out)
            case For() | While():
                return self.loop(statement, ver, state, scope, out).backward
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
            case Sync():
                out.append(statement)
                return lambda out: out.append(statement)
            case _:
                raise AssertionError(statement)

    def loop(self, loop: For | While, ver: Names, state: Arrays, scope: Scope, out: list[Statement]) -> BackwardLoop:
        """A loop: one of a nest with tapes, or one whose turns run again."""
        if not self.depth:
            self.outermost = id(loop)
        if state.turn is not None or id(loop) in self.taped:
            return TapedLoop(self, loop, ver, state, scope, out)
        return ReverseLoop(self, loop, ver, state, scope, out)

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

    def number(self, statement: Set, ver: Names, state: Arrays, scope: Scope, out: list[Statement]) -> Backward | None:
        """A number gets a value."""
        target, value = statement.target, statement.value
        found = self.expression(value, ver, state)
        if isinstance(found, Op) and found.text == "{0}" and self.same_kind(found.args[0], target):
            ver[target] = found.args[0]
            return None
        name = self.value_of(target)
        ver[target] = name
        scope.mine.add(name)
        out.append(Set(name, self.from_tape(statement, state) or found))
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
                f"{self.form.name}() calls {shown}(), of which no derivative is known here. Give nb.primitive a rule, "
                "or write it out."
            )
            raise UnsupportedKernelError(message)
        op = found

        def backward(out: list[Statement]) -> None:
            if name in scope.open:
                wanted = [self.is_active(one) for one in op.args]
                for one, g in zip(op.args, self.partials.cotangents(op, name, bar(name), wanted, out), strict=True):
                    if g is not None:
                        self.add(one, g, scope, out)

        return backward

    def from_tape(self, statement: Statement, state: Arrays) -> Load | None:
        """The value of a statement on a tape of the nest around it; None if it is on none."""
        if state.turn is None:
            return None
        tape = state.turn.nest.tapes.get((id(statement), ""))
        return None if tape is None else Load(tape, (state.turn.place,))

    def same_kind(self, atom: Atom, target: str) -> bool:
        """Whether a copy of a value needs no name of its own."""
        if not is_name(atom):
            return not is_float(self.form.dtypes[target]) or "." in atom or "e" in atom
        return self.dtypes.get(atom) == self.form.dtypes[target]

    def store(self, statement: Store, ver: Names, state: Arrays, scope: Scope, out: list[Statement]) -> Backward:
        """An element of an array gets a value."""
        array, add = statement.array, statement.add
        index = tuple([self.now(one, ver) for one in statement.index])
        value = self.now(statement.value, ver)
        name = state.name(array)
        old = ""
        if array not in state.skipped and array in state.later:
            if array in state.kept or array in state.seen:
                old = self.new("old", self.form.dtypes[array])
                if array in self.form.added:
                    self.doubtful[old] = array
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

    def branch(self, statement: If, ver: Names, state: Arrays, scope: Scope, out: list[Statement]) -> Backward:
        """One of two blocks."""
        test = self.now(statement.test, ver)
        taped = self.from_tape(statement, state)
        if taped is not None:
            test = self.new("side", "bool")
            out.append(Set(test, taped))
        seen, names = set(state.seen), dict(state.names)
        scopes = (Scope(scope), Scope(scope))
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
            if both_values[0] == both_values[1]:
                if both_values[0] is not None:
                    ver[number] = both_values[0]
                continue
            name = self.value_of(number)
            scope.mine.add(name)
            for lines, value in zip(forward, both_values, strict=True):
                lines.append(Set(name, copied(value if value is not None else zero_of(self.form.dtypes[number]))))
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
