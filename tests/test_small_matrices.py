"""Many small matrices at once: products, factors, systems and eigenvalues, in blocks of as many as a vector has lanes.

Errors are measured as LAPACK's bounds are stated (residuals over the size of the operands), and not against other
results: nearly singular matrices are among the operands.
"""

from __future__ import annotations

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler.matrices import small_factors, small_products
from nbgrad.compiler.matrices.matrix_lanes import lanes_of
from nbgrad.graph import matrix_rows
from nbgrad.graph.builders import complete_pivots, lu, lu_solve
from nbgrad.graph.interpret import evaluate_node
from nbgrad.graph.ir import constant
from nbgrad.record.as_node import as_node, wrap

pytestmark = pytest.mark.unoptimized(but=16)

rng = np.random.default_rng(17)
EXTENTS = [1, 2, 3, 5, 6, 9, 16]
"""Rows: with loops written out, with loops of the code, fewer than a vector has lanes and more."""
DTYPES = ["float64", "float32"]


def compiled(function, *arrays):
    """The result of a function that is compiled for these arrays."""
    return np.asarray(nb.jit(function)(*arrays))


def resolution(dtype: str) -> float:
    return float(np.finfo(dtype).eps)


def size_of(a: np.ndarray) -> np.ndarray:
    """The largest row sum of each matrix."""
    return np.abs(a.astype(float)).sum(-1).max(-1)


def residual(left: np.ndarray, right: np.ndarray, scale: np.ndarray, dtype: str) -> float:
    """How many times the resolution two batches of matrices differ, for matrices of this size."""
    difference = np.abs(left.astype(float) - right.astype(float)).max((-1, -2))
    return float((difference / np.maximum(scale, 1e-300)).max()) / resolution(dtype)


def batch_of(n: int, dtype: str, many: int = 21) -> np.ndarray:
    """Random matrices, among them a nearly singular one, a permutation, and large and small ones."""
    a = rng.normal(size=(many, n, n))
    a[2] = np.eye(n)[::-1]
    a[3] *= 1e12
    a[4] *= 1e-12
    if n > 1:
        a[5, 1] = a[5, 0]
        a[5, 1, 0] *= 1 + 1000 * resolution(dtype)
    return a.astype(dtype)


# ----- Products -----

