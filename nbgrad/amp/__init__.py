"""MindSpore's `amp`: training in float16 beside float32.

In: Cells, losses, gradients. Out: Cells that compute in float16 where it is safe, and scales for losses. Called by
users, and by `train.Model`.
"""

from .loss_scale_managers import DynamicLossScaleManager as DynamicLossScaleManager
from .loss_scale_managers import FixedLossScaleManager as FixedLossScaleManager
from .loss_scale_managers import LossScaleManager as LossScaleManager
from .loss_scalers import DynamicLossScaler as DynamicLossScaler
from .loss_scalers import LossScaler as LossScaler
from .loss_scalers import StaticLossScaler as StaticLossScaler
from .loss_scalers import all_finite as all_finite
from .loss_scalers import divided, times
from .precision import auto_mixed_precision as auto_mixed_precision
from .precision import build_train_network as build_train_network
from .precision import custom_mixed_precision as custom_mixed_precision
from .precision import get_black_list as get_black_list
from .precision import get_white_list as get_white_list

_grad_scale_map, _grad_unscale_map = times, divided  # for scalers of users

__all__ = [
    "DynamicLossScaleManager",
    "DynamicLossScaler",
    "FixedLossScaleManager",
    "LossScaleManager",
    "LossScaler",
    "StaticLossScaler",
    "all_finite",
    "auto_mixed_precision",
    "build_train_network",
    "custom_mixed_precision",
    "get_black_list",
    "get_white_list",
]
