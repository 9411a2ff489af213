"""Kernels that reduce: along rows, and down columns.

In: a `Loop` with reductions over one set of axes, and a `Variant`. Out: IR text. Called by grid_loops.py and
row_passes.py.

Rows: `group` threads go along the axes that are reduced, the last axis of memory among them, and combine what they have
by shuffles and, in groups of more than a warp, in shared memory. Columns: the last axis is kept; a block has 32 columns
and 8 threads for each. If `split`, several groups share a value, and store what each of them has; a second
kernel combines that. Who adds what to what depends on sizes only, so results are the same each time.

A thread adds with an error term (Neumaier 1974), as the CPU does for each block of elements; threads and parts are then
added as in a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...compiler.emitters.emit import memory_type, number, register_type
from ...compiler.loops import Loop, Reduction
from .emitter import DeviceEmitter, Variant, text_of, weight

WARP = 32
COLUMNS, COLUMN_THREADS = 32, 8
"""A block of columns, and how many threads share each."""
UNROLLED = 4
SHORT_BODY = 32
"""Weight of the operations of a step, up to which several are done side by side."""


class ReductionEmitter(DeviceEmitter):
    """Writes kernels, and parts of kernels, that may reduce.

    `long`: a thread is likely to do many steps. `part` numbers the parts of a kernel.
    """

    def __init__(self, loop: Loop, variant: Variant, reduced: Sequence[int], long: bool = True, part: int = 0) -> None:
        super().__init__(loop, variant)
        self.reduced = list(reduced)
        self.kept = [axis for axis in range(len(loop.shape)) if axis not in reduced]
        self.totals: dict[int, tuple[str, str]] = {}
        self.long = long
        self.first_hint = 10 + 1000 * part

    # ----- What a thread has -----

    def start(self) -> None:
        """Make a total, and its error term, for each reduction."""
        for r in self.loop.reductions:
            kind = register_type(self.accumulator(r))
            self.totals[r.access] = (self.slot(kind, "total"), self.slot(kind, "error"))
            self.store(kind, self.start_value(r), self.totals[r.access][0])
            if self.compensated(r):
                self.store(kind, number(0, self.accumulator(r)), self.totals[r.access][1])

    def add(self, collected: dict[int, list[str]]) -> None:
        """Add what one step gave."""
        for r in self.loop.reductions:
            values = collected[r.access]
            while len(values) > 1:
                rest = values[len(values) // 2 * 2 :]
                pairs = zip(values[::2], values[1::2], strict=False)
                values = [self.combine(r.kind, self.accumulator(r), a, b, loose=False) for a, b in pairs] + rest
            kind = register_type(self.accumulator(r))
            total, error = self.totals[r.access]
            if self.compensated(r):
                self.add_with_error(r, values[0], total, error)
                continue
            old = self.let(f"load {kind}, ptr {total}")
            self.store(kind, self.combine(r.kind, self.accumulator(r), old, values[0], loose=False), total)

    def total(self, r: Reduction) -> str:
        """A thread's total, with its error term if it has one."""
        total, error = self.totals[r.access]
        if self.compensated(r):
            return self.with_error(r, total, error)
        return self.let(f"load {register_type(self.accumulator(r))}, ptr {total}")

    # ----- Among threads -----

    def exchanged(self, r: Reduction, value: str, distance: int) -> str:
        """The value of the lane whose number differs by a power of two."""
        kind = register_type(self.accumulator(r))
        if kind in ("float", "double"):
            whole = "i32" if kind == "float" else "i64"
            bits = self.let(f"bitcast {kind} {value} to {whole}")
            other = self.let(f"call {whole} @nbgrad.shuffle.xor.{whole}({whole} {bits}, i32 {distance})")
            return self.let(f"bitcast {whole} {other} to {kind}")
        whole = "i64" if kind == "i64" else "i32"
        bits = value if kind == whole else self.let(f"zext {kind} {value} to {whole}")
        other = self.let(f"call {whole} @nbgrad.shuffle.xor.{whole}({whole} {bits}, i32 {distance})")
        return other if kind == whole else self.let(f"trunc {whole} {other} to {kind}")

    def over_lanes(self, r: Reduction, value: str, lanes: int) -> str:
        """The sum, product or extremum over aligned groups of lanes; every lane gets it."""
        distance = 1
        while distance < lanes:
            value = self.combine(r.kind, self.accumulator(r), value, self.exchanged(r, value, distance), loose=False)
            distance *= 2
        return value

    def shared_place(self, r: Reduction, index: str) -> str:
        """An element of shared memory."""
        kind = register_type(self.accumulator(r))
        start = self.let("call ptr @nbgrad.shared()")
        return self.let(f"getelementptr {'i8' if kind == 'i1' else kind}, ptr {start}, i64 {index}")

    def put_shared(self, r: Reduction, value: str, index: str) -> None:
        kind = register_type(self.accumulator(r))
        if kind == "i1":
            value = self.let(f"zext i1 {value} to i8")
        self.put(f"store {'i8' if kind == 'i1' else kind} {value}, ptr {self.shared_place(r, index)}")

    def get_shared(self, r: Reduction, index: str) -> str:
        kind = register_type(self.accumulator(r))
        found = self.let(f"load {'i8' if kind == 'i1' else kind}, ptr {self.shared_place(r, index)}")
        return self.let(f"icmp ne i8 {found}, 0") if kind == "i1" else found

    def together(self, r: Reduction, lane: str) -> str:
        """The sum, product or extremum over a group of threads; its first gets it. `lane`: a thread's number in it."""
        group = self.variant.group
        value = self.over_lanes(r, self.total(r), min(group, WARP))
        if group <= WARP:
            return value
        warps = group // WARP
        warp = self.let(f"lshr i64 {lane}, 5")
        within = self.let(f"and i64 {lane}, {WARP - 1}")
        # Another total may still be read from there.
        self.put("call void @nbgrad.barrier()")
        self.branch(self.let(f"icmp eq i64 {within}, 0"), lambda: self.put_shared(r, value, warp))
        self.put("call void @nbgrad.barrier()")
        here = self.let(f"icmp ult i64 {within}, {warps}")
        index = self.let(f"select i1 {here}, i64 {within}, i64 0")
        return self.over_lanes(r, self.get_shared(r, index), warps)

    def write_total(self, r: Reduction, number_: int, value: str, row: str, part: str, at: dict[int, str]) -> None:
        """Write a result, or a part of it: `[row, part]`."""
        dtype = self.accumulator(r)
        if self.variant.split:
            place = self.let(f"add nsw i64 {self.let(f'mul nsw i64 {row}, %parts')}, {part}")
            address = self.let(f"getelementptr {memory_type(dtype)}, ptr %w{number_}, i64 {place}")
            self.write(dtype, value, address)
            return
        whole = {axis: at.get(axis, "0") for axis in range(len(self.loop.shape))}
        self.indices = [whole[axis] for axis in range(self.last)]
        target = self.loop.accesses[r.access]
        start = self.row(r.access, target)
        distance = self.step(r.access, target, whole[self.last])
        address = self.let(f"getelementptr {memory_type(target.dtype)}, ptr {start}, i64 {distance}")
        self.write(target.dtype, self.cast(value, dtype, target.dtype), address)

    def part_pointers(self) -> list[str]:
        """The parameters for the parts of results, if there are several groups for each."""
        return [f"ptr noalias %w{k}" for k in range(len(self.loop.reductions))] if self.variant.split else []

    # ----- Rows -----

    def along_row(self, row: str, lane: str, part: str, valid: str) -> None:
        """All points of a row, or of a part of it, and what it sums up to. All threads of the block come here."""
        count = self.product(self.reduced)
        first = lane
        if self.variant.split:
            above = self.let(f"add nsw i64 {count}, %parts")
            share = self.let(f"sdiv i64 {self.let(f'sub nsw i64 {above}, 1')}, %parts")
            begin = self.let(f"mul nsw i64 {part}, {share}")
            stop = self.let(f"add nsw i64 {begin}, {share}")
            short = self.let(f"icmp slt i64 {stop}, {count}")
            count = self.let(f"select i1 {short}, i64 {stop}, i64 {count}")
            first = self.let(f"add nsw i64 {begin}, {lane}")
        count = self.let(f"select i1 {valid}, i64 {count}, i64 0")
        self.start()
        outer = self.coordinates(row, self.kept)

        def step(linear: str) -> None:
            self.steps({**outer, **self.coordinates(linear, self.reduced)}, self.add)

        self.strided(first, count, str(self.variant.group), step)
        first_lane = self.let(f"icmp eq i64 {lane}, 0")
        writes = self.let(f"and i1 {first_lane}, {valid}")
        for k, r in enumerate(self.loop.reductions):
            value = self.together(r, lane)
            self.branch(writes, lambda k=k, r=r, value=value: self.write_total(r, k, value, row, part, outer))

    def strided(self, first: str, stop: str, stride: str, body: Callable[[str], None]) -> None:
        """`for i in range(first, stop, stride): body(i)`."""
        self.counted(self.slot("i64", "k"), first, stop, body, self.unrolled(), stride)

    def unrolled(self) -> str:
        """Tells LLVM to put several steps of a short body side by side, so that more reads are under way at once, and
        to leave other loops alone: their code would only be longer."""
        short = weight(self.loop) * self.variant.vector <= SHORT_BODY
        told = f'"llvm.loop.unroll.count", i32 {UNROLLED}' if short and self.long else '"llvm.loop.unroll.disable"'
        name, how = f"!{self.first_hint + 2 * len(self.hints)}", f"!{self.first_hint + 2 * len(self.hints) + 1}"
        self.hints.append(f"{name} = distinct !{{{name}, {how}}}\n{how} = !{{!{told}}}")
        return f", !llvm.loop {name}"

    def rows_text(self) -> str:
        """A kernel of one loop, in which each group of threads does a row or a part of one."""
        lane, row, part = self.group_of_thread()
        valid = self.let(f"icmp slt i64 {row}, {self.product(self.kept)}")
        self.along_row(row, lane, part, valid)
        numbers = [*self.number_parameters(), *(["i64 %parts"] if self.variant.split else [])]
        parameters = ", ".join([*self.pointers(), *self.part_pointers(), *numbers])
        return text_of([self], self.function(f"void @kernel({parameters})"))

    def group_of_thread(self) -> tuple[str, str, str]:
        """(lane, row, part) of this thread."""
        linear = self.position()
        shift = self.variant.group.bit_length() - 1
        lane = self.let(f"and i64 {linear}, {self.variant.group - 1}")
        group = self.let(f"lshr i64 {linear}, {shift}")
        if not self.variant.split:
            return lane, group, "0"
        row = self.let(f"udiv i64 {group}, %parts")
        return lane, row, self.let(f"sub nsw i64 {group}, {self.let(f'mul nsw i64 {row}, %parts')}")

    # ----- Columns -----

    def columns_text(self) -> str:
        """A kernel in which a block does 32 columns, with 8 threads each, or a part of their rows."""
        thread = self.let("call i32 @nbgrad.thread()")
        thread = self.let(f"zext i32 {thread} to i64")
        block = self.let("call i32 @nbgrad.block()")
        block = self.let(f"zext i32 {block} to i64")
        across = self.let(f"and i64 {thread}, {COLUMNS - 1}")
        down = self.let(f"lshr i64 {thread}, {COLUMNS.bit_length() - 1}")
        part = "0"
        tile = block
        columns = self.product(self.kept)
        if self.variant.split:
            tile = self.let(f"udiv i64 {block}, %parts")
            part = self.let(f"sub nsw i64 {block}, {self.let(f'mul nsw i64 {tile}, %parts')}")
        column = self.let(f"add nsw i64 {self.let(f'mul nsw i64 {tile}, {COLUMNS}')}, {across}")
        valid = self.let(f"icmp slt i64 {column}, {columns}")
        count = self.product(self.reduced)
        first, stride = down, str(COLUMN_THREADS)
        if self.variant.split:
            first = self.let(f"add nsw i64 {self.let(f'mul nsw i64 {part}, {COLUMN_THREADS}')}, {down}")
            stride = self.let(f"mul nsw i64 %parts, {COLUMN_THREADS}")
        count = self.let(f"select i1 {valid}, i64 {count}, i64 0")
        self.start()
        outer = self.coordinates(column, self.kept)

        def step(linear: str) -> None:
            self.add(self.visit({**outer, **self.coordinates(linear, self.reduced)}, 1))

        self.strided(first, count, stride, step)
        writes = self.let(f"and i1 {self.let(f'icmp eq i64 {down}, 0')}, {valid}")
        for k, r in enumerate(self.loop.reductions):
            value = self.total(r)
            if k:
                self.put("call void @nbgrad.barrier()")
            self.put_shared(r, value, thread)
            self.put("call void @nbgrad.barrier()")

            def gather(k: int = k, r: Reduction = r) -> None:
                values = [self.get_shared(r, self.let(f"add nuw nsw i64 {across}, {COLUMNS * t}")) for t in range(8)]
                while len(values) > 1:
                    pairs = zip(values[::2], values[1::2], strict=True)
                    values = [self.combine(r.kind, self.accumulator(r), a, b, loose=False) for a, b in pairs]
                self.write_total(r, k, values[0], column, part, outer)

            self.branch(writes, gather)
        numbers = [*self.number_parameters(), *(["i64 %parts"] if self.variant.split else [])]
        parameters = ", ".join([*self.pointers(), *self.part_pointers(), *numbers])
        return text_of([self], self.function(f"void @kernel({parameters})"))


def shared_bytes(parts: Sequence[ReductionEmitter]) -> int:
    """Shared memory for the totals of warps."""
    sizes = [part.accumulator(r).itemsize for part in parts for r in part.loop.reductions]
    return WARP * max(sizes, default=0)
