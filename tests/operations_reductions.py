"""Rows for reductions, statistics, quantiles, running totals and sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from .operation import Argument, Operation, apart, between, given, operation, real, rising

CUBE = (2, 3, 4)


def reduction(name: str, peers: str = "", draw: Any = real, empty: bool = False, **options: Any) -> Operation:
    """A reduction over all axes, one, several, with kept axes."""
    function = getattr(np, name)
    samples = [draw(*CUBE), draw(2, 3, 5)] + ([draw(2, 0, 4)] if empty else [])

    def everything(x: Any) -> Any:
        return function(x), function(x, axis=1), function(x, axis=(0, -1), keepdims=True)

    return operation(name, everything, *samples, peers=peers, **options)


def along(name: str, peers: str = "", draw: Any = real, **options: Any) -> Operation:
    """A function along one axis, and of the flat array."""
    function = getattr(np, name)
    return operation(
        name, lambda x: (function(x, axis=1), function(x, axis=-1)), draw(*CUBE), draw(3, 4, 5), peers=peers, **options
    )


def with_nan(*shape: int) -> Argument:
    """Numbers that are apart, some of them NaN."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        values = apart(*shape).draw(rng, shape)
        values.flat[::7] = np.nan
        return values

    return Argument(shape, draw)


def positive(*shape: int) -> Argument:
    return between(0.5, 1.5, *shape)


