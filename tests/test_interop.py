"""Memory that crosses between nbgrad and other libraries: DLPack, buffers, the array interface.

NumPy is the other library. PyTorch and JAX, which the tests do not import, speak DLPack as NumPy does.
"""

from __future__ import annotations

import ctypes
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Tensor
from nbgrad.errors import ArgumentError, DtypeError, TracedValueError

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
SHAPES = [(), (0,), (3,), (2, 0, 3), (2, 3), (2, 1, 3)]
W = np.array([3.0, 4.0, 5.0])
X = np.array([1.0, 2.0, 4.0])


NEEDS_WRITABLE = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="What NumPy 2.0 takes by DLPack cannot be written to."
)


def pointer(x: Any) -> int:
    return np.asarray(x).ctypes.data if not isinstance(x, np.ndarray) else x.ctypes.data


def sample(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)


# ----- DLPack -----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_dlpack_round_trip(shape: tuple[int, ...], dtype: str) -> None:
    given = sample(shape, dtype)
    x = nb.from_dlpack(given)
    assert isinstance(x, Tensor) and x.shape == shape and x.dtype == dtype
    back = np.from_dlpack(x)
    assert back.dtype == dtype and back.shape == shape
    np.testing.assert_array_equal(back, given)
    if given.size:
        assert pointer(back) == pointer(given)
    own = Tensor(given)
    np.testing.assert_array_equal(np.from_dlpack(own), given)


def test_dlpack_in_shares_memory() -> None:
    given = np.arange(6.0).reshape(2, 3)
    x = nb.from_dlpack(given)
    given[0, 0] = 7.0
    assert x.asnumpy()[0, 0] == 7.0
    x[1, 2] = -1.0
    assert given[1, 2] == -1.0
    np.testing.assert_array_equal((x * 2).asnumpy(), given * 2)
    np.testing.assert_array_equal(nb.grad(lambda w: np.sum(w * x))(np.ones((2, 3))), given)


@pytest.mark.parametrize("view", [np.s_[::-1], np.s_[:, ::2], np.s_[1:, 1:], np.s_[0]])
def test_dlpack_in_takes_any_strides(view: Any) -> None:
    base = np.arange(12.0).reshape(3, 4)
    given = base[view]
    x = nb.from_dlpack(given)
    base += 1
    np.testing.assert_array_equal(x.asnumpy(), given)
    np.testing.assert_array_equal((x + 0).asnumpy(), given)


@NEEDS_WRITABLE
def test_dlpack_out_shares_memory_without_a_copy() -> None:
    x = Tensor(np.arange(6.0).reshape(2, 3)) * 2
    before = pointer(x)
    out = np.from_dlpack(x)
    assert pointer(out) == before == pointer(x.asnumpy())
    out[0, 0] = 50.0
    assert x[0, 0].item() == 50.0
    x[1, 1] = 9.0
    assert out[1, 1] == 9.0
    row = np.from_dlpack(x[1])
    assert np.shares_memory(row, out) and pointer(row) == before + 24
    column = np.from_dlpack(x[:, 1])
    assert column.strides == (24,) and np.shares_memory(column, out)
    column[:] = -1.0
    np.testing.assert_array_equal(x.asnumpy()[:, 1], [-1.0, -1.0])


@NEEDS_WRITABLE
def test_dlpack_out_never_changes_what_others_have() -> None:
    """Nodes are shared between Tensors: who writes to exported memory must not change the others."""
    x = Tensor(np.arange(3.0)) + 1
    copied, later, array_ = x.copy(), x * 10, np.asarray(x)
    out = np.from_dlpack(x)
    out[:] = 0.0
    assert x.asnumpy().tolist() == [0, 0, 0]
    assert copied.asnumpy().tolist() == array_.tolist() == [1, 2, 3]
    assert later.asnumpy().tolist() == [10, 20, 30]
    given = np.arange(3.0)
    given.flags.writeable = False
    y = Tensor(given)
    np.from_dlpack(y)[0] = 5.0
    assert given[0] == 0.0 and y.asnumpy()[0] == 5.0


@NEEDS_WRITABLE
def test_dlpack_says_what_cannot_be_written_to() -> None:
    given = np.arange(3.0)
    given.flags.writeable = False
    x = nb.from_dlpack(given)
    assert not x.asnumpy().flags.writeable and pointer(x.asnumpy()) == pointer(given)
    again = np.from_dlpack(x)
    assert not again.flags.writeable and pointer(again) == pointer(given)
    with pytest.raises(BufferError):
        x.__dlpack__()  # an old capsule could not tell
    x[0] = 5.0
    assert given[0] == 0.0 and x.asnumpy().tolist() == [5.0, 1.0, 2.0]


def test_dlpack_capsules_have_versions() -> None:
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.argtypes, is_valid.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_int
    x = Tensor([1.0, 2.0])
    assert is_valid(x.__dlpack__(), b"dltensor")
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        assert is_valid(x.__dlpack__(max_version=(1, 0)), b"dltensor_versioned")
    assert is_valid(x.__dlpack__(max_version=(0, 8)), b"dltensor")
    assert x.__dlpack_device__() == (1, 0) == tuple(int(k) for k in np.zeros(1).__dlpack_device__())


