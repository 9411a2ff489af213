"""NumPy's functions and what stands for them here: the whole of `__array_function__`.

In: a NumPy function that was called with a Tensor. Out: what our function gives. Called by Tensor.__array_function__
and by Tensor's methods. Each module of `nbgrad.numpy` lists its own functions in `NUMPY`; nothing is ever converted to
NumPy silently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from ..errors import DtypeError
from ..tensor import Tensor
from ..tensor_operators import Late

MODULES = [
    "elementwise",
    "complex_parts",
    "indexing",
    "inspection",
    "reductions",
    "statistics",
    "quantiles",
    "cumulative",
    "shaping",
    "joining",
    "padding",
    "creation",
    "linear_algebra",
    "factorisations",
    "determinants",
    "eigenvalues",
    "singular_values",
    "orthogonal",
    "norms",
    "least_squares",
    "fft",
    "subscripts",
    "sorting",
    "sets",
    "positions",
    "selection",
    "special",
    "applying",
    "histograms",
    "polynomials",
]

TABLE: dict[Callable[..., Any], Callable[..., Any]] = {}
"""NumPy function -> the function of `nbgrad.numpy`."""

for _name in MODULES:
    TABLE.update(import_module(f".{_name}", __package__).NUMPY)

Late.implementations = TABLE  # where Tensor looks first

_NOT_GIVEN = getattr(np, "_NoValue", None)
REFUSED = {
    **dict.fromkeys(("busday_count", "busday_offset", "datetime_as_string", "is_busday", "isnat"), "dates"),
    **dict.fromkeys(("packbits", "unpackbits"), "bits in bytes"),
}
"""Functions of NumPy that make no sense for Tensors, and what they work on."""


def refuse(function: Any) -> NoReturn:
    """Raise for a function of NumPy's that does not work on Tensors, and say why."""
    name, module = function.__name__, getattr(function, "__module__", None) or "numpy"
    if name in REFUSED:
        message = f"{module}.{name} works on {REFUSED[name]}, which Tensors do not hold. Apply it to x.asnumpy()."
    else:
        message = (
            f"{module}.{name} does not work on Tensors. Apply it to x.asnumpy() if its result is a constant of the "
            "computation, or write it with functions that do (docs/numpy.md lists them)."
        )
    raise DtypeError(message)


def array_function(func: Any, types: Sequence[type], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What a NumPy function gives for Tensors."""
    for kind in types:
        if kind is not Tensor and not issubclass(kind, Tensor | np.ndarray):
            return NotImplemented
    implementation = TABLE.get(func)
    if implementation is None:
        refuse(func)
    if kwargs:
        # NumPy's own functions pass on what they were not given.
        kwargs = {name: value for name, value in kwargs.items() if value is not _NOT_GIVEN}
    return implementation(*args, **kwargs)
