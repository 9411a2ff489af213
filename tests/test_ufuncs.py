"""Every ufunc on Tensors: values and dtypes are NumPy's for all pairs of dtypes, and derivatives are right."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import scipy.special

from nbgrad.errors import ArgumentError, DtypeError, RangeError, ShapeError, TracedValueError
from nbgrad.functions import table as numpy_table
from nbgrad.functions.elementwise import pointwise as elementwise
from nbgrad.functions.elementwise import special_functions as special
from nbgrad.functions.elementwise import ufunc_functions, ufuncs
from nbgrad.graph.differentiate import jvp, vjp
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, constant, literal, placeholder
from nbgrad.graph.trace import recording
from nbgrad.record.numbers import number
from nbgrad.record.promotion import kind_of
from nbgrad.record.tensor import Tensor
from nbgrad.transforms.arguments import lift

pytestmark = pytest.mark.unoptimized

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh "
    "arctanh negative positive absolute fabs sign reciprocal square conjugate floor ceil trunc rint modf spacing "
    "deg2rad rad2deg radians degrees invert isnan isinf isfinite signbit logical_not frexp bitwise_count"
).split()
BINARY = (
    "add subtract multiply divide power float_power remainder fmod floor_divide divmod maximum minimum fmax fmin "
    "copysign hypot arctan2 logaddexp logaddexp2 nextafter heaviside bitwise_and bitwise_or bitwise_xor left_shift "
    "right_shift gcd lcm equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor"
).split()
UNAVAILABLE = {"isnat"}
PRODUCTS = {"matmul", "vecdot", "matvec", "vecmat"}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def sample(dtype: str, second: bool = False) -> np.ndarray:
    """A few values that suit every function; the second operand of shifts and powers must be small and not negative."""
    if dtype == "bool":
        return np.array([True, False, True, False])
    if dtype.startswith("float"):
        return np.array([0.5, -1.25, 0.0, 2.0], dtype)[:: -1 if second else 1].copy()
    values = np.array([1, 3, 0, 2]) if second or dtype.startswith("uint") else np.array([1, -3, 0, 2])
    return values.astype(dtype)


def assert_same(ours: object, theirs: object, context: object = None) -> None:
    """Values within rounding, and exactly the same dtype and shape."""
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple) and len(ours) == len(theirs), context
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b, context)
        return
    assert isinstance(ours, Tensor), context
    expected = np.asarray(theirs)
    assert ours.dtype == expected.dtype, (context, ours.dtype, expected.dtype)
    assert ours.shape == expected.shape, context
    tolerance = {2: 2e-3, 4: 1e-6}.get(expected.dtype.itemsize, 1e-13)
    np.testing.assert_allclose(ours.asnumpy(), expected, rtol=tolerance, atol=0, err_msg=str(context))


def compare(function: Callable, arrays: Sequence[object], context: object) -> None:
    """The function on Tensors and on arrays: the same result, or both a TypeError."""
    tensors = [lift(a) if isinstance(a, np.ndarray) else a for a in arrays]
    try:
        expected = function(*arrays)
    except TypeError:
        with pytest.raises(TypeError):
            function(*tensors)
        return
    assert_same(function(*tensors), expected, context)


def test_every_ufunc_of_numpy_is_known_or_listed_as_unavailable():
    names = {f.__name__ for f in vars(np).values() if isinstance(f, np.ufunc)}
    assert names - set(ufuncs.RULES) - UNAVAILABLE - PRODUCTS == set()
    assert names - PRODUCTS - UNAVAILABLE == set(UNARY) | set(BINARY) | {"ldexp"}


@pytest.mark.parametrize("name", UNARY)
def test_unary_values_and_dtypes(name):
    for dtype in DTYPES:
        values = sample(dtype)
        if name == "reciprocal" and values.dtype.kind in "iu":
            values[values == 0] = 1  # the integer 1 / 0 is undefined
        compare(getattr(np, name), [values], (name, dtype))


@pytest.mark.parametrize("name", BINARY)
def test_binary_values_and_dtypes_of_all_pairs(name):
    function = getattr(np, name)
    for first, second in itertools.product(DTYPES, DTYPES):
        compare(function, [sample(first), sample(second, second=True)], (name, first, second))


@pytest.mark.parametrize("name", BINARY)
def test_python_numbers_do_not_widen(name):
    function = getattr(np, name)
    for dtype, value in itertools.product(DTYPES, (True, 2, 2.0, 0.3)):
        compare(function, [sample(dtype), value], (name, dtype, value))
        compare(function, [value, sample(dtype, second=True)], (name, value, dtype))


def test_numpy_scalars_and_lists_are_strong():
    x = np.array([1, 2], np.float32)
    for other in (np.float64(0.5), np.int8(3), [1.5, 2.5], [1, 2], np.array(0.5)):
        assert_same(lift(x) + other, x + np.asarray(other), other)
        assert_same(other + lift(x), np.asarray(other) + x, other)


@pytest.mark.parametrize(
    "name", sorted(name for name in ufuncs.RULES if isinstance(getattr(scipy.special, name, None), np.ufunc))
)
def test_scipy_ufuncs(name):
    function = getattr(scipy.special, name)
    counts = {"bdtr": 1, "bdtrc": 1, "bdtri": 1, "eval_hermite": 0, "eval_hermitenorm": 0}.get(name)
    values = [[0.25, 0.5, 1.5], [0.75, 1.0, 2.5], [0.9, 0.5, 2.0], [0.1, 0.6, -0.3]][: function.nin]
    if function.nin == 5:  # spheroidal functions: order, degree, spheroid, its characteristic value, point
        shape = [[0.0, 1.0, 1.0], [1.0, 2.0, 1.0], [0.5, 1.0, 1.5]]
        value = getattr(scipy.special, f"{name[:3]}_cv")(*shape)
        values = [*shape, value, [0.3, 0.5, -0.2] if "ang" in name else [1.5, 2.0, 2.5]]
    for dtype in ("float32", "float64", "int64", "float16"):
        arrays = [np.array(v).astype("int64" if k == counts else dtype) for k, v in enumerate(values)]
        ours, theirs = function(*[lift(a) for a in arrays]), function(*arrays)
        pairs = [(ours, theirs)] if function.nout == 1 else zip(ours, theirs, strict=True)
        for one, other in pairs:
            assert one.dtype == other.dtype, (name, dtype)
            np.testing.assert_allclose(one, other, rtol=3e-6 if other.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("xlogy", (0.0, 0.0)),
        ("xlog1py", (0.0, -1.0)),
        ("xlog1py", (0.0, np.inf)),
        ("entr", (0.0,)),
        ("entr", (-1.0,)),
        ("rel_entr", (0.0, 0.0)),
        ("rel_entr", (1.0, 0.0)),
        ("kl_div", (0.0, 2.0)),
        ("huber", (1.0, 3.0)),
        ("huber", (-1.0, 3.0)),
        ("pseudo_huber", (0.0, 3.0)),
        ("pseudo_huber", (-1.0, 3.0)),
        ("pseudo_huber", (-1.0, 0.0)),
        ("log_expit", (-800.0,)),
        ("ndtr", (-30.0,)),
    ],
)
def test_scipy_ufuncs_at_their_edges(name, arguments):
    function = getattr(scipy.special, name)
    arrays = [np.array([a]) for a in arguments]
    np.testing.assert_allclose(function(*[lift(a) for a in arrays]), function(*arrays), rtol=1e-12)


def test_int64_with_uint64_compares_exactly():
    a = np.array([-1, 2**53 + 1, 2**63 - 1], np.int64)
    b = np.array([2**64 - 1, 2**53, 2**63], np.uint64)
    for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
        function = getattr(np, name)
        assert_same(function(lift(a), lift(b)), function(a, b), name)
        assert_same(function(lift(b), lift(a)), function(b, a), name)


def test_python_integers_out_of_bounds():
    x = lift(np.array([1, 2], np.uint8))
    with pytest.raises(ArgumentError, match="300 is out of bounds for uint8"):
        _ = x + 300
    assert (x < 300).asnumpy().tolist() == [True, True]
    assert (x == -1).asnumpy().tolist() == [False, False]


def test_integers_to_a_negative_power_are_an_error():
    with pytest.raises(ArgumentError, match="negative integer power -2"):
        _ = Tensor([1, 2]) ** -2
    with pytest.raises(ArgumentError, match="negative integer power -1"):
        _ = Tensor([1, 2]) ** np.array([3, -1])
    with pytest.raises(RangeError, match="make the base a float"):
        _ = Tensor([1, 2]) ** (Tensor([3, -1]) * 1)


def test_numbers_stay_what_they_are_when_they_are_computed():
    """Literals are shared by all graphs: computing one must not change it for the others."""
    assert int(Tensor._of(literal(-2, np.dtype(np.int64)))) == -2
    assert literal(-2, np.dtype(np.int64)).name == "literal"


# ----- Weak numbers -----


def test_operators_keep_python_numbers_weak_and_functions_do_not():
    w = Tensor._of(number(2.0))
    assert kind_of((w * 3)._node) is float and kind_of(np.exp(w)._node) == np.float64
    assert kind_of((Tensor._of(number(2)) * 3)._node) is int
    x = lift(np.array([1.0], np.float32))
    assert ((2.5 * w) * x).dtype == np.float32
    assert (np.where(w > 1, w, 0) * x).dtype == (np.where(True, 2.0, 0) * np.ones(1, np.float32)).dtype
    assert (np.clip(w, 0, 1) * x).dtype == (np.clip(2.0, 0, 1) * np.ones(1, np.float32)).dtype
    assert (scipy.special.erf(w) * x).dtype == (scipy.special.erf(2.0) * np.ones(1, np.float32)).dtype


# ----- Errors -----


def test_errors_say_what_and_where():
    with pytest.raises(ShapeError, match=r"\(2,\) and \(3,\) do not broadcast together in add.*test_ufuncs.py:\d+"):
        _ = Tensor([1.0, 2.0]) + Tensor([1.0, 2.0, 3.0])
    with pytest.raises(DtypeError, match="boolean subtract"):
        _ = Tensor([True]) - Tensor([False])
    with pytest.raises(DtypeError, match=r"floor.*complex"):
        np.floor(Tensor([1.0]) * np.array([1j]))
    with pytest.raises(DtypeError, match="gcd"):
        np.gcd(Tensor([4.5]), Tensor([6]))
    with pytest.raises(TypeError):
        _ = Tensor([1.0]) + "text"
    assert (Tensor([1.0]) == "text") is False


# ----- The protocol -----


def test_out_where_and_dtype():
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    x, out = lift(a), lift(np.zeros(2))
    alias = out
    assert np.add(x, b, out=out) is out and alias.asnumpy().tolist() == [4.0, 6.0]
    plain = np.zeros(2)
    assert np.add(x, b, out=plain) is plain and plain.tolist() == [4.0, 6.0]
    np.multiply(x, b, out=out, where=np.array([True, False]))
    assert out.asnumpy().tolist() == [3.0, 6.0]
    np.multiply(x, b, plain, where=Tensor([False, True]))
    assert plain.tolist() == [4.0, 8.0]
    np.add(1.0, Tensor(2.0), out=out)
    assert out.asnumpy().tolist() == [3.0, 3.0]
    assert np.add(Tensor([1]), 1, dtype=np.float32).dtype == np.float32
    assert np.add(x, 1, dtype=np.float32).dtype == np.float32
    q, r = lift(np.zeros(2)), lift(np.zeros(2))
    np.divmod(x, 2.0, out=(q, r))
    assert q.asnumpy().tolist() == [0.0, 1.0] and r.asnumpy().tolist() == [1.0, 0.0]


def test_options_that_cannot_be_honoured_are_errors():
    x = Tensor([1.0, 2.0])
    with pytest.raises(ArgumentError, match="where="):
        np.sqrt(x, where=np.array([True, False]))
    with pytest.raises(DtypeError, match="cannot be stored"):
        np.add(x, 1.0, out=Tensor([1, 2]))
    with pytest.raises(ShapeError, match="does not fit"):
        np.add(x, Tensor([[1.0], [2.0]]), out=Tensor([1.0, 2.0]))
    with pytest.raises(DtypeError):
        np.add(x, 1.0, dtype=np.int32)
    with pytest.raises(ArgumentError, match="order"):
        np.add(x, 1.0, order="Q")


def test_where_with_out_keeps_gradients():
    data = np.array([1.0, 4.0, 9.0])
    x = placeholder((3,), data.dtype, data)
    out = lift(np.zeros(3))
    np.sqrt(Tensor._of(x), out=out, where=np.array([True, False, True]))
    (g,) = vjp([out._node], [constant(np.ones(3))], [x])
    np.testing.assert_allclose(interpret([g])[0], [0.5, 0.0, 1 / 6])


def test_reduce_accumulate_outer_at():
    a = np.array([[1.0, -2.0, 3.0], [4.0, 0.5, -6.0]])
    x = lift(a)
    for name in ("add", "multiply", "maximum", "minimum"):
        function = getattr(np, name)
        assert_same(function.reduce(x), function.reduce(a))
        assert_same(function.reduce(x, axis=1, keepdims=True), function.reduce(a, axis=1, keepdims=True))
        assert_same(function.reduce(x, axis=None, initial=2.0), function.reduce(a, axis=None, initial=2.0))
        assert_same(function.accumulate(x), function.accumulate(a))
        assert_same(function.accumulate(x, axis=1), function.accumulate(a, axis=1))
    for name in ("logical_and", "logical_or"):
        assert_same(getattr(np, name).reduce(x, axis=1), getattr(np, name).reduce(a, axis=1))
    assert_same(np.logaddexp.reduce(x, axis=1), np.logaddexp.reduce(a, axis=1))
    assert_same(np.add.reduce(x, 1, None, None, True), np.add.reduce(a, 1, None, None, True))
    for name in ("add", "multiply", "maximum", "arctan2"):
        assert_same(getattr(np, name).outer(x, [1.0, 2.0]), getattr(np, name).outer(a, [1.0, 2.0]))
    target, plain = lift(np.zeros(3)), np.zeros(3)
    for array in (target, plain):
        np.add.at(array, [0, 0, 2], [1.0, 2.0, 4.0])
        np.subtract.at(array, np.array([0]), 0.5)
        np.add.at(array, slice(1, None), 1.0)
    assert_same(target, plain)
    np.add.at(plain, Tensor([1]), Tensor([2.0]))
    assert plain.tolist() == [2.5, 3.0, 5.0]
    integers, expected = Tensor([1, 2]), np.array([1, 2])
    np.add.at(integers, [0], 2.5)
    np.add.at(expected, [0], 2.5)
    assert integers.tolist() == expected.tolist()


def test_writing_a_traced_result_to_an_ndarray_is_an_error():
    x = Tensor._of(placeholder((2,), np.dtype(float), np.ones(2)))
    target = np.zeros(2)
    with pytest.raises(TracedValueError, match=r"nbgrad\.numpy"), recording():
        target += x
    with pytest.raises(TracedValueError), recording():
        np.add.at(target, [0], x[0])
    assert target.tolist() == [0.0, 0.0]


# ----- Derivatives -----

SMOOTH = {
    **{name: [0.3, 0.7] for name in "exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan".split()},
    **{name: [0.3, -0.7] for name in "arcsin arccos arctan sinh cosh tanh arcsinh arctanh negative positive".split()},
    **{name: [0.3, -0.7] for name in "square deg2rad rad2deg fabs".split()},
    **{name: [1.3, 2.7] for name in "arccosh reciprocal absolute conjugate".split()},
}
SMOOTH_BINARY = {
    name: [(1.3, 0.7), (2.5, 1.6)]
    for name in (
        "add subtract multiply divide power float_power maximum minimum fmax fmin hypot arctan2 logaddexp logaddexp2 "
        "copysign remainder fmod"
    ).split()
}


def gradients(function: Callable, *values: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Reverse-mode and forward-mode derivatives of the sum of an elementwise function, per operand."""
    nodes = [placeholder(v.shape, v.dtype, v) for v in values]
    result = function(*[Tensor._of(n) for n in nodes])
    result = result[0] if isinstance(result, tuple) else result
    backward = vjp([result._node], [constant(np.ones(result.shape, result.dtype))], nodes)
    forward = []
    for chosen in range(len(nodes)):
        tangents = [constant(np.ones(n.shape, n.dtype)) if k == chosen else None for k, n in enumerate(nodes)]
        forward.append(jvp([result._node], nodes, tangents)[0])

    def values_of(found: Sequence[Node | None]) -> list[np.ndarray]:
        return [np.zeros(v.shape) if g is None else interpret([g])[0] for g, v in zip(found, values, strict=True)]

    return values_of(backward), values_of(forward)


