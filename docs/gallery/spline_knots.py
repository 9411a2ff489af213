"""
A spline that moves its knots
=============================

`CubicSpline` is differentiated by its values and by the places of its knots. Twelve knots are fitted to a sharp peak:
with places that are free, they crowd where the curve bends.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize

import nbgrad as nb

x = np.linspace(0.0, 1.0, 400)
data = 1.0 / (1.0 + ((x - 0.4) / 0.05) ** 2)
n = 12


def curve(p):
    """A spline of the gaps between its knots and of its values there."""
    gaps = np.exp(p[: n - 1])
    knots = np.concatenate([np.zeros(1), np.cumsum(gaps) / np.sum(gaps)])
    return CubicSpline(knots, p[n - 1 :])(x)


def misfit(p):
    """The mean square of the differences, times 10,000."""
    return 1e4 * np.mean((curve(p) - data) ** 2) + 1e-3 * np.sum(p[: n - 1] ** 2)


loss = nb.jit(nb.value_and_grad(nb.differentiable_source(misfit)))
start = np.concatenate([np.zeros(n - 1), np.interp(np.linspace(0.0, 1.0, n), x, data)])
fit = minimize(loss, start, jac=True, options={"maxiter": 200})

# %%
# The derivative is that of SciPy's own spline, by differences; with equal gaps, even the best values of least squares
# are far worse.

way = np.random.default_rng(0).standard_normal(2 * n - 1)
slope = (misfit(start + 1e-6 * way) - misfit(start - 1e-6 * way)) / 2e-6
np.testing.assert_allclose(loss(start)[1] @ way, slope, rtol=1e-6)

basis = CubicSpline(np.linspace(0.0, 1.0, n), np.eye(n))(x)
equal = basis @ np.linalg.lstsq(basis, data)[0]
free = curve(fit.x)
errors = [np.sqrt(np.mean((c - data) ** 2)) for c in (equal, free)]
print(f"root mean square error {errors[0]:.4f} with equal gaps, {errors[1]:.4f} with free ones, {fit.nfev} evaluations")
assert errors[1] < errors[0] / 5.0

places = np.concatenate([[0.0], np.cumsum(np.exp(fit.x[: n - 1])) / np.sum(np.exp(fit.x[: n - 1]))])
plt.plot(x, data, "k", linewidth=3, alpha=0.3, label="data")
plt.plot(x, equal, label="equal gaps")
plt.plot(x, free, label="free gaps")
plt.plot(places, fit.x[n - 1 :], "C1o")
plt.legend()
plt.show()
