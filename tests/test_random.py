"""Random numbers: known bits, reproducible streams, right distributions, gradients through what is drawn."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
import scipy.stats
from nbgrad.kernels.random import random_bits as kernel

import nbgrad as nb
from nbgrad import ops
from nbgrad.errors import ArgumentError, DtypeError, RangeError, ShapeError
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import constant, elementwise
from nbgrad.ops.draws import fraction
from nbgrad.runtime.evaluate import compute
from nbgrad.tensors.generator import Generator, get_seed, set_seed

from .test_primitives import philox

pytestmark = pytest.mark.unoptimized

UINT64 = np.dtype(np.uint64)
COUNT = 100_000
ALPHA = 1e-3
"""Seeds are fixed, so a test that passes once passes always."""


def array(value) -> np.ndarray:
    return np.asarray(value)


# ----- Bits -----

# Random123, kat_vectors: philox2x32 with 10 rounds; counter words, key, result words.
KNOWN = [
    ((0x00000000, 0x00000000), 0x00000000, (0xFF1DAE59, 0x6CD10DF2)),
    ((0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFF, (0x2C3F628B, 0xAB4FD7AD)),
    ((0x243F6A88, 0x85A308D3), 0x13198A2E, (0xDD7CE038, 0xF62A4C12)),
]


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN)
def test_known_answers(counter, key, result):
    counter, want = (np.uint64(words[0] + (words[1] << 32)) for words in (counter, result))
    assert philox(key, int(counter)) == want
    assert kernel(np.uint64(key), counter) == want
    node = elementwise("random_bits", *[constant(np.array([v], UINT64)) for v in (key, counter)])
    assert compute([node])[0][0] == interpret([node])[0][0] == want


def test_compiled_bits_are_those_of_the_definition():
    rng = np.random.default_rng(1)
    keys, counters = rng.integers(0, 2**64, (2, 500), dtype=np.uint64)
    node = elementwise("random_bits", constant(keys), constant(counters))
    want = np.array([philox(k, c) for k, c in zip(keys, counters, strict=True)], np.uint64)
    np.testing.assert_array_equal(compute([node])[0], want)
    np.testing.assert_array_equal(interpret([node])[0], want)


def bits_of(seed: int, count: int, first: int = 0) -> np.ndarray:
    return np.array([philox(seed, first + k) for k in range(count)], np.uint64)


def test_numbers_are_functions_of_the_bits():
    bits = bits_of(9, 40)
    np.testing.assert_array_equal(array(ops.rand(40, seed=9)), (bits >> 40) / 2.0**24)
    np.testing.assert_array_equal(array(ops.rand(40, seed=9, dtype=nb.float64)), (bits >> 11) / 2.0**53)
    np.testing.assert_array_equal(array(ops.rand(40, seed=9, dtype=nb.float16)), (bits >> 53) / 2.0**11)
    np.testing.assert_array_equal(array(ops.randint(-3, 12, 40, seed=9)), (bits % 15).astype(int) - 3)
    np.testing.assert_array_equal(array(ops.randperm(40, seed=9)), np.argsort(bits))
    high, low = (bits >> 32).astype(float), ((bits & 0xFFFFFFFF) >> 8).astype(float)
    want = np.sqrt(-2 * np.log((high + 1) / 2**32)) * np.cos(2 * np.pi * low / 2**24)
    np.testing.assert_allclose(array(ops.randn(40, seed=9)), want, rtol=2e-6, atol=2e-6)
    first, second = bits_of(9, 80).reshape(40, 2).T
    radius = ((first >> 11) | 1) / 2.0**53
    want = np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * ((second >> 11) / 2.0**53))
    np.testing.assert_allclose(array(ops.randn(40, seed=9, dtype=nb.float64)), want, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_ends_of_the_range(dtype):
    ends = constant(np.array([0, 2**64 - 1], UINT64))
    low, high = compute([fraction(ends, np.dtype(dtype))])[0]
    assert low == 0 and high == 1 - np.finfo(dtype).epsneg
    low, high = compute([fraction(ends, np.dtype(dtype), inside=True)])[0]
    assert low == np.finfo(dtype).epsneg and high == 1 - np.finfo(dtype).epsneg


@pytest.mark.parametrize("function", [ops.rand, ops.randn, ops.randperm])
def test_shapes_and_dtypes(function):
    if function is ops.randperm:
        assert function(0).shape == (0,) and function(1).tolist() == [0]
        assert function(5, dtype=nb.int32).dtype == nb.int32
        return
    for size, shape in (
        ((), ()),
        ((3,), (3,)),
        (((2, 3),), (2, 3)),
        ((2, 0, 3), (2, 0, 3)),
        (((),), ()),
        (([2, 2],), (2, 2)),
    ):
        result = function(*size)
        assert (result.shape, result.dtype) == (shape, nb.float32)
        assert array(result).shape == shape
    for dtype in (nb.float16, nb.float32, nb.float64):
        assert function(4, dtype=dtype).dtype == dtype
    with pytest.raises(DtypeError, match="float dtype"):
        function(3, dtype=nb.int32)
    with pytest.raises(DtypeError, match="integers"):
        function(2.5)
    with pytest.raises(ShapeError, match="negative"):
        function(-1)


def test_likes():
    for given, dtype in ((np.ones((2, 3), np.float16), "float16"), (np.arange(4), "float32"), (np.ones(2), "float64")):
        for function in (ops.rand_like, ops.randn_like):
            result = function(nb.Tensor(given))
            assert (result.shape, result.dtype) == (given.shape, dtype)
    assert ops.rand_like(nb.Tensor([1.0]), dtype=nb.float64).dtype == nb.float64
    assert ops.randint_like(nb.Tensor([1.0, 2.0]), 0, 5).dtype == nb.int64
    assert ops.randint_like(nb.Tensor(np.zeros(3, np.int8)), 0, 5).dtype == nb.int8


# ----- Streams -----


def test_the_start_of_a_longer_draw_is_the_shorter_one():
    for function in (ops.rand, ops.randn):
        for dtype in (nb.float32, nb.float64):
            long = array(function(1000, seed=4, dtype=dtype))
            np.testing.assert_array_equal(array(function(10, seed=4, dtype=dtype)), long[:10])
            np.testing.assert_array_equal(array(function(20, 50, seed=4, dtype=dtype)).ravel(), long)


def test_successive_draws_are_one_stream():
    generator = Generator(3)
    parts = [array(ops.rand(n, generator=generator)) for n in (3, 0, 5, 1)]
    np.testing.assert_array_equal(np.concatenate(parts), array(ops.rand(9, seed=3)))
    assert generator.get_state().tolist() == [3, 9]
    ops.randn(4, dtype=nb.float64, generator=generator)
    assert generator.get_state().tolist() == [3, 17]


def test_states():
    generator = Generator(11)
    assert generator.initial_seed() == 11 and "11" in repr(generator)
    ops.rand(5, generator=generator)
    state = generator.get_state()
    first = array(ops.rand(6, generator=generator))
    assert state.tolist() == [11, 5]
    generator.set_state(state)
    np.testing.assert_array_equal(array(ops.rand(6, generator=generator)), first)
    other = Generator(0)
    other.set_state([11, 5])
    np.testing.assert_array_equal(array(ops.rand(6, generator=other)), first)
    assert generator.manual_seed(7) is generator
    np.testing.assert_array_equal(array(ops.rand(6, generator=generator)), array(ops.rand(6, seed=7)))
    assert generator.seed() == generator.initial_seed()
    assert Generator().initial_seed() != Generator().initial_seed()
    with pytest.raises(ShapeError, match="shape"):
        generator.set_state([1, 2, 3])
    with pytest.raises(DtypeError, match="integers"):
        generator.set_state([1.0, 2.0])


def test_the_default_generator():
    set_seed(5)
    assert get_seed() == 5
    first = array(ops.rand(4))
    second = array(ops.rand(4))
    assert not np.array_equal(first, second)
    set_seed(5)
    ops.rand(100, seed=1)
    np.testing.assert_array_equal(np.concatenate([array(ops.rand(4)), array(ops.rand(4))]), [*first, *second])


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_out_of_range(seed):
    for function in (Generator, set_seed, lambda seed: ops.rand(2, seed=seed), Generator(0).manual_seed):
        with pytest.raises(ArgumentError, match="between 0 and 4294967295"):
            function(seed)


def test_seeds_and_generators_are_checked():
    for seed in (1.0, "1", True):
        with pytest.raises(DtypeError, match="seed must be an integer"):
            ops.rand(2, seed=seed)
    with pytest.raises(ArgumentError, match="not both"):
        ops.rand(2, seed=1, generator=Generator(1))
    with pytest.raises(DtypeError, match="nbgrad Generator"):
        ops.rand(2, generator=np.random.default_rng())  # pyright: ignore[reportArgumentType]
    assert array(ops.rand(2, seed=np.int64(3))).shape == (2,)


def test_compiled_functions_draw_the_same_stream():
    generator = Generator(21)

    def draw(x):
        return x + ops.rand(3, generator=generator, dtype=nb.float64), ops.randn(2, generator=generator)

    compiled = nb.jit(draw)
    x = nb.Tensor(np.zeros(3))
    got = [[array(v) for v in compiled(x)] for _ in range(3)]
    state = generator.get_state().tolist()
    generator.manual_seed(21)
    want = [[array(v) for v in draw(x)] for _ in range(3)]
    assert state == generator.get_state().tolist() == [21, 15]
    for one, other in zip(got, want, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    assert not np.array_equal(got[0][0], got[1][0])
    # Plain and compiled draws take turns.
    generator.manual_seed(21)
    mixed = [array((compiled if k % 2 else draw)(x)[0]) for k in range(3)]
    for one, other in zip(mixed, want, strict=True):
        np.testing.assert_array_equal(one, other[0])


def test_compiled_functions_may_seed():
    generator = Generator(1)

    @nb.jit
    def draw(x):
        generator.manual_seed(8)
        return x * ops.rand(2, generator=generator)

    ones = nb.Tensor(np.ones(2, np.float32))
    np.testing.assert_array_equal(array(draw(ones)), array(draw(ones)))
    np.testing.assert_array_equal(array(draw(ones)), array(ops.rand(2, seed=8)))
    assert generator.get_state().tolist() == [8, 2]


def test_threads_do_not_change_the_numbers():
    before = nb.get_num_threads()
    try:
        drawn = []
        for count in (1, 2):
            nb.set_num_threads(count)
            drawn.append(array(ops.randn(300_000, seed=6)))
    finally:
        nb.set_num_threads(before)
    np.testing.assert_array_equal(*drawn)


def test_threads_never_draw_the_same():
    generator = Generator(2)
    found: list[np.ndarray] = []

    def work() -> None:
        for _ in range(20):
            found.append(array(ops.rand(50, generator=generator, dtype=nb.float64)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(np.unique(np.concatenate(found))) == 4 * 20 * 50
    assert generator.get_state().tolist() == [2, 4000]


def test_a_drawn_tensor_has_one_value():
    x = ops.randn(5)
    np.testing.assert_array_equal(array(x), array(x))
    np.testing.assert_array_equal(array(x - x), np.zeros(5))
    y = x * 2
    np.testing.assert_array_equal(array(y), 2 * array(x))


# ----- Distributions -----


def fits(sample: np.ndarray, distribution: object) -> None:
    """Kolmogorov and Smirnov's test."""
    assert scipy.stats.kstest(sample.astype(float), distribution.cdf).pvalue > ALPHA  # pyright: ignore


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", [0, 1])
def test_distributions(dtype, seed):
    kind = nb.float32 if dtype == "float32" else nb.float64
    fits(array(ops.rand(COUNT, seed=seed, dtype=kind)), scipy.stats.uniform())
    normal = array(ops.randn(COUNT, seed=seed, dtype=kind)).astype(float)
    fits(normal, scipy.stats.norm())
    # Four standard errors of the first four moments.
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(np.mean(normal**power) - mean) < 4 * np.sqrt(variance / COUNT)
    fits(array(ops.uniform(COUNT, -2.0, 5.0, seed=seed, dtype=kind)), scipy.stats.uniform(-2, 7))
    fits(array(ops.normal(COUNT, 3.0, 0.5, seed=seed, dtype=kind)), scipy.stats.norm(3, 0.5))
    fits(array(ops.laplace(COUNT, nb.Tensor(np.array(1.0, dtype)), 2.0, seed=seed)), scipy.stats.laplace(1, 2))


