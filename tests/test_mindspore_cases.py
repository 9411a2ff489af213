"""What MindSpore 2.10 did in 290 small programs, recorded (recorded/mindspore_cases.json), and what nbgrad does.

Each case is a program that sees nbgrad as `nb` and leaves its answer in `result`: values, nesting, dtypes and shapes
must be the same, or the same class of exception must be raised with the same words in its message. Where MindSpore is
wrong (its second derivatives through reductions, for instance) the file holds what is right instead. `DIFFERENT` lists
the cases where nbgrad does something else on purpose, and why; they must differ, so that the list stays true.
"""

from __future__ import annotations

import json
import math
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "recorded" / "mindspore_cases.json").read_text())
TOLERANCE = {"float16": (1e-2, 1e-3), "float32": (1e-5, 1e-6), "float64": (1e-9, 1e-11)}
DIFFERENT = {
    "dt-numpy-argument": "gradients with respect to ndarrays are what nbgrad is for; MindSpore drops them silently",
    "dt-python-argument": "the same for Python floats",
    "call-list-argument": "the same for lists of arrays",
    "call-dict-argument": "the same for dicts of arrays",
    "tensor-with-numpy": "Tensors and ndarrays mix",
    "op-where-nan-trap": "the branch that `where` does not take has gradient 0, not NaN",
    "op-pow-zero": "x**0 is 1 everywhere, so its derivative at 0 is 0, not NaN",
    "dt-int-times-float": "a gradient that is cut off to an integer is a wrong number: an error instead",
    "dt-bool": "the same for booleans",
    "call-none-output": "a forgotten return statement is an error, not a zero gradient",
    "gp-error-is-eager": "the case compares names of classes: ArgumentError is a ValueError",
}


def number(value: Any) -> Any:
    """The value of what JSON cannot hold."""
    if isinstance(value, list):
        return [number(v) for v in value]
    return float(value) if isinstance(value, str) else value


def inputs(case: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, spec in case["inputs"].items():
        array = np.array(number(spec["data"]), spec["dtype"]).reshape(spec["shape"])
        made[name] = array if spec.get("as") == "ndarray" else nb.Tensor(array)
    return made


def agree(got: Any, want: dict[str, Any], scale: float) -> None:
    kind = want["structure"]
    if kind == "tensor":
        assert isinstance(got, nb.Tensor)
        assert got.dtype.name == want["dtype"] and list(got.shape) == want["shape"]
        relative, absolute = TOLERANCE.get(want["dtype"], (0.0, 0.0))
        expected = np.array(number(want["data"]), want["dtype"])
        np.testing.assert_allclose(np.asarray(got), expected, rtol=relative * scale, atol=absolute * scale)
    elif kind in ("tuple", "list"):
        assert isinstance(got, tuple if kind == "tuple" else list) and len(got) == len(want["items"])
        for part, wanted in zip(got, want["items"], strict=True):
            agree(part, wanted, scale)
    elif kind == "dtype":
        assert isinstance(got, type(nb.float32)) and got.name == want["value"]
    elif kind == "float":
        assert math.isclose(got, number(want["value"]), rel_tol=1e-5)
    elif kind == "none":
        assert got is None
    else:
        assert type(got).__name__ == kind and got == want["value"]


def run(case: dict[str, Any], folder: Path) -> Any:
    """The `result` of a case's program, run from a file of its own so that its source can be looked up."""
    path = folder / f"{case['id'].replace('-', '_')}.py"
    path.write_text(case["code"] + "\n")
    module = types.ModuleType(path.stem)
    module.__dict__.update(nb=nb, np=np, **inputs(case))
    sys.modules[path.stem] = module
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    finally:
        del sys.modules[path.stem]
    return module.__dict__["result"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_recorded_case(case: dict[str, Any], tmp_path: Path) -> None:
    want = case["want"]
    if case["id"] in DIFFERENT:
        if "raises" in want:
            run(case, tmp_path)
            return
        with pytest.raises((AssertionError, nb.errors.NbgradError)):
            agree(run(case, tmp_path), want, 1.0)
        return
    if "raises" not in want:
        agree(run(case, tmp_path), want, case.get("rtol_scale", 1.0))
        return
    with pytest.raises(Exception) as caught:
        run(case, tmp_path)
    assert {cls.__name__ for cls in type(caught.value).__mro__} & set(want["raises"])
    for word in want["words"]:
        assert word.lower() in str(caught.value).lower()
    # Errors are nbgrad's own and say where, or come from the user's own program.
    assert isinstance(caught.value, nb.errors.NbgradError) or "missing" in str(caught.value)


def test_every_difference_names_a_case() -> None:
    assert set(DIFFERENT) <= {case["id"] for case in CASES}
    assert len(CASES) == 290
