"""Compares nbgrad's functions of neural networks with what PyTorch gave (recorded/torch_neural.json).

In: names of functions. Out: the recorded cases of them, and `check`, which asserts that value, gradients and second
derivatives are the same. Called by the tests of `nbgrad.ops`.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from nbgrad import ops
from nbgrad.graph.differentiate import vjp
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import constant, placeholder
from nbgrad.graph.trace import recording
from nbgrad.record.tensor import Tensor
from nbgrad.runtime.evaluate import compute

from .recorded.record_torch_neural import FILE, differentiated, made, operand

CASES: list[dict[str, Any]] = json.loads(FILE.read_text())


def cases(*functions: str) -> list[Any]:
    """The recorded cases of some functions, in the order of the file."""
    return [case for case in CASES if case["function"].split()[0] in functions]


def name(case: dict[str, Any]) -> str:
    """A short name for a test."""
    shapes = "-".join("x".join(map(str, how[1])) if isinstance(how[0], str) else "" for how in case["arrays"].values())
    return f"{case['function'].replace(' ', '_')}-{shapes}-{'-'.join(str(v) for v in case['kwargs'].values())}"


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _call(case: dict[str, Any], arrays: dict[str, Any]) -> Tensor:
    kind = case["function"].split()
    kwargs = {key: _tuples(value) for key, value in case["kwargs"].items()}
    result = getattr(ops, kind[0])(**arrays, **kwargs)
    return result[1 if len(kind) > 1 else 0] if isinstance(result, tuple) else result


def _close(got: np.ndarray, want: list[float], tolerance: float, where: str) -> None:
    expected = np.array(want).reshape(got.shape)
    scale = max(1.0, float(np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0)))
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * min(scale, 100.0), err_msg=where)


def check(case: dict[str, Any], dtype: str = "float64") -> None:
    """Assert that nbgrad gives what was recorded, compiled and interpreted."""
    tolerance = {"float64": 1e-11, "float32": 2e-5}[dtype]
    arrays = {key: v.astype(dtype) if v.dtype.kind == "f" else v for key, v in made(case["arrays"]).items()}
    chosen = {key: arrays[key] for key in differentiated(case["arrays"])}
    wrt = {key: placeholder(v.shape, v.dtype, v) for key, v in chosen.items()}
    inputs = list(wrt.values())
    with recording(inputs):
        given = {key: Tensor._of(wrt[key]) if key in wrt else Tensor(v) for key, v in arrays.items()}
        value = _call(case, given)._node
        assert list(value.shape) == case["shape"]
        if "gradients" not in case:
            _close(compute([value])[0], case["value"], 0, "value")
            return
        assert value.dtype == dtype
        weights = constant(operand("float", value.shape, 11).astype(dtype))
        first = vjp([value], [weights], inputs)
        # Where PyTorch has no second derivative the function is linear in pieces.
        seen = [g for g in first if g is not None]
        directions = [constant(operand("float", g.shape, 13).astype(dtype)) for g in seen]
        second = vjp(seen, directions, inputs) if case["second"] is not None and dtype == "float64" else []
    if any(isinstance(how[0], float) for how in case["arrays"].values()):
        # At kinks and far out: the second derivative is whatever it is, but a number.
        assert all(np.isfinite(found).all() for found in compute([g for g in second if g is not None]))
        second = []
    wanted = [(value, case["value"], "value")]
    for which, found in (("gradients", first), ("second", second)):
        for key, node, want in zip(wrt, found, case[which] or [None] * len(found), strict=False):
            if want is not None and node is not None:
                wanted.append((node, want, f"{which} in {key}"))
            elif want is not None:
                assert not np.any(want), f"{which} in {key} is zero"
    nodes = [node for node, _, _ in wanted]
    found = [compute(nodes), interpret(nodes)] if dtype == "float64" else [compute(nodes)]
    for results in found:
        for got, (_, want, what) in zip(results, wanted, strict=True):
            _close(got, want, tolerance, what)
