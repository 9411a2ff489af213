"""Shapes, joining, splitting and padding of Tensors agree with NumPy, and differentiate."""

from __future__ import annotations

import numpy as np
import pytest

from nbgrad.errors import ArgumentError, DtypeError, ShapeError
from nbgrad.functions.analysis import padding
from nbgrad.graph.ir import topological
from nbgrad.record.as_node import as_node
from nbgrad.record.tensor import Tensor

from .agreement import agree, check_derivative, gradients, record

pytestmark = pytest.mark.unoptimized

rng = np.random.default_rng(1)
X, Y, Z = rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=(2, 3, 4))
F4 = X.astype(np.float32)
I8 = rng.integers(-9, 9, (3, 4)).astype(np.int8)
U8 = rng.integers(0, 9, (3, 4)).astype(np.uint8)
B = X > 0
S, E = np.array(2.5), np.zeros((0, 3))
MODES = ["constant", "edge", "reflect", "symmetric", "wrap"]


def test_reshape():
    for order in ("C", "F", "A"):
        agree(np.reshape, Z, (4, -1), order)
        agree(np.reshape, Z, (2, 6, 2), order=order)
        agree(np.ravel, Z, order)
    for array, shape in ((Z, 24), (Z, (5, -1)), (Z, (-1, -1)), (E, (-1,)), (E, (-1, 0)), (E, (3, 0, 5)), (S, (1, 1))):
        agree(np.reshape, array, shape)
    w = Z.reshape(2, 1, 3, 4, 1)
    for axis in (None, 1, (1, -1), 0):
        agree(np.squeeze, w, axis)
    for axis in (0, (0, -1), 5, (0, 0)):
        agree(np.expand_dims, X, axis)
    for function in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
        for array in (S, Y, X, Z):
            agree(function, array)
    agree(np.atleast_2d, S, Y, X)


def test_permute():
    for array in (S, Y, X, Z):
        agree(np.transpose, array)
        agree(np.matrix_transpose, array)
    for axes in ((1, 2, 0), (1, 2), (1, 1, 0), (-1, 0, 1)):
        agree(np.transpose, Z, axes)
        agree(np.permute_dims, Z, axes)
    agree(np.swapaxes, Z, 0, -1)
    agree(np.swapaxes, Z, 0, 3)
    for source, destination in ((0, -1), ((0, 1), (-1, 0)), ((0, 1), (2,))):
        agree(np.moveaxis, Z, source, destination)
    for axis, start in ((2, 0), (0, 3), (1, -1), (0, 2), (0, 9)):
        agree(np.rollaxis, Z, axis, start)


def test_broadcast():
    for array, shape in ((Y, (3, 4)), (X, (3,)), (Y, (3, 5)), (S, ()), (Y, 4), (E, (2, 0, 3))):
        agree(np.broadcast_to, array, shape)
    agree(np.broadcast_arrays, X, Y, S)
    agree(np.broadcast_arrays, X, np.zeros(3))


def test_order_along_axes():
    for array in (S, Y, X, Z):
        for function in (np.flip, np.flipud, np.fliplr):
            agree(function, array)
        agree(np.roll, array, 1)
        agree(np.roll, array, -7)
    agree(np.flip, Z, (0, -1))
    for shift, axis in (
        ((1, 2), (0, 2)),
        ((1, 2), 1),
        (1, (0, 1)),
        ((1, 2), None),
        ((1, 1), (0, 0)),
    ):
        agree(np.roll, Z, shift, axis)
    agree(np.roll, E, 1)
    for k in range(-1, 6):
        agree(np.rot90, X, k)
        agree(np.rot90, Z, k, (2, 0))
    agree(np.rot90, Z, 1, (1, 1))


