"""A kernel as statements, and what is known of its names.

In: nothing. Out: the classes `ScalarForm`, `Frame`, and `FormWriter`, which adds statements. Called by the modules
that take kernels apart, and by those that differentiate them.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...process.once import computed_once
from ..kernel_statements import RESERVED, Atom, Block, Expression, Op, Set, Statement, stored
from .array_values import Value, View
from .known_functions import Known
from .plain_form import PlainFunction


@dataclass
class ScalarForm:
    """A kernel as statements.

    Attributes
    ----------
    name : str
        The kernel's name.
    parameters : list of str
        Its arguments, those that are numbers or arrays.
    results : list of str, View or Object
        What it returns: numbers, arrays, and what is neither; those of tuples in tuples are in a row.
    structure : int or tuple
        The positions of the results, in the tuples that the kernel returns.
    dtypes : dict
        The dtype of each number and of the elements of each array.
    ranks : dict
        The number of axes of each array.
    objects : dict
        Objects that the text refers to, by name.
    """

    name: str
    parameters: list[str]
    body: Block = ()
    results: list[Any] = field(default_factory=list)
    structure: Any = ()
    dtypes: dict[str, str] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    objects: dict[str, Any] = field(default_factory=dict)
    lengths: dict[str, str] = field(default_factory=dict)
    """Integers as lengths of axes: a name, or a text. Integers with the same one are equal."""
    count: int = 0
    shared: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The shapes of arrays that the threads of a block share."""
    added: set[str] = field(default_factory=set)
    """The arrays that threads add to by atomic operations."""
    common: set[str] = field(default_factory=set)
    """The arrays of which several threads may use the same element."""
    complex: dict[str | int, str] = field(default_factory=dict)
    """The dtypes of complex arguments, and of complex results by their positions; all of them are arrays of parts."""
    refilled: set[tuple[int, str]] = field(default_factory=set)
    """Bodies of loops, by their identity, and shared arrays that each turn writes as a whole before it reads them."""

    def dtype_of(self, value: Value) -> str:
        """The dtype of a result."""
        if isinstance(value, View):
            return value.dtype
        return self.dtypes.get(str(value)) or literal_dtype(str(value))

    @computed_once
    def written(self) -> list[str]:
        """The arguments that are arrays and are written to."""
        found = stored(self.body)
        return [name for name in self.parameters if name in found]

    @computed_once
    def same(self) -> dict[int, str]:
        """The results that are arguments which the kernel has written to."""
        written = self.written
        return {
            k: result.array
            for k, result in enumerate(self.results)
            if isinstance(result, View) and result.whole and result.array in written
        }


def dtype_name(kind: Any) -> str:
    """The dtype of a number, or an array of no axes, of one of Numba's types; empty if it is none of these."""
    from numba.core import types

    kind = types.unliteral(kind)
    if isinstance(kind, types.Array) and kind.ndim == 0:
        kind = kind.dtype
    if isinstance(kind, types.Boolean):
        return "bool"
    return str(kind) if isinstance(kind, types.Integer | types.Float | types.Complex) else ""


class DeadBranch(Exception):  # noqa: N818 - no error: a way through a kernel that is never taken
    """A variable has no type: Numba's own inference has left out the branch that sets it."""


class Frame:
    """One call of one function while it is taken apart."""

    def __init__(self, plain: PlainFunction, types: dict[str, Any], prefix: str, parallel: bool) -> None:
        self.plain = plain
        self.parallel = parallel
        """Whether Numba runs its loops over `prange` on several threads."""
        self.types = types
        self.prefix = prefix
        self.env: dict[str, Value] = {}
        self.numbers: dict[str, str] = {}
        """The number that stands for each variable, or part of one, that holds numbers."""
        self.lists: dict[str, tuple[View, Atom]] = {}
        """The arrays of lists that a loop makes, and the position of the next element."""


def numba_type(dtype: str) -> Any:
    """Numba's type of a dtype."""
    import numba

    return numba.boolean if dtype == "bool" else getattr(numba, dtype)


def literal_dtype(atom: Atom) -> str:
    """The dtype of a literal."""
    return "bool" if atom in ("True", "False") else "int64" if atom.lstrip("-").isdigit() else "float64"


def unlike_derivatives(name: str) -> str:
    """A name that is none of a cotangent, a tangent or a copy, which end in such letters."""
    return f"{name}_" if name.endswith(("_b", "_t", "_u", "_w")) else name


class FormWriter:
    """Adds statements to a form; the parts of a reader of kernels are its subclasses."""

    form: ScalarForm
    frame: Frame
    out: list[Statement]
    frozen: set[str]
    """Arrays that stand for several ones of the kernel, so that nothing may be written to them."""

    def fresh(self, base: str, dtype: str) -> str:
        """A new name of a number."""
        name = base = unlike_derivatives(base)
        while name in self.form.dtypes or name in self.form.objects or name in RESERVED:
            self.form.count += 1
            name = f"{base}_{self.form.count}"
        self.form.dtypes[name] = dtype
        return name

    def put(self, value: Expression, dtype: str, base: str = "t") -> Atom:
        """The name of a number that is computed now."""
        name = self.fresh(base, dtype)
        self.out.append(Set(name, value))
        return name

    def note_length(self, name: str, value: Expression) -> None:
        """Note what an integer, which no other statement sets, is of the lengths of axes."""
        lengths, dtypes = self.form.lengths, self.form.dtypes
        if not isinstance(value, Op) or value.arrays or not dtypes[name].startswith("int"):
            return
        if all(one in lengths or one.lstrip("-").isdigit() for one in value.args) and value.args:
            found = value.text.format(*[lengths.get(one, one) for one in value.args])
            found = found if value.text == "{0}" else f"({found})"
            lengths[name] = found if lengths.get(name, found) == found else name

    def integer(self, text: str, *atoms: Atom) -> Atom:
        """The name of an integer."""
        name = self.put(Op("", atoms, text), "int64", "k")
        self.note_length(name, Op("", atoms, text))
        return name

    def refuse(self, node: ast.AST | None, what: str) -> Any:
        """Raise the error that names the user's line."""
        return self.frame.plain.refuse(node if node is not None else self.frame.plain.code.definition, what)

    @abstractmethod
    def value(self, node: ast.expr) -> Value:
        """The value of an atom of the text."""

    @abstractmethod
    def number(self, node: ast.expr) -> Atom:
        """The atom of an operand that must be a number."""

    @abstractmethod
    def kind(self, node: ast.expr) -> Any:
        """Numba's type of an atom of the text; None if it has none."""

    @abstractmethod
    def applied(self, node: ast.AST, known: Known, operands: Sequence[Value]) -> Value | Expression:
        """A function of numbers, applied to numbers or to each element of arrays."""
