"""Arguments outside a function's domain are refused where PyTorch refuses them, and never give a number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Tensor, nn, ops
from nbgrad.errors import ArgumentError, ShapeError

pytestmark = pytest.mark.unoptimized


@pytest.mark.parametrize("wrap", [lambda f: f, nb.jit, nb.grad, nb.vmap], ids=["plain", "jit", "grad", "vmap"])
@pytest.mark.parametrize("bad", [-0.2, -1e-30, 1.5, np.inf, np.nan])
@pytest.mark.parametrize("label", [0.0, 0.5, 1.0])
def test_binary_cross_entropy_of_what_is_no_probability_is_no_number(wrap: Any, bad: float, label: float) -> None:
    loss = wrap(lambda p: ops.binary_cross_entropy(p, Tensor(np.full(2, label))))
    shape = (1, 2) if wrap is nb.vmap else (2,)
    assert np.isnan(np.asarray(loss(Tensor(np.array([0.5, bad]).reshape(shape))))).any()
    assert np.isfinite(np.asarray(loss(Tensor(np.array([0.0, 1.0]).reshape(shape))))).all()


@pytest.mark.parametrize("alpha", [0, 0.0, -0.0])
def test_celu_divides_by_alpha(alpha: float) -> None:
    with pytest.raises(ArgumentError, match="alpha of celu"):
        ops.celu(Tensor([-1.0]), alpha)


COLUMN, ROW = Tensor(np.full((4, 1), 0.5)), Tensor(np.full(4, 0.25))


@pytest.mark.parametrize(
    "loss",
    [
        nn.SmoothL1Loss(),
        nn.SmoothL1Loss(beta=0.0),
        nn.BCELoss(),
        nn.BCEWithLogitsLoss(),
        nn.KLDivLoss(),
        ops.smooth_l1_loss,
        ops.binary_cross_entropy,
        ops.binary_cross_entropy_with_logits,
        ops.kl_div,
    ],
)
def test_losses_do_not_pair_columns_with_rows(loss: Any) -> None:
    """As in MindSpore: (4, 1) and (4,) would give a mean over 16 pairs."""
    with pytest.raises(ShapeError, match=r"of one shape.*\(4, 1\).*\(4,\)"):
        loss(COLUMN, ROW)
    assert loss(COLUMN[:, 0], ROW).size in (1, 4)


@pytest.mark.parametrize("loss", [nn.MSELoss(), nn.L1Loss(), nn.HuberLoss()])
def test_losses_that_broadcast_in_mindspore_broadcast(loss: Any) -> None:
    assert float(loss(COLUMN, ROW)) == pytest.approx(float(loss(Tensor(np.full(16, 0.5)), Tensor(np.full(16, 0.25)))))


def test_weights_of_losses_do_not_enlarge_them() -> None:
    with pytest.raises(ShapeError):
        ops.binary_cross_entropy(ROW, ROW, weight=Tensor(np.ones((4, 1))))
    with pytest.raises(ShapeError):
        ops.binary_cross_entropy_with_logits(ROW, ROW, weight=Tensor(np.ones((4, 1))))
    with pytest.raises(ShapeError):
        ops.binary_cross_entropy_with_logits(ROW, ROW, pos_weight=Tensor(np.ones((4, 1))))
