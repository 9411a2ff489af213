"""Rows for `scipy.special`."""

from __future__ import annotations

from functools import partial
from typing import Any

import scipy.special as sp

import nbgrad as nb

from .operation import Argument, Operation, between, given, operation, real


def special(name: str, *arguments: Argument, peers: str = "", **options: Any) -> Operation:
    """A ufunc of SciPy, on operands that broadcast and on one element."""
    shapes = [[(3, 4)], [()], [(2, 1, 4)]] if len(arguments) == 1 else [[(3, 1), (1, 4), (3, 4), (4,)], [()] * 4]
    samples = [tuple([Argument(s, a.draw, a.smooth) for a, s in zip(arguments, some, strict=False)]) for some in shapes]
    options = {"dtypes": ("float32",), "tolerance": 1e-6, "complexes": name in COMPLEX, **options}
    return operation(f"scipy.special.{name}", getattr(sp, name), *samples, peers=f"jax:{name} {peers}", **options)


COMPLEX = frozenset(
    (
        "gamma loggamma rgamma digamma erf erfc erfcx erfi wofz dawsn log_ndtr expi exp1 spence fresnel sici shichi "
        "airy"
    ).split()
)
"""Those that take complex numbers."""

P, U, R = between(0.4, 2.5), between(0.1, 0.9), between(-1.5, 1.5)

UFUNCS = [
    special("erf", R, peers="torch:erf torch:special.erf"),
    special("erfc", R, peers="torch:erfc torch:special.erfc"),
    special("erfcx", R, peers="torch:special.erfcx"),
    special("wofz", R, dtypes=()),
    special("erfi", R),
    special("erfinv", between(-0.8, 0.8), peers="jax:erf_inv torch:erfinv torch:special.erfinv"),
    special("erfcinv", between(0.2, 1.8)),
    special("dawsn", R),
    special("gamma", P),
    special("rgamma", P),
    special("gammaln", P, peers="jax:lgamma torch:lgamma"),
    special("loggamma", P),
    special("gammasgn", between(-0.9, -0.1), order=1),
    special("digamma", P, peers="torch:digamma"),
    special("poch", P, U),
    special("beta", P, P),
    special("betaln", P, P),
    special("binom", between(4, 6), between(1, 3)),
    special("gammainc", P, P),
    special("gammaincc", P, P),
    special("ndtr", R, peers="torch:special.ndtr"),
    special("ndtri", U, peers="torch:special.ndtri"),
    special("log_ndtr", R, peers="torch:special.log_ndtr"),
    special("owens_t", R, R),
    special("expi", P),
    special("exp1", P),
    special("exprel", R),
    special("spence", P),
    special("expit", R, peers="torch:sigmoid"),
    special("logit", U, peers="torch:logit"),
    special("log_expit", R, peers="torch:nn.functional.logsigmoid"),
    special("entr", P, peers="torch:special.entr"),
    special("rel_entr", P, P),
    special("kl_div", P, P),
    special("xlogy", R, P, peers="torch:xlogy"),
    special("xlog1py", R, P, peers="torch:special.xlog1py"),
    special("boxcox", P, R),
    special("boxcox1p", P, R),
    special("fresnel", R),
    special("sici", P),
    special("shichi", P),
    special("airy", R),
    special("i0", R),
    special("i1", R, peers="torch:special.i1"),
    special("i0e", real(), peers="jax:bessel_i0e torch:special.i0e"),
    special("i1e", real(), peers="jax:bessel_i1e torch:special.i1e"),
    special("j0", R),
    special("j1", R),
    special("y0", P),
    special("y1", P),
    special("k0", P),
    special("k1", P),
    special("k0e", P),
    special("k1e", P),
    special("exp10", R),
    special("pseudo_huber", P, R),
]

