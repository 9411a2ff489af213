"""The functions of arrays that kernels call, as loops over elements.

In: calls in a kernel's text. Out: statements on elements, and values of array_values.py. Called by
kernel_expressions.py, whose class stands upon this one.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ..kernel_statements import Atom, Expression, If, Load, Op, Set, copied
from .array_forms import ArrayForms
from .array_values import Array, Complex, Elementwise, Object, Scalar, Stored, Value, View, arrays_of
from .complex_pairs import PARTS
from .kernel_choice import chosen_kernel
from .kernel_form import literal_dtype
from .known_functions import OPERATORS, Known, known_functions
from .plain_form import AN_ARRAY
from .record_parts import record_of

NOT_KNOWN: Any = object()
"""The value of a call of a function that is none of those here."""
_MAKERS: dict[Any, str] = {
    np.zeros: "0.0",
    np.ones: "1.0",
    np.empty: "",
    np.full: "?",
    np.zeros_like: "0.0",
    np.ones_like: "1.0",
    np.empty_like: "",
    np.full_like: "?",
}
_REDUCTIONS: dict[Any, str] = {
    np.sum: "sum",
    sum: "sum",
    np.mean: "mean",
    np.prod: "prod",
    np.max: "max",
    np.min: "min",
    np.amax: "max",
    np.amin: "min",
}


_JOINED = (np.concatenate, np.append, np.hstack, np.vstack, np.stack, np.column_stack)
_AS_FUNCTIONS = {
    one.__name__: one
    for one in (np.argmax, np.argmin, np.argsort, np.all, np.any, np.cumprod, np.cumsum, np.nonzero, np.repeat)
} | {one.__name__: one for one in (np.std, np.take, np.trace, np.var)}
"""Methods of arrays that are functions of arrays."""


class ArrayFunctions(ArrayForms):
    """The part of a reader that knows functions of arrays."""

    @abstractmethod
    def called(self, node: ast.Call, function: Any) -> Value | None:
        """The result of a call of another compiled function."""

    def array_call(self, call: ast.Call, function: Any, name: str) -> Any:
        """The value of a call of a function of arrays; `NOT_KNOWN` if it is none of these."""
        try:
            hash(function)
        except TypeError:
            return NOT_KNOWN
        if function in _MAKERS:
            return self.maker(call, function, name)
        if function in _REDUCTIONS:
            return self.reduction(call, self.value(call.args[0]), _REDUCTIONS[function], call.args[1:])
        if function is np.searchsorted:
            given = self.value(call.args[1])
            if isinstance(given, Array) and given.ndim == 1:
                return self.opaque_of_each(call, "np.searchsorted", given)
            return self.opaque(call, "np.searchsorted")
        if function in (np.dot, np.vdot):
            first = self.value(call.args[0])
            if function is np.vdot and isinstance(first, Array) and first.dtype in PARTS:
                first = self.complex_elementwise(call, "conjugate", [first], first.extents)
            return self.product(call, first, self.value(call.args[1]), name)
        if function is np.where and len(call.args) == 3:
            return self.where(call, [self.value(one) for one in call.args])
        if function is np.clip and len(call.args) == 3:
            low = self.named(
                self.applied(call, known_functions()[np.maximum], [self.value(call.args[0]), self.value(call.args[1])])
            )
            found = self.applied(call, known_functions()[np.minimum], [low, self.value(call.args[2])])
            first = self.value(call.args[0])
            narrow = isinstance(first, Array) and first.dtype == "float32"
            return self.cast(found, "float32") if narrow and isinstance(found, Array) else found
        if function is np.arange and not call.keywords:
            return self.arange(call)
        if function in (np.array, np.asarray, np.ascontiguousarray, np.copy):
            return self.copy(call, function, name)
        if function in (np.shape, np.size, np.ndim) and len(call.args) == 1:
            return self.attribute(call, self.value(call.args[0]), function.__name__)
        if function in (np.reshape, np.ravel):
            return self.method(call, self.value(call.args[0]), function.__name__, name, call.args[1:])
        if function in _JOINED:
            return self.joined_arrays(call, function, name)
        found, is_form = self.form_call(call, function)
        return found if is_form else self.by_kernel(call, function)

    def by_kernel(self, call: ast.Call, function: Any) -> Any:
        """The value of a call of a function for which there is a kernel; `NOT_KNOWN` if there is none."""
        from .array_kernels import ARRAY_KERNELS, OF_COMPLEX
        from .decomposition_kernels import LAPACK_ELEMENTS

        if function in LAPACK_ELEMENTS:
            array = self.materialized(cast("Array", self.value(call.args[0])), "given").array
            return Op("", (*map(self.number, call.args[1:]),), LAPACK_ELEMENTS[function], (array,))
        if not any(function is one for one, _ in ARRAY_KERNELS):
            return NOT_KNOWN
        given = {str(one.arg): one.value for one in call.keywords}
        values = [self.value(one) for one in (*call.args, *given.values())]
        if any(getattr(one, "dtype", "") in PARTS for one in values) and function not in OF_COMPLEX:
            return self.refuse(call, f"calls {function.__name__}() with complex numbers. Write the loop.")
        found = chosen_kernel(function, call.args, given, lambda one: _rank(self.value(one)), ast.Constant)
        if found is not None:
            kernel, arguments = found
            if "rcond" in arguments and not _is_small(self.value(arguments["rcond"])):
                self.refuse(call, f"gives {function.__name__}() an rcond above 1e-8, or one that is no literal.")
            named = [ast.keyword(name, one) for name, one in arguments.items()]
            return self.called(ast.copy_location(ast.Call(call.func, [], named), call), kernel)
        return self.refuse(
            call, f"calls {function.__name__}() in a form of which no derivative is known here. Write the loop."
        )

    def copy(self, call: ast.Call, function: Any, name: str) -> Value:
        """np.array and its like, of which some give the array itself."""
        value = self.value(call.args[0])
        given = [*call.args[1:], *[one.value for one in call.keywords if one.arg == "dtype"]]
        if len(given) > 1 or any(one.arg != "dtype" for one in call.keywords):
            return self.refuse(call, f"calls {function.__name__}() with options other than dtype.")
        dtype = self.dtype(call, self.value(given[0])) if given else ""
        if isinstance(value, list):
            made = self.gathered(call, value)
            return self.materialized(self.cast(made, dtype), name) if dtype not in ("", made.dtype) else made
        if isinstance(value, str) and not dtype:
            return value
        if not isinstance(value, Array):
            return self.refuse(call, f"calls {function.__name__}() with something that is no array.")
        if dtype not in ("", value.dtype):
            return self.materialized(self.cast(value, dtype), self.frame.prefix + name)
        is_same = function is np.asarray or (
            function is np.ascontiguousarray and getattr(self.kind(call.args[0]), "layout", "") == "C"
        )
        return value if is_same and isinstance(value, Stored) else self.materialized(value, self.frame.prefix + name)

    def joined_arrays(self, call: ast.Call, function: Any, name: str) -> Value:
        """np.concatenate and its like."""
        parts = self.value(call.args[0]) if function is not np.append else [self.value(one) for one in call.args]
        options = dict(zip(("axis", "out"), call.args[1:], strict=False))
        options |= {str(one.arg): one.value for one in call.keywords}
        axis = str(self.value(options["axis"])) if options and function is not np.append else "0"
        if not isinstance(parts, list) or options.keys() - {"axis"} or not axis.lstrip("-").isdigit():
            return self.refuse(call, f"calls {function.__name__}() otherwise than with a tuple of arrays and an axis.")
        if function is np.append:
            parts = [self.gathered(call, [one]) if isinstance(one, str) else one for one in parts]
            if any(isinstance(one, Array) and one.ndim != 1 for one in parts):
                return self.refuse(call, "appends to an array of several axes. Use np.concatenate.")
        if function in (np.stack, np.column_stack):
            place = int(axis) if function is np.stack else 1
            parts = [
                self.with_new_axis(one, place % (one.ndim + 1))
                if isinstance(one, Array) and (function is np.stack or one.ndim == 1)
                else one
                for one in parts
            ]
            axis = str(place)
        if function is np.hstack:
            axis = "1" if isinstance(parts[0], Array) and parts[0].ndim > 1 else "0"
        if function is np.vstack:
            parts = [self.as_row(one) if isinstance(one, Array) and one.ndim == 1 else one for one in parts]
        return self.concatenated(call, parts, int(axis), self.frame.prefix + name)

    def with_new_axis(self, value: Array, axis: int) -> View:
        """An array with one more axis, of length 1."""
        made = self.materialized(value, "part")
        return cast("View", self.part(made, [*[("", "", 1)] * axis, None]))

    def as_row(self, value: Array) -> View:
        """A vector as a matrix of one row."""
        return cast("View", self.part(self.materialized(value, "row"), [None]))

    def named(self, value: Any) -> Value:
        """A value with a name for an operation on numbers."""
        return self.put(value, "float64") if isinstance(value, Op | Load) else value

    def maker(self, call: ast.Call, function: Any, name: str) -> Value:
        """np.zeros and its like."""
        names = ["shape", "fill" if "full" in function.__name__ else "dtype", "dtype"]
        renamed = {"a": "shape", "prototype": "shape", "fill_value": "fill"}
        given = dict(zip(names, call.args, strict=False))
        given |= {renamed.get(str(one.arg), str(one.arg)): one.value for one in call.keywords}
        first = self.value(given["shape"])
        alike = self.kind_of_records(given["shape"]) if function.__name__.endswith("_like") else None
        record = record_of(alike) or self.record_dtype(given.get("dtype"))
        if record is not None and _MAKERS[function] in ("", "0.0"):
            shape = self.extents_of(call, first, alike) if alike else first if isinstance(first, list) else [first]
            return self.made_records(self.frame.prefix + name, list(map(str, shape)), record, _MAKERS[function])
        if function.__name__.endswith("_like"):
            if not isinstance(first, Array):
                return self.refuse(call, "makes an array like something that is no array.")
            shape, dtype = list(first.extents), first.dtype
        else:
            shape = [str(one) for one in first] if isinstance(first, list) else [str(first)]
            dtype = "float64"
        if "dtype" in given:
            dtype = self.dtype(call, self.value(given["dtype"]))
        fill = _MAKERS[function]
        if fill == "?":
            number = self.value(given["fill"])
            if isinstance(number, Complex):
                made = self.local(self.frame.prefix + name, shape, "complex128", "")
                self.each(made.extents, lambda at: self.fill_in(made, at, number))
                return made
            fill = self.number(given["fill"])
            if "dtype" not in given and not function.__name__.endswith("_like"):
                dtype = self.form.dtypes.get(fill, "int64" if fill.lstrip("-").isdigit() else "float64")
            if fill.isidentifier() and fill in self.form.dtypes:
                made = self.local(self.frame.prefix + name, shape, dtype, "")
                self.each(made.extents, lambda at: self.fill_in(made, at, fill))
                return made
        return self.local(self.frame.prefix + name, shape, dtype, fill)

    def record_dtype(self, node: ast.expr | None) -> Any:
        """Numba's type of the records of a dtype that a kernel gives; None for other dtypes."""
        from numba import from_dtype

        found = None if node is None else self.value(node)
        dtype = found.value if isinstance(found, Object) else None
        return from_dtype(dtype) if isinstance(dtype, np.dtype) and dtype.names else None

    def dtype(self, node: ast.AST, found: Any) -> str:
        """The name of a dtype that a kernel gives."""
        found = found.value if isinstance(found, Object) else found
        try:
            dtype = np.dtype(found if isinstance(found, str | type | np.dtype) else str(found))
        except TypeError:
            return self.refuse(node, f"makes an array of {found}, of which no derivative is made.")
        if dtype.kind not in "biufc":
            return self.refuse(
                node, f"makes an array of {dtype}, of which no derivative is made. Use arrays of numbers."
            )
        return str(dtype)

    def reduction(self, call: ast.Call, value: Value, kind: str, given: Sequence[ast.expr]) -> Value | Expression:
        """A reduction of all elements, or sums along an axis."""
        options = dict(zip(("axis", "dtype"), given, strict=False)) | {str(one.arg): one.value for one in call.keywords}
        if not options:
            return self.reduced(call, value, kind)
        axis = self.value(options["axis"]) if options.keys() == {"axis"} else ""
        if kind != "sum" or not isinstance(value, Array) or not str(axis).lstrip("-").isdigit():
            return self.refuse(call, f"takes the {kind} along an axis, or with options. Write the loop.")
        if value.ndim == 1:
            return self.reduced(call, value, kind)
        from .array_kernels import ARRAY_KERNELS

        if (np.sum, (value.ndim, 0)) not in ARRAY_KERNELS:
            return self.refuse(call, f"takes the sum of an array of {value.ndim} axes along one. Write the loop.")
        array = call.func.value if isinstance(call.func, ast.Attribute) else call.args[0]
        k = ast.Constant(int(str(axis)) % value.ndim)
        along = ast.copy_location(ast.Call(call.func, [array, k], []), call)
        found = self.called(along, ARRAY_KERNELS[np.sum, (value.ndim, 0)])
        assert found is not None
        return found

    def reduced(self, call: ast.AST | None, value: Value, kind: str) -> Value | Expression:
        """The sum, or another reduction, of all elements."""
        if not isinstance(value, Array):
            return self.refuse(call, f"takes the {kind} of something that is no array.")
        first = {"sum": "0.0", "mean": "0.0", "prod": "1.0", "max": "-math.inf", "min": "math.inf"}[kind]
        integers = value.dtype.startswith(("int", "uint"))
        if integers and kind in ("sum", "prod"):
            first = first[0]
        total = self.running(first, value.dtype if integers or value.dtype in PARTS else "float64", kind)
        if isinstance(total, Complex) and kind in ("max", "min"):
            return self.refuse(call, f"takes the {kind} of complex numbers.")

        def body(at: list[Atom]) -> None:
            one = self.number_at(value, at)
            if kind in ("max", "min"):
                assert isinstance(one, str)
                assert isinstance(total, str)
                sign = ">" if kind == "max" else "<"
                test = self.put(Op("", (one, total), f"{{0}} {sign} {{1}}"), "bool", "better")
                self.out.append(If(test, (Set(total, copied(one)),), ()))
            else:
                self.update(total, "Mult" if kind == "prod" else "Add", one)

        self.each(value.extents, body)
        if kind == "mean":
            return self.applied(call or ast.Pass(), OPERATORS["Div"], [total, self.size(value)])
        return total

    def running(self, start: Atom, dtype: str, name: str) -> Scalar:
        """A number that a loop changes; complex for a complex dtype."""
        if dtype not in PARTS:
            return self.put(copied(start), dtype, name)
        return Complex(*[self.put(copied(one), "float64", name) for one in (start, "0.0")])

    def update(self, total: Scalar, op: str, value: Scalar) -> None:
        """Give a number that a loop changes its next value."""
        known = OPERATORS[op]
        if isinstance(total, str):
            self.out.append(Set(total, Op(known.primitive, (total, str(value)), known.text)))
            return
        found = self.of_complex(ast.Pass(), known, [total, value])
        assert isinstance(found, Complex)
        self.set_to(total, found)

    def product(self, node: ast.AST, a: Value, b: Value, name: str) -> Value | Expression:
        """The product of vectors and matrices."""
        if not (isinstance(a, Array) and isinstance(b, Array)):
            return self.refuse(node, "multiplies something that is no array with @ or np.dot.")
        if isinstance(a, Elementwise):
            a = self.materialized(a, "left")
        if isinstance(b, Elementwise):
            b = self.materialized(b, "right")
        if max(a.ndim, b.ndim) > 2 or min(a.ndim, b.ndim) < 1:
            return self.refuse(node, "multiplies arrays of more than two axes. Write the loop.")

        is_complex = [one for one in (a.dtype, b.dtype) if one in PARTS]
        dtype = is_complex[0] if is_complex else "float64"
        narrow = not is_complex and a.dtype == b.dtype == "float32"

        def total(rows: list[Atom], columns: list[Atom]) -> Scalar:
            found = self.running("0.0", dtype, "dot")

            def body(at: list[Atom]) -> None:
                x = self.number_at(a, [*rows, at[0]])
                y = self.number_at(b, [at[0], *columns])
                if isinstance(x, str) and isinstance(y, str):
                    xy: Scalar = self.put(Op("multiply", (x, y), "{0} * {1}"), "float64", "xy")
                else:
                    xy = self.product_of(self.as_complex(x), self.as_complex(y))
                self.update(found, "Add", xy)

            self.each([a.extents[-1]], body)
            return found

        if a.ndim == b.ndim == 1:
            return total([], [])
        shape = [*a.extents[:-1], *b.extents[1:]]
        made = self.local(self.frame.prefix + name, shape, "float32" if narrow else dtype, "")
        self.each(made.extents, lambda at: self.fill_in(made, at, total(at[: a.ndim - 1], at[a.ndim - 1 :])))
        return made

    def where(self, call: ast.AST, operands: Sequence[Value]) -> Any:
        """np.where of three numbers or arrays: of arrays, the elements of one side are computed, as in a branch."""
        select = Known("select", "({1} if {0} else {2})")
        if all(isinstance(one, str) for one in operands):
            return Op("select", tuple(map(str, operands)), select.text)
        if not any(isinstance(one, Array) for one in operands):
            return self.chosen(call, str(operands[0]), [self.thunk(lambda one: one, one) for one in operands[1:]])
        arrays = [one for one in operands if isinstance(one, Array)]
        if any(isinstance(one, Object | list) for one in operands):
            return self.refuse(call, "computes with an array and something that is no number.")
        found = Elementwise(self.common(arrays), "", lambda at: "", frozenset().union(*map(arrays_of, arrays)))
        dtypes = [
            one.dtype if isinstance(one, Array) else self.form.dtypes.get(str(one)) or literal_dtype(str(one))
            for one in operands[1:]
        ]
        is_complex = any(isinstance(one, Complex) or getattr(one, "dtype", "") in PARTS for one in operands[1:])
        dtype = "complex128" if is_complex else str(np.result_type(*dtypes))

        def element(at: Sequence[Atom]) -> Scalar:
            test = str(self.item(operands[0], at, found.extents))
            sides = [self.thunk(self.item, one, at, found.extents) for one in operands[1:]]
            chosen = self.chosen(call, test, sides)
            assert isinstance(chosen, str | Complex)
            return chosen

        return Elementwise(found.extents, dtype, element, found.arrays)

    def arange(self, call: ast.Call) -> Elementwise:
        """np.arange."""
        bounds = [self.number(one) for one in call.args]
        start, stop = ("0", bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
        step = bounds[2] if len(bounds) == 3 else "1"
        if not all(
            (one.lstrip("-").isdigit() or self.form.dtypes.get(one, "").startswith(("int", "uint")))
            for one in (start, stop, step)
        ):
            count = self.integer("max(0, int(math.ceil(({1} - {0}) / {2})))", start, stop, step)

            def place(at: Sequence[Atom]) -> Atom:
                away = self.put(Op("multiply", (at[0], step), "{0} * {1}"), "float64", "away")
                return self.put(Op("add", (start, away), "{0} + {1}"), "float64", "place")

            return Elementwise((count,), "float64", place, frozenset())
        count = self.integer("max(0, ({1} - {0} + {2} - 1) // {2})", start, stop, step)
        return Elementwise((count,), "int64", lambda at: Op("", (start, at[0], step), "{0} + {1} * {2}"), frozenset())

    def opaque_of_each(self, call: ast.Call, text: str, given: Array) -> Elementwise:
        """A function without a derivative of an array and each element of another one."""
        alike = ast.copy_location(ast.Call(call.func, [call.args[0], ast.Constant(0), *call.args[2:]], []), call)
        alike.keywords = call.keywords
        one = self.opaque(alike, text)
        assert isinstance(one, Op)

        def element(at: Sequence[Atom]) -> Expression:
            return Op("", (str(self.number_at(given, at)),), one.text, one.arrays)

        return Elementwise(given.extents, "int64", element, frozenset(one.arrays) | arrays_of(given))

    def opaque(self, call: ast.Call, text: str) -> Value | Expression:
        """A function of whole arrays without a derivative."""
        atoms: list[Atom] = []
        arrays: list[str] = []
        for one in call.args:
            value = self.value(one)
            if isinstance(value, Elementwise):
                value = self.materialized(value, "given")
            if isinstance(value, str):
                atoms.append(value)
            elif isinstance(value, Stored):
                arrays.append(
                    value.array if isinstance(value, View) and value.whole else self.materialized(value, "given").array
                )
            else:
                return self.refuse(call, f"calls {text}() with something that is neither a number nor an array.")
        options = ""
        for one in call.keywords:
            value = self.value(one.value)
            if not isinstance(value, Object) or not isinstance(value.value, str):
                return self.refuse(call, f"calls {text}() with the keyword {one.arg}. Write the loop.")
            options += f", {one.arg}={value.value!r}"
        places = [f"{{{len(atoms) + k}}}" for k in range(len(arrays))] + [f"{{{k}}}" for k in range(len(atoms))]
        return Op("", tuple(atoms), f"{text}({', '.join(places)}{options})", tuple(arrays))

    def method(
        self, call: ast.Call, owner: Value, method: str, name: str, given: Sequence[ast.expr] | None = None
    ) -> Any:
        """A method of an array, with the arguments of the call or others."""
        given = call.args if given is None else given
        kind = self.kind_of_records(call.func.value) if isinstance(call.func, ast.Attribute) else None
        if kind is not None and method == "copy":
            return self.copied_records(call, owner, kind, self.frame.prefix + name)
        if isinstance(owner, Complex | str) and method in ("conjugate", "conj"):
            return self.of_complex(call, "conjugate", [owner])
        reductions = {"sum", "mean", "prod", "max", "min"}
        if isinstance(owner, Array) and (not call.keywords or method in reductions):
            if method in reductions:
                return self.reduction(call, owner, method, given)
            if method == "astype":
                found = self.cast(owner, self.dtype(call, self.value(given[0])))
                return self.materialized(found, self.frame.prefix + name)
            if method in ("reshape", "ravel", "flatten"):
                return self.in_another_shape(call, owner, method, name, given)
            if method in ("conjugate", "conj"):
                return self.complex_elementwise(call, "conjugate", [owner], owner.extents)
            if method == "copy":
                return self.materialized(owner, self.frame.prefix + name)
            if method == "dot":
                return self.product(call, owner, self.value(given[0]), name)
            if method == "transpose":
                return self.transposed_by(call, [owner, *map(self.value, given)])
            if method in _AS_FUNCTIONS and isinstance(call.func, ast.Attribute):
                alike = ast.copy_location(ast.Call(call.func, [call.func.value, *given], []), call)
                found = self.array_call(alike, _AS_FUNCTIONS[method], name)
                if found is not NOT_KNOWN:
                    return found
            if method == "item" and not given:
                return self.element(owner, ["0"] * owner.ndim)
            if method == "sort" and not given and isinstance(owner, Stored) and owner.ndim == 1:
                alike = ast.copy_location(ast.Call(call.func, [cast("ast.Attribute", call.func).value], []), call)
                self.store_into(call, owner, self.array_call(alike, np.sort, name), "")
                return None
            if method == "fill":
                assert isinstance(owner, Stored)
                self.store_into(call, owner, self.number(given[0]), "")
                return None
        if method in ("append", "extend", "insert", "pop", "remove"):
            return self.refuse(call, f"changes the length of a list by {method}(). {AN_ARRAY}")
        return self.refuse(call, f"calls the method {method}(), of which no derivative is known here. Write the loop.")

    def in_another_shape(
        self, call: ast.Call, owner: Array, method: str, name: str, given: Sequence[ast.expr]
    ) -> Stored:
        """reshape(), ravel() and flatten(): views of contiguous arrays, where NumPy gives views, else copies."""
        array = call.func.value if isinstance(call.func, ast.Attribute) and method == call.func.attr else call.args[0]
        contiguous = isinstance(owner, Elementwise) or getattr(self.kind(array), "layout", "C") == "C"
        if method == "reshape" and not contiguous:
            return self.refuse(call, "gives an array another shape whose elements do not follow each other. Copy it.")
        if isinstance(owner, Elementwise) or method == "flatten" or not contiguous:
            owner = self.materialized(owner, self.frame.prefix + name)
        values = [self.value(one) for one in given]
        shape = [one for value in values for one in (value if isinstance(value, list) else [value])]
        return self.reshaped(owner, list(map(str, shape)) if method == "reshape" else ["-1"])


def _rank(value: Value) -> int | None:
    """The number of axes of an argument: 0 for numbers and tuples, None for texts and None."""
    return value.ndim if isinstance(value, Array) else None if isinstance(value, Object) else 0


def _is_small(value: Value) -> bool:
    """Whether a number is a literal that leaves out no singular value of a matrix of full rank."""
    try:
        return isinstance(value, str) and float(value) <= 1e-8
    except ValueError:
        return False
