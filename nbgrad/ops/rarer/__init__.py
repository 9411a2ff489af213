"""MindSpore's functions that few programs use: special functions, windows, segments, diagonals, sparse arrays.

In: Tensors and options. Out: Tensors. `nbgrad.ops` lists the names by module, and imports a module at the first use of
one of them.
"""
