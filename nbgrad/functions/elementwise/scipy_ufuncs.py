"""Rules for `scipy.special`'s ufuncs, which ufuncs.py uses when one of them is called with a Tensor.

In: operand nodes of one float dtype. Out: nodes. Known by the ufunc's name, so that SciPy is not imported. Those that
are primitives (erf, erfc, gammaln, expit, logit, xlogy) or NumPy's (exp2, cbrt, log1p, ...) need no rule here; those
that SciPy itself computes are in scipy_functions.py.
"""

from __future__ import annotations

import math
from functools import partial

from ...graph.complex_numbers import pair
from ...graph.formulas import choose
from ...graph.ir import Node, elementwise, literal
from .elliptic_functions import ELLIPTIC, JACOBI
from .scipy_cdfs import CDFS
from .scipy_functions import COMPLEX_FUNCTIONS, FUNCTIONS, PARTIALS, SEVERAL, apply, several
from .scipy_integrals import INTEGRALS, SOLUTIONS
from .scipy_polynomials import MORE, lambert
from .scipy_series import SERIES

_ONE_RESULT = {**CDFS, **MORE, **ELLIPTIC, **INTEGRALS, **SERIES}
_SEVERAL_RESULTS = {**SOLUTIONS, "ellipj": JACOBI}
PARTIALS.update(_ONE_RESULT)
SEVERAL.update(_SEVERAL_RESULTS)


def _xlog1py(x: Node, y: Node) -> Node:
    product = elementwise("multiply", x, elementwise("log1p", y))
    # Only where log1p is infinite does zero need help; elsewhere x has its slope also at zero.
    lost = elementwise("logical_and", elementwise("equal", x, 0), elementwise("less_equal", y, -1))
    lost = elementwise(
        "logical_or", lost, elementwise("logical_and", elementwise("equal", x, 0), elementwise("isinf", y))
    )
    return choose(lost, 0, product, x)


def _ndtr(x: Node) -> Node:
    return elementwise("erfc", x * -math.sqrt(0.5)) * 0.5


def _entr(x: Node) -> Node:
    return choose(elementwise("less", x, 0), -math.inf, -elementwise("xlogy", x, x), x)


def _rel_entr(x: Node, y: Node) -> Node:
    inside = elementwise("logical_and", elementwise("greater", x, 0), elementwise("greater", y, 0))
    edge = elementwise("logical_and", elementwise("equal", x, 0), elementwise("greater_equal", y, 0))
    value = elementwise("multiply", x, elementwise("log", elementwise("divide", x, y)))
    nan = elementwise("isnan", x + y)
    return elementwise("select", nan, x + y, elementwise("select", inside, value, choose(edge, 0, math.inf, x)))


def _kl_div(x: Node, y: Node) -> Node:
    return _rel_entr(x, y) - x + y


def _betaln(a: Node, b: Node) -> Node:
    apart = elementwise("gammaln", a) + elementwise("gammaln", b)
    pole = elementwise("isinf", apart)
    return elementwise("select", pole, apart, apart - elementwise("gammaln", a + b))


def _huber(delta: Node, r: Node) -> Node:
    size = elementwise("absolute", r)
    near = elementwise("less_equal", size, delta)
    loss = elementwise("select", near, elementwise("multiply", r, r) * 0.5, delta * (size - delta * 0.5))
    return choose(elementwise("less", delta, 0), math.inf, loss, delta)


def _pseudo_huber(delta: Node, r: Node) -> Node:
    ratio = r / delta
    loss = delta * delta * (elementwise("sqrt", ratio * ratio + 1) - 1)
    loss = choose(elementwise("equal", delta, 0), 0, loss, delta)
    return choose(elementwise("less", delta, 0), math.inf, loss, delta)


def _modified_fresnel(name: str, x: Node) -> tuple[Node, ...]:
    real, imag = several(f"{name} real", x), several(f"{name} imag", x)
    return tuple([pair(*both) for both in zip(real, imag, strict=True)])


def _kelvin(x: Node) -> tuple[Node, ...]:
    """Kelvin's functions of both kinds, and their derivatives, as complex numbers."""
    names = (("ber", "bei"), ("ker", "kei"), ("berp", "beip"), ("kerp", "keip"))
    return tuple([pair(apply(real, x), apply(imag, x)) for real, imag in names])


SCIPY_RULES = {
    "psi": partial(elementwise, "digamma"),
    "xlog1py": _xlog1py,
    "exp10": lambda x: elementwise("power", literal(10, x.dtype), x),
    "log_expit": lambda x: -elementwise("logaddexp", -x, 0),
    "ndtr": _ndtr,
    "entr": _entr,
    "rel_entr": _rel_entr,
    "kl_div": _kl_div,
    "betaln": _betaln,
    "huber": _huber,
    "pseudo_huber": _pseudo_huber,
    **FUNCTIONS,
    **{name: partial(apply, name) for name in _ONE_RESULT},
    **{name: partial(several, name) for name in _SEVERAL_RESULTS},
    "_zeta": partial(apply, "zeta"),
    "kelvin": _kelvin,
    **{name: partial(_modified_fresnel, name) for name in ("modfresnelp", "modfresnelm")},
}
"""By the ufunc's `__name__`."""

COMPLEX_SCIPY_RULES = {**COMPLEX_FUNCTIONS, "_lambertw": lambert}
"""Those for complex operands."""
