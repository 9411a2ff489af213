"""Random graphs: simplifying and compiling them never changes what they compute.

All graphs but the smooth ones compute with small whole numbers, which floating point represents exactly whatever the
order of operations; so the interpreter, the simplified graph and machine code must agree in every bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbgrad.compiler.views import View
from nbgrad.graph.batch import batch
from nbgrad.graph.builders import (
    accumulate,
    argsort,
    cast,
    concatenate,
    gather,
    iota,
    matmul,
    pad,
    recurrence,
    reduce,
    reshape,
    scatter_add,
    scatter_last,
    slice_axes,
    transpose,
)
from nbgrad.graph.differentiate import jvp, vjp
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, broadcast, elementwise, literal, placeholder, topological, zeros
from nbgrad.graph.show import show
from nbgrad.graph.simplify import simplify
from nbgrad.runtime.evaluate import compute

Draw = Callable[[st.SearchStrategy[Any]], Any]
QUICK = settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
LONG = settings(QUICK, max_examples=2000, derandomize=False)
DTYPES = [np.dtype(name) for name in "float64 float32 float16 int64 int32 int8 uint8 bool".split()]
INT64 = np.dtype(np.int64)
MOST_ELEMENTS = 300


class Builder:
    """Draws nodes one after the other; every node's value is small whole numbers."""

    def __init__(self, draw: Draw, smooth: bool = False, extents: Sequence[int] = (0, 1, 1, 2, 3, 4, 5)) -> None:
        self.draw = draw
        self.smooth = smooth
        self.extents = extents
        self.most = MOST_ELEMENTS if max(extents) < 100 else 60_000
        self.leaves: list[Node] = []
        self.pool: list[Node] = []
        for _ in range(self.integer(1, 3)):
            self.leaf()

    # ----- Choices -----

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def choice(self, options: Sequence[Any]) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def permuted(self, items: Sequence[Any]) -> list[Any]:
        return self.draw(st.permutations(list(items)))

    def leaf(self) -> None:
        dtype = np.dtype(float) if self.smooth else self.choice([*DTYPES[:1] * 4, *DTYPES])
        shape = tuple([self.choice(self.extents) for _ in range(self.integer(0, 3))])
        while math.prod(shape) > self.most:
            shape = shape[1:]
        rng = np.random.default_rng(self.integer(0, 2**20))
        if self.smooth:
            value = np.asarray(rng.normal(size=shape))
        else:
            value = rng.integers(0 if dtype.kind in "ub" else -4, 2 if dtype.kind == "b" else 5, shape).astype(dtype)
        self.leaves.append(placeholder(shape, dtype, value))
        self.pool.append(self.leaves[-1])

    def node(self) -> Node:
        return self.choice(self.pool)

    def number(self) -> Node:
        """A node whose dtype has arithmetic."""
        node = self.node()
        return cast(node, np.dtype(float)) if node.dtype.kind == "b" else node

    # ----- Shapes -----

    def fit(self, node: Node, shape: tuple[int, ...]) -> Node:
        """The node in a shape: broadcast where that works, else repeated or cut."""
        if node.shape == shape:
            return node
        try:
            if np.broadcast_shapes(node.shape, shape) == shape:
                return broadcast(node, shape)
        except ValueError:
            pass
        size = math.prod(shape)
        if node.size == 0 or size == 0:
            return zeros(shape, node.dtype)
        flat = reshape(node, (node.size,))
        if node.size < size:
            flat = concatenate([flat] * min(6, -(-size // node.size)), 0)
        if flat.size < size:
            flat = pad(flat, [(size - flat.size, 0)])
        return reshape(slice_axes(flat, [(flat.size - size, size, 1)]), shape)

    def index(self, shape: tuple[int, ...], size: int) -> Node:
        """Integers in range(size)."""
        if self.integer(0, 1):
            steps = iota(max(1, math.prod(shape))) * self.integer(-3, 3) + self.integer(-5, 5)
            found = self.fit(steps, shape)
        else:
            found = self.fit(cast(self.number(), INT64), shape)
        return elementwise("remainder", found, size)

    # ----- Operations -----

    def movement(self) -> Node:
        x = self.node()
        kind = self.choice(["reshape", "transpose", "broadcast", "slice", "pad", "concatenate"])
        if kind == "reshape":
            extents = [1] * self.integer(0, 2)
            rest = x.size
            for p in [2, 3, 5, 7]:
                while rest and rest % p == 0:
                    extents.insert(self.integer(0, len(extents)), p)
                    rest //= p
            extents.append(rest)
            while len(extents) > 4 or (len(extents) > 1 and self.integer(0, 1)):
                extents = [extents[0] * extents[1], *extents[2:]]
            if len(extents) == 1 and extents[0] == 1 and self.integer(0, 1):
                extents = []
            return reshape(x, tuple(extents))
        if kind == "transpose":
            return transpose(x, tuple(self.permuted(range(x.ndim))))
        if kind == "broadcast":
            front = [self.choice([1, 2, 3])] if x.ndim < 4 and self.integer(0, 1) else []
            return broadcast(x, (*front, *[self.choice([1, 2, 3]) if n == 1 else n for n in x.shape]))
        if kind == "slice":
            ranges = []
            for n in x.shape:
                step = self.choice([1, 1, 2, 3, -1, -2])
                start = self.integer(0, max(0, n - 1))
                room = 0 if n == 0 else (n - 1 - start) // step + 1 if step > 0 else start // -step + 1
                ranges.append((start, self.integer(min(1, room), room), step))
            return slice_axes(x, ranges)
        if kind == "pad":
            return pad(x, [(self.integer(0, 2), self.integer(0, 2)) for _ in x.shape])
        if x.ndim == 0:
            x = reshape(x, (1,))
        axis = self.integer(0, x.ndim - 1)
        pieces = [x]
        for _ in range(self.choice([1, 1, 2, 5])):
            other = self.node()
            shape = tuple([self.integer(0, 3) if a == axis else n for a, n in enumerate(x.shape)])
            pieces.insert(self.integer(0, 1), self.fit(cast(other, x.dtype), shape))
        return concatenate(pieces, axis)

    def arithmetic(self) -> Node:
        x = self.node()
        kind = self.choice(["unary", "binary", "binary", "compare", "select", "cast", "literal"])
        if x.dtype.kind == "b" and kind in ("unary", "literal"):
            kind = "cast"
        if kind == "unary":
            if self.smooth:
                x = cast(x, np.dtype(float))
                return elementwise(self.choice(["tanh", "sin", "expit", "arctan", "erf", "cos"]), x)
            names = ["negative", "absolute", "sign", "floor", "trunc"]
            return elementwise(self.choice(names[1:] if x.dtype.kind == "u" else names), x)
        if kind == "literal":
            value = self.choice([-1, 0, 1, 2, 3, 0.5] if self.smooth else [0, 1, 2, 3, 7])
            name = self.choice(["add", "subtract", "multiply", "maximum"])
            return elementwise(name, *self.permuted([x, literal(value, x.dtype)]))
        if kind == "cast":
            if self.smooth:
                return x
            target = self.choice(DTYPES)
            return cast(elementwise("absolute", x) if target.kind == "u" and x.dtype.kind in "fi" else x, target)
        y = cast(self.node(), x.dtype)
        try:
            np.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            y = self.fit(y, x.shape)
        if math.prod(np.broadcast_shapes(x.shape, y.shape)) > self.most:
            y = self.fit(y, x.shape)
        if kind == "binary":
            names = ["add", "multiply", "maximum", "minimum"]
            if x.dtype.kind != "b":
                names += ["subtract"] if self.smooth else ["subtract", "fmax", "fmin"]
            return elementwise(self.choice(names), x, y)
        condition = elementwise(self.choice(["less", "equal", "greater_equal", "not_equal"]), x, y)
        if kind == "compare" and not self.smooth:
            return condition
        return elementwise("select", condition, x, y)

    def reduction(self) -> Node:
        x = self.node()
        axes = [axis for axis in range(x.ndim) if self.integer(0, 1)]
        name = self.choice(["sum", "sum", "prod", "max", "min"])
        if name in ("max", "min") and any(x.shape[a] == 0 for a in axes):
            name = "sum"
        if name == "prod" and x.dtype.kind == "f" and x.size > 40:
            name = "sum"
        return reduce(name, cast(x, INT64) if x.dtype.kind == "b" and name in ("sum", "prod") else x, axes)

    def special(self) -> Node:
        x = self.number()
        kind = self.choice(["gather", "scatter_add", "scatter_last", "argsort", "accumulate", "recurrence", "matmul"])
        if kind == "gather":
            if x.size == 0:
                return x
            shape = tuple([self.choice([1, 2, 3]) for _ in range(self.integer(0, 2))])
            return gather(reshape(x, (x.size,)), self.index(shape, x.size))
        if kind == "scatter_add":
            size = self.integer(1, 6)
            return scatter_add(size, self.index(x.shape, size), x)
        if kind == "scatter_last":
            size = self.integer(1, 6)
            return scatter_last(size, self.index(x.shape, size))
        if x.size == 0:
            return x
        if x.ndim == 0:
            x = reshape(x, (1,))
        if kind == "argsort":
            return argsort(x)
        if kind == "accumulate":
            return accumulate(self.choice(["maximum", "minimum"]), x)
        if kind == "recurrence":
            x = cast(x, np.dtype(float)) if self.smooth else x
            factor = self.fit(cast(self.number(), x.dtype), x.shape)
            factor = elementwise("tanh" if self.smooth else "sign", factor)
            return recurrence(factor, x, bool(self.integer(0, 1)))
        dtype = self.choice(DTYPES[: 1 if self.smooth else 3])
        batch, m, k, n = self.integer(1, 2), self.integer(0, 4), self.integer(0, 4), self.integer(0, 4)
        a = self.fit(cast(x, dtype), (batch, m, k))
        flipped = self.integer(0, 1)
        b = self.fit(cast(self.number(), dtype), (batch, n, k) if flipped else (batch, k, n))
        return matmul(a, transpose(b, (0, 2, 1)) if flipped else b)

    def grow(self, steps: int) -> None:
        """Add nodes; one that would leave the range in which its dtype is exact is taken modulo 7."""
        for _ in range(steps):
            family = self.choice(
                [self.movement, self.movement, self.arithmetic, self.arithmetic, self.reduction, self.special]
            )
            node = family()
            if node.size > self.most or node.ndim > 5:
                continue
            if not self.smooth and node.dtype.kind == "f":
                value = np.abs(interpret([node])[0])
                if value.size and not value.max() <= (1000 if node.dtype == np.float16 else 2**22):
                    continue
                if value.size and value.max() > 500:
                    node = elementwise("fmod", node, 7)
            self.pool.append(node)

    def outputs(self, most: int = 4) -> list[Node]:
        """The last node and some others, possibly twice."""
        return [self.pool[-1], *[self.node() for _ in range(self.integer(0, most - 1))]]


@st.composite
def graphs(draw: Draw, steps: int = 12, **options: Any) -> list[Node]:
    """Outputs of a random graph whose placeholders hold their values."""
    builder = Builder(draw, **options)
    builder.grow(builder.integer(1, steps))
    return builder.outputs()


def inputs_of(outputs: Sequence[Node]) -> list[Node]:
    """The differentiable placeholders of a graph."""
    return [node for node in topological(outputs) if node.name == "input" and node.dtype.kind == "f"]


def assert_same(outputs: Sequence[Node], got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> None:
    """All bits agree, but for the sign of zero and the payload of NaN."""
    for position, (node, one, other) in enumerate(zip(outputs, got, want, strict=True)):
        where = f"output {position}, {node!r}, of\n{show(outputs)}"
        assert (one.dtype, one.shape) == (other.dtype, other.shape), where
        np.testing.assert_array_equal(one, other, err_msg=where)


def magnitude(outputs: Sequence[Node]) -> float:
    """The largest finite number that occurs anywhere in a graph."""
    nodes = [node for node in topological(outputs) if node.dtype.kind == "f"]
    values = [np.abs(value[np.isfinite(value)]) for value in interpret(nodes)]
    return max([1.0, *[float(value.max()) for value in values if value.size]])


def assert_close(outputs: Sequence[Node], got: Sequence[np.ndarray], want: Sequence[np.ndarray], size: float) -> None:
    """Agreement within rounding errors of the largest number that occurred."""
    for position, (node, one, other) in enumerate(zip(outputs, got, want, strict=True)):
        where = f"output {position}, {node!r}, of\n{show(outputs)}"
        assert (one.dtype, one.shape) == (other.dtype, other.shape), where
        scale = {"float16": 4e-3, "float32": 2e-6}.get(node.dtype.name, 1e-12) * size
        np.testing.assert_allclose(one, other, rtol=scale, atol=scale, err_msg=where)


def check_simplify(outputs: list[Node]) -> None:
    """Simplifying keeps values."""
    assert_same(outputs, interpret(simplify(outputs)), interpret(outputs))


def check_compiled(outputs: list[Node]) -> None:
    """Machine code computes what the interpreter computes."""
    assert_same(outputs, compute(outputs), interpret(outputs))


def derivatives_of(outputs: list[Node], forward: bool) -> list[Node]:
    """Some derivative of a graph, in one mode."""
    wrt = inputs_of(outputs)
    floats = [node for node in outputs if node.dtype.kind == "f"]
    rng = np.random.default_rng(5)

    def vector(node: Node) -> Node:
        value = rng.integers(-2, 3, node.shape).astype(node.dtype)
        return placeholder(node.shape, node.dtype, value)

    if forward:
        found = jvp(floats, wrt, [vector(node) for node in wrt])
    else:
        found = vjp(floats, [vector(node) for node in floats], wrt)
    return [node for node in found if node is not None]


def check_derivatives(outputs: list[Node], forward: bool) -> None:
    """Derivatives too, within rounding."""
    found = derivatives_of(outputs, forward)
    if found:
        size = magnitude(found)
        want = interpret(found)
        assert_close(found, interpret(simplify(found)), want, size)
        assert_close(found, compute(found), want, size)


def check_smooth(outputs: list[Node]) -> None:
    """The two modes agree: <w, J u> = <J' w, u>; and compiled code agrees with the interpreter."""
    size = magnitude(outputs)
    assert_close(outputs, compute(outputs), interpret(outputs), size)
    floats = [node for node in outputs if node.dtype.kind == "f"]
    wrt = inputs_of(outputs)
    rng = np.random.default_rng(6)
    u = [placeholder(n.shape, n.dtype, np.asarray(rng.normal(size=n.shape))) for n in wrt]
    w = [placeholder(n.shape, n.dtype, np.asarray(rng.normal(size=n.shape))) for n in floats]
    forward, reverse = jvp(floats, wrt, u), vjp(floats, w, wrt)
    every = [node for node in (*forward, *reverse) if node is not None]
    if not every:
        return
    size = magnitude(every)
    got = compute(every)
    assert_close(every, got, interpret(every), size)
    value = dict(zip(every, got, strict=True))
    left = sum(float(np.sum(a.value * value[b])) for a, b in zip(w, forward, strict=True) if b is not None)
    right = sum(float(np.sum(a.value * value[b])) for a, b in zip(u, reverse, strict=True) if b is not None)
    assert abs(left - right) <= 1e-9 * size * (1 + abs(left)), (
        f"<w, J u> = {left}, <J' w, u> = {right} of\n{show(outputs)}"
    )


def check_batched(outputs: list[Node], some: bool) -> None:
    """A batch of three is the graph for each of three values of its inputs (of every other input, for `some`)."""
    leaves = [node for node in topological(outputs) if node.name == "input"][:: 2 if some else 1]
    rng = np.random.default_rng(7)
    many: dict[Node, Node] = {}
    for leaf in leaves:
        assert leaf.value is not None
        rows = [leaf.value, *[rng.permuted(leaf.value.ravel()).reshape(leaf.shape) for _ in range(2)]]
        many[leaf] = placeholder((3, *leaf.shape), leaf.dtype, np.stack(rows))
    got = interpret(batch(outputs, many, 3))
    for k in range(3):
        want = interpret(outputs, {leaf: batched.value[k] for leaf, batched in many.items()})
        assert_same(outputs, [array[k] for array in got], want)


# ----- A few in every run -----


@settings(QUICK, max_examples=250)
@given(graphs(steps=16))
def test_simplify_keeps_values(outputs: list[Node]) -> None:
    check_simplify(outputs)


@QUICK
@given(graphs())
def test_compiled_is_interpreted(outputs: list[Node]) -> None:
    check_compiled(outputs)


@settings(QUICK, max_examples=60)
@given(graphs(steps=8), st.booleans())
def test_derivatives_compiled_are_interpreted(outputs: list[Node], forward: bool) -> None:
    check_derivatives(outputs, forward)


@settings(QUICK, max_examples=25)
@given(graphs(steps=8, smooth=True))
def test_smooth_graphs_in_both_modes(outputs: list[Node]) -> None:
    check_smooth(outputs)


@settings(QUICK, max_examples=150)
@given(graphs(), st.booleans())
def test_batches_are_stacks(outputs: list[Node], some: bool) -> None:
    check_batched(outputs, some)


@settings(QUICK, max_examples=12)
@given(graphs(steps=5, extents=(1, 3, 200, 700, 20_000)))
def test_large_arrays(outputs: list[Node]) -> None:
    check_compiled(outputs)


# ----- Many, on demand -----


@pytest.mark.slow
@settings(LONG, max_examples=20_000)
@given(graphs(steps=25))
def test_simplify_keeps_values_long(outputs: list[Node]) -> None:
    check_simplify(outputs)


@pytest.mark.slow
@settings(LONG, max_examples=10_000)
@given(graphs(steps=20), st.booleans())
def test_batches_are_stacks_long(outputs: list[Node], some: bool) -> None:
    check_batched(outputs, some)


@pytest.mark.slow
@LONG
@given(graphs(steps=25))
def test_compiled_is_interpreted_long(outputs: list[Node]) -> None:
    check_compiled(outputs)


@pytest.mark.slow
@settings(LONG, max_examples=1000)
@given(graphs(steps=10), st.booleans())
def test_derivatives_compiled_are_interpreted_long(outputs: list[Node], forward: bool) -> None:
    check_derivatives(outputs, forward)


@pytest.mark.slow
@settings(LONG, max_examples=1000)
@given(graphs(steps=16, smooth=True))
def test_smooth_graphs_in_both_modes_long(outputs: list[Node]) -> None:
    check_smooth(outputs)


@pytest.mark.slow
@settings(LONG, max_examples=500)
@given(graphs(steps=8, extents=(1, 3, 200, 700, 20_000)))
def test_large_arrays_long(outputs: list[Node]) -> None:
    check_compiled(outputs)


# ----- Views -----


def read_view(view: View, buffer: np.ndarray) -> np.ndarray:
    """What a view says, element by element, from its definition."""
    out = np.zeros(view.shape, buffer.dtype)
    for index in np.ndindex(*view.shape):
        if all(span is None or span[0] <= i < span[1] for i, span in zip(index, view.valid, strict=True)):
            out[index] = buffer[view.offset + sum(i * s for i, s in zip(index, view.strides, strict=True))]
    return out


@settings(QUICK, max_examples=400)
@given(st.data())
def test_views_read_what_numpy_indexes(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), max_size=3)))
    want = np.arange(1, math.prod(shape) + 1).reshape(shape)
    buffer = want.ravel()
    view: View | None = View.contiguous(shape)
    done: list[str] = [str(shape)]
    for _ in range(data.draw(st.integers(1, 6))):
        kind = data.draw(st.sampled_from(["reshape", "transpose", "broadcast", "slice", "pad", "squeeze"]))
        if kind == "transpose":
            axes = data.draw(st.permutations(range(want.ndim)))
            view, want = view.transpose(axes), want.transpose(axes)
            done.append(f"transpose {axes}")
        elif kind == "broadcast":
            front = [2] if want.ndim < 4 and data.draw(st.booleans()) else []
            target = (*front, *[data.draw(st.integers(1, 3)) if n == 1 else n for n in want.shape])
            view, want = view.broadcast(target), np.broadcast_to(want, target)
            done.append(f"broadcast {target}")
        elif kind == "slice":
            ranges, key = [], []
            for n in want.shape:
                step = data.draw(st.sampled_from([1, 2, 3, -1, -2]))
                start = data.draw(st.integers(0, n - 1))
                room = (n - 1 - start) // step + 1 if step > 0 else start // -step + 1
                length = data.draw(st.integers(1, room))
                stop = start + length * step
                ranges.append((start, length, step))
                key.append(slice(start, stop if stop >= 0 else None, step))
            view, want = view.slice(ranges), want[tuple(key)]
            done.append(f"slice {ranges}")
        elif kind == "pad":
            widths = [(data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))) for _ in want.shape]
            view, want = view.pad(widths), np.pad(want, widths) if widths else want
            done.append(f"pad {widths}")
        elif kind == "reshape":
            target = tuple(data.draw(st.permutations(want.shape)))
            if data.draw(st.booleans()) and len(target) > 1:
                target = (target[0] * target[1], *target[2:])
            if data.draw(st.booleans()):
                target = (*target, 1)
            changed = view.reshape(target)
            if changed is None:
                continue
            view, want = changed, want.reshape(target)
            done.append(f"reshape {target}")
        else:
            changed = view.squeeze()
            if changed is None:
                assert not want.any(), done
                return
            view, want = changed, want.squeeze()
            done.append("squeeze")
        if want.size > 500:
            return
        assert view.shape == want.shape, done
        np.testing.assert_array_equal(read_view(view, buffer), want, err_msg=str(done))
        if view.is_contiguous:
            np.testing.assert_array_equal(want.ravel(), buffer[: want.size], err_msg=str(done))
