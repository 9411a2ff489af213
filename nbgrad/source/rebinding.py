"""Other people's functions with `nbgrad.numpy` in place of NumPy: `differentiable_source`.

In: a function, method, class, object or module that was written for NumPy. Out: the same, run with other globals: where
its code says `np`, or a name that was imported from NumPy or from `math`, it finds nbgrad's. Nothing of the original is
changed: new function objects share the code and look up names in the original's module when they run. Branches and
loops by recorded values become `cond` and `while_loop` (control_flow.py). Called by users
whose functions make arrays of recorded values (`np.array([x[0], x[1]])`), write them into `np.zeros(n)`, or call
`math.sin`, none of which NumPy lets a Tensor see. The replacements are in replacements.py.
"""

from __future__ import annotations

import abc
import builtins
import enum
import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, TypeVar, overload

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..graph.loops.watch import runs_as_python
from ..process.named_objects import NamedObject
from ..record.tensor import Tensor
from . import replacements, statements
from .control_flow import has_flow, parsed, rewritten, with_checked_divisions
from .handled_errors import has_handlers, note_file
from .scipy_doors import ObjectDoor, door, has_methods, is_scipys, of_scipy, reading, without_door

Anything = TypeVar("Anything")


_MOST_ELEMENTS = 1000
"""Containers of globals with more elements are data."""


@overload
def differentiable_source(function: Anything, /, *, modules: Any = ()) -> Anything: ...
@overload
def differentiable_source(*, modules: Any = ()) -> Callable[[Anything], Anything]: ...
def differentiable_source(function: Any = None, /, *, modules: Any = ()) -> Any:
    """A function, or class, with nbgrad's NumPy in place of NumPy, so that all that it does can be differentiated.

    Parameters
    ----------
    function : function, method, class, callable object or module
        Its code is used as it is, also where it is decorated by `functools.lru_cache` or compiled by Numba.
    modules : module, str, or sequence of them
        Other modules whose functions and classes are to be run in the same way when they are called; a package counts
        with all modules in it. The module of `function` itself always is one.

    Returns
    -------
    as `function`
        For which these names have other meanings, in its module, in closures and in imports that it does itself:
        `numpy` and everything imported from it (see `nbgrad.numpy`); `math` and its functions, which keep the gradient
        of Tensors; SciPy's functions, classes and distributions (docs/scipy.md lists them); and `float`,
        `complex` and `type`, for which `x[0]` is a float64, as it is in NumPy. `x.item()` and `x.tolist()` keep the
        gradient there. Functions and classes of the module that
        it uses are run in the same way. Without `function`, a decorator with `modules`.

    Raises
    ------
    DtypeError
        If `function` is none of these, or has no Python code.
    ArgumentError
        If a name in `modules` is not that of a module that is imported.

    Notes
    -----
    The original, its module and its classes are not changed. Assignments to global variables (`global n; n = 1`) stay
    inside. Objects that were made by the original class are seen as ones of the new class, with the same attributes,
    where the function gets them as arguments or as global names.

    While `jit`, `vmap` or a turn of a loop records the function, `if`, `while`, `for`, `and`, `or`, `not`, `min` and
    `max` that ask for recorded values become `cond` and `while_loop`, if the text of the function can be read: then
    one compiled program serves all numbers of turns and both sides of a branch. Both sides run while they are recorded,
    must set the same names to arrays of the same shapes, and change nothing else than arrays of the function. Otherwise
    `jit` records each way through the function, and in `vmap` and loops an error names the line.

    A call of SciPy whose arguments hold no recorded value goes to SciPy itself, with plain arrays. Others go to forms
    of nbgrad's own, with those of `nb.solvers` among them, or to SciPy's Python code run in this way. What only SciPy's
    compiled code computes stays an error that names the line.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def spin(x):                        # np.array takes values, so NumPy would lose the gradient
    ...     c, s = np.cos(x[0]), np.sin(x[0])
    ...     rotation = np.array([[c, -s], [s, c]])
    ...     path = np.zeros((3, 2))
    ...     path[0] = [1.0, x[1]]
    ...     for k in range(2):
    ...         path[k + 1] = rotation @ path[k]
    ...     return path[-1, 0]
    >>> nb.grad(nb.differentiable_source(spin))(np.array([0.5, 2.0]))
    array([-3.84415119, -0.84147098])

    >>> def root(a):
    ...     x = 1.0
    ...     while abs(x * x - a) > 1e-12:
    ...         x = 0.5 * (x + a / x)
    ...     return x
    >>> nb.vmap(nb.differentiable_source(root))(np.array([4.0, 9.0]))
    array([2., 3.])
    """
    if function is None:
        return lambda given: differentiable_source(given, modules=modules)
    if isinstance(modules, str | ModuleType):
        modules = (modules,)
    return _Source(function, modules).root()


