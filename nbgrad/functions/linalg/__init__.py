"""Products, factorisations and functions of matrices."""
