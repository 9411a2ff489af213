"""Code that changes arrays in place: with Tensors it does what it does with ndarrays, or raises, and never else.

Each program is run with NumPy's arrays and with Tensors: eagerly, and recorded, with NumPy's own functions and with
`nbgrad.numpy`'s. `x` is a matrix; the result is `r`, or `x` where the program names no `r`.
"""

from __future__ import annotations

import copy
import sys
import warnings
from typing import Any

import numpy
import pytest

import nbgrad as nb
from nbgrad.errors import NbgradError, ShapeError, TracedValueError

pytestmark = pytest.mark.unoptimized

X = numpy.array([[0.7, -0.3, 0.2, 1.1], [-0.6, 0.9, 0.4, -0.8], [0.5, 1.3, -1.2, 0.35]])

PROGRAMS = """
x[0] = 3.0 * x[1, 1]
x[-1, -2] = x[0, 0]
x[0, 0] = 1; x[(0, 1)] = x[2, 2]; x[0][2] = 3
x[:] = x[0, 0]
x[...] = x[0]
x[:, 0] = x[:, 1]
x[1:] = x[:-1].copy()
x[1:] = x[:-1]
x[:] = x[::-1]
x[0], x[1] = x[1].copy(), x[0].copy()
x[0], x[1] = x[1], x[0]
x[0, 0], x[1, 1] = x[1, 1], x[0, 0]
y = x[0]; y[0], y[1] = y[1], y[0]
y = x[:, 1]; y[0], y[2] = y[2], y[0]; y[1] = y[0]
a = x[0, 0]; x[0, 0] = 9.0; r = x * a
a = x[0][1]; x[0] = 9.0; r = x * a
a, b = x[0, :2]; x[0] = 0.0; r = x + a * b
v = list(x[0]); x[0] = 0; r = x + v[1] * v[2]
y = x[np.int64(1)]; y[0] = x[2, 2]
y = x[np.int32(1), 1:]; y *= 2.0; x[1, 2] = 3.0; r = x * y[1]
y = x[np.array(1)]; y[0] = 5.0; r = x + y
for i in np.arange(3): y = x[i]; y -= y[0] * i
for i in np.argsort(x[:, 0]): y = x[i]; y[1] += x[0, 2]
y = x[np.argmax(x[:, 0])]; y[0] = 7 * x[1, 1]; z = y[1:]; z *= 2; r = x * x[0]
y = x[np.argmax(x[:, 0])]; x[0] = 3.0; x[2] = 2 * x[0]; r = y * x
i = np.argmax(x[0]); y = x[:, i]; y[:] = y[::-1] * 2.0
y = x.T[np.argmin(x[0])]; y -= y.mean(); x[np.argmin(x[:, 1])] += x[1]
i = np.argmax(x[0]) - 3; y = x[i]; z = x[i]; z[0] = 9.0; y[1:] *= z[0]
y = x.conj(); y[0] = x[2] * 2.0
y = np.conj(x); y[0] = 9.0; r = x + y
y = np.trim_zeros(x[0]); y[1] = x[2, 2] ** 2
y, z = np.meshgrid(x[0], x[:, 1], copy=False, sparse=True); y[0, 1] = x[2, 2]; z *= 2.0
for i in range(3): y = x[i]; k = np.argmin(y); y[0], y[k] = y[k], y[0]
x[1] *= x[0]
x[0, 1] -= x[2, 2] * 2
x[:, ::2] **= 2
x[1:] += x[:-1]
s = slice(0, 2); x[s] -= x[s].mean()
y = x; y += x[0]; y *= 2; y -= 1; y /= x[1, 1]; y **= 2
y = x; y = y + 1; r = x
y = x[0]; y *= x[0, 0]
y = x[0]; y *= x
y = x[0]; y -= y
y = x[:, :3]; y @= np.ones((3, 3))
x[x > 0] = 0.5
x[x > 0] += x[0, 0]; x[x < 0] *= 3
m = x > 0; x[m] = x[m] ** 2
x[x > 0] = np.arange(8.0)
x[x[:, 0] > 0] = x[1]
x[x[:, 0] > 0, 1] = 7 * x[1, 1]
x[[0, 2]] = x[[2, 0]]
x[[0, 0]] = x[1:3]
x[[0, 0]] += 1
x[[0, 1], [1, 2]] *= x[0, 0]
x[[0, 1], 1:3] = x[2, :2]
x[np.array([[0, 1], [1, 0]]), 3] = x[0, 0]
x[np.ix_([0, 1], [1, 2])] += x[0, 0]
x[np.where(x > 0)] = x[0, 1]
i, j = np.nonzero(x > 0); x[i, j] = x[i, j] * 2
x[np.tril_indices(3)] = 0
x[None, 0] = x[1]
for i in (2, 1): x[[i, 0]] = x[[0, i]]
x.sort()
x.sort(axis=0)
x[1].sort()
x[:, 2].sort()
x.T.sort()
y = x[1].copy(); y.sort(); r = y * x[0]
x.partition(1, axis=0); r = x[1]
x.fill(2.0)
x[1].fill(x[0, 0])
y = x * 1; y.resize((2, 3)); r = y
y = x * 1; y.resize((4, 4)); r = y
y = x * 1; y.resize(4, 3); r = y
y = x[0]; y.resize((2, 3)); r = y
y = x * 1; z = y[0]; y.resize((2, 3)); r = z
x.flat[3] = 7 * x[0, 0]
x.flat[-1] = 7 * x[0, 0]
x.flat[1:9:2] = x[0, 0]
x.flat[::5] += 1
x.flat[:5] = x[0, :2]
x.flat[[1, 7]] = 2 * x[0, :2]
x.flat = x[0]
x.flat = 3.0
x.T.flat[1] = 8.0
x.flat[20] = 1.0
y = x.flat[2:5]; y[0] = 9.0; r = x
r = np.array([v * v for v in x.flat]) if np is nbnp else x.flat[:] ** 2
r = x.flat[5] * x.flat[[0, 1]] * len(x.flat)
x.T[0] = 5.0 * x[0, 1]
x.T[1, 2] = x[0, 0]
y = x.T; y += 1; y[0] *= 2
y = x.T; x[0] = 1.0; r = y * 1
x.T.T[0] = 1
y = x.T[1:3]; y *= 2; x[0] = 0; r = y * 1
x.mT[0] = 3
x.transpose()[3] = x[1, 1]
np.transpose(x)[2] = 4 * x[0, 0]
np.swapaxes(x, 0, 1)[1] = 9 * x[0, 0]
x.swapaxes(0, 1)[1] = 9 * x[0, 0]
np.moveaxis(x, 0, 1)[0] = 2
np.rollaxis(x, 1)[0] = 2
np.permute_dims(x, (1, 0))[0] = 2
np.matrix_transpose(x)[0] = 2
x.ravel()[4] = x[0, 0] * 3
y = x.ravel(); x[1] = 4.0; r = y * 1
y = np.ravel(x); y[::2] = 1
y = x.T.ravel(); y[:] = 1
y = x.ravel("F"); y[:] = 1
y = x[0].ravel(); y[0] = 9
y = x[:, 0].ravel(); y[0] = 9
y = x[:, 0].reshape(-1); y[0] = 9
y = x[1:].ravel(); y[0] = 9
y = x.T.ravel("K"); y[0] = 9
y = x.flatten(); y[0] = 9
y = x.reshape(4, 3); y[1] = x[0, 0]
y = x.reshape(-1); y += 1
y = np.reshape(x, (2, 6)); y[1, 2] = 3
y = np.reshape(x, (2, 6), copy=True); y[1, 2] = 3
y = np.reshape(x.T, 12, copy=False); y[1] = 3
y = x.T.reshape(-1); y[0] = 99
y = x[:, :2].reshape(-1); y[0] = 99
y = x[1:].reshape(-1); y[0] = 99 * x[0, 0]
y = x.reshape(-1, order="F"); y[0] = 99
y = x[:, None, :].reshape(3, 4); y[0] = 99
y = x.reshape(2, 2, 3); z = y[1]; z[0] = 1; y[0, 0, 0] = 2
y = x.reshape(-1); x[0, 1] = x[0, 0] * 4; r = y * 1
a = x.reshape(-1); b = x.reshape(4, 3); a[0] = 5; b[1] = 6
y = x.view(); y[0] = 1.0
y = x[None].squeeze(); y[0] = 2
y = np.expand_dims(x, 0); y[0, 1] = 2
y = np.atleast_3d(x); y[0] = 2
y = np.atleast_2d(x[0]); y[0, 1] = 2
a, b = np.atleast_2d(x[0], x[1]); a[0, 1] = 2; b += 1
y = np.flip(x); y[0] = 2
y = np.flipud(x); y[0] = x[1]
y = np.fliplr(x); y[0] = 2
y = np.rot90(x); y[0] = 2
y = np.roll(x, 1); y[0] = 2
a, b, c = np.split(x, 3); b[:] = 2 * a
a, b = np.hsplit(x, 2); b[:] = 2 * a
a, b = np.array_split(x, 2); a += 1
a, b, c = np.unstack(x); b *= 2
a, b, c = x; b *= 2
y = np.broadcast_to(x[0], (2, 4)); y[0, 0] = 2
y = np.broadcast_to(x[0], (2, 4)); x[0, 0] = 2; r = y * 1
y = np.diagonal(x); x[1, 1] = 2; r = y * 1
y = np.diag(x); x[1, 1] = 2; r = y * 1
y = x.real; y[0] = 3
x.real = 2 * x
x.real[0] = 2
y = np.real(x); y[0] = 3
y = x.astype(float, copy=False); y[0] = 3
y = x.astype(float); y[0] = 3
y = np.asarray(x) if np is nbnp else x; y[0] = 3
y = np.copy(x); y[0] = 1; r = x + y
y = x.copy(); y[0] = 1; r = x + y
y = copy.copy(x); y[0] = 1; r = x + y
y = copy.deepcopy(x); y[0] = 1; r = x + y
y = +x; y[0] = 1; r = x + y
for row in x: row *= 2; row[0] = 1
for i, row in enumerate(x): row[i] += x[0, 0]
rows = list(x); rows[0] += 1; rows[1] = rows[0]
v = x[1]; w = v[1:3]; x[1, 2] = 5 * x[0, 0]; r = np.concatenate([v, w])
v = x[1]; w = v[1:3]; w[0] = 5 * x[0, 0]; r = x + v
v = x[::2, 1::2]; v *= 3
v = x[::-1]; v[0] = 1
v = x[0, :, None]; v[1, 0] = 7
v = x[..., 0]; v[:] = x[0] @ np.array([1.0, 2.0, 3.0, 4.0])
v = x[[0, 1]]; v[:] = 0
v = x[x > -9]; v[:] = 0
v = x[[0, 1], 1:]; v[:] = 0
x[0][1:][0] = 9; x[1][[0]] = 3
x[[0]][0] = 9
a = x[0, 0]; a += 1
a = x[0, 0, ...]; a += 1; a[...] = a * 5
a = x[0, :1].reshape(()); a *= 3
a = np.sum(x); b = a; b += 1; r = a * x
a = np.zeros_like(x[0, 0, ...]); b = a; b += 3; r = x * a
np.add.at(x, ([0, 0, 1], [1, 1, 2]), x[0, :3])
np.subtract.at(x, [0, 0], x[1])
np.add.at(x[1], [0, 0, 3], 1.0)
np.add.at(x.T, [0, 0, 3], x[2, 2])
y = np.zeros_like(x, dtype=int); y -= 3; np.add.at(y, [0, 0, 1], 1.5); r = x * y
y = np.ones_like(x, dtype=int); np.multiply.at(y, [0, 0, 1], 2.5); r = x * y
y = np.ones_like(x, dtype=bool); np.multiply.at(y, [0, 0], 2); r = x * y
np.multiply(x, x[0], out=x)
y = np.zeros_like(x); np.exp(x, out=y); r = y
np.sin(x[0], out=x[1])
np.sin(x[:, :3], out=x[:, :3].T)
np.cos(x.T, out=x.T)
np.sqrt(x, out=x, where=x > 0)
y = x * 3; np.divide(1.0, x, out=y, where=x > 0.3); r = y
np.sum(x, axis=0, out=x[0])
x.sum(axis=1, out=x[:, 1])
np.cumsum(x, axis=1, out=x)
np.add.accumulate(x, axis=0, out=x)
np.add.reduce(x, axis=0, out=x[2])
y = np.zeros_like(x[:, :3]); np.dot(x, x.T, out=y); r = y
y = np.zeros_like(x[:, :3]); np.matmul(x, x.T, out=y); r = y
y = np.zeros_like(x[:, :3]); np.einsum("ij,kj->ik", x, x, out=y); r = y
np.clip(x, -0.5, 0.52, out=x)
x.clip(-0.5, 0.52, out=x)
y = np.zeros_like(x[:2]); np.stack([x[0], x[1]], out=y); r = y
y = np.zeros_like(x); np.concatenate([x[1:], x[:1]], out=y); r = y
np.mean(x, axis=0, out=x[2])
np.take(x, [1, 0], axis=0, out=x[:2])
np.max(x, axis=0, out=x[0])
np.median(x, axis=0, out=x[0])
np.copyto(x, x[0])
np.copyto(x, x[0], where=x > 0)
np.copyto(x[0], x[1])
np.copyto(x[0], x[1:2])
np.copyto(x, x[None, ::-1] * 2, where=x > 0)
np.copyto(x, x[None, ::-1] * 2, where=(x > 0)[None])
np.put(x, [0, 5], x[2, :2])
x.put([0, 5], [1.0, 2.0])
np.putmask(x, x > 0, x * 3)
np.place(x, x > 0, [1.0, 2.0])
np.fill_diagonal(x, x[0, 1])
np.fill_diagonal(x[:, 1:], x[0, 1])
np.put_along_axis(x, np.array([[0], [1], [2]]), 9 * x[:, :1], axis=1)
x[0, 0] = np.nan; np.nan_to_num(x, copy=False, nan=3.0)
y = x * 1; y.shape = (4, 3); y[0] = 1; r = y
y = x * 1; y.shape = 12; y += 1; r = y
y = np.delete(x, 0, axis=0); y[0] = 1; r = y
y = np.empty_like(x); y[:] = x; y[0] += 1; r = x + y
y = np.zeros_like(x, dtype=np.float32); y[0] = 0.5; r = x + y
y = np.zeros_like(x, dtype=int); y += x; r = y
y = np.zeros_like(x, dtype=int); y[0] = [1, 2, 3, 4]; y //= 2; r = x * y
y = np.ones_like(x, dtype=bool); y &= x > 0; r = x * y
x[0] = np.ones(3)
x[0] += np.ones((2, 4))
x += np.ones((2, 3, 4))
x[5] = 1
x[0, 0, 0] = 1
x[1.5] = 1
x[[0, 7]] = 1
x.sort(axis=3)
x.flat[[0, 99]] = 1
np.add.at(x, [9], 1.0)
np.sum(x, axis=0, out=x[:, 0])
np.sin(x, out=x[0])
x.resize(-3, 4)
x.shape = (5, 5)
""".strip().splitlines()

