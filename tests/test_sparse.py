"""Sparse Jacobians and Hessians: patterns and values against central differences of plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import nbgrad as nb
from nbgrad.graph.batch import batch
from nbgrad.graph.differentiate import jvp
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, constant, placeholder
from nbgrad.graph.show import show
from nbgrad.graph.simplify import simplify
from nbgrad.graph.trace import recording
from nbgrad.sparse.colors import _star_colors, plan, symmetric_plan
from nbgrad.sparse.pattern import dependencies
from nbgrad.transforms.arguments import with_zeros

from .test_random_graphs import LONG, QUICK, graphs, inputs_of

pytestmark = pytest.mark.unoptimized

Function = Callable[..., Any]


def differences(fn: Function, x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The dense Jacobian by central differences; exactly zero where nothing changes."""
    columns = []
    for k in range(x.size):
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved.flat[k] += sign * step
            ends.append(np.asarray(fn(moved), np.float64).ravel())
        columns.append((ends[0] - ends[1]) / (2 * step))
    return np.stack(columns, axis=1) if columns else np.zeros((np.asarray(fn(x)).size, 0))


BAND = np.diag(np.full(8, 2.0)) + np.diag(np.full(7, -1.0), 1) + np.diag(np.full(5, 3.0), -3)
MASK = np.arange(8) % 3 == 0
ORDER = np.array([3, 1, 1, 0, 7, 6, 6])


def written(x: Any) -> Any:
    """In-place code."""
    y = x * 1.0
    y[2:5] = x[0] * x[1:4]
    y[MASK] += x[7]
    y[ORDER] *= 2.0
    return y


def added_at(x: Any) -> Any:
    total = np.zeros_like(x)
    np.add.at(total, ORDER, x[:7] ** 2)
    return total


def substitution(x: Any) -> Any:
    """A recurrence in a Python loop."""
    state, out = x[0], []
    for k in range(1, 8):
        state = state / 2 + x[k] ** 2 if k != 4 else x[k]
        out.append(state)
    return np.stack(out)


@nb.custom_vjp
def halved_slope(x: Any) -> Any:
    """Its rule is the true one, of a function that mixes neighbours."""
    return x[1:] * x[:-1]


def _halved_backward(x: Any, g: Any) -> tuple[Any, ...]:
    return (np.concatenate([g * x[1:], np.zeros(1)]) + np.concatenate([np.zeros(1), g * x[:-1]]),)


halved_slope.defvjp(lambda x: (x[1:] * x[:-1], x), _halved_backward)

