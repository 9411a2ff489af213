"""Complex numbers in kernels: pairs of real numbers, and functions of them as operations on the parts.

In: functions of numbers, and operands of which some are complex. Out: `Complex`, or a real number. Called by
array_parts.py, whose class stands upon this one. A complex array is an array of floats with one more axis of two, its
real and imaginary parts: the same bytes. So everything that is derived knows real numbers only, and the gradient by
z = x + iy is dL/dx + i dL/dy, as everywhere in nbgrad.

A part that is zero by construction, the literal `0.0`, is left out of sums and products. Formulas: quotients and
square roots as in W. Kahan, Branch cuts for complex elementary functions (1987), the others by addition theorems.
"""

from __future__ import annotations

import ast
import cmath
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..kernel_statements import Atom, Op, Set, copied
from .array_choices import Choices
from .array_values import Complex, Value
from .known_functions import Known

PARTS = {"complex64": "float32", "complex128": "float64"}
"""The dtypes of the parts."""
_ZERO = "0.0"
_MOST = 16
"""The largest exponent for which a power is a product."""
_BY_HAND: dict[Any, str] = {
    np.conj: "conjugate",
    np.conjugate: "conjugate",
    np.real: "real",
    np.imag: "imag",
    np.angle: "angle",
    cmath.phase: "angle",
    cmath.rect: "rect",
    complex: "complex",
    np.complex64: "complex",
    np.complex128: "complex",
    **{getattr(cmath, name): name for name in "exp log sqrt sin cos tan sinh cosh tanh".split()},
}
"""Functions that are known of complex numbers alone."""


def complex_function(function: Any) -> str:
    """The name of a function that gives complex numbers, or takes them apart; empty for others."""
    try:
        return _BY_HAND.get(function, "")
    except TypeError:
        return ""


