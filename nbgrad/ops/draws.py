"""Draws as nodes, of which the functions of random_tensors.py and choices.py are made.

In: a source (a `Generator`, or a seed on which the draw shall depend alone), shapes, dtypes. Out: nodes. Every element
has random bits of its own, so the start of a longer draw is the shorter one. Nothing here is public.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..graph import builders
from ..graph.builders import cast
from ..graph.ir import INT64, Node, broadcast, constant, elementwise
from ..graph.shapes import Shape
from ..record.axes_and_dtypes import FLOAT16, FLOAT32, Dtype
from ..record.numbers import FLOAT64
from ..tensors.generator import UINT64, Generator, checked_seed, default_generator, random_bits

INT32 = np.dtype(np.int32)
DIGITS = {FLOAT16: 11, FLOAT32: 24, FLOAT64: 53}
"""Bits of a float's significand: a uniform number has all of them, and is never rounded to 1."""

Source = Generator | int


# ----- Arguments -----


def source_of(seed: Any, generator: Any) -> Source:
    """The source of a draw."""
    if seed is not None and generator is not None:
        message = "Give either seed= or generator=, not both: a generator has its own seed."
        raise ArgumentError(message)
    if generator is not None and not isinstance(generator, Generator):
        message = f"generator must be an nbgrad Generator, but got {type(generator).__name__}."
        raise DtypeError(message)
    if seed is not None:
        return checked_seed(seed)
    return default_generator() if generator is None else generator


def probability_of(p: Any, name: str) -> float:
    """A number between 0 and 1."""
    if isinstance(p, bool) or not isinstance(p, int | float | np.integer | np.floating):
        message = f"{name} must be a number, but got {p!r} of type {type(p).__name__}."
        raise DtypeError(message)
    if not 0 <= p <= 1:
        message = f"{name} must be between 0 and 1, but got {p}."
        raise ArgumentError(message)
    return float(p)


# ----- Draws -----


def draw_bits(source: Source, shape: Shape, words: int = 1) -> list[Node]:
    """`words` arrays of random 64-bit integers."""
    if isinstance(source, Generator):
        return source.draw(shape, words)
    key, start = (constant(np.array(number, UINT64)) for number in (source, 0))
    return random_bits(key, start, shape, words)


def fraction(bits: Node, dtype: Dtype, inside: bool = False) -> Node:
    """The leading bits as a number in [0, 1), or in (0, 1) if `inside`."""
    digits = DIGITS[dtype]
    whole = elementwise("right_shift", bits, 64 - digits)
    whole = elementwise("bitwise_or", whole, 1) if inside else whole
    return cast(cast(whole, INT64 if digits > 31 else INT32), dtype) * 2.0**-digits


def uniform_node(source: Source, shape: Shape, dtype: Dtype) -> Node:
    """Uniform numbers in [0, 1)."""
    return fraction(draw_bits(source, shape)[0], dtype)


def exponential(bits: Node, dtype: Dtype) -> Node:
    """Exponentially distributed numbers with mean 1, in float32 or float64; none is 0 or infinite."""
    return -elementwise("log", fraction(bits, dtype, inside=True))


def normal_node(source: Source, shape: Shape, dtype: Dtype) -> Node:
    """Standard normal numbers (Box and Muller 1958), each from bits of its own: two words of them for float64.

    The largest are 8.6 for float64 and 6.7 for float32, which one in 2**53 and one in 2**32 reaches.
    """
    if dtype == FLOAT16:
        return cast(normal_node(source, shape, FLOAT32), dtype)
    if dtype == FLOAT32:
        (bits,) = draw_bits(source, shape)
        high = cast(cast(elementwise("right_shift", bits, 32), np.dtype(np.uint32)), dtype)
        radius, angle = (high + 1.0) * 2.0**-32, fraction(elementwise("left_shift", bits, 32), dtype)
    else:
        first, second = draw_bits(source, shape, 2)
        radius, angle = fraction(first, dtype, inside=True), fraction(second, dtype)
    return elementwise("sqrt", -2.0 * elementwise("log", radius)) * elementwise("cos", 2 * math.pi * angle)


def integer_node(source: Source, shape: Shape, low: int, high: int, dtype: Dtype) -> Node:
    """Integers from low to high - 1; one is at most 1 + (high - low) / 2**64 times as likely as another."""
    (bits,) = draw_bits(source, shape)
    if high - low < 2**64:
        bits = elementwise("remainder", bits, broadcast(constant(np.array(high - low, UINT64)), shape))
    # Unsigned numbers wrap round, which is what adding a negative start needs.
    return cast(cast(bits + constant(np.array(low % 2**64, UINT64)), INT64), dtype)


def permutation_node(source: Source, n: int) -> Node:
    """The numbers below n in random order. For one key, bits are a permutation of counters, so there are no ties."""
    return builders.argsort(draw_bits(source, (n,))[0])


def happens(source: Source, shape: Shape, probability: Node) -> Node:
    """True with a probability in float32 or float64, which lies between 0 and 1 and broadcasts to the shape."""
    return elementwise("less", uniform_node(source, shape, probability.dtype), broadcast(probability, shape))
