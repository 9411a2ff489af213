"""The sign of zeros, and arrays without axes: results are NumPy's own, bit by bit and type by type."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized(but=4)

ZEROS = [0.0, -0.0]
NUMBERS = [*ZEROS, 1.0, -1.0, np.inf, -np.inf]
LISTS = [list(row) for n in (1, 2, 3) for row in itertools.product(ZEROS, repeat=n)]


def assert_same_signs(got: Any, want: Any, name: str) -> None:
    got, want = np.asarray(got), np.asarray(want)
    for side in ("real", "imag") if want.dtype.kind == "c" else ("real",):
        ours, theirs = getattr(got, side), getattr(want, side)
        zero = theirs == 0
        np.testing.assert_array_equal(np.signbit(ours[zero]), np.signbit(theirs[zero]), err_msg=name)
        np.testing.assert_array_equal(ours == 0, zero, err_msg=name)


def ufuncs_of_floats() -> list[str]:
    """All of NumPy's ufuncs that give floats of float64, apart from those whose zeros depend on vector instructions.

    NumPy's fmax and fmin give the second of two zeros in loops with vector instructions, the first in others.
    """
    found = []
    for name in dir(np):
        ufunc = getattr(np, name)
        if isinstance(ufunc, np.ufunc) and ufunc.signature is None and name not in ("fmax", "fmin"):
            floats = [kinds for kinds in ufunc.types if kinds.startswith("d" * ufunc.nin + "->")]
            if floats and "d" in floats[0].split(">")[1]:
                found.append(name)
    return found


@pytest.mark.parametrize("name", ufuncs_of_floats())
def test_zeros_of_ufuncs(name: str) -> None:
    ufunc = getattr(np, name)
    operands = [np.array(column) for column in zip(*itertools.product(NUMBERS, repeat=ufunc.nin), strict=True)]
    turned = operands[::-1]
    with np.errstate(all="ignore"):
        for given in (operands, turned):
            want = ufunc(*given)
            for got in (nb.jit(ufunc)(*given), ufunc(*map(nb.Tensor, given))):
                for ours, theirs in zip(
                    got if ufunc.nout > 1 else [got], want if ufunc.nout > 1 else [want], strict=True
                ):
                    assert_same_signs(ours, theirs, name)


# Not in the table: max and min of more zeros along contiguous memory, fmax, fmin, nanmax and sorting, whose sign
# depends on the vector length, the memory's layout and the CPU in NumPy. NumPy's are certain, and others here
# (design/0043): max and min along other axes and of float16, running ones, clipping by arrays, sum(initial=-0.0).
OF_LISTS: dict[str, Callable[[Any], Any]] = {
    "sum": np.sum,
    "sum of one row": lambda x: np.sum(x.reshape(1, -1), axis=0),
    "sum of one column": lambda x: x.reshape(-1, 1).sum(axis=1),
    "sum of two rows": lambda x: np.sum(np.stack([x, x]), axis=0),
    "add.reduce": np.add.reduce,
    "mean": np.mean,
    "average": np.average,
    "median": np.median,
    "nansum": np.nansum,
    "prod": np.prod,
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "var": np.var,
    "trapezoid": lambda x: (np.trapezoid if hasattr(np, "trapezoid") else np.trapz)(x),
    "dot": lambda x: np.dot(x, x),
    "einsum": lambda x: np.einsum("i->", x),
    "clip from 0": lambda x: np.clip(x, 0.0, None),
    "clip to 0": lambda x: np.clip(x, None, 0.0),
    "clip from -0": lambda x: np.clip(x, -0.0, None),
    "clip to -0": lambda x: np.clip(x, None, -0.0),
    "max from 0 on": lambda x: np.max(x.reshape(1, -1), axis=0, initial=0.0),
    "max from -0 on": lambda x: np.max(x.reshape(1, -1), axis=0, initial=-0.0),
    "min from 0 on": lambda x: np.min(x.reshape(1, -1), axis=0, initial=0.0),
    "min from -0 on": lambda x: np.min(x.reshape(1, -1), axis=0, initial=-0.0),
    "clip by two bounds": lambda x: np.clip(x, -0.0, 0.0),
    "maximum with the negative": lambda x: np.maximum(x, -x),
    "maximum of the negative": lambda x: np.maximum(-x, x),
    "minimum of the reverse": lambda x: np.minimum(x[::-1], x),
    "maximum of the reverse": lambda x: np.maximum(x, x[::-1]),
    "negated sum": lambda x: -(x + x),
    "difference": lambda x: -x - x,
    "product of negatives": lambda x: (-x) * (-x),
    "minus minus": lambda x: x - (-x),
    "less zero": lambda x: x - 0.0,
    "and minus zero": lambda x: x + -0.0,
    "and zero": lambda x: x + 0.0,
    "cube": lambda x: x**3,
    "rounded": lambda x: np.round(x, 1),
}


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("name", OF_LISTS)
def test_zeros_of_arrays(name: str) -> None:
    function = OF_LISTS[name]
    compiled = nb.jit(function)
    for dtype in (np.float64, np.float32, np.float16):
        for row in LISTS:
            x = np.array(row, dtype)
            want = function(x)
            assert_same_signs(compiled(x), want, f"{name} of {row}, compiled")
            assert_same_signs(np.asarray(function(nb.Tensor(x))), want, f"{name} of {row}")


@pytest.mark.parametrize("bound", ZEROS)
def test_a_clipped_zero_has_the_derivative_of_the_inside(bound: float) -> None:
    gradient = nb.grad(lambda x: np.sum(np.clip(x, bound, None)))
    np.testing.assert_array_equal(gradient(np.array([-1.0, -0.0, 0.0, 2.0])), [0, 1, 1, 1])


# ----- Arrays without axes -----

ROW = np.arange(3.0)
WITHOUT_AXES: dict[str, Callable[[Any], Any]] = {
    "s[...]": lambda s: s[...],
    "s[()]": lambda s: s[()],
    "copy": np.copy,
    "s.copy()": lambda s: s.copy(),
    "reshape": lambda s: np.reshape(s, ()),
    "T": lambda s: s.T,
    "astype": lambda s: s.astype(np.float32),
    "zeros_like": np.zeros_like,
    "where": lambda s: np.where(s > 0, s, 0.0),
    "squeeze": lambda s: np.squeeze(s[None]),
    "broadcast_to": lambda s: np.broadcast_to(s, ()),
    "x[0, ...]": lambda s: (ROW * s)[0, ...],
    "x[0]": lambda s: (ROW * s)[0],
    "s * 2": lambda s: s * 2,
    "-s": lambda s: -s,
    "sin": np.sin,
    "sum": lambda s: np.sum(ROW * s),
    "sum along an axis": lambda s: (ROW * s).sum(axis=0),
    "max": lambda s: np.max(ROW * s),
    "mean": lambda s: np.mean(ROW * s),
    "dot": lambda s: np.dot(ROW * s, ROW),
    "matmul": lambda s: (ROW * s) @ ROW,
    "einsum": lambda s: np.einsum("i->", ROW * s),
    "take": lambda s: np.take(ROW * s, 1),
    "det": lambda s: np.linalg.det(np.eye(2) * s),
    "norm": lambda s: np.linalg.norm(ROW * s),
    "median": lambda s: np.median(ROW * s),
    "clip": lambda s: np.clip(s, 0, 1),
}


@pytest.mark.parametrize("name", WITHOUT_AXES)
def test_arrays_without_axes_are_arrays_and_scalars_are_scalars(name: str) -> None:
    function, s = WITHOUT_AXES[name], np.array(2.0)
    want = function(s)
    step = nb.jit(function)
    results = [step(s), step(s), nb.vjp(function, s)[0], nb.jvp(function, s, s)[0]]
    if name != "zeros_like":
        results.append(nb.value_and_grad(function)(s)[0])
    for got in results:
        assert isinstance(got, np.ndarray) == isinstance(want, np.ndarray)
        assert got.shape == () and got.dtype == want.dtype and got == want


def test_aminmax_leaves_nan_out() -> None:
    x = nb.Tensor([[3.0, np.nan, -1.0], [np.nan, np.nan, np.nan]])
    least, greatest = nb.ops.aminmax(x, axis=1)
    np.testing.assert_array_equal(least.asnumpy(), [-1.0, np.nan])
    np.testing.assert_array_equal(greatest.asnumpy(), [3.0, np.nan])
    kept = nb.ops.aminmax(x[:1], axis=1, keepdims=True)[1]
    assert kept.shape == (1, 1)
    gradient = nb.grad(lambda v: nb.ops.aminmax(v, axis=None)[1])(np.array([1.0, np.nan, 5.0]))
    np.testing.assert_array_equal(gradient, [0, 0, 1])


@pytest.mark.parametrize("name", "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 rfftn hfft ihfft".split())
def test_zeros_of_spectra(name: str) -> None:
    function = getattr(np.fft, name)
    for given in (np.ones((2, 4)), -np.ones((2, 4)), np.eye(4), np.array([[1.0, 2.0, 3.0, 4.0]]), np.zeros((2, 4))):
        for dtype in (np.float32, float):
            assert_same_signs(nb.jit(function)(given.astype(dtype)), function(given.astype(dtype)), name)
