"""`import nbgrad.numpy as np` beside `import numpy as np`: the same code, and its values, dtypes and gradients."""

from __future__ import annotations

import copy
import functools
import io
import pickle
from collections import deque
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy
import pytest

import nbgrad as nb
from nbgrad import Tensor
from nbgrad import numpy as ours
from nbgrad.errors import ArgumentError, DtypeError, NbgradError, ShapeError, TracedValueError

pytestmark = pytest.mark.unoptimized

X = numpy.array([[0.7, -0.3, 0.2], [1.1, 0.9, -0.4]])
Maker = Callable[[Any], Any]

# ----- Names -----


def test_every_public_name_of_numpy_is_there() -> None:
    names = {name for name in dir(numpy) if not name.startswith("_")}
    missing = [name for name in sorted(names) if not hasattr(ours, name)]
    assert not missing
    assert names <= set(dir(ours)) and names <= set(ours.__all__)
    for module in ("linalg", "fft", "random"):
        theirs = vars(getattr(numpy, module)).items()
        inside = [name for name, value in theirs if not (name.startswith("_") or isinstance(value, ModuleType))]
        assert not [name for name in inside if name != "test" and not hasattr(getattr(ours, module), name)]


def test_a_name_that_numpy_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Neither nbgrad"):
        _ = ours.no_such_function
    assert not hasattr(ours, "__wrapped__")


SAME = "pi e inf nan newaxis euler_gamma dtype errstate testing ma char iinfo ufunc printoptions"


@pytest.mark.parametrize("name", SAME.split())
def test_constants_and_settings_are_numpys(name: str) -> None:
    if name == "iinfo":
        assert ours.iinfo(ours.int8).max == 127 and ours.finfo(ours.float32).eps == numpy.finfo("f4").eps
    else:
        assert getattr(ours, name) is getattr(numpy, name)


# ----- New arrays -----

