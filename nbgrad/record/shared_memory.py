"""Tensors that share memory: slices, transposes and reshapes are views of their Tensor, `asnumpy()` one of the data.

In: a Tensor and how another one, or an ndarray, came from it. Out: writes to one that the other sees. Called by
Tensor. Nodes never change, so a write gives its Tensor a new node, and gives new nodes to the Tensor that it is a view
of and to all views: reading costs nothing. An ndarray that is changed cannot tell; while the user holds it, or what it
is a view of, every use of its Tensor, and of the Tensor's views, reads it anew.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.views import View
from ..dtype import dtype_of
from ..errors import TracedValueError
from ..graph.builders import users_constant
from ..graph.ir import Node, constant, snapshot
from ..graph.trace import Trace, current_trace, is_being_recorded
from ..process.modes import attentive
from ..runtime.evaluate import concrete
from ..runtime.memory_order import copied, is_contiguous, laid_out, strides_of_owned
from .as_node import wrap
from .index_keys import is_scalar_index, settled
from .moving_slices import has_tensors
from .tensor import Tensor
from .view_chain import PART_MOVES, InOrder, Moves, Unsettled, layout, moves_between, part_of, read, replace
from .zero_dimensional import ZeroDimensional

MOST_DEAD = 256
"""Views that are gone are forgotten once a Tensor has noted more than this many."""
_BASIC = frozenset([int, slice, type(None), type(Ellipsis)])


# ----- Views -----


def is_basic(key: Any) -> bool:
    """Whether a key is made of integers, slices, None and Ellipsis, so that it gives a view."""
    return _BASIC.issuperset(map(type, key)) if key.__class__ is tuple else key.__class__ in _BASIC


def gives_view(key: Any) -> bool:
    """Whether indexing by a settled key gives a view: it is basic, but for integers that are recorded."""
    parts = key if key.__class__ is tuple else (key,)
    return all(part.__class__ in _BASIC or is_scalar_index(part) for part in parts)


def view(base: Tensor, key: Any) -> Tensor:
    """The view `base[key]` for a key that gives one, or the view that `Moves` make of the base.

    One element of a Tensor that follows NumPy's rules is a scalar, which NumPy copies, unless the key has an Ellipsis.
    """
    moving = False
    if key.__class__ is not int and has_tensors(key):
        key = settled(key)
        moving = has_tensors(key)
    # If the data are shared, the node only says shape and dtype: a part of them is read when it is used, unless its
    # place is recorded.
    shared = _shared_data(base) is not None and (isinstance(key, Moves) or is_basic(key)) and not moving
    node = read(_raw(base) if shared else base._node, key)
    if not node.shape and not node.tensor and not _gives_arrays(key):
        return wrap(read(base._node, key) if shared else node)
    result = wrap(node)
    result._base = (base, key)
    if shared:
        result.__class__ = _Shared
    elif not node.shape and not node.tensor:
        result.__class__ = ZeroDimensional
    return _noted(base, result)


def _gives_arrays(key: Any) -> bool:
    """Whether a key gives an array also where it names one element."""
    if key.__class__ is tuple:
        return any(part is Ellipsis for part in key)
    return key is Ellipsis or isinstance(key, Moves)


def moved(base: Tensor, result: Tensor, in_order: bool = False) -> Tensor:
    """The result of a function that only moves elements of a Tensor: a view, where NumPy gives one.

    With `in_order`, NumPy gives a view only where its elements are side by side (`ravel`).
    """
    if result is base:
        return result
    made = result._node
    if attentive and made.name in ("stop_gradient", "alias") and made is not base._node:
        made = made.inputs[0]  # what the mode asked for, after the moves
    key = moves_between(base._node, made)
    if key is None:
        return result
    if result._node is base._node:
        result = wrap(base._node)
    if not result._node.shape:
        result.__class__ = ZeroDimensional
    result._base = (base, _link(key, in_order))
    return _noted(base, result)


def view_by_moves(base: Tensor, key: Moves | None, result: Tensor, in_order: bool = False) -> Tensor:
    """The result of `moved` for known operations, on a Tensor whose data are shared, or complex."""
    if key is None:
        return result
    array = _shared_data(base)
    if array is None:
        return view(base, _link(key, in_order))
    part = part_of(array, key)
    is_part = np.may_share_memory(array, part) and (part.flags.c_contiguous or not in_order)
    return view(base, key) if is_part else result


def _link(key: Moves, in_order: bool) -> Moves:
    """The key of a view; one that NumPy may have had to copy is only looked at when it matters."""
    if in_order:
        return InOrder(key)
    return Unsettled(key) if any(name == "reshape" for name, _ in key) else key


# ----- Places in memory -----


def _chain(tensor: Tensor) -> list[Tensor]:
    """The Tensors from a view to the owner of its memory: each is a view of the next, and the last one owns it."""
    chain = [tensor]
    while (source := getattr(chain[-1], "_base", None)) is not None:
        chain.append(source[0])
    return chain


def place_of(tensor: Tensor) -> View:
    """The place of the elements of NumPy's array in place of a Tensor: strides and offset, in bytes.

    A function that `jit` records is then compiled for arguments that lie in memory as these do.
    """
    trace = current_trace()
    if trace is not None:
        trace.note_order()
    array = _shared_data(tensor)
    if array is not None:
        return View.strided(array.shape, array.strides)
    chain = _chain(tensor)
    where = _owned_place(chain[-1])
    for view in reversed(chain[:-1]):
        key = view._base[1]
        through = layout(where, key)
        if through is not None and isinstance(key, InOrder):
            through = through if is_contiguous(through.shape, through.strides, _itemsize(view)) else None
        if through is None:
            _detach(view)
            through = _owned_place(view)
        elif isinstance(key, Unsettled):
            view._base = (view._base[0], Moves(key))
        where = through
    return where


def strides_in_memory(value: Any) -> tuple[int, ...] | None:
    """The strides of an argument, a Tensor or ndarray, in bytes; None if it is in C order, or no array."""
    if isinstance(value, Tensor):
        if value._node.layout is None and not hasattr(value, "_base"):
            return None
        where = place_of(value)
        return None if is_contiguous(where.shape, where.strides, _itemsize(value)) else where.strides
    return value.strides if isinstance(value, np.ndarray) and not value.flags.c_contiguous else None


def _owned_place(tensor: Tensor) -> View:
    """The place of the elements of a Tensor that is no view."""
    array = _shared_data(tensor)
    if array is not None:
        return View.strided(array.shape, array.strides)
    node = tensor._node
    return View.strided(node.shape, strides_of_owned(node))


def _itemsize(tensor: Tensor) -> int:
    return _raw(tensor).dtype.itemsize


def _detach(view: Tensor) -> None:
    """Let a Tensor be no view: NumPy would have copied it."""
    base, key = view._base
    del view._base
    base._views.pop(id(view), None)
    # A reshape in Fortran's order ends with a transpose.
    names = [name for name, _ in key]
    view._node = copied(view._node, "F" if names[-1:] == ["transpose"] else "C")


def is_view(tensor: Tensor) -> bool:
    """Whether a Tensor really shares the memory of another one, now that it is asked."""
    source = getattr(tensor, "_base", None)
    if source is not None and isinstance(source[1], Unsettled):
        place_of(tensor)
    return hasattr(tensor, "_base")


def has_relatives(tensor: Tensor) -> bool:
    """Whether a Tensor is a view of another one, or others that are in use are views of it."""
    return is_view(tensor) or any(reference() is not None for reference in getattr(tensor, "_views", {}).values())


def owner_of(tensor: Tensor) -> Tensor:
    """The Tensor that owns a Tensor's memory: itself, if it is no view."""
    return _chain(tensor)[-1] if is_view(tensor) else tensor


