"""Sparse Jacobians and Hessians, and products with constants of `scipy.sparse`."""