@functools.cache
def _inside_scipy() -> _Source:
    """The conversion of all of SciPy, for calls with recorded values."""
    return _Source(None, ("scipy",), inside_scipy=True)


def _scipys(value: Any) -> Any:
    """A function, class or object of SciPy with nbgrad's NumPy. Objects, which come and go, are not remembered."""
    inside = _inside_scipy()
    return inside.convert(value) if isinstance(value, FunctionType | type) else inside._converted(value)


replacements.give_python_forms(_scipys)


def converted(original: Any, modules: str) -> Any:
    """A class or module of NumPy's own that is written in Python, as nbgrad.numpy/drop_in.py has it."""
    return _Source(original, (modules,)).as_if_unknown(original)


class _Globals(dict[str, Any]):
    """The global names of a module as converted code finds them: looked up when it runs, so that they are current."""

    __slots__ = ("module", "source")

    def __init__(self, source: _Source, module: dict[str, Any]) -> None:
        super().__init__(__builtins__=_Builtins(self, source.builtins(module)))
        self.source, self.module = source, module

    def __missing__(self, name: str) -> Any:
        return self.source.convert(self.module[name])


class _Builtins(dict[str, Any]):
    """Python's builtins behind the globals of a module, for the bodies of classes: these look for a name among the
    items of the globals alone, without `__missing__`, and then here."""

    __slots__ = ("globals",)

    def __init__(self, names: _Globals, items: dict[str, Any]) -> None:
        super().__init__(items)
        self.globals = names

    def __getitem__(self, name: str) -> Any:
        return self.globals[name] if name in self.globals.module else super().__getitem__(name)


def _staged(fn: FunctionType, plain: FunctionType) -> FunctionType:
    """A function that runs with branches and loops as calls while something records it for many values."""
    made: list[FunctionType] = []

    def find() -> FunctionType:
        code = rewritten(fn)
        if code is None:
            return plain
        cells = dict(zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True))
        closure = tuple([cells[name] for name in code.co_freevars])
        new = FunctionType(code, plain.__globals__, plain.__name__, plain.__defaults__, closure)
        new.__kwdefaults__ = plain.__kwdefaults__
        return new

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not statements.is_staging():
            return plain(*args, **kwargs)
        if not made:
            made.append(find())
        return made[0](*args, **kwargs)

    return call  # type: ignore[return-value]


class _View(ModuleType):
    """A module as converted code finds it."""

    def __init__(self, source: _Source, original: ModuleType) -> None:
        super().__init__(original.__name__, original.__doc__)
        self._source, self._original = source, original

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["_source"].convert(getattr(self.__dict__["_original"], name))


