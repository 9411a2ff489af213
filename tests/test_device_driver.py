"""NVIDIA's driver without a GPU: what is asked of it, in which order, and what its errors become for a user.

A double stands for cuda.bindings.driver; what the real package accepts is checked where it is installed.
"""

import ctypes
import enum
import itertools
import subprocess
import sys
import types

import numpy as np
import pytest

from nbgrad.device.driver import cuda_driver, cuda_errors, kept_blocks
from nbgrad.device.driver.cuda_driver import CudaDriver
from nbgrad.device.kernels import ptx
from nbgrad.device.kernels.launches import DeviceKernel
from nbgrad.errors import DeviceError

GIB, LARGE = 1 << 30, 2 << 20
Result = enum.IntEnum(
    "Result",
    {
        "CUDA_SUCCESS": 0,
        "CUDA_ERROR_INVALID_VALUE": 1,
        "CUDA_ERROR_OUT_OF_MEMORY": 2,
        "CUDA_ERROR_NOT_INITIALIZED": 3,
        "CUDA_ERROR_STUB_LIBRARY": 34,
        "CUDA_ERROR_NO_DEVICE": 100,
        "CUDA_ERROR_INVALID_IMAGE": 200,
        "CUDA_ERROR_INVALID_PTX": 218,
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": 222,
        "CUDA_ERROR_ILLEGAL_ADDRESS": 700,
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": 701,
        "CUDA_ERROR_MISALIGNED_ADDRESS": 716,
        "CUDA_ERROR_LAUNCH_FAILED": 719,
        "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": 900,
    },
)


class Names:
    """An enumeration that has every name."""

    def __getattr__(self, name):
        return name


class FakeCuda:
    """cuda.bindings.driver: writes down calls, and fails as it is told.

    `fails[name]` is a list of results, one for each call of the function: None for success.
    """

    CUresult = Result
    CUdevice_attribute = CUmemPool_attribute = CUpointer_attribute = Names()
    CUjit_option = CUfunction_attribute = CUstreamCaptureMode = CUdriverProcAddress_flags = Names()
    CUmemorytype = types.SimpleNamespace(CU_MEMORYTYPE_DEVICE=2)
    cuuint64_t = int
    ATTRIBUTES = types.MappingProxyType(
        {
            "COMPUTE_CAPABILITY_MAJOR": 9,
            "COMPUTE_CAPABILITY_MINOR": 0,
            "MULTIPROCESSOR_COUNT": 132,
            "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 227 * 1024,
            "MEMORY_POOLS_SUPPORTED": 1,
        }
    )
    NUMBERS = types.MappingProxyType(
        {
            "cuDriverGetVersion": 13000,
            "cuDeviceGetCount": 2,
            "cuDeviceTotalMem": 80 * GIB,
            "cuDeviceGetDefaultMemPool": 70,
            "cuMemPoolGetAttribute": 0,
            "cuModuleLoadDataEx": 80,
            "cuGetProcAddress": 0x1234,
            "cuStreamEndCapture": 90,
            "cuGraphInstantiate": 91,
            "cuStreamCreate": 60,
            "cuEventCreate": 50,
            "cuMemAllocFromPoolAsync": 0x7000,
            "cuMemAlloc": 0x6000,
            "cuPointerGetAttribute": 2,
        }
    )

    def __init__(self, **changed):
        self.log = []
        self.fails = {}
        self.current = 0
        self.functions = 100
        self.attributes = {**self.ATTRIBUTES, **changed.pop("attributes", {})}
        self.numbers = {**self.NUMBERS, **changed}

    def __getattr__(self, name):
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments):
            self.log.append((name, *arguments))
            failures = self.fails.get(name)
            code = failures.pop(0) if failures else None
            if code is not None:
                return Result[f"CUDA_ERROR_{code}"], None
            return Result.CUDA_SUCCESS, *self.values(name, arguments)

        return call

    def values(self, name, arguments):
        match name:
            case "cuDeviceGet":
                return (arguments[0],)
            case "cuDeviceGetName":
                return (b"NVIDIA H200\0\0\0",)
            case "cuDeviceGetAttribute":
                return (self.attributes[arguments[0].removeprefix("CU_DEVICE_ATTRIBUTE_")],)
            case "cuDevicePrimaryCtxRetain":
                return (1000 + arguments[0],)
            case "cuCtxGetCurrent":
                return (self.current,)
            case "cuCtxSetCurrent":
                self.current = arguments[0]
                return ()
            case "cuModuleGetFunction":
                self.functions += 1
                return (self.functions,)
            case "cuMemGetInfo":
                return (3 * GIB, 80 * GIB)
            case "cuStreamGetCtx":
                return (1001 if arguments[0] >= 600 else 1000,)
            case _:
                found = self.numbers.get(name, ())
                return found if found == () else (next(found) if isinstance(found, itertools.count) else found,)

    def calls(self, *names):
        """The arguments of all calls of these functions."""
        return [line for line in self.log if line[0] in names]


