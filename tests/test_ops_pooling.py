"""Pooling and resampling agree with recorded PyTorch."""

from __future__ import annotations

import pytest

from .recorded_cases import cases, check, name

CASES = cases(
    *"max_pool1d max_pool2d avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool2d interpolate".split()
)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_with_pytorch(case):
    check(case)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_in_float32(case):
    check(case, "float32")
