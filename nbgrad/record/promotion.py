"""Which dtypes a ufunc computes in: NumPy's own rules, asked once for each combination and remembered.

In: a NumPy (or SciPy) ufunc and operand nodes. Out: the operands cast to what the ufunc's loop takes. Called by
ufuncs.py. Python numbers (`node.weak`) do not widen the dtype of the arrays that they meet (NEP 50). Where a user's
Tensor takes part (`node.tensor`), MindSpore's rules come first: integers take the float dtype that they meet, and where
there is none but a float is needed, float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..graph.builders import cast
from ..graph.ir import BOOL, INT64, Node, broadcast, constant, elementwise, literal, literal_value, plain_dtype, shared
from ..graph.primitives import PRIMITIVES
from ..graph.shapes import Shape
from ..graph.trace import current_trace
from .leaks import numba_message
from .numbers import BAKED, FLOAT64, number

BROADCAST, CONSTANT = PRIMITIVES["broadcast"], PRIMITIVES["constant"]

Dtype = np.dtype[Any]
FLOAT32 = np.dtype(np.float32)
Kind = Any
"""A dtype, or `int`, `float` or `complex` for a Python number."""

COMPARISONS = frozenset(["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
_LOOPS: dict[tuple[Any, ...], tuple[Dtype, ...]] = {}
"""(ufunc, kinds, dtype, casting) -> dtypes of the operands and results. A memo: NumPy takes microseconds to answer."""
_COMMON: dict[tuple[Any, ...], Dtype] = {}
"""Kinds -> the dtype that holds them all. A memo."""
MOST_NUMBERS = 4096
_CONVERTED: dict[tuple[Any, ...], Node] = {}
"""Literals in the dtypes that they were needed in. A memo: the same few numbers occur again and again."""


def kind_of(node: Node) -> Kind:
    """The kind of a node for promotion: its dtype, or the Python type of a number that is weak."""
    if node.weak:
        if node.dtype.kind == "f":
            return float
        if node.dtype.kind in "iu":
            return int
        if node.dtype.kind == "c":
            return complex
    return node.dtype


def loop_dtypes(
    ufunc: np.ufunc, nodes: Sequence[Node], dtype: Any = None, casting: str = "same_kind"
) -> tuple[Dtype, ...]:
    """The dtypes of a ufunc's operands and results.

    Raises
    ------
    DtypeError
        If NumPy has no loop for these operands, or one of another kind.
    """
    kinds = [kind_of(node) for node in nodes]
    if ufunc.__name__ in COMPARISONS:
        _widen_large_numbers(nodes, kinds)
    tensor = any_tensor_rules(nodes)
    key = (ufunc, dtype, casting, tensor, *kinds)
    found = _LOOPS.get(key)
    if found is None:
        if tensor and dtype is None:
            found = _resolve_tensors(ufunc, kinds, casting)
        else:
            found = _resolve(ufunc, kinds, dtype, casting)
        _LOOPS[key] = found
    return found


def any_tensor_rules(nodes: Sequence[Node]) -> bool:
    """Whether a user's Tensor is among operands."""
    for node in nodes:  # noqa: SIM110 (a loop takes half the time of `any`)
        if node.tensor:
            return True
    return False


def float_of(node: Node) -> Dtype:
    """The dtype of a float or complex node; of others, the float dtype that they become where floats are needed."""
    return node.dtype if node.dtype.kind in "fc" else FLOAT32 if node.tensor else FLOAT64


def _widened(kinds: Sequence[Kind]) -> list[Kind]:
    """MindSpore's promotion: integers and booleans take the dtype of the floats that they meet."""
    floats = [kind for kind in kinds if isinstance(kind, np.dtype) and kind.kind in "fc"]
    if floats:
        target: Kind = np.result_type(*floats)
    elif float in kinds and any(isinstance(kind, np.dtype) for kind in kinds):
        target = FLOAT32
    else:
        return list(kinds)
    return [target if isinstance(kind, np.dtype) else kind for kind in kinds]


def _resolve_tensors(ufunc: np.ufunc, kinds: Sequence[Kind], casting: str) -> tuple[Dtype, ...]:
    dtypes = _resolve(ufunc, _widened(kinds), None, casting)
    whole = all(kind is int or (isinstance(kind, np.dtype) and kind.kind in "iub") for kind in kinds)
    if dtypes[0].kind == "f" and whole:
        # Integers where the function needs floats.
        return tuple([FLOAT32 if dtype.kind == "f" else dtype for dtype in dtypes])
    return dtypes


def _widen_large_numbers(nodes: Sequence[Node], kinds: list[Kind]) -> None:
    """Let a comparison with a Python integer that does not fit the dtype run in 64 bits, where it would be an error."""
    for position, node in enumerate(nodes):
        if kinds[position] is int and node.name == "literal":
            others = [k for k in kinds if isinstance(k, np.dtype) and k.kind in "iu"]
            if others and not _fits(int(literal_value(node)), others[0]):
                kinds[position] = node.dtype


