"""`nb.primitive`: users' own array kernels agree with NumPy and with derivatives on paper, under every transform, on
the CPU, on a simulated device, and as kernels of Numba's CUDA simulator; misuse is named."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError, DeviceError, DtypeError, NbgradError, ShapeError
from nbgrad.extend.custom_kernels import Primitive

from .simulated import simulated

pytestmark = pytest.mark.unoptimized(but=16)

X = np.array([1.0, -2.0, 0.5])
Y = np.array([3.0, 1.0, 4.0])


# ----- A recurrence, whose Jacobian is a triangular matrix of powers of one half -----


@numba.njit
def _smooth(x, out):  # type: ignore[no-untyped-def]
    carry = 0.0
    for i in range(len(x)):
        carry = 0.5 * carry + x[i]
        out[i] = carry


@numba.njit
def _smooth_vjp(x, out, g, grad):  # type: ignore[no-untyped-def]
    carry = 0.0
    for i in range(len(x) - 1, -1, -1):
        carry = 0.5 * carry + g[i]
        grad[i] = carry


def _smooth_jvp(x: Any, out: Any, t: Any, t_out: Any) -> None:
    _smooth(t, t_out)


def matrix(n: int) -> np.ndarray:
    """The Jacobian of `smooth`."""
    return np.array([[0.5 ** (i - j) if i >= j else 0.0 for j in range(n)] for i in range(n)])


def make_smooth(**options: Any) -> Primitive:
    return nb.primitive(_smooth, shape=lambda x: x, vjp=_smooth_vjp, jvp=_smooth_jvp, name="smooth", **options)


SMOOTH = make_smooth()


def test_values_and_gradients_of_a_numba_kernel() -> None:
    np.testing.assert_allclose(SMOOTH(X), matrix(3) @ X)
    assert type(SMOOTH(X)) is np.ndarray
    assert type(SMOOTH(nb.Tensor(X))) is nb.Tensor
    expected = matrix(3).T @ (2 * matrix(3) @ X**2) * 2 * X

    def loss(x: Any) -> Any:
        return np.sum(SMOOTH(x * x) ** 2)

    np.testing.assert_allclose(nb.grad(loss)(X), expected)
    np.testing.assert_allclose(nb.jit(nb.grad(loss))(X), expected)
    np.testing.assert_allclose(nb.value_and_grad(nb.jit(loss))(X)[1], expected)


def test_float32_stays_float32() -> None:
    x = X.astype(np.float32)
    assert SMOOTH(x).dtype == nb.grad(lambda x: np.sum(SMOOTH(x)))(x).dtype == np.float32


@pytest.mark.parametrize("jacobian", [nb.jacfwd, nb.jacrev, lambda f: nb.jit(nb.jacfwd(f))])
def test_jacobians_in_both_modes(jacobian: Any) -> None:
    np.testing.assert_allclose(jacobian(SMOOTH)(X), matrix(3))


@pytest.mark.parametrize("batched", [False, True])
def test_vmap_and_derivatives_of_it(batched: bool) -> None:
    many = np.stack([X, Y, X * Y])

    def forward(x: np.ndarray, out: np.ndarray) -> None:
        sizes.append(x.ndim)
        out[...] = x @ matrix(x.shape[-1]).T

    def backward(x: np.ndarray, out: np.ndarray, g: np.ndarray, grad: np.ndarray) -> None:
        grad[...] = g @ matrix(x.shape[-1])

    sizes: list[int] = []
    smooth = nb.primitive(forward, shape=lambda x: x, vjp=backward, batched=batched)
    np.testing.assert_allclose(nb.vmap(smooth)(many), many @ matrix(3).T)
    assert sizes == ([2] if batched else [1, 1, 1])
    found = nb.vmap(nb.grad(lambda x: np.sum(smooth(x) ** 2)))(many)
    np.testing.assert_allclose(found, 2 * many @ matrix(3).T @ matrix(3))
    outside = nb.grad(lambda many: np.sum(nb.vmap(smooth)(many) ** 2))(many)
    np.testing.assert_allclose(outside, found)


def test_forward_mode_of_a_mapped_kernel() -> None:
    many, moves = np.stack([X, Y]), np.stack([Y, X])
    _, found = nb.jvp(nb.vmap(SMOOTH), (many,), (moves,))
    np.testing.assert_allclose(found, moves @ matrix(3).T)


def test_a_second_derivative_by_a_primitive_as_the_rule() -> None:
    def cube(x: Any, out: Any) -> None:
        out[...] = x**3

    def slope(x: Any, y: Any, g: Any, grad: Any) -> None:
        grad[...] = 3 * x**2 * g

    def slope_vjp(x: Any, y: Any, g: Any, grad: Any, c: Any, to_x: Any, to_y: Any, to_g: Any) -> None:
        to_x[...] = 6 * x * g * c
        to_y[...] = 0
        to_g[...] = 3 * x**2 * c

    rule = nb.primitive(slope, shape=lambda x, y, g: [x], vjp=slope_vjp)
    cubed = nb.primitive(cube, shape=lambda x: (x.shape, x.dtype), vjp=rule)
    first = nb.grad(lambda x: np.sum(cubed(x)))
    np.testing.assert_allclose(first(X), 3 * X**2)
    np.testing.assert_allclose(nb.grad(lambda x: np.sum(first(x)))(X), 6 * X)


def test_a_rule_written_in_numpy_around_a_primitive() -> None:
    plain = nb.primitive(lambda x, out: np.exp(x, out=out), shape=lambda x: x, name="own exp")
    rule = nb.custom_vjp(plain)
    rule.defvjp(lambda x: (plain(x), x), lambda x, g: (g * rule(x),))
    first = nb.grad(lambda x: np.sum(rule(x)))
    np.testing.assert_allclose(nb.grad(lambda x: np.sum(first(x)))(X), np.exp(X))


# ----- Several inputs and results -----


def _two(x: Any, y: Any, a: Any, b: Any, c: Any, *, k: float) -> None:
    a[...] = x * y * k
    b[...] = (x + y).sum()
    c[...] = x > y


def _two_vjp(x: Any, y: Any, a: Any, b: Any, c: Any, ga: Any, gb: Any, gx: Any, gy: Any, *, k: float) -> None:
    gx[...] = ga * y * k + gb
    gy[...] = ga * x * k + gb


def _two_jvp(x: Any, y: Any, a: Any, b: Any, c: Any, tx: Any, ty: Any, ta: Any, tb: Any, *, k: float) -> None:
    ta[...] = (tx * y + x * ty) * k
    tb[...] = (tx + ty).sum()


TWO = nb.primitive(
    _two, shape=lambda x, y, k: [x, ((), x.dtype), (x.shape, bool)], vjp=_two_vjp, jvp=_two_jvp, name="two"
)


def two_in_numpy(x: Any, y: Any, k: float = 2.0) -> Any:
    return x * y * k, np.sum(x + y), x > y


def loss_of(two: Callable[..., Any]) -> Callable[..., Any]:
    def loss(x: Any, y: Any) -> Any:
        a, b, c = two(x, y, k=2.0)
        return np.sum(a * a) * b + np.sum(np.where(c, a, x))

    return loss


def test_several_results_of_several_dtypes() -> None:
    for found in (TWO(X, Y, k=2.0), nb.jit(lambda x, y: TWO(x, y, k=2.0))(X, Y)):
        for one, expected in zip(found, two_in_numpy(X, Y), strict=True):
            np.testing.assert_allclose(one, expected)
            assert one.dtype == expected.dtype
    expected = nb.grad(loss_of(two_in_numpy), (0, 1))(X, Y)
    for gradient in (nb.grad(loss_of(TWO), (0, 1)), nb.jit(nb.grad(loss_of(TWO), (0, 1)))):
        np.testing.assert_allclose(gradient(X, Y), expected)
    nb.check_grads(loss_of(TWO), (X, Y), order=1)


def test_mapped_with_one_operand_the_same_for_all() -> None:
    many = np.stack([X, 2 * X])
    found = nb.vmap(lambda x: TWO(x, Y, k=3.0))(many)
    for one, expected in zip(found, zip(*[two_in_numpy(x, Y, 3.0) for x in many], strict=True), strict=True):
        np.testing.assert_allclose(one, expected)
    gradients = nb.vmap(lambda x: nb.grad(loss_of(TWO))(x, Y))(many)
    np.testing.assert_allclose(gradients, [nb.grad(loss_of(two_in_numpy))(x, Y) for x in many])


def test_results_of_two_float_dtypes_have_one_gradient() -> None:
    def forward(x: Any, a: Any, b: Any) -> None:
        a[...] = x**2
        b[...] = x**3

    def backward(x: Any, a: Any, b: Any, ga: Any, gb: Any, grad: Any) -> None:
        grad[...] = 2 * x * ga + 3 * x**2 * gb

    both = nb.primitive(forward, shape=lambda x: [x, (x.shape, np.float32)], vjp=backward)
    found = nb.grad(lambda x: np.sum(both(x)[0]) + np.sum(both(x)[1].astype(float)))(X)
    np.testing.assert_allclose(found, 2 * X + 3 * X**2, rtol=1e-6)


def test_a_compiled_call_runs_once_and_writes_where_results_are_wanted() -> None:
    calls: list[list[int]] = []

    def split(x: Any, whole: Any, counts: Any, rest: Any, nothing: Any) -> None:
        calls.append([array.ctypes.data for array in (whole, counts, rest)])
        whole[...] = np.floor(x)
        counts[...] = whole
        rest[...] = x - whole

    own = nb.primitive(split, shape=lambda x: [x, (x.shape, np.int32), x, ((0, 3), x.dtype)], name="split")
    x = np.array([[0.25, 1.5], [2.75, 3.0]])
    compiled = nb.jit(lambda x: own(x)[:3])
    found = compiled(x)
    del calls[:]
    found = compiled(x)
    assert calls == [[array.ctypes.data for array in found]]
    np.testing.assert_array_equal(found, [np.floor(x), np.floor(x), x % 1.0])
    assert "arena 0 bytes" in str(nb.explain(compiled, x))
    # Parts of results, an empty one, and one that a loop reads; then something that reads across results.
    part, total, empty = nb.jit(lambda x: (own(x)[2][1], np.sum(own(x)[0] * x), own(x)[3]))(x)
    np.testing.assert_array_equal(part, [0.75, 0.0])
    assert total == 1.5 + 5.5 + 9.0
    assert empty.shape == (0, 3)
    both = nb.jit(lambda x: np.concatenate([own(x)[0].ravel(), own(x)[2].ravel()])[::3])(x)
    np.testing.assert_array_equal(both, [0.0, 3.0, 0.75])
    np.testing.assert_array_equal(nb.jit(nb.vmap(lambda x: own(x)[2]))(x[:, :, None]), (x % 1.0)[:, :, None])


def test_integers_and_complex_numbers() -> None:
    def count(x: Any, n: Any, out: Any) -> None:
        out[...] = x[n % 2]

    def count_vjp(x: Any, n: Any, out: Any, g: Any, grad: Any) -> None:
        grad[...] = 0
        grad[n % 2] = g

    counted = nb.primitive(count, shape=lambda x, n: ((), x.dtype), vjp=count_vjp)
    np.testing.assert_array_equal(nb.grad(counted)(X, np.array(3)), [0, 1, 0])
    turn = nb.primitive(
        lambda z, out: np.multiply(z, 1j, out=out),
        shape=lambda z: z,
        vjp=lambda z, out, g, grad: np.multiply(g, -1j, out=grad),
    )
    z = X + 1j * Y
    np.testing.assert_allclose(turn(z), 1j * z)
    np.testing.assert_allclose(
        nb.grad(lambda z: np.sum(np.real(turn(z)) ** 2))(z), nb.grad(lambda z: np.sum(np.real(1j * z) ** 2))(z)
    )


def test_empty_arrays_and_any_layout() -> None:
    assert SMOOTH(X[:0]).shape == (0,)
    assert nb.grad(lambda x: np.sum(SMOOTH(x)))(X[:0]).shape == (0,)
    wide = np.arange(12.0).reshape(3, 4)
    transposed = nb.primitive(lambda x, out: np.copyto(out, x.T), shape=lambda x: (x.shape[::-1], x.dtype))
    np.testing.assert_array_equal(transposed(wide.T), wide)
    np.testing.assert_array_equal(nb.jit(lambda x: transposed(x[:, ::-2]))(wide), wide[:, ::-2].T)


def test_numbers_and_lists_are_arrays() -> None:
    np.testing.assert_allclose(SMOOTH([1.0, 2.0]), [1.0, 2.5])
    add = nb.primitive(lambda x, y, out: np.add(x, y, out=out), shape=lambda x, y: x)
    assert add(2.0, 3.0) == 5.0


def test_a_decorator() -> None:
    @nb.primitive(shape=lambda x: x)
    def doubled(x: np.ndarray, out: np.ndarray) -> None:
        out[...] = 2 * x

    np.testing.assert_array_equal(doubled(X), 2 * X)
    assert repr(doubled) == "<primitive doubled>"


def test_numba_functions_with_declared_types() -> None:
    declared = numba.njit("void(float64[::1], float64[::1])")(lambda x, out: _smooth(x, out))
    found = nb.jit(lambda x: nb.primitive(declared, shape=lambda x: x, name="declared")(x + 0.0))(X)
    np.testing.assert_allclose(found, matrix(3) @ X)


def test_sparse_jacobians_and_parameters() -> None:
    np.testing.assert_allclose(nb.sparse_jacobian(SMOOTH)(X).toarray(), matrix(3))
    w = nb.Parameter(nb.Tensor(X), name="w")
    (found,) = nb.grad(lambda x: SMOOTH(w * x).sum(), None, [w])(nb.Tensor(Y))
    np.testing.assert_allclose(found.asnumpy(), matrix(3).sum(0) * Y)


def test_a_gradient_that_is_asked_for_again_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = nb.grad(lambda x: np.sum(SMOOTH(x * x) ** 2))
    gradient(X)
    monkeypatch.setattr(Primitive, "derivative", None)
    np.testing.assert_allclose(gradient(Y), 4 * Y * (matrix(3).T @ matrix(3) @ Y**2))


# ----- Errors -----


def _nothing(x: Any, out: Any) -> None:
    pass


def _returning(x: Any, out: Any) -> Any:
    return 2 * x


def _changing(x: Any, out: Any) -> None:
    out[...] = x
    x[0] = 7.0


def _raising(x: Any, out: Any) -> None:
    message = "no such thing"
    raise RuntimeError(message)


def _partly(x: Any, out: Any) -> None:
    out[1:] = x[1:]


def _adding(x: Any, out: Any) -> None:
    out += x


def _same(x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        (_nothing, "kernel A has not written 3 of the 3 elements of its result 0"),
        (_partly, "kernel A has not written 1 of the 3"),
        (_adding, "or has added to them"),
        (_returning, "kernel A has returned a ndarray.*out\\[...\\] = result"),
        (_changing, "kernel A has changed its input 0"),
        (_raising, "kernel A has raised RuntimeError: no such thing.*with 1 inputs, then 1 arrays"),
        (lambda x: None, "kernel A has raised TypeError"),
        (numba.njit(lambda x, out: x.nonsense), "kernel A has raised TypingError"),
    ],
)
@pytest.mark.parametrize("how", ["direct", "jit", "vmap"])
def test_what_a_kernel_does_wrong_is_named(forward: Any, words: str, how: str) -> None:
    own = nb.primitive(forward, shape=_same, name="kernel A")
    call: Any = {"direct": own, "jit": nb.jit(lambda x: own(x + 1.0)), "vmap": lambda x: nb.vmap(own)(x[None])}[how]
    with pytest.raises(ArgumentError, match=words):
        call(X.copy())


def test_integers_that_are_not_written() -> None:
    with pytest.raises(ArgumentError, match="has not written 2 of the 2"):
        nb.primitive(_nothing, shape=lambda x: (2, np.int32))(X)
    minus = nb.primitive(lambda x, out: out.fill(-1), shape=lambda x: (2, int))
    np.testing.assert_array_equal(minus(X), [-1, -1])


@pytest.mark.parametrize(
    ("shape", "error", "words"),
    [
        (lambda: (3, float), ArgumentError, "The shape rule of rule B has raised TypeError"),
        (lambda x: x.nothing, ArgumentError, "has raised AttributeError.*float64\\[3\\]"),
        (lambda x: None, ArgumentError, "must give \\(shape, dtype\\)"),
        (lambda x: (x.shape, x.dtype, 1), ArgumentError, "must give \\(shape, dtype\\)"),
        (lambda x: ((1.5,), float), ArgumentError, "must give"),
        (lambda x: (x.shape, "nonsense"), ArgumentError, "must give"),
        (lambda x: [], ArgumentError, "empty list"),
        (lambda x: ((-1,), float), ShapeError, "negative"),
        (lambda x: (x.shape, np.float16), DtypeError, "float16"),
        (lambda x: (x.shape, object), DtypeError, "object"),
    ],
)
def test_bad_shape_rules(shape: Any, error: type[NbgradError], words: str) -> None:
    with pytest.raises(error, match=words):
        nb.primitive(_nothing, shape=shape, name="rule B")(X)


def test_a_result_smaller_than_what_is_written() -> None:
    own = nb.primitive(lambda x, out: np.copyto(out, x), shape=lambda x: (2, float), name="too small")
    with pytest.raises(ArgumentError, match="too small has raised ValueError"):
        own(X)


def test_missing_rules() -> None:
    bare = nb.primitive(_two, shape=lambda x, y, k: [x, ((), x.dtype), (x.shape, bool)], name="bare")
    for call, words in (
        (lambda: nb.grad(loss_of(bare))(X, Y), "bare has no vjp, but its gradient.*cotangents"),
        (lambda: nb.jvp(lambda x: bare(x, Y, k=1)[0], (X,), (X,)), "bare has no jvp, but a derivative in forward mode"),
        (
            lambda: nb.grad(lambda x: np.sum(nb.grad(lambda x: np.sum(SMOOTH(x) ** 2))(x)))(X),
            "the vjp of smooth has no vjp.*give nb.primitive\\(...\\) with a vjp",
        ),
        (lambda: nb.hessian(lambda x: np.sum(SMOOTH(x) ** 2))(X), "the vjp of smooth has no [jv][jv]p"),
    ):
        with pytest.raises(ArgumentError, match=words):
            call()
    stopped = nb.grad(lambda x: np.sum(bare(nb.stop_gradient(x), Y, k=1.0)[0] * x))(X)
    np.testing.assert_allclose(stopped, X * Y)


def test_a_rule_that_gives_other_shapes() -> None:
    rule = nb.primitive(_nothing, shape=lambda x, y, g: ((2,), float), name="wrong rule")
    own = nb.primitive(lambda x, out: np.copyto(out, x), shape=_same, vjp=rule, name="own")
    with pytest.raises(ShapeError, match=r"wrong rule, the vjp of own.*float64\[2\].*float64\[3\] is needed"):
        nb.grad(lambda x: np.sum(own(x)))(X)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: nb.primitive(_nothing), ArgumentError, "needs a shape rule"),  # type: ignore[call-overload]
        (lambda: nb.primitive(_nothing, shape=(3,)), ArgumentError, "needs a shape rule.*tuple"),  # type: ignore
        (lambda: nb.primitive(3, shape=_same), DtypeError, "forward of nb.primitive must be a function"),  # type: ignore
        (lambda: nb.primitive(_nothing, shape=_same, vjp="x"), DtypeError, "vjp of nb.primitive"),  # type: ignore
        (lambda: nb.primitive(_nothing, shape=_same, name=""), ArgumentError, "name of a primitive"),
        (lambda: nb.primitive(shape=_same, cuda_vjp=_nothing), ArgumentError, "give cuda_forward"),
        (lambda: nb.primitive(_nothing, shape=_same, vjp=SMOOTH, cuda_vjp=_nothing), ArgumentError, "leave out"),
        (lambda: SMOOTH(), ArgumentError, "smooth was called without arrays"),
        (lambda: SMOOTH("text"), DtypeError, "Input 0 of smooth is a str"),
        (lambda: SMOOTH(X.astype(np.float16)), DtypeError, "float16.*astype"),
        (lambda: TWO(X, Y, k=X), DtypeError, "argument k of two is a numpy.ndarray.*by position"),
        (lambda: SMOOTH(X, wrong=1), ArgumentError, "wrong"),
        (lambda: nb.primitive(None, shape=_same, cuda_forward=_nothing)(X), DeviceError, "only a launcher for CUDA"),
    ],
)
def test_bad_arguments(call: Any, error: type[NbgradError], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


# ----- Devices -----


def _on_device(code: str) -> str:
    """The text that a program prints whose devices are simulated."""
    return simulated(code, NBGRAD_CUDA_SIMULATOR="1")


LAUNCHERS = """
    import numpy as np, nbgrad as nb

    def forward(x, y, out, *, stream):
        assert stream.__cuda_stream__() == (0, int(stream))
        for one in (x, y, out):
            facts = one.__cuda_array_interface__
            assert facts["version"] == 3 and facts["shape"] == one.shape, facts
            assert np.dtype(facts["typestr"]) == one.dtype and facts["strides"] is None
        np.asarray(out)[...] = np.asarray(x) * np.asarray(y)

    def backward(x, y, out, g, gx, gy, *, stream):
        gx[...] = np.asarray(g) * y
        gy[...] = np.asarray(g) * x

    x, y = np.array([1.0, 2.0, 3.0]), np.array([4.0, -1.0, 0.5])
    product = nb.primitive(None, shape=lambda x, y: x, cuda_forward=forward, cuda_vjp=backward, name="product")
    a, b = nb.Tensor(x, device="cuda"), nb.Tensor(y, device="cuda")
