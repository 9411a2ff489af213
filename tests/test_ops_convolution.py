"""Convolutions agree with recorded PyTorch."""

from __future__ import annotations

import pytest

from .recorded_cases import cases, check, name

CASES = cases(*"conv1d conv2d conv_transpose2d unfold fold".split())


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_with_pytorch(case):
    check(case)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_in_float32(case):
    check(case, "float32")
