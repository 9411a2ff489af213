"""Pages of the reference, written before Sphinx reads: one for each name, or for each family of a large module.

In: the names that `nbgrad` and its public modules list in `__all__`, and the groups of `name_groups`. Out: files
`docs/generated/api/*.rst`, which hold directives of autodoc only; texts come from the docstrings. Files that do not
change are left alone, so that a second build is short. Sphinx calls `setup`.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from .name_groups import ALIASES, GROUPS, MODULES, OWN_PAGES, SECTIONS, WITH_MEMBERS

FOLDER = Path(__file__).resolve().parents[1] / "generated" / "api"
FAMILY = 5  # a smaller family joins the others of its module


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages when the build begins."""
    app.connect("builder-inited", lambda app: write(FOLDER))
    return {"parallel_read_safe": True}


def write(folder: Path) -> None:
    """Bring the folder up to date."""
    pages = Reference().pages
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.rst"):
        if path.stem not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def names_of(module: str) -> list[str]:
    """The public names of a module that are no modules."""
    found = import_module(module)
    return [name for name in found.__all__ if not isinstance(getattr(found, name), ModuleType)]


def slug(title: str) -> str:
    """The file name of a group."""
    return title.lower().replace(" ", "-")


def heading(title: str, line: str = "=") -> str:
    """A title of reStructuredText."""
    return f"{title}\n{line * len(title)}\n\n"


def toctree(entries: list[str], option: str) -> str:
    """The pages below a page."""
    return "\n".join([".. toctree::", f"   {option}", "", *(f"   {entry}" for entry in entries), "\n"])


def summary(found: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(found) or "").partition("\n\n")[0].split())


def table(module: str, names: list[str]) -> str:
    """Names beside the first paragraphs of their docstrings. (autosummary takes a third of the build's time for it.)"""
    text = ".. list-table::\n   :widths: auto\n\n"
    for name in names:
        found = getattr(import_module(module), name)
        words = summary(found) if callable(found) else ""
        text += f"   * - :py:obj:`~{module}.{name}`\n     - {words}\n"
    return text + "\n"


class Reference:
    """All pages: `pages` has their texts by their names."""

    def __init__(self) -> None:
        self.pages = {"index": self._index()}
        self.first: dict[int, str] = {}  # what a page shows -> the name under which it does
        for title, (sentence, names) in GROUPS.items():
            self.pages[slug(title)] = self._listing(title, sentence, "nbgrad", names.split(), own=True)
        for module, sentence in MODULES.items():
            if module.startswith("nbgrad.numpy"):
                self.pages[module] = self._namespace(module, sentence)
            elif module in ("nbgrad.ops", "nbgrad.nn"):
                self.pages[module] = self._families(module, sentence)
            else:
                own = module in OWN_PAGES
                self.pages[module] = self._listing(module, sentence, module, names_of(module), own=own)
        shown = {name for _, names in GROUPS.values() for name in names.split()}
        shown |= {name for names in ALIASES.values() for name in names.split()}
        if wrong := shown ^ set(names_of("nbgrad")):
            message = f"docs/building/name_groups.py and nbgrad differ in these names: {', '.join(sorted(wrong))}"
            raise ExtensionError(message)

    def _index(self) -> str:
        """The first page of the reference."""
        text = heading("Reference") + ".. py:module:: nbgrad\n\n"
        text += "All that is public; other modules are internal, and may change in any release. "
        text += "`import nbgrad as nb` comes first.\n\n"
        sections = {"nbgrad": {slug(title): sentence for title, (sentence, _) in GROUPS.items()}}
        for title, names in SECTIONS.items():
            sections[title] = {f"nbgrad.{name}": MODULES[f"nbgrad.{name}"] for name in names.split()}
        for title, pages in sections.items():
            text += heading(title, "-") + toctree(list(pages), f":hidden:\n   :caption: {title}")
            text += ".. list-table::\n   :widths: auto\n\n"
            text += "".join(f"   * - :doc:`{page}`\n     - {sentence}\n" for page, sentence in pages.items()) + "\n"
        return text

    def _entry(self, module: str, name: str) -> str:
        """The directive for a name; another name of an object refers to the first one."""
        found = getattr(import_module(module), name)
        kind = "class" if inspect.isclass(found) else "function" if callable(found) else "data"
        if kind == "data":
            return f".. py:data:: {name}\n   :module: {module}\n\n   ``{found!r}``\n\n"
        first = self.first.setdefault(id(found), f"{module}.{name}")
        if first != f"{module}.{name}":
            return f".. py:{kind}:: {name}\n   :module: {module}\n\n   The same as :py:obj:`{first}`.\n\n"
        members = "   :members:\n" if kind == "class" and name in WITH_MEMBERS else ""
        return f".. auto{kind}:: {module}.{name}\n{members}\n"

    def _listing(self, title: str, sentence: str, module: str, names: list[str], *, own: bool = False) -> str:
        """A page that lists names; with `own`, each has a page of its own besides."""
        text = heading(title) + (f".. py:module:: {module}\n\n" if title == module else "") + sentence + "\n\n"
        entries = {name: self._entry(module, name) for name in names}
        if own:
            text += toctree([f"{module}.{name}" for name in names], ":hidden:")
            self.pages |= {f"{module}.{name}": heading(name) + entry for name, entry in entries.items()}
        if own or len(names) > 3:
            text += table(module, names)
        if not own:
            text += "".join(entries.values())
        return text + "".join(self._entry("nbgrad", name) for name in ALIASES.get(module, "").split())

    def _families(self, module: str, sentence: str) -> str:
        """A page for each module that holds names of a large one."""
        found = defaultdict(list)
        for name in sorted(names_of(module)):
            found[getattr(import_module(module), name).__module__.rpartition(".")[2]].append(name)
        for family in [family for family in found if len(found[family]) < FAMILY and family != "cell"]:
            found["other_names"] += found.pop(family)
        entries = []
        for family in sorted(found):
            title = family.replace("_", " ")
            self.pages[f"{module}.{family}"] = self._listing(f"{module}: {title}", "", module, sorted(found[family]))
            entries.append(f"{title.capitalize()} <{module}.{family}>")
        return heading(module) + f".. py:module:: {module}\n\n" + sentence + "\n\n" + toctree(entries, ":maxdepth: 1")

    def _namespace(self, module: str, sentence: str) -> str:
        """All functions of a namespace of NumPy's in one table, with the first words of their docstrings."""
        text = heading(module) + f".. py:module:: {module}\n\n" + sentence
        text += " :doc:`The table </docs/numpy>` says how far each one works. "
        text += "Names that are no functions (element types, constants) are NumPy's own.\n\n"
        text += ".. list-table::\n   :widths: auto\n\n"
        for name in sorted(names_of(module), key=str.lower):
            found = getattr(import_module(module), name)
            if str(getattr(found, "__module__", "")).startswith("nbgrad"):
                kind = "class" if inspect.isclass(found) else "function"
                options = f":module: {module}\n", ":no-typesetting:\n", ":no-contents-entry:\n"
                text += f"   * - .. py:{kind}:: {name}\n" + "".join(f"{'':10}{option}" for option in options)
                text += f"\n       ``{name}``\n     - {summary(found)}\n"
        return text
