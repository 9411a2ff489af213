"""MindSpore's package `common`: its names for objects from elsewhere in nbgrad, and the initializers.

In: nothing. Out: `dtype`, `Tensor`, `Parameter`, `ParameterTuple`, `mutable`, seeds. Called by ported scripts
(`from nbgrad.common import dtype as mstype`, `from nbgrad.common.initializer import initializer, Normal`).
"""

from .. import dtype as dtype
from ..compiled.compiler_marks import mutable as mutable
from ..ops.rarer.sparse_tensors import RowTensor as RowTensor
from ..record.tensor import Tensor as Tensor
from ..tensors.generator import get_seed as get_seed
from ..tensors.generator import set_seed as set_seed
from ..tensors.parameter import Parameter as Parameter
from ..tensors.parameter import ParameterTuple as ParameterTuple

__all__ = [
    "Parameter",
    "ParameterTuple",
    "RowTensor",
    "Tensor",
    "dtype",
    "get_seed",
    "mutable",
    "set_seed",
]
