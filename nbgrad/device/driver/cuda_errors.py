"""Messages for the driver's error codes: sentences that tell a user the fault and the way out.

In: the name of an error code, and the action that failed. Out: a message. Called by cuda_driver.py and libraries.py.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

EXTRAS = 'pip install "nbgrad[cuda13]" (for drivers of CUDA 13) or "nbgrad[cuda12]"'
"""The command that installs everything that the CUDA target needs besides the driver."""

LEAST_VERSION = (12, 0)
"""The oldest driver: that of CUDA 12.0."""

STICKY = frozenset(
    f"CUDA_ERROR_{name}"
    for name in (
        "ILLEGAL_ADDRESS MISALIGNED_ADDRESS INVALID_ADDRESS_SPACE INVALID_PC ILLEGAL_INSTRUCTION LAUNCH_FAILED "
        "LAUNCH_TIMEOUT HARDWARE_STACK_ERROR ASSERT ECC_UNCORRECTABLE NVLINK_UNCORRECTABLE CONTEXT_IS_DESTROYED "
        "CONTAINED TENSOR_MEMORY_LEAK EXTERNAL_DEVICE"
    ).split()
)
"""Errors after which a context is of no more use."""

FORKED = (
    "CUDA does not work in a process that was forked after CUDA was started: start workers by "
    'multiprocessing.get_context("spawn").'
)

UNREADABLE = frozenset(
    f"CUDA_ERROR_{name}" for name in "INVALID_IMAGE NO_BINARY_FOR_GPU UNSUPPORTED_PTX_VERSION NOT_SUPPORTED".split()
)
"""Error codes of a driver for machine code or PTX that is newer than the driver."""

MEANINGS = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": "a kernel has read or written memory that is not its own",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "a kernel has used an address that is not aligned",
    "CUDA_ERROR_LAUNCH_FAILED": "a kernel has failed while it ran",
    "CUDA_ERROR_LAUNCH_TIMEOUT": "a kernel has run longer than a device with a screen allows",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": "a kernel has met an instruction that the device does not know",
    "CUDA_ERROR_ASSERT": "an assertion in a kernel has failed",
    "CUDA_ERROR_ECC_UNCORRECTABLE": "the device's memory has an error that cannot be corrected",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED": "something has reset the device",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "the kernel needs more registers or shared memory than a block may have",
    "CUDA_ERROR_INVALID_VALUE": "an argument is out of range",
    "CUDA_ERROR_INVALID_HANDLE": "a stream, event or function does not exist, or belongs to another device",
    "CUDA_ERROR_INVALID_CONTEXT": "no context of the device is current",
    "CUDA_ERROR_NOT_INITIALIZED": "the driver was not started in this process",
    "CUDA_ERROR_DEINITIALIZED": "the process is ending, and the driver has ended already",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "the driver is too old for this version of PTX: install a newer driver",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "the driver is too old for this machine code: install a newer driver",
    "CUDA_ERROR_INVALID_PTX": "the driver does not accept the PTX",
    "CUDA_ERROR_JIT_COMPILER_NOT_FOUND": (
        f"the driver comes without its compiler (libnvidia-ptxjitcompiler): install nvJitLink, {EXTRAS}"
    ),
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": "this cannot be part of a CUDA graph",
    "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED": "what was being collected into a CUDA graph has failed before",
    "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT": "the default stream cannot take part in a CUDA graph",
    "CUDA_ERROR_STREAM_CAPTURE_ISOLATION": "a CUDA graph would depend on work outside it",
    "CUDA_ERROR_STREAM_CAPTURE_UNJOINED": "a stream that takes part in a CUDA graph was not waited for",
    "CUDA_ERROR_DEVICE_UNAVAILABLE": "another process uses the device exclusively",
    "CUDA_ERROR_OUT_OF_MEMORY": "there is not enough memory",
}


def meaning(code: str) -> str:
    """The meaning of an error code, in words if there are better ones than its name."""
    known = MEANINGS.get(code)
    return f"{known} ({code})" if known else code


def no_bindings(error: Exception) -> str:
    """The Python package of the driver's functions is missing."""
    return f"CUDA needs the Python package cuda-bindings ({error}): {EXTRAS}."


def no_driver(error: Exception) -> str:
    """There is no libcuda."""
    return (
        f"There is no NVIDIA driver on this machine ({type(error).__name__}: {error}). Install the driver (libcuda), "
        "or, in a container, start it with access to GPUs. Everything else of nbgrad works without."
    )


def not_started(code: str) -> str:
    """`cuInit` has failed."""
    if code in ("CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_INVALID_DEVICE"):
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        hint = "" if visible is None else f" The variable CUDA_VISIBLE_DEVICES is {visible!r}."
        return f"The NVIDIA driver finds no GPU ({code}).{hint}"
    if code in ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"):
        return (
            f"The NVIDIA driver's library and its kernel module do not fit ({code}): restart the machine or reinstall."
        )
    return f"The NVIDIA driver cannot be started: {meaning(code)}."


def driver_too_old(driver: tuple[int, int], bindings: str) -> str:
    """The message about a driver that is too old for nbgrad, or for the installed bindings."""
    supports = f"The NVIDIA driver supports CUDA {driver[0]}.{driver[1]}"
    if driver < LEAST_VERSION:
        return f"{supports}; nbgrad needs {LEAST_VERSION[0]}.{LEAST_VERSION[1]} or newer: install a newer driver."
    return (
        f"{supports}, but cuda-bindings {bindings} is installed, for CUDA {bindings.partition('.')[0]}: install "
        f'a newer driver, or what fits this one: pip install "nbgrad[cuda{driver[0]}]".'
    )


def device_lost(device: int, code: str, kernels: Sequence[str]) -> str:
    """A kernel, or the device itself, has failed for good."""
    suspects = f" One of the last kernels did it: {', '.join(kernels)}." if kernels else ""
    return (
        f"cuda:{device} has failed: {meaning(code)}.{suspects} This process can not use the device any more, and what "
        "was on it is lost; work on the CPU, or on other devices, goes on."
    )


def readable(nbytes: int) -> str:
    """A number of bytes."""
    size, unit = float(nbytes), "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.3g} {unit}"
