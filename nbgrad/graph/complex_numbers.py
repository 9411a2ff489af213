"""Complex numbers: pairs of real nodes.

In: a primitive that is applied to complex nodes (`ir.make` and its shortcuts send those here). Out: its result, made of
real primitives: a `complex` node, which joins a real and an imaginary part, or a real node. So derivatives,
simplification, fusion and machine code know nothing of complex numbers. The only nodes that stay complex otherwise are
those that are not looked into: leaves, `alias`, `custom` and `host` nodes. Their parts are `real` and `imag` nodes.

The cotangent of a complex z = x + i y is g = dL/dx + i dL/dy. Then a step against g goes downhill; the vjp of a
holomorphic f multiplies by the conjugate of f'. PyTorch and TensorFlow have the same convention; JAX's
gradients are the conjugates. Wirtinger's dL/dz is conj(g) / 2, and dL/d(conj z) is g / 2.

A part that is zero by construction (a real number among complex ones has such an imaginary part) is not multiplied, so
that 2.0 * z scales both parts of z, as in C99, also where they are infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..errors import DtypeError
from ..process.modes import KEEPS, look_at_results
from . import ir
from .builders import argsort, take_last, truth
from .ir import BOOL, COMPLEX_OF, INT64, PART_OF, Node, Params, elementwise, literal_value, make, zeros
from .primitives import PRIMITIVES
from .window_rows import CONVOLUTIONS, product_form

COMPLEX, REAL, IMAG, LITERAL, BROADCAST, SELECT = (
    PRIMITIVES[name] for name in "complex real imag literal broadcast select".split()
)
Expansion = Callable[[tuple[Node, ...], Params], Node]


# ----- Pairs -----


def pair(re: Node, im: Node) -> Node:
    """The complex node of two real ones of one shape and dtype."""
    if re.primitive is REAL and im.primitive is IMAG and re.inputs == im.inputs:
        return re.inputs[0]
    if re.dtype not in COMPLEX_OF:
        re, im = (make("cast", (part,), (np.dtype(np.float32),)) for part in (re, im))
    joined = Node(COMPLEX, (re, im), (), re.shape, COMPLEX_OF[re.dtype])
    if joined.traced & KEEPS:
        look_at_results()
    return joined


def parts(z: Node) -> tuple[Node, Node]:
    """The real and the imaginary part of a complex node; of a real one, itself and zero."""
    if z.primitive is COMPLEX:
        return z.inputs[0], z.inputs[1]
    if z.dtype.kind != "c":
        return z, zeros(z.shape, z.dtype)
    dtype = PART_OF[z.dtype]
    return Node(REAL, (z,), (), z.shape, dtype), Node(IMAG, (z,), (), z.shape, dtype)


def is_complex(node: Node) -> bool:
    """Whether a node's elements are complex."""
    return node.dtype.kind == "c"


def from_real(x: Node, dtype: np.dtype) -> Node:
    """A real node as a complex one, whose imaginary part is zero by construction."""
    re = make("cast", (x,), (PART_OF[dtype],)) if x.dtype != PART_OF[dtype] else x
    return pair(re, zeros(x.shape, re.dtype))


def conjugate(z: Node) -> Node:
    """The complex conjugate; a real node is its own."""
    if not is_complex(z):
        return z
    re, im = parts(z)
    return z if is_zero(im) else pair(re, -im)


def is_zero(node: Node) -> bool:
    """Whether a real node is zero by construction."""
    while node.primitive is BROADCAST:
        node = node.inputs[0]
    return node.primitive is LITERAL and not any(node.params[0])


def joint_mask(g: Node) -> Node | None:
    """The condition outside of which both parts of a cotangent are zero by construction, if there is one."""
    condition = None
    for part in parts(g):
        if is_zero(part):
            continue
        if part.primitive is not SELECT or not is_zero(part.inputs[2]):
            return None
        if condition is not None and part.inputs[0] is not condition:
            return None
        condition = part.inputs[0]
    return condition


def unmasked(g: Node) -> Node:
    """A cotangent that has a joint mask, without it."""
    re, im = (part if is_zero(part) else part.inputs[1] for part in parts(g))
    return pair(re, im)


def add_cotangents(a: Node, b: Node) -> Node:
    """The sum of two complex cotangents; nothing is added to parts that are zero by construction."""
    return pair(*[y if is_zero(x) else x if is_zero(y) else x + y for x, y in zip(parts(a), parts(b), strict=True)])


# ----- Arithmetic -----


