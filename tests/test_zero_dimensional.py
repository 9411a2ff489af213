"""Results without axes: scalars where NumPy's are scalars, arrays where NumPy's are arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbgrad as nb

from .operation import interpreted

EXPRESSIONS = """
np.roll(x, 1)
np.tensordot(x, x, 0)
np.tensordot(r * x, r, 1)
np.tensordot(r * x, r, axes=([0], [0]))
np.select([x > 0], [x])
np.select([x > 0], [x], 2.0)
np.tile(x, ())
np.i0(x)
np.conj(x)
np.real(x)
np.imag(x)
np.real(x + 1j)
np.imag(x * 1j)
np.real_if_close(x)
np.apply_along_axis(np.sum, 0, r * x)
np.apply_along_axis(lambda t: t[0], 0, r * x)
np.flip(x)
np.squeeze(x)
np.transpose(x)
np.reshape(x, ())
np.squeeze(m * x)
(m * x).squeeze()
(m * x).reshape(())
np.broadcast_to(x, ())
np.pad(x, 1)
np.clip(x, 0, 1)
np.where(x > 0, x, x)
np.nan_to_num(x)
np.round(x, 1)
np.piecewise(x, [x > 0], [lambda t: t * 2])
np.asarray(x)
np.array(0.25 + x)
np.require(x)
np.copy(x)
np.block(x)
np.median(x)
np.einsum(",", x, x)
np.einsum("i->", r * x)
np.kron(x, x)
np.choose(0, [x, x])
np.cov([x, 2 * x])
np.vdot(x, x)
np.sum(m * x)
np.max(r * x)
(r * x)[0]
(r * x)[0, ...]
np.ones_like(x)
np.full_like(x, -0.75)
np.full((), x)
np.ones_like(0.5)
np.full_like(np.array(2.0), -0.75)
np.array(0.5)
np.asarray(0.5)
np.squeeze(m)
np.squeeze(np.zeros_like(m, dtype=bool))
""".strip().splitlines()
UNSEEN = {"np.asarray(x)", "np.require(x)", "np.array(0.25 + x)", "np.cov([x, 2 * x])", "np.full((), x)"}
"""What NumPy does not tell Tensors of: nbgrad.numpy's functions stand for them."""
KINDS = {"float": 0.3, "float64": np.float64(0.3), "array": np.array(0.3)}


def described(value: Any) -> tuple[bool, np.dtype[Any], tuple[int, ...]]:
    """Whether a value is an array; its dtype and its shape."""
    return isinstance(value, np.ndarray), np.asarray(value).dtype, np.shape(value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_scalars_and_arrays_without_axes(expression: str, kind: str) -> None:
    names: dict[str, Any] = {"np": np, "r": np.ones(2), "m": np.array([[0.5]])}
    source = f"def function(x):\n    return {expression}"
    source += "\ndef total(x):\n    found = function(x)\n    return x + 0.0 * np.sum(np.real(found)), found"
    exec(source, names)
    x = KINDS[kind]
    want = names["function"](x)
    if expression in UNSEEN:
        names["np"] = nb.numpy
    function, total = names["function"], names["total"]
    results = [
        nb.jit(function)(x),
        nb.value_and_grad(total, has_aux=True)(x)[0][1],
        nb.jit(nb.value_and_grad(total, has_aux=True))(x)[0][1],
    ]
    with interpreted():
        results.append(nb.jit(function)(x))
    for found in results:
        np.testing.assert_allclose(found, want, rtol=5e-16)  # of i0, NumPy's own polynomial rounds otherwise
        if type(want) is not float:  # nbgrad gives float64 scalars for Python's floats
            assert described(found) == described(want)


def test_numpys_own_scalars_are_no_python_numbers() -> None:
    """NumPy makes arrays of Python's numbers to reshape them; its own scalars stay scalars."""

    def function(x: Any) -> Any:
        own = np.float64(0.25)
        found = [np.squeeze(own), np.reshape(own, ()), np.transpose(own), np.ravel(own), np.squeeze(0.25)]
        return np.sum(x), found

    x = np.ones(2)
    converted = nb.differentiable_source(function)
    for call in (nb.value_and_grad(converted, has_aux=True), nb.jit(nb.value_and_grad(converted, has_aux=True))):
        assert [type(part) for part in call(x)[0][1]] == [type(part) for part in function(x)[1]]
