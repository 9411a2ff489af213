"""The graph's data: a `Node` is one array value, made by one `Primitive` from other nodes.

In: primitive, input nodes, static parameters. Out: an immutable node with its shape and dtype, checked at once. Called
by everything that builds graph: the recorder, the derivative rules, the passes. Nodes never hold positions or names; a
graph is simply all nodes that can be reached from its outputs. No function here recurses over nodes, so that chains of
any length work.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Container, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..errors import BroadcastError, DeviceError
from .shapes import Shape, broadcasts, joint_shape

Params = tuple[Any, ...]
ShapeRule = Callable[[Sequence["Node"], Params], tuple[Shape, "np.dtype[Any]"]]
Number = bool | int | float | complex

BOOL = np.dtype(np.bool_)
INT64 = np.dtype(np.int64)
COMPLEX_OF = {np.dtype(np.float32): np.dtype(np.complex64), np.dtype(np.float64): np.dtype(np.complex128)}
"""The complex dtype of parts of a dtype."""
PART_OF = {whole: part for part, whole in COMPLEX_OF.items()}
"""The dtype of the parts of a complex dtype."""


class Primitive:
    """One row of the closed set of operations: all that is known of it, side by side.

    Parameters
    ----------
    kind : str
        "source" (no inputs), "elementwise" (all shapes equal), "movement" (an index map), "reduction" or "special" (a
        kernel of its own).
    shape_rule : callable
        From inputs and parameters to shape and dtype.
    meaning : callable, optional
        What it is in NumPy, of arrays; of the parameters and arrays, if `takes_params`.
    derivative : object, optional
        One of the kinds in rows.py.
    boolean : bool
        Whether it is elementwise and its result is always boolean.
    light : bool
        Whether it is a few instructions, so that it may be computed again instead of being stored.
    batch : callable, optional
        From the node, its batched operands (None for those that are the same for all) and the size of the batch to the
        node of the batch; without it, the primitive of the batched operands.
    """

    __slots__ = ("batch", "boolean", "derivative", "kind", "light", "meaning", "name", "shape_rule", "takes_params")

    def __init__(
        self,
        name: str,
        kind: str,
        shape_rule: ShapeRule,
        *,
        meaning: Callable[..., Any] | None = None,
        derivative: Any = None,
        boolean: bool = False,
        light: bool = False,
        takes_params: bool = False,
        batch: Callable[[Node, Sequence[Node | None], int], Node] | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.shape_rule = shape_rule
        self.meaning = meaning
        self.derivative = derivative
        self.boolean = boolean
        self.light = light
        self.takes_params = takes_params
        self.batch = batch

    def __repr__(self) -> str:
        return self.name


_serials = itertools.count()
_early_serials = itertools.count(-(2**62))
"""Those of numbers that all graphs share: smaller than all others."""


RECORDED: ContextVar[list[Node] | None] = ContextVar("nbgrad_recorded", default=None)
"""Where new nodes are noted, in the order of their making, while a recording looks for loops in them."""
due: list[Any] = []
"""Not empty if the next operation has more to see to: None after every so many noted nodes, when it asks whether there
are loops among them, or the followers of known loops (loops/follower.py)."""
OFTEN = 1023
_recorded = RECORDED.get
next_serial: Callable[[], int] = _serials.__next__
"""A number above those of all nodes made so far, and below those of all later ones."""


class _Host:
    """The place of values that a user put into the CPU's memory; there is one object of it, `HOST`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "cpu"


HOST = _Host()
CPU_PLACES = frozenset([None, HOST])
"""Places of nodes that are computed on the CPU."""


