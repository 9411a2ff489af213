"""Every kernel compiled for aarch64, wherever the tests run: nothing of the CPU path is for x86 only.

No object may need a function that is not the mathematical or the C library's: what LLVM has no instruction for on one
architecture it makes a call of, to a library of the compiler's that the process may not have.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import cache

import llvmlite.binding as llvm
import numpy as np
import pytest

from nbgrad.compiler import called_scalars, cpu, special
from nbgrad.compiler.emitters.loop_ir import emit
from nbgrad.compiler.fuse import fuse
from nbgrad.compiler.loops import Loop
from nbgrad.compiler.lowering import kernel_module
from nbgrad.compiler.matrices.matmul import matmul_ir
from nbgrad.compiler.register_tiles import registers, tiles_ir
from nbgrad.compiler.texts.float_parts import with_definitions
from nbgrad.compiler.texts.multiply_add import without_library_calls
from nbgrad.graph.builders import cast
from nbgrad.graph.ir import PRIMITIVES, Node, make, placeholder
from nbgrad.graph.simplify import simplify
from nbgrad.runtime import blocks, native, native_steps, words
from nbgrad.runtime import native_tensors as tensors

LIBRARY = {f"{name}{suffix}" for name in ("sin", "cos", "sincos", "tan", "pow", "fmod") for suffix in ("", "f")}
LIBRARY |= {"memcpy", "memmove", "memset"}
"""Functions that kernels may call: of the C library, in every process that has loaded NumPy."""
CPUS = {
    "generic": "",
    "neoverse-v1": "+sve,+fullfp16",
    "apple-m1": "",
}
"""CPUs with vectors of 128 bits, with scalable ones, and of another maker."""
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


@cache
def machine(name: str) -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("aarch64-unknown-linux-gnu")
    return target.create_target_machine(cpu=name, features=CPUS[name], opt=3, reloc="pic", codemodel="small")


def symbols(data: bytes) -> dict[str, bool]:
    """The names in an object's table of symbols, and whether each is defined in it."""
    sections = {section.name(): section.data() for section in llvm.ObjectFileRef.from_data(data).sections()}
    found: dict[str, bool] = {}
    for name, _, _, section, _, _ in struct.iter_unpack("<IBBHQQ", sections[b".symtab"]):
        text = sections[b".strtab"][name : sections[b".strtab"].index(b"\0", name)].decode()
        if text:
            found[text] = section != 0
    return found


def check(text: str, entry: str, cpu_name: str, finished: bool = False) -> bytes:
    """Compile IR; its entry must be defined, and what is not must be the library's."""
    data = cpu.object_code(text, machine(cpu_name), CPUS[cpu_name], finished)
    assert data[:4] == b"\x7fELF" and struct.unpack("<H", data[18:20]) == (183,), "no object for aarch64"
    known = symbols(data)
    assert known[entry], entry
    missing = {name for name, defined in known.items() if not defined}
    called = called_scalars.names_in(data)
    assert missing <= LIBRARY | called, missing - LIBRARY - called
    for name in called:
        check_called(name, cpu_name)
    return data


@cache
def check_called(name: str, cpu_name: str) -> None:
    """Compile a scalar kernel that loops call."""
    check(called_scalars.function_text(name), called_scalars.SYMBOL, cpu_name)


def compiled(output: Node, cpu_name: str) -> int:
    """Compile the loops of a node; how many there are."""
    loops = [step for step in fuse(simplify([output])).steps if isinstance(step, Loop)]
    for loop in loops:
        check(emit(loop), "kernel", cpu_name)
    return len(loops)


