"""Ufuncs and other functions of elements."""
