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
from ..transforms.argument_positions import check_function
from .jax_calls import Called
from .result_types import result_types
from .reverse_rules import conjugate_pullback


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

    @functools.cache
    def shapes(layouts: Any) -> Any:
        """The shapes and dtypes of the results as JAX has them, which makes float32 of float64 by default."""
        types, is_tuple = result_types(fn, layouts)
        found = [jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(dtype)) for shape, dtype in types]
        return tuple(found) if is_tuple else found[0]

    called_by_xla = Called(compiled)

    def call(*args: Any) -> Any:
        wanted = shapes(tuple([(tuple(one.shape), np.dtype(one.dtype)) for one in args]))

        def host(*values: Any) -> Any:
            found = compiled(*[np.asarray(value) for value in values])
            return jax.tree.map(lambda like, one: np.asarray(one, like.dtype), wanted, found)

        def by_callback(*values: Any) -> Any:
            return jax.pure_callback(host, wanted, *values, vmap_method="sequential")

        def by_xla(*values: Any) -> Any:
            return called_by_xla(wanted, *values)

        # JAX before 0.5 has no foreign functions under this name.
        return jax.lax.platform_dependent(
            *args, default=by_callback, **({"cpu": by_xla} if hasattr(jax, "ffi") else {})
        )

    @functools.cache
    def rule_of(count: int, wanted: tuple[int, ...]) -> Callable[..., Any]:
        return jax_function(conjugate_pullback(fn, count, wanted))

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
