"""Scalar kernels as LLVM IR text: Numba compiles each once, and every fused loop includes the text.

In: a primitive's name and its operand dtypes. Out: the name of an IR function on plain scalars and the IR that defines
it, taken from the disk cache if it was ever compiled on this machine. Called by emit.py. Numba is imported here, when
the disk cache does not know a kernel, and nowhere else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from . import cache
from .interrupts import interrupt_later
from .locks import ForkSafeLock

LLVM_TYPES = {
    "bool": "i1",
    "int8": "i8",
    "uint8": "i8",
    "int16": "i16",
    "uint16": "i16",
    "int32": "i32",
    "uint32": "i32",
    "int64": "i64",
    "uint64": "i64",
    "float16": "half",
    "float32": "float",
    "float64": "double",
}
CONTRACTED = frozenset(["add", "subtract", "multiply"])
"""Kernels whose instructions may fuse into multiply-adds."""

_known: dict[tuple[str, ...], tuple[str, str]] = {}
_lock = ForkSafeLock()


def scalar_ir(name: str, dtypes: Sequence[np.dtype[Any]], result: np.dtype[Any]) -> tuple[str, str]:
    """The IR function that computes a primitive on scalars.

    Parameters
    ----------
    name : str
        The primitive.
    dtypes, result : dtypes
        Of the operands and of the result; float16 does not occur (it is computed in float32).

    Returns
    -------
    symbol, text : str
        `define internal T @symbol(...)`, with the declarations that it needs.
    """
    key = (name, *[dtype.name for dtype in dtypes], result.name)
    if key not in _known:
        with _lock.held():
            symbol = "nbgrad." + ".".join(key)
            text = cache.load_text("scalar", cache.digest("scalar", *key))
            if text is None:
                text = _compile(name, dtypes, result, symbol)
                cache.store_text("scalar", cache.digest("scalar", *key), text)
            _known[key] = (symbol, text)
    return _known[key]


def _compile(name: str, dtypes: Sequence[np.dtype[Any]], result: np.dtype[Any], symbol: str) -> str:
    data = dtypes[1] if name == "select" else dtypes[0]
    text = lower(kernel_module().scalar_kernel(name, data.name), [dtype.name for dtype in dtypes], result.name, symbol)
    if name in CONTRACTED:
        text = re.sub(r"= (fadd|fsub|fmul) ", r"= \1 contract ", text)
    return text


def kernel_module(name: str = "") -> Any:
    """A module of nbgrad.kernels, which lies in a folder of its own beside nbgrad's."""
    return import_module(f"nbgrad.kernels.{name}" if name else "nbgrad.kernels")


def lower(function: Callable[..., Any], arguments: Sequence[str], result: str, symbol: str) -> str:
    """Compile a Python function with Numba to IR text with plain scalar arguments and result.

    Numba's own convention (status code, result by pointer) is wrapped and inlined away. An argument "*float64" is a
    pointer, which the function indexes.
    """
    with interrupt_later():
        return _lower(function, arguments, result, symbol)


def _lower(function: Callable[..., Any], arguments: Sequence[str], result: str, symbol: str) -> str:
    cache.counters["numba_compiles"] += 1
    import numba
    from numba import types

    options = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher = numba.njit(**options)(kernel_module("intrinsics").jit_kernel(function).py_func)
    numba_types = tuple([_numba_type(types, a) for a in arguments])
    dispatcher.compile(numba_types)
    found = dispatcher.overloads[numba_types]
    numba_name = found.fndesc.llvm_func_name
    returned = str(types.unliteral(found.signature.return_type))
    returned = "bool" if returned == "boolean" else returned
    module = llvm.parse_assembly(dispatcher.inspect_llvm(numba_types))
    numba_arguments = [str(a.type) for a in module.get_function(numba_name).arguments][2:]
    text = str(module) + _wrapper(symbol, numba_name, numba_arguments, arguments, returned, result)
    module = llvm.parse_assembly(text)
    for defined in module.functions:
        if not defined.is_declaration and defined.name != symbol:
            defined.linkage = "internal"
    _optimise(module)
    return _clean(str(module), symbol)


def _numba_type(types: Any, name: str) -> Any:
    if name.startswith("*"):
        # Booleans are bytes in memory.
        return types.CPointer(getattr(types, "uint8" if name == "*bool" else name[1:]))
    return types.boolean if name == "bool" else getattr(types, name)