def differences(function: Callable, *values: np.ndarray) -> list[np.ndarray]:
    """Fourth-order central differences, per operand."""
    h = 1e-3
    result = []
    for k in range(len(values)):

        def at(step: float, k: int = k) -> np.ndarray:
            shifted = function(*[v + step if j == k else v for j, v in enumerate(values)])
            return shifted[0] if isinstance(shifted, tuple) else shifted

        result.append((8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h))
    return result


@pytest.mark.parametrize("name", [*SMOOTH, *SMOOTH_BINARY])
def test_derivatives(name):
    points = np.array(SMOOTH[name] if name in SMOOTH else SMOOTH_BINARY[name])
    values = [points] if points.ndim == 1 else list(points.T)
    function = getattr(np, name)
    backward, forward = gradients(function, *values)
    for ours, theirs, expected in zip(backward, forward, differences(function, *values), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(theirs, ours, rtol=1e-14)


@pytest.mark.parametrize(
    ("function", "point", "expected"),
    [
        (lambda x: np.modf(x)[0], 2.0, 1.0),
        (lambda x: np.modf(x)[0], -2.5, 1.0),
        (lambda x: np.ldexp(x, np.array([3])), 0.7, 8.0),
        (np.spacing, 0.7, 0.0),
        (lambda x: np.heaviside(x, 0.5), 1.0, 0.0),
        (lambda x: np.heaviside(np.zeros(1), x), 1.0, 1.0),
        (np.sinc, 0.0, 0.0),
        (lambda x: np.clip(x, 0.0, 1.0), 0.0, 1.0),
        (lambda x: np.clip(x, 0.0, 1.0), 1.0, 1.0),
        (lambda x: np.clip(x, 0.0, 1.0), 1.5, 0.0),
        (lambda x: np.clip(2.0, 0.0, x), 1.5, 1.0),
        (lambda x: np.nan_to_num(x), np.nan, 0.0),
        (lambda x: np.nan_to_num(x), 3.0, 1.0),
        (lambda x: np.round(x, 1), 0.33, 0.0),
        (lambda x: np.where(x > 0, np.sqrt(x), 0.0), 0.0, 0.0),
        (lambda x: np.where(x > 0, np.log(x), x), -1.0, 1.0),
        (lambda x: np.where(x == 0, 1.0, np.sin(x) / x), 0.0, 0.0),
        (special.relu, 0.0, 0.0),
        (special.relu, 2.0, 1.0),
        (special.softplus, 0.0, 0.5),
        (special.sigmoid, 0.0, 0.25),
        (lambda x: scipy.special.xlog1py(x, 0.5), 0.0, np.log1p(0.5)),
        (lambda x: scipy.special.pseudo_huber(1.0, x), 0.0, 0.0),
        (lambda x: scipy.special.exp10(x), 1.0, 10 * np.log(10)),
        (lambda x: scipy.special.log_expit(x), -1.0, 1 / (1 + np.exp(-1))),
        (lambda x: scipy.special.ndtr(x), 0.0, 1 / np.sqrt(2 * np.pi)),
        (lambda x: scipy.special.entr(x), 0.5, -np.log(0.5) - 1),
        (lambda x: scipy.special.kl_div(x, 2.0), 0.5, np.log(0.25)),
        (lambda x: scipy.special.rel_entr(0.5, x), 2.0, -0.25),
        (lambda x: scipy.special.huber(1.0, x), -3.0, -1.0),
        (lambda x: scipy.special.betaln(x, 1.0), 2.0, -0.5),
        (lambda x: x**2, -3.0, -6.0),
        (lambda x: x**3, -2.0, 12.0),
        (lambda x: x**0, 0.0, 0.0),
        (lambda x: 2.0**x, 1.0, 2 * np.log(2)),
        (lambda x: np.angle(x), -1.0, 0.0),
        (lambda x: abs(x), 0.0, 0.0),
    ],
)
def test_derivatives_at_points(function, point, expected):
    backward, forward = gradients(function, np.array([point]))
    np.testing.assert_allclose(backward[0], [expected], rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(forward[0], [expected], rtol=1e-12, atol=1e-300)


def test_second_derivative_of_softplus_at_zero():
    x = placeholder((1,), np.dtype(float), np.zeros(1))
    ones = constant(np.ones(1))
    (first,) = vjp([special.softplus(Tensor._of(x))._node], [ones], [x])
    (second,) = vjp([first], [ones], [x])
    np.testing.assert_allclose(interpret([second])[0], [0.25])


# ----- Elementwise functions that are no ufuncs -----


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.where(x > 0, x, -1),
        lambda x: np.where([True, False, True, False], x, np.float32(2)),
        lambda x: np.clip(x, -1, 1),
        lambda x: np.clip(x, 0, None),
        lambda x: np.clip(x, None, np.array([0, 1, 2, 3])),
        lambda x: np.clip(x, 1, -1),
        lambda x: np.clip(x, min=0),
        lambda x: x.clip(0, 1),
        lambda x: np.nan_to_num(x),
        lambda x: np.round(x),
        lambda x: np.round(x, 1),
        lambda x: x.round(-1),
        np.isposinf,
        np.isneginf,
        np.isreal,
        np.iscomplex,
        np.real,
        np.imag,
        lambda x: np.isclose(x, 2),
    ],
)
def test_elementwise_functions(function):
    for dtype in ("int8", "int64", "float16", "float32", "float64"):
        a = sample(dtype)
        assert_same(function(lift(a)), function(a), dtype)


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")
def test_fix():
    a = np.array([-1.5, -0.5, 0.5, 2.0])
    np.testing.assert_array_equal(np.fix(lift(a)).asnumpy(), np.trunc(a))


