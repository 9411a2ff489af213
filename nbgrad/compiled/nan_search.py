"""`find_nan`: the line that has made the first NaN or infinity of a result.

In: a function and arguments. Out: a `NotFinite`, or None where all results are finite. Called by users. The recorded
graph, with its derivatives, runs in the interpreter, node by node; loops run turn by turn. From a result that is not
finite the search goes back through operands that are not finite either, to an operation all of whose operands are.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..graph.interpret import interpret, interpret_order
from ..graph.ir import Node, topological
from ..graph.loops.loop_body import ITEM, LOOP
from ..graph.loops.loop_rows import LAST, Run
from ..graph.loops.noted import Notes, noting
from ..runtime.cpu_program import missed
from ..transforms.arguments import name_of
from ..transforms.lent_arrays import lent, ndarrays
from .jit import Jitted
from .loop_report import file_name
from .page_style import shortened
from .signatures import flatten_in_order, signature
from .specialize import specialize

FINE, INFINITE, NAN = 0, 1, 2
_WORDS = {INFINITE: "an infinity", NAN: "NaN"}


@dataclass(frozen=True)
class Operand:
    """An operand of an operation: its dtype and shape, and one of its values, at the place of the result's."""

    dtype: str
    shape: tuple[int, ...]
    value: Any
    """The element at the same place; for operations that combine elements, the smallest and the largest."""

    def __str__(self) -> str:
        kind = f"{self.dtype}[{', '.join(map(str, self.shape))}]"
        if isinstance(self.value, tuple):
            return f"{kind}, from {self.value[0]} to {self.value[1]}"
        return f"{kind}, {self.value}"


@dataclass(frozen=True)
class NotFinite:
    """An operation that makes a NaN or an infinity of finite operands, and where it stands.

    Attributes
    ----------
    kind : str
        "NaN" or "an infinity".
    operation : str
        The name of the operation; "argument" if a value of the caller's is not finite.
    filename, line, text : str, int, str
        The user's line; line 0 where none is known.
    derivative : bool
        Whether it is the derivative of the line.
    turns : tuple of int
        The turns of the loops around it, from 0, the outermost loop first; for derivatives too, turns of the function.
    index : tuple of int
        The place of the first such element in the result of the operation.
    count : int
        The number of such elements.
    operands : tuple of Operand
    cause : NotFinite or None
        For a NaN that is made of an infinity, where that was made.
    """

    kind: str
    operation: str
    filename: str = ""
    line: int = 0
    text: str = ""
    derivative: bool = False
    turns: tuple[int, ...] = ()
    index: tuple[int, ...] = ()
    count: int = 1
    operands: tuple[Operand, ...] = ()
    cause: NotFinite | None = field(default=None)

    def __str__(self) -> str:
        if self.operation == "argument":
            return f"{self.text} holds {self.kind} at {list(self.index)}"
        place = f"{file_name(self.filename)}:{self.line}" if self.line else "an unknown line"
        of = "the derivative of " if self.derivative else ""
        turn = f", turn {' of turn '.join(map(str, self.turns[::-1]))}" if self.turns else ""
        many = f", and {self.count - 1:,} more" if self.count > 1 else ""
        at = f" at {list(self.index)}{many}" if self.index else ""
        lines = [f"{self.kind} is made by {self.operation} in {of}{place}{turn}{at}: {shortened(self.text, 100)}"]
        lines += [f"  operand {number}: {operand}" for number, operand in enumerate(self.operands)]
        if self.cause is not None:
            lines.append("  of " + str(self.cause).replace("\n", "\n  "))
        return "\n".join(lines)


