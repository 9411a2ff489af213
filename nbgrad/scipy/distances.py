"""Distances between rows, of `scipy.spatial.distance`: `cdist` and `pdist`.

In: matrices whose rows are points, the name of a metric, weights. Out: Tensors. Called by code that
`differentiable_source` runs, by scipy_table.py. Where two points are equal, the derivative of their distance is zero.
"""

from __future__ import annotations

from typing import Any

import numpy

from .. import numpy as np
from ..errors import ShapeError
from ..record.axes_and_dtypes import only

linalg: Any = np.linalg


def _root(square: Any) -> Any:
    """The square root, with derivative zero at 0."""
    zero = square == 0
    return np.where(zero, 0.0, np.sqrt(np.where(zero, 1.0, square)))


def _over(top: Any, bottom: Any) -> Any:
    """A quotient that is 0 where both are."""
    zero = bottom == 0
    return np.where(zero, 0.0, top / np.where(zero, 1.0, bottom))


def _weighted(part: Any, w: Any) -> Any:
    return part if w is None else part * np.asarray(w)


def _cosine(a: Any, b: Any, w: Any) -> Any:
    both, one, two = [np.sum(_weighted(p, w), axis=-1) for p in (a * b, a * a, b * b)]
    return 1 - both / np.sqrt(one * two)


def _centred(a: Any, w: Any) -> Any:
    if w is None:
        return a - np.mean(a, axis=-1, keepdims=True)
    return a - np.sum(a * np.asarray(w), axis=-1, keepdims=True) / np.sum(np.asarray(w))


def _power(part: Any, p: Any, w: Any) -> Any:
    size = np.sum(_weighted(np.abs(part) ** p, w), axis=-1)
    zero = size == 0
    return np.where(zero, 0.0, np.where(zero, 1.0, size) ** (1 / p))


def _jensen_shannon(a: Any, b: Any, base: Any) -> Any:
    a, b = a / np.sum(a, axis=-1, keepdims=True), b / np.sum(b, axis=-1, keepdims=True)
    m = (a + b) / 2
    terms = np.xlogy(a, _over(a, m) + (a == 0)) + np.xlogy(b, _over(b, m) + (b == 0))
    total = np.sum(terms, axis=-1) / 2
    return _root(np.maximum(total if base is None else total / np.log(base), 0.0))


_NAMES = (
    "euclidean sqeuclidean cityblock chebyshev minkowski cosine correlation canberra braycurtis seuclidean mahalanobis "
    "jensenshannon"
).split()
_OTHERS = {
    **dict.fromkeys(("euclid", "eu", "e"), "euclidean"),
    **dict.fromkeys(("sqe", "sqeuclid"), "sqeuclidean"),
    **dict.fromkeys(("manhattan", "cb", "c", "city block", "l1"), "cityblock"),
    **dict.fromkeys(("ch", "cheb", "cheby", "chebychev"), "chebyshev"),
    **dict.fromkeys(("cos",), "cosine"),
    **dict.fromkeys(("mi", "m", "pnorm"), "minkowski"),
    **dict.fromkeys(("se", "s"), "seuclidean"),
    **dict.fromkeys(("mahal", "mah"), "mahalanobis"),
    **dict.fromkeys(("js",), "jensenshannon"),
}


def _distances(a: Any, b: Any, metric: Any, rows: Any, options: dict[str, Any]) -> Any:
    """The distances of points in the last axes of two arrays that broadcast; `rows` are all points there are."""
    if callable(metric):
        pairs = np.broadcast_arrays(a, b)
        flat = [np.reshape(p, (-1, p.shape[-1])) for p in pairs]
        found = [metric(flat[0][k], flat[1][k], **options) for k in range(flat[0].shape[0])]
        return np.reshape(np.stack(found), pairs[0].shape[:-1])
    metric = _OTHERS.get(str(metric).lower(), str(metric).lower())
    only("metric", metric, *_NAMES)
    w = options.get("w")
    apart = a - b
    if metric in ("euclidean", "sqeuclidean"):
        square = np.sum(_weighted(apart * apart, w), axis=-1)
        return square if metric == "sqeuclidean" else _root(square)
    if metric == "cityblock":
        return np.sum(_weighted(np.abs(apart), w), axis=-1)
    if metric == "chebyshev":
        part = apart if w is None else apart[..., numpy.flatnonzero(numpy.asarray(w))]
        return np.max(np.abs(part), axis=-1)
    if metric == "minkowski":
        return _power(apart, options.get("p", 2.0), w)
    if metric == "cosine":
        return _cosine(a, b, w)
    if metric == "correlation":
        return _cosine(_centred(a, w), _centred(b, w), w)
    if metric == "canberra":
        return np.sum(_weighted(_over(np.abs(apart), np.abs(a) + np.abs(b)), w), axis=-1)
    if metric == "braycurtis":
        top, bottom = [np.sum(_weighted(np.abs(p), w), axis=-1) for p in (apart, a + b)]
        return top / bottom
    if metric == "seuclidean":
        variances = options.get("V")
        variances = np.var(rows, axis=0, ddof=1) if variances is None else np.asarray(variances)
        return _root(np.sum(apart * apart / variances, axis=-1))
    if metric == "jensenshannon":
        return _jensen_shannon(a, b, options.get("base"))
    inverse = options.get("VI")
    inverse = linalg.inv(np.cov(rows.T)).T if inverse is None else np.asarray(inverse)
    return _root(np.sum((apart @ inverse) * apart, axis=-1))


def _points(name: str, value: Any) -> Any:
    found = np.asarray(value).astype(numpy.float64)
    if found.ndim != 2:
        message = f"{name} needs matrices whose rows are points, but the shape is {found.shape}."
        raise ShapeError(message)
    return found


def cdist(XA: Any, XB: Any, metric: Any = "euclidean", kwargs: Any = None) -> Any:
    """The distances of all rows of one matrix to all rows of another one."""
    a, b = _points("cdist", XA), _points("cdist", XB)
    if a.shape[1] != b.shape[1]:
        message = f"cdist needs points with as many coordinates, but the shapes are {a.shape} and {b.shape}."
        raise ShapeError(message)
    return _distances(a[:, None, :], b[None, :, :], metric, np.concatenate([a, b]), kwargs or {})


def pdist(X: Any, metric: Any = "euclidean", kwargs: Any = None) -> Any:
    """The distances of the rows of a matrix to each other: those above the diagonal, row by row."""
    x = _points("pdist", X)
    first, second = numpy.triu_indices(x.shape[0], 1)
    return _distances(x[first], x[second], metric, x, kwargs or {})


def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """Distances above the diagonal as a symmetric matrix, or back."""
    only("force", force, "no", "tomatrix", "tovector")
    del checks
    x = np.asarray(X)
    if x.ndim == 2:
        first, second = numpy.triu_indices(x.shape[0], 1)
        return x[first, second]
    n = round((1 + (1 + 8 * x.shape[0]) ** 0.5) / 2)
    if x.ndim != 1 or n * (n - 1) // 2 != x.shape[0]:
        message = f"squareform needs n (n - 1) / 2 distances or a matrix, but the shape is {x.shape}."
        raise ShapeError(message)
    places = numpy.zeros((n, n), int)
    places[numpy.triu_indices(n, 1)] = numpy.arange(x.shape[0]) + 1
    places = places + places.T
    return np.take(np.concatenate([np.zeros(1), x]), places)
