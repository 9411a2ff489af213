"""From a loop nest to LLVM IR text.

In: a `Loop`, of which only the facts in its `identity` are used. Out: IR of `void kernel(ptr pointers, ptr sizes, i64
begin, i64 end)`, which runs chunks `begin` to `end` of the outermost axis. `pointers` holds one address per access,
`sizes` the integers of `Loop.arguments`. Called by tiles.py, which turns arrays that a loop reads across.

The text is written for LLVM to optimise: variables live in stack slots (LLVM makes registers of them), the innermost
loop is simple enough to vectorise, and the scalar kernels are included and inlined. Sums are formed in blocks whose
results are added with an error term (Neumaier 1974), so they are at least as accurate as pairwise summation and do not
depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..loops import APART, Access, Loop, Reduction, Value
from ..scalars import merge
from ..views import Range
from .computed_values import FLOAT16, FLOAT32, TYPES, ComputedValues, register_type

BLOCK = 512
"""Elements of the innermost axis that are summed without an error term."""

SHORT_BODY = 8
"""Values in a loop that is bound by memory or by the latency of its sums."""
SUM, BORDER, INTERIOR = "!2", "!3, !4", "!5"
HINTS = """!2 = !{!"llvm.loop.interleave.count", i32 2}
!3 = !{!"llvm.loop.vectorize.enable", i1 false}
!4 = !{!"llvm.loop.unroll.disable"}
!5 = !{!"llvm.loop.vectorize.predicate.enable", i1 true}
!9 = !{i64 1, i64 72057594037927936}"""


def memory_type(dtype: np.dtype[Any]) -> str:
    """The LLVM type of an element in memory."""
    return "i8" if dtype.kind == "b" else TYPES[dtype.num]


def number(value: Any, dtype: np.dtype[Any]) -> str:
    """A constant in LLVM's notation, exact."""
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        return str(int(value))
    if dtype.num == FLOAT16:
        return "0xH" + np.float16(value).tobytes()[::-1].hex().upper()
    return "0x" + np.float64(value).tobytes()[::-1].hex().upper()


def identity_element(kind: str, dtype: np.dtype[Any]) -> Any:
    """The value that a reduction starts from."""
    if kind in ("sum", "prod"):
        return 0 if kind == "sum" else 1
    if dtype.kind == "f":
        return -np.inf if kind == "max" else np.inf
    if dtype.kind == "b":
        return kind == "min"
    limits = np.iinfo(dtype)
    return limits.min if kind == "max" else limits.max