def is_in_order(tensor: Tensor, order: str = "C") -> bool:
    """Whether NumPy's array in place of a Tensor would have its elements side by side, in "C" or "F" order."""
    where = place_of(tensor)
    return is_contiguous(where.shape, where.strides, _itemsize(tensor), order)


def share_memory(a: Any, b: Any, bounds: bool = False, asked: bool = False) -> bool:
    """Whether two arrays or Tensors have an element in common, or with `bounds`, the memory that they lie in.

    If the user has `asked`, two arguments of a compiled function are an error: those of other calls lie elsewhere.
    """
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        (root, first), (other, second) = _elements(a), _elements(b)
        if root is other and first.size and second.size:
            if not bounds:
                return bool(np.isin(first, second).any())
            if _shared_data(a) is None:
                (low, high), (start, end) = _bounds(a), _bounds(b)
                return low < end and start < high
    trace = current_trace()
    (a, compiled), (b, other) = ((_memory(v, trace) if isinstance(v, Tensor) else (v, False)) for v in (a, b))
    if asked and compiled and other:
        message = (
            "Whether two arguments of a compiled function share memory may differ from call to call. Ask outside of "
            "nb.jit."
        )
        raise TracedValueError(message)
    arrays = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    return arrays and np.may_share_memory(a, b) and (bounds or bool(np.shares_memory(a, b)))


