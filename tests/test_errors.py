"""Bad input: a clear error in a full sentence, at the user's line."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import NbgradError

X = np.array([1.0, 2.0, 3.0])


def _assign_to_plain(x: Any) -> Any:
    out = np.zeros(3)
    out[0] = x[0]
    return out


def _fill_plain(x: Any) -> Any:
    out = np.zeros(3)
    out[:] = x
    return out


def _text(x: Any) -> Any:
    return "a text"


def _nothing(x: Any) -> Any:
    x * 2


CASES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    # ----- Shapes -----
    "shapes that do not broadcast": (lambda: nb.grad(lambda x: x + np.ones(4))(X), ValueError, r"\(3,\).*\(4,\)"),
    "matrix product": (lambda: nb.grad(lambda x: x @ np.ones((4, 2)))(X), ValueError, "3 is not 4"),
    "reshape": (lambda: nb.grad(lambda x: x.reshape(2, 2))(X), ValueError, r"\(3,\)"),
    "axis": (lambda: nb.grad(lambda x: np.sum(x, axis=1))(X), ValueError, "Axis 1 is out of bounds"),
    "transpose": (lambda: nb.grad(lambda x: np.transpose(x, (0, 1)))(X), ValueError, "axes"),
    "concatenate": (
        lambda: nb.grad(lambda x: np.concatenate([x, np.ones((2, 2))]))(X),
        ValueError,
        r"joined: \(3,\), \(2, 2\)",
    ),
    "stack": (lambda: nb.grad(lambda x: np.stack([x, x[:2]]))(X), ValueError, "shape"),
    "assignment": (lambda: nb.grad(_assign_wrong)(X), ValueError, r"\(2,\)"),
    "cotangent": (lambda: nb.vjp(np.sin, X)[1](np.ones(2)), ValueError, r"Cotangent 0 .*\(3,\).*\(2,\)"),
    "tangent": (lambda: nb.jvp(np.sin, X, np.ones(2)), ValueError, r"Tangent 0 .*\(3,\).*\(2,\)"),
    "number of cotangents": (lambda: nb.vjp(lambda x: (x, x), X)[1](X), ValueError, "2 outputs.* got 1"),
    "number of tangents": (lambda: nb.jvp(np.sin, (X, X), (X,)), ValueError, "2 inputs and 1 tangents"),
    # ----- Indices -----
    "index out of range": (lambda: nb.grad(lambda x: x[3])(X), IndexError, "3"),
    "negative index out of range": (lambda: nb.grad(lambda x: x[-4])(X), IndexError, "-4"),
    "index array out of range": (lambda: nb.grad(lambda x: x[np.array([0, 5])])(X), IndexError, "range"),
    "too many indices": (lambda: nb.grad(lambda x: x[0, 0])(X), IndexError, "indices"),
    "float index": (lambda: nb.grad(lambda x: x[1.5])(X), IndexError, "integers"),
    # ----- Dtypes and kinds -----
    "integer array": (lambda: nb.grad(np.sum)(np.arange(3)), TypeError, r"int64 .*astype\(float\)"),
    "boolean array": (lambda: nb.grad(np.sum)(X > 2), TypeError, "bool"),
    "Python integer": (lambda: nb.grad(lambda x: x * x)(3), TypeError, "int"),
    "complex array": (lambda: nb.jacrev(np.exp)(X + 1j), ValueError, "holomorphic=True"),
    "text argument": (lambda: nb.grad(lambda x: x)("text"), TypeError, "Argument 0 of .*str 'text'"),
    "None argument": (lambda: nb.grad(lambda x: 1.0)(None), TypeError, "NoneType"),
    "object array": (lambda: nb.grad(np.sum)(np.array([1, "a"], object)), TypeError, "object"),
    "complex to real": (lambda: nb.grad(lambda x: (x * 1j).astype(float))(X), TypeError, r"x\.real"),
    "extended precision": (lambda: nb.grad(np.sum)(X.astype(np.clongdouble)), TypeError, "complex256"),
    "container with an integer": (
        lambda: nb.grad(lambda d: d["a"])({"a": X, "n": 3}),
        TypeError,
        r"Argument 0\['n'\] of <lambda>\(\) is an int",
    ),
    "container with text": (
        lambda: nb.grad(lambda x, p: x, 1)(1.0, (2.0, [X, "text"])),
        TypeError,
        r"Argument 1\[1\]\[1\] of",
    ),
    "tangent of text": (lambda: nb.jvp(np.sin, X, "text"), TypeError, "Tangent 0 must be an array"),
    "cotangent of None": (lambda: nb.vjp(np.sin, X)[1](None), TypeError, "Cotangent 0 must be an array"),
    # ----- Positions and flags -----
    "position out of range": (
        lambda: nb.grad(np.sum, 1)(X),
        ValueError,
        "grad_position 1 is out of range.* 1 argument",
    ),
    "negative position": (lambda: nb.grad(np.sum, -1), ValueError, "must not be negative"),
    "repeated position": (lambda: nb.grad(np.sum, (0, 0)), ValueError, "twice"),
    "empty positions": (lambda: nb.grad(np.sum, ())(X), ValueError, "nothing to differentiate"),
    "no position and no weights": (lambda: nb.grad(np.sum, None), ValueError, "nothing to differentiate"),
    "float position": (lambda: nb.grad(np.sum, 1.0), TypeError, "must be an int"),
    "list of positions": (lambda: nb.grad(np.sum, [0]), TypeError, "must be an int"),
    "text position": (lambda: nb.jacrev(np.sum, "x"), TypeError, "must be an int"),
    "flag that is no bool": (lambda: nb.grad(np.sum, has_aux=1), TypeError, "has_aux must be a bool, True or False"),
    "weights that are no Tensors": (lambda: nb.grad(np.sum, None, [X])(X), TypeError, "weights must be .*Tensor"),
    "integer weights": (lambda: nb.grad(np.sum, None, nb.Tensor([1]))(X), TypeError, "int64"),
    "not a function": (lambda: nb.grad(5)(X), TypeError, "function"),
    # ----- What the function returns -----
    "returns nothing": (lambda: nb.grad(_nothing)(X), TypeError, r"_nothing\(\) returned nothing.*return statement"),
    "returns a text": (lambda: nb.grad(_text)(X), TypeError, r"_text\(\) returned str 'a text'"),
    "returns nothing, value": (lambda: nb.value_and_grad(_nothing)(X), TypeError, "returned nothing"),
    "returns nothing, vjp": (lambda: nb.vjp(_nothing, X), TypeError, "returned nothing"),
    "returns nothing, jvp": (lambda: nb.jvp(_nothing, X, X), TypeError, "returned nothing"),
    "returns nothing, jacobian": (lambda: nb.jacfwd(_nothing)(X), TypeError, "returned nothing"),
    "returns an empty list": (lambda: nb.grad(lambda x: [])(X), TypeError, "returned"),
    "no aux": (lambda: nb.grad(np.sum, has_aux=True)(X), ValueError, "at least two elements"),
    # ----- Values that leave the recording -----
    "element of a plain array": (lambda: nb.grad(_assign_to_plain)(X), TypeError, "nbgrad.numpy"),
    "slice of a plain array": (lambda: nb.grad(_fill_plain)(X), TypeError, "plain ndarray"),
    "float()": (lambda: nb.grad(lambda x: float(x.sum()))(X), TypeError, "Python float"),
    "math.sin": (lambda: nb.grad(lambda x: math.sin(x[0]))(X), TypeError, "np.sin"),
    "item()": (lambda: nb.grad(lambda x: x[0].item())(X), TypeError, r"item\(\)"),
    "asarray": (lambda: nb.grad(lambda x: np.asarray(x))(X), TypeError, "ndarray"),
    "index of a plain array, jit": (lambda: nb.jit(lambda x: X[np.argsort(x)])(X), TypeError, r"asarray\(table\)\[i\]"),
    "index of a plain array, vmap": (lambda: nb.vmap(lambda x: X[np.argsort(x)])(X[None]), TypeError, "argument"),
    "truth of several": (lambda: nb.grad(lambda x: x if x > 0 else -x)(X), ValueError, r"any\(\) or all\(\)"),
    "unhashable for jit": (lambda: nb.jit(lambda x, s: x)(X, {1}), TypeError, "not hashable"),
    # ----- Threads -----
    "threads": (lambda: nb.set_num_threads(0), ValueError, "at least 1"),
}


def _assign_wrong(x: Any) -> Any:
    y = x * 1.0
    y[:2] = np.ones(3)
    return np.broadcast_to(y, (2,))


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name: str) -> None:
    call, kind, words = CASES[name]
    with pytest.raises(kind) as caught:
        call()
    error, text = caught.value, str(caught.value)
    assert isinstance(error, NbgradError), f"{name}: {type(error).__name__} is none of nbgrad's: {text}"
    assert re.search(words, text, re.S), f"{name}: {text}"
    place = re.search(r"\(at (.*):(\d+)\)$", text)
    assert place is not None, f"{name} does not say where: {text}"
    assert place[1] == __file__, f"{name} happened in {place[1]}"


def test_the_line_is_the_users() -> None:
    def wrong(x: Any) -> Any:
        y = x * 2
        return y + np.ones(7)  # this line

    lines, first = inspect.getsourcelines(wrong)
    want = first + next(k for k, line in enumerate(lines) if "# this line" in line)
    for transform in (nb.grad(wrong), nb.jit(wrong), nb.jacrev(wrong), nb.jit(nb.grad(wrong))):
        with pytest.raises(ValueError, match=re.escape(f"(at {__file__}:{want})")):
            transform(X)


def test_errors_leave_everything_usable() -> None:
    for call, kind, _ in CASES.values():
        with pytest.raises(kind):
            call()
    np.testing.assert_array_equal(nb.grad(lambda x: x[0] * x[1])(X), [2, 1, 0])
    np.testing.assert_array_equal(nb.jit(nb.grad(lambda x: x * x))(X), 2 * X)


def test_numpys_own_errors_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        nb.grad(lambda x: x * (1 // 0))(X)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        nb.grad(lambda x, y: x)(X)
