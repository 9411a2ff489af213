"""The table of derivatives: one row per primitive, in the order of primitives.py.

In: a node, and tangents or cotangents of it. Out: graph, which is simplified, fused and differentiated again like any
other. Called by differentiate.py only. A row is one of
- `Partials`: for elementwise primitives, one function per operand of (output, *operands); None for a zero. Gives both
  modes, because the Jacobian is diagonal.
- `Linear`: linear in all its operands together; one transpose per operand.
- `Multilinear`: linear in each operand alone; one transpose per operand.
- `Tangent`: a forward rule built from linear primitives; reverse mode transposes what it builds. Transposes may be
  given for operands in which the primitive is linear anyway.
- `NoDerivative`: and why.

Conventions at points without a derivative: abs'(0) = 0; maximum, minimum and max, min share ties equally; sqrt'(0),
log'(0) = inf; hypot'(0, 0) = 0; d(x**y)/dx = 0 where x = y = 0, d(x**y)/dy = 0 where x = 0 and y >= 0; rounding and
sign have derivative 0; a NaN operand gives a NaN derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .ir import INT64, Node, broadcast, elementwise, extent, filled, literal, literal_value, make, zeros
from .primitives import (
    COMPARISON,
    accumulate,
    cast,
    gather,
    iota,
    matmul,
    pad,
    recurrence,
    reduce,
    reshape,
    scatter_add,
    slice_axes,
    transpose,
    triangular_solve,
)
from .shapes import Shape

Partial = Callable[..., Node | float | None]
Transpose = Callable[[Node, Node], Node]
"""(cotangent, node) -> cotangent of one operand."""


@dataclass(frozen=True)
class Partials:
    """Partial derivatives of an elementwise primitive; if there is a `divisor`, times that, which they share."""

    partials: tuple[Partial | None, ...]
    divisor: Callable[..., Node] | None = None


@dataclass(frozen=True)
class Linear:
    """Linear in all differentiable operands together; None marks operands that are not (an index, a condition)."""

    transposes: Callable[[Node], Sequence[Transpose | None]]


@dataclass(frozen=True)
class Multilinear:
    """Linear in each operand alone."""

    transposes: tuple[Transpose, ...]


@dataclass(frozen=True)
class Tangent:
    """`rule(node, tangents)` builds the output's tangent; a tangent may be None, which is zero."""

    rule: Callable[[Node, Sequence[Node | None]], Node]
    transposes: tuple[Transpose | None, ...] = ()


@dataclass(frozen=True)
class NoDerivative:
    """The derivative is zero or undefined, and why."""

    why: str


Row = Partials | Linear | Multilinear | Tangent | NoDerivative


def _unary(partial: Partial, over: Callable[..., Node] | None = None) -> Partials:
    return Partials((partial,), over)


def _binary(first: Partial | None, second: Partial | None) -> Partials:
    return Partials((first, second))


def _call(name: str) -> Callable[..., Node]:
    return lambda *operands: elementwise(name, *operands)


# Formula words, so that the table below reads as mathematics.
sqrt, exp, log, sin, cos, sinh, cosh, sign, floor_divide, trunc, copysign, hypot, power = map(
    _call, "sqrt exp log sin cos sinh cosh sign floor_divide trunc copysign hypot power".split()
)
equal, greater, less, greater_equal, both, either, isnan = map(
    _call, "equal greater less greater_equal logical_and logical_or isnan".split()
)


def choose(condition: Node, yes: Node | float, no: Node | float, like: Node) -> Node:
    """`select` whose numbers take the dtype of `like`."""
    branches = [v if isinstance(v, Node) else literal(v, like.dtype) for v in (yes, no)]
    return elementwise("select", condition, *branches)


def is_finite_number(node: Node) -> bool:
    """Whether a node is one finite literal number everywhere."""
    while node.name == "broadcast":
        node = node.inputs[0]
    return node.name == "literal" and bool(np.isfinite(literal_value(node)))


