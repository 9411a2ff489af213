"""Branches by value: `cond` and `switch`, with JAX's signatures.

In: a value that chooses, the functions to choose from, their operands. Out: the result of the one that is chosen. Where
the value is known, only that one runs. Where it stands for many values (while `jit` records, inside `vmap` and in the
turns of loops), all of them are recorded, and each element of the results is chosen; slopes of the others are zero,
even where they would be infinite. Called by users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError, DtypeError, ShapeError
from ..graph.builders import cast, reshape
from ..graph.ir import BOOL, INT64, Node, broadcast, elementwise
from ..graph.trace import stands_for_many
from ..record.as_node import as_node
from ..record.journal import Journal, undone_writes
from ..runtime.evaluate import concrete
from ..runtime.memory_order import copied, like_array, same_order
from ..transforms.argument_positions import check_function
from ..transforms.arguments import Results, kind_as, name_of
from ..transforms.lent_arrays import lends, results_as
from .recorded_turn import Arrays

_ABSENT = object()


@lends
def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any, operand: Any = _ABSENT
) -> Any:
    """Call one of two functions, by a truth value.

    Parameters
    ----------
    pred : bool or array of one element
    true_fun, false_fun : callable
        Functions of the operands that give the same structure of arrays, of the same shapes and dtypes.
    *operands
        The arguments of both.
    operand
        Their only argument, in place of `operands`: JAX's older form.

    Returns
    -------
    as the functions return it

    Raises
    ------
    ShapeError, DtypeError
        If `pred` is no single value, or the functions give different shapes or dtypes.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def f(x):
    ...     return nb.cond(x > 0, np.sqrt, lambda x: -x, x)
    >>> nb.vmap(f)(np.array([4.0, -4.0])), nb.grad(nb.jit(f))(-4.0)
    (array([2., 4.]), np.float64(-1.0))
    """
    if operand is not _ABSENT:
        operands = (*operands, operand)
    check_function(true_fun, "cond")
    check_function(false_fun, "cond")
    chosen = _chooser(pred, "cond", "pred")
    truth = chosen if chosen.dtype == BOOL else elementwise("not_equal", chosen, 0)
    if not stands_for_many(truth):
        return (true_fun if bool(concrete(truth, "bool")) else false_fun)(*operands)
    return _selected("cond", [elementwise("logical_not", truth), truth], [false_fun, true_fun], operands)


@lends
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Call one of several functions, by its position.

    Parameters
    ----------
    index : int or array of one integer
        Positions below 0 mean the first function, positions that are too large the last.
    branches : sequence of callables
        Functions of the operands that give the same structure of arrays, of the same shapes and dtypes.
    *operands
        The arguments of all.

    Returns
    -------
    as the functions return it

    Raises
    ------
    ArgumentError
        If there are no functions.
    ShapeError, DtypeError
        If `index` is no single integer, or the functions give different shapes or dtypes.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.switch(1, [np.sin, np.cos, np.tan], 0.0)
    np.float64(1.0)
    >>> nb.vmap(lambda k, x: nb.switch(k, [np.negative, np.square], x))(np.array([0, 1, 5]), np.array([3.0, 3.0, 4.0]))
    array([-3.,  9., 16.])
    """
    if not branches:
        message = "switch() needs at least one function to choose from."
        raise ArgumentError(message)
    for branch in branches:
        check_function(branch, "switch")
    chosen = _chooser(index, "switch", "index")
    if chosen.dtype.kind not in "iu":
        message = f"switch() chooses by an integer, but index has dtype {chosen.dtype}."
        raise DtypeError(message)
    chosen = cast(chosen, INT64)
    if not stands_for_many(chosen):
        position = min(max(int(concrete(chosen, "int")), 0), len(branches) - 1)
        return branches[position](*operands)
    tests: list[Node] = []
    for position in range(len(branches)):
        if position == 0:
            tests.append(elementwise("less_equal", chosen, 0))
        else:
            name = "greater_equal" if position == len(branches) - 1 else "equal"
            tests.append(elementwise(name, chosen, position))
    return _selected("switch", tests, branches, operands)


def _chooser(value: Any, name: str, parameter: str) -> Node:
    node = as_node(value)
    if node.size != 1:
        message = (
            f"{name}() chooses by one value, but {parameter} has shape {node.shape}. Use np.where for each element."
        )
        raise ShapeError(message)
    return reshape(node, ())


def _selected(name: str, tests: Sequence[Node], branches: Sequence[Callable[..., Any]], operands: Sequence[Any]) -> Any:
    """The results of the function whose test holds; all are recorded."""
    found: list[Arrays] = []
    journals: list[Journal] = []
    for branch in branches:
        with undone_writes() as journal:
            found.append(Arrays.of(branch(*operands), f"The result of {name_of(branch)}()"))
        journals.append(journal)
    one = found[0]
    for branch, other in zip(branches, found, strict=True):
        same = other.tree == one.tree and [(n.shape, n.dtype) for n in other.nodes] == [
            (n.shape, n.dtype) for n in one.nodes
        ]
        if not same:
            shown = [[f"{n.dtype}{list(n.shape)}" for n in arrays.nodes] for arrays in (one, other)]
            message = (
                f"The functions of {name}() must give the same: {name_of(branches[0])}() gives {shown[0]}, "
                f"{name_of(branch)}() gives {shown[1]}."
            )
            raise ShapeError(message)
    _write(tests, journals)
    results = Results()
    tensors = results_as([leaf for operand in operands for leaf in Arrays.of(operand, f"{name}()").leaves])
    slots: list[Any] = []
    for position in range(len(one.nodes)):
        value = found[0].nodes[position]
        for test, other in zip(tests[1:], found[1:], strict=True):
            value = _where(test, other.nodes[position], value)
        value = _laid_out(value, [arrays.nodes[position] for arrays in found])
        slots.append(results.add(value, kind_as(tensors, "array" if value.ndim else "value")))
    return results.fill(one.filled(slots))[0]


def _write(tests: Sequence[Node], journals: Sequence[Journal]) -> None:
    """Write to the arrays that some of the functions have written to."""
    written = [{id(tensor): (tensor, after) for tensor, after in journal.arrays()} for journal in journals]
    for tensor, _ in {key: one for each in written for key, one in each.items()}.values():
        ends = [each[id(tensor)][1] if id(tensor) in each else tensor._node for each in written]
        value = ends[0]
        for test, other in zip(tests[1:], ends[1:], strict=True):
            value = value if other is value else _where(test, other, value)
        tensor._replace(value)


def _laid_out(value: Node, sides: Sequence[Node]) -> Node:
    """A chosen array, which lies in memory as all sides do, or in C order."""
    first = sides[0]
    return like_array(value, first) if all(same_order(first, side) for side in sides) else copied(value, "C")


def _where(test: Node, yes: Node, no: Node) -> Node:
    return elementwise("select", broadcast(test, yes.shape), yes, no)
