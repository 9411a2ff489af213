"""Layers and losses agree with recorded PyTorch: outputs, gradients in inputs and Parameters, second derivatives.

The recorded cases are in recorded/torch_layers.json; what they are set to and multiplied by is made by the script that
recorded them.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

from .recorded.record_torch_layers import (
    FILE,
    differentiated,
    directions,
    leaves,
    made,
    output_weights,
    parameter_value,
)

pytestmark = pytest.mark.unoptimized

CASES: list[dict[str, Any]] = json.loads(FILE.read_text())


def title(case: dict[str, Any]) -> str:
    shapes = "-".join("x".join(map(str, shape)) for _, shape in case["inputs"])
    options = [f"{key}={value}" for key, value in case["kwargs"].items() if isinstance(value, bool | str | float)]
    return "-".join([case["layer"], *map(str, case["args"]), shapes, *options, *case["options"]])


def build(case: dict[str, Any]) -> Any:
    """The layer in float64, with the recorded values of its Parameters."""
    cls = getattr(nb.nn, case["layer"])
    args = [tuple(value) if isinstance(value, list) else value for value in case["args"]]
    kwargs = {key: tuple(value) if isinstance(value, list) else value for key, value in case["kwargs"].items()}
    if "dtype" in inspect.signature(cls).parameters:
        kwargs["dtype"] = nb.float64
    net = cls(*args, **kwargs).set_train(case["training"])
    held = dict(net.parameters_and_names())
    assert set(held) == set(case["parameters"])
    for name, parameter in held.items():
        parameter.set_data(parameter_value(name, parameter.size).reshape(parameter.shape))
    return net


def inputs_of(case: dict[str, Any]) -> tuple[list[nb.Tensor], list[nb.Tensor]]:
    """The inputs that are differentiated, and the others."""
    chosen = differentiated(case)
    both: tuple[list[nb.Tensor], list[nb.Tensor]] = ([], [])
    for at, value in enumerate(made(case)):
        both[at not in chosen].append(nb.Tensor(value))
    return both


def call(net: Any, case: dict[str, Any], floats: list[Any], others: list[Any]) -> list[Any]:
    """The outputs."""
    # Those that are differentiated come first in every case.
    inputs = [*floats, *others]
    options = {key: np.array(value) if isinstance(value, list) else value for key, value in case["options"].items()}
    if "LSTM" in case["layer"] and len(inputs) == 3:
        inputs = [inputs[0], (inputs[1], inputs[2])]
    return leaves(net(*inputs, **options))


def same(got: Any, want: list[float], tolerance: float, where: str) -> None:
    expected = np.array(want).reshape(got.shape)
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    np.testing.assert_allclose(got.asnumpy(), expected, rtol=tolerance, atol=tolerance * scale, err_msg=where)


def weighted(values: list[Any], factors: list[np.ndarray]) -> Any:
    return sum((nb.Tensor(w) * v).sum() for w, v in zip(factors, values, strict=True))


def gradient(fn: Any, net: Any, case: dict[str, Any]) -> Any:
    """The gradients of a function of the inputs in the inputs and in Parameters, in the recorded order."""
    held = dict(net.parameters_and_names())
    weights = [held[name] for name in case["trained"]]
    assert sorted(name for name, p in held.items() if p.requires_grad) == sorted(case["trained"])

    def of_inputs(floats: list[Any], others: list[Any]) -> list[Any]:
        inner, outer = nb.grad(fn, 0, weights)(floats, others)
        return [*inner, *outer]

    def of_weights(floats: list[Any], others: list[Any]) -> list[Any]:
        return list(nb.grad(fn, None, weights)(floats, others))

    return of_inputs if differentiated(case) else of_weights


@pytest.mark.parametrize("case", CASES, ids=title)
def test_agrees_with_pytorch(case: dict[str, Any]) -> None:
    net = build(case)
    inputs = inputs_of(case)
    outputs = call(net, case, *inputs)
    assert [list(value.shape) for value in outputs] == case["shapes"]
    for at, (value, want) in enumerate(zip(outputs, case["values"], strict=True)):
        assert value.dtype == nb.float64
        same(value, want, 1e-12, f"output {at}")
    for name, want in case.get("after", {}).items():
        same(dict(net.parameters_and_names())[name].value(), want, 1e-12, name)

    def total(floats: list[Any], others: list[Any]) -> Any:
        found = call(net, case, floats, others)
        return weighted(found, output_weights(found))

    gradients = gradient(total, net, case)
    names = [*[f"input {at}" for at in differentiated(case)], *case["trained"]]
    for found in (gradients(*inputs), nb.jit(gradients)(*inputs)):
        for name, g, want in zip(names, found, case["gradients"], strict=True):
            same(g, want, 1e-11, name)
    if "second" not in case:
        return

    def along(floats: list[Any], others: list[Any]) -> Any:
        first = gradients(floats, others)
        return weighted(first, directions(first))

    for name, g, want in zip(names, gradient(along, net, case)(*inputs), case["second"], strict=True):
        same(g, want, 1e-10, f"second derivative in {name}")
