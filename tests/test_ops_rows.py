"""Rows of nbgrad.ops hand every parameter to the right one: each is compared with the function of NumPy or SciPy."""

from __future__ import annotations

import ast
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.special

import nbgrad as nb
from nbgrad import ops
from nbgrad.errors import ArgumentError
from nbgrad.ops.declarations import as_numpy, spelled
from nbgrad.ops.docstrings import SPELLINGS, WORDS, documented

pytestmark = pytest.mark.unoptimized

rng = np.random.default_rng(47)
NAN = np.where(rng.random((2, 3, 4)) < 0.3, np.nan, rng.normal(size=(2, 3, 4)))
VALUES = {
    "X": rng.normal(size=(2, 3, 4)),
    "P": rng.uniform(0.5, 2.0, size=(2, 3, 4)),
    "N": NAN,
    "Q": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]]),
    "Z": rng.normal(size=(4, 6)) + 1j * rng.normal(size=(4, 6)),
    "v": np.array([3.0, 1.0, 2.0]),
    "w": np.array([0.5, -1.0, 2.0]),
    "b": np.array([[True, False, True], [True, True, True]]),
    "k": np.array([0, 3, 1, 3]),
}
FOURIER = [
    f"{kind}{many}(Z{'.real' if kind in ('rfft', 'ihfft') else ''}, {arguments})"
    for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    for many, arguments in {
        "": "5, 0, 'ortho'",
        "2": "(3, 5), (1, 0), 'forward'",
        "n": "(3, 5), (1, 0), 'ortho'",
    }.items()
]
CALLS = {
    # ----- Elementwise -----
    "round(X, decimals=1)": "np.round(X, 1)",
    "xlogy(X, P)": "scipy.special.xlogy(X, P)",
    "sinc(X)": "np.sinc(X)",
    "isclose(v, w, 0.1, 3.0, True)": "np.isclose(v, w, 0.1, 3.0, True)",
    "allclose(v, w, 0.1, 3.0, True)": "np.allclose(v, w, 0.1, 3.0, True)",
    "where(b, v, w)": "np.where(b, v, w)",
    "sigmoid(X)": "scipy.special.expit(X)",
    "real(Z)": "np.real(Z)",
    "imag(Z)": "np.imag(Z)",
    "angle(Z)": "np.angle(Z)",
    "isreal(Z)": "np.isreal(Z)",
    # ----- Reductions -----
    "sum(X, (), True, dtype=np.complex128)": "np.sum(X, None, np.complex128, keepdims=True)",
    "mean(X, 1, True, dtype=np.float32)": "np.mean(X, 1, np.float32, keepdims=True)",
    "prod(X, (0, 2), True, np.float32)": "np.prod(X, (0, 2), np.float32, keepdims=True)",
    "nansum(N, 1, True, dtype=np.float32)": "np.nansum(N, 1, np.float32, keepdims=True)",
    "nanmean(N, 1, True, dtype=np.float32)": "np.nanmean(N, 1, np.float32, keepdims=True)",
    "all(b, 1, True)": "np.all(b, 1, keepdims=True)",
    "any(b, (), True)": "np.any(b, None, keepdims=True)",
    "var(X, 1, 1, True)": "np.var(X, 1, ddof=1, keepdims=True)",
    "std(X, 1, 1, True)": "np.std(X, 1, ddof=1, keepdims=True)",
    "amax(X, 1, True, initial=0.1, where=X < 1)": "np.max(X, 1, keepdims=True, initial=0.1, where=X < 1)",
    "amin(X, 1, True, initial=0.1, where=X < 1)": "np.min(X, 1, keepdims=True, initial=0.1, where=X < 1)",
    "argmax(X, 1, True)": "np.argmax(X, 1, keepdims=True)",
    "argmin(X, 1, True)": "np.argmin(X, 1, keepdims=True)",
    "logsumexp(X, 1, True)": "scipy.special.logsumexp(X, 1, keepdims=True)",
    "cumprod(X, 1, np.float32)": "np.cumprod(X, 1, np.float32)",
    "trapz(X, P, dim=1)": "scipy.integrate.trapezoid(X, P, axis=1)",
    # ----- Shapes -----
    "reshape(X, (4, -1))": "np.reshape(X, (4, -1))",
    "ravel(X)": "np.ravel(X)",
    "expand_dims(X, 1)": "np.expand_dims(X, 1)",
    "transpose(X, (2, 0, 1))": "np.transpose(X, (2, 0, 1))",
    "permute(X, (2, 0, 1))": "np.transpose(X, (2, 0, 1))",
    "swapdims(X, 0, 2)": "np.swapaxes(X, 0, 2)",
    "moveaxis(X, 0, 2)": "np.moveaxis(X, 0, 2)",
    "expand(v, (2, -1))": "np.broadcast_to(v, (2, 3))",
    "meshgrid(v, w, indexing='ij')": "np.meshgrid(v, w, indexing='ij')",
    "stack((v, w), 1)": "np.stack((v, w), 1)",
    "tensor_split(X, 3, 2)": "np.array_split(X, 3, 2)",
    "hsplit(X, [1])": "np.hsplit(X, [1])",
    "vsplit(X, 2)": "np.vsplit(X, 2)",
    "dsplit(X, [1, 3])": "np.dsplit(X, [1, 3])",
    "unstack(X, 1)": "np.moveaxis(X, 1, 0)",
    "tile(v, (2, 2))": "np.tile(v, (2, 2))",
    "hstack((v, k), dtype='float32', casting='unsafe')": "np.hstack((v, k), dtype='float32', casting='unsafe')",
    "vstack((v, w), dtype='float32', casting='unsafe')": "np.vstack((v, w), dtype='float32', casting='unsafe')",
    "dstack((X, P))": "np.dstack((X, P))",
    "column_stack((v, w))": "np.column_stack((v, w))",
    "fliplr(X)": "np.fliplr(X)",
    "flipud(X)": "np.flipud(X)",
    "flip(X, (0, 2))": "np.flip(X, (0, 2))",
    "roll(X, (1, 2), (0, 2))": "np.roll(X, (1, 2), (0, 2))",
    "rot90(X, 3, (0, 2))": "np.rot90(X, 3, (0, 2))",
    "diff(X, 2, 1, P[:, :1], X[:, :2])": "np.diff(X, 2, 1, P[:, :1], X[:, :2])",
    "tril(X, 1)": "np.tril(X, 1)",
    "triu(X, 1)": "np.triu(X, 1)",
    "diagonal(X, 1, 2, 0)": "np.diagonal(X, 1, 2, 0)",
    # ----- New arrays, positions -----
    "zeros_like(X, dtype=np.float32)": "np.zeros_like(X, np.float32)",
    "ones_like(X, dtype=np.float32)": "np.ones_like(X, np.float32)",
    "full_like(X, 2.5, dtype=np.float32)": "np.full_like(X, 2.5, np.float32)",
    "argwhere(b)": "np.argwhere(b)",
    "bincount(k, P.ravel()[:4], 6)": "np.bincount(k, P.ravel()[:4], 6)",
    # ----- Matrices -----
    "dot(X, Z)": "np.dot(X, Z)",
    "inner(X, P)": "np.inner(X, P)",
    "tensor_dot(X, P, ((0, 1), (0, 1)))": "np.tensordot(X, P, ((0, 1), (0, 1)))",
    "kron(Q, v)": "np.kron(Q, v)",
    "matrix_power(Q, 3)": "np.linalg.matrix_power(Q, 3)",
    "matrix_exp(Q)": "scipy.linalg.expm(Q)",
    "cond(Q, 1)": "np.linalg.cond(Q, 1)",
    "det(Q)": "np.linalg.det(Q)",
    "slogdet(Q)": "tuple(np.linalg.slogdet(Q))",
    "inverse(Q)": "np.linalg.inv(Q)",
    "cholesky(Q, True)": "scipy.linalg.cholesky(Q)",
    # ----- Fourier transforms -----
    **{call: f"scipy.fft.{call}" for call in FOURIER},
    "fftshift(Z, 1)": "np.fft.fftshift(Z, 1)",
    "ifftshift(Z, 0)": "np.fft.ifftshift(Z, 0)",
}
"""Calls of rows, with arguments that no default equals, beside those of NumPy or SciPy."""


