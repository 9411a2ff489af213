"""Functions of numbers, and their gradients, for use inside users' own kernels: `device_function`.

In: a Python function of numbers, or its `grad` or `value_and_grad`. Out: a function of numbers as Python text without
nbgrad in it, which Numba compiles for CPUs and GPUs. Called by users. The function is recorded as `elementwise`
records it, simplified, and written down by extend/numba_source.py; its pullback is derived from its own text as that of
a kernel is (pullbacks.py).
"""

from __future__ import annotations

import functools
import inspect
import keyword
import math
import os
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..compiled.jit import Jitted
from ..errors import ArgumentError, DtypeError
from ..extend.elementwise_functions import Elementwise, elementwise
from ..extend.if_conversion import record
from ..extend.numba_source import Printed, printed
from ..extend.scalar_code import python_function
from ..graph.ir import placeholder
from ..graph.simplify import simplify
from ..graph.trace import recording
from ..process.once import computed_once
from ..record.foreign_arrays import a_full_name, full_name
from ..record.tensor import Tensor
from ..transforms.arguments import flatten, node_of
from ..transforms.lent_arrays import kind_of
from .pullbacks import pullback

_KINDS = "biuf"


class DeviceFunction:
    """A function of numbers as Python text. Made by `device_function`.

    Attributes
    ----------
    source : str
        The text: imports, helper functions, and the function.
    """

    def __init__(
        self, text: Printed, dtypes: Sequence[np.dtype[Any]], objects: Mapping[str, np.ndarray] | None = None
    ) -> None:
        self.__name__ = text.name
        self.source = text.source
        self._text = text
        self._dtypes = tuple(dtypes)
        self._objects = dict(objects or {})
        self._njit: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<device function {self.__name__}>"

    def __call__(self, *args: Any) -> Any:
        """Run the text as Python, with NumPy's numbers, which give inf and NaN where Python's raise."""
        if len(args) != len(self._dtypes):
            message = f"{self.__name__}() takes {len(self._dtypes)} numbers, but got {len(args)}."
            raise ArgumentError(message)
        for position, value in enumerate(args):
            if kind_of(value) == "other" or np.ndim(value):
                message = (
                    f"{self.__name__}() takes single numbers, but argument {position} is {a_full_name(value)}. Call it "
                    "in a loop or a kernel."
                )
                raise DtypeError(message)
        return self._python(*args)

    @computed_once
    def _python(self) -> Callable[..., Any]:
        return quiet(self._made(_numpy_math(), lambda function: function))

    def _made(self, module: Any, decorate: Callable[[Any], Any]) -> Any:
        """The function in a namespace of its own; its helpers are decorated like itself."""
        namespace: dict[str, Any] = {"math": module, "np": np, "__name__": f"nbgrad.{self.__name__}", **self._objects}
        for name, text in (*self._text.helpers, (self.__name__, self._text.body)):
            exec(compile(text, f"<device function {self.__name__}>", "exec"), namespace)
            if name != self.__name__:
                namespace[name] = decorate(namespace[name])
        return namespace[self.__name__]

    def njit(self, **options: Any) -> Any:
        """The function compiled by `numba.njit`, for use inside of other such functions.

        Parameters
        ----------
        **options
            Of `numba.njit`, such as `fastmath=True`; `error_model` is "numpy", so that 1 / 0 is inf.

        Returns
        -------
        numba dispatcher
        """
        key = tuple(sorted(options.items()))
        if key not in self._njit:
            import numba

            asked: dict[str, Any] = {"error_model": "numpy", **options}
            decorate: Any = numba.njit(**asked)
            self._njit[key] = decorate(self._made(math, decorate))
        return self._njit[key]

    @property
    def _numba_type_(self) -> Any:
        """The attribute that Numba reads when a function that it compiles uses this one."""
        return self.njit()._numba_type_

    def cuda(self, jit: Any = None) -> Any:
        """The function for use inside of a kernel on a GPU.

        Parameters
        ----------
        jit : callable, optional
            `cuda.jit` of numba-cuda or numba-cuda-mlir, or what it gives with options: `cuda.jit(device=True)`. By
            default that of `numba.cuda`.

        Returns
        -------
        device function
        """
        if jit is None:
            from ..device.memory.custom_launches import numba_cuda

            jit = numba_cuda().jit
        if not callable(jit):
            message = f"cuda() takes a decorator such as numba.cuda.jit, but got {a_full_name(jit)}."
            raise DtypeError(message)
        decorate: Any
        try:
            decorate = jit(device=True)
        except TypeError:
            decorate = jit
        if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0"):
            # Numba's simulator runs Python, whose math raises where a GPU gives NaN.
            return decorate(quiet(self._made(_numpy_math(), lambda function: function)))
        return decorate(self._made(math, decorate))


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function in which NumPy does not warn."""

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return run


@functools.cache
def _numpy_math() -> Any:
    """The stand-in for `math` in text that runs as Python: NumPy's functions, which keep float32 and never raise."""
    renamed = {f"a{name}": f"arc{name}" for name in "sin cos tan sinh cosh tanh".split()}
    renamed.update(atan2="arctan2", pow="power")
    same = "exp expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh copysign hypot isnan isinf isfinite"
    found: dict[str, Any] = {name: getattr(np, name) for name in same.split()}
    found.update({name: getattr(np, numpys) for name, numpys in renamed.items()})
    special = {"erf": "erf", "erfc": "erfc", "lgamma": "gammaln"}
    found.update({name: functools.partial(_special, scipys) for name, scipys in special.items()})
    return SimpleNamespace(**found, inf=math.inf, nan=math.nan, pi=math.pi)


