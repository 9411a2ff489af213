"""The dialect's functions for this machine's CPU, and the scheduler of a block's threads.

In: the IR text of a kernel (dialect.py). Out: `host_text`, a module for x86-64 whose function `nbgrad.host` runs a
whole grid, one block after the other. Called by fibers.py, which defines fibers.
"""

from __future__ import annotations

import re

from ...errors import DeviceError
from ..kernels.dialect import CONVERGENT, SIGNATURES, called, complete
from .checked_accesses import definition, with_checks
from .cpu_instructions import definitions

WARP = 32
STACK = 1 << 16
UNSET = 0xFF
"""Memory that was never written holds this in every byte: NaN, or -1."""
READY, ENDED, FAULTED = 0, 1, 100
"""States of a fiber that does not wait."""
WAITS = {name: number for number, name in enumerate(["nbgrad.barrier", *sorted(CONVERGENT - {"nbgrad.barrier"})], 2)}
"""Numbers of the operations at which fibers wait; all but the barrier are of a warp."""
_BARRIER = WAITS["nbgrad.barrier"]

# The fields of a fiber, and of the grid, by offset.
FIBER = {"stack": 0, "grid": 8, "thread": 16, "kind": 20, "turn": 24, "slots": 32}
GRID = {
    "stack": 0,
    "fibers": 8,
    "words": 16,
    "shared": 24,
    "bytes": 32,
    "block": 40,
    "threads": 44,
    "blocks": 48,
    "reversed": 52,
    "range": 56,
    "reserved": 64,
    "map": 72,
    "address": 80,
    "size": 88,
    "align": 96,
    "thread": 104,
    "races": 112,
    "epoch": 120,
    "shared.end": 128,
    "other": 136,
}
"""Fields for checked_accesses.py: the range of addresses, its length and its map; the address of the records of shared
memory (0 without a check for races), the number of the epoch, and the end of shared memory; the address, size and
alignment of the access at fault, its thread, and the other thread of a race."""
GRID_BYTES = 144
COLOURS = 64
"""Fibers begin at as many different offsets in their stacks, or they would all meet in the same lines of the caches."""
FIRST = STACK - 128 * COLOURS

