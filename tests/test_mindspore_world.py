"""MindSpore's further optimizers, class forms, layers, metrics, scales and image transforms, beside its results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import nn
from nbgrad.errors import ArgumentError, DtypeError, NoSamplesError, ShapeError

from .recorded.record_mindspore_world import FILE, IMAGES, VOLUMES, WEIGHTS, Cases, gradient, plain

pytestmark = pytest.mark.unoptimized

RECORDED = json.loads(FILE.read_text(encoding="utf-8"))
CASES = Cases("nbgrad").all


def extents(value: Any) -> Any:
    """The lengths of nested lists."""
    return (len(value), *{extents(one) for one in value}) if isinstance(value, list) else ()


def flat(value: Any) -> list[float]:
    return [number for one in value for number in flat(one)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", RECORDED)
def test_results_are_those_of_mindspore(name: str) -> None:
    found = plain(CASES[name]())
    # MindSpore computes some bytes with few bits, so that a rounding may go the other way.
    rounded = ("image: Resize", "image: Adjust", "image: Rotate, by straight lines")
    tolerance = 1.0 if name.startswith(rounded) else 2e-5
    np.testing.assert_allclose(flat(found), flat(RECORDED[name]), rtol=2e-5, atol=tolerance)
    assert extents(found) == extents(RECORDED[name])


def test_every_case_was_recorded() -> None:
    assert {*RECORDED} == {*CASES}
    assert len(RECORDED) > 60


# ----- Formulas that MindSpore's CPU does not have, or has otherwise: by their documentation, in NumPy -----


def lamb(w: np.ndarray, g: np.ndarray, t: int, state: dict[str, Any]) -> np.ndarray:
    state["m"] = 0.8 * state.get("m", 0.0) + 0.2 * g
    state["v"] = 0.9 * state.get("v", 0.0) + 0.1 * g * g
    r = state["m"] / (1 - 0.8**t) / (np.sqrt(state["v"] / (1 - 0.9**t)) + 1e-3) + 0.05 * w
    return w - 0.1 * np.linalg.norm(w) / np.linalg.norm(r) * r


def ftrl(w: np.ndarray, g: np.ndarray, t: int, state: dict[str, Any]) -> np.ndarray:
    old = state.get("n", np.full_like(w, 0.3))
    new = state["n"] = old + g * g
    z = state["z"] = state.get("z", 0.0) + g - (np.sqrt(new) - np.sqrt(old)) / 0.2 * w
    return np.where(np.abs(z) > 0.1, (np.sign(z) * 0.1 - z) / (np.sqrt(new) / 0.2 + 0.4), 0.0)


def lars(w: np.ndarray, g: np.ndarray, t: int, state: dict[str, Any]) -> np.ndarray:
    """With Momentum inside, whose loss scale is 4 and decay 0.05."""
    g = g / 4
    of_w, of_g = np.linalg.norm(w), np.linalg.norm(g)
    g = 0.3 * of_w / (of_g + 0.05 * of_w + 1e-3) * (g + 0.05 * w)
    state["m"] = 0.8 * state.get("m", 0.0) + g
    return w - 0.2 * state["m"]


def clipped_lars(w: np.ndarray, g: np.ndarray, t: int, state: dict[str, Any]) -> np.ndarray:
    """With SGD inside, whose rate falls."""
    rate = (0.5, 0.3, 0.01)[t - 1]
    return w - rate * min(0.02 * np.linalg.norm(w) / (np.linalg.norm(g) + 1e-5) / rate, 1.0) * g


@pytest.mark.parametrize(
    ("formula", "made"),
    [
        (lars, lambda p: nn.LARS(nn.Momentum(p, 0.2, 0.8, 0.05, 4.0), 1e-3, 0.3)),
        (clipped_lars, lambda p: nn.LARS(nn.SGD(p, [0.5, 0.3, 0.01]), coefficient=0.02, use_clip=True)),
        (lamb, lambda p: nn.Lamb(p, 0.1, 0.8, 0.9, 1e-3, weight_decay=0.05)),
        (ftrl, lambda p: nn.FTRL(p, 0.3, 0.2, l1=0.1, l2=0.2)),
    ],
)
def test_formulas(formula: Any, made: Any) -> None:
    parameters = [nb.Parameter(w.astype(np.float64), name=f"w{k}") for k, w in enumerate(WEIGHTS)]
    optimizer, values, states = made(parameters), [w.astype(np.float64) for w in WEIGHTS], [{} for _ in WEIGHTS]
    for step in range(3):
        gradients = [gradient(w, step).astype(np.float64) for w in values]
        values = [formula(w, g, step + 1, s) for w, g, s in zip(values, gradients, states, strict=True)]
        optimizer(tuple([nb.Tensor(g) for g in gradients]))
        for parameter, value in zip(parameters, values, strict=True):
            np.testing.assert_allclose(parameter.asnumpy(), value, rtol=1e-9)


def test_lars_trains_and_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    x = nb.Tensor(np.random.default_rng(0).normal(size=(16, 3)))
    y = x.sum(1, keepdims=True)

    def made() -> tuple[nn.Cell, nn.TrainOneStepCell]:
        net = nn.Dense(3, 1, weight_init="ones", bias_init="ones")
        optimizer = nn.LARS(nn.Momentum(net.trainable_params(), 0.1, 0.9), coefficient=0.5)
        return net, nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)

    net, step = made()
    losses = [float(step(x, y)) for _ in range(4)]
    assert losses[-1] < losses[0]
    nb.save_checkpoint(step, str(tmp_path / "lars.ckpt"))
    _, other = made()
    nb.load_param_into_net(other, nb.load_checkpoint(str(tmp_path / "lars.ckpt")))
    assert float(other(x, y)) == float(step(x, y))
    with pytest.raises(nb.errors.DtypeError, match="changes the gradients of an optimizer"):
        nn.LARS(net)  # pyright: ignore[reportArgumentType]


def test_bilinear_images_without_flags() -> None:
    # Pixel k lies at k * old / new: of [a, b] these are a, (a + b) / 2, b, b.
    row = nb.Tensor(np.array([[[[0.0, 2.0]]]], np.float32))
    assert nb.ops.ResizeBilinear((1, 4))(row).tolist() == [[[[0.0, 1.0, 2.0, 2.0]]]]
    assert nb.ops.ResizeBilinear((1, 3), align_corners=True)(row).tolist() == [[[[0.0, 1.0, 2.0]]]]
    assert nb.ops.ResizeBilinear((1, 4), half_pixel_centers=True)(row).tolist() == [[[[0.0, 0.5, 1.5, 2.0]]]]


def test_gradients_of_volumes() -> None:
    x, weight = nb.Tensor(VOLUMES[:, :, :2, :3, :3].astype(np.float64)), nb.Tensor(np.ones((1, 2, 2, 2, 2)))
    nb.check_grads(lambda x, w: (nb.ops.conv3d(x, w, pad_mode="same") ** 2).sum(), (x, weight), order=1)
    nb.check_grads(lambda x: (nb.ops.max_pool3d(x, 2, 1) ** 2).sum(), (x,), order=1)
    # The adjoint: <conv3d(x), y> = <x, conv_transpose3d(y)>.
    y = nb.Tensor(np.arange(4.0).reshape(1, 1, 1, 2, 2))
    left = float((nb.ops.conv3d(x, weight) * y).sum())
    right = float((x * nb.ops.conv_transpose3d(y, weight)).sum())
    assert left == pytest.approx(right, rel=1e-12)


def test_forms_that_draw_and_write() -> None:
    drawn = nb.ops.UniformInt()((50,), nb.Tensor(2), nb.Tensor(4))
    assert {*drawn.tolist()} == {2, 3}
    assert (drawn.dtype, nb.ops.StandardNormal()((2, 3)).shape) == (nb.int32, (2, 3))
    assert all(0 <= x < 1 for x in nb.ops.UniformReal()((9,)).tolist())
    weight = nb.Parameter(nb.Tensor([1.0, 2.0]), name="w")
    nb.ops.ScatterNdUpdate()(weight, nb.Tensor([[1]]), nb.Tensor([9.0]))
    assert weight.tolist() == [1.0, 9.0]


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda: nn.Conv1d(2, 4, 3), (4, 2, 1, 3)),
        (lambda: nn.Conv1dTranspose(2, 4, 3), (2, 4, 1, 3)),
        (lambda: nn.Conv1dTranspose(2, 4, 3, group=2, weight_init=np.ones((2, 2, 3), np.float32)), (2, 2, 1, 3)),
        (lambda: nn.Conv1dTranspose(2, 4, 3, weight_init=np.ones((2, 4, 1, 3), np.float32)), (2, 4, 1, 3)),
    ],
)
def test_weights_of_signals_have_an_axis_of_rows(layer: Any, shape: Any) -> None:
    """The shapes of MindSpore 2.10, which its checkpoints have."""
    assert layer().weight.shape == shape


def test_instances_are_standardised() -> None:
    y = nn.InstanceNorm2d(2, eps=1e-12)(nb.Tensor(IMAGES)).asnumpy()
    np.testing.assert_allclose(y.mean((2, 3)), 0, atol=1e-6)
    np.testing.assert_allclose(y.std((2, 3)), 1, rtol=1e-5)
    synchronous = nn.SyncBatchNorm(2).set_train()
    np.testing.assert_allclose(
        synchronous(nb.Tensor(IMAGES)).asnumpy(), nn.BatchNorm2d(2).set_train()(nb.Tensor(IMAGES)).asnumpy()
    )


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: nn.Pad(((1, 1),), "WRAP"), ArgumentError),
        (lambda: nn.Pad(((1, -1),)), ArgumentError),
        (lambda: nn.Pad(((1, 1),))(nb.Tensor([[1.0]])), ShapeError),
        (lambda: nn.Conv3d(2, 3, 2)(nb.ops.ones((1, 3, 2, 2, 2))), ShapeError),
        (lambda: nn.Conv3d(2, 3, 2, group=2), ArgumentError),
        (lambda: nn.Conv3d(2, 4, 2, padding=1), ArgumentError),
        (lambda: nn.Conv3d(2, 4, (2, 2)), ArgumentError),
        (lambda: nb.ops.conv3d(nb.ops.ones((1, 1, 2, 2, 2)), nb.ops.ones((1, 1, 3, 3, 3))), ShapeError),
        (lambda: nb.ops.Conv2D(4, 3)(nb.ops.ones((1, 1, 5, 5)), nb.ops.ones((4, 1, 2, 2))), ShapeError),
        (lambda: nb.ops.ResizeBilinear((2, 2), True, True)(nb.ops.ones((1, 1, 2, 2))), ArgumentError),
        (lambda: nb.ops.ResizeBilinear((2, 2))(nb.ops.ones((2, 2))), ShapeError),
        (lambda: nb.ops.DepthToSpace(2)(nb.ops.ones((1, 3, 2, 2))), ShapeError),
        (lambda: nb.ops.IOU()(nb.ops.ones((4,)), nb.ops.ones((1, 4))), ShapeError),
        (lambda: nb.ops.ScatterNdUpdate()(nb.Tensor([1.0]), nb.Tensor([[0]]), nb.Tensor([2.0])), DtypeError),
        (lambda: nn.ResizeBilinear()(nb.ops.ones((1, 1, 2, 2))), ArgumentError),
        (lambda: nn.Rprop([nb.Parameter(nb.Tensor([1.0]), name="w")], etas=(1.5, 2.0)), ArgumentError),
        (lambda: nn.Accuracy("other"), ArgumentError),
        (lambda: nn.Accuracy().eval(), NoSamplesError),
        (lambda: nn.Accuracy().update(nb.Tensor([[1.0, 0.0]]), nb.Tensor([2])), ArgumentError),
        (lambda: nn.Accuracy().update(nb.Tensor([[1.0, 0.0]]), nb.Tensor([0, 1])), ShapeError),
        (lambda: nn.Loss().update(nb.Tensor([1.0, 2.0])), ShapeError),
        (lambda: nn.TopKCategoricalAccuracy(0), ArgumentError),
        (lambda: nb.ops.HyperMap()(lambda x, y: x, (1, 2), (1,)), ArgumentError),
        (lambda: nb.ops.MultitypeFuncGraph("f").register("Nothing"), DtypeError),
        (lambda: nb.ops.MultitypeFuncGraph("f")(1), ArgumentError),
        (lambda: nb.ops.tuple_to_array((1, 2.0)), DtypeError),
        (lambda: nb.ops.scalar_to_tensor("1"), DtypeError),
        (lambda: nb.jit_class(3), DtypeError),  # pyright: ignore[reportArgumentType]
    ],
)
def test_bad_input(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()
