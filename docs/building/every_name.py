"""The build fails unless every public name of nbgrad is in the index of the site.

In: the names of the public modules, and the objects that Sphinx has found while it read. Out: a warning, which `-W`
makes an error, with the names that are missing. Sphinx calls `setup`.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from .name_groups import MODULES

log = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, bool]:
    """Look when all documents are read."""
    app.connect("env-check-consistency", check)
    return {"parallel_read_safe": True}


def public_names() -> set[str]:
    """Full names, without modules and without NumPy's own element types and constants."""
    names = set()
    for module in ("nbgrad", *MODULES):
        found = import_module(module)
        names |= {f"{module}.{n}" for n in found.__all__ if not isinstance(getattr(found, n), ModuleType)}
    return {n for n in names if not n.startswith("nbgrad.numpy.") or is_ours(n)}


def is_ours(name: str) -> bool:
    """Whether a name of `nbgrad.numpy` is defined by nbgrad."""
    module, _, last = name.rpartition(".")
    return str(getattr(getattr(import_module(module), last), "__module__", "")).startswith("nbgrad")


def check(app: Sphinx, env: BuildEnvironment) -> None:
    """Compare the names with Sphinx's index of Python objects."""
    missing = public_names() - set(env.domains["py"].objects)
    if missing:
        log.warning("These public names have no page: %s", ", ".join(sorted(missing)))
