"""nbgrad inside of other libraries: its functions as differentiable functions of PyTorch and of JAX.

In: functions of arrays. Out: functions of the other library's arrays, which its own derivatives go through. Called by
users. Neither library is needed for anything else, nor imported before a function is made for it.
"""

from .jax_functions import jax_function as jax_function
from .torch_functions import torch_function as torch_function

__all__ = ["jax_function", "torch_function"]
