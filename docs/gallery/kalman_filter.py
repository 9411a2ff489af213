"""
Noise levels by a Kalman filter
===============================

The likelihood of a time series is a loop over its elements; the loop is recorded, found again, and differentiated as
one. The two noise levels of a random walk that is measured with errors come from the maximum.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import nbgrad as nb

rng = np.random.default_rng(1)
walk = np.cumsum(0.3 * rng.standard_normal(1000))
measured = walk + 1.0 * rng.standard_normal(1000)


def filtered(logs, data):
    """Minus the logarithm of the likelihood, and the means of the states."""
    drift, noise = np.exp(2.0 * logs[0]), np.exp(2.0 * logs[1])
    mean, variance, total, means = 0.0, 10.0, 0.0, []
    for y in data:
        variance = variance + drift
        expected = variance + noise
        gain = variance / expected
        total = total + 0.5 * (np.log(2.0 * np.pi * expected) + (y - mean) ** 2 / expected)
        mean, variance = mean + gain * (y - mean), (1.0 - gain) * variance
        means.append(mean)
    return total, means


loss = nb.jit(nb.value_and_grad(lambda logs: filtered(logs, measured)[0]))
fit = minimize(loss, np.zeros(2), jac=True)
print(f"drift {np.exp(fit.x[0]):.3f}, noise {np.exp(fit.x[1]):.3f} after {fit.nfev} evaluations")

# %%
# The derivative is that of a complex step, and the levels are those that made the data, 0.3 and 1, within three
# standard deviations, which the second derivatives tell.

at = np.array([-0.5, 0.2])
steps = [filtered(at + 1e-30j * unit, measured)[0].imag / 1e-30 for unit in np.eye(2)]
np.testing.assert_allclose(loss(at)[1], steps, rtol=1e-10)
error = np.sqrt(np.diag(np.linalg.inv(nb.hessian(lambda logs: filtered(logs, measured)[0])(fit.x))))
assert np.all(np.abs(fit.x - np.log([0.3, 1.0])) < 3.0 * error) and error.max() < 0.2

plt.plot(measured, ".", color="0.7", label="measured")
plt.plot(walk, "k", linewidth=1, label="true")
plt.plot(filtered(fit.x, measured)[1], label="filtered")
plt.xlabel("time")
plt.legend()
plt.show()
