"""`Generator`, where random numbers come from, and `set_seed`, which seeds the one that is used by default.

In: seeds, and shapes of draws. Out: nodes of random bits, which are a pure function of key and counter (the primitive
`random_bits`), so that one draw is the same whenever and by however many threads it is computed. Called by
`nbgrad.ops.random` and by users. Each draw moves the counter on, so that no two draws overlap. The state is a
Parameter: a program that `jit` compiled reads it at each call and writes it back, and a compiled function draws the
same numbers as a plain one.
"""

from __future__ import annotations

import operator
import os
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..graph.builders import cast, concatenate, iota, reshape, slice_axes
from ..graph.ir import Node, constant, elementwise, extent
from ..graph.shapes import Shape
from ..graph.trace import current_trace
from ..process.locks import ForkSafeLock
from ..record.tensor import Tensor
from .parameter import Parameter

UINT64 = np.dtype(np.uint64)
SEEDS = 2**32
"""The number of seeds: Philox2x32 has a key of 32 bits."""

_lock = ForkSafeLock()


def _fresh_seed() -> int:
    """A seed from the system."""
    return int.from_bytes(os.urandom(8), "little") % SEEDS


def checked_seed(seed: Any) -> int:
    """A seed as a Python int.

    Raises
    ------
    DtypeError, ArgumentError
        If it is no integer, or not in the range.
    """
    try:
        number = operator.index(seed)
    except TypeError:
        number = None
    if number is None or isinstance(seed, bool):
        message = f"A seed must be an integer, but got {seed!r} of type {type(seed).__name__}."
        raise DtypeError(message)
    if not 0 <= number < SEEDS:
        message = f"A seed must be between 0 and {SEEDS - 1}, but got {number}."
        raise ArgumentError(message)
    return number


def random_bits(key: Node, start: Node, shape: Shape, words: int = 1) -> list[Node]:
    """`words` arrays of random bits; element i of array k has the counter `start + words * i + k`."""
    size = int(np.prod(shape, dtype=np.int64))
    position = cast(iota(size), UINT64)
    found: list[Node] = []
    for word in range(words):
        counter = position if words == 1 else position * words + word
        bits = reshape(elementwise("random_bits", key, counter + start), shape)
        # Drawn numbers follow the rules of Tensors that users make.
        bits.tensor = True
        found.append(bits)
    return found


class _State(Parameter):
    """A generator's state, which random numbers are computed from wherever they are wanted."""

    __slots__ = ()
    _goes_anywhere = True


