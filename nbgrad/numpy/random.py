"""`nbgrad.numpy.random`: NumPy's random numbers, which are constants of a computation, as Tensors.

In: NumPy's names. Out: NumPy's draws, the same numbers for the same seed, but arrays are Tensors, so that recorded
values can be written to them. Parameters are numbers, not recorded values: for a gradient with respect to a mean or a
scale, write `mean + scale * rng.standard_normal(n)`. Arrays to be shuffled, or to choose from, may be recorded. (Random
numbers that compiled code draws anew at each call are those of nbgrad.Generator and nbgrad.ops.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as _np
import numpy.random as _numpys

from ..functions.arrays.construction import array, tensors_of
from ..functions.arrays.taking import take
from ..record.as_node import holds_tensors
from ..record.tensor import Tensor

_FROM_VALUES = ("shuffle", "permutation", "choice")


def _drawing(draw: Callable[..., Any]) -> Callable[..., Any]:
    """A function that draws; arrays become Tensors, and Tensors are shuffled and chosen from by position."""
    name = draw.__name__

    @functools.wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        return tensors_of(draw(*args, **kwargs))

    @functools.wraps(draw)
    def function(*args: Any, **kwargs: Any) -> Any:
        given = next(iter(args), None)
        if isinstance(given, Tensor) or (name in ("permutation", "choice") and holds_tensors(given)):
            values = array(given, copy=None)
            if name == "choice":
                axis = args[4] if len(args) > 4 else kwargs.pop("axis", 0)
                chosen = draw(values.shape[axis], *args[1:4], *([0] if len(args) > 4 else []), *args[5:], **kwargs)
                return take(values, chosen, axis)
            axis = args[1] if len(args) > 1 else kwargs.get("axis", 0)
            positions = _np.arange(values.shape[axis])
            if name == "permutation":
                return take(values, draw(positions), axis)
            draw(positions)
            values[...] = take(values, positions, axis)
            return None
        return tensors_of(draw(*args, **kwargs))

    return function if name in _FROM_VALUES else drawn


class _Kind(type):
    """The class of generators, whose objects NumPy's own generators are, too."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.__mro__[1])


class Generator(_numpys.Generator, metaclass=_Kind):
    """NumPy's generator of random numbers, whose arrays are Tensors.

    Examples
    --------
    >>> import nbgrad.numpy as np
    >>> rng = np.random.default_rng(1)
    >>> x = rng.random(3)
    >>> x[0] = 2.0
    >>> type(x).__name__
    'Tensor'
    """

    def __getattribute__(self, name: str) -> Any:
        return _wrapped(super().__getattribute__(name), name)


class RandomState(_numpys.RandomState, metaclass=_Kind):
    """NumPy's older generator of random numbers, whose arrays are Tensors."""

    def __getattribute__(self, name: str) -> Any:
        return _wrapped(super().__getattribute__(name), name)


def _wrapped(value: Any, name: str) -> Any:
    """An attribute of a generator; methods that draw give Tensors."""
    plain = name.startswith("_") or name in ("bit_generator", "seed", "get_state", "set_state", "spawn", "bytes")
    return value if plain or not callable(value) else _drawing(value)


def default_rng(seed: Any = None) -> Generator:
    """A generator of random numbers, the same as NumPy's for the same seed."""
    return Generator(_numpys.default_rng(seed).bit_generator)


def of(generator: Any) -> Any:
    """A generator that draws Tensors, from the same stream as one of NumPy's; other objects as they are."""
    if type(generator) is _numpys.Generator:
        return Generator(generator.bit_generator)
    return RandomState(generator._bit_generator) if type(generator) is _numpys.RandomState else generator


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return list(_numpys.__all__)
    value = getattr(_numpys, name)
    if isinstance(getattr(value, "__self__", None), _numpys.RandomState):
        return _wrapped(value, name)
    return value


def __dir__() -> list[str]:
    return dir(_numpys)
