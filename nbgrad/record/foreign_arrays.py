"""Arrays of other libraries: how they become Tensors, and which of them do not.

In: a user's object where an array is expected: pandas, xarray, PyTorch, JAX, subclasses of ndarray, anything with
DLPack, a buffer or `__array__`. Out: Tensors, ndarrays, or an error that says what would be lost and how to write it.
Called by users (`nb.from_dlpack`), by `nbgrad.numpy` where it meets a value that it does not know, and by transforms
for their messages. Nothing is imported here: a library whose array was given is there already.

The rules. Where an array is expected, the values of a foreign one are taken, by position: labels, names and indexes
take no part, and the result is a Tensor. That holds for `series * tensor` too: the Tensor computes it. xarray's objects
are different because they can hold a Tensor, labels and all, so they compute `array * tensor` and `tensor * array`
themselves. The arguments of a transform must be ndarrays, Tensors, numbers, or arrays of a library that can be given
results (nbgrad/transforms/lent_arrays.py), because the derivative has the kind of its argument: for others the error
names the attribute that is. Objects with a meaning that their values do not have are refused: masks, units, matrices
whose `*` is a product of matrices, objects, dates, records.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..graph.builders import users_constant
from ..graph.ir import Node
from .masked_elements import MaskedElements, made

VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
"""Whether NumPy knows DLPack's versioned capsules, which tell that an array cannot be written to."""
_XARRAY = ("DataArray", "Variable", "Dataset", "DataTree")
_ADVICE = {
    "pandas": "its values, x.to_numpy(), and put labels on the result afterwards",
    "xarray": "its values, x.values, and put labels on the result afterwards",
    "torch": "x.detach().cpu(), or use nb.interop.torch_function(f)",
    "jax": "x itself to nb.interop.jax_function(f), which JAX's transformations know",
    "jaxlib": "np.asarray(x)",
    "polars": "its values, x.to_numpy()",
}
"""By library: the object to pass instead of its arrays."""


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """A Tensor that shares the memory of another library's array.

    Parameters
    ----------
    x : object with `__dlpack__`
        An array of NumPy, PyTorch, JAX, CuPy, ... of booleans, integers, floats of at most 64 bits, or complex
        numbers of such parts.
    device : str or Device, optional
        Where the Tensor shall be; None: where the array is.
    copy : bool, optional
        True: the Tensor has memory of its own; False: an error if it cannot share.

    Returns
    -------
    Tensor
        Of the same shape and dtype. Writing to one changes the other, unless `x` cannot be written to; a Tensor gives
        a view of itself, with its gradient. On a GPU the Tensor sees values written to the array, but writing to the
        Tensor gives it memory of its own.

    Raises
    ------
    DtypeError
        If `x` has no `__dlpack__`, or elements that Tensors cannot have.
    ArgumentError
        If `x` is on a device of another kind, or would have to be copied to be where it shall.

    Notes
    -----
    The protocol is DLPack 1.0 (https://dmlc.github.io/dlpack/latest/python_spec.html).

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> array = np.arange(3.0)
    >>> x = nb.from_dlpack(array)
    >>> array[0] = 7.0
    >>> print(x)
    [7. 1. 2.]
    """
    from .tensor import Tensor

    if not isinstance(x, Tensor) and (on_cuda(x) or _dlpack_kind(x) == 2):
        found = Tensor._of(device_node(x, bool(copy)))
        return _on(found, device, copy)
    if isinstance(x, Tensor):
        return _on(x.copy() if copy else x[...], device, copy)
    if not hasattr(x, "__dlpack__"):
        message = f"from_dlpack takes an array with a __dlpack__ method, but got {full_name(x)}. Try nb.Tensor(x)."
        raise DtypeError(message)
    # The arrays that NumPy 2.0 takes cannot be written to.
    array = x.view() if type(x) is np.ndarray and not VERSIONED else memory_of(x)
    return _on(Tensor.from_numpy(array.copy() if copy else array), device, copy)


def memory_of(x: Any) -> np.ndarray:
    """An ndarray over the memory of another library's array on the CPU.

    Raises
    ------
    ArgumentError
        If it cannot be shared.
    """
    try:
        return np.from_dlpack(x)
    except (BufferError, RuntimeError) as error:
        message = f"The memory of this {full_name(x)} cannot be shared: {str(error).rstrip('.')}."
        raise ArgumentError(message) from error