MAKERS: list[Maker] = [
    lambda np: np.array(3),
    lambda np: np.array(2.5),
    lambda np: np.array(True),
    lambda np: np.array([]),
    lambda np: np.array([[]]),
    lambda np: np.array([1, 2]),
    lambda np: np.array([1, 2.5]),
    lambda np: np.array([True, 2]),
    lambda np: np.array([1.0, 2j]),
    lambda np: np.array([numpy.int8(1), 1]),
    lambda np: np.array([numpy.float32(1), 1.0]),
    lambda np: np.array([numpy.float32(1), numpy.float32(2)]),
    lambda np: np.array(((1, 2), [3, 4])),
    lambda np: np.array(range(4)),
    lambda np: np.array(deque([1.0, 2.0])),
    lambda np: np.array([range(2), [5, 6]]),
    lambda np: np.array([1, 2], dtype=np.float32),
    lambda np: np.array([1.9, -2.9], dtype=int),
    lambda np: np.array([1, 2], float),
    lambda np: np.array([1, 2], "float16"),
    lambda np: np.array(5, ndmin=2),
    lambda np: np.array([1, 2], ndmin=3),
    lambda np: np.array(X, order="F"),
    lambda np: np.array(X, dtype=np.float32, copy=None),
    lambda np: np.array(np.zeros((2, 2)), dtype=int),
    lambda np: np.asarray([1, 2]),
    lambda np: np.asarray(X),
    lambda np: np.asarray(X, dtype="f4"),
    lambda np: np.asanyarray([[1.0], [2.0]]),
    lambda np: np.ascontiguousarray(2.0),
    lambda np: np.asfortranarray(X),
    lambda np: np.asarray_chkfinite([1.0, 2.0]),
    lambda np: np.require([1, 2], float, ["C", "A"]),
    lambda np: np.copy([1, 2]),
    lambda np: np.copy(X[:, ::2]),
    lambda np: np.zeros(3),
    lambda np: np.zeros(()),
    lambda np: np.zeros((2, 0)),
    lambda np: np.zeros([2, 1], dtype=np.int32, order="F"),
    lambda np: np.ones((2, 2)),
    lambda np: np.ones(2, dtype=bool),
    lambda np: np.empty((2, 3)) * 0,
    lambda np: np.full(2, 7),
    lambda np: np.full((), 2.5),
    lambda np: np.full((2, 2), [1.0, 2.0]),
    lambda np: np.full(2, 1, dtype=np.float32),
    lambda np: np.zeros_like([1, 2]),
    lambda np: np.zeros_like(X, dtype=np.float32),
    lambda np: np.ones_like(X, shape=(4,)),
    lambda np: np.full_like([1, 2], 2.7),
    lambda np: np.empty_like(X) * 0,
    lambda np: np.arange(4),
    lambda np: np.arange(1, 2, 0.25),
    lambda np: np.arange(3, dtype=np.float32),
    lambda np: np.linspace(0, 1, 5),
    lambda np: np.linspace(0, 1, 4, endpoint=False),
    lambda np: np.logspace(0, 2, 3),
    lambda np: np.geomspace(1, 8, 4),
    lambda np: np.eye(3),
    lambda np: np.eye(2, 3, k=1, dtype=int),
    lambda np: np.identity(2),
    lambda np: np.tri(3, k=-1),
    lambda np: np.stack(np.meshgrid([1, 2], [3.0, 4.0, 5.0])),
    lambda np: np.indices((2, 3)),
    lambda np: np.tile([1, 2], 2),
    lambda np: np.diag([1.0, 2.0]),
    lambda np: np.vander([1.0, 2.0, 3.0]),
    lambda np: np.fromfunction(lambda i, j: i + 10 * j, (2, 3)),
    lambda np: np.fromfunction(lambda i, j: i == j, (2, 2), dtype=int),
    lambda np: np.fromiter((k * k for k in range(4)), dtype=float),
    lambda np: np.fromiter(range(9), int, count=3),
    lambda np: np.frombuffer(b"\x01\x02", dtype=np.uint8),
    lambda np: np.fromstring("1 2 3", sep=" "),
    lambda np: np.loadtxt(io.StringIO("1 2\n3 4")),
    lambda np: np.genfromtxt(io.StringIO("1,2\n3,4"), delimiter=","),
    lambda np: np.hanning(5),
    lambda np: np.kaiser(4, 2.0),
    lambda np: np.r_[1, 2.5, 3],
    lambda np: np.r_[0:1:5j],
    lambda np: np.r_["0,2", [1, 2], [3, 4]],
    lambda np: np.c_[[1, 2], [3, 4]],
    lambda np: np.mgrid[0:2, 0:3],
    lambda np: np.ogrid[0:3],
    lambda np: np.float64([1, 2]),
    lambda np: np.ndarray((2, 2)) * 0,
    lambda np: np.sum([1, 2, 3]),
    lambda np: np.sin([0.0, 1.0]),
    lambda np: np.dot([1, 2], [3, 4]),
    lambda np: np.add.reduce([1, 2, 3]),
    lambda np: np.multiply.outer([1, 2], [3.0, 4.0]),
    lambda np: np.maximum.accumulate([3, 1, 4]),
    lambda np: np.linalg.inv([[2.0, 1.0], [1.0, 3.0]]),
    lambda np: np.linalg.norm([3.0, 4.0]),
    lambda np: np.fft.fft([1.0, 2.0, 0.0]),
    lambda np: np.where([True, False], 1, 2.5),
    lambda np: np.concatenate([[1, 2], [3.5]]),
    lambda np: np.array([np.zeros(2), np.ones(2)]),
    lambda np: np.array([np.zeros(2), [3, 4]]),
    lambda np: np.array([np.float32(3), np.ones(1)[0]]),
    lambda np: np.array([np.ones(1, np.int32)[0], 2.5]),
    lambda np: np.array([np.ones(1, np.float32)[0], 1]),
    lambda np: np.array([np.ones(1, np.float32)[0], 1.0]),
]


@pytest.mark.parametrize("make", MAKERS, ids=range(len(MAKERS)))
def test_arrays_are_those_of_numpy(make: Maker) -> None:
    expected, made = make(numpy), make(ours)
    assert made.dtype == expected.dtype and tuple(made.shape) == expected.shape
    numpy.testing.assert_allclose(numpy.asarray(made), expected, rtol=1e-14, atol=1e-15)
    if isinstance(made, Tensor):
        node = made._node
        assert not node.weak and not node.tensor
    assert isinstance(made, ours.ndarray) == isinstance(expected, numpy.ndarray)
    assert isinstance(made, ours.generic) == isinstance(expected, numpy.generic)


