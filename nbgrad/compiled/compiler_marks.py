"""Decorators and wrappers that say something to MindSpore's compiler, which nbgrad needs not be told.

In: a function, class or value. Out: the same one, checked as MindSpore checks it. Called by users. Python code runs
while a function is recorded: what it computes is constant, and classes, lists and dicts work as they are.
"""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from ..errors import DtypeError

__all__ = ["add_flags", "cell_attr_register", "constexpr", "core", "jit_class", "lazy_inline", "ms_class", "mutable"]

Marked = TypeVar("Marked")


def constexpr(
    fn: Any = None,
    get_instance: bool = True,
    name: str | None = None,
    reuse_result: bool = True,
    check: bool = True,
) -> Any:
    """A decorator for functions of Python values; they run while a function is recorded, as all Python does here.

    Parameters
    ----------
    fn : callable, optional
    get_instance, name, reuse_result, check
        MindSpore's; they have no effect.

    Examples
    --------
    >>> import nbgrad as nb
    >>> @nb.ops.constexpr
    ... def twice(shape):
    ...     return tuple(2 * extent for extent in shape)
    >>> twice((2, 3))
    (4, 6)
    """
    return fn if fn is not None else lambda function: function


def add_flags(fn: Any = None, **flags: Any) -> Any:
    """A decorator that notes options for MindSpore's compiler on a function or Cell; they have no effect.

    Examples
    --------
    >>> import nbgrad as nb
    >>> @nb.ops.add_flags(has_effect=True)
    ... def step(x):
    ...     return x
    >>> step(1)
    1
    """

    def noted(function: Any) -> Any:
        function._func_graph_flags = {**getattr(function, "_func_graph_flags", {}), **flags}
        return function

    return noted if fn is None else noted(fn)


def core(fn: Any = None, **flags: Any) -> Any:
    """A decorator that marks a function for MindSpore's compiler; it has no effect."""
    return add_flags(fn, core=True, **flags)


def jit_class(cls: type[Marked]) -> type[Marked]:
    """A decorator for classes whose objects are used in functions that are compiled; they work without it.

    Raises
    ------
    DtypeError
        If it is no class. (A TypeError.)

    Examples
    --------
    >>> import nbgrad as nb
    >>> @nb.jit_class
    ... class Factor:
    ...     value = 2.0
    >>> print(nb.jit(lambda x: x * Factor.value)(nb.Tensor([1.5])))
    [3.]
    """
    if not inspect.isclass(cls):
        message = f"jit_class decorates classes, but got {cls!r:.60}."
        raise DtypeError(message)
    return cls


ms_class = jit_class
"""The name of `jit_class` in MindSpore before 2.0."""


def lazy_inline(fn: Any = None, attrs: Any = None, policy: Any = None) -> Any:
    """A decorator for the `__init__` of a Cell, which tells MindSpore not to inline it; it has no effect."""
    return fn if fn is not None else lambda function: function


def cell_attr_register(fn: Any = None, attrs: Any = None) -> Any:
    """A decorator for the `__init__` of a Cell, which tells MindSpore of its arguments; it has no effect."""
    return fn if fn is not None else lambda function: function


def mutable(input_data: Any, dynamic_len: bool = False) -> Any:
    """The value itself; MindSpore's compiler would take it for a constant otherwise.

    Notes
    -----
    Inside nbgrad's compiled functions, Tensors in tuples and dicts are arguments, and numbers are too.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.mutable((1, 2))
    (1, 2)
    """
    return input_data
