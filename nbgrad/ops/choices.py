"""Random choices with MindSpore's names: bernoulli, multinomial, gumbel_softmax.

In: probabilities or weights. Out: Tensors of zeros and ones, of positions, or of soft choices that differentiate.
Called by users. Seeds and generators are as in random_tensors.py.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, ShapeError
from ..functions.arrays.cumulative import accumulate_ufunc
from ..functions.arrays.reductions import extremum_position
from ..functions.arrays.shaping import common_shape
from ..functions.elementwise.special_functions import softmax
from ..graph import builders
from ..graph.builders import cast, gather, iota, reduce, reshape
from ..graph.formulas import both, choose
from ..graph.ir import INT64, Node, broadcast, elementwise, extent, make
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import FLOAT16, FLOAT32, axis_of, cut, demand, filled, inexact, integer, positions, scalar
from ..record.numbers import FLOAT64
from ..record.tensor import Tensor
from ..tensors.generator import Generator
from .declarations import spelled
from .docstrings import documented
from .draws import INT32, Source, draw_bits, exponential, happens, probability_of, source_of, uniform_node

# ----- On nodes -----


def _with_replacement(source: Source, weights: Node, count: int) -> Node:
    """Per row of weights, `count` positions: the inverse of the distribution function, by bisection."""
    rows, n = weights.shape
    sums = accumulate_ufunc("add", weights, 1)
    total = cut(sums, 1, n - 1, 1)
    aim = uniform_node(source, (rows, count), weights.dtype) * total
    start = reshape(iota(rows) * extent(n, INT64), (rows, 1))
    flat = reshape(sums, (rows * n,))
    found = broadcast(filled((1, 1), 0, INT64), (rows, count))
    step = 1 << (n.bit_length() - 1)
    while step:
        probe = found + (step - 1)
        inside = elementwise("less", probe, n)
        sum_there = gather(flat, elementwise("minimum", probe, n - 1) + start)
        # The last test passes over weights of 0 at the end, should rounding make the aim the total.
        beyond = both(elementwise("less_equal", sum_there, aim), elementwise("less", sum_there, total))
        found = choose(both(inside, beyond), found + step, found, found)
        step >>= 1
    return found


def _without_replacement(source: Source, weights: Node, count: int) -> Node:
    """Per row of weights, the first of n clocks to ring, each after an exponential time divided by its weight."""
    (bits,) = draw_bits(source, weights.shape)
    order = builders.argsort(exponential(bits, weights.dtype) / weights)
    return cut(order, 1, 0, count)


# ----- Functions -----


@spelled
def bernoulli(input: Any, p: Any = 0.5, seed: int | None = None, *, generator: Generator | None = None) -> Tensor:
    """Ones with probability p, else zeros, in the shape and dtype of an array.

    input : array-like
        Only its shape and dtype count.
    p : number or array-like
        Broadcasts to the shape.
    ArgumentError, RangeError, ShapeError : If p is not between 0 and 1, or does not broadcast.

    >>> nb.ops.bernoulli(nb.Tensor([5.0, 6.0]), nb.Tensor([1.0, 0.0])).tolist()
    [1.0, 0.0]
    """
    node = as_node(input)
    if isinstance(p, int | float):
        chance = scalar(probability_of(p, "p"), FLOAT32)
    else:
        chance = inexact(as_node(p))
        chance = cast(chance, FLOAT32) if chance.dtype == FLOAT16 else chance
        valid = both(elementwise("greater_equal", chance, 0.0), elementwise("less_equal", chance, 1.0))
        demand(valid, "bernoulli needs probabilities between 0 and 1, but p has others.")
        if common_shape([chance.shape, node.shape]) != node.shape:
            message = f"p has shape {chance.shape}, which does not broadcast to the input's shape {node.shape}."
            raise ShapeError(message)
    return wrap(cast(happens(source_of(seed, generator), node.shape, chance), node.dtype))


@documented
def multinomial(
    input: Any,
    num_samples: int,
    replacement: bool = True,
    seed: int | None = None,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Positions drawn in proportion to weights.

    input : array-like, shape (n,) or (rows, n)
        Weights, not negative and not all 0; they need not add up to 1.
    replacement : bool
        Whether a position may be drawn more than once.
    -> Tensor of int32, shape (num_samples,) or (rows, num_samples)
    ArgumentError, RangeError, ShapeError : For weights that are negative or not finite, and if fewer positions than
        `num_samples` have a weight without `replacement`.

    >>> nb.ops.multinomial(nb.Tensor([0.0, 2.0, 0.0]), 3, seed=1).tolist()
    [1, 1, 1]
    """
    node = as_node(input)
    count = integer(num_samples, "num_samples")
    if node.ndim not in (1, 2) or node.shape[-1] == 0:
        message = f"multinomial needs weights of shape (n,) or (rows, n) with n > 0, but they have shape {node.shape}."
        raise ShapeError(message)
    if count < 1 or (not replacement and count > node.shape[-1]):
        message = (
            f"multinomial was asked for {count} samples {'with' if replacement else 'without'} replacement from "
            f"{node.shape[-1]} positions."
        )
        raise ArgumentError(message)
    rows = node.shape[0] if node.ndim == 2 else 1
    weights = cast(reshape(node, (rows, node.shape[-1])), FLOAT64)
    valid = both(elementwise("greater_equal", weights, 0.0), elementwise("isfinite", weights))
    demand(valid, "multinomial needs finite weights that are not negative.")
    positive = reduce("sum", cast(elementwise("greater", weights, 0.0), INT64), (1,))
    needed = 1 if replacement else count
    demand(
        elementwise("greater_equal", positive, needed),
        f"multinomial needs at least {needed} positions with a weight greater than 0 in each row.",
    )
    draw = _with_replacement if replacement else _without_replacement
    result = draw(source_of(seed, generator), weights, count)
    return wrap(reshape(cast(result, INT32), (*node.shape[:-1], count)))


@documented
def gumbel_softmax(
    logits: Any,
    tau: float = 1.0,
    hard: bool = False,
    dim: int = -1,
    seed: int | None = None,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """A random choice that differentiates in its logits (Jang, Gu and Poole 2017; Maddison, Mnih and Teh 2017).

    logits : array-like
        Logarithms of weights.
    tau : float
        The temperature: the smaller, the closer to a choice of one.
    hard : bool
        Whether to give the choice, 0 and 1, with the gradient of the soft one.
    dim : int
        The axis to choose along.
    ArgumentError, ShapeError : If the temperature is not greater than 0, or there is no such axis.

    >>> nb.ops.gumbel_softmax(nb.Tensor([[0.0, 100.0]]), hard=True, seed=1).tolist()
    [[0.0, 1.0]]
    """
    node = inexact(as_node(logits))
    at = axis_of(dim, node.ndim)
    if isinstance(tau, int | float) and not tau > 0:
        message = f"tau must be greater than 0, but got {tau}."
        raise ArgumentError(message)
    wide = FLOAT32 if node.dtype == FLOAT16 else node.dtype
    (bits,) = draw_bits(source_of(seed, generator), node.shape)
    noise = cast(-elementwise("log", exponential(bits, wide)), node.dtype)
    soft = softmax((wrap(node + noise)) / tau, at)._node
    if not hard:
        return wrap(soft)
    best = extremum_position(soft, at, True, "max")
    choice = cast(elementwise("equal", positions(soft.shape, at), best), soft.dtype)
    return wrap(make("stop_gradient", (choice - soft,)) + soft)
