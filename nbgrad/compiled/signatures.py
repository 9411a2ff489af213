"""Signatures: keys that decide which recordings of a jitted function may serve a call.

In: the arguments of a call. Out: their leaves, and a key that is equal for two calls only if the function cannot tell
them apart, except by the values of run-time inputs. Called by jit.py. Python calls more things equal than a function
does: dicts whose keys come in another order, 1 and 1.0 and True, 0.0 and -0.0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import chain
from numbers import Number
from typing import Any

import numpy as np

from ..errors import DtypeError
from ..process.object_layout import SCALARS
from ..record.container_leaves import flatten_in_order as flatten_in_order
from ..record.foreign_arrays import a_full_name, advice, conversion_of, refuse_subclass
from ..record.numbers import supported
from ..record.tensor import Tensor
from ..runtime.memory_order import order_in_memory
from ..tensors.parameter import Parameter
from ..transforms.lent_arrays import Lent


def dynamic_kind(leaf: Any) -> str | None:
    """The kind of a leaf that is a run-time input; None for values that are part of the signature."""
    if isinstance(leaf, Parameter):
        return None
    if isinstance(leaf, Lent):
        return "lent"
    if isinstance(leaf, Tensor):
        return "tensor"
    if type(leaf) in SCALARS:
        return "scalar"
    if isinstance(leaf, np.ndarray | np.inexact | np.integer | np.bool_):
        if isinstance(leaf, np.ndarray) and type(leaf) is not np.ndarray:
            refuse_subclass(leaf)
        if not supported(leaf.dtype):
            message = (
                "jit takes arrays of booleans, integers and floats of at most 64 bits, and complex ones, but got an "
                f"array of dtype {leaf.dtype}. {conversion_of(leaf.dtype)}"
            )
            raise DtypeError(message)
        return "array"
    return None


def signature(leaves: Sequence[Any], treespec: Any) -> tuple[Any, list[Any]]:
    """The key of a call, and its run-time inputs in order.

    Parameters
    ----------
    leaves : sequence
    treespec : the structure of (positional arguments, keyword arguments), from `flatten_in_order`

    Returns
    -------
    key : hashable
    inputs : list
        The leaves that are run-time inputs.

    Raises
    ------
    DtypeError
        For a leaf that is neither an array nor hashable.

    Examples
    --------
    >>> def key(*args):
    ...     return signature(*flatten_in_order((args, {})))[0]
    >>> key({"a": 1.0, "b": 2.0}) == key({"a": 3.0, "b": 4.0})
    True
    >>> key({"a": 1.0, "b": 2.0}) == key({"b": 2.0, "a": 1.0}), key({1: 2.0}) == key({True: 2.0}), key(1) == key(True)
    (False, False, False)
    """
    # Keys of dicts that are equal, but of different types.
    entries: list[Any] = [treespec, *map(type, chain.from_iterable(treespec.paths()))]
    dynamic: list[Any] = []
    for leaf in leaves:
        if dynamic_kind(leaf) is None:
            # A class, such as np.float32 for a dtype, has its objects' attributes.
            instead = None if isinstance(leaf, _PLAIN) else advice(leaf)
            if instead is not None:
                message = f"jit takes ndarrays, Tensors and numbers, but got {a_full_name(leaf)}. Pass {instead}."
                raise DtypeError(message)
            # A Parameter stands for itself, whatever its value is.
            try:
                hash(leaf)
            except TypeError:
                message = (
                    f"jit got a {type(leaf).__name__}, which is not an array and cannot be part of a signature because "
                    "it is not hashable. Pass arrays, numbers, strings or other hashable values."
                )
                raise DtypeError(message) from None
            entries.append(static(leaf))
            continue
        dynamic.append(leaf)
        if type(leaf) in SCALARS:
            entries.append(type(leaf))
        elif isinstance(leaf, Tensor):
            node = leaf._node
            entries.append((True, node.dtype.char, node.shape, node.weak, node.tensor, node.place))
        elif isinstance(leaf, Lent):
            node = leaf.node
            entries.append(("lent", node.dtype.char, node.shape, node.place))
        else:
            entries.append((False, leaf.dtype.char, leaf.shape, order_of(leaf)))
    return tuple(entries), dynamic


def order_of(value: Any) -> tuple[int, ...] | None:
    """The order of a run-time input's axes in memory, the slowest first; None for C order, and what is no ndarray."""
    if not isinstance(value, np.ndarray) or value.flags.c_contiguous:
        return None
    return order_in_memory(value.shape, value.strides)


_CONSTANT_KINDS = (bool, int, str, bytes, type(None))
_PLAIN = (*_CONSTANT_KINDS, Parameter, type)
"""Kinds of values that are part of a signature and no arrays, with their subclasses."""


def is_constant(value: Any) -> bool:
    """Whether a value is part of a signature and always means the same: of a type of Python's own, or a Parameter."""
    return type(value) in _CONSTANT_KINDS or isinstance(value, Parameter)


def static(value: Any) -> Any:
    """A key that is equal for two hashable values only if a function cannot tell them apart.

    Examples
    --------
    >>> static(0.0) == static(-0.0), static((1, "a")) == static((True, "a")), static((1, "a")) == static((1, "a"))
    (False, False, True)
    """
    kind = type(value)
    if isinstance(value, Number) and not isinstance(value, int):
        return kind, repr(value)
    if isinstance(value, tuple | frozenset):
        return kind, *map(static, value)
    if dataclasses.is_dataclass(kind) and kind.__hash__ is not object.__hash__:
        # Fields that the class leaves out when it compares are its own responsibility.
        parts = [getattr(value, field.name, None) for field in dataclasses.fields(kind) if field.compare]
        return kind, value, *[static(part) for part in parts if _hashable(part)]
    return kind, value


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