class _Source:
    """One conversion: the modules that take part, and the objects that were converted already."""

    def __init__(self, function: Any, modules: Iterable[Any], inside_scipy: bool = False) -> None:
        self.function, self.inside_scipy = function, inside_scipy
        self.packages: list[str] = []
        self.home = _globals_of(function)
        for module in modules:
            name = module.__name__ if isinstance(module, ModuleType) else module
            if name not in sys.modules:
                message = f"There is no imported module {name!r}. Import it first, or give the module itself."
                raise ArgumentError(message)
            if inside_scipy or name.partition(".")[0] != "scipy":  # SciPy has doors
                self.packages.append(name)
        self.known: dict[int, tuple[Any, Any]] = {}
        """By identity: an object, and its converted form. The original is kept, so that no other object has its id."""
        self.globals: dict[int, _Globals] = {}
        self.waiting: list[tuple[CellType, Any]] = []
        """Cells of closures that are filled at the end, because they may refer to objects that are being converted."""
        """Names that bodies of classes read, filled as cells are."""
        self.depth = 0

    def root(self) -> Any:
        """The converted function, class or object."""
        function = self.function
        converted = self.convert(function)
        no_code = isinstance(function, _DATA + _CONTAINERS) or (
            converted is function and (isinstance(function, _COMPILED) or not callable(function))
        )
        if no_code and not isinstance(function, ModuleType):
            what = getattr(function, "__name__", type(function).__name__)
            message = f"differentiable_source needs a function, method or class in Python, but got {what}."
            raise DtypeError(message)
        if not isinstance(function, FunctionType) or not isinstance(converted, FunctionType):
            return converted

        @functools.wraps(converted)
        def run(*args: Any, **kwargs: Any) -> Any:
            return converted(*map(self.argument, args), **{name: self.argument(v) for name, v in kwargs.items()})

        del run.__wrapped__  # type: ignore[attr-defined]
        run.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return run

    def as_if_unknown(self, value: Any) -> Any:
        """The converted form of an object that `nbgrad.numpy` replaces, namely by this form."""
        new = self._converted(value)
        self.known[id(value)] = value, new
        self._fill_cells()
        return new

    def argument(self, value: Any) -> Any:
        """An argument of the call: functions and objects of the modules are converted, containers are not."""
        return value if isinstance(value, _DATA) or type(value) in _CONTAINERS else self.convert(value)

    def takes_part(self, module: Any) -> bool:
        """Whether a module, given by its globals or its name, is one whose code is converted."""
        if isinstance(module, dict):
            if module is self.home:
                return True
            module = module.get("__name__", "")
        elif self.home is not None and module == self.home.get("__name__"):
            return True
        return any(module == name or str(module).startswith(f"{name}.") for name in self.packages)

    # ----- Any object -----

    def convert(self, value: Any) -> Any:
        """The replacement of an object in converted code; the object itself, if it needs none."""
        known = self.known.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        if isinstance(value, _DATA):
            return value
        found = replacements.replacement_of(value)
        if found is not value:
            self.known[id(value)] = value, found
            return found
        self.depth += 1
        try:
            converted = self._converted(value)
        finally:
            self.depth -= 1
        if type(value) not in _CONTAINERS:  # which may change
            self.known.setdefault(id(value), (value, converted))
        if not self.depth:
            self._fill_cells()
        return converted

    def _fill_cells(self) -> None:
        while self.waiting:
            cell, content = self.waiting.pop()
            cell.cell_contents = self.convert(content)

    def _converted(self, value: Any) -> Any:
        kind = type(value)
        if not self.inside_scipy and of_scipy(value):
            return door(value, _scipys)
        if not self.inside_scipy and has_methods(value):
            return ObjectDoor(value, _scipys)
        if not self.takes_part("numpy.polynomial") and (series := replacements.of_series(value)) is not value:
            return series
        if kind is FunctionType:
            return self._function(value)
        if kind is MethodType:
            return MethodType(self.convert(value.__func__), self.convert(value.__self__))
        if kind in _CONTAINERS:
            return self._container(value)
        if isinstance(value, ModuleType):
            if self.takes_part(value.__name__) or value.__name__.partition(".")[0] == "scipy":
                return _View(self, value)
            return replacements.of_library(value)
        if isinstance(value, type):
            return self._class(value) if self._is_ours(value) else value
        for form, parts in _WRAPPERS:
            if isinstance(value, form):
                given = parts(value)
                changed = self._each(given)
                return value if changed is None else _rewrapped(value, changed)
        if hasattr(value, "arg_extractor"):
            # A multimethod, whose `__wrapped__` only takes the arrays out of its arguments.
            inner = replacements.implementation_of(value)
            return self.convert(inner) if isinstance(inner, FunctionType) else value
        if isinstance(value, NamedObject):
            return value.with_functions(self.convert)
        inner = getattr(value, "py_func", None) or getattr(value, "__wrapped__", None)
        if isinstance(inner, FunctionType) and not isinstance(value, type):
            # A function that Numba compiled, or lru_cache remembers.
            if not self.takes_part(inner.__globals__):
                return value
            if hasattr(value, "py_func"):
                runs_as_python(inner)
            return self.convert(inner)
        if self._is_ours(kind) or (self.takes_part(kind.__module__) and self._holds_scipys(value)):
            return self._object(value)
        return replacements.generator(value)

    def _each(self, values: Iterable[Any]) -> list[Any] | None:
        """Values converted; None if all stay."""
        values = list(values)
        converted = [self.convert(value) for value in values]
        return None if all(a is b for a, b in zip(values, converted, strict=True)) else converted

    def _container(self, value: Any) -> Any:
        if len(value) > _MOST_ELEMENTS:
            return value
        if isinstance(value, dict):
            changed = self._each(value.values())
            return value if changed is None else dict(zip(value, changed, strict=True))
        changed = self._each(value)
        return value if changed is None else type(value)(changed)

    # ----- Functions -----

    def _function(self, fn: FunctionType) -> Any:
        if isinstance(fn.__globals__, _Globals):
            return fn
        if self.takes_part(fn.__globals__):
            namespace: dict[str, Any] = self._globals(fn.__globals__)
        elif isinstance(inner := getattr(fn, "__wrapped__", None), FunctionType) and self.takes_part(inner.__globals__):
            namespace = fn.__globals__  # a decorator from elsewhere
        else:
            return fn
        code = fn.__code__
        if has_handlers(code) and isinstance(namespace, _Globals):
            note_file(code.co_filename, parsed)
            code = with_checked_divisions(fn) or code
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        closure = tuple([self._cell(cells[name]) for name in code.co_freevars])
        new = FunctionType(code, namespace, fn.__name__, None, closure)
        self.known[id(fn)] = fn, new
        new.__defaults__ = None if fn.__defaults__ is None else tuple([self.convert(v) for v in fn.__defaults__])
        new.__kwdefaults__ = {k: self.convert(v) for k, v in (fn.__kwdefaults__ or {}).items()} or None  # type: ignore
        for name in ("__module__", "__qualname__", "__doc__", "__annotations__"):
            setattr(new, name, getattr(fn, name))
        new.__dict__.update(fn.__dict__)
        if has_flow(fn.__code__) and isinstance(namespace, _Globals):
            self.known[id(fn)] = fn, (staged := _staged(fn, new))
            self.known[id(staged)] = staged, staged
            return staged
        return new

    def _cell(self, cell: CellType) -> CellType:
        """A variable of a closure: itself, unless its content must be converted."""
        known = self.known.get(id(cell))
        if known is not None:
            return known[1]
        try:
            content = cell.cell_contents
        except ValueError:  # not assigned yet
            return cell
        if isinstance(content, _DATA):
            return cell
        fresh = CellType()
        self.known[id(cell)] = cell, fresh
        self.waiting.append((fresh, content))
        return fresh

    def _globals(self, module: dict[str, Any]) -> _Globals:
        found = self.globals.get(id(module))
        if found is None:
            found = self.globals[id(module)] = _Globals(self, module)
        return found

    def builtins(self, module: dict[str, Any]) -> dict[str, Any]:
        """Python's builtins as converted code of a module finds them."""

        def importer(name: str, _: Any = None, local: Any = None, fromlist: Any = (), level: int = 0) -> Any:
            return self.convert(builtins.__import__(name, module, local, fromlist, level))

        return replacements.builtins_with(importer)

    # ----- Classes and their objects -----

    def _is_ours(self, cls: type) -> bool:
        """Whether a class has code of the modules that has to be converted."""
        if type(cls) not in (type, abc.ABCMeta) or issubclass(cls, BaseException | enum.Enum | tuple):
            return False
        return any(
            self.takes_part(fn.__globals__) and self._refers(fn.__code__, fn.__globals__) for fn in _functions_of(cls)
        )

    def _refers(self, code: CodeType, module: dict[str, Any]) -> bool:
        """Whether code uses a name that has another meaning once it is converted."""
        for name in code.co_names:
            value = module.get(name, getattr(builtins, name, None))
            changes = isinstance(value, FunctionType | type | ModuleType) and (
                self.takes_part(getattr(value, "__module__", "") or getattr(value, "__name__", ""))
            )
            if name == "__import__" or changes or replacements.replacement_of(value) is not value:
                return True
        return any(self._refers(part, module) for part in code.co_consts if isinstance(part, CodeType))

    def _class(self, cls: type) -> type:
        members: dict[str, Any] = {}
        for name, value in vars(cls).items():
            ours = isinstance(value, MemberDescriptorType) and value.__objclass__ is cls
            if not ours and name not in ("__dict__", "__weakref__", "_abc_impl"):
                members[name] = self.convert(value)
        bases = tuple([without_door(self.convert(base)) for base in cls.__bases__])
        kind = _ConvertedABC if any(isinstance(base, abc.ABCMeta) for base in (cls, *bases)) else _Converted
        new = kind(cls.__name__, bases, {**members, "_converted_from": cls})
        self.known[id(cls)] = cls, new
        self.known[id(new)] = new, new
        return new

    def _holds_scipys(self, value: Any) -> bool:
        """Whether an attribute is an object of SciPy's that stands for another one in converted code."""
        if self.inside_scipy or not hasattr(value, "__dict__"):
            return False
        return any(is_scipys(held) and self.convert(held) is not held for held in vars(value).values())

    def _object(self, value: Any) -> Any:
        """An object with the methods of the converted class and the attributes, the very same, of the original."""
        cls = self.convert(type(value))
        if self._holds_scipys(value):
            cls = reading(cls, self.convert)
        new = object.__new__(cls)
        if hasattr(value, "__dict__"):
            object.__setattr__(new, "__dict__", value.__dict__)
        for base in type(value).__mro__:
            slots = vars(base).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, name):
                    object.__setattr__(new, name, getattr(value, name))
        return new


