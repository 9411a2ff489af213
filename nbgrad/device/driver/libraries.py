"""cuBLAS, cuSOLVER and NCCL: their routines by name, as C declares them.

In: "cublas", "cusolver" or "nccl". Out: a `Library`, whose `call` calls a routine with numbers and addresses and raises
errors, and whose `on` gives the library's handle for work on a stream. `open_library` finds NVIDIA's libraries;
simulated_libraries.py and simulated_nccl.py have the same routines on the host. Called by the drivers
(`Driver.library`), library_products.py, solvers.py, library_decompositions.py and nbgrad.mpi.

The first two count columns first: a matrix in C order is to them the transposed one. NCCL has a handle for each group
of processes, which `nbgrad.mpi` keeps.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from ...errors import DeviceError, LibraryError
from ...process.locks import ForkSafeLock
from .cuda_errors import EXTRAS

PACKAGES = {
    "cublas": "nvidia-cublas (CUDA 13) or nvidia-cublas-cu12",
    "cusolver": "nvidia-cusolver (CUDA 13) or nvidia-cusolver-cu12",
    "nccl": "nvidia-nccl-cu13 or nvidia-nccl-cu12",
}
"""The packages that libraries come in."""

# ----- What C calls its constants -----

NO_TRANSPOSE, TRANSPOSE, ADJOINT = 0, 1, 2
LOWER, UPPER = 0, 1
NOT_UNIT, UNIT = 0, 1
LEFT, RIGHT = 0, 1
VALUES, VALUES_AND_VECTORS = 0, 1
DEFAULT_ALGORITHM = -1
EXACT_SUMS = 16
"""A mode of cuBLAS: parts of sums of float16 are float32, too (CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)."""
TYPES = {"float32": 0, "float64": 1, "float16": 2, "complex64": 4, "complex128": 5}
"""Of `cudaDataType`."""
COMPUTE_32, COMPUTE_64, COMPUTE_TF32 = 68, 70, 77
"""Of `cublasComputeType_t`: in which numbers sums are made."""
LETTERS = {"float32": "S", "float64": "D", "complex64": "C", "complex128": "Z"}
"""In the names of routines."""

ALIGNMENT = 256
"""The alignment in bytes that the libraries expect of their workspaces; allocations have it."""

STATUS = {
    "cublas": {
        1: "NOT_INITIALIZED",
        3: "ALLOC_FAILED",
        7: "INVALID_VALUE",
        8: "ARCH_MISMATCH",
        11: "MAPPING_ERROR",
        13: "EXECUTION_FAILED",
        14: "INTERNAL_ERROR",
        15: "NOT_SUPPORTED",
        16: "LICENSE_ERROR",
    },
    "cusolver": {
        1: "NOT_INITIALIZED",
        2: "ALLOC_FAILED",
        3: "INVALID_VALUE",
        4: "ARCH_MISMATCH",
        5: "MAPPING_ERROR",
        6: "EXECUTION_FAILED",
        7: "INTERNAL_ERROR",
        8: "MATRIX_TYPE_NOT_SUPPORTED",
        9: "NOT_SUPPORTED",
        31: "INVALID_WORKSPACE",
    },
    "nccl": {
        1: "UnhandledCudaError",
        2: "SystemError",
        3: "InternalError",
        4: "InvalidArgument",
        5: "InvalidUsage",
        6: "RemoteError",
        7: "InProgress",
        8: "Timeout",
    },
}
PREFIXES = {"cublas": "CUBLAS_STATUS_", "cusolver": "CUSOLVER_STATUS_", "nccl": "nccl"}
"""Of the names of statuses."""
ADVICE = {
    "NOT_INITIALIZED": "it cannot start on this device: memory is full, or the driver is older than the library",
    "ALLOC_FAILED": "there is not enough memory on the device",
    "ARCH_MISMATCH": "it does not know this device: another version of the library is needed",
    "EXECUTION_FAILED": "one of its kernels, or an earlier one, has failed on the device",
    "UnhandledCudaError": "a kernel has failed on the device, or memory is full; NCCL_DEBUG=WARN tells more",
    "SystemError": "the processes cannot reach each other; NCCL_DEBUG=WARN tells more",
    "InvalidUsage": "two processes use the same device, or their calls differ; NCCL_DEBUG=WARN tells more",
    "RemoteError": "another process has failed",
}


def aligned(addresses: Sequence[int], operands: int) -> list[int]:
    """Addresses of which those behind the operands are workspaces, moved up to where a library may begin."""
    return [
        address if position < operands else -(-address // ALIGNMENT) * ALIGNMENT
        for position, address in enumerate(addresses)
    ]


# ----- The routines -----

SIGNATURES = {
    "cublas": {
        "cublasCreate_v2": "p",
        "cublasSetStream_v2": "pp",
        "cublasSetWorkspace_v2": "ppz",
        "cublasSetMathMode": "pi",
        "cublasGemmStridedBatchedEx_64": "p ii lll p pill pill p pill l ii",
        **{f"cublas{letter}trsm_v2_64": "p iiii ll p pl pl" for letter in LETTERS.values()},
        **{f"cublas{letter}trsmBatched_64": "p iiii ll p pl pl l" for letter in LETTERS.values()},
        **{f"cublas{letter}getrfBatched": "p i pi p p i" for letter in LETTERS.values()},
    },
    "cusolver": {
        "cusolverDnCreate": "p",
        "cusolverDnSetStream": "pp",
        "cusolverDnCreateParams": "p",
        "cusolverDnXgetrf_bufferSize": "pp ll ipl i pp",
        "cusolverDnXgetrf": "pp ll ipl p i pz pz p",
        "cusolverDnXpotrf_bufferSize": "pp i l ipl i pp",
        "cusolverDnXpotrf": "pp i l ipl i pz pz p",
        **{f"cusolverDn{letter}potrfBatched": "p i i pi p i" for letter in LETTERS.values()},
        "cusolverDnXgeqrf_bufferSize": "pp ll ipl ip i pp",
        "cusolverDnXgeqrf": "pp ll ipl ip i pz pz p",
        **{f"cusolverDn{name}_bufferSize": "p iii pi p p" for name in ("Sorgqr", "Dorgqr", "Cungqr", "Zungqr")},
        **{f"cusolverDn{name}": "p iii pi p pi p" for name in ("Sorgqr", "Dorgqr", "Cungqr", "Zungqr")},
        "cusolverDnXsyevd_bufferSize": "pp i i l ipl ip i pp",
        "cusolverDnXsyevd": "pp i i l ipl ip i pz pz p",
        "cusolverDnXsyevBatched_bufferSize": "pp i i l ipl ip i pp l",
        "cusolverDnXsyevBatched": "pp i i l ipl ip i pz pz p l",
        "cusolverDnXgesvd_bufferSize": "pp bb ll ipl ip ipl ipl i pp",
        "cusolverDnXgesvd": "pp bb ll ipl ip ipl ipl i pz pz p",
    },
    "nccl": {
        "ncclGetUniqueId": "p",
        "ncclCommInitRank": "p i u i",
        "ncclCommAbort": "p",
        "ncclCommDestroy": "p",
        "ncclGroupStart": "",
        "ncclGroupEnd": "",
        "ncclAllReduce": "pp z i i pp",
        "ncclReduce": "pp z i i i pp",
        "ncclBroadcast": "pp z i i pp",
        "ncclAllGather": "pp z i pp",
        "ncclReduceScatter": "pp z i i pp",
        "ncclSend": "p z i i pp",
        "ncclRecv": "p z i i pp",
    },
}
"""The arguments of each routine: p an address or handle, i a C int, l an int64, z a size, b a char, u a `UniqueId`."""


class UniqueId(ctypes.Structure):
    """NCCL's name of a group of processes, which is passed by value."""

    _fields_ = [("internal", ctypes.c_byte * 128)]


