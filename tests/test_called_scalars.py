"""Scalar kernels that loops call: the same bits as those that loops include, at every length, and no word from LLVM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import precompile
from nbgrad.compiler import cache, called_scalars, cpu, shipped
from nbgrad.compiler.emitters import computed_values
from nbgrad.compiler.scalars import scalar_ir
from nbgrad.graph.primitives import PRIMITIVES

SCRIPT = """
import sys
import numpy as np
from nbgrad.compiler.emitters import computed_values
from nbgrad.graph.ir import constant, make
from nbgrad.runtime.evaluate import compute
from nbgrad.compiler import called_scalars, shipped

if sys.argv[2] == "included":
    computed_values.is_long = lambda symbol, text: False
generator = np.random.default_rng(7)
found = {}
for symbol in sys.argv[3:]:
    _, name, *dtypes, result = symbol.split(".")
    special = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, 1e-30, 1e30, -1e15, 170.0, -745.0]
    plain = [generator.normal(0, scale, 45) for scale in (0.3, 3.0, 30.0)]
    arrays = [generator.permutation(np.concatenate([special, *plain])).astype(dtype) for dtype in dtypes]
    for length in (3, 8, 61, len(arrays[0])):
        nodes = [constant(array[:length]) for array in arrays]
        (value,) = compute([make(name, tuple(nodes))])
        found[f"{symbol} {length}"] = np.asarray(value)
