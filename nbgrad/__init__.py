"""nbgrad"""
from .custom import custom_vjp as custom_vjp, stop_gradient as stop_gradient
from .functional import hessian as hessian, hvp as hvp, jacfwd as jacfwd, jacrev as jacrev, jvp as jvp, vjp as vjp
from .grad import grad as grad, value_and_grad as value_and_grad
from .jit import jit as jit
from .runtime.threads import get_num_threads as get_num_threads, set_num_threads as set_num_threads
from .tensor import Tensor as Tensor
