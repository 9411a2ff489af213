"""The IR that comes with the package: complete, current, the same for every CPU, and enough to do without Numba."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nbgrad import precompile
from nbgrad.compiler import called_scalars, scalars, shipped, shipped_objects
from nbgrad.compiler.lowering import kernel_module
from nbgrad.process import object_layout

TEXT = shipped.FILE.read_text(encoding="ascii")
DEVICE_TEXT = shipped.DEVICE_FILE.read_text(encoding="ascii")
SECTIONS = re.findall(r"^;; (\S+) ", TEXT + DEVICE_TEXT, re.MULTILINE)
AGAIN = (
    "Run `python -m nbgrad.precompile` (it takes some minutes) in an environment with 'numba==0.65.*', and commit "
    "nbgrad/compiler/shipped*."
)


def test_the_file_is_current() -> None:
    assert not shipped.stale(), f"The IR that comes with the package is older than its sources. {AGAIN}"


def test_every_llvm_that_nbgrad_runs_with_reads_the_files() -> None:
    """llvmlite 0.47, the oldest that pyproject.toml allows, has LLVM 20."""
    requirements = (Path(precompile.__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert '"llvmlite>=0.47"' in requirements and '"numba>=0.65"' in requirements
    assert re.findall(r"^; llvm (\d+)$", TEXT + DEVICE_TEXT, re.MULTILINE) == ["20", "20"], AGAIN


def test_precompile_says_which_numba_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precompile.llvm, "llvm_version_info", (precompile.OLDEST_LLVM + 1, 0, 0))
    with pytest.raises(SystemExit, match=r"pip install -e \. 'numba==0\.65\.\*'"):
        precompile.main()


def test_the_file_is_complete() -> None:
    """Nothing is missing, and nothing is left of kernels that are no more."""
    assert sorted(SECTIONS) == sorted(name for name, _, _ in precompile.functions()), AGAIN
    modules = {module for _, module, _ in precompile.functions()}
    assert set(re.findall(r"^; digest (\S+) ", TEXT + DEVICE_TEXT, re.MULTILINE)) == modules, AGAIN


def test_what_is_found_is_the_function_that_was_asked_for() -> None:
    for name in SECTIONS:
        text = shipped.find(name)
        assert text is not None, name
        symbol = name if name in text else "native" if ".runtime." in name else "special"
        assert len(re.findall(rf"^define internal [^@]*@{re.escape(symbol)}\(", text, re.MULTILINE)) == 1, name
        assert ";;" not in text


@pytest.mark.parametrize("name", ["nbgrad.no.float64.float64", "nbgrad.exp", "", "end"])
def test_what_is_not_there_is_not_found(name: str) -> None:
    assert shipped.find(name) is None


@pytest.mark.parametrize(
    "trace", [r"<\d+ x ", r"target", r"\b(?:avx|sse|neon)", r"0x7f[0-9a-f]{10}\b", "numba_", "NRT_"]
)
def test_the_ir_is_for_no_machine_in_particular(trace: str) -> None:
    assert not re.search(trace, TEXT + DEVICE_TEXT)


@pytest.mark.parametrize(
    "text", ["", "; llvm 999\n" + TEXT, TEXT[: len(TEXT) // 2], re.sub("digest (.*) .{32}", r"digest \1 0", TEXT)]
)
def test_a_file_that_does_not_fit_is_ignored(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing, of a later LLVM, cut off, or of other sources."""
    path = tmp_path / "shipped.ll"
    if text:
        path.write_text(text, encoding="ascii")
    monkeypatch.setattr(shipped, "FILE", path)
    shipped.forget()
    try:
        assert shipped.find("nbgrad.exp.float64.float64") is None
        assert shipped.stale()
    finally:
        monkeypatch.undo()
        shipped.forget()


