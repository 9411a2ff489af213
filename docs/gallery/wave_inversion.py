"""
The speed of sound in the ground
================================

A pulse runs down from the surface; layers send echoes back. From the echoes alone, 600 steps of the wave equation,
the speed below each of 200 points is found by L-BFGS. Nothing is stored that the backward pass can do again:
`nb.jit(..., memory=...)` sets the limit.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import nbgrad as nb

n, steps = 200, 600
depth = np.arange(n) * 5.0  # metres
truth = 1500.0 + 250.0 / (1.0 + np.exp(-(depth - 300.0) / 15.0)) - 180.0 / (1.0 + np.exp(-(depth - 480.0) / 15.0))
dt = 0.002
times = np.arange(steps) * dt
source = np.exp(-(((times - 0.06) / 0.02) ** 2)) * (times - 0.06) / 0.02


def echoes(speed):
    """The pressure two points below the surface, at all times."""
    courant = (speed * dt / 5.0) ** 2
    edge = np.zeros(n)
    edge[2] = 1.0
    old, now, heard = np.zeros(n), np.zeros(n), []
    for k in range(steps):
        left, right = np.concatenate([now[:1], now[:-1]]), np.concatenate([now[1:], 0.0 * now[:1]])
        old, now = now, 2.0 * now - old + courant * (left - 2.0 * now + right) + source[k] * edge
        heard.append(now[2])
    return np.stack(heard)


recorded = echoes(truth)


known = depth < 50.0  # measured from a hole


def misfit(change):
    """The mismatch of the echoes, and a little smoothness."""
    speed = np.where(known, 1500.0, 1500.0 + 100.0 * change)
    return np.sum((echoes(speed) - recorded) ** 2) + 1e-4 * np.sum(np.diff(change) ** 2)


loss = nb.jit(nb.value_and_grad(misfit), memory="2 MB")
fit = minimize(loss, np.zeros(n), jac=True, method="L-BFGS-B", options={"maxiter": 200})
found = np.where(known, 1500.0, 1500.0 + 100.0 * fit.x)
print(f"{fit.nfev} evaluations, misfit {loss(np.zeros(n))[0]:.1f} before and {fit.fun:.4f} after")

# %%
# Down to 700 metres the speed is the true one to a thousandth. Echoes from more than 930 metres come after the end.

assert np.abs(found - truth)[depth < 700.0].max() < 2.0

plt.plot(depth, truth, "k", label="true")
plt.plot(depth, found, label="found")
plt.xlabel("depth in m")
plt.ylabel("speed in m/s")
plt.legend()
plt.show()