def _on(tensor: Any, device: Any, copy: bool | None) -> Any:
    """A Tensor on the device that was asked for."""
    from .placement import device_of

    if device is None:
        return tensor
    target = device_of(device)
    if tensor._node.device is target:
        return tensor
    if copy is False:
        message = f"An array on {tensor.device} reaches {device!r} only by a copy, but copy=False was given."
        raise ArgumentError(message)
    return tensor.to(device)


# ----- Arrays of other libraries that transforms take -----

HOST_LIBRARIES = {"torch": ("torch", "from_numpy"), "jax": ("jax.numpy", "asarray")}
"""By library: the module and the function that make its array on the CPU of an ndarray."""


def host_library(value: Any) -> str | None:
    """The library, one of `HOST_LIBRARIES`, whose array on the CPU a value is; None for anything else."""
    library = type(value).__module__.partition(".")[0]
    library = "jax" if library == "jaxlib" else library
    if library not in HOST_LIBRARIES:
        return None
    # PyTorch takes microseconds to say it in DLPack's words.
    here = getattr(value, "is_cpu", False) is True if library == "torch" else _dlpack_kind(value) == 1
    return library if here else None


def on_cuda(value: Any) -> bool:
    """Whether something is another library's array (or a Tensor) in the memory of a CUDA device."""
    kind = type(value)
    if not hasattr(kind, "__cuda_array_interface__"):
        return kind.__module__.partition(".")[0] in ("jaxlib", "jax") and _dlpack_kind(value) == 2
    if kind.__module__.partition(".")[0] == "torch":
        return bool(value.is_cuda)
    return hasattr(value, "__cuda_array_interface__")


def _dlpack_kind(value: Any) -> int:
    """DLPack's number for the kind of device that an array is on; 0 if it does not say."""
    where = getattr(value, "__dlpack_device__", None)
    try:
        return 0 if where is None else int(where()[0])
    except Exception:  # JAX: recorded values, and arrays on several devices, have no such thing
        return 0


def device_node(value: Any, copy: bool) -> Node:
    """The node of another library's array on a CUDA device, over the same memory, or a copy.

    Raises
    ------
    DtypeError, ArgumentError, DeviceError
        If it cannot be taken.
    """
    from ..device.exchange import taken
    from ..device.memory.dlpack import copied

    array = taken(value)
    return users_constant(copied(array) if copy else array)


# ----- Arrays that are not ours -----


def computes_itself(*values: Any) -> bool:
    """Whether one of some values can hold Tensors and computes with them itself: xarray's objects, and `x[mask]` for a
    recorded mask."""
    if made and any(isinstance(value, MaskedElements) for value in values):
        return True
    if "xarray" not in sys.modules:
        return False
    kinds = tuple([kind for name in _XARRAY if (kind := getattr(sys.modules["xarray"], name, None)) is not None])
    return any(isinstance(value, kinds) for value in values)


def values_of(value: Any) -> np.ndarray:
    """The values of something array-like that is no list, as an ndarray that no other code can change.

    Raises
    ------
    DtypeError
        If its values alone mean something else than it does, or if it is no array of numbers.
    """
    if isinstance(value, np.ndarray) and type(value) is not np.ndarray:
        refuse_subclass(value)
    elif type(value).__module__.partition(".")[0] == "pandas":
        _refuse_labelled_kinds(value)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        if not hasattr(value, "__array__"):
            raise
        message = f"This {full_name(value)} has no array of values: {str(error).rstrip('.')}."
        raise DtypeError(message) from error
    if array.dtype.kind not in "fiubc" and type(value) is not np.ndarray:
        what = f"This {full_name(value)} holds {_elements(array)}"
        message = f"{what}: expected booleans or numbers. Convert it first, with x.astype(float) say."
        raise DtypeError(message)
    return array.copy() if array.flags.writeable or array.base is not None else array


