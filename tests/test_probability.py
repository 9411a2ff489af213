"""Distributions and bijections of `nn.probability`, beside SciPy's distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import scipy.integrate as integrate
import scipy.stats as stats

import nbgrad as nb
from nbgrad import Tensor, nn
from nbgrad.errors import ArgumentError, DtypeError, ShapeError
from nbgrad.nn.probability import bijector, distribution

pytestmark = pytest.mark.unoptimized

VALUES = np.array([-1.5, 0.0, 0.3, 0.9, 2.0, 3.7, 30.0])
COUNTS = np.array([-1.0, 0.0, 1.0, 5.0])
TWO = (0.4, 1.3)
ROWS: dict[str, tuple[tuple[float, ...], tuple[float, ...], Callable[..., Any]]] = {
    "Beta": ((2.5, 1.5), (1.2, 3.0), stats.beta),
    "Cauchy": (TWO, (-0.5, 2.0), stats.cauchy),
    "Exponential": ((1.7,), (0.6,), lambda rate: stats.expon(scale=1 / rate)),
    "Gamma": ((2.5, 1.5), (1.2, 3.0), lambda a, rate: stats.gamma(a, scale=1 / rate)),
    "Gumbel": (TWO, (-0.5, 2.0), stats.gumbel_r),
    "HalfNormal": (TWO, (), stats.halfnorm),
    "Laplace": (TWO, (-0.5, 2.0), stats.laplace),
    "Logistic": (TWO, (), stats.logistic),
    "LogNormal": (TWO, (-0.5, 2.0), lambda loc, scale: stats.lognorm(scale, scale=math.exp(loc))),
    "Normal": (TWO, (-0.5, 2.0), stats.norm),
    "StudentT": ((4.5, *TWO), (), stats.t),
    "Uniform": ((-1.0, 2.5), (-2.0, 4.0), lambda low, high: stats.uniform(low, high - low)),
    "Bernoulli": ((0.3,), (0.6,), stats.bernoulli),
    "Geometric": ((0.3,), (0.6,), lambda p: stats.geom(p, loc=-1)),
    "Poisson": ((2.5,), (1.2,), stats.poisson),
}
"""Name -> parameters, those of another one of its kind for `kl_loss`, and SciPy's distribution of parameters."""
OF_COUNTS = ("Bernoulli", "Geometric", "Poisson")
CONTINUOUS = [name for name in ROWS if name not in OF_COUNTS]
NAMES = {
    "cdf": "cdf",
    "log_cdf": "logcdf",
    "survival_function": "sf",
    "log_survival": "logsf",
}


def made(name: str, parameters: tuple[float, ...], **options: Any) -> Any:
    return getattr(distribution, name)(*parameters, **options)


def values_of(name: str) -> np.ndarray:
    return np.array([0.0, 1.0]) if name == "Bernoulli" else COUNTS if name in OF_COUNTS else VALUES


@pytest.mark.parametrize("name", ROWS)
def test_quantities_of_values_are_scipys(name: str) -> None:
    parameters, _, scipys = ROWS[name]
    one, other, x = made(name, parameters, dtype=nb.float64), scipys(*parameters), values_of(name)
    density = "pmf" if name in OF_COUNTS else "pdf"
    for quantity, theirs in {"prob": density, "log_prob": f"log{density}", **NAMES}.items():
        with np.errstate(divide="ignore"):
            expected = getattr(other, theirs)(x)
        found = one(quantity, Tensor(x))
        assert found.dtype == nb.float64
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-11, atol=1e-300, err_msg=quantity)
        narrow = getattr(made(name, parameters), quantity)(Tensor(x.astype(np.float32)))
        assert narrow.dtype == nb.float32
        np.testing.assert_allclose(np.asarray(narrow), expected, rtol=2e-4, atol=1e-6, err_msg=quantity)


@pytest.mark.parametrize("name", ROWS)
def test_moments_are_scipys(name: str) -> None:
    parameters, _, scipys = ROWS[name]
    one, other = made(name, parameters, dtype=nb.float64), scipys(*parameters)
    theirs = {"mean": "mean", "sd": "std", "var": "var", "entropy": "entropy"}
    lacking = {"Cauchy": ("mean", "sd", "var"), "Poisson": ("entropy",)}.get(name, ())
    for quantity, method in theirs.items():
        if quantity in lacking:
            with pytest.raises(ArgumentError, match=f"has no {quantity}"):
                one(quantity)
        else:
            assert float(one(quantity)) == pytest.approx(float(getattr(other, method)()), rel=1e-10), quantity


