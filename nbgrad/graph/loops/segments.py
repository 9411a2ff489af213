"""Loops in segments: what a loop would store for the one that walks its turns backwards is computed again, in parts.

In: a graph after simplification, and a `Schedule` for each of its tapes. Out: the same values by other loops. Called by
runtime/budget.py, through the front end of programs.

A *tape* is what loops (the writers) give for every turn to loops that go through the same turns the other way round
(the readers), and to nothing else. In segments of m turns, the writer becomes a loop over segments, which gives only
the values that each of them starts from, the checkpoints. The reader becomes a loop over segments from the last to the
first: from its checkpoint a segment is done again by the writer's body, then walked backwards by the reader's, and the
tape is that of one segment. These two loops are a tape inside the body, which may be cut again. Turns that are left
over at the end are loops of their own, whose tape is kept.

This is rewriting of graphs alone: it needs no knowledge of derivatives, so it holds for those of any order. Beside the
best schedule, the binomial one of A. Griewank and A. Walther, "Algorithm 799: revolve" (2000), segments repeat a few
percent more turns with up to three levels (design/0053-memory.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..builders import concatenate, reshape, slice_axes
from ..ir import Node, make, placeholder, topological, with_inputs
from ..simplify import simplify
from .loop_body import ITEM, LOOP, Body, is_reversed, item, like, turns_of
from .loop_rewrites import pruned, substituted
from .loop_rows import EVERY, LAST


@dataclass(frozen=True)
class Schedule:
    """The turns of a segment, of a segment within a segment, and so on.

    `again`: of what a turn gives, nothing but the carried values is kept, and the rest is computed again where it is
    read. The turns after the last segment are cut into segments themselves, but of at least `kept` turns everything is
    kept. `even`: where segments make up all turns, there are none after the last.
    """

    lengths: tuple[int, ...] = ()
    again: bool = False
    kept: int = 0
    even: bool = False

    @property
    def deeper(self) -> Schedule:
        """The schedule of one segment."""
        return Schedule(self.lengths[1:], self.again, even=self.even)

    @property
    def after(self) -> Schedule:
        """The schedule of the turns after the last segment."""
        return Schedule((), self.again) if self.kept else self.deeper

    def cut(self, turns: int) -> tuple[int, int]:
        """The number of segments, and of turns after the last one, which are not repeated."""
        length = self.lengths[0]
        if self.even and turns % length == 0 and turns > length:
            return turns // length, 0
        count = max(0, turns - max(1, self.kept)) // length
        return count, turns - count * length

    def stored(self, turns: int, carried: int, given: int) -> int:
        """The bytes of tape and checkpoints, from those of carried values and of what a turn gives."""
        if not self.lengths:
            return turns * (carried if self.again else given)
        length, inner = self.lengths[0], self.deeper
        count, rest = self.cut(turns)
        of_rest = self.after.stored(rest, carried, given)
        return count * carried + max(of_rest, inner.stored(length, carried, given) if count else 0)

    def repeated(self, turns: int) -> int:
        """The number of turns that are done a second time, or once more."""
        if not self.lengths:
            return 0
        length, inner = self.lengths[0], self.deeper
        count, rest = self.cut(turns)
        return count * (length + inner.repeated(length)) + self.after.repeated(rest)


Key = tuple["Body | None", int]
"""The body that a tape is in (None: the graph itself), and its number there."""


@dataclass
class Tape:
    """Values of every turn that writers give to readers only: `items`, the nodes."""

    key: Key
    turns: int
    writers: list[Node] = field(default_factory=list)
    readers: list[Node] = field(default_factory=list)
    items: dict[Node, None] = field(default_factory=dict)
    even: bool = False
    """Whether something else reads arrays of all turns, too, which segments and a rest would have to be copied into."""

    @property
    def carried(self) -> int:
        """The bytes that the writers carry."""
        return sum(_bytes(node) for loop in self.writers for node in loop.params[0].carried)

    @property
    def given(self) -> int:
        """The bytes that a turn gives."""
        return sum(_bytes(node) for node in self.items) // max(1, self.turns)

    def schedules(self) -> list[Schedule]:
        """All schedules worth trying, the one with the least work first; each stores less than those before."""
        found: list[Schedule] = []
        least = self.turns * self.given + 1
        for levels in range(1 + self.turns.bit_length()):
            for again in (False, True):
                lengths = _lengths(self.turns, levels, self.carried, self.carried if again else self.given)
                if lengths is None:
                    continue
                made = Schedule(_dividing(lengths, self.turns) if self.even else lengths, again, even=self.even)
                stored = made.stored(self.turns, self.carried, self.given)
                if stored < least:
                    found.append(made)
                    least = stored
        return found


def _bytes(node: Node) -> int:
    return node.size * node.dtype.itemsize


def _lengths(turns: int, levels: int, carried: int, given: int) -> tuple[int, ...] | None:
    """The lengths of segments on so many levels that store the least: the checkpoints of each level, and the tape of
    the last, take equal parts of the memory. None where there are not so many levels."""
    part = (turns * max(1, given) * max(1, carried) ** levels) ** (1 / (levels + 1))
    lengths: list[int] = []
    rest = float(turns)
    for _ in range(levels):
        rest = max(1.0, rest * max(1, carried) / (part + max(1, carried)))
        if lengths and round(rest) >= lengths[-1]:
            return None
        lengths.append(max(1, round(rest)))
    return tuple(lengths) if not lengths or lengths[0] < turns else None


def _dividing(lengths: Sequence[int], turns: int) -> tuple[int, ...]:
    """Lengths of which each divides the one before, near those that are given, where there are such."""
    found: list[int] = []
    for length in lengths:
        whole = found[-1] if found else turns
        near = [n for n in range(max(1, length // 2), min(2 * length, whole - 1) + 1) if whole % n == 0]
        found.append(min(near, key=lambda n: abs(n - length)) if near else min(length, max(1, whole - 1)))
    return tuple(dict.fromkeys(found))


# ----- Tapes -----


def tapes(outputs: Sequence[Node], owner: Body | None = None) -> list[Tape]:
    """All tapes of a simplified graph, with those in the bodies of its loops."""
    order = topological(outputs)
    found = _own_tapes(outputs, order, owner)
    for body in dict.fromkeys([node.params[0] for node in order if node.primitive is LOOP]):
        if any(node.primitive is LOOP for node in body.nodes):
            found += tapes(_simple(body), body)
    return found


def _simple(body: Body) -> list[Node]:
    """The values that a body carries on and its results, simplified."""
    return pruned(simplify([*body.following, *body.results]))


def _own_tapes(outputs: Iterable[Node], order: Sequence[Node], owner: Body | None) -> list[Tape]:
    """The tapes of a graph, without those in the bodies of its loops."""
    users: dict[Node, list[Node | None]] = {node: [None] for node in outputs}
    for node in order:
        for source in dict.fromkeys(node.inputs):
            users.setdefault(source, []).append(node)
    of_reader: dict[Node, Tape] = {}
    found: list[Tape] = []
    for loop in order:
        if loop.primitive is not LOOP or loop in of_reader or turns_of(loop) < 2:
            continue
        items = [user for user in users.get(loop, ()) if user is not None and user.params[0] == EVERY]
        items = [one for one in items if all(_reads_back(user, one) for user in users.get(one, ()))]
        if not items:
            continue
        readers = dict.fromkeys([user for one in items for user in users[one] if user is not None])
        tape = next((of_reader[reader] for reader in readers if reader in of_reader), None)
        if tape is None:
            tape = Tape((owner, len(found)), turns_of(loop))
            found.append(tape)
        tape.writers.append(loop)
        tape.items.update(dict.fromkeys(items))
        for reader in readers:
            if of_reader.setdefault(reader, tape) is tape:
                if reader not in tape.readers:
                    tape.readers.append(reader)
            else:
                _join(tape, of_reader[reader], of_reader, found)
    for number, tape in enumerate(found):
        tape.key = owner, number
        given = [user for loop in (*tape.writers, *tape.readers) for user in users.get(loop, ()) if user is not None]
        tape.even = any(user.params[0] == EVERY and user not in tape.items for user in given)
    return found


def _join(tape: Tape, other: Tape, of_reader: dict[Node, Tape], found: list[Tape]) -> None:
    """Make two tapes that have a reader in common one."""
    found.remove(other)
    tape.writers += other.writers
    tape.items.update(other.items)
    tape.readers += [reader for reader in other.readers if reader not in tape.readers]
    of_reader.update(dict.fromkeys(other.readers, tape))


def _reads_back(user: Node | None, one: Node) -> bool:
    """Whether an item's user is a loop over the same turns, the other way round, that gets a part in each turn."""
    if user is None or user.primitive is not LOOP:
        return False
    writer = one.inputs[0]
    body: Body = user.params[0]
    opposite = turns_of(user) == turns_of(writer) and is_reversed(user) != is_reversed(writer)
    return opposite and all(body.is_scanned(k) for k, source in enumerate(user.inputs) if source is one)


