"""Every access of a simulated kernel to memory is checked before it happens.

In: the IR text of a kernel, complete but for the functions of its target. Out: the text with a call of `nbgrad.access`
before each load, store and atomic operation, and that function. Called by host_dialect.py.

All memory of simulated devices, and the shared memory of a block, lie in one range of addresses (simulated_memory.py).
For every eight bytes of it, a byte of the map tells how many of them, from the first on, are in a living array. What
lies outside of the range is not checked: constants, and the stacks of threads. An access must be aligned as the IR says
it is, too, because GPUs insist.
"""

from __future__ import annotations

import re

_NAME = r'%(?:[\w.$-]+|"[^"]+")'
_ACCESS = re.compile(
    rf"^ *(?:{_NAME} = )?(?:tail )?(?P<kind>load|store|atomicrmw|cmpxchg) (?:atomic |volatile |weak )*(?P<rest>.*)$"
)
_OPENING = {"<": ">", "{": "}", "[": "]"}


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
            # The check makes untrue what is promised of the function.
            line = re.sub(
                r" (?:nocapture|captures\([^()]*\)|memory\([^()]*\)|readnone|readonly|writeonly)(?=[ ,)])", "", line
            )
        found = _accessed(line)
        if found is not None and found[0] not in local:
            pointer, kind, aligned = found
            size = f"ptrtoint (ptr getelementptr ({kind}, ptr null, i64 1) to i64)"
            own = f"ptrtoint (ptr getelementptr ({{i1, {kind}}}, ptr null, i64 0, i32 1) to i64)"
            lines.append(f"  call void @nbgrad.access(ptr {pointer}, i64 {size}, i64 {aligned or own})")
        lines.append(line)
    return "\n".join([*lines, ""])


def definition(fiber: dict[str, int], grid: dict[str, int], faulted: int) -> str:
    """The function that checks an access, for the given offsets of fields."""
    fields = {"range": "i64", "reserved": "i64", "map": "ptr"}
    loads = "".join(
        f"  %g.{name} = getelementptr i8, ptr %grid, i64 {grid[name]}\n  %{name} = load {kind}, ptr %g.{name}\n"
        for name, kind in fields.items()
    )
    stores = "".join(
        f"  %s.{name} = getelementptr i8, ptr %grid, i64 {grid[name]}\n  store i64 %{value}, ptr %s.{name}\n"
        for name, value in {"address": "a", "size": "size", "align": "align"}.items()
    )
    return f"""
define internal void @nbgrad.access(ptr %p, i64 %size, i64 %align) alwaysinline {{
  %a = ptrtoint ptr %p to i64
  call void @nbgrad.check(i64 %a, i64 %size, i64 %align)
  ret void
}}

define internal void @nbgrad.check(i64 %a, i64 %size, i64 %align) noinline {{
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
  br i1 %ok, label %good, label %bad
good:
  ret void
bad:
{stores}
  call void @nbgrad.wait(ptr %fiber, i32 {faulted})
  unreachable
}}
"""
