"""Generalised minimal residuals, with restarts, for a matrix that is a function of plain arrays.

In: a function that multiplies by the matrix, a right-hand side, and limits. Out: the solution and SciPy's `info`.
Called by linear_solves.py, and by mpi's decomposed_solves.py, where a vector is one rank's part. Y. Saad and M. H.
Schultz, "GMRES: a generalized minimal residual algorithm for solving nonsymmetric linear systems", 1986; preconditioned
from the right, so that the residual is that of the system itself (Y. Saad, "Iterative Methods for Sparse Linear
Systems", 2nd edition, algorithm 9.5).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Product = Callable[[np.ndarray], np.ndarray]


def gmres(
    product: Product,
    b: np.ndarray,
    start: np.ndarray | None,
    limit: float,
    restart: int,
    most: int,
    inverse: Product | None = None,
    summed: Callable[[Any], Any] | None = None,
) -> tuple[np.ndarray, int]:
    """The solution, and 0, or the number of cycles if the residual's norm has not come below the limit.

    Parameters
    ----------
    product : callable
        The matrix times a vector.
    b : numpy.ndarray
        One axis.
    start : numpy.ndarray, optional
    limit : float
        Of the residual's norm.
    restart : int
        The most directions of a cycle.
    most : int
        The most cycles. A cycle that gains nothing is the last one.
    inverse : callable, optional
        About the inverse times a vector.
    summed : callable, optional
        The sums over all ranks of inner products of vectors of which each rank has a part, given one rank's, of any
        shape; they are equal on all ranks.

    Examples
    --------
    >>> import numpy as np
    >>> matrix = np.array([[2.0, 1.0], [0.0, 4.0]])
    >>> x, info = gmres(lambda v: matrix @ v, np.array([4.0, 8.0]), None, 1e-12, 2, 9)
    >>> bool(np.allclose(x, [1.0, 2.0])), info
    (True, 0)
    """
    total = summed or _alone
    x = np.zeros_like(b) if start is None else np.array(start)
    before = math.inf
    for cycle in range(most):
        rest = b - product(x) if cycle or start is not None else b
        size = math.sqrt(total(rest @ rest))
        if size <= limit:
            return x, 0
        if not size < before * (1 - 1e-9):
            return x, cycle
        before = size
        moved = _cycle(product, rest, size, limit, restart, inverse, total)
        if moved is None:
            return x, cycle + 1
        x = x + moved
    rest = b - product(x)
    return x, 0 if math.sqrt(total(rest @ rest)) <= limit else most


def _alone(products: Any) -> Any:
    """Inner products of whole vectors."""
    return products


def _cycle(
    product: Product,
    rest: np.ndarray,
    size: float,
    limit: float,
    restart: int,
    inverse: Product | None,
    total: Callable[[Any], Any],
) -> np.ndarray | None:
    """The part of the solution that a cycle adds, given the residual and its norm; None for a singular matrix."""
    basis = np.empty((restart + 1, rest.size))
    basis[0] = rest / size
    triangle = np.zeros((restart, restart))
    rotations: list[tuple[float, float]] = []
    right, count = [size], 0
    while count < restart and abs(right[-1]) > limit:
        known = basis[: count + 1]
        one = product(basis[count] if inverse is None else inverse(basis[count]))
        length = math.sqrt(total(one @ one))
        # Twice, so that the directions are orthogonal to rounding: Giraud, Langou and Rozloznik, 2005.
        parts = total(known @ one)
        one = one - parts @ known
        again = total(known @ one)
        one = one - again @ known
        column, below = (parts + again).tolist(), math.sqrt(total(one @ one))
        if not math.isfinite(below):
            return None
        last = below <= 1e-15 * length
        for k, (c, s) in enumerate(rotations):
            column[k], column[k + 1] = c * column[k] + s * column[k + 1], c * column[k + 1] - s * column[k]
        edge = math.hypot(column[count], 0.0 if last else below)
        if edge <= 1e-15 * length:
            return None
        c, s = column[count] / edge, (0.0 if last else below) / edge
        rotations.append((c, s))
        column[count] = edge
        triangle[: count + 1, count] = column
        right[-1:] = [c * right[-1], -s * right[-1]]
        count += 1
        if last:
            break
        basis[count] = one / below
    weights = np.linalg.solve(triangle[:count, :count], np.array(right[:count]))
    moved = weights @ basis[:count]
    return moved if inverse is None else inverse(moved)
