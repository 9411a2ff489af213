"""Functions of `torch` itself whose parameters are those of no function of `mint` or `ops`; files, devices, `compile`.

In: PyTorch's calls. Out: Tensors. Called by users, as names of `torch_names`.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from ... import mint
from ... import numpy as numpy_names
from ...compiled.jit import jit
from ...record.tensor import Tensor
from .module import Module


class device(str):  # noqa: N801 - PyTorch's name
    """The name of a device: "cpu", "cuda" or "cuda:1"."""

    __slots__ = ()

    def __new__(cls, type: Any, index: int | None = None) -> device:
        return super().__new__(cls, type if index is None else f"{type}:{index}")

    @property
    def type(self) -> str:
        """Its kind, "cpu" or "cuda"."""
        return self.partition(":")[0]

    @property
    def index(self) -> int | None:
        """Its number."""
        number = self.partition(":")[2]
        return int(number) if number else None


def save(obj: Any, f: Any, **options: Any) -> None:
    """Write Tensors, and containers of them such as `state_dict()`, to a file by Python's pickle.

    Parameters
    ----------
    obj : object
    f : str, path or file
    """
    del options
    if hasattr(f, "write"):
        pickle.dump(obj, f)
        return
    with Path(f).open("wb") as file:
        pickle.dump(obj, file)


def load(f: Any, map_location: Any = None, **options: Any) -> Any:
    """Read what `save` has written; as with all pickles, only files from a source that you trust.

    Parameters
    ----------
    f : str, path or file
    map_location
        Has no effect.
    """
    del map_location, options
    if hasattr(f, "read"):
        return pickle.load(f)
    with Path(f).open("rb") as file:
        return pickle.load(file)


def compile(model: Any = None, **options: Any) -> Any:
    """`nbgrad.jit` of a function; a module as it is. Can be a decorator with options, which have no effect."""
    if model is None:
        return lambda function: compile(function, **options)
    return model if isinstance(model, Module) else jit(model)


def unique(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The different elements, or slices along an axis, in order."""
    del sorted
    found = numpy_names.unique(input, return_inverse=return_inverse, return_counts=return_counts, axis=dim)
    return tuple([Tensor(one) for one in found]) if isinstance(found, tuple) else Tensor(found)


def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The positions where values would go into sorted boundaries."""
    found = numpy_names.searchsorted(boundaries, input, side="right" if right else "left")
    return Tensor(np.asarray(found)).astype("int32" if out_int32 else "int64")


def tensordot(a: Any, b: Any, dims: Any = 2) -> Tensor:
    """Sums of products over axes."""
    return numpy_names.tensordot(a, b, dims)


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among others."""
    return numpy_names.isin(elements, test_elements, assume_unique, invert)


def take_along_dim(input: Any, indices: Any, dim: int | None = None) -> Tensor:
    """Elements at positions along an axis."""
    return numpy_names.take_along_axis(input, indices, dim)


def trapezoid(y: Any, x: Any = None, *, dx: Any = 1.0, dim: int = -1) -> Tensor:
    """The integral by trapezoids along an axis."""
    return numpy_names.trapezoid(y, x, dx, dim)


def unflatten(input: Any, dim: int, sizes: Any) -> Tensor:
    """An axis as several; one of the sizes may be -1."""
    at = dim % input.ndim
    return input.reshape((*input.shape[:at], *sizes, *input.shape[at + 1 :]))


def clamp_min(input: Any, min: Any) -> Tensor:
    """No element below a bound."""
    return mint.clamp(input, min=min)


def clamp_max(input: Any, max: Any) -> Tensor:
    """No element above a bound."""
    return mint.clamp(input, max=max)


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Tensors in the shape that they have together."""
    shape = np.broadcast_shapes(*[one.shape for one in tensors])
    return tuple([mint.broadcast_to(one, shape) for one in tensors])


def index_copy(input: Any, dim: int, index: Any, source: Any) -> Tensor:
    """Slices along an axis replaced by others."""
    found = input.clone()
    found[(*[slice(None)] * (dim % input.ndim), index)] = source
    return found


def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Turned `k` times by a quarter in the plane of two axes."""
    return numpy_names.rot90(input, k, tuple(dims))


concatenate, diff, ger, trapz = mint.concat, mint.diff, mint.outer, trapezoid


def detach(input: Any) -> Tensor:
    """The value, which does not remember how it was made."""
    return input.detach()
