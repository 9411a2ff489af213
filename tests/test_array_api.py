"""The array API standard: `nbgrad.numpy` beside `array-api-strict`, the reference that its authors publish.

The conformance suite of the standard needs the network, so CI runs it on its own (`.ci/run`); what is here needs only
the package: names, signatures, promotion, results, and that what is written for any array library differentiates.
"""

from __future__ import annotations

import inspect
import itertools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
import nbgrad.numpy as xp
from nbgrad import Tensor
from nbgrad.errors import ArgumentError

pytestmark = pytest.mark.unoptimized

strict = pytest.importorskip("array_api_strict")

NAMESPACES = {"": (strict, xp), "linalg.": (strict.linalg, xp.linalg), "fft.": (strict.fft, xp.fft)}
OWN = {"Device", "ArrayAPIStrictFlags", "__version__"}
"""What array-api-strict has besides the standard."""
NAMES = [
    (prefix, name)
    for prefix, (module, _) in NAMESPACES.items()
    for name in sorted(module.__all__)
    if name not in OWN and not name.endswith("strict_flags")
]
BOOL = ["bool"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = SIGNED + UNSIGNED
REAL = INTEGERS + FLOATS
NUMERIC = REAL + COMPLEX
ALL = BOOL + NUMERIC


def same(found: Any, expected: Any, rtol: float = 0.0) -> None:
    """Check that a result of ours is the reference's."""
    if isinstance(expected, tuple | list):
        assert isinstance(found, tuple | list) and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other, rtol)
        return
    if not hasattr(expected, "shape"):
        assert found == expected
        return
    values = np.asarray(expected)
    assert isinstance(found, Tensor), type(found)
    assert np.dtype(found.dtype) == values.dtype and found.shape == values.shape
    rtol = max(rtol, 4 * float(np.finfo(values.dtype).eps)) if values.dtype.kind in "fc" else 0.0
    np.testing.assert_allclose(found.asnumpy(), values, rtol=rtol, atol=rtol)


# ----- What is there -----


@pytest.mark.parametrize(("prefix", "name"), NAMES)
def test_names_and_signatures(prefix: str, name: str) -> None:
    """Every name is there, and takes what the standard's takes, by position and by name, with its defaults."""
    theirs, ours = (getattr(namespace, name) for namespace in NAMESPACES[prefix])
    if not isinstance(theirs, types.FunctionType):
        return
    given = inspect.signature(ours).parameters
    positional = [p for p in given.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in given.values())
    for position, wanted in enumerate(inspect.signature(theirs).parameters.values()):
        if wanted.kind is wanted.VAR_POSITIONAL:
            assert variadic
        elif wanted.kind is wanted.KEYWORD_ONLY:
            assert wanted.name in given or any(p.kind is p.VAR_KEYWORD for p in given.values()), wanted.name
        else:
            assert position < len(positional) or variadic, wanted.name
            if wanted.kind is wanted.POSITIONAL_OR_KEYWORD and not variadic:
                assert positional[position].name == wanted.name


def test_methods_and_attributes() -> None:
    theirs = [name for name in dir(strict.asarray(1.0)) if not name.startswith("_") or name.startswith("__")]
    assert [name for name in theirs if not hasattr(Tensor, name) and name not in object.__dict__] in (
        [],
        ["__annotations__"],
    )
    x = xp.asarray([[1.0, 2.0]])
    assert x.device == "cpu" and x.to_device("cpu") is x and x.T.shape == x.mT.shape == (2, 1)
    with pytest.raises(ArgumentError, match="device must be"):
        x.to_device("tpu")
    with pytest.raises(ArgumentError, match="no streams"):
        x.to_device("cpu", stream=1)


def test_namespace() -> None:
    for x in (Tensor([1.0]), xp.asarray([1.0]), nb.Parameter(Tensor([1.0]), name="p")):
        for version in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
            assert x.__array_namespace__(api_version=version) is xp
        with pytest.raises(ArgumentError, match=r"2025\.12, not '2019\.12'"):
            x.__array_namespace__(api_version="2019.12")
    assert xp.__array_api_version__ >= strict.__array_api_version__
    inside: list[Any] = []
    nb.grad(lambda x: inside.append(x.__array_namespace__()) or x.sum())(np.ones(2))
    assert inside == [xp]


