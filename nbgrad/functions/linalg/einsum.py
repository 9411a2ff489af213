"""Einstein sums: any number of operands, ellipses, repeated indices.

In: subscripts and array-likes. Out: a Tensor. Called by users. Operands are contracted in pairs, in the order that
opt_einsum finds; each pair becomes a product of matrices, or multiply and sum where no matrix is in it. A label
is a letter, or -1, -2, ... for the axes of an ellipsis, counted from its end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, ShapeError
from ...graph.builders import reduce, reshape, transpose
from ...graph.ir import BOOL, Node, broadcast
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import array_node, deliver, integer, real_dtype
from ...record.promotion import promote
from ...record.tensor import Tensor
from ...runtime.memory_order import copied, order_of_loop, strides_of, with_axis_order
from ..arrays.creation import diagonal_node
from ..arrays.viewing import viewing
from .matrix_products import batched, multiply

Label = str | int
Labels = tuple[Label, ...]


# ----- Reading the subscripts -----


def _interleaved(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """The form `einsum(a, [0, 1], b, [1, 2], [0, 2])` as a string and operands."""

    def word(sublist: Any) -> str:
        letters = []
        for label in sublist:
            letters.append("..." if label is Ellipsis else _letter(integer(label, "a label")))
        return "".join(letters)

    pairs = len(operands) // 2
    text = ",".join(word(operands[2 * k + 1]) for k in range(pairs))
    if len(operands) % 2:
        text += "->" + word(operands[-1])
    return text, [operands[2 * k] for k in range(pairs)]


def _letter(number: int) -> str:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # in the order of their numbers
    if not 0 <= number < len(letters):
        message = f"Labels of einsum are numbers from 0 to 51, but got {number}."
        raise ArgumentError(message)
    return letters[number]


def _labels(term: str, ellipsis: int, subscripts: str) -> Labels:
    """The labels of one term, whose ellipsis stands for a number of axes."""
    head, dots, tail = term.partition("...")
    for character in head + tail:
        if not (character.isascii() and character.isalpha()):
            message = f"The subscripts {subscripts!r} hold {character!r}, which is not a letter."
            raise ArgumentError(message)
    middle: Labels = tuple(range(-ellipsis, 0)) if dots else ()
    return (*head, *middle, *tail)


def parse(subscripts: str, nodes: Sequence[Node]) -> tuple[list[Labels], Labels]:
    """The labels of each operand's axes, and of the result's."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(nodes):
        message = f"The subscripts {subscripts!r} name {len(terms)} operands, but {len(nodes)} were given."
        raise ArgumentError(message)
    inputs: list[Labels] = []
    widest = 0
    for term, node in zip(terms, nodes, strict=True):
        named = len(term.replace("...", ""))
        extra = node.ndim - named
        if extra < 0 or (extra > 0 and "..." not in term):
            message = f"The term {term!r} of {subscripts!r} does not fit an operand of shape {node.shape}."
            raise ShapeError(message)
        widest = max(widest, extra)
        inputs.append(_labels(term, extra, subscripts))
    seen = [label for labels in inputs for label in labels]
    if arrow:
        output = _labels(right, widest, subscripts)
        for label in output:
            if output.count(label) > 1 or label not in seen:
                message = f"The result of {subscripts!r} names {label!r} twice, or no operand has it."
                raise ArgumentError(message)
        if widest and "..." not in right:
            message = f"The result of {subscripts!r} leaves out the axes of the ellipsis; write '...' there too."
            raise ArgumentError(message)
    else:
        once = sorted(label for label in set(seen) if isinstance(label, str) and seen.count(label) == 1)
        output = (*range(-widest, 0), *once)
    return inputs, output


# ----- Contracting -----


def _extents(nodes: Sequence[Node], inputs: Sequence[Labels]) -> dict[Label, int]:
    """The extent of each label; an extent of 1 is broadcast."""
    extents: dict[Label, int] = {}
    for node, labels in zip(nodes, inputs, strict=True):
        for label, n in zip(labels, node.shape, strict=True):
            known = extents.get(label, 1)
            if known != n and 1 not in (known, n):
                message = f"The label {label!r} of an einsum stands for axes of extents {known} and {n}."
                raise ShapeError(message)
            extents[label] = n if known == 1 else known
    return extents


