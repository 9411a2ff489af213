"""Random numbers with MindSpore's names and defaults: uniform and normal ones, integers, permutations, dropout.

In: shapes, or arrays whose shape and dtype the result has. Out: Tensors, float32 unless asked for otherwise. Called by
users, by layers, and by class_forms.py. Bits come from a `Generator`, the default one if none is given; with an integer
as `seed` they depend on that seed alone, and the same call gives the same numbers again. Results differentiate in
everything but the bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..functions.arrays.shaping import common_shape
from ..graph.builders import cast
from ..graph.formulas import choose
from ..graph.ir import INT64, Node, broadcast, elementwise
from ..graph.shapes import Shape
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import (
    FLOAT16,
    FLOAT32,
    Dtype,
    gather_axis,
    inexact,
    integer,
    real_dtype,
    scalar,
    shape_of,
)
from ..record.promotion import common_dtype, convert
from ..record.tensor import Tensor
from ..tensors.generator import Generator, default_generator
from .declarations import spelled
from .docstrings import documented
from .draws import (
    draw_bits,
    exponential,
    happens,
    integer_node,
    normal_node,
    permutation_node,
    probability_of,
    source_of,
    uniform_node,
)

# ----- Arguments -----


def _size(size: Any, name: str) -> Shape:
    """A shape given as several integers or as one tuple."""
    if len(size) == 1 and not isinstance(size[0], int | np.integer):
        size = size[0]
    try:
        return shape_of(size)
    except DtypeError:
        message = f"{name} takes the extents of a shape as integers, but got {size!r}."
        raise DtypeError(message) from None


def _float(dtype: Any, default: Dtype = FLOAT32) -> Dtype:
    """A floating point dtype."""
    found = default if dtype is None else real_dtype(dtype)
    if found.kind != "f":
        message = f"These random numbers need a float dtype (float16, float32 or float64), but got {found}."
        raise DtypeError(message)
    return found


def _bounds(low: Any, high: Any, dtype: Dtype) -> tuple[int, int]:
    """The range of random integers."""
    bounds = integer(low, "low"), integer(high, "high")
    if dtype.kind not in "iu":
        message = f"Random integers need an integer dtype, but got {dtype}."
        raise DtypeError(message)
    limits = np.iinfo(dtype)
    if not limits.min <= bounds[0] < bounds[1] <= int(limits.max) + 1:
        message = (
            f"Random integers need low < high within what {dtype} holds, but got low={bounds[0]} and high={bounds[1]}."
        )
        raise ArgumentError(message)
    return bounds


def _parameters(shape: Any, first: Any, second: Any, dtype: Any) -> tuple[Shape, list[Node], Dtype]:
    """The joint shape of a draw and its two parameters, and the parameters in the dtype of the result."""
    nodes = [as_node(first), as_node(second)]
    floats = [node for node in nodes if node.dtype.kind == "f" and not node.weak]
    found = _float(dtype, common_dtype(floats) if floats else FLOAT32)
    joint = common_shape([shape_of(shape), nodes[0].shape, nodes[1].shape])
    return joint, [convert(node, found) for node in nodes], found


# ----- Uniform and normal numbers -----


@documented
def rand(*size: Any, dtype: Any = None, seed: int | None = None, generator: Generator | None = None) -> Tensor:
    """Uniform random numbers in [0, 1).

    *size : int, or one tuple of int
    dtype : dtype, optional
        A float dtype; float32 by default. The numbers are multiples of 2**-24 (2**-53 for float64).
    ArgumentError, DtypeError, ShapeError : For a seed, a dtype or a shape that cannot be.

    >>> x = nb.ops.rand(2, 3, seed=1)
    >>> x.shape, bool(((x >= 0) & (x < 1)).all())
    ((2, 3), True)
    """
    return wrap(uniform_node(source_of(seed, generator), _size(size, "rand"), _float(dtype)))


def randn(*size: Any, dtype: Any = None, seed: int | None = None, generator: Generator | None = None) -> Tensor:
    """Standard normal random numbers; parameters as in `rand`."""
    return wrap(normal_node(source_of(seed, generator), _size(size, "randn"), _float(dtype)))


@spelled
def rand_like(input: Any, seed: int | None = None, *, dtype: Any = None, generator: Generator | None = None) -> Tensor:
    """Uniform random numbers in [0, 1) in the shape and dtype of an array (float32 for one of integers)."""
    node = as_node(input)
    found = _float(dtype, node.dtype if node.dtype.kind == "f" and not node.weak else FLOAT32)
    return wrap(uniform_node(source_of(seed, generator), node.shape, found))


@spelled
def randn_like(input: Any, seed: int | None = None, *, dtype: Any = None, generator: Generator | None = None) -> Tensor:
    """Standard normal random numbers in the shape and dtype of an array (float32 for one of integers)."""
    node = as_node(input)
    found = _float(dtype, node.dtype if node.dtype.kind == "f" and not node.weak else FLOAT32)
    return wrap(normal_node(source_of(seed, generator), node.shape, found))


@documented
def uniform(
    shape: Any,
    minval: Any,
    maxval: Any,
    seed: int | None = None,
    dtype: Any = None,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Uniform random numbers between two bounds; differentiable in both.

    shape : int or tuple of int
    minval, maxval : number or array-like
        The lower bound is included, the upper one is not (but rounding may reach it). Their shapes broadcast with
        `shape`.
    dtype : dtype, optional
        By default the float dtype of the bounds, float32 for Python numbers. For an integer dtype the bounds must be
        integers.
    ArgumentError, DtypeError, ShapeError : For bounds, a seed, a dtype or shapes that do not fit.

    >>> x = nb.ops.uniform((4,), -2.0, 3.0, seed=1)
    >>> bool(((x >= -2) & (x < 3)).all())
    True
    """
    source = source_of(seed, generator)
    if dtype is not None and real_dtype(dtype).kind in "iu":
        found = real_dtype(dtype)
        low, high = _bounds(minval, maxval, found)
        return wrap(integer_node(source, shape_of(shape), low, high, found))
    joint, (low_node, high_node), found = _parameters(shape, minval, maxval, dtype)
    return wrap(low_node + (high_node - low_node) * uniform_node(source, joint, found))


