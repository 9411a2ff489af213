"""Every function of NumPy on large arrays: the calls of tests/surface_rows.py, with sample arrays of any size.

In: a number of elements, a dtype, an order of memory. Out: `CASES`, one for each function that the table knows and for
each of `PROGRAMS`, and `arrays`, the sample arrays under the names that the calls use. A function has its case by
standing in the table; where its first call is about small arrays, `LARGE` has another. Called by surface.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.numpy_surface import NAMESPACES, TABLES, named

LARGE = {
    "numpy.apply_along_axis": "f(lambda v: v * np.sum(v), 1, X)",
    "numpy.argpartition": "f(X, 1, axis=0)[1]",
    "numpy.choose": "f(J % 3, (X, Q, P))",
    "numpy.cross": "f(O, O[::-1])",
    "numpy.cumprod": "f(1.0 + X / 1000.0, axis=1)",
    "numpy.cumulative_prod": "f(1.0 + X / 1000.0, axis=1)",
    "numpy.dsplit": "f(X.reshape(5, 5, -1), 2)",
    "numpy.einsum": 'f("ij,j->i", X, Y)',
    "numpy.insert": "f(X, 1, Y, axis=0)",
    "numpy.kron": "f(M[:10], M[:10])",
    "numpy.meshgrid": "f(Y, V)",
    "numpy.nancumprod": "f(1.0 + H / 1000.0, axis=1)",
    "numpy.nanprod": "f(1.0 + H / 1000.0, axis=1)",
    "numpy.outer": "f(Y, V)",
    "numpy.pad": "f(X, 3)",
    "numpy.poly": "f(Y[:20])",
    "numpy.polydiv": "f(V, Y[:20])",
    "numpy.polyfit": "f(G, V, 3)",
    "numpy.polyval": "f(V[:8], X)",
    "numpy.prod": "f(1.0 + X / 1000.0)",
    "numpy.repeat": "f(X, 2, axis=0)",
    "numpy.reshape": "f(X, (-1, 5))",
    "numpy.resize": "f(X, (X.shape[0] + 3, X.shape[1] + 5))",
    "numpy.roots": "f(V[:20])",
    "numpy.take": "f(X, J, axis=1)",
    "numpy.unravel_index": "f(J, (10, 12))",
    "numpy.vander": "f(V, 9)",
    "numpy.vsplit": "f(X, 5)",
    "numpy.linalg.cross": "f(O, O[::-1])",
    "numpy.linalg.pinv": "f(M[:, ::2])",
    "numpy.linalg.qr": "f(M)[1]",
    "numpy.linalg.tensorsolve": "f(M, M[0])",
    "numpy.linalg.tensorinv": "f(M, ind=1)",
    "numpy.linalg.svd": "f(M[:, ::2], compute_uv=False)",
    "numpy.linalg.svdvals": "f(M[:, ::2])",
    "numpy.linalg.matrix_norm": "f(A)",
    "numpy.linalg.cholesky": "f(S)",
    "numpy.linalg.cond": "f(M, 1)",
    "numpy.linalg.multi_dot": "f([M, N, Y[:M.shape[0]]])",
    "numpy.linalg.solve": "f(M, N)",
    "numpy.array_split": "f(X, 5, axis=1)",
    "numpy.asanyarray": "f(a=X, like=X)",
    "numpy.broadcast_to": "f(Y, X.shape)",
    "numpy.diagflat": "f(Y)",
    "numpy.linalg.lstsq": "f(M[:, ::2], M[0])[0]",
}
"""Calls about large arrays for functions whose first call in the table is about small ones."""

PROGRAMS = {
    "transpose of 3-D": "np.transpose(B3, (2, 0, 1)) * 2.0",
    "transposed product": "X.T * X.T",
    "transposed sum": "X + X.reshape(X.shape[1], X.shape[0]).T",
    "flip and scale": "np.flip(X) * 2.0",
    "rot90 and scale": "np.rot90(X) * 2.0",
    "prod over an axis of 3": "np.prod(O, axis=-1)",
    "prod over rows": "np.prod(1.0 + X / 1000.0, axis=1)",
    "sum over an axis of 3": "np.sum(O, axis=-1)",
    "max over an axis of 3": "np.max(O, axis=-1)",
    "mean over axis 0": "np.mean(X, axis=0)",
    "mean over axis 1": "np.mean(X, axis=1)",
    "std over axis 0": "np.std(X, axis=0)",
    "max over axis 0": "np.max(X, axis=0)",
    "softmax of rows": "np.exp(X - np.max(X, axis=1, keepdims=True)) / np.sum(np.exp(X), axis=1, keepdims=True)",
    "where with sqrt": "np.where(X > 0.0, np.sqrt(np.where(X > 0.0, X, 1.0)), 0.0)",
    "argmax and take": "np.take_along_axis(X, np.argmax(X, axis=1)[:, None], axis=1)",
    "trace of a product": "np.trace(M @ N)",
    "product with a cosine": "M @ np.cos(N)",
    "sort of all": "np.sort(X.ravel())",
    "sort of columns": "np.sort(X, axis=0)",
    "argsort of all": "np.argsort(X.ravel())",
    "median of rows": "np.median(X, axis=1)",
    "quantile of all": "np.quantile(X, 0.3)",
    "interp at 64 knots": "np.interp(X, L, L * L)",
    "searchsorted in 64 knots": "np.searchsorted(L, X)",
    "searchsorted in many knots": "np.searchsorted(np.sort(X.ravel()), X)",
    "einsum of three operands": 'np.einsum("ij,jk,ik->i", M, N, np.tanh(S))',
    "matrix_power 5": "np.linalg.matrix_power(M / 20.0, 5)",
    "solve of 3x3 batches": "np.linalg.solve(A3, A3[:, :, :1])",
    "inverse of 3x3 batches": "np.linalg.inv(A3)",
    "det of 3x3 batches": "np.linalg.det(A3)",
    "product of 3x3 batches": "A3 @ A3",
    "stack of two": "np.stack((X, Q), axis=-1)",
    "gather of rows": "X[J[0] % X.shape[0]]",
    "slices": "X[1:, 1:] - X[:-1, :-1]",
    "fft of a vector": "np.fft.fft(X.ravel()[:POWER])",
    "rfft of rows": "np.fft.rfft(X)",
    "logistic loss": "np.mean(np.log1p(np.exp(-(X @ Y))))",
    "pairwise distances": "np.sqrt(np.sum((O[:300, None] - O[None, :300]) ** 2, axis=-1) + 1.0)",
}
"""Programs that users write with several functions, or with one on arrays of another form."""


class Case(NamedTuple):
    """A row of the surface: its name, its call, the function's namespace and name, and whether it has a gradient."""

    name: str
    call: str
    space: str
    function: str
    differentiable: bool


