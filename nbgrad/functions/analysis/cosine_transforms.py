"""Discrete cosine and sine transforms, under SciPy's names and with its arguments.

In: array-likes, the type, numbers of points, axes, norms. Out: Tensors. Called by code that `differentiable_source`
runs, by the table of SciPy's functions. Values along one axis, without any scale, are SciPy's (a `host` node of the
graph); the factors of `norm` and `orthogonalize` are applied around that.

A transform is linear, and its adjoint is a transform again. The cosines of types 1 and 4, and all sines but those of
types 2 and 3, are symmetric matrices; types 2 and 3 are each other's transpose; and SciPy's formulas count the elements
at the ends half in the operand of types 1 (cosine: both ends) and 3 (cosine: the first, sine: the last).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...graph.builders import cast, reshape
from ...graph.complex_numbers import is_complex, pair, parts
from ...graph.host_functions import HostFunction, host
from ...graph.ir import Node, broadcast, constant
from ...record.as_node import wrap
from ...record.axes_and_dtypes import only
from ...record.tensor import Tensor
from ..linalg.matrix_batches import with_rule
from .fft_functions import checked_norm, extents_of, fitted, operand

PARTNER = {1: 1, 2: 3, 3: 2, 4: 4}
"""The type of a transform's transpose, and of its inverse."""
_HALVED = {("dct", 1): (0, -1), ("dct", 3): (0,), ("dst", 3): (-1,)}
"""The elements of the operand that SciPy's formula counts half, by transform and type."""


def _run(x: np.ndarray, kind: str, type: int, axis: int) -> np.ndarray:
    from scipy import fft

    return getattr(fft, kind)(x, type, axis=axis, orthogonalize=False)


COSINES = HostFunction("cosines", lambda inputs, params: (inputs[0].shape, inputs[0].dtype), _run)


def _weighted(node: Node, axis: int, places: tuple[int, ...], factor: float) -> Node:
    """Elements at some places along an axis times a factor."""
    if not places:
        return node
    extent: Any = node.shape[axis]
    weights = np.ones(extent, node.dtype)
    weights[list(places)] = factor
    line = reshape(constant(weights), (extent, *[1] * (-1 - axis)))
    return node * broadcast(line, node.shape)


def _transform(x: Node, kind: str, type: int, axis: int) -> Node:
    """A transform without scale along an axis counted from the end."""
    return with_rule(host(COSINES, (x,), kind, type, axis), _formula, x, static=(kind, type, axis))


def _formula(g: Node, node: Node, x: Node, kind: str, type: int, axis: int) -> list[Node | None]:
    g = _weighted(g, axis, _HALVED.get((kind, PARTNER[type]), ()), 2.0)
    return [_weighted(_transform(g, kind, PARTNER[type], axis), axis, _HALVED.get((kind, type), ()), 0.5)]


def _along(x: Node, kind: str, type: int, inverse: bool, axis: int, norm: str, orthogonal: bool) -> Node:
    """One axis of a transform or, if `inverse`, of its inverse, with all that is scaled."""
    type = PARTNER[type] if inverse else type
    if orthogonal:
        x = _weighted(x, axis, _HALVED.get((kind, type), ()), np.sqrt(2.0))
    x = _transform(x, kind, type, axis)
    if orthogonal:
        x = _weighted(x, axis, _HALVED.get((kind, PARTNER[type]), ()), np.sqrt(0.5))
    period = 2 * (x.shape[axis] + {("dct", 1): -1, ("dst", 1): 1}.get((kind, type), 0))
    scaled = {"backward": inverse, "forward": not inverse}
    if norm == "ortho":
        return x * (1 / np.sqrt(period))
    return x * (1 / period) if scaled[norm] else x


def _compute(
    name: str, x: Any, type: Any, s: Any, axes: Any, norm: Any, orthogonalize: Any, kind: str, inverse: bool
) -> Tensor:
    only("type", type, 1, 2, 3, 4)
    norm = checked_norm(norm)
    orthogonal = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    node = operand(x)
    counts, chosen = extents_of(name, node, s, axes)
    if kind == "dct" and type == 1 and any(count < 2 for count in counts):
        message = f"{name} of type 1 needs at least two points along each axis, but got {min(counts)}."
        raise ArgumentError(message)

    def transform(part: Node) -> Node:
        for axis, count in zip(chosen, counts, strict=True):
            part = fitted(part, axis, count)
            part = _along(part, kind, type, inverse, axis - part.ndim, norm, orthogonal)
        return cast(part, sides[0].dtype)

    sides = parts(node) if is_complex(node) else (node,)
    found = [transform(side) for side in sides]
    return wrap(pair(*found) if is_complex(node) else found[0])


def _one_axis(kind: str, inverse: bool) -> Callable[..., Tensor]:
    name = f"i{kind}" if inverse else kind

    def function(
        x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None, orthogonalize: Any = None
    ) -> Tensor:
        s = None if n is None else (n,)
        return _compute(name, x, type, s, (axis,), norm, orthogonalize, kind, inverse)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As `scipy.fft.{name}`, with derivatives."
    return function


def _many_axes(kind: str, inverse: bool) -> Callable[..., Tensor]:
    name = f"i{kind}n" if inverse else f"{kind}n"

    def function(
        x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None, orthogonalize: Any = None
    ) -> Tensor:
        return _compute(name, x, type, s, axes, norm, orthogonalize, kind, inverse)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As `scipy.fft.{name}`, with derivatives."
    return function


dct, idct, dst, idst = _one_axis("dct", False), _one_axis("dct", True), _one_axis("dst", False), _one_axis("dst", True)
dctn, idctn = _many_axes("dct", False), _many_axes("dct", True)
dstn, idstn = _many_axes("dst", False), _many_axes("dst", True)
