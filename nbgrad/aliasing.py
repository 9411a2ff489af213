"""Tensors that share memory: slices, transposes and reshapes are views of their Tensor, `asnumpy()` one of the data.

In: a Tensor and how another one, or an ndarray, came from it. Out: writes to one that the other sees. Called by
Tensor. Nodes never change, so a write gives its Tensor a new node, and gives new nodes to the Tensor that it is a view
of and to all views: reading costs nothing. An ndarray that is changed cannot tell; while the user holds it, or what it
is a view of, every use of its Tensor, and of the Tensor's views, reads it anew.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

import numpy as np

from .compiler.views import View
from .dtype import dtype_of
from .graph.ir import HOST, Node, constant
from .graph.trace import current_trace
from .moves import Moves, layout, moves_between, part_of, read, replace
from .numpy.lifting import wrap
from .runtime.evaluate import concrete
from .tensor import Tensor
from .zero_dimensional import ZeroDimensional

MOST_DEAD = 256
"""Views are forgotten when they are gone; so many may lie around before that is looked for."""
_BASIC = frozenset([int, slice, type(None), type(Ellipsis)])


# ----- Views -----


def is_basic(key: Any) -> bool:
    """Whether indexing by a key gives a view: integers, slices, None and Ellipsis."""
    if key.__class__ is tuple:
        return all(part.__class__ in _BASIC for part in key)
    return key.__class__ in _BASIC


def view(base: Tensor, key: Any) -> Tensor:
    """What `base[key]` is for a basic key, or what `Moves` make of the base.

    One element of what stands for an ndarray is a scalar, which NumPy copies, unless the key has an Ellipsis.
    """
    shared = _shared_data(base) is not None
    # If the data are shared, the node only says shape and dtype: a part of them is read when it is used.
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


def moved(base: Tensor, result: Tensor) -> Tensor:
    """What a function that only moves elements gives of a Tensor: a view, where NumPy gives one."""
    if result is base:
        return result
    key = moves_between(base._node, result._node)
    if key is None or not _is_in_place(base, key):
        return result
    if result._node is base._node:
        result = Tensor._of(base._node)
    if not result._node.shape:
        result.__class__ = ZeroDimensional
    result._base = (base, key)
    return _noted(base, result)


def view_by_moves(base: Tensor, key: Moves | None, result: Tensor) -> Tensor:
    """The same for a Tensor whose data are shared, or complex, when the operations are known."""
    return view(base, key) if key is not None and _is_in_place(base, key) else result


def _is_in_place(base: Tensor, key: Moves) -> bool:
    """Whether strides can say where the elements of a moved view lie, so that NumPy would not copy them."""
    names = [name for name, _ in key]
    if "reshape" not in names or (len(names) == 1 and base.__class__ is Tensor and not hasattr(base, "_base")):
        return True
    array = _shared_data(base)
    if array is not None:
        return bool(np.may_share_memory(array, part_of(array, key)))
    keys = [key]
    while (source := getattr(base, "_base", None)) is not None:
        base = source[0]
        keys.append(source[1])
    where: View | None = View.contiguous(base.shape)
    for key in reversed(keys):
        where = None if where is None else layout(where, key)
    return where is not None


def is_in_order(tensor: Tensor) -> bool:
    """Whether NumPy's array in place of a Tensor would have its elements side by side, in C order."""
    array = _shared_data(tensor)
    if array is not None:
        return array.flags.c_contiguous
    keys: list[Any] = []
    base = tensor
    while (source := getattr(base, "_base", None)) is not None:
        base = source[0]
        keys.append(source[1])
    where: View | None = View.contiguous(base.shape)
    for key in reversed(keys):
        where = None if where is None else layout(where, key)
    return where is None or where._replace(offset=0).is_contiguous


def _noted(base: Tensor, result: Tensor) -> Tensor:
    """A new view, which its base knows from now on."""
    views = getattr(base, "_views", None)
    if views is None:
        views = base._views = {}
    elif len(views) > MOST_DEAD:
        views = base._views = {k: reference for k, reference in views.items() if reference() is not None}
    views[id(result)] = weakref.ref(result)
    return result


def is_own_view(base: Tensor, key: Any, value: Any) -> bool:
    """Whether `base[key] = value` changes nothing, because value is that view: the second half of `x[i] += y`."""
    source = getattr(value, "_base", None)
    return source is not None and source[0] is base and is_basic(key) and source[1] == key


def written(tensor: Tensor) -> None:
    """Pass a write to a Tensor on to what it is a view of and to its views."""
    if _shared_data(tensor) is not None:
        return  # all of them use the same data
    _write_down(tensor, None)
    child = tensor
    while (source := getattr(child, "_base", None)) is not None:
        base, key = source
        base._take(replace(base._node, key, child._node))
        _write_down(base, child)
        child = base


