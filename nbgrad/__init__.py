"""nbgrad: gradients of NumPy functions, compiled.

    record         run the function on Tensors; every operation appends a node    record/, functions/
    roll           repeated operations -> loops                                   graph/loops/rolling.py
    differentiate  graph -> graph, from one table of derivatives                  graph/differentiate.py
    simplify       graph -> graph: equal nodes, constants, algebra                graph/simplify.py
    fuse           graph -> loop nests and special kernels                        compiler/fuse.py
    emit           loop nest -> LLVM IR -> machine code, cached on disk           compiler/emitters, cpu.py, cache.py
    plan           what runs together; buffers: lifetimes, one arena              runtime/stages.py, cpu_plan.py
    run            guards, pointers, threads, call                                runtime/cpu_program.py, native.py

This file lists every public name. Importing it imports neither Numba nor SciPy and compiles nothing; what scripts
seldom need is imported when it is first used.
"""

from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import config as config
from . import dtype as dtype
from . import errors as errors
from . import moved as _moved
from . import nn as nn
from . import numpy as numpy
from . import ops as ops
from .compiled.explain import explain as explain
from .compiled.jit import jit as jit
from .compiled.jit import ms_function as ms_function
from .compiler.cache import counters as counters
from .compiler.matrices.blas_provider import set_blas as set_blas
from .context import COMPATIBLE as COMPATIBLE
from .context import GRAPH_MODE as GRAPH_MODE
from .context import LAX as LAX
from .context import PYNATIVE_MODE as PYNATIVE_MODE
from .context import STRICT as STRICT
from .context import ParallelMode as ParallelMode
from .context import get_auto_parallel_context as get_auto_parallel_context
from .context import get_context as get_context
from .context import reset_auto_parallel_context as reset_auto_parallel_context
from .context import set_auto_parallel_context as set_auto_parallel_context
from .context import set_context as set_context
from .context import set_deterministic as set_deterministic
from .context import set_device as set_device
from .context import set_recursion_limit as set_recursion_limit
from .control.associative import associative_scan as associative_scan
from .control.branches import cond as cond
from .control.branches import switch as switch
from .control.scan import fori_loop as fori_loop
from .control.scan import map as map
from .control.scan import scan as scan
from .control.while_loops import while_loop as while_loop
from .dtype import Type as Type
from .dtype import bfloat16 as bfloat16
from .dtype import bool_ as bool_
from .dtype import byte as byte
from .dtype import complex64 as complex64
from .dtype import complex128 as complex128
from .dtype import double as double
from .dtype import dtype_to_nptype as dtype_to_nptype
from .dtype import dtype_to_pytype as dtype_to_pytype
from .dtype import float16 as float16
from .dtype import float32 as float32
from .dtype import float64 as float64
from .dtype import float_ as float_
from .dtype import get_py_obj_dtype as get_py_obj_dtype
from .dtype import half as half
from .dtype import int8 as int8
from .dtype import int16 as int16
from .dtype import int32 as int32
from .dtype import int64 as int64
from .dtype import int_ as int_
from .dtype import intc as intc
from .dtype import pytype_to_dtype as pytype_to_dtype
from .dtype import short as short
from .dtype import single as single
from .dtype import uint8 as uint8
from .dtype import uint16 as uint16
from .dtype import uint32 as uint32
from .dtype import uint64 as uint64
from .functions.analysis.fourier_routines import set_fft as set_fft
from .process import object_layout as _object_layout
from .record.foreign_arrays import from_dlpack as from_dlpack
from .record.tensor import Tensor as Tensor
from .runtime.threads import get_num_threads as get_num_threads
from .runtime.threads import set_num_threads as set_num_threads
from .tensors.data import from_numpy as from_numpy
from .tensors.data import tensor as tensor
from .tensors.parameter import Parameter as Parameter
from .tensors.parameter import ParameterTuple as ParameterTuple
from .transforms.custom import custom_vjp as custom_vjp
from .transforms.custom import stop_gradient as stop_gradient
from .transforms.grad import GradOperation as GradOperation
from .transforms.grad import get_grad as get_grad
from .transforms.grad import grad as grad
from .transforms.grad import value_and_grad as value_and_grad
from .transforms.recomputed import checkpoint as checkpoint
from .transforms.recomputed import recompute as recompute
from .transforms.vmap import vmap as vmap