class _Derived:
    """The `layout` of nodes whose strides follow from those of their inputs; there is one object of it, `DERIVED`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "derived"


DERIVED = _Derived()


class Node:
    """One array value of a graph.

    `value` is the concrete array of a "constant", or the value of any other node once it was computed: an ndarray, or a
    `DeviceArray` if the node has a device. `traced` tells that the value depends on an argument of a transform, so that
    it must not leak into plain NumPy code, or on a differentiable leaf: its bits are those of process/modes.py.
    `weak` marks Python numbers, which do not widen the dtype of other operands. `depth` is the longest way to a source,
    or to a node that was noted in `RECORDED`.
    `tensor` marks values that come from a Tensor that a user made: they follow MindSpore's rules of promotion (an
    integer takes the float dtype that it meets), others NumPy's.
    `serial` counts nodes in the order of their making, which puts each after its inputs; shared numbers come first, and
    nodes that are put in place of others between two that were there.
    `owner` of an "input" tells whose value it is (a weak reference to a Parameter), so that a compiled program can read
    the value anew at each call; that of a differentiable leaf, which Tensor gets its gradient.
    `place` says where the value belongs: a `Device`; `HOST` for arrays that a user put into the CPU's memory, and
    nodes made of them; None for values that go wherever they are used: numbers, ndarrays, Tensors of one element.
    `layout` says how NumPy's array would lie in memory (the value itself is in C order): None if nothing that it was
    made of was ever out of C order; its strides in bytes; or `DERIVED` until memory_order.py has found them.
    """

    __slots__ = (
        "__weakref__",
        "depth",
        "dtype",
        "inputs",
        "layout",
        "owner",
        "params",
        "place",
        "primitive",
        "serial",
        "shape",
        "tensor",
        "traced",
        "value",
        "weak",
    )

    def __init__(
        self,
        primitive: Primitive,
        inputs: tuple[Node, ...],
        params: Params,
        shape: Shape,
        dtype: np.dtype[Any],
        value: Any = None,
        weak: bool = False,
    ) -> None:
        self.primitive = primitive
        self.inputs = inputs
        self.params = params
        self.shape = shape
        self.dtype = dtype
        self.value = value
        self.weak = weak
        self.owner: Callable[[], Any] | None = None
        serial = next(_serials)
        self.serial: float = serial
        # Nodes are made by the thousand: those of up to two inputs, nearly all, have no loop.
        count = len(inputs)
        if count == 2:
            one, two = inputs
            self.traced: int = one.traced | two.traced
            self.tensor = one.tensor or two.tensor
            place, other = one.place, two.place
            if other is not place and other is not None:
                place = other if place is None else _refuse_places(inputs)
            self.place: Any = place
            above, below = one.depth, two.depth
            self.depth = (above if above > below else below) + 1
            self.layout: Any = None if one.layout is two.layout is None else DERIVED
        elif count == 1:
            one = inputs[0]
            self.traced, self.tensor, self.place, self.depth = one.traced, one.tensor, one.place, one.depth + 1
            self.layout = one.layout and DERIVED
        elif not count:
            self.traced = self.tensor = False
            self.place = self.layout = None
            self.depth = 0
        else:
            self._join(inputs)
        recorded = _recorded()
        if recorded is not None:
            recorded.append(self)
            self.depth = 0
            if not serial & OFTEN:
                due.append(None)

    def _join(self, inputs: tuple[Node, ...]) -> None:
        """Derive `traced`, `tensor`, `depth`, `place` and `layout` from three inputs or more."""
        traced: int = False
        tensor = False
        depth = 0
        place: Any = None
        layout: Any = None
        for source in inputs:
            traced |= source.traced
            tensor = tensor or source.tensor
            layout = layout or (source.layout and DERIVED)
            depth = max(depth, source.depth + 1)
            other = source.place
            if other is not place and other is not None:
                place = other if place is None else _refuse_places(inputs)
        self.traced, self.tensor, self.depth, self.place, self.layout = traced, tensor, depth, place, layout

    @property
    def device(self) -> Any:
        """The `Device` that the value lives on; None for the CPU's memory, and for values without a place."""
        return None if self.place is HOST else self.place

    @property
    def name(self) -> str:
        """The primitive's name."""
        return self.primitive.name

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def __repr__(self) -> str:
        return f"{self.name}:{self.dtype}{list(self.shape)}"

    def __add__(self, other: Node | Number) -> Node:
        return apply(PRIMITIVES["add"], self, other)

    def __radd__(self, other: Number) -> Node:
        return elementwise("add", other, self)

    def __sub__(self, other: Node | Number) -> Node:
        return apply(PRIMITIVES["subtract"], self, other)

    def __rsub__(self, other: Number) -> Node:
        return elementwise("subtract", other, self)

    def __mul__(self, other: Node | Number) -> Node:
        return apply(PRIMITIVES["multiply"], self, other)

    def __rmul__(self, other: Number) -> Node:
        return elementwise("multiply", other, self)

    def __truediv__(self, other: Node | Number) -> Node:
        return apply(PRIMITIVES["divide"], self, other)

    def __rtruediv__(self, other: Number) -> Node:
        return elementwise("divide", other, self)

    def __neg__(self) -> Node:
        if self.dtype.kind == "c":
            return make("negative", (self,))
        return Node(PRIMITIVES["negative"], (self,), (), self.shape, self.dtype)


