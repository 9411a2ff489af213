"""Linear systems, inverses, determinants and Cholesky factors agree with NumPy, SciPy and exact arithmetic."""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.linalg

import nbgrad as nb
from nbgrad import ops
from nbgrad.errors import RangeError, ShapeError
from nbgrad.functions.linalg.factorisations import MatrixError, solve_triangular
from nbgrad.graph import matrix_rows
from nbgrad.graph.builders import complete_pivots, lu, triangular_solve
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import constant
from nbgrad.runtime.evaluate import compute

from .agreement import agree, check_derivative
from .plane import check

pytestmark = pytest.mark.unoptimized

rng = np.random.default_rng(3)


def regular(*shape: int) -> np.ndarray:
    """Random matrices whose condition is small."""
    return rng.normal(size=shape) + 3 * np.eye(shape[-1])


def positive(*shape: int) -> np.ndarray:
    """Random symmetric positive definite matrices."""
    a = rng.normal(size=shape)
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])


def of_rank(n: int, rank: int) -> np.ndarray:
    """Small whole numbers, so that the rank is exact."""
    return (rng.integers(-3, 4, (n, rank)) @ rng.integers(-3, 4, (rank, n))).astype(float)


SHAPES = [(1, 1), (2, 2), (3, 3), (5, 5), (0, 0), (70, 70), (4, 3, 3), (2, 3, 6, 6), (0, 3, 3), (2, 0, 0), (90, 4, 4)]


# ----- Values -----


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values(shape, dtype):
    a, spd = regular(*shape).astype(dtype), positive(*shape).astype(dtype)
    # What NumPy itself gets wrong in float32 grows with the extent.
    tolerance = None if dtype == "float64" else 2e-4
    for function in (np.linalg.inv, np.linalg.slogdet):
        agree(function, a, tolerance=tolerance)
    if shape[-1] < 20:
        agree(np.linalg.det, a, tolerance=tolerance and 1e-3)
    agree(np.linalg.cholesky, spd, tolerance=tolerance)
    agree(np.linalg.cholesky, spd, upper=True, tolerance=tolerance)
    for right in ((shape[-1],), (shape[-1], 2), (*shape[:-1], 3), (shape[-1], 0)):
        agree(np.linalg.solve, a, rng.normal(size=right).astype(dtype), tolerance=tolerance)


def test_right_hand_sides_broadcast():
    agree(np.linalg.solve, regular(4, 3, 3), rng.normal(size=(2, 1, 3, 2)))
    agree(np.linalg.solve, regular(3, 3), rng.normal(size=(5, 3, 2)))
    agree(np.linalg.solve, regular(3, 3).astype(np.float32), rng.normal(size=3))


def test_integers_and_half_precision():
    whole = np.array([[2, 1], [1, 3]])
    for function in (np.linalg.inv, np.linalg.det, np.linalg.cholesky):
        got = function(nb.Tensor(whole))
        # Integers become the float that their quotients are.
        assert got.dtype == (nb.Tensor(whole) / nb.Tensor(whole)).dtype
        np.testing.assert_allclose(np.asarray(got), function(whole), rtol=1e-6)
    half = nb.Tensor(whole.astype(np.float16))
    for function in (np.linalg.inv, np.linalg.det, np.linalg.cholesky, lambda x: np.linalg.solve(x, half[0])):
        got = function(half)
        assert got.dtype == np.float16
    np.testing.assert_allclose(np.asarray(np.linalg.inv(half)), np.linalg.inv(whole), rtol=2e-3)


def test_triangular_systems_agree_with_scipy():
    a, b, vector = regular(5, 5), rng.normal(size=(5, 3)), rng.normal(size=5)
    for trans, lower, unit in itertools.product((0, 1, "N", "T"), (False, True), (False, True)):
        for right in (b, vector):
            want = scipy.linalg.solve_triangular(a, right, trans, lower, unit)
            got = solve_triangular(a, right, trans, lower, unit).asnumpy()
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    many = solve_triangular(np.stack([a, a.T]), b, lower=True).asnumpy()
    np.testing.assert_allclose(many[1], scipy.linalg.solve_triangular(a.T, b, lower=True), rtol=1e-10)


