"""Exponents and fractions of floats, and their products with powers of two: one instruction each with AVX-512.

In: a module's IR text, which calls `nbgrad.exponent.f64` and so on (the stand-ins are in kernels/bits.py), and the
features of the CPU. Out: the text with definitions of these functions. Called by text_passes.py for every module, and
by GPUs' code for the plain definitions, a few operations on bits. LLVM makes AVX-512's instructions (vgetexp, vgetmant
and vscalef) of nothing but their own names. So the functions then have variants for vectors, which LLVM's vectoriser
finds, and stay calls until it is done; cpu.py inlines them with `inlined_late`.
"""

from __future__ import annotations

import re

import llvmlite.binding as llvm

from .wide_registers import has_wide_registers

CALLED = re.compile(r"@(nbgrad\.(?:exponent|fraction|scaled)\.f(?:32|64))\(")
WIDTHS = (2, 4, 8, 16)
LATE = "nbgrad.late."
"""How the names of the variants begin."""

# The bits of a magnitude that is not subnormal: lifted by a power of two where it was. ROUNDER is 1.5 * 2**52, whose
# last bits are a whole number; in float32 it is 1.5 * 2**23.
_LIFTED = """
  %given = bitcast FLOAT %x to INT
  %unsigned = and INT %given, MAGNITUDE
  %size = bitcast INT %unsigned to FLOAT
  %tiny = fcmp olt FLOAT %size, SMALLEST
  %factor = select i1 %tiny, FLOAT LIFT, FLOAT 1.0
  %lifted = fmul FLOAT %size, %factor
  %bits = bitcast FLOAT %lifted to INT
"""
PLAIN = {
    "exponent": f"""
define internal FLOAT @nbgrad.exponent.KIND(FLOAT %x) alwaysinline {{{_LIFTED}
  %field = lshr INT %bits, PLACES
  %large = add INT %field, ROUNDER_BITS
  %float = bitcast INT %large to FLOAT
  %bias = select i1 %tiny, FLOAT LIFTED_BIAS, FLOAT BIAS
  %whole = fsub FLOAT %float, %bias
  %finite = fcmp olt FLOAT %size, 0x7FF0000000000000
  %known = select i1 %finite, FLOAT %whole, FLOAT %size
  %zero = fcmp oeq FLOAT %size, 0.0
  %result = select i1 %zero, FLOAT 0xFFF0000000000000, FLOAT %known
  ret FLOAT %result
}}
""",
    "fraction": f"""
define internal FLOAT @nbgrad.fraction.KIND(FLOAT %x) alwaysinline {{{_LIFTED}
  %places = and INT %bits, FRACTION
  %scaled = or INT %places, ONE
  %float = bitcast INT %scaled to FLOAT
  %negative = fcmp olt FLOAT %x, 0.0
  %result = select i1 %negative, FLOAT 0x7FF8000000000000, FLOAT %float
  ret FLOAT %result
}}
""",
    # Two steps, since one factor may be too small or too large for a float.
    "scaled": """
define internal FLOAT @nbgrad.scaled.KIND(FLOAT %x, FLOAT %n) alwaysinline {
  %halved = fmul FLOAT %n, 0.5
  %shifted = fadd FLOAT %halved, BIAS
  %half = fsub FLOAT %shifted, BIAS
  %rest = fsub FLOAT %n, %half
  %rest.shifted = fadd FLOAT %rest, BIAS
  %first.bits = bitcast FLOAT %shifted to INT
  %first.power = shl INT %first.bits, PLACES
  %first = bitcast INT %first.power to FLOAT
  %second.bits = bitcast FLOAT %rest.shifted to INT
  %second.power = shl INT %second.bits, PLACES
  %second = bitcast INT %second.power to FLOAT
  %product = fmul FLOAT %x, %first
  %result = fmul FLOAT %product, %second
  ret FLOAT %result
}
""",
}
"""Definitions for every machine, with names in capitals for what depends on the format."""
_WORDS = {
    "f64": {
        "ROUNDER_BITS": str(0x4338000000000000),
        "LIFTED_BIAS": "0x4338000000000435",
        "BIAS": "0x43380000000003FF",
        "SMALLEST": "0x0010000000000000",
        "MAGNITUDE": str(0x7FFFFFFFFFFFFFFF),
        "FRACTION": str(0xFFFFFFFFFFFFF),
        "PLACES": "52",
        "FLOAT": "double",
        "LIFT": "0x4350000000000000",
        "KIND": "f64",
        "ONE": str(0x3FF0000000000000),
        "INT": "i64",
    },
    "f32": {
        "ROUNDER_BITS": str(0x4B400000),
        "LIFTED_BIAS": "0x4168001300000000",
        "BIAS": "0x4168000FE0000000",
        "SMALLEST": "0x3810000000000000",
        "MAGNITUDE": str(0x7FFFFFFF),
        "FRACTION": str(0x7FFFFF),
        "PLACES": "23",
        "FLOAT": "float",
        "LIFT": "0x4180000000000000",
        "KIND": "f32",
        "ONE": str(0x3F800000),
        "INT": "i32",
    },
}
NAMES = [f"nbgrad.{what}.{kind}" for what in PLAIN for kind in _WORDS]
_WORD = re.compile("|".join(_WORDS["f64"]))

_INSTRUCTIONS = {"exponent": "getexp", "fraction": "getmant", "scaled": "scalef"}
_LETTERS = {"f64": "pd", "f32": "ps"}


