"""The dialect of kernel IR, and what it becomes for NVIDIA GPUs.

In: IR text of a kernel, `define void @kernel(ptr ..., i64 ...)`, which is of no machine in particular: it may call the
functions of `TARGET` and functions of the C library. Out: `complete`, the text with the library's functions defined,
and `for_nvptx`, that text for LLVM's NVPTX target. Called by ptx.py and by the simulator, which defines the functions
of `TARGET` for the host.

The functions: `nbgrad.thread`, `nbgrad.block` (in the grid), `nbgrad.threads` (of a block), `nbgrad.blocks` (of the
grid), all i32; `nbgrad.barrier` for the threads of a block; `nbgrad.fence`, which orders writes to device memory;
`nbgrad.shuffle.down`, `.xor` and `.from` of i32 and i64, which give the value of another lane (by distance, mask, or
number), `nbgrad.ballot`, the lanes whose argument is not 0, and `nbgrad.match`, the lanes whose argument has the same
lowest eight bits: all 32 lanes of a warp must take part;
`nbgrad.shared`, the block's dynamic shared memory, aligned to 16 bytes; `nbgrad.approximate.` instructions on float32,
of which kernels/approximate.py says what they do. `nbgrad.atomic.add` and `.max` (of i32, i64,
u32, u64, f32, f64) change an element in one step and give what it was; they are defined here for all targets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ...compiler.scalars import scalar_ir
from ...compiler.texts import float_parts, huge_angles, wide_registers

_SPECIAL_REGISTERS = {"thread": "tid", "block": "ctaid", "threads": "ntid", "blocks": "nctaid"}


def _register(name: str) -> str:
    read = f"llvm.nvvm.read.ptx.sreg.{_SPECIAL_REGISTERS[name]}.x"
    return (
        f"declare i32 @{read}()\n"
        f"define internal i32 @nbgrad.{name}() alwaysinline {{\n  %r = call i32 @{read}()\n  ret i32 %r\n}}"
    )


def _shuffle(kind: str) -> str:
    mode = {"down": "down", "xor": "bfly", "from": "idx"}[kind]
    assembly = f'asm sideeffect "shfl.sync.{mode}.b32 $0, $1, $2, 31, -1;", "=r,r,r"'
    return (
        f"define internal i32 @nbgrad.shuffle.{kind}.i32(i32 %v, i32 %n) alwaysinline convergent {{\n"
        f"  %r = call i32 {assembly}(i32 %v, i32 %n) convergent\n  ret i32 %r\n}}\n"
        f"define internal i64 @nbgrad.shuffle.{kind}.i64(i64 %v, i32 %n) alwaysinline convergent {{\n"
        "  %low = trunc i64 %v to i32\n"
        "  %above = lshr i64 %v, 32\n"
        "  %high = trunc i64 %above to i32\n"
        f"  %l = call i32 {assembly}(i32 %low, i32 %n) convergent\n"
        f"  %h = call i32 {assembly}(i32 %high, i32 %n) convergent\n"
        "  %l64 = zext i32 %l to i64\n"
        "  %h64 = zext i32 %h to i64\n"
        "  %h.up = shl i64 %h64, 32\n"
        "  %r = or i64 %h.up, %l64\n"
        "  ret i64 %r\n}"
    )


_INSTRUCTIONS = {
    "exp2": ("ex2.approx.ftz.f32", 1),
    "log2": ("lg2.approx.ftz.f32", 1),
    "reciprocal": ("rcp.approx.ftz.f32", 1),
    "rsqrt": ("rsqrt.approx.f32", 1),
    "normal_rsqrt": ("rsqrt.approx.ftz.f32", 1),
    "muladd": ("fma.rn.sat.f32", 3),
}
"""Instructions on float32 that LLVM's IR has no operation for; kernels/approximate.py says what they do."""


def _instruction(name: str) -> str:
    instruction, arity = _INSTRUCTIONS[name]
    places = ", ".join(f"${k}" for k in range(arity + 1))
    parameters = ", ".join(f"float %x{k}" for k in range(arity))
    return (
        f"define internal float @nbgrad.approximate.{name}.f32({parameters}) alwaysinline {{\n"
        f'  %r = call float asm "{instruction} {places};", "=f{",f" * arity}"({parameters}) nounwind memory(none)\n'
        "  ret float %r\n}"
    )