def test_only_one_triangle_is_read():
    a = positive(4, 4)
    lower = np.tril(a) + np.triu(np.full((4, 4), np.nan), 1)
    np.testing.assert_array_equal(np.linalg.cholesky(nb.Tensor(lower)), np.linalg.cholesky(nb.Tensor(a)))
    agree(np.linalg.cholesky, np.triu(lower.T), upper=True)
    g = nb.grad(lambda x: np.sum(np.linalg.cholesky(x)))(a)
    np.testing.assert_array_equal(g, np.tril(g))


def test_factors_are_a_factorisation():
    a = rng.normal(size=(3, 6, 6))
    (packed,) = compute([lu(constant(a))])
    for matrix, found in zip(a, packed, strict=True):
        lower, upper = np.tril(found[:6]), np.triu(found[:6], 1) + np.eye(6)
        order = np.abs(found[6]).astype(int) - 1
        np.testing.assert_allclose(lower @ upper, matrix[:, order], atol=1e-13)
        np.testing.assert_array_equal(order[found[7].astype(int) - 1], np.arange(6))
        permutation = np.eye(6)[:, order]
        assert np.prod(np.sign(found[6])) == round(np.linalg.det(permutation))


@pytest.mark.parametrize("rank", [0, 1, 3, 5])
def test_complete_pivoting_shows_the_rank(rank):
    a = rng.normal(size=(5, rank)) @ rng.normal(size=(rank, 5))
    node = complete_pivots(constant(a[None]))
    for (orders,) in (compute([node])[0], interpret([node])[0]):
        rows, columns = np.abs(orders) - 1
        assert sorted(rows) == sorted(columns) == list(range(5))
        # (Older NumPy has no rank for an empty matrix.)
        assert rank == 0 or np.linalg.matrix_rank(a[np.ix_(rows[:rank], columns[:rank])]) == rank
        for order, positions in zip(orders, (rows, columns), strict=True):
            assert np.prod(np.sign(order)) == round(np.linalg.det(np.eye(5)[positions]))


def with_singular_values(values):
    """A matrix of given singular values."""
    left, right = (np.linalg.qr(rng.normal(size=(len(values), len(values))))[0] for _ in range(2))
    return left * values @ right


def exact_cofactors(a):
    """The derivative of the determinant of a regular matrix (that of a singular one, rounded, is regular)."""
    with mpmath.workdps(120):
        exact = mpmath.matrix(a.tolist())
        found = (mpmath.inverse(exact) * mpmath.det(exact)).T
        return np.array([[float(v) for v in row] for row in found.tolist()])


CONDITIONS = {
    "well conditioned": np.linspace(0.5, 2.0, 40),
    "ill conditioned": np.geomspace(1.0, 1e-12, 40) * 3.0,
    "rank n - 1": np.append(np.linspace(0.5, 2.0, 39), 0.0),
    "two nearly zero": np.append(np.linspace(0.5, 2.0, 38), [1e-9, 1e-13]),
    "rank n - 2": np.append(np.linspace(0.5, 2.0, 38), [0.0, 0.0]),
    "rank n - 5": np.append(np.linspace(0.5, 2.0, 35), np.zeros(5)),
}


@pytest.mark.parametrize("case", CONDITIONS)
def test_cofactors_of_large_matrices_whatever_the_condition(case):
    a = with_singular_values(CONDITIONS[case])
    cofactors = exact_cofactors(a)
    # A rounding of `a` changes them by as much as this times the rounding.
    scale = np.prod(np.sort(CONDITIONS[case])[2:]) or 1.0
    found = nb.jit(nb.grad(np.linalg.det))(a)
    np.testing.assert_allclose(found / scale, cofactors / scale, atol=1e-12)
    if case in ("well conditioned", "rank n - 1"):
        single = nb.jit(nb.grad(np.linalg.det))(a.astype(np.float32))
        np.testing.assert_allclose(single / scale, cofactors / scale, atol=2e-4)


def test_an_order_that_hides_a_bad_condition_is_not_taken():
    """Elimination by columns meets only pivots of 1, and of 2**-58 in the last place."""
    n = 60
    a = np.eye(n) - np.triu(np.ones((n, n)), 1)
    a[-1, 0] = -(2.0 ** (2 - n)) * 0.75
    expected = exact_cofactors(a)
    np.testing.assert_allclose(nb.jit(nb.grad(np.linalg.det))(a), expected, atol=1e-9 * np.max(np.abs(expected)))


