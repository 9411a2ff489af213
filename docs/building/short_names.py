"""`nb.grad` in a docstring, in the gallery or on a page is a link to `nbgrad.grad`.

In: documents as they were read, and references that Sphinx has not found. Out: links to nbgrad's names where there is
`nb.` in front; other text stays. Sphinx calls `setup`.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

NAME = re.compile(r"nb(?:grad)?(\.\w+)+(\(\))?")


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at each document, and then at each reference that is missing."""
    app.connect("doctree-read", referred)
    app.connect("missing-reference", whole)
    return {"parallel_read_safe": True}


def referred(app: Sphinx, document: nodes.document) -> None:
    """Make code in a line of text a reference, if it is no more than a name."""
    for code in list(document.findall(nodes.literal)):
        linked = isinstance(code.parent, (nodes.reference, pending_xref, nodes.title))
        if not linked and NAME.fullmatch(code.astext()):
            options = {"refdomain": "py", "reftype": "obj", "refdoc": app.env.docname, "refwarn": False}
            reference = pending_xref("", code.deepcopy(), reftarget=code.astext(), **options)
            code.replace_self(reference)


def whole(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.TextElement) -> nodes.Element | None:
    """The link to a name with `nb.` in front, or None."""
    target = str(node.get("reftarget", ""))
    if node.get("refdomain") != "py" or not target.startswith("nb."):
        return None
    full = "nbgrad." + target.removeprefix("nb.").removesuffix("()")
    return env.get_domain("py").resolve_xref(env, node["refdoc"], app.builder, "obj", full, node, text)
