"""Loop nests: the form between the graph and machine code.

A `Loop` is one kernel: a nest of loops over a domain, scalar values computed at each point, stores, and reductions over
some of the axes. In: the values that fuse.py collected. Out: a normal form with as few axes as possible, its `identity`
(all that is compiled: no size, but whether rows are short), and `arguments` (passed when it runs: sizes, strides,
ranges). emit.py reads the same lists in the same order. Values are a straight line: each is a tuple of an operation and
positions of earlier values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..graph.ir import Node
from ..graph.primitives import PRIMITIVES
from ..graph.shapes import Shape
from ..process.once import computed_once
from .views import Range, View

GRAIN = 1 << 14
"""Elements that make one chunk of work; chunks depend on the problem only, never on the number of threads."""
MOST_CHUNKS = 64
MEMO = 1 << 12
"""The number of texts of values that are remembered: unrolled graphs repeat their kernels."""
NARROW = 32
"""Rows of fewer elements may be made one row."""
FLAT, ROW, COLUMN = "flat", "row", "column"
"""Accesses whose rows follow one another, that have one element for a row, or the same row for all."""
SHORT_ROW = 64
"""The longest rows of which several are reduced together."""
SHARING_ROW = 512
"""The longest ones of sums where rows read the same array; these are no longer than a block of a sum (emit.py)."""
SIMPLE = 16
"""The most values at a point of such loops."""
BORDER = 16
"""A border of this many elements, or of an eighth of an axis, is short."""


class Value(NamedTuple):
    """One scalar: `operation` is "load", "iota", "literal", "gather", "inside", "cast" or a primitive's name.

    "inside" tells whether a point lies in the ranges of an access.
    """

    operation: str
    dtype: np.dtype[Any]
    operands: tuple[int, ...] = ()
    access: int = -1
    literal: bytes = b""


WALKS = {0: "b", 1: "c", -1: "r", 2: "d", 3: "t", 4: "q", -2: "e", -3: "u", -4: "v"}
"""Strides that are part of the code, so that LLVM reads whole vectors: "b"roadcast, "c"ontiguous, in "r"everse,
"d"oubled, as the parts of complex numbers lie, "t"ripled, as coordinates lie, "q"uadrupled, and these in reverse."""
FAR = frozenset("tqeuv")
"""Those of elements that are only read together with others."""
BESIDE = frozenset("bc")
"""Those of which vectors are read and written at once."""
APART = {letter: stride for stride, letter in WALKS.items()}
"""The stride of each letter."""

READS = frozenset(["load", "iota", "literal", "gather", "inside", "cast"])
"""Values that compute nothing."""
LIGHT = frozenset([name for name, primitive in PRIMITIVES.items() if primitive.light])
SHORT = READS | LIGHT  # those of a few instructions

TILE = 8
"""Rows and columns of the tiles in which arrays are turned."""


def tiles_take(dtype: np.dtype[Any]) -> bool:
    """Whether elements of a dtype are turned in tiles."""
    return dtype.kind in "iuf" and dtype.itemsize >= 4


class Access(NamedTuple):
    """A buffer (an index into `Loop.buffers`; -1 for an iota, -2 for ranges alone), read or written through a view of
    the loop's domain."""

    buffer: int
    view: View
    dtype: np.dtype[Any]

    @property
    def kind(self) -> str:
        """The steps of the innermost loop: one of `WALKS`, or "s"trided; with the axes that are masked."""
        strides, valid = self.view.strides, self.view.valid
        walk = WALKS.get(strides[-1] if strides else 0, "s")
        return walk + "".join([str(a) for a, v in enumerate(valid) if v is not None]) if any(valid) else walk


class Store(NamedTuple):
    """Writes a value at each point of the domain."""

    value: int
    access: int


class Reduction(NamedTuple):
    """Combines a value over the axes in which the target does not move. `kind` is sum, prod, max or min."""

    kind: str
    value: int
    access: int
    axes: tuple[bool, ...]