_COMMON = f"""
define internal ptr @nbgrad.at(ptr %place) alwaysinline {{
  ; The fiber whose stack a place is in.
  %p = ptrtoint ptr %place to i64
  %base = and i64 %p, -{STACK}
  %number = lshr i64 %base, {STACK.bit_length() - 1}
  %colour = and i64 %number, {COLOURS - 1}
  %shift = shl i64 %colour, 7
  %top = add i64 %base, {FIRST}
  %at = add i64 %top, %shift
  %r = inttoptr i64 %at to ptr
  ret ptr %r
}}

define internal ptr @nbgrad.fiber(ptr %fibers, i32 %number) alwaysinline {{
  %n = zext i32 %number to i64
  %offset = mul i64 %n, {STACK}
  %place = getelementptr i8, ptr %fibers, i64 %offset
  %r = call ptr @nbgrad.at(ptr %place)
  ret ptr %r
}}

define internal ptr @nbgrad.self() alwaysinline {{
  %p = call ptr asm "movq %rsp, $0", "=r"()
  %r = call ptr @nbgrad.at(ptr %p)
  ret ptr %r
}}

define internal void @nbgrad.switch(ptr %from, ptr %to) naked noinline optnone nounwind {{
  ; Both begin with their stack pointers.
  call void asm sideeffect "pushq %rbp
pushq %rbx
pushq %r12
pushq %r13
pushq %r14
pushq %r15
movq %rsp, (%rdi)
movq (%rsi), %rsp
popq %r15
popq %r14
popq %r13
popq %r12
popq %rbx
popq %rbp
retq", "~{{memory}}"()
  unreachable
}}

define internal void @nbgrad.prepare(ptr %fiber, ptr %grid, i32 %thread) {{
  ; Six registers and the address to begin at.
  %start = getelementptr i8, ptr %fiber, i64 -64
  call void @llvm.memset.p0.i64(ptr %start, i8 0, i64 64, i1 false)
  %return = getelementptr i8, ptr %fiber, i64 -16
  store ptr @nbgrad.begin, ptr %return
  store ptr %start, ptr %fiber
  %f.grid = getelementptr i8, ptr %fiber, i64 {FIBER["grid"]}
  store ptr %grid, ptr %f.grid
  %f.thread = getelementptr i8, ptr %fiber, i64 {FIBER["thread"]}
  store i32 %thread, ptr %f.thread
  %f.kind = getelementptr i8, ptr %fiber, i64 {FIBER["kind"]}
  store i32 {READY}, ptr %f.kind
  %f.turn = getelementptr i8, ptr %fiber, i64 {FIBER["turn"]}
  store i64 0, ptr %f.turn
  ret void
}}

define internal void @nbgrad.wait(ptr %fiber, i32 %kind) noinline {{
  %f.kind = getelementptr i8, ptr %fiber, i64 {FIBER["kind"]}
  store i32 %kind, ptr %f.kind
  %f.grid = getelementptr i8, ptr %fiber, i64 {FIBER["grid"]}
  %grid = load ptr, ptr %f.grid
  call void @nbgrad.switch(ptr %fiber, ptr %grid)
  ret void
}}

define internal i64 @nbgrad.exchange(i64 %value, i32 %kind, ptr %out) noinline {{
  ; Waits for the warp; %out gets the thread's number, the result is the offset of the slots that all wrote to.
  %fiber = call ptr @nbgrad.self()
  %f.turn = getelementptr i8, ptr %fiber, i64 {FIBER["turn"]}
  %turn = load i64, ptr %f.turn
  %next = xor i64 %turn, 8
  store i64 %next, ptr %f.turn
  %offset = add i64 %turn, {FIBER["slots"]}
  %slot = getelementptr i8, ptr %fiber, i64 %offset
  store i64 %value, ptr %slot
  call void @nbgrad.wait(ptr %fiber, i32 %kind)
  %f.thread = getelementptr i8, ptr %fiber, i64 {FIBER["thread"]}
  %thread = load i32, ptr %f.thread
  store i32 %thread, ptr %out
  ret i64 %offset
}}

define internal i64 @nbgrad.lane(i32 %number, i64 %offset) noinline {{
  ; What a thread of the block has in a slot.
  %fiber = call ptr @nbgrad.self()
  %f.grid = getelementptr i8, ptr %fiber, i64 {FIBER["grid"]}
  %grid = load ptr, ptr %f.grid
  %g.fibers = getelementptr i8, ptr %grid, i64 {GRID["fibers"]}
  %fibers = load ptr, ptr %g.fibers
  %other = call ptr @nbgrad.fiber(ptr %fibers, i32 %number)
  %slot = getelementptr i8, ptr %other, i64 %offset
  %r = load i64, ptr %slot
  ret i64 %r
}}

define internal void @nbgrad.open(ptr %grid, i32 %block) {{
  ; Begins a block: nothing is in its shared memory yet.
  %g.block = getelementptr i8, ptr %grid, i64 {GRID["block"]}
  store i32 %block, ptr %g.block
  %g.shared = getelementptr i8, ptr %grid, i64 {GRID["shared"]}
  %shared = load ptr, ptr %g.shared
  %g.bytes = getelementptr i8, ptr %grid, i64 {GRID["bytes"]}
  %bytes = load i64, ptr %g.bytes
  call void @llvm.memset.p0.i64(ptr %shared, i8 {UNSET}, i64 %bytes, i1 false)
  call void @nbgrad.proceed(ptr %grid)
  ret void
}}

define internal void @nbgrad.proceed(ptr %grid) alwaysinline {{
  ; A new epoch.
  %g.epoch = getelementptr i8, ptr %grid, i64 {GRID["epoch"]}
  %epoch = load i64, ptr %g.epoch
  %next = add i64 %epoch, 1
  store i64 %next, ptr %g.epoch
  ret void
}}

define internal i32 @nbgrad.turned(i32 %position, i32 %count, i1 %reversed) alwaysinline {{
  %last = sub i32 %count, 1
  %back = sub i32 %last, %position
  %r = select i1 %reversed, i32 %back, i32 %position
  ret i32 %r
}}

define internal i32 @nbgrad.outcome(ptr %grid, ptr %fiber) alwaysinline {{
  ; 2 if the thread that has just run is at a fault.
  %f.kind = getelementptr i8, ptr %fiber, i64 {FIBER["kind"]}
  %kind = load i32, ptr %f.kind
  %fault = icmp eq i32 %kind, {FAULTED}
  %f.thread = getelementptr i8, ptr %fiber, i64 {FIBER["thread"]}
  %thread = load i32, ptr %f.thread
  %g.thread = getelementptr i8, ptr %grid, i64 {GRID["thread"]}
  store i32 %thread, ptr %g.thread
  %code = select i1 %fault, i32 2, i32 0
  ret i32 %code
}}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""

_HEAD = f"""
  %g.fibers = getelementptr i8, ptr %grid, i64 {GRID["fibers"]}
  %fibers = load ptr, ptr %g.fibers
  %g.threads = getelementptr i8, ptr %grid, i64 {GRID["threads"]}
  %threads = load i32, ptr %g.threads
  %g.blocks = getelementptr i8, ptr %grid, i64 {GRID["blocks"]}
  %blocks = load i32, ptr %g.blocks
  %g.reversed = getelementptr i8, ptr %grid, i64 {GRID["reversed"]}
  %order = load i32, ptr %g.reversed
  %reversed = icmp ne i32 %order, 0
