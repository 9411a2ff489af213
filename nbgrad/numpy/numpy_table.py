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
from ..tensor_operators import NOT_GIVEN, Late
from . import home_of

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

_TABLE: dict[Callable[..., Any], Callable[..., Any]] = {}
"""NumPy function -> the function of `nbgrad.numpy`, as far as modules were imported."""
_waiting = list(MODULES)
Late.implementations = _TABLE  # where Tensor looks first


def find(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """What stands for a function of NumPy's, if anything does.

    A module is imported when one of its functions is first asked for, so that the first gradient of a process is fast.
    """
    if function not in _TABLE and _waiting:
        likely = home_of(getattr(function, "__name__", ""))
        for module in [likely] if likely in _waiting else []:
            _load(module)
        if function not in _TABLE:
            for module in list(_waiting):
                _load(module)
    return _TABLE.get(function)


def _load(module: str) -> None:
    _TABLE.update(import_module(f".{module}", __package__).NUMPY)
    if module in _waiting:
        _waiting.remove(module)


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
    implementation = find(func)
    if implementation is None:
        refuse(func)
    if kwargs:
        # NumPy's own functions pass on what they were not given.
        kwargs = {name: value for name, value in kwargs.items() if value is not NOT_GIVEN}
    return implementation(*args, **kwargs)