@pytest.mark.parametrize("name", [name for name in ROWS if name != "Uniform"])
def test_a_mode_is_where_the_density_is_largest(name: str) -> None:
    parameters, _, scipys = ROWS[name]
    mode = float(made(name, parameters).mode())
    density = scipys(*parameters).pmf if name in OF_COUNTS else scipys(*parameters).pdf
    for step in (1.0, 0.01) if name not in OF_COUNTS else (1.0,):
        assert density(mode) >= max(density(mode - step), density(mode + step))


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row[1]])
def test_divergences_are_integrals(name: str) -> None:
    first, second, scipys = ROWS[name]
    one, a, b = made(name, first, dtype=nb.float64), scipys(*first), scipys(*second)
    if name in OF_COUNTS:
        k = np.arange(2 if name == "Bernoulli" else 200)
        expected = np.sum(a.pmf(k) * (a.logpmf(k) - b.logpmf(k)))
    else:
        low, high = a.ppf(1e-15), a.isf(1e-15)
        inner = [float(a.ppf(q)) for q in (1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-6)]
        options = {"points": inner, "limit": 500}
        expected, _ = integrate.quad(lambda x: a.pdf(x) * (a.logpdf(x) - b.logpdf(x)), low, high, **options)
    found = float(one.kl_loss(name, *second))
    assert found == pytest.approx(expected, rel=1e-5)
    names = [f"{key}_b" for key in one.parameter_names]
    assert float(one("kl_loss", name, **dict(zip(names, second, strict=True)))) == pytest.approx(found, rel=1e-13)
    lone = getattr(distribution, name)(dtype=nb.float64)
    assert float(lone.kl_loss(name, *second, *first)) == pytest.approx(found, rel=1e-13)
    if name != "Poisson":
        assert float(one.cross_entropy(name, *second)) == pytest.approx(found + float(a.entropy()), rel=1e-12)
        both = float(lone.cross_entropy(name, *second, *first))
        assert both == pytest.approx(float(one.cross_entropy(name, *second)), rel=1e-13)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_the_derivative_of_cdf_is_the_density(name: str) -> None:
    parameters, _, scipys = ROWS[name]
    one, x = made(name, parameters, dtype=nb.float64), np.array([0.45, 0.7, 0.95])
    with np.errstate(divide="ignore"):
        expected = scipys(*parameters).pdf(x)
    np.testing.assert_allclose(nb.grad(lambda x: one.cdf(x).sum())(x), expected, rtol=1e-9)
    np.testing.assert_allclose(nb.jit(nb.grad(lambda x: -one.survival_function(x).sum()))(x), expected, rtol=1e-9)


@pytest.mark.parametrize("name", ROWS)
def test_derivatives_by_values_and_parameters(name: str) -> None:
    parameters, _, _ = ROWS[name]
    lone = getattr(distribution, name)(dtype=nb.float64)
    x = np.array([1.0, 0.0]) if name in OF_COUNTS else np.array([0.5, 0.8])
    given = [np.array(value) for value in parameters]
    nb.check_grads(lambda *p: lone.log_prob(x, *p), given, order=2)
    if name not in OF_COUNTS:
        nb.check_grads(lambda x: lone.log_prob(x, *given), (x,), order=2)


def test_no_derivative_is_nan_beside_the_support() -> None:
    for name in ("Beta", "Exponential", "Gamma", "HalfNormal", "LogNormal", "Uniform"):
        lone = getattr(distribution, name)(dtype=nb.float64)
        given = [np.array(value) for value in ROWS[name][0]]
        for quantity in ("prob", "cdf", "survival_function"):
            places = tuple(range(1 + len(given)))
            slopes = nb.grad(lambda x, *p, q=quantity, d=lone: d(q, x, *p).sum(), places)(np.array([-2.0, 0.5]), *given)
            assert all(np.isfinite(slope).all() for slope in slopes), (name, quantity)


# ----- Samples -----


