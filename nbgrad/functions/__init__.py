"""NumPy's and SciPy's functions on Tensors, by family, and the table that names each once."""