np.savez(sys.argv[1], **found)
"""


def long_kernels() -> list[str]:
    """The symbols of the kernels of which there are functions."""
    symbols = [symbol for symbol, _, _ in precompile.functions() if symbol.startswith("nbgrad.") and "(" not in symbol]
    symbols = [symbol for symbol in symbols if symbol.split(".")[1] in PRIMITIVES]
    return [symbol for symbol in symbols if called_scalars.is_long(symbol, shipped.find(symbol) or "")]


def results(way: str, symbols: list[str], folder: Path) -> dict[str, np.ndarray]:
    """All of them, in a process of its own that has compiled nothing yet."""
    file = folder / f"{way}.npz"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(file), way, *symbols],
        env={**os.environ, "NBGRAD_CACHE_DIR": str(folder / way), "NBGRAD_OPTIMIZE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    with np.load(file) as found:
        return dict(found)


@pytest.mark.parametrize("part", [0, *[pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 3)]])
def test_called_and_included_kernels_give_the_same_bits(part: int, tmp_path: Path) -> None:
    symbols = long_kernels()
    assert len(symbols) > 60
    called, included = (results(way, symbols[part::4], tmp_path) for way in ("called", "included"))
    assert called.keys() == included.keys() and len(called) >= 4 * (len(symbols) // 4)
    different = [name for name in called if called[name].tobytes() != included[name].tobytes()]
    assert not different


def test_kernels_that_are_called_are_elementary_functions_of_floats() -> None:
    names = {symbol.split(".")[1] for symbol in long_kernels()}
    assert {"exp", "log", "sin", "tanh", "power", "erf", "gammaln", "arctan2"} <= names
    assert names.isdisjoint(["add", "divide", "sqrt", "maximum", "rsqrt", "floor"])
    for name, dtypes in (("power", ["int64"] * 3), ("exp", ["float32", "float32"])):
        symbol, text = scalar_ir(name, [np.dtype(d) for d in dtypes[:-1]], np.dtype(dtypes[-1]))
        assert called_scalars.is_long(symbol, text) == (dtypes[0] == "float32")


def test_object_code_knows_what_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """One file of the cache is enough to link the code again, in a process that has called nothing."""
    seen: dict[str, bytes] = {}
    monkeypatch.setattr(cache, "store", lambda kind, name, data: seen.update({f"{kind} {name}": data}))
    monkeypatch.setattr(cache, "load", lambda kind, name: None)
    monkeypatch.setattr(cpu, "_loaded", {k: v for k, v in cpu._loaded.items() if not k.startswith("loop")})
    x = np.linspace(0.1, 0.9, 37)
    got = nb.jit(lambda x: np.exp(x) * np.arctan(x * 1.125) + 2.0**-7)(x)
    np.testing.assert_allclose(got, np.exp(x) * np.arctan(x * 1.125) + 2.0**-7, rtol=1e-15)
    names = set().union(*[called_scalars.names_in(data) for data in seen.values()])
    assert {name.rpartition("float64")[2] for name in names} <= {f".v{called_scalars.wide() // 8}", ".v4", ""}
    assert {name.split(".")[2] for name in names} == {"exp", "arctan"}


@pytest.mark.parametrize("pairs", [1, 2, 5])
def test_sines_and_cosines_of_the_same_angles(pairs: int) -> None:
    """Few of them are included, many are called."""

    def f(x):
        return sum(np.sin(x * (k + 1.25)) * np.cos(x * (k + 1.25)) for k in range(pairs))

    for length in (1, 7, 16, 40):
        x = np.linspace(-3.0, 3.0, length)
        np.testing.assert_allclose(nb.jit(f)(x), f(x), rtol=1e-13, atol=1e-15)
        want = sum((k + 1.25) * np.cos(2 * x * (k + 1.25)) for k in range(pairs))
        np.testing.assert_allclose(nb.grad(lambda x: np.sum(f(x)))(x), want, rtol=1e-12, atol=1e-13)


def test_masked_rows_columns_and_sums(capfd: pytest.CaptureFixture[str]) -> None:
    """Loops with borders, short rows, blocks of sums, extrema and values of other types: all in vectors, or LLVM would
    say so on stderr."""
    X = np.random.default_rng(3).uniform(0.1, 2.0, (9, 41))

    def shifted(X):
        padded = np.pad(np.exp(X), ((0, 0), (1, 1)))
        return np.log(1.5 + padded[:, :-2]) + np.tanh(padded[:, 2:])

    def mixed(X):
        return np.max(np.log(X.astype(np.float32)) + np.exp(X), axis=1) + np.sum(np.where(X > 1, np.exp(X), X), axis=1)

    def short(X):
        Y = np.exp(X.T[:6, :5])
        return Y / np.sum(Y, 1, keepdims=True)

    for f in (shifted, mixed, short, lambda X: np.cumsum(np.sin(X), 0), lambda X: np.arctan2(X, X[::-1, ::-1])):
        for A in (X, X[:, ::2], np.asfortranarray(X), X.astype(np.float32)):
            rtol = 1e-4 if A.dtype == np.float32 or f is mixed else 1e-12
            np.testing.assert_allclose(nb.jit(f)(A), f(A), rtol=rtol)
    assert capfd.readouterr().err == ""


def test_computed_values_say_which_kernels_they_call() -> None:
    assert computed_values.FEW >= 1
    text = called_scalars.declarations(["nbgrad.power.float64.float64.float64"])
    assert "_ZGV_LLVM_N16vv_nbgrad.called.power.float64.float64.float64(" in text
    assert called_scalars.declarations([]) == ""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 17, 40])
def test_turns_of_scalars_call_functions_of_several_elements_at_once(size: int, dtype: str) -> None:
    """A loop's turn has groups of equal functions of which none needs another, and single ones between them."""

    def f(x, y):
        for _ in range(30):
            x = np.tanh(x * y) + 0.1 * np.exp(-x) * np.sum(np.log1p(x * x)) / size
            y = 0.5 * y * np.cos(x[0]) + np.power(1.0 + x * x, -0.3 * y)
        return np.sum(x * y)

    generator = np.random.default_rng(size)
    x, y = generator.uniform(0.1, 0.9, (2, size)).astype(dtype)
    value, (by_x, by_y) = nb.jit(nb.value_and_grad(f, (0, 1)))(x, y)
    wide = x.astype(float), y.astype(float)
    tolerance = 1e-11 if dtype == "float64" else 2e-4
    np.testing.assert_allclose(value, f(*wide), rtol=tolerance)
    for which, slope in enumerate((by_x, by_y)):
        for k in range(size):
            moved = [a.astype(complex) for a in wide]
            moved[which][k] += 1e-30j
            np.testing.assert_allclose(
                slope[k], np.imag(complex_step(f, moved)) / 1e-30, rtol=tolerance * 30, atol=tolerance
            )


def complex_step(f, arguments):
    """A function whose powers and logarithms NumPy computes for complex numbers with few digits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "log1p", lambda z: np.log(1.0 + z))
        return f(*arguments)
