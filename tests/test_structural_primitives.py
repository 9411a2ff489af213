"""Primitives with parameters: movement, reductions, scans, scatter, sorting, products, casts."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from nbgrad.functions.linalg.matrix_batches import identity
from nbgrad.graph.builders import (
    accumulate,
    argsort,
    cast,
    cholesky,
    complete_pivots,
    concatenate,
    fold,
    gather,
    iota,
    lu,
    lu_solve,
    matmul,
    pad,
    recurrence,
    reduce,
    reshape,
    scatter_add,
    scatter_last,
    slice_axes,
    symmetric_eigen,
    transpose,
    triangular_solve,
    unfold,
    window_argmax,
)
from nbgrad.graph.differentiate import jvp, vjp
from nbgrad.graph.formulas import write, write_at
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, broadcast, constant, elementwise, make, placeholder
from nbgrad.runtime.evaluate import compute

from .agreement import quiet
from .high_precision import (
    EPSILON,
    FLOAT,
    FLOATS,
    Array,
    Function,
    check_derivatives,
    close,
    draw,
    nodes_of,
)
from .image_windows import (
    CONVOLUTIONS,
    WINDOWS,
    convolved,
    convolved_back,
    convolved_pairs,
    window_maxima,
    windows_added,
    windows_of,
)

pytestmark = pytest.mark.unoptimized

# ----- Structure -----


@dataclass(frozen=True)
class Structure:
    """One use of a primitive with parameters: how to build it, the same in NumPy, and the operands' shapes."""

    build: Function
    reference: Function
    shapes: tuple[tuple[int, ...], ...]
    step: str = "complex"


def _convolutions(name: str, reference: Any, first: int, second: int, *result: int) -> list[Structure]:
    """Cases of one of the three primitives: which of images, filters and outputs are its operands and its result."""
    found: list[Structure] = []
    for x, w, windows, groups in CONVOLUTIONS:
        shapes = x, w, (x[0], w[0], *windows[4])
        params, fixed = (*windows, x[2:], groups), (windows, groups, *[shapes[k] for k in result])
        found.append(
            Structure(
                lambda a, b, p=params: make(name, (a, b), p),
                lambda a, b, f=fixed: reference(a, b, *f),
                (shapes[first], shapes[second]),
            )
        )
    return found


def _scattered(size: int, index: Array) -> Function:
    def scatter(x: Array) -> Array:
        out = np.zeros(size, x.dtype)
        np.add.at(out, index, x)
        return out

    return scatter


def _recurred(reverse: bool) -> Function:
    def recur(a: Array, b: Array) -> Array:
        a, b = np.asarray(a), np.asarray(b)
        out = np.zeros(b.shape, np.result_type(a, b))
        state: Any = 0.0
        for i in reversed(range(b.shape[-1])) if reverse else range(b.shape[-1]):
            state = a[..., i] * state + b[..., i]
            out[..., i] = state
        return out

    return recur


def _swapped(a: Array) -> Array:
    return np.swapaxes(a, -1, -2)


def _cholesky(a: Array) -> Array:
    """Row by row, for complex numbers too."""
    out = np.zeros_like(a)
    for matrix, factor in zip(a, out, strict=True):
        for i in range(len(matrix)):
            for j in range(i + 1):
                rest = matrix[i, j] - factor[i, :j] @ factor[j, :j]
                factor[i, j] = np.sqrt(rest) if i == j else rest / factor[j, j]
    return out


def _substituted(lower: bool, transposed: bool, unit: bool) -> Function:
    """Forward or back substitution, for complex numbers too."""

    def solve(a: Array, b: Array) -> Array:
        out = np.zeros(b.shape, np.result_type(a, b))
        for matrix, right, x in zip(a, b, out, strict=True):
            used = (np.tril if lower else np.triu)(matrix)
            used = used.T if transposed else used
            n = len(used)
            for i in range(n) if lower != transposed else reversed(range(n)):
                x[i] = right[i] - used[i] @ x + used[i, i] * x[i]
                x[i] = x[i] if unit else x[i] / used[i, i]
        return out

    return solve


