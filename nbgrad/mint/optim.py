"""MindSpore's `mint.optim`: optimizers with PyTorch's parameters and formulas.

In: Parameters or groups of them. Out: optimizers, which are called with the gradients. Used by users; the formulas are
those of `nbgrad.nn`.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..nn import optimizers
from ..nn.layer_arguments import flag
from ..nn.rarer.grouped_optimizers import groups_of
from ..record.tensor import Tensor

__all__ = ["SGD", "Adam", "AdamW", "FusedAdamW"]


def __dir__() -> list[str]:
    return __all__


def _pair(betas: Any) -> tuple[Any, Any]:
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        message = f"betas must be a pair of numbers, but is {betas!r}."
        raise ArgumentError(message)
    return betas[0], betas[1]


def _against(gradients: Any) -> Any:
    """Gradients turned around, so that a descent climbs."""
    return -gradients if isinstance(gradients, Tensor) else tuple([-gradient for gradient in gradients])


class AdamW(optimizers.AdamW):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019).

    Parameters
    ----------
    params : list of Parameter, or list of dict
        Groups are dicts with `params`, and `lr` and `weight_decay` if they have their own.
    lr : number, Tensor, list of numbers, or Cell
    betas : pair of float
        How much of the running means of gradients and of their squares is kept.
    eps : float
        Added to the root of the corrected mean square.
    weight_decay : float
    amsgrad : bool
        Whether to divide by the largest mean square so far.
    maximize : bool
        Whether to climb instead of descending.

    Examples
    --------
    >>> import nbgrad as nb
    >>> w = nb.Parameter(nb.Tensor([1.0, 2.0]), name="w")
    >>> _ = nb.mint.optim.AdamW([w], lr=0.5, weight_decay=0.5)([nb.Tensor([10.0, -0.1])])
    >>> print(w.asnumpy().round(4))
    [0.25 2.  ]
    """

    param_groups = property(groups_of)

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: Any = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        first, second = _pair(betas)
        super().__init__(params, lr, first, second, eps, weight_decay, use_amsgrad=amsgrad)
        self.maximize = flag(maximize, "maximize")

    def __call__(self, gradients: Any, *others: Any) -> bool:
        """Update all weights, as `nn.Optimizer` says."""
        return super().__call__(_against(gradients) if self.maximize else gradients, *others)


FusedAdamW = AdamW


class Adam(AdamW):
    """Adam (Kingma and Ba 2015), as in PyTorch; parameters as `AdamW`, but weight decay is added to the gradient.

    Notes
    -----
    Differs from `nbgrad.nn.Adam`: eps is added to the root after the correction of the mean square.
    """

    decay_in_gradient = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: Any = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)

    def shrinking(self, k: int) -> Any:
        """No weight decay beside that of the gradient."""
        return 0.0


class SGD(optimizers.SGD):
    """Gradient descent with momentum, as in PyTorch.

    Parameters
    ----------
    params : list of Parameter, or list of dict
    lr : number, Tensor, list of numbers, or Cell
    momentum, dampening : float
    weight_decay : float
    nesterov : bool
    maximize : bool
        Whether to climb instead of descending.

    Examples
    --------
    >>> import nbgrad as nb
    >>> w = nb.Parameter(nb.Tensor([1.0]), name="w")
    >>> _ = nb.mint.optim.SGD([w], 0.25, maximize=True)([nb.Tensor([2.0])])
    >>> print(w.value())
    [1.5]
    """

    param_groups = property(groups_of)

    def __init__(
        self,
        params: Any,
        lr: Any,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov)
        self.maximize = flag(maximize, "maximize")

    def __call__(self, gradients: Any, *others: Any) -> bool:
        """Update all weights, as `nn.Optimizer` says."""
        return super().__call__(_against(gradients) if self.maximize else gradients, *others)