def test_half_precision_and_standard_laplace():
    fits(array(ops.standard_laplace(COUNT, seed=1)), scipy.stats.laplace())
    half = array(ops.randn(COUNT, seed=3, dtype=nb.float16)).astype(float)
    assert abs(half.mean()) < 0.02 and abs(half.std() - 1) < 0.02
    assert array(ops.standard_normal((2, 3), seed=1)).shape == (2, 3)


def even(counts: np.ndarray, expected: object = None) -> None:
    """Pearson's chi-square test."""
    assert scipy.stats.chisquare(counts, expected).pvalue > ALPHA


def test_bits_are_even_and_independent():
    words = np.concatenate([bits_compiled(seed, COUNT) for seed in (0, 12345)])
    bits = np.unpackbits(words.view(np.uint8)).reshape(len(words), 64).astype(float)
    counts = bits.sum(0)
    # The 64 counts are binomial: the sum of their squared deviations has 64 degrees of freedom.
    statistic = np.sum((counts - len(words) / 2) ** 2 / (len(words) / 4))
    assert scipy.stats.chi2.sf(statistic, 64) > ALPHA
    for byte in words.view(np.uint8).reshape(-1, 8).T:
        even(np.bincount(byte, minlength=256))
    correlation = np.corrcoef(bits.T) - np.eye(64)
    assert np.abs(correlation).max() < 5 / np.sqrt(len(words))


