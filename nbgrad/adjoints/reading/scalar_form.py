"""Kernels as statements on numbers: arrays taken apart, calls of other compiled functions written out.

In: a kernel, a Python function that Numba compiles, and its arguments. Out: `ScalarForm`: blocks of
kernel_statements.py, the dtypes of all names, the results. Called by specializations.py. Expressions are in
kernel_expressions.py, arrays in array_parts.py and array_functions.py.

Every function is taken apart under names of its own. A variable that holds a number is a number; one that holds an
array is known as a `View` of it, and one that holds a tuple as its parts, while the text is read.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from ...extend.scalar_code import python_function, scalar_code
from ..kernel_statements import (
    RESERVED,
    Atom,
    Expression,
    Extent,
    For,
    Load,
    Op,
    Set,
    Statement,
    copied,
    is_name,
    on_line,
)
from .array_values import Along, Array, Complex, Elementwise, Object, Scalar, Stored, Unclear, Value, View
from .complex_pairs import PARTS
from .jumps import RESULT
from .kernel_form import DeadBranch, Frame, ScalarForm, dtype_name, literal_dtype, numba_type
from .numba_types import inferred_types
from .packed_arguments import is_packed, is_text, leaves_of, parts_of
from .plain_form import PlainFunction, UnsupportedKernelError
from .rebound_arrays import ReboundArrays
from .record_parts import record_of

_MISSING = object()


def scalar_form(function: Any, arguments: dict[str, Any]) -> ScalarForm:
    """A kernel, for arguments of the kinds of some examples.

    Parameters
    ----------
    function : callable
        A Python function, or one that Numba compiles.
    arguments : dict of str to object
        Its arguments by name: arrays and numbers, and static values (None, texts, dtypes).

    Raises
    ------
    UnsupportedKernelError
        If a part of the kernel has no derivative here; the error names its line.
    """

    form = ScalarForm(name_of(function), [])
    reader = _Reader(form)
    values: list[Value] = []
    kinds: list[Any] = []
    leaves = [name for argument, value in arguments.items() for name, _ in leaves_of(argument, value)]
    for name in leaves:
        if leaves.count(name) > 1:
            message = f"{form.name}() has an argument `{name}` and a tuple with a part of that name. Rename it."
            raise UnsupportedKernelError(message)
        if any(f"{other}{letter}" == name for other in leaves for letter in ("_b", "_t", "_u", "_w")):
            message = f"{form.name}() has an argument `{name}`, the name of a derivative of `{name[:-2]}`. Rename it."
            raise UnsupportedKernelError(message)
        if name in RESERVED:
            message = (
                f"{form.name}() has an argument `{name}`, the name of a function that derivatives call. Rename it."
            )
            raise UnsupportedKernelError(message)
    for name, value in arguments.items():
        values.append(reader.argument(name, value))
        kinds.append(reader.kind_of(value))
    try:
        returned = reader.function(function, values, kinds, reader.out, None)
    except DeadBranch:
        message = f"{form.name}() has a part that Numba has left out, and that could not be told apart from the rest."
        raise UnsupportedKernelError(message) from None
    if returned is not None:
        parts: list[Value] = []
        form.structure = _positions(returned, parts, reader.returned)
        for one in parts:
            if isinstance(one, Unclear):
                message = f"{form.name}() returns an array, but {one.why}. Write to one array, and return that."
                raise UnsupportedKernelError(message)
        form.results = [reader.result(one, k) for k, one in enumerate(parts)]
    form.body = tuple(reader.out)
    return form


def _positions(value: Value, leaves: list[Value], kind: Any) -> Any:
    """The positions of what a tuple of tuples, of Numba's type `kind`, holds, in which these are added to a list."""
    if isinstance(value, list):
        kinds = getattr(kind, "types", None) or ()
        kinds = kinds if len(kinds) == len(value) else [getattr(kind, "dtype", None)] * len(value)
        found = [_positions(one, leaves, own) for one, own in zip(value, kinds, strict=True)]
        made = getattr(kind, "instance_class", None)
        return tuple(found) if made is None else made(*found)
    leaves.append(value)
    return len(leaves) - 1


