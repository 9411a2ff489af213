"""From loop nests to LLVM IR: the general emitter, and those for loops that go in tiles or in groups of rows.

In: a `Loop`. Out: its IR. loop_ir.py is the door.
"""
