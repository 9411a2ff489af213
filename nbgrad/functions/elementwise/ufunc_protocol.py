"""NumPy's `__array_ufunc__`: calls of a ufunc, or of one of its methods, with a Tensor.

In: the ufunc, the method's name, inputs and options exactly as NumPy hands them over. Out: Tensors, or `out`. Called by
Tensor.__array_ufunc__ and by ufunc_functions.py. Options that cannot be honoured are errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, ShapeError
from ...functions.arrays.result_order import memory_order
from ...graph.builders import accumulate, cast, reshape
from ...graph.ir import BOOL, Node, elementwise, strong
from ...graph.shapes import broadcasts
from ...process.private_interfaces import NOT_GIVEN
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import axis_of, deliver, from_last, only, to_last, write
from ...record.promotion import convert
from ...record.tensor import Tensor
from ...runtime.memory_order import copied
from ..arrays.cumulative import cumprod, cumsum
from ..arrays.result_order import like_loop
from . import ufunc_methods
from .ufuncs import apply_ufunc, product

_RUNNING = frozenset(["maximum", "minimum"])
_NEUTRAL_OPTIONS = {"order": "K", "subok": True, "casting": "same_kind"}


def array_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """One call of a ufunc or of its `reduce`, `accumulate`, `outer` or `at`."""
    if ufunc.signature is not None and method == "__call__" and not options and len(inputs) == ufunc.nin:
        return product(ufunc, inputs)
    options = dict(options)
    out = options.pop("out", None)
    outs = out if isinstance(out, tuple) else (out,)
    if ufunc.__name__ == "isnat":
        message = "numpy.isnat works on dates, which Tensors do not hold. Apply it to x.asnumpy()."
        raise DtypeError(message)
    handler = _METHODS.get(method)
    if handler is None:
        message = f"numpy.{ufunc.__name__}.{method} does not work on Tensors."
        raise DtypeError(message)
    return handler(ufunc, inputs, outs, options)


def _no_more(ufunc: np.ufunc, options: dict[str, Any]) -> None:
    """Raise if options are left that are not at their defaults."""
    for name, value in options.items():
        if name not in _NEUTRAL_OPTIONS or value != _NEUTRAL_OPTIONS[name]:
            message = f"numpy.{ufunc.__name__} does not take {name}={value!r} for Tensors."
            raise ArgumentError(message)


def _are_last(axes: Any) -> bool:
    """Whether axes are the last ones in order, counted from the end, as without `axes`."""
    given = (axes,) if isinstance(axes, int) else tuple(axes)
    return given == tuple(range(-len(given), 0))


def _call(ufunc: np.ufunc, inputs: tuple[Any, ...], outs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    mask, dtype = options.pop("where", True), options.pop("dtype", None)
    casting, order = options.pop("casting", "same_kind"), options.pop("order", "K")
    if ufunc.signature is not None and all(map(_are_last, options.get("axes", ()))):
        options.pop("axes", None)  # an ndarray says them in `a @= b`
    _no_more(ufunc, options)
    if ufunc.ntypes == 1 and ufunc.types[0].startswith("O") and mask is True and dtype is None:
        from ..analysis.applying import python_ufunc

        return python_ufunc(ufunc, inputs)
    if len(inputs) > ufunc.nin:
        if len(inputs) > ufunc.nin + ufunc.nout or any(out is not None for out in outs):
            message = f"{ufunc.__name__} takes {ufunc.nin} arrays, but {len(inputs)} were given."
            raise ArgumentError(message)
        inputs, outs = inputs[: ufunc.nin], (*inputs[ufunc.nin :], *[None] * (ufunc.nin + ufunc.nout - len(inputs)))
    if ufunc.signature is not None and dtype is not None:
        inputs, dtype = tuple([wrap(cast(as_node(value), np.dtype(dtype))) for value in inputs]), None
    results = apply_ufunc(ufunc, *inputs, dtype=dtype, casting=casting)
    several = isinstance(results, tuple)
    nodes = results if isinstance(results, tuple) else (results,)
    if len(outs) != len(nodes):
        outs = (None,) * len(nodes)
    if order != "K":
        order = memory_order(inputs, order, "C", "F", "A")
        nodes = tuple([copied(node, order) for node in nodes])
    delivered = tuple([_deliver(ufunc, node, out, mask, casting) for node, out in zip(nodes, outs, strict=True)])
    return delivered if several else delivered[0]


def _deliver(ufunc: np.ufunc, result: Node, out: Any, mask: Any, casting: str) -> Any:
    """A result as a Tensor, or written to `out` where `mask` is true."""
    if out is None:
        if mask is not True:
            message = (
                f"numpy.{ufunc.__name__} with where= leaves the other elements undefined unless out= gives them. "
                "Give out=, or use np.where(mask, result, otherwise)."
            )
            raise ArgumentError(message)
        return wrap(strong(result))
    if mask is not True:
        condition = convert(as_node(mask), BOOL)
        shape = out.shape
        if not broadcasts(condition.shape, shape):
            message = f"where has shape {condition.shape}, but out has shape {shape}."
            raise ShapeError(message)
        if not np.can_cast(result.dtype, out.dtype, casting):  # pyright: ignore[reportArgumentType]
            own = np.dtype(out.dtype)
            message = f"{ufunc.__name__} gives {result.dtype}, which cannot be stored in out, an array of {own}."
            raise DtypeError(message)
        result = elementwise("select", condition, cast(result, out.dtype), as_node(out))
    if isinstance(out, Tensor):
        write(out, result, ufunc.__name__, casting)
        return out
    if isinstance(out, np.ndarray):
        np.copyto(out, np.asarray(wrap(result)), casting=casting)  # pyright: ignore[reportArgumentType, reportCallIssue]
        return out
    message = f"out must be a Tensor or an ndarray, but is a {type(out).__name__}."
    raise DtypeError(message)


def _reduce(ufunc: np.ufunc, inputs: tuple[Any, ...], outs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    node = as_node(inputs[0])
    # NumPy hands the arguments over by position where the user did.
    names = ("axis", "dtype", "out", "keepdims", "initial", "where")
    options = {**dict(zip(names, inputs[1:], strict=False)), **options}
    result = ufunc_methods.reduce_any(
        ufunc,
        node,
        options.pop("axis", 0),
        options.pop("keepdims", False),
        _given(options.pop("initial", None)),
        options.pop("where", True),
        options.pop("dtype", None),
    )
    _no_more(ufunc, options)
    return deliver(result, outs[0])


def _given(initial: Any) -> Any:
    return None if initial is NOT_GIVEN else initial


def _accumulate(ufunc: np.ufunc, inputs: tuple[Any, ...], outs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    axis, dtype = options.pop("axis", 0), options.pop("dtype", None)
    _no_more(ufunc, options)
    if ufunc.__name__ in ("add", "multiply"):
        function = cumsum if ufunc.__name__ == "add" else cumprod
        return deliver(function(inputs[0], axis=axis, dtype=dtype)._node, outs[0])
    only("dtype", dtype, None)
    node = as_node(inputs[0])
    at = axis_of(axis, node.ndim)
    if ufunc.__name__ not in _RUNNING or node.dtype.kind == "c":
        found = ufunc_methods.accumulate_ufunc(ufunc, node, at)
    else:
        found = from_last(accumulate(ufunc.__name__, to_last(node, at)), at)
    return deliver(like_loop(found, [node]), outs[0])


def _outer(ufunc: np.ufunc, inputs: tuple[Any, ...], outs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    a, b = (as_node(value) for value in inputs)
    column = reshape(a, a.shape + (1,) * b.ndim)
    column.weak = a.weak
    return _call(ufunc, (Tensor._of(column), Tensor._of(b)), outs, options)


def _reduceat(ufunc: np.ufunc, inputs: tuple[Any, ...], outs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    options = {**dict(zip(("axis", "dtype"), inputs[2:], strict=False)), **options}
    node = as_node(inputs[0])
    axis, dtype = axis_of(options.pop("axis", 0), node.ndim), options.pop("dtype", None)
    _no_more(ufunc, options)
    return deliver(ufunc_methods.reduce_at(ufunc, node, inputs[1], axis, dtype), outs[0])


def _at(ufunc: np.ufunc, inputs: tuple[Any, ...], outs: tuple[Any, ...], options: dict[str, Any]) -> None:
    """`np.add.at(x, key, value)`: repeated positions add up."""
    if len(inputs) != ufunc.nin + 1 or ufunc.nout != 1:
        message = f"numpy.{ufunc.__name__}.at takes an array, positions and {ufunc.nin - 1} operands."
        raise ArgumentError(message)
    given: list[Any] = [*inputs, None]
    target, key, value = given[:3]
    if isinstance(target, Tensor):
        ufunc_methods.at(ufunc, target, key, value)
        return
    plain = [np.asarray(v) if isinstance(v, Tensor) else v for v in inputs[2:]]
    keys = key if isinstance(key, tuple) else (key,)
    plain_keys = tuple([np.asarray(k) if isinstance(k, Tensor) else k for k in keys])
    ufunc.at(target, plain_keys if isinstance(key, tuple) else plain_keys[0], *plain)


_METHODS = {
    "__call__": _call,
    "reduce": _reduce,
    "accumulate": _accumulate,
    "reduceat": _reduceat,
    "outer": _outer,
    "at": _at,
}