def llvm_type(name: str) -> str:
    """The LLVM type of an argument of `lower`."""
    return "ptr" if name.startswith("*") else LLVM_TYPES[name]


def _wrapper(
    symbol: str, callee: str, numba_arguments: Sequence[str], arguments: Sequence[str], returned: str, result: str
) -> str:
    """IR of a function on plain scalars that calls Numba's function, converting bool and the result's type."""
    parameters = ", ".join(f"{llvm_type(a)} %a{i}" for i, a in enumerate(arguments))
    lines = [f"define {LLVM_TYPES[result]} @{symbol}({parameters}) {{"]
    passed: list[str] = []
    for i, (given, wanted) in enumerate(zip(arguments, numba_arguments, strict=True)):
        if llvm_type(given) == wanted:
            passed.append(f"{wanted} %a{i}")
        else:
            lines.append(f"  %w{i} = zext {LLVM_TYPES[given]} %a{i} to {wanted}")
            passed.append(f"{wanted} %w{i}")
    stored = "i8" if returned == "bool" else LLVM_TYPES[returned]
    lines.append(f"  %slot = alloca {stored}")
    lines.append("  %exception = alloca ptr")
    call = ", ".join(["ptr %slot", "ptr %exception", *passed])
    lines.append(f"  %status = call i32 @{callee}({call})")
    lines.append(f"  %value = load {stored}, ptr %slot")
    if returned == "bool":
        lines.append("  %truth = icmp ne i8 %value, 0")
        value = "%truth"
    else:
        value = "%value"
    if returned != result:
        lines.extend(convert(value, returned, result, "%result"))
        value = "%result"
    lines.append(f"  ret {LLVM_TYPES[result]} {value}")
    return "\n".join([*lines, "}", ""])


def convert(value: str, source: str, target: str, name: str) -> list[str]:
    """IR lines that convert a scalar from one dtype to another by C's rules (saturating from float to int)."""
    a, b = LLVM_TYPES[source], LLVM_TYPES[target]
    signed = not source.startswith(("u", "b"))
    if target == "bool":
        if source == "bool":
            return [f"  {name} = or i1 {value}, false"]
        if source.startswith("float"):
            return [f"  {name} = fcmp une {a} {value}, 0.0"]
        return [f"  {name} = icmp ne {a} {value}, 0"]
    if a == b:
        return [f"  {name} = freeze {a} {value}"]
    if source == "float64" and target == "float16":
        return _double_to_half(value, name)
    if source.startswith("float") and target.startswith("float"):
        return [f"  {name} = {'fpext' if _bits(source) < _bits(target) else 'fptrunc'} {a} {value} to {b}"]
    if source.startswith("float"):
        return _float_to_int(value, source, target, name)
    if target.startswith("float"):
        return [f"  {name} = {'sitofp' if signed else 'uitofp'} {a} {value} to {b}"]
    operation = "trunc" if _bits(source) > _bits(target) else "sext" if signed else "zext"
    return [f"  {name} = {operation} {a} {value} to {b}"]


def _double_to_half(value: str, name: str) -> list[str]:
    """Through float32 rounded to odd, so that the second rounding is the only one (CPUs have no direct instruction)."""
    return [
        f"  {name}.near = fptrunc double {value} to float",
        f"  {name}.back = fpext float {name}.near to double",
        f"  {name}.inexact = fcmp one double {name}.back, {value}",
        f"  {name}.bits = bitcast float {name}.near to i32",
        f"  {name}.more = call double @llvm.fabs.f64(double {name}.back)",
        f"  {name}.size = call double @llvm.fabs.f64(double {value})",
        f"  {name}.above = fcmp ogt double {name}.more, {name}.size",
        f"  {name}.one = zext i1 {name}.above to i32",
        f"  {name}.down = sub i32 {name}.bits, {name}.one",
        f"  {name}.odd = or i32 {name}.down, 1",
        f"  {name}.picked = select i1 {name}.inexact, i32 {name}.odd, i32 {name}.bits",
        f"  {name}.single = bitcast i32 {name}.picked to float",
        f"  {name} = fptrunc float {name}.single to half",
    ]


