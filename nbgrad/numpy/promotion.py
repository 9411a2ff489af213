"""Which dtypes a ufunc computes in: NumPy's own rules, asked once for each combination and remembered.

In: a NumPy (or SciPy) ufunc and operand nodes. Out: the operands cast to what the ufunc's loop takes. Called by
ufuncs.py. Python numbers (`node.weak`) do not widen the dtype of what they meet (NEP 50).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..graph.ir import BOOL, INT64, Node, constant, elementwise, literal, literal_value
from ..graph.primitives import cast

Dtype = np.dtype[Any]
Kind = Any
"""A dtype, or `int` or `float` for a Python number."""

COMPARISONS = frozenset(["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
_LOOPS: dict[tuple[Any, ...], tuple[Dtype, ...]] = {}
"""(ufunc, kinds, dtype, casting) -> dtypes of the operands and results. A memo: NumPy takes microseconds to answer."""
_COMMON: dict[tuple[Kind, ...], Dtype] = {}
"""Kinds -> the dtype that holds them all. A memo."""
MOST_NUMBERS = 4096
_CONVERTED: dict[tuple[Any, ...], Node] = {}
"""Literals in the dtypes that they were needed in. A memo: the same few numbers occur again and again."""


def kind_of(node: Node) -> Kind:
    """What promotion needs to know about a node."""
    if node.weak:
        if node.dtype.kind == "f":
            return float
        if node.dtype.kind == "i":
            return int
    return node.dtype


def loop_dtypes(
    ufunc: np.ufunc, nodes: Sequence[Node], dtype: Any = None, casting: str = "same_kind"
) -> tuple[Dtype, ...]:
    """The dtypes of a ufunc's operands and results.

    Raises
    ------
    DtypeError
        If NumPy has no loop for these operands, or one that is not real.
    """
    kinds = [kind_of(node) for node in nodes]
    if ufunc.__name__ in COMPARISONS:
        _widen_large_numbers(nodes, kinds)
    key = (ufunc, dtype, casting, *kinds)
    found = _LOOPS.get(key)
    if found is None:
        found = _LOOPS[key] = _resolve(ufunc, kinds, dtype, casting)
    return found


def _widen_large_numbers(nodes: Sequence[Node], kinds: list[Kind]) -> None:
    """Comparing with a Python integer that does not fit the dtype is done in int64 instead of being an error."""
    for position, node in enumerate(nodes):
        if kinds[position] is int and node.name == "literal":
            others = [k for k in kinds if isinstance(k, np.dtype) and k.kind in "iu"]
            if others and not _fits(int(literal_value(node)), others[0]):
                kinds[position] = INT64


def _fits(value: int, dtype: Dtype) -> bool:
    limits = np.iinfo(dtype)
    return limits.min <= value <= limits.max


def _resolve(ufunc: np.ufunc, kinds: Sequence[Kind], dtype: Any, casting: str) -> tuple[Dtype, ...]:
    options: dict[str, Any] = {"casting": casting}
    if dtype is not None:
        options["signature"] = (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout
    try:
        dtypes = ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout), **options)
    except TypeError as error:
        names = ", ".join("Python " + k.__name__ if isinstance(k, type) else str(k) for k in kinds)
        message = f"{ufunc.__name__} does not work on {names}: {str(error).rstrip('.')}."
        raise DtypeError(message) from None
    if any(d.kind not in "fiub" for d in dtypes):
        message = f"{ufunc.__name__} would give {dtypes[-1]}; Tensors are booleans, integers or real numbers."
        raise DtypeError(message)
    return dtypes


def common_dtype(nodes: Sequence[Node]) -> Dtype:
    """NumPy's result dtype, as `np.where` and `np.clip` use it."""
    key = tuple([kind_of(node) for node in nodes])
    found = _COMMON.get(key)
    if found is None:
        found = _COMMON[key] = np.result_type(*[kind(0) if isinstance(kind, type) else kind for kind in key])
    return found


def convert(node: Node, dtype: Dtype) -> Node:
    """A node in another dtype. Python numbers are converted now; a number is true unless it is zero."""
    if node.dtype == dtype:
        return node
    if dtype == BOOL:
        return elementwise("not_equal", node, 0)
    if node.name == "literal":
        key = (node.params[0], node.dtype, dtype, node.weak)
        known = _CONVERTED.get(key)
        if known is None:
            if len(_CONVERTED) > MOST_NUMBERS:
                _CONVERTED.clear()
            known = _CONVERTED[key] = _converted_literal(node, dtype)
        return known
    if node.weak and node.name == "constant":
        assert node.value is not None
        with np.errstate(over="ignore"):
            return constant(node.value.astype(dtype))
    return cast(node, dtype)


def _converted_literal(node: Node, dtype: Dtype) -> Node:
    value = literal_value(node)
    if node.weak and dtype.kind in "iu" and node.dtype.kind == "i" and not _fits(int(value), dtype):
        message = f"The Python integer {int(value)} is out of bounds for {dtype}."
        raise ArgumentError(message)
    return literal(value, dtype)
