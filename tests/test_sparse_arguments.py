"""Arguments and results of sparse Jacobians and Hessians: kinds, containers, recordings, pickles, bad input."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError, DtypeError, ShapeError, TracedValueError

from .test_sparse import differences, five_points, points

# ----- Arguments and results -----


def test_several_arguments_and_results_follow_one_another() -> None:
    def fn(a: Any, scale: float, b: Any) -> Any:
        return {"x": a["u"] * scale * b[0], "y": (a["v"].T, b[1:])}

    a = {"u": np.array([1.0, 2.0]), "v": np.arange(6.0).reshape(2, 3)}
    b = np.array([3.0, 4.0])
    found = nb.sparse_jacobian(fn, (0, 2))(a, 2.0, b)
    expected = np.zeros((9, 10))
    expected[0, 0] = expected[1, 1] = 6.0
    expected[0, 8], expected[1, 8] = 2.0, 4.0
    for k in range(6):
        expected[2 + k, 2 + np.arange(6).reshape(2, 3).T.ravel()[k]] = 1.0
    expected[8, 9] = 1.0
    np.testing.assert_array_equal(found.toarray(), expected)
    assert found.nnz == 11
    np.testing.assert_array_equal(nb.sparse_jacobian(fn, 2)(a, 2.0, b).toarray(), expected[:, 8:])
    np.testing.assert_array_equal(nb.sparse_jacobian(fn, 2)(a, scale=2.0, b=b).toarray(), expected[:, 8:])


def test_aux_tensors_and_dtypes() -> None:
    fn = nb.sparse_jacobian(lambda x: (x[1:] * x[:-1], np.sum(x)), has_aux=True)
    x = np.array([1.0, 2.0, 3.0])
    matrix, total = fn(x)
    assert type(total) is np.float64 and total == 6.0
    np.testing.assert_array_equal(matrix.toarray(), [[2, 1, 0], [0, 3, 2]])
    for dtype, kept in ((np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64)):
        for value in (x.astype(dtype), nb.Tensor(x.astype(dtype))):
            matrix, total = fn(value)
            assert matrix.dtype == kept and type(total) is (nb.Tensor if isinstance(value, nb.Tensor) else dtype)
            np.testing.assert_array_equal(matrix.toarray(), [[2, 1, 0], [0, 3, 2]])
    mixed = nb.sparse_jacobian(lambda x, y: x * y, (0, 1))(np.ones(2, np.float32), np.full(2, 3.0))
    assert mixed.dtype == np.float64
    np.testing.assert_array_equal(mixed.toarray(), [[3, 0, 1, 0], [0, 3, 0, 1]])


def test_complex_results_of_real_arguments() -> None:
    def fn(x: Any) -> Any:
        return np.concatenate([np.exp(1j * x[1:]) * x[:-1], np.sum(x)[None] * 2j])

    x = points()[0]
    expected = np.zeros((8, 8), complex)
    for k in range(7):
        expected[k, k], expected[k, k + 1] = np.exp(1j * x[k + 1]), 1j * np.exp(1j * x[k + 1]) * x[k]
    expected[7] = 2j
    found = nb.sparse_jacobian(fn)(x)
    assert found.dtype == np.complex128
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-13)
    power = nb.sparse_hessian(lambda x: np.sum(np.abs(np.exp(1j * x) * x) ** 2))(x)
    np.testing.assert_allclose(power.toarray(), 2 * np.eye(8), rtol=1e-12, atol=1e-14)


def test_numbers_and_empty_arrays() -> None:
    assert nb.sparse_jacobian(lambda x: x**2)(3.0).toarray().tolist() == [[6.0]]
    assert nb.sparse_jacobian(lambda x: x**2)(np.float64(3.0)).toarray().tolist() == [[6.0]]
    assert nb.sparse_jacobian(lambda x: x[:, None] * np.ones(2))(np.ones(0)).shape == (0, 0)
    assert nb.sparse_jacobian(lambda x: np.ones(3) * np.sum(x))(np.ones(0)).shape == (3, 0)
    assert nb.sparse_jacobian(lambda x: x[:0])(np.ones(4)).shape == (0, 4)
    assert nb.sparse_hessian(lambda x: x**3)(2.0).toarray().tolist() == [[12.0]]
    assert nb.sparse_hessian(lambda x: np.sum(x))(np.ones(3)).nnz == 0


def test_the_result_is_the_callers() -> None:
    jacobian = nb.sparse_jacobian(np.square)
    first = jacobian(np.array([1.0, 0.0]))
    first.eliminate_zeros()
    first.indices[:] = 1
    assert jacobian(np.array([1.0, 0.0])).indices.tolist() == [0, 1]


def test_one_recording_serves_many_calls() -> None:
    calls = []

    def fn(x: Any) -> Any:
        calls.append(x.shape)
        return x[1:] * x[:-1]

    jacobian = nb.sparse_jacobian(fn)
    for n in (5, 5, 7, 5, 7):
        jacobian(np.arange(float(n)))
    assert calls == [(5,), (7,)]


def test_branches_and_positions_from_values_are_checked() -> None:
    def branch(x: Any) -> Any:
        return x[:3] * 2.0 if x[0] > 0 else x[1:] ** 2

    def moved(x: Any) -> Any:
        return x[np.argmax(x)] * x

    def looked_up(x: Any, index: Any) -> Any:
        return x[index] ** 2

    branching, moving = nb.sparse_jacobian(branch), nb.sparse_jacobian(moved)
    for x in ([1.0, 5.0, 3.0, 4.0], [-1.0, 2.0, 7.0, 4.0], [1.0, 2.0, 3.0, 9.0]):
        for jacobian, fn in ((branching, branch), (moving, moved)):
            np.testing.assert_allclose(jacobian(np.array(x)).toarray(), differences(fn, np.array(x)), atol=1e-7)
    looking = nb.sparse_jacobian(looked_up)
    x = np.array([1.0, 2.0, 3.0])
    for index in ([0, 0], [2, 1], [1, 2], [0, 0]):
        expected = differences(lambda x, index=index: x[index] ** 2, x)
        found = looking(x, np.array(index))
        np.testing.assert_allclose(found.toarray(), expected, atol=1e-8)
        assert found.nnz == 2


def test_positions_that_always_differ_do_not_pile_up() -> None:
    jacobian = nb.sparse_jacobian(lambda x: np.sort(x) ** 2)
    rng = np.random.default_rng(0)
    for _ in range(40):
        x = rng.standard_normal(6)
        order = np.argsort(x)
        expected = np.zeros((6, 6))
        expected[np.arange(6), order] = 2 * x[order]
        np.testing.assert_allclose(jacobian(x).toarray(), expected)
    assert len(jacobian._entries.programs()) <= 17


def test_copies_and_pickles() -> None:
    jacobian = nb.sparse_jacobian(np.square, 0)
    jacobian(np.ones(2))
    for other in (copy.copy(jacobian), copy.deepcopy(jacobian), pickle.loads(pickle.dumps(jacobian))):
        assert other(np.array([1.0, 3.0])).diagonal().tolist() == [2.0, 6.0]


def test_fields_on_one_grid_share_colors() -> None:
    """Two substances that react and diffuse: an equation reads the unknowns of both by itself or
    with the other one, so that two products are enough."""

    def fn(u: Any, v: Any) -> Any:
        return five_points(u) + v, five_points(v) * u

    u = np.random.default_rng(0).standard_normal((12, 15))
    jacobian = nb.sparse_jacobian(fn, (0, 1))
    np.testing.assert_allclose(
        jacobian(u, 2 * u) @ np.ones(360),
        np.concatenate([part.ravel() for part in nb.jvp(fn, (u, 2 * u), (np.ones_like(u), np.ones_like(u)))[1]]),
        rtol=1e-12,
    )
    assert jacobian.products(u, u) == 2


def test_parameters_are_read_anew() -> None:
    weight = nb.Parameter(nb.Tensor(np.array([0.0, 2.0])), name="w")
    jacobian = nb.sparse_jacobian(lambda x: weight * x**2)
    x = nb.Tensor(np.array([1.0, 3.0]))
    assert jacobian(x).diagonal().tolist() == [0.0, 12.0]
    weight.set_data(nb.Tensor(np.array([1.0, 0.0])))
    assert jacobian(x).diagonal().tolist() == [2.0, 0.0]


def test_methods_and_names() -> None:
    class Model:
        scale = 3.0

        def residual(self, x: Any) -> Any:
            """What is left."""
            return self.scale * x

    jacobian = nb.sparse_jacobian(Model().residual)
    assert jacobian(np.ones(2)).diagonal().tolist() == [3.0, 3.0]
    assert vars(jacobian)["__name__"] == "residual" and jacobian.__doc__ == "What is left."


# ----- Bad input -----


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: nb.sparse_jacobian(3), DtypeError, "sparse_jacobian expects a function"),  # pyright: ignore
        (lambda: nb.sparse_hessian(None), DtypeError, "sparse_hessian expects a function"),  # pyright: ignore
        (lambda: nb.sparse_jacobian(np.sin, -1), ArgumentError, "must not be negative"),
        (lambda: nb.sparse_jacobian(np.sin, "x"), DtypeError, "grad_position must be an int"),
        (lambda: nb.sparse_jacobian(np.sin, has_aux=1), DtypeError, "has_aux must be a bool"),  # pyright: ignore
        (lambda: nb.sparse_jacobian(np.sin, 1)(np.ones(2)), ArgumentError, "grad_position 1 is out of range"),
        (lambda: nb.sparse_jacobian(np.sin)(np.arange(3)), DtypeError, "int64"),
        (lambda: nb.sparse_jacobian(lambda x: None)(np.ones(2)), DtypeError, "returned nothing"),
        (lambda: nb.sparse_jacobian(lambda x: np.argsort(x))(np.ones(2)), DtypeError, "no floating-point array"),
        (lambda: nb.sparse_jacobian(np.sin, has_aux=True)(np.ones(2)), ArgumentError, "must return a tuple"),
        (lambda: nb.sparse_hessian(np.sin)(np.ones(2)), ShapeError, r"returned float64 of shape \(2,\)"),
        (
            lambda: nb.sparse_hessian(lambda x: (x[0], x[1]))(np.ones(2)),
            ShapeError,
            r"returned float64 of shape \(\), float64",
        ),
        (lambda: nb.sparse_jacobian(np.sin)(np.ones(2) + 1j), DtypeError, "by a complex array"),
        (lambda: nb.sparse_hessian(lambda x: np.sum(x) * 1j)(np.ones(2)), ShapeError, "one real number"),
        (lambda: nb.jit(nb.sparse_jacobian(np.sin))(np.ones(2)), TracedValueError, "while a function is recorded"),
        (lambda: nb.grad(lambda x: nb.sparse_hessian(np.sum)(x).sum())(np.ones(2)), TracedValueError, "sparse_hessian"),
        (lambda: nb.sparse_jacobian(lambda x: x - np.mean(x))(np.ones(100_000)), ArgumentError, "not sparse"),
        (lambda: nb.sparse_jacobian(np.cumsum)(np.ones(100_000)), ArgumentError, "not sparse"),
    ],
)
def test_bad_input(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()
