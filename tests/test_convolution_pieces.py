"""Convolutions in pieces: any cut, any order of pieces and any width of vectors give the right sums."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler import convolution_plan, cpu
from nbgrad.compiler.register_tiles import Registers, registers
from nbgrad.compiler.special import special_function
from nbgrad.graph.ir import make, placeholder

from .image_windows import CONVOLUTIONS, convolved, convolved_back, convolved_pairs

SAME = ((3, 3), (1, 1), (1, 1), (1, 1))
CASES = [
    *CONVOLUTIONS,
    ((5, 7, 12, 9), (11, 7, 3, 3), (*SAME, (12, 9)), 1),
    ((3, 4, 11, 6), (4, 1, 3, 3), (*SAME, (11, 6)), 4),
    ((2, 3, 20, 30), (5, 3, 7, 7), ((7, 7), (2, 2), (1, 1), (3, 3), (10, 15)), 1),
    ((2, 2, 9, 10), (3, 2, 2, 3), ((2, 3), (1, 1), (3, 4), (7, 1), (21, 4)), 1),
]
"""Shapes of images and of filters, windows, and the number of groups."""
KINDS = {"convolve": (0, 1, 2), "convolve_transposed": (2, 1, 0), "convolve_filters": (0, 2, 1)}
"""Which of images, filters and outputs are the operands and the result of each primitive."""
CUTS = {
    "whole": {},
    "small pieces": {"PIECE_BYTES": 2048, "LENGTH_BYTES": 512},
    "short sums": {"LONGEST_SUM": 20, "MOST_OUTPUTS": 5},
    "many pieces": {"FEWEST_PIECES": 1000, "PIECE_BYTES": 16384},
}


def reference(name: str, arrays: list[np.ndarray], windows: Any, groups: int, shape: Any) -> np.ndarray:
    a, b = [array.astype(float) for array in arrays]
    if name == "convolve":
        return convolved(a, b, windows, groups)
    return (convolved_back if name == "convolve_transposed" else convolved_pairs)(a, b, windows, groups, shape)


def by_pieces(name: str, arrays: list[np.ndarray], params: Any) -> np.ndarray:
    """The pieces one by one, the last first, with scratch memory and a result that were not numbers before."""

    class Kernel:
        node = make(name, tuple([placeholder(a.shape, a.dtype) for a in arrays]), params)

    cut = convolution_plan.cut(Kernel.node)
    code = cpu.function_code(special_function(Kernel))  # pyright: ignore
    out = np.full(Kernel.node.shape, np.nan, Kernel.node.dtype)
    work = np.full(cut.workspace + 16, np.nan, out.dtype)
    work = work[(-work.ctypes.data % 64) // work.itemsize :][: cut.workspace]
    pointers = np.array([a.ctypes.data for a in (*arrays, work, out)])
    sizes = np.array(cut.sizes)
    kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)(code.address)
    for piece in reversed(range(cut.pieces)):
        kernel(pointers.ctypes.data, sizes.ctypes.data, piece, piece + 1)
    return out


def check(name: str, case: Any, dtype: str) -> None:
    x, w, windows, groups = case
    shapes = x, w, (x[0], w[0], *windows[4])
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(shapes[k]).astype(dtype) for k in KINDS[name][:2]]
    got = by_pieces(name, arrays, (*windows, x[2:], groups))
    want = reference(name, arrays, windows, groups, shapes[KINDS[name][2]])
    scale = np.abs(want).max() + 1
    np.testing.assert_allclose(got, want, rtol=0, atol=scale * (1e-13 if dtype == "float64" else 4e-6))


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", KINDS)
def test_any_cut_gives_the_sums(name: str, cut: str, case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_plan, "_cut", convolution_plan._cut.__wrapped__)
    for constant, value in CUTS[cut].items():
        monkeypatch.setattr(convolution_plan, constant, value)
    check(name, case, "float64")


TILES = {
    "+sse2": Registers(4, 3, 4),
    "+avx,+avx2,+fma": Registers(4, 3, 8),
    "+avx,+avx2,+avx512f": Registers(8, 3, 16),
    "+neon": Registers(8, 3, 4),
}


@pytest.mark.parametrize("features", TILES)
@pytest.mark.parametrize("name", KINDS)
def test_vectors_of_any_width_give_the_sums(name: str, features: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tile = registers("float32", features)
    assert tile == TILES[features]
    monkeypatch.setattr(convolution_plan, "registers", lambda dtype, features: tile)
    for case in CASES:
        check(name, case, "float32")


def test_any_number_of_threads_gives_the_same_bits() -> None:
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=(9, 8, 20, 14)).astype(np.float32), rng.normal(size=(16, 8, 3, 3)).astype(np.float32)
    step = nb.jit(nb.grad(lambda x, w: nb.ops.conv2d(x, w, pad_mode="same") ** 2, (0, 1)))
    threads = nb.get_num_threads()
    results = []
    for count in (1, 2, 5):
        nb.set_num_threads(count)
        results.append(step(x, w))
    nb.set_num_threads(threads)
    for one in results[1:]:
        np.testing.assert_array_equal(one[0], results[0][0])
        np.testing.assert_array_equal(one[1], results[0][1])


def test_long_sums_of_float32_are_made_of_short_ones() -> None:
    """The cotangent of a filter adds up all pixels: a running sum of 400 000 would be off by 1e-4 and more."""
    rng = np.random.default_rng(6)
    x, y = rng.random((2, 1, 450, 450), np.float32), rng.random((2, 1, 450, 450), np.float32)
    got = by_pieces("convolve_filters", [x, y], (*SAME, (450, 450), (450, 450), 1))
    assert abs(got[0, 0, 1, 1] / np.vdot(x.astype(float), y.astype(float)) - 1) < 2e-6


def test_what_lies_between_the_rows_does_not_count() -> None:
    """Pixels that are not numbers reach only the windows that have them."""
    x = np.ones((2, 1, 4, 5))
    x[0, 0, 1, 4] = np.nan
    got = np.isnan(nb.ops.conv2d(nb.Tensor(x), nb.Tensor(np.ones((1, 1, 3, 3))), pad_mode="same").asnumpy())
    want = np.zeros((2, 1, 4, 5), bool)
    want[0, 0, 0:3, 3:5] = True
    np.testing.assert_array_equal(got, want)
