"""Functions of `mint.nn.functional` that MindSpore lacks, beside the values and gradients of PyTorch 2.14."""

from __future__ import annotations

import json

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError
from nbgrad.mint.nn import functional

from .recorded.record_torch_functions import CASES, FILE, weights

pytestmark = pytest.mark.unoptimized
RECORDED = json.loads(FILE.read_text())


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{k}-{one[0]}" for k, one in enumerate(CASES)])
def test_values_and_gradients_are_those_of_pytorch(number: int) -> None:
    (name, args, kwargs, wrt), (known_name, value, gradients) = CASES[number], RECORDED[number]
    assert name == known_name
    function = getattr(functional, name)

    def result(*arrays):
        given = [nb.Tensor(one) if isinstance(one, np.ndarray) else one for one in args]
        for at, array in zip(wrt, arrays, strict=True):
            given[at] = array
        return function(*given, **kwargs)

    arrays = [nb.Tensor(args[at]) for at in wrt]
    found = result(*arrays)
    np.testing.assert_allclose(found.asnumpy(), value, rtol=1e-9, atol=1e-12)
    w = weights(found.shape)
    slopes = nb.jit(nb.grad(lambda *arrays: (result(*arrays) * w).sum(), tuple(range(len(wrt)))))(*arrays)
    for slope, gradient in zip(slopes if len(wrt) > 1 else [slopes], gradients, strict=True):
        slope = slope[0] if isinstance(slope, tuple) else slope
        np.testing.assert_allclose(slope.asnumpy().reshape(-1), gradient, rtol=1e-8, atol=1e-12)


def test_losses_of_label_sequences_take_labels_one_after_the_other() -> None:
    x = nb.ops.log_softmax(nb.Tensor(np.random.default_rng(0).standard_normal((6, 2, 5))), -1)
    padded = functional.ctc_loss(x, nb.Tensor([[1, 2, 3], [2, 2, 0]]), [6, 5], [3, 2])
    joined = functional.ctc_loss(x, nb.Tensor([1, 2, 3, 2, 2]), nb.Tensor([6, 5]), nb.Tensor([3, 2]))
    np.testing.assert_allclose(joined.asnumpy(), padded.asnumpy())


def test_dropout_for_selu_keeps_mean_and_variance() -> None:
    nb.set_seed(1)
    x = nb.ops.randn(200, 1000)
    y = functional.alpha_dropout(x, 0.3, training=True).asnumpy()
    assert abs(y.mean()) < 0.02
    assert abs(y.var() - 1.0) < 0.02
    channels = functional.feature_alpha_dropout(nb.ops.ones((4, 50, 3)), 0.5, training=True).asnumpy()
    assert (channels.std(axis=2) == 0).all()
    assert len(np.unique(channels)) == 2


def test_wrong_bags_are_refused() -> None:
    with pytest.raises(ArgumentError, match="per_sample_weights"):
        functional.embedding_bag(
            nb.Tensor([[0, 1]]), nb.ops.ones((3, 2)), mode="mean", per_sample_weights=nb.ops.ones((1, 2))
        )