def scalar_nodes(dtypes: list[str]) -> Iterator[Node]:
    """Every scalar kernel on a vector, for every dtype that it has."""
    kernels = kernel_module()
    for name in [name for name in kernels.SCALARS if name in PRIMITIVES]:
        for dtype in map(np.dtype, dtypes):
            computed = np.dtype(np.float32) if dtype == np.float16 else dtype
            try:
                count = kernels.scalar_kernel(name, computed.name).__code__.co_argcount
            except KeyError:
                continue
            arguments = [placeholder((1000,), dtype) for _ in range(count)]
            if name == "select":
                arguments[0] = placeholder((1000,), np.dtype(np.bool_))
            yield make(name, tuple(arguments))


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize(
    ("cpu_name", "dtypes"),
    [
        ("generic", "float64"),
        ("generic", "bool int8 uint64"),
        ("neoverse-v1", "float32"),
        pytest.param("generic", "float32 float16 int16 int32 int64 uint8 uint16 uint32", marks=pytest.mark.slow),
        pytest.param("neoverse-v1", " ".join(DTYPES), marks=pytest.mark.slow),
        pytest.param("apple-m1", " ".join(DTYPES), marks=pytest.mark.slow),
    ],
)
def test_scalar_kernels(cpu_name: str, dtypes: str) -> None:
    names = set()
    for node in scalar_nodes(dtypes.split()):
        if node.primitive.name not in ("cast", "alias") and compiled(node, cpu_name):
            names.add(node.primitive.name)
    assert len(names) > (60 if "float" in dtypes else 15), sorted(names)


@pytest.mark.parametrize("cpu_name", ["generic", pytest.param("neoverse-v1", marks=pytest.mark.slow)])
def test_conversions_and_reductions(cpu_name: str) -> None:
    """Half precision has instructions on aarch64: none of the conversions that other machines call."""
    count = 0
    for given in map(np.dtype, ("bool", "int8", "uint64", "float16", "float32", "float64")):
        for wanted in map(np.dtype, ("bool", "int16", "uint8", "float16", "float32", "float64")):
            if given != wanted:
                count += compiled(cast(placeholder((1000,), given), wanted), cpu_name)
        kinds = ("max", "min") + (() if given.kind == "b" else ("sum", "prod"))
        for kind in kinds:
            count += compiled(make(kind, (placeholder((100, 1000), given),), ((1,),)), cpu_name)
    assert count > 50


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("cpu_name", ["generic", *[pytest.param(name, marks=pytest.mark.slow) for name in CPUS][1:]])
def test_special_kernels(cpu_name: str, every: int) -> None:
    for place, pointers in list(special.shipped())[::every]:
        dtype = pointers[0][1:]
        tiles = tiles_ir(dtype, registers(dtype, "+neon")) if place.startswith("convolution.") else ""
        check(special.special_ir(place, pointers, tiles), "kernel", cpu_name, finished=tiles != "")
    for dtype in ("float32", "float64"):
        check(matmul_ir(dtype), "kernel", cpu_name)


@pytest.mark.parametrize("cpu_name", CPUS)
def test_native_entry_points(cpu_name: str) -> None:
    entries = native.FUNCTIONS | blocks.FUNCTIONS | tensors.FUNCTIONS | native_steps.FUNCTIONS
    for function, count in entries.items():
        data = check(words.native_ir(function, count), "exported", cpu_name, finished=True)
        assert not [name for name, defined in symbols(data).items() if not defined], function.__name__


def test_vectors_are_used() -> None:
    """Functions of float64 compute two at a time, or as many as the machine has; rare calls are behind a branch."""
    function = called_scalars.function_text("nbgrad.called.exp.float64.float64.v16")
    for cpu_name, register in (("generic", r"v\d+\.2d"), ("neoverse-v1", r"[vz]\d+\.(?:2d|d)")):
        target = machine(cpu_name)
        text = with_definitions(without_library_calls(function, target), "")
        module = llvm.parse_assembly(text)
        module.triple, module.data_layout = target.triple, str(target.target_data)
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        builder = llvm.create_pass_builder(target, options)
        builder.getModulePassManager().run(module, builder)
        assert re.search(rf"fml[as]\s+{register}|fmad\s+{register}", target.emit_assembly(module)), cpu_name


def test_the_inspection_sees_calls() -> None:
    text = "declare double @tgamma(double)\ndefine double @f(double %x) {\n  %r = call double @tgamma(double %x)\n"
    with pytest.raises(AssertionError, match="tgamma"):
        check(text + "  ret double %r\n}\n", "f", "generic")
    wide = "define i128 @f(i128 %x, i128 %y) {\n  %r = udiv i128 %x, %y\n  ret i128 %r\n}\n"
    with pytest.raises(AssertionError, match="__udivti3"):
        check(wide, "f", "generic")
