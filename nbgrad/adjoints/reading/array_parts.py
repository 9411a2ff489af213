"""Parts of arrays and expressions of arrays, as loops over elements.

In: pieces of a kernel's text and the arrays in it. Out: statements on elements, and values of array_values.py. Called
by array_writes.py, whose class stands upon this one.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ..kernel_statements import (
    RESERVED,
    Atom,
    Block,
    Expression,
    Extent,
    For,
    Load,
    New,
    Op,
    Store,
    copied,
)
from .array_values import (
    Along,
    Array,
    Complex,
    Either,
    Elementwise,
    Object,
    Scalar,
    Stored,
    Value,
    View,
    arrays_of,
    load,
)
from .complex_pairs import PARTS, REAL_VALUED, ComplexParts
from .kernel_form import DeadBranch, literal_dtype, unlike_derivatives
from .known_functions import Known

_QUESTIONS = ("np.is", "math.is", "np.signbit", "np.logical", "not ")
_WRAPPING = ("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} ** {1}", "{0} << {1}", "-{0}", "~{0}")
"""Operations by which integers leave the range of a dtype."""
_OF_TRUTHS = ("not {0}", "{0} & {1}", "{0} | {1}", "{0} ^ {1}")


class ArrayParts(ComplexParts):
    """The part of a reader that knows parts of arrays and expressions of arrays."""

    @abstractmethod
    def picked(self, node: ast.AST, base: Stored, index: Array) -> Value:
        """The elements of an array by a mask or an index array."""

    # ----- Parts -----

    def whole(self, array: str) -> View:
        """The view of all of an array."""
        ndim = self.form.ranks[array]
        extents = tuple([self.put(Extent(array, k), "int64", f"n{k}_{array}") for k in range(ndim)])
        self.form.lengths.update({extent: extent for extent in extents})
        return View(array, tuple([Along(k) for k in range(ndim)]), extents, self.form.dtypes[array])

    def element_of(self, value: Array, at: Sequence[Atom]) -> Value | Expression:
        """An item along the first axes: an element, or a smaller view."""
        if len(at) == value.ndim:
            return self.element(value, at)
        if isinstance(value, Stored):
            return self.part(value, list(at))
        return Elementwise(
            value.extents[len(at) :], value.dtype, lambda rest: value.element([*at, *rest]), value.arrays
        )

    def element(self, value: Array, at: Sequence[Atom]) -> Expression | Scalar:
        """An element of an array."""
        match value:
            case View():
                found = load(value, at, self.integer)
                if value.dtype not in PARTS:
                    return found
                parts = [Load(found.array, (*found.index, k)) for k in "01"]
                return Complex(*[self.put(one, PARTS[value.dtype], "x") for one in parts])
            case Elementwise():
                return value.element(at)
            case Either():
                sides = [self.thunk(self.element, one, at) for one in value.sides]
                return cast("Scalar", self.chosen(None, value.test, sides))

    def thunk(self, function: Callable[..., Any], *operands: Any) -> Callable[[], Any]:
        """A call that is made later."""
        return lambda: function(*operands)

    def part(self, view: Stored, parts: Sequence[Any], node: ast.AST | None = None) -> Value | Expression:
        """A view of a view, or an element of one."""
        if isinstance(view, Either):
            return self.chosen(node, view.test, [self.thunk(self.part, one, parts, node) for one in view.sides])
        found = self.place(view, parts)
        return found if found.extents else self.element(found, [])

    def place(self, view: View, parts: Sequence[Any]) -> View:
        """A view of a view: `parts` are atoms, slices (start, stop, step) of atoms, or None for a new axis."""
        missing = view.ndim - sum(one is not None for one in parts)
        if missing < 0:
            raise DeadBranch  # Numba has compiled the kernel, so that this is never reached.
        parts = [*parts, *[("", "", 1)] * missing]
        axes: dict[int, Atom | Along] = {}
        extents: list[Atom] = []
        axis = 0
        for one in parts:
            if one is None:
                extents.append("1")
                continue
            extent = view.extents[axis]
            if isinstance(one, str):
                axes[axis] = self.position(one, extent, view, axis)
            else:
                start, count, step = self.bounds(one, extent)
                axes[axis] = Along(len(extents), start, step, one == ("", "", 1))
                extents.append(count)
            axis += 1
        places: list[Atom | Along] = []
        for place in view.places:
            if isinstance(place, str):
                places.append(place)
                continue
            new = axes[place.axis]
            if isinstance(new, str):
                index = new if place.step == 1 else self.integer(f"{{0}} * {place.step}", new)
                places.append(index if place.start == "0" else self.integer("{0} + {1}", place.start, index))
            else:
                start = new.start
                if place.step != 1 and start != "0":
                    start = self.integer(f"{{0}} * {place.step}", start)
                if place.start != "0":
                    start = place.start if start == "0" else self.integer("{0} + {1}", place.start, start)
                places.append(Along(new.axis, start, new.step * place.step, new.whole and place.whole))
        return replace(view, places=tuple(places), extents=tuple(extents))

    def reshaped(self, view: Stored, shape: list[Atom]) -> Stored:
        """A contiguous view in another shape; -1 stands for the length that follows."""
        if isinstance(view, Either):
            sides = [self.thunk(self.reshaped, one, list(shape)) for one in view.sides]
            return cast("Stored", self.chosen(None, view.test, sides))
        if "-1" in shape:
            known = "1"
            for one in shape:
                if one != "-1":
                    known = one if known == "1" else self.integer("{0} * {1}", known, one)
            size = self.size(view)
            shape[shape.index("-1")] = size if known == "1" else self.integer("{0} // {1}", size, known)
        extents = tuple([one if one.isdigit() else self.put(copied(one), "int64", "n") for one in shape])
        return View(view.array, tuple([Along(k) for k in range(len(extents))]), extents, view.dtype, (extents, view))

    def position(self, index: Atom, extent: Atom, view: View, axis: int) -> Atom:
        """An index along an axis of a view; negative ones count from its end."""
        if index.lstrip("-").isdigit():
            return self.integer(f"{{0}} - {-int(index)}", extent) if int(index) < 0 else index
        index = self.put(copied(index), self.form.dtypes[index], "k")
        along = [place for place in view.places if not isinstance(place, str) and place.axis == axis]
        if view.reshaped is None and any(place.whole for place in along):
            return index
        return self.integer("{0} if {0} >= 0 else {0} + {1}", index, extent)

    def bounds(self, cut: tuple[Atom, Atom, int], extent: Atom) -> tuple[Atom, Atom, int]:
        """The first position, the number of elements and the step of a slice, as Python cuts it."""
        start, stop, step = cut
        if not start and not stop and step == 1:
            return "0", extent, 1
        if step > 0:
            first = "0" if start in ("", "0") else self.clipped(start, extent)
            last = extent if not stop else self.clipped(stop, extent)
            width = f" + {step - 1}) // {step}" if step != 1 else ")"
            count = self.integer("max(0, ({0} - {1}" + width + ")", last, first)
        else:
            if start or stop:
                return self.refuse(None, "takes a slice backwards with bounds. Write the loop.")
            first = self.integer("{0} - 1", extent)
            count = extent if step == -1 else self.integer(f"({{0}} + {-step - 1}) // {-step}", extent)
        return first, count, step

    def clipped(self, bound: Atom, extent: Atom) -> Atom:
        """A bound of a slice, from 0 to the length of the axis."""
        if bound.isdigit():
            return self.integer(f"min({bound}, {{0}})", extent)
        if bound.lstrip("-").isdigit():
            return self.integer(f"max(0, {{0}} - {-int(bound)})", extent)
        return self.integer("min({0}, {1}) if {0} >= 0 else max(0, {0} + {1})", bound, extent)

    def parts_of(self, node: ast.Subscript, ndim: int) -> list[Any]:
        """The indices of a subscript: atoms, slices, None for new axes."""
        given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        found: list[Any] = []
        for one in given:
            if isinstance(one, ast.Slice):
                bounds = ["" if bound is None else self._bound(bound) for bound in (one.lower, one.upper)]
                step = "1" if one.step is None else self.number(one.step)
                if not step.lstrip("-").isdigit() or step == "0":
                    self.refuse(node, "takes a slice whose step is no literal. Write the loop.")
                found.append((*bounds, int(step)))
                continue
            value = self.value(one)
            if isinstance(value, Object) and value.value is Ellipsis:
                indexed = sum(not (isinstance(o, ast.Constant) and o.value in (None, Ellipsis)) for o in given)
                found += [("", "", 1)] * (ndim - indexed)
            elif isinstance(value, Object) and value.value is None:
                found.append(None)
            elif isinstance(value, str):
                found.append(value)
            elif isinstance(value, list):
                found += value
            elif isinstance(value, Array) and len(given) == 1:
                return [value]
            else:
                self.refuse(node, "takes elements by an array of indices or truth values among others. Write the loop.")
        return found

    def _bound(self, node: ast.expr) -> Atom:
        value = self.value(node)
        return "" if isinstance(value, Object) and value.value is None else self.number(node)

    def subscript(self, node: ast.Subscript) -> Value | Expression:
        """An element or a part of an array, or a part of a tuple."""
        base = self.value(node.value)
        if isinstance(base, list) and isinstance(node.slice, ast.Slice):
            bounds = [None if one is None else self.number(one) for one in (node.slice.lower, node.slice.upper)]
            if node.slice.step is None and all(one is None or one.lstrip("-").isdigit() for one in bounds):
                return base[slice(*[None if one is None else int(one) for one in bounds])]
        if isinstance(base, list) and not isinstance(node.slice, ast.Slice):
            index = self.value(node.slice)
            if isinstance(index, str) and index.lstrip("-").isdigit():
                return base[int(index)]
        if isinstance(base, list):
            return self.refuse(node, "takes an element of a tuple by a number that is no literal. Use an array.")
        if isinstance(base, Elementwise):
            base = self.materialized(base, "part")
        if not isinstance(base, Stored):
            return self.refuse(node, "takes a part of something that is no array.")
        parts = self.parts_of(node, base.ndim)
        if parts and isinstance(parts[0], Array):
            return self.picked(node, base, parts[0])
        return self.part(base, parts, node)

    def attribute(self, node: ast.AST, value: Value, name: str) -> Value | Expression:
        """An attribute of an array."""
        if isinstance(value, Array):
            if name == "shape":
                return list(value.extents)
            if name == "size":
                return self.size(value)
            if name == "ndim":
                return str(value.ndim)
            if name == "T":
                return self.transposed(value)
            if name == "flat":
                return self.reshaped(
                    self.materialized(value, "flat") if isinstance(value, Elementwise) else value, ["-1"]
                )
            if name == "dtype":
                return Object(np.dtype(value.dtype))
            if name in ("itemsize", "nbytes"):
                width = np.dtype(value.dtype).itemsize
                return str(width) if name == "itemsize" else self.integer(f"{{0}} * {width}", self.size(value))
            if name in ("real", "imag"):
                return self.part_of_each(node, value, name)
        if isinstance(value, Complex):
            if name in ("real", "imag"):
                return value.real if name == "real" else value.imag
            if name == "dtype":
                return Object(np.dtype(np.complex128))
        if isinstance(value, str):
            found = {"real": value, "imag": "0.0", "ndim": "0", "size": "1"}
            if name in found:
                return found[name]
            if name == "shape":
                return []
            if name == "dtype":
                return Object(np.dtype(self.form.dtypes.get(value) or literal_dtype(value)))
        if isinstance(value, Object) and isinstance(value.value, np.finfo | np.iinfo):
            return repr(getattr(value.value, name).item() if name != "bits" else value.value.bits)
        fields = getattr(self.kind(node.value), "fields", ()) if isinstance(node, ast.Attribute) else ()
        if isinstance(value, list) and name in fields:
            return value[fields.index(name)]
        return self.refuse(node, f"reads the attribute `{name}`, of which no derivative is known here.")

    def part_of_each(self, node: ast.AST, value: Array, name: str) -> Array:
        """The real or imaginary parts of the elements of an array: a view where it has a place in memory."""
        if value.dtype not in PARTS:
            return value if name == "real" else self.refuse(node, "takes imaginary parts of real numbers.")
        match value:
            case View(array, places, extents, dtype, None):
                return View(array, (*places, "0" if name == "real" else "1"), extents, PARTS[dtype])
            case Either(test, sides, extents):
                one, other = [self.part_of_each(node, side, name) for side in sides]
                assert isinstance(one, Stored)
                assert isinstance(other, Stored)
                return Either(test, (one, other), extents)
            case _:
                return Elementwise(
                    value.extents,
                    PARTS[value.dtype],
                    lambda at: str(getattr(self.as_complex(self.number_at(value, at)), name)),
                    arrays_of(value),
                )

    def transposed(self, value: Array) -> Stored:
        """The array with its axes reversed."""
        match value:
            case View():
                return value.transposed()
            case Elementwise():
                return self.materialized(value, "t").transposed()
            case Either(test, sides):
                one, other = [self.transposed(side) for side in sides]
                return Either(test, (one, other), value.extents[::-1])

    def size(self, value: Array) -> Atom:
        """The number of elements."""
        return self.count_of(value.extents)

    def count_of(self, extents: Sequence[Atom]) -> Atom:
        """The product of lengths."""
        found = extents[0] if extents else "1"
        for other in extents[1:]:
            found = self.integer("{0} * {1}", found, other)
        return found

    def length(self, node: ast.AST, value: Value) -> Value | Expression:
        """len()."""
        if isinstance(value, Array):
            return value.extents[0]
        return str(len(value)) if isinstance(value, list) else self.refuse(node, "takes len() of a number.")

    # ----- Expressions of arrays -----

    def elementwise(self, node: ast.AST, known: Known, operands: Sequence[Value]) -> Elementwise:
        """A function of numbers, for each element of arrays."""
        arrays = [one for one in operands if isinstance(one, Array)]
        if any(isinstance(one, Object | list) for one in operands):
            return self.refuse(node, "computes with an array and something that is no number.")
        extents = self.common(arrays)
        dtypes = [one.dtype for one in arrays] + [
            self.form.dtypes.get(one, "float64" if not one.lstrip("-").isdigit() else "int64")
            for one in operands
            if isinstance(one, str)
        ]
        if any(dtype in PARTS for dtype in dtypes) or any(isinstance(one, Complex) for one in operands):
            return self.complex_elementwise(node, known, operands, extents)
        if known.text in _WRAPPING and all(one.startswith("uint") for one in dtypes):
            why = "computes with whole arrays of unsigned integers, of which Numba keeps the last bits."
            return self.refuse(node, f"{why} Convert them first: x.astype(np.int64).")
        narrow = "float32" in dtypes and "float64" not in dtypes
        wide = "float32" if narrow else "float64"
        floats = known.text == "{0} / {1}" or "math." in known.text or any(d.startswith("float") for d in dtypes)
        compares = any(f" {sign} " in known.text for sign in ("<", ">", "<=", ">=", "==", "!="))
        asks = compares or known.text.startswith(_QUESTIONS)
        of_truths = known.text in _OF_TRUTHS and all(d == "bool" for d in dtypes)
        dtype = "bool" if asks or of_truths else wide if floats else "int64"

        def element(at: Sequence[Atom]) -> Expression:
            items = [str(self.item(one, at, extents)) for one in operands]
            return Op(known.primitive, tuple(items), known.text)

        return Elementwise(extents, dtype, element, frozenset().union(*map(arrays_of, arrays)))

    def complex_elementwise(
        self, node: ast.AST, known: Known | str, operands: Sequence[Value], extents: tuple[Atom, ...]
    ) -> Elementwise:
        """A function of complex numbers, for each element of arrays."""
        name = known if isinstance(known, str) else known.primitive or known.text
        asks = name.startswith(("{0} == ", "{0} != ", "np.is"))

        def element(at: Sequence[Atom]) -> Scalar:
            return cast("Scalar", self.of_complex(node, known, [self.item(one, at, extents) for one in operands]))

        arrays = [one for one in operands if isinstance(one, Array)]
        narrow = len(arrays) == len(operands) and all(one.dtype in ("float32", "complex64") for one in arrays)
        dtype = "complex64" if narrow else "complex128"
        dtype = "bool" if asks else PARTS[dtype] if name in REAL_VALUED else dtype
        return Elementwise(extents, dtype, element, frozenset().union(*map(arrays_of, arrays)))

    def item(self, operand: Any, at: Sequence[Atom], extents: Sequence[Atom]) -> Scalar:
        """The number of an operand's element, where axes of length one are repeated."""
        if isinstance(operand, str | Complex):
            return operand
        own = list(at[len(at) - operand.ndim :])
        for axis, (extent, common) in enumerate(zip(operand.extents, extents[len(at) - operand.ndim :], strict=True)):
            if extent == "1":
                own[axis] = "0"
            elif not self.same_length(extent, common):
                own[axis] = self.integer("{0} if {1} > 1 else 0", own[axis], extent)
        return self.number_at(operand, own)

    def number_at(self, value: Array, at: Sequence[Atom]) -> Scalar:
        """The number that is an element."""
        found = self.element(value, at)
        return found if isinstance(found, str | Complex) else self.put(found, value.dtype, "x")

    def same_length(self, one: Atom, other: Atom) -> bool:
        """Whether two lengths of axes are known to be equal."""
        lengths = self.form.lengths
        return lengths.get(one, one) == lengths.get(other, other)

    def common(self, arrays: Sequence[Array]) -> tuple[Atom, ...]:
        """The lengths of the axes of arrays that are computed with each other."""
        ndim = max(one.ndim for one in arrays)
        found = ["1"] * ndim
        for one in arrays:
            for axis, extent in enumerate(one.extents, ndim - one.ndim):
                if found[axis] == "1":
                    found[axis] = extent
                elif extent != "1" and not self.same_length(extent, found[axis]):
                    found[axis] = self.integer("max({0}, {1})", found[axis], extent)
        return tuple(found)

    def each(self, extents: Sequence[Atom], body: Callable[[list[Atom]], None]) -> None:
        """Add loops over all elements of a shape."""
        turns = [self.fresh("e", "int64") for _ in extents]
        before, self.out = self.out, []
        body(list(turns))
        found: Block = tuple(self.out)
        self.out = before
        for turn, extent in reversed(list(zip(turns, extents, strict=True))):
            found = (For(turn, extent, found),)
        self.out += found

    def materialized(self, value: Array, name: str) -> View:
        """A local array with the elements of an array."""
        made = self.local(name, value.extents, value.dtype, "")

        def body(at: list[Atom]) -> None:
            self.fill_in(made, at, self.number_at(value, at))

        self.each(value.extents, body)
        return made

    def fill_in(self, made: View, at: Sequence[Atom], value: Scalar) -> None:
        """Write to an element of an array of the reader's own."""
        if made.dtype not in PARTS:
            assert isinstance(value, str)
            self.out.append(Store(made.array, tuple(at), value))
            return
        pair = self.as_complex(value)
        self.out += [Store(made.array, (*at, "0"), pair.real), Store(made.array, (*at, "1"), pair.imag)]

    def local(self, name: str, shape: Sequence[Atom], dtype: str, fill: Atom) -> View:
        """A new local array."""
        array = name = unlike_derivatives(name)
        while array in self.form.dtypes or array in self.form.objects or array in RESERVED:
            self.form.count += 1
            array = f"{name}_{self.form.count}"
        self.form.dtypes[array] = PARTS.get(dtype, dtype)
        self.form.ranks[array] = len(shape) + (dtype in PARTS)
        extents = tuple(
            [
                self.put(copied(one), "int64", f"n{k}_{array}") if not one.isdigit() else one
                for k, one in enumerate(shape)
            ]
        )
        for one, extent in zip(shape, extents, strict=True):
            # A variable may change; the length of another array does not.
            self.form.lengths[extent] = self.form.lengths.get(one, extent)
        if fill and dtype.startswith(("int", "uint", "bool")):
            fill = {"0.0": "0", "1.0": "1"}.get(fill, fill)
        made = View(array, tuple([Along(k) for k in range(len(shape))]), extents, dtype)
        if dtype not in PARTS:
            self.out.append(New(array, extents, dtype, fill))
            return made
        self.out.append(New(array, (*extents, "2"), PARTS[dtype], "0.0" if fill else ""))
        if fill not in ("", "0.0"):
            self.each(extents, lambda at: self.fill_in(made, at, fill))
        return made