LEFT_OUT: Node = object.__new__(Node)
"""In `RECORDED`, in the place of nodes that only the next one reads, which are made when something asks for them."""


def _refuse_places(inputs: Sequence[Node]) -> None:
    """Raise for operands in different places."""
    first = next(node for node in inputs if node.place is not None)
    second = next(node for node in inputs if node.place is not None and node.place is not first.place)
    refuse_places(first, second)


def refuse_places(first: Node, second: Node) -> None:
    """Raise for two values in different places.

    Raises
    ------
    DeviceError
        Always.
    """
    shown = " and ".join(f"one of shape {node.shape} on {node.place!r}" for node in (first, second))
    message = f"Arrays in different places cannot be used together: {shown}. Move one of them, by x.to(...) or x.cpu()."
    raise DeviceError(message)


PRIMITIVES: dict[str, Primitive] = {}
"""Every primitive by name; filled once, by primitives.py."""


class _ComplexNumbers:
    """Set by expand_complex.py: primitives that have complex nodes, the expansion of the others, and literals."""

    __slots__ = ("expand", "kept", "literal")

    def __init__(self) -> None:
        self.kept: frozenset[str] = frozenset()
        self.expand: Callable[[str, Sequence[Node], Params], Node]
        self.literal: Callable[[complex, np.dtype[Any]], Node]


_complex = _ComplexNumbers()


def install_complex(
    kept: frozenset[str],
    expand: Callable[[str, Sequence[Node], Params], Node],
    literal: Callable[[complex, np.dtype[Any]], Node],
) -> None:
    """Let complex_numbers.py take over where primitives meet complex operands."""
    _complex.kept, _complex.expand, _complex.literal = kept, expand, literal


def make(name: str, inputs: tuple[Node, ...], params: Params = ()) -> Node:
    """Make a node; the primitive's shape rule gives its shape and dtype."""
    primitive = PRIMITIVES[name]
    shape, dtype = primitive.shape_rule(inputs, params)
    if (dtype.kind == "c" or (inputs and inputs[0].dtype.kind == "c")) and name not in _complex.kept:
        return _complex.expand(name, inputs, params)
    node = Node(primitive, inputs, params, shape, dtype)
    if name == "transpose" or (name == "concatenate" and any(x.primitive.name == "broadcast" for x in inputs)):
        node.layout = DERIVED
    return node


def shared(node: Node) -> Node:
    """The new node of a number, or of one number everywhere, which is kept for all graphs.

    It comes before all other nodes, also in the graph that it was made for: so the same computation has the same
    structure each time, whether it was the first to need the number or not.
    """
    for one in by_serial([node]):  # a complex number repeated everywhere is made of two that are
        if one.serial >= 0:
            one.serial = next(_early_serials)
    return node


_literals: dict[tuple[Number | str, type, np.dtype[Any], bool], Node] = {}
"""Literals that were made before; zeros, which have a sign, by their texts. NaN, which equals nothing, is made anew."""


def literal(value: Number, dtype: np.dtype[Any], weak: bool = False) -> Node:
    """A number baked into the program. The bytes are the identity: -0.0 is not 0.0, and a NaN equals itself."""
    dtype = plain_dtype(dtype)
    key = (value or str(value), type(value), dtype, weak)
    node = _literals.get(key)
    if node is None:
        if dtype.kind == "c":
            node = _complex.literal(value, dtype)
            node.weak = weak
            return node
        data = np.array(value).astype(dtype).tobytes()
        node = Node(PRIMITIVES["literal"], (), (data,), (), dtype, weak=weak)
        if value == value and len(_literals) < 10_000:
            _literals[key] = shared(node)
    return node