def _of_extremum(wins: Node, loses: Node, x: Node, y: Node) -> Node:
    """The derivative of `maximum` or `minimum` by an operand: 1, one half at a tie, NaN at NaN; masked where it loses.

    A partial derivative of the form select(condition, p, 0) is a mask: what is multiplied by it stays zero, even inf.
    """
    shared = choose(wins, 1.0, choose(equal(x, y), 0.5, math.nan, x), x)
    return choose(elementwise("logical_not", loses), shared, 0.0, x)


def _of_winner(wins: Node, x: Node, y: Node) -> Node:
    """The derivative by x of `fmax` or `fmin`, which x wins or shares where it `wins`; a NaN operand loses."""
    return choose(either(wins, isnan(y)), choose(equal(x, y), 0.5, 1.0, x), 0.0, x)


def _share(x: Node, y: Node, scale: float) -> Node:
    """The part of x in exp(scale x) + exp(scale y), smooth where x = y; one half where both are the same infinity."""
    difference = x - y
    part = elementwise("expit", difference if scale == 1.0 else difference * scale)
    if is_finite_number(x) or is_finite_number(y):
        return part
    infinite = both(equal(x, y), elementwise("isinf", x))
    return choose(infinite, 0.5, part, x)


# ----- Transposes of movement -----


def _untranspose(g: Node, node: Node) -> Node:
    axes: list[int] = [0] * node.ndim
    for position, axis in enumerate(node.params[0]):
        axes[axis] = position
    return transpose(g, tuple(axes))


def unbroadcast(g: Node, shape: Shape) -> Node:
    """Sum a cotangent over the axes that broadcasting added or stretched."""
    extra = g.ndim - len(shape)
    axes = [a for a in range(g.ndim) if a < extra or (shape[a - extra] == 1 and g.shape[a] != 1)]
    return reshape(reduce("sum", g, axes), shape)


def unslice(g: Node, shape: Shape, ranges: Sequence[tuple[int, int, int]]) -> Node:
    """Put the elements of g where a slice with `ranges` of an array of `shape` read them; zeros elsewhere."""
    if g.size == 0:
        return zeros(shape, g.dtype)
    g = slice_axes(g, [(n - 1, n, -1) if step < 0 else (0, n, 1) for _, n, step in ranges])
    widths: list[tuple[int, int]] = []
    for axis, (start, length, step) in enumerate(ranges):
        first = start if step > 0 else start + (length - 1) * step
        stride = abs(step)
        if stride > 1 and length > 1:
            # Zeros between the elements: a new axis of length `stride` whose first column is g.
            before, after = g.shape[:axis], g.shape[axis + 1 :]
            g = reshape(g, (*before, length, 1, *after))
            g = pad(g, [(0, stride - 1) if a == axis + 1 else (0, 0) for a in range(g.ndim)])
            g = reshape(g, (*before, length * stride, *after))
            span = (length - 1) * stride + 1
            g = slice_axes(g, [(0, span if a == axis else n, 1) for a, n in enumerate(g.shape)])
        widths.append((first, shape[axis] - first - g.shape[axis]))
    return pad(g, widths)


def _unpad(g: Node, node: Node) -> Node:
    source = node.inputs[0]
    return slice_axes(g, [(lo, n, 1) for n, (lo, _) in zip(source.shape, node.params[0], strict=True)])


def _unconcatenate(node: Node) -> Sequence[Transpose]:
    axis = node.params[0]
    rules: list[Transpose] = []
    start = 0
    for source in node.inputs:
        ranges = [(0, n, 1) for n in source.shape]
        ranges[axis] = (start, source.shape[axis], 1)
        start += source.shape[axis]
        rules.append(lambda g, _node, ranges=ranges: slice_axes(g, ranges))
    return rules


# ----- Reductions and special kernels -----


def _unsum(g: Node, node: Node) -> Node:
    source = node.inputs[0]
    kept = tuple([1 if axis in node.params[0] else n for axis, n in enumerate(source.shape)])
    return broadcast(reshape(g, kept), source.shape)


def _prod_tangent(node: Node, tangents: Sequence[Node | None]) -> Node:
    """Sum of t[i] times the product of all others, exact with zeros: products from the left times from the right."""
    x, t = node.inputs[0], tangents[0]
    assert t is not None
    axes = node.params[0]
    kept = tuple([a for a in range(x.ndim) if a not in axes])
    x, t = (
        reshape(transpose(v, kept + axes), (*[x.shape[a] for a in kept], math.prod(x.shape[a] for a in axes)))
        for v in (x, t)
    )
    others = _products_before(x, reverse=False) * _products_before(x, reverse=True)
    return reduce("sum", others * t, (x.ndim - 1,))


