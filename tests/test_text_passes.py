"""Passes over IR as text rely on LLVM's spelling: LLVM prints a module, which every pass must still change."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

from nbgrad.compiler import cpu
from nbgrad.compiler.emitters.loop_ir import emit
from nbgrad.compiler.fuse import fuse
from nbgrad.compiler.loops import Loop
from nbgrad.compiler.lowering import lower
from nbgrad.compiler.texts.text_passes import FOR_CPU, FOR_NUMBA, HINTED, Target, run
from nbgrad.device.kernels.dialect import FOR_GPU
from nbgrad.graph.ir import elementwise, placeholder

MODULE = """
@constant = private constant [2 x double] [double 1.0, double 2.0]
declare double @library(double) #1
declare double @llvm.fma.f64(double, double, double)
define internal double @helper(double %x) #0 {
  %p = getelementptr [2 x double], ptr @constant, i64 0, i64 1
  %c = load double, ptr %p, !invariant.load !0
  %y = fmul double %x, %c
  ret double %y
}
define double @own(double %x) #0 {
  %a = call double @helper(double %x)
  %b = fadd double %a, %x
  %s = fsub double %b, 1.0
  %r = call double @library(double %s)
  %f = call double @llvm.fma.f64(double %r, double %a, double %b)
  %h = fptrunc double %f to half
  %w = fpext half %h to double
  ret double %w
}
define void @kernel(ptr %pointers, ptr %sizes, i64 %begin, i64 %end) {
  %v = load double, ptr %pointers
  %w = call double @own(double %v)
  %z = call double @pow(double %w, double %w)
  store double %z, ptr %pointers
  ret void
}
declare double @pow(double, double)
attributes #0 = { nounwind }
attributes #1 = { nounwind willreturn memory(none) }
!0 = !{}
"""


@pytest.fixture(scope="module")
def printed() -> str:
    """The module in LLVM's own spelling."""
    cpu._target_machine()
    return str(llvm.parse_assembly(MODULE))


def machine(name: str) -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    return target.create_target_machine(cpu=name, reloc="pic", codemodel="small")


OLD = {"features": "", "quick": False}


def test_every_pass_says_why_and_what_it_relies_on() -> None:
    for step in (*FOR_CPU, *FOR_NUMBA, *FOR_GPU):
        assert step.why and step.relies_on, step.name
    assert len({step.name for step in (*FOR_CPU, *FOR_NUMBA, *FOR_GPU)}) == 10


def test_multiply_add(printed: str) -> None:
    text = FOR_CPU[1].run(printed, Target(machine("x86-64"), **OLD))
    assert "@llvm.fma" not in text and "call double @nbgrad.fma.f64(" in text
    assert FOR_CPU[1].run(printed, Target(machine("x86-64-v3"), **OLD)) == printed


def test_aligned_stack(printed: str) -> None:
    text = FOR_CPU[2].run(printed, Target(machine("x86-64-v3"), **OLD))
    assert text.count('"stackrealign" {') == printed.count("\ndefine ") == 3
    llvm.parse_assembly(text)


def test_vectors_without_remainder() -> None:
    """LLVM has not printed the text of a loop: it is as the emitter wrote it."""
    node = x = placeholder((1000,), np.dtype(np.float64))
    for _ in range(100):
        node = elementwise("multiply", elementwise("add", node, x), node)
    (loop,) = fuse([node]).steps
    assert isinstance(loop, Loop)
    target = Target(machine("x86-64-v4"), "+avx512vl,+avx512dq", False)
    assert HINTED in FOR_CPU[3].run(emit(loop), target)
    assert HINTED not in FOR_CPU[3].run(emit(loop), target._replace(features=""))


def test_float16(printed: str) -> None:
    text = FOR_CPU[4].run(printed, Target(machine("x86-64"), **OLD))
    assert text.startswith(printed.rstrip()) and "define internal half @__truncdfhf2(double %value)" in text
    llvm.parse_assembly(text)


ASKS = """
declare i1 @nbgrad.registers.wide()
define i64 @asks() {
  %wide = call i1 @nbgrad.registers.wide()
  %bits = select i1 %wide, i64 512, i64 256
  ret i64 %bits
}
"""


@pytest.mark.parametrize(("features", "bits"), [("+avx512vl,+avx512dq", 512), ("+avx2,+fma", 256)])
def test_width_of_registers(features: str, bits: int, printed: str) -> None:
    target = Target(machine("x86-64-v3"), features, False)
    asks = str(llvm.parse_assembly(ASKS))
    module = llvm.parse_assembly(FOR_CPU[5].run(asks, target))
    builder = llvm.create_pass_builder(target.machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    assert f"ret i64 {bits}\n" in str(module)
    assert FOR_CPU[5].run(str(module), target) == str(module)
    assert FOR_CPU[5].run(printed, target) == printed


def test_all_of_them_give_a_module_that_llvm_takes(printed: str) -> None:
    target = Target(machine("x86-64"), **OLD)
    module = llvm.parse_assembly(run(FOR_CPU, printed, target))
    assert target.machine.emit_object(module)


def test_own_conventions(printed: str) -> None:
    text = FOR_NUMBA[0].run(printed, "own")
    assert not re.search(r" #\d|^attributes |^!|, !|^target |^source_filename", text, re.MULTILINE)
    assert "declare double @library(double) nounwind willreturn memory(none)" in text
    assert re.search(r"^define internal double @own\(double %x\) alwaysinline \{$", text, re.MULTILINE)
    # Two modules with such a helper and constant go together.
    other = FOR_NUMBA[0].run(printed.replace("@own(", "@other("), "other")
    for name in ("helper", "constant"):
        first, second = (set(re.findall(rf"@{name}[.\w]*", t)) for t in (text, other))
        assert len(first) == len(second) == 1 and first.isdisjoint(second)


def test_contraction(printed: str) -> None:
    text = FOR_NUMBA[1].run(printed, "own")
    for operation in ("fadd", "fsub", "fmul"):
        assert f"= {operation} contract double" in text
    llvm.parse_assembly(text)


def test_kernels_of_gpus(printed: str) -> None:
    text = FOR_GPU[0].run(printed)
    assert "declare double @pow" not in text and re.search(r"^define .*@pow\(", text, re.MULTILINE)
    assert "define ptx_kernel void @kernel(" in FOR_GPU[1].run(text)


def test_what_numba_compiles_goes_through_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from nbgrad.compiler import shipped

    monkeypatch.setattr(shipped, "find", lambda name: None)
    text = lower(_hypotenuse, ["float64", "float64"], "float64", "hypotenuse")
    assert "define internal double @hypotenuse(double %a0, double %a1) alwaysinline {" in text
    assert not re.search(r" #\d|^attributes |^!", text, re.MULTILINE)


def _hypotenuse(x, y):
    return (x * x + y * y) ** 0.5
