"""Calls that a followed loop expects, as native code: it compares a call with the step, and makes the result.

In: the steps of a turn, as record/followed.py knows them, and each call of the recorded function. Out: the result of an
expected call; the fallback gets all others. Called by record/followed.py, which fills the tables. Where the slots of
nodes and Tensors lie is measured. Lists, dicts and context variables are only read by CPython's functions in C.

The functions under "Native" are compiled as those of native.py are. Finalizers may run when an object is made, and may
end the loop; so all objects are made before anything is compared.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..graph import ir
from ..graph.ir import LEFT_OUT, Node
from ..graph.loops.follower import AT, BEGIN, CYCLE, FOLLOWER, NEXT_LOOK, WORDS, K
from ..process.modes import looking
from ..process.object_layout import array_data, object_type, scalar_values, slice_parts, slots, tuple_items
from .cpu_program import native_callable
from .words import invoke, load, load32, native_address, store

# ----- Layouts, in units of 8 bytes -----
# What the process has: types and objects, offsets of slots, functions in C; then what is followed, and the fallbacks.
TENSOR, FOLLOWED, FLOAT, INTEGER_TYPE, HIDDEN_NODE, DUE, RECORDED, SERIALS, LOOKING = range(9)
TENSOR_NODE, TENSOR_BASE, TENSOR_VIEWS, INPUTS, PARAMS, DEPTH, SERIAL, FLOAT_VALUE, SLICE_PARTS = range(9, 18)
LIST_SIZE, LIST_ITEM, APPEND, TUPLE_SIZE, TUPLE_ITEM, DICT_SIZE, DICT_ITEM, DICT_SET = range(18, 26)
GET_CONTEXT, NEXT, NEW_OBJECT, NEW_TUPLE, NEW_DICT, NEW_REFERENCE, NEW_NUMBER, INTEGER_VALUE = range(26, 34)
INCREF, DECREF, VECTORCALL = range(34, 37)
CURRENT, CALL_FALLBACK, FUNCTION_FALLBACK, ANSWER, STATE_LENGTH = range(37, 42)
# What is followed: the follower's own words, the recorded nodes, the steps, the last one, and elements of constants.
NODES, STEPS, LAST, FIXED, FIXED_COUNT, TABLE_LENGTH = range(WORDS, WORDS + 6)
# A step: the call (0: none); how far from the end its first operand is, or 0 and a constant; of the second one, the
# kind, and the same or what it must be; the nodes that are left out, the pattern, the key of a view, and the number of
# sources that follow.
CALL, WAY, ONE, KIND, OTHER_WAY, OTHER, LEFT, PATTERN, VIEW, SOURCES, STEP_HEAD = range(11)
SOURCE = 2
BY_KEY = 1
"""The view of the first operand that the second one says; otherwise a view of a function's first argument, by Moves."""
# Kinds: a node, a float by its bits, or this very object; a key, whose parts are those of arguments. These can be an
# integer by its value, a slice, or a list or a tuple of some length.
NODE, NUMBER, OBJECT, KEY, INTEGER, SLICE, LIST, TUPLE = range(8)
# Arguments: how many by position, by name, and in all; then for each what it is in, and its place or name there, its
# kind, how far from the end or the type of what has parts, the constant, object, value or length; and the object now.
BY_POSITION, BY_NAME, ALL, ARGUMENTS_HEAD = range(4)
PARENT, INDEX, ARGUMENT_KIND, ARGUMENT_WAY, ARGUMENT, NOW, ARGUMENT_WORDS = range(7)
POSITIONS, NAMES, WHOLE_KEY = -1, -2, -3
# An element of a constant: the call, the constant, the index and the node.
ELEMENT = 4
MOST_VIEWS = 256
"""More than these are left to Python, which forgets those that are gone."""
FAILED = 1
"""The result of what could not be made; the error is set."""
FAILS = 2
"""In place of 1, which says that something is so, and 0: that could not be found out."""


# ----- Native -----


