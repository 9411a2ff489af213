"""Arrays of other libraries as operands, arguments and indices: pandas, xarray, and whatever else is array-like.

pandas, xarray and NumPy say what is right. What would lose labels, a mask, a unit or the gradient is an error.
"""

from __future__ import annotations

import array
import copy
import datetime
import decimal
import fractions
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Tensor
from nbgrad.errors import DtypeError, TracedValueError

pytestmark = pytest.mark.unoptimized

W = np.array([3.0, 4.0, 5.0])
X = np.array([1.0, 2.0, 4.0])


# ----- pandas: the Tensor computes, with the values -----

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name) for name in "add sub mul truediv floordiv mod pow lt le gt ge eq ne".split()},
    "divmod": divmod,
    "np.multiply": np.multiply,
    "np.arctan2": np.arctan2,
}
LABELS = ["a", "b", "c"]


def reflected(f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: f(b, a)


@pytest.mark.parametrize("kind", ["Series", "Index", "DataFrame"])
@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_with_pandas_in_both_orders(name: str, kind: str) -> None:
    pd = pytest.importorskip("pandas")
    labelled = {
        "Series": lambda: pd.Series(X, index=LABELS),
        "Index": lambda: pd.Index(X),
        "DataFrame": lambda: pd.DataFrame(np.stack([X, X + 1]), columns=LABELS),
    }[kind]()
    values = labelled.to_numpy()
    for f in (OPERATORS[name], reflected(OPERATORS[name])):
        several = name == "divmod"
        if not (kind == "Index" and name.startswith("np.")):
            # An Index computes ufuncs by itself, and asks for the values: an error while recording, see below.
            found, expected = f(labelled, Tensor(W)), f(values, W)
            for one, value in zip(found if several else [found], expected if several else [expected], strict=True):
                assert isinstance(one, Tensor)
                np.testing.assert_allclose(one.asnumpy(), value)
            if not several and name not in ("lt", "le", "gt", "ge", "eq", "ne"):
                expected = nb.grad(lambda w: np.sum(f(Tensor(values), w)))(W)  # noqa: B023
                for transform in (nb.grad, lambda g: nb.jit(nb.grad(g))):
                    found = transform(lambda w: np.sum(f(labelled, w)))(W)  # noqa: B023
                    np.testing.assert_allclose(found, expected)


def test_pandas_in_functions() -> None:
    pd = pytest.importorskip("pandas")
    series, frame = pd.Series(X, index=LABELS), pd.DataFrame({"u": X, "v": W}, index=LABELS)
    m = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
    table: list[tuple[Callable[[Any, Any, Any], Any], Any]] = [
        (lambda w, s, d: np.dot(w, s), W),
        (lambda w, s, d: w @ s, W),
        (lambda w, s, d: np.sum(np.where(s > 1.5, w, s)), W),
        (lambda w, s, d: np.sum(np.concatenate([s, w**2])), W),
        (lambda w, s, d: np.sum(w[:2] @ d.T), W),
        (lambda w, s, d: np.einsum("i,ij,ij->", s, w, d), m),
        (lambda w, s, d: np.sum(np.maximum(s, w)), W),
        (lambda w, s, d: np.interp(w, s, s**2).sum(), W / 2 + 0.1),
        (lambda w, s, d: np.sum(s["b"] * w + s.mean()), W),
        (lambda w, s, d: np.sum(d["u"] * w) + np.sum(d.loc["a"] * w[:2]), W),
        (lambda w, s, d: np.sum(s.map(lambda v: v * w[0])), W),
    ]
    for f, w in table:
        value, gradient = nb.value_and_grad(f)(w, series, frame)
        np.testing.assert_allclose(value, f(w, series, frame))
        step = 1e-6 * np.random.default_rng(0).standard_normal(w.shape)
        slope = (f(w + step, series, frame) - f(w - step, series, frame)) / 2
        np.testing.assert_allclose(np.sum(gradient * step), slope, rtol=1e-5)


def test_pandas_values_are_those_of_the_call() -> None:
    """What is computed later does not see what is written to a Series afterwards."""
    pd = pytest.importorskip("pandas")
    series = pd.Series(X.copy())
    later = Tensor(W) * series
    series.iloc[0] = 100.0
    np.testing.assert_array_equal(later.asnumpy(), W * X)
    buffer = array.array("d", X)
    later = Tensor(W) * memoryview(buffer) if False else np.multiply(Tensor(W), buffer)
    buffer[0] = 100.0
    np.testing.assert_array_equal(later.asnumpy(), W * X)


def test_pandas_where_labels_or_gradients_would_be_lost() -> None:
    pd = pytest.importorskip("pandas")
    series, frame = pd.Series(X, index=LABELS), pd.DataFrame({"u": X, "v": W})
    square: Callable[[Any], Any] = lambda x: np.sum(x * x)  # noqa: E731
    for value in (series, frame, pd.Index(X)):
        for transform in (nb.grad, nb.value_and_grad, nb.jit, nb.jacrev, nb.jacfwd, nb.hessian):
            with pytest.raises(DtypeError, match=r"pandas\.\w*Index|pandas\.(Series|DataFrame)") as caught:
                transform(square)(value)
            assert "x.to_numpy()" in str(caught.value)
    foreign: list[Callable[[], Any]] = [
        lambda: nb.jvp(square, (series,), (series,)),
        lambda: nb.jvp(square, (X,), (series,)),
        lambda: nb.vjp(np.square, X)[1](series),
        lambda: nb.grad(np.square, sens_param=True)(X, series),
        lambda: nb.vmap(square)(series),
        lambda: nb.hvp(square, X, series),
    ]
    for call in foreign:
        with pytest.raises(DtypeError, match=r"pandas\.Series.*x\.to_numpy\(\)"):
            call()
    with pytest.raises(DtypeError, match="to_numpy"):
        nb.grad(lambda p: np.sum(p["w"] * 2))({"w": series})
    asks_pandas: list[Callable[[Any], Any]] = [
        lambda w: np.sum(frame @ w),
        lambda w: np.sum(frame.dot(w)),
        lambda w: np.sum(frame["u"] @ np.stack([w[0], w[1], w[0]])),
        lambda w: np.sum(np.multiply(pd.Index(W[:2]), w)),
        lambda w: pd.Series(w).sum(),
        lambda w: pd.DataFrame({"a": w}).to_numpy().sum(),
        lambda w: frame.mul(w).sum().sum(),
    ]
    for f in asks_pandas:
        with pytest.raises(TracedValueError, match=r"pandas.*to_numpy.*test_foreign_arrays\.py"):
            nb.grad(f)(W[:2])
    np.testing.assert_array_equal(nb.grad(lambda w: np.sum(frame.to_numpy() @ w))(W[:2]), [7.0, 12.0])


def test_pandas_as_an_index() -> None:
    pd = pytest.importorskip("pandas")
    series = pd.Series([1.0, -2.0, 4.0], index=LABELS)
    table: list[Callable[[Any], Any]] = [
        lambda x: x[series > 0],
        lambda x: x[pd.Series([2, 0])],
        lambda x: x[pd.Index([1, 1])],
        lambda x: np.take(x, pd.Series([2, 0])),
    ]
    for f in table:
        np.testing.assert_array_equal(f(Tensor(W)).asnumpy(), f(W))
        found = nb.grad(lambda x: np.sum(f(x) ** 2))(W)  # noqa: B023
        np.testing.assert_array_equal(found, 2 * np.bincount(f(np.arange(3)), minlength=3) * W)
    x = Tensor(W)
    x[series > 0] = 7.0
    assert x.asnumpy().tolist() == [7.0, 4.0, 7.0]
    with pytest.raises(IndexError, match="must hold integers or booleans"):
        x[series]


def test_pandas_that_are_no_numbers() -> None:
    pd = pytest.importorskip("pandas")
    table = {
        "Python objects": pd.Series(["a", 1.0, None], dtype=object),
        "dates": pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"])),
        "times": pd.Series(pd.to_timedelta([1, 2, 3], unit="s")),
    }
    for what, series in table.items():
        with pytest.raises(DtypeError, match=what):
            np.concatenate([Tensor(W), series])
    mixed = pd.DataFrame({"u": X, "name": LABELS})
    with pytest.raises(DtypeError, match=r"pandas\.DataFrame holds"):
        Tensor(mixed)
    np.testing.assert_array_equal(Tensor(mixed[["u"]]).asnumpy(), X[:, None])
    whole = pd.Series([1, 2, 3], dtype="Int64")
    np.testing.assert_array_equal((Tensor(W) * whole).asnumpy(), W * [1, 2, 3])
    known = (pd.array([1, 2, 3]), pd.array([1.0, 2.0, 3.0]), pd.arrays.SparseArray([1.0, 2.0, np.nan]))
    for values in known:
        for found in (values * Tensor(W), Tensor(W) * values):
            np.testing.assert_array_equal(found.asnumpy(), np.asarray(values) * W)
    missing = (
        pd.Series([1, None, 3], dtype="Int64"),
        pd.array([1.0, None, 3.0]),
        pd.array([True, None, False]),
        pd.DataFrame({"u": pd.array([1, 2, 3]), "v": pd.array([1, None, 3])}),
    )
    for values in missing:
        with pytest.raises(DtypeError, match=r"missing values.*na_value"):
            Tensor(W[:, None]) * values
    for values in (pd.Categorical([1, 2, 3]), pd.Series([1, 2, 3], dtype="category")):
        for one, other in ((values, Tensor(W)), (Tensor(W), values)):
            with pytest.raises(DtypeError, match="categories"):
                one * other
    with pytest.raises(DtypeError, match="dates"):
        Tensor(W) * pd.date_range("2020", periods=3)


# ----- xarray: it computes, and keeps its labels -----


@pytest.mark.parametrize("name", [name for name in OPERATORS if name != "divmod"])
def test_every_operator_with_xarray_in_both_orders(name: str) -> None:
    xr = pytest.importorskip("xarray")
    labelled = xr.DataArray(X, dims="t", coords={"t": [10, 20, 30]})
    for f in (OPERATORS[name], reflected(OPERATORS[name])):
        for one in (labelled, labelled.variable):
            found = f(one, Tensor(W))
            assert type(found) is type(one) and found.dims == ("t",) and isinstance(found.data, Tensor)
            np.testing.assert_allclose(found.data.asnumpy(), f(X, W))
            if name not in ("lt", "le", "gt", "ge", "eq", "ne"):
                expected = nb.grad(lambda w: np.sum(f(Tensor(X), w)))(W)  # noqa: B023
                np.testing.assert_allclose(nb.grad(lambda w: np.sum(f(one, w).data))(W), expected)  # noqa: B023
        assert f(labelled, Tensor(W)).coords["t"].to_numpy().tolist() == [10, 20, 30]


def test_xarray_in_functions() -> None:
    xr = pytest.importorskip("xarray")
    a = xr.DataArray(X, dims="t", coords={"t": [10, 20, 30]}, name="a")
    table: list[Callable[[Any], Any]] = [
        lambda w: np.dot(w, a),
        lambda w: np.sum(np.concatenate([a, w**2])),
        lambda w: np.sum(np.where(a.values > 1.5, w, a)),
        lambda w: (a * w).sum().data,
        lambda w: (a * w).sel(t=20).data * 2.0,
        lambda w: (a * w).isel(t=slice(1, None)).mean(skipna=False).data,
        lambda w: np.exp(a * w).data.sum(),
        lambda w: (a * w).std().data,
        lambda w: (a * w).where(a > 1.5).sum().data,
        lambda w: (a * w).where(a > 1.5, 0.5).prod().data,
        lambda w: xr.dot(a, a * w).data,
        lambda w: xr.concat([a * w, a], "u").max("u").sum().data,
        lambda w: (a * w).shift(t=1).fillna(2.0).cumsum("t").sum().data,
        lambda w: (a * w).rolling(t=2).mean().sum().data,
        lambda w: (a * w).differentiate("t").sum().data + (a * w).integrate("t").data,
        lambda w: xr.apply_ufunc(np.tanh, a * w).quantile(0.4).data,
        lambda w: (a * w + xr.DataArray([1.0, 2.0], dims="t", coords={"t": [20, 30]})).sum().data,
    ]
    for f in table:
        value, gradient = nb.value_and_grad(f)(W)
        as_array = f(W)
        np.testing.assert_allclose(value, as_array)
        step = np.array([1e-6, -2e-6, 3e-6])
        np.testing.assert_allclose(np.sum(gradient * step), (f(W + step) - f(W - step)) / 2, rtol=1e-5)
        np.testing.assert_allclose(nb.jit(f)(W), as_array)


def test_xarray_where_labels_would_be_lost() -> None:
    xr = pytest.importorskip("xarray")
    a = xr.DataArray(X, dims="t")
    for transform in (nb.grad, nb.jit, nb.jacrev):
        with pytest.raises(DtypeError, match=r"xarray\.DataArray.*x\.values"):
            transform(lambda x: np.sum(x * x))(a)
        with pytest.raises(DtypeError, match=r"returned a xarray\.DataArray.*\.data"):
            transform(lambda w: a * w)(W)
    with pytest.raises(DtypeError, match=r"xarray\.Dataset"):
        np.concatenate([Tensor(W), a.to_dataset(name="a")])
    with pytest.raises(TypeError):
        Tensor(W) @ a


# ----- Whatever else is array-like -----


class WithArray:
    """An array of some library, by NumPy's protocol."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.values if dtype is None else self.values.astype(dtype)


class WithInterface:
    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.__array_interface__ = values.__array_interface__


class WithDLPack:
    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


TAKEN: dict[str, Callable[[np.ndarray], Any]] = {
    "__array__": WithArray,
    "__array_interface__": WithInterface,
    "memoryview": memoryview,
    "array.array": lambda x: array.array("d", x),
    "list": list,
    "memmap": lambda x: x.view(np.memmap),
    "other byte order": lambda x: x.astype(">f8"),
    "read-only": lambda x: np.frombuffer(x.tobytes()),
}


@pytest.mark.parametrize("kind", TAKEN)
def test_values_of_other_arrays_are_taken(kind: str) -> None:
    given = TAKEN[kind](X.copy())
    np.testing.assert_array_equal(Tensor(given).asnumpy(), X)
    np.testing.assert_array_equal(np.multiply(Tensor(W), given).asnumpy(), W * X)
    np.testing.assert_array_equal(nb.grad(lambda w: np.dot(w, given))(W), X)
    if kind not in ("memoryview", "array.array", "__array_interface__"):
        np.testing.assert_array_equal((given * Tensor(W)).asnumpy(), W * X)
        np.testing.assert_array_equal((Tensor(W) * given).asnumpy(), W * X)


def test_foreign_arrays_as_arguments_of_jit() -> None:
    """They could change without notice, and some compare by identity."""
    for given in (WithArray(X), WithInterface(X), WithDLPack(X), memoryview(X.copy()), array.array("d", X)):
        with pytest.raises(DtypeError, match=r"jit takes ndarrays, Tensors and numbers, but got a.*np\.asarray\(x\)"):
            nb.jit(lambda w, x: np.sum(w) + 1)(W, given)


class Metres(np.ndarray):
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [np.asarray(x) if isinstance(x, Metres) else x for x in inputs]
        if any(isinstance(x, Tensor) for x in plain):
            return NotImplemented
        return getattr(ufunc, method)(*plain, **options)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "masked": (lambda: np.ma.masked_array(X, [True, False, False]), "mask"),
    "matrix": (lambda: np.matrix(np.eye(3)), r"np\.matrix.*np\.asarray"),
    "units": (lambda: X.view(Metres), r"Metres.*arithmetic of its own"),
    "records": (lambda: np.zeros(3, [("a", "f8")]), "dtype"),
    "record array": (lambda: np.rec.array(np.zeros(3, [("a", "f8")])), "records"),
    "dates": (lambda: np.array(["2020-01-01"] * 3, "M8[D]"), "datetime64"),
    "times": (lambda: np.array([1, 2, 3], "m8[s]"), "timedelta64"),
    "objects": (lambda: np.array([1.0, None, "x"], object), "object"),
    "text": (lambda: np.array(["a", "b", "c"]), "dtype"),
    "list of text": (lambda: ["a", "b", "c"], "dtype"),
    "decimals": (lambda: [decimal.Decimal(1)] * 3, "dtype object"),
    "fractions": (lambda: [fractions.Fraction(1, 3)] * 3, "dtype object"),
    "long doubles": (lambda: X.astype(np.longdouble), "64 bits"),
}
if np.dtype(np.longdouble).itemsize == 8:
    del REFUSED["long doubles"]


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("kind", REFUSED)
def test_what_means_more_than_its_values_is_refused(kind: str) -> None:
    make, match = REFUSED[kind]
    given = make()
    ways: list[Callable[[], Any]] = [
        lambda: np.multiply(Tensor(W), given),
        lambda: np.concatenate([Tensor(W), given]),
        lambda: Tensor(W) + given,
        lambda: Tensor(given),
        lambda: nb.grad(lambda w: np.sum(np.multiply(w, given)))(W),
    ]
    if isinstance(given, np.ndarray) and given.dtype.kind == "f":
        ways += [
            lambda: nb.grad(lambda x: np.sum(x))(given),
            lambda: nb.jit(lambda x: np.sum(x))(given),
        ]
        if kind != "masked":
            ways.append(lambda: given + Tensor(W))
    for way in ways:
        with pytest.raises(DtypeError, match=match):
            way()


def test_masked_arrays_compute_themselves_where_they_come_first() -> None:
    masked = np.ma.masked_array(X, [True, False, False])
    found = masked + Tensor(W)
    assert isinstance(found, np.ma.MaskedArray)
    assert found.mask.tolist() == [True, False, False] and found[1:].tolist() == [6.0, 9.0]
    with pytest.raises(TracedValueError):
        nb.grad(lambda w: np.sum(masked + w))(W)


@pytest.mark.parametrize("value", [decimal.Decimal(1), fractions.Fraction(1, 3), datetime.date(2020, 1, 1), {1}, None])
def test_python_objects_are_no_operands(value: Any) -> None:
    for f in (operator.mul, operator.add, operator.lt):
        for a, b in ((Tensor(W), value), (value, Tensor(W))):
            with pytest.raises(TypeError):
                f(a, b)
    with pytest.raises(DtypeError):
        np.multiply(Tensor(W), value)


def test_a_compiled_function_is_not_called_with_a_mask() -> None:
    f = nb.jit(lambda x: np.sum(x * 2))
    for _ in range(3):
        f(X)
    with pytest.raises(DtypeError, match="mask"):
        f(np.ma.masked_array(X, [True, False, False]))
    with pytest.raises(DtypeError, match="arithmetic of its own"):
        f(X.view(Metres))
    assert f(X.view(np.memmap)) == 14.0


# ----- Dtypes -----


def test_dtypes_pass_for_numpys() -> None:
    """Others' code asks `isinstance(x.dtype, np.dtype)`, and takes dtypes apart."""
    for name in ("bool", "int8", "uint64", "float16", "float32", "float64", "complex128"):
        dtype = Tensor(np.zeros(2, name)).dtype
        assert isinstance(dtype, np.dtype) and isinstance(dtype, type(nb.float32))
        assert pickle.loads(pickle.dumps(dtype)) is copy.copy(dtype) is copy.deepcopy(dtype) is dtype
        assert np.zeros(2, dtype).dtype == np.empty(0).astype(dtype).dtype == np.promote_types(dtype, "bool") == name
        assert (dtype.kind, dtype.itemsize, dtype.names) == (np.dtype(name).kind, np.dtype(name).itemsize, None)
    pd = pytest.importorskip("pandas")
    assert pd.Series([1.0], dtype=nb.float32).dtype == np.float32


def test_functions_of_this_namespace_keep_xarrays_labels() -> None:
    xr = pytest.importorskip("xarray")
    a = xr.DataArray(X, dims="t", coords={"t": [10, 20, 30]}, name="a")
    for name, operands in (("sin", (a,)), ("add", (a, 2.0)), ("maximum", (1.5, a)), ("isnan", (a.variable,))):
        found, want = getattr(nb.numpy, name)(*operands), getattr(np, name)(*operands)
        assert type(found) is type(want) and found.identical(want)
    mixed = nb.numpy.multiply(Tensor(W), a)
    assert mixed.dims == ("t",) and isinstance(mixed.data, Tensor)
    gradient = nb.grad(lambda w: nb.numpy.exp(nb.numpy.multiply(a, w)).data.sum())(W)
    np.testing.assert_allclose(gradient, X * np.exp(X * W))
