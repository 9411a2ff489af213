"""Factorisations of complex matrices, and sorting of complex numbers.

In: one of the primitives on matrices, or `argsort`, and complex nodes. Out: a call of the library function (`host`)
that the interpreter uses for the primitive, with the derivative as a `custom` rule; for `argsort`, two real ones.
Called through complex_numbers.py. Shapes are those of the primitives: (B, n, n) and (B, n, k).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import interpret
from .complex_numbers import EXPANSIONS, conjugate, pair, parts
from .derivatives import triangle
from .host import HOST, HostFunction, host
from .ir import INT64, Node, Params, Shape, elementwise, extent, make, placeholder
from .primitives import PRIMITIVES, argsort, gather, iota, matmul, reshape, transpose, triangular_solve


def _adjoint(a: Node) -> Node:
    return transpose(conjugate(a), (0, 2, 1))


def _batched(run: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A function on one batch of matrices, for any number of leading axes."""

    def over_batches(*arguments: Any) -> np.ndarray:
        arrays = [a for a in arguments if isinstance(a, np.ndarray)]
        lead = arrays[0].shape[:-2]
        flat = [a.reshape(math.prod(lead), *a.shape[-2:]) for a in arrays]
        found = run(*flat, *arguments[len(arrays) :])
        return found.reshape(*lead, *found.shape[1:])

    return over_batches


def _rule(name: str) -> Callable[[Sequence[Node], Params], tuple[Shape, np.dtype[Any]]]:
    """The shape rule of a primitive on one batch, for any number of leading axes."""

    def rule(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
        lead = inputs[0].shape[:-2]
        flat = [placeholder((math.prod(lead), *node.shape[-2:]), node.dtype) for node in inputs]
        shape, dtype = PRIMITIVES[name].shape_rule(flat, params)
        return (*lead, *shape[1:]), dtype

    return rule


FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "lu": interpret.RULES["lu"],
    "cholesky": interpret.RULES["cholesky"],
    "complete_pivots": interpret.RULES["complete_pivots"],
    "triangular_solve": lambda a, b, *params: interpret.PARAMETER_RULES["triangular_solve"](params, a, b),
}
HOST.update({name: HostFunction(_rule(name), _batched(run)) for name, run in FUNCTIONS.items()})


@dataclass(frozen=True)
class TriangularRule:
    """x = inverse(a) @ b, with the parameters of the primitive: the cotangent of b is w = inverse(a)^H g, that of a is
    -w x^H, of which one triangle is there."""

    lower: bool
    transposed: bool
    unit: bool
    pure = True

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """The cotangents of matrix and right-hand side."""
        a = node.inputs[1]
        w = triangular_solve(conjugate(a), g, self.lower, not self.transposed, self.unit)
        outer = matmul(conjugate(node), transpose(w, (0, 2, 1))) if self.transposed else matmul(w, _adjoint(node))
        return [_triangle(-outer, self.lower, self.unit), w]


@dataclass(frozen=True)
class CholeskyRule:
    """a = L L^H: with P the lower triangle of L^H g, whose diagonal is halved and real, and S = L^-H P L^-1, the
    cotangent of a is S + S^H. Only the lower triangle of `a` is read, and of its diagonal the real part.

    Source: I. Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527 (2016).
    """

    pure = True

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """The cotangent of the matrix."""
        product = matmul(_adjoint(node), g)
        p = _triangle(product, True, True) + _real_diagonal(product) * 0.5
        # S = L^-H P L^-1, by two solutions with L^T.
        left = triangular_solve(conjugate(node), p, lower=True, transposed=True)
        right = triangular_solve(node, transpose(left, (0, 2, 1)), lower=True, transposed=True)
        s = transpose(right, (0, 2, 1))
        return [_triangle(s + _adjoint(s), True, True) + _real_diagonal(s)]


def _triangle(x: Node, lower: bool, strict: bool) -> Node:
    return pair(*[triangle(part, lower, strict) for part in parts(x)])


def _real_diagonal(x: Node) -> Node:
    """Diagonal matrices of the real parts of diagonals."""
    re = parts(x)[0]
    return triangle(triangle(re, True), False)


def _triangular_solve(inputs: tuple[Node, ...], params: Params) -> Node:
    value = host("triangular_solve", inputs, *params)
    return make("custom", (value, *inputs), (TriangularRule(*params), 0))


def _cholesky(inputs: tuple[Node, ...], params: Params) -> Node:
    return make("custom", (host("cholesky", inputs), *inputs), (CholeskyRule(), 0))


def _argsort(inputs: tuple[Node, ...], params: Params) -> Node:
    """By the real parts, and by the imaginary parts where those are equal: a stable sort after another.

    Numbers with a NaN come last, those with a NaN as real part behind those with one as imaginary part.
    """
    re, im = parts(inputs[0])
    missing = [make("cast", (elementwise("isnan", part),), (INT64,)) for part in (re, im)]
    order = argsort(im)
    for key in (re, missing[0] * 2 + missing[1]):
        order = _take(order, argsort(_take(key, order)))
    return order


def _take(x: Node, index: Node) -> Node:
    """Elements along the last axis."""
    n = x.shape[-1]
    rows = math.prod(x.shape[:-1])
    start = reshape(iota(rows) * extent(n, INT64), (*x.shape[:-1], 1))
    start = make("broadcast", (start,), (index.shape,)) if start.shape != index.shape else start
    return gather(reshape(x, (x.size,)), index + start)


EXPANSIONS.update(
    {
        "lu": lambda inputs, params: host("lu", inputs),
        "complete_pivots": lambda inputs, params: host("complete_pivots", inputs),
        "cholesky": _cholesky,
        "triangular_solve": _triangular_solve,
        "argsort": _argsort,
    }
)
