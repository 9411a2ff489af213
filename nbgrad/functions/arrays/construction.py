"""New arrays from data: `array`, `asarray` and their relatives of `nbgrad.numpy`.

In: numbers, (nested) sequences of numbers and recorded values, ndarrays, Tensors. Out: Tensors that follow NumPy's
rules, so that `x += y` writes into them and a Python float in a list makes float64. Elements that a Tensor cannot hold
(text, objects, dates) stay in NumPy's own array. NumPy asks no Tensor when it makes an array of a list, hence this
module; called by users as names of `nbgrad.numpy` and by functions that `differentiable_source` runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, ShapeError
from ...functions.arrays.result_order import memory_order
from ...graph.builders import cast
from ...graph.ir import constant
from ...record import shared_memory
from ...record.as_node import assembled, holds_tensors
from ...record.axes_and_dtypes import array_node, at_least
from ...record.numbers import supported
from ...record.placement import device_of
from ...record.shared_memory import from_numpy
from ...record.tensor import Tensor
from ...record.zero_dimensional import as_array
from ...runtime.memory_order import copied
from . import creation
from .shaping import copy as shaping_copy
from .shaping import in_memory_order

# ----- array and asarray -----


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Any = None,
) -> Any:
    """An array of anything array-like; recorded values in nested lists keep their gradients.

    Parameters
    ----------
    object : array-like
        Numbers, Tensors, ndarrays, or nested lists of them.
    dtype : dtype, optional
        By default NumPy's: that of the array, or the one that holds all elements, Python floats being float64.
    copy : bool or None
        False raises an error where an array cannot be used as it is.
    order : {"K", "A", "C", "F"}
        How NumPy's array would lie in memory: in C or Fortran's order, or as the object does.
    subok, like
        Have no effect.
    ndmin : int
        The least number of axes: missing ones, of extent 1, are put in front.
    ndmax : int
        Has no effect: Tensors do not nest.

    Returns
    -------
    Tensor
        Or NumPy's own array, where a Tensor cannot hold the elements (text, dates, objects).

    Raises
    ------
    ShapeError
        If the elements of a list differ in shape.
    ArgumentError
        If copy is False and a copy is needed.

    Examples
    --------
    >>> import nbgrad as nb, nbgrad.numpy as np
    >>> nb.grad(lambda x: np.sum(np.array([x[0], 2.0, x[0] * x[1]]) ** 2))(np.array([1.0, 3.0]))
    Tensor(shape=[2], dtype=Float64, value= [ 2.00000000e+01,  6.00000000e+00])
    """
    copy = _COPY_MODES.get(getattr(copy, "name", ""), copy)
    if not copy and (shared := _without_copy(object, dtype)) is not None:
        shared = in_memory_order(shared, order)
        return shared if shared.ndim >= ndmin else shared.reshape((1,) * (ndmin - shared.ndim) + shared.shape)
    if isinstance(object, Tensor):
        node = array_node(object)
    elif holds_tensors(object):
        node = assembled(object)
        if copy is False:
            _needs_copy()
    else:
        options: Any = {"order": order, **({"subok": subok} if subok else {})}
        try:
            value = np.array(object, dtype=_numpys(dtype), copy=copy, **options)
        except ValueError as error:
            if "copy" in str(error):
                _needs_copy()
            raise ShapeError(_sentence(error)) from None
        if type(value) is not np.ndarray or not supported(value.dtype):
            return np.array(value, copy=False, subok=subok, ndmin=ndmin)
        node, dtype = constant(value), None
    if dtype is not None:
        wanted = np.dtype(dtype)
        if not supported(wanted):
            message = f"An array of {wanted} cannot hold values that are recorded. Leave dtype= away."
            raise DtypeError(message)
        if node.dtype != wanted and copy is False:
            _needs_copy()
        node = cast(node, wanted)
    if isinstance(object, Tensor) and node is object._node:
        node = shaping_copy(object, order or "K")._node
    else:
        node = copied(node, memory_order(object, order, "K", "C", "F", "A"))
    return creation.array_of(at_least(node, ndmin))


_COPY_MODES = {"ALWAYS": True, "IF_NEEDED": None, "NEVER": False}
"""The values of `copy` that the names of NumPy's `_CopyMode` mean."""


def _without_copy(value: Any, dtype: Any) -> Tensor | None:
    """A Tensor itself (an array of a scalar), or the Tensor that shares an ndarray's data, if that has the dtype."""
    if not isinstance(value, Tensor | np.ndarray) or (dtype is not None and value.dtype != np.dtype(dtype)):
        return None
    if isinstance(value, Tensor):
        return as_array(value)
    return from_numpy(value, tensor_rules=False) if type(value) is np.ndarray and supported(value.dtype) else None


def _numpys(dtype: Any) -> Any:
    return None if dtype is None else np.dtype(dtype)


def _needs_copy() -> None:
    message = "An array cannot be made without a copy here, but copy is False. Leave copy= away, or use asarray."
    raise ArgumentError(message)


def _sentence(error: Exception) -> str:
    return f"No array can be made of this: {str(error).rstrip('.')}."


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
) -> Any:
    """A Tensor of anything array-like: a Tensor itself, of an ndarray one that shares its data, else as `array`.

    Parameters
    ----------
    a : array-like
    dtype : dtype, optional
    order : {"K", "A", "C", "F"}, optional
        Another order of memory than the array has makes a copy.
    device : str or Device, optional
    copy : bool, optional
        True makes a copy in any case, False never.
    like
        Has no effect.

    Returns
    -------
    Tensor
        Or NumPy's own array, where a Tensor cannot hold the elements.

    Examples
    --------
    >>> import nbgrad.numpy as np
    >>> np.asarray([1, 2.5])
    Tensor(shape=[2], dtype=Float64, value= [ 1.00000000e+00,  2.50000000e+00])
    """
    if device is None:
        return array(a, dtype, copy=copy, order=order)
    target = device_of(device)
    made = array(a, dtype, copy=copy, order=order)
    if copy is False and made.device != ("cpu" if target is None else target):
        message = f"An array reaches {device!r} only by a copy, but copy=False was given."
        raise ArgumentError(message)
    return made.to(device)


