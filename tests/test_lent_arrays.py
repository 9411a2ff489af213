"""PyTorch's and JAX's arrays on the CPU as arguments: NumPy's values, results of their kind, memory shared.

A third library stands in for both where they are not installed: an array that has nothing but DLPack's methods.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError, DtypeError
from nbgrad.record import foreign_arrays

X = np.array([1.0, 2.0, 4.0], np.float32)


class Array:
    """An array on the CPU that tells nothing but DLPack's protocol."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values if dtype is None else self.values.astype(dtype)


Array.__module__ = "lender.arrays"


@pytest.fixture(params=["stand-in", "torch", "jax"])
def made(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[np.ndarray], Any]:
    """From an ndarray to the library's array."""
    if request.param == "torch":
        torch = pytest.importorskip("torch")
        return lambda array: torch.from_numpy(array.copy())
    if request.param == "jax":
        return pytest.importorskip("jax").numpy.asarray
    lender = ModuleType("lender")
    lender.asarray = Array  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lender", lender)
    monkeypatch.setitem(foreign_arrays.HOST_LIBRARIES, "lender", ("lender", "asarray"))
    return lambda array: Array(array.copy())


def check(found: Any, like: Any, expected: Any) -> None:
    assert type(found) is type(like)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-6)


CALLS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "grad": (nb.grad(lambda x: np.sum(np.sin(x))), np.cos(X)),
    "jit": (nb.jit(np.exp), np.exp(X)),
    "jit of grad": (nb.jit(nb.grad(lambda x: np.sum(np.sin(x)))), np.cos(X)),
    "jit, a number": (nb.jit(lambda x: np.sum(x)), 7.0),
    "vmap": (nb.vmap(lambda x: x * x), X * X),
    "jacrev": (nb.jacrev(np.sin), np.diag(np.cos(X))),
    "jacfwd": (nb.jacfwd(np.sin), np.diag(np.cos(X))),
    "hessian": (nb.hessian(lambda x: np.sum(np.sin(x))), -np.diag(np.sin(X))),
    "vjp": (lambda x: nb.vjp(np.sin, x)[1](x)[0], X * np.cos(X)),
    "jvp": (lambda x: nb.jvp(np.sin, x, x)[1], X * np.cos(X)),
    "value": (lambda x: nb.value_and_grad(lambda x: np.sum(x * x))(x)[0], 21.0),
    "aux": (lambda x: nb.value_and_grad(lambda x: (np.sum(x), 2 * x), has_aux=True)(x)[0][1], 2 * X),
    "dict": (lambda x: nb.grad(lambda p: np.sum(p["a"] ** 2))({"a": x})["a"], 2 * X),
    "keyword": (lambda x: nb.jit(lambda *, x: x + 1)(x=x), X + 1),
    "beside an ndarray": (lambda x: nb.grad(lambda a, b: np.sum(a * b))(x, X), X),
    "cond": (lambda x: nb.cond(True, lambda c: np.max(c, axis=0), lambda c: c, x), 4.0),
    "switch": (lambda x: nb.switch(0, [lambda c: 2 * c], x), 2 * X),
    "checkpoint": (lambda x: nb.checkpoint(np.sin)(x), np.sin(X)),
    "custom_vjp": (lambda x: nb.custom_vjp(np.sin)(x), np.sin(X)),
    "callback": (lambda x: nb.callback(np.sin)(x), np.sin(X)),
    "fori_loop": (lambda x: nb.fori_loop(0, 3, lambda i, c: 2 * c, x), 8 * X),
    "scan": (lambda x: nb.scan(lambda c, a: (c + a, c), np.float32(0), x)[1], [0.0, 1.0, 3.0]),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_of_the_kind_of_the_argument(name: str, made: Callable[[np.ndarray], Any]) -> None:
    fn, expected = CALLS[name]
    x = made(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            check(fn(x), x, expected)


def test_kinds_side_by_side(made: Callable[[np.ndarray], Any]) -> None:
    value, (one, other) = nb.value_and_grad(lambda a, b: np.sum(a * b), (0, 1))(made(X), X)
    check(value, made(X), 21.0)
    check(one, made(X), X)
    check(other, X, X)
    found = nb.jit(lambda a, b: (a + b).sum())(made(X), nb.Tensor(X))
    assert isinstance(found, nb.Tensor) and float(found) == 14.0
    parts = nb.jit(lambda x: {"twice": 2 * x, "text": "x", "count": 3})(made(X))
    check(parts["twice"], made(X), 2 * X)
    assert (parts["text"], parts["count"]) == ("x", 3)


def test_programs_are_those_of_ndarrays(made: Callable[[np.ndarray], Any]) -> None:
    double = nb.jit(lambda x: 2 * x)
    double(X)
    double(made(X))
    assert double.compiled_signatures == 1
    assert "kernel" in str(nb.explain(double, made(X)))


def test_writes_reach_the_memory_or_are_refused(made: Callable[[np.ndarray], Any]) -> None:
    def first(x: Any) -> Any:
        x[0] = 5.0
        return np.sum(x * x)

    for fn in (nb.jit(first), nb.value_and_grad(first)):
        x = made(X)
        if type(x).__module__.startswith("jax"):
            with pytest.raises(ArgumentError, match="read-only"):
                fn(x)
        else:
            fn(x)
            np.testing.assert_array_equal(np.asarray(x), [5.0, 2.0, 4.0])


def test_a_vjp_keeps_the_values_that_it_was_made_with() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    _, back = nb.vjp(lambda x: x * x, x)
    x[0] = 9.0
    np.testing.assert_array_equal(back(np.ones(2))[0], [2.0, 4.0])


def test_out_takes_arrays_of_the_library() -> None:
    torch = pytest.importorskip("torch")
    out = torch.zeros(3)
    assert nb.jit(lambda x: 2 * x)(torch.from_numpy(X), out=out) is out
    np.testing.assert_array_equal(out, 2 * X)


def test_writes_of_vmap_and_to_copies() -> None:
    torch = pytest.importorskip("torch")

    def one_more(row: Any) -> Any:
        row[...] = row + 1
        return np.sum(row)

    rows = torch.zeros(2, 3)
    nb.vmap(one_more)(rows)
    np.testing.assert_array_equal(rows, np.ones((2, 3)))
    for copied in (torch.zeros(2, dtype=torch.complex64).conj(), torch.zeros(1, 3).expand(2, 3)):
        with pytest.raises(ArgumentError, match="read-only"):
            nb.jit(one_more)(copied)
    with pytest.raises(ArgumentError, match="read-only"):
        nb.jit(lambda x: 2 * x)(torch.ones(1, dtype=torch.complex64), out=torch.zeros(1, dtype=torch.complex64).conj())


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:FutureWarning")
def test_tangents_and_traces_of_torch_are_not_cut_silently() -> None:
    torch = pytest.importorskip("torch")
    from torch.fx.experimental.proxy_tensor import make_fx

    x = torch.ones(2)
    with torch.autograd.forward_ad.dual_level(), pytest.raises(ArgumentError, match="tangent"):
        nb.jit(np.sin)(torch.autograd.forward_ad.make_dual(x, x))
    with pytest.raises(ArgumentError, match="recorded by PyTorch"):
        make_fx(lambda x: nb.jit(np.sin)(x))(x)


def test_layouts_of_torch() -> None:
    torch = pytest.importorskip("torch")
    rows = torch.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(nb.jit(lambda x: 2 * x)(rows.T), 2 * rows.T)
    np.testing.assert_array_equal(nb.jit(lambda x: x[::-1])(rows), rows.flip(0))
    z = torch.tensor([1 + 2j]).conj()
    np.testing.assert_array_equal(nb.jit(lambda z: z.imag)(z), [-2.0])
    assert nb.grad(lambda x: np.sum(x))(rows[:0]).shape == (0, 3)


def test_graphs_of_other_libraries_are_not_cut_silently() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(2, requires_grad=True)
    for fn in (nb.jit(np.sin), nb.grad(lambda x: np.sum(x))):
        with pytest.raises(ArgumentError, match=r"torch_function\(f\)"):
            fn(x)
        for other in (torch.ones(2).bfloat16(), torch.eye(2).to_sparse()):
            with pytest.raises(ArgumentError, match="cannot be shared"):
                fn(other)
        with pytest.raises(DtypeError, match=r"detach\(\)\.cpu"):
            fn(torch.ones(2, device="meta"))


def test_what_jax_records_goes_through_its_own_door() -> None:
    jax = pytest.importorskip("jax")
    for fn in (nb.jit(np.sin), nb.grad(lambda x: np.sum(x))):
        with pytest.raises(DtypeError, match=r"jax_function\(f\)"):
            jax.jit(fn)(jax.numpy.ones(2))


def test_integers_have_no_gradient(made: Callable[[np.ndarray], Any]) -> None:
    with pytest.raises(DtypeError, match=r"Array of dtype int32|Tensor of dtype int32|Impl of dtype int32"):
        nb.grad(lambda x: np.sum(x))(made(np.arange(3, dtype=np.int32)))
    check(nb.jit(lambda x: x + 1)(made(np.arange(3, dtype=np.int32))), made(X), [1, 2, 3])
    nb.check_grads(lambda x: np.sum(np.sin(x)), made(X), order=2)