def _float_to_int(value: str, source: str, target: str, name: str) -> list[str]:
    """As C compilers for x86-64 do: through the next wider signed integer; out of range gives its lowest value."""
    a, b = LLVM_TYPES[source], LLVM_TYPES[target]
    if target == "uint64":
        half = "0x43E0000000000000"
        return [
            f"  {name}.d = {'fpext ' + a + ' ' + value + ' to double' if a != 'double' else 'freeze double ' + value}",
            f"  {name}.big = fcmp oge double {name}.d, {half}",
            f"  {name}.low = fsub double {name}.d, {half}",
            f"  {name}.pick = select i1 {name}.big, double {name}.low, double {name}.d",
            f"  {name}.signed = fptosi double {name}.pick to i64",
            f"  {name}.frozen = freeze i64 {name}.signed",
            f"  {name}.top = select i1 {name}.big, i64 -9223372036854775808, i64 0",
            f"  {name} = xor i64 {name}.frozen, {name}.top",
        ]
    wide = "i64" if _bits(target) == 64 or target == "uint32" else "i32"
    lowest = "-9223372036854775808" if wide == "i64" else "-2147483648"
    limit = "0x43E0000000000000" if wide == "i64" else "0x41E0000000000000"
    lines = [
        f"  {name}.d = {'fpext ' + a + ' ' + value + ' to double' if a != 'double' else 'freeze double ' + value}",
        f"  {name}.abs = call double @llvm.fabs.f64(double {name}.d)",
        f"  {name}.in = fcmp olt double {name}.abs, {limit}",
        f"  {name}.safe = select i1 {name}.in, double {name}.d, double 0.0",
        f"  {name}.wide = fptosi double {name}.safe to {wide}",
        f"  {name}.value = select i1 {name}.in, {wide} {name}.wide, {wide} {lowest}",
    ]
    if wide == b:
        return [*lines, f"  {name} = freeze {b} {name}.value"]
    return [*lines, f"  {name} = trunc {wide} {name}.value to {b}"]


def _bits(dtype: str) -> int:
    return 8 if dtype == "bool" else np.dtype(dtype).itemsize * 8


def _optimise(module: llvm.ModuleRef) -> None:
    machine = llvm.Target.from_default_triple().create_target_machine()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)


def _clean(text: str, symbol: str) -> str:
    """Keep definitions, declarations and constants; drop attribute groups and metadata, which clash between modules.

    Declarations of library functions keep their attributes, in place: LLVM vectorises a loop around a rare call only if
    it knows that the call has no effects.
    """
    groups = dict(re.findall(r"^attributes (#\d+) = \{ (.*) \}$", text, re.M))
    unique = hashlib.sha256(symbol.encode()).hexdigest()[:8]
    globals_ = re.findall(r"^@([\w.$\"]+) = (?:private|internal)", text, re.M)
    helpers = [n for n in re.findall(r"^define [^@]*@([\w.$]+)\(", text, re.M) if n != symbol]
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(("; ", "source_filename", "target ", "attributes ", "!")) or "NumbaEnv" in line:
            continue
        group = re.search(r" (#\d+)$", line) if line.startswith("declare ") and "@llvm." not in line else None
        line = re.sub(r" #\d+", "", line)
        if group is not None:
            line = f"{line} {groups[group[1]]}"
        line = re.sub(r", ![a-z.]+ ![0-9]+", "", line)
        if line.startswith("define "):
            line = re.sub(r"^define (internal |private |hidden )?", "define internal ", line)
            line = re.sub(r"\)[^)]*\{$", ") alwaysinline {", line)
        lines.append(line)
    text = "\n".join(lines).strip() + "\n"
    for name in [*globals_, *helpers]:
        text = text.replace(f"@{name}", f"@{name}.{unique}")
    return text