def _special(name: str, x: Any) -> Any:
    import scipy.special

    return getattr(scipy.special, name)(x)


def device_function(
    function: Callable[..., Any],
    /,
    *,
    dtype: Any = np.float64,
    name: str | None = None,
    value: bool = False,
    vjp: bool = False,
) -> Any:
    """A function of numbers, or its gradient, as Python text that can be called inside of your own kernels.

    Parameters
    ----------
    function : callable
        A function of numbers as for `elementwise`, or `grad`, `value_and_grad` or `jit` of one, in any nesting: the
        gradient, or value and gradient, of that function of numbers.
    dtype : dtype, or tuple of dtypes
        Of the arguments: one for all, or one for each. With float32, all that is computed is float32. A tuple also
        tells how many arguments there are, where the function does not.
    name : str, optional
        The name of the new function; by default made of that of `function`.
    value : bool
        Whether `grad(f)` gives the value of f too, first, as `value_and_grad(f)` does.
    vjp : bool
        Whether to give the pullback of `function`, which may have several results, loops of any kind and calls of other
        compiled functions: `pullback(*arguments, *cotangents)` with a cotangent for each result of floats gives those
        of the arguments of floats. Branches stay branches. Loops whose numbers are needed backwards store them in
        arrays, which functions for GPUs cannot make.

    Returns
    -------
    DeviceFunction
        Takes numbers, and gives a number, or a flat tuple of them: for `value_and_grad(f, (0, 1))` the value and both
        derivatives. It can be called from Python, and as it is from functions that `numba.njit` compiles;
        `.cuda(cuda.jit)` is a device function for kernels, `.njit(**options)` a dispatcher, and `.source` the text.

    Raises
    ------
    DtypeError
        If the function works with arrays, or with dtypes other than booleans, integers, float32 and float64.
    ArgumentError, TracedValueError
        As `elementwise`, and for a name that is none.

    Notes
    -----
    Both sides of a branch are computed. Where the text is compiled by your own decorator, give Numba
    `error_model="numpy"` for the CPU; helper functions in the text need the same decorator.

    Examples
    --------
    >>> import math
    >>> import nbgrad as nb
    >>> def energy(r, sigma):
    ...     s = (sigma / r) ** 6
    ...     return 4.0 * (s * s - s) if r < 2.5 else 0.0
    >>> force = nb.device_function(nb.value_and_grad(energy))
    >>> value, slope = force(2.0, 1.0)
    >>> print(f"{value:.6f} {slope:.6f}")
    -0.061523 0.181641
    >>> print(nb.device_function(lambda x: x * math.sin(x), name="f").source)
    import math
    <BLANKLINE>
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def f(x):
        \"\"\"<lambda>(x), written by nbgrad.\"\"\"
        x = np.float64(x)
        t1 = math.sin(x)
        t2 = x * t1
        return t2
    <BLANKLINE>
    >>> def polar(x, y):
    ...     return math.hypot(x, y), math.atan2(y, x)
    >>> pullback = nb.device_function(polar, vjp=True)
    >>> x_cotangent, y_cotangent = pullback(3.0, 4.0, 1.0, 0.0)
    >>> print(f"{x_cotangent:.1f} {y_cotangent:.1f}")
    0.6 0.8
    """
    if not callable(function):
        message = f"device_function takes a function of numbers, but got {a_full_name(function)}."
        raise DtypeError(message)
    if vjp:
        if value:
            message = "value=True is for what grad() gives, not for vjp=True. Call the function itself, too."
            raise ArgumentError(message)
        dtypes = _dtypes(dtype, len(_argument_names(function, dtype)))
        return DeviceFunction(*pullback(function, dtypes, None if name is None else _identifier(name)))
    if _gives_arrays(function):
        message = (
            "device_function takes a function of numbers, or grad, value_and_grad or jit of one, but not what jacrev, "
            "jacfwd, hessian, vmap or the sparse ones give, which are arrays. nb.grad(f, (0, 1)) has the derivatives "
            "by two arguments, nb.grad(nb.grad(f)) the second one; device_function(f, vjp=True) takes several results."
        )
        raise DtypeError(message)
    if value:
        function = _with_value(function)
    names = _argument_names(function, dtype)
    dtypes = _dtypes(dtype, len(names))
    about, default = _title(function)
    name = default if name is None else _identifier(name)
    nodes = [placeholder((), one) for one in dtypes]
    with recording(nodes):
        result = _of_numbers(function)(*[Tensor._of(node) for node in nodes])
    leaves = flatten(result)[0]
    if not leaves or any(kind_of(leaf) == "other" for leaf in leaves):
        given = full_name(result) if leaves else "nothing"
        message = f"{about}() returned {given}, but a device function must return numbers."
        raise DtypeError(message)
    outputs = simplify([node_of(leaf) for leaf in leaves])
    text = f"{about}({', '.join(names)}), written by nbgrad."
    return DeviceFunction(printed(name, list(zip(names, nodes, strict=True)), outputs, text), dtypes)


