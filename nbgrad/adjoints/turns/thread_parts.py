"""Loops of derivatives on several threads, with the same results bit for bit for any number of them.

In: a block of a derivative, in which loops are marked parallel that come from `prange` of the kernel. Out: the block in
which these loops are parts of their turns, and the functions that run a part. Called by derived.py.

The number of parts depends on the lengths of loops and arrays only, and threads only decide who runs which part:
- a number that turns add to is summed by each part for itself, and the parts' sums are added in order. It is a number
  of the part's own function: Numba, which drops sums of a `prange` body that loops in it add to, never sees it;
- an array of which each turn has elements of its own is written directly;
- an array with elements of a few turns around (`a[i - 1]`, `a[i + 1]`) is written directly too, but the last turns of
  each part, which share elements with the next one, run afterwards on one thread;
- any other array that turns add to has a copy for each part, and these are added in order. Copies have at most
  `_LONGEST` elements together, so that for long arrays there are fewer parts, in the end one;
- for anything else the loop runs on one thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..dataflow import Affine, accesses, affine, definitions
from ..kernel_statements import (
    Atom,
    Block,
    Call,
    Extent,
    For,
    Load,
    New,
    Op,
    Part,
    Set,
    Statement,
    Store,
    assigned,
    atoms_of,
    copied,
    is_name,
    loaded,
    made,
    stored,
    walk,
    with_blocks,
)
from .independence import Independence, NewNames, aliased_arrays, independence, is_positive, with_loops

_MANY = 64
"""The parts of a loop whose turns share numbers only."""
_FEW = 16
"""The parts of a loop whose turns share elements of arrays."""
_LONGEST = 2**23
"""The elements of all copies of an array together."""


@dataclass(frozen=True)
class Turns:
    """The function that runs some of the turns of a loop."""

    name: str
    parameters: tuple[str, ...]
    body: Block


@dataclass
class _Edges:
    """Arrays that few turns around each other share: how many, and the indices that may be the lowest ones."""

    span: int = 0
    lowest: list[Affine] = field(default_factory=list)


def with_threads(
    block: Block, after: Iterable[str], dtypes: Mapping[str, str], title: str
) -> tuple[Block, list[Turns]]:
    """A block whose parallel loops run in parts; `dtypes` are those of numbers, and of elements of arrays."""
    writer = _Writer(block, dtypes, title)
    found = with_loops(block, frozenset(after), writer.replace)
    return found, writer.functions


def on_one_thread(block: Block) -> Block:
    """A block whose loops are not parallel."""
    return tuple([_on_one_thread(one) for one in block])


class _Writer(NewNames):
    def __init__(self, block: Block, dtypes: Mapping[str, str], title: str) -> None:
        self.dtypes = dtypes
        self.title = title
        super().__init__(block, dtypes)
        self.aliased = aliased_arrays(block)
        self.functions: list[Turns] = []

    def replace(self, loop: For, after: frozenset[str]) -> tuple[Statement, ...] | None:
        """The parts of a loop; None for loops on one thread."""
        if not loop.parallel:
            return None
        found = independence(loop, after, self.aliased)
        hoisted = tuple([one for one in loop.body if _is_scratch(one)])
        body = tuple([_on_one_thread(one) for one in loop.body if not _is_scratch(one)])
        if found is None:
            return *hoisted, For(loop.turn, loop.count, body, False, loop.backwards)
        return self.parts(loop, hoisted, body, found)

    def parts(self, loop: For, hoisted: Block, body: Block, shared: Independence) -> tuple[Statement, ...]:
        """The statements that run a loop in parts."""
        out: list[Statement] = []
        edges = _Edges(lowest=[form for form in shared.own.values() if not is_positive(form, loop.turn)])
        copies = [array for array in sorted(shared.added) if not self.shares_edges(array, loop, edges)]
        if any(not self.rank(array, loop.body) for array in copies):
            return *hoisted, For(loop.turn, loop.count, body, False, loop.backwards)
        count = self.put("turns", Op("", (loop.count,), "max({0}, 0)"), out)
        few = _FEW if copies or edges.span else _MANY
        parts: Atom = str(few)
        if edges.span:
            parts = self.put("parts", Op("", (count,), f"max(1, min({few}, {{0}} // {4 * edges.span}))"), out)
        for array in copies:
            size = self.size(array, loop.body, out)
            parts = self.put("parts", Op("", (parts, size), f"max(1, min({{0}}, {_LONGEST} // max({{1}}, 1)))"), out)
        for form in edges.lowest:
            for turn in ("0", self.put("last", Op("", (count,), "{0} - 1"), out)):
                at = self.position(form, loop.turn, turn, out)
                parts = self.put("parts", Op("", (parts, at), "{0} if {1} >= 0 else 1"), out)
        slots = {name: self.new(f"{name}_parts") for name in shared.sums}
        passes = 2 if edges.span else 1
        total = parts if passes == 1 or not slots else self.put("slots", Op("", (parts,), "2 * {0}"), out)
        for name, array in slots.items():
            out.append(New(array, (total,), self.dtypes.get(name, "float64"), "0"))
        own = {array: self.new(f"{array}_part") for array in copies}
        all_of = {array: self.new(f"{array}_parts") for array in copies}
        for array in copies:
            out += self.room(array, all_of[array], parts, loop.body)
        function = self.function(loop, hoisted, body, slots)
        for k in range(passes):
            part = self.new("part")
            lines: list[Statement] = [Part(own[array], all_of[array], part, parts, array) for array in copies]
            first = self.put("first", Op("", (part, count, parts), "{0} * {1} // {2}"), lines)
            end = self.put("end", Op("", (part, count, parts), "({0} + 1) * {1} // {2}"), lines)
            slot: Atom = part
            if passes == 2:
                inner = self.put("inner", Op("", (first, end), f"max({{0}}, {{1}} - {edges.span})"), lines)
                first, end = (first, inner) if k == 0 else (inner, end)
                slot = part if k == 0 else self.put("slot", Op("", (parts, part), "{0} + {1}"), lines)
            length = self.put("length", Op("", (end, first), "{0} - {1}"), lines)
            given = [own.get(one, one) for one in function.parameters[3:]]
            lines.append(Call(function.name, (slot, first, length, *given)))
            out.append(For(part, parts, tuple(lines), parallel=k == 0))
        for name, array in slots.items():
            part, value = self.new("part"), self.new("sum")
            add = (Set(value, Load(array, (part,))), Set(name, Op("add", (name, value), "{0} + {1}")))
            out.append(For(part, total, add))
        out += [Call("add_parts", (array, all_of[array])) for array in copies]
        return tuple(out)

    def put(self, base: str, value: Op, out: list[Statement]) -> str:
        """The name of an integer that is computed now."""
        name = self.new(base)
        out.append(Set(name, value))
        return name

    def position(self, form: Affine, turn: str, atom: Atom, out: list[Statement]) -> Atom:
        """An index, as a sum, in a turn."""
        texts, names = [str(form.get("1", 0))], []
        for name, factor in form.items():
            if name != "1":
                texts.append(f"{{{len(names)}}} * ({factor})")
                names.append(atom if name == turn else name)
        return self.put("at", Op("", tuple(names), " + ".join(texts)), out)

    # ----- The function of a part -----

    def function(self, loop: For, hoisted: Block, body: Block, slots: Mapping[str, str]) -> Turns:
        """The function that runs some turns, and writes its sums to slots."""
        name = f"{self.title}_turns_{len(self.functions) + 1}"
        slot, first, count, k = (self.new(base) for base in ("slot", "first", "count", "k"))
        start = self.new("start")
        inside: list[Statement] = [Set(loop.turn, Op("", (start, k), "{0} + {1}")), *body]
        lines: list[Statement] = [Set(one, copied(self.zero(one))) for one in slots]
        # LLVM sees that no index is negative, which Numba would count from the end.
        lines += [*hoisted, Set(start, Op("", (first,), "max({0}, 0)")), For(k, count, tuple(inside))]
        lines += [Store(array, (slot,), one) for one, array in slots.items()]
        own = assigned(lines) | made(lines)
        free: dict[str, None] = {}
        for one in walk(lines):
            names = [atom for atom in atoms_of(one) if is_name(atom)]
            names += sorted(loaded([one]) | stored([one]) | _measured(one))
            free.update(dict.fromkeys([each for each in names if each not in own]))
        parameters = (slot, first, count, *[one for one in free if one not in (slot, first, count)])
        found = Turns(name, parameters, tuple(lines))
        self.functions.append(found)
        return found

    def zero(self, number: str) -> Atom:
        dtype = self.dtypes.get(number, "float64")
        return "0.0" if dtype.startswith("float") else "0"

    # ----- Copies of arrays -----

    def shares_edges(self, array: str, loop: For, edges: _Edges) -> bool:
        """Whether only turns near each other add to the same elements of an array; notes how near."""
        indices = accesses(loop.body, array) or []
        known = definitions(loop.body)
        inside = assigned(loop.body) | {loop.turn}
        for axis in range(len(indices[0])):
            forms = [affine(index[axis], known) for index in indices]
            rests = [{name: factor for name, factor in form.items() if name != "1"} for form in forms]
            step = abs(rests[0].get(loop.turn, 0))
            if (
                not step
                or any(rest != rests[0] for rest in rests)
                or not inside.isdisjoint(set(rests[0]) - {loop.turn})
            ):
                continue
            shifts = [form.get("1", 0) for form in forms]
            lowest = {**rests[0], "1": min(shifts)}
            if not is_positive(lowest, loop.turn):
                edges.lowest.append(lowest)
            edges.span = max(edges.span, -((min(shifts) - max(shifts)) // step))
            return True
        return False

    def rank(self, array: str, body: Block) -> int:
        return len((accesses(body, array) or [()])[0])

    def size(self, array: str, body: Block, out: list[Statement]) -> Atom:
        """The number of elements of an array."""
        size: Atom = "1"
        for axis in range(self.rank(array, body)):
            extent = self.new("extent")
            out.append(Set(extent, Extent(array, axis)))
            size = self.put("size", Op("", (size, extent), "{0} * {1}"), out)
        return size

    def room(self, array: str, parts: str, count: Atom, body: Block) -> list[Statement]:
        """Copies for the parts, all zero; none for a single part."""
        out: list[Statement] = []
        length = self.put("copies", Op("", (count,), "{0} if {0} > 1 else 0"), out)
        extents: list[Atom] = []
        for axis in range(self.rank(array, body)):
            extents.append(self.new("extent"))
            out.append(Set(extents[-1], Extent(array, axis)))
        out.append(New(parts, (length, *extents), f"{array}.dtype", "0"))
        return out


def _is_scratch(statement: Statement) -> bool:
    """Whether a statement makes an empty array, which grows where it is used."""
    return isinstance(statement, New) and statement.shape[:1] == ("0",)


def _on_one_thread(statement: Statement) -> Statement:
    """A statement whose loops are not parallel."""
    if isinstance(statement, For):
        body = tuple([_on_one_thread(one) for one in statement.body])
        return replace(statement, body=body, parallel=False)
    return with_blocks(statement, lambda inner: tuple([_on_one_thread(one) for one in inner]))


def _measured(statement: Statement) -> set[str]:
    """The arrays whose extents a statement reads."""
    match statement:
        case Set(_, Extent(array)):
            return {array}
        case _:
            return set()
