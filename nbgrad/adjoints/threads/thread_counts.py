"""How often the loops of a kernel for threads run: the memory that a launch brings for their derivatives.

In: a kernel as statements, the loops and arrays that are asked for. Out: `Counts`, which runs the kernel's integers
on the CPU, for all threads one after the other. Called by thread_kernels.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...process.once import computed_once
from ..dataflow import is_float
from ..derived import Derived
from ..kernel_statements import (
    Atom,
    Block,
    Break,
    For,
    If,
    Op,
    Set,
    Statement,
    Store,
    Sync,
    While,
    assigned,
    atoms_of,
    copied,
    loaded,
    stored,
    walk,
)
from ..kernel_text import function_text
from ..reading.kernel_form import ScalarForm
from ..reading.plain_form import UnsupportedKernelError
from ..removal import without_unused
from .thread_arrays import origin

_MOST_KNOWN = 1000
_AXES = "xyz"
_NUMBER = re.compile(r"cuda\.(threadIdx|blockIdx|blockDim|gridDim)\.([xyz])$")
_WHOLE = re.compile(r"cuda\.(grid|gridsize)\((\d)\)(?:\[(\d)\])?$")
_PLACES = [f"{kind}_{axis}" for kind in ("blockIdx", "threadIdx") for axis in _AXES]
_SIZES = [f"{kind}_{axis}" for kind in ("gridDim", "blockDim") for axis in _AXES]


class Counts:
    """The lengths of columns, the memory of a thread for the turns of a loop or for overwritten elements."""

    def __init__(self, form: ScalarForm, columns: Sequence[str], loops: Mapping[str, Block]) -> None:
        self.form = form
        self.columns = list(columns)
        self.tapes = {name: id(loops[name]) for name in map(_plain, columns) if name in loops}
        self.loops = {loop: name for name, loop in self.tapes.items()}
        self.known: dict[Any, Any] = {}
        self.arrays = sorted({base for name in columns if (base := self.logged(name)) is not None})

    def logged(self, column: str) -> str | None:
        """The array whose overwritten elements are kept in a column."""
        found = re.match(r"log\d*_(.*)", column)
        return origin(found[1], self.form.ranks) if found is not None else None

    @computed_once
    def peaks(self) -> list[str]:
        """The numbers that are counted."""
        return [*[f"turns_of_{name}" for name in self.loops.values()], *[f"most_{name}" for name in self.arrays]]

    @computed_once
    def body(self) -> Block:
        """The statements that count for one thread."""
        body = [Set(f"now_{name}", copied("0")) for name in self.arrays]
        body += self.counted(self.form.body)
        body += [Set(f"most_{n}", Op("", (f"most_{n}", f"now_{n}"), "max({0}, {1})")) for n in self.arrays]
        kept = without_unused(tuple(body), self.peaks)
        if not self.rounded.isdisjoint(atom for one in walk(kept) for atom in atoms_of(one)):
            self.refuse_floats()
        written = loaded(kept) & (stored(self.form.body) | {*self.form.shared})
        if written:
            message = (
                f"{self.form.name}() has a loop that carries numbers, and whose number of turns depends on "
                f"`{min(written)}`, which the kernel itself writes. Let it depend on arguments only."
            )
            raise UnsupportedKernelError(message)
        return kept

    @computed_once
    def read(self) -> set[str]:
        """The arrays whose elements are read."""
        return loaded(self.body)

    @computed_once
    def derived(self) -> Derived:
        """The function that counts."""
        kept, peaks = self.body, self.peaks
        names = {atom for one in walk(kept) for atom in atoms_of(one)}
        for place in [one for one in _PLACES[::-1] if one in names]:
            size = f"gridDim{place[-2:]}" if place.startswith("block") else f"blockDim{place[-2:]}"
            kept = (For(place, size, kept),)
        whole = (*[Set(name, copied("0")) for name in peaks], *kept)
        title = f"{self.form.name.strip('_<>')}_turns"
        parameters = [*self.form.parameters, *_SIZES]
        return Derived(title, function_text(title, parameters, whole, peaks), parameters, self.form.objects)

    @computed_once
    def arguments(self) -> list[str]:
        """The arguments of the kernel whose elements and values are needed."""
        return [
            name for name in self.form.parameters if re.search(rf"\b{name}\b", self.derived.text.partition("\n")[2])
        ]

    def lengths(self, given: Sequence[Any], grid: Sequence[int], block: Sequence[int]) -> dict[str, int]:
        """The length of each column for a launch."""
        key = tuple([one.shape if isinstance(one, np.ndarray) else one for one in (*given, *grid, *block)])
        found = self.known.get(key)
        if found is None:
            found = self.derived.function(*given, *grid, *block)
            if not self.read and len(self.known) < _MOST_KNOWN:
                self.known[key] = found
        names = [*self.loops.values(), *self.arrays]
        by_name = {name: max(1, int(count)) for name, count in zip(names, found, strict=True)}
        depth = max(1, _depth(self.form.body))
        lengths: dict[str, int] = {}
        for column in self.columns:
            array = self.logged(column)
            name = self.loops[self.tapes[_plain(column)]] if array is None else array
            lengths[column] = by_name[name] * (1 if array is None else depth)
        return lengths

    @computed_once
    def rounded(self) -> set[str]:
        """The numbers that depend on floats: a device may round otherwise, so that they are not known here."""
        form = self.form
        found = {name for name, dtype in form.dtypes.items() if is_float(dtype) and name not in form.ranks}
        while True:
            before = len(found)
            for statement in walk(form.body):
                match statement:
                    case Set(target) if not found.isdisjoint(atoms_of(statement)):
                        found.add(target)
                    case If(test, then, orelse) if test in found:
                        found |= assigned(then) | assigned(orelse)
                    case For(_, _, body) | While(body) if self.leaves(body, found):
                        # What a loop of fewer turns leaves behind is something else.
                        inside = Counter(atom for one in walk(body) for atom in atoms_of(one))
                        everywhere = Counter(atom for one in walk(form.body) for atom in atoms_of(one))
                        found |= {name for name in assigned(body) if everywhere[name] > inside[name]}
                    case _:
                        pass
            if len(found) == before:
                return found

    def leaves(self, body: Block, rounded: set[str], inside: bool = False) -> bool:
        """Whether floats decide when the loop with a body ends."""
        return any(
            (isinstance(one, Break) and inside)
            or (
                isinstance(one, If)
                and any(self.leaves(side, rounded, inside or one.test in rounded) for side in (one.then, one.orelse))
            )
            for one in body
        )

    def counted(self, body: Block) -> list[Statement]:
        """A block that counts, in which the numbers of a thread are variables.

        Where floats decide, both branches run, and loops of known length run to their end: the counts are large enough.
        """
        found: list[Statement] = []
        for statement in body:
            match statement:
                case Set(target, Op(_, _, text)) if text.startswith("cuda."):
                    found.append(Set(target, _thread_number(text)))
                case If(test, then, orelse) if test in self.rounded:
                    found += _without_breaks(self.counted((*then, *orelse)))
                case If(test, then, orelse):
                    found.append(If(test, tuple(self.counted(then)), tuple(self.counted(orelse))))
                case For(_, _, inside) | While(inside):
                    found += self.loop(statement, inside)
                case Sync():
                    pass
                case Store(array) if array in self.arrays:
                    found += [Set(f"now_{array}", Op("", (f"now_{array}", "1"), "{0} + {1}")), statement]
                case _:
                    found.append(statement)
        return found

    def loop(self, statement: For | While, inside: Block) -> list[Statement]:
        """A loop that counts its turns."""
        name = self.loops.get(id(inside), "")
        now, most = f"turn_of_{name}", f"turns_of_{name}"
        if isinstance(statement, For):
            peak = [Set(most, Op("", (most, statement.count), "max({0}, {1})"))] if name else []
            return [*peak, For(statement.turn, statement.count, tuple(self.counted(inside)))]
        if self.leaves(inside, self.rounded):
            if name or any(id(one.body) in self.loops for one in walk(inside) if isinstance(one, For | While)):
                self.refuse_floats()
            if stored(inside) & {*self.arrays}:
                self.refuse_floats()
            return []
        body = self.counted(inside)
        if not name:
            return [While(tuple(body))]
        step = [Set(now, Op("", (now, "1"), "{0} + {1}")), Set(most, Op("", (most, now), "max({0}, {1})"))]
        return [Set(now, copied("0")), While((*step, *body))]

    def refuse_floats(self) -> None:
        """Raise the error for counts that depend on floats."""
        message = (
            f"{self.form.name}() has a loop that carries numbers, and floats decide how often it runs, which a device "
            "may round otherwise. Write `for _ in range(limit)` with a `break`."
        )
        raise UnsupportedKernelError(message)


def _without_breaks(body: Sequence[Statement]) -> list[Statement]:
    """A block that does not end the loop around it."""
    found: list[Statement] = []
    for statement in body:
        if isinstance(statement, If):
            sides = [tuple(_without_breaks(side)) for side in (statement.then, statement.orelse)]
            statement = If(statement.test, *sides)
        if not isinstance(statement, Break):
            found.append(statement)
    return found


def _plain(column: str) -> str:
    return re.sub(r"(_t)+$", "", column)


def _thread_number(text: str) -> Op:
    """A number of a thread as variables."""
    found = _NUMBER.match(text)
    if found is not None:
        return copied(f"{found[1]}_{found[2]}")
    found = _WHOLE.match(text)
    if found is None:
        return copied("32" if text == "cuda.warpsize" else "0")
    axis = _AXES[int(found[3] or 0)]
    if found[1] == "grid":
        places: tuple[Atom, ...] = (f"blockIdx_{axis}", f"blockDim_{axis}", f"threadIdx_{axis}")
        return Op("", places, "{0} * {1} + {2}")
    return Op("", (f"gridDim_{axis}", f"blockDim_{axis}"), "{0} * {1}")


def _depth(body: Block) -> int:
    """How many loops stand in each other."""
    return max([0, *[1 + _depth(one.body) if isinstance(one, For | While) else _depth(_inner(one)) for one in body]])


def _inner(statement: Statement) -> Block:
    return (*statement.then, *statement.orelse) if isinstance(statement, If) else ()
