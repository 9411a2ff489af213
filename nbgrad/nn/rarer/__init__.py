"""Layers, losses and an optimizer that few programs use.

In: options; then Tensors. Out: Cells. `nbgrad.nn` lists the names by module, and imports a module at the first use.
"""
