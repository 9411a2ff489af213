"""NumPy has many equal dtype objects that are not identical: with any of them, results are those of the usual one."""

from __future__ import annotations

import copy
import io
import pickle
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import dtype as mstype

pytestmark = pytest.mark.unoptimized

NAMES = ("float64", "float32", "float16", "int64", "int32", "uint8", "complex64", "complex128")

DTYPES: dict[str, Callable[[np.dtype[Any]], Any]] = {
    "newbyteorder": lambda dtype: dtype.newbyteorder("="),
    "the other byte order": lambda dtype: dtype.newbyteorder(),
    "pickled": lambda dtype: pickle.loads(pickle.dumps(dtype)),
    "deep copy": copy.deepcopy,
    "copy": lambda dtype: np.dtype(dtype, copy=True),
    "field of a record": lambda dtype: np.dtype([("a", "u1"), ("b", dtype)], align=True)["b"],
    "base of a subarray": lambda dtype: np.dtype((dtype, (2,))).base,
    "with metadata": lambda dtype: np.dtype(dtype, metadata={"unit": "m"}),
    "with fields": lambda dtype: np.dtype((dtype.type, [("all", dtype)])),
    "of its class": lambda dtype: type(dtype)(),  # pyright: ignore[reportCallIssue]
    "of the other C type": lambda dtype: np.dtype(dtype.char.translate(str.maketrans("lq", "ql"))),
    "scalar type": lambda dtype: dtype.type,
    "name": lambda dtype: dtype.name,
    "MindSpore's": mstype.dtype_of,
}


def _saved(array: np.ndarray) -> np.ndarray:
    file = io.BytesIO()
    np.save(file, array)
    file.seek(0)
    return np.load(file)


def _field(array: np.ndarray) -> np.ndarray:
    records = np.zeros(array.shape, [("a", array.dtype), ("b", "i8")])
    records["a"] = array
    return records["a"]


def _mapped(array: np.ndarray) -> np.ndarray:
    with tempfile.TemporaryFile() as file:
        mapped = np.memmap(file, array.dtype.newbyteorder("="), shape=array.shape)
    mapped[:] = array
    return mapped


ARRAYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "pickled": lambda array: pickle.loads(pickle.dumps(array)),
    "saved": _saved,
    "field of records": _field,
    "field of a recarray": lambda array: np.rec.fromarrays([array], dtype=[("a", array.dtype)]).a,
    "of a buffer": lambda array: np.frombuffer(array.tobytes(), array.dtype.newbyteorder("=")),
    "memory map": _mapped,
    **{name: lambda array, make=make: array.astype(make(array.dtype)) for name, make in DTYPES.items()},
}


def squares(x: Any) -> Any:
    return np.sum(x * x)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", DTYPES)
def test_a_tensor_of_any_dtype_object(name: str, kind: str) -> None:
    dtype, data = DTYPES[kind](np.dtype(name)), np.array([1.0, 2.0, 3.0])
    expected = data.astype(name)
    x = nb.Tensor(data, dtype)
    assert str(x) == str(expected)  # its value is known from now on
    np.testing.assert_array_equal(nb.jit(lambda x: x * x)(x).asnumpy(), expected * expected)
    np.testing.assert_array_equal(nb.numpy.full(3, 2, dtype) * 2, np.full(3, 4, name))
    np.testing.assert_array_equal(nb.jit(lambda x: x.astype(dtype) + 1)(data), expected + np.ones((), name))
    np.testing.assert_array_equal(nb.jit(lambda x: np.add(x, x, dtype=dtype))(expected), expected + expected)
    np.testing.assert_array_equal(nb.numpy.arange(3, dtype=dtype).sum(), 3)
    if np.dtype(name).kind == "f":
        for gradient in (nb.grad(squares), nb.jit(nb.grad(squares))):
            assert gradient(x).dtype == name
            np.testing.assert_array_equal(gradient(x).asnumpy(), 2 * expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ARRAYS)
def test_an_array_of_any_dtype_object(name: str, kind: str) -> None:
    expected = np.array([1.0, 2.0, 3.0]).astype(name)
    x = ARRAYS[kind](expected)
    square = nb.jit(lambda x: x * x)
    for given in (x, expected, x):
        np.testing.assert_array_equal(square(given), expected * expected)
    out = np.empty(3, np.dtype(x.dtype))
    np.testing.assert_array_equal(square(expected, out=out), expected * expected)
    t, weight = nb.Tensor(x), nb.Parameter(nb.Tensor(x), name="weight")
    weight.set_data(nb.Tensor(x))
    assert str(t) == str(expected) == str(nb.Tensor(weight))
    np.testing.assert_array_equal(square(t).asnumpy(), expected * expected)
    np.testing.assert_array_equal(square(weight).asnumpy(), expected * expected)
    if np.dtype(name).kind == "f":
        for gradient in (nb.grad(squares), nb.jit(nb.grad(squares))):
            for given in (x, t):
                np.testing.assert_array_equal(np.asarray(gradient(given)), 2 * expected)


def test_a_tensor_made_as_in_mindspore() -> None:
    x = nb.Tensor(np.array([1.0, 2.0]), nb.float32)
    assert str(x) == "[1. 2.]"
    assert str(nb.grad(squares)(x)) == "[2. 4.]"


def test_equal_dtypes_share_compiled_code() -> None:
    double = nb.jit(lambda x: x * 2)
    array = np.arange(4.0)
    double(array)
    before = dict(nb.counters)
    for make in ARRAYS.values():
        double(make(array))
    assert nb.counters == before
