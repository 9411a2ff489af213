"""Code of their own for small matrices: products, factors, systems, eigenvalues."""
