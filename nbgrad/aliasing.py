"""Tensors that share memory: a basic slice is a view of its Tensor, and `asnumpy()` a view of the data.

In: a Tensor and how another one, or an ndarray, came from it. Out: writes to one that the other sees. Called by
Tensor. Nodes never change, so a write gives its Tensor a new node, and gives new nodes to the Tensor that it is a view
of and to all views: reading costs nothing. An ndarray that is changed cannot tell; while the user holds it, every use
of its Tensor reads it anew.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

import numpy as np

from .dtype import dtype_of
from .graph.ir import Node, constant
from .graph.trace import current_trace
from .numpy.indexing import getitem, setitem
from .numpy.lifting import wrap
from .runtime.evaluate import concrete
from .tensor import Tensor

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
    """What `base[key]` is for a basic key."""
    result = wrap(getitem(base._node, key))
    result._base = (base, key)
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
    return source is not None and source[0] is base and source[1] == key


def written(tensor: Tensor) -> None:
    """Pass a write to a Tensor on to what it is a view of and to its views."""
    _write_down(tensor, None)
    child = tensor
    while (source := getattr(child, "_base", None)) is not None:
        base, key = source
        base._take(setitem(base._node, key, child._node))
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
                child._take(wrap(getitem(source._node, child._base[1]))._node)
                stack.append(child)


# ----- Data shared with NumPy -----


class _Shared(Tensor):
    """A Tensor whose data the user can change through an ndarray."""

    __slots__ = ()

    @property
    def _node(self) -> Node:  # pyright: ignore[reportIncompatibleVariableOverride]
        node = _raw(self)
        if _holders(node) <= _ALONE:
            self.__class__ = Tensor  # pyright: ignore[reportAttributeAccessIssue]
            return node
        return _constant(np.array(node.value))

    @_node.setter
    def _node(self, node: Node) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        array = _raw(self).value
        if current_trace() is None and array is not None and array.flags.writeable and array.shape == node.shape:
            np.copyto(array, concrete(node, "array"), casting="unsafe")
            return
        self.__class__ = Tensor  # pyright: ignore[reportAttributeAccessIssue]
        Tensor.__dict__["_node"].__set__(self, node)

    # What does not need the data.
    shape = property(lambda self: _raw(self).shape)  # type: ignore[assignment]
    dtype = property(lambda self: dtype_of(_raw(self).dtype))  # type: ignore[assignment]
    ndim = property(lambda self: _raw(self).ndim)  # type: ignore[assignment]
    size = property(lambda self: _raw(self).size)  # type: ignore[assignment]


_Shared.__name__ = _Shared.__qualname__ = "Tensor"
_raw = Tensor.__dict__["_node"].__get__


def _constant(array: np.ndarray) -> Node:
    node = constant(array)
    node.tensor = True
    return node


def _holders(node: Node) -> int:
    """How many references to the data of a node there are."""
    return sys.getrefcount(node.value)


_ALONE = _holders(_constant(np.zeros(1)))
"""As many as there are when the user holds none."""


def share(tensor: Tensor) -> np.ndarray:
    """The data of a Tensor as an ndarray that it shares."""
    if isinstance(tensor, _Shared):
        array = _raw(tensor).value
        assert array is not None
        return array
    array = np.array(concrete(tensor._node, "array"))
    if type(tensor) is Tensor and current_trace() is None:
        node = constant(array)
        node.tensor = tensor._node.tensor
        tensor._node = node
        tensor.__class__ = _Shared
    return array


def from_numpy(array: np.ndarray) -> Tensor:
    """The Tensor that shares the data of an ndarray."""
    tensor = Tensor._of(_constant(array))
    tensor.__class__ = _Shared
    return tensor
