"""A derived gradient is compared with differences of the kernel itself, at its first use.

In: a specialization, and the values of its first reverse run. Out: nothing, or an error that shows both numbers.
Called by specializations.py. The comparison is a dot-product test: <J v, w> by central differences of the compiled
kernel, <v, J'w> by the reverse kernel, for random directions v and w.

At a kink the difference is no derivative, and in steep places only small steps are right. So steps of several sizes are
taken, and other points nearby; only numbers on which two steps agree count against the derivative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import ArgumentError

_STEPS = {"float64": (1e-5, 1e-6, 1e-7, 1e-4, 1e-8), "float32": (1e-2, 3e-3, 1e-3)}
_TOLERANCE = {"float64": 1e-4, "float32": 3e-2}
_POINTS = 3


class Agreement:
    """The comparison for one specialization; `when` is "first", "always" or "never"."""

    def __init__(self, spec: Any, when: str) -> None:
        self.spec = spec
        self.when = when
        self.done: set[tuple[str, ...]] = set()

    def before(self, wanted: Sequence[str], given: dict[str, Any], cotangents: dict[str | int, Any]) -> None:
        """Compare, if it is time."""
        key = tuple(wanted)
        if self.when == "never" or (self.when == "first" and key in self.done):
            return
        self.done.add(key)
        if any(
            isinstance(value, np.ndarray) and not np.isfinite(value).all() for value in given.values() if _floats(value)
        ):
            return
        self.compare(wanted, given, cotangents)

    def compare(self, wanted: Sequence[str], given: dict[str, Any], cotangents: dict[str | int, Any]) -> None:
        """Raise an error if the derivative and differences disagree."""
        spec = self.spec
        dtypes = {spec.form.dtypes[name] for name in wanted} | {str(spec.dtype_of(o)) for o in spec.float_outputs}
        dtype = "float32" if "float32" in dtypes else "float64"
        random = np.random.default_rng(len(wanted))
        point = given
        for attempt in range(_POINTS):
            if attempt:
                point = {
                    name: _moved(value, 1e-3, random.standard_normal(np.shape(value)) * _size(value))
                    if name in wanted
                    else value
                    for name, value in given.items()
                }
            along = {name: random.standard_normal(np.shape(point[name])) * _size(point[name]) for name in wanted}
            weights = {o: random.standard_normal(np.shape(g)) for o, g in cotangents.items()}
            derivative, scale = self.derivative(wanted, point, along, weights)
            tolerance = _TOLERANCE[dtype] * max(scale, 1e-30)
            if not math.isfinite(derivative):
                return
            found: list[float] = []
            for step in _STEPS[dtype]:
                found.append(self.difference(wanted, point, along, weights, step))
                if abs(found[-1] - derivative) <= tolerance or not math.isfinite(found[-1]):
                    return
            agreed = [pair for pair in pairwise(found) if abs(pair[0] - pair[1]) <= 0.1 * abs(pair[1] - derivative)]
            if not agreed:
                return
        message = (
            f"The derived gradient of {spec.form.name}() differs from finite differences of the kernel: "
            f"{derivative:.6g} and {agreed[0][1]:.6g}, on which two steps agree. Please report the kernel; "
            'nb.primitive(..., vjp=) takes a rule of your own. (check="never" leaves this comparison out.)'
        )
        raise ArgumentError(message)

    def derivative(
        self, wanted: Sequence[str], point: dict[str, Any], along: dict[str, Any], weights: dict[str | int, Any]
    ) -> tuple[float, float]:
        """<v, J'w> by the reverse kernel, and the sum of the sizes of its terms."""
        spec = self.spec
        gradients = {name: np.empty(np.shape(point[name]), spec.form.dtypes[name]) for name in wanted}
        cotangents = {o: np.asarray(w, spec.dtype_of(o)) for o, w in weights.items()}
        spec.run_reverse(wanted, point, cotangents, gradients)
        terms = [np.asarray(along[name] * gradients[name], np.float64) for name in wanted]
        return float(sum(term.sum() for term in terms)), float(sum(np.abs(term).sum() for term in terms))

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
        given = {name: _moved(value, step, along[name]) if name in wanted else value for name, value in point.items()}
        for name in spec.form.written:
            given[name] = np.array(given[name])
        found = spec.function(*spec.arguments(given))
        parts = found if isinstance(found, tuple) else (found,)
        return {o: given[o] if isinstance(o, str) else parts[o] for o in spec.float_outputs}


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
