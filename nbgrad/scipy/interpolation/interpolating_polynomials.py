"""`scipy.interpolate.BarycentricInterpolator` for recorded values: one polynomial through all points.

In: abscissae, values. Out: a callable object that gives Tensors, with derivatives by points, values and abscissae.
Called by code that `differentiable_source` runs, by scipy_table.py. SciPy's formula puts a value in the place of 0/0 at
an abscissa, which has no slope there; products of distances do.
"""

from __future__ import annotations

from typing import Any

from ... import numpy as np
from ...errors import ArgumentError
from ...record.as_node import as_node
from ...runtime.evaluate import require
from ...transforms.jacobians import jvp
from ..scipy_objects import ScipyObject
from .line_data import data, laid_out


class BarycentricInterpolator(ScipyObject):
    """A polynomial through points, in Lagrange's form (Berrut and Trefethen 2004, section 2)."""

    def __init__(self, xi: Any, yi: Any = None, axis: int = 0, *, wi: Any = None, rng: Any = None) -> None:
        if yi is None or wi is not None:
            message = "A BarycentricInterpolator of recorded values takes xi and yi at once, and no weights wi."
            raise ArgumentError(message)
        del rng
        self.xi, self.yi, self._axis = data("BarycentricInterpolator", xi, yi, axis, 1)
        self.n = self.xi.shape[0]
        apart = self.xi[:, None] - self.xi
        require(as_node(np.all((apart != 0) | np.eye(self.n, dtype=bool))), "Interpolation points xi must be distinct.")

    @classmethod
    def of(cls, original: Any) -> Any:
        """SciPy's object as one of ours; one that has no values yet stays SciPy's."""
        if original.yi is None:
            return original
        values = original.yi.reshape((original.n, *original._y_extra_shape))
        made = cls(original.xi, values)
        made._axis = original._y_axis
        return made

    def __call__(self, x: Any) -> Any:
        """The values at points."""
        at = np.asarray(x) * 1.0
        same = np.eye(self.n, dtype=bool)
        apart = np.where(same, 1.0, self.xi[:, None] - self.xi)
        shares = np.where(same, 1.0, (at[..., None, None] - self.xi) / apart)
        return laid_out(np.tensordot(np.prod(shares, axis=-1), self.yi, 1), at.ndim, self._axis)

    def derivative(self, x: Any, der: int = 1) -> Any:
        """A derivative at points."""
        function: Any = self
        for _ in range(der):
            function = _slope(function)
        return function(np.asarray(x) * 1.0)

    def derivatives(self, x: Any, der: int | None = None) -> Any:
        """The values and the derivatives at points, `der` of them."""
        return np.stack([self.derivative(x, order) for order in range(self.n if der is None else der)])


def _slope(function: Any) -> Any:
    """The derivative of a function whose value at each point depends on that point alone."""
    return lambda x: jvp(function, (x,), (np.ones(x.shape),))[1]
