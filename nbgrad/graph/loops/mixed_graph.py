"""The loop of turns of several kinds: one body, in which each branch counts only in the turns that go through it.

In: a `Mixture` of mixed_turns.py. Out: a `MixedGraph`, which gives the values of places in turns. Called by rolling.py.

All branches are computed in every turn, and those that a turn goes through change what is carried. So branches are
small, and no more than arithmetic: nothing in them may go wrong with values that they would never get.

What is carried has no name in a recording. An operand that was made in an earlier turn is a value that some operations
of a turn *set*: the last of them that was recorded, or the last but one. registers.py finds these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..builders import gather, iota, reshape
from ..ir import Node, broadcast, constant, elementwise, zeros
from .alignment import CONSTANT as SAME_IN_ALL
from .alignment import VARYING, Stretch
from .loop_body import ITEM, like, make_loop
from .mixed_turns import Branch, Mixture, branches, numbers_at, operands_at
from .origins import walked
from .registers import Read, Register, registers_of
from .repetition import CONSTANT, Recording
from .scanned_parts import MOST_GATHERED, Origin, Varied, part_of
from .turn_graph import MOST_KEPT, TurnGraph

MOST_OPERATIONS = 1500
"""Operations on elements in a turn, of all branches together, that cost less than what they save."""
MOST_MORE = 4
"""Otherwise they may be more than those of a usual turn by one part in this many."""


class MixedGraph:
    """The body of a loop of turns of several kinds."""

    def __init__(self, recording: Recording, mixture: Mixture) -> None:
        self.recording, self.mixture = recording, mixture
        self.branches = branches(recording, mixture)
        size = mixture.end - mixture.start
        self._branch_of, self._turn_of = np.zeros(size, np.int64), np.zeros(size, np.int64)
        for number, branch in enumerate(self.branches):
            positions = branch.starts[:, None] + np.arange(branch.after - branch.first) - mixture.start
            self._branch_of[positions] = number
            self._turn_of[positions] = branch.turns[:, None]
        self.scanned: list[tuple[Node, Node]] = []
        self._bodies: list[_BranchGraph] = []
        self._flags: dict[bytes, Node] = {}
        self._chains: dict[Register, list[Node]] = {}
        self._starts: dict[Register, list[Node]] = {}
        self._kept: dict[Register, Node] = {}

    @staticmethod
    def of(recording: Recording, mixture: Mixture, keeps_all: bool) -> MixedGraph | None:
        """The graph of the turns; None if one loop is not possible, or would not pay.

        It holds all values of some operations where nothing else serves, if `keeps_all`.
        """
        made = MixedGraph(recording, mixture)
        return made if made._pays() and made._build(keeps_all) else None

    def _pays(self) -> bool:
        nodes = self.recording.nodes
        total = usual = 0
        for branch in self.branches:
            start = int(branch.starts[0])
            turn = nodes[start : start + branch.after - branch.first]
            work = sum(map(_work, turn))
            total += work
            usual += work * len(branch.turns)
            if len(branch.turns) < self.mixture.turns and not all(map(_is_safe, turn)):
                return False
        return 0 < total <= max(MOST_OPERATIONS, (usual + usual // MOST_MORE) // self.mixture.turns)

    # ----- What is carried -----

    def _build(self, keeps_all: bool) -> bool:
        found = registers_of(self._reads(), self.branches, self.mixture, keeps_all)
        if found is None:
            return False
        for number, branch in enumerate(self.branches):
            operands = {slot: one for (which, slot), one in found.items() if which == number}
            self._bodies.append(_BranchGraph(self, branch, operands))
        for _, register, _ in found.values():
            if register not in self._chains and not self._begin(register):
                return False
        return all(body.build() for body in self._bodies)

    def _begin(self, register: Register) -> bool:
        """Make placeholders for what a register holds; False if that is not always the same kind of value."""
        values = [self.recording.nodes[k] for k in {*register.values.tolist()} if k >= 0]
        starts = [None if at is None else self.outer(at) for at in register.starts]
        one, *others = [*values, *filter(None, starts)]
        if one.dtype.kind == "O" or any((node.shape, node.dtype) != (one.shape, one.dtype) for node in others):
            return False
        if register.all:
            shape = (len(register.values), *one.shape)
            self._chains[register] = [like(one, shape)]
            self._starts[register] = [zeros(shape, one.dtype)]
            return one.dtype.kind != "c" and len(register.values) * one.size <= MOST_OPERATIONS
        self._chains[register] = [like(one) for _ in range(register.length)]
        self._starts[register] = [zeros(one.shape, one.dtype) if node is None else node for node in starts]
        return True

    def _reads(self) -> list[Read]:
        """The operands that were made in earlier turns, and those in the same turn that not all turns have."""
        found: list[Read] = []
        mixture = self.mixture
        for number, branch in enumerate(self.branches):
            columns = operands_at(self.recording, branch.starts, branch.after - branch.first)
            begins = mixture.begins[branch.turns]
            for slot, column in enumerate(columns.T):
                earlier = (column >= mixture.start) & (column < begins)
                local = bool(column[0] >= begins[0])
                if earlier.any() or (local and len(branch.turns) < mixture.turns):
                    found.append(Read(number, slot, branch.turns, column, earlier | local, local))
        return found

    def outer(self, position: int) -> Node:
        """An operation before the loop, or an atom."""
        return self.recording.nodes[position] if position >= 0 else self.recording.atoms[-1 - position]

    def held(self, register: Register, back: int) -> Node:
        """The value that a register was set to `back` times ago; 1 stands for the last time."""
        chain = self._chains[register]
        kept = register.kept
        if kept is None or kept.local:
            return chain[back - 1]
        if register not in self._kept:
            value = self._bodies[kept.branch].operand_of(kept.slot)
            self._kept[register] = _chosen(self.flag(kept.turns), value, chain[0])
        return self._kept[register]

    def flag(self, turns: np.ndarray) -> Node | None:
        """Whether a turn is one of some; None if all are."""
        if len(turns) == self.mixture.turns:
            return None
        key = turns.tobytes()
        if key not in self._flags:
            values = np.zeros(self.mixture.turns, bool)
            values[turns] = True
            self._flags[key] = self.scan(constant(values))
        return self._flags[key]

    def scan(self, whole: Node) -> Node:
        """A placeholder for one turn's part of an array."""
        inside = like(whole, whole.shape[1:])
        self.scanned.append((inside, whole))
        return inside

    def node(self, branch: Branch | None, offset: int) -> Node:
        """The node of the body for an operation of a turn that goes through a branch."""
        while branch is not None and branch.first > offset:
            branch = branch.parent
        assert branch is not None
        return self._bodies[self.branches.index(branch)].body[offset - branch.first]

    # ----- The loop -----

    def place_of(self, position: int) -> tuple[int, int, int]:
        """The branch of an operation, its place there, and the number of its turn among those of the branch."""
        number = int(self._branch_of[position - self.mixture.start])
        branch = self.branches[number]
        turn = int(self._turn_of[position - self.mixture.start])
        which = int(np.searchsorted(branch.turns, turn))
        return number, position - int(branch.starts[which]), which

    def values(self, positions: Sequence[int]) -> list[Node] | None:
        """Parts of what the loop gives for the values of operations; None if arrays of all turns would be too large."""
        places = [self.place_of(position) for position in positions]
        every: dict[tuple[int, int], Node] = {}
        for number, place, which in places:
            node = self._bodies[number].body[place]
            if node.dtype.kind == "O":
                return None
            if which < len(self.branches[number].turns) - 1:
                every[number, place] = node
        last = {(number, place) for number, place, _ in places}.difference(every)
        if sum(n.size * n.dtype.itemsize for n in every.values()) * self.mixture.turns > MOST_KEPT:
            return None
        carried = self._carried()
        at_end: dict[tuple[int, int], int] = {}
        for number, place in sorted(last):
            node, branch = self._bodies[number].body[place], self.branches[number]
            inside = like(node)
            at_end[number, place] = len(carried)
            carried.append((inside, zeros(node.shape, node.dtype), _chosen(self.flag(branch.turns), node, inside)))
        made = make_loop(self.mixture.turns, carried, self.scanned, results=every.values())
        whole = {key: self._of_branch(made.every(node), self.branches[key[0]]) for key, node in every.items()}
        found: list[Node] = []
        for number, place, which in places:
            key = number, place
            found.append(part_of(whole[key], which) if key in whole else made.last(at_end[key]))
        return found

    def _carried(self) -> list[tuple[Node, Node, Node]]:
        carried: list[tuple[Node, Node, Node]] = []
        for register, chain in self._chains.items():
            after = chain[0]
            kept = register.kept
            if kept is not None:
                after = _chosen(self.flag(kept.turns), self._bodies[kept.branch].operand_of(kept.slot), after)
            elif register.all:
                after = self._with_set(register, after)
            else:
                for branch, place in register.sets:
                    after = _chosen(self.flag(branch.turns), self.node(branch, branch.first + place), after)
            moved = self.flag(register.set_in)
            for k, (inside, start) in enumerate(zip(chain, self._starts[register], strict=True)):
                carried.append((inside, start, after if k == 0 else _chosen(moved, chain[k - 1], inside)))
        return carried

    def _with_set(self, register: Register, values: Node) -> Node:
        """All values of a register, with the one that this turn sets."""
        numbers = np.full(self.mixture.turns, -1)
        numbers[register.set_in] = np.arange(len(register.set_in))
        number = self.scan(constant(numbers))
        count = values.shape[0]
        value: Node | None = None
        for branch, place in register.sets:
            node = self.node(branch, branch.first + place)
            value = node if value is None else _chosen(self.flag(branch.turns), node, value)
        assert value is not None
        here = elementwise("equal", iota(count), broadcast(number, (count,)))
        form = (count, *[1] * value.ndim)
        return elementwise(
            "select", broadcast(reshape(here, form), values.shape), broadcast(value, values.shape), values
        )

    def _of_branch(self, every: Node, branch: Branch) -> Node:
        """The values in the turns that go through a branch, of those in all turns."""
        return every if len(branch.turns) == self.mixture.turns else _rows(every, branch.turns)