KERNEL = DeviceKernel("double every element", lambda: "")


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(ptx, "cubin", lambda kernel, capability: b"cubin of " + kernel.key.encode())
    monkeypatch.setattr(ptx, "ptx", lambda kernel, capability: "ptx of " + kernel.key)
    return FakeCuda()


# ----- What is missing -----


def test_no_bindings(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    with pytest.raises(DeviceError, match=r'cuda-bindings .*pip install "nbgrad\[cuda13\]"'):
        CudaDriver()


def test_no_driver():
    class NoLibrary(FakeCuda):
        def cuInit(self, flags):
            raise RuntimeError("libcuda.so.1 not found")

    with pytest.raises(DeviceError, match=r"no NVIDIA driver on this machine .*libcuda.so.1 not found"):
        CudaDriver(NoLibrary())


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("NO_DEVICE", r"finds no GPU \(CUDA_ERROR_NO_DEVICE\)\. The variable CUDA_VISIBLE_DEVICES is '-1'"),
        ("STUB_LIBRARY", r"cannot be started: CUDA_ERROR_STUB_LIBRARY"),
    ],
)
def test_cannot_start(fake, monkeypatch, code, text):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    fake.fails["cuInit"] = [code]
    with pytest.raises(DeviceError, match=text):
        CudaDriver(fake)


@pytest.mark.parametrize(
    ("driver", "bindings", "text"),
    [
        (12040, "13.0.1", r'supports CUDA 12\.4, but cuda-bindings 13\.0\.1 .*pip install "nbgrad\[cuda12\]"'),
        (11080, "12.9.0", r"supports CUDA 11\.8; nbgrad needs 12\.0 or newer"),
    ],
)
def test_old_driver(driver, bindings, text):
    with pytest.raises(DeviceError, match=text):
        CudaDriver(FakeCuda(cuDriverGetVersion=driver), bindings)


@pytest.mark.parametrize("bindings", ["12.9.0", "13.0.1"])
def test_new_driver(bindings):
    assert CudaDriver(FakeCuda(), bindings).version == (13, 0)


