"""Every function of NumPy works on Tensors as docs/numpy.md says, or is refused as it says."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import NbgradError, TracedValueError
from nbgrad.functions.table import find
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import placeholder
from nbgrad.graph.trace import recording
from nbgrad.record.tensor import Tensor

from .agreement import agree, check_derivative, gradients, lift, lower, quiet, record
from .numpy_surface import NAMESPACES, PAGE, SAMPLES, TABLES, function_of, named, page, public_names, row_of, variables

pytestmark = [pytest.mark.unoptimized, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

CASES = [
    (namespace, name, call)
    for namespace, (module, _) in NAMESPACES.items()
    for name, row in TABLES[namespace].items()
    for call in row.calls
    if named(module, name) is not None
]


def cases(*kinds: str) -> Any:
    """One test for each sample call of the rows of some kinds."""
    chosen = [case for case in CASES if TABLES[case[0]][case[1]].kind in kinds]
    return pytest.mark.parametrize(("namespace", "name", "call"), chosen, ids=[f"{n} {call}" for _, n, call in chosen])


def arrays_of(call: str) -> list[np.ndarray]:
    """Copies of the sample arrays that a call uses."""
    return [SAMPLES[name].copy() for name in variables(call)]


def numpy_function(namespace: str, name: str) -> Any:
    """NumPy's function of a row."""
    return named(NAMESPACES[namespace][0], name)


def flat(value: Any) -> list[Any]:
    """All arrays of a result."""
    return [part for v in value for part in flat(v)] if isinstance(value, list | tuple) else [value]


def real_parts(function: Any) -> Any:
    """The floats of a function's results; complex ones become their parts."""

    def parts(*arrays: Any) -> list[Any]:
        found = []
        for value in flat(function(*arrays)):
            kind = np.dtype(value.dtype).kind if hasattr(value, "dtype") else "i"
            if kind == "c":
                found += [np.real(value), np.imag(value)]
            elif kind == "f":
                found.append(value)
        return found

    return parts


def of_real_arrays(call: str, function: Any) -> tuple[Any, list[np.ndarray]]:
    """A sample call as a function of real arrays only, and these: complex arrays are given by their parts; integers and
    booleans, and arrays with NaN, are fixed."""
    plan, given = [], []
    for name in variables(call):
        array = SAMPLES[name]
        if array.dtype.kind == "c":
            plan.append(("c", None))
            given += [array.real.copy(), array.imag.copy()]
        elif array.dtype.kind == "f":
            plan.append(("f", np.isnan(array)))
            given.append(np.nan_to_num(array))
        else:
            plan.append(("i", array))

    def whole(*arrays: Any) -> Any:
        left = iter(arrays)
        full: list[Any] = []
        for kind, data in plan:
            if kind == "i":
                full.append(data)
            elif kind == "c":
                re = next(left)
                full.append(re + 1j * next(left))
            else:
                value = next(left)
                full.append(np.where(data, np.nan, value) if data is not None and data.any() else value)
        return function(*full)

    return whole, given


# ----- The table knows every name, and the page is current -----


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_no_name_is_missing(namespace):
    missing = [name for name in public_names(NAMESPACES[namespace][0]) if row_of(namespace, name) is None]
    assert not missing, f"NumPy {np.__version__} has functions that tests/surface_rows.py does not know: {missing}"


def test_page_is_current():
    absent = [
        name
        for space, table in TABLES.items()
        for name, row in table.items()
        if numpy_function(space, name) is None and "until" not in row.remark
    ]
    if absent:
        pytest.skip(f"the page is written with a NumPy that has {', '.join(absent)}")
    assert PAGE.read_text() == page(), "docs/numpy.md is stale: run python -m tests.numpy_surface --write"


def test_every_function_that_asks_tensors_is_known_to_work():
    """What the table of implementations has works by a row, and nothing else does."""
    working = {"derivative", "zero", "integers", "plain", "in place"}
    for namespace, (module, _) in NAMESPACES.items():
        for name in public_names(module):
            found = row_of(namespace, name)
            function = named(module, name)
            if found is None or isinstance(function, np.ufunc) or not hasattr(function, "_implementation"):
                continue
            assert (find(function) is not None) == (found[1].kind in working), f"{namespace}.{name}"


