"""Modules under other paths: those that have moved, for one release and with a warning, and MindSpore's older paths.

In: the import of an old path. Out: a module with the names of the new ones. Called by Python's import system for what
it finds nowhere else, so that other imports cost nothing; `nbgrad/__init__.py` installs it. Pickles of earlier releases
are read by it too.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from .mindspore_paths import PATHS
from .mindspore_paths import submodule as submodule

MOVED = {
    "nn.arguments": "nn.layer_arguments",
    "aliasing": "record.shared_memory",
    "boundary": "record.leaks",
    "callers": "record.written_arguments",
    "check": "transforms.check",
    "checkpoint": "nn.checkpoint",
    "compiler.builder": "compiler.loop_builder",
    "compiler.components": "compiler.unroll_axes",
    "compiler.emit": "compiler.emitters.emit",
    "compiler.half": "compiler.texts.half",
    "compiler.hints": "compiler.texts.hints",
    "compiler.huge_angles": "compiler.texts.huge_angles",
    "compiler.interrupts": "process.interrupts",
    "compiler.locks": "process.locks",
    "compiler.multiply_add": "compiler.texts.multiply_add",
    "compiler.once": "process.once",
    "compiler.private_folder": "process.private_folder",
    "compiler.rows": "compiler.row_scatter",
    "compiler.text_passes": "compiler.texts.text_passes",
    "compiler.tiles": "compiler.emitters.tiles",
    "custom": "transforms.custom",
    "device.arrays": "device.memory.arrays",
    "device.checked_accesses": "device.simulator.checked_accesses",
    "device.copying": "device.libraries.copying",
    "device.cuda_driver": "device.driver.cuda_driver",
    "device.cuda_errors": "device.driver.cuda_errors",
    "device.decompositions": "device.libraries.library_decompositions",
    "device.dialect": "device.kernels.dialect",
    "device.dlpack": "device.memory.dlpack",
    "device.emitter": "device.kernels.emitter",
    "device.fibers": "device.simulator.fibers",
    "device.host_dialect": "device.simulator.cpu_dialect",
    "device.host_instructions": "device.simulator.cpu_instructions",
    "device.launcher": "device.driver.launcher",
    "device.launches": "device.kernels.launches",
    "device.library_calls": "device.libraries.library_calls",
    "device.loops": "device.kernels.grid_loops",
    "device.matrices": "device.kernels.matrix_recipes",
    "device.matrix_kernels": "device.libraries.matrix_kernels",
    "device.own_kernels": "device.memory.custom_launches",
    "device.parameters": "device.kernels.launch_parameters",
    "device.pools": "device.memory.pools",
    "device.products": "device.libraries.library_products",
    "device.ptx": "device.kernels.ptx",
    "device.python_kernels": "device.kernels.python_kernels",
    "device.python_launches": "device.kernels.python_launches",
    "device.recorder": "device.simulator.recorder",
    "device.reductions": "device.kernels.block_reductions",
    "device.row_passes": "device.kernels.row_passes",
    "device.scalars": "device.kernels.device_scalars",
    "device.scans": "device.kernels.scans",
    "device.scatters": "device.kernels.scatters",
    "device.settings": "device.kernels.settings",
    "device.simulated_libraries": "device.simulator.simulated_libraries",
    "device.simulated_memory": "device.simulator.simulated_memory",
    "device.solvers": "device.libraries.solvers",
    "device.sorts": "device.kernels.sorts",
    "device.specials": "device.recipes",
    "device.streams": "device.memory.streams",
    "device.transposes": "device.kernels.transposes",
    "device.variants": "device.kernels.variants",
    "device.window_recipes": "device.kernels.window_recipes",
    "device_functions": "adjoints.device_function",
    "device_paths": "compiled.device_calls compiled.device_doors",
    "devices": "record.placement tensors.devices",
    "explain": "compiled.explain",
    "explain_device": "compiled.explain_device",
    "exports": "tensors.protocols",
    "functional": "transforms.jacobians",
    "generator": "tensors.generator",
    "grad": "transforms.grad",
    "graph.collection": "process.gc_pause",
    "graph.derivatives": "graph.formulas graph.rows",
    "graph.host": "graph.host_functions",
    "graph.interleaved": "graph.complex_storage",
    "graph.own_kernels": "graph.custom_calls",
    "graph.pieces": "graph.cotangents.slice_cotangents",
    "graph.structure": "graph.graph_key",
    "host_code": "transforms.host_code",
    "in_place": "tensors.mutation",
    "interop": "record.foreign_arrays",
    "jit": "compiled.jit",
    "lifting": "transforms.arguments",
    "moves": "record.view_chain",
    "nn.activations": "nn.activation_layers",
    "nn.attention": "nn.transformers.multihead_attention",
    "nn.attention_layers": "nn.transformers.multihead_attention",
    "nn.convolution": "nn.convolution_layers",
    "nn.losses": "nn.loss_layers",
    "nn.normalisation": "nn.normalisation_layers",
    "nn.pooling": "nn.pooling_layers",
    "numpy.applying": "functions.analysis.applying",
    "numpy.banded": "functions.linalg.banded",
    "numpy.borders": "functions.analysis.borders",
    "numpy.complex_parts": "functions.elementwise.complex_parts",
    "numpy.concatenators": "functions.arrays.concatenators",
    "numpy.construction": "functions.arrays.construction",
    "numpy.cosine_transforms": "functions.analysis.cosine_transforms",
    "numpy.creation": "functions.arrays.creation",
    "numpy.cumulative": "functions.arrays.cumulative",
    "numpy.determinants": "functions.linalg.determinants",
    "numpy.eigenvalues": "functions.linalg.eigenvalues",
    "numpy.elementwise": "functions.elementwise.pointwise",
    "numpy.factorisations": "functions.linalg.factorisations",
    "numpy.fourier": "functions.analysis.fourier",
    "numpy.gamma_functions": "functions.elementwise.gamma_functions",
    "numpy.histograms": "functions.analysis.histograms",
    "numpy.index_keys": "record.index_keys",
    "numpy.indexing": "record.indexing functions.arrays.taking",
    "numpy.inspection": "functions.arrays.inspection",
    "numpy.integer_ufuncs": "functions.elementwise.ufuncs",
    "numpy.joining": "functions.arrays.joining",
    "numpy.least_squares": "functions.linalg.least_squares",
    "numpy.lifting": "record.as_node record.numbers",
    "numpy.linear_algebra": "functions.linalg.matrix_products",
    "numpy.matrices": "functions.linalg.matrix_batches",
    "numpy.matrix_functions": "functions.linalg.matrix_functions",
    "numpy.norms": "functions.linalg.norms",
    "numpy.numpy_table": "functions.table",
    "numpy.operands": "record.axes_and_dtypes",
    "numpy.ordering": "functions.arrays.result_order",
    "numpy.orthogonal": "functions.linalg.orthogonal",
    "numpy.padding": "functions.analysis.padding",
    "numpy.polynomials": "functions.analysis.polynomials",
    "numpy.positions": "functions.arrays.positions",
    "numpy.promotion": "record.promotion",
    "numpy.quantiles": "functions.analysis.quantiles",
    "numpy.reductions": "functions.arrays.reductions",
    "numpy.scipy_functions": "functions.elementwise.scipy_functions",
    "numpy.scipy_ufuncs": "functions.elementwise.scipy_ufuncs",
    "numpy.selection": "functions.analysis.selection",
    "numpy.sets": "functions.arrays.sets",
    "numpy.shaping": "functions.arrays.shaping",
    "numpy.singular_values": "functions.linalg.singular_values",
    "numpy.sorting": "functions.arrays.sorting",
    "numpy.special": "functions.elementwise.special_functions",
    "numpy.statistics": "functions.analysis.statistics",
    "numpy.subscripts": "functions.linalg.einsum",
    "numpy.triangular_factors": "functions.linalg.triangular_factors",
    "numpy.ufunc_methods": "functions.elementwise.ufunc_methods",
    "numpy.ufunc_protocol": "functions.elementwise.ufunc_protocol",
    "numpy.ufuncs": "functions.elementwise.ufuncs functions.elementwise.ufunc_functions",
    "numpy.viewing": "functions.arrays.viewing",
    "ops.complex_numbers": "ops.complex_values",
    "ops.creation": "ops.filled_arrays",
    "ops.factorisations": "ops.linear_systems",
    "ops.indexing": "ops.gathering",
    "ops.primitives": "ops.class_forms",
    "ops.random": "ops.random_tensors",
    "ops.reductions": "ops.reduction_functions",
    "ops.shapes": "ops.shape_functions",
    "ops.spelling": "ops.declarations ops.docstrings",
    "ops.tensor_methods": "ops",
    "ops.sorting": "ops.ranking",
    "own_primitives": "extend.custom_kernels",
    "parameter": "tensors.parameter",
    "paths": "compiled.specialization compiled.doors",
    "positions": "transforms.argument_positions",
    "python_numbers": "tensors.python_numbers",
    "runtime.object_layout": "process.object_layout",
    "runtime.plan": "runtime.cpu_plan",
    "runtime.program": "runtime.cpu_program",
    "runtime.tensors": "runtime.native_tensors",
    "scalar_functions": "extend.elementwise_functions",
    "signatures": "compiled.signatures",
    "source.conversion": "source.rebinding",
    "source.if_conversion": "extend.if_conversion",
    "source.printed": "extend.numba_source",
    "source.printed_helpers": "extend.numba_helpers",
    "source.scalar_calls": "extend.scalar_calls",
    "source.scalar_code": "extend.scalar_code",
    "source.scalars": "source.math_functions",
    "source.table": "source.replacements",
    "sparse.derivatives": "sparse.sparse_derivatives",
    "sparse.products": "functions.linalg.sparse_products",
    "targets": "compiled.out_arguments",
    "tensor": "record.tensor tensors.data",
    "tensor_methods": "ops",
    "tensor_operators": "tensors.operators",
    "vmap": "transforms.vmap",
    "zero_dimensional": "record.zero_dimensional",
}
"""Old path -> the modules that have its names now; all within nbgrad."""

FUNCTIONS = frozenset(["explain", "grad", "jit", "tensor", "vmap"])
"""Old paths under which users find a function as well: `import nbgrad.jit` must not put a module in its place."""


def forwarding(old: str, homes: str, warns: bool = True) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose names are elsewhere."""

    def getattribute(name: str) -> Any:
        if name == "__all__":
            return sorted({name for home in homes.split() for name in _names(_home(home))})
        for home in [] if name.startswith("__") else homes.split():
            module = _home(home)
            if hasattr(module, name):
                if warns:
                    _warn(old, f"nbgrad.{home}")
                return getattr(module, name)
        if not warns and (found := submodule(old.removeprefix("nbgrad."), name)) is not None:
            return found
        where = "it has moved to" if warns else "its names are those of"
        message = f"module {old!r} has no attribute {name!r}; {where} nbgrad.{homes.replace(' ', ', nbgrad.')}"
        raise AttributeError(message)

    return getattribute


