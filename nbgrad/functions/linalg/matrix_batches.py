"""Steps that the functions on matrices share: batches, adjoints, diagonals, and results with a rule of their own.

In: array-likes and nodes. Out: nodes. Called by the modules of this folder that factorise and decompose matrices;
nothing here is public. All of them work on (B, m, n): any number of leading axes made one, in a dtype that LAPACK has.

The cotangent of a complex number x + i y is dL/dx + i dL/dy. So where the formulas for real matrices transpose, those
for complex ones transpose and conjugate (`adjoint`), which for real nodes is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ...errors import ArgumentError, NbgradError, ShapeError
from ...graph.builders import cast, concatenate, gather, iota, matmul, pad, reduce, reshape, slice_axes, transpose
from ...graph.complex_numbers import conjugate, is_complex, is_zero, pair, parts
from ...graph.host_functions import HostFunction
from ...graph.ir import INT64, PART_OF, Node, broadcast, elementwise, extent, make, zeros
from ...graph.shapes import Shape
from ...record.axes_and_dtypes import FLOAT16, FLOAT32, array_node, filled, inexact
from ...runtime.evaluate import concrete, require
from ..arrays.result_order import like_batches

Dtype = np.dtype[Any]


class MatrixError(ArgumentError, np.linalg.LinAlgError):
    """A matrix is singular, or not positive definite, where it must be, or LAPACK did not converge."""


# ----- Operands and results -----


def matrices(name: str, value: Any) -> Node:
    """An array of matrices, floating point or complex."""
    node = inexact(array_node(value))
    if node.ndim < 2:
        message = f"{name} needs matrices in the last two axes, but the shape is {node.shape}."
        raise ShapeError(message)
    return node


def square_matrices(name: str, value: Any) -> Node:
    """An array of square matrices, floating point or complex."""
    node = inexact(array_node(value))
    if node.ndim < 2 or node.shape[-1] != node.shape[-2]:
        message = f"{name} needs square matrices in the last two axes, but the shape is {node.shape}."
        raise ShapeError(message)
    return node


def batched(node: Node) -> Node:
    """(B, n, k) of any number of leading axes, in a dtype that LAPACK has."""
    wide = cast(node, FLOAT32) if node.dtype == FLOAT16 else node
    return reshape(wide, (math.prod(node.shape[:-2]), *node.shape[-2:]))


def unbatched(result: Node, shape: Shape, like: Node) -> Node:
    """A result with its leading axes, and with the precision of an operand."""
    if like.dtype == FLOAT16 and result.dtype == FLOAT32:
        result = cast(result, FLOAT16)
    found, lead = reshape(result, shape), like.ndim - 2
    return like_batches(found, len(shape) - lead, like) if lead > 1 and shape[:lead] == like.shape[:lead] else found


def real_dtype_of(dtype: Dtype) -> Dtype:
    """The dtype of the parts of complex numbers; a real dtype as it is."""
    return PART_OF.get(dtype, dtype)


def complex_dtype_of(dtype: Dtype) -> Dtype:
    """The complex dtype of a precision."""
    return np.result_type(dtype, np.complex64)


def real_part(node: Node) -> Node:
    """The real part; a real node as it is."""
    return make("real", (node,)) if is_complex(node) else node


def like_operand(g: Node, operand: Node) -> Node:
    """A cotangent for an operand that may be real where the result is complex: only the real part reaches it."""
    return g if is_complex(operand) else real_part(g)


# ----- Algebra on (B, m, n) -----


def mirrored(a: Node) -> Node:
    """Each matrix transposed."""
    return transpose(a, (0, 2, 1))


def adjoint(a: Node) -> Node:
    """Each matrix transposed and conjugated."""
    return conjugate(mirrored(a))


def product(*factors: Node) -> Node:
    """The product of matrices, from the left."""
    result = factors[0]
    for factor in factors[1:]:
        result = matmul(result, factor)
    return result


STRIPS = 4
"""The strips of rows in which a triangle of a large product is found, each only as wide as the triangle there."""
LARGE = 200


def lower_product(a: Node, b: Node) -> Node:
    """The lower triangles of a @ b; elements above them are of no use. For (B, n, k) and (B, k, n)."""
    inner = a.shape[2]
    return _in_strips(
        a.shape[1], lambda start, stop: product(part(a, start, stop, 0, inner), part(b, 0, inner, 0, stop))
    )


def lower_product_of_lower(a: Node, b: Node) -> Node:
    """The lower triangles of adjoint(a) @ b, where a is lower triangular; elements above them are of no use."""
    n = a.shape[1]
    return _in_strips(
        n, lambda start, stop: product(adjoint(part(a, start, n, start, stop)), part(b, start, n, 0, stop))
    )


def _in_strips(n: int, rows: Callable[[int, int], Node]) -> Node:
    if n < LARGE:
        return rows(0, n)
    bounds = [n * k // STRIPS for k in range(STRIPS + 1)]
    strips = [pad(rows(start, stop), [(0, 0), (0, 0), (0, n - stop)]) for start, stop in pairwise(bounds)]
    return concatenate(strips, 1)


def part(a: Node, top: int, bottom: int, left: int, right: int) -> Node:
    """Some rows and columns of each matrix."""
    return slice_axes(a, [(0, a.shape[0], 1), (top, bottom - top, 1), (left, right - left, 1)])


def diagonal(a: Node) -> Node:
    """(B, n): the diagonals of (B, n, n), or of the result of `lu`."""
    batch, rows, n = a.shape
    return slice_axes(reshape(a, (batch, rows * n)), [(0, batch, 1), (0, n, n + 1)])


def on_diagonal(a: Node) -> Node:
    """Whether an element of a batch of matrices is on the diagonal."""
    rows, columns = a.shape[-2:]
    return broadcast(elementwise("equal", reshape(iota(rows), (rows, 1)), iota(columns)), a.shape)


def identity(like: Node) -> Node:
    """Unit matrices of the shape of others."""
    return cast(on_diagonal(like), like.dtype)


def diagonal_matrices(values: Node) -> Node:
    """(B, n, n) with (B, n) on the diagonals."""
    batch, n = values.shape
    wide = broadcast(reshape(values, (batch, 1, n)), (batch, n, n))
    return elementwise("select", on_diagonal(wide), wide, zeros(wide.shape, wide.dtype))


def scaled_rows(values: Node, a: Node) -> Node:
    """diag(values) @ a, for (B, m) real or complex and (B, m, n)."""
    return cast(reshape(values, (*values.shape, 1)), a.dtype) * a


def scaled_columns(a: Node, values: Node) -> Node:
    """a @ diag(values)."""
    batch, n = values.shape
    return cast(reshape(values, (batch, 1, n)), a.dtype) * a


def skew(a: Node) -> Node:
    """a minus its adjoint."""
    return a - adjoint(a)


def first_columns(a: Node, count: int) -> Node:
    """The leading columns of each matrix."""
    return slice_axes(a, [(0, a.shape[0], 1), (0, a.shape[1], 1), (0, count, 1)])


def last_columns(a: Node, count: int) -> Node:
    """The last columns of each matrix."""
    return slice_axes(a, [(0, a.shape[0], 1), (0, a.shape[1], 1), (a.shape[2] - count, count, 1)])


def first_rows(a: Node, count: int) -> Node:
    """The leading rows of each matrix."""
    return slice_axes(a, [(0, a.shape[0], 1), (0, count, 1), (0, a.shape[2], 1)])


def last_rows(a: Node, count: int) -> Node:
    """The last rows of each matrix."""
    return slice_axes(a, [(0, a.shape[0], 1), (a.shape[1] - count, count, 1), (0, a.shape[2], 1)])


def reciprocal_or_zero(values: Node, usable: Node) -> Node:
    """1 / values where they are usable, 0 elsewhere; nothing is divided by the others."""
    one = filled(values.shape, 1.0, values.dtype)
    safe = elementwise("select", usable, values, one)
    return elementwise("select", usable, one / safe, zeros(values.shape, values.dtype))


def reciprocal_gaps(values: Node) -> Node:
    """(B, n, n): 1 / (w[j] - w[i]) of (B, n), and 0 where two values are equal up to rounding.

    Vectors that belong to equal values are no function of the matrix. With zeros there, what does not depend on the
    choice between them (a trace, a projection) has the derivative that it should.
    """
    batch, n = values.shape
    size = elementwise("absolute", values)
    if n:
        largest = reshape(reduce("max", size, (1,)), (batch, 1, 1))
    else:
        largest = zeros((batch, 1, 1), size.dtype)
    gaps = reshape(values, (batch, 1, n)) - broadcast(reshape(values, (batch, n, 1)), (batch, n, n))
    rounding = largest * (n * float(np.finfo(size.dtype).eps))
    apart = elementwise("greater", elementwise("absolute", gaps), broadcast(rounding, gaps.shape))
    return reciprocal_or_zero(gaps, apart)


def filled_like(node: Node, value: float) -> Node:
    """One number in the shape and dtype of a node."""
    zero = zeros(node.shape, node.dtype)
    return zero + value if value else zero


def only_read(gradient: Node, triangle: str) -> Node:
    """The gradient by a Hermitian matrix as one by the triangle that is read, whose elements stand for two."""
    n = gradient.shape[-1]
    row, column = reshape(iota(n), (n, 1)), iota(n)
    inside = elementwise("greater" if triangle == "L" else "less", row, column)
    twice = elementwise("select", broadcast(inside, gradient.shape), gradient + gradient, filled_like(gradient, 0.0))
    return elementwise("select", on_diagonal(gradient), gradient, twice)


def rows_in_order(x: Node, order: Node) -> Node:
    """x[:, order], with an order of its own for each matrix of the batch: (B, n, k) and (B, m)."""
    batch, n, k = x.shape
    row = order if batch == 1 else order + reshape(iota(batch) * extent(n, INT64), (batch, 1))
    index = reshape(row, (*row.shape, 1))
    if k != 1:
        index = index * extent(k, INT64) + iota(k)
    return gather(reshape(x, (x.size,)), index)


# ----- Checks -----


def required(factors: Node, condition: Node, message: str, error: type[NbgradError] = MatrixError) -> None:
    """Raise unless a condition on factors holds. They are computed here if nothing records, and not once more."""
    computed(factors)
    require(condition, message, error)


def computed(node: Node) -> Node:
    """The node; its value is found now if nothing records, so that several results of it are not found anew."""
    if not node.traced:
        concrete(node, "array")
    return node


# ----- Library functions with several results -----


def library(
    name: str,
    rule: Callable[..., tuple[Shape, Dtype]],
    run: Callable[..., Any],
    kernel: str | None = None,
    alone: tuple[HostFunction, Callable[..., int]] | None = None,
) -> HostFunction:
    """A function of NumPy or SciPy for graphs; its LinAlgError becomes a MatrixError.

    `rule(shape, dtype, *static)` gives shape and dtype of the result from those of the first operand; `kernel` is the
    name of a special kernel that does the same, and `alone` a function for some of the results (`HostFunction`).
    """

    def shape_rule(inputs: Any, params: Any) -> tuple[Shape, Dtype]:
        return rule(inputs[0].shape, inputs[0].dtype, *params)

    def guarded(*arguments: Any) -> np.ndarray:
        try:
            return run(*arguments)
        except MatrixError:
            raise
        except np.linalg.LinAlgError as error:
            raise MatrixError(str(error)) from None

    return HostFunction(name, shape_rule, guarded, kernel=kernel, alone=alone)


def packed(*parts: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """Several results one after the other in one axis; `axes` counts the axes of each that are made flat."""
    flat: list[np.ndarray] = []
    for part, count in zip(parts, axes, strict=True):
        kept = part.ndim - count
        flat.append(part.reshape((*part.shape[:kept], math.prod(part.shape[kept:]))))
    return np.concatenate(flat, axis=-1)


def unpacked(node: Node, shapes: Sequence[Shape]) -> list[Node]:
    """The results in (B, total), each with its shape after the leading axis."""
    batch, start = node.shape[0], 0
    parts: list[Node] = []
    for shape in shapes:
        size = math.prod(shape)
        part = slice_axes(node, [(0, batch, 1), (start, size, 1)])
        parts.append(reshape(part, (batch, *shape)))
        start += size
    return parts


Formula = Callable[[Sequence[Node | None], Sequence[Node], Sequence[Node]], list[Node | None]]
"""(cotangents of the results, the results, the operands) -> cotangents of the operands."""


def joint_results(
    found: Node, shapes: Sequence[Shape], formula: Formula, *operands: Node, real: Sequence[int] = ()
) -> list[Node]:
    """Several results that a library function has found together, with their derivative.

    Parameters
    ----------
    found : Node
        (B, total): the results one after the other.
    shapes : sequence of tuples
        Of the results, without the leading axis.
    formula : callable
        Gives the cotangents of the operands from those of the results; None stands for one that is zero. It may read
        the results, so that it can be differentiated itself.
    *operands : Node
    real : sequence of int
        Positions of results that are real where others are complex.

    Returns
    -------
    list of Node
    """
    static = (formula, tuple(shapes), tuple(real))
    return _separated(with_rule(computed(found), _joint_formula, *operands, static=static), shapes, real)


def _separated(node: Node, shapes: Sequence[Shape], real: Sequence[int]) -> list[Node]:
    return [real_part(part) if k in real else part for k, part in enumerate(unpacked(node, shapes))]


def _joint_formula(g: Node, node: Node, *rest: Any) -> list[Node | None]:
    *operands, formula, shapes, real = rest
    given: list[Node | None] = []
    flat = pieces_of(g, [math.prod(shape) for shape in shapes])
    for k, (part, shape) in enumerate(zip(flat, shapes, strict=True)):
        whole = None if part is None else reshape(part, (g.shape[0], *shape))
        given.append(real_part(whole) if whole is not None and k in real else whole)
    return formula(given, _separated(node, shapes, real), operands)


def pieces_of(g: Node, sizes: Sequence[int]) -> list[Node | None]:
    """A cotangent (B, total) taken apart along its last axis; None for a piece that is zero by construction.

    Such cotangents are put together from pieces (slice_cotangents.py), which are recognised here, so that what
    depends on one result only does not compute with zeros for the others.
    """
    if is_complex(g):
        both = zip(*[pieces_of(part, sizes) for part in parts(g)], strict=True)
        shapes = [(g.shape[0], size) for size in sizes]
        return [_pair_or_none(re, im, shape) for (re, im), shape in zip(both, shapes, strict=True)]
    if is_zero(g):
        return [None] * len(sizes)
    if g.name == "add":
        first, second = (pieces_of(source, sizes) for source in g.inputs)
        return [summed(one, other) for one, other in zip(first, second, strict=True)]
    spans: list[tuple[int, Node]] = []
    if g.name == "concatenate" and g.params[0] == 1:
        start = 0
        for source in g.inputs:
            spans.append((start, source))
            start += source.shape[1]
    elif g.name == "pad" and g.params[0][0] == (0, 0):
        spans.append((g.params[0][1][0], g.inputs[0]))
    else:
        spans.append((0, g))
    found: list[Node | None] = []
    start = 0
    for size in sizes:
        inside = [(at, node) for at, node in spans if at < start + size and at + node.shape[1] > start]
        inside = [(at, node) for at, node in inside if not is_zero(node)]
        if not inside:
            found.append(None)
        elif len(inside) == 1 and inside[0][0] == start and inside[0][1].shape[1] == size:
            found.append(inside[0][1])
        else:
            found.append(slice_axes(g, [(0, g.shape[0], 1), (start, size, 1)]))
        start += size
    return found


def _pair_or_none(re: Node | None, im: Node | None, shape: Shape) -> Node | None:
    known = re if re is not None else im
    if known is None:
        return None
    nothing = zeros(shape, known.dtype)
    return pair(nothing if re is None else re, nothing if im is None else im)


@dataclass(frozen=True)
class Rule:
    """The derivative of one result: `formula(g, result, *operands, *static)` gives the operands' cotangents."""

    formula: Callable[..., list[Node | None]]
    static: tuple[Any, ...]

    @property
    def pure(self) -> bool:
        """Whether rules of one formula and equal static values are equal: functions made anew each time are not."""
        return all(getattr(value, "__closure__", None) is None for value in (self.formula, *self.static))

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """The cotangents of the operands."""
        return self.formula(g, node, *node.inputs[1:], *self.static)


def with_rule(
    value: Node, formula: Callable[..., list[Node | None]], *operands: Node, static: Sequence[Any] = ()
) -> Node:
    """A value with a derivative; `formula(g, result, *operands, *static)` gives the operands' cotangents."""
    return make("custom", (value, *operands), (Rule(formula, tuple(static)), 0))


def summed(*terms: Node | None) -> Node | None:
    """The sum of the terms that there are."""
    total: Node | None = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total
