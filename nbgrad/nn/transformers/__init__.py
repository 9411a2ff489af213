"""Attention as layers: several heads, and the blocks, stacks and network that are made of them.

In: sizes; then sequences. Out: Cells. `nbgrad.nn` finds their names here.
"""
