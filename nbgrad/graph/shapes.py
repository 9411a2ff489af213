"""Shapes that broadcast, by NumPy's rules, and the strides that go with them.

In: shapes. Out: the shape that they broadcast to, or an error that names them; their strides in C order. Called by
ir.py, which makes no node that reads an array as a shape it cannot have, and wherever an argument must fit an array.
"""

from __future__ import annotations

from functools import lru_cache

from ..errors import BroadcastError

Shape = tuple[int, ...]
MEMO = 1 << 12
"""The number of answers about shapes and views that are remembered: the nodes of a graph share a few of them."""


def broadcasts(shape: Shape, to: Shape) -> bool:
    """Whether an array of a shape can be read as another shape, by NumPy's rules."""
    extra = len(to) - len(shape)
    if extra < 0:
        return False
    for n, m in zip(shape, to[extra:], strict=True):  # noqa: SIM110 (a loop takes half the time of `all`)
        if n != m and n != 1:
            return False
    return True


def ends_of_slice(start: int, length: int, step: int) -> tuple[int, int]:
    """The lowest and the highest position that a slice takes along an axis; it is not empty."""
    last = start + (length - 1) * step
    return min(start, last), max(start, last)


def joint_shape(a: Shape, b: Shape) -> Shape:
    """The shape that two shapes broadcast to, or BroadcastError; several times faster than NumPy's function."""
    if a == b or not b:
        return a
    if not a:
        return b
    if len(a) < len(b):
        a, b = b, a
    shape = list(a)
    for axis, extent in enumerate(b, len(a) - len(b)):
        if shape[axis] != extent:
            if shape[axis] == 1:
                shape[axis] = extent
            elif extent != 1:
                message = f"The shapes {a} and {b} do not broadcast together."
                raise BroadcastError(message)
    return tuple(shape)


@lru_cache(MEMO)
def without_ones(shape: Shape) -> Shape:
    """A shape without its axes of length 1."""
    return tuple([n for n in shape if n != 1])


@lru_cache(MEMO)
def contiguous_strides(shape: Shape) -> tuple[int, ...]:
    """Strides in elements of an array in C order."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