"""

_LOOP = f"""
define internal void @nbgrad.begin() noreturn {{
entry:
  %fiber = call ptr @nbgrad.self()
  %f.thread = getelementptr i8, ptr %fiber, i64 {FIBER["thread"]}
  %f.grid = getelementptr i8, ptr %fiber, i64 {FIBER["grid"]}
  %grid = load ptr, ptr %f.grid
{_HEAD}
  br label %block
block:
  %b = phi i32 [ 0, %entry ], [ %b.next, %block.end ]
  %b.turned = call i32 @nbgrad.turned(i32 %b, i32 %blocks, i1 %reversed)
  call void @nbgrad.open(ptr %grid, i32 %b.turned)
  br label %thread
thread:
  %t = phi i32 [ 0, %block ], [ %t.next, %thread ]
  %t.turned = call i32 @nbgrad.turned(i32 %t, i32 %threads, i1 %reversed)
  store i32 %t.turned, ptr %f.thread
  call void @nbgrad.call(ptr %grid)
  %t.next = add i32 %t, 1
  %t.more = icmp ult i32 %t.next, %threads
  br i1 %t.more, label %thread, label %block.end
block.end:
  %b.next = add i32 %b, 1
  %b.more = icmp ult i32 %b.next, %blocks
  br i1 %b.more, label %block, label %end
end:
  call void @nbgrad.wait(ptr %fiber, i32 {ENDED})
  unreachable
}}

define i32 @nbgrad.host(ptr %grid) {{
{_HEAD}
  %first = call ptr @nbgrad.fiber(ptr %fibers, i32 0)
  call void @nbgrad.prepare(ptr %first, ptr %grid, i32 0)
  call void @nbgrad.switch(ptr %grid, ptr %first)
  %code = call i32 @nbgrad.outcome(ptr %grid, ptr %first)
  ret i32 %code
}}
"""
"""A kernel that never waits: one fiber goes through all threads of all blocks."""

_SCHEDULER = f"""
define internal void @nbgrad.begin() noreturn {{
  %fiber = call ptr @nbgrad.self()
  %f.grid = getelementptr i8, ptr %fiber, i64 {FIBER["grid"]}
  %grid = load ptr, ptr %f.grid
  call void @nbgrad.call(ptr %grid)
  call void @nbgrad.wait(ptr %fiber, i32 {ENDED})
  unreachable
}}

