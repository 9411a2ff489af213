"""
Parameters of an ordinary differential equation
===============================================

Hares and lynxes by Lotka and Volterra: four rates are found from 31 counts of each. `solve_ivp` runs inside the
function, and its derivative is a discrete adjoint; a new set of rates compiles nothing.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import nbgrad as nb
from nbgrad import solvers

times = np.linspace(0.0, 30.0, 31)
truth = np.array([0.6, 0.025, 0.8, 0.02])


def animals(rates):
    """The number of hares and lynxes at all times."""
    birth, eaten, death, fed = rates

    def slope(t, y):
        return [birth * y[0] - eaten * y[0] * y[1], fed * y[0] * y[1] - death * y[1]]

    return solvers.solve_ivp(slope, (0.0, 30.0), [30.0, 4.0], t_eval=times, rtol=1e-8, atol=1e-8).y


# %%
# Counts scatter by ten per cent, so that their logarithms do by 0.1.

counts = animals(truth) * np.exp(0.1 * np.random.default_rng(0).standard_normal((2, 31)))


def misfit(logs):
    """Half the sum of squares in standard deviations."""
    return 0.5 * np.sum((np.log(animals(np.exp(logs))) - np.log(counts)) ** 2) / 0.1**2


start = np.log([0.5, 0.02, 1.0, 0.025])
fit = minimize(nb.jit(nb.value_and_grad(misfit)), start, jac=True, method="BFGS")
found = np.exp(fit.x)
error = np.sqrt(np.diag(np.linalg.inv(nb.hessian(misfit)(fit.x))))  # of the logarithms
print(f"{fit.nfev} evaluations; found {found.round(4)} with errors of {(100 * error).round(1)} %")

# %%
# The rates are those that the counts were made with, within three standard deviations, and the misfit is as expected
# for 62 numbers.

assert np.all(np.abs(fit.x - np.log(truth)) < 3 * error)
assert 0.5 < 2 * fit.fun / 58 < 1.6

plt.plot(times, animals(found).T, label=["hares", "lynxes"])
plt.plot(times, counts.T, "k.", markersize=4)
plt.xlabel("years")
plt.ylabel("thousands")
plt.legend()
plt.show()
