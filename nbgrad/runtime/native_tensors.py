"""The native entry for calls with Tensors and Parameters: it reads their arrays, runs a program and wraps the results.

In: a program, what the positions of its call hold, the Parameters that it reads and writes. Out: an `Entry`, whose
`call` is a native callable like `Program.call`. Called by doors.py. Python code runs only when something is not as it
was when the entry was made; then the fallback gets the call.

The functions under "Native" are compiled as those of native.py are. The interpreter's lock is held in all of them,
except while a large program runs. Where the slots of Tensors, Parameters and nodes lie is found out at run time, from
an object with known contents. What a run reads is kept alive meanwhile, because other threads and finalizers may give
a Tensor or a Parameter another array.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..graph import ir, trace
from ..graph.ir import Node
from ..process.object_layout import array_data, object_type, slots, tuple_items
from .cpu_program import Program, native_callable
from .native import (
    ARGUMENTS,
    CONTEXT,
    DECREF,
    INCREF,
    NO_MEMORY,
    OBJECTS,
    OUTPUTS,
    RESULTS,
    TUPLE_NEW,
    VECTORCALL,
    WRAPPING,
    acquire,
    compute,
    drop,
    matches,
    pack,
    release,
    scalars,
)
from .words import invoke, load, native_address, store

# Wrapping: what an entry needs besides the program's state.
LAYOUT, FALLBACK, VERSION, VERSION_PLACE, POSITIONS, POSITION_SPECS, PARAMETERS, PARAMETER_LIST = range(8)
RESULT_COUNT, TEMPLATES, WRITTEN, WRITTEN_SPECS, PACKING, PACKING_LENGTH, CONDITIONS, EXPECTED = range(8, 16)
WRAPPING_LENGTH = 16
# For each position of the call: its kind, and for Tensors the node's `weak` and `tensor`, or else the object itself, or
# one of the same type and value.
PLAIN, TENSOR, OBJECT, EQUAL = range(4)
POSITION = 3
# For each written Parameter: itself, and templates of the nodes that it is inside of recordings and outside.
WRITTEN_PARAMETER = 3
# For each condition: the address and the bytes of the value that it must have.
CONDITION = 2
# Layout: types, offsets of slots in bytes, objects and functions of the process; then the slots that nodes copy.
TENSOR_TYPE, TENSOR_NODE, NODE_TYPE, NODE_VALUE, NODE_WEAK, NODE_TENSOR, NODE_SERIAL, HELD, NONE = range(9)
NODE_TRACED, FALSE, ZERO = range(9, 12)
TRACE, SERIALS, ENVIRONMENT, DISABLED, GET_CONTEXT, GET_ITEM, NEXT, NEW_OBJECT = range(12, 20)
SAME, COMPARE, COPIED, FIRST_COPIED = range(20, 24)
PY_EQ = 2
"""CPython's number of the comparison `==`."""


# ----- Native -----


