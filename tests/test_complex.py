"""Complex numbers: values and branch cuts as NumPy's, derivatives in the plane, and the convention of gradients.

`GRADIENTS` are what PyTorch 2.13 gave, and JAX 0.10 after conjugation; the rest is NumPy, differences and formulas.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Tensor
from nbgrad.errors import ArgumentError, DtypeError, ShapeError, TracedValueError

pytestmark = pytest.mark.unoptimized

RNG = np.random.default_rng(3)
Z = RNG.normal(size=6) + 1j * RNG.normal(size=6)
W = RNG.normal(size=6) + 1j * RNG.normal(size=6)
GRID = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))

HOLOMORPHIC = [
    np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt, np.square, np.reciprocal, np.negative,
    np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh,
    np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh,
]  # fmt: skip
OTHERS: list[Callable[..., Any]] = [np.conj, np.absolute, np.sign, np.real, np.imag, np.angle, np.positive]


def value(f: Callable[..., Any], *arguments: Any) -> Any:
    """What NumPy gives."""
    with np.errstate(all="ignore"):
        if f is np.exp2:  # not accurate in NumPy
            return np.exp(np.log(arguments[0].dtype.type(2)) * arguments[0])
        if f is np.log1p:  # nor this
            return f(arguments[0].astype(np.clongdouble)).astype(arguments[0].dtype)
        return f(*arguments)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("f", [*HOLOMORPHIC, *OTHERS], ids=lambda f: f.__name__)
def test_functions(f: Callable[..., Any], dtype: Any) -> None:
    z = np.concatenate([Z, 1e-4 * Z, 20 * Z]).astype(dtype)
    expected = value(f, z.astype(np.complex128))
    found = nb.jit(f)(z)
    assert found.dtype == value(f, z).dtype
    np.testing.assert_allclose(found, expected, rtol=60 * np.finfo(dtype).eps)
    np.testing.assert_allclose(f(Tensor(z)).asnumpy(), expected, rtol=60 * np.finfo(dtype).eps)


@pytest.mark.parametrize("f", HOLOMORPHIC, ids=lambda f: f.__name__)
def test_derivatives_are_those_along_the_real_axis(f: Callable[..., Any]) -> None:
    h = 1e-4
    expected = (8 * (value(f, Z + h) - value(f, Z - h)) - (value(f, Z + 2 * h) - value(f, Z - 2 * h))) / (12 * h)
    np.testing.assert_allclose(np.diag(nb.jacfwd(f, holomorphic=True)(Z)), expected, rtol=1e-9)
    np.testing.assert_allclose(np.diag(nb.jacrev(f, holomorphic=True)(Z)), expected, rtol=1e-9)
    np.testing.assert_allclose(nb.grad(f)(Z), expected.conj(), rtol=1e-9)


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("f", [*HOLOMORPHIC, *OTHERS], ids=lambda f: f.__name__)
def test_derivatives_in_the_plane(f: Callable[..., Any]) -> None:
    nb.check_grads(f, (Z,), order=2)


@pytest.mark.parametrize("f", [np.add, np.subtract, np.multiply, np.divide, np.power], ids=lambda f: f.__name__)
def test_two_operands(f: Callable[..., Any]) -> None:
    np.testing.assert_allclose(nb.jit(f)(Z, W), f(Z, W), rtol=1e-14)
    nb.check_grads(f, (Z, W), order=2)
    for x, y in itertools.product([Z, Z.real, 2.5, 3, 1.5 - 2j], [W, W.imag + 3, 2.5, 3, 0.5 + 1j]):
        if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
            if f is np.power and not np.iscomplexobj(x):
                x = np.abs(x)
            expected = f(x, y)
            if not isinstance(x, np.ndarray):
                found = nb.jit(lambda y, x=x: f(x, y))(y)
            elif not isinstance(y, np.ndarray):
                found = nb.jit(lambda x, y=y: f(x, y))(x)
            else:
                found = nb.jit(f)(x, y)
            np.testing.assert_allclose(found, expected, rtol=1e-13)
            assert found.dtype == expected.dtype


def test_small_integer_powers_are_products() -> None:
    z = np.array([1j, 2 - 1j, 0j])
    for n in (0, 1, 2, 3, 7):
        np.testing.assert_array_equal(nb.jit(lambda z, n=n: z**n)(z), z**n)
    np.testing.assert_allclose(nb.jit(lambda z: z**-3)(z[:2]), z[:2] ** -3, rtol=1e-15)
    np.testing.assert_array_equal(nb.grad(lambda z: z**2)(0j), 0)
    np.testing.assert_array_equal(nb.jit(np.power)(np.array([0j, 0j, 0j]), np.array([0j, 2 + 1j, 3])), [1, 0, 0])


SPECIAL = [complex(x, y) for x, y in itertools.product([0.0, -0.0, 1.0, -1.0, 2.0, -2.0], repeat=2)]


@pytest.mark.parametrize(
    "f",
    [np.log, np.sqrt, np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh, np.angle, np.exp, np.sin],
    ids=lambda f: f.__name__,
)
def test_the_sign_of_zero_tells_the_side_of_a_branch_cut(f: Callable[..., Any]) -> None:
    z = np.array(SPECIAL)
    expected, found = value(f, z), nb.jit(f)(z)
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(expected)
    np.testing.assert_allclose(found[finite], expected[finite], atol=1e-15)
    # Which side: results on both sides of a cut differ by more than rounding, so that this suffices.
    np.testing.assert_array_equal(np.isfinite(found), finite)


@pytest.mark.parametrize("f", [np.log, np.sqrt, np.arcsin, np.arccos, np.arctanh, np.arccosh], ids=lambda f: f.__name__)
def test_derivatives_on_a_branch_cut_are_those_of_its_side(f: Callable[..., Any]) -> None:
    z = np.array([complex(x, y) for x in (2.5, 0.5, -0.5, -2.5) for y in (0.0, -0.0)])
    ahead, behind = z.copy(), z.copy()
    ahead.real += 1e-6  # `z + 1e-6` loses the sign of the imaginary part
    behind.real -= 1e-6
    along = (f(ahead) - f(behind)) / 2e-6
    np.testing.assert_allclose(nb.jvp(f, z, np.ones_like(z))[1], along, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(nb.jit(nb.grad(lambda z: np.sum(f(z)).real))(z).real, along.real, rtol=1e-8, atol=1e-9)


def test_infinite_and_missing_numbers() -> None:
    z = np.array([complex(np.inf, 1), complex(-np.inf, 0), complex(np.nan, 1), complex(1, np.inf), 2 + 0j])
    for question in (np.isnan, np.isinf, np.isfinite):
        np.testing.assert_array_equal(nb.jit(question)(z), question(z))
    np.testing.assert_array_equal(nb.jit(np.sqrt)(z[[0, 1, 3]]), np.sqrt(z[[0, 1, 3]]))
    np.testing.assert_array_equal(nb.jit(np.exp)(z[:2]), [complex(np.inf * np.cos(1), np.inf * np.sin(1)), 0])
    np.testing.assert_array_equal(nb.jit(np.abs)(z[[0, 1, 3]]), [np.inf] * 3)


# ----- The convention -----

POINT = np.array([0.3 + 0.7j, -1.2 + 0.4j, 0.5 - 1.1j])
GRADIENTS: dict[str, tuple[Callable[[Any], Any], list[complex]]] = {
    "sum of |z|^2": (lambda z: np.sum(np.abs(z) ** 2), [0.6 + 1.4j, -2.4 + 0.8j, 1 - 2.2j]),
    "re z^3": (lambda z: np.sum(z**3).real, [-1.2 - 1.26j, 3.84 + 2.88j, -2.88 + 3.3j]),
    "im exp(z) z": (
        lambda z: np.sum(np.exp(z) * z).imag,
        [1.853184068886 + 0.733435608405j, 0.087509185942 - 0.102399868329j, -3.026667727778 - 0.494507423699j],
    ),
    "|sin z|": (
        lambda z: np.sum(np.abs(np.sin(z))),
        [0.346783466421 + 1.169554730472j, -0.331585524843 + 0.435972080639j, 0.296483587325 - 1.570414849595j],
    ),
    "angle": (
        lambda z: np.sum(np.angle(z)),
        [-1.206896551724 + 0.51724137931j, -0.25 - 0.75j, 0.753424657534 + 0.342465753425j],
    ),
    "re conj(z) z^2": (lambda z: np.sum(np.conj(z) * z * z).real, [0.76 + 0.42j, 4.48 - 0.96j, 1.96 - 1.1j]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_the_peers(name: str) -> None:
    f, expected = GRADIENTS[name]
    np.testing.assert_allclose(nb.grad(f)(POINT), expected, rtol=1e-10)
    np.testing.assert_allclose(nb.jit(nb.grad(f))(POINT), expected, rtol=1e-10)
    np.testing.assert_allclose(nb.jacrev(f)(POINT), expected, rtol=1e-10)
    np.testing.assert_allclose(nb.jacfwd(f)(POINT), expected, rtol=1e-10)
    found = nb.grad(f)(POINT.astype(np.complex64))
    assert found.dtype == np.complex64
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_of_a_complex_result_the_real_part_is_differentiated() -> None:
    np.testing.assert_allclose(nb.grad(np.sin)(Z), np.cos(Z).conj())
    np.testing.assert_allclose(nb.grad(lambda z: z * 1j)(2.0), 0.0)
    np.testing.assert_allclose(nb.grad(lambda z: z * 1j, sens_param=True)(np.array([2.0]), np.array([1j])), [1.0])


def test_jacobians() -> None:
    x = np.array([0.3, 0.8])

    def spiral(x: Any) -> Any:
        return np.exp(1j * x) * x

    expected = np.diag(np.exp(1j * x) * (1j * x + 1))
    np.testing.assert_allclose(nb.jacfwd(spiral)(x), expected, rtol=1e-14)
    np.testing.assert_allclose(nb.jacrev(spiral)(x), expected, rtol=1e-14)
    with pytest.raises(ArgumentError, match="holomorphic=True"):
        nb.jacrev(np.exp)(Z)
    hessian = nb.hessian(lambda x: np.abs(np.exp(1j * x[0]) * x[1] + x[0]) ** 2)(x)
    # |.|^2 = y^2 + 2 x y cos x + x^2
    s, c = np.sin(x[0]), np.cos(x[0])
    mixed = 2 * c - 2 * x[0] * s
    expected = [[2 - 2 * x[1] * (2 * s + x[0] * c), mixed], [mixed, 2.0]]
    np.testing.assert_allclose(hessian, expected, rtol=1e-12)


def test_real_parameters_of_complex_computations_get_real_gradients() -> None:
    def transmitted(k: Any) -> Any:
        return np.abs((1 + 1j * k) / (2 - 0.5j * k)) ** 2

    # (1 + k^2) / (4 + k^2 / 4)
    k = 0.7
    below = 4 + k * k / 4
    expected = 2 * k / below - (1 + k * k) * (k / 2) / below**2
    found = nb.grad(transmitted)(k)
    assert isinstance(found, np.float64) and abs(found - expected) < 1e-15


def test_a_branch_that_is_not_taken_does_not_leak() -> None:
    z = np.array([0j, 1j])
    found = nb.grad(lambda z: np.sum(np.where(np.abs(z) > 0, np.sqrt(z), 0)).real)(z)
    np.testing.assert_allclose(found, [0, np.conj(0.5 / np.sqrt(1j))])
    found = nb.grad(lambda z: np.sum(np.where(z == 0, 1, np.sin(z) / np.where(z == 0, 1, z))).real)(z)
    assert np.isfinite(found).all()
    assert nb.grad(np.abs)(0j) == 0


# ----- Everything else that arrays do -----


CASES: dict[str, Callable[[Any], Any]] = {
    "sum": lambda z: np.sum(z, axis=1),
    "mean": lambda z: np.mean(z, axis=0),
    "prod": lambda z: np.prod(z, axis=1),
    "prod of all": np.prod,
    "cumsum": lambda z: np.cumsum(z, axis=1),
    "cumprod": lambda z: np.cumprod(z, axis=1),
    "transpose": lambda z: z.T * 2j,
    "reverse": lambda z: z[::-1, ::2],
    "index": lambda z: z[[0, 2, 2]],
    "mask": lambda z: np.where(z.real > 0, z, -z),
    "concatenate": lambda z: np.concatenate([z, z.conj()], axis=1),
    "stack with real": lambda z: np.stack([z, np.ones((3, 4))]),
    "pad": lambda z: np.pad(z, 1),
    "roll": lambda z: np.roll(z, 1, axis=1),
    "matmul": lambda z: z @ z.T,
    "real matmul": lambda z: np.arange(6.0).reshape(2, 3) @ z,
    "einsum": lambda z: np.einsum("ij,kj->ik", z, z.conj()),
    "outer": lambda z: np.outer(z[0], z[1]),
    "vdot": lambda z: np.vdot(z[0], z[1]),
    "dot": lambda z: np.dot(z[0], z[1]),
    "var": lambda z: np.var(z, axis=1),
    "trace": lambda z: np.trace(z),
    "kron": lambda z: np.kron(z[0], z[1]),
    "convolve": lambda z: np.convolve(z[0], z[1]),
    "tile": lambda z: np.tile(z, (2, 1)),
    "diff": lambda z: np.diff(z, axis=1),
    "real and imaginary part": lambda z: z.real * z.imag,
    "conjugate": lambda z: z.conjugate() * z,
    "nan_to_num": np.nan_to_num,
    "sinc": np.sinc,
    "round trip": lambda z: (z.real + 1j * z.imag) * z,
    "max of sizes": lambda z: np.max(np.abs(z), axis=1),
    "clip of angle": lambda z: np.clip(np.angle(z), -1, 1),
    "largest": lambda z: np.max(z, axis=1),
    "smallest of all": np.min,
    "largest where": lambda z: np.max(z, axis=0, where=np.arange(4) % 2 == 0, initial=0),
    "position of the largest": lambda z: np.argmax(z, axis=1) * 1.0,
    "rounded": lambda z: z - np.rint(z) + np.round(z, 1),
    "polynomial": lambda z: np.polyval([1, 2j, 3], z),
}


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("name", CASES)
def test_array_functions(name: str) -> None:
    f = CASES[name]
    for z in (GRID, np.asfortranarray(GRID), GRID.repeat(2, axis=1)[:, ::2], GRID.astype(np.complex64)):
        expected = f(z)
        found = nb.jit(f)(z)
        resolution = float(np.finfo(z.real.dtype).eps)
        np.testing.assert_allclose(found, expected, rtol=100 * resolution, atol=20 * resolution)
        assert found.dtype == expected.dtype
    nb.check_grads(f, (GRID,), order=2)


def test_comparisons_follow_numpys_order() -> None:
    a = np.array([1 + 1j, 1 + 2j, 2 - 1j, 0j])
    b = np.array([1 + 1j, 1 + 1j, 1 + 5j, 0.5j])
    for f in (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.maximum, np.minimum):
        np.testing.assert_array_equal(nb.jit(f)(a, b), f(a, b))
    for f in (np.logical_and, np.logical_or, np.logical_xor):
        np.testing.assert_array_equal(nb.jit(f)(a, b), f(a, b))
    np.testing.assert_array_equal(nb.jit(np.logical_not)(a), np.logical_not(a))


def test_empty_and_scalar() -> None:
    f = nb.jit(lambda z: np.exp(z) * z)
    assert f(np.zeros((0, 3), complex)).shape == (0, 3)
    assert f(1 + 2j) == pytest.approx(np.exp(1 + 2j) * (1 + 2j))
    assert f(np.complex64(1j)).dtype == np.complex64
    assert nb.jit(np.prod)(np.zeros(0, complex)) == 1
    assert nb.grad(lambda z: (z * z).real)(1 + 2j) == 2 - 4j
    assert isinstance(nb.grad(lambda z: np.abs(z))(1j), np.complex128)


def test_vmap_custom_rules_and_stop_gradient() -> None:
    np.testing.assert_allclose(nb.vmap(lambda z: np.sum(np.exp(z) / z))(GRID), np.sum(np.exp(GRID) / GRID, axis=1))
    np.testing.assert_allclose(nb.vmap(nb.grad(lambda z: np.sum(np.sqrt(z)).real))(GRID), (0.5 / np.sqrt(GRID)).conj())
    np.testing.assert_allclose(nb.grad(lambda z: (z * nb.stop_gradient(z)).real)(2j), -2j)


def test_tensors() -> None:
    z = Tensor([1 + 2j, 3.0])
    assert z.dtype == np.complex64 and Tensor(np.array([1j])).dtype == np.complex128
    assert str(Tensor(np.array([1 + 2j]))) == "[1.+2.j]"
    assert complex(Tensor(1 + 2j)) == 1 + 2j and Tensor(2j).item() == 2j and z.tolist() == [1 + 2j, 3]
    assert z.real.tolist() == [1, 3] and z.imag.tolist() == [2, 0] and Tensor([1.0]).imag.tolist() == [0]
    with pytest.raises(DtypeError, match=r"x\.real"):
        float(z[0])
    with pytest.raises(DtypeError, match="imaginary part would be lost"):
        z.astype(np.float32)
    with pytest.raises(DtypeError, match="floor"):
        np.floor(z)
    with pytest.raises(DtypeError, match="arctan2"):
        np.arctan2(z, z)
    with pytest.raises(TracedValueError, match="item"):
        nb.grad(lambda z: np.abs(z.item()))(1j)


def test_questions() -> None:
    a, b = np.array([1 + 1e-9j, np.inf, 2j]), np.array([1, np.inf, 2.1j])
    assert np.isclose(Tensor(a), b).tolist() == np.isclose(a, b).tolist() == [True, True, False]
    with pytest.raises(DtypeError, match="isposinf"):
        np.isposinf(Tensor(a))


INFINITE = np.array([complex(x, y) for x, y in itertools.product([np.inf, -np.inf, 0.0, 1.0, -2.0], repeat=2)])


@pytest.mark.parametrize(
    "f", [f for f in HOLOMORPHIC if f not in (np.exp2, np.reciprocal, np.square)], ids=lambda f: f.__name__
)
def test_infinite_parts(f: Callable[..., Any]) -> None:
    """No wrong numbers: what is a number here is the number that NumPy has."""
    expected, found = value(f, INFINITE), nb.jit(f)(INFINITE)
    for side in ("real", "imag"):
        ours, theirs = getattr(found, side), getattr(expected, side)
        known = ~np.isnan(ours) & ~np.isnan(theirs)
        # Where the other part is no number, C99 leaves the sign open.
        ours, theirs = (np.where(np.isnan(found), np.abs(part), part) for part in (ours, theirs))
        np.testing.assert_allclose(ours[known], theirs[known], rtol=1e-14, atol=1e-15)
        # NaN stands where NumPy's is, and nowhere that both parts of the argument are finite.
        finite = np.isfinite(INFINITE)
        np.testing.assert_array_equal(np.isnan(ours[finite]), np.isnan(theirs[finite]))
    inverse = f.__name__.startswith("arc") or f in (np.sqrt, np.log, np.log10, np.log1p, np.log2)
    if inverse:
        assert not np.isnan(found).any()


def test_parts_are_written_in_place() -> None:
    def written(x: Any) -> Any:
        z = np.zeros_like(x) * 1j if isinstance(x, np.ndarray) else Tensor(np.zeros(x.shape, complex))
        z.real = x
        z.imag = x * x
        z[0] = 1j * x[1]
        return np.abs(z) ** 2

    x = np.array([0.5, 2.0, -1.0])
    np.testing.assert_allclose(nb.jit(written)(x), written(x))
    nb.check_grads(written, (x,), order=2)
    with pytest.raises(DtypeError, match="must be real"):
        Tensor([1j]).real = 1j  # type: ignore
    with pytest.raises(DtypeError, match="no imaginary part"):
        Tensor([1.0]).imag = 1.0  # type: ignore


def test_values_of_parts_broadcast_as_any_others() -> None:
    def written(x: Any) -> Any:
        z = np.ones_like(x) * 1j
        z.imag = x[:1][np.newaxis, np.newaxis]
        z.real = x[:1]
        return np.real(z) * 3 + np.imag(z) * x

    x = np.array([[0.5, 2.0], [-1.0, 4.0]])
    np.testing.assert_allclose(nb.jit(written)(x), written(x))
    nb.check_grads(written, (x,))
    for wrong in ((3,), (3, 2, 2)):
        with pytest.raises(ShapeError, match="does not broadcast"):
            Tensor(np.zeros((2, 2)) * 1j).imag = np.ones(wrong)  # type: ignore


def test_a_complex_value_in_a_real_array_is_an_error() -> None:
    x = Tensor(np.zeros(3))
    with pytest.raises(DtypeError):
        x[0] = 1j
    with pytest.raises(DtypeError):
        np.add(x, 1j, out=x)  # type: ignore


def test_interpreted_and_compiled_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    f = nb.jit(nb.value_and_grad(lambda z: np.sum(np.abs(np.arctan(z) / (1 + z * z)))))
    compiled = f(Z)
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    interpreted = nb.jit(f.fn)(Z)
    np.testing.assert_allclose(compiled[0], interpreted[0], rtol=1e-13)
    np.testing.assert_allclose(compiled[1], interpreted[1], rtol=1e-12)


def test_a_complex_gradient_compiles_once_for_equal_graphs() -> None:
    g = nb.grad(lambda z: np.sum(np.exp(z) / z).real)
    g(Z)
    before = dict(nb.counters)
    g(W)
    assert dict(nb.counters) == before


def test_functions_with_mindspores_names() -> None:
    ops = nb.ops
    x, y = np.array([1.0, -2.0]), np.array([0.5, 3.0])
    z = x + 1j * y
    np.testing.assert_array_equal(ops.complex(x, y).asnumpy(), z)
    np.testing.assert_array_equal(ops.Complex()(x, y).asnumpy(), z)
    np.testing.assert_allclose(ops.polar(np.abs(z), np.angle(z)).asnumpy(), z, rtol=1e-15)
    np.testing.assert_array_equal(ops.view_as_real(z).asnumpy(), np.stack([x, y], axis=-1))
    np.testing.assert_array_equal(ops.view_as_complex(np.stack([x, y], axis=-1)).asnumpy(), z)
    np.testing.assert_array_equal(ops.Real()(z).asnumpy(), x)
    np.testing.assert_array_equal(ops.imag(input=z).asnumpy(), y)
    np.testing.assert_array_equal(ops.Conj()(z).asnumpy(), z.conj())
    np.testing.assert_allclose(ops.ComplexAbs()(z).asnumpy(), np.abs(z))
    assert ops.is_complex(z) and not ops.is_complex(x)
    assert ops.isreal(np.array([1 + 0j, 1j])).tolist() == [True, False]
    nb.check_grads(lambda r, t: ops.polar(r, t) if isinstance(r, Tensor) else r * np.exp(1j * t), (x, y), order=2)
    for wrong in (lambda: ops.complex(z, y), lambda: ops.view_as_real(x), lambda: ops.view_as_complex(x[:1])):
        with pytest.raises(DtypeError):
            wrong()


ACCURATE = {
    "exp": "exp", "expm1": "expm1", "log": "log", "log10": "log10", "sqrt": "sqrt", "sin": "sin", "cos": "cos",
    "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "arcsin": "asin", "arccos": "acos",
    "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "log1p": "log1p",
}  # fmt: skip
"""NumPy's name and mpmath's."""


@pytest.mark.parametrize("name", ACCURATE)
def test_accuracy_in_the_plane(name: str) -> None:
    """Within 2.5 units of rounding of the absolute value, also near branch points and axes."""
    rng = np.random.default_rng(7)
    around = np.exp(rng.uniform(-20, 0, 40) + 1j * rng.uniform(-np.pi, np.pi, 40))
    far = np.exp(rng.uniform(0, 3, 40) + 1j * rng.uniform(-np.pi, np.pi, 40))
    axis = rng.normal(size=40) + 1j * np.exp(rng.uniform(-30, -2, 40)) * rng.choice([-1, 1], 40)
    z = np.concatenate([around, 1 + around, -1 - around, 1j + 1j * around, far, axis, 1j * axis])
    found = nb.jit(getattr(np, name))(z)
    with mpmath.workdps(40):
        for value, point in zip(found.tolist(), z.tolist(), strict=True):
            exact = getattr(mpmath, ACCURATE[name])(mpmath.mpc(point))
            assert abs(value - exact) <= 2.5 * 2.0**-52 * abs(exact), (point, value, exact)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_no_overflow_on_the_way(dtype: Any) -> None:
    largest = float(np.finfo(dtype).max)
    z = (np.array([1 + 1j, -1 + 1j, -1 - 0.5j, 0.3 - 1j]) * largest).astype(dtype)
    for f in (np.sqrt, np.log):
        np.testing.assert_allclose(nb.jit(f)(z), f(z), rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    "z",
    [
        np.array([1 + 2j, 5 - 1j, 5 + 3j, 2]),
        np.array([1 + 2j, complex(np.nan, 1), 5]),
        np.array([complex(1, np.nan), 5]),
        np.array([[1, 2j], [3, 3 + 1j], [3, -1j]]),
    ],
    ids=range(4),
)
def test_extrema_follow_the_order_of_numpy(z: np.ndarray) -> None:
    """By the real parts, then by the imaginary ones; NaN wins."""
    for name in "max min ptp argmax argmin sort argsort".split():
        want = getattr(np, name)(z)
        np.testing.assert_array_equal(getattr(np, name)(Tensor(z)).asnumpy(), want, err_msg=name)
    for ufunc in (np.maximum, np.minimum):
        np.testing.assert_array_equal(ufunc.accumulate(Tensor(z)).asnumpy(), ufunc.accumulate(z))


def test_comparisons_with_nan_are_those_of_numpy() -> None:
    parts = [-1.0, 0.0, 2.0, np.inf, np.nan]
    z = np.array([complex(a, b) for a in parts for b in parts])
    x, y = z[:, None], z[None, :]
    for name in "equal not_equal less less_equal greater greater_equal maximum minimum fmax fmin".split():
        with np.errstate(invalid="ignore"):
            want = getattr(np, name)(x, y)
        np.testing.assert_array_equal(getattr(np, name)(Tensor(x), Tensor(y)).asnumpy(), want, err_msg=name)


def test_squares_of_absolute_values_need_no_root() -> None:
    for square in (lambda z: np.abs(z) ** 2, lambda z: np.square(np.abs(z))):
        np.testing.assert_allclose(nb.jit(square)(Z), Z.real**2 + Z.imag**2, rtol=1e-15)
        np.testing.assert_array_equal(nb.grad(square)(np.array([0j, 3 - 4j])), [0, 6 - 8j])
        assert "hypot" not in nb.explain(nb.grad(square), Z)
