"""Anything array-like as a node, the first step of every function of arrays; and `wrap`, the last one.

In: Tensors, ndarrays, NumPy scalars, Python numbers, nested lists of them. Out: nodes, and Tensors of nodes. An ndarray
that can still be changed is copied when it is used, so that changing it later never changes what was recorded. Called
by the functions of `nbgrad.functions` and by everything above them.
"""

from __future__ import annotations

from collections import UserList, deque
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np

from ..errors import DtypeError, ShapeError
from ..graph.builders import concatenate, reshape
from ..graph.ir import Node, constant, snapshot, strong
from ..graph.loops.repetition import SMALL_CONSTANT
from ..graph.shapes import Shape
from ..graph.trace import Trace, current_trace
from ..process.modes import attentive
from ..runtime.evaluate import LONGEST_CHAIN, settle
from .foreign_arrays import conversion_of, device_node, on_cuda, values_of
from .numbers import number, python_numbers, supported
from .promotion import common_dtype, promote
from .tensor import Tensor


def as_node(value: Any) -> Node:
    """The node of anything array-like.

    Raises
    ------
    DtypeError
        If the value is not an array of numbers or booleans.
    """
    if isinstance(value, Tensor):
        return value._node
    if type(value) in (float, int, bool, complex):
        return number(value)
    if type(value) is np.ndarray or isinstance(value, np.generic):
        array = np.asarray(value)
    elif isinstance(value, list | tuple):
        if lists_hold(value, Tensor):
            return assembled(value)
        array = np.array(value)
    elif on_cuda(value):
        return device_node(value, copy=True)
    else:
        array = values_of(value)
    if not supported(array.dtype):
        message = (
            "Expected an array of booleans, or of integers or floats of at most 64 bits, or complex ones, but got "
            f"{type(value).__name__} with dtype {array.dtype}. {conversion_of(array.dtype)}"
        )
        raise DtypeError(message)
    if array.dtype.isnative and type(value) is np.ndarray and (array.flags.writeable or array.base is not None):
        return _taken(array)
    return constant(array)


MOST_TAKEN = 64
"""Arrays, and shapes of arrays, that a recording remembers."""
MOST_ALIKE = 4
"""Arrays of one shape that a recording remembers by their contents."""
COPIED = 4096
"""Bytes up to which copies are compared fastest."""


def _taken(array: np.ndarray) -> Node:
    """A constant with the values that an array has now.

    In a recording it is the same one as when the array was met last, if nothing has been written to it since: a matrix
    that every turn of a loop multiplies by is one constant.
    """
    trace = current_trace()
    if trace is None:
        return snapshot(array)
    node = snapshot(array) if array.nbytes <= SMALL_CONSTANT else _known_or_copied(array, trace)
    if trace.met is not None:
        trace.met.append((array, node.value))
    return node


def _known_or_copied(array: np.ndarray, trace: Trace) -> Node:
    key, taken = id(array), trace.taken
    known = taken.pop(key, None)
    node = None if known is None else known()
    if known is None or node is None or not _is_still(array, node):
        node = _alike(array, trace, snapshot)
        known = ref(node)
        if len(taken) >= MOST_TAKEN:
            del taken[next(iter(taken))]
    taken[key] = known
    return node


def constant_again(array: np.ndarray) -> Node:
    """The constant of an array that was computed from others, such as positions from an index; in a recording, the one
    of before if every turn of a loop computes the same."""
    trace = current_trace()
    if trace is None or array.nbytes <= SMALL_CONSTANT:
        return constant(array)
    return _alike(array, trace, constant)


def _alike(array: np.ndarray, trace: Trace, made: Callable[[np.ndarray], Node]) -> Node:
    """A constant of the recording with the bits of an array, if one of the last of its shape has them; a new one."""
    key = array.shape, array.dtype.num
    known = trace.alike.get(key)
    if known is None:
        if len(trace.alike) >= MOST_TAKEN:
            del trace.alike[next(iter(trace.alike))]
        known = trace.alike[key] = []
    for one in known:
        node = one()
        if node is not None and _may_be_still(array, node) and _is_still(array, node):
            return node
    node = made(array)
    known.append(ref(node))
    del known[:-MOST_ALIKE]
    return node


