"""Between the caller of a transform and the function that it records.

In: the caller's arguments, which may be containers. Out: the same arguments with arrays replaced by Tensors, fresh
`alias` nodes for those that are differentiated, and afterwards the results in the caller's kind: a derivative with
respect to an ndarray is an ndarray, to a Tensor a Tensor, to a Python float a NumPy float. Called by grad.py,
jacobians.py and jit.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import optree

from ..errors import ArgumentError, DtypeError
from ..graph.builders import placed
from ..graph.ir import PRIMITIVES, Node, constant, on_host, zeros
from ..graph.trace import current_trace, depends_on_recording
from ..process.modes import KEEPS, TRACED, leaves_made, mode
from ..record.as_node import as_node
from ..record.call_order import all_waiting
from ..record.container_leaves import fields_without_floats, flatten, map_leaves
from ..record.foreign_arrays import a_full_name, advice, computes_itself, conversion_of, described_output
from ..record.masked_elements import refuse_unknown
from ..record.numbers import supported
from ..record.tensor import Tensor
from ..record.written_arguments import Callers, store
from ..record.zero_dimensional import as_array, is_array
from ..runtime.budget import Budget, smallest
from ..runtime.evaluate import compute, compute_derived
from .lent_arrays import Lent, is_lent, kind_of, lent, results_as

Leaves = list[Any]


@dataclass
class Wanted:
    """One argument that is differentiated: its structure, and per leaf the alias node and the kind of the caller's
    value."""

    treespec: Any
    nodes: list[Node] = field(default_factory=list)
    kinds: list[Any] = field(default_factory=list)
    fixed: frozenset[int] = frozenset()
    """The positions of leaves that have no derivative, which says None: those that are None, and those in fields of
    objects that are no floats."""

    def filled(self, derivatives: Sequence[Any]) -> Any:
        """The structure with a derivative for each leaf that has one."""
        if not self.fixed:
            return optree.tree_unflatten(self.treespec, derivatives)
        following = iter(derivatives)
        count = self.treespec.num_leaves
        held = [None if position in self.fixed else next(following) for position in range(count)]
        return optree.tree_unflatten(self.treespec, held)


@dataclass
class Call:
    """Arguments ready for recording."""

    args: list[Any]
    kwargs: dict[str, Any]
    wanted: list[Wanted]
    tensors: Any
    """Whether the output of the function is given as Tensors; or a `Giver`, for arrays of another library."""
    callers: Callers
    """The arrays that the function's Tensors stand for."""
    nodes: list[Node]
    """All nodes to differentiate with respect to."""


def name_of(fn: Callable[..., Any]) -> str:
    """The name of a function in messages."""
    return getattr(fn, "__name__", type(fn).__name__)


def differentiable(value: Any) -> bool:
    """Whether an argument is an array of floating-point numbers, or a container of nothing else."""
    leaves = flatten(value)[0]
    kinds = [_element_kind(leaf) for leaf in leaves]
    return bool(kinds) and all(kind is not None and kind in "fc" for kind in kinds)


def _element_kind(leaf: Any) -> str | None:
    """The kind of an array's elements; None for other values."""
    if isinstance(leaf, Tensor | np.ndarray):
        return leaf.dtype.kind
    return lent(leaf).node.dtype.kind if is_lent(leaf) else None


def node_of(value: Any) -> Node:
    """The node of an argument; arrays are not copied, because the function sees only the Tensor."""
    if isinstance(value, Tensor):
        return value._node
    if type(value) is np.ndarray:
        return constant(value) if supported(value.dtype) else as_node(value)
    # A float argument is a run-time input whatever its value, unlike a number in the function's text.
    if type(value) is float or type(value) is complex:
        return constant(np.array(value), weak=True)
    return lent(value).node if is_lent(value) else as_node(value)


def lift(value: Any, callers: Callers | None = None) -> Any:
    """An argument that is not differentiated: its real arrays become Tensors, all else stays what it is."""
    callers = Callers() if callers is None else callers

    def leaf(item: Any) -> Any:
        if type(item) is np.ndarray and supported(item.dtype):
            return callers.lend(node_of(item), item)
        if type(item) is Tensor:
            callers[item._node] = item, item
        return _given(item, item.node, callers) if isinstance(item, Lent) else item

    return leaf(value) if isinstance(value, np.ndarray | Tensor) else map_leaves(leaf, value)


