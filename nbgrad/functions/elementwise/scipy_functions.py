"""Ufuncs of `scipy.special` that SciPy itself computes at run time, and their derivatives in terms of each other.

In: operand nodes of a ufunc's dtypes. Out: nodes. `FUNCTIONS` is read by scipy_ufuncs.py, so that `scipy.special.gamma`
and the others work on Tensors; gamma_functions.py calls `apply` for functions of SciPy that are not ufuncs. A row of
`PARTIALS` has one partial derivative per operand, which may use functions of the table again, so that every order
exists. The formulas are those of the NIST Digital Library of Mathematical Functions (dlmf.nist.gov), by the numbers in
brackets.

The functions are holomorphic where they take complex operands, so that the same formulas serve those. By some operands
(the order of a Bessel function, the parameters of a hypergeometric function) no derivative is known in closed form: it
is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from ...graph.builders import cast
from ...graph.complex_numbers import conjugate, is_complex
from ...graph.formulas import choose
from ...graph.host_functions import HostFunction, host
from ...graph.ir import PART_OF, Node, broadcast, elementwise, literal, make
from ...graph.shapes import joint_shape

Partial = Callable[..., Node | None]
"""From the value and the operands to the derivative by one operand; None for zero."""

LAST_TERM = 60
"""The number of terms of a power series behind the largest one."""
MOST_TERMS = 1_000_000
"""The most terms of power series that are in memory at once."""
FAR = 15.0
"""The real part from which on twelve terms of an asymptotic series are exact to rounding."""


def _run(name: str, output: int | None) -> Callable[..., np.ndarray]:
    """SciPy's ufunc, imported when it is first called; `output` picks one of several results.

    Of some, the public name is that of a function around the ufunc, whose own name begins with a line. A name with
    "real" or "imag" behind it is that part of a complex result.
    """
    ufunc, _, part = name.partition(" ")
    public = {"_riemann_zeta": "zeta"}.get(ufunc, ufunc.removeprefix("_"))

    def run(*arrays: np.ndarray) -> np.ndarray:
        import scipy.special

        result = getattr(scipy.special, public)(*arrays)
        result = result if output is None else result[output]
        return getattr(result, part) if part else result

    return run


@cache
def _of_scipy(name: str, output: int | None) -> HostFunction:
    """The function in graphs; there is one object for each, which graphs are compared by."""
    key = f"scipy.special.{name}" if output is None else f"scipy.special.{name}[{output}]"
    return HostFunction(key, last_dtype, _run(name, output))


def apply(name: str, *operands: Node, output: int | None = None) -> Node:
    """The value of a function of the table, with its derivative; the operands broadcast."""
    shape = operands[0].shape
    for node in operands[1:]:
        shape = joint_shape(shape, node.shape)
    nodes = tuple([broadcast(node, shape) for node in operands])
    rule = PartialsRule(PARTIALS[name] if output is None else SEVERAL[name][output])
    if name in COMPILED and nodes[-1].dtype.name in ("float32", "float64"):
        value = elementwise(name, *nodes)
    else:
        value = host(_of_scipy(name, output), nodes)
    return make("custom", (value, *nodes), (rule, 0))


COMPILED = frozenset(["i0", "i1", "i0e", "i1e"])
"""Functions that are primitives, of real numbers; their derivatives are those of the table all the same, which exist in
every order."""


def last_dtype(inputs: Sequence[Node], params: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of the last operand; the first ones may be integers."""
    return inputs[-1].shape, inputs[-1].dtype


class PartialsRule:
    """Each operand's cotangent is the conjugate of its partial derivative, times the result's."""

    def __init__(self, partials: Sequence[Partial]) -> None:
        self.partials = partials

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """One per operand."""
        operands = node.inputs[1:]
        found = [
            slope(node, *operands) if operand.dtype.kind in "fc" else None
            for slope, operand in zip(self.partials, operands, strict=True)
        ]
        return [None if slope is None else elementwise("multiply", g, conjugate(slope)) for slope in found]


