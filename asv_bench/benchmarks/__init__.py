"""The asv suite: one module per concern. Absolute times follow a version over time; peers.py compares with others.

tasks.py holds the work, libraries.py and cells.py say how a library does it, measured.py times tasks by name; the other
modules are found by asv. No module compiles anything when it is imported, so that asv may import it before it forks.
"""
