"""Derivatives of whole Numba kernels, made from the kernels' own text."""