def test_inspection() -> None:
    ours, theirs = xp.__array_namespace_info__(), strict.__array_namespace_info__()
    assert ours.default_device() == "cpu" and ours.devices()[0] == "cpu"
    assert set(ours.capabilities()) >= set(theirs.capabilities())
    for kind in (None, "bool", "integral", "signed integer", "unsigned integer", "numeric", ("bool", "real floating")):
        assert set(ours.dtypes(kind=kind)) == set(theirs.dtypes(kind=kind))
    for name, dtype in ours.dtypes().items():
        assert dtype == getattr(xp, name) and xp.isdtype(dtype, getattr(xp, name))
    for kind, dtype in theirs.default_dtypes().items():
        assert ours.default_dtypes(device="cpu")[kind] == dtype._np_dtype
    with pytest.raises(ArgumentError, match="no kind 'float'"):
        ours.dtypes(kind="float")
    with pytest.raises(ArgumentError, match="device must be"):
        ours.dtypes(device="tpu")


@pytest.mark.parametrize("f", [xp.expand_dims, xp.sum, xp.flip, xp.sort, xp.unstack, xp.cumulative_sum])
def test_an_axis_that_is_not_there(f: Callable[..., Any]) -> None:
    """The standard asks for an IndexError, NumPy's is a ValueError, too."""
    x = Tensor(np.ones((2, 3)))
    for axis in (5, -5):
        for kind in (IndexError, ValueError, nb.errors.ShapeError):
            with pytest.raises(kind, match=f"Axis {axis} is out of bounds"):
                f(x, axis=axis)


def test_array_api_compat_knows_tensors() -> None:
    compat = pytest.importorskip("array_api_compat")
    x = Tensor([1.0, 2.0])
    assert compat.is_array_api_obj(x) and compat.array_namespace(x, xp.asarray([1])) is xp
    assert compat.device(x) == "cpu" and compat.to_device(x, "cpu") is x and compat.size(x) == 2


# ----- Dtypes -----


def test_promotion() -> None:
    def outcome(namespace: Any, a: str, b: str) -> Any:
        try:
            return namespace.result_type(getattr(namespace, a), getattr(namespace, b))
        except TypeError:
            return None

    for a, b in itertools.product(ALL, ALL):
        expected = outcome(strict, a, b)
        if expected is None:
            continue  # the standard leaves it open
        assert outcome(xp, a, b) == expected._np_dtype
        x, y = xp.ones(2, dtype=getattr(xp, a)), xp.ones((3, 1), dtype=getattr(xp, b))
        found = x | y if a == b == "bool" else x + y
        assert found.dtype == expected._np_dtype and found.shape == (3, 2)
        assert xp.result_type(x, y) == xp.concat([x, y[:2, 0]]).dtype == xp.where(x > 0, x, y).dtype == found.dtype


@pytest.mark.parametrize("name", ALL)
def test_python_numbers_do_not_widen(name: str) -> None:
    dtype = getattr(xp, name)
    x = xp.ones(2, dtype=dtype)
    numbers = [True] if name == "bool" else [1] if name in INTEGERS else [1, 1.0, 1j] if name in COMPLEX else [1, 1.0]
    for number in numbers:
        for found in (x | number, number & x) if name == "bool" else (x + number, number - x, x * number):
            assert found.dtype == dtype
    for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating"):
        assert xp.isdtype(x.dtype, kind) is strict.isdtype(getattr(strict, name), kind)


def test_large_python_integers() -> None:
    """Those that only uint64 holds are numbers like others."""
    large = 2**63 + 5
    x, f, i = xp.asarray([large, 1], dtype=xp.uint64), xp.ones(2, dtype=xp.float32), xp.asarray([-1, 2])
    same(x - large, np.array([large, 1], np.uint64) - large)
    same(large - x, large - np.array([large, 1], np.uint64))
    same(f * large, np.ones(2, np.float32) * large)
    for compare in (xp.less, xp.equal, xp.greater_equal):
        for values in (x, f, i):
            same(compare(values, large), getattr(np, compare.__name__)(values.asnumpy(), large))
    assert xp.searchsorted(x[::-1], large) == 1 and xp.asarray(large).dtype == np.uint64
    with pytest.raises(ArgumentError, match="out of bounds for int64"):
        i + large
    with pytest.raises(nb.errors.DtypeError, match="does not fit"):
        x + 2**64


