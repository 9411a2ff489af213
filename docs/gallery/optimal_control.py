"""
Optimal control by single shooting
==================================

A cart of one kilogramme goes one metre in one second, from rest to rest, with the least effort. SciPy's SLSQP gets
the gradient of the effort and the Jacobian of the end of 200 time steps, all compiled.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import nbgrad as nb

n = 200
dt = 1.0 / n


def trajectory(push):
    """Places and speeds after each step."""
    place, speed, places, speeds = 0.0, 0.0, [], []
    for k in range(n):
        place = place + dt * (speed + 0.5 * dt * push[k])
        speed = speed + dt * push[k]
        places.append(place)
        speeds.append(speed)
    return np.stack(places), np.stack(speeds)


def end(push):
    """Where the cart is at the end, less where it has to be."""
    places, speeds = trajectory(push)
    return np.stack([places[-1] - 1.0, speeds[-1]])


def effort(push):
    """The integral of the squared force."""
    return dt * np.sum(push**2)


there = {"type": "eq", "fun": nb.jit(end), "jac": nb.jit(nb.jacrev(end))}
found = minimize(nb.jit(nb.value_and_grad(effort)), np.zeros(n), jac=True, method="SLSQP", constraints=there)
print(f"{found.message}; effort {found.fun:.6f}")

# %%
# Pontryagin's principle gives the force 6 - 12 t and the effort 12.

t = (np.arange(n) + 0.5) * dt
np.testing.assert_allclose(found.x, 6.0 - 12.0 * t, atol=1e-3)
np.testing.assert_allclose(found.fun, 12.0, rtol=1e-4)

places, speeds = trajectory(found.x)
plt.figure(figsize=(7, 3.5))
for values, label in ((found.x / 6.0, "force / 6 N"), (speeds, "speed in m/s"), (places, "place in m")):
    plt.plot(t, values, label=label)
plt.xlabel("seconds")
plt.legend()
plt.show()
