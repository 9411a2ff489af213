"""Calls of a recorded function, while a loop of it is followed: those that are expected make their nodes at once.

In: a call with its operands, and the function that records it otherwise. Out: its result. Called by Tensor's operators
and protocols, as long as `ir.due` says that something is to be done between two operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ..graph.ir import RECORDED, Node, broadcast, due, next_serial
from ..graph.loops.follower import AT, Arguments, Followed, Follower, Given, K, Number, hold, is_same_source
from ..graph.loops.repetition import atom_key, is_source
from ..graph.trace import current_trace, roll_if_full
from ..process.modes import looking
from ..runtime.evaluate import questions
from ..runtime.native_steps import Expectation, Tables
from .as_node import as_node
from .expected_steps import outline_of, tables_of
from .promotion import number_like
from .shared_memory import note_view
from .tensor import Tensor
from .view_chain import Moves

_new = object.__new__
_recorded = RECORDED.get
FLOATS = (float, np.float64)
PLAIN = frozenset([*FLOATS, int, bool, str, type(None)])
"""Classes of arguments that are compared by value."""
ARITHMETIC = frozenset(["add", "subtract", "multiply", "divide", "maximum", "minimum"])
"""Operations that are the same for any number."""
NUMBERS = (np.generic, float, int, complex)
"""Classes that stand for dtypes."""
CREATION = "nbgrad.functions.arrays.creation"
"""The functions there make the same of numbers each time."""
OF_ANY_VALUES = frozenset(["nbgrad.functions.arrays.joining", "nbgrad.functions.linalg.matrix_products"])
"""The functions there make the same operations of NumPy's floats, whatever these are."""


class Operands(Arguments):
    """A function and its arguments."""

    __slots__ = ("apply", "args", "kwargs")

    def __init__(
        self, frame: list[Any], nodes: list[Node], arrays: list[Any], apply: Callable[..., Any], args: Any, kwargs: Any
    ) -> None:
        super().__init__(frame, nodes, arrays)
        self.apply, self.args, self.kwargs = apply, args, kwargs


