"""nbgrad: gradients of NumPy functions, compiled.

    record         run the function on Tensors; every operation appends a node    graph/trace.py, numpy/
    differentiate  graph -> graph, from one table of derivatives                  graph/differentiate.py
    simplify       graph -> graph: equal nodes, constants, algebra                graph/simplify.py
    fuse           graph -> loop nests and special kernels                        compiler/fuse.py
    emit           loop nest -> LLVM IR -> machine code, cached on disk           compiler/emit.py, cpu.py, cache.py
    plan           buffers: lifetimes, one arena                                  runtime/plan.py
    run            guards, pointers, threads, call                                runtime/program.py, native.py

This file lists every public name. Importing it imports neither Numba nor SciPy and compiles nothing.
"""

from . import errors as errors
from . import numpy as numpy
from . import ops as ops
from .check import check_grads as check_grads
from .compiler.cache import counters as counters
from .custom import custom_vjp as custom_vjp
from .custom import stop_gradient as stop_gradient
from .explain import explain as explain
from .functional import hessian as hessian
from .functional import hvp as hvp
from .functional import jacfwd as jacfwd
from .functional import jacrev as jacrev
from .functional import jvp as jvp
from .functional import vjp as vjp
from .grad import grad as grad
from .grad import value_and_grad as value_and_grad
from .jit import jit as jit
from .runtime.threads import get_num_threads as get_num_threads
from .runtime.threads import set_num_threads as set_num_threads
from .tensor import Tensor as Tensor

__version__ = "0.1.0"
