"""Loops in graphs: the primitives `loop` and `item`, their rules, and how loops are made and rewritten.

In: graphs of one turn. Out: nodes whose value is that of many turns. Called by everything that makes or reads graphs.
"""