def bits_compiled(seed: int, count: int, first: int = 0) -> np.ndarray:
    key = constant(np.full(count, seed, UINT64))
    return compute([elementwise("random_bits", key, constant(np.arange(first, first + count, dtype=np.uint64)))])[0]


def test_streams_are_independent():
    streams = np.array([array(ops.randn(20_000, seed=seed)) for seed in (0, 1, 2, 3, 2**31)], float)
    correlation = np.corrcoef(streams) - np.eye(5)
    assert np.abs(correlation).max() < 4 / np.sqrt(20_000)
    for lag in (1, 2, 3, 64):
        (one,) = np.corrcoef(streams[0, lag:], streams[0, :-lag])[:1, 1]
        assert abs(one) < 4 / np.sqrt(20_000)
    # Pairs of neighbours fill the square evenly.
    pairs = array(ops.rand(COUNT, 2, seed=8))
    even(np.histogram2d(*pairs.T, bins=16, range=[[0, 1], [0, 1]])[0].ravel())


def test_integers():
    for low, high, dtype in ((0, 10, nb.int64), (-5, 2, nb.int8), (3, 4, nb.int32), (250, 256, nb.uint8)):
        drawn = array(ops.randint(low, high, (COUNT,), seed=1, dtype=dtype))
        assert drawn.dtype == dtype and drawn.min() == low and drawn.max() == high - 1
        if high - low > 1:
            even(np.bincount(drawn.astype(int) - low, minlength=high - low))
    wide = array(ops.randint(-(2**63), 2**63, (COUNT,), seed=2))
    even(np.histogram(wide.astype(float), 16, (-(2.0**63), 2.0**63))[0])
    np.testing.assert_array_equal(
        array(ops.uniform((50,), 2, 9, seed=3, dtype=nb.int32)), array(ops.randint(2, 9, (50,), seed=3))
    )
    for low, high in ((3, 3), (4, 3), (0, 300)):
        with pytest.raises(ArgumentError, match="low < high"):
            ops.randint(low, high, (2,), dtype=nb.int8)
    with pytest.raises(DtypeError, match="integer dtype"):
        ops.randint(0, 3, (2,), dtype=nb.float32)
    with pytest.raises(DtypeError, match="low"):
        ops.randint(0.5, 3, (2,))  # pyright: ignore[reportArgumentType]


