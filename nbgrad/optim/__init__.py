"""Optimisers: gradient transformations over any container, and minimisers that are compiled loops.

In: gradients and states in containers, or functions and a start. Out: updates and new states, or minimisers with
SciPy's fields. Called by users.
"""

from .compiled_minimisers import gauss_newton as gauss_newton
from .compiled_minimisers import lbfgs as lbfgs
from .compiled_minimisers import levenberg_marquardt as levenberg_marquardt
from .compiled_minimisers import minimize as minimize
from .compiled_minimisers import newton_cg as newton_cg
from .descent import adagrad as adagrad
from .descent import adam as adam
from .descent import adamw as adamw
from .descent import lion as lion
from .descent import rmsprop as rmsprop
from .descent import scale_by_adam as scale_by_adam
from .descent import sgd as sgd
from .descent import trace as trace
from .rate_schedules import cosine_decay as cosine_decay
from .rate_schedules import exponential_decay as exponential_decay
from .rate_schedules import join_schedules as join_schedules
from .rate_schedules import linear_schedule as linear_schedule
from .rate_schedules import piecewise_constant as piecewise_constant
from .rate_schedules import polynomial_schedule as polynomial_schedule
from .rate_schedules import warmup_cosine_decay as warmup_cosine_decay
from .transformations import Transformation as Transformation
from .transformations import add_decayed_weights as add_decayed_weights
from .transformations import apply_updates as apply_updates
from .transformations import chain as chain
from .transformations import clip as clip
from .transformations import clip_by_global_norm as clip_by_global_norm
from .transformations import global_norm as global_norm
from .transformations import scale as scale
from .transformations import scale_by_learning_rate as scale_by_learning_rate
from .transformations import stateless as stateless

__all__ = [
    "Transformation",
    "adagrad",
    "adam",
    "adamw",
    "add_decayed_weights",
    "apply_updates",
    "chain",
    "clip",
    "clip_by_global_norm",
    "cosine_decay",
    "exponential_decay",
    "gauss_newton",
    "global_norm",
    "join_schedules",
    "lbfgs",
    "levenberg_marquardt",
    "linear_schedule",
    "lion",
    "minimize",
    "newton_cg",
    "piecewise_constant",
    "polynomial_schedule",
    "rmsprop",
    "scale",
    "scale_by_adam",
    "scale_by_learning_rate",
    "sgd",
    "stateless",
    "trace",
    "warmup_cosine_decay",
]
