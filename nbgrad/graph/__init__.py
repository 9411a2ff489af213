"""The graph: what was recorded, and every pass that turns one graph into another. Imports no compiler."""

from . import expand_complex as expand_complex
