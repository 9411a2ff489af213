"""The gradient of a NumPy function, as users of several libraries compute it.

In: a function of arrays, and the positions of the arguments that the gradient is by. Out: a function of its arguments.
Called by gradient_benchmarks.py. A library is imported when it makes a gradient. JAX and autograd have modules with
NumPy's names: a copy of the function, and of those of its module that it calls, has these in place of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from ..compiled.jit import jit
from ..transforms.grad import grad
from ..transforms.ravel import ravel

Positions = int | tuple[int, ...]
Gradient = Callable[..., Any]


def by_nbgrad(function: Callable[..., Any], wrt: Positions) -> Gradient:
    """The compiled gradient."""
    return jit(grad(function, wrt))


def by_differences(function: Callable[..., Any], wrt: Positions) -> Gradient:
    """Forward differences, one call for each number and one more, as optimisers take them without a gradient."""
    positions = wrt if isinstance(wrt, tuple) else (wrt,)

    def gradient(*arguments: Any) -> Any:
        vector, unravel = ravel(tuple([arguments[k] for k in positions]))

        def value(numbers: Any) -> Any:
            given = list(arguments)
            for position, part in zip(positions, unravel(numbers), strict=True):
                given[position] = part
            return function(*given)

        start, slopes = value(vector), np.empty_like(vector)
        width = np.sqrt(np.finfo(vector.dtype).eps)
        for k in range(vector.size):
            moved = vector.copy()
            moved[k] += width * max(1.0, abs(vector[k]))
            slopes[k] = (value(moved) - start) / (moved[k] - vector[k])
        found = unravel(slopes)
        return found if isinstance(wrt, tuple) else found[0]

    return gradient


def by_jax(function: Callable[..., Any], wrt: Positions) -> Gradient:
    """The compiled gradient of JAX, in the precision of the arguments, waited for."""
    import jax  # pyright: ignore[reportMissingImports]

    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(jax.grad(in_other_words(function, jax.numpy), wrt))
    return lambda *arguments: jax.block_until_ready(compiled(*arguments))


def by_autograd(function: Callable[..., Any], wrt: Positions) -> Gradient:
    """The gradient of HIPS autograd, which records at each call."""
    import autograd  # pyright: ignore[reportMissingImports]
    import autograd.numpy  # pyright: ignore[reportMissingImports]

    transform: Any = autograd.grad
    return transform(in_other_words(function, autograd.numpy), wrt)


def in_other_words(function: Callable[..., Any], namespace: Any) -> Callable[..., Any]:
    """A copy of a function, and of the functions of its module, whose globals have another module in place of NumPy."""
    if not isinstance(function, FunctionType):
        return function
    own = function.__globals__
    others: dict[str, Any] = {name: namespace if value is np else value for name, value in own.items()}

    def copied(one: FunctionType) -> FunctionType:
        copy = FunctionType(one.__code__, others, one.__name__, one.__defaults__, one.__closure__)
        copy.__kwdefaults__ = one.__kwdefaults__
        return copy

    others |= {
        name: copied(one) for name, one in own.items() if isinstance(one, FunctionType) and one.__globals__ is own
    }
    return copied(function)


LIBRARIES: dict[str, Callable[[Callable[..., Any], Positions], Gradient]] = {
    "nbgrad": by_nbgrad,
    "differences": by_differences,
    "jax": by_jax,
    "autograd": by_autograd,
}
"""By the names that `Gradients.libraries` has."""
