"""Functions whose results lie in memory otherwise than those of the functions of which they are composed here.

In: a function of arrays. Out: the same function, whose results lie in memory as NumPy's do. Called as a decorator by
the files of `nbgrad.functions`; memory_order.py has the rules for everything else. Arrays in C order cost one question.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ...graph.ir import Node, placeholder
from ...record import shared_memory
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import only
from ...record.tensor import Tensor
from ...runtime.memory_order import copied, like_copy, may_differ, order_of_loop, strides_of, with_axis_order

Function = TypeVar("Function", bound=Callable[..., Any])


def like_argument(position: int = 0, order: str = "K") -> Callable[[Function], Function]:
    """For functions that begin with a copy of an argument in order "K" or "A", or with zeros like it."""

    def decorator(function: Function) -> Function:
        @functools.wraps(function)
        def in_its_order(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            source = args[position] if len(args) > position else next(iter(kwargs.values()), None)
            node = source._node if isinstance(source, Tensor) else None
            if type(source) is np.ndarray and not source.flags.c_contiguous:
                node = placeholder(source.shape, source.dtype)
                node.layout = source.strides

            def arranged(found: Node) -> Node:
                if found.ndim < 2 or (found.layout is None and (node is None or not may_differ(node))):
                    return found
                if node is None or node.ndim != found.ndim:
                    return copied(found, "C")
                return like_copy(found, node) if order == "K" else copied(found, memory_order(source, order, "A"))

            return _each(arranged, result)

        return in_its_order  # type: ignore[return-value]

    return decorator


def in_c_order(function: Function) -> Function:
    """For functions whose results are in C order, whatever their arguments are."""

    @functools.wraps(function)
    def with_results_in_order(*args: Any, **kwargs: Any) -> Any:
        return _each(lambda found: copied(found, "C"), function(*args, **kwargs))

    return with_results_in_order  # type: ignore[return-value]


def as_loop(rule: Callable[..., Any]) -> Callable[..., Any]:
    """For ufuncs' rules on nodes: results lie as the loop over the operands runs."""

    @functools.wraps(rule)
    def with_results_as_operands(*nodes: Node) -> Any:
        results = rule(*nodes)
        if isinstance(results, tuple):
            return tuple([like_loop(found, nodes) for found in results])
        return like_loop(results, nodes)

    return with_results_as_operands


def like_loop(found: Node, nodes: Sequence[Node]) -> Node:
    """A node that lies as NumPy's loop over operands runs."""
    if found.layout is None and not any(node.layout is not None or may_differ(node) for node in nodes):
        return found
    alike = [strides_of(node) for node in nodes if node.shape == found.shape]
    return with_axis_order(found, order_of_loop(found.shape, alike))


def like_batches(found: Node, core: int, *nodes: Node) -> Node:
    """A node that lies as results of NumPy's generalised ufuncs do: its last `core` axes in C order, and before them
    the axes that count matrices as the loop over those of the operands runs."""
    lead = found.ndim - core
    if lead < 2 or not any(may_differ(node) for node in nodes):
        return found
    known: list[tuple[int, ...]] = []
    for node in nodes:
        own = [0 if n == 1 else s for n, s in zip(node.shape[:-2], strides_of(node)[:-2], strict=True)]
        known.append((*[0] * (lead - len(own)), *own))
    return with_axis_order(found, [*order_of_loop(found.shape[:lead], known), *range(lead, found.ndim)])


def _each(arranged: Callable[[Node], Node], result: Any) -> Any:
    """A result, or each of several, in its order; memory of its own is the only thing that changes."""
    if isinstance(result, Tensor):
        node = arranged(result._node)
        return result if node is result._node or hasattr(result, "_base") else wrap(node)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[_each(arranged, part) for part in result])
    if isinstance(result, tuple | list):
        return type(result)([_each(arranged, part) for part in result])
    return result


def memory_order(a: Any, order: str | None, *allowed: str) -> str:
    """The order that is meant by "A": "F" for an array, or a tuple of them, in Fortran's order and not in C's."""
    order = "K" if order is None and "K" in allowed else order or "C"
    order = order.upper() if isinstance(order, str) else order
    only("order", order, *allowed)
    if order != "A":
        return order
    tensors = [v if isinstance(v, Tensor) else Tensor._of(as_node(v)) for v in (a if isinstance(a, tuple) else (a,))]
    f, c = (all(shared_memory.is_in_order(tensor, one) for tensor in tensors) for one in "FC")
    return "F" if f and not c else "C"