def _write_down(base: Tensor, known: Tensor | None) -> None:
    """Give the views of a Tensor, except for one that is up to date, its new value."""
    stack = [base]
    while stack:
        source = stack.pop()
        for reference in list(getattr(source, "_views", {}).values()):
            child = reference()
            if child is not None and child is not known:
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
        return raw if array is None else _constant(np.array(array), raw)

    @_node.setter
    def _node(self, node: Node) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        array = _shared_data(self)
        if current_trace() is None and array is not None and array.flags.writeable and array.shape == node.shape:
            np.copyto(array, concrete(node, "array"), casting="unsafe")
            return
        self.__class__ = Tensor  # pyright: ignore[reportAttributeAccessIssue]
        self._node = node  # pyright: ignore[reportIncompatibleVariableOverride]

    # What does not need the data.
    shape = property(lambda self: _raw(self).shape)  # type: ignore[assignment]
    dtype = property(lambda self: dtype_of(_raw(self).dtype))  # type: ignore[assignment]
    ndim = property(lambda self: _raw(self).ndim)  # type: ignore[assignment]
    size = property(lambda self: _raw(self).size)  # type: ignore[assignment]


_Shared.__name__ = _Shared.__qualname__ = "Tensor"
_raw = Tensor.__dict__["_node"].__get__


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


def _constant(array: np.ndarray, like: Node) -> Node:
    """The node of an array, which follows the rules that another one follows, and stays where that is."""
    node = constant(array)
    node.tensor, node.place = like.tensor, like.place
    return node


def _held(node: Node) -> bool:
    """Whether somebody else holds the data of a node: its array, or what that array is a view of."""
    if _holders(node) > _ALONE:
        return True
    part = node.value
    while part is not None and part.base is not None:
        if not isinstance(part.base, np.ndarray) or sys.getrefcount(part.base) > _ALONE_AS_BASE:
            return True  # a buffer that is no ndarray does not say who writes to it
        part = part.base
    return False


def _holders(node: Node) -> int:
    """How many references to the data of a node there are."""
    return sys.getrefcount(node.value)


_ALONE = _holders(constant(np.zeros(1)))
"""As many as there are when the user holds none."""
_part = np.zeros(1)[:]
_ALONE_AS_BASE = sys.getrefcount(_part.base)
"""The same for an array that only a view of it refers to."""
del _part


def share(tensor: Tensor) -> np.ndarray:
    """The data of a Tensor as an ndarray that it shares; for a slice, whose data are its base's, a copy.

    What lives on a device is copied.
    """
    if tensor._node.device is not None:
        return concrete(tensor._node, "array")
    is_view = hasattr(tensor, "_base")
    array = None if is_view else _shared_data(tensor)
    if array is not None:
        return array
    can_share = type(tensor) is Tensor and current_trace() is None and not is_view
    array = concrete(tensor._node, "array")
    if can_share and _is_only_holder(tensor, array):
        array.flags.writeable = True
    else:
        array = np.array(array)
    if can_share:
        tensor._node = _constant(array, tensor._node)
        _become_shared(tensor)
    return array


def _is_only_holder(tensor: Tensor, array: np.ndarray) -> bool:
    """Whether nobody but a Tensor has its data, so that they may be written to."""
    if not array.flags.owndata or not array.flags.c_contiguous:
        return False
    node = tensor._node
    return sys.getrefcount(node) == _ALONE_IN_TENSOR and sys.getrefcount(array) == _ALONE_IN_NODE


def _counts(tensor: Tensor, array: np.ndarray) -> tuple[int, int]:
    node = tensor._node
    return sys.getrefcount(node), sys.getrefcount(array)


def _counts_alone() -> tuple[int, int]:
    """As many references as there are to a node and its value that only one Tensor has, in `_is_only_holder`."""
    tensor = Tensor._holding(np.zeros(1))
    array = concrete(tensor._node, "array")
    return _counts(tensor, array)


_ALONE_IN_TENSOR, _ALONE_IN_NODE = _counts_alone()


def shared_memory(tensor: Tensor) -> np.ndarray | None:
    """The memory of a Tensor, also of a slice, as an ndarray that it shares; None for what cannot be shared."""
    root = tensor
    while (source := getattr(root, "_base", None)) is not None:
        root = source[0]
    held = share(root)  # it is only shared while somebody holds it
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
        stack.extend(child for child in views if child is not None)


def from_numpy(array: np.ndarray, tensor_rules: bool = True) -> Tensor:
    """The Tensor that shares the data of an ndarray; it follows MindSpore's rules, or NumPy's."""
    node = constant(array)
    node.tensor = tensor_rules
    if tensor_rules and node.size > 1:
        node.place = HOST
    tensor = Tensor._of(node)
    tensor.__class__ = _Shared
    return tensor
