"""Descent by gradients: sgd, adam and their relatives, as gradient transformations.

In: a learning rate (a number or a schedule) and the constants of a method. Out: a `Transformation`. Called by users.
Parameters have the names and defaults of optax, results are its results; formulas come from the papers that are named.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .transformations import (
    Schedule,
    Transformation,
    add_decayed_weights,
    chain,
    first_count,
    like,
    on_gradients,
    scale_by_learning_rate,
    square,
    zeros_like,
)


class Trace(NamedTuple):
    """The decayed sum of the gradients."""

    trace: Any


class Moments(NamedTuple):
    """The number of updates, and the means of the gradients and of their squares."""

    count: Any
    mu: Any
    nu: Any


class Squares(NamedTuple):
    """The mean, or the sum, of the squares of the gradients."""

    nu: Any


class Centered(NamedTuple):
    """The means of the gradients and of their squares."""

    mu: Any
    nu: Any


class Mean(NamedTuple):
    """The mean of the gradients."""

    mu: Any


def _mean(decay: float, before: Any, gradients: Any, power: Any = None) -> Any:
    """The means after another gradient."""

    def moved(g: Any, mean: Any) -> Any:
        return decay * mean + (1 - decay) * (g if power is None else power(g))

    return on_gradients(moved, gradients, before)


def _real_zeros(params: Any) -> Any:
    return on_gradients(lambda zero: zero.real, zeros_like(params))


def trace(decay: float, nesterov: bool = False) -> Transformation:
    """Gradients with momentum.

    Parameters
    ----------
    decay : float
    nesterov : bool
        Whether to look ahead.

    Returns
    -------
    Transformation

    Notes
    -----
    I. Sutskever et al., "On the importance of initialization and momentum in deep learning", 2013.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> heavy = nb.optim.trace(0.5)
    >>> updates, state = heavy.update(np.ones(1), heavy.init(np.ones(1)))
    >>> heavy.update(np.ones(1), state)[0]
    array([1.5])
    """

    def update(gradients: Any, state: Trace, params: Any = None) -> tuple[Any, Trace]:
        after = on_gradients(lambda g, t: g + decay * t, gradients, state.trace)
        ahead = on_gradients(lambda g, t: g + decay * t, gradients, after) if nesterov else after
        return ahead, Trace(after)

    return Transformation(lambda params: Trace(zeros_like(params)), update)


def sgd(learning_rate: float | Schedule, momentum: float | None = None, nesterov: bool = False) -> Transformation:
    """Steps along the gradient, with momentum if it is given.

    Parameters
    ----------
    learning_rate : float or callable
    momentum : float, optional
        The decay of the sum of gradients.
    nesterov : bool

    Returns
    -------
    Transformation

    Notes
    -----
    I. Sutskever et al., "On the importance of initialization and momentum in deep learning", 2013.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> method = nb.optim.sgd(0.1)
    >>> x, state = np.array([1.0, 2.0]), method.init(np.zeros(2))
    >>> updates, state = method.update(2 * x, state)
    >>> nb.optim.apply_updates(x, updates)
    array([0.8, 1.6])
    """
    along = () if momentum is None else (trace(momentum, nesterov),)
    return chain(*along, scale_by_learning_rate(learning_rate))


def scale_by_adam(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, nesterov: bool = False) -> Transformation:
    """Means of gradients over roots of means of their squares.

    Parameters
    ----------
    b1, b2 : float
        Decays of the two means.
    eps : float
        Added to the root.
    nesterov : bool
        Whether to look ahead (T. Dozat, 2016).

    Returns
    -------
    Transformation

    Notes
    -----
    D. Kingma and J. Ba, "Adam: a method for stochastic optimization", 2015, algorithm 1.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> signs = nb.optim.scale_by_adam()
    >>> signs.update(np.array([0.1, -3.0]), signs.init(np.zeros(2)))[0].round(6)
    array([ 1., -1.])
    """

    def update(gradients: Any, state: Moments, params: Any = None) -> tuple[Any, Moments]:
        count = state.count + 1
        mu = _mean(b1, state.mu, gradients)
        nu = _mean(b2, state.nu, gradients, square)
        first, second = 1 - b1**count, 1 - b2**count

        def moved(g: Any, m: Any, v: Any) -> Any:
            if nesterov:
                m = b1 * m / like(1 - b1 ** (count + 1), m) + (1 - b1) * g / like(first, g)
            else:
                m = m / like(first, m)
            return m / (np.sqrt(v / like(second, v)) + eps)

        return on_gradients(moved, gradients, mu, nu), Moments(count, mu, nu)

    return Transformation(lambda params: Moments(first_count(), zeros_like(params), _real_zeros(params)), update)


def adam(
    learning_rate: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, nesterov: bool = False
) -> Transformation:
    """Adam.

    Parameters
    ----------
    learning_rate : float or callable
    b1, b2, eps, nesterov
        As for `scale_by_adam`.

    Returns
    -------
    Transformation

    Notes
    -----
    D. Kingma and J. Ba, "Adam: a method for stochastic optimization", 2015.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> method = nb.optim.adam(0.1)
    >>> slope = nb.grad(lambda x: np.sum((x - 3.0) ** 2))
    >>> def step(carry, _):
    ...     x, state = carry
    ...     updates, state = method.update(slope(x), state)
    ...     return (nb.optim.apply_updates(x, updates), state), None
    >>> x = np.zeros(2)
    >>> nb.scan(step, (x, method.init(x)), length=500)[0][0].round(3)
    array([3., 3.])
    """
    return chain(scale_by_adam(b1, b2, eps, nesterov), scale_by_learning_rate(learning_rate))


def adamw(
    learning_rate: float | Schedule,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 1e-4,
    nesterov: bool = False,
) -> Transformation:
    """Adam with decoupled weight decay; its `update` needs `params`.

    Parameters
    ----------
    learning_rate : float or callable
    b1, b2, eps, nesterov
        As for `scale_by_adam`.
    weight_decay : float

    Returns
    -------
    Transformation

    Raises
    ------
    ArgumentError
        By `update`, without `params`.

    Notes
    -----
    I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", 2019, algorithm 2.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> method = nb.optim.adamw(0.1, weight_decay=0.5)
    >>> x = np.array([2.0])
    >>> method.update(np.array([0.0]), method.init(x), x)[0]
    array([-0.1])
    """
    return chain(
        scale_by_adam(b1, b2, eps, nesterov), add_decayed_weights(weight_decay), scale_by_learning_rate(learning_rate)
    )


def rmsprop(
    learning_rate: float | Schedule,
    decay: float = 0.9,
    eps: float = 1e-8,
    centered: bool = False,
    momentum: float | None = None,
    nesterov: bool = False,
) -> Transformation:
    """Gradients over the root of the mean of their squares.

    Parameters
    ----------
    learning_rate : float or callable
    decay : float
        Of the mean.
    eps : float
        Added to the mean, under the root.
    centered : bool
        Whether to take the variance in place of the mean of the squares.
    momentum : float, optional
    nesterov : bool

    Returns
    -------
    Transformation

    Notes
    -----
    T. Tieleman and G. Hinton, lecture 6.5 of "Neural networks for machine learning", 2012; A. Graves, "Generating
    sequences with recurrent neural networks", 2013 (centred).

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> method = nb.optim.rmsprop(0.1, decay=0.75)
    >>> method.update(np.array([4.0]), method.init(np.zeros(1)))[0].round(6)
    array([-0.2])
    """

    def update(gradients: Any, state: Centered, params: Any = None) -> tuple[Any, Centered]:
        nu = _mean(decay, state.nu, gradients, square)
        mu = _mean(decay, state.mu, gradients) if centered else state.mu

        def moved(g: Any, v: Any, *mean: Any) -> Any:
            return g / np.sqrt(v - square(mean[0]) + eps if mean else v + eps)

        return on_gradients(moved, gradients, nu, *([mu] if centered else [])), Centered(mu, nu)

    def init(params: Any) -> Centered:
        return Centered(zeros_like(params) if centered else (), _real_zeros(params))

    along = () if momentum is None else (trace(momentum, nesterov),)
    return chain(Transformation(init, update), scale_by_learning_rate(learning_rate), *along)


def adagrad(
    learning_rate: float | Schedule, initial_accumulator_value: float = 0.1, eps: float = 1e-7
) -> Transformation:
    """Gradients over the root of the sum of their squares.

    Parameters
    ----------
    learning_rate : float or callable
    initial_accumulator_value : float
        The sum before the first gradient.
    eps : float
        Added to the sum, under the root.

    Returns
    -------
    Transformation

    Notes
    -----
    J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods for online learning and stochastic optimization",
    JMLR 12, 2011.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> method = nb.optim.adagrad(0.1, initial_accumulator_value=0.0)
    >>> method.update(np.array([4.0]), method.init(np.zeros(1)))[0].round(6)
    array([-0.1])
    """

    def update(gradients: Any, state: Squares, params: Any = None) -> tuple[Any, Squares]:
        sums = on_gradients(lambda g, s: square(g) + s, gradients, state.nu)

        def moved(g: Any, s: Any) -> Any:
            some = s > 0
            return np.where(some, g / np.sqrt(np.where(some, s + eps, np.ones_like(s))), np.zeros_like(g))

        return on_gradients(moved, gradients, sums), Squares(sums)

    def init(params: Any) -> Squares:
        return Squares(on_gradients(lambda zero: zero + initial_accumulator_value, _real_zeros(params)))

    return chain(Transformation(init, update), scale_by_learning_rate(learning_rate))


def lion(
    learning_rate: float | Schedule, b1: float = 0.9, b2: float = 0.99, weight_decay: float = 1e-3
) -> Transformation:
    """Signs of means of gradients, with weight decay; its `update` needs `params`.

    Parameters
    ----------
    learning_rate : float or callable
    b1, b2 : float
        Decays of the mean that gives the sign, and of the one that is kept.
    weight_decay : float

    Returns
    -------
    Transformation

    Raises
    ------
    ArgumentError
        By `update`, without `params`.

    Notes
    -----
    X. Chen et al., "Symbolic discovery of optimization algorithms", 2023, algorithm 2.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> method = nb.optim.lion(0.1, weight_decay=0.0)
    >>> method.update(np.array([4.0, -1.0]), method.init(np.zeros(2)), np.zeros(2))[0]
    array([-0.1,  0.1])
    """

    def update(gradients: Any, state: Mean, params: Any = None) -> tuple[Any, Mean]:
        signs = on_gradients(lambda g, m: np.sign((1 - b1) * g + b1 * m), gradients, state.mu)
        return signs, Mean(_mean(b2, state.mu, gradients))

    signs = Transformation(lambda params: Mean(zeros_like(params)), update)
    return chain(signs, add_decayed_weights(weight_decay), scale_by_learning_rate(learning_rate))
