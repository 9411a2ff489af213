"""PyTorch's `nn.init`: functions that fill a Tensor with numbers to begin with.

In: a Tensor or a Parameter. Out: the same one, with other values. Called by users, as `torch_names.nn.init`. Random
numbers come from the generator that `manual_seed` seeds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import ops
from ...autograd.grad_modes import no_grad
from ...errors import ArgumentError, ShapeError
from ...record.tensor import Tensor
from .stepping_optimizers import give_value

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


def _filled(tensor: Any, value: Any) -> Any:
    with no_grad():
        given = value if isinstance(value, Tensor) else Tensor(value)
        give_value(tensor, given.astype(tensor.dtype))
    return tensor


def _uniform(tensor: Any, low: float, high: float) -> Any:
    return _filled(tensor, low + (high - low) * ops.rand(*tensor.shape, dtype="float64"))


def _normal(tensor: Any, mean: float, std: float) -> Any:
    return _filled(tensor, mean + std * ops.randn(*tensor.shape, dtype="float64"))


def _fans(tensor: Any) -> tuple[int, int]:
    if tensor.ndim < 2:
        message = "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        raise ShapeError(message)
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor of the deviation that an activation needs.

    Parameters
    ----------
    nonlinearity : str
        "linear", "conv2d", ..., "sigmoid", "tanh", "relu", "leaky_relu" or "selu".
    param : float, optional
        The slope of "leaky_relu".
    """
    linear = ["linear", "sigmoid", *[f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)]]
    gains = {**dict.fromkeys(linear, 1.0), "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75}
    gains["leaky_relu"] = math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in gains:
        message = f"Unsupported nonlinearity {nonlinearity}"
        raise ArgumentError(message)
    return gains[nonlinearity]


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Uniform numbers from a to b."""
    del generator
    return _uniform(tensor, a, b)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Normal numbers."""
    del generator
    return _normal(tensor, mean, std)


def trunc_normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Any:
    """Normal numbers between a and b."""
    del generator
    low, high = [math.erf((end - mean) / (std * math.sqrt(2.0))) for end in (a, b)]
    part = low + (high - low) * ops.rand(*tensor.shape, dtype="float64")
    return _filled(tensor, ops.clip(mean + std * math.sqrt(2.0) * ops.erfinv(part), a, b))


def constant_(tensor: Any, val: float) -> Any:
    """One number everywhere."""
    return _filled(tensor, np.full(tensor.shape, val, np.float64))


def ones_(tensor: Any) -> Any:
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    """Zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Any) -> Any:
    """The identity matrix."""
    if tensor.ndim != 2:
        message = "Only tensors with 2 dimensions are supported"
        raise ShapeError(message)
    return _filled(tensor, np.eye(*tensor.shape))


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Convolutions that give their input."""
    if tensor.ndim not in (3, 4, 5) or tensor.shape[0] % groups:
        message = (
            f"dirac_ takes weights of 3, 4 or 5 axes whose first extent {groups} groups divide, not {tensor.shape}."
        )
        raise ShapeError(message)
    found, rows = np.zeros(tensor.shape), tensor.shape[0] // groups
    middle = tuple([extent // 2 for extent in tensor.shape[2:]])
    for group in range(groups):
        for d in range(min(rows, tensor.shape[1])):
            found[(group * rows + d, d, *middle)] = 1.0
    return _filled(tensor, found)


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Uniform numbers that keep the variance forwards and backwards (Glorot and Bengio 2010)."""
    del generator
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return _uniform(tensor, -bound, bound)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Normal numbers that keep the variance forwards and backwards."""
    del generator
    return _normal(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))))


def _deviation(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        message = f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']"
        raise ArgumentError(message)
    return calculate_gain(nonlinearity, a) / math.sqrt(_fans(tensor)[mode == "fan_out"])


def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Uniform numbers that keep the variance behind rectifiers (He et al. 2015)."""
    del generator
    bound = math.sqrt(3.0) * _deviation(tensor, a, mode, nonlinearity)
    return _uniform(tensor, -bound, bound)


def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Normal numbers that keep the variance behind rectifiers."""
    del generator
    return _normal(tensor, 0.0, _deviation(tensor, a, mode, nonlinearity))


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """A matrix with orthonormal rows or columns (Saxe, McClelland, Ganguli 2014)."""
    del generator
    if tensor.ndim < 2:
        message = "Only tensors with 2 or more dimensions are supported"
        raise ShapeError(message)
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    flat = ops.randn(rows, columns, dtype="float64").asnumpy()
    q, r = np.linalg.qr(flat.T if rows < columns else flat)
    q = q * np.sign(np.diag(r))
    return _filled(tensor, (gain * (q.T if rows < columns else q)).reshape(tensor.shape))


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Normal numbers with a part of each column zero (Martens 2010)."""
    del generator
    if tensor.ndim != 2:
        message = "Only tensors with 2 dimensions are supported"
        raise ShapeError(message)
    values = std * ops.randn(*tensor.shape, dtype="float64").asnumpy()
    order = ops.rand(*tensor.shape, dtype="float64").asnumpy().argsort(axis=0)
    np.put_along_axis(values, order[: math.ceil(sparsity * tensor.shape[0])], 0.0, axis=0)
    return _filled(tensor, values)
