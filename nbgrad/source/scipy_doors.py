"""Doors into SciPy in code that `differentiable_source` runs: the way a call takes depends on its arguments.

In: a function or class of SciPy, and its form for recorded values. Out: an object in its place. Where no argument holds
a recorded value, a call goes to SciPy itself, with plain arrays; otherwise to the other form, which is SciPy's own
Python code with nbgrad's NumPy. Called by rebinding.py and scipy_solvers.py. What nbgrad/scipy/scipy_table.py has is
replaced before.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType, MethodType, ModuleType, new_class
from typing import Any

from ..errors import DtypeError, NbgradError, is_installed
from ..record.as_node import SEQUENCES
from ..record.container_leaves import map_leaves
from ..record.tensor import Tensor
from ..scipy.scipy_objects import RecordedMatrix, is_factorisation
from .watched import is_empty

_DEEPEST = 4
"""Functions within functions, or objects within objects, in which recorded values are looked for."""


def of_scipy(value: Any) -> bool:
    """Whether a value is a function or a class that SciPy defines in Python."""
    if isinstance(value, FunctionType):
        return str(value.__globals__.get("__name__", "")).partition(".")[0] == "scipy"
    if not isinstance(value, type) or issubclass(value, BaseException | tuple | dict):
        return False
    return str(value.__module__).partition(".")[0] == "scipy"


def recorded(value: Any, deepest: int = _DEEPEST) -> bool:
    """Whether a value that is differentiated or compiled is in an argument: also in what a function refers to."""
    if isinstance(value, Tensor):
        return bool(value._node.traced)
    if isinstance(value, RecordedMatrix):
        return bool(value.values.traced)
    if isinstance(value, (*SEQUENCES, set)):
        return any(recorded(item, deepest) for item in value)
    if isinstance(value, dict):
        return any(recorded(item, deepest) for item in value.values())
    if deepest == 0 or isinstance(value, type | ModuleType):
        return False
    inside: list[Any] = []
    if isinstance(value, FunctionType):
        inside = [cell.cell_contents for cell in value.__closure__ or () if not is_empty(cell)]
        inside += [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    elif isinstance(value, MethodType):
        inside = [value.__self__]
    elif isinstance(value, functools.partial):
        inside = [value.func, *value.args, *value.keywords.values()]
    elif hasattr(value, "__dict__"):
        inside = [*vars(value).values()]
    return any(recorded(item, deepest - 1) for item in inside)


def plain(value: Any) -> Any:
    """An argument with arrays in place of Tensors, which are constants, and without doors."""

    def unwrapped(leaf: Any) -> Any:
        if isinstance(leaf, ObjectDoor):
            return leaf._original
        if isinstance(leaf, RecordedMatrix):
            return leaf.as_scipys()
        return leaf.asnumpy() if isinstance(leaf, Tensor) else leaf

    return map_leaves(unwrapped, value)


def _through(value: Any) -> Any:
    """An argument for SciPy's code with nbgrad's NumPy: objects in their form for recorded values."""

    def through(leaf: Any) -> Any:
        return leaf._form() if isinstance(leaf, ObjectDoor) else leaf

    return map_leaves(through, value)


def _called(original: Any, other: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call that takes the way that its arguments need."""
    if not recorded((args, kwargs)):
        return original(*plain(args), **plain(kwargs))
    try:
        return other()(*_through(args), **_through(kwargs))
    except (AttributeError, TypeError) as error:
        if isinstance(error, NbgradError) or not _is_from_inside(error):
            raise
        owner = getattr(original, "__self__", original)
        owner = owner if hasattr(owner, "__name__") else type(owner)
        name = f"{owner.__module__.partition('._')[0]}.{owner.__name__}"
        message = (
            f"{name} does not work on recorded values: its code in SciPy stops at {type(error).__name__}, {error}. "
            "Give it a derivative by nb.primitive; docs/scipy.md lists the functions that have one."
        )
        raise DtypeError(message) from error


