"""The reference interpreter: runs any graph with plain NumPy, one node at a time.

In: output nodes and the arrays of the placeholders. Out: one array per output. It is the oracle for every
optimisation, what `NBGRAD_DISABLE_JIT=1` runs, and what computes the small values that Python control flow asks for.
The table lists the primitives in the order of primitives.py. SciPy is imported only where a special function needs it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import TracedValueError
from .host_functions import run_host
from .ir import Node, on_host, topological
from .shapes import Shape

Array = np.ndarray
Rule = Callable[..., Any]
SMALL = 1000
"""Arrays of at most so many elements are repeated by copies."""


def _special(name: str) -> Rule:
    def call(*operands: Array) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(*operands)

    return call


def _polygamma(n: Array, x: Array) -> Array:
    import scipy.special

    dtype = np.result_type(x.dtype, np.float32)
    return np.where(n == 0, scipy.special.digamma(x), scipy.special.polygamma(n.astype(int), x)).astype(dtype)


def sinc_derivative(n: Array, x: Array) -> Array:
    """The n-th derivative of sin(pi x)/(pi x).

    It is the integral over t in (0, 1) of (pi t)^n cos(pi x t + n pi/2). Near zero its Taylor series is summed; far
    from zero, repeated integration by parts gives the recurrence x f_n = pi^(n-1) sin(pi x + n pi/2) - n f_(n-1),
    which is stable where |pi x| exceeds n.
    """
    n, x = np.broadcast_arrays(np.asarray(n, float), np.asarray(x, float))
    out = np.empty(x.shape)
    for index in np.ndindex(*x.shape):
        out[index] = _sinc_derivative_at(int(n[index]), float(x[index]))
    return out


def _sinc_derivative_at(n: int, x: float) -> float:
    if not np.isfinite(x):
        return np.nan if np.isnan(x) else 0.0
    z = np.pi * x
    if abs(z) > n + 1:
        value = np.sinc(x)
        for k in range(1, n + 1):
            value = (np.pi ** (k - 1) * _shifted_sine(x, k) - k * value) / x
        return float(value)
    total, term, k = 0.0, 1.0, 0
    # sum over m of (-1)^m z^(2m) / (2m+1)!, differentiated n times term by term
    k = n + (n % 2)
    term = np.pi**n * (-1.0) ** (k // 2) / (k + 1)
    for j in range(1, k - n + 1):
        term *= z / j
    while abs(term) > 1e-18 * abs(total) or total == 0.0:
        total += term
        power = k - n
        term *= -z * z * (k + 1) / ((power + 1) * (power + 2) * (k + 3))
        k += 2
        if term == 0.0:
            break
    return float(total)


def _shifted_sine(x: float, quarters: int) -> float:
    """sin(pi x + quarters pi / 2), with pi x reduced exactly."""
    r = np.fmod(x, 2.0)
    s, c = np.sin(np.pi * r), np.cos(np.pi * r)
    return [s, c, -s, -c][quarters % 4]


def _select(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


def _join(re: Array, im: Array) -> Array:
    out = np.empty(re.shape, np.result_type(re.dtype, np.complex64))
    out.real, out.imag = re, im
    return out


def slices_of(ranges: Sequence[tuple[int, int, int]]) -> tuple[slice, ...]:
    """The slices that a `slice` node takes."""
    found: list[slice] = []
    for start, length, step in ranges:
        stop = start + length * step
        found.append(slice(start, None if stop < 0 else stop, step) if length else slice(0, 0))
    return tuple(found)


def _broadcast(params: tuple[Any, ...], x: Array) -> Array:
    shape: Shape = params[0]
    if math.prod(shape) > SMALL:
        return np.broadcast_to(x, shape)
    # A copy of few elements is made in a tenth of the time of a view.
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


def _pad(params: tuple[Any, ...], x: Array) -> Array:
    out = np.zeros([low + n + high for n, (low, high) in zip(x.shape, params[0], strict=True)], x.dtype)
    out[tuple([slice(low, low + n) for n, (low, _) in zip(x.shape, params[0], strict=True)])] = x
    return out


def _recurrence(params: tuple[Any, ...], a: Array, b: Array) -> Array:
    out = np.empty_like(b)
    steps = range(b.shape[-1])
    state = None  # nothing to multiply with the first factor, which may be infinite
    for i in reversed(steps) if params[0] else steps:
        state = b[..., i] if state is None else a[..., i] * state + b[..., i]
        out[..., i] = state
    return out


def _scatter_add(params: tuple[Any, ...], index: Array, updates: Array) -> Array:
    out = np.zeros(params[0], updates.dtype)
    np.add.at(out, index.ravel(), updates.ravel())
    return out


def _scatter_last(params: tuple[Any, ...], index: Array) -> Array:
    out = np.full(params[0], -1, np.int64)
    out[index.ravel()] = np.arange(index.size)
    return out


def _windows(params: tuple[Any, ...], size: tuple[int, int]) -> Iterator[tuple[int, int, Any, Any, Any, Any]]:
    """Per element (i, j) of the windows: which of them have it inside of the image, and at which rows and columns."""
    (kh, kw), stride, dilation, before, count = params[:5]
    for i in range(kh):
        for j in range(kw):
            inside, at = [], []
            for axis, k in ((0, i), (1, j)):
                place = np.arange(count[axis]) * stride[axis] + k * dilation[axis] - before[axis]
                valid = np.flatnonzero((place >= 0) & (place < size[axis]))
                inside.append(valid)
                at.append(place[valid])
            yield i, j, inside[0][:, None], inside[1], at[0][:, None], at[1]


def _unfold(params: tuple[Any, ...], x: Array) -> Array:
    out = np.zeros((x.shape[1], *params[0], x.shape[0], *params[4]), x.dtype)
    for i, j, y, x_, row, column in _windows(params, x.shape[2:]):
        out[:, i, j, :, y, x_] = np.moveaxis(x[:, :, row, column], (0, 1), (-1, -2))
    return out


def _fold(params: tuple[Any, ...], x: Array) -> Array:
    out = np.zeros((x.shape[3], x.shape[0], *params[5]), x.dtype)
    for i, j, y, x_, row, column in _windows(params, params[5]):
        out[:, :, row, column] += np.moveaxis(x[:, i, j, :, y, x_], (-1, -2), (0, 1))
    return out


def _window_argmax(params: tuple[Any, ...], x: Array) -> Array:
    kernel, stride, dilation, before, count = params
    places: list[list[np.ndarray]] = []
    for axis, size in enumerate(x.shape[2:]):
        many = count[axis]
        places.append(
            [
                np.arange(k * stride[axis], k * stride[axis] + kernel[axis] * dilation[axis], dilation[axis])
                - before[axis]
                if kernel[0]
                else np.arange(k * size // many, -(-(k + 1) * size // many))
                for k in range(many)
            ]
        )
        places[axis] = [p[(p >= 0) & (p < size)] for p in places[axis]]
    out = np.zeros((*x.shape[:2], *count), np.int64)
    for y, rows in enumerate(places[0]):
        for k, columns in enumerate(places[1]):
            at = (rows[:, None] * x.shape[3] + columns).ravel()
            values = x.reshape(*x.shape[:2], -1)[:, :, at]
            nan = np.isnan(values)
            last_nan = values.shape[-1] - 1 - np.argmax(nan[..., ::-1], axis=-1)
            out[:, :, y, k] = at[np.where(nan.any(-1), last_nan, np.argmax(values, axis=-1))]
    return out


def _matmul(a: Array, b: Array) -> Array:
    return np.matmul(a, b)


def _random_bits(key: Array, counter: Array) -> Array:
    """Philox2x32-10 (Salmon, Moraes, Dror and Shaw 2011) on the two words of each counter."""
    left, right = (np.array([counter & 0xFFFFFFFF, counter >> 32], np.uint64)).copy()
    for number in range(10):
        product = left * np.uint64(0xD256D193)
        left = (product >> 32) ^ right ^ ((key + np.uint64(number * 0x9E3779B9)) & 0xFFFFFFFF)
        right = product & 0xFFFFFFFF
    return left | right << 32


def _library(name: str, like: Array) -> Any:
    """A routine of BLAS or LAPACK for a dtype."""
    import scipy.linalg

    find: Any = scipy.linalg.get_blas_funcs if name == "trsm" else scipy.linalg.get_lapack_funcs
    return find(name, (like,))


def _lu(a: Array) -> Array:
    batch, n, _ = a.shape
    out = np.empty((batch, n + 2, n), a.dtype)
    for k in range(batch if n else 0):
        packed, pivots, _ = _library("getrf", a)(a[k].T)
        order, steps = np.arange(n), np.arange(n)
        for step, other in enumerate(pivots):
            order[[step, other]] = order[[other, step]]
        out[k] = [*packed.T, (order + 1) * np.where(pivots == steps, 1, -1), np.argsort(order) + 1]
    return out


def _cholesky(a: Array) -> Array:
    out = np.zeros_like(a)
    for k in range(len(a) if a.size else 0):
        factor, failed = _library("potrf", a)(a[k], lower=True, clean=True)
        out[k] = np.tril(np.full_like(factor, np.nan)) if failed else factor
    return out


def _triangular_solve(params: tuple[Any, ...], a: Array, b: Array) -> Array:
    solve = _library("trsm", b)
    lower, transposed, unit = map(int, params)
    found = [solve(1.0, x, y, lower=lower, trans_a=transposed, diag=unit) for x, y in zip(a, b, strict=True) if y.size]
    return np.array(found, b.dtype) if found else b


def _complete_pivots(a: Array) -> Array:
    batch, n, _ = a.shape
    out = np.empty((batch, 2, n), np.int64)
    for matrix, orders in zip(a.copy(), out, strict=True):
        orders[:] = np.arange(1, n + 1)
        for k in range(n - 1):
            rest = np.abs(matrix[k:, k:])
            rest[~(rest > rest[0, 0])] = 0.0
            best = np.unravel_index(np.argmax(rest), rest.shape) if rest.any() else (0, 0)
            row, column = k + int(best[0]), k + int(best[1])
            matrix[[k, row]] = matrix[[row, k]]
            matrix[:, [k, column]] = matrix[:, [column, k]]
            for order, other in zip(orders, (row, column), strict=True):
                order[[k, other]] = order[[other, k]]
                order[k] *= 1 if other == k else -1
            if matrix[k, k] != 0:
                matrix[k + 1 :] -= matrix[k + 1 :, [k]] / matrix[k, k] * matrix[k]
    return out


RULES: dict[str, Rule] = {
    # ----- Elementwise -----
    **{
        name: getattr(np, name)
        for name in (
            "exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh "
            "arccosh arctanh"
        ).split()
    },
    "rsqrt": lambda x: 1 / np.sqrt(x),
    **{name: _special(name) for name in "erf erfc gammaln digamma expit logit xlogy".split()},
    **{
        name: getattr(np, name)
        for name in (
            "negative absolute sign floor ceil rint trunc invert add subtract multiply divide power remainder fmod "
            "floor_divide maximum minimum fmax fmin copysign hypot arctan2 logaddexp logaddexp2 nextafter bitwise_and "
            "bitwise_or bitwise_xor left_shift right_shift equal not_equal less less_equal greater greater_equal "
            "logical_and logical_or logical_xor logical_not isnan isinf isfinite signbit"
        ).split()
    },
    "polygamma": _polygamma,
    "sinc_derivative": sinc_derivative,
    "random_bits": _random_bits,
    "select": _select,
    "alias": lambda x: x,
    "stop_gradient": lambda x: x,
    "custom": lambda value, *_: value,
    "complex": _join,
    "real": np.real,
    "imag": np.imag,
    "gather": lambda source, index: source[index],
    # ----- Reductions -----
    "sum": np.add.reduce,
    "prod": np.multiply.reduce,
    "max": np.maximum.reduce,
    "min": np.minimum.reduce,
    "matmul": _matmul,
    "lu": _lu,
    "cholesky": _cholesky,
    "complete_pivots": _complete_pivots,
}

PARAMETER_RULES: dict[str, Rule] = {
    "iota": lambda params: np.arange(params[0], dtype=np.int64),
    "cast": lambda params, x: x.astype(params[0]),
    # ----- Movement -----
    "reshape": lambda params, x: x.reshape(params[0]),
    "transpose": lambda params, x: x.transpose(params[0]),
    "broadcast": _broadcast,
    "slice": lambda params, x: x[slices_of(params[0])],
    "pad": _pad,
    "concatenate": lambda params, *xs: np.concatenate(xs, params[0]),
    # ----- Special kernels -----
    "recurrence": _recurrence,
    "accumulate": lambda params, x: getattr(np, params[0]).accumulate(x, axis=-1),
    "scatter_add": _scatter_add,
    "scatter_last": _scatter_last,
    "argsort": lambda params, x: np.argsort(x, axis=-1, kind="stable"),
    "unfold": _unfold,
    "fold": _fold,
    "window_argmax": _window_argmax,
    "triangular_solve": _triangular_solve,
    "host": run_host,
}


def evaluate_node(node: Node, operands: Sequence[Array]) -> Array:
    """The value of one node, given those of its inputs; always of the node's dtype and shape."""
    name = node.primitive.name
    rule = RULES.get(name)
    if rule is None:
        value = PARAMETER_RULES[name](node.params, *operands)
    elif node.primitive.kind == "reduction":
        value = rule(operands[0], axis=node.params[0])
    else:
        value = rule(*operands)
    if value.__class__ is not np.ndarray:
        value = np.asarray(value)
    assert value.shape == node.shape, (node, value.shape)
    return value if value.dtype == node.dtype else value.astype(node.dtype)