@pytest.mark.parametrize("make", MAKERS, ids=range(len(MAKERS)))
def test_arrays_can_be_written_to_like_those_of_numpy(make: Maker) -> None:
    expected, made = make(numpy), make(ours)
    if expected.ndim and expected.size and expected.dtype.kind in "fic" and expected.flags.writeable:
        expected, made = (expected.copy(), made) if expected is X else (expected, made)
        before = X.copy()
        for array in (expected, made):
            array[...] = 2
            array[-1] += 1
            array *= array
        numpy.testing.assert_array_equal(numpy.asarray(made), expected)
        X[...] = before


NOT_FOR_TENSORS: list[Maker] = [
    lambda np: np.array("text"),
    lambda np: np.array(["a", "b"]),
    lambda np: np.zeros(2, dtype=object),
    lambda np: np.full(2, None, dtype=object),
    lambda np: np.array([1, "a"], dtype=object),
    lambda np: np.array(["2020-01-01"], dtype="datetime64[D]"),
    lambda np: np.zeros(2, dtype=[("a", float), ("b", int)]),
    lambda np: np.empty_like(numpy.array(["a"])),
    lambda np: np.asanyarray(numpy.ma.masked_array([1.0, 2.0], [True, False])),
    lambda np: np.array([1], dtype=np.longdouble),
]


@pytest.mark.parametrize("make", NOT_FOR_TENSORS, ids=range(len(NOT_FOR_TENSORS)))
def test_what_a_tensor_cannot_hold_is_numpys_array(make: Maker) -> None:
    expected, made = make(numpy), make(ours)
    assert type(made) is type(expected) and made.dtype == expected.dtype and made.shape == expected.shape


def test_asarray_gives_the_array_itself_and_array_a_copy() -> None:
    t = ours.zeros(2)
    assert ours.asarray(t) is t and ours.asanyarray(t) is t and ours.array(t, copy=False) is t
    c = ours.array(t)
    c[0] = 1.0
    assert t.tolist() == [0.0, 0.0] and c.tolist() == [1.0, 0.0]
    a = numpy.zeros(2)
    shared = ours.asarray(a)
    shared[0] = 5.0
    a[1] = 7.0
    assert a.tolist() == [5.0, 7.0] == shared.tolist()
    separate = ours.array(a)
    separate += 1.0
    assert a.tolist() == [5.0, 7.0]
    assert (shared + ours.ones(2, ours.int64)).dtype == numpy.float64  # still NumPy's rules


def test_bad_arguments_say_what_is_wrong() -> None:
    t = ours.zeros(2)
    with pytest.raises(ShapeError, match=r"one shape.*\(2,\)"):
        ours.array([t, 1.0])
    with pytest.raises(ShapeError):
        ours.array([[1, 2], [3]])
    with pytest.raises(ArgumentError, match="copy"):
        ours.array([t, t], copy=False)
    with pytest.raises(ArgumentError, match="copy"):
        ours.array([1, 2], copy=False)
    with pytest.raises(ArgumentError, match="device"):
        ours.asarray([1], device="tpu")
    with pytest.raises(DtypeError):
        ours.array([t[0], "a"])
    with pytest.raises(DtypeError, match="object"):
        ours.array([t[0], 1.0], dtype=object)
    with pytest.raises(NbgradError):
        ours.asarray_chkfinite([1.0, numpy.inf])
    with pytest.raises(ArgumentError, match="gave 2 elements"):
        ours.fromiter([1, 2], float, 3)
    with pytest.raises(ArgumentError, match=r"nditer.*'no_such_flag'"):
        ours.nditer([t, t], flags=["no_such_flag"])
    with pytest.raises(ArgumentError, match=r"Operand 0 of nditer has float64.*float32"):
        ours.nditer(t, op_flags=["readwrite"], op_dtypes=["float32"])
    with pytest.raises(ArgumentError, match=r"external_loop.*C order.*operand 0"):
        list(ours.nditer(ours.zeros((2, 3)).T, flags=["external_loop"], order="C", op_flags=["readwrite"]))
    with pytest.raises(ValueError, match="zero-sized"):
        ours.nditer(ours.zeros(0))
    with pytest.raises(ArgumentError, match=r"argument 1.*read-only.*copy"):
        ours.vectorize(overwritten, signature="(n),(n)->()")(t, t)
    assert [int(v) for v in ours.nditer(numpy.arange(3))] == [0, 1, 2]
    with pytest.raises(ArgumentError, match="one to three integers"):
        _ = ours.r_["r", t]