def test_permutations_are_all_equally_likely():
    generator = Generator(0)
    orders = {order: position for position, order in enumerate(itertools.permutations(range(4)))}
    counts = np.zeros(24)
    for _ in range(2400):
        counts[orders[tuple(ops.randperm(4, generator=generator).tolist())]] += 1
    even(counts)
    np.testing.assert_array_equal(np.sort(array(ops.randperm(5000, seed=1))), np.arange(5000))
    with pytest.raises(ArgumentError, match="at least 0"):
        ops.randperm(-1)


def test_shuffle():
    x = np.arange(12.0).reshape(6, 2)
    got = array(ops.shuffle(nb.Tensor(x), seed=3))
    np.testing.assert_array_equal(got, x[array(ops.randperm(6, seed=3))])
    weights = np.random.default_rng(0).normal(size=(6, 2))
    g = nb.grad(lambda v: np.sum(ops.shuffle(v, seed=3) * weights))(x)
    np.testing.assert_array_equal(g[array(ops.randperm(6, seed=3))], weights)
    assert float(ops.shuffle(nb.Tensor(3.0))) == 3.0


def test_bernoulli():
    drawn = array(ops.bernoulli(nb.Tensor(np.zeros(COUNT)), 0.3, seed=2))
    assert drawn.dtype == np.float64 and set(drawn) == {0.0, 1.0}
    assert abs(drawn.mean() - 0.3) < 4 * np.sqrt(0.21 / COUNT)
    p = np.array([[0.0], [1.0], [0.5]])
    drawn = array(ops.bernoulli(nb.Tensor(np.zeros((3, 1000), np.int32)), nb.Tensor(p), seed=1))
    assert drawn.dtype == np.int32
    np.testing.assert_array_equal(drawn[:2].mean(1), [0, 1])
    assert 0.4 < drawn[2].mean() < 0.6
    for bad in (-0.1, 1.5):
        with pytest.raises(ArgumentError, match="between 0 and 1"):
            ops.bernoulli(nb.Tensor([1.0]), bad)
        with pytest.raises(RangeError, match="between 0 and 1"):
            ops.bernoulli(nb.Tensor([1.0]), nb.Tensor([bad]))
    with pytest.raises(ShapeError, match="broadcast"):
        ops.bernoulli(nb.Tensor([1.0]), nb.Tensor([0.1, 0.2]))


