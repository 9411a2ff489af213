"""The elementary functions are as precise as docs/vector-math.md says, and their loops are vectorised.

The page is written by accuracy.py from long measurements; here shorter ones may not find more. The slow tests try every
float32.
"""

from __future__ import annotations

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler.texts.multiply_add import without_library_calls

from .accuracy import (
    CPUS,
    FLOATS,
    FUNCTIONS,
    UNARY,
    documented,
    every_float32,
    function_of,
    library_calls,
    loops_on,
    sampled_error,
    ulp_error,
)

PAGE = documented()
SLACK = 0.3
"""What other samples, or a CPU without fused multiply-add, may add to the page's errors."""


def test_the_page_has_every_function_and_none_is_beyond_its_limit() -> None:
    assert list(PAGE) == list(FUNCTIONS), "write the page: python -m tests.accuracy --write"
    beyond = {name: errors for name, errors in PAGE.items() if max(errors.values()) > FUNCTIONS[name].limit}
    assert not beyond


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_samples_are_as_precise_as_the_page_says(name: str, dtype: str) -> None:
    error, operands = sampled_error(name, dtype, 60)
    assert error <= min(PAGE[name][dtype] + SLACK, FUNCTIONS[name].limit), (
        f"{name}({operands}) is off by {error:.3f} ULP"
    )


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("name", UNARY)
def test_some_float32_are_as_precise_as_the_page_says(name: str) -> None:
    assert every_float32(name, (252, 381, 509, 893)) <= PAGE[name]["float32"] + SLACK


@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
def test_every_float32_is_as_precise_as_the_page_says(name: str) -> None:
    assert every_float32(name) <= PAGE[name]["float32"] + SLACK


HUGE = (6381956970095103 * 2.0**797, -6381956970095103 * 2.0**797, 1e22, 2.0**1023, np.finfo(float).max)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_next_to_multiples_of_half_pi(name: str) -> None:
    # Where numerators of continued fractions of pi and pi / 2 come close; the first huge one is the closest float64.
    angles = [11.0, 22.0, 355.0, 710.0, 104348.0, 833719.0, 80143857.0, 2.0**30, 2.0**30 + 1.0, 5.0 * np.pi / 2, *HUGE]
    angles += [float(mpmath.nint(mpmath.mpf(10) ** k) * mpmath.pi / 2) for k in range(8, 30)]
    values = np.asarray(nb.jit(function_of(name))(np.array(angles)))
    with mpmath.workprec(1300):
        for x, value in zip(angles, values, strict=True):
            assert ulp_error(value, getattr(mpmath, name)(mpmath.mpf(x)), "float64") <= 1.5, x


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_that_are_not_finite_have_no_value(name: str) -> None:
    for dtype in FLOATS:
        assert np.isnan(np.asarray(nb.jit(function_of(name))(np.array([np.inf, -np.inf, np.nan], dtype)))).all()


@pytest.mark.parametrize("cpu", [pytest.param(cpu, marks=[pytest.mark.slow] * (cpu != "x86-64-v3")) for cpu in CPUS])
def test_loops_are_vectorised_and_call_no_library(cpu: str) -> None:
    wrong = []
    for loop, (width, calls, vectors_only) in loops_on(cpu).items():
        name, dtype = loop.split()
        if width < 2 or not vectors_only or library_calls(name, calls):
            wrong.append(f"{name} of {dtype}: {width} elements in a vector, calls {calls}")
    assert not wrong, f"{cpu}: " + "\n".join(wrong)


# ----- Multiply-add without an instruction for it -----

MODULE = """
declare double @llvm.fma.f64(double, double, double)
define double @run(double %x, double %y, double %z) {
  %r = call double @llvm.fma.f64(double %x, double %y, double %z)
  ret double %r
}
"""


def _machine(cpu: str) -> llvm.TargetMachine:
    nb.jit(np.exp)(np.ones(2))  # LLVM is set up.
    return llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu=cpu, features="")


def test_multiply_add_is_left_alone_where_the_cpu_has_it() -> None:
    assert without_library_calls(MODULE, _machine("x86-64-v3")) is MODULE
    assert "@llvm.fma" not in without_library_calls(MODULE, _machine("x86-64"))


def test_multiply_add_finds_the_error_of_a_product() -> None:
    import ctypes

    text = without_library_calls(MODULE, _machine("x86-64"))
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(text), llvm.Target.from_default_triple().create_target_machine()
    )
    engine.finalize_object()
    number = ctypes.c_double
    fma = ctypes.CFUNCTYPE(number, number, number, number)(engine.get_function_address("run"))
    generator = np.random.default_rng(1)
    with mpmath.workprec(400):
        for x, y in (10.0 ** generator.uniform(-100, 100, (500, 2))).tolist():
            product = x * y
            lost = mpmath.mpf(x) * mpmath.mpf(y) - mpmath.mpf(product)
            assert abs(fma(x, y, -product) - lost) <= product * mpmath.mpf(2) ** -104
            assert ulp_error(fma(x, y, product), mpmath.mpf(x) * mpmath.mpf(y) + mpmath.mpf(product), "float64") <= 0.51
    infinity = float("inf")
    assert fma(1e200, 1e200, 0.0) == infinity
    assert fma(infinity, 1.0, 2.0) == infinity
    assert fma(2.0, 3.0, -infinity) == -infinity
    assert np.isnan(fma(infinity, 0.0, 1.0))
    assert np.isnan(fma(infinity, 1.0, -infinity))
