"""Recurrences as class forms: `LSTM` with its weights in one vector, and Ascend's `DynamicRNN` and `DynamicGRUV2`.

In: sequences (T, N, inputs), weights, first states, and the options of a form. Out: the states of all steps, as
Tensors. class_table.py names them. Each is one loop of the graph, whatever the length of the sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ...control.scan import scan
from ...errors import ShapeError
from ...record.axes_and_dtypes import integer, only
from ..random_tensors import dropout
from .special_values import float_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""

# ----- Pieces -----


def _sigmoid(x: Any) -> Any:
    return 0.5 + 0.5 * np.tanh(0.5 * x)


def _sequences(x: Any, name: str) -> Any:
    """A sequence with at least one step.

    Raises
    ------
    ShapeError
        For other shapes.
    """
    found = float_of(x)
    if found.ndim != 3 or not found.shape[0]:
        message = f"{name} takes sequences (steps, batch, inputs) of at least one step, but got shape {found.shape}."
        raise ShapeError(message)
    return found


def _shaped(value: Any, shape: tuple[int, ...], name: str) -> Any:
    """An array of a shape; zeros for None.

    Raises
    ------
    ShapeError
        For another shape.
    """
    if value is None:
        return np.zeros(shape, np.float32)
    found = float_of(value)
    if found.shape != shape:
        message = f"{name} must have the shape {shape}, but has {found.shape}."
        raise ShapeError(message)
    return found


def _same_dtype(*values: Any) -> list[Any]:
    """Arrays in the widest of their dtypes: a loop carries what it began with."""
    dtype = np.result_type(*[np.dtype(str(value.dtype).lower()) for value in values])
    return [value.astype(dtype) for value in values]


def _gates(x: Any, count: int) -> list[Any]:
    size = x.shape[-1] // count
    return [x[..., k * size : (k + 1) * size] for k in range(count)]


def _lstm(projected: Any, hidden_weight: Any, h: Any, c: Any, backward: bool) -> tuple[Any, Any, Any]:
    """All outputs and the last states; gates are input, forget, cell, output."""

    def step(states: Any, part: Any) -> tuple[Any, Any]:
        i, f, g, o = _gates(part + states[0] @ hidden_weight, 4)
        cell = _sigmoid(f) * states[1] + _sigmoid(i) * np.tanh(g)
        output = _sigmoid(o) * np.tanh(cell)
        return (output, cell), output

    projected, hidden_weight, h, c = _same_dtype(projected, hidden_weight, h, c)
    (h, c), outputs = scan(step, (h, c), projected, reverse=backward)
    return outputs, h, c


# ----- One vector of weights -----


def _cut(weights: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Arrays of shapes, one after the other in a vector."""
    parts, at = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        parts.append(weights[at : at + size].reshape(shape))
        at += size
    return parts


def _directions(weights: Any, sizes: Sequence[int], hidden: int, has_bias: bool) -> list[tuple[Any, Any, Any]]:
    """For each direction of each layer the weights of inputs, those of states, and the sum of the biases.

    Raises
    ------
    ShapeError
        If the vector has another length than MindSpore's on CPUs or on GPUs.
    """
    rows, flat = 4 * hidden, float_of(weights).reshape(-1)
    count = len(sizes)
    inputs, states, biases = [(rows, n) for n in sizes], [(rows, hidden)] * count, [(rows,)] * count
    matrices = rows * (sum(sizes) + count * hidden)
    if flat.size == matrices + (rows * count if has_bias else 0):
        parts = _cut(flat, [*inputs, *states, *(biases if has_bias else [])])
        added = parts[2 * count :] if has_bias else [None] * count
        return list(zip(parts[:count], parts[count : 2 * count], added, strict=True))
    if has_bias and flat.size == matrices + 2 * rows * count:
        pairs = [shape for both in zip(inputs, states, strict=True) for shape in both]
        parts = _cut(flat, [*pairs, *biases, *biases])
        added = [parts[k] + parts[k + 1] for k in range(2 * count, 4 * count, 2)]
        return list(zip(parts[0 : 2 * count : 2], parts[1 : 2 * count : 2], added, strict=True))
    lengths = f"{matrices + rows * count} (or {matrices + 2 * rows * count}, as on GPUs)" if has_bias else str(matrices)
    message = f"The weights of LSTM must have {lengths} elements, but have {flat.size}."
    raise ShapeError(message)


