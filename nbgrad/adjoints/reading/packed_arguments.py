"""Arguments of kernels that are more than one array or number: tuples, structured arrays, complex arrays and numbers.

In: an argument of a kernel. Out: its leaves, arrays and numbers that are real, by names of their own; and the argument
again, made of its leaves. Called by kernel.py, scalar_form.py and specializations.py. The leaf of a complex array is an
array of floats with one more axis of two, which are the same bytes. A structured array may be given as a dict of its
fields, which can be Tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...graph.complex_numbers import pair
from ...record.as_node import as_node, wrap
from ...record.tensor import Tensor

_NUMBERS = "biufc"


def is_packed(value: Any) -> bool:
    """Whether an argument is a tuple of arrays or numbers, or structured; tuples of nothing else are static."""
    if is_records(value):
        return True
    return isinstance(value, tuple) and any(
        is_packed(one) or not (one is None or isinstance(one, str | type | np.dtype | tuple)) for one in value
    )


def is_records(value: Any) -> bool:
    """Whether an argument is a structured array, a record of one, or a dict of fields."""
    if isinstance(value, dict):
        return all(isinstance(name, str) for name in value)
    return isinstance(value, np.ndarray | np.void) and value.dtype.names is not None


def records_example(name: str, value: Any) -> Any:
    """A small structured array, or a record, like an argument.

    Raises
    ------
    ArgumentError
        If the fields of a dict have no common shape.
    """
    if not isinstance(value, dict):
        return np.zeros((1,) * value.ndim, value.dtype)[() if value.ndim == 0 else ...]
    fields, shapes = [], []
    for field, given in value.items():
        shapes.append(_shape(given))
        if is_records(given):
            fields.append((field, records_example(f"{name}_{field}", given).dtype))
        else:
            fields.append((field, as_node(given).dtype if isinstance(given, Tensor) else np.asarray(given).dtype))
    shape = min(shapes, key=len, default=())
    if not fields or any(one[: len(shape)] != shape for one in shapes):
        shown = ", ".join(f"{field} {one}" for (field, _), one in zip(fields, shapes, strict=True)) or "none"
        message = f"A dict stands for a structured array, but the fields of `{name}` have no common shape: {shown}."
        raise ArgumentError(message)
    whole = [(*field, one[len(shape) :]) for field, one in zip(fields, shapes, strict=True)]
    return np.zeros((1,) * len(shape), np.dtype(whole))[() if not shape else ...]


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of an array, and of a dict of fields the axes that they have in common."""
    return min(map(_shape, value.values()), key=len, default=()) if isinstance(value, dict) else np.shape(value)


def parts_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a packed argument with their names: fields, or numbers for those of a tuple."""
    if isinstance(value, dict):
        fields, parts = value.keys(), value.values()
    elif isinstance(value, tuple):
        fields, parts = getattr(value, "_fields", range(len(value))), value
    else:
        fields, parts = value.dtype.names, [value[field] for field in value.dtype.names]
    for field, part in zip(fields, parts, strict=True):
        yield f"{name}_{field}", part


def leaves_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of an argument with their names; complex ones are still complex. Texts in records are no leaves."""
    if is_packed(value):
        for inner, one in parts_of(name, value):
            if not (is_text(one) and is_records(value)):
                yield from leaves_of(inner, one)
    else:
        yield name, value


def is_text(value: Any) -> bool:
    """Whether an array, or an element of one, is of something else than numbers and records."""
    is_array = isinstance(value, np.ndarray | np.generic)
    return is_array and value.dtype.names is None and value.dtype.kind not in _NUMBERS


def rebuilt(name: str, example: Any, leaves: dict[str, Any]) -> Any:
    """An argument like an example, made of its leaves; what is no leaf is that of the example."""
    if is_records(example):
        first = next(one for one, _ in leaves_of(name, example))
        array = np.zeros(np.shape(leaves[first])[: example.ndim], example.dtype)
        _fill(name, array, leaves)
        return array if example.ndim else array[()]
    if is_packed(example):
        parts = [rebuilt(inner, one, leaves) for inner, one in parts_of(name, example)]
        return type(example)(*parts) if hasattr(example, "_fields") else tuple(parts)
    if name not in leaves:
        return example
    if not is_complex(example):
        return leaves[name]
    found = joined(leaves[name])
    return found if isinstance(example, np.ndarray) else found[()]


def _fill(name: str, array: np.ndarray, leaves: dict[str, Any]) -> None:
    """Write leaves to the fields of a structured array."""
    for (inner, part), field in zip(parts_of(name, array), array.dtype.names or (), strict=True):
        if is_records(part):
            _fill(inner, part, leaves)
        elif inner in leaves:
            array[field] = joined(leaves[inner]) if is_complex(part) else leaves[inner]


def read_back(name: str, given: Any, leaves: dict[str, Any], written: list[str]) -> None:
    """Copy what a kernel has written to structured arrays to their leaves; other arguments share their memory."""
    if is_packed(given):
        for inner, one in parts_of(name, given):
            if isinstance(given, tuple) or is_records(one):
                read_back(inner, one, leaves, written)
            elif inner in written:
                leaves[inner][...] = taken_apart(one) if is_complex(one) else one


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