# ----- Formula words -----


def unknown(value: Node, operand: Node, *others: Node) -> Node | None:
    """NaN, unless the operand is a constant: a derivative that is not known."""
    return broadcast(literal(math.nan, value.dtype), value.shape) if operand.traced else None


def unknown_by(k: int) -> Partial:
    """The derivative by operand number k, if it is not known."""
    return lambda value, *operands: unknown(value, operands[k])


def zero(value: Node, *operands: Node) -> None:
    """No derivative: piecewise constant."""


def _call(name: str) -> Callable[..., Node]:
    return partial(elementwise, name)


exp, log, log1p, sin, cos, sinh, cosh, sign, gammaln, power = map(
    _call, "exp log log1p sin cos sinh cosh sign gammaln power".split()
)


def number(value: float, like: Node) -> Node:
    """A real number in the shape and precision of a node."""
    return broadcast(literal(value, PART_OF.get(like.dtype, like.dtype)), like.shape)


def erf(x: Node) -> Node:
    """The error function; of real numbers, it is a primitive."""
    return apply("erf", x) if is_complex(x) else elementwise("erf", x)


def digamma(x: Node) -> Node:
    """The logarithmic derivative of the gamma function; of real numbers, it is a primitive."""
    return apply("psi", x) if is_complex(x) else elementwise("digamma", x)


def polygamma(order: int, x: Node) -> Node:
    """A derivative of `digamma`, of order 1 or more; of real numbers, it is a primitive."""
    if not is_complex(x):
        return elementwise("polygamma", number(order, x), x)
    rule = PartialsRule((lambda value, z: polygamma(order + 1, z),))
    return make("custom", (host(POLYGAMMA_OF_COMPLEX_NUMBERS, (x,), order), x), (rule, 0))


def _polygamma_run(z: np.ndarray, order: int) -> np.ndarray:
    """(-1)**(n+1) n! sum of (z+k)**-(n+1) [5.15.1]: the first terms, and the rest by Euler and Maclaurin's formula
    [2.10.1]."""
    import scipy.special

    wide, s = np.asarray(z, np.complex128), order + 1
    count = int(max(0, math.ceil(FAR - float(np.min(wide.real, initial=FAR)))))
    total = np.zeros_like(wide)
    for k in range(count):
        total += (wide + k) ** -s
    far = wide + count
    total += far ** (1 - s) / (s - 1) + far**-s / 2
    numbers = scipy.special.bernoulli(24)
    rising = float(s)
    for j in range(1, 13):
        total += numbers[2 * j] / math.factorial(2 * j) * rising * far ** (1 - s - 2 * j)
        rising *= (s + 2 * j - 1) * (s + 2 * j)
    return ((-1) ** s * math.factorial(order) * total).astype(z.dtype)


def _quotient(function: Callable[[Node], Node], derivative: float) -> Partial:
    """function(x) / x, with its limit at 0."""

    def slope(value: Node, x: Node) -> Node:
        zero = elementwise("equal", x, 0)
        return choose(zero, derivative, function(x) / choose(zero, 1, x, x), x)

    return slope


def bell(order: int, parts: Callable[[int], Any]) -> Any:
    """The derivative of exp(h), divided by exp(h), from those of h: complete Bell polynomials (Comtet 1974, 3.3)."""
    known: list[Any] = [1.0]
    for n in range(order):
        total: Any = 0.0
        for k in range(n + 1):
            total = parts(k + 1) * known[n - k] * math.comb(n, k) + total
        known.append(total)
    return known[order]


# ----- The incomplete gamma function, differentiated by its parameter -----


