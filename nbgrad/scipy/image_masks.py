"""Masks of `scipy.ndimage` that are made of recorded values: distances, binary morphology, labels.

In: truth values, or numbers that are taken as such, and SciPy's options. Out: Tensors without a derivative: SciPy's own
results, found when the function runs (a `host` node of the graph). Called by code that `differentiable_source` runs, by
scipy_table.py.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy

from .. import numpy as np
from ..errors import ArgumentError, ShapeError
from ..graph.host_functions import HostFunction, host
from ..graph.ir import make
from ..record.as_node import as_node, wrap
from ..record.tensor import Tensor


class Operation:
    """A function of `scipy.ndimage` with its options; equal ones are one, in programs that are kept."""

    def __init__(self, name: str, rank: int, dtype: Any, options: dict[str, Any], further: int = 0) -> None:
        self.name, self.rank, self.further, self.dtype = name, rank, further, numpy.dtype(dtype)
        self.options = {key: _plain(value) for key, value in options.items() if value is not None}
        self._key = (name, rank, further, *[(key, _key(value)) for key, value in self.options.items()])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operation) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return self.name

    def shape(self, given: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result, for an operand that may have leading axes; `further` counts coordinates."""
        lead = len(given) - self.rank
        return (*given[:lead], *[self.further] * (self.further > 0), *given[lead:])

    def run(self, *masks: numpy.ndarray) -> numpy.ndarray:
        """SciPy's results, one for each index of the leading axes."""
        import scipy.ndimage

        function: Any = getattr(scipy.ndimage, self.name)
        found = numpy.empty(self.shape(masks[0].shape), self.dtype)
        for position in numpy.ndindex(masks[0].shape[: masks[0].ndim - self.rank]):
            given = [numpy.array(mask[position]) for mask in masks]
            made = function(given[0], **({"mask": given[1]} if given[1:] else {}), **self.options)
            found[position] = made[0] if self.name == "label" else made
        return found


def _plain(value: Any) -> Any:
    return value.asnumpy() if isinstance(value, Tensor) else value


def _key(value: Any) -> Hashable:
    if isinstance(value, list | tuple | numpy.ndarray):
        array = numpy.asarray(value)
        return array.shape, array.dtype.str, array.tobytes()
    return value


_MASKS = HostFunction(
    "ndimage", lambda inputs, params: (params[0].shape(inputs[0].shape), params[0].dtype),
    lambda *given: given[-1].run(*given[:-1]),
)  # fmt: skip


def _found(name: str, image: Any, dtype: Any, options: dict[str, Any], mask: Any = None, further: bool = False) -> Any:
    masks = [as_node(np.asarray(one) != 0) for one in (image, *([] if mask is None else [mask]))]
    rank = masks[0].ndim
    if masks[-1].shape != masks[0].shape or rank == 0:
        message = (
            f"{name} needs an image with axes, and a mask of its shape, but the shapes are {[m.shape for m in masks]}."
        )
        raise ShapeError(message)
    operation = Operation(name, rank, dtype, options, rank if further else 0)
    return wrap(make("stop_gradient", (host(_MASKS, tuple(masks), operation),)))


def _transform(
    name: str, image: Any, dtype: Any, options: dict[str, Any], return_distances: bool, return_indices: bool
) -> Any:
    found: list[Any] = []
    if return_distances:
        found.append(_found(name, image, dtype, options))
    if return_indices:
        asked = {**options, "return_distances": False, "return_indices": True}
        found.append(_found(name, image, numpy.int32, asked, further=True))
    if not found:
        message = f"{name} gives distances, indices or both: ask for one of them."
        raise ArgumentError(message)
    return found[0] if len(found) == 1 else tuple(found)


def distance_transform_edt(
    input: Any, sampling: Any = None, return_distances: bool = True, return_indices: bool = False
) -> Any:
    """The distance of each element to the nearest one that is 0, and where that is."""
    return _transform("distance_transform_edt", input, float, {"sampling": sampling}, return_distances, return_indices)


def distance_transform_cdt(
    input: Any, metric: Any = "chessboard", return_distances: bool = True, return_indices: bool = False
) -> Any:
    """The distance in steps of each element to the nearest one that is 0, and where that is."""
    return _transform(
        "distance_transform_cdt", input, numpy.int32, {"metric": metric}, return_distances, return_indices
    )


def distance_transform_bf(
    input: Any, metric: str = "euclidean", sampling: Any = None, return_distances: bool = True,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """The distance by a metric of each element to the nearest one that is 0, and where that is."""
    dtype = float if metric == "euclidean" else numpy.uint32
    options = {"metric": metric, "sampling": sampling}
    return _transform("distance_transform_bf", input, dtype, options, return_distances, return_indices)


def _morphology(name: str) -> Any:
    def function(
        input: Any, structure: Any = None, iterations: int = 1, mask: Any = None, border_value: int = 0,
        origin: Any = 0, brute_force: bool = False, axes: Any = None,
    ) -> Any:  # fmt: skip
        options = {
            "structure": structure,
            "iterations": iterations,
            "border_value": border_value,
            "origin": origin,
            "brute_force": brute_force,
            "axes": axes,
        }
        return _found(name, input, bool, options, mask)

    function.__name__ = name
    function.__doc__ = f"The mask that `scipy.ndimage.{name}` makes of a mask."
    return function


binary_erosion = _morphology("binary_erosion")
binary_dilation = _morphology("binary_dilation")
binary_opening = _morphology("binary_opening")
binary_closing = _morphology("binary_closing")


def binary_propagation(
    input: Any, structure: Any = None, mask: Any = None, border_value: int = 0, origin: Any = 0, axes: Any = None
) -> Any:
    """A mask that has grown as far as another one lets it."""
    options = {"structure": structure, "border_value": border_value, "origin": origin, "axes": axes}
    return _found("binary_propagation", input, bool, options, mask)


def binary_fill_holes(input: Any, structure: Any = None, origin: Any = 0, axes: Any = None) -> Any:
    """A mask without holes."""
    return _found("binary_fill_holes", input, bool, {"structure": structure, "origin": origin, "axes": axes})


def binary_hit_or_miss(
    input: Any, structure1: Any = None, structure2: Any = None, origin1: Any = 0, origin2: Any = None, axes: Any = None
) -> Any:
    """Where a pattern is in a mask."""
    options = {"structure1": structure1, "structure2": structure2, "origin1": origin1, "origin2": origin2, "axes": axes}
    return _found("binary_hit_or_miss", input, bool, options)


def label(input: Any, structure: Any = None) -> Any:
    """The number of the connected part to which each element belongs, and how many there are."""
    found = _found("label", input, numpy.int32, {"structure": structure})
    return found, np.max(found, initial=0)