def unwrap(wrapping: int, layout: int, arguments: int, count: int, objects: int, context: int) -> int:
    """Write the arrays and floats of a call to `objects`; 0 if anything but these is not as the program expects."""
    if count != load(wrapping + 8 * POSITIONS):
        return 0
    if load(load(wrapping + 8 * VERSION_PLACE)) != load(wrapping + 8 * VERSION):
        return 0
    environment, disabled = load(layout + 8 * ENVIRONMENT), load(layout + 8 * DISABLED)
    if invoke(load(layout + 8 * GET_ITEM), environment, disabled, 0, 0, 0, 0, 0, 0) != 0:
        return 0
    store(objects, 0)
    invoke(load(layout + 8 * GET_CONTEXT), load(layout + 8 * TRACE), 0, objects, 0, 0, 0, 0, 0)
    recording = load(objects)
    if recording != 0:
        invoke(load(context + 8 * DECREF), recording, 0, 0, 0, 0, 0, 0, 0)
    if recording != load(layout + 8 * NONE):
        return 0
    spec = load(wrapping + 8 * POSITION_SPECS)
    to = objects
    for k in range(count):
        argument = load(arguments + 8 * k)
        kind = load(spec)
        if kind == OBJECT:
            if argument != load(spec + 8):
                return 0
        elif kind == EQUAL:
            known = load(spec + 8)
            if load(argument + object_type()) != load(known + object_type()):
                return 0
            if invoke(load(layout + 8 * SAME), argument, known, PY_EQ, 0, 0, 0, 0, 0) & 0xFFFFFFFF != 1:
                return 0
        else:
            if kind == TENSOR:
                if load(argument + object_type()) != load(layout + 8 * TENSOR_TYPE):
                    return 0
                node = load(argument + load(layout + 8 * TENSOR_NODE))
                if node == 0 or load(node + object_type()) != load(layout + 8 * NODE_TYPE):
                    return 0
                if load(node + load(layout + 8 * NODE_WEAK)) != load(spec + 8):
                    return 0
                if load(node + load(layout + 8 * NODE_TENSOR)) != load(spec + 16):
                    return 0
                traced = load(node + load(layout + 8 * NODE_TRACED))
                if traced != load(layout + 8 * FALSE) and traced != load(layout + 8 * ZERO):
                    return 0
                argument = load(node + load(layout + 8 * NODE_VALUE))
            store(to, argument)
            to += 8
        spec += 8 * POSITION
    parameter = load(wrapping + 8 * PARAMETER_LIST)
    for k in range(load(wrapping + 8 * PARAMETERS)):
        node = load(load(load(parameter + 8 * k) + load(layout + 8 * HELD)) + tuple_items())
        store(to, load(node + load(layout + 8 * NODE_VALUE)))
        to += 8
    while to > objects:
        to -= 8
        if load(to) == 0:
            return 0
    return 1


def agree(wrapping: int, layout: int, results: int) -> int:
    """1 if the outputs after the results, as far as they are conditions, are what they must be."""
    spec = load(wrapping + 8 * EXPECTED)
    first = load(wrapping + 8 * RESULT_COUNT)
    for k in range(load(wrapping + 8 * CONDITIONS)):
        data = load(load(results + 8 * (first + k)) + array_data())
        if invoke(load(layout + 8 * COMPARE), data, load(spec), load(spec + 8), 0, 0, 0, 0, 0) & 0xFFFFFFFF != 0:
            return 0
        spec += 8 * CONDITION
    return 1


def new_node(template: int, value: int, layout: int, context: int) -> int:
    """A node like a template, for a value; 0 if there is no memory."""
    made = invoke(load(layout + 8 * NEW_OBJECT), load(layout + 8 * NODE_TYPE), 0, 0, 0, 0, 0, 0, 0)
    if made == 0:
        return 0
    add = load(context + 8 * INCREF)
    for k in range(load(layout + 8 * COPIED)):
        slot = load(layout + 8 * (FIRST_COPIED + k))
        kept = load(template + slot)
        invoke(add, kept, 0, 0, 0, 0, 0, 0, 0)
        store(made + slot, kept)
    invoke(add, value, 0, 0, 0, 0, 0, 0, 0)
    store(made + load(layout + 8 * NODE_VALUE), value)
    serial = invoke(load(layout + 8 * NEXT), load(layout + 8 * SERIALS), 0, 0, 0, 0, 0, 0, 0)
    store(made + load(layout + 8 * NODE_SERIAL), serial)
    if serial == 0:
        invoke(load(context + 8 * DECREF), made, 0, 0, 0, 0, 0, 0, 0)
        return 0
    return made


