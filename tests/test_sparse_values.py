"""Sparse matrices of recorded values, beside SciPy's: finite elements, products, slices, and systems."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.sparse import coo_array, csr_array
from scipy.sparse import linalg as sparse_linalg

import nbgrad as nb
from nbgrad.scipy import sparse_systems

from .agreement import check_derivative

pytestmark = pytest.mark.unoptimized

N = 6
ROWS, COLUMNS = np.array([0, 1, 1, 2, 3, 3, 4, 5, 5]), np.array([0, 1, 1, 4, 3, 0, 2, 5, 1])
VALUES = np.array([2.0, -1.0, 0.5, 1.5, 3.0, -0.5, 2.5, 1.0, 0.75])
VECTOR = np.array([0.5, -1.0, 2.0, 1.0, -0.5, 0.25])
CONSTANT = sparse.random_array((N, N), density=0.4, rng=np.random.default_rng(1), format="csr")


def matrix(values: Any) -> Any:
    return coo_array((values, (ROWS, COLUMNS)), shape=(N, N))


def regular(values: Any) -> Any:
    return (matrix(values) + 6.0 * sparse.eye_array(N)).tocsc()


def set_in_a_loop(a: Any, v: Any) -> Any:
    for k in range(N):
        a[k, k] = v[k] ** 2
        a[k, N - 1 - k] += a[k, k] - v[k + 1]
    a[0, 0] = 0.0
    return a


def assembled(v: Any) -> Any:
    a = sparse.lil_matrix((N, N))
    for k in range(N - 1):
        places = np.array([k, k + 1])
        a[np.ix_(places, places)] += v[k] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    a[0, :] = 0
    a[0, 0] = 1
    return a.tocsr() + 3.0 * sparse.identity(N)


def set_rows(a: Any, x: Any) -> Any:
    a[0, :] = x
    a[1:3, [1, 4]] = np.outer(x[:2], x[2:4])
    a[[3, 4], [3, 4]] = a[0, 1] * 2.0
    a[5, :] = 0
    return a


def set_data(a: Any, x: Any) -> Any:
    b = a.copy()
    b.data[2:4] = x[:2]
    b.data *= 2.0
    b.data[0] -= x[3]
    return b + a


def set_diagonals(a: Any, x: Any) -> Any:
    a.setdiag(x**2)
    a.setdiag(x[0], k=-2)
    a.setdiag(x[:3], k=1)
    return a


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda v, x: matrix(v) @ x,
    "product with a matrix": lambda v, x: matrix(v) @ np.outer(x, x[:2]),
    "product from the left": lambda v, x: x @ matrix(v),
    "product of a matrix from the left": lambda v, x: np.outer(x[:2], x) @ matrix(v).tocsr(),
    "dot": lambda v, x: matrix(v).tocsr().dot(x),
    "product of two": lambda v, x: (matrix(v).tocsr() @ matrix(v * v).tocsc()).toarray() @ x,
    "product with a constant": lambda v, x: (CONSTANT @ matrix(v) @ CONSTANT.T).sum(axis=0) * x,
    "sum and difference": lambda v, x: (matrix(v) + CONSTANT - 2.0 * matrix(v).T).toarray() @ x,
    "constant and sum": lambda v, x: (CONSTANT - matrix(v).tocsr()).toarray() @ x,
    "dense sum": lambda v, x: (matrix(v).tocsr() + np.ones((N, N))) @ x,
    "multiple and quotient": lambda v, x: (matrix(v) * 3.0 / x[0]).toarray(),
    "product of elements": lambda v, x: matrix(v).tocsr().multiply(np.outer(x, x)).toarray(),
    "product of elements of two": lambda v, x: matrix(v).tocsr().multiply(CONSTANT).toarray() * x,
    "scaled rows": lambda v, x: (sparse.diags_array(x) @ matrix(v)).toarray(),
    "scaled columns": lambda v, x: matrix(v).tocsr().multiply(x).toarray(),
    "powers": lambda v, x: (matrix(v).tocsr().power(2) + (-matrix(v)).tocsr()).toarray() @ x,
    "functions of elements": lambda v, x: matrix(v).tocsr().sin().toarray() @ x + matrix(v).tocsr().tanh().sum(),
    "sums": lambda v, x: matrix(v).sum() + matrix(v).sum(axis=0) * x + matrix(v).tocsc().sum(axis=1),
    "means": lambda v, x: matrix(v).mean(axis=0) * x + matrix(v).mean(),
    "slices": lambda v, x: matrix(v).tocsr()[1:5, ::2] @ x[:3],
    "rows by index": lambda v, x: matrix(v).tocsr()[[3, 0, 3]] @ x,
    "one row": lambda v, x: matrix(v).tocsr()[[3], :].toarray() * x,
    "lines of older matrices": lambda v, x: (
        sparse.csr_matrix(matrix(v)).getrow(3) * x + x * sparse.csr_matrix(matrix(v)).getcol(1)
    ),
    "multiple of a constant": lambda v, x: (
        csr_array((x[0] * CONSTANT.data, CONSTANT.indices, CONSTANT.indptr), shape=(N, N)) @ x * v[0]
    ),
    "multiples of constants": lambda v, x: (x[0] * CONSTANT + CONSTANT * v[0] - CONSTANT / x[1]) @ x,
    "multiples of older constants": lambda v, x: (sparse.csr_matrix(CONSTANT) * x[0] + sparse.eye(N) / x[1]) * v[:N],
    "lines times a constant": lambda v, x: (CONSTANT * x + np.outer(x, x) * CONSTANT).sum(axis=0) * v[:N],
    "set in a loop": lambda v, x: set_in_a_loop(sparse.lil_matrix((N, N)), v).tocsr() @ x,
    "set in a loop by blocks": lambda v, x: sparse_linalg.spsolve(assembled(v), x),
    "set one by one": lambda v, x: set_in_a_loop(sparse.dok_array((N, N)), v).tocsc() @ x,
    "set rows": lambda v, x: set_rows(matrix(v).tolil(), x).tocsr() @ x,
    "set rows of a constant": lambda v, x: set_rows(sparse.lil_array(CONSTANT), x).T @ v[:N],
    "set in rows": lambda v, x: set_rows(matrix(v).tocsr(), x) @ x,
    "set data": lambda v, x: set_data(matrix(v).tocsr(), x) @ x,
    "set a diagonal": lambda v, x: set_diagonals(matrix(v).tocsc(), x) @ x,
    "elements": lambda v, x: matrix(v).tocsr()[1, 1] * x + matrix(v).tocsr()[0, 5],
    "boolean rows": lambda v, x: matrix(v).tocsr()[np.arange(N) % 2 == 0] @ x,
    "transposed": lambda v, x: matrix(v).T.tocsr() @ (matrix(v).tocsr().transpose() @ x),
    "diagonal and trace": lambda v, x: matrix(v).tocsr().diagonal() * x + matrix(v).tocsr().trace(),
    "fields": lambda v, x: csr_array((matrix(v).tocsr().data * 2.0, CONSTANT.indices[:8], [0, 2, 2, 4, 5, 7, 8])) @ x,
    "blocks": lambda v, x: (
        sparse.block_array([[matrix(v), None], [CONSTANT, sparse.eye_array(N)]]) @ np.concatenate([x, x])
    ),
    "triangles": lambda v, x: sparse.tril(matrix(v)).toarray() @ x + sparse.triu(matrix(v), k=1).toarray() @ x,
    "Kronecker": lambda v, x: sparse.kron(matrix(v), np.array([[1.0, 2.0]])) @ np.concatenate([x, x]),
    "older matrices": lambda v, x: sparse.csr_matrix(matrix(v)) * sparse.csr_matrix(matrix(v)) * x,
    "solution": lambda v, x: sparse_linalg.spsolve(regular(v), x),
    "solutions": lambda v, x: sparse_linalg.spsolve(regular(v), np.outer(x, x[:2])),
    "factors": lambda v, x: sparse_linalg.splu(regular(v)).solve(sparse_linalg.splu(regular(v)).solve(x) ** 2, "T"),
    "factorized": lambda v, x: sparse_linalg.factorized(regular(v))(x),
    "triangular": lambda v, x: sparse_linalg.spsolve_triangular(sparse.tril(regular(v)).tocsr(), x),
    "conjugate gradients": lambda v, x: sparse_linalg.cg(regular(v) @ regular(v).T, x, rtol=1e-13)[0],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_scipy_gives(name: str) -> None:
    program = PROGRAMS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparse.SparseEfficiencyWarning)
        want = program(VALUES, VECTOR)
    ours = nb.differentiable_source(program)
    got, _ = nb.vjp(ours, VALUES, VECTOR)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(nb.jit(ours)(VALUES, VECTOR), want, rtol=1e-9, atol=1e-12)
    many = nb.vmap(ours)(np.stack([VALUES, 1.1 * VALUES]), np.stack([VECTOR, VECTOR]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparse.SparseEfficiencyWarning)
        np.testing.assert_allclose(many[1], program(1.1 * VALUES, VECTOR), rtol=1e-9, atol=1e-12)
    check_derivative(ours, VALUES, VECTOR, tolerance=2e-5, second=name != "conjugate gradients")


def stiffness(conductivity: Any) -> Any:
    """Linear elements on a line, fixed at the left end: each element adds a block of four entries."""
    n = conductivity.shape[0]
    left = np.arange(n)
    i = np.concatenate([left, left, left + 1, left + 1])
    j = np.concatenate([left, left + 1, left, left + 1])
    values = np.concatenate([conductivity, -conductivity, -conductivity, conductivity])
    return coo_array((values, (i, j)), shape=(n + 1, n + 1)).tocsc()[1:, 1:]


def test_finite_elements() -> None:
    def end(conductivity: Any) -> Any:
        return sparse_linalg.spsolve(stiffness(conductivity), np.eye(conductivity.shape[0])[-1])[-1]

    k = np.linspace(1.0, 2.0, 50)
    # Springs in a row: the end moves by the sum of 1 / k.
    ours = nb.jit(nb.value_and_grad(nb.differentiable_source(end)))
    value, slope = ours(k)
    assert float(value) == pytest.approx(np.sum(1 / k), rel=1e-12)
    np.testing.assert_allclose(slope, -1 / k**2, rtol=1e-10)


def test_iterations_take_matrices_of_constants() -> None:
    """Outside of a recording, too, converted code makes matrices of nbgrad's."""

    def solved(k: Any) -> Any:
        a = sparse.diags([k, -np.ones(3)], [0, -1]).tocsr()
        return sparse_linalg.gmres(a, np.ones(4), rtol=1e-12)[0] + sparse_linalg.expm_multiply(a, k)

    k = np.array([2.0, 3.0, 4.0, 5.0])
    np.testing.assert_allclose(nb.differentiable_source(solved)(nb.numpy.array(k)), solved(k), rtol=1e-10)


