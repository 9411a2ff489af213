"""How often the loops of a kernel for threads run: the memory that a launch brings for their derivatives.

In: a kernel as statements, the loops and arrays that are asked for. Out: `Counts`, which runs the kernel's integers
on the CPU, for all threads one after the other. Called by thread_kernels.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...process.once import computed_once
from ..derived import Derived
from ..kernel_statements import (
    Atom,
    Block,
    For,
    If,
    Op,
    Set,
    Statement,
    Store,
    Sync,
    While,
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
        self.read: set[str] = set()
        """The arrays whose elements it reads, known with `derived`."""
        self.known: dict[Any, Any] = {}
        self.arrays = sorted({base for name in columns if (base := self.logged(name)) is not None})

    def logged(self, column: str) -> str | None:
        """The array whose overwritten elements are kept in a column."""
        found = re.match(r"log\d*_(.*)", column)
        return origin(found[1], self.form.ranks) if found is not None else None

    @computed_once
    def derived(self) -> Derived:
        """The function that counts."""
        peaks = [*[f"turns_of_{name}" for name in self.loops.values()], *[f"most_{name}" for name in self.arrays]]
        body = [Set(f"now_{name}", copied("0")) for name in self.arrays]
        body += self.counted(self.form.body)
        body += [Set(f"most_{n}", Op("", (f"most_{n}", f"now_{n}"), "max({0}, {1})")) for n in self.arrays]
        kept = without_unused(tuple(body), peaks)
        written = loaded(kept) & (stored(self.form.body) | {*self.form.shared})
        if written:
            message = (
                f"{self.form.name}() has a loop that carries numbers, and whose number of turns depends on "
                f"`{min(written)}`, which the kernel itself writes. Let it depend on arguments only."
            )
            raise UnsupportedKernelError(message)
        names = {atom for one in walk(kept) for atom in atoms_of(one)}
        for place in [one for one in _PLACES[::-1] if one in names]:
            size = f"gridDim{place[-2:]}" if place.startswith("block") else f"blockDim{place[-2:]}"
            kept = (For(place, size, kept),)
        whole = (*[Set(name, copied("0")) for name in peaks], *kept)
        title = f"{self.form.name.strip('_<>')}_turns"
        parameters = [*self.form.parameters, *_SIZES]
        self.read = loaded(kept)
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

    def counted(self, body: Block) -> list[Statement]:
        """A block that counts, in which the numbers of a thread are variables."""
        found: list[Statement] = []
        for statement in body:
            match statement:
                case Set(target, Op(_, _, text)) if text.startswith("cuda."):
                    found.append(Set(target, _thread_number(text)))
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
        body: list[Statement] = self.counted(inside)
        name = self.loops.get(id(inside))
        if name is not None:
            now, most = f"turn_of_{name}", f"turns_of_{name}"
            step = [Set(now, Op("", (now, "1"), "{0} + {1}")), Set(most, Op("", (most, now), "max({0}, {1})"))]
            body = [*step, *body]
        made = While(tuple(body)) if isinstance(statement, While) else For(statement.turn, statement.count, tuple(body))
        return [made] if name is None else [Set(f"turn_of_{name}", copied("0")), made]


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
