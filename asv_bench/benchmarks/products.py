"""Matrix products and what surrounds them: biases, activations, sums, batches."""

import numpy as np

import nbgrad as nb

from . import measured

FORMS = {
    "A @ B": lambda A, B: np.sum(A @ B),
    "tanh(A @ B)": lambda A, B: np.sum(np.tanh(A @ B)),
    "A.T @ B": lambda A, B: np.sum(A.T @ B),
    "A @ b": lambda A, B: np.sum((A @ B[:, 0]) ** 2),
    "einsum ij,ik->jk": lambda A, B: np.sum(np.einsum("ij,ik->jk", A, B) ** 2),
}


class Tasks(measured.Measured):
    """Regression, its Hessian times a vector, a Jacobian, a Gaussian mixture."""

    params = ("logistic", "hvp", "jacobian", "mixture")


class Gradients:
    """With respect to both matrices."""

    params = (tuple(FORMS), (16, 512), ("float32", "float64"))
    param_names = ("form", "n", "dtype")

    def setup(self, form, n, dtype):
        self.inputs = np.random.default_rng(0).standard_normal((2, n, n)).astype(dtype)
        self.function = nb.jit(nb.value_and_grad(FORMS[form], (0, 1)))
        self.function(*self.inputs)

    def time_value_and_grad(self, form, n, dtype):
        self.function(*self.inputs)


class Batches:
    """Many small products: one call, however many there are."""

    def setup(self):
        self.inputs = np.random.default_rng(0).standard_normal((2, 1000, 8, 8))
        self.function = nb.jit(nb.value_and_grad(lambda A, B: np.sum(np.tanh(A @ B)), (0, 1)))
        self.function(*self.inputs)

    def time_value_and_grad(self):
        self.function(*self.inputs)


class Factorisations:
    """Linear systems by LAPACK, with derivatives."""

    params = (10, 200)
    param_names = ("n",)

    def setup(self, n):
        A = np.random.default_rng(0).standard_normal((n, n))
        self.inputs = A @ A.T + n * np.eye(n), np.ones(n)
        self.solve = nb.jit(nb.value_and_grad(lambda A, b: np.sum(np.linalg.solve(A, b) ** 2), (0, 1)))
        self.determinant = nb.jit(nb.value_and_grad(lambda A: np.linalg.slogdet(A)[1]))
        self.solve(*self.inputs)
        self.determinant(self.inputs[0])

    def time_solve(self, n):
        self.solve(*self.inputs)

    def time_slogdet(self, n):
        self.determinant(self.inputs[0])
