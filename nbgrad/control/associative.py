"""`associative_scan`: running results of an operation that may be grouped at will, in a logarithmic number of steps.

In: a function that combines two values, and arrays of them. Out: the running results. Each step combines neighbours
for all pairs at once, so that the work is that of large arrays. Called by users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ShapeError
from ..graph.builders import concatenate, reshape, slice_axes
from ..graph.ir import Node
from ..record.tensor import Tensor
from ..transforms.argument_positions import check_function
from ..transforms.arguments import Results, kind_as, name_of
from ..transforms.lent_arrays import results_as
from .recorded_turn import Arrays
from .scan import integer


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The running results of an associative operation.

    Parameters
    ----------
    fn : callable
        `fn(a, b)` combines two values; it gets many pairs at once, stacked along `axis`, and
        `fn(a, fn(b, c))` must be `fn(fn(a, b), c)`.
    elems : array or containers of arrays
        The values, along `axis`.
    reverse : bool
        Whether to start from the end; then the first argument of `fn` is of later values than the second, as in JAX.
    axis : int
        The axis that counts the values.

    Returns
    -------
    as `elems`
        At position k the values up to k (from the last one on down to k, if `reverse`), combined in this order.

    Raises
    ------
    ShapeError
        If the arrays have different lengths, or `fn` changes shapes.

    Notes
    -----
    Twice the work of a loop in the logarithm of its steps: Blelloch, "Prefix sums and their applications", 1990.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.associative_scan(np.multiply, np.array([1.0, 2.0, 3.0, 4.0]))
    array([ 1.,  2.,  6., 24.])

    A linear recurrence, x[k] = a[k] x[k - 1] + b[k]:

    >>> both = lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1])
    >>> nb.associative_scan(both, (np.full(3, 0.5), np.ones(3)))[1]
    array([1.  , 1.5 , 1.75])
    """
    check_function(fn, "associative_scan")
    given = Arrays.of(elems, "elems of associative_scan()")
    axis = integer(axis, "associative_scan")
    lengths = {node.shape[axis] if -node.ndim <= axis < node.ndim else None for node in given.nodes}
    if len(lengths) != 1 or None in lengths:
        shapes = [node.shape for node in given.nodes]
        message = f"associative_scan() of {name_of(fn)}() needs one length along axis {axis}, but got shapes {shapes}."
        raise ShapeError(message)
    axes = [axis % node.ndim for node in given.nodes]
    nodes = (
        [_every(node, at, reverse=True) for node, at in zip(given.nodes, axes, strict=True)] if reverse else given.nodes
    )

    def combined(a: Sequence[Node], b: Sequence[Node]) -> list[Node]:
        pair = [given.filled([Tensor._of(node) for node in one]) for one in (a, b)]
        found = Arrays.of(fn(*pair), f"The result of {name_of(fn)}()")
        if found.tree != given.tree or [n.shape for n in found.nodes] != [n.shape for n in a]:
            shapes = [[n.shape for n in one] for one in (a, found.nodes)]
            message = f"{name_of(fn)}() must keep the shapes of what it combines, {shapes[0]}, but gives {shapes[1]}."
            raise ShapeError(message)
        return found.nodes

    found = _running(nodes, axes, combined)
    if reverse:
        found = [_every(node, at, reverse=True) for node, at in zip(found, axes, strict=True)]
    results, tensors = Results(), results_as(given.leaves)
    slots = [results.add(node, kind_as(tensors, "array")) for node in found]
    return results.fill(given.filled(slots))[0]


def _running(
    nodes: Sequence[Node], axes: Sequence[int], combined: Callable[[Sequence[Node], Sequence[Node]], list[Node]]
) -> list[Node]:
    """The running results: those of pairs of neighbours, and between them those with one value more."""
    count = nodes[0].shape[axes[0]]
    if count < 2:
        return list(nodes)
    even, odd = ([_every(node, at, first, 2) for node, at in zip(nodes, axes, strict=True)] for first in (0, 1))
    pairs = count // 2
    of_pairs = _running(combined([_first(n, at, pairs) for n, at in zip(even, axes, strict=True)], odd), axes, combined)
    rest = [_every(node, at, 2, 2) for node, at in zip(nodes, axes, strict=True)]
    between = [_first(node, at, rest[k].shape[at]) for k, (node, at) in enumerate(zip(of_pairs, axes, strict=True))]
    later = combined(between, rest) if rest[0].shape[axes[0]] else rest
    found: list[Node] = []
    for node, at, low, high in zip(nodes, axes, later, of_pairs, strict=True):
        starts = concatenate([_first(node, at, 1), low], at) if low.shape[at] else _first(node, at, 1)
        found.append(_alternating(starts, high, at))
    return found


def _every(node: Node, axis: int, start: int = 0, step: int = 1, reverse: bool = False) -> Node:
    """Every so many values along an axis, from one on; or all from the end."""
    count = node.shape[axis]
    along = (count - 1, count, -1) if reverse else (start, max(0, -(-(count - start) // step)), step)
    if not along[1]:
        along = (0, 0, 1)
    return slice_axes(node, [along if a == axis else (0, n, 1) for a, n in enumerate(node.shape)])


def _first(node: Node, axis: int, count: int) -> Node:
    return slice_axes(node, [(0, count, 1) if a == axis else (0, n, 1) for a, n in enumerate(node.shape)])


def _alternating(first: Node, second: Node, axis: int) -> Node:
    """The values of two arrays in turns; the first may have one more."""
    count = second.shape[axis]
    shape = (*second.shape[: axis + 1], 1, *second.shape[axis + 1 :])
    both = concatenate([reshape(_first(first, axis, count), shape), reshape(second, shape)], axis + 1)
    both = reshape(both, (*second.shape[:axis], 2 * count, *second.shape[axis + 1 :]))
    if first.shape[axis] == count:
        return both
    last = slice_axes(first, [(count, 1, 1) if a == axis else (0, n, 1) for a, n in enumerate(first.shape)])
    return concatenate([both, last], axis)