def lift_wanted(value: Any, fn: Callable[..., Any], which: int | str, callers: Callers) -> tuple[Any, Wanted]:
    """An argument that is differentiated, `which` of those of `fn`: each leaf becomes a Tensor of a fresh alias."""
    if value.__class__ is np.ndarray and value.dtype in _DIFFERENTIABLE:
        fresh = _fresh(constant(value))
        return callers.lend(fresh, value), Wanted(LEAF, [fresh], ["array"])
    leaves, treespec = ([value], LEAF) if value.__class__ in _SINGLE else flatten(value)
    wanted = Wanted(treespec)
    if treespec is not LEAF:
        wanted.fixed = fields_without_floats(treespec, [has_floats(item) for item in leaves])
        if any(item is not None for item in leaves):
            wanted.fixed |= {position for position, item in enumerate(leaves) if item is None}
    lifted: list[Any] = []
    for position, item in enumerate(leaves):
        if position in wanted.fixed:
            lifted.append(lift(item, callers))
            continue
        kind = "tensor" if item.__class__ is Tensor else kind_of(item)
        if kind == "other":
            what = f"Argument {which!r}{_path(treespec, position)} of {name_of(fn)}()"
            instead = advice(item)
            message = (
                f"{what} is {_described(item)}, which cannot be differentiated: expected floating-point arrays, "
                "Tensors or floats (or tuples, lists or dicts of them). "
                + (f"Pass {instead}." if instead else "Choose other positions with grad_position, or convert it.")
            )
            raise DtypeError(message)
        dtype = item._node.dtype if kind == "tensor" else item.node.dtype if kind == "lent" else np.asarray(item).dtype
        if dtype not in _DIFFERENTIABLE and not (dtype.kind in "fc" and supported(dtype)):
            what = f"Argument {which!r}{_path(treespec, position)} of {name_of(fn)}()"
            message = (
                f"{what} is {_described(item)}: there are gradients with respect to float and complex "
                f"values of up to 64 bits a part, not {dtype}. "
                + ("Pass float(x)." if isinstance(item, int) else conversion_of(dtype))
            )
            raise DtypeError(message)
        node = node_of(item)
        fresh = _fresh(node)
        wanted.nodes.append(fresh)
        wanted.kinds.append(item.giver if kind == "lent" else kind)
        lifted.append(callers.lend(fresh, item) if kind in ("array", "tensor") else _given(item, fresh, callers))
    return lifted[0] if treespec is LEAF else optree.tree_unflatten(treespec, lifted), wanted


def _given(value: Any, node: Node, callers: Callers) -> Tensor:
    """The Tensor of a number, or of another library's array, which gets the function's writes if it is on the CPU."""
    array = value.array if isinstance(value, Lent) else None
    return Tensor._of(node) if array is None else callers.lend(node, array)


def _path(treespec: Any, position: int) -> str:
    """The place of a leaf in its containers, as it would be written."""
    return treespec.accessors()[position].codify("")


def has_floats(leaf: Any) -> bool:
    """Whether a leaf holds floating-point numbers."""
    kind = _element_kind(leaf)
    return kind_of(leaf) == "float" if kind is None else kind in "fc"


LEAF = flatten(0)[1]
"""The structure of a value that is no container."""
_SINGLE = frozenset([np.ndarray, Tensor, float])
"""The usual types of such values."""
_DIFFERENTIABLE = frozenset(map(np.dtype, ("float16", "float32", "float64", "complex64", "complex128")))
_ALIAS = PRIMITIVES["alias"]


def _fresh(node: Node) -> Node:
    """A new alias."""
    fresh = Node(_ALIAS, (node,), (), node.shape, node.dtype)
    fresh.traced |= TRACED
    fresh.weak = node.weak
    return fresh


def _described(value: Any) -> str:
    if isinstance(value, Lent):
        return f"a {value.name} of dtype {value.node.dtype} and shape {value.node.shape}"
    if isinstance(value, np.ndarray | Tensor):
        return f"an array of dtype {value.dtype} and shape {value.shape}"
    return f"{type(value).__name__} {str(value)[:40]!r}" if isinstance(value, str) else f"{a_full_name(value)}"


def prepare(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], positions: Sequence[int]) -> Call:
    """Lift the arguments of a call.

    Raises
    ------
    ArgumentError
        If a position names no argument of the call.
    DtypeError
        If a chosen argument is not made of floating-point arrays.
    """
    tensors: Any = False
    for value in (*args, *kwargs.values()) if kwargs else args:
        if value.__class__ not in _PLAIN:
            args, kwargs, tensors = _taken(args, kwargs)
            break
    lifted_args = list(args)
    lifted_kwargs = dict(kwargs)
    wanted: dict[int, Wanted] = {}
    callers = Callers()
    keys = _parameter_order(fn, len(args), kwargs) if kwargs else []
    nodes: list[Node] = []
    for position in positions:
        if position < len(args):
            lifted_args[position], wanted[position] = lift_wanted(args[position], fn, position, callers)
        elif position - len(args) < len(keys):
            key = keys[position - len(args)]
            lifted_kwargs[key], wanted[position] = lift_wanted(kwargs[key], fn, key, callers)
        else:
            count = len(args) + len(kwargs)
            message = (
                f"grad_position {position} is out of range: {name_of(fn)}() was called with {count} "
                f"argument{'s' if count != 1 else ''}. Positions count from 0; arguments left to their defaults do not "
                "count."
            )
            raise ArgumentError(message)
        nodes += wanted[position].nodes
    for position, value in enumerate(args):
        if position not in wanted:
            lifted_args[position] = lift(value, callers)
    for number, key in enumerate(keys, len(args)):
        if number not in wanted:
            lifted_kwargs[key] = lift(kwargs[key], callers)
    return Call(lifted_args, lifted_kwargs, list(wanted.values()), tensors, callers, nodes)