def _match() -> str:
    """Eight ballots, one for each bit: faster than the instruction that compares all bits (Merrill, CUB)."""
    steps = "".join(
        f"and.b32 v, $1, {1 << k}; setp.ne.u32 p, v, 0; vote.sync.ballot.b32 v, p, -1; @!p not.b32 v, v; "
        + ("mov.b32 $0, v; " if k == 0 else "and.b32 $0, $0, v; ")
        for k in range(8)
    )
    return (
        "define internal i32 @nbgrad.match(i32 %v) alwaysinline convergent {\n"
        f'  %r = call i32 asm sideeffect "{{ .reg .pred p; .reg .b32 v; {steps}}}", "=&r,r"(i32 %v) convergent\n'
        "  ret i32 %r\n}"
    )


_SHUFFLES = {
    f"nbgrad.shuffle.{kind}.i{width}": _shuffle(kind) for kind in ("down", "xor", "from") for width in (32, 64)
}
TARGET = {
    **{f"nbgrad.{name}": _register(name) for name in _SPECIAL_REGISTERS},
    **_SHUFFLES,
    **{f"nbgrad.approximate.{name}.f32": _instruction(name) for name in _INSTRUCTIONS},
    "nbgrad.barrier": "define internal void @nbgrad.barrier() alwaysinline convergent {\n"
    '  call void asm sideeffect "bar.sync 0;", "~{memory}"() convergent\n  ret void\n}',
    "nbgrad.fence": "define internal void @nbgrad.fence() alwaysinline {\n"
    '  call void asm sideeffect "membar.gl;", "~{memory}"()\n  ret void\n}',
    "nbgrad.ballot": "define internal i32 @nbgrad.ballot(i32 %p) alwaysinline convergent {\n"
    '  %r = call i32 asm sideeffect "{ .reg .pred p; setp.ne.u32 p, $1, 0; vote.sync.ballot.b32 $0, p, -1; }", '
    '"=r,r"(i32 %p) convergent\n  ret i32 %r\n}',
    "nbgrad.match": _match(),
    "nbgrad.shared": "@nbgrad_dynamic = external addrspace(3) global [0 x i8], align 16\n"
    "define internal ptr @nbgrad.shared() alwaysinline {\n"
    "  ret ptr addrspacecast (ptr addrspace(3) @nbgrad_dynamic to ptr)\n}",
}
"""The functions that each target defines, with their definitions for NVPTX."""
CONVERGENT = frozenset([*_SHUFFLES, "nbgrad.barrier", "nbgrad.ballot", "nbgrad.match"])
"""Those that threads do together."""
SIGNATURES = {
    **{f"nbgrad.{name}": "i32 ()" for name in _SPECIAL_REGISTERS},
    **{name: f"i{name[-2:]} (i{name[-2:]}, i32)" for name in _SHUFFLES},
    **{
        f"nbgrad.approximate.{name}.f32": f"float ({', '.join(['float'] * arity)})"
        for name, (_, arity) in _INSTRUCTIONS.items()
    },
    "nbgrad.barrier": "void ()",
    "nbgrad.fence": "void ()",
    "nbgrad.ballot": "i32 (i32)",
    "nbgrad.match": "i32 (i32)",
    "nbgrad.shared": "ptr ()",
}


def called(text: str) -> set[str]:
    """The names of all functions that a text calls."""
    return set(re.findall(r"call [^@\n]*@([\w.$]+)\(", text))


def without_declarations(text: str, names: set[str]) -> str:
    """A text without its declarations of some functions."""
    return "\n".join(
        line
        for line in text.splitlines()
        if not (line.startswith("declare ") and (found := re.search(r"@([\w.$]+)\(", line)) and found[1] in names)
    )


# ----- The library's functions -----


def _narrow(name: str) -> str:
    return (
        f"define internal float @{name}f(float %x) noinline cold {{\n  %wide = fpext float %x to double\n"
        f"  %r = call double @{name}(double %wide)\n  %n = fptrunc double %r to float\n  ret float %n\n}}"
    )


def _near(name: str) -> str:
    """A function of small angles: nbgrad's own kernel, which never needs the library then."""
    symbol, text = scalar_ir(name, [np.dtype(np.float64)], np.dtype(np.float64))
    text = without_declarations(text, {name}).replace(f"@{name}(", "@nbgrad.never(")
    return text.replace(f"@{symbol}(", f"@nbgrad.near.{name}(")


NEVER = "define internal double @nbgrad.never(double %x) alwaysinline {\n  ret double %x\n}"

