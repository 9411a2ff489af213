"""Rows for functions that move, join, cut, index and fill arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from .operation import Operation, apart, operation, real

PLACES = np.array([2, 0, 2, 1])
MASK = np.array([[True, False, True, False], [False, True, True, True], [True, True, False, False]])


def movement(name: str, function: Any, *samples: Any, peers: str = "", **options: Any) -> Operation:
    """A function that only moves elements; its result is squared, so that it has a second derivative."""

    def squared(*arrays: Any) -> Any:
        value = function(*arrays)
        return [v * v for v in value] if isinstance(value, list | tuple) else value * value

    options.setdefault("complexes", True)
    return operation(name, squared, *(samples or (real(2, 3, 4),)), peers=peers, **options)


def pair(function: Any) -> Any:
    """A function of a list, as one of two arguments."""
    return lambda a, b: function([a, b])


SHAPING = [
    movement(
        "reshape", lambda x: x.reshape(4, -1), peers="jax:testReshapeGrad torch:reshape torch:view torch:view_copy"
    ),
    movement(
        "reshape in other orders",
        lambda x: (np.reshape(x, (4, 6), order="F"), np.ravel(x, order="F")),
        peers="jax:testReshapeGrad torch:reshape",
    ),
    movement(
        "reshape like another",
        lambda x, y: np.reshape(x, y.shape) * y,
        (real(2, 6), real(3, 4)),
        peers="torch:reshape_as torch:view_as",
    ),
    movement(
        "unflatten", lambda x: x.reshape(*x.shape[:1], 2, 2, *x.shape[2:]), real(3, 4, 2), peers="torch:unflatten"
    ),
    movement("ravel", np.ravel, real(2, 3, 4), real(), real(0, 2), peers="jax:ravel torch:ravel torch:flatten"),
    movement(
        "squeeze",
        lambda x: (np.squeeze(x), np.squeeze(x, axis=2)),
        real(2, 1, 1, 3),
        peers="jax:testSqueeze torch:squeeze torch:squeeze_copy",
    ),
    movement(
        "expand_dims",
        lambda x: (np.expand_dims(x, (0, -1)), x[:, None]),
        real(2, 3),
        peers="torch:unsqueeze torch:unsqueeze_copy",
    ),
    *[
        movement(name, getattr(np, name), real(3, 4), real(3), real(), peers=f"jax:{name} torch:{name}")
        for name in ("atleast_1d", "atleast_2d", "atleast_3d")
    ],
    movement(
        "transpose",
        lambda x: (np.transpose(x), np.transpose(x, (2, 0, 1)), x.T),
        peers=(
            "jax:transpose jax:testTransposeGrad torch:transpose torch:transpose_copy torch:T torch:permute "
            "torch:permute_copy"
        ),
    ),
    movement(
        "transpose of matrices", lambda x: (np.matrix_transpose(x), x.mT, x[0].T), peers="torch:mT torch:t torch:t_copy"
    ),
    movement("conjugate transpose", lambda x: (np.conj(x[0].T), np.conj(x.mT)), peers="torch:H torch:mH"),
    movement("swapaxes", lambda x: np.swapaxes(x, 0, -1), peers="torch:transpose torch:swapaxes"),
    movement("moveaxis", lambda x: (np.moveaxis(x, 0, -1), np.rollaxis(x, 2)), peers="torch:movedim"),
    movement(
        "broadcast_to",
        lambda x: np.broadcast_to(x, (2, 3, 4)),
        real(3, 1),
        real(),
        peers=(
            "jax:testBroadcastGrad jax:testBroadcastInDimGrad torch:broadcast_to torch:expand torch:expand_copy "
            "torch:expand_as"
        ),
    ),
    movement(
        "broadcast_arrays", np.broadcast_arrays, (real(3, 1), real(1, 4), real()), peers="torch:broadcast_tensors"
    ),
    movement("sum to a shape", lambda x: np.sum(x, axis=(0, 2), keepdims=True), peers="torch:sum_to_size"),
    movement("flip", lambda x: (np.flip(x), np.flip(x, (0, 2))), peers="jax:testReverseGrad torch:flip"),
    movement("fliplr", np.fliplr, peers="torch:fliplr"),
    movement("flipud", np.flipud, peers="torch:flipud"),
    movement("roll", lambda x: (np.roll(x, 3), np.roll(x, (1, -2), (0, 2))), peers="torch:roll"),
    movement("rot90", lambda x: (np.rot90(x), np.rot90(x, 3, (1, 2))), peers="torch:rot90"),
    movement(
        "tile",
        lambda x: (np.tile(x, 2), np.tile(x, (2, 1, 3))),
        real(2, 3),
        real(3),
        real(1, 1, 4),
        peers="jax:testTileAutodiff torch:tile torch:repeat",
    ),
    movement("repeat", lambda x: (np.repeat(x, 2), np.repeat(x, [1, 0, 2], axis=1)), peers="torch:repeat_interleave"),
    movement("resize", lambda x: np.resize(x, (3, 5)), real(2, 3)),
    movement(
        "windows",
        lambda x: np.stack([x[..., k : k + 3] for k in range(0, 4, 2)], -2),
        real(2, 6),
        peers="torch:unfold torch:unfold_copy",
    ),
    movement(
        "sliding_window_view",
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, axis=1),
        real(2, 6),
        peers="torch:as_strided torch:as_strided_copy torch:unfold",
    ),
]

JOINING = [
    movement(
        "concatenate",
        lambda a, b, c: (np.concatenate([a, b, c], axis=1), np.concatenate([a, b], axis=None)),
        (real(3, 3), real(3, 1), real(3, 4)),
        (real(3, 0), real(3, 1), real(3, 2)),
        peers="jax:testConcatenateGrad torch:cat",
    ),
    movement(
        "stack",
        lambda a, b: (np.stack([a, b]), np.stack([a, b], axis=-1)),
        (real(3, 4), real(3, 4)),
        (real(), real()),
        peers="torch:stack",
    ),
    *[
        movement(
            name,
            pair(getattr(np, name)),
            (real(3, 4), real(3, 4)),
            (real(3), real(3)),
            peers=f"torch:{name}",
        )
        for name in ("hstack", "vstack", "dstack", "column_stack")
    ],
    movement("append", lambda a, b: (np.append(a, b), np.append(a, b, axis=0)), (real(2, 3), real(1, 3))),
    movement("block", lambda a, b: np.block([[a, b], [b.T, np.eye(1)]]), (real(3, 3), real(3, 1))),
    movement(
        "block diagonal",
        lambda a, b: np.block([[a, np.zeros((2, 1))], [np.zeros((2, 3)), b]]),
        (real(2, 3), real(2, 1)),
        peers="torch:block_diag",
    ),
    movement(
        "split",
        lambda x: (*np.split(x, 2, axis=2), *np.split(x, [1, 2], axis=1)),
        peers=(
            "jax:testSplitGrad torch:split torch:split_with_sizes torch:split_with_sizes_copy torch:chunk "
            "torch:unsafe_chunk torch:unsafe_split"
        ),
    ),
    movement(
        "array_split",
        lambda x: (*np.array_split(x, 3, axis=2), *np.array_split(x, [1, 3], axis=2)),
        peers="torch:tensor_split torch:chunk",
    ),
    movement("hsplit", lambda x: np.hsplit(x, [1, 2]), peers="torch:hsplit"),
    movement("vsplit", lambda x: np.vsplit(x, 2), peers="torch:vsplit"),
    movement("dsplit", lambda x: np.dsplit(x, 2), peers="torch:dsplit"),
    movement("unstack", lambda x: np.unstack(x, axis=1), peers="torch:unbind torch:unbind_copy", needs="unstack"),
    movement("iteration", lambda x: [row * k for k, row in enumerate(x)], real(3, 4), peers="torch:unbind"),
    movement(
        "meshgrid",
        lambda a, b: (*np.meshgrid(a, b), *np.meshgrid(a, b, indexing="ij", sparse=True)),
        (real(3), real(4)),
        peers="torch:meshgrid",
    ),
    movement(
        "all pairs",
        lambda a, b: np.stack([g.ravel() for g in np.meshgrid(a, b, indexing="ij")], axis=1),
        (real(3), real(2)),
        peers="torch:cartesian_prod",
    ),
    movement(
        "combinations", lambda x: np.stack([x[[0, 0, 1]], x[[1, 2, 2]]], axis=1), real(3), peers="torch:combinations"
    ),
    movement(
        "pad",
        lambda x: (np.pad(x, ((1, 2), (0, 1))), np.pad(x, 1, constant_values=0.5)),
        real(3, 4),
        peers="jax:testPadGrad torch:constant_pad_nd torch:nn.functional.pad",
    ),
    *[
        movement(
            f"pad by {mode}",
            lambda x, m=mode: np.pad(x, ((2, 1), (1, 2)), mode=m),
            real(4, 5),
            peers="torch:nn.functional.pad",
        )
        for mode in ("edge", "reflect", "symmetric", "wrap", "linear_ramp", "mean")
    ],
    *[
        movement(f"pad by {mode}", lambda x, m=mode: np.pad(x, ((2, 1), (1, 2)), mode=m), apart(4, 5), complexes=False)
        for mode in ("maximum", "minimum", "median")
    ],
    operation(
        "pad with a variable",
        lambda x, v: np.where(np.pad(np.ones((2, 3)), 1) == 1, np.pad(x, 1), v),
        (real(2, 3), real()),
        peers="jax:testPadGrad torch:constant_pad_nd",
    ),
    movement("insert", lambda x, v: np.insert(x, [1, 3], v, axis=1), (real(2, 4), real(2))),
    movement("delete", lambda x: np.delete(x, [0, 2], axis=1), real(2, 4)),
]

DIAGONALS = [
    movement("diag", lambda x: (np.diag(x), np.diag(x[0], 1)), real(3, 4), peers="torch:diag"),
    movement("diagflat", lambda x: np.diagflat(x, -1), real(2, 2), peers="torch:diagflat"),
    movement(
        "diagonal",
        lambda x: (np.diagonal(x, 1, 0, 2), np.diagonal(x)),
        real(3, 3, 4),
        peers="torch:diagonal torch:diagonal_copy torch:linalg.diagonal",
    ),
    movement("diagonals embedded", lambda x: x[..., None] * np.eye(4), real(3, 4), peers="torch:diag_embed"),
    movement("trace", lambda x: (np.trace(x), np.trace(x, 1, 1, 2)), real(3, 3, 4), peers="torch:trace"),
    movement("tril", lambda x: (np.tril(x), np.tril(x, -1)), peers="torch:tril"),
    movement("triu", lambda x: (np.triu(x), np.triu(x, 1)), peers="torch:triu"),
    movement(
        "vander", lambda x: (np.vander(x), np.vander(x, 3, increasing=True)), real(4), peers="torch:linalg.vander"
    ),
    movement("triangles by indices", lambda x: x[np.triu_indices(3)], real(3, 3), peers="torch:tril"),
]


def assigned(x: Any, y: Any) -> Any:
    """Writes a scaled array into part of another."""
    z = x * x
    z[1:3, 0] = y * y
    return z


def with_diagonal(x: Any, d: Any) -> Any:
    z = x * x
    z[np.arange(3), np.arange(3)] = d * d
    return z


def added_at(x: Any, y: Any) -> Any:
    z = x * x
    np.add.at(z, PLACES, y * y)
    return z


def put_at(x: Any, y: Any) -> Any:
    z = x * x
    z[np.array([3, 0])] = y * y
    return z


def at_extremes(name: str) -> Any:
    """`ufunc.at` for maximum, minimum or multiply."""

    def function(x: Any, y: Any) -> Any:
        z = x * 1.0
        getattr(np, name).at(z, np.array([2, 0, 2]), y)
        return z

    return function


def in_place(x: Any, y: Any) -> Any:
    """The augmented assignments."""
    z = x * 1.0
    z += y
    z[0] *= 3.0
    z -= 0.5
    z[:, 1] /= y[1]
    z **= 2
    return z


def filled(x: Any) -> Any:
    z = x * x
    z.fill(0.5)
    return z + x


INDEXING = [
    movement(
        "slices",
        lambda x: (x[1:, ::2], x[..., -1], x[:, ::-1, 1:3], x[1, 2, 3]),
        peers=(
            "jax:testSliceGrad jax:testDynamicSliceGrad torch:__getitem__ torch:slice torch:narrow torch:narrow_copy "
            "torch:select jax:testStaticIndexingGrads"
        ),
    ),
    movement(
        "an index of integers",
        lambda x: (x[:, PLACES % 3], x[[0, 1], :, PLACES[:2]], x[np.array([[0], [1]]), PLACES[:3]]),
        peers=(
            "jax:testAdvancedIntegerIndexingGrads jax:testAdvancedIndexingGrads "
            "jax:testDynamicIndexingWithIntegersGrads torch:__getitem__ torch:index_select jax:testGatherGrad"
        ),
    ),
    movement(
        "an index of booleans",
        lambda x: (x[MASK], x[MASK[:, 0]]),
        real(3, 4),
        peers="torch:masked_select torch:__getitem__ torch:_unsafe_masked_index jax:testAdvancedIndexingGrads",
    ),
    movement(
        "new axes", lambda x: (x[None, ..., None], x[:, None, 1]), real(3, 4), peers="torch:unsqueeze torch:__getitem__"
    ),
    movement(
        "take",
        lambda x: (np.take(x, PLACES % 3, axis=1), np.take(x, [[5, 0], [1, 23]])),
        peers="jax:testIndexTakeGrad torch:take torch:index_select jax:testGatherGrad",
    ),
    movement(
        "take by other modes",
        lambda x: (np.take(x, [-5, 2, 11], axis=1, mode="clip"), np.take(x, [-5, 2, 11], axis=1, mode="wrap")),
        peers="jax:testGatherGrad jax:testStaticIndexingGrads",
    ),
    movement(
        "take_along_axis",
        lambda x: np.take_along_axis(x, np.array([[2, 0, 1], [1, 1, 3]]), axis=1),
        real(2, 4),
        peers="torch:take_along_dim torch:gather jax:testTakeAlongAxisIssue",
    ),
    movement("compress", lambda x: np.compress([True, False, True], x, axis=1), peers="torch:masked_select"),
    movement("extract", lambda x: np.extract(MASK, x), real(3, 4), peers="torch:masked_select"),
    movement("choose", lambda a, b: np.choose(np.array([0, 1, 1, 0]), [a, b]), (real(4), real(4))),
    movement("select", lambda a, b: np.select([MASK, ~MASK], [a, b], 0.0), (real(3, 4), real(3, 4))),
    operation("select by values", lambda x: np.select([x < -0.5, x < 0.75], [x * x, np.sin(x)], 1.0), real(3, 4)),
    operation("piecewise", lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda v: v * v, lambda v: np.sin(v)]), real(6)),
    operation(
        "assignment to a slice",
        assigned,
        (real(4, 3), real(2)),
        peers=(
            "jax:testDynamicUpdateSliceGrad torch:slice_scatter torch:select_scatter torch:as_strided_scatter "
            "jax:testScatterGrad"
        ),
        complexes=True,
    ),
    operation(
        "assignment to a diagonal", with_diagonal, (real(3, 3), real(3)), peers="torch:diagonal_scatter", complexes=True
    ),
    operation(
        "assignment to positions",
        put_at,
        (real(5), real(2)),
        peers=(
            "jax:testScatterGrad torch:scatter torch:index_put torch:index_copy torch:put jax:testStaticIndexingGrads "
            "jax:f"
        ),
        complexes=True,
    ),
    operation(
        "add.at",
        added_at,
        (real(5), real(4)),
        (real(3, 2), real(4, 2)),
        peers=(
            "jax:testScatterAddGrad torch:scatter_add torch:index_add torch:_unsafe_masked_index_put_accumulate "
            "torch:put"
        ),
        complexes=True,
    ),
    operation(
        "maximum.at",
        at_extremes("maximum"),
        (apart(5), apart(3, shift=0.17)),
        peers="jax:testScatterMax torch:scatter_reduce torch:index_reduce",
    ),
    operation(
        "minimum.at",
        at_extremes("minimum"),
        (apart(5), apart(3, shift=0.17)),
        peers="jax:testScatterMin torch:scatter_reduce torch:index_reduce",
    ),
    operation(
        "multiply.at", at_extremes("multiply"), (real(5), real(3)), peers="torch:scatter_reduce torch:index_reduce"
    ),
    operation("augmented assignments", in_place, (real(3, 4), real(4, low=0.5)), complexes=True),
    operation("fill", filled, real(3, 4), peers="torch:fill torch:zero_"),
    operation(
        "masked fill",
        lambda x, v: np.where(MASK, v, x * x),
        (real(3, 4), real()),
        peers="torch:masked_fill torch:index_fill",
        complexes=True,
    ),
    movement(
        "masked scatter",
        lambda x, v: np.where(MASK, v[np.cumsum(MASK).reshape(3, 4) - 1], x),
        (real(3, 4), real(7)),
        peers="torch:masked_scatter",
    ),
    operation(
        "one-hot rows in a product",
        lambda w: np.eye(3)[PLACES] @ w,
        real(3, 2),
        peers="torch:nn.functional.one_hot torch:nn.functional.embedding",
    ),
]

OPERATIONS = [*SHAPING, *JOINING, *DIAGONALS, *INDEXING]
