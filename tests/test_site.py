"""The site: each public name has its place, pages are listed, links lead to files, examples keep the rules.

The build itself (`.ci/run`) fails on warnings and where an example of the gallery fails; these tests need no Sphinx.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import nbgrad as nb

from .imports import ROOT
from .test_public_surface import PUBLIC

DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"])
GALLERY = sorted((DOCS / "gallery").glob("*.py"))


def name_groups() -> ModuleType:
    """The tables of docs/building/name_groups.py."""
    spec = importlib.util.spec_from_file_location("name_groups", DOCS / "building" / "name_groups.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_is_in_the_reference() -> None:
    groups = name_groups()
    assert {"nbgrad", *groups.MODULES} == set(PUBLIC)
    names = [n for _, listed in groups.GROUPS.values() for n in listed.split()]
    names += [n for listed in groups.ALIASES.values() for n in listed.split()]
    assert len(names) == len(set(names))
    assert set(names) == {n for n in nb.__all__ if not isinstance(getattr(nb, n), ModuleType)}
    shown = [f"nbgrad.{n}" for listed in groups.SECTIONS.values() for n in listed.split()]
    assert sorted(shown) == sorted(groups.MODULES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        if target.startswith("http"):
            continue
        name, _, heading = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), target
        if heading:
            assert heading in headings(path), target


def headings(page: Path) -> set[str]:
    """The anchors that GitHub and MyST give to headings."""
    lines = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def test_every_page_is_in_a_table_of_contents() -> None:
    listed = set()
    for page in DOCS.glob("*.md"):
        for block in re.findall(r"```{toctree}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            listed |= {line.split("<")[-1].strip(">") for line in block.splitlines()}
    assert {page.stem for page in DOCS.glob("*.md")} - listed == {"index"}


@pytest.mark.parametrize("script", GALLERY, ids=lambda script: script.stem)
def test_examples_are_short_and_assert_something(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert re.search(r"^\s*(assert |np\.testing\.assert)", text, re.MULTILINE)
    assert text.count("plt.show()") == 1


def test_there_are_examples() -> None:
    assert len(GALLERY) >= 15
