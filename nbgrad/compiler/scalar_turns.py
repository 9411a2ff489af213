"""Loops whose turns are a few scalars: one native function for all turns, which keeps what is carried in registers.

In: a `Special` whose node is a loop. Out: a `ScalarTurns`, or None where a turn is more than that: its straight line of
scalar operations, the text of its function in LLVM's language, and the integers that it is called with. Called by
cpu_plan.py. Every array of the body is taken apart into its elements: moving them costs nothing then. Elementary
functions of several elements are put together again, for calls with vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce as fold
from typing import Any

import numpy as np

from ..graph.interpret import evaluate_node
from ..graph.ir import BOOL, PRIMITIVES, Node, elementwise, literal, make, placeholder, topological
from ..graph.loops.loop_body import LOOP, Body, is_reversed, turns_of
from ..graph.loops.loop_rewrites import written_out
from ..graph.loops.loop_rows import EVERY, LAST
from ..graph.simplify import simplify
from .called_scalars import WIDE, called_name
from .emitters.computed_values import FLOAT16
from .emitters.emit import Emitter, memory_type, register_type
from .fuse import Special
from .loop_builder import SAME, baked
from .loops import LIGHT, Value
from .scalars import merge
from .unroll_axes import COMBINED, OF_TRUTHS

MOST_OPERATIONS = 1500
MOST_HEAVY = 128
"""Elements of functions such as exp in one turn; arrays of more of them are better computed by loops of their own."""
LITERAL, MATMUL, IOTA = (PRIMITIVES[name] for name in "literal matmul iota".split())
MANY = 200
"""Lines of elementary functions that are included, in one turn; of more of them, all are called."""
TURNS, STEP, FIRST, BLOCK, LOOK, CONTEXT, NUMBERS = range(7)
"""Words that the function is called with: turns; 1 or -1, and the first part of what is scanned; the turns after which
it calls a function, its address, and what it gets; then numbers."""
LOOK_AFTER = 1 << 20
"""Operations after which a loop looks whether it is interrupted."""


class _TooMuchError(Exception):
    """The body is more than a few scalars."""


@dataclass
class ScalarTurns:
    """A loop as scalar operations; `values` are those of one turn in order, "load" for elements of the inputs.

    `loads` has the input and the element of each; `numbers` those numbers that are no part of the code.
    """

    turns: int
    reverse: bool
    body: Body
    shape: tuple[int, ...] = (1,)
    values: list[Value] = field(default_factory=list)
    loads: list[tuple[int, int]] = field(default_factory=list)
    numbers: list[Any] = field(default_factory=list)
    following: list[list[int]] = field(default_factory=list)
    """For each carried value, the positions of its elements after the turn."""
    targets: list[tuple[str, list[int]]] = field(default_factory=list)
    """For each result whether it is of the last turn or of every one, and the positions of its elements."""

    @property
    def identity(self) -> str:
        """All that the code depends on."""
        sizes = [(node.size, node.dtype.name) for node in self.body.inputs]
        values = [(operation, dtype.str, *rest) for operation, dtype, *rest in self.values]
        parts = (values, self.loads, self.following, self.targets, sizes, len(self.body.carried), _kinds(self))
        return repr([len(self.body.scanned), *parts])

    @property
    def elements(self) -> int:
        """The operations of all turns."""
        return self.turns * len(self.values)

    def words(self, look: int, context: int) -> list[int]:
        """The integers that the function is called with; it ends if the function at `look` gives more than zero."""
        block = max(1, LOOK_AFTER // max(1, len(self.values)))
        head = [self.turns, -1 if self.reverse else 1, self.turns - 1 if self.reverse else 0, block, look, context]
        bits = np.zeros(len(self.numbers), np.int64)
        for position, value in enumerate(self.numbers):
            bits[position : position + 1].view(value.dtype)[:1] = value
        return [*head, *bits.tolist()]

    def ir(self) -> str:
        """The function in LLVM's language."""
        return _TurnEmitter(self).run()


def _kinds(turns: ScalarTurns) -> list[str]:
    return [value.dtype.name for value in turns.numbers]


def scalar_turns(kernel: Special) -> ScalarTurns | None:
    """The loop as scalar operations, if it is small enough."""
    body: Body = kernel.node.params[0]
    wanted = [target.params for target in kernel.targets]
    every = [body.nodes[position] for kind, position in wanted if kind == EVERY]
    outputs = [*body.following, *every]
    if any(node.size > MOST_OPERATIONS for node in outputs):
        return None
    try:
        return _Scalars(kernel, body, outputs, wanted).made
    except _TooMuchError:
        return None