REFUSED = {
    "y = np.broadcast_to(x[0], (2, 4)); y[0, 0] = 2": "read-only",
}
"""Programs that are errors with Tensors, and what the error says."""


def run(program: str, np: Any, x: Any) -> Any:
    names = {"np": np, "x": x, "copy": copy, "nbnp": nb.numpy}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy 2.5, for setting a shape
        exec(program, names)
    return names.get("r", x)


def weighted(value: Any) -> Any:
    """One number of an array, in which each element has another weight."""
    value = value * 1.0
    weights = numpy.cos(numpy.arange(float(value.size))).reshape(value.shape)
    return (value * weights).sum()


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_numpy(program: str) -> None:
    numpy_raises = None
    expected: Any = None
    try:
        expected = run(program, numpy, X.copy())
    except Exception as error:
        numpy_raises = error
        if "has no attribute" in str(error) or "unexpected keyword" in str(error):
            pytest.skip("this NumPy has it not")
        if "It is possible that this is a false positive" in str(error):
            pytest.skip("from Python 3.14 on, NumPy does not see that nothing else refers to the array")
        if "refcheck" in str(error) and sys.gettrace() is not None:
            pytest.skip("NumPy counts the references of a tracer, too")
    for np in (numpy, nb.numpy):

        def recorded(x: Any, np: Any = np) -> Any:
            return weighted(run(program, np, x * 1))

        if numpy_raises is not None or program in REFUSED:
            for call in (lambda: run(program, np, nb.numpy.array(X)), lambda: nb.grad(recorded)(X)):  # noqa: B023
                with pytest.raises((NbgradError, ValueError), match=REFUSED.get(program)):
                    call()
            continue
        result = run(program, np, nb.numpy.array(X))
        assert result.shape == expected.shape and result.dtype == expected.dtype
        numpy.testing.assert_allclose(numpy.asarray(result), expected, rtol=1e-14)
        value, gradient = nb.value_and_grad(recorded)(X)
        numpy.testing.assert_allclose(value, weighted(expected), rtol=1e-13)
        try:
            compiled = nb.jit(recorded)(X)
        except TracedValueError as error:
            assert "depends on the values" in str(error) or "behind a Tensor" in str(error)  # noqa: PT017
        else:
            numpy.testing.assert_allclose(compiled, value, rtol=1e-13)
        numpy.testing.assert_allclose(gradient, slopes(program), rtol=1e-6, atol=1e-6)