def expect_call(self: int, arguments: int, count: int) -> int:
    """The entry for an operator: the call that records it, and two operands."""
    state = load(self + array_data())
    result = expected(state, arguments, 0)
    if result == 0:
        fallback = load(state + 8 * CALL_FALLBACK)
        return invoke(load(state + 8 * VECTORCALL), fallback, arguments, count, 0, 0, 0, 0, 0)
    return 0 if result == FAILED else result


def expect_function(self: int, arguments: int, count: int) -> int:
    """The entry for a function: the function, its arguments by position and those by name."""
    state = load(self + array_data())
    result = expected(state, arguments, 1)
    if result == 0:
        fallback = load(state + 8 * FUNCTION_FALLBACK)
        return invoke(load(state + 8 * VECTORCALL), fallback, arguments, count, 0, 0, 0, 0, 0)
    return 0 if result == FAILED else result


def followed_now(state: int) -> int:
    """The words of what is followed, if the next operation of this recording is the next one of that; otherwise 0."""
    words = load(state + 8 * CURRENT)
    if words == 0:
        return 0
    if invoke(load(state + 8 * LIST_SIZE), load(state + 8 * LOOKING), 0, 0, 0, 0, 0, 0, 0) != 0:
        return 0
    due = load(state + 8 * DUE)
    size = invoke(load(state + 8 * LIST_SIZE), due, 0, 0, 0, 0, 0, 0, 0)
    if size < 1:
        return 0
    if invoke(load(state + 8 * LIST_ITEM), due, size - 1, 0, 0, 0, 0, 0, 0) != load(words + 8 * FOLLOWER):
        return 0
    recorded = load(state + 8 * RECORDED)
    invoke(load(state + 8 * GET_CONTEXT), recorded, 0, state + 8 * ANSWER, 0, 0, 0, 0, 0)
    nodes = load(state + 8 * ANSWER)
    if nodes == 0:
        return 0
    invoke(load(state + 8 * DECREF), nodes, 0, 0, 0, 0, 0, 0, 0)
    if nodes != load(words + 8 * NODES):
        return 0
    if invoke(load(state + 8 * LIST_SIZE), nodes, 0, 0, 0, 0, 0, 0, 0) != load(words + 8 * AT):
        return 0
    return words


def expected(state: int, arguments: int, is_function: int) -> int:
    """The result of a call, if it is the next step; otherwise 0."""
    words = followed_now(state)
    if words == 0:
        return 0
    at = load(words + 8 * AT)
    ends = load(words + 8 * K) == load(words + 8 * LAST) and at < load(words + 8 * NEXT_LOOK)
    if ends and at - load(words + 8 * BEGIN) == load(words + 8 * CYCLE):
        store(words + 8 * BEGIN, at)
        store(words + 8 * K, 0)
    step = next_step(words)
    if load(step + 8 * CALL) != load(arguments):
        return 0 if is_function != 0 else element(state, words, arguments)
    count = load(step + 8 * SOURCES)
    sources = invoke(load(state + 8 * NEW_TUPLE), count, 0, 0, 0, 0, 0, 0, 0)
    node = 0
    tensor = 0
    serial = 0
    if sources != 0:
        node = invoke(load(state + 8 * NEW_OBJECT), load(state + 8 * FOLLOWED), 0, 0, 0, 0, 0, 0, 0)
    if node != 0:
        tensor = invoke(load(state + 8 * NEW_OBJECT), load(state + 8 * TENSOR), 0, 0, 0, 0, 0, 0, 0)
    if tensor != 0:
        serial = invoke(load(state + 8 * NEXT), load(state + 8 * SERIALS), 0, 0, 0, 0, 0, 0, 0)
    result = 0 if serial != 0 else FAILED
    base = 0
    reference = 0
    views = 0
    if result == 0 and load(step + 8 * VIEW) != 0:
        base = invoke(load(state + 8 * NEW_TUPLE), 2, 0, 0, 0, 0, 0, 0, 0)
        if base != 0:
            reference = invoke(load(state + 8 * NEW_REFERENCE), tensor, 0, 0, 0, 0, 0, 0, 0)
        if reference != 0:
            views = invoke(load(state + 8 * NEW_DICT), 0, 0, 0, 0, 0, 0, 0, 0)
        result = 0 if views != 0 else FAILED
    fits = 0
    if result == 0 and followed_now(state) == words and next_step(words) == step:
        fits = takes(state, words, step, arguments) if is_function != 0 else operates(state, words, step, arguments)
        if fits != 0 and base != 0:
            fits = noted_view(state, step, arguments, tensor, base, reference, views)
            result = FAILED if fits == FAILS else 0
        if fits == 1:
            result = done(state, words, step, sources, node, tensor, serial)
        elif fits == 0 and is_function == 0:
            result = element(state, words, arguments)
    if fits != 1:
        forget(state, sources)
        forget(state, node)
        forget(state, tensor)
        forget(state, serial)
    forget(state, base)
    forget(state, reference)
    forget(state, views)
    return result