def overwritten(a: Any, b: Any) -> Any:
    b[:] = 0.0
    return a.sum()


# ----- Recorded values in arrays -----


def filled(np: Any, x: Any) -> Any:
    a = np.zeros(4)
    a[0] = x[0, 0] ** 2
    a[1:3] = x[1, :2]
    a[-1] += x[0, 1] * a[0]
    b = np.empty((2, 2))
    b[:] = [[x[0, 0], 1], [a[1], 2.0]]
    c = np.full(3, 2.0)
    c *= x[0]
    d = np.ones_like(c)
    d[c > 0] = c[c > 0]
    return np.concatenate([a, b.ravel(), c, d])


RECORDED: list[Callable[[Any, Any], Any]] = [
    filled,
    lambda np, x: np.array([x[0, 0], x[1, 1]]),
    lambda np, x: np.array([x[0, 0], 2, x[1, 1] * 3.5]),
    lambda np, x: np.array([[x[0, 0], -x[0, 1]], [x[0, 1], x[0, 0]]]) @ np.array([1, 2]),
    lambda np, x: np.array([x[0], x[1]]) ** 2,
    lambda np, x: np.array([x, x]) * 2,
    lambda np, x: np.array([x[0], [1, 2, 3]]),
    lambda np, x: np.array([[x[0], [1, 2, 3]], [X[1], x[1]]]),
    lambda np, x: np.array((x[0, :1], x[1, 1:2])),
    lambda np, x: np.array([v * v for v in x[0]]),
    lambda np, x: np.array(list(x)),
    lambda np, x: np.array(deque([x[0, 0], 1.0])),
    lambda np, x: np.array([[[x[0, 0]]], [[5]]]),
    lambda np, x: np.array([x[0, 0], True]),
    lambda np, x: np.array([x[0, 0], X[1, 1], numpy.float32(3)]),
    lambda np, x: np.array(x) * np.asarray(x),
    lambda np, x: np.asarray([x[0, 0], x[0, 1]], dtype=np.float64),
    lambda np, x: np.asarray(x[0], dtype=float),
    lambda np, x: np.array(x[0], ndmin=2),
    lambda np, x: np.float64(x[0, 0]) * np.float64(3.0),
    lambda np, x: np.fromiter((v for v in x[0]), dtype=float),
    lambda np, x: np.fromfunction(lambda i, j: i * x[0, 0] + j, (2, 3)),
    lambda np, x: np.full((2, 2), x[0, 1]),
    lambda np, x: np.full_like(x, x[0, 1]),
    lambda np, x: np.r_[x[0, 0], x[1], 2.0, 0:2],
    lambda np, x: np.r_["0,2", x[0], x],
    lambda np, x: np.c_[x[0], x[1], X[0]],
    lambda np, x: np.c_[x, x[:, 0]],
    lambda np, x: np.r_["1,2,0", x[0], x[1]],
    lambda np, x: np.r_["0,3,1", x[0], x[1]],
    lambda np, x: np.linspace(x[0, 0], x[1, 0], 4),
    lambda np, x: np.sin([x[0, 0], x[0, 1]]),
    lambda np, x: np.maximum([x[0, 0], 0.0], 0.1),
    lambda np, x: np.add.reduce([x[0], x[1]]),
    lambda np, x: np.add.accumulate([x[0], x[1]]),
    lambda np, x: np.multiply.outer(x[0], [x[0, 0], 2.0]),
    lambda np, x: np.sum([x[0, 0], x[0, 1]]) * np.mean([[x[0, 0]], [2.0]]),
    lambda np, x: np.dot([x[0, 0], 1.0], [x[0, 1], 2.0]),
    lambda np, x: np.linalg.solve([[x[0, 0], 1.0], [0.5, x[1, 1]]], [1.0, x[0, 1]]),
    lambda np, x: np.linalg.norm([x[0, 0], x[1, 1]]),
    lambda np, x: np.concatenate([[x[0, 0]], x[1], [2, 3]]),
    lambda np, x: np.vstack([x[0], [1, 2, 3]]),
    lambda np, x: np.where(x > 0, x, np.zeros(3)),
    lambda np, x: np.interp([0.25, 0.5], [0.0, 1.0], [x[0, 0], x[0, 1]]),
    lambda np, x: np.tile([x[0, 0], 1.0], 2),
    lambda np, x: np.diag([x[0, 0], x[0, 1]]),
    lambda np, x: np.broadcast(x, x[0]).shape[0] * x,
    lambda np, x: np.array([a * b for a, b in np.broadcast(x, x[0])]),
    lambda np, x: np.copy(x) + np.ascontiguousarray(x),
    lambda np, x: np.vectorize(lambda v, w: v * w if v > 0 else w)(x, 2.0),
    lambda np, x: np.apply_along_axis(lambda r: np.array([r[0], r[1] * r[2]]), 1, x),
    lambda np, x: centred_rows(np, x, 0),
    lambda np, x: centred_rows(np, x, -1),
    lambda np, x: centred_rows(np, x.T, 1).T,
    lambda np, x: clipped_rows(np, x),
    lambda np, x: np.array([v * v for v in np.nditer(x.T[:, ::-1])]),
    lambda np, x: np.array([v * w for v, w in np.nditer([x, x[0]], order="F")]),
    lambda np, x: np.concatenate([v**2 for v in np.nditer(x, flags=["external_loop"], order="F")]),
    lambda np, x: counted_elements(np, x),
    lambda np, x: written_elements(np, x, []),
    lambda np, x: written_elements(np, x, ["external_loop"]),
    lambda np, x: made_elements(np, x),
    lambda np, x: np.array(np.frompyfunc(lambda v: v * v, 1, 1)(x), dtype=float),
    lambda np, x: np.array([v * k for (k, _), v in np.ndenumerate(x)]),
    lambda np, x: functools.reduce(np.dot, [np.array([[x[0, 0], 1], [0, 1]])] * 3),
    lambda np, x: copy.deepcopy(np.array([x[0, 0], 1.0])) + copy.copy(x[0, :2]),
    lambda np, x: np.array([x[0, 0], x[0, 1]]).astype(np.float64).reshape(1, -1),
    lambda np, x: np.polynomial.Polynomial([x[0, 0], x[0, 1], 1.0])(np.array([0.5, 2.0])),
    lambda np, x: (np.polynomial.Polynomial(x[0]) * np.polynomial.Polynomial([1.0, 2.0])).coef,
    lambda np, x: (np.polynomial.Chebyshev(x[1]) ** 2).deriv().integ()(0.3),
    lambda np, x: np.polynomial.polynomial.polyvander(x[0], 2),
    lambda np, x: np.polynomial.legendre.legval(x[0], [1, 2, 3]),
    lambda np, x: np.polynomial.hermite_e.hermeval(0.2, [x[0, 0], 1.0, x[1, 1]]),
    lambda np, x: np.polynomial.Polynomial.fit([0.0, 1.0, 2.0, 3.0], [x[0, 0], x[0, 1], x[1, 0], 1.0], 2)(0.3),
    lambda np, x: np.polynomial.Chebyshev.fit([0.0, 1.0, 2.0], x[0], 2).convert(kind=np.polynomial.Polynomial).coef,
    lambda np, x: np.polynomial.Polynomial.fit([0.0, 1.0, 2.0], x[1], 1).convert().coef,
    lambda np, x: np.poly1d([x[0, 0], x[0, 1], 2.0])(x[1]),
    lambda np, x: (np.poly1d(x[0]) * np.poly1d([1.0, x[1, 1]])).deriv().coeffs,
    lambda np, x: np.emath.sqrt([x[0, 0], x[1, 1]]),
    lambda np, x: np.abs(np.emath.sqrt(x)),
    lambda np, x: np.real(np.emath.log(x)),
    lambda np, x: np.arange(x[0, 0], 3.0, 0.7) ** 2,
    lambda np, x: np.arange(0.0, 2.0, x[0, 0]),
    lambda np, x: np.arange(x[0, 1], x[1, 0] - 0.1, x[0, 2]) * 3,
    lambda np, x: np.interp(0.25, [0.0, 1.0], [x[0, 0], x[0, 1]]),
]