def conversion_of(dtype: np.dtype[Any]) -> str:
    """The way to numbers from an array whose dtype no Tensor can have, for a message."""
    if dtype.names:
        return f"Pass its fields instead, each as an array: x[{dtype.names[0]!r}] and so on."
    if dtype.kind in "Mm":
        return 'Convert it to numbers first: (x - x[0]) / np.timedelta64(1, "s") for times in seconds.'
    if dtype.kind == "V":
        return "Read its bytes as numbers first, by x.view(dtype)."
    return f"Convert it first, with x.astype({'complex' if dtype.kind == 'c' else 'float'}) for example."


def _elements(array: np.ndarray) -> str:
    kinds = {"O": "Python objects", "M": "dates", "m": "times", "V": "records", "U": "text", "S": "bytes"}
    return f"{kinds.get(array.dtype.kind, 'elements')} (dtype {array.dtype})"


def _refuse_labelled_kinds(value: Any) -> None:
    """Raise for pandas' categories, and where values are missing: arithmetic treats them otherwise than numbers."""
    kinds = [kind for kind in (value.dtypes if value.ndim == 2 else [value.dtype]) if not isinstance(kind, np.dtype)]
    if any(str(kind) == "category" for kind in kinds):
        message = f"This {full_name(value)} holds categories, which are no numbers. Pass x.astype(float), or its codes."
        raise DtypeError(message)
    if any(not str(kind).startswith("Sparse") for kind in kinds) and np.asarray(value.isna()).any():
        message = (
            f"This {full_name(value)} has missing values, which would be lost here. Pass "
            "x.to_numpy(float, na_value=np.nan), or x.dropna()."
        )
        raise DtypeError(message)


def refuse_subclass(value: np.ndarray) -> None:
    """Raise for a subclass of ndarray whose operations differ from ndarray's."""
    name = type(value).__name__
    masked = sys.modules.get("numpy.ma")  # NumPy imports it lazily; without it there are no masked arrays
    if masked is not None and isinstance(value, masked.MaskedArray):
        message = "A masked array would lose its mask here. Pass its data and its mask, or x.filled(value)."
        raise DtypeError(message)
    if isinstance(value, np.matrix):
        message = (
            "A np.matrix has * as the product of matrices and always two axes, which Tensors do not. Pass "
            "np.asarray(x), and use @ for products."
        )
        raise DtypeError(message)
    for method in ("__array_ufunc__", "__array_function__", "__mul__"):
        if getattr(type(value), method) is not getattr(np.ndarray, method):
            message = (
                f"{name} is a subclass of ndarray with arithmetic of its own, which would be lost here. Pass "
                "np.asarray(x) if only its values count."
            )
            raise DtypeError(message)


def described(value: Any) -> str:
    """A value that is no array of ours, and what to pass instead of it, for a message."""
    instead = advice(value)
    return f"{a_full_name(value)}: pass {instead}" if instead else full_name(value)


def called_by_pandas() -> bool:
    """Whether pandas asks for a value, on behalf of the user."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        library = frame.f_globals.get("__name__", "").partition(".")[0]
        if library not in ("nbgrad", "numpy"):
            return library == "pandas"
        frame = frame.f_back
    return False


def full_name(value: Any) -> str:
    """The type of a value with its library, because Tensor is the name of more than one type."""
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    return kind.__name__ if library in ("builtins", "nbgrad") else f"{library}.{kind.__name__}"


def a_full_name(value: Any) -> str:
    """`full_name` with its article: a list, an int."""
    name = full_name(value)
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def described_output(value: Any) -> str:
    """The description of a function's output, for a message."""
    name = full_name(value)
    return f"a {name}" if computes_itself(value) else f"{name} {str(value)[:60]!r}"


def advice(value: Any) -> str | None:
    """For a transform's message: what to pass instead of a foreign array; None if this is no array.

    Parameters
    ----------
    value : anything that is neither a Tensor nor an ndarray

    Returns
    -------
    str or None
    """
    if type(value).__module__.startswith("scipy.sparse."):
        return "a dense array, or let the function read the sparse one from outside: lambda x: f(A, x)"
    library = type(value).__module__.partition(".")[0]
    known = _ADVICE.get(library)
    if known is not None:
        return known if hasattr(value, "__array__") or library == "pandas" or computes_itself(value) else None
    if any(hasattr(value, name) for name in ("__array__", "__array_interface__", "__dlpack__")):
        return "np.asarray(x)"
    if isinstance(value, bytearray | memoryview) or type(value).__module__ == "array":
        return "np.asarray(x)"
    return None