_DATA = (int, float, complex, str, bytes, type(None), np.ndarray, np.generic, Tensor, np.dtype)
_CONTAINERS = (dict, list, tuple)
_COMPILED = (BuiltinFunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType)
_WRAPPERS: list[tuple[Any, Callable[[Any], list[Any]]]] = [
    (functools.partial, lambda p: [p.func, *p.args, *p.keywords.values()]),
    ((staticmethod, classmethod), lambda m: [m.__func__]),
    (property, lambda p: [p.fget, p.fset, p.fdel]),
    (functools.cached_property, lambda p: [p.func]),
    (np.vectorize, lambda v: [v.pyfunc]),
]
"""Objects that hold functions, and these functions."""


def _rewrapped(value: Any, parts: list[Any]) -> Any:
    """A wrapper of other functions."""
    if isinstance(value, functools.partial):
        count = 1 + len(value.args)
        return functools.partial(parts[0], *parts[1:count], **dict(zip(value.keywords, parts[count:], strict=True)))
    if isinstance(value, property):
        return property(parts[0], parts[1], parts[2], value.__doc__)
    if isinstance(value, functools.cached_property):
        new = functools.cached_property(parts[0])
        new.__set_name__(object, value.attrname or parts[0].__name__)
        return new
    if isinstance(value, np.vectorize):
        ours = replacements.replacement_of(np.vectorize)
        options = {name: getattr(value, name) for name in ("otypes", "excluded", "cache", "signature")}
        return ours(parts[0], doc=value.__doc__, **options)
    return (staticmethod if isinstance(value, staticmethod) else classmethod)(parts[0])


