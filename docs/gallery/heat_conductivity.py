"""
Conductivity inside a plate
===========================

A plate is heated at one place after the other, and its temperature is read at the edge. SuperLU runs inside the
function, on a sparse matrix of the unknown conductivities, and the derivative uses its factors again.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sparse
from scipy.optimize import minimize
from scipy.sparse.linalg import splu

import nbgrad as nb

n = 16
cells = np.arange(n * n).reshape(n, n)
a, b = np.append(cells[:, :-1], cells[:-1]), np.append(cells[:, 1:], cells[1:])  # pairs of neighbours
frame = np.concatenate([cells[0], cells[-1], cells[1:-1, 0], cells[1:-1, -1]])
heated = np.eye(n * n)[:, frame[::3]]
cooling = 0.1 * np.isin(cells.ravel(), frame)


def readings(logs):
    """The temperatures of the edge, a column for each place that is heated."""
    k = np.exp(logs)
    flow = 2.0 / (1.0 / k[a] + 1.0 / k[b])
    values = np.concatenate([flow, flow, -flow, -flow, cooling])
    places = np.concatenate([a, b, a, b, cells.ravel()]), np.concatenate([a, b, b, a, cells.ravel()])
    return splu(sparse.coo_array((values, places)).tocsc()).solve(heated)[frame]


y, x = np.mgrid[:n, :n]
truth = 1.2 * np.exp(-((x - 5) ** 2 + (y - 6) ** 2) / 8.0) - np.exp(-((x - 11) ** 2 + (y - 10) ** 2) / 6.0)
truth = truth.ravel()
measured = readings(truth)


def misfit(logs):
    """The squares of the differences, and some smoothness."""
    return 1e4 * np.sum((readings(logs) - measured) ** 2) + 1e-3 * np.sum((logs[a] - logs[b]) ** 2)


loss = nb.jit(nb.value_and_grad(nb.differentiable_source(misfit)))
fit = minimize(loss, np.zeros(n * n), jac=True, method="L-BFGS-B", options={"maxiter": 300})
print(f"{fit.nfev} evaluations; correlation with the truth {np.corrcoef(fit.x, truth)[0, 1]:.3f}")

# %%
# The gradient agrees with differences of SciPy's own results, and the two spots are where they were.

way = np.random.default_rng(0).standard_normal(n * n)
slope = (misfit(1e-5 * way) - misfit(-1e-5 * way)) / 2e-5
np.testing.assert_allclose(loss(np.zeros(n * n))[1] @ way, slope, rtol=1e-6)
assert np.corrcoef(fit.x, truth)[0, 1] > 0.9

figure, axes = plt.subplots(1, 2, figsize=(7, 3))
for axis, shown in zip(axes, (truth, fit.x), strict=True):  # the true one, and what was found
    axis.imshow(shown.reshape(n, n), vmin=-1.2, vmax=1.2, cmap="coolwarm")
plt.show()
