"""Training scripts in PyTorch's words, with the module's name changed, beside the losses that PyTorch 2.14 gave."""

from __future__ import annotations

import json

import numpy as np
import pytest

import nbgrad.mint.torch_names as torch

from . import torch_scripts_further
from .recorded.record_torch_scripts import FILE, summary
from .torch_scripts import SCRIPTS

pytestmark = pytest.mark.unoptimized
RECORDED = json.loads(FILE.read_text())
assert torch_scripts_further


@pytest.fixture(autouse=True)
def _in_float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_all_scripts_were_recorded() -> None:
    assert list(SCRIPTS) == list(RECORDED)


@pytest.mark.parametrize("name", SCRIPTS)
def test_losses_and_parameters_are_those_of_pytorch(name: str) -> None:
    found = summary(SCRIPTS[name](torch))
    expected = RECORDED[name]
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=1e-7, atol=1e-10)
    assert list(found["parameters"]) == list(expected["parameters"])
    for key, values in expected["parameters"].items():
        np.testing.assert_allclose(found["parameters"][key], values, rtol=1e-6, atol=1e-9, err_msg=key)
