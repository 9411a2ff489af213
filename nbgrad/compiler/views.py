"""Views: how the index of a loop becomes a position in a buffer.

In: a contiguous buffer and movement operations. Out: strides, an offset and, after padding, the range of each axis that
really reads the buffer (the rest reads zero). Called by fuse.py, which turns every movement operation into a view, so
that none of them copies. A reshape that strides cannot express returns None, and the caller stores the array first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ..graph.ir import Node
from ..graph.shapes import MEMO, Shape, contiguous_strides, without_ones

Range = tuple[int, int]


class View(NamedTuple):
    """Reads `buffer[offset + sum(index * strides)]` where every index lies in its `valid` range, and zero elsewhere."""

    shape: Shape
    strides: tuple[int, ...]
    offset: int
    valid: tuple[Range | None, ...]

    @staticmethod
    def contiguous(shape: Shape) -> View:
        """The whole of a buffer in C order."""
        return _contiguous(shape)

    @staticmethod
    def strided(shape: Shape, strides: tuple[int, ...], offset: int = 0) -> View:
        """Elements that lie in a buffer at some strides, without padding."""
        return View(shape, strides, offset, (None,) * len(shape))

    @property
    def is_contiguous(self) -> bool:
        """Whether the view is the buffer itself."""
        shape, strides, offset, valid = self
        if offset or any(valid):
            return False
        expected = contiguous_strides(shape)
        return strides == expected or all(n == 1 or s == e for n, s, e in zip(shape, strides, expected, strict=True))

    @property
    def is_masked(self) -> bool:
        """Whether part of the view reads zeros."""
        return any(self.valid)

    def transpose(self, axes: Sequence[int]) -> View:
        """Axes permuted."""
        return View(
            tuple([self.shape[a] for a in axes]),
            tuple([self.strides[a] for a in axes]),
            self.offset,
            tuple([self.valid[a] for a in axes]),
        )

    def broadcast(self, shape: Shape) -> View:
        """Stretched to a shape; new axes and stretched ones have stride 0."""
        extra = len(shape) - len(self.shape)
        strides: list[int] = [0] * extra
        valid: list[Range | None] = [None] * extra
        for old, new, stride, span in zip(self.shape, shape[extra:], self.strides, self.valid, strict=True):
            stretched = old == 1 and new != 1
            strides.append(0 if stretched else stride)
            if span is not None and stretched:
                span = None if span[0] <= 0 < span[1] else (0, 0)
            valid.append(span)
        return View(shape, tuple(strides), self.offset, tuple(valid))

    def slice(self, ranges: Sequence[tuple[int, int, int]]) -> View:
        """Per axis (start, length, step)."""
        offset = self.offset
        strides: list[int] = []
        valid: list[Range | None] = []
        for (start, length, step), stride, span in zip(ranges, self.strides, self.valid, strict=True):
            offset += start * stride
            strides.append(stride * step)
            if span is not None:
                low, high = span
                if step < 0:
                    # start + step * i lies in [low, high)
                    first = max(0, -(-(start - high + 1) // -step))
                    last = (start - low) // -step + 1 if start >= low else 0
                else:
                    first = max(0, -(-(low - start) // step))
                    last = -(-(high - start) // step) if high > start else 0
                first, last = min(first, length), min(max(last, first), length)
                span = None if (first, last) == (0, length) else (first, last)
            valid.append(span)
        return View(tuple([n for _, n, _ in ranges]), tuple(strides), offset, tuple(valid))

    def pad(self, widths: Sequence[Range]) -> View:
        """Zeros before and after each axis."""
        offset = self.offset
        shape: list[int] = []
        valid: list[Range | None] = []
        for (low, high), n, stride, span in zip(widths, self.shape, self.strides, self.valid, strict=True):
            offset -= low * stride
            shape.append(low + n + high)
            if span is not None:
                span = (span[0] + low, span[1] + low)
            elif low or high:
                span = (low, low + n)
            valid.append(span)
        return View(tuple(shape), self.strides, offset, tuple(valid))

    def reshape(self, shape: Shape) -> View | None:
        """In another shape, or None where strides cannot say it."""
        if self.is_contiguous:
            return View(shape, contiguous_strides(shape), self.offset, (None,) * len(shape))
        old = [(n, s, v) for n, s, v in zip(self.shape, self.strides, self.valid, strict=True) if n != 1 or v]
        strides: list[int] = []
        valid: list[Range | None] = []
        position = 0
        axis = 0
        while axis < len(shape):
            if shape[axis] == 1:
                strides.append(0)
                valid.append(None)
                axis += 1
                continue
            # Match the shortest runs of old and new axes that hold equally many elements.
            end, new_count = axis + 1, shape[axis]
            if position >= len(old):
                return None
            last, old_count = position + 1, old[position][0]
            while new_count != old_count:
                if new_count < old_count:
                    if end >= len(shape):
                        return None
                    new_count *= shape[end]
                    end += 1
                else:
                    if last >= len(old):
                        return None
                    old_count *= old[last][0]
                    last += 1
            run = old[position:last]
            masked = any(v for _, _, v in run)
            if masked and (len(run) > 1 or [n for n in shape[axis:end] if n != 1] != [run[0][0]]):
                return None
            if any(outer[1] != inner[1] * inner[0] for outer, inner in pairwise(run)):
                return None
            step = run[-1][1]
            tail: list[int] = []
            for n in reversed(shape[axis:end]):
                tail.append(step)
                step *= n
            strides.extend(reversed(tail))
            valid.extend(run[0][2] if masked and n != 1 else None for n in shape[axis:end])
            position, axis = last, end
        if position != len(old):
            return None
        return View(shape, tuple(strides), self.offset, tuple(valid))

    def squeeze(self) -> View | None:
        """Without axes of length 1; None if that one element lies in the padding, so that all of the view is zero."""
        keep: list[int] = []
        for axis, (n, span) in enumerate(zip(self.shape, self.valid, strict=True)):
            if n != 1:
                keep.append(axis)
            elif span is not None and not span[0] <= 0 < span[1]:
                return None
        return self if len(keep) == len(self.shape) else self.transpose(keep)


@lru_cache(MEMO)
def _contiguous(shape: Shape) -> View:
    return View(shape, contiguous_strides(shape), 0, (None,) * len(shape))


def view_through(node: Node, view: View) -> View | None:
    """The view of a movement node, given that of its input; None where it must be stored first."""
    name = node.primitive.name
    return _through(name, node.shape if name in ("reshape", "broadcast") else node.params[0], view)


@lru_cache(MEMO)
def _through(name: str, change: tuple, view: View) -> View | None:
    match name:
        case "reshape":
            return view.reshape(change)
        case "transpose":
            return view.transpose(change)
        case "broadcast":
            return view.broadcast(change)
        case "slice":
            return view.slice(change)
        case "pad":
            return view.pad(change)
        case _:
            raise AssertionError(name)


@lru_cache(MEMO)
def view_in_domain(view: View, domain: Shape) -> View | None:
    """A view as a loop over a domain without axes of length 1 reads it; None if all of it is zero."""
    squeezed = view.squeeze()
    return None if squeezed is None else squeezed.broadcast(domain)


@lru_cache(MEMO)
def whole_of(shape: Shape) -> View:
    """The whole of an array, as a loop without axes of length 1 writes it."""
    extents = without_ones(shape)
    return View(extents, contiguous_strides(extents), 0, (None,) * len(extents))


def matrix_layout(view: View) -> tuple[bool, int] | None:
    """(transposed, leading dimension) of a batch of matrices for BLAS, or None if neither axis is contiguous."""
    _, rows, columns = view.shape
    _, row, column = view.strides
    if (column == 1 or columns == 1) and row >= max(1, columns):
        return False, row
    if (row == 1 or rows == 1) and column >= max(1, rows):
        return True, column
    if rows == 1 and (column == 1 or columns == 1):
        return False, max(1, columns)
    if columns == 1 and (row == 1 or rows == 1):
        return True, max(1, rows)
    return None
