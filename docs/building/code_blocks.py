"""Blocks of code without the empty line at their end, which doctest wants and readers do not.

In: each document that Sphinx has read. Out: the same with shorter blocks. Sphinx calls `setup`.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at each document."""
    app.connect("doctree-read", shorten)
    return {"parallel_read_safe": True}


def shorten(app: Sphinx, document: nodes.document) -> None:
    """Cut the empty lines at the end of each block."""
    for block in document.findall(nodes.literal_block):
        text = block.astext()
        if text.endswith("\n") and block.rawsource == text:
            block.rawsource = text.rstrip("\n")
            block.children = [nodes.Text(block.rawsource)]
