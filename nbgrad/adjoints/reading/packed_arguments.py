"""Arguments of kernels that are more than one array or number: tuples, named tuples, complex arrays and numbers.

In: an argument of a kernel. Out: its leaves, arrays and numbers that are real, by names of their own; and the argument
again, made of its leaves. Called by kernel.py, scalar_form.py and specializations.py. The leaf of a complex array is an
array of floats with one more axis of two, which are the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...graph.complex_numbers import pair
from ...record.as_node import as_node, wrap
from ...record.tensor import Tensor


def is_packed(value: Any) -> bool:
    """Whether an argument is a tuple of arrays or numbers; tuples of nothing else are static."""
    return isinstance(value, tuple) and any(
        is_packed(one) or not (one is None or isinstance(one, str | type | np.dtype | tuple)) for one in value
    )


def part_names(name: str, value: tuple[Any, ...]) -> list[str]:
    """The names of the parts of a tuple: with the fields of a named tuple, or with numbers."""
    fields = getattr(value, "_fields", range(len(value)))
    return [f"{name}_{field}" for field in fields]


def leaves_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of an argument with their names; complex ones are still complex."""
    if is_packed(value):
        for inner, one in zip(part_names(name, value), value, strict=True):
            yield from leaves_of(inner, one)
    else:
        yield name, value


def rebuilt(name: str, example: Any, leaves: dict[str, Any]) -> Any:
    """An argument like an example, made of its leaves; what is no leaf is that of the example."""
    if is_packed(example):
        parts = [rebuilt(inner, one, leaves) for inner, one in zip(part_names(name, example), example, strict=True)]
        return type(example)(*parts) if hasattr(example, "_fields") else tuple(parts)
    if name not in leaves:
        return example
    if not is_complex(example):
        return leaves[name]
    found = joined(leaves[name])
    return found if isinstance(example, np.ndarray) else found[()]


def is_complex(value: Any) -> bool:
    """Whether a value is a complex array or number."""
    dtype = value.dtype if isinstance(value, Tensor | np.ndarray | np.generic) else np.asarray(value).dtype
    return dtype.kind == "c"


def taken_apart(value: Any) -> Any:
    """A complex array or number as an array of its parts, along the last axis."""
    if isinstance(value, Tensor):
        return np.stack((value.real, value.imag), axis=-1)
    array = np.ascontiguousarray(value)
    part = np.dtype(np.float32 if array.dtype == np.complex64 else np.float64)
    return array.view(part).reshape((*np.shape(value), 2))


def joined(parts: Any) -> Any:
    """The complex array or number of some parts; an ndarray is a view, so that what is written to it is kept."""
    if isinstance(parts, Tensor):
        return wrap(pair(as_node(parts[..., 0]), as_node(parts[..., 1])))
    array = np.ascontiguousarray(parts)
    return array.view(np.result_type(array.dtype, np.complex64))[..., 0]