def new_tensor(template: int, value: int, layout: int, context: int) -> int:
    """A Tensor of a value; 0 if there is no memory."""
    node = new_node(template, value, layout, context)
    if node == 0:
        return 0
    made = invoke(load(layout + 8 * NEW_OBJECT), load(layout + 8 * TENSOR_TYPE), 0, 0, 0, 0, 0, 0, 0)
    if made == 0:
        invoke(load(context + 8 * DECREF), node, 0, 0, 0, 0, 0, 0, 0)
        return 0
    store(made + load(layout + 8 * TENSOR_NODE), node)
    return made


def new_pair(spec: int, value: int, layout: int, context: int) -> int:
    """The pair of nodes that a Parameter holds for a value; 0 if there is no memory."""
    leaf = new_node(load(spec + 8), value, layout, context)
    snapshot = 0
    pair = 0
    if leaf != 0:
        snapshot = new_node(load(spec + 16), value, layout, context)
    if snapshot != 0:
        pair = invoke(load(context + 8 * TUPLE_NEW), 2, 0, 0, 0, 0, 0, 0, 0)
    if pair != 0:
        store(pair + tuple_items(), leaf)
        store(pair + tuple_items() + 8, snapshot)
        return pair
    if leaf != 0:
        invoke(load(context + 8 * DECREF), leaf, 0, 0, 0, 0, 0, 0, 0)
    if snapshot != 0:
        invoke(load(context + 8 * DECREF), snapshot, 0, 0, 0, 0, 0, 0, 0)
    return 0


def wrap(wrapping: int, layout: int, results: int, context: int) -> int:
    """Put Tensors, and pairs for Parameters, in the place of arrays; 0 if there is no memory."""
    count = load(wrapping + 8 * RESULT_COUNT)
    templates = load(wrapping + 8 * TEMPLATES)
    written = load(wrapping + 8 * WRITTEN_SPECS)
    after = count + load(wrapping + 8 * CONDITIONS)
    for k in range(after + load(wrapping + 8 * WRITTEN)):
        value = load(results + 8 * k)
        if k >= after:
            made = new_pair(written + 8 * WRITTEN_PARAMETER * (k - after), value, layout, context)
        elif k >= count:
            continue
        elif load(templates + 8 * k) != 0:
            made = new_tensor(load(templates + 8 * k), value, layout, context)
        else:
            continue
        if made == 0:
            return 0
        invoke(load(context + 8 * DECREF), value, 0, 0, 0, 0, 0, 0, 0)
        store(results + 8 * k, made)
    return 1


def hand_over(wrapping: int, layout: int, results: int, context: int) -> None:
    """Forget the conditions, and let all Parameters hold their new pairs; what they held can run code after that."""
    count = load(wrapping + 8 * WRITTEN)
    written = load(wrapping + 8 * WRITTEN_SPECS)
    conditions = load(wrapping + 8 * CONDITIONS)
    first = results + 8 * load(wrapping + 8 * RESULT_COUNT)
    pairs = first + 8 * conditions
    for k in range(count):
        place = load(written + 8 * WRITTEN_PARAMETER * k) + load(layout + 8 * HELD)
        before = load(place)
        store(place, load(pairs + 8 * k))
        store(pairs + 8 * k, before)
    for k in range(conditions + count):
        invoke(load(context + 8 * DECREF), load(first + 8 * k), 0, 0, 0, 0, 0, 0, 0)


