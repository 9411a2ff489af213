"""The main job: NIST's certified values are reached from both starts, misses are told, bad input is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nbgrad.__main__ import main
from nbgrad.nist.datasets import load
from nbgrad.nist.jacobian import central_differences, compare, complex_step, relative_error
from nbgrad.nist.models import misra1a, thurber
from nbgrad.nist.report import Report, digits, misses

DATA = Path(__file__).resolve().parents[1] / "nbgrad" / "nist" / "nist_strd.json"

# As published on NIST's pages for Misra1a and Thurber.
CERTIFIED = {
    "Misra1a": ([2.3894212918e02, 5.5015643181e-04], 1.2455138894e-01),
    "Thurber": (
        [
            1.2881396800e03,
            1.4910792535e03,
            5.8323836877e02,
            7.5416644291e01,
            9.6629502864e-01,
            3.9797285797e-01,
            4.9727297349e-02,
        ],
        5.6427082397e03,
    ),
}
ERROR_ALLOWED = 1e-12

Capture = pytest.CaptureFixture[str]
Tamper = Callable[[Callable[[dict[str, Any]], None]], str]


@pytest.fixture
def tamper(tmp_path: Path) -> Tamper:
    """Writes a changed copy of the data file and gives its name."""

    def write(change: Callable[[dict[str, Any]], None]) -> str:
        content = json.loads(DATA.read_text(encoding="utf-8"))
        change(content)
        path = tmp_path / "changed.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        return str(path)

    return write


def test_certified_values_are_reached(capsys: Capture) -> None:
    assert main(["--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["passed"] is True
    assert result["misses"] == []
    assert set(result["datasets"]) == set(CERTIFIED)
    for name, (parameters, sum_of_squares) in CERTIFIED.items():
        entry = result["datasets"][name]
        assert entry["certified"] == parameters
        assert entry["certified_sum_of_squares"] == sum_of_squares
        assert len(entry["fits"]) == 2
        for found in entry["fits"]:
            np.testing.assert_allclose(found["parameters"], parameters, rtol=3e-10)
            np.testing.assert_allclose(found["sum_of_squares"], sum_of_squares, rtol=3e-10)
            assert min(found["digits"]) > 9.5
        assert entry["jacobian"]["error"] <= ERROR_ALLOWED
        assert entry["jacobian"]["error"] < entry["jacobian"]["error_of_central_differences"]
        assert 0 < entry["jacobian"]["seconds"] < entry["jacobian"]["seconds_of_central_differences"]


def test_the_command_prints_a_table() -> None:
    done = subprocess.run([sys.executable, "-m", "nbgrad"], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for text in ("Misra1a", "Thurber", "2.3894212918e+02", "5.8323836877e+02", "from start 2", "us by nbgrad"):
        assert text in done.stdout
    assert "All 22 certified values reached" in done.stdout


def test_a_missed_certified_value_fails(tamper: Tamper, capsys: Capture) -> None:
    def change(content: dict[str, Any]) -> None:
        del content["Misra1a"]
        content["Thurber"]["certified"][2] *= 1 + 1e-6

    path = tamper(change)
    assert main(["--data", path]) == 1
    out = capsys.readouterr().out
    assert "MISSED" in out
    assert "Thurber, b3 from start 1: 5.8323836877e+02 has 6.0 digits" in out
    assert main(["--data", path, "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["passed"] is False
    assert [sentence[:11] for sentence in result["misses"]] == ["Thurber, b3"] * 2


def test_a_changed_observation_fails(tamper: Tamper, capsys: Capture) -> None:
    def change(content: dict[str, Any]) -> None:
        del content["Thurber"]
        content["Misra1a"]["y"][3] += 0.01

    assert main(["--data", tamper(change)]) == 1
    assert "Misra1a, b1 from start 1" in capsys.readouterr().out


def test_a_wrong_jacobian_is_told() -> None:
    dataset = load()[0]

    def slightly_wrong(b: np.ndarray, x: np.ndarray) -> np.ndarray:
        return complex_step(dataset.model, b, x) * (1 + 1e-11)

    found = compare(dataset, slightly_wrong, [dataset.certified])
    assert found.error == pytest.approx(1e-11, rel=1e-3)
    assert "differs from the complex-step derivative by 1.0e-11" in misses(Report(dataset, (), found))[0]
    found = compare(dataset, lambda b, x: np.full((x.size, b.size), np.nan), [dataset.certified])
    assert found.error == np.inf
    assert len(misses(Report(dataset, (), found))) == 1


def test_complex_steps_agree_with_the_derivative_on_paper() -> None:
    b, x = np.array([250.0, 5e-4]), np.array([77.6, 760.0])
    expected = np.stack([-np.expm1(-b[1] * x), b[0] * x * np.exp(-b[1] * x)], axis=1)
    assert relative_error(complex_step(misra1a, b, x), expected) < 1e-14
    assert relative_error(central_differences(misra1a, b, x), expected) < 1e-8


def test_models_have_nists_values() -> None:
    assert misra1a([2.0, 0.0], 3.0) == 0.0
    # (1 + 2x + 3x^2 + 4x^3) / (1 + 5x + 6x^2 + 7x^3) at x = 1 and 0.
    np.testing.assert_allclose(thurber([1, 2, 3, 4, 5, 6, 7], np.array([1.0, 0.0])), [10 / 19, 1.0], rtol=1e-15)


def test_digits() -> None:
    assert digits(1.0, 1.0) == 11.0
    assert digits(1.001, 1.0) == pytest.approx(3.0)
    assert digits(-200.2, -200.0) == pytest.approx(3.0)
    assert digits(5.0, 1.0) == 0.0
    assert digits(float("nan"), 1.0) == 0.0
    assert digits(float("inf"), 1.0) == 0.0


def test_plot(tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "fit.png"
    assert main(["--plot", str(picture)]) == 0
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert str(picture) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "says"),
    [("fit.docx", "must end in one of"), ("fit", "must end in"), ("no/such/fit.png", "does not exist")],
)
def test_plots_that_cannot_be_written(name: str, says: str, tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    assert main(["--plot", str(tmp_path / name)]) == 2
    assert says in capsys.readouterr().err


def test_plot_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    for module in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, module, None)
    assert main(["--plot", str(tmp_path / "fit.png")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "`plot` extra" in err


COMPLETE = {"model": "", "x": [1, 2], "y": [1, 2], "start": [[1, 1]], "certified": [1, 1], "residual_sum_of_squares": 1}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not JSON"),
        ("[]", "none of the datasets"),
        ("{}", "none of the datasets"),
        ('{"Thurber": {"model": "y"}}', "has no entry 'x'"),
        ('{"Thurber": 3}', "cannot be used"),
        (json.dumps({"Misra1a": {**COMPLETE, "x": ["a", "b"]}}), "cannot be used"),
        (json.dumps({"Misra1a": {**COMPLETE, "y": [1]}}), "as many x as y"),
        (json.dumps({"Misra1a": {**COMPLETE, "start": []}}), "starts with as many values"),
        (json.dumps({"Misra1a": {**COMPLETE, "start": [[1]]}}), "starts with as many values"),
    ],
)
def test_data_files_that_cannot_be_used(text: str, says: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "data.json"
    path.write_text(text, encoding="utf-8")
    assert main(["--data", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert len(err.splitlines()) == 1


def test_a_data_file_that_is_not_there(tmp_path: Path, capsys: Capture) -> None:
    assert main(["--data", str(tmp_path / "none.json")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_an_unknown_command(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["fitt"])
    assert stopped.value.code == 2
    assert "fitt" in capsys.readouterr().err


# ----- python -m nbgrad explain -----


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(
        "import numpy as np\n\ndef loss(x):\n    return np.sum(np.sin(x) * x)\n\n"
        "def product(x, y):\n    return x * y\n\nnumber = 3\n",
        encoding="utf-8",
    )
    np.save(tmp_path / "x.npy", np.linspace(0, 1, 5))
    np.save(tmp_path / "words.npy", np.array(["a", "b"]))
    np.savez(tmp_path / "several.npz", a=np.zeros(2))
    (tmp_path / "broken.py").write_text("import no_such_module_anywhere\n", encoding="utf-8")
    return path


def test_explain(model: Path, capsys: Capture) -> None:
    assert main(["explain", f"{model}:loss", str(model.with_name("x.npy"))]) == 0
    out = capsys.readouterr().out
    assert "loss" in out
    assert "sin(" in out
    assert "cos(" not in out


def test_explain_gradient(model: Path, capsys: Capture) -> None:
    assert main(["explain", f"{model}:loss", str(model.with_name("x.npy")), "--grad"]) == 0
    out = capsys.readouterr().out
    assert "sin(" in out
    assert "cos(" in out


def test_explain_tells_what_is_wrong_with_the_arguments(model: Path, capsys: Capture) -> None:
    x = str(model.with_name("x.npy"))
    np.save(model.with_name("n.npy"), np.arange(3))
    assert main(["explain", f"{model}:loss", str(model.with_name("n.npy")), "--grad"]) == 2
    assert "nbgrad: " in capsys.readouterr().err
    assert main(["explain", f"{model}:product", x, str(model.with_name("n.npy"))]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("target", "array", "says"),
    [
        ("model.py", "x.npy", "write FILE.py:FUNCTION"),
        ("none.py:loss", "x.npy", "There is no Python file"),
        ("model.py:lost", "x.npy", "has no function 'lost'; it has loss, product."),
        ("model.py:number", "x.npy", "has no function 'number'; it has loss, product."),
        ("broken.py:loss", "x.npy", "cannot be imported: ModuleNotFoundError"),
        ("model.py:loss", "none.npy", "cannot be read"),
        ("model.py:loss", "model.py", "cannot be read"),
        ("model.py:loss", "several.npz", "one array of numbers"),
        ("model.py:loss", "words.npy", "one array of numbers"),
    ],
)
def test_explain_refuses(target: str, array: str, says: str, model: Path, capsys: Capture) -> None:
    assert main(["explain", f"{model.parent}/{target}", str(model.with_name(array))]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert len(err.splitlines()) == 1
