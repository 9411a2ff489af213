"""Structured arrays and their records in kernels: for each field, the array of that field.

In: pieces of a kernel's text. Out: statements on elements, and lists of the values of all fields. Called by
array_gathers.py, whose class stands upon this one. An argument that is a structured array is several arrays
(packed_arguments.py). Its value while the kernel is read is the list of their views, in the order of the fields; that
of a record is the list of what is left of them at one index. Numba's types tell such lists from tuples.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ..kernel_statements import Atom, Expression
from .array_values import Array, Complex, Either, Object, Stored, Value
from .array_writes import ArrayWrites
from .kernel_form import dtype_name


def record_of(kind: Any) -> Any:
    """Numba's type of the records of a structured array, or of a record; None for other types."""
    from numba.core import types

    kind = kind.dtype if isinstance(kind, types.Array) else kind
    return kind if isinstance(kind, types.Record) else None


class RecordParts(ArrayWrites):
    """The part of a reader that knows structured arrays."""

    def field(self, node: ast.AST, value: Value, kind: Any, name: Any) -> Value | Expression:
        """A field of records: an array, or an element where there is one record."""
        known = list(record_of(kind).fields)
        if name not in known:
            return self.refuse(node, f"reads the field {name!r}; the records have {', '.join(known)}.")
        assert isinstance(value, list)
        found = value[known.index(name)]
        if isinstance(found, Object):
            return self.refuse(node, f"reads the field {name!r}, which is neither a number nor an array of numbers.")
        return self.element(found, []) if isinstance(found, Stored) and not found.extents else found

    def at(self, node: ast.AST, value: Value, kind: Any, parts: Sequence[Any]) -> list[Value]:
        """Records of a structured array, of each field what is left of it; `parts` are those of a subscript."""
        missing = kind.ndim - sum(one is not None for one in parts)
        return self._cut(node, value, [*parts, *[("", "", 1)] * missing])

    def _cut(self, node: ast.AST, value: Value, parts: list[Any]) -> list[Value]:
        found: list[Value] = []
        assert isinstance(value, list)
        for one in value:
            if isinstance(one, list):
                found.append(self._cut(node, one, parts))
            elif isinstance(one, Stored):
                found.append(self._placed(node, one, parts))
            else:
                found.append(one)
        return found

    def _placed(self, node: ast.AST, one: Stored, parts: list[Any]) -> Value:
        if isinstance(one, Either):
            return self.chosen(node, one.test, [self.thunk(self._placed, node, side, parts) for side in one.sides])
        return self.place(one, parts)

    def kind_of_records(self, node: ast.AST) -> Any:
        """Numba's type of a variable, if it is a structured array or a record; otherwise None."""
        kind = self.frame.types.get(node.id) if isinstance(node, ast.Name) else None
        return None if record_of(kind) is None else kind

    def records_at(self, node: ast.Subscript) -> tuple[Value, Any, list[Any]]:
        """The structured array of a subscript, its type, and the parts of the index."""
        base, kind = self.value(node.value), self.kind(node.value)
        parts = self.parts_of(node, kind.ndim)
        if any(isinstance(one, Array) for one in parts):
            self.refuse(node, "takes records by an array of indices or truth values. Write the loop.")
        return base, kind, parts

    def named_field(self, node: ast.Subscript) -> Any:
        """The name in a subscript of records, if it is one."""
        if isinstance(node.slice, ast.Constant | ast.Name):
            index = self.value(node.slice)
            return index.value if isinstance(index, Object) and isinstance(index.value, str) else None
        return None

    # ----- Reading -----

    def subscript(self, node: ast.Subscript) -> Value | Expression:
        """A field, a record, or a part of a structured array; otherwise an element or a part of an array."""
        kind = self.kind_of_records(node.value)
        if kind is None:
            return super().subscript(node)
        name = self.named_field(node)
        if name is not None:
            return self.field(node, self.value(node.value), kind, name)
        return self.at(node, *self.records_at(node))

    def attribute(self, node: ast.AST, value: Value, name: str) -> Value | Expression:
        """A field of records, or the shape of a structured array; otherwise an attribute of an array."""
        kind = self.kind_of_records(node.value) if isinstance(node, ast.Attribute) else None
        if kind is None:
            return super().attribute(node, value, name)
        if name in record_of(kind).fields:
            return self.field(node, value, kind, name)
        if name in ("shape", "size", "ndim"):
            extents = self.extents_of(node, value, kind)
            if name == "size":
                return self.count_of(extents)
            return list(extents) if name == "shape" else str(len(extents))
        return self.refuse(node, f"reads the attribute `{name}` of records, of which no derivative is known here.")

    def length(self, node: ast.AST, value: Value) -> Value | Expression:
        """len()."""
        kind = self.kind_of_records(node.args[0]) if isinstance(node, ast.Call) else None
        if kind is not None:
            return self.extents_of(node, value, kind)[0]
        return super().length(node, value)

    def extents_of(self, node: ast.AST, value: Value, kind: Any) -> tuple[Atom, ...]:
        """The lengths of the axes of a structured array."""
        assert isinstance(value, list)
        for one in value:
            if isinstance(one, list):
                return self.extents_of(node, one, kind)
            if isinstance(one, Stored):
                return one.extents[: getattr(kind, "ndim", 0)]
        return self.refuse(node, "has records without numbers.")

    # ----- Making -----

    def made_records(self, name: str, shape: Sequence[Atom], record: Any, fill: Atom) -> list[Value]:
        """A local structured array: an array for each field of numbers."""
        from numba.core import types

        found: list[Value] = []
        for field in record.fields:
            kind, inner = record.typeof(field), f"{name}_{field}"
            own = list(map(str, kind.shape)) if isinstance(kind, types.NestedArray) else []
            kind = kind.dtype if own else kind
            if isinstance(kind, types.Record):
                found.append(self.made_records(inner, [*shape, *own], kind, fill))
            else:
                dtype = dtype_name(kind)
                found.append(self.local(inner, [*shape, *own], dtype, fill) if dtype else Object(None))
        return found

    def copied_records(self, node: ast.AST, value: Value, kind: Any, name: str) -> list[Value]:
        """A local structured array with the records of another one."""
        made = self.made_records(name, self.extents_of(node, value, kind), record_of(kind), "")
        self.store_records(node, made, value)
        return made

    # ----- Writing -----

    def store(self, target: ast.Subscript, value: Value, op: str) -> None:
        """Write to a field, to a record, or to an element or a part of an array."""
        kind = self.kind_of_records(target.value)
        if kind is None:
            super().store(target, value, op)
            return
        name = self.named_field(target)
        if name is not None:
            self.store_field(target, self.value(target.value), kind, name, value, op)
            return
        self.store_records(target, self.at(target, *self.records_at(target)), value)

    def store_attribute(self, target: ast.Attribute, value: Value, op: str) -> None:
        """Write to a field of records."""
        kind = self.kind_of_records(target.value)
        if kind is None:
            self.refuse(target, "assigns to an attribute, which has no derivative. Use an array or a variable.")
        self.store_field(target, self.value(target.value), kind, target.attr, value, op)

    def store_field(self, target: ast.AST, records: Value, kind: Any, name: str, value: Value, op: str) -> None:
        """Write to one field."""
        known = list(record_of(kind).fields)
        assert isinstance(records, list)
        place = records[known.index(name)] if name in known else None
        if isinstance(place, list):
            self.store_records(target, place, value)
        elif isinstance(place, Stored):
            self.store_at(target, place, [], value, op)
        else:
            self.refuse(target, f"writes to the field {name!r} of a record that is an argument, or of no number.")

    def store_records(self, target: ast.AST, places: list[Value], value: Value) -> None:
        """Write records, field by field."""
        if not isinstance(value, list) or len(value) != len(places):
            self.refuse(target, "writes something to a record that is none. Write to its fields.")
            return
        for place, given in zip(places, value, strict=True):
            if isinstance(place, list):
                self.store_records(target, place, given)
            elif isinstance(place, Stored):
                one = self.number_at(given, []) if isinstance(given, Array) and not given.ndim else given
                self.store_at(target, place, [], one, "")
            elif isinstance(place, str | Complex):
                self.refuse(target, "writes to a record that is an argument. Write to an array of records.")
