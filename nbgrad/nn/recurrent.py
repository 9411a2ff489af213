"""Recurrent layers: RNN, LSTM, GRU, and their single steps RNNCell, LSTMCell, GRUCell.

In: sizes; then sequences. Out: Cells. Called by users. The inputs of all steps are projected by one product; the
recurrence is one loop of the graph, whose code and compile time do not depend on the length of the sequence.
Names of Parameters and the order of gates are those of MindSpore and PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..functions.linalg.matrix_products import matmul_node
from ..graph.builders import concatenate, reshape, transpose
from ..graph.ir import Node, broadcast, constant, elementwise, zeros
from ..graph.loops.loop_body import like, make_loop
from ..graph.trace import current_trace
from ..ops.random_tensors import dropout
from ..process.modes import KEEPS
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import cut, inexact
from ..record.promotion import promote
from ..record.tensor import Tensor
from ..runtime.evaluate import compute
from ..tensors.initial_values import Uniform
from .cell import Cell
from .layer_arguments import flag, parameter, part, positive

States = tuple[Node, ...]
Step = Callable[[Node, Node, States], States]
"""From the projections of input and hidden state, and the old states, to the new ones; the first is the output."""


# ----- One step -----


def _gates(projected: Node, count: int) -> list[Node]:
    size = projected.shape[-1] // count
    return [cut(projected, projected.ndim - 1, k * size, size) for k in range(count)]


def _tanh_step(x: Node, h: Node, states: States) -> States:
    return (elementwise("tanh", x + h),)


def _relu_step(x: Node, h: Node, states: States) -> States:
    total = x + h
    return (elementwise("select", elementwise("less_equal", total, 0), 0, total),)


def _lstm_step(x: Node, h: Node, states: States) -> States:
    """Hochreiter and Schmidhuber 1997, with forget gates; input, forget, cell, output."""
    i, f, g, o = _gates(x + h, 4)
    cell = elementwise("expit", f) * states[1] + elementwise("expit", i) * elementwise("tanh", g)
    return elementwise("expit", o) * elementwise("tanh", cell), cell


def _gru_step(x: Node, h: Node, states: States) -> States:
    """Cho et al. 2014, with the reset gate after the product; reset, update, new."""
    (xr, xz, xn), (hr, hz, hn) = _gates(x, 3), _gates(h, 3)
    new = elementwise("tanh", xn + elementwise("expit", xr + hr) * hn)
    return (new + elementwise("expit", xz + hz) * (states[0] - new),)


@dataclass(frozen=True)
class Kind:
    """A kind of recurrence: its step, how many gates it has, and how many states."""

    step: Step
    gates: int = 1
    states: int = 1


KINDS = {
    "tanh": Kind(_tanh_step),
    "relu": Kind(_relu_step),
    "LSTM": Kind(_lstm_step, 4, 2),
    "GRU": Kind(_gru_step, 3),
}


def _nonlinearity(name: Any) -> Kind:
    if name not in ("tanh", "relu"):
        message = f"nonlinearity must be 'tanh' or 'relu', but got {name!r}."
        raise ArgumentError(message)
    return KINDS[name]


def _weights(
    cell: Cell, kind: Kind, size: int, hidden: int, has_bias: bool, suffix: str, dtype: Any
) -> tuple[str, ...]:
    """Give a Cell the Parameters of one direction of one layer; their names."""
    rows = kind.gates * hidden
    shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, size), "weight_hh": (rows, hidden)}
    if has_bias:
        shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
    for name, shape in shapes.items():
        setattr(cell, name + suffix, parameter(Uniform(1.0 / math.sqrt(hidden)), shape, dtype))
    return tuple([name + suffix for name in shapes])


def _project(x: Node, weight: Node, bias: Node | None) -> Node:
    y = matmul_node(x, weight)
    return y if bias is None else elementwise("add", *promote([y, bias]))


@dataclass
class Direction:
    """The Parameters of one direction of one layer as nodes, ready for products from the left."""

    input_weight: Node
    hidden_weight: Node
    input_bias: Node | None = None
    hidden_bias: Node | None = None

    @classmethod
    def of(cls, cell: Cell, names: Sequence[str]) -> Direction:
        """The Parameters of a Cell, by their names."""
        nodes = [getattr(cell, name)._node for name in names]
        return cls(transpose(nodes[0], (1, 0)), transpose(nodes[1], (1, 0)), *nodes[2:])


def _checked_state(hx: Any, count: int, shape: tuple[int, ...], like: Node, name: str) -> list[Node]:
    """The initial states, zeros by default.

    Raises
    ------
    DtypeError, ShapeError
        If their number or their shapes do not fit.
    """
    if hx is None:
        return [zeros(shape, like.dtype)] * count
    given = [hx] if count == 1 else hx
    if not isinstance(given, list | tuple) or len(given) != count:
        message = f"hx of {name} must be a tuple (h, c) of two arrays, but got {type(hx).__name__}."
        raise DtypeError(message)
    nodes = [inexact(as_node(value)) for value in given]
    for node in nodes:
        if node.shape != shape:
            message = f"A state in hx of {name} must have shape {shape}, but has {node.shape}."
            raise ShapeError(message)
    return nodes


def _checked_input(x: Any, forms: Sequence[int], size: int, name: str) -> Node:
    """An input of one of several numbers of axes, whose last has the right extent.

    Raises
    ------
    ShapeError
        If it has not.
    """
    node = inexact(as_node(x))
    if node.ndim not in forms or node.shape[-1] != size:
        message = (
            f"The input of {name} must have {' or '.join(map(str, forms))} axes, of which the last has {size} elements "
            f"(input_size), but has shape {node.shape}."
        )
        raise ShapeError(message)
    return node


def _settled(results: Sequence[Node]) -> list[Node]:
    """Results that share nearly all of their work: computed together now, unless they are recorded or remember."""
    if current_trace() is not None or any(node.traced & KEEPS for node in results):
        return list(results)
    return [Tensor._holding(value)._node for value in compute(results)]


def _delivered(states: Sequence[Node]) -> Any:
    """A bare state, or the pair of an LSTM."""
    return wrap(states[0]) if len(states) == 1 else tuple([wrap(node) for node in states])


# ----- Sequences -----


class _Recurrent(Cell):
    """Layers of recurrences over sequences."""

    kind: Kind

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        has_bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__()
        self.input_size = positive(input_size, "input_size")
        self.hidden_size = positive(hidden_size, "hidden_size")
        self.num_layers = positive(num_layers, "num_layers")
        self.has_bias = flag(has_bias, "has_bias")
        self.batch_first = flag(batch_first, "batch_first")
        self.dropout = part(dropout, "dropout", closed=False)
        self.bidirectional = flag(bidirectional, "bidirectional")
        names: list[tuple[str, ...]] = []
        for layer in range(self.num_layers):
            size = self.input_size if layer == 0 else self.hidden_size * (1 + bidirectional)
            for ending in ("", "_reverse")[: 1 + bidirectional]:
                suffix = f"_l{layer}{ending}"
                names.append(_weights(self, self.kind, size, self.hidden_size, has_bias, suffix, dtype))
        self._names = tuple(names)
        # MindSpore lists all weights of one kind before those of the next.
        for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            for name in [name for name in self._params if name.startswith(kind)]:
                self._params.move_to_end(name)

    def construct(self, x: Any, hx: Any = None, seq_length: Any = None) -> Any:
        """Run over sequences.

        Parameters
        ----------
        x : array-like, shape (T, N, input_size)
            Or (N, T, input_size) with `batch_first`.
        hx : array-like, shape (layers * directions, N, hidden_size), optional
            The initial state, zeros by default; a pair (h, c) of them for an LSTM.
        seq_length : array-like of int, shape (N,), optional
            How many steps of each sequence count. Outputs after them are zero, and the last state is that after them.

        Returns
        -------
        output : Tensor, shape (T, N, directions * hidden_size)
            The hidden states of the last layer at every step; (N, T, ...) with `batch_first`.
        hx : Tensor, shape (layers * directions, N, hidden_size)
            The last state; a pair (h, c) for an LSTM.

        Raises
        ------
        ShapeError, DtypeError
            If shapes do not fit, or lengths are no integers.
        """
        node = _checked_input(x, (3,), self.input_size, self.cls_name)
        if self.batch_first:
            node = transpose(node, (1, 0, 2))
        steps, batch = node.shape[:2]
        if steps == 0:
            message = f"{self.cls_name} needs at least one time step, but the input has shape {np.shape(x)}."
            raise ShapeError(message)
        count = len(self._names)
        first = [Direction.of(self, names) for names in self._names]
        shape = (count, batch, self.hidden_size)
        initial = _checked_state(hx, self.kind.states, shape, node, self.cls_name)
        node, *initial = promote([node, *initial, first[0].input_weight])[: 1 + len(initial)]
        masks = _step_masks(seq_length, steps, batch, self.cls_name)
        last: list[States] = []
        for layer in range(self.num_layers):
            if layer and self.dropout and self.training:
                node = as_node(dropout(wrap(node), self.dropout))
            outputs: list[Node] = []
            for backward in range(1 + self.bidirectional):
                at = len(last)
                states = tuple([reshape(cut(state, 0, at, 1), shape[1:]) for state in initial])
                output, states = self._run(first[at], node, states, masks, bool(backward))
                outputs.append(output)
                last.append(states)
            node = concatenate(outputs, 2) if len(outputs) > 1 else outputs[0]
        if self.batch_first:
            node = transpose(node, (1, 0, 2))
        ends = [concatenate([reshape(s[k], (1, *shape[1:])) for s in last], 0) for k in range(self.kind.states)]
        node, *ends = _settled([node, *ends])
        return wrap(node), _delivered(ends)

    def _run(
        self, weights: Direction, node: Node, states: States, masks: Node | None, backward: bool
    ) -> tuple[Node, States]:
        """One direction of one layer: all outputs, and the last states."""
        projected = _project(node, weights.input_weight, weights.input_bias)
        before = tuple([like(state) for state in states])
        part = like(projected, projected.shape[1:])
        scanned = [(part, projected)]
        hidden = _project(before[0], weights.hidden_weight, weights.hidden_bias)
        found = self.kind.step(part, hidden, before)
        output = found[0]
        if masks is not None:
            reached = like(masks, masks.shape[1:])
            scanned.append((reached, masks))
            keep = broadcast(reached, output.shape)
            found = tuple([elementwise("select", keep, new, old) for new, old in zip(found, before, strict=True)])
            output = elementwise("select", keep, output, 0)
        carried = list(zip(before, states, found, strict=True))
        made = make_loop(projected.shape[0], carried, scanned, results=[output], reverse=backward)
        return made.every(output), tuple(made.at_end())

    def extend_repr(self) -> str:
        """The arguments that are not the defaults."""
        text = f"input_size={self.input_size}, hidden_size={self.hidden_size}"
        defaults = {"num_layers": 1, "has_bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        changed = [f"{name}={getattr(self, name)}" for name, usual in defaults.items() if getattr(self, name) != usual]
        return ", ".join([text, *changed])


def _step_masks(seq_length: Any, steps: int, batch: int, name: str) -> Node | None:
    """Per step, which sequences reach it, as (T, N, 1).

    Raises
    ------
    ShapeError, DtypeError
        If there is not one integer per sequence.
    """
    if seq_length is None:
        return None
    lengths = as_node(seq_length)
    if lengths.dtype.kind not in "iu":
        message = f"seq_length of {name} must be integers, but has dtype {lengths.dtype}."
        raise DtypeError(message)
    if lengths.shape != (batch,):
        message = f"seq_length of {name} must have shape ({batch},), one per sequence, but has {lengths.shape}."
        raise ShapeError(message)
    shape = (steps, batch, 1)
    counted = broadcast(reshape(constant(np.arange(steps)), (steps, 1, 1)), shape)
    return elementwise("greater", *promote([broadcast(reshape(lengths, (1, batch, 1)), shape), counted]))


class RNN(_Recurrent):
    """The recurrent layer `h = tanh(W_ih x + b_ih + W_hh h + b_hh)` (Elman 1990).

    Parameters
    ----------
    input_size, hidden_size : int
    num_layers : int
        Each layer gets the outputs of the one before.
    has_bias : bool
    batch_first : bool
        Whether inputs and outputs are (N, T, ...) instead of (T, N, ...).
    dropout : float
        The probability with which outputs between layers are dropped while training.
    bidirectional : bool
        Also run backwards in time; outputs are joined along the last axis.
    nonlinearity : {"tanh", "relu"}
    dtype : dtype

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse, ..., weight_ih_l1, ... : Parameter
        The weights of the gates below one another. Uniform up to `1 / sqrt(hidden_size)` at first.

    Raises
    ------
    ArgumentError, DtypeError
        For arguments that cannot be used.

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.RNN(2, 3, bidirectional=True)
    >>> output, state = net(nb.ops.ones((5, 4, 2)))
    >>> output.shape, state.shape
    ((5, 4, 6), (2, 4, 3))
    """

    kind = KINDS["tanh"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        has_bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = np.float32,
        *,
        nonlinearity: str = "tanh",
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, has_bias, batch_first, dropout, bidirectional, dtype)
        self.kind = _nonlinearity(nonlinearity)
        self.nonlinearity = nonlinearity


class LSTM(_Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber 1997); parameters as in `RNN`, without `nonlinearity`.

    The gates are, in this order: input, forget, cell, output. The state is a pair (h, c).

    Examples
    --------
    >>> import nbgrad as nb
    >>> output, (h, c) = nb.nn.LSTM(2, 3, batch_first=True)(nb.ops.ones((4, 5, 2)))
    >>> output.shape, h.shape, c.shape
    ((4, 5, 3), (1, 4, 3), (1, 4, 3))
    """

    kind = KINDS["LSTM"]