def _cases() -> dict[str, Case]:
    found = {}
    for space, table in TABLES.items():
        for name, row in table.items():
            if row.kind not in ("derivative", "zero", "integers") or "depends on values" in row.remark:
                continue
            if named(NAMESPACES[space][0], name) is None:
                continue
            key = f"{space}.{name}"
            found[key] = Case(key, LARGE.get(key, row.calls[0]), space, name, row.kind == "derivative")
    for name, call in PROGRAMS.items():
        found[name] = Case(name, call, "numpy", "", not name.startswith(("argsort", "searchsorted")))
    return found


CASES = _cases()


def _spread(rng: np.random.Generator, shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    return rng.uniform(low, high, shape)


def arrays(size: int, dtype: Any = np.float64, transposed: bool = False) -> dict[str, np.ndarray]:
    """The sample arrays with about so many elements: those of tests/numpy_surface.py under their names; O and A3 have
    short last axes, B3 three equal ones, L 64 rising knots."""
    rng = np.random.default_rng(size)
    rows = max(int(np.sqrt(size / 1.6)) // 5 * 5, 5)
    columns = max(size // rows // 2 * 2, 4)
    edge = max(round(np.sqrt(size / 10.0)), 3)
    cube, batch = max(round(size ** (1 / 3)), 2), max(size // 9, 2)
    x, q = _spread(rng, (rows, columns), -1.9, 2.1), _spread(rng, (rows, columns), -2.0, 1.7)
    m = _spread(rng, (edge, edge), -1.0, 1.3) + 2.0 * np.sqrt(edge) * np.eye(edge)
    h = x.copy()
    h[rng.random(h.shape) < 0.05] = np.nan
    complex_ = x + 1j * _spread(rng, x.shape, -1.1, 1.2)
    samples = {
        "A": _spread(rng, (10, edge, edge), -1.0, 1.2) + 2.0 * np.sqrt(edge) * np.eye(edge),
        "B": rng.random(x.shape) < 0.5,
        "C": complex_,
        "D": _spread(rng, x.shape, 0.4, 1.6) + 1j * q,
        "E": m + 1j * _spread(rng, m.shape, -0.8, 0.9),
        "G": np.sort(_spread(rng, (columns,), -1.6, 1.5)),
        "H": h,
        "J": rng.integers(1, 9, x.shape),
        "K": rng.integers(-3, 4, x.shape),
        "M": m,
        "N": _spread(rng, m.shape, -1.2, 1.0),
        "P": _spread(rng, x.shape, 0.3, 2.4),
        "Q": q,
        "R": complex_[1],
        "S": m @ m.T / edge + np.eye(edge),
        "T": complex_[0] + 0.5,
        "U": _spread(rng, x.shape, -0.85, 0.8),
        "V": _spread(rng, (columns,), -1.5, 1.6),
        "W": _spread(rng, (columns,), 0.4, 1.8),
        "X": x,
        "Y": _spread(rng, (columns,), -1.3, 1.5),
        "O": _spread(rng, (size // 3, 3), -1.9, 2.1),
        "A3": _spread(rng, (batch, 3, 3), -1.0, 1.2) + 3.0 * np.eye(3),
        "B3": _spread(rng, (cube, cube, cube), -1.0, 1.0),
        "L": np.sort(_spread(rng, (64,), -2.0, 2.2)),
    }
    samples["O"] = samples["O"][: batch * 3]
    narrow = {"f": np.dtype(dtype), "c": np.result_type(dtype, np.complex64)}
    made = {k: v.astype(narrow.get(v.dtype.kind, v.dtype)) for k, v in samples.items()}
    return {k: np.asfortranarray(v) if transposed and v.ndim > 1 else np.ascontiguousarray(v) for k, v in made.items()}
