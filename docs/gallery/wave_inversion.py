"""
The speed of sound in the ground
================================

A pulse runs down from the surface, and layers send echoes back. From these alone, 600 steps of the wave equation, the
speed at each of 200 depths is found. `nb.jit(..., memory=...)` sets a limit to what the backward pass stores.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import nbgrad as nb

n, steps, dt, dx = 200, 600, 0.002, 5.0
depth, times = np.arange(n) * dx, np.arange(steps) * dt
truth = 1500.0 + 250.0 / (1.0 + np.exp(-(depth - 300.0) / 15.0)) - 180.0 / (1.0 + np.exp(-(depth - 480.0) / 15.0))
shot = np.exp(-(((times - 0.06) / 0.02) ** 2)) * (times - 0.06) / 0.02
top = np.eye(n)[2]


def pressures(speed):
    """At all times and depths."""
    courant, old, now, seen = (speed * dt / dx) ** 2, np.zeros(n), np.zeros(n), []
    for k in range(steps):
        above, below = np.concatenate([now[:1], now[:-1]]), np.concatenate([now[1:], 0.0 * now[:1]])
        old, now = now, 2.0 * now - old + courant * (above - 2.0 * now + below) + shot[k] * top
        seen.append(now)
    return np.stack(seen)


waves = pressures(truth)
known = depth < 50.0  # measured from a hole


def misfit(change):
    """The mismatch of the echoes near the surface, and a little smoothness."""
    speed = np.where(known, 1500.0, 1500.0 + 100.0 * change)
    return np.sum((pressures(speed) - waves)[:, 2] ** 2) + 1e-4 * np.sum(np.diff(change) ** 2)


loss = nb.jit(nb.value_and_grad(misfit), memory="2 MB")
fit = minimize(loss, np.zeros(n), jac=True, method="L-BFGS-B", options={"maxiter": 200})
found = np.where(known, 1500.0, 1500.0 + 100.0 * fit.x)
print(f"{fit.nfev} evaluations, misfit {loss(np.zeros(n))[0]:.1f} before and {fit.fun:.4f} after")

# %%
# Down to 700 metres the speed is the true one to a thousandth. Echoes from more than 930 metres come after the end.

assert np.abs(found - truth)[depth < 700.0].max() < 2.0

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4), sharey=True)
left.imshow(waves.T, extent=(0.0, steps * dt, n * dx, 0.0), aspect="auto", cmap="seismic", vmin=-4, vmax=4)
left.set(xlabel="time in s", ylabel="depth in m", title="pressure")
right.plot(truth, depth, "k", linewidth=3, alpha=0.4, label="true")
right.plot(found, depth, label="from the echoes")
right.set(xlabel="speed in m/s", title="speed of sound")
right.legend()
figure.tight_layout()
plt.show()
