"""Operations on numbers as LLVM IR, with the meaning that they have for Numba.

In: the text of an operation, such as `math.exp({0}) * {1}`, and its operands as `Number`s. Out: `NumberCode`, which has
collected the lines of IR. Called by statement_code.py. A number is one of four kinds: all integers are 64 bits wide, as
results of integers are for Numba. Texts that are not known here raise `UnknownPartError`; Numba compiles these.
"""

from __future__ import annotations

import ast
import functools
import math
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...compiler.scalars import scalar_ir

BOOL, INT, FLOAT32, FLOAT64 = "i1", "i64", "float", "double"
KINDS = (BOOL, INT, FLOAT32, FLOAT64)


class UnknownPartError(Exception):
    """A derivative has a part of which no machine code is made here; Numba compiles it."""


class Number(NamedTuple):
    """A number: its value in IR and its kind, which is LLVM's type. `natural`: certainly not negative."""

    value: str
    kind: str
    natural: bool = False


def joined(one: str, other: str) -> str:
    """The kind of a variable that is of two kinds."""
    if {one, other} == {INT, FLOAT32}:
        return FLOAT64
    return KINDS[max(KINDS.index(one), KINDS.index(other))]


_CASTS = {
    "int": INT,
    "float": FLOAT64,
    "bool": BOOL,
    "int64": INT,
    "float64": FLOAT64,
    "float32": FLOAT32,
    "bool_": BOOL,
}
_INTRINSICS = frozenset("sqrt sin cos exp log log2 log10 fabs".split())
_LIBRARY = {
    **{name: name for name in "tan sinh cosh tanh expm1 log1p erf erfc hypot atan2 exp2 cbrt fmod".split()},
    **{name: name for name in "asin acos atan asinh acosh atanh lgamma".split()},
    **{f"arc{name}": f"a{name}" for name in "sin cos tan sinh cosh tanh".split()},
    "arctan2": "atan2",
    "gamma": "tgamma",
}
_OWN = {
    **{f"llvm.{name}": name for name in "sin cos exp log log2 log10".split()},
    **{name: name for name in "tan sinh cosh tanh expm1 log1p erf erfc".split()},
    "llvm.pow": "power",
    "lgamma": "gammaln",
}
"""nbgrad's primitives that are these functions."""
_HELPERS = {f"nbgrad_{name}": name for name in ("cbrt", "digamma", "polygamma")}
_ROUNDED = frozenset("floor ceil trunc".split())
_TESTS = {"isnan": "uno", "isinf": "oeq", "isfinite": "one"}
_COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("oeq", "eq"),
    ast.NotEq: ("une", "ne"),
    ast.Lt: ("olt", "slt"),
    ast.LtE: ("ole", "sle"),
    ast.Gt: ("ogt", "sgt"),
    ast.GtE: ("oge", "sge"),
}
_BITS: dict[type[ast.operator], str] = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}
_PLACE = "operand_"
_MOST_PRODUCTS = 65536


@functools.lru_cache(maxsize=4096)
def _tree(text: str, count: int) -> ast.expr:
    """The syntax of an operation, with names for its operands."""
    return ast.parse(text.format(*[f"{_PLACE}{k}" for k in range(count)]), mode="eval").body


@functools.lru_cache(maxsize=4096)
def literal(atom: str) -> Number:
    """The number that a literal is."""
    value = eval(atom, {"__builtins__": {}, "math": math})
    return constant(value)


def constant(value: float) -> Number:
    """A number that is known."""
    if isinstance(value, bool):
        return Number("true" if value else "false", BOOL)
    if isinstance(value, int):
        return Number(str(value), INT, value >= 0)
    if isinstance(value, float):
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
        return Number(f"0x{bits:016X}", FLOAT64)
    raise UnknownPartError


