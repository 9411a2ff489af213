"""Writes the IR and the object code that come with the package: `python -m nbgrad.precompile`.

In: the kernels' sources. Out: shipped.ll, shipped_device.ll, shipped_objects.txt and shipped_scalars.txt in
nbgrad/compiler. To be run after every change of kernels/, of runtime/native.py or of lowering.py, conversions.py and
called_scalars.py in compiler/; a test fails until it is. What is still current is kept; all of it takes some minutes.
It needs the oldest Numba that nbgrad runs with (`OLDEST_LLVM`). Without current files everything works, but the first
gradient needs Numba.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial

import llvmlite.binding as llvm
import numpy as np

from .compiler import called_scalars, cpu, shipped, shipped_objects, special
from .compiler.lowering import kernel_module, lower, scalar_text
from .device.kernels.python_kernels import arguments_of
from .device.recipes import PYTHON_KERNELS
from .graph.ir import make, placeholder
from .graph.primitives import PRIMITIVES
from .process import object_layout
from .runtime import blocks, native, native_steps, turns, words
from .runtime import native_tensors as tensors

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
"""The dtypes of scalar kernels; float16 is computed in float32."""
OLDEST_LLVM = 20
"""That of llvmlite 0.47, which comes with Numba 0.65, the oldest that nbgrad runs with."""
NEUTRAL = {
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "NUMBA_LOOP_VECTORIZE": "0",
    "NUMBA_SLP_VECTORIZE": "0",
    "NUMBA_DISABLE_JIT": "0",
    "NUMBA_DEBUGINFO": "0",
    "NUMBA_OPT": "3",
}
"""Settings under which Numba compiles for no machine in particular."""


NATIVE = native.FUNCTIONS | turns.FUNCTIONS | blocks.FUNCTIONS | tensors.FUNCTIONS | native_steps.FUNCTIONS
"""The native functions of the runtime, and the number of words that each takes."""


def objects() -> dict[str, bytes]:
    """The object code of each native function, by the name that it is found by."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(shipped_objects.TRIPLE)
    machine = target.create_target_machine(cpu=shipped_objects.CPU, opt=3, reloc="pic", codemodel="small")
    layout = object_layout.measured()
    found: dict[str, bytes] = {}
    for function, count in NATIVE.items():
        section = shipped.function_name(function, ["int64"] * count, "int64")
        name = shipped_objects.name_of(section, function.__module__, layout)
        text = words.native_ir(function, count).replace("@exported(", f"@exported.{name}(")
        found[name] = cpu.object_code(text, machine, "", finished=True)
    return found


def scalar_texts() -> Iterator[tuple[str, str]]:
    """The IR of each elementary function that there is object code of, for each kind of CPU."""
    for symbol, _, _ in functions():
        if "(" not in symbol and called_scalars.is_long(symbol, shipped.find(symbol) or ""):
            for text in map(called_scalars.function_text, called_scalars.variants(symbol)):
                for level in shipped_objects.LEVELS:
                    yield level, text


def scalar_objects() -> dict[str, bytes]:
    """The object code of each elementary function, by the name that it is found by."""
    target = llvm.Target.from_triple(shipped_objects.TRIPLE)
    machines = {
        level: target.create_target_machine(cpu=level, opt=3, reloc="pic", codemodel="small")
        for level in shipped_objects.LEVELS
    }
    found: dict[str, bytes] = {}
    for level, text in scalar_texts():
        name, symbol = shipped_objects.name_of_scalar(level, text), called_scalars.SYMBOL
        text = text.replace(f"@{symbol}(", f"@{symbol}.{name}(")
        found[name] = cpu.object_code(text, machines[level], shipped_objects.LEVELS[level])
    return found