def _may_be_still(array: np.ndarray, node: Node) -> bool:
    """Whether the first, the middle and the last number are those of a constant."""
    return array.size == 0 or all(
        array.item(place) == node.value.item(place) for place in (0, array.size // 2, array.size - 1)
    )


def _is_still(array: np.ndarray, node: Node) -> bool:
    """Whether a constant is that of an array; if it was made of another one, the same as its own would be."""
    layout = None if array.flags.c_contiguous else array.strides
    return node.shape == array.shape and node.layout == layout and have_same_bits(array, node.value)


def have_same_bits(one: Any, other: Any) -> bool:
    """Whether two arrays of one shape are of one dtype and have the same values, with the same signs of zeros."""
    if one.dtype != other.dtype:
        return False
    if one.nbytes <= COPIED:
        return one.tobytes() == other.tobytes()
    if one.dtype.kind == "c":
        return have_same_bits(one.real, other.real) and have_same_bits(one.imag, other.imag)
    words = f"i{one.itemsize}"
    return bool((one.view(words) == other.view(words)).all())


_LISTS = (list, tuple)


def lists_hold(values: Any, kinds: type | tuple[type, ...]) -> bool:
    """Whether nested lists and tuples hold an instance of a class, or of one of several classes, anywhere."""
    waiting = [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, kinds):
            return True
        if isinstance(value, _LISTS):
            waiting.extend(value)
    return False


def wrap(node: Node) -> Tensor:
    """The Tensor of a node; long chains that nothing is recording are computed now."""
    if attentive or node.depth > LONGEST_CHAIN:
        node = settle(node)
    tensor = _new(Tensor)
    tensor._node = node
    if node.value is not None and (trace := current_trace()) is not None:
        trace.note_made(tensor, node)
    return tensor


_new = object.__new__


SEQUENCES = (list, tuple, deque, UserList)
"""The sequences that NumPy takes apart."""


# ----- Lists that hold Tensors -----


def holds_tensors(value: Any) -> bool:
    """Whether a value is a Tensor, or nested sequences (or an array of objects) with a Tensor anywhere in them."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Tensor):
            return True
        if isinstance(one, SEQUENCES):
            waiting.extend(one)
        elif isinstance(one, np.ndarray) and one.dtype.hasobject:
            waiting.extend(one.ravel().tolist())
    return False


def _leaves(value: Any, found: list[Any]) -> Shape:
    """The shape of nested sequences; their elements, in order, go into `found`."""
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        value = value.tolist()
    if not isinstance(value, SEQUENCES):
        found.append(value)
        return tuple(value.shape) if isinstance(value, Tensor) else np.shape(value)
    shapes = [_leaves(item, found) for item in value]
    if any(shape != shapes[0] for shape in shapes):
        different = sorted(set(shapes), key=str)
        message = (
            "The elements of a list must have one shape to become an array, but they have shapes "
            f"{', '.join(map(str, different))}."
        )
        raise ShapeError(message)
    return (len(shapes), *(shapes[0] if shapes else ()))


def assembled(value: Any) -> Node:
    """The array of nested sequences that hold Tensors: one concatenation of all elements, in NumPy's common dtype.

    Among Tensors that follow MindSpore's rules, Python numbers do not widen the dtype.
    """
    found: list[Any] = []
    shape = _leaves(value, found)
    mindspore = any(isinstance(leaf, Tensor) and leaf._node.tensor for leaf in found)
    parts: list[Node] = []
    numbers: list[Any] = []

    def finish_numbers() -> None:
        """Neighbouring plain elements become one constant."""
        if numbers:
            flat = np.concatenate([np.asarray(number).ravel() for number in numbers])
            if not supported(flat.dtype):
                message = f"Recorded values and {flat.dtype} cannot be elements of one array."
                raise DtypeError(message)
            parts.append(constant(flat, weak=mindspore and python_numbers(numbers)))
            numbers.clear()

    for leaf in found:
        if isinstance(leaf, Tensor):
            finish_numbers()
            node = strong(leaf._node)
            parts.append(reshape(node, (node.size,)))
        else:
            numbers.append(leaf)
    finish_numbers()
    dtype = common_dtype(parts)
    return reshape(concatenate(promote(parts, dtype), 0), shape)
