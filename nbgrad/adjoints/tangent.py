"""Forward mode: statements that compute tangents beside the values.

In: the statements of a kernel, or of a derivative of one, and the arguments that have tangents. Out: `Tangent`.
Called by derived.py. The tangent of a number or an array is named after it with `_t`. Reverse kernels are statements
like any others, so that their tangents are second derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from .dataflow import active_names, is_float
from .kernel_statements import (
    UNKNOWN,
    Alias,
    Atom,
    Block,
    Copy,
    For,
    If,
    Load,
    New,
    Op,
    Room,
    Set,
    Statement,
    Store,
    While,
    copied,
)
from .partials import Partials
from .reading.plain_form import UnsupportedKernelError


@dataclass(frozen=True)
class Tangent:
    """Statements that also compute tangents; `active` are the names that have one."""

    body: Block
    active: frozenset[str]
    dtypes: dict[str, str]


def dot(name: str) -> str:
    """The name of a tangent."""
    return f"{name}_t"


def dot_again(name: str) -> str:
    """The name of a tangent where there are tangents already."""
    return f"{name}_u"


def tangent(
    name: str,
    body: Block,
    moved: Iterable[str],
    dtypes: Mapping[str, str],
    named: Callable[[str], str] = dot,
) -> Tangent:
    """The statements of a kernel of some name, with the tangents of what depends on the moved arguments."""
    made = _Forward(name, active_names(body, moved, dtypes), dict(dtypes), named)
    found = made.block(body)
    return Tangent(found, frozenset(made.active), made.dtypes)


class _Forward:
    def __init__(self, name: str, active: set[str], dtypes: dict[str, str], named: Callable[[str], str]) -> None:
        self.name = name
        self.dot = named
        self.active = active
        self.dtypes = dtypes
        self.count = 0
        for one in active:
            self.dtypes[self.dot(one)] = dtypes[one] if not is_float(dtypes[one]) else "float64"
        self.partials = Partials(self.new)

    def new(self, dtype: str) -> str:
        """A new name of a number."""
        self.count += 1
        name = f"h_{self.count}"
        if name in self.dtypes:
            return self.new(dtype)
        self.dtypes[name] = dtype
        return name

    def moving(self, atom: Atom) -> Atom | None:
        """The tangent of an atom; None if it has none."""
        return self.dot(atom) if atom in self.active else None

    def block(self, body: Block) -> Block:
        """A block with its tangents."""
        out: list[Statement] = []
        for statement in body:
            self.statement(statement, out)
        return tuple(out)

    def statement(self, statement: Statement, out: list[Statement]) -> None:
        """Add a statement with its tangent."""
        match statement:
            case Set(target, Op("add", (first, other), "{0} + {1}")) if (
                target == first != other and target in self.active
            ):
                # A sum stays a sum, so that loops that carry it may run in parts.
                if (t := self.moving(other)) is not None:
                    out.append(Set(self.dot(target), Op("add", (self.dot(target), t), "{0} + {1}")))
                out.append(statement)
            case Set(target, Op() as op) if target in self.active:
                self.operation(target, op, out)
            case Set(target, Load(array, index)) if target in self.active:
                if array in self.active:
                    out.append(Set(self.dot(target), Load(self.dot(array), index)))
                else:
                    out.append(Set(self.dot(target), copied("0.0")))
                out.append(statement)
            case Set(target) if target in self.active:
                out += [Set(self.dot(target), copied("0.0")), statement]
            case Store(array, index, value, add) if array in self.active:
                t = self.moving(value)
                if t is not None or not add:
                    out.append(Store(self.dot(array), index, t or "0.0", add))
                out.append(statement)
            case New(array, shape, dtype) if array in self.active:
                out += [statement, New(self.dot(array), shape, "float64" if is_float(dtype) else dtype, "0.0")]
            case Copy(array, source) if array in self.active:
                out += [statement, Copy(self.dot(array), self.dot(source))]
            case Alias(array, source) if array in self.active:
                out += [statement, Alias(self.dot(array), self.dot(source))]
            case Room(array, length, keeps) if array in self.active:
                out += [Room(self.dot(array), length, keeps), statement]
            case If(test, then, orelse):
                out.append(If(test, self.block(then), self.block(orelse)))
            case For() | While():
                out.append(replace(statement, body=self.block(statement.body)))
            case _:
                out.append(statement)

    def operation(self, target: str, op: Op, out: list[Statement]) -> None:
        """Add an operation on numbers with its tangent."""
        tangents = [self.moving(one) for one in op.args]
        if not op.name or all(one is None for one in tangents):
            out += [Set(self.dot(target), copied("0.0")), Set(target, op)]
            return
        if op.name == UNKNOWN:
            message = f"{self.name}() calls {op.text.split('(')[0]}(), of which no derivative is known here."
            raise UnsupportedKernelError(message)
        again = target in op.args
        result = self.new(self.dtypes[target]) if again else target
        out.append(Set(result, op))
        parts = [one for one in self.partials.tangents(op, result, tangents, out) if one is not None]
        total = parts[0] if parts else "0.0"
        for one in parts[1:]:
            total = self.partials.named(Op("add", (total, one), "{0} + {1}"), out)
        out.append(Set(self.dot(target), copied(total)))
        if again:
            out.append(Set(target, copied(result)))
