"""Gradients of functions of matrices and of transforms are those that JAX and PyTorch give (recorded)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.functions.linalg.matrix_functions import expm

pytestmark = pytest.mark.unoptimized

FOUND = json.loads((Path(__file__).parent / "recorded" / "linear_algebra.json").read_text())["cases"]
WORDS = {
    "linalg": np.linalg,
    "fft": np.fft,
    "sum": np.sum,
    "abs": np.abs,
    "adjoint": lambda a: np.conj(a.T),
    "svd": lambda a: np.linalg.svd(a, full_matrices=False),
    "svdvals": lambda a: np.linalg.svd(a, compute_uv=False),
    "expm": expm,
    "eye": np.eye(3),
}


@pytest.mark.parametrize("library", ["Jax", "Torch"])
@pytest.mark.parametrize("name", FOUND)
def test_gradients(name, library):
    record = FOUND[name]
    shape = tuple(record["shape"])
    rng = np.random.RandomState(42)
    x = rng.uniform(-1, 1, shape)
    if name.endswith("complex"):
        x = x + 1j * rng.uniform(-1, 1, shape)
    weight = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    *steps, last = record["text"].split("; ")

    def function(a):
        names = {**WORDS, "weight": weight, "x": a}
        for step in steps:
            exec(step, names)
        return eval(last, names)

    value, found = nb.value_and_grad(function)(x)
    want = record[library]
    np.testing.assert_allclose(value, want["value"], rtol=1e-11)
    gradient = np.asarray(want["real"])
    if "imag" in want:
        gradient = gradient + 1j * np.asarray(want["imag"])
    if name.startswith(("eigvalsh", "eigh", "cholesky")):
        # Through h = x + adjoint(x) it does not matter that the others read both triangles.
        assert found.shape == shape
    np.testing.assert_allclose(found, gradient, rtol=1e-8, atol=1e-9 * np.abs(gradient).max())