def find_nan(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> NotFinite | None:
    """The line that has made the first NaN or infinity of a function's results; None if all are finite.

    The function is recorded as `jit` records it, and its operations run one by one in NumPy. NaN in branches of `where`
    that are not taken, and in values that no result needs, is not found.

    Parameters
    ----------
    fn : callable
        Any function, jitted or not. For the NaN of a gradient, the function that gives the gradient: `nb.grad(loss)`.
    *args, **kwargs
        The arguments of a call.

    Returns
    -------
    NotFinite or None
        The operation with its line, the turn of a loop, and its operands; to be printed.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def loss(x):
    ...     root = np.sqrt(x)
    ...     return np.sum(root * x)
    >>> found = nb.find_nan(nb.grad(loss), np.array([1.0, 0.0]))
    >>> found.kind, found.derivative, found.index
    ('NaN', True, (1,))
    >>> nb.find_nan(loss, np.array([1.0, 0.0])) is None
    True
    """
    plain = fn.fn if isinstance(fn, Jitted) else fn
    given, treespec = flatten_in_order((args, kwargs))
    leaves = [lent(leaf) for leaf in ndarrays(given)]
    with noting(sys._getframe()) as notes:  # pyright: ignore[reportPrivateUsage]
        one = specialize(plain, leaves, treespec, (), missed)
    arrays = one.arrays(signature(leaves, treespec)[1])
    known = {
        node: value.to_host() if hasattr(value, "to_host") else np.asarray(value)
        for node, value in zip(one.arguments, arrays, strict=True)
    }
    names = {node: f"argument {number} of {name_of(plain)}()" for number, node in enumerate(one.arguments)}
    found = _Search(notes, names).among(one.outputs[: one.result_count], known, ())
    return found if isinstance(found, NotFinite) else None


def _state(value: Any) -> int:
    """Whether an array has a NaN, or else an infinity."""
    if value.dtype.kind not in "fc" or np.isfinite(value).all():
        return FINE
    return NAN if np.isnan(value).any() else INFINITE


@dataclass
class _Values:
    """A graph that has run: the state of each node, and of the operands of choices as far as they are chosen."""

    known: Mapping[Node, np.ndarray]
    turns: tuple[int, ...]
    order: list[Node]
    states: dict[Node, int] = field(default_factory=dict)
    chosen: dict[Node, list[int]] = field(default_factory=dict)
    loops: dict[Node, Run] = field(default_factory=dict)

    def run(self) -> _Values:
        """Run the graph, of which only loops keep their values."""
        uses: dict[Node, int] = {}
        for node in self.order:
            for source in node.inputs:
                uses[source] = uses.get(source, 0) + 1
        values = dict(self.known)
        for node in self.order:
            if node not in values:
                values[node] = interpret_order([node], values, [node])[0]
            value: Any = values[node]
            if node.primitive is LOOP:
                self.loops[node] = value[()]
            self.states[node] = FINE if node.primitive is LOOP else _state(value)
            if node.name == "select" and self.states[node]:
                condition, x, y = [values[source] for source in node.inputs]
                self.chosen[node] = [FINE, _state(x[condition]), _state(y[~condition])]
            for source in node.inputs:
                uses[source] -= 1
                if not uses[source] and source.inputs:
                    values.pop(source, None)
        return self

    def makers(self, bad: Sequence[Node], wanted: int) -> list[Node]:
        """The nodes that `bad` ones have a state from, in the order of the computation: their operands have it not."""
        waiting, seen = list(bad), set(bad)
        found: set[Node] = set()
        for node in waiting:
            of = self.chosen.get(node) or [self.states[source] for source in node.inputs]
            sources = [source for source, state in zip(node.inputs, of, strict=True) if state == wanted]
            if not sources or node in self.known:
                found.add(node)
                continue
            for source in sources:
                if source not in seen:
                    seen.add(source)
                    waiting.append(source)
        return [node for node in self.order if node in found]


class _Search:
    """The search; `names` has those of the function's arguments."""

    def __init__(self, notes: Notes, names: Mapping[Node, str]) -> None:
        self.notes, self.names = notes, names

    def among(
        self,
        outputs: Sequence[Node],
        known: Mapping[Node, np.ndarray],
        turns: tuple[int, ...],
        states: Sequence[int] = (NAN, INFINITE),
    ) -> NotFinite | Node | None:
        """The operation that makes the first value in one of some states, of those that outputs are made of; an input
        of the graph, if that is in such a state; None if no output is, or only for infinite numbers of the text."""
        ran = _Values(known, turns, topological(outputs)).run()
        for wanted in states:
            found = self._first([node for node in outputs if ran.states[node] == wanted], wanted, ran)
            if found is not None:
                return found
        return None

    def _first(self, bad: Sequence[Node], wanted: int, ran: _Values) -> NotFinite | Node | None:
        """The first operation that nodes in some state have it from."""
        waiting = ran.makers(bad, wanted)
        seen = set(waiting)
        for node in waiting:
            if node in ran.known and node not in self.names:
                return node
            found = self._found(node, wanted, ran)
            if isinstance(found, Node):
                # An input of a loop: the search goes on at the operation that has made it.
                waiting += [one for one in ran.makers([found], wanted) if one not in seen]
                seen.update(waiting)
            elif found is not None:
                return found
        return None

    def _found(self, node: Node, wanted: int, ran: _Values) -> NotFinite | Node | None:
        """A node as the result of the search; for a loop, an input of it; None for numbers of the text."""
        if node in ran.known:
            index = _places(ran.known[node], wanted)[0]
            return NotFinite(_WORDS[wanted], "argument", text=self.names[node], index=index)
        if node.primitive is ITEM:
            return self._in_loop(node, wanted, ran)
        if not node.inputs:
            return None
        operands = interpret(node.inputs, ran.known)
        value = interpret_order([node], dict(zip(node.inputs, operands, strict=True)), [node])[0]
        places, turns = _places(value, wanted), ran.turns
        if len(turns) == 1:
            turns = (turns[0] + self.notes.turns_before(node.serial),)
        cause = None
        if wanted == NAN:
            infinite = [source for source in node.inputs if ran.states[source] == INFINITE]
            cause = self._first(infinite, INFINITE, ran)
        place = self.notes.place_of(node.serial)
        filename, line = ("", 0) if place is None else (place[0].code.co_filename, place[0].line)
        return NotFinite(
            _WORDS[wanted],
            node.name,
            filename,
            line,
            linecache.getline(filename, line).strip() if line else "",
            place is not None and place[1],
            turns,
            places[0],
            len(places),
            tuple([_operand(operand, value, places[0]) for operand in operands]),
            cause if isinstance(cause, NotFinite) else None,
        )

    def _in_loop(self, item: Node, state: int, ran: _Values) -> NotFinite | Node | None:
        """The operation in the body of a loop that makes the first value in a state, in the first such turn; or the
        input of the loop that is in it."""
        loop, (kind, position) = item.inputs[0], item.params
        run = ran.loops[loop]
        body = run.body
        wanted = [*body.following, *([] if kind == LAST else [body.nodes[position]])]
        every = None if kind == LAST else run.item(kind, position)
        for at, before, after in zip(run.order, run.states, run.states[1:], strict=False):
            values = [*after, *([] if every is None else [every[at]])]
            if state not in map(_state, values):
                continue
            known = dict(run.constants)
            known.update(zip(body.carried, before, strict=True))
            known.update(zip(body.scanned, [array[at] for array in run.scanned], strict=True))
            found = self.among(wanted, known, (*ran.turns, at), (state,))
            if found is not None:
                return loop.inputs[body.inputs.index(found)] if isinstance(found, Node) else found
        return None


def _places(value: np.ndarray, wanted: int) -> list[tuple[int, ...]]:
    """The places of NaN, or of infinities, in an array."""
    bad = np.isnan(value) if wanted == NAN else np.isinf(value)
    return [tuple(map(int, place)) for place in np.argwhere(bad)]


def _operand(operand: np.ndarray, value: np.ndarray, index: tuple[int, ...]) -> Operand:
    """An operand, with its value at a place of the result."""
    shown: Any
    if operand.shape == value.shape:
        shown = operand[index].item()
    elif operand.size == 1:
        shown = operand.reshape(-1)[0].item()
    elif operand.size and operand.dtype.kind in "fiub":
        shown = (operand.min().item(), operand.max().item())
    else:
        shown = None
    return Operand(str(operand.dtype), operand.shape, shown)
