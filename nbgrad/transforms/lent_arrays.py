"""Other libraries' arrays as arguments of transforms: taken without a copy, and given back as arrays of their library.

In: an argument's leaf. Out: a `Lent`, which knows the node over the same memory and the way back. Called by
arguments.py, jacobians.py, vmap.py, and by compiled functions. An array on a CUDA device stays there
(nbgrad/device/exchange.py); one on the CPU is read as an ndarray over its memory, so that what is compiled for ndarrays
serves it too, and a function's writes reach it where NumPy's would.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import optree

from ..errors import ArgumentError, DtypeError
from ..graph.builders import users_constant
from ..graph.ir import Node, constant
from ..record.container_leaves import flatten, map_leaves
from ..record.foreign_arrays import HOST_LIBRARIES, conversion_of, full_name, host_library, memory_of, on_cuda
from ..record.numbers import supported
from ..record.tensor import Tensor


class HostGiver(NamedTuple):
    """Gives results back as arrays of the library that an argument on the CPU came from."""

    library: str

    def give(self, array: Any) -> Any:
        """The library's array of a computed result."""
        module, name = HOST_LIBRARIES[self.library]
        array = np.asarray(array)
        # PyTorch warns of memory that cannot be written to.
        return getattr(import_module(module), name)(array if array.flags.writeable else array.copy())

    def working(self) -> Any:
        """A context in which results are computed: any, on the CPU."""
        return nullcontext()

    def given(self, result: Any) -> Any:
        """A result of any structure, with the library's arrays for NumPy's arrays and numbers."""
        if type(result) is np.ndarray:
            return self.give(result)
        return map_leaves(lambda leaf: self.give(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf, result)


class Lent:
    """Another library's array, taken as it is: its node, the giver of results as such arrays, and on the CPU the
    ndarray over its memory."""

    __slots__ = ("__weakref__", "array", "giver", "name", "node")

    def __init__(self, value: Any, copy: bool) -> None:
        self.name = full_name(value)
        self.giver: Any
        self.array: np.ndarray | None = None
        library = host_library(value)
        if library is None:
            from ..device.exchange import giver, taken
            from ..device.memory.dlpack import copied

            array = copied(taken(value)) if copy else taken(value)
            self.giver = giver(value, array)
            self.node: Node = users_constant(array)
        else:
            self.giver = HostGiver(library)
            self.array = _host_array(value, library)
            self.node = constant(self.array.copy() if copy else self.array)
        self.node.tensor = False  # it follows NumPy's rules of promotion, as ndarrays do


def _host_array(value: Any, library: str) -> np.ndarray:
    """The ndarray over the memory of another library's array on the CPU.

    Raises
    ------
    ArgumentError, DtypeError
        If it cannot be taken.
    """
    array = _of_torch(value) if library == "torch" else memory_of(value)
    if any(step == 0 < size - 1 for size, step in zip(array.shape, array.strides, strict=True)):
        array.flags.writeable = False  # elements that share their memory
    if not supported(array.dtype):
        message = f"This {library} array has dtype {array.dtype}, which no Tensor has. {conversion_of(array.dtype)}"
        raise DtypeError(message)
    return array


def _of_torch(value: Any) -> np.ndarray:
    """The ndarray of a tensor of PyTorch's, read-only where it is a copy.

    Raises
    ------
    ArgumentError
        If PyTorch differentiates or records what happens to it: its graph would be cut, and hold this call's numbers.
    """
    torch, forward_ad, is_recording = _torch()
    reason = ""
    if value.requires_grad:
        reason = "requires a gradient, which would be lost"
    elif forward_ad._current_level >= 0 and forward_ad.unpack_dual(value).tangent is not None:
        reason = "has a tangent, which would be lost"
    elif is_recording() or torch._C._is_tracing() or type(value) not in (torch.Tensor, torch.nn.Parameter):
        reason = "is recorded by PyTorch, or of a class of its own"
    if reason:
        message = (
            f"This {full_name(value)} {reason}. Call nb.interop.torch_function(f), which PyTorch's transformations go "
            "through, or pass x.detach() of a plain tensor."
        )
        raise ArgumentError(message)
    plain = value.resolve_conj().resolve_neg()
    try:
        array = plain.numpy()
    except (TypeError, RuntimeError) as error:
        message = f"The memory of this {full_name(value)} cannot be shared: {str(error).rstrip('.')}."
        raise ArgumentError(message) from error
    if plain is not value:
        array.flags.writeable = False
    return array


@cache
def _torch() -> tuple[Any, Any, Any]:
    """PyTorch, its forward mode, and whether one of its modes records."""
    import torch  # pyright: ignore[reportMissingImports]
    from torch.autograd import forward_ad  # pyright: ignore[reportMissingImports]
    from torch.utils._python_dispatch import is_in_torch_dispatch_mode  # pyright: ignore[reportMissingImports]

    return torch, forward_ad, is_in_torch_dispatch_mode


def is_lent(value: Any) -> bool:
    """Whether a leaf is another library's array that transforms take, or was one."""
    if isinstance(value, Tensor | np.ndarray):
        return False
    return isinstance(value, Lent) or host_library(value) is not None or on_cuda(value)


def lent(value: Any, copy: bool = False) -> Any:
    """A leaf of a call's arguments; an array that another library has lent, or a copy of it, as a `Lent`."""
    return Lent(value, copy) if not isinstance(value, Lent) and is_lent(value) else value


def kind_of(value: Any) -> str:
    """The kind of a leaf: "array", "tensor", "float" (a NumPy or Python scalar), "integer", "lent" (another
    library's array), or "other"."""
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, np.ndarray):
        return "array"
    if isinstance(value, bool | int | np.integer | np.bool_):
        return "integer"
    if isinstance(value, complex | float | np.inexact):
        return "float"
    return "lent" if is_lent(value) else "other"


def results_as(leaves: Sequence[Any]) -> Any:
    """The form of a transform's results for these arguments: True for Tensors, a giver, or False for ndarrays."""
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            return True
    return next((leaf.giver for leaf in leaves if isinstance(leaf, Lent)), False)


def by_ndarrays(call: Callable[..., Any], treespec: Any, leaves: Sequence[Any]) -> Any:
    """A call with ndarrays in place of the arrays on the CPU that were lent, its results in their kind.

    `treespec` and `leaves` are those of the pair of positional and keyword arguments.
    """
    args, kwargs = optree.tree_unflatten(treespec, ndarrays(leaves))  # type: ignore[misc]
    result = call(*args, **kwargs)
    if any(isinstance(leaf, Tensor) for leaf in leaves):
        return result
    return HostGiver(next(filter(None, map(host_library, leaves)))).given(result)


def ndarrays(leaves: Sequence[Any]) -> list[Any]:
    """Leaves with ndarrays over the memory of arrays on the CPU that were lent."""
    libraries = map(host_library, leaves)
    return [
        leaf if library is None else _host_array(leaf, library) for leaf, library in zip(leaves, libraries, strict=True)
    ]


def lends(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls others with its arguments as they are: these get ndarrays for arrays that were lent."""

    @functools.wraps(call)
    def with_ndarrays(*args: Any, **kwargs: Any) -> Any:
        if sys.modules.keys().isdisjoint(HOST_LIBRARIES):
            return call(*args, **kwargs)
        leaves, treespec = flatten((args, kwargs))
        return by_ndarrays(call, treespec, leaves) if any(map(host_library, leaves)) else call(*args, **kwargs)

    return with_ndarrays