RNG = np.random.default_rng(5)
TALL, WIDE, RIGHT = RNG.normal(size=(9, N)), RNG.normal(size=(4, N)), RNG.normal(size=9)


@pytest.mark.parametrize("method", ["lsqr", "lsmr"])
@pytest.mark.parametrize(("rows", "damp", "start"), [(9, 0.0, False), (9, 0.7, True), (4, 0.0, True), (4, 0.3, False)])
def test_fits_have_the_derivatives_of_their_formulas(method: str, rows: int, damp: float, start: bool) -> None:
    """The normal equations, or the shortest solution, as NumPy solves them."""
    constant, right = (TALL, RIGHT) if rows == 9 else (WIDE, RIGHT[:4])
    x0 = VECTOR if start else None
    options = {"atol": 1e-15, "btol": 1e-15, "conlim": 0.0}

    def fitted(v: Any, damp: Any) -> Any:
        a = sparse.csr_array(constant * v)
        operator = sparse_linalg.LinearOperator(a.shape, matvec=lambda x: a @ x, rmatvec=lambda y: a.T @ y)
        fit = getattr(sparse_linalg, method)
        by_rows, by_products = (fit(one, right * v[0], damp, x0=x0, **options) for one in (a, operator))
        norm = by_rows[3] if damp == 0 and method == "lsqr" else 0.0
        size = by_rows[7] if method == "lsmr" else by_rows[8]
        return np.sum(np.sin(by_rows[0])) + np.sum(by_products[0] ** 2) + norm + size

    def formula(v: Any, damp: Any) -> Any:
        a, first = constant * v, np.zeros(N) if x0 is None else x0
        rest = right * v[0] - a @ first
        if damp == 0:
            moved = np.linalg.lstsq(a, rest)[0] if rows == 9 else a.T @ np.linalg.solve(a @ a.T, rest)
        else:
            moved = np.linalg.solve(a.T @ a + damp**2 * np.eye(N), a.T @ rest)
        x = first + moved
        norm = np.sqrt(np.sum((a @ x - right * v[0]) ** 2)) if damp == 0 and method == "lsqr" else 0.0
        # SciPy's lsqr gives the length of the step, lsmr that of the fit.
        size = np.sqrt(np.sum((x if method == "lsmr" else moved) ** 2))
        return np.sum(np.sin(x)) + np.sum(x**2) + norm + size

    v = np.linspace(0.6, 1.4, N)
    ours = nb.differentiable_source(lambda v: fitted(v, damp))
    np.testing.assert_allclose(ours(v), formula(v, damp), rtol=1e-8)
    if rows == 4 and method == "lsqr" and damp == 0:
        return  # the residual's norm is zero, where it has no derivative
    direction = np.cos(np.arange(N))
    want = (formula(v + 1e-6 * direction, damp) - formula(v - 1e-6 * direction, damp)) / 2e-6
    for gradient in (nb.grad(ours), nb.jit(nb.grad(ours))):
        np.testing.assert_allclose(gradient(v) @ direction, want, rtol=1e-6)
    if damp:
        by_damping = nb.grad(nb.differentiable_source(fitted), 1)(v, damp)
        want = (formula(v, damp + 1e-6) - formula(v, damp - 1e-6)) / 2e-6
        np.testing.assert_allclose(by_damping, want, rtol=1e-6)