EXACT: dict[str, Function] = {
    "elementwise": lambda x: np.sin(x) * np.exp(x) / (1 + x**2),
    "identity": lambda x: x,
    "constant": lambda x: np.ones(3),
    "partly constant": lambda x: np.concatenate([x[:2] ** 2, np.ones(3)]),
    "tridiagonal": lambda x: x[2:] * x[:-2] - 2 * x[1:-1] ** 2,
    "strided": lambda x: x[::2] * x[::-2],
    "reversed and rolled": lambda x: x[::-1] + np.roll(x, 2) ** 2,
    "padded": lambda x: np.diff(np.pad(x**2, (2, 1))),
    "outer product": lambda x: np.outer(x[:3], x[5:]),
    "matrix": lambda x: np.transpose(x.reshape(2, 4)) * x.reshape(4, 2),
    "broadcast": lambda x: x[:4, None] * np.ones(3),
    "rows": lambda x: np.sum(x.reshape(2, 4) ** 2, axis=1),
    "columns": lambda x: np.prod(x.reshape(2, 4), axis=0),
    "mean": lambda x: x - np.mean(x.reshape(4, 2), axis=1).repeat(2) ** 2,
    "scalar": lambda x: np.sum(x[:3] ** 2),
    "stacked": lambda x: np.stack([x[0] * x[1], x[7], x[3] ** 2]),
    "gathered": lambda x: x[ORDER] ** 2,
    "masked": lambda x: x[MASK] * 3.0,
    "written": written,
    "added at": added_at,
    "selected by a constant": lambda x: np.where(MASK, x**2, np.roll(x, 1)),
    "times a constant with zeros": lambda x: x * MASK + np.roll(x, 1),
    "zero": lambda x: 0.0 * x + x[::-1],
    "band": lambda x: BAND @ x**2,
    "band from the right": lambda x: x @ BAND,
    "band times a matrix": lambda x: BAND[:4, :4] @ np.sin(x.reshape(4, 2)),
    "matrix times a band": lambda x: x.reshape(2, 4) @ BAND[:4, :4],
    "matrices": lambda x: x[:4].reshape(2, 2) @ x[4:].reshape(2, 2),
    "einsum": lambda x: np.einsum("ij,kj->ik", x.reshape(4, 2), BAND[:3, 2:4]),
    "sums so far": lambda x: np.cumsum(x**2),
    "sums so far in rows": lambda x: np.cumsum(x.reshape(2, 4) ** 2, axis=1),
    "products so far": lambda x: np.cumprod(x.reshape(4, 2), axis=0),
    "recurrence": substitution,
    "convolution": lambda x: np.convolve(x, [1.0, 0.0, 2.0]),
    "gradient": lambda x: np.gradient(x**3),
    "rounded": lambda x: np.floor(x) + np.sign(x) * x[::-1],
    "stopped": lambda x: nb.stop_gradient(1.0) * x if isinstance(x, np.ndarray) else x + 0 * nb.stop_gradient(x),
    "own rule": halved_slope,
    "square root of sums": lambda x: np.sqrt(np.sum(x.reshape(4, 2) ** 2, axis=1)),
    "triangular product": lambda x: np.tril(np.outer(x[:4], x[4:])),
    "diagonal": lambda x: np.diag(x[:3]) + np.ones((3, 3)),
    "gradient inside": lambda x: x,
    "kron": lambda x: np.kron(x[:2], x[6:]),
    "repeat and tile": lambda x: np.repeat(x, 2) * np.tile(x, 2),
    "nested": lambda x: nb.jit(np.square)(x)[1:] + nb.vmap(np.sin)(x)[:-1],
    "empty result": lambda x: x[:0],
}
"""Functions of 8 numbers, of whose patterns all entries are needed."""

COVERED: dict[str, Function] = {
    "selected by values": lambda x: np.where(x > 0.3, x**2, np.roll(x, 1)),
    "maximum": lambda x: np.maximum(x, x[::-1]),
    "largest": lambda x: np.max(x.reshape(2, 4), axis=1) * x[:2],
    "largest so far": lambda x: np.maximum.accumulate(x),
    "softmax": lambda x: np.exp(x) / np.sum(np.exp(x)),
    "solution": lambda x: np.linalg.solve(BAND[:2, :2] + np.diag(x[:2]), x[2:4]),
    "inverse": lambda x: np.linalg.inv(BAND[:2, :2] + x[:4].reshape(2, 2)),
    "determinant": lambda x: np.linalg.det(x.reshape(2, 2, 2)),
    "factor": lambda x: np.linalg.cholesky(np.eye(3) + np.outer(x[:3], x[:3])),
    "norm": lambda x: x / np.linalg.norm(x),
    "absolute": lambda x: np.abs(x - 0.5) + x[::-1],
    "sorted": lambda x: np.sort(x) ** 2,
    "by rank": lambda x: x[np.argsort(x)[:3]],
    "interpolated": lambda x: np.interp(x, np.linspace(-1, 2, 7), np.linspace(-1, 2, 7) ** 2),
    "interpolating": lambda x: np.interp(np.linspace(0.1, 1, 4), np.linspace(0, 1, 8), x),
    "clipped": lambda x: np.clip(x, 0.2, 0.6),
    "median": lambda x: np.median(x.reshape(2, 4), axis=1),
    "variance": lambda x: np.var(x.reshape(2, 4), axis=1),
}
"""Functions whose patterns hold more than the derivatives at one point."""


