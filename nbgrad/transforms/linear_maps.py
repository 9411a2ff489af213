"""The derivative of a function as a linear map, and the transpose of a linear function: JAX's `linearize` and
`linear_transpose`.

In: a function, and the point (or the shapes of its arguments). Out: functions that apply the map or its transpose to
as many vectors as the caller has, without recording the function again. Called by users.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import optree

from ..errors import ArgumentError, DtypeError, TracedValueError
from ..graph.complex_numbers import conjugate
from ..graph.ir import Earlier, Node, placeholder, topological
from ..graph.loops.loop_rewrites import substituted
from ..graph.trace import current_trace, recording
from ..record.call_order import jvp as node_jvp
from ..record.call_order import vjp as node_vjp
from ..record.tensor import Tensor
from ..runtime.memory_order import strides_of
from .argument_positions import check_flag, check_function
from .arguments import Results, flatten, kind_as, name_of, node_of, numeric_nodes, output_nodes, prepare, with_zeros
from .jacobians import paired, split, vector
from .lent_arrays import kind_of, lent
from .rolled import conditions_of, nodes_in, roll_up


def linearize(fn: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of a function at a point, and the function that multiplies its Jacobian there with vectors.

    Parameters
    ----------
    fn : callable
    *primals : arrays, floats, or containers of them
        The point: one for each argument of the function.
    has_aux : bool
        If true, only the first element of the returned tuple is differentiated.

    Returns
    -------
    out : as `fn` returns it
    jvp_fn : callable
        Takes one tangent for each argument; gives the tangent of the output. What it needs of the point is computed
        once, with `out`; each call costs the linear part alone (loops are done again).
    aux : only with `has_aux`

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For arguments and tangents that do not fit.

    Notes
    -----
    For one vector, `jvp` costs less; for all unit vectors, `jacfwd`.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> out, jvp_fn = nb.linearize(np.exp, np.array([0.0, 1.0]))
    >>> jvp_fn(np.array([3.0, 0.0])), jvp_fn(np.array([5.0, 0.0]))
    (array([3., 0.]), array([5., 0.]))
    """
    check_function(fn, "linearize")
    check_flag(has_aux, "has_aux")
    # jvp_fn runs later, when the user may have written to the arrays.
    leaves, treespec = flatten(primals)
    kept = [np.array(v) if isinstance(v, np.ndarray) else lent(v, copy=True) for v in leaves]
    held: Any = optree.tree_unflatten(treespec, kept)
    call = prepare(fn, held, {}, range(len(primals)))
    call.callers.stand_for(dict(zip(map(id, kept), leaves, strict=True)))
    stand_ins = [placeholder(node.shape, node.dtype) for node in call.nodes]
    with recording(call.nodes, callers=call.callers, rolls=strides_of, of=fn) as trace:
        output, aux = split(fn, fn(*call.args), has_aux)
        output_nodes(fn, output)
        roll_up(trace, [*nodes_in(output, aux), *conditions_of(trace)], call.nodes)
        output_leaves, output_tree = flatten(output)
        nodes = [node_of(leaf) if kind_of(leaf) != "other" else None for leaf in output_leaves]
        numeric = [node for node in nodes if node is not None]
        tangents = with_zeros(node_jvp(numeric, call.nodes, stand_ins), numeric)
    results = Results(trace.budgets)
    results.store(call.callers)
    slots = results.value(output, call.tensors), results.value(aux, call.tensors)
    read = [] if trace.tokens else _read(tangents, stand_ins, call.nodes)
    point = [results.add(node, "tensor") for node in read]
    if current_trace() is None:
        results.wait_for(trace.tokens[-1] if trace.tokens else None)
    filled = results.fill(*slots, tuple(point))
    pairs = zip(read, filled[2], strict=True)
    at_point = {node: tensor._node for node, tensor in pairs if tensor._node is not node}
    linear = substituted(tangents, at_point) if at_point else tangents

    def jvp_fn(*vectors: Any) -> Any:
        if len(vectors) != len(primals):
            message = (
                f"{name_of(fn)}() was linearized at {len(primals)} argument{'s' if len(primals) != 1 else ''}, so "
                f"its linear map takes as many tangents, but got {len(vectors)}."
            )
            raise ArgumentError(message)
        given = [vector(value, node, f"Tangent {k}") for k, (value, node) in enumerate(paired(vectors, call))]
        found = iter(substituted(linear, dict(zip(stand_ins, given, strict=True))))
        tensors = call.tensors or any(isinstance(leaf, Tensor) for leaf in flatten(vectors)[0])
        wanted = Results(trace.budgets)
        pairs = zip(output_leaves, nodes, strict=True)
        moved = [leaf if node is None else wanted.add(next(found), kind_as(tensors)) for leaf, node in pairs]
        return wanted.fill(optree.tree_unflatten(output_tree, moved))[0]

    return (filled[0], jvp_fn, filled[1]) if has_aux else (filled[0], jvp_fn)