def _products_before(x: Node, reverse: bool) -> Node:
    """Along the last axis, the product of the elements before each (after each, if `reverse`)."""
    n = x.shape[-1]
    lead = [(0, m, 1) for m in x.shape[:-1]]
    ones = zeros((*x.shape[:-1], 1), x.dtype) + 1.0
    if n <= 1:
        return ones
    shifted = (
        make("concatenate", (slice_axes(x, [*lead, (1, n - 1, 1)]), ones), (x.ndim - 1,))
        if reverse
        else make("concatenate", (ones, slice_axes(x, [*lead, (0, n - 1, 1)])), (x.ndim - 1,))
    )
    return cumulative_product(shifted, reverse)


def cumulative_product(x: Node, reverse: bool = False) -> Node:
    """Running products along the last axis: the recurrence s[i] = x[i] s[i-1] started with the first element."""
    n = x.shape[-1]
    first = n - 1 if reverse else 0
    lead = [(0, m, 1) for m in x.shape[:-1]]
    start = slice_axes(x, [*lead, (first, 1, 1)])
    # What is added to each product is minus zero, which changes none, not even minus zero.
    rest = filled(-0.0, x.dtype, (*x.shape[:-1], n - 1))
    added = make("concatenate", (rest, start) if reverse else (start, rest), (x.ndim - 1,)) if n > 1 else start
    return recurrence(x, added, reverse)


def _extremum_tangent(node: Node, tangents: Sequence[Node | None]) -> Node:
    """The mean of the tangents at all elements that attain the extremum; NaN if that is NaN."""
    x, t = node.inputs[0], tangents[0]
    assert t is not None
    axes = node.params[0]
    kept = tuple([1 if axis in axes else n for axis, n in enumerate(x.shape)])
    extremum = broadcast(reshape(node, kept), x.shape)
    # All elements attain a NaN, whose count is NaN.
    attained = elementwise("logical_not", elementwise("less" if node.name == "max" else "greater", x, extremum))
    count = choose(isnan(node), math.nan, reduce("sum", cast(attained, x.dtype), axes), x)
    return reduce("sum", choose(attained, t, 0.0, t), axes) / count


def _recurrence_tangent(node: Node, tangents: Sequence[Node | None]) -> Node:
    a, _ = node.inputs
    reverse = node.params[0]
    ta, tb = tangents
    drive = tb
    if ta is not None:
        term = ta * _previous(node, reverse)
        drive = term if drive is None else drive + term
    assert drive is not None
    return recurrence(a, drive, reverse)


def _previous(s: Node, reverse: bool) -> Node:
    """s[i-1] along the last axis (s[i+1] if `reverse`), zero at the start."""
    n = s.shape[-1]
    if n == 0:
        return s
    lead = [(0, m, 1) for m in s.shape[:-1]]
    none = [(0, 0)] * (s.ndim - 1)
    if reverse:
        return pad(slice_axes(s, [*lead, (1, n - 1, 1)]), [*none, (0, 1)])
    return pad(slice_axes(s, [*lead, (0, n - 1, 1)]), [*none, (1, 0)])


def _unrecurrence(g: Node, node: Node) -> Node:
    """The transpose in b: the recurrence from the other end, with the factor of the neighbour it came from."""
    reverse = node.params[0]
    return recurrence(_previous(node.inputs[0], not reverse), g, not reverse)


def _accumulate_tangent(node: Node, tangents: Sequence[Node | None]) -> Node:
    """The tangent of the element that holds the running extremum (the latest of equal ones)."""
    x, t = node.inputs[0], tangents[0]
    assert t is not None
    n = x.shape[-1]
    rows = math.prod(x.shape[:-1])
    position = broadcast(iota(n), x.shape)
    held = either(equal(x, node), isnan(x))
    position = accumulate("maximum", choose(held, position, 0, position))
    row = broadcast(reshape(iota(rows) * extent(n, INT64), (*x.shape[:-1], 1)), x.shape)
    return gather(reshape(t, (x.size,)), row + position)