def _take_diagonals(node: Node, labels: Labels, extents: dict[Label, int]) -> tuple[Node, Labels]:
    """Repeated labels within one operand become diagonals."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            shape = list(node.shape)
            shape[first] = shape[second] = max(shape[first], shape[second])
            node = diagonal_node(broadcast(node, tuple(shape)), 0, first, second)
            labels = (*[v for k, v in enumerate(labels) if k not in (first, second)], label)
    return node, labels


def _sum(node: Node, axes: Sequence[int]) -> Node:
    if not axes or node.dtype != BOOL:
        return reduce("sum", node, axes)
    return reduce("max", node, axes)


def _sum_out(node: Node, labels: Labels, needed: set[Label], extents: dict[Label, int]) -> tuple[Node, Labels]:
    """Sum over the labels that nothing else needs."""
    gone = [k for k, label in enumerate(labels) if label not in needed]
    if gone:
        shape = tuple(
            [extents[label] if k in gone else n for k, (label, n) in enumerate(zip(labels, node.shape, strict=True))]
        )
        node = _sum(broadcast(node, shape), gone)
    return node, tuple([label for label in labels if label in needed])


def _arranged(node: Node, labels: Labels, wanted: Labels, shape: Sequence[int]) -> Node:
    """The node with the wanted labels as axes, in that order, read as `shape`; missing ones have extent 1."""
    node = transpose(node, tuple([labels.index(label) for label in wanted if label in labels]))
    extents = iter(node.shape)
    node = reshape(node, tuple([next(extents) if label in labels else 1 for label in wanted]))
    return broadcast(node, tuple(shape))


def contract_pair(
    a: Node, left: Labels, b: Node, right: Labels, needed: set[Label], extents: dict[Label, int]
) -> tuple[Node, Labels]:
    """One node from two, summed over the labels that are not needed afterwards."""
    a, left = _sum_out(a, left, needed | set(right), extents)
    b, right = _sum_out(b, right, needed | set(left), extents)
    batch = tuple([label for label in left if label in right and label in needed])
    summed = tuple([label for label in left if label in right and label not in needed])
    rows = tuple([label for label in left if label not in right])
    columns = tuple([label for label in right if label not in left])

    def size(labels: Labels) -> list[int]:
        return [extents[label] for label in labels]

    if (summed and rows and columns) or (summed and not batch and (rows or columns)):
        count, m, n, k = (math.prod(size(group)) for group in (batch, rows, columns, summed))
        first = reshape(_arranged(a, left, batch + rows + summed, size(batch + rows + summed)), (count, m, k))
        second = reshape(_arranged(b, right, batch + summed + columns, size(batch + summed + columns)), (count, k, n))
        return reshape(batched(first, second), tuple(size(batch + rows + columns))), batch + rows + columns
    every = batch + rows + columns + summed
    shapes = [[extents[v] if v in labels else 1 for v in every] for labels in (left, right)]
    product = multiply(_arranged(a, left, every, shapes[0]), _arranged(b, right, every, shapes[1]))
    product = _sum(product, range(len(every) - len(summed), len(every)))
    return product, batch + rows + columns


def einsum_node(nodes: Sequence[Node], inputs: Sequence[Labels], output: Labels, optimize: Any = True) -> Node:
    """The Einstein sum of nodes of one dtype."""
    extents = _extents(nodes, inputs)
    work: list[tuple[Node, Labels]] = []
    for node, labels in zip(nodes, inputs, strict=True):
        work.append(_take_diagonals(node, labels, extents))
    for pair in _order(work, output, optimize):
        chosen = [work[k] for k in pair]
        work = [item for k, item in enumerate(work) if k not in pair]
        needed = set(output).union(*[labels for _, labels in work])
        (a, left), (b, right) = chosen
        work.append(contract_pair(a, left, b, right, needed, extents))
    ((node, labels),) = work
    node, labels = _sum_out(node, labels, set(output), extents)
    return _arranged(node, labels, output, [extents[label] for label in output])


def _order(work: Sequence[tuple[Node, Labels]], output: Labels, optimize: Any) -> list[tuple[int, ...]]:
    """The pairs to contract, as positions in the list, which each contraction shortens by one."""
    count = len(work)
    pairs: list[tuple[int, ...]] = []
    for step in _path(work, output, optimize):
        group = sorted(step)
        left = count - len(group)
        if len(group) > 1:
            pairs.append((group[0], group[1]))
        # A step with more than two operands: the result of each pair is the last of the list.
        for done, position in enumerate(group[2:], start=2):
            pairs.append((position - done, count - done))
        count = left + 1
    return [*pairs, *[(0, 1)] * (count - 1)]


_STRATEGIES: dict[Any, Any] = {"greedy": "greedy", "optimal": "optimal", True: "auto", False: "auto", None: "auto"}


def _path(work: Sequence[tuple[Node, Labels]], output: Labels, optimize: Any) -> Sequence[Sequence[int]]:
    """The order of contractions: the user's, or the one that opt_einsum finds for three operands or more."""
    strategy = optimize
    if isinstance(optimize, list | tuple) and optimize:
        if optimize[0] == "einsum_path":
            return _checked_path(optimize[1:], len(work))
        # A strategy with a limit of memory, as NumPy takes it; the limit is not needed for pairs.
        strategy = optimize[0] if isinstance(optimize[0], str | bool) else "?"
    if not isinstance(strategy, str | bool | None) or strategy not in _STRATEGIES:
        message = (
            f"einsum takes optimize=True, False, 'greedy', 'optimal' or a path of np.einsum_path, but got {optimize!r}."
        )
        raise ArgumentError(message)
    if len(work) < 3:
        return []
    import opt_einsum

    symbols = {label: opt_einsum.get_symbol(k) for k, label in enumerate(dict.fromkeys(v for _, t in work for v in t))}
    text = ",".join("".join(symbols[v] for v in labels) for _, labels in work)
    text += "->" + "".join(symbols[v] for v in output)
    path, _ = opt_einsum.contract_path(
        text, *[node.shape for node, _ in work], shapes=True, optimize=_STRATEGIES[strategy]
    )
    return [step for step in path if not isinstance(step, str)]