def _globals_of(function: Any) -> dict[str, Any] | None:
    """The globals of the module of a function, class, object or module."""
    if isinstance(function, ModuleType):
        return vars(function)
    function = getattr(function, "py_func", function)
    if isinstance(function, functools.partial):
        return _globals_of(function.func)
    if isinstance(function, np.vectorize):
        return _globals_of(function.pyfunc)
    inner = inspect.unwrap(function) if callable(function) and not isinstance(function, type) else function
    inner = getattr(inner, "__func__", inner)
    if isinstance(inner, FunctionType):
        return inner.__globals__
    name = getattr(inner if isinstance(inner, type) else type(inner), "__module__", None)
    module = sys.modules.get(name or "")
    return None if module is None else vars(module)


def _functions_of(cls: type) -> list[FunctionType]:
    """The functions that a class and its bases define."""
    found = []
    for base in cls.__mro__:
        for value in vars(base).values():
            parts = [value]
            for form, of in _WRAPPERS:
                if isinstance(value, form):
                    parts = of(value)
            found += [part for part in parts if isinstance(part, FunctionType)]
    return found


class _Converted(type):
    """The class of converted classes, whose objects those of the original are, too."""

    def __instancecheck__(cls, value: Any) -> bool:
        return super().__instancecheck__(value) or isinstance(value, cls.__dict__.get("_converted_from", ()))

    def __subclasscheck__(cls, other: type) -> bool:
        return super().__subclasscheck__(other) or issubclass(other, cls.__dict__.get("_converted_from", ()))


class _ConvertedABC(_Converted, abc.ABCMeta):
    pass
