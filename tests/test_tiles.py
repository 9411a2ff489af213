"""Maps over transposed arrays and over pairs of elements: NumPy's results for tiles and for what is left over."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler import loops
from nbgrad.compiler.fuse import fuse
from nbgrad.graph.ir import placeholder
from nbgrad.graph.simplify import simplify
from nbgrad.record.tensor import Tensor

pytestmark = pytest.mark.unoptimized(but=4)

rng = np.random.default_rng(23)
SHAPES = [(8, 8), (16, 8), (7, 30), (9, 17), (40, 33), (70, 8), (3, 9, 10), (9, 3, 20), (12, 11, 10)]
MAPS = {
    "copy": lambda x, y: np.transpose(x) * 1,
    "two arrays across": lambda x, y: np.transpose(x) * np.transpose(y),
    "one across, one along": lambda x, y: np.transpose(x) + np.reshape(y, x.shape[::-1]),
    "one across, four along": lambda x, y: (
        np.transpose(x) * np.reshape(y, x.shape[::-1]) - np.reshape(x, x.shape[::-1]) * np.reshape(y + x, x.shape[::-1])
    ),
    "last two axes": lambda x, y: np.swapaxes(x, -1, -2) - np.swapaxes(y, -1, -2),
    "backwards": lambda x, y: np.flip(x) - np.transpose(np.flip(np.transpose(y), 0)),
    "quarter turn": lambda x, y: np.rot90(x) * 2,
    "side by side": lambda x, y: np.stack([np.transpose(x), np.transpose(y), np.transpose(x + y)], axis=-1),
    "every other": lambda x, y: x.ravel()[:-1:2] - y.ravel()[1::2][: (x.size - 1 + 1) // 2][: x.ravel()[:-1:2].size],
    "rows of the transpose": lambda x, y: np.transpose(x)[1:] + np.transpose(y)[:-1],
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", MAPS)
def test_maps(name, shape):
    x, y = (rng.integers(-50, 50, shape).astype(np.float64) for _ in "xy")
    if x.size % 2:
        x, y = x[:-1], y[:-1]
    np.testing.assert_array_equal(nb.jit(MAPS[name])(x, y), MAPS[name](x, y))


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "uint64", "float16", "bool", "complex128"])
def test_dtypes(dtype):
    x = rng.integers(0, 3, (19, 27)).astype(dtype)
    np.testing.assert_array_equal(nb.jit(lambda x: np.transpose(x).copy())(x), x.T)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arguments_in_fortran_order(order):
    x, y = (np.asarray(rng.normal(size=(21, 35)), order=order) for _ in "xy")
    value, (gx, gy) = nb.jit(nb.value_and_grad(lambda x, y: np.sum(x * x * y), (0, 1)))(x, y)
    np.testing.assert_allclose(value, np.sum(x * x * y))
    np.testing.assert_array_equal(gx, 2 * x * y)
    np.testing.assert_array_equal(gy, x * x)


COMPLEX = {
    "square": lambda z: z * z,
    "conjugate": np.conj,
    "modulus": lambda z: np.real(z) ** 2 + np.imag(z) ** 2,
    "reversed": lambda z: z[::-1] * 2,
    "transposed": lambda z: z.T * 1j,
    "rows": lambda z: z[::2] + z[1::2],
}


@pytest.mark.parametrize("name", COMPLEX)
def test_parts_of_complex_numbers(name):
    z = rng.integers(-9, 9, (14, 10)) + 1j * rng.integers(-9, 9, (14, 10))
    np.testing.assert_array_equal(nb.jit(COMPLEX[name])(z), COMPLEX[name](z))


SAYS_NOTHING = """
import numpy as np, nbgrad as nb
x = np.arange(384.0).reshape(3, 16, 8).T
print(np.array_equal(nb.jit(lambda x: np.ascontiguousarray(x, like=x) + np.abs(x))(x), 2 * x))
print(nb.jit(nb.grad(lambda a, b: np.sum(np.hypot(a, b))))(x, np.ascontiguousarray(x) + 1).shape)
"""


def test_llvm_says_nothing_of_rows_far_apart(tmp_path):
    environment = {**os.environ, "NBGRAD_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", SAYS_NOTHING]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout.split("\n")[0], done.stderr) == ("True", "")


def only_loop(function: Any, *shapes: tuple[int, ...]) -> loops.Loop:
    """The loop that a function becomes."""
    nodes = [placeholder(shape, np.dtype(float)) for shape in shapes]
    (loop,) = fuse(simplify([function(*[Tensor._of(node) for node in nodes])._node])).steps
    assert isinstance(loop, loops.Loop)
    return loop


def test_maps_of_few_instructions_are_turned():
    assert only_loop(lambda x: x.T * 2, (9, 10)).turned
    assert not only_loop(lambda x: x.T * 2, (9, 7)).turned
    assert only_loop(lambda x, y, z: x.T * y + z, (9, 10), (10, 9), (10, 9)).turned
    assert not only_loop(lambda x: np.exp(x.T), (9, 10)).turned
    assert not only_loop(lambda x, y: np.concatenate([x.T, y]) * 2, (9, 10), (10, 9)).turned
    assert not only_loop(lambda x: np.sum(x.T * x.T, axis=0), (9, 10)).turned


def test_the_map_writes_along_its_last_axis():
    loop = only_loop(lambda x, y: x.T + y, (100, 1000), (1000, 100))
    assert loop.accesses[loop.stores[0].access].view.strides[-1] == 1