def functions() -> Iterator[tuple[str, str, Callable[[], str]]]:
    """Every function of the file: its name, its module, and the function that makes its IR."""
    kernels = kernel_module()
    primitives = {**{name: name for name in PRIMITIVES}, **{half: name for name, half in kernels.OF_HALF.items()}}
    for name in [name for name in kernels.SCALARS if name in primitives]:
        for dtype in map(np.dtype, DTYPES):
            try:
                kernel = kernels.scalar_kernel(name, dtype.name)
            except KeyError:
                continue
            dtypes = [dtype] * kernel.__code__.co_argcount
            if name == "select":
                dtypes[0] = np.dtype(np.bool_)
            result = make(primitives[name], tuple([placeholder((), d) for d in dtypes])).dtype
            symbol = shipped.scalar_name(name, dtypes, result)
            yield symbol, kernel.__module__, partial(scalar_text, name, dtypes, result, symbol)
    for place, pointers in special.shipped():
        module, _, name = place.rpartition(".")
        function = getattr(kernel_module(module), name)
        arguments = [*pointers, "*int64", "int64", "int64"]
        section = shipped.function_name(function, arguments, "int64")
        yield section, function.__module__, partial(lower, function, arguments, "int64", "special")
    angles = kernel_module("gpu.device_angles")
    scalars = [
        *[
            (f, ["float32"] * f.__code__.co_argcount, "float32")
            for f in kernel_module("gpu.device_math").SCALARS.values()
        ],
        *[(f, ["float32", "int64"], "float32") for f in angles.AT_ANGLE.values()],
        (angles.angle, ["float32"], "int64"),
        (angles.ordinary_angle, ["float32"], "int64"),
        (angles.is_ordinary_angle, ["int64", "float32"], "bool"),
        *[
            row
            for f, test in kernel_module("gpu.device_ordinary").ORDINARY.values()
            for row in (
                (f, ["float32"] * f.__code__.co_argcount, "float32"),
                (test, ["float32"] * test.__code__.co_argcount, "bool"),
            )
        ],
    ]
    for function, arguments, result in scalars:
        section = shipped.function_name(function, arguments, result)
        yield section, function.__module__, partial(lower, function, arguments, result, "special")
    for place, (pattern, count, names) in PYTHON_KERNELS.items():
        module, _, name = place.rpartition(".")
        function = getattr(kernel_module(module), name)
        for dtype in names.split():
            arguments = arguments_of([dtype if part == "*" else part for part in pattern.split()], count)
            section = shipped.function_name(function, arguments, "int64")
            yield section, function.__module__, partial(lower, function, arguments, "int64", "special")
    for function, count in NATIVE.items():
        arguments = ["int64"] * count
        section = shipped.function_name(function, arguments, "int64")
        text = partial(lower, function, arguments, "int64", "native", words.register)
        yield section, function.__module__, text


def write() -> int:
    """Compile functions that the files do not have yet and write the files anew; returns the number of functions."""
    found = [(name, module, shipped.find(name) or make_ir()) for name, module, make_ir in functions()]
    for file in (shipped.FILE, shipped.DEVICE_FILE):
        own = [(name, module, text) for name, module, text in found if shipped.file_of(name) == file]
        lines = [
            "; IR of nbgrad's kernels, made by `python -m nbgrad.precompile`. Do not edit.",
            f"; llvm {llvm.llvm_version_info[0]}",
            *[f"; digest {module} {shipped.digest(module)}" for module in sorted({module for _, module, _ in own})],
        ]
        lines += [f";; {name} {module} {shipped.row(name)}\n{text.strip()}" for name, module, text in own]
        temporary = file.with_suffix(".new")
        temporary.write_text("\n".join([*lines, ";; end", ""]), encoding="ascii", newline="\n")
        os.replace(temporary, file)
    shipped.forget()
    for file, codes in ((shipped_objects.FILE, objects()), (shipped_objects.SCALARS_FILE, scalar_objects())):
        file.write_text(shipped_objects.written(codes), encoding="ascii", newline="\n")
    return len(found)


def main() -> None:
    """Write the file in a process of its own, in which Numba has the settings that it needs.

    LLVM reads the IR of its own version and of earlier ones; so it is that of the oldest that nbgrad runs with.
    """
    if llvm.llvm_version_info[0] > OLDEST_LLVM:
        sys.exit(
            f"The IR must be that of LLVM {OLDEST_LLVM}, which all later ones read, but this is LLVM "
            f"{llvm.llvm_version_info[0]}. Run this in an environment made by: pip install -e . 'numba==0.65.*'"
        )
    if any(os.environ.get(name) != value for name, value in NEUTRAL.items()):
        os.execve(sys.executable, [sys.executable, "-m", "nbgrad.precompile"], {**os.environ, **NEUTRAL})
    count = write()
    files = (shipped.FILE, shipped.DEVICE_FILE, shipped_objects.FILE, shipped_objects.SCALARS_FILE)
    sizes = [f"{file.name} {file.stat().st_size // 1024} KiB" for file in files]
    sys.stdout.write(f"{count} functions: {', '.join(sizes)}\n")


if __name__ == "__main__":
    main()
