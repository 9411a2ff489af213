"""The exceptions that nbgrad raises: one tree, each class also the built-in exception that users would catch.

In: a full sentence that says what was given, what was expected and the way out. Out: the same sentence with the place
in the user's code, found here, so that no caller has to. Raised at the boundary by everything users call. A warning
stands beside the tree.
"""

from __future__ import annotations

import os
import sys
from types import FrameType, TracebackType
from typing import Any

from . import config

__all__ = [
    "ArgumentError",
    "AutogradError",
    "AxisError",
    "BroadcastError",
    "CellError",
    "CheckpointError",
    "DeviceError",
    "DtypeError",
    "FrozenDrawWarning",
    "GradientError",
    "GradientShapeError",
    "LibraryError",
    "LongRecordingWarning",
    "NameTakenError",
    "NbgradError",
    "NoSamplesError",
    "OutOfMemoryError",
    "RangeError",
    "ShapeError",
    "TracedValueError",
]

_ARRAYS = frozenset(["numpy", "optree", "pandas", "xarray", "torch", "jax", "numba", "functools"])
"""Libraries of arrays, and the libraries that they call in between; they call nbgrad on behalf of the user."""
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = tuple([f"{os.sep}{folder}{os.sep}" for folder in ("site-packages", "dist-packages")])


def is_installed(filename: str) -> bool:
    """Whether a file belongs to Python or to an installed package."""
    return filename.startswith(_STANDARD) or any(folder in filename for folder in _INSTALLED)


def users_frame() -> FrameType | None:
    """The innermost frame that is neither nbgrad's nor a library of arrays."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and is_internal(frame):
        frame = frame.f_back
    return frame


def is_internal(frame: FrameType) -> bool:
    """Whether a frame is nbgrad's, or that of a library of arrays, which calls nbgrad on behalf of the user."""
    inside = frame.f_code.co_filename.startswith(_PACKAGE)
    return inside or frame.f_globals.get("__name__", "").partition(".")[0] in _ARRAYS


def shorten(error: BaseException) -> None:
    """Let the traceback of an error that leaves nbgrad end in the user's frame.

    Frames of nbgrad disappear, and behind the last one of the user's those of NumPy; of errors that nbgrad did not
    mean to raise, and with NBGRAD_FULL_TRACEBACKS=1, all stay.
    """
    entries: list[TracebackType] = []
    entry = error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    users = [not is_internal(entry.tb_frame) for entry in entries]
    if config.full_tracebacks() or not any(users) or not (users[-1] or isinstance(error, NbgradError)):
        return
    last = len(users) - users[::-1].index(True)
    kept = None
    for entry in reversed(entries[:last]):
        if not entry.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            entry.tb_next = kept
            kept = entry
    error.__traceback__ = kept


def user_location() -> str:
    """The innermost frame that is in no library of arrays, as " (at file.py:12)"; empty if there is none.

    If that is in another installed package, the line that called the package is named first.
    """
    own, package = _places()
    if own is None:
        return f" (at {_shown(package)})" if package else ""
    through = f", through {_shown(package)}" if package else ""
    return f" (at {_shown(own)}{through})"


def users_line() -> tuple[str, int, str] | None:
    """The file, line and module of the innermost frame of the user's own, else of an installed package."""
    own, package = _places()
    frame = own or package
    return frame and (frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__", ""))


def _places() -> tuple[FrameType | None, FrameType | None]:
    """The innermost frame of the user's own, and the one of another package that it has called, if there is one."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    package: FrameType | None = None
    while frame is not None:
        filename = frame.f_code.co_filename
        inside = is_internal(frame) or filename[:1] == "<"
        if not inside and is_installed(filename):
            package = package or frame
        elif not inside:
            return frame, package
        frame = frame.f_back
    return None, package


def _shown(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class NbgradError(Exception):
    """Base of all errors of nbgrad."""

    def __init__(self, message: str) -> None:
        super().__init__(message + user_location())

    def __reduce__(self) -> Any:
        """The error as it is: a copy, or one from another process, keeps its place."""
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[NbgradError], args: tuple[Any, ...]) -> NbgradError:
    return kind.__new__(kind, *args)


class ShapeError(NbgradError, ValueError):
    """Shapes, axes or positions do not fit."""


class BroadcastError(ShapeError):
    """Shapes do not broadcast together."""


class AxisError(ShapeError, IndexError):
    """An array has no such axis; NumPy's error is a ValueError and an IndexError, too."""


class DtypeError(NbgradError, TypeError):
    """A dtype or a type cannot be used here."""


class ArgumentError(NbgradError, ValueError):
    """An argument has a value that cannot be used here."""


class RangeError(NbgradError, IndexError):
    """An index is out of range."""


class OutOfMemoryError(NbgradError, MemoryError):
    """There is not enough memory for the arrays of a computation."""


class TracedValueError(NbgradError, TypeError):
    """A value is needed while a function is being recorded, where only its shape and dtype are known or where
    taking it would silently cut it off from the gradient."""


class GradientError(NbgradError, AssertionError):
    """A derivative disagrees with finite differences."""


class AutogradError(NbgradError, RuntimeError):
    """Values cannot be differentiated as asked: they do not remember how they were made, or not any more."""


class GradientShapeError(AutogradError, ShapeError):
    """A cotangent does not have the shape of what it belongs to."""


class CellError(NbgradError, AttributeError):
    """A Cell lacks an attribute, or was used before it was set up."""


class NameTakenError(NbgradError, KeyError):
    """A name cannot be used for a Parameter or Cell, or nothing has the name."""

    __str__ = Exception.__str__


class CheckpointError(NbgradError, ValueError):
    """A checkpoint cannot be read, or does not fit the Parameters that it is loaded into."""


class BlockError(NbgradError, RuntimeError):
    """A block of data cannot be read, or the function of it has failed."""


class NoSamplesError(NbgradError, RuntimeError):
    """A metric is asked for before it has seen a sample."""


class DeviceError(NbgradError, RuntimeError):
    """A device, its driver or one of its libraries is missing, or has failed."""


class LibraryError(DeviceError):
    """A library that an operation on a device needs is not installed."""


class FrozenDrawWarning(UserWarning):
    """A function that `jit` records draws random numbers, which stay what they are."""


class LongRecordingWarning(UserWarning):
    """A function records very many operations in which no loop is found."""
