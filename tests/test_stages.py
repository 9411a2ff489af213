"""Stages: kernels that go through their rows together give what they give one after the other, in less memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler.fuse import fuse
from nbgrad.compiler.loops import Loop
from nbgrad.graph.builders import reduce, reshape, transpose
from nbgrad.graph.differentiate import vjp
from nbgrad.graph.ir import Node, broadcast, elementwise, placeholder
from nbgrad.graph.simplify import simplify
from nbgrad.runtime import row_groups
from nbgrad.runtime.cpu_plan import combining_loops, plan
from nbgrad.runtime.stages import BLOCK_BYTES, make_stages

RNG = np.random.default_rng(5)
ROWS, COLUMNS = 700, 130
X = RNG.normal(size=(ROWS, COLUMNS))
Y = RNG.normal(size=(ROWS, COLUMNS))
W = RNG.normal(size=COLUMNS)


def reduce_kept(name: str, node: Node, axes: tuple[int, ...]) -> Node:
    """Reduced over axes and read in the node's shape."""
    kept = tuple([1 if axis in axes else n for axis, n in enumerate(node.shape)])
    return broadcast(reshape(reduce(name, node, axes), kept), node.shape)


def softmax(x: Any) -> Any:
    """Along the last axis, in its usual stable form."""
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def standardised(x: Any) -> Any:
    """Layer normalisation without weights."""
    centred = x - np.mean(x, axis=1, keepdims=True)
    return centred / np.sqrt(np.mean(centred**2, axis=1, keepdims=True) + 1e-5)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "softmax": lambda x, y, w: softmax(x) * y,
    "twice softmax": lambda x, y, w: softmax(softmax(x) * y),
    "layer norm": lambda x, y, w: standardised(x) * w + y,
    "columns after rows": lambda x, y, w: np.sum(softmax(x) * y, axis=0),
    "columns used by rows": lambda x, y, w: softmax(x) - np.sum(softmax(y), axis=0) / ROWS,
    "rows of flat": lambda x, y, w: np.sum(np.sin(x) * y, axis=1) * np.sum(x, axis=1),
    "shifted rows": lambda x, y, w: softmax(x)[1:] - softmax(x)[:-1],
    "reversed rows": lambda x, y, w: softmax(x)[::-1] * y,
    "reversed columns": lambda x, y, w: standardised(softmax(x)[:, ::-1]),
    "padded rows": lambda x, y, w: np.sum(np.pad(softmax(x), ((1, 0), (0, 0))), axis=1),
    "two halves": lambda x, y, w: np.concatenate([softmax(x), standardised(y)], axis=1) * 2.0,
    "gathered rows": lambda x, y, w: softmax(x)[np.arange(ROWS) // 2] * y,
    "picked": lambda x, y, w: standardised(x)[np.arange(ROWS), np.arange(ROWS) % COLUMNS],
    "running": lambda x, y, w: np.cumsum(softmax(x), axis=1) * y,
    "folded": lambda x, y, w: np.sum(softmax(x).reshape(ROWS // 2, 2, COLUMNS), axis=1),
    "transposed": lambda x, y, w: softmax(x).T * W[:, None],
    "product": lambda x, y, w: softmax(x) @ w + np.sum(x, axis=1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("threads", [1, 2])
def test_values_agree_with_numpy(name: str, threads: int) -> None:
    function = FUNCTIONS[name]
    before = nb.get_num_threads()
    nb.set_num_threads(threads)
    try:
        result = nb.jit(function)(X, Y, W)
    finally:
        nb.set_num_threads(before)
    np.testing.assert_allclose(result, function(X, Y, W), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_the_same_for_any_number_of_threads(name: str) -> None:
    gradient = nb.jit(nb.grad(lambda x, y, w: np.sum(np.sin(FUNCTIONS[name](x, y, w))), (0, 1, 2)))
    before = nb.get_num_threads()
    results = []
    for threads in (1, 2):
        nb.set_num_threads(threads)
        results.append([np.array(g) for g in gradient(X, Y, W)])
    nb.set_num_threads(before)
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_gradient_of_softmax_is_its_formula() -> None:
    p = softmax(X)
    expected = p * (Y - np.sum(p * Y, axis=1, keepdims=True))
    np.testing.assert_allclose(nb.jit(nb.grad(lambda x: np.sum(softmax(x) * Y)))(X), expected, rtol=1e-11, atol=1e-14)


def normed(rows: int, columns: int) -> Node:
    """A graph of three kernels over the same rows."""
    x = placeholder((rows, columns), np.dtype(float), np.ones((rows, columns)))
    powers = elementwise("exp", x - reduce_kept("max", x, (1,)))
    return powers / reduce_kept("sum", powers, (1,))


def test_rows_go_through_all_kernels_together() -> None:
    fused = fuse(simplify([normed(1000, 300)]))
    (stage,) = make_stages(fused.steps)
    assert stage.block * 300 * 8 <= BLOCK_BYTES


def test_a_stage_needs_memory_for_a_block_only() -> None:
    fused = fuse(simplify([normed(4000, 300)]))
    leaves = [n for k in fused.steps if isinstance(k, Loop) for n in k.buffers if n.name == "input"]
    planned = plan(fused, list(dict.fromkeys(leaves)), [], slots=2)
    assert planned.arena_bytes < 4000 * 300 * 8 / 10


def test_small_programs_are_left_alone() -> None:
    found = make_stages(fuse(simplify([normed(10, 30)])).steps)
    assert all(stage.rows == 0 for stage in found)


def test_a_sum_over_rows_ends_a_stage_for_those_that_read_it() -> None:
    x = placeholder((2000, 300), np.dtype(float), np.ones((2000, 300)))
    total = reduce_kept("sum", elementwise("sin", x), (0,))
    (output,) = simplify([reduce("sum", x * total, (1,))])
    assert len(make_stages(fuse([output]).steps)) == 2


@pytest.mark.parametrize("shape", [(), (1,), (20,), (3, 40), (1, 70)])
@pytest.mark.parametrize("kind", ["sum", "max"])
def test_the_code_that_a_longer_array_needs_is_known_before(shape: tuple[int, ...], kind: str) -> None:
    def steps(length: int) -> list[Any]:
        x = placeholder((length, *shape), np.dtype(np.float32))
        (total,) = simplify([reduce(kind, elementwise("sin", x), (0,))])
        return plan(fuse([total]), [x], []).steps

    short, *rest = steps(2)
    combining = [step.kernel.identity for step in steps(200_000)[1:]]
    assert not rest and combining == [loop.identity for loop in combining_loops(short.kernel)]


def test_a_kernel_overwrites_what_it_reads_for_the_last_time() -> None:
    x = placeholder((64, 64), np.dtype(float), np.ones((64, 64)))
    y = x
    for _ in range(6):
        # A transposed read ends a kernel; what follows reads the stored array element by element.
        y = elementwise("exp", elementwise("add", transpose(y, (1, 0)), x))
        y = elementwise("sin", y) * reduce_kept("sum", y, (0, 1))
    fused = fuse(simplify([y]))
    leaves = [n for k in fused.steps if isinstance(k, Loop) for n in k.buffers if n.name == "input"]
    planned = plan(fused, list(dict.fromkeys(leaves)), [])
    assert planned.arena_bytes < 2.5 * 64 * 64 * 8


def test_what_another_result_of_the_kernel_needs_is_not_overwritten() -> None:
    # A linear recursion written into an array: y[n] = p s[n] - y[n - 1] / 2. Masks of its gradient were overwritten.
    s = np.array([1.0, 2.0, 4.0, 8.0])

    def function(p: Any) -> Any:
        y = nb.numpy.zeros(4)
        y[0] = p[0] * s[0]
        for n in range(1, 4):
            y[n] = p[0] * s[n]
            y[n] += s[n - 1] * p[1] - 0.5 * y[n - 1]
        return y @ y

    weights = np.array([[1.0, 0.0], [1.5, 1.0], [3.25, 1.5], [6.375, 3.25]])  # y is linear in p
    p = np.array([0.4, 0.3])
    np.testing.assert_allclose(nb.grad(function)(p), 2 * weights.T @ (weights @ p), rtol=1e-14)


def test_what_is_read_again_is_not_overwritten() -> None:
    # The sum and the product need the same elements: the array that is written must not take their place.
    def function(x: Any) -> Any:
        y = np.exp(x.T)
        z = y / np.sum(y)
        return z * np.sum(z * z) + np.sum(z * y)

    x = RNG.normal(size=(40, 40))
    np.testing.assert_allclose(nb.jit(function)(x), function(x), rtol=1e-12)


def test_each_access_of_a_long_chain_is_looked_at_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage grows by dozens of kernels, and only the new one is compared with it."""
    looked: list[Any] = []
    span = row_groups.row_span
    monkeypatch.setattr(row_groups, "row_span", lambda *given: looked.append(given) or span(*given))

    x = placeholder((1000,), np.dtype(float))
    y = x
    for _ in range(400):
        y = elementwise("sin", y) * x + y / 1.5
    (slope,) = vjp([y], [y], [x])
    assert slope is not None
    graph = [y, slope]
    kernels = [step for step in fuse(simplify(graph)).steps if isinstance(step, Loop)]
    accesses = sum(len(kernel.accesses) for kernel in kernels)
    assert len(kernels) > 8
    found = make_stages(kernels)
    assert [kernel for stage in found for kernel in stage.kernels] == kernels
    assert len(found) < len(kernels)
    assert len(looked) <= 2 * accesses