def _work(node: Node) -> int:
    """About how many operations on elements a node is."""
    if node.primitive.kind in ("movement", "source") or node.primitive is ITEM:
        return 0
    if node.name == "matmul":
        return node.size * node.inputs[0].shape[-1]
    return max([node.size, *[source.size for source in node.inputs]])


def _is_safe(node: Node) -> bool:
    """Whether a node can be computed of any values."""
    if node.primitive.kind == "special":
        return node.name == "matmul"
    if node.name == "power":
        return node.dtype.kind in "fc"
    return node.name not in ("gather", "custom")


def _chosen(flag: Node | None, yes: Node, no: Node) -> Node:
    return yes if flag is None else elementwise("select", broadcast(flag, yes.shape), yes, no)


def _rows(array: Node, rows: np.ndarray) -> Node:
    """Parts of an array along its first axis."""
    shape = (len(rows), *array.shape[1:])
    if array.primitive is CONSTANT and type(array.value) is np.ndarray:
        return constant(np.ascontiguousarray(array.value[rows]))
    size = array.size // array.shape[0]
    index = rows[:, None] * size + np.arange(size)
    return gather(reshape(array, (array.size,)), constant(np.ascontiguousarray(index.reshape(shape))))


class _BranchGraph(TurnGraph):
    """The nodes of one branch; `registers` are those of its operands that were made in earlier turns, by slot."""

    def __init__(self, whole: MixedGraph, branch: Branch, registers: dict[int, tuple[Read, Register, int]]) -> None:
        length = branch.after - branch.first
        operands = operands_at(whole.recording, branch.starts, length)
        numbers = numbers_at(whole.recording, branch.starts, length)
        fixed = (operands == operands[0]).all(0) & (operands[0] < whole.mixture.start)
        kinds = np.where(fixed, SAME_IN_ALL, VARYING).tolist()
        start = int(branch.starts[0])
        stretch = Stretch(start, length, len(branch.turns), kinds, [0] * len(kinds), operands, numbers)
        super().__init__(whole.recording, stretch)
        self._whole, self._branch, self._registers = whole, branch, registers
        self._begins = whole.mixture.begins[branch.turns]
        self._which: np.ndarray | None = None
        """Which of the values of a table each turn has, while it is made."""

    def build(self) -> bool:
        """Make all nodes; False if large arrays would be copied, or an operand is not always the same kind of value."""
        try:
            start = self.stretch.start
            for place, _ in enumerate(walked(self.recording.nodes[start : start + self.stretch.period])):
                node = self._node(place)
                if node is None:
                    return False
                self.body.append(node)
        except _NoOperandError:
            return False
        return True

    def operand_of(self, slot: int) -> Node:
        """The operand of a slot."""
        found = self._operand(slot)
        if found is None:
            raise _NoOperandError
        return found

    def _operand(self, slot: int) -> Node | None:
        column = self.stretch.operands[:, slot]
        if column[0] >= self._begins[0]:
            return self._whole.node(self._branch, int(column[0] - self._begins[0]))
        if slot not in self._registers:
            return self._table(slot, column)
        read, register, back = self._registers[slot]
        held = self._of_all(read, register) if register.all else self._whole.held(register, back)
        outside = register.outside(read, back)
        if not outside.any():
            return held
        rows = np.flatnonzero(outside)
        other = self._table(slot, np.where(outside, column, column[rows[0]]))
        if other is None or (other.shape, other.dtype) != (held.shape, held.dtype):
            return None
        return _chosen(self._whole.flag(self._branch.turns[rows]), other, held)

    def _table(self, slot: int, column: np.ndarray) -> Node | None:
        """The value that each turn has, of those from before the loop."""
        different, which = np.unique(column, return_inverse=True)
        if len(different) == 1:
            return self.outer(int(different[0]))
        key = column.tobytes()
        if key not in self._varying:
            self._which = which
            found = self._varied(slot, [self.outer(k) for k in different.tolist()])
            self._which = None
            if found is None:
                return None
            self._varying[key] = found
        return self._varying[key]

    def _of_all(self, read: Read, register: Register) -> Node:
        """One of all values of a register, another one in each turn."""
        values = self._whole.held(register, 1)
        numbers = register.numbers(read)
        assert numbers is not None
        number = self._scan(constant(numbers), Varied(0, 0), numbers)
        shape = values.shape[1:]
        size = values.size // values.shape[0]
        index = broadcast(number * size, shape)
        if size > 1:
            index = index + reshape(iota(size), shape)
        return gather(reshape(values, (values.size,)), index)

    def _scan(self, whole: Node, origin: Origin, pieces: Any) -> Node:
        turns = self._whole.mixture.turns
        rows = self._which
        if len(self._branch.turns) < turns:
            of_turn = np.zeros(turns, np.int64)
            of_turn[self._branch.turns] = np.arange(len(self._branch.turns))
            rows = of_turn if rows is None else rows[of_turn]
        if rows is not None:
            if len(rows) * whole.size > MOST_GATHERED * whole.shape[0]:
                raise _NoOperandError
            whole = _rows(whole, rows)
        return self._whole.scan(whole)


class _NoOperandError(Exception):
    """An operand is not always the same kind of value, or too large to be copied for each turn."""
