"""nbgrad: gradients of NumPy functions, compiled.

    record         run the function on Tensors; every operation appends a node    graph/trace.py, numpy/
    differentiate  graph -> graph, from one table of derivatives                  graph/differentiate.py
    simplify       graph -> graph: equal nodes, constants, algebra                graph/simplify.py
    fuse           graph -> loop nests and special kernels                        compiler/fuse.py
    emit           loop nest -> LLVM IR -> machine code, cached on disk           compiler/emit.py, cpu.py, cache.py
    plan           what runs together; buffers: lifetimes, one arena              runtime/stages.py, plan.py
    run            guards, pointers, threads, call                                runtime/program.py, native.py

This file lists every public name. Importing it imports neither Numba nor SciPy and compiles nothing; what scripts
seldom need is imported when it is first used.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import dtype as dtype
from . import errors as errors
from . import nn as nn
from . import numpy as numpy
from . import ops as ops
from .compiler.cache import counters as counters
from .context import GRAPH_MODE as GRAPH_MODE
from .context import PYNATIVE_MODE as PYNATIVE_MODE
from .context import get_context as get_context
from .context import set_context as set_context
from .context import set_device as set_device
from .custom import custom_vjp as custom_vjp
from .custom import stop_gradient as stop_gradient
from .dtype import bool_ as bool_
from .dtype import byte as byte
from .dtype import double as double
from .dtype import dtype_to_nptype as dtype_to_nptype
from .dtype import float16 as float16
from .dtype import float32 as float32
from .dtype import float64 as float64
from .dtype import float_ as float_
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
from .explain import explain as explain
from .grad import GradOperation as GradOperation
from .grad import get_grad as get_grad
from .grad import grad as grad
from .grad import value_and_grad as value_and_grad
from .interop import from_dlpack as from_dlpack
from .jit import jit as jit
from .jit import ms_function as ms_function
from .parameter import Parameter as Parameter
from .parameter import ParameterTuple as ParameterTuple
from .runtime import object_layout as _object_layout
from .runtime.threads import get_num_threads as get_num_threads
from .runtime.threads import set_num_threads as set_num_threads
from .tensor import Tensor as Tensor
from .tensor import from_numpy as from_numpy
from .tensor import tensor as tensor
from .vmap import vmap as vmap

_object_layout.check()

if _TYPE_CHECKING:
    from . import cuda as cuda
    from .check import check_grads as check_grads
    from .checkpoint import load_checkpoint as load_checkpoint
    from .checkpoint import load_param_into_net as load_param_into_net
    from .checkpoint import save_checkpoint as save_checkpoint
    from .device_functions import device_function as device_function
    from .functional import hessian as hessian
    from .functional import hvp as hvp
    from .functional import jacfwd as jacfwd
    from .functional import jacrev as jacrev
    from .functional import jvp as jvp
    from .functional import vjp as vjp
    from .generator import Generator as Generator
    from .generator import get_seed as get_seed
    from .generator import set_seed as set_seed
    from .own_primitives import primitive as primitive
    from .scalar_functions import elementwise as elementwise
    from .source.conversion import differentiable_source as differentiable_source
    from .sparse.derivatives import sparse_hessian as sparse_hessian
    from .sparse.derivatives import sparse_jacobian as sparse_jacobian

_LATER = {
    "check": "check_grads",
    "checkpoint": "load_checkpoint load_param_into_net save_checkpoint",
    "device_functions": "device_function",
    "functional": "hessian hvp jacfwd jacrev jvp vjp",
    "generator": "Generator get_seed set_seed",
    "own_primitives": "primitive",
    "scalar_functions": "elementwise",
    "source.conversion": "differentiable_source",
    "sparse.derivatives": "sparse_hessian sparse_jacobian",
}
"""What is imported when it is first used: module -> names."""
_MODULES = frozenset(["cuda"])
"""Submodules that are imported when they are first used."""
_module_of = {name: module for module, names in _LATER.items() for name in names.split()}

__version__ = "0.1.0"


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module(f".{name}", __name__)
    if name not in _module_of:
        message = f"nbgrad has no {name!r}"
        raise AttributeError(message)
    value = globals()[name] = getattr(_import_module(f".{_module_of[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_module_of, *_MODULES})