REDUCTIONS = [
    reduction("sum", "jax:sum jax:testReduceGrad-add torch:sum", empty=True, complexes=True),
    reduction("mean", "jax:mean torch:mean", complexes=True),
    reduction("prod", "jax:prod jax:testReduceGrad-mul torch:prod", positive, empty=True, complexes=True),
    reduction("max", "jax:max torch:amax torch:max jax:testReduceGrad-max", apart, complexes=True),
    reduction("min", "jax:min torch:amin torch:min jax:testReduceGrad-min", apart, complexes=True),
    reduction("ptp", "jax:ptp torch:aminmax", apart),
    reduction("var", "jax:var torch:var", complexes=True),
    reduction("std", "jax:std torch:std", complexes=True),
    reduction("all", "jax:all", order=0),
    reduction("any", "jax:any", order=0),
    reduction("count_nonzero", "torch:count_nonzero", order=0),
    reduction("median", "torch:median", apart),
    reduction("nansum", "jax:nansum torch:nansum", with_nan),
    reduction("nanprod", "jax:nanprod", with_nan, tolerance=1e-6, dtypes=("float32",)),
    reduction("nanmean", "jax:nanmean torch:nanmean", with_nan),
    reduction("nanvar", "jax:nanvar", with_nan),
    reduction("nanstd", "jax:nanstd", with_nan),
    reduction("nanmax", "jax:nanmax", with_nan),
    reduction("nanmin", "jax:nanmin", with_nan),
    reduction("nanmedian", "torch:nanmedian", with_nan),
    along("argmax", "jax:argmax", apart, order=0),
    along("argmin", "jax:argmin", apart, order=0),
    along("nanargmax", "jax:nanargmax", with_nan, order=0),
    along("nanargmin", "jax:nanargmin", with_nan, order=0),
    operation(
        "sum of a mask",
        lambda x: np.sum(x, where=np.array([True, False, True, True]), initial=2.0),
        real(3, 4),
        peers="torch:masked.sum",
    ),
    operation(
        "mean of a mask",
        lambda x: np.mean(x, axis=0, where=np.array([[True], [False], [True]])),
        real(3, 4),
        peers="torch:masked.mean",
    ),
    operation(
        "var of a mask",
        lambda x: np.var(x, where=np.array([True, False, True, True])),
        real(3, 4),
        peers="torch:masked.var",
    ),
    operation(
        "std of a mask",
        lambda x: np.std(x, where=np.array([True, False, True, True])),
        real(3, 4),
        peers="torch:masked.std",
    ),
    operation(
        "prod of a mask",
        lambda x: np.prod(x, where=np.array([True, False, True, True])),
        positive(3, 4),
        peers="torch:masked.prod",
    ),
    operation(
        "max of a mask",
        lambda x: np.max(x, axis=1, where=np.array([True, False, True, True]), initial=-9.0),
        apart(3, 4),
        peers="torch:masked.amax",
    ),
    operation(
        "min of a mask",
        lambda x: np.min(x, axis=1, where=np.array([True, False, True, True]), initial=9.0),
        apart(3, 4),
        peers="torch:masked.amin",
    ),
    operation(
        "running totals of a mask",
        lambda x: np.cumsum(np.where([True, False, True, True], x, 0), axis=1),
        real(3, 4),
        peers="torch:masked.cumsum",
    ),
    operation(
        "running products of a mask",
        lambda x: np.cumprod(np.where([True, False, True, True], x, 1), axis=1),
        real(3, 4),
        peers="torch:masked.cumprod",
    ),
    operation(
        "median of what a mask leaves",
        lambda x: np.median(x[:, [True, False, True, True]], axis=1),
        apart(3, 4),
        peers="torch:masked.median",
    ),
    operation(
        "variance with a correction",
        lambda x: (np.var(x, ddof=1, axis=0), np.std(x, ddof=1, axis=-1), np.mean(x)),
        real(3, 4),
        peers="torch:var torch:std torch:var_mean torch:std_mean",
    ),
    operation(
        "average with weights",
        lambda x, w: (np.average(x, axis=1, weights=w), np.average(x)),
        (real(3, 4), positive(4)),
        complexes=True,
    ),
    operation(
        "products with zeros",
        lambda x: (np.prod(x, axis=1), np.cumprod(x, axis=1)),
        given([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [1.0, 2.0, 3.0]]),
        peers="jax:testReduceGrad-mul torch:prod",
    ),
    operation(
        "quantile",
        lambda x: (np.quantile(x, [0.1, 0.52, 0.9], axis=1), np.percentile(x, 33)),
        apart(3, 7),
        apart(5, 4),
        peers="torch:quantile",
    ),
    operation(
        "quantile by all methods",
        lambda x: [np.quantile(x, 0.37, method=m) for m in METHODS],
        apart(7),
        peers="torch:quantile",
    ),
    operation(
        "nanquantile", lambda x: np.nanquantile(x, [0.1, 0.52], axis=1), with_nan(3, 7), peers="torch:nanquantile"
    ),
    operation("k-th smallest", lambda x: np.partition(x, 2, axis=-1)[..., 2], apart(3, 5), peers="torch:kthvalue"),
    operation(
        "cov", lambda x: (np.cov(x), np.cov(x, rowvar=False, bias=True)), real(3, 5), peers="torch:cov", complexes=True
    ),
    operation("corrcoef", np.corrcoef, real(3, 5), peers="torch:corrcoef"),
    operation(
        "logsumexp by hand",
        lambda x: np.log(np.sum(np.exp(x - np.max(x, axis=1, keepdims=True)), axis=1)) + np.max(x, axis=1),
        apart(3, 4),
        peers="torch:logsumexp torch:masked.logsumexp",
    ),
    operation(
        "logaddexp of what masks leave",
        lambda x, y: np.logaddexp(np.where([True, False, True, True], x, -np.inf), y),
        (real(3, 4), real(4)),
        peers="torch:masked.logaddexp",
    ),
    operation("histogram counts", lambda x: np.histogram(x, bins=4, range=(-2, 2))[0], real(9), order=0, dtypes=()),
    operation("bincount with weights", lambda w: np.bincount([0, 2, 2, 5], weights=w), real(4), dtypes=()),
]

METHODS = (
    "inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen weibull linear "
    "median_unbiased normal_unbiased lower higher midpoint nearest"
).split()