WITH_PARAMETERS = [
    operation(
        "expn",
        lambda x: (sp.expn(3.0, x), sp.expn(1.0, x)),
        between(0.4, 2.5, 3, 4),
        peers="jax:expn",
        dtypes=("float32",),
    ),
    operation(
        "polygamma",
        lambda x: (nb.ops.polygamma(1, x), nb.ops.polygamma(3, x)),
        between(0.4, 2.5, 3, 4),
        reference=lambda x: (sp.polygamma(1, x), sp.polygamma(3, x)),
        peers="jax:polygamma torch:polygamma torch:special.polygamma",
        dtypes=("float32",),
        tolerance=1e-5,
    ),
    operation(
        "multigammaln",
        lambda x: nb.ops.multigammaln(x, 3),
        between(1.5, 4, 3),
        reference=lambda x: sp.multigammaln(x, 3),
        peers="jax:multigammaln torch:mvlgamma",
        dtypes=("float32",),
    ),
    operation(
        "factorial",
        lambda x: nb.ops.factorial(x),
        between(0.5, 4, 3, 4),
        reference=sp.factorial,
        peers="jax:factorial",
        dtypes=("float32",),
    ),
    operation(
        "comb",
        lambda n, k: nb.ops.comb(n, k),
        (between(4, 6, 3), between(1, 3, 3)),
        reference=sp.comb,
        peers="jax:comb",
        dtypes=("float32",),
    ),
    operation("zeta", lambda q: sp.zeta(2.5, q), between(0.4, 2.5, 3, 4), peers="jax:zeta", dtypes=("float32",)),
    operation(
        "betainc", lambda x: sp.betainc(1.5, 2.3, x), between(0.1, 0.9, 3, 4), peers="jax:betainc", dtypes=("float32",)
    ),
    operation(
        "hyp1f1",
        lambda x: sp.hyp1f1(1.5, 2.3, x),
        between(-1, 1, 3, 4),
        peers="jax:hyp1f1",
        complexes=False,  # imprecise in SciPy before 1.14
        dtypes=("float32",),
    ),
    operation(
        "hyp2f1",
        lambda x: sp.hyp2f1(0.7, 1.5, 2.3, x),
        between(-0.7, 0.7, 3, 4),
        peers="jax:hyp2f1",
        complexes=True,
        dtypes=("float32",),
    ),
    *[
        operation(
            name, partial(getattr(sp, name), 1.5), between(0.4, 2.5, 3, 4), dtypes=("float32",), complexes=name != "ive"
        )
        for name in ("jv", "yv", "iv", "kv", "ive", "kve")
    ],
    operation(
        "huber",
        lambda x: sp.huber(1.03, x),
        given([0.3, -0.5, 2.2, -1.7]),
        peers="torch:nn.functional.huber_loss",
        dtypes=("float32",),
    ),
    operation(
        "softmax",
        lambda x: nb.ops.softmax(x, axis=1),
        real(3, 4),
        reference=lambda x: sp.softmax(x, axis=1),
        peers="jax:softmax torch:softmax torch:masked.softmax torch:torch.ops.aten._safe_softmax.default",
    ),
    operation(
        "log_softmax",
        lambda x: nb.ops.log_softmax(x, axis=1),
        real(3, 4),
        reference=lambda x: sp.log_softmax(x, axis=1),
        peers="jax:log_softmax torch:log_softmax torch:masked.log_softmax",
    ),
    operation(
        "logsumexp",
        lambda x: nb.ops.logsumexp(x, axis=1),
        real(3, 4),
        reference=lambda x: sp.logsumexp(x, axis=1),
        peers="jax:logsumexp torch:logsumexp",
    ),
    operation("xlogx", lambda x: sp.xlogy(x, x), between(0.4, 2.5, 2, 3, 4), peers="jax:_xlogx", dtypes=("float32",)),
    operation(
        "xlogy and xlog1py at zero",
        lambda y: (sp.xlogy(0.0, y), sp.xlog1py(0.0, y)),
        given([0.7, 2.0]),
        peers="jax:testGradOfXlogyAtZero jax:testGradOfXlog1pyAtZero",
        dtypes=(),
    ),
]

OPERATIONS = [*UFUNCS, *WITH_PARAMETERS]