def name_of(function: Any) -> str:
    """The name of a kernel."""
    return getattr(function, "__name__", None) or getattr(python_function(function), "__name__", "kernel")


def _is_parallel(function: Any) -> bool:
    """Whether Numba runs loops over `prange` of a function on several threads."""
    asked = getattr(function, "targetoptions", {}).get("parallel", False)
    return asked.get("prange", True) if isinstance(asked, dict) else bool(asked)


class _Reader(ReboundArrays):
    """Takes functions apart."""

    def __init__(self, form: ScalarForm) -> None:
        self.form = form
        self.out: list[Statement] = []
        self.stack: list[FunctionType] = []
        self.exits = []
        self.frozen = set()
        self.frame: Frame
        self.returned: Any = None
        """Numba's type of what the kernel returns."""

    # ----- Names -----

    def result(self, value: Value, position: int) -> Value:
        """A value that the kernel returns: a number, or a whole array; complex ones as arrays of parts."""
        if isinstance(value, Complex):
            made = self.local("result", [], "complex128", "")
            self.fill_in(made, [], value)
            value = made
        if not isinstance(value, Array):
            return value
        view = value if isinstance(value, View) and value.whole else self.materialized(value, "result")
        if view.dtype not in PARTS:
            return view
        self.form.complex[position] = view.dtype
        places = (*view.places, Along(view.ndim))
        return View(view.array, places, (*view.extents, "2"), PARTS[view.dtype])

    def kind_of(self, value: Any) -> Any:
        """Numba's type of an argument, where arrays are contiguous."""
        import numba

        if isinstance(value, tuple) and is_packed(value):
            kinds = [self.kind_of(one) for one in value]
            if hasattr(value, "_fields"):
                return numba.types.BaseNamedTuple.from_types(kinds, type(value))
            return numba.types.Tuple(kinds)
        if isinstance(value, np.ndarray):
            return numba.types.Array(numba.from_dtype(value.dtype), value.ndim, "C")
        return numba.typeof(value)

    def argument(self, name: str, value: Any) -> Value:
        """An argument of the kernel, which has an example."""
        form = self.form
        if is_packed(value):
            return [self.argument(inner, one) for inner, one in parts_of(name, value)]
        if is_text(value) or not isinstance(value, np.ndarray | bool | int | float | complex | np.generic):
            return Object(value)
        form.parameters.append(name)
        dtype = dtype_name(self.kind_of(np.asarray(value)[()].dtype.type(0)))
        if dtype in PARTS:
            form.complex[name] = dtype
        if isinstance(value, np.ndarray):
            return self.parameter(name, dtype, value.ndim)
        if dtype in PARTS:
            view = self.parameter(name, dtype, 0)
            found = self.element(view, [])
            assert isinstance(found, Complex)
            return found
        form.dtypes[name] = dtype
        form.lengths[name] = name
        return name

    def parameter(self, name: str, dtype: str, ndim: int) -> View:
        """The view of a whole array that is an argument."""
        self.form.dtypes[name] = PARTS.get(dtype, dtype)
        self.form.ranks[name] = ndim + (dtype in PARTS)
        found = self.whole(name)
        return found if dtype not in PARTS else View(name, found.places[:-1], found.extents[:-1], dtype)

    # ----- Functions -----

    def function(
        self, function: Any, values: Sequence[Value], kinds: Sequence[Any], out: list[Statement], node: ast.AST | None
    ) -> Value | None:
        """Take a function apart for some arguments; its result, if it gives one."""
        code = scalar_code(function)
        if code.function in self.stack:
            self.refuse(
                node, f"calls {code.name}(), which calls itself: recursion has no derivative here. Write a loop."
            )
        plain = PlainFunction(code)
        prefix = f"{code.name.strip('_<>')}_" if self.stack else ""
        frame = Frame(plain, inferred_types(plain, kinds), prefix, _is_parallel(function))
        outer = getattr(self, "frame", None)
        self.stack.append(code.function)
        before, self.out, self.frame = self.out, out, frame
        stored = {n.id for one in plain.body for n in ast.walk(one) if isinstance(n, ast.Name) and _is_store(n)}
        for name, value in zip(plain.parameters, values, strict=True):
            dtype = dtype_name(frame.types.get(name)) or "float64"
            if name in stored and isinstance(value, str) and dtype not in PARTS:
                value = frame.numbers[name] = self.put(copied(value), dtype, f"{frame.prefix}{name}_now")
            if name in stored and dtype_name(frame.types.get(name)) in PARTS:
                assert isinstance(value, str | Complex)
                value = self.set_complex(name, value, frame.types[name])
            frame.env[name] = value
        self.block(plain.body)
        result, self.returned = frame.env.get(RESULT), frame.types.get(RESULT)
        self.out = before
        self.stack.pop()
        if not self.stack and record_of(frame.types.get(RESULT)) is not None:
            self.refuse(node, "returns records. Write to an argument, or return the fields.")
        if outer is not None:
            self.frame = outer
        return result

    def called(self, node: ast.Call, function: Any) -> Value | None:
        """The result of a call of another function."""
        found = python_function(function)
        assert found is not None
        signature = inspect.signature(found)
        try:
            bound = signature.bind(*node.args, **{one.arg: one.value for one in node.keywords if one.arg})
        except TypeError as error:
            return self.refuse(node, f"calls {found.__name__}() with other arguments than it takes: {error}.")
        values: list[Value] = []
        kinds: list[Any] = []
        for name, parameter in signature.parameters.items():
            given = bound.arguments.get(name, _MISSING)
            if given is _MISSING:
                value, kind = self.static(parameter.default)
            else:
                value, kind = self.value(given), self.kind(given)
            if isinstance(value, Complex):
                given = [self.put(copied(one), "float64", "argument") for one in (value.real, value.imag)]
                value = Complex(*given)
            elif isinstance(value, str) and is_name(value):
                value = self.put(copied(value), self.form.dtypes[value], "argument")
            elif isinstance(value, Elementwise):
                value = self.materialized(value, "argument")
            values.append(value)
            kinds.append(kind)
        return self.function(function, values, kinds, self.out, node)

    def static(self, found: Any) -> tuple[Value, Any]:
        """A Python object as an argument."""
        import numba

        value: Value = repr(found) if isinstance(found, bool | int | float) else Object(found)
        return value, numba.typeof(found)

    def kind(self, node: ast.expr) -> Any:
        """Numba's type of an atom."""
        import numba

        match node:
            case ast.Name(name) if name in self.frame.types:
                return self.frame.types[name]
            case ast.Name(name) if name in self.frame.plain.objects:
                return numba.typeof(self.frame.plain.objects[name])
            case ast.Name():
                raise DeadBranch
            case ast.Constant(value):
                return numba.typeof(value)
            case ast.Tuple(elements) | ast.List(elements):
                return numba.types.Tuple([self.kind(one) for one in elements])
            case _:
                return None

    # ----- Statements -----

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Take statements apart."""
        for statement in body:
            before, out = len(self.out), self.out
            self.statement(statement)
            line = self.frame.plain.code.line(statement)
            out[before:] = [on_line(one, line) for one in out[before:]]

    def statement(self, statement: ast.stmt) -> None:
        """Take one statement apart."""
        match statement:
            case ast.Pass():
                pass
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"), [element])) if name in self.frame.lists:
                made, position = self.frame.lists[name]
                given = self.value(element)
                assert isinstance(given, str | Complex)
                self.store_element(made, [position], given)
                if position in self.form.dtypes and position.startswith("length"):
                    self.out.append(Set(position, Op("", (position,), "{0} + 1")))
            case ast.Expr(ast.Call() as call):
                self.result_of(call)
            case ast.Assign([ast.Name(name)], ast.List([])):
                pass
            case ast.Assign([ast.Name(name)], value):
                if name not in self.frame.types:
                    raise DeadBranch
                self.bind(name, self.operation(value, name), value)
            case ast.Assign([ast.Subscript() as target], value):
                self.store(target, self.value(value), "")
            case ast.Assign([ast.Attribute() as target], value):
                self.store_attribute(target, self.value(value), "")
            case ast.AugAssign(ast.Attribute() as target, op, value):
                self.store_attribute(target, self.value(value), type(op).__name__)
            case ast.AugAssign(ast.Subscript() as target, op, value):
                self.store(target, self.value(value), type(op).__name__)
            case ast.AugAssign(ast.Name(name) as target, op, value):
                held = self.value(ast.copy_location(ast.Name(name, ast.Load()), target))
                if isinstance(held, Stored):
                    self.store_into(target, held, self.value(value), type(op).__name__)
                else:
                    whole = ast.copy_location(ast.BinOp(ast.Name(name, ast.Load()), op, value), statement)
                    self.bind(name, self.operation(whole, name), statement)
            case ast.If(test, then, orelse):
                self.branch(test, then, orelse)
            case ast.For():
                self.loop(statement)
            case ast.While(_, body):
                self.while_loop(body)
            case ast.Break():
                self.leave()
            case _:
                self.refuse(statement, "has a statement that has no derivative.")

    def bind(self, name: str, value: Value | Expression, node: ast.AST) -> None:
        """Give a variable a value."""
        frame = self.frame
        if isinstance(value, str) and not is_name(value) and name in frame.plain.temporaries and name.startswith("t_"):
            # A name that is set once, such as that of `x.ndim`: branches that it decides are known.
            frame.env[name] = value
            return
        if dtype_name(frame.types.get(name)) in PARTS and not isinstance(value, Array | Object | list | Unclear):
            given = value if isinstance(value, str | Complex) else self.put(value, "float64")
            frame.env[name] = self.set_complex(name, given, frame.types[name])
            return
        if isinstance(value, str):
            value = copied(value)
        if isinstance(value, Op | Load | Extent):
            frame.env[name] = self.set_variable(name, value, frame.types.get(name), node)
        elif isinstance(value, list):
            frame.env[name] = self.tuple_of(name, value, frame.types.get(name), node)
        elif isinstance(value, Elementwise) and (name not in frame.plain.temporaries or name.startswith("choice_")):
            frame.env[name] = self.materialized(value, frame.prefix + name)
        else:
            frame.env[name] = value

    def set_variable(self, name: str, value: Expression, kind: Any, node: ast.AST) -> Atom:
        """Give the number that stands for a variable a value; the variable has the same one throughout."""
        if kind is None:
            raise DeadBranch
        dtype = dtype_name(kind)
        if not dtype:
            self.refuse(node, f"computes a {kind}, of which no derivative is made here.")
        target = self.variable(name, dtype)
        self.out.append(Set(target, value))
        if name.split(".")[0] in self.frame.plain.set_once:
            self.note_length(target, value)
        return target

    def set_complex(self, name: str, value: Scalar, kind: Any) -> Complex:
        """Give the two numbers that stand for a complex variable values."""
        target = Complex(*[self.variable(f"{name}.{part}", dtype_name(kind)) for part in ("real", "imag")])
        self.set_to(target, value)
        return target

    def tuple_of(self, name: str, parts: Sequence[Value], kind: Any, node: ast.AST) -> list[Value]:
        """The parts of a tuple that a variable holds: variables for those that are numbers."""
        kinds = list(getattr(kind, "types", None) or [getattr(kind, "dtype", None)] * len(parts))
        if len(kinds) != len(parts):
            kinds = [None] * len(parts)  # the variable holds tuples of several lengths, one after the other
        found: list[Value] = []
        for k, (part, own) in enumerate(zip(parts, kinds, strict=True)):
            inner = f"{name}.{k}"
            if isinstance(part, list):
                found.append(self.tuple_of(inner, part, own, node))
            elif isinstance(part, Elementwise):
                found.append(self.materialized(part, self.frame.prefix + inner.replace(".", "_")))
            elif isinstance(part, Complex) or dtype_name(own) in PARTS:
                assert isinstance(part, str | Complex)
                found.append(self.set_complex(inner, part, own))
            elif isinstance(part, str):
                known = self.form.dtypes.get(part) or literal_dtype(part)
                if own is None or not dtype_name(own):
                    own = numba_type(known)
                found.append(self.set_variable(inner, copied(part), own, node))
            else:
                found.append(part)
        return found

    def loop(self, statement: ast.For) -> None:
        """Take a `for` loop apart."""
        over, target, body = statement.iter, statement.target, statement.body
        function = self.object(over.func) if isinstance(over, ast.Call) else None
        parallel = self.frame.parallel and getattr(function, "__name__", "") == "prange"
        count, item = self.sequence(over)
        made: list[str] = []
        listed, has_tests, element = self.frame.plain.comprehensions.get(id(statement), ("", False, target))
        if listed:
            dtype = dtype_name(self.kind(element))
            if not dtype:
                self.refuse(over, "makes a list of something else than numbers. Write to an array.")
            room = self.local(self.frame.prefix + listed, [count], dtype, "")
            self.frame.lists[listed] = (room, self.put(copied("0"), "int64", "length") if has_tests else "")

        def taken(given: Atom | None) -> None:
            name = target.id if isinstance(target, ast.Name) else "item"
            turn = given or self.fresh(f"{self.frame.prefix}{name}_turn", "int64")
            value = item(turn)
            if given is None and isinstance(target, ast.Name) and value == turn and not self.is_assigned(body, name):
                self.form.dtypes.pop(turn)
                numbers = self.frame.numbers
                if name not in numbers:
                    numbers[name] = self.fresh(self.frame.prefix + name, "int64")
                self.frame.env[name] = turn = numbers[name]
            else:
                self.assign_item(target, value)
            if listed and not has_tests:
                self.frame.lists[listed] = (self.frame.lists[listed][0], turn)
            self.block(body)
            made[:] = [turn]

        self.looped(
            [ast.Assign([target], over), *body],
            count,
            taken,
            lambda block, count: For(made[0], str(count), block, parallel),
        )
        if listed:
            room, length = self.frame.lists.pop(listed)
            extents = (self.put(copied(length), "int64", "n"),) if has_tests else room.extents
            self.frame.env[listed] = replace(room, extents=extents)

    def is_assigned(self, body: Sequence[ast.stmt], name: str) -> bool:
        """Whether statements give a variable another value."""
        return any(isinstance(n, ast.Name) and n.id == name and _is_store(n) for one in body for n in ast.walk(one))

    def assign_item(self, target: ast.expr, value: Value | Expression) -> None:
        """Give an item of a sequence to the target of a loop."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value, target)
        elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, list) and len(value) == len(target.elts):
            for one, part in zip(target.elts, value, strict=True):
                self.assign_item(one, part)
        else:
            self.refuse(target, "unpacks the items of a sequence that are no tuples.")

    def sequence(self, over: ast.expr) -> tuple[Atom, Callable[[Atom], Any]]:
        """The number of items of a sequence, and the item of a turn."""
        if isinstance(over, ast.Call):
            function = self.object(over.func)
            name = getattr(function, "__name__", "")
            if function is range or name == "prange":
                return self.range(over)
            if function is np.ndindex:
                return self.positions(over)
            if function is np.ndenumerate:
                return self.elements(over)
            if function in (zip, enumerate):
                parts = [self.sequence(one) for one in over.args[: None if function is zip else 1]]
                if function is enumerate:
                    count, item = parts[0]
                    start = self.number(over.args[1]) if len(over.args) > 1 else "0"
                    return count, lambda turn: [
                        turn if start == "0" else self.integer("{0} + {1}", start, turn),
                        self.settled(item(turn)),
                    ]
                count = parts[0][0]
                for other, _ in parts[1:]:
                    if other != count:
                        count = self.integer("min({0}, {1})", count, other)
                return count, lambda turn: [self.settled(item(turn)) for _, item in parts]
            value = self.result_of(over)
        else:
            value = self.value(over)
        if isinstance(value, Array) and value.ndim:
            return value.extents[0], lambda turn: self.element_of(value, [turn])
        kind = self.kind_of_records(over)
        if kind is not None:
            return self.extents_of(over, value, kind)[0], lambda turn: self.at(over, value, kind, [turn])
        return self.refuse(over, "loops over something that is neither a range nor an array.")

    def elements(self, over: ast.Call) -> tuple[Atom, Callable[[Atom], Any]]:
        """The number of elements of an array, np.ndenumerate, and the position and the element of a turn."""
        array = self.value(over.args[0])
        if not isinstance(array, Array):
            return self.refuse(over, "loops over something that is neither a range nor an array.")
        count, position = self.places(array.extents)

        def element(turn: Atom) -> list[Value]:
            at = position(turn)
            return [list(at), self.settled(self.element(array, at))]

        return count, element

    def positions(self, over: ast.Call) -> tuple[Atom, Callable[[Atom], Any]]:
        """The number of positions in an array of a shape, np.ndindex, and the position of a turn."""
        given = [self.value(one) for one in over.args]
        lengths = given[0] if isinstance(given[0], list) else given
        return self.places([str(one) for one in lengths])

    def places(self, extents: Sequence[Atom]) -> tuple[Atom, Callable[[Atom], Any]]:
        """The number of places in an array with some lengths of axes, and the place of a turn."""
        count = extents[0]
        for other in extents[1:]:
            count = self.integer("{0} * {1}", count, other)

        def position(turn: Atom) -> list[Atom]:
            found: list[Atom] = []
            for extent in reversed(extents[1:]):
                found.insert(0, self.integer("{0} % {1}", turn, extent))
                turn = self.integer("{0} // {1}", turn, extent)
            return [turn, *found]

        return count, position

    def settled(self, value: Any) -> Value:
        """A value, with a name for an operation."""
        return (
            value
            if isinstance(value, str | Complex | Array | Object | list)
            else self.put(value, self.load_dtype(value))
        )

    def load_dtype(self, value: Expression) -> str:
        """The dtype of an element."""
        return self.form.dtypes[value.array] if isinstance(value, Load) else "float64"

    def range(self, over: ast.Call) -> tuple[Atom, Callable[[Atom], Any]]:
        """The number of turns of range(), and the number of a turn."""
        given = [self.number(one) for one in over.args]
        start, stop, step = {1: ["0", *given, "1"], 2: [*given, "1"], 3: given}[len(given)]
        start, stop = [
            self.put(copied(one), self.form.dtypes[one], "bound") if is_name(one) else one for one in (start, stop)
        ]
        if not is_name(step):
            width = int(step)
            if width == 0:
                self.refuse(over, "has a range with a step of 0.")
            if not is_name(start) and not is_name(stop):
                count = str(len(range(int(start), int(stop), width)))
            elif (start, width) == ("0", 1):
                count = stop
            elif width == 1:
                count = self.integer("{0} - {1}", stop, start)
            elif width == -1:
                count = self.integer("{0} - {1}", start, stop)
            elif width > 0:
                count = self.integer(f"({{0}} - {{1}} + {width - 1}) // {width}", stop, start)
            else:
                count = self.integer(f"({{1}} - {{0}} + {-width - 1}) // {-width}", stop, start)
            if width == 1:
                return count, (lambda turn: turn) if start == "0" else (lambda turn: Op("", (start, turn), "{0} + {1}"))
            return count, lambda turn: Op("", (start, turn), f"{{0}} + {{1}} * ({width})")
        step = self.put(copied(step), "int64", "step")
        count = self.integer("({0} - {1} + {2} - (1 if {2} > 0 else -1)) // {2}", stop, start, step)
        return count, lambda turn: Op("", (start, turn, step), "{0} + {1} * {2}")


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
