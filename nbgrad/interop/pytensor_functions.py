"""Functions of arrays as differentiable operations of PyTensor, in which PyMC's models are written.

In: a function of arrays. Out: a function of PyTensor's variables, which adds an `Op` to their graph. Called by users.
Values and derivatives run as compiled programs; the derivative of an operation is an operation of the same kind.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiled.jit import jit
from ..errors import ArgumentError, DtypeError
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from .derivative_rules import pullback
from .result_types import ResultType, result_types

TRIED = (12, 15)
"""Extents for axes whose length PyTensor does not know. What both have in common does not depend on the length."""


def pytensor_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of PyTensor's variables that computes, and differentiates, by nbgrad.

    Parameters
    ----------
    fn : callable
        Takes arrays; returns an array or a tuple of them. The number of axes and the dtypes of the results depend on
        those of the arguments alone.

    Returns
    -------
    callable
        Takes PyTensor's variables, PyMC's random variables, and arrays, by position; gives variables. Differentiable to
        any order, in reverse mode.

    Raises
    ------
    ImportError
        Without PyTensor.
    DtypeError
        If `fn` is no function; when it is called, if it does not return arrays, or has complex ones.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> norm = nb.interop.pytensor_function(lambda x: np.sqrt(np.sum(x * x)))    # doctest: +SKIP
    >>> x = pytensor.tensor.dvector("x")                                        # doctest: +SKIP
    >>> pytensor.function([x], pytensor.grad(norm(x), x))([3.0, 4.0])           # doctest: +SKIP
    array([0.6, 0.8])
    """
    check_function(fn, "pytensor_function")
    op = operation(fn)

    @functools.wraps(fn, updated=())
    def called(*args: Any) -> Any:
        found = op(*args, return_list=True)
        return tuple(found) if op.gives_tuple else found[0]

    return called


def operation(fn: Callable[..., Any], like: tuple[int, ...] | None = None) -> Any:
    """An `Op` that calls a function, whose results have the types of the inputs at the positions `like`, if given."""
    return _class()(fn, like)


@functools.cache
def _class() -> Any:
    """The class of operations; PyTensor is imported here."""
    from pytensor.gradient import DisconnectedType  # pyright: ignore[reportMissingImports]
    from pytensor.graph.basic import Apply  # pyright: ignore[reportMissingImports]
    from pytensor.graph.op import Op  # pyright: ignore[reportMissingImports]
    from pytensor.tensor import as_tensor_variable, tensor  # pyright: ignore[reportMissingImports]
    from pytensor.tensor.exceptions import ShapeError  # pyright: ignore[reportMissingImports]

    class Called(Op):
        """The function in PyTensor's graph. Two of one function are equal, so that equal calls become one."""

        __props__ = ("fn", "like")

        def __init__(self, fn: Callable[..., Any], like: tuple[int, ...] | None) -> None:
            self.fn, self.like = fn, like
            self.gives_tuple = like is not None
            self.compiled = jit(fn)
            self.rule_of = functools.cache(self.rule)

        def __reduce__(self) -> Any:
            return operation, (self.fn, self.like)

        def __str__(self) -> str:
            return f"nbgrad({name_of(self.fn)})"

        def rule(self, count: int, wanted: tuple[int, ...]) -> Any:
            """The operation from inputs and cotangents to the cotangents of the wanted inputs."""
            return operation(pullback(self.fn, count, wanted), wanted)

        def make_node(self, *inputs: Any) -> Any:
            variables = [as_tensor_variable(one) for one in inputs]
            if self.like is not None:
                return Apply(self, variables, [variables[position].type() for position in self.like])
            known = [(tuple(one.type.shape), np.dtype(one.type.dtype)) for one in variables]
            results, self.gives_tuple = _types(self.fn, known)
            if any(dtype.kind == "c" for _, dtype in (*known, *results)):
                message = (
                    f"{name_of(self.fn)}() has complex arguments or results, which nbgrad does not pass to PyTensor. "
                    "Pass and return real and imaginary parts."
                )
                raise DtypeError(message)
            return Apply(self, variables, [tensor(dtype=str(dtype), shape=shape) for shape, dtype in results])

        def perform(self, node: Any, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
            found = self.compiled(*inputs)
            results = found if isinstance(found, tuple) else (found,)
            for result, place, variable in zip(results, output_storage, node.outputs, strict=True):
                value = np.asarray(result, variable.type.dtype)
                if not _fits(value.shape, variable.type.shape):
                    message = (
                        f"{name_of(self.fn)}() returned an array of shape {value.shape}, where PyTensor expects "
                        f"{variable.type.shape}. Lengths that depend on more than the lengths of the arguments need "
                        "arguments of known shapes: pytensor.tensor.specify_shape(x, shape)."
                    )
                    raise ArgumentError(message)
                place[0] = value

        def infer_shape(self, fgraph: Any, node: Any, input_shapes: Sequence[Any]) -> Any:
            if self.like is None:
                message = "PyTensor asks the results"
                raise ShapeError(message)
            return [input_shapes[position] for position in self.like]

        def connection_pattern(self, node: Any) -> list[list[bool]]:
            return [[_has_slope(one) and _has_slope(other) for other in node.outputs] for one in node.inputs]

        def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
            wanted = tuple([position for position, one in enumerate(inputs) if _has_slope(one)])
            given = [
                output.zeros_like() if isinstance(one.type, DisconnectedType) else one.astype(output.type.dtype)
                for one, output in zip(cotangents, outputs, strict=True)
            ]
            found = iter(self.rule_of(len(inputs), wanted)(*inputs, *given, return_list=True))
            return [next(found) if position in wanted else DisconnectedType()() for position in range(len(inputs))]

    if not hasattr(Op, "pullback"):  # before PyTensor 3
        Called.L_op = Called.pullback
    return Called


def _has_slope(variable: Any) -> bool:
    """Whether a variable has floating-point numbers."""
    return np.dtype(variable.type.dtype).kind == "f"


def _fits(shape: tuple[int, ...], known: tuple[int | None, ...]) -> bool:
    """Whether an array has the axes that are known."""
    return len(shape) == len(known) and all(
        length in (extent, None) for extent, length in zip(shape, known, strict=True)
    )


def _types(
    fn: Callable[..., Any], known: Sequence[tuple[tuple[int | None, ...], np.dtype[Any]]]
) -> tuple[list[ResultType], bool]:
    """The shapes of a function's results, None for what is not known, their dtypes, and whether they are a tuple."""
    tries = TRIED if any(None in shape for shape, _ in known) else TRIED[:1]
    found = []
    for extent in tries:
        types = [(tuple([extent if length is None else length for length in shape]), dtype) for shape, dtype in known]
        found.append(result_types(fn, types))
    results, is_tuple = found[0]
    merged: list[ResultType] = []
    for position, (shape, dtype) in enumerate(results):
        others = [one[position][0] for one, _ in found]
        merged.append((tuple([k if all(o[a] == k for o in others) else None for a, k in enumerate(shape)]), dtype))
    return merged, is_tuple
