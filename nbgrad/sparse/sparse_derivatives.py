"""`sparse_jacobian` and `sparse_hessian`: matrices of derivatives that are mostly zero, from a handful of products.

In: a function. Out: a callable that gives a `scipy.sparse.csr_array`. The function is recorded once per signature of
its arguments, like by `jit`; its graph tells which entries there can be (pattern.py), a coloring tells which
columns or rows may be computed together (colors.py), and all these products are one compiled program, whose
result is the array of entries. Called by users.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiled.jit import Jitted
from ..errors import ArgumentError, DtypeError, ShapeError, TracedValueError
from ..graph.batch import batch
from ..graph.builders import cast, concatenate, gather, iota, reshape
from ..graph.differentiate import jvp, vjp
from ..graph.ir import INT64, Node, broadcast, constant, elementwise, placeholder, zeros
from ..graph.rules.elementwise_rules import uniform_source
from ..graph.simplify import simplify
from ..graph.trace import current_trace, recording
from ..process.named_objects import NamedObject
from ..record.tensor import Tensor
from ..transforms.argument_positions import check_flag, check_function, check_positions, with_positions
from ..transforms.arguments import name_of, output_nodes, prepare, with_zeros
from ..transforms.grad import split_aux
from .colors import Plan, plan, symmetric_plan
from .pattern import dependencies
from .read_elements import Reads, read_elements, read_plan
from .whole_blocks import checked, order_in_blocks, whole_blocks

MOST_ELEMENTS = 1 << 31
"""Products with more elements than this, together, are refused."""
MOST_RECORDINGS = 16
"""At most this many recordings for one signature are kept."""


class _Layout:
    """The pattern of a matrix, and how its entries are found; it never changes, so callers share it."""

    def __init__(self, pattern: Any, plan: Plan, blocks: Any = None) -> None:
        self.pattern, self.plan = pattern, plan
        self.blocks = blocks
        """The bsr_array of the entries' numbers, where they are given in blocks."""

    def __deepcopy__(self, memo: Any) -> _Layout:
        return self


