"""Normalisation agree with recorded PyTorch."""

from __future__ import annotations

import pytest

from .recorded_cases import cases, check, name

CASES = cases(*"layer_norm group_norm instance_norm batch_norm normalize rms_norm lrn".split())


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_with_pytorch(case):
    check(case)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_in_float32(case):
    check(case, "float32")
