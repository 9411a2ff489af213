"""PyTorch's own names, for code that is tried with the module's name changed.

In: PyTorch's calls, by `import nbgrad.mint.torch_names as torch`. Out: Tensors, modules, and the functions of
`nbgrad.autograd`, `nbgrad.mint` and nbgrad. Called by users. What makes tensors is written here, since it takes sizes
one by one and `requires_grad`; all other names are looked up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ..dtype import dtype_of
from ..record.tensor import Tensor
from ..tensors.data import tensor as plain_tensor
from .function_transforms import func as func
from .modules.called_sizes import install
from .modules.default_dtype import get_default_dtype, set_default_dtype
from .torch_modules import fft as fft
from .torch_modules import linalg as linalg

_PACKAGE = __package__.rpartition(".")[0] if __package__ else "nbgrad"
__path__: list[str] = []
"""Modules such as `torch_names.nn.functional` can be imported by their paths, which mindspore_paths.py lists."""
mint: Any = import_module(f"{_PACKAGE}.mint")
__all__ = [
    "arange",
    "as_tensor",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "func",
    "get_default_dtype",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
    "set_default_dtype",
    "tensor",
    "vmap",
    "zeros",
    "zeros_like",
]

install()
vmap = func.vmap
inf, nan, pi, e = math.inf, math.nan, math.pi, math.e
Size = tuple
_ALIKE = frozenset(
    (
        "adjoint angle argwhere atleast_1d atleast_2d atleast_3d bitwise_left_shift bitwise_right_shift block_diag "
        "cartesian_prod cholesky_solve clip column_stack conj copysign cov deg2rad det diag_embed diagonal digamma "
        "fliplr flipud fmax fmin heaviside hsplit hypot i0 igamma igammac index_fill inner is_complex "
        "is_floating_point kron lcm ldexp lgamma logcumsumexp logdet logit masked_fill matrix_exp matrix_power "
        "moveaxis movedim msort mvlgamma nanmean nanquantile nextafter numel polygamma positive quantile rad2deg "
        "scatter_reduce sgn signbit slogdet subtract swapdims tensor_split tril_indices triu_indices true_divide "
        "stft vander vsplit addr bartlett_window blackman_window combinations complex diagflat diagonal_scatter dist "
        "dsplit fix hamming_window hann_window isreal kaiser_window renorm select_scatter slice_scatter "
        "view_as_complex view_as_real"
    ).split()
)
"""Functions of `nbgrad.ops` that are PyTorch's, by name, parameters and results."""


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A Tensor of data; Python's floats get the default dtype."""
    made = plain_tensor(data, dtype, device=device, requires_grad=requires_grad)
    default = get_default_dtype()
    floats = dtype is None and made.dtype == dtype_of("float32") and not hasattr(data, "dtype")
    return plain_tensor(data, default, device=device, requires_grad=requires_grad) if floats else made


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A Tensor as it is, or another array as one."""
    del device
    if isinstance(data, Tensor):
        return data if dtype is None else data.astype(dtype)  # pyright: ignore[reportAttributeAccessIssue]
    return tensor(data, dtype=dtype)


def _leaf(made: Any, dtype: Any, requires_grad: bool, device: Any = None) -> Tensor:
    found = made if isinstance(made, Tensor) else Tensor(made)
    chosen = get_default_dtype() if dtype is None and found.dtype.kind == "f" else dtype
    found = found if chosen is None or found.dtype == chosen else found.astype(chosen)
    if device is not None and str(device) != "cpu":
        found = found.to(str(device))
    return found.requires_grad_() if requires_grad else found


def _dtype_of_draws(dtype: Any) -> Any:
    """The dtype that random floats are drawn in: such that no digit is missing."""
    chosen = dtype_of(get_default_dtype() if dtype is None else dtype)
    return chosen if chosen.kind == "f" else dtype_of("float32")


def _of_sizes(function: Callable[..., Any], title: str, draws: bool = False) -> Callable[..., Tensor]:
    """A function of sizes, given one by one or together."""

    def made(
        *size: Any,
        dtype: Any = None,
        requires_grad: bool = False,
        device: Any = None,
        generator: Any = None,
        layout: Any = None,
        pin_memory: bool = False,
    ) -> Tensor:
        del layout, pin_memory
        extents = size[0] if len(size) == 1 and not isinstance(size[0], int | np.integer) else size
        options = {"dtype": _dtype_of_draws(dtype), "generator": generator} if draws else {}
        return _leaf(function(tuple(extents), **options), dtype, requires_grad, device)

    made.__name__ = made.__qualname__ = function.__name__
    made.__doc__ = f"{title} of some size: `{function.__name__}(2, 3, requires_grad=True)`."
    return made


def _like(function: Callable[..., Any], title: str, draws: bool = False) -> Callable[..., Tensor]:
    """A function of the shape and the dtype of another tensor."""

    def made(
        input: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None, memory_format: Any = None
    ) -> Tensor:
        del memory_format
        chosen = input.dtype if dtype is None else dtype
        options = {"dtype": _dtype_of_draws(chosen)} if draws else {}
        return _leaf(function(tuple(input.shape), **options), chosen, requires_grad, device)

    made.__name__ = made.__qualname__ = f"{function.__name__}_like"
    made.__doc__ = f"{title}, in the shape and the dtype of another tensor."
    return made


_ones, _zeros, _rand, _randn = (getattr(mint, name) for name in ("ones", "zeros", "rand", "randn"))
ones, ones_like = _of_sizes(_ones, "Ones"), _like(_ones, "Ones")
zeros, zeros_like = _of_sizes(_zeros, "Zeros"), _like(_zeros, "Zeros")
empty, empty_like = zeros, zeros_like
rand = _of_sizes(_rand, "Uniform numbers from 0 to 1", True)
rand_like = _like(_rand, "Uniform numbers from 0 to 1", True)
randn, randn_like = _of_sizes(_randn, "Normal numbers", True), _like(_randn, "Normal numbers", True)


def randint(
    low: int, high: Any, size: Any = None, *, dtype: Any = None, device: Any = None, generator: Any = None
) -> Tensor:
    """Whole numbers from `low` up to `high`; from 0, if only one of them is given."""
    if size is None:
        low, high, size = 0, low, high
    return _leaf(mint.randint(low, high, tuple(size), generator=generator), dtype, False, device)


def randperm(n: int, *, generator: Any = None, dtype: Any = None, device: Any = None) -> Tensor:
    """The numbers from 0 to `n - 1` in random order."""
    return _leaf(mint.randperm(n, generator=generator), dtype, False, device)


def full(size: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """One number everywhere."""
    extents = (size,) if isinstance(size, int) else tuple(size)
    return _leaf(mint.full(extents, tensor(fill_value, dtype=dtype)), dtype, requires_grad, device)


def full_like(
    input: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """One number everywhere, in the shape and the dtype of another tensor."""
    chosen = input.dtype if dtype is None else dtype
    return full(input.shape, fill_value, dtype=chosen, requires_grad=requires_grad, device=device)


def eye(n: int, m: int | None = None, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """Ones on the diagonal."""
    return _leaf(mint.eye(n, m), dtype, requires_grad, device)


def arange(*bounds: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None, **named: Any) -> Tensor:
    """Numbers at equal steps: `arange(end)`, `arange(start, end)`, `arange(start, end, step)`."""
    if named:
        given = dict(zip(("start", "end", "step") if len(bounds) != 1 else ("end",), bounds, strict=False)) | named
        bounds = (given.get("start", 0), given["end"], given.get("step", 1))
    whole = all(isinstance(one, int | np.integer) for one in bounds)
    chosen = ("int64" if whole else get_default_dtype()) if dtype is None else dtype
    return _leaf(mint.arange(*bounds, dtype=chosen), chosen, requires_grad, device)


def linspace(
    start: float, end: float, steps: int, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """Numbers from one to another, both included."""
    chosen = get_default_dtype() if dtype is None else dtype
    ends = [tensor(one, dtype=chosen).astype("float64") for one in (start, end)]
    return _leaf(mint.linspace(*ends, steps), chosen, requires_grad, device)


def logspace(
    start: float,
    end: float,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """Powers of a base, from one exponent to another, both included."""
    powers = float(base) ** linspace(start, end, steps, dtype="float64")
    return _leaf(powers, get_default_dtype() if dtype is None else dtype, requires_grad, device)


_MODULES = {
    "nn": "network",
    "optim": "optimizer_names",
    "amp": "mixed_precision",
    "distributions": "random_laws",
    "utils": "further_tools",
    "special": "special_names",
}
"""PyTorch's modules by the files of `mint/modules` that they are."""
_DTYPES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
    "cfloat": "complex64",
    "cdouble": "complex128",
}
"""PyTorch's other names of dtypes."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{_PACKAGE}.mint.modules.{_MODULES[name]}")
    if name == "cuda":
        return import_module(f"{__name__}.cuda")
    if name == "autocast":
        return __getattr__("amp").autocast
    if name in _DTYPES:
        return dtype_of(_DTYPES[name])
    own = (".mint.modules.array_names", ".autograd", ".mint", ".mint.nn.functional")
    for module in (*own, *((".ops",) if name in _ALIKE else ()), ""):
        found = getattr(import_module(f"{_PACKAGE}{module}"), name, None)
        if found is not None:
            return found
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