KINDS = {
    "p": ctypes.c_void_p,
    "i": ctypes.c_int,
    "l": ctypes.c_int64,
    "z": ctypes.c_size_t,
    "b": ctypes.c_byte,
    "u": UniqueId,
}
CREATE = {"cublas": "cublasCreate_v2", "cusolver": "cusolverDnCreate"}
SET_STREAM = {"cublas": "cublasSetStream_v2", "cusolver": "cusolverDnSetStream"}


class Library:
    """One library on one device. Several threads may use it: `on` keeps the handle for one of them, by `lock`.

    Parameters
    ----------
    name : {"cublas", "cusolver", "nccl"}
    functions : callable
        Gives the function of a name, which takes numbers and addresses and gives a status, 0 for success.
    """

    def __init__(self, name: str, functions: Callable[[str], Callable[..., int]]) -> None:
        self.name = name
        self._find = functions
        self._functions: dict[str, Callable[..., int]] = {}
        self.lock = ForkSafeLock()
        self._handle = 0
        self._params = 0
        self._stream = -1
        self._workspace = (0, 0)

    def call(self, function: str, *arguments: Any) -> None:
        """Call a routine.

        Raises
        ------
        DeviceError
            If it gives a status other than 0; the message names the status and its meaning.
        """
        status = self._function(function)(*arguments)
        if status:
            raise DeviceError(self._told(function, status))

    def _function(self, function: str) -> Callable[..., int]:
        found = self._functions.get(function)
        if found is None:
            found = self._functions[function] = self._find(function)
        return found

    def _told(self, function: str, status: int) -> str:
        word = STATUS[self.name].get(status, str(status))
        advice = ADVICE.get(word)
        meaning = f": {advice}" if advice else ""
        return f"{function} has failed with {PREFIXES[self.name]}{word}{meaning}."

    def prepared(self, function: str, arguments: Sequence[int], varying: Sequence[int]) -> Callable[..., None]:
        """A call of a routine of which only the arguments at the positions `varying` change: twice as fast as `call`.

        It must be called while `lock` is held.
        """
        found = self._function(function)
        kinds = getattr(found, "argtypes", None)
        values: list[Any] = [*arguments] if kinds is None else [k(v) for k, v in zip(kinds, arguments, strict=True)]

        def call(*changed: int) -> None:
            for position, value in zip(varying, changed, strict=True):
                if kinds is None:
                    values[position] = value
                else:
                    values[position].value = value
            status = found(*values)
            if status:
                raise DeviceError(self._told(function, status))

        return call

    def has(self, function: str) -> bool:
        """Whether this version of the library has a routine."""
        try:
            self._functions[function] = self._find(function)
        except DeviceError:
            return False
        return True

    def start(self) -> None:
        """Make the handle, which takes memory of the device and must not happen while a graph is collected."""
        with self.lock.held():
            if not self._handle:
                slot = np.zeros(1, np.uint64)
                self.call(CREATE[self.name], slot.ctypes.data)
                self._handle = int(slot[0])
                if self.name == "cublas":
                    self.call("cublasSetMathMode", self._handle, EXACT_SUMS)
                else:
                    self.call("cusolverDnCreateParams", slot.ctypes.data)
                    self._params = int(slot[0])

    @contextmanager
    def on(self, stream: int, workspace: int = 0, nbytes: int = 0) -> Iterator[int]:
        """The handle, for work on a stream. cuBLAS works in the given memory, so that it allocates none itself."""
        with self.lock.held():
            yield self.ready(stream, workspace, nbytes)

    def ready(self, stream: int, workspace: int = 0, nbytes: int = 0) -> int:
        """`on`, where `lock` is held."""
        if stream != self._stream or workspace != self._workspace[0] or nbytes != self._workspace[1]:
            self.start()
            # Setting the stream also takes cuBLAS's workspace away.
            self._stream = -1
            self.call(SET_STREAM[self.name], self._handle, stream)
            if nbytes:
                self.call("cublasSetWorkspace_v2", self._handle, workspace, nbytes)
            self._stream, self._workspace = stream, (workspace, nbytes)
        return self._handle

    @property
    def params(self) -> int:
        """The handle of cuSOLVER's options, which are those that it begins with."""
        return self._params

    def sizes(self, function: str, *arguments: Any, batch: tuple[int, ...] = ()) -> tuple[int, int]:
        """Bytes of workspace on the device and on the host that one of cuSOLVER's X routines wants."""
        slots = np.zeros(2, np.uint64)
        with self.on(0) as handle:
            at = slots.ctypes.data
            self.call(f"{function}_bufferSize", handle, self._params, *arguments, at, at + 8, *batch)
        return int(slots[0]), int(slots[1])