_PLAIN = frozenset([np.ndarray, float, int, bool, complex, str, type(None)])
"""Kinds of leaves that are no Tensors and no other library's arrays."""


def _taken(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any], Any]:
    """Arguments with other libraries' arrays taken, and how results are given."""
    tensors = foreign = False
    for value in (*args, *kwargs.values()):
        if value.__class__ is Tensor:
            tensors = True
        elif value.__class__ not in _PLAIN:
            for leaf in flatten(value)[0]:
                if isinstance(leaf, Tensor):
                    tensors = True
                elif leaf.__class__ not in _PLAIN and is_lent(leaf):
                    foreign = True
    if not foreign:
        return args, kwargs, tensors
    found, treespec = flatten((tuple(args), dict(kwargs)))
    taken = [lent(leaf) for leaf in found]
    again: Any = optree.tree_unflatten(treespec, taken)
    return again[0], again[1], results_as(taken)


def kind_as(tensors: Any, otherwise: str = "value") -> Any:
    """The kind of a result where `tensors` says how results are given."""
    return "tensor" if tensors is True else tensors or otherwise


def _parameter_order(fn: Callable[..., Any], count: int, kwargs: Mapping[str, Any]) -> list[str]:
    """Keyword arguments in the order of the function's parameters, where that is known."""
    if len(kwargs) < 2:
        return list(kwargs)
    try:
        # A Cell takes what its construct takes.
        names = list(inspect.signature(getattr(fn, "construct", fn)).parameters)
    except (TypeError, ValueError):
        return list(kwargs)
    return sorted(kwargs, key=lambda key: names.index(key) if key in names else len(names))


# ----- Results -----


def output_nodes(fn: Callable[..., Any], output: Any, what: str = "The function") -> list[Node]:
    """The nodes of the differentiable values in a function's output: of floats and complex numbers."""
    if type(output) is Tensor and output._node.dtype.kind in "fc":
        return [output._node]
    return [node for node in numeric_nodes(fn, output, what) if node.dtype.kind in "fc"]


def numeric_nodes(fn: Callable[..., Any], output: Any, what: str = "The function") -> list[Node]:
    """The nodes of all arrays and numbers in a function's output.

    Raises
    ------
    DtypeError
        If it returned nothing, or nothing that is an array or a number.
    """
    nodes: list[Node] = []
    leaves = [output] if type(output) is Tensor else flatten(output)[0]
    numeric = False
    for leaf in leaves:
        kind = kind_of(leaf)
        numeric = numeric or kind != "other"
        if kind == "other":
            refuse_unknown(leaf)
        else:
            nodes.append(node_of(leaf))
    if not numeric:
        given = "nothing (None)" if output is None else described_output(output)
        hint = "Return its .data." if computes_itself(output) else "Is a return statement missing?"
        message = (
            f"{what} {name_of(fn)}() returned {given}, but a function that is differentiated must return an array, a "
            f"number, or a tuple, list or dict of them. {hint}"
        )
        raise DtypeError(message)
    return nodes


