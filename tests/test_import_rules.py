"""The shape of the source: who may import whom, what an import must not load, and how long files and folders may be."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from .imports import ROOT, SOURCES, arrows, circles, dynamic, imports, trees

LONGEST_FILE = 600
MOST_FILES = 30
"""In one folder."""
MOST_AT_THE_TOP = 12
LAYERS = """
    kernels
    kernels.gpu
    errors config dtype moved mindspore_paths log
    process
    graph graph.cotangents graph.loops graph.rules
    compiler compiler.emitters compiler.matrices compiler.texts
    device.kernels
    device.driver
    device.simulator
    device.memory
    device.libraries
    device
    runtime
    record
    functions.arrays
    functions.linalg
    functions.analysis
    functions.elementwise
    functions
    cuda
    remembered
    tensors
    transforms
    control
    compiled
    numpy
    scipy scipy.interpolation
    solvers
    optim
    blockwise
    source
    extend
    adjoints adjoints.machine adjoints.reading adjoints.threads adjoints.turns
    sparse
    mpi
    communication
    autograd
    tape
    interop
    bench
    ops ops.rarer
    nn nn.transformers nn.evaluation nn.rarer nn.probability
    mint mint.nn mint.modules
    common
    amp
    train
    dataset
    context precompile
    __init__
    info nist
    __main__
"""
"""From the bottom up; every folder is a layer, and so are the files beside `nbgrad/__init__.py`."""
ORDER = {f"nbgrad.{name}": level for level, line in enumerate(LAYERS.strip().split("\n")) for name in line.split()}
ORDER["nbgrad"] = ORDER.pop("nbgrad.__init__")
TABLES = {
    "nbgrad": "names that scripts seldom need",
    "nbgrad.bench.fresh_process": "the module of a class, from a command line",
    "nbgrad.compiler.lowering": "kernels, whose files Numba reads",
    "nbgrad.functions.table": "NumPy's functions",
    "nbgrad.dataset": "names of datasets",
    "nbgrad.mindspore_paths": "MindSpore's older module paths",
    "nbgrad.mint.inner_names": "names of mint",
    "nbgrad.mint.named_modules": "names of mint",
    "nbgrad.mint.torch_modules": "names of torch.fft and torch.linalg",
    "nbgrad.mint.torch_names": "names of autograd and of mint",
    "nbgrad.moved": "modules by their old paths",
    "nbgrad.nn": "layers",
    "nbgrad.nn.function_layers": "functions of arrays",
    "nbgrad.numpy": "NumPy's names",
    "nbgrad.numpy.drop_in": "numpy.linalg, fft and random",
    "nbgrad.ops": "MindSpore's functions",
    "nbgrad.ops.class_forms": "MindSpore's functions, by their classes",
    "nbgrad.compiler.matrices.blas_routines": "modules of SciPy",
    "nbgrad.train": "names of Model and its callbacks",
    "nbgrad.device.exchange": "libraries of arrays",
    "nbgrad.scipy.scipy_calls": "SciPy's functions",
    "nbgrad.transforms.lent_arrays": "libraries of arrays",
}
"""Modules that import by a name from a table, at its first use, and the names in the table."""
CUDA = ("cuda", "cupy", "numba.cuda", "numba_cuda")
MAY_IMPORT_CUDA = ("nbgrad.device", "nbgrad.record.foreign_arrays")


def inside(module: str, package: str) -> bool:
    """Whether a module is a package or lies in it."""
    return module == package or module.startswith(package + ".")


def layer(module: str) -> int:
    """The number of a module's layer, from the bottom."""
    return max((len(name), level) for name, level in ORDER.items() if inside(module, name))[1]


def test_the_rule_sees_every_module() -> None:
    assert len(SOURCES) > 300
    folders = {name.rpartition(".")[0] for name, path in SOURCES.items() if path.stem != "__init__"} - {"nbgrad"}
    tops = {name for name in SOURCES if name.count(".") <= 1}
    assert folders | tops == {*ORDER}, "LAYERS must name every folder and every file at the top"
    assert layer("nbgrad.kernels.exponential") == 0
    assert layer("nbgrad.device.exchange") == ORDER["nbgrad.device"] > layer("nbgrad.device.kernels.ptx")
    assert "nbgrad.compiler.scalars" in arrows()["nbgrad.compiler.emitters.emit"]
    assert "nbgrad.graph.holomorphic" in arrows()["nbgrad.graph.expand_complex"], "imports inside functions"
    assert "nbgrad.nn" in arrows()["nbgrad.nn.evaluation.metrics_base"], "imports by import_module"
    assert "nbgrad.device.memory.arrays" in arrows()["nbgrad.device.recipes"], "imports for types"


def test_imports_point_downwards() -> None:
    wrong = {
        name: above
        for name, targets in arrows().items()
        if (above := [target for target in targets if layer(target) > layer(name)])
    }
    assert not wrong, f"modules import what stands above them: {wrong}"


def test_there_are_no_circles() -> None:
    assert not circles(arrows())
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_names_are_computed_in_tables_only() -> None:
    assert {*TABLES} == dynamic()


