"""Every function of SciPy's modules takes recorded values as docs/scipy.md says."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest
import scipy

import nbgrad as nb
from nbgrad.record.tensor import Tensor
from nbgrad.scipy.scipy_table import CLASSES, FUNCTIONS

from .agreement import check_derivative, quiet
from .scipy_surface import METHODS, NAMESPACES, PAGE, SAMPLES, TABLES, function_of, named, page, public_names, variables

pytestmark = [pytest.mark.unoptimized, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
NEWEST = (1, 17)
"""The version of SciPy that the tables were written with."""
VERSION = tuple(map(int, scipy.__version__.split(".")[:2]))

CASES = [
    (namespace, name, row)
    for namespace, table in TABLES.items()
    for name, row in table.items()
    if row.kind in ("plain", "source")
]
OTHERS = [
    (name, row.kind, [float(word) for word in row.calls[0].split()])
    for name, row in TABLES["scipy.stats"].items()
    if row.kind in METHODS
]


def flat(value: Any) -> list[Any]:
    """All arrays of floats in a result."""
    if isinstance(value, list | tuple):
        return [part for one in value for part in flat(one)]
    kind = getattr(getattr(value, "dtype", None), "name", "")
    return [value] if kind.lower().startswith("float") else []


def agrees(plain: Any, recorded: Any, arrays: list[np.ndarray], where: str, **options: Any) -> None:
    """Assert that a function of recorded values gives the values of a plain one, and its derivatives."""

    def either(*given: Any) -> Any:
        return flat(recorded(*given)) if any(isinstance(one, Tensor) for one in given) else flat(plain(*given))

    with quiet():
        want = either(*arrays)
    got = nb.vjp(lambda *given: tuple(either(*given)), *arrays)[0]
    assert len(got) == len(want) > 0, where
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=where)
    check_derivative(either, *arrays, tolerance=2e-5, **options)


# ----- The table knows every name, and the page is current -----


@pytest.mark.parametrize("namespace", [one for one in NAMESPACES if one != "scipy.linalg.lapack"])
def test_no_name_is_missing(namespace: str) -> None:
    missing = [name for name in public_names(namespace) if name not in TABLES[namespace]]
    assert not missing, f"SciPy {scipy.__version__} has functions that tests/scipy_rows.py does not know: {missing}"
    if VERSION == NEWEST:
        gone = [name for name in TABLES[namespace] if named(namespace, name) is None]
        assert not gone, f"SciPy {scipy.__version__} does not have {gone}"


def test_page_is_current() -> None:
    assert PAGE.read_text() == page(), "docs/scipy.md is stale: run python -m tests.scipy_surface --write"


def test_the_example_of_the_page() -> None:
    parsed = doctest.DocTestParser().get_doctest(PAGE.read_text().split("## ")[0], {}, "docs/scipy.md", None, 0)
    assert parsed.examples and not doctest.DocTestRunner().run(parsed).failed


# ----- Values and derivatives -----


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize(("namespace", "name", "row"), CASES, ids=[f"{n.partition('.')[2]}.{m}" for n, m, _ in CASES])
def test_function(namespace: str, name: str, row: Any) -> None:
    if named(namespace, name) is None:
        pytest.skip(f"SciPy {scipy.__version__} does not have it")
    for call in row.calls:
        function = function_of(namespace, name, call)
        recorded = function if row.kind == "plain" else nb.differentiable_source(function)
        arrays = [SAMPLES[one].copy() for one in variables(call) if SAMPLES[one].dtype.kind == "f"]
        own = row.kind == "plain" or name in {**FUNCTIONS.get(namespace, {}), **CLASSES.get(namespace, {})}
        agrees(function, recorded, arrays, call, second=own)


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize(("name", "kind", "shapes"), OTHERS, ids=[name for name, _, _ in OTHERS])
def test_distribution(name: str, kind: str, shapes: list[float]) -> None:
    """All functions of a distribution at once: by the points, the location, the scale and the shapes."""
    distribution = named("scipy.stats", name)
    points = np.array([0.12, 0.47, 0.81])
    places = distribution.ppf(points, *shapes) * 1.3 + 0.2
    counts = np.array([0.0, 1.0]) if name == "bernoulli" else np.array([1.0, 2.0, 4.0])
    whole = [5] if name == "binom" else []
    free = [np.array(one) for one in shapes[len(whole) :]]

    def function(x: Any, q: Any, loc: Any, scale: Any, *parameters: Any) -> Any:
        given = [*whole, *parameters]
        found = []
        for method in METHODS[kind]:
            call = getattr(distribution, method)
            if kind == "discrete":
                found.append(call(counts, *given) * scale)
            else:
                found.append(call(q if method in ("ppf", "isf") else x, *given, loc=loc, scale=scale))
        return found

    given = [places, points, np.array(0.2), np.array(1.3), *free]
    agrees(function, nb.differentiable_source(function), given, name)