SHAPES = [(40, 3, 3, 3), (40, 5, 2, 7), (70, 2, 16, 16), (1, 300, 3, 5), (1, 257, 16, 2), (128, 1, 3, 1), (40, 4, 1, 4)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products(shape, dtype):
    batch, m, k, n = shape
    a, b = rng.normal(size=(batch, m, k)).astype(dtype), rng.normal(size=(batch, k, n)).astype(dtype)
    expected = a.astype(float) @ b.astype(float)
    scale = size_of(a) * np.abs(b).max((-1, -2)) * k
    turned_a, turned_b = (np.ascontiguousarray(np.swapaxes(x, 1, 2)) for x in (a, b))
    layouts = {
        "plain": (lambda a, b: a @ b, a, b),
        "right transposed": (lambda a, b: a @ np.swapaxes(b, 1, 2), a, turned_b),
        "left transposed": (lambda a, b: np.swapaxes(a, 1, 2) @ b, turned_a, b),
        "side by side": (lambda a, b: np.transpose(a @ b, (1, 0, 2)), a, b),
        "every second row": (lambda a, b: a[:, ::2] @ b, np.repeat(a, 2, axis=1), b),
    }
    for name, (function, *arrays) in layouts.items():
        found = compiled(function, *arrays)
        found = np.transpose(found, (1, 0, 2)) if name == "side by side" else found
        assert found.shape == expected.shape, name
        assert residual(found, expected, scale, dtype) < 1, name


def test_products_with_one_matrix_for_all():
    points, turn = rng.normal(size=(200, 4, 3)), rng.normal(size=(3, 3))
    np.testing.assert_allclose(compiled(lambda p, t: p @ t, points, turn), points @ turn, rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        compiled(lambda p, t: t @ np.swapaxes(p, 1, 2), points, turn), turn @ points.swapaxes(1, 2)
    )


def test_gradients_of_products():
    a, b, w = (rng.normal(size=(40, 3, 3)) for _ in range(3))
    found = nb.jit(nb.grad(lambda a, b: np.sum((a @ b) * w), (0, 1)))(a, b)
    np.testing.assert_allclose(found[0], w @ b.swapaxes(1, 2), atol=1e-13)
    np.testing.assert_allclose(found[1], a.swapaxes(1, 2) @ w, atol=1e-13)


# ----- Factors and systems -----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", EXTENTS)
def test_lu(n, dtype):
    a = batch_of(n, dtype)
    found = compiled(lambda a: wrap(lu(as_node(a))), a)
    lower, upper = np.tril(found[:, :n]), np.triu(found[:, :n], 1) + np.eye(n)
    order = np.abs(found[:, n]).astype(int) - 1
    columns = np.take_along_axis(a, np.broadcast_to(order[:, None], a.shape), 2)
    growth = np.abs(upper).max((-1, -2))
    assert growth.max() == 1, "a pivot was not the largest of its row"
    assert residual(lower.astype(float) @ upper.astype(float), columns, n * size_of(a), dtype) < 4
    np.testing.assert_array_equal(
        np.take_along_axis(found[:, n + 1], order, 1), np.broadcast_to(np.arange(1, n + 1), order.shape)
    )
    signs = np.prod(np.sign(found[:, n]), 1)
    np.testing.assert_array_equal(signs, [np.round(np.linalg.det(np.eye(n)[one])) for one in order])


@pytest.mark.parametrize("columns", [1, 2, 16])
@pytest.mark.parametrize("n", EXTENTS)
def test_solve(n, columns):
    dtype = DTYPES[n % 2]
    a, b = batch_of(n, dtype), rng.normal(size=(21, n, columns)).astype(dtype)
    for name, matrices in {"plain": a, "adjoint": np.ascontiguousarray(a.swapaxes(1, 2))}.items():
        factors = compiled(lambda a: wrap(lu(as_node(a))), a)
        x = compiled(lambda f, b, t=name == "adjoint": wrap(lu_solve(as_node(f), as_node(b), t)), factors, b)
        scale = n * np.maximum(size_of(matrices) * np.abs(x).max((-1, -2)), 1)
        assert residual(matrices.astype(float) @ x, b, scale, dtype) < 8, name


@pytest.mark.parametrize("n", [2, 3, 4])
def test_gradients_of_solve_inverse_and_determinant(n):
    a, b, w = (rng.normal(size=(19, n, n)) for _ in range(3))
    a += 2 * np.eye(n)
    inverse = np.linalg.inv(a).swapaxes(1, 2)
    got = nb.jit(nb.grad(lambda a, b: np.sum(np.linalg.solve(a, b) * w), (0, 1)))(a, b)
    np.testing.assert_allclose(got[1], inverse @ w, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got[0], -inverse @ w @ np.linalg.solve(a, b).swapaxes(1, 2), rtol=1e-8, atol=1e-8)
    got = nb.jit(nb.grad(lambda a: np.sum(np.linalg.inv(a) * w)))(a)
    np.testing.assert_allclose(got, -inverse @ w @ inverse, rtol=1e-8, atol=1e-8)
    got = nb.jit(nb.grad(lambda a: np.sum(np.linalg.det(a))))(a)
    np.testing.assert_allclose(got, np.linalg.det(a)[:, None, None] * inverse, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("place", [0, 6, 7, 8, 20])
def test_a_singular_matrix_is_refused(place):
    a = rng.normal(size=(21, 2, 2))
    a[place] = [[1.0, 3.0], [3.0, 9.0]]
    for function in (np.linalg.inv, lambda a: np.linalg.solve(a, np.ones((21, 2, 1)))):
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            nb.jit(function)(a)
    assert compiled(np.linalg.det, np.pad(a, [(0, 0), (0, 2), (0, 2)]))[place] == 0


def test_matrices_that_numpy_finds_singular():
    """Rows that are small multiples of each other leave a pivot of exactly 0: products are rounded before they are
    subtracted, as LAPACK does it."""
    a = rng.integers(1, 9, (200, 2, 2)).astype(float)
    a[:, 1] = a[:, 0] * rng.integers(-3, 4, (200, 1))
    factors = compiled(lambda a: wrap(lu(as_node(a))), a)
    assert (factors[:, 1, 1] == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", EXTENTS)
def test_cholesky(n, dtype):
    half = rng.normal(size=(21, n, n))
    a = (half @ half.swapaxes(1, 2) + np.eye(n)).astype(dtype)
    a[3] *= np.asarray(1e-12, dtype)
    read = np.tril(a) + np.triu(np.full_like(a, np.nan), 1)
    found = compiled(np.linalg.cholesky, read)
    assert not np.triu(found, 1).any()
    assert residual(found.astype(float) @ found.swapaxes(1, 2), a, n * size_of(a), dtype) < 2
    a[20, n - 1, n - 1] = -1
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        nb.jit(np.linalg.cholesky)(a)


@pytest.mark.parametrize("n", [1, 2, 4, 6, 11])
def test_complete_pivots(n):
    a = rng.integers(-3, 4, (21, n, n)).astype(float)
    a[1], a[2, 0] = 0, 0
    found = compiled(lambda a: wrap(complete_pivots(as_node(a))), a)
    np.testing.assert_array_equal(found, evaluate_node(complete_pivots(constant(a)), [a]))


# ----- Eigenvalues -----


def symmetric(values: np.ndarray) -> np.ndarray:
    """Matrices with known eigenvalues."""
    turns, _ = np.linalg.qr(rng.normal(size=(*values.shape, values.shape[-1])))
    a = turns * values[:, None] @ turns.swapaxes(1, 2)
    return (a + a.swapaxes(1, 2)) / 2


@pytest.mark.parametrize("many", [1, 21])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_eigenvalues(n, dtype, many):
    values = np.sort(rng.normal(size=(many, n)))
    values[0] = np.arange(n)
    if many > 1:
        values[1], values[2], values[3] = 0, 1, 10.0 ** np.arange(n)
        values[4] *= 1e-30
        values[5] *= 1e30
    a = symmetric(values).astype(dtype)
    read = np.tril(a) + np.triu(np.full_like(a, np.nan), 1)
    scale = np.maximum(np.abs(values).max(-1), 1e-300)[:, None]
    for found in (
        compiled(np.linalg.eigvalsh, read),
        compiled(lambda a: np.linalg.eigvalsh(a, "U"), np.ascontiguousarray(read.swapaxes(1, 2))),
    ):
        assert found.dtype == dtype
        assert (np.abs(found - values) / scale).max() < 8 * (n + 1) * resolution(dtype)


@pytest.mark.parametrize("many", [1, 21])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_gradients_of_eigenvalues(n, many):
    a, w = symmetric(np.sort(rng.normal(size=(many, n)))), rng.normal(size=(many, n))
    _, vectors = np.linalg.eigh(a)
    both = (vectors * w[:, None]) @ vectors.swapaxes(1, 2)
    got = nb.jit(nb.grad(lambda a: np.sum(np.linalg.eigvalsh(a) * w)))(a)
    np.testing.assert_allclose(got, np.tril(both) + np.tril(both.swapaxes(1, 2), -1), atol=1e-9)


@pytest.mark.parametrize("many", [1, 21])
def test_eigenvalues_of_what_is_no_number(many):
    a = np.broadcast_to(np.eye(3), (many, 3, 3)).copy()
    for value in (np.nan, np.inf):
        a[-1, 1, 1] = value
        found = compiled(np.linalg.eigvalsh, a)
        assert np.isnan(found[-1]).all()
        assert many == 1 or (found[:-1] == 1).all()


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e300])
def test_eigenvalues_at_the_ends_of_the_range(scale):
    a = np.broadcast_to(np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 5.0]]) * scale, (16, 3, 3))
    for found in (compiled(np.linalg.eigvalsh, a), compiled(np.linalg.eigvalsh, a[:1])):
        np.testing.assert_allclose(found / scale, np.broadcast_to([1.0, 3.0, 5.0], found.shape), rtol=1e-13)


