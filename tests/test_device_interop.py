"""Arrays of CuPy, PyTorch and Numba on a GPU go in and come back without a copy; streams, pools, wrong arrays.

The libraries are stood in for by small classes over the simulator's memory, which speak the protocols as theirs do.
What is checked against other people's code is the layout of DLPack's structures: NumPy reads our capsules, we NumPy's.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.device.memory import dlpack
from nbgrad.device.memory.arrays import DeviceArray
from nbgrad.errors import ArgumentError, DeviceError, DtypeError, NbgradError

from . import device_foreign
from .device_foreign import KINDS, TORCH_STREAM, A, B, Cupy, Foreign, Torch, f, from_dlpack

pytestmark = pytest.mark.unoptimized

simulated = device_foreign.simulated

# ----- Through transforms -----


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_come_back_as_the_same_kind(kind):
    x, y = kind(A), kind(B)
    gradient = nb.grad(f)(x, y)
    assert type(gradient) is kind
    np.testing.assert_allclose(gradient.values, np.cos(A) * B)
    value, both = nb.value_and_grad(f, (0, 1))(x, y)
    assert type(value) is kind and value.shape == () and [type(g) for g in both] == [kind, kind]
    np.testing.assert_allclose(value.values, np.sum(np.sin(A) * B))
    np.testing.assert_allclose(both[1].values, np.sin(A))
    np.testing.assert_array_equal(x.values, A)


@pytest.mark.parametrize("kind", KINDS)
def test_other_transforms(kind):
    for _ in range(3):
        compiled = nb.jit(nb.grad(f))
        for scale in (1.0, 2.0, 3.0):
            found = compiled(kind(scale * A), kind(B))
            assert type(found) is kind
            np.testing.assert_allclose(found.values, np.cos(scale * A) * B)
        assert compiled.compiled_signatures == 1
    mapped = nb.vmap(f)(kind(A), kind(B))
    assert type(mapped) is kind
    np.testing.assert_allclose(mapped.values, np.sum(np.sin(A) * B, 1))
    jacobian = nb.jacrev(np.sin)(kind(A[0]))
    assert type(jacobian) is kind
    np.testing.assert_allclose(jacobian.values, np.diag(np.cos(A[0])), atol=1e-15)
    out, pull = nb.vjp(np.sin, kind(A))
    assert type(out) is kind and type(pull(kind(B))[0]) is kind
    out, tangent = nb.jvp(np.sin, kind(A), kind(B))
    np.testing.assert_allclose(tangent.values, np.cos(A) * B)
    for compiled in (nb.grad(lambda t: f(t["a"], t["b"][0])), nb.jit(nb.grad(lambda t: f(t["a"], t["b"][0])))):
        tree = compiled({"a": kind(A), "b": [kind(B)]})
        assert type(tree["b"][0]) is kind
        np.testing.assert_allclose(tree["b"][0].values, np.sin(A))


def test_mindspores_interface():
    both = nb.GradOperation(get_all=True)(f)(Cupy(A), Cupy(B))
    assert [type(one) for one in both] == [Cupy, Cupy]
    np.testing.assert_allclose(both[1].values, np.sin(A))
    by_sens = nb.grad(lambda x: np.sin(x), sens_param=True)(Cupy(A), Cupy(B))
    np.testing.assert_allclose(by_sens.values, np.cos(A) * B)


def test_kinds_together():
    first, second = nb.grad(f, (0, 1))(Cupy(A), Torch(B))
    assert type(first) is Cupy and type(second) is Torch
    value, gradient = nb.value_and_grad(f)(Cupy(A), nb.Tensor(B, device="cuda"))
    assert isinstance(value, nb.Tensor) and type(gradient) is Cupy
    value, gradient = nb.value_and_grad(f)(Cupy(A), B)
    assert type(value) is Cupy and type(gradient) is Cupy
    assert isinstance(nb.jit(f)(Cupy(A), nb.Tensor(B, device="cuda")), nb.Tensor)
    w = nb.Parameter(B, name="w", device="cuda")
    assert type(nb.jit(lambda x: x * w)(Cupy(A))) is Cupy
    with pytest.raises(DeviceError, match="different places"):
        nb.grad(f)(Cupy(A), Cupy(B, device=1))
    with pytest.raises(DeviceError, match="different places"):
        nb.grad(f)(Cupy(A), nb.Tensor(B))


def test_constant_results_are_of_the_kind():
    assert type(nb.grad(lambda x: 0.0 * x[0] + 1.0)(Cupy(A[0]))) is Cupy
    gradient = nb.grad(lambda x, y: y * 2.0)(Cupy(A), 1.0)
    assert type(gradient) is Cupy
    np.testing.assert_array_equal(gradient.values, np.zeros((3, 4)))


@pytest.mark.parametrize("kind", [Cupy, Torch])
def test_work_goes_to_the_stream_of_the_arguments(kind, simulated):
    stream = nb.cuda.Stream()
    TORCH_STREAM[0] = stream.handle
    given = kind(A, stream=stream.handle), kind(B, stream=stream.handle)
    before = len(simulated.waits)
    gradient = nb.grad(f)(*given)
    assert gradient.held.stream == stream.handle == gradient.stream
    assert simulated.waits[before:] == []  # one stream for all
    assert nb.cuda.current_stream() == 0
    compiled = nb.jit(nb.grad(f))
    assert compiled(*given).stream == compiled(*given).stream == stream.handle
    mine = nb.cuda.Stream()
    before = len(simulated.waits)
    with nb.cuda.stream(mine):
        assert nb.grad(f)(*given).held.device.index == 0
    assert (mine.handle, stream.handle) in simulated.waits[before:]


def test_results_are_written_to_other_libraries_arrays():
    target = Cupy(np.zeros((3, 4)))
    g = nb.jit(lambda x: np.sin(x))
    for given in (Cupy(A), nb.Tensor(A, device="cuda")):
        assert g(given, out=target) is target
        np.testing.assert_allclose(target.values, np.sin(A))
    same = Cupy(A[0])
    h = nb.jit(lambda x: np.cumsum(x[::-1]))
    h(same, out=same)
    np.testing.assert_allclose(same.values, np.cumsum(A[0][::-1]))
    for wrong in (
        Cupy(np.zeros((4, 3)).T),
        Cupy(np.zeros((3, 4)), device=1),
        Cupy(np.zeros((3, 3))),
        Cupy(np.zeros((3, 4), "f")),
    ):
        with pytest.raises(NbgradError):
            g(Cupy(A), out=wrong)
    locked = Cupy(np.zeros((3, 4)))
    locked.changes = {"data": (locked.held.pointer, True)}
    with pytest.raises(ArgumentError, match="read-only"):
        g(Cupy(A), out=locked)
    overlapping = Cupy(np.zeros((3, 4)))
    overlapping.changes = {"data": (target.held.pointer, False)}
    with pytest.raises(ArgumentError, match="Array 1 of out shares memory with another array of out"):
        nb.jit(lambda x: (np.sin(x), np.cos(x)))(Cupy(A), out=(target, overlapping))


# ----- Taking arrays -----


@pytest.mark.parametrize("take", [nb.cuda.as_tensor, nb.from_dlpack])
@pytest.mark.parametrize("dtype", "bool int8 uint16 int64 float16 float32 float64 complex64 complex128".split())
def test_tensors_over_other_libraries_memory(take, dtype):
    given = Cupy((10 * A).astype(dtype))
    x = take(given)
    assert x.device == "cuda" and x.dtype == given.dtype and x._node.value.pointer == given.held.pointer
    np.testing.assert_array_equal(x.asnumpy(), (10 * A).astype(dtype))
    copied = nb.Tensor(given)
    assert copied.device == "cuda" and copied._node.value.pointer != given.held.pointer
    np.testing.assert_array_equal(copied.asnumpy(), (10 * A).astype(dtype))


def test_operands():
    x = nb.Tensor(A, device="cuda")
    np.testing.assert_allclose((x * Cupy(B)).asnumpy(), A * B)
    y = x * Cupy(B)
    assert y.device == "cuda"
    given = Cupy(B)
    lazy = x * given
    given.driver.fill(given.held.pointer, 0, given.held.nbytes, 0)  # later changes are not seen
    np.testing.assert_allclose(lazy.asnumpy(), A * B)
    with pytest.raises(DeviceError):
        x * Cupy(B, device=1)


def test_writing_to_a_taken_tensor_leaves_the_array_alone():
    given = Cupy(A)
    x = nb.cuda.as_tensor(given)
    x[0] = 1.0
    np.testing.assert_array_equal(given.values, A)
    assert float(x[0, 0]) == 1.0
    with pytest.raises(ArgumentError, match="copy=False"):
        nb.from_dlpack(given, device="cpu", copy=False)
    assert nb.from_dlpack(given, device="cpu").device == "cpu"
    assert nb.from_dlpack(given, device="cuda").device == "cuda"


def test_empty_and_small_arrays():
    for shape in ((0,), (2, 0, 3), ()):
        x = nb.cuda.as_tensor(Cupy(np.zeros(shape)))
        assert x.shape == shape and (x + 1).asnumpy().shape == shape


class WithoutInterface:
    """An array that speaks DLPack only, by the versions of its producer."""

    def __init__(self, array: Any, versioned: bool = True, kind: int = 2) -> None:
        self.array, self.versioned, self.kind, self.asked = DeviceArray.of(array, nb.cuda.device()), versioned, kind, []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0

    def __dlpack__(self, **options: Any) -> Any:
        if not self.versioned and "max_version" in options:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        self.asked.append(options["stream"])
        return dlpack.capsule(self.array, **options)


@pytest.mark.parametrize("versioned", [False, True])
def test_dlpack(versioned):
    given = WithoutInterface(A, versioned)
    x = nb.from_dlpack(given) if versioned else nb.cuda.as_tensor(given)
    assert x._node.value.pointer == given.array.pointer and given.asked == [1]
    np.testing.assert_array_equal(x.asnumpy(), A)
    stream = nb.cuda.Stream()
    with nb.cuda.stream(stream):
        nb.cuda.as_tensor(given)
    assert given.asked[1] == stream.handle
    with pytest.raises(ArgumentError, match="DLPack's device"):
        nb.cuda.as_tensor(WithoutInterface(A, kind=10))


def test_capsules_are_those_of_numpy(monkeypatch):
    """NumPy's reader and writer, on the simulator's memory, which is the CPU's."""
    array = nb.Tensor(A, device="cuda")._node.value
    monkeypatch.setattr(dlpack, "CUDA", 1)
    monkeypatch.setattr(dlpack, "CPU", 99)

    class Shown:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

        def __dlpack__(self, **options: Any) -> Any:
            return dlpack.capsule(array, max_version=options.get("max_version"))

    held = sys.getrefcount(array)
    found = np.from_dlpack(Shown())
    np.testing.assert_array_equal(found, A)
    assert found.ctypes.data == array.pointer and sys.getrefcount(array) == held + 1
    del found
    gc.collect()
    assert sys.getrefcount(array) == held
    for version in (None, (1, 0)):
        unread = dlpack.capsule(array, max_version=version)
        assert sys.getrefcount(array) == held + 1
        del unread
        gc.collect()
        assert sys.getrefcount(array) == held

    for dtype in "bool int8 uint16 int64 float16 float32 float64 complex64 complex128".split():
        for given in (A.astype(dtype), A.astype(dtype).T, A.astype(dtype)[::2, 1:]):

            class Numpys:
                array = given

                def __dlpack__(self, stream: Any, **options: Any) -> Any:
                    return self.array.__dlpack__(**options)

            taken, strides = dlpack.taken(Numpys(), nb.cuda.device())
            assert taken.pointer == given.ctypes.data and taken.shape == given.shape and taken.dtype == given.dtype
            assert strides == given.strides


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "mask": (lambda: Cupy(A, mask=Cupy(A > 0)), DtypeError, "mask"),
    "elements": (lambda: Cupy(A, typestr="<V2"), DtypeError, "elements of type"),
    "order of bytes": (lambda: Cupy(A, typestr=">f8"), DtypeError, "elements of type"),
    "long": (lambda: Cupy(A, typestr="<f16"), DtypeError, "elements of type"),
    "no type": (lambda: Cupy(A, typestr="what"), DtypeError, "elements of type"),
    "stream 0": (lambda: _with(Cupy(A), stream=0), ArgumentError, "stream"),
    "stream": (lambda: _with(Cupy(A), stream="default"), ArgumentError, "stream"),
    "host memory": (lambda: Cupy(A, data=(A.ctypes.data, False)), DeviceError, "not in use"),
    "null": (lambda: Cupy(A, data=(0, False)), DeviceError, "not in use"),
    "freed": (lambda: _freed(Cupy(A)), DeviceError, "freed"),
    "no dict": (lambda: _Broken(None, "no dict"), DtypeError, "lacks"),
    "parts missing": (lambda: _Broken(None, {"shape": (1,)}), DtypeError, "lacks"),
    "no protocol": (lambda: object(), DtypeError, "__cuda_array_interface__"),
    "list": (lambda: [1.0], DtypeError, "__cuda_array_interface__"),
    "ndarray": (lambda: A, ArgumentError, "not in the memory of a GPU"),
    "CPU Tensor": (lambda: nb.Tensor(A), ArgumentError, "not in the memory of a GPU"),
    "no capsule": (lambda: _NoCapsule(), DtypeError, "capsule"),
}


