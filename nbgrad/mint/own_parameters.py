"""Functions of `mint` whose parameters, defaults or results differ from those of `nbgrad.ops`.

In: Tensors, ndarrays, numbers. Out: Tensors; positions are int64. Called by users. A function that only hands its
parameters on is a row, as in `nbgrad.ops`.
"""

from __future__ import annotations

from typing import Any

import numpy

from ..errors import ArgumentError, ShapeError
from ..functions.arrays import shaping
from ..functions.linalg.factorisations import solve_triangular
from ..functions.linalg.matrix_products import vdot as numpy_vdot
from ..ops import choices, elementwise, filled_arrays, gathering, linear_algebra, random_tensors, ranking
from ..ops import reduction_functions as reductions
from ..ops import shape_functions as shapes
from ..ops.declarations import as_numpy
from ..ops.docstrings import documented
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import axis_of, integer, only, real_dtype
from ..record.pairs import ValuesAndIndices
from ..record.tensor import Tensor
from ..tensors.generator import Generator

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def _value(x: Any) -> Any:
    return wrap(as_node(x))


def _wide(pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Values, and positions as int64."""
    return ValuesAndIndices(pair[0], pair[1].astype("int64"))


@documented
def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Position of the first least element along an axis (of the flat array, if None), as int64.

    dim : int, optional
    """
    return reductions.argmin(input, dim, keepdim).astype("int64")


# ----- Comparisons -----


@documented
def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Elements of `input` where a condition is true, of `other` elsewhere; of a condition alone, where it is true.

    condition : Tensor, ndarray or bool
    input, other : Tensor, ndarray or number, optional
    -> Tensor, or of a condition alone a tuple of positions along each axis
    ArgumentError : If one of the two is missing.

    >>> nb.mint.where(nb.Tensor([True, False]), 1.0, 2.0).tolist()
    [1.0, 2.0]
    >>> [place.tolist() for place in nb.mint.where(nb.Tensor([[False, True]]))]
    [[0], [1]]
    """
    if input is None and other is None:
        return tuple(np.nonzero(_value(condition)))
    if input is None or other is None:
        message = "where needs both input and other, or none of them for the positions where the condition is true."
        raise ArgumentError(message)
    return elementwise.where(condition, input, other)


@documented
def equal(input: Any, other: Any) -> bool:
    """Whether two arrays have the same shape and elements; a Python bool."""
    first, second = _value(input), _value(other)
    return first.shape == second.shape and bool((first == second).all())


# ----- Extrema and order -----

_NO_AXIS: Any = object()


def _extremum(name: str, input: Any, dim: Any, keepdim: bool, other: Any) -> Any:
    if other is not None or isinstance(dim, Tensor | numpy.ndarray):
        return getattr(elementwise, f"{name}imum")(input, dim if other is None else other)
    if dim is _NO_AXIS:
        return getattr(reductions, f"a{name}")(input)
    return _wide(getattr(reductions, name)(input, dim, keepdim))


@documented
def max(input: Any, dim: Any = _NO_AXIS, keepdim: bool = False, *, other: Any = None) -> Any:
    """The greatest element; along an axis also its position; or the greater one of two arrays, elementwise.

    dim : int, or Tensor
        The axis; or the other array.
    keepdim : bool
    other : Tensor, optional
    -> Tensor, or values and positions

    >>> x = nb.Tensor([[1.0, 5.0], [7.0, 2.0]])
    >>> print(nb.mint.max(x), nb.mint.max(x, 1)[1])
    7.0 [1 0]
    """
    return _extremum("max", input, dim, keepdim, other)


@documented
def min(input: Any, dim: Any = _NO_AXIS, keepdim: bool = False, *, other: Any = None) -> Any:
    """The least element; along an axis also its position; or the lesser one of two arrays, elementwise.

    dim : int, or Tensor
        The axis; or the other array.
    keepdim : bool
    other : Tensor, optional
    -> Tensor, or values and positions
    """
    return _extremum("min", input, dim, keepdim, other)


@documented
def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower middle element; along an axis also its position.

    -> Tensor, or values and positions
    """
    if dim is None:
        return reductions.median(shapes.ravel(input))[0]
    return reductions.median(input, dim, keepdim)


@documented
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th least element along an axis, and its position.

    k : int
        From 1.
    ArgumentError : If the axis has less than k elements.
    """
    x, place = _value(input), integer(k, "k")
    n = x.shape[axis_of(dim, x.ndim)] if x.ndim else 1
    if not 1 <= place <= n:
        message = f"kthvalue needs k between 1 and the {n} elements of the axis, but got {k}."
        raise ArgumentError(message)
    values, positions = _wide(ranking.sort(x, dim))
    if not x.ndim:
        return ValuesAndIndices(values, positions)
    found = [shapes.narrow(one, dim, place - 1, 1) for one in (values, positions)]
    return ValuesAndIndices(*(found if keepdim else [shapes.squeeze(one, dim) for one in found]))


@documented
def sort(input: Any, *, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Tensor, Tensor]:
    """Elements sorted along an axis, and their positions.

    descending : bool
        Whether the greatest comes first.
    stable : bool
        Has no effect: equal elements keep their order.
    """
    del stable
    return _wide(ranking.sort(input, dim, descending))


@documented
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Positions that sort along an axis; parameters as `sort`.

    descending, stable : bool
    """
    return sort(input, dim=dim, descending=descending, stable=stable)[1]


@documented
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The k greatest (or least) elements along an axis, and their positions.

    largest : bool
        False for the least elements.
    sorted : bool
        Has no effect: the result is always sorted.
    """
    return _wide(ranking.topk(input, k, dim, largest, sorted))


# ----- Reductions -----


def _spread(function: Any, input: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    return function(input, dim, correction, keepdim)


@documented
def std(input: Any, dim: Any = None, *, correction: float = 1, keepdim: bool = False) -> Tensor:
    """Standard deviation over axes, with Bessel's correction.

    dim : int, tuple of int or None
    correction : float
        Subtracted from the number of elements.
    """
    return _spread(reductions.std, input, dim, correction, keepdim)


@documented
def var(input: Any, dim: Any = None, *, correction: float = 1, keepdim: bool = False) -> Tensor:
    """Variance over axes; parameters as `std`.

    dim : int, tuple of int or None
    correction : float
    """
    return _spread(reductions.var, input, dim, correction, keepdim)


@documented
def std_mean(input: Any, dim: Any = None, *, correction: float = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean over axes; parameters as `std`.

    dim : int, tuple of int or None
    correction : float
    """
    return _spread(reductions.std_mean, input, dim, correction, keepdim)


@documented
def var_mean(input: Any, dim: Any = None, *, correction: float = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Variance and mean over axes; parameters as `std`.

    dim : int, tuple of int or None
    correction : float
    """
    return _spread(reductions.var_mean, input, dim, correction, keepdim)


@documented
def count_nonzero(input: Any, dim: Any = None) -> Tensor:
    """The number of elements over axes that are not 0, as int64.

    dim : int, tuple of int or None
    """
    return reductions.count_nonzero(input, () if dim is None else dim, dtype="int64")


@documented
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The p-norm of the elements over axes.

    p : number, "fro" or "nuc"
        "fro" for the root of the sum of squares.
    dim : int, tuple of int or None
    """
    if p == "nuc":
        return reductions.matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return reductions.vector_norm(input, 2 if p == "fro" else p, dim, keepdim, dtype=dtype)


# ----- Shapes -----


@as_numpy(shaping.swapaxes, "Two axes exchanged.")
def transpose(input: Any, dim0: int, dim1: int) -> Tensor: ...


def t(input: Any) -> Tensor:
    """The transpose of a matrix; arrays of fewer axes as they are.

    Raises
    ------
    ShapeError
        If there are more than two axes.
    """
    x = _value(input)
    if x.ndim > 2:
        message = f"t takes at most two axes, but the shape is {x.shape}. Use mint.transpose(x, dim0, dim1)."
        raise ShapeError(message)
    return x.T


@documented
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Axes from `start_dim` to `end_dim` made one.

    start_dim, end_dim : int
    """
    x = _value(input)
    return shapes.flatten(x, start_dim=start_dim, end_dim=end_dim) if x.ndim > 1 else x.reshape(-1)


@documented
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinates of a grid from its 1-d axes.

    *tensors : Tensor or ndarray
    indexing : {None, "ij", "xy"}
        The order of the first two axes; None for "ij".
    """
    return shapes.meshgrid(*tensors, indexing=indexing or "ij")


@documented
def diag(input: Any, diagonal: int = 0) -> Tensor:
    """The matrix with a vector on a diagonal, or the diagonal of a matrix.

    diagonal : int
    """
    return np.diag(_value(input), diagonal)


def clone(input: Any) -> Tensor:
    """A copy, which differentiates."""
    return _value(input).copy()


# ----- Positions -----


@documented
def select(input: Any, dim: int, index: int) -> Tensor:
    """The slice at one position of an axis, which disappears.

    index : int
    RangeError : If the axis has no such position.
    """
    return shapes.squeeze(shapes.narrow(input, dim, integer(index, "index"), 1), dim)


@documented
def take(input: Any, index: Any) -> Tensor:
    """Elements of the flat array at positions, in the shape of these."""
    return gathering.gather(shapes.ravel(input), index, 0)


@documented
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """The array with slices times `alpha` added at positions of an axis.

    source : Tensor or ndarray
    alpha : number
    """
    return gathering.index_add(input, index, source if alpha == 1 else elementwise.mul(source, alpha), dim)


@documented
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Tensor:
    """The array with elements added at positions along an axis; repeated positions add up."""
    return gathering.tensor_scatter_elements(input, index, src, dim, "add")


# ----- Products and equations -----


@as_numpy(numpy_vdot, "The sum of products of two vectors, the first one conjugated.")
def vdot(input: Any, other: Any) -> Tensor: ...


@documented
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The p-norms of the differences of all rows of two matrices.

    p : float
    compute_mode : str
        Has no effect.
    """
    del compute_mode
    return linear_algebra.cdist(x1, x2, p)


@documented
def triangular_solve(
    b: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    """The solution of `A @ x = b` for a triangular A, and A.

    b, A : Tensor or ndarray
    upper : bool
        Whether A has its numbers above the diagonal.
    transpose : bool
        Whether to solve with the transpose of A.
    unitriangular : bool
        Whether the diagonal counts as ones.
    """
    return solve_triangular(A, b, int(transpose), not upper, unitriangular), _value(A)


# ----- New arrays -----


def _shape(size: tuple[Any, ...]) -> Any:
    return size[0] if len(size) == 1 else size


def _on_cpu(device: Any) -> None:
    """Devices are those of the arguments."""
    if device is not None:
        only("device", device, "CPU", "cpu")


@as_numpy(filled_arrays.zeros, "An array of zeros; float32 by default.")
def zeros(size: Any, *, dtype: Any = None) -> Tensor: ...
@as_numpy(filled_arrays.ones, "An array of ones; float32 by default.")
def ones(size: Any, *, dtype: Any = None) -> Tensor: ...


@documented
def empty(*size: Any, dtype: Any = None, device: Any = None, pin_memory: bool = False) -> Tensor:
    """A new array, of zeros.

    *size : int, or one tuple of int
    device : None or "CPU"
    pin_memory : bool
        Has no effect.
    """
    _on_cpu(device)
    del pin_memory
    return filled_arrays.zeros(_shape(size), dtype)


@documented
def empty_like(input: Any, *, dtype: Any = None, device: Any = None, pin_memory: bool = False) -> Tensor:
    """A new array of zeros in the shape and dtype of another.

    device : None or "CPU"
    pin_memory : bool
        Has no effect.
    """
    _on_cpu(device)
    del pin_memory
    return filled_arrays.zeros_like(input, dtype=dtype)


# ----- Random numbers -----


def _and_dtype(size: tuple[Any, ...], dtype: Any) -> tuple[tuple[Any, ...], Any]:
    """Extents, and the dtype that may come last among them."""
    if dtype is None and len(size) == 2 and isinstance(size[0], tuple | list):
        return size[:1], size[1]
    return size, dtype


@documented
def rand(*size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Uniform random numbers in [0, 1).

    *size : int, or one tuple of int, after which a dtype may come
    device : None or "CPU"
    """
    _on_cpu(device)
    size, dtype = _and_dtype(size, dtype)
    return random_tensors.rand(*size, dtype=dtype, generator=generator)


@documented
def randn(*size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Standard normal random numbers.

    *size : int, or one tuple of int, after which a dtype may come
    device : None or "CPU"
    """
    _on_cpu(device)
    size, dtype = _and_dtype(size, dtype)
    return random_tensors.randn(*size, dtype=dtype, generator=generator)


@documented
def rand_like(input: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Uniform random numbers in [0, 1) in the shape and dtype of an array.

    device : None or "CPU"
    """
    _on_cpu(device)
    return random_tensors.rand_like(input, dtype=dtype)


@documented
def randn_like(input: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Standard normal random numbers in the shape and dtype of an array.

    device : None or "CPU"
    """
    _on_cpu(device)
    return random_tensors.randn_like(input, dtype=dtype)


@documented
def randint(*args: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Random integers from `low` to `high - 1`, as int64 by default.

    *args : (high, size), or (low, high, size)
    device : None or "CPU"
    ArgumentError : If there are neither two nor three arguments.
    """
    _on_cpu(device)
    if len(args) not in (2, 3):
        message = f"randint takes (high, size) or (low, high, size), but got {len(args)} arguments."
        raise ArgumentError(message)
    low, high, size = args if len(args) == 3 else (0, *args)
    return random_tensors.randint(low, high, size, dtype=dtype, generator=generator)


@documented
def randint_like(input: Any, *args: int, dtype: Any = None, device: Any = None) -> Tensor:
    """Random integers from `low` to `high - 1` in the shape and dtype of an array.

    *args : (high,), or (low, high)
    device : None or "CPU"
    ArgumentError : If there are neither one nor two bounds.
    """
    _on_cpu(device)
    if len(args) not in (1, 2):
        message = f"randint_like takes an array and (high,) or (low, high), but got {len(args)} bounds."
        raise ArgumentError(message)
    x = _value(input)
    low, high = args if len(args) == 2 else (0, *args)
    found = x.dtype if dtype is None else dtype
    whole = found if real_dtype(found).kind in "iu" else "int64"
    return random_tensors.randint(low, high, x.shape, dtype=whole).astype(found)


@documented
def randperm(n: int, *, generator: Generator | None = None, dtype: Any = "int64") -> Tensor:
    """The numbers from 0 to `n - 1` in random order.

    dtype : dtype
    """
    return random_tensors.randperm(n, dtype=dtype, generator=generator)


@documented
def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, generator: Generator | None = None) -> Tensor:
    """Normal random numbers; differentiable in mean and standard deviation.

    mean, std : number or Tensor
        They broadcast.
    size : tuple of int, optional
        The shape, if both are numbers.
    """
    return random_tensors.normal(() if size is None else size, mean, std, generator=generator)


@documented
def bernoulli(input: Any, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that the input says, else 0, elementwise."""
    return choices.bernoulli(np.ones_like(_value(input)), input, generator=generator)


@documented
def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Random positions, as likely as the weights of each row.

    num_samples : int
    replacement : bool
        Whether a position may be drawn again.
    """
    return choices.multinomial(input, num_samples, replacement, generator=generator).astype("int64")