def interpret(outputs: Sequence[Node], arguments: Mapping[Node, Array] | None = None) -> list[Array]:
    """Run a graph with NumPy.

    `arguments` gives the arrays of placeholders; those it leaves out use their example value.
    """
    known = arguments or {}
    return interpret_order(topological(outputs, known), known, outputs)


def interpret_order(order: Sequence[Node], known: Mapping[Node, Array], outputs: Sequence[Node]) -> list[Array]:
    """The values of outputs, by computing nodes in an order; what they read must be known or come before them."""
    values = dict(known)
    uses: dict[Node, int] = dict.fromkeys(outputs, 1)
    quiet = True
    for node in order:
        for source in node.inputs:
            uses[source] = uses.get(source, 0) + 1
        if node.primitive.kind == "special":
            quiet = False
    with np.errstate(all="ignore"):
        if quiet:
            _compute(order, values, uses)
        else:
            # Library functions warn in other ways, too.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                _compute(order, values, uses)
    return [values[node] for node in outputs]


def _compute(order: Sequence[Node], values: dict[Node, Array], uses: dict[Node, int]) -> None:
    """Enter the values of nodes; each is forgotten after its last use."""
    for node in order:
        primitive = node.primitive
        if primitive.kind != "source":
            values[node] = evaluate_node(node, [values[source] for source in node.inputs])
            for source in node.inputs:
                uses[source] -= 1
                if uses[source] == 0 and source.inputs:
                    values.pop(source, None)
        elif primitive.name == "literal":
            values[node] = _number(node.params[0], node.dtype)
        elif node.value is not None:
            values[node] = on_host(node.value)
        elif primitive.name in ("constant", "input"):
            message = "A Tensor that jit or vmap recorded is used after the recording, when it has no value."
            raise TracedValueError(message)
        else:
            values[node] = evaluate_node(node, ())


@lru_cache(maxsize=4096)
def _number(data: bytes, dtype: np.dtype[Any]) -> Array:
    """A literal's value, for all to read."""
    return np.frombuffer(data, dtype).reshape(())
