"""Streams, memory and settings of devices: `nb.cuda`, in the simulator."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.device import exchange
from nbgrad.device.memory import arrays, pools, streams
from nbgrad.errors import ArgumentError, DeviceError, DtypeError

from . import device_foreign
from .device_foreign import A

simulated = device_foreign.simulated

# ----- Streams -----


class Protocol:
    def __init__(self, told: Any) -> None:
        self.told = told

    def __cuda_stream__(self) -> Any:
        return self.told


STREAMS: dict[str, Callable[[int], Any]] = {
    "handle": lambda h: h,
    "protocol": lambda h: Protocol((0, h)),
    "PyTorch": lambda h: SimpleNamespace(cuda_stream=h, device=SimpleNamespace(index=0)),
    "CuPy": lambda h: SimpleNamespace(ptr=h, device_id=-1),
    "Numba": lambda h: SimpleNamespace(handle=SimpleNamespace(value=h)),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams_of_other_libraries(name):
    own = nb.cuda.Stream()
    with nb.cuda.stream(STREAMS[name](own.handle)) as current:
        assert nb.cuda.current_stream() == own.handle and current is not None
        y = nb.Tensor(A, device="cuda") * 2
        np.testing.assert_allclose(y.asnumpy(), 2 * A)
        assert y._node.value.stream == own.handle
    assert nb.cuda.current_stream() == 0
    np.testing.assert_allclose((y + 1).asnumpy(), 2 * A + 1)


def test_default_streams():
    for default in (None, 0, 1, SimpleNamespace(ptr=0), SimpleNamespace(handle=SimpleNamespace(value=None))):
        with nb.cuda.stream(nb.cuda.Stream()), nb.cuda.stream(default):
            assert nb.cuda.current_stream() == 0
    with nb.cuda.stream(2):
        assert nb.cuda.current_stream() == 2


@pytest.mark.parametrize(
    "wrong", ["default", 1.5, True, -3, object(), Protocol(7), Protocol((1, 2)), SimpleNamespace(ptr="x")]
)
def test_wrong_streams(wrong):
    with pytest.raises(ArgumentError, match=r"[Ss]tream"), nb.cuda.stream(wrong):
        pass
    with pytest.raises(ArgumentError, match=r"[Ss]tream"):
        nb.Tensor(A).to_device("cuda", stream=wrong)


def test_streams_that_are_gone_are_still_valid():
    with nb.cuda.stream(nb.cuda.Stream()):
        y = nb.Tensor(A, device="cuda") * 2
        str(y)
    gc.collect()
    np.testing.assert_allclose((y + 1).asnumpy(), 2 * A + 1)
    del y
    gc.collect()
    assert nb.cuda.Stream().handle


def test_streams_of_devices():
    stream = nb.cuda.Stream("cuda:1")
    assert stream.device == "cuda:1" and "cuda:1" in repr(stream)
    with nb.cuda.stream(stream):
        assert nb.cuda.current_stream("cuda:1") == stream.handle and nb.cuda.current_stream() == 0
    stream.synchronize()
    nb.cuda.synchronize()
    nb.cuda.synchronize("cuda:1")


# ----- Memory and settings -----


def test_allocators(simulated):
    device, taken, given = nb.cuda.device(), [], []

    class Block:
        def __init__(self, pointer: int) -> None:
            self.pointer = pointer

        def __del__(self) -> None:
            given.append(self.pointer)

    def allocate(nbytes: int, stream: int) -> tuple[int, Any]:
        pointer = simulated.allocate(nbytes, stream, 0)
        taken.append((pointer, stream))
        return pointer, Block(pointer)

    nb.cuda.set_allocator(allocate)
    try:
        x = nb.Tensor(A, device="cuda")
        assert x._node.value.pointer == taken[0][0]
        stream = nb.cuda.Stream()
        with nb.cuda.stream(stream):
            str(x * 2)
        assert stream.handle in [one for _, one in taken]
        del x
        gc.collect()
        assert taken[0][0] in given
        for wrong in (3, "pool"):
            with pytest.raises(DtypeError):
                nb.cuda.set_allocator(wrong)  # type: ignore[arg-type]
    finally:
        nb.cuda.set_allocator(None)
    count = len(taken)
    str(nb.Tensor(A, device="cuda"))
    assert len(taken) == count and arrays._allocators.get(device) is None


def test_pools(monkeypatch, simulated):
    calls: list[Any] = []

    def caching_alloc(nbytes: int, device: int, stream: int) -> int:
        calls.append((nbytes, device, stream))
        return simulated.allocate(nbytes, stream, device)

    monkeypatch.setattr(sys.modules["torch"].cuda, "caching_allocator_alloc", caching_alloc, raising=False)
    monkeypatch.setattr(
        sys.modules["torch"].cuda,
        "caching_allocator_delete",
        lambda pointer: (calls.append(pointer), simulated.free(pointer, 0, 0)),
        raising=False,
    )
    nb.cuda.use_pool("torch")
    try:
        x = nb.Tensor(A, device="cuda")
        assert calls == [(A.nbytes, 0, 0)]
        pointer = x._node.value.pointer
        del x
        gc.collect()
        assert calls[-1] == pointer
    finally:
        nb.cuda.use_pool(None)
    assert set(pools.POOLS) == {"cupy", "torch", "rmm"}
    with pytest.raises(ArgumentError, match="cupy, torch, rmm"):
        nb.cuda.use_pool("jemalloc")
    monkeypatch.setitem(sys.modules, "rmm", None)
    with pytest.raises(DeviceError, match="rmm"):
        nb.cuda.use_pool("rmm")


def test_what_there_is():
    assert nb.cuda.is_available() and nb.cuda.device_count() == 2 and nb.cuda.current_device() == "cuda:0"
    assert nb.cuda.get_device_properties(1).memory == nb.cuda.memory_info("cuda:1")[1]
    for wrong in ("cuda:2", "cpu", None):
        with pytest.raises(ArgumentError):
            nb.cuda.get_device_properties(wrong)


def test_settings():
    from nbgrad.device.kernels.settings import SETTINGS

    for set_it, name in ((nb.cuda.allow_tf32, "allow_tf32"), (nb.cuda.deterministic, "deterministic")):
        set_it(True)
        assert getattr(SETTINGS, name) is True
        set_it(False)
        assert getattr(SETTINGS, name) is False
        with pytest.raises(DtypeError, match=name):
            set_it(1)  # type: ignore[arg-type]


def test_importing_nbgrad_and_using_the_cpu_load_nothing_of_this():
    import subprocess

    code = (
        "import sys, numpy as np, nbgrad as nb; nb.jit(nb.grad(lambda x: (x * x).sum()))(nb.Tensor([1.0, 2.0]));"
        "names = ('nbgrad.device.', 'nbgrad.cuda', 'cuda', 'nbgrad.runtime.device');"
        "print([m for m in sys.modules if m.startswith(names)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "[]"


def test_the_table_of_libraries():
    for module, name, options in exchange.MAKERS.values():
        assert module and name and isinstance(options, dict)
    assert streams.number_of(0) == 1 and streams.number_of(7) == 7