def rows() -> list[str]:
    """The rows in the sources."""
    found = []
    for path in sorted(Path(ops.__file__).parent.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
            found += [node.name for one in decorators if ast.unparse(one).startswith("as_numpy(")]
    return found


ROWS = rows()


def equal(got, want):
    several = isinstance(got, tuple)
    for one, other in zip(got if several else [got], want if several else [want], strict=True):
        one = one.asnumpy() if isinstance(one, nb.Tensor) else one
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)


def test_every_row_is_compared():
    assert sorted(ROWS) == sorted(call.partition("(")[0] for call in CALLS)


@pytest.mark.parametrize("call", CALLS)
def test_rows_are_numpys_functions(call):
    def arguments(*args, **kwargs):
        return args, kwargs

    names = {"np": np, "scipy": scipy, **VALUES}
    name, _, rest = call.partition("(")
    args, kwargs = eval(f"arguments({rest}", {"arguments": arguments, **names})
    function, want = getattr(ops, name), eval(CALLS[call], names)
    equal(function(*args, **kwargs), want)
    signature = inspect.signature(function)
    if all(one.kind is not one.VAR_POSITIONAL for one in signature.parameters.values()):
        equal(function(**signature.bind(*args, **kwargs).arguments), want)


@pytest.mark.parametrize("name", ROWS)
def test_rows_show_and_document_all_their_parameters(name):
    function = getattr(ops, name)
    assert (function.__name__, function.__qualname__) == (name, name)
    assert function.__module__.startswith("nbgrad.ops.")
    documented_ones = [line for line in function.__doc__.split("\n") if " : " in line and not line.startswith(" ")]
    listed = [name for line in documented_ones for name in line.partition(" : ")[0].replace("*", "").split(", ")]
    assert listed == list(inspect.signature(function).parameters)
    assert "\nReturns\n-------\n" in function.__doc__