# ----- Results -----

Table = dict[str, tuple[list[str], Callable[..., Any]]]
UNARY: dict[str, str] = {
    "abs": "numeric", "acos": "float", "acosh": "float", "asin": "float", "asinh": "float", "atan": "float",
    "atanh": "float", "bitwise_invert": "integer", "ceil": "real", "conj": "complex", "cos": "float", "cosh": "float",
    "exp": "float", "expm1": "float", "floor": "real", "imag": "complex", "isfinite": "numeric", "isinf": "numeric",
    "isnan": "numeric", "log": "float", "log1p": "float", "log2": "float", "log10": "float", "logical_not": "bool",
    "negative": "numeric", "positive": "numeric", "real": "complex", "reciprocal": "float", "round": "numeric",
    "sign": "numeric", "signbit": "real float", "sin": "float", "sinh": "float", "square": "numeric", "sqrt": "float",
    "tan": "float", "tanh": "float", "trunc": "real",
}  # fmt: skip
BINARY: dict[str, str] = {
    "add": "numeric", "atan2": "real float", "bitwise_and": "integer", "bitwise_left_shift": "integer",
    "bitwise_or": "integer", "bitwise_right_shift": "integer", "bitwise_xor": "integer", "copysign": "real float",
    "divide": "float", "equal": "numeric", "floor_divide": "real", "greater": "real", "greater_equal": "real",
    "hypot": "real float", "less": "real", "less_equal": "real", "logaddexp": "real float", "logical_and": "bool",
    "logical_or": "bool", "logical_xor": "bool", "maximum": "real", "minimum": "real", "multiply": "numeric",
    "nextafter": "real float", "not_equal": "numeric", "pow": "numeric", "remainder": "real", "subtract": "numeric",
}  # fmt: skip
KINDS = {
    "bool": BOOL, "integer": INTEGERS, "real": REAL, "numeric": NUMERIC, "real float": FLOATS, "complex": COMPLEX,
    "float": FLOATS + COMPLEX, "all": ALL,
}  # fmt: skip


def samples(name: str, seed: int = 0, shape: tuple[int, ...] = (3, 4)) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if name == "bool":
        return rng.random(shape) < 0.5
    if name in INTEGERS:
        return rng.integers(1, 7, shape).astype(name)
    values = rng.uniform(0.1, 0.9, shape)
    return (values + 1j * rng.uniform(-0.9, 0.9, shape) if name in COMPLEX else values).astype(name)


def both(name: str, seed: int = 0, shape: tuple[int, ...] = (3, 4)) -> tuple[Any, Any]:
    values = samples(name, seed, shape)
    return xp.asarray(values), strict.asarray(values)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    rounding = name in ("ceil", "floor", "trunc") and np.lib.NumpyVersion(np.__version__) < "2.1.0"
    for dtype in FLOATS if rounding else KINDS[UNARY[name]]:  # NumPy 2.0 makes floats of integers
        ours, theirs = both(dtype)
        if name == "acosh" and dtype in FLOATS:
            ours, theirs = ours + 1, theirs + 1
        same(getattr(xp, name)(ours), getattr(strict, name)(theirs), 1e-6 if dtype in COMPLEX else 0.0)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    for dtype in KINDS[BINARY[name]]:
        for shapes in (((3, 4), (3, 4)), ((3, 1), (4,)), ((), (2, 1))):
            (a, c), (b, d) = (both(dtype, k, shape) for k, shape in enumerate(shapes))
            same(getattr(xp, name)(a, b), getattr(strict, name)(c, d), 1e-6 if dtype in COMPLEX else 1e-15)


