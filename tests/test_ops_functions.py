"""The functions of nbgrad.ops agree with what PyTorch gave: values, gradients, and derivatives of gradients."""

from __future__ import annotations

import json

import numpy as np
import pytest

import nbgrad as nb

from .recorded.ops_functions import CASES, FILE, INPUTS, INTEGERS, direction_for, weights_for

pytestmark = pytest.mark.unoptimized

RECORDED = json.loads(FILE.read_text())


def call(name, floats):
    """The results of a case, as a list of Tensors."""
    names, _, function = CASES[name]
    values = iter(floats)
    arguments = [
        next(values) if n in INPUTS else nb.Tensor(INTEGERS[n] != 0 if n == "mask" else INTEGERS[n]) for n in names
    ]
    result = function(nb.ops, *arguments)
    return list(result) if isinstance(result, tuple | list) else [result]


def inputs_of(name):
    return [nb.Tensor(INPUTS[n]) for n in CASES[name][0] if n in INPUTS]


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    results = call(name, inputs_of(name))
    assert len(results) == len(RECORDED[name]["value"])
    for got, want in zip(results, RECORDED[name]["value"], strict=True):
        assert isinstance(got, nb.Tensor)
        np.testing.assert_allclose(got.asnumpy(), np.array(want), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_narrow_dtypes_stay(name, dtype):
    floats = [nb.Tensor(value.asnumpy().astype(dtype)) for value in inputs_of(name)]
    for got, want in zip(call(name, floats), RECORDED[name]["value"], strict=True):
        assert got.shape == np.shape(want)
        if got.dtype.kind == "f":
            assert got.dtype == dtype
            if dtype == np.float32:
                np.testing.assert_allclose(got.asnumpy(), np.array(want), rtol=2e-5, atol=2e-5)


SMOOTH = [name for name in CASES if RECORDED[name]["gradient"] is not None]


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("name", SMOOTH)
def test_forward_mode(name):
    floats = inputs_of(name)

    def total(*values):
        return sum(nb.ops.sum(v * weights_for(v.shape)) for v in call(name, values) if v.dtype.kind == "f")

    directions = [direction_for(value.shape) for value in floats]
    _, slope = nb.jvp(total, tuple(floats), tuple(nb.Tensor(d) for d in directions))
    want = sum(float(np.sum(d * np.array(g))) for d, g in zip(directions, RECORDED[name]["gradient"], strict=True))
    np.testing.assert_allclose(float(slope), want, rtol=1e-9, atol=1e-9)


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name):
    floats = inputs_of(name)
    positions = tuple(range(len(floats)))

    def total(*values):
        smooth = [v for v in call(name, values) if v.dtype.kind == "f"]
        return sum(nb.ops.sum(v * weights_for(v.shape)) for v in smooth)

    def gradient(*values):
        found = nb.grad(total, positions)(*values)
        return found if isinstance(found, tuple) else (found,)

    for got, want in zip(gradient(*floats), RECORDED[name]["gradient"], strict=True):
        np.testing.assert_allclose(got.asnumpy(), np.array(want).reshape(got.shape), rtol=1e-10, atol=1e-11)

    def along(*values):
        return sum(nb.ops.sum(g * direction_for(g.shape)) for g in gradient(*values))

    second = nb.grad(along, positions)(*floats)
    second = second if isinstance(second, tuple) else (second,)
    wanted = RECORDED[name]["second"] or [np.zeros(g.shape) for g in second]
    for got, want in zip(second, wanted, strict=True):
        np.testing.assert_allclose(got.asnumpy(), np.array(want).reshape(got.shape), rtol=1e-9, atol=1e-9)