def _fits(value: int, dtype: Dtype) -> bool:
    limits = np.iinfo(dtype)
    return limits.min <= value <= limits.max


def _resolve(ufunc: np.ufunc, kinds: Sequence[Kind], dtype: Any, casting: str) -> tuple[Dtype, ...]:
    if len(kinds) != ufunc.nin:
        message = f"{ufunc.__name__} takes {ufunc.nin} argument{'s' if ufunc.nin > 1 else ''}, but got {len(kinds)}."
        raise DtypeError(message)
    if ufunc.__name__ in COMPARISONS and all(kind is int for kind in kinds):
        kinds = [INT64] * len(kinds)  # NumPy would compare Python's integers as objects
    options: dict[str, Any] = {"casting": casting}
    if dtype is not None:
        options["signature"] = (None,) * ufunc.nin + (plain_dtype(np.dtype(dtype)),) * ufunc.nout
    try:
        dtypes = ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout), **options)
    except AttributeError:
        raise DtypeError(numba_message(ufunc.__name__, is_ufunc=True)) from None
    except TypeError as error:
        names = ", ".join("Python " + k.__name__ if isinstance(k, type) else str(k) for k in kinds)
        message = f"{ufunc.__name__} does not work on {names}: {str(error).rstrip('.')}."
        raise DtypeError(message) from None
    if any(d.kind not in "fiubc" or d.itemsize > 16 or (d.kind == "f" and d.itemsize > 8) for d in dtypes):
        message = f"{ufunc.__name__} would give {dtypes[-1]}; Tensors are booleans, integers, floats or complex."
        raise DtypeError(message)
    return dtypes


def common_dtype(nodes: Sequence[Node]) -> Dtype:
    """NumPy's result dtype, as `np.where` and `np.clip` use it."""
    tensor = any_tensor_rules(nodes)
    key = (tensor, *[kind_of(node) for node in nodes])
    found = _COMMON.get(key)
    if found is None:
        kinds = _widened(key[1:]) if tensor else key[1:]
        found = _COMMON[key] = np.result_type(*[kind(0) if isinstance(kind, type) else kind for kind in kinds])
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
            known = _CONVERTED[key] = shared(_converted_literal(node, dtype))
        return known
    if node.weak and node.name == "constant" and dtype.kind != "c" and node.device is None:
        assert node.value is not None
        with np.errstate(over="ignore"):
            return constant(node.value.astype(dtype))
    return cast(node, dtype)


def _converted_literal(node: Node, dtype: Dtype) -> Node:
    value = literal_value(node)
    if node.weak and dtype.kind in "iu" and node.dtype.kind in "iu" and not _fits(int(value), dtype):
        message = f"The Python integer {int(value)} is out of bounds for {dtype}."
        raise ArgumentError(message)
    return literal(value, dtype)


_NUMBERS: dict[tuple[type, float | str, Dtype, Shape], Node] = {}
"""Python numbers that are baked into programs, in the dtypes and shapes that they were needed in. A memo."""


_ARRAYS: dict[float, np.ndarray] = {}
"""Python floats as arrays, which nothing writes to. A memo."""


def _array_of(value: float) -> np.ndarray:
    """A float as an array; not a zero, because -0.0 equals 0.0."""
    if len(_ARRAYS) > MOST_NUMBERS:
        _ARRAYS.clear()
    array = _ARRAYS[value] = np.array(value, FLOAT64)
    array.flags.writeable = False
    return array


def number_like(value: float, dtype: Dtype, shape: Shape) -> Node:
    """A Python number everywhere in an array of the float dtype that it meets."""
    if value.__class__ is float and dtype is FLOAT64 and value not in BAKED:
        trace = current_trace()
        if trace is None or not trace.frozen:
            # Loops meet numbers at every turn: no more is made of them than is needed.
            array = _ARRAYS.get(value)
            if array is None:
                array = _array_of(value)
            node = Node(CONSTANT, (), (), (), dtype, array, True)
            return Node(BROADCAST, (node,), (shape,), shape, dtype) if shape else node
    # Zeros have a sign, which their texts tell.
    key = (value.__class__, value or str(value), dtype, shape)
    known = _NUMBERS.get(key)
    if known is not None:
        return known
    trace = current_trace()
    numbers = trace.numbers if trace is not None and trace.frozen else {}
    known = numbers.get(key)
    if known is None:
        node = numbers.get((value, dtype)) or convert(number(value), dtype)
        known = broadcast(node, shape)
        if node.name == "literal":
            if len(_NUMBERS) > MOST_NUMBERS:
                _NUMBERS.clear()
            _NUMBERS[key] = shared(known)
        else:
            numbers[value, dtype], numbers[key] = node, known
    return known


def promote(nodes: Sequence[Node], dtype: Dtype | None = None) -> list[Node]:
    """Nodes cast to their common dtype."""
    if dtype is None:
        first = nodes[0].dtype
        for node in nodes:
            if node.weak or node.dtype is not first:
                dtype = common_dtype(nodes)
                break
        else:
            return list(nodes)
    return [convert(node, dtype) for node in nodes]
