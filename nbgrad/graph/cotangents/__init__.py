"""Cotangents that arrive in pieces while a walk goes back over a graph: of slices of an array, and of the outputs of a
call.

Called by differentiate.py.
"""
