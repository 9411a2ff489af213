"""Transforms of functions: gradients, Jacobians, vmap, rules of users."""
