"""Loss functions agree with recorded PyTorch."""

from __future__ import annotations

import pytest

from .recorded_cases import cases, check, name

CASES = cases(
    *"mse_loss l1_loss smooth_l1_loss huber_loss cross_entropy nll_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div cosine_embedding_loss margin_ranking_loss cosine_similarity".split()
)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_with_pytorch(case):
    check(case)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_agrees_in_float32(case):
    check(case, "float32")