def entry_tensors(self: int, arguments: int, count: int) -> int:
    """A call from CPython: read Tensors and Parameters, run, wrap."""
    state = load(self + array_data())
    context = load(state + 8 * CONTEXT)
    wrapping = load(state + 8 * WRAPPING)
    layout = load(wrapping + 8 * LAYOUT)
    block = acquire(state, context)
    if block == 0:
        return invoke(load(context + 8 * NO_MEMORY), 0, 0, 0, 0, 0, 0, 0, 0)
    arena = (block + 63) // 64 * 64
    objects, results = arena + load(state + 8 * OBJECTS), arena + load(state + 8 * RESULTS)
    total = load(state + 8 * ARGUMENTS)
    fits = unwrap(wrapping, layout, arguments, count, objects, context)
    if fits != 0:
        fits = matches(state, objects, total)
    result = 0
    if fits != 0:
        for k in range(total):
            invoke(load(context + 8 * INCREF), load(objects + 8 * k), 0, 0, 0, 0, 0, 0, 0)
        if compute(state, objects, total, 0, context, block) != 0:
            fits = agree(wrapping, layout, results)
            if fits != 0 and scalars(state, results, context) != 0 and wrap(wrapping, layout, results, context) != 0:
                code, length = load(wrapping + 8 * PACKING), load(wrapping + 8 * PACKING_LENGTH)
                result = pack(code, length, results, load(state + 8 * OUTPUTS), context)
                if result != 0:
                    hand_over(wrapping, layout, results, context)
            if result == 0:
                drop(state, results, context)
        for k in range(total):
            invoke(load(context + 8 * DECREF), load(objects + 8 * k), 0, 0, 0, 0, 0, 0, 0)
    release(block, context)
    if fits == 0:
        fallback = load(wrapping + 8 * FALLBACK)
        return invoke(load(context + 8 * VECTORCALL), fallback, arguments, count, 0, 0, 0, 0, 0)
    return result


FUNCTIONS = {entry_tensors: 3}
"""The native functions that are called from outside, with the number of words that they take."""


# ----- Where things lie -----


@cache
def _layout(tensor: type, parameter: type) -> tuple[np.ndarray, int] | None:
    """The layout table, and the address of the version of all Cells; None where the objects are not as expected."""
    names = [name for name in Node.__slots__ if name != "__weakref__"]
    environment = getattr(os.environ, "_data", None)
    encode = getattr(os.environ, "encodekey", None)
    try:
        node = slots(Node, names)
        held, tensor_node = slots(parameter, ["_held"])["_held"], slots(tensor, ["_node"])["_node"]
        number = slots(trace.Version, ["token"])["token"]
    except (LookupError, AttributeError, KeyError):
        return None
    if type(environment) is not dict or encode is None:
        return None
    copied = [node[name] for name in names if name not in ("value", "serial")]
    table = np.zeros(FIRST_COPIED + len(copied), np.int64)
    disabled = encode("NBGRAD_DISABLE_JIT")
    _kept.append(disabled)
    for place, known in (
        (TENSOR_TYPE, tensor),
        (NODE_TYPE, Node),
        (NONE, None),
        (FALSE, False),
        (ZERO, 0),
        (TRACE, trace._current),
        (SERIALS, ir._serials),
        (ENVIRONMENT, environment),
        (DISABLED, disabled),
    ):
        table[place] = id(known)
    for place, name in (
        (NODE_VALUE, "value"),
        (NODE_WEAK, "weak"),
        (NODE_TENSOR, "tensor"),
        (NODE_TRACED, "traced"),
        (NODE_SERIAL, "serial"),
    ):
        table[place] = node[name]
    table[TENSOR_NODE], table[HELD] = tensor_node, held
    for place, name in (
        (GET_CONTEXT, "PyContextVar_Get"),
        (GET_ITEM, "PyDict_GetItem"),
        (NEXT, "PyIter_Next"),
        (NEW_OBJECT, "PyType_GenericAlloc"),
        (SAME, "PyObject_RichCompareBool"),
    ):
        table[place] = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    compare = getattr(ctypes.CDLL(None), "memcmp", None) if os.name == "posix" else None
    if compare is None:
        return None
    table[COMPARE] = ctypes.cast(compare, ctypes.c_void_p).value or 0
    table[COPIED] = len(copied)
    table[FIRST_COPIED:] = copied
    return table, id(trace.CELLS) + number


_kept: list[Any] = []
"""Objects that native code knows by their addresses only."""


# ----- Entries -----


