"""`nb.ravel`: containers as vectors and back, beside what NumPy puts together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError, DtypeError

pytestmark = pytest.mark.unoptimized


class Layer(NamedTuple):
    weights: Any
    bias: Any


W = np.arange(6.0).reshape(2, 3)
TREES: dict[str, tuple[Any, list[float], type]] = {
    "array": (W, [0, 1, 2, 3, 4, 5], np.float64),
    "fortran order": (np.asfortranarray(W), [0, 1, 2, 3, 4, 5], np.float64),
    "number": (2.5, [2.5], np.float64),
    "dict by its keys": ({"b": np.ones(2), "a": 7.0}, [7, 1, 1], np.float64),
    "named tuple": (Layer(W[:1], (np.float32(0.5), None)), [0, 1, 2, 0.5], np.float64),
    "single precision": ([np.ones(2, np.float32), np.zeros((0, 3), np.float32)], [1, 1], np.float32),
    "complex": ((1 + 2j, 3.0), [1 + 2j, 3], np.complex128),
    "nothing": ({}, [], np.float64),
}


def same(found: Any, other: Any) -> None:
    """Equal containers, with equal dtypes and shapes."""
    if isinstance(other, dict):
        assert found.keys() == other.keys()
        for key in other:
            same(found[key], other[key])
    elif isinstance(other, tuple | list):
        assert type(found) is type(other) and len(found) == len(other)
        for one, two in zip(found, other, strict=True):
            same(one, two)
    elif other is None:
        assert found is None
    else:
        assert np.asarray(found).dtype == np.asarray(other).dtype and np.shape(found) == np.shape(other)
        np.testing.assert_array_equal(found, other)


@pytest.mark.parametrize("name", TREES)
def test_there_and_back(name: str) -> None:
    tree, numbers, dtype = TREES[name]
    vector, unravel = nb.ravel(tree)
    assert vector.dtype == dtype and vector.ndim == 1
    np.testing.assert_array_equal(vector, numbers)
    same(unravel(vector), tree)
    with pytest.raises(ArgumentError, match=rf"holds {len(numbers)} numbers.* shape \({len(numbers) + 1},\)"):
        unravel(np.zeros(len(numbers) + 1))


def test_derivatives_pass_through() -> None:
    tree = Layer(W, 2.0)
    vector, unravel = nb.ravel(tree)
    by_vector = nb.jit(nb.grad(lambda v: np.sum(unravel(v).weights ** 3) * unravel(v).bias))(vector)
    np.testing.assert_allclose(by_vector, [*(6 * W.ravel() ** 2), np.sum(W**3)], rtol=1e-14)
    by_tree = nb.grad(lambda t: np.sum(nb.ravel(t)[0] ** 2))(tree)
    same(by_tree, Layer(2 * W, np.float64(4.0)))


def test_tensors_give_tensors() -> None:
    vector, unravel = nb.ravel({"w": nb.Tensor([1.0, 2.0], nb.float32), "b": nb.Tensor(3.0, nb.float32)})
    assert isinstance(vector, nb.Tensor) and vector.dtype == nb.float32
    again = unravel(vector)
    assert isinstance(again["w"], nb.Tensor) and again["w"].shape == (2,) and again["b"].shape == ()


@pytest.mark.parametrize(
    ("wrong", "said"), [(3, "int"), ([np.arange(3)], "int64 ndarray"), ({"a": "text"}, "str"), ([True], "bool")]
)
def test_what_an_optimiser_cannot_move(wrong: Any, said: str) -> None:
    with pytest.raises(DtypeError, match=f"but found {said}"):
        nb.ravel(wrong)
