"""Arguments of the constructors of layers: the checks that layers share, and the Parameters that they make.

In: an argument of a user's. Out: the argument, checked, or a Parameter. Called by the layers; nothing here is public.
Errors are raised when a layer is made, not when it is called.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..tensors.initial_values import HeUniform, Initializer, Uniform, initializer
from ..tensors.parameter import Parameter
from ..transforms.argument_positions import check_flag

flag = check_flag
"""A bool, or a DtypeError."""


def whole(value: Any, name: str) -> int:
    """An integer.

    Raises
    ------
    DtypeError
        If it is of another type, such as bool.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        message = f"{name} must be an integer, but got {value!r} of type {type(value).__name__}."
        raise DtypeError(message)
    return int(value)


def positive(value: Any, name: str) -> int:
    """An integer of at least 1.

    Raises
    ------
    DtypeError, ArgumentError
        If it is no integer, or less.
    """
    number = whole(value, name)
    if number < 1:
        message = f"{name} must be at least 1, but got {value}."
        raise ArgumentError(message)
    return number


def real(value: Any, name: str) -> float:
    """A number as a Python float.

    Raises
    ------
    DtypeError
        If it is no number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        message = f"{name} must be a number, but got {value!r} of type {type(value).__name__}."
        raise DtypeError(message)
    return float(value)


def part(value: Any, name: str, closed: bool = True) -> float:
    """A number from 0 to 1; 1 itself only if `closed`.

    Raises
    ------
    DtypeError, ArgumentError
        If it is no number, or lies elsewhere.
    """
    number = real(value, name)
    if not (0 <= number <= 1 if closed else 0 <= number < 1):
        message = f"{name} must be at least 0 and {'at most' if closed else 'less than'} 1, but got {value!r}."
        raise ArgumentError(message)
    return number


def parameter(init: Any, shape: Any, dtype: Any, trainable: bool = True) -> Parameter:
    """A Parameter of a layer, of floats; it takes its name from the attribute that it becomes.

    Raises
    ------
    DtypeError, ArgumentError, ShapeError
        If the dtype is no float, or `initializer` refuses its arguments.
    """
    if np.dtype(dtype).kind != "f":
        message = f"The dtype of a layer must be float16, float32 or float64, but got {dtype}."
        raise DtypeError(message)
    return Parameter(initializer(init, shape, dtype), requires_grad=trainable)


def default_weight() -> Initializer:
    """The initial weights of products: uniform up to 1 / sqrt(fan_in), as in MindSpore and PyTorch."""
    return HeUniform(negative_slope=math.sqrt(5.0))


def default_bias(fan_in: int) -> Initializer:
    """The initial biases of products: uniform up to 1 / sqrt(fan_in)."""
    return Uniform(1.0 / math.sqrt(fan_in) if fan_in else 0.0)


def signal_kernel(init: Any) -> Any:
    """The initial values of a kernel of signals, with an axis of rows if an array (out, in, k) has none."""
    return init.reshape((*init.shape[:2], 1, init.shape[2])) if getattr(init, "ndim", 0) == 3 else init
