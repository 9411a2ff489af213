"""Arrays of CuPy, PyTorch and Numba on a real GPU; test_device_interop.py has the same in the simulator."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.gpu
A = np.random.default_rng(8).normal(size=(30, 40))
B = np.random.default_rng(9).normal(size=(30, 40))


def cupy_arrays(*arrays: np.ndarray) -> list[Any]:
    cupy = pytest.importorskip("cupy")
    return [cupy.asarray(array) for array in arrays]


def torch_arrays(*arrays: np.ndarray) -> list[Any]:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch without CUDA")
    return [torch.from_numpy(array).cuda() for array in arrays]


def numba_arrays(*arrays: np.ndarray) -> list[Any]:
    cuda = pytest.importorskip("numba.cuda")
    return [cuda.to_device(array) for array in arrays]


def host(array: Any) -> np.ndarray:
    if hasattr(array, "get"):
        return array.get()
    return array.copy_to_host() if hasattr(array, "copy_to_host") else array.cpu().numpy()


def f(x: Any, y: Any) -> Any:
    return np.sum(np.sin(x) * y)


@pytest.mark.parametrize("make", [cupy_arrays, torch_arrays, numba_arrays])
def test_gradients_come_back_as_the_same_kind(make: Any) -> None:
    x, y = make(A, B)
    for transformed in (nb.grad(f, (0, 1)), nb.jit(nb.grad(f, (0, 1)))):
        for _ in range(3):
            first, second = transformed(x, y)
            assert type(first) is type(x) and type(second) is type(y)
            np.testing.assert_allclose(host(first), np.cos(A) * B, rtol=1e-12)
            np.testing.assert_allclose(host(second), np.sin(A), rtol=1e-12)


@pytest.mark.parametrize("make", [cupy_arrays, torch_arrays, numba_arrays])
def test_memory_is_shared(make: Any) -> None:
    (given,) = make(A)
    x = nb.cuda.as_tensor(given)
    assert x.device == "cuda"
    assert x.__cuda_array_interface__["data"][0] == given.__cuda_array_interface__["data"][0]
    np.testing.assert_array_equal(x.asnumpy(), A)


def test_dlpack_into_pytorch() -> None:
    torch = pytest.importorskip("torch")
    torch_arrays(A)
    x = nb.Tensor(A, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        taken = torch.from_dlpack(x * 2)
        doubled = taken + taken
    assert taken.device.type == "cuda"
    np.testing.assert_allclose(doubled.cpu().numpy(), 4 * A)
    del taken, x
    gc.collect()
    with nb.cuda.stream(stream):
        y = nb.from_dlpack(doubled) + 1.0
    np.testing.assert_allclose(y.asnumpy(), 4 * A + 1)


@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_pools(name: str) -> None:
    (cupy_arrays if name == "cupy" else torch_arrays)(A)
    nb.cuda.use_pool(name)
    try:
        x = nb.Tensor(A, device="cuda")
        np.testing.assert_allclose((x * 2).asnumpy(), 2 * A)
    finally:
        nb.cuda.use_pool(None)


def test_streams() -> None:
    x = nb.Tensor(A, device="cuda")
    with nb.cuda.stream(nb.cuda.Stream()):
        y = x * 2
    np.testing.assert_allclose((y + 1).asnumpy(), 2 * A + 1)
    nb.cuda.synchronize()