@documented
def normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    seed: int | None = None,
    *,
    dtype: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Normal random numbers; differentiable in mean and standard deviation.

    shape : int or tuple of int
    mean, stddev : number or array-like
        Their shapes broadcast with `shape`.
    dtype : dtype, optional
        By default the float dtype of mean and stddev, float32 for Python numbers.
    ArgumentError, DtypeError, ShapeError : For a seed, a dtype or shapes that do not fit.

    >>> nb.grad(lambda mean: nb.ops.normal((5,), mean, 2.0, seed=3).sum())(nb.Tensor(1.0))
    Tensor(shape=[], dtype=Float32, value= 5)
    """
    joint, (centre, width), found = _parameters(shape, mean, stddev, dtype)
    return wrap(centre + width * normal_node(source_of(seed, generator), joint, found))


def standard_normal(shape: Any, seed: int | None = None, *, generator: Generator | None = None) -> Tensor:
    """Standard normal random numbers in float32; `shape` is an int or a tuple."""
    return wrap(normal_node(source_of(seed, generator), shape_of(shape), FLOAT32))


def standard_laplace(shape: Any, seed: int | None = None, *, generator: Generator | None = None) -> Tensor:
    """Random numbers with density `exp(-|x|) / 2`, in float32; `shape` is an int or a tuple."""
    return laplace(shape, 0.0, 1.0, seed, generator=generator)


def laplace(
    shape: Any, mean: Any, lambda_param: Any, seed: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Random numbers with density `exp(-|x - mean| / lambda) / (2 lambda)`; differentiable in both parameters."""
    joint, (centre, width), found = _parameters(shape, mean, lambda_param, None)
    wide = FLOAT32 if found == FLOAT16 else found
    # The difference of two exponential numbers.
    first, second = (exponential(bits, wide) for bits in draw_bits(source_of(seed, generator), joint, 2))
    return wrap(centre + width * cast(first - second, found))


# ----- Integers and permutations -----