def merge(texts: Sequence[str]) -> str:
    """Several IR texts as one: equal declarations once, definitions after them, vector variants of rare calls added."""
    declarations: dict[str, str] = {}
    bodies: list[str] = []
    for text in texts:
        body: list[str] = []
        for line in text.splitlines():
            if line.startswith("declare "):
                name = re.search(r"@([\w.$]+)\(", line)
                assert name is not None, line
                declarations.setdefault(name[1], line)
            else:
                body.append(line)
        bodies.append("\n".join(body))
    kept: list[str] = []
    for name, line in declarations.items():
        if RARE in line:
            # LLVM uses variants only of functions that it does not know, so the kernels call one under another name.
            bodies = [body.replace(f"@{name}(", f"@{name}.rare(") for body in bodies]
            symbols, definitions = _rare_variants(name, line)
            declarations[name] = re.sub(r'"vector-function-abi-variant"="[^"]*"', "", line)
            kept += symbols
            bodies.append(definitions)
    if kept:
        # LLVM may only use functions that are still there when it vectorises.
        used = ", ".join(f"ptr @{symbol}" for symbol in kept)
        widths = [f"declare i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1>)" for width in WIDTHS]
        bodies += [
            *widths,
            f'@llvm.compiler.used = appending global [{len(kept)} x ptr] [{used}], section "llvm.metadata"',
            '!1 = !{!"branch_weights", i32 1, i32 1000000}',
        ]
    return "\n".join([*declarations.values(), *bodies])


# ----- Rare calls -----

RARE = "_ZGV_LLVM_M"
"""Marks the declaration of a library function that a kernel calls for rare elements, behind a branch."""
WIDTHS = (2, 4, 8, 16)


def _rare_variants(name: str, declaration: str) -> tuple[list[str], str]:
    """Masked vector variants of a library function, for loops that call it for rare elements.

    Each tests whether any lane needs the call, in line, and only then calls a function that does those lanes one by
    one. So a vectorised loop has one branch that is never taken instead of one per lane.
    """
    kind = re.search(r"declare (?:noundef )?(float|double) ", declaration)
    assert kind is not None, declaration
    t = kind[1]
    arity = declaration.split("(", 1)[1].split(")", 1)[0].count(t)
    symbols: list[str] = []
    mapping: list[str] = []
    lines: list[str] = []
    for width in WIDTHS:
        vector, mask = f"<{width} x {t}>", f"<{width} x i1>"
        symbol = f"{name}.rare{width}"
        symbols.append(symbol)
        mapping.append(f"_ZGV_LLVM_M{width}{'v' * arity}_{name}.rare({symbol})")
        operands = ", ".join(f"{vector} %x{k}" for k in range(arity))
        lines += [
            f"define internal {vector} @{symbol}({operands}, {mask} %m) alwaysinline nounwind willreturn {{",
            "entry:",
            f"  %any = call i1 @llvm.vector.reduce.or.v{width}i1({mask} %m)",
            "  br i1 %any, label %slow, label %done, !prof !1",
            "slow:",
            f"  %found = call {vector} @{symbol}.lanes({operands}, {mask} %m)",
            "  br label %done",
            "done:",
            f"  %result = phi {vector} [ %found, %slow ], [ %x0, %entry ]",
            f"  ret {vector} %result",
            "}",
            f"define internal {vector} @{symbol}.lanes({operands}, {mask} %m) noinline optnone cold nounwind {{",
            "entry:",
            "  br label %lane",
            "lane:",
            "  %i = phi i32 [ 0, %entry ], [ %next, %on ]",
            f"  %v = phi {vector} [ %x0, %entry ], [ %after, %on ]",
            f"  %wanted = extractelement {mask} %m, i32 %i",
            "  br i1 %wanted, label %call, label %on",
            "call:",
        ]
        for k in range(arity):
            lines.append(f"  %e{k} = extractelement {vector} %x{k}, i32 %i")
        scalars = ", ".join(f"{t} %e{k}" for k in range(arity))
        lines += [
            f"  %r = call {t} @{name}({scalars})",
            f"  %with = insertelement {vector} %v, {t} %r, i32 %i",
            "  br label %on",
            "on:",
            f"  %after = phi {vector} [ %v, %lane ], [ %with, %call ]",
            "  %next = add i32 %i, 1",
            f"  %more = icmp ult i32 %next, {width}",
            "  br i1 %more, label %lane, label %end",
            "end:",
            f"  ret {vector} %after",
            "}",
        ]
    parameters = ", ".join(f"{t} %x{k}" for k in range(arity))
    attributes = f'noinline cold nounwind willreturn memory(none) "vector-function-abi-variant"="{",".join(mapping)}"'
    lines += [
        f"define internal {t} @{name}.rare({parameters}) {attributes} {{",
        f"  %r = call {t} @{name}({parameters})",
        f"  ret {t} %r",
        "}",
    ]
    return symbols, "\n".join(lines)
