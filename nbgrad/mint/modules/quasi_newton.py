"""PyTorch's `LBFGS`: a quasi-Newton method whose steps call a closure, with or without a line search.

In: Parameters or other leaves, and a closure that computes the loss and its gradients. Out: new values of these, in
place. Called by users; the base is in stepping_optimizers.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.grad_modes import enable_grad, no_grad
from ...errors import ArgumentError
from ...record.axes_and_dtypes import only
from ...record.tensor import Tensor
from .stepping_optimizers import Optimizer, _number, give_value

__all__ = ["LBFGS"]
Search = tuple[float, np.ndarray, float, int]
"""A loss, a gradient, a length of the step, and the count of evaluations."""


class LBFGS(Optimizer):
    """Limited-memory BFGS (Nocedal 1980).

    Parameters
    ----------
    params : iterable of Tensor
        One group.
    lr : float
    max_iter : int
        Iterations of one step.
    max_eval : int, optional
        Evaluations of one step; a quarter more than `max_iter` by default.
    tolerance_grad, tolerance_change : float
        Bounds of the largest element of the gradient and of the step, where it stops.
    history_size : int
    line_search_fn : {None, "strong_wolfe"}

    Examples
    --------
    >>> import nbgrad.mint.torch_names as torch
    >>> x = torch.tensor([-1.0, 1.0], requires_grad=True)
    >>> optimizer = torch.optim.LBFGS([x], line_search_fn="strong_wolfe", max_iter=50)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> bool(abs(x.detach() - 1).max() < 1e-2)
    True
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        only("line_search_fn", line_search_fn, None, "strong_wolfe")
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            message = "LBFGS doesn't support per-parameter options (parameter groups)"
            raise ArgumentError(message)

    # ----- Weights as one vector -----

    @property
    def _weights(self) -> list[Any]:
        return self.param_groups[0]["params"]

    def _gradient(self) -> np.ndarray:
        parts = [
            np.zeros(weight.size, weight.asnumpy().dtype) if weight.grad is None else weight.grad.asnumpy().reshape(-1)
            for weight in self._weights
        ]
        return np.concatenate(parts)

    def _values(self) -> list[np.ndarray]:
        return [np.array(weight.asnumpy()) for weight in self._weights]

    def _put(self, values: list[np.ndarray], step: np.ndarray) -> None:
        at = 0
        with no_grad():
            for weight, value in zip(self._weights, values, strict=True):
                moved = value + step[at : at + value.size].reshape(value.shape).astype(value.dtype)
                give_value(weight, Tensor(moved))
                at += value.size

    # ----- One step -----

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Iterate.

        Parameters
        ----------
        closure : callable
            Computes the loss and its gradients anew.

        Returns
        -------
        Tensor
            The loss before the step.

        Raises
        ------
        ArgumentError
            Without a closure.
        """
        if closure is None:
            message = "LBFGS.step needs a closure that computes the loss and its gradients."
            raise ArgumentError(message)
        group = self.param_groups[0]
        state = self.state[self._weights[0]]
        rate = _number(group["lr"])

        def evaluate() -> tuple[Any, float, np.ndarray]:
            with enable_grad():
                loss = closure()
            return loss, float(np.asarray(loss.asnumpy() if isinstance(loss, Tensor) else loss)), self._gradient()

        first, loss, gradient = evaluate()
        evaluations = 1
        if np.abs(gradient).max(initial=0) <= group["tolerance_grad"]:
            return first
        for iteration in range(group["max_iter"]):
            direction = self._direction(state, gradient, group["history_size"])
            state["n_iter"] = state.get("n_iter", 0) + 1
            state["prev_flat_grad"], state["prev_loss"] = gradient, loss
            length = min(1.0, 1.0 / float(np.abs(gradient).sum())) * rate if state["n_iter"] == 1 else rate
            slope = float(gradient @ direction)
            if slope > -group["tolerance_change"]:
                break
            start = self._values()
            if group["line_search_fn"] is None:
                self._put(start, length * direction)
                used = 0
                if iteration != group["max_iter"] - 1:
                    _, loss, gradient = evaluate()
                    used = 1
            else:

                def at(t: float, start: Any = start, direction: Any = direction) -> tuple[float, np.ndarray]:
                    self._put(start, t * direction)
                    _, value, slope_there = evaluate()
                    return value, slope_there

                loss, gradient, length, used = strong_wolfe(at, length, direction, loss, gradient, slope)
                self._put(start, length * direction)
            state["d"], state["t"] = direction, length
            evaluations += used
            if evaluations >= group["max_eval"] or np.abs(gradient).max() <= group["tolerance_grad"]:
                break
            if np.abs(direction * length).max() <= group["tolerance_change"]:
                break
            if abs(loss - state["prev_loss"]) < group["tolerance_change"]:
                break
        return first

    @staticmethod
    def _direction(state: dict[str, Any], gradient: np.ndarray, size: int) -> np.ndarray:
        """Minus the gradient times the approximate inverse Hessian, with the last step taken into account."""
        if "d" not in state:
            state.update(old_dirs=[], old_stps=[], H_diag=1.0)
            return -gradient
        y, s = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        product = float(y @ s)
        steps, changes = state["old_stps"], state["old_dirs"]
        if product > 1e-10:
            if len(changes) == size:
                changes.pop(0)
                steps.pop(0)
            changes.append(y)
            steps.append(s)
            state["H_diag"] = product / float(y @ y)
        q, factors = -gradient, []
        for y, s in zip(reversed(changes), reversed(steps), strict=True):
            factors.append(float(s @ q) / float(y @ s))
            q = q - factors[-1] * y
        r = q * state["H_diag"]
        for y, s, factor in zip(changes, steps, reversed(factors), strict=True):
            r = r + s * (factor - float(y @ r) / float(y @ s))
        return r


def _cubic(x1: float, f1: float, g1: float, x2: float, f2: float, g2: float, bounds: Any = None) -> float:
    """The minimum of the cubic through two points with slopes, within bounds."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square**0.5
    if x1 <= x2:
        position = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        position = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(position, low), high)


