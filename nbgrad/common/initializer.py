"""MindSpore's module of initializers: `from nbgrad.common.initializer import initializer, Normal`.

In: nothing. Out: the names of tensors/initial_values.py; those with an underscore are used by initializers of public
collections. Called by ported scripts.
"""

from ..tensors.initial_values import Constant as Constant
from ..tensors.initial_values import Dirac as Dirac
from ..tensors.initial_values import HeNormal as HeNormal
from ..tensors.initial_values import HeUniform as HeUniform
from ..tensors.initial_values import Identity as Identity
from ..tensors.initial_values import Initializer as Initializer
from ..tensors.initial_values import Normal as Normal
from ..tensors.initial_values import One as One
from ..tensors.initial_values import Orthogonal as Orthogonal
from ..tensors.initial_values import Sparse as Sparse
from ..tensors.initial_values import TruncatedNormal as TruncatedNormal
from ..tensors.initial_values import Uniform as Uniform
from ..tensors.initial_values import VarianceScaling as VarianceScaling
from ..tensors.initial_values import XavierNormal as XavierNormal
from ..tensors.initial_values import XavierUniform as XavierUniform
from ..tensors.initial_values import Zero as Zero
from ..tensors.initial_values import fan_of, fans, fill, gain_of, register
from ..tensors.initial_values import initializer as initializer

_calculate_fan_in_and_fan_out, _assignment, _register = fans, fill, register
_calculate_correct_fan, _calculate_gain = fan_of, gain_of

__all__ = [
    "Constant",
    "Dirac",
    "HeNormal",
    "HeUniform",
    "Identity",
    "Initializer",
    "Normal",
    "One",
    "Orthogonal",
    "Sparse",
    "TruncatedNormal",
    "Uniform",
    "VarianceScaling",
    "XavierNormal",
    "XavierUniform",
    "Zero",
    "initializer",
]
