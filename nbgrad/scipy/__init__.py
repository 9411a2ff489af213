"""SciPy's functions for recorded values, where SciPy's own code takes none: the table, and the functions."""