def _bounds(tensor: Tensor) -> tuple[int, int]:
    """The position of the first byte of a Tensor, and that behind the last one, in the memory of its owner."""
    where = place_of(tensor)
    steps = [(n - 1) * s for n, s in zip(where.shape, where.strides, strict=True)]
    low, high = (where.offset + sum(limit(step, 0) for step in steps) for limit in (min, max))
    return low, high + _itemsize(tensor)


def _memory(tensor: Tensor, trace: Trace | None) -> tuple[np.ndarray | None, bool]:
    """The ndarray that shows the memory of a Tensor: its own, or that of the argument that it stands for.

    And whether it is an argument of a compiled function. `trace` is the innermost that may know the Tensor.
    """
    array = _shared_data(tensor)
    if array is not None:
        return array, False
    chain = _chain(tensor)
    array, trace = _argument_behind(chain[-1], trace)
    compiled = trace is not None and trace.guards is not None
    if isinstance(array, Tensor) and trace is not None:
        array, compiled = _memory(array, trace.parent)
    if not isinstance(array, np.ndarray):
        return None, False
    if array.shape != chain[-1].shape:  # an argument of vmap stands for a part that is not known
        return array, compiled
    return _part_behind(chain, array), compiled


def _argument_behind(owner: Tensor, trace: Trace | None) -> tuple[Any, Trace | None]:
    """The caller's ndarray or Tensor in place of an argument of a recorded function, and the recording; None and None
    for other Tensors."""
    while trace is not None:
        found = trace.callers.behind(owner) if trace.callers else None
        if found is not None:
            return found, trace
        trace = trace.parent
    return None, None


def _is_argument(tensor: Tensor) -> bool:
    """Whether a Tensor, or the owner of its memory, is an argument of a function that is recorded."""
    return _argument_behind(_chain(tensor)[-1], current_trace())[1] is not None


def _elements(tensor: Tensor) -> tuple[Tensor, np.ndarray]:
    """The Tensor that owns a Tensor's memory, and the flat positions of the elements in it."""
    place_of(tensor)  # settles what is a view
    chain = _chain(tensor)
    positions = np.arange(chain[-1].size).reshape(chain[-1].shape)
    return chain[-1], _part_behind(chain, positions, PART_MOVES)


def _part_behind(chain: Sequence[Tensor], array: np.ndarray, skipped: Sequence[Moves] = ()) -> np.ndarray:
    """The part of an ndarray, which stands for the owner at the end of a chain, that the first Tensor shows."""
    for view in reversed(chain[:-1]):
        key = view._base[1]
        if key not in skipped:
            array = part_of(array, key)
    return array


def _noted(base: Tensor, result: Tensor) -> Tensor:
    """A new view, which its base knows from now on."""
    views = getattr(base, "_views", None)
    if views is None:
        views = base._views = {}
    elif len(views) > MOST_DEAD:
        views = base._views = {k: reference for k, reference in views.items() if reference() is not None}
    views[id(result)] = weakref.ref(result)
    return result


def note_view(base: Tensor, key: Any, result: Tensor) -> Tensor:
    """A Tensor that is `base[key]`, as its view."""
    result._base = (base, key)
    return _noted(base, result)


def is_own_view(base: Tensor, key: Any, value: Any) -> bool:
    """Whether `base[key] = value` changes nothing, because value is that view: the second half of `x[i] += y`."""
    source = getattr(value, "_base", None)
    return source is not None and source[0] is base and _are_same(source[1], settled(key))


