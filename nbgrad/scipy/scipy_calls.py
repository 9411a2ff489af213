"""Replacements of SciPy's functions, classes and distributions in code that `differentiable_source` runs.

In: an object of SciPy's. Out: a function with its signature that hands Tensors to nbgrad's, and everything else to
SciPy's; or a class, or an object, in its place. Called by nbgrad/source/replacements.py. The names are in
scipy_table.py; a module of functions is imported at the first call with a Tensor.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import BuiltinFunctionType
from typing import Any

import optree

from ..errors import ArgumentError
from ..functions.linalg.sparse_products import multiples
from ..record.as_node import SEQUENCES, holds_tensors
from ..record.tensor import Tensor
from ..transforms.arguments import flatten
from .scipy_objects import RecordedMatrix, ScipyObject, standing_for
from .scipy_table import CLASSES, FUNCTIONS, NEUTRAL, Entry

Function = Callable[..., Any]
_PACKAGE = __package__.rpartition(".")[0] if __package__ else "nbgrad"


def _of(entry: Entry) -> Any:
    """The object of a row, imported when it is first asked for."""
    return getattr(import_module(f"{_PACKAGE}.{entry.module}"), entry.name)


def _by_elements(ufunc: Any, left: Any, right: Any) -> Any:
    return _of(Entry("scipy.sparse_values", "by_elements"))(ufunc, left, right)


multiples.append(_by_elements)


def _is_ours(value: Any) -> bool:
    """Whether a value is a Tensor or a sparse matrix of Tensors, or holds one."""
    if isinstance(value, SEQUENCES):
        return any(map(_is_ours, value))
    return isinstance(value, RecordedMatrix) or holds_tensors(value)


def _as_ours(found: Any) -> Any:
    """An object of SciPy's, made of constants, as one of ours, which takes Tensors; its methods, too."""
    if isinstance(found, BuiltinFunctionType) and found.__self__ is not None:
        owner = _as_ours(found.__self__)
        return found if owner is found.__self__ else getattr(owner, found.__name__)
    for module in CLASSES:
        if module in sys.modules and _is_ready(module) and type(found) in _classes_of(module):
            return standing_for(_of(_classes_of(module)[type(found)]), found)
    return found


def _dispatching(name: str, original: Function, entry: Entry) -> Function:
    """A function of SciPy's that hands Tensors to ours."""
    try:
        signature = inspect.signature(original)
    except ValueError:  # compiled code
        signature = None
    if signature is None or [*signature.parameters] == ["args", "kwargs"]:
        signature = inspect.signature(_of(entry))

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        if not any(_is_ours(value) for value in (*args, *kwargs.values())):
            return _as_ours(original(*args, **kwargs))
        given = signature.bind(*args, **kwargs)
        function = _of(entry)
        taken = entry.taken.split() or [*inspect.signature(function).parameters]
        for parameter, value in given.arguments.items():
            default = signature.parameters[parameter].default
            usual = value is default or (isinstance(value, bool | int | float | str) and value == default)
            if not usual and parameter not in taken and parameter not in NEUTRAL:
                message = f"{name} does not take {parameter} for Tensors; leave it away."
                raise ArgumentError(message)
        given.apply_defaults()
        if entry.taken:
            return function(*[given.arguments[parameter] for parameter in taken])
        return function(**{name: given.arguments[name] for name in taken if name in given.arguments})

    dispatch.__name__ = dispatch.__qualname__ = original.__name__
    dispatch._original = original  # type: ignore[attr-defined]
    dispatch.__doc__ = f"As `{name}`; of Tensors, with derivatives."
    return dispatch


@cache
def _functions_of(module: str) -> dict[int, tuple[Any, Any]]:
    """By identity: functions of an imported module, and their replacements.

    Code inside SciPy calls what is under the wrappers that public functions have.
    """
    found: dict[int, tuple[Any, Any]] = {}
    for name, entry in FUNCTIONS.get(module, {}).items():
        original = getattr(sys.modules[module], name, None)
        if original is not None:
            for form in {id(f): f for f in (original, inspect.unwrap(original))}.values():
                found[id(form)] = form, _dispatching(f"{module}.{name}", original, entry)
    return found


@cache
def _classes_of(module: str) -> dict[Any, Entry]:
    """The classes of an imported module that have one of ours."""
    found = {getattr(sys.modules[module], name, None): entry for name, entry in CLASSES.get(module, {}).items()}
    found.pop(None, None)
    return found


def _plain(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Arguments for SciPy itself, which knows its own objects and functions; None if something is recorded."""
    leaves, tree = flatten((args, kwargs))
    if any(_is_recorded(leaf) for leaf in leaves):
        return None
    plain = [leaf.asnumpy() if isinstance(leaf, Tensor) else getattr(leaf, "_original", leaf) for leaf in leaves]
    return optree.tree_unflatten(tree, plain)


def _is_recorded(leaf: Any) -> bool:
    if isinstance(leaf, ScipyObject):
        return "_original" not in vars(leaf)
    return bool(leaf._node.traced) if isinstance(leaf, Tensor) else isinstance(leaf, RecordedMatrix)


@cache
def _class(original: Any, entry: Entry) -> Any:
    """The class in place of one of SciPy's. Objects of plain arrays are SciPy's own, seen as ones of ours."""
    ours = _of(entry)

    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        plain = _plain(args, kwargs)
        return ours(*args, **kwargs) if plain is None else standing_for(ours, original(*plain[0], **plain[1]))

    def __getattr__(_: Any, name: str) -> Any:  # noqa: N807
        found = getattr(original, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            plain = _plain(args, kwargs)
            if plain is None:
                return (getattr(ours, name) if name in dir(ours) else found)(*args, **kwargs)
            made = found(*plain[0], **plain[1])
            return standing_for(ours, made) if isinstance(made, original) else made

        return call

    asked = {"__instancecheck__": lambda _, value: isinstance(value, (ours, original)), "__getattr__": __getattr__}
    meta = type("_Meta", (type,), asked)
    return meta(
        original.__name__, (), {"__new__": __new__, "__doc__": original.__doc__, "of": ours.of, "_original": original}
    )


def implementation_of(multimethod: Any) -> Any:
    """SciPy's own function behind one of its multimethods; the multimethod, if there is none.

    A multimethod (of `scipy.fft`) is an object of compiled code that takes the arrays out of its arguments, by the
    function in `__wrapped__`, and asks a backend.
    """
    for module in ("_basic_backend", "_realtransforms_backend", "_fftlog_backend"):
        found = getattr(sys.modules.get(f"scipy.fft.{module}"), multimethod.__name__, None)
        if found is not None:
            return found
    return multimethod


def replacement_in_scipy(value: Any, in_python: Callable[[Any], Any]) -> Any:
    """The replacement of an object of SciPy; the object itself, if there is none.

    `in_python` gives the form of an object whose methods are SciPy's Python code with nbgrad's NumPy.
    """
    found = _as_ours(value)
    if found is not value:
        return found
    for module in {**FUNCTIONS, **CLASSES}:
        if module not in sys.modules or not _is_ready(module):
            continue
        known = _functions_of(module).get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        if isinstance(value, type) and value in _classes_of(module):
            return _class(value, _classes_of(module)[value])
    if "scipy.stats" in sys.modules and _is_ready("scipy.stats"):
        from .distributions import replacement_of_distribution

        return replacement_of_distribution(value, in_python)
    return value


def _is_ready(module: str) -> bool:
    """Whether the import of a module has come to its end, as far as its table of names tells."""
    return hasattr(sys.modules[module], "__all__") or module == "scipy.linalg.lapack"
