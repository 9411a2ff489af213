"""Blocks in which values remember, or do not: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`.

In: nothing, or whether to remember. Out: objects for `with`, which are decorators too. Called by users. Each thread,
and each task of asyncio, has its own mode.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..errors import DtypeError
from ..graph.trace import current_trace
from ..process.modes import Mode, enter, mode


class _Block:
    """A mode for the time of a `with` block, or of the calls of a decorated function."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if args and callable(args[0]):  # used as a decorator without parentheses
            return cls()(args[0])
        return object.__new__(cls)

    def __init__(self) -> None:
        self._before: list[Mode] = []

    def _mode(self) -> Mode:
        """The mode of the block."""
        raise NotImplementedError

    def __enter__(self) -> None:
        self._before.append(enter(self._mode()))

    def __exit__(self, *_: Any) -> None:
        enter(self._before.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose calls are such blocks; of a generator, all that it does between two values."""
        if inspect.isgeneratorfunction(function):
            return self._of_generator(function)

        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return within

    def _of_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            made = function(*args, **kwargs)
            resume, given = made.send, None
            while True:
                try:
                    with self:
                        value = resume(given)
                except StopIteration as ended:
                    return ended.value
                try:
                    resume, given = made.send, (yield value)
                except GeneratorExit:
                    with self:
                        made.close()
                    raise
                except BaseException as error:
                    resume, given = made.throw, error

        return within


class no_grad(_Block):  # noqa: N801 - PyTorch's name
    """A block, or a function, whose results do not remember how they were made; leaves may be written to there.

    Examples
    --------
    >>> import nbgrad as nb
    >>> x = nb.tensor([1.0], requires_grad=True)
    >>> with nb.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def _mode(self) -> Mode:
        return mode().but(remembers=False, recording=current_trace())


class enable_grad(_Block):  # noqa: N801 - PyTorch's name
    """A block, or a function, whose results remember, within `no_grad` too; trainable Parameters are leaves there.

    Examples
    --------
    >>> import nbgrad as nb
    >>> w = nb.Parameter(nb.Tensor([2.0]), name="w")
    >>> with nb.enable_grad():
    ...     loss = (w * w).sum()
    >>> loss.backward()
    >>> print(w.grad)
    [4.]
    """

    def _mode(self) -> Mode:
        return mode().but(remembers=True, parameters=True, recording=None)


class set_grad_enabled(_Block):  # noqa: N801 - PyTorch's name
    """Let results remember or not: from now on in this thread, or for a `with` block.

    Parameters
    ----------
    mode : bool

    Raises
    ------
    DtypeError
        If `mode` is no bool.

    Examples
    --------
    >>> import nbgrad as nb
    >>> with nb.set_grad_enabled(False):
    ...     nb.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._wanted = _checked(mode, "set_grad_enabled")
        self._before.append(enter(self._mode()))

    def _mode(self) -> Mode:
        return mode().but(remembers=self._wanted, recording=None if self._wanted else current_trace())

    def __enter__(self) -> None:
        if not self._before:
            super().__enter__()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose calls are such blocks; the mode is as before."""
        if self._before:
            enter(self._before.pop())
        return super().__call__(function)


class inference_mode(_Block):  # noqa: N801 - PyTorch's name
    """PyTorch's faster form of `no_grad`, which is the same here.

    Parameters
    ----------
    mode : bool
        False for the usual mode.
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._wanted = _checked(mode, "inference_mode")

    def _mode(self) -> Mode:
        recording = current_trace() if self._wanted else None
        return mode().but(remembers=not self._wanted, inference=self._wanted, recording=recording)


def is_grad_enabled() -> bool:
    """Whether results remember now, in this thread."""
    return mode().remembers


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in `inference_mode`."""
    return mode().inference


def _checked(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        message = f"{name} takes True or False, but got {value!r} of type {type(value).__name__}."
        raise DtypeError(message)
    return value
