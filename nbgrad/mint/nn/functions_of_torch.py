"""Functions of `torch.nn.functional` that MindSpore's `mint.nn.functional` lacks, with PyTorch's parameters.

In: Tensors. Out: Tensors. Called by users; layers_of_torch.py names them. Most are functions of `nbgrad.ops` with other
names of parameters; the others are written with NumPy's functions on Tensors.
"""

from __future__ import annotations

from typing import Any

import numpy

from ... import ops
from ...errors import ArgumentError, ShapeError
from ...ops.docstrings import documented
from ...ops.rarer.margin_losses import poisson_nll_loss as poisson_loss
from ...process.modes import within
from ...record.as_node import as_node
from ...record.axes_and_dtypes import only, write
from ...record.tensor import Tensor
from .functional_rows import _in_place, _value, softmax

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


# ----- Activations -----


@documented
def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, else alpha * (exp(x / alpha) - 1).

    alpha : float
    inplace : bool
        Whether the input is written to.
    """
    return _in_place(input, ops.celu(_value(input), alpha), inplace)


def celu_(input: Any, alpha: float = 1.0) -> Tensor:
    """`celu`, written to the input."""
    return celu(input, alpha, True)


@documented
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where it is positive, else negative_slope * x.

    negative_slope : float
    inplace : bool
        Whether the input is written to.
    """
    return _in_place(input, ops.leaky_relu(_value(input), negative_slope), inplace)


