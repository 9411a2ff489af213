"""Fourier transforms agree with NumPy in values and dtypes, and their derivatives with differences in the plane."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import nbgrad as nb
import nbgrad.numpy as dropped_in
from nbgrad.errors import ArgumentError, DtypeError, ShapeError
from nbgrad.functions.analysis import fourier_routines
from nbgrad.info import info
from nbgrad.numpy import fft as own

from .agreement import agree
from .plane import check

pytestmark = pytest.mark.unoptimized

F = np.fft
NORMS = [None, "backward", "ortho", "forward"]
ONE_AXIS = {
    "fft": (F.fft, "real complex"),
    "ifft": (F.ifft, "real complex"),
    "rfft": (F.rfft, "real"),
    "irfft": (F.irfft, "real complex"),
    "hfft": (F.hfft, "real complex"),
    "ihfft": (F.ihfft, "real"),
}
SEVERAL_AXES = {
    "fftn": (F.fftn, "real complex"),
    "ifftn": (F.ifftn, "real complex"),
    "rfftn": (F.rfftn, "real"),
    "irfftn": (F.irfftn, "real complex"),
}
TWO_AXES = {
    "fft2": (F.fft2, "real complex"),
    "ifft2": (F.ifft2, "real complex"),
    "rfft2": (F.rfft2, "real"),
    "irfft2": (F.irfft2, "real complex"),
}


def numbers(kind: str, *shape: int) -> np.ndarray:
    """Random numbers, real or complex."""
    rng = np.random.default_rng([7, *shape])
    found = rng.normal(size=shape)
    return found + 1j * rng.normal(size=shape) if kind == "complex" else found


def cases(table):
    """Each function with each kind of numbers that it takes."""
    return [(name, kind) for name, (_, kinds) in table.items() for kind in kinds.split()]


@pytest.fixture
def interpreted(monkeypatch):
    """No compiler, for tests of formulas only."""
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("name", "kind"), cases(ONE_AXIS))
def test_one_axis(name, kind, norm):
    function = ONE_AXIS[name][0]
    for shape, axis in (((6,), -1), ((5,), 0), ((3, 4, 2), 1), ((3, 5), 0)):
        for n in (None, 4, 7, 1 if axis == 0 else 2):
            order = 2 if (n, norm) in ((7, None), (4, "ortho")) else 1
            check(lambda a, n=n, axis=axis: function(a, n, axis, norm), numbers(kind, *shape), order=order)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("name", "kind"), cases(SEVERAL_AXES))
def test_several_axes(name, kind, norm):
    function, a = SEVERAL_AXES[name][0], numbers(kind, 3, 4, 5)
    options = [(None, None), ((5, 3), (0, 2)), ((2, 6), (2, 1)), (None, (1, 0, 2)), ((-1, 4), (0, 1)), (None, (1, 1))]
    for s, axes in options:
        check(lambda x, s=s, axes=axes: function(x, s, axes, norm), a, order=1)
    check(lambda x: function(x, (4, 5), (-1, 0), norm), a)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("name", "kind"), cases(TWO_AXES))
def test_two_axes(name, kind):
    function, a = TWO_AXES[name][0], numbers(kind, 2, 4, 5)
    check(function, a)
    check(lambda x: function(x, (3, 6), (0, 1), "ortho"), a)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "float16", "int64"])
def test_dtypes(dtype):
    a = np.arange(1, 9).astype(dtype)
    tolerance = 1e-3 if dtype in ("float32", "complex64", "float16") else 1e-12
    for name, (function, kinds) in {**ONE_AXIS, **SEVERAL_AXES}.items():
        if "c" in dtype and kinds == "real":
            with pytest.raises(DtypeError, match=name):
                function(nb.Tensor(a))
        elif dtype == "int64":  # a Tensor of integers becomes float32, as MindSpore has it
            np.testing.assert_allclose(function(nb.Tensor(a)).asnumpy(), function(a), rtol=1e-5, atol=1e-5)
        else:
            agree(function, a, tolerance=tolerance)


def test_single_numbers_and_empty_batches():
    for function in (F.fft, F.ifft, F.rfft, F.ihfft):
        agree(function, np.array([2.0]))
        agree(function, np.zeros((0, 3)))
    agree(F.irfft, np.zeros((0, 3)))
    agree(F.fftn, np.array(2.0))


def test_compiled_and_batched():
    a = numbers("real", 3, 4, 6)

    def energy(x):
        return np.sum(np.abs(F.fft2(x)) ** 2 * np.arange(6)) + np.sum(F.irfft(F.rfft(x, norm="ortho")) ** 3)

    want = np.stack([nb.grad(energy)(x) for x in a])
    np.testing.assert_allclose(nb.jit(nb.vmap(nb.grad(energy)))(a), want, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(nb.jit(F.fftn)(a), F.fftn(a), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(nb.vmap(lambda x: F.rfftn(x, axes=(1, 0)))(a), F.rfftn(a, axes=(2, 1)), atol=1e-12)
    # Parseval's theorem: the Hessian of the energy of a spectrum is that of the signal, n times.
    signal = numbers("real", 5)
    hessian = nb.hessian(lambda x: np.sum(np.abs(F.fft(x)) ** 2))(signal)
    np.testing.assert_allclose(hessian, 10 * np.eye(5), atol=1e-12)
    jacobian = nb.jacrev(lambda x: np.real(F.fft(x)))(signal)
    np.testing.assert_allclose(jacobian, np.cos(2 * np.pi * np.outer(np.arange(5), np.arange(5)) / 5), atol=1e-12)


def test_shifts():
    for shape in ((5,), (4, 3), (2, 3, 4)):
        for function in (F.fftshift, F.ifftshift):
            agree(function, numbers("real", *shape))
            check(lambda a, f=function: f(a, axes=-1), numbers("complex", *shape), order=1)
    agree(F.fftshift, numbers("real", 2, 3, 4), axes=(0, 2))


def test_frequencies():
    for n in (1, 2, 5, 8):
        np.testing.assert_allclose(own.fftfreq(n, 0.3).asnumpy(), F.fftfreq(n, 0.3))
        np.testing.assert_allclose(own.rfftfreq(n).asnumpy(), F.rfftfreq(n))
    for module in (F, own):
        # d/dd of k / (n d) is -k / (n d^2).
        g = nb.grad(lambda d, m=module: np.sum(m.rfftfreq(4, d) * np.array([1.0, 2.0, 3.0])))(0.5)
        assert g == pytest.approx(-8.0)
        g = nb.grad(lambda d, m=module: np.sum(m.fftfreq(4, d)))(0.5)
        assert g == pytest.approx(2.0)


def test_results_go_into_out():
    a, out = nb.Tensor(numbers("real", 4)), nb.Tensor(np.zeros(4, np.complex128))
    assert F.fft(a, out=out) is out
    np.testing.assert_allclose(out.asnumpy(), F.fft(a.asnumpy()))


def test_errors():
    a = nb.Tensor(numbers("real", 2, 4))
    with pytest.raises(ArgumentError, match="at least one point"):
        F.fft(a, 0)
    with pytest.raises(ArgumentError, match="norm='unitary'"):
        F.fft(a, norm="unitary")
    with pytest.raises(ShapeError, match="Axis 2"):
        F.fft(a, axis=2)
    with pytest.raises(ShapeError, match="one extent"):
        F.fftn(a, (2,), (0, 1))
    with pytest.raises(ShapeError, match="Axis -2"):
        F.fft2(a[0])
    with pytest.raises(ShapeError, match="at least one axis"):
        F.rfftn(a, axes=())


def test_all_names_of_numpy_fft_are_there():
    public = {name for name in dir(F) if not name.startswith("_") and callable(getattr(F, name))} - {"test"}
    assert public == set(own.__all__)
    assert dropped_in.fft.fft is own.fft


def changed(module, name):
    """Routines, one of which is not what it was."""
    return SimpleNamespace(**{n: getattr(module, n) for n in ("c2c", "r2c", "c2r")} | {name: lambda *given: None})


@pytest.fixture(params=["scipy", "ducc0"])
def library(request, monkeypatch):
    """Each library of transforms in turn."""
    if request.param == "ducc0":
        pytest.importorskip("ducc0")
    monkeypatch.setattr(fourier_routines, "_chosen", [])
    nb.set_fft(request.param)
    assert fourier_routines.chosen_name() == dict(info())["fft"] == request.param
    return request.param


@pytest.mark.parametrize("name", ["c2c", "r2c", "c2r"])
def test_routines_are_asked_for_known_numbers(name, library, monkeypatch):
    known = fourier_routines.routines()
    assert known is not None, "without them a transform of 1000 numbers takes twice as long"
    monkeypatch.setitem(fourier_routines.LIBRARIES, library, lambda: changed(known, name))
    assert fourier_routines._routines.__wrapped__(library) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_each_library_gives_numpys_numbers(library, dtype):
    tolerance = 2e-5 if dtype in (np.float32, np.complex64) else 1e-12
    kind = "complex" if np.dtype(dtype).kind == "c" else "real"
    for shape, axes in (((1000,), (0,)), ((7, 64), (1,)), ((13, 12), (0, 1)), ((3, 1, 10), (2, 0))):
        x = numbers(kind, *shape).astype(dtype)
        for form in (x, x[::-1], x.T.copy().T):
            for norm in ("backward", "ortho", "forward"):
                pairs = [(own.fftn, F.fftn), (own.ifftn, F.ifftn), (own.irfftn, F.irfftn)]
                if kind == "real":
                    pairs.append((own.rfftn, F.rfftn))
                for own_function, function in pairs:
                    expected = function(form, axes=axes, norm=norm)
                    found = own_function(form, axes=axes, norm=norm)
                    assert found.dtype == expected.dtype
                    scale = np.max(np.abs(expected))
                    np.testing.assert_allclose(found / scale, expected / scale, atol=tolerance)


def test_a_choice_counts_for_what_is_compiled(library):
    x = numbers("complex", 16, 16)
    compiled = nb.jit(lambda x: np.fft.fft2(x) * 2.0)
    first = compiled(x)
    nb.set_fft("scipy")
    np.testing.assert_allclose(compiled(x), first, atol=1e-12)


def test_libraries_that_cannot_be_chosen(monkeypatch):
    with pytest.raises(ArgumentError, match="'fftw'"):
        nb.set_fft("fftw")
    with pytest.raises(ArgumentError, match="None"):
        nb.set_fft(None)  # pyright: ignore[reportArgumentType]
    monkeypatch.setattr(fourier_routines, "_routines", lambda name: None)
    with pytest.raises(ArgumentError, match="pip install"):
        nb.set_fft("ducc0")
    assert fourier_routines.chosen_name() in fourier_routines.LIBRARIES


@pytest.mark.usefixtures("interpreted")
def test_without_the_routines_scipy_itself_is_called(monkeypatch):
    monkeypatch.setattr(fourier_routines, "routines", lambda: None)
    x = numbers("real", 3, 4, 5)
    for norm in ("backward", "ortho", "forward"):
        for own_function, function in ((own.fftn, F.fftn), (own.rfftn, F.rfftn)):
            found = function(x, axes=(1, 2), norm=norm)
            np.testing.assert_allclose(own_function(x, axes=(1, 2), norm=norm), found, atol=1e-12)
        back = own.irfftn(found, (4, 5), axes=(1, 2), norm=norm)
        np.testing.assert_allclose(back, x, atol=1e-12)


def test_arrays_in_any_order_are_transformed():
    x = numbers("complex", 6, 8, 4)
    for view in (x[::2, ::-1], x.T, x.real, x[..., 1:3]):
        np.testing.assert_allclose(nb.jit(lambda v: np.fft.fft2(v * 1.0))(view), F.fft2(view), atol=1e-12)
        np.testing.assert_allclose(np.asarray(own.fftn(view)), F.fftn(view), atol=1e-12)
