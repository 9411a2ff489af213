"""Functions that return arrays, and whose insides are not recorded, as operations: `callback`.

In: a function that gets ndarrays and returns ndarrays (SciPy, a Fortran routine, a simulator that a command starts),
and functions for its derivatives, or a request for differences. Out: a function on arrays that can be differentiated,
compiled and mapped. Called by users. It is a `primitive` (custom_kernels.py) whose kernels write what the functions
return; without a shape rule, a first call shows the shapes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, overload

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..process.named_objects import NamedObject
from ..record.foreign_arrays import a_full_name
from ..record.tensor import Tensor
from ..transforms.arguments import name_of
from ..transforms.host_code import sample
from ..transforms.lent_arrays import lends
from .custom_kernels import Described, Primitive, primitive
from .differences import KINDS, Differences

Function = Callable[..., Any]
Arrays = Sequence[np.ndarray]
_MOST_KNOWN = 1000
"""Combinations of shapes and keyword arguments whose results are remembered."""


class Callback(NamedObject):
    """A function of plain arrays that takes part in recordings. Made by `callback`."""

    def __init__(
        self, function: Function, rules: dict[str, Any], shape: Function | None, threads: int, name: str
    ) -> None:
        self.function, self.rules, self.shape, self.threads = function, rules, shape, threads
        functools.update_wrapper(self, function, updated=())
        self.__name__ = name
        self._made: dict[tuple[int, ...], Primitive] = {}
        self._layouts: dict[Any, Any] = {}
        self._last: tuple[Arrays, dict[str, Any], Any] | None = None

    def __repr__(self) -> str:
        return f"<callback {self.__name__}>"

    @lends
    def __call__(self, *arrays: Any, **params: Any) -> Any:
        """Call the function.

        Parameters
        ----------
        *arrays : array_like
            At least one array or number.
        **params : hashable
            Handed on as they are; they are not differentiated, and programs are compiled for their values.

        Returns
        -------
        array, or tuple of arrays
            As the function returns them; ndarrays if all arguments are ndarrays or numbers, otherwise Tensors.
        """
        ranks = tuple(map(np.ndim, arrays))
        made = self._made.get(ranks)
        if made is None:
            made = self._made[ranks] = self._primitive(ranks)
        shape = self.shape
        if shape is None:
            return made.call_by(lambda *given, **same: self._layout(arrays, given, same), arrays, params)
        return made.call_by(lambda *given, **same: _as_list(shape(*given, **same)), arrays, params)

    def _primitive(self, ranks: tuple[int, ...]) -> Primitive:
        """The primitive for arrays with these numbers of axes."""
        count = len(ranks)
        title = self.__name__

        def forward(arrays: Arrays, params: dict[str, Any]) -> None:
            returned = self._returned(arrays[:count], params)
            _write(arrays[count:], returned, title, "result")

        def derived(which: str, rule: Any, arrays: Arrays, params: dict[str, Any]) -> None:
            inputs, outputs, given, targets = _parts(which, arrays, count)
            if isinstance(rule, Differences):
                returned = getattr(rule, which)(inputs, outputs, given, params)
            else:
                returned = rule(*[array[()] for array in (*inputs, *outputs, *given)], **params)
            words = "gradient" if which == "vjp" else "tangent"
            _write(targets, returned, f"the {which} of {title}", words)

        rank = ranks[0] if ranks else 0
        rules = {which: self._kernel(partial(derived, which, rule), rank) for which, rule in self.rules.items()}
        # The shape rule is that of each call.
        made = primitive(self._kernel(forward, rank), shape=_as_list, name=title, batched=self.threads > 1, **rules)
        made.made_by, made.writes = "nb.callback", "returns"
        return made

    def _kernel(self, run: Callable[[Arrays, dict[str, Any]], None], rank: int) -> Function:
        """A kernel; if the first array has more axes, the values along these are given to threads."""

        def kernel(*arrays: np.ndarray, **params: Any) -> None:
            if arrays[0].ndim == rank:
                run(arrays, params)
                return
            many = [[array[k, ...] for array in arrays] for k in range(len(arrays[0]))]
            for _ in in_threads(self.threads, lambda each: run(each, params), many):
                pass

        return kernel

    def _returned(self, inputs: Arrays, params: dict[str, Any]) -> Any:
        """The function's results; if the call that has shown their shapes had the same arguments, its results."""
        last, self._last = self._last, None
        if last is not None and last[1] == params and all(map(_have_same_bits, last[0], inputs)):
            return last[2]
        return self.function(*[array[()] for array in inputs], **params)

    def _layout(self, arrays: Sequence[Any], given: Sequence[Described], params: dict[str, Any]) -> Any:
        """The shapes and dtypes of the results, from a call with values that the arrays have."""
        key = tuple([(one.shape, one.dtype) for one in given]), tuple(sorted(params.items()))
        known = self._layouts.get(key)
        if known is None:
            values = [sample(one._node) if isinstance(one, Tensor) else np.array(one) for one in arrays]
            returned = self.function(*[value.copy()[()] for value in values], **params)
            found = [_layout_of(one, self.__name__) for one in _results(returned)]
            known = found if isinstance(returned, tuple | list) else found[0]
            if len(self._layouts) >= _MOST_KNOWN:
                self._layouts.clear()
            self._layouts[key] = known
            self._last = values, params, returned
        return known


