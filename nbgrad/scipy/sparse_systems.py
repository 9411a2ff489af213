"""Linear systems with sparse matrices of recorded values: `spsolve`, `splu`, `factorized`, triangular systems.

In: a sparse matrix, of ours or of SciPy's, and right-hand sides. Out: Tensors, or an object that solves. Called by code
that `differentiable_source` runs, by scipy_table.py. SuperLU factorises at run time (a `host` node of the graph); a
factorisation is kept with its pattern, so that further right-hand sides, and the adjoint system of a derivative, reuse
it. The derivative by the matrix has its entries only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..functions.linalg.matrix_batches import MatrixError, with_rule
from ..graph.builders import gather, reduce, reshape
from ..graph.complex_numbers import conjugate
from ..graph.host_functions import HostFunction, host
from ..graph.ir import Node, constant
from ..process.locks import ForkSafeLock
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import inexact
from ..record.promotion import promote
from ..record.tensor import Tensor
from .scipy_objects import ScipyObject
from .sparse_values import CscArray, SparseValues, as_recorded, is_sparse

MOST_KEPT = 4
"""Factorisations of one pattern."""


class Pattern:
    """The places of the entries of a square matrix in columns, and its last factorisations; equal ones are one."""

    def __init__(self, n: int, indices: np.ndarray, starts: np.ndarray) -> None:
        self.n, self.indices, self.starts = n, indices, starts
        self._key = (n, indices.tobytes(), starts.tobytes())
        self._hash = hash(self._key)
        self._kept: list[tuple[np.ndarray, Any]] = []
        self._lock = ForkSafeLock()
        self.factorisations = 0

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Pattern) and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"pattern of {self.indices.size} entries"

    @property
    def columns(self) -> np.ndarray:
        """The column of each entry."""
        return np.repeat(np.arange(self.n), np.diff(self.starts))

    def factorised(self, values: np.ndarray) -> Any:
        """SuperLU's factorisation for these values.

        Raises
        ------
        MatrixError
            If the matrix is singular.
        """
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu

        with self._lock.held():
            for position, (known, found) in enumerate(self._kept):
                if known.dtype == values.dtype and np.array_equal(known, values):
                    self._kept.insert(0, self._kept.pop(position))
                    return found
            matrix = csc_array((values, self.indices, self.starts), shape=(self.n, self.n))
            try:
                found = splu(matrix)
            except RuntimeError as error:
                message = f"A sparse system needs a regular matrix, but SuperLU says: {error}."
                raise MatrixError(message) from None
            self.factorisations += 1
            self._kept.insert(0, (values.copy(), found))
            del self._kept[MOST_KEPT:]
            return found


_patterns: dict[Pattern, Pattern] = {}
MOST_PATTERNS = 200


def pattern_of(matrix: SparseValues) -> Pattern:
    """The pattern of a square matrix in columns."""
    made = Pattern(matrix.shape[0], matrix.indices, matrix.indptr)
    if len(_patterns) >= MOST_PATTERNS:
        del _patterns[next(iter(_patterns))]
    return _patterns.setdefault(made, made)


def _run(values: np.ndarray, b: np.ndarray, pattern: Pattern | KnownFactors, trans: str) -> np.ndarray:
    found = np.empty_like(b)
    for position in np.ndindex(b.shape[:-2]):
        factors = pattern.factorised(np.ascontiguousarray(values[position]))
        found[position] = factors.solve(np.ascontiguousarray(b[position]), trans)
    return found


SPARSE_SOLVE = HostFunction("sparse solve", lambda inputs, params: (inputs[1].shape, inputs[1].dtype), _run)
_ADJOINT = {"N": "H", "H": "N", "T": "C", "C": "T"}


def _solution(values: Node, b: Node, pattern: Pattern | KnownFactors, trans: str) -> Node:
    """The solution X of op(A) X = B, for values (1, nnz) and b (1, n, k); op is nothing, T, or H."""
    if trans == "C":  # the conjugate matrix, whose solutions are conjugates of the matrix's own
        return conjugate(_solution(values, conjugate(b), pattern, "N"))
    found = host(SPARSE_SOLVE, (values, b), pattern, trans)
    return with_rule(found, _formula, values, b, static=(pattern, trans))


def _formula(g: Node, x: Node, values: Node, b: Node, pattern: Pattern | KnownFactors, trans: str) -> list[Node | None]:
    """Cotangents, as for any system: w = inverse(op(A))^H g of the right-hand side, -w x^H at the entries."""
    w = _solution(values, g, pattern, _ADJOINT[trans])
    if isinstance(pattern, KnownFactors):
        return [None, w]
    columns, rows = constant(pattern.columns), constant(pattern.indices.astype(np.int64))
    first, second = (rows, columns) if trans == "N" else (columns, rows)
    outer = -reduce("sum", _lines(w, first) * conjugate(_lines(x, second)), (1,))
    return [reshape(conjugate(outer) if trans == "H" else outer, values.shape), w]


def _lines(x: Node, index: Node) -> Node:
    """The rows of (1, n, k) at an index, shape (entries, k)."""
    _, n, k = x.shape
    flat = reshape(x, (n * k,))
    if k == 1:
        return reshape(gather(flat, index), (index.size, 1))
    places = np.asarray(index.value)[:, None] * k + np.arange(k)
    return gather(flat, constant(places))


class KnownFactors:
    """A factorisation that SciPy has made, in place of a pattern: it has no entries to differentiate by."""

    def __init__(self, factors: Any) -> None:
        self.factors = factors
        self.dtype = factors.solve(np.zeros(factors.shape[0], "float32")).dtype

    def factorised(self, values: np.ndarray) -> KnownFactors:
        """Itself, whatever the values."""
        del values
        return self

    def solve(self, b: np.ndarray, trans: str) -> np.ndarray:
        """The solution, of complex right-hand sides as well."""
        if np.iscomplexobj(b) and self.dtype.kind != "c":
            return self.solve(np.real(b), trans) + 1j * self.solve(np.imag(b), trans)
        return self.factors.solve(b.astype(self.dtype), trans)


class Factors(ScipyObject):
    """`scipy.sparse.linalg.SuperLU` of recorded values: `solve`, `shape` and `nnz`."""

    _pattern: Pattern | KnownFactors

    @classmethod
    def of(cls, original: Any) -> Factors:
        """The factors that SciPy has found of a constant matrix, for recorded right-hand sides."""
        made = cls.__new__(cls)
        made.shape, made.nnz = original.shape, original.nnz
        made._pattern = KnownFactors(original)
        made._values = constant(np.empty(0, made._pattern.dtype))
        return made

    def __init__(self, matrix: Any) -> None:
        known = as_recorded(matrix if is_sparse(matrix) else CscArray(matrix)).tocsc()
        if known.shape[0] != known.shape[1]:
            message = f"A sparse system needs a square matrix, but its shape is {known.shape}."
            raise ShapeError(message)
        self.shape, self.nnz = known.shape, known.nnz
        self._values, self._pattern = known.values, pattern_of(known)

    def solve(self, rhs: Any, trans: str = "N") -> Tensor:
        """The solution of the system, of its transposed ("T") or its adjoint ("H")."""
        b = as_node(rhs)
        n = self.shape[0]
        if b.ndim not in (1, 2) or b.shape[0] != n:
            message = f"A sparse system of {n} equations needs right-hand sides of {n} rows, but got {b.shape}."
            raise ShapeError(message)
        values, right = promote([inexact(self._values), inexact(b)])
        sides = reshape(right, (1, n, right.size // max(n, 1)))
        found = _solution(reshape(values, (1, values.size)), sides, self._pattern, trans)
        return wrap(reshape(found, b.shape))


def splu(A: Any) -> Factors:
    """The factors of a sparse matrix; SuperLU's own options have no effect on the solution."""
    return Factors(A)