"""


def test_launchers_on_a_simulated_device() -> None:
    _on_device(
        LAUNCHERS
        + """
    found = product(a, b)
    assert found.device == "cuda"
    np.testing.assert_allclose(found.cpu().asnumpy(), x * y)
    loss = lambda a, b: np.sum(product(a * a, b) ** 2)
    for gradient in (nb.grad(loss, (0, 1)), nb.jit(nb.grad(loss, (0, 1)))):
        for _ in range(4):
            da, db = gradient(a, b)
        np.testing.assert_allclose(da.cpu().asnumpy(), 4 * x**3 * y**2)
        np.testing.assert_allclose(db.cpu().asnumpy(), 2 * x**4 * y)
    many = nb.vmap(product, (0, None))(nb.Tensor(np.stack([x, y]), device="cuda"), b)
    np.testing.assert_allclose(many.cpu().asnumpy(), [x * y, y * y])
    """
    )


def test_several_results_and_mistakes_on_a_simulated_device() -> None:
    _on_device(
        LAUNCHERS
        + """
    def three(x, a, b, c, *, stream):
        a[...], b[...], c[...] = x + 1, x.sum(), x > 1

    own = nb.primitive(None, shape=lambda x: [x, ((), x.dtype), (x.shape, bool)], cuda_forward=three)
    for one, expected in zip(own(a), (x + 1, x.sum(), x > 1)):
        np.testing.assert_allclose(one.cpu().asnumpy(), expected)

    mapped = nb.vmap(lambda x: own(x))(nb.Tensor(np.stack([x, y]), device="cuda"))
    for one, expected in zip(mapped, ([x + 1, y + 1], [x.sum(), y.sum()], [x > 1, y > 1])):
        np.testing.assert_allclose(one.cpu().asnumpy(), expected)

    def raised(launcher):
        try:
            nb.primitive(None, shape=lambda x: x, cuda_forward=launcher, name="wrong")(a).cpu().asnumpy()
        except nb.errors.ArgumentError as error:
            return str(error)

    assert "wrong has not written 3 of the 3" in raised(lambda x, out, *, stream: None)
    assert "wrong has raised TypeError" in raised(lambda x, out: None)
    assert "wrong has returned a int" in raised(lambda x, out, *, stream: out.fill(1) or 1)

    def on_host(x, out):
        assert type(x) is np.ndarray
        np.exp(x, out=out)

    fallback = nb.primitive(on_host, shape=lambda x: x, vjp=lambda x, out, g, grad: np.multiply(g, out, out=grad))
    found = fallback(a)
    assert found.device == "cuda"
    np.testing.assert_allclose(found.cpu().asnumpy(), np.exp(x))
    slope = nb.jit(nb.grad(lambda x: (fallback(x) ** 2).sum()))(a)
    np.testing.assert_allclose(slope.cpu().asnumpy(), 2 * np.exp(2 * x))
    """
    )


def test_kernels_of_numbas_simulator() -> None:
    _on_device(
        """
        import math, numpy as np, nbgrad as nb
        from numba import cuda

        @cuda.jit
        def scale(x, out):
            i = cuda.grid(1)
            if i < x.shape[0]:
                out[i] = math.sin(x[i])

        @cuda.jit
        def scale_vjp(x, out, g, grad):
            i = cuda.grid(1)
            if i < x.shape[0]:
                grad[i] = g[i] * math.cos(x[i])

        external_stream = getattr(cuda, "external_stream", int)  # Numba's simulator has no streams of others

        def launcher(kernel):
            def launch(*arrays, stream):
                kernel[(arrays[0].shape[0] + 3) // 4, 4, external_stream(int(stream))](*arrays)
            return launch

        sine = nb.primitive(
            None, shape=lambda x: x, cuda_forward=launcher(scale), cuda_vjp=launcher(scale_vjp), name="sine"
        )
        x = np.linspace(0.0, 1.0, 7)
        a = nb.Tensor(x, device="cuda")
        np.testing.assert_allclose(sine(a).cpu().asnumpy(), np.sin(x))
        found = nb.grad(lambda x: np.sum(sine(x) * x))(a)
        np.testing.assert_allclose(found.cpu().asnumpy(), np.sin(x) + x * np.cos(x))
        """,
    )


@pytest.mark.gpu
def test_a_numba_kernel_on_a_gpu() -> None:
    from numba import cuda as numba_cuda

    cuda: Any = numba_cuda

    @cuda.jit
    def double(x: Any, out: Any) -> None:
        i = cuda.grid(1)
        if i < x.shape[0]:
            out[i] = 2.0 * x[i]

    def launch(x: Any, out: Any, *, stream: Any) -> None:
        double[(x.shape[0] + 127) // 128, 128, cuda.external_stream(int(stream))](x, out)

    doubled: Any = nb.primitive(None, shape=_same, cuda_forward=launch)
    x = np.arange(1000.0)
    np.testing.assert_array_equal(doubled(nb.Tensor(x, device="cuda") + 1.0).asnumpy(), 2 * (x + 1))


# ----- The page -----

PAGE = Path(__file__).resolve().parents[1] / "docs" / "own-kernels.md"


SCRIPTS = [block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if ">>>" not in block]


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("script", SCRIPTS, ids=range(len(SCRIPTS)))
def test_the_pages_scripts_for_cuda(script: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(script)
    _on_device(f"import runpy; runpy.run_path({str(tmp_path / 'script.py')!r})")
