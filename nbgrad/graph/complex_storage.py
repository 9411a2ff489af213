"""Complex arrays in memory: a graph with complex leaves and results becomes one of real arrays.

In: output nodes and leaves, of which some are complex. Out: the same graph with each complex leaf, result and operand
of a library function as a real array with one more axis, which holds the real and the imaginary part: just the bytes of
the complex array. Library functions get the shapes and dtypes that they know as a last parameter. Called by the runtime
when it makes a program, so that nothing behind it knows of complex numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from .builders import concatenate, reshape, slice_axes
from .complex_numbers import is_complex
from .ir import PART_OF, Node, constant, make, on_host, placeholder, topological
from .loops.origins import walked
from .primitives import PRIMITIVES

FIRST = frozenset(PRIMITIVES[name] for name in ("alias", "custom"))
"""Primitives whose value is their first input."""
LEAVES = frozenset(PRIMITIVES[name] for name in ("input", "constant"))
COMPLEX, HOST, REAL, IMAG = (PRIMITIVES[name] for name in ("complex", "host", "real", "imag"))


def interleaved(outputs: Sequence[Node], leaves: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """The real graph's outputs, and its leaves in place of `leaves`."""
    order = topological([*outputs, *leaves])
    if not any(is_complex(node) or node.primitive is HOST for node in order):
        return list(outputs), list(leaves)
    new: dict[Node, Node] = {}
    """Real nodes in place of real ones, and of complex ones the real array of their bytes."""
    halves: dict[Node, tuple[Node, Node]] = {}
    """The parts of complex nodes, where those are nodes of their own."""
    for node in walked(order):
        if node.primitive is REAL or node.primitive is IMAG:
            new[node] = _parts(new, halves, node.inputs[0])[node.primitive is IMAG]
        elif is_complex(node):
            if node.primitive is COMPLEX:
                halves[node] = (new[node.inputs[0]], new[node.inputs[1]])
            elif node.primitive in FIRST:
                source = node.inputs[0]
                if source in halves:
                    halves[node] = halves[source]
                else:
                    new[node] = new[source]
            elif node.primitive in LEAVES:
                new[node] = _leaf(node)
            else:
                assert node.primitive is HOST, node
                new[node] = _host(node, tuple([_bytes(new, halves, source) for source in node.inputs]))
        elif node.primitive is HOST:
            new[node] = _host(node, tuple([_bytes(new, halves, source) for source in node.inputs]))
        else:
            inputs = node.inputs
            if node.primitive in FIRST:
                inputs = inputs[:1]
            replaced = tuple([new[source] for source in inputs])
            if replaced == node.inputs:
                new[node] = node
            else:
                new[node] = make("alias", replaced) if node.primitive in FIRST else _like(node, replaced)
    return [_bytes(new, halves, node) for node in outputs], [new[leaf] for leaf in leaves]


def _like(node: Node, inputs: tuple[Node, ...]) -> Node:
    return Node(node.primitive, inputs, node.params, node.shape, node.dtype)


def _leaf(node: Node) -> Node:
    shape, dtype = (*node.shape, 2), PART_OF[node.dtype]
    value = None
    if node.device is not None:
        value = None if node.value is None else node.value.view(dtype, shape)
    elif node.value is not None:
        value = on_host(node.value).astype(node.dtype, order="C", copy=False).reshape(*node.shape, 1).view(dtype)
    made = constant(value) if node.name == "constant" and value is not None else placeholder(shape, dtype, value)
    made.place = node.place
    return made


def _host(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The library function on the bytes of complex arrays: a node of the real dtype that remembers the true layouts."""
    layouts = tuple([(source.shape, source.dtype) for source in (*node.inputs, node)])
    shape, dtype = ((*node.shape, 2), PART_OF[node.dtype]) if is_complex(node) else (node.shape, node.dtype)
    return Node(HOST, inputs, (*node.params, layouts), shape, dtype)


def _parts(new: dict[Node, Node], halves: dict[Node, tuple[Node, Node]], z: Node) -> tuple[Node, Node]:
    if z not in halves:
        lead = [(0, n, 1) for n in z.shape]
        both = [reshape(slice_axes(new[z], [*lead, (k, 1, 1)]), z.shape) for k in (0, 1)]
        halves[z] = both[0], both[1]
    return halves[z]


def _bytes(new: dict[Node, Node], halves: dict[Node, tuple[Node, Node]], node: Node) -> Node:
    """The real array of a node: of a complex one, its parts side by side."""
    if node not in new:
        axis = node.ndim
        new[node] = concatenate([reshape(part, (*node.shape, 1)) for part in halves[node]], axis)
    return new[node]