FMOD = """
define internal double @fmod(double %x, double %y) noinline cold {
entry:
  %xb = bitcast double %x to i64
  %yb = bitcast double %y to i64
  %xm = and i64 %xb, 9223372036854775807
  %ym = and i64 %yb, 9223372036854775807
  %sign = and i64 %xb, -9223372036854775808
  %bad.x = icmp uge i64 %xm, 9218868437227405312
  %bad.y = icmp ugt i64 %ym, 9218868437227405312
  %zero.y = icmp eq i64 %ym, 0
  %b1 = or i1 %bad.x, %bad.y
  %bad = or i1 %b1, %zero.y
  br i1 %bad, label %nan, label %compare
nan:
  %p = fmul double %x, %y
  %q = fdiv double %p, %p
  ret double %q
compare:
  %less = icmp ult i64 %xm, %ym
  br i1 %less, label %same, label %divide
same:
  ret double %x
divide:
  ; Both as whole numbers of 53 bits times a power of two; subnormal numbers have no leading one.
  %xe0 = lshr i64 %xm, 52
  %ye0 = lshr i64 %ym, 52
  %xs = icmp eq i64 %xe0, 0
  %ys = icmp eq i64 %ye0, 0
  %xe = select i1 %xs, i64 1, i64 %xe0
  %ye = select i1 %ys, i64 1, i64 %ye0
  %xf = and i64 %xm, 4503599627370495
  %yf = and i64 %ym, 4503599627370495
  %xf1 = or i64 %xf, 4503599627370496
  %yf1 = or i64 %yf, 4503599627370496
  %xi = select i1 %xs, i64 %xf, i64 %xf1
  %yi = select i1 %ys, i64 %yf, i64 %yf1
  %first = urem i64 %xi, %yi
  %steps = sub i64 %xe, %ye
  br label %loop
loop:
  %r = phi i64 [ %first, %divide ], [ %next, %body ]
  %left = phi i64 [ %steps, %divide ], [ %after, %body ]
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %body, label %done
body:
  %many = icmp sgt i64 %left, 11
  %count = select i1 %many, i64 11, i64 %left
  %shifted = shl i64 %r, %count
  %next = urem i64 %shifted, %yi
  %after = sub i64 %left, %count
  br label %loop
done:
  ; The rest times 2 ** (ye - 1075), put together from its bits.
  %none = icmp eq i64 %r, 0
  %zeros = call i64 @llvm.ctlz.i64(i64 %r, i1 false)
  %lead = sub i64 %zeros, 11
  %exponent = sub i64 %ye, %lead
  %normal = icmp sge i64 %exponent, 1
  %below = sub i64 %ye, 1
  %move = select i1 %normal, i64 %lead, i64 %below
  %moved = shl i64 %r, %move
  %fraction = and i64 %moved, 4503599627370495
  %field = shl i64 %exponent, 52
  %joined = or i64 %field, %fraction
  %size0 = select i1 %normal, i64 %joined, i64 %moved
  %size = select i1 %none, i64 0, i64 %size0
  %signed = or i64 %size, %sign
  %result = bitcast i64 %signed to double
  ret double %result
}
declare i64 @llvm.ctlz.i64(i64, i1)
"""
"""fmod(x, y) from whole numbers: the remainder of eleven more bits of x at a time."""


def _power() -> str:
    symbol, text = scalar_ir("power", [np.dtype(np.float64)] * 2, np.dtype(np.float64))
    text = text.replace(f"@{symbol}(", "@pow(")
    return re.sub(
        r"^define (internal )?([^@]*)@pow\((.*)\) alwaysinline",
        r"define internal \2@pow(\3) noinline",
        text,
        flags=re.M,
    )


def _library(name: str) -> str:
    """The definition of a function of the C library; it may call others."""
    if name in _FIXED:
        return _FIXED[name]()
    if name in ("sinf", "cosf", "tanf"):
        return _narrow(name[:-1])
    if name in huge_angles.DEFINITIONS:
        return (
            f"define internal double @{name}(double %x) noinline cold {{\nentry:\n"
            "  %size = call double @llvm.fabs.f64(double %x)\n  %huge = fcmp ogt double %size, 0x41C0000000000000\n"
            "  br i1 %huge, label %far, label %near\nfar:\n"
            f"  %f = call double @nbgrad.huge.{name}(double %x)\n  ret double %f\nnear:\n"
            f"  %n = call double @nbgrad.near.{name}(double %x)\n  ret double %n\n}}\n"
            "declare double @llvm.fabs.f64(double)"
        )
    if name.startswith("nbgrad.near."):
        return _near(name[len("nbgrad.near.") :])
    if name.startswith("nbgrad.huge."):
        # The angle that is left is small.
        text = huge_angles.DEFINITIONS[name[len("nbgrad.huge.") :]]
        return re.sub(r"@(sin|cos|tan)\(", r"@nbgrad.near.\1(", text)
    raise AssertionError(name)


