"""Parameters: named Tensors that functions and Cells use without being passed, and that training changes.

In: data and a name. Out: `Parameter`, `ParameterTuple`. Called by users, `nn`, the optimizers and random generators.
Inside a recording a Parameter is one "input" node that knows its owner, so that `grad` can differentiate with respect
to it and a program compiled by `jit` reads its value anew at each call. Outside it is a constant: what was computed
from a Parameter never changes with it. Writing to a Parameter while a function is recorded stores the node; `jit`
makes it an output that every call writes back, and without `jit` the next computation finishes it.
"""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..graph.builders import cast, placed
from ..graph.ir import HOST, PRIMITIVES, Node, constant, placeholder, plain
from ..graph.shapes import Shape
from ..graph.trace import CELLS, Trace, current_trace
from ..process.modes import Mode, leaves_made, mode
from ..record.as_node import as_node
from ..record.placement import moved
from ..record.tensor import Tensor
from ..remembered.leaves import become_leaf, parameter_leaf
from ..runtime import evaluate
from .own_data import Data

_unnamed = itertools.count()
_CONSTANT = PRIMITIVES["constant"]


class Parameter(Tensor):
    """A Tensor with a name, whose value training changes.

    Parameters
    ----------
    default_input : Tensor, ndarray, number, or nested lists of numbers
        The value. A Python int becomes int32, a Python float float32; NumPy arrays keep their dtype.
    name : str, optional
        Its name in messages, checkpoints and optimizers. A Parameter without one takes the name of the attribute that
        it becomes.
    requires_grad : bool
        Whether training changes it; if not, its gradient is zero.
    device : str or Device, optional
        Where it is; by default where the data is. `net.to(...)` moves all Parameters of a Cell.

    Raises
    ------
    ArgumentError, DtypeError
        For a name that is no string, a `requires_grad` that is no bool, data that is no array.

    Examples
    --------
    >>> import nbgrad as nb
    >>> w = nb.Parameter(nb.Tensor([2.0, 3.0]), name="w")
    >>> w
    Parameter (name=w, shape=(2,), dtype=Float32, requires_grad=True)
    >>> nb.grad(lambda x: w * x * x, None, w)(nb.Tensor([4.0, 5.0]))
    Tensor(shape=[2], dtype=Float32, value= [ 1.60000000e+01,  2.50000000e+01])
    """

    __slots__ = ("_held", "_leaf_inside", "_leaf_outside", "_name", "_remembers", "_requires_grad")
    _held: tuple[Node, Node]
    """Its nodes inside of recordings, and outside."""

    def __init__(
        self,
        default_input: Any,
        name: str | None = None,
        requires_grad: bool = True,
        layerwise_parallel: bool = False,
        parallel_optimizer: bool = True,
        *,
        device: Any = None,
    ) -> None:
        del layerwise_parallel, parallel_optimizer  # MindSpore's, for training on several machines
        if type(default_input) is int:
            default_input = np.array(default_input, np.int32)
        self.name = name
        self.requires_grad = requires_grad
        self._hold(evaluate.known(Tensor(default_input, device=device)._node))

    # ----- Its value as a node -----

    @property
    def _node(self) -> Node:  # pyright: ignore[reportIncompatibleVariableOverride]
        trace = current_trace()
        if leaves_made and self._is_remembered(trace):
            return parameter_leaf(self)
        return self._held[trace is None]

    @_node.setter
    def _node(self, node: Node) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._write(node)

    @property
    def _leaf(self) -> Node:
        """Its node inside of recordings."""
        return self._held[0]

    def _node_outside(self) -> Node:
        """Its node outside of recordings, which does not remember."""
        return self._held[1]

    def _differentiated(self) -> Node:
        """The node that a recorded function uses, and that its derivatives are taken with respect to."""
        return parameter_leaf(self) if leaves_made and self._is_remembered(current_trace()) else self._leaf

    def _is_remembered(self, trace: Trace | None = None) -> bool:
        """Whether uses of it are remembered now, as those of a differentiable leaf; not if a recorded function wrote to
        it."""
        if trace is not None and self._leaf.owner is None:
            return False
        now = mode()
        return now.remembers and (self._is_leaf(now) or any(tape.takes(self) for tape in now.tapes))

    def _is_leaf(self, now: Mode) -> bool:
        """Whether it is a differentiable leaf in a mode, so that operations in place would lose gradients."""
        return self._requires_grad and (now.parameters or hasattr(self, "_remembers"))

    @property
    def _operates_in_place(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether `p -= x` writes to it, as to a differentiable leaf, even while nothing is remembered."""
        return hasattr(self, "_remembers")

    def requires_grad_(self, requires_grad: bool = True) -> Parameter:
        """Set `requires_grad`, and make it a differentiable leaf outside of recordings too, with a `grad`."""
        self.requires_grad = requires_grad
        if requires_grad:
            become_leaf(Tensor._of(self._held[1]))  # refuses integers
            self.remember()
        return self

    def remember(self) -> None:
        """Let its uses be remembered, as those of a differentiable leaf, whenever it requires gradients."""
        leaves_made[:] = [None]
        self._remembers = True

    _goes_anywhere = False
    """Whether it has no place of its own and goes with its use to any device, as all Parameters of one element do."""

    def _nodes(self, shape: Shape, dtype: np.dtype[Any], device: Any = None) -> tuple[Node, Node]:
        """Nodes that it can hold, without a value."""
        leaf, snapshot = placeholder(shape, dtype), Node(_CONSTANT, (), (), shape, dtype)
        leaf.owner = weakref.ref(self)
        leaf.tensor = snapshot.tensor = True
        if self._goes_anywhere:
            device = None
        elif device is None and leaf.size > 1:
            device = HOST
        leaf.place = snapshot.place = device
        return leaf, snapshot

    def _prepared(self, value: Any, moves: bool = False) -> tuple[Node, Node]:
        """The nodes for a value that is known. A Parameter without a place of its own gets none, unless it `moves`."""
        device = None
        if isinstance(value, np.ndarray):
            value = plain(value)
        elif moves or value.size > 1 or self._leaf.place is not None:
            device = value.device
        leaf, snapshot = self._nodes(value.shape, value.dtype, device)
        leaf.value = snapshot.value = value
        return leaf, snapshot

    def _hold(self, value: Any) -> None:
        """Take a value that is known, and move to its place."""
        self._held = self._prepared(value, moves=True)

    @staticmethod
    def _hold_all(parameters: Sequence[Parameter], values: Sequence[Any]) -> None:
        """Let Parameters take values, all or none: no signal handler can run between two of them."""
        held = [parameter._prepared(value) for parameter, value in zip(parameters, values, strict=True)]
        deque(map(_set_held, parameters, held), maxlen=0)

    def _restore(self, leaf: Node) -> None:
        """Return to a leaf, for instance to the Parameter's own before a function that was only recorded."""
        if leaf.owner is None:
            self._held = leaf, leaf
            return
        assert leaf.value is not None
        snapshot = constant(leaf.value)
        snapshot.tensor, snapshot.place = True, leaf.place
        self._held = leaf, snapshot

    def _write(self, node: Node) -> None:
        """Take the value of a node, which may not be known yet."""
        trace = current_trace()
        if node.device is not self._leaf.device and not self._goes_anywhere and self._leaf.size > 1:
            node = placed(node, self._leaf.place)
        other_shape = node.shape != self._leaf.shape
        if trace is None and node.value is not None:
            self._hold(node.value)
        else:
            if trace is not None and trace.collects:
                trace.written.setdefault(self, self._leaf)
            else:
                evaluate.pending.add(self)
            self._held = node, node
        if other_shape:
            CELLS.token = object()

    def _move(self, device: Any, unread: bool = False) -> None:
        """Go to a device, or to the CPU.

        Raises
        ------
        TracedValueError
            While a function is recorded, unless it has not read the Parameter yet (`unread`).
        """
        leaf = self._leaf
        if leaf.value is None and current_trace() is None:
            evaluate.finish_pending()
        if unread and leaf.value is not None:
            leaf = constant(leaf.value)  # which is no part of the recording
            leaf.place = self._leaf.place
        node = moved(leaf, device)
        if node is not leaf:
            self._hold(node.value)
            CELLS.token = object()

    def _noted(self) -> None:
        """Let a recording know that it depends on more of this Parameter than its value."""
        trace = current_trace()
        if trace is not None and trace.guards is not None:
            trace.cells[self] = self._state()

    def _state(self) -> Any:
        """The state that guards a compiled function that differentiates with respect to it."""
        return self._requires_grad, self._leaf.shape, self._leaf.dtype, self._leaf.device

    def _changes_silently(self) -> bool:
        """No: every change is noted."""
        return False

    def _take(self, node: Node) -> None:
        self._write(node)

    # ----- Users' side -----

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @name.setter
    def name(self, name: str | None) -> None:
        if name is not None and not isinstance(name, str):
            given = f"{name!r} of type {type(name).__name__}"
            message = f"The name of a Parameter must be a string or None, but got {given}."
            raise ArgumentError(message)
        self._name = (name or "").strip() or f"Parameter#{next(_unnamed)}"

    @property
    def is_named(self) -> bool:
        """Whether it was given a name."""
        return not self._name.startswith("Parameter#")

    @property
    def requires_grad(self) -> bool:
        """Whether training changes it."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            message = f"requires_grad must be True or False, but got {value!r} of type {type(value).__name__}."
            raise DtypeError(message)
        before = getattr(self, "_requires_grad", value)
        self._requires_grad = value
        if value is not before:
            CELLS.token = object()  # compiled training steps must look whether they left this Parameter out

    @property
    def data(self) -> Tensor:
        """The value, now and later; writes to it, and `p.data = x`, are writes to the Parameter."""
        return Data.of(self)

    @data.setter
    def data(self, value: Any) -> None:
        self.set_data(value)

    def value(self) -> Tensor:
        """The value as a Tensor, which later changes of the Parameter leave alone."""
        return Tensor._of(self._node)

    def init_data(self, *_: Any, **__: Any) -> Parameter:
        """The Parameter itself: its data is there from the start."""
        return self

    def set_data(self, data: Any, slice_shape: bool = False) -> Parameter:
        """Take a new value.

        Parameters
        ----------
        data : Tensor, ndarray or number
            Converted to the Parameter's dtype, and copied to its device. Another shape is taken too, as in MindSpore.
        slice_shape : bool
            MindSpore's; has no effect.

        Returns
        -------
        Parameter
            This one.

        Raises
        ------
        DtypeError
            If a Parameter of integers or booleans would get floats, which would be cut off.
        """
        del slice_shape
        self._write(self._fitting(data))
        return self

    def assign_value(self, data: Any = None, slice_shape: bool = False, *, value: Any = None) -> Any:
        """Another name of `set_data`, whose first parameter is `value` too."""
        return self.set_data(value if data is None else data, slice_shape)

    def _fitting(self, data: Any) -> Node:
        """The node of new data in the Parameter's dtype."""
        node = as_node(data)
        own = self._leaf.dtype
        order = "bifc"
        kinds = order.index(node.dtype.kind.replace("u", "i")), order.index(own.kind.replace("u", "i"))
        if kinds[0] > kinds[1]:
            message = (
                f"The Parameter {self.name} has dtype {own}, but the new data has dtype {node.dtype}, which would lose "
                f"its value. Convert it first, for example with .astype({own.name!r})."
            )
            raise DtypeError(message)
        node = cast(node, own)
        if current_trace() is None:
            if node.value is None:
                node = constant(evaluate.compute([node])[0])
            if node.device is not self._leaf.device:
                node = moved(node, self.device)
        return node

    def clone(self, init: Any = "same") -> Parameter:
        """Another Parameter of the same name, shape and dtype.

        Parameters
        ----------
        init : str, number, Tensor or Initializer
            "same" copies the value; anything else is given to `nn.initializer`.
        """
        if isinstance(init, str) and init == "same":
            value: Any = Tensor._of(self._node)
            if value.device == "cpu":
                value = Tensor._of(constant(np.array(self._concrete())))
        else:
            from .initial_values import initializer

            value = initializer(init, self.shape, self.dtype)
        made = Parameter(value, self.name, self.requires_grad)
        if hasattr(self, "_remembers"):
            made.remember()
        return made

    def _concrete(self) -> np.ndarray:
        """The value now, for use outside of recordings."""
        return evaluate.on_host(self._where_it_is())

    def _where_it_is(self) -> Any:
        """The value now, where it is: nothing is copied from a device."""
        if self._leaf.value is None:
            evaluate.finish_pending()
        return evaluate.known(self._leaf)

    def __deepcopy__(self, memo: Any) -> Parameter:
        return self.clone()

    def __copy__(self) -> Parameter:
        return self.clone()

    def copy(self, order: str = "C") -> Tensor:
        """The value as another Tensor, in an order of memory."""
        return self.value().copy(order)

    def __reduce__(self) -> Any:
        device = None if self._leaf.device is None else repr(self._leaf.device)
        parts = self.asnumpy(), self.name, self.requires_grad, device
        return _made_again, (*parts, True) if hasattr(self, "_remembers") else parts

    def __repr__(self) -> str:
        return (
            f"Parameter (name={self.name}, shape={self.shape}, dtype={self.dtype}, requires_grad={self.requires_grad})"
        )

    __str__ = __repr__


def _made_again(
    value: np.ndarray, name: str, requires_grad: bool, device: str | None, remembers: bool = False
) -> Parameter:
    """The Parameter that pickle makes of its parts; a differentiable leaf becomes one again."""
    made = Parameter(value, name, requires_grad, device=device)
    if remembers:
        made.remember()
    return made


_set_held = Parameter.__dict__["_held"].__set__


class ParameterTuple(tuple[Parameter, ...]):
    """A tuple of Parameters with different names.

    Parameters
    ----------
    iterable : iterable of Parameter

    Raises
    ------
    DtypeError
        If something is no Parameter.
    ArgumentError
        If two different Parameters have one name.

    Examples
    --------
    >>> import nbgrad as nb
    >>> pair = nb.ParameterTuple([nb.Parameter(1.0, name="a"), nb.Parameter(2.0, name="b")])
    >>> [p.name for p in pair.clone(prefix="new")]
    ['new.a', 'new.b']
    """

    def __new__(cls, iterable: Iterable[Parameter] = ()) -> ParameterTuple:
        parameters = tuple(iterable)
        check_parameters(parameters, "ParameterTuple")
        return super().__new__(cls, parameters)

    def clone(self, prefix: str, init: Any = "same") -> ParameterTuple:
        """Clones of all, with `prefix.` before their names; `init` as in `Parameter.clone`."""
        clones = []
        for parameter in self:
            clone = parameter.clone(init)
            clone.name = f"{prefix}.{parameter.name}"
            clones.append(clone)
        return ParameterTuple(clones)


def check_parameters(parameters: Iterable[Any], what: str) -> None:
    """Raise unless all are Parameters, and different ones have different names."""
    by_name: dict[str, Parameter] = {}
    for position, parameter in enumerate(parameters):
        if not isinstance(parameter, Parameter):
            message = f"{what} holds Parameters only, but element {position} is of type {type(parameter).__name__}."
            raise DtypeError(message)
        if by_name.setdefault(parameter.name, parameter) is not parameter:
            message = (
                f"{what} got two different Parameters with the name {parameter.name!r}. Give each its own name (the "
                "name= of Parameter, or the attribute that it becomes in a Cell)."
            )
            raise ArgumentError(message)
