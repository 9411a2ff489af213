"""Means of float16 are right wherever they fit in float16, although the sums behind them do not.

Expected values: the same formula by hand; PyTorch's float16 gives these too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Tensor, nn, ops

pytestmark = pytest.mark.unoptimized

LARGE, ZERO = Tensor(np.full((4, 1000), 100, np.float16)), Tensor(np.zeros((4, 1000), np.float16))


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (nn.MSELoss(), 10000.0),
        (nn.L1Loss(), 100.0),
        (nn.HuberLoss(), 99.5),
        (nn.SmoothL1Loss(reduction="mean"), 99.5),
        (nn.MarginRankingLoss(margin=1.0), 1.0),
    ],
)
def test_losses(loss: Any, expected: float) -> None:
    arguments = (LARGE, ZERO, ZERO) if isinstance(loss, nn.MarginRankingLoss) else (LARGE, ZERO)
    value = loss(*arguments)
    assert value.dtype == np.float16 and float(value) == pytest.approx(expected, rel=1e-3)


def test_losses_of_more_elements_than_float16_counts() -> None:
    many = 70_000
    inputs, labels = Tensor(np.zeros((many, 2), np.float16)), Tensor(np.zeros(many, np.int32))
    assert float(ops.cross_entropy(inputs, labels)) == pytest.approx(np.log(2.0), rel=1e-3)
    value, gradient = nb.value_and_grad(lambda x: ops.l1_loss(x, x * 0))(Tensor(np.ones(many, np.float16)))
    assert float(value) == 1.0
    np.testing.assert_allclose(gradient.asnumpy(), 1 / many, rtol=5e-3)


def test_logits() -> None:
    value = nn.BCEWithLogitsLoss()(LARGE * 10, ZERO)
    assert float(value) == 1000.0


def test_cosines() -> None:
    np.testing.assert_allclose(ops.cosine_similarity(LARGE, LARGE).asnumpy(), 1.0, atol=1e-3)
    np.testing.assert_array_equal(ops.cosine_similarity(ZERO, LARGE).asnumpy(), 0.0)
    sign = Tensor(np.ones(4, np.float16))
    assert abs(float(nn.CosineEmbeddingLoss()(LARGE, LARGE, sign))) < 1e-3
    assert np.isfinite(nb.grad(lambda x: ops.cosine_embedding_loss(x, LARGE, sign))(ZERO).asnumpy()).all()


def test_pooling() -> None:
    image = Tensor(np.full((1, 1, 40, 40), 100, np.float16))
    for pooled in (ops.avg_pool2d(image, 40, 40), ops.adaptive_avg_pool2d(image, 1), ops.adaptive_avg_pool2d(image, 3)):
        assert pooled.dtype == np.float16
        np.testing.assert_allclose(pooled.asnumpy(), 100.0, rtol=1e-3)
    line = Tensor(np.full((1, 1, 4000), 100, np.float16))
    assert float(ops.adaptive_avg_pool1d(line, 1).reshape(())) == 100.0
    assert float(ops.avg_pool1d(line, 4000, 4000).reshape(())) == 100.0