class Results:
    """Collects nodes that the caller will get, computes them all in one program, and gives each its kind.

    `budgets` are those of the recording that they come from.
    """

    def __init__(self, budgets: Sequence[Budget] = ()) -> None:
        self.budgets = budgets
        self.nodes: list[Node | None] = []
        self.kinds: list[Any] = []
        self.sources: list[Node] = []
        """The nodes from which `derive` makes those that are None."""
        self.derive: Callable[[], list[Node]] = list
        """Makes the nodes that are None, in order."""
        self.arrays: set[int] = set()
        """Positions of results that are arrays without axes, which Tensors do not show by their kind."""
        self.stores: list[tuple[_Slot, Any]] = []
        """The writes of the function to its caller's arrays: each slot, and the array."""

    def add(self, node: Node | None, kind: Any) -> _Slot:
        """Ask for a node, or for the next that `derive` will make, as "array", "tensor", "float", or by a `Giver`."""
        self.nodes.append(node)
        self.kinds.append(kind)
        return _Slot(len(self.nodes) - 1)

    def wait_for(self, token: Node | None) -> None:
        """Let the calls before a token (call_order.py) be made with the results, of which all have nodes."""
        if token is not None:
            self.nodes[:] = all_waiting([node for node in self.nodes if node is not None], token)

    def store(self, callers: Callers) -> None:
        """Ask for the values that the function has written to its caller's arrays, which get them with the results."""
        for given, (tensor, value) in callers.items():
            node = tensor._node
            if node is not given:
                self.stores.append((self.add(node, "array"), value))

    def value(self, value: Any, tensors: Any) -> Any:
        """Ask for the output of the function, the Tensors in it as Tensors, as NumPy values, or by a `Giver`."""
        kind = kind_as(tensors)

        def leaf(item: Any) -> Any:
            if not isinstance(item, Tensor):
                return item
            slot = self.add(item._node, "array" if kind == "value" and is_array(item) else kind)
            if is_array(item):
                self.arrays.add(slot)
            return slot

        if isinstance(value, Tensor):
            return leaf(value)
        if value.__class__ is tuple and not value:
            return value
        return map_leaves(leaf, value)

    def compute(self) -> list[Any]:
        """All results; Tensors that depend on another function that is being recorded, or on a leaf, stay lazy."""
        if current_trace() is None and not (leaves_made and self._remember()):
            for kind in self.kinds:
                if kind.__class__ is not str:
                    with kind.working():
                        return self._computed()
            return self._computed()
        made = iter(self.derive())
        nodes = [next(made) if node is None else node for node in self.nodes]
        lazy = [kind == "tensor" or depends_on_recording(n) for n, kind in zip(nodes, self.kinds, strict=True)]
        values = iter(compute([node for node, later in zip(nodes, lazy, strict=True) if not later]))
        return [
            self._recorded(position, node) if later else as_kind(next(values), kind)
            for position, (node, kind, later) in enumerate(zip(nodes, self.kinds, lazy, strict=True))
        ]

    def _remember(self) -> bool:
        """Whether results that are Tensors remember: they depend on a differentiable leaf."""
        if mode().remembers:
            for node in (*self.sources, *self.nodes):
                if node is not None and node.traced & KEEPS:
                    return True
        return False

    def _recorded(self, position: int, node: Node) -> Tensor:
        """A result for another function that is being recorded."""
        is_one = position in self.arrays or self.kinds[position] == "array"
        return as_array(Tensor._of(node)) if is_one else Tensor._of(node)

    def _computed(self) -> list[Any]:
        """All results, where nothing is being recorded."""
        known = list(filter(None, self.nodes))
        budget = smallest(self.budgets) if self.budgets else None
        arrays = compute_derived(known, self.sources, self.derive, budget) if self.sources else compute(known, budget)
        given, derived = iter(arrays), iter(arrays[len(known) :])
        found: list[Any] = []
        for node, kind in zip(self.nodes, self.kinds, strict=True):
            found.append(as_kind(next(derived if node is None else given), kind))
        return found

    def fill(self, *trees: Any) -> list[Any]:
        """Trees with their slots replaced by results."""
        values = self.compute()
        for slot, value in self.stores:
            store(value, values[slot])

        def leaf(item: Any) -> Any:
            return values[item] if isinstance(item, _Slot) else item

        filled: list[Any] = []
        for tree in trees:
            whole = type(tree) is _Slot
            filled.append(values[tree] if whole else map_leaves(leaf, tree))
        return filled


def as_kind(array: Any, kind: Any) -> Any:
    """A computed result as the caller gets it: `kind` is as in `kind_of`, "value", or a `Giver`."""
    if kind == "tensor":
        return Tensor._holding(array)
    if kind.__class__ is not str:
        return kind.give(array)
    if array.__class__ is not np.ndarray:
        array = on_host(array)
    return array[()] if kind != "array" and array.ndim == 0 else array


class _Slot(int):
    """Stands for a result in a tree: its position."""


def with_zeros(derivatives: Sequence[Node | None], nodes: Sequence[Node]) -> list[Node]:
    """Derivatives that have the shapes, dtypes and devices of `nodes`, with zeros for those that are structurally zero.

    A derivative that is the same everywhere comes from no array, and so from no device; beside others, it belongs to
    the CPU if its argument does.
    """
    pairs = zip(derivatives, nodes, strict=True)
    complete = [zeros(node.shape, node.dtype) if found is None else found for found, node in pairs]
    if all(node.device is None for node in nodes):
        return complete
    return [placed(one, node.place) if one.place is None else one for one, node in zip(complete, nodes, strict=True)]