@NEEDS_WRITABLE
def test_dlpack_options() -> None:
    x = Tensor(np.arange(3.0))
    capsule_owner = x.asnumpy()
    for options, kept in (({"copy": True}, False), ({"copy": False}, True), ({"copy": None}, True)):

        class Producer:
            def __dlpack__(self, **_: Any) -> Any:
                return x.__dlpack__(**options)  # noqa: B023

            def __dlpack_device__(self) -> Any:
                return x.__dlpack_device__()

        assert (pointer(np.from_dlpack(Producer())) == pointer(capsule_owner)) is kept
    assert x.__dlpack__(dl_device=(1, 0)) is not None
    with pytest.raises(BufferError, match="CPU's memory"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ArgumentError, match="no streams"):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError, match="Parameters"):
        nb.Parameter(x, name="p").__dlpack__(copy=False)
    weight = nb.Parameter(Tensor(np.arange(3.0)), name="w")
    np.from_dlpack(weight)[0] = 9.0
    assert weight.asnumpy()[0] == 0.0
    # The other way round.
    given = np.arange(3.0)
    assert pointer(nb.from_dlpack(given, copy=True).asnumpy()) != pointer(given)
    assert pointer(nb.from_dlpack(given, copy=False, device="cpu").asnumpy()) == pointer(given)
    with pytest.raises(ArgumentError, match="device must be"):
        nb.from_dlpack(given, device="tpu")
    with pytest.raises(DtypeError, match="__dlpack__ method, but got list"):
        nb.from_dlpack([1.0])


def test_from_dlpack_of_a_tensor_keeps_the_gradient() -> None:
    np.testing.assert_array_equal(nb.grad(lambda x: np.sum(nb.from_dlpack(x) ** 2))(X), 2 * X)
    x = Tensor(X)
    y = nb.from_dlpack(x)
    x[0] = 10.0
    assert y.asnumpy()[0] == 10.0
    z = nb.from_dlpack(x, copy=True)
    x[0] = 11.0
    assert z.asnumpy()[0] == 10.0


# ----- Buffers and the array interface -----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_array_interface(shape: tuple[int, ...], dtype: str) -> None:
    given = sample(shape, dtype)
    x = Tensor(given)
    interface = x.__array_interface__
    assert interface["version"] == 3 and interface["shape"] == shape and interface["typestr"] == given.dtype.str

    class Other:
        __array_interface__ = interface

    read = np.asarray(Other())
    assert read.dtype == dtype and read.shape == shape and (not read.flags.writeable or not read.size)
    np.testing.assert_array_equal(read, given)
    if given.size:
        assert pointer(read) == pointer(x)


def test_exported_values_outlive_their_tensor_and_never_change() -> None:
    x = Tensor(np.arange(1000.0))
    read = [np.asarray(x)]
    if sys.version_info >= (3, 12):
        read.append(np.asarray(memoryview(x)))
    x[...] = 0.0
    del x
    Tensor(np.zeros(1000)) + 1
    for values in read:
        np.testing.assert_array_equal(values, np.arange(1000.0))


def test_values_in_another_order() -> None:
    given = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    for x in (nb.from_dlpack(given), Tensor(given).T, Tensor.from_numpy(given.T)):
        np.testing.assert_array_equal(np.asarray(x), x.asnumpy())

        class Other:
            __array_interface__ = x.__array_interface__

        np.testing.assert_array_equal(np.asarray(Other()), x.asnumpy())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="__buffer__ is of Python 3.12 (PEP 688)")
def test_buffers() -> None:
    x = Tensor(np.arange(6.0).reshape(2, 3))
    view = memoryview(x)  # pyright: ignore[reportArgumentType]
    assert view.readonly and view.shape == (2, 3) and view.format == "d"
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]] and bytes(view) == np.arange(6.0).tobytes()
    np.testing.assert_array_equal(np.frombuffer(x), np.arange(6.0))  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(BufferError, match="cannot be written to"):
        x.__buffer__(1)
    with pytest.raises(TypeError):
        ctypes.c_double.from_buffer(x)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TracedValueError, match="cut off"):
        nb.grad(lambda t: memoryview(t)[0])(X)


LEAVING: dict[str, Callable[[Any], Any]] = {
    "asarray": np.asarray,
    "array": lambda x: np.array([x, x]),
    "interface": lambda x: x.__array_interface__,
    "buffer": lambda x: x.__buffer__(0),
    "dlpack": np.from_dlpack,
    "assignment": lambda x: operator.setitem(np.zeros(3), slice(None), x),
}


@pytest.mark.parametrize("how", LEAVING)
@pytest.mark.parametrize("transform", [nb.grad, nb.jit, nb.jacfwd, lambda f: nb.jit(nb.grad(f))])
def test_what_is_recorded_does_not_leave(how: str, transform: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        LEAVING[how](x * 2)
        return np.sum(x)

    with pytest.raises(TracedValueError, match=r"cut off without notice.*test_interop\.py"):
        transform(f)(X)
