"""PyTorch's `torch.nn`: all modules, each a Cell of nbgrad with PyTorch's methods.

In: a name. Out: its class. Called by users, as `torch_names.nn`. Names come from this folder, from `mint.nn`, and from
`nbgrad.nn` under another name; a class is made when it is first asked for.
"""

from __future__ import annotations

from typing import Any

from ... import nn
from .. import nn as mint_nn
from ..named_modules import homes
from ..nn import functional as functional
from . import initial_weights, module_tools, recurrent_modules
from .module import Module as Module
from .module import Parameter as Parameter
from .module import ParameterDict as ParameterDict
from .module import ParameterList as ParameterList
from .module import module_class

_IN_MINT: frozenset[str] = frozenset(homes(mint_nn.TABLE))  # pyright: ignore[reportAttributeAccessIssue]
init, utils = initial_weights, module_tools
_RECURRENT = frozenset(
    (
        "GRU GRUCell LSTM LSTMCell MultiheadAttention RNN RNNCell Transformer TransformerDecoder "
        "TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer"
    ).split()
)
_OTHERS = {
    "Sequential": "SequentialCell",
    "ModuleList": "CellList",
    "ModuleDict": "CellDict",
    "Unflatten": "Unflatten",
}
"""Names of `nbgrad.nn` by PyTorch's."""
_STAND_FOR = {
    "Linear": "Dense",
    "LayerNorm": "LayerNorm",
    "BatchNorm1d": "BatchNorm1d",
    "BatchNorm2d": "BatchNorm2d",
    "BatchNorm3d": "BatchNorm3d",
    "Dropout": "Dropout",
    "Embedding": "Embedding",
    "MultiheadAttention": "MultiheadAttention",
    "Sequential": "SequentialCell",
    "ModuleList": "CellList",
}
"""Cells of `nbgrad.nn` that are instances of a class, too."""
_MINE = frozenset(["Module", "Parameter", "ParameterDict", "ParameterList", "functional", "init", "utils"])


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name in _RECURRENT:
        found = getattr(recurrent_modules, name)
    elif name in _OTHERS:
        found = module_class(getattr(nn, _OTHERS[name]), name)
    elif name in _IN_MINT and name != "Cell":
        found = module_class(getattr(mint_nn, name), name)
    else:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    if name in _STAND_FOR:
        found._stands_for = getattr(nn, _STAND_FOR[name])
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*_MINE, *_RECURRENT, *_OTHERS, *_IN_MINT} - {"Cell"})