def _each(name: str, *data: int) -> Expansion:
    """A primitive that acts alike on both parts of its operands at the positions `data`, and leaves zero as it is."""

    def expansion(inputs: tuple[Node, ...], params: Params) -> Node:
        split = {k: parts(inputs[k]) for k in data or range(len(inputs))}
        found: list[Node] = []
        for side in (0, 1):
            operands = tuple([split[k][side] if k in split else node for k, node in enumerate(inputs)])
            if all(is_zero(operands[k]) for k in split):
                shape, dtype = PRIMITIVES[name].shape_rule(operands, params)
                found.append(zeros(shape, dtype))
            else:
                found.append(make(name, operands, params))
        return pair(*found)

    return expansion


def _negative(inputs: tuple[Node, ...], params: Params) -> Node:
    return pair(*[part if k and is_zero(part) else -part for k, part in enumerate(parts(inputs[0]))])


def _product_of_parts(times: Callable[[Node, Node], Node], z: Node, w: Node) -> Node:
    """A product by its four real ones, of which those with a part that is zero by construction are left out."""
    (a, b), (c, d) = parts(z), parts(w)

    def product(x: Node, y: Node) -> Node | None:
        return None if is_zero(x) or is_zero(y) else times(x, y)

    ac, bd, ad, bc = product(a, c), product(b, d), product(a, d), product(b, c)
    re = -bd if ac is None and bd is not None else ac if bd is None else ac - bd if ac is not None else None
    im = bc if ad is None else ad if bc is None else ad + bc
    known = re if re is not None else im
    if known is None:
        shape = times(a, c).shape
        return pair(zeros(shape, a.dtype), zeros(shape, a.dtype))
    nothing = zeros(known.shape, known.dtype)
    return pair(nothing if re is None else re, nothing if im is None else im)


def _multiply(inputs: tuple[Node, ...], params: Params) -> Node:
    return _product_of_parts(lambda x, y: x * y, *inputs)


def _matmul(inputs: tuple[Node, ...], params: Params) -> Node:
    return _product_of_parts(lambda x, y: make("matmul", (x, y)), *inputs)


def _absolute(inputs: tuple[Node, ...], params: Params) -> Node:
    re, im = parts(inputs[0])
    return elementwise("absolute", re) if is_zero(im) else elementwise("hypot", re, im)


def _sign(inputs: tuple[Node, ...], params: Params) -> Node:
    """z / |z|, and 0 at 0."""
    (z,) = inputs
    size = elementwise("absolute", z)
    zero = elementwise("equal", size, 0)
    safe = elementwise("select", zero, elementwise("add", size, 1), size)
    nothing = zeros(z.shape, size.dtype)  # without the signs of zeros
    re, im = (elementwise("select", zero, nothing, part / safe) for part in parts(z))
    return pair(re, im)


# ----- Comparisons -----


def _any_part(name: str, join: str) -> Expansion:
    """A question that is asked of both parts."""

    def expansion(inputs: tuple[Node, ...], params: Params) -> Node:
        first, second = (elementwise(name, *sides) for sides in zip(*map(parts, inputs), strict=True))
        return elementwise(join, first, second)

    return expansion


def _ordered(name: str) -> Expansion:
    """NumPy's order: by the real parts, by the imaginary ones where those are equal; nothing is in order with NaN."""
    strict = name.removesuffix("_equal")

    def expansion(inputs: tuple[Node, ...], params: Params) -> Node:
        (a, b), (c, d) = parts(inputs[0]), parts(inputs[1])
        tie = elementwise("logical_and", elementwise("equal", a, c), elementwise(name, b, d))
        apart = elementwise(strict, a, c)
        for part in (b, d):
            if not is_zero(part):
                apart = elementwise("logical_and", apart, elementwise("equal", part, part))
        return elementwise("logical_or", apart, tie)

    return expansion


def _logical(name: str) -> Expansion:
    return lambda inputs, params: elementwise(name, *[truth(node) for node in inputs])


def _extremum(name: str) -> Expansion:
    """The larger or smaller of two in NumPy's order; a NaN wins, except in fmax and fmin."""
    better = "greater_equal" if name in ("maximum", "fmax") else "less_equal"
    asked = 1 if name.startswith("f") else 0

    def expansion(inputs: tuple[Node, ...], params: Params) -> Node:
        first = elementwise("logical_or", elementwise(better, *inputs), elementwise("isnan", inputs[asked]))
        return elementwise("select", first, *inputs)

    return expansion


# ----- Scans and reductions -----


def _halved(name: str) -> Expansion:
    """A reduction: halves are combined with each other by an elementwise primitive until one element is left."""

    def expansion(inputs: tuple[Node, ...], params: Params) -> Node:
        (z,) = inputs
        (axes,) = params
        kept = tuple([axis for axis in range(z.ndim) if axis not in axes])
        shape = tuple([z.shape[axis] for axis in kept])
        count = int(np.prod([z.shape[axis] for axis in axes], dtype=np.int64))
        rest = make("reshape", (make("transpose", (z,), (kept + tuple(axes),)),), ((*shape, count),))
        lead = [(0, n, 1) for n in shape]
        if count == 0:
            assert name == "multiply", name
            return ir.filled(1, z.dtype, shape)
        while count > 1:
            half = count // 2
            left = make("slice", (rest,), ((*lead, (0, half, 1)),))
            right = make("slice", (rest,), ((*lead, (half, half, 1)),))
            joined = elementwise(name, left, right)
            if count % 2:
                last = make("slice", (rest,), ((*lead, (count - 1, 1, 1)),))
                joined = make("concatenate", (joined, last), (len(shape),))
            rest, count = joined, half + count % 2
        return make("reshape", (rest,), (shape,))

    return expansion