def _with(array: Foreign, **changes: Any) -> Foreign:
    array.changes = changes
    return array


def _freed(array: Foreign) -> Foreign:
    array.driver.free(array.held.pointer, 0, 0)
    array.held.owner.pointer = 0
    return array


class _Broken:
    def __init__(self, _: Any, described: Any) -> None:
        self.described = described

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.described


class _NoCapsule:
    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **_: Any) -> Any:
        return "capsule"


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arrays(name):
    make, error, match = WRONG[name]
    given = make()
    with pytest.raises(error, match=match):
        nb.cuda.as_tensor(given)
    if isinstance(given, Foreign):
        for transformed in (nb.grad(lambda x: x.sum()), nb.jit(lambda x: x * 2)):
            with pytest.raises(error, match=match):
                transformed(given)


def test_gradients_of_other_libraries_are_not_cut_off():
    given = Torch(A)
    given.requires_grad = True
    for use in (nb.cuda.as_tensor, nb.from_dlpack, nb.grad(lambda x: x.sum()), nb.jit(lambda x: x * 2)):
        with pytest.raises(ArgumentError, match="detach"):
            use(given)


def test_libraries_that_are_not_known():
    class Other(Foreign):
        __module__ = "somebody"

    with pytest.raises(DtypeError, match="as_tensor"):
        nb.grad(lambda x: x.sum())(Other(A))
    assert nb.grad(lambda x: x.sum())(nb.cuda.as_tensor(Other(A))).device == "cuda"