def test_fits_that_have_not_converged_have_no_derivative() -> None:
    ours = nb.differentiable_source(lambda v: sparse_linalg.lsqr(TALL * v, RIGHT, iter_lim=1)[0])
    np.testing.assert_allclose(ours(VECTOR), sparse_linalg.lsqr(TALL * VECTOR, RIGHT, iter_lim=1)[0])
    with pytest.raises(RuntimeError, match="status 7"):
        nb.jacrev(ours)(VECTOR)


def test_a_state_moves_by_a_constant_matrix() -> None:
    """A step of the Schroedinger equation keeps the norm, and its gradient is that of the full exponential."""
    hamiltonian = CONSTANT + CONSTANT.T

    def density(state: Any, expm: Any = sparse_linalg.expm_multiply) -> Any:
        return np.abs(expm(-0.7j * hamiltonian, state)) ** 2

    ours = nb.differentiable_source(density)
    assert float(np.sum(nb.jit(ours)(VECTOR))) == pytest.approx(VECTOR @ VECTOR, rel=1e-12)
    full = sparse_linalg.expm((-0.7j * hamiltonian).tocsc()).toarray()
    want = 2 * np.real(np.conj(full @ VECTOR)[:, None] * full)
    np.testing.assert_allclose(nb.jacrev(ours)(VECTOR), want, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(nb.jacfwd(ours)(VECTOR), want, rtol=1e-10, atol=1e-12)


def test_questions_about_matrices() -> None:
    def answers(values: Any) -> Any:
        a = matrix(values)
        facts = [
            sparse.issparse(a),
            sparse.issparse(values),
            isinstance(a, sparse.coo_array),
            isinstance(a.tocsr(), sparse.coo_array),
            sparse.isspmatrix(a),
            sparse.isspmatrix(sparse.csr_matrix(a)),
            a.shape == (N, N) and a.nnz == 9 and a.tocsr().nnz == 8 and a.format == "coo" and a.dtype == values.dtype,
        ]
        return a.sum() * np.array(facts)

    want = [True, False, True, False, False, True, True]
    np.testing.assert_array_equal(answers(VALUES) / VALUES.sum(), want)
    np.testing.assert_array_equal(nb.vjp(nb.differentiable_source(answers), VALUES)[0] / VALUES.sum(), want)


def test_complex_systems() -> None:
    def solved(a: Any, b: Any) -> Any:
        found = sparse_linalg.spsolve(sparse.diags_array([a, b[1:]], offsets=[0, 1]).tocsc(), b)
        return np.abs(found) ** 2

    a, b = np.array([2 + 1j, 1 - 0.5j, 3j]), np.array([1.0 + 0j, 0.5 - 1j, 2j])
    np.testing.assert_allclose(nb.vjp(nb.differentiable_source(solved), a, b)[0], solved(a, b), rtol=1e-12)
    nb.check_grads(nb.differentiable_source(solved), (a, b))
    for trans in "NTH":
        pairs = nb.differentiable_source(
            lambda a, b, trans=trans: sparse_linalg.splu(sparse.diags_array([a, b[1:]], offsets=[0, 1]).tocsc()).solve(
                b, trans
            )
        )
        full = np.diag(a) + np.diag(b[1:], 1)
        want = np.linalg.solve({"N": full, "T": full.T, "H": full.conj().T}[trans], b)
        np.testing.assert_allclose(nb.jit(pairs)(a, b), want, rtol=1e-12)
        nb.check_grads(lambda a, b, pairs=pairs: np.abs(pairs(a, b)) ** 2, (a, b))


def test_a_factorisation_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_systems, "_patterns", {})

    def loads(values: Any, x: Any) -> Any:
        factors = sparse_linalg.splu(regular(values))
        return np.sum(factors.solve(x) ** 2) + np.sum(factors.solve(x * x))

    compiled = nb.jit(nb.value_and_grad(nb.differentiable_source(loads), (0, 1)))
    compiled(VALUES, VECTOR)
    (pattern,) = sparse_systems._patterns
    assert pattern.factorisations == 1  # two systems and their adjoints
    compiled(VALUES, 2 * VECTOR)
    assert pattern.factorisations == 1
    compiled(2 * VALUES, VECTOR)
    assert pattern.factorisations == 2


