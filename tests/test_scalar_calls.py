"""Compiled calls with numbers: native code reads Python's floats and NumPy's scalars, and compares Python's integers.

The result of a call is that of the plain function in NumPy; that no Python code took part, the kind of its door says.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.process.object_layout import SCALARS

from .native_python import PythonCall

pytestmark = pytest.mark.unoptimized

X = np.array([0.5, -1.0, 2.0])
KINDS = sorted(SCALARS, key=lambda kind: kind.__name__)


def native(f: Any) -> bool:
    """Whether the next call goes to native code."""
    return isinstance(f._door.call, types.BuiltinFunctionType | PythonCall)


def same(gradient: Any, expected: Any) -> None:
    np.testing.assert_array_equal(gradient.asnumpy(), expected)


def called_python(f: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Filled with the arguments of calls that native code does not serve."""
    seen: list[Any] = []
    find = f._find
    monkeypatch.setattr(f, "_find", lambda *given: (seen.append(given), find(*given))[1])
    return seen


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_scalars_of_every_kind(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values differ from call to call, and none of them is compiled again."""
    f = nb.jit(lambda c, x: (c * x, c + c))
    numbers = [kind(k) for k in (1, 0, 1, 0)] if kind is np.bool_ else [kind(k) for k in (3, 0, 7, 60)]
    f(numbers[0], X)
    assert native(f)
    seen = called_python(f, monkeypatch)
    for number in numbers[1:]:
        product, total = f(number, X)
        np.testing.assert_array_equal(product, number * X)
        assert product.dtype == (number * X).dtype
        assert total == number + number
        assert total.dtype == np.asarray(number + number).dtype
    assert not seen
    assert f.compiled_signatures == 1


def test_a_scalar_and_an_array_without_axes_are_two_signatures() -> None:
    f = nb.jit(lambda x: x)
    for _ in range(2):
        assert type(f(np.float64(1.5))) is np.float64
        assert type(f(np.array(1.5))) is np.ndarray
        assert f(np.float32(2.5)).dtype == np.float32
    assert f.compiled_signatures == 3


def test_gradients_with_respect_to_scalars() -> None:
    f = nb.jit(nb.grad(lambda x, c: np.sum(c * x**2), (0, 1)))
    for c in (np.float32(0.5), np.float32(2.0)):
        slopes = f(X.astype(np.float32), c)
        np.testing.assert_allclose(slopes[0], 2 * c * X, rtol=1e-6)
        assert float(slopes[1]) == pytest.approx(5.25)
        assert slopes[0].dtype == slopes[1].dtype == np.float32


def large(k: int) -> int:
    """A number that Python makes anew."""
    return int("1" + "0" * 30) + k


CONSTANTS: dict[str, tuple[Callable[[], Any], Any]] = {
    "small": (lambda: 3, 4),
    "large": (lambda: large(1) - large(0) + 1000, 1002),
    "beyond 64 bits": (lambda: large(1), large(2)),
    "a bool": (lambda: True, False),
    "1 is not True": (lambda: 1, True),
    "0 is not False": (lambda: 0, False),
    "text": (lambda: "".join(["po", "wer"]), "other"),
    "bytes": (lambda: bytes([1, 2, 3]), b"12"),
    "None": (lambda: None, 0),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_that_are_equal_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are part of the program; another one, or an equal one of another type, gets a program of its own."""
    make, other = CONSTANTS[name]
    f = nb.jit(lambda x, c: (x + 1, repr(c)))
    for _ in range(3):
        f(X, make())
    seen = called_python(f, monkeypatch)
    assert f(X, make())[1] == repr(make())
    assert not seen
    assert f(X, other)[1] == repr(other)
    assert seen


@pytest.mark.parametrize(
    "given", [(X, 2.0), (nb.Tensor(X), 3), (np.float32(2.0), X)], ids=["array", "Tensor", "scalar"]
)
def test_leaves_elsewhere_cost_nothing(given: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a Tensor somewhere requires gradients, calls without such Tensors still go to native code at once."""
    f = nb.jit(lambda x, c: (x * c, x + c))
    for _ in range(3):
        f(*given)
    leaf = nb.Tensor(np.array([1.0, 2.0, 3.0])).requires_grad_()
    monkeypatch.setattr(f, "_remembers", lambda _: pytest.fail("Python has looked at the arguments"))
    assert len(f(*given)) == 2
    monkeypatch.undo()
    # Arguments that remember are served as before.
    product, _ = f(leaf, 2.0)
    product.sum().backward()
    same(leaf.grad, [2.0, 2.0, 2.0])


def test_a_door_is_closed_to_tensors_that_remember() -> None:
    """The same function, called with Tensors before: native code tells those that have become leaves."""
    f = nb.jit(lambda x: (x * x).sum())
    x = nb.Tensor(X)
    for _ in range(3):
        f(x)
    assert native(f)
    x.requires_grad_()
    f(x).backward()
    same(x.grad, 2 * X)


def test_a_closed_over_leaf_closes_the_door() -> None:
    """A specialization that reads a leaf ends the native calls of the others: their next recording may read it too."""
    w = nb.Tensor(np.array(2.0)).requires_grad_()
    f = nb.jit(lambda x, flag: x * w if flag else x * 2.0)
    for _ in range(3):
        f(nb.Tensor(X), False)
    f(nb.Tensor(X), True).sum().backward()
    for _ in range(2):
        w.grad = None
        f(nb.Tensor(X), True).sum().backward()
        same(w.grad, X.sum())


def test_a_parameter_among_the_arguments() -> None:
    f = nb.jit(lambda w, x: (w * x).sum())
    w = nb.Parameter(nb.Tensor(X), name="w")
    for _ in range(3):
        assert float(f(w, nb.Tensor(X))) == 5.25
    w.requires_grad_()
    f(w, nb.Tensor(X)).backward()
    same(w.grad, X)
