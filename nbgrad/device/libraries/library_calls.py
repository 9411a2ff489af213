"""Special nodes that NVIDIA's libraries, or the host, compute for a device.

In: a `Special` and a device. Out: its `Recipe`, or None for nodes without a library (those have kernels of our own).
Called by recipes.py. A `host` node calls a function of NumPy or SciPy on the CPU. Its recipe is the first that exists
of these: the routine registered for the device (graph/host_functions.py), a routine of cuSOLVER, or that function, for
which the operands are copied to the host and the result back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...compiler.fuse import Special
from ...compiler.host_calls import result_positions
from ...graph.custom_calls import Call, run_results_into
from ...graph.host_functions import DeviceCall, device_call, run_host
from ..driver.libraries import LETTERS
from ..kernels.launches import Recipe, Routine
from ..memory.arrays import Device
from .library_decompositions import DEVICE_ROUTINES, Layout
from .library_products import matmul_recipe
from .solvers import cholesky_recipe, lu_recipe, triangular_solve_recipe


def library_recipe(kernel: Special, device: Device) -> Recipe | None:
    """The recipe of a special node by a library or the host; None if it has none."""
    make = RECIPES.get(kernel.node.name)
    return None if make is None else make(kernel, device)


def _lu(kernel: Special, device: Device) -> Recipe:
    node = kernel.node
    return lu_recipe(device, node.dtype, node.shape[0], node.shape[2])


def _cholesky(kernel: Special, device: Device) -> Recipe:
    node = kernel.node
    return cholesky_recipe(device, node.dtype, node.shape[0], node.shape[2])


def _triangular_solve(kernel: Special, device: Device) -> Recipe:
    node = kernel.node
    lower, transposed, unit = node.params
    batch, n, columns = node.shape
    return triangular_solve_recipe(device, node.dtype, (batch, n, columns), lower, transposed, unit)


# ----- Host nodes -----


@dataclass(frozen=True)
class _OnHost:
    """Runs a function of NumPy or SciPy on the host. Its errors are raised."""

    params: tuple[Any, ...]
    layouts: tuple[Layout, ...]
    positions: Sequence[int] | None = None
    """Those of the results of an own kernel that are wanted, each in an array of its own."""
    capturable = False

    def __call__(self, context: Any, addresses: Sequence[int]) -> None:
        driver, stream = context.driver, context.stream
        *given, layout = self.layouts
        arrays: list[np.ndarray] = []
        for address, (shape, dtype) in zip(addresses, given, strict=False):
            array = np.empty(shape, dtype)
            if array.size:
                driver.download(array, address, stream)
            arrays.append(array)
        if self.positions is None:
            shape, dtype = layout
            results = [np.ascontiguousarray(run_host(self.params, *arrays), dtype).reshape(shape)]
        else:
            call: Call = self.params[1]
            found = {k: np.empty(*call.outputs[k]) for k in self.positions}
            run_results_into(call, arrays, found)
            results = list(found.values())
        for address, result in zip(addresses[len(given) :], results, strict=True):
            if result.size:
                driver.upload(address, result, stream)


@dataclass(frozen=True)
class _Registered:
    """Calls the routine that is registered for the device."""

    call: DeviceCall
    layouts: tuple[Layout, ...]
    capturable = False

    def __call__(self, context: Any, addresses: Sequence[int]) -> None:
        self.call(context, addresses, self.layouts)


def _host(kernel: Special, device: Device) -> Recipe:
    """The node's last parameter has the shapes and dtypes of operands and result as the function knows them."""
    *rest, layouts = kernel.node.params
    params = tuple(rest)
    positions = result_positions(kernel)
    pointers = tuple(range(len(layouts) - 1 + len(kernel.targets)))
    call = device_call(params if positions is None else (*params, tuple(positions)))
    if call is not None:
        return Recipe((Routine(_Registered(call, layouts), pointers),))
    make = DEVICE_ROUTINES.get(params[0].name)
    if make is not None and math.prod(layouts[-1][0]) and layouts[0][1].name in LETTERS:
        recipe = make(device, layouts, *params[1:])
        if recipe is not None:
            return recipe
    return Recipe((Routine(_OnHost(params, layouts, positions), pointers),))


RECIPES: dict[str, Callable[[Special, Device], Recipe | None]] = {
    "matmul": matmul_recipe,
    "lu": _lu,
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "host": _host,
}
"""By the name of a special node."""