class Generator:
    """A source of random numbers: Philox2x32-10 (Salmon, Moraes, Dror and Shaw 2011).

    Parameters
    ----------
    seed : int, optional
        From 0 to 2**32 - 1; different seeds give streams that never meet. By default one from the operating system.

    Examples
    --------
    >>> import nbgrad as nb
    >>> from nbgrad.tensors.generator import Generator
    >>> one, other = Generator(7), Generator(7)
    >>> bool((nb.ops.rand(3, generator=one) == nb.ops.rand(3, generator=other)).all())
    True
    """

    def __init__(self, seed: int | None = None) -> None:
        number = _fresh_seed() if seed is None else checked_seed(seed)
        self._state = _State(Tensor(np.array([number, 0], UINT64)), name="generator_state", requires_grad=False)

    def __repr__(self) -> str:
        return f"Generator(seed={self.initial_seed()})"

    def _recorded(self) -> bool:
        """Whether `jit` records, so that the state is an input of a program and not a number."""
        trace = current_trace()
        return trace is not None and trace.guards is not None

    def draw(self, shape: Shape, words: int = 1) -> list[Node]:
        """Nodes of `words` times as many random 64-bit integers as the shape has elements; none comes twice.

        Parameters
        ----------
        shape : tuple of int
        words : int
            How many arrays of that shape to draw.

        Returns
        -------
        list of Node
            Of uint64.
        """
        count = int(np.prod(shape, dtype=np.int64)) * words
        with _lock.held():
            if self._recorded():
                state = self._state._node
                key, start = (reshape(slice_axes(state, [(k, 1, 1)]), ()) for k in (0, 1))
                after = start + extent(count, UINT64)
                self._write(concatenate([slice_axes(state, [(0, 1, 1)]), reshape(after, (1,))], 0))
            else:
                seed, counter = (int(number) for number in self._state._concrete())
                key, start = (constant(np.array(number, UINT64)) for number in (seed, counter))
                self._write(constant(np.array([seed, (counter + count) % 2**64], UINT64)))
        return random_bits(key, start, shape, words)

    def _write(self, node: Node) -> None:
        if self._recorded():
            self._state._write(node)
        else:
            # At once, also while a derivative is recorded: drawing is not differentiated.
            assert node.value is not None
            self._state._hold(node.value)

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of a seed.

        Parameters
        ----------
        seed : int

        Returns
        -------
        Generator
            This one.
        """
        with _lock.held():
            self._write(constant(np.array([checked_seed(seed), 0], UINT64)))
        return self

    def seed(self) -> int:
        """Start the stream of a seed from the operating system, and return that seed."""
        number = _fresh_seed()
        self.manual_seed(number)
        return number

    def initial_seed(self) -> int:
        """The seed of the stream."""
        return int(self._state._concrete()[0])

    def get_state(self) -> Tensor:
        """The seed and how many 64-bit integers were drawn: a Tensor of two uint64."""
        return self._state.value()

    def set_state(self, state: Any) -> None:
        """Go on from a state that `get_state` gave.

        Parameters
        ----------
        state : Tensor or array-like of two integers

        Raises
        ------
        DtypeError, ShapeError
            If it is no such state.
        """
        node = Tensor(state)._node
        if node.dtype.kind not in "iu":
            message = f"A generator's state has integers, but this one has dtype {node.dtype}."
            raise DtypeError(message)
        if node.shape != (2,):
            message = f"A generator's state has the shape (2,), but this one has shape {node.shape}."
            raise ShapeError(message)
        node = cast(node, UINT64)
        with _lock.held():
            if not self._recorded():
                node = constant(np.array(Tensor._of(node).asnumpy()))
            self._write(node)


# ----- The generator that is used by default -----


class _Default:
    """The process's generator, made when it is first needed, and the seed that the user gave."""

    generator: Generator | None = None
    seed: int | None = None


def default_generator() -> Generator:
    """The generator of functions that are given neither a seed nor a generator."""
    with _lock.held():
        if _Default.generator is None:
            _Default.generator = Generator()
        return _Default.generator


def set_seed(seed: int) -> None:
    """Seed the default generator, and the one from which initial values of layers are drawn.

    Parameters
    ----------
    seed : int
        From 0 to 2**32 - 1.

    Raises
    ------
    DtypeError, ArgumentError
        If it is no integer, or not in the range.

    Examples
    --------
    >>> import nbgrad as nb
    >>> from nbgrad.tensors.generator import set_seed
    >>> set_seed(1)
    >>> first = nb.ops.randn(2)
    >>> set_seed(1)
    >>> bool((nb.ops.randn(2) == first).all())
    True
    """
    from .initial_values import seed_host

    number = checked_seed(seed)
    default_generator().manual_seed(number)
    seed_host(number)
    _Default.seed = number


def get_seed() -> int | None:
    """The seed that `set_seed` was given last; None if it was not called."""
    return _Default.seed


# ----- MindSpore's functions of the default generator -----


def manual_seed(seed: int) -> Generator:
    """Seed the default generator, which is given back; initial values of layers are not concerned.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.manual_seed(14).initial_seed(), nb.initial_seed()
    (14, 14)
    """
    return default_generator().manual_seed(seed)


def seed() -> int:
    """Seed the default generator with a number from the operating system, which is given back."""
    return default_generator().seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator().initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator.

    Examples
    --------
    >>> import nbgrad as nb
    >>> state = nb.get_rng_state()
    >>> first = nb.ops.rand(3)
    >>> nb.set_rng_state(state)
    >>> bool((nb.ops.rand(3) == first).all())
    True
    """
    return default_generator().get_state()


def set_rng_state(state: Any) -> None:
    """Let the default generator go on from a state of `get_rng_state`."""
    default_generator().set_state(state)