# ----- Choices -----

WEIGHTS = np.array([0.0, 2.0, 1.0, 0.0, 4.0, 3.0, 0.0])


def test_multinomial_with_replacement():
    found = []
    for seed in range(100):
        drawn = array(ops.multinomial(nb.Tensor(WEIGHTS), 2000, seed=seed))
        assert drawn.dtype == np.int32 and drawn.shape == (2000,)
        counts = np.bincount(drawn, minlength=7)
        assert np.all(counts[WEIGHTS == 0] == 0)
        found.append(scipy.stats.chisquare(counts[WEIGHTS > 0], 200 * WEIGHTS[WEIGHTS > 0]).pvalue)
    # Over many seeds, the levels at which the test would fail are themselves uniform.
    fits(np.array(found), scipy.stats.uniform())
    rows = np.stack([WEIGHTS, WEIGHTS[::-1], np.eye(7)[3]])
    drawn = array(ops.multinomial(nb.Tensor(rows.astype(np.float32)), 2000, seed=2))
    assert drawn.shape == (3, 2000) and np.all(drawn[2] == 3)
    even(np.bincount(drawn[1], minlength=7)[WEIGHTS[::-1] > 0], 200 * WEIGHTS[::-1][WEIGHTS[::-1] > 0])
    for n in (1, 2, 3, 4, 5, 8, 9):
        seen = array(ops.multinomial(nb.Tensor(np.ones(n)), 1000, seed=n))
        np.testing.assert_array_equal(np.unique(seen), np.arange(n))