define internal i32 @nbgrad.advance(ptr %grid, i32 %first, i32 %count) {{
  ; Runs the threads of a warp until all wait for the block or have ended, and gives which; -1 if they disagree.
entry:
{_HEAD}
  br label %round
round:
  br label %run
run:
  %p = phi i32 [ 0, %round ], [ %p.next, %run.next ]
  %lane = call i32 @nbgrad.turned(i32 %p, i32 %count, i1 %reversed)
  %number = add i32 %first, %lane
  %fiber = call ptr @nbgrad.fiber(ptr %fibers, i32 %number)
  %f.kind = getelementptr i8, ptr %fiber, i64 {FIBER["kind"]}
  %kind = load i32, ptr %f.kind
  %ready = icmp eq i32 %kind, {READY}
  br i1 %ready, label %switch, label %run.next
switch:
  call void @nbgrad.switch(ptr %grid, ptr %fiber)
  %outcome = call i32 @nbgrad.outcome(ptr %grid, ptr %fiber)
  %fault = icmp ne i32 %outcome, 0
  br i1 %fault, label %faulted, label %run.next
run.next:
  %p.next = add i32 %p, 1
  %p.more = icmp ult i32 %p.next, %count
  br i1 %p.more, label %run, label %look
look:
  %fiber.0 = call ptr @nbgrad.fiber(ptr %fibers, i32 %first)
  %f.kind.0 = getelementptr i8, ptr %fiber.0, i64 {FIBER["kind"]}
  %kind.0 = load i32, ptr %f.kind.0
  br label %compare
compare:
  %c = phi i32 [ 0, %look ], [ %c.next, %compare.next ]
  %c.number = add i32 %first, %c
  %c.fiber = call ptr @nbgrad.fiber(ptr %fibers, i32 %c.number)
  %c.f.kind = getelementptr i8, ptr %c.fiber, i64 {FIBER["kind"]}
  %c.kind = load i32, ptr %c.f.kind
  %same = icmp eq i32 %c.kind, %kind.0
  br i1 %same, label %compare.next, label %wrong
compare.next:
  %c.next = add i32 %c, 1
  %c.more = icmp ult i32 %c.next, %count
  br i1 %c.more, label %compare, label %agreed
agreed:
  %of.warp = icmp ugt i32 %kind.0, {_BARRIER}
  br i1 %of.warp, label %whole, label %return
whole:
  %is.whole = icmp eq i32 %count, {WARP}
  br i1 %is.whole, label %release, label %wrong
release:
  call void @nbgrad.release(ptr %fibers, i32 %first, i32 %count)
  br label %round
return:
  ret i32 %kind.0
wrong:
  ret i32 -1
faulted:
  ret i32 -2
}}

define internal void @nbgrad.release(ptr %fibers, i32 %first, i32 %count) {{
entry:
  br label %loop
loop:
  %p = phi i32 [ 0, %entry ], [ %next, %loop ]
  %number = add i32 %first, %p
  %fiber = call ptr @nbgrad.fiber(ptr %fibers, i32 %number)
  %f.kind = getelementptr i8, ptr %fiber, i64 {FIBER["kind"]}
  store i32 {READY}, ptr %f.kind
  %next = add i32 %p, 1
  %more = icmp ult i32 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}}

