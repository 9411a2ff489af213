"""Decompositions by LAPACK without Python: NumPy's numbers, its errors, and no more than a program reads; slopes of
tanh without tanh."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import nbgrad as nb
from nbgrad.compiler.results_alone import with_results_alone
from nbgrad.functions.linalg.matrix_batches import MatrixError
from nbgrad.graph.ir import topological
from nbgrad.runtime import front

RNG = np.random.default_rng(29)

DECOMPOSITIONS: dict[str, Callable[[Any], Any]] = {
    "eigh": np.linalg.eigh,
    "eigh of the upper triangle": lambda a: np.linalg.eigh(a, "U"),
    "eigvalsh": np.linalg.eigvalsh,
    "eig": lambda a: tuple(part + 0j for part in np.linalg.eig(a)),
    "eigvals": lambda a: np.linalg.eigvals(a) + 0j,
    "svd": np.linalg.svd,
    "thin svd": lambda a: np.linalg.svd(a, full_matrices=False),
    "svdvals": lambda a: np.linalg.svd(a, compute_uv=False),
    "qr": np.linalg.qr,
    "complete qr": lambda a: np.linalg.qr(a, "complete"),
}
SQUARE = ("eigh", "eigh of the upper triangle", "eigvalsh", "eig", "eigvals")


def is_square(name: str) -> bool:
    return name in SQUARE


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_numbers_are_numpys(name: str, dtype: Any) -> None:
    """Vectors with NumPy's signs; in float32 these, and the order of complex values, hang on the last digit."""
    normal = np.asarray if dtype == np.float64 else lambda a: np.sort(np.abs(a), axis=None)
    function = DECOMPOSITIONS[name]
    shapes = [(1, 1), (2, 2), (7, 7), (33, 33), (3, 6, 6), (2, 2, 5, 5)]
    if not is_square(name):
        shapes += [(7, 4), (4, 7), (70, 3), (3, 70), (2, 6, 5), (5, 1), (1, 5)]
    for shape in shapes:
        a = RNG.normal(size=shape).astype(dtype)
        if name.startswith("eigh") or name == "eigvalsh":
            a = a + np.swapaxes(a, -1, -2)
        found, expected = nb.jit(function)(a), function(a)
        pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        for one, other in pairs:
            assert one.dtype == other.dtype
            assert_allclose(normal(one), normal(other), atol=1e-11 if dtype == np.float64 else 2e-3)


@pytest.mark.parametrize("name", DECOMPOSITIONS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_undefined_elements_are_numpys_matter(name: str, value: float) -> None:
    a = np.eye(8)
    a[5, 3] = a[3, 5] = value
    function = DECOMPOSITIONS[name]
    try:
        expected = function(a)
    except np.linalg.LinAlgError as error:
        with pytest.raises(MatrixError, match=str(error)):
            nb.jit(function)(a)
        assert_allclose(nb.jit(function)(np.eye(8) * 2.0)[0], function(np.eye(8) * 2.0)[0])
    else:
        assert_array_equal(nb.jit(function)(a), expected)


@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_empty_matrices(name: str) -> None:
    function = DECOMPOSITIONS[name]
    a = np.zeros((0, 0)) if is_square(name) else np.zeros((3, 0))
    found, expected = nb.jit(function)(a), function(a)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    assert all(one.shape == other.shape for one, other in pairs)


READ: dict[str, tuple[Callable[[Any], Any], str]] = {
    "values of eigh": (lambda a: np.linalg.eigh(a)[0], "eigvalsh"),
    "some values of eigh": (lambda a: np.linalg.eigh(a)[0][2:5] * 2, "eigvalsh"),
    "values of eigh backwards": (lambda a: np.linalg.eigh(a)[0][::-1] * 2, "eigvalsh"),
    "values of complex matrices": (lambda a: np.linalg.eigh(a * (1 + 0j))[0][1:], "eigvalsh"),
    "values of eigh and a vector": (lambda a: np.linalg.eigh(a)[0] + np.linalg.eigh(a)[1][0], "eigh"),
    "values of svd": (lambda a: np.sum(np.linalg.svd(a)[1]), "svdvals"),
    "nuclear norm": (lambda a: np.linalg.norm(a, "nuc"), "svdvals"),
    "vectors of eigh": (lambda a: np.linalg.eigh(a)[1], "eigh"),
    "some values of svd": (lambda a: np.linalg.svd(a, full_matrices=False)[1][1:3] * 2, "svdvals"),
    "values of svd and left vectors": (lambda a: np.linalg.svd(a)[0][:, :6] * np.linalg.svd(a)[1][:6], "svd"),
    "values of svd and a right vector": (lambda a: np.linalg.svd(a)[2][0, :6] * np.linalg.svd(a)[1][:6], "svd"),
    "gradient of eigvalsh": (lambda a: nb.grad(lambda a: np.sum(np.linalg.eigvalsh(a) ** 2))(a), "eigh"),
    "gradient of a norm": (lambda a: nb.grad(lambda a: np.linalg.norm(a, 2))(a), "svd"),
}


@pytest.fixture
def found_by(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """The library functions of a compiled function, and the shapes of the results of its rotations."""
    seen: list[Any] = []

    def noted(outputs: list[Any]) -> list[Any]:
        seen[:] = with_results_alone(outputs)
        return list(seen)

    monkeypatch.setattr(front, "with_results_alone", noted)

    def ask(function: Callable[[Any], Any], shape: tuple[int, ...]) -> list[Any]:
        a = RNG.normal(size=shape)
        nb.jit(function)(a + a.T if shape[0] == shape[1] else a)
        decompositions = [node for node in topological(seen) if node.name in ("host", "symmetric_eigen")]
        return [node.params[0].name if node.name == "host" else node.shape for node in decompositions]

    return ask


@pytest.mark.parametrize("name", READ)
def test_programs_find_what_they_read(name: str, found_by: Callable[..., list[Any]]) -> None:
    function, expected = READ[name]
    for shape in [(8, 8), (9, 6)] if "svd" in name or "norm" in name else [(8, 8)]:
        assert found_by(function, shape) == [expected]
        if not name.startswith("gradient"):
            a = np.cos(np.add.outer(np.arange(shape[0]), np.arange(shape[1])) ** 2)
            assert_allclose(nb.jit(function)(a), function(a), atol=1e-12)


def test_rotations_find_values_alone(found_by: Callable[..., list[Any]]) -> None:
    assert found_by(np.linalg.eigvalsh, (3, 3)) == [(1, 3)]
    a = RNG.normal(size=(4, 4))
    assert_allclose(nb.jit(lambda a: np.linalg.eigvalsh(a, "U"))(a), np.linalg.eigvalsh(a, "U"), rtol=1e-13)
    assert found_by(nb.grad(lambda a: np.sum(np.linalg.eigvalsh(a) ** 2)), (3, 3)) == [(1, 12)]


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (6, 6)])
def test_pseudo_inverses_and_least_squares(shape: tuple[int, int]) -> None:
    a, b = RNG.normal(size=shape), RNG.normal(size=(shape[0], 2))
    deficient = a.copy()
    deficient[:, 0] = deficient[:, -1]
    for matrix in (a, deficient):
        assert_allclose(nb.jit(np.linalg.pinv)(matrix), np.linalg.pinv(matrix), atol=1e-12)
        found = np.linalg.lstsq(nb.Tensor(matrix), b, rcond=None)
        for one, other in zip(found, np.linalg.lstsq(matrix, b, rcond=None), strict=True):
            assert_allclose(np.asarray(one), other, atol=1e-12)


