"""Tones and motions of images beside Pillow, and their ranges; MindSpore's results are in test_mindspore_world.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nbgrad.dataset import vision
from nbgrad.errors import ArgumentError, DtypeError

pytestmark = pytest.mark.unoptimized

IMAGE = np.random.default_rng(5).integers(0, 256, (12, 9, 3)).astype(np.uint8)


def draws(transform: Any, count: int = 300) -> list[np.ndarray]:
    return [transform._with_random(np.random.default_rng(k), IMAGE) for k in range(count)]


# ----- Beside Pillow -----


def test_tones_are_those_of_pillow() -> None:
    pil = pytest.importorskip("PIL.Image")
    ops, enhance = pytest.importorskip("PIL.ImageOps"), pytest.importorskip("PIL.ImageEnhance")
    image = pil.fromarray(IMAGE)
    for made, other in [
        (vision.Invert(), ops.invert(image)),
        (vision.Posterize(2), ops.posterize(image, 2)),
        (vision.Solarize(100), ops.solarize(image, 100)),
        (vision.AutoContrast(), ops.autocontrast(image)),
        (vision.AdjustSharpness(1.7), enhance.Sharpness(image).enhance(1.7)),
        (vision.AdjustSaturation(0.3), enhance.Color(image).enhance(0.3)),
        (vision.AdjustContrast(1.4), enhance.Contrast(image).enhance(1.4)),
        (vision.AdjustBrightness(0.7), enhance.Brightness(image).enhance(0.7)),
    ]:
        # Pillow leaves fractions out, where MindSpore rounds.
        np.testing.assert_allclose(made(IMAGE).astype(int), np.asarray(other).astype(int), atol=1)
        assert isinstance(made(image), pil.Image)


def test_quarters_of_a_turn() -> None:
    for turns in range(4):
        found = vision.Rotate(90.0 * turns, vision.Inter.BILINEAR, expand=True)(IMAGE)
        assert found.tolist() == np.rot90(IMAGE, turns).tolist()
    # With the clock, about the middle of the middle pixel, without a scale: Affine turns the other way.
    square = IMAGE[:9]
    assert vision.Affine(90.0, (0.0, 0.0), 1.0, 0.0)(square).tolist() == np.rot90(square, 3).tolist()
    moved = vision.Affine(0.0, (1 / 9, 2 / 12), 1.0, 0.0, fill_value=7)(IMAGE)
    assert moved[2:, 1:].tolist() == IMAGE[:-2, :-1].tolist()
    assert {*moved[:2].ravel().tolist(), *moved[:, :1].ravel().tolist()} == {7}


def test_a_histogram_becomes_even() -> None:
    # A ramp of 256 values, squeezed into 64: equalized, it fills all of the range again.
    ramp = (np.arange(256) // 4 + 60).astype(np.uint8).reshape(16, 16)
    found = vision.Equalize()(ramp)
    assert (found.min(), found.max()) == (0, 255)
    assert np.abs(np.sort(found.ravel()).astype(float) - np.arange(256)).max() <= 4


# ----- At random -----


def test_random_changes_stay_in_their_ranges() -> None:
    bits = {
        int(np.unpackbits(np.bitwise_or.reduce(one, axis=None)).sum()) for one in draws(vision.RandomPosterize((2, 4)))
    }
    assert bits == {2, 3, 4}
    half = [(one != IMAGE).any() for one in draws(vision.RandomInvert(0.5))]
    assert 0.4 < np.mean(half) < 0.6
    grey = [(one[..., 0] == one[..., 1]).all() for one in draws(vision.RandomGrayscale(0.25))]
    assert 0.15 < np.mean(grey) < 0.35
    assert all((one == IMAGE).all() for one in draws(vision.RandomEqualize(0.0), 5))
    assert all((one == vision.AutoContrast()(IMAGE)).all() for one in draws(vision.RandomAutoContrast(prob=1.0), 5))
    low, high = vision.AdjustSaturation(0.5)(IMAGE).astype(int), vision.AdjustSaturation(1.5)(IMAGE).astype(int)
    for one in draws(vision.RandomColor((0.5, 1.5)), 50):
        assert ((one >= np.minimum(low, high)) & (one <= np.maximum(low, high))).all()
    assert len({one.tobytes() for one in draws(vision.RandomSharpness(), 20)}) == 20
    for one in draws(vision.RandomSolarize((100, 150)), 50):
        changed = IMAGE[one != IMAGE]
        assert not changed.size or changed.min() >= 100


def test_random_motions() -> None:
    for one in draws(vision.RandomRotation((90, 90)), 3):
        assert one.tolist() == vision.Rotate(90)(IMAGE).tolist()
    assert len({one.tobytes() for one in draws(vision.RandomRotation(30), 20)}) > 15
    for one in draws(vision.RandomAffine(0, (0.0, 0.25)), 40):
        shifts = [k for k in range(4) if (one[:, k:] == IMAGE[:, : IMAGE.shape[1] - k]).all()]
        assert shifts
    assert all((one == IMAGE).all() for one in draws(vision.RandomAffine(0), 3))


def test_policies() -> None:
    policy = [[(vision.Invert(), 1.0), (vision.Posterize(1), 0.0)], [(vision.RandomPosterize((1, 1)), 1.0)]]
    found = {one.tobytes() for one in draws(vision.RandomSelectSubpolicy(policy), 30)}
    assert found == {vision.Invert()(IMAGE).tobytes(), vision.Posterize(1)(IMAGE).tobytes()}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: vision.Invert()(IMAGE / 255.0), DtypeError),
        (lambda: vision.AdjustContrast(1.0)(IMAGE[..., 0]), DtypeError),
        (lambda: vision.AdjustSharpness(-1.0), ArgumentError),
        (lambda: vision.AutoContrast(50.0), ArgumentError),
        (lambda: vision.Posterize(9), ArgumentError),
        (lambda: vision.Solarize((5, 3)), ArgumentError),
        (lambda: vision.RandomPosterize((5, 3)), ArgumentError),
        (lambda: vision.RandomColor((1.0, 0.5)), ArgumentError),
        (lambda: vision.RandomRotation((3, 2)), ArgumentError),
        (lambda: vision.RandomAffine(10, (0.1, 0.2, 0.3)), ArgumentError),
        (lambda: vision.Affine(0.0, (0.0, 0.0), 0.0, 0.0), ArgumentError),
        (lambda: vision.Rotate(10.0, vision.Inter.BICUBIC)(IMAGE), ArgumentError),
        (lambda: vision.RandomSelectSubpolicy([[vision.Invert()]]), DtypeError),  # pyright: ignore[reportArgumentType]
    ],
)
def test_bad_input(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()