def test_facts():
    agree(np.shape, X)
    agree(np.ndim, X)
    agree(np.size, X)
    agree(np.size, X, 1)
    agree(np.copy, X)
    agree(np.astype, X, np.float32)
    assert np.astype(Tensor(X), ">f4").dtype == np.float32
    agree(np.astype, X, complex)
    with pytest.raises(DtypeError, match="object"):
        np.astype(Tensor(X), object)


def test_join():
    for arrays in ([X, X, F4], [X, Y], [X, Z], [B, I8], [X], [I8, U8]):
        for axis in (0, 1, None, 2):
            agree(np.concatenate, arrays, axis)
    agree(np.concatenate, Z)
    agree(np.concatenate, [I8, U8], dtype=np.float32)
    agree(np.concatenate, [X, X], dtype=int)
    agree(np.concatenate, [X, X], dtype=int, casting="unsafe")
    for axis in (0, 1, 2, -1, 3):
        agree(np.stack, [X, I8], axis)
    agree(np.stack, [X, Y])
    agree(np.stack, [S, S])
    for function in (np.vstack, np.hstack, np.dstack, np.column_stack):
        for arrays in ([Y, Y], [X, X], [Z, Z], [S, S], [Y, X]):
            agree(function, arrays)
    agree(np.append, X, Y)
    agree(np.append, X, X, 0)
    agree(np.block, [[X, X], [I8, U8]])
    agree(np.block, [[S, Y]])
    agree(np.block, X)
    agree(np.block, [[X], Y])


def test_split():
    for sections in (1, 2, 3, 4, [1, 3], [2, 1], [-1], [0, 9]):
        agree(np.split, X, sections, 1)
        agree(np.array_split, X, sections, 1)
        agree(np.array_split, Y, sections)
        agree(np.hsplit, Y, sections)
        agree(np.hsplit, X, sections)
        agree(np.vsplit, X, sections)
        agree(np.dsplit, Z, sections)
    agree(np.dsplit, X, 1)
    if hasattr(np, "unstack"):
        agree(np.unstack, Z, axis=1)


def test_repeat():
    for repetitions in (2, 0, 1, (2, 3), (2, 1, 3), (1,), (2, 2, 2, 2), -1):
        for array in (S, Y, X, Z):
            agree(np.tile, array, repetitions)
    for array in (Y, X, Z):
        for repeats, axis in ((3, None), (2, 0), (3, -1), ([1, 2, 0, 4], -1), (0, 0), ([1, 2], 0), (-1, 0)):
            agree(np.repeat, array, repeats, axis)
    agree(np.repeat, S, 4)
    for shape in ((5, 4), (2,), 7, (0, 3)):
        agree(np.resize, X, shape)
    agree(np.resize, E, (2,))


@pytest.mark.parametrize("mode", MODES)
def test_pad(mode):
    for widths in (1, (1, 2), ((1, 2), (3, 0)), ((0, 7), (9, 1)), ((2,), (3,)), 0, -1, ((1, 2), (1, 2), (1, 2))):
        agree(np.pad, X, widths, mode)
    agree(np.pad, np.array([[5.0]]), 3, mode)
    agree(np.pad, Y, 11, mode)
    agree(np.pad, np.array([1.0, 2.0]), 7, mode)
    agree(np.pad, I8, 2, mode)
    agree(np.pad, Z, ((0, 0), (1, 1), (2, 2)), mode)


def test_pad_constants():
    agree(np.pad, X, ((1, 2), (3, 0)), constant_values=3.5)
    agree(np.pad, X, ((1, 2), (3, 0)), constant_values=((1, 2), (3, 4)))
    agree(np.pad, I8, 2, constant_values=(3, 4))
    with pytest.raises(ArgumentError, match="knows the modes"):
        np.pad(Tensor(X), 1, "ramp")
    with pytest.raises(ArgumentError, match="reflect_type"):
        np.pad(Tensor(X), 1, "reflect", reflect_type="both")
    with pytest.raises(ArgumentError, match="no option"):
        np.pad(Tensor(X), 1, "wrap", stat_length=2)
    (g,) = gradients(lambda c: padding.pad(X, 1, constant_values=c), np.array(2.0))
    assert g == 30 - 12