class SparseMatrixOf(NamedObject):
    """A function that gives a matrix of derivatives in sparse form. Made by `sparse_jacobian` and `sparse_hessian`."""

    def __init__(
        self, fn: Callable[..., Any], grad_position: Any, has_aux: bool, symmetric: bool, block: Any = None
    ) -> None:
        self._fn, self._positions = fn, check_positions(grad_position)
        self._has_aux, self._symmetric = check_flag(has_aux, "has_aux"), symmetric
        self._block = checked(block)
        self._entries = Jitted(self._record)
        functools.update_wrapper(self, fn, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The matrix; with `has_aux` a pair of the matrix and the rest of the function's output."""
        entries, layout, aux = self._run(args, kwargs)
        pattern = layout.pattern
        values = np.asarray(entries)
        if values.dtype.itemsize < 4:
            values = values.astype(np.float32)
        import scipy.sparse

        # The caller may change the matrix in place.
        if layout.blocks is not None:
            pattern = layout.blocks
            parts = (values.reshape(pattern.data.shape), pattern.indices.copy(), pattern.indptr.copy())
            matrix = scipy.sparse.bsr_array(parts, shape=pattern.shape)
        else:
            parts = (values, pattern.indices.copy(), pattern.indptr.copy())
            matrix = scipy.sparse.csr_array(parts, shape=pattern.shape)
        return (matrix, aux) if self._has_aux else matrix

    def with_functions(self, change: Callable[[Any], Any]) -> SparseMatrixOf:
        """A copy with a changed function."""
        return SparseMatrixOf(change(self._fn), self._positions, self._has_aux, self._symmetric, self._block)

    def __reduce__(self) -> Any:
        """A copy, also in another process, records for itself."""
        return SparseMatrixOf, (self._fn, self._positions, self._has_aux, self._symmetric, self._block)

    def pattern(self, *args: Any, **kwargs: Any) -> Any:
        """The entries that the matrix can have, for arguments like these: a csr_array of bool with sorted indices."""
        return self._run(args, kwargs)[1].pattern.copy()

    def colors(self, *args: Any, **kwargs: Any) -> tuple[np.ndarray, np.ndarray]:
        """The colors of the columns and of the rows, -1 where there is none.

        Columns of one color share a product J @ s, rows of one color a product s @ J.
        """
        found = self._run(args, kwargs)[1].plan
        return found.columns.copy(), found.rows.copy()

    def products(self, *args: Any, **kwargs: Any) -> int:
        """The number of products with the matrix that are computed, all at once, for arguments like these."""
        found = self._run(args, kwargs)[1].plan
        return found.forward + found.reverse

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, _Layout, Any]:
        if current_trace() is not None:
            kind = "hessian" if self._symmetric else "jacobian"
            message = (
                f"The sparse_{kind} of {name_of(self._fn)}() is called while a function is recorded, where a scipy "
                "matrix cannot be computed. Call it outside of jit, grad and the like (it is compiled by itself), or "
                "use jvp, vjp or hvp for products with the matrix."
            )
            raise TracedValueError(message)
        return self._entries(*args, **kwargs)

    def _record(self, *args: Any, **kwargs: Any) -> tuple[Tensor, _Layout, Any]:
        """The entries, recorded for `jit`; the layout belongs to the recording."""
        fn = self._fn
        for known in self._entries._specializations.values():
            # Where positions come from values, old recordings hardly ever fit again.
            del known[MOST_RECORDINGS:]
        call = prepare(fn, args, kwargs, self._positions)
        if any(node.dtype.kind == "c" for node in call.nodes):
            message = (
                f"{name_of(fn)}() is to be differentiated by a complex array, for which there is no sparse matrix. "
                "Pass its real and imaginary part as two arguments, and differentiate by both."
            )
            raise DtypeError(message)
        with recording(call.nodes, callers=call.callers) as trace:
            output, aux = fn(*call.args, **call.kwargs), None
            if trace.tokens:
                message = (
                    f"{name_of(fn)}() sends messages between processes, of which the sparse derivatives know nothing. "
                    "Use nb.jacrev or nb.jacfwd."
                )
                raise ArgumentError(message)
            if self._has_aux:
                output, rest = split_aux(fn, output)
                aux = rest[0] if len(rest) == 1 else rest
            outputs = output_nodes(fn, output)
            if not outputs:
                message = f"{name_of(fn)}() returned no floating-point array, so it has no derivatives."
                raise DtypeError(message)
            if self._symmetric:
                outputs = _gradient(fn, outputs, call.nodes)
            found = self._by_reads(outputs, call.nodes) or self._by_columns(outputs, call.nodes)
            entries = found.entries(name_of(fn))
        return Tensor._of(entries), found.layout, aux

    def _by_reads(self, outputs: Sequence[Node], wrt: Sequence[Node]) -> _Products | None:
        """The products by elements as they are read, if these are fewer."""
        if self._symmetric or self._block is not None or any(node.dtype.kind == "c" for node in outputs):
            return None
        reads = read_elements(outputs, wrt)
        if reads is None:
            return None
        tangents = _Linear(reads.outputs, reads.nodes, forward=True)
        planned = read_plan(dependencies(tangents.results, tangents.stand_ins), reads, sum(node.size for node in wrt))
        return None if planned is None else _Products(_Layout(*planned), reads.outputs, reads.nodes, reads=reads)

    def _by_columns(self, outputs: Sequence[Node], wrt: Sequence[Node]) -> _Products:
        """The products by columns and rows of the matrix."""
        tangents = _Linear(outputs, wrt, forward=True)
        pattern = dependencies(tangents.results, tangents.stand_ins)
        if self._symmetric:
            # The pattern may have more than there is, but its mirror image may not.
            pattern = (pattern * pattern.T).tocsr()
            pattern.sort_indices()
        if self._block is not None:
            pattern = whole_blocks(pattern, self._block)
        shapes = [_joint_shape(nodes) for nodes in (outputs, wrt)]
        if self._symmetric:
            found = symmetric_plan(pattern, shapes[1])
        else:
            # A cotangent of complex numbers is no row of the matrix.
            found = plan(pattern, *shapes, only_columns=any(node.dtype.kind == "c" for node in outputs))
        layout = _Layout(pattern, found, self._block and order_in_blocks(pattern, self._block))
        return _Products(layout, outputs, wrt, tangents)


def _gradient(fn: Callable[..., Any], outputs: Sequence[Node], wrt: Sequence[Node]) -> list[Node]:
    """The gradient of a scalar, like `wrt`."""
    if len(outputs) != 1 or outputs[0].size != 1 or outputs[0].dtype.kind == "c":
        shapes = ", ".join(f"{node.dtype} of shape {node.shape}" for node in outputs)
        message = (
            f"sparse_hessian needs a function that returns one real number, but {name_of(fn)}() returned {shapes}. "
            "Sum what it returns, or use sparse_jacobian of its gradient."
        )
        raise ShapeError(message)
    one = zeros(outputs[0].shape, outputs[0].dtype) + 1.0
    return with_zeros(vjp(outputs, [one], wrt), wrt)


