"""NumPy's objects that are indexed to make arrays: `r_`, `c_`, `mgrid`, `ogrid`; and `broadcast`.

In: the content of the brackets: numbers, slices, arrays, recorded values. Out: Tensors. Called by users as names of
`nbgrad.numpy`: NumPy cannot tell a Tensor of `np.r_[...]`, and would take its value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...graph.builders import transpose
from ...record.as_node import as_node, holds_tensors, wrap
from ...record.axes_and_dtypes import at_least
from ...record.tensor import Tensor
from .construction import asarray, tensors_of
from .joining import concatenate
from .shaping import broadcast_arrays, common_shape


class Concatenator:
    """`r_` and `c_`: numbers, arrays and ranges `start:stop:step` in brackets, joined along an axis.

    Parameters
    ----------
    axis : int
        Along which the parts are joined.
    ndmin : int
        The least number of axes of each part: missing ones, of extent 1, are added.
    before : int
        How many of the new axes come after (for a negative number, counted from the end) the part's own.
    numpys : object
        NumPy's object, which is asked where there is no Tensor.

    Examples
    --------
    >>> import nbgrad.numpy as np
    >>> np.r_[0.5, np.array([1.0, 2.0]), 3:5].tolist()
    [0.5, 1.0, 2.0, 3.0, 4.0]
    """

    def __init__(self, axis: int, ndmin: int, before: int, numpys: Any) -> None:
        self.axis, self.ndmin, self.before, self.numpys = axis, ndmin, before, numpys

    def __getitem__(self, key: Any) -> Any:
        parts = list(key) if isinstance(key, tuple) else [key]
        if not holds_tensors(parts):
            return tensors_of(self.numpys[key])
        axis, ndmin, before = self.axis, self.ndmin, self.before
        if isinstance(parts[0], str):
            axis, ndmin, before = self._directive(parts.pop(0))
        return concatenate([self._part(part, ndmin, before) for part in parts], axis)

    def _directive(self, text: str) -> tuple[int, int, int]:
        """The three numbers that a string in front can change."""
        try:
            given = [int(word) for word in text.split(",")]
        except ValueError:
            given = []
        if not 1 <= len(given) <= 3:
            message = f"{text!r} must be one to three integers, as '0', '0,2' or '0,2,0', where Tensors are joined."
            raise ArgumentError(message)
        usual = self.axis, self.ndmin, self.before
        return (*given, *usual[len(given) :])  # type: ignore[return-value]

    @staticmethod
    def _part(part: Any, ndmin: int, before: int) -> Any:
        """One part with its new axes."""
        node = as_node(np.r_[part] if isinstance(part, slice) else part)
        own = node.ndim
        if own >= ndmin:
            return wrap(node)
        weak = node.weak
        node = at_least(node, ndmin)
        if before != -1 and own:
            new = ndmin - own
            first = before + new + 1 if before < 0 else before
            order = list(range(ndmin))
            # The part's own axes go before the new ones from position `first` on.
            node = transpose(node, (*order[:first], *order[new:], *order[first:new]))
        node.weak = weak
        return wrap(node)


r_ = Concatenator(0, 1, -1, np.r_)
c_ = Concatenator(-1, 2, 0, np.c_)


class Grid:
    """`mgrid` and `ogrid`: the coordinates of a grid, given by slices."""

    def __init__(self, numpys: Any) -> None:
        self.numpys = numpys

    def __getitem__(self, key: Any) -> Any:
        return tensors_of(self.numpys[key])


mgrid, ogrid = Grid(np.mgrid), Grid(np.ogrid)


class broadcast:  # noqa: N801 - NumPy's name
    """Arrays that are broadcast together: their common shape, and their elements side by side.

    Examples
    --------
    >>> import nbgrad.numpy as np
    >>> np.broadcast(np.zeros((3, 1)), np.zeros(4)).shape
    (3, 4)
    """

    def __init__(self, *arrays: Any) -> None:
        self._arrays = [asarray(a) for a in arrays]
        self.shape = common_shape([tuple(a.shape) for a in self._arrays])
        self.ndim = self.nd = len(self.shape)
        self.size = int(np.prod(self.shape))
        self.numiter = len(self._arrays)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        together = [a.ravel() for a in broadcast_arrays(*self._arrays)]
        return iter([tuple([a[k] for a in together]) for k in range(self.size)])