def _is_from_inside(error: BaseException) -> bool:
    """Whether an error was raised by an installed package, and not by a function of the user's."""
    entry = error.__traceback__
    last = ""
    while entry is not None:
        name = str(entry.tb_frame.f_globals.get("__name__", ""))
        if not name.startswith("nbgrad.") and entry.tb_frame.f_code.co_filename[:1] != "<":
            last = entry.tb_frame.f_code.co_filename
        entry = entry.tb_next
    return is_installed(last) or last.endswith(".pyx")


def door(original: Any, converted: Callable[[Any], Any]) -> Any:
    """A function or class of SciPy with a second form: `converted(original)`, made at the first call that needs it."""
    if isinstance(original, type):
        return _ClassDoor(original.__name__, (), {"_original": original, "_converted": staticmethod(converted)})

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _called(original, lambda: converted(original), args, kwargs)

    del call.__wrapped__  # type: ignore[attr-defined]
    call.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    return call


class ObjectDoor:
    """An object that SciPy has made of plain arrays: its methods take the way that their arguments need."""

    def __init__(self, original: Any, converted: Callable[[Any], Any]) -> None:
        self.__dict__.update(_original=original, _form=lambda: converted(original))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.__dict__["_original"], name)
        if not isinstance(found, MethodType):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            return _called(found, lambda: getattr(self._form(), name), args, kwargs)

        return call

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._original, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = self._original.__call__
        return _called(found, self._form, args, kwargs)


_OBJECTS = ("scipy.stats", "scipy.signal", "scipy.interpolate")
"""Modules whose objects get doors; those of others, such as sparse matrices and bounds, are data."""


def has_methods(value: Any) -> bool:
    """Whether a value is an object of SciPy's whose methods take arrays."""
    kind = type(value)
    mine = str(kind.__module__).startswith(_OBJECTS) and not issubclass(kind, tuple | dict | BaseException)
    return mine and hasattr(value, "__dict__") and not isinstance(value, type | FunctionType)


class _ClassDoor(type):
    """The class of doors that stand for classes: calls make an object, and other names are the original's.

    A class that is derived from a door is derived from the original.
    """

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        if bases:
            return new_class(name, tuple(map(without_door, bases)), {}, lambda body: body.update(namespace))
        return super().__new__(mcls, name, bases, namespace)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        original, converted = cls.__dict__["_original"], cls.__dict__["_converted"]
        found = _called(original, lambda: converted(original), args, kwargs)
        return ObjectDoor(found, converted) if isinstance(found, original) and has_methods(found) else found

    def __getattr__(cls, name: str) -> Any:
        found = getattr(cls.__dict__["_original"], name)
        if not isinstance(found, MethodType):
            return found
        own = cls.__dict__

        def call(*args: Any, **kwargs: Any) -> Any:
            return _called(found, lambda: getattr(own["_converted"](own["_original"]), name), args, kwargs)

        return call

    def __instancecheck__(cls, value: Any) -> bool:
        value = value._original if isinstance(value, ObjectDoor) else value
        return isinstance(value, (cls.__dict__["_original"], cls._form()))

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.__dict__["_original"]) or issubclass(other, cls._form())

    def _form(cls) -> Any:
        return cls.__dict__["_converted"](cls.__dict__["_original"])


def without_door(value: Any) -> Any:
    """The class of SciPy's behind what stands for it; other values as they are."""
    return value.__dict__.get("_original", value) if isinstance(value, type) else value


# ----- Objects that hold objects of SciPy's -----


def is_scipys(value: Any) -> bool:
    """Whether the class of a value is SciPy's."""
    return type(value).__module__.partition(".")[0] == "scipy" or is_factorisation(value)


def reading(cls: Any, convert: Callable[[Any], Any]) -> Any:
    """A class whose objects show objects of SciPy's among their attributes in their converted form."""

    def read(this: Any, name: str) -> Any:
        found = cls.__getattribute__(this, name)
        return convert(found) if is_scipys(found) else found

    return type(cls)(cls.__name__, (cls,), {"__getattribute__": read, "__module__": cls.__module__})
