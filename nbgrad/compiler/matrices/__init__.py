"""Products of matrices by BLAS, and code of their own for small matrices: products, factors, systems, eigenvalues."""
