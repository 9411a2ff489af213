"""Functions of numbers, recorded for whole arrays: both branches are recorded, and each element takes its own.

In: a Python function of numbers (also one for Numba) and Tensors in place of the numbers. Out: its result, as a Tensor.
Called by elementwise_functions.py. The function's syntax tree is walked once per recording, and nothing of it is left
in compiled code but arithmetic and `select`.

A condition on a Tensor splits the path: both sides run on copies of the variables, which are joined by `select`
afterwards. `return`, `break` and `continue` leave the path: the elements that leave are remembered with their condition
and their variables, and the path goes on for the others. Loops must end after a number of turns that does not depend on
an element, and are unrolled. (Source: Allen, Kennedy, Porterfield and Warren, "Conversion of control dependence to
data dependence", 1983.)
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, NbgradError, TracedValueError
from ..record.tensor import Tensor
from .scalar_calls import (
    as_integer,
    both,
    either,
    has_tensor,
    is_boolean,
    is_number,
    negation,
    scalar_call,
    select,
    truth,
)
from .scalar_code import MISSING, ScalarCode, python_function, scalar_code

MOST_TURNS = 10_000
"""The most turns of loops to which one call is unrolled."""
DEEPEST = 50
"""The most calls of functions within functions."""
Variables = dict[str, Any]
INSTEAD = "nb.primitive takes such a function as a kernel of its own, with its own derivative."


class _Either:
    """A variable that is no number and differs between the two sides of a condition."""


class _Loop:
    """A loop that runs: the elements that have left it, or left this turn, with their variables."""

    def __init__(self) -> None:
        self.breaks: list[tuple[Any, Variables]] = []
        self.continues: list[tuple[Any, Variables]] = []


def record(function: Any, args: Sequence[Any], kwargs: dict[str, Any], depth: int = 0) -> Any:
    """The result of a function of numbers for Tensors in place of numbers.

    Raises
    ------
    TracedValueError
        If a loop, an index or an exception depends on the value of an element.
    ArgumentError
        For syntax, and calls, that have no meaning element by element.
    """
    return _Frame(scalar_code(function), depth).run(args, kwargs)


class _Frame:
    """One call of a function."""

    def __init__(self, code: ScalarCode, depth: int) -> None:
        self.code = code
        self.depth = depth
        self.returns: list[tuple[Any, Any]] = []
        self.loops: list[_Loop] = []
        self.turns = 0

    def run(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        try:
            bound = self.code.signature.bind(*args, **kwargs)
        except TypeError as error:
            message = f"{self.code.name}() was called with other arguments than it has: {error}."
            raise ArgumentError(message) from None
        bound.apply_defaults()
        variables: Variables = dict(bound.arguments)
        definition = self.code.definition
        if isinstance(definition, ast.Lambda):
            return self.value(definition.body, variables)
        _, path = self.block(definition.body, variables, True)
        if path is not None:
            if self.returns:
                message = (
                    f"{self.code.name}() returns a value on some paths and none on others. Let every path end with "
                    "return."
                )
                raise ArgumentError(message)
            return None
        result = self.returns[-1][1]
        for condition, value in reversed(self.returns[:-1]):
            result = self.joined(condition, value, result)
        if isinstance(result, _Either):
            message = f"{self.code.name}() returns things on its paths that are no numbers."
            raise ArgumentError(message)
        return result

    def refuse(self, node: ast.AST, what: str, traced: bool = False) -> NbgradError:
        """The error for a piece of code that cannot be recorded."""
        place = self.code.place(node)
        return (TracedValueError if traced else ArgumentError)(f"{place} {what} {INSTEAD}")

    # ----- Statements -----

    def block(self, statements: Sequence[ast.stmt], variables: Variables, path: Any) -> tuple[Variables, Any]:
        """Run statements on a path; the variables afterwards, and the path that is left (None if none)."""
        for statement in statements:
            rule = _STATEMENTS.get(type(statement))
            if rule is None:
                what = f"has a statement ({type(statement).__name__}) that has no meaning element by element."
                if isinstance(statement, ast.FunctionDef):
                    what = f"defines a function, {statement.name}(), inside of it. Define it outside."
                raise self.refuse(statement, what)
            variables, path = rule(self, statement, variables, path)
            if path is None:
                break
        return variables, path

    def _pass(self, node: ast.stmt, variables: Variables, path: Any) -> tuple[Variables, Any]:
        return variables, path

    def _expression(self, node: Any, variables: Variables, path: Any) -> tuple[Variables, Any]:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value, variables)
        return variables, path

    def _assign(self, node: Any, variables: Variables, path: Any) -> tuple[Variables, Any]:
        if node.value is None:  # a bare annotation
            return variables, path
        value = self.value(node.value, variables)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            self.store(target, value, variables)
        return variables, path

    def _augmented(self, node: Any, variables: Variables, path: Any) -> tuple[Variables, Any]:
        if not isinstance(node.target, ast.Name):
            raise self.refuse(node, "writes into an array or an object.")
        left = self.value(ast.copy_location(ast.Name(node.target.id, ast.Load()), node), variables)
        variables[node.target.id] = self.arithmetic(node, node.op, left, self.value(node.value, variables))
        return variables, path

    def store(self, target: ast.expr, value: Any, variables: Variables) -> None:
        if isinstance(target, ast.Name):
            variables[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, tuple | list):
            if len(target.elts) != len(value) or any(isinstance(part, ast.Starred) for part in target.elts):
                raise self.refuse(target, f"unpacks {len(value)} values into another number of variables.")
            for part, one in zip(target.elts, value, strict=True):
                self.store(part, one, variables)
        else:
            raise self.refuse(target, "writes into an array or an object.")

    def _return(self, node: Any, variables: Variables, path: Any) -> tuple[Variables, Any]:
        self.returns.append((path, None if node.value is None else self.value(node.value, variables)))
        return variables, None

    def _if(self, node: Any, variables: Variables, path: Any) -> tuple[Variables, Any]:
        condition = truth(self.value(node.test, variables))
        if not isinstance(condition, Tensor):
            return self.block(node.body if condition else node.orelse, variables, path)
        sides = (both(path, condition), both(path, negation(condition)))
        yes, yes_path = self.block(node.body, dict(variables), sides[0])
        no, no_path = self.block(node.orelse, dict(variables), sides[1])
        if yes_path is None or no_path is None:
            return (no, no_path) if yes_path is None else (yes, yes_path)
        stayed = yes_path is sides[0] and no_path is sides[1]
        return self.join(condition, yes, no), path if stayed else either(yes_path, no_path)

    def _for(self, node: Any, variables: Variables, path: Any) -> tuple[Variables, Any]:
        items = self.value(node.iter, variables)
        if isinstance(items, Tensor | np.ndarray) or not hasattr(items, "__iter__"):
            raise self.refuse(node, "loops over something else than a range, a tuple or a list of known length.", True)
        loop = _Loop()
        self.loops.append(loop)
        for item in items:
            self.store(node.target, item, variables)
            variables, path = self.turn(node, loop, variables, path)
            if path is None:
                break
        return self.end_of(node, loop, variables, path)

    def _while(self, node: Any, variables: Variables, path: Any) -> tuple[Variables, Any]:
        loop = _Loop()
        self.loops.append(loop)
        while path is not None:
            condition = truth(self.value(node.test, variables))
            endless = isinstance(node.test, ast.Constant) and any(isinstance(p, Tensor) for p, _ in loop.breaks)
            if isinstance(condition, Tensor) or endless:
                what = (
                    "has a while loop that ends at another turn for each element. A `for` loop over a range of known "
                    "length, with `if ...: break`, works."
                )
                raise self.refuse(node, what, True)
            if not condition:
                break
            variables, path = self.turn(node, loop, variables, path)
        return self.end_of(node, loop, variables, path)

    def turn(self, node: Any, loop: _Loop, variables: Variables, path: Any) -> tuple[Variables, Any]:
        """One turn of a loop, joined with the elements that end it early."""
        self.turns += 1
        if self.turns > MOST_TURNS:
            raise self.refuse(node, f"runs more than {MOST_TURNS} turns, each of which would be compiled apart.", True)
        variables, path = self.block(node.body, variables, path)
        jumps, loop.continues = loop.continues, []
        return self.landed(jumps, variables, path)

    def end_of(self, node: Any, loop: _Loop, variables: Variables, path: Any) -> tuple[Variables, Any]:
        """The path behind a loop and its `else`, joined with the elements that left the loop by break."""
        self.loops.pop()
        if path is not None:
            variables, path = self.block(node.orelse, variables, path)
        return self.landed(loop.breaks, variables, path)

    def landed(self, jumps: Sequence[tuple[Any, Variables]], variables: Variables, path: Any) -> tuple[Variables, Any]:
        """The path, joined with the elements that have jumped here."""
        for condition, theirs in reversed(jumps):
            if path is None:
                variables, path = theirs, condition
            else:
                variables, path = self.join(condition, theirs, variables), either(path, condition)
        return variables, path

    def _break(self, node: ast.stmt, variables: Variables, path: Any) -> tuple[Variables, Any]:
        self.loops[-1].breaks.append((path, dict(variables)))
        return variables, None

    def _continue(self, node: ast.stmt, variables: Variables, path: Any) -> tuple[Variables, Any]:
        self.loops[-1].continues.append((path, dict(variables)))
        return variables, None

    def _raise(self, node: Any, variables: Variables, path: Any) -> tuple[Variables, Any]:
        raise self.refuse(node, "raises an exception on this path, which one element of an array cannot do.", True)

    def _assert(self, node: Any, variables: Variables, path: Any) -> tuple[Variables, Any]:
        condition = truth(self.value(node.test, variables))
        if isinstance(condition, Tensor):
            raise self.refuse(node, "asserts something of the value of an element.", True)
        if not condition:
            raise self.refuse(node, "asserts something that is false.")
        return variables, path

    # ----- Joining -----

    def join(self, condition: Any, yes: Variables, no: Variables) -> Variables:
        """The variables of two sides; one that only one side has keeps its value there."""
        joined = {**no, **yes}
        for name in yes.keys() & no.keys():
            joined[name] = self.joined(condition, yes[name], no[name])
        return joined

    def joined(self, condition: Any, a: Any, b: Any) -> Any:
        if a is b or condition is True:
            return a
        if is_number(a) and is_number(b):
            same = type(a) is type(b) and not isinstance(a, Tensor) and repr(a) == repr(b)
            return a if same else select(condition, a, b)
        if isinstance(a, tuple | list) and isinstance(b, tuple | list) and len(a) == len(b):
            return type(a)([self.joined(condition, x, y) for x, y in zip(a, b, strict=True)])
        return a if type(a) is type(b) and isinstance(a, str | range) and a == b else _Either()

    # ----- Expressions -----

    def value(self, node: ast.expr, variables: Variables) -> Any:
        rule = _EXPRESSIONS.get(type(node))
        if rule is None:
            what = f"has an expression ({type(node).__name__}) that has no meaning element by element."
            raise self.refuse(node, what)
        found = rule(self, node, variables)
        if isinstance(found, _Either):
            raise self.refuse(node, "uses a variable that is no number and that depends on the value of an element.")
        return found

    def _constant(self, node: Any, variables: Variables) -> Any:
        return node.value

    def _name(self, node: Any, variables: Variables) -> Any:
        if node.id in variables:
            return variables[node.id]
        found = MISSING if node.id in self.code.function.__code__.co_varnames else self.code.lookup(node.id)
        if found is MISSING:
            message = f"{self.code.place(node)} uses the name {node.id!r}, which has no value there."
            raise ArgumentError(message)
        return found

    def number(self, node: ast.AST, value: Any) -> Any:
        """An operand, which must be a number."""
        if is_number(value):
            return value
        shape = getattr(value, "shape", None)
        what = f"an array of shape {shape}" if shape else f"a {type(value).__name__}"
        raise self.refuse(node, f"computes with {what}, where single numbers are expected.")

    def arithmetic(self, node: ast.AST, op: ast.operator, left: Any, right: Any) -> Any:
        rule = _ARITHMETIC.get(type(op))
        if rule is None:
            raise self.refuse(node, f"has an operator ({type(op).__name__}) that has no meaning for numbers.")
        if not has_tensor((left, right)):
            return rule(left, right)
        left, right = self.number(node, left), self.number(node, right)
        if is_boolean(left) and is_boolean(right) and not isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor):
            left, right = as_integer(left), as_integer(right)  # in Python, True + True is 2
        return rule(left, right)

    def _binary(self, node: Any, variables: Variables) -> Any:
        return self.arithmetic(node, node.op, self.value(node.left, variables), self.value(node.right, variables))

    def _unary(self, node: Any, variables: Variables) -> Any:
        value = self.value(node.operand, variables)
        if isinstance(node.op, ast.Not):
            return negation(truth(value))
        value = as_integer(value)
        return -value if isinstance(node.op, ast.USub) else ~value if isinstance(node.op, ast.Invert) else +value

    def _logic(self, node: Any, variables: Variables) -> Any:
        """`a and b` is b where a is true, else a; operands behind a number that decides are not evaluated."""
        conjunction = isinstance(node.op, ast.And)
        found = self.value(node.values[0], variables)
        for following in node.values[1:]:
            condition = truth(found)
            if not isinstance(condition, Tensor):
                if condition is not conjunction:
                    return found
                found = self.value(following, variables)
                continue
            other = self.number(following, self.value(following, variables))
            if is_boolean(found) and is_boolean(other):
                found = (both if conjunction else either)(found, truth(other))
            else:
                found = select(condition, *((other, found) if conjunction else (found, other)))
        return found

    def _compare(self, node: Any, variables: Variables) -> Any:
        left = self.value(node.left, variables)
        found: Any = True
        for op, following in zip(node.ops, node.comparators, strict=True):
            right = self.value(following, variables)
            identity = isinstance(op, ast.Is | ast.IsNot) and (left is None or right is None)
            if has_tensor((left, right)) and not identity:
                if type(op) not in _ORDER:
                    raise self.refuse(node, f"asks {type(op).__name__} of the value of an element.", True)
                left, right = self.number(node, left), self.number(node, right)
            one = _COMPARISONS[type(op)](left, right)
            found = both(found, one if isinstance(one, Tensor) else bool(one))
            if found is False:
                return False
            left = right
        return found

    def _conditional(self, node: Any, variables: Variables) -> Any:
        condition = truth(self.value(node.test, variables))
        if not isinstance(condition, Tensor):
            return self.value(node.body if condition else node.orelse, variables)
        yes, no = self.value(node.body, variables), self.value(node.orelse, variables)
        return self.joined(condition, yes, no)

    def _tuple(self, node: Any, variables: Variables) -> Any:
        values = [self.value(part, variables) for part in node.elts]
        return tuple(values) if isinstance(node, ast.Tuple) else values

    def _walrus(self, node: Any, variables: Variables) -> Any:
        value = variables[node.target.id] = self.value(node.value, variables)
        return value

    def _subscript(self, node: Any, variables: Variables) -> Any:
        source, index = self.value(node.value, variables), self.value(node.slice, variables)
        if isinstance(source, Tensor):
            raise self.refuse(node, "takes an element of what stands for a single number.")
        if has_tensor((index,)):
            raise self.refuse(
                node, "takes the element of a table whose place depends on the value of an element.", True
            )
        return source[index]

    def _slice(self, node: Any, variables: Variables) -> Any:
        return slice(*[None if p is None else self.value(p, variables) for p in (node.lower, node.upper, node.step)])

    def _attribute(self, node: Any, variables: Variables) -> Any:
        source = self.value(node.value, variables)
        if isinstance(source, Tensor) and node.attr not in ("real", "imag", "conjugate", "dtype"):
            raise self.refuse(node, f"asks a number for its attribute {node.attr!r}.")
        try:
            return getattr(source, node.attr)
        except AttributeError as error:
            message = f"{self.code.place(node)}: {error}."
            raise ArgumentError(message) from None

    def _call(self, node: Any, variables: Variables) -> Any:
        function = self.value(node.func, variables)
        args: list[Any] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                args += self.value(argument.value, variables)
            else:
                args.append(self.value(argument, variables))
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            found = self.value(keyword.value, variables)
            kwargs.update(found if keyword.arg is None else {keyword.arg: found})
        if not has_tensor([*args, *kwargs.values()]):
            return getattr(function, "py_func", function)(*args, **kwargs)
        return self.called(node, function, args, kwargs)

    def called(self, node: ast.AST, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A call with Tensors among the arguments."""
        name = getattr(function, "__name__", type(function).__name__)
        instead = scalar_call(function)
        if instead is not None:
            return instead(*args, **kwargs)
        if any(function is container for container in _CONTAINERS):
            return function(*args, **kwargs)
        if function is range:
            raise self.refuse(node, "has a loop whose length depends on the value of an element.", True)
        inner = getattr(function, "scalar_function", None) or function
        if python_function(inner) is None:
            if getattr(function, "__self__", None) is not None and isinstance(function.__self__, Tensor):
                return function(*args, **kwargs)
            raise self.refuse(node, f"calls {name}(), which is not known to work element by element.")
        if self.depth >= DEEPEST:
            raise self.refuse(node, f"calls itself, or others, {DEEPEST} calls deep.", True)
        return record(inner, args, kwargs, self.depth + 1)


