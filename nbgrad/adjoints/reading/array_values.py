"""Arrays inside kernels while they are taken apart: parts of arrays, and expressions of arrays.

In: names of arrays, and atoms. Out: `View`, the elements of a part of an array, and `Elementwise`, the elements of an
expression, give an element as an atom for atoms of indices; `Either` is one of two arrays. Called by scalar_form.py and
array_parts.py, which turn everything that a kernel does with arrays into loops over elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..kernel_statements import Atom, Expression, Load


@dataclass(frozen=True)
class Along:
    """An axis of an array that is an axis of a view: element k of the view is element `start + k * step`.

    `whole` says that it is all of the axis, so that Numba itself counts negative indices from its end.
    """

    axis: int
    start: Atom = "0"
    step: int = 1
    whole: bool = True


@dataclass(frozen=True)
class View:
    """A part of an array: for each axis of the array, a fixed index or the axis of the view along it.

    A view of complex numbers has their dtype; its array has one more axis, that of their parts, which the view has not.
    A view of an array in another shape has `reshaped`, which tells that shape and the array's own; `places` are then
    those in the other shape.
    """

    array: str
    places: tuple[Atom | Along, ...]
    extents: tuple[Atom, ...]
    dtype: str
    reshaped: tuple[tuple[Atom, ...], View] | None = None

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.extents)

    @property
    def whole(self) -> bool:
        """Whether it is the array itself."""
        return self.reshaped is None and self.places == tuple([Along(k) for k in range(self.ndim)])

    def index(self, at: Sequence[Atom], integer: Callable[..., Atom]) -> tuple[Atom, ...]:
        """The index in the array of an element of the view; `integer(text, *atoms)` names an integer."""
        found: list[Atom] = []
        for place in self.places:
            if isinstance(place, str):
                found.append(place)
                continue
            k = at[place.axis]
            if place.step != 1:
                k = integer(f"{{0}} * {place.step}" if place.step != -1 else "-{0}", k)
            found.append(k if place.start == "0" else integer("{0} + {1}", place.start, k))
        if self.reshaped is None:
            return tuple(found)
        shape, source = self.reshaped
        flat = found[0]
        for extent, k in zip(shape[1:], found[1:], strict=True):
            flat = integer("{0} * {1} + {2}", flat, extent, k)
        rest: list[Atom] = []
        for extent in reversed(source.extents[1:]):
            rest.append(integer("{0} % {1}", flat, extent))
            flat = integer("{0} // {1}", flat, extent)
        return source.index([flat, *reversed(rest)], integer)

    def transposed(self, order: Sequence[int] | None = None) -> View:
        """The view with its axes in another order; reversed by default."""
        order = list(range(self.ndim))[::-1] if order is None else list(order)
        position = {axis: k for k, axis in enumerate(order)}
        places = tuple(
            [place if isinstance(place, str) else replace(place, axis=position[place.axis]) for place in self.places]
        )
        return replace(self, places=places, extents=tuple([self.extents[axis] for axis in order]))


@dataclass(frozen=True)
class Elementwise:
    """An array that is not made: `element(indices)` gives an operation or an atom for one of its elements."""

    extents: tuple[Atom, ...]
    dtype: str
    element: Callable[[Sequence[Atom]], Expression | Atom | Complex]
    arrays: frozenset[str]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.extents)


@dataclass(frozen=True)
class Either:
    """One of two arrays of the same rank and dtype: the first where the number `test` is true."""

    test: Atom
    sides: tuple[View | Either, View | Either]
    extents: tuple[Atom, ...]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.extents)

    @property
    def dtype(self) -> str:
        """The dtype of the elements."""
        return self.sides[0].dtype

    @property
    def whole(self) -> bool:
        """Whether it is known to be one array itself, which it is not."""
        return False


@dataclass(frozen=True)
class Complex:
    """A complex number: its real and its imaginary part."""

    real: Atom
    imag: Atom


@dataclass(frozen=True)
class Object:
    """A Python object: a function, a dtype, a text or None."""

    value: object


@dataclass(frozen=True)
class Unclear:
    """An array that differs by the way that led here; using it is an error."""

    why: str


Array = View | Elementwise | Either
Stored = View | Either
"""Arrays that have a place in memory."""
Scalar = Atom | Complex
Value = Atom | Complex | View | Elementwise | Either | Object | Unclear | list["Value"]


def load(view: View, at: Sequence[Atom], integer: Callable[..., Atom]) -> Load:
    """An element of a view."""
    return Load(view.array, view.index(at, integer))


def arrays_of(value: Array) -> frozenset[str]:
    """The arrays that an array reads."""
    match value:
        case View():
            return frozenset([value.array])
        case Either():
            return arrays_of(value.sides[0]) | arrays_of(value.sides[1])
        case Elementwise():
            return value.arrays
