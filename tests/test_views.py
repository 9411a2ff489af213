"""Views: strides, offsets and valid ranges say the same as NumPy's indexing, and never copy where they need not."""

from __future__ import annotations

import numpy as np
import pytest

from nbgrad.compiler.views import View
from nbgrad.graph.shapes import contiguous_strides


def read(view: View, buffer: np.ndarray) -> np.ndarray:
    """What a view says, element by element, from its definition."""
    out = np.zeros(view.shape, buffer.dtype)
    for index in np.ndindex(*view.shape):
        if all(span is None or span[0] <= i < span[1] for i, span in zip(index, view.valid, strict=True)):
            out[index] = buffer[view.offset + sum(i * s for i, s in zip(index, view.strides, strict=True))]
    return out


A = np.arange(1, 25).reshape(4, 6)
WHOLE = View.contiguous((4, 6))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 0, 3), (1, 4, 1)])
def test_contiguous(shape: tuple[int, ...]) -> None:
    array = np.zeros(shape)
    view = View.contiguous(shape)
    assert view.is_contiguous and not view.is_masked
    assert contiguous_strides(shape) == view.strides
    if array.size:
        assert [s * 8 for s, n in zip(view.strides, shape, strict=True) if n > 1] == [
            s for s, n in zip(array.strides, shape, strict=True) if n > 1
        ]


@pytest.mark.parametrize(
    ("ranges", "key"),
    [
        ([(1, 2, 1), (0, 3, 2)], np.s_[1:3, ::2]),
        ([(3, 4, -1), (5, 3, -2)], np.s_[::-1, ::-2]),
        ([(2, 1, 1), (0, 6, 1)], np.s_[2:3]),
        ([(0, 0, 1), (0, 6, 1)], np.s_[:0]),
    ],
)
def test_slices(ranges: list[tuple[int, int, int]], key: tuple[slice, ...]) -> None:
    np.testing.assert_array_equal(read(WHOLE.slice(ranges), A.ravel()), A[key])


@pytest.mark.parametrize("start", range(8))
@pytest.mark.parametrize("step", [1, 2, 3, -1, -2, -3])
def test_slices_of_padding(start: int, step: int) -> None:
    """Every start and step, with the padding before, behind and around the slice."""
    padded = View.contiguous((3,)).pad([(2, 3)])
    values = np.pad(np.arange(1, 4), (2, 3))
    room = (7 - start) // step + 1 if step > 0 else start // -step + 1
    for length in range(1, room + 1):
        stop = start + length * step
        want = values[start : stop if stop >= 0 else None : step]
        got = padded.slice([(start, length, step)])
        np.testing.assert_array_equal(read(got, np.arange(1, 4)), want, err_msg=f"{start} {length} {step}")


def test_padding_of_slices_of_padding() -> None:
    view = WHOLE.pad([(1, 0), (0, 2)]).slice([(0, 3, 2), (7, 4, -2)]).pad([(0, 1), (1, 0)])
    want = np.pad(np.pad(A, [(1, 0), (0, 2)])[0:5:2, 7:0:-2], [(0, 1), (1, 0)])
    np.testing.assert_array_equal(read(view, A.ravel()), want)


def test_broadcast_of_padding() -> None:
    inside = View.contiguous((3,)).pad([(1, 1)]).slice([(1, 1, 1)]).broadcast((4,))
    np.testing.assert_array_equal(read(inside, np.array([7, 8, 9])), [7] * 4)
    outside = View.contiguous((3,)).pad([(1, 1)]).slice([(0, 1, 1)]).broadcast((2, 4))
    np.testing.assert_array_equal(read(outside, np.array([7, 8, 9])), np.zeros((2, 4)))
    assert View.contiguous((3,)).pad([(1, 1)]).slice([(0, 1, 1)]).squeeze() is None


@pytest.mark.parametrize(
    ("view", "array", "shape", "possible"),
    [
        (WHOLE, A, (2, 2, 6), True),
        (WHOLE, A, (24,), True),
        (WHOLE, A, (4, 1, 3, 2, 1), True),
        (WHOLE.transpose([1, 0]), A.T, (6, 2, 2), True),
        (WHOLE.transpose([1, 0]), A.T, (24,), False),
        (WHOLE.slice([(0, 4, 1), (0, 3, 1)]), A[:, :3], (2, 2, 3), True),
        (WHOLE.slice([(0, 4, 1), (0, 3, 1)]), A[:, :3], (12,), False),
        (WHOLE.slice([(3, 4, -1), (5, 6, -1)]), A[::-1, ::-1], (24,), True),
        (WHOLE.slice([(0, 2, 2), (0, 6, 1)]), A[::2], (2, 3, 2), True),
        (WHOLE.pad([(1, 0), (0, 0)]), np.pad(A, [(1, 0), (0, 0)]), (5, 2, 3), True),
        (WHOLE.pad([(1, 0), (0, 0)]), np.pad(A, [(1, 0), (0, 0)]), (30,), False),
        (WHOLE.pad([(1, 0), (0, 0)]), np.pad(A, [(1, 0), (0, 0)]), (5, 1, 6), True),
        (View.contiguous((6,)).broadcast((4, 6)), np.broadcast_to(A[0], (4, 6)), (2, 2, 6), True),
        (View.contiguous((6,)).broadcast((4, 6)), np.broadcast_to(A[0], (4, 6)), (24,), False),
        (View.contiguous(()).broadcast((4, 6)), np.broadcast_to(A[0, 0], (4, 6)), (3, 8), True),
    ],
)
def test_reshape(view: View, array: np.ndarray, shape: tuple[int, ...], possible: bool) -> None:
    changed = view.reshape(shape)
    assert (changed is not None) == possible
    if changed is not None:
        np.testing.assert_array_equal(read(changed, A.ravel()), array.reshape(shape))
