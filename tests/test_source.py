"""`differentiable_source`: what it finds in other people's modules, and that it leaves them alone."""

from __future__ import annotations

import cmath
import contextlib
import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.optimize
from scipy import special
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import norm

import nbgrad as nb
from nbgrad import differentiable_source
from nbgrad.errors import ArgumentError, DtypeError, TracedValueError

from . import other_peoples_code as code
from . import other_peoples_package as package

pytestmark = pytest.mark.unoptimized

X = np.array([0.7, 0.3])


def slopes(function: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    """The Jacobian by central differences."""
    steps = 1e-6 * np.eye(x.size).reshape(-1, *x.shape)
    return np.stack([(np.asarray(function(x + h)) - np.asarray(function(x - h))) / 2e-6 for h in steps], -1)


def agrees(converted: Callable[[Any], Any], original: Callable[[Any], Any], x: np.ndarray = X) -> None:
    """The converted function has the value of the original, and its derivative in both modes."""
    expected = np.asarray(original(x))
    np.testing.assert_allclose(np.asarray(converted(x)), expected, rtol=1e-13)
    numeric = slopes(original, x)
    for jacobian in (nb.jacrev, nb.jacfwd):
        np.testing.assert_allclose(jacobian(converted)(x), numeric, rtol=1e-7, atol=1e-8)


FUNCTIONS = """
imported_names first through_containers default_function keyword_only closure imports_inside relative_import
class_inside generator comprehension converts decorated uses_cache uses_compiled uses_classes data_classes tells_types
uses_partial
vectorized draws items
""".split()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_that_a_function_refers_to(name: str) -> None:
    original = getattr(package, name)
    agrees(differentiable_source(original), original)


@pytest.mark.parametrize("name", ["other_module", "other_module_by_name"])
def test_other_modules_are_named(name: str) -> None:
    original = getattr(package, name)
    with pytest.raises(TracedValueError, match=r"other_peoples_code\.py:\d+"):
        nb.jacrev(differentiable_source(original))(X)
    for modules in (code, code.__name__, [code], code.__name__.rpartition(".")[0] or code.__name__):
        agrees(differentiable_source(original, modules=modules), original)


def test_methods_objects_classes_and_modules() -> None:
    box = package.Box(X, 2.0)
    agrees(differentiable_source(box), box)
    agrees(differentiable_source(box.__call__), box)
    agrees(differentiable_source(package.Box.twice), package.Box.twice)
    agrees(lambda x: differentiable_source(package.Box)(x, 2.0).areas(), lambda x: package.Box(x, 2.0).areas())
    agrees(differentiable_source(package.SLOTTED.times), package.SLOTTED.times)
    converted = differentiable_source(package)
    agrees(converted.uses_classes, package.uses_classes)
    assert converted.SCALE == 2.0
    agrees(differentiable_source(package.compiled), package.compiled)


def test_objects_and_functions_as_arguments() -> None:
    original = package.takes_objects
    converted = differentiable_source(original)
    box = package.Box(X, 1.5)
    agrees(lambda x: converted(x, box, package.first), lambda x: original(x, box, package.first))
    agrees(lambda x: converted(x, function=package.first, box=box), lambda x: original(x, box, package.first))
    agrees(lambda x: converted(x, box, np.sin), lambda x: original(x, box, np.sin))


def test_an_object_shares_its_attributes_with_the_original() -> None:
    box = package.Box(X, 2.0)
    seen = differentiable_source(box)
    seen.scale = 5.0
    box.extra = 1
    assert box.scale == 5.0 and seen.extra == 1 and isinstance(seen, type(seen))
    assert isinstance(box, differentiable_source(package.Box))
    assert issubclass(package.Box, differentiable_source(package.Shape))


def test_the_original_stays_as_it_is() -> None:
    before = dict(vars(package))
    members = dict(vars(package.Box))
    converted = differentiable_source(package.uses_classes)
    nb.jacrev(converted)(X)
    assert {k: v for k, v in vars(package).items() if before.get(k) is not v} == {}
    assert {k: v for k, v in vars(package.Box).items() if k != "made"} == {
        k: v for k, v in members.items() if k != "made"
    }
    assert type(package.imported_names(X)) is np.ndarray and package.np is np and math.sin is sys.modules["math"].sin
    count = package.COUNT
    counting = differentiable_source(package.counts_calls)
    assert counting(X)[0] == pytest.approx(0.7 * (count + 1)) and counting(X)[0] == pytest.approx(0.7 * (count + 2))
    assert count == package.COUNT


def test_globals_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    converted = differentiable_source(package.imported_names)
    monkeypatch.setattr(package, "SCALE", 10.0)
    agrees(converted, package.imported_names)
    monkeypatch.setattr(package, "pi", 3.0)
    agrees(converted, package.imported_names)


def solved(x: Any) -> Any:
    """Its class has a method of its name, and reads it."""

    class Problem:
        outer = solved
        shift = staticmethod(lambda v: np.array([v[0], 3.0 * v[1]]))

        def solved(self) -> Any:
            rest = self.outer.__func__(x[:2]) if len(x) > 2 else 0.0
            return np.sum(self.shift(x) ** 2) + rest

    return Problem().solved()


def test_a_class_inside_of_a_function_may_name_it() -> None:
    Y = np.array([1.0, 2.0, 3.0])
    converted = nb.differentiable_source(solved)
    assert converted(Y) == solved(Y) == 74.0
    np.testing.assert_allclose(nb.grad(converted)(Y), [4.0, 72.0, 0.0])


SLOPE = 2.0
hash = 3.0  # a global name that is Python's, too


def line_of_class(x: Any) -> Any:
    class Line:
        slope, offset, where = SLOPE, hash, __name__
        rises = SLOPE > 0
        array = np.array if rises else None
        with contextlib.suppress(NameError):
            slope = LATER  # type: ignore[name-defined] # noqa: F821

        class Inner:
            power = len("xx") * SLOPE / SLOPE

    return np.sum(Line.slope * Line.array([x[0], x[1] ** Line.Inner.power])) + Line.offset * (Line.where == __name__)


def test_classes_inside_of_functions_read_globals_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the function itself, also where a global is set anew, or for the first time, after the conversion."""
    Y = np.array([1.0, 2.0])
    converted = nb.differentiable_source(line_of_class)
    for name, value in (("SLOPE", 2.0), ("SLOPE", 5.0), ("hash", 7.0), ("LATER", 11.0)):
        monkeypatch.setattr(sys.modules[__name__], name, value, raising=False)
        slope = 11.0 if name == "LATER" else SLOPE
        assert converted(Y) == line_of_class(Y) == 5.0 * slope + hash
        np.testing.assert_allclose(nb.grad(converted)(Y), [slope, 4.0 * slope])


def test_variables_of_closures_are_shared() -> None:
    counter = package.make_counter()
    converted = differentiable_source(counter)
    assert [float(f(X)[0]) for f in (counter, converted, counter)] == pytest.approx([0.7, 1.4, 2.1])


def test_as_a_decorator() -> None:
    @differentiable_source
    def plain(x: Any) -> Any:
        """What it does."""
        return np.array([x[0], later(x)])

    @differentiable_source(modules=code)
    def with_modules(x: Any, scale: float = 2.0) -> Any:
        return code.rotation_matrix(x[0])[0] * scale

    agrees(plain, lambda x: np.array([x[0], later(x)]))
    agrees(with_modules, lambda x: code.rotation_matrix(x[0])[0] * 2.0)
    assert plain.__name__ == "plain" and plain.__doc__ == "What it does."
    assert list(inspect.signature(with_modules).parameters) == ["x", "scale"]
    again = differentiable_source(plain)
    agrees(again, plain)


def later(x: Any) -> Any:
    """Defined after it is used."""
    return np.sum(np.asarray([x[0] * x[1], 1.0]))


def test_numpys_own_functions() -> None:
    assert differentiable_source(np.array) is nb.numpy.array
    assert differentiable_source(np.sin) is nb.numpy.sin
    assert differentiable_source(np) is nb.numpy
    agrees(lambda x: differentiable_source(math.sin)(x[0]), lambda x: math.sin(x[0]))


def test_inside_every_transform() -> None:
    f = differentiable_source(package.imported_names)
    expected = package.imported_names(X)
    np.testing.assert_allclose(nb.jit(f)(X), expected)
    np.testing.assert_allclose(nb.vmap(f)(np.stack([X, X]))[1], expected)
    np.testing.assert_allclose(nb.jit(nb.jacrev(f))(X), slopes(package.imported_names, X), rtol=1e-7)
    hessian = nb.hessian(lambda x: np.sum(f(x)))(X)
    numeric = slopes(nb.grad(lambda x: np.sum(f(x))), X)
    np.testing.assert_allclose(hessian, numeric, rtol=1e-6, atol=1e-8)
    converted = differentiable_source(lambda x: np.sum(np.array([x[0], x[1] ** 2])))
    np.testing.assert_allclose(nb.grad(converted)(X.astype(np.float32)), [1, 0.6], rtol=1e-6)


def test_what_is_no_function_is_an_error() -> None:
    for value in (3, "text", len, None.__class__.__call__, np.zeros(2), [np.sin]):
        with pytest.raises(DtypeError, match="in Python"):
            differentiable_source(value)
    with pytest.raises(ArgumentError, match="no imported module 'nowhere'"):
        differentiable_source(package.first, modules="nowhere")


# ----- SciPy -----


def spd(x: Any) -> Any:
    return np.array([[2 + x[0], x[1]], [x[1], 3.0]])


SCIPY: list[Callable[[Any], Any]] = [
    lambda x: scipy.linalg.expm([[x[0], 1.0], [0.0, x[1]]])[0],
    lambda x: scipy.linalg.logm(spd(x))[0] + scipy.linalg.sqrtm(spd(x))[1],
    lambda x: scipy.linalg.inv(spd(x))[0] * scipy.linalg.det(spd(x)) + scipy.linalg.norm(spd(x)),
    lambda x: scipy.linalg.solve(spd(x), x, assume_a="pos", check_finite=False),
    lambda x: cho_solve(cho_factor(spd(x)), [x[0], 1.0]),
    lambda x: scipy.linalg.cholesky(spd(x))[0] + scipy.linalg.cholesky(spd(x), lower=True)[1],
    lambda x: scipy.linalg.solve_triangular(spd(x), x, lower=True),
    lambda x: scipy.linalg.lu_solve(scipy.linalg.lu_factor(spd(x)), x),
    lambda x: scipy.linalg.eigh(spd(x))[0] + scipy.linalg.eigvalsh(spd(x)) * scipy.linalg.svdvals(spd(x)),
    lambda x: np.abs(scipy.linalg.qr(spd(x), mode="economic")[1])[0] + scipy.linalg.svd(spd(x), compute_uv=False),
    lambda x: special.logsumexp(x) + special.softmax(x) + special.log_softmax([x[0], 0.0]) + special.gammaln(x),
    lambda x: norm.cdf(x, 0.1, 2.0) + norm.logpdf([x[0], x[1]], scale=x[1]) + norm.pdf(x) * norm.sf(x[0]),
    lambda x: norm.logcdf(x[0]) * x + norm.ppf(0.3) + norm.cdf(0.2),
    lambda x: scipy.integrate.trapezoid(x, dx=0.1) * x,
    lambda x: np.abs(scipy.fft.fft(x, 4)) ** 2 + np.real(scipy.fft.ifft2(spd(x)))[0, 0],
    lambda x: scipy.optimize.newton(lambda z: z**2 - x[0], 1.0) * x,
]


@pytest.mark.parametrize("function", SCIPY, ids=range(len(SCIPY)))
def test_functions_of_scipy(function: Callable[[Any], Any]) -> None:
    agrees(differentiable_source(function, modules="scipy.optimize"), function)


def test_options_that_scipys_functions_do_not_take_for_tensors() -> None:
    with pytest.raises(ArgumentError, match=r"scipy.linalg.eigh does not take subset_by_value"):
        nb.grad(differentiable_source(lambda x: scipy.linalg.eigh(spd(x), subset_by_value=(0, 9))[0][0]))(X)
    with pytest.raises(ArgumentError, match=r"mode='raw'"):
        nb.grad(differentiable_source(lambda x: scipy.linalg.qr(spd(x), mode="raw")[0][0]))(X)
    assert differentiable_source(lambda: scipy.linalg.norm(scipy.linalg.expm(np.zeros((2, 2)))))() == 2**0.5


@pytest.mark.skipif(np.lib.NumpyVersion(scipy.__version__) < "1.15.0", reason="SciPy's code was another one")
def test_scipys_own_python_code() -> None:
    def falling(x: Any) -> Any:
        # The steps' sizes count as constants, which is seen at the default tolerance.
        slope = lambda t, y: np.array([y[1], -x[1] * y[0]])  # noqa: E731
        solution = scipy.integrate.solve_ivp(slope, (0, 1), [x[0], 1.0], rtol=1e-10, atol=1e-12)
        return solution.y[:, -1]

    def curve(x: Any) -> Any:
        return np.array([scipy.integrate.simpson([x[0], x[1], x[0] * x[1]], dx=0.1), scipy.optimize.rosen(x)])

    agrees(differentiable_source(falling, modules="scipy"), falling)
    agrees(differentiable_source(curve, modules="scipy"), curve)


# ----- math and cmath -----

REAL: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys("sin cos tan asin acos atan sinh cosh tanh asinh atanh exp expm1 log1p fabs".split(), (0.3,)),
    **dict.fromkeys("log log2 log10 sqrt acosh erf erfc gamma lgamma degrees radians".split(), (1.7,)),
    **dict.fromkeys("cbrt exp2".split(), (1.7,)),
    **dict.fromkeys("atan2 pow hypot copysign fmod remainder".split(), (1.7, -0.6)),
    "ldexp": (1.7, 3),
    "fma": (1.7, 0.3, 0.2),
}
EXTRA: list[Callable[[Any], Any]] = [
    lambda v: math.log(v[0], v[1]),
    lambda v: math.log(v[0], 3),
    lambda v: math.hypot(v[0], 1.0, v[1]),
    lambda v: math.hypot(v[0]),
    lambda v: math.dist([v[0], 1.0], [0.0, v[1]]),
    lambda v: math.dist(v, v * v),
    lambda v: math.fsum([v[0], v[1], 2.0]),
    lambda v: math.fsum(a * a for a in v),
    lambda v: math.prod([v[0], v[1]], start=2),
    lambda v: math.prod(v),
    lambda v: math.modf(v[0])[0] + math.modf(v[0])[1],
    lambda v: math.gamma(-v[0]) + math.gamma(-1 - v[1] / 2),
    lambda v: v[0] * math.floor(v[0] * 3) + math.ceil(v[1]) * v[1] + math.trunc(v[0] * 5),
    lambda v: v[0] if math.isfinite(v[0]) and not math.isnan(v[1]) and not math.isinf(v[0]) else 0.0,
    lambda v: v[0] if math.isclose(v[0], v[0] + 1e-12) and not math.isclose(v[0], v[1]) else v[1],
    lambda v: v[0] * math.comb(5, 2) + math.factorial(3) * math.gcd(4, 6) + math.pi,
    lambda v: math.sin(np.sum(v)) + math.sin(1),
    lambda v: abs(cmath.exp(1j * v[0]) + cmath.sqrt(v[1])) ** 2,
    lambda v: cmath.phase(v[0] + 1j * v[1]) + cmath.polar(v[0] + 2j)[0],
    lambda v: cmath.rect(v[0], v[1]).real * cmath.log(v[0] + 1j).imag,
    lambda v: cmath.tanh(v[0] + 1j * v[1]).real,
    lambda v: cmath.sqrt(-v[0]).imag + cmath.log(-v[1], 2).imag + abs(cmath.acos(3 * v[0])),
]


@pytest.mark.parametrize("name", [name for name in REAL if hasattr(math, name)])
def test_functions_of_math(name: str) -> None:
    function = getattr(math, name)
    point = np.array([float(v) for v in REAL[name]])
    floats = [k for k, v in enumerate(REAL[name]) if isinstance(v, float)]

    def original(v: Any) -> Any:
        return function(*[v[k] if k in floats else REAL[name][k] for k in range(len(point))])

    agrees(differentiable_source(original), original, point)
    assert differentiable_source(original)(point) == pytest.approx(original(point))


@pytest.mark.parametrize("function", EXTRA, ids=range(len(EXTRA)))
def test_more_of_math(function: Callable[[Any], Any]) -> None:
    agrees(differentiable_source(function), function, np.array([1.7, 0.6]))


def test_math_knows_its_domain_of_single_numbers() -> None:
    with pytest.raises(ArgumentError, match="single numbers"):
        nb.grad(differentiable_source(lambda x: math.sin(x)))(X)
    with pytest.raises(ValueError, match=r"math domain|nonnegative"):
        differentiable_source(lambda x: math.sqrt(-1.0) * x[0])(X)
    assert nb.grad(differentiable_source(lambda x: math.sin(x)))(0.0) == 1.0
    assert nb.grad(differentiable_source(lambda x: float(x) ** 2))(3.0) == 6.0


# ----- Objects of nbgrad's own -----


@nb.custom_vjp
def _steep(x: Any) -> Any:
    return np.array([math.sin(x[0]), math.cos(x[1])])


_steep.defvjp(lambda x: (_steep(x), x), lambda x, g: (np.array([10 * g[0] * math.cos(x[0]), 0.0]),))


@nb.custom_jvp
def _tangled(x: Any) -> Any:
    return np.array([math.sin(x[0]), _steep(x)[1]])


_tangled.defjvp(lambda p, t: (_tangled(*p), np.array([7 * math.cos(p[0][0]) * t[0][0], _steep(p[0])[1] * t[0][1]])))
_sampled = nb.callback(np.sin, vjp=lambda x, out, g: (5.0 * g * np.cos(x),))
_squares = nb.sparse_jacobian(lambda x: np.array([x[0] * x[0], x[0] * x[1]]))


def test_rules_stay_with_their_functions() -> None:
    """Each slope is that of the rule, not of the text; rules and functions get nbgrad's NumPy, too."""
    x, y = X
    steep = nb.grad(differentiable_source(lambda x: np.sum(_steep(x) * np.array([x[0], 1.0]))))
    np.testing.assert_allclose(steep(X), [10 * x * math.cos(x) + math.sin(x), 0.0])
    tangled = differentiable_source(lambda x: np.sum(_tangled(x)))
    np.testing.assert_allclose(nb.grad(tangled)(X), [7 * math.cos(x), math.cos(y)])
    np.testing.assert_allclose(nb.jvp(tangled, X, np.array([1.0, 2.0]))[1], 7 * math.cos(x) + 2 * math.cos(y))
    np.testing.assert_allclose(nb.grad(differentiable_source(lambda x: np.sum(_sampled(x))))(X), 5 * np.cos(X))


def test_a_sparse_jacobian_is_not_taken_for_its_function() -> None:
    found = differentiable_source(lambda x: _squares(x).toarray())(X)
    np.testing.assert_allclose(found, [[2 * X[0], 0.0], [X[1], X[0]]])
    compiled = nb.jit(lambda x: np.array([x[0], x[1] ** 2]))
    np.testing.assert_allclose(nb.jacfwd(differentiable_source(lambda x: compiled(x)))(X), np.diag([1.0, 2 * X[1]]))
