"""Kernels for NVIDIA GPUs: the dialect's IR to PTX by LLVM, and PTX to machine code by NVIDIA's linker.

In: a `DeviceKernel` and a capability such as (9, 0). Out: PTX, or a cubin where the library nvJitLink is installed; the
driver takes either. Both are kept on disk, so that a second process compiles nothing. Called by cuda_driver.py; works
on machines without a GPU.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from ...compiler import cache as disk
from ...compiler.passes import emitted, parsed, run_passes
from ...errors import DeviceError
from ...process.locks import building
from ...process.side_by_side import SideBySide
from .dialect import FOR_GPU
from .launches import DeviceKernel

SYMBOL = "kernel"
"""The name of every kernel in its PTX and cubin."""
PTX_VERSIONS = {(7, 5): 70, (8, 0): 70, (8, 6): 71, (8, 9): 78, (9, 0): 80, (10, 0): 86, (10, 3): 88, (12, 0): 87}
"""The lowest version of PTX that is written for a capability: drivers read theirs and older ones."""


@cache
def _sources() -> str:
    """A digest of all that turns loops into kernels for devices; that of the compiler below it is in every key."""
    total = hashlib.sha256()
    for folder in (Path(__file__).resolve().parent, disk.kernels_folder(), disk.kernels_folder() / "gpu"):
        for path in sorted(folder.glob("*.py")):
            total.update(path.name.encode() + path.read_bytes())
    return total.hexdigest()


class Target(NamedTuple):
    """LLVM's target: a GPU that it knows, and the version of PTX (80 is 8.0)."""

    processor: str
    version: int


@cache
def target_of(capability: tuple[int, int]) -> Target:
    """The newest target that runs on a device.

    Raises
    ------
    DeviceError
        For devices older than sm_75 (Turing, 2018), which CUDA 13 does not know either.
    """
    fits = [known for known in PTX_VERSIONS if known <= capability]
    if not fits:
        major, minor = capability
        message = f"This device is sm_{major}{minor}; nbgrad's kernels need sm_75 (Turing, 2018) or newer."
        raise DeviceError(message)
    best = max(fits)
    return Target(f"sm_{best[0]}{best[1]}", PTX_VERSIONS[best])


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


class _Machines(threading.local):
    """The machines of a thread: LLVM lets no two threads use one."""

    def __init__(self) -> None:
        self.made: dict[Target, llvm.TargetMachine] = {}


_machines = _Machines()


def _machine(target: Target) -> llvm.TargetMachine:
    found = _machines.made.get(target)
    if found is None:
        _initialize()
        found = _machines.made[target] = llvm.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine(
            cpu=target.processor, features=f"+ptx{target.version}", opt=3
        )
    return found