def strong_wolfe(
    at: Callable[[float], tuple[float, np.ndarray]],
    t: float,
    d: np.ndarray,
    f: float,
    g: np.ndarray,
    slope: float,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> Search:
    """A length of a step that fulfils the strong conditions of Wolfe, by the steps that PyTorch takes.

    Parameters
    ----------
    at : callable
        Length -> loss and gradient.
    t : float
        The first length.
    d, g : ndarray
        The direction, and the gradient at its beginning.
    f, slope : float
        The loss and its slope along the direction there.

    Returns
    -------
    loss, gradient, length, evaluations
    """
    norm = float(np.abs(d).max())
    f_new, g_new = at(t)
    evaluations = 1
    slope_new = float(g_new @ d)
    before: Any = (0.0, f, g, slope)
    done, ended = False, False
    bracket: list[Any] = []
    iteration = 0
    while iteration < max_ls:
        now = (t, f_new, g_new, slope_new)
        if f_new > f + c1 * t * slope or (iteration > 1 and f_new >= before[1]):
            bracket, ended = [before, now], True
            break
        if abs(slope_new) <= -c2 * slope:
            bracket, done, ended = [now], True, True
            break
        if slope_new >= 0:
            bracket, ended = [before, now], True
            break
        least, most = t + 0.01 * (t - before[0]), t * 10
        following = _cubic(before[0], before[1], before[3], t, f_new, slope_new, (least, most))
        before, t = now, following
        f_new, g_new = at(t)
        evaluations += 1
        slope_new = float(g_new @ d)
        iteration += 1
    if not ended:
        bracket = [(0.0, f, g, slope), (t, f_new, g_new, slope_new)]
    slow = False
    low, high = (0, 1) if bracket[0][1] <= bracket[-1][1] else (1, 0)
    while not done and iteration < max_ls:
        (a, fa, _, ga), (b, fb, _, gb) = bracket
        if abs(b - a) * norm < tolerance_change:
            break
        t = _cubic(a, fa, ga, b, fb, gb)
        least, most = min(a, b), max(a, b)
        margin = 0.1 * (most - least)
        if min(most - t, t - least) < margin:
            if slow or t >= most or t <= least:
                t = most - margin if abs(t - most) < abs(t - least) else least + margin
                slow = False
            else:
                slow = True
        else:
            slow = False
        f_new, g_new = at(t)
        evaluations += 1
        slope_new = float(g_new @ d)
        iteration += 1
        now = (t, f_new, g_new, slope_new)
        if f_new > f + c1 * t * slope or f_new >= bracket[low][1]:
            bracket[high] = now
            low, high = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
        else:
            if abs(slope_new) <= -c2 * slope:
                done = True
            elif slope_new * (bracket[high][0] - bracket[low][0]) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = now
    t, f_new, g_new, _ = bracket[low if len(bracket) > 1 else 0]
    return f_new, g_new, t, evaluations
