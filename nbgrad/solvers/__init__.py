"""Solvers with derivatives: SciPy's algorithms inside, the implicit function theorem outside.

In: functions of arrays, which may close over recorded values. Out: roots, fixed points, minimisers, solutions of linear
systems and of differential equations, and integrals, which `grad`, `jit` and the other transforms differentiate. Called
by users.
"""

from .curve_fits import curve_fit as curve_fit
from .differential_algebraic import solve_dae as solve_dae
from .differential_equations import odeint as odeint
from .differential_equations import solve_ivp as solve_ivp
from .implicit import custom_root as custom_root
from .matrix_free import linear_solve as linear_solve
from .minimisers import least_squares as least_squares
from .minimisers import minimize as minimize
from .other_minimisers import minimize_scalar as minimize_scalar
from .quadrature import quad as quad
from .quadrature import quad_vec as quad_vec
from .root_finders import fixed_point as fixed_point
from .root_finders import root as root
from .scalar_roots import brentq as brentq
from .scalar_roots import newton as newton
from .scalar_roots import root_scalar as root_scalar

__all__ = [
    "brentq",
    "curve_fit",
    "custom_root",
    "fixed_point",
    "least_squares",
    "linear_solve",
    "minimize",
    "minimize_scalar",
    "newton",
    "odeint",
    "quad",
    "quad_vec",
    "root",
    "root_scalar",
    "solve_dae",
    "solve_ivp",
]
