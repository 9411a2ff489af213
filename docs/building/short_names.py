"""`nb.grad` in a docstring or in the gallery is a link to `nbgrad.grad`.

In: references that Sphinx has not found. Out: those to nbgrad's names, with `nb.` in front. Sphinx calls `setup`.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at each reference that is missing."""
    app.connect("missing-reference", whole)
    return {"parallel_read_safe": True}


def whole(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.TextElement) -> nodes.Element | None:
    """The link, or None."""
    target = str(node.get("reftarget", ""))
    if node.get("refdomain") != "py" or not target.startswith("nb."):
        return None
    python = env.get_domain("py")
    full = "nbgrad." + target.removeprefix("nb.").removesuffix("()")
    return python.resolve_xref(env, node["refdoc"], app.builder, "obj", full, node, text)
