"""
A Gaussian process and its length scale
=======================================

The likelihood goes through a Cholesky factor; its gradient by the three hyperparameters is compiled, and SciPy finds
the maximum.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import nbgrad as nb

rng = np.random.default_rng(2)
x = np.sort(rng.uniform(0.0, 10.0, 150))
square = (x[:, None] - x[None, :]) ** 2
truth = np.log([1.5, 0.8, 0.2])  # size, length, noise


def covariance(p):
    """Squared exponentials, and noise."""
    return np.exp(2.0 * p[0] - 0.5 * square * np.exp(-2.0 * p[1])) + np.exp(2.0 * p[2]) * np.eye(150)


y = np.linalg.cholesky(covariance(truth)) @ rng.standard_normal(150)


def loss(p):
    """Minus the logarithm of the likelihood, but for a constant."""
    factor = np.linalg.cholesky(covariance(p))
    z = np.linalg.solve(factor, y)
    return 0.5 * z @ z + np.sum(np.log(np.diag(factor)))


compiled = nb.jit(nb.value_and_grad(loss))
fit = minimize(compiled, np.zeros(3), jac=True)
error = np.sqrt(np.diag(np.linalg.inv(nb.hessian(loss)(fit.x))))
print(f"found {np.exp(fit.x).round(3)} for {np.exp(truth)}, {fit.nfev} evaluations")

# %%
# The textbook's gradient is a trace, half of tr(K^-1 K' - K^-1 y y' K^-1 K'), here by the logarithm of the noise.

inverse, noise = np.linalg.inv(covariance(truth)), 2.0 * np.exp(2.0 * truth[2]) * np.eye(150)
weights = inverse @ y
np.testing.assert_allclose(compiled(truth)[1][2], 0.5 * np.trace((inverse - np.outer(weights, weights)) @ noise))
assert np.all(np.abs(fit.x - truth) < 3.0 * error)

s = np.linspace(0.0, 10.0, 200)
size, length, _ = np.exp(fit.x)
across = size**2 * np.exp(-0.5 * (s[:, None] - x) ** 2 / length**2)
mean = across @ np.linalg.solve(covariance(fit.x), y)
spread = np.sqrt(size**2 - np.sum(across * np.linalg.solve(covariance(fit.x), across.T).T, axis=1))
plt.figure(figsize=(7, 3.5))
plt.fill_between(s, mean - 2.0 * spread, mean + 2.0 * spread, alpha=0.3)
plt.plot(s, mean)
plt.plot(x, y, "k.", markersize=4)
plt.xlabel("x")
plt.show()