def _eliminated(a: Array) -> Array:
    """Gaussian elimination that exchanges columns, and the bookkeeping of the primitive."""
    batch, n, _ = a.shape
    out = np.zeros((batch, n + 2, n))
    for matrix, result in zip(a.copy(), out, strict=True):
        order, signs = list(range(n)), np.ones(n)
        for k in range(n):
            best = k + int(np.argmax(np.abs(matrix[k, k:])))
            matrix[:, [k, best]] = matrix[:, [best, k]]
            order[k], order[best] = order[best], order[k]
            signs[k] = 1 if best == k else -1
            matrix[k, k + 1 :] /= matrix[k, k]
            matrix[k + 1 :, k + 1 :] -= np.outer(matrix[k + 1 :, k], matrix[k, k + 1 :])
        result[:n], result[n], result[n + 1] = matrix, signs * (np.array(order) + 1), np.argsort(order) + 1
    return out


def _largest_pivots(a: Array) -> Array:
    """Elimination with exchanges of rows and columns."""
    batch, n, _ = a.shape
    out = np.zeros((batch, 2, n), int)
    for matrix, result in zip(a.copy(), out, strict=True):
        orders = np.array([range(1, n + 1)] * 2)
        for k in range(n - 1):
            row, column = divmod(int(np.argmax(np.abs(matrix[k:, k:]))), n - k)
            matrix[[k, k + row]] = matrix[[k + row, k]]
            matrix[:, [k, k + column]] = matrix[:, [k + column, k]]
            for order, step in zip(orders, (row, column), strict=True):
                order[[k, k + step]] = order[[k + step, k]]
                order[k] *= -1 if step else 1
            matrix[k + 1 :] -= np.outer(matrix[k + 1 :, k] / matrix[k, k], matrix[k])
        result[:] = orders
    return out


def _reduced(name: str, axes: tuple[int, ...]) -> tuple[Function, Function]:
    return lambda x: reduce(name, x, axes), lambda x: getattr(np, name)(x, axis=axes)


def _written(x: Array, y: Array, where: Any) -> Array:
    found = x.copy()
    found[where] = y
    return found


def _number(value: int) -> Node:
    return constant(np.array(value))


