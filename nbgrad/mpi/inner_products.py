"""Inner products and norms of arrays of which each rank has a part.

In: this rank's parts, which may differ in length from those of other ranks, or be empty. Out: numbers that are equal on
all ranks. Called by users. They are sums, maxima and minima over ranks (collectives.py), and so are their derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from .arrays_given import given
from .collectives import allreduce


def dot(x: Any, y: Any, comm: Any = None) -> Any:
    """The sum of products of two arrays of which each rank has a part, on all ranks.

    Parameters
    ----------
    x, y : array
        This rank's parts, of one shape; complex ones are not conjugated.
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    number

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For arrays that do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> mpi.dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    np.float64(11.0)
    """
    return _summed(x, y, "dot", False, comm)


def vdot(x: Any, y: Any, comm: Any = None) -> Any:
    """The inner product of two arrays of which each rank has a part, on all ranks: that of `numpy.vdot`.

    Parameters
    ----------
    x, y : array
        This rank's parts, of one shape; `x` is conjugated.
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    number

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For arrays that do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad import mpi
    >>> mpi.vdot(np.array([1.0, 2.0j]), np.array([3.0, 4.0j]))
    np.complex128(11+0j)
    """
    return _summed(x, y, "vdot", True, comm)


def _summed(x: Any, y: Any, name: str, conjugated: bool, comm: Any) -> Any:
    one, other = given(x, name), given(y, name)
    if one.shape != other.shape:
        message = f"{name} takes two arrays of one shape, but got {one.shape} and {other.shape}."
        raise ShapeError(message)
    first = np.conj(x) if conjugated and one.dtype.kind == "c" else x
    return allreduce(np.sum(np.multiply(first, y)), comm=comm)


def norm(x: Any, ord: float | None = None, comm: Any = None) -> Any:
    """The norm of all elements of an array of which each rank has a part, on all ranks.

    Parameters
    ----------
    x : array
        This rank's part.
    ord : {None, inf, -inf} or a positive number
        As for `numpy.linalg.norm` of a vector: None and 2 are the Euclidean norm, inf and -inf the largest and the
        least absolute value, p the p-th root of the sum of their p-th powers.
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    number
        Real. Of no elements on all ranks, 0; for -inf, inf.

    Raises
    ------
    ArgumentError, DtypeError
        For arrays, orders and communicators that do not fit.

    Notes
    -----
    The derivative at zero is zero, as that of `numpy.linalg.norm`. That of a largest or least element is on the first
    rank that has it.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> from nbgrad import mpi
    >>> mpi.norm(np.array([3.0, 4.0]))
    np.float64(5.0)
    >>> nb.grad(mpi.norm)(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    >>> mpi.norm(np.array([3.0, -4.0]), ord=np.inf)
    np.float64(4.0)
    """
    node = given(x, "norm")
    power = 2.0 if ord is None else float(ord) if isinstance(ord, int | float | np.number) else 0.0
    if not (power > 0 or power == -np.inf):
        message = f"ord of norm must be None, inf, -inf or a positive number, but got {ord!r}."
        raise ArgumentError(message)
    if np.isinf(power):
        sizes = np.abs(x) if node.dtype.kind in "fc" else np.abs(x) * 1.0
        if power > 0:
            return allreduce(np.max(sizes, initial=0.0), "max", comm)
        return allreduce(np.min(sizes, initial=np.inf), "min", comm)
    if node.dtype.kind == "c" and power == 2:
        powers = np.real(x) ** 2 + np.imag(x) ** 2
    elif power == 2:
        powers = np.multiply(x, x) * 1.0
    else:
        powers = np.abs(x) if power == 1 else _power(np.abs(x), power)
    total = allreduce(np.sum(powers), comm=comm)
    if power == 1:
        return total
    # An index turns an array without axes to a number.
    return _power(total, 1 / power)[()]


def _power(x: Any, exponent: float) -> Any:
    """A power of numbers that are not negative, whose derivative at zero is zero."""
    is_zero = x == 0
    safe = np.where(is_zero, 1.0, x)
    found = np.sqrt(safe) if exponent == 0.5 else safe**exponent
    return np.where(is_zero, x, found)
