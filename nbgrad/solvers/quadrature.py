"""Integrals over an interval by SciPy's adaptive quadrature, with derivatives: `quad` and, of arrays, `quad_vec`.

In: a function of a number, which may close over recorded values, and the ends. Out: its integral, differentiated by all
that the function closes over and by the ends. Called by users.

The derivative of an integral is the integral of the derivative, and the values at the ends; so its derivatives are
integrals again, of vectors, by the same tolerances.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..graph.builders import concatenate, reduce, reshape, slice_axes
from ..graph.differentiate import jvp, vjp
from ..graph.ir import Node, broadcast, make, placeholder, zeros
from ..record.axes_and_dtypes import only
from ..record.tensor import Tensor
from ..runtime.evaluate import computed
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from .closed_functions import FLOAT, ClosedFunction, as_float, bound, one_output, recorded
from .host_solves import ConvergenceError, HostSolve
from .implicit import as_scipy, float_node, is_plain

TITLE = "quad"


@dataclass(frozen=True)
class Tolerances:
    """The error that an integral may have, in a norm of `quad_vec`'s, and the number of intervals.

    Without a norm, integrals of one number are QUADPACK's.
    """

    epsabs: float
    epsrel: float
    limit: int
    norm: str | None = None
    title: str = TITLE


@dataclass(frozen=True)
class Integral:
    """The integral of a vector; `integrand` has a number as its variable and captures the parameters."""

    integrand: ClosedFunction
    tolerances: Tolerances
    pure = True

    @property
    def size(self) -> int:
        """The number of elements of the vector."""
        return self.integrand.outputs[0].size

    def node(self, first: Node, last: Node, parameters: Sequence[Node]) -> tuple[Node, Node]:
        """The integral, shape (size,), with its derivative, and SciPy's estimate of its error."""
        inputs = [first, last, *parameters]
        host = self.host(inputs)
        value, row = host.nodes(inputs)
        return make("custom", (value, *inputs), (self, 0)), reshape(row, ())

    def host(self, inputs: Sequence[Node]) -> HostSolve:
        """SciPy's run: by QUADPACK for one number, else by `quad_vec`."""

        def run(first: np.ndarray, last: np.ndarray, *values: np.ndarray) -> tuple[Any, dict[str, Any]]:
            call, given = self.integrand.call, self.tolerances

            def vector(x: float) -> np.ndarray:
                return call(as_float(x), *values)[0]

            ends = float(first), float(last)
            routine = _quadpack if self.size == 1 and given.norm is None else _quad_vec
            found, error = as_scipy(given.title, host.place, lambda: routine(vector, ends, given))
            return found, {"error": error}

        host = HostSolve(self.tolerances.title, self, [node.ndim for node in inputs], (self.size,), ["error"], run)
        return host

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """Those of the ends are the values there, those of the parameters integrals."""
        first, last, *parameters = node.inputs[1:]
        ends = [reduce("sum", g * self._value(x, parameters), (0,)) for x in (first, last)]
        # A constant, such as an infinite end of an integral inside, may have a derivative that is no number.
        wanted = [k for k, one in enumerate(parameters) if one.dtype.kind == "f" and one.traced]
        if not wanted:
            return [-ends[0], ends[1], *[None] * len(parameters)]

        def how() -> tuple[list[Node], list[Node]]:
            given = placeholder((self.size,), FLOAT)
            captured = [self.integrand.captured[k] for k in wanted]
            found = vjp(self.integrand.outputs, [given], captured)
            flat = [
                zeros((p.size,), FLOAT) if one is None else reshape(one, (p.size,))
                for one, p in zip(found, captured, strict=True)
            ]
            return [given], [concatenate(flat, 0)]

        row = self._made("integrals of cotangents", how).node(first, last, [g, *parameters])[0]
        found: list[Node | None] = [None] * len(parameters)
        start = 0
        for k in wanted:
            found[k] = reshape(slice_axes(row, [(start, parameters[k].size, 1)]), parameters[k].shape)
            start += parameters[k].size
        return [-ends[0], ends[1], *found]

    def tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        """The integral of the tangent, and what comes in at the ends."""
        first, last, *parameters = node.inputs[1:]
        total = zeros(node.shape, node.dtype)
        for x, t, sign in ((first, tangents[1], -1.0), (last, tangents[2], 1.0)):
            if t is not None:
                total = total + self._value(x, parameters) * broadcast(t, node.shape) * sign
        moved = {k: t for k, t in enumerate(tangents[3:]) if t is not None}
        if not moved:
            return total

        def how() -> tuple[list[Node], list[Node]]:
            captured = [self.integrand.captured[k] for k in moved]
            moves = [placeholder(one.shape, one.dtype) for one in captured]
            found = jvp(self.integrand.outputs, captured, moves)[0]
            return moves, [zeros(node.shape, node.dtype) if found is None else found]

        inner = self._made(("integral of tangents", *moved), how)
        return total + inner.node(first, last, [*moved.values(), *parameters])[0]

    def _value(self, x: Node, parameters: Sequence[Node]) -> Node:
        return self.integrand.at([x, *parameters])[0]

    def _made(self, name: Hashable, how: Callable[[], tuple[Sequence[Node], Sequence[Node]]]) -> Integral:
        """The integral of a function made of the integrand, over the same variable."""

        def built() -> ClosedFunction:
            more, outputs = how()
            inner = self.integrand
            return ClosedFunction(inner.variables, [*more, *inner.captured], outputs, inner.checks)

        return Integral(self.integrand.made(name, built), self.tolerances)