def gammainc_run(a: np.ndarray, x: np.ndarray, order: int, upper: bool) -> np.ndarray:
    """Derivatives of gammainc(a, x) by `a` to some order.

    The terms of gammainc(a, x) = sum of x**(a+k) exp(-x) / gamma(a+k+1) [8.11.4] are all positive; each is
    differentiated as the exponential of its logarithm. The error is some 1e-15, absolutely: far above `a`, where
    gammainc is almost 1, little of a derivative may be left of the digits.
    """
    import scipy.special

    flat_a, flat_x = (np.asarray(v, np.float64).ravel() for v in np.broadcast_arrays(a, x))
    result = np.where((flat_a > 0) & (flat_x >= 0), 0.0, math.nan)
    inside = np.flatnonzero((flat_a > 0) & (flat_x > 0) & (flat_x < math.inf))
    needed = np.ceil(np.maximum(flat_x - flat_a, 0) + 12 * np.sqrt(flat_x) + LAST_TERM)[inside].astype(int)
    inside, needed = inside[np.argsort(needed)], np.sort(needed)
    while inside.size:
        # Elements that need about as many terms go together.
        count = max(1, int(np.searchsorted(needed * np.arange(1, needed.size + 1), MOST_TERMS)))
        at = flat_a[inside[:count], None] + np.arange(needed[count - 1]) + 1
        size = np.log(flat_x[inside[:count], None])
        terms = np.exp((at - 1) * size - flat_x[inside[:count], None] - scipy.special.gammaln(at))
        slopes = [size - scipy.special.digamma(at)]
        slopes += [-scipy.special.polygamma(k, at) for k in range(1, order)]
        result[inside[:count]] = np.sum(terms * bell(order, lambda k, s=slopes: s[k - 1]), axis=1)
        inside, needed = inside[count:], needed[count:]
    return (-result if upper else result).reshape(np.shape(x)).astype(np.asarray(x).dtype)


GAMMAINC_BY_ITS_PARAMETER = HostFunction("gammainc by its parameter", last_dtype, gammainc_run)
POLYGAMMA_OF_COMPLEX_NUMBERS = HostFunction("polygamma of complex numbers", last_dtype, _polygamma_run)


def gammainc_slope(order: int, upper: bool) -> Partial:
    """The derivative of gammainc (of gammaincc, if `upper`) by its parameter, to some order."""

    def slope(value: Node, a: Node, x: Node) -> Node:
        rule = PartialsRule((gammainc_slope(order + 1, upper), gammainc_density(order, upper)))
        return make("custom", (host(GAMMAINC_BY_ITS_PARAMETER, (a, x), order, upper), a, x), (rule, 0))

    return slope


def gammainc_density(order: int, upper: bool) -> Partial:
    """The derivative of gammainc by x [8.8.13], differentiated by the parameter to some order."""

    def slope(value: Node, a: Node, x: Node) -> Node:
        density = exp(elementwise("xlogy", a - 1, x) - x - gammaln(a)) * (-1.0 if upper else 1.0)
        if order == 0:
            return density
        return density * bell(order, lambda k: log(x) - digamma(a) if k == 1 else -polygamma(k - 1, a))

    return slope


# ----- The tables -----

_ROOT_PI = math.sqrt(math.pi)


def _box_cox(logarithm: Callable[[Node], Node]) -> Partial:
    """The derivative of (exp(m l) - 1) / m, where l is the logarithm, by m: l**2 times that of (exp(t) - 1) / t."""

    def slope(value: Node, x: Node, m: Node) -> Node:
        length = logarithm(x)
        return length * length * apply("hyp1f1", number(2, x), number(3, x), length * m) * 0.5

    return slope


def _raised(names: str, scale: Callable[..., Node]) -> tuple[Partial, ...]:
    """Hypergeometric functions: the derivative by x raises every parameter by one."""
    count = 3 if names == "hyp1f1" else 4

    def slope(value: Node, *operands: Node) -> Node:
        return scale(*operands) * apply(names, *[p + 1 for p in operands[:-1]], operands[-1])

    parameters = tuple([unknown_by(k) for k in range(count - 1)])
    return (*parameters, slope)


