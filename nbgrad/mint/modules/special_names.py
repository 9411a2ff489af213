"""PyTorch's `torch.special`: its names over the functions of `nbgrad.ops`, of `mint.special` and of SciPy.

In: Tensors. Out: Tensors. Called by users, as `torch_names.special`. SciPy's ufuncs take Tensors, with derivatives.
"""

from __future__ import annotations

from typing import Any

from scipy import special

from ... import ops
from ...mint import special as common
from ..nn import functional

_OF_SCIPY = frozenset("entr erfcx i0e i1 i1e log_ndtr ndtr ndtri xlog1py zeta".split())
_OF_OPS = {
    "digamma": "digamma",
    "erf": "erf",
    "erfinv": "erfinv",
    "expit": "sigmoid",
    "gammainc": "igamma",
    "gammaincc": "igammac",
    "gammaln": "lgamma",
    "i0": "i0",
    "logit": "logit",
    "logsumexp": "logsumexp",
    "multigammaln": "mvlgamma",
    "polygamma": "polygamma",
    "psi": "digamma",
    "xlogy": "xlogy",
}
"""Names of `nbgrad.ops` by PyTorch's."""


def __getattr__(name: str) -> Any:
    if name in _OF_SCIPY:
        return getattr(special, name)
    if name in _OF_OPS:
        return getattr(ops, _OF_OPS[name])
    if name == "softmax":
        return functional.softmax
    return getattr(common, name)


def __dir__() -> list[str]:
    return sorted({*_OF_SCIPY, *_OF_OPS, *dir(common), "softmax"})
