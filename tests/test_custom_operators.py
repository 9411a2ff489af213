"""`ops.Custom`: what MindSpore 2.10 gives for the same operators, SciPy's values, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import nbgrad as nb
from nbgrad import Tensor, ops
from nbgrad.errors import ArgumentError, DtypeError

ONES = Tensor(np.ones(3, np.float32))


def same(x: Any, y: Any = None) -> Any:
    return x


def test_results_are_those_of_mindspore() -> None:
    form = ops.Custom(lambda x, y: x * 2 + y, same, same, func_type="pyfunc")
    assert form(ONES, ONES).tolist() == [3.0, 3.0, 3.0]
    both = ops.Custom(lambda x: (x, x + 1), lambda x: (x, x), lambda x: (x, x), func_type="pyfunc")(ONES)
    assert [one.tolist() for one in both] == [[1.0] * 3, [2.0] * 3]
    assert ops.Custom(lambda x: x.sum(), (), nb.float32)(ONES).tolist() == 3.0


def test_derivatives_are_those_of_bprop() -> None:
    form = ops.Custom(lambda x, y: x * 2 + y, same, same, bprop=lambda x, y, out, dout: (dout * 2, dout))
    assert nb.grad(lambda x: form(x, x).sum())(ONES).tolist() == [3.0, 3.0, 3.0]
    # The derivative of the error function, whose own is -2 x times it.
    slope = 2.0 / np.sqrt(np.pi)
    erf = ops.Custom(scipy.special.erf, same, same, bprop=lambda x, out, dout: (slope * nb.numpy.exp(-x * x) * dout,))
    x = Tensor(np.array([0.3, -1.2]))
    np.testing.assert_allclose(erf(x).asnumpy(), scipy.special.erf([0.3, -1.2]), rtol=1e-15)
    second = nb.jit(nb.grad(lambda x: nb.grad(lambda x: erf(x).sum())(x).sum()))(x)
    np.testing.assert_allclose(second.asnumpy(), [-2 * v * slope * np.exp(-v * v) for v in (0.3, -1.2)], rtol=1e-12)


def test_results_have_the_dtypes_that_were_said() -> None:
    found = ops.Custom(lambda x: x.astype(np.float64) * 2.5, same, lambda x: nb.int32)(ONES)
    assert (found.dtype, found.tolist()) == (nb.int32, [2, 2, 2])
    assert ops.Custom(np.sort)(Tensor([3.0, 1.0])).tolist() == [1.0, 3.0]
    assert nb.jit(ops.Custom(lambda x: x > 0, same, nb.bool_))(ONES).tolist() == [True] * 3


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ops.Custom("./kernel.so:add", same, same, func_type="aot"), ArgumentError),  # pyright: ignore[reportArgumentType]
        (lambda: ops.Custom("add", same, same), DtypeError),  # pyright: ignore[reportArgumentType]
        (lambda: ops.Custom(np.sort, same), DtypeError),
    ],
)
def test_bad_input(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()
