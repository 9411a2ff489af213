"""Every access of a simulated kernel to memory is checked before it happens.

In: the IR text of a kernel, complete but for the functions of its target. Out: the text with a call of `nbgrad.access`
before each load, store and atomic operation, and that function. Called by cpu_dialect.py.

All memory of simulated devices, and the shared memory of a block, lie in one range of addresses (simulated_memory.py).
For every eight bytes of it, a byte of the map tells how many of them, from the first on, are in a living array. What
lies outside of the range is not checked: constants, and the stacks of threads. An access must be aligned as the IR says
it is, too, because GPUs insist.

For every byte of shared memory, two words tell which thread has written it last and which one has read it, and in which
epoch: a new one begins with each block and at each barrier. Two threads that access a byte in the same epoch, one of
them to write it, race, unless both do atomic operations. That holds within a warp, too: a shuffle orders no memory.
"""

from __future__ import annotations

import re

_NAME = r'%(?:[\w.$-]+|"[^"]+")'
_ACCESS = re.compile(
    rf"^ *(?:{_NAME} = )?(?:tail )?(?P<kind>load|store|atomicrmw|cmpxchg) (?:atomic |volatile |weak )*(?P<rest>.*)$"
)
ATOMIC, MANY = 4095, 4094
"""In place of a thread that has accessed a byte: an atomic operation, and several readers."""
_OPENING = {"<": ">", "{": "}", "[": "]"}

_WHAT = {"load": 0, "store": 1}
"""The kind of an access in the check for races: 0 for reading, 1 for writing, 2 for an atomic operation."""


def _leading_type(text: str) -> str:
    """The LLVM type that a text begins with."""
    if text[:1] not in _OPENING:
        found = re.match(r"[\w.]+", text)
        return found[0] if found else ""
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "<{[") - (character in ">}]")
        if depth == 0:
            return text[: position + 1]
    return ""


def _accessed(line: str) -> tuple[str, str, str] | None:
    """The pointer, the type and the alignment ("" if it is the type's own) of a line that accesses memory."""
    found = _ACCESS.match(line)
    if found is None:
        return None
    kind, rest = found["kind"], found["rest"]
    # What is stored may be a pointer itself: a load's and a store's last pointer is the place, an atomic's first one.
    pointers = re.findall(r"\bptr ([^\s,]+)", rest)
    if kind in ("load", "store"):
        pointers, accessed = pointers[::-1], _leading_type(rest)
    else:
        accessed = _leading_type(rest.partition(", ")[2])
    if not pointers or not pointers[0].startswith("%") or not accessed:
        return None
    aligned = re.search(r", align (\d+)", rest)
    return pointers[0], accessed, aligned[1] if aligned else ""


def with_checks(text: str) -> str:
    """The text with a check before each access through a pointer in a register."""
    local = set(re.findall(rf"^ *({_NAME}) = alloca ", text, re.M))
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("define "):
            # The check makes these promises about the function untrue.
            line = re.sub(
                r" (?:nocapture|captures\([^()]*\)|memory\([^()]*\)|readnone|readonly|writeonly)(?=[ ,)])", "", line
            )
        found = _accessed(line)
        if found is not None and found[0] not in local:
            pointer, kind, aligned = found
            instruction = re.search(r"\b(load|store|atomicrmw|cmpxchg)\b(?: atomic)?", line)
            assert instruction is not None
            what = _WHAT.get(instruction[0], 2)
            size = f"ptrtoint (ptr getelementptr ({kind}, ptr null, i64 1) to i64)"
            own = f"ptrtoint (ptr getelementptr ({{i1, {kind}}}, ptr null, i64 0, i32 1) to i64)"
            lines.append(f"  call void @nbgrad.access(ptr {pointer}, i64 {size}, i64 {aligned or own}, i64 {what})")
        lines.append(line)
    return "\n".join([*lines, ""])


