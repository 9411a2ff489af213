"""Matrix products and what surrounds them: biases, activations, sums, batches."""

import numpy as np

from . import measured
from .tasks import Task

FORMS = {
    "A @ B": lambda xp, A, B: xp.sum(A @ B),
    "tanh(A @ B)": lambda xp, A, B: xp.sum(xp.tanh(A @ B)),
    "A.T @ B": lambda xp, A, B: xp.sum(A.T @ B),
    "A @ b": lambda xp, A, B: xp.sum((A @ B[:, 0]) ** 2),
    "einsum ij,ik->jk": lambda xp, A, B: xp.sum(xp.einsum("ij,ik->jk", A, B) ** 2),
}


class Tasks(measured.Measured):
    """Regression, its Hessian times a vector, a Jacobian, a Gaussian mixture."""

    params = ("logistic", "hvp", "jacobian", "mixture")


class Gradients(measured.Beside):
    """With respect to both matrices."""

    params = (tuple(FORMS), (16, 512), ("float32", "float64"))
    param_names = ("form", "n", "dtype")

    def task(self, form, n, dtype):
        return Task("", FORMS[form], lambda rng: tuple(rng.standard_normal((2, n, n)).astype(dtype)), (0, 1))

    def time_value_and_grad(self, form, n, dtype, library):
        self.call()


class Batches(measured.Beside):
    """Many small products: one call, however many there are."""

    def task(self):
        return Task("", FORMS["tanh(A @ B)"], lambda rng: tuple(rng.standard_normal((2, 1000, 8, 8))), (0, 1))

    def time_value_and_grad(self, library):
        self.call()


SYSTEMS = {
    "solve": lambda xp, A, b: xp.sum(xp.linalg.solve(A, b) ** 2),
    "slogdet": lambda xp, A, b: xp.linalg.slogdet(A)[1] + xp.sum(b),
}


class Factorisations(measured.Beside):
    """Linear systems by LAPACK, with derivatives."""

    params = (tuple(SYSTEMS), (10, 200))
    param_names = ("function", "n")

    def task(self, function, n):
        def inputs(rng):
            A = rng.standard_normal((n, n))
            return A @ A.T + n * np.eye(n), np.ones(n)

        return Task("", SYSTEMS[function], inputs, (0, 1))

    def time_value_and_grad(self, function, n, library):
        self.call()