def test_nan_and_infinities():
    a = np.array([np.nan, np.inf, -np.inf, 1.0, -0.0])
    x = lift(a)
    for function in (
        np.nan_to_num,
        lambda v: np.nan_to_num(v, nan=1.0, posinf=2.0, neginf=-2.0),
        lambda v: np.clip(v, 0.0, 1.0),
        lambda v: np.clip(v, np.nan, 1.0),
        lambda v: np.clip(v, np.array(np.nan), 1.0),
        np.sign,
        lambda v: np.modf(v)[0],
        lambda v: np.heaviside(v, 0.5),
        lambda v: np.logical_not(v),
        lambda v: v.astype(bool),
        lambda v: np.isclose(v, v, equal_nan=True),
        lambda v: np.isclose(v, np.inf),
    ):
        assert_same(function(x), function(a))
    assert np.signbit(np.modf(Tensor([-2.0]))[0]).item()
    target = lift(a)
    assert np.nan_to_num(target, copy=False) is target and np.isfinite(target).all()
    np.testing.assert_array_equal(np.sinc(Tensor([0.0, 1.5])), np.sinc(np.float32([0.0, 1.5])))


def test_questions_give_python_bools():
    x = Tensor([1.0, 2.0])
    assert np.allclose(x, [1.0, 2.0 + 1e-9]) is True
    assert np.allclose(x, [1.0, 3.0]) is False
    assert np.array_equal(x, np.array([1.0, 2.0])) is True
    assert np.array_equal(x, np.ones(3)) is False
    assert np.array_equiv(x, Tensor([[1.0, 2.0], [1.0, 2.0]])) is True
    assert np.array_equiv(x, np.ones(3)) is False
    assert np.result_type(x, 1.5) == np.float32 and np.result_type(x, np.float64) == np.float64
    assert np.can_cast(x, np.float64) and not np.iscomplexobj(x)
    assert np.shares_memory(x, x) is True and np.shares_memory(x, x * 1) is False


