"""Expressions of kernels: atoms, operations on numbers, calls.

In: plain operations of a kernel's text. Out: operations of kernel_statements.py, or values of array_values.py. Called
by rebound_arrays.py, whose class stands upon this one.
"""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ...extend.scalar_code import python_function
from ..kernel_statements import Atom, Expression, Op
from ..threads.thread_calls import ThreadCalls
from ..threads.thread_names import CudaName
from .array_functions import NOT_KNOWN
from .array_values import Array, Complex, Object, Unclear, Value, View
from .complex_pairs import PARTS, complex_function
from .kernel_form import dtype_name, literal_dtype
from .known_functions import OPERATORS, Known, known_functions
from .numba_types import dtype_given
from .stencil_kernels import is_stencil, stencil_kernel

_INTEGER_COMPARISONS: dict[type, Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ROUNDED = Known("", "np.round({0}, {1})")
_FLOATS = ("float32", "float64")
_BOTH = ("real", "imag")


class Expressions(ThreadCalls):
    """The part of a reader that knows expressions."""

    def object(self, node: ast.expr) -> Any:
        """The object of a name that is no variable; None for variables."""
        return (
            self.frame.plain.objects.get(node.id)
            if isinstance(node, ast.Name) and node.id not in self.frame.env
            else None
        )

    def value(self, node: ast.expr) -> Value:
        """The value of an atom."""
        match node:
            case ast.Constant(value) if isinstance(value, bool | int | float):
                return repr(value)
            case ast.Constant(value) if isinstance(value, complex):
                return Complex(repr(value.real), repr(value.imag))
            case ast.Constant(value):
                return Object(value)
            case ast.Tuple(elements) | ast.List(elements):
                return [self.value(one) for one in elements]
            case ast.Name(name):
                found = self.frame.env.get(name)
                if isinstance(found, Unclear):
                    self.refuse(
                        node, f"uses an array that is not the same one each time: {found.why}. Use two arrays, or copy."
                    )
                if found is not None:
                    return found
                if name in self.frame.plain.objects:
                    return self.constant(name, self.frame.plain.objects[name])
                dtype = dtype_name(self.frame.types.get(name)) if name in self.frame.types else ""
                if dtype in PARTS:
                    self.frame.env[name] = Complex(*[self.variable(f"{name}.{part}", dtype) for part in _BOTH])
                    return self.frame.env[name]
                if dtype:
                    # A later statement sets it, in an earlier turn of a loop.
                    self.frame.env[name] = self.variable(name, dtype)
                    return self.frame.env[name]
                return self.refuse(
                    node, f"reads `{name}`, which is not set on every way that leads here. Set it before."
                )
            case _:
                found = self.operation(node, "t")
                is_value = isinstance(found, str | Complex | Array | Object | list | Unclear)
                return found if is_value else self.put(found, "float64")

    def variable(self, name: str, dtype: str) -> Atom:
        """The number that stands for a variable, or a part of one."""
        numbers = self.frame.numbers
        if name not in numbers:
            numbers[name] = self.fresh(self.frame.prefix + name.replace(".", "_"), PARTS.get(dtype, dtype))
        return numbers[name]

    def constant(self, name: str, found: Any) -> Value:
        """A global object as a value."""
        if isinstance(found, tuple):
            return [repr(one) if isinstance(one, bool | int | float) else Object(one) for one in found]
        if isinstance(found, float):
            return {"inf": "math.inf", "-inf": "-math.inf"}.get(repr(found), "math.nan")
        if isinstance(found, np.ndarray):
            return self.global_array(name, found)
        return Object(found)

    def global_array(self, name: str, found: np.ndarray) -> View:
        """A global array: functions that are taken apart may have one name for different arrays."""
        form = self.form
        for known, one in form.objects.items():
            if one is found:
                return self.whole(known)
        if found.dtype.kind not in "biuf":
            return self.refuse(None, f"reads a global array of {found.dtype}. Pass it as an argument.")
        name = self.fresh(name, str(found.dtype))
        form.objects[name], form.ranks[name] = found, found.ndim
        return self.whole(name)

    def number(self, node: ast.expr) -> Atom:
        """The atom of an operand that must be a number."""
        value = self.value(node)
        return (
            value
            if isinstance(value, str)
            else self.refuse(node, "uses an array or an object where a number is needed.")
        )

    def operation(self, node: ast.expr, name: str) -> Value | Expression:
        """The value of a plain operation: an atom, an array, or an operation on numbers that gets a name."""
        match node:
            case ast.Constant() | ast.Name():
                return self.value(node)
            case ast.Tuple(elements) | ast.List(elements):
                return [self.value(one) for one in elements]
            case ast.BinOp(left, ast.MatMult(), right):
                return self.product(node, self.value(left), self.value(right), name)
            case ast.BinOp(left, op, right):
                return self.applied(node, OPERATORS[type(op).__name__], [self.value(left), self.value(right)])
            case ast.UnaryOp(op, operand):
                value = self.value(operand)
                dtype = value.dtype if isinstance(value, Array) else self.form.dtypes.get(str(value))
                kind = "Not" if isinstance(op, ast.Invert) and dtype == "bool" else type(op).__name__
                return self.applied(node, OPERATORS[kind], [value])
            case ast.Compare(left, [op], [right]):
                pair = [self.value(left), self.value(right)]
                if isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq) and any(isinstance(x, Object) for x in pair):
                    return self.compared(op, pair)
                if type(op).__name__ not in OPERATORS:
                    return self.refuse(node, "asks with `in`. Compare each one.")
                if all(isinstance(x, str) and x.lstrip("-").isdigit() for x in pair):
                    return repr(_INTEGER_COMPARISONS[type(op)](int(str(pair[0])), int(str(pair[1]))))
                return self.applied(node, OPERATORS[type(op).__name__], pair)
            case ast.Subscript():
                return self.subscript(node)
            case ast.Attribute(value, attribute):
                return self.attribute(node, self.value(value), attribute)
            case ast.Call():
                found = self.result_of(node, name)
                return found if found is not None else self.refuse_none(node)
            case _:
                return self.refuse(node, "has an expression that has no derivative.")

    def refuse_none(self, call: ast.Call) -> Any:
        """Refuse the value of a call that gives none here."""
        function = self.object(call.func)
        if isinstance(function, CudaName):
            return self.refuse(
                call,
                f"uses the old value that cuda.{function.name}() gives: which thread has got which is not known "
                "afterwards. Leave it unused; positions that threads draw from a counter come from a kernel of their "
                "own, whose result is an argument here.",
            )
        return self.refuse(call, "uses the value of a call that gives none.")

    def compared(self, op: ast.cmpop, pair: list[Value]) -> Value:
        """The truth of a comparison of objects, known now."""
        a, b = [one.value if isinstance(one, Object) else one for one in pair]
        same = a is b if isinstance(op, ast.Is | ast.IsNot) else a == b
        return repr(bool(same is not isinstance(op, ast.IsNot | ast.NotEq)))

    def applied(self, node: ast.AST, known: Any, operands: Sequence[Value]) -> Value | Expression:
        """A function of numbers, applied to numbers or to each element of arrays."""
        if f"{{{len(operands) - 1}}}" not in known.text or f"{{{len(operands)}}}" in known.text:
            return self.refuse(node, f"calls a function with {len(operands)} arguments, which has no derivative here.")
        if any(isinstance(one, Array) for one in operands):
            return self.elementwise(node, known, operands)
        if any(isinstance(one, list) for one in operands):
            sides = [one for one in operands if isinstance(one, list)]
            if known.text == "{0} + {1}" and len(sides) == 2:
                return [*sides[0], *sides[1]]
            return self.refuse(node, "computes with a tuple. Take its parts.")
        if any(isinstance(one, Complex) for one in operands):
            return self.of_complex(node, known, operands)
        if not all(isinstance(one, str) for one in operands):
            return self.refuse(node, "computes with something that is no number.")
        return Op(known.primitive, tuple(map(str, operands)), known.text)

    def result_of(self, call: ast.Call, name: str = "t") -> Any:
        """The value of a call, or None if it gives none."""
        if isinstance(call.func, ast.Attribute):
            return self.method(call, self.value(call.func.value), call.func.attr, name)
        function = self.object(call.func)
        held = self.frame.env.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if isinstance(held, Object):
            function = cast("Any", held.value)
        if function is type and len(call.args) == 1:
            operand = self.value(call.args[0])
            if isinstance(operand, str):
                return Object(np.dtype(self.form.dtypes.get(operand) or literal_dtype(operand)).type)
            return self.refuse(call, "asks for the type of something that is no number. Use its dtype.")
        of_complex = complex_function(function)
        if of_complex and not call.keywords:
            return self.of_parts(call, of_complex)
        if isinstance(function, CudaName):
            return self.thread_call(call, function.name, name)
        if function in (round, np.round) and len(call.args) == 2 and not call.keywords:
            return self.applied(call, _ROUNDED, [self.value(one) for one in call.args])
        known = self.known(function)
        if known is not None:
            if call.keywords:
                return self.refuse(call, f"calls {function.__name__}() with keywords, which is not supported here.")
            return self.applied(call, known, [self.value(one) for one in call.args])
        if _is_scalar_type(function):
            operand = self.value(call.args[0])
            shown = getattr(function, "__name__", str(function))
            is_float = shown.startswith(("float", "double"))
            text = f"{shown}({{0}})" if function in (int, float, bool) else f"np.{shown}({{0}})"
            return self.applied(call, Known("alias" if is_float else "", text), [operand])
        if function in (min, max):
            return self.extreme(call, function)
        if function is divmod:
            pair = [self.value(one) for one in call.args]
            return [self.named(self.applied(call, OPERATORS[one], pair)) for one in ("FloorDiv", "Mod")]
        if isinstance(function, type) and issubclass(function, tuple) and hasattr(function, "_fields"):
            return self.fields(call, function)
        if function is len:
            return self.length(call, self.value(call.args[0]))
        if function is tuple:
            return self.value(call.args[0])
        handled = self.array_call(call, function, name)
        if handled is not NOT_KNOWN:
            return handled
        if is_stencil(function):
            return self.stencil(call, function)
        if python_function(function) is not None and not str(getattr(function, "__module__", "")).startswith("numpy"):
            return self.called(call, function)
        shown = getattr(function, "__name__", str(function))
        return self.refuse(
            call, f"calls {shown}(), of which no derivative is known here. Give nb.primitive a rule, or write it out."
        )

    def of_parts(self, call: ast.Call, name: str) -> Value | Expression:
        """A function that is known of complex numbers alone, of numbers or for each element of arrays."""
        operands = [self.value(one) for one in call.args]
        arrays = [one for one in operands if isinstance(one, Array)]
        if not arrays:
            return self.of_complex(call, name, operands)
        if name in _BOTH:
            return self.attribute(call, operands[0], name)
        return self.complex_elementwise(call, name, operands, self.common(arrays))

    def stencil(self, call: ast.Call, function: Any) -> Value:
        """A call of a function of `numba.stencil`: of the kernel with its loops."""
        if any(one.arg != "out" for one in call.keywords):
            return self.refuse(call, "calls a stencil with keywords other than out.")
        given = [*call.args, *[one.value for one in call.keywords]]
        kernel = stencil_kernel(function, [self.kind(one) for one in call.args], bool(call.keywords), dtype_given)
        found = self.called(ast.copy_location(ast.Call(call.func, given, []), call), kernel)
        assert found is not None
        return found

    def known(self, function: Any) -> Any:
        """The primitive of a function of numbers, if it is one."""
        try:
            return known_functions().get(function)
        except TypeError:
            return None

    def fields(self, call: ast.Call, kind: Any) -> list[Value]:
        """The fields of a named tuple that is made."""
        try:
            bound = inspect.signature(kind).bind(*call.args, **{str(one.arg): one.value for one in call.keywords})
        except TypeError as error:
            return self.refuse(call, f"makes {kind.__name__} of other fields than it has: {error}.")
        missing = [one for one in kind._fields if one not in bound.arguments]
        if missing:
            return self.refuse(call, f"makes {kind.__name__} without {', '.join(missing)}. Give all fields.")
        return [self.value(bound.arguments[one]) for one in kind._fields]

    def extreme(self, call: ast.Call, function: Any) -> Value | Expression:
        """Python's min and max."""
        operands = [self.value(one) for one in call.args]
        if len(operands) == 1 and isinstance(operands[0], list):
            operands = operands[0]
        if len(operands) == 1 and isinstance(operands[0], Array):
            return self.reduced(call, operands[0], function.__name__)
        known = Known("minimum" if function is min else "maximum", f"{function.__name__}({{0}}, {{1}})")
        found = operands[0]
        for k, other in enumerate(operands[1:]):
            result = self.applied(call, known, [found, other])
            if k == len(operands) - 2:
                return result
            assert isinstance(result, Op)
            dtypes = {self.form.dtypes.get(one) or literal_dtype(one) for one in result.args}
            found = self.put(result, next((d for d in _FLOATS[::-1] if d in dtypes), "int64"))
        return found


def _is_scalar_type(function: Any) -> bool:
    if function in (int, float, bool):
        return True
    if isinstance(function, type) and issubclass(function, np.number | np.bool_):
        return True
    return type(function).__module__.startswith("numba") and dtype_name(function) != ""
