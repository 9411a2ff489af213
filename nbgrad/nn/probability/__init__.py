"""Probability distributions and bijections of random variables, MindSpore's `nn.probability`.

In: parameters, as numbers, arrays or Parameters; then values. Out: Cells with densities, moments and draws, which
differentiate. Used by users, as `nn.probability.distribution` and `nn.probability.bijector`.
"""

from __future__ import annotations

from . import bijector, distribution

__all__ = ["bijector", "distribution"]
