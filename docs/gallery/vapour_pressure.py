"""
Clausius and Clapeyron by the implicit function theorem
=======================================================

A van der Waals fluid boils where the pressures and the chemical potentials of liquid and vapour are equal: two
equations that only a solver solves. The derivative of the pressure by temperature needs no look into the solver, and
thermodynamics knows what it must be.
"""

import matplotlib.pyplot as plt
import numpy as np

import nbgrad as nb
from nbgrad import solvers


def pressure(volume, T):
    """Of a van der Waals fluid, all in units of the critical point."""
    return 8.0 * T / (3.0 * volume - 1.0) - 3.0 / volume**2


def potential(volume, T):
    """The chemical potential, but for a function of temperature."""
    return -8.0 * T / 3.0 * np.log(3.0 * volume - 1.0) + pressure(volume, T) * volume - 3.0 / volume


def boiling(T, start):
    """The volumes of liquid and vapour."""

    def unequal(logs):
        liquid, vapour = np.exp(logs[0]), np.exp(logs[1])
        return [pressure(liquid, T) - pressure(vapour, T), potential(liquid, T) - potential(vapour, T)]

    return np.exp(solvers.root(unequal, np.log(start), tol=1e-12).x)


temperatures, volumes, pressures, slopes = np.linspace(0.7, 0.98, 15), [], [], []
start = np.array([0.4672, 7.811])
slope = nb.jit(nb.grad(lambda T, start: pressure(boiling(T, start)[0], T)))
for T in temperatures:
    start = boiling(T, start)
    volumes.append(start)
    pressures.append(pressure(start[0], T))
    slopes.append(slope(T, start))

# %%
# dp/dT is the difference of the entropies over that of the volumes.

liquid, vapour = np.transpose(volumes)
entropies = 8.0 / 3.0 * np.log((3.0 * vapour - 1.0) / (3.0 * liquid - 1.0))
np.testing.assert_allclose(slopes, entropies / (vapour - liquid), rtol=1e-8)

plt.plot(temperatures, pressures, label="pressure of the vapour")
for T, p, s in list(zip(temperatures, pressures, slopes, strict=True))[::3]:
    plt.plot([T - 0.02, T + 0.02], [p - 0.02 * s, p + 0.02 * s], "C1")
plt.xlabel("T / T of the critical point")
plt.ylabel("p / p of the critical point")
plt.legend()
plt.show()