def test_a_digest_sees_what_a_kernel_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(Path(str(kernel_module().__file__)).parent, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(shipped, "kernels_folder", lambda: tmp_path)
    modules = [f"nbgrad.kernels.{name}" for name in ("error_function", "exponential", "reciprocal_root", "windows")]

    def changed_by(name: str) -> list[bool]:
        before = []
        for text in (b"", b"\n# changed\n"):
            with open(tmp_path / name, "ab") as file:
                file.write(text)
            shipped.forget()
            before.append([shipped.digest(module) for module in modules])
        return [a != b for a, b in zip(*before, strict=True)]

    try:
        # error_function.py uses exponential.py; every kernel may use bits.py.
        assert changed_by("exponential.py") == [True, True, False, False]
        assert changed_by("reciprocal_root.py") == [False, False, True, False]
        assert changed_by("bits.py") == [True] * 4
        assert changed_by("intrinsics.py") == [True] * 4
        assert changed_by("random.py") == [False] * 4
    finally:
        monkeypatch.undo()
        shipped.forget()


LINUX = sys.platform == "linux" and platform.machine() == "x86_64"


@pytest.mark.skipif(not LINUX, reason="object code is for Linux on x86-64")
def test_the_object_code_is_current_and_complete() -> None:
    layout = object_layout.measured()
    found = set()
    for function, count in precompile.NATIVE.items():
        section = shipped.function_name(function, ["int64"] * count, "int64")
        made = shipped_objects.find(section, function.__module__, layout)
        assert made is not None, f"The object code of {section} is older than its sources. {AGAIN}"
        symbol, code = made
        assert code[:4] == b"\x7fELF" and symbol.encode() in code
        found.add(symbol.removeprefix("exported."))
        other = {**layout, "tuple_items": layout["tuple_items"] + 8}
        assert shipped_objects.find(section, function.__module__, other) is None
    assert names_in(shipped_objects.FILE) == found, AGAIN


def names_in(file: Path) -> set[str]:
    return {line.split()[0] for line in file.read_text(encoding="ascii").splitlines() if not line.startswith("#")}


def test_the_object_code_of_elementary_functions_is_current_and_complete() -> None:
    expected = {shipped_objects.name_of_scalar(level, text) for level, text in precompile.scalar_texts()}
    assert names_in(shipped_objects.SCALARS_FILE) == expected, AGAIN


@pytest.mark.skipif(not LINUX, reason="object code is for Linux on x86-64")
@pytest.mark.parametrize(
    ("features", "level"),
    [
        (shipped_objects.LEVELS["x86-64-v3"], "x86-64-v3"),
        (shipped_objects.LEVELS["x86-64-v4"] + ",+avx512vbmi", "x86-64-v4"),
        (shipped_objects.LEVELS["x86-64-v3"].replace("+fma", "-fma"), None),
        # Its callers hand on wide vectors, but it lacks features of x86-64-v4.
        (shipped_objects.LEVELS["x86-64-v3"] + ",+avx512f", None),
        ("", None),
    ],
)
def test_elementary_functions_are_those_for_the_cpu(features: str, level: str | None) -> None:
    text = called_scalars.function_text("nbgrad.called.exp.float64.float64.v16")
    found = shipped_objects.find_scalar("scalar_kernel", text, features)
    assert (found is None) == (level is None)
    if found is not None:
        symbol, code = found
        assert symbol == f"scalar_kernel.{shipped_objects.name_of_scalar(level or '', text)}"
        assert code[:4] == b"\x7fELF" and symbol.encode() in code


@pytest.mark.parametrize("system", [("darwin", "x86_64"), ("linux", "aarch64")])
def test_object_code_is_for_one_kind_of_machine(system: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    function = next(iter(precompile.NATIVE))
    section = shipped.function_name(function, ["int64"] * precompile.NATIVE[function], "int64")
    monkeypatch.setattr(sys, "platform", system[0])
    monkeypatch.setattr(platform, "machine", lambda: system[1])
    assert shipped_objects.find(section, function.__module__, object_layout.measured()) is None


@pytest.mark.parametrize("text", ["", "not a line of it\n", "# nothing\n"])
def test_without_object_code_it_is_compiled(text: str, tmp_path: Path) -> None:
    """The same numbers, and the functions' code is in the cache then."""
    script = """
import sys
from pathlib import Path
from nbgrad.compiler import shipped_objects
shipped_objects.FILE = Path(sys.argv[1])
import numpy as np, nbgrad as nb
print(nb.jit(nb.grad(lambda x: np.sum(x**3)))(np.ones(3)), nb.counters["compiled"] > 5)
"""
    file = tmp_path / "objects.txt"
    file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", script, str(file)],
        capture_output=True,
        text=True,
        env={**os.environ, "NBGRAD_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert done.stdout == "[3. 3. 3.] True\n", done.stderr


ORDINARY = {
    "elementwise": "nb.grad(lambda x: np.sum(np.exp(x) * np.sin(x) ** 2.5 + np.where(x > 0, x, 0)))(np.ones(3))",
    "float32": "nb.grad(lambda x: np.sum(np.tanh(x)))(np.ones(3, np.float32))",
    "float16": "nb.grad(lambda x: np.sum(np.tanh(x)))(np.ones(3, np.float16))",
    "product": "nb.grad(lambda x: np.sum(x @ x.T))(np.ones((3, 4)))",
    "indexing": "nb.grad(lambda x: np.sum(x[np.array([0, 0, 2])] ** 2))(np.ones(3))",
    "sort": "nb.grad(lambda x: np.sum(np.sort(x) * np.arange(3.0)))(np.ones(3))",
    "cumsum": "nb.grad(lambda x: np.sum(np.cumsum(x) ** 2))(np.ones(3))",
    "convolution": "nb.grad(lambda x: nb.ops.conv2d(nb.Tensor(x), x[:, :, :1, :1]).sum())(np.ones((1, 1, 3, 3)))",
    "solve": "nb.grad(lambda x: np.sum(np.linalg.solve(x, np.ones(3))))(np.eye(3))",
    "integers": "nb.vmap(lambda x: x * 3 // 2 + (x & 1))(np.arange(3))",
}


@pytest.fixture(scope="module")
def first_gradients(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What each of these functions has asked for, one after the other in a process with an empty cache."""
    lines = ["import sys, json, numpy as np, nbgrad as nb", "found, before = {}, (0, 0)"]
    for name, code in ORDINARY.items():
        lines += [
            code,
            "now = nb.counters['numba_compiles'], nb.counters['compiled']",
            f"found[{name!r}] = now[0] - before[0], now[1] - before[1], 'numba' in sys.modules",
            "before = now",
        ]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join([*lines, "print(json.dumps(found))"])],
        env={**os.environ, "NBGRAD_CACHE_DIR": str(tmp_path_factory.mktemp("installation") / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ORDINARY)
def test_gradients_of_a_new_installation_need_no_numba(name: str, first_gradients: dict[str, list[Any]]) -> None:
    numba, compiled, imported = first_gradients[name]
    assert (numba, imported) == (0, False) and compiled > 0


def test_a_row_of_the_table_counts_for_its_primitive_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(Path(str(kernel_module().__file__)).parent, tmp_path, dirs_exist_ok=True)
    table = (tmp_path / "__init__.py").read_text(encoding="utf-8")
    (tmp_path / "__init__.py").write_text(table.replace("exponential.exp2,", "exponential.exp,"), encoding="utf-8")
    monkeypatch.setattr(shipped, "kernels_folder", lambda: tmp_path)
    shipped.forget()
    try:
        assert shipped.find("nbgrad.exp2.float64.float64") is None
        for name in ("exp", "expm1", "erf", "floor"):
            assert shipped.find(f"nbgrad.{name}.float64.float64") is not None, name
        assert shipped.stale() == ["nbgrad.exp2.float32.float32", "nbgrad.exp2.float64.float64"]
    finally:
        monkeypatch.undo()
        shipped.forget()


def test_scalar_ir_takes_what_is_shipped() -> None:
    import numpy as np

    double = np.dtype(np.float64)
    symbol, text = scalars.scalar_ir("exp", [double], double)
    assert symbol in SECTIONS and text == shipped.find(symbol)
