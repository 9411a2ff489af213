"""Loops and branches as functions: `scan`, `fori_loop`, `map`.

In: functions of one turn. Out: results of all turns, from one `loop` of the graph (graph/loops/loop_body.py). Called by
users.
"""