@dataclass(frozen=True)
class Loop:
    """One kernel. `buffers` are the nodes whose arrays it reads and writes, `targets` those it writes."""

    shape: Shape
    values: tuple[Value, ...]
    accesses: tuple[Access, ...]
    stores: tuple[Store, ...]
    reductions: tuple[Reduction, ...]
    buffers: tuple[Node, ...]
    targets: tuple[Node, ...]
    together: bool = True
    """Whether arrays begin where several elements can be read at once; for devices, where an address must fit."""

    @property
    def chunks(self) -> tuple[int, int]:
        """(number of chunks, extent of one) along the outermost axis."""
        extent = self.shape[0]
        total = math.prod(self.shape)
        wanted = max(1, min(total // GRAIN, MOST_CHUNKS, extent))
        step = -(-extent // wanted)
        return -(-extent // step), step

    @computed_once
    def is_single(self) -> bool:
        """Whether it is no loop at all: one point, of scalars."""
        return self.shape == (1,) and not self.reductions and all(a.view.strides == (0,) for a in self.accesses)

    @computed_once
    def reads(self) -> tuple[Node, ...]:
        """The buffers that are not written."""
        written = set(self.targets)
        return tuple([node for node in self.buffers if node not in written])

    @computed_once
    def gathered(self) -> frozenset[int]:
        """The accesses that are read at computed positions."""
        return frozenset([value.access for value in self.values if value.operation == "gather"])

    @computed_once
    def beside(self) -> dict[int, tuple[int, int]]:
        """The accesses to elements that lie beside those of another one, such as the parts of complex numbers and the
        coordinates of points: that access, and the number of elements from there.

        All of them have one address in the code, so that LLVM reads and writes whole vectors of pairs and triples.
        """
        alike: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
        written = {s.access for s in self.stores}
        for position, (buffer, view, dtype) in enumerate(self.accesses):
            if buffer >= 0 and view.strides and 2 <= abs(view.strides[-1]) <= 4 and position not in self.gathered:
                key = (buffer, view.strides, view.valid, dtype, position in written)
                alike.setdefault(key, []).append((view.offset, position))
        found: dict[int, tuple[int, int]] = {}
        for (_, strides, *_), places in alike.items():
            start, first = min(places)
            for offset, position in sorted(places)[1:]:
                if offset < start + abs(strides[-1]):
                    found[position] = first, offset - start
                else:
                    start, first = offset, position
        return found

    @computed_once
    def walks(self) -> tuple[str, ...]:
        """The steps of each access in the innermost loop: a letter of `WALKS`, or "s"trided. A single element of three
        or four is better read for itself."""
        together = {*self.beside, *[first for first, _ in self.beside.values()]}
        return tuple(
            [
                access.kind[0] if position in together or access.kind[0] not in FAR else "s"
                for position, access in enumerate(self.accesses)
            ]
        )

    @computed_once
    def shared_by_row(self) -> frozenset[int]:
        """The values that are the same at all points of a row of the innermost loop."""
        found: set[int] = set()
        for position, (operation, _, operands, access, _) in enumerate(self.values):
            if operation in ("iota", "inside", "gather"):
                continue
            if self.accesses[access].kind == "b" if operation == "load" else found.issuperset(operands):
                found.add(position)
        return frozenset(found)

    def choice_of_row(self, reduction: Reduction) -> tuple[int, bool] | None:
        """The condition, shared by a row, and its value where a sum is of more than zeros; None: there is none."""
        chosen = self.values[reduction.value]
        if reduction.kind != "sum" or chosen.operation != "select" or chosen.operands[0] not in self.shared_by_row:
            return None
        for wanted, other in ((True, chosen.operands[2]), (False, chosen.operands[1])):
            value = self.values[other]
            if value.operation == "literal" and not np.frombuffer(value.literal, value.dtype)[0]:
                return chosen.operands[0], wanted
        return None

    @computed_once
    def short_rows(self) -> bool:
        """Whether it is of reductions along short rows alone, of which several go together (short_rows.py)."""
        return (
            len(self.shape) > 1
            and self.shape[-1] <= (SHARING_ROW if self._rows_share else SHORT_ROW)
            and not self.stores
            and len(self.values) <= SIMPLE
            and all(r.axes[-1] and not r.axes[-2] for r in self.reductions)
            and not any(any(access.view.valid) for access in self.accesses)
        )

    @property
    def _rows_share(self) -> bool:
        """Whether it is of sums, and all rows read the same array along them: a matrix times a vector."""
        shared = any(a.view.strides[-2:-1] == (0,) and a.view.strides[-1] and a.buffer >= 0 for a in self.accesses)
        return shared and all(r.kind == "sum" for r in self.reductions)

    @computed_once
    def first_position(self) -> bool:
        """Whether it looks along its innermost axis for the first position at which something holds."""
        if len(self.reductions) != 1 or self.stores or self.interior is not None or self.short_rows:
            return False
        (r,) = self.reductions
        value = self.values[r.value]
        if r.kind != "min" or not r.axes[-1] or value.operation != "select" or value.dtype.kind != "i":
            return False
        _, place, other = value.operands
        if self.values[place].operation == "cast":
            (place,) = self.values[place].operands
        counted = self.values[place]
        return (
            counted.operation == "iota"
            and self.accesses[counted.access].kind == "c"
            and other in self.shared_by_row
            and not any(any(access.view.valid) for access in self.accesses)
        )

    @property
    def left_over(self) -> bool:
        """Whether an extremum of short rows, which takes many instructions, leaves half a row over by vectors."""
        return self.short_rows and 4 < self.shape[-1] < 8 and any(r.kind in ("max", "min") for r in self.reductions)

    @computed_once
    def lying(self) -> tuple[str, ...]:
        """For each access how its elements lie along the last two axes; "" if in no way of these."""
        found: list[str] = []
        for position, (buffer, view, _) in enumerate(self.accesses):
            way = ""
            if buffer >= 0 and position not in self.gathered and not any(view.valid):
                beside, below = view.strides[-1], view.strides[-2]
                way = ROW if beside == 0 else {self.shape[-1]: FLAT, 0: COLUMN}.get(below, "") if beside == 1 else ""
            found.append(way)
        return tuple(found)

    @computed_once
    def narrow(self) -> bool:
        """Whether its rows are short and leave much over by vectors, and that matters: an expensive value, or several
        ones of float32, of which vectors hold many."""
        return (
            len(self.shape) > 1
            and self.shape[-1] < NARROW
            and self.shape[-1] % 8 != 0
            and (any(map(_is_expensive, self.values)) or self._is_of_float32)
            and all(self.lying)
            and all(self.lying[s.access] == FLAT for s in self.stores)
            and all(r.axes[-1] and not r.axes[-2] for r in self.reductions)
        )

    @property
    def _is_of_float32(self) -> bool:
        return len(self.values) > 2 and all(v.dtype == np.float32 or v.dtype.kind == "b" for v in self.values)

    @computed_once
    def shared_rows(self) -> frozenset[int]:
        """The accesses that do not move from row to row."""
        still = [a for a, (_, view, _) in enumerate(self.accesses) if view.strides[-2:-1] == (0,)]
        return frozenset(still) - self.gathered

    @computed_once
    def shared_values(self) -> frozenset[int]:
        """The values that are the same at a point of several rows."""
        found: set[int] = set()
        for position, (_, _, operands, access, _) in enumerate(self.values):
            if found.issuperset(operands) and (access < 0 or access in self.shared_rows):
                found.add(position)
        return frozenset(found)

    @computed_once
    def turned(self) -> frozenset[int]:
        """The arrays that a map reads across: side by side along the axis before the last one, far apart along that.

        Their elements are turned in tiles (tiles.py) where the values take a few instructions, and those of the other
        arrays lie side by side: then a row of a tile is one vector. Long functions and masks want more than that.
        """
        if len(self.shape) < 2 or min(self.shape[-2:]) < TILE or self.reductions:
            return frozenset()
        if any(a.view.is_masked for a in self.accesses) or any(v.operation not in SHORT for v in self.values):
            return frozenset()
        ours = self.gathered.union([s.access for s in self.stores])
        found = frozenset(
            [
                position
                for position, (buffer, view, dtype) in enumerate(self.accesses)
                if buffer >= 0 and position not in ours and tiles_take(dtype)
                if view.strides[-2] == 1 and view.strides[-1] not in WALKS
            ]
        )
        others = {walk for position, walk in enumerate(self.walks) if position not in found}
        return found if others <= BESIDE else frozenset()

    @computed_once
    def interior(self) -> tuple[Range | None, ...] | None:
        """Per axis the range around the middle in which no mask begins or ends, None without masks; None altogether if
        there are no masks, or if the borders outside are not short."""
        ranges: list[Range | None] = []
        views = [a.view for position, a in enumerate(self.accesses) if position not in self.gathered]
        for axis, extent in enumerate(self.shape):
            spans = [span for view in views if (span := view.valid[axis]) is not None]
            if not spans:
                ranges.append(None)
                continue
            marks = [min(max(mark, 0), extent) for span in spans for mark in span]
            low = max([mark for mark in marks if 2 * mark <= extent], default=0)
            high = min([mark for mark in marks if 2 * mark > extent], default=extent)
            if extent - (high - low) > max(BORDER, extent // 8):
                return None
            ranges.append((low, high))
        return tuple(ranges) if any(ranges) else None

    def holds_inside(self, position: int, axis: int) -> bool | None:
        """Whether all of the interior lies in the range of an access along an axis, or none of it; None: no range."""
        if self.interior is None or position in self.gathered:
            return None
        span = self.accesses[position].view.valid[axis]
        if span is None:
            return None
        middle = self.interior[axis]
        assert middle is not None
        return span[0] <= middle[0] and middle[1] <= span[1]

    @computed_once
    def identity(self) -> str:
        """All that the machine code depends on."""
        values = [_text(value) for value in self.values]
        accesses = [
            f"{'iota' if a.buffer < 0 else kind}:{kind}:{_dtype_name(a.dtype)}"
            for a, walk in zip(self.accesses, self.walks, strict=True)
            for kind in (walk + a.kind[1:],)
        ]
        if self.interior is not None:
            for position in range(len(accesses)):
                inside = [self.holds_inside(position, axis) for axis in range(len(self.shape))]
                accesses[position] += "".join(" +" if i else " -" for i in inside if i is not None)
        for position, (first, distance) in self.beside.items():
            accesses[position] += f" {distance} after {first}"
        for position in self.turned:
            accesses[position] += " turned"
        if self.narrow:
            accesses = [f"{access} {way}" for access, way in zip(accesses, self.lying, strict=True)]
        if self.short_rows:
            for position in self.shared_rows:
                accesses[position] += " shared"
        stores = [f"{s.value}>{s.access}" for s in self.stores]
        reductions = [f"{r.kind}:{r.value}>{r.access}:{r.axes}" for r in self.reductions]
        axes = "single" if self.is_single else f"{len(self.shape)}{' narrow' * self.narrow}{' short' * self.short_rows}"
        axes += " left over" * self.left_over + " empty" * (0 in self.shape)
        return "|".join([axes, *values, "/", *accesses, "/", *stores, "/", *reductions])

    def arguments(self, step: int = 0, apart: Sequence[int] = ()) -> list[tuple[str, int]]:
        """The run-time integers in the order of the kernel's `sizes` array, each with its name in the IR.

        `step` is the extent of a chunk; `apart` gives, per reduction, how far apart the results of two chunks lie (0:
        one chunk writes them).
        """
        return list(zip(self._size_names(), self.sizes(step, apart), strict=True))

    def sizes(self, step: int = 0, apart: Sequence[int] = ()) -> list[int]:
        """The integers of `arguments` alone; this is called for every kernel of a program."""
        result = [step, *self.shape]
        axes = len(self.shape)
        for walk, (buffer, view, _) in zip(self.walks, self.accesses, strict=True):
            strides = view.strides
            result += strides[:-1] if len(strides) == axes and walk != "s" else strides
            for span in view.valid:
                if span is not None:
                    result += span
            if buffer < 0:
                result.append(view.offset)
        for middle in self.interior or ():
            if middle is not None:
                result += middle
        result += [self.accesses[position].view.strides[0] for position in sorted(self.gathered)]
        for position, reduction in enumerate(self.reductions):
            if reduction.axes[0]:
                result.append(apart[position] if apart else 0)
        return result

    def _size_names(self) -> list[str]:
        """The names of `sizes`, in the same order."""
        result = ["chunk", *[f"n{axis}" for axis in range(len(self.shape))]]
        last = len(self.shape) - 1
        for position, access in enumerate(self.accesses):
            walk = self.walks[position]
            axes = range(len(access.view.strides))
            result += [f"a{position}.s{axis}" for axis in axes if axis != last or walk == "s"]
            for axis, span in enumerate(access.view.valid):
                if span is not None:
                    result += [f"a{position}.lo{axis}", f"a{position}.hi{axis}"]
            if access.buffer < 0:
                result.append(f"a{position}.base")
        for axis, middle in enumerate(self.interior or ()):
            if middle is not None:
                result += [f"in.lo{axis}", f"in.hi{axis}"]
        result += [f"a{position}.step" for position in sorted(self.gathered)]
        result += [f"r{position}.apart" for position, reduction in enumerate(self.reductions) if reduction.axes[0]]
        return result

    @property
    def flops(self) -> int:
        """Scalar operations, loads and casts not counted."""
        points = math.prod(self.shape)
        work = sum(v.operation not in READS for v in self.values)
        return points * (work + len(self.reductions))

    @property
    def bytes(self) -> int:
        """Bytes of the arrays read and written, each counted once."""
        return sum(node.size * node.dtype.itemsize for node in self.buffers)


def _is_expensive(value: Value) -> bool:
    return value.operation in PRIMITIVES and value.operation not in LIGHT


@lru_cache(MEMO)
def _text(value: Value) -> str:
    """A value in the identity of its loop."""
    operation, dtype, operands, access, data = value
    return f"{operation}:{_dtype_name(dtype)}:{','.join(map(str, operands))}:{access}:{data.hex()}"


@lru_cache
def _dtype_name(dtype: np.dtype[Any]) -> str:
    """NumPy works a dtype's name out anew each time it is asked."""
    return dtype.name


def normalise(loop: Loop) -> Loop:
    """Order the axes by how far they step through memory, and merge those that step as one."""
    # Arrays that are read at computed positions have no part in this.
    moving = [position for position in range(len(loop.accesses)) if position not in loop.gathered]
    views = tuple([loop.accesses[position].view for position in moving])
    written = -1 if loop.reductions or not loop.stores else loop.stores[0].access
    place = moving.index(written) if written in moving else -1
    domain = _Domain(loop.shape, views, tuple([r.axes for r in loop.reductions]), place)
    shape, views, reduced, _ = _normal_form(domain)
    accesses = list(loop.accesses)
    for position, view in zip(moving, views, strict=True):
        buffer, _, dtype = accesses[position]
        accesses[position] = Access(buffer, view, dtype)
    reductions = tuple([r._replace(axes=axes) for r, axes in zip(loop.reductions, reduced, strict=True)])
    return Loop(shape, loop.values, tuple(accesses), loop.stores, reductions, loop.buffers, loop.targets)


class _Domain(NamedTuple):
    """The shape that a loop runs over, the views through which it reads and writes, and for each reduction whether it
    goes along an axis."""

    shape: Shape
    views: tuple[View, ...]
    reduced: tuple[tuple[bool, ...], ...]
    written: int
    """The view that a map writes through, by its position; -1 if it is no map."""


@lru_cache(MEMO)
def _normal_form(domain: _Domain) -> _Domain:
    shape, views, _, written = domain
    if len(shape) > 1:
        cost = [sum(abs(view.strides[axis]) for view in views) for axis in range(len(shape))]
        order = sorted(range(len(shape)), key=lambda axis: -cost[axis])
        domain = _reordered(domain, _turning(shape, views, written, order) if written >= 0 else order)
    for axis in range(len(shape) - 2, -1, -1):
        if _is_mergeable(domain, axis):
            domain = _merged(domain, axis)
    if not shape:
        views = tuple([View((1,), (0,), view.offset, (None,)) for view in views])
        domain = _Domain((1,), views, tuple([(False,) for _ in domain.reduced]), written)
    return domain


def _turning(shape: Shape, views: Sequence[View], written: int, order: list[int]) -> list[int]:
    """An order of axes in which a map writes along the last, and an array that lies across along the one before."""
    steps = views[written].strides
    along = next((axis for axis in order if steps[axis] == 1 and shape[axis] >= TILE), None)
    if along is None:
        return order
    for view in views:
        for axis in order:
            if view.strides[axis] == 1 and view.strides[along] not in WALKS and shape[axis] >= TILE:
                return [*[other for other in order if other not in (axis, along)], axis, along]
    return order


def _reordered(domain: _Domain, order: Sequence[int]) -> _Domain:
    shape, views, reduced, written = domain
    return _Domain(
        tuple([shape[a] for a in order]),
        tuple([view.transpose(order) for view in views]),
        tuple([tuple([axes[a] for a in order]) for axes in reduced]),
        written,
    )


def _is_mergeable(domain: _Domain, axis: int) -> bool:
    for view in domain.views:
        if view.valid[axis] is not None or view.valid[axis + 1] is not None:
            return False
        if view.strides[axis] != view.strides[axis + 1] * domain.shape[axis + 1]:
            return False
    return True


def _merged(domain: _Domain, axis: int) -> _Domain:
    def drop(sequence: tuple[Any, ...], kept: Any) -> tuple[Any, ...]:
        return (*sequence[:axis], kept, *sequence[axis + 2 :])

    shape, views, reduced, written = domain
    shape = drop(shape, shape[axis] * shape[axis + 1])
    return _Domain(
        shape,
        tuple([View(shape, drop(v.strides, v.strides[axis + 1]), v.offset, drop(v.valid, None)) for v in views]),
        tuple([drop(axes, axes[axis + 1]) for axes in reduced]),
        written,
    )


def show(loop: Loop) -> str:
    """The kernel as a readable loop nest."""
    letters = "ijklmnpq"
    lines: list[str] = []
    for axis, extent in enumerate(loop.shape):
        reduced = [f"{r.kind} into {_target(loop, r.access)}" for r in loop.reductions if r.axes[axis]]
        note = f"  # {', '.join(reduced)}" if reduced else ""
        lines.append(f"{'  ' * axis}for {letters[axis]} in range({extent}):{note}")
    margin = "  " * len(loop.shape)
    for position, value in enumerate(loop.values):
        match value.operation:
            case "literal":
                text = str(np.frombuffer(value.literal, value.dtype)[0])
            case "load" | "iota":
                access = loop.accesses[value.access]
                text = _place(loop, access, letters)
            case "inside":
                text = " and ".join(_ranges(loop.accesses[value.access], letters))
            case "gather":
                text = f"{_target(loop, value.access)}[v{value.operands[0]}]"
            case _:
                text = f"{value.operation}({', '.join(f'v{o}' for o in value.operands)})"
        lines.append(f"{margin}v{position} = {text}  # {value.dtype}")
    for store in loop.stores:
        lines.append(f"{margin}{_place(loop, loop.accesses[store.access], letters)} = v{store.value}")
    for reduction in loop.reductions:
        place = _place(loop, loop.accesses[reduction.access], letters)
        lines.append(f"{margin}{place} = {reduction.kind}({place}, v{reduction.value})")
    return "\n".join(lines)


def _target(loop: Loop, access: int) -> str:
    return f"b{loop.accesses[access].buffer}"


def _place(loop: Loop, access: Access, letters: str) -> str:
    terms = [
        letters[axis] if stride == 1 else f"{stride}*{letters[axis]}"
        for axis, stride in enumerate(access.view.strides)
        if stride
    ]
    if access.view.offset or not terms:
        terms.append(str(access.view.offset))
    index = " + ".join(terms).replace("+ -", "- ")
    text = f"({index})" if access.buffer < 0 else f"b{access.buffer}[{index}]"
    ranges = _ranges(access, letters)
    return f"{text} if {' and '.join(ranges)} else 0" if ranges else text


def _ranges(access: Access, letters: str) -> list[str]:
    return [f"{v[0]} <= {letters[a]} < {v[1]}" for a, v in enumerate(access.view.valid) if v is not None]
