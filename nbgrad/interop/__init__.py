"""nbgrad inside of PyTorch, JAX and PyTensor, and functions of the first two inside of nbgrad.

In: functions of arrays. Out: functions of the other library's arrays, which its own derivatives go through. Called by
users. No such library is needed for anything else, nor imported before a function is made for it.
"""

from .foreign_functions import from_jax as from_jax
from .foreign_functions import from_torch as from_torch
from .jax_functions import jax_function as jax_function
from .pytensor_functions import pytensor_function as pytensor_function
from .torch_functions import torch_function as torch_function

__all__ = ["from_jax", "from_torch", "jax_function", "pytensor_function", "torch_function"]
