"""PyTorch's `torch.fft` and `torch.linalg`: its names and parameters over the functions of nbgrad.

In: a name. Out: the function. Used by torch_names.py. Transforms are those of `nbgrad.ops`, matrices those of
`mint.linalg` and, where parameters and results are the same, of `nbgrad.numpy.linalg`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from ..functions.linalg import factorisations
from ..numpy import linalg as numpy_linalg

_PACKAGE = __package__.rpartition(".")[0] if __package__ else "nbgrad"


def solve_triangular(
    A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:  # PyTorch's names
    """The solution of `A @ X == B`, or of `X @ A == B` unless `left`, for a triangular matrix A."""
    if left:
        return factorisations.solve_triangular(A, B, lower=not upper, unit_diagonal=unitriangular)
    turned = factorisations.solve_triangular(A.mT, B.mT, lower=upper, unit_diagonal=unitriangular)
    return turned.mT


class LeastSquares(NamedTuple):
    """The results of `lstsq`."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


def lstsq(A: Any, B: Any, rcond: Any = None, *, driver: Any = None) -> LeastSquares:
    """The least-squares solution of `A @ X == B` (torch.linalg.lstsq)."""
    del driver
    return LeastSquares(*numpy_linalg.lstsq(A, B, rcond))


class _Names:
    """A namespace whose functions are found by tables: module -> names."""

    def __init__(self, title: str, tables: dict[str, str], **own: Any) -> None:
        self._title, self._own = title, own
        self._home = {name: module for module, names in tables.items() for name in names.split()}

    def __getattr__(self, name: str) -> Any:
        if name in self._own:
            return self._own[name]
        if name not in self._home:
            message = f"{self._title} has no {name!r} here"
            raise AttributeError(message)
        return getattr(import_module(f"{_PACKAGE}.{self._home[name]}"), name)

    def __dir__(self) -> list[str]:
        return sorted({*self._home, *self._own})


fft = _Names(
    "torch.fft",
    {
        "ops": (
            "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft hfft2 ihfft2 hfftn ihfftn "
            "fftshift ifftshift fftfreq rfftfreq"
        )
    },
)
linalg = _Names(
    "torch.linalg",
    {
        "mint.linalg": "inv vector_norm matrix_norm norm qr",
        "numpy.linalg": (
            "cholesky cond det eig eigh eigvals eigvalsh matmul matrix_power matrix_rank multi_dot pinv slogdet solve "
            "svd svdvals tensorinv tensorsolve LinAlgError"
        ),
        "ops": "matrix_exp vecdot diagonal vander",
        "numpy": "cross",
    },
    solve_triangular=solve_triangular,
    lstsq=lstsq,
)
