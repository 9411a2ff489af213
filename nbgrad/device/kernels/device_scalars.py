"""Scalar kernels of GPUs: some functions of float32 have kernels of their own there.

In: a primitive's name and its operand dtypes. Out: the name of an IR function on plain scalars and the IR that defines
it. Called by emitter.py. The table is `SCALARS` in kernels/gpu/device_math.py; what is not in it is the CPU's kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...compiler.scalars import kernel_module, lower, scalar_ir

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


class Ordinary(NamedTuple):
    """IR functions of an operation for ordinary operands: its own, and the test of its result and its operands."""

    symbol: str
    holds: str
    texts: tuple[str, str]


@cache
def ordinary_ir(name: str) -> Ordinary | None:
    """A float32 primitive, or `ANGLE`, for ordinary operands; None if it has no short form."""
    angles = kernel_module("gpu.device_angles")
    result = "float32"
    if name == ANGLE:
        functions, result = (angles.ordinary_angle, angles.is_ordinary_angle), "int64"
    else:
        functions = kernel_module("gpu.device_ordinary").ORDINARY.get(name)
    if functions is None:
        return None
    operation, test = functions
    operands = ["float32"] * operation.__code__.co_argcount
    symbol = f"nbgrad.ordinary.{name}"
    texts = lower(operation, operands, result, SHIPPED_SYMBOL), lower(test, [result, *operands], "bool", SHIPPED_SYMBOL)
    return Ordinary(symbol, f"{symbol}.holds", (_renamed(texts[0], symbol), _renamed(texts[1], f"{symbol}.holds")))


ANGLE = "nbgrad.device.angle"
"""The IR function that reduces an angle: from float to the i64 that the functions of `at_angle_ir` get."""


@cache
def at_angle_ir(name: str) -> tuple[str, list[str]] | None:
    """A function of a float32 angle, of which others may be computed too.

    Parameters
    ----------
    name : str
        The primitive.

    Returns
    -------
    symbol, texts : str and list of str, or None
        The IR function takes the angle and what `ANGLE` gives for it; the texts define both. None if the primitive is
        no function of an angle.
    """
    angles = kernel_module("gpu.device_angles")
    function = angles.AT_ANGLE.get(name)
    if function is None:
        return None
    symbol = f"nbgrad.device.{name}_at"
    reduction = lower(angles.angle, ["float32"], "int64", SHIPPED_SYMBOL)
    value = lower(function, ["float32", "int64"], "float32", SHIPPED_SYMBOL)
    return symbol, [_renamed(reduction, ANGLE), _renamed(value, symbol)]


@cache
def _own(name: str, arity: int) -> tuple[str, str] | None:
    function = kernel_module("gpu.device_math").SCALARS.get(name)
    if function is None:
        return None
    symbol = f"nbgrad.device.{name}"
    return symbol, _renamed(lower(function, ["float32"] * arity, "float32", SHIPPED_SYMBOL), symbol)


def _renamed(text: str, symbol: str) -> str:
    return text.replace(f"@{SHIPPED_SYMBOL}(", f"@{symbol}(")
