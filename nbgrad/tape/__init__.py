"""TensorFlow's way to ask for gradients: a tape that watches values while they are computed.

In: a block of code, and the values that a tape watches in it. Out: gradients of values computed there. Called by users,
under the names, defaults and errors of TensorFlow's `GradientTape`, `gradients`, `custom_gradient` and
`ForwardAccumulator`. What is remembered, and for how long, is in design/0069.
"""

from .accumulated_tangents import ForwardAccumulator as ForwardAccumulator
from .custom_gradients import custom_gradient as custom_gradient
from .gradient_tape import GradientTape as GradientTape
from .graph_gradients import UnconnectedGradients as UnconnectedGradients
from .graph_gradients import gradients as gradients

__all__ = ["ForwardAccumulator", "GradientTape", "UnconnectedGradients", "custom_gradient", "gradients"]
