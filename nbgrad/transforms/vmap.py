"""`vmap`: a function of one value becomes a function of many at once.

In: a function, and which axis of each argument counts the values. Out: a function that runs all of them as one program.
The function is recorded once, for a single value, and its graph is batched (graph/batch.py). Called by users.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import optree

from ..errors import ArgumentError, DtypeError, ShapeError, TracedValueError
from ..graph.builders import transpose
from ..graph.ir import Node, make, placeholder, topological
from ..graph.trace import current_trace, recording
from ..record.call_order import Batch
from ..record.container_leaves import spread
from ..record.foreign_arrays import advice, described, host_library
from ..record.shared_memory import strides_in_memory
from ..record.tensor import Tensor
from ..record.written_arguments import Callers
from ..runtime.memory_order import is_contiguous, strides_of
from .argument_positions import check_function
from .arguments import Results, flatten, kind_as, name_of, node_of
from .lent_arrays import by_ndarrays, kind_of, lent, results_as
from .rolled import nodes_in, roll_up


def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """A function that applies `fn` to every value along an axis of its arguments.

    Parameters
    ----------
    fn : callable
        A function or Cell for one value.
    in_axes : int, None, or tuple or list of them
        The axis of each argument that counts the values; None for arguments that are the same for all. One for all
        arguments, or one per argument; for a container, again one for all or one per element. Keyword arguments are
        counted along axis 0.
    out_axes : int, None, or tuple or list of them
        Where that axis is in each output; None for outputs that do not depend on the mapped arguments.

    Returns
    -------
    callable
        Takes the arguments of `fn`, each with one more axis where `in_axes` is not None.

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        If the axes do not fit the arguments, or the arguments count different numbers of values.
    TracedValueError
        If `fn` needs the value of an array as a number, which differs from value to value: use `np.where`.

    Notes
    -----
    Random numbers that `fn` draws are the same for all values.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.vmap(np.dot, in_axes=(0, None))(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21., 43.])
    >>> nb.vmap(nb.grad(lambda x: np.sum(x**3)))(np.array([[1.0], [2.0]]))
    array([[ 3.],
           [12.]])
    """
    check_function(fn, "vmap")
    for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if not all(axis is None or type(axis) is int for axis in flatten(axes)[0]):
            message = f"{name} must be an int, None, or a tuple or list of them, but got {axes!r}."
            raise DtypeError(message)

    @functools.wraps(fn, updated=())
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, treespec = flatten((args, kwargs))
        if current_trace() is None and any(map(host_library, leaves)):
            return by_ndarrays(mapped, treespec, leaves)
        leaves = [lent(leaf) for leaf in leaves]
        axes = [*_spread(_sequence(in_axes), args, "in_axes", fn), *[0] * len(flatten(kwargs)[0])]
        mapping: dict[Node, Node] = {}
        callers = Callers()
        pairs = enumerate(zip(leaves, axes, strict=True))
        lifted = [_lift(leaf, axis, position, mapping, fn, callers) for position, (leaf, axis) in pairs]
        sizes = {node.shape[0] for node in mapping.values()}
        if len(sizes) != 1:
            shown = "no argument is mapped" if not sizes else f"the mapped axes have lengths {sorted(sizes)}"
            message = f"vmap of {name_of(fn)}() needs one number of values, but {shown}."
            raise ArgumentError(message) if not sizes else ShapeError(message)
        size = sizes.pop()
        lifted_args, lifted_kwargs = optree.tree_unflatten(treespec, lifted)
        with recording(mapping, mapping=mapping, size=size, callers=callers, rolls=strides_of, of=fn) as trace:
            many = Batch(trace, mapping, size)
            try:
                output = fn(*lifted_args, **lifted_kwargs)
            finally:
                written = trace.undo_writes()
            stored = [*[node for _, node in written], *[node for node, _ in callers.written()]]
            roll_up(trace, [*nodes_in(output), *stored], mapping)
        if trace.outside:
            message = (
                f"{name_of(fn)}() writes to a Tensor from outside inside vmap, where the value differs from one mapped "
                "value to the next. Return it instead."
            )
            raise TracedValueError(message)
        _write(written, mapping, fn)
        stored = _stored(callers, leaves, axes, mapping, many, fn)
        return _collect(fn, output, out_axes, mapping, many, Results(trace.budgets), results_as(leaves), stored)

    return mapped


def _sequence(axes: Any) -> Any:
    return tuple(axes) if isinstance(axes, list) else axes


def _spread(axes: Any, tree: Any, name: str, fn: Callable[..., Any]) -> list[Any]:
    """The axis of every leaf of a tree, for axes that are given for whole branches."""
    try:
        return spread(axes, tree)
    except ValueError:
        message = (
            f"{name}={axes!r} of the vmap of {name_of(fn)}() does not have the structure of what it belongs to: give "
            "one axis for all, or one for each."
        )
        raise ArgumentError(message) from None


def _lift(
    leaf: Any, axis: int | None, position: int, mapping: dict[Node, Node], fn: Callable[..., Any], callers: Callers
) -> Any:
    """A leaf as the function gets it; a mapped array becomes a placeholder for one of its values."""
    kind = kind_of(leaf)
    if kind == "other":
        if axis is not None and advice(leaf):
            message = f"vmap of {name_of(fn)}() maps ndarrays and Tensors, but array {position} is {described(leaf)}."
            raise DtypeError(message)
        return leaf
    if axis is None and kind == "lent":
        return Tensor._of(make("alias", (node_of(leaf),)))
    if axis is None:
        return callers.lend(make("alias", (node_of(leaf),)), leaf) if kind == "array" else leaf
    node = node_of(leaf)
    if not -node.ndim <= axis < node.ndim:
        message = (
            f"vmap of {name_of(fn)}() maps axis {axis} of array {position} of its arguments, but that has shape "
            f"{node.shape}. Use None in in_axes for what is the same for all values."
        )
        raise ShapeError(message)
    axis %= node.ndim
    front = transpose(node, (axis, *[a for a in range(node.ndim) if a != axis]))
    stand_in = placeholder(front.shape[1:], node.dtype)
    stand_in.tensor, stand_in.place = node.tensor, node.place
    strides = None if kind == "lent" else strides_in_memory(leaf)
    if strides is not None:
        one = (*strides[:axis], *strides[axis + 1 :])
        stand_in.layout = None if is_contiguous(stand_in.shape, one, stand_in.dtype.itemsize) else one
    mapping[stand_in] = front
    if kind == "array" and not stand_in.shape:  # x[k] of an ndarray is a scalar, which writes leave where it is
        return Tensor._of(stand_in)
    return callers.lend(stand_in, leaf) if kind in ("array", "tensor") else Tensor._of(stand_in)


def _write(written: list[tuple[Any, Node]], mapping: dict[Node, Node], fn: Callable[..., Any]) -> None:
    """Write the function's values to Parameters: one for all mapped values, such as the state of a generator."""
    for parameter, node in written:
        if any(source in mapping for source in topological([node])):
            message = (
                f"{name_of(fn)}() writes to the Parameter {parameter.name} inside vmap, where the value differs from "
                "one mapped value to the next. Return it instead."
            )
            raise ArgumentError(message)
    for parameter, node in written:
        parameter._write(node)


