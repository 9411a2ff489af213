"""Python to LLVM IR text: Numba compiles a function, and what is left of Numba's conventions is removed.

In: a plain Python function and the dtypes of its arguments. Out: IR of a function on plain scalars, which does not
depend on the machine. Called by scalars.py and, through it, by all that compiles Python, for what the package's own
file of IR (shipped.py) does not hold. Numba is imported here and in words.py, which tells it the language of native
code.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from ..process.interrupts import interrupt_later
from . import cache, shipped
from .conversions import LLVM_TYPES, convert

CONTRACTED = frozenset(["add", "subtract", "multiply"])
"""Kernels whose instructions may fuse into multiply-adds."""


def kernel_module(name: str = "") -> Any:
    """A module of nbgrad.kernels, which lies in a folder of its own beside nbgrad's."""
    return import_module(f"nbgrad.kernels.{name}" if name else "nbgrad.kernels")


def scalar_text(name: str, dtypes: Sequence[np.dtype[Any]], result: np.dtype[Any], symbol: str) -> str:
    """The IR of a primitive on scalars, compiled now."""
    data = dtypes[1] if name == "select" else dtypes[0]
    kernel = kernel_module().scalar_kernel(name, data.name)
    with interrupt_later():
        text = _lower(kernel, [dtype.name for dtype in dtypes], result.name, symbol)
    return contracted(text) if name in CONTRACTED else text


def lower(
    function: Callable[..., Any],
    arguments: Sequence[str],
    result: str,
    symbol: str,
    prepare: Callable[[], None] | None = None,
) -> str:
    """IR text of a Python function, with plain scalar arguments and result: shipped with the package, or from Numba.

    Numba's own convention (status code, result by pointer) is wrapped and inlined away. An argument "*float64" is a
    pointer, which the function indexes. `prepare` is called before Numba compiles.
    """
    text = shipped.find(shipped.function_name(function, arguments, result))
    if text is not None:
        return text
    with interrupt_later():
        if prepare is not None:
            prepare()
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
    return cleaned(str(module), symbol)


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


def _optimise(module: llvm.ModuleRef) -> None:
    """Inline and simplify; what depends on the CPU, such as vectors, comes later, with the loop around."""
    machine = llvm.Target.from_default_triple().create_target_machine()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def contracted(text: str) -> str:
    """Sums, differences and products that may fuse into multiply-adds."""
    return re.sub(r"= (fadd|fsub|fmul) ", r"= \1 contract ", text)


def cleaned(text: str, symbol: str) -> str:
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
