"""Class forms of rarer functions: transforms, histograms, segments, sparse parts, chosen boxes, hooks of gradients.

In: arrays and the options of a form. Out: Tensors. class_table.py names them; those of images are in tinted_images.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from ...errors import ArgumentError, ShapeError
from ...functions.linalg.factorisations import solve_triangular
from ...record.axes_and_dtypes import integer, integers, only, real_dtype
from ...record.tensor import Tensor
from ...transforms.custom import custom_vjp
from .. import spectra
from ..gathering import tensor_scatter_elements
from ..volumes import conv3d, conv_transpose3d
from .margin_losses import alignments, multilabel_margin_loss, triplet_margin_loss
from .special_values import float_of, logcumsumexp, value_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def _known(value: Any) -> numpy.ndarray:
    return numpy.asarray(value_of(value))


# ----- Gradients seen on their way -----


def hooked(*values: Any, hook_fn: Callable[[Any], Any], cell_id: str) -> Any:
    """Arrays as they are, whose cotangents a function sees, as a tuple, and may replace by what it returns."""
    del cell_id

    def backward(*args: Any) -> Any:
        cotangents = args[-1] if isinstance(args[-1], tuple) else (args[-1],)
        found = hook_fn(cotangents)
        new = cotangents if found is None else found if isinstance(found, tuple) else (found,)
        return tuple(new)

    passed = custom_vjp(lambda *x: tuple([one * 1 for one in x]), bprop=backward)(*map(value_of, values))
    return passed if len(values) > 1 else passed[0]


def with_gradient(input_x: Any, f: Callable[[Any], Any]) -> Any:
    """An array as it is, whose cotangent is what a function makes of it."""
    passed = custom_vjp(lambda x: x * 1, bprop=lambda x, out, dout: (f(dout),))
    return passed(value_of(input_x))


# ----- Transforms and products -----


def transform_of_size(
    x: Any, signal_ndim: int, inverse: bool, real: bool, norm: str, onesided: bool, signal_sizes: Any
) -> Tensor:
    """Fourier transforms of the last axes: complex ones, or of real numbers to half of the frequencies and back."""
    only("signal_ndim", signal_ndim, 1, 2, 3)
    axes = tuple(range(-signal_ndim, 0))
    numbers = value_of(x)
    if not real:
        function = spectra.ifftn if inverse else spectra.fftn
        return function(numbers, None, axes, norm)
    if inverse:
        sizes = tuple(integers(signal_sizes, "signal_sizes")) or None
        if onesided:
            return spectra.irfftn(numbers, sizes, axes, norm)
        return np.real(spectra.ifftn(numbers, None, axes, norm))
    return spectra.rfftn(numbers, None, axes, norm) if onesided else spectra.fftn(numbers, None, axes, norm)


def convolution_3d(
    x: Any, weight: Any, out_channel: int, kernel_size: Any, mode: int, pad_mode: str, pad: Any, stride: Any,
    dilation: Any, group: int, data_format: str,
) -> Tensor:  # fmt: skip
    """`conv3d` by the options of its class form."""
    only("mode", mode, 1)
    only("data_format", data_format, "NCDHW")
    del out_channel, kernel_size
    return conv3d(x, weight, None, _three(stride), pad_mode, pad, _three(dilation), group)


def transposed_convolution_3d(
    dout: Any, weight: Any, in_channel: int, out_channel: int, kernel_size: Any, mode: int, pad_mode: str, pad: Any,
    stride: Any, dilation: Any, group: int, output_padding: Any, data_format: str,
) -> Tensor:  # fmt: skip
    """`conv_transpose3d` by the options of its class form."""
    only("mode", mode, 1)
    only("data_format", data_format, "NCDHW")
    only("pad_mode", pad_mode, "valid", "pad")
    del in_channel, out_channel, kernel_size
    ends = pad if pad_mode == "pad" else 0
    return conv_transpose3d(dout, weight, None, _three(stride), ends, _three(output_padding), group, _three(dilation))


def _three(value: Any) -> Any:
    """One number, or three after those of the batch and of the channels."""
    return tuple(value)[-3:] if isinstance(value, tuple | list) else value


def running_logarithm(x: Any, axis: Any, exclusive: bool, reverse: bool) -> Tensor:
    """`logcumsumexp` along an axis; `exclusive` of the element itself, `reverse` from the end."""
    numbers, at = float_of(x), int(_known(axis))
    along = np.flip(numbers, at) if reverse else numbers
    found = logcumsumexp(along, at)
    if exclusive:
        count = numbers.shape[at]
        lowest = np.finfo(np.dtype(numbers.dtype.name)).min
        first = np.full_like(np.take(found, [0], at), lowest)
        found = np.concatenate([first, np.take(found, np.arange(count - 1), at)], at)
    return np.flip(found, at) if reverse else found


def triangular_solution(matrix: Any, rhs: Any, lower: bool, adjoint: bool) -> Tensor:
    """The solution of equations with a triangular matrix, or with its conjugate transpose."""
    return solve_triangular(float_of(matrix), float_of(rhs), 2 if adjoint else 0, lower)


def least_squares(x: Any, a: Any, fast: bool, l2_regularizer: float) -> Tensor:
    """The solution of `x @ y = a` by least squares, with squares of the solution added to them."""
    del fast
    matrix, right = float_of(x), float_of(a)
    if not l2_regularizer:
        return np.linalg.pinv(matrix) @ right
    turned = np.swapaxes(matrix, 0, 1)
    more = np.eye(matrix.shape[1], dtype=np.dtype(matrix.dtype.name)) * l2_regularizer
    return np.linalg.solve(turned @ matrix + more, turned @ right)


def banded_product(superdiag: Any, maindiag: Any, subdiag: Any, rhs: Any) -> Tensor:
    """The product of a matrix of three diagonals (1, n each), and a matrix."""
    above, main, below = (value_of(one)[..., 0, :, None] for one in (superdiag, maindiag, subdiag))
    right = value_of(rhs)
    zero = np.zeros_like(right[..., :1, :])
    up = np.concatenate([right[..., 1:, :], zero], -2)
    down = np.concatenate([zero, right[..., :-1, :]], -2)
    return main * right + above * up + below * down


def turned_conjugate(x: Any, perm: Any) -> Tensor:
    """The axes in another order, and complex numbers conjugated."""
    return np.conj(np.transpose(value_of(x), tuple(integers(perm, "perm"))))


# ----- Diagonals and positions -----


def on_diagonal(input_x: Any) -> Tensor:
    """An array of k axes on the diagonal of one with 2 k axes."""
    x = value_of(input_x)
    return np.diag(x.ravel()).reshape((*x.shape, *x.shape))


def diagonal_part(input_x: Any) -> Tensor:
    """The diagonal of an array of 2 k axes, of which the last k have the extents of the first."""
    x = value_of(input_x)
    half = x.ndim // 2
    if x.ndim != 2 * half or x.shape[:half] != x.shape[half:]:
        message = f"DiagPart takes the same extents twice, such as (2, 3, 2, 3), but the shape is {x.shape}."
        raise ShapeError(message)
    count = math.prod(x.shape[:half])
    return np.diagonal(x.reshape((count, count))).reshape(x.shape[:half])


def filled_diagonal(input_x: Any, fill_value: float, wrap: bool) -> Tensor:
    """The array with a number on its main diagonal."""
    return value_of(input_x).fill_diagonal(fill_value, wrap)


def coordinates(indices: Any, dims: Any) -> Tensor:
    """The coordinates of flat positions, one column for each."""
    found = value_of(indices)
    places = np.unravel_index(found, tuple(integers(dims, "dims")))
    return np.stack(places).astype(np.dtype(found.dtype.name))


def written_elements(data: Any, indices: Any, updates: Any, axis: int, reduction: str) -> Tensor:
    """`tensor_scatter_elements` by the options of its class form."""
    return tensor_scatter_elements(data, indices, updates, axis, reduction)


def added_elements(input_x: Any, indices: Any, updates: Any, axis: int) -> Tensor:
    """`tensor_scatter_elements` that adds."""
    return tensor_scatter_elements(input_x, indices, updates, axis, "add")


def as_tuple(x: Any) -> tuple[Tensor, ...]:
    """The arrays of a list, as they are."""
    return tuple([value_of(one) for one in x])


def numbers_of(x: Any) -> tuple[Any, ...]:
    """The numbers of an array of at most one axis."""
    return tuple(_known(x).reshape(-1).tolist())


# ----- Numbers counted and chosen -----


def numbers_not_zero(x: Any, dims: Any) -> Tensor:
    """The numbers of elements that are not zero, along axes or of all."""
    axes = None if dims is None else tuple(integers(dims, "dims"))
    return np.count_nonzero(value_of(x), axes).astype(np.int64)


def counts_of_bins(x: Any, bins: int, min: float, max: float) -> Tensor:
    """The numbers of elements in intervals of equal width; all elements lie in them if both ends are 0."""
    numbers = _known(x)
    ends = (min, max) if min or max else (numbers.min(initial=numpy.inf), numbers.max(initial=-numpy.inf))
    ends = (ends[0] - 1, ends[1] + 1) if ends[0] == ends[1] else ends
    found = numpy.histogram(numbers, bins, ends)[0]
    return Tensor(found.astype(numpy.int32 if numbers.dtype.kind == "i" else numpy.float32))


def without_others(x: Any, y: Any, out_idx: Any) -> tuple[Tensor, Tensor]:
    """The numbers of a list that another list lacks, and their positions."""
    places = numpy.flatnonzero(~numpy.isin(_known(x), _known(y)))
    return value_of(x)[places], Tensor(places.astype(real_dtype(out_idx)))


def shifted_and_chosen(input_x: Any, max_num: Any, offset: Any) -> tuple[Tensor, Tensor]:
    """Numbers minus an offset, as far as they lie from 0 up to a limit, and their positions."""
    found = _known(input_x) - int(_known(offset))
    places = numpy.flatnonzero((found >= 0) & (found < int(_known(max_num))))
    return Tensor(found[places]), Tensor(places.astype(numpy.int32))


def packed_bits(x: Any, threshold: Any) -> Tensor:
    """Whether elements are above a threshold, eight of the last axis in one number."""
    above = _known(x) > _known(threshold)
    if above.shape[-1] % 8:
        message = (
            f"CompareAndBitpack needs a last axis whose extent is a multiple of 8, but the shape is {above.shape}."
        )
        raise ShapeError(message)
    return Tensor(numpy.packbits(above, -1))


def finite_numbers(x: Any) -> Tensor:
    """The array as it is.

    Raises
    ------
    ArgumentError
        If it has a NaN or an infinity.
    """
    numbers = value_of(x)
    if not numpy.isfinite(_known(numbers)).all():
        message = "The array has a NaN or an infinity. nb.find_nan(function) says where they come from."
        raise ArgumentError(message)
    return numbers


def ragged_ranges(starts: Any, limits: Any, deltas: Any, Tsplits: Any) -> tuple[Tensor, Tensor]:
    """Numbers from starts up to limits by steps, row by row, and the position where each row begins."""
    all_of = numpy.broadcast_arrays(*(numpy.atleast_1d(_known(one)) for one in (starts, limits, deltas)))
    rows = [numpy.arange(*bounds, dtype=all_of[0].dtype) for bounds in zip(*all_of, strict=True)]
    begins = numpy.cumsum([0, *[row.size for row in rows]])
    joined = numpy.concatenate([*rows, numpy.zeros(0, all_of[0].dtype)])
    return Tensor(begins.astype(real_dtype(Tsplits))), Tensor(joined)


def _in_order(name: str, reduced: Callable[[Any], Any], empty: float) -> Callable[[Any, Any], Tensor]:
    def function(input_x: Any, segment_ids: Any) -> Tensor:
        x, rows = float_of(input_x), _known(segment_ids)
        if rows.shape != x.shape[:1] or (numpy.diff(rows) < 0).any():
            message = f"{name} needs one number for each of {x.shape[:1]} rows, and they must not fall."
            raise ShapeError(message)
        parts = [
            reduced(x[rows == row]) if (rows == row).any() else np.full_like(x[0], empty)
            for row in range(int(rows.max(initial=-1)) + 1)
        ]
        return np.stack(parts)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The {name.removeprefix('segment_')} of the rows of each segment, whose numbers rise."
    return function


segment_sum = _in_order("segment_sum", lambda x: np.sum(x, 0), 0.0)
segment_mean = _in_order("segment_mean", lambda x: np.mean(x, 0), 0.0)
segment_prod = _in_order("segment_prod", lambda x: np.prod(x, 0), 1.0)
segment_max = _in_order("segment_max", lambda x: np.max(x, 0), 0.0)
segment_min = _in_order("segment_min", lambda x: np.min(x, 0), 0.0)


def parts_of_sizes(input_x: Any, size_splits: Any, split_dim: int, num_split: int) -> tuple[Tensor, ...]:
    """Parts of these extents along an axis; one extent may be -1, for the rest."""
    x, sizes = value_of(input_x), list(integers(size_splits, "size_splits"))
    if len(sizes) != num_split:
        message = f"SplitV was told num_split={num_split}, but size_splits has {len(sizes)} extents."
        raise ShapeError(message)
    if -1 in sizes:
        sizes[sizes.index(-1)] = x.shape[split_dim] - sum(sizes) - 1
    return tuple(np.split(x, numpy.cumsum(sizes)[:-1].tolist(), split_dim))


def pairs_of_classes(labels: Any, predictions: Any, weights: Any = None, *, num_classes: int, dtype: Any) -> Tensor:
    """How often each class, which has a row, was taken for each class, which has a column."""
    found = numpy.zeros((num_classes, num_classes))
    numpy.add.at(found, (_known(labels), _known(predictions)), 1 if weights is None else _known(weights))
    return Tensor(found.astype(real_dtype(dtype)))


def length(x: Any, axes: Any, keep_dims: bool) -> Tensor:
    """The root of the sum of squares over axes."""
    numbers = float_of(x)
    return np.sqrt(np.sum(numbers * numbers, tuple(integers(axes, "axes")), keepdims=keep_dims))


def sum_of_singular_values(x: Any, dim: Any, keepdim: bool) -> Tensor:
    """The nuclear norm of matrices in two axes."""
    axes = (0, 1) if dim is None else tuple(integers(dim, "dim"))
    return np.linalg.norm(float_of(x), "nuc", axes, keepdims=keepdim)


def demanded(condition: Any, input_data: Any, summarize: int) -> None:
    """Raise if a condition is false, with the first numbers of some arrays.

    Raises
    ------
    ArgumentError
        Then.
    """
    if not bool(_known(condition)):
        shown = "; ".join(str(_known(one).reshape(-1)[:summarize].tolist()) for one in input_data)
        message = f"The condition of Assert is false; the arrays begin with {shown}."
        raise ArgumentError(message)


# ----- Sparse arrays -----


def positions_once(x_indices: Any, x_values: Any, x_shape: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Coordinates in order, each once, with the sums of their values, and the shape.

    Parameters
    ----------
    x_indices : Tensor of int, shape (axes, values)
    x_values : Tensor, shape (values,)
    x_shape : Tensor of int, shape (axes,)
    """
    places, shape = _known(x_indices), tuple(integers(x_shape, "x_shape"))
    flat, which = numpy.unique(numpy.ravel_multi_index(tuple(places), shape), return_inverse=True)
    values = value_of(x_values)
    total = np.zeros((flat.size, *values.shape[1:]), np.dtype(values.dtype.name))
    sums: Any = Tensor(total)
    np.add.at(sums, which.ravel(), values)
    return Tensor(numpy.stack(numpy.unravel_index(flat, shape))), sums, value_of(x_shape)