def test_machine_learning_functions():
    a = np.array([[1.0, 2.0, -np.inf], [1000.0, 1000.0, 0.0]])
    x = lift(a)
    np.testing.assert_allclose(special.logsumexp(x, axis=1), scipy.special.logsumexp(a, axis=1))
    np.testing.assert_allclose(special.logsumexp(x), scipy.special.logsumexp(a))
    assert special.logsumexp(x, axis=(0, 1), keepdims=True).shape == (1, 1)
    np.testing.assert_allclose(special.softmax(x), scipy.special.softmax(a, axis=-1))
    np.testing.assert_allclose(special.log_softmax(x, axis=0), scipy.special.log_softmax(a, axis=0), rtol=1e-12)
    assert special.logsumexp(lift(np.zeros(0))).item() == -np.inf
    np.testing.assert_allclose(special.softplus(Tensor([800.0, -800.0])), [800.0, 0.0])
    np.testing.assert_array_equal(special.relu(Tensor([np.nan, -1.0, 2.0])), np.float32([np.nan, 0, 2]))
    assert special.erf(lift(np.array([1, 2], np.int32))).dtype == np.float64
    assert special.erf(lift(np.array([0.5], np.float16))).dtype == np.float16
    values = [0.25, 0.5]
    for name in ("erf", "erfc", "gammaln", "digamma", "expit", "logit"):
        np.testing.assert_allclose(getattr(special, name)(values), getattr(scipy.special, name)(values), rtol=1e-14)