# ----- Blocks -----

PROGRAMS = {
    "solve": lambda a: np.linalg.solve(a, a[:, :, :1]),
    "eigvalsh": np.linalg.eigvalsh,
    "cholesky": lambda a: np.linalg.cholesky(a @ np.swapaxes(a, 1, 2) + np.eye(3)),
    "det": lambda a: np.linalg.slogdet(a)[1],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_result_does_not_depend_on_the_others_of_its_block(name):
    a = rng.normal(size=(37, 3, 3))
    order = rng.permutation(37)
    program = nb.jit(PROGRAMS[name])
    np.testing.assert_array_equal(program(a)[order], program(a[order]))
    np.testing.assert_array_equal(compiled(PROGRAMS[name], a[:20]), program(a)[:20])


def test_threads_give_the_same_digits():
    a = rng.normal(size=(50_000, 3, 3))
    threads = nb.get_num_threads()
    program = nb.jit(lambda a: np.linalg.solve(a, (a @ a)[:, :, :1]))
    try:
        nb.set_num_threads(1)
        alone = program(a)
        nb.set_num_threads(2)
        np.testing.assert_array_equal(alone, program(a))
    finally:
        nb.set_num_threads(threads)


def test_systems_within_vmap():
    a, b = rng.normal(size=(40, 3, 3)) + 2 * np.eye(3), rng.normal(size=(40, 3))
    found = nb.jit(nb.vmap(np.linalg.solve))(a, b)
    np.testing.assert_allclose(found, np.linalg.solve(a, b[:, :, None])[:, :, 0], rtol=1e-10)


@pytest.mark.parametrize("shape", [(0, 3, 3), (30, 0, 0)])
def test_empty_batches(shape):
    a = np.ones(shape)
    assert compiled(np.linalg.inv, a).shape == shape
    assert compiled(np.linalg.eigvalsh, a).shape == shape[:-1]
    assert compiled(lambda a: a @ a, a).shape == shape


def test_few_or_large_matrices_go_to_libraries():
    def node_of(many, n):
        return lu(constant(np.ones((many, n, n))))

    most = small_factors.LARGEST
    assert small_factors.is_small(node_of(small_factors.FEWEST, most))
    assert not small_factors.is_small(node_of(small_factors.FEWEST - 1, most))
    assert not small_factors.is_small(node_of(small_factors.FEWEST, most + 1))
    assert small_factors.block_count(node_of(17, 2)) == -(-17 // lanes_of("float64"))
    assert most == small_products.LARGEST


@pytest.mark.parametrize(
    "function",
    [np.linalg.inv, np.linalg.det, np.linalg.cholesky, lambda a: np.linalg.solve(a, a[..., :1]), np.linalg.slogdet],
)
def test_conditions_on_many_small_matrices_are_compiled(function, monkeypatch):
    """Whether all are regular is asked while the function is recorded; Python would go through them row by row."""

    def refuse(*_):
        message = "factors in Python"
        raise AssertionError(message)

    for name in ("_eliminated", "_substituted", "_wide"):
        monkeypatch.setattr(matrix_rows, name, refuse)

    def total(a):
        return np.sum(function(a)[1] if function is np.linalg.slogdet else function(a))

    a = np.eye(4) + np.linspace(0.0, 0.1, 20)[:, None, None]
    step = 1e-6 * np.cos(np.arange(a.size)).reshape(a.shape)
    step += step.swapaxes(1, 2)
    gradient = nb.grad(total)(a)
    np.testing.assert_allclose(np.sum(gradient * step), (total(a + step) - total(a - step)) / 2, rtol=1e-5)
