"""Kernels of GPUs: from a loop nest, or from Python, to PTX."""
