"""The names of `nbgrad.numpy` that are not in its table of own functions: the rest of NumPy's namespace.

In: a name. Out: its counterpart here: our function, where NumPy's is one that Tensors understand; a class that knows
Tensors, for NumPy's scalar types; NumPy's own object for all else (constants, dtypes, text, files, settings). Called by
`__init__.py` for `import nbgrad.numpy as np`, and by source/, which asks for the counterpart of an object.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ..functions.arrays.construction import asarray
from ..functions.elementwise.ufunc_protocol import array_ufunc
from ..functions.table import find
from ..graph.ir import due
from ..record.followed import expected
from ..record.masked_elements import MaskedElements, apply, made
from .scalar_types import stand_in

SUBMODULES = ("linalg", "fft", "random")
"""The modules of NumPy that have a file here."""
_classes: dict[type, Any] = {}
_modules: dict[str, ModuleType] = {}


def counterpart(name: str) -> Any:
    """The object `nbgrad.numpy.name`, for a name of NumPy's.

    Raises
    ------
    AttributeError
        If NumPy has no such name either.
    """
    if name.startswith("__") and name != "__version__":
        raise AttributeError(name)
    original = getattr(np, name)
    if name in SUBMODULES:
        return submodule(name)
    return equivalent(original)


def submodule(name: str) -> ModuleType:
    """Our module in place of `numpy.linalg`, `numpy.fft` or `numpy.random`."""
    if name not in _modules:
        if find_spec(f".{name}", __package__) is not None:
            _modules[name] = import_module(f".{name}", __package__)
        else:
            _modules[name] = _Submodule(f"{__package__}.{name}", getattr(np, name))
    return _modules[name]


class _Submodule(ModuleType):
    """A module of NumPy's with our functions in place of those that Tensors understand."""

    def __init__(self, name: str, original: ModuleType) -> None:
        super().__init__(name, original.__doc__)
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return equivalent(getattr(self.__dict__["_original"], name))

    def __dir__(self) -> list[str]:
        return dir(self._original)


def equivalent(original: Any) -> Any:
    """Our function or class in place of one of NumPy's; other objects as they are."""
    if isinstance(original, type):
        if issubclass(original, np.generic):
            if original not in _classes:
                _classes[original] = stand_in(original)
            return _classes[original]
        return original
    if not callable(original):
        return original
    try:
        found = find(original)
    except TypeError:  # what cannot be hashed is no function
        return original
    return original if found is None else public(found, str(original.__module__).removeprefix("numpy"))


@cache
def public(function: Callable[..., Any], submodule: str = "") -> Any:
    """A function as users call it: in loops that are known, its calls are followed; classes and others as they are.

    It is known by the name of the function in `nbgrad.numpy`, or in a `submodule` of it, such as ".linalg".
    """
    if not isinstance(function, FunctionType):
        return function

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if made and any(isinstance(one, MaskedElements) for one in args):
            return apply(function, args, kwargs)
        if due:
            return expected.function(function, args, kwargs)
        return function(*args, **kwargs)

    called.__module__, called.__qualname__ = f"{__package__}{submodule}", function.__name__
    return called


def own(module: ModuleType, name: str) -> Any:
    """A function of ours; one that stands for a ufunc also has the ufunc's methods."""
    function = public(getattr(module, name))
    ufunc = getattr(np, name, None)
    if isinstance(ufunc, np.ufunc) and not hasattr(function, "reduce"):
        for method in ("reduce", "accumulate", "outer", "at", "reduceat"):
            setattr(function, method, _method(ufunc, method))
        for fact in ("nin", "nout", "nargs", "ntypes", "types", "identity", "signature", "resolve_dtypes"):
            setattr(function, fact, getattr(ufunc, fact))
    return function


def _method(ufunc: np.ufunc, method: str) -> Any:
    """A method of a ufunc for Tensors, arrays and lists of Tensors."""

    def function(*inputs: Any, **options: Any) -> Any:
        if method != "at":
            inputs = (asarray(inputs[0]), *inputs[1:])
        return array_ufunc(ufunc, method, inputs, options)

    function.__name__ = method
    function.__doc__ = f"As `numpy.{ufunc.__name__}.{method}`."
    return function


def public_names() -> list[str]:
    """The public names of NumPy's."""
    return [name for name in dir(np) if not name.startswith("_")]
