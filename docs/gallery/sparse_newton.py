"""
Newton's method with sparse Jacobians
=====================================

Bratu's equation, u'' + lambda exp(u) = 0, on 20,000 points. `nb.sparse_jacobian` finds out that each equation has
three unknowns of its own, and needs one product for the whole matrix.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq
from scipy.sparse.linalg import spsolve

import nbgrad as nb

n, strength = 20_000, 2.0
x = np.linspace(0.0, 1.0, n + 2)
h = x[1] - x[0]


def residual(u):
    """The equation at the inner points; u is zero at both ends."""
    left, right = np.concatenate([np.zeros(1), u[:-1]]), np.concatenate([u[1:], np.zeros(1)])
    return (left - 2.0 * u + right) / h**2 + strength * np.exp(u)


jacobian = nb.sparse_jacobian(residual)
u, changes = np.zeros(n), []
for _ in range(6):
    step = spsolve(jacobian(u).tocsc(), -residual(u))
    u = u + step
    changes.append(np.abs(step).max())
print(f"{jacobian(u).nnz} entries of {n}^2; the steps shrink as {' '.join(f'{c:.0e}' for c in changes)}")

# %%
# The exact solution is known but for one number, which solves an equation.

theta = brentq(lambda t: t - np.sqrt(2.0 * strength) * np.cosh(t / 4.0), 0.0, 4.0)
exact = -2.0 * np.log(np.cosh((x - 0.5) * theta / 2.0) / np.cosh(theta / 4.0))
assert np.abs(u - exact[1:-1]).max() < 1e-7 and jacobian(u).nnz == 3 * n - 2

plt.figure(figsize=(7, 3.5))
plt.subplot(121)
plt.plot(x[1:-1], u)
plt.xlabel("x")
plt.ylabel("u")
plt.subplot(122)
plt.semilogy(changes, "o-")
plt.xlabel("step of Newton's method")
plt.ylabel("largest change")
plt.tight_layout()
plt.show()
