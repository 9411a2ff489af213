"""Discrete Fourier transforms with a derivative: the three kinds that all others are made of.

In: nodes, axes counted from the end, a norm. Out: nodes. Called by fft_functions.py. Values are SciPy's (a `host` node
of the graph). A transform is linear, so that its derivative is another transform:

- complex to complex: the adjoint is the transform in the other direction, unscaled where this one is scaled by 1 / n.
- real to half of the spectrum: the other half is the conjugate, and has no cotangent of its own.
- half of the spectrum to real: the elements of the half stand for two each, but for the first and, if the number of
  points is even, the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...graph.builders import cast, reshape
from ...graph.host_functions import HostFunction, host
from ...graph.ir import Node, broadcast, constant
from ..linalg.matrix_batches import complex_dtype_of, like_operand, real_dtype_of, with_rule
from .fourier_routines import Axes, complex_transform, from_half, half_shape, to_half, whole_shape

DUAL = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
"""The norm of the adjoint of a transform: NumPy's names say which direction is scaled by 1 / n."""


def _into(run: Callable[..., Any]) -> Callable[..., None]:
    """A transform that writes its result into an array."""
    return lambda out, *arguments: run(*arguments, out=out)


FFTN = HostFunction(
    "fftn",
    lambda inputs, params: (inputs[0].shape, complex_dtype_of(inputs[0].dtype)),
    complex_transform,
    _into(complex_transform),
)
RFFTN = HostFunction(
    "rfftn",
    lambda inputs, params: (half_shape(inputs[0].shape, params[0]), complex_dtype_of(inputs[0].dtype)),
    to_half,
    _into(to_half),
)
IRFFTN = HostFunction(
    "irfftn",
    lambda inputs, params: (whole_shape(inputs[0].shape, params[0], params[1]), real_dtype_of(inputs[0].dtype)),
    from_half,
    _into(from_half),
)


def transform(x: Node, axes: Axes, forward: bool, norm: str) -> Node:
    """All frequencies of a real or complex array along axes, or the way back."""
    return with_rule(host(FFTN, (x,), axes, forward, norm), _transform_formula, x, static=(axes, forward, norm))


def _transform_formula(g: Node, node: Node, x: Node, axes: Axes, forward: bool, norm: str) -> list[Node | None]:
    return [like_operand(transform(g, axes, not forward, DUAL[norm]), x)]


def half_spectrum(x: Node, axes: Axes, norm: str) -> Node:
    """The frequencies of a real array; of the last of the axes the first half only."""
    return with_rule(host(RFFTN, (x,), axes, norm), _half_formula, x, static=(axes, norm))


def _half_formula(g: Node, node: Node, x: Node, axes: Axes, norm: str) -> list[Node | None]:
    n = x.shape[axes[-1]]
    return [from_half_spectrum(g * _shares(g, n, axes[-1], 0.5), n, axes, DUAL[norm])]


def from_half_spectrum(x: Node, n: int, axes: Axes, norm: str) -> Node:
    """The real array, of n elements along the last of the axes, whose frequencies have a given first half."""
    return with_rule(host(IRFFTN, (x,), n, axes, norm), _whole_formula, x, static=(n, axes, norm))


def _whole_formula(g: Node, node: Node, x: Node, n: int, axes: Axes, norm: str) -> list[Node | None]:
    spectrum = half_spectrum(g, axes, DUAL[norm])
    return [spectrum * _shares(spectrum, n, axes[-1], 2.0)]


def _shares(spectrum: Node, n: int, axis: int, inner: float) -> Node:
    """1 for the frequencies that are their own conjugates, another number for those that stand for two."""
    extent: Any = spectrum.shape[axis]
    values = np.full(extent, inner, real_dtype_of(spectrum.dtype))
    values[0] = 1.0
    if n % 2 == 0:
        values[n // 2] = 1.0
    line = reshape(constant(values), (extent, *[1] * (-1 - axis)))
    return cast(broadcast(line, spectrum.shape), spectrum.dtype)
