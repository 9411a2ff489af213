"""Writing to arrays in kernels, to elements and to parts of them, and arrays of the numbers of a tuple.

In: pieces of a kernel's text and the arrays in it. Out: statements on elements. Called by record_parts.py, whose class
stands upon this one.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from ...config import interpret
from ..kernel_statements import Atom, Load, Op, Set, Store, walk
from .array_parts import ArrayParts
from .array_values import Array, Complex, Either, Elementwise, Object, Scalar, Stored, Value, View, arrays_of, load
from .complex_pairs import PARTS
from .kernel_form import literal_dtype
from .known_functions import OPERATORS


class ArrayWrites(ArrayParts):
    """The part of a reader that knows writing to arrays."""

    @abstractmethod
    def store_picked(self, node: ast.AST, base: Stored, index: Array, value: Value, op: str) -> None:
        """Write to the elements of an array by a mask or an index array."""

    def store(self, target: ast.Subscript, value: Value, op: str) -> None:
        """Write to an element or a part of an array; `op` is that of an assignment such as `+=`."""
        base = self.value(target.value)
        if not isinstance(base, Stored):
            self.refuse(target, "writes to something that is no array.")
            return
        parts = self.parts_of(target, base.ndim)
        if parts and isinstance(parts[0], Array):
            self.store_picked(target, base, parts[0], value, op)
            return
        self.store_at(target, base, parts, value, op)

    def store_at(self, target: ast.AST, base: Stored, parts: Sequence[Any], value: Value, op: str) -> None:
        """Write to a part of an array."""
        if isinstance(base, Either):
            self.each_side(base, lambda side: self.store_at(target, side, parts, value, op))
            return
        place = self.place(base, parts)
        if place.extents:
            self.store_into(target, place, value, op)
        elif isinstance(value, str | Complex):
            self.write(target, place, [], value, op)
        else:
            self.refuse(target, "writes an array to one element.")

    def store_into(self, target: ast.AST, place: Stored, value: Value, op: str) -> None:
        """Write to all elements of a part of an array."""
        if isinstance(place, Either):
            self.each_side(place, lambda side: self.store_into(target, side, value, op))
            return
        if isinstance(value, list):
            value = self.gathered(target, value)
        if isinstance(value, Object):
            self.refuse(target, "writes something that is no number.")
        if isinstance(value, Array) and not op and place.array in arrays_of(value) and value != place:
            # NumPy reads everything before it writes anything.
            if isinstance(value, Stored) or self.reads_elsewhere(value, place):
                value = self.materialized(value, "before")
        elif isinstance(value, Stored) and op and not interpret():
            # Numba reads another part of the array element by element, while it writes.
            pass
        elif isinstance(value, Array) and op and place.array in arrays_of(value):
            value = self.materialized(value, "before")
        extents = place.extents

        def body(at: list[Atom]) -> None:
            self.write(target, place, at, self.item(value, at, extents), op)

        self.each(extents, body)

    def reads_elsewhere(self, value: Elementwise, place: View) -> bool:
        """Whether an expression reads other elements of an array than those that are written at the same time."""
        probe = [f"probe_{k}" for k in range(len(place.extents))]
        before, self.out = self.out, []
        self.form.dtypes.update(dict.fromkeys(probe, "int64"))
        self.item(value, probe, place.extents)
        found = [s.value for s in walk(self.out) if isinstance(s, Set) and isinstance(s.value, Load)]
        own = load(place, probe, self.integer)
        texts = {s.target: s.value for s in walk(self.out) if isinstance(s, Set)}
        self.out = before
        for name in probe:
            self.form.dtypes.pop(name)

        def written(index: tuple[Atom, ...]) -> list[Any]:
            return [texts.get(one, one) for one in index[: len(own.index)]]

        return any(one.array == place.array and written(one.index) != written(own.index) for one in found)

    def gathered(self, node: ast.AST, values: list[Value]) -> View:
        """A local array of the numbers of a tuple or list."""
        if values and all(isinstance(one, list) for one in values):
            rows = [self.gathered(node, one) for one in values if isinstance(one, list)]
            if len({row.extents for row in rows}) > 1:
                return self.refuse(node, "makes an array of rows of several lengths.")
            wide = _widest([row.dtype for row in rows])
            made = self.local("given", [str(len(rows)), *rows[0].extents], wide, "")
            for k, row in enumerate(rows):
                place = self.part(made, [str(k)])
                assert isinstance(place, View)
                self.store_into(node, place, row, "")
            return made
        if not all(isinstance(one, str | Complex) for one in values):
            return self.refuse(node, "makes an array of things that are no numbers.")
        dtypes = [
            "complex128" if isinstance(one, Complex) else self.form.dtypes.get(str(one)) or literal_dtype(str(one))
            for one in values
        ]
        made = self.local("given", [str(len(values))], _widest(dtypes), "")
        for k, one in enumerate(values):
            assert isinstance(one, str | Complex)
            self.fill_in(made, [str(k)], one)
        return made

    def write(self, node: ast.AST, place: View, at: Sequence[Atom], value: Scalar, op: str) -> None:
        """Write to one element of a view."""
        if place.array in self.frozen:
            self.refuse(node, "writes to an array that a loop has made anew in each turn. Write to a copy of it.")
        index = load(place, at, self.integer).index
        if place.dtype in PARTS:
            self.write_complex(node, place, index, self.as_complex(value), op)
            return
        if not isinstance(value, str):
            self.refuse(node, "writes a complex number to an array of real ones. Take its real part.")
            return
        dtype = self.form.dtypes[place.array]
        if op in ("", "Add"):
            self.out.append(Store(place.array, index, value, bool(op)))
        elif op == "Sub":
            self.out.append(Store(place.array, index, self.put(Op("negative", (value,), "-{0}"), dtype), True))
        else:
            old = self.put(Load(place.array, index), dtype)
            found = self.applied(node, OPERATORS[op], [old, value])
            assert isinstance(found, Op)
            self.out.append(Store(place.array, index, self.put(found, dtype)))

    def write_complex(self, node: ast.AST, place: View, index: tuple[Atom, ...], value: Complex, op: str) -> None:
        """Write to one element of a complex array."""
        adds = op in ("Add", "Sub")
        if op and not adds:
            old = [self.put(Load(place.array, (*index, k)), PARTS[place.dtype]) for k in "01"]
            value = self.as_complex(self.of_complex(node, OPERATORS[op], [Complex(*old), value]))
        for k, part in (("0", value.real), ("1", value.imag)):
            given = self.opposite(part) if op == "Sub" else part
            if not adds or given != "0.0":
                self.out.append(Store(place.array, (*index, k), given, adds))


def _widest(dtypes: Sequence[str]) -> str:
    """The dtype of an array of numbers of some dtypes."""
    if any(one in PARTS for one in dtypes):
        return "complex128"
    if dtypes and dtypes[0] in ("float32", "bool") and len(set(dtypes)) == 1:
        return dtypes[0]
    return "float64" if any("float" in one for one in dtypes) else "int64"
