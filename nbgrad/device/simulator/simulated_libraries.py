"""cuBLAS and cuSOLVER without a GPU: NumPy and SciPy behind the same C declarations.

In: the numbers and addresses that the real routines get, of memory of this machine. Out: a `Library` (libraries.py).
Called by the simulator. Matrices lie in columns, with leading dimensions and strides, exactly as the real libraries
read them; workspaces of the wrong size, bad leading dimensions and other misuse give the real status, and memory that a
routine may destroy is destroyed. So a wrong argument shows in the tests.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import DeviceError
from ..driver.libraries import (
    COMPUTE_32,
    COMPUTE_64,
    COMPUTE_TF32,
    LEFT,
    LETTERS,
    NO_TRANSPOSE,
    SIGNATURES,
    TRANSPOSE,
    TYPES,
    UNIT,
    UPPER,
    Library,
    real,
)

HANDLE, PARAMS = 0xB1A5, 0x9A9A
DTYPES = {number: np.dtype(name) for name, number in TYPES.items()}
BY_LETTER = {letter: np.dtype(name) for name, letter in LETTERS.items()}
DEVICE_BYTES, HOST_BYTES = 40, 16
"""The workspace of every routine of cuSOLVER here, on the device and on the host."""
SMALLEST_WORKSPACE = 16 << 10
"""With less memory, cuBLAS says, routines may fail."""


class _InvalidError(Exception):
    """A bad argument."""


def _require(good: bool) -> None:
    if not good:
        raise _InvalidError


def _memory(address: int, nbytes: int) -> Any:
    _require(address > 0 or nbytes == 0)
    return (ctypes.c_char * nbytes).from_address(address) if nbytes else b""


def vector(address: int, dtype: Any, length: int) -> np.ndarray:
    """Memory as an array."""
    dtype = np.dtype(dtype)
    return np.frombuffer(_memory(address, length * dtype.itemsize), dtype)


def matrix(address: int, dtype: Any, rows: int, columns: int, leading: int) -> np.ndarray:
    """Memory as a matrix whose columns lie `leading` elements apart."""
    _require(rows >= 0 and columns >= 0 and leading >= max(1, rows))
    if not rows * columns:
        return np.empty((rows, columns), dtype, order="F")
    flat = vector(address, dtype, (columns - 1) * leading + rows)
    return np.lib.stride_tricks.as_strided(flat, (rows, columns), (flat.itemsize, leading * flat.itemsize))


def _operated(x: np.ndarray, operation: int) -> np.ndarray:
    _require(operation in (0, 1, 2))
    return x if operation == NO_TRANSPOSE else x.T if operation == TRANSPOSE else x.conj().T


def _triangle(a: np.ndarray, uplo: int) -> np.ndarray:
    _require(uplo in (0, 1))
    return np.triu(a) if uplo == UPPER else np.tril(a)


def _store(address: int, dtype: Any, value: int) -> None:
    vector(address, dtype, 1)[0] = value


class _Double:
    """The common part of both libraries. `stream` is the one that was set last."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.stream = 0

    def find(self, name: str, function: str) -> Callable[..., int]:
        """The function of a name, which gives a status."""
        if function not in SIGNATURES[name]:
            message = f"This version of {name} has no {function}."
            raise DeviceError(message)
        count = len(SIGNATURES[name][function].replace(" ", ""))
        work = self.routine(function)
        at_once = "Create" in function or "_bufferSize" in function or "cublasSet" in function or "DnSet" in function

        def call(*arguments: int) -> int:
            assert len(arguments) == count, (function, arguments)
            assert all(isinstance(argument, int) for argument in arguments), (function, arguments)
            status = [0]

            def act() -> None:
                try:
                    with np.errstate(all="ignore"):
                        work(*arguments)
                except _InvalidError:
                    status[0] = 7 if name == "cublas" else 3

            if at_once or self.driver is None:
                act()
            else:
                self.driver.enqueue(act, self.stream)
            return status[0]

        return call

    def routine(self, function: str) -> Callable[..., None]:
        raise NotImplementedError