def centred_rows(np: Any, x: Any, axis: int) -> Any:
    """A function that writes to the slices that it gets writes to the array that they are parts of."""

    def centred(row: Any) -> Any:
        row[1:] -= np.mean(row) ** 2
        return np.sum(row**2)

    a = x * 1.0
    return np.sum(np.apply_along_axis(centred, axis, a[:, 1:])) + a


def clipped_rows(np: Any, x: Any) -> Any:
    """Some of the slices are written to, as their values say."""

    def clipped(row: Any) -> Any:
        if row[0] > 0.5:
            row[0] = row[1] * row[2]
        return row

    a = x * 1.0
    return np.apply_along_axis(clipped, 1, a) + 2.0 * a


def counted_elements(np: Any, x: Any) -> Any:
    total = np.zeros(3)
    it = np.nditer(np.stack([x, 2.0 * x]), flags=["multi_index", "f_index"])
    while not it.finished:
        total[it.multi_index[2]] += it[0] ** 2 * it.index + it.value
        it.iternext()
    return total * it.ndim


def written_elements(np: Any, x: Any, flags: Any) -> Any:
    a = x * 1.0
    with np.nditer([a[:1], x[0]], flags, [["readwrite"], ["readonly"]]) as it:
        for target, value in it:
            target[...] = np.sin(target) * value
    return a