def test_threads_have_scratch_memory_of_their_own() -> None:
    matrices = [RNG.normal(size=(20, 20)) for _ in range(8)]
    function = nb.jit(lambda a: np.linalg.svd(a)[1])
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for found, a in zip(pool.map(function, matrices), matrices, strict=True):
                assert_allclose(found, np.linalg.svd(a)[1], rtol=1e-12)


@pytest.mark.parametrize(("dtype", "precise"), [(np.float64, 1e-15), (np.float32, 6e-7)])
def test_slopes_of_tanh_alone_are_precise_far_out(dtype: Any, precise: float) -> None:
    """1 - tanh(x)**2 is 4e-35 at 40, where tanh(x) is 1."""
    x = np.array([0.0, -0.0, 1e-9, -0.3, 0.7, 3.0, -9.0, 40.0, -42.0], dtype)
    exact = [float(mpmath.sech(mpmath.mpf(float(v))) ** 2) for v in x]
    weights = np.arange(1, 10, dtype=dtype)
    slope = nb.jit(nb.grad(lambda x: np.sum(np.tanh(x) * weights)))
    assert_allclose(slope(x), exact * weights, rtol=precise)
    assert_array_equal(slope(np.array([np.inf, -np.inf, np.nan] * 3, dtype)), [0, 0, np.nan] * 3)


TANH: dict[str, tuple[Callable[[Any], Any], int]] = {
    "its slope": (nb.grad(lambda x: np.sum(np.tanh(x))), 0),
    "the slope of half of an angle": (nb.grad(lambda x: np.sum(np.tanh(x / 2) * x.size)), 0),
    "both": (nb.value_and_grad(lambda x: np.sum(np.tanh(x))), 1),
    "its square": (nb.grad(lambda x: np.sum(np.tanh(x) ** 2)), 1),
    "a factor": (lambda x: (1 - np.tanh(x)) * (1 + np.tanh(x)) + (1 - np.tanh(x)), 1),
    "other numbers": (lambda x: (2 - np.tanh(x)) * (1 + np.tanh(x)), 1),
    "the factors given": (lambda x: (1 - np.tanh(x), (1 - np.tanh(x)) * (1 + np.tanh(x))), 1),
    "turned round": (lambda x: (np.tanh(x) - 1) * (1 + np.tanh(x)), 1),
    "twice the same": (lambda x: (1 - np.tanh(x)) * (1 - np.tanh(x)), 1),
}


@pytest.mark.parametrize("name", TANH)
def test_tanh_is_computed_where_it_is_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, count = TANH[name]
    seen: list[Any] = []

    def noted(outputs: list[Any]) -> list[Any]:
        seen[:] = with_results_alone(outputs)
        return list(seen)

    monkeypatch.setattr(front, "with_results_alone", noted)
    x = np.linspace(-2, 2, 9)
    found = nb.jit(function)(x)
    assert sum(node.name == "tanh" for node in topological(seen)) == count
    for one, other in zip(flat(found), flat(function(x)), strict=True):
        assert_allclose(one, other, rtol=1e-14)


def flat(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]
