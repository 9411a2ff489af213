"""PyTorch's `torch.amp`: scaled losses, and a context that would compute in half precision.

In: a loss, an optimizer. Out: a scaled loss, steps that are left out where gradients overflow. Called by users, as
`torch_names.amp` and `torch_names.cuda.amp`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

import numpy as np

from ...autograd.grad_modes import no_grad
from ...errors import AutogradError

__all__ = ["GradScaler", "autocast"]


class autocast(ContextDecorator):  # noqa: N801 - PyTorch's name
    """A block in which PyTorch computes products in half precision; here all keeps its dtype, which is more exact."""

    def __init__(self, *args: Any, enabled: bool = True, **kwargs: Any) -> None:
        del args, kwargs
        self.enabled = enabled

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *error: object) -> None:
        return None


class GradScaler:
    """Losses times a factor, so that small gradients in half precision do not vanish.

    Parameters
    ----------
    device : str
        Has no effect.
    init_scale, growth_factor, backoff_factor : float
        The first factor, and what it is multiplied with after steps without overflow, or after an overflow.
    growth_interval : int
        The number of such steps.
    enabled : bool

    Examples
    --------
    >>> import nbgrad.mint.torch_names as torch
    >>> w = torch.tensor([2.0], requires_grad=True)
    >>> optimizer, scaler = torch.optim.SGD([w], lr=0.25), torch.amp.GradScaler()
    >>> scaler.scale((w * w).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> print(w.detach())
    [1.]
    """

    def __init__(
        self,
        device: Any = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        del device
        self._scale, self._growth, self._backoff = float(init_scale), growth_factor, backoff_factor
        self._interval, self._enabled, self._good = growth_interval, enabled, 0
        self._overflowed: dict[int, bool] = {}

    def scale(self, outputs: Any) -> Any:
        """A loss, or a list of them, times the factor."""
        if not self._enabled:
            return outputs
        return (
            type(outputs)([self.scale(one) for one in outputs])
            if isinstance(outputs, list | tuple)
            else outputs * self._scale
        )

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's weights by the factor.

        Raises
        ------
        AutogradError
            If it has been called since the last `update`.
        """
        if not self._enabled:
            return
        if id(optimizer) in self._overflowed:
            message = "unscale_() has already been called on this optimizer since the last update()."
            raise AutogradError(message)
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        with no_grad():
            for weight in weights:
                if weight.grad is not None:
                    weight.grad = (weight.grad.detach() / self._scale).astype(weight.dtype)
        self._overflowed[id(optimizer)] = not all(
            bool(np.isfinite(weight.grad.asnumpy()).all()) for weight in weights if weight.grad is not None
        )

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """A step of the optimizer, unless a gradient is not finite."""
        step: Callable[..., Any] = optimizer.step
        if self._enabled and id(optimizer) not in self._overflowed:
            self.unscale_(optimizer)
        return None if self._overflowed.get(id(optimizer), False) else step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Choose the factor of the next step."""
        if new_scale is not None:
            self._scale = float(new_scale)
        elif any(self._overflowed.values()):
            self._scale, self._good = self._scale * self._backoff, 0
        else:
            self._good += 1
            if self._good == self._interval:
                self._scale, self._good = self._scale * self._growth, 0
        self._overflowed.clear()

    def get_scale(self) -> float:
        """The factor."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The factor, and the count of steps without overflow."""
        return {"scale": self._scale, "_growth_tracker": self._good} if self._enabled else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the factor of an earlier time."""
        if state_dict:
            self._scale, self._good = state_dict["scale"], state_dict["_growth_tracker"]