class Cublas(_Double):
    """The routines of cuBLAS."""

    def __init__(self, driver: Any = None) -> None:
        super().__init__(driver)
        self.workspace = (0, 0)

    def routine(self, function: str) -> Callable[..., None]:
        """The method for a routine; those for four dtypes are one method."""
        for ending, method in (
            ("trsm_v2_64", self.trsm),
            ("trsmBatched_64", self.trsm_batched),
            ("getrfBatched", self.getrf_batched),
        ):
            if function.endswith(ending):
                dtype = BY_LETTER[function[len("cublas")]]
                return lambda *arguments: method(dtype, *arguments)
        return {
            "cublasCreate_v2": lambda slot: _store(slot, np.uint64, HANDLE),
            "cublasSetStream_v2": self.set_stream,
            "cublasSetWorkspace_v2": self.set_workspace,
            "cublasSetMathMode": lambda handle, mode: _require(handle == HANDLE and mode in (0, 16)),
            "cublasGemmStridedBatchedEx_64": self.gemm,
        }[function]

    def set_stream(self, handle: int, stream: int) -> None:
        """This takes the workspace away."""
        _require(handle == HANDLE)
        self.stream, self.workspace = stream, (0, 0)

    def set_workspace(self, handle: int, address: int, nbytes: int) -> None:
        """Aligned to 256 bytes."""
        _require(handle == HANDLE and address % 256 == 0 and nbytes >= SMALLEST_WORKSPACE)
        self.workspace = (address, nbytes)

    def spoil_workspace(self) -> None:
        """Overwrite the beginning of the workspace, as a library may."""
        address, nbytes = self.workspace
        vector(address, np.uint8, min(nbytes, 4096))[:] = 0xFF

    def gemm(
        self, handle: int, ta: int, tb: int, m: int, n: int, k: int, alpha: int,
        a: int, type_a: int, lda: int, stride_a: int, b: int, type_b: int, ldb: int, stride_b: int,
        beta: int, c: int, type_c: int, ldc: int, stride_c: int, batch: int, compute: int, algorithm: int,
    ) -> None:  # fmt: skip
        """C = alpha op(A) op(B) + beta C; C is not read if beta is 0."""
        _require(handle == HANDLE and type_a == type_b == type_c and algorithm == -1 and batch >= 0)
        dtype = DTYPES[type_a]
        allowed = {"float16": [COMPUTE_32], "float32": [COMPUTE_32, COMPUTE_TF32], "float64": [COMPUTE_64]}
        _require(compute in allowed.get(dtype.name, []))
        wide = np.dtype(np.float32 if dtype == np.float16 else dtype)
        first, second = vector(alpha, wide, 1)[0], vector(beta, wide, 1)[0]
        self.spoil_workspace()
        size = dtype.itemsize
        for position in range(batch):
            x = matrix(a + position * stride_a * size, dtype, *((m, k) if ta == NO_TRANSPOSE else (k, m)), lda)
            y = matrix(b + position * stride_b * size, dtype, *((k, n) if tb == NO_TRANSPOSE else (n, k)), ldb)
            out = matrix(c + position * stride_c * size, dtype, m, n, ldc)
            x, y = (_rounded(part, compute).astype(wide) for part in (x, y))
            found = first * (_operated(x, ta) @ _operated(y, tb))
            out[...] = found + second * out if second else found

    def trsm(
        self, dtype: Any, handle: int, side: int, uplo: int, trans: int, diag: int, m: int, n: int,
        alpha: int, a: int, lda: int, b: int, ldb: int,
    ) -> None:  # fmt: skip
        """X of op(A) X = alpha B, or of X op(A) = alpha B, in place of B."""
        from scipy.linalg import solve_triangular

        _require(handle == HANDLE and side in (0, 1) and diag in (0, 1))
        order = m if side == LEFT else n
        triangle = _triangle(matrix(a, dtype, order, order, lda), uplo)
        right = matrix(b, dtype, m, n, ldb)
        if diag == UNIT:
            np.fill_diagonal(triangle, 1)
        whole = _operated(triangle, trans)
        lower = (uplo == UPPER) != (trans == NO_TRANSPOSE)
        scaled = vector(alpha, dtype, 1)[0] * right
        self.spoil_workspace()
        if side == LEFT:
            right[...] = _solved(solve_triangular, whole, scaled, lower)
        else:
            right[...] = _solved(solve_triangular, whole.T, scaled.T, not lower).T

    def trsm_batched(
        self, dtype: Any, handle: int, side: int, uplo: int, trans: int, diag: int, m: int, n: int,
        alpha: int, a: int, lda: int, b: int, ldb: int, batch: int,
    ) -> None:  # fmt: skip
        """`trsm` of matrices at the addresses that lie in memory."""
        for x, y in zip(vector(a, np.int64, batch), vector(b, np.int64, batch), strict=True):
            self.trsm(dtype, handle, side, uplo, trans, diag, m, n, alpha, int(x), lda, int(y), ldb)

    def getrf_batched(
        self, dtype: Any, handle: int, n: int, a: int, lda: int, pivots: int, info: int, batch: int
    ) -> None:
        """Factors with exchanges of rows, counted from 1, in place of matrices at the addresses that lie in memory."""
        _require(handle == HANDLE)
        for k, address in enumerate(vector(a, np.int64, batch)):
            x = matrix(int(address), dtype, n, n, lda)
            failed = _factored(x, vector(pivots + 4 * n * k, np.int32, n))
            vector(info, np.int32, batch)[k] = failed


