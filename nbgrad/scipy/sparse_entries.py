"""Entries of sparse matrices that are set one after the other, as an assembly does it.

In: keys, and recorded values for them. Out: the values of all entries as one node, with their rows and columns. Called
by sparse_values.py. SciPy itself sets: its matrix holds the numbers of the entries, from 1 on, and the values stay in
pieces, as they came, until all of them are asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy

from .. import numpy as np
from ..errors import TracedValueError
from ..graph.builders import cast, concatenate, gather
from ..graph.ir import INT64, Node, constant, zeros
from ..record.as_node import as_node, wrap
from ..record.tensor import Tensor


def sparse_module() -> Any:
    """`scipy.sparse`, imported when it is first needed."""
    import scipy.sparse

    return scipy.sparse


def plain_integers(value: Any, what: str) -> numpy.ndarray:
    """Places of entries as an int64 array.

    Raises
    ------
    TracedValueError
        If they are recorded.
    """
    if isinstance(value, Tensor):
        if value._node.traced:
            message = f"The {what} of a sparse matrix must not be recorded: only its values have derivatives."
            raise TracedValueError(message)
        value = value.asnumpy()
    elif isinstance(value, list | tuple):
        value = [one.item() if isinstance(one, Tensor) else one for one in value]
    return numpy.asarray(value).astype(numpy.int64)


def plain_key(key: Any) -> Any:
    """A key without Tensors."""
    parts = [
        plain_integers(part, "places") if isinstance(part, Tensor) and part.dtype.kind in "iu" else part
        for part in (key if isinstance(key, tuple) else (key,))
    ]
    parts = [part.asnumpy() if isinstance(part, Tensor) else part for part in parts]
    parts = [int(part) if isinstance(part, numpy.ndarray) and part.ndim == 0 else part for part in parts]
    return tuple(parts) if isinstance(key, tuple) else parts[0]


def gathered(values: Node, numbers: Any) -> Tensor:
    """The values with these numbers, from 1 on; 0 stands for none."""
    places = numpy.asarray(numbers).astype(INT64)
    return wrap(gather(concatenate([zeros((1,), values.dtype), values], 0), constant(places)))


class EntriesToSet:
    """The entries of a matrix, and those that are set."""

    def __init__(self, values: Node, row: numpy.ndarray, col: numpy.ndarray, shape: tuple[int, int]) -> None:
        self._dtype = values.dtype
        self._pieces, self._starts = [values], [0, values.size]
        numbers = sparse_module().coo_array((numpy.arange(1, values.size + 1), (row, col)), shape=shape)
        self._numbers = numbers.tolil()

    def set(self, key: Any, value: Any, without_zeros: bool) -> None:
        """Set the entries that a plain key names; perhaps, places that are set to plain zeros have none afterwards."""
        named = self._numbers[key]
        shape = named.shape if sparse_module().issparse(named) else numpy.shape(named)
        spread = np.broadcast_to(wrap(cast(as_node(value), self._dtype)), shape).reshape(-1)
        numbers = numpy.arange(self._starts[-1] + 1, self._starts[-1] + 1 + spread.size).reshape(shape)
        if without_zeros and not spread._node.traced:
            numbers = numpy.where(spread.asnumpy().reshape(shape) == 0, 0, numbers)
        self._numbers[key] = numbers if shape else int(numbers)
        self._pieces.append(as_node(spread))
        self._starts.append(self._starts[-1] + spread.size)

    def at(self, key: Any) -> tuple[Any, Node]:
        """SciPy's matrix of the numbers of the entries that a plain key names, and the values that these count."""
        found = self._numbers[key]
        is_part = sparse_module().issparse(found)
        found = found.tocsr() if is_part else found
        numbers = found.data if is_part else numpy.atleast_1d(found)
        held = sorted({bisect_right(self._starts, number - 1) - 1 for number in numbers.tolist() if number})
        if not held:
            return found, zeros((1,), self._dtype)
        shifts = numpy.zeros(len(self._pieces), int)
        before = 0
        for place in held:
            shifts[place] = before - self._starts[place]
            before += self._pieces[place].size
        places = numpy.searchsorted(self._starts, numbers - 1, "right") - 1
        moved = numpy.where(numbers > 0, numbers + shifts[places], 0)
        if is_part:
            found.data[:] = moved
        return found if is_part else moved[0], concatenate([self._pieces[place] for place in held], 0)

    def all(self) -> tuple[Node, numpy.ndarray, numpy.ndarray]:
        """The values of all entries, their rows and their columns."""
        entries = self._numbers.tocsr().tocoo()
        row, col = (places.astype(numpy.int64) for places in entries.coords)
        return gather(concatenate(self._pieces, 0), constant(entries.data.astype(numpy.int64) - 1)), row, col
