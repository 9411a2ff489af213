"""The arrays of a derived kernel for threads: which ones its launch brings, and which ones each thread has.

In: the statements of a reverse or tangent kernel. Out: `ThreadArrays`: the statements without copies of whole arrays
and without arrays that grow. Called by thread_kernels.py.

A thread cannot make an array whose length it does not know beforehand. So copies of arguments, and memory for the turns
of loops whose number is not written in the kernel, come with the launch: one column for each thread. What has a known
length is a local array.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..dataflow import is_float
from ..kernel_statements import (
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
    stored,
    walk,
)
from ..reading.kernel_form import ScalarForm
from ..reading.plain_form import UnsupportedKernelError

THREAD = "this_thread"
"""The number of a thread among all threads of a launch."""
_MOST_SUMS = 16
_MOST_LOCAL = 256
"""The longest array of a thread for the turns of a loop."""


@dataclass
class ThreadArrays:
    """The arrays of a derived kernel.

    Attributes
    ----------
    body : Block
        The statements.
    copies : dict of str to str
        Arguments that begin as copies of others.
    columns : dict of str to str
        Arguments with a column for each thread, and their dtypes.
    shared : dict of str to (str, tuple)
        Shared arrays, their dtypes and shapes. Those with cotangents and tangents begin as zeros.
    private : set of str
        Arrays that each thread has for itself.
    """

    body: Block
    copies: dict[str, str] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    shared: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    private: set[str] = field(default_factory=set)
    sums: dict[str, Atom] = field(default_factory=dict)
    """Arguments with an element for each block, and the numbers whose sums over the threads of a block they get."""
    places: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """The elements of arrays to which sums belong."""


def origin(name: str, arrays: Mapping[str, object]) -> str | None:
    """The array of a kernel that an array of its derivative belongs to: itself, a copy, a cotangent, a tangent."""
    while name not in arrays:
        shorter = re.sub(r"_(w|b|t|[sj]\d+)$", "", name)
        if shorter == name:
            return None
        name = shorter
    return name


def with_thread_arrays(
    form: ScalarForm, body: Block, dtypes: Mapping[str, str], loops: Mapping[str, Block]
) -> ThreadArrays:
    """The arrays of the derivative of a kernel; `loops` has the loop of the kernel that each tape is for."""
    return _Arrays(form, dtypes, loops).found(body)


class _Arrays:
    def __init__(self, form: ScalarForm, dtypes: Mapping[str, str], loops: Mapping[str, Block]) -> None:
        self.form = form
        self.dtypes = dtypes
        self.counts = {id(one.body): one.count for one in walk(form.body) if isinstance(one, For)}
        self.loops = loops
        self.changed: set[str] = set()
        self.result = ThreadArrays(())

    def found(self, body: Block) -> ThreadArrays:
        """All of it."""
        self.local = {one.array: one.shape for one in walk(body) if isinstance(one, New)}
        self.result.private |= {*self.local}
        self.result.body = self.block(self.with_sums(body), True)
        aliases = {one.array for one in walk(self.result.body) if isinstance(one, Alias)}
        for statement in walk(self.result.body):
            for name in _arrays_of(statement):
                base = origin(name, self.form.shared)
                if base is not None and name not in self.result.shared and name not in aliases:
                    self.result.shared[name] = self.form.dtypes[base], self.form.shared[base]
        return self.result

    def with_sums(self, body: Block) -> Block:
        """A block in which what all threads add to an element is a number of each thread, to be summed."""
        adds: dict[str, list[Store] | None] = {}
        for statement in walk(body):
            for name in {*_arrays_of(statement)} - self.result.private:
                held = adds.setdefault(name, [])
                if not isinstance(statement, Store) or not statement.add or held is None:
                    adds[name] = None
                elif all(one.isdigit() for one in statement.index):
                    held.append(statement)
        places = sorted({(one.array, one.index) for held in adds.values() for one in held or ()})
        names = {}
        for array, index in places[:_MOST_SUMS]:
            base = origin(array, {**self.form.ranks, **self.form.shared})
            if base in self.form.common and base not in self.form.shared and is_float(self.form.dtypes[base]):
                names[array, index] = name = f"{array}_{'_'.join(index)}"
                self.result.sums[f"{name}_sums"] = name
                self.result.places[f"{name}_sums"] = array, tuple(map(int, index))
        head = tuple([Set(name, copied("0.0")) for name in names.values()])
        return (*head, *_summed(body, names))

    def block(self, body: Block, outermost: bool) -> Block:
        """The statements of a block for a thread."""
        found: list[Statement] = []
        for statement in body:
            found += self.statement(statement, outermost)
            self.changed |= stored([statement])
        return tuple(found)

    def statement(self, statement: Statement, outermost: bool) -> list[Statement]:
        """A statement for a thread."""
        match statement:
            case If(test, then, orelse):
                return [If(test, self.block(then, False), self.block(orelse, False))]
            case For(turn, count, body, parallel, backwards):
                return [For(turn, count, self.block(body, False), parallel, backwards)]
            case While(body, test):
                return [While(self.block(body, False), test)]
            case New(array, shape, dtype) if array.startswith(("log", "tape_", "mark_", "was_")) and self.is_tape(
                array
            ):
                return self.tape(array, dtype)
            case New(array, shape) if not all(one.isdigit() for one in shape):
                message = f"{self.form.name}() makes `{array}`, an array whose length is not known beforehand."
                raise UnsupportedKernelError(message)
            case Room():
                return []
            case Copy(array, source):
                return self.copy(array, source, outermost)
            case Alias(_, source) if source in self.result.private:
                return [statement]
            case Set(target, Load(array, index)) if array in self.result.columns:
                return [Set(target, Load(array, (*index, THREAD)))]
            case Store(array, index, value, add) if array in self.result.columns:
                return [Store(array, (*index, THREAD), value, add)]
            case _:
                return [statement]

    def is_tape(self, array: str) -> bool:
        """Whether an array belongs to the derivative alone."""
        return array not in self.form.dtypes

    def tape(self, array: str, dtype: str) -> list[Statement]:
        """Memory for the turns of a loop: local if their number is written in the kernel."""
        count = self.counts.get(id(self.loops.get(re.sub(r"(_t)+$", "", array))), "")
        if count.isdigit() and int(count) <= _MOST_LOCAL:
            return [New(array, (count,), dtype)]
        self.result.private.discard(array)
        self.result.columns[array] = dtype
        return []

    def copy(self, array: str, source: str, outermost: bool) -> list[Statement]:
        """A copy of an array: one that the launch makes, or a local one."""
        shape = self.local.get(source)
        if shape is not None:
            self.local[array] = shape
            self.result.private.add(array)
            return [New(array, shape, self.dtypes[source]), *_copied(array, source, shape)]
        given = self.result.copies.get(source, source)
        if not outermost or {source, given} & self.changed or origin(source, self.form.shared):
            name = origin(source, self.form.ranks)
            message = (
                f"{self.form.name}() overwrites `{name}` in a loop, and its derivative needs the "
                "array as it was before. Write the results to another array."
            )
            raise UnsupportedKernelError(message)
        self.result.copies[array] = given
        return []


def _summed(body: Block, names: Mapping[tuple[str, tuple[Atom, ...]], str]) -> Block:
    """A block in which numbers have what is added to elements."""
    found: list[Statement] = []
    for statement in body:
        match statement:
            case Store(array, index, value, True) if (array, index) in names:
                name = names[array, index]
                found.append(Set(name, Op("add", (name, value), "{0} + {1}")))
            case If(test, then, orelse):
                found.append(If(test, _summed(then, names), _summed(orelse, names)))
            case For(turn, count, inside, parallel, backwards):
                found.append(For(turn, count, _summed(inside, names), parallel, backwards))
            case While(inside, test):
                found.append(While(_summed(inside, names), test))
            case _:
                found.append(statement)
    return tuple(found)


def _copied(array: str, source: str, shape: tuple[Atom, ...]) -> list[Statement]:
    """Loops that copy the elements of a local array."""
    turns = tuple([f"e{axis}_{array}" for axis in range(len(shape))])
    value = f"e_{array}"
    found: Block = (Set(value, Load(source, turns)), Store(array, turns, value))
    for turn, count in reversed(list(zip(turns, shape, strict=True))):
        found = (For(turn, count, found),)
    return list(found)


def _arrays_of(statement: Statement) -> list[str]:
    """The arrays that a statement itself names."""
    match statement:
        case Set(_, Load(array)) | Store(array):
            return [array]
        case Set(_, Op(arrays=arrays)):
            return [*arrays]
        case Copy(array, source) | Alias(array, source):
            return [array, source]
        case _:
            return []
