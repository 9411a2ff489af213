"""The class whose methods asv finds: what a gradient costs, from the first call in a new process on, and its error.

In: a subclass with functions and their arguments. Out: methods of the names that asv knows, with the parameters
`function` and `library`. Called by asv. A method that needs a new process has fresh_process.py start one, which
imports the subclass again.
"""

from __future__ import annotations

import abc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from ..errors import ArgumentError
from .directional_errors import largest_error
from .library_gradients import LIBRARIES

_Method = TypeVar("_Method", bound=Callable[..., Any])
_PROGRAM = "from nbgrad.bench.fresh_process import main; main()"


def _for_asv(**attributes: Any) -> Callable[[_Method], _Method]:
    """Attributes of a method that asv reads."""

    def marked(method: _Method) -> _Method:
        vars(method).update(attributes)
        return method

    return marked


class Gradients(abc.ABC):
    """Benchmarks for asv of the gradients of functions.

    A subclass in a module of the benchmark folder says which functions; asv finds it there. Each method becomes a plot,
    in which each library is a series.

    Attributes
    ----------
    functions : dict
        Functions of arrays by their names. A function returns one real number.
    libraries : tuple of str
        The series: `"nbgrad"`, compiled; `"differences"`, which calls the function once more for each number of the
        arguments; `"jax"`, compiled, and `"autograd"`, both with their names in place of NumPy's in the function's
        module; others by a `gradient` of the subclass. A library that is not installed is left out. ``("nbgrad",)`` by
        default.
    wrt : int or tuple of int
        Positions of the arguments that the gradient is by; the first by default.
    steps : str
        `"complex"` where functions take complex numbers and are analytic; else `"real"`, by which `track_error` can
        tell errors below about 1e-9 only for smooth functions of moderate size.

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad.bench import Gradients
    >>> def misfit(w, x):
    ...     return np.sum((np.tanh(w * x) - 0.5) ** 2)
    >>> class Fits(Gradients):
    ...     functions = {"misfit": misfit}
    ...     libraries = ("nbgrad", "differences")
    ...     def arguments(self, function):
    ...         return np.array([0.1, 0.2]), np.array([1.0, 3.0])
    >>> fits = Fits()
    >>> fits.setup("misfit", "nbgrad")
    >>> fits.track_error("misfit", "nbgrad") < 1e-12
    True
    """

    functions: ClassVar[Mapping[str, Callable[..., Any]]]
    libraries: ClassVar[tuple[str, ...]] = ("nbgrad",)
    wrt: ClassVar[int | tuple[int, ...]] = 0
    steps: ClassVar[str] = "complex"

    params: ClassVar[tuple[tuple[str, ...], ...]]
    param_names: ClassVar[tuple[str, ...]] = ("function", "library")
    timeout: ClassVar[float] = 300.0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if hasattr(cls, "functions"):
            cls.params = (tuple(cls.functions), tuple(cls.libraries))

    @abc.abstractmethod
    def arguments(self, function: str) -> tuple[Any, ...]:
        """The arguments of a function: numbers, arrays and containers of them, the same at each call.

        Parameters
        ----------
        function : str
            A name of `functions`.

        Returns
        -------
        tuple
            What the function is called with.
        """

    def gradient(self, function: str, library: str) -> Callable[..., Any]:
        """The gradient of a function by a library. A subclass adds libraries by a method of this name.

        Parameters
        ----------
        function : str
            A name of `functions`.
        library : str
            A name of `libraries`.

        Returns
        -------
        callable
            Of the function's arguments: the gradient with respect to `wrt`, for more than one position a tuple.

        Raises
        ------
        ArgumentError
            If the library is none of those of this class.
        ImportError
            If it is not installed.
        """
        if library not in LIBRARIES:
            message = (
                f"{type(self).__name__}.libraries has {library!r}, but only {', '.join(LIBRARIES)} are known here. "
                "Write a method gradient(function, library) that returns a gradient by it."
            )
            raise ArgumentError(message)
        return LIBRARIES[library](self.functions[function], self.wrt)

    def setup(self, function: str, library: str) -> None:
        """Call the gradient once; asv does it before each benchmark, and leaves out libraries that are missing."""
        try:
            self._call = self.gradient(function, library)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != library:
                raise
            message = f"{library} is not installed"
            raise NotImplementedError(message) from None
        self._given = self.arguments(function)
        self._call(*self._given)

    def time_gradient(self, function: str, library: str) -> None:
        """A call, after the first one."""
        del function, library
        self._call(*self._given)

    @_for_asv(number=1, repeat=(1, 3, 20.0), warmup_time=0)
    def time_first_gradient(self, function: str, library: str) -> None:
        """A new process, from start to exit, that imports the module and computes a gradient; no cache has any code."""
        with tempfile.TemporaryDirectory() as folder:
            self._in_a_fresh_process(function, library, NBGRAD_CACHE_DIR=folder)

    @_for_asv(number=1, repeat=(1, 3, 20.0), warmup_time=0)
    def time_first_gradient_again(self, function: str, library: str) -> None:
        """A new process where an earlier one has compiled the gradient."""
        self._in_a_fresh_process(function, library)

    @_for_asv(unit="MB")
    def track_memory(self, function: str, library: str) -> float:
        """Megabytes that a new process grows by at its calls, beside imports and arguments."""
        return self._in_a_fresh_process(function, library)["megabytes"]

    @_for_asv(unit="kernels")
    def track_kernels(self, function: str, library: str) -> float:
        """Kernels of machine code that the first gradient compiles, of nbgrad; NaN for others."""
        if library != "nbgrad":
            return float("nan")
        with tempfile.TemporaryDirectory() as folder:
            return self._in_a_fresh_process(function, library, NBGRAD_CACHE_DIR=folder)["kernels"]

    @_for_asv(unit="relative")
    def track_error(self, function: str, library: str) -> float:
        """The largest relative error of the slopes along three random directions, beside those by complex steps."""
        del library
        return largest_error(self.functions[function], self._call, self._given, self.wrt, self.steps)

    def _in_a_fresh_process(self, function: str, library: str, **environment: str) -> dict[str, Any]:
        """The numbers of a new process that imports this class and computes the gradient."""
        own = type(self)
        path = Path(sys.modules[own.__module__].__file__ or "").resolve()
        if path.name == "__init__.py":
            path = path.parent
        root = path.parents[own.__module__.count(".")]
        paths = os.pathsep.join([str(root), *filter(None, sys.path)])  # asv has a way of its own to set them
        environment = {**os.environ, **environment, "PYTHONPATH": paths}
        command = [sys.executable, "-c", _PROGRAM, own.__module__, own.__qualname__, function, library]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=self.timeout)
        if done.returncode:
            message = f"The process of the gradient of {function} by {library} failed:\n{done.stderr[-3000:]}"
            raise RuntimeError(message)
        return json.loads(done.stdout.splitlines()[-1])
