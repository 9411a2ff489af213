"""`scipy.stats`' distributions for recorded values: densities, distribution functions, inverses, frozen distributions.

In: values, shape parameters, location and scale. Out: Tensors, with derivatives by all of them; ndarrays, by SciPy
itself, where no argument is a Tensor. Called by code that `differentiable_source` runs, by scipy_calls.py. The formulas
are in distribution_forms.py. Quantiles are SciPy's, with the derivative of an implicit function.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from .. import numpy as np
from ..errors import ArgumentError, DtypeError
from ..functions.linalg.matrix_batches import with_rule
from ..graph.differentiate import vjp
from ..graph.host_functions import HostFunction, host
from ..graph.ir import Node, broadcast
from ..record.as_node import as_node, holds_tensors, wrap
from .distribution_forms import CONTINUOUS, DISCRETE, LOGARITHMS, Form
from .multivariate import MULTIVARIATE


def _run(q: Any, *rest: Any) -> Any:
    import scipy.stats

    *shapes, name, method = rest
    return getattr(getattr(scipy.stats, name), method)(q, *shapes)


QUANTILE = HostFunction("quantile", lambda inputs, params: (inputs[0].shape, inputs[0].dtype), _run)


def _quantile(name: str, method: str, *nodes: Node) -> Node:
    return with_rule(host(QUANTILE, nodes, name, method), _implicit, *nodes, static=(name, method))


def _implicit(g: Node, x: Node, q: Node, *rest: Any) -> list[Node | None]:
    """Of F(x, s) = q: dx/dq is one over the density, and dx/ds is the derivative of -F by s times that."""
    *shapes, name, method = rest
    form = CONTINUOUS[name]
    copies = [as_node(wrap(s) + 0.0) for s in shapes]
    inside = [wrap(node) for node in (x, *copies)]
    function = form.cdf if method == "ppf" else form.sf
    assert function is not None
    density = as_node(np.exp(form.logpdf(*inside)))
    if method == "isf":
        density = -density
    seed = g / density
    found = vjp([as_node(function(*inside))], [-seed], copies) if copies else []
    return [seed, *found]


class Distribution:
    """A distribution of `scipy.stats`, whose functions know Tensors; all other names are the original's, or those of
    `in_python(original)`, its Python code with nbgrad's NumPy, for Tensors."""

    def __init__(self, original: Any, name: str, in_python: Callable[[Any], Any]) -> None:
        self._original, self._name, self._in_python = original, name, in_python
        self._form: Form = (DISCRETE if name in DISCRETE else CONTINUOUS)[name]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._original, name)
        if not callable(found) or name.startswith("_"):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            if _recorded(None, args, kwargs):
                return getattr(self._in_python(self._original), name)(*args, **kwargs)
            return found(*args, **kwargs)

        return call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Frozen(self, args, kwargs)

    def freeze(self, *args: Any, **kwargs: Any) -> Any:
        """The distribution with these parameters."""
        return Frozen(self, args, kwargs)

    def _standard(self, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any], Any, Any]:
        """The argument in the standard form, the shape parameters, the scale, and where parameters are allowed."""
        shapes, loc, scale = self._parameters(args, kwargs)
        z = (np.asarray(x) - loc) / scale
        every = [s > 0 for s in shapes] if self._form.needs is None else [self._form.needs(*shapes)]
        allowed = np.asarray(scale) > 0
        for one in every:
            allowed = allowed & one
        return z, shapes, scale, allowed

    def _parameters(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any, Any]:
        names = (self._original.shapes or "").replace(" ", "").split(",") if self._original.shapes else []
        order = [*names, "loc"] if self._name in DISCRETE else [*names, "loc", "scale"]
        given = dict(zip(order, args, strict=False))
        if len(args) > len(order) or set(kwargs) - set(order) or set(kwargs) & set(given):
            message = f"scipy.stats.{self._name} takes {', '.join(order)}, but got {len(args)} and {sorted(kwargs)}."
            raise ArgumentError(message)
        given.update(kwargs)
        missing = [name for name in names if name not in given]
        if missing:
            message = f"scipy.stats.{self._name} needs {', '.join(missing)}."
            raise ArgumentError(message)
        return [np.asarray(given[name]) * 1.0 for name in names], given.get("loc", 0.0), given.get("scale", 1.0)

    def _ends(self, shapes: list[Any]) -> tuple[Any, Any, Any]:
        form = self._form
        return tuple([end(*shapes) if callable(end) else end for end in (form.low, form.high, form.inside)])  # type: ignore

    def _log_density(self, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
        """The logarithm of the density, where the support is, where the result is a number, and the scale."""
        z, shapes, scale, allowed = self._standard(x, args, kwargs)
        low, high, middle = self._ends(shapes)
        inside = (z >= low) & (z <= high) & np.isfinite(z)
        if self._form.open:
            inside = inside & (z > low)
        if self._name in DISCRETE:
            inside = inside & (np.floor(z) == z)
        inside = inside & allowed
        found = self._form.logpdf(np.where(inside, z, middle), *shapes)
        return found - np.log(scale), inside, allowed & ~np.isnan(z), scale

    def logpdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the density."""
        if not _recorded(x, args, kwargs):
            return self._original.logpdf(x, *args, **kwargs)
        found, inside, known, _ = self._log_density(x, args, kwargs)
        return np.where(known, np.where(inside, found, -math.inf), math.nan)

    def pdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The density."""
        if not _recorded(x, args, kwargs):
            return self._original.pdf(x, *args, **kwargs)
        found, inside, known, _ = self._log_density(x, args, kwargs)
        return np.where(known, np.where(inside, np.exp(found), 0.0), math.nan)

    def logpmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of a probability, of a discrete distribution."""
        if not _recorded(k, args, kwargs):
            return self._original.logpmf(k, *args, **kwargs)
        return self.logpdf(k, *args, **kwargs)

    def pmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of a value, of a discrete distribution."""
        if not _recorded(k, args, kwargs):
            return self._original.pmf(k, *args, **kwargs)
        return self.pdf(k, *args, **kwargs)

    def _probability(self, name: str, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        function = self._form.cdf if name == "cdf" else self._form.sf
        if function is None:
            return getattr(self._in_python(self._original), name)(x, *args, **kwargs)
        z, shapes, _, allowed = self._standard(x, args, kwargs)
        low, high, middle = self._ends(shapes)
        if self._name in DISCRETE:
            z = np.floor(z)
            inside = (z >= low) & (z < high)
        else:
            inside = (z > low) & (z < high)
        found = function(np.where(inside & allowed, z, middle), *shapes)
        below, above = (0.0, 1.0) if name == "cdf" else (1.0, 0.0)
        value = np.where(inside, found, np.where(z >= high, above, below))
        return np.where(allowed & ~np.isnan(z), value, math.nan)

    def cdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of at most x."""
        if not _recorded(x, args, kwargs):
            return self._original.cdf(x, *args, **kwargs)
        return self._probability("cdf", x, args, kwargs)

    def sf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of more than x."""
        if not _recorded(x, args, kwargs):
            return self._original.sf(x, *args, **kwargs)
        return self._probability("sf", x, args, kwargs)

    def logcdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of `cdf`."""
        return self._logarithm("logcdf", x, args, kwargs)

    def logsf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of `sf`."""
        return self._logarithm("logsf", x, args, kwargs)

    def _logarithm(self, name: str, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not _recorded(x, args, kwargs):
            return getattr(self._original, name)(x, *args, **kwargs)
        formula = LOGARITHMS.get(self._name, {}).get(name)
        if formula is not None:
            z, shapes, _, allowed = self._standard(x, args, kwargs)
            low, high, middle = self._ends(shapes)
            found = formula(np.where((z > low) & (z < high) & allowed, z, middle), *shapes)
            below, above = (-math.inf, 0.0) if name == "logcdf" else (0.0, -math.inf)
            found = np.where(z <= low, below, np.where(z >= high, above, found))
            return np.where(allowed & ~np.isnan(z), found, math.nan)
        value = self._probability(name[3:], x, args, kwargs)
        positive = value > 0
        return np.where(np.isnan(value), value, np.where(positive, np.log(np.where(positive, value, 1.0)), -math.inf))

    def median(self, *args: Any, **kwargs: Any) -> Any:
        """The value that is exceeded with probability one half."""
        if not _recorded(None, args, kwargs):
            return self._original.median(*args, **kwargs)
        return self.ppf(0.5, *args, **kwargs)

    def ppf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """The value that is exceeded with probability 1 - q."""
        return self._inverse("ppf", q, args, kwargs)

    def isf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """The value that is exceeded with probability q."""
        return self._inverse("isf", q, args, kwargs)

    def _inverse(self, name: str, q: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not _recorded(q, args, kwargs):
            return getattr(self._original, name)(q, *args, **kwargs)
        if self._name in DISCRETE or self._form.cdf is None:
            message = f"scipy.stats.{self._name} has no quantiles of recorded values; its density has a derivative."
            raise DtypeError(message)
        shapes, loc, scale = self._parameters(args, kwargs)
        nodes = [as_node(np.asarray(v) * 1.0) for v in (q, *shapes)]
        shape = np.broadcast(*[wrap(node) for node in nodes]).shape
        wide = [broadcast(node, shape) for node in nodes]
        return wrap(_quantile(self._name, name, *wide)) * scale + loc


def _recorded(x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(holds_tensors(value) for value in (x, *args, *kwargs.values()))


class Frozen:
    """A distribution with its parameters."""

    def __init__(self, dist: Distribution, args: tuple[Any, ...], kwds: dict[str, Any]) -> None:
        self.dist, self.args, self.kwds = dist, args, kwds
        if not _recorded(None, args, kwds):
            dist._original(*args, **kwds)  # SciPy's own check of the parameters

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.dist, name)
        if not callable(found):
            return found
        return lambda *x, **options: found(*x, *self.args, **self.kwds, **options)

    def __reduce__(self) -> Any:
        return self.dist._original, (*self.args,)


@cache
def _names() -> dict[type, str]:
    """SciPy's distributions by their classes, which frozen ones have copies of."""
    stats = sys.modules["scipy.stats"]
    found = {type(getattr(stats, name)): name for name in (*CONTINUOUS, *DISCRETE) if hasattr(stats, name)}
    return {kind: name for kind, name in found.items() if kind.__module__.startswith("scipy.")}


@cache
def _made(name: str, in_python: Callable[[Any], Any]) -> Distribution:
    return Distribution(getattr(sys.modules["scipy.stats"], name), name, in_python)


def replacement_of_distribution(value: Any, in_python: Callable[[Any], Any]) -> Any:
    """The distribution in place of one of SciPy's, or of a frozen one; other values as they are.

    `in_python` gives the form of an object whose methods are SciPy's Python code with nbgrad's NumPy.
    """
    kind = type(value)
    if not kind.__module__.startswith("scipy.stats"):
        return value
    if kind in _names():
        return _made(_names()[kind], in_python)
    if kind.__name__.startswith("rv_") and type(getattr(value, "dist", None)) in _names():
        return Frozen(_made(_names()[type(value.dist)], in_python), value.args, value.kwds)
    for name, ours in MULTIVARIATE.items():
        if value is getattr(sys.modules["scipy.stats"], name, None):
            return ours(value, in_python)
    return value
