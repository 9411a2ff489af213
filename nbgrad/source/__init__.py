"""Code that cannot be edited, run with nbgrad's NumPy: `differentiable_source`."""
