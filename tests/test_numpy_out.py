"""`out=` of every function of NumPy that takes it: a Tensor gets the result with its derivative; an ndarray gets it
where nothing is lost, and is an error where a gradient would be."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import NbgradError, TracedValueError

from .agreement import gradients, lift, lower, quiet
from .numpy_surface import NAMESPACES, TABLES, function_of, named
from .test_numpy_surface import arrays_of, flat, of_real_arrays, real_parts

pytestmark = pytest.mark.unoptimized

WORKING = ("derivative", "zero", "integers")


def takes_out(function: Any) -> bool:
    """Whether a function of NumPy has the argument."""
    if isinstance(function, np.ufunc):
        return True
    try:
        return "out" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


CASES = [
    (namespace, name, call)
    for namespace, (module, _) in NAMESPACES.items()
    for name, row in TABLES[namespace].items()
    for call in row.calls[:2]
    if row.kind in WORKING and takes_out(named(module, name)) and call.startswith("f(") and call.endswith(")")
]
every = pytest.mark.parametrize(("namespace", "name", "call"), CASES, ids=[f"{n} {call}" for _, n, call in CASES])


def with_out(namespace: str, name: str, out: Any) -> Any:
    """NumPy's function with the argument given."""
    function = named(NAMESPACES[namespace][0], name)

    def f(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs, out=out)

    return f


def results_of(namespace: str, name: str, call: str) -> Any:
    """What NumPy gives."""
    with quiet():
        return function_of(call, named(NAMESPACES[namespace][0], name))(*arrays_of(call))


def like(result: Any, make: Any, fill: float = 7.0) -> Any:
    """An array, or a tuple of arrays, to write results to."""
    made = [make(np.full(np.shape(part), fill).astype(np.asarray(part).dtype)) for part in flat(result)]
    return tuple(made) if isinstance(result, tuple) else made[0]


@every
def test_tensor(namespace, name, call):
    want = results_of(namespace, name, call)
    out = like(want, lift)
    got = function_of(call, with_out(namespace, name, out))(*[lift(a) for a in arrays_of(call)])
    assert all(a is b for a, b in zip(flat(got), flat(out), strict=True))
    for one, other in zip(flat(lower(out)), flat(want), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@every
def test_plain_arrays_into_a_tensor(namespace, name, call):
    """NumPy asks the Tensor here, too, or it raises."""
    want = results_of(namespace, name, call)
    out = like(want, lift)
    try:
        function_of(call, with_out(namespace, name, out))(*arrays_of(call))
    except TypeError:
        return  # NumPy does not ask what is given as out
    for one, other in zip(flat(lower(out)), flat(want), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@every
def test_ndarray(namespace, name, call):
    want = results_of(namespace, name, call)
    out = like(want, np.array)
    function_of(call, with_out(namespace, name, out))(*[lift(a) for a in arrays_of(call)])
    for one, other in zip(flat(out), flat(want), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@every
def test_ndarray_is_an_error_where_it_would_lose_the_gradient(namespace, name, call):
    want = results_of(namespace, name, call)
    arrays = arrays_of(call)
    floats = [k for k, a in enumerate(arrays) if a.dtype.kind == "f"]
    if TABLES[namespace][name].kind != "derivative" or not floats or np.asarray(flat(want)[0]).dtype.kind not in "fc":
        pytest.skip("there is no gradient")

    def lossy(*given: Any) -> Any:
        whole = list(arrays)
        for k, value in zip(floats, given, strict=True):
            whole[k] = value
        function_of(call, with_out(namespace, name, like(want, np.array)))(*whole)
        return sum(np.sum(value) for value in given)

    with pytest.raises(TracedValueError):
        nb.grad(lossy)(*[arrays[k] for k in floats])


@every
def test_derivative_flows_into_a_tensor(namespace, name, call):
    if TABLES[namespace][name].kind != "derivative":
        pytest.skip("there is none")
    want = results_of(namespace, name, call)
    plain, arrays = of_real_arrays(call, function_of(call, named(NAMESPACES[namespace][0], name)))

    def written(*given: Any) -> Any:
        out = like(want, lift)
        function_of(call, with_out(namespace, name, out))(*given)
        return out

    through, _ = of_real_arrays(call, written)
    for one, other in zip(gradients(real_parts(through), *arrays), gradients(real_parts(plain), *arrays), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@every
@pytest.mark.parametrize("make", [lift, np.array], ids=["Tensor", "ndarray"])
def test_wrong_shape(namespace, name, call, make):
    want = results_of(namespace, name, call)
    wrong = [make(np.zeros((2, *np.shape(part), 5), np.asarray(part).dtype)) for part in flat(want)]
    out = tuple(wrong) if isinstance(want, tuple) else wrong[0]
    plain = tuple(map(np.array, map(lower, wrong))) if isinstance(want, tuple) else np.array(lower(wrong[0]))
    try:
        function_of(call, with_out(namespace, name, plain))(*arrays_of(call))
    except (TypeError, ValueError):
        with pytest.raises((NbgradError, TypeError, ValueError)):
            function_of(call, with_out(namespace, name, out))(*[lift(a) for a in arrays_of(call)])


@pytest.mark.parametrize("shape", [(3,), (3, 3), (2, 3, 3)])
def test_an_ndarray_is_multiplied_by_a_tensor_in_place(shape):
    matrix = np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 3.0], [0.0, 0.25, 1.0]])
    a = np.arange(float(np.prod(shape))).reshape(shape)
    b = a.copy()
    b @= nb.numpy.array(matrix)
    assert type(b) is np.ndarray
    np.testing.assert_allclose(b, a @ matrix, rtol=1e-14)
    with pytest.raises(nb.errors.ArgumentError, match="axes"):
        np.matmul(a, nb.numpy.array(matrix), axes=[(0, 1), (-2, -1), (-2, -1)])