Rule = Callable[..., Any]
_CONTAINERS = (tuple, list, enumerate, zip, reversed, len)
_ARITHMETIC: dict[type, Rule] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_ORDER: dict[type, Rule] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_COMPARISONS: dict[type, Rule] = {
    **_ORDER,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_STATEMENTS: dict[type, Rule] = {
    ast.Pass: _Frame._pass,
    ast.Expr: _Frame._expression,
    ast.Assign: _Frame._assign,
    ast.AnnAssign: _Frame._assign,
    ast.AugAssign: _Frame._augmented,
    ast.Return: _Frame._return,
    ast.If: _Frame._if,
    ast.For: _Frame._for,
    ast.While: _Frame._while,
    ast.Break: _Frame._break,
    ast.Continue: _Frame._continue,
    ast.Raise: _Frame._raise,
    ast.Assert: _Frame._assert,
}
_EXPRESSIONS: dict[type, Rule] = {
    ast.Constant: _Frame._constant,
    ast.Name: _Frame._name,
    ast.BinOp: _Frame._binary,
    ast.UnaryOp: _Frame._unary,
    ast.BoolOp: _Frame._logic,
    ast.Compare: _Frame._compare,
    ast.IfExp: _Frame._conditional,
    ast.Tuple: _Frame._tuple,
    ast.List: _Frame._tuple,
    ast.NamedExpr: _Frame._walrus,
    ast.Subscript: _Frame._subscript,
    ast.Slice: _Frame._slice,
    ast.Attribute: _Frame._attribute,
    ast.Call: _Frame._call,
}
