"""Primitives without operands, and those that change no value: aliases, users' rules, calls of library functions.

In: nothing. Out: tables of rows. Called by primitives.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .host_functions import run_host
from .host_functions import shape_rule as host_shape
from .ir import INT64, Node, Params
from .rows import Linear, NoDerivative, ShapeAndDtype, Transpose, light, named, row


def _given(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    message = "source nodes are made by their own builders in ir.py"
    raise AssertionError(message)


def _iota(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    return (params[0],), INT64


def _first(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    """A custom rule's value is its first input; the rule reads the others."""
    return inputs[0].shape, inputs[0].dtype


def _host(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    return host_shape(tuple(inputs), params)


_same: Transpose = lambda g, node: g  # noqa: E731
_no_operands = NoDerivative("it has no operands")

SOURCES = named(
    input=row("source", _given, None, _no_operands),
    constant=row("source", _given, None, _no_operands),
    literal=row("source", _given, None, _no_operands),
    iota=row("source", _iota, lambda params: np.arange(params[0], dtype=np.int64), _no_operands),
)
WRAPPERS = named(
    alias=light(lambda x: x, Linear(lambda node: (_same,))),
    stop_gradient=light(lambda x: x, NoDerivative("stop_gradient was asked for")),
    custom=light(lambda value, *_: value, NoDerivative("differentiate.py calls the user's rule"), _first),
)
CALLS = named(host=row("special", _host, run_host, NoDerivative("a custom node around it has the rule")))