def test_memory_lives_as_long_as_it_is_seen(simulated):
    given = Cupy(A)
    x = nb.cuda.as_tensor(given)
    del given
    gc.collect()
    np.testing.assert_array_equal(x.asnumpy(), A)
    result = nb.grad(f)(Cupy(A), Cupy(B))
    gc.collect()
    np.testing.assert_allclose(result.values, np.cos(A) * B)


@pytest.mark.parametrize("dtype", "bool float16 int32 float64 complex64 complex128".split())
def test_arrays_in_other_orders_are_copied(dtype):
    cube = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).astype(dtype)
    for view in (
        cube.T,
        cube[::2, ::-1, 1:, ::2],
        cube.transpose(3, 1, 0, 2),
        cube[0, :, 1],
        np.broadcast_to(cube[0, 0, 0], (3, 5)),
        cube[:, :0],
        cube[1:],
    ):
        given = Cupy(cube)
        offset = view.__array_interface__["data"][0] - cube.__array_interface__["data"][0]
        given.shape, given.strides = view.shape, view.strides
        given.changes = {"strides": view.strides, "data": (given.held.pointer + offset, False)}
        x = nb.cuda.as_tensor(given)
        np.testing.assert_array_equal(x.asnumpy(), view)
    with pytest.raises(DtypeError, match="whole elements"):
        nb.cuda.as_tensor(Cupy(np.zeros((2, 2), np.int32), strides=(6, 4)))