class _Scalars:
    """Takes the arrays of a body apart."""

    def __init__(self, kernel: Special, body: Body, outputs: Sequence[Node], wanted: Sequence[tuple[str, int]]) -> None:
        self.parts: dict[Node, np.ndarray] = {}
        self.leaves: dict[Node, tuple[int, int]] = {}
        self.inputs = {node: position for position, node in enumerate(body.inputs)}
        self.count = self.heavy = 0
        graph = simplify(_flat(outputs))
        for node in topological(graph):
            self.parts[node] = self._elements(node)
        flat = [part for node in graph for part in self.parts[node].ravel()]
        scalars = iter(self._straight(kernel, body, simplify(flat)))
        elements = [[next(scalars) for _ in range(node.size)] for node in outputs]
        self.made.following = elements[: len(body.following)]
        every = iter(elements[len(body.following) :])
        self.made.targets = [
            (kind, self.made.following[position] if kind == LAST else next(every)) for kind, position in wanted
        ]

    def _elements(self, node: Node) -> np.ndarray:
        """The elements of a node, as an array of scalar nodes."""
        primitive = node.primitive
        if node in self.inputs:
            if node.size > MOST_OPERATIONS:
                raise _TooMuchError
            return self._of_input(node)
        operands = [self.parts[source] for source in node.inputs]
        if primitive is LITERAL:
            return _array([node], ())
        if primitive is IOTA:
            return _array([literal(k, node.dtype) for k in range(node.size)], node.shape)
        if primitive.kind == "movement":
            return self._moved(node, operands)
        self._note(node)
        if primitive.kind == "elementwise" and primitive.name not in ("gather", "custom", "complex"):
            rows = zip(*[operand.ravel() for operand in operands], strict=True)
            return _array([make(node.name, row, node.params) for row in rows], node.shape)
        if primitive.name in COMBINED and node.dtype.kind in "fib":
            return self._reduced(node, operands[0])
        if primitive is MATMUL:
            return _product(*operands)
        raise _TooMuchError

    def _note(self, node: Node) -> None:
        size = node.size * (node.inputs[0].shape[-1] if node.primitive is MATMUL else 1)
        if node.primitive.kind == "reduction":
            size = node.inputs[0].size
        self.count += size
        light = node.primitive.kind == "reduction" or node.primitive is MATMUL or node.name in LIGHT
        self.heavy += 0 if light or node.name == "divide" else size
        if self.count > MOST_OPERATIONS or self.heavy > MOST_HEAVY:
            raise _TooMuchError

    def _of_input(self, node: Node) -> np.ndarray:
        made = []
        for element in range(node.size):
            leaf = placeholder((), node.dtype)
            self.leaves[leaf] = (self.inputs[node], element)
            made.append(leaf)
        return _array(made, node.shape)

    def _moved(self, node: Node, operands: Sequence[np.ndarray]) -> np.ndarray:
        """A movement, by moving the positions of the elements; -1 is where there is none."""
        if node.size > MOST_OPERATIONS:
            raise _TooMuchError
        start = 0
        positions: list[np.ndarray] = []
        for operand in operands:
            positions.append(np.arange(start, start + operand.size).reshape(operand.shape) + 1)
            start += operand.size
        moved = evaluate_node(Node(node.primitive, node.inputs, node.params, node.shape, np.dtype(np.int64)), positions)
        everything = [element for operand in operands for element in operand.ravel()]
        zero = literal(0, node.dtype)
        return _array([everything[k - 1] if k else zero for k in moved.ravel().tolist()], node.shape)

    def _reduced(self, node: Node, operand: np.ndarray) -> np.ndarray:
        axes = node.params[0]
        kept = [axis for axis in range(operand.ndim) if axis not in axes]
        rows = operand.transpose(*kept, *axes).reshape(node.size, -1)
        if not rows.shape[1]:
            raise _TooMuchError
        name = (OF_TRUTHS if node.dtype == BOOL else COMBINED)[node.name]
        return _array([fold(lambda a, b: elementwise(name, a, b), row) for row in rows.tolist()], node.shape)

    def _straight(self, kernel: Special, body: Body, outputs: Sequence[Node]) -> list[int]:
        """The straight line that computes some scalars, and the position of each in it."""
        made = self.made = ScalarTurns(turns_of(kernel.node), is_reversed(kernel.node), body)
        values, place = made.values, dict[Node, int]()
        for node in topological(outputs):
            if node in self.leaves:
                made.loads.append(self.leaves[node])
                value = Value("load", node.dtype, access=len(made.loads) - 1)
            elif node.primitive is LITERAL and baked(node):
                value = Value("literal", node.dtype, literal=node.params[0])
            elif node.primitive is LITERAL:
                made.numbers.append(np.frombuffer(node.params[0], node.dtype)[0])
                value = Value("number", node.dtype, access=len(made.numbers) - 1)
            elif node.primitive in SAME:
                place[node] = place[node.inputs[0]]
                continue
            elif node.primitive.kind == "elementwise":
                value = Value(node.name, node.dtype, tuple([place[source] for source in node.inputs]))
            elif node.primitive.kind == "movement":
                place[node] = place[node.inputs[0]]
                continue
            else:
                raise _TooMuchError
            place[node] = len(values)
            values.append(value)
        return [place[node] for node in outputs]