def sparse_part(indices: Any, values: Any, shape: Any, start: Any, size: Any) -> tuple[Tensor, Tensor, Tensor]:
    """A box of a sparse array: coordinates in it, their values, and its extents."""
    places, begin, extents = _known(indices), _known(start), _known(size)
    inner = numpy.minimum(extents, _known(shape) - begin)
    kept = numpy.flatnonzero(((places >= begin) & (places < begin + inner)).all(1))
    return Tensor(places[kept] - begin), value_of(values)[kept], Tensor(inner)


# ----- Boxes -----


def boxes_apart(
    overlaps: Any, scores: Any, max_output_size: Any, overlap_threshold: Any, score_threshold: Any
) -> Tensor:
    """The numbers of boxes from the greatest score on, without those that overlap one before them too much."""
    both, height = _known(overlaps), _known(scores)
    most, limit = int(_known(max_output_size)), float(_known(overlap_threshold))
    chosen: list[int] = []
    for box in numpy.argsort(-height, kind="stable").tolist():
        apart = all(both[box, other] <= limit for other in chosen)
        if apart and len(chosen) < most and height[box] > float(_known(score_threshold)):
            chosen.append(box)
    return Tensor(numpy.array(chosen, numpy.int32))


# ----- Borders, losses, numbers drawn -----