_ATOMIC = {
    **{f"nbgrad.atomic.add.{kind}": ("add", f"i{kind[1:]}") for kind in ("i32", "i64", "u32", "u64")},
    **{f"nbgrad.atomic.add.f{width}": ("fadd", name) for width, name in ((32, "float"), (64, "double"))},
    **{f"nbgrad.atomic.max.i{width}": ("max", f"i{width}") for width in (32, 64)},
    **{f"nbgrad.atomic.max.u{width}": ("umax", f"i{width}") for width in (32, 64)},
}


def _atomic(name: str) -> str:
    operation, kind = _ATOMIC[name]
    return (
        f"define internal {kind} @{name}(ptr %p, {kind} %v) alwaysinline {{\n"
        f'  %r = atomicrmw {operation} ptr %p, {kind} %v syncscope("device") monotonic\n  ret {kind} %r\n}}'
    )


def _wide(name: str) -> str:
    """A function of float64 by the CPU's kernel."""
    symbol, text = scalar_ir(name, [np.dtype(np.float64)], np.dtype(np.float64))
    return text.replace(f"@{symbol}(", f"@nbgrad.wide.{name}(")


_FIXED = {
    **{name: partial(_atomic, name) for name in _ATOMIC},
    **{f"nbgrad.wide.{name}": partial(_wide, name) for name in ("exp2", "log2")},
    **{name: partial(float_parts.plain, name) for name in float_parts.NAMES},
    wide_registers.NAME: partial(wide_registers.definition, True),
    "fmod": lambda: FMOD,
    "pow": _power,
    "nbgrad.never": lambda: NEVER,
    "nbgrad.huge.angle": lambda: huge_angles.REDUCTION,
    "sqrt": lambda: (
        "define internal double @sqrt(double %x) alwaysinline {\n  %r = call double @llvm.sqrt.f64(double %x)\n"
        "  ret double %r\n}\ndeclare double @llvm.sqrt.f64(double)"
    ),
}
_LIBRARY = frozenset(
    [
        *["sin", "cos", "tan", "sinf", "cosf", "tanf", *_FIXED],
        *[f"nbgrad.{place}.{name}" for place in ("near", "huge") for name in ("sin", "cos", "tan")],
    ]
)
_SAME = {"llvm.sin.f64": "sin", "llvm.cos.f64": "cos", "llvm.pow.f64": "pow"}
"""LLVM's names of library functions, which no GPU has."""


def complete(text: str) -> str:
    """A text in which all functions are defined, except those of `TARGET` and LLVM's own.

    Declarations are dropped where there is a definition, and given once otherwise. One more attribute goes: the vector
    variants that calls of library functions have on the CPU.
    """
    for name, same in _SAME.items():
        text = text.replace(f"@{name}(", f"@{same}(")
    texts = [text]
    known: set[str] = set()
    todo = called(text)
    while todo:
        name = todo.pop()
        if name in _LIBRARY and name not in known:
            known.add(name)
            texts.append(_library(name))
            todo |= called(texts[-1])
    declarations: dict[str, str] = {}
    bodies: list[str] = []
    for part in texts:
        for line in part.splitlines():
            found = re.search(r"@([\w.$]+)\(", line) if line.startswith("declare ") else None
            if found is None:
                bodies.append(line)
            elif found[1] not in TARGET:
                declarations.setdefault(found[1], re.sub(r' "vector-function-abi-variant"="[^"]*"', "", line))
    defined = set(re.findall(r"^define [^@]*@([\w.$]+)\(", "\n".join(bodies), re.M))
    kept = [line for name, line in declarations.items() if name not in defined]
    return "\n".join([*kept, *bodies, ""])


def for_nvptx(text: str) -> str:
    """A complete text for NVPTX: the kernel gets its calling convention, and the functions of `TARGET` are defined."""
    text = re.sub(r"^define void @kernel\(", "define ptx_kernel void @kernel(", text, flags=re.M)
    parts: list[str] = [text]
    parts += list(dict.fromkeys(TARGET[name] for name in sorted(called(text) & TARGET.keys())))
    return "\n".join(parts)


class GpuPass(NamedTuple):
    """One change of the text of a GPU's kernel, in the manner of compiler/texts/text_passes.py."""

    name: str
    why: str
    relies_on: str
    run: Callable[[str], str]


FOR_GPU: tuple[GpuPass, ...] = (
    GpuPass(
        "complete",
        "no GPU has a C library: functions that are called get definitions, and attributes of the CPU's vectors go",
        "declarations and calls with @name(",
        complete,
    ),
    GpuPass(
        "calling convention",
        "PTX calls kernels otherwise than functions",
        "`define void @kernel(` at the beginning of a line",
        for_nvptx,
    ),
)
"""In this order; launch_parameters.py changes the parameters of kernels that have too many, in between."""
