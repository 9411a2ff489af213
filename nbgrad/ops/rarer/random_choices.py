"""Random numbers of further distributions, and random choices.

In: parameters as array-likes, and seeds. Out: Tensors. Called by users; class_table.py names some of
them. Numbers are drawn when the function is called, from NumPy's generators, which take their seed from nbgrad's. Only
gamma numbers differentiate: in recorded functions they, and Poisson's, are made by the inverse of their distribution
function.
"""

from __future__ import annotations

from typing import Any

import numpy
from scipy import special as scipy_special

from ...errors import ArgumentError, DtypeError
from ...graph.trace import current_trace
from ...process.modes import KEEPS
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import integer, integers, real_dtype
from ...record.tensor import Tensor
from ...tensors.generator import Generator
from ...transforms.custom import stop_gradient
from ..choices import multinomial
from ..docstrings import documented
from ..draws import draw_bits, fraction, source_of
from ..random_tensors import rand, randint, randn, shuffle, uniform
from .special_values import value_of

np: Any = numpy
special: Any = scipy_special
"""NumPy and SciPy, whose functions take Tensors, which their types do not know."""


def _source(seed: Any) -> numpy.random.Generator:
    """A generator of NumPy; with 0 or None as the seed, another one at each call."""
    number = None if seed is None else integer(np.asarray(seed).reshape(()).item(), "seed")
    return np.random.default_rng(number or int(randint(0, 2**31 - 1, ())))


def _is_recorded(*parameters: Any) -> bool:
    """Whether draws must be part of a recording, or of what a leaf is remembered for."""
    return current_trace() is not None or any(as_node(one).traced & KEEPS for one in parameters)


def _by_inverse(inverse: Any, shape: Any, seed: Any, *parameters: Any) -> Tensor:
    """Draws as a function of uniform numbers and of parameters, in float64."""
    source = source_of(integer(seed, "seed") if seed else None, None)
    wide = [value_of(one).astype(np.float64) for one in parameters]
    extents = (*_shape(shape), *np.broadcast_shapes(*[one.shape for one in wide]))
    return inverse(wrap(fraction(draw_bits(source, extents)[0], np.dtype(np.float64), inside=True)), *wide)


def _gamma_number(u: Any, alpha: Any) -> Any:
    return special.gammaincinv(alpha, u)


def _poisson_number(u: Any, mean: Any) -> Any:
    above = np.ceil(special.pdtrik(u, mean))
    below = np.maximum(above - 1.0, 0.0)
    return np.where(special.pdtr(below, mean) >= u, below, above)


def _known(value: Any) -> numpy.ndarray:
    return np.asarray(value_of(value))


def _shape(shape: Any) -> tuple[int, ...]:
    return tuple(integers(np.asarray(shape).tolist() if not isinstance(shape, int | tuple | list) else shape, "shape"))


@documented
def random_gamma(shape: Any, alpha: Any, seed: int | None = None) -> Tensor:
    """Random numbers with density proportional to `x ** (alpha - 1) * exp(-x)`.

    shape : int, tuple of int or Tensor
        Of the numbers for each element of alpha, whose axes come last.
    alpha : Tensor, ndarray or number
    """
    if _is_recorded(alpha):
        like = value_of(alpha)
        found = _by_inverse(_gamma_number, shape, seed, like)
        return found.astype(like.dtype if like.dtype.kind == "f" else np.float32)
    rate = _known(alpha)
    found = _source(seed).gamma(rate, size=(*_shape(shape), *rate.shape))
    return Tensor(found.astype(rate.dtype if rate.dtype.kind == "f" else np.float32))


@documented
def gamma(shape: Any, alpha: Any, beta: Any, seed: int | None = None) -> Tensor:
    """Random numbers with density proportional to `x ** (alpha - 1) * exp(-beta * x)`.

    shape : int or tuple of int
        Of the numbers for each element of the parameters, whose axes come last.
    alpha, beta : Tensor, ndarray or number
        They broadcast.
    """
    if _is_recorded(alpha, beta):
        found = _by_inverse(lambda u, a, b: _gamma_number(u, a) / b, shape, seed, alpha, beta)
        return found.astype(np.float32)
    first, second = np.broadcast_arrays(_known(alpha), _known(beta))
    found = _source(seed).gamma(first, size=(*_shape(shape), *first.shape)) / second
    return Tensor(found.astype(np.float32))