@pytest.mark.parametrize("name", ROWS)
def test_samples_have_the_distribution(name: str) -> None:
    parameters, _, scipys = ROWS[name]
    one = made(name, parameters, seed=7)
    found = np.asarray(one.sample((5000,)), np.float64)
    if name in OF_COUNTS:
        kinds = np.arange(2 if name == "Bernoulli" else 7)
        share = scipys(*parameters).pmf(kinds)
        assert np.all(np.abs((found[:, None] == kinds).mean(0) - share) < 4.5 * np.sqrt(share * (1 - share) / 5000))
        assert one.sample((2,)).dtype == (nb.float32 if name == "Poisson" else nb.int32)
    else:
        assert stats.kstest(found, scipys(*parameters).cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", [name for name in CONTINUOUS if name != "Cauchy"])
def test_samples_differentiate_as_the_mean_does(name: str) -> None:
    """The derivative of the mean by each parameter is the mean of the samples' derivatives."""
    parameters, _, _ = ROWS[name]
    one = made(name, parameters, seed=3, dtype=nb.float64)
    given = [np.array(value) for value in parameters]
    count = 4000
    each = nb.vjp(lambda *p: one.sample((count,), *p), *given)[1]
    slopes = [float(slope) / count for slope in each(np.ones(count))]
    expected = nb.grad(lambda *p: one.mean(*p), tuple(range(len(given))))(*given)
    np.testing.assert_allclose(slopes, np.asarray(expected), rtol=0.15, atol=0.12)


def test_every_call_draws_anew_and_a_seed_repeats_them() -> None:
    one = distribution.Poisson([3.0], seed=5)
    draw = nb.jit(lambda rate: one.sample((50,), rate))
    first, second = np.asarray(draw(Tensor([3.0]))), np.asarray(draw(Tensor([3.0])))
    assert (first != second).any()
    again = distribution.Poisson([3.0], seed=5)
    assert (np.asarray(again.sample((50,))) == first).all()
    nb.set_seed(4)
    plain = distribution.Normal(0.0, 1.0).sample((3,))
    nb.set_seed(4)
    assert (plain == distribution.Normal(0.0, 1.0).sample((3,))).all()


# ----- Calls -----


def test_parameters_of_a_call_replace_those_of_the_distribution() -> None:
    normal = distribution.Normal(3.0, 4.0)
    mean, sd, x = Tensor([1.0]), Tensor([1.0, 1.5, 2.0]), Tensor([1.0, 2.0, 3.0])
    expected = stats.norm.pdf([1.0, 2.0, 3.0], 1.0, [1.0, 1.5, 2.0])
    for found in (
        normal.prob(x, mean, sd),
        normal("prob", x, sd=sd, mean=mean),
        distribution.Normal().prob(x, mean, sd),
    ):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)
    assert normal.mean(mean, sd).tolist() == [1.0, 1.0, 1.0]
    assert normal.sample((2, 3), mean, sd).shape == (2, 3, 3)
    assert normal.sample().shape == () and normal.sample(2).shape == (2,)
    assert [float(value) for value in normal.get_dist_args(sd=Tensor(5.0))] == [3.0, 5.0]
    assert normal("get_dist_type") == "Normal"
    assert repr(normal) == "Normal(mean = 3.0, sd = 4.0)"
    beta = distribution.Beta(dtype=nb.float64)
    by_name = beta.kl_loss("Beta", 1.2, 3.0, concentration1_a=2.5, concentration0_a=1.5)
    assert float(by_name) == pytest.approx(float(beta.kl_loss("Beta", 1.2, 3.0, 2.5, 1.5)), rel=1e-13)
    assert float(distribution.Bernoulli(0.5).mean(probs1=Tensor(0.25))) == 0.25


def test_shapes_of_distributions() -> None:
    normal = distribution.Normal([[0.0], [1.0]], [1.0, 2.0, 3.0])
    assert normal.batch_shape == normal.broadcast_shape == (2, 3) and not normal.is_scalar_batch
    assert repr(normal) == "Normal(batch_shape = (2, 3))"
    assert distribution.Normal().batch_shape is None
    classes = distribution.Categorical([[0.5, 0.5], [0.25, 0.75]])
    assert classes.batch_shape == (2, 2) and classes.broadcast_shape == (2,)