def _unmatmul_a(g: Node, node: Node) -> Node:
    return matmul(g, transpose(node.inputs[1], (0, 2, 1)))


def _unmatmul_b(g: Node, node: Node) -> Node:
    return matmul(transpose(node.inputs[0], (0, 2, 1)), g)


def triangle(x: Node, lower: bool, strict: bool = False) -> Node:
    """One triangle of the matrices in the last two axes, without the diagonal if `strict`; zeros elsewhere."""
    n = x.shape[-1]
    row, column = broadcast(reshape(iota(n), (n, 1)), x.shape), broadcast(iota(n), x.shape)
    high, low = (row, column) if lower else (column, row)
    return choose(greater(high, low) if strict else greater_equal(high, low), x, 0.0, x)


def _triangular_tangent(node: Node, tangents: Sequence[Node | None]) -> Node:
    """From a x = b: a dx = db - da x."""
    a, _ = node.inputs
    lower, transposed, unit = node.params
    ta, tb = tangents
    drive = tb
    if ta is not None:
        ta = triangle(ta, lower, strict=unit)
        term = matmul(transpose(ta, (0, 2, 1)) if transposed else ta, node)
        drive = -term if drive is None else drive - term
    assert drive is not None
    return triangular_solve(a, drive, lower, transposed, unit)


def _untriangular_b(g: Node, node: Node) -> Node:
    lower, transposed, unit = node.params
    return triangular_solve(node.inputs[0], g, lower, not transposed, unit)


def _cholesky_tangent(node: Node, tangents: Sequence[Node | None]) -> Node:
    """L F(inverse(L) S inverse(L).T) for a symmetric S; F takes the lower triangle and halves the diagonal.

    Source: Murray, "Differentiation of the Cholesky decomposition", 2016, eq. 9.
    """
    (t,) = tangents
    assert t is not None
    symmetric = triangle(t, lower=True) + transpose(triangle(t, lower=True, strict=True), (0, 2, 1))
    half = triangular_solve(node, symmetric, lower=True)
    both = triangular_solve(node, transpose(half, (0, 2, 1)), lower=True)
    return matmul(node, 0.5 * (triangle(both, lower=True) + triangle(both, lower=True, strict=True)))


_same: Transpose = lambda g, node: g  # noqa: E731
_LN2, _LN10 = math.log(2.0), math.log(10.0)
_constant = NoDerivative("its value does not change when its operands change a little")
_integer = NoDerivative("it works on integers or gives booleans")

