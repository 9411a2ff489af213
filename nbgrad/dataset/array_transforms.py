"""MindSpore's `dataset.transforms`: functions of the columns of a row.

In: ndarrays. Out: ndarrays. Called by users and, for every row, by `Dataset.map`, which gives random transforms numbers
that follow from the dataset's seed.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..nn.layer_arguments import part, positive
from .row_values import as_array

__all__ = [
    "Compose",
    "Duplicate",
    "Fill",
    "OneHot",
    "PadEnd",
    "RandomApply",
    "RandomChoice",
    "RandomOrder",
    "Transform",
    "TypeCast",
]


class Transform:
    """A function of one or more columns."""

    def __call__(self, *values: Any) -> Any:
        """The columns, transformed."""
        raise NotImplementedError


class Implementation(enum.Enum):
    """MindSpore's ways to compute a transform; here there is one."""

    C, PY = 1, 2


class PyTensorOperation(Transform):
    """The base of users' own transforms, which define `execute_py`."""

    implementation = Implementation.PY

    def __call__(self, *values: Any) -> Any:
        """The columns, transformed by `execute_py`."""
        return self.execute_py(*values)

    def execute_py(self, *values: Any) -> Any:
        """The columns, transformed."""
        raise NotImplementedError


class RandomTransform(Transform):
    """A function of columns and of random numbers."""

    def __call__(self, *values: Any) -> Any:
        """The columns, transformed by other random numbers each time."""
        return self._with_random(np.random.default_rng(), *values)

    def _with_random(self, random: np.random.Generator, *values: Any) -> Any:
        """The columns, transformed by these random numbers."""
        raise NotImplementedError


def _applied(transform: Any, random: np.random.Generator, values: tuple[Any, ...]) -> tuple[Any, ...]:
    draw = getattr(transform, "_with_random", None)
    found = transform(*values) if draw is None else draw(random, *values)
    return found if isinstance(found, tuple) else (found,)


class _OfSeveral(RandomTransform):
    """A transform made of others."""

    def __init__(self, transforms: Sequence[Any]) -> None:
        if not isinstance(transforms, tuple | list) or not transforms or not all(map(callable, transforms)):
            message = f"transforms must be a list of functions, but got {transforms!r:.80}."
            raise DtypeError(message)
        self._transforms = list(transforms)

    def _chosen(self, random: np.random.Generator) -> list[Any]:
        """The transforms to apply, in their order."""
        return self._transforms

    def _with_random(self, random: np.random.Generator, *values: Any) -> Any:
        for transform in self._chosen(random):
            values = _applied(transform, random, values)
        return values[0] if len(values) == 1 else values


class Compose(_OfSeveral):
    """Transforms one after the other.

    Parameters
    ----------
    transforms : list of callable

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad.dataset import transforms
    >>> transforms.Compose([transforms.TypeCast(np.int32), lambda x: x + 1])(np.array([1.5]))
    array([2], dtype=int32)
    """


class RandomApply(_OfSeveral):
    """Transforms one after the other, or none of them.

    Parameters
    ----------
    transforms : list of callable
    prob : float
        The probability that they are applied.
    """

    def __init__(self, transforms: Sequence[Any], prob: float = 0.5) -> None:
        super().__init__(transforms)
        self._prob = part(prob, "prob")

    def _chosen(self, random: np.random.Generator) -> list[Any]:
        return self._transforms if random.random() < self._prob else []


class RandomChoice(_OfSeveral):
    """One of several transforms."""

    def _chosen(self, random: np.random.Generator) -> list[Any]:
        return [self._transforms[int(random.integers(len(self._transforms)))]]


class RandomOrder(_OfSeveral):
    """Transforms in random order."""

    def _chosen(self, random: np.random.Generator) -> list[Any]:
        return [self._transforms[place] for place in random.permutation(len(self._transforms))]


class TypeCast(Transform):
    """A column in another dtype.

    Parameters
    ----------
    output_type : dtype
    """

    def __init__(self, output_type: Any) -> None:
        self._dtype = np.dtype(output_type)

    def __call__(self, *values: Any) -> np.ndarray:
        """The array in this dtype."""
        return as_array(*values).astype(self._dtype)


class OneHot(Transform):
    """Numbers of classes as rows of zeros with a one; a single number, also of shape (1,), gives one row.

    Parameters
    ----------
    num_classes : int
    smoothing_rate : float
        How much of the one goes to all classes in equal parts.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad.dataset import transforms
    >>> transforms.OneHot(3)(np.array(1)), transforms.OneHot(2, 0.5)(np.array([0]))
    (array([0, 1, 0]), array([0.75, 0.25]))
    """

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0) -> None:
        self._count = positive(num_classes, "num_classes")
        self._smoothing = part(smoothing_rate, "smoothing_rate")

    def __call__(self, *values: Any) -> np.ndarray:
        """The rows, of the dtype of the label; of float64, if smoothed."""
        numbers = as_array(*values)
        if numbers.dtype.kind not in "iu":
            message = f"OneHot takes integers, but got {numbers.dtype}."
            raise DtypeError(message)
        if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < self._count:
            message = f"OneHot has {self._count} classes, but got the labels {numbers.min()} to {numbers.max()}."
            raise ArgumentError(message)
        rows = np.eye(self._count, dtype=numbers.dtype)[numbers.astype(np.int64)]
        if numbers.shape == (1,):
            rows = rows[0]
        if not self._smoothing:
            return rows
        return rows * (1.0 - self._smoothing) + self._smoothing / self._count


class PadEnd(Transform):
    """A column cut, or continued, to a shape.

    Parameters
    ----------
    pad_shape : list of int or None
        None keeps an extent.
    pad_value : number or str, optional
        0 by default, or "".
    """

    def __init__(self, pad_shape: Sequence[int | None], pad_value: Any = None) -> None:
        self._shape, self._value = list(pad_shape), pad_value

    def __call__(self, *values: Any) -> np.ndarray:
        """The array of this shape."""
        array = as_array(*values)
        if array.ndim != len(self._shape):
            message = f"pad_shape has {len(self._shape)} axes, but the array has the shape {array.shape}."
            raise ShapeError(message)
        wanted = [have if n is None else n for have, n in zip(array.shape, self._shape, strict=True)]
        result = np.full(wanted, ("" if array.dtype.kind == "U" else 0) if self._value is None else self._value)
        result = result.astype(array.dtype if array.dtype.kind != "U" else np.result_type(result, array))
        common = tuple([slice(min(n, m)) for n, m in zip(wanted, array.shape, strict=True)])
        result[common] = array[common]
        return result


class Fill(Transform):
    """An array of one number in the shape of a column."""

    def __init__(self, fill_value: Any) -> None:
        self._value = fill_value

    def __call__(self, *values: Any) -> np.ndarray:
        """The array."""
        return np.full_like(as_array(*values), self._value)


class Duplicate(Transform):
    """A column twice."""

    def __call__(self, *values: Any) -> tuple[np.ndarray, np.ndarray]:
        """The array and a copy."""
        array = as_array(*values)
        return array, array.copy()