FUNCTIONS: Table = {
    "argmax": (REAL, lambda n, x: [n.argmax(x), n.argmax(x, axis=0), n.argmax(x, axis=-1, keepdims=True)]),
    "argmin": (REAL, lambda n, x: [n.argmin(x), n.argmin(x, axis=0), n.argmin(x, axis=-1, keepdims=True)]),
    "argsort": (REAL, lambda n, x: [n.argsort(x), n.argsort(x, axis=0, descending=True), n.argsort(x, stable=False)]),
    "sort": (REAL, lambda n, x: [n.sort(x), n.sort(x, axis=0, descending=True), n.sort(x, stable=False)]),
    "sum": (NUMERIC, lambda n, x: [n.sum(x), n.sum(x, axis=0), n.sum(x, axis=(0, 1), keepdims=True, dtype=x.dtype)]),
    "prod": (NUMERIC, lambda n, x: [n.prod(x), n.prod(x, axis=0), n.prod(x, axis=(0, 1), keepdims=True)]),
    "max": (REAL, lambda n, x: [n.max(x), n.max(x, axis=0), n.max(x, axis=(0, 1), keepdims=True)]),
    "min": (REAL, lambda n, x: [n.min(x), n.min(x, axis=0), n.min(x, axis=(0, 1), keepdims=True)]),
    "mean": (FLOATS + COMPLEX, lambda n, x: [n.mean(x), n.mean(x, axis=0, keepdims=True)]),
    "std": (FLOATS, lambda n, x: [n.std(x), n.std(x, axis=0, correction=1.0), n.std(x, keepdims=True)]),
    "var": (FLOATS, lambda n, x: [n.var(x), n.var(x, axis=0, correction=1.0), n.var(x, keepdims=True)]),
    "all": (ALL, lambda n, x: [n.all(x), n.all(x, axis=0), n.all(x, axis=(0, 1), keepdims=True)]),
    "any": (ALL, lambda n, x: [n.any(x), n.any(x, axis=0), n.any(x, axis=(0, 1), keepdims=True)]),
    "cumulative_sum": (
        NUMERIC, lambda n, x: [n.cumulative_sum(x, axis=0), n.cumulative_sum(x[0, :], include_initial=True)],
    ),
    "cumulative_prod": (NUMERIC, lambda n, x: [n.cumulative_prod(x[0, :]), n.cumulative_prod(x, axis=1)]),
    "count_nonzero": (ALL, lambda n, x: [n.count_nonzero(x), n.count_nonzero(x, axis=0, keepdims=True)]),
    "diff": (NUMERIC, lambda n, x: [n.diff(x), n.diff(x, axis=0, n=2), n.diff(x, prepend=x[:, :1], append=x[:, :1])]),
    "searchsorted": (
        REAL, lambda n, x: [n.searchsorted(n.sort(x[0, :]), x), n.searchsorted(n.sort(x[0, :]), x, side="right")],
    ),
    "nonzero": (ALL, lambda n, x: n.nonzero(x)),
    "where": (ALL, lambda n, x: n.where(x == x[0, 0], x, n.zeros_like(x))),
    "clip": (REAL, lambda n, x: [n.clip(x), n.clip(x, x[0, 0]), n.clip(x, max=x[1, 1])]),
    "unique_all": (REAL, lambda n, x: tuple(n.unique_all(x))),
    "unique_counts": (REAL, lambda n, x: tuple(n.unique_counts(x))),
    "unique_inverse": (REAL, lambda n, x: tuple(n.unique_inverse(x))),
    "unique_values": (REAL, lambda n, x: n.unique_values(x)),
    "isin": (INTEGERS, lambda n, x: n.isin(x, x[0, :])),
    "take": (ALL, lambda n, x: [n.take(x, n.asarray([2, 0]), axis=0), n.take(x[0, :], n.asarray([1]))]),
    "take_along_axis": (ALL, lambda n, x: n.take_along_axis(x, n.asarray([[1], [0], [3]]))),
    "astype": (REAL, lambda n, x: [n.astype(x, n.float32), n.astype(x, n.bool), n.astype(x, x.dtype, copy=False)]),
    "broadcast_arrays": (ALL, lambda n, x: n.broadcast_arrays(x, x[0, :], x[:, :1])),
    "broadcast_to": (ALL, lambda n, x: n.broadcast_to(x[0, :], (2, 3, 4))),
    "concat": (ALL, lambda n, x: [n.concat([x, x]), n.concat((x, x), axis=1), n.concat([x, x], axis=None)]),
    "expand_dims": (ALL, lambda n, x: [n.expand_dims(x, axis=0), n.expand_dims(x, axis=-1)]),
    "flip": (ALL, lambda n, x: [n.flip(x), n.flip(x, axis=0), n.flip(x, axis=(0, 1))]),
    "moveaxis": (ALL, lambda n, x: n.moveaxis(x, 0, 1)),
    "permute_dims": (ALL, lambda n, x: n.permute_dims(x, (1, 0))),
    "repeat": (ALL, lambda n, x: [n.repeat(x, 2), n.repeat(x, n.asarray([1, 0, 2]), axis=0)]),
    "reshape": (ALL, lambda n, x: [n.reshape(x, (2, 6)), n.reshape(x, (-1,), copy=True)]),
    "roll": (ALL, lambda n, x: [n.roll(x, 1), n.roll(x, (1, -1), axis=(0, 1))]),
    "squeeze": (ALL, lambda n, x: n.squeeze(x[:1, :], axis=0)),
    "stack": (ALL, lambda n, x: [n.stack([x, x]), n.stack([x, x], axis=-1)]),
    "tile": (ALL, lambda n, x: n.tile(x, (2, 1))),
    "unstack": (ALL, lambda n, x: [n.unstack(x), n.unstack(x, axis=1)]),
    "tril": (ALL, lambda n, x: [n.tril(x), n.tril(x, k=1)]),
    "triu": (ALL, lambda n, x: [n.triu(x), n.triu(x, k=-1)]),
    "meshgrid": (NUMERIC, lambda n, x: [*n.meshgrid(x[0, :], x[1, :]), *n.meshgrid(x[0, :], x[1, :], indexing="ij")]),
    "like": (ALL, lambda n, x: [n.zeros_like(x), n.ones_like(x, dtype=n.int8), n.full_like(x, True)]),
    "matmul": (NUMERIC, lambda n, x: [n.matmul(x, x.T), x @ x[0, :], n.matmul(x[0, :], x[0, :])]),
    "matrix_transpose": (ALL, lambda n, x: [n.matrix_transpose(x), x.mT]),
    "tensordot": (NUMERIC, lambda n, x: [n.tensordot(x, x.T, axes=1), n.tensordot(x, x, axes=((0,), (0,)))]),
    "vecdot": (NUMERIC, lambda n, x: [n.vecdot(x, x), n.vecdot(x, x, axis=-2)]),
    "indexing": (ALL, lambda n, x: [x[0, :], x[1, ...], x[:, 1:3], x[::-1, None, :], x[x == x[0, 0]], x[-1, 2]]),
    "integer indexing": (ALL, lambda n, x: [x[n.asarray([0, 2])[:, None], n.asarray([1, 3])]]),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name: str) -> None:
    dtypes, f = FUNCTIONS[name]
    for dtype in dtypes:
        ours, theirs = both(dtype)
        same(f(xp, ours), f(strict, theirs), 1e-6 if dtype in ("float32", "complex64") else 1e-14)