def _flat(outputs: Sequence[Node]) -> Sequence[Node]:
    """The outputs without loops of one turn, which only keep apart what would otherwise be stored."""
    loops = [node for node in topological(outputs) if node.primitive is LOOP]
    return written_out(outputs) if loops and all(turns_of(loop) == 1 for loop in loops) else outputs


def _array(elements: Sequence[Node], shape: tuple[int, ...]) -> np.ndarray:
    found = np.empty(len(elements), object)
    found[:] = elements
    return found.reshape(shape)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    batch, rows, _ = a.shape
    columns = b.shape[2]
    found = np.empty((batch, rows, columns), object)
    for at in np.ndindex(found.shape):
        products = [x * y for x, y in zip(a[at[0], at[1]], b[at[0], :, at[2]], strict=True)]
        found[at] = fold(lambda x, y: x + y, products)
    return found


class _TurnEmitter(Emitter):
    """Writes the loop over the turns around a straight line of scalars."""

    def __init__(self, turns: ScalarTurns) -> None:
        self.turns = turns
        super().__init__(turns)  # type: ignore[arg-type]

    def run(self) -> str:
        turns, body = self.turns, self.turns.body
        inputs = len(body.inputs)
        carried, scanned = len(body.carried), len(body.scanned)
        for position in range(inputs + len(turns.targets)):
            at = self.let(f"getelementptr ptr, ptr %pointers, i64 {position}")
            self.put(f"%p{position} = load ptr, ptr {at}")
        words = (TURNS, STEP, FIRST, BLOCK, LOOK, CONTEXT)
        count, step, first, block, look, context = [self._word(position) for position in words]
        names: dict[int, str] = {}
        for position, value in enumerate(turns.values):
            if value.operation == "number":
                at = self.let(f"getelementptr i64, ptr %sizes, i64 {NUMBERS + value.access}")
                names[position] = self.read(value.dtype, at)
            elif value.operation == "load" and turns.loads[value.access][0] >= carried + scanned:
                names[position] = self._element(*turns.loads[value.access], "0")
        start = [
            [self._element(k, element, "0") for element in range(node.size)] for k, node in enumerate(body.carried)
        ]
        self.put("br label %block")
        phis: list[str] = []
        outer: list[str] = []
        inside = self.lines
        self.lines = []
        turn, at = self.fresh("turn"), self.fresh("at")
        now = [[self.fresh("c") for _ in range(node.size)] for node in body.carried]
        limit = self.fresh("limit")
        for position, value in enumerate(turns.values):
            if value.operation == "load" and position not in names:
                which, element = turns.loads[value.access]
                names[position] = now[which][element] if which < carried else self._element(which, element, at)
        line = self._line(names)
        for number_, (kind, positions) in enumerate(turns.targets):
            if kind == EVERY:
                self._write_all(inputs + number_, positions, line, at)
        after = self.let(f"add nsw i64 {turn}, 1")
        next_at = self.let(f"add nsw i64 {at}, {step}")
        more = self.let(f"icmp slt i64 {after}, {limit}")
        self.put(f"br i1 {more}, label %loop, label %look")

        def carry(name: str, kind: str, begin: str, following: str) -> None:
            outer.append(f"  {name}.b = phi {kind} [ {begin}, %entry ], [ {following}, %more ]")
            phis.append(f"  {name} = phi {kind} [ {name}.b, %block ], [ {following}, %loop ]")

        carry(turn, "i64", "0", after)
        carry(at, "i64", first, next_at)
        for node, begin, current, positions in zip(body.carried, start, now, turns.following, strict=True):
            for one, name, position in zip(begin, current, positions, strict=True):
                carry(name, register_type(node.dtype), one, line[position])
        loop, self.lines = self.lines, []
        # Turns go on in blocks, so that the loop over turns is as short as it can be.
        end = self.let(f"add nsw i64 {turn}.b, {block}")
        nearer = self.let(f"icmp slt i64 {end}, {count}")
        self.put(f"{limit} = select i1 {nearer}, i64 {end}, i64 {count}")
        self.put("br label %loop")
        outer += self.lines
        self.lines = []
        left = self.let(f"icmp slt i64 {after}, {count}")
        self.put(f"br i1 {left}, label %ask, label %done")
        looks, self.lines = ["look:", *self.lines, "ask:"], []
        function = self.let(f"inttoptr i64 {look} to ptr")
        answer = self.let(f"call i64 {function}(i64 {context})")
        stop = self.let(f"icmp ne i64 {answer}, 0")
        self.put(f"br i1 {stop}, label %done, label %more")
        looks += [*self.lines, "more:", "  br label %block"]
        self.lines = []
        for number_, (kind, positions) in enumerate(turns.targets):
            if kind == LAST:
                self._write_all(inputs + number_, positions, line, "0")
        lines = ["entry:", *inside, "block:", *outer, "loop:", *phis, *loop, *looks, "done:", *self.lines]
        lines += ["  ret void", "}", "!0 = !{}"]
        head = 'define void @kernel(ptr %pointers, ptr %sizes, i64 %begin, i64 %end) "prefer-vector-width"="512" {'
        return "\n".join([merge(self.texts()), head, *lines, ""])

    def _line(self, names: dict[int, str]) -> list[str]:
        """The names of the values of a turn, given those that are not computed; equal functions in vectors."""
        values = self.turns.values
        line = [names.get(position, "") for position in range(len(values))]
        groups = self._groups(names)
        alone = [position for group in groups if len(group) == 1 for position in group]
        self.calling = sum(self.lines_of(values[position]) for position in alone) > MANY
        for group in groups:
            if len(group) == 1:
                line[group[0]] = self.value(values[group[0]], line, "0")
            else:
                self._at_once(group, line)
        return line

    def _groups(self, names: dict[int, str]) -> list[list[int]]:
        """The positions of the values to compute, in order; those of a group have the same long kernel, and none needs
        another."""
        values = self.turns.values
        stages = [0] * len(values)
        by_stage: dict[int, tuple[list[int], dict[tuple[Any, ...], list[int]]]] = {}
        for position, value in enumerate(values):
            stage = max([stages[o] for o in value.operands], default=0)
            if position not in names:
                alone, together = by_stage.setdefault(stage, ([], {}))
                if value.dtype.num != FLOAT16 and self.lines_of(value):
                    kinds = [values[o].dtype for o in value.operands]
                    together.setdefault((value.operation, value.dtype, *kinds), []).append(position)
                    # What needs the results comes in a later stage.
                    stage += 1
                else:
                    alone.append(position)
            stages[position] = stage
        found: list[list[int]] = []
        for stage in sorted(by_stage):
            alone, together = by_stage[stage]
            found += [[position] for position in alone]
            for group in together.values():
                most = WIDE // values[group[0]].dtype.itemsize
                found += [group[k : k + most] for k in range(0, len(group), most)]
        return found

    def _at_once(self, group: Sequence[int], line: list[str]) -> None:
        """Compute values by one call of the function of a vector, the rest of which has the last of them again."""
        values = self.turns.values
        first = values[group[0]]
        symbol, _ = self.scalar(*self.kernel_of(first))
        self.called.add(symbol)
        most = WIDE // first.dtype.itemsize
        width = next(w for w in (most // 4, most // 2, most) if w >= len(group))
        given: list[str] = []
        for which, operand in enumerate(first.operands):
            kind = register_type(values[operand].dtype)
            vector = "poison"
            for lane in range(width):
                element = line[values[group[min(lane, len(group) - 1)]].operands[which]]
                vector = self.let(f"insertelement <{width} x {kind}> {vector}, {kind} {element}, i32 {lane}")
            given.append(f"<{width} x {kind}> {vector}")
        vector_type = f"<{width} x {register_type(first.dtype)}>"
        result = self.let(f"call {vector_type} @{called_name(symbol)}.v{width}({', '.join(given)})")
        for lane, position in enumerate(group):
            line[position] = self.let(f"extractelement {vector_type} {result}, i32 {lane}")

    def _word(self, position: int) -> str:
        return self.let(f"load i64, ptr {self.let(f'getelementptr i64, ptr %sizes, i64 {position}')}")

    def _address(self, pointer: int, dtype: np.dtype[Any], size: int, element: int, at: str) -> str:
        offset = str(element)
        if at != "0":
            row = self.let(f"mul nsw i64 {at}, {size}") if size != 1 else at
            offset = self.let(f"add nsw i64 {row}, {element}") if element else row
        return self.let(f"getelementptr {memory_type(dtype)}, ptr %p{pointer}, i64 {offset}")

    def _element(self, which: int, element: int, at: str) -> str:
        node = self.turns.body.inputs[which]
        return self.read(node.dtype, self._address(which, node.dtype, node.size, element, at))

    def _write_all(self, pointer: int, positions: Sequence[int], line: Sequence[str], at: str) -> None:
        for element, position in enumerate(positions):
            dtype = self.turns.values[position].dtype
            self.write(dtype, line[position], self._address(pointer, dtype, len(positions), element, at))