_object_layout.check()
_moved.install()

if _TYPE_CHECKING:
    from . import amp as amp
    from . import autograd as autograd
    from . import bench as bench
    from . import communication as communication
    from . import cuda as cuda
    from . import dataset as dataset
    from . import interop as interop
    from . import log as log
    from . import optim as optim
    from . import solvers as solvers
    from . import tape as tape
    from . import train as train
    from .adjoints.device_function import device_function as device_function
    from .adjoints.kernel import kernel as kernel
    from .amp.loss_scale_managers import DynamicLossScaleManager as DynamicLossScaleManager
    from .amp.loss_scale_managers import FixedLossScaleManager as FixedLossScaleManager
    from .amp.loss_scale_managers import LossScaleManager as LossScaleManager
    from .autograd.grad_modes import enable_grad as enable_grad
    from .autograd.grad_modes import inference_mode as inference_mode
    from .autograd.grad_modes import is_grad_enabled as is_grad_enabled
    from .autograd.grad_modes import no_grad as no_grad
    from .autograd.grad_modes import set_grad_enabled as set_grad_enabled
    from .blockwise.map_reduce import map_reduce as map_reduce
    from .blockwise.row_blocks import blocks as blocks
    from .compiled.compiler_marks import constexpr as constexpr
    from .compiled.compiler_marks import jit_class as jit_class
    from .compiled.compiler_marks import lazy_inline as lazy_inline
    from .compiled.compiler_marks import ms_class as ms_class
    from .compiled.compiler_marks import mutable as mutable
    from .compiled.nan_search import find_nan as find_nan
    from .compiled.profiling import profile as profile
    from .extend.custom_kernels import primitive as primitive
    from .extend.elementwise_functions import elementwise as elementwise
    from .extend.plain_functions import callback as callback
    from .nn.checkpoint import load_checkpoint as load_checkpoint
    from .nn.checkpoint import load_param_into_net as load_param_into_net
    from .nn.checkpoint import save_checkpoint as save_checkpoint
    from .nn.exported import export as export
    from .nn.exported import load as load
    from .ops.elementwise import is_tensor as is_tensor
    from .ops.rarer.sparse_tensors import COOTensor as COOTensor
    from .ops.rarer.sparse_tensors import CSRTensor as CSRTensor
    from .ops.rarer.sparse_tensors import RowTensor as RowTensor
    from .solvers.implicit import custom_root as custom_root
    from .source.rebinding import differentiable_source as differentiable_source
    from .sparse.sparse_derivatives import sparse_hessian as sparse_hessian
    from .sparse.sparse_derivatives import sparse_jacobian as sparse_jacobian
    from .tape.accumulated_tangents import ForwardAccumulator as ForwardAccumulator
    from .tape.custom_gradients import custom_gradient as custom_gradient
    from .tape.gradient_tape import GradientTape as GradientTape
    from .tape.graph_gradients import gradients as gradients
    from .tensors.data import frombuffer as frombuffer
    from .tensors.generator import Generator as Generator
    from .tensors.generator import get_rng_state as get_rng_state
    from .tensors.generator import get_seed as get_seed
    from .tensors.generator import initial_seed as initial_seed
    from .tensors.generator import manual_seed as manual_seed
    from .tensors.generator import seed as seed
    from .tensors.generator import set_rng_state as set_rng_state
    from .tensors.generator import set_seed as set_seed
    from .train.callbacks import Callback as Callback
    from .train.callbacks import EarlyStopping as EarlyStopping
    from .train.callbacks import History as History
    from .train.callbacks import LambdaCallback as LambdaCallback
    from .train.callbacks import LearningRateScheduler as LearningRateScheduler
    from .train.callbacks import LossMonitor as LossMonitor
    from .train.callbacks import ReduceLROnPlateau as ReduceLROnPlateau
    from .train.callbacks import RunContext as RunContext
    from .train.callbacks import TimeMonitor as TimeMonitor
    from .train.model import Model as Model
    from .train.profiler import Profiler as Profiler
    from .train.saved_models import CheckpointConfig as CheckpointConfig
    from .train.saved_models import ModelCheckpoint as ModelCheckpoint
    from .train.sinks import DatasetHelper as DatasetHelper
    from .train.sinks import connect_network_with_dataset as connect_network_with_dataset
    from .train.sinks import data_sink as data_sink
    from .train.summaries import SummaryCollector as SummaryCollector
    from .train.summaries import SummaryRecord as SummaryRecord
    from .transforms.check import check_grads as check_grads
    from .transforms.custom_jvp import custom_jvp as custom_jvp
    from .transforms.jacobians import hessian as hessian
    from .transforms.jacobians import hvp as hvp
    from .transforms.jacobians import jacfwd as jacfwd
    from .transforms.jacobians import jacrev as jacrev
    from .transforms.jacobians import jvp as jvp
    from .transforms.jacobians import vjp as vjp
    from .transforms.linear_maps import linear_transpose as linear_transpose
    from .transforms.linear_maps import linearize as linearize
    from .transforms.ravel import ravel as ravel

