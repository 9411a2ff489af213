"""Functions of `torch` itself whose parameters are those of no function of `mint` or `ops`; files, devices, `compile`.

In: PyTorch's calls. Out: Tensors. Called by users, as names of `torch_names`.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ... import mint, ops
from ... import numpy as numpy_names
from ...compiled.jit import jit
from ...dtype import dtype_of
from ...record.pairs import ValuesAndIndices
from ...record.tensor import Tensor
from .default_dtype import get_default_dtype
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
    def index(self) -> int | None:  # pyright: ignore[reportIncompatibleMethodOverride] - PyTorch's name
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


def _spread(function: Any, input: Any, dim: Any, unbiased: bool, correction: Any, keepdim: bool) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    number = int(unbiased) if correction is None else correction
    return function(input, dim, correction=number, keepdim=keepdim)


def std(
    input: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: float | None = None
) -> Tensor:
    """The standard deviation; with `unbiased`, sums are divided by one less than the number of elements."""
    return _spread(mint.std, input, dim, unbiased, correction, keepdim)


def var(
    input: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: float | None = None
) -> Tensor:
    """The variance; parameters as `std`."""
    return _spread(mint.var, input, dim, unbiased, correction, keepdim)


def std_mean(
    input: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: float | None = None
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean; parameters as `std`."""
    return _spread(mint.std_mean, input, dim, unbiased, correction, keepdim)


def var_mean(
    input: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: float | None = None
) -> tuple[Tensor, Tensor]:
    """The variance and the mean; parameters as `std`."""
    return _spread(mint.var_mean, input, dim, unbiased, correction, keepdim)


class MinMax(NamedTuple):
    """The least and the greatest elements."""

    min: Any
    max: Any


def aminmax(input: Any, *, dim: int | None = None, keepdim: bool = False) -> MinMax:
    """The least and the greatest elements, of all or along an axis."""
    axes = () if dim is None else (dim,)
    return MinMax(mint.amin(input, axes, keepdim), mint.amax(input, axes, keepdim))


def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower middle element of the numbers without NaN; along an axis, also its position."""
    if dim is None:
        return ops.nanmedian(input.reshape(-1), 0)[0]
    return ValuesAndIndices(*ops.nanmedian(input, dim, keepdim))


def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent element along an axis, the least of them, and its last position."""
    x = input.detach().asnumpy()
    rows = np.moveaxis(x, dim, -1)
    counts = (rows[..., :, None] == rows[..., None, :]).sum(-1)
    best = np.where(counts == counts.max(-1, keepdims=True), rows, rows.max(-1, keepdims=True)).min(-1, keepdims=True)
    hits = rows == best
    place = np.moveaxis(rows.shape[-1] - 1 - hits[..., ::-1].argmax(-1, keepdims=True), -1, dim)
    values = numpy_names.take_along_axis(input, place, dim)
    pair = values, Tensor(place.astype(np.int64))
    return ValuesAndIndices(*(pair if keepdim else [one.squeeze(dim) for one in pair]))


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """`other - alpha * input`."""
    return other - alpha * input


def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = 1.0, dim: int = -1) -> Tensor:
    """The integrals by trapezoids from the first element up to each of the others."""
    at = dim % y.ndim
    before, after = mint.narrow(y, at, 0, y.shape[at] - 1), mint.narrow(y, at, 1, y.shape[at] - 1)
    step = dx
    if x is not None:
        step = mint.diff(x, 1, at if x.ndim > 1 else 0)
        step = step.reshape(step.shape + (1,) * (y.ndim - 1 - at)) if x.ndim == 1 else step
    return mint.cumsum((before + after) * step / 2, at)


def corrcoef(input: Any) -> Tensor:
    """Correlations of the rows."""
    return numpy_names.corrcoef(input)


def gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> list[Tensor]:
    """Central differences along axes."""
    axes = list(range(input.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    steps = spacing if isinstance(spacing, list | tuple) else [spacing] * len(axes)
    return [
        numpy_names.gradient(input, step, axis=axis, edge_order=edge_order)
        for axis, step in zip(axes, steps, strict=True)
    ]


def squeeze(input: Any, dim: Any = None) -> Tensor:
    """The array without axes of extent 1; other axes that `dim` names stay."""
    if dim is None:
        return mint.squeeze(input)
    named = dim if isinstance(dim, tuple | list) else (dim,)
    axes = tuple([one for one in named if input.shape[one] == 1])
    return mint.squeeze(input, axes) if axes else input


def pinverse(input: Any, rcond: float = 1e-15) -> Tensor:
    """The pseudoinverse of a matrix."""
    return numpy_names.linalg.pinv(input, rcond)


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: Any = None, requires_grad: bool = False) -> Any:
    """A Tensor of an array or of numbers."""
    del device, copy
    found = obj if isinstance(obj, Tensor) else Tensor(np.asarray(obj))
    if not hasattr(obj, "dtype") and found.dtype.kind == "f":
        found = found.astype(get_default_dtype())
    found = found if dtype is None else found.astype(dtype)
    return found.requires_grad_() if requires_grad else found


def finfo(dtype: Any = None) -> Any:
    """The limits of a dtype of floats."""
    return np.finfo(np.dtype(dtype_of(get_default_dtype() if dtype is None else dtype).name))


def iinfo(dtype: Any) -> Any:
    """The limits of a dtype of integers."""
    return np.iinfo(np.dtype(dtype_of(dtype).name))


def result_type(tensor1: Any, tensor2: Any) -> Any:
    """The dtype of the sum of two arrays or numbers."""
    return (tensor1 + tensor2).dtype


def is_nonzero(input: Any) -> bool:
    """Whether the only element is not zero."""
    return bool(input.item() != 0)


concatenate, diff, ger, trapz = mint.concat, mint.diff, mint.outer, trapezoid


def detach(input: Any) -> Tensor:
    """The value, which does not remember how it was made."""
    return input.detach()
