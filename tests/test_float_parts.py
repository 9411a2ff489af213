"""Exponents and fractions of floats, and logarithms, powers and roots made of them, at their special values.

The functions are the same for vectors, with AVX-512's instructions where there are some, and for single elements.
"""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler.lowering import kernel_module
from nbgrad.compiler.texts.float_parts import NAMES, plain, with_definitions

FLOATS = ("float64", "float32")


def special(dtype: str) -> np.ndarray:
    """Zeros, infinities, NaN, subnormal numbers, the largest ones, and those next to 1 and to powers of two."""
    limits = np.finfo(dtype)
    least = limits.smallest_subnormal
    sizes = [0.0, np.inf, least, 3 * least, limits.tiny - least, limits.tiny, limits.max, 0.5, 1.0, 1.5, 2.0, 3.0, 8.0]
    sizes += [2.0**23 + 1, 2.0**24, 2.0**31, 2.0**100, 1 + limits.eps, 1 - limits.epsneg, 2 - limits.eps, 0.1, 1e-5]
    return np.array([*sizes, *[-size for size in sizes], np.nan], dtype)


def agrees(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    near = np.abs(got - want) <= 2 * np.spacing(np.abs(want))
    same = (got == want) & ((want != 0) | (np.signbit(got) == np.signbit(want)))
    return same | (np.isnan(got) & np.isnan(want)) | (near & (want != 0))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["log", "log2", "log10", "log1p", "cbrt", "arctanh", "arcsinh", "arccosh", "exp2"])
def test_special_values(name: str, dtype: str) -> None:
    x = np.tile(special(dtype), 3)
    function = getattr(np, name)
    with np.errstate(all="ignore"):
        want = function(x.astype("longdouble")).astype(dtype)
        got = np.asarray(nb.jit(lambda x: function(x))(x))
        single = [np.asarray(nb.jit(lambda x: function(x))(x[k : k + 1]))[0] for k in range(len(x) // 3)]
        assert agrees(got, want).all(), x[~agrees(got, want)]
    # The same bits for vectors and for one element.
    np.testing.assert_array_equal(got, np.tile(np.array(single), 3))


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_of_powers(dtype: str) -> None:
    x, y = (part.ravel().copy() for part in np.meshgrid(special(dtype), special(dtype)))
    with np.errstate(all="ignore"):
        want = np.power(x.astype("float64"), y.astype("float64")).astype(dtype)
        got = np.asarray(nb.jit(lambda x, y: np.power(x, y))(x, y))
        assert agrees(got, want).all(), (x[~agrees(got, want)], y[~agrees(got, want)])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("wide", [True, False])
def test_inverse_roots(wide: bool, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By Newton's method where registers are wide, by a division elsewhere: within 1.5 ULP, and alike at the edges."""
    roots = kernel_module("reciprocal_root")
    monkeypatch.setattr(roots, "wide_registers", lambda: wide)
    kind = np.dtype(dtype).type
    rsqrt = roots.rsqrt if dtype == "float64" else roots.rsqrt_float32
    x = np.concatenate([special(dtype), np.random.default_rng(3).uniform(0.5, 4, 40).astype(dtype)])
    with np.errstate(all="ignore"):
        want = 1 / np.sqrt(x.astype("longdouble"))
        for given, expected in zip(x, want, strict=True):
            found = kind(rsqrt(given if dtype == "float32" else np.float64(given)))
            exact = np.isnan(expected) or np.isinf(expected) or expected == 0
            if exact:
                np.testing.assert_array_equal(found, expected.astype(dtype))
                assert np.isnan(found) or np.signbit(found) == np.signbit(expected)
            else:
                assert abs(found - expected) <= 1.5 * np.spacing(kind(expected))


@pytest.mark.parametrize("dtype", FLOATS)
def test_stand_ins_put_floats_together_again(dtype: str) -> None:
    bits = kernel_module("bits")
    for x in special(dtype):
        k, m = bits.exponent_of(x), bits.fraction_of(x)
        if x > 0 and np.isfinite(x):
            assert 1 <= m < 2 and bits.times_two_to(m, k) == x
        elif x < 0:
            assert np.isnan(m)
        assert k == -np.inf if x == 0 else not np.isinf(x) or k == np.inf


@pytest.mark.parametrize("name", NAMES)
def test_definitions_are_added_where_they_are_called(name: str) -> None:
    kind = "double" if name.endswith("f64") else "float"
    operands = ", ".join([kind] * (2 if "scaled" in name else 1))
    text = f"declare {kind} @{name}({operands}) nounwind\n"
    assert with_definitions(text, "+avx2") == plain(name)
    module = llvm.parse_assembly(with_definitions(text, "+avx512f,+avx512vl,+avx512dq"))
    assert len([f for f in module.functions if f.name.startswith("nbgrad.late.")]) == 4
    module.verify()
    assert with_definitions("; nothing\n", "") == "; nothing\n"