def test_orders_of_rows_and_columns_lead_to_a_regular_block():
    for n in (12, 33, 70):
        a = rng.normal(size=(3, n, n))
        a[1, :, : n - 3] = 0.0
        a[2] = np.nan
        (orders,) = compute([complete_pivots(constant(a))])
        for matrix, both in zip(a, orders, strict=True):
            rows, columns = np.abs(both) - 1
            assert sorted(rows) == sorted(columns) == list(range(n))
            for order, positions in zip(both, (rows, columns), strict=True):
                assert np.prod(np.sign(order)) == round(np.linalg.det(np.eye(n)[positions]))
            if np.linalg.matrix_rank(np.nan_to_num(matrix)) == n:
                block = matrix[np.ix_(rows[:-3], columns[:-3])]
                assert np.linalg.cond(block) < 1e8


def test_determinants_are_exact_for_small_whole_numbers():
    def exact(rows):
        if not rows:
            return Fraction(1)
        return sum(
            (-1) ** k * rows[0][k] * exact([row[:k] + row[k + 1 :] for row in rows[1:]]) for k in range(len(rows))
        )

    for n in range(1, 6):
        a = rng.integers(-5, 6, (n, n)).astype(float)
        want = exact([[Fraction(int(v)) for v in row] for row in a])
        assert float(np.linalg.det(nb.Tensor(a))) == pytest.approx(float(want), rel=1e-13, abs=1e-11)


def test_a_hilbert_matrix_against_high_precision():
    """The error of a solution is that of a backward stable method: the condition number times the rounding."""
    n = 8
    a = np.array([[1 / (i + j + 1) for j in range(n)] for i in range(n)])
    with mpmath.workdps(60):
        exact = mpmath.matrix(a.tolist())
        solution = mpmath.lu_solve(exact, mpmath.matrix([1] * n))
        determinant = float(mpmath.det(exact))
    condition = np.linalg.cond(a)
    want = np.array([float(v) for v in solution])
    got = np.asarray(np.linalg.solve(nb.Tensor(a), np.ones(n)))
    assert np.max(np.abs(got - want)) <= condition * 1e-16 * np.max(np.abs(want))
    assert float(np.linalg.det(nb.Tensor(a))) == pytest.approx(determinant, rel=condition * 1e-16)


def test_slogdet_neither_overflows_nor_vanishes():
    for scale in (1e-30, 1e30):
        agree(np.linalg.slogdet, regular(30, 30) * scale)
    agree(np.linalg.slogdet, np.diag([-1.0, 2.0, 3.0])[[1, 0, 2]])
    sign, logarithm = np.linalg.slogdet(nb.Tensor(np.zeros((3, 3))))
    assert (float(sign), float(logarithm)) == (0.0, -np.inf)


# ----- Derivatives -----