def _checked_path(path: Sequence[Any], count: int) -> list[tuple[int, ...]]:
    """A user's path, if its positions exist."""
    steps: list[tuple[int, ...]] = []
    for given in path:
        step = tuple([integer(position, "a position of the path") for position in given])
        if not step or len(set(step)) != len(step) or min(step) < 0 or max(step) >= count:
            message = f"The step {given!r} of the path does not name some of the {count} operands that are left."
            raise ArgumentError(message)
        steps.append(step)
        count += 1 - len(step)
    return steps


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: Any = None,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
    optimize: Any = False,
) -> Tensor:
    """Sum of products of operands' elements, by names of axes.

    Parameters
    ----------
    subscripts : str
        As `"ij,jk->ik"`: names that are not in the result are summed over; without an arrow, the result has the names
        that appear once, sorted. The form `einsum(a, [0, 1], b, [1, 2], [0, 2])` works too.
    *operands : array-like
    out : Tensor or ndarray, optional
    dtype : dtype, optional
    order, casting
        Accepted as in NumPy.
    optimize : bool, {"greedy", "optimal"} or path
        The order in which operands are contracted: a path as `np.einsum_path` gives it, or how to look for one. Without
        it, three operands or more are contracted in a good order, too (opt_einsum's "auto").

    Returns
    -------
    Tensor

    Examples
    --------
    >>> einsum("i,ij,j", [1.0, 2.0], np.eye(2), [3.0, 4.0]).tolist()
    11.0
    """
    if not isinstance(subscripts, str):
        subscripts, values = _interleaved([subscripts, *operands])
    else:
        values = list(operands)
    if not values:
        message = "einsum needs at least one operand."
        raise ArgumentError(message)
    nodes = promote([array_node(v) for v in values], None if dtype is None else real_dtype(dtype))
    inputs, output = parse(subscripts, nodes)
    moves = len(nodes) == 1 and (dtype is None or nodes[0].dtype == as_node(values[0]).dtype)
    if moves and out is None and order in ("K", "A") and set(output) == set(inputs[0]):
        return _moved(values[0], lambda a: einsum_node([a], inputs, output, optimize))
    result = einsum_node(nodes, inputs, output, optimize)
    if out is None:
        result = _laid_out(result, nodes, inputs, output, order, bool(optimize))
    return deliver(result, out)


@viewing
def _moved(a: Any, moving: Callable[[Node], Node]) -> Tensor:
    """An Einstein sum that adds nothing, which NumPy gives as a view: axes permuted, diagonals."""
    return wrap(moving(array_node(a)))


def _laid_out(
    result: Node, nodes: Sequence[Node], inputs: Sequence[Labels], output: Labels, order: str, by_pairs: bool
) -> Node:
    """The result as NumPy lays it out: as the loop over all names runs, those of the result outside."""
    if order in ("C", "F") or by_pairs:
        return copied(result, order if order == "F" else "C")
    places = {label: position for position, label in enumerate(output)}
    in_order = all(
        node.layout is None and (kept := [places[v] for v in labels if v in places]) == sorted(kept)
        for node, labels in zip(nodes, inputs, strict=True)
    )
    if in_order:
        return copied(result, "C")
    names = [*output, *dict.fromkeys([v for labels in inputs for v in labels if v not in places])]
    extents = _extents(nodes, inputs)
    steps: list[tuple[int, ...]] = []
    for node, labels in zip(nodes, inputs, strict=True):
        strides = list(zip(labels, strides_of(node), strict=True))
        steps.append(tuple([sum(step for v, step in strides if v == name) for name in names]))
    loop = order_of_loop(tuple([extents[name] for name in names]), steps)
    return with_axis_order(result, [axis for axis in loop if axis < len(output)])


def einsum_path(*operands: Any, optimize: Any = "greedy", **options: Any) -> Any:
    """The order of contractions that NumPy finds, and a description of it; the values of the operands do not matter."""

    def stand_in(value: Any) -> Any:
        return np.broadcast_to(np.empty((), value._node.dtype), value.shape) if isinstance(value, Tensor) else value

    return np.einsum_path(*[stand_in(value) for value in operands], optimize=optimize, **options)