def _bessel(name: str, below: float, above: float) -> tuple[Partial, ...]:
    """Bessel functions of any order: half of the neighbours [10.6.1, 10.29.1]."""

    def slope(value: Node, v: Node, x: Node) -> Node:
        return (apply(name, v - 1, x) * below + apply(name, v + 1, x) * above) * 0.5

    return (unknown, slope)


def _scaled_bessel(value: Node, v: Node, x: Node) -> Node:
    return (apply("ive", v - 1, x) + apply("ive", v + 1, x)) * 0.5 - sign(x) * value


def _expn_slope(value: Node, n: Node, x: Node) -> Node:
    """-expn(n - 1, x) [8.19.13], which SciPy has not below 0; there by recurrence [8.19.12]."""
    low = elementwise("less", n, 2)
    order = cast(n, x.dtype) - 1
    return -elementwise("select", low, (exp(-x) - order * value) / x, apply("expn", choose(low, 1, n - 1, n), x))


PARTIALS: dict[str, tuple[Partial, ...]] = {
    # ----- The gamma function and its relatives [5] -----
    "gamma": (lambda v, x: v * digamma(x),),
    "loggamma": (lambda v, x: digamma(x),),
    "psi": (lambda v, x: polygamma(1, x),),
    "gammasgn": (zero,),
    "rgamma": (lambda v, x: -v * digamma(x),),
    "poch": (
        lambda v, z, m: v * (digamma(z + m) - digamma(z)),
        lambda v, z, m: v * digamma(z + m),
    ),
    "beta": (
        lambda v, a, b: v * (digamma(a) - digamma(a + b)),
        lambda v, a, b: v * (digamma(b) - digamma(a + b)),
    ),
    "binom": (
        lambda v, n, k: v * (digamma(n + 1) - digamma(n - k + 1)),
        lambda v, n, k: v * (digamma(n - k + 1) - digamma(k + 1)),
    ),
    "gammainc": (gammainc_slope(1, False), gammainc_density(0, False)),
    "gammaincc": (gammainc_slope(1, True), gammainc_density(0, True)),
    # ----- The error function and its relatives [7] -----
    "erf": (lambda v, x: exp(-x * x) * (2 / _ROOT_PI),),
    "erfc": (lambda v, x: exp(-x * x) * (-2 / _ROOT_PI),),
    "erfcx": (lambda v, x: x * v * 2 - 2 / _ROOT_PI,),
    "wofz": (lambda v, z: z * v * -2 + literal(2j / _ROOT_PI, z.dtype),),
    "erfi": (lambda v, x: exp(x * x) * (2 / _ROOT_PI),),
    "erfinv": (lambda v, x: exp(v * v) * (_ROOT_PI / 2),),
    "erfcinv": (lambda v, x: exp(v * v) * (-_ROOT_PI / 2),),
    "dawsn": (lambda v, x: x * v * -2 + 1,),
    "ndtri": (lambda v, x: exp(v * v * 0.5) * math.sqrt(2 * math.pi),),
    "log_ndtr": (lambda v, x: math.sqrt(2 / math.pi) / apply("erfcx", x * -math.sqrt(0.5)),),
    "owens_t": (
        lambda v, h, a: exp(h * h * -0.5) * erf(a * h * math.sqrt(0.5)) * (-0.5 / math.sqrt(2 * math.pi)),
        lambda v, h, a: exp(h * h * (a * a + 1) * -0.5) / ((a * a + 1) * (2 * math.pi)),
    ),
    # ----- Exponential integrals [6, 8.19] -----
    "expi": (lambda v, x: exp(x) / x,),
    "exp1": (lambda v, x: -exp(-x) / x,),
    "expn": (unknown, _expn_slope),
    "exprel": (lambda v, x: apply("hyp1f1", number(2, x), number(3, x), x) * 0.5,),
    "spence": (lambda v, x: -apply("hyp2f1", number(1, x), number(1, x), number(2, x), 1 - x),),
    # ----- Bessel functions [10] -----
    "i0": (lambda v, x: apply("i1", x),),
    "i1": (lambda v, x: (apply("i0", x) + apply("iv", number(2, x), x)) * 0.5,),
    "i0e": (lambda v, x: apply("i1e", x) - sign(x) * v,),
    "i1e": (lambda v, x: (apply("i0e", x) + apply("ive", number(2, x), x)) * 0.5 - sign(x) * v,),
    "j0": (lambda v, x: -apply("j1", x),),
    "j1": (lambda v, x: (apply("j0", x) - apply("jv", number(2, x), x)) * 0.5,),
    "y0": (lambda v, x: -apply("y1", x),),
    "y1": (lambda v, x: (apply("y0", x) - apply("yv", number(2, x), x)) * 0.5,),
    "k0": (lambda v, x: -apply("k1", x),),
    "k1": (lambda v, x: (apply("k0", x) + apply("kv", number(2, x), x)) * -0.5,),
    "k0e": (lambda v, x: v - apply("k1e", x),),
    "k1e": (lambda v, x: v - (apply("k0e", x) + apply("kve", number(2, x), x)) * 0.5,),
    "jv": _bessel("jv", 1, -1),
    "yv": _bessel("yv", 1, -1),
    "iv": _bessel("iv", 1, 1),
    "kv": _bessel("kv", -1, -1),
    "ive": (unknown, _scaled_bessel),
    "kve": (unknown, lambda v, n, x: v - (apply("kve", n - 1, x) + apply("kve", n + 1, x)) * 0.5),
    # ----- Hypergeometric functions [13.3.15, 15.5.1], and transformations of data (Box and Cox 1964) -----
    "hyp1f1": _raised("hyp1f1", lambda a, b, x: a / b),
    "hyp2f1": _raised("hyp2f1", lambda a, b, c, x: a * b / c),
    "boxcox": (lambda v, x, m: power(x, m - 1), _box_cox(log)),
    "boxcox1p": (lambda v, x, m: power(x + 1, m - 1), _box_cox(log1p)),
}
"""Functions with one result: the partial derivatives, from the value and the operands."""