def compile_ptx(text: str, capability: tuple[int, int]) -> str:
    """PTX of a kernel's IR."""
    machine = _machine(target_of(capability))
    for step in FOR_GPU:
        text = step.run(text)
    module = parsed(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    # Threads are the vectors here.
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    run_passes(builder.getModulePassManager(), module, builder)
    return emitted(module, machine, text=True).decode()


def _name_of_ptx(kernel: DeviceKernel, capability: tuple[int, int]) -> str:
    return disk.digest("ptx", _sources(), kernel.key, *map(str, target_of(capability)))


def _name_of_cubin(kernel: DeviceKernel, capability: tuple[int, int]) -> str:
    major, minor = capability
    return disk.digest("cubin", _sources(), kernel.key, f"sm_{major}{minor}")


def ptx(kernel: DeviceKernel, capability: tuple[int, int]) -> str:
    """PTX of a kernel: from the disk, or compiled now."""
    name = _name_of_ptx(kernel, capability)
    found = disk.load_text("ptx", name)
    if found is None:
        with building.held():
            found = compile_ptx(kernel.make(), capability)
        disk.counters["compiled"] += 1
        disk.store_text("ptx", name, found)
    return found


def cubin(kernel: DeviceKernel, capability: tuple[int, int]) -> bytes | str:
    """Machine code of a kernel, from the disk or compiled now; PTX where nvJitLink is not installed.

    Raises
    ------
    DeviceError
        With the linker's own words, if it refuses a kernel.
    """
    if _linker() is None:
        return ptx(kernel, capability)
    name = _name_of_cubin(kernel, capability)
    found = _ahead.pop(name, None) or disk.load("cubin", name)
    if found is None:
        found, _ = link(ptx(kernel, capability), capability)
        disk.store("cubin", name, found)
    return found


_ahead: dict[str, bytes] = {}
"""Machine code that was compiled for a program, and not loaded yet."""


def compile_ahead(kernels: Iterable[DeviceKernel], capability: tuple[int, int], threads: int) -> None:
    """Compile what a program needs by several threads; `cubin` finds it then.

    Each thread has contexts and machines of its own, as in nbgrad/compiler/cpu.py. Without nvJitLink, the driver
    compiles, and nothing is done here.
    """
    if threads < 2 or _linker() is None:
        return
    missing: dict[str, DeviceKernel] = {}
    for kernel in dict.fromkeys(kernels):
        name = _name_of_cubin(kernel, capability)
        known = _ahead.get(name) or disk.load("cubin", name)
        if known is None:
            missing[name] = kernel
        else:
            _ahead[name] = known
    if len(missing) < 2:
        return

    def compiled(text: str | None, ir: str) -> tuple[str, bytes]:
        text = compile_ptx(ir, capability) if text is None else text
        return text, link(text, capability)[0]

    # Threads must not go on after an interrupt, when the lock is open.
    with building.held(), SideBySide(min(threads, len(missing)), "nbgrad compiles") as pool:
        later = {}
        for name, kernel in missing.items():
            text = disk.load_text("ptx", _name_of_ptx(kernel, capability))
            later[name] = text, pool.begin(compiled, text, kernel.make() if text is None else "")
        for name, (known, result) in later.items():
            text, _ahead[name] = result()
            disk.counters["compiled"] += known is None
            disk.store("cubin", name, _ahead[name])
            if known is None:
                disk.store_text("ptx", _name_of_ptx(missing[name], capability), text)


def link(text: str, capability: tuple[int, int]) -> tuple[bytes, str]:
    """PTX to a cubin, and what the linker reports of it (registers, memory).

    Raises
    ------
    DeviceError
        If nvJitLink is not installed, or refuses the PTX.
    """
    library = _linker()
    if library is None:
        message = 'nvJitLink is not installed: pip install "nbgrad[cuda13]" (or cuda12, by the driver).'
        raise DeviceError(message)
    data = text.encode()
    handle = library.create(2, [f"-arch=sm_{capability[0]}{capability[1]}", "-verbose"])
    try:
        library.add_data(handle, library.InputType.PTX, data, len(data), "kernel")
        library.complete(handle)
        code = bytearray(library.get_linked_cubin_size(handle))
        library.get_linked_cubin(handle, code)
        return bytes(code), _log(library.get_info_log_size, library.get_info_log, handle)
    except library.nvJitLinkError as error:
        said = _log(library.get_error_log_size, library.get_error_log, handle)
        message = f"The linker refuses a kernel of nbgrad for sm_{capability[0]}{capability[1]}: {error}. {said}"
        raise DeviceError(message) from error
    finally:
        library.destroy(handle)


def _log(size: Any, read: Any, handle: int) -> str:
    data = bytearray(size(handle))
    if data:
        read(handle, data)
    return bytes(data).rstrip(b"\0").decode(errors="replace")


@cache
def _linker() -> Any:
    """The bindings of nvJitLink; None if they, or the library, are not installed."""
    try:
        from cuda.bindings import nvjitlink  # pyright: ignore[reportAttributeAccessIssue]

        nvjitlink.version()
    except Exception:
        # Not installed, or installed without the library: each version of the bindings says so in its own way.
        return None
    return nvjitlink


class Report(NamedTuple):
    """The linker's report on a kernel, per thread: registers, bytes of local memory, bytes spilled."""

    registers: int
    stack: int
    spilled: int


def report(log: str) -> Report:
    """The numbers in the linker's report."""

    def number(pattern: str) -> int:
        found = re.findall(pattern, log)
        return max(map(int, found), default=0)

    return Report(number(r"Used (\d+) registers"), number(r"(\d+) bytes stack"), number(r"(\d+) bytes spill"))
