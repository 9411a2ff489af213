"""The dtype of what is made from Python's numbers, and of Parameters: PyTorch's `set_default_dtype`.

In: a dtype. Out: the dtype that functions and modules of `torch_names` use where none is given. Called by
torch_names.py and module.py.
"""

from __future__ import annotations

from typing import Any

from ...dtype import DType, dtype_of
from ...errors import DtypeError

_CHOSEN: list[DType] = [dtype_of("float32")]


def set_default_dtype(d: Any) -> None:
    """Let Tensors of Python's floats, and Parameters of modules that are made from now on, have a dtype.

    Parameters
    ----------
    d : dtype
        float16, float32 or float64.

    Raises
    ------
    DtypeError
        For another dtype.

    Examples
    --------
    >>> import nbgrad.mint.torch_names as torch
    >>> torch.set_default_dtype(torch.float64)
    >>> torch.zeros(2).dtype, torch.nn.Linear(2, 1).weight.dtype
    (mindspore.float64, mindspore.float64)
    >>> torch.set_default_dtype(torch.float32)
    """
    dtype = dtype_of(d)
    if dtype.kind != "f":
        message = f"only floating-point types are supported as the default type, but got {dtype}"
        raise DtypeError(message)
    _CHOSEN[0] = dtype


def get_default_dtype() -> DType:
    """The dtype of Tensors of Python's floats."""
    return _CHOSEN[0]