def test_classes() -> None:
    classes = distribution.Categorical([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]], dtype=nb.float64, seed=2)
    x = np.array([[0, 1], [2, 3], [-1, 0]])
    expected = np.array([[0.5, 0.1], [0.25, 0.0], [0.0, 0.1]])
    np.testing.assert_allclose(np.asarray(classes.prob(x)), expected, rtol=1e-14)
    assert classes.log_prob(x).tolist()[2][0] == -math.inf
    np.testing.assert_allclose(np.asarray(classes.cdf(x)), [[0.5, 0.2], [1.0, 1.0], [0.0, 0.1]], rtol=1e-14)
    np.testing.assert_allclose(np.asarray(classes.mean()), [[0.75], [1.7]], rtol=1e-14)
    np.testing.assert_allclose(np.asarray(classes.var()), [[0.6875], [0.41]], rtol=1e-14)
    np.testing.assert_allclose(
        np.asarray(classes.entropy()), [stats.entropy([0.5, 0.25, 0.25]), stats.entropy([0.1, 0.1, 0.8])], rtol=1e-14
    )
    found = classes.kl_loss("Categorical", Tensor([0.2, 0.2, 0.6]))
    assert float(found[0]) == pytest.approx(stats.entropy([0.5, 0.25, 0.25], [0.2, 0.2, 0.6]), rel=1e-6)
    assert classes.mode().tolist() == [0.0, 2.0]
    share = np.asarray(classes.sample((4000,)))
    assert share.shape == (4000, 2)
    assert np.mean(share == 2, 0) == pytest.approx([0.25, 0.8], abs=0.03)
    assert distribution.Categorical([0.5, 0.5]).log_prob(Tensor(1)).shape == ()
    one = distribution.Categorical(dtype=nb.float64)
    nb.check_grads(lambda p: one.log_prob(np.array([0, 2]), p), (np.array([0.5, 0.25, 0.25]),), order=2)


def test_parameters_train() -> None:
    """The likelihood of a normal distribution is largest at the mean and the standard deviation of the data."""

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            mean, sd = (nb.Parameter(Tensor([value]), name=name) for value, name in ((1.0, "mean"), (3.0, "sd")))
            self.normal = distribution.Normal(mean, sd)

        def construct(self, x: Any) -> Any:
            return -self.normal("log_prob", x).mean()

    net, data = Net(), np.random.default_rng(0).normal(3.0, 1.5, 200).astype(np.float32)
    assert len(net.trainable_params()) == 2
    step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 0.05)).set_train()
    for _ in range(400):
        step(Tensor(data))
    mean, sd = (parameter.asnumpy()[0] for parameter in net.trainable_params())
    assert (mean, sd) == pytest.approx((data.mean(), data.std()), rel=1e-3)


def test_distributions_of_recorded_parameters() -> None:
    def loss(mean: Any, log_sd: Any) -> Any:
        own = distribution.Normal(mean, np.exp(log_sd), dtype=nb.float64)
        return own.kl_loss("Normal", 0.0, 1.0).sum()

    mean, log_sd = np.array([0.5, -1.0]), np.array([0.1, -0.3])
    for slope in (nb.grad(loss, (0, 1)), nb.jit(nb.grad(loss, (0, 1)))):
        by_mean, by_log = slope(mean, log_sd)
        np.testing.assert_allclose(by_mean, mean, rtol=1e-12)
        np.testing.assert_allclose(by_log, np.exp(2 * log_sd) - 1, rtol=1e-12)


BAD: tuple[tuple[Callable[[], Any], type[Exception], str], ...] = (
    (lambda: distribution.Normal(0.0, -1.0), ArgumentError, "sd of Normal must be greater than 0"),
    (lambda: distribution.Bernoulli(1.5), ArgumentError, "between 0 and 1"),
    (lambda: distribution.Normal(0.0, 1.0, dtype=nb.int32), DtypeError, "a float dtype"),
    (lambda: distribution.Bernoulli(0.5, dtype=nb.bool_), DtypeError, "a float or an integer"),
    (lambda: distribution.Normal(True, 1.0), DtypeError, "mean must be"),
    (lambda: distribution.Normal(0.0, 1.0, name=cast(str, 3)), DtypeError, "name must be"),
    (lambda: distribution.Categorical([0.5, 0.6]), ArgumentError, "the sum 1"),
    (lambda: distribution.Categorical(1.0), ShapeError, "an axis of classes"),
    (lambda: distribution.Uniform(2.0, 1.0), ArgumentError, "low of Uniform must be less"),
    (lambda: distribution.Normal().mean(), DtypeError, "made without mean"),
    (lambda: distribution.Normal(0.0, 1.0)("foo"), ArgumentError, "no quantity 'foo'"),
    (lambda: distribution.Normal(0.0, 1.0).mean(1.0, 2.0, 3.0), ArgumentError, "takes the parameters mean, sd"),
    (lambda: distribution.Normal(0.0, 1.0).mean(loc=1.0), ArgumentError, "takes the parameters mean, sd"),
    (lambda: distribution.Normal(0.0, 1.0).kl_loss("Gamma", 1.0, 1.0), ArgumentError, "takes dist='Normal'"),
    (lambda: distribution.Normal(0.0, 1.0).kl_loss("Normal", 1.0), ArgumentError, "mean_b, sd_b"),
    (lambda: bijector.Exp()("x", 1.0), ArgumentError, "no function 'x'"),
    (lambda: bijector.ScalarAffine(None), DtypeError, "scale of ScalarAffine"),
    (lambda: bijector.PowerTransform(-1.0), ArgumentError, "at least 0"),
    (lambda: bijector.GumbelCDF(0.0, 0.0), ArgumentError, "greater than 0"),
    (lambda: bijector.Invert(1), DtypeError, "must be a Bijector"),
    (lambda: bijector.Bijector().forward(1.0), ArgumentError, "define _forward"),
    (lambda: distribution.TransformedDistribution(1, distribution.Normal(0.0, 1.0)), DtypeError, "a Bijector"),
    (lambda: distribution.TransformedDistribution(bijector.Exp(), 1), DtypeError, "a Distribution"),
    (lambda: bijector.Exp()(distribution.Normal(0.0, 1.0)).mean(), ArgumentError, "affine"),
)


