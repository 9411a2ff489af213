"""Sparse derivatives: what a Jacobian or Hessian costs beside its function, and what the first call costs."""

import numpy as np
import scipy.sparse

import nbgrad as nb


def bratu(u):
    """A tridiagonal system."""
    padded = np.pad(u, 1)
    return padded[2:] - 2.0 * u + padded[:-2] + np.exp(u) / (u.size + 1) ** 2


def five_points(u):
    """A grid of five-point stencils."""
    padded = np.pad(u, 1)
    return padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2] - 4.0 * u + u**3


def rosenbrock(x):
    """A chain, whose Hessian is tridiagonal."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


TASKS = {
    "tridiagonal, 100000": (bratu, nb.sparse_jacobian, (100_000,)),
    "stencil, 300x300": (five_points, nb.sparse_jacobian, (300, 300)),
    "Hessian of a chain, 100000": (rosenbrock, nb.sparse_hessian, (100_000,)),
}


class Derivatives:
    """The compiled function, its sparse matrix, and the first call: recording, pattern, coloring and all."""

    params = tuple(TASKS)
    param_names = ("task",)

    def setup(self, task):
        function, transform, shape = TASKS[task]
        self.x = np.random.default_rng(0).standard_normal(shape)
        self.function, self.matrix = nb.jit(function), transform(function)
        self.function(self.x)
        self.matrix(self.x)

    def time_function(self, task):
        self.function(self.x)

    def time_matrix(self, task):
        self.matrix(self.x)

    def time_first_call(self, task):
        function, transform, _ = TASKS[task]
        transform(function)(self.x)

    def track_products(self, task):
        return self.matrix.products(self.x)

    track_products.unit = "products"


class Dense:
    """The same Jacobian, sparse and dense, of few unknowns."""

    params = (10, 100, 1000)
    param_names = ("n",)

    def setup(self, n):
        self.x = np.random.default_rng(0).standard_normal(n)
        self.sparse, self.dense = nb.sparse_jacobian(bratu), nb.jit(nb.jacfwd(bratu))
        self.sparse(self.x)
        self.dense(self.x)

    def time_sparse(self, n):
        self.sparse(self.x)

    def time_dense(self, n):
        self.dense(self.x)


class Products:
    """A constant matrix of scipy.sparse times a vector, and the gradient of its norm."""

    def setup(self):
        n = 100_000
        matrix = scipy.sparse.random_array((n, n), density=5 / n, rng=np.random.default_rng(0)).tocsr()
        self.x = np.random.default_rng(1).standard_normal(n)
        self.product = nb.jit(lambda x: matrix @ x)
        self.gradient = nb.jit(nb.grad(lambda x: np.sum((matrix @ x) ** 2)))
        self.product(self.x)
        self.gradient(self.x)

    def time_product(self):
        self.product(self.x)

    def time_gradient(self):
        self.gradient(self.x)
