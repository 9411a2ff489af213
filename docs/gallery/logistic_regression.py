"""
Logistic regression with error bars
===================================

One compiled function gives the loss and its gradient, `nb.optim.lbfgs` finds the minimum in a compiled loop, and the
Hessian there gives the errors.
"""

import matplotlib.pyplot as plt
import numpy as np

import nbgrad as nb
from nbgrad import optim

rng = np.random.default_rng(3)
truth = np.array([0.5, -1.0, 2.0, 0.0, 1.0])
X = np.column_stack([np.ones(4000), rng.standard_normal((4000, 4))])
y = np.where(rng.random(4000) < 1.0 / (1.0 + np.exp(-X @ truth)), 1.0, -1.0)


def loss(w, X, y):
    """Minus the logarithm of the likelihood."""
    return np.sum(np.log1p(np.exp(-y * (X @ w))))


fit = optim.lbfgs(loss, np.zeros(5), args=(X, y))
error = np.sqrt(np.diag(np.linalg.inv(nb.hessian(loss)(fit.x, X, y))))
print(f"{fit.message}; {fit.nit} iterations")

# %%
# On paper, the gradient is the sum of X (p - t), and the Hessian is X' p (1 - p) X. The weights that made the data
# are within three standard deviations.

p = 1.0 / (1.0 + np.exp(-X @ fit.x))
np.testing.assert_allclose(nb.grad(loss)(fit.x, X, y), X.T @ (p - (y > 0)), atol=1e-9)
np.testing.assert_allclose(error, np.sqrt(np.diag(np.linalg.inv(X.T @ (X * (p * (1.0 - p))[:, None])))), rtol=1e-10)
assert fit.success and np.all(np.abs(fit.x - truth) < 3.0 * error)

plt.figure(figsize=(6, 3.5))
plt.errorbar(np.arange(5), fit.x, 2.0 * error, fmt="o", capsize=4, label="found, two standard deviations")
plt.plot(np.arange(5), truth, "kx", label="true")
plt.xlabel("weight")
plt.legend()
plt.show()