CREATION: dict[str, Callable[[Any], Any]] = {
    "arange": lambda n: [n.arange(4), n.arange(1, 5, 2), n.arange(0.0, 1.0, 0.25), n.arange(3, dtype=n.float32)],
    "asarray": lambda n: [n.asarray(1.0), n.asarray([[1, 2]]), n.asarray(True), n.asarray(1, dtype=n.int8)],
    "complex": lambda n: [n.asarray(1j), n.asarray([1.0, 2j])],
    "zeros": lambda n: [n.zeros(2), n.zeros((), dtype=None), n.zeros((2, 0), dtype=n.int16, device=None)],
    "ones": lambda n: [n.ones(2), n.ones((), dtype=None), n.ones((2, 0), dtype=n.bool)],
    "full": lambda n: [n.full(2, 3), n.full((), 3.0), n.full((1, 2), True), n.full(2, 1, dtype=n.float32)],
    "eye": lambda n: [n.eye(3), n.eye(2, 3, k=1, dtype=n.int32), n.eye(0), n.eye(2, dtype=None)],
    "linspace": lambda n: [n.linspace(0, 1, 5), n.linspace(0.0, 1.0, 4, endpoint=False, dtype=n.float32)],
    "shapes": lambda n: [n.broadcast_shapes((3, 1), (4,)), n.broadcast_shapes((), (2,))],
    "can_cast": lambda n: [n.can_cast(n.float32, n.float64), n.can_cast(n.int8, n.uint8), n.can_cast(n.int8, n.int16)],
    "iinfo": lambda n: [(i.bits, i.max, i.min) for i in (n.iinfo(n.int8), n.iinfo(n.uint64), n.iinfo(n.asarray(1)))],
    "finfo": lambda n: [
        (i.bits, i.eps, i.max, i.min, i.smallest_normal) for i in (n.finfo(n.float32), n.finfo(n.ones(1)))
    ],
    "fftfreq": lambda n: [n.fft.fftfreq(5), n.fft.rfftfreq(6, d=0.5), n.fft.fftfreq(4, dtype=n.float32)],
}  # fmt: skip


