"""The asv suite: one module per concern. Absolute times follow a version over time; ratios.py compares with peers."""