@pytest.mark.parametrize(
    ("program", "error", "match"),
    [
        (lambda v: sparse_linalg.spsolve(matrix(0.0 * v).tocsc(), VECTOR), np.linalg.LinAlgError, "singular"),
        (lambda v: matrix(v) @ VECTOR[:3], ValueError, r"shape \(6, 6\) cannot be multiplied with .* shape \(3,\)"),
        (lambda v: coo_array((v, (ROWS, COLUMNS)), shape=(3, 3)), ValueError, "row of a sparse matrix of shape"),
        (lambda v: coo_array((v, (ROWS[:2], COLUMNS[:2]))), ValueError, "9 values of a sparse matrix have 2 rows"),
        (lambda v: coo_array((v[:2], ((v[:2] > 0) * 1, [0, 1]))), nb.errors.TracedValueError, "must not be recorded"),
        (lambda v: set_rows(matrix(v), VECTOR), TypeError, "format coo has no elements to set"),
        (lambda v: sparse.csr_array((2.0 * CONSTANT).multiply(v[0])), TypeError, r"A \* t"),
        (lambda v: CONSTANT.multiply(matrix(v)), nb.errors.TracedValueError, r"Write A \* B for A.multiply\(B\)"),
        (lambda v: matrix(v).tocsr().max(), AttributeError, "has no 'max'"),
        (lambda v: sparse_linalg.splu(matrix(v)[:2].tocsc()), ValueError, "needs a square matrix"),
        (lambda v: matrix(v).tocsr() + matrix(v).tocsr()[:2], ValueError, "cannot be added"),
        (lambda v: regular(v) @ matrix(v).tocsr()[:2], ValueError, "cannot be multiplied"),
        (lambda v: sparse_linalg.splu(regular(v)).solve(VECTOR[:2]), ValueError, "right-hand sides of 6 rows"),
    ],
)
def test_errors(program: Any, error: type[Exception], match: str) -> None:
    def total(v: Any) -> Any:
        found = program(v)
        return np.sum(found if hasattr(found, "ndim") and not hasattr(found, "toarray") else found.toarray())

    with pytest.raises(error, match=match):
        nb.grad(nb.differentiable_source(total))(VALUES)


