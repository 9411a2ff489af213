"""The exceptions that nbgrad raises: one tree, each class also the built-in exception that users would catch.

In: a full sentence that says what was given, what was expected and what to do. Out: the same sentence with the place
in the user's code, found here, so that no caller has to. Raised at the boundary by everything users call.
"""

from __future__ import annotations

import os
import sys

_ARRAYS = frozenset(["numpy", "optree", "pandas", "xarray", "torch", "jax"])
"""Libraries of arrays, which call nbgrad on behalf of the user."""
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = tuple([f"{os.sep}{folder}{os.sep}" for folder in ("site-packages", "dist-packages")])


def _is_installed(filename: str) -> bool:
    """Whether a file belongs to Python or to an installed package."""
    return filename.startswith(_STANDARD) or any(folder in filename for folder in _INSTALLED)


def user_location() -> str:
    """The innermost frame that is in no library of arrays, as " (at file.py:12)"; empty if there is none.

    If that is in another installed package, the line that called the package is named first.
    """
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    inner = ""
    while frame is not None:
        filename = frame.f_code.co_filename
        module = frame.f_globals.get("__name__", "")
        library = module.partition(".")[0] in _ARRAYS
        inside = filename.startswith(_PACKAGE) or library or filename[:1] == "<"
        if not inside and _is_installed(filename):
            inner = inner or f"{filename}:{frame.f_lineno}"
        elif not inside:
            through = f", through {inner}" if inner else ""
            return f" (at {filename}:{frame.f_lineno}{through})"
        frame = frame.f_back
    return f" (at {inner})" if inner else ""


class NbgradError(Exception):
    """Base of all errors of nbgrad."""

    def __init__(self, message: str) -> None:
        super().__init__(message + user_location())


class ShapeError(NbgradError, ValueError):
    """Shapes, axes or positions do not fit."""


class AxisError(ShapeError, IndexError):
    """An array has no such axis; NumPy's error is a ValueError and an IndexError, too."""


class DtypeError(NbgradError, TypeError):
    """A dtype or a type cannot be used here."""


class ArgumentError(NbgradError, ValueError):
    """An argument has a value that cannot be used here."""


class RangeError(NbgradError, IndexError):
    """An index is out of range."""


class TracedValueError(NbgradError, TypeError):
    """A value is needed while a function is being recorded, where only its shape and dtype are known or where
    taking it would silently cut it off from the gradient."""


class GradientError(NbgradError, AssertionError):
    """A derivative disagrees with finite differences."""


class CellError(NbgradError, AttributeError):
    """A Cell lacks an attribute, or was used before it was set up."""


class NameTakenError(NbgradError, KeyError):
    """A name cannot be used for a Parameter or Cell, or nothing has the name."""

    __str__ = Exception.__str__


class CheckpointError(NbgradError, ValueError):
    """A checkpoint cannot be read, or does not fit the Parameters that it is loaded into."""


class DeviceError(NbgradError, RuntimeError):
    """A device, its driver or one of its libraries is missing, or has failed."""


class LibraryError(DeviceError):
    """A library that an operation on a device needs is not installed."""