RUNNING = [
    along("cumsum", "jax:cumsum torch:cumsum", complexes=True),
    along("cumprod", "jax:cumprod torch:cumprod", positive, complexes=True),
    along("nancumsum", "", with_nan),
    along("nancumprod", "", with_nan, dtypes=("float32",), tolerance=1e-6),
    operation(
        "maximum.accumulate", lambda x: np.maximum.accumulate(x, axis=1), apart(3, 5), peers="torch:cummax jax:cummax"
    ),
    operation(
        "minimum.accumulate", lambda x: np.minimum.accumulate(x, axis=1), apart(3, 5), peers="torch:cummin jax:cummin"
    ),
    operation(
        "logaddexp.accumulate",
        lambda x: np.logaddexp.accumulate(x, axis=1),
        apart(3, 5),
        peers="torch:logcumsumexp jax:cumlogsumexp",
    ),
    operation(
        "cumulative_sum",
        lambda x: np.cumulative_sum(x, axis=0, include_initial=True),
        real(3, 4),
        needs="cumulative_sum",
    ),
    operation("cumulative_prod", lambda x: np.cumulative_prod(x, axis=0), real(3, 4), needs="cumulative_prod"),
    operation(
        "diff",
        lambda x: (np.diff(x), np.diff(x, n=2, axis=0), np.diff(x, prepend=0, append=1)),
        real(3, 4),
        peers="torch:diff",
        complexes=True,
    ),
    operation("ediff1d", lambda x: np.ediff1d(x, to_end=1.0), real(5), real(2, 3), peers="jax:ediff1d", complexes=True),
    operation(
        "gradient",
        lambda f: (np.gradient(f), np.gradient(f, 0.3, axis=1, edge_order=2)),
        real(4, 5),
        peers="torch:gradient",
        complexes=True,
    ),
    operation(
        "gradient at places",
        lambda f: np.gradient(f, np.array([0.0, 0.3, 1.0, 1.4, 2.5])),
        real(5),
        peers="torch:gradient",
    ),
    operation(
        "trapezoid",
        lambda y, x: (np.trapezoid(y, x), np.trapezoid(y, dx=0.3, axis=0)),
        (real(3, 5), rising(5)),
        peers="torch:trapezoid torch:trapz",
        complexes=True,
    ),
    operation(
        "running trapezoid",
        lambda y, x: np.cumsum((y[..., 1:] + y[..., :-1]) / 2 * np.diff(x), axis=-1),
        (real(3, 5), rising(5)),
        peers="torch:cumulative_trapezoid",
    ),
    operation("unwrap", lambda x: np.unwrap(x * 2.9), apart(3, 6), peers="jax:unwrap"),
    operation(
        "interp", lambda x, f: np.interp(x, np.array([-3.0, -1.1, 0.03, 1.3, 3.0]), f), (real(6), real(5)), dtypes=()
    ),
    operation(
        "interp with all arguments",
        lambda x, p, f: np.interp(x, p, f),
        (given([0.4, 1.7, 2.2]), given([0.0, 1.0, 2.0, 3.0]), real(4)),
        dtypes=(),
    ),
]

SORTING = [
    operation(
        "sort",
        lambda x: (np.sort(x, axis=0), np.sort(x, axis=-1), np.sort(x, axis=None)),
        apart(3, 4),
        apart(2, 3, 4),
        peers="jax:testSortGrad torch:sort torch:msort",
    ),
    operation("sort of an empty array", np.sort, apart(0), peers="jax:testSortGrad"),
    operation("msort", lambda x: np.sort(x, axis=0), apart(4, 3), peers="torch:msort"),
    operation("argsort", lambda x: np.argsort(x, axis=0), apart(4, 3), order=0),
    operation(
        "values sorted by keys",
        lambda k, v: np.take_along_axis(v, np.argsort(k, axis=0), axis=0),
        (apart(5, 3), real(5, 3)),
        peers="jax:testSortKeyValGrad",
    ),
    operation("lexsort", lambda k, v: v[np.lexsort((v, k))], (apart(5), real(5)), dtypes=()),
    operation(
        "partition", lambda x: np.sort(np.partition(x, 2, axis=1)[:, :2], axis=1), apart(3, 5), peers="torch:topk"
    ),
    operation(
        "largest k",
        lambda x: np.sort(x, axis=-1)[..., ::-1][..., :2],
        apart(5, 5),
        apart(3, 1, 4),
        apart(4),
        peers="jax:testTopKGrad torch:topk",
    ),
    operation(
        "most frequent value",
        lambda x: x[np.argmax(np.sum(x[:, None] == x, axis=1))],
        given([1.0, 3.0, 3.0, 2.0]),
        peers="torch:mode",
        order=0,
    ),
    operation("searchsorted", lambda x: np.searchsorted(np.array([-1.0, 0.0, 1.0]), x), real(3, 4), order=0, dtypes=()),
    operation("unique", np.unique, apart(5), dtypes=(), compiled=False),
    operation("digitize", lambda x: np.digitize(x, np.array([-1.0, 0.0, 1.0])), real(5), order=0, dtypes=()),
]

OPERATIONS = [*REDUCTIONS, *RUNNING, *SORTING]