def _home(path: str) -> ModuleType:
    """A module by its path after `nbgrad.`; "." is nbgrad itself."""
    return import_module("nbgrad" if path == "." else f"nbgrad.{path}")


def _names(module: ModuleType) -> list[str]:
    """The names that a module gives to others."""
    return getattr(module, "__all__", None) or [name for name in vars(module) if name[0] != "_"]


def _warn(old: str, new: str) -> None:
    message = f"{old} has moved to {new}; the old path will go with the next release."
    warnings.warn(message, DeprecationWarning, stacklevel=3)


class _Moved:
    """Finds and makes modules under other paths."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """The spec of such a path; None for all others."""
        path_here = fullname.removeprefix("nbgrad.")
        if path_here not in MOVED and path_here not in PATHS:
            return None
        return ModuleSpec(fullname, self)  # pyright: ignore[reportArgumentType] - importlib.abc costs time to import

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """A module that looks its names up elsewhere."""
        return _module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """A path that stands for one module becomes that module, unless further paths lie below it."""
        path = module.__name__.removeprefix("nbgrad.")
        homes = PATHS.get(path, "")
        if homes and " " not in homes and not any(other.startswith(f"{path}.") for other in PATHS):
            home = import_module(f"nbgrad.{homes}")
            if not hasattr(home, "__path__"):
                sys.modules[module.__name__] = home


def _module(old: str) -> ModuleType:
    path = old.removeprefix("nbgrad.")
    homes = MOVED.get(path) or PATHS[path]
    module = ModuleType(old, f"The names of {homes}.")
    vars(module)["__getattr__"] = forwarding(old, homes, path in MOVED)
    if path in PATHS:
        module.__path__ = []  # paths below it are found here too
    return module


def install() -> None:
    """Let Python find old paths."""
    sys.meta_path.append(_Moved())
    for name in FUNCTIONS:
        sys.modules[f"nbgrad.{name}"] = _module(f"nbgrad.{name}")
