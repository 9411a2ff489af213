"""Arrays and numbers that are one of two, by a branch that the kernel takes.

In: a number that tells the branch, and the values of both. Out: `Either` for arrays, one number for numbers; an access
of an element of an `Either` is a branch itself, so that elements are read and written where they are. Called by
complex_pairs.py, whose class stands upon this one, and by rebound_arrays.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from ..kernel_statements import Atom, Extent, If, Load, Op, Set, Statement, copied
from .array_values import Array, Complex, Either, Unclear, Value, View
from .kernel_form import FormWriter, literal_dtype

_NAME = re.compile(r"[A-Za-z_]\w*")


class Choices(FormWriter):
    """The part of a reader that knows values that differ by a branch."""

    def in_block(self, action: Callable[[], Value]) -> tuple[list[Statement], Value]:
        """The statements of an action, which are not added yet, and its value."""
        before, self.out = self.out, []
        value = action()
        if isinstance(value, Op | Load | Extent):
            value = self.put(value, self.form.dtypes[value.array] if isinstance(value, Load) else "float64")
        found, self.out = self.out, before
        return found, value

    def chosen(self, node: ast.AST | None, test: Atom, actions: Sequence[Callable[[], Value]]) -> Value:
        """The value of one of two actions, the first where a number is true."""
        blocks, values = zip(*[self.in_block(one) for one in actions], strict=True)
        found = self.joined("a part of it", test, values[0], values[1], blocks[0], blocks[1])
        self.out.append(If(test, tuple(blocks[0]), tuple(blocks[1])))
        if isinstance(found, Unclear):
            return self.refuse(node, f"uses an array that is not the same one each time: {found.why}. Use two arrays.")
        return found

    def each_side(self, value: Either, action: Callable[[View | Either], None]) -> None:
        """Add an action on each of two arrays, as the two sides of a branch."""

        def on(side: View | Either) -> Callable[[], Value]:
            def run() -> Value:
                action(side)
                return []

            return run

        self.chosen(None, value.test, [on(side) for side in value.sides])

    def joined(
        self,
        name: str,
        test: Atom,
        one: Value | None,
        other: Value | None,
        first: list[Statement],
        second: list[Statement],
    ) -> Value:
        """The value of a variable after two branches, at whose ends statements may be added."""
        if one == other and one is not None:
            return one
        if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            return [self.joined(name, test, a, b, first, second) for a, b in zip(one, other, strict=True)]
        if isinstance(one, View | Either) and isinstance(other, View | Either) and one.ndim == other.ndim:
            if one.dtype == other.dtype:
                extents = [
                    self.joined_length(a, b, first, second) for a, b in zip(one.extents, other.extents, strict=True)
                ]
                return Either(test, (one, other), tuple(extents))
        elif isinstance(one, Complex) or isinstance(other, Complex):
            sides = [Complex(x, "0.0") if isinstance(x, str) else x for x in (one, other)]
            if isinstance(sides[0], Complex) and isinstance(sides[1], Complex):
                real, imag = [
                    self.joined(name, test, a, b, first, second)
                    for a, b in ((sides[0].real, sides[1].real), (sides[0].imag, sides[1].imag))
                ]
                assert isinstance(real, str)
                assert isinstance(imag, str)
                return Complex(real, imag)
        elif isinstance(one, str) and isinstance(other, str):
            kinds = [self.form.dtypes.get(x) or literal_dtype(x) for x in (one, other)]
            found = self.fresh("chosen", kinds[0] if kinds[0] == kinds[1] else "float64")
            first.append(Set(found, copied(one)))
            second.append(Set(found, copied(other)))
            return found
        for value in (one, other):
            if isinstance(value, Unclear):
                return value
        return Unclear(f"`{name}` is not the same in both branches of an `if`")

    def joined_length(self, one: Atom, other: Atom, first: list[Statement], second: list[Statement]) -> Atom:
        """The length of an axis after two branches."""
        lengths = self.form.lengths
        if one == other:
            return one
        if one in lengths and lengths[one] == lengths.get(other):
            return self.length_of(lengths[one])
        found = self.fresh("n", "int64")
        first.append(Set(found, copied(one)))
        second.append(Set(found, copied(other)))
        return found

    def length_of(self, text: str) -> Atom:
        """The length that is known by a text of integers."""
        names = [one for one in self.names_in(text) if one in self.form.dtypes]
        if text in names or text.isdigit():
            return text
        return self.integer(_NAME.sub(lambda m: f"{{{names.index(m[0])}}}" if m[0] in names else m[0], text), *names)

    def names_in(self, text: str) -> list[str]:
        """The integers in the text of a length."""
        return sorted(set(_NAME.findall(text)) - {"min", "max", "abs"})


def holds_array(value: Value | None) -> bool:
    """Whether a variable's value is an array, or has one in it."""
    return isinstance(value, Array) or (isinstance(value, list) and any(map(holds_array, value)))
