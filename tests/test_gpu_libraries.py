"""Other libraries of GPUs: their streams, and their kernels as primitives; test_gpu_interop.py has their arrays.

`pytest -m gpu` runs these tests; each skips where its library is not installed. What they have in common also runs in
the simulator, with a kernel that needs no library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.device.kernels.launches import DeviceKernel

from .gpu import Place, close, on

real = pytest.mark.parametrize("place", [pytest.param("gpu", marks=pytest.mark.gpu)], indirect=True)
"""Only where there is a GPU: for others, the simulator's memory is none."""


@real
def test_streams_of_cupy(place: Place) -> None:
    cupy = pytest.importorskip("cupy")
    x = cupy.linspace(0.0, 1.0, 1_000_001)
    gradient = nb.jit(nb.grad(lambda x: np.sum(np.sin(x) * x)))
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
        with stream, nb.cuda.stream(stream):
            found = gradient(x * 1.0)
            error = cupy.abs(found - (cupy.cos(x) * x + cupy.sin(x))).max()
        assert float(error) < 1e-14


@real
def test_streams_of_pytorch(place: Place) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    x = torch.linspace(0.0, 1.0, 1_000_001, device="cuda", dtype=torch.float64)
    gradient = nb.jit(nb.grad(lambda x: np.sum(np.sin(x) * x)))
    torch.cuda.synchronize()
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream), nb.cuda.stream(stream):
            found = gradient(x * 1.0)
            error = (found - (torch.cos(x) * x + torch.sin(x))).abs().max()
        assert float(error) < 1e-14


SCALE = r"""
extern "C" __global__ void scale(const double* x, double* out, double factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * x[i];
}
"""


def composed(launch: Any) -> None:
    """A kernel that scales, as a primitive with a derivative, in the middle of a program, on two streams."""

    def backwards(x: Any, out: Any, g: Any, grad: Any, *, factor: float, stream: Any) -> None:
        launch(g, grad, factor=factor, stream=stream)

    scaled: Any = nb.primitive(None, shape=lambda x, factor: x, cuda_forward=launch, cuda_vjp=backwards, name="scaled")
    x = np.linspace(0.0, 1.0, 1000)
    gradient = nb.jit(nb.grad(lambda x: np.sum(np.exp(scaled(x, factor=3.0)) * x)))
    expected = np.exp(3 * x) * (1 + 3 * x)
    for stream in (None, nb.cuda.Stream()):
        with nb.cuda.stream(stream):
            close(gradient(on(x)), expected, 1e-14)
    close(nb.vmap(lambda x: scaled(x, factor=2.0))(on(np.stack([x, 2 * x]))), np.stack([2 * x, 4 * x]), 0)


SCALE_IR = """
define void @kernel(ptr %x, ptr %out, i64 %factor, i64 %n) {
  %thread = call i32 @nbgrad.thread()
  %block = call i32 @nbgrad.block()
  %threads = call i32 @nbgrad.threads()
  %before = mul i32 %block, %threads
  %index = add i32 %before, %thread
  %i = sext i32 %index to i64
  %inside = icmp slt i64 %i, %n
  br i1 %inside, label %work, label %done
work:
  %from = getelementptr double, ptr %x, i64 %i
  %to = getelementptr double, ptr %out, i64 %i
  %value = load double, ptr %from
  %wide = sitofp i64 %factor to double
  %scaled = fmul double %value, %wide
  store double %scaled, ptr %to
  br label %done
done:
  ret void
}
"""


def test_own_kernels_by_the_driver_itself(place: Place) -> None:
    """No other library: what the tests below have in common is right."""

    def launch(x: Any, out: Any, *, factor: float, stream: Any) -> None:
        n = x.shape[0]
        addresses = [array.__cuda_array_interface__["data"][0] for array in (x, out)]
        function = place.driver.function(DeviceKernel("a kernel that scales", lambda: SCALE_IR), 0)
        words = np.array([*addresses, int(factor), n], np.int64)
        place.driver.launch(function, (n + 127) // 128, 128, 0, words, int(stream))

    composed(launch)


@real
def test_own_kernels_of_numba(place: Place) -> None:
    pytest.importorskip("numba_cuda")
    from numba import cuda as numba_cuda

    cuda: Any = numba_cuda

    @cuda.jit
    def scale(x: Any, factor: float, out: Any) -> None:
        i = cuda.grid(1)
        if i < x.shape[0]:
            out[i] = factor * x[i]

    def launch(x: Any, out: Any, *, factor: float, stream: Any) -> None:
        scale[(x.shape[0] + 127) // 128, 128, cuda.external_stream(int(stream))](x, factor, out)

    composed(launch)


@real
def test_own_kernels_of_cupy(place: Place) -> None:
    cupy = pytest.importorskip("cupy")
    kernel = cupy.RawKernel(SCALE, "scale")

    def launch(x: Any, out: Any, *, factor: float, stream: Any) -> None:
        n = x.shape[0]
        with cupy.cuda.Stream.from_external(stream):
            arguments = cupy.asarray(x), cupy.asarray(out), np.float64(factor), np.int32(n)
            kernel(((n + 127) // 128,), (128,), arguments)

    composed(launch)


@real
def test_own_kernels_of_cuda_core(place: Place) -> None:
    core = pytest.importorskip("cuda.core")
    device = core.Device(0)
    device.set_current()
    options = core.ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
    kernel = core.Program(SCALE, code_type="c++", options=options).compile("cubin").get_kernel("scale")

    def launch(x: Any, out: Any, *, factor: float, stream: Any) -> None:
        n = x.shape[0]
        addresses = [array.__cuda_array_interface__["data"][0] for array in (x, out)]
        config = core.LaunchConfig(grid=(n + 127) // 128, block=128)
        core.launch(device.create_stream(stream), config, kernel, *addresses, np.float64(factor), np.int32(n))

    composed(launch)


@real
def test_device_functions_in_kernels_of_numba(place: Place) -> None:
    pytest.importorskip("numba_cuda")
    from numba import cuda as numba_cuda

    cuda: Any = numba_cuda

    def energy(r: Any, sigma: Any) -> Any:
        s = (sigma / r) ** 6
        return 4.0 * (s * s - s)

    force = nb.device_function(nb.grad(energy)).cuda(cuda.jit)

    @cuda.jit
    def forces(r: Any, out: Any) -> None:
        i = cuda.grid(1)
        if i < r.shape[0]:
            out[i] = force(r[i], 1.0)

    r = np.linspace(0.9, 2.5, 100)
    out = cuda.to_device(np.zeros(100))
    forces[1, 128](cuda.to_device(r), out)
    np.testing.assert_allclose(out.copy_to_host(), 4.0 * (-12 * r**-13 + 6 * r**-7), rtol=1e-12)
