"""
A simulator that a command starts
=================================

A program reads two numbers, a rate of loss and a capacity, and prints a cooling curve. Nothing is known of its insides.
``nb.callback`` makes it an operation with a derivative by differences; everything around it is NumPy.
"""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np

import nbgrad as nb

PROGRAM = """
import sys
loss, capacity = map(float, sys.argv[1:])
heat = 80.0
for step in range(400):
    if step % 20 == 0:
        print(heat)
    heat -= 0.05 * (loss * heat + 0.002 * heat * heat) / capacity
"""


@nb.callback(shape=lambda loss, capacity: ((20,), "float64"), differences="central", threads=2)
def curve(loss, capacity):
    command = [sys.executable, "-S", "-c", PROGRAM, repr(float(loss)), repr(float(capacity))]
    return np.array(subprocess.run(command, capture_output=True, check=True).stdout.split(), float)


# %%
# Measurements with noise, and a model of the sensor behind the simulator: its scale is fitted, too.

rng = np.random.default_rng(0)
true = np.array([0.3, 1.7, 1.05])
measured = true[2] * curve(*true[:2]) + rng.normal(size=20) * 0.2


def residuals(parameters):
    return np.exp(parameters[2]) * curve(np.exp(parameters[0]), np.exp(parameters[1])) - measured


found = nb.solvers.least_squares(residuals, np.zeros(3), method="lm")
loss, capacity, scale = np.exp(found.x)
print(f"loss {loss:.3f}, capacity {capacity:.3f}, scale of the sensor {scale:.4f}")

# %%
# The Jacobian at the end gives the deviations of what was fitted, as always in least squares.

jacobian = nb.jacrev(residuals)(found.x)
deviations = np.sqrt(np.diag(np.linalg.inv(jacobian.T @ jacobian))) * 0.2 * np.exp(found.x)
assert np.all(np.abs(np.exp(found.x) - true) < 4 * deviations), (np.exp(found.x), deviations)

plt.plot(measured, "o", markersize=4, label="measured")
plt.plot(scale * curve(loss, capacity), label="fitted")
plt.legend()
plt.show()
