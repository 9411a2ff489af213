"""`check_grads`: derivatives against finite differences, any order, both modes.

In: a function and a point. Out: nothing, or a GradientError that says which derivative is off, by how much, and where.
Called by users and by tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, GradientError
from ..record.container_leaves import map_leaves
from ..record.tensor import Tensor
from .arguments import flatten, name_of
from .jacobians import jvp, vjp
from .lent_arrays import kind_of, ndarrays


def check_grads(
    fn: Callable[..., Any],
    args: Any,
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
) -> None:
    """Compare derivatives with finite differences along random directions.

    Parameters
    ----------
    fn : callable
        Takes arrays, floats or containers of them; all are differentiated.
    args : sequence, or array or number
        The point, one entry per argument; of a function of one array or number, that alone will do.
    order : int
        Check derivatives up to this order, each from the one below.
    modes : sequence of {"fwd", "rev"}
    rtol, atol : float, optional
        Tolerances; by default they follow from the dtype.
    seed : int
        Of the random directions.

    Raises
    ------
    GradientError
        If a derivative disagrees.
    ArgumentError
        If the order or a mode does not exist.

    Notes
    -----
    The reference is a central difference of fourth order with Richardson's extrapolation (Ridders 1982 in spirit):
    about 11 digits in float64.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.check_grads(lambda x: np.sin(x) * x, (np.array([0.3, 2.0]),), order=3)
    """
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        message = (
            f"order must be an integer of at least 1, but got {order!r:.60}. Several arguments go into one tuple: "
            "check_grads(fn, (x, y))."
        )
        raise ArgumentError(message)
    unknown = [mode for mode in modes if mode not in ("fwd", "rev")]
    if unknown or not modes:
        message = f"modes must name 'fwd', 'rev' or both, but got {modes!r}."
        raise ArgumentError(message)
    alone = isinstance(args, np.ndarray) or kind_of(args) != "other"
    args = tuple([_concrete(arg) for arg in ((args,) if alone else args)])
    _check(fn, args, order, tuple(modes), rtol, atol, np.random.default_rng(seed), name_of(fn))


def _concrete(value: Any) -> Any:
    """Arguments with ndarrays for the arrays in them."""
    return map_leaves(lambda v: v.asnumpy() if isinstance(v, Tensor) else ndarrays([v])[0], value)


def _check(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    order: int,
    modes: tuple[str, ...],
    rtol: float | None,
    atol: float | None,
    rng: np.random.Generator,
    what: str,
) -> None:
    direction = _random_like(args, rng)
    eps, rtol, atol = _tolerances(args, rtol, atol)
    expected = _difference(fn, args, direction, eps)
    _, tangent = jvp(fn, args, direction)
    if "fwd" in modes:
        _compare(_vector(tangent), expected, rtol, atol, f"The forward derivative of {what}()")
    if "rev" in modes:
        out, vjp_fn = vjp(fn, *args)
        weights = _random_like(out, rng)
        cotangents = vjp_fn(*flatten(weights)[0])
        left = float(np.dot(_vector(weights), expected))
        # Fields of objects that hold no floats have no cotangent.
        along = map_leaves(lambda cotangent, d: None if cotangent is None else d, cotangents, direction)
        right = float(np.dot(_vector(cotangents), _vector(along)))
        scale = float(np.dot(np.abs(_vector(weights)), np.abs(expected)))
        _compare(np.array([right]), np.array([left]), rtol, atol + rtol * scale, f"The reverse derivative of {what}()")
    if order > 1:
        fixed = direction

        def forward(*point: Any) -> Any:
            return jvp(fn, point, fixed)[1]

        def reverse(*point: Any) -> Any:
            value, back = vjp(fn, *point)
            return back(*flatten(_ones_like(value))[0])

        if "fwd" in modes:
            _check(forward, args, order - 1, modes, rtol, atol, rng, f"{what}, forward mode of it,")
        if "rev" in modes:
            _check(reverse, args, order - 1, modes, rtol, atol, rng, f"{what}, reverse mode of it,")


def _tolerances(args: Any, rtol: float | None, atol: float | None) -> tuple[float, float, float]:
    """Step and tolerances for the narrowest dtype among the arguments."""
    dtypes = [np.asarray(leaf).dtype for leaf in flatten(args)[0] if kind_of(leaf) != "other"]
    resolution = max([float(np.finfo(d).eps) for d in dtypes if d.kind in "fc"], default=2.2e-16)
    loose = resolution ** (2 / 3) * 30
    return resolution**0.2, loose if rtol is None else rtol, loose if atol is None else atol


def _random_like(tree: Any, rng: np.random.Generator) -> Any:
    def leaf(value: Any) -> Any:
        if kind_of(value) == "other":
            return value
        array = np.asarray(value.asnumpy() if isinstance(value, Tensor) else value)
        if array.dtype.kind not in "fc":
            return np.zeros(array.shape, array.dtype)
        if array.dtype.kind == "c":
            return (rng.uniform(-1, 1, array.shape) + 1j * rng.uniform(-1, 1, array.shape)).astype(array.dtype)
        return rng.uniform(-1, 1, array.shape).astype(array.dtype)

    return map_leaves(leaf, tree)


def _ones_like(tree: Any) -> Any:
    return map_leaves(lambda v: None if v is None else np.ones(np.shape(v), getattr(v, "dtype", float)), tree)


def _vector(tree: Any) -> np.ndarray:
    """All leaves as one float64 vector; a complex number is two of its elements."""
    leaves = [v.asnumpy() if isinstance(v, Tensor) else v for v in flatten(tree)[0]]
    arrays = [np.ravel(np.asarray(v)) for v in leaves if kind_of(v) != "other"]
    parts = [a.astype(np.complex128).view(np.float64) if a.dtype.kind == "c" else a.astype(np.float64) for a in arrays]
    return np.concatenate(parts) if parts else np.zeros(0)


def _moved(args: Any, direction: Any, step: float) -> Any:
    def moved(x: Any, d: Any) -> Any:
        dtype = np.asarray(x).dtype
        return x + np.asarray(step * d, dtype) if dtype.kind in "fc" else x

    return map_leaves(moved, args, direction)


def _difference(fn: Callable[..., Any], args: Any, direction: Any, step: float) -> np.ndarray:
    """The directional derivative by central differences, extrapolated once."""

    def central(h: float) -> np.ndarray:
        ahead, behind = fn(*_moved(args, direction, h)), fn(*_moved(args, direction, -h))
        return (_vector(ahead) - _vector(behind)) / (2 * h)

    h = min(step, 1e-2)
    return (64 * central(h / 4) - 20 * central(h / 2) + central(h)) / 45


def _compare(found: np.ndarray, expected: np.ndarray, rtol: float, atol: float, what: str) -> None:
    error = np.abs(found - expected)
    scale = atol + rtol * np.maximum(np.abs(expected), np.max(np.abs(expected), initial=0.0))
    bad = ~(error <= scale) & ~(np.isnan(found) & np.isnan(expected))
    if bad.any():
        worst = int(np.argmax(np.where(bad, np.nan_to_num(error, nan=np.inf), -1)))
        message = (
            f"{what} disagrees with finite differences at element {worst} of {found.size}: it gives {found[worst]!r}, "
            f"differences give {expected[worst]!r} (allowed error {scale[worst]:.3g})."
        )
        raise GradientError(message)