# ----- Rewriting -----


def scheduled(outputs: Sequence[Node], schedules: Mapping[Key, Schedule], owner: Body | None = None) -> list[Node]:
    """The outputs of a simplified graph, with its tapes, and those inside bodies, as the schedules say."""
    order = topological(outputs)
    own = {tape.key: tape for tape in _own_tapes(outputs, order, owner)}
    inside: _Inside = {}
    for body in dict.fromkeys([node.params[0] for node in order if node.primitive is LOOP]):
        if any(key[0] is not owner and key[0] is not None for key in schedules):
            made = _scheduled_body(body, schedules)
            if made is not None:
                inside[body] = made
    replaced: dict[Node, Node] = {}
    for key, tape in own.items():
        if key in schedules:
            cut = _Cut(tape, _asked(order), schedules[key])
            replaced.update(cut.replaced)
    found = substituted(outputs, replaced)
    return _with_bodies(found, inside) if inside else found


def _asked(order: Sequence[Node]) -> dict[Node, list[Node]]:
    """The items of each loop."""
    found: dict[Node, list[Node]] = {}
    for node in order:
        if node.primitive is ITEM:
            found.setdefault(node.inputs[0], []).append(node)
    return found


@dataclass(frozen=True)
class _Better:
    """A body whose own loops are scheduled, and the nodes that stand for the results of the old one."""

    old: Body
    new: Body
    results: Mapping[Node, Node]