@pytest.mark.parametrize(("call", "kind", "words"), BAD)
def test_errors_say_what_to_do(call: Callable[[], Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


# ----- Bijections -----

BIJECTIONS: tuple[tuple[Any, np.ndarray, Callable[[np.ndarray], np.ndarray]], ...] = (
    (bijector.Exp(), VALUES[:6], np.exp),
    (bijector.PowerTransform(0.5), np.abs(VALUES), lambda x: (1 + 0.5 * x) ** 2),
    (bijector.PowerTransform([0.0, 2.0]), np.array([0.5, 0.7]), lambda x: np.array([np.exp(0.5), 2.4**0.5])),
    (bijector.ScalarAffine(-2.0, 1.0), VALUES, lambda x: 1 - 2 * x),
    (bijector.Softplus(2.0), VALUES, lambda x: np.logaddexp(0, 2 * x) / 2),
    (bijector.GumbelCDF(*TWO), VALUES[:6], lambda x: stats.gumbel_r.cdf(x, *TWO)),
    (bijector.Invert(bijector.Exp()), np.abs(VALUES) + 0.1, np.log),
)


@pytest.mark.parametrize(("one", "x", "expected"), BIJECTIONS)
def test_bijections(one: Any, x: np.ndarray, expected: Callable[[np.ndarray], np.ndarray]) -> None:
    y = np.asarray(one("forward", x))
    np.testing.assert_allclose(y, expected(x), rtol=2e-7)
    np.testing.assert_allclose(np.asarray(one.inverse(y)), x, rtol=1e-9, atol=1e-12)
    for there, log_slope, at in (
        (one.forward, one.forward_log_jacobian, x),
        (one.inverse, one.inverse_log_jacobian, y),
    ):
        slope = np.diag(nb.jacrev(there)(at))
        found = np.broadcast_to(np.asarray(log_slope(at)), at.shape)
        np.testing.assert_allclose(found, np.log(np.abs(slope)), rtol=1e-6, atol=1e-9)
    assert one.forward(Tensor(x.astype(np.float32))).dtype == nb.float32


def test_transformed_distributions() -> None:
    normal = distribution.Normal(*TWO, dtype=nb.float64)
    x = np.array([0.3, 0.9, 2.0])
    log_normal = bijector.Exp()(normal)
    assert isinstance(log_normal, distribution.TransformedDistribution)
    theirs = stats.lognorm(TWO[1], scale=math.exp(TWO[0]))
    for quantity, method in {"log_prob": "logpdf", "prob": "pdf", **NAMES}.items():
        np.testing.assert_allclose(np.asarray(log_normal(quantity, x)), getattr(theirs, method)(x), rtol=1e-9)
    # A bijection that falls: what was below is above.
    falling = distribution.TransformedDistribution(
        bijector.ScalarAffine(-2.0, 1.0), distribution.Exponential(1.0), seed=3
    )
    found = np.asarray(falling.cdf(Tensor([-3.0, 0.0, 2.0])))
    np.testing.assert_allclose(found, [math.exp(-2.0), math.exp(-0.5), 1.0], rtol=1e-6)
    assert float(falling.mean()) == -1.0 and falling.is_linear_transformation
    assert falling.log_prob(Tensor([2.0])).tolist() == [-math.inf]
    assert float(np.mean(falling.sample((4000,)))) == pytest.approx(-1.0, abs=0.15)
    assert (falling.sample((3,)) != falling.distribution.sample((3,))).all()
    assert distribution.TransformedDistribution(bijector.ScalarAffine([1.0, 2.0]), normal).broadcast_shape == (2,)