def next_step(words: int) -> int:
    """The step that is next."""
    return load(load(words + 8 * STEPS) + 8 * load(words + 8 * K))


def forget(state: int, thing: int) -> None:
    """Give back a reference, if there is one."""
    if thing != 0:
        invoke(load(state + 8 * DECREF), thing, 0, 0, 0, 0, 0, 0, 0)


def source(state: int, words: int, way: int, constant: int) -> int:
    """The recorded node so far from the end, or a constant."""
    if way == 0:
        return constant
    at = load(words + 8 * AT) + way
    if at < 0:
        return -1
    return invoke(load(state + 8 * LIST_ITEM), load(words + 8 * NODES), at, 0, 0, 0, 0, 0, 0)


def holds(state: int, tensor: int, node: int) -> int:
    """1 if an object is a Tensor of a node."""
    if load(tensor + object_type()) != load(state + 8 * TENSOR):
        return 0
    return 1 if load(tensor + load(state + 8 * TENSOR_NODE)) == node else 0


def is_number(state: int, thing: int, bits: int) -> int:
    """1 if an object is the float of some bits."""
    if load(thing + object_type()) != load(state + 8 * FLOAT):
        return 0
    return 1 if load(thing + load(state + 8 * FLOAT_VALUE)) == bits else 0


def is_integer(state: int, thing: int, value: int) -> int:
    """1 if an object is the int of some value."""
    if load(thing + object_type()) != load(state + 8 * INTEGER_TYPE):
        return 0
    if invoke(load(state + 8 * INTEGER_VALUE), thing, state + 8 * ANSWER, 0, 0, 0, 0, 0, 0) != value:
        return 0
    return 1 if load32(state + 8 * ANSWER) == 0 else 0  # no overflow


def operates(state: int, words: int, step: int, arguments: int) -> int:
    """1 if both operands are those of a step."""
    if holds(state, load(arguments + 8), source(state, words, load(step + 8 * WAY), load(step + 8 * ONE))) == 0:
        return 0
    kind, other, wanted = load(step + 8 * KIND), load(arguments + 16), load(step + 8 * OTHER)
    if kind == NODE:
        return holds(state, other, source(state, words, load(step + 8 * OTHER_WAY), wanted))
    if kind == NUMBER:
        return is_number(state, other, wanted)
    if kind == KEY:
        return fit(state, words, wanted, 0, 0, other)
    return 1 if other == wanted else 0


def takes(state: int, words: int, step: int, arguments: int) -> int:
    """1 if the arguments of a function are those of a step."""
    by_position, by_name = load(arguments + 8), load(arguments + 16)
    spec = load(step + 8 * OTHER)
    size = invoke(load(state + 8 * TUPLE_SIZE), by_position, 0, 0, 0, 0, 0, 0, 0)
    names = invoke(load(state + 8 * DICT_SIZE), by_name, 0, 0, 0, 0, 0, 0, 0)
    if size != load(spec + 8 * BY_POSITION) or names != load(spec + 8 * BY_NAME):
        return 0
    return fit(state, words, spec, by_position, by_name, 0)


