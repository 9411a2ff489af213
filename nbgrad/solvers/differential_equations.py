"""Ordinary differential equations by SciPy's integrators, with derivatives: `solve_ivp` and `odeint`.

In: a right-hand side, which may close over recorded values, with SciPy's arguments. Out: SciPy's result; its values
have derivatives. Called by users. What runs and what is differentiated is in trajectories.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError, ShapeError
from ..graph.builders import reshape
from ..record.tensor import Tensor
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from .closed_functions import bound, one_output, recorded
from .implicit import flat_start, float_node, is_plain, option_key
from .replayed_steps import TITLE
from .tableaus import EXPLICIT, IMPLICIT
from .trajectories import Events, Integration, Trajectory


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Sequence[Any],
    y0: Any,
    method: str = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    **options: Any,
) -> Any:
    """The solution of an initial value problem, by `scipy.integrate.solve_ivp`, with derivatives.

    Parameters
    ----------
    fun : callable
        `fun(t, y, *args)` gives dy/dt, an array of the shape of `y`, which has one axis. It may close over recorded
        values.
    t_span : pair of float
        The first and the last time. They may be recorded values.
    y0 : array_like
        The state at the first time: one axis, or one number.
    method : {"RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"}
        SciPy's integrator. The last three get the Jacobian of `fun` from nbgrad.
    t_eval : array_like, optional
        The times of the result. They may be recorded values. Without them, those of all steps, which are not known in
        `jit` and `vmap`.
    dense_output : bool
        Whether the result has `sol`, a function of times.
    events : callable or list of callables, optional
        `event(t, y, *args)` gives a number; its attributes `terminal` and `direction` are SciPy's. In a recorded
        function the times and states of events have derivatives; there must be `grad` around, not `jit`.
    vectorized : bool
        Accepted for SciPy's sake.
    args : tuple, optional
        Further arguments of `fun` and of events.
    **options
        `rtol`, `atol`, `max_step`, `first_step` and what else SciPy's method takes.

    Returns
    -------
    Solution or scipy.integrate.OdeResult
        With SciPy's fields `t`, `y` of shape (states, times), `sol`, `t_events`, `y_events`, `nfev`, `njev`, `nlu`,
        `status`, `message` and `success`. SciPy's own where nothing is recorded.

    Raises
    ------
    ShapeError, DtypeError
        If `fun` gives another shape, or no real numbers.
    ArgumentError
        For an unknown method, times outside of the span, or arguments that SciPy refuses.
    TracedValueError
        If `fun` branches by values, or the number of points is not known in `jit` or `vmap`.
    ConvergenceError
        If a derivative is asked for and SciPy has not reached the end.

    Notes
    -----
    Derivatives are those of the accepted steps, a discrete adjoint or tangent. They are exact for the numbers that were
    computed, for steps that are fixed parts of the span: the derivative of the step sizes is left away, which is of the
    order of the tolerance. The steps of RK23, RK45 and DOP853 are SciPy's. Those of the other methods, in recorded
    functions, are Radau's collocation of fifth order, or for LSODA DOP853's where the equations are not stiff; values
    differ from SciPy's by the order of the tolerance. Systems of n equations take 3n times 3n matrices there. For more
    than 32 equations, or with options that not all of these methods have, the steps are SciPy's, and derivatives those
    of Radau's collocation over them. Reverse mode stores the stages of all steps. See E. Hairer, S. P. Norsett and G.
    Wanner, "Solving Ordinary Differential Equations I", 1993, and R. Serban and A. C. Hindmarsh, "CVODES", 2005, for
    the continuous adjoint, which is not used.

    A time or state at which `fun` jumps must not depend on recorded values: the derivative by it would be left away,
    without notice. Make the time the end of one span and the start of another; for a state, by a terminal event.

    A new parameter compiles nothing; more steps than ever before do, when their number passes a power of two.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> times = np.linspace(0.0, 2.0, 5)
    >>> def decayed(rate):
    ...     return nb.solvers.solve_ivp(lambda t, y: -rate * y, (0, 2), [1.0], t_eval=times, rtol=1e-8).y[0]
    >>> slopes = nb.jacfwd(decayed)(0.5)
    >>> np.allclose(slopes, -times * np.exp(-0.5 * times), atol=1e-6)
    True
    """
    check_function(fun, TITLE)
    if method not in (*EXPLICIT, *IMPLICIT):
        message = f"method of solve_ivp() must be one of {', '.join((*EXPLICIT, *IMPLICIT))}, but got {method!r}."
        raise ArgumentError(message)
    start = float_node(y0, "y0 of solve_ivp()")
    if start.ndim != 1 and start.size != 1:
        message = f"y0 of solve_ivp() must have one axis, but has shape {start.shape}."
        raise ShapeError(message)
    start = flat_start(y0, TITLE)
    if len(t_span) != 2:
        message = f"t_span of solve_ivp() must be a pair of times, but has length {len(t_span)}."
        raise ArgumentError(message)
    first, last = (reshape(float_node(t, "t_span of solve_ivp()"), ()) for t in t_span)
    given = args if args is not None else ()
    fn = bound(fun, given)
    shapes = one_output(name_of(fun), TITLE, start.shape)
    function, captured = recorded(lambda y, t: fn(t, y), [start, first], TITLE, shapes)
    key = ("ivp", method, option_key(options))
    integration = function.made(key, lambda: Integration(function, method, options))
    times = None if t_eval is None else float_node(t_eval, "t_eval of solve_ivp()")
    if times is not None and (times.ndim != 1 or not times.size):
        message = f"t_eval of solve_ivp() must have one axis with a time or more, but has shape {times.shape}."
        raise ShapeError(message)
    trajectory = Trajectory(integration, key, [first, last, start, *captured])
    ask = Events.of(events, given, start, first)
    if is_plain([*t_span, y0, t_eval], [*trajectory.inputs, *ask.captured]):
        return trajectory.plain(times, dense_output, ask)
    return trajectory.recorded(times, dense_output, ask)


_TAKEN_BY_LSODA = {"hmax": "max_step", "h0": "first_step", "hmin": "min_step"}


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: Any = (),
    Dfun: Any = None,
    full_output: bool = False,
    rtol: float = 1.49012e-8,
    atol: float = 1.49012e-8,
    hmax: float = 0.0,
    h0: float = 0.0,
    hmin: float = 0.0,
    tfirst: bool = False,
) -> Any:
    """The solution of an initial value problem at times, with the arguments of `scipy.integrate.odeint`.

    Parameters
    ----------
    func : callable
        `func(y, t, *args)` gives dy/dt; with `tfirst`, `func(t, y, *args)`. It may close over recorded values.
    y0 : array_like
        The state at the first time.
    t : array_like, shape (m,)
        The times, of which the first is that of `y0`, rising or falling. They may be recorded values.
    args : tuple
        Further arguments of `func`.
    Dfun : optional
        Accepted for SciPy's sake: the Jacobian is nbgrad's.
    full_output : bool
        Whether to return the pair of the states and the `Solution` of `solve_ivp`.
    rtol, atol, hmax, h0, hmin : float
        As for SciPy; steps of length 0 are chosen by the integrator.
    tfirst : bool
        The order of the arguments of `func`.

    Returns
    -------
    array, shape (m, states), or pair

    Raises
    ------
    ShapeError, DtypeError, ArgumentError, TracedValueError, ConvergenceError
        As `solve_ivp`.

    Notes
    -----
    The integrator is `solve_ivp` with LSODA: where nothing is recorded SciPy's, else compiled loops. Values agree with
    SciPy's to the tolerance.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def last(rate):
    ...     return nb.solvers.odeint(lambda y, t: -rate * y, [1.0], [0.0, 2.0])[-1, 0]
    >>> bool(abs(nb.grad(last)(0.5) + 2 * np.exp(-1.0)) < 1e-6)
    True
    """
    check_function(func, "odeint")
    del Dfun
    times = float_node(t, "t of odeint()")
    if times.ndim != 1 or not times.size:
        message = f"t of odeint() must have one axis with a time or more, but has shape {times.shape}."
        raise ShapeError(message)
    fun = func if tfirst else lambda t, y, *rest: func(y, t, *rest)
    lengths = {"hmax": hmax, "h0": h0, "hmin": hmin}
    more: dict[str, Any] = {_TAKEN_BY_LSODA[name]: value for name, value in lengths.items() if value}
    is_tensor = isinstance(t, Tensor)
    ends = [t[0], t[-1]] if is_tensor else [float(t[0]), float(t[-1])]
    found = solve_ivp(fun, ends, y0, "LSODA", t, args=args, rtol=rtol, atol=atol, **more)
    states = found.y.T
    return (states, found) if full_output else states
