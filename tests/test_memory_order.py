"""Memory order: results lie in memory as NumPy's do, wherever that can be seen.

The table of NumPy's functions (surface_rows.py) is called with arrays in C order, in Fortran's, and with slices; the
strides of what comes back are those of NumPy's own result. Programs that write through views of results, or ask for an
order, are run by NumPy and by nbgrad.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
import nbgrad.numpy as nnp
from nbgrad.errors import NbgradError

from .numpy_surface import NAMESPACES, SAMPLES, TABLES, function_of, named, variables

pytestmark = pytest.mark.unoptimized

LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "sliced": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "turned": lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 0, -1)), -1, 0),
    "flipped": lambda a: np.flip(np.flip(a).copy()),
}
REPEATED = {
    "repeated": lambda a: np.broadcast_to(a[..., :1], a.shape),
    "repeated rows": lambda a: np.broadcast_to(a[:1], a.shape),
}
CALLS = [
    (namespace, name, call)
    for namespace, table in TABLES.items()
    for name, row in table.items()
    if row.kind in ("derivative", "zero", "integers")
    for call in row.calls
]


def strides(result: Any) -> Any:
    """The strides of every array in a result, without those of axes that have one element or none."""
    if isinstance(result, dict):
        return [strides(part) for part in result.values()]
    if isinstance(result, tuple | list):
        return [strides(part) for part in result]
    if not isinstance(result, nb.Tensor | np.ndarray) or 0 in result.shape or not result.shape:
        return None
    return [s for s, n in zip(result.strides, result.shape, strict=True) if n > 1]


OTHER = {
    "ix_": "positions, which nothing writes to: NumPy gives strided views of an array of pairs",
    "unravel_index": "the same",
    "nanpercentile": "NumPy calls a function of slices where there are NaN, and moves an axis of all results",
}
"""Functions whose results lie otherwise here, and why."""


@pytest.mark.parametrize("layout", [*LAYOUTS, *REPEATED])
def test_results_of_functions_lie_as_numpys(layout: str) -> None:
    lay_out = LAYOUTS.get(layout) or REPEATED[layout]
    wrong = []
    for namespace, name, call in CALLS:
        module, _ = NAMESPACES[namespace]
        f = named(module, name)
        arrays = [lay_out(SAMPLES[variable]) for variable in variables(call)]
        if name in OTHER or not any(a.ndim > 1 for a in arrays):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = function_of(call, f)(*arrays)
            except Exception:
                continue  # NumPy refuses the call, or has it not
            try:
                found = function_of(call, f)(*[nnp.asarray(a) for a in arrays])
            except NbgradError:
                continue  # without `differentiable_source`, say
        if strides(found) != strides(expected):
            wrong.append(f"{namespace}.{name} as {call}: {strides(found)}, NumPy {strides(expected)}")
    assert not wrong, "\n".join(wrong)


PROGRAMS = """
w = b.T * 1.0; w.reshape(-1)[1] = 9.0; r = w
w = np.copy(b.T); w.reshape(-1)[1] = 9.0; r = w
w = b.T.copy(); w.reshape(-1)[1] = 9.0; r = w
w = b.copy(order="F"); w.reshape(-1)[1] = 9.0; r = w
w = np.sin(b.T); w.reshape(-1)[1] = 9.0; r = w
w = np.where(b.T > 1, b.T, 0); w.reshape(-1)[1] = 9.0; r = w
w = np.sort(b.T, 0); w.ravel()[1] = 9.0; r = w
w = b.T.astype(float); w.ravel()[1] = 9.0; r = w
w = b.T.astype(float, order="C"); w.ravel()[1] = 9.0; r = w
w = np.cumsum(b.T, 0); w.ravel()[1] = 9.0; r = w
w = b[:, [0, 1]]; w.ravel()[1] = 9.0; r = w
w = np.einsum("ij->ji", b) + 0; w.ravel()[1] = 9.0; r = w
w = np.einsum("ij,ij->ji", b, b); w.ravel()[1] = 9.0; r = w
w = np.zeros_like(b.T); w.ravel()[1] = 9.0; r = w
w = np.zeros_like(b, order="F"); w.ravel()[1] = 9.0; r = w
w = b * 1.0; w.reshape(-1)[1] = 9.0; r = w
w = b * 1.0; v = w.ravel("F"); v[0] = 7.0; r = w
w = b.T * 1.0; v = w.reshape(-1); v[1] = 9.0; r = v
w = b.T * 1.0; v = w.T.reshape(-1); v[1] = 9.0; r = w
w = b.T + b.T; w[0] = 7; w.T.ravel()[2] = 1; r = w
w = np.concatenate([b.T, b.T]); w.reshape(-1)[1] = 5.0; r = w
w = np.stack([b.T, b.T], -1); w.reshape(-1)[1] = 5.0; r = w
c = (b.T * 1.0).astype(complex, order="A"); w = np.stack([c, c * 2.0]); w.reshape(-1)[1] = 9.0; r = np.real(w)
w = np.roll(b.T, 1, 0); w.reshape(-1)[1] = 5.0; r = w
w = np.pad(b.T, 1); w.reshape(-1)[1] = 5.0; r = w
w = b.T @ b; w.reshape(-1)[1] = 5.0; r = w
w = np.add(b.T, 1, order="C"); w.reshape(-1)[1] = 5.0; r = w * 1
w = np.add(b, 1, order="F"); w.reshape(-1)[1] = 5.0; r = w * 1
w = np.outer(b, b); np.einsum("ii->i", w)[:] = 0; r = w
w = b * 1.0; np.einsum("ij->ji", w)[:] = 3.0; r = w
w = b * 1.0; d = np.diagonal(w); w[0, 0] = 9; r = d * 1
w = b * 1.0; d = np.diagonal(w, 1); w[0, 1] = 9; r = d * 1
y = b.ravel() * 1; v = np.lib.stride_tricks.sliding_window_view(y, 2); y[1] = 50.0; r = v * 1
y = b * 1; v = np.lib.stride_tricks.sliding_window_view(y, 2, axis=1)[1]; y[1, 1] = 50.0; r = v * 1
b.T[0] = 1; b.ravel()[0] = 7; r = b * 1
b.reshape(-1)[1] = 0.1; b.ravel()[-1] = 0.5; r = b * 1
r = np.broadcast_to(b[0], (2, 3)).flatten(order="K")
r = np.array([np.may_share_memory(b, b[:, 0]), np.shares_memory(b[0], b[1])]) * b[0, 0]
r = np.ravel(b.T * 1.0, "K")
r = np.ravel(b[::-1], "K")
r = (b.T * 1.0).flatten("A")
r = (b.T * 1.0).reshape(-1, order="A")
r = b.copy(order="F").ravel("K")
r = b.reshape((3, 2), order="A")
w = np.conj(b); w.reshape(-1)[1] = 9.0; r = w + b
w = np.full((2, 3), 0.5).T + b[0, 0]; w.reshape(-1)[1] = 9.0; r = w
w = b * 1.0; w.flat = 0.5; w = w.T + b[0, 0]; w.reshape(-1)[1] = 9.0; r = w
w = np.conj(b[0]); r = b * (2.0 if w.flags.c_contiguous else 3.0)
w = np.roll(b.T, 0, axis=0); w.reshape(-1)[1] = 9.0; r = w
w = np.reshape(b, (3, 2), order="F"); r = b * sum(w.strides)
w = np.empty_like(np.diagonal(b)); w[...] = np.diagonal(b); r = b * (2.0 if w.flags.f_contiguous else 3.0)
v = b[0, :1] * 1.0; d = np.diag(v); v /= 2.5; r = d
w = np.dot(b.T, 2.0); w.reshape(-1)[1] = 9.0; r = w
w = np.argmax(np.stack([b.T, b.T], 1), axis=1); w.reshape(-1)[1] = 9; r = w * b[0, 0]
w = np.median(np.stack([b.T, b.T, -b.T], 1), axis=1); w.reshape(-1)[1] = 9.0; r = w
w = np.broadcast_to(b[0], (2, 3)).astype(float); w.reshape(-1)[1] = 9.0; r = w
w = np.hstack([np.broadcast_to(b[0], (2, 3))] * 2); w.reshape(-1)[1] = 9.0; r = w
import numpy; p = numpy.arange(6.0); v = np.real(p); p[1] = 9.0; r = v * b[0, 0]
import numpy; p = numpy.arange(6.0); v = np.asfortranarray(p); v[0] = 4.0; p[1:] = 9.0; r = v * b[0, 0]
w = np.zeros_like(b); w[...] = w[0] + b[0]; w = np.copy(w); w.reshape(-1)[1] = 9.0; r = w
w = np.zeros_like(b); w[...] = b[0]; w = np.fft.fft(w).real; w.reshape(-1)[1] = 9.0; r = w
w = np.dot(b.reshape(1, 2, 3).transpose(2, 0, 1), 2.0); w.reshape(-1)[1] = 9.0; r = w
i = np.copy(b[:, :2], order="F").astype(int); w = np.dot(i, i); w.reshape(-1)[1] = 9; r = w * b[0, 0]
i = np.copy(b[:, :2], order="F").astype(int); w = i @ i; w.reshape(-1)[1] = 9; r = w * b[0, 0]
w = np.inner(b.T, 2.0); w.reshape(-1)[1] = 9.0; r = w
w = np.delete(b.T, 0, axis=0); w.reshape(-1)[1] = 9.0; r = w
w = np.tile(b.T, (1, 2)); w.reshape(-1)[1] = 9.0; r = w
w = np.cumprod(b, 0); w.reshape(-1)[1] = 9.0; r = w
d = np.diagonal(np.stack([b.T, 2 * b.T]).transpose(2, 0, 1)); w = np.stack([d, d * 2]); w.reshape(-1)[1] = 9.0; r = w
d = np.diagonal(np.stack([b.T, 2 * b.T]).transpose(2, 0, 1)); w = d * 2; w.reshape(-1)[1] = 9.0; r = w
w = b.T * 0.6 + np.zeros(b.T.shape); w.reshape(-1)[1] = 9.0; r = w
w = b.T * 0.6 + np.full(b.T.shape, 2.0); w.reshape(-1)[1] = 9.0; r = w
w = b.T * 0.6 + np.ones_like(b.T); w.reshape(-1)[1] = 9.0; r = w
w = b.T * 0.6 + np.zeros(()); w.reshape(-1)[1] = 9.0; r = w
w = b.T * 0.6 + np.broadcast_to(2.0, b.T.shape); w.reshape(-1)[1] = 9.0; r = w
w = np.where(np.zeros(b.T.shape) < 1, b.T, 0); w.reshape(-1)[1] = 9.0; r = w
w = np.cumsum(b, 0); w.reshape(-1)[1] = 9.0; r = w
w = np.nancumprod(b, 0); w.reshape(-1)[1] = 9.0; r = w
w = np.nancumsum(b, 0); w.reshape(-1)[1] = 9.0; r = w
w = np.maximum.accumulate(b, 0); w.reshape(-1)[1] = 9.0; r = w
w = np.multiply.accumulate(b, 0); w.reshape(-1)[1] = 9.0; r = w
w = np.hypot.accumulate(b, 0); w.reshape(-1)[1] = 9.0; r = w
w = np.cumulative_prod(b, axis=0); w.reshape(-1)[1] = 9.0; r = w
w = np.cumulative_sum(b, axis=0, include_initial=True); w.reshape(-1)[1] = 9.0; r = w
z = b.T * 1j; z.imag = True; w = np.conj(z); w.reshape(-1)[1] = 9.0; r = np.real(w * w)
z = b.T * 1j; z.real = 2.0; w = np.square(z); w.reshape(-1)[1] = 9.0; r = np.real(w * w)
c = np.stack([b, b]).transpose(1, 0, 2); w = np.tril(c) * b[0]; w.reshape(-1)[1] = 9.0; r = w
c = np.stack([b, b]).transpose(1, 0, 2); w = np.triu(c, -1) * b[0, 0]; w.reshape(-1)[1] = 9.0; r = w
c = np.stack([b, b]).transpose(0, 2, 1); w = np.round(c, 1) + b[0, 0]; w.reshape(-1)[1] = 9.0; r = w
c = np.stack([b, b]).T; w = np.round(c, 1) + b[0, 0]; w.reshape(-1)[1] = 9.0; r = w
c = np.stack([b, b]).transpose(1, 0, 2); w = np.average(c, axis=-1, weights=[1, 2, 3]); w.reshape(-1)[1] = 9.0; r = w
c = np.stack([b, b]).transpose(1, 0, 2); w = np.choose((c > 2) * 1, [c, 2.0 * c]); w.reshape(-1)[1] = 9.0; r = w
c = np.stack([b, b, b]).transpose(1, 0, 2); w = np.cross(c, 2.0 * c); w.reshape(-1)[1] = 9.0; r = w
w = np.delete(b, [0], axis=1); w.reshape(-1)[1] = 9.0; r = w
w = np.delete(np.hstack([b, 2.0 * b]), [0, -1], axis=1); w.reshape(-1)[1] = 9.0; r = w
w = np.delete(b, [True, False, False], axis=1); w.reshape(-1)[1] = 9.0; r = w
w = np.linspace(b, 2.0 * b, 3, axis=1); w.reshape(-1)[1] = 9.0; r = w
c = np.stack([b, b]).T[..., None]; w = c @ np.swapaxes(c, -1, -2); w.reshape(-1)[1] = 9.0; r = w
c = np.stack([b, b]).T[..., None]; w = c @ c[0, 0].T; w.reshape(-1)[1] = 9.0; r = w
c = np.stack([b, b])[..., None, None].transpose(1, 2, 0, 4, 3); w = np.linalg.inv(c + 1.0); w.ravel("K")[1] = 9.0; r = w
c = np.stack([b, b])[..., None, None].transpose(1, 0, 2, 4, 3); w = np.linalg.det(c); w.reshape(-1)[1] = 9.0; r = w
c = np.stack([b, b])[..., None, None].transpose(2, 1, 0, 4, 3); w = np.linalg.svd(c)[1]; w.reshape(-1)[1] = 9.0; r = w
""".strip().splitlines()
BASE = np.arange(6.0).reshape(2, 3) + 0.5


def weighted(result: Any) -> Any:
    """A number that tells the elements of a result apart."""
    return np.sum(result * np.arange(1.0, 1 + np.size(result)).reshape(np.shape(result)))


def run(program: str, library: Any, b: Any) -> Any:
    names = {"np": library, "b": b}
    exec(program, names)
    return names["r"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_that_show_the_order_of_memory(program: str) -> None:
    compiled = nb.jit(lambda b: weighted(run(program, np, b)))  # one function for all layouts
    layouts = [*LAYOUTS.values(), lambda b: b.T.copy().T]
    before = BASE.copy()
    for make in [*layouts, *layouts]:
        layout = lambda b, make=make: make(b.copy())  # noqa: E731 - a program may write to its argument
        expected = run(program, np, layout(BASE))
        np.testing.assert_array_equal(np.asarray(run(program, nnp, nnp.asarray(layout(BASE)))), expected)
        for library in (np, nnp):
            value, gradient = nb.value_and_grad(lambda b, np=library: weighted(run(program, np, b)))(layout(BASE))
            np.testing.assert_allclose(value, weighted(expected), rtol=1e-14)
            step = 1e-6 * np.cos(BASE)
            ahead, behind = (weighted(run(program, np, layout(BASE + s))) for s in (step, -step))
            np.testing.assert_allclose(np.sum(gradient * step), (ahead - behind) / 2, rtol=2e-3, atol=1e-8)
        np.testing.assert_allclose(compiled(layout(BASE)), weighted(expected), rtol=1e-14)
    np.testing.assert_array_equal(BASE, before)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_made_of_tensors_lie_as_numpys(layout: str) -> None:
    b = LAYOUTS[layout](BASE)
    x = nnp.asarray(b) * 1
    assert x.strides == (b * 1).strides == x.asnumpy().strides
    assert x.tobytes("A") == (b * 1).tobytes("A")
    shared = x.asnumpy()
    shared.T.reshape(-1)[0] = 70.0
    expected = b * 1
    expected.T.reshape(-1)[0] = 70.0
    np.testing.assert_array_equal(np.asarray(x), expected)


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_orders_that_are_asked_for(layout: str, order: Any) -> None:
    for make in (
        lambda np, b: np.array(b, order=order),
        lambda np, b: np.copy(b, order=order),
        lambda np, b: b.copy(order),
        lambda np, b: np.zeros_like(b, order=order),
        lambda np, b: np.multiply(b, 2, order=order),
        lambda np, b: b.astype(np.float32, order=order),
        lambda np, b: np.asarray(b, order=order),
        lambda np, b: np.asfortranarray(b),
        lambda np, b: np.ascontiguousarray(b),
        lambda np, b: np.require(b, requirements="F"),
        lambda np, b: np.full((2, 3), 1.0, order=order if order in "CF" else "C"),
    ):
        ours, theirs = make(nnp, nnp.asarray(LAYOUTS[layout](BASE))), make(np, LAYOUTS[layout](BASE))
        assert strides(ours) == strides(theirs)
        for flag in ("c_contiguous", "f_contiguous", "fnc", "forc"):
            assert getattr(ours.flags, flag) == getattr(theirs.flags, flag)


def test_windows_are_only_read() -> None:
    y = nnp.arange(4.0)
    with pytest.raises(NbgradError, match="read-only"):
        nnp.lib.stride_tricks.sliding_window_view(y, 2)[0, 0] = 1.0


VIEWS = "b b[0] b[1] b[:,0] b[:,1] b[:,:1] b[::-1] b.T[0] b[...,::2] b[...,1::2] b.reshape(-1)[2:5] b[:,None]".split()


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (2, 1, 0)])
def test_memory_that_views_share(axes: tuple[int, ...]) -> None:
    def shared(b: Any) -> list[tuple[bool, bool]]:
        views = [eval(view, {"b": b}) for view in VIEWS]
        return [(np.shares_memory(v, w), np.may_share_memory(v, w)) for v in views for w in views]

    b = np.arange(12.0).reshape(2, 3, 2).transpose(axes)
    for made in (lambda b: b, lambda b: b * 1.0):
        (_, found), _ = nb.value_and_grad(lambda b, made=made: (np.sum(b), shared(made(b))), has_aux=True)(b)
        assert list(map(tuple, found)) == shared(made(b))


# ----- Branches and loops by value -----


def order_after_a_loop(b: Any) -> Any:
    w = np.clip(b, -9.0, 9.0)
    while np.sum(w**2) > 0.5:
        w = w * 0.6 + 0.01
    w.reshape(-1)[1] += 0.5
    return w


def order_by_turns(b: Any) -> Any:
    w = b.T
    while np.sum(w**2) > 0.5:
        w = w * 0.6 + np.zeros(w.shape)
    w.reshape(-1)[1] += 0.5
    return w


def order_by_branch(b: Any) -> Any:
    w = b.T * 1.0 if np.sum(b) > 10.0 else np.ascontiguousarray(b.T)
    w.reshape(-1)[1] += 0.5
    return w


def order_inside_of_turns(b: Any) -> Any:
    w = b.T * 1.0
    for _ in range(int(np.sum(b) > 0) + 2):
        if np.sum(w) > 1.0:
            w.reshape(-1)[1] += 0.5
    return w


def shared_in_a_branch(b: Any) -> Any:
    w = np.cumsum(b)
    v = w[::-1]
    if v.max() > -0.2:
        v[0] = 5.0
        v[[-1, 0]] += w[::-1][[0, 1]]
    return w


def kind_by_branch(b: Any) -> Any:
    w = np.float64(0.25)
    if np.sum(b) > 10.0:
        w = np.asarray(np.sum(b))
    return w


def array_without_axes_by_branch(b: Any) -> Any:
    w = np.asarray(np.sum(b))
    if w > 10.0:
        w = np.where(w > 20.0, w, -0.75)
    return w


def array_without_axes_after_turns(b: Any) -> Any:
    w = np.asarray(np.sum(b))
    while w > 1.0:
        w = np.asarray(w * 0.5)
    return w


def dtype_by_branch(b: Any) -> Any:
    w = np.sum(b, axis=0)
    if np.sum(b) > 10.0:
        w = b[0].astype(np.float32)
    return w


def python_float_by_branch(b: Any) -> Any:
    w = 0.5
    if np.sum(b) > 10.0:
        w = np.argsort(b[0])[1]
    return w + np.float64(0.0) if isinstance(w, float) else w


def narrow_by_branch(b: Any) -> Any:
    w = 0.1
    if np.sum(b) > 10.0:
        w = b[0, 0].astype(np.float32)
    return b * w


def diagonal_of_what_is_written(b: Any) -> Any:
    w = np.stack([b, b]).T
    v = np.diagonal(w)
    np.multiply(w, 2.0, out=w)
    return v * 1.0


@pytest.mark.parametrize(
    "program",
    [
        dtype_by_branch,
        python_float_by_branch,
        narrow_by_branch,
        diagonal_of_what_is_written,
        order_after_a_loop,
        order_by_turns,
        order_by_branch,
        order_inside_of_turns,
        shared_in_a_branch,
        kind_by_branch,
        array_without_axes_by_branch,
        array_without_axes_after_turns,
    ],
)
def test_branches_and_loops_by_value(program: Any) -> None:
    compiled = nb.jit(nb.differentiable_source(program))
    for layout in [*LAYOUTS.values(), *LAYOUTS.values()]:
        for size in (0.1, 1.0, 3.0):
            expected = program(layout(BASE * size))
            found = compiled(layout(BASE * size))
            np.testing.assert_allclose(found, expected, rtol=1e-14)
            assert type(found) is type(expected) and found.dtype == expected.dtype


@pytest.mark.parametrize("where", [lambda v: v.flat, lambda v: v.T, lambda v: v[:2], lambda v: v.real])
def test_views_do_not_see_what_a_side_that_is_not_taken_writes(where: Any) -> None:
    def program(b: Any) -> Any:
        v = np.zeros(b.shape) + b
        w = np.broadcast_to(v, (2, *v.shape))
        if np.sum(b) < -1.0:
            where(v)[0] = 0.1
        return w

    np.testing.assert_array_equal(nb.jit(nb.differentiable_source(program))(BASE), program(BASE))
