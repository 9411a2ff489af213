"""Kernels that take structured arrays: facts are the kernels themselves, run by Numba, and differences of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import cuda as numba_cuda
from numba import njit

import nbgrad as nb
from nbgrad.errors import ArgumentError, DtypeError

pytestmark = pytest.mark.unoptimized

cuda: Any = numba_cuda
PARTICLE = np.dtype([("x", "f8"), ("v", "f8", (2,)), ("m", "f8"), ("kind", "i4")])
NESTED = np.dtype([("at", [("x", "f8"), ("y", "f8")]), ("z", "c16")])


def particles(n: int = 4) -> np.ndarray:
    rng = np.random.default_rng(n)
    p = np.zeros(n, PARTICLE)
    p["x"], p["v"], p["m"], p["kind"] = rng.random(n), rng.random((n, 2)), 1 + rng.random(n), np.arange(n) % 2
    return p


def nested(n: int = 3) -> np.ndarray:
    rng = np.random.default_rng(n)
    p = np.zeros(n, NESTED)
    p["at"]["x"], p["at"]["y"], p["z"] = rng.random(n), rng.random(n), rng.random(n) + 1j * rng.random(n)
    return p


# ----- Kernels -----


@njit
def pairs(p, k):
    total = 0.0
    for i in range(len(p)):
        r = p[i]
        total += 0.5 * r.m * (r["v"][0] ** 2 + r.v[1] ** 2)
        for j in range(i):
            total += k / np.sqrt((r.x - p[j].x) ** 2 + 1.0) * p.m[j]
    return total


@njit
def pushed(p, dt):
    for r in p:
        if r.kind == 1:
            r.x += dt * r.v[0] * r.m
        r.v[1] = r.v[1] * r.x
        r["m"] *= 1.5


@njit
def sorted_in(p):
    for i in range(p.shape[0] - 1):
        if p[i].x > p[i + 1].x:
            one, other = p[i].x, p[i + 1].x
            p[i].x = other
            p["x"][i + 1] = one
    p[0] = p[p.size - 1]


@njit
def of_slices(p):
    inner = p[1:-1]
    total = 0.0
    for i in range(len(inner)):
        total += inner[i].x * np.sum(inner.v[i]) + inner[i].m * p[-1].x
    return total + np.sum(inner.x * inner["m"])


@njit
def mass(r, power):
    return r.m**power + r.x * r.x


@njit
def of_callees(p):
    total = 0.0
    for i in range(p.shape[0]):
        near = p[i] if i > 1 else p[0]
        total += mass(near, 2) * mass(p[i], 1)
    return total


@njit
def of_one_record(r, t):
    return np.exp(-r.m * t) * r.x


@njit
def of_nested(p):
    total = 0.0
    for i in range(p.shape[0]):
        at = p[i].at
        total += at.x * np.sin(at.y) * abs(p[i].z) ** 2 + p.at.y[i] * p.z[i].real
    return total


@njit
def of_local_records(p):
    work = np.zeros(len(p) + 1, PARTICLE)
    before = p.copy()
    like = np.empty_like(p)
    for i in range(len(p)):
        before[i].x *= 2.0
        work[i + 1].v[0] = work[i].v[0] + before[i].x * before[i].m
        work[i].x = work[i + 1].v[0] ** 2
        like[i] = work[i]
    return np.sum(work.x) + np.sum(like["x"] * before.m)


ROWS: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "pairs": (pairs, particles(), (0.7,)),
    "pushed": (pushed, particles(), (0.1,)),
    "sorted_in": (sorted_in, particles(), ()),
    "of_slices": (of_slices, particles(), ()),
    "of_callees": (of_callees, particles(), ()),
    "of_one_record": (of_one_record, particles()[2], (0.4,)),
    "of_nested": (of_nested, nested(), ()),
    "of_local_records": (of_local_records, particles(), ()),
}


def fields(p: Any) -> dict[str, Any]:
    """The fields of records."""
    return {name: fields(p[name]) if p[name].dtype.names else p[name] for name in p.dtype.names}


def records(given: dict[str, Any], like: Any) -> Any:
    """Records with some fields."""
    found = np.zeros(like.shape, like.dtype)
    for name in like.dtype.names:
        found[name] = records(given[name], like[name]) if like[name].dtype.names else given[name]
    return found[()]


def floats(given: dict[str, Any]) -> dict[str, Any]:
    """The fields that are no integers."""
    parts = {name: floats(one) if isinstance(one, dict) else one for name, one in given.items()}
    return {name: one for name, one in parts.items() if isinstance(one, dict) or one.dtype.kind != "i"}


def number(found: Any) -> Any:
    """A number made of all that a kernel gives."""
    return sum(np.sum(np.sin(np.abs(one))) for one in found) if isinstance(found, tuple) else found


def ways(given: dict[str, Any], seed: int) -> dict[str, Any]:
    """A direction in which floats move."""
    rng = np.random.default_rng(seed)

    def way(x: Any) -> Any:
        found = rng.standard_normal(np.shape(x))
        return np.asarray(found + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else found, x.dtype)[()]

    return {name: ways(one, seed + 1) if isinstance(one, dict) else way(one) for name, one in given.items()}


def along(given: dict[str, Any], way: dict[str, Any], step: float) -> dict[str, Any]:
    return {
        name: along(one, way[name], step) if isinstance(one, dict) else one + step * way[name] if name in way else one
        for name, one in given.items()
    }


def slope(gradients: dict[str, Any], way: dict[str, Any]) -> Any:
    return sum(
        slope(one, way[name]) if isinstance(one, dict) else np.sum(np.real(np.conj(one) * way[name]))
        for name, one in gradients.items()
    )


@pytest.mark.parametrize("name", ROWS)
def test_values_and_derivatives(name: str) -> None:
    kernel, p, rest = ROWS[name]
    given = fields(p)
    constant = {name: one for name, one in given.items() if name not in floats(given)}
    way = ways(floats(given), 3)

    def by_numba(step: float) -> Any:
        moved = records(along(given, way, step), p)
        found = kernel(moved, *rest)
        if found is not None:
            return found
        return number(tuple(moved[one] for one in p.dtype.names if np.any(moved[one] != p[one]) or name == "sorted_in"))

    function = nb.kernel(kernel)

    def total(moving: dict[str, Any]) -> Any:
        return number(function({one: {**constant, **moving}[one] for one in p.dtype.names}, *rest))

    assert total(floats(given)) == pytest.approx(by_numba(0.0), rel=1e-13)
    step = 1e-5
    expected = (by_numba(step) - by_numba(-step)) / (2 * step)
    gradients = nb.grad(total)(floats(given))
    assert slope(gradients, way) == pytest.approx(expected, rel=1e-6)
    _, tangent = nb.jvp(total, (floats(given),), (way,))
    assert tangent == pytest.approx(expected, rel=1e-6)
    other = ways(floats(given), 11)
    _, curved = nb.jvp(lambda x: slope(nb.grad(total)(x), way), (floats(given),), (other,))
    ahead, behind = [slope(nb.grad(total)(along(floats(given), other, s)), way) for s in (step, -step)]
    assert curved == pytest.approx((ahead - behind) / (2 * step), rel=1e-5, abs=1e-8)


# ----- Structured arrays themselves -----


TAGGED = np.dtype([("x", "f8"), ("tag", "U3"), ("n", "u1")], align=True)


@njit
def doubled(p):
    for i in range(len(p)):
        p[i].x = 2.0 * p[i].x + p[i].n


@pytest.mark.parametrize("make", [lambda p: p, lambda p: p.view(np.recarray), lambda p: np.repeat(p, 2)[::2]])
def test_structured_arrays_stay_as_they_are(make: Any) -> None:
    p = np.array([(1.5, "one", 7), (2.5, "two", 8)], TAGGED)
    given = make(p)
    found = nb.kernel(doubled, inout=("p",))(given)
    np.testing.assert_array_equal(found, [10.0, 13.0])
    np.testing.assert_array_equal(p["x"], [1.5, 2.5])


def test_fields_are_constant_where_nothing_else_is_said() -> None:
    p = particles()
    function = nb.kernel(pairs)
    assert nb.grad(lambda k: function(p, k))(0.7) == pytest.approx(pairs(p, 0.7) - pairs(p, -0.3), rel=1e-12)


def test_records_in_batches_and_compiled_functions() -> None:
    p = particles()
    function = nb.kernel(pairs)
    rest = {name: p[name] for name in ("v", "m", "kind")}
    many = np.stack([p["x"], 2 * p["x"]])
    slopes = nb.vmap(nb.jit(nb.grad(lambda x: function({"x": x, **rest}, 0.7))))(many)
    for x, found in zip(many, slopes, strict=True):
        np.testing.assert_allclose(found, nb.grad(lambda x: function({"x": x, **rest}, 0.7))(x), rtol=1e-13)


def test_what_is_stored_is_explained() -> None:
    assert "its derivative by `p_x`, `p_v`, `p_m`, `k`" in nb.explain(nb.kernel(pairs), particles(), 0.7)


# ----- What is refused -----


@njit
def reads_text(p):
    return 1.0 if p[0].tag == "one" else p[0].x


@njit
def returns_records(p):
    return p[1:]


@njit
def by_indices(p):
    return np.sum(p[np.array([0, 1])].x)


@njit
def writes_a_record(r):
    r.x = 3.0


@njit
def greatest(p):
    best = p[0]
    for i in range(len(p)):
        if p[i].x > best.x:
            best = p[i]
    return best.x


@cuda.jit
def of_threads(p):
    i = cuda.grid(1)
    p[i].x *= 2.0


REFUSED = [
    (reads_text, np.zeros(2, TAGGED), "reads the field 'tag', which is neither a number nor an array of numbers"),
    (returns_records, particles(), "returns records. Write to an argument, or return the fields"),
    (by_indices, particles(), "takes records by an array of indices"),
    (writes_a_record, particles()[0], "writes to the field 'x' of a record that is an argument"),
    (greatest, particles(), "`best` stands for another array from turn to turn"),
    (of_threads, particles(), r"structured arrays, of which kernels of cuda.jit .*: p\['x'\]"),
    (pairs, {1: np.ones(3)}, "got a dict as `p`. Pass arrays and numbers"),
    (pairs, {"x": np.ones(3), "v": np.ones((4, 2))}, r"no common shape: x \(3,\), v \(4, 2\)"),
    (doubled, {"x": np.ones(3)}, "reads a field of records that have none of that name: 'n'"),
]


@pytest.mark.parametrize(("kernel", "given", "message"), REFUSED, ids=[one[0].py_func.__name__ for one in REFUSED])
def test_refusals(kernel: Any, given: Any, message: str) -> None:
    rest = (0.7,) if kernel is pairs else ()
    launch = (1, 4) if kernel is of_threads else None
    with pytest.raises((ArgumentError, DtypeError), match=message):
        nb.kernel(kernel, launch=launch)(given, *rest)


def test_attributes_of_other_things_are_refused() -> None:
    def kernel(a: Any) -> Any:
        a.shape = (4,)
        return a[0]

    with pytest.raises(ArgumentError, match="assigns to an attribute"):
        nb.kernel(kernel)(np.ones(4))
