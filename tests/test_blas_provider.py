"""The library that multiplies matrices: what is found, what is refused, and that a choice holds."""

from __future__ import annotations

import ctypes
import ctypes.util
import subprocess
import sys

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler.matrices import blas_provider
from nbgrad.errors import ArgumentError

ALONE = """
import ctypes, numpy as np, nbgrad as nb
from nbgrad.compiler.matrices import blas_guard, blas_provider
from nbgrad.info import info
nb.set_blas("numpy")
nb.set_blas("numpy")
for dtype, tolerance in (("float32", 1e-4), ("float64", 1e-12)):
    a, b = (np.random.default_rng(k).standard_normal((70, 70)).astype(dtype) for k in (0, 1))
    for function in (lambda a, b: a @ b, lambda a, b: a.T @ b, lambda a, b: a @ b.T):
        np.testing.assert_allclose(nb.jit(function)(a, b), function(a, b), atol=tolerance)
large = np.random.default_rng(2).standard_normal((500, 500))
threads = ctypes.CFUNCTYPE(ctypes.c_int)(blas_provider.provider().get)
before = threads()
nb.set_num_threads(1)
alone = nb.jit(lambda a: a @ a)(large)
nb.set_num_threads(2)
np.testing.assert_array_equal(nb.jit(lambda a: a @ a)(large), alone)
assert threads() == before and not blas_guard.guard()[[blas_guard.LOCK, blas_guard.COUNT]].any()
assert dict(info())["blas of products"] == "numpy"
try:
    nb.set_blas("scipy")
except nb.errors.ArgumentError as error:
    assert "too late" in str(error)
else:
    raise AssertionError
"""


@pytest.mark.skipif(not [*blas_provider._of_numpy()], reason="NumPy has no BLAS of its own here")
def test_the_blas_of_numpy() -> None:
    subprocess.run([sys.executable, "-c", ALONE], check=True, timeout=120)


@pytest.fixture
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    """No product is compiled yet."""
    monkeypatch.setattr(blas_provider._State, "fixed", False)
    monkeypatch.setattr(blas_provider._State, "chosen", None)


REFUSED = {
    "no such file": ("/nowhere/libblas.so", "no such file"),
    "cannot load": ("libnowhere.so.7", "cannot load"),
    "lacks products": (ctypes.util.find_library("c") or "libc.so.6", "no BLAS: it lacks sgemm"),
    "no name": (12, "name or the path"),
}


@pytest.mark.usefixtures("_early")
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    library, words = REFUSED[case]
    with pytest.raises(ArgumentError, match=words):
        nb.set_blas(library)  # pyright: ignore[reportArgumentType]
    assert blas_provider.chosen_name() == "scipy"


@pytest.mark.usefixtures("_early")
def test_a_package_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas_provider, "_of_mkl", lambda: iter(()))
    with pytest.raises(ArgumentError, match="pip install mkl"):
        nb.set_blas("mkl")


def test_wrong_products_are_refused() -> None:
    nothing = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)(lambda *arguments: None)
    with pytest.raises(ArgumentError, match="wrongly"):
        blas_provider._check("library", nothing, "float32")


def test_the_default_can_be_chosen_at_any_time() -> None:
    nb.jit(lambda a: a @ a)(np.eye(20))
    nb.set_blas("scipy")