B, VECTOR = rng.normal(size=(4, 2)), rng.normal(size=4)
LOWER = np.tril(regular(4, 4))
DERIVATIVES = {
    "inv": (np.linalg.inv, (regular(4, 4),)),
    "inv batch": (np.linalg.inv, (regular(2, 3, 3),)),
    "solve": (np.linalg.solve, (regular(4, 4), B)),
    "solve vector": (np.linalg.solve, (regular(4, 4), VECTOR)),
    "solve broadcast": (np.linalg.solve, (regular(2, 4, 4), rng.normal(size=(3, 1, 4, 2)))),
    "det 1": (np.linalg.det, (regular(1, 1),)),
    "det 2": (np.linalg.det, (regular(2, 2),)),
    "det 3": (np.linalg.det, (regular(2, 3, 3),)),
    "det 4": (np.linalg.det, (regular(4, 4),)),
    "det 5": (np.linalg.det, (0.5 * regular(2, 5, 5),)),
    "slogdet": (lambda x: np.linalg.slogdet(x)[1], (regular(2, 4, 4),)),
    "cholesky": (lambda x: np.linalg.cholesky(x @ np.swapaxes(x, -1, -2)), (regular(4, 4),)),
    "cholesky upper": (
        lambda x: np.linalg.cholesky(x @ np.swapaxes(x, -1, -2), upper=True),
        (regular(2, 3, 3),),
    ),
    "cholesky of one triangle": (np.linalg.cholesky, (positive(3, 3),)),
    "inv 1": (np.linalg.inv, (regular(1, 1),)),
    "inv 0": (np.linalg.inv, (regular(0, 0),)),
    "det 0": (np.linalg.det, (regular(0, 0),)),
    "cholesky 0": (np.linalg.cholesky, (regular(2, 0, 0),)),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    function, arrays = DERIVATIVES[name]
    check_derivative(function, *arrays)


@pytest.mark.parametrize(("trans", "lower", "unit"), list(itertools.product((0, 1), (False, True), (False, True))))
def test_derivatives_of_triangular_systems(trans, lower, unit):
    a, b = regular(3, 3), rng.normal(size=(3, 2))
    nb.check_grads(lambda x, y: np.sum(np.sin(solve_triangular(x, y, trans, lower, unit))), (a, b), order=2)
    g = nb.grad(lambda x: np.sum(solve_triangular(x, b, trans, lower, unit)))(a)
    kept = (np.tril if lower else np.triu)(np.ones((3, 3)), (-1 if lower else 1) if unit else 0)
    assert np.all(g[kept == 0] == 0)


def test_compiled_derivatives():
    """One value of each kind through compiled code, against the closed forms."""
    a, b = regular(5, 5), rng.normal(size=5)
    inverse = np.linalg.inv(a)
    np.testing.assert_allclose(nb.jit(nb.grad(np.linalg.det))(a), np.linalg.det(a) * inverse.T, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(nb.grad(lambda x: np.linalg.slogdet(x)[1])(a), inverse.T, rtol=1e-11)
    g = nb.grad(lambda x: np.sum(np.linalg.solve(x, b)))(a)
    np.testing.assert_allclose(g, -np.outer(inverse.T @ np.ones(5), inverse @ b), rtol=1e-10)
    got = nb.jacrev(np.linalg.inv)(a)
    np.testing.assert_allclose(got, -np.einsum("ik,lj->ijkl", inverse, inverse), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(nb.jacfwd(np.linalg.inv)(a), got, rtol=1e-10, atol=1e-13)


def cofactors(a: np.ndarray) -> np.ndarray:
    """The derivative of the determinant, from the determinants of all minors."""
    n = len(a)
    out = np.empty((n, n))
    for i, j in np.ndindex(n, n):
        out[i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))
    return out


@pytest.mark.parametrize(
    ("n", "rank"), [(2, 1), (2, 0), (3, 2), (3, 1), (4, 3), (4, 2), (6, 5), (6, 4), (6, 2), (6, 0)]
)
def test_determinants_of_singular_matrices_have_derivatives(n, rank):
    a = of_rank(n, rank)
    want = cofactors(a)
    assert np.any(np.abs(want) > 1e-6) == (rank == n - 1)
    np.testing.assert_allclose(nb.grad(np.linalg.det)(a), want, rtol=1e-9, atol=1e-9 * (1 + np.abs(a).max()) ** n)
    nb.check_grads(np.linalg.det, (a,), order=3 if n < 4 else 2)


def test_known_gradient_of_a_singular_matrix():
    a = np.array([[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_array_equal(nb.grad(np.linalg.det)(a), [[4, -2], [-2, 1]])


@pytest.mark.parametrize("rank", [5, 3, 2])
def test_hessian_of_a_determinant(rank):
    """Second derivatives are determinants with two rows replaced by rows of the unit matrix."""
    a = of_rank(5, rank)
    want = np.zeros((5, 5, 5, 5))
    for i, j, k, m in np.ndindex(want.shape):
        if i != k and j != m:
            replaced = a.copy()
            replaced[[i, k]] = np.eye(5)[[j, m]]
            want[i, j, k, m] = np.linalg.det(replaced)
    size = (1 + np.abs(a).max()) ** 3
    np.testing.assert_allclose(nb.hessian(np.linalg.det)(a), want, atol=1e-10 * size)
    np.testing.assert_allclose(nb.jacfwd(nb.grad(np.linalg.det))(a), want, atol=1e-10 * size)


def test_hessian_of_a_logarithm():
    a = regular(3, 3)
    inverse = np.linalg.inv(a)
    got = nb.hessian(lambda x: np.linalg.slogdet(x)[1])(a)
    np.testing.assert_allclose(got, -np.einsum("jk,li->ijkl", inverse, inverse), atol=1e-12)


def test_a_batch_of_different_ranks():
    a = np.stack([of_rank(5, rank) for rank in range(6)])
    g = nb.grad(lambda x: np.sum(np.linalg.det(x)))(a)
    for one, matrix in zip(g, a, strict=True):
        np.testing.assert_allclose(one, cofactors(matrix), rtol=1e-9, atol=1e-9 * (1 + np.abs(matrix).max()) ** 5)


# ----- What is refused -----


def test_singular_matrices_raise():
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    for function in (np.linalg.inv, lambda x: np.linalg.solve(x, np.ones(2))):
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            function(nb.Tensor(singular))
        with pytest.raises(MatrixError, match="singular"):
            nb.grad(lambda x, f=function: np.sum(f(x)))(singular)
        compiled = nb.jit(function)
        compiled(np.eye(2))
        with pytest.raises((MatrixError, RangeError), match="singular"):
            compiled(singular)
    with pytest.raises(MatrixError, match="diagonal"):
        solve_triangular(np.diag([1.0, 0.0]), np.ones(2))
    np.testing.assert_array_equal(solve_triangular(np.diag([1.0, 0.0]), np.ones(2), unit_diagonal=True), [1, 1])


def test_matrices_that_are_not_positive_definite_raise():
    for matrix in ([[1.0, 2.0], [2.0, 1.0]], [[0.0, 0.0], [0.0, 1.0]], [[np.nan, 0.0], [0.0, 1.0]]):
        with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
            np.linalg.cholesky(nb.Tensor(np.array(matrix)))
    with pytest.raises(MatrixError, match="one is not"):
        np.linalg.cholesky(nb.Tensor(np.stack([np.eye(2), -np.eye(2)])))


def test_nan_stays_nan():
    a = np.array([[np.nan, 1.0], [1.0, 2.0]])
    for function in (np.linalg.inv, np.linalg.det):
        assert np.isnan(np.asarray(function(nb.Tensor(a)))).any()


def test_shapes_are_checked():
    for function in (np.linalg.inv, np.linalg.det, np.linalg.slogdet, np.linalg.cholesky):
        for shape in ((2, 3), (3,), ()):
            with pytest.raises(ShapeError, match="square"):
                function(nb.Tensor(np.ones(shape)))
    with pytest.raises(ShapeError, match="3 rows"):
        np.linalg.solve(nb.Tensor(np.eye(3)), np.ones(4))
    with pytest.raises(ShapeError):
        np.linalg.solve(nb.Tensor(np.ones((2, 3, 3))), np.ones((5, 3, 1)))
    with pytest.raises(ValueError, match="trans"):
        solve_triangular(np.eye(2), np.ones(2), trans=3)


# ----- MindSpore's names -----


def test_functions_with_mindspore_names():
    a, spd, b = regular(2, 3, 3), positive(2, 3, 3), rng.normal(size=(2, 3, 2))
    want = {
        "det": (np.linalg.det(a), ops.det(nb.Tensor(a))),
        "determinant": (np.linalg.det(a), ops.matrix_determinant(input=nb.Tensor(a))),
        "logarithm": (np.linalg.slogdet(a)[1], ops.slogdet(nb.Tensor(a))[1]),
        "inverse": (np.linalg.inv(a), ops.inverse(input_x=nb.Tensor(a))),
        "lower": (np.linalg.cholesky(spd), ops.cholesky(nb.Tensor(spd))),
        "upper": (np.swapaxes(np.linalg.cholesky(spd), 1, 2), ops.cholesky(nb.Tensor(spd), True)),
        "solve": (np.linalg.solve(a, b), ops.matrix_solve(nb.Tensor(a), nb.Tensor(b))),
        "adjoint": (np.linalg.solve(np.swapaxes(a, 1, 2), b), ops.matrix_solve(nb.Tensor(a), nb.Tensor(b), True)),
    }
    for upper in (False, True):
        factor = ops.cholesky(nb.Tensor(spd), upper)
        want[f"cholesky_solve {upper}"] = np.linalg.solve(spd, b), ops.cholesky_solve(nb.Tensor(b), factor, upper)
        want[f"cholesky_inverse {upper}"] = np.linalg.inv(spd), ops.cholesky_inverse(factor, upper)
    for name, (one, other) in want.items():
        np.testing.assert_allclose(np.asarray(other), one, rtol=1e-9, atol=1e-11, err_msg=name)
    with pytest.raises(ShapeError, match="matrices"):
        ops.cholesky_inverse(nb.Tensor([1.0]))


# ----- Banded matrices -----


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("bands", [(1, 1), (0, 2), (2, 1), (0, 0)])
def test_banded_systems(bands, kind, monkeypatch):
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    draws = np.random.default_rng(8)
    for shape in ((5,), (5, 2), (2, 1)):
        n = shape[0]
        diagonals, b = draws.normal(size=(sum(bands) + 1, n)), draws.normal(size=shape)
        diagonals[bands[1]] += 4
        if kind == "complex":
            diagonals, b = diagonals + 0.5j * draws.normal(size=diagonals.shape), b + 1j * draws.normal(size=shape)
        if max(bands) < n:
            check(
                lambda d, y: ops.solve_banded(bands, d, y),
                diagonals,
                b,
                reference=lambda d, y: scipy.linalg.solve_banded(bands, d, y),
            )


def test_a_long_tridiagonal_system():
    """Its derivative needs no full matrix; a batch of them is solved in one call."""
    n = 20_000
    diagonals = np.stack([np.full(n, -1.0), np.full(n, 3.0), np.full(n, -1.0)])
    b = np.ones(n)
    x = scipy.linalg.solve_banded((1, 1), diagonals, b)
    found, g = nb.jit(nb.value_and_grad(lambda d: np.sum(ops.solve_banded((1, 1), d, b))))(diagonals)
    assert found == pytest.approx(x.sum())
    # The matrix is symmetric and b is 1: the cotangent of the matrix is -x x^T.
    np.testing.assert_allclose(g[1], -x * x, rtol=1e-10)
    np.testing.assert_allclose(g[0, 1:], -x[:-1] * x[1:], rtol=1e-10)
    assert g[0, 0] == g[2, -1] == 0
    many = nb.vmap(lambda d: ops.solve_banded((1, 1), d, b[:4]))(np.stack([diagonals[:, :4], 2 * diagonals[:, :4]]))
    np.testing.assert_allclose(many[1], scipy.linalg.solve_banded((1, 1), 2 * diagonals[:, :4], b[:4]), rtol=1e-12)


def test_banded_systems_that_do_not_fit():
    with pytest.raises(MatrixError, match="regular"):
        ops.solve_banded((0, 0), np.zeros((1, 2)), np.ones(2)).asnumpy()
    with pytest.raises(ShapeError, match="3 diagonals"):
        ops.solve_banded((1, 1), np.ones((2, 4)), np.ones(4))
    with pytest.raises(ShapeError, match="4 rows"):
        ops.solve_banded((1, 1), np.ones((3, 4)), np.ones(3))
    with pytest.raises(ValueError, match="two numbers"):
        ops.solve_banded((1, -1), np.ones((3, 4)), np.ones(4))


MATRICES = {
    "one row": np.array([[-2.0]]),
    "exchanges": np.array([[0.0, 2.0, 1.0], [1.0, 1.0, 0.0], [-4.0, 0.5, 3.0]]),
    "singular": np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.5, 1.0, 2.5]]),
    "a column of zeros": np.array([[0.0, 2.0], [0.0, 1.0]]),
    "NaN": np.array([[1.0, np.nan], [3.0, 1.0]]),
    "sixteen rows": np.random.default_rng(8).normal(size=(16, 16)),
    "single precision": np.random.default_rng(9).normal(size=(5, 5)).astype(np.float32),
}


@pytest.mark.parametrize("name", MATRICES)
def test_small_matrices_are_factored_as_lapack_does(name, monkeypatch):
    """Without SciPy, which takes a fifth of a second to import."""
    a = MATRICES[name]
    tolerance = 1e-5 if a.dtype == np.float32 else 1e-13
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of singular ones
        packed, pivots = scipy.linalg.lu_factor(a, check_finite=False)
    order = np.arange(len(a))
    for step, other in enumerate(pivots):
        order[[step, other]] = order[[other, step]]
    monkeypatch.setattr(matrix_rows, "_library", None)
    (found,) = interpret([lu(constant(np.ascontiguousarray(a.T)[None]))])[0]
    np.testing.assert_allclose(found[:-2].T, packed, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(abs(found[-2]) - 1, order)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_small_systems_are_solved_as_blas_does(lower, transposed, unit, monkeypatch):
    a, b = MATRICES["sixteen rows"] + 20 * np.eye(16), np.random.default_rng(8).normal(size=(16, 3))
    matrix = a.T if transposed else a
    expected = scipy.linalg.solve_triangular(matrix, b, lower=lower != transposed, unit_diagonal=unit)
    monkeypatch.setattr(matrix_rows, "_library", None)
    (found,) = interpret([triangular_solve(constant(a[None]), constant(b[None]), lower, transposed, unit)])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
