"""Kernels are read: from the text of a function that Numba compiles to statements on numbers."""