def _rounded(x: np.ndarray, compute: int) -> np.ndarray:
    """Numbers as tensor cores read them: in the TF32 mode, with ten bits of the fraction."""
    if compute != COMPUTE_TF32:
        return x
    bits = np.ascontiguousarray(x).view(np.uint32)
    return ((bits + 0x0FFF + ((bits >> 13) & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32)


def _solved(solve: Any, a: np.ndarray, b: np.ndarray, lower: bool) -> np.ndarray:
    """SciPy raises for a zero on the diagonal, where cuBLAS divides by it."""
    if np.all(np.diagonal(a)):
        return solve(a, b, lower=lower, check_finite=False)
    x = np.array(b)
    n = len(a)
    for i in range(n) if lower else reversed(range(n)):
        known = slice(0, i) if lower else slice(i + 1, n)
        x[i] = (x[i] - a[i, known] @ x[known]) / a[i, i]
    return x


def _factored(x: np.ndarray, pivots: np.ndarray) -> int:
    from scipy.linalg import get_lapack_funcs

    (getrf,) = get_lapack_funcs(("getrf",), (x,))
    found, exchanges, failed = getrf(x)
    x[...] = found
    pivots[...] = exchanges + 1
    return failed


class Cusolver(_Double):
    """The routines of cuSOLVER."""

    def routine(self, function: str) -> Callable[..., None]:
        """The method for a routine; workspaces are asked for and checked in one place."""
        plain = {
            "cusolverDnCreate": lambda slot: _store(slot, np.uint64, HANDLE),
            "cusolverDnCreateParams": lambda slot: _store(slot, np.uint64, PARAMS),
            "cusolverDnSetStream": self.set_stream,
        }
        if function in plain:
            return plain[function]
        asks = function.endswith("_bufferSize")
        name = function.removesuffix("_bufferSize").removeprefix("cusolverDn")
        if name.endswith("potrfBatched"):
            return lambda *arguments: self.potrf_batched(BY_LETTER[name[0]], *arguments)
        if name[1:] in ("orgqr", "ungqr"):
            dtype = BY_LETTER[name[0]]
            return lambda *arguments: self.orgqr_size(dtype, *arguments) if asks else self.orgqr(dtype, *arguments)
        if asks:
            return self.batched_sizes if name == "XsyevBatched" else self.sizes
        if name == "XsyevBatched":
            return self.syev_batched
        method = getattr(self, name[1:])
        return lambda handle, params, *arguments: self.checked(method, handle, params, *arguments)

    def set_stream(self, handle: int, stream: int) -> None:
        _require(handle == HANDLE)
        self.stream = stream

    def sizes(self, handle: int, params: int, *arguments: int) -> None:
        """The two sizes of an X routine."""
        _require(handle == HANDLE and params == PARAMS)
        *_, on_device, on_host = arguments
        _store(on_device, np.uint64, DEVICE_BYTES)
        _store(on_host, np.uint64, HOST_BYTES)

    def batched_sizes(self, *arguments: int) -> None:
        """`sizes` of a routine for batches."""
        *rest, batch = arguments
        self.sizes(rest[0], rest[1], *rest[2:])
        _require(batch >= 1)

    def syev_batched(
        self, handle: int, params: int, jobz: int, uplo: int, n: int, kind: int, a: int, lda: int, kind_w: int, w: int,
        compute: int, work: int, nbytes: int, host: int, host_bytes: int, info: int, batch: int,
    ) -> None:  # fmt: skip
        """`syevd` of matrices that follow each other."""
        for k in range(batch):
            matrix_at = a + k * lda * n * DTYPES[kind].itemsize
            values_at = w + k * n * DTYPES[kind_w].itemsize
            arguments = (jobz, uplo, n, kind, matrix_at, lda, kind_w, values_at, compute)
            self.checked(self.syevd, handle, params, *arguments, work, nbytes, host, host_bytes, info + 4 * k)

    def checked(self, method: Callable[..., int], handle: int, params: int, *arguments: int) -> None:
        """An X routine: its workspaces are as large as it said, and full of other things afterwards."""
        *arguments_, work, nbytes, host, host_bytes, info = arguments
        _require(handle == HANDLE and params == PARAMS)
        _require(nbytes == DEVICE_BYTES and host_bytes == HOST_BYTES)
        vector(work, np.uint8, nbytes)[:] = 0xFF
        vector(host, np.uint8, host_bytes)[:] = 0xFF
        _store(info, np.int32, method(*arguments_))

    def getrf(self, m: int, n: int, kind: int, a: int, lda: int, pivots: int, compute: int) -> int:
        """Factors with exchanges of rows, counted from 1."""
        _require(kind == compute)
        return _factored(matrix(a, DTYPES[kind], m, n, lda), vector(pivots, np.int64, min(m, n)))

    def potrf(self, uplo: int, n: int, kind: int, a: int, lda: int, compute: int) -> int:
        """One triangle, the other is left as it is."""
        _require(kind == compute and uplo in (0, 1))
        return self._cholesky(matrix(a, DTYPES[kind], n, n, lda), uplo)

    def potrf_batched(
        self, dtype: Any, handle: int, uplo: int, n: int, a: int, lda: int, info: int, batch: int
    ) -> None:
        """Of matrices at the addresses that lie in memory."""
        _require(handle == HANDLE)
        for k, address in enumerate(vector(a, np.int64, batch)):
            vector(info, np.int32, batch)[k] = self._cholesky(matrix(int(address), dtype, n, n, lda), uplo)

    def _cholesky(self, x: np.ndarray, uplo: int) -> int:
        from scipy.linalg import get_lapack_funcs

        (potrf,) = get_lapack_funcs(("potrf",), (x,))
        found, failed = potrf(x, lower=uplo != UPPER, clean=False)
        x[...] = found
        return failed

    def geqrf(self, m: int, n: int, kind: int, a: int, lda: int, kind_tau: int, tau: int, compute: int) -> int:
        """R in the upper triangle, reflections below."""
        from scipy.linalg import get_lapack_funcs

        _require(kind == kind_tau == compute)
        x = matrix(a, DTYPES[kind], m, n, lda)
        (geqrf,) = get_lapack_funcs(("geqrf",), (x,))
        found, factors, _, failed = geqrf(x)
        x[...] = found
        vector(tau, x.dtype, min(m, n))[:] = factors
        return failed

    def orgqr_size(
        self, dtype: Any, handle: int, m: int, n: int, k: int, a: int, lda: int, tau: int, length: int
    ) -> None:
        """Elements of workspace."""
        _require(handle == HANDLE and m >= n >= k >= 0 and lda >= max(1, m))
        _store(length, np.int32, 4 * max(n, 1))

    def orgqr(
        self, dtype: Any, handle: int, m: int, n: int, k: int, a: int, lda: int, tau: int, work: int, length: int,
        info: int,
    ) -> None:  # fmt: skip
        """The first n columns of the product of k reflections, in their place."""
        from scipy.linalg import get_lapack_funcs

        _require(handle == HANDLE and m >= n >= k >= 0 and length == 4 * max(n, 1))
        x = matrix(a, dtype, m, n, lda)
        vector(work, dtype, length)[:] = np.nan
        (build,) = get_lapack_funcs(("orgqr" if np.dtype(dtype).kind == "f" else "ungqr",), (x,))
        found, _, failed = build(x, vector(tau, dtype, k))
        x[...] = found
        _store(info, np.int32, failed)

    def syevd(
        self, jobz: int, uplo: int, n: int, kind: int, a: int, lda: int, kind_w: int, w: int, compute: int
    ) -> int:
        """Eigenvalues in rising order, and vectors in place of the matrix, which is destroyed without them."""
        _require(kind == compute and jobz in (0, 1) and uplo in (0, 1))
        x = matrix(a, DTYPES[kind], n, n, lda)
        values = vector(w, real(x.dtype), n)
        _require(DTYPES[kind_w] == values.dtype)
        if not np.isfinite(_triangle(x, uplo)).all():
            return 1
        found, vectors = np.linalg.eigh(x, "U" if uplo == UPPER else "L")
        values[:] = found
        x[...] = vectors if jobz else np.nan
        return 0

    def gesvd(
        self, job_u: int, job_vt: int, m: int, n: int, kind: int, a: int, lda: int, kind_s: int, s: int,
        kind_u: int, u: int, ldu: int, kind_vt: int, vt: int, ldvt: int, compute: int,
    ) -> int:  # fmt: skip
        """Singular values in falling order, and vectors as the letters say; at least as many rows as columns."""
        _require(kind == kind_u == kind_vt == compute and m >= n)
        letters = chr(job_u), chr(job_vt)
        _require(letters in (("A", "A"), ("S", "S"), ("N", "N")))
        x = matrix(a, DTYPES[kind], m, n, lda)
        values = vector(s, real(x.dtype), n)
        _require(DTYPES[kind_s] == values.dtype)
        if not np.isfinite(x).all():
            return 1
        left, found, right = np.linalg.svd(x, full_matrices=letters[0] == "A")
        x[...] = np.nan
        values[:] = found
        if letters[0] != "N":
            matrix(u, x.dtype, m, left.shape[1], ldu)[...] = left
            matrix(vt, x.dtype, n, n, ldvt)[...] = right
        return 0


_DOUBLES: dict[str, type[_Double]] = {"cublas": Cublas, "cusolver": Cusolver}
"""NCCL's double, which is no calculation, is in simulated_nccl.py."""


def recorded_library(log: list[tuple[Any, ...]], name: str) -> Library:
    """A library that does nothing: its routines and their arguments go into a log, from the recorder.

    Raises
    ------
    DeviceError
        If there is no such library.
    """
    _double_of(name)

    def find(function: str) -> Callable[..., int]:
        def call(*arguments: int) -> int:
            if "Create" in function:
                _store(arguments[-1], np.uint64, HANDLE)
            else:
                log.append((function, *arguments))
            return 0

        return call

    return Library(name, find)


def _double_of(name: str) -> type[_Double]:
    if name not in _DOUBLES:
        message = f"There is no library {name!r}."
        raise DeviceError(message)
    return _DOUBLES[name]


def library(driver: Any, name: str, device: int) -> Library:
    """A library of a simulated device; `driver.enqueue(action, stream)` does its work, at once or in a graph.

    Raises
    ------
    DeviceError
        If there is no such library.
    """
    if name == "nccl":
        from .simulated_nccl import nccl

        return nccl(driver)
    kind = _double_of(name)
    known = driver.__dict__.setdefault("_libraries", {})
    found = known.get((name, device))
    if found is None:
        double = kind(driver)
        found = known[name, device] = Library(name, lambda function: double.find(name, function))
    return found
