"""Conversions of scalars from one dtype to another, as LLVM IR.

In: dtypes. Out: their LLVM types, and lines of IR that convert a value. Called by lowering.py and scalars.py.
"""

from __future__ import annotations

import numpy as np

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
    if source == "bool" and target.startswith("float"):
        # Without optimisations, LLVM converts an i1 with the bits of its register above it.
        return [f"  {name}.byte = zext i1 {value} to i8", f"  {name} = uitofp i8 {name}.byte to {b}"]
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
    """The cast of C compilers for x86-64: through the next wider signed integer; out of range gives its lowest."""
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
