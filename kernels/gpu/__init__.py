"""Kernels of GPUs that are no loop nests, and the functions of float32 that GPUs compute otherwise."""
