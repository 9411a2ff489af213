"""Memory that Tensors, their views and ndarrays share: random programs do the same to NumPy's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Tensor


def step(rng: np.random.Generator, pairs: list[tuple[Any, np.ndarray]], held: list[np.ndarray]) -> None:
    """Make a view, write through one, or write to the ndarray behind the first Tensor; in both worlds."""
    ours, theirs = pairs[rng.integers(len(pairs))]
    what = rng.integers(8)
    if what == 0 and theirs.shape[0]:
        row = int(rng.integers(theirs.shape[0]))
        if theirs[row].ndim:
            pairs.append((ours[row], theirs[row]))
    elif what == 1:
        part = slice(int(rng.integers(2)), None, [1, 2, -1][rng.integers(3)])
        pairs.append((ours[part], theirs[part]))
    elif what == 2:
        ours[...] = theirs[...] = rng.normal()
    elif what == 3 and theirs.shape[0]:
        ours[0] += 1.0
        theirs[0] += 1.0
    elif what == 4:
        ours[theirs > 0] = 0.5
        theirs[theirs > 0] = 0.5
    elif what == 5 and theirs.ndim == 2:
        ours[:, 1] = ours[:, 0]
        theirs[:, 1] = theirs[:, 0]
    elif what >= 6:
        array = pairs[0][0].asnumpy()
        array *= 2.0
        pairs[0][1].__imul__(2.0)
        if what == 6:
            held.append(array)


@pytest.mark.parametrize("block", range(5))
def test_random_programs_share_like_numpy(block: int) -> None:
    for seed in range(60 * block, 60 * block + 60):
        rng = np.random.default_rng(seed)
        start = rng.normal(size=(3, 4))
        given = start.copy()
        first = nb.from_numpy(given) if seed % 2 else Tensor(given)
        pairs: list[tuple[Any, np.ndarray]] = [(first, start)]
        held: list[np.ndarray] = []
        for _ in range(rng.integers(2, 10)):
            step(rng, pairs, held)
            if rng.integers(2):
                for ours, theirs in pairs:
                    np.testing.assert_array_equal(np.asarray(ours), theirs, err_msg=f"seed {seed}")
        for ours, theirs in pairs:
            np.testing.assert_array_equal(np.asarray(ours), theirs, err_msg=f"seed {seed}")


def test_views_follow_the_ndarray_behind_their_tensor() -> None:
    x = Tensor([1.0, 2.0, 3.0])
    before = x[1:]
    array = x.asnumpy()
    array *= 2.0
    after = x[:2]
    array += 1.0
    assert x.tolist() == [3.0, 5.0, 7.0] and before.tolist() == [5.0, 7.0] and after.tolist() == [3.0, 5.0]
    before[0] = 0.0
    assert array.tolist() == [3.0, 0.0, 7.0] and after.tolist() == [3.0, 0.0]
    del array
    x[0] = 9.0
    assert after.tolist() == [9.0, 0.0]


def test_the_ndarray_of_a_slice_is_a_copy() -> None:
    x = Tensor([1.0, 2.0, 3.0])
    part = x[:2]
    part.asnumpy()[...] = 7.0
    assert x.tolist() == [1.0, 2.0, 3.0] and part.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("part", [np.s_[::2], np.s_[1:], np.s_[::-1]], ids=str)
def test_from_numpy_of_a_part_that_nobody_else_holds(part: Any) -> None:
    data = np.arange(6.0)
    x = nb.from_numpy(data[part])
    assert x.tolist() == data[part].tolist()
    y = x + 0
    data[...] = np.arange(10.0, 16.0)
    assert x.tolist() == data[part].tolist() and y.tolist() == np.arange(6.0)[part].tolist()
    x[0] = -1.0
    assert data[part][0] == -1.0


def test_from_numpy_of_a_buffer() -> None:
    memory = bytearray(16)
    x = nb.from_numpy(np.frombuffer(memory, np.float32))
    assert x.tolist() == [0.0] * 4
    np.frombuffer(memory, np.float32)[1] = 3.0
    assert x.tolist() == [0.0, 3.0, 0.0, 0.0]


def test_from_numpy_of_memory_that_may_not_be_written() -> None:
    data = np.zeros(3)
    data.flags.writeable = False
    x = nb.from_numpy(data)
    head = x[:2]
    head[0] = 5.0
    assert x.tolist() == [5.0, 0.0, 0.0] and head.tolist() == [5.0, 0.0] and data.tolist() == [0.0] * 3