def leaky_relu_(input: Any, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu`, written to the input."""
    return leaky_relu(input, negative_slope, True)


def _may_write(function: Any, title: str) -> Any:
    """A function of one array, which may be written to it."""

    def found(input: Any, inplace: bool = False) -> Tensor:
        return _in_place(input, function(_value(input)), inplace)

    found.__name__ = found.__qualname__ = function.__name__
    found.__doc__ = f"{title}; with `inplace`, written to the input."
    return found


selu = _may_write(ops.selu, "x where it is positive, else an exponential, scaled such that moments stay")
mish = _may_write(ops.mish, "x times the hyperbolic tangent of its softplus")
hardswish = _may_write(ops.hardswish, "x times its piecewise linear sigmoid")
hardsigmoid = _may_write(ops.hardsigmoid, "A sigmoid of three straight pieces")


def selu_(input: Any) -> Tensor:
    """`selu`, written to the input."""
    return _in_place(input, ops.selu(input), True)


@documented
def rrelu(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """x where it is positive, else x times a random slope; the mean slope outside of training.

    lower, upper : float
        Of the slope.
    training : bool
    inplace : bool
        Whether the input is written to.
    """
    x = _value(input)
    found = ops.rrelu(x, lower, upper) if training else ops.leaky_relu(x, (lower + upper) / 2)
    return _in_place(input, found, inplace)


@documented
def softmin(input: Any, dim: int | None = None, dtype: Any = None) -> Tensor:
    """`softmax` of -x.

    dim : int, optional
    """
    return softmax(-_value(input), dim, dtype)


@documented
def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A random choice among classes, softened so that it has a derivative (Jang, Gu, Poole 2017).

    logits : Tensor
    tau : float
        How soft it is.
    hard : bool
        Whether to give a one among zeros, with the derivative of the soft choice.
    eps : float
        Has no effect.
    """
    del eps
    return ops.gumbel_softmax(logits, tau, hard, dim)


# ----- Normalisation, dropout -----


@documented
def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Tensor:
    """The last axes divided by their root mean square (Zhang and Sennrich 2019).

    normalized_shape : tuple of int
        The extents of these axes.
    weight : Tensor, optional
    eps : float, optional
        Added to the mean of the squares; the spacing of the dtype at 1 by default.
    """
    x = _value(input)
    axes = tuple(range(-len(normalized_shape), 0))
    if tuple(x.shape[-len(axes) :]) != tuple(normalized_shape):
        message = f"rms_norm needs an input that ends in {tuple(normalized_shape)}, but it has shape {x.shape}."
        raise ShapeError(message)
    small = float(np.finfo(np.dtype(str(x.dtype).lower())).eps) if eps is None else eps
    scaled = x / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + small)
    return scaled if weight is None else scaled * weight


@documented
def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Every channel of every example standardised, by its own statistics or by running ones.

    running_mean, running_var : Tensor, shape (C,), optional
        Written to if `use_input_stats`.
    weight, bias : Tensor, shape (C,), optional
    use_input_stats : bool
    momentum : float
        The weight of the input in the running statistics.
    """
    x = _value(input)
    if not use_input_stats:
        return ops.batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    if running_mean is not None:
        axes = tuple(range(2, x.ndim))
        count = int(np.prod(x.shape[2:]))
        with within(remembers=False):
            means = np.mean(np.mean(x, axis=axes), axis=0)
            variances = np.mean(np.var(x, axis=axes), axis=0) * (count / max(count - 1, 1))
            for statistic, new in ((running_mean, means), (running_var, variances)):
                value = (1 - momentum) * statistic + momentum * new
                write(statistic, as_node(value.astype(statistic.dtype)), "instance_norm")
    return ops.instance_norm(x, weight, bias, eps)


@documented
def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x divided by a power of the mean of squares of neighbouring channels (Krizhevsky et al. 2012).

    size : int
        The number of channels.
    alpha, beta, k : float
        The divisor is `(k + alpha * mean) ** beta`.
    """
    x = _value(input)
    before = size // 2
    widths = [(0, 0)] * x.ndim
    widths[1] = (before, size - 1 - before)
    squares = np.pad(x * x, widths)
    total = sum(squares[:, j : j + x.shape[1]] for j in range(size))
    return x / (k + alpha / size * total) ** beta


def _dropout(function: Any, input: Any, p: float, training: bool, inplace: bool) -> Tensor:
    return _in_place(input, function(input, p, training), inplace)


@documented
def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of signals.

    p : float
    training, inplace : bool
    """
    return _dropout(ops.dropout1d, input, p, training, inplace)


@documented
def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of volumes.

    p : float
    training, inplace : bool
    """
    return _dropout(ops.dropout3d, input, p, training, inplace)


_DROPPED = -1.7580993408473766
"""The least value of SELU: minus the product of its scale and its alpha."""


def _alpha_dropout(input: Any, p: float, training: bool, inplace: bool, channels: bool) -> Tensor:
    if not 0.0 <= p <= 1.0:
        message = f"dropout probability has to be between 0 and 1, but got {p}"
        raise ArgumentError(message)
    x = _value(input)
    if not training or p == 0.0:
        return _in_place(input, x * 1, inplace)
    if p == 1.0:
        return _in_place(input, x * 0, inplace)
    shape = (*x.shape[:2], *[1] * (x.ndim - 2)) if channels else x.shape
    kept = ops.dropout(ops.ones(shape, x.dtype), p, True) * (1 - p)
    scale = ((1 - p) * (1 + p * _DROPPED**2)) ** -0.5
    return _in_place(input, (x * kept + _DROPPED * (1 - kept)) * scale - scale * p * _DROPPED, inplace)


@documented
def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance of what SELU gives (Klambauer et al. 2017).

    p : float
    training, inplace : bool
    """
    return _alpha_dropout(input, p, training, inplace, False)


@documented
def feature_alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels.

    p : float
    training, inplace : bool
    """
    return _alpha_dropout(input, p, training, inplace, True)


# ----- Windows, convolutions -----


@documented
def max_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest element of every window of signals; parameters as `max_pool2d`.

    kernel_size, padding : int
    stride : int, optional
    ceil_mode, return_indices : bool
    """
    return ops.max_pool1d(input, kernel_size, stride, padding, dilation, return_indices, ceil_mode)


@documented
def max_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest element of every window of volumes; parameters as `max_pool2d`.

    kernel_size, padding : int or tuple of int
    stride : int or tuple of int, optional
    ceil_mode, return_indices : bool
    """
    return ops.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _one(value: Any) -> Any:
    return value[0] if isinstance(value, tuple | list) else value


@documented
def conv_transpose1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The derivative of a convolution of signals by its signals; parameters as `conv_transpose2d`, of one axis.

    input : Tensor, shape (N, C, L) or (C, L)
    weight : Tensor, shape (C, out / groups, k)
    bias : Tensor, shape (out,), optional
    stride, padding, output_padding, dilation : int
    groups : int
    """
    x, w = _value(input), _value(weight)
    found = ops.conv_transpose2d(
        x[..., None, :],
        w[:, :, None],
        bias,
        (1, _one(stride)),
        (0, _one(padding)),
        (0, _one(output_padding)),
        groups,
        (1, _one(dilation)),
    )
    return found[..., 0, :]


# ----- Distances and products -----


@documented
def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The norms of the differences of vectors.

    p : float
        Of the norm.
    eps : float
        Added to the differences.
    keepdim : bool
    """
    return ops.norm(_value(x1) - _value(x2) + eps, p, -1, keepdim)


@documented
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """`x1 @ weight[k] @ x2` for every output k.

    input1, input2 : Tensor, shape (..., m) and (..., n)
    weight : Tensor, shape (out, m, n)
    bias : Tensor, shape (out,), optional
    """
    product = np.einsum("...i,kij,...j->...k", _value(input1), _value(weight), _value(input2))
    return product if bias is None else product + bias


@documented
def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of rows of a table.

    input : Tensor of int, shape (N, L), or (L,) with offsets
    weight : Tensor, shape (rows, n)
    offsets : Tensor of int, shape (N,), optional
        Where the bags begin.
    mode : {"mean", "sum", "max"}
    per_sample_weights : Tensor, optional
        Factors of the rows, with the mode "sum".
    include_last_offset : bool
        Whether the last offset is the end of the last bag.
    padding_idx : int, optional
        A row that does not count.
    max_norm, scale_grad_by_freq : {None, False}
        Other values are refused.
    norm_type, sparse
        Have no effect.
    """
    del norm_type, sparse
    only("max_norm", max_norm, None)
    only("scale_grad_by_freq", scale_grad_by_freq, False)
    only("mode", mode, "mean", "sum", "max")
    if per_sample_weights is not None and mode != "sum":
        message = f"embedding_bag takes per_sample_weights with the mode 'sum', not {mode!r}."
        raise ArgumentError(message)
    table, positions = _value(weight), np.asarray(_value(input))
    if (positions.ndim == 2) != (offsets is None) or positions.ndim not in (1, 2):
        message = f"embedding_bag takes positions of two axes, or of one axis with offsets, not {positions.shape}."
        raise ShapeError(message)
    if offsets is None:
        count = positions.shape[0]
        bags = np.repeat(np.arange(count), positions.shape[1])
    else:
        starts = np.asarray(_value(offsets))
        starts = starts[:-1] if include_last_offset else starts
        count = len(starts)
        bags = np.searchsorted(starts, np.arange(positions.size), side="right") - 1
    positions = positions.reshape(-1)
    factors = None if per_sample_weights is None else _value(per_sample_weights).reshape(-1)
    if padding_idx is not None:
        kept = np.flatnonzero(positions != padding_idx % table.shape[0])
        positions, bags = positions[kept], bags[kept]
        factors = None if factors is None else factors[kept]
    rows = table[positions]
    rows = rows if factors is None else rows * factors[:, None]
    filled = np.bincount(bags, minlength=count)
    if mode == "max":
        found = ops.unsorted_segment_max(rows, Tensor(bags.astype(np.int32)), count)
        return np.where((filled > 0)[:, None], found, 0.0).astype(table.dtype)
    total = ops.unsorted_segment_sum(rows, Tensor(bags.astype(np.int32)), count)
    if mode == "sum":
        return total
    return total / Tensor(np.maximum(filled, 1)[:, None]).astype(table.dtype)


@documented
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Values, weighted by how well their keys fit queries; `nbgrad.ops.scaled_dot_product_attention` says more.

    query, key, value : Tensor, shape (..., L, E), (..., S, E), (..., S, Ev)
    attn_mask : Tensor, optional
        Booleans: true where a key is looked at. Floats: added to the scores.
    dropout_p : float
    is_causal : bool
        Whether no query looks at later keys.
    scale : float, optional
        The factor of the scores; `E**-0.5` by default.
    enable_gqa : bool
        Whether groups of heads of the query share a head of keys and values.
    """
    q, k, v = _value(query), _value(key), _value(value)
    if scale is not None:
        q = q * (scale * q.shape[-1] ** 0.5)
    if enable_gqa:
        k, v = [np.repeat(one, q.shape[-3] // one.shape[-3], axis=-3) for one in (k, v)]
    return ops.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)


# ----- Losses -----


@documented
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log-probability of label sequences, summed over all their alignments (Graves et al. 2006).

    log_probs : Tensor, shape (T, N, C) or (T, C)
    targets : Tensor of int, shape (N, S), or all labels one after the other
    input_lengths, target_lengths : Tensor of int or list of int, shape (N,)
    blank : int
    zero_infinity : bool
        Whether losses of labels that do not fit are 0.
    """
    x, labels = _value(log_probs), np.asarray(_value(targets))
    lengths = np.atleast_1d(np.asarray(_value(target_lengths)))
    frames = np.atleast_1d(np.asarray(_value(input_lengths)))
    single = x.ndim == 2
    x = x[:, None] if single else x
    if labels.ndim == 1:
        padded = np.zeros((len(lengths), max(int(lengths.max(initial=0)), 1)), labels.dtype)
        ends = np.cumsum(lengths)
        for row, (end, length) in enumerate(zip(ends, lengths, strict=True)):
            padded[row, :length] = labels[end - length : end]
        labels = padded
    integers = [Tensor(one.astype(np.int32)) for one in (labels, frames, lengths)]
    loss = ops.ctc_loss(x, *integers, blank=blank, reduction=reduction, zero_infinity=zero_infinity)[0]
    return loss[0] if single and reduction == "none" else loss


@documented
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
) -> Tensor:
    """Minus the log-probability of counts.

    target : Tensor
    log_input : bool
        Whether the input is the logarithm of the rates.
    full : bool
        Whether to add Stirling's approximation of the term without the rate.
    """
    return poisson_loss(_value(input), _value(target), log_input, full, eps, reduction)


@documented
def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """The distance where the target is 1, and what it lacks of a margin where the target is -1.

    target : Tensor
    margin : float
    """
    return ops.hinge_embedding_loss(input, target, margin, reduction)


@documented
def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """How much farther, by a margin, an anchor should be from negative than from positive examples.

    anchor, positive, negative : Tensor
    distance_function : callable, optional
        `pairwise_distance` by default.
    margin : float
    swap : bool
        Whether the distance from positive to negative counts if it is the shorter one.
    """
    only("reduction", reduction, "none", "mean", "sum")
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    far = np.minimum(far, distance(positive, negative)) if swap else far
    loss = np.maximum(near - far + margin, 0)
    return loss if reduction == "none" else np.sum(loss) if reduction == "sum" else np.mean(loss)
