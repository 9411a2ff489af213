"""Scalar kernels as LLVM IR text: each is compiled to IR once, and every fused loop includes the text.

In: a primitive's name and its operand dtypes. Out: the name of an IR function on plain scalars and the IR that defines
it: from the file that comes with the package (shipped.py), else from the disk cache, else from Numba (lowering.py).
Called by emit.py, which also merges the texts here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..process.locks import building
from . import cache, shipped
from .conversions import LLVM_TYPES, convert
from .lowering import kernel_module, lower, scalar_text
from .texts import huge_angles

__all__ = ["LLVM_TYPES", "convert", "kernel_module", "lower", "merge", "scalar_ir"]

MASKED = "_ZGV_LLVM_M"
"""Marks the declaration of a library function that a kernel calls for rare elements, behind a branch."""
RARE = ".rare"
"""Part of the names of the vector variants of such a function."""
WIDTHS = (2, 4, 8, 16)

_known: dict[tuple[str | int, ...], tuple[str, str]] = {}


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
    short = (name, *[dtype.num for dtype in dtypes], result.num)
    if short not in _known:
        with building.held():
            key = (name, *[dtype.name for dtype in dtypes], result.name)
            symbol = shipped.scalar_name(name, dtypes, result)
            text = shipped.find(symbol)
            if text is None:
                text = cache.load_text("scalar", cache.digest("scalar", *key))
            if text is None:
                text = scalar_text(name, dtypes, result, symbol)
                cache.store_text("scalar", cache.digest("scalar", *key), text)
            _known[short] = (symbol, text)
    return _known[short]


def merge(texts: Sequence[str], widths: Sequence[int] = WIDTHS) -> str:
    """Several IR texts as one: equal declarations once, definitions after them, and variants of rare calls for vectors
    of the given widths."""
    declarations: dict[str, str] = {}
    bodies = [_without_declarations(text, declarations) for text in texts]
    rare: set[str] = set()
    for name, line in declarations.items():
        if MASKED in line:
            # LLVM uses variants only of functions that it does not know, so the kernels call one under another name.
            bodies = [body.replace(f"@{name}(", f"@{name}{RARE}(") for body in bodies]
            declarations[name] = re.sub(r'"vector-function-abi-variant"="[^"]*"', "", line)
            bodies.append(_rare_variants(name, line, widths))
            rare.add(name)
    if rare:
        bodies += [_without_declarations(text, declarations) for text in huge_angles.texts_for(rare)]
        tests = [f"declare i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1>)" for width in widths]
        bodies += [*tests, '!1 = !{!"branch_weights", i32 1, i32 1000000}']
    return "\n".join([*declarations.values(), *bodies])


def _without_declarations(text: str, declarations: dict[str, str]) -> str:
    """An IR text without its declarations, which are added to those known."""
    body: list[str] = []
    for line in text.splitlines():
        if line.startswith("declare "):
            name = re.search(r"@([\w.$]+)\(", line)
            assert name is not None, line
            declarations.setdefault(name[1], line)
        else:
            body.append(line)
    return "\n".join(body)


# ----- Rare calls -----


def _rare_variants(name: str, declaration: str, widths: Sequence[int]) -> str:
    """Masked vector variants of a library function, for loops that call it for rare elements.

    Each tests whether any lane needs the call, in line, and only then calls a function that does those lanes one by
    one. So a vectorised loop has one branch that is never taken instead of one per lane. The variants are visible
    from outside, or they would be gone before LLVM vectorises; cpu.py makes them internal after that.
    """
    kind = re.search(r"declare (?:noundef )?(float|double) ", declaration)
    assert kind is not None, declaration
    t = kind[1]
    arity = declaration.split("(", 1)[1].split(")", 1)[0].count(t)
    callee = f"nbgrad.huge.{name}" if name in huge_angles.DEFINITIONS else name
    mapping: list[str] = []
    lines: list[str] = []
    for width in widths:
        vector, mask = f"<{width} x {t}>", f"<{width} x i1>"
        symbol = f"{name}{RARE}{width}"
        mapping.append(f"_ZGV_LLVM_M{width}{'v' * arity}_{name}{RARE}({symbol})")
        operands = ", ".join(f"{vector} %x{k}" for k in range(arity))
        lines += [
            f"define {vector} @{symbol}({operands}, {mask} %m) alwaysinline nounwind willreturn {{",
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
            f"  %r = call {t} @{callee}({scalars})",
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
    variants = f' "vector-function-abi-variant"="{",".join(mapping)}"' if mapping else ""
    attributes = f"noinline cold nounwind willreturn memory(none){variants}"
    lines += [
        f"define internal {t} @{name}{RARE}({parameters}) {attributes} {{",
        f"  %r = call {t} @{callee}({parameters})",
        f"  ret {t} %r",
        "}",
    ]
    return "\n".join(lines)