def factorized(A: Any) -> Any:
    """The function that solves systems with a sparse matrix."""
    return Factors(A).solve


def spsolve(A: Any, b: Any) -> Any:
    """The solution of a sparse system."""
    right = b.toarray() if isinstance(b, SparseValues) or hasattr(b, "tocsc") else b
    node = as_node(right)
    if node.ndim == 2 and node.shape[1] == 1:
        return Factors(A).solve(wrap(reshape(node, (node.size,))))
    return Factors(A).solve(right)


def spsolve_triangular(A: Any, b: Any, lower: bool = True, unit_diagonal: bool = False) -> Any:
    """The solution of a triangular sparse system; of the other triangle nothing is read."""
    from scipy.sparse import tril, triu

    known = as_recorded(A if is_sparse(A) else CscArray(A))
    kept = known.rearranged(lambda numbered: (tril if lower else triu)(numbered, -1 if lower else 1), "csc")
    n = known.shape[0]
    line: Any = np.ones(n) if unit_diagonal else known.diagonal()
    places = np.arange(n)
    return Factors(kept + CscArray((line, (places, places)), shape=known.shape)).solve(b)


def inv(A: Any) -> Any:
    """The inverse, as a sparse matrix of all elements."""
    return CscArray(Factors(A).solve(np.eye(A.shape[0])))
