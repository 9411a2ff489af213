"""Functions of arrays as differentiable functions of JAX's arrays.

In: a function of arrays. Out: a function of JAX's arrays that all of JAX's transformations go through. Called by users.
Values and derivatives are operations (jax_operations.py), compiled by nbgrad and called back from JAX's programs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..transforms.argument_positions import check_function
from .jax_operations import Operation, primitive


def jax_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of JAX's arrays that computes, and differentiates, by nbgrad.

    Parameters
    ----------
    fn : callable
        Takes arrays; returns an array or a tuple of them.

    Returns
    -------
    callable
        Takes JAX's arrays by position; gives JAX's arrays. Differentiable to any order, in both modes; `jax.vmap` is
        `nb.vmap`, or calls for one value after the other where that refuses the function.

    Raises
    ------
    ImportError
        Without JAX.
    DtypeError
        If `fn` is no function.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> norm = nb.interop.jax_function(lambda x: np.sqrt(np.sum(x * x)))      # doctest: +SKIP
    >>> jax.jit(jax.grad(norm))(jnp.array([3.0, 4.0]))                        # doctest: +SKIP
    Array([0.6, 0.8], dtype=float32)
    """
    check_function(fn, "jax_function")
    import jax  # pyright: ignore[reportMissingImports]

    operation = Operation(fn)

    @functools.wraps(fn, updated=())
    def called(*args: Any) -> Any:
        # As in JAX, Python's floats take the dtype of the arrays.
        kind = jax.numpy.result_type(*args) if any(type(one) is float for one in args) else None
        given = [jax.numpy.asarray(one, kind if type(one) is float else None) for one in args]
        found = primitive().bind(*given, operation=operation)
        is_tuple = operation.results(tuple([(tuple(one.shape), np.dtype(one.dtype)) for one in given]))[1]
        return tuple(found) if is_tuple else found[0]

    return called