def _operands(apply: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Operands | None:
    """The arguments of a function that are Tensors, numbers and names, or lists of them; None if there are others.

    Functions may also get arrays of NumPy's, if their values do not matter.
    """
    nodes: list[Node] = []
    arrays: list[Any] = []
    frame: list[Any] = [apply, *kwargs]
    waiting = [*args, *kwargs.values()]
    for value in waiting:
        kind = value.__class__
        frame.append(kind)
        if kind is Tensor:
            nodes.append(value._node)
        elif kind is list or kind is tuple:
            frame.append(len(value))
            waiting += value
        elif (kind in PLAIN and (value or kind not in FLOATS)) or (kind is type and issubclass(value, NUMBERS)):
            frame.append(value)
        elif kind is np.ndarray and apply.__module__ in OF_ANY_VALUES and _is_data(value):
            frame += [value.dtype.char, value.shape]
            arrays.append(value)
        else:
            return None
    return Operands(frame, nodes, arrays, apply, args, kwargs) if nodes or apply.__module__ == CREATION else None


def _is_data(array: np.ndarray) -> bool:
    """Whether an array may be another one in each turn: floats in C order, which no operator asks for their values."""
    dtype = array.dtype
    return dtype.kind == "f" and dtype.itemsize <= 8 and dtype.isnative and array.ndim > 0 and array.flags.c_contiguous


def _compared(other: Any) -> Any:
    """The form in which the second operand of an operator is compared: an array as `Arguments`."""
    if other.__class__ is np.ndarray and _is_data(other):
        return Arguments([np.ndarray, other.dtype.char, other.shape], [], [other])
    return other


def _given(nodes: list[Node], what: Any, second: Any, wanted: Sequence[Given]) -> list[Node] | None:
    """The operands that an expected call makes of its arrays, or of a number; None if one is not as it must be."""
    at = len(nodes)
    given = [as_node(array) for array in what.arrays] if isinstance(what, Arguments) else [_operand(what, *second[1:])]
    if not all(map(is_source, nodes[at:])):
        return None
    del nodes[at:]  # sources are no operations
    for node, (key, equal) in zip(given, wanted, strict=True):
        if key is not None and atom_key(node) != key:
            return None
        if any(not is_same_source(nodes[way].inputs[number], node) for way, number in equal):
            return None
    return given


def _operand(value: float, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Node:
    """A number as an operand of an operation that depends on it by this operand only."""
    return number_like(value, dtype, shape) if value.__class__ is float else broadcast(as_node(value), shape)


def _number(value: Any, result: Any, one: Tensor | None) -> Any:
    """A number that an operation gets, as something that may be another one in each turn, or just as it is."""
    node = result._node if result.__class__ is Tensor else None
    if one is None or node is None or node.name not in ARITHMETIC or len(node.inputs) != 2:
        return value
    operands = [source for source in node.inputs if source is not one._node]
    if len(operands) != 1:
        return value
    (found,) = operands
    made = _operand(value, found.dtype, found.shape)
    return Number(value, made) if is_source(found) and is_same_source(made, found) else value


class _Expected:
    """The calls of operators and functions while a loop is followed: at first as Python, then as native code.

    `tables` are those of the loop that native code follows, `native` is absent where it cannot know objects.
    """

    __slots__ = ("_is_known", "call", "function", "native", "tables")

    def __init__(self) -> None:
        self.call: Callable[..., Any] = followed
        self.function: Callable[..., Any] = followed_function
        self._is_known = False
        self.native: Expectation | None = None
        self.tables: Tables | None = None

    def attend(self, follower: Follower) -> None:
        """Let native code expect the steps of a loop."""
        if not self._is_known:
            self._is_known = True
            with suppress(LookupError):
                self.native = Expectation(Tensor, Followed, followed, followed_function)
                self.call, self.function = self.native.call, self.native.function
        if self.native is not None:
            if follower.tables is None:
                follower.tables = tables_of(follower)
            self.native.follow(follower.tables)
            self.tables = follower.tables


def look() -> None:
    """Look for loops between two operations, if it is time."""
    if due[-1:] == [None]:
        roll_if_full()


def followed_function(apply: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of a function that stands for one of NumPy's, `apply(*args, **kwargs)`."""
    look()
    operands = _operands(apply, args, kwargs) if due else None
    return apply(*args, **kwargs) if operands is None else followed(_function, None, operands)


def _function(_: None, operands: Operands) -> Any:
    return operands.apply(*operands.args, **operands.kwargs)


def followed(call: Callable[[Any, Any], Any], one: Tensor | None, other: Any = None) -> Any:
    """The result of a call.

    Parameters
    ----------
    call : callable
        Records the call; the same object in all turns.
    one : Tensor, or None for a function
    other : Tensor, number, ndarray, key, Operands, None or anything else
        Calls of anything else are recorded as ever.
    """
    while due:
        try:
            follower: Follower | None = due[-1]
        except IndexError:  # another thread has seen to it
            break
        if follower is None:
            roll_if_full()
            continue
        nodes = follower.nodes
        if looking or _recorded() is not nodes:
            break
        if follower.words[AT] == len(nodes) and follower.steps:
            node: Any = None if one is None else one._node
            words = follower.words
            step = follower.steps[words[K]]
            key, way, source, kind, other_way, second, parts, is_view, pack, wanted = step
            if key is call and node is (nodes[way] if way else source):
                given: list[Node] | None = []
                if kind is Node:
                    same = other.__class__ is Tensor and other._node is (nodes[other_way] if other_way else second)
                elif kind is Arguments:
                    frame, places, _ = second
                    what = _compared(other)
                    same = isinstance(what, Arguments) and what.frame == frame
                    same = same and what.nodes == [nodes[at] if at else c for at, c in places]
                    if same and wanted:
                        given = _given(nodes, what, second, wanted)
                elif kind is Number:
                    same = other.__class__ is second[0] and other == other
                    if same:
                        given = _given(nodes, other, second, wanted)
                else:
                    same = other.__class__ is kind and (kind in PLAIN or _is_plain(other)) and other == second
                if same and given is not None:
                    made = [_made(nodes, *part, given) for part in parts]
                    words[AT] = len(nodes)
                    words[K] += 1
                    if expected.tables is None or follower.tables is not expected.tables:
                        expected.attend(follower)
                    of, numbers = pack
                    results = [Tensor._of(made[number]) for number in numbers]
                    if of is not None:
                        return tuple(results) if of is tuple else of(*results)
                    (tensor,) = results
                    if not is_view:
                        return tensor
                    return note_view(other.args[0], is_view, tensor) if one is None else note_view(one, other, tensor)
            if other.__class__ is int and (call, node, other) in follower.fixed:
                return Tensor._of(follower.fixed[call, node, other])
            if follower.ends_turn():
                continue
            break
        if not follower.catch_up():
            break
        if not follower.steps:
            return _noted(follower, call, one, other)
    return call(one, other)


def _made(nodes: list[Node], pattern: Any, sources: Sequence[Any], hidden: list[Node], given: Sequence[Node]) -> Node:
    """The node of a part of an expected call, which is recorded; `given` has its arrays and numbers as operands."""
    node: Any = _new(Followed)
    inputs = tuple([nodes[at] if at < 0 else given[at - 1] if at else constant for at, constant in sources])
    if hidden:
        hold(node, inputs)
        nodes += hidden
    else:
        node.inputs = inputs
    node.depth, node.serial = pattern, next_serial()
    nodes.append(node)
    return node


def _noted(follower: Follower, call: Callable[[Any, Any], Any], one: Tensor | None, other: Any) -> Any:
    """The result of a call that the follower takes note of."""
    what: Any = _compared(other)
    arrays = what.arrays if isinstance(what, Arguments) else ()
    given = [as_node(array) for array in arrays]
    checks, before = _noted_so_far()
    begin, since = follower.at, len(follower.log)
    noted = len(checks)
    result = call(one, other)
    of = result.__class__ if isinstance(result, tuple) else None
    results: Any = result if of else (result,)
    is_view = _view_of(result, one, other)
    steady = _noted_so_far()[1] == before and (of is None or bool(results))
    for each in results:
        steady = steady and each.__class__ is Tensor and (bool(is_view) or not hasattr(each, "_base"))
    if isinstance(other, Operands):
        after = _operands(other.apply, other.args, other.kwargs)
        steady = steady and after is not None and after.nodes == other.nodes  # nothing was written to
        other.outline = outline_of(other.args, other.kwargs)
    if isinstance(what, Arguments):
        what.given = given
        steady = steady and all(map(is_same_source, given, [as_node(array) for array in arrays]))
    elif isinstance(other, Tensor):
        what = other._node
        steady = steady and other.__class__ is Tensor
    elif other.__class__ in FLOATS:
        what = _number(other, result, one)
    elif not (other.__class__ in PLAIN or _is_plain(other)):
        steady = False
    if steady:
        made = tuple([each._node for each in results])
        follower.note(call, None if one is None else one._node, what, made, of, is_view, checks[noted:], begin, since)
    return result


def _view_of(result: Any, one: Tensor | None, other: Any) -> Any:
    """True for a result that is `one[other]`, how elements are moved for a view of a function's first argument."""
    base, key = getattr(result, "_base", (None, None))
    if isinstance(other, Operands):
        return key if isinstance(key, Moves) and other.args and base is other.args[0] else False
    return base is not None and base is one and key is other and (key.__class__ is Tensor or _is_plain(key))


def _is_plain(key: Any) -> bool:
    """Whether a key is made of integers, slices, None and Ellipsis, so that it can be compared."""
    for part in key if key.__class__ is tuple else (key,):
        parts = (part.start, part.stop, part.step) if part.__class__ is slice else (part,)
        if not all(one is None or one is Ellipsis or one.__class__ is int for one in parts):
            return False
    return True


expected = _Expected()
"""Called in the place of `followed` and `followed_function`."""


def _noted_so_far() -> tuple[list[Any], tuple[int, ...]]:
    """The checks of a recording, how much else it has noted beside its nodes, and how many values were asked for."""
    trace = current_trace()
    assert trace is not None
    counts = [len(trace.guards or ()), len(trace.orders), len(trace.outside), questions.count]
    around: Any = trace
    while around is not None:
        counts.append(len(around.turn_checks or ()))
        around = around.parent
    return trace.checks, tuple(counts)
