"""Batching: a graph for one value becomes a graph for many at once.

In: outputs, and for some of the nodes that they depend on a batched version with a leading axis. Out: the outputs with
that leading axis. Called by the Jacobians (functional.py), which push a whole basis through one linear graph, and by
`vmap`. One rule per kind of primitive; nodes that do not depend on a batched one stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .ir import INT64, Node, broadcast, elementwise, extent, make, placed, placeholder, topological
from .primitives import gather, iota, reshape, scatter_add, scatter_last, transpose


def batch(outputs: Sequence[Node], batched: Mapping[Node, Node], size: int) -> list[Node]:
    """The outputs for `size` values at once; those that do not depend on a batched node are repeated."""
    return batch_further(outputs, dict(batched), size)


def batch_further(outputs: Sequence[Node], known: dict[Node, Node | None], size: int) -> list[Node]:
    """The same when some nodes are `known`: their batched versions, or None for those that are the same for all values.

    All nodes that are visited are entered, so that the next call only visits newer ones.
    """
    for node in topological(outputs, known):
        operands = [known[source] for source in node.inputs]
        if all(operand is None for operand in operands):
            known[node] = None
            continue
        made = _batched(node, operands, size)
        known[node] = made if made.place is not None or node.place is None else placed(made, node.place)
    return [_spread(node, known[node], size) for node in outputs]


def _spread(node: Node, batched: Node | None, size: int) -> Node:
    """A batched operand, or the same value for all."""
    return broadcast(node, (size, *node.shape)) if batched is None else batched


def _offsets(size: int, step: int, shape: tuple[int, ...]) -> Node:
    """`step` times the position in the batch, in the shape (size, *shape)."""
    column = reshape(iota(size) * extent(step, INT64), (size, *[1] * len(shape)))
    return broadcast(column, (size, *shape))


def _batched(node: Node, operands: list[Node | None], size: int) -> Node:
    name, params = node.name, node.params
    if name == "matmul":
        return _matmul(node, operands, size)
    if name == "custom":
        from_parts = [_spread(s, o, size) for s, o in zip(node.inputs, operands, strict=True)]
        return make("custom", tuple(from_parts), (BatchedRule(node, size),))
    if name == "gather":
        source, index = node.inputs
        if operands[0] is None:
            return make("gather", (source, _spread(index, operands[1], size)))
        flat = reshape(operands[0], (size * source.size,))
        return gather(flat, _spread(index, operands[1], size) + _offsets(size, source.size, index.shape))
    full = [_spread(s, o, size) for s, o in zip(node.inputs, operands, strict=True)]
    match name:
        case "reshape":
            return reshape(full[0], (size, *params[0]))
        case "transpose":
            return transpose(full[0], (0, *[axis + 1 for axis in params[0]]))
        case "broadcast":
            source = node.inputs[0]
            padded = (size, *[1] * (node.ndim - source.ndim), *source.shape)
            return broadcast(reshape(full[0], padded), (size, *node.shape))
        case "slice":
            return make(name, tuple(full), (((0, size, 1), *params[0]),))
        case "pad":
            return make(name, tuple(full), (((0, 0), *params[0]),))
        case "concatenate":
            return make(name, tuple(full), (params[0] + 1,))
        case "sum" | "prod" | "max" | "min":
            return make(name, tuple(full), (tuple([axis + 1 for axis in params[0]]),))
        case "scatter_add":
            length = params[0]
            index = full[0] + _offsets(size, length, node.inputs[0].shape)
            return reshape(scatter_add(size * length, index, full[1]), (size, length))
        case "scatter_last":
            length = params[0]
            index = full[0] + _offsets(size, length, node.inputs[0].shape)
            winner = reshape(scatter_last(size * length, index), (size, length))
            own = winner - _offsets(size, node.inputs[0].size, (length,))
            return elementwise("select", elementwise("less", winner, 0), winner, own)
        case "unfold" | "window_argmax":
            many, channels, *extents = node.inputs[0].shape
            made = make(name, (reshape(full[0], (size * many, channels, *extents)),), params)
            if name == "window_argmax":
                return reshape(made, (size, *node.shape))
            made = reshape(made, (*node.shape[:3], size, *node.shape[3:]))
            return transpose(made, (3, 0, 1, 2, 4, 5, 6))
        case "fold":
            channels, kh, kw, many, oh, ow = node.inputs[0].shape
            moved = transpose(full[0], (1, 2, 3, 0, 4, 5, 6))
            made = make(name, (reshape(moved, (channels, kh, kw, size * many, oh, ow)),), params)
            return reshape(made, (size, *node.shape))
        case "lu" | "cholesky" | "triangular_solve" | "complete_pivots":
            flat = [reshape(operand, (size * operand.shape[1], *operand.shape[2:])) for operand in full]
            return reshape(make(name, tuple(flat), params), (size, *node.shape))
        case _:
            # Elementwise primitives, and special ones that work along the last axis.
            return make(name, tuple(full), params)


def _matmul(node: Node, operands: list[Node | None], size: int) -> Node:
    a, b = node.inputs
    many, m, k = a.shape
    n = b.shape[2]
    if operands[1] is None and operands[0] is not None and many == 1:
        # One right-hand side for all: a single product with more rows.
        product = make("matmul", (reshape(operands[0], (1, size * m, k)), b))
        return reshape(product, (size, 1, m, n))
    full_a = reshape(_spread(a, operands[0], size), (size * many, m, k))
    full_b = reshape(_spread(b, operands[1], size), (size * many, k, n))
    return reshape(make("matmul", (full_a, full_b)), (size, many, m, n))


class BatchedRule:
    """A user's reverse rule, applied to every value of a batch."""

    def __init__(self, node: Node, size: int) -> None:
        self.node = node
        self.size = size
        self.argument_count = getattr(node.params[0], "argument_count", len(node.inputs))
        self.tangent = None if getattr(node.params[0], "tangent", None) is None else self._tangent

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """Trace the rule for one value, then batch what it built."""
        stand_ins = [placeholder(s.shape, s.dtype) for s in self.node.inputs]
        single = Node(self.node.primitive, tuple(stand_ins), self.node.params, self.node.shape, self.node.dtype)
        g_single = placeholder(self.node.shape, self.node.dtype)
        found = self.node.params[0].cotangents(g_single, single)
        known = dict(zip(stand_ins, node.inputs, strict=True))
        known[g_single] = g
        parts = batch([part for part in found if part is not None], known, self.size)
        results = iter(parts)
        return [None if part is None else next(results) for part in found]

    def _tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        """The same for a rule's own way forward."""
        stand_ins = [placeholder(s.shape, s.dtype) for s in self.node.inputs]
        single = Node(self.node.primitive, tuple(stand_ins), self.node.params, self.node.shape, self.node.dtype)
        moves = [None if t is None else placeholder(s.shape, s.dtype) for s, t in zip(stand_ins, tangents, strict=True)]
        found = self.node.params[0].tangent(single, moves)
        known = dict(zip(stand_ins, node.inputs, strict=True))
        known.update({one: t for one, t in zip(moves, tangents, strict=True) if one is not None and t is not None})
        return batch([found], known, self.size)[0]
