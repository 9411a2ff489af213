"""Doors: the way of a call into a compiled function, with little or no Python.

In: a specialization and the arguments of a call. Out: a `Door` for calls like this one: native code where that can read
the arguments and make the results, otherwise a short function, which takes containers and keywords apart, or reads
data on a device (device_doors.py). Called by jit.py, which gives the callable for all calls that a door does not serve.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import config
from ..errors import NbgradError
from ..graph.builders import users_leaf
from ..graph.ir import PRIMITIVES, Node, plain_dtype
from ..process.locks import ForkSafeLock
from ..process.object_layout import scalar_values
from ..record.tensor import Tensor
from ..runtime.cpu_program import MISSED, Program, missed
from ..runtime.native_tensors import EQUAL, OBJECT, PLAIN, TENSOR, Entry
from ..tensors.parameter import Parameter
from ..transforms.arguments import flatten
from .device_doors import device_call, device_into
from .signatures import flatten_in_order, is_constant
from .specialization import Specialization


@dataclass(slots=True)
class Door:
    """The entrance that a compiled function keeps open: for calls like the last one, but right for all."""

    call: Callable[..., Any]
    """Takes the arguments of any call by position."""
    into: Callable[[Sequence[Any], Any], bool] | None = None
    """Takes the arguments and `out`; tells whether the results are there. Other calls change nothing."""
    finds_leaves: bool = True
    """Whether it does not serve arguments that depend on a differentiable leaf."""
    takes_keywords: bool = False
    """Whether `call` takes keywords too."""


_making = ForkSafeLock()


def door(one: Specialization, leaves: Sequence[Any], treespec: Any, fallback: Callable[..., Any]) -> Door | None:
    """A door for calls like this one, which a specialization serves; None if there is none (yet).

    Parameters
    ----------
    leaves, treespec
        The arguments from `flatten_in_order`; `treespec` is None where the leaves are the arguments themselves, by
        position.
    """
    if not _can_open(one, leaves):
        return None
    if one.device is not None:
        call = None if treespec is not None else device_call(one, leaves, fallback)
        return None if call is None else Door(call, device_into(one, leaves), False)
    if treespec is None and one.native and _plain(leaves):
        return Door(one.program.call, functools.partial(_native_into, one))
    entry = one.state.entry
    if entry is None:
        return None
    finds_leaves = not any(isinstance(value, Parameter) for value in leaves)
    if treespec is None and _by_itself(one):
        return Door(entry.call, finds_leaves=finds_leaves)
    call = functools.partial(_through_python, one, treespec, entry.call, fallback)
    return Door(call, None, finds_leaves, treespec is not None)


def make_entry(one: Specialization, leaves: Sequence[Any], treespec: Any, fallback: Callable[..., Any]) -> bool:
    """Whether calls like this one get a native entry now. Called from the second call on: only then does it pay."""
    if one.state.entry is not None or one.device is not None or not _can_open(one, leaves):
        return False
    if one.native and _plain(leaves) if treespec is None else not _has_plain_keys(treespec):
        return False
    positions = _positions(one, leaves)
    if positions is None:
        return False
    with _making.held():
        # A program has one entry: a second one would take its place in the program, and then be dropped.
        if one.state.entry is not None:
            return False
        alone = treespec is None and _by_itself(one)
        one.state.entry = _entry(one, one.program, positions, fallback if alone else missed)
    return one.state.entry is not None


def _has_plain_keys(treespec: Any) -> bool:
    """Whether containers that are equal mean the same: keys of dicts may be equal, but of different types."""
    if issubclass(treespec.type or object, dict) and not all(type(key) is str for key in treespec.entries()):
        return False
    return all(map(_has_plain_keys, treespec.children()))


def _can_open(one: Specialization, args: Sequence[Any]) -> bool:
    """Whether there may be a door: where the order of arguments in memory matters, it must tell those that lie
    otherwise, and native code knows the strides of ndarrays without gaps only, and takes any Tensor."""
    if one.program is None or one.stores or (one.device is None and one.program.file is not None):
        return False
    orders = one.conditions.orders
    if orders is None:
        return True
    known = one.program.argument_strides if one.device is None else [None] * len(orders)
    return list(orders) == known[: len(orders)] and not any(isinstance(leaf, Tensor) for leaf in args)


def _plain(args: Sequence[Any]) -> bool:
    """Whether all arguments are of the kinds that programs take."""
    return all(map(_is_plain, args))


def _is_plain(value: Any) -> bool:
    """Whether an argument is an ndarray or a scalar."""
    return type(value) is np.ndarray or type(value) in scalar_values()


def _by_itself(one: Specialization) -> bool:
    """Whether native code can tell that nothing has changed, and make the results."""
    return one.returned.packing is not None and one.state.version is not None


def _native_into(one: Specialization, args: Sequence[Any], out: Any) -> bool:
    """A call with ndarrays for the results."""
    if config.interpret():
        return False
    try:
        targets = one.targets(out)
    except NbgradError:
        # Perhaps the arguments are others too.
        return False
    found = targets.written(args)
    if one.program.call_into(*args, *found) is MISSED:
        return False
    targets.take(found)
    return True


def _through_python(
    one: Specialization,
    treespec: Any,
    call: Callable[..., Any],
    fallback: Callable[..., Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """A call of which Python does what native code cannot: take containers apart (if there is a `treespec`) and make
    them, and compare Cells that change silently."""
    leaves: Sequence[Any] = args
    given = treespec
    if treespec is not None:
        leaves, given = flatten_in_order((args, kwargs))
    if given == treespec and (one.state.version is not None or one.current()):
        found = call(*leaves)
        if found is not MISSED:
            return one.returned.filled(found) if one.returned.packing is None else found
    return fallback(*args, **kwargs)


def _positions(one: Specialization, args: Sequence[Any]) -> list[tuple[int, Any, Any]] | None:
    """The kind of value that native code shall find at each position of a call, and what it must be."""
    nodes = iter(one.arguments)
    positions: list[tuple[int, Any, Any]] = []
    for value in args:
        kind = type(value)
        if kind is Tensor:
            node = next(nodes)
            positions.append((TENSOR, bool(node.weak), bool(node.tensor)))
        elif _is_plain(value):
            next(nodes)
            positions.append((PLAIN, None, None))
        elif kind in _EQUAL_KINDS:
            positions.append((EQUAL, value, None))
        elif _same_if_identical(value):
            positions.append((OBJECT, value, None))
        else:
            return None
    # What is left is the Parameters'; arrays of other libraries are inputs too, which native code cannot read.
    return positions if len(list(nodes)) == len(one.parameters) else None


_EQUAL_KINDS = frozenset([int, str, bytes])
"""Kinds of values that mean the same if they are equal; Python may make another object at each use."""


def _same_if_identical(value: Any) -> bool:
    """Whether an argument that is part of the signature never comes to mean something else."""
    if is_constant(value):
        return True
    return type(value).__hash__ is object.__hash__ and not isinstance(value, Tensor) and flatten(value)[1].is_leaf()


def _entry(
    one: Specialization,
    program: Program,
    positions: Sequence[tuple[int, Any, Any]],
    fallback: Callable[..., Any],
) -> Entry | None:
    count = one.result_count
    # Either all results are Tensors, or none is.
    results = [_template(node) for node in one.outputs[:count]] if "tensor" in one.returned.kinds else []
    guards = one.outputs[count : count + len(one.conditions.guards)]
    expected = [np.array(v, node.dtype, order="C") for v, node in zip(one.conditions.guards, guards, strict=True)]
    expected += [np.array(True)] * len(one.conditions.checks)
    if any(value.shape != node.shape for value, node in zip(expected, guards, strict=False)):
        return None
    packing = [*range(count), -1 - count] if one.returned.packing is None else one.returned.packing
    new = one.outputs[len(one.outputs) - len(one.written) :]
    held = [p._nodes(node.shape, plain_dtype(node.dtype)) for p, node in zip(one.written, new, strict=True)]
    try:
        return Entry(
            program,
            positions,
            [parameter for parameter, _ in one.parameters],
            one.written,
            expected,
            results,
            [leaf for leaf, _ in held],
            [snapshot for _, snapshot in held],
            packing,
            one.state.version if one.conditions.cells else None,
            fallback,
            (Tensor, Parameter),
        )
    except LookupError:
        return None


def _template(node: Node) -> Node:
    """A node as `Tensor._holding` makes it for a result, without its value."""
    return users_leaf(Node(PRIMITIVES["constant"], (), (), node.shape, plain_dtype(node.dtype)))