class NumberCode:
    """Lines of IR of a function, and the library functions that they call."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0
        self.label = "entry"
        self.declared: dict[str, str] = {}
        self.scalars: dict[str, str] = {}
        self.exact = True
        """Whether values must be those of the functions that Numba calls."""

    # ----- Lines -----

    def new(self, base: str = "v") -> str:
        """A new name of the function's own."""
        self.count += 1
        return f"%{base}.{self.count}"

    def put(self, line: str) -> None:
        """Write a line."""
        self.lines.append(f"  {line}")

    def value(self, kind: str, line: str, natural: bool = False) -> Number:
        """A number that a line computes."""
        name = self.new()
        self.put(f"{name} = {line}")
        return Number(name, kind, natural)

    def begin(self, label: str) -> None:
        """Begin a basic block."""
        self.label = label
        self.lines.append(f"{label}:")

    def labels(self, *bases: str) -> list[str]:
        """New labels."""
        self.count += 1
        return [f"{base}.{self.count}" for base in bases]

    def called(self, function: str, kind: str, *operands: Number) -> Number:
        """A call of a function without effects, of numbers of one kind."""
        kinds = ", ".join([one.kind for one in operands])
        self.declared[function] = f"declare {kind} @{function}({kinds}) nounwind willreturn memory(none)"
        return self.value(kind, f"call {kind} @{function}({', '.join(f'{o.kind} {o.value}' for o in operands)})")

    # ----- Kinds -----

    def cast(self, number: Number, kind: str) -> Number:
        """A number as another kind."""
        value, own = number.value, number.kind
        if own == kind:
            return number
        floats = (FLOAT32, FLOAT64)
        if kind == BOOL:
            test = "fcmp une" if own in floats else "icmp ne"
            return self.value(BOOL, f"{test} {own} {value}, {'0.0' if own in floats else '0'}")
        if own in floats and kind in floats:
            return self.value(kind, f"{'fpext' if kind == FLOAT64 else 'fptrunc'} {own} {value} to {kind}")
        if own in floats:
            return self.value(kind, f"fptosi {own} {value} to {kind}")
        sign = "u" if own == BOOL else "s"
        if kind == INT:
            return self.value(kind, f"zext i1 {value} to i64", natural=True)
        return self.value(kind, f"{sign}itofp {own} {value} to {kind}")

    def alike(self, *numbers: Number) -> tuple[str, list[Number]]:
        """Numbers as the kind in which an operation on all of them is computed."""
        kind = functools.reduce(joined, [one.kind for one in numbers])
        kind = INT if kind == BOOL else kind
        return kind, [self.cast(one, kind) for one in numbers]

    def as_float(self, number: Number) -> Number:
        """A number as a float."""
        return number if number.kind in (FLOAT32, FLOAT64) else self.cast(number, FLOAT64)

    # ----- Expressions -----

    def operation(self, text: str, operands: Sequence[Number]) -> Number:
        """The number that the text of an operation gives."""
        return self.expression(_tree(text, len(operands)), operands)

    def expression(self, node: ast.expr, given: Sequence[Number]) -> Number:
        """The number that an expression gives."""
        match node:
            case ast.Name(name) if name.startswith(_PLACE):
                return given[int(name.removeprefix(_PLACE))]
            case ast.Constant(bool() | int() | float() as value):
                return constant(value)
            case ast.Attribute(ast.Name("math" | "np"), "nan" | "inf" | "pi" | "e" as name):
                return constant(getattr(math, name))
            case ast.UnaryOp(operator, inner):
                return self.unary(operator, self.expression(inner, given))
            case ast.BinOp(left, ast.Pow(), right):
                return self.power(self.expression(left, given), self.expression(right, given))
            case ast.BinOp(left, operator, right):
                return self.binary(operator, self.expression(left, given), self.expression(right, given))
            case ast.Compare(left, [operator], [right]):
                return self.compared(operator, self.expression(left, given), self.expression(right, given))
            case ast.BoolOp(operator, parts):
                return self.truth(operator, [self.expression(one, given) for one in parts])
            case ast.IfExp(test, then, orelse):
                return self.choice(self.expression(test, given), then, orelse, given)
            case ast.Call(function, arguments, []):
                return self.call(ast.unparse(function), [self.expression(one, given) for one in arguments])
            case _:
                raise UnknownPartError

    def unary(self, operator: ast.unaryop, number: Number) -> Number:
        """An operation on one number."""
        if isinstance(operator, ast.Not):
            return self.value(BOOL, f"xor i1 {self.cast(number, BOOL).value}, true")
        kind, (number,) = self.alike(number)
        match operator:
            case ast.UAdd():
                return number
            case ast.USub() if kind == INT:
                return self.value(INT, f"sub i64 0, {number.value}")
            case ast.USub():
                return self.value(kind, f"fneg {kind} {number.value}")
            case ast.Invert() if kind == INT:
                return self.value(INT, f"xor i64 {number.value}, -1")
            case _:
                raise UnknownPartError  # an operator

    def binary(self, operator: ast.operator, left: Number, right: Number) -> Number:
        """An operation on two numbers."""
        if isinstance(operator, tuple(_BITS)) and left.kind == right.kind == BOOL:
            return self.value(BOOL, f"{_BITS[type(operator)]} i1 {left.value}, {right.value}")
        kind, (left, right) = self.alike(left, right)
        natural = left.natural and right.natural
        pair = f"{kind} {left.value}, {right.value}"
        if kind != INT:
            names: dict[type[ast.operator], str] = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
            if type(operator) in names:
                return self.value(kind, f"{names[type(operator)]} {pair}")
            rest = {ast.Mod: "modulo", ast.FloorDiv: "quotient"}.get(type(operator))
            if rest is None:
                raise UnknownPartError  # an operator of floats
            return self.value(kind, f"call {kind} @nbgrad.{rest}.{kind}({kind} {left.value}, {kind} {right.value})")
        match operator:
            case ast.Add():
                return self.value(INT, f"add {pair}", natural)
            case ast.Sub():
                return self.value(INT, f"sub {pair}")
            case ast.Mult():
                return self.value(INT, f"mul {pair}", natural)
            case ast.Div():
                return self.binary(operator, self.cast(left, FLOAT64), self.cast(right, FLOAT64))
            case ast.FloorDiv() | ast.Mod():
                return self.integer_quotient(left, right, isinstance(operator, ast.Mod))
            case ast.LShift():
                return self.value(INT, f"shl {pair}")
            case ast.RShift():
                return self.value(INT, f"ashr {pair}")
            case _ if type(operator) in _BITS:
                return self.value(INT, f"{_BITS[type(operator)]} {pair}")
            case _:
                raise UnknownPartError  # an operator of integers

    def integer_quotient(self, left: Number, right: Number, rest: bool) -> Number:
        """Python's `//` or `%` of integers; 0 by a divisor of 0, as Numba's error model for NumPy says."""
        x, zero = left.value, self.value(BOOL, f"icmp eq i64 {right.value}, 0")
        y = self.value(INT, f"select i1 {zero.value}, i64 1, i64 {right.value}").value
        q = self.value(INT, f"sdiv i64 {x}, {y}").value
        r = self.value(INT, f"srem i64 {x}, {y}").value
        uneven = self.value(BOOL, f"icmp ne i64 {r}, 0").value
        signs = self.value(INT, f"xor i64 {r}, {y}").value
        differ = self.value(BOOL, f"icmp slt i64 {signs}, 0").value
        down = self.value(BOOL, f"and i1 {uneven}, {differ}").value
        if rest:
            more = self.value(INT, f"select i1 {down}, i64 {y}, i64 0").value
            found = self.value(INT, f"add i64 {r}, {more}").value
        else:
            less = self.value(INT, f"zext i1 {down} to i64").value
            found = self.value(INT, f"sub i64 {q}, {less}").value
        natural = left.natural and right.natural
        return self.value(INT, f"select i1 {zero.value}, i64 0, i64 {found}", natural)

    def power(self, base: Number, exponent: Number) -> Number:
        """A power: products for a literal integer, in Numba's order."""
        if exponent.kind == INT and exponent.value.lstrip("-").isdigit():
            count = int(exponent.value)
            kind, (factor,) = self.alike(base)
            if abs(count) <= _MOST_PRODUCTS and (kind != INT or count >= 0):
                return self.products(factor, abs(count), count < 0)
        if base.kind in (BOOL, INT) and exponent.kind in (BOOL, INT):
            raise UnknownPartError  # a power of integers
        return self.function("llvm.pow", [base, exponent])

    def products(self, factor: Number, count: int, inverted: bool) -> Number:
        """A power by repeated squares."""
        kind, times = factor.kind, "mul" if factor.kind == INT else "fmul"
        found: Number | None = None
        while count:
            if count & 1:
                found = factor if found is None else self.value(kind, f"{times} {kind} {found.value}, {factor.value}")
            count >>= 1
            if count:
                factor = self.value(kind, f"{times} {kind} {factor.value}, {factor.value}")
        one = self.cast(constant(1), kind) if kind == INT else Number("1.0", kind)
        if found is None:
            return one
        return self.value(kind, f"fdiv {kind} 1.0, {found.value}") if inverted else found

    def compared(self, operator: ast.cmpop, left: Number, right: Number) -> Number:
        """A comparison."""
        if type(operator) not in _COMPARED:
            raise UnknownPartError  # a comparison
        kind, (left, right) = self.alike(left, right)
        floats, integers = _COMPARED[type(operator)]
        test = f"icmp {integers}" if kind == INT else f"fcmp {floats}"
        return self.value(BOOL, f"{test} {kind} {left.value}, {right.value}")

    def truth(self, operator: ast.boolop, parts: Sequence[Number]) -> Number:
        """`and` or `or` of truth values."""
        if any(one.kind != BOOL for one in parts):
            raise UnknownPartError  # `and` of numbers
        name = "and" if isinstance(operator, ast.And) else "or"
        return functools.reduce(lambda x, y: self.value(BOOL, f"{name} i1 {x.value}, {y.value}"), parts)

    def choice(self, test: Number, then: ast.expr, orelse: ast.expr, given: Sequence[Number]) -> Number:
        """One of two expressions; where one is costly, only that one is computed."""
        test = self.cast(test, BOOL)
        if not any(isinstance(one, ast.Call | ast.Pow) for side in (then, orelse) for one in ast.walk(side)):
            return self.selected(test, self.expression(then, given), self.expression(orelse, given))
        labels = self.labels("then", "else", "join")
        self.put(f"br i1 {test.value}, label %{labels[0]}, label %{labels[1]}")
        found: list[tuple[Number, str]] = []
        waiting: list[int] = []
        for label, side in zip(labels, (then, orelse), strict=False):
            self.begin(label)
            found.append((self.expression(side, given), self.label))
            waiting.append(len(self.lines))
        kind = joined(found[0][0].kind, found[1][0].kind)
        # Lines of a conversion belong to the end of each side.
        tail, self.lines = self.lines[waiting[0] :], self.lines[: waiting[0]]
        sides: list[str] = []
        for k, (number, label) in enumerate(found):
            if k == 1:
                self.lines += tail
            number = self.cast(number, kind)
            self.put(f"br label %{labels[2]}")
            sides.append(f"[{number.value}, %{label}]")
        self.begin(labels[2])
        return self.value(kind, f"phi {kind} {', '.join(sides)}")

    def selected(self, test: Number, one: Number, other: Number) -> Number:
        """One of two numbers."""
        kind = joined(one.kind, other.kind)
        first, second = self.cast(one, kind), self.cast(other, kind)
        natural = first.natural and second.natural
        return self.value(kind, f"select i1 {test.value}, {kind} {first.value}, {kind} {second.value}", natural)

    # ----- Functions -----

    def call(self, function: str, given: list[Number]) -> Number:
        """A call of a function of numbers."""
        name = function.removeprefix("math.").removeprefix("np.")
        of_numpy = function.startswith("np.")
        if name in _CASTS and len(given) == 1:
            found = self.cast(given[0], _CASTS[name])
            return found._replace(natural=given[0].natural and found.kind == INT)
        found = _KNOWN.get(function)
        if found is not None:
            return found(self, *given)
        if function in _HELPERS:
            return self.own_function(_HELPERS[function], FLOAT64, [self.cast(one, FLOAT64) for one in given])
        if not function.startswith(("math.", "np.")):
            raise UnknownPartError
        if name in _TESTS:
            return self.tested(name, given[0])
        if name in _ROUNDED:
            whole = self.function(f"llvm.{name}", given)
            return whole if of_numpy else self.cast(whole, INT)
        if name in _INTRINSICS:
            return self.function(f"llvm.{name}", given)
        if name == "copysign" or name == "rint":
            return self.function(f"llvm.{name}", given)
        if name in _LIBRARY:
            return self.function(_LIBRARY[name], given)
        raise UnknownPartError

    def function(self, name: str, given: Sequence[Number]) -> Number:
        """A call of a function of floats, of LLVM's or of the C library."""
        kind, floats = self.alike(*map(self.as_float, given))
        if name in _OWN and not self.exact:
            return self.own_function(_OWN[name], kind, floats)
        suffix = f".{_short(kind)}" if name.startswith("llvm.") else "f" if kind == FLOAT32 else ""
        return self.called(f"{name}{suffix}", kind, *floats)

    def rounded(self, number: Number, digits: Sequence[Number]) -> Number:
        """A number rounded to a whole one; to decimals only Numba rounds."""
        if digits:
            raise UnknownPartError
        return self.function("llvm.rint", [number]) if number.kind in (FLOAT32, FLOAT64) else number

    def own_function(self, name: str, kind: str, given: Sequence[Number]) -> Number:
        """A call of a primitive of nbgrad's, which becomes part of the program."""
        dtype = np.dtype(np.float64 if kind == FLOAT64 else np.float32)
        symbol, self.scalars[symbol] = scalar_ir(name, [dtype] * len(given), dtype)
        return self.value(kind, f"call {kind} @{symbol}({', '.join([f'{kind} {one.value}' for one in given])})")

    def tested(self, name: str, number: Number) -> Number:
        """A test of a float."""
        if number.kind in (BOOL, INT):
            return constant(name == "isfinite")
        kind = number.kind
        if name == "isnan":
            return self.value(BOOL, f"fcmp uno {kind} {number.value}, 0.0")
        size = self.function("llvm.fabs", [number])
        infinite = "0x7FF0000000000000"
        return self.value(BOOL, f"fcmp {_TESTS[name]} {kind} {size.value}, {infinite}")

    def absolute(self, number: Number) -> Number:
        """The absolute value."""
        if number.kind in (FLOAT32, FLOAT64):
            return self.function("llvm.fabs", [number])
        number = self.cast(number, INT)
        negative = self.value(BOOL, f"icmp slt i64 {number.value}, 0")
        return self.selected(negative, self.value(INT, f"sub i64 0, {number.value}"), number)

    def extreme(self, operator: ast.cmpop, *given: Number) -> Number:
        """Numba's `max` and `min`: a later number only if it is greater or less."""
        kind, numbers = self.alike(*given)
        test = _COMPARED[type(operator)][1 if kind == INT else 0]
        found = numbers[0]
        for one in numbers[1:]:
            better = self.value(BOOL, f"{'icmp' if kind == INT else 'fcmp'} {test} {kind} {one.value}, {found.value}")
            natural = found.natural or one.natural if isinstance(operator, ast.Gt) else found.natural and one.natural
            chosen = self.value(kind, f"select i1 {better.value}, {kind} {one.value}, {kind} {found.value}")
            found = chosen._replace(natural=natural and kind == INT)
        return found

    def sign(self, number: Number) -> Number:
        """NumPy's sign: that of a number, a zero, or no number."""
        kind, (number,) = self.alike(number)
        one = self.cast(constant(1), kind)
        above = self.compared(ast.Gt(), number, self.cast(constant(0), kind))
        below = self.compared(ast.Lt(), number, self.cast(constant(0), kind))
        return self.selected(above, one, self.selected(below, self.unary(ast.USub(), one), number))

    def plus(self, left: Number, right: Number) -> Number:
        """A sum that LLVM may put into another order."""
        kind, (left, right) = self.alike(left, right)
        name = "add" if kind == INT else "fadd reassoc"
        return self.value(kind, f"{name} {kind} {left.value}, {right.value}")