# ----- Eigenvalues and norms -----

DIAGONAL = np.array([2.0, -1.5, 4.0, 0.7, -3.2, 1.1])
OFF = np.array([0.3, -0.6, 0.2, 0.5, -0.4])


def symmetric(values: Any) -> Any:
    """A symmetric matrix of eleven values, whose eigenvalues are simple."""
    line = np.arange(5)
    rows = np.concatenate([np.arange(6), line, line + 1])
    columns = np.concatenate([np.arange(6), line + 1, line])
    return coo_array((np.concatenate([values, values[6:]]), (rows, columns)), shape=(6, 6)).tocsr()


SYMMETRIC = np.concatenate([DIAGONAL, OFF])
SPECTRA: dict[str, Callable[[Any], Any]] = {
    "largest": lambda v: sparse_linalg.eigsh(symmetric(v), 3)[0],
    "smallest": lambda v: sparse_linalg.eigsh(symmetric(v), 2, which="SA")[0],
    "both ends": lambda v: sparse_linalg.eigsh(symmetric(v), 4, which="BE")[0],
    "values alone, largest": lambda v: sparse_linalg.eigsh(symmetric(v), 3, return_eigenvectors=False),
    "values alone, smallest": lambda v: sparse_linalg.eigsh(symmetric(v), 3, which="SA", return_eigenvectors=False),
    "values alone, small ones": lambda v: sparse_linalg.eigsh(symmetric(v), 3, which="SM", return_eigenvectors=False),
    "near a number": lambda v: sparse_linalg.eigsh(symmetric(v), 2, sigma=1.5)[0],
    "one of a full matrix": lambda v: sparse_linalg.eigsh(symmetric(v).toarray(), 1, which="LA")[0],
    "columns first": lambda v: sparse_linalg.eigsh(symmetric(v).tocsc(), 2, v0=np.ones(6), maxiter=500)[0],
    "vectors but for their signs": lambda v: sparse_linalg.eigsh(symmetric(v), 3)[1] ** 2,
    "projections": lambda v: (sparse_linalg.eigsh(symmetric(v), 2, which="SM")[1].T @ VECTOR) ** 2,
    "Frobenius": lambda v: sparse_linalg.norm(matrix(v)),
    "Frobenius of rows and columns": lambda v: sparse_linalg.norm(matrix(v).tocsc(), "fro", axis=(1, 0)),
    "columns": lambda v: sparse_linalg.norm(matrix(v), 1),
    "rows": lambda v: sparse_linalg.norm(matrix(v).tocsr(), np.inf),
    "least columns": lambda v: sparse_linalg.norm(regular(v), -1),
    "least rows": lambda v: sparse_linalg.norm(regular(v), -np.inf),
    "rows for columns": lambda v: sparse_linalg.norm(regular(v), 1, axis=(1, 0)),
    "spectral": lambda v: sparse_linalg.norm(regular(v), 2),
    "spectral of few rows": lambda v: sparse_linalg.norm(matrix(v).tocsr()[1:4], 2),
    "each row": lambda v: sparse_linalg.norm(matrix(v), axis=1),
    "each column": lambda v: sparse_linalg.norm(matrix(v).tocsr()[:, 1:], 2, axis=0),
    "each row by another power": lambda v: sparse_linalg.norm(matrix(v), 3, axis=-1),
    "sums of rows": lambda v: sparse_linalg.norm(matrix(v), 1, axis=1),
    "largest of columns": lambda v: sparse_linalg.norm(matrix(v), np.inf, axis=0),
    "least of rows": lambda v: sparse_linalg.norm(matrix(v), -np.inf, axis=1),
    "entries of rows": lambda v: sparse_linalg.norm(matrix(v), 0, axis=1) * v[:6],
    "older matrices": lambda v: (
        sparse_linalg.norm(sparse.csr_matrix(matrix(v)), 1) + sparse_linalg.norm(sparse.csr_matrix(matrix(v)), axis=1)
    ),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_spectra(name: str) -> None:
    """Values, and derivatives in both modes and of second order beside differences of SciPy's; compiled and mapped."""
    plain = SPECTRA[name]
    function = nb.differentiable_source(plain)
    given = SYMMETRIC if "symmetric" in plain.__code__.co_names else VALUES
    np.testing.assert_allclose(nb.vjp(function, given)[0], plain(given), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(nb.jit(function)(given), plain(given), rtol=1e-9, atol=1e-10)
    check_derivative(lambda v: function(v) if isinstance(v, nb.Tensor) else plain(v), given, tolerance=2e-6)
    several = np.stack([given, given[::-1] * 0.9 + 0.01])
    gradient = nb.grad(lambda v: np.sum(function(v) ** 2))
    np.testing.assert_allclose(nb.vmap(gradient)(several), [gradient(v) for v in several], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(nb.jit(gradient)(given), gradient(given), rtol=1e-7, atol=1e-9)


def test_slopes_of_eigenvalues_are_products_of_vectors() -> None:
    """Of a sum of all but one eigenvalues: the identity without the projection on that one's vector."""
    total = nb.differentiable_source(
        lambda v: np.sum(sparse_linalg.eigsh(symmetric(v), 5, which="LA", return_eigenvectors=False))
    )
    least = np.linalg.eigh(symmetric(SYMMETRIC).toarray())[1][:, 0]
    want = np.concatenate([1 - least**2, -2 * least[:-1] * least[1:]])
    np.testing.assert_allclose(nb.grad(total)(SYMMETRIC), want, rtol=1e-9, atol=1e-13)


def test_eigenvalues_inside_of_an_integral() -> None:
    """The largest one is linear in a factor, which is integrated from 1/2 to 1."""
    function = nb.differentiable_source(
        lambda v: nb.solvers.quad(lambda z: sparse_linalg.eigsh(symmetric(v * z), 1, which="LA")[0][0], 0.5, 1.0)[0]
    )
    values, vectors = np.linalg.eigh(symmetric(SYMMETRIC).toarray())
    vector = vectors[:, -1]
    value, gradient = nb.value_and_grad(function)(SYMMETRIC)
    np.testing.assert_allclose(value, values[-1] * 0.375, rtol=1e-9)
    want = np.concatenate([vector**2, 2 * vector[:-1] * vector[1:]]) * 0.375
    np.testing.assert_allclose(gradient, want, rtol=1e-8, atol=1e-12)


def test_the_sum_of_equal_eigenvalues() -> None:
    values = np.concatenate([[3.0, 3.0, 1.0, 0.5, 0.2, 0.1], np.zeros(5)])
    total = nb.differentiable_source(lambda v: np.sum(sparse_linalg.eigsh(symmetric(v), 2, which="LA")[0]))
    np.testing.assert_allclose(nb.grad(total)(values)[:6], [1, 1, 0, 0, 0, 0], atol=1e-9)


@pytest.mark.parametrize(
    ("program", "error", "match"),
    [
        (lambda v: sparse_linalg.eigsh(matrix(v), 6), ValueError, "k from 1 to 5"),
        (lambda v: sparse_linalg.eigsh(matrix(v), 0), ValueError, "k from 1 to 5"),
        (lambda v: sparse_linalg.eigsh(matrix(v)[:3], 1), ValueError, "square"),
        (lambda v: sparse_linalg.eigsh(matrix(v), 2, which="LR"), ValueError, "which='LR'"),
        (lambda v: sparse_linalg.norm(v), TypeError, "numpy.linalg.norm"),
        (lambda v: sparse_linalg.norm(matrix(v), 3), ValueError, "no norm of order 3"),
        (lambda v: sparse_linalg.norm(matrix(v), axis=2), ValueError, "axis=2"),
        (lambda v: sparse_linalg.norm(matrix(v), axis=(1, 1)), ValueError, r"axis=\(1, 1\)"),
        (lambda v: sparse_linalg.norm(matrix(v), "fro", axis=1), ValueError, "order 'fro'"),
    ],
)
def test_errors_of_spectra(program: Any, error: Any, match: str) -> None:
    """SciPy refuses these, too; k = 6 by a warning first."""
    with pytest.raises((error, TypeError, RuntimeWarning)):
        program(VALUES)
    with pytest.raises(error, match=match):
        nb.vjp(nb.differentiable_source(program), VALUES)


def test_complex_norms() -> None:
    values = VALUES + 1j * VALUES[::-1]
    for options in ({}, {"ord": 1}, {"axis": 1}, {"axis": 0, "ord": 3}):
        function = nb.differentiable_source(lambda v, options=options: sparse_linalg.norm(matrix(v), **options))
        np.testing.assert_allclose(
            nb.vjp(function, values)[0], sparse_linalg.norm(matrix(values), **options), rtol=1e-12
        )
        nb.check_grads(function, (values,))
    with pytest.raises(ValueError, match="6 rows"):
        nb.vjp(nb.differentiable_source(lambda v: sparse_linalg.eigsh(matrix(v), 2, v0=np.ones(3))[0]), VALUES)
    with pytest.raises(nb.errors.DtypeError, match="real matrix"):
        nb.vjp(nb.differentiable_source(lambda v: sparse_linalg.eigsh(matrix(v), 2)[0]), values)