define i32 @nbgrad.host(ptr %grid) {{
  ; All blocks; 0, or 1 if threads wait for each other in vain, 2 if one has accessed memory that is not its own.
  ; Then the grid and the fibers tell more.
entry:
{_HEAD}
  %above = add i32 %threads, {WARP - 1}
  %warps = lshr i32 %above, 5
  br label %block
block:
  %b = phi i32 [ 0, %entry ], [ %b.next, %block.end ]
  %b.turned = call i32 @nbgrad.turned(i32 %b, i32 %blocks, i1 %reversed)
  call void @nbgrad.open(ptr %grid, i32 %b.turned)
  br label %prepare
prepare:
  %t = phi i32 [ 0, %block ], [ %t.next, %prepare ]
  %fiber = call ptr @nbgrad.fiber(ptr %fibers, i32 %t)
  call void @nbgrad.prepare(ptr %fiber, ptr %grid, i32 %t)
  %t.next = add i32 %t, 1
  %t.more = icmp ult i32 %t.next, %threads
  br i1 %t.more, label %prepare, label %round
round:
  br label %warp
warp:
  %w = phi i32 [ 0, %round ], [ %w.next, %warp.next ]
  %before = phi i32 [ 0, %round ], [ %kind, %warp.next ]
  %w.turned = call i32 @nbgrad.turned(i32 %w, i32 %warps, i1 %reversed)
  %first = shl i32 %w.turned, 5
  %rest = sub i32 %threads, %first
  %short = icmp ult i32 %rest, {WARP}
  %count = select i1 %short, i32 %rest, i32 {WARP}
  %kind = call i32 @nbgrad.advance(ptr %grid, i32 %first, i32 %count)
  %wrong = icmp slt i32 %kind, 0
  br i1 %wrong, label %disagree, label %check
check:
  %is.first = icmp eq i32 %w, 0
  %equal = icmp eq i32 %kind, %before
  %fine = or i1 %is.first, %equal
  br i1 %fine, label %warp.next, label %fail
warp.next:
  %w.next = add i32 %w, 1
  %w.more = icmp ult i32 %w.next, %warps
  br i1 %w.more, label %warp, label %together
together:
  %ended = icmp eq i32 %kind, {ENDED}
  br i1 %ended, label %block.end, label %release
release:
  call void @nbgrad.release(ptr %fibers, i32 0, i32 %threads)
  call void @nbgrad.proceed(ptr %grid)
  br label %round
block.end:
  %b.next = add i32 %b, 1
  %b.more = icmp ult i32 %b.next, %blocks
  br i1 %b.more, label %block, label %end
end:
  ret i32 0
disagree:
  %code = sub i32 0, %kind
  ret i32 %code
fail:
  ret i32 1
}}
"""
"""A kernel that waits: as many fibers as a block has threads."""


def _number(name: str) -> str:
    """The definition of a thread's or the grid's number."""
    own = name == "thread"
    grid = (
        ""
        if own
        else f"""
  %f.grid = getelementptr i8, ptr %fiber, i64 {FIBER["grid"]}
  %grid = load ptr, ptr %f.grid"""
    )
    place = f"ptr %fiber, i64 {FIBER['thread']}" if own else f"ptr %grid, i64 {GRID[name]}"
    kind = "ptr" if name == "shared" else "i32"
    return f"""
define internal {kind} @nbgrad.{name}() alwaysinline {{
  %fiber = call ptr @nbgrad.self(){grid}
  %place = getelementptr i8, {place}
  %r = load {kind}, ptr %place
  ret {kind} %r
}}"""


_SOURCES = {
    "down": """
  %distance = and i32 %n, 31
  %far = add i32 %lane, %distance
  %beyond = icmp ugt i32 %far, 31
  %source = select i1 %beyond, i32 %lane, i32 %far""",
    "xor": "\n  %mask = and i32 %n, 31\n  %source = xor i32 %lane, %mask",
    "from": "\n  %source = and i32 %n, 31",
}


def _shuffle(name: str) -> str:
    _, _, mode, kind = name.split(".")
    widen, narrow = ("%v", "%r") if kind == "i64" else ("%wide", "%narrow")
    before = "" if kind == "i64" else "\n  %wide = zext i32 %v to i64"
    after = "" if kind == "i64" else "\n  %narrow = trunc i64 %r to i32"
    return f"""
define internal {kind} @{name}({kind} %v, i32 %n) {{
  %thread.place = alloca i32{before}
  %offset = call i64 @nbgrad.exchange(i64 {widen}, i32 {WAITS[name]}, ptr %thread.place)
  %thread = load i32, ptr %thread.place
  %lane = and i32 %thread, 31
  %first = sub i32 %thread, %lane{_SOURCES[mode]}
  %number = add i32 %first, %source
  %r = call i64 @nbgrad.lane(i32 %number, i64 %offset){after}
  ret {kind} {narrow}
}}"""


def _lanes(name: str, bits: int, condition: str) -> str:
    """A function that gives the lanes for whose value %v, of which some bits count, a condition holds."""
    return f"""