def _read(outputs: Sequence[Node], stand_ins: Collection[Node], wrt: Collection[Node]) -> list[Node]:
    """The values at the point that a linear graph of stand-ins reads: those to compute once."""
    moving, varying = set(stand_ins), set(wrt)
    found: dict[Node, None] = {}
    for node in topological(outputs):
        if not varying.isdisjoint(node.inputs):
            varying.add(node)
        if node in moving or not moving.isdisjoint(node.inputs):
            moving.add(node)
    waiting = [source for node in moving for source in node.inputs]
    for source in waiting:
        if source in moving or source not in varying or source in wrt or source in found:
            continue
        if source.primitive.kind == "movement" and source.size > max([one.size for one in source.inputs], default=0):
            waiting += source.inputs  # repeated elements take no memory as long as they are not computed
        else:
            found[source] = None
    return sorted(found, key=lambda node: node.serial)


def linear_transpose(fn: Callable[..., Any], *primals: Any) -> Callable[..., Any]:
    """The transpose of a linear function.

    Parameters
    ----------
    fn : callable
        A linear function of all its arguments.
    *primals : arrays, or containers of them
        Only their shapes and dtypes are of interest; objects with `shape` and `dtype` do, too.

    Returns
    -------
    callable
        Takes a vector with the structure of the output; gives a tuple with one for each argument. Complex numbers are
        not conjugated, unlike in `vjp`.

    Raises
    ------
    ArgumentError
        If the function is not linear: when the transpose is called, or at once if it looks at values.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> transpose = nb.linear_transpose(np.cumsum, np.zeros(3))
    >>> transpose(np.array([1.0, 10.0, 100.0]))
    (array([111., 110., 100.]),)
    """
    check_function(fn, "linear_transpose")
    leaves, treespec = flatten(primals)
    stand_ins = [_stand_in(leaf, position, fn) for position, leaf in enumerate(leaves)]
    args: Any = optree.tree_unflatten(treespec, [Tensor._of(node) for node in stand_ins])
    try:
        with recording(stand_ins, rolls=strides_of, of=fn) as trace:
            output = fn(*args)
            outputs = numeric_nodes(fn, output)
            roll_up(trace, [*outputs, *conditions_of(trace)], stand_ins)
    except TracedValueError as error:
        message = f"{name_of(fn)}() looks at values, but linear_transpose knows the shapes of arguments alone."
        raise ArgumentError(message) from error
    kinds = ["tensor" if isinstance(leaf, Tensor) else "value" for leaf in leaves]

    def transpose(*cotangents: Any) -> Any:
        given = flatten(cotangents)[0]
        if len(given) != len(outputs):
            message = (
                f"{name_of(fn)}() has {len(outputs)} output{'s' if len(outputs) != 1 else ''}, so its transpose takes "
                f"as many arrays, but got {len(given)}."
            )
            raise ArgumentError(message)
        with recording(stand_ins) as again:
            again.tokens = trace.tokens
            pairs = zip(given, outputs, strict=True)
            vectors = [conjugate(vector(value, node, f"Array {k}")) for k, (value, node) in enumerate(pairs)]
            found = with_zeros(node_vjp(outputs, vectors, stand_ins), stand_ins)
        if not set(stand_ins).isdisjoint(topological(found, Earlier(min(node.serial for node in stand_ins)))):
            message = f"{name_of(fn)}() is not linear in its arguments, so it has no transpose. Use nb.vjp at a point."
            raise ArgumentError(message)
        results = Results(trace.budgets)
        tensors = any(isinstance(leaf, Tensor) for leaf in given)
        slots = [results.add(conjugate(node), kind_as(tensors, kind)) for node, kind in zip(found, kinds, strict=True)]
        return tuple(results.fill(optree.tree_unflatten(treespec, slots))[0])

    return transpose


def _stand_in(leaf: Any, position: int, fn: Callable[..., Any]) -> Node:
    """A node of the shape and dtype of an argument.

    Raises
    ------
    DtypeError
        If it has none, or holds integers.
    """
    described = leaf if hasattr(leaf, "shape") and hasattr(leaf, "dtype") else np.asarray(leaf)
    dtype = np.dtype(getattr(described.dtype, "name", described.dtype))
    if dtype.kind not in "fc":
        message = (
            f"Array {position} of the arguments of {name_of(fn)}() has dtype {dtype}: linear functions are those of "
            "floating-point numbers."
        )
        raise DtypeError(message)
    return placeholder(tuple(described.shape), dtype)