@pytest.mark.parametrize("name", CREATION)
def test_creation(name: str) -> None:
    same(CREATION[name](xp), CREATION[name](strict))


def spd(n: Any, x: Any) -> Any:
    """A symmetric positive definite matrix."""
    return x @ n.matrix_transpose(x) + 0.5 * n.eye(x.shape[-2], dtype=x.dtype)


LINALG: dict[str, Callable[[Any, Any], Any]] = {
    "cholesky": lambda n, x: [n.linalg.cholesky(spd(n, x)), n.linalg.cholesky(spd(n, x), upper=True)],
    "cross": lambda n, x: n.linalg.cross(x[:, :3], x[:, 1:]),
    "det": lambda n, x: n.linalg.det(spd(n, x)),
    "diagonal": lambda n, x: [n.linalg.diagonal(x), n.linalg.diagonal(x, offset=1)],
    "eigvalsh": lambda n, x: [n.linalg.eigvalsh(spd(n, x)), n.linalg.eigh(spd(n, x)).eigenvalues],
    "inv": lambda n, x: n.linalg.inv(spd(n, x)),
    "matmul": lambda n, x: n.linalg.matmul(x, x.T),
    "matrix_norm": lambda n, x: [n.linalg.matrix_norm(x, ord=o) for o in ("fro", "nuc", 1, -1, 2, -2)],
    "matrix_power": lambda n, x: [n.linalg.matrix_power(spd(n, x), k) for k in (0, 3, -1)],
    "matrix_rank": lambda n, x: [n.linalg.matrix_rank(x), n.linalg.matrix_rank(n.zeros_like(x))],
    "matrix_transpose": lambda n, x: n.linalg.matrix_transpose(x),
    "outer": lambda n, x: n.linalg.outer(x[0, :], x[1, :]),
    "pinv": lambda n, x: [n.linalg.pinv(x), n.linalg.pinv(x, rtol=1e-3)],
    "qr": lambda n, x: [n.linalg.qr(x).Q.shape, n.linalg.qr(x, mode="complete").Q.shape, abs(n.linalg.qr(x).R)],
    "slogdet": lambda n, x: [n.linalg.slogdet(spd(n, x)).sign, n.linalg.slogdet(spd(n, x)).logabsdet],
    "solve": lambda n, x: [n.linalg.solve(spd(n, x), x), n.linalg.solve(spd(n, x), x[:, 0])],
    "svdvals": lambda n, x: [n.linalg.svdvals(x), n.linalg.svd(x, full_matrices=False).S, n.linalg.svd(x).Vh.shape],
    "tensordot": lambda n, x: n.linalg.tensordot(x, x, axes=2),
    "trace": lambda n, x: [n.linalg.trace(x), n.linalg.trace(x, offset=1)],
    "vecdot": lambda n, x: n.linalg.vecdot(x, x),
    "vector_norm": lambda n, x: [
        *[n.linalg.vector_norm(x, ord=o) for o in (2, 1, float("inf"), 3, 0, -1)],
        n.linalg.vector_norm(x, axis=0, keepdims=True), n.linalg.vector_norm(x, axis=(0, 1)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", LINALG)
def test_linalg(name: str) -> None:
    for dtype in FLOATS:
        ours, theirs = both(dtype)
        same(LINALG[name](xp, ours), LINALG[name](strict, theirs), 2e-4 if dtype == "float32" else 1e-11)


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 3, 3), (0, 0), (2, 0, 0)])
@pytest.mark.parametrize("name", "eig eigvals eigh eigvalsh inv det slogdet cholesky svd svdvals pinv qr".split())
def test_batches_of_no_matrices(name: str, shape: tuple[int, ...]) -> None:
    expected, found = (getattr(n.linalg, name)(n.zeros(shape)) for n in (np, xp))
    for one, other in zip(*[v if isinstance(v, tuple) else (v,) for v in (expected, found)], strict=True):
        assert other.shape == np.shape(one) and other.dtype == np.asarray(one).dtype


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), (0, 0), (3,), (2, 1), (0, 1)])
def test_empty_masks(shape: tuple[int, ...]) -> None:
    """An axis of extent 0 fits any."""
    x, mask = np.arange(6.0).reshape(2, 3), np.zeros(shape, bool)
    try:
        expected = x[mask]
    except IndexError:
        with pytest.raises(IndexError, match="boolean index"):
            xp.asarray(x)[mask]
        return
    for key in (mask, xp.asarray(mask)):
        assert xp.asarray(x)[key].shape == expected.shape
    written = xp.asarray(x, copy=True)
    written[mask] = 1.0
    same(written, x)