def _quadpack(vector: Callable[[float], np.ndarray], ends: tuple[float, float], given: Tolerances) -> tuple[Any, float]:
    from scipy.integrate import quad

    found = quad(
        lambda x: float(vector(x)[0]), *ends, epsabs=given.epsabs, epsrel=given.epsrel, limit=given.limit, full_output=1
    )
    if len(found) > 3:
        message = f"quad() has not converged. SciPy says: {' '.join(str(found[3]).split())}"
        raise ConvergenceError(message)
    return np.array([found[0]]), found[1]


def _quad_vec(vector: Callable[[float], np.ndarray], ends: tuple[float, float], given: Tolerances) -> tuple[Any, float]:
    from scipy.integrate import quad_vec

    routine: Any = quad_vec
    found, error, info = routine(
        vector,
        *ends,
        epsabs=given.epsabs,
        epsrel=given.epsrel,
        norm=given.norm or "max",
        limit=max(given.limit, 1000) if given.norm is None else given.limit,
        full_output=True,
    )
    if not info.success:
        what = "The derivative of quad()" if given.norm is None else "quad_vec(), or its derivative,"
        message = f"{what} has not converged (an estimated error of {error:.1e})."
        raise ConvergenceError(message)
    return found, error


def quad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
) -> Any:
    """The integral of a function between two numbers, by `scipy.integrate.quad`, with derivatives.

    Parameters
    ----------
    func : callable
        `func(x, *args)` gives a number. It may close over recorded values.
    a, b : float
        The ends, which may be infinite. They may be recorded values.
    args : tuple
        Further arguments of `func`.
    epsabs, epsrel, limit
        As for SciPy.

    Returns
    -------
    pair of float
        The integral, and SciPy's estimate of its error.

    Raises
    ------
    ConvergenceError
        If the tolerances are not met.
    ShapeError, DtypeError
        If `func` does not give one real number.
    TracedValueError
        If `func` branches by the value of `x`.
    ArgumentError
        If an end is not one number.

    Notes
    -----
    Derivatives by what `func` closes over are integrals of its derivatives (Leibniz), all at once by
    `scipy.integrate.quad_vec` with the same tolerances; those by the ends are the values there. A place where `func`
    jumps must not depend on recorded values: the derivative by it would be left away, without notice. Make it the end
    of two integrals.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def mass(rate, end):
    ...     return nb.solvers.quad(lambda x: np.exp(-rate * x), 0.0, end)[0]
    >>> slopes = nb.grad(mass, (0, 1))(1.0, 2.0)
    >>> np.allclose(slopes, (3 * np.exp(-2.0) - 1, np.exp(-2.0)))
    True
    >>> nb.grad(lambda rate: mass(rate, np.inf))(2.0).round(8)
    np.float64(-0.25)
    """
    check_function(func, TITLE)
    value, error = _integrated(
        func, a, b, args, Tolerances(epsabs, epsrel, limit), one_output(name_of(func), TITLE, ())
    )
    if isinstance(value, Tensor):
        return value.reshape(()), error
    return float(value[0]), error