DERIVATIVES: dict[str, Row] = {
    # ----- Sources -----
    "input": NoDerivative("it has no operands"),
    "constant": NoDerivative("it has no operands"),
    "literal": NoDerivative("it has no operands"),
    "iota": NoDerivative("it has no operands"),
    # ----- Elementwise, one operand: partial(output, x) -----
    "exp": _unary(lambda z, x: z),
    "exp2": _unary(lambda z, x: z * _LN2),
    "expm1": _unary(lambda z, x: z + 1.0),
    "log": _unary(lambda z, x: 1.0, over=lambda z, x: x),
    "log2": _unary(lambda z, x: 1.0 / _LN2, over=lambda z, x: x),
    "log10": _unary(lambda z, x: 1.0 / _LN10, over=lambda z, x: x),
    "log1p": _unary(lambda z, x: 1.0, over=lambda z, x: x + 1.0),
    "sqrt": _unary(lambda z, x: 0.5, over=lambda z, x: z),
    "rsqrt": _unary(lambda z, x: -0.5 * (z * (z * z))),
    "cbrt": _unary(lambda z, x: 1.0, over=lambda z, x: 3.0 * z * z),
    "sin": _unary(lambda z, x: cos(x)),
    "cos": _unary(lambda z, x: -sin(x)),
    "tan": _unary(lambda z, x: z * z + 1.0),
    "arcsin": _unary(lambda z, x: 1.0, over=lambda z, x: sqrt((1.0 - x) * (1.0 + x))),
    "arccos": _unary(lambda z, x: -1.0, over=lambda z, x: sqrt((1.0 - x) * (1.0 + x))),
    "arctan": _unary(lambda z, x: 1.0, over=lambda z, x: x * x + 1.0),
    "sinh": _unary(lambda z, x: cosh(x)),
    "cosh": _unary(lambda z, x: sinh(x)),
    "tanh": _unary(lambda z, x: (1.0 - z) * (1.0 + z)),
    "arcsinh": _unary(lambda z, x: 1.0, over=lambda z, x: hypot(x, 1.0)),
    "arccosh": _unary(lambda z, x: 1.0, over=lambda z, x: sqrt(x - 1.0) * sqrt(x + 1.0)),
    "arctanh": _unary(lambda z, x: 1.0, over=lambda z, x: (1.0 - x) * (1.0 + x)),
    "erf": _unary(lambda z, x: (2.0 / math.sqrt(math.pi)) * exp(-(x * x))),
    "erfc": _unary(lambda z, x: (-2.0 / math.sqrt(math.pi)) * exp(-(x * x))),
    "gammaln": _unary(lambda z, x: elementwise("digamma", x)),
    "digamma": _unary(lambda z, x: elementwise("polygamma", zeros(x.shape, x.dtype) + 1.0, x)),
    "expit": _unary(lambda z, x: z * (1.0 - z)),
    "logit": _unary(lambda z, x: 1.0, over=lambda z, x: x * (1.0 - x)),
    "negative": _unary(lambda z, x: -1.0),
    "absolute": _unary(lambda z, x: sign(x)),
    "sign": _constant,
    "floor": _constant,
    "ceil": _constant,
    "rint": _constant,
    "trunc": _constant,
    "invert": _integer,
    # ----- Elementwise, two operands: partial(output, x, y) -----
    "add": _binary(lambda z, x, y: 1.0, lambda z, x, y: 1.0),
    "subtract": _binary(lambda z, x, y: 1.0, lambda z, x, y: -1.0),
    "multiply": _binary(lambda z, x, y: y, lambda z, x, y: x),
    "divide": Partials((lambda z, x, y: 1.0, lambda z, x, y: -z), lambda z, x, y: y),
    "power": _binary(
        lambda z, x, y: choose(both(equal(x, 0.0), equal(y, 0.0)), 0.0, y * power(x, y - 1.0), x),
        lambda z, x, y: choose(both(equal(x, 0.0), greater_equal(y, 0.0)), 0.0, z * log(x), x),
    ),
    "remainder": _binary(lambda z, x, y: 1.0, lambda z, x, y: -floor_divide(x, y)),
    "fmod": _binary(lambda z, x, y: 1.0, lambda z, x, y: -trunc(x / y)),
    "floor_divide": _constant,
    "maximum": _binary(
        lambda z, x, y: _of_extremum(greater(x, y), less(x, y), x, y),
        lambda z, x, y: _of_extremum(less(x, y), greater(x, y), x, y),
    ),
    "minimum": _binary(
        lambda z, x, y: _of_extremum(less(x, y), greater(x, y), x, y),
        lambda z, x, y: _of_extremum(greater(x, y), less(x, y), x, y),
    ),
    "fmax": _binary(
        lambda z, x, y: _of_winner(greater_equal(x, y), x, y), lambda z, x, y: _of_winner(greater_equal(y, x), y, x)
    ),
    "fmin": _binary(
        lambda z, x, y: _of_winner(greater_equal(y, x), x, y), lambda z, x, y: _of_winner(greater_equal(x, y), y, x)
    ),
    "copysign": _binary(lambda z, x, y: sign(x) * copysign(1.0, y), None),
    "hypot": _binary(
        lambda z, x, y: choose(equal(z, 0.0), 0.0, x / z, x),
        lambda z, x, y: choose(equal(z, 0.0), 0.0, y / z, y),
    ),
    "arctan2": _binary(
        lambda z, y, x: x / hypot(x, y) / hypot(x, y),
        lambda z, y, x: -y / hypot(x, y) / hypot(x, y),
    ),
    "logaddexp": _binary(lambda z, x, y: _share(x, y, 1.0), lambda z, x, y: _share(y, x, 1.0)),
    "logaddexp2": _binary(lambda z, x, y: _share(x, y, _LN2), lambda z, x, y: _share(y, x, _LN2)),
    "xlogy": _binary(
        lambda z, x, y: log(y),
        lambda z, x, y: choose(both(equal(x, 0.0), equal(y, 0.0)), 0.0, x / y, x),
    ),
    "polygamma": _binary(None, lambda z, n, x: elementwise("polygamma", n + 1.0, x)),
    "sinc_derivative": _binary(None, lambda z, n, x: elementwise("sinc_derivative", n + 1.0, x)),
    "nextafter": _binary(lambda z, x, y: 1.0, None),
    "bitwise_and": _integer,
    "bitwise_or": _integer,
    "bitwise_xor": _integer,
    "left_shift": _integer,
    "right_shift": _integer,
    "random_bits": _integer,
    **dict.fromkeys(COMPARISON, _integer),
    "select": Linear(
        lambda node: (
            None,
            lambda g, node: choose(node.inputs[0], g, 0.0, g),
            lambda g, node: choose(elementwise("logical_not", node.inputs[0]), g, 0.0, g),
        )
    ),
    "alias": Linear(lambda node: (_same,)),
    "stop_gradient": NoDerivative("stop_gradient was asked for"),
    "custom": NoDerivative("differentiate.py calls the user's rule"),
    "cast": Linear(lambda node: (lambda g, node: cast(g, node.inputs[0].dtype),)),
    # A complex number is its two parts, and so is its cotangent.
    "complex": Linear(lambda node: (lambda g, node: make("real", (g,)), lambda g, node: make("imag", (g,)))),
    "real": Linear(lambda node: (lambda g, node: make("complex", (g, zeros(g.shape, g.dtype))),)),
    "imag": Linear(lambda node: (lambda g, node: make("complex", (zeros(g.shape, g.dtype), g)),)),
    "gather": Linear(lambda node: (lambda g, node: scatter_add(node.inputs[0].size, node.inputs[1], g), None)),
    # ----- Movement -----
    "reshape": Linear(lambda node: (lambda g, node: reshape(g, node.inputs[0].shape),)),
    "transpose": Linear(lambda node: (_untranspose,)),
    "broadcast": Linear(lambda node: (lambda g, node: unbroadcast(g, node.inputs[0].shape),)),
    "slice": Linear(lambda node: (lambda g, node: unslice(g, node.inputs[0].shape, node.params[0]),)),
    "pad": Linear(lambda node: (_unpad,)),
    "concatenate": Linear(_unconcatenate),
    # ----- Reductions -----
    "sum": Linear(lambda node: (_unsum,)),
    "prod": Tangent(_prod_tangent),
    "max": Tangent(_extremum_tangent),
    "min": Tangent(_extremum_tangent),
    # ----- Special kernels -----
    "recurrence": Tangent(_recurrence_tangent, (None, _unrecurrence)),
    "accumulate": Tangent(_accumulate_tangent),
    "scatter_add": Linear(lambda node: (None, lambda g, node: gather(g, node.inputs[0]))),
    "scatter_last": _integer,
    "argsort": _integer,
    "matmul": Multilinear((_unmatmul_a, _unmatmul_b)),
    "unfold": Linear(lambda node: (lambda g, node: make("fold", (g,), (*node.params, node.inputs[0].shape[2:])),)),
    "fold": Linear(lambda node: (lambda g, node: make("unfold", (g,), node.params[:5]),)),
    "window_argmax": _integer,
    "lu": NoDerivative("solving and determinants have rules of their own, which read its factors as constants"),
    "cholesky": Tangent(_cholesky_tangent),
    "triangular_solve": Tangent(_triangular_tangent, (None, _untriangular_b)),
    "complete_pivots": _integer,
    "host": NoDerivative("a custom node around it has the rule"),
}


def linear_in(row: Row, node: Node) -> Sequence[Transpose | None]:
    """The transposes that a row offers for the operands of a node."""
    if isinstance(row, Linear):
        return row.transposes(node)
    if isinstance(row, Multilinear | Tangent):
        return row.transposes
    return ()