def test_no_argument_is_missing():
    """Our functions take the arguments of NumPy's, under their names and in their order."""
    for namespace, (module, _) in NAMESPACES.items():
        for name in public_names(module):
            function = named(module, name)
            ours = None if isinstance(function, np.ufunc) else find(function)
            if ours is None:
                continue
            try:
                theirs, mine = (inspect.signature(f).parameters for f in (function, ours))
            except ValueError:
                continue  # older versions of NumPy do not tell the arguments of all functions
            kinds = {p.kind for p in mine.values()}
            if kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}:
                continue
            usable = [n for n, p in theirs.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
            # What older versions of NumPy take without effect.
            old = {"bias", "ddof"} if name == "corrcoef" else {"interpolation"}
            missing = set(usable) - mine.keys() - old
            assert not missing, f"{namespace}.{name} lacks {missing}"
            if name in ("clip", "corrcoef"):
                continue  # two names for each bound; arguments without effect in the middle
            given = [p for p in theirs.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
            for expected, found in zip(given, list(mine), strict=False):
                same = expected.name == found or expected.kind == expected.POSITIONAL_ONLY
                assert same, f"{namespace}.{name} has its arguments in another order"


# ----- Values -----


@cases("plain")
def test_fact(namespace, name, call):
    if name.startswith("save"):
        pytest.skip("files are compared in test_files")
    function, arrays = function_of(call, numpy_function(namespace, name)), arrays_of(call)
    got, want = function(*[lift(a) for a in arrays]), function(*arrays)
    assert type(got) is type(want)
    np.testing.assert_equal(got, want)


@cases("derivative", "zero", "integers")
def test_value(namespace, name, call):
    agree(function_of(call, numpy_function(namespace, name)), *arrays_of(call), tolerance=1e-9)


@cases("derivative", "zero", "integers")
def test_recorded_value(namespace, name, call):
    """The recorded program gives for other values what NumPy gives for them."""
    if "depends on values" in TABLES[namespace][name].remark:
        pytest.skip("the shape of the result depends on values")
    function, arrays = function_of(call, numpy_function(namespace, name)), arrays_of(call)
    inputs = [placeholder(a.shape, a.dtype, a) for a in arrays]
    with recording(inputs):
        results = flat(function(*[Tensor._of(node) for node in inputs]))
    nodes = [r._node for r in results if isinstance(r, Tensor)]
    others = [a + 0.01 if a.dtype.kind in "fc" else a for a in arrays]
    got = interpret(nodes, dict(zip(inputs, others, strict=True)))
    with quiet():
        want = [np.asarray(v) for v in flat(function(*others)) if isinstance(v, np.ndarray | np.generic)]
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.sampled(of=3)
@cases("derivative", "zero", "integers")
def test_compiled_value(namespace, name, call):
    """`nb.jit` gives what NumPy gives, also for other values than those that were recorded."""
    if "depends on values" in TABLES[namespace][name].remark:
        pytest.skip("the shape of the result depends on values")
    function, arrays = function_of(call, numpy_function(namespace, name)), arrays_of(call)
    if not arrays:
        return
    compiled = nb.jit(lambda *given: [v for v in flat(function(*given)) if isinstance(v, Tensor)])
    for step in (0.0, 0.01):
        moved = [a + step if a.dtype.kind in "fc" else a for a in arrays]
        with quiet():
            want = [np.asarray(v) for v in flat(function(*moved)) if isinstance(v, np.ndarray | np.generic)]
        for one, other in zip(compiled(*moved), want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.sampled(of=2)
@cases("derivative", "zero", "integers")
def test_batched_value(namespace, name, call):
    """`nb.vmap` gives for each of two samples what NumPy gives."""
    remark = TABLES[namespace][name].remark
    if "depends on values" in remark or "guard" in remark:
        pytest.skip("it needs values, which differ from sample to sample")
    function, arrays = function_of(call, numpy_function(namespace, name)), arrays_of(call)
    if not arrays:
        return
    others = [a + 0.01 if a.dtype.kind in "fc" else a for a in arrays]
    with quiet():
        want = [[np.asarray(v) for v in flat(function(*given))] for given in (arrays, others)]
    mapped = nb.vmap(lambda *given: [v for v in flat(function(*given)) if isinstance(v, Tensor)])
    got = mapped(*[np.stack(pair) for pair in zip(arrays, others, strict=True)])
    for one, *pair in zip(got, *want, strict=True):
        np.testing.assert_allclose(one, np.stack(pair), rtol=1e-9, atol=1e-9)


# ----- Derivatives -----


@cases("derivative")
def test_derivative(namespace, name, call):
    function, arrays = of_real_arrays(call, function_of(call, numpy_function(namespace, name)))
    check_derivative(real_parts(function), *arrays, tolerance=2e-6)


@cases("zero")
def test_derivative_is_zero(namespace, name, call):
    function, arrays = of_real_arrays(call, function_of(call, numpy_function(namespace, name)))
    for found in gradients(real_parts(function), *arrays):
        np.testing.assert_array_equal(found, np.zeros_like(found))


@cases("integers")
def test_results_are_integers(namespace, name, call):
    function, arrays = of_real_arrays(call, function_of(call, numpy_function(namespace, name)))
    assert not record(real_parts(function), tuple(arrays))[1]


# ----- Functions that write -----


@cases("in place")
def test_in_place(namespace, name, call):
    def written(*arrays: Any) -> Any:
        given = dict(zip(variables(call), arrays, strict=True))
        given["X"] = given["X"] * 1.0
        function_of(call, numpy_function(namespace, name))(*given.values())
        return given["X"]

    agree(written, *arrays_of(call))
    function, arrays = of_real_arrays(call, written)
    check_derivative(real_parts(function), *arrays)


@cases("in place")
def test_writing_into_an_ndarray(namespace, name, call):
    """It works where nothing is recorded, and is an error where a gradient would be lost."""
    names, arrays = variables(call), arrays_of(call)
    function = function_of(call, numpy_function(namespace, name))
    want, got = dict(zip(names, arrays, strict=True)), dict(zip(names, arrays_of(call), strict=True))
    function(*want.values())
    target = got["X"]
    function(*[target if key == "X" else lift(value) for key, value in got.items()])
    np.testing.assert_array_equal(target, want["X"])

    def lossy(value: Any) -> Any:
        fresh = dict(zip(names, arrays_of(call), strict=True))
        source = next(key for key in names if key not in "XB" and fresh[key].dtype.kind == "f")
        fresh[source] = fresh[source] * value
        function(*fresh.values())
        return value

    with pytest.raises(TracedValueError):
        nb.grad(lossy)(2.0)


def test_arguments_that_were_not_given():
    """Functions that wrap NumPy's pass on its mark for an argument that they were not given."""
    x, missing = SAMPLES["X"], np._NoValue
    agree(np.sum, x, axis=0, keepdims=missing, initial=missing, where=missing)
    agree(np.max, x, keepdims=missing, initial=missing)
    agree(np.mean, x, keepdims=missing, where=missing)
    agree(np.std, x, mean=missing, correction=missing)


# ----- What NumPy does not ask Tensors about -----


@cases("by name")
def test_by_name(namespace, name, call):
    theirs = function_of(call, numpy_function(namespace, name))
    ours = function_of(call, getattr(nb.numpy, name), nb.numpy)
    arrays = arrays_of(call)
    want = theirs(*arrays)
    got = ours(*[lift(a) for a in arrays])
    if not isinstance(want, bool):
        for one, other in zip(flat(lower(got)), flat(want), strict=True):
            np.testing.assert_allclose(np.asarray(one, float), np.asarray(other, float), rtol=1e-12)
    if "works as it is" not in TABLES[namespace][name].remark and arrays and name != "isscalar":
        with pytest.raises((TracedValueError, TypeError, ValueError)):
            nb.grad(lambda *a: np.sum(np.stack([np.sum(v) for v in flat(theirs(*a))])))(*arrays)


# ----- What is refused -----


@cases("refused")
def test_refused(namespace, name, call):
    remark = TABLES[namespace][name].remark
    with pytest.raises(NbgradError) as error:
        function_of(call, numpy_function(namespace, name))(*[lift(a) for a in arrays_of(call)])
    assert name in str(error.value) and remark in str(error.value)


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_functions_without_arrays_do_not_ask_tensors(namespace):
    for name, row in TABLES[namespace].items():
        if row.kind == "no arrays" and numpy_function(namespace, name) is not None:
            assert not hasattr(numpy_function(namespace, name), "_implementation"), name


def test_files(tmp_path):
    x = SAMPLES["X"]
    np.save(tmp_path / "a.npy", lift(x))
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), x)
    np.savetxt(tmp_path / "a.txt", lift(x))
    np.testing.assert_allclose(np.loadtxt(tmp_path / "a.txt"), x)
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", lift(x), other=lift(x[0]))
        with np.load(tmp_path / "a.npz") as found:
            np.testing.assert_array_equal(found["arr_0"], x)
            np.testing.assert_array_equal(found["other"], x[0])
