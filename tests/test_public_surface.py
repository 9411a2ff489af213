"""The public surface: modules that users call say which names are theirs, and `dir` shows these."""

from __future__ import annotations

import re
from importlib import import_module
from types import ModuleType

import pytest

import nbgrad as nb

from .imports import ROOT, SOURCES

PUBLIC = (
    "nbgrad nbgrad.amp nbgrad.bench nbgrad.communication nbgrad.dataset nbgrad.log nbgrad.train "
    "nbgrad.autograd nbgrad.autograd.forward_ad nbgrad.autograd.functional "
    "nbgrad.common nbgrad.common.initializer nbgrad.config nbgrad.context nbgrad.cuda nbgrad.dtype "
    "nbgrad.errors nbgrad.nn nbgrad.numpy nbgrad.numpy.fft nbgrad.numpy.linalg nbgrad.numpy.random nbgrad.ops "
    "nbgrad.mint nbgrad.mint.linalg nbgrad.mint.nn nbgrad.mint.nn.functional nbgrad.mint.optim nbgrad.mint.special "
    "nbgrad.mint.torch_names "
    "nbgrad.nn.probability.distribution nbgrad.nn.probability.bijector "
    "nbgrad.tape nbgrad.interop nbgrad.solvers nbgrad.mpi nbgrad.optim"
).split()
SUBMODULES = {
    "amp",
    "autograd",
    "bench",
    "communication",
    "dataset",
    "text",
    "log",
    "train",
    "common",
    "config",
    "context",
    "cuda",
    "dtype",
    "errors",
    "interop",
    "mint",
    "mpi",
    "nn",
    "numpy",
    "ops",
    "optim",
    "solvers",
    "tape",
} | {
    "forward_ad",
    "functional",
    "linalg",
    "special",
    "transforms",
    "vision",
}


@pytest.mark.parametrize("module", PUBLIC)
def test_public_modules_say_which_names_are_theirs(module: str) -> None:
    found = import_module(module)
    names = list(found.__all__)
    assert len(names) == len(set(names)) > (0 if module in ("nbgrad.bench", "nbgrad.config", "nbgrad.interop") else 3)
    for name in names:
        assert hasattr(found, name), name
    if module in ("nbgrad", "nbgrad.ops", "nbgrad.nn"):
        assert dir(found) == sorted(names)
    if not module.startswith("nbgrad.numpy"):  # NumPy's own submodules are there under its names
        modules = {name for name in names if isinstance(getattr(found, name), ModuleType)}
        assert modules <= SUBMODULES
        assert not [name for name in names if name.startswith("_")]


def test_dir_shows_what_users_call() -> None:
    assert {"Tensor", "grad", "jit", "float32", "ops", "numpy", "check_grads", "cuda"} <= set(dir(nb))
    internal = {name.split(".")[1] for name in SOURCES if name.count(".") >= 1} - SUBMODULES
    assert internal.isdisjoint(dir(nb)) and len(internal) > 15


def test_star_imports_give_these_names() -> None:
    scope: dict[str, object] = {}
    exec("from nbgrad import *", scope)
    assert set(dir(nb)) <= set(scope)


def test_documents_import_public_names_only() -> None:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "notebooks").glob("*.py"))):
        text = path.read_text(encoding="utf-8")
        modules = re.findall(r"^(?:>>> )?(?:from|import) (nbgrad[\w.]*)", text, re.MULTILINE)
        assert set(modules) <= {*PUBLIC}, path.name