INDEX = np.array([[2, 0, 2], [5, 5, 1]])
STRUCTURAL: dict[str, list[Structure]] = {
    "gather": [
        Structure(lambda x: gather(x, constant(INDEX)), lambda x: x[INDEX], ((6,),)),
        Structure(lambda x: gather(x, constant(np.array(3))), lambda x: x[3], ((6,),)),
        Structure(lambda x: gather(x, constant(INDEX[:0])), lambda x: x[INDEX[:0]], ((6,),)),
    ],
    "write": [
        Structure(
            lambda x, y: write(x, y, ((1, 2, 2), (0, 3, 1))),
            lambda x, y: _written(x, y, np.s_[1:4:2, :3]),
            ((5, 4), (2, 3)),
        ),
        Structure(lambda x, y: write(x, y, ((3, 2, -3),)), lambda x, y: _written(x, y, np.s_[3::-3]), ((5,), (2,))),
        Structure(lambda x, y: write(x, y, ((4, 5, -1),)), lambda x, y: y[::-1], ((5,), (5,))),
        Structure(
            lambda x, y: write_at(x, y, ((0, 2, 2), (0, 3, 1), (0, 1, 1)), (2, 0), (_number(3), _number(1))),
            lambda x, y: _written(x, y, np.s_[1:4:2, :3, 3:4]),
            ((5, 3, 4), (2, 3, 1)),
        ),
    ],
    "reshape": [
        Structure(lambda x: reshape(x, (3, 4)), lambda x: np.reshape(x, (3, 4)), ((2, 6),)),
        Structure(lambda x: reshape(x, ()), lambda x: np.reshape(x, ()), ((1, 1),)),
        Structure(lambda x: reshape(x, (0, 2)), lambda x: np.reshape(x, (0, 2)), ((3, 0),)),
    ],
    "transpose": [
        Structure(lambda x: transpose(x, (2, 0, 1)), lambda x: np.transpose(x, (2, 0, 1)), ((2, 3, 4),)),
        Structure(lambda x: transpose(x, (1, 0)), lambda x: x.T, ((300, 200),)),
    ],
    "broadcast": [
        Structure(lambda x: broadcast(x, (2, 3, 4)), lambda x: np.broadcast_to(x, (2, 3, 4)), ((3, 1),)),
        Structure(lambda x: broadcast(x, (5,)), lambda x: np.broadcast_to(x, (5,)), ((),)),
        Structure(lambda x: broadcast(x, (0, 4)), lambda x: np.broadcast_to(x, (0, 4)), ((1, 4),)),
    ],
    "slice": [
        Structure(lambda x: slice_axes(x, [(7, 4, -2), (1, 2, 2)]), lambda x: x[7:0:-2, 1:4:2], ((8, 5),)),
        Structure(lambda x: slice_axes(x, [(3, 4, -1)]), lambda x: x[3::-1], ((8,),)),
        Structure(lambda x: slice_axes(x, [(2, 0, 1)]), lambda x: x[2:2], ((8,),)),
        Structure(lambda x: slice_axes(x, [(0, 3, 3)]), lambda x: x[0:7:3], ((9,),)),
    ],
    "pad": [
        Structure(lambda x: pad(x, [(1, 2), (0, 3)]), lambda x: np.pad(x, [(1, 2), (0, 3)]), ((2, 3),)),
        Structure(lambda x: pad(x, [(2, 2)]), lambda x: np.pad(x, [(2, 2)]), ((0,),)),
    ],
    "concatenate": [
        Structure(
            lambda x, y: concatenate([x, y, x], 1),
            lambda x, y: np.concatenate([x + 0 * y.sum(), y + 0 * x.sum(), x + 0 * y.sum()], 1),
            ((2, 3), (2, 1)),
        ),
        Structure(
            lambda *xs: concatenate(xs, 0),
            lambda *xs: np.concatenate(np.broadcast_arrays(*[x + 0 * sum(v.sum() for v in xs) for x in xs])),
            ((3,), (3,), (3,), (3,), (3,), (3,)),
        ),
    ],
    "sum": [
        Structure(*_reduced("sum", axes), (shape,))
        for shape, axes in [
            ((7,), (0,)),
            ((1500,), (0,)),
            ((40_000,), (0,)),
            ((3, 4), (0,)),
            ((3, 4), (0, 1)),
            ((2, 3, 4), (0, 2)),
            ((200, 300), (0,)),
            ((200, 300), (1,)),
            ((0,), (0,)),
            ((3, 0), (1,)),
            ((0, 3), (1,)),
            ((1, 5), (0,)),
        ]
    ],
    "prod": [
        Structure(*_reduced("prod", axes), (shape,))
        for shape, axes in [
            ((5,), (0,)),
            ((1,), (0,)),
            ((3, 4), (0,)),
            ((2, 3, 2), (0, 2)),
            ((3, 0), (1,)),
            ((0, 3), (1,)),
        ]
    ],
    **{
        name: [
            Structure(*_reduced(name, axes), (shape,), "real")
            for shape, axes in [
                ((7,), (0,)),
                ((1990,), (0,)),
                ((40_000,), (0,)),
                ((3, 4), (0,)),
                ((2, 3, 4), (0, 2)),
                ((0, 3), (1,)),
            ]
        ]
        for name in ("max", "min")
    },
    "recurrence": [
        Structure(lambda a, b, r=r: recurrence(a, b, r), _recurred(r), (shape, shape))
        for shape in [(5,), (2, 4), (1,), (2, 0)]
        for r in (False, True)
    ],
    "accumulate": [
        Structure(
            lambda x, n=n: accumulate(n, x), lambda x, n=n: getattr(np, n).accumulate(x, axis=-1), (shape,), "real"
        )
        for shape in [(6,), (3, 5), (2, 0)]
        for n in ("maximum", "minimum")
    ],
    "scatter_add": [
        Structure(lambda x: scatter_add(7, constant(INDEX), x), _scattered(7, INDEX), ((2, 3),)),
        Structure(lambda x: scatter_add(3, constant(INDEX[:0]), x), _scattered(3, INDEX[:0]), ((0, 3),)),
    ],
    "scatter_last": [
        Structure(
            lambda x: scatter_last(4, cast(x, np.dtype(int))),
            lambda x: np.array(
                [
                    np.flatnonzero(x.real.astype(int).ravel() == k)[-1:].sum() - (not (x.real.astype(int) == k).any())
                    for k in range(4)
                ]
            ),
            (shape,),
        )
        for shape in [(5,), (2,)]  # of two, some positions are not named
    ],
    "argsort": [
        Structure(argsort, lambda x: np.argsort(x.real, axis=-1, kind="stable"), (shape,))
        for shape in [(9,), (3, 40), (2, 0), (1,), (700, 60)]
    ],
    "matmul": [
        Structure(matmul, np.matmul, ((2, 3, 4), (2, 4, 5))),
        Structure(
            lambda a, b: matmul(transpose(a, (0, 2, 1)), b),
            lambda a, b: np.swapaxes(a, 1, 2) @ b,
            ((1, 3, 4), (1, 3, 2)),
        ),
        Structure(
            lambda a, b: matmul(a, transpose(b, (2, 1, 0))),
            lambda a, b: a @ np.transpose(b, (2, 1, 0)),
            ((2, 3, 4), (3, 4, 2)),
        ),
        Structure(matmul, np.matmul, ((1, 3, 1), (1, 1, 2))),
        Structure(matmul, np.matmul, ((1, 1, 6), (1, 6, 1))),
        Structure(matmul, np.matmul, ((1, 2, 0), (1, 0, 3))),
        Structure(matmul, np.matmul, ((2, 0, 3), (2, 3, 2))),
    ],
    "unfold": [
        Structure(lambda x, w=w: unfold(x, w), lambda x, w=w: windows_of(x, w), (shape,)) for shape, w in WINDOWS
    ],
    "fold": [
        Structure(
            lambda x, w=w, s=shape: fold(x, w, s[2:]),
            lambda x, w=w, s=shape: windows_added(x, w, s),
            ((shape[1], *w[0], shape[0], *w[4]),),
        )
        for shape, w in WINDOWS
    ],
    "window_argmax": [
        Structure(lambda x, w=w: window_argmax(x, w), lambda x, w=w: window_maxima(x, w), (shape,), "real")
        for shape, w in [*WINDOWS, ((2, 3, 5, 7), ((0, 0), (1, 1), (1, 1), (0, 0), (3, 4)))]
    ],
}
STRUCTURAL |= {
    "convolve": _convolutions("convolve", convolved, 0, 1),
    "convolve_transposed": _convolutions("convolve_transposed", convolved_back, 2, 1, 0),
    "convolve_filters": _convolutions("convolve_filters", convolved_pairs, 0, 2, 1),
    "lu": [Structure(lu, _eliminated, (shape,)) for shape in [(3, 4, 4), (1, 1, 1), (2, 0, 0)]],
    "cholesky": [
        Structure(
            lambda x: cholesky(matmul(x, transpose(x, (0, 2, 1)))), lambda x: _cholesky(x @ _swapped(x)), (shape,)
        )
        for shape in [(2, 3, 4), (1, 1, 1), (0, 2, 2)]
    ],
    "triangular_solve": [
        Structure(lambda a, b, f=f: triangular_solve(a, b, *f), _substituted(*f), ((2, 3, 3), (2, 3, 2)))
        for f in itertools.product((False, True), repeat=3)
    ],
    "lu_solve": [
        Structure(
            lambda a, b, t=t: lu_solve(lu(a + 9.0 * identity(a)), b, t),
            lambda a, b, t=t: np.linalg.solve((_swapped(a) if t else a) + 9.0 * np.eye(3), b),
            ((batch, 3, 3), (batch, 3, 2)),
        )
        for t, batch in itertools.product((False, True), (2, 19))
    ],
    "symmetric_eigen": [
        Structure(
            lambda a, low=low: symmetric_eigen(a, low, vectors=False),
            lambda a, low=low: np.linalg.eigvalsh(a, "L" if low else "U"),
            ((batch, 3, 3),),
        )
        for low, batch in itertools.product((False, True), (2, 19))
    ],
    "complete_pivots": [Structure(complete_pivots, _largest_pivots, (shape,)) for shape in [(3, 5, 5), (2, 1, 1)]],
}
USES = [(name, position) for name, cases in STRUCTURAL.items() for position in range(len(cases))]