SEVERAL: dict[str, tuple[tuple[Partial, ...], ...]] = {
    "fresnel": ((lambda v, x: sin(x * x * (math.pi / 2)),), (lambda v, x: cos(x * x * (math.pi / 2)),)),
    "sici": ((_quotient(sin, 1),), (lambda v, x: cos(x) / x,)),
    "shichi": ((_quotient(sinh, 1),), (lambda v, x: cosh(x) / x,)),
    "airy": (
        (lambda v, x: apply("airy", x, output=1),),
        (lambda v, x: x * apply("airy", x, output=0),),
        (lambda v, x: apply("airy", x, output=3),),
        (lambda v, x: x * apply("airy", x, output=2),),
    ),
}
"""Functions with several results: a row for each of them."""


def several(name: str, *operands: Node) -> tuple[Node, ...]:
    """All results of a function."""
    return tuple([apply(name, *operands, output=k) for k in range(len(SEVERAL[name]))])


_PRIMITIVES = frozenset("psi erf erfc".split())
"""Functions that are primitives for real operands, known under these names already."""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: partial(apply, name) for name in PARTIALS if name not in _PRIMITIVES},
    **{name: partial(several, name) for name in SEVERAL},
}
"""By the ufunc's `__name__`."""

COMPLEX_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: partial(apply, name)
        for name in (
            "gamma loggamma rgamma psi erf erfc erfcx erfi wofz dawsn log_ndtr expi exp1 spence jv yv iv kv kve hyp1f1 "
            "hyp2f1 hyp0f1 hankel1 hankel2 hankel1e hankel2e wrightomega"
        ).split()
    },
    **{name: partial(several, name) for name in SEVERAL},
}
"""Functions of complex operands, by the ufunc's `__name__`."""