def test_gradient_of_logsumexp_with_infinite_rows():
    a = np.array([[-np.inf, -np.inf], [-np.inf, 1.0], [0.0, 0.0]])
    x = placeholder(a.shape, a.dtype, a)
    (g,) = vjp([special.logsumexp(Tensor._of(x), axis=1)._node], [constant(np.ones(3))], [x])
    np.testing.assert_allclose(interpret([g])[0], [[0, 0], [0, 1], [0.5, 0.5]])


def test_the_table_lists_every_function_once():
    words = [word.lstrip(".").partition("=")[0] for line in numpy_table.FUNCTIONS.values() for word in line.split()]
    assert len(words) == len(set(words))
    names = [name for line in numpy_table.NAMES.values() for name in line.split()]
    assert len(names) == len(set(names))
    numpy_table.load_all()
    assert all(callable(function) for function in numpy_table.IMPLEMENTATIONS.values())
    assert len(numpy_table.IMPLEMENTATIONS) > 250


def test_public_functions_take_options():
    assert ufunc_functions.add([1], [2], dtype=np.float32).dtype == np.float32
    assert ufunc_functions.exp(0.0).item() == 1.0
    assert elementwise.where([True, False], 1.0, 2.0).asnumpy().tolist() == [1.0, 2.0]