@documented
def random_poisson(shape: Any, rate: Any, seed: int | None = None, dtype: Any = "float32") -> Tensor:
    """Random counts with given means.

    shape : int, tuple of int or Tensor
        Of the counts for each element of rate, whose axes come last.
    rate : Tensor, ndarray or number
    dtype : dtype
    """
    if _is_recorded(rate):
        found = _by_inverse(_poisson_number, shape, seed, stop_gradient(value_of(rate)))
        return found.astype(np.dtype(real_dtype(dtype)))
    mean = _known(rate)
    found = _source(seed).poisson(mean, size=(*_shape(shape), *mean.shape))
    return Tensor(found.astype(np.dtype(real_dtype(dtype))))


def poisson_counts(shape: Any, rate: Any, seed: int, seed2: int, dtype: Any) -> Tensor:
    """`random_poisson` by the options of its class form."""
    return random_poisson(shape, rate, seed + seed2, dtype)


def gamma_numbers(shape: Any, alpha: Any, seed: int, seed2: int) -> Tensor:
    """`random_gamma` by the options of its class form."""
    return random_gamma(shape, alpha, seed + seed2)


def laplace_numbers(shape: Any, seed: int, seed2: int) -> Tensor:
    """Random numbers with density exp(-|x|) / 2."""
    return Tensor(_source(seed + seed2).laplace(size=_shape(shape)).astype(np.float32))


def integers_drawn(minval: int, maxval: int | None = None, shape: Any = None, dtype: Any = "int32") -> Tensor:
    """Random integers from minval to maxval - 1, or below minval; of one element without a shape."""
    low, high = (0, minval) if maxval is None else (minval, maxval)
    return randint(low, high, (1,) if shape is None else shape, dtype=dtype)


def order(n: Any, seed: int, offset: int, dtype: Any) -> Tensor:
    """The integers below n in random order."""
    count = integer(int(_known(n)), "n")
    return Tensor(_source(seed + offset).permutation(count).astype(np.dtype(real_dtype(dtype))))


def order_with_rest(n: Any, max_length: int, pad: int, dtype: Any) -> Tensor:
    """The integers below n in random order, and a number for the rest of `max_length` elements."""
    drawn = _source(None).permutation(integer(int(_known(n).reshape(())), "n"))
    if drawn.size > max_length:
        message = f"Randperm has max_length={max_length}, but was asked for {drawn.size} elements."
        raise ArgumentError(message)
    found = np.full(max_length, pad)
    found[: drawn.size] = drawn
    return Tensor(found.astype(np.dtype(real_dtype(dtype))))


def shuffled(x: Any, seed: int, seed2: int) -> Tensor:
    """Slices along the first axis in random order."""
    return shuffle(x, (seed + seed2) or None)


@documented
def random_categorical(logits: Any, num_sample: Any, seed: Any = 0, dtype: Any = "int64") -> Tensor:
    """Random classes, as likely as the softmax of the logits says.

    logits : Tensor or ndarray, shape (batch, classes)
    num_sample : int
        The number of classes to draw for each row.
    seed : int
    dtype : dtype
    """
    rows = _known(logits).astype(np.float64)
    noise = _source(seed).gumbel(size=(rows.shape[0], integer(num_sample, "num_sample"), rows.shape[1]))
    return Tensor((rows[:, None] + noise).argmax(axis=-1).astype(np.dtype(real_dtype(dtype))))


def classes_drawn(logits: Any, num_sample: Any, seed: Any, dtype: Any) -> Tensor:
    """`random_categorical` by the options of its class form."""
    return random_categorical(logits, num_sample, seed, dtype)


@documented
def multinomial_with_replacement(x: Any, seed: Any, offset: Any, numsamples: int, replacement: bool = False) -> Tensor:
    """Random positions, as likely as the weights of each row.

    x : Tensor or ndarray, shape (classes,) or (batch, classes)
    seed, offset : int or Tensor
        Together the seed.
    numsamples : int
    replacement : bool
        Whether a position may be drawn again.
    """
    weights = _known(x).astype(np.float64)
    source = _source(int(_known(seed)) + int(_known(offset)))
    rows = [
        source.choice(row.size, integer(numsamples, "numsamples"), replacement, row / row.sum())
        for row in np.atleast_2d(weights)
    ]
    return Tensor(np.array(rows, np.int64).reshape((*weights.shape[:-1], -1)))