def made_elements(np: Any, x: Any) -> Any:
    it = np.nditer([x, x[:, :1], None])
    for one, two, out in it:
        out[...] = one * two
    return it.operands[2] * 1.0


def weighted(value: Any) -> Any:
    """One number of an array, in which each element has another weight."""
    flat = value.reshape(-1) if hasattr(value, "reshape") else value
    return sum((k + 1.5) * v for k, v in enumerate(flat))


@pytest.mark.parametrize("function", RECORDED, ids=range(len(RECORDED)))
def test_recorded_values_keep_value_dtype_and_gradient(function: Callable[[Any, Any], Any]) -> None:
    expected = function(numpy, X.copy())
    made = function(ours, ours.array(X))
    assert made.dtype == expected.dtype and tuple(made.shape) == expected.shape
    numpy.testing.assert_allclose(numpy.asarray(made), expected, rtol=1e-13)
    gradient = nb.grad(lambda x: weighted(function(ours, x)))(X)
    h = 1e-6
    for place in numpy.ndindex(*X.shape):
        step = numpy.zeros_like(X)
        step[place] = h
        slope = (weighted(function(numpy, X + step)) - weighted(function(numpy, X - step))) / (2 * h)
        numpy.testing.assert_allclose(gradient[place], slope, rtol=1e-6, atol=1e-7)
    tangent = nb.jvp(lambda x: weighted(function(ours, x)), X, X)[1]
    numpy.testing.assert_allclose(tangent, numpy.sum(gradient * X), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "complex128"])
def test_dtypes_of_recorded_lists(dtype: str) -> None:
    x = numpy.array([1.5, -2.0], dtype=dtype)
    t = ours.asarray(x)
    for make in (
        lambda np, v: np.array([v[0], v[1]]),
        lambda np, v: np.array([v[0], 1]),
        lambda np, v: np.array([v[0], 1.5]),
        lambda np, v: np.array([v[0], 1j]),
        lambda np, v: np.array([[v[0], numpy.int32(3)]]),
        lambda np, v: np.array([v, [1.0, 2.0]]),
    ):
        expected = make(numpy, x)
        assert make(ours, t).dtype == expected.dtype
        numpy.testing.assert_array_equal(numpy.asarray(make(ours, t)), expected)


def test_users_tensors_keep_mindspores_rules() -> None:
    t = Tensor([1.0, 2.0])  # float32
    assert ours.array([t[0], 1.0]).dtype == numpy.float32
    assert ours.array([t[0], 1]).dtype == numpy.float32


# ----- Classes -----