CONVOLVING = "convolve convolve_transposed convolve_filters"
FLOATS_ONLY = frozenset(
    f"{CONVOLVING} matmul recurrence lu cholesky triangular_solve lu_solve symmetric_eigen complete_pivots".split()
)
CONSTANTS_TO_DERIVATIVES = ("lu", "lu_solve", "symmetric_eigen")
INTEGERS = frozenset("argsort scatter_last window_argmax complete_pivots".split())


def structural_operands(case: Structure, dtype: str = "float64") -> list[Array]:
    rng = np.random.default_rng(8)
    if case.step == "real":
        # Extrema: no two elements close to each other.
        return [((rng.permutation(np.prod(n, dtype=int)) + 0.5) % 2000).reshape(n).astype(dtype) for n in case.shapes]
    return [draw(rng, (0.3, 3.3), shape, dtype) * rng.choice([-1, 1], shape).astype(dtype) for shape in case.shapes]


@pytest.mark.parametrize("dtype", [*FLOATS, "int32"])
@pytest.mark.parametrize(("name", "position"), USES)
def test_values_of_structural_primitives(name: str, position: int, dtype: str) -> None:
    case = STRUCTURAL[name][position]
    if dtype == "int32" and name in FLOATS_ONLY:
        return  # for floating point only; integers take other ways
    arrays = structural_operands(case, dtype)
    if name == "scatter_last":
        arrays = [np.abs(a) for a in arrays]
    node = case.build(*nodes_of(arrays))
    with quiet():
        want = np.asarray(case.reference(*[a.astype(float) if dtype != "int32" else a for a in arrays]))
    where = f"{name}, {dtype}, shapes {case.shapes}"
    scale = EPSILON.get(dtype, 0) * (1 + max(a.size for a in arrays) ** 0.5) * 4
    for how, got in (("compiled", compute([node])[0]), ("interpreted", interpret([node])[0])):
        assert got.dtype == node.dtype, where
        if node.dtype.kind == "f":
            close(got, want, scale, f"{where}, {how}")
        else:
            np.testing.assert_array_equal(got, want.astype(node.dtype), err_msg=f"{where}, {how}")


