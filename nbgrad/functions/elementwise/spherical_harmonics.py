"""Legendre's functions and spherical harmonics as `scipy.special` has them since 1.15, which are no ufuncs of NumPy's.

In: array-likes. Out: Tensors. Called by code that `differentiable_source` runs, by scipy_table.py. SciPy computes the
values. Derivatives are functions of neighbouring orders or degrees, by formulas without a division where SciPy's own
argument is an angle: they hold at the poles, too. Formulas by their numbers in the NIST Digital Library of Mathematical
Functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError
from ...graph.builders import cast, reshape
from ...graph.complex_numbers import is_complex, pair
from ...graph.formulas import choose
from ...graph.host_functions import HostFunction, host
from ...graph.ir import Node, broadcast, elementwise, make
from ...graph.shapes import joint_shape
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import inexact
from ...record.tensor import Tensor
from .scipy_functions import Partial, PartialsRule, apply, cos, last_dtype, number, sin, zero


def _run(name: str, *options: str) -> Any:
    def run(*given: Any) -> np.ndarray:
        import scipy.special

        arrays = given[: len(given) - len(options)]
        named = dict(zip(options, given[len(arrays) :], strict=True))
        last = np.asarray(arrays[-1])
        return np.asarray(getattr(scipy.special, name)(*arrays, **named)).reshape(last.shape).astype(last.dtype)

    return run


LEGENDRE = HostFunction("scipy.special.legendre_p", last_dtype, _run("legendre_p"))
ASSOCIATED = HostFunction("scipy.special.assoc_legendre_p", last_dtype, _run("assoc_legendre_p", "norm"))
SPHERICAL = HostFunction("scipy.special.sph_legendre_p", last_dtype, _run("sph_legendre_p"))


def _value(function: HostFunction, slope: Partial, nodes: tuple[Node, ...], *params: Any) -> Node:
    rule = PartialsRule((*[zero] * (len(nodes) - 1), slope))
    return make("custom", (host(function, nodes, *params), *nodes), (rule, 0))


def _as_scipys(name: str, node: Node, *sample: Any) -> Tensor:
    """The result in SciPy's shape: versions differ in an axis of the one derivative in front, that of order 0."""
    import scipy.special

    front = (1,) * np.ndim(getattr(scipy.special, name)(*sample))
    return wrap(reshape(node, (*front, *node.shape)))


def _operands(name: str, diff_n: Any, orders: tuple[Any, ...], x: Any) -> tuple[Node, ...]:
    if not isinstance(diff_n, int) or diff_n:
        message = (
            f"{name} has no diff_n for Tensors, but got {diff_n!r}. Its derivatives come from nb.jacfwd or nb.grad."
        )
        raise ArgumentError(message)
    nodes = [*map(as_node, orders), inexact(as_node(x))]
    if any(node.dtype.kind not in "iu" for node in nodes[:-1]) or is_complex(nodes[-1]):
        message = f"{name} takes integers and then real numbers, but got {', '.join(str(n.dtype) for n in nodes)}."
        raise DtypeError(message)
    shape = joint_shape(*[node.shape for node in nodes[:2]])
    for node in nodes[2:]:
        shape = joint_shape(shape, node.shape)
    return tuple([broadcast(node, shape) for node in nodes])


def legendre_p(n: Any, z: Any, *, diff_n: int = 0) -> Tensor:
    """Legendre's polynomial of a degree."""
    return _as_scipys("legendre_p", _value(LEGENDRE, _legendre_slope, _operands("legendre_p", diff_n, (n,), z)), 1, 0.5)


def _legendre_slope(value: Node, n: Node, z: Node) -> Node:
    """[18.9.15, 18.7.9]"""
    none = elementwise("less", n, 1)
    found = apply("eval_gegenbauer", choose(none, 0, n - 1, n), number(1.5, z), z)
    return elementwise("select", none, z * 0, found)


def assoc_legendre_p(n: Any, m: Any, z: Any, *, norm: bool = False, diff_n: int = 0) -> Tensor:
    """Ferrers' function of a degree and an order, between -1 and 1."""
    node = _associated(bool(norm), *_operands("assoc_legendre_p", diff_n, (n, m), z))
    return _as_scipys("assoc_legendre_p", node, 1, 0, 0.5)


def _associated(norm: bool, n: Node, m: Node, z: Node) -> Node:
    def slope(value: Node, n: Node, m: Node, z: Node) -> Node:
        """[14.10.5], with the quotient of both norms."""
        degree, order = cast(n, z.dtype), cast(m, z.dtype)
        lower = _associated(norm, choose(elementwise("less", n, 1), 0, n - 1, n), m, z)
        factor = degree + order
        if norm:
            ratio = (degree * 2 + 1) / choose(elementwise("less", n, 1), 1, degree * 2 - 1, degree)
            factor = elementwise("sqrt", factor * (degree - order) * ratio)
        return (degree * z * value - factor * lower) / (z * z - 1)

    return _value(ASSOCIATED, slope, (n, m, z), norm)


def sph_legendre_p(n: Any, m: Any, theta: Any, *, diff_n: int = 0) -> Tensor:
    """The factor of a spherical harmonic that depends on the polar angle."""
    return _as_scipys("sph_legendre_p", _spherical(*_operands("sph_legendre_p", diff_n, (n, m), theta)), 1, 0, 0.5)


def _spherical(n: Node, m: Node, theta: Node) -> Node:
    return _value(SPHERICAL, _spherical_slope, (n, m, theta))


def _spherical_slope(value: Node, n: Node, m: Node, theta: Node) -> Node:
    """By the two neighbouring orders, as the ladder operators of angular momentum have it (Varshalovich, Moskalev and
    Khersonskii, Quantum Theory of Angular Momentum, 5.8)."""
    degree, order = cast(n, theta.dtype), cast(m, theta.dtype)
    up = _root((degree - order) * (degree + order + 1)) * _spherical(n, m + 1, theta)
    down = _root((degree + order) * (degree - order + 1)) * _spherical(n, m - 1, theta)
    return (up - down) * 0.5


def _root(square: Node) -> Node:
    """Zero for orders above the degree, whose functions are zero."""
    return elementwise("sqrt", elementwise("maximum", square, 0))


def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, *, diff_n: int = 0) -> Tensor:
    """The spherical harmonic of a degree and an order, at a polar and an azimuthal angle."""
    n, m, polar = _operands("sph_harm_y", diff_n, (n, m), theta)
    size = _spherical(n, m, polar)
    azimuth = inexact(as_node(phi))
    shape = joint_shape(size.shape, azimuth.shape)
    turned = broadcast(cast(m, azimuth.dtype), shape) * broadcast(azimuth, shape)
    size = broadcast(size, shape)
    return _as_scipys("sph_harm_y", pair(size * cos(turned), size * sin(turned)), 1, 0, 0.5, 0.5)
