"""The graph: recorded operations, and every pass that turns one graph into another. Imports no compiler."""

from . import expand_complex as expand_complex
