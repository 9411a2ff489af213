"""NBGRAD_OPTIMIZE=0: kernels of their own, without LLVM's optimisations, that compute the same."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import config
from nbgrad.compiler import cache, cpu
from nbgrad.compiler.emitters.loop_ir import emit
from nbgrad.compiler.fuse import fuse
from nbgrad.compiler.loops import Loop
from nbgrad.graph.builders import reduce
from nbgrad.graph.ir import elementwise, placeholder
from nbgrad.graph.simplify import simplify

NAME = "NBGRAD_OPTIMIZE"


def text() -> str:
    """The IR of a loop that LLVM vectorises."""
    x = placeholder((1000,), np.dtype(float))
    (loop,) = [
        step
        for step in fuse(simplify([reduce("sum", elementwise("multiply", x, x), (0,))])).steps
        if isinstance(step, Loop)
    ]
    return emit(loop)


@pytest.mark.parametrize("quick", [True, False])
def test_llvm_vectorises_unless_told_not_to_optimise(quick: bool) -> None:
    module = str(cpu.optimized(text(), cpu._target_machine(quick), cache.cpu_features(), quick=quick))
    assert bool(re.search(r"<\d+ x double>", module)) is not quick
    assert ("alloca" in module) is quick


def test_each_kind_has_its_own_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nb.jit(nb.grad(lambda x: np.sum(x * x)))(np.ones(3))  # what all programs share is compiled before
    monkeypatch.setenv("NBGRAD_CACHE_DIR", str(tmp_path / "cache"))
    x = np.linspace(0.1, 2.0, 1003)

    def compiled() -> int:
        before = cache.counters["compiled"]
        slope = nb.jit(nb.grad(lambda x: np.sum(np.sinh(x) * np.log(x + 1.987))))(x)
        want = np.cosh(x) * np.log(x + 1.987) + np.sinh(x) / (x + 1.987)
        np.testing.assert_allclose(slope, want, rtol=1e-14)
        return cache.counters["compiled"] - before

    for value, kernels in (("0", 1), ("1", 1), ("0", 0), ("", 0)):
        monkeypatch.setenv(NAME, value)
        assert compiled() == kernels, value
    assert len(list((tmp_path / "cache").glob("object-*"))) == 2


def test_native_code_is_optimised_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its IR is optimised as it is shipped."""
    asked: list[tuple[bool, ...]] = []
    compile_ir = cpu.compile_ir

    def keep(text: str, *options: bool) -> bytes:
        asked.append(options)
        return compile_ir(text, *options)

    monkeypatch.setattr(cpu, "compile_ir", keep)
    monkeypatch.setattr(cache, "load", lambda _kind, _key: None)
    monkeypatch.setenv(NAME, "0")
    ir = "define i64 @answer() {\n  ret i64 42\n}\n"
    cpu.function_code(cpu.Function("answer of the test of options", "answer", lambda: ir, finished=True))
    cpu.function_code(cpu.Function("answer of the test of options, anew", "answer", lambda: ir))
    assert asked == [(True, False), (False, True)]


LEVELS = [
    pytest.param(True, marks=pytest.mark.unoptimized, id="unoptimized"),
    pytest.param(False, marks=pytest.mark.unoptimized(but=1), id="all left out"),
]


@pytest.mark.parametrize("quick", LEVELS)
def test_marks_say_how_tests_compile(quick: bool, request: pytest.FixtureRequest) -> None:
    quick = quick and not request.config.getoption("--optimize")
    assert config.optimize() is not quick
