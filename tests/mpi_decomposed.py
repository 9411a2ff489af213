"""Checks of Fourier transforms, inner products and linear systems on one rank of several.

In: nothing. Out: nothing, or an exception, which ends all ranks. Called by mpi_ranks.py, and on one rank by
test_mpi_decomposed.py. What is expected comes from NumPy, and from one rank's solution of the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import nbgrad as nb
from nbgrad import mpi

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.rank, WORLD.size


def close(found: Any, expected: Any, what: Any, tolerance: float = 1e-12) -> None:
    """Raise if two arrays differ by more than rounding."""
    assert np.shape(found) == np.shape(expected), (RANK, what, np.shape(found), np.shape(expected))
    largest = 1 + float(np.abs(expected).max(initial=0.0))
    assert (np.abs(np.asarray(found) - expected) <= tolerance * largest).all(), (RANK, what, found, expected)


def drawn(shape: tuple[int, ...], seed: int, dtype: Any = "d") -> np.ndarray:
    """Numbers of a whole array, the same on all ranks."""
    random = np.random.default_rng(seed)
    values = random.normal(size=shape)
    return (values + 1j * random.normal(size=shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def inner(a: Any, b: Any) -> float:
    """The real inner product of all ranks' arrays."""
    return WORLD.allreduce(float(np.sum(np.real(np.conj(a) * b))))


# ----- Fourier transforms -----


