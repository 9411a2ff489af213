"""Python functions of elements and slices, applied to all of them: vectorize, apply_along_axis, piecewise.

In: a function and array-likes. Out: Tensors. Called by users, through table.py, and by ufunc_protocol.py for ufuncs of
`np.frompyfunc`. The function is recorded for one element that stands for all of them, twice; if it asks for values (to
branch on them, say), or does not do the same again (it draws random numbers, say), it is called for each element
instead, as NumPy does it. What it writes to the rows that it gets is written to the array that they are parts of.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import ArgumentError, ShapeError, TracedValueError
from ...graph.batch import batch
from ...graph.builders import cast, reshape
from ...graph.ir import Node, broadcast, elementwise, make, placeholder, topological
from ...graph.shapes import Shape
from ...graph.trace import recording
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import axis_of, cut, filled, integers, nodes_of, real_dtype, to_last, truth
from ...record.indexing import getitem, setitem
from ...record.tensor import Tensor
from ...record.zero_dimensional import as_array
from ...runtime.evaluate import concrete
from ...runtime.memory_order import copied
from ..arrays.joining import stack_nodes
from ..arrays.result_order import like_argument, like_loop
from ..arrays.shaping import common_shape, moveaxis_node
from ..arrays.taking import store

Function = Callable[..., Any]


# ----- For all elements at once, or one after the other -----


class Applied(NamedTuple):
    """The results of a function for all rows: nodes with an axis of the rows in front."""

    results: list[Node]
    several: bool
    """Whether the function gave a tuple of results."""
    written: dict[int, Node]
    """By the position of an argument: its rows, of which the function has written to at least one."""


def _parts(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def _at_once(function: Function, rows: Sequence[Node], count: int) -> Applied:
    """The function recorded for one element that stands for all; TracedValueError if elements may differ in more than
    their values: it asks for these, writes to outer objects, or does not do the same when it is called again."""
    mapping: dict[Node, Node] = {}
    for row in rows:
        one = placeholder(row.shape[1:], row.dtype)
        one.tensor, one.place = row.tensor, row.place
        mapping[one] = row
    first = _recorded(function, mapping, count)
    second = _recorded(function, mapping, count)
    nodes, again = [*first.results, *first.written.values()], [*second.results, *second.written.values()]
    same = len(first.results) == len(second.results) and list(first.written) == list(second.written)
    if not same or not all(same_graph(a, b) for a, b in zip(nodes, again, strict=True)):
        message = "A function of one element does not compute the same in each call."
        raise TracedValueError(message)
    nodes = [broadcast(node, (count, *node.shape[1:])) for node in batch(nodes, mapping, count)]
    results = nodes[: len(first.results)]
    return Applied(results, first.several, dict(zip(first.written, nodes[len(results) :], strict=True)))


def _recorded(function: Function, mapping: dict[Node, Node], count: int) -> Applied:
    """The results for the element that stands for all."""
    handed = [wrap(one) for one in mapping]
    with recording(mapping, mapping=mapping, size=count) as trace:
        try:
            result = function(*handed)
            nodes = [as_node(part) for part in _parts(result)]
        finally:
            written = trace.undo_writes()
    if written or trace.outside:
        message = "A function of one element writes to a Tensor from outside."
        raise TracedValueError(message)
    return Applied(nodes, type(result) is tuple, _rows_written(handed, list(mapping)))


def _rows_written(handed: Sequence[Tensor], before: Sequence[Node]) -> dict[int, Node]:
    """By position: the values of the Tensors that a function was given, and that hold other ones now."""
    pairs = enumerate(zip(handed, before, strict=True))
    return {place: tensor._node for place, (tensor, node) in pairs if tensor._node is not node}


def same_graph(a: Node, b: Node) -> bool:
    """Whether two nodes are computed in the same way from the same values; random numbers, say, differ."""
    pairs, seen = [(a, b)], set[tuple[Node, Node]]()
    for one, other in pairs:
        if one is other or (one, other) in seen:
            continue
        seen.add((one, other))
        alike = (
            one.primitive is other.primitive
            and (one.shape, one.dtype, len(one.inputs)) == (other.shape, other.dtype, len(other.inputs))
            and (one.name == "custom" or one.params == other.params)
        )
        if not alike:
            return False
        if not one.inputs and one.name == "constant":
            assert one.value is not None and other.value is not None
            if one.device is not None or other.device is not None:
                if one.value is not other.value:
                    return False
            elif not np.array_equal(one.value, other.value, equal_nan=one.dtype.kind in "fc"):
                return False
        elif one.name == "input":
            return False
        pairs.extend(zip(one.inputs, other.inputs, strict=True))
    return True


def _one_by_one(function: Function, rows: Sequence[Node], count: int) -> Applied:
    calls: list[Applied] = []
    for k in range(count):
        parts = [reshape(cut(row, 0, k, 1), row.shape[1:]) for row in rows]
        handed = [wrap(part) for part in parts]
        result = function(*handed)
        nodes = [as_node(part) for part in _parts(result)]
        calls.append(Applied(nodes, type(result) is tuple, _rows_written(handed, parts)))
    if any(len(call.results) != len(calls[0].results) for call in calls):
        message = "The function gave different numbers of results for different elements."
        raise ShapeError(message)
    results = [stack_nodes(column, 0) for column in zip(*[call.results for call in calls], strict=True)]
    written: dict[int, Node] = {}
    for place in sorted({place for call in calls for place in call.written}):
        row = rows[place]
        before = [reshape(cut(row, 0, k, 1), row.shape[1:]) for k in range(count)]
        written[place] = stack_nodes(
            [call.written.get(place, node) for call, node in zip(calls, before, strict=True)], 0
        )
    return Applied(results, calls[0].several, written)


def over_rows(function: Function, rows: Sequence[Node], count: int) -> Applied:
    """A function of Tensors without the first axis of the rows, for each position along it."""
    try:
        return _at_once(function, rows, count)
    except TracedValueError:
        return _one_by_one(function, rows, count)


# ----- Along axes -----


def apply_along_axis(func1d: Function, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Tensor:
    """A function of 1-d arrays, applied to all slices along an axis.

    Parameters
    ----------
    func1d : callable
        Takes a Tensor with one axis, then `args` and `kwargs`; its result takes the place of the axis. It is recorded
        for all slices at once if it asks for no values, else called for each slice.
    axis : int
    arr : array-like
        If the function writes to its slices, it is written to, as by NumPy.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> apply_along_axis(lambda v: v[0] * v[-1], 1, np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [2.0, 12.0]
    """
    node = as_node(arr)
    at = axis_of(axis, node.ndim)
    lead = node.shape[:at] + node.shape[at + 1 :]
    count = math.prod(lead)
    if count == 0:
        message = f"apply_along_axis cannot call a function of slices that do not exist: the shape is {node.shape}."
        raise ShapeError(message)
    rows = reshape(to_last(node, at), (count, node.shape[at]))
    applied = over_rows(lambda row: _single(func1d(row, *args, **kwargs)), [rows], count)
    if applied.written and isinstance(arr, Tensor | np.ndarray):
        store(arr, moveaxis_node(reshape(applied.written[0], (*lead, node.shape[at])), (-1,), (at,)))
    result = reshape(applied.results[0], (*lead, *applied.results[0].shape[1:]))
    extra = result.ndim - len(lead)
    sources = range(len(lead), result.ndim)
    # NumPy makes an array of all results, one after the other, and moves their axes to where the axis was.
    return as_array(wrap(moveaxis_node(copied(result, "C"), tuple(sources), tuple(range(at, at + extra)))))


def _single(result: Any) -> Any:
    """The output of a function as one array: a tuple becomes one, as a list does."""
    return list(result) if isinstance(result, tuple) else result


def apply_over_axes(func: Function, a: Any, axes: Any) -> Any:
    """A function of an array and an axis, applied over several axes, one after the other, which stay with extent 1."""
    value: Any = wrap(as_node(a))
    for axis in integers(axes, "axes"):
        at = axis_of(axis, value.ndim)
        result = func(value, at)
        if np.ndim(result) == value.ndim - 1:
            result = np.expand_dims(result, at)
        if np.ndim(result) != value.ndim:
            message = f"The function given to apply_over_axes made shape {np.shape(result)} of {value.shape}."
            raise ShapeError(message)
        value = result
    return value


# ----- Elements -----


class vectorize:  # noqa: N801 - NumPy's name
    """A function of numbers (or, with a signature, of arrays) as a function of arrays, as `np.vectorize`.

    Parameters
    ----------
    pyfunc : callable, optional
        A function, or an `np.vectorize` of one. Without it, this is a decorator with options.
    otypes : str or list of dtypes, optional
        The dtypes of the results.
    doc : str, optional
    excluded : set of int and str, optional
        Positions and names of arguments that are passed on as they are.
    cache : bool
        Has no effect.
    signature : str, optional
        The core axes of arguments and results, as `"(m,n),(n)->(m)"`.

    Notes
    -----
    The function is recorded for all elements at once if it asks for no values, else called for each of them.

    Examples
    --------
    >>> @vectorize
    ... def bend(x, low):
    ...     return x if x > low else low + 0.1 * (x - low)
    >>> bend(np.array([-1.0, 2.0]), 0.0).tolist()
    [-0.1, 2.0]
    """

    def __init__(
        self,
        pyfunc: Any = None,
        otypes: Any = None,
        doc: str | None = None,
        excluded: Any = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        if isinstance(pyfunc, np.vectorize | vectorize):
            otypes = pyfunc.otypes if otypes is None else otypes
            excluded = pyfunc.excluded if excluded is None else excluded
            signature = pyfunc.signature if signature is None else signature
            pyfunc = pyfunc.pyfunc
        self.pyfunc, self.otypes, self.signature, self.cache = pyfunc, otypes, signature, cache
        self.excluded: set[Any] = set(excluded or ())
        self.__doc__ = getattr(pyfunc, "__doc__", None) if doc is None else doc
        self.__name__ = getattr(pyfunc, "__name__", "vectorize")
        self._cores = None if signature is None else _cores_of(signature)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.pyfunc is None:
            return vectorize(args[0], self.otypes, self.__doc__, self.excluded, self.cache, self.signature)
        places = [k for k in range(len(args)) if k not in self.excluded]
        names = [name for name in kwargs if name not in self.excluded]

        def function(*values: Any) -> Any:
            given, named = list(args), dict(kwargs)
            for place, value in zip(places, values, strict=False):
                given[place] = value
            named.update(zip(names, values[len(places) :], strict=True))
            return self.pyfunc(*given, **named)

        nodes = [as_node(args[k]) for k in places] + [as_node(kwargs[name]) for name in names]
        return _over_elements(function, nodes, self._cores, self.otypes)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else lambda *args, **kwargs: self(instance, *args, **kwargs)


def frompyfunc(func: Function, /, nin: int, nout: int, **options: Any) -> vectorize:
    """A function of numbers as a function of arrays, as `np.frompyfunc`; its results are numbers, not objects."""
    return vectorize(func)


def python_ufunc(ufunc: np.ufunc, inputs: Sequence[Any]) -> Any:
    """The result of a ufunc made by `np.frompyfunc`: its function of each element, with Tensors instead of objects."""

    def function(*values: Any) -> Any:
        boxes = []
        for value in values:
            box = np.empty((), object)
            box[()] = value
            boxes.append(box)
        return ufunc(*boxes)

    return _over_elements(function, [as_node(value) for value in inputs], None, None)


Cores = tuple[list[tuple[str, ...]], list[tuple[str, ...]]]


def _cores_of(signature: str) -> Cores:
    """The names of the core axes of arguments and results."""
    text = re.sub(r"\s+", "", signature)
    group = r"\([\w,]*\)"
    if not re.fullmatch(rf"{group}(,{group})*->{group}(,{group})*", text):
        message = f"The signature {signature!r} is not of the form '(m,n),(n)->(m)'."
        raise ArgumentError(message)
    left, right = (
        [tuple(filter(None, part.split(","))) for part in re.findall(r"\(([\w,]*)\)", side)]
        for side in text.split("->")
    )
    return left, right


def _over_elements(function: Function, nodes: list[Node], cores: Cores | None, otypes: Any) -> Any:
    """A function of elements, or of the arrays on the last axes that a signature names."""
    if cores is not None and len(cores[0]) != len(nodes):
        message = f"The signature names {len(cores[0])} arguments, but {len(nodes)} were given."
        raise ArgumentError(message)
    widths = [len(core) for core in cores[0]] if cores is not None else [0] * len(nodes)
    extents: dict[str, int] = {}
    for node, width, core in zip(nodes, widths, cores[0] if cores is not None else itertools.repeat(()), strict=False):
        if node.ndim < width:
            message = f"An argument of shape {node.shape} has fewer axes than the signature's {core}."
            raise ShapeError(message)
        for name, n in zip(core, node.shape[node.ndim - width :], strict=True):
            if extents.setdefault(name, n) != n:
                message = f"The axis {name!r} of the signature has extents {extents[name]} and {n}."
                raise ShapeError(message)
    lead = common_shape([node.shape[: node.ndim - width] for node, width in zip(nodes, widths, strict=True)])
    count = math.prod(lead)
    dtypes = None if otypes is None else [real_dtype(kind) for kind in otypes]
    if count == 0:
        if dtypes is None:
            message = "A vectorized function cannot be called without elements unless otypes tells its results' dtypes."
            raise ShapeError(message)
        ends: list[Shape] = [()] * len(dtypes)
        if cores is not None:
            ends = [tuple([extents[name] for name in core]) for core in cores[1]]
        empty = [as_array(wrap(filled((*lead, *end), 0, dtype))) for end, dtype in zip(ends, dtypes, strict=True)]
        return empty[0] if len(empty) == 1 else tuple(empty)
    rows = []
    for node, width in zip(nodes, widths, strict=True):
        core = node.shape[node.ndim - width :]
        rows.append(reshape(broadcast(node, (*lead, *core)), (count, *core)))
    results, several, written = over_rows(function, rows, count)
    if written:
        message = (
            f"The function writes to argument {min(written)} that it gets from vectorize, which is read-only, as "
            "NumPy's is. Let it write to a copy."
        )
        raise ArgumentError(message)
    if cores is not None and len(results) != len(cores[1]):
        message = f"The signature names {len(cores[1])} results, but the function gave {len(results)}."
        raise ArgumentError(message)
    shaped = [reshape(node, (*lead, *node.shape[1:])) for node in results]
    if dtypes is not None:
        shaped = [cast(node, dtype) for node, dtype in zip(shaped, dtypes, strict=True)]
    if cores is None:
        # NumPy copies the arguments into arrays of objects first.
        copies = [copied(node) for node in nodes]
        shaped = [like_loop(node, copies) for node in shaped]
    tensors = tuple([as_array(wrap(node)) for node in shaped])
    return tensors if several else tensors[0]


# ----- By pieces -----


@like_argument()
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Tensor:
    """A function given by pieces: where a condition holds, the value of its function (or its number).

    Parameters
    ----------
    x : array-like
    condlist : array-like of bool, or sequence of them
    funclist : sequence of callables and numbers
        One for each condition, and perhaps one more for where none holds (0 by default).
    *args, **kw
        Passed on to the functions.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`, as in NumPy.

    Notes
    -----
    As in NumPy, each function is called with the elements of its piece. Where these are not known, because jit or vmap
    records, it is called with all of `x` and must compute element by element; the gradient takes what its piece takes.

    Examples
    --------
    >>> x = np.array([-1.0, 4.0])
    >>> piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: np.sqrt(v)]).tolist()
    [1.0, 2.0]
    """
    node = as_node(x)
    several = isinstance(condlist, list | tuple) or np.ndim(condlist) > max(node.ndim, 1)
    if several and node.ndim and not np.ndim(condlist[0]):
        several = False
    conditions = [truth(c) for c in (nodes_of(condlist) if several else [as_node(condlist)])]
    functions = list(funclist)
    if len(functions) == len(conditions) + 1:
        covered = conditions[0]
        for condition in conditions[1:]:
            covered = elementwise("logical_or", covered, condition)
        conditions.append(elementwise("logical_not", covered))
    if len(functions) != len(conditions):
        message = f"piecewise needs a function for each of {len(conditions)} conditions (and one for elsewhere)."
        raise ArgumentError(message)
    result = filled(node.shape, 0, node.dtype)
    for condition, function in zip(conditions, functions, strict=True):
        mask = broadcast(condition, node.shape)
        if not callable(function):
            result = elementwise("select", mask, broadcast(cast(as_node(function), node.dtype), node.shape), result)
            continue
        try:
            where = np.array(concrete(mask, "array"))
        except TracedValueError:
            result = elementwise("select", mask, _whole(function, node, args, kw), result)
            continue
        piece = wrap(getitem(node, where))
        if piece.size:
            result = setitem(result, where, as_node(function(piece, *args, **kw)))
    return as_array(wrap(result))


def _whole(function: Function, node: Node, args: Any, kw: Any) -> Node:
    """The function of all elements, which must compute element by element."""
    start = make("alias", (node,))
    value = as_node(function(wrap(start), *args, **kw))
    reached = {start}
    for step in topological([value]):
        if any(source in reached for source in step.inputs):
            reached.add(step)
            alike = step.shape == node.shape and step.primitive.kind == "elementwise"
            if not alike or (step.name == "gather" and step.inputs[0] in reached):
                message = (
                    "A function given to piecewise does not compute element by element. While jit or vmap records, the "
                    "elements of a piece are not known; take piecewise out of it, or use np.where."
                )
                raise TracedValueError(message)
    if value not in reached and value.size != 1:
        message = f"A function given to piecewise returned shape {value.shape} that does not follow from its argument."
        raise TracedValueError(message)
    return broadcast(cast(value, node.dtype), node.shape)