def in_threads(threads: int, function: Callable[[Any], Any], many: Iterable[Any]) -> Iterator[Any]:
    """The results of a function for many arguments, in their order, computed by so many threads."""
    if threads < 2:
        yield from map(function, many)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(function, many)


def _parts(which: str, arrays: Arrays, count: int) -> tuple[Arrays, Arrays, Arrays, Arrays]:
    """The inputs of a rule, the results of the function, the given derivatives, and the arrays to write to.

    There is a derivative for each input and each result of floats, so that the number of all arrays says how many
    results there are.
    """
    inputs = arrays[:count]
    of_inputs = _floats(inputs)
    results = next(
        k for k in range(len(arrays)) if k + _floats(arrays[count : count + k]) == len(arrays) - count - of_inputs
    )
    targets = of_inputs if which == "vjp" else len(arrays) - count - results - of_inputs
    middle, end = count + results, len(arrays) - targets
    return inputs, arrays[count:middle], arrays[middle:end], arrays[end:]


def _floats(arrays: Arrays) -> int:
    return sum(array.dtype.kind in "fc" for array in arrays)


def _as_list(given: Any) -> Any:
    """Several results of a shape rule as the list that `primitive` takes."""
    return list(given) if isinstance(given, tuple) and given and not isinstance(given[0], int | tuple) else given


def _results(returned: Any) -> Sequence[Any]:
    return returned if isinstance(returned, tuple | list) else [returned]


