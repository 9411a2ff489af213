"""Loops with long bodies: hints for the vectoriser where the CPU has masks, and right results at every length."""

from __future__ import annotations

import re
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler import cpu, scalars
from nbgrad.compiler.texts.hints import MASKED, UNMASKED, with_hints

MASKS = "+avx512f,+avx512vl,+avx512dq"
LENGTHS = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 511, 512, 513, 1025]


def kernel_text(monkeypatch: pytest.MonkeyPatch, f: Any, *arguments: Any) -> str:
    """The IR of the longest loop of a function, as it comes to be compiled."""
    texts: list[str] = []
    compile_ir = cpu.compile_ir

    def keep(text: str, *options: bool) -> bytes:
        texts.append(text)
        return compile_ir(text, *options)

    monkeypatch.setattr(cpu, "compile_ir", keep)
    monkeypatch.setattr(cpu, "_loaded", {k: v for k, v in cpu._loaded.items() if not k.startswith("loop")})
    monkeypatch.setattr(cpu.cache, "load", lambda kind, key: None)
    nb.jit(f)(*arguments)
    return max([text for text in texts if "@body" in text], key=len)


def long_text(monkeypatch: pytest.MonkeyPatch, dtype: str, body: int) -> str:
    """The IR of a loop with a polynomial of `body` terms, and none of the functions that loops call."""

    def f(x):
        total = x
        for k in range(body):
            total = total * x + x / (k + 1.5)
        return total + 1.0

    return kernel_text(monkeypatch, f, np.ones(3, dtype))


