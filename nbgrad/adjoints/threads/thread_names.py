"""The names of Numba's CUDA module in kernels: thread numbers, barriers, atomic operations, shared arrays.

In: objects that a kernel's names stand for. Out: `CudaName`, and the objects that Numba's type inference gets instead.
Called by plain_form.py, numba_types.py, thread_calls.py and kernel.py. Numba's types of CUDA kernels are those of the
CPU: no CUDA is needed to read a kernel, and the simulator, which has no types, is read like a GPU.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

_MODULES = ("numba.cuda", "numba_cuda_mlir.cuda", "numba_cuda.numba.cuda")
NUMBERS = frozenset(f"{name}.{axis}" for name in ("threadIdx", "blockIdx", "blockDim", "gridDim") for axis in "xyz") | {
    "laneid",
    "warpsize",
}
"""Names that stand for a number."""


@dataclass(frozen=True)
class CudaName:
    """Something of the CUDA module, such as `atomic.add`; `grid(2)` is the call."""

    name: str

    @property
    def __name__(self) -> str:
        return "cuda_" + self.name.replace(".", "_").replace("(", "_").replace(")", "")


@functools.cache
def cuda_name(name: str) -> CudaName:
    """The one object of a name."""
    return CudaName(name)


def known_name(found: Any) -> Any:
    """A `CudaName` for what a name of Numba's CUDA module stands for; other objects as they are."""
    if isinstance(found, type) and found.__module__.endswith("cuda.stubs"):
        return cuda_name(found.__qualname__)
    return found


def attribute(owner: Any, name: str, missing: Any) -> Any:
    """An attribute of an object: a `CudaName` if the object is the CUDA module, or part of it."""
    if isinstance(owner, CudaName):
        return cuda_name(f"{owner.name}.{name}")
    if isinstance(owner, ModuleType) and owner.__name__ in _MODULES:
        return cuda_name(name)
    return getattr(owner, name, missing)


def is_cuda_function(found: Any) -> bool:
    """Whether an object is a function that `cuda.jit` compiles, of Numba or of its simulator."""
    return ".cuda" in type(found).__module__ and isinstance(getattr(found, "py_func", None), FunctionType)


# ----- Types -----


def _number() -> int:
    return 0


def _two() -> tuple[int, int]:
    return 0, 0


def _three() -> tuple[int, int, int]:
    return 0, 0, 0


def _nothing(*_: Any) -> None:
    return None


def _array(shape: Any, dtype: Any) -> Any:
    return np.empty(shape, dtype)


def _same(array: Any) -> Any:
    return array


def _old(array: Any, index: Any, _: Any) -> Any:
    return array[index]


def _chosen(test: Any, one: Any, other: Any) -> Any:
    return one if test else other


def _fused(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


_STAND_INS: dict[str, Any] = {
    **dict.fromkeys(NUMBERS, _number),
    **{f"{name}({n})": {1: _number, 2: _two, 3: _three}[n] for name in ("grid", "gridsize") for n in (1, 2, 3)},
    "syncthreads": _nothing,
    "shared.array": _array,
    "local.array": _array,
    "const.array_like": _same,
    "atomic.add": _old,
    "atomic.sub": _old,
    "selp": _chosen,
    "fma": _fused,
}


def is_known(found: CudaName) -> bool:
    """Whether derivatives of kernels that use a name are known."""
    return found.name in _STAND_INS


@functools.cache
def stand_in(found: CudaName) -> Any:
    """A function of the CPU with the same types."""
    import numba

    return numba.njit(_STAND_INS[found.name])
