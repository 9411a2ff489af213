"""Functions of nbgrad in graphs of PyTensor and models of PyMC. The derivatives are those that PyTensor finds."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized(but=16)

X, W = np.array([0.5, 1.0, -2.0]), np.array([1.0, 2.0, 3.0])


def energy(x: Any, w: Any) -> Any:
    return np.sum(np.sin(x) * w * x)


def parts(x: Any, w: Any) -> Any:
    return x * w, np.sum(x**3), np.argmax(x)


@pytest.fixture
def pytensor() -> Any:
    """The library, with graphs that run as they are, without a C compiler."""
    module = pytest.importorskip("pytensor")
    with module.config.change_flags(mode="FAST_COMPILE"):
        yield module


def test_values_and_derivatives_are_those_of_pytensor(pytensor: Any) -> None:
    pt = pytensor.tensor
    function = nb.interop.pytensor_function(energy)

    def own(x: Any, w: Any) -> Any:
        return pt.sum(pt.sin(x) * w * x)

    for dtype, rtol in (("float64", 1e-12), ("float32", 1e-5)):
        x, w = pt.vector("x", dtype=dtype), pt.vector("w", dtype=dtype)
        assert function(x, w).type == pt.scalar(dtype=dtype).type
        given = X.astype(dtype), W.astype(dtype)
        results = []
        for f in (function, own):
            slopes = pytensor.grad(f(x, w), [x, w])
            twice = pytensor.grad(pt.sum(slopes[0] * w), [x, w])
            results.append(pytensor.function([x, w], [f(x, w), *slopes, *twice])(*given))
        for found, expected in zip(*results, strict=True):
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, rtol=rtol)


def test_several_results_and_lengths_that_pytensor_does_not_know(pytensor: Any) -> None:
    pt = pytensor.tensor
    x, w, k = pt.dvector("x"), pt.dvector("w"), pt.lvector("k")
    product, total, place = nb.interop.pytensor_function(parts)(x, w)
    assert [one.type.ndim for one in (product, total, place)] == [1, 0, 0] and place.type.dtype == "int64"
    assert product.type.shape == (None,)
    slopes = pytensor.grad(pt.sum(product * x) + total, [x, w])
    found = pytensor.function([x, w], [product.shape[0], place, *slopes])(X, W)
    for one, expected in zip(found, (3, 1, 2 * X * W + 3 * X**2, X**2), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-12)
    gathered = nb.interop.pytensor_function(lambda x, k: 2.0 * x[k])(x, k)
    counted = pytensor.function([x, k], pytensor.grad(pt.sum(gathered), x))(X, np.array([0, 0, 2]))
    np.testing.assert_array_equal(counted, [4.0, 0.0, 2.0])
    known = nb.interop.pytensor_function(lambda a, x: a @ x)(np.ones((2, 3)), X)
    assert known.type.shape == (2,)


def test_operations_are_equal_where_functions_are_and_are_pickled_by_them(pytensor: Any) -> None:
    x, w = pytensor.tensor.dvectors("x", "w")
    operations = [nb.interop.pytensor_function(energy)(x, w).owner.op for _ in range(2)]
    operations.append(pickle.loads(pickle.dumps(operations[0])))
    assert operations[0] == operations[1] == operations[2] != nb.interop.pytensor_function(parts)(x, w)[0].owner.op
    assert str(operations[0]) == "nbgrad(energy)"


def test_wrong_functions_and_shapes(pytensor: Any) -> None:
    x = pytensor.tensor.dvector("x")
    with pytest.raises(TypeError, match="must return an array or a tuple of arrays, but returned str"):
        nb.interop.pytensor_function(lambda x: "text")(x)
    with pytest.raises(TypeError, match="complex arguments or results"):
        nb.interop.pytensor_function(np.fft.rfft)(x)
    limited = nb.interop.pytensor_function(lambda x: np.zeros(10) if x.shape[0] >= 10 else 2.0 * x)(x)
    with pytest.raises(ValueError, match=r"returned an array of shape \(3,\), where PyTensor expects \(10,\)"):
        pytensor.function([x], limited)(X)


def test_the_mode_of_a_pymc_model(pytensor: Any) -> None:
    """Of a Gaussian prior and likelihood: the mean of the data and of the prior, weighted by the precisions."""
    pm = pytest.importorskip("pymc")
    data = np.array([1.0, 2.0, 4.0])
    likelihood = nb.interop.pytensor_function(lambda mean: -0.5 * np.sum((data - mean) ** 2 / 0.25))
    with pm.Model():
        pm.Potential("data", likelihood(pm.Normal("mean", 0.0, 1.0)))
        best = pm.find_MAP(progressbar=False)
    np.testing.assert_allclose(best["mean"], 4.0 * data.sum() / (4.0 * data.size + 1.0), rtol=1e-5)