def slopes(program: str) -> numpy.ndarray:
    """The gradient by central differences of the program with NumPy's arrays."""
    found = numpy.zeros_like(X)
    for place in numpy.ndindex(*X.shape):
        step = numpy.zeros_like(X)
        step[place] = 1e-6
        above, below = (weighted(run(program, numpy, X + sign * step)) for sign in (1, -1))
        found[place] = (above - below) / 2e-6
    return found


def test_tensors_of_users_bind_anew_as_in_mindspore() -> None:
    x = nb.Tensor([1.0, 2.0])
    y = x
    y += 1
    assert x.tolist() == [1.0, 2.0] and y.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1, 1)])
def test_small_and_empty_arrays(shape: tuple[int, ...]) -> None:
    for program in (
        "x[...] = 2.0",
        "x += 1",
        "x.flat[:] = 3.0",
        "x.fill(4.0)",
        "x.T[...] = 5.0",
        "x.reshape(-1)[:] = 6",
    ):
        ours, theirs = nb.numpy.ones(shape), numpy.ones(shape)
        exec(program, {"x": ours})
        exec(program, {"x": theirs})
        numpy.testing.assert_array_equal(numpy.asarray(ours), theirs, err_msg=program)


def test_masks_of_copyto_must_fit() -> None:
    x = nb.numpy.array(X)
    with pytest.raises(ShapeError, match="broadcast"):
        nb.numpy.copyto(x, x * 2, where=numpy.ones(3, bool))


def test_flags_say_how_numpys_array_would_lie_in_memory() -> None:
    theirs, ours = X.copy(), nb.numpy.array(X)
    for make in (
        lambda x: x,
        lambda x: x.T,
        lambda x: x[1],
        lambda x: x[:, 1],
        lambda x: x.reshape(4, 3),
        lambda x: x[:1],
    ):
        expected, found = make(theirs).flags, make(ours).flags
        assert found.c_contiguous == expected.c_contiguous == found["C_CONTIGUOUS"] and found.writeable
    with pytest.raises(NbgradError, match="cannot be set"):
        ours.flags.writeable = False
    assert not hasattr(ours.flags, "updateifcopy")