def _layout_of(value: Any, title: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        message = f"{title} has returned {a_full_name(value)}, but must return an array or number, or a tuple of them."
        raise DtypeError(message)
    return array.shape, array.dtype


def _have_same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()


def _write(targets: Arrays, returned: Any, title: str, word: str) -> None:
    """Write what a function has returned into arrays.

    Raises
    ------
    ShapeError, DtypeError
        If it does not fit.
    """
    found = _results(returned)
    if len(found) != len(targets):
        message = f"{title} has returned {len(found)} {word}s, but {len(targets)} are needed."
        raise ShapeError(message)
    for position, (target, value) in enumerate(zip(targets, found, strict=True)):
        if value is None and word != "result":
            target[...] = 0
            continue
        array = np.asarray(value)
        if array.shape != target.shape:
            message = f"{title} has returned {word} {position} of shape {array.shape}, but {target.shape} is needed."
            raise ShapeError(message)
        if not np.can_cast(array.dtype, target.dtype, "same_kind"):
            message = f"{title} has returned {word} {position} of {array.dtype}, but {target.dtype} is needed."
            raise DtypeError(message)
        target[...] = array


@overload
def callback(
    function: Function,
    *,
    vjp: Function | None = None,
    jvp: Function | None = None,
    differences: str | None = None,
    step: float | None = None,
    shape: Function | None = None,
    threads: int = 1,
    name: str | None = None,
) -> Callback: ...
@overload
def callback(
    *,
    vjp: Function | None = None,
    jvp: Function | None = None,
    differences: str | None = None,
    step: float | None = None,
    shape: Function | None = None,
    threads: int = 1,
    name: str | None = None,
) -> Callable[[Function], Callback]: ...
def callback(
    function: Any = None,
    *,
    vjp: Any = None,
    jvp: Any = None,
    differences: str | None = None,
    step: float | None = None,
    shape: Any = None,
    threads: int = 1,
    name: str | None = None,
) -> Any:
    """A function that gets and returns plain arrays, as an operation in functions that are differentiated and compiled.

    For functions that nbgrad cannot record: SciPy's compiled routines, Fortran, a simulator that a command starts.
    `nb.primitive` is the same for functions that write their results into arrays, with CUDA and higher orders.

    Parameters
    ----------
    function : callable
        `function(*inputs, **params)` gets ndarrays, NumPy scalars in place of arrays without axes, and returns an
        array or number, or a tuple of them. Its results must depend on nothing else. Without it, the result is a
        decorator.
    vjp : callable, optional
        The reverse rule: `vjp(*inputs, *results, *cotangents, **params)` returns the gradient of the sum of all
        elements of `cotangent * result` by each input of floats, or None for zeros; a tuple if there are several such
        inputs. There is a cotangent for each result of floats.
    jvp : callable, optional
        The forward rule: `jvp(*inputs, *results, *tangents, **params)`, with a tangent for each input of floats,
        returns one for each result of floats.
    differences : {"central", "forward"}, optional
        Makes both rules where they are not given, by more calls of the function: forward mode takes two of them (one
        for "forward"), reverse mode two (one) for each element of the inputs of floats. About 10 (8) digits of float64
        are right where the function is smooth and exact to rounding.
    step : float, optional
        The step of differences, relative to the size of each element or to 1: larger for functions with noise.
    shape : callable, optional
        `shape(*inputs, **params)` gets objects with `shape`, `dtype`, `ndim` and `size` and gives `(shape, dtype)` of
        the result, or an object that has both; a list if there are several results. Without it, the function is called
        once for each combination of shapes when it is recorded.
    threads : int, optional
        How many values of `vmap`, and elements of differences, are computed at a time. The function must allow that,
        and gains if it leaves the interpreter, as a process or a compiled routine does.
    name : str, optional
        Its name in messages.

    Returns
    -------
    callable
        Takes the inputs by position and `params`, hashable values, by keyword.

    Raises
    ------
    ArgumentError, DtypeError
        If the arguments are not of these kinds. Calls raise errors with the function's name, ShapeError among them, for
        errors in a function and for results that do not fit.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> from scipy.linalg.lapack import dgtsv          # a routine in Fortran: a tridiagonal system
    >>> def solved(low, main, up, right):
    ...     return dgtsv(low, main, up, right)[3]
    >>> def solved_vjp(low, main, up, right, x, g):
    ...     y = dgtsv(up, main, low, g)[3]             # the transposed system
    ...     return -y[1:] * x[:-1], -y * x, -y[:-1] * x[1:], y
    >>> solve = nb.callback(solved, vjp=solved_vjp)
    >>> low, main, right = np.full(3, -1.0), np.full(4, 3.0), np.ones(4)
    >>> def energy(main):
    ...     return np.sum(solve(low, main, low, right) ** 2)
    >>> nb.grad(energy)(main).round(4)
    array([-0.48, -0.96, -0.96, -0.48])
    >>> checked = nb.callback(solved, differences="central")
    >>> nb.grad(lambda main: np.sum(checked(low, main, low, right) ** 2))(main).round(4)
    array([-0.48, -0.96, -0.96, -0.48])
    """
    if function is None:
        return lambda given: callback(
            given, vjp=vjp, jvp=jvp, differences=differences, step=step, shape=shape, threads=threads, name=name
        )
    for argument, value in {"function": function, "vjp": vjp, "jvp": jvp, "shape": shape}.items():
        if not callable(value) and (argument == "function" or value is not None):
            message = f"{argument} of nb.callback must be a function, but is {a_full_name(value)}."
            raise DtypeError(message)
    if differences is not None and differences not in KINDS:
        message = f'differences of nb.callback must be "central" or "forward", but is {differences!r}.'
        raise ArgumentError(message)
    if step is not None and (isinstance(step, bool) or not isinstance(step, int | float) or not step > 0):
        message = f"step of nb.callback must be a positive number, but is {step!r}."
        raise ArgumentError(message)
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        message = f"threads of nb.callback must be a positive integer, but is {threads!r}."
        raise ArgumentError(message)
    title = name if name is not None else name_of(function)
    rules = {"vjp": vjp, "jvp": jvp}
    if differences is not None:
        made = Differences(function, differences, step, title, partial(in_threads, threads))
        rules = {which: rule if rule is not None else made for which, rule in rules.items()}
    return Callback(function, {which: rule for which, rule in rules.items() if rule is not None}, shape, threads, title)
