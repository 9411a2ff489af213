"""Element types: MindSpore's names and text, NumPy's meaning."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import dtype as mstype

NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


@pytest.mark.parametrize("name", NAMES)
def test_is_numpys_dtype(name):
    ours, theirs = mstype.dtype_of(name), np.dtype(name)
    assert ours == theirs and theirs == ours and ours == theirs.type and ours == name and hash(ours) == hash(theirs)
    assert ours is mstype.dtype_of(theirs) is mstype.dtype_of(ours) and ours in {theirs: 1}
    assert (ours.itemsize, ours.kind, ours.name) == (theirs.itemsize, theirs.kind, theirs.name)
    assert np.zeros(2, ours).dtype == theirs and np.ones(2).astype(ours).dtype == theirs
    assert np.result_type(ours, theirs) == theirs and np.issubdtype(ours, theirs.type)
    assert pickle.loads(pickle.dumps(ours)) is ours and copy.deepcopy(ours) is ours
    assert nb.Tensor(np.zeros(1, theirs)).dtype is ours and nb.dtype_to_nptype(ours) is theirs.type


def test_text():
    # As MindSpore 2.10 prints them.
    assert [str(t) for t in (nb.float32, nb.int64, nb.bool_, nb.uint8)] == ["Float32", "Int64", "Bool", "UInt8"]
    assert [repr(t) for t in (nb.float32, nb.bool_)] == ["mindspore.float32", "mindspore.bool_"]


def test_differences():
    assert nb.float32 != nb.float64 and nb.float32 != np.float64 and nb.float32 != 3 and nb.float32 is not None
    assert nb.float32 != "text"
    with pytest.raises(AttributeError):
        _ = nb.float32.nothing
    assert nb.half is nb.float16 and nb.double is nb.float64 and nb.int_ is nb.int64 and nb.byte is nb.int8
    assert nb.pytype_to_dtype(bool) is nb.bool_ and mstype.float_type == (nb.float16, nb.float32, nb.float64)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("int32", "int64", "int64"),
        ("int64", "float16", "float16"),
        ("int64", "float32", "float32"),
        ("float16", "float32", "float32"),
        ("float32", "float64", "float64"),
        ("bool", "int32", "int32"),
        ("uint8", "int8", "int16"),
        ("bool", "float16", "float16"),
    ],
)
def test_promotion_of_tensors_is_mindspores(a, b, expected):
    # The recorded case tensor-promotion, and two like it.
    x, y = np.ones(2, a), np.ones(2, b)
    assert (nb.Tensor(x) + nb.Tensor(y)).dtype == expected
    assert (nb.Tensor(x) * y).dtype == (x * nb.Tensor(y)).dtype == expected
    assert nb.numpy.where(nb.Tensor([True, False]), nb.Tensor(x), nb.Tensor(y)).dtype == expected
    # What stands for ndarrays follows NumPy.
    assert nb.jit(lambda x, y: x + y)(x, y).dtype == (x + y).dtype


def test_python_numbers_are_weak():
    n, h = nb.Tensor([3, 4], nb.int32), nb.Tensor([1.0], nb.float16)
    assert [t.dtype.name for t in (n * 2.5, n / 2, n // 2, n**2, n % 2, -n, n + 1)] == [
        "float32",
        "float32",
        "int32",
        "int32",
        "int32",
        "int32",
        "int32",
    ]
    assert (h * 2.0).dtype == (h + 1).dtype == nb.float16
    assert nb.ops.exp(n).dtype == n.mean().dtype == nb.float32 and (n / n).dtype == nb.float32
    assert (nb.Tensor([True]) + 1).dtype == nb.int64
    assert (np.ones_like(n) * 0.5).dtype == (np.zeros_like(n[0]) / 3).dtype == nb.float32