def test_pad_ramps():
    for widths in (2, ((1, 2), (3, 0)), 0):
        for array in (X, X.astype(np.float32), np.arange(6).reshape(2, 3), np.array([[5.0]])):
            agree(np.pad, array, widths, "linear_ramp")
            agree(np.pad, array, widths, "linear_ramp", end_values=((5, -2), (3, 4)))
    check_derivative(lambda x: np.pad(x, 2, "linear_ramp") ** 2, X)
    (g,) = gradients(lambda c: padding.pad(X, 1, "linear_ramp", end_values=c), np.array(2.0))
    assert g == 30 - 12


@pytest.mark.parametrize("mode", ["maximum", "minimum", "mean", "median"])
def test_pad_statistics(mode):
    for array in (X, X.astype(np.float32), I8):
        for length in (None, 1, 2, 99, ((1, 2), (3, 1))):
            agree(np.pad, array, ((1, 2), (3, 0)), mode, stat_length=length)
    agree(np.pad, X, 1, mode, stat_length=-1)
    agree(np.pad, np.zeros((0, 2)), 1, mode)
    check_derivative(lambda x: np.pad(x, 2, mode, stat_length=2) ** 2, X)


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
def test_pad_odd_reflections(mode):
    for array in (X, Y, np.array([5.0]), np.array([1, 4, 9])):
        for width in (1, 2, 3, 7, 12):
            agree(np.pad, array, width, mode, reflect_type="odd")
    check_derivative(lambda x: np.pad(x, 5, mode, reflect_type="odd") ** 2, X)


def test_pad_by_a_function():
    def border(line, widths, axis, options):
        if widths[0]:
            line[: widths[0]] = line[widths[0]] * options.get("scale", 2.0) + axis
        if widths[1]:
            line[-widths[1] :] = -line[-widths[1] - 1]

    agree(np.pad, X, ((1, 2), (0, 3)), border)
    agree(np.pad, X, 2, border, scale=3.0)
    np.testing.assert_array_equal(np.pad(Tensor(X), 1, "empty")[1:-1, 1:-1], Tensor(X))
    check_derivative(lambda x: np.pad(x, 1, border) ** 2, X)


def test_insert_and_delete():
    mask = np.array([True, False, True])
    for position in (0, 2, -1, [0, 2], slice(None, None, 2), [-1, 0], mask, [], 5, [1, 1]):
        agree(np.delete, X, position, 0)
    agree(np.delete, X, 4)
    agree(np.delete, X, [1, 7, 8])
    for position, values in (
        (0, 1.0),
        (1, [1.0, 2, 3, 4]),
        ([0, 2], 9.0),
        ([0, 0, 3], 7.0),
        (slice(0, 2), 5.0),
        (-1, 3.0),
        ([1], 5.0),
        (3, 1.0),
        ([2, 1], [[1.0], [2.0]]),
        (9, 1.0),
    ):
        agree(np.insert, X, position, values, axis=0)
    agree(np.insert, X, [1], [[1.0], [2.0], [3.0]], axis=1)
    agree(np.insert, X, 1, [[1.0], [2.0], [3.0]], axis=1)
    agree(np.insert, X, 1, [1.0, 2.0, 3.0], axis=1)
    agree(np.insert, X, 5, [1.0, 2.0])
    agree(np.insert, I8, [1, 4], [100, 7])
    agree(np.insert, Y, [2, 2], [1, 2])
    agree(np.insert, Z, 1, np.ones((2, 4)), axis=1)


