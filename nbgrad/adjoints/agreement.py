"""Derivatives are compared with differences of the kernel itself, at their first use.

In: a specialization, and the values of its first reverse or forward run. Out: nothing, or an error with both numbers.
Called by specializations.py. The comparison is a dot-product test: <J v, w> by central differences of the compiled
kernel, and by the derived one, for random directions v and w.

At a kink the difference is no derivative, and in steep places only small steps are right. So steps of several sizes are
taken, and other points nearby; only numbers on which two steps agree count against the derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import ArgumentError

_STEPS = {"float64": (1e-5, 1e-6, 1e-7, 1e-4, 1e-8), "float32": (1e-2, 3e-3, 1e-3)}
_TOLERANCE = {"float64": 1e-4, "float32": 3e-2}
_POINTS = 3


Derivative = Callable[[Sequence[str], dict[str, Any], dict[str, Any], dict[str | int, Any]], tuple[float, float]]


class Agreement:
    """The comparison for one specialization; `when` is "first", "always" or "never"."""

    def __init__(self, spec: Any, when: str) -> None:
        self.spec = spec
        self.when = when
        self.done: set[tuple[str, ...]] = set()

    def before(self, wanted: Sequence[str], given: dict[str, Any], cotangents: dict[str | int, Any]) -> None:
        """Compare the reverse kernel, if it is time."""
        if self.is_time(("reverse", *wanted), given):
            self.compare(wanted, given, {o: np.shape(g) for o, g in cotangents.items()}, self.by_reverse)

    def before_forward(self, moved: Sequence[str], given: dict[str, Any], shapes: dict[str | int, Any]) -> None:
        """Compare the tangent kernel, if it is time."""
        if self.is_time(("forward", *moved), given):
            self.compare(moved, given, shapes, self.by_forward)

    def is_time(self, key: tuple[str, ...], given: dict[str, Any]) -> bool:
        """Whether a derivative is compared now; not where an argument is infinite or NaN."""
        if self.when == "never" or (self.when == "first" and key in self.done):
            return False
        self.done.add(key)
        return all(np.isfinite(value).all() for value in given.values() if _floats(value))

    def compare(
        self, moving: Sequence[str], given: dict[str, Any], shapes: dict[str | int, Any], derivative: Derivative
    ) -> None:
        """Raise an error if a derivative and differences disagree."""
        spec = self.spec
        dtypes = {spec.form.dtypes[name] for name in moving} | {str(spec.dtype_of(o)) for o in spec.float_outputs}
        dtype = "float32" if "float32" in dtypes else "float64"
        random = np.random.default_rng(len(moving))
        point, found, agreed = given, 0.0, [(0.0, 0.0)]
        for attempt in range(_POINTS):
            if attempt:
                point = dict(given)
                for name in moving:
                    shift = random.standard_normal(np.shape(given[name])) * _size(given[name])
                    point[name] = _moved(given[name], 1e-3, shift)
            along = {name: random.standard_normal(np.shape(point[name])) * _size(point[name]) for name in moving}
            weights = {o: random.standard_normal(shape) for o, shape in shapes.items()}
            found, scale = derivative(moving, point, along, weights)
            tolerance = _TOLERANCE[dtype] * max(scale, 1e-30)
            if not math.isfinite(found):
                return
            numeric: list[float] = []
            for step in _STEPS[dtype]:
                numeric.append(self.difference(moving, point, along, weights, step))
                if abs(numeric[-1] - found) <= tolerance or not math.isfinite(numeric[-1]):
                    return
            agreed = [pair for pair in pairwise(numeric) if abs(pair[0] - pair[1]) <= 0.1 * abs(pair[1] - found)]
            if not agreed:
                return
        message = (
            f"The derived gradient of {spec.form.name}() differs from finite differences of the kernel: "
            f"{found:.6g} and {agreed[0][1]:.6g}, on which two steps agree. Please report the kernel; "
            'nb.primitive(..., vjp=) takes a rule of your own. (check="never" leaves this comparison out.)'
        )
        raise ArgumentError(message)

    def by_reverse(
        self, wanted: Sequence[str], point: dict[str, Any], along: dict[str, Any], weights: dict[str | int, Any]
    ) -> tuple[float, float]:
        """<v, J'w> by the reverse kernel, and the sum of the sizes of its terms."""
        spec = self.spec
        gradients = {name: np.empty(np.shape(point[name]), spec.form.dtypes[name]) for name in wanted}
        cotangents = {o: np.asarray(w, spec.dtype_of(o)) for o, w in weights.items()}
        spec.run_reverse(wanted, point, cotangents, gradients)
        return _summed([along[name] * gradients[name] for name in wanted])

    def by_forward(
        self, moved: Sequence[str], point: dict[str, Any], along: dict[str, Any], weights: dict[str | int, Any]
    ) -> tuple[float, float]:
        """<J v, w> by the tangent kernel, and the sum of the sizes of its terms."""
        spec = self.spec
        tangents = {name: np.asarray(along[name], spec.form.dtypes[name]) for name in moved}
        results = {o: np.empty(np.shape(w), spec.dtype_of(o)) for o, w in weights.items()}
        spec.run_forward(moved, point, tangents, results)
        return _summed([weights[o] * results[o] for o in weights])

    def difference(
        self,
        wanted: Sequence[str],
        point: dict[str, Any],
        along: dict[str, Any],
        weights: dict[str | int, Any],
        step: float,
    ) -> float:
        """<J v, w> by central differences."""
        sides = [self.values(wanted, point, along, sign * step) for sign in (1.0, -1.0)]
        total = 0.0
        for output, weight in weights.items():
            change = np.asarray(sides[0][output], np.float64) - np.asarray(sides[1][output], np.float64)
            total += float(np.sum(weight * change)) / (2.0 * step)
        return total

    def values(
        self, wanted: Sequence[str], point: dict[str, Any], along: dict[str, Any], step: float
    ) -> dict[str | int, Any]:
        """The results of the kernel at a place along the direction."""
        spec = self.spec
        return spec.values(
            {name: _moved(value, step, along[name]) if name in wanted else value for name, value in point.items()}
        )


def _summed(terms: Sequence[Any]) -> tuple[float, float]:
    """The sum of all elements, and that of their sizes."""
    wide = [np.asarray(term, np.float64) for term in terms]
    return float(sum(term.sum() for term in wide)), float(sum(np.abs(term).sum() for term in wide))


def _floats(value: Any) -> bool:
    return np.asarray(value).dtype.kind == "f"


def _size(value: Any) -> Any:
    """The size of the elements of a value, for a step."""
    size = np.abs(np.asarray(value, np.float64))
    return np.maximum(size, 1e-2 * (size.max() if size.size else 1.0) or 1e-2)


def _moved(value: Any, step: float, along: Any) -> Any:
    """A value moved along a direction, in its dtype."""
    dtype = np.asarray(value).dtype
    moved = (np.asarray(value, np.float64) + step * np.asarray(along)).astype(dtype)
    return moved if moved.ndim else moved[()]
