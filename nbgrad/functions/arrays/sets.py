"""Sets of elements: unique, union, intersection, differences, membership.

In: array-likes. Out: Tensors, and the tuples of NumPy's `unique_*`. Called by users and through table.py. The elements
of a set depend on values, which are computed at once (not while jit records); selecting them is a gather, so each
element of a set passes its gradient to the element of the arrays that it was taken from: the first of equal ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph.builders import concatenate, gather, reshape
from ...graph.ir import INT64, Node, broadcast, constant, elementwise, literal
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import axis_of, gather_axis, only
from ...record.promotion import promote
from ...record.tensor import Tensor
from ...runtime.evaluate import concrete
from .sorting import searchsorted_node, sort_node


def _flat(node: Node) -> Node:
    return reshape(node, (node.size,))


def _positions(where: Any) -> Node:
    return constant(np.asarray(where, INT64))


def _two(ar1: Any, ar2: Any) -> tuple[Node, np.ndarray, np.ndarray]:
    """Both flat arrays joined, and the value of each."""
    first, second = (_flat(node) for node in promote([as_node(ar1), as_node(ar2)]))
    return concatenate([first, second], 0), concrete(first, "array"), concrete(second, "array")


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The different elements, sorted; along an axis, the different slices.

    Parameters
    ----------
    ar : array-like
    return_index, return_inverse, return_counts : bool
        Whether to return where each one was found first, which one each element is, and how often each one appears.
    axis : int or None
        The axis whose slices are compared; None for the elements of the flat array.
    equal_nan : bool
        Whether NaN equals NaN.
    sorted : bool
        Accepted as in NumPy; the result is sorted anyway.

    Returns
    -------
    Tensor or tuple of Tensor

    Examples
    --------
    >>> unique(np.array([3.0, 1.0, 3.0])).tolist()
    [1.0, 3.0]
    """
    node = as_node(ar)
    at = None if axis is None else axis_of(axis, node.ndim)
    source = _flat(node) if at is None else node
    _, index, inverse, counts = np.unique(concrete(node, "array"), True, True, True, at, equal_nan=equal_nan)
    values = wrap(gather_axis(source, at or 0, _positions(index)))
    extras = [
        wrap(_positions(extra))
        for extra, asked in ((index, return_index), (inverse, return_inverse), (counts, return_counts))
        if asked
    ]
    return (values, *extras) if extras else values


def _unique_parts(x: Any) -> list[Tensor]:
    """Values, first positions, inverse and counts, as the array API standard has them: NaN differs from NaN."""
    return list(unique(x, True, True, True, equal_nan=False))


def unique_all(x: Any, /) -> Any:
    """The different elements with their first positions, the inverse and counts, as NumPy's named tuple."""
    return _RESULTS["unique_all"](*_unique_parts(x))


def unique_counts(x: Any, /) -> Any:
    """The different elements and how often each appears, as NumPy's named tuple."""
    values, _, _, counts = _unique_parts(x)
    return _RESULTS["unique_counts"](values, counts)


def unique_inverse(x: Any, /) -> Any:
    """The different elements and which one each element is, as NumPy's named tuple."""
    values, _, inverse, _ = _unique_parts(x)
    return _RESULTS["unique_inverse"](values, inverse)


def unique_values(x: Any, /) -> Tensor:
    """The different elements."""
    return unique(x, equal_nan=False)


_RESULTS: dict[str, Any] = {
    name: type(getattr(np, name)(np.zeros(1))) for name in ("unique_all", "unique_counts", "unique_inverse")
}
"""NumPy's own named tuples."""


def union1d(ar1: Any, ar2: Any) -> Tensor:
    """The different elements of both arrays, sorted."""
    joined, first, second = _two(ar1, ar2)
    _, index = np.unique(np.concatenate([first, second]), return_index=True)
    return wrap(gather(joined, _positions(index)))


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The different elements that are in both arrays, sorted; with `return_indices`, where they are in each."""
    joined, first, second = _two(ar1, ar2)
    _, index, other = np.intersect1d(first, second, assume_unique, return_indices=True)
    values = wrap(gather(joined, _positions(index)))
    return (values, wrap(_positions(index)), wrap(_positions(other))) if return_indices else values


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The different elements of the first array that are not in the second, sorted unless `assume_unique`."""
    node = as_node(ar1)
    _, first, second = _two(Tensor._of(node), ar2)
    index = np.arange(first.size) if assume_unique else np.unique(first, return_index=True)[1]
    index = index[np.isin(first[index], second, invert=True)]
    return wrap(gather(_flat(node), _positions(index)))


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The elements that are in one array and not in the other, sorted."""
    joined, first, second = _two(ar1, ar2)
    index = [
        np.arange(part.size) if assume_unique else np.unique(part, return_index=True)[1] for part in (first, second)
    ]
    places = np.concatenate([index[0], index[1] + first.size])
    values = np.concatenate([first, second])[places]
    order = np.argsort(values, kind="stable")
    places, values = places[order], values[order]
    # The elements without an equal neighbour.
    apart = np.concatenate([[True], values[1:] != values[:-1], [True]]) if values.size else np.ones(1, bool)
    return wrap(gather(joined, _positions(places[apart[1:] & apart[:-1]])))


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Tensor:
    """Whether each element is among others."""
    only("kind", kind, None, "sort", "table")
    values, others = promote([as_node(element), as_node(test_elements)])
    others = _flat(others)
    if others.size == 0:
        result = broadcast(literal(False, np.dtype(bool)), values.shape)
    else:
        # Sorted, so that one search finds the only candidate.
        ordered = sort_node(others)
        place = searchsorted_node(ordered, values, "left")
        inside = elementwise("minimum", place, others.size - 1)
        result = elementwise("equal", gather(ordered, inside), values)
    return wrap(elementwise("logical_not", result) if invert else result)


def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None) -> Tensor:
    """Whether each element of a flat array is among others."""
    return wrap(_flat(isin(ar1, ar2, assume_unique, invert, kind=kind)._node))