def _joint_shape(nodes: Sequence[Node]) -> tuple[int, ...] | None:
    """The shape of an array that holds the elements of all nodes in their order; None if they differ in shape."""
    shapes = {node.shape for node in nodes}
    return (len(nodes), *shapes.pop()) if len(shapes) == 1 else None


class _Linear:
    """The tangents of outputs as functions of those of inputs, or the cotangents of inputs of those of outputs."""

    def __init__(self, outputs: Sequence[Node], wrt: Sequence[Node], forward: bool) -> None:
        self.stand_ins = [placeholder(node.shape, node.dtype) for node in (wrt if forward else outputs)]
        if forward:
            found = with_zeros(jvp(outputs, wrt, self.stand_ins), outputs)
        else:
            found = with_zeros(vjp(outputs, self.stand_ins, wrt), wrt)
        self.results = simplify(found)

    def products(self, colors: np.ndarray, count: int, dtype: np.dtype[Any], alone: bool) -> list[Node]:
        """The products with the sums of the unit vectors of each color: for each result, a row for each color.

        `alone` if no other products are read: then what has no color has no entries, and one color is of all.
        """
        seeds: dict[Node, Node] = {}
        offset = 0
        small = np.int8 if count < 128 else np.int64
        for node in self.stand_ins:
            if alone and count == 1:
                seeds[node] = zeros((1, *node.shape), node.dtype) + 1.0
                continue
            own = constant(colors[offset : offset + node.size].astype(small))
            shape = (count, node.size)
            number = cast(broadcast(reshape(iota(count), (count, 1)), shape), own.dtype)
            chosen = cast(elementwise("equal", broadcast(own, shape), number), node.dtype)
            seeds[node] = reshape(chosen, (count, *node.shape))
            offset += node.size
        found = batch(self.results, seeds, count)
        return simplify([reshape(cast(node, dtype), (count, node.size // count)) for node in found])


def _pieces(rows: Sequence[Node]) -> list[tuple[Node, int]]:
    """Products as flat arrays, and the number of elements that each stands for: one number stands for as many."""
    count = rows[0].shape[0]
    if count > 1:
        whole = concatenate(rows, 1)
        return [(reshape(whole, (whole.size,)), whole.size)]
    found: list[tuple[Node, int]] = []
    for node in rows:
        source = uniform_source(node)
        found.append((reshape(node if source is None else source, (node.size if source is None else 1,)), node.size))
    return found


@dataclass(frozen=True, eq=False)
class _Products:
    """The products of which the entries are taken."""

    layout: _Layout
    outputs: Sequence[Node]
    wrt: Sequence[Node]
    tangents: _Linear | None = None
    reads: Reads | None = None
    """Where `wrt` stands for elements of the arguments as they are read."""

    def entries(self, name: str) -> Node:
        """The entries of the pattern of the derivatives of the function of that name, in their order."""
        dtype = np.result_type(*[node.dtype for node in self.outputs])
        found = self.layout.plan
        if not found.place.size:
            return zeros((0,), dtype)
        width = sum(node.size for node in self.wrt)
        elements = found.forward * self.layout.pattern.shape[0] + found.reverse * width
        if elements > MOST_ELEMENTS:
            message = (
                f"The matrix of derivatives of {name}(), of shape {self.layout.pattern.shape}, takes "
                f"{found.forward + found.reverse} products: that is not sparse. Use jvp, vjp or hvp for products "
                "with it."
            )
            raise ArgumentError(message)
        pieces: list[tuple[Node, int]] = []
        if found.forward and self.tangents is not None:
            pieces += _pieces(self.tangents.products(found.columns, found.forward, dtype, not found.reverse))
        if found.reverse:
            cotangents = _Linear(self.outputs, self.wrt, forward=False)
            pieces += _pieces(cotangents.products(found.rows, found.reverse, dtype, not found.forward))
        place = found.place
        if self.layout.blocks is not None:
            place = place[self.layout.blocks.data.ravel()]
        if self.reads is not None and len(place) > 1:
            # Behind the products is a zero, for what is read less often than other elements.
            pieces.append((zeros((1,), dtype), 1))
        ends = np.cumsum([size for _, size in pieces])
        piece = np.searchsorted(ends, place, side="right")
        held = np.array([node.size for node, _ in pieces])
        inside = place - (ends - [size for _, size in pieces])[piece]
        place = (np.cumsum(held) - held)[piece] + np.where(held[piece] == 1, 0, inside)
        whole = concatenate([node for node, _ in pieces], 0)
        if self.reads is None:
            return gather(whole, constant(place.astype(INT64)))
        terms = [gather(whole, constant(line.astype(INT64))) for line in place]
        return functools.reduce(lambda one, other: one + other, terms)


@with_positions
def sparse_jacobian(
    fn: Callable[..., Any], grad_position: Any = 0, has_aux: bool = False, block: int | tuple[int, int] | None = None
) -> SparseMatrixOf:
    """A function that computes the Jacobian of `fn` as a sparse matrix, by few products.

    Parameters
    ----------
    fn : callable
        Takes floating-point arrays of any shape, or containers of them, and returns such, or complex ones.
    grad_position : int or tuple of int
        The arguments to differentiate.
    has_aux : bool
        If true, only the first element of the returned tuple is differentiated; the result is `(jacobian, aux)`.
    block : int or pair of int, optional
        The rows and columns of blocks, which divide the matrix: it has every entry of a block of which there is one,
        as a `scipy.sparse.bsr_array`. For systems of several unknowns at each point, and solvers that take blocks.

    Returns
    -------
    callable
        Takes the arguments of `fn` and gives a `scipy.sparse.csr_array` with a row for each element of the result and
        a column for each element of the argument, both in C order; several arrays follow one another. It has an entry
        wherever the derivative can be other than zero, for any values (float32 if `fn` works in float16). Its
        methods `pattern`, `colors` and `products` take the same arguments and tell how the entries are found.

    Raises
    ------
    ArgumentError, DtypeError
        As `grad`; ArgumentError too if the Jacobian is too large and not sparse.
    ShapeError
        If blocks do not divide the matrix.
    TracedValueError
        If it is called while another function is recorded.

    Notes
    -----
    As by `jit`, `fn` is recorded once per signature (shapes and dtypes of arrays, values of everything else), so what
    it reads from outside is frozen then, and branches on values are checked at each call. Pattern and coloring belong
    to the recording. Positions that are computed from values are checked like branches: where they differ, `fn` is
    recorded again.

    Columns without common rows are found by one product (Curtis, Powell and Reid 1974); rows, or some rows, are used
    where that takes fewer. A function that takes elements of its arguments before it computes, by slices or positions,
    is differentiated by these elements, each of which few rows read: one product is enough for a stencil. See
    Gebremedhin, Manne and Pothen, "What color is your Jacobian?", SIAM Review 47, 2005.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> jacobian = nb.sparse_jacobian(lambda x: x[1:] ** 2 - x[:-1])
    >>> jacobian(np.array([1.0, 2.0, 3.0, 4.0])).toarray()
    array([[-1.,  4.,  0.,  0.],
           [ 0., -1.,  6.,  0.],
           [ 0.,  0., -1.,  8.]])
    >>> jacobian.products(np.zeros(100_000))
    1
    >>> pairs = nb.sparse_jacobian(lambda x: x * x[::-1].reshape(2, 2)[:, ::-1].ravel(), block=2)
    >>> pairs(np.array([1.0, 2.0, 3.0, 4.0])).blocksize
    (2, 2)
    """
    check_function(fn, "sparse_jacobian")
    return SparseMatrixOf(fn, grad_position, has_aux, symmetric=False, block=block)


@with_positions
def sparse_hessian(fn: Callable[..., Any], grad_position: Any = 0) -> SparseMatrixOf:
    """A function that computes the matrix of second derivatives of `fn` as a sparse matrix, by few products.

    Parameters
    ----------
    fn : callable
        Returns one real number.
    grad_position : int or tuple of int
        The arguments to differentiate, twice.

    Returns
    -------
    callable
        As from `sparse_jacobian`; rows and columns count the elements of the argument.

    Raises
    ------
    ArgumentError, DtypeError, TracedValueError
        As `sparse_jacobian`.
    ShapeError
        If `fn` returns more than one number.

    Notes
    -----
    The Jacobian of the gradient, of which one of two mirrored entries is enough: a star coloring of the graph of the
    matrix (Coleman and More 1984; Gebremedhin, Tarafdar, Manne and Pothen 2007). The result is symmetric up to
    rounding where both of them were computed.
    Where a rule of your own (`custom_vjp`) is not the true gradient, the matrix need not be symmetric: then use
    `sparse_jacobian(nb.grad(fn))`.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> hessian = nb.sparse_hessian(lambda x: x[0] * np.sum(x**2))
    >>> hessian(np.array([1.0, 2.0, 3.0])).toarray()
    array([[6., 4., 6.],
           [4., 2., 0.],
           [6., 0., 2.]])
    >>> hessian.products(np.ones(1000))
    2
    """
    check_function(fn, "sparse_hessian")
    return SparseMatrixOf(fn, grad_position, False, symmetric=True)
