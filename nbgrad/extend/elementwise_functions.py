"""Functions of numbers as functions of arrays that fuse: `elementwise`.

In: a Python function of numbers, or one that Numba compiles. Out: a function of arrays, which is recorded like any
other code (extend/if_conversion.py), so that it is differentiated, compiled and fused with the code around it. Called
by users.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

from ..compiled.jit import jit
from ..errors import BroadcastError, DtypeError, ShapeError
from ..graph.shapes import joint_shape
from ..graph.trace import current_trace
from ..numpy import broadcast_to
from ..process.named_objects import NamedObject
from ..record.as_node import as_node
from ..record.foreign_arrays import a_full_name
from ..record.tensor import Tensor
from ..transforms.arguments import flatten
from ..transforms.lent_arrays import kind_of
from .if_conversion import record
from .scalar_code import python_function, scalar_code


class Elementwise(NamedObject):
    """A function of numbers that works on arrays. Made by `elementwise`; `scalar_function` is the original."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, python_function(function) or function, updated=())
        self.scalar_function = function
        self._compiled = jit(self._recorded)

    def __repr__(self) -> str:
        return f"<elementwise {self.__name__}>"  # type: ignore[attr-defined]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function of each element; arrays broadcast, and other arguments than arrays and floats are static."""
        leaves = flatten((args, kwargs))[0]
        if current_trace() is None and not any(isinstance(leaf, Tensor) for leaf in leaves):
            return self._compiled(*args, **kwargs)
        return self._recorded(*args, **kwargs)

    def _recorded(self, *args: Any, **kwargs: Any) -> Any:
        name = self.__name__  # type: ignore[attr-defined]
        lifted = [_lifted(value, name) for value in args]
        named = {key: _lifted(value, name) for key, value in kwargs.items()}
        shape: tuple[int, ...] = ()
        shapes = [value.shape for value in (*lifted, *named.values()) if isinstance(value, Tensor)]
        try:
            for one in shapes:
                shape = joint_shape(shape, one)
        except BroadcastError:
            message = f"{name}() got arrays whose shapes do not broadcast: {', '.join(map(str, shapes))}."
            raise ShapeError(message) from None
        return _spread(record(self.scalar_function, lifted, named), shape, name)


def _lifted(value: Any, name: str) -> Any:
    """Arrays and floats as Tensors; the recording depends on all other arguments, which stay as they are."""
    kind = kind_of(value)
    if kind in ("array", "float") or isinstance(value, list):
        return Tensor._of(as_node(value))
    if kind == "tensor":
        return value
    if kind == "integer" or value is None or isinstance(value, str | tuple) or callable(value):
        return value
    message = f"{name}() works on arrays and numbers, but got {a_full_name(value)}."
    raise DtypeError(message)


def _spread(result: Any, shape: tuple[int, ...], name: str) -> Any:
    """The function's output, in the shape of its arguments."""
    if isinstance(result, tuple | list):
        return type(result)([_spread(part, shape, name) for part in result])
    if kind_of(result) == "other":
        message = f"{name}() returned {a_full_name(result)}, but an elementwise function must return numbers."
        raise DtypeError(message)
    found = result if isinstance(result, Tensor) else Tensor._of(as_node(result))
    found = found if found.shape == shape else broadcast_to(found, shape)
    return found if shape else Tensor._of(found._node)  # a scalar, as of a ufunc, also where `np.where` made an array


@overload
def elementwise(function: Callable[..., Any], /) -> Elementwise: ...
@overload
def elementwise() -> Callable[[Callable[..., Any]], Elementwise]: ...
def elementwise(function: Any = None, /) -> Any:
    """A function of numbers as a function of arrays, whose derivatives follow from its text.

    Parameters
    ----------
    function : function
        Takes and returns numbers (or tuples of them): plain Python, or compiled by `numba.njit` or `numba.vectorize`.
        It may branch on their values (`if`, `and`, `or`, `x if c else y`, early `return`), loop over ranges that do not
        depend on them (with `break` and `continue` that do), and call `math`, NumPy's ufuncs and other functions of
        that kind.

    Returns
    -------
    callable
        Takes arrays of any shapes that broadcast, with NumPy's dtypes (Tensors: with those of Tensors), and Python
        numbers. Integers, booleans and strings that are no arrays are static: they may decide how often a loop runs.
        It becomes part of the fused loops around it, on any device, and has derivatives of any order.

    Raises
    ------
    DtypeError
        If `function` is no Python function, or called with other arguments than arrays and numbers.
    ArgumentError
        If its text cannot be found, or has code without a meaning element by element.
    TracedValueError
        If a loop runs until an element fulfils something, or an index or an exception depends on one. `nb.primitive`
        takes such functions.

    Notes
    -----
    Both sides of a branch are computed for all elements. A side that was not taken contributes exactly zero to a
    gradient, whatever its value. Where Python raises (1 / 0, math.log(-1)), the value is NumPy's inf or NaN. As in
    Numba, `math.exp` of a float32 is a float32, and `int(x)` an int64.

    Examples
    --------
    >>> import math
    >>> import numpy as np, nbgrad as nb
    >>> @nb.elementwise
    ... def softplus(x):
    ...     if x > 20.0:
    ...         return x
    ...     return math.log1p(math.exp(x))
    >>> softplus(np.array([0.0, 40.0]))
    array([ 0.69314718, 40.        ])
    >>> nb.grad(lambda x: np.sum(softplus(x)))(np.array([0.0, 1e4]))
    array([0.5, 1. ])
    """
    if function is None:
        return elementwise
    if isinstance(function, Elementwise):
        return function
    scalar_code(function)  # what cannot be recorded is refused here
    return Elementwise(function)