class GRU(_Recurrent):
    """Gated recurrent units (Cho et al. 2014); parameters as in `RNN`, without `nonlinearity`.

    The gates are, in this order: reset, update, new.

    Examples
    --------
    >>> import nbgrad as nb
    >>> output, h = nb.nn.GRU(2, 3, num_layers=2)(nb.ops.ones((5, 4, 2)))
    >>> output.shape, h.shape
    ((5, 4, 3), (2, 4, 3))
    """

    kind = KINDS["GRU"]


# ----- Single steps as layers -----


class _RecurrentCell(Cell):
    """One step of a recurrence."""

    kind: Kind

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool = True, dtype: Any = np.float32) -> None:
        super().__init__()
        self.input_size = positive(input_size, "input_size")
        self.hidden_size = positive(hidden_size, "hidden_size")
        self.has_bias = flag(has_bias, "has_bias")
        self._names = _weights(self, self.kind, self.input_size, self.hidden_size, has_bias, "", dtype)

    def construct(self, x: Any, hx: Any = None) -> Any:
        """One step.

        Parameters
        ----------
        x : array-like, shape (N, input_size) or (input_size,)
        hx : array-like, shape (N, hidden_size) or (hidden_size,), optional
            The state, zeros by default; a pair (h, c) for an LSTMCell.

        Returns
        -------
        Tensor, of the shape of `hx`; a pair (h, c) for an LSTMCell

        Raises
        ------
        ShapeError, DtypeError
            If shapes do not fit.
        """
        node = _checked_input(x, (1, 2), self.input_size, self.cls_name)
        weights = Direction.of(self, self._names)
        shape = (*node.shape[:-1], self.hidden_size)
        states = _checked_state(hx, self.kind.states, shape, node, self.cls_name)
        node, *states = promote([node, *states, weights.input_weight])[: 1 + len(states)]
        projected = _project(node, weights.input_weight, weights.input_bias)
        hidden = _project(states[0], weights.hidden_weight, weights.hidden_bias)
        return _delivered(self.kind.step(projected, hidden, tuple(states)))

    def extend_repr(self) -> str:
        """The sizes."""
        return f"input_size={self.input_size}, hidden_size={self.hidden_size}, has_bias={self.has_bias}"


class RNNCell(_RecurrentCell):
    """One step of an `RNN`.

    Parameters
    ----------
    input_size, hidden_size : int
    has_bias : bool
    nonlinearity : {"tanh", "relu"}
    dtype : dtype

    Attributes
    ----------
    weight_ih, weight_hh, bias_ih, bias_hh : Parameter

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.nn.RNNCell(2, 3)(nb.ops.ones((4, 2)), nb.ops.zeros((4, 3))).shape
    (4, 3)
    """

    kind = KINDS["tanh"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        has_bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: Any = np.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, has_bias, dtype)
        self.kind = _nonlinearity(nonlinearity)
        self.nonlinearity = nonlinearity


class LSTMCell(_RecurrentCell):
    """One step of an `LSTM`; parameters as in `RNNCell`, without `nonlinearity`. Gives the pair (h, c)."""

    kind = KINDS["LSTM"]


class GRUCell(_RecurrentCell):
    """One step of a `GRU`; parameters as in `RNNCell`, without `nonlinearity`."""

    kind = KINDS["GRU"]
