"""
Newton's method in a while loop
===============================

Kepler's equation has no solution in closed form. Newton's steps until they are small are plain Python: the number of
turns depends on the values, and the derivative goes through all of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import nbgrad as nb


def anomaly(mean, eccentricity):
    """The eccentric anomaly at a mean anomaly."""
    angle, step = mean, 1.0
    while abs(step) > 1e-13:
        step = (angle - eccentricity * np.sin(angle) - mean) / (1.0 - eccentricity * np.cos(angle))
        angle = angle - step
    return angle


slopes = nb.jit(nb.grad(anomaly, (0, 1)))  # each number of turns is compiled once
means = np.linspace(0.1, 3.0, 30)

plt.figure(figsize=(7, 3.5))
for e in (0.2, 0.6, 0.9):
    found = np.array([slopes(mean, e) for mean in means])

    # Kepler's equation itself gives the derivatives of its solution.
    angles = np.array([anomaly(mean, e) for mean in means])
    exact = np.stack([1.0 / (1.0 - e * np.cos(angles)), np.sin(angles) / (1.0 - e * np.cos(angles))], axis=1)
    np.testing.assert_allclose(found, exact, rtol=1e-11)
    plt.plot(means, found[:, 0], label=f"eccentricity {e}")

plt.xlabel("mean anomaly")
plt.ylabel("derivative of the eccentric anomaly")
plt.yscale("log")
plt.legend()
plt.tight_layout()
plt.show()