def points() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(0.1, 0.9, 8) for _ in range(3)]


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("name", [*EXACT, *COVERED])
def test_values_and_patterns_are_those_of_differences(name: str) -> None:
    fn = EXACT.get(name) or COVERED[name]
    jacobian = nb.sparse_jacobian(fn)
    seen: Any = False
    pattern: Any = None
    for x in points():
        dense = differences(fn, x)
        found = jacobian(x)
        assert isinstance(found, scipy.sparse.csr_array) and found.dtype == np.float64
        assert found.shape == dense.shape and found.has_canonical_format
        np.testing.assert_allclose(found.toarray(), dense, atol=2e-8)
        pattern = jacobian.pattern(x)
        assert pattern.dtype == np.bool_ and np.array_equal(pattern.indices, found.indices)
        assert not (dense[~pattern.toarray()]).any()
        seen = seen | (np.abs(dense) > 1e-7)
        columns, rows = jacobian.colors(x)
        assert jacobian.products(x) == columns.max(initial=-1) + rows.max(initial=-1) + 2 <= 8
        if name in EXACT:
            np.testing.assert_allclose(found.toarray(), nb.jacfwd(fn)(x).reshape(dense.shape), rtol=1e-13, atol=1e-15)
    if name in EXACT:
        np.testing.assert_array_equal(pattern.toarray(), seen)


def test_a_rule_of_the_users_is_followed() -> None:
    x = points()[0]
    np.testing.assert_allclose(
        nb.sparse_jacobian(halved_slope)(x).toarray(), differences(lambda v: v[1:] * v[:-1], x), atol=1e-8
    )


# ----- Large systems -----


def bratu(u: Any, strength: Any) -> Any:
    """u'' + strength exp(u) = 0 on (0, 1), zero at both ends: differences on a grid, times the step squared."""
    padded = np.concatenate([np.zeros(1), u, np.zeros(1)])
    return padded[2:] - 2.0 * u + padded[:-2] + strength * np.exp(u) / (u.size + 1) ** 2


def test_newton_on_a_tridiagonal_system_of_a_hundred_thousand_unknowns() -> None:
    """Bratu's equation, whose solution is 2 log(cosh(c) / cosh(c (1 - 2 x))), 8 c^2 = strength cosh(c)^2."""
    n = 100_000
    c = 0.3792916498339337
    strength = 8 * c**2 / np.cosh(c) ** 2
    grid = np.arange(1, n + 1) / (n + 1)
    jacobian, u, change = nb.sparse_jacobian(bratu), np.zeros(n), np.ones(n)
    for _ in range(6):
        matrix = jacobian(u, strength)
        assert matrix.nnz == 3 * n - 2
        change = np.asarray(scipy.sparse.linalg.spsolve(matrix, -bratu(u, strength)))
        u = u + change
    assert np.max(np.abs(change)) < 1e-9
    np.testing.assert_allclose(u, 2 * np.log(np.cosh(c) / np.cosh(c * (1 - 2 * grid))), atol=1e-7)
    assert jacobian.products(u, strength) == 1  # each row reads three elements of its own
    diagonal = -2 + strength * np.exp(u) / (n + 1) ** 2
    np.testing.assert_array_equal(jacobian(u, strength).diagonal(), diagonal)
    np.testing.assert_array_equal(jacobian(u, strength).diagonal(1), np.ones(n - 1))


def five_points(u: Any) -> Any:
    padded = np.pad(u, 1)
    return padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2] - 4.0 * u + u**3


def test_a_stencil_on_a_grid_takes_one_product() -> None:
    u = np.random.default_rng(0).standard_normal((60, 45))
    jacobian = nb.sparse_jacobian(five_points)
    line = [scipy.sparse.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1]) for n in u.shape]  # pyright: ignore
    across = scipy.sparse.kron(line[0], scipy.sparse.eye_array(45)) + scipy.sparse.kron(
        scipy.sparse.eye_array(60), line[1]
    )
    expected = across + scipy.sparse.diags_array(3 * u.ravel() ** 2 - 4)
    assert abs(jacobian(u) - expected).max() < 1e-14
    assert jacobian.products(u) == 1
    cube = np.ones((6, 5, 7))

    def seven_points(v: Any) -> Any:
        padded = np.pad(v, 1)
        return sum(np.roll(padded, s, axis)[1:-1, 1:-1, 1:-1] for axis in range(3) for s in (1, -1)) * v

    assert nb.sparse_jacobian(seven_points).products(cube) == 1