# ----- Giving Tensors -----


def test_the_interface_of_tensors():
    x = nb.Tensor(A, device="cuda")
    described = x.__cuda_array_interface__
    assert described["version"] == 3 and described["shape"] == (3, 4) and described["typestr"] == "<f8"
    assert described["data"] == (x._node.value.pointer, False) and described["stream"] == 1
    y = x * 2  # computed when it is asked for
    assert (
        np.ctypeslib.as_array((np.ctypeslib.ctypes.c_double * 12).from_address(y.__cuda_array_interface__["data"][0]))[
            0
        ]
        == 2 * A[0, 0]
    )
    stream = nb.cuda.Stream()
    with nb.cuda.stream(stream):
        assert (x * 3).__cuda_array_interface__["stream"] == stream.handle
    assert not hasattr(nb.Tensor(A), "__cuda_array_interface__")


def test_what_a_reader_saw_stays():
    x = nb.Tensor(A, device="cuda")
    address = x.__cuda_array_interface__["data"][0]
    x[0] = 0.0
    str(x)
    gc.collect()
    assert nb.cuda.device().driver.owner_of(address) == 0
    del x
    gc.collect()
    assert nb.cuda.device().driver.owner_of(address) is None


def test_dlpack_of_tensors(simulated):
    x = nb.Tensor(A, device="cuda:1")
    assert x.__dlpack_device__() == (2, 1)
    back = from_dlpack(x)
    assert back.held.pointer == x._node.value.pointer and back.held.device.index == 1
    copied = dlpack.taken(SimpleNamespace(__dlpack__=lambda **o: x.__dlpack__(copy=True, **o)), x.device)[0]
    assert copied.pointer != x._node.value.pointer
    np.testing.assert_array_equal(copied.to_host(), A)
    np.testing.assert_array_equal(np.from_dlpack(SimpleNamespaceOnCpu(x)), A)
    reader, before = nb.cuda.Stream("cuda:1"), len(simulated.waits)
    x.__dlpack__(stream=reader.handle)
    assert simulated.waits[before:] == [(reader.handle, 0)]
    before = len(simulated.waits)
    x.__dlpack__(stream=-1), x.__dlpack__(stream=1), x.__dlpack__()
    assert simulated.waits[before:] == []
    for stream in (0, -2, "default", True):
        with pytest.raises(ArgumentError, match="stream"):
            x.__dlpack__(stream=stream)
    for options in ({"dl_device": (2, 0)}, {"dl_device": (1, 0), "copy": False}, {"dl_device": (10, 0)}):
        with pytest.raises(BufferError):
            x.__dlpack__(**options)
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(x)