class Emitter(ComputedValues):
    """Writes a loop nest for the CPU. nbgrad.device has a kind of it for GPUs."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.last = len(loop.shape) - 1
        self.broken: dict[int, str] = {}
        """For extrema along the innermost axis, whether there was a NaN; the extremum is then not known."""
        self.part = "all"
        """The part of an innermost loop that is written: "all" of it, its "border" or its "interior"."""

    # ----- The whole kernel -----

    def run(self) -> str:
        loop = self.loop
        targets = {s.access for s in loop.stores} | {r.access for r in loop.reductions}
        self.chunk_index, self.chunk_low = "%index", "%low"
        self.indices: list[str] = []
        self.nest(0, "%low", "%high")
        self.put("ret void")
        names = [name for name, _ in loop.arguments()]
        head: list[str] = []
        for position, name in enumerate(names):
            head.append(f"  %sizes.{position} = getelementptr i64, ptr %sizes, i64 {position}")
            # Without tests for empty rows, LLVM has no reason to write inner loops again for each outcome.
            some = ", !range !9" if name[0] == "n" and 0 not in loop.shape else ""
            head.append(f"  %{name} = load i64, ptr %sizes.{position}, !invariant.load !0{some}")
        used = [position for position, access in enumerate(loop.accesses) if access.buffer >= 0]
        parameters = [f"ptr noalias {'' if p in targets else 'readonly '}%p{p}" for p in used]
        signature = ", ".join([*parameters, "ptr noalias readonly %sizes", "i64 %index", "i64 %low", "i64 %high"])
        body = [
            f'define internal void @body({signature}) noinline "prefer-vector-width"="512" {{',
            "entry:",
            *self.slots,
            *head,
        ]
        body += ["  br label %start", "start:", *self.lines, "}"]
        return merge(self.texts()) + "\n" + "\n".join([*body, *self.entry(used), "!0 = !{}", HINTS, *self.hints, ""])

    def entry(self, used: list[int]) -> list[str]:
        """The function with the kernel's ABI. Chunks that only store are one range; others run one by one."""
        lines = ["define void @kernel(ptr %pointers, ptr %sizes, i64 %begin, i64 %end) {", "entry:"]
        for position, p in enumerate(used):
            lines.append(f"  %at{p} = getelementptr ptr, ptr %pointers, i64 {position}")
            lines.append(f"  %p{p} = load ptr, ptr %at{p}")
        lines += [
            "  %chunk = load i64, ptr %sizes",
            "  %n0.at = getelementptr i64, ptr %sizes, i64 1",
            "  %n0 = load i64, ptr %n0.at",
        ]
        separate = any(r.axes[0] for r in self.loop.reductions)
        first, after = ("%c", "%next") if separate else ("%begin", "%end")
        if separate:
            lines += [
                "  br label %test",
                "test:",
                "  %c = phi i64 [ %begin, %entry ], [ %next, %chunks ]",
                "  %more = icmp slt i64 %c, %end",
                "  br i1 %more, label %chunks, label %done",
                "chunks:",
                "  %next = add nsw i64 %c, 1",
            ]
        lines += [
            f"  %low = mul nsw i64 {first}, %chunk",
            f"  %above = mul nsw i64 {after}, %chunk",
            "  %fits = icmp slt i64 %above, %n0",
            "  %high = select i1 %fits, i64 %above, i64 %n0",
        ]
        arguments = ", ".join([*[f"ptr %p{p}" for p in used], "ptr %sizes"])
        lines.append(f"  call void @body({arguments}, i64 {first}, i64 %low, i64 %high)")
        if separate:
            lines += ["  br label %test", "done:"]
        return [*lines, "  ret void", "}"]

    def hint(self) -> str:
        """The hint to LLVM about an innermost loop, as metadata of its last branch.

        Sums along short rows, as in the product of a matrix and a vector, lose more to a long remainder than they win
        from four sums side by side. Borders are a few points: vectors would only cost their preparation.
        """
        summed = any(r.axes[self.last] for r in self.loop.reductions)
        if self.part == "border":
            return self.told(BORDER)
        if self.part == "interior" and self.last > 0:
            return self.told(INTERIOR)
        if self.last > 0 and summed and len(self.loop.values) <= SHORT_BODY:
            return self.told(SUM)
        return ""

    def nest(self, axis: int, low: str, high: str) -> None:
        """The loops from `axis` inwards."""
        if axis == self.last:
            self.innermost(low, high)
            return
        variable = self.slot("i64", f"x{axis}")

        def body(index: str) -> None:
            self.indices.append(index)
            following = axis + 1
            self.nest(following, "0", f"%n{following}")
            self.indices.pop()

        self.counted(variable, low, high, body)

    # ----- The innermost loop -----

    def innermost(self, low: str, high: str) -> None:
        loop = self.loop
        self.rows = [self.row(p, access) for p, access in enumerate(loop.accesses)]
        inner = [r for r in loop.reductions if r.axes[self.last]]
        self.registers: dict[int, str] = {}
        self.broken = {}
        totals: dict[int, tuple[str, str]] = {}
        for r in inner:
            kind = register_type(self.accumulator(r))
            self.registers[r.access] = self.slot(kind, "acc")
            if self.compensated(r):
                totals[r.access] = (self.slot(kind, "sum"), self.slot(kind, "error"))
                for part in totals[r.access]:
                    self.store(kind, number(0, self.accumulator(r)), part)
            else:
                self.store(kind, self.start_value(r), self.registers[r.access])
            if r.kind in ("max", "min") and self.accumulator(r).kind == "f":
                self.broken[r.access] = self.slot("i1", "nan")
                self.store("i1", "false", self.broken[r.access])
        variable = self.slot("i64", "j")
        sums = [r for r in inner if r.access in totals]

        def points(first: str, stop: str) -> None:
            if sums:
                self.blocked(variable, first, stop, sums, totals)
            else:
                self.along(variable, first, stop)

        def row() -> None:
            if loop.interior is None:
                points(low, high)
            else:
                self.apart(low, high, loop.interior, points)

        some = self.row_adds()
        if loop.is_single:
            self.point("0")
        elif some is None:
            row()
        else:
            self.branch(some, row)
        for r in inner:
            self.finish(r, totals.get(r.access))

    def along(self, variable: str, low: str, high: str) -> None:
        """The innermost loop, without sums."""
        self.points(variable, low, high)

    def points(self, variable: str, low: str, high: str) -> None:
        """The points of a part of the innermost loop.

        Where they take elementary functions, these are called for many points at once, and for a few in a second loop.
        """
        wide = None if self.part == "border" else self.wide_turns()
        if wide is None:
            self.counted(variable, low, high, self.point, self.hint())
            return
        count = self.let(f"sub nsw i64 {high}, {low}")
        many = self.let(f"icmp sgt i64 {count}, {wide - 1}")
        middle = self.let(f"add nsw i64 {low}, {self.let(f'and i64 {count}, {-wide}')}")
        self.calling, self.included = True, self.pairs
        # LLVM knows this way that the first loop leaves nothing over.
        self.branch(many, lambda: self.counted(variable, low, middle, self.point, self.in_vectors(wide), until="ne"))
        self.included = []
        first = self.let(f"select i1 {many}, i64 {middle}, i64 {low}")
        self.counted(variable, first, high, self.point, self.in_vectors(max(4, wide // 4)))
        self.calling = False

    def row_adds(self) -> str | None:
        """Whether a row of the innermost loop adds anything but zero, or is the first of a sum; None: unknown.

        It does not where each sum is of values chosen against zero by a condition that the whole row shares, such as a
        mask of nearest neighbours. Adding a zero changes no sum, because none is minus zero.
        """
        loop = self.loop
        conditions = [loop.choice_of_row(r) for r in loop.reductions]
        if loop.stores or not conditions or None in conditions:
            return None
        names: list[str] = []
        for position, value in enumerate(loop.values):
            names.append(self.value(value, names, "0") if position in loop.shared_by_row else "")
        found: list[str] = []
        for choice, r in zip(conditions, loop.reductions, strict=True):
            assert choice is not None
            condition, wanted = choice
            found.append(names[condition] if wanted else self.let(f"xor i1 {names[condition]}, true"))
            if not r.axes[self.last]:
                first = self.first_visit(r)
                if first is None:
                    return None
                found.append(first)
        some = found[0]
        for other in dict.fromkeys(found[1:]):
            some = self.let(f"or i1 {some}, {other}")
        return some

    def apart(self, low: str, high: str, interior: Sequence[Range | None], points: Callable[[str, str], None]) -> None:
        """The two borders, with their masks, and the points between them, where every mask is known."""
        first, stop = low, high
        if interior[self.last] is not None:
            first = self.clamped(f"%in.lo{self.last}", low, high)
            stop = self.clamped(f"%in.hi{self.last}", low, high)
        for axis, index in enumerate(self.indices):
            if interior[axis] is not None:
                above = self.let(f"icmp sge i64 {index}, %in.lo{axis}")
                below = self.let(f"icmp slt i64 {index}, %in.hi{axis}")
                within = self.let(f"and i1 {above}, {below}")
                first = self.let(f"select i1 {within}, i64 {first}, i64 {high}")
                stop = self.let(f"select i1 {within}, i64 {stop}, i64 {high}")

        def border(side: str) -> None:
            left = self.let(f"icmp eq i64 {side}, 0")
            points(
                self.let(f"select i1 {left}, i64 {low}, i64 {stop}"),
                self.let(f"select i1 {left}, i64 {first}, i64 {high}"),
            )

        self.part = "border"
        self.counted(self.slot("i64", "side"), "0", "2", border)
        self.part = "interior"
        points(first, stop)
        self.part = "all"

    def blocked(
        self, variable: str, low: str, high: str, sums: list[Reduction], totals: dict[int, tuple[str, str]]
    ) -> None:
        """The innermost loop in blocks; after each block its sums are added to the totals with their error."""
        block = self.slot("i64", "block")
        count = self.let(f"sub nsw i64 {high}, {low}")
        rounded = self.let(f"add nsw i64 {count}, {BLOCK - 1}")
        blocks = self.let(f"sdiv i64 {rounded}, {BLOCK}")

        def one_block(index: str) -> None:
            offset = self.let(f"mul nsw i64 {index}, {BLOCK}")
            first = self.let(f"add nsw i64 {low}, {offset}")
            after = self.let(f"add nsw i64 {first}, {BLOCK}")
            fits = self.let(f"icmp slt i64 {after}, {high}")
            stop = self.let(f"select i1 {fits}, i64 {after}, i64 {high}")
            for r in sums:
                self.store(register_type(self.accumulator(r)), self.start_value(r), self.registers[r.access])
            self.points(variable, first, stop)
            for r in sums:
                kind = register_type(self.accumulator(r))
                part = self.let(f"load {kind}, ptr {self.registers[r.access]}")
                self.add_with_error(r, part, *totals[r.access])

        self.counted(block, "0", blocks, one_block)

    def add_with_error(self, r: Reduction, part: str, total: str, error: str) -> None:
        """Add a part of a sum to `total`, and the rounding error of this addition to `error`."""
        kind = register_type(self.accumulator(r))
        old = self.let(f"load {kind}, ptr {total}")
        new = self.let(f"fadd {kind} {old}, {part}")
        back = self.let(f"fsub {kind} {new}, {old}")
        lost_old = self.let(f"fsub {kind} {old}, {self.let(f'fsub {kind} {new}, {back}')}")
        lost_new = self.let(f"fsub {kind} {part}, {back}")
        lost = self.let(f"fadd {kind} {lost_old}, {lost_new}")
        before = self.let(f"load {kind}, ptr {error}")
        self.store(kind, self.let(f"fadd {kind} {before}, {lost}"), error)
        self.store(kind, new, total)

    def row(self, position: int, access: Access) -> str:
        """The address (or, for an iota, the number) at the start of the innermost loop."""
        terms = (
            [self.let(f"mul nsw i64 {index}, %a{position}.s{axis}") for axis, index in enumerate(self.indices)]
            if not self.is_gather(position)
            else []
        )
        offset = "0" if access.buffer >= 0 else f"%a{position}.base"
        for term in terms:
            offset = self.let(f"add nsw i64 {offset}, {term}")
        for reduction_position, r in enumerate(self.loop.reductions):
            if r.access == position and r.axes[0]:
                apart = self.let(f"mul nsw i64 {self.chunk_index}, %r{reduction_position}.apart")
                offset = self.let(f"add nsw i64 {offset}, {apart}")
        if access.buffer < 0:
            return offset
        return self.let(f"getelementptr {memory_type(access.dtype)}, ptr %p{position}, i64 {offset}", "row")

    def is_gather(self, position: int) -> bool:
        return position in self.loop.gathered

    def step(self, position: int, access: Access, index: str) -> str:
        """The distance of a point from the start of its row, in elements."""
        walk = self.loop.walks[position]
        match walk:
            case "b":
                return "0"
            case "c":
                return index
            case "r":
                return self.let(f"sub nsw i64 0, {index}")
            case "s":
                # Frozen, or LLVM would vectorise the loop for a stride of 1 only, which is another kernel's.
                return self.let(f"freeze i64 {self.let(f'mul nsw i64 {index}, %a{position}.s{self.last}')}")
            case _:
                return self.let(f"mul nsw i64 {index}, {APART[walk]}")

    def address(self, position: int, index: str) -> str:
        beside = self.loop.beside.get(position)
        access = self.loop.accesses[position]
        if beside is not None:
            first, apart = beside
            return self.let(f"getelementptr {memory_type(access.dtype)}, ptr {self.address(first, index)}, i64 {apart}")
        distance = self.step(position, access, index)
        if distance == "0":
            return self.rows[position]
        return self.let(f"getelementptr {memory_type(access.dtype)}, ptr {self.rows[position]}, i64 {distance}")

    def point(self, index: str) -> None:
        """The body of the innermost loop."""
        names: list[str] = []
        for value in self.loop.values:
            names.append(self.value(value, names, index))
        for s in self.loop.stores:
            self.write(self.loop.accesses[s.access].dtype, names[s.value], self.address(s.access, index))
        for r in self.loop.reductions:
            self.reduce(r, names[r.value], index)

    def read(self, dtype: np.dtype[Any], address: str) -> str:
        loaded = self.let(f"load {memory_type(dtype)}, ptr {address}")
        return self.let(f"icmp ne i8 {loaded}, 0") if dtype.kind == "b" else loaded

    def write(self, dtype: np.dtype[Any], value: str, address: str) -> None:
        if dtype.kind == "b":
            value = self.let(f"zext i1 {value} to i8")
        self.put(f"store {memory_type(dtype)} {value}, ptr {address}")

    # ----- Values -----

    def value(self, value: Value, names: list[str], index: str) -> str:
        match value.operation:
            case "literal":
                return number(np.frombuffer(value.literal, value.dtype)[0], value.dtype)
            case "load" | "iota" | "inside":
                return self.load(value, index)
            case "gather":
                step = names[value.operands[0]]
                if self.loop.accesses[value.access].kind != "c":
                    step = self.let(f"mul nsw i64 {step}, %a{value.access}.step")
                base = self.rows[value.access]
                address = self.let(f"getelementptr {memory_type(value.dtype)}, ptr {base}, i64 {step}")
                return self.read(value.dtype, address)
            case "cast":
                source = self.loop.values[value.operands[0]].dtype
                return self.cast(names[value.operands[0]], source, value.dtype)
            case "select" if value.dtype.kind in "iu":
                return self.chosen(value.dtype, *[names[k] for k in value.operands])
            case _:
                return self.call(value, names)

    def chosen(self, dtype: np.dtype[Any], condition: str, one: str, other: str) -> str:
        """One of two whole numbers. They are mostly positions, as in a search: a branch in place of the selection would
        be predicted wrongly half of the time."""
        kind = register_type(dtype)
        return self.let(f"select i1 {condition}, {kind} {one}, {kind} {other}, !unpredictable !0")

    def load(self, value: Value, index: str) -> str:
        access = self.loop.accesses[value.access]
        condition = self.inside(value.access, access, index)
        if value.operation == "inside":
            return "true" if condition is None else condition
        if condition == "false":
            return number(0, value.dtype)
        if access.buffer < 0:
            total = self.let(f"add nsw i64 {self.rows[value.access]}, {self.step(value.access, access, index)}")
            return total if condition is None else self.let(f"select i1 {condition}, i64 {total}, i64 0")
        if condition is None:
            return self.read(value.dtype, self.address(value.access, index))
        self.counter += 1
        mark, before = f"M{self.counter}", self.block
        self.put(f"br i1 {condition}, label %{mark}.read, label %{mark}.on")
        self.label(f"{mark}.read")
        loaded = self.read(value.dtype, self.address(value.access, index))
        self.put(f"br label %{mark}.on")
        self.label(f"{mark}.on")
        zero = number(0, value.dtype)
        return self.let(f"phi {register_type(value.dtype)} [ {loaded}, %{mark}.read ], [ {zero}, %{before} ]")

    def inside(self, position: int, access: Access, index: str) -> str | None:
        """Whether a point lies in the ranges of a masked access; None if there are none."""
        condition: str | None = None
        if self.part == "interior":
            known = [self.loop.holds_inside(position, axis) for axis in range(len(self.loop.shape))]
            return "false" if False in known else None
        for axis, span in enumerate(access.view.valid):
            if span is None:
                continue
            coordinate = index if axis == self.last else self.indices[axis]
            for test in (
                self.let(f"icmp sge i64 {coordinate}, %a{position}.lo{axis}"),
                self.let(f"icmp slt i64 {coordinate}, %a{position}.hi{axis}"),
            ):
                condition = test if condition is None else self.let(f"and i1 {condition}, {test}")
        return condition

    # ----- Reductions -----

    def accumulator(self, r: Reduction) -> np.dtype[Any]:
        """The dtype that a reduction is formed in."""
        dtype = self.loop.accesses[r.access].dtype
        return FLOAT32 if dtype.num == FLOAT16 else dtype

    def compensated(self, r: Reduction) -> bool:
        return r.kind == "sum" and self.accumulator(r).kind == "f"

    def start_value(self, r: Reduction) -> str:
        dtype = self.accumulator(r)
        return number(identity_element(r.kind, dtype), dtype)

    def reduce(self, r: Reduction, value: str, index: str) -> None:
        """One point's contribution: to a register along the innermost axis, else to memory."""
        dtype = self.accumulator(r)
        value = self.cast(value, self.loop.accesses[r.access].dtype, dtype)
        if r.axes[self.last]:
            slot = self.registers[r.access]
            kind = register_type(dtype)
            old = self.let(f"load {kind}, ptr {slot}")
            if r.access in self.broken:
                self.store(kind, self.extremum(r, kind, old, value), slot)
                return
            self.store(kind, self.combine(r.kind, dtype, old, value, loose=True), slot)
        else:
            self.accumulate(r, value, self.address(r.access, index))

    def extremum(self, r: Reduction, kind: str, old: str, value: str) -> str:
        """The larger or smaller of two numbers, and a note if one is NaN: that takes LLVM fewer instructions than a
        maximum that keeps NaN, and what is compared with NaN is not used."""
        note = self.broken[r.access]
        unordered = self.let(f"fcmp uno {kind} {value}, {value}")
        self.store("i1", self.let(f"or i1 {self.let(f'load i1, ptr {note}')}, {unordered}"), note)
        first = self.let(f"fcmp nnan nsz {'ogt' if r.kind == 'max' else 'olt'} {kind} {old}, {value}")
        return self.let(f"select nnan nsz i1 {first}, {kind} {old}, {kind} {value}")

    def finish(self, r: Reduction, total: tuple[str, str] | None) -> None:
        """After the innermost loop: write the register's result, or combine it with the value in memory."""
        dtype = self.accumulator(r)
        kind = register_type(dtype)
        if total is None:
            value = self.let(f"load {kind}, ptr {self.registers[r.access]}")
            if r.access in self.broken:
                broken = self.let(f"load i1, ptr {self.broken[r.access]}")
                value = self.let(f"select i1 {broken}, {kind} {number(np.nan, dtype)}, {kind} {value}")
        else:
            value = self.with_error(r, *total)
        self.accumulate(r, value, self.rows[r.access])

    def with_error(self, r: Reduction, total: str, error: str) -> str:
        """A total and its error together. If the total is infinite its error is NaN, and does not count."""
        dtype = self.accumulator(r)
        kind = register_type(dtype)
        plain = self.let(f"load {kind}, ptr {total}")
        lost = self.let(f"load {kind}, ptr {error}")
        exact = self.let(f"fadd {kind} {plain}, {lost}")
        broken = self.let(f"fcmp uno {kind} {lost}, {number(0, dtype)}")
        return self.let(f"select i1 {broken}, {kind} {plain}, {kind} {exact}")

    def accumulate(self, r: Reduction, value: str, address: str) -> None:
        dtype = self.accumulator(r)
        target = self.loop.accesses[r.access].dtype
        first = self.first_visit(r)
        if first is not None:
            old = self.cast(self.read(target, address), target, dtype)
            kind = register_type(dtype)
            old = self.let(f"select i1 {first}, {kind} {self.start_value(r)}, {kind} {old}")
            value = self.combine(r.kind, dtype, old, value, loose=False)
        self.write(target, self.cast(value, dtype, target), address)

    def first_visit(self, r: Reduction) -> str | None:
        """Whether memory holds nothing yet: all reduced outer indices are at their start. None: always so."""
        condition: str | None = None
        for axis, index in enumerate(self.indices):
            if r.axes[axis]:
                start = self.chunk_low if axis == 0 else "0"
                test = self.let(f"icmp eq i64 {index}, {start}")
                condition = test if condition is None else self.let(f"and i1 {condition}, {test}")
        return condition

    def combine(self, kind: str, dtype: np.dtype[Any], a: str, b: str, loose: bool) -> str:
        t = register_type(dtype)
        if dtype.kind == "f" and kind in ("sum", "prod"):
            flags = "reassoc contract " if loose else "contract "
            return self.let(f"{'fadd' if kind == 'sum' else 'fmul'} {flags}{t} {a}, {b}")
        if dtype.kind == "b":
            return self.let(f"{'or' if kind in ('sum', 'max') else 'and'} i1 {a}, {b}")
        if kind in ("sum", "prod"):
            return self.let(f"{'add' if kind == 'sum' else 'mul'} {t} {a}, {b}")
        if dtype.kind == "f":
            name = f"llvm.{'maximum' if kind == 'max' else 'minimum'}.f{dtype.itemsize * 8}"
        else:
            name = f"llvm.{'u' if dtype.kind == 'u' else 's'}{kind}.{t}"
        self.intrinsics.add(f"declare {t} @{name}({t}, {t})")
        return self.let(f"call {t} @{name}({t} {a}, {t} {b})")