define internal i32 @nbgrad.{name}(i32 %p) {{
entry:
  %thread.place = alloca i32
  %wide = zext i32 %p to i64
  %value = and i64 %wide, {bits}
  %offset = call i64 @nbgrad.exchange(i64 %value, i32 {WAITS[f"nbgrad.{name}"]}, ptr %thread.place)
  %thread = load i32, ptr %thread.place
  %first = and i32 %thread, -32
  br label %loop
loop:
  %lane = phi i32 [ 0, %entry ], [ %next, %loop ]
  %bits = phi i32 [ 0, %entry ], [ %joined, %loop ]
  %number = add i32 %first, %lane
  %v = call i64 @nbgrad.lane(i32 %number, i64 %offset)
  %set = icmp {condition}
  %bit = zext i1 %set to i32
  %moved = shl i32 %bit, %lane
  %joined = or i32 %bits, %moved
  %next = add i32 %lane, 1
  %more = icmp ult i32 %next, 32
  br i1 %more, label %loop, label %end
end:
  ret i32 %joined
}}"""


_HOST = {
    **{f"nbgrad.{name}": _number(name) for name in ("thread", "block", "threads", "blocks", "shared")},
    **{name: _shuffle(name) for name in CONVERGENT if name.startswith("nbgrad.shuffle.")},
    "nbgrad.ballot": _lanes("ballot", -1, "ne i64 %v, 0"),
    "nbgrad.match": _lanes("match", 255, "eq i64 %v, %value"),
    "nbgrad.barrier": f"""
define internal void @nbgrad.barrier() {{
  %fiber = call ptr @nbgrad.self()
  call void @nbgrad.wait(ptr %fiber, i32 {_BARRIER})
  ret void
}}""",
    "nbgrad.fence": "\ndefine internal void @nbgrad.fence() alwaysinline {\n  fence seq_cst\n  ret void\n}",
}
"""The functions that each target defines, for the host."""


def parameters(text: str) -> list[str]:
    """The types of a kernel's parameters.

    Raises
    ------
    DeviceError
        If the text defines no kernel, or one that takes other things than pointers and then 64-bit integers.
    """
    found = re.search(r"^define [^@\n]*@kernel\(", text, re.M)
    if found is None:
        message = "This text defines no kernel: it must contain `define void @kernel(`."
        raise DeviceError(message)
    depth, types, current = 1, [], ""
    for character in text[found.end() :]:
        depth += (character == "(") - (character == ")")
        if depth == 0 or (character == "," and depth == 1):
            types.append(current.split())
            current = ""
            if depth == 0:
                break
        else:
            current += character
    names = [words[0] for words in types if words]
    if names != sorted(names, key=lambda name: name != "ptr") or not set(names) <= {"ptr", "i64"}:
        message = f"A kernel takes pointers and then 64-bit integers, but this one takes ({', '.join(names)})."
        raise DeviceError(message)
    return names


def host_text(text: str) -> str:
    """The text of a kernel as a module for the host, whose function `nbgrad.host` runs a grid."""
    types = parameters(text)
    loads = "".join(
        f"  %p{i} = getelementptr i64, ptr %words, i64 {i}\n  %v{i} = load {kind}, ptr %p{i}\n"
        for i, kind in enumerate(types)
    )
    values = ", ".join(f"{kind} %v{i}" for i, kind in enumerate(types))
    call = (
        f"\ndefine internal void @nbgrad.call(ptr %grid) {{\n"
        f"  %g.words = getelementptr i8, ptr %grid, i64 {GRID['words']}\n  %words = load ptr, ptr %g.words\n"
        f"{loads}  call void @kernel({values})\n  ret void\n}}\n"
    )
    text = complete(text + definitions(text))
    used = called(text)
    # All objects are linked into one space of names: nothing but the entry may be seen there.
    linkage = r"^define (?:(?:linkonce_odr|linkonce|weak_odr|weak|internal|private|hidden|dso_local) )*"
    text = with_checks(re.sub(linkage, "define internal ", text, flags=re.M))
    run = _SCHEDULER if used & CONVERGENT else _LOOP
    return (
        text
        + "".join(_HOST[name] for name in SIGNATURES if name in used & _HOST.keys())
        + call
        + _COMMON
        + definition(FIBER, GRID, FAULTED)
        + run
    )
