"""
Energies of a quantum well
==========================

The lowest energies of a particle in a potential are eigenvalues of a matrix. Their derivatives by the potential's
parameters come through `eigvalsh`; a well is then bent until its spectrum has the distances that were asked for.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import least_squares

import nbgrad as nb

x = np.linspace(-6.0, 6.0, 201)
h = x[1] - x[0]
kinetic = (2.0 * np.eye(201) - np.eye(201, k=1) - np.eye(201, k=-1)) / (2.0 * h**2)


def energies(potential):
    """The lowest six."""
    return np.linalg.eigvalsh(kinetic + np.diag(potential))[:6]


def spring(k):
    """The ground state of a spring: half of the square root of its constant, on paper."""
    return energies(0.5 * k * x**2)[0]


np.testing.assert_allclose(nb.grad(spring)(2.0), 0.25 / np.sqrt(2.0), rtol=1e-3)

# %%
# The other way round: even polynomials, with energies of 1/2, 3/2, ... as the goal. What comes out must be the spring
# with the constant 1.


def well(p):
    """A potential of three numbers."""
    return p[0] * x**2 + p[1] * x**4 / 10.0 + p[2]


goal = np.arange(6) + 0.5
misses = nb.jit(lambda p: energies(well(p)) - goal)
fit = least_squares(misses, [0.1, 0.3, 1.0], jac=nb.jit(nb.jacfwd(misses)), xtol=1e-12)
print(f"{fit.nfev} evaluations: {fit.x.round(4)}")
np.testing.assert_allclose(fit.x, [0.5, 0.0, 0.0], atol=0.01)

plt.plot(x, well(fit.x), "k")
plt.plot(x, well(np.array([0.1, 0.3, 1.0])), "0.7")
levels, states = np.linalg.eigh(kinetic + np.diag(well(fit.x)))
for k in range(6):
    plt.plot(x, levels[k] + 1.5 * states[:, k])
plt.ylim(0.0, 7.0)
plt.xlabel("place")
plt.ylabel("energy")
plt.show()
