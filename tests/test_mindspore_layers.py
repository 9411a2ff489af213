"""Layers, losses, optimizers and functions give what MindSpore 2.10 gave on the CPU (recorded/mindspore_layers.json).

Values, gradients with respect to inputs and weights, names and order of Parameters, dtypes and shapes. Left out are
programs for which MindSpore's result is not the one that its documentation promises (the derivative of SeLU, Momentum
with Nesterov) or is less exact than float32 (tanh, and with it RNN and GRU: PyTorch's are the reference there).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import nn, ops

from .recorded.record_mindspore_layers import programs

pytestmark = pytest.mark.unoptimized

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded" / "mindspore_layers.json").read_text())
PROGRAMS = programs(nb, nn, ops)


def agree(got: Any, want: Any, where: str) -> None:
    if isinstance(want, list):
        assert isinstance(got, list | tuple) and len(got) == len(want), where
        for position, (part, wanted) in enumerate(zip(got, want, strict=True)):
            agree(part, wanted, f"{where}[{position}]")
    elif isinstance(want, dict):
        assert got.dtype.name == want["dtype"] and list(got.shape) == want["shape"], where
        expected = np.array(want["values"], want["dtype"]).reshape(want["shape"])
        scale = float(np.abs(expected).max()) if expected.size and expected.dtype.kind == "f" else 1.0
        np.testing.assert_allclose(np.asarray(got), expected, rtol=5e-5, atol=5e-5 * max(scale, 1.0), err_msg=where)
    else:
        assert got == want, where


@pytest.mark.parametrize("name", RECORDED)
def test_agrees_with_mindspore(name: str) -> None:
    agree(PROGRAMS[name](), RECORDED[name], name)


def test_every_program_was_recorded() -> None:
    assert list(PROGRAMS) == list(RECORDED) and len(RECORDED) > 70
