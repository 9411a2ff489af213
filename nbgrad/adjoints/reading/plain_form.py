"""Kernels in plain form: one operation a statement, and names for everything.

In: a Python function. Out: `PlainFunction`: statements of Python's syntax tree whose operands are names and numbers,
with the objects that global names stand for, so that Numba can infer the type of every name. Called by scalar_form.py;
numba_types.py compiles the statements as far as their types.

Global numbers become literals. Other global objects get names of their own: `PlainFunction.objects`.
"""

from __future__ import annotations

import ast
import copy
import math
import operator
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...extend.scalar_code import MISSING, ScalarCode
from ..threads.thread_names import NUMBERS, CudaName, attribute, cuda_name, is_known, known_name
from .inner_functions import Inner, compiled_alone, inlined, literals_in, without_definitions
from .jumps import without_jumps

Statements = list[ast.stmt]
AN_ARRAY = "Make an array of the largest length, and count the elements that are set."
"""The way out where a list grows."""


class UnsupportedKernelError(ArgumentError):
    """A kernel has a part of which no derivative can be made."""


class PlainFunction:
    """A function as plain statements.

    Attributes
    ----------
    body : list of ast.stmt
        Assignments of one operation each, `if` on a name, `for`, `while True`, `break`.
    parameters : list of str
        Their names, in order.
    objects : dict of str to object
        The values of the names that are neither parameters nor assigned.
    """

    def __init__(self, code: ScalarCode) -> None:
        self.code = code
        self.name = code.name
        arguments = code.definition.args
        if arguments.vararg or arguments.kwarg:
            self.refuse(code.definition, "takes `*` or `**` arguments. Write its arguments out.")
        self.parameters = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        self.objects: dict[str, Any] = {}
        self.temporaries: set[str] = set()
        """The names that are no variables of the function."""
        self.comprehensions: dict[int, tuple[str, bool, ast.expr]] = {}
        """Lists that loops, by their identity, append to, whether not each turn does, and the atom that is appended."""
        self._names: dict[int, str] = {}
        self._used = {node.id for node in ast.walk(code.definition) if isinstance(node, ast.Name)}
        self._count = 0
        tree = code.definition
        body = tree.body if isinstance(tree, ast.FunctionDef) else [ast.Return(tree.body)]
        for one in body:
            ast.fix_missing_locations(ast.copy_location(one, one if hasattr(one, "lineno") else tree))
        self._inner: dict[str, Inner] = {}
        self._alone: dict[int, Any] = {}
        """The inner functions that are passed to others, compiled, by their identity."""
        self._open: list[Inner] = []
        """The inner functions whose calls are being written out."""
        body, self._inner = without_definitions(body, self.refuse)
        structured = without_jumps(body)
        self._locals = {*self.parameters, *self._inner}
        for one in structured:
            for node in ast.walk(one):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    self._locals.add(node.id)
        self.body = self.block(structured)
        self.set_once = {name for name, times in Counter(_assigned(self.body)).items() if times == 1}
        """The variables to which one statement gives a value."""

    def refuse(self, node: ast.AST, what: str) -> Any:
        """Raise the error that names the place of a piece of the text."""
        message = f"{self.code.place(node)} {what}"
        raise UnsupportedKernelError(message)

    def text(self, name: str) -> str:
        """The plain function as text."""
        lines = [ast.unparse(ast.fix_missing_locations(one)) for one in self.body] or ["pass"]
        body = "\n".join("    " + line for text in lines for line in text.split("\n"))
        return f"def {name}({', '.join(self.parameters)}):\n{body}\n"

    # ----- Statements -----

    def block(self, body: Sequence[ast.stmt]) -> Statements:
        """The plain form of a block."""
        out: Statements = []
        for statement in body:
            start = len(out)
            self.statement(statement, out)
            for one in out[start:]:
                for node in ast.walk(one):
                    if isinstance(node, ast.stmt | ast.expr) and not hasattr(node, "lineno"):
                        ast.copy_location(node, statement)
        return out

    def statement(self, statement: ast.stmt, out: Statements) -> None:
        """Add the plain form of one statement."""
        match statement:
            case ast.Expr(ast.Constant()) | ast.Pass() | ast.Assert():
                pass
            case ast.Expr(ast.Call(ast.Name("print"))):
                pass
            case ast.Expr(ast.Call() as call) if self.inner(call.func) is not None:
                self.written_out(call, out)
            case ast.Expr(ast.Call() as call):
                out.append(ast.Expr(self.operation(call, out)))
            case ast.Expr(value):
                self.value(value, out)
            case ast.Assign(targets, value):
                found = self.value(value, out)
                for target in targets:
                    self.assign(target, found, out)
            case ast.AnnAssign(target, _, value) if value is not None:
                self.assign(target, self.value(value, out), out)
            case ast.AugAssign(target, op, value):
                self.augmented(target, op, value, out)
            case ast.If(test, then, orelse):
                out.append(ast.If(self.atom(test, out), self.block(then) or [ast.Pass()], self.block(orelse)))
            case ast.For(target, sequence, body):
                self.loop(statement, target, sequence, body, out)
            case ast.While(test, body):
                inner: Statements = []
                if not (isinstance(test, ast.Constant) and test.value):
                    test_atom = self.atom(test, inner)
                    inner.append(ast.If(test_atom, self.block(body) or [ast.Pass()], [ast.Break()]))
                else:
                    inner = self.block(body)
                out.append(ast.While(ast.Constant(True), inner, []))
            case ast.Break():
                out.append(statement)
            case _:
                kind = type(statement).__name__
                self.refuse(statement, f"has a statement, {kind}, that has no derivative. Write it otherwise.")

    def assign(self, target: ast.expr, value: ast.expr, out: Statements) -> None:
        """Add what gives a value, a plain operation or an atom, to a target."""
        match target:
            case ast.Name(name):
                out.append(ast.Assign([ast.Name(name, ast.Store())], value))
            case ast.Tuple(elements) | ast.List(elements):
                if isinstance(value, ast.Tuple | ast.List):
                    parts = [self.copied(one, out) for one in value.elts]
                    if len(parts) != len(elements):
                        self.refuse(target, f"unpacks {len(parts)} values into {len(elements)} names.")
                else:
                    whole = self.named(value, out)
                    parts = [ast.Subscript(whole, ast.Constant(k), ast.Load()) for k in range(len(elements))]
                for one, part in zip(elements, parts, strict=True):
                    self.assign(one, part, out)
            case ast.Subscript():
                place = self.subscript(target, out)
                out.append(ast.Assign([ast.Subscript(place.value, place.slice, ast.Store())], self.named(value, out)))
            case ast.Attribute(owner, name):
                place = ast.Attribute(self.atom(owner, out), name, ast.Store())
                out.append(ast.Assign([place], self.named(value, out)))
            case _:
                self.refuse(target, "assigns to something that is neither a variable nor an array nor a field.")

    def augmented(self, target: ast.expr, op: ast.operator, value: ast.expr, out: Statements) -> None:
        """Add `target op= value`."""
        if isinstance(target, ast.Name):
            out.append(ast.AugAssign(ast.Name(target.id, ast.Store()), op, self.atom(value, out)))
        elif isinstance(target, ast.Subscript):
            place = self.subscript(target, out)
            found = self.atom(value, out)
            out.append(ast.AugAssign(ast.Subscript(place.value, place.slice, ast.Store()), op, found))
        elif isinstance(target, ast.Attribute):
            place = ast.Attribute(self.atom(target.value, out), target.attr, ast.Store())
            out.append(ast.AugAssign(place, op, self.atom(value, out)))

    def loop(
        self, statement: ast.For, target: ast.expr, sequence: ast.expr, body: list[ast.stmt], out: Statements
    ) -> None:
        """Add a `for` loop, whose sequence is a name or a call of a global function on atoms."""
        match sequence:
            case ast.Call(function, [ast.Tuple(parts) | ast.List(parts)]) if self.object_of(function) is enumerate:
                pairs: list[ast.expr] = [ast.Tuple([ast.Constant(k), e], ast.Load()) for k, e in enumerate(parts)]
                sequence = ast.Tuple(pairs, ast.Load())
        if isinstance(sequence, ast.Tuple | ast.List):
            # All elements have their values before the first turn.
            for element in [self.kept(one, out) for one in sequence.elts]:
                self.assign(target, element, out)
                if any(isinstance(node, ast.Break | ast.Continue) for one in body for node in ast.walk(one)):
                    self.refuse(statement, "leaves a loop over a written-out sequence. Use range().")
                out += self.block(body)
            return
        over = self.value(sequence, out) if isinstance(sequence, ast.Call) else self.atom(sequence, out)
        if isinstance(over, ast.Call):
            over.args = [
                self.value(one, out) if isinstance(one, ast.Call) and _is_sequence(one) else self.named(one, out)
                for one in over.args
            ]
        out.append(ast.For(target, over, self.block(body) or [ast.Pass()], []))

    # ----- Expressions -----

    def fresh(self, what: str = "t") -> str:
        """A new name of what is no variable of the function."""
        name = self.new_name(what)
        self.temporaries.add(name)
        return name

    def new_name(self, what: str) -> str:
        """A name that nothing has."""
        self._count += 1
        name = f"{what}_{self._count}"
        if name in self._locals or name in self._used:
            return self.new_name(what)
        self._locals.add(name)
        return name

    def named(self, value: ast.expr, out: Statements) -> ast.expr:
        """A name for a plain operation; an atom is itself."""
        if isinstance(value, ast.Name | ast.Constant):
            return value
        name = self.fresh()
        out.append(ast.Assign([ast.Name(name, ast.Store())], value))
        return ast.Name(name, ast.Load())

    def copied(self, atom: ast.expr, out: Statements) -> ast.expr:
        """A name of its own for the present value of a variable."""
        if isinstance(atom, ast.Constant) or (isinstance(atom, ast.Name) and atom.id not in self._locals):
            return atom
        name = self.fresh()
        out.append(ast.Assign([ast.Name(name, ast.Store())], atom))
        return ast.Name(name, ast.Load())

    def kept(self, element: ast.expr, out: Statements) -> ast.expr:
        """Names of their own for the present values of an element of a sequence, and of its parts."""
        if isinstance(element, ast.Tuple | ast.List):
            return ast.Tuple([self.kept(one, out) for one in element.elts], ast.Load())
        return self.copied(self.atom(element, out), out)

    def atom(self, expression: ast.expr, out: Statements) -> ast.expr:
        """A name or a number with the value of an expression."""
        return self.named(self.value(expression, out), out)

    def inner(self, function: ast.expr) -> Inner | None:
        """The function that the kernel itself defines, of a call."""
        if isinstance(function, ast.Lambda):
            return function
        return self._inner.get(function.id) if isinstance(function, ast.Name) else None

    def alone(self, node: ast.AST, function: Inner) -> Any:
        """An inner function that is passed on or kept, as a compiled one."""
        if id(function) not in self._alone:
            line = self.code.first_line + function.lineno - 1
            constants = literals_in(self.code.definition)
            self._alone[id(function)] = compiled_alone(function, self.code.function, line, constants, node, self.refuse)
        return self._alone[id(function)]

    def written_out(self, call: ast.Call, out: Statements) -> str:
        """Add what a call of an inner function computes; the variable with its result, if it gives one."""
        function = self.inner(call.func)
        assert function is not None
        if function in self._open:
            self.refuse(call, "calls itself: recursion has no derivative here. Write a loop.")
        given = [self.argument(one, out) for one in call.args]
        found = inlined(function, call, given, self.new_name, self.refuse)
        for name, value in found.given:
            self.assign(ast.Name(name, ast.Store()), value, out)
        self._inner |= found.inside
        self._open.append(function)
        out += self.block(found.body)
        self._open.pop()
        return found.result

    def operation(self, call: ast.Call, out: Statements) -> ast.Call:
        """A call whose operands are atoms."""
        found = self.object_of(call.func)
        if isinstance(found, CudaName) and found.name in ("grid", "gridsize"):
            match [self.value(one, out) for one in call.args]:
                case [ast.Constant(1 | 2 | 3 as axes)]:
                    return ast.Call(self.object_name(cuda_name(f"{found.name}({axes})")), [], [])
                case _:
                    self.refuse(call, f"calls cuda.{found.name}() with something else than the number 1, 2 or 3.")
        if isinstance(call.func, ast.Attribute) and self.object_of(call.func) is MISSING:
            function: ast.expr = ast.Attribute(self.atom(call.func.value, out), call.func.attr, ast.Load())
        else:
            function = self.atom(call.func, out) if isinstance(call.func, ast.Call) else self.reference(call.func)
        if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
            self.refuse(call, "calls a function with `*` or `**`. Write the arguments out.")
        arguments: list[ast.expr] = [self.argument(one, out) for one in call.args]
        keywords = [ast.keyword(one.arg, self.argument(one.value, out)) for one in call.keywords]
        return ast.Call(function, arguments, keywords)

    def argument(self, expression: ast.expr, out: Statements) -> ast.expr:
        """An argument of a call: an atom, or a tuple of atoms."""
        if isinstance(expression, ast.Tuple | ast.List):
            kind = type(expression)
            return kind([self.argument(one, out) for one in expression.elts], ast.Load())
        if isinstance(expression, ast.Call) and _is_sequence(expression):
            return self.operation(expression, out)
        return self.atom(expression, out)

    def value(self, expression: ast.expr, out: Statements) -> ast.expr:
        """A plain operation, or an atom, with the value of an expression."""
        known = self.object_of(expression)
        if known is not MISSING:
            return self.reference(expression)
        match expression:
            case ast.Lambda() | ast.Name() if (defined := self.inner(expression)) is not None:
                return self.object_name(self.alone(expression, defined))
            case ast.Constant() | ast.Name():
                return expression
            case ast.UnaryOp(ast.USub(), ast.Constant(number)) if isinstance(number, int | float):
                return ast.Constant(-number)
            case ast.UnaryOp(op, operand):
                return ast.UnaryOp(op, self.atom(operand, out))
            case ast.BinOp(left, op, right):
                return _folded(ast.BinOp(self.atom(left, out), op, self.atom(right, out)))
            case ast.Compare(left, [op], [right]):
                return ast.Compare(self.atom(left, out), [op], [self.atom(right, out)])
            case ast.Compare(left, ops, rights):
                between = [self.atom(one, out) for one in (left, *rights)]
                pairs: list[ast.expr] = [
                    ast.Compare(a, [op], [b]) for a, op, b in zip(between, ops, between[1:], strict=False)
                ]
                return self.value(ast.BoolOp(ast.And(), pairs), out)
            case ast.BoolOp(op, values):
                return self.either(op, values, out)
            case ast.IfExp(test, then, orelse):
                name = self.fresh("choice")
                decided = self.atom(test, out)
                sides: list[Statements] = []
                for side in (then, orelse):
                    inner: Statements = []
                    inner.append(ast.Assign([ast.Name(name, ast.Store())], self.value(side, inner)))
                    sides.append(inner)
                out.append(ast.If(decided, *sides))
                return ast.Name(name, ast.Load())
            case ast.Subscript():
                return self.subscript(expression, out)
            case ast.Attribute(value, name):
                return ast.Attribute(self.atom(value, out), name, ast.Load())
            case ast.Call(function) if self.inner(function) is not None:
                result = self.written_out(expression, out)
                if not result:
                    self.refuse(expression, "uses the value of a call that gives none.")
                return ast.Name(result, ast.Load())
            case ast.Call():
                return self.operation(expression, out)
            case ast.Tuple(elements):
                return ast.Tuple([self.atom(one, out) for one in elements], ast.Load())
            case ast.List([]):
                return self.refuse(expression, f"begins an empty list. {AN_ARRAY}")
            case ast.List(elements):
                return ast.List([self.atom(one, out) for one in elements], ast.Load())
            case ast.ListComp(element, [ast.comprehension(target, sequence, tests)]):
                return self.comprehension(expression, element, target, sequence, tests, out)
            case ast.NamedExpr(target, value):
                self.assign(target, self.value(value, out), out)
                return ast.Name(target.id, ast.Load())
            case _:
                kind = type(expression).__name__
                return self.refuse(
                    expression, f"has an expression, {kind}, that has no derivative. Use arrays and numbers."
                )

    def comprehension(
        self,
        node: ast.expr,
        element: ast.expr,
        target: ast.expr,
        sequence: ast.expr,
        tests: list[ast.expr],
        out: Statements,
    ) -> ast.expr:
        """A list of one element for each item of a sequence: a loop that appends to it."""
        if isinstance(element, ast.ListComp | ast.List | ast.Tuple):
            self.refuse(node, "makes a list of lists. Write to an array.")
        own = {one.id: self.fresh(one.id) for one in ast.walk(target) if isinstance(one, ast.Name)}
        target, element, *tests = [_with_names(one, own) for one in (target, element, *tests)]
        if isinstance(sequence, ast.Tuple | ast.List) and not tests:
            found: list[ast.expr] = []
            for one in sequence.elts:
                self.assign(target, self.value(one, out), out)
                found.append(self.copied(self.atom(element, out), out))
            return ast.List(found, ast.Load())
        name = self.fresh("list")
        add: ast.stmt = ast.Expr(
            ast.Call(ast.Attribute(ast.Name(name, ast.Load()), "append", ast.Load()), [element], [])
        )
        for test in reversed(tests):
            add = ast.If(test, [add], [])
        loop = ast.For(target, sequence, [add], [])
        for one in ast.walk(loop):
            ast.copy_location(one, node)
        out.append(ast.Assign([ast.Name(name, ast.Store())], ast.List([], ast.Load())))
        self.loop(loop, target, sequence, loop.body, out)
        calls = [one for one in ast.walk(out[-1]) if isinstance(one, ast.Call)]
        appended = next(one.args[0] for one in calls if ast.unparse(one.func) == f"{name}.append")
        self.comprehensions[id(out[-1])] = (name, bool(tests), appended)
        return ast.Name(name, ast.Load())

    def either(self, op: ast.boolop, values: list[ast.expr], out: Statements) -> ast.expr:
        """`and` or `or`: the later operands are computed only where they are asked for."""
        name = self.fresh("both" if isinstance(op, ast.And) else "either")
        out.append(ast.Assign([ast.Name(name, ast.Store())], self.value(values[0], out)))
        place = out
        for value in values[1:]:
            inner: Statements = []
            inner.append(ast.Assign([ast.Name(name, ast.Store())], self.value(value, inner)))
            test = ast.Name(name, ast.Load())
            place.append(ast.If(test, inner, []) if isinstance(op, ast.And) else ast.If(test, [ast.Pass()], inner))
            place = inner
        return ast.Name(name, ast.Load())

    def subscript(self, expression: ast.Subscript, out: Statements) -> ast.Subscript:
        """An element or a part, with atoms as indices."""
        base = self.atom(expression.value, out)
        given = expression.slice
        parts = given.elts if isinstance(given, ast.Tuple) else [given]

        def part(one: ast.expr) -> ast.expr:
            if isinstance(one, ast.Slice):
                bounds = [
                    None if bound is None else self.atom(bound, out) for bound in (one.lower, one.upper, one.step)
                ]
                return ast.Slice(*bounds)
            return self.atom(one, out)

        found = [part(one) for one in parts]
        index = found[0] if not isinstance(given, ast.Tuple) else ast.Tuple(found, ast.Load())
        return ast.Subscript(base, index, ast.Load())

    # ----- Global names -----

    def object_of(self, expression: ast.expr) -> Any:
        """The object that a name, or an attribute of a module, stands for; `MISSING` if it is no global name."""
        if isinstance(expression, ast.Name):
            if expression.id in self._locals:
                return MISSING
            found = self.objects[expression.id] if expression.id in self.objects else self.code.lookup(expression.id)
            if found is MISSING:
                self.refuse(expression, f"uses the name {expression.id!r}, which has no value.")
            return known_name(found)
        if isinstance(expression, ast.Attribute):
            owner = self.object_of(expression.value)
            return MISSING if owner is MISSING else attribute(owner, expression.attr, MISSING)
        return MISSING

    def reference(self, expression: ast.expr) -> ast.expr:
        """The literal of a global number, or the name of a global object."""
        found = self.object_of(expression)
        if found is MISSING:
            return expression
        if isinstance(found, CudaName):
            return self.of_threads(expression, found)
        if isinstance(found, np.bool_ | np.number) and found.dtype not in (np.float32, np.complex64):
            number = found.item()
        elif isinstance(found, bool | int | float | complex | str | None):
            number = found
        else:
            return self.object_name(found)
        if isinstance(number, float) and not math.isfinite(number):
            return self.object_name(number)
        return ast.Constant(number)

    def of_threads(self, expression: ast.expr, found: CudaName) -> ast.expr:
        """A name of the CUDA module: a call for what is a number."""
        if found.name.startswith("atomic.") and not is_known(found):
            self.refuse(
                expression,
                f"uses cuda.{found.name}(): which thread has won is not known afterwards. Use cuda.atomic.add(), or "
                "give nb.primitive a rule.",
            )
        if not is_known(found):
            self.refuse(
                expression,
                f"uses cuda.{found.name}, of which no derivative is known here. Give nb.primitive a rule, or write it "
                "with shared arrays.",
            )
        name = self.object_name(found)
        return ast.Call(name, [], []) if found.name in NUMBERS else name

    def _means_another(self, name: str, found: Any) -> bool:
        """Whether the function itself uses a name for another object."""
        return name in self._used and self.code.lookup(name) is not found

    def object_name(self, found: Any) -> ast.expr:
        """The name of an object: none that the function uses itself, for whatever."""
        if id(found) not in self._names:
            shown = getattr(found, "__name__", "object")
            name, count = shown, 0
            while (
                not name.isidentifier()
                or name in self._locals | self.objects.keys()
                or self._means_another(name, found)
            ):
                count += 1
                name = f"{shown}_{count}" if shown.isidentifier() else f"object_{count}"
            self._names[id(found)] = name
            self.objects[name] = found
        return ast.Name(self._names[id(found)], ast.Load())


_FOLDED = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}


def _folded(expression: ast.BinOp) -> ast.expr:
    """The number that an operation on two literal integers gives; other operations as they are."""
    pair = [one.value for one in (expression.left, expression.right) if isinstance(one, ast.Constant)]
    function = _FOLDED.get(type(expression.op))
    if function is None or len(pair) < 2 or not all(type(one) is int for one in pair) or pair[1] == 0:
        return expression
    return ast.Constant(function(*pair))


def _with_names(expression: ast.expr, names: dict[str, str]) -> ast.expr:
    """An expression with other names."""
    found = copy.deepcopy(expression)
    for one in ast.walk(found):
        if isinstance(one, ast.Name):
            one.id = names.get(one.id, one.id)
    return found


def _assigned(body: Statements) -> list[str]:
    """The variables that statements give values, as often as they do."""
    return [n.id for one in body for n in ast.walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _is_sequence(call: ast.Call) -> bool:
    """Whether a call by its name makes a sequence to loop over."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in ("range", "prange", "zip", "enumerate", "ndindex", "ndenumerate")