def test_multinomial_without_replacement():
    generator = Generator(4)
    weights = np.tile([1.0, 2.0, 3.0], (6000, 1))
    drawn = array(ops.multinomial(nb.Tensor(weights), 2, replacement=False, generator=generator))
    assert np.all(drawn[:, 0] != drawn[:, 1])
    pairs = list(itertools.permutations(range(3), 2))
    counts = [np.sum((drawn == pair).all(1)) for pair in pairs]
    p = np.array([1, 2, 3]) / 6
    even(np.array(counts), [6000 * p[i] * p[j] / (1 - p[i]) for i, j in pairs])
    everything = array(ops.multinomial(nb.Tensor(WEIGHTS), 4, replacement=False))
    assert sorted(everything) == [1, 2, 4, 5]
    with pytest.raises(RangeError, match="at least 5 positions"):
        ops.multinomial(nb.Tensor(WEIGHTS), 5, replacement=False)
    with pytest.raises(ArgumentError, match="8 samples without"):
        ops.multinomial(nb.Tensor(WEIGHTS), 8, replacement=False)


def test_multinomial_refuses():
    for weights in ([-1.0, 2.0], [np.inf, 1.0], [np.nan, 1.0], [0.0, 0.0]):
        with pytest.raises(RangeError, match="weight"):
            ops.multinomial(nb.Tensor(weights), 1)
    with pytest.raises(ArgumentError, match="0 samples"):
        ops.multinomial(nb.Tensor([1.0]), 0)
    for shape in ((), (0,), (2, 2, 2)):
        with pytest.raises(ShapeError, match="weights of shape"):
            ops.multinomial(nb.Tensor(np.ones(shape)), 1)


