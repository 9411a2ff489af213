"""Messages name the one way out that fits the place, and tracebacks end in the user's line."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg.lapack
import scipy.optimize
import scipy.signal
import scipy.spatial.transform

import nbgrad as nb
from nbgrad.errors import ArgumentError, DtypeError, NbgradError, OutOfMemoryError, RangeError, TracedValueError

pytestmark = pytest.mark.unoptimized

X = np.array([1.0, 2.0, 3.0])
OUT = np.zeros(3)
BUFFER = np.zeros(3)
RECORDS = np.zeros(3, [("mass", "f8"), ("id", "i4")])


def root(a: Any) -> Any:
    return scipy.optimize.brentq(lambda x: x * x - a, 0.0, 10.0)


def integral(a: Any) -> Any:
    return scipy.integrate.quad(lambda x: a * x, 0.0, 1.0)[0]


def decay(a: Any) -> Any:
    return scipy.integrate.solve_ivp(lambda t, y: -a * y, (0.0, 1.0), [1.0]).y[0, -1]


def valley(a: Any) -> Any:
    return scipy.optimize.rosen(a * X)


def filtered(a: Any) -> Any:
    return scipy.signal.sepfir2d(np.outer(a * X, X), np.ones(1), np.ones(1))


def turned(a: Any) -> Any:
    return scipy.spatial.transform.Rotation.from_rotvec(a * X).as_matrix().sum()


def solved(a: Any) -> Any:
    return scipy.linalg.lapack.dgtsv(np.ones(2), a * X, np.ones(2), X)[3].sum()


def written(a: Any) -> Any:
    BUFFER[0] = a
    return BUFFER.sum()


def written_by_ufunc(a: Any) -> Any:
    np.multiply(a, X, out=BUFFER)
    return BUFFER.sum()


def sine(a: Any) -> Any:
    return math.sin(a)


def joined(a: Any) -> Any:
    return np.array([a, 1.0])


def masked(a: Any) -> Any:
    return np.ma.masked_where(X > 1.5, a * X).sum()


def in_records(a: Any) -> Any:
    rows = np.zeros(3, [("mass", "f8"), ("id", "i4")])
    rows["mass"] = a * X
    return rows["mass"].sum()


def in_a_record(a: Any) -> Any:
    RECORDS[1]["mass"] = a
    return RECORDS["mass"].sum()


def iterated(a: Any) -> Any:
    return sum(list(np.nditer(a * X)), 0.0)  # type: ignore[arg-type]


@numba.njit
def filled(x: Any, out: Any) -> None:
    for i in range(3):
        out[i] = x * 2.0


def fills(x: Any) -> Any:
    filled(x, OUT)
    return OUT


@numba.njit
def compiled(x: Any) -> Any:
    return x * 2.0


@numba.njit("float64(float64)")
def compiled_before(x: Any) -> Any:
    return x * 2.0


@numba.vectorize
def compiled_ufunc(x: Any) -> Any:
    return x * 2.0


NUMBA = r"{0}\(\) is compiled by Numba.*nb\.kernel\({0}\).*nb\.elementwise\({0}\)"
PLACES: dict[str, tuple[Callable[[Any], Any], Any, str]] = {
    # What is called, which modules differentiable_source converts (None: it is not used), and the way out.
    "a root by C code": (root, None, r"nb\.solvers\.brentq has derivatives.*nb\.differentiable_source\(f\)"),
    "an integral by Fortran code": (integral, None, r"nb\.solvers\.quad has derivatives.*nb\.differentiable_source"),
    "a filter in C": (filtered, "scipy", r"sepfir2d\(\) is compiled code.*nb\.primitive"),
    "Python code of SciPy": (valley, None, r"nb\.differentiable_source\(f\) runs it"),
    "an object of SciPy's without a form": (turned, (), r"nb\.primitive"),
    "Fortran code of SciPy": (solved, None, r"dgtsv\(\) is compiled code of SciPy.*nb\.differentiable_source\(f\)"),
    "an array made elsewhere": (written, (), r"from elsewhere.*nbgrad\.numpy\.zeros"),
    "out= made elsewhere": (written_by_ufunc, (), r"from elsewhere.*nbgrad\.numpy\.zeros"),
    "a plain array": (written, None, r"import nbgrad\.numpy as np.*nb\.differentiable_source\(f\)"),
    "a new array": (joined, None, r"import nbgrad\.numpy as np.*nb\.differentiable_source\(f\)"),
    "math": (sine, None, r"np\.sin.*nb\.differentiable_source\(f\)"),
    "a masked array": (masked, (), r"masked_where\(\) keeps plain numbers: keep the mask beside"),
    "a masked array, run as it is": (masked, None, r"masked_where\(\) keeps plain numbers: keep the mask beside"),
    "records": (in_records, (), "A structured array holds plain numbers"),
    "records, run as they are": (in_records, None, "A structured array holds plain numbers"),
    "a record made elsewhere": (in_a_record, (), "A structured array holds plain numbers"),
    "nditer": (iterated, None, r"np\.nditer iterates over memory.*np\.ndindex"),
    "Numba": (compiled, None, NUMBA.format("compiled")),
    "Numba with a signature": (compiled_before, None, NUMBA.format("compiled_before")),
    "a ufunc of Numba": (
        compiled_ufunc,
        None,
        r"compiled_ufunc\(\) is compiled by Numba.*nb\.elementwise\(compiled_ufunc",
    ),
    "an array for a kernel of Numba, run as Python": (fills, (), r"from elsewhere.*nb\.kernel\(filled\)"),
}


@pytest.mark.parametrize("name", PLACES)
def test_the_way_out_fits_the_place(name: str) -> None:
    function, modules, words = PLACES[name]
    if modules is not None:
        function = nb.differentiable_source(function, modules=modules)
    for transform in (nb.grad, lambda f: nb.jit(nb.grad(f))):
        with pytest.raises(TypeError, match=words) as caught:
            transform(function)(2.0)
        message = str(caught.value)
        assert isinstance(caught.value, NbgradError) and f"(at {__file__}:" in message
        if modules is not None:
            assert "nb.differentiable_source(f)." not in message, "that is where we are"
    assert np.all(BUFFER == 0.0)


def test_what_differentiable_source_advises_works() -> None:
    # dy/dt = -a y with y(0) = 1 is exp(-a) at t = 1, which solve_ivp finds with a relative tolerance of 1e-3.
    gradient = nb.grad(nb.differentiable_source(decay))(2.0)
    assert abs(gradient + math.exp(-2.0)) < 1e-3
    assert nb.grad(nb.differentiable_source(sine))(0.0) == 1.0


def test_a_function_of_numba_with_a_tensor_outside_of_transforms() -> None:
    with pytest.raises(DtypeError, match=NUMBA.format("compiled")):
        compiled(nb.Tensor(X))
    assert not hasattr(nb.Tensor(X), "_numba_type_")  # who else asks gets no error


# ----- Tracebacks -----


def _functions(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def wrong_shape(x: Any) -> Any:
    return np.sum(x + np.ones(4))


def wrong_library_call(x: Any) -> Any:
    return np.mean(x, axis=3)


def wrong_in_python(x: Any) -> Any:
    return x * (1 // 0)


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": nb.grad,
    "jit": nb.jit,
    "jacrev": nb.jacrev,
    "vmap": nb.vmap,
    "jit of grad": lambda f: nb.jit(nb.grad(f)),
    "grad of grad": lambda f: nb.grad(nb.grad(f)),
}


@pytest.mark.parametrize("function", [wrong_shape, wrong_library_call, wrong_in_python])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_traceback_ends_in_the_users_function(transform: str, function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones((5, 3)) if transform == "vmap" else X
    with pytest.raises((ValueError, ZeroDivisionError)) as caught:
        TRANSFORMS[transform](function)(x)
    assert _functions(caught.value)[-1] == function.__name__
    if function is not wrong_in_python:
        monkeypatch.setenv("NBGRAD_FULL_TRACEBACKS", "1")
        with pytest.raises(ValueError) as caught:
            TRANSFORMS[transform](function)(x)
        assert function.__name__ in _functions(caught.value)[:-1]


def test_what_compiled_code_hides_ends_in_the_line_that_called_it() -> None:
    for function in (root, filtered):
        with pytest.raises(TracedValueError) as caught:
            nb.grad(function)(2.0)
        names = _functions(caught.value)
        assert function.__name__ in names and "_leaving" not in names


def test_errors_that_users_handle_are_left_alone() -> None:
    def careful(x: Any) -> Any:
        try:
            return x * math.sin(x)
        except TypeError:
            message = "my own"
            raise KeyError(message) from None

    with pytest.raises(KeyError, match="my own"):
        nb.grad(careful)(2.0)


# ----- Arguments under other names -----


@pytest.mark.parametrize(
    "transform",
    [nb.grad, nb.value_and_grad, nb.jacrev, nb.jacfwd, nb.hessian, nb.sparse_jacobian, nb.sparse_hessian],
)
@pytest.mark.parametrize("name", ["argnums", "argnum"])
def test_other_libraries_name_of_the_position(transform: Any, name: str) -> None:
    with pytest.raises(TypeError, match="grad_position"):
        transform(np.multiply, **{name: 1})


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_positions_are_any_integers(kind: Any) -> None:
    f = lambda x, y: x * y  # noqa: E731
    assert nb.grad(f, kind(1))(2.0, 3.0) == 2.0
    assert nb.grad(f, (kind(0), 1))(2.0, 3.0) == (3.0, 2.0)
    assert nb.jacrev(f, kind(1))(2.0, 3.0) == 2.0
    np.testing.assert_array_equal(nb.GradOperation()(f, grad_position=kind(1))(X, 3 * X), X)
    assert nb.grad(f, kind(1), return_ids=True)(2.0, 3.0) == (1, 2.0)


@pytest.mark.parametrize("point", [X, 1.0, np.float32(1.0), nb.Tensor(X), (X,), [X]], ids=repr)
def test_check_grads_of_one_argument(point: Any) -> None:
    nb.check_grads(np.sin, point, order=1)
    wrong = nb.custom_vjp(np.sin)
    wrong.defvjp(lambda x: (np.sin(x), x), lambda x, g: (2 * g * np.cos(x),))
    with pytest.raises(nb.errors.GradientError):
        nb.check_grads(wrong, point, order=1, modes=("rev",))


def test_check_grads_of_two_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"one tuple: check_grads\(fn, \(x, y\)\)"):
        nb.check_grads(np.multiply, X, X)  # type: ignore[arg-type]


def test_static_arguments() -> None:
    with pytest.raises(DtypeError, match="static by themselves"):
        nb.jit(np.multiply, static_argnums=1)


# ----- Methods of ndarray -----


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
def test_copy_takes_an_order(order: Any) -> None:
    np.testing.assert_array_equal(nb.grad(lambda x: np.sum(x.copy(order=order) ** 2))(X), 2 * X)
    np.testing.assert_array_equal(nb.grad(lambda x: np.sum(np.copy(x, order) ** 2))(X), 2 * X)


def test_copy_with_an_order_that_does_not_exist() -> None:
    with pytest.raises(ArgumentError, match="order='Z'"):
        nb.Tensor(X).copy(order="Z")


@pytest.mark.parametrize("kind", [np.int64, "i8", np.dtype("float32"), nb.float32, np.uint8])
def test_a_view_as_another_dtype(kind: Any) -> None:
    for call in (lambda x: x.view(kind), lambda x: x.view(dtype=kind)):
        with pytest.raises(DtypeError, match=r"has no view as .*astype\(dtype\).*asnumpy\(\)\.view\(dtype\)"):
            nb.grad(call)(X)


@pytest.mark.parametrize("kind", [np.float64, "f8", float, nb.float64, np.ndarray])
def test_a_view_as_itself_is_a_view(kind: Any) -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        y.view(kind)[0] = 5.0
        return np.sum(y * x)

    def plain(x: Any) -> Any:
        y = x * 1.0
        y.view(np.ndarray)[0] = 5.0
        return np.sum(y * x)

    value, gradient = nb.value_and_grad(f)(X)
    assert value == plain(X)
    np.testing.assert_array_equal(gradient, [5.0, 4.0, 6.0])


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_real_if_close_of_nothing(shape: tuple[int, ...]) -> None:
    z = np.zeros(shape, complex)
    expected = np.real_if_close(z)
    found = nb.numpy.real_if_close(nb.Tensor(z))
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert nb.grad(lambda x: np.sum(np.real_if_close(x + 0j)))(np.zeros(shape)).shape == shape


# ----- What no Tensor can hold -----

ADVICE: dict[str, tuple[Any, str]] = {
    "records": (RECORDS, r"fields.*x\['mass'\]"),
    "times": (np.array(["2020-01-01", "2020-01-02"], "M8[D]"), "timedelta64"),
    "long doubles": (X.astype(np.longdouble), r"astype\(float\)"),
    "texts": (np.array(["1", "2"]), r"astype\(float\)"),
}


@pytest.mark.parametrize("name", ADVICE)
def test_arrays_of_other_elements(name: str) -> None:
    array, words = ADVICE[name]
    for call in (nb.Tensor, nb.grad(np.sum), nb.jit(np.sum)):
        with pytest.raises(DtypeError, match=words):
            call(array)


def test_the_advice_for_records_and_times_can_be_followed() -> None:
    np.testing.assert_array_equal(nb.grad(lambda m: np.sum(m * m))(RECORDS["mass"]), np.zeros(3))
    times = ADVICE["times"][0]
    np.testing.assert_array_equal(nb.jit(lambda t: t * 2)((times - times[0]) / np.timedelta64(1, "s")), [0.0, 172800.0])


@pytest.mark.parametrize("make", [nb.jacrev, nb.jacfwd, nb.hessian, nb.vmap, nb.sparse_jacobian])
def test_a_device_function_of_arrays(make: Any) -> None:
    def square(x: Any) -> Any:
        return x * x

    for function in (make(square), nb.jit(make(square))):
        with pytest.raises(DtypeError, match=r"takes a function of numbers.*nb\.grad\(f, \(0, 1\)\)"):
            nb.device_function(function)
    assert nb.device_function(nb.grad(nb.grad(square)))(3.0) == 2.0


# ----- Errors as objects -----


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_a_copy_of_an_error_says_its_place_once(again: Any) -> None:
    with pytest.raises(RangeError) as caught:
        nb.grad(lambda x: x[9])(X)
    error = caught.value
    error.__notes__ = ["a note"]  # type: ignore[attr-defined] - what add_note of Python 3.11 does
    same = again(again(error))
    assert type(same) is type(error) and same.args == error.args and str(same) == str(error)
    assert getattr(same, "__notes__", None) == getattr(error, "__notes__", None)
    assert str(same).count("(at ") == 1


MEMORY = """
import resource
import numpy as np, nbgrad as nb