def lstm_of_one_vector(
    x: Any, h: Any, c: Any, w: Any, *, input_size: int, hidden_size: int, num_layers: int, has_bias: bool,
    bidirectional: bool, dropout: float, proj_size: int = 0,
) -> tuple[Any, ...]:  # fmt: skip
    """Long short-term memory whose weights are one vector: (outputs, last h, last c, and two arrays without meaning).

    Gates are input, forget, cell, output. The vector has the weights of inputs of all layers and directions, then those
    of states, then one bias each, as MindSpore's CPU takes it; if it has two biases each, it is read as on GPUs: of
    every layer the weights of inputs and states, then all pairs of biases.
    """
    only("proj_size", proj_size, 0)
    sequence = _sequences(x, "LSTM")
    hidden, layers = integer(hidden_size, "hidden_size"), integer(num_layers, "num_layers")
    ways = 1 + bool(bidirectional)
    sizes = [input_size if layer == 0 else ways * hidden for layer in range(layers) for _ in range(ways)]
    if sequence.shape[2] != input_size:
        message = f"LSTM has input_size={input_size}, but got sequences of shape {sequence.shape}."
        raise ShapeError(message)
    shape = (layers * ways, sequence.shape[1], hidden)
    first_h, first_c = _shaped(h, shape, "h of LSTM"), _shaped(c, shape, "c of LSTM")
    last: list[tuple[Any, Any]] = []
    outputs: list[Any] = []
    for k, (of_inputs, of_states, bias) in enumerate(_directions(w, sizes, hidden, has_bias)):
        if k % ways == 0:
            if k and dropout:
                sequence = _dropped(sequence, dropout)
            outputs = []
        projected = sequence @ of_inputs.T
        projected = projected if bias is None else projected + bias
        output, *ends = _lstm(projected, of_states.T, first_h[k], first_c[k], k % ways == 1)
        outputs.append(output)
        last.append((ends[0], ends[1]))
        if k % ways == ways - 1:
            sequence = np.concatenate(outputs, -1) if ways > 1 else output
    unused = np.zeros((1, 1), np.float32)
    return sequence, np.stack([one[0] for one in last]), np.stack([one[1] for one in last]), unused, unused


def _dropped(sequence: Any, probability: float) -> Any:
    return dropout(sequence, probability)


# ----- Ascend's -----


def _usual(name: str, seq_length: Any, options: dict[str, Any], usual: dict[str, Any]) -> None:
    """Raise unless options have the only values that MindSpore takes."""
    only(f"seq_length of {name}", seq_length, None)
    for option, value in usual.items():
        given = options[option]
        only(f"{option} of {name}", given.lower() if isinstance(given, str) else given, value)


_USUAL = {"direction": "unidirectional", "cell_depth": 1, "keep_prob": 1.0, "num_proj": 0, "time_major": True} | {
    "activation": "tanh"
}


def _first(state: Any, batch: int, hidden: int, name: str) -> Any:
    """A first state (1, batch, hidden) or (batch, hidden), as the latter."""
    leads = 1 if state is not None and float_of(state).ndim == 3 else 0
    return _shaped(state, (1,) * leads + (batch, hidden), name).reshape(batch, hidden)


