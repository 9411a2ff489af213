"""Kernels written in Python: those that are no loop nests, from the files kernels/gpu/device_*.py.

In: the name of a function, the dtypes of its arrays and how many integers follow. Out: a `DeviceKernel`. Called by
the recipes. The IR comes with the package (compiler/shipped.py), so that nothing needs Numba at run time; each file of
recipes lists its functions in `KERNELS`, and device/recipes.py puts the lists together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ...compiler.scalars import kernel_module, lower
from .launches import DeviceKernel

KernelTable = dict[str, tuple[str, int, str]]
"""By "module.function" of nbgrad.kernels: the dtypes of the arrays, where * stands for each of the last entry's dtypes;
how many integers follow the arrays; and these dtypes."""


@cache
def python_kernel(place: str, dtypes: tuple[str, ...], numbers: int, readonly: int = 0) -> DeviceKernel:
    """The kernel of a function.

    Parameters
    ----------
    place : str
        "gpu.device_scan.scan_rows", say: the file in kernels/ and the function, which takes pointers, then integers,
        and gives 0.
    dtypes : tuple of str
        What the pointers point to.
    numbers : int
        How many integers follow.
    readonly : int
        So many of the first pointers are only read, and nothing else points to what they point to.
    """
    module, _, name = place.rpartition(".")
    key = f"python {place} {' '.join(dtypes)} {numbers} {readonly}"
    return DeviceKernel(key, lambda: _text(module, name, dtypes, numbers, readonly))


def arguments_of(dtypes: Sequence[str], numbers: int) -> list[str]:
    """The arguments of a function as compiler/lowering.py names them."""
    return [*[f"*{dtype}" for dtype in dtypes], *["int64"] * numbers]


def _text(module: str, name: str, dtypes: Sequence[str], numbers: int, readonly: int) -> str:
    function = getattr(kernel_module(module), name)
    text = lower(function, arguments_of(dtypes, numbers), "int64", "special")
    pointers = [f"ptr {'noalias readonly ' if k < readonly else ''}%p{k}" for k in range(len(dtypes))]
    parameters = ", ".join([*pointers, *[f"i64 %n{k}" for k in range(numbers)]])
    passed = ", ".join([*[f"ptr %p{k}" for k in range(len(dtypes))], *[f"i64 %n{k}" for k in range(numbers)]])
    lines = [
        text,
        f"define void @kernel({parameters}) {{",
        f"  %status = call i64 @special({passed})",
        "  ret void",
        "}",
    ]
    return "\n".join([*lines, ""])