DERIVATIVES = {
    "reshape": lambda x: np.reshape(x * x, (2, -1), order="F"),
    "transpose": lambda x: np.transpose(x**3) * np.arange(3.0),
    "moveaxis": lambda x: np.moveaxis(np.broadcast_to(x * x, (2, 3, 4)), 0, -1) * np.arange(2.0),
    "broadcast_arrays": lambda x: np.broadcast_arrays(x, x[0])[1] * x,
    "flip": lambda x: np.flip(x) * x,
    "roll": lambda x: np.roll(x, (1, -2), (0, 1)) * x,
    "rot90": lambda x: np.rot90(x * x, 3),
    "concatenate": lambda x: np.concatenate([x * x, x[:1] ** 3], axis=0),
    "stack": lambda x: np.stack([x * x, x, x**3], axis=1),
    "block": lambda x: np.block([[x, x * x], [x[:1] * 2, x[1:2] ** 2]]),
    "split": lambda x: np.array_split(x * x, 3, axis=1),
    "tile": lambda x: np.tile(x * x, (2, 3)) * np.arange(12.0),
    "repeat": lambda x: np.repeat(x * x, 3, axis=1) * np.arange(12.0),
    "repeat each": lambda x: np.repeat(x * x, [3, 0, 2], axis=0),
    "resize": lambda x: np.resize(x * x, (5, 7)),
    "delete": lambda x: np.delete(x * x, [0, 2], axis=1),
    "insert": lambda x: np.insert(x * x, [1, 3], x[:, :2] ** 3, axis=1),
    **{f"pad {mode}": lambda x, mode=mode: np.pad(x * x, ((1, 5), (6, 2)), mode) for mode in MODES},
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    check_derivative(DERIVATIVES[name], X)


def test_lists_that_hold_tensors():
    t = Tensor(F4)
    assert np.stack([t[0, 0], 1.0, 2]).dtype == np.float32
    assert as_node([[t[0, 0], 1], [2, t[1, 1]]]).dtype == np.float32
    assert as_node([t, np.zeros((3, 4))]).dtype == np.float64
    with pytest.raises(ShapeError, match="must have one shape"):
        as_node([t, t[0]])


def test_patterns_are_slices_not_gathers():
    """Borders, shifts and even repeats move slices; only positions without a pattern are looked up."""
    for function in (
        lambda x: np.pad(x, 3, "reflect"),
        lambda x: np.pad(x, 9, "wrap"),
        lambda x: np.roll(x, 2, axis=1),
        lambda x: np.repeat(x, 3, axis=0),
        lambda x: np.delete(x, 1, axis=1),
        lambda x: np.insert(x, 2, 0.0, axis=1),
        lambda x: np.tile(x, (2, 2)),
    ):
        _, outputs = record(function, (X,))
        assert {node.primitive.kind for node in topological(outputs)} <= {"source", "movement", "elementwise"}
        assert "gather" not in {node.name for node in topological(outputs)}


def test_reshape_back_and_forth_is_the_same_node():
    inputs, outputs = record(lambda x: np.transpose(np.transpose(x), (0, 1)), (X,))
    assert len(topological(outputs)) == 2
    assert record(lambda x: np.reshape(x, (3, 4)), (X,))[1][0].name == "input"
    assert inputs[0].shape == (3, 4)


def test_errors():
    t = Tensor(X)
    with pytest.raises(ShapeError, match=r"cannot be reshaped to \(5, -1\).*test_shaping.py"):
        t.reshape(5, -1)
    with pytest.raises(ShapeError, match="cannot be broadcast"):
        np.broadcast_to(t, (3, 5))
    with pytest.raises(ShapeError, match="cannot be joined"):
        np.concatenate([t, np.zeros((2, 3))])
    with pytest.raises(ShapeError, match="equal parts"):
        np.split(t, 2)
    with pytest.raises(ArgumentError, match="positive"):
        np.split(t, 0)
    with pytest.raises(ShapeError, match="different lengths"):
        np.roll(t, (1, 2), (0, 1, 0))
    with pytest.raises(ArgumentError, match="order='K'"):
        np.reshape(t, (4, 3), order="K")
    with pytest.raises(DtypeError, match="integer"):
        np.reshape(t, (4.0, 3))