def border(x: Any, paddings: Any, constant_value: Any = 0, *, mode: str, paddings_contiguous: bool) -> Tensor:
    """Elements around the last axes; widths in pairs from the last axis on, or all before, then all after."""
    only("mode", mode, "constant", "reflect", "edge", "circular")
    numbers, widths = value_of(x), list(integers(paddings, "paddings"))
    if len(widths) % 2 or len(widths) > 2 * numbers.ndim:
        message = f"paddings has a pair of widths for some of {numbers.ndim} axes, but {len(widths)} numbers."
        raise ShapeError(message)
    axes = len(widths) // 2
    each = range(axes)
    pairs = [(widths[2 * k], widths[2 * k + 1]) if paddings_contiguous else (widths[k], widths[axes + k]) for k in each]
    around = [(0, 0)] * (numbers.ndim - axes) + pairs[::-1]
    if mode == "constant":
        return np.pad(numbers, around, constant_values=value_of(constant_value))
    return np.pad(numbers, around, mode="wrap" if mode == "circular" else mode)


def losses_with_paths(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, reduction: str,
    zero_infinity: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`ctc_loss` by the options of its class form."""
    only("reduction", reduction, "none")
    return alignments(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)


def loss_of_triplets(
    x: Any, positive: Any, negative: Any, margin: Any, p: int, swap: bool, eps: float, reduction: str
) -> Tensor:
    """`triplet_margin_loss` by the options of its class form."""
    return triplet_margin_loss(x, positive, negative, value_of(margin), p, eps, swap, reduction)


def loss_and_targets(x: Any, target: Any, reduction: str) -> tuple[Tensor, Tensor]:
    """`multilabel_margin_loss`, and which classes are targets."""
    places = numpy.atleast_2d(_known(target))
    chosen = numpy.cumsum(places < 0, 1) == 0
    found = numpy.zeros(places.shape, numpy.int32)
    rows = numpy.broadcast_to(numpy.arange(places.shape[0])[:, None], places.shape)
    found[rows[chosen], places[chosen]] = 1
    return multilabel_margin_loss(x, target, reduction), Tensor(found.reshape(_known(target).shape))


def results_of_python(
    inputs: Any, fn: Callable[..., Any], in_types: Any, in_shapes: Any, out_types: Any, out_shapes: Any, stateful: bool
) -> tuple[Tensor, ...]:
    """The results of a Python function of arrays, as Tensors."""
    del in_types, in_shapes, stateful
    arrays = [_known(one) for one in (inputs if isinstance(inputs, tuple | list) else (inputs,))]
    returned = fn(*arrays)
    found = returned if isinstance(returned, tuple | list) else (returned,)
    if len(found) != integer(len(out_types), "out_types"):
        message = f"PyFunc was told {len(out_types)} results, but the function returned {len(found)}."
        raise ArgumentError(message)
    return tuple(
        [
            Tensor(numpy.asarray(one).astype(real_dtype(kind)).reshape(tuple(shape)))
            for one, kind, shape in zip(found, out_types, out_shapes, strict=True)
        ]
    )


# ----- Other orders -----


def dealt_out(input: Any, per_group_size: int, group_num: int) -> Any:
    """Keys numbered by groups, to which they are dealt out in turn."""
    keys = value_of(input)
    return keys % group_num * per_group_size + keys // group_num


def extents_in_order(input_x: Any, src_format: str, dst_format: str) -> Any:
    """The four extents of images, or pairs for each of them, in the order of another format."""
    only("src_format", src_format, "NHWC", "NCHW")
    only("dst_format", dst_format, "NHWC", "NCHW")
    return np.take(value_of(input_x), [src_format.index(letter) for letter in dst_format], 0)
