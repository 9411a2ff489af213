"""Compiled functions: `jit`, and what explains them."""
