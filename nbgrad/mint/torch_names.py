"""PyTorch's own names around `torch.autograd`, for code that is tried with the module's name changed.

In: PyTorch's calls, by `import nbgrad.mint.torch_names as torch`. Out: Tensors, and the functions of
`nbgrad.autograd`, `nbgrad.mint` and nbgrad. Called by users. What makes tensors is written here, since it takes sizes
one by one and `requires_grad`; all other names are looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..record.tensor import Tensor
from ..tensors.data import tensor
from .function_transforms import func as func
from .torch_modules import fft as fft
from .torch_modules import linalg as linalg

_PACKAGE = __package__.rpartition(".")[0] if __package__ else "nbgrad"
mint: Any = import_module(f"{_PACKAGE}.mint")
__all__ = [
    "arange",
    "as_tensor",
    "empty",
    "eye",
    "full",
    "full_like",
    "func",
    "linspace",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "tensor",
    "vmap",
    "zeros",
    "zeros_like",
]

vmap = func.vmap
_ALIKE = frozenset(
    (
        "adjoint angle argwhere atleast_1d atleast_2d atleast_3d bitwise_left_shift bitwise_right_shift block_diag "
        "cartesian_prod cholesky_solve clip column_stack conj copysign cov deg2rad det diag_embed diagonal digamma "
        "fliplr flipud fmax fmin heaviside hsplit hypot i0 igamma igammac index_fill inner is_complex "
        "is_floating_point kron lcm ldexp lgamma logcumsumexp logdet logit masked_fill matrix_exp matrix_power "
        "moveaxis movedim msort mvlgamma nanmean nanquantile nextafter numel polygamma positive quantile rad2deg "
        "scatter_reduce sgn signbit slogdet subtract swapdims tensor_split tril_indices triu_indices true_divide "
        "vander vsplit"
    ).split()
)
"""Functions of `nbgrad.ops` that are PyTorch's, by name, parameters and results."""


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A Tensor as it is, or another array as one."""
    del device
    if isinstance(data, Tensor):
        return data if dtype is None else data.astype(dtype)  # pyright: ignore[reportAttributeAccessIssue]
    return tensor(data, dtype=dtype)


def _leaf(made: Any, dtype: Any, requires_grad: bool) -> Tensor:
    found = made if isinstance(made, Tensor) else Tensor(made)
    found = found if dtype is None else found.astype(dtype)
    return found.requires_grad_() if requires_grad else found


def _of_sizes(function: Callable[..., Any], title: str) -> Callable[..., Tensor]:
    """A function of sizes, given one by one or together."""

    def made(*size: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
        extents = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        return _leaf(function(tuple(extents)), dtype, requires_grad)

    made.__name__ = made.__qualname__ = function.__name__
    made.__doc__ = f"{title} of some size: `{function.__name__}(2, 3, requires_grad=True)`."
    return made


def _like(function: Callable[..., Any], title: str) -> Callable[..., Tensor]:
    """A function of the shape and the dtype of another tensor."""

    def made(input: Any, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
        return _leaf(function(tuple(input.shape)), input.dtype if dtype is None else dtype, requires_grad)

    made.__name__ = made.__qualname__ = f"{function.__name__}_like"
    made.__doc__ = f"{title}, in the shape and the dtype of another tensor."
    return made


_ones, _zeros, _rand, _randn = (getattr(mint, name) for name in ("ones", "zeros", "rand", "randn"))
ones, ones_like = _of_sizes(_ones, "Ones"), _like(_ones, "Ones")
zeros, zeros_like = _of_sizes(_zeros, "Zeros"), _like(_zeros, "Zeros")
empty = zeros
rand, rand_like = _of_sizes(_rand, "Uniform numbers from 0 to 1"), _like(_rand, "Uniform numbers from 0 to 1")
randn, randn_like = _of_sizes(_randn, "Normal numbers"), _like(_randn, "Normal numbers")


def randint(low: int, high: Any, size: Any = None, *, dtype: Any = None) -> Tensor:
    """Whole numbers from `low` up to `high`; from 0, if only one of them is given."""
    if size is None:
        low, high, size = 0, low, high
    return _leaf(mint.randint(low, high, tuple(size)), dtype, False)


def full(size: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """One number everywhere."""
    return _leaf(mint.full(tuple(size), tensor(fill_value, dtype=dtype)), dtype, requires_grad)


def full_like(input: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """One number everywhere, in the shape and the dtype of another tensor."""
    return full(input.shape, fill_value, dtype=input.dtype if dtype is None else dtype, requires_grad=requires_grad)


def eye(n: int, m: int | None = None, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones on the diagonal."""
    return _leaf(mint.eye(n, m), dtype, requires_grad)


def arange(*bounds: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Numbers at equal steps: `arange(end)`, `arange(start, end)`, `arange(start, end, step)`."""
    return _leaf(mint.arange(*bounds, dtype=dtype), dtype, requires_grad)


def linspace(start: float, end: float, steps: int, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Numbers from one to another, both included."""
    ends = (start, end) if dtype is None else [tensor(one, dtype=dtype).astype("float64") for one in (start, end)]
    return _leaf(mint.linspace(*ends, steps), dtype, requires_grad)


def __getattr__(name: str) -> Any:
    homes = (".autograd", ".mint", ".mint.nn.functional", *((".ops",) if name in _ALIKE else ()), "")
    for module in homes:
        found = getattr(import_module(f"{_PACKAGE}{module}"), name, None)
        if found is not None:
            return found
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
