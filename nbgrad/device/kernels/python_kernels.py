"""Kernels written in Python: those that are no loop nests, from the files kernels/device_*.py.

In: the name of a function, the dtypes of its arrays and how many integers follow. Out: a `DeviceKernel`. Called by
recipes.py and its parts. The IR comes with the package (compiler/shipped.py), so that nothing needs Numba at run time;
`PYTHON_KERNELS` is the table of what is shipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ...compiler.scalars import kernel_module, lower
from .launches import DeviceKernel

PYTHON_KERNELS: dict[str, tuple[str, int, str]] = {
    "device_scan.sum_rows": ("* * *", 3, "int64 float32 float64"),
    "device_scan.sum_totals": ("* *", 4, "int64 float32 float64"),
    "device_scan.sum_carries": ("*", 2, "int64 float32 float64"),
    "device_scan.sum_tiles": ("* * *", 4, "int64 float32 float64"),
    "device_scan.maximum_rows": ("* * *", 3, "int64 float32 float64"),
    "device_scan.maximum_totals": ("* *", 4, "int64 float32 float64"),
    "device_scan.maximum_carries": ("*", 2, "int64 float32 float64"),
    "device_scan.maximum_tiles": ("* * *", 4, "int64 float32 float64"),
    "device_scan.minimum_rows": ("* * *", 3, "int64 float32 float64"),
    "device_scan.minimum_totals": ("* *", 4, "int64 float32 float64"),
    "device_scan.minimum_carries": ("*", 2, "int64 float32 float64"),
    "device_scan.minimum_tiles": ("* * *", 4, "int64 float32 float64"),
    "device_recurrence.recurrence_rows": ("* * * *", 3, "int64 float32 float64"),
    "device_recurrence.recurrence_totals": ("* * * * int64", 5, "int64 float32 float64"),
    "device_recurrence.recurrence_carries": ("* * int64", 3, "int64 float32 float64"),
    "device_recurrence.recurrence_tiles": ("* * * * int64", 5, "int64 float32 float64"),
    "device_scatter.add": ("int64 * *", 1, "int32 int64 float32 float64"),
    "device_scatter.add_shared": ("int64 * *", 2, "int32 int64 float32 float64"),
    "device_scatter.add_rows": ("int64 * *", 3, "int32 int64 float32 float64"),
    "device_scatter.sum_sorted": ("int64 * int64 * *", 3, "float32 float64"),
    "device_scatter.sum_sorted_long": ("int64 * int64 * *", 3, "float32 float64"),
    "device_scatter.narrow": ("int32 *", 1, "int8 int16"),
    "device_scatter.last": ("int64 int64", 1, "int64"),
    "device_sort.sort_tiles": ("* int64 *", 5, "int32 int64 float32 float64"),
    "device_sort.merge_runs": ("* int64 * int64", 4, "int32 int64 float32 float64"),
    "device_windows.unfold": ("* *", 17, "float32 float64"),
    "device_windows.fold": ("* *", 17, "float32 float64"),
    "device_windows.window_argmax": ("* int64", 14, "float32 float64"),
    "device_matrices.complete_pivots": ("* * int64", 2, "float32 float64"),
    "device_matrices.lu": ("* * int64", 2, "float32 float64"),
    "device_matrices.cholesky": ("* *", 2, "float32 float64"),
    "device_matrices.triangular_solve": ("* * *", 7, "float32 float64"),
    "device_matmul.matmul": ("* * *", 15, "float32 float64"),
    "device_linalg.copy_strided": ("* *", 12, "int8 int16 int32 int64"),
    "device_linalg.copy_upper": ("* *", 6, "float32 float64"),
    "device_linalg.keep_lower": ("int32 *", 3, "float32 float64"),
    "device_linalg.spoil": ("int32 *", 2, "float32 float64"),
    "device_linalg.order_of": ("int32 *", 3, "float32 float64"),
    "device_linalg.order_of_long": ("int64 *", 3, "float32 float64"),
    "device_linalg.addresses": ("int64", 3, "int64"),
    "device_transpose.transpose": ("* *", 11, "int8 int16 int32 int64"),
}
"""By "module.function" of nbgrad.kernels: the dtypes of the arrays, where * stands for each of the last entry's dtypes;
how many integers follow the arrays; and these dtypes."""


@cache
def python_kernel(place: str, dtypes: tuple[str, ...], numbers: int, readonly: int = 0) -> DeviceKernel:
    """The kernel of a function.

    Parameters
    ----------
    place : str
        "device_scan.scan_rows", say: the file in kernels/ and the function, which takes pointers, then integers, and
        gives 0.
    dtypes : tuple of str
        What the pointers point to.
    numbers : int
        How many integers follow.
    readonly : int
        So many of the first pointers are only read, and nothing else points to what they point to.
    """
    module, _, name = place.partition(".")
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