def test_gumbel_softmax():
    logits = np.log(np.array([1.0, 2.0, 3.0, 4.0]))
    many = np.tile(logits, (COUNT // 10, 1))
    hard = array(ops.gumbel_softmax(nb.Tensor(many), hard=True, seed=1))
    np.testing.assert_allclose(hard.sum(1), 1, rtol=1e-14)
    np.testing.assert_allclose(np.sort(hard, 1), np.tile([0, 0, 0, 1], (COUNT // 10, 1)), atol=1e-15)
    even(hard.sum(0).round(), np.arange(1, 5) * COUNT / 100)
    soft = array(ops.gumbel_softmax(nb.Tensor(many), 0.5, seed=1))
    np.testing.assert_array_equal(soft.argmax(1), hard.argmax(1))
    weights = np.random.default_rng(0).normal(size=(3, 4))
    for tau in (1.0, 0.3):
        nb.check_grads(lambda x, t=tau: np.sum(ops.gumbel_softmax(x, t, seed=5, dim=0) * weights), (many[:3],), order=2)
    gradients = [
        nb.grad(lambda x, h=h: np.sum(ops.gumbel_softmax(x, 0.7, h, seed=5) * weights))(many[:3]) for h in (False, True)
    ]
    np.testing.assert_allclose(*gradients, rtol=1e-12)
    assert ops.gumbel_softmax(nb.Tensor(many[:2].astype(np.float16))).dtype == nb.float16
    with pytest.raises(ArgumentError, match="tau"):
        ops.gumbel_softmax(nb.Tensor(logits), 0.0)


# ----- Dropout and gradients -----


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout(p):
    x = np.random.default_rng(0).normal(size=COUNT) + 5
    out = array(ops.dropout(nb.Tensor(x), p, seed=1))
    dropped = out == 0
    assert abs(dropped.mean() - p) < 4 * np.sqrt(p * (1 - p) / COUNT)
    np.testing.assert_allclose(out[~dropped], x[~dropped] / (1 - p), rtol=1e-15)
    generator = Generator(1)
    value, g = nb.value_and_grad(lambda v: np.sum(ops.dropout(v, p, generator=generator)))(x)
    np.testing.assert_allclose(g, np.where(dropped, 0, 1 / (1 - p)), rtol=1e-15)
    assert value == pytest.approx(out.sum())


def test_dropout_at_the_ends():
    x = np.array([1.0, -2.0, np.inf, np.nan])
    set_seed(0)
    for options in ({"p": 0.0}, {"p": 0.5, "training": False}):
        np.testing.assert_array_equal(array(ops.dropout(nb.Tensor(x), **options)), x)
    np.testing.assert_array_equal(array(ops.rand(2)), array(ops.rand(2, seed=0)))
    np.testing.assert_array_equal(array(ops.dropout(nb.Tensor(x), p=1)), np.zeros(4))
    np.testing.assert_array_equal(nb.grad(lambda v: np.sum(ops.dropout(v, p=1.0)))(x), np.zeros(4))
    for p in (-0.1, 1.1, np.nan):
        with pytest.raises(ArgumentError, match="between 0 and 1"):
            ops.dropout(nb.Tensor(x), p)
    with pytest.raises(DtypeError, match="must be a number"):
        ops.dropout(nb.Tensor(x), "0.5")  # pyright: ignore[reportArgumentType]
    for dtype in (np.float16, np.float32):
        assert ops.dropout(nb.Tensor(np.ones(3, dtype))).dtype == dtype
    assert ops.dropout(nb.Tensor(np.ones((0, 3)))).shape == (0, 3)


def test_dropout_in_compiled_training():
    """Masks differ from call to call, and forward and backward share one."""
    generator = Generator(9)
    x = np.ones(1000)

    @nb.jit
    def step(x):
        return nb.value_and_grad(lambda v: np.sum(ops.dropout(v * v, 0.5, generator=generator)))(x)

    results = [step(x) for _ in range(2)]
    for value, g in results:
        assert float(value) == pytest.approx(float(np.sum(array(g))) / 2)
    assert not np.array_equal(array(results[0][1]), array(results[1][1]))
    assert generator.get_state().tolist() == [9, 2000]


def test_dropout_of_channels():
    for function, axes in ((ops.dropout1d, 1), (ops.dropout2d, 2), (ops.dropout3d, 3)):
        out = array(function(nb.Tensor(np.ones((40, 5, *[2] * axes))), 0.5)).reshape(200, -1)
        assert np.all(out == out[:, :1]) and set(np.unique(out)) == {0.0, 2.0}
        assert array(function(nb.Tensor(np.ones((5, *[2] * axes))), 0.0)).min() == 1
        with pytest.raises(ShapeError, match="axes"):
            function(nb.Tensor(np.ones(3)))


def test_gradients_of_parameters():
    noise = array(ops.randn(6, seed=2, dtype=nb.float64))
    mean, stddev = np.array(0.5), np.arange(1.0, 7.0)
    g = nb.grad(lambda m, s: np.sum(ops.normal((6,), m, s, seed=2)), (0, 1))(mean, stddev)
    np.testing.assert_allclose(g[0], 6)
    np.testing.assert_allclose(g[1], noise, rtol=1e-14)
    nb.check_grads(lambda m, s: np.sum(np.sin(ops.normal((6,), m, s, seed=2))), (mean, stddev), order=2)
    nb.check_grads(lambda a, b: np.sum(np.sin(ops.uniform((4, 6), a, b, seed=2))), (mean, stddev), order=2)
    nb.check_grads(lambda m, s: np.sum(np.sin(ops.laplace((6,), m, s, seed=2))), (mean, stddev), order=2)
    jacobian = nb.jacrev(lambda s: ops.normal((6,), 0.0, s, seed=2))(stddev)
    np.testing.assert_allclose(jacobian, np.diag(noise), rtol=1e-14)


def test_parameters_broadcast_and_promote():
    assert ops.normal((3, 1), nb.Tensor([1.0, 2.0]), 1.0).shape == (3, 2)
    assert ops.normal((2,), 0.0, 1.0).dtype == nb.float32
    assert ops.normal((2,), nb.Tensor(np.zeros(2)), 1.0).dtype == nb.float64
    assert ops.uniform((2,), 0.0, 1.0, dtype=nb.float16).dtype == nb.float16
    assert ops.uniform((2,), nb.Tensor(0), nb.Tensor(3)).dtype == nb.float32
    with pytest.raises(ShapeError):
        ops.normal((3,), nb.Tensor([1.0, 2.0]), 1.0)


def test_reparameterised_gradient_has_the_right_mean():
    """E[(m + s z)^2] = m^2 + s^2, whose derivatives are 2 m and 2 s; tolerance of four standard errors."""
    m, s = np.array(1.5), np.array(0.7)
    g = nb.grad(lambda m, s: np.mean(ops.normal((COUNT,), m, s, seed=3) ** 2), (0, 1))(m, s)
    assert abs(g[0] - 3.0) < 4 * 2 * 0.7 / np.sqrt(COUNT)
    assert abs(g[1] - 1.4) < 4 * np.sqrt(8 * 0.7**2 + 4 * 1.5**2) / np.sqrt(COUNT)


def test_gamma_and_poisson_numbers_of_recorded_parameters() -> None:
    """Each call of a compiled function draws anew; the mean's slope by alpha is 1, that of a scaled mean -a / b**2."""
    nb.set_seed(4)
    draw = nb.jit(lambda a: nb.ops.random_gamma((20000,), a))
    first, second = draw(nb.Tensor([2.0, 5.0])), draw(nb.Tensor([2.0, 5.0]))
    assert first.shape == (20000, 2)
    assert not np.array_equal(first.asnumpy(), second.asnumpy())
    np.testing.assert_allclose(first.asnumpy().mean(axis=0), [2.0, 5.0], rtol=0.03)
    np.testing.assert_allclose(first.asnumpy().var(axis=0), [2.0, 5.0], rtol=0.06)
    slope = nb.grad(lambda a: nb.ops.random_gamma((20000,), a).mean())(nb.Tensor(2.0))
    assert abs(float(slope.asnumpy()) - 1.0) < 0.03
    slope = nb.grad(lambda b: nb.ops.gamma((20000,), nb.Tensor(3.0), b).mean())(nb.Tensor(2.0))
    assert abs(float(slope.asnumpy()) + 0.75) < 0.03
    counts = nb.jit(lambda rate: nb.ops.random_poisson((20000,), rate))(nb.Tensor([0.5, 40.0])).asnumpy()
    assert (counts == np.floor(counts)).all()
    np.testing.assert_allclose(counts.mean(axis=0), [0.5, 40.0], rtol=0.05)
    fixed = nb.jit(lambda a: nb.ops.random_gamma((3,), a, seed=7))
    assert fixed(nb.Tensor(2.0)).tolist() == fixed(nb.Tensor(2.0)).tolist()