FFT: dict[str, Callable[[Any, Any], Any]] = {
    "fft": lambda n, z: [n.fft.fft(z), n.fft.fft(z, n=3, axis=0, norm="ortho")],
    "ifft": lambda n, z: [n.fft.ifft(z), n.fft.ifft(z, n=6, norm="forward")],
    "fftn": lambda n, z: [n.fft.fftn(z), n.fft.fftn(z, s=(2,), axes=(0,))],
    "ifftn": lambda n, z: [n.fft.ifftn(z), n.fft.ifftn(z, axes=(0, 1), norm="ortho")],
    "rfft": lambda n, z: [n.fft.rfft(n.real(z)), n.fft.rfft(n.real(z), n=5, axis=0)],
    "irfft": lambda n, z: [n.fft.irfft(z), n.fft.irfft(z, n=5, norm="ortho")],
    "rfftn": lambda n, z: n.fft.rfftn(n.real(z)),
    "irfftn": lambda n, z: n.fft.irfftn(z),
    "hfft": lambda n, z: n.fft.hfft(z),
    "ihfft": lambda n, z: n.fft.ihfft(n.real(z)),
    "shift": lambda n, z: [n.fft.fftshift(z), n.fft.ifftshift(z, axes=(0,))],
}


@pytest.mark.parametrize("name", FFT)
def test_fft(name: str) -> None:
    for dtype in COMPLEX:
        ours, theirs = both(dtype)
        same(FFT[name](xp, ours), FFT[name](strict, theirs), 1e-5 if dtype == "complex64" else 1e-13)


# ----- What it is for -----


def softmax_loss(x: Any) -> Any:
    """As people write it who do not know whose arrays they get."""
    n = x.__array_namespace__()
    shifted = x - n.max(x, axis=-1, keepdims=True)
    weights = n.exp(shifted) / n.sum(n.exp(shifted), axis=-1, keepdims=True)
    norms = n.linalg.vector_norm(weights, axis=-1)
    spread = n.std(n.permute_dims(x, (1, 0)), axis=0, correction=1.0)
    ordered = n.sort(n.reshape(x, (-1,)), descending=True)
    return n.sum(norms * spread) + n.sum(ordered * n.arange(ordered.shape[0], dtype=x.dtype))


def test_code_for_any_library_differentiates() -> None:
    x = np.random.default_rng(3).standard_normal((3, 4))
    value, gradient = nb.value_and_grad(softmax_loss)(x)
    np.testing.assert_allclose(value, float(softmax_loss(strict.asarray(x))), rtol=1e-13)
    step = 1e-6 * np.random.default_rng(4).standard_normal(x.shape)
    slope = float(softmax_loss(strict.asarray(x + step))) - float(softmax_loss(strict.asarray(x - step)))
    np.testing.assert_allclose(np.sum(gradient * step), slope / 2, rtol=1e-5)
    np.testing.assert_allclose(nb.jit(nb.grad(softmax_loss))(x), gradient, rtol=1e-12)
    nb.check_grads(lambda t: softmax_loss(xp.asarray(t)), (x,), order=2)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_descending_sorts_differentiate(axis: int | None) -> None:
    x = np.random.default_rng(5).standard_normal((3, 4))
    w = np.arange(12.0).reshape(x.shape if axis is not None else 12)
    for f in (lambda t: xp.sum(xp.sort(t, axis=axis, descending=True) * w), lambda t: xp.sort(t, axis=axis)):
        nb.check_grads(f, (x,))
