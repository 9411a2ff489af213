"""Complex functions of infinite parts, NaN and signed zeros: what C99's Annex G, and with it NumPy, gives.

NumPy is the reference on a grid of special parts. C99 leaves some signs open, where a part is NaN or the angle of an
infinite number is unknown; there, only sizes are compared.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import nbgrad as nb

PARTS = [0.0, -0.0, 0.5, 1.0, -1.0, 2.5, -2.5, 30.0, -30.0, 1e19, -1e19, np.inf, -np.inf, np.nan]
GRID = np.array([complex(x, y) for x, y in itertools.product(PARTS, PARTS)])
FUNCTIONS = "exp expm1 log log1p sqrt sinh cosh tanh sin cos tan arcsin arccos arctan arcsinh arccosh arctanh".split()
OPEN = {
    # What NumPy, or the library of C below it, has otherwise than Annex G or the array API standard.
    "tanh": lambda x, y: np.isinf(x) & (y != 0),
    "tan": lambda x, y: np.isinf(y) & (x != 0),
}


def unknown(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where signs are left open."""
    found = np.isnan(x) | np.isnan(y)
    if name in ("exp", "expm1", "sinh", "cosh", "tanh"):
        found |= ~np.isfinite(y)
    if name in ("sin", "cos", "tan"):
        found |= ~np.isfinite(x)
    return found | OPEN[name](x, y) if name in OPEN else found


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str, compiled: bool, dtype: type) -> None:
    z = GRID.astype(dtype)
    function = getattr(np, name)
    with np.errstate(all="ignore"):
        expected = function(z)
        if name == "expm1":  # NumPy's is NaN in both parts
            expected = np.where(abs(z.real) < 100, expected, np.exp(z) - 1).astype(dtype)
        if name == "arccosh":  # older libraries of C do not know the angle
            expected[(z.real == 0) & np.isnan(z.imag)] = complex(np.nan, np.pi / 2)
        found = nb.jit(function)(z) if compiled else function(nb.Tensor(z)).asnumpy()
    open_signs = unknown(name, z.real, z.imag)
    for part in ("real", "imag"):
        ours, theirs = getattr(found, part), getattr(expected, part)
        for k in range(z.size):
            same_size = np.isclose(abs(ours[k]), abs(theirs[k]), rtol=1e-5 if dtype is np.complex64 else 1e-13, atol=0)
            both_nan = np.isnan(ours[k]) and np.isnan(theirs[k])
            same_sign = open_signs[k] or np.signbit(ours[k]) == np.signbit(theirs[k])
            assert both_nan or (same_size and same_sign), (name, part, z[k], found[k], expected[k])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_symmetries(name: str) -> None:
    """f(conj z) = conj f(z), also in what is infinite, away from the cuts."""
    z = GRID[~np.isnan(GRID)]
    function = getattr(np, name)
    with np.errstate(all="ignore"):
        found, mirrored = function(nb.Tensor(z)).asnumpy(), function(nb.Tensor(np.conj(z))).asnumpy()
    np.testing.assert_array_equal(mirrored, np.conj(found))