def literal_value(node: Node) -> Any:
    """The NumPy scalar of a literal node."""
    return np.frombuffer(node.params[0], dtype=node.dtype)[0]


def strong(node: Node) -> Node:
    """A node of the same value that is not weak: results of NumPy's functions on Python numbers keep their dtype."""
    if not node.weak:
        return node
    return literal(literal_value(node), node.dtype) if node.name == "literal" else make("alias", (node,))


_DTYPES = {d.num: np.dtype(f"{d.kind}{d.itemsize}") for d in map(np.dtype, "?bhilqBHILQefdFD")}
"""NumPy's own dtypes by NumPy's numbers of them, of which some have two: of long and of longlong, say."""


def plain_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """NumPy's own object for a dtype that nbgrad computes with; other dtypes as they are."""
    return _DTYPES.get(dtype.num, dtype)


def plain(array: np.ndarray) -> np.ndarray:
    """An array as native code knows it: an ndarray in the machine's byte order, with NumPy's own object as its dtype.

    NumPy makes other, equal dtype objects too: copies, and longlong beside long.
    """
    dtype = plain_dtype(array.dtype)
    if array.dtype is dtype and type(array) is np.ndarray:
        return array
    array = array.view(np.ndarray)
    return array.view(dtype) if array.dtype.isnative else array.astype(dtype)


def constant(value: Any, weak: bool = False) -> Node:
    """An array whose value is known when the program runs, not when it is compiled: an ndarray or a `DeviceArray`."""
    if isinstance(value, np.ndarray):
        if value.__class__ is not np.ndarray or _DTYPES.get(value.dtype.num) is not value.dtype:
            value = plain(value)
        node = Node(PRIMITIVES["constant"], (), (), value.shape, value.dtype, value, weak)
        if not value.flags.c_contiguous:
            node.layout = value.strides
        return node
    node = Node(PRIMITIVES["constant"], (), (), value.shape, value.dtype, value=value, weak=weak)
    node.place = value.device
    return node


def snapshot(array: np.ndarray) -> Node:
    """A constant with the values that an array has now, which counts as lying in memory as the array does."""
    node = constant(array.copy())
    if not array.flags.c_contiguous:
        node.layout = array.strides
    return node


_HOSTS = (np.ndarray, np.generic)


def on_host(value: Any) -> Any:
    """An ndarray as it is, an array on a device as a copy, which waits until it is computed."""
    return value if isinstance(value, _HOSTS) else value.to_host()


_extents: dict[tuple[int | float, np.dtype[Any]], Node] = {}


def extent(size: int | float, dtype: np.dtype[Any]) -> Node:
    """A size, or a number that follows from one: read when the program runs, so that it is no part of compiled code."""
    node = _extents.get((size, dtype))
    if node is None:
        node = constant(np.array(size, dtype))
        if len(_extents) < 10_000:
            _extents[size, dtype] = shared(node)
    return node


def placeholder(shape: Shape, dtype: np.dtype[Any], value: Any = None, weak: bool = False) -> Node:
    """An argument of a program; `value` is an example of it, if there is one."""
    node = Node(PRIMITIVES["input"], (), (), shape, plain_dtype(dtype), value=value, weak=weak)
    node.traced = True
    return node


def broadcast(node: Node, shape: Shape) -> Node:
    """The node read as `shape`, by NumPy's rules; the node itself where nothing changes."""
    if node.shape == shape:
        return node
    if node.shape and not broadcasts(node.shape, shape):
        message = f"An array of shape {node.shape} cannot be broadcast to {shape}."
        raise BroadcastError(message)
    if node.dtype.kind == "c":
        return make("broadcast", (node,), (shape,))
    return Node(PRIMITIVES["broadcast"], (node,), (shape,), shape, node.dtype)