def definition(fiber: dict[str, int], grid: dict[str, int], faulted: int) -> str:
    """The function that checks an access, for the given offsets of fields."""
    fields = {"range": "i64", "reserved": "i64", "map": "ptr", "races": "i64", "epoch": "i64", "shared.end": "i64"}
    loads = "".join(
        f"  %g.{name} = getelementptr i8, ptr %grid, i64 {grid[name]}\n  %{name} = load {kind}, ptr %g.{name}\n"
        for name, kind in fields.items()
    )
    stores = "".join(
        f"  %s.{name} = getelementptr i8, ptr %grid, i64 {grid[name]}\n  store i64 %{value}, ptr %s.{name}\n"
        for name, value in {"address": "a", "size": "size", "align": "align", "other": "other"}.items()
    )
    return f"""
define internal void @nbgrad.access(ptr %p, i64 %size, i64 %align, i64 %what) alwaysinline {{
  %a = ptrtoint ptr %p to i64
  call void @nbgrad.check(i64 %a, i64 %size, i64 %align, i64 %what)
  ret void
}}

define internal void @nbgrad.check(i64 %a, i64 %size, i64 %align, i64 %what) noinline {{
entry:
  %fiber = call ptr @nbgrad.self()
  %f.grid = getelementptr i8, ptr %fiber, i64 {fiber["grid"]}
  %grid = load ptr, ptr %f.grid
{loads}
  %low = icmp ult i64 %a, 65536
  br i1 %low, label %bad, label %aligned
aligned:
  %mask = sub i64 %align, 1
  %odd = and i64 %a, %mask
  %is.odd = icmp ne i64 %odd, 0
  br i1 %is.odd, label %bad, label %inside
inside:
  %offset = sub i64 %a, %range
  %in = icmp ult i64 %offset, %reserved
  br i1 %in, label %look, label %good
look:
  ; Both ends: a gap between arrays is larger than any access.
  %m.first = lshr i64 %offset, 3
  %p.first = getelementptr i8, ptr %map, i64 %m.first
  %v.first = load i8, ptr %p.first
  %have.first = zext i8 %v.first to i64
  %o.first = and i64 %offset, 7
  %reach = add i64 %o.first, %size
  %long = icmp ugt i64 %reach, 8
  %want.first = select i1 %long, i64 8, i64 %reach
  %ok.first = icmp uge i64 %have.first, %want.first
  %end = add i64 %offset, %size
  %last = sub i64 %end, 1
  %m.last = lshr i64 %last, 3
  %p.last = getelementptr i8, ptr %map, i64 %m.last
  %v.last = load i8, ptr %p.last
  %have.last = zext i8 %v.last to i64
  %o.last = and i64 %last, 7
  %ok.last = icmp ugt i64 %have.last, %o.last
  %ok = and i1 %ok.first, %ok.last
  br i1 %ok, label %whose, label %bad
whose:
  %traced = icmp ne i64 %races, 0
  %is.shared = icmp ult i64 %offset, %shared.end
  %trace = and i1 %traced, %is.shared
  br i1 %trace, label %race, label %good
race:
  %found = call i64 @nbgrad.race(ptr %fiber, i64 %races, i64 %epoch, i64 %offset, i64 %size, i64 %what)
  %raced = icmp ne i64 %found, 0
  br i1 %raced, label %bad, label %good
good:
  ret void
bad:
  %other = phi i64 [ 0, %entry ], [ 0, %aligned ], [ 0, %look ], [ %found, %race ]
{stores}
  call void @nbgrad.wait(ptr %fiber, i32 {faulted})
  unreachable
}}

define internal i64 @nbgrad.race(ptr %fiber, i64 %races, i64 %epoch, i64 %offset, i64 %size, i64 %what) noinline {{
  ; 0, or whom an access races with: the number of a thread plus 1, or {ATOMIC} or {MANY}.
entry:
  %f.thread = getelementptr i8, ptr %fiber, i64 {fiber["thread"]}
  %thread = load i32, ptr %f.thread
  %t = zext i32 %thread to i64
  %t1 = add i64 %t, 1
  %time = shl i64 %epoch, 12
  %me = or i64 %time, %t1
  %many = or i64 %time, {MANY}
  %as.atomic = or i64 %time, {ATOMIC}
  %is.atomic = icmp eq i64 %what, 2
  %as = select i1 %is.atomic, i64 %as.atomic, i64 %me
  %reads = icmp eq i64 %what, 0
  %table = inttoptr i64 %races to ptr
  br label %byte
byte:
  %k = phi i64 [ 0, %entry ], [ %next, %fine ]
  %place = add i64 %offset, %k
  %index = shl i64 %place, 4
  %w.at = getelementptr i8, ptr %table, i64 %index
  %r.at = getelementptr i8, ptr %w.at, i64 8
  %w = load i64, ptr %w.at
  %r = load i64, ptr %r.at
  %w.time = lshr i64 %w, 12
  %w.now = icmp eq i64 %w.time, %epoch
  %w.not.as = icmp ne i64 %w, %as
  %w.not.me = icmp ne i64 %w, %me
  %w.other = and i1 %w.not.as, %w.not.me
  %w.bad = and i1 %w.now, %w.other
  %r.time = lshr i64 %r, 12
  %r.now = icmp eq i64 %r.time, %epoch
  %r.other = icmp ne i64 %r, %me
  %r.there = and i1 %r.now, %r.other
  %writes = xor i1 %reads, true
  %r.bad = and i1 %r.there, %writes
  %bad = or i1 %w.bad, %r.bad
  br i1 %bad, label %race, label %note
note:
  %r.new = select i1 %r.there, i64 %many, i64 %me
  %new = select i1 %reads, i64 %r.new, i64 %as
  %at = select i1 %reads, ptr %r.at, ptr %w.at
  store i64 %new, ptr %at
  br label %fine
fine:
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %size
  br i1 %more, label %byte, label %none
none:
  ret i64 0
race:
  %by = select i1 %w.bad, i64 %w, i64 %r
  %who = and i64 %by, 4095
  ret i64 %who
}}
"""