_Inside = dict[Body, _Better]


def _scheduled_body(body: Body, schedules: Mapping[Key, Schedule]) -> _Better | None:
    """A body whose own loops are scheduled; None where none is."""
    if not any(node.primitive is LOOP for node in body.nodes):
        return None
    roots = [*body.following, *body.results]
    simple = _simple(body)
    made = scheduled(simple, schedules, body)
    if made == simple:
        return None
    count = len(body.following)
    new = Body(body.carried, body.scanned, body.constants, made[:count], made[count:], body.again)
    return _Better(body, new, dict(zip(roots, made, strict=True)))


def _with_bodies(outputs: Sequence[Node], inside: _Inside) -> list[Node]:
    """The outputs with other bodies in their loops, and in the loops that segments have."""
    new: dict[Node, Node] = {}
    for node in topological(outputs):
        inputs = tuple([new[source] for source in node.inputs])
        if node.primitive is LOOP:
            body = node.params[0]
            better = inside[body].new if body in inside else _outer_with(body, inside)
            new[node] = make("loop", inputs, (better, *node.params[1:]))
        elif node.primitive is ITEM and node.params[0] == EVERY:
            old: Body = node.inputs[0].params[0]
            now: Body = inputs[0].params[0]
            result = old.nodes[node.params[1]]
            if old in inside:
                # Equal bodies may be of other nodes.
                result = inside[old].old.nodes[node.params[1]]
                result = inside[old].results.get(result, result)
            elif now is not old:
                result = now.results[old.results.index(result)] if result in old.results else result
            new[node] = item(inputs[0], (EVERY, now.position[result]))
        else:
            new[node] = node if inputs == node.inputs else with_inputs(node, inputs)
    return [new[node] for node in outputs]


def _outer_with(body: Body, inside: _Inside) -> Body:
    """A body of segments, whose loops may have bodies that are scheduled."""
    if not any(node.primitive is LOOP and _reaches(node.params[0], inside) for node in body.nodes):
        return body
    made = _with_bodies([*body.following, *body.results], inside)
    count = len(body.following)
    return Body(body.carried, body.scanned, body.constants, made[:count], made[count:], body.again)


def _reaches(body: Body, inside: _Inside) -> bool:
    loops = [node.params[0] for node in body.nodes if node.primitive is LOOP]
    return body in inside or any(_reaches(inner, inside) for inner in loops)