def open_library(name: str) -> Library:
    """NVIDIA's library, from its package or from where the system has it.

    Raises
    ------
    LibraryError
        If it is not there: which package has it.
    """
    shared = _loaded(name)

    def find(function: str) -> Callable[..., int]:
        try:
            found: Any = getattr(shared, function)
        except AttributeError as error:
            message = f"This version of {name} has no {function}: install a newer one, {EXTRAS}."
            raise LibraryError(message) from error
        found.argtypes = [KINDS[letter] for letter in SIGNATURES[name][function].replace(" ", "")]
        found.restype = ctypes.c_int
        return found

    return Library(name, find)


def _loaded(name: str) -> ctypes.CDLL:
    """The shared library; `cuda.pathfinder` looks into packages, Conda's folders, CUDA_HOME and the system's paths."""
    try:
        path = import_module("cuda.pathfinder").load_nvidia_dynamic_lib(name).abs_path
        return ctypes.CDLL(path)
    except ImportError as error:
        message = f"Finding {name} needs the Python package cuda-pathfinder ({error}): {EXTRAS}."
        raise LibraryError(message) from error
    except (RuntimeError, OSError) as error:
        where = f"It is in the package {PACKAGES[name]}{'' if name == 'nccl' else f': {EXTRAS}'}."
        message = f"This needs NVIDIA's library {name}, which is not installed. {where}"
        raise LibraryError(message) from error


def real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the parts of a complex one; others as they are."""
    return np.dtype(f"float{4 * dtype.itemsize}") if dtype.kind == "c" else dtype
