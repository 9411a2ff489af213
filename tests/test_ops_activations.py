"""Activation functions and attention agree with recorded PyTorch."""

from __future__ import annotations

import pytest

from .recorded_cases import cases, check, name

CASES = cases(
    *"relu relu6 leaky_relu prelu elu celu selu sigmoid gelu silu mish softplus logsigmoid softsign tanhshrink hardtanh hardsigmoid hardswish hardshrink softshrink softmax log_softmax softmin glu scaled_dot_product_attention".split()
)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_with_pytorch(case):
    check(case)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_in_float32(case):
    check(case, "float32")