_KNOWN: dict[str, Callable[..., Number]] = {
    "abs": NumberCode.absolute,
    "max": lambda code, *given: code.extreme(ast.Gt(), *given),
    "min": lambda code, *given: code.extreme(ast.Lt(), *given),
    "plus": NumberCode.plus,
    "np.sign": NumberCode.sign,
    "np.round": lambda code, x, *digits: code.rounded(x, digits),
    "np.logical_not": lambda code, x: code.unary(ast.Not(), x),
    "np.logical_and": lambda code, x, y: code.truth(ast.And(), [code.cast(x, BOOL), code.cast(y, BOOL)]),
    "np.logical_or": lambda code, x, y: code.truth(ast.Or(), [code.cast(x, BOOL), code.cast(y, BOOL)]),
    "pow": NumberCode.power,
    "math.pow": lambda code, base, exponent: code.function("llvm.pow", [base, exponent]),
    "np.power": NumberCode.power,
    "math.radians": lambda code, x: code.binary(ast.Mult(), x, constant(math.pi / 180.0)),
    "math.degrees": lambda code, x: code.binary(ast.Mult(), x, constant(180.0 / math.pi)),
}
"""Functions that are no single one of LLVM's or of the C library."""


def _short(kind: str) -> str:
    return "f64" if kind == FLOAT64 else "f32"
