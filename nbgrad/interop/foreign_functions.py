"""Functions of PyTorch and of JAX as differentiable functions of nbgrad's.

In: a function, or a PyTorch module, of the other library's arrays. Out: a function of arrays and Tensors that nbgrad's
transforms go through: its derivative, of any order, is the one that the other library finds. Whole Jacobians are
refused, since a derivative needs the values of its cotangents. Called by users.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..transforms.argument_positions import check_function
from ..transforms.custom import custom_vjp


def from_jax(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of JAX's arrays as a function of arrays that nbgrad differentiates and compiles.

    Parameters
    ----------
    fn : callable
        Takes JAX's arrays of floating-point numbers by position; returns one.

    Returns
    -------
    callable
        Takes arrays and Tensors; compiled programs call it back.

    Raises
    ------
    ImportError
        Without JAX.
    DtypeError
        If `fn` is no function.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> f = nb.interop.from_jax(lambda x: jax.numpy.sum(jax.numpy.tanh(x)))   # doctest: +SKIP
    >>> nb.grad(f)(np.array([0.0]))                                           # doctest: +SKIP
    array([1.])
    """
    check_function(fn, "from_jax")
    import jax  # pyright: ignore[reportMissingImports]

    compiled = jax.jit(fn)

    def run(*args: Any) -> Any:
        return np.asarray(compiled(*[np.asarray(one) for one in args]))

    @functools.cache
    def rule(position: int) -> Callable[..., Any]:
        # JAX's cotangents of complex numbers are the conjugates of nbgrad's.
        conj = jax.numpy.conj
        return from_jax(lambda *given: conj(jax.vjp(fn, *given[:-1])[1](conj(given[-1]))[position]))

    return _with_rule(run, fn, rule)


def from_torch(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function or module of PyTorch's as a function of arrays that nbgrad differentiates and compiles.

    Parameters
    ----------
    fn : callable
        Takes tensors of floating-point numbers by position; returns one. A module's own parameters are constants.

    Returns
    -------
    callable
        Takes arrays and Tensors; compiled programs call it back.

    Raises
    ------
    ImportError
        Without PyTorch.
    DtypeError
        If `fn` is no function.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> f = nb.interop.from_torch(lambda x: torch.tanh(x).sum())              # doctest: +SKIP
    >>> nb.grad(f)(np.array([0.0]))                                           # doctest: +SKIP
    array([1.])
    """
    check_function(fn, "from_torch")
    import torch  # pyright: ignore[reportMissingImports]

    def run(*args: Any) -> Any:
        tensors = [torch.from_numpy(np.array(one)) for one in args]
        return fn(*tensors).detach().numpy()

    @functools.cache
    def rule(position: int) -> Callable[..., Any]:
        def slope(*given: Any) -> Any:
            points = [one if one.requires_grad else one.clone().requires_grad_() for one in given[:-1]]
            with torch.enable_grad():
                found = torch.autograd.grad(
                    fn(*points), points[position], given[-1], create_graph=True, materialize_grads=True
                )
            return found[0]

        return from_torch(slope)

    return _with_rule(run, fn, rule)


def _with_rule(
    run: Callable[..., Any], fn: Callable[..., Any], rule: Callable[[int], Callable[..., Any]]
) -> Callable[..., Any]:
    """The function on arrays, whose cotangent by each argument is a function of the same kind."""

    def forward(*args: Any) -> Any:
        return run(*args), args

    def backward(args: Any, cotangent: Any) -> Any:
        return tuple([rule(position)(*args, cotangent) for position in range(len(args))])

    named = functools.wraps(fn, updated=())(lambda *args: run(*args))
    function = custom_vjp(named)
    function.defvjp(forward, backward)
    return function
