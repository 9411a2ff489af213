"""`scipy.fft` in code that `differentiable_source` runs: SciPy's own values, and derivatives of linear maps."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.fft

import nbgrad as nb
from nbgrad import differentiable_source

pytestmark = pytest.mark.unoptimized

RNG = np.random.default_rng(6)
X = RNG.normal(size=(3, 5))
ONE_AXIS = ["dct", "idct", "dst", "idst"]
MANY_AXES = ["dctn", "idctn", "dstn", "idstn"]
OPTIONS = list(itertools.product((1, 2, 3, 4), (None, "ortho", "forward", "backward"), (None, True, False)))


def unit(k: int) -> np.ndarray:
    return np.eye(X.size)[k].reshape(X.shape)


@pytest.mark.parametrize("name", ONE_AXIS)
def test_types_norms_and_orthogonality(name: str) -> None:
    theirs = getattr(scipy.fft, name)
    weights = RNG.normal(size=X.shape)
    for kind, norm, orthogonalize in OPTIONS:
        ours = differentiable_source(lambda x: theirs(x, kind, norm=norm, orthogonalize=orthogonalize))  # noqa: B023
        want = theirs(X, kind, norm=norm, orthogonalize=orthogonalize)
        case = f"type {kind}, {norm}, {orthogonalize}"
        value, gradient = nb.value_and_grad(lambda x: np.sum(ours(x) * weights))(X)  # noqa: B023
        np.testing.assert_allclose(nb.jit(ours)(X), want, rtol=1e-13, atol=1e-14, err_msg=case)
        np.testing.assert_allclose(value, np.sum(want * weights), rtol=1e-13, err_msg=case)
        columns = [theirs(unit(k), kind, norm=norm, orthogonalize=orthogonalize) for k in range(X.size)]
        adjoint = [np.sum(column * weights) for column in columns]
        np.testing.assert_allclose(gradient.ravel(), adjoint, rtol=1e-12, atol=1e-13, err_msg=case)
        tangent = nb.jvp(ours, X, weights)[1]
        want = theirs(weights, kind, norm=norm, orthogonalize=orthogonalize)
        np.testing.assert_allclose(tangent, want, rtol=1e-12, atol=1e-13, err_msg=case)


@pytest.mark.parametrize("name", [*ONE_AXIS, *MANY_AXES])
def test_points_axes_and_dtypes(name: str) -> None:
    theirs = getattr(scipy.fft, name)
    options: dict[str, Any] = (
        {"n": 4, "axis": 0, "workers": 1} if name in ONE_AXIS else {"s": (6, 2), "axes": (1, 0), "overwrite_x": False}
    )
    ours = differentiable_source(lambda x: theirs(x, **options))
    for x in (X, X + 1j * X[::-1], X.astype(np.float32), np.arange(15).reshape(3, 5)):
        want = theirs(x, **options)
        got = nb.jit(ours)(x)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-13 if want.dtype.itemsize >= 8 else 1e-5, atol=1e-5)
    rows = np.stack([X, 2 * X])
    np.testing.assert_allclose(nb.vmap(ours)(rows)[1], 2 * theirs(X, **options), rtol=1e-13)
    nb.check_grads(lambda x: np.sin(ours(x)), (X,), order=2)


def test_what_a_transform_does_not_take_is_an_error() -> None:
    for function, text in (
        (lambda x: scipy.fft.dct(x, 5), "type=5 is not supported"),
        (lambda x: scipy.fft.dct(x, 1, n=1), "at least two points"),
        (lambda x: scipy.fft.dst(x, norm="other"), "norm=.other. is not supported"),
        (lambda x: scipy.fft.dctn(x, s=(0,), axes=(0,)), "at least one point"),
    ):
        with pytest.raises(ValueError, match=text):
            nb.grad(differentiable_source(function))(X)


def test_multimethods_of_plain_arrays() -> None:
    for name in [*ONE_AXIS, *MANY_AXES, "fft", "irfftn", "hfft2", "ihfftn"]:
        theirs = getattr(scipy.fft, name)
        found = differentiable_source(lambda x: theirs(x), modules=["scipy"])(X)  # noqa: B023
        np.testing.assert_array_equal(found, theirs(X), err_msg=name)


@pytest.mark.parametrize("name", ["hfft2", "hfftn", "ihfft2", "ihfftn"])
def test_hermitian_transforms_of_several_axes(name: str) -> None:
    theirs = getattr(scipy.fft, name)
    ours = differentiable_source(lambda x: theirs(x, (4, 4), norm="ortho"))
    np.testing.assert_allclose(nb.jit(ours)(X), theirs(X, (4, 4), norm="ortho"), rtol=1e-12, atol=1e-13)


def test_a_transform_that_scipy_writes_in_python() -> None:
    """The fast Hankel transform is linear in its samples."""
    ours = differentiable_source(lambda a: scipy.fft.fht(a, 0.1, 1.5, bias=0.2))
    a, direction = X[0, :4], X[1, :4]
    np.testing.assert_allclose(ours(a), scipy.fft.fht(a, 0.1, 1.5, bias=0.2), rtol=1e-13)
    tangent = nb.jvp(ours, a, direction)[1]
    np.testing.assert_allclose(tangent, scipy.fft.fht(direction, 0.1, 1.5, bias=0.2), rtol=1e-10, atol=1e-12)
    gradient = nb.grad(differentiable_source(lambda a: np.sum(scipy.fft.fht(a, 0.1, 1.5))))(a)
    np.testing.assert_allclose(gradient @ direction, scipy.fft.fht(direction, 0.1, 1.5).sum(), rtol=1e-10)