class SimpleNamespaceOnCpu:
    """A reader that asks for a copy in the CPU's memory."""

    def __init__(self, x: nb.Tensor) -> None:
        self.x = x

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        return self.x.__dlpack__(**{**options, "dl_device": (1, 0)})


def test_what_is_recorded_does_not_leave():
    x = nb.Tensor(A, device="cuda")
    for leave in (lambda v: v.__dlpack__(), lambda v: v.__cuda_array_interface__):

        def broken(v: Any, leave: Any = leave) -> Any:
            leave(v)
            return v.sum()

        with pytest.raises(TypeError, match="cut off"):
            nb.grad(broken)(x)


def test_addresses_that_are_not_aligned():
    given, target = Cupy(np.arange(9.0)), Cupy(np.zeros(9))
    for array in (given, target):
        array.shape, array.changes = (8,), {"data": (array.held.pointer + 8, False)}
    compiled = nb.jit(lambda x: np.sin(x))
    np.testing.assert_allclose((nb.cuda.as_tensor(given) * 2).asnumpy(), 2 * np.arange(1.0, 9.0))
    for _ in range(4):
        assert compiled(given, out=target) is target
        np.testing.assert_allclose(target.held.to_host(), [0.0, *np.sin(np.arange(1.0, 9.0))])
