"""From a loop nest to the dialect's IR: what a thread does at a point, and kernels that only store.

In: a `Loop` and a `Variant`, which says how threads share its points. Out: IR text of a kernel. Called by
grid_loops.py; the kernels that reduce are in block_reductions.py. Points, values, masks and casts are written by the
CPU's emitter (compiler/emitters/emit.py), of which this one is a kind: one table of operations for both targets.

A thread finds its point by dividing its number by the extents of the axes. Numbers below 2**31 are divided by
multiplying (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994); the multiplier and
the shift of each extent are arguments. Where all arrays allow it, a thread does several consecutive points, so that
LLVM reads and writes 16 bytes at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...compiler.emitters.emit import Emitter, memory_type
from ...compiler.fuse import HEAVY_WEIGHT
from ...compiler.loops import APART, LIGHT, Access, Loop, Value
from ...graph.ir import Node
from .device_scalars import ANGLE, FLOAT32, at_angle_ir, device_scalar_ir, ordinary_ir

LINEAR_LIMIT = 1 << 31
"""From this many points on, points are counted with 64 bits."""


MOST_HELD = 4
"""Arrays of one element that are read first, and held in registers; more are read where they are used."""


class Variant(NamedTuple):
    """The division of a loop's points among threads. Part of a kernel's identity, as sizes are not.

    `vector` points are done at once; `tail`: the last axis is no multiple of that; `wide`: points are counted with 64
    bits; `group` threads make one value of a reduction; `split`: several groups do, and store parts of it.
    """

    vector: int = 1
    tail: bool = False
    wide: bool = False
    group: int = 1
    split: bool = False


def weight(loop: Loop) -> int:
    """The work of a point: a light operation is 1."""
    return sum(1 if value.operation in LIGHT else HEAVY_WEIGHT for value in loop.values if value.operands)


def magic(extent: int) -> int:
    """The multiplier and, from bit 32 on, the shift that divide numbers below 2**31 by an extent."""
    shift = max(extent - 1, 0).bit_length()
    multiplier = ((1 << 32) * ((1 << shift) - extent)) // extent + 1
    return (shift << 32) | multiplier


class DeviceEmitter(Emitter):
    """Writes a kernel, or a part of one, for a loop and a variant."""

    def __init__(self, loop: Loop, variant: Variant) -> None:
        super().__init__(loop)
        self.variant = variant
        self.chunk_index = "0"
        self.angles: dict[int, list[str]] = {}
        """The reduced angles of the points at hand, by the position of the angle."""
        self.used = [position for position, access in enumerate(loop.accesses) if access.buffer >= 0]
        self.arrays = [loop.buffers[loop.accesses[position].buffer] for position in self.used]
        self.masked = [position for position in self.used if loop.accesses[position].view.is_masked]
        """Accesses whose first element may lie outside of the array: they get its beginning and an offset."""
        self.targets = {s.access for s in loop.stores} | {r.access for r in loop.reductions}

    # ----- What a kernel is called with -----

    def pointers(self, shared: frozenset[Node] = frozenset()) -> list[str]:
        """The parameters that are pointers. Other parts of the kernel write or read the arrays in `shared`."""
        result: list[str] = []
        for p in self.used:
            access = self.loop.accesses[p]
            apart = "" if self.loop.buffers[access.buffer] in shared else "noalias "
            readonly = "readonly " if apart and p not in self.targets else ""
            together = access.dtype.itemsize * (self.variant.vector if self.is_vector(p) else 1)
            result.append(f"ptr {apart}{readonly}align {together} %p{p}")
        return result

    def is_vector(self, position: int) -> bool:
        """Whether consecutive points of an access are read or written together."""
        return self.variant.vector > 1 and self.loop.accesses[position].kind == "c" and not self.is_gather(position)

    @property
    def divided(self) -> set[str]:
        """The strides that are given in vectors instead of elements."""
        return {f"a{p}.s{axis}" for p in self.used if self.is_vector(p) for axis in range(self.last)}

    def numbers(self) -> list[str]:
        """The names of the parameters that are integers."""
        starts = [f"a{position}.start" for position in self.masked]
        magics = [f"magic{axis}" for axis in range(len(self.loop.shape))]
        return [name for name, _ in self.loop.arguments()] + starts + magics

    def opening(self) -> list[str]:
        """Assumptions about the integers: strides of vectors are multiples of their length."""
        lines: list[str] = []
        vector = self.variant.vector
        for position in self.used:
            for axis in range(self.last) if self.is_vector(position) else ():
                lines.append(f"  %a{position}.s{axis} = mul nsw i64 %a{position}.s{axis}.v, {vector}")
        return lines

    def number_parameters(self) -> list[str]:
        """The parameters that are integers."""
        divided = self.divided
        return [f"i64 %{name}.v" if name in divided else f"i64 %{name}" for name in self.numbers()]

    def arguments(self) -> list[int]:
        """The integers that the kernel is called with."""
        divided = self.divided
        found = [value // self.variant.vector if name in divided else value for name, value in self.loop.arguments()]
        found += [self.loop.accesses[position].view.offset for position in self.masked]
        return found + [0 if self.variant.wide else magic(self.units(axis)) for axis in range(len(self.loop.shape))]

    def units(self, axis: int) -> int:
        """The extent of an axis in steps of a thread."""
        extent = self.loop.shape[axis]
        return -(-extent // self.variant.vector) if axis == self.last else extent

    # ----- Points -----

    def extent(self, axis: int) -> str:
        """The extent of an axis in steps of a thread, as i64."""
        if axis != self.last or self.variant.vector == 1:
            return f"%n{axis}"
        above = self.let(f"add nsw i64 %n{axis}, {self.variant.vector - 1}")
        return self.let(f"lshr i64 {above}, {self.variant.vector.bit_length() - 1}")

    def product(self, axes: Sequence[int]) -> str:
        """The number of steps along some axes together."""
        total = "1"
        for axis in axes:
            extent = self.extent(axis)
            total = extent if total == "1" else self.let(f"mul nsw i64 {total}, {extent}")
        return total

    def divide(self, value: str, axis: int) -> tuple[str, str]:
        """(quotient, remainder) of a number and the extent of an axis, all i64."""
        extent = self.extent(axis)
        if self.variant.wide:
            quotient = self.let(f"udiv i64 {value}, {extent}")
        else:
            low = self.let(f"and i64 %magic{axis}, 4294967295")
            shift = self.let(f"lshr i64 %magic{axis}, 32")
            whole = self.let(f"mul nuw i64 {value}, {low}")
            high = self.let(f"lshr i64 {whole}, 32")
            narrow_value = self.let(f"trunc i64 {value} to i32")
            narrow_high = self.let(f"trunc i64 {high} to i32")
            narrow_shift = self.let(f"trunc i64 {shift} to i32")
            total = self.let(f"add nuw i32 {narrow_value}, {narrow_high}")
            # A shift by 32 would be undefined, but extents below 2**31 need at most 31.
            result = self.let(f"lshr i32 {total}, {narrow_shift}")
            quotient = self.let(f"zext i32 {result} to i64")
        back = self.let(f"mul nsw i64 {quotient}, {extent}")
        return quotient, self.let(f"sub nsw i64 {value}, {back}")

    def coordinates(self, linear: str, axes: Sequence[int]) -> dict[int, str]:
        """The indices of a step along some axes, the last of which runs fastest; the last axis of all in points."""
        found: dict[int, str] = {}
        for axis in reversed(axes[1:]):
            linear, found[axis] = self.divide(linear, axis)
        if axes:
            found[axes[0]] = linear
        if self.last in found and self.variant.vector > 1:
            found[self.last] = self.let(f"mul nuw nsw i64 {found[self.last]}, {self.variant.vector}")
        return found

    def visit(self, at: dict[int, str], count: int) -> dict[int, list[str]]:
        """Do `count` consecutive points: values and stores. Gives what each reduction gets, by its access.

        All elements that are read for certain are read first, and what lies side by side is written last: a branch,
        as around the rare cases of a division, would hold back the reads behind it.
        """
        self.indices = [at[axis] for axis in range(self.last)]
        self.rows = [self.row(p, access) for p, access in enumerate(self.loop.accesses)]
        first = at[self.last]
        indices = [self.let(f"add nuw nsw i64 {first}, {step}") if step else first for step in range(count)]
        read = self.read_first(indices)
        written: dict[int, list[str]] = {}
        collected: dict[int, list[str]] = {r.access: [] for r in self.loop.reductions}
        points: list[list[str]] = [[] for _ in indices]
        self.angles = {}
        for position, value in enumerate(self.loop.values):
            found = read.get(position) or self.at_points(value, points, indices)
            for names, name in zip(points, found, strict=True):
                names.append(name)
        for index, names in zip(indices, points, strict=True):
            for s in self.loop.stores:
                if count > 1 and self.is_vector(s.access) and s.access not in self.masked:
                    written.setdefault(s.access, []).append(names[s.value])
                else:
                    self.write(self.loop.accesses[s.access].dtype, names[s.value], self.address(s.access, index))
            for r in self.loop.reductions:
                given = self.loop.values[r.value].dtype
                collected[r.access].append(self.cast(names[r.value], given, self.accumulator(r)))
        for position, values in written.items():
            self.write_vector(position, values, first)
        return collected

    def read_first(self, indices: Sequence[str]) -> dict[int, list[str]]:
        """The loads that have no mask, at consecutive points, by the position of the value."""
        found: dict[int, list[str]] = {}
        single = [access.kind[0] == "b" for access in self.loop.accesses]
        for position, value in enumerate(self.loop.values):
            if value.operation != "load" or value.access in self.masked or self.loop.accesses[value.access].buffer < 0:
                continue
            if single[value.access] and sum(single) > MOST_HELD:
                continue
            if len(indices) > 1 and self.is_vector(value.access):
                found[position] = self.read_vector(value, indices[0])
            else:
                found[position] = [self.load(value, index) for index in indices]
        return found

    def read_vector(self, value: Value, index: str) -> list[str]:
        """A load of consecutive elements."""
        length, kind = self.variant.vector, memory_type(value.dtype)
        address = self.address(value.access, index)
        whole = self.let(f"load <{length} x {kind}>, ptr {address}, align {length * value.dtype.itemsize}")
        parts = [self.let(f"extractelement <{length} x {kind}> {whole}, i32 {k}") for k in range(length)]
        return [self.let(f"icmp ne i8 {part}, 0") for part in parts] if value.dtype.kind == "b" else parts

    def write_vector(self, position: int, values: Sequence[str], index: str) -> None:
        """Store consecutive elements."""
        dtype = self.loop.accesses[position].dtype
        kind = f"<{len(values)} x {memory_type(dtype)}>"
        whole = "poison"
        for k, value in enumerate(values):
            if dtype.kind == "b":
                value = self.let(f"zext i1 {value} to i8")
            whole = self.let(f"insertelement {kind} {whole}, {memory_type(dtype)} {value}, i32 {k}")
        address = self.address(position, index)
        self.put(f"store {kind} {whole}, ptr {address}, align {len(values) * dtype.itemsize}")

    def row(self, position: int, access: Access) -> str:
        """A row's address: the CPU's, or counted from the beginning of an array that the kernel is given whole."""
        start = super().row(position, access)
        if position not in self.masked:
            return start
        return self.let(f"getelementptr {memory_type(access.dtype)}, ptr {start}, i64 %a{position}.start", "row")

    def step(self, position: int, access: Access, index: str) -> str:
        """The offset of a step: the CPU's, without the frozen product that only its vectoriser needs."""
        walk = self.loop.walks[position]
        match walk:
            case "b":
                return "0"
            case "c":
                return index
            case "r":
                return self.let(f"sub nsw i64 0, {index}")
            case "s":
                return self.let(f"mul nsw i64 {index}, %a{position}.s{self.last}")
            case _:
                return self.let(f"mul nsw i64 {index}, {APART[walk]}")

    def scalar(self, name: str, dtypes: Sequence[np.dtype[Any]], result: np.dtype[Any]) -> tuple[str, str]:
        """A scalar kernel of GPUs."""
        return device_scalar_ir(name, dtypes, result)

    def at_points(self, value: Value, points: Sequence[list[str]], indices: Sequence[str]) -> list[str]:
        """A value at several points, whose values before it are known. An angle is reduced once for all functions."""
        single = all(dtype == FLOAT32 for dtype in (value.dtype, *[self.loop.values[o].dtype for o in value.operands]))
        shared = at_angle_ir(value.operation) if single else None
        if shared is not None:
            symbol, texts = shared
            self.scalars[ANGLE], self.scalars[symbol] = texts
            position = value.operands[0]
            angles = [f"float {names[position]}" for names in points]
            if position not in self.angles:
                whole = lambda k: self.let(f"call i64 @{ANGLE}({angles[k]})")  # noqa: E731
                self.angles[position] = self.mostly_ordinary(ANGLE, "i64", angles, whole)
            pairs = zip(angles, self.angles[position], strict=True)
            return [self.let(f"call float @{symbol}({angle}, i64 {reduced})") for angle, reduced in pairs]

        def whole(k: int) -> str:
            return self.value(value, points[k], indices[k])

        if not single or not value.operands:
            return [whole(k) for k in range(len(points))]
        operands = [", ".join([f"float {names[o]}" for o in value.operands]) for names in points]
        return self.mostly_ordinary(value.operation, "float", operands, whole)

    def mostly_ordinary(self, name: str, kind: str, operands: Sequence[str], whole: Callable[[int], str]) -> list[str]:
        """An operation on the operands of several points: the short form, then `whole` if that does not hold for all.

        Rare cases, each in a branch of its own, would keep the points from being computed side by side.
        """
        short = ordinary_ir(name) if len(operands) > 1 else None
        if short is None:
            return [whole(k) for k in range(len(operands))]
        self.scalars[short.symbol], self.scalars[short.holds] = short.texts
        found = [self.let(f"call {kind} @{short.symbol}({given})") for given in operands]
        holds = "true"
        for value, given in zip(found, operands, strict=True):
            holds = self.let(f"and i1 {holds}, {self.let(f'call i1 @{short.holds}({kind} {value}, {given})')}")
        self.intrinsics.add("declare i1 @llvm.expect.i1(i1, i1)")
        holds = self.let(f"call i1 @llvm.expect.i1(i1 {holds}, i1 true)")
        self.counter += 1
        mark, before = f"O{self.counter}", self.block
        self.put(f"br i1 {holds}, label %{mark}.on, label %{mark}.rare")
        self.label(f"{mark}.rare")
        exact = [whole(k) for k in range(len(operands))]
        self.put(f"br label %{mark}.on")
        rare = self.block
        self.label(f"{mark}.on")
        pairs = zip(found, exact, strict=True)
        return [self.let(f"phi {kind} [ {value}, %{before} ], [ {other}, %{rare} ]") for value, other in pairs]

    def position(self) -> str:
        """The number of this thread in the grid."""
        thread, block, threads = (self.let(f"call i32 @nbgrad.{name}()") for name in ("thread", "block", "threads"))
        block, threads, thread = (self.let(f"zext i32 {value} to i64") for value in (block, threads, thread))
        return self.let(f"add nuw nsw i64 {self.let(f'mul nuw nsw i64 {block}, {threads}')}, {thread}")

    def steps(self, at: dict[int, str], then: Callable[[dict[int, list[str]]], None]) -> None:
        """Do the points of one step, at the end of an axis one by one; `then` gets what is for reductions."""
        if not self.variant.tail:
            then(self.visit(at, self.variant.vector))
            return
        stop = self.let(f"add nuw nsw i64 {at[self.last]}, {self.variant.vector}")
        whole = self.let(f"icmp sle i64 {stop}, %n{self.last}")
        self.branch(whole, lambda: then(self.visit(at, self.variant.vector)))
        low = self.let(f"select i1 {whole}, i64 %n{self.last}, i64 {at[self.last]}")
        self.counted(
            self.slot("i64", "j"), low, f"%n{self.last}", lambda index: then(self.visit({**at, self.last: index}, 1))
        )

    # ----- Kernels that only store -----

    def map_text(self) -> str:
        """A kernel in which each thread does one step of `vector` points."""
        axes = list(range(len(self.loop.shape)))
        count = self.product(axes)
        if self.variant.wide:
            linear = self.position()
            inside = self.let(f"icmp slt i64 {linear}, {count}")
        else:
            # Numbers of 32 bits take half as many instructions.
            thread, block, threads = (self.let(f"call i32 @nbgrad.{name}()") for name in ("thread", "block", "threads"))
            narrow = self.let(f"add nuw nsw i32 {self.let(f'mul nuw nsw i32 {block}, {threads}')}, {thread}")
            inside = self.let(f"icmp ult i32 {narrow}, {self.let(f'trunc i64 {count} to i32')}")
            linear = self.let(f"zext i32 {narrow} to i64")
        self.branch(inside, lambda: self.steps(self.coordinates(linear, axes), lambda _: None))
        return self.kernel()

    def function(self, signature: str) -> list[str]:
        """The lines of a function whose body has been written."""
        opening = [f"define {signature} {{", "entry:", *self.slots, *self.opening(), "  br label %start", "start:"]
        return [*opening, *self.lines, "  ret void", "}"]

    def kernel(self) -> str:
        """The whole text of a kernel whose body has been written."""
        parameters = ", ".join([*self.pointers(), *self.number_parameters()])
        return text_of([self], self.function(f"void @kernel({parameters})"))


def text_of(parts: Sequence[DeviceEmitter], lines: Sequence[str]) -> str:
    """Lines of functions, with all that they call."""
    scalars = {name: text for part in parts for name, text in part.scalars.items()}
    intrinsics = sorted({line for part in parts for line in part.intrinsics})
    hints = [hint for part in parts for hint in part.hints]
    return "\n".join([*scalars.values(), *intrinsics, *lines, "!0 = !{}", *hints, ""])