class _Cut:
    """A tape in segments: `replaced` has the items of its loops, and what stands for them."""

    def __init__(self, tape: Tape, asked: Mapping[Node, list[Node]], schedule: Schedule) -> None:
        self.tape, self.asked = tape, asked
        self.replaced: dict[Node, Node] = {}
        self.backwards = is_reversed(tape.readers[0])
        while schedule.lengths and not schedule.cut(tape.turns)[0]:
            schedule = schedule.deeper
        if not schedule.lengths and not schedule.again:
            return
        if not schedule.lengths:
            for reader in tape.readers:
                self._recomputed(reader)
            return
        self.schedule, self.length = schedule, schedule.lengths[0]
        self.count, self.rest = schedule.cut(tape.turns)
        self.main: dict[Node, Node] = {}
        self.last: dict[Node, Node] = {}
        for writer in tape.writers:
            self._written(writer)
        of_rest = [self._read(reader) for reader in tape.readers]
        if self.rest:
            self._cut_rest([reader for reader in of_rest if reader is not None])

    def _cut_rest(self, readers: Sequence[Node]) -> None:
        """The loops over the rest are a tape, too."""
        loops = list(self.last.values())
        items = [source for reader in readers for source in reader.inputs if source.primitive is ITEM]
        items = [one for one in dict.fromkeys(items) if one.inputs[0] in loops and one.params[0] == EVERY]
        asked = _asked(topological([*self.replaced.values()]))
        tape = Tape((None, 0), self.rest, loops, list(readers), dict.fromkeys(items))
        self.replaced.update(_Cut(tape, asked, self.schedule.after).replaced)

    # ----- Parts of arrays -----

    def _main_part(self, array: Node) -> Node:
        """The turns of an array that are in segments, segment by segment."""
        start = 0 if self.backwards else self.rest
        return reshape(_rows(array, start, self.count * self.length), (self.count, self.length, *array.shape[1:]))

    def _rest_part(self, array: Node) -> Node:
        return _rows(array, self.count * self.length if self.backwards else 0, self.rest)

    def _whole(self, main: Node, rest: Node | None) -> Node:
        """An array of all turns, from that of the segments and that of the rest."""
        joined = reshape(main, (self.count * self.length, *main.shape[2:]))
        if rest is None:
            return joined
        return concatenate([joined, rest] if self.backwards else [rest, joined], 0)

    # ----- Loops -----

    def _written(self, writer: Node) -> None:
        """A writer as a loop over segments, and one over the rest."""
        body: Body = writer.params[0]
        first, arrays, constants = _inputs(writer)
        parts = [placeholder((self.length, *node.shape), node.dtype) for node in body.scanned]
        carried, given = [like(node) for node in body.carried], [like(node) for node in body.constants]
        inner = make("loop", (*carried, *parts, *given), (body, self.length, not self.backwards))
        wanted = [one for one in self.asked.get(writer, ()) if one not in self.tape.items]
        every = {one: item(inner, one.params) for one in wanted if one.params[0] == EVERY}
        following = [item(inner, (LAST, k)) for k in range(len(carried))]
        outer = Body(carried, parts, given, following, list(every.values()))
        inputs = (*first, *map(self._main_part, arrays), *constants)
        main = self.main[writer] = make("loop", inputs, (outer, self.count, not self.backwards))
        rest = None
        if self.rest:
            state = [item(main, (LAST, k)) for k in range(len(carried))]
            inputs = (*state, *map(self._rest_part, arrays), *constants)
            rest = self.last[writer] = make("loop", inputs, (body, self.rest, not self.backwards))
        for one in wanted:
            if one in every:
                found = item(main, (EVERY, outer.position[every[one]]))
                self.replaced[one] = self._whole(found, None if rest is None else item(rest, one.params))
            else:
                self.replaced[one] = item(main if rest is None else rest, one.params)

    def _read(self, reader: Node) -> Node | None:
        """A reader as a loop over the rest, which is given back, then one over segments, each written again first."""
        body: Body = reader.params[0]
        first, arrays, constants = _inputs(reader)
        wanted = self.asked.get(reader, [])
        rest = None
        state = first
        if self.rest:
            last = [
                item(self.last[one.inputs[0]], one.params) if one in self.tape.items else self._rest_part(one)
                for one in arrays
            ]
            rest = make("loop", (*first, *last, *constants), (body, self.rest, self.backwards))
            state = [item(rest, (LAST, k)) for k in range(len(first))]
        carried, given = [like(node) for node in body.carried], [like(node) for node in body.constants]
        scanned: list[tuple[Node, Node]] = []
        fixed = list(zip(given, constants, strict=True))
        written: dict[Node, Node] = {}
        parts: list[Node] = []
        for node, array in zip(body.scanned, arrays, strict=True):
            if array in self.tape.items:
                writer = array.inputs[0]
                if writer not in written:
                    written[writer] = self._written_again(writer, scanned, fixed)
                parts.append(item(written[writer], array.params))
            else:
                part = placeholder((self.length, *node.shape), node.dtype)
                scanned.append((part, self._main_part(array)))
                parts.append(part)
        inner = make("loop", (*carried, *parts, *given), (body, self.length, self.backwards))
        following = [item(inner, (LAST, k)) for k in range(len(carried))]
        every = {one: item(inner, one.params) for one in wanted if one.params[0] == EVERY}
        roots = [*following, *every.values()]
        deeper = self.schedule.deeper
        if deeper.lengths or deeper.again:
            used = dict.fromkeys([part for part in parts if part.primitive is ITEM])
            tape = Tape((None, 0), self.length, list(written.values()), [inner], used)
            cut = _Cut(tape, {**{loop: list(used) for loop in written.values()}, inner: roots}, deeper)
            roots = substituted(roots, cut.replaced)
        count = len(carried)
        outer = Body(carried, [n for n, _ in scanned], [n for n, _ in fixed], roots[:count], roots[count:])
        outside = (*state, *[value for _, value in scanned], *[value for _, value in fixed])
        main = make("loop", outside, (outer, self.count, self.backwards))
        results = dict(zip(every, roots[count:], strict=True))
        for one in wanted:
            if one in results:
                found = item(main, (EVERY, outer.position[results[one]]))
                self.replaced[one] = self._whole(found, None if rest is None else item(rest, one.params))
            else:
                self.replaced[one] = item(main, one.params)
        return rest

    def _written_again(self, writer: Node, scanned: list[tuple[Node, Node]], fixed: list[tuple[Node, Node]]) -> Node:
        """A segment of a writer inside a reader, from its checkpoint; `scanned` and `fixed` take what it reads."""
        body: Body = writer.params[0]
        _, arrays, constants = _inputs(writer)
        main = self.main[writer]
        outer: Body = main.params[0]
        state, parts = [like(node) for node in body.carried], []
        scanned += [
            (node, item(main, (EVERY, outer.position[inside])))
            for node, inside in zip(state, outer.carried, strict=True)
        ]
        for node, array in zip(body.scanned, arrays, strict=True):
            part = placeholder((self.length, *node.shape), node.dtype)
            scanned.append((part, self._main_part(array)))
            parts.append(part)
        given = [like(node) for node in body.constants]
        fixed += zip(given, constants, strict=True)
        return make("loop", (*state, *parts, *given), (body, self.length, not self.backwards))

    def _recomputed(self, reader: Node) -> None:
        """A reader that gets the carried values only, and computes again what else a turn of a writer gives."""
        body: Body = reader.params[0]
        first, arrays, constants = _inputs(reader)
        scanned: list[tuple[Node, Node]] = []
        fixed = list(zip(body.constants, constants, strict=True))
        known: dict[Node, dict[Node, Node]] = {}
        inside: dict[Node, Node] = {}
        for node, array in zip(body.scanned, arrays, strict=True):
            if array in self.tape.items:
                inside[node] = self._turn_again(array, known, scanned, fixed)
            else:
                scanned.append((node, array))
        roots = substituted([*body.following, *body.results], inside)
        count = len(body.carried)
        made = Body(body.carried, [n for n, _ in scanned], [n for n, _ in fixed], roots[:count], roots[count:])
        inputs = (*first, *[value for _, value in scanned], *[value for _, value in fixed])
        loop = make("loop", inputs, (made, self.tape.turns, self.backwards))
        results = dict(zip(body.results, roots[count:], strict=True))
        for one in self.asked.get(reader, ()):
            kind, position = one.params
            where = position if kind == LAST else made.position[results[body.nodes[position]]]
            self.replaced[one] = item(loop, (kind, where))

    def _turn_again(
        self,
        one: Node,
        known: dict[Node, dict[Node, Node]],
        scanned: list[tuple[Node, Node]],
        fixed: list[tuple[Node, Node]],
    ) -> Node:
        """The value that a writer gives in a turn, inside the turn of a reader; `known` has such nodes by writer."""
        writer = one.inputs[0]
        body: Body = writer.params[0]
        if writer not in known:
            _, arrays, constants = _inputs(writer)
            new = known[writer] = {node: like(node) for node in body.inputs}
            for node in body.carried:
                scanned.append((new[node], item(writer, (EVERY, body.position[node]))))
            scanned += [(new[node], array) for node, array in zip(body.scanned, arrays, strict=True)]
            fixed += [(new[node], value) for node, value in zip(body.constants, constants, strict=True)]
            for node in body.nodes:
                if node not in new:
                    new[node] = (
                        with_inputs(node, tuple([new[source] for source in node.inputs])) if node.inputs else node
                    )
        return known[writer][body.nodes[one.params[1]]]


def _inputs(loop: Node) -> tuple[list[Node], list[Node], list[Node]]:
    """The first values, the arrays and the constants of a loop."""
    body: Body = loop.params[0]
    first, after = len(body.carried), len(body.carried) + len(body.scanned)
    return list(loop.inputs[:first]), list(loop.inputs[first:after]), list(loop.inputs[after:])


def _rows(array: Node, start: int, count: int) -> Node:
    if count == array.shape[0]:
        return array
    return slice_axes(array, [(start, count, 1), *[(0, n, 1) for n in array.shape[1:]]])
