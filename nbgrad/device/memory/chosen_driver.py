"""The driver in use: NVIDIA's, or another one within `using`.

In: nothing. Out: `driver()`. Called by everything that touches device memory. Nothing is started before the first call.
"""

from __future__ import annotations

import os
from functools import cache

from ..driver.driver import Driver

_chosen: list[Driver] = []


def driver() -> Driver:
    """The driver in use: NVIDIA's, or the simulator if the variable NBGRAD_CUDA_SIMULATOR is 1.

    Raises
    ------
    DeviceError
        If there is none: which part is missing, and what to install.
    """
    return _chosen[-1] if _chosen else _default()


@cache
def _default() -> Driver:
    if os.environ.get("NBGRAD_CUDA_SIMULATOR", "") not in ("", "0"):
        from ..simulator.simulator import Simulator

        return Simulator()
    from ..driver.cuda_driver import CudaDriver

    return CudaDriver()


class using:  # noqa: N801  (a context, used like a function)
    """Within it, another driver is in use: a simulator, or a recorder.

    Only arrays that were made within it may be used within it.
    """

    def __init__(self, other: Driver) -> None:
        self.other = other

    def __enter__(self) -> Driver:
        _chosen.append(self.other)
        return self.other

    def __exit__(self, *_: object) -> None:
        _chosen.pop()
