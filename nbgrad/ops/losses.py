"""Loss functions: the distance of predictions from targets.

In: predictions, targets, and how to combine the losses of the elements (`reduction`). Out: a 0-d Tensor, or one of the
losses' shape. Called by users and by nbgrad.nn. Losses of logits are computed from logarithms, so that they neither
overflow nor lose digits. Class indices are compared with all classes instead of being gathered: one fused pass, and so
is the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import ArgumentError, BroadcastError, DtypeError, ShapeError
from ..functions.elementwise import special_functions as special
from ..graph.builders import cast, reduce, reshape
from ..graph.formulas import choose
from ..graph.ir import INT64, Node, broadcast, elementwise
from ..graph.shapes import broadcasts, joint_shape
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import axis_of, demand, inexact, keep, positions, safe_sqrt, scalar
from ..record.promotion import promote
from ..record.tensor import Tensor
from .declarations import also
from .docstrings import documented
from .normalisation import wide

REDUCTIONS = ("none", "mean", "sum")

# ----- Arguments and results -----


def _check_reduction(reduction: Any, allowed: Sequence[str] = REDUCTIONS) -> None:
    if not isinstance(reduction, str) or reduction not in allowed:
        message = f"reduction must be one of {', '.join(repr(name) for name in allowed)}, but is {reduction!r}."
        raise ArgumentError(message)


def _alike(name: str, **values: Any) -> list[Node]:
    """Operands in one floating-point dtype and of one shape, where broadcasting (n, 1) and (n,) would be a mistake.

    Raises
    ------
    ShapeError
        If the shapes differ.
    """
    nodes = _together(name, **values)
    if len({node.shape for node in nodes}) > 1:
        message = f"{name} takes arrays of one shape, but got {_shapes(values, nodes)}. Reshape or broadcast one first."
        raise ShapeError(message)
    return nodes


def _shapes(names: Iterable[str], nodes: Iterable[Node]) -> str:
    return ", ".join(f"{name} of {node.shape}" for name, node in zip(names, nodes, strict=True))


def _together(name: str, **values: Any) -> list[Node]:
    """Operands in one floating-point dtype; their shapes broadcast.

    Raises
    ------
    ShapeError
        If they do not.
    """
    nodes = promote([inexact(as_node(value)) for value in values.values()])
    shape: tuple[int, ...] = ()
    try:
        for node in nodes:
            shape = joint_shape(shape, node.shape)
    except BroadcastError:
        message = f"The shapes of {name} do not broadcast together: {_shapes(values, nodes)}."
        raise ShapeError(message) from None
    return nodes


def _total(node: Node) -> Node:
    return reduce("sum", node, range(node.ndim))


def _reduced(loss: Node, reduction: str, weight: Node | None = None) -> Tensor:
    """The losses, their sum, or their mean (their sum divided by the sum of weights that they contain)."""
    if reduction == "none":
        return wrap(loss)
    if reduction == "sum":
        return wrap(_total(loss))
    # A sum of float16, or the number of elements, may be too large for float16 although the mean is not.
    total = _total(wide(loss))
    return wrap(cast(total / (scalar(loss.size, total.dtype) if weight is None else _total(wide(weight))), loss.dtype))


def _weighted(loss: Node, weight: Any, name: str = "weight") -> Node:
    """Losses times weights, which broadcast to them; ShapeError if they do not."""
    if weight is None:
        return loss
    node = as_node(weight)
    if not broadcasts(node.shape, loss.shape):
        message = f"A {name} of shape {node.shape} does not broadcast to losses of shape {loss.shape}."
        raise ShapeError(message)
    return loss * cast(node, loss.dtype)


def _magnitude(x: Node) -> Node:
    return elementwise("absolute", x)


# ----- Regression -----


@documented
def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """The squared difference.

    input, target : array-like
        They broadcast.
    ShapeError, ArgumentError : If shapes do not broadcast or the reduction does not exist.

    >>> nb.ops.mse_loss(nb.Tensor([1.0, 2.0]), nb.Tensor([1.0, 4.0]))
    Tensor(shape=[], dtype=Float32, value= 2)
    """
    _check_reduction(reduction)
    x, y = _together("mse_loss", input=input, target=target)
    difference = x - y
    return _reduced(difference * difference, reduction)


def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """The absolute difference; its derivative at 0 is 0."""
    _check_reduction(reduction)
    x, y = _together("l1_loss", input=input, target=target)
    return _reduced(_magnitude(x - y), reduction)


def _huber(difference: Node, width: float, name: str) -> Node:
    """d**2 / 2 up to a width, from there on width * (d - width / 2)."""
    if width < 0:
        message = f"{name} must not be negative, but is {width}."
        raise ArgumentError(message)
    size, bound = _magnitude(difference), scalar(width, difference.dtype)
    return choose(
        elementwise("less", size, bound),
        difference * difference * 0.5,
        bound * (size - bound * 0.5),
        difference,
    )


def smooth_l1_loss(input: Any, target: Any, beta: float = 1.0, reduction: str = "none") -> Tensor:
    """`d**2 / (2 beta)` for differences below beta, else `d - beta / 2`; beta 0 gives `l1_loss`.

    Notes
    -----
    Differs from `torch.nn.functional.smooth_l1_loss`: the default reduction is "none", as in MindSpore.
    """
    _check_reduction(reduction)
    x, y = _alike("smooth_l1_loss", input=input, target=target)
    if beta == 0:
        return l1_loss(input, target, reduction)
    return _reduced(_huber(x - y, beta, "beta") / scalar(beta, x.dtype), reduction)


def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """`d**2 / 2` for differences below delta, else `delta * (d - delta / 2)` (Huber 1964)."""
    _check_reduction(reduction)
    x, y = _together("huber_loss", input=input, target=target)
    return _reduced(_huber(x - y, delta, "delta"), reduction)


# ----- Classes -----


def _class_axis(x: Node, name: str) -> int:
    if x.ndim == 0:
        message = f"The input of {name} needs an axis of classes: (N, C), (N, C, d1, ...) or (C,), but is 0-d."
        raise ShapeError(message)
    return 0 if x.ndim == 1 else 1


def _class_weights(weight: Any, x: Node, at: int, name: str) -> Node | None:
    """Weights as a node that broadcasts along the axis of classes."""
    if weight is None:
        return None
    node = as_node(weight)
    if node.shape != (x.shape[at],):
        message = f"The weight of {name} must have shape ({x.shape[at]},), one per class, but has {node.shape}."
        raise ShapeError(message)
    return reshape(cast(node, x.dtype), tuple([x.shape[at] if axis == at else 1 for axis in range(x.ndim)]))


def _indexed_loss(
    log_p: Node, target: Node, weight: Any, ignore_index: int, reduction: str, smoothing: float, name: str
) -> Tensor:
    """The negative log-likelihood of class indices."""
    at = _class_axis(log_p, name)
    classes = log_p.shape[at]
    expected = (*log_p.shape[:at], *log_p.shape[at + 1 :])
    if target.shape != expected or target.dtype.kind not in "iu":
        message = (
            f"The target of {name} must be integers of shape {expected} for an input of shape {log_p.shape}, but has "
            f"dtype {target.dtype} and shape {target.shape}."
        )
        raise (ShapeError if target.shape != expected else DtypeError)(message)
    target = cast(target, INT64)
    ignored = elementwise("equal", target, ignore_index)
    fits = elementwise("logical_and", elementwise("greater_equal", target, 0), elementwise("less", target, classes))
    demand(
        elementwise("logical_or", fits, ignored),
        f"A class in the target of {name} is neither in the range from 0 to {classes - 1} nor ignore_index.",
    )
    kept = keep(log_p.shape, (at,))
    hit = elementwise("equal", positions(log_p.shape, at), reshape(target, kept))
    hit = elementwise("logical_and", hit, elementwise("logical_not", reshape(ignored, kept)))
    weights = _class_weights(weight, log_p, at, name)
    weighted = log_p if weights is None else log_p * weights
    loss = reduce("sum", choose(hit, -weighted, 0, log_p), (at,))
    if weights is None:
        share = cast(elementwise("logical_not", ignored), log_p.dtype)
    else:
        share = reduce("sum", choose(hit, weights, 0, log_p), (at,))
    if smoothing:
        everything = choose(ignored, 0, -reduce("sum", weighted, (at,)), loss)
        part = scalar(smoothing, log_p.dtype)
        loss = loss * (1.0 - part) + everything * (part / scalar(classes, log_p.dtype))
    return _reduced(loss, reduction, share)


def _check_smoothing(value: Any) -> float:
    smoothing = float(value)
    if not 0 <= smoothing <= 1:
        message = f"label_smoothing must lie between 0 and 1, but is {value!r}."
        raise ArgumentError(message)
    return smoothing


@documented
def nll_loss(
    inputs: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The negative log-likelihood of classes, from logarithms of probabilities.

    inputs : array-like, shape (N, C), (N, C, d1, ...) or (C,)
        Logarithms of probabilities, as `log_softmax` gives them.
    target : array-like of int, shape (N,), (N, d1, ...) or ()
    weight, ignore_index, reduction, label_smoothing : as in `cross_entropy`.
    ShapeError, DtypeError, ArgumentError, RangeError : If the target does not fit, or holds a class that does not
        exist.
    """
    _check_reduction(reduction)
    smoothing = _check_smoothing(label_smoothing)
    log_p = inexact(as_node(inputs))
    return _indexed_loss(log_p, as_node(target), weight, ignore_index, reduction, smoothing, "nll_loss")