def test_arrows_take_few_products_whichever_way_they_point() -> None:
    n = 5000
    x = np.random.default_rng(0).uniform(0.5, 1.5, n)

    def row(x: Any) -> Any:
        return np.concatenate([np.sum(x**2)[None], x[1:] ** 3])

    def column(x: Any) -> Any:
        return x * x[0]

    def both(x: Any) -> Any:
        return np.concatenate([np.sum(x**2)[None], x[1:] * x[0]])

    counts = {}
    for fn in (row, column, both):
        jacobian = nb.sparse_jacobian(fn)
        counts[fn.__name__] = jacobian.products(x)
        way = np.cos(np.arange(n))
        np.testing.assert_allclose(jacobian(x) @ way, nb.jvp(fn, x, way)[1], rtol=1e-12)
        np.testing.assert_allclose(way @ jacobian(x), nb.vjp(fn, x)[1](way)[0], rtol=1e-12)
    assert counts == {"row": 1, "column": 2, "both": 3}


def test_elements_are_read_by_positions_and_more_than_once() -> None:
    """Springs between neighbours of a mesh, whose rows read each end twice: entries are added, one product each."""
    n, count = 2000, 3000
    rng = np.random.default_rng(0)
    ends = rng.integers(0, n, (count, 2))
    ends[:, 1] = (ends[:, 0] + rng.integers(1, n, count)) % n

    def springs(x: Any, rest: Any) -> Any:
        return (x[ends[:, 0]] - x[ends[:, 1]]) ** 2 + np.sin(x[ends[:, 0]]) * rest

    x, rest = rng.standard_normal(n), rng.standard_normal(count)
    jacobian = nb.sparse_jacobian(springs, (0, 1))
    row = np.arange(count)
    change = 2 * (x[ends[:, 0]] - x[ends[:, 1]])
    parts = [
        (change + np.cos(x[ends[:, 0]]) * rest, ends[:, 0]),
        (-change, ends[:, 1]),
        (np.sin(x[ends[:, 0]]), n + row),
    ]
    entries = np.concatenate([values for values, _ in parts])
    columns = np.concatenate([column for _, column in parts])
    expected = scipy.sparse.csr_array((entries, (np.tile(row, 3), columns)), shape=(count, n + count))
    assert abs(jacobian(x, rest) - expected).max() < 1e-14
    assert jacobian.products(x, rest) == 1 and jacobian.colors(x, rest)[0].max() == -1
    # Reversed, a border of other numbers, an argument that is returned as it is, and a part of it.
    other = nb.sparse_jacobian(lambda v: (np.concatenate([v[::-1][1:], np.ones(2)]) * np.arange(n + 1.0), v, v[3:7]))
    dense = np.zeros((2 * n + 5, n))
    dense[np.arange(n - 1), np.arange(n - 2, -1, -1)] = np.arange(n - 1)
    dense[n + 1 :] = np.concatenate([np.eye(n), np.eye(n)[3:7]])
    assert abs(other(x) - dense).max() == 0


