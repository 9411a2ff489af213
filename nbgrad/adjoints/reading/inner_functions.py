"""Functions that a kernel defines inside itself, by `def` or `lambda`: their text in the place of each call.

In: the body of a kernel, and calls of its inner functions. Out: the body without the definitions, and for each call
statements whose variables have names of their own. Called by plain_form.py. As in Python, and as Numba does it, what an
inner function reads of the kernel's variables has the value of the time of the call.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple

from .jumps import RESULT, without_jumps

Inner = ast.FunctionDef | ast.Lambda


class Inlined(NamedTuple):
    """A call, written out: the parameters with what they get, the statements, and the variable with the result."""

    given: list[tuple[str, ast.expr]]
    body: list[ast.stmt]
    result: str
    """Empty if the function gives nothing."""
    inside: dict[str, Inner]
    """The functions that are defined inside of it."""


def without_definitions(
    body: Sequence[ast.stmt], refuse: Callable[[ast.AST, str], Any]
) -> tuple[list[ast.stmt], dict[str, Inner]]:
    """The body of a function without the functions that it defines, and these by their names."""
    taken = _Definitions()
    found = [taken.visit(copy.deepcopy(one)) for one in body]
    stored = {
        n.id: n for one in found for n in ast.walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    for name, several in taken.found.items():
        if len(several) > 1 or name in stored:
            place = several[1] if len(several) > 1 else stored[name]
            refuse(place, f"gives `{name}` another meaning than the function of that name. Use one name for each.")
    return found, {name: several[0] for name, several in taken.found.items()}


class _Definitions(ast.NodeTransformer):
    """Takes definitions of functions out of a function's own text, but not those that stand inside of these."""

    def __init__(self) -> None:
        self.found: dict[str, list[Inner]] = {}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function with a name."""
        self.found.setdefault(node.name, []).append(node)
        return ast.copy_location(ast.Pass(), node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """A lambda in the middle of an expression."""
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """A variable that stands for a lambda."""
        match node:
            case ast.Assign([ast.Name(name)], ast.Lambda() as value):
                self.found.setdefault(name, []).append(value)
                return ast.copy_location(ast.Pass(), node)
        return node


def compiled_alone(
    function: Inner,
    owner: FunctionType,
    line: int,
    constants: dict[str, Any],
    node: ast.AST,
    refuse: Callable[[ast.AST, str], Any],
) -> Any:
    """An inner function as one that Numba compiles by itself, which a kernel passes to another function.

    Parameters
    ----------
    owner : FunctionType
        The function whose text it stands in.
    line : int
        The line of the file in which it begins.
    constants : dict of str to object
        The variables of the owner that are literals.
    """
    import numba

    name = getattr(function, "name", "<lambda>")
    code = next((one for one in _codes_in(owner.__code__) if (one.co_name, one.co_firstlineno) == (name, line)), None)
    if code is None:
        return refuse(node, f"passes {name}, whose code is not found. Define it outside, under njit.")
    for one in code.co_freevars:
        if one not in constants:
            refuse(
                node,
                f"passes {name}, which reads `{one}` of the kernel. Let it take that as an argument.",
            )
    defaults = function.args.defaults
    if not all(isinstance(one, ast.Constant) for one in defaults):
        refuse(node, f"passes {name}, which has a default that is no literal. Pass the argument.")
    values = tuple([one.value for one in defaults if isinstance(one, ast.Constant)])
    cells = tuple([CellType(constants[one]) for one in code.co_freevars])
    return numba.njit(FunctionType(code, owner.__globals__, name, values, cells))


def literals_in(definition: ast.AST) -> dict[str, Any]:
    """The variables of a function that one statement gives a literal, and no other anything."""
    stored = [n.id for n in ast.walk(definition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    found: dict[str, Any] = {}
    for one in ast.walk(definition):
        match one:
            case ast.Assign([ast.Name(name)], ast.Constant(value)) if stored.count(name) == 1:
                found[name] = value
    return found


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    """The code of all functions that are defined in a function."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes_in(one)


def inlined(
    function: Inner,
    call: ast.Call,
    arguments: Sequence[ast.expr],
    fresh: Callable[[str], str],
    refuse: Callable[[ast.AST, str], Any],
) -> Inlined:
    """A call of an inner function, written out.

    Parameters
    ----------
    arguments : sequence of ast.expr
        The positional arguments of the call: names, literals and tuples of these.
    fresh : callable
        A name that the kernel does not use yet, for a variable of the function.
    """
    name = getattr(function, "name", "a lambda")
    given = function.args
    if given.vararg or given.kwarg or given.kwonlyargs:
        refuse(function, f"defines {name} with `*` or keyword-only arguments. Write its arguments out.")
    if call.keywords:
        refuse(
            call,
            f"calls {name} with keywords, which Numba loses in calls of functions that a kernel defines inside. Give "
            "the arguments by position.",
        )
    parameters = [one.arg for one in (*given.posonlyargs, *given.args)]
    missing = len(parameters) - len(arguments)
    if missing < 0 or missing > len(given.defaults):
        refuse(call, f"calls {name} with {len(arguments)} arguments, but it takes {len(parameters)}.")
    defaults = given.defaults[len(given.defaults) - missing :]
    for one in defaults:
        if not isinstance(one, ast.Constant):
            refuse(one, f"gives an argument of {name} a default that is no literal. Pass the argument.")
    body = function.body if isinstance(function, ast.FunctionDef) else [ast.Return(function.body)]
    for one in body:
        ast.fix_missing_locations(ast.copy_location(one, one if hasattr(one, "lineno") else function))
    body, inner = without_definitions(body, refuse)
    body = without_jumps(body)
    stored = {n.id for one in body for n in ast.walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    values = dict(zip(parameters, [*arguments, *defaults], strict=True))
    literal = {one: v for one, v in values.items() if isinstance(v, ast.Constant) and one not in stored}
    names = {one: fresh(one) for one in (*parameters, *sorted(stored - set(parameters)), *inner) if one not in literal}
    renamed = _Renamed({**{one: ast.Name(new, ast.Load()) for one, new in names.items()}, **literal})
    return Inlined(
        [(names[one], value) for one, value in values.items() if one not in literal],
        [renamed.visit(one) for one in body],
        names.get(RESULT, ""),
        {names[one]: renamed.inside(value) for one, value in inner.items()},
    )


class _Renamed(ast.NodeTransformer):
    """Puts other names or literals in the place of variables; in functions inside, of those that are not their own."""

    def __init__(self, values: dict[str, ast.Name | ast.Constant]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A variable."""
        match self.values.get(node.id):
            case ast.Name(name):
                return ast.copy_location(ast.Name(name, node.ctx), node)
            case ast.Constant(value):
                return ast.copy_location(ast.Constant(value), node)
        return node

    def inside(self, function: Inner) -> Inner:
        """A function that is defined inside."""
        found = copy.deepcopy(function)
        body = found.body if isinstance(found, ast.FunctionDef) else [found.body]
        own = {one.arg for one in ast.walk(found.args) if isinstance(one, ast.arg)}
        own |= {n.id for one in body for n in ast.walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        own |= {one.name for part in body for one in ast.walk(part) if isinstance(one, ast.FunctionDef)}
        other = _Renamed({name: new for name, new in self.values.items() if name not in own})
        if isinstance(found, ast.FunctionDef):
            found.body = [other.visit(one) for one in found.body]
        else:
            found.body = other.visit(found.body)
        return found

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """A lambda in the middle of an expression."""
        return self.inside(node)
