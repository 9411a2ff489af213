"""Gradient transformations: pairs of functions from gradients and a state to updates and the next state.

In: gradients in any container. Out: updates in such a container, to be added to the parameters. Called by users.
Nothing is changed in place and nothing is hidden: states are tuples of arrays and containers, which `jit`, `scan` and
`vmap` carry like any others (design/0099).

A gradient that is None (a field of an object that holds no floats) has no update, and its parameter stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..record.container_leaves import leaves_of, map_leaves
from ..transforms.arguments import has_floats

Schedule = Callable[[Any], Any]
"""From the number of updates so far to a number."""


class Transformation(NamedTuple):
    """`init(params)` gives the first state; `update(gradients, state, params)` the updates and the next state.

    `params` may be left out of `update` where the transformation does not read them (weight decay does).
    """

    init: Callable[[Any], Any]
    update: Callable[..., tuple[Any, Any]]


class Count(NamedTuple):
    """The number of updates so far: an int64 array without axes."""

    count: Any


def first_count() -> Any:
    """The count before the first update."""
    return np.zeros((), np.int64)


def on_gradients(function: Callable[..., Any], gradients: Any, *others: Any) -> Any:
    """The function of each gradient and what stands beside it in `others`; None where there is no gradient."""
    return map_leaves(lambda g, *rest: None if g is None else function(g, *rest), gradients, *others)


def zeros_like(params: Any) -> Any:
    """Zeros of the shapes and dtypes of floats, None for all else."""
    return map_leaves(lambda p: np.zeros(np.shape(p), _dtype_of(p)) if has_floats(p) else None, params)


def _dtype_of(leaf: Any) -> np.dtype[Any]:
    return np.dtype(leaf.dtype) if hasattr(leaf, "dtype") else np.asarray(leaf).dtype


def like(value: Any, gradient: Any) -> Any:
    """A number that was computed as float64, in the dtype of a gradient."""
    return value.astype(_dtype_of(gradient)) if hasattr(value, "astype") else value


def square(gradient: Any) -> Any:
    """The square of the absolute value of each element."""
    return gradient.real**2 + gradient.imag**2 if _dtype_of(gradient).kind == "c" else gradient * gradient


def apply_updates(params: Any, updates: Any) -> Any:
    """The parameters plus the updates.

    Parameters
    ----------
    params : nested containers of arrays
    updates : containers of the same structure
        None leaves its parameter as it is.

    Returns
    -------
    as `params`
        In the shapes and dtypes of the parameters.

    Raises
    ------
    ArgumentError
        If the structures differ.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.optim.apply_updates({"w": np.ones(2), "n": 3}, {"w": np.array([0.5, 0.0]), "n": None})
    {'w': array([1.5, 1. ]), 'n': 3}
    """
    return map_leaves(lambda p, u: p if u is None else p + like(u, p), params, updates)


def stateless(function: Callable[[Any, Any], Any]) -> Transformation:
    """A transformation without a state.

    Parameters
    ----------
    function : callable
        `function(gradients, params)` gives the updates.

    Returns
    -------
    Transformation

    Raises
    ------
    DtypeError
        If it is no function.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> signs = nb.optim.stateless(lambda gradients, params: np.sign(gradients))
    >>> signs.update(np.array([3.0, -2.0]), signs.init(None))
    (array([ 1., -1.]), ())
    """
    if not callable(function):
        message = f"stateless takes a function, but got a {type(function).__name__}."
        raise DtypeError(message)
    return Transformation(lambda params: (), lambda gradients, state, params=None: (function(gradients, params), state))


def chain(*transformations: Transformation) -> Transformation:
    """Transformations one after the other: the updates of each are the gradients of the next.

    Parameters
    ----------
    *transformations : Transformation

    Returns
    -------
    Transformation
        Its state is a tuple of theirs.

    Raises
    ------
    DtypeError
        For what is no transformation.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> clipped = nb.optim.chain(nb.optim.clip_by_global_norm(1.0), nb.optim.sgd(0.1))
    >>> clipped.update(np.array([3.0, 4.0]), clipped.init(np.zeros(2)))[0]
    array([-0.06, -0.08])
    """
    for one in transformations:
        if not isinstance(one, Transformation):
            message = f"chain takes transformations, but got a {type(one).__name__}."
            raise DtypeError(message)

    def update(gradients: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        after: list[Any] = []
        for one, held in zip(transformations, state, strict=True):
            gradients, held = one.update(gradients, held, params)
            after.append(held)
        return gradients, tuple(after)

    return Transformation(lambda params: tuple([one.init(params) for one in transformations]), update)


def scale(factor: float) -> Transformation:
    """Gradients times a number.

    Parameters
    ----------
    factor : float

    Returns
    -------
    Transformation

    Examples
    --------
    >>> import nbgrad as nb
    >>> half = nb.optim.scale(0.5)
    >>> half.update([4.0], half.init(None))[0]
    [2.0]
    """
    return stateless(lambda gradients, params: on_gradients(lambda g: factor * g, gradients))


def scale_by_learning_rate(learning_rate: float | Schedule) -> Transformation:
    """Gradients times minus the learning rate.

    Parameters
    ----------
    learning_rate : float or callable
        A callable gets the number of updates so far, an integer array without axes.

    Returns
    -------
    Transformation

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> falling = nb.optim.scale_by_learning_rate(lambda count: 1.0 / (1.0 + count))
    >>> updates, state = falling.update(np.ones(1), falling.init(None))
    >>> falling.update(np.ones(1), state)[0]
    array([-0.5])
    """
    if not callable(learning_rate):
        return scale(-learning_rate)

    def update(gradients: Any, state: Count, params: Any = None) -> tuple[Any, Count]:
        rate = -learning_rate(state.count)
        return on_gradients(lambda g: like(rate, g) * g, gradients), Count(state.count + 1)

    return Transformation(lambda params: Count(first_count()), update)


def add_decayed_weights(weight_decay: float) -> Transformation:
    """Gradients plus a number times the parameters: weight decay, or a penalty on their squares.

    Parameters
    ----------
    weight_decay : float

    Returns
    -------
    Transformation
        Its `update` needs `params`.

    Raises
    ------
    ArgumentError
        By `update`, without `params`.

    Notes
    -----
    I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", 2019: after the scaling by moments, before
    the learning rate.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> decayed = nb.optim.add_decayed_weights(0.1)
    >>> decayed.update(np.array([1.0]), (), np.array([5.0]))[0]
    array([1.5])
    """

    def added(gradients: Any, params: Any) -> Any:
        if params is None:
            message = "Weight decay reads the parameters: call update(gradients, state, params)."
            raise ArgumentError(message)
        return on_gradients(lambda g, p: g + weight_decay * p, gradients, params)

    return stateless(added)


def clip(limit: float) -> Transformation:
    """Each element of the gradients within -limit and limit.

    Parameters
    ----------
    limit : float

    Returns
    -------
    Transformation

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.optim.clip(1.0).update(np.array([3.0, -0.5]), ())[0]
    array([ 1. , -0.5])
    """
    return stateless(lambda gradients, params: on_gradients(lambda g: np.clip(g, -limit, limit), gradients))


def global_norm(tree: Any) -> Any:
    """The root of the sum of the squares of all elements in a container.

    Parameters
    ----------
    tree : nested containers of arrays

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> float(nb.optim.global_norm({"a": np.array([3.0]), "b": 4.0}))
    5.0
    """
    squares: Sequence[Any] = [np.sum(square(leaf)) for leaf in leaves_of(tree) if leaf is not None]
    return np.sqrt(sum(squares[1:], squares[0])) if squares else np.zeros(())


def clip_by_global_norm(limit: float) -> Transformation:
    """All gradients times one number, so that their norm together is at most the limit.

    Parameters
    ----------
    limit : float

    Returns
    -------
    Transformation

    Notes
    -----
    R. Pascanu, T. Mikolov and Y. Bengio, "On the difficulty of training recurrent neural networks", 2013.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.optim.clip_by_global_norm(1.0).update({"a": np.array([3.0]), "b": np.array([4.0])}, ())[0]
    {'a': array([0.6]), 'b': array([0.8])}
    """

    def clipped(gradients: Any, params: Any) -> Any:
        norm = global_norm(gradients)
        factor = limit / np.maximum(norm, limit)
        return on_gradients(lambda g: like(factor, g) * g, gradients)

    return stateless(clipped)
