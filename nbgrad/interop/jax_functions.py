"""Functions of arrays as differentiable functions of JAX's arrays.

In: a function of arrays. Out: a function of JAX's arrays that `jax.jit`, `jax.grad` and `jax.vmap` go through. Called
by users. Values and derivatives are compiled by nbgrad, and called back from JAX's programs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiled.jit import jit
from ..graph.ir import placeholder
from ..graph.trace import recording
from ..record.tensor import Tensor
from ..transforms.argument_positions import check_function
from .reverse_rules import pullback


def jax_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of JAX's arrays that computes, and differentiates, by nbgrad.

    Parameters
    ----------
    fn : callable
        Takes arrays; returns an array or a tuple of them.

    Returns
    -------
    callable
        Takes JAX's arrays by position; gives JAX's arrays. Differentiable to any order, in reverse mode; under
        `jax.vmap`, values are called for one after the other.

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

    compiled = jit(fn)

    def shapes(args: Any) -> Any:
        """The shapes and dtypes of the results as JAX has them, which makes float32 of float64 by default."""
        nodes = [placeholder(tuple(one.shape), np.dtype(one.dtype)) for one in args]
        with recording(nodes):
            found = fn(*map(Tensor._of, nodes))
        return jax.tree.map(
            lambda one: jax.ShapeDtypeStruct(
                np.shape(one), jax.dtypes.canonicalize_dtype(np.dtype(getattr(one, "dtype", type(one))))
            ),
            found,
            is_leaf=lambda one: isinstance(one, Tensor),
        )

    def call(*args: Any) -> Any:
        wanted = shapes(args)

        def host(*values: Any) -> Any:
            found = compiled(*[np.asarray(value) for value in values])
            return jax.tree.map(lambda one, like: np.asarray(one, like.dtype), found, wanted)

        return jax.pure_callback(host, wanted, *args, vmap_method="sequential")

    @functools.cache
    def rule_of(count: int, wanted: tuple[int, ...]) -> Callable[..., Any]:
        return jax_function(pullback(fn, count, wanted))

    function = jax.custom_vjp(call)

    def forward(*args: Any) -> Any:
        return function(*args), args

    def backward(args: Any, cotangents: Any) -> Any:
        given = cotangents if isinstance(cotangents, tuple) else (cotangents,)
        wanted = tuple([k for k, value in enumerate(args) if np.dtype(value.dtype).kind in "fc"])
        found = iter(rule_of(len(args), wanted)(*args, *given))
        return tuple([next(found) if k in wanted else None for k in range(len(args))])

    function.defvjp(forward, backward)

    @functools.wraps(fn, updated=())
    def called(*args: Any) -> Any:
        return function(*[jax.numpy.asarray(one) for one in args])

    return called
