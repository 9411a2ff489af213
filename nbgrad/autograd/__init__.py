"""PyTorch's way to ask for gradients: values remember how they were made, and are differentiated afterwards.

In: Tensors that require gradients (`nb.tensor(data, requires_grad=True)`), and values computed from them. Out: their
gradients. Called by users, under the names, defaults and errors of PyTorch's `autograd` package; Tensor has the methods
(`backward`, `grad`, `detach`, `register_hook`, ...). What is remembered, and for how long, is in design/0069.
"""

from . import forward_ad as forward_ad
from . import functional as functional
from .anomaly_modes import detect_anomaly as detect_anomaly
from .anomaly_modes import set_detect_anomaly as set_detect_anomaly
from .grad_modes import enable_grad as enable_grad
from .grad_modes import inference_mode as inference_mode
from .grad_modes import is_grad_enabled as is_grad_enabled
from .grad_modes import is_inference_mode_enabled as is_inference_mode_enabled
from .grad_modes import no_grad as no_grad
from .grad_modes import set_grad_enabled as set_grad_enabled
from .gradient_checks import GradcheckError as GradcheckError
from .gradient_checks import gradcheck as gradcheck
from .gradient_checks import gradgradcheck as gradgradcheck
from .own_functions import Function as Function
from .own_functions import once_differentiable as once_differentiable
from .requests import backward as backward
from .requests import grad as grad

__all__ = [
    "Function",
    "GradcheckError",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "once_differentiable",
    "set_detect_anomaly",
    "set_grad_enabled",
]