def test_on_a_machine_without_a_gpu_cpu_work_goes_on():
    code = """
import numpy as np, nbgrad as nb
from nbgrad.device.driver.cuda_driver import CudaDriver
try:
    CudaDriver()
except nb.errors.DeviceError as error:
    assert "driver" in str(error) or "cuda-bindings" in str(error), error
print(nb.grad(lambda x: (x * x).sum())(np.array([1.5])))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[3.]\n"


# ----- Devices -----


def test_properties(fake):
    driver = CudaDriver(fake)
    assert driver.count() == 2
    assert driver.properties(1) == ("NVIDIA H200", (9, 0), 132, 80 * GIB, 227 * 1024, (13, 0))


def test_contexts_are_primary_and_start_late(fake):
    driver = CudaDriver(fake)
    assert not fake.calls("cuDevicePrimaryCtxRetain")
    driver.use(1)
    driver.use(1)
    assert fake.calls("cuDevicePrimaryCtxRetain", "cuCtxSetCurrent") == [
        ("cuDevicePrimaryCtxRetain", 1),
        ("cuCtxSetCurrent", 1001),
    ]
    fake.current = 77  # another library's context
    driver.use(1)
    assert fake.current == 1001


def test_the_pool_keeps_its_memory(fake):
    CudaDriver(fake).use(0)
    assert fake.calls("cuMemPoolSetAttribute") == [
        ("cuMemPoolSetAttribute", 70, "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD", 2**64 - 1)
    ]


# ----- Memory -----


def test_memory_in_the_order_of_streams(fake):
    driver = CudaDriver(fake)
    assert driver.allocate(LARGE, 9, 0) == 0x7000
    driver.free(0x7000, 9, 0)
    assert fake.log[-1] == ("cuMemFreeAsync", 0x7000, 9)
    assert fake.calls("cuMemAllocFromPoolAsync") == [("cuMemAllocFromPoolAsync", LARGE, 70, 9)]


def test_small_blocks_are_used_again_on_their_stream(fake):
    driver = CudaDriver(fake)
    fake.numbers["cuMemAllocFromPoolAsync"] = itertools.count(0x8000, 0x1000)
    first = driver.allocate(100, 9, 0)
    free = driver.memory(0)[0]
    driver.free(first, 9, 0)
    assert driver.memory(0)[0] == free + 512, "what is kept is free"
    assert not fake.calls("cuMemFreeAsync")
    assert driver.allocate(100, 8, 0) != first, "the work on the other stream may not have ended"
    assert driver.allocate(600, 9, 0) != first
    assert driver.allocate(512, 9, 0) == first
    many = [driver.allocate(512, 9, 0) for _ in range(kept_blocks.MOST + 3)]
    for pointer in many:
        driver.free(pointer, 9, 0)
    assert len(fake.calls("cuMemFreeAsync")) == 3, "so many are not kept"


def test_small_blocks_make_room(fake):
    driver = CudaDriver(fake)
    driver.free(driver.allocate(512, 9, 0), 9, 0)
    fake.fails["cuMemAllocFromPoolAsync"] = ["OUT_OF_MEMORY"]
    assert driver.allocate(LARGE, 0, 0) == 0x7000
    assert fake.calls("cuMemFreeAsync") == [("cuMemFreeAsync", 0x7000, 9)]


def test_freeing_leaves_the_current_device(fake):
    driver = CudaDriver(fake)
    at = driver.allocate(LARGE, 0, 0)
    driver.use(1)
    driver.free(at, 0, 0)
    assert [line[1] for line in fake.calls("cuCtxSetCurrent")] == [1000, 1001, 1000, 1001]
    assert fake.current == 1001


def test_devices_without_pools():
    fake = FakeCuda(attributes={"MEMORY_POOLS_SUPPORTED": 0})
    driver = CudaDriver(fake)
    assert driver.allocate(LARGE, 9, 0) == 0x6000
    driver.free(0x6000, 9, 0)
    assert fake.log[-1] == ("cuMemFree", 0x6000)
    assert driver.memory(0) == (3 * GIB, 80 * GIB)


def test_out_of_memory_once(fake):
    fake.fails["cuMemAllocFromPoolAsync"] = ["OUT_OF_MEMORY"]
    driver = CudaDriver(fake)
    assert driver.allocate(512, 9, 0) == 0x7000
    assert [line[0] for line in fake.log[-4:]] == [
        "cuMemAllocFromPoolAsync",
        "cuStreamSynchronize",
        "cuMemPoolTrimTo",
        "cuMemAllocFromPoolAsync",
    ]


def test_out_of_memory(fake):
    fake.fails["cuMemAllocFromPoolAsync"] = ["OUT_OF_MEMORY"] * 2
    driver = CudaDriver(fake)
    with pytest.raises(DeviceError, match=r"cuda:1 is out of memory: 5 GiB were asked for, 3 GiB of 80 GiB are free"):
        driver.allocate(5 * GIB, 0, 1)
    assert driver.allocate(512, 0, 1)  # the device still works


def test_copies(fake):
    driver = CudaDriver(fake)
    driver.use(0)
    array = np.arange(20_000.0)  # too much to be kept
    at = array.ctypes.data
    del fake.log[:]
    driver.upload(0x7000, array, 9)
    driver.download(array, 0x7000, 9)
    driver.copy(0x7100, 0x7000, 24, 9)
    driver.fill(0x7000, 255, 24, 9)
    assert fake.log == [
        ("cuMemcpyHtoDAsync", 0x7000, at, 160_000, 9),
        ("cuStreamSynchronize", 9),
        ("cuMemcpyDtoHAsync", at, 0x7000, 160_000, 9),
        ("cuStreamSynchronize", 9),
        ("cuMemcpyAsync", 0x7100, 0x7000, 24, 9),
        ("cuMemsetD8Async", 0x7000, 255, 24, 9),
    ]


def test_small_uploads_do_not_wait(fake):
    driver = CudaDriver(fake)
    driver.use(0)
    array = np.arange(3.0)
    found = []

    def copy(pointer, address, nbytes, stream):
        found.append((address != array.ctypes.data, np.ctypeslib.as_array((ctypes.c_double * 3).from_address(address))))
        return (Result.CUDA_SUCCESS,)

    fake.cuMemcpyHtoDAsync = copy
    for k in range(64):
        driver.upload(0x7000, array + k, 9)
    assert not fake.calls("cuStreamSynchronize")
    # The device may read them late: each copy is still what it was.
    assert all(own for own, _ in found)
    np.testing.assert_array_equal([seen for _, seen in found], np.arange(64)[:, None] + np.arange(3.0))
    driver.upload(0x7000, array, 9)
    assert fake.calls("cuStreamSynchronize") == [("cuStreamSynchronize", 9)]
    driver.upload(0x7000, array, 9)
    assert len(fake.calls("cuStreamSynchronize")) == 1


def test_a_launch_by_native_code_that_fails(fake):
    driver = CudaDriver(fake)
    with pytest.raises(DeviceError, match="could not launch a kernel: some key: the kernel needs more registers"):
        driver.raise_launch_error(701, "some key")


def test_owner_of(fake):
    driver = CudaDriver(fake)
    driver.use(0)
    fake.fails["cuPointerGetAttribute"] = ["INVALID_VALUE"]
    assert driver.owner_of(123) is None
    assert driver.owner_of(0x7000) == 2
    fake.numbers["cuPointerGetAttribute"] = 1  # pinned memory of the host
    assert driver.owner_of(0x5000) is None


# ----- Kernels -----


def test_kernels_are_loaded_once_for_each_device(fake):
    driver = CudaDriver(fake)
    first = driver.function(KERNEL, 0)
    assert driver.function(KERNEL, 0) == first
    assert driver.function(KERNEL, 1) != first
    images = [line[1] for line in fake.calls("cuModuleLoadDataEx")]
    assert images == [b"cubin of double every element"] * 2
    assert fake.calls("cuModuleGetFunction")[0] == ("cuModuleGetFunction", 80, b"kernel")


def test_shared_memory_is_asked_for(fake):
    driver = CudaDriver(fake)
    driver.function(KERNEL, 0, 48 * 1024)
    assert not fake.calls("cuFuncSetAttribute")
    for _ in range(2):
        driver.function(KERNEL, 0, 100_000)
    driver.function(KERNEL, 0, 50_000)
    assert [line[-1] for line in fake.calls("cuFuncSetAttribute")] == [100_000]
    with pytest.raises(DeviceError, match=r"needs 300000 bytes of shared memory; cuda:0 has 232448: double every"):
        driver.function(KERNEL, 0, 300_000)


def test_machine_code_that_is_too_new_is_compiled_by_the_driver(fake):
    fake.fails["cuModuleLoadDataEx"] = ["INVALID_IMAGE"]
    assert CudaDriver(fake).function(KERNEL, 0)
    assert fake.calls("cuModuleLoadDataEx")[-1][1] == b"ptx of double every element\0"


def test_errors_of_the_driver_s_compiler_are_shown(fake, monkeypatch):
    class Refuses(FakeCuda):
        def cuModuleLoadDataEx(self, image, count, options, values):
            said = b"ptxas error: line 3"
            values[0][: len(said)] = said
            return Result.CUDA_ERROR_INVALID_PTX, None

    monkeypatch.setattr(ptx, "cubin", lambda kernel, capability: "ptx")
    with pytest.raises(DeviceError, match=r"does not accept the PTX.*supports CUDA 13\.0.*double every.*line 3"):
        CudaDriver(Refuses()).function(KERNEL, 0)


def test_old_driver_for_ptx(fake):
    fake.fails["cuModuleLoadDataEx"] = ["UNSUPPORTED_PTX_VERSION"] * 2
    with pytest.raises(
        DeviceError, match=r"too old for this version of PTX.*supports CUDA 13\.0; the PTX has version 8\.0"
    ):
        CudaDriver(fake).function(KERNEL, 0)


def test_launch(fake):
    driver = CudaDriver(fake)
    function = driver.function(KERNEL, 0)
    seen = []

    def launch(*arguments):
        extra = np.ctypeslib.as_array((ctypes.c_uint64 * 5).from_address(arguments[-1])).tolist()
        size = ctypes.c_uint64.from_address(extra[3]).value
        words = np.ctypeslib.as_array((ctypes.c_uint64 * (size // 8)).from_address(extra[1])).tolist()
        seen.append((arguments[:-1], extra[0], extra[2], extra[4], words))
        return (Result.CUDA_SUCCESS,)

    fake.cuLaunchKernel = launch
    driver.launch(function, 7, 256, 64, np.array([0x7000, 0x7100, 5], np.int64), 9)
    assert seen == [((function, 7, 1, 1, 256, 1, 1, 64, 9, 0), 1, 2, 0, [0x7000, 0x7100, 5])]
    assert driver.launch_address == 0x1234


def test_a_launch_that_cannot_be(fake):
    driver = CudaDriver(fake)
    function = driver.function(KERNEL, 0)
    fake.fails["cuLaunchKernel"] = ["INVALID_VALUE"]
    with pytest.raises(DeviceError, match=r"launch 7 blocks of 4096 threads with 64 shared bytes: double every.*range"):
        driver.launch(function, 7, 4096, 64, np.zeros(1, np.int64), 9)
    driver.synchronise(9)


@pytest.mark.parametrize("code", ["ILLEGAL_ADDRESS", "MISALIGNED_ADDRESS", "LAUNCH_FAILED"])
def test_a_kernel_that_faults(fake, code):
    driver = CudaDriver(fake)
    other = DeviceKernel("another", lambda: "")
    for kernel in (KERNEL, other, KERNEL):
        driver.launch(driver.function(kernel, 0), 1, 32, 0, np.zeros(1, np.int64), 9)
    fake.fails["cuStreamSynchronize"] = [code]
    text = rf"cuda:0 has failed: .*CUDA_ERROR_{code}.*last kernels did it: double every element, another\. "
    with pytest.raises(DeviceError, match=text):
        driver.synchronise(9)
    del fake.log[:]
    for use in (
        lambda: driver.use(0),
        lambda: driver.synchronise(9),
        lambda: driver.allocate(8, 0, 0),
        lambda: driver.free(0x7000, 0, 0),
        lambda: driver.upload(0x7000, np.zeros(1), 9),
        lambda: driver.download(np.zeros(1), 0x7000, 9),
        lambda: driver.function(KERNEL, 0),
        lambda: driver.launch(101, 1, 32, 0, np.zeros(1, np.int64), 9),
        lambda: driver.wait(9, 10),
        lambda: driver.new_stream(0),
        lambda: driver.launch_graph(91, 9),
    ):
        with pytest.raises(DeviceError, match=text):
            use()
    assert not fake.log, "nothing more is asked of a device that has failed"
    driver.use(1)
    assert driver.allocate(8, 0, 1) == 0x7000, "other devices work on"


def test_kernels_that_are_known_to_be_done_are_not_named(fake):
    driver = CudaDriver(fake)
    driver.launch(driver.function(KERNEL, 0), 1, 32, 0, np.zeros(1, np.int64), 9)
    driver.synchronise(9)
    driver.launch(driver.function(DeviceKernel("later", lambda: ""), 0), 1, 32, 0, np.zeros(1, np.int64), 9)
    fake.fails["cuStreamSynchronize"] = ["ILLEGAL_ADDRESS"]
    with pytest.raises(DeviceError, match=r"did it: later\."):
        driver.synchronise(9)


def test_kernels_that_native_code_has_launched_are_named(fake):
    driver = CudaDriver(fake)
    driver.use(0)
    driver.note(("first", "second" * 100))
    fake.fails["cuStreamSynchronize"] = ["ILLEGAL_ADDRESS"]
    with pytest.raises(DeviceError, match=r"did it: first, (second){33}se\."):
        driver.synchronise(9)


def test_after_a_fork(fake, monkeypatch):
    driver = CudaDriver(fake)
    monkeypatch.setattr(driver, "_process", -1)
    fake.fails["cuDevicePrimaryCtxRetain"] = ["NOT_INITIALIZED"]
    with pytest.raises(DeviceError, match="forked after CUDA was started"):
        driver.use(0)


# ----- Streams and graphs -----


def test_waiting_reuses_events(fake):
    driver = CudaDriver(fake)
    driver.use(0)
    for _ in range(3):
        driver.wait(9, 10)
    assert fake.calls("cuEventCreate") == [("cuEventCreate", 2)]
    assert fake.log[-2:] == [("cuEventRecord", 50, 10), ("cuStreamWaitEvent", 9, 50, 0)]


def test_waiting_for_another_device(fake):
    driver = CudaDriver(fake)
    driver.use(1)
    driver.use(0)
    del fake.log[:]
    driver.wait(9, 600)
    done = fake.calls("cuCtxSetCurrent", "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent")
    assert done == [
        ("cuCtxSetCurrent", 1001),
        ("cuEventCreate", 2),
        ("cuEventRecord", 50, 600),
        ("cuStreamWaitEvent", 9, 50, 0),
        ("cuCtxSetCurrent", 1000),
    ]


def test_streams_do_not_wait_for_the_default_stream(fake):
    driver = CudaDriver(fake)
    stream = driver.new_stream(0)
    driver.free_stream(stream)
    assert fake.log[-2:] == [("cuStreamCreate", 1), ("cuStreamDestroy", 60)]


def test_graphs(fake):
    driver = CudaDriver(fake)
    stream = driver.new_stream(0)
    del fake.log[:]
    driver.begin_capture(stream)
    graph = driver.end_capture(stream)
    driver.launch_graph(graph, stream)
    driver.free_graph(graph)
    assert fake.log == [
        ("cuStreamBeginCapture", 60, "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL"),
        ("cuStreamEndCapture", 60),
        ("cuGraphInstantiate", 90, 0),
        ("cuGraphDestroy", 90),
        ("cuGraphLaunch", 91, 60),
        ("cuGraphExecDestroy", 91),
    ]


def test_what_cannot_be_in_a_graph(fake):
    driver = CudaDriver(fake)
    driver.use(0)
    fake.fails["cuStreamEndCapture"] = ["STREAM_CAPTURE_UNSUPPORTED"]
    with pytest.raises(DeviceError, match="could not end a CUDA graph: this cannot be part of a CUDA graph"):
        driver.end_capture(60)


# ----- The real package -----


def test_every_name_exists_in_the_package():
    """All functions and enumerators that are used are there in cuda.bindings."""
    bindings = pytest.importorskip("cuda.bindings.driver")
    import inspect
    import re

    source = inspect.getsource(cuda_driver)
    for name in set(re.findall(r"cuda\.(cu\w+|CU\w+)", source)):
        assert hasattr(bindings, name), name
    for kind in ("CUmemPool_attribute", "CUpointer_attribute", "CUfunction_attribute", "CUjit_option", "CUmemorytype"):
        prefix = next(iter(getattr(bindings, kind))).name.split("_")[1]
        for name in set(re.findall(rf"\.(CU_{prefix}_\w+)", source)):
            assert hasattr(getattr(bindings, kind), name), name
    for name in cuda_driver.ATTRIBUTES.values():
        assert hasattr(bindings.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), name
    codes = {code.name for code in bindings.CUresult}
    newer = {"CUDA_ERROR_TENSOR_MEMORY_LEAK", "CUDA_ERROR_CONTAINED"}
    assert cuda_errors.STICKY | cuda_errors.UNREADABLE | cuda_errors.MEANINGS.keys() <= codes | newer


@pytest.mark.gpu
def test_round_trip_on_a_device():
    driver = CudaDriver()
    driver.use(0)
    array = np.arange(1000.0)
    at = driver.allocate(array.nbytes, 0, 0)
    driver.upload(at, array, 0)
    found = np.empty_like(array)
    driver.download(found, at, 0)
    assert driver.owner_of(at) == 0
    driver.free(at, 0, 0)
    np.testing.assert_array_equal(found, array)