def test_isinstance_tells_arrays_from_scalars_as_numpy_does() -> None:
    def check(np: Any, x: Any) -> list[bool]:
        values = [x, x[0], x[0, 0], np.sum(x), np.array(1.0), np.zeros(()), np.mean(x, axis=0), x.dtype, 1.0, [1]]
        kinds = [np.ndarray, np.generic, np.number, np.floating, np.integer, np.float64, np.float32, np.int64]
        return [isinstance(value, kind) for value in values for kind in kinds]

    assert check(ours, ours.array(X)) == check(numpy, X) == check(ours, X)
    seen = []
    nb.grad(lambda x: seen.append(check(ours, x)) or weighted(x))(X)
    assert seen == [check(numpy, X)]
    assert isinstance(Tensor([1.0]).sum(), ours.ndarray)  # MindSpore has no scalars
    assert ours.isscalar(ours.array(X)[0, 0]) and not ours.isscalar(ours.array(1.0)) and ours.isscalar(3)


def test_scalar_types_are_dtypes_and_convert() -> None:
    for name in "float16 float32 float64 int8 int64 uint8 bool_ complex64 complex128 double intp".split():
        kind, numpys = getattr(ours, name), getattr(numpy, name)
        assert numpy.dtype(kind) == numpy.dtype(numpys) and ours.zeros(1, kind).dtype == numpys
        assert kind == numpys and numpys == kind and hash(kind) == hash(numpys)
        assert numpy.issubdtype(kind, numpy.floating) == numpy.issubdtype(numpys, numpy.floating)
        assert ours.issubdtype(ours.zeros(1, kind).dtype, ours.number) == numpy.issubdtype(numpys, numpy.number)
        assert type(kind(1)) is numpys and isinstance(kind(1), kind) and isinstance(numpys(1), kind)
        assert numpy.zeros(1, kind).dtype.type == kind and issubclass(kind, ours.generic) and issubclass(numpys, kind)
        value = kind(ours.array(1.0))
        assert isinstance(value, Tensor) and value.dtype == numpys and isinstance(value, kind)
    assert ours.double is ours.float64 and ours.float64.__name__ == "float64"
    assert issubclass(ours.float64, float) and repr(ours.float64) == repr(numpy.float64)
    assert ours.isdtype(ours.zeros(1).dtype, "real floating") and not ours.isdtype(ours.int8, ("bool", ours.float64))
    assert pickle.loads(pickle.dumps(ours.float32(2.0))) == 2.0
    with pytest.raises(TypeError):
        ours.floating(1.0)


def test_users_subclasses_of_ndarray_are_numpys() -> None:
    class Named(ours.ndarray):
        pass

    assert issubclass(Named, numpy.ndarray) and isinstance(numpy.zeros(2).view(Named), ours.ndarray)


def test_gradients_through_scalar_types() -> None:
    np = ours
    gradient = nb.grad(lambda x: np.float64(x[0]) ** 2 + np.sum(np.float32(x)) + np.real(np.complex128(x[1])))(X[0])
    numpy.testing.assert_allclose(gradient, [2 * 0.7 + 1, 2, 1], rtol=1e-6)
    assert nb.grad(lambda x: np.int64(x[0]) * x[0])(numpy.array([2.5])) == 2.0


def test_ufuncs_have_their_methods_and_facts() -> None:
    assert ours.add.nin == 2 and ours.add.identity == 0 and ours.sin.nout == 1
    target = ours.zeros(3)
    ours.add.at(target, [0, 0, 2], [1.0, 2.0, 3.0])
    assert target.tolist() == [3.0, 0.0, 3.0]


def test_submodules() -> None:
    import nbgrad.numpy.linalg as la
    import nbgrad.numpy.random as random

    assert la is ours.linalg and random is ours.random
    assert issubclass(ours.linalg.LinAlgError, Exception)
    assert isinstance(ours.emath, ModuleType)


