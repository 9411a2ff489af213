"""nbgrad"""
from .grad import grad, value_and_grad
from .tensor import Tensor