_repeated: dict[tuple[Node, Shape], Node] = {}
"""Literals in the shapes that they were repeated to; a memo of small objects."""


def filled(value: Number, dtype: np.dtype[Any], shape: Shape) -> Node:
    """A literal number everywhere."""
    node = literal(value, dtype)
    if not shape:
        return node
    if value != value:
        return make("broadcast", (node,), (shape,))
    known = _repeated.get((node, shape))
    if known is None:
        if len(_repeated) > 10_000:
            _repeated.clear()
        known = _repeated[node, shape] = shared(make("broadcast", (node,), (shape,)))
    return known


def apply(primitive: Primitive, left: Node, right: Node | Number) -> Node:
    """An elementwise primitive of two operands; as `elementwise`, which it is a shortcut of."""
    shape = left.shape
    if not isinstance(right, Node):
        right = filled(right, left.dtype, shape)
    elif right.shape != shape:
        return elementwise(primitive.name, left, right)
    if right.dtype.kind == "c" or left.dtype.kind == "c":
        return _complex.expand(primitive.name, (left, right), ())
    return Node(primitive, (left, right), (), shape, BOOL if primitive.boolean else right.dtype)


def elementwise(name: str, *operands: Node | Number) -> Node:
    """Apply an elementwise primitive; shapes broadcast, numbers take the dtype of the last node operand."""
    primitive = PRIMITIVES[name]
    shape: Shape = ()
    dtype = None
    for operand in operands:
        if isinstance(operand, Node):
            dtype = operand.dtype
            if operand.shape != shape:
                shape = joint_shape(shape, operand.shape)
    assert dtype is not None, name
    nodes: list[Node] = []
    for operand in operands:
        if not isinstance(operand, Node):
            nodes.append(filled(operand, dtype, shape))
        else:
            nodes.append(operand if operand.shape == shape else make("broadcast", (operand,), (shape,)))
    if dtype.kind == "c" or nodes[0].dtype.kind == "c":
        return _complex.expand(name, nodes, ())
    return Node(primitive, tuple(nodes), (), shape, BOOL if primitive.boolean else nodes[-1].dtype)


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """A copy of a node with other inputs."""
    made = Node(node.primitive, inputs, node.params, node.shape, node.dtype, weak=node.weak)
    made.traced, made.tensor, made.place = node.traced, node.tensor, node.place
    return made


def zeros(shape: Shape, dtype: np.dtype[Any]) -> Node:
    """An array of zeros that takes no memory."""
    return broadcast(literal(0, dtype), shape)


def topological(outputs: Iterable[Node], known: Container[Node] = ()) -> list[Node]:
    """Every node that the outputs need, each after its inputs; iterative, and in a reproducible order.

    Nodes in `known`, and nodes that only these are made of, are left out.
    """
    order: list[Node] = []
    done: set[Node] = set()
    # None stands on top of a node whose inputs are all done once it comes up.
    stack: list[Node | None] = [*outputs]
    stack.reverse()
    while stack:
        node = stack.pop()
        if node is None:
            node = stack.pop()
            assert node is not None
        elif node in done or node in known:
            continue
        elif node.inputs:
            stack += (node, None)
            stack += node.inputs[::-1]
            continue
        done.add(node)
        order.append(node)
    return order


class Earlier:
    """Some nodes, and all nodes that were made before a serial number: they cannot depend on later ones."""

    __slots__ = ("known", "since")

    def __init__(self, since: float, known: Container[Node] = ()) -> None:
        self.since, self.known = since, known

    def __contains__(self, node: object) -> bool:
        return isinstance(node, Node) and (node.serial < self.since or node in self.known)


def by_serial(outputs: Iterable[Node], known: Container[Node] = ()) -> list[Node]:
    """Every node that the outputs need, in the order of their making; faster than `topological`.

    Nodes in `known`, and nodes that only these are made of, are left out.
    """
    found: set[Node] = set()
    waiting = list(outputs)
    for node in waiting:
        if node not in found and node not in known:
            found.add(node)
            waiting += node.inputs
    return sorted(found, key=_serial)


_serial = operator.attrgetter("serial")
