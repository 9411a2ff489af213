"""
A solver of your own, as a kernel
=================================

Thomas's algorithm overwrites its arrays in two loops, the second one backwards. `nb.kernel` gives the gradient of
what the loops do, in about the time of a few solutions.
"""

import matplotlib.pyplot as plt
import numpy as np
from numba import njit
from scipy.linalg import solve_banded

import nbgrad as nb


@njit
def thomas(lower, diagonal, upper, x):
    """Solve a tridiagonal system; `x` holds the right-hand side first, and the solution at the end."""
    n = len(x)
    scratch = np.empty(n)
    scratch[0] = upper[0] / diagonal[0]
    x[0] = x[0] / diagonal[0]
    for i in range(1, n):
        pivot = diagonal[i] - lower[i] * scratch[i - 1]
        scratch[i] = upper[i] / pivot
        x[i] = (x[i] - lower[i] * x[i - 1]) / pivot
    for i in range(n - 2, -1, -1):
        x[i] -= scratch[i] * x[i + 1]


solve = nb.kernel(thomas)
n = 200
s = np.linspace(0.0, 1.0, n)
lower, diagonal, upper = -np.ones(n), 2.02 + 0.1 * np.sin(9.0 * s), -np.ones(n)
load = np.exp(-((s - 0.3) ** 2) / 0.002)


def reading(diagonal):
    """The solution at one place."""
    return solve(lower, diagonal, upper, load)[150]


influence = nb.jit(nb.grad(reading))(diagonal)

# %%
# The adjoint method on paper, with LAPACK: minus the solution times the solution of the transposed system.

bands = np.stack([upper, diagonal, lower])
bands[0, 1:], bands[2, :-1] = upper[:-1], lower[1:]
solution, adjoint = solve_banded((1, 1), bands, load), solve_banded((1, 1), bands, np.eye(n)[150])
np.testing.assert_allclose(influence, -solution * adjoint, rtol=1e-10)

plt.figure(figsize=(7, 3.5))
plt.plot(s, solution, label="solution")
plt.plot(s, influence, label="influence of the diagonal on the mark")
plt.plot(s[150], solution[150], "ko")
plt.legend()
plt.show()
