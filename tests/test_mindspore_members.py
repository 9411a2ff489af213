"""Methods of MindSpore's Tensor: those that write to it, and those whose words differ from ndarray's.

Expected values are NumPy's, PyTorch's documentation's, or from paper.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import nbgrad as nb

pytestmark = pytest.mark.unoptimized

X = np.array([[0.5, -0.25, 0.75], [0.1, 0.3, -0.6]])
P = np.abs(X)
ROWS = np.array([1, 0])
WRITTEN: dict[str, tuple[np.ndarray, np.ndarray]] = {
    "x.exp_()": (X, np.exp(X)),
    "x.log_()": (P, np.log(P)),
    "x.floor_()": (X, np.floor(X)),
    "x.sign_()": (X, np.sign(X)),
    "x.tanh_()": (X, np.tanh(X)),
    "x.erfinv_()": (X, scipy.special.erfinv(X)),
    "x.sigmoid_()": (X, scipy.special.expit(X)),
    "x.clamp_(-0.3, max=0.4)": (X, np.clip(X, -0.3, 0.4)),
    "x.remainder_(0.4)": (X, np.remainder(X, 0.4)),
    "x.floor_divide_(T([0.2, 0.35, 0.4]))": (X, np.floor_divide(X, [0.2, 0.35, 0.4])),
    "x.masked_fill_(T(X > 0), 9.0)": (X, np.where(X > 0, 9.0, X)),
    "x.addmm_(T(X[:, :2]), T(X), alpha=2, beta=3)": (X, 3 * X + 2 * X[:, :2] @ X),
    "x.fill_diagonal_(7.0)": (X, np.array([[7.0, -0.25, 0.75], [0.1, 7.0, -0.6]])),
    "x.masked_scatter_(T(X < 0), T([5.0, 6.0, 7.0]))": (X, np.array([[0.5, 5.0, 0.75], [0.1, 0.3, 6.0]])),
    "x.index_put_([T([0, 0]), T([1, 1])], T([1.0, 2.0]), True)": (X, X + np.array([[0, 3.0, 0], [0, 0, 0]])),
    "x.index_add_(0, T([1, 1]), T(X), alpha=2)": (X, X + np.array([[0, 0, 0], 2 * (X[0] + X[1])])),
    "x.index_fill_(1, T([2, 0]), 4.0)": (X, np.array([[4.0, -0.25, 4.0], [4.0, 0.3, 4.0]])),
    "x.index_copy_(0, T([1, 0]), T(X))": (X, X[ROWS]),
    "x.index_copy_(-1, T([2]), T(X[:, :1]))": (X, np.array([[0.5, -0.25, 0.5], [0.1, 0.3, 0.1]])),
    "x.put_(T([[5], [0]]), T([[8.0], [9.0]]))": (X, np.array([[9.0, -0.25, 0.75], [0.1, 0.3, 8.0]])),
    "x.put_(T([5, 5]), T([8.0, 1.0]), True)": (X, np.array([[0.5, -0.25, 0.75], [0.1, 0.3, 8.4]])),
    "x.scatter_(1, T([[2], [0]]), T([[8.0], [9.0]]))": (X, np.array([[0.5, -0.25, 8.0], [9.0, 0.3, -0.6]])),
    "x.scatter_add_(0, T([[1, 1, 0]]), T([[1.0, 2.0, 3.0]]))": (X, X + np.array([[0, 0, 3.0], [1.0, 2.0, 0]])),
}
OTHERS: dict[str, Any] = {
    "x.scatter_add(0, T([[1, 1, 0]]), T([[1.0, 2.0, 3.0]]))": X + np.array([[0, 0, 3.0], [1.0, 2.0, 0]]),
    "x.scatter_sub(T([[0, 1]]), T([2.0]))": X - np.array([[0, 2.0, 0], [0, 0, 0]]),
    "x.scatter_max(T([[0, 1]]), T([2.0]))": np.array([[0.5, 2.0, 0.75], X[1]]),
    "x.addmm(T(X[:, :2]), T(X))": X + X[:, :2] @ X,
    "x.reverse([1])": X[:, ::-1],
    "x.fills(2.5)": np.full((2, 3), 2.5),
    "x.kthvalue(2)": (np.array([0.5, 0.1]), np.array([0, 0])),
    "x.kthvalue(1, 0, True)": (np.array([[0.1, -0.25, -0.6]]), np.array([[1, 0, 1]])),
    "T([3, 1, 3]).unique()": np.array([1, 3]),
    "T([3, 1, 3]).unique(return_inverse=True, return_counts=True)": (
        np.array([1, 3]),
        np.array([1, 0, 1]),
        np.array([1, 2]),
    ),
    "T([[3, 1], [3, 1], [0, 1]]).unique(dim=0)": np.array([[0, 1], [3, 1]]),
    "x.max(1, keepdim=True)": (np.array([[0.75], [0.3]]), np.array([[2], [1]])),
    "x.max(0, True)": (np.array([[0.5, 0.3, 0.75]]), np.array([[0, 1, 0]])),
    "x.min(dim=0)": (np.array([0.1, -0.25, -0.6]), np.array([1, 0, 1])),
    "x.max(axis=1, return_indices=True)": (np.array([0.75, 0.3]), np.array([2, 1])),
    "x.max(1)": np.array([0.75, 0.3]),
    "x.max(axis=1, return_indices=False)": np.array([0.75, 0.3]),
    "x.sort(dim=0)": (np.sort(X, 0), np.argsort(X, 0)),
    "x.sort(1, descending=True)": (-np.sort(-X, 1), np.argsort(-X, 1)),
    "T([2, 1, 2, 3]).sort(descending=True)": (np.array([3, 2, 2, 1]), np.array([3, 0, 2, 1])),
    "T(X[None]).transpose(0, 2)": X[None].swapaxes(0, 2),
    "x.transpose(1, 0)": X.T,
    "T(X * 1j).mH": (X * 1j).conj().T,
    "x.itemset((0, 1), 4)": np.array([[0.5, 4.0, 0.75], X[1]]),
    "x.itemset(4, 4)": np.array([X[0], [0.1, 4.0, -0.6]]),
    "T([2.0]).itemset(4)": np.array([4.0]),
    "x.new_full((2,), 3.0)": np.array([3.0, 3.0]),
    "x.new_empty((2, 1))": np.zeros((2, 1)),
    "[x.ndimension(), x.nelement(), x.is_meta]": np.array([2, 6, 0]),
    "x.set_const_arg()": X,
    "x.quantile(0.25, 1)": np.quantile(X, 0.25, 1),
    "x.cov()": np.cov(X),
    "x.xlogy(T(np.abs(X)))": scipy.special.xlogy(X, P),
}


def _arrays(value: Any) -> Any:
    return [np.asarray(one) for one in value] if isinstance(value, tuple) else np.asarray(value)


@pytest.mark.parametrize("call", WRITTEN)
def test_methods_that_write(call: str) -> None:
    start, wanted = WRITTEN[call]
    seen = {"T": nb.Tensor, "X": X, "np": np}
    x = nb.Tensor(start.copy())
    view = x[...]
    assert eval(call, seen | {"x": x}) is x
    np.testing.assert_allclose(np.asarray(x), wanted, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(view), wanted, rtol=1e-6)

    def function(y: Any) -> Any:
        z = nb.ops.mul(y, 1.0)
        eval(call, seen | {"x": z})
        return z

    if "floor" not in call and "sign_" not in call and "remainder" not in call:
        nb.check_grads(function, (start,), order=1)


@pytest.mark.parametrize("call", OTHERS)
def test_methods_of_mindspore(call: str) -> None:
    got = _arrays(eval(call, {"T": nb.Tensor, "X": X, "np": np, "x": nb.Tensor(X)}))
    wanted = OTHERS[call]
    assert isinstance(got, list) == isinstance(wanted, tuple)
    for one, other in zip(got, wanted, strict=True) if isinstance(got, list) else [(got, wanted)]:
        np.testing.assert_allclose(one, other, rtol=1e-6)
        assert one.shape == other.shape


def test_methods_that_draw() -> None:
    nb.set_seed(5)
    assert nb.Tensor([0.0, 1.0]).bernoulli().tolist() == [0.0, 1.0]
    drawn = np.asarray(nb.ops.zeros(1000).uniform(2.0, 3.0))
    assert 2.0 <= drawn.min() < 2.1 < 2.9 < drawn.max() < 3.0
    assert nb.ops.zeros((2, 3)).cauchy().shape == nb.ops.zeros((2, 3)).log_normal().shape == (2, 3)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        ("x.bfloat16()", "DtypeError", "not in bfloat16"),
        ("x.itemset(3)", "ArgumentError", "a position and a number"),
        ("x.kthvalue(4)", "ArgumentError", "between 1 and the 3 elements"),
        ("T(1.0).kthvalue(1)", "ShapeError", "has none"),
        ("nb.ops.exp_(X)", "DtypeError", "writes to a Tensor"),
        ("T([1, 2]).exp_()", "DtypeError", "cannot be stored"),
        ("T([1.0]).addmm_(x, T(X.T))", "ShapeError", "does not fit"),
    ],
)
def test_messages(call: str, error: str, words: str) -> None:
    with pytest.raises(getattr(nb.errors, error), match=words):
        eval(call, {"T": nb.Tensor, "X": X, "nb": nb, "x": nb.Tensor(X)})


def test_hooks_in_functions_that_are_differentiated() -> None:
    seen: list[Any] = []

    def function(x: Any, y: Any) -> Any:
        z = x * y
        z.register_hook(lambda gradient: seen.append(gradient.shape) or gradient * 10.0)
        x.register_hook(lambda gradient: None)
        other = z * 2.0
        other.register_hook(lambda gradient: gradient * 100.0).remove()
        return (other + z).sum()

    point = nb.Tensor([1.0, 2.0]), nb.Tensor([3.0, 5.0])
    for grad in (nb.grad(function, (0, 1)), nb.jit(nb.grad(function, (0, 1)))):
        seen.clear()
        first, second = grad(*point)
        assert first.tolist() == [90.0, 150.0]
        assert second.tolist() == [30.0, 60.0]
        assert seen == [(2,)]