def fit(state: int, words: int, spec: int, by_position: int, by_name: int, key: int) -> int:
    """1 if arguments, or a key, and all that is in them are as expected."""
    first = spec + 8 * ARGUMENTS_HEAD
    at = first
    for _ in range(load(spec + 8 * ALL)):
        parent, index = load(at + 8 * PARENT), load(at + 8 * INDEX)
        if parent == POSITIONS:
            now = invoke(load(state + 8 * TUPLE_ITEM), by_position, index, 0, 0, 0, 0, 0, 0)
        elif parent == NAMES:
            now = invoke(load(state + 8 * DICT_ITEM), by_name, index, 0, 0, 0, 0, 0, 0)
        elif parent == WHOLE_KEY:
            now = key
        else:
            around = first + 8 * ARGUMENT_WORDS * parent
            now = part(state, load(around + 8 * ARGUMENT_KIND), load(around + 8 * NOW), index)
        if now == 0:
            return 0
        if is_argument(state, words, at, now) == 0:
            return 0
        store(at + 8 * NOW, now)
        at += 8 * ARGUMENT_WORDS
    return 1


def part(state: int, kind: int, of: int, index: int) -> int:
    """A part of a slice, or an element of a list or tuple."""
    if kind == SLICE:
        return load(of + load(state + 8 * SLICE_PARTS) + 8 * index)
    read = LIST_ITEM if kind == LIST else TUPLE_ITEM
    return invoke(load(state + 8 * read), of, index, 0, 0, 0, 0, 0, 0)


def is_argument(state: int, words: int, spec: int, now: int) -> int:
    """1 if an object is an argument that is expected."""
    kind, way, wanted = load(spec + 8 * ARGUMENT_KIND), load(spec + 8 * ARGUMENT_WAY), load(spec + 8 * ARGUMENT)
    if kind == NODE:
        return holds(state, now, source(state, words, way, wanted))
    if kind == NUMBER:
        return is_number(state, now, wanted)
    if kind == OBJECT:
        return 1 if now == wanted else 0
    if kind == INTEGER:
        return is_integer(state, now, wanted)
    if load(now + object_type()) != way:
        return 0
    if kind == SLICE:
        return 1
    measure = LIST_SIZE if kind == LIST else TUPLE_SIZE
    return 1 if invoke(load(state + 8 * measure), now, 0, 0, 0, 0, 0, 0, 0) == wanted else 0


def done(state: int, words: int, step: int, sources: int, node: int, tensor: int, serial: int) -> int:
    """The Tensor of an expected call, whose node is recorded."""
    spec = step + 8 * STEP_HEAD
    add = load(state + 8 * INCREF)
    for k in range(load(step + 8 * SOURCES)):
        one = source(state, words, load(spec), load(spec + 8))
        invoke(add, one, 0, 0, 0, 0, 0, 0, 0)
        store(sources + tuple_items() + 8 * k, one)
        spec += 8 * SOURCE
    left, pattern, nodes = load(step + 8 * LEFT), load(step + 8 * PATTERN), load(words + 8 * NODES)
    place = PARAMS if left > 0 else INPUTS
    store(node + load(state + 8 * place), sources)
    invoke(add, pattern, 0, 0, 0, 0, 0, 0, 0)
    store(node + load(state + 8 * DEPTH), pattern)
    store(node + load(state + 8 * SERIAL), serial)
    store(tensor + load(state + 8 * TENSOR_NODE), node)
    append = load(state + 8 * APPEND)
    failed = 0
    for _ in range(left):
        failed |= invoke(append, nodes, load(state + 8 * HIDDEN_NODE), 0, 0, 0, 0, 0, 0) & 0xFFFFFFFF
    # The list has a reference of its own, the Tensor the first one.
    failed |= invoke(append, nodes, node, 0, 0, 0, 0, 0, 0) & 0xFFFFFFFF
    if failed != 0:
        forget(state, tensor)
        return FAILED
    store(words + 8 * AT, load(words + 8 * AT) + left + 1)
    store(words + 8 * K, load(words + 8 * K) + 1)
    return tensor


