"""How iterations end: numbers that compiled loops carry, and the status and the message that users get.

In: the number of a loop. Out: SciPy's fields of the result. Called by compiled_minimisers.py; the numbers by the
iterations.
"""

from __future__ import annotations

from typing import Any

SMALL_GRADIENT, FLAT, SHORT, LOWEST, UNDEFINED, STEPS = 1.0, 2.0, 3.0, 7.0, 8.0, 9.0
_TEXTS = {
    SMALL_GRADIENT: (1, "the gradient is within gtol"),
    FLAT: (2, "the decrease is within ftol"),
    SHORT: (3, "the step is within xtol"),
    LOWEST: (-1, "no lower value was found along the last direction"),
    UNDEFINED: (-2, "the function is not finite at the start"),
    STEPS: (0, "the number of steps has reached maxiter"),
    0.0: (0, "the number of evaluations has reached its limit"),
}


def fields(end: float, evaluations: int, gradients: int, steps: float, finite: bool) -> dict[str, Any]:
    """SciPy's fields of a run that has ended so: the status is that of `scipy.optimize.least_squares`."""
    status, message = _TEXTS[end]
    counts = {"nfev": evaluations, "njev": gradients, "nit": int(steps)}
    return {"success": status > 0 and finite, "status": status, "message": message, **counts}