class Entry:
    """A native callable for calls with Tensors, or of functions that use Parameters.

    Parameters
    ----------
    program : Program
        Its arguments are the arrays and floats among the positions, then the values of `parameters`. Its outputs are
        the results, then one for each of `expected`, then the new values of `written`. It must have been made with
        `packed` at least ``len(structure)``.
    positions : sequence of (int, Any, Any)
        For each positional argument of a call (PLAIN, None, None) for an ndarray or a float, (TENSOR, weak, tensor)
        for a Tensor with such a node, (OBJECT, the object, None) for what must be this very object, or (EQUAL, the
        object, None) for what must be of its type and equal; its type is one of Python's own.
    parameters, written : sequences of Parameter
    expected : sequence of ndarray
        What further outputs must be, bit for bit; otherwise nothing is written, and the fallback gets the call.
    results, leaves, snapshots : sequences of Node
        Templates of the results' nodes (none: results stay arrays and scalars) and of what each written Parameter
        holds. Their `value` is not used.
    structure : sequence of int
        How results are packed; as for `Program`.
    version : object or None
        The version of all Cells for which the program is right; None if it uses none.
    fallback : callable
        Gets the arguments of calls that do not fit.
    kinds : (type, type)
        Tensor and Parameter.
    """

    def __init__(
        self,
        program: Program,
        positions: Sequence[tuple[int, Any, Any]],
        parameters: Sequence[Any],
        written: Sequence[Any],
        expected: Sequence[np.ndarray],
        results: Sequence[Node],
        leaves: Sequence[Node],
        snapshots: Sequence[Node],
        structure: Sequence[int],
        version: object | None,
        fallback: Callable[..., Any],
        kinds: tuple[type, type],
    ) -> None:
        found = _layout(*kinds)
        if found is None:
            raise LookupError
        layout, number = found
        self._keep: list[Any] = [*positions, *parameters, *written, *expected, *results, *leaves, *snapshots, fallback]
        self._version: object | None = None
        self._wrapping = np.zeros(WRAPPING_LENGTH, np.int64)
        specs = [word for kind, *known in positions for word in (kind, *map(id, known))]
        changes = [id(part) for row in zip(written, leaves, snapshots, strict=True) for part in row]
        templates = [id(node) for node in results] or [0] * (len(program.outputs) - len(expected) - len(written))
        for place, words in (
            (POSITION_SPECS, specs),
            (PARAMETER_LIST, [id(parameter) for parameter in parameters]),
            (TEMPLATES, templates),
            (WRITTEN_SPECS, changes),
            (EXPECTED, [word for value in expected for word in (value.ctypes.data, value.nbytes)]),
            (PACKING, structure),
        ):
            array = np.array(list(words) or [0], np.int64)
            self._keep.append(array)
            self._wrapping[place] = array.ctypes.data
        for place, word in (
            (LAYOUT, layout.ctypes.data),
            (FALLBACK, id(fallback)),
            (POSITIONS, len(positions)),
            (PARAMETERS, len(parameters)),
            (RESULT_COUNT, len(templates)),
            (WRITTEN, len(written)),
            (CONDITIONS, len(expected)),
            (PACKING_LENGTH, len(structure)),
            (VERSION_PLACE, number if version is not None else self._wrapping.ctypes.data + 8 * VERSION),
        ):
            self._wrapping[place] = word
        if version is not None:
            self.expect(version)
        self._keep += [layout, self._wrapping, program]
        program.state[WRAPPING] = self._wrapping.ctypes.data
        address = native_address(entry_tensors, FUNCTIONS[entry_tensors])
        self.call: Callable[..., Any] = native_callable(address, program.state, (self, self._keep))

    def expect(self, version: object) -> None:
        """Fit the Cells as they are now; compared by identity, since each change makes another token."""
        # Never let the table have the address of a token that is gone, which another one may get.
        self._wrapping[VERSION] = 0
        self._version = version
        self._wrapping[VERSION] = id(version)