def asanyarray(a: Any, dtype: Any = None, order: str | None = None, **options: Any) -> Any:
    """`asarray`; matrices and masked arrays stay what they are."""
    if isinstance(a, np.ndarray) and type(a) is not np.ndarray:
        return np.asanyarray(a, _numpys(dtype), order=order, **options)  # pyright: ignore[reportCallIssue, reportArgumentType]
    return asarray(a, dtype, order, **options)


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """`asarray` in C order and with at least one axis."""
    return _with_axes(asarray(a, dtype, "C"))


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """`asarray` in Fortran's order and with at least one axis."""
    return _with_axes(asarray(a, dtype, "F"))


def _with_axes(a: Any) -> Any:
    return a if a.ndim else a.reshape(1)


def asarray_chkfinite(a: Any, dtype: Any = None, order: str | None = None) -> Any:
    """`asarray`, or an error if an element is infinite or not a number."""
    result = asarray(a, dtype, order)
    if result.dtype.kind in "fc" and not np.all(np.isfinite(result)):
        message = "The array has elements that are infinite or not a number."
        raise ArgumentError(message)
    return result


def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """`asarray` in the order that is required; Tensors meet every other requirement that NumPy knows."""
    wanted = [requirements] if isinstance(requirements, str) else list(requirements or ())
    names = {str(name).upper() for name in wanted}
    fortran, c = names & {"F", "FORTRAN", "F_CONTIGUOUS"}, names & {"C", "CONTIGUOUS", "C_CONTIGUOUS"}
    if fortran and c:
        message = "An array cannot be required in both C and Fortran's order."
        raise ArgumentError(message)
    result = asarray(a, dtype, "F" if fortran else "C" if c else None)
    return result.copy("K") if names & {"O", "OWNDATA"} and result is a and shared_memory.is_view(a) else result


def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """A new array with the same elements."""
    made = array(a, order=order, subok=subok)
    return as_array(made) if isinstance(made, Tensor) else made


# ----- Filled arrays -----


def _filled(make: Callable[..., Tensor], numpys: Callable[..., Any]) -> Callable[..., Any]:
    """A function like `zeros`, which leaves dtypes that a Tensor cannot have to NumPy."""

    def function(*args: Any, **options: Any) -> Any:
        position = 2 if make in (creation.full, creation.full_like) else 1
        dtype = options.get("dtype", args[position] if len(args) > position else None)
        if dtype is None and args and isinstance(args[0], np.ndarray):
            dtype = args[0].dtype  # of what the array shall be like
        if dtype is not None and not supported(np.dtype(dtype)):
            return numpys(*args, **options)
        return make(*args, **options)

    function.__name__ = function.__qualname__ = make.__name__
    function.__doc__ = make.__doc__
    function.__wrapped__ = make  # pyright: ignore[reportFunctionMemberAccess] - the signature is its
    return function


zeros, ones, full = (_filled(getattr(creation, n), getattr(np, n)) for n in ("zeros", "ones", "full"))
zeros_like, ones_like, full_like = (
    _filled(getattr(creation, n), getattr(np, n)) for n in ("zeros_like", "ones_like", "full_like")
)
empty, empty_like = _filled(creation.empty, np.empty), _filled(creation.empty_like, np.empty_like)


# ----- Arrays of functions, iterables and text -----


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any
) -> Any:
    """The result of a function of the coordinates of a grid, which it gets as one array per axis.

    Examples
    --------
    >>> import nbgrad.numpy as np
    >>> np.fromfunction(lambda i, j: i + 10 * j, (2, 2), dtype=int).tolist()
    [[0, 10], [1, 11]]
    """
    return function(*creation.indices(shape, dtype), **kwargs)


def fromiter(iter: Iterable[Any], dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    """The array of the elements that an iterable gives, or of the first `count` of them.

    Examples
    --------
    >>> import nbgrad.numpy as np
    >>> np.fromiter((k * k for k in range(4)), float).tolist()
    [0.0, 1.0, 4.0, 9.0]
    """
    elements = list(iter if count < 0 else islice(iter, count))
    if len(elements) < count:
        message = f"The iterable gave {len(elements)} elements, but count is {count}."
        raise ArgumentError(message)
    return array(elements, dtype)


def _wrapped(numpys: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy's whose result becomes a Tensor, so that recorded values can be written to it."""

    def function(*args: Any, **options: Any) -> Any:
        return tensors_of(numpys(*args, **options))

    function.__name__ = function.__qualname__ = numpys.__name__
    function.__doc__ = f"As `numpy.{numpys.__name__}`; gives a Tensor."
    return function


def tensors_of(value: Any) -> Any:
    """Arrays that NumPy made, alone or in tuples and lists, as Tensors where these can hold them."""
    if isinstance(value, tuple | list):
        return type(value)([tensors_of(item) for item in value]) if type(value) in (tuple, list) else value
    return array(value) if type(value) is np.ndarray and supported(value.dtype) else value


frombuffer, fromstring, fromfile, loadtxt, genfromtxt = map(
    _wrapped, (np.frombuffer, np.fromstring, np.fromfile, np.loadtxt, np.genfromtxt)
)
bartlett, blackman, hamming, hanning = map(_wrapped, (np.bartlett, np.blackman, np.hamming, np.hanning))
