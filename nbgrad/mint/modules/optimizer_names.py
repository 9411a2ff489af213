"""PyTorch's `torch.optim`: all optimizers that step by themselves, and the schedulers of their rates.

In: nothing. Out: the classes. Called by users, as `torch_names.optim`.
"""

from __future__ import annotations

from . import scheduled_rates as lr_scheduler
from .further_optimizers import Adadelta, Adagrad, Adamax, NAdam, RAdam, Rprop
from .quasi_newton import LBFGS
from .stepping_optimizers import SGD, Adam, AdamW, Optimizer, RMSprop

__all__ = [
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]
