"""Derivatives of functions of plain arrays by differences of their results.

In: a function that gets ndarrays and returns ndarrays, and the size of steps. Out: the product of its Jacobian with
tangents, by one or two more calls, and of cotangents with its Jacobian, by one or two more calls for each element.
Called by plain_functions.py where a user asks for differences.

The error of central differences is of the order of the square of the step, that of forward differences of the step;
rounding adds the precision of the results over the step. The steps are where both are alike: J. Nocedal and S. Wright,
Numerical Optimization, 2nd edition, section 8.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DtypeError

KINDS = {"central": 1 / 3, "forward": 1 / 2}
"""Kinds of differences, with the power of the precision that is the best relative step."""
Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class Differences:
    """Differences of one function, whose name is `title`; `step` is relative to the size of elements, 1 at least."""

    function: Callable[..., Any]
    kind: str
    step: float | None
    title: str
    run: Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]] = map
    """Calls a function with each of many arguments."""

    def jvp(self, inputs: Arrays, outputs: Arrays, tangents: Arrays, params: dict[str, Any]) -> list[np.ndarray]:
        """The tangents of results of floats, for the tangents of inputs of floats."""
        self._refuse_complex(inputs, "jvp")
        moving = [k for k, array in enumerate(inputs) if array.dtype.kind == "f"]
        largest = max([float(np.max(np.abs(t), initial=0.0)) for t in tangents], default=0.0)
        if not largest:
            return [np.zeros(out.shape, out.dtype) for out in outputs if out.dtype.kind in "fc"]
        step = max(self._step(inputs[k], inputs[k]).max(initial=0.0) for k in moving) / largest

        def moved(factor: float) -> list[np.ndarray]:
            given = list(inputs)
            for k, tangent in zip(moving, tangents, strict=True):
                given[k] = (inputs[k] + factor * step * tangent).astype(inputs[k].dtype)
            return self._results(given, params)

        before = moved(-1.0) if self.kind == "central" else [out for out in outputs if out.dtype.kind in "fc"]
        width = 2 * step if self.kind == "central" else step
        return [(a - b) / width for a, b in zip(moved(1.0), before, strict=True)]

    def vjp(self, inputs: Arrays, outputs: Arrays, cotangents: Arrays, params: dict[str, Any]) -> list[np.ndarray]:
        """The cotangents of inputs of floats, for those of results of floats."""
        self._refuse_complex(inputs, "vjp")
        first = [out for out in outputs if out.dtype.kind in "fc"]
        gradients = {k: np.zeros(a.shape, a.dtype) for k, a in enumerate(inputs) if a.dtype.kind == "f"}
        elements = [(k, place) for k, gradient in gradients.items() for place in np.ndindex(gradient.shape)]

        def slope(element: tuple[int, tuple[int, ...]]) -> float:
            k, place = element
            ends = [inputs[k][place]] * 2
            found = [first, first]
            for side in (0, 1) if self.kind == "central" else (1,):
                given = list(inputs)
                given[k] = inputs[k].copy()
                given[k][place] += (-1, 1)[side] * self._step(inputs[k][place], inputs[k])
                ends[side], found[side] = given[k][place], self._results(given, params)
            width = ends[1] - ends[0]
            pairs = zip(cotangents, found[1], found[0], strict=True)
            return sum(float(np.sum(np.real(np.conj(g) * ((b - a) / width)))) for g, b, a in pairs)

        for (k, place), value in zip(elements, self.run(slope, elements), strict=True):
            gradients[k][place] = value
        return list(gradients.values())

    def _results(self, inputs: Arrays, params: dict[str, Any]) -> list[np.ndarray]:
        """The results of floats."""
        returned = self.function(*[array[()] for array in inputs], **params)
        found = [np.asarray(one) for one in (returned if isinstance(returned, tuple | list) else [returned])]
        return [one for one in found if one.dtype.kind in "fc"]

    def _step(self, value: Any, array: np.ndarray) -> np.ndarray:
        relative = self.step if self.step is not None else float(np.finfo(array.dtype).eps) ** KINDS[self.kind]
        return relative * np.maximum(np.abs(value), 1.0)

    def _refuse_complex(self, inputs: Arrays, which: str) -> None:
        if any(array.dtype.kind == "c" for array in inputs):
            message = (
                f"the {which} of {self.title} by differences is for real arguments, not complex ones. Give a {which}."
            )
            raise DtypeError(message)
