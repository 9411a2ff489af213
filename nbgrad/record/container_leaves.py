"""The leaves of containers: tuples, lists, dicts, registered classes, and the classes of `dataclasses` and attrs.

In: values that users nest as they like. Out: their leaves and their structure, from which other values are filled in.
optree does the work, in namespaces of nbgrad's; a class with declared fields is registered there when a value of it is
first met, so that nobody has to. Called by the transforms, loops, `jit` and `nb.optim`, for arguments and results.

An object is made again field by field, without `__init__` and `__post_init__`: checks and side effects of these
belong to the user's own objects, not to their gradients and recorded copies.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from enum import Enum
from typing import Any

import numpy as np
import optree

from ..errors import ArgumentError
from ..process.locks import ForkSafeLock
from .tensor import Tensor

_SORTED = "nbgrad"
"""In this namespace optree sorts the keys of dicts."""
_IN_ORDER = "nbgrad in order"
"""In this one it leaves them in their order, which is part of the structure."""
_setting = ExitStack()
_setting.enter_context(optree.dict_insertion_ordered(True, namespace=_IN_ORDER))
_trees: Any = optree  # its signatures know fewer types of trees
_lock = ForkSafeLock()
_registered: set[type] = set()
_COMMON = frozenset([np.ndarray, Tensor, float, int, bool, complex, str, type(None)])
"""Classes of leaves for which nothing has to be looked up."""
_has_all, _flatten = _COMMON.issuperset, _trees.tree_flatten
_FIXED = (str, bytes, type, Enum, np.ufunc, types.FunctionType, types.BuiltinFunctionType)
"""Values that no number ever stands for: in a field they are part of the structure."""


class Structure:
    """The part of an object that is no leaf: the fields that are, and the values of the others."""

    __slots__ = ("fixed", "names")

    def __init__(self, names: tuple[str, ...], fixed: dict[str, Hashable]) -> None:
        self.names = names
        self.fixed = fixed

    def _key(self) -> tuple[Any, ...]:
        # 1, 1.0 and True are equal to Python, and so are 0.0 and -0.0.
        known = [(name, type(value), repr(value) if isinstance(value, float | complex) else value)
                 for name, value in self.fixed.items()]  # fmt: skip
        return self.names, tuple(known)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return ", ".join([*self.names, *[f"{name}={value!r}" for name, value in self.fixed.items()]])


def declared_fields(kind: type) -> dict[str, bool] | None:
    """The fields of a class of `dataclasses` or attrs, and whether each is static; None for other classes, and for
    arrays, Cells and classes that make their objects themselves."""
    fields = getattr(kind, "__dataclass_fields__", None)
    if fields is not None:
        found = {field.name: field.metadata for field in fields.values() if field._field_type.name == "_FIELD"}
    elif isinstance(attributes := getattr(kind, "__attrs_attrs__", None), tuple):
        found = {attribute.name: attribute.metadata for attribute in attributes}
    else:
        return None
    if kind.__new__ is not object.__new__ or hasattr(kind, "__array__") or hasattr(kind, "construct"):
        return None
    return {name: bool(metadata.get("static")) for name, metadata in found.items()}


def _register(kind: type) -> bool:
    """Make a class a container, if it declares fields; whether it is one now."""
    if kind in _registered:
        return True
    fields = declared_fields(kind)
    if fields is None:
        return False

    def parts(value: Any) -> tuple[list[Any], Structure, tuple[str, ...]]:
        leaves: dict[str, Any] = {}
        fixed: dict[str, Hashable] = {}
        for name, static in fields.items():
            try:
                held = getattr(value, name)
            except AttributeError:  # a field that the class has not set
                continue
            if static or isinstance(held, _FIXED):
                fixed[name] = _hashable(held, name, kind)
            else:
                leaves[name] = held
        names = tuple(leaves)
        return list(leaves.values()), Structure(names, fixed), names

    def together(structure: Structure, values: Sequence[Any]) -> Any:
        made = object.__new__(kind)
        for name, held in zip(structure.names, values, strict=True):
            object.__setattr__(made, name, held)
        for name, held in structure.fixed.items():
            object.__setattr__(made, name, held)
        return made

    with _lock.held():
        if kind not in _registered:
            for namespace in (_SORTED, _IN_ORDER):
                _trees.register_pytree_node(
                    kind, parts, together, namespace=namespace, path_entry_type=optree.GetAttrEntry
                )
            _registered.add(kind)
    return True


def _hashable(value: Any, name: str, kind: type) -> Hashable:
    try:
        hash(value)
    except TypeError:
        message = (
            f"The field {name} of {kind.__name__} is static, but holds a {type(value).__name__}, which is not "
            "hashable. Take a tuple, or leave static out."
        )
        raise ArgumentError(message) from None
    return value


def _looked_into(tree: Any, leaves: Sequence[Any], structure: Any, namespace: str) -> tuple[Any, Any]:
    """The leaves and the structure with objects taken apart whose classes declare fields."""
    while len([kind for kind in {*map(type, leaves)} - _COMMON if _register(kind)]):
        leaves, structure = _trees.tree_flatten(tree, none_is_leaf=True, namespace=namespace)
    return leaves, structure


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of nested containers, and their structure; None is a leaf."""
    leaves, structure = found = _flatten(tree, none_is_leaf=True, namespace=_SORTED)
    return found if _has_all(map(type, leaves)) else _looked_into(tree, leaves, structure, _SORTED)


def flatten_in_order(tree: Any) -> tuple[list[Any], Any]:
    """`flatten`, with the order of a dict's keys as part of the structure."""
    leaves, structure = found = _flatten(tree, none_is_leaf=True, namespace=_IN_ORDER)
    return found if _has_all(map(type, leaves)) else _looked_into(tree, leaves, structure, _IN_ORDER)


def leaves_of(tree: Any) -> list[Any]:
    """The leaves of nested containers; None is a leaf."""
    return flatten(tree)[0]


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """A container like `tree`, with the function's result for each leaf, and for what stands there in `others`.

    Raises
    ------
    ArgumentError
        If one of the others has another structure.
    """
    leaves, structure = flatten(tree)
    beside: list[list[Any]] = []
    for other in others:
        try:
            beside.append(structure.flatten_up_to(other))
        except ValueError as error:
            message = f"Two containers do not have one structure: {error}"
            raise ArgumentError(message) from None
    return _trees.tree_unflatten(structure, [function(*each) for each in zip(leaves, *beside, strict=True)])


def spread(values: Any, tree: Any) -> list[Any]:
    """One of `values` for each leaf of `tree`, where one value may stand for a whole branch.

    Raises
    ------
    ValueError
        If they do not fit.
    """
    # Both register the classes that they meet.
    flatten(values)
    flatten(tree)
    return _trees.broadcast_prefix(values, tree, none_is_leaf=True, namespace=_SORTED)


def fields_without_floats(structure: Any, floats: Sequence[bool]) -> frozenset[int]:
    """The positions of leaves that are no floats, in fields of objects: the derivative has None there."""
    if all(floats):
        return frozenset()
    accessors = structure.accessors()
    inside = [any(entry.type in _registered for entry in accessor) for accessor in accessors]
    return frozenset([k for k, (field, one) in enumerate(zip(inside, floats, strict=True)) if field and not one])