@documented
def choice_with_mask(input_x: Any, count: int = 256, seed: int | None = None) -> tuple[Tensor, Tensor]:
    """Random positions where an array is true, and which rows of the result hold one.

    input_x : Tensor or ndarray of bool
    count : int
        The number of rows of the result.
    -> positions : Tensor of int32, shape (count, ndim)
    -> mask : Tensor of bool, shape (count,)
    DtypeError : If the array is not boolean.
    """
    array = _known(input_x)
    if array.dtype != bool:
        message = f"choice_with_mask needs an array of bool, but its dtype is {array.dtype}."
        raise DtypeError(message)
    places = np.argwhere(array)
    number = integer(count, "count")
    chosen = places[_source(seed).permutation(len(places))[:number]]
    found = np.zeros((number, array.ndim), np.int32)
    found[: len(chosen)] = chosen
    return Tensor(found), Tensor(np.arange(number) < len(chosen))


def places_drawn(input_x: Any, count: int, seed: int, seed2: int) -> tuple[Tensor, Tensor]:
    """`choice_with_mask` by the options of its class form."""
    return choice_with_mask(input_x, count, seed + seed2)


@documented
def uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int = 0,
    remove_accidental_hits: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Random classes from 0 to `range_max - 1`, and how often true and drawn classes are to be expected.

    true_classes : Tensor or ndarray of int, shape (batch, num_true)
    num_true, num_sampled, range_max : int
    unique : bool
        Whether a class is drawn at most once.
    seed : int
    remove_accidental_hits : bool
        Whether true classes are not drawn.
    -> sampled : Tensor, shape (num_sampled,)
    -> true_expected : Tensor, shape of true_classes
    -> sampled_expected : Tensor, shape (num_sampled,)
    ArgumentError : If there are not enough classes.
    """
    del num_true
    true = _known(true_classes)
    allowed = np.arange(range_max)
    if remove_accidental_hits:
        allowed = np.setdiff1d(allowed, true)
    if unique and num_sampled > allowed.size:
        message = f"There are only {allowed.size} classes to draw {num_sampled} different ones from."
        raise ArgumentError(message)
    drawn = _source(seed).choice(allowed, num_sampled, not unique).astype(true.dtype)
    expected = np.float32(num_sampled / range_max)
    return Tensor(drawn), Tensor(np.full(true.shape, expected)), Tensor(np.full(drawn.shape, expected))


def candidates_drawn(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int,
    remove_accidental_hits: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """`uniform_candidate_sampler` by the options of its class form."""
    return uniform_candidate_sampler(
        true_classes, num_true, num_sampled, unique, range_max, seed, remove_accidental_hits
    )


@documented
def uniform_(input: Any, from_: Any = 0, to: Any = 1, *, generator: Generator | None = None) -> Tensor:
    """Write uniform random numbers between two bounds to a Tensor, which is given back.

    input : Tensor
    from_, to : number
    """
    input[...] = uniform(input.shape, from_, to, generator=generator).astype(input.dtype)
    return input


@documented
def random_(input: Any, from_: int = 0, to: int | None = None, *, generator: Generator | None = None) -> Tensor:
    """Write random integers to a Tensor, which is given back.

    input : Tensor
    from_, to : int
        The least one, and the one after the greatest, which is the greatest of the dtype by default.
    """
    kind = np.dtype(input.dtype.name)
    most = np.iinfo(kind).max if kind.kind in "iu" else 2 ** (np.finfo(kind).nmant + 1)
    input[...] = randint(from_, int(most) if to is None else to, input.shape, generator=generator).astype(input.dtype)
    return input


def likely(x: Any, p: Any, seed: int, offset: int) -> Tensor:
    """1 with a probability, else 0, in the shape and dtype of x."""
    array = value_of(x)
    chances = np.broadcast_to(_known(p), array.shape)
    drawn = _source(None if seed == -1 else seed + offset).random(array.shape) < chances
    return Tensor(drawn.astype(np.dtype(array.dtype.name)))


def drawn_classes(x: Any, num_samples: Any, seed: int, seed2: int, dtype: Any) -> Tensor:
    """`multinomial` by the options of its class form."""
    number = seed + seed2 or None
    return multinomial(x, int(_known(num_samples)), True, number).astype(real_dtype(dtype))


def cauchy_numbers(size: Any, median: float, sigma: float) -> Tensor:
    """Random numbers with density proportional to `1 / (1 + ((x - median) / sigma) ** 2)`."""
    return Tensor((_source(None).standard_cauchy(_shape(size)) * sigma + median).astype(np.float32))


def lognormal_numbers(x: Any, mean: float, std: float) -> Tensor:
    """Random numbers whose logarithms are normal, in the shape and dtype of an array."""
    array = value_of(x)
    return Tensor(_source(None).lognormal(mean, std, array.shape).astype(np.dtype(array.dtype.name)))


@documented
def log_uniform_candidate_sampler(
    true_classes: Any, num_true: int = 1, num_sampled: int = 5, unique: bool = True, range_max: int = 5, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Random classes, low numbers more often, and how often true and drawn classes are to be expected.

    true_classes : Tensor or ndarray of int, shape (batch, num_true)
    num_true, num_sampled, range_max : int
    unique : bool
        Whether a class is drawn at most once.
    seed : int
    -> tuple of three Tensors
        As of `uniform_candidate_sampler`.
    ArgumentError : If there are not enough classes.

    Notes
    -----
    Class k has the probability `log((k + 2) / (k + 1)) / log(range_max + 1)`.
    """
    del num_true
    true = _known(true_classes)
    if unique and num_sampled > range_max:
        message = f"There are only {range_max} classes to draw {num_sampled} different ones from."
        raise ArgumentError(message)
    source, drawn, turns = _source(seed), list[int](), 0
    while len(drawn) < num_sampled:
        turns += 1
        found = min(int(np.exp(source.random() * np.log(range_max + 1))) - 1, range_max - 1)
        if not unique or found not in drawn:
            drawn.append(found)

    def expected(classes: numpy.ndarray) -> Tensor:
        chance = np.log((classes + 2) / (classes + 1)) / np.log(range_max + 1)
        times = -np.expm1(turns * np.log1p(-chance)) if unique else chance * num_sampled
        return Tensor(times.astype(np.float32))

    classes = np.array(drawn, true.dtype)
    return Tensor(classes), expected(true), expected(classes)


