"""The shapes and dtypes of a function's results, without computing any.

In: a function of arrays, and the shapes and dtypes of its arguments. Out: those of its results. Called by
pytensor_functions.py, jax_operations.py,
foreign_derivatives.py and torch_operators.py, whose graphs have types before they have values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import DtypeError, ShapeError
from ..graph.ir import placeholder
from ..graph.trace import recording
from ..record.tensor import Tensor
from ..transforms.arguments import name_of

ResultType = tuple[tuple[int | None, ...], np.dtype[Any]]


def result_types(
    fn: Callable[..., Any], arguments: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]
) -> tuple[list[ResultType], bool]:
    """The shape and the dtype of each result, and whether they came as a tuple.

    Raises
    ------
    DtypeError
        If the function returns anything but arrays and numbers.
    """
    nodes = [placeholder(shape, dtype, sample_of(shape, dtype)) for shape, dtype in arguments]
    with recording(nodes):
        found = fn(*map(Tensor._of, nodes))
    is_tuple = isinstance(found, tuple)
    types: list[ResultType] = []
    for one in found if is_tuple else (found,):
        if not isinstance(one, Tensor | np.ndarray | np.generic | int | float | complex):
            message = f"{name_of(fn)}() must return an array or a tuple of arrays, but returned {type(one).__name__}."
            raise DtypeError(message)
        types.append((tuple(np.shape(one)), np.dtype(getattr(one, "dtype", type(one)))))
    return types, is_tuple


def sample_of(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """An array in the domain of most functions, for those that look at values: zeros are indices of any array, ones
    have logarithms and roots, and square matrices are positive definite."""
    if dtype.kind not in "fc":
        return np.zeros(shape, dtype)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        return np.broadcast_to(0.5 + np.eye(shape[-1]), shape).astype(dtype)
    return np.ones(shape, dtype)


def write_results(title: str, targets: Sequence[np.ndarray], found: Sequence[Any]) -> None:
    """Write a function's results where they are wanted.

    Raises
    ------
    ShapeError
        If they are others than those that it gave when its shapes were found.
    """
    if len(found) != len(targets):
        message = f"{title}() has returned {len(found)} arrays, but {len(targets)} when its shapes were found."
        raise ShapeError(message)
    for target, value in zip(targets, found, strict=True):
        array = np.asarray(value)
        if array.shape != target.shape or not np.can_cast(array.dtype, target.dtype, "same_kind"):
            message = (
                f"{title}() has returned {array.dtype} of shape {array.shape}, but {target.dtype} of shape "
                f"{target.shape} when its shapes were found: neither may depend on values."
            )
            raise ShapeError(message)
        target[...] = array