def test_kernels_import_nothing_of_nbgrad_but_kernels() -> None:
    kernels = [name for name in SOURCES if inside(name, "nbgrad.kernels")]
    assert len(kernels) > 20
    assert not [(name, t) for name in kernels for t in arrows()[name] if not inside(t, "nbgrad.kernels")]


def test_cuda_packages_are_imported_in_few_places() -> None:
    users = {
        name for name, targets in imports().items() for t in targets if any(inside(t, package) for package in CUDA)
    }
    assert users, "the rule sees no import of CUDA"
    assert not [name for name in users if not name.startswith(MAY_IMPORT_CUDA)]


def test_modules_open_with_a_docstring_and_end_in_time() -> None:
    silent = [name for name in SOURCES if not ast.get_docstring(trees()[name])]
    assert not silent, f"modules without a docstring: {silent}"
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in SOURCES.items()}
    wrong = {name: length for name, length in lengths.items() if length > LONGEST_FILE}
    assert not wrong, f"modules of more than {LONGEST_FILE} lines: {wrong}"


def test_docstrings_say_what_a_thing_is() -> None:
    """They open with the thing: a reader of "What ..." or "The same ..." has to look elsewhere first."""
    opening = re.compile(r'^\s*"""(?:What|As|The same)\b.*', re.MULTILINE)
    found = {name: opening.findall(path.read_text(encoding="utf-8")) for name, path in SOURCES.items()}
    assert not {name: lines for name, lines in found.items() if lines}


def claims(name: str) -> tuple[set[str], set[str]]:
    """The files that the head of a module names, and those that it says call it."""
    head = " ".join((ast.get_docstring(trees()[name]) or "").split())
    said = re.findall(r"(?:[Cc]alled|Used) by (.*?)(?:\.(?: |$)|[;:] )", head)
    named = re.findall(r"(?<![\w/.*])[\w/]+\.py\b", head)
    return set(named), {file for sentence in said for file in re.findall(r"[\w/]+\.py\b", sentence)}


def test_module_heads_tell_the_truth() -> None:
    """Files that they name exist, and files that are said to call a module import it, or have its name in a table."""
    paths = {path.relative_to(ROOT).as_posix(): name for name, path in SOURCES.items()}
    files = {*paths, *(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").glob("*.py"))}
    wrong: list[tuple[str, str]] = []
    for name in SOURCES:
        named, callers = claims(name)
        wrong += [(name, file) for file in named if not any(f"/{path}".endswith(f"/{file}") for path in files)]
        for file in callers:
            modules = [module for path, module in paths.items() if f"/{path}".endswith(f"/{file}")]
            word = name.rpartition(".")[2]
            told = any(name in arrows()[m] or re.search(rf'["./]{word}\b', SOURCES[m].read_text()) for m in modules)
            if modules and not told:
                wrong.append((name, f"called by {file}"))
    assert not wrong


def test_no_file_name_twice_and_no_crowded_folder() -> None:
    doors = {"numpy/linalg.py", "numpy/fft.py", "numpy/random.py", "autograd/functional.py"}  # names of others
    doors |= {"mint/linalg.py", "mint/special.py", "mint/nn/functional.py"}
    own = [path for path in SOURCES.values() if path.is_relative_to(ROOT / "nbgrad")]
    paths = [path.relative_to(ROOT / "nbgrad") for path in own]
    names = Counter(path.name for path in paths if path.name != "__init__.py" and path.as_posix() not in doors)
    assert not [name for name, count in names.items() if count > 1]
    folders = Counter(path.parent.as_posix() for path in paths)
    folders.update(path.parent.as_posix() for path in SOURCES.values() if path not in own)
    assert folders.pop(".") <= MOST_AT_THE_TOP
    assert not {folder: count for folder, count in folders.items() if count > MOST_FILES}


def fresh(code: str, **environment: str) -> str:
    """What a new Python process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_nbgrad_is_light() -> None:
    heavy = ["numba", "scipy", "matplotlib", "cuda", "setuptools"]
    assert fresh(f"import sys, nbgrad; print([name for name in {heavy} if name in sys.modules])") == "[]"


def test_a_gradient_that_was_compiled_before_needs_neither_numba_nor_scipy(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np, nbgrad as nb;"
        "print(float(nb.grad(lambda x: np.sum(np.sin(x) ** 2))(np.array([0.25]))[0]),"
        "'numba' in sys.modules, 'scipy' in sys.modules)"
    )
    folder = str(tmp_path / "cache")
    first = fresh(code, NBGRAD_CACHE_DIR=folder).split()
    second = fresh(code, NBGRAD_CACHE_DIR=folder).split()
    # sin(0.5), to 16 digits.
    assert float(first[0]) == float(second[0]) == pytest.approx(0.479425538604203, rel=1e-15)
    assert second[1:] == ["False", "False"]


def test_work_on_the_cpu_loads_nothing_of_devices() -> None:
    code = (
        "import sys, numpy as np, nbgrad as nb;"
        "nb.jit(nb.grad(lambda x: np.sum(np.sort(x) @ np.ones(3))))(np.ones(3));"
        "nb.nn.Dense(3, 2)(nb.Tensor(np.ones((1, 3), np.float32))).asnumpy();"
        "print([name for name in sys.modules if name.startswith(('nbgrad.device.', 'nbgrad.cuda', 'cuda'))])"
    )
    assert fresh(code) == "[]"
