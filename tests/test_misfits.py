"""Arguments that do not fit each other: where NumPy raises, nbgrad raises, at once, an error with the user's line.

A row is an expression of `x`, float64 of shape (2, 3). Where NumPy gives a result, nbgrad gives the same one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import DtypeError, NbgradError

ROWS = [
    *["np.copyto(x, np.ones(5))", "np.copyto(x, np.ones((1, 1, 3)))", "np.copyto(x, 1.0, where=np.ones(5, bool))"],
    "np.copyto(x, 1.0, where=np.ones((1, 1, 3), bool))",
    "x.fill([1.0, 2.0])",
    *["np.fill_diagonal(x, np.ones(5))", "np.put_along_axis(x, np.zeros((1, 3), int), np.ones((4, 3)), 0)"],
    *["np.put(x, [0, 1], [])", "np.put(x, [0, 77], [1.0, 2.0])"],
    *["np.place(x, np.ones((2, 3), bool), [])", "np.place(x, np.ones(5, bool), [1.0])"],
    *["np.putmask(x, np.ones(5, bool), 1.0)", "np.putmask(x, np.ones(6, bool), np.ones(4))"],
    *["x.flat = np.ones(4)", "x.flat[1:3] = np.ones(5)", "x.T.flat = np.arange(6.0)"],
    *["x[0] = np.ones(5)", "x[:, :2] = np.ones((1, 1, 2))", "x[:, [0, 1]] = np.ones(3)", "x[x > 1] = np.ones(77)"],
    *["x.sort(axis=3)", "x.partition(9)", "np.partition(x, 5)", 'np.sort(x, order="a")'],
    "np.add.at(x, ([0, 1],), np.ones(4))",
    *["np.add(x, 1, out=x[:1])", "np.sum(x, axis=0, out=x[0])", "np.sum(x, axis=0, out=x[:, 0])"],
    *["x += np.ones(5)", "x += np.ones((4, 1, 3))", "x *= np.ones((1, 2, 3))"],
    *["np.where(x > 1, x, np.ones(5))", "x + np.ones(5)", "np.hypot(x, np.ones(5))", "x @ np.ones(2)", "x @ 2.0"],
    *["np.sum(x, where=np.ones(5, bool))", "np.sum(x, where=np.ones((1, 2, 3), bool))"],
    *["np.mean(x, where=np.ones((4, 2, 3), bool))", "np.var(x, where=np.ones(5, bool))", "np.var(x, mean=np.ones(5))"],
    "np.add(x, 1, where=np.ones(5, bool))",
    *["np.average(x, weights=np.ones(5))", "np.average(x, axis=0, weights=np.ones(3))"],
    *["np.average(x, axis=1, weights=np.ones(3))", "np.cov(x, fweights=[1, 2])", "np.cov(x, aweights=np.ones(4))"],
    *["np.interp(1.5, x[0], np.ones(5))", "np.histogram(x, weights=np.ones(5))", "np.bincount([0, 1], weights=x[0])"],
    *[
        "np.convolve(x, x[0])",
        "np.dot(x, x)",
        'np.einsum("ij,jk", x, x)',
        'np.einsum("ijk", x)',
        "np.tensordot(x, x, 1)",
    ],
    *["np.linalg.solve(x, x)", "np.linalg.solve(np.eye(3), x)", "np.linalg.lstsq(x, np.ones(5), rcond=None)"],
    *['np.linalg.norm(x, ord="bad")', "np.linalg.norm(x, axis=(0, 1, 2))", "np.linalg.multi_dot([x, x, x])"],
    *[
        "np.select([x > 1], [np.ones(5)])",
        "np.choose(np.ones(5, int), [x, x])",
        "np.piecewise(x, [np.ones(5, bool)], [1.0])",
    ],
    *["np.full_like(x, np.ones(5))", "np.full((2, 3), x[0, :2])", "np.nan_to_num(x, nan=np.ones(5))"],
    *["np.searchsorted(x, 1.0)", "np.digitize(x, x)", "np.clip(x, np.ones(5), 2)", "np.clip(x, None, np.ones((3, 2)))"],
    *["np.repeat(x, [1, 2, 3], axis=0)", "np.insert(x, 1, np.ones(5), axis=0)", "np.append(x, np.ones(5), axis=0)"],
    *["np.trapezoid(x, np.ones(5))", "np.gradient(x, np.ones(5), axis=0)", "np.diff(x, prepend=np.ones(5))"],
    *["np.diff(x, append=np.ones((5, 2)))", "np.ediff1d(x, to_end=1j)", "np.unwrap(x, axis=4)"],
    *["np.concatenate([x, np.ones(5)])", "np.stack([x, np.ones(5)])", "np.block([[x, np.ones((3, 3))]])"],
    *[
        "np.column_stack([x, np.ones(5)])",
        "np.vstack([x, np.ones(5)])",
        "np.hstack([x, np.ones(5)])",
        "np.pad(x, [[1, 2]] * 3)",
    ],
    *[
        "np.take(x, 9)",
        "np.take(x, [0], axis=5)",
        "np.take_along_axis(x, np.zeros((4, 3), int), 1)",
        "x[9]",
        "x[0, 0, 0]",
    ],
    *["x[np.ones(5, bool)]", "x[np.ones((2, 2), bool)] = 1", "x[[0, 1, 0], [0, 1]] = 1", "x[..., ...]", "x[1.5]"],
    *["x.reshape(4, -1)", "x.reshape(-1, -1)", "x.transpose(0, 0)", "np.moveaxis(x, 0, 7)", "np.rollaxis(x, 3)"],
    *["np.expand_dims(x, 7)", "np.squeeze(x, 0)", "np.broadcast_to(x, (3, 2))", "np.broadcast_arrays(x, np.ones(5))"],
    *[
        "np.split(x, 2, axis=1)",
        "np.array_split(x, 0)",
        "np.tile(x, -1)",
        "np.roll(x, 1, axis=4)",
        "np.rot90(x, axes=(0, 0))",
    ],
    *["np.cross(x, np.ones((2, 4)))", "np.trace(x, axis1=0, axis2=0)", "np.diagonal(x, axis1=0, axis2=5)"],
    *["np.percentile(x, 120)", "np.quantile(x, [0.1, np.nan])", "np.vander(x)", "np.swapaxes(x, 0, 3)"],
    "np.apply_along_axis(lambda v: v[:2], 3, x)",
    *["np.fft.fft(x, n=0)", "np.fft.irfft(x, n=0)", "np.fft.fftn(x, axes=(0, 4))", "np.lexsort((x[0], np.ones(5)))"],
    *["np.ldexp(x, np.ones(3))", "np.inner(x, np.ones(2))", "np.vdot(x, np.ones(5))", "np.outer(x, x, out=np.ones(3))"],
    *["np.max(x[:0])", "np.min(x[:0])", "np.argmax(x[:0])", "np.mean(x, axis=2)", "np.add.reduceat(x, [0, 9])"],
    *["np.add.accumulate(x, axis=4)", "np.cumsum(x, axis=4)", "np.unique(x, axis=5)", "np.ix_(x)"],
    *["np.linspace(x[0], np.ones(2))", "np.delete(x, 9, axis=0)", "np.compress([1, 0, 1, 1], x, axis=0)"],
    *[
        "np.extract(np.ones(9, bool), x)",
        "np.polyval(np.ones((2, 2)), x)",
        "np.polyfit(x[0], np.ones(5), 1)",
        "np.kron(x, [])",
    ],
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", ROWS)
def test_misfits_are_errors(row: str) -> None:
    def run(x: Any) -> Any:
        names = {"np": np, "x": x}
        is_statement = "=" in row.partition("(")[0]
        exec(compile(row if is_statement else f"result = {row}", "row.py", "exec"), names)
        return names.get("result"), names["x"]

    def recorded(x: Any) -> Any:
        found, y = run(x * 1.0)
        return np.sum(y), found

    given = np.arange(6.0).reshape(2, 3) + 0.5
    recording = nb.value_and_grad(recorded, has_aux=True)
    try:
        expected, _ = run(given.copy())
    except Exception:
        with pytest.raises(NbgradError, match=r" \(at row.py:1"):
            recording(given)
    else:
        (_, found), _ = recording(given)
        for ours, theirs in zip(parts(found), parts(expected), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-13)


def parts(result: Any) -> list[Any]:
    """The arrays of a result."""
    return [] if result is None else list(result) if isinstance(result, tuple | list) else [result]


@pytest.mark.parametrize(
    "call",
    [
        *["nb.grad(x)", "nb.value_and_grad(x)", "nb.ops.GradOperation()(x)", "nb.jit(x)", "nb.vmap(x)", "nb.jacrev(x)"],
        *["nb.jacfwd(x)", "nb.hessian(x)", "nb.vjp(x, np.sin)", "nb.jvp(x, np.sin, x)", "nb.hvp(x, np.sin, x)"],
        *["nb.sparse_jacobian(x)", "nb.sparse_hessian(x)", "nb.differentiable_source(x)"],
    ],
)
def test_transforms_take_functions(call: str) -> None:
    with pytest.raises(DtypeError, match=r"function.*but got ndarray.*\(at row.py:1"):
        eval(compile(call, "row.py", "eval"), {"nb": nb, "np": np, "x": np.ones(3)})


@pytest.mark.parametrize("call", ["sin()", "sin(1.0, out=2.0)", "add(1.0)", "hypot(1.0, 2.0, 3.0, 4.0)"])
def test_ufuncs_count_their_arguments(call: str) -> None:
    with pytest.raises(TypeError, match=r"\(at row.py:1"):
        eval(compile(f"nb.numpy.{call}", "row.py", "eval"), {"nb": nb})
