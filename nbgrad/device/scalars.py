"""Scalar kernels of GPUs: some functions of float32 have kernels of their own there.

In: a primitive's name and its operand dtypes. Out: the name of an IR function on plain scalars and the IR that defines
it. Called by emitter.py. The table is `SCALARS` in kernels/device_math.py; what is not in it is the CPU's kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ..compiler.scalars import kernel_module, lower, scalar_ir

FLOAT32 = np.dtype(np.float32)
SHIPPED_SYMBOL = "special"
"""The name of these functions in the file of IR that comes with the package."""


def device_scalar_ir(name: str, dtypes: Sequence[np.dtype[Any]], result: np.dtype[Any]) -> tuple[str, str]:
    """The IR function that computes a primitive on scalars of GPUs; parameters and results as for `scalar_ir`."""
    if result == FLOAT32 and all(dtype == FLOAT32 for dtype in dtypes):
        found = _own(name, len(dtypes))
        if found is not None:
            return found
    return scalar_ir(name, dtypes, result)


@cache
def _own(name: str, arity: int) -> tuple[str, str] | None:
    function = kernel_module("device_math").SCALARS.get(name)
    if function is None:
        return None
    arguments = ["float32"] * arity
    text = lower(function, arguments, "float32", SHIPPED_SYMBOL)
    symbol = f"nbgrad.device.{name}"
    return symbol, text.replace(f"@{SHIPPED_SYMBOL}(", f"@{symbol}(")
