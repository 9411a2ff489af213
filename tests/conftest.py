"""What all tests share: Hypothesis without time limits (a first example compiles), and markers that skip.

The examples are the same in every run; `--hypothesis-profile=explore` looks for new ones.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from nbgrad.info import cuda_devices

settings.register_profile("nbgrad", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("nbgrad")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run, and say why."""
    reasons: dict[str, str] = {}
    if not hasattr(os, "fork"):
        reasons["fork"] = "this system cannot fork"
    if any(item.get_closest_marker("gpu") for item in items) and not cuda_devices():
        reasons["gpu"] = "no CUDA device"
    for item in items:
        for marker, reason in reasons.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))
