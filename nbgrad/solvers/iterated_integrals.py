"""Integrals over several variables, one inside of the other, as `scipy.integrate` takes them: `dblquad`, `nquad`.

In: a function of numbers, which may close over recorded values, and ranges, which may depend on the variables outside.
Out: its integral, with derivatives: each one is a `quad`, whose function closes over the variables outside. Called by
code that `differentiable_source` runs, by scipy_solvers.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError, ShapeError
from .quadrature import quad

Function = Callable[..., Any]
_OPTIONS = frozenset(["epsabs", "epsrel", "limit"])


def nquad(func: Function, ranges: Any, args: Any = None, opts: Any = None, full_output: bool = False) -> Any:
    """The integral over several variables, the first one innermost, and the estimate of the outermost error.

    Raises
    ------
    ShapeError
        If there is no range, or options are not as many as ranges.
    ArgumentError
        For options of QUADPACK's that have no derivative, and for `full_output`.
    """
    if full_output:
        message = "nquad in a function that is recorded has no full_output; leave it away."
        raise ArgumentError(message)
    count = len(ranges)
    given: list[Any] = [opts] * count if opts is None or isinstance(opts, dict) or callable(opts) else [*opts]
    if count == 0 or len(given) != count:
        message = f"nquad needs a range for each variable and as many options, but got {count} and {len(given)}."
        raise ShapeError(message)

    def integrated(which: int, *outside: Any) -> Any:
        """The integral over the variables up to one, given those outside of it and further arguments."""
        low, high = ranges[which](*outside) if callable(ranges[which]) else ranges[which]
        found: Any = given[which](*outside) if callable(given[which]) else given[which]
        options: dict[str, Any] = {} if found is None else dict(found)
        for name in sorted(options.keys() - _OPTIONS):
            message = f"nquad in a function that is recorded does not take {name}=; split the range instead."
            raise ArgumentError(message)
        inner = func if which == 0 else lambda x, *rest: integrated(which - 1, x, *rest)[0]
        return quad(inner, low, high, tuple(outside), **options)

    return integrated(count - 1, *(() if args is None else args))


def dblquad(
    func: Function, a: Any, b: Any, gfun: Any, hfun: Any, args: Any = (), epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> Any:  # fmt: skip
    """The integral of func(y, x) over y from gfun(x) to hfun(x), and over x from a to b."""
    inner = lambda x, *rest: (_at(gfun, x), _at(hfun, x))  # noqa: E731
    return nquad(func, [inner, (a, b)], args, {"epsabs": epsabs, "epsrel": epsrel})


def tplquad(
    func: Function, a: Any, b: Any, gfun: Any, hfun: Any, qfun: Any, rfun: Any, args: Any = (),
    epsabs: float = 1.49e-8, epsrel: float = 1.49e-8,
) -> Any:  # fmt: skip
    """The integral of func(z, y, x) over z from qfun(x, y) to rfun(x, y), over y from gfun(x), and over x from a."""
    innermost = lambda y, x, *rest: (_at(qfun, x, y), _at(rfun, x, y))  # noqa: E731
    inner = lambda x, *rest: (_at(gfun, x), _at(hfun, x))  # noqa: E731
    return nquad(func, [innermost, inner, (a, b)], args, {"epsabs": epsabs, "epsrel": epsrel})


def _at(limit: Any, *where: Any) -> Any:
    return limit(*where) if callable(limit) else limit
