"""The rules of simplification, by kinds of primitives: a node in, a simpler node of the same value or None out.

Called by simplify.py, which passes nodes whose inputs are simple already.
"""