def _are_same(one: Any, other: Any) -> bool:
    """Whether two keys of views are the same."""
    first, second = (key if key.__class__ is tuple else (key,) for key in (one, other))
    return len(first) == len(second) and all(map(_are_same_part, first, second))


def _are_same_part(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return isinstance(one, Tensor) and isinstance(other, Tensor) and one._node is other._node
    if has_tensors(one) and has_tensors(other):
        ends = (one.start, one.stop, one.step), (other.start, other.stop, other.step)
        return all(map(_are_same_part, *ends))
    return one.__class__ is other.__class__ and one.__class__ in _BASIC and one == other


def written(tensor: Tensor) -> None:
    """Pass a write to a Tensor on to the Tensor that it is a view of, and to its views."""
    if _shared_data(tensor) is not None:
        return  # all of them use the same data
    _write_down(tensor, None)
    child = tensor
    while is_view(child):
        base, key = child._base
        base._take(wrap(replace(base._node, key, child._node))._node)
        _write_down(base, child)
        child = base


def _write_down(base: Tensor, known: Tensor | None) -> None:
    """Give the views of a Tensor, except for one that is up to date, its new value."""
    stack = [base]
    while stack:
        source = stack.pop()
        for reference in list(getattr(source, "_views", {}).values()):
            child = reference()
            if child is not None and child is not known and is_view(child):
                child._take(wrap(read(source._node, child._base[1]))._node)
                stack.append(child)


# ----- Data shared with NumPy -----


class _Shared(Tensor):
    """A Tensor whose data the user can change through an ndarray, or a view of one."""

    __slots__ = ()

    @property
    def _node(self) -> Node:  # pyright: ignore[reportIncompatibleVariableOverride]
        array = _shared_data(self)
        raw = _raw(self)
        return raw if array is None else _like(raw, snapshot(array))

    @_node.setter
    def _node(self, node: Node) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        array = _shared_data(self)
        if (
            array is not None and array.shape == node.shape and not _is_argument(self)
        ):  # written_arguments.py writes to those
            if is_being_recorded(node):
                message = (
                    f"A value that is being differentiated or compiled is written to a Tensor of shape {node.shape} "
                    "that shares memory with a plain array, which cannot hold it. Write to a copy: np.array(x)."
                )
                raise TracedValueError(message)
            if array.flags.writeable and not node.traced:
                np.copyto(array, concrete(node, "array"), casting="unsafe")
                return
        self.__class__ = Tensor  # pyright: ignore[reportAttributeAccessIssue]
        self._node = node  # pyright: ignore[reportIncompatibleVariableOverride]

    # Attributes that do not need the data.
    shape = property(lambda self: _raw(self).shape)  # type: ignore[assignment]
    dtype = property(lambda self: dtype_of(_raw(self).dtype))  # type: ignore[assignment]
    ndim = property(lambda self: _raw(self).ndim)  # type: ignore[assignment]
    size = property(lambda self: _raw(self).size)  # type: ignore[assignment]


_Shared.__name__ = _Shared.__qualname__ = "Tensor"
_raw = Tensor.__dict__["_node"].__get__
_set_raw = Tensor.__dict__["_node"].__set__


def shares_data(kind: type) -> bool:
    """Whether Tensors of a class share their data with an ndarray of the user's."""
    return issubclass(kind, _Shared)


class Original:
    """The value that a Tensor had before another node stood in for it."""

    __slots__ = ("kind", "node")

    def __init__(self, tensor: Tensor) -> None:
        self.kind, self.node = tensor.__class__, _raw(tensor)

    def restore(self, tensor: Tensor) -> None:
        """Give the Tensor its value back, shared with other code if it was."""
        tensor.__class__ = self.kind  # pyright: ignore[reportAttributeAccessIssue]
        _set_raw(tensor, self.node)


def stand_in(tensor: Tensor, node: Node) -> Original:
    """Let a node stand in for the value of a Tensor, which does not look at data that it shares meanwhile."""
    original = Original(tensor)
    if isinstance(tensor, _Shared):
        tensor.__class__ = Tensor  # pyright: ignore[reportAttributeAccessIssue]
    _set_raw(tensor, node)
    return original


def _shared_data(tensor: Tensor) -> np.ndarray | None:
    """The ndarray that holds a Tensor's data and that the user can change; None, from then on, if there is none."""
    if not isinstance(tensor, _Shared):
        return None
    source = getattr(tensor, "_base", None)
    if source is None:
        node = _raw(tensor)
        if _held(node):
            return node.value
        tensor.__class__ = Tensor  # pyright: ignore[reportAttributeAccessIssue]
        return None
    base, key = source
    array = _shared_data(base)
    if array is not None:
        return part_of(array, key)
    tensor.__class__ = Tensor  # pyright: ignore[reportAttributeAccessIssue]
    tensor._node = wrap(read(base._node, key))._node
    return None


def _like(other: Node, node: Node) -> Node:
    """The node of an array, which from now on follows the rules of another node and stays at its place."""
    node.tensor, node.place = other.tensor, other.place
    return node


def _held(node: Node) -> bool:
    """Whether other code holds the data of a node: its array, or the array that this one is a view of."""
    if _holders(node) > _ALONE:
        return True
    part = node.value
    while part is not None and part.base is not None:
        if not isinstance(part.base, np.ndarray) or sys.getrefcount(part.base) > _ALONE_AS_BASE:
            return True  # a buffer that is no ndarray does not say who writes to it
        part = part.base
    return False


def _holders(node: Node) -> int:
    """The number of references to the data of a node."""
    return sys.getrefcount(node.value)


_ALONE = _holders(constant(np.zeros(1)))
"""The number of references to the data when the user holds none."""
_part = np.zeros(1)[:]
_ALONE_AS_BASE = sys.getrefcount(_part.base)
"""The number of references to an array when only a view of it holds one."""
del _part


def share(tensor: Tensor) -> np.ndarray:
    """The data of a Tensor as an ndarray that it shares; for a slice, whose data are its base's, a copy.

    Data on a device are copied.
    """
    if tensor._node.device is not None:
        return concrete(tensor._node, "array")
    owns = not is_view(tensor)
    array = _shared_data(tensor) if owns else None
    if array is not None:
        return array
    can_share = type(tensor) is Tensor and owns and not tensor._node.traced
    array = concrete(tensor._node, "array")
    if tensor._node.layout is not None:
        array = np.array(laid_out(array, tensor._node))
    elif can_share and _is_only_holder(tensor, array):
        array.flags.writeable = True
    else:
        array = np.array(array, order="C")
    if can_share:
        tensor._node = _like(tensor._node, constant(array))
        _become_shared(tensor)
    return array


def _is_only_holder(tensor: Tensor, array: np.ndarray) -> bool:
    """Whether a Tensor is the only holder of its data, so that they may be written to."""
    if not array.flags.owndata or not array.flags.c_contiguous:
        return False
    node = tensor._node
    return sys.getrefcount(node) == _ALONE_IN_TENSOR and sys.getrefcount(array) == _ALONE_IN_NODE


def _counts(tensor: Tensor, array: np.ndarray) -> tuple[int, int]:
    node = tensor._node
    return sys.getrefcount(node), sys.getrefcount(array)


def _counts_alone() -> tuple[int, int]:
    """The numbers of references that `_is_only_holder` sees to a node and its value when only one Tensor has them."""
    tensor = Tensor._holding(np.zeros(1))
    array = concrete(tensor._node, "array")
    return _counts(tensor, array)


_ALONE_IN_TENSOR, _ALONE_IN_NODE = _counts_alone()


def shared_memory(tensor: Tensor) -> np.ndarray | None:
    """The memory of a Tensor, also of a slice, as an ndarray that it shares; None if it cannot be shared."""
    held = share(_chain(tensor)[-1])  # the data are only shared while a reference is held
    array = _shared_data(tensor)
    del held
    return array


def _become_shared(tensor: Tensor) -> None:
    """Let a Tensor and its views read their data anew at each use."""
    stack = [tensor]
    while stack:
        one = stack.pop()
        one.__class__ = _Shared
        views = [reference() for reference in list(getattr(one, "_views", {}).values())]
        stack.extend(child for child in views if child is not None and is_view(child))


def from_numpy(array: np.ndarray, tensor_rules: bool = True) -> Tensor:
    """The Tensor that shares the data of an ndarray; it follows MindSpore's rules, or NumPy's."""
    tensor = Tensor._of(users_constant(array) if tensor_rules else constant(array))
    tensor.__class__ = _Shared
    return tensor