def _identifier(name: Any) -> str:
    """A name that a user gives."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        message = f"name must be a name in Python, but is {name!r}."
        raise ArgumentError(message)
    return name


def _gives_arrays(function: Any) -> bool:
    """Whether a transform that gives arrays has made a function."""
    while isinstance(function, Jitted) or hasattr(function, "of_another"):
        function = function.fn if isinstance(function, Jitted) else function.__wrapped__
    code = getattr(function, "__code__", None)
    made_here = code is not None and code.co_name in ("jacobian", "mapped") and hasattr(function, "__wrapped__")
    return made_here or type(function).__name__ == "SparseMatrixOf"


def _with_value(function: Any) -> Any:
    """`value_and_grad` in place of `grad`."""
    made = getattr(function.fn if isinstance(function, Jitted) else function, "with_value", None)
    if made is None:
        message = f"value=True is for what grad() gives, but got {_title(function)[0]}."
        raise ArgumentError(message)
    return made()


def _title(function: Any) -> tuple[str, str]:
    """The description of a function, and an identifier for it."""
    if isinstance(function, Jitted):
        return _title(function.fn)
    inner = getattr(function, "__wrapped__", None) if hasattr(function, "of_another") else None
    if inner is not None:
        kind = "grad" if function.of_another.func.__name__ == "_gradient" else "value_and_grad"
        about, name = _title(inner)
        return f"{kind} of {about}", f"{name}_{kind}"
    about = getattr(function, "__name__", type(function).__name__)
    return about, about if about.isidentifier() else "function"


def _of_numbers(function: Any) -> Callable[..., Any]:
    """The function that is recorded: at the bottom one of numbers, which may branch and call `math`."""
    if isinstance(function, Jitted):
        return _of_numbers(function.fn)
    if hasattr(function, "of_another"):
        return function.of_another(_of_numbers(function.__wrapped__))
    if isinstance(function, Elementwise):
        return _of_numbers(function.scalar_function)
    if python_function(function) is None:
        return function
    elementwise(function)  # refuses what cannot be recorded

    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        return record(function, args, kwargs)

    return recorded


def _argument_names(function: Any, dtype: Any) -> list[str]:
    """The arguments without a default, or as many as there are dtypes."""
    while isinstance(function, Jitted) or hasattr(function, "of_another"):
        function = function.fn if isinstance(function, Jitted) else function.__wrapped__
    function = python_function(getattr(function, "scalar_function", function)) or function
    count = len(dtype) if isinstance(dtype, tuple | list) else None
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = None
    if parameters is None or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        if count is None:
            message = (
                f"How many arguments {_title(function)[0]}() takes cannot be seen. Give their dtypes: "
                "dtype=(np.float64, np.float64) for two."
            )
            raise ArgumentError(message)
        return [f"x{k}" for k in range(count)]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p.name for p in positional if p.default is p.empty]
    if count is None:
        return required
    if not len(required) <= count <= len(positional):
        message = f"dtype has {count} entries, but {_title(function)[0]}() takes {len(required)} arguments."
        raise ArgumentError(message)
    return [p.name for p in positional[:count]]


def _dtypes(given: Any, count: int) -> list[np.dtype[Any]]:
    """One dtype for each argument."""
    several = list(given) if isinstance(given, tuple | list) else [given] * count
    found: list[np.dtype[Any]] = []
    for one in several:
        try:
            dtype = np.dtype(one)
        except TypeError:
            dtype = None
        if dtype is None or dtype.kind not in _KINDS or dtype == np.float16 or dtype.itemsize > 8:
            message = f"dtype must be float32, float64, an integer dtype or bool, or a tuple of them, but is {one!r}."
            raise DtypeError(message)
        found.append(dtype)
    return found
