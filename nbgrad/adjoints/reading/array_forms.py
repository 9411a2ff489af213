"""Functions that give arrays in other forms without computing anything: axes, parts, broadcast shapes, choices.

In: calls in a kernel's text. Out: values of array_values.py. Called by array_functions.py, whose class stands upon this
one.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..kernel_statements import Atom
from .array_gathers import ArrayGathers
from .array_values import Array, Either, Elementwise, Object, Stored, Value, View, arrays_of

Reader = Callable[[Any, ast.Call, list[Value]], Value]


class ArrayForms(ArrayGathers):
    """The part of a reader that knows other forms of arrays."""

    @abstractmethod
    def where(self, call: ast.AST, operands: Sequence[Value]) -> Any:
        """One of two numbers or arrays, element by element."""

    def form_call(self, call: ast.Call, function: Any) -> tuple[Value | None, bool]:
        """The value of a call of one of these functions, and whether it is one."""
        reader = _FORMS.get(function)
        if reader is None:
            return None, False
        return reader(self, call, [self.value(one) for one in call.args]), True

    def literal_of(self, call: ast.AST, value: Value, what: str) -> int:
        """The integer that a literal of the kernel is."""
        if isinstance(value, str) and value.lstrip("-").isdigit():
            return int(value)
        return self.refuse(call, f"gives {what} that is no literal. Write the number into the kernel.")

    def array_of(self, call: ast.AST, value: Value) -> Array:
        """An array, or the numbers of a tuple as one."""
        if isinstance(value, list):
            value = self.gathered(call, value)
        return value if isinstance(value, Array) else self.refuse(call, "needs an array here. Pass one.")

    # ----- Broadcast shapes and choices -----

    def as_shape(self, value: Array, extents: Sequence[Atom]) -> Elementwise:
        """An array whose axes of length one are repeated."""
        return Elementwise(
            tuple(extents), value.dtype, lambda at: self.item(value, at, tuple(extents)), arrays_of(value)
        )

    def broadcast_to(self, call: ast.Call, given: list[Value]) -> Value:
        """np.broadcast_to."""
        shape = [str(one) for one in given[1]] if isinstance(given[1], list) else [str(given[1])]
        if isinstance(given[0], str):
            dtype, number = self.form.dtypes.get(given[0], "float64"), given[0]
            return Elementwise(tuple(shape), dtype, lambda at: number, frozenset())
        return self.as_shape(self.array_of(call, given[0]), shape)

    def broadcast_arrays(self, call: ast.Call, given: list[Value]) -> Value:
        """np.broadcast_arrays."""
        arrays = [self.array_of(call, one) for one in given]
        extents = self.common(arrays)
        return [self.as_shape(one, extents) for one in arrays]

    def broadcast_shapes(self, call: ast.Call, given: list[Value]) -> Value:
        """np.broadcast_shapes."""
        shapes = [tuple(map(str, one)) if isinstance(one, list) else (str(one),) for one in given]
        return list(self.common([Elementwise(one, "float64", lambda at: "0.0", frozenset()) for one in shapes]))

    def indices(self, call: ast.Call, given: list[Value]) -> Value:
        """np.indices: the positions along each axis, one array after the other."""
        if not isinstance(given[0], list):
            return self.refuse(call, "calls indices() without a tuple of lengths.")
        shape = [str(one) for one in given[0]]
        made = self.local(self.frame.prefix + "positions", [str(len(shape)), *shape], "int64", "")
        for axis in range(len(shape)):
            place = self.part(made, [str(axis)])
            assert isinstance(place, View)
            along = Elementwise(tuple(shape), "int64", lambda at, axis=axis: at[axis], frozenset())
            self.store_into(call, place, along, "")
        return made

    def select(self, call: ast.Call, given: list[Value]) -> Value:
        """np.select: the first choice whose condition is true, or the default."""
        options = {str(one.arg): self.value(one.value) for one in call.keywords}
        conditions, choices = given[0], given[1]
        found = given[2] if len(given) > 2 else options.get("default", "0")
        if not isinstance(conditions, list) or not isinstance(choices, list) or len(conditions) != len(choices):
            return self.refuse(call, "calls select() without two lists of the same length.")
        for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
            found = self.where(call, [condition, choice, found])
        return found

    # ----- Axes -----

    def turned(self, value: Array, order: Sequence[int]) -> Stored:
        """An array with its axes in another order."""
        match value:
            case View():
                return value.transposed(order)
            case Elementwise():
                return self.materialized(value, "t").transposed(order)
            case Either(test, sides):
                one, other = [self.turned(side, order) for side in sides]
                assert isinstance(one, View | Either)
                return Either(test, (one, other), tuple([value.extents[axis] for axis in order]))

    def transposed_by(self, call: ast.Call, given: list[Value]) -> Value:
        """np.transpose, with an order of the axes or without."""
        array = self.array_of(call, given[0])
        axes = given[1:] if len(given) != 2 or not isinstance(given[1], list) else given[1]
        axes = [one for one in axes if not (isinstance(one, Object) and one.value is None)]
        order = [self.literal_of(call, one, "an axis") % array.ndim for one in axes] or list(range(array.ndim))[::-1]
        return self.turned(array, order)

    def exchanged(self, call: ast.Call, given: list[Value]) -> Value:
        """np.swapaxes."""
        array = self.array_of(call, given[0])
        first, second = [self.literal_of(call, one, "an axis") % array.ndim for one in given[1:]]
        order = list(range(array.ndim))
        order[first], order[second] = second, first
        return self.turned(array, order)

    def moved(self, call: ast.Call, given: list[Value]) -> Value:
        """np.moveaxis."""
        array = self.array_of(call, given[0])
        pairs = [one if isinstance(one, list) else [one] for one in given[1:]]
        sources, targets = [[self.literal_of(call, axis, "an axis") % array.ndim for axis in one] for one in pairs]
        order = [axis for axis in range(array.ndim) if axis not in sources]
        for target, source in sorted(zip(targets, sources, strict=True)):
            order.insert(target, source)
        return self.turned(array, order)

    def widened(self, call: ast.Call, given: list[Value]) -> Value:
        """np.expand_dims."""
        array = self.array_of(call, given[0])
        axis = self.literal_of(call, given[1], "an axis") % (array.ndim + 1)
        return self.with_axis(array, axis)

    def with_axis(self, array: Array, axis: int) -> Value:
        """An array with one more axis."""
        stored = self.materialized(array, "wide") if isinstance(array, Elementwise) else array
        found = self.part(stored, [*[("", "", 1)] * axis, None])
        assert isinstance(found, View | Either)
        return found

    def at_least(self, count: int, call: ast.Call, given: list[Value]) -> Value:
        """np.atleast_1d, atleast_2d and atleast_3d."""
        if len(given) != 1:
            return self.refuse(call, "calls atleast_1d() or the like with several arrays. Call it for each.")
        value = self.gathered(call, [given[0]]) if isinstance(given[0], str) else self.array_of(call, given[0])
        while value.ndim < count:
            found = self.with_axis(value, value.ndim if value.ndim == 2 else 0)
            assert isinstance(found, View | Either)
            value = found
        return value

    # ----- Parts -----

    def parts_along(self, axis: int | None, uneven: bool, call: ast.Call, given: list[Value]) -> Value:
        """np.split and its like: views of an array, one after the other along an axis."""
        options = {str(one.arg): self.value(one.value) for one in call.keywords}
        array = self.array_of(call, given[0])
        array = self.materialized(array, "whole") if isinstance(array, Elementwise) else array
        if axis is None:
            axis = self.literal_of(call, given[2] if len(given) > 2 else options.get("axis", "0"), "an axis")
        axis = min(axis, array.ndim - 1) % array.ndim
        extent = array.extents[axis]
        bounds: list[Atom] = ["0"]
        if isinstance(given[1], list):
            bounds += [str(one) for one in given[1]]
        else:
            count = self.literal_of(call, given[1], "a number of parts")
            width = self.integer(f"{{0}} // {count}", extent)
            more = self.integer(f"{{0}} % {count}", extent) if uneven else "0"
            for k in range(1, count):
                start = self.integer(f"{{0}} * {k}", width)
                bounds.append(self.integer(f"{{0}} + min({k}, {{1}})", start, more) if uneven else start)
        cuts = [(start, stop, 1) for start, stop in zip(bounds, [*bounds[1:], extent], strict=True)]
        found: list[Value] = []
        for cut in cuts:
            part = self.part(array, [*[("", "", 1)] * axis, cut])
            assert isinstance(part, View | Either)
            found.append(part)
        return found

    def facts_of(self, call: ast.Call, given: list[Value]) -> Value:
        """np.finfo and np.iinfo."""
        found = given[0].value if isinstance(given[0], Object) else str(given[0])
        kind = np.finfo if "float" in str(np.dtype(found)) else np.iinfo  # type: ignore[call-overload]
        return Object(kind(np.dtype(found)))  # type: ignore[call-overload]


_FORMS: dict[Any, Reader] = {
    np.broadcast_to: ArrayForms.broadcast_to,
    np.broadcast_arrays: ArrayForms.broadcast_arrays,
    np.broadcast_shapes: ArrayForms.broadcast_shapes,
    np.indices: ArrayForms.indices,
    np.select: ArrayForms.select,
    np.transpose: ArrayForms.transposed_by,
    np.swapaxes: ArrayForms.exchanged,
    np.moveaxis: ArrayForms.moved,
    np.expand_dims: ArrayForms.widened,
    np.atleast_1d: lambda reader, call, given: reader.at_least(1, call, given),
    np.atleast_2d: lambda reader, call, given: reader.at_least(2, call, given),
    np.atleast_3d: lambda reader, call, given: reader.at_least(3, call, given),
    np.split: lambda reader, call, given: reader.parts_along(None, False, call, given),
    np.array_split: lambda reader, call, given: reader.parts_along(None, True, call, given),
    np.vsplit: lambda reader, call, given: reader.parts_along(0, False, call, given),
    np.hsplit: lambda reader, call, given: reader.parts_along(1, False, call, given),
    np.dsplit: lambda reader, call, given: reader.parts_along(2, False, call, given),
    np.finfo: ArrayForms.facts_of,
    np.iinfo: ArrayForms.facts_of,
}
"""The readers of these functions."""
