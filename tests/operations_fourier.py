"""Rows for `numpy.fft`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .operation import Operation, between, operation, real

NARROW = ("float32",)
"""NumPy's transforms of float16 are as precise as those of float32."""


def transform(name: str, function: Any, *samples: Any, peers: str = "", **options: Any) -> Operation:
    """A Fourier transform: linear, so the product of the result with itself gives it a second derivative."""

    def squared(*arrays: Any) -> Any:
        value = function(*arrays)
        return [v * v for v in value] if isinstance(value, list | tuple) else value * value

    return operation(
        name,
        squared,
        *(samples or (real(3, 4), real(2, 3, 5))),
        peers=peers,
        **{"complexes": True, "dtypes": NARROW, **options},
    )


F = np.fft


def one_axis(function: Any) -> Any:
    """A transform of one axis with all its options."""
    return lambda x: (function(x), function(x, 6, 0, "ortho"), function(x, n=2, norm="forward"))


def two_axes(function: Any) -> Any:
    return lambda x: (function(x), function(x, (3, 5), (0, 1), "ortho"))


def all_axes(function: Any) -> Any:
    return lambda x: (function(x), function(x, axes=(0, 1), norm="forward"))


FFT = [
    *[
        transform(
            name,
            one_axis(getattr(F, name)),
            peers=f"jax:{name} torch:fft.{name}",
        )
        for name in ("fft", "ifft", "hfft", "irfft")
    ],
    *[
        transform(
            name,
            one_axis(getattr(F, name)),
            peers=f"jax:{name} torch:fft.{name}",
            complexes=False,
        )
        for name in ("rfft", "ihfft")
    ],
    *[
        transform(
            name,
            two_axes(getattr(F, name)),
            peers=f"jax:{name} torch:fft.{name}",
        )
        for name in ("fft2", "ifft2", "irfft2")
    ],
    transform(
        "rfft2",
        lambda x: (F.rfft2(x), F.rfft2(x, (3, 5), (0, 1), "ortho")),
        peers="jax:rfft2 torch:fft.rfft2",
        complexes=False,
    ),
    *[
        transform(
            name,
            all_axes(getattr(F, name)),
            peers=f"jax:{name} torch:fft.{name}",
        )
        for name in ("fftn", "ifftn", "irfftn")
    ],
    transform(
        "rfftn",
        lambda x: (F.rfftn(x), F.rfftn(x, axes=(0, 1), norm="forward")),
        peers="jax:rfftn torch:fft.rfftn",
        complexes=False,
    ),
    transform(
        "fftshift", lambda x: (F.fftshift(x), F.ifftshift(x, axes=0)), peers="torch:fft.fftshift torch:fft.ifftshift"
    ),
    operation(
        "fftfreq times a spacing",
        lambda d: (F.fftfreq(9) / d, F.rfftfreq(10) / d),
        between(0.5, 1),
        peers="jax:testFftfreq jax:rfftfreq",
        dtypes=(),
    ),
    transform(
        "hfft over two axes", lambda x: F.hfft(F.fft(x, axis=0), axis=1), peers="torch:fft.hfft2 torch:fft.hfftn"
    ),
    transform(
        "ihfft over two axes",
        lambda x: F.ifft(F.ihfft(x, axis=1), axis=0),
        peers="torch:fft.ihfft2 torch:fft.ihfftn",
        complexes=False,
    ),
    transform(
        "short-time transform",
        lambda x: F.rfft(np.stack([x[k : k + 4] for k in range(0, 9, 2)]) * np.hanning(4)),
        real(12),
        peers="torch:stft",
        complexes=False,
    ),
    transform("its inverse", lambda x: F.irfft(x, 6).sum(axis=0), real(3, 4), peers="torch:istft"),
]

OPERATIONS = FFT
