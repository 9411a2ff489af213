"""Private interfaces of other packages are used where the table says, and nowhere else."""

from __future__ import annotations

import re
from importlib.metadata import version

import pytest

from nbgrad.info import info
from nbgrad.process import private_interfaces
from nbgrad.process.private_interfaces import INTERFACES, NEWEST_TESTED, Interface, newer_than_tested

from .imports import ROOT, SOURCES

TABLE = "process/private_interfaces.py"


@pytest.mark.parametrize("interface", INTERFACES, ids=lambda one: one.name)
def test_uses_are_those_of_the_table(interface: Interface) -> None:
    folder = ROOT / "nbgrad"
    files = {path.relative_to(folder).as_posix(): path for path in SOURCES.values() if path.is_relative_to(folder)}
    pattern = re.compile(interface.pattern)
    found = {name for name, path in files.items() if pattern.search(path.read_text(encoding="utf-8"))}
    assert found - {TABLE} == set(interface.files.split()) - {TABLE}
    assert interface.relies_on and interface.checked


def test_other_spellings_are_not_used() -> None:
    """Names with an underscore of other packages' modules need a line in the table."""
    known = "|".join(interface.pattern for interface in INTERFACES)
    private = re.compile(r"\b(?:np|numpy|numba|llvm|scipy|sys|os|gc|importlib)\.(?:\w+\.)*_[a-z]\w+")
    for name, path in SOURCES.items():
        for line in path.read_text(encoding="utf-8").split("\n"):
            for use in private.findall(line):
                assert re.search(known, line), (name, use, line)


def test_installed_versions_are_not_newer_than_tested_ones() -> None:
    """A newer release is in use: once the suite passes with it, it goes into the table."""
    newer = [name for name in NEWEST_TESTED if newer_than_tested(name, version(name))]
    assert not newer


def test_info_says_what_was_never_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_interfaces, "NEWEST_TESTED", {"numpy": (1, 26)})
    assert dict(info())["numpy"].endswith("(newer than 1.26, the newest that was tested)")
