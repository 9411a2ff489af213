"""
The price of a constraint
=========================

Shares of five assets with the least risk for a required return, none of them negative: a quadratic function under an
equation, an inequality and bounds, by ``nb.solvers.minimize``. The minimiser, its risk and its multipliers have
derivatives by everything that they were made of.
"""

import matplotlib.pyplot as plt
import numpy as np

import nbgrad as nb

expected = np.array([0.02, 0.04, 0.05, 0.07, 0.09])
deviations = np.array([0.02, 0.09, 0.11, 0.16, 0.25])
covariance = (0.25 + 0.75 * np.eye(5)) * np.outer(deviations, deviations)


def chosen(required, expected=expected):
    """The shares for a required return."""
    constraints = [
        {"type": "eq", "fun": lambda w: np.sum(w) - 1.0},
        {"type": "ineq", "fun": lambda w: w @ expected - required},
    ]
    return nb.solvers.minimize(
        lambda w: w @ covariance @ w, np.full(5, 0.2), bounds=[(0.0, None)] * 5, constraints=constraints, tol=1e-10
    )


returns = np.linspace(0.02, 0.085, 27)
plans = [chosen(r) for r in returns]
risks = np.array([plan.fun for plan in plans])

# %%
# How much more risk does a little more return cost? The derivative of the least risk says it, and so does the
# multiplier of the constraint: that is the envelope theorem.

slope = nb.jit(nb.grad(lambda r: chosen(r).fun))
prices = np.array([slope(r) for r in returns])
multipliers = np.array([plan.multipliers[1] for plan in plans])
np.testing.assert_allclose(prices, multipliers, atol=1e-4)

# %%
# The shares themselves move with the expectations. Those that are zero stay zero, and the others still sum to one.

moves = nb.jacrev(lambda e: chosen(0.05, e).x)(expected)
np.testing.assert_allclose(moves.sum(0), 0.0, atol=1e-7)
print("shares", plans[12].x.round(3), "at a return of", returns[12].round(4))
print("one percent more expected of the third asset moves them by", (0.01 * moves[:, 2]).round(3))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
left.plot(np.sqrt(risks), returns, "o-", markersize=3)
left.set(xlabel="standard deviation", ylabel="required return")
right.plot(returns, prices, label="derivative of the least risk")
right.plot(returns, multipliers, "k.", markersize=4, label="multiplier")
right.set(xlabel="required return", ylabel="price")
right.legend()
plt.tight_layout()
plt.show()