def chained(x: Any) -> Any:
    """Rosenbrock's function of many variables."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def test_hessian_of_a_hundred_thousand_unknowns() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, 100_000)
    hessian = nb.sparse_hessian(chained)
    found = hessian(x)
    diagonal = np.concatenate([1200 * x[:-1] ** 2 - 400 * x[1:] + 2, [0.0]])
    diagonal[1:] += 200
    np.testing.assert_allclose(found.diagonal(), diagonal, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.diagonal(1), -400 * x[:-1], rtol=1e-13)
    np.testing.assert_array_equal(found.diagonal(1), found.diagonal(-1))
    assert found.nnz == 3 * x.size - 2 and hessian.products(x) == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hessian_by_several_arguments(dtype: Any) -> None:
    """Of sum(a b^2) + sum(a[0] a): blocks follow one another, and mirrored entries agree."""

    def fn(a: Any, b: Any) -> Any:
        return np.sum(a * b**2) + np.sum(a[0] * a)

    a, b = np.array([1.0, 2.0, 3.0], dtype), np.array([4.0, 5.0, 6.0], dtype)
    hessian = nb.sparse_hessian(fn, (0, 1))
    found = hessian(a, b)
    corner = np.array([[2.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    expected = np.block([[corner, np.diag(2 * b)], [np.diag(2 * b), np.diag(2 * a)]])
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-6)
    assert found.dtype == dtype
    np.testing.assert_allclose(nb.sparse_hessian(fn, 1)(a, b=b).toarray(), np.diag(2 * a), rtol=1e-6)


def test_newton_finds_the_minimum_of_the_chained_function() -> None:
    x = np.full(1000, 0.9)
    hessian, gradient = nb.sparse_hessian(chained), nb.jit(nb.grad(chained))
    for _ in range(30):
        x = x - scipy.sparse.linalg.spsolve(hessian(x), gradient(x))
    np.testing.assert_allclose(x, 1.0, atol=1e-12)


# ----- Random graphs and patterns -----


def check_pattern(outputs: list[Node], recorded: bool) -> None:
    """Where a tangent along a unit vector is not zero, the pattern has an entry."""
    wrt = inputs_of(outputs)
    floats = [node for node in outputs if node.dtype.kind == "f"]
    stand_ins = [placeholder(node.shape, node.dtype) for node in wrt]
    tangents = with_zeros(jvp(floats, wrt, stand_ins), floats)
    count = sum(node.size for node in wrt)
    if not tangents or not count:
        return
    with recording(wrt, jit=True) if recorded else nullcontext():
        patterns = [dependencies(found, stand_ins).toarray() for found in (tangents, simplify(tangents))]
    basis, offset = {}, 0
    for stand_in in stand_ins:
        unit = np.eye(count)[:, offset : offset + stand_in.size]
        basis[stand_in] = constant(unit.reshape(count, *stand_in.shape).astype(stand_in.dtype))
        offset += stand_in.size
    found = [value.reshape(count, value[0].size) for value in interpret(batch(tangents, basis, count))]
    dense = np.concatenate(found, axis=1).T
    for pattern in patterns:
        assert pattern.shape == dense.shape
        assert not np.any(np.isfinite(dense) & (dense != 0) & ~pattern), show(tangents)


@settings(QUICK, max_examples=150)
@given(graphs(steps=14, smooth=True), st.booleans())
def test_patterns_of_random_graphs_miss_nothing(outputs: list[Node], recorded: bool) -> None:
    check_pattern(outputs, recorded)


@pytest.mark.slow
@settings(LONG)
@given(graphs(steps=20), st.booleans())
def test_patterns_of_more_random_graphs_miss_nothing(outputs: list[Node], recorded: bool) -> None:
    check_pattern(outputs, recorded)


def random_matrix(shape: tuple[int, int], density: float, rng: np.random.Generator) -> Any:
    """A csr_array with about so many of its entries not zero."""
    return scipy.sparse.csr_array(rng.standard_normal(shape) * (rng.random(shape) < density))


@pytest.mark.parametrize("shape", [(30, 30), (50, 12), (12, 50), (1, 20), (20, 1)])
@pytest.mark.parametrize("density", [0.02, 0.1, 0.5, 1.0])
def test_random_patterns(shape: tuple[int, int], density: float) -> None:
    rng = np.random.default_rng(int(density * 100) + shape[0])
    matrix = random_matrix(shape, density, rng).tocoo()
    rows, columns = matrix.nonzero()

    def fn(x: Any) -> Any:
        out = np.zeros_like(x, shape=shape[0])
        np.add.at(out, rows, matrix.data * np.sin(x[columns]) * x[columns[::-1] * 0 + columns])
        return out

    x = rng.standard_normal(shape[1])
    jacobian = nb.sparse_jacobian(fn)
    expected = matrix.toarray() * (np.sin(x) + x * np.cos(x))
    np.testing.assert_allclose(jacobian(x).toarray(), expected, rtol=1e-12, atol=1e-15)
    assert jacobian.pattern(x).nnz == matrix.nnz
    assert jacobian.products(x) <= min(shape)


@pytest.mark.parametrize("density", [0.02, 0.1, 0.5])
def test_random_symmetric_patterns(density: float) -> None:
    rng = np.random.default_rng(3)
    n = 40
    pairs = rng.integers(0, n, (int(density * n * n / 2), 2))
    weights = rng.standard_normal(len(pairs))

    def fn(x: Any) -> Any:
        return np.sum(weights * np.sin(x[pairs[:, 0]] * x[pairs[:, 1]])) + np.sum(x**4)

    x = rng.standard_normal(n)
    found, dense = nb.sparse_hessian(fn)(x), nb.hessian(fn)(x)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-11, atol=1e-12)
    expected = differences(nb.grad(fn), x)
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_star_colorings_have_three_colors_on_paths_of_four(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    half = rng.random((n, n)) < rng.uniform(0.02, 0.6)
    graph = half | half.T | np.eye(n, dtype=bool)
    colors = _star_colors(scipy.sparse.csr_array(graph))
    assert np.all(colors >= 0)
    near = [np.flatnonzero(row & (np.arange(n) != v)) for v, row in enumerate(graph)]
    for a in range(n):
        for b in near[a]:
            assert colors[a] != colors[b]
            for c in near[b]:
                for d in near[c]:
                    if a not in (c, d) and b != d:
                        assert len({colors[a], colors[b], colors[c], colors[d]}) > 2, (a, b, c, d)


def test_hubs_cost_no_more_than_their_edges() -> None:
    """An arrow of 50 000 rows; by pairs of leaves it would take minutes."""
    n = 50_000
    hessian = nb.sparse_hessian(lambda x: x[0] * np.sum(x**2))
    x = np.linspace(0, 1, n)
    assert hessian.products(x) == 2 and hessian(x).nnz == 3 * n - 2


@pytest.mark.parametrize("seed", range(30))
def test_plans_find_each_entry(seed: int) -> None:
    """Products of a matrix of distinct numbers, read where the plan says, are the matrix."""
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 30)), int(rng.integers(1, 30)))
    matrix = random_matrix(shape, rng.uniform(0, 0.6), rng)
    if seed % 3 == 0:
        matrix = scipy.sparse.vstack([np.full((1, shape[1]), 1.5), matrix]).tocsr()
    for symmetric in (False, True):
        if symmetric:
            shape = (shape[0], shape[0])
            half = random_matrix(shape, 0.15, rng)
            matrix = (half + half.T + scipy.sparse.eye_array(shape[0])).tocsr()
        matrix.sort_indices()
        found = (symmetric_plan if symmetric else plan)(matrix.astype(bool))
        columns = np.array([matrix @ (found.columns == k) for k in range(found.forward)]).reshape(-1)
        rows = np.array([(found.rows == k) @ matrix for k in range(found.reverse)]).reshape(-1)
        np.testing.assert_allclose(np.concatenate([columns, rows])[found.place], matrix.data)


# ----- Blocks -----


def two_species(u: Any) -> Any:
    """Diffusion of two species on a line, with a reaction at each point."""
    c = u.reshape(-1, 2)
    left, right = np.concatenate([c[:1], c[:-1]]), np.concatenate([c[1:], c[-1:]])
    product = c[:, 0] * c[:, 1]
    return (left - 2.0 * c + right + np.stack([-product, product**2], axis=1)).ravel()


@pytest.mark.parametrize("block", [1, 2, (2, 4), (4, 2), 8])
def test_blocks_are_whole(block: Any) -> None:
    u = np.linspace(0.5, 1.5, 16)
    plain = nb.sparse_jacobian(two_species)(u)
    jacobian = nb.sparse_jacobian(two_species, block=block)
    for point in (u, 2 * u):
        got = jacobian(point)
        assert isinstance(got, scipy.sparse.bsr_array)
        assert got.blocksize == (block if isinstance(block, tuple) else (block, block))
        np.testing.assert_allclose(got.toarray(), differences(two_species, point), atol=1e-8)
    np.testing.assert_array_equal(jacobian(u).toarray(), plain.toarray())
    rows, columns = got.blocksize
    occupied = plain.toarray().reshape(16 // rows, rows, 16 // columns, columns).any(axis=(1, 3))
    assert got.data.shape[0] == occupied.sum()
    got.data[...] = 0.0
    np.testing.assert_array_equal(jacobian(u).toarray(), plain.toarray())
    x = scipy.sparse.linalg.spsolve(jacobian(u).tocsc(), u)
    np.testing.assert_allclose(plain @ x, u, rtol=1e-9)


def test_blocks_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"Blocks of 3 x 3 do not divide a matrix of shape \(16, 16\)"):
        nb.sparse_jacobian(two_species, block=3)(np.ones(16))
    with pytest.raises(TypeError, match=r"block must be a number of rows and columns, .* but got 2.0"):
        nb.sparse_jacobian(two_species, block=2.0)
    with pytest.raises(ValueError, match="block must be at least 1, but got 0"):
        nb.sparse_jacobian(two_species, block=0)