@documented
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of a softmax with classes or probabilities.

    input : array-like, shape (N, C), (N, C, d1, ...) or (C,)
        Logits.
    target : array-like
        Class indices: integers of the input's shape without the axis of classes. Or probabilities: floats of the
        input's shape.
    weight : array-like, shape (C,), optional
        Of the classes; a mean over class indices is divided by the sum of their weights.
    ignore_index : int
        A class index that does not count.
    label_smoothing : float
        The part of every target that is spread over all classes (Szegedy et al. 2016).
    ShapeError, DtypeError, ArgumentError, RangeError : If the target does not fit, or holds a class that does not
        exist.

    >>> nb.ops.cross_entropy(nb.Tensor([[1000.0, 0.0], [0.0, 0.0]]), nb.Tensor([0, 1]), reduction="none")
    Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  6.93147182e-01])
    """
    _check_reduction(reduction)
    smoothing = _check_smoothing(label_smoothing)
    x, labels = inexact(as_node(input)), as_node(target)
    at = _class_axis(x, "cross_entropy")
    log_p = as_node(special.log_softmax(wrap(x), at))
    if labels.dtype.kind != "f" or labels.shape != x.shape:
        return _indexed_loss(log_p, labels, weight, ignore_index, reduction, smoothing, "cross_entropy")
    labels = cast(labels, x.dtype)
    if smoothing:
        part = scalar(smoothing, x.dtype)
        labels = labels * (1.0 - part) + part / scalar(x.shape[at], x.dtype)
    weights = _class_weights(weight, x, at, "cross_entropy")
    loss = -reduce("sum", log_p * labels if weights is None else log_p * labels * weights, (at,))
    return _reduced(loss, reduction)


@documented
def softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, sparse: bool = False, reduction: str = "none"
) -> Tensor:
    """The cross entropy of each row of logits with a class index (`sparse`) or with probabilities.

    logits : array-like, shape (N, C)
    labels : array-like, shape (N,) of int or (N, C)
    sparse : bool
        Whether labels are class indices.
    reduction : {"none", "mean", "sum"}
    """
    given = as_node(labels)
    if not sparse:
        given = inexact(given)
    if given.ndim != as_node(logits).ndim - int(sparse):
        message = (
            f"labels have shape {given.shape} for logits of shape {as_node(logits).shape}: give class indices with "
            "sparse=True and probabilities with sparse=False."
        )
        raise ShapeError(message)
    return cross_entropy(logits, wrap(given), reduction=reduction)


# ----- Yes or no -----


@documented
def binary_cross_entropy(logits: Any, labels: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """The cross entropy of probabilities with labels: `-(y log(p) + (1 - y) log(1 - p))`.

    logits : array-like
        Probabilities, in spite of their name. Logarithms are limited to -100, where their derivative is 0.
    labels : array-like
        Between 0 and 1, of the same shape.
    weight : array-like, optional
        Broadcasts.

    Notes
    -----
    Differs from `torch.nn.functional.binary_cross_entropy`: numbers that are no probabilities give NaN, no error.
    """
    _check_reduction(reduction)
    p, y = _alike("binary_cross_entropy", logits=logits, labels=labels)
    outside = elementwise("logical_or", elementwise("less", p, 0), elementwise("greater", p, 1))
    p = p + choose(outside, math.nan, 0, p)
    loss = -(y * _limited_log(p, "log", p) + (1.0 - y) * _limited_log(1.0 - p, "log1p", -p))
    return _reduced(_weighted(loss, weight), reduction)


def _limited_log(size: Node, name: str, operand: Node) -> Node:
    """The logarithm of a number, at least -100, by a function of an operand; its derivative is never NaN."""
    tiny = elementwise("less_equal", size, scalar(math.exp(-100.0), size.dtype))
    harmless = choose(tiny, 1 if name == "log" else 0, operand, size)
    return choose(tiny, -100, elementwise(name, harmless), size)


@also(logits="input", label="target")
@documented
def binary_cross_entropy_with_logits(
    logits: Any, label: Any, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """The cross entropy of `sigmoid(logits)` with labels, without overflow.

    logits : array-like
    label : array-like
        Between 0 and 1, of the same shape.
    weight : array-like, optional
        Of the losses; broadcasts.
    pos_weight : array-like, optional
        Of the positive labels; broadcasts.

    >>> nb.ops.binary_cross_entropy_with_logits(nb.Tensor([0.0, 1000.0]), nb.Tensor([1.0, 0.0]), reduction="none")
    Tensor(shape=[2], dtype=Float32, value= [ 6.93147182e-01,  1.00000000e+03])
    """
    _check_reduction(reduction)
    x, y = _alike("binary_cross_entropy_with_logits", logits=logits, label=label)
    positive = _weighted(y * elementwise("logaddexp", -x, 0), pos_weight, "pos_weight")
    loss = positive + (1.0 - y) * elementwise("logaddexp", x, 0)
    return _reduced(_weighted(loss, weight), reduction)


# ----- Distributions, vectors, order -----


@documented
def kl_div(logits: Any, labels: Any, reduction: str = "mean") -> Tensor:
    """The Kullback-Leibler divergence `labels * (log(labels) - logits)`; labels of 0 give 0.

    logits : array-like
        Logarithms of probabilities.
    labels : array-like
        Probabilities.
    reduction : {"mean", "sum", "none", "batchmean"}
        "mean" divides by the number of elements, "batchmean" by the extent of the first axis.
    """
    _check_reduction(reduction, (*REDUCTIONS, "batchmean"))
    x, y = _alike("kl_div", logits=logits, labels=labels)
    some = elementwise("greater", y, 0)
    loss = choose(some, y * elementwise("log", choose(some, y, 1, y)), 0, y) - y * x
    if reduction == "batchmean":
        return wrap(_total(loss) / scalar(loss.shape[0] if loss.ndim else 1, loss.dtype))
    return _reduced(loss, reduction)


def _dot(x: Node, y: Node, axis: int) -> Node:
    return reduce("sum", x * y, (axis,))


@documented
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """The cosine of the angle between vectors along an axis; norms count as at least eps.

    x1, x2 : array-like
        They broadcast.
    -> Tensor
        Without the axis `dim`.

    >>> import numpy as np, nbgrad as nb
    >>> nb.ops.cosine_similarity(np.array([[3.0, 4.0]]), np.array([[0.0, 2.0]])).asnumpy()
    array([0.8])
    """
    x, y = _together("cosine_similarity", x1=x1, x2=x2)
    shape = joint_shape(x.shape, y.shape)
    dtype = x.dtype
    x, y = wide(broadcast(x, shape)), wide(broadcast(y, shape))
    axis, least = axis_of(dim, len(shape)), scalar(eps, x.dtype)
    lengths: list[Node] = []
    for vector in (x, y):
        length = safe_sqrt(_dot(vector, vector, axis))
        lengths.append(elementwise("select", elementwise("less", length, least), least, length))
    return wrap(cast(_dot(x, y, axis) / (lengths[0] * lengths[1]), dtype))


def _hinge(x: Node) -> Node:
    """x where it is not negative; the derivative at 0 is 1."""
    return choose(elementwise("less", x, 0), 0, x, x)


@documented
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """1 - cos for pairs that belong together (target 1), max(0, cos - margin) for others (target -1).

    input1, input2 : array-like, shape (N, D) or (D,)
    target : array-like, shape (N,) or ()
    margin : float
        Between -1 and 1.
    """
    _check_reduction(reduction)
    x, y = _together("cosine_embedding_loss", input1=input1, input2=input2)
    sign = as_node(target)
    if x.ndim not in (1, 2) or x.shape != y.shape or sign.shape != x.shape[:-1]:
        message = (
            "cosine_embedding_loss needs inputs of shape (N, D) and a target of shape (N,), but got "
            f"{x.shape}, {y.shape} and {sign.shape}."
        )
        raise ShapeError(message)
    dtype, at = x.dtype, x.ndim - 1
    x, y = wide(x), wide(y)
    # The small number keeps the derivative at zero vectors finite.
    small = scalar(1e-12, x.dtype)
    cosine = cast(_dot(x, y, at) / elementwise("sqrt", (_dot(x, x, at) + small) * (_dot(y, y, at) + small)), dtype)
    together = choose(elementwise("equal", sign, 1), 1.0 - cosine, 0, cosine)
    apart = choose(elementwise("equal", sign, -1), _hinge(cosine - scalar(margin, dtype)), 0, cosine)
    return _reduced(together + apart, reduction)


def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """max(0, margin - target * (input1 - input2)): target 1 asks for the first to be larger, -1 for the second."""
    _check_reduction(reduction)
    x, y, sign = _together("margin_ranking_loss", input1=input1, input2=input2, target=target)
    return _reduced(_hinge(scalar(margin, x.dtype) - sign * (x - y)), reduction)
