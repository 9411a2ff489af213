"""Kernels of `@cuda.jit`: their names, which threads share which elements, and the text and launches of derivatives."""