class ComplexParts(Choices):
    """The part of a reader that knows complex numbers."""

    def as_complex(self, value: Value) -> Complex:
        """A number as a complex one."""
        assert isinstance(value, str | Complex)
        return value if isinstance(value, Complex) else Complex(value, _ZERO)

    def set_to(self, target: Atom | Complex, value: Atom | Complex) -> None:
        """Give a number, or both parts of a complex one, another value."""
        if isinstance(target, str):
            assert isinstance(value, str)
            self.out.append(Set(target, copied(value)))
            return
        given = self.as_complex(value)
        if given.imag == target.real:
            given = Complex(given.real, self.put(copied(given.imag), "float64"))
        self.out += [Set(target.real, copied(given.real)), Set(target.imag, copied(given.imag))]

    def of_complex(self, node: ast.AST, known: Known | str, operands: Sequence[Value]) -> Value:
        """A function of complex numbers."""
        name = known if isinstance(known, str) else known.primitive or known.text
        found = _FUNCTIONS.get(name)
        if found is None or not all(isinstance(one, str | Complex) for one in operands):
            shown = name.replace("{0}", "").replace("{1}", "").strip()
            return self.refuse(
                node, f"computes {shown} of complex numbers, of which no derivative is known here. Write it out."
            )
        return found(self, *map(self.as_complex, operands))

    # ----- Operations on parts -----

    def op(self, primitive: str, text: str, *atoms: Atom) -> Atom:
        """The number that a real operation gives."""
        return self.put(Op(primitive, atoms, text), "float64")

    def plus(self, a: Atom, b: Atom) -> Atom:
        """a + b."""
        return b if a == _ZERO else a if b == _ZERO else self.op("add", "{0} + {1}", a, b)

    def minus(self, a: Atom, b: Atom) -> Atom:
        """a - b."""
        return a if b == _ZERO else self.opposite(b) if a == _ZERO else self.op("subtract", "{0} - {1}", a, b)

    def opposite(self, a: Atom) -> Atom:
        """-a."""
        return a if a == _ZERO else self.op("negative", "-{0}", a)

    def times(self, a: Atom, b: Atom) -> Atom:
        """a b."""
        if _ZERO in (a, b):
            return _ZERO
        return b if a == "1.0" else a if b == "1.0" else self.op("multiply", "{0} * {1}", a, b)

    def over(self, a: Atom, b: Atom) -> Atom:
        """a / b."""
        return a if a == _ZERO else self.op("divide", "{0} / {1}", a, b)

    def of_math(self, name: str, *atoms: Atom) -> Atom:
        """A function of the module math."""
        called = {"arctan2": "atan2"}.get(name, name)
        return self.op(name, f"math.{called}({', '.join(f'{{{k}}}' for k in range(len(atoms)))})", *atoms)

    # ----- Functions -----

    def product_of(self, z: Complex, w: Complex) -> Complex:
        """z w."""
        return Complex(
            self.minus(self.times(z.real, w.real), self.times(z.imag, w.imag)),
            self.plus(self.times(z.real, w.imag), self.times(z.imag, w.real)),
        )

    def quotient_of(self, z: Complex, w: Complex) -> Complex:
        """z / w, with w divided by its size first: on what it is divided by, nothing depends."""
        if w.imag == _ZERO:
            return Complex(self.over(z.real, w.real), self.over(z.imag, w.real))
        size = self.op("", "abs({0}) + abs({1})", w.real, w.imag)
        c, d = self.over(w.real, size), self.over(w.imag, size)
        below = self.plus(self.times(c, w.real), self.times(d, w.imag))
        return Complex(
            self.over(self.plus(self.times(z.real, c), self.times(z.imag, d)), below),
            self.over(self.minus(self.times(z.imag, c), self.times(z.real, d)), below),
        )

    def size_of(self, z: Complex) -> Atom:
        """|z|."""
        return self.op("absolute", "abs({0})", z.real) if z.imag == _ZERO else self.of_math("hypot", z.real, z.imag)

    def exponential(self, z: Complex) -> Complex:
        """exp z."""
        if z.imag == _ZERO:
            return Complex(self.of_math("exp", z.real), _ZERO)
        turned = Complex(self.of_math("cos", z.imag), self.of_math("sin", z.imag))
        return turned if z.real == _ZERO else self.product_of(Complex(self.of_math("exp", z.real), _ZERO), turned)

    def logarithm(self, z: Complex) -> Complex:
        """log z."""
        return Complex(self.of_math("log", self.size_of(z)), self.angle_of(z))

    def angle_of(self, z: Complex) -> Atom:
        """The angle of z."""
        return self.of_math("arctan2", z.imag, z.real)

    def root_of(self, z: Complex) -> Complex:
        """The square root of z; zero at zero."""
        size = self.op("absolute", "abs({0})", z.real)
        half = self.times("0.5", self.plus(size, self.size_of(z)))
        is_zero = self.put(Op("", (half,), "{0} == 0.0"), "bool", "zero")
        is_right = self.put(Op("", (z.real,), "{0} >= 0.0"), "bool", "right")

        def away_from_zero() -> Value:
            large = self.of_math("sqrt", half)
            small = self.over(z.imag, self.times("2.0", large))
            return self.chosen(
                None,
                is_right,
                [
                    lambda: Complex(large, small),
                    lambda: Complex(
                        self.op("absolute", "abs({0})", small),
                        self.op("copysign", "math.copysign({0}, {1})", large, z.imag),
                    ),
                ],
            )

        found = self.chosen(None, is_zero, [lambda: Complex(self.of_math("sqrt", half), _ZERO), away_from_zero])
        assert isinstance(found, Complex)
        return found

    def power_of(self, z: Complex, w: Complex) -> Complex:
        """z to the power of w; at zero, the power of the size."""
        if w.imag == _ZERO and w.real.lstrip("-").replace(".0", "").isdigit() and abs(float(w.real)) <= _MOST:
            return self.whole_power(z, int(float(w.real)))
        size = self.size_of(z)
        is_zero = self.put(Op("", (size,), "{0} == 0.0"), "bool", "zero")
        grows = w.real.replace(".", "").isdigit() and float(w.real) > 1.0
        found = self.chosen(
            None,
            is_zero,
            [
                lambda: Complex(_ZERO if grows else self.op("power", "{0} ** {1}", size, w.real), _ZERO),
                lambda: self.exponential(self.product_of(w, self.logarithm(z))),
            ],
        )
        assert isinstance(found, Complex)
        return found

    def whole_power(self, z: Complex, n: int) -> Complex:
        """z to the power of an integer."""
        if n < 0:
            return self.quotient_of(Complex("1.0", _ZERO), self.whole_power(z, -n))
        found = Complex("1.0", _ZERO)
        while n:
            if n % 2:
                found = self.product_of(found, z)
            n //= 2
            if n:
                z = self.product_of(z, z)
        return found

    def circular(self, z: Complex, one: str, other: str, sign: str) -> Complex:
        """A sine or a cosine, by its addition theorem."""
        real = self.times(self.of_math(one, z.real), self.of_math("cosh", z.imag))
        imag = self.times(self.of_math(other, z.real), self.of_math("sinh", z.imag))
        return Complex(real, self.opposite(imag) if sign == "-" else imag)

    def hyperbolic(self, z: Complex, one: str, other: str) -> Complex:
        """A hyperbolic sine or cosine, by its addition theorem."""
        real = self.times(self.of_math(one, z.real), self.of_math("cos", z.imag))
        imag = self.times(self.of_math(other, z.real), self.of_math("sin", z.imag))
        return Complex(real, imag)

    def sine(self, z: Complex) -> Complex:
        """sin z."""
        return self.circular(z, "sin", "cos", "+")

    def cosine(self, z: Complex) -> Complex:
        """cos z."""
        return self.circular(z, "cos", "sin", "-")

    def hyperbolic_sine(self, z: Complex) -> Complex:
        """sinh z."""
        return self.hyperbolic(z, "sinh", "cosh")

    def hyperbolic_cosine(self, z: Complex) -> Complex:
        """cosh z."""
        return self.hyperbolic(z, "cosh", "sinh")

    def are_equal(self, z: Complex, w: Complex) -> Atom:
        """Whether both parts are equal."""
        return self.put(Op("", (z.real, w.real, z.imag, w.imag), "({0} == {1}) and ({2} == {3})"), "bool", "same")

    def both_in(self, text: str, join: str) -> Callable[[Complex], Atom]:
        """A question that is asked of both parts."""
        return lambda z: self.put(Op("", (z.real, z.imag), f"{text} {join} {text.replace('{0}', '{1}')}"), "bool")


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda r, z, w: Complex(r.plus(z.real, w.real), r.plus(z.imag, w.imag)),
    "subtract": lambda r, z, w: Complex(r.minus(z.real, w.real), r.minus(z.imag, w.imag)),
    "negative": lambda r, z: Complex(r.opposite(z.real), r.opposite(z.imag)),
    "alias": lambda r, z: z,
    "multiply": ComplexParts.product_of,
    "divide": ComplexParts.quotient_of,
    "square": lambda r, z: r.product_of(z, z),
    "reciprocal": lambda r, z: r.quotient_of(Complex("1.0", _ZERO), z),
    "power": ComplexParts.power_of,
    "absolute": ComplexParts.size_of,
    "exp": ComplexParts.exponential,
    "log": lambda r, z, *base: r.quotient_of(r.logarithm(z), r.logarithm(base[0])) if base else r.logarithm(z),
    "sqrt": ComplexParts.root_of,
    "sin": ComplexParts.sine,
    "cos": ComplexParts.cosine,
    "tan": lambda r, z: r.quotient_of(r.sine(z), r.cosine(z)),
    "sinh": ComplexParts.hyperbolic_sine,
    "cosh": ComplexParts.hyperbolic_cosine,
    "tanh": lambda r, z: r.quotient_of(r.hyperbolic_sine(z), r.hyperbolic_cosine(z)),
    "conjugate": lambda r, z: Complex(z.real, r.opposite(z.imag)),
    "real": lambda r, z: z.real,
    "imag": lambda r, z: z.imag,
    "angle": ComplexParts.angle_of,
    "rect": lambda r, size, angle: r.product_of(size, r.exponential(Complex(_ZERO, angle.real))),
    "complex": lambda r, z, *w: Complex(r.minus(z.real, w[0].imag), r.plus(z.imag, w[0].real)) if w else z,
    "{0} == {1}": ComplexParts.are_equal,
    "{0} != {1}": lambda r, z, w: r.put(Op("", (r.are_equal(z, w),), "not {0}"), "bool"),
    "np.isnan({0})": lambda r, z: r.both_in("np.isnan({0})", "or")(z),
    "np.isfinite({0})": lambda r, z: r.both_in("np.isfinite({0})", "and")(z),
}
"""Functions of complex numbers, by the name of the primitive, or by the text where it has no derivative."""
REAL_VALUED = frozenset(["absolute", "real", "imag", "angle"])
"""Functions of complex numbers that give real ones."""
