"""Replacements of NumPy's, `math`'s and Python's own objects in code that `differentiable_source` runs.

In: an object that such code refers to by a global name, an import or a closure. Out: the object that it gets instead:
of `nbgrad.numpy` for NumPy's, of math_functions.py for `math`'s, classes that know Tensors for `float` and `complex`.
Called by rebinding.py.
"""

from __future__ import annotations

import builtins
import cmath
import math
import numbers
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev, polynomial, polyutils

from .. import numpy as ours
from ..functions.analysis.polynomials import divided, divided_by_products, trimseq
from ..numpy.drop_in import equivalent
from ..numpy.scalar_types import PYTHON_NUMBERS, is_scalar, scalar_type
from ..record.tensor import Tensor
from ..scipy.scipy_calls import implementation_of as implementation_of
from ..scipy.scipy_calls import replacement_in_scipy
from ..scipy.scipy_objects import is_factorisation
from . import statements
from .control_flow import CALLS
from .math_functions import functions
from .orders import BUILTINS
from .scipy_solvers import replaced_solver

_NUMPY_MODULES = ("linalg", "fft", "random")


class Replaced(ModuleType):
    """A module in which some objects are replaced; all others are the original's."""

    def __init__(self, original: ModuleType, replaced: dict[str, Any]) -> None:
        super().__init__(original.__name__, original.__doc__)
        self.__dict__.update(replaced)
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_original"], name)

    def __dir__(self) -> list[str]:
        return dir(self._original)


class _Internal(ModuleType):
    """A module of SciPy, or inside NumPy, in which functions that users know are replaced."""

    def __init__(self, original: ModuleType) -> None:
        super().__init__(original.__name__, original.__doc__)
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return replacement_of(of_library(getattr(self.__dict__["_original"], name)))


def of_library(module: Any) -> Any:
    """The replacement of a module of SciPy, or inside NumPy, as numpy.lib; other objects as they are."""
    if isinstance(module, ModuleType) and module.__name__.partition(".")[0] in ("numpy", "scipy"):
        return module if replacement_of(module) is not module else _of_module(module)
    return module


@cache
def _of_module(module: ModuleType) -> ModuleType:
    for name in ("polynomial", "emath"):
        if module is getattr(np, name):
            return getattr(ours, name)
    if module.__name__.startswith(_SERIES):
        return getattr(ours.polynomial, module.__name__.removeprefix(_SERIES))
    return _Internal(module)


_SERIES = "numpy.polynomial."


def of_series(value: Any) -> Any:
    """The form of a function, class or series of `numpy.polynomial` that knows Tensors; other objects as they are."""
    module = str(getattr(value, "__module__", ""))
    if not module.startswith(_SERIES):
        return value
    if hasattr(value, "coef"):
        return of_series(type(value))(value.coef, value.domain, value.window, value.symbol)
    return getattr(getattr(ours.polynomial, module.removeprefix(_SERIES)), value.__name__, value)


@cache
def _objects() -> dict[int, tuple[Any, Any]]:
    """By identity: an object, and its replacement, or the name under which `nbgrad.numpy` has that."""
    found: dict[int, tuple[Any, Any]] = {}
    for name in dir(np):
        original = getattr(np, name, None) if not name.startswith("_") else None
        if callable(original) or name in ("r_", "c_", "mgrid", "ogrid"):
            found[id(original)] = original, ("", name)
    for module in _NUMPY_MODULES:
        for name in dir(getattr(np, module)):
            original = getattr(getattr(np, module), name)
            if not name.startswith("_") and callable(original):
                found.setdefault(id(original), (original, (module, name)))
    divisions = {
        polyutils.trimseq: trimseq,
        polyutils._div: divided_by_products,  # type: ignore[attr-defined]
        polynomial.polydiv: divided,
        chebyshev.chebdiv: lambda c1, c2: divided(c1, c2, ours.polynomial.chebyshev.chebmul),
    }
    for original, replacement in (*divisions.items(), *functions().items(), *PYTHON_NUMBERS.items(), *BUILTINS.items()):
        found[id(original)] = original, replacement
    return found


@cache
def _modules() -> dict[int, ModuleType]:
    """By identity of a module: its replacement."""
    found = {id(np): ours, **{id(getattr(np, name)): getattr(ours, name) for name in _NUMPY_MODULES}}
    for module in (math, cmath, numbers):
        replaced = {n: replacement_of(v) for n, v in vars(module).items() if not n.startswith("_")}
        found[id(module)] = Replaced(module, replaced)
    return found


_python_forms: list[Callable[[Any], Any]] = []


def give_python_forms(convert: Callable[[Any], Any]) -> None:
    """Tell how an object of SciPy's becomes one whose methods run with nbgrad's NumPy, which rebinding.py knows."""
    _python_forms[:] = [convert]


def _in_python(value: Any) -> Any:
    return _python_forms[0](value)


def replacement_of(value: Any) -> Any:
    """The replacement of an object of NumPy's, `math`'s or Python's; the object itself, if there is none."""
    if isinstance(value, ModuleType):
        return _modules().get(id(value), value)
    known = _objects().get(id(value))
    if known is None or known[0] is not value:
        library = str(getattr(value, "__module__", None) or type(value).__module__).partition(".")[0]
        if library != "scipy" and type(value).__name__ != "fortran" and not is_factorisation(value):
            return value
        solver = replaced_solver(value)
        return solver if solver is not value else replacement_in_scipy(value, _in_python)
    replacement = known[1]
    if type(replacement) is tuple:
        module, name = replacement
        return getattr(getattr(ours, module) if module else ours, name)
    return replacement


def generator(value: Any) -> Any:
    """The replacement of a generator of random numbers; other objects as they are."""
    return ours.random.of(value) if type(value).__module__.startswith("numpy.random") else value


# ----- Builtins -----


class _TypeOfTypes(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, type)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, type)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is type

    def __hash__(cls) -> int:
        return hash(type)

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if cls is not type_ or len(args) != 1:
            return type.__call__(type if cls is type_ else cls, *args, **options)
        return type_of(args[0])


class type_(type, metaclass=_TypeOfTypes):  # noqa: N801 - stands for `type`
    """`type`, for which Tensors are NumPy's arrays and scalars."""


def type_of(value: Any) -> Any:
    """The result of `type(value)` in code that compares it with `float`, `np.ndarray` or `np.float64`."""
    if isinstance(value, Tensor):
        return equivalent(scalar_type(value)) if is_scalar(value) else ours.ndarray
    kind = type(value)
    if kind is np.ndarray:
        return ours.ndarray
    return equivalent(kind) if isinstance(value, np.generic) else PYTHON_NUMBERS.get(kind, kind)


def builtins_with(importer: Any) -> dict[str, Any]:
    """Python's builtins, with `float`, `type`, `max` and others that know Tensors, and another `__import__`."""
    return {
        **vars(builtins),
        "float": PYTHON_NUMBERS[float],
        "complex": PYTHON_NUMBERS[complex],
        "type": type_,
        **{original.__name__: other for original, other in BUILTINS.items()},
        "__import__": importer,
        CALLS: statements,
    }
