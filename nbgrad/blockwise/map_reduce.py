"""Sums of a function over blocks of data, one block in memory at a time, with derivatives of all orders.

In: a function, blocks, arguments that all blocks share. Out: the sum of its results. Called by users, by
`nb.map_reduce`, and by the derivatives of such sums, which are sums over the same blocks.

A recorded sum is a call of Python in a graph: its value is read from the data when it is asked for, its cotangents are
sums of the blocks' cotangents.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from contextlib import closing
from math import prod
from typing import Any

import numpy as np
import optree

from ..errors import ArgumentError, BlockError, NbgradError, ShapeError
from ..graph.builders import cast, reshape, slice_axes
from ..graph.ir import Node, make, zeros
from ..graph.trace import current_trace
from ..process.modes import KEEPS
from ..process.progress import bar
from ..record.container_leaves import map_leaves
from ..record.foreign_arrays import described
from ..record.tensor import Tensor
from ..transforms.arguments import flatten, name_of, node_of
from ..transforms.host_code import HostCode
from ..transforms.lent_arrays import kind_of
from .block_functions import Cotangents, Tangents, Vector
from .row_blocks import Blocks


def map_reduce(
    f: Callable[..., Any],
    blocks: Iterable[Any],
    *args: Any,
    initial: Any = None,
    executor: Any = None,
    at_once: int | None = None,
    progress: bool | None = None,
) -> Any:
    """The sum of a function over blocks of data, of which one is in memory at a time.

    Parameters
    ----------
    f : callable
        `f(*args, *block)` for a block that is a tuple, `f(*args, block)` for another one, gives an array, a number, or
        a container of them, whose shapes are the same for all blocks.
    blocks : iterable
        Such as `nb.blocks(x, y)`; also lists and generators, which give one block after the other.
    *args
        Arguments that are the same for all blocks. Derivatives by them are sums over the blocks.
    initial : container of arrays, optional
        What the sum begins with. Without it, there must be a block.
    executor : optional
        Calls `f` elsewhere: a pool of `concurrent.futures`, a client of Dask, an executor of joblib's loky, or anything
        with `submit(f, *args)` that gives futures. Blocks of `nb.blocks` on disk are read there. The sum has the order
        of the blocks, and is the same with any number of workers.
    at_once : int, optional
        The blocks that an executor has at once; by default twice the number of processors here.
    progress : bool, optional
        Whether to show a bar; by default after two seconds, on a terminal.

    Returns
    -------
    as `f` returns it

    Raises
    ------
    BlockError
        If the function, or reading a block, fails; with the number of the block.
    ArgumentError, ShapeError
        If there are no blocks and no `initial`, or if results cannot be added.

    Notes
    -----
    The derivative of a sum is the sum of derivatives: `map_reduce(nb.value_and_grad(loss), blocks, w)` reads each block
    once. `nb.grad(lambda w: g(map_reduce(loss, blocks, w)))` goes through further functions, in `nb.jit` too, and reads
    the blocks for the value and again for each derivative, so that a generator will not do.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> x, y = np.arange(10.0).reshape(5, 2), np.arange(5.0)
    >>> def loss(w, x, y):
    ...     return np.sum((x @ w - y) ** 2)
    >>> w = np.array([0.5, 0.25])
    >>> nb.map_reduce(nb.jit(nb.value_and_grad(loss)), nb.blocks(x, y, rows=2), w)
    (np.float64(10.3125), array([70. , 82.5]))
    >>> nb.grad(lambda w: nb.map_reduce(loss, nb.blocks(x, y, rows=2), w) / 5)(w)
    array([14. , 16.5])
    """
    if not callable(f) or not isinstance(blocks, Iterable):
        given = described(blocks if callable(f) else f)
        message = f"map_reduce takes a function and an iterable of blocks, but got {given}."
        raise ArgumentError(message)
    if executor is not None and not hasattr(executor, "submit"):
        message = f"executor must have a method submit(f, *args), but got {described(executor)}."
        raise ArgumentError(message)
    if at_once is not None and (not isinstance(at_once, int) or at_once < 1):
        message = f"at_once must be a positive number of blocks, but got {at_once!r}."
        raise ArgumentError(message)
    if initial is not None and isinstance(blocks, Sized) and not len(blocks):
        return initial
    run = _Run(blocks, executor, at_once or 2 * (os.cpu_count() or 1), progress, initial is None)
    leaves, tree = flatten(args)
    if any(isinstance(leaf, Tensor) and (current_trace() or leaf._node.traced & KEEPS) for leaf in leaves):
        found = run.recorded(f, leaves, tree)
    else:
        found = run.total(f, args)
    if initial is None or found is None:
        return initial if found is None else found
    _check_alike(initial, found, "initial")
    return map_leaves(lambda a, b: None if a is None else a + b, initial, found)


class _Run:
    """The blocks of a sum, and the way to go through them."""

    def __init__(self, blocks: Iterable[Any], executor: Any, at_once: int, progress: bool | None, must: bool) -> None:
        self.blocks, self.executor, self.at_once, self.progress = blocks, executor, at_once, progress
        self.must = must
        """Whether there must be a block."""

    def total(self, f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """The sum over all blocks.

        Raises
        ------
        BlockError, ArgumentError, ShapeError
            As `map_reduce`.
        """
        count = len(self.blocks) if isinstance(self.blocks, Sized) else None
        found, number, tensors = None, -1, [False]
        results = self._here(f, args) if self.executor is None else self._elsewhere(f, args)
        with closing(results), bar(count, f"{name_of(f)}()", self.progress) as shown:
            for number, result in enumerate(results):
                place = self._place(number)
                tensors = tensors if number else [isinstance(leaf, Tensor) for leaf in flatten(result)[0]]
                found = _added(found, result, place) if number else _owned(result, place)
                shown.update()
        if number < 0 and self.must:
            message = "map_reduce got no blocks, so that the shape of its sum is unknown. Give initial=..., its value."
            raise ArgumentError(message)
        leaves, tree = flatten(found)
        kinds = zip(leaves, tensors, strict=True)
        return optree.tree_unflatten(tree, [Tensor(leaf) if is_one else leaf for leaf, is_one in kinds])

    def _place(self, number: int) -> str:
        """The name of a block in messages."""
        if not isinstance(self.blocks, Blocks):
            return f"blocks[{number}]"
        low, high = self.blocks.rows(number)
        return f"blocks[{number}] ({f'rows {low} to {high - 1}' if high > low else 'no rows'})"

    def _failure(self, number: int, error: Exception) -> BlockError:
        text = error.args[0] if isinstance(error, NbgradError) and error.args else f"{type(error).__name__}: {error}"
        return BlockError(f"{self._place(number)} has failed: {text}".removesuffix("."))

    def _numbered(self) -> Iterator[tuple[int, Any]]:
        """The blocks with their numbers; no block is kept while the next one is read."""
        source = iter(self.blocks)
        number = 0
        while True:
            try:
                block = next(source)
            except StopIteration:
                return
            except Exception as error:
                raise self._failure(number, error) from error
            yield number, block
            block = None
            number += 1

    def _here(self, f: Callable[..., Any], args: tuple[Any, ...]) -> Generator[Any]:
        for number, block in self._numbered():
            try:
                result = _call(f, args, block)
            except Exception as error:
                raise self._failure(number, error) from error
            block = None
            yield result

    def _elsewhere(self, f: Callable[..., Any], args: tuple[Any, ...]) -> Generator[Any]:
        """The results, in the order of the blocks, of which some are under way."""
        blocks = self.blocks
        # Blocks on disk are read by the worker.
        parts = ((k, blocks[k : k + 1]) for k in range(len(blocks))) if isinstance(blocks, Blocks) else self._numbered()
        waiting: deque[tuple[int, Any]] = deque()
        try:
            for number, block in parts:
                try:
                    waiting.append((number, self.executor.submit(_call, f, args, block)))
                except Exception as error:
                    raise self._failure(number, error) from error
                block = None
                if len(waiting) >= self.at_once:
                    yield self._result(*waiting.popleft())
            while waiting:
                yield self._result(*waiting.popleft())
        finally:
            for _, future in waiting:
                getattr(future, "cancel", bool)()

    def _result(self, number: int, future: Any) -> Any:
        try:
            return future.result()
        except Exception as error:
            raise self._failure(number, error) from error

    def recorded(self, f: Callable[..., Any], leaves: list[Any], tree: Any) -> Any:
        """The sum as nodes of a graph, with derivatives by all leaves of floating-point numbers.

        Raises
        ------
        ArgumentError
            If the blocks can be read once only.
        """
        if isinstance(self.blocks, Iterator):
            message = (
                "A recorded map_reduce reads its blocks again for derivatives, but these come from a generator. Give "
                "nb.blocks(...) or a list, or sum nb.value_and_grad(f), which reads them once."
            )
            raise ArgumentError(message)
        taken = [k for k, leaf in enumerate(leaves) if kind_of(leaf) in ("tensor", "array", "float")]
        others = [None if k in taken else leaf for k, leaf in enumerate(leaves)]
        vector = Vector(f, others, taken, tree)
        row = self.row(vector, [node_of(leaves[k]) for k in taken])
        if vector.layouts is None:  # where the function ran elsewhere
            self.first(vector, [np.ones(x.shape, x.dtype) for x in row.inputs[1:]])
        assert vector.layouts is not None
        found: list[Any] = []
        start = 0
        for layout in vector.layouts:
            if layout is None:
                found.append(None)
                continue
            shape, dtype = layout
            part = reshape(slice_axes(row, [(start, prod(shape), 1)]), shape)
            found.append(Tensor._of(cast(part, dtype)))
            start += prod(shape)
        return optree.tree_unflatten(vector.tree, found)

    def row(self, vector: Callable[..., Any], nodes: Sequence[Node]) -> Node:
        """The sum of a function of arrays and a block that gives a vector."""
        host = HostCode(
            lambda *xs: self.total(vector, xs), f"map_reduce of {name_of(vector)}()", lambda *xs: self.first(vector, xs)
        )
        return make("custom", (host(*map(Tensor._of, nodes))._node, *nodes), (_Rule(self, vector), 0))

    def first(self, vector: Callable[..., Any], xs: Sequence[Any]) -> Any:
        """The function of the first block."""
        return _Run(_First(self.blocks), None, 1, False, self.must).total(vector, tuple(xs))


class _Rule:
    """Derivatives of the sum over blocks of a vector: sums over the same blocks."""

    pure = False

    def __init__(self, run: _Run, vector: Callable[..., Any]) -> None:
        self.run, self.vector = run, vector

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """Those of the arrays that the sum is a function of."""
        xs = node.inputs[1:]
        row = self.run.row(Cotangents(self.vector, len(xs)), [*xs, g])
        found: list[Node | None] = []
        start = 0
        for x in xs:
            if x.dtype.kind not in "fc":
                found.append(None)
                continue
            part = cast(slice_axes(row, [(start, x.size, 1)]), x.dtype)
            found.append(reshape(part, x.shape))
            start += x.size
        return found

    def tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        """That of the sum."""
        xs = node.inputs[1:]
        pairs = [(x, t) for x, t in zip(xs, tangents[1:], strict=True) if x.dtype.kind in "fc"]
        vs = [zeros(x.shape, x.dtype) if t is None else t for x, t in pairs]
        return self.run.row(Tangents(self.vector, len(xs)), [*xs, *vs])


class _First:
    """The first of some blocks, read at each iteration."""

    def __init__(self, blocks: Iterable[Any]) -> None:
        self.blocks = blocks

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(self.blocks, 1)


def _call(f: Callable[..., Any], args: tuple[Any, ...], block: Any) -> Any:
    """The result for one block, or for the one of a sequence that was sent unread."""
    if isinstance(block, Blocks):
        block = block[0]
    return f(*args, *block) if isinstance(block, tuple) else f(*args, block)


def _plain(leaf: Any, place: str) -> Any:
    """A part of a result to add: a number or an array; None as it is.

    Raises
    ------
    ArgumentError
        If it is something else, or depends on a value that is being recorded.
    """
    if isinstance(leaf, Tensor):
        if current_trace() is not None and leaf._node.traced:
            message = (
                f"{place}: the function uses a value from outside that is being differentiated or compiled. Give it to "
                "map_reduce as an argument."
            )
            raise ArgumentError(message)
        return leaf.asnumpy()
    if leaf is not None and kind_of(leaf) not in ("array", "float", "integer"):
        message = f"{place}: the function gives {described(leaf)}, but a sum is of arrays and numbers."
        raise ArgumentError(message)
    return leaf


def _owned(result: Any, place: str) -> Any:
    """A first result, in arrays that nothing else holds."""
    leaves, tree = flatten(result)
    parts = [_plain(leaf, place) for leaf in leaves]
    return optree.tree_unflatten(tree, [np.array(part) if isinstance(part, np.ndarray) else part for part in parts])


def _added(total: Any, result: Any, place: str) -> Any:
    """The sum of the results so far and one more; arrays of the first are written to."""
    _check_alike(result, total, place)
    leaves, tree = flatten(total)
    for k, leaf in enumerate(flatten(result)[0]):
        part = _plain(leaf, place)
        if isinstance(leaves[k], np.ndarray) and np.result_type(leaves[k], part) == leaves[k].dtype:
            leaves[k] += part
        elif part is not None:
            leaves[k] = leaves[k] + part
    return optree.tree_unflatten(tree, leaves)


def _check_alike(one: Any, other: Any, place: str) -> None:
    """Raise ShapeError unless two results have the same structure and shapes."""
    (some, tree), (others, structure) = flatten(one), flatten(other)
    shapes, known = ([None if leaf is None else np.shape(leaf) for leaf in found] for found in (some, others))
    if tree != structure or shapes != known:
        message = (
            f"{place} gives {_shown(tree, shapes)}, but other blocks {_shown(structure, known)}. The function must "
            "give a sum over the rows of its block."
        )
        raise ShapeError(message)


def _shown(tree: Any, shapes: list[Any]) -> str:
    return f"an array of shape {shapes[0]}" if len(shapes) == 1 else f"{tree} with arrays of shapes {shapes}"