def ascend_lstm(
    x: Any, w: Any, b: Any, seq_length: Any = None, init_h: Any = None, init_c: Any = None, *,
    cell_type: str, use_peephole: bool, cell_clip: float, forget_bias: float, is_training: bool, **options: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Long short-term memory by one matrix (inputs + hidden, 4 * hidden): (h, h, c, i, g, f, o, tanh(c)) of every step.

    Gates are input, cell, forget, output, in the matrix, in the bias and in the results. Numbers keep their dtype.
    """
    del is_training
    given = {"cell_type": cell_type, "use_peephole": use_peephole, **options}
    _usual("DynamicRNN", seq_length, given, {**_USUAL, "cell_type": "lstm", "use_peephole": False})
    sequence, matrix = _sequences(x, "DynamicRNN"), float_of(w)
    inputs, batch = sequence.shape[2], sequence.shape[1]
    hidden = matrix.shape[-1] // 4
    matrix = _shaped(matrix, (inputs + hidden, 4 * hidden), "w of DynamicRNN")
    projected = sequence @ matrix[:inputs] + _shaped(b, (4 * hidden,), "b of DynamicRNN")
    h, c = (_first(s, batch, hidden, f"{n} of DynamicRNN") for s, n in ((init_h, "init_h"), (init_c, "init_c")))

    def step(states: Any, part: Any) -> tuple[Any, Any]:
        i, g, f, o = _gates(part + states[0] @ of_states, 4)
        i, g, f, o = _sigmoid(i), np.tanh(g), _sigmoid(f + forget_bias), _sigmoid(o)
        cell = f * states[1] + i * g
        if cell_clip > 0:
            cell = np.clip(cell, -cell_clip, cell_clip)
        bent = np.tanh(cell)
        return (o * bent, cell), (o * bent, cell, i, g, f, o, bent)

    projected, of_states, h, c = _same_dtype(projected, matrix[inputs:], h, c)
    _, (outputs, *others) = scan(step, (h, c), projected)
    return (outputs, outputs, *others)


def ascend_gru(
    x: Any, weight_input: Any, weight_hidden: Any, bias_input: Any = None, bias_hidden: Any = None,
    seq_length: Any = None, init_h: Any = None, *,
    cell_clip: float, gate_order: str, reset_after: bool, is_training: bool, **options: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Gated recurrent units: (h, h, update, reset, new, the part of `new` that reset acts on) of every step.

    Weights are (inputs, 3 * hidden) and (hidden, 3 * hidden), gates in the order of `gate_order`: r, z, h or z, r, h.
    """
    del is_training
    given = {"cell_clip": cell_clip, "reset_after": reset_after, **options}
    _usual("DynamicGRUV2", seq_length, given, {**_USUAL, "cell_clip": -1.0, "reset_after": True})
    only("gate_order", gate_order, "rzh", "zrh")
    sequence, of_inputs = _sequences(x, "DynamicGRUV2"), float_of(weight_input)
    inputs, batch = sequence.shape[2], sequence.shape[1]
    hidden = of_inputs.shape[-1] // 3
    of_inputs = _shaped(of_inputs, (inputs, 3 * hidden), "weight_input of DynamicGRUV2")
    of_states = _shaped(weight_hidden, (hidden, 3 * hidden), "weight_hidden of DynamicGRUV2")
    projected = sequence @ of_inputs + _shaped(bias_input, (3 * hidden,), "bias_input of DynamicGRUV2")
    added = _shaped(bias_hidden, (3 * hidden,), "bias_hidden of DynamicGRUV2")

    def step(h: Any, part: Any) -> tuple[Any, Any]:
        from_input, from_state = _gates(part, 3), _gates(h @ of_states + added, 3)
        a, b = (_sigmoid(one + other) for one, other in zip(from_input[:2], from_state[:2], strict=True))
        reset, update = (a, b) if gate_order == "rzh" else (b, a)
        new = np.tanh(from_input[2] + reset * from_state[2])
        output = (1 - update) * new + update * h
        return output, (output, update, reset, new, from_state[2])

    first = _first(init_h, batch, hidden, "init_h of DynamicGRUV2")
    projected, of_states, added, first = _same_dtype(projected, of_states, added, first)
    _, (outputs, *others) = scan(step, first, projected)
    return (outputs, outputs, *others)