@pytest.mark.parametrize(("name", "position"), USES)
def test_derivatives_of_structural_primitives(name: str, position: int) -> None:
    case = STRUCTURAL[name][position]
    if name in INTEGERS or name in CONSTANTS_TO_DERIVATIVES:
        return
    arrays = structural_operands(case)
    large = max(a.size for a in arrays) > 1000
    if large and case.step == "real":
        arrays = [a + 2000.0 * (np.arange(a.size).reshape(a.shape) // 2000) for a in arrays]
    check_derivatives(
        f"{name}, float64, shapes {case.shapes}",
        case.build,
        case.reference,
        arrays,
        case.step,
        evaluate=compute,
        tolerance=1e-8 if large else 1e-10,
    )


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "accumulate", "argsort"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_reductions_propagate_nan_and_infinity(name: str, dtype: str) -> None:
    rows = np.array([[1, np.nan, 2, -3], [np.inf, 1, 2, 3], [np.inf, -np.inf, 1, 0], [-0.0, 0.0, -np.inf, 5]], dtype)
    case = {
        "accumulate": (lambda x: accumulate("maximum", x), lambda a: np.maximum.accumulate(a, axis=-1)),
        "argsort": (argsort, lambda a: np.argsort(a, axis=-1, kind="stable")),
    }.get(name, _reduced(name, (1,)))
    (got,) = compute([case[0](nodes_of([rows])[0])])
    with quiet():
        np.testing.assert_array_equal(got, case[1](rows), err_msg=f"{name}, {dtype}")


def test_sums_are_as_exact_as_pairwise_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """The root mean square of the error over many arrays is no larger than NumPy's, if LLVM vectorises the sums."""
    monkeypatch.setenv("NBGRAD_OPTIMIZE", "1")
    for dtype in ("float32", "float64"):
        ours, numpys = [], []
        for seed in range(20):
            values = np.random.default_rng(seed).normal(size=30_001).astype(dtype)
            exact = math.fsum(values.astype(float))
            (got,) = compute([reduce("sum", nodes_of([values])[0], (0,))])
            ours.append(float(got) - exact)
            numpys.append(float(values.sum()) - exact)
        assert np.sqrt(np.mean(np.square(ours))) <= 1.1 * np.sqrt(np.mean(np.square(numpys))), dtype


# ----- Casts, iota, custom -----

CASTS = "float64 float32 float16 int64 int32 int8 uint8 uint64 bool".split()


@pytest.mark.parametrize("source", CASTS)
def test_casts(source: str) -> None:
    """To every dtype, as NumPy converts it, in the range where that is defined."""
    values = np.array([0, 1, 2, 3, 100, 0.5, 1.5, 99.9]) if source != "bool" else np.array([False, True])
    values = values.astype(source)
    if np.dtype(source).kind in "fi":
        values = np.concatenate([values, -values])
    if np.dtype(source).kind == "f":
        values = np.concatenate([values, [np.nan, np.inf, -np.inf, 60000, 1 / 3]]).astype(source)
    for target in CASTS:
        usable = values
        if np.dtype(target).kind in "iu" and np.dtype(source).kind == "f":
            usable = values[np.isfinite(values) & (np.abs(values) < 120)]
            usable = usable[usable >= 0] if target.startswith("u") else usable
        x = nodes_of([usable])[0]
        (got,) = compute([make("cast", (x,), (np.dtype(target),))])
        with quiet():
            np.testing.assert_array_equal(got, usable.astype(target), err_msg=f"cast of {source} to {target}")


def test_cast_is_linear_between_floats_and_stops_at_integers() -> None:
    x = placeholder((3,), FLOAT, np.array([1.5, 2.5, 3.5]))
    ones = constant(np.ones(3, np.float32))
    (g,) = vjp([cast(x, np.dtype(np.float32))], [ones], [x])
    assert g is not None and g.dtype == FLOAT
    np.testing.assert_array_equal(compute([g])[0], np.ones(3))
    through = cast(cast(x, np.dtype(int)), FLOAT)
    assert vjp([through], [constant(np.ones(3))], [x]) == [None]
    assert jvp([through], [x], [constant(np.ones(3))]) == [None]


@pytest.mark.parametrize("length", [0, 1, 5, 40_000])
def test_iota(length: int) -> None:
    (got,) = compute([iota(length)])
    np.testing.assert_array_equal(got, np.arange(length))
    assert got.dtype == np.int64


def test_custom_is_its_first_input_and_calls_the_rule() -> None:
    class Rule:
        def cotangents(self, g: Node, node: Node) -> list[Node | None]:
            return [g * 10.0, None]

    x, y = nodes_of([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    node = make("custom", (elementwise("exp", x), x, y), (Rule(), 0))
    np.testing.assert_allclose(compute([node])[0], np.exp([1.0, 2.0]), rtol=1e-15)
    weight = constant(np.array([1.0, -1.0]))
    assert [None if g is None else list(compute([g])[0]) for g in vjp([node], [weight], [x, y])] == [[10, -10], None]
    (tangent,) = jvp([node], [x, y], [weight, weight])
    assert tangent is not None
    np.testing.assert_array_equal(compute([tangent])[0], [10, -10])


def test_sort_is_argsort_and_gather() -> None:
    values = np.array([[3.0, np.nan, 1.0, -np.inf], [2.0, 2.0, -0.0, 0.0]])
    (got,) = compute([argsort(nodes_of([values])[0])])
    np.testing.assert_array_equal(np.take_along_axis(values, got, -1), np.sort(values, axis=-1))


@pytest.mark.parametrize("reverse", [False, True])
def test_the_first_factor_of_a_recurrence_is_not_used(reverse: bool) -> None:
    """It would multiply the zero before the first element, which an infinite one makes NaN."""
    a, b = np.array([np.inf, 2.0, np.inf]), np.array([np.inf, 0.0, 1.0])
    node = recurrence(constant(a), constant(b), reverse)
    want = [np.inf, 2.0, 1.0] if reverse else [np.inf, np.inf, np.inf]
    np.testing.assert_array_equal(interpret([node])[0], want)
    np.testing.assert_array_equal(compute([node])[0], want)