def check_fourier() -> None:
    """Values beside NumPy's, of slabs, pencils and blocks, equal and unequal, of which some have no points."""
    layouts: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((2 * SIZE, SIZE, 3), (SIZE, 1, 1)), ((1, 5), (SIZE, 1))]
    if SIZE == 2:
        layouts += [((3, 6), (1, 2)), ((4,), (1,))]
    if SIZE == 4:
        layouts += [((5, 3, 7), (2, 2, 1)), ((5, 6), (2, 2)), ((3, 5, 4), (1, 2, 2))]
    for shape, blocks in layouts:
        if int(np.prod(blocks)) == SIZE:
            check_layout(mpi.Grid(shape, 0, blocks=blocks))
    # Of a part of the ranks, and of axes that are not transformed.
    comm = WORLD.Split(RANK // 2)
    grid = mpi.Grid((3, 4), 0, comm=comm)
    z = drawn((3, 4, 2), RANK // 2, "D")
    close(mpi.fftn(z[grid.slices], grid), np.fft.fftn(z, axes=(0, 1))[grid.slices], "a part of the ranks")


def check_layout(grid: mpi.Grid) -> None:
    """Both transforms and their inverses; every other norm and dtype with the frequencies left transposed."""
    shape, part = grid.shape, grid.slices
    for transposed, norm, dtype, tolerance in ((False, None, "D", 1e-13), (True, "ortho", "F", 1e-6)):
        if transposed and grid.blocks[-1] > 1:
            continue
        z = drawn(shape, 1, dtype)
        x, real = z.real.copy(), z.real.dtype
        full, half = np.fft.fftn(z, norm=norm), np.fft.rfftn(x, norm=norm)
        there, first = (mpi.spectrum(grid, half, transposed).slices for half in (False, True))
        sent: Any = (grid, norm, transposed)
        found = [
            (mpi.fftn(z[part], *sent), full[there], z.dtype),
            (mpi.ifftn(full[there].astype(dtype), *sent), z[part], z.dtype),
            (mpi.rfftn(x[part], *sent), half[first], z.dtype),
            (mpi.irfftn(half[first].astype(dtype), *sent), x[part], real),
        ]
        for k, (value, expected, kind) in enumerate(found):
            assert value.dtype == kind, (value.dtype, kind)
            close(value, expected, (grid, transposed, k), tolerance)


def check_fourier_derivatives() -> None:
    """In compiled programs: tangents and cotangents by their inner product, gradient and second order by one rank's."""
    for shape, blocks in (((2 * SIZE, 2 * SIZE), (SIZE, 1)), ((SIZE + 1, 3), (SIZE, 1))):
        grid = mpi.Grid(shape, 0, blocks=blocks)
        part, there = grid.slices, mpi.spectrum(grid, True, True).slices
        factors = drawn((shape[0], shape[1] // 2 + 1), 2, "D")
        u, v, w = (drawn(shape, seed) for seed in (3, 4, 5))

        def convolved(u: Any, factors: Any, grid: mpi.Grid = grid) -> Any:
            return mpi.irfftn(factors * mpi.rfftn(u, grid, transposed=True), grid, transposed=True)

        def alone(u: Any, w: Any = w, factors: Any = factors) -> Any:
            return np.sum(np.fft.irfftn(factors * np.fft.rfftn(u**2), s=u.shape) ** 2 * w)

        def both(u: Any, v: Any, w: Any, factors: Any, convolved: Any = convolved) -> Any:
            def loss(u: Any) -> Any:
                return np.sum(convolved(u**2, factors) ** 2 * w)

            pull = nb.vjp(lambda u: convolved(u, factors), u)[1]
            moved = nb.jvp(lambda u: convolved(u, factors), (u,), (v,))[1]
            return pull(w)[0], moved, nb.grad(loss)(u), nb.hvp(loss, u, v)

        back, moved, slope, curved = nb.jit(both)(u[part], v[part], w[part], factors[there])
        close(inner(w[part], moved), inner(back, v[part]), "cotangent")
        close(slope, nb.grad(alone)(u)[part], "gradient")
        close(curved, nb.hvp(alone, u, v)[part], "second order")


# ----- Inner products -----


def check_products() -> None:
    """Of parts of unequal length, of which the first has no elements, beside NumPy's of the whole."""
    counts = [3 * k for k in range(SIZE)] if SIZE > 1 else [4]
    part = slice(sum(counts[:RANK]), sum(counts[: RANK + 1]))
    for dtype, tolerance in (("d", 1e-13), ("F", 1e-5)):
        x, y, v = (drawn((sum(counts), 2), seed, dtype) for seed in (6, 7, 8))
        close(mpi.vdot(x[part], y[part]), np.vdot(x, y), "vdot", tolerance)
        close(mpi.dot(x[part], y[part]), np.sum(x * y), "dot", tolerance)
        for ord in (None, 1, 3, np.inf, -np.inf):

            def of(x: Any, ord: Any = ord) -> Any:
                # One loss of all ranks, which are to count it once.
                return mpi.norm(x, ord) * (RANK == SIZE - 1)

            def alone(x: Any, ord: Any = ord) -> Any:
                return np.linalg.norm(x.reshape(-1), ord)

            value = mpi.norm(x[part], ord)
            close(value, alone(x), ("norm", ord), tolerance)
            assert np.asarray(value).dtype == x.real.dtype
            if dtype == "F" and ord is not None:
                continue
            found = nb.jit(lambda x, of=of: (nb.grad(of)(x), nb.grad(of)(0 * x)))(x[part])
            close(found[0], nb.grad(alone)(x)[part], ("slope of a norm", ord), tolerance)
            close(found[1], 0 * x[part], ("slope of a norm at zero", ord))
            if ord == 3:
                close(nb.hvp(of, x[part], v[part]), nb.hvp(alone, x, v)[part], "second order of a norm")


# ----- Linear systems -----


def check_systems() -> None:
    """A Poisson equation with a field of coefficients: value, gradient, tangent and second order are those of one
    rank."""
    shape = (3, 2)
    k, load, seen, v = (drawn(shape, seed) for seed in (9, 10, 11, 12))
    k = 1 + k**2

    def times(k: Any, u: Any, p: Any) -> Any:
        return (4 + k) * u - p[2:, 1:-1] - p[:-2, 1:-1] - p[1:-1, 2:] - p[1:-1, :-2]

    def both(solve: Any, padded: Any, method: str, k: Any, load: Any, seen: Any, v: Any, known: bool = False) -> Any:
        def loss(k: Any, load: Any) -> Any:
            more: Any = {"preconditioner": lambda u: u / (4 + k)} if known else {}
            u = solve(lambda u: times(k, u, padded(u)), load, rtol=1e-14, method=method, **more)
            return np.sum((u - seen) ** 2)

        value, slopes = nb.value_and_grad(loss, (0, 1))(k, load)
        if method in ("bicgstab", "gmres"):
            return value, slopes, 0.0, v
        return value, slopes, nb.jvp(loss, (k, load), (v, v))[1], nb.hvp(lambda k: loss(k, load), k, v)

    dense = nb.jit(lambda *a: both(nb.solvers.linear_solve, lambda u: np.pad(u, 1), "dense", *a))
    value, slopes, moved, curved = dense(k, load, seen, v)
    grid = mpi.Grid(shape, 1)
    part = grid.slices
    for method, made, known in (
        ("cg", nb.jit, False),
        ("bicgstab", lambda f: f, False),
        ("cg", nb.jit, True),
        ("bicgstab", lambda f: f, True),
        ("gmres", nb.jit, False),
        ("gmres", lambda f: f, True),
    ):
        found = made(lambda *a, m=method, known=known: both(mpi.linear_solve, grid.exchange, m, *a, known))(
            k[part], load[part], seen[part], v[part]
        )
        close(WORLD.allreduce(float(found[0])), value, method)
        close(found[1][0], slopes[0][part], method)
        close(found[1][1], slopes[1][part], method)
        if method == "cg":
            close(WORLD.allreduce(float(found[2])), moved, method)
            close(found[3], curved[part], method, 1e-11)


def check_complex() -> None:
    """A Hermitian row of springs with phases: value and gradients are those of NumPy's solution."""
    size = 5
    phase, load = drawn((size,), 17), drawn((size,), 18) + 1j * drawn((size,), 19)
    grid = mpi.Grid((size,), 1)
    part = grid.slices[0]

    def turned(phase: Any, v: Any) -> Any:
        near = grid.exchange(np.exp(-1j * phase) * v)
        return 3 * v - np.exp(1j * phase) * (near[2:] + near[:-2])

    spin = np.diag(np.exp(1j * phase))
    matrix = 3 * np.eye(size) - spin @ (np.eye(size, k=1) + np.eye(size, k=-1)) @ spin.conj()
    expected = np.linalg.solve(matrix, load)
    for method, made in (("cg", nb.jit), ("bicgstab", lambda f: f), ("gmres", nb.jit)):

        def solved(phase: Any, load: Any, method: str = method) -> Any:
            return mpi.linear_solve(lambda v: turned(phase, v), load, rtol=1e-14, method=method)

        found = made(solved)(phase[part], load[part])
        assert np.asarray(found).dtype == np.complex128
        close(found, expected[part], method)
        slope = made(nb.grad(lambda p, b, f=solved: np.sum(np.abs(f(p, b)) ** 2)))(phase[part], load[part])
        close(slope, _slope_of_phases(phase, load)[part], method, 1e-9)


def _slope_of_phases(phase: np.ndarray, load: np.ndarray) -> np.ndarray:
    """By NumPy's solution: dx = A^-1 (-dA x)."""
    size = len(phase)
    near = np.eye(size, k=1) + np.eye(size, k=-1)
    spin = np.diag(np.exp(1j * phase))
    matrix = 3 * np.eye(size) - spin @ near @ spin.conj()
    x = np.linalg.solve(matrix, load)
    slopes = []
    for k in range(size):
        moved = np.zeros((size, size), complex)
        moved[k, k] = 1j * spin[k, k]
        change = -(moved @ near @ spin.conj() + spin @ near @ moved.conj())
        dx = np.linalg.solve(matrix, -change @ x)
        slopes.append(2 * np.sum(np.real(np.conj(x) * dx)))
    return np.array(slopes)


def check_unequal() -> None:
    """Ranks without unknowns, batches, loops, plain calls with a start, and a system of some of the ranks."""
    sizes = [0, 3, 1, 2][:SIZE] if SIZE > 1 else [4]
    whole, part = sum(sizes), slice(sum(sizes[:RANK]), sum(sizes[: RANK + 1]))
    d, u, b, w = (drawn((whole,), seed) for seed in (13, 14, 15, 16))
    d, matrix = 2 + d**2, np.diag(2 + d**2) + np.outer(u, u)

    def solved(d: Any, b: Any, **more: Any) -> Any:
        return mpi.linear_solve(lambda v: d * v + u[part] * mpi.dot(u[part], v), b, rtol=1e-14, **more)

    expected = np.linalg.solve(matrix, b)
    # The diagonal's inverse: of the scales that it takes away, no more turns are needed than there are other vectors.
    scales = np.logspace(0, 6, whole)[part]

    def scaled(s: Any, b: Any) -> Any:
        about: Any = lambda v: v / (s * d[part])  # noqa: E731
        operator: Any = lambda v: s * d[part] * v + u[part] * mpi.dot(u[part], v)  # noqa: E731
        return mpi.linear_solve(operator, b, rtol=1e-13, maxiter=6, preconditioner=about)

    all_scales = np.logspace(0, 6, whole)
    scaled_matrix = np.diag(all_scales * d) + np.outer(u, u)
    answer = np.linalg.solve(scaled_matrix, b)
    close(nb.jit(scaled)(scales, b[part]), answer[part], "preconditioned")
    slope = nb.jit(nb.grad(lambda s: np.sum(w[part] * scaled(s, b[part]))))(scales)
    close(slope, -(np.linalg.solve(scaled_matrix, w) * answer * d)[part], "its gradient")
    close(solved(d[part], b[part], x0=np.ones(sizes[RANK])), expected[part], "plain")
    close(solved(d[part], b[part], x0=np.ones(sizes[RANK]), method="gmres"), expected[part], "plain, gmres")
    close(nb.jit(solved)(d[part], 0 * b[part]), 0 * b[part], "of zeros")
    slope = nb.jit(nb.grad(lambda d: np.sum(w[part] * solved(d, b[part]))))(d[part])
    close(slope, -(np.linalg.solve(matrix, w) * expected)[part], "gradient")
    many = nb.jit(nb.vmap(lambda b: solved(d[part], b)))(np.stack([b[part], 2 * b[part]]))
    close(many, np.stack([expected, 2 * expected])[:, part], "batch")

    def turns(b: Any) -> Any:
        return np.sum(nb.fori_loop(0, 2, lambda i, b: solved(d[part], b), b) * w[part])

    twice = np.linalg.solve(matrix, np.linalg.solve(matrix, w))
    close(nb.jit(nb.grad(turns))(b[part]), twice[part], "loop")
    comm = WORLD.Split(RANK % 2)
    ones = np.ones(2)
    found = mpi.linear_solve(lambda v: v + ones * mpi.dot(ones, v, comm), ones)
    close(found, ones / (1 + 2 * comm.size), "the ranks that talk to each other")


def check_refused() -> None:
    """What is wrong on all ranks raises on all, and all go on: no decision rests on one rank's numbers."""
    grid = mpi.Grid((4 * SIZE,), 1)
    ones = np.ones(grid.local)

    def times(v: Any) -> Any:
        p = grid.exchange(v)
        return 2 * v - p[2:] - p[:-2]

    def is_refused(call: Callable[[], Any], text: str) -> None:
        with pytest.raises(nb.errors.NbgradError) as caught:
            call()
        assert text in str(caught.value), caught.value

    is_refused(lambda: mpi.linear_solve(times, ones, preconditioner=times), "times(), the preconditioner")
    is_refused(lambda: mpi.linear_solve(times, ones, preconditioner=lambda v: v * v), "is not linear")
    is_refused(lambda: mpi.linear_solve(times, ones, maxiter=1), "cg has not converged in linear_solve()")
    is_refused(lambda: nb.jit(lambda b: mpi.linear_solve(times, b, maxiter=1))(ones), "has not converged")
    nothing: Any = lambda v: 0.0 * times(v)  # noqa: E731
    is_refused(lambda: mpi.linear_solve(nothing, ones, method="gmres"), "gmres has not converged in linear_solve()")
    # Only one rank's part is not linear.
    is_refused(lambda: mpi.linear_solve(lambda v: times(v) + (RANK == SIZE - 1), ones), "it is not linear")
    lone = WORLD.Split(RANK)
    two = lambda v: times(v) + mpi.allreduce(v, comm=lone)  # noqa: E731
    if SIZE > 1:
        is_refused(lambda: nb.solvers.linear_solve(times, ones), "mpi.linear_solve")
        other = mpi.Grid((4, 4 + RANK), 0, blocks=(SIZE, 1))
        is_refused(lambda: mpi.fftn(np.ones(other.local), other), f"same grid, but rank {int(RANK == 0)} gives")
        is_refused(lambda: mpi.linear_solve(two, ones), "over several communicators. Say by comm=")
        close(mpi.linear_solve(two, ones, comm=WORLD).shape, ones.shape, "said")
