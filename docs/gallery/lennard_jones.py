"""
A cluster of atoms by a Numba kernel
====================================

The energy of thirteen argon atoms is a Numba kernel with two loops. `nb.kernel` derives its gradient from the
kernel's own text, and the atoms relax into the icosahedron that is known to be lowest.
"""

import matplotlib.pyplot as plt
import numpy as np
from numba import njit
from scipy.optimize import minimize

import nbgrad as nb


@njit
def energy(x):
    """The sum over all pairs of Lennard and Jones's potential."""
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            square = 0.0
            for k in range(3):
                square += (x[i, k] - x[j, k]) ** 2
            inverse = 1.0 / square**3
            total += 4.0 * (inverse * inverse - inverse)
    return total


cluster = nb.kernel(energy)
gradient = nb.grad(cluster)

# %%
# Two atoms first: on paper, the force at distance r is 24 (2 / r^13 - 1 / r^7).

pair = np.array([[0.0, 0.0, 0.0], [1.3, 0.0, 0.0]])
np.testing.assert_allclose(-gradient(pair)[1, 0], 24.0 * (2.0 / 1.3**13 - 1.0 / 1.3**7), rtol=1e-13)

# %%
# Thirteen, from random places. J. Northby's table (Journal of Chemical Physics 87, 1987) has the lowest energy.

loss = nb.jit(nb.value_and_grad(lambda x: cluster(x.reshape(13, 3))))
rng = np.random.default_rng(0)
options = {"maxiter": 2000, "ftol": 1e-14}
guesses = 1.5 * rng.uniform(-1.0, 1.0, (60, 39))
found = [minimize(loss, guess, jac=True, method="L-BFGS-B", options=options) for guess in guesses]
best = min(found, key=lambda run: run.fun)
print(f"{best.fun:.6f}; {sum(run.nfev for run in found)} evaluations")
np.testing.assert_allclose(best.fun, -44.326801, atol=1e-6)

x, y, z = best.x.reshape(13, 3).T
figure = plt.figure(figsize=(8, 3.5))
axis = figure.add_subplot(121, projection="3d")
axis.scatter(x, y, z, s=300, c=z)
axis = figure.add_subplot(122)
axis.hist([run.fun for run in found], bins=30)
axis.set_xlabel("energies of the minima that were found")
figure.tight_layout()
plt.show()