def with_definitions(text: str, features: str) -> str:
    """The text of a module with the functions that it calls, for a CPU with these features."""
    defined = set(re.findall(rf"^define [^\n@]*{CALLED.pattern}", text, flags=re.M))
    used = sorted(set(CALLED.findall(text)) - defined)
    if not used:
        return text
    text = re.sub(rf"^declare [^\n]*{CALLED.pattern}[^\n]*\n", "", text, flags=re.M)
    if not has_wide_registers(features):
        return text + "".join(plain(name) for name in used)
    lines = [line for name in used for line in _variants(name)]
    declared = dict.fromkeys(line for line in lines if line.startswith("declare "))
    return "\n".join([text, *declared, *[line for line in lines if not line.startswith("declare ")], ""])


def plain(name: str) -> str:
    """The definition of a function for any machine."""
    _, what, kind = name.split(".")
    return _WORD.sub(lambda word: _WORDS[kind][word[0]], PLAIN[what])


def inlined_late(module: llvm.ModuleRef) -> bool:
    """Have LLVM inline what `with_definitions` kept from it, and whether there is any."""
    found = [f for f in module.functions if f.name.startswith(LATE) or CALLED.fullmatch(f"@{f.name}(")]
    found = [function for function in found if not function.is_declaration]
    for function in found:
        function.linkage = "internal"
        function.add_function_attribute("alwaysinline")
    return bool(found)


def _variants(name: str) -> list[str]:
    """The definition of a function by AVX-512's instruction for one element, and for each width of vectors.

    They are weak, which keeps LLVM from inlining, and from dropping those that it may want later.
    """
    _, what, kind = name.split(".")
    element, bits = ("double", 64) if kind == "f64" else ("float", 32)
    operands = 2 if what == "scaled" else 1
    lines: list[str] = []
    mapping: list[str] = []
    for width in WIDTHS:
        vector = f"<{width} x {element}>"
        symbol = f"{LATE}{what}.{kind}.{width}"
        mapping.append(f"_ZGV_LLVM_N{width}{'v' * operands}_{name}({symbol})")
        parameters = ", ".join(f"{vector} %x{k}" for k in range(operands))
        lines += [f"define weak {vector} @{symbol}({parameters}) nounwind willreturn memory(none) {{"]
        lines += [*_register(what, kind, width, [f"%x{k}" for k in range(operands)]), f"  ret {vector} %r", "}"]
    parameters = ", ".join(f"{element} %x{k}" for k in range(operands))
    attribute = f'"vector-function-abi-variant"="{",".join(mapping)}"'
    lines.append(f"define weak {element} @{name}({parameters}) nounwind willreturn memory(none) {attribute} {{")
    least = 128 // bits
    lines += [
        f"  %x{k}.v = insertelement <{least} x {element}> zeroinitializer, {element} %x{k}, i32 0"
        for k in range(operands)
    ]
    lines += _register(what, kind, least, [f"%x{k}.v" for k in range(operands)])
    return [*lines, f"  %one = extractelement <{least} x {element}> %r, i32 0", f"  ret {element} %one", "}"]


def _register(what: str, kind: str, width: int, operands: list[str]) -> list[str]:
    """Lines that give %r from operands of any width: of one register, a part of one, or two."""
    element, bits = ("double", 64) if kind == "f64" else ("float", 32)
    total = min(max(width * bits, 128), 512)
    fit = total // bits
    if fit == width:
        return _instruction(what, kind, total, operands, "%r")
    lines: list[str] = []
    parts: list[str] = []
    for start in range(0, width, fit):
        chosen = [start + k if start + k < width else 0 for k in range(fit)]
        given = [f"{name}.{start}" for name in operands]
        lines += [
            _shuffled(f"<{width} x {element}>", [name, "poison"], chosen, new)
            for name, new in zip(operands, given, strict=True)
        ]
        parts.append(f"%r.{start}")
        lines += _instruction(what, kind, total, given, parts[-1])
    return [*lines, _shuffled(f"<{fit} x {element}>", [*parts, "poison"][:2], list(range(width)), "%r")]


def _shuffled(vector: str, operands: list[str], chosen: list[int], result: str) -> str:
    """A line that gives the chosen elements of two vectors."""
    one, two = operands
    places = ", ".join(f"i32 {k}" for k in chosen)
    return f"  {result} = shufflevector {vector} {one}, {vector} {two}, <{len(chosen)} x i32> <{places}>"


def _instruction(what: str, kind: str, total: int, operands: list[str], result: str) -> list[str]:
    """A call of an instruction on registers of `total` bits, and the declaration of it."""
    element, bits = ("double", 64) if kind == "f64" else ("float", 32)
    vector, mask = f"<{total // bits} x {element}>", f"i{max(total // bits, 8)}"
    # 12 asks getmant for fractions from 1 to 2, 1 for zeros and NaN for negative numbers.
    arguments = [*[f"{vector} {name}" for name in operands], *(["i32 12"] if what == "fraction" else [])]
    arguments += [f"{vector} zeroinitializer", f"{mask} -1", *(["i32 4"] if total == 512 else [])]
    types = ", ".join(argument.split(" %")[0].replace(" zeroinitializer", "") for argument in arguments)
    types = re.sub(r"(i\d+) -?\d+", r"\1", types)
    symbol = f"llvm.x86.avx512.mask.{_INSTRUCTIONS[what]}.{_LETTERS[kind]}.{total}"
    return [f"declare {vector} @{symbol}({types})", f"  {result} = call {vector} @{symbol}({', '.join(arguments)})"]