def pairs(x):
    return np.sum(np.sort(x[:, None] * x[None, :], axis=1))

nb.jit(nb.value_and_grad(pairs))(np.ones(3))
resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))
x = np.ones(60_000)
for call in (nb.jit(pairs), nb.jit(pairs), nb.grad(pairs)):
    try:
        call(x)
    except MemoryError as error:
        print(type(error).__name__, error)
"""


def test_out_of_memory_says_how_much_was_asked_for(tmp_path: Any) -> None:
    script = tmp_path / "large.py"
    script.write_text(MEMORY)
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    lines = ran.stdout.splitlines()
    assert len(lines) == 3, ran.stderr
    size = 60_000**2 * 8 / 2**30
    for line in lines:
        assert line.startswith(OutOfMemoryError.__name__) and "needs" in line
        assert f"shape (60000, 60000) and dtype float64: {size:.3g} GiB" in line
        assert f"(at {script}:13)" in line


def test_explain_into_a_closed_pipe_ends_quietly(tmp_path: Any) -> None:
    (tmp_path / "model.py").write_text("import numpy as np\n\ndef loss(x):\n    return np.sum(np.sin(x))\n")
    np.save(tmp_path / "x.npy", X)
    command = f"{sys.executable} -m nbgrad explain model.py:loss x.npy | true"
    ran = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