def rank_candidates(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """`log_uniform_candidate_sampler` by the options of its class form."""
    return log_uniform_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, seed)


# ----- Numbers written to Tensors -----


@documented
def normal_(input: Any, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Write normal random numbers to a Tensor, which is given back.

    input : Tensor
    mean, std : float
    """
    input[...] = (randn(*input.shape, generator=generator) * std + mean).astype(input.dtype)
    return input


@documented
def exponential_(input: Any, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Write random numbers with density `lambd * exp(-lambd * x)` to a Tensor, which is given back.

    input : Tensor
    lambd : float
    """
    input[...] = (-np.log1p(-rand(*input.shape, generator=generator)) / lambd).astype(input.dtype)
    return input


@documented
def bernoulli_(input: Any, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Write 1 with a probability, else 0, to a Tensor, which is given back.

    input : Tensor
    p : float or Tensor
    """
    chances = np.broadcast_to(value_of(p), input.shape)
    input[...] = (rand(*input.shape, generator=generator) < chances).astype(input.dtype)
    return input


@documented
def cauchy(input: Any, median: float = 0.0, sigma: float = 1.0) -> Tensor:
    """Random numbers of Cauchy's distribution in the shape and dtype of a Tensor.

    input : Tensor
    median, sigma : float
    """
    return cauchy_numbers(input.shape, median, sigma).astype(input.dtype)


@documented
def log_normal(input: Any, mean: float = 1.0, std: float = 2.0) -> Tensor:
    """Random numbers whose logarithms are normal, in the shape and dtype of a Tensor.

    input : Tensor
    mean, std : float
    """
    return lognormal_numbers(input, mean, std)