def noted_view(state: int, step: int, arguments: int, tensor: int, base: int, reference: int, views: int) -> int:
    """1 if a Tensor is now a view, and known to what it is a view of; 0 if that has many views, 2 for an error.

    Of these it takes what it needs: a tuple for the base and the key, a weak reference to the Tensor, and a dict.
    """
    key = load(step + 8 * VIEW)
    owner = load(arguments + 8)
    if key == BY_KEY:
        key = load(arguments + 16)
    else:
        owner = invoke(load(state + 8 * TUPLE_ITEM), owner, 0, 0, 0, 0, 0, 0, 0)
    add = load(state + 8 * INCREF)
    known = load(owner + load(state + 8 * TENSOR_VIEWS))
    if known == 0:
        known = views
        invoke(add, views, 0, 0, 0, 0, 0, 0, 0)
        store(owner + load(state + 8 * TENSOR_VIEWS), views)
    elif invoke(load(state + 8 * DICT_SIZE), known, 0, 0, 0, 0, 0, 0, 0) > MOST_VIEWS:
        return 0
    number = invoke(load(state + 8 * NEW_NUMBER), tensor, 0, 0, 0, 0, 0, 0, 0)
    if number == 0:
        return FAILS
    failed = invoke(load(state + 8 * DICT_SET), known, number, reference, 0, 0, 0, 0, 0) & 0xFFFFFFFF
    forget(state, number)
    if failed != 0:
        return FAILS
    invoke(add, owner, 0, 0, 0, 0, 0, 0, 0)
    invoke(add, key, 0, 0, 0, 0, 0, 0, 0)
    invoke(add, base, 0, 0, 0, 0, 0, 0, 0)
    store(base + tuple_items(), owner)
    store(base + tuple_items() + 8, key)
    store(tensor + load(state + 8 * TENSOR_BASE), base)
    return 1


def element(state: int, words: int, arguments: int) -> int:
    """The Tensor of an element of a constant, which was read before; otherwise 0."""
    constant = load(arguments + 8)
    if load(constant + object_type()) != load(state + 8 * TENSOR):
        return 0
    constant = load(constant + load(state + 8 * TENSOR_NODE))
    spec = load(words + 8 * FIXED)
    for _ in range(load(words + 8 * FIXED_COUNT)):
        if load(spec) == load(arguments) and load(spec + 8) == constant and load(spec + 16) == load(arguments + 16):
            node = load(spec + 24)
            invoke(load(state + 8 * INCREF), node, 0, 0, 0, 0, 0, 0, 0)
            tensor = invoke(load(state + 8 * NEW_OBJECT), load(state + 8 * TENSOR), 0, 0, 0, 0, 0, 0, 0)
            if tensor == 0:
                forget(state, node)
                return FAILED
            store(tensor + load(state + 8 * TENSOR_NODE), node)
            return tensor
        spec += 8 * ELEMENT
    return 0


# ----- Addresses -----

FUNCTIONS = {expect_call: 3, expect_function: 3}
"""The native functions that are called from outside, with the number of words that they take."""