_LATER = {
    "transforms.check": "check_grads",
    "blockwise.map_reduce": "map_reduce",
    "blockwise.row_blocks": "blocks",
    "adjoints.kernel": "kernel",
    "adjoints.device_function": "device_function",
    "autograd.grad_modes": "enable_grad inference_mode is_grad_enabled no_grad set_grad_enabled",
    "tape.accumulated_tangents": "ForwardAccumulator",
    "tape.custom_gradients": "custom_gradient",
    "tape.gradient_tape": "GradientTape",
    "tape.graph_gradients": "gradients",
    "compiled.compiler_marks": "constexpr jit_class lazy_inline ms_class mutable",
    "compiled.nan_search": "find_nan",
    "compiled.profiling": "profile",
    "amp.loss_scale_managers": "DynamicLossScaleManager FixedLossScaleManager LossScaleManager",
    "train.callbacks": (
        "Callback EarlyStopping History LambdaCallback LearningRateScheduler LossMonitor ReduceLROnPlateau RunContext "
        "TimeMonitor"
    ),
    "nn.exported": "export load",
    "ops.elementwise": "is_tensor",
    "ops.rarer.sparse_tensors": "COOTensor CSRTensor RowTensor",
    "train.model": "Model",
    "train.profiler": "Profiler",
    "train.saved_models": "CheckpointConfig ModelCheckpoint",
    "train.summaries": "SummaryCollector SummaryRecord",
    "train.sinks": "DatasetHelper connect_network_with_dataset data_sink",
    "nn.checkpoint": "load_checkpoint load_param_into_net save_checkpoint",
    "transforms.jacobians": "hessian hvp jacfwd jacrev jvp vjp",
    "transforms.custom_jvp": "custom_jvp",
    "transforms.linear_maps": "linear_transpose linearize",
    "transforms.ravel": "ravel",
    "tensors.data": "frombuffer",
    "tensors.generator": "Generator get_rng_state get_seed initial_seed manual_seed seed set_rng_state set_seed",
    "extend.plain_functions": "callback",
    "extend.custom_kernels": "primitive",
    "extend.elementwise_functions": "elementwise",
    "source.rebinding": "differentiable_source",
    "solvers.implicit": "custom_root",
    "sparse.sparse_derivatives": "sparse_hessian sparse_jacobian",
}
"""Names that are imported when they are first used: module -> names."""
_MODULES = frozenset(
    "amp autograd bench common communication config context cuda dataset dtype errors interop log mint mpi nn numpy "
    "ops optim solvers tape train".split()
)
"""Submodules that users call; all others are internal, and may change in any release."""
_module_of = {name: module for module, names in _LATER.items() for name in names.split()}

__version__ = "0.1.0"


def __getattr__(name: str) -> _Any:
    if name == "__all__":
        return __dir__()
    if name not in _MODULES and name not in _module_of and (path := _moved.submodule("", name)) is not None:
        return path
    if name in _MODULES:
        return _import_module(f".{name}", __name__)
    if name == "bool":  # not in __all__: star imports keep Python's
        return bool_
    if name not in _module_of:
        message = f"nbgrad has no {name!r}"
        raise AttributeError(message)
    value = globals()[name] = getattr(_import_module(f".{_module_of[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    own = [name for name, value in globals().items() if name[0] != "_" and not isinstance(value, _ModuleType)]
    return sorted({*own, *_module_of, *_MODULES})