def _stored(
    callers: Callers,
    leaves: Sequence[Any],
    axes: Sequence[int | None],
    mapping: dict[Node, Node],
    many: Batch,
    fn: Callable[..., Any],
) -> list[tuple[Node, Any]]:
    """The writes of the function to its caller's arrays, for all values at once."""
    axis_of = {id(leaf): axis for leaf, axis in zip(leaves, axes, strict=True)}
    stored: list[tuple[Node, Any]] = []
    for node, value in callers.written():
        axis = axis_of[id(value)]
        if axis is not None:
            stored.append((_axis_moved(many([node])[0], axis), value))
        elif any(source in mapping for source in topological([node])):
            message = (
                f"{name_of(fn)}() writes to an array inside vmap, where the value differs from one mapped value to the "
                "next. Return it instead, or map the array too (in_axes)."
            )
            raise ArgumentError(message)
        else:
            stored.append((node, value))
    return stored


def _axis_moved(whole: Node, axis: int) -> Node:
    """The node whose first axis, which counts the values, is put where it is wanted."""
    order = list(range(1, whole.ndim))
    order.insert(axis % whole.ndim, 0)
    return transpose(whole, tuple(order))


def _collect(
    fn: Callable[..., Any],
    output: Any,
    out_axes: Any,
    mapping: dict[Node, Node],
    many: Batch,
    results: Results,
    tensors: Any,
    stored: list[tuple[Node, Any]],
) -> Any:
    """The outputs of all values, with their axis where it is wanted."""
    leaves, treespec = flatten(output)
    axes = _spread(_sequence(out_axes) if isinstance(output, tuple) else out_axes, output, "out_axes", fn)
    results.stores = [(results.add(node, "array"), value) for node, value in stored]
    filled: list[Any] = []
    for leaf, axis in zip(leaves, axes, strict=True):
        if kind_of(leaf) == "other":
            filled.append(leaf)
            continue
        node = node_of(leaf)
        if axis is None:
            if any(source in mapping for source in topological([node])):
                message = (
                    f"out_axes is None for an output of {name_of(fn)}() that depends on the mapped arguments. Give the "
                    "axis that shall count the values."
                )
                raise ArgumentError(message)
            whole = node
        else:
            whole = many([node])[0]
            if not -whole.ndim <= axis < whole.ndim:
                message = f"out_axes has {axis}, but an output of {name_of(fn)}() has {whole.ndim} axes when mapped."
                raise ShapeError(message)
            whole = _axis_moved(whole, axis)
        plain = "value" if whole.ndim == 0 else "array"
        filled.append(results.add(whole, kind_as(tensors, plain)))
    token = many.end()
    if current_trace() is None:
        results.wait_for(token)
    return results.fill(optree.tree_unflatten(treespec, filled))[0]