@cache
def _state(tensor: type, followed: type) -> np.ndarray | None:
    """The table of the process; None where objects are not as expected."""
    table = np.zeros(STATE_LENGTH, np.int64)
    try:
        node = slots(Node, ["inputs", "params", "depth", "serial"])
        own = slots(tensor, ["_node", "_base", "_views"])
        table[FLOAT_VALUE], table[SLICE_PARTS] = scalar_values()[float], slice_parts()
    except (LookupError, AttributeError):
        return None
    for place, name in ((INPUTS, "inputs"), (PARAMS, "params"), (DEPTH, "depth"), (SERIAL, "serial")):
        table[place] = node[name]
    for place, name in ((TENSOR_NODE, "_node"), (TENSOR_BASE, "_base"), (TENSOR_VIEWS, "_views")):
        table[place] = own[name]
    for place, known in (
        (TENSOR, tensor),
        (FOLLOWED, followed),
        (FLOAT, float),
        (INTEGER_TYPE, int),
        (HIDDEN_NODE, LEFT_OUT),
        (DUE, ir.due),
        (RECORDED, ir.RECORDED),
        (SERIALS, ir._serials),
        (LOOKING, looking),
    ):
        table[place] = id(known)
    for place, name in (
        (LIST_SIZE, "PyList_Size"),
        (LIST_ITEM, "PyList_GetItem"),
        (APPEND, "PyList_Append"),
        (TUPLE_SIZE, "PyTuple_Size"),
        (TUPLE_ITEM, "PyTuple_GetItem"),
        (DICT_SIZE, "PyDict_Size"),
        (DICT_ITEM, "PyDict_GetItem"),
        (DICT_SET, "PyDict_SetItem"),
        (GET_CONTEXT, "PyContextVar_Get"),
        (NEXT, "PyIter_Next"),
        (NEW_OBJECT, "PyType_GenericAlloc"),
        (NEW_TUPLE, "PyTuple_New"),
        (NEW_DICT, "PyDict_New"),
        (NEW_REFERENCE, "PyWeakref_NewRef"),
        (NEW_NUMBER, "PyLong_FromVoidPtr"),
        (INTEGER_VALUE, "PyLong_AsLongLongAndOverflow"),
        (INCREF, "Py_IncRef"),
        (DECREF, "Py_DecRef"),
        (VECTORCALL, "PyObject_VectorcallDict"),
    ):
        table[place] = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    return table


class Expectation:
    """Native callables for the calls of loops that are followed.

    Parameters
    ----------
    tensor, followed : type
        The classes of results and of their nodes.
    call, function : callable
        Get the arguments of calls that are not expected.

    Attributes
    ----------
    call, function : callable
        As `expect_call` and `expect_function`.

    Raises
    ------
    LookupError
        If objects are not as native code needs them.
    """

    def __init__(self, tensor: type, followed: type, call: Callable[..., Any], function: Callable[..., Any]) -> None:
        state = _state(tensor, followed)
        if state is None:
            raise LookupError
        self._state = state.copy()
        self._state[CALL_FALLBACK], self._state[FUNCTION_FALLBACK] = id(call), id(function)
        self._tables: Any = None
        kept = (self._state, call, function)
        self.call: Callable[..., Any] = native_callable(native_address(expect_call, 3), self._state, kept)
        self.function: Callable[..., Any] = native_callable(native_address(expect_function, 3), self._state, kept)

    def follow(self, tables: Tables) -> None:
        """Expect the steps of a loop, and no longer those of another one."""
        if tables is not self._tables:
            self._state[CURRENT], self._tables = tables.address, tables


class Tables:
    """The tables that native code reads of a loop that is followed.

    Parameters
    ----------
    words : array
        Those of the follower, with room for what is added here.
    nodes : list of nodes
        What is recorded.
    steps : list of lists of int
        The words of each.
    elements : list of int
        Those of all elements of constants.
    kept : list
        The objects to which the words refer.
    """

    def __init__(
        self,
        words: array[int],
        nodes: list[Node],
        steps: Sequence[Sequence[int]],
        elements: Sequence[int],
        kept: list[Any],
    ) -> None:
        rows = [array("q", step) for step in steps]
        table = array("q", [row.buffer_info()[0] for row in rows])
        fixed = array("q", elements or [0])
        self._words = words, rows, table, fixed
        self._kept = kept
        self.address = words.buffer_info()[0]
        words[NODES], words[STEPS], words[LAST] = id(nodes), table.buffer_info()[0], len(steps) - 1
        words[FIXED], words[FIXED_COUNT] = fixed.buffer_info()[0], len(elements) // ELEMENT

    def forget(self) -> None:
        """Let go of all objects, when nothing is expected any more."""
        self._kept.clear()


def float_bits(number: float) -> int:
    """The bits of a float."""
    return int(np.float64(number).view(np.int64))
