"""
The fastest slide
=================

A bead slides without friction along 60 straight pieces. The heights of their ends are chosen so that it arrives as
soon as possible: Newton's method with conjugate gradients, where each product with the Hessian costs a few
evaluations.
"""

import matplotlib.pyplot as plt
import numpy as np

from nbgrad import optim

n, gravity = 60, 9.81
width, drop = np.pi / 2.0, 1.0
x = width * np.linspace(0.0, 1.0, n + 1) ** 2


def duration(inner):
    """Seconds from the top to the bottom; the speed follows from the height, and is linear in time on each piece."""
    depth = np.concatenate([np.zeros(1), inner, np.full(1, drop)])
    speed = np.sqrt(2.0 * gravity * depth)
    return np.sum(2.0 * np.hypot(np.diff(x), np.diff(depth)) / (speed[1:] + speed[:-1]))


line = drop * x[1:-1] / width
fit = optim.newton_cg(duration, line)
print(f"straight {duration(line):.5f} s, best {fit.fun:.5f} s, {fit.nit} steps")

# %%
# Bernoulli's answer of 1697 is a cycloid; to this end, half an arch of a wheel with the radius 1/2.

turn = np.linspace(0.0, np.pi, 200)
cycloid = 0.5 * (turn - np.sin(turn)), 0.5 * (1.0 - np.cos(turn))
np.testing.assert_allclose(fit.fun, np.pi * np.sqrt(0.5 / gravity), rtol=1e-3)
np.testing.assert_allclose(fit.x, np.interp(x[1:-1], *cycloid), atol=5e-3)

plt.figure(figsize=(6, 3.5))
plt.plot(x, -np.concatenate([[0.0], fit.x, [drop]]), "o-", markersize=3, label="found")
plt.plot(cycloid[0], -cycloid[1], "k", linewidth=1, label="cycloid")
plt.xlabel("m")
plt.legend()
plt.show()