@documented
def randint(
    low: int,
    high: int,
    size: Any,
    seed: int | None = None,
    *,
    dtype: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Random integers from low to high - 1.

    size : int or tuple of int
        The shape.
    dtype : dtype, optional
        An integer dtype; int64 by default.
    ArgumentError, DtypeError, ShapeError : If there is no integer in the range, or for a seed, a dtype or a shape that
        cannot be.

    >>> dice = nb.ops.randint(1, 7, (100,), seed=0)
    >>> int(dice.min()), int(dice.max())
    (1, 6)
    """
    found = INT64 if dtype is None else real_dtype(dtype)
    bounds = _bounds(low, high, found)
    return wrap(integer_node(source_of(seed, generator), shape_of(size), *bounds, found))


@spelled
def randint_like(
    input: Any,
    low: int,
    high: int,
    seed: int | None = None,
    *,
    dtype: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Random integers from low to high - 1 in the shape and dtype of an array (int64 for one of floats)."""
    node = as_node(input)
    own = node.dtype if node.dtype.kind in "iu" else INT64
    return randint(low, high, node.shape, seed, dtype=own if dtype is None else dtype, generator=generator)


@documented
def randperm(
    n: int, seed: int | None = None, offset: int = 0, *, dtype: Any = None, generator: Generator | None = None
) -> Tensor:
    """The integers from 0 to n - 1 in random order, each order equally likely.

    offset : int
        Added to the seed, if that is given.
    dtype : dtype, optional
        int64 by default.
    -> Tensor, shape (n,)
    ArgumentError, DtypeError : If n is negative or no integer, or for a seed that cannot be.

    >>> import numpy as np, nbgrad as nb
    >>> np.sort(nb.ops.randperm(5, seed=2)).tolist()
    [0, 1, 2, 3, 4]
    """
    count = integer(n, "n")
    if count < 0:
        message = f"randperm needs a number of elements of at least 0, but got {count}."
        raise ArgumentError(message)
    moved = seed if seed is None or not offset else integer(seed, "seed") + integer(offset, "offset")
    result = permutation_node(source_of(moved, generator), count)
    return wrap(cast(result, INT64 if dtype is None else real_dtype(dtype)))


@spelled
def shuffle(input: Any, seed: int | None = None, *, generator: Generator | None = None) -> Tensor:
    """The slices along the first axis in random order; differentiable.

    >>> import numpy as np, nbgrad as nb
    >>> np.sort(nb.ops.shuffle(nb.Tensor([3, 1, 2]), seed=5)).tolist()
    [1, 2, 3]
    """
    node = as_node(input)
    source = source_of(seed, generator)
    if node.ndim == 0:
        return wrap(node)
    return wrap(gather_axis(node, 0, permutation_node(source, node.shape[0])))


# ----- Dropout -----


def _dropped(node: Node, shape: Shape, p: Any, training: bool, source: Any) -> Tensor:
    """Zeros where a draw of `shape`, which broadcasts to the array's, says so."""
    probability = probability_of(p, "p")
    if not training or probability == 0:
        return wrap(node)
    wide = FLOAT32 if node.dtype == FLOAT16 else node.dtype
    dropped = broadcast(happens(source(), shape, scalar(probability, wide)), node.shape)
    # With p = 1 nothing is kept, and the factor, which would be infinite, must not be.
    kept = node * scalar(1 / (1 - probability) if probability < 1 else 1.0, node.dtype)
    return wrap(choose(elementwise("logical_not", dropped), kept, 0.0, kept))


@spelled
def dropout(
    input: Any,
    p: float = 0.5,
    training: bool = True,
    seed: int | None = None,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Each element becomes 0 with probability p; the others are divided by 1 - p, so that the mean stays.

    p : float
        The probability of an element to be dropped, from 0 to 1.
    training : bool
        If false, the input is returned as it is.
    ArgumentError, DtypeError : If p is not a number between 0 and 1.

    >>> nb.ops.dropout(nb.Tensor([1.0, 2.0]), p=1.0).tolist()
    [0.0, 0.0]
    """
    node = inexact(as_node(input))
    return _dropped(node, node.shape, p, training, lambda: source_of(seed, generator))


def _dropout_of_channels(input: Any, p: float, training: bool, kept: int, name: str) -> Tensor:
    node = inexact(as_node(input))
    if node.ndim not in (kept + 1, kept + 2):
        message = f"{name} needs an array with {kept + 1} or {kept + 2} axes, but the shape is {node.shape}."
        raise ShapeError(message)
    shape = (*node.shape[: node.ndim - kept], *[1] * kept)
    return _dropped(node, shape, p, training, default_generator)


@spelled
def dropout1d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """`dropout` for whole channels of (N, C, L) or (C, L)."""
    return _dropout_of_channels(input, p, training, 1, "dropout1d")


@spelled
def dropout2d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """`dropout` for whole channels of (N, C, H, W) or (C, H, W)."""
    return _dropout_of_channels(input, p, training, 2, "dropout2d")


@spelled
def dropout3d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """`dropout` for whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    return _dropout_of_channels(input, p, training, 3, "dropout3d")