@pytest.mark.parametrize("make", [lambda r: r.default_rng(3), lambda r: r.RandomState(3)], ids=["new", "old"])
def test_random_numbers_are_numpys(make: Callable[[Any], Any]) -> None:
    theirs, own = make(numpy.random), make(ours.random)
    assert isinstance(theirs, type(own)) and isinstance(own, type(theirs))
    draws: list[Callable[[Any], Any]] = [
        lambda r: r.normal(size=(2, 3)),
        lambda r: r.choice(5, 3),
        lambda r: r.choice(numpy.arange(5.0), (2, 2), p=[0.1, 0.2, 0.3, 0.2, 0.2]),
        lambda r: r.permutation(5),
        lambda r: r.permutation(numpy.eye(3)),
        lambda r: r.multivariate_normal([0, 0], numpy.eye(2)),
    ]
    for draw in draws:
        expected, found = draw(theirs), draw(own)
        assert isinstance(found, Tensor) and found.dtype == expected.dtype
        numpy.testing.assert_array_equal(numpy.asarray(found), expected)
    assert isinstance(own.normal(), float) and theirs.normal() and own.choice(["a", "b"]) in "ab"
    theirs.choice(["a", "b"])
    x = numpy.arange(12.0).reshape(4, 3)
    t = ours.array(x)
    theirs.shuffle(x)
    own.shuffle(t)
    for expected, found in ((x, t), (theirs.permutation(x), own.permutation(t))):
        numpy.testing.assert_array_equal(numpy.asarray(found), expected)
    numpy.testing.assert_array_equal(numpy.asarray(own.choice(t[:, 0], 5)), theirs.choice(x[:, 0], 5))
    numbers, tensors = [1.0, 2.0, 3.0], [ours.array(k) for k in (1.0, 2.0, 3.0)]
    theirs.shuffle(numbers)
    own.shuffle(tensors)
    assert [float(v) for v in tensors] == numbers
    assert theirs.permutation(numbers).tolist() == own.permutation(tensors).tolist()


def test_recorded_values_in_drawn_arrays() -> None:
    def f(np: Any, x: Any) -> Any:
        rng = np.random.default_rng(0)
        w = rng.normal(size=3)
        w[0] = x[0]
        w *= x[1]
        rng.shuffle(w)
        np.random.seed(2)
        return np.sum(w * np.arange(3.0)) + np.sum(rng.permutation(x) * np.random.rand(3))

    x = X[0]
    slopes = [(f(numpy, x + h) - f(numpy, x - h)) / 2e-6 for h in 1e-6 * numpy.eye(3)]
    numpy.testing.assert_allclose(nb.grad(lambda x: f(ours, x))(x), slopes, rtol=1e-7)
    with pytest.raises(TracedValueError):
        nb.grad(lambda x: ours.sum(ours.random.default_rng(0).normal(x)))(x)


def test_without_recording_tensors_are_as_good_as_arrays() -> None:
    np = ours
    a = np.linspace(0.0, 1.0, 3)
    assert f"{np.sum(a):.2f}" == "1.50" and float(a[1]) == 0.5 and a[2].item() == 1.0 and list(a) == [0.0, 0.5, 1.0]
    assert [10, 20, 30][np.argmax(a)] == 30 and len(range(np.array(3))) == 3
    assert numpy.asarray(a).tolist() == [0.0, 0.5, 1.0] and bool(np.all(a >= 0))
    assert str(a) == str(numpy.linspace(0.0, 1.0, 3)) and numpy.sin(a)[1] == numpy.sin(0.5)


def test_new_arrays_inside_other_transforms() -> None:
    np = ours

    def f(x: Any) -> Any:
        a = np.zeros(2)
        a[0], a[1] = x[0] * x[1], np.sum(np.array([x[1], x[2] ** 2]))
        return a

    x = numpy.array([1.5, -0.5, 2.0])
    expected = [x[0] * x[1], x[1] + x[2] ** 2]
    numpy.testing.assert_allclose(nb.jit(f)(x), expected)
    numpy.testing.assert_allclose(nb.vmap(f)(numpy.stack([x, 2 * x]))[0], expected)
    jacobian = [[x[1], x[0], 0], [0, 1, 2 * x[2]]]
    numpy.testing.assert_allclose(nb.jacrev(f)(x), jacobian)
    numpy.testing.assert_allclose(nb.jacfwd(f)(x), jacobian)
    hessian = nb.hessian(lambda x: np.sum(f(x)))(x)
    numpy.testing.assert_allclose(hessian, [[0, 1, 0], [1, 0, 0], [0, 0, 2]], atol=1e-12)
    with pytest.raises(TracedValueError):
        nb.grad(lambda x: float(np.array([x[0]])[0]))(x)
