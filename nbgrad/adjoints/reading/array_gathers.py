"""Arrays made of other arrays: elements by masks and index arrays, joined arrays, arrays of another dtype.

In: pieces of a kernel's text and the arrays in it. Out: statements on elements, and values of array_values.py. Called
by array_forms.py, whose class stands upon this one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from ..kernel_statements import Atom, Expression, If, Op, Set, copied
from .array_values import Array, Complex, Elementwise, Scalar, Stored, Value, View, arrays_of
from .complex_pairs import PARTS
from .record_parts import RecordParts


class ArrayGathers(RecordParts):
    """The part of a reader that knows arrays made of other arrays."""

    # ----- Masks and index arrays -----

    def picked(self, node: ast.AST, base: Stored, index: Array) -> Value:
        """The elements of an array where a mask is true, or at the positions in an index array."""
        if index.dtype == "bool":
            return self.masked(node, base, index)
        if not index.dtype.startswith(("int", "uint")):
            return self.refuse(node, f"takes elements by an array of {index.dtype}.")
        index = self.materialized(index, "places") if isinstance(index, Elementwise) else index

        def element(at: Sequence[Atom]) -> Expression | Scalar:
            k = str(self.number_at(index, at[: index.ndim]))
            position = self.integer("{0} if {0} >= 0 else {0} + {1}", k, base.extents[0])
            return self.element(base, [position, *at[index.ndim :]])

        extents = (*index.extents, *base.extents[1:])
        return self.materialized(Elementwise(extents, base.dtype, element, arrays_of(base)), "picked")

    def masked(self, node: ast.AST, base: Stored, mask: Array) -> View:
        """The elements of an array where a mask is true, one after the other."""
        made = self.local("picked", [self.size(base)], base.dtype, "")

        def pick(at: list[Atom], count: Atom) -> None:
            self.store_element(made, [count], self.number_at(base, at))

        count = self.where_true(node, base, mask, pick)
        return View(made.array, made.places, (count,), made.dtype)

    def store_picked(self, node: ast.AST, base: Stored, index: Array, value: Value, op: str) -> None:
        """Write to the elements of an array where a mask is true, or at the positions in an index array."""
        if isinstance(value, Elementwise) or (isinstance(value, Stored) and arrays_of(value) & arrays_of(base)):
            value = self.materialized(value, "before")
        if index.dtype == "bool":

            def write(at: list[Atom], count: Atom) -> None:
                given = self.number_at(value, [count]) if isinstance(value, Stored) and value.ndim else value
                self.store_at(node, base, at, given, op)

            self.where_true(node, base, index, write)
            return
        if not index.dtype.startswith(("int", "uint")) or index.ndim != 1 or base.ndim != 1 or op:
            self.refuse(node, "writes to elements by an array of positions, otherwise than by `=`. Write a loop.")

        def each(at: list[Atom]) -> None:
            k = str(self.number_at(index, at))
            position = self.integer("{0} if {0} >= 0 else {0} + {1}", k, base.extents[0])
            given = self.item(value, at, index.extents)
            self.store_at(node, base, [position], given, op)

        self.each(index.extents, each)

    def where_true(self, node: ast.AST, base: Stored, mask: Array, action: Callable[[list[Atom], Atom], None]) -> Atom:
        """Add an action for each element of an array where a mask is true; gives how many these are."""
        if mask.ndim != base.ndim:
            return self.refuse(node, "takes elements by a mask of fewer axes than the array has. Write a loop.")
        count = self.put(copied("0"), "int64", "picked")

        def body(at: list[Atom]) -> None:
            test = str(self.number_at(mask, at))
            inner, _ = self.in_block(lambda: action(at, count) or [])
            self.out.append(If(test, (*inner, Set(count, Op("", (count,), "{0} + 1"))), ()))

        self.each(mask.extents, body)
        return self.put(copied(count), "int64", "n")

    # ----- Joined arrays and dtypes -----

    def cast(self, value: Array, dtype: str) -> Elementwise:
        """An array in another dtype."""
        floats = dtype.startswith("float") and value.dtype.startswith("float")
        shown = "np.bool_" if dtype == "bool" else f"np.{dtype}"

        def element(at: Sequence[Atom]) -> Expression | Complex:
            one = self.number_at(value, at)
            if dtype in PARTS or isinstance(one, Complex):
                return self.as_complex(one)
            return copied(one) if dtype == value.dtype else Op("alias" if floats else "", (one,), f"{shown}({{0}})")

        return Elementwise(value.extents, dtype, element, arrays_of(value))

    def concatenated(self, node: ast.AST, parts: Sequence[Value], axis: int, name: str) -> View:
        """Arrays one after the other along an axis."""
        arrays = [one for one in parts if isinstance(one, Array)]
        if len(arrays) < len(parts) or not arrays or not -arrays[0].ndim <= axis < arrays[0].ndim:
            return self.refuse(node, "joins something that is no array, or along an axis that is none.")
        axis %= arrays[0].ndim
        total = arrays[0].extents[axis]
        for one in arrays[1:]:
            total = self.integer("{0} + {1}", total, one.extents[axis])
        shape = [total if k == axis else extent for k, extent in enumerate(arrays[0].extents)]
        floats = sorted([one.dtype for one in arrays if one.dtype.startswith(("float", "complex"))], key=_by_width)
        made = self.local(name, shape, floats[-1] if floats else arrays[0].dtype, "")
        start = "0"
        for one in arrays:
            stop = self.integer("{0} + {1}", start, one.extents[axis])
            place = self.part(made, [(start, stop, 1) if k == axis else ("", "", 1) for k in range(made.ndim)])
            assert isinstance(place, View)
            self.store_into(node, place, one, "")
            start = stop
        return made

    def store_element(self, made: View, at: Sequence[Atom], value: Scalar, op: str = "") -> None:
        """Write to an element of a local array."""
        self.store_at(self.frame.plain.code.definition, made, list(at), value, op)


def _by_width(dtype: str) -> tuple[bool, str]:
    """A key by which dtypes are sorted: complex ones come last."""
    return dtype in PARTS, dtype
