"""Sums over data that do not fit into memory, block by block, with derivatives.

In: arrays on disk or in parts, functions of a block. Out: sums over all blocks. Called by users as `nb.blocks` and
`nb.map_reduce`.
"""