# ----- The decorators -----


def test_pythons_own_errors_are_those_of_the_signature():
    with pytest.raises(TypeError, match=r"rot90\(\) missing 2 required positional arguments: 'k' and 'dims'"):
        ops.rot90(np.ones((2, 2)))
    with pytest.raises(TypeError, match=r"round\(\) takes 1 positional argument but 2 were given"):
        ops.round(1.5, 1)
    with pytest.raises(ArgumentError, match=r"roll\(\) got axis= as well as dims="):
        ops.roll(np.ones(3), 1, dims=0, axis=0)


def test_sources_and_pickles_of_rows_are_found():
    source = inspect.getsource(ops.rot90)
    assert source.startswith("@as_numpy(shaping.rot90, ") and source.rstrip().endswith("dims: Any) -> Tensor: ...")
    assert pickle.loads(pickle.dumps(ops.rot90)) is ops.rot90


def test_a_row_may_take_any_number_of_arguments():
    def joined(first, *rest, last):
        return first, rest, last

    @as_numpy(joined, "All of them.", first=float)
    def all_of(first, *others, last=0): ...

    assert all_of(1, 2, 3, last=4) == (1.0, (2, 3), 4)
    assert all_of(1) == (1.0, (), 0)


def test_a_row_that_names_no_parameter_of_its_function_is_an_error():
    def two(a, b):
        return a, b

    with pytest.raises(IndexError):

        @as_numpy(two, "Three.")
        def three(a, b, c): ...


SHORT = """Sentences
    over two lines.

    Remark : this is no parameter.

    axis : int
        The axis.
    value, n : number
    -> Tensor, shape (n,)
        Sorted.
    ShapeError, DtypeError : If it does not fit.

    Notes
    -----
    More.

    >>> nb.ops.exp(0.0).item()
    1.0
    """
LONG = """Sentences
over two lines.

Remark : this is no parameter.

Parameters
----------
x : Tensor, ndarray or number
axis : int
    The axis.
    Also called `dim`.
value, n : number
dims : int, tuple of int or None
    Also called `axis`.
flag : bool

Returns
-------
Tensor, shape (n,)
    Sorted.

Raises
------
ShapeError, DtypeError
    If it does not fit.

Notes
-----
More.

Examples
--------
>>> import nbgrad as nb
>>> nb.ops.exp(0.0).item()
1.0"""


def test_docstrings_are_completed():
    def function(x, axis, value, n, dims=None, flag: bool = True): ...

    function.__doc__ = SHORT
    assert spelled(function).__doc__ == LONG
    function.__doc__ = SHORT
    assert documented(function).__doc__ == LONG.replace("    Also called `dim`.\n", "").replace(
        "    Also called `axis`.\n", ""
    )
    function.__doc__ = "None.\n\n>>> import numpy as np, nbgrad as nb"
    assert documented(function).__doc__.endswith("\n--------\n>>> import numpy as np, nbgrad as nb")


def test_functions_and_classes_work_without_docstrings():
    code = (
        "import nbgrad as nb\nfor name in dir(nb.ops): getattr(nb.ops, name)\nprint(nb.ops.sum([1, 2], axis=0).item())"
    )
    done = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.strip() == "3", done.stderr


def test_every_word_of_the_vocabulary_is_used():
    shown = "\n".join(getattr(ops, name).__doc__ or "" for name in dir(ops))
    names = {other: names for names in SPELLINGS for other in names}
    for key, word in WORDS.items():
        name = key.partition("=")[0]
        assert any(f"\n{other} : {word.partition(' | ')[0]}\n" in shown for other in names.get(name, (name,))), key
