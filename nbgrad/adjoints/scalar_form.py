"""Kernels as statements on numbers: arrays taken apart, calls of other compiled functions written out.

In: a kernel, a Python function that Numba compiles, and its arguments. Out: `ScalarForm`: blocks of
kernel_statements.py, the dtypes of all names, the results. Called by derived.py. Expressions are in
kernel_expressions.py, arrays in array_parts.py and array_functions.py.

Every function is taken apart under names of its own. A variable that holds a number is a number; one that holds an
array is known as a `View` of it, and one that holds a tuple as its parts, while the text is read.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from ..extend.scalar_code import python_function, scalar_code
from .array_values import Elementwise, Object, Unclear, Value, View
from .jumps import RESULT
from .kernel_expressions import Expressions
from .kernel_form import Frame, ScalarForm, dtype_name, literal_dtype
from .kernel_statements import (
    RESERVED,
    Atom,
    Block,
    Break,
    Expression,
    For,
    If,
    Load,
    Op,
    Set,
    Statement,
    While,
    copied,
    is_name,
)
from .numba_types import inferred_types
from .plain_form import PlainFunction, UnsupportedKernelError

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
    import numba

    form = ScalarForm(name_of(function), [])
    reader = _Reader(form)
    values: list[Value] = []
    kinds: list[Any] = []
    for name, value in arguments.items():
        if name in RESERVED:
            message = (
                f"{form.name}() has an argument `{name}`, the name of a function that derivatives call. Rename it."
            )
            raise UnsupportedKernelError(message)
        if isinstance(value, np.ndarray):
            form.parameters.append(name)
            kind = numba.types.Array(numba.from_dtype(value.dtype), value.ndim, "C")
            values.append(reader.parameter(name, kind))
            kinds.append(kind)
        elif isinstance(value, bool | int | float | np.generic):
            form.parameters.append(name)
            form.dtypes[name] = dtype_name(numba.typeof(value))
            values.append(name)
            kinds.append(numba.typeof(value))
        else:
            values.append(Object(value))
            kinds.append(numba.typeof(value))
    returned = reader.function(function, values, kinds, reader.out, None)
    if returned is not None:
        parts = returned if isinstance(returned, list) else [returned]
        form.results = [reader.result(one) for one in parts]
    form.body = tuple(reader.out)
    return form


def name_of(function: Any) -> str:
    """The name of a kernel."""
    return getattr(function, "__name__", None) or getattr(python_function(function), "__name__", "kernel")


class _Reader(Expressions):
    """Takes functions apart."""

    def __init__(self, form: ScalarForm) -> None:
        self.form = form
        self.out: list[Statement] = []
        self.stack: list[FunctionType] = []
        self.frame: Frame

    # ----- Names -----

    def result(self, value: Value) -> Value:
        """A value that the kernel returns: a number, or a whole array."""
        whole = isinstance(value, View) and value.whole
        return self.materialized(value, "result") if isinstance(value, View | Elementwise) and not whole else value

    def parameter(self, name: str, kind: Any) -> View:
        """The view of a whole array that is an argument."""
        dtype = dtype_name(kind.dtype)
        if not dtype:
            message = (
                f"{self.form.name}() gets the array `{name}` of {kind.dtype}, of which no derivative is made. Pass "
                "real and imaginary parts, or the fields of records, as arrays of floats."
            )
            raise UnsupportedKernelError(message)
        self.form.dtypes[name] = dtype
        self.form.ranks[name] = kind.ndim
        return self.whole(name)

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
        frame = Frame(plain, inferred_types(plain, kinds), "" if not self.stack else f"{code.name.strip('_<>')}_")
        outer = getattr(self, "frame", None)
        self.stack.append(code.function)
        before, self.out, self.frame = self.out, out, frame
        stored = {n.id for one in plain.body for n in ast.walk(one) if isinstance(n, ast.Name) and _is_store(n)}
        for name, value in zip(plain.parameters, values, strict=True):
            if name in stored and isinstance(value, str):
                dtype = dtype_name(frame.types.get(name)) or "float64"
                value = self.put(copied(value), dtype, f"{frame.prefix}{name}_now")
            frame.env[name] = value
        self.block(plain.body)
        result = frame.env.get(RESULT)
        self.out = before
        self.stack.pop()
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
            if isinstance(value, str) and is_name(value):
                value = self.put(copied(value), self.form.dtypes[value], "argument")
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
            case ast.Name(name):
                return numba.typeof(self.frame.plain.objects[name])
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
            self.statement(statement)

    def inner(self, body: Sequence[ast.stmt]) -> Block:
        """The statements of a block inside another one."""
        before, self.out = self.out, []
        self.block(body)
        found, self.out = tuple(self.out), before
        return found

    def statement(self, statement: ast.stmt) -> None:
        """Take one statement apart."""
        match statement:
            case ast.Pass():
                pass
            case ast.Expr(ast.Call() as call):
                self.result_of(call)
            case ast.Assign([ast.Name(name)], value):
                self.bind(name, self.operation(value, name), value)
            case ast.Assign([ast.Subscript() as target], value):
                self.store(target, self.value(value), "")
            case ast.AugAssign(ast.Subscript() as target, op, value):
                self.store(target, self.value(value), type(op).__name__)
            case ast.If(test, then, orelse):
                self.branch(test, then, orelse)
            case ast.For():
                self.loop(statement)
            case ast.While(_, body):
                self.forget(body)
                self.out.append(While(self.inner(body)))
                self.forget(body)
            case ast.Break():
                self.out.append(Break())
            case _:
                self.refuse(statement, "has a statement that has no derivative.")

    def bind(self, name: str, value: Value | Expression, node: ast.AST) -> None:
        """Give a variable a value."""
        frame = self.frame
        if isinstance(value, str):
            value = copied(value)
        if isinstance(value, Op | Load) or not isinstance(value, str | View | Elementwise | Object | Unclear | list):
            dtype = dtype_name(frame.types.get(name))
            if not dtype:
                kind = frame.types.get(name)
                self.refuse(node, f"computes a {kind}, of which no derivative is made here.")
            known = frame.env.get(name)
            if not isinstance(known, str) or not is_name(known) or known not in self.form.dtypes:
                known = self.fresh(frame.prefix + name, dtype)
            frame.env[name] = known
            self.out.append(Set(known, value))
        elif isinstance(value, list):
            before = frame.env.get(name)
            frame.env[name] = self.tuple_of(name, value, before if isinstance(before, list) else None)
        elif isinstance(value, Elementwise) and not _is_temporary(name):
            frame.env[name] = self.materialized(value, frame.prefix + name)
        else:
            frame.env[name] = value

    def tuple_of(self, name: str, parts: Sequence[Value], before: list[Value] | None) -> list[Value]:
        """The parts of a tuple that a variable holds: variables for those that are numbers."""
        found: list[Value] = []
        for k, part in enumerate(parts):
            if isinstance(part, list):
                found.append(self.tuple_of(f"{name}_{k}", part, None))
            elif isinstance(part, str) and is_name(part):
                old = before[k] if before is not None and len(before) == len(parts) else None
                target = (
                    old
                    if isinstance(old, str) and is_name(old) and self.form.dtypes[old] == self.form.dtypes[part]
                    else self.fresh(f"{self.frame.prefix}{name}_{k}", self.form.dtypes[part])
                )
                self.out.append(Set(target, copied(part)))
                found.append(target)
            elif isinstance(part, str) and before is not None and isinstance(before[k], str) and is_name(before[k]):
                self.out.append(Set(before[k], copied(part)))
                found.append(before[k])
            else:
                found.append(part)
        return found

    def branch(self, test: ast.expr, then: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        """Take an `if` apart."""
        decided = self.value(test)
        if isinstance(decided, Object) or decided in ("True", "False", "0", "1"):
            truth = bool(decided.value) if isinstance(decided, Object) else decided in ("True", "1")
            self.block(then if truth else orelse)
            return
        if not isinstance(decided, str):
            self.refuse(test, "asks for the truth of something that is no number.")
        env = self.frame.env
        # Numbers that both sides set are one variable, also if it is new; tuples likewise.
        self.frame.env = dict(env)
        first = self.inner(then)
        one = self.frame.env
        self.frame.env = {**env, **{n: v for n, v in one.items() if n not in env and isinstance(v, str | list)}}
        second = self.inner(orelse)
        two = self.frame.env
        merged = dict(env)
        first_end, second_end = list(first), list(second)
        for name in {**one, **two}:
            a, b = one.get(name), two.get(name)
            if a == b or a is None or b is None:
                found = a if b is None else b
            else:
                found = self.joined(name, a, b, first_end, second_end)
            assert found is not None
            merged[name] = found
        self.frame.env = merged
        self.out.append(If(decided, tuple(first_end), tuple(second_end)))

    def joined(self, name: str, a: Value, b: Value, first: list[Statement], second: list[Statement]) -> Value:
        """The value of a variable after two branches that give it different ones."""
        if isinstance(a, str) and isinstance(b, str):
            dtypes = [self.form.dtypes.get(one) or literal_dtype(one) for one in (a, b)]
            wide = max(dtypes, key=lambda dtype: np.dtype(dtype).kind + dtype if dtype != "bool" else "")
            target = self.fresh(self.frame.prefix + name, wide)
            for side, value in ((first, a), (second, b)):
                at = len(side) - 1 if side and isinstance(side[-1], Break) else len(side)
                side.insert(at, Set(target, copied(value)))
            return target
        if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            return [
                self.joined(f"{name}_{k}", x, y, first, second) if x != y else x
                for k, (x, y) in enumerate(zip(a, b, strict=True))
            ]
        return Unclear(f"`{name}` is a different array in each branch of an `if`")

    def forget(self, body: Sequence[ast.stmt]) -> None:
        """Variables that hold arrays and are set in a loop have no known value at its start and after it."""
        for one in body:
            for node in ast.walk(one):
                if isinstance(node, ast.Name) and _is_store(node):
                    value = self.frame.env.get(node.id)
                    if isinstance(value, View | Elementwise) and not _is_temporary(node.id):
                        why = f"`{node.id}` stands for another array from turn to turn of a loop"
                        self.frame.env[node.id] = Unclear(why)

    def loop(self, statement: ast.For) -> None:
        """Take a `for` loop apart."""
        over, target = statement.iter, statement.target
        function = self.object(over.func) if isinstance(over, ast.Call) else None
        parallel = function is not None and getattr(function, "__name__", "") == "prange"
        count, item = self.sequence(over)
        self.forget(statement.body)
        turn = self.fresh(f"{self.frame.prefix}{target.id}_turn" if isinstance(target, ast.Name) else "turn", "int64")
        before, self.out = self.out, []
        value = item(turn)
        if isinstance(target, ast.Name) and value == turn and not self.is_assigned(statement.body, target.id):
            self.form.dtypes.pop(turn)
            known = self.frame.env.get(target.id)
            turn = (
                known
                if isinstance(known, str) and known in self.form.dtypes
                else self.fresh(self.frame.prefix + target.id, "int64")
            )
            self.frame.env[target.id] = turn
        else:
            self.assign_item(target, value)
        self.block(statement.body)
        body, self.out = tuple(self.out), before
        self.out.append(For(turn, count, body, parallel))
        self.forget(statement.body)

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
        if isinstance(value, View | Elementwise) and value.ndim:
            return value.extents[0], lambda turn: self.element_of(value, [turn])
        return self.refuse(over, "loops over something that is neither a range nor an array.")

    def settled(self, value: Any) -> Value:
        """A value, with a name for an operation."""
        return (
            value
            if isinstance(value, str | View | Elementwise | Object | list)
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
            if (start, width) == ("0", 1):
                count = stop
            elif width == 1:
                count = self.integer("{0} - {1}", stop, start)
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


def _is_temporary(name: str) -> bool:
    return name.startswith("t_") and name[2:].isdigit()