def quad_vec(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    epsabs: float = 1e-200,
    epsrel: float = 1e-8,
    norm: str = "2",
    limit: int = 10000,
    *,
    args: Any = (),
) -> Any:
    """The integral of a function whose values are arrays, by `scipy.integrate.quad_vec`, with derivatives.

    Parameters
    ----------
    f : callable
        `f(x, *args)` gives an array of real numbers, of any shape. It may close over recorded values.
    a, b : float
        The ends, which may be infinite. They may be recorded values.
    epsabs, epsrel : float
        The absolute and the relative error of the norm.
    norm : {"2", "max"}
        The norm of the error.
    limit : int
        The most intervals.
    args : tuple
        Further arguments of `f`.

    Returns
    -------
    pair of an array of the shape of the values and a float
        The integral, and SciPy's estimate of its error.

    Raises
    ------
    ConvergenceError, ShapeError, DtypeError, TracedValueError, ArgumentError
        As `quad`.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> rates = np.array([1.0, 2.0])
    >>> def masses(rates):
    ...     return nb.solvers.quad_vec(lambda x: np.exp(-rates * x), 0.0, np.inf)[0]
    >>> nb.jacrev(masses)(rates).round(8) + 0.0
    array([[-1.  ,  0.  ],
           [ 0.  , -0.25]])
    """
    title = "quad_vec"
    check_function(f, title)
    only("norm", norm, "2", "max")
    shapes: list[tuple[int, ...]] = []
    flat = one_output(name_of(f), title, None)

    def whole(nodes: Sequence[Node]) -> Sequence[Node]:
        found = flat(nodes)
        shapes.append(nodes[0].shape)
        return found

    value, error = _integrated(f, a, b, args, Tolerances(epsabs, epsrel, limit, norm, title), whole)
    return value.reshape(shapes[-1])[()], error


def _integrated(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any,
    tolerances: Tolerances,
    check: Callable[[Sequence[Node]], Sequence[Node]],
) -> tuple[Any, Any]:
    """The integral of a function's elements along one axis, and the estimate of its error."""
    title = tolerances.title
    ends = [float_node(end, f"An end of {title}()") for end in (a, b)]
    for end in ends:
        if end.size != 1:
            message = f"The ends of {title}() must be numbers, but one has shape {end.shape}."
            raise ArgumentError(message)
    first, last = (reshape(end, ()) for end in ends)
    integrand, captured = recorded(bound(func, args), [first], title, check)
    size = integrand.outputs[0].size
    vector = integrand.made(
        "as a vector",
        lambda: ClosedFunction(
            integrand.variables, integrand.captured, [reshape(integrand.outputs[0], (size,))], integrand.checks
        ),
    )
    integral = Integral(vector, tolerances)
    inputs = [first, last, *captured]
    if is_plain([a, b], inputs):
        row = integral.host(inputs).row(*[np.asarray(computed(node)) for node in inputs])
        return row[:-1], float(row[-1])
    value, error = integral.node(first, last, captured)
    return Tensor._of(value), Tensor._of(make("stop_gradient", (error,)))