def _recurrence(inputs: tuple[Node, ...], params: Params) -> Node:
    """s[i] = a[i] s[i-1] + b[i]; for complex a by doubling the distance that is bridged (Hillis and Steele 1986)."""
    a, b = inputs
    (reverse,) = params
    (re, im), (b_re, b_im) = parts(a), parts(b)
    if is_zero(im):
        return pair(make("recurrence", (re, b_re), params), make("recurrence", (re, b_im), params))
    n = a.shape[-1]
    lead = [(0, m, 1) for m in a.shape[:-1]]
    step = 1
    while step < n:
        start, widths = (step, (0, step)) if reverse else (0, (step, 0))
        near = [(0, 0)] * (a.ndim - 1) + [widths]
        before_a, before_b = (
            make("pad", (make("slice", (x,), ((*lead, (start, n - step, 1)),)),), (tuple(near),)) for x in (a, b)
        )
        a, b = a * before_a, a * before_b + b
        step *= 2
    return b


# ----- Sorting -----


def _argsort(inputs: tuple[Node, ...], params: Params) -> Node:
    """By the real parts, and by the imaginary parts where those are equal: a stable sort after another.

    Numbers with a NaN come last, those with a NaN as real part behind those with one as imaginary part.
    """
    re, im = parts(inputs[0])
    missing = [make("cast", (elementwise("isnan", part),), (INT64,)) for part in (re, im)]
    order = argsort(im)
    for key in (re, missing[0] * 2 + missing[1]):
        order = take_last(order, argsort(take_last(key, order)))
    return order


# ----- Conversions -----


def _cast(inputs: tuple[Node, ...], params: Params) -> Node:
    (z,) = inputs
    (dtype,) = params
    if not is_complex(z):
        return from_real(z, dtype)
    if dtype == BOOL:
        return elementwise("not_equal", z, 0)
    if dtype.kind != "c":
        message = (
            f"A complex array cannot be cast to {dtype}: its imaginary part would be lost. Take x.real (or np.real(x)) "
            "first, or np.abs(x)."
        )
        raise DtypeError(message)
    return pair(*[make("cast", (part,), (PART_OF[dtype],)) for part in parts(z)])


EXPANSIONS: dict[str, Expansion] = {
    "complex": lambda inputs, params: pair(*inputs),
    "real": lambda inputs, params: parts(inputs[0])[0],
    "imag": lambda inputs, params: parts(inputs[0])[1],
    "cast": _cast,
    **{name: _each(name) for name in "reshape transpose broadcast slice pad concatenate sum unfold fold".split()},
    **{name: _each(name) for name in "add subtract stop_gradient rint".split()},
    **{name: partial(product_form, name) for name in CONVOLUTIONS},
    "gather": _each("gather", 0),
    "scatter_add": _each("scatter_add", 1),
    "select": _each("select", 1, 2),
    "write": _each("write", 0, 1),
    "negative": _negative,
    "multiply": _multiply,
    "matmul": _matmul,
    "absolute": _absolute,
    "sign": _sign,
    "equal": _any_part("equal", "logical_and"),
    "not_equal": _any_part("not_equal", "logical_or"),
    **{name: _ordered(name) for name in "less less_equal greater greater_equal".split()},
    **{name: _logical(name) for name in "logical_and logical_or logical_xor logical_not".split()},
    **{name: _extremum(name) for name in "maximum minimum fmax fmin".split()},
    "isnan": _any_part("isnan", "logical_or"),
    "isinf": _any_part("isinf", "logical_or"),
    "isfinite": _any_part("isfinite", "logical_and"),
    "prod": _halved("multiply"),
    "max": _halved("maximum"),
    "min": _halved("minimum"),
    "recurrence": _recurrence,
    "argsort": _argsort,
}
"""Expansions of primitives on complex operands, by name; holomorphic.py has the others."""


def literal_number(node: Node) -> complex | None:
    """The number that a node is everywhere, if it is baked into the program."""
    found: list[float] = []
    for part in parts(node) if is_complex(node) else (node,):
        while part.primitive is BROADCAST:
            part = part.inputs[0]
        if part.primitive is not LITERAL:
            return None
        found.append(literal_value(part))
    return complex(*found)
