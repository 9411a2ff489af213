"""NIST's models as a scientist writes them: plain NumPy, without a trace of nbgrad.

In: the parameters b and the abscissae x. Out: the model's values. Called by all of this package: by nbgrad to
record them, and by plain NumPy with complex parameters to check the Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Model = Callable[[Any, Any], Any]


def misra1a(b: Any, x: Any) -> Any:
    """Monomolecular adsorption, two parameters."""
    return b[0] * (1 - np.exp(-b[1] * x))


def thurber(b: Any, x: Any) -> Any:
    """Electron mobility in a semiconductor, a rational function with seven parameters."""
    above = b[0] + b[1] * x + b[2] * x**2 + b[3] * x**3
    below = 1 + b[4] * x + b[5] * x**2 + b[6] * x**3
    return above / below


MODELS: dict[str, Model] = {"Misra1a": misra1a, "Thurber": thurber}