def assembly(text: str, cpu_name: str, features: str) -> str:
    """The code for a CPU."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu=cpu_name, features=features, opt=3, reloc="pic", codemodel="small")
    return machine.emit_assembly(cpu.optimized(text, machine, features))


@pytest.mark.parametrize(("dtype", "width"), [("float64", 8), ("float32", 16)])
def test_long_bodies_get_hints_where_there_are_masks(dtype: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = long_text(monkeypatch, dtype, 60)
    for features in ("", "+avx2,+fma", "+neon"):
        assert with_hints(text, features) == (text.replace(MASKED, UNMASKED), False)
    hinted, any_hints = with_hints(text, MASKS)
    assert any_hints
    assert hinted.count('!{!"llvm.loop.vectorize.width"') == 1
    assert f'!{{!"llvm.loop.vectorize.width", i32 {width}}}' in hinted
    assert [line.partition(", !llvm.loop")[0] for line in hinted.split("\n")[: text.count("\n")]] == text.split("\n")[
        :-1
    ]


def test_bodies_of_medium_length_do_two_vectors_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    text = long_text(monkeypatch, "float64", 6)
    hinted, any_hints = with_hints(text, MASKS)
    assert any_hints
    more = '!{!"llvm.loop.interleave.count", i32 2}'
    assert hinted.count(more) == text.count(more) + 1
    assert "llvm.loop.vectorize.width" not in hinted


def test_short_bodies_get_none(monkeypatch: pytest.MonkeyPatch) -> None:
    text = long_text(monkeypatch, "float64", 0)
    assert with_hints(text, MASKS) == (text, False)


@pytest.mark.parametrize(("cpu_name", "vectors"), [("skylake-avx512", "zmm"), ("haswell", "ymm")])
def test_vectors_on_the_stack_are_aligned(cpu_name: str, vectors: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Else a loop takes half again as long wherever the stack lies so that one of them is spread over two pages.
    text = long_text(monkeypatch, "float64", 60)
    code = assembly(text, cpu_name, MASKS if vectors == "zmm" else "+avx2,+fma")
    body = code.partition("\nbody:")[2].partition("\nkernel.")[0]
    kept = re.findall(rf"^\s(v\w+)\s+%{vectors}\d+, -?\d*\(%rsp\)", body, re.MULTILINE)
    assert len(kept) > 10
    assert not [name for name in kept if "u" in name]


def chain(x):
    """Sines, exponentials and logarithms, all of whose derivatives are known."""
    for k in range(4):
        x = np.sin(x * (k + 1.5)) + np.log(np.exp(x) + np.exp(-x)) * 0.1
    return x


def chain_slope(x):
    slope = np.ones_like(x)
    for k in range(4):
        slope = slope * (np.cos(x * (k + 1.5)) * (k + 1.5) + np.tanh(x) * 0.1)
        x = np.sin(x * (k + 1.5)) + np.log(np.exp(x) + np.exp(-x)) * 0.1
    return slope


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 2e-4)])
def test_every_length_is_right(length: int, dtype: str, tolerance: float) -> None:
    x = np.linspace(-1.5, 1.5, length).astype(dtype)
    wide = x.astype(np.float64)
    value, slope = nb.value_and_grad(lambda x: np.sum(chain(x)))(x)
    np.testing.assert_allclose(value, np.sum(chain(wide)), rtol=tolerance, atol=tolerance * max(1, length))
    np.testing.assert_allclose(slope, chain_slope(wide), rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("length", [1, 5, 8, 13])
def test_rows_columns_and_strides_are_right(length: int) -> None:
    X = np.random.default_rng(0).uniform(-1.5, 1.5, (6, 2 * length))
    for A in (X, X[:, ::2], X.T, X[::-1, ::-1], np.broadcast_to(X[:1], X.shape)):
        np.testing.assert_allclose(nb.jit(chain)(A), chain(A), rtol=1e-12, atol=1e-12)
        for axis in (0, 1):
            got = nb.jit(lambda A, axis=axis: np.sum(chain(A), axis))(A)
            np.testing.assert_allclose(got, np.sum(chain(A), axis), rtol=1e-11, atol=1e-12)
        peak = nb.jit(lambda A: np.max(chain(A), 1))(A)
        np.testing.assert_allclose(peak, np.max(chain(A), 1), rtol=1e-12)


@pytest.mark.parametrize("length", [3, 8, 11])
def test_rare_elements_are_right_in_every_lane(length: int) -> None:
    """Large arguments of sines take another way, which masked lanes must not disturb."""
    for place in range(length):
        x = np.linspace(-1, 1, length)
        x[place] = 1e15
        got = nb.jit(lambda x: np.sin(x) + np.cos(x) * np.tan(x) + chain(x * 1e-16))(x)
        np.testing.assert_allclose(got, np.sin(x) + np.cos(x) * np.tan(x) + chain(x * 1e-16), rtol=1e-13)


def test_integers_divide_by_no_zero_of_a_masked_lane() -> None:
    k = np.arange(1, 12)
    got = nb.jit(lambda k: chain(1.0 / k) + 1000 // k % 7)(k)
    np.testing.assert_allclose(got, chain(1.0 / k) + 1000 // k % 7, rtol=1e-12)


def test_kernels_that_were_compiled_before_are_found_by_their_own_names() -> None:
    """All kernels of a process live in one engine."""
    double = np.dtype(np.float64)
    addresses = set()
    for k in range(5):
        symbol, text = scalars.scalar_ir("exp", [double], double)
        outside = f"define double @probe(double %x) {{\n  %a = fadd double %x, {k}.0\n"
        outside += f"  %r = call double @{symbol}(double %a)\n  ret double %r\n}}\n"
        address = cpu.function_address(cpu.Function(f"test of names {k}", "probe", lambda text=text + outside: text))
        addresses.add(address)
        import ctypes

        assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(0.5) == pytest.approx(np.exp(0.5 + k), 1e-15)
    assert len(addresses) == 5


def test_a_remainder_by_a_constant_leaves_nothing_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    """LLVM remarks on loops that it was told to vectorise and cannot."""
    x = np.linspace(-3.0, 3.0, 50)
    got = nb.jit(lambda x: chain(x * 1.01) + np.remainder(x, 1.0))(x)
    np.testing.assert_allclose(got, chain(x * 1.01) + np.remainder(x, 1.0), rtol=1e-12)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "f",
    [
        lambda w: np.pad(w, ((0, 0), (1, 0))) - np.pad(w, ((0, 0), (0, 1))),
        lambda w: np.roll(w, 1, 1) - np.roll(w, -1, 1),
        lambda w: np.concatenate([w, w[:, :1]], 1) * 2,
    ],
)
def test_rows_with_borders_have_no_masked_stores_without_registers_for_masks(
    f: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On AMD's cores a masked store of AVX2 takes some 20 cycles: kernels with borders took five times as long."""
    text = kernel_text(monkeypatch, f, np.ones((3, 100)))
    code = assembly(text, "haswell", "+avx2,+fma")
    assert "vmovup" in code and "vmaskmov" not in code


def test_a_search_has_no_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM takes selections of positions for predictable unless it is told: a search took four times as long."""
    knots = np.arange(64.0)
    text = kernel_text(monkeypatch, np.interp, np.linspace(-1.0, 70.0, 100), knots, knots**2)
    code = assembly(text, "znver3", "+avx2,+fma")
    assert code.count("cmov") >= 28
    assert len(re.findall(r"^\tj(?:ae?|be?|n?p)\t", code, re.MULTILINE)) <= 4
