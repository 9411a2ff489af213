"""MindSpore's private `_checkparam`: checks of arguments, which layers of public collections call.

In: a value, its name, and the name of the class that takes it. Out: the value. Called by ported code only; nbgrad's own
checks are in nn/layer_arguments.py. Every function raises a TypeError for a value of another type, and a ValueError for
one out of range.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError, DtypeError
from ..record.axes_and_dtypes import axes_of

__all__ = [
    "check",
    "check_and_canonicalize_axes",
    "check_bool",
    "check_float_range",
    "check_int",
    "check_int_range",
    "check_is_float",
    "check_is_int",
    "check_isinstance",
    "check_number",
    "check_string",
    "check_subclass",
    "check_value_type",
]

EQ, NE, LT, LE, GT, GE, INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH, IN, NOT_IN = range(1, 13)
"""How a value must stand to another, or to a range, of which ends may be included."""
_RELATIONS: dict[int, tuple[str, Callable[[Any, Any], Any]]] = {
    EQ: ("equal to", operator.eq),
    NE: ("other than", operator.ne),
    LT: ("less than", operator.lt),
    LE: ("at most", operator.le),
    GT: ("greater than", operator.gt),
    GE: ("at least", operator.ge),
    IN: ("among", lambda value, values: value in values),
    NOT_IN: ("not among", lambda value, values: value not in values),
}
_RANGES: dict[int, tuple[str, Callable[..., Any], Callable[..., Any]]] = {
    INC_NEITHER: ("between {} and {}, without both", operator.gt, operator.lt),
    INC_LEFT: ("from {} to below {}", operator.ge, operator.lt),
    INC_RIGHT: ("above {} up to {}", operator.gt, operator.le),
    INC_BOTH: ("from {} to {}", operator.ge, operator.le),
}


def _called(arg_name: str | None, prim_name: str | None) -> str:
    return f"{arg_name or 'The argument'}{f' of {prim_name}' if prim_name else ''}"


def _typed(value: Any, types: Any, called: str) -> None:
    """Raise unless a value has one of some types; a bool counts as nothing else."""
    allowed = tuple(types) if isinstance(types, list | tuple) else (types,)
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        names = ", ".join([one.__name__ for one in allowed])
        message = f"{called} must be of the type {names}, but got {value!r:.80}, a {type(value).__name__}."
        raise DtypeError(message)


def check(
    arg_name: str,
    arg_value: Any,
    value_name: str,
    value: Any,
    rel: int = EQ,
    prim_name: str | None = None,
    excp_cls: type[Exception] = ValueError,
) -> Any:
    """A value, if it stands to another one as it should; else the exception is raised.

    Examples
    --------
    >>> from nbgrad import _checkparam as validator
    >>> validator.check("rows", 3, "columns", 4, validator.LE)
    3
    """
    words, holds = _RELATIONS[rel]
    if not holds(arg_value, value):
        message = f"{_called(arg_name, prim_name)} must be {words} {value_name}, {value!r}, but is {arg_value!r}."
        raise (ArgumentError if excp_cls is ValueError else excp_cls)(message)
    return arg_value


def check_value_type(arg_name: str, arg_value: Any, valid_types: Any, prim_name: str | None = None) -> Any:
    """A value of one of some types."""
    _typed(arg_value, valid_types, _called(arg_name, prim_name))
    return arg_value


def check_isinstance(arg_name: str, arg_value: Any, classes: Any) -> Any:
    """An object of a class; another one is a ValueError."""
    if not isinstance(arg_value, classes):
        message = f"{arg_name} must be of the class {classes}, but is a {type(arg_value).__name__}."
        raise ArgumentError(message)
    return arg_value


def check_subclass(arg_name: str, type_: Any, template_types: Any, prim_name: str | None = None) -> None:
    """Raise unless a type is one of some types, or derived from one."""
    bases = tuple(template_types) if isinstance(template_types, list | tuple) else (template_types,)
    if not any(type_ is base or (isinstance(type_, type) and issubclass(type_, base)) for base in bases):
        message = f"{_called(arg_name, prim_name)} must be one of {template_types!r}, but is {type_!r}."
        raise DtypeError(message)


def check_bool(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> bool:
    """True or False."""
    _typed(arg_value, bool, _called(arg_name, prim_name))
    return arg_value


def check_string(
    arg_value: Any, valid_values: Sequence[str], arg_name: str | None = None, prim_name: str | None = None
) -> str:
    """One of some texts."""
    if not isinstance(arg_value, str) or arg_value not in valid_values:
        message = f"{_called(arg_name, prim_name)} must be one of {valid_values!r}, but is {arg_value!r}."
        raise ArgumentError(message)
    return arg_value


def check_and_canonicalize_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """Axes, one or several, as a tuple of numbers that are not negative."""
    return tuple(axes_of(axes, ndim))


# ----- Numbers -----


def _number_check(kind: type, rel: int | None, says: str) -> Callable[..., Any]:
    def checked(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
        _typed(arg_value, kind, _called(arg_name, prim_name))
        return arg_value if rel is None else check(arg_name or "The argument", arg_value, "0", 0, rel, prim_name)

    checked.__doc__ = says
    return checked


def _sequence_check(kind: type, rel: int, says: str) -> Callable[..., Any]:
    one = _number_check(kind, rel, says)

    def checked(sequence: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
        for value in sequence:
            one(value, arg_name, prim_name)
        return sequence

    checked.__doc__ = f"A sequence, of which every element is: {says[0].lower()}{says[1:]}"
    return checked


check_is_int, check_is_float = (_number_check(kind, None, f"A Python {kind.__name__}.") for kind in (int, float))
for _name, _rel, _words in (
    ("positive", GT, "above zero"),
    ("negative", LT, "below zero"),
    ("non_negative", GE, "not below zero"),
    ("non_positive", LE, "not above zero"),
):
    for _kind in (int, float):
        _says = f"A Python {_kind.__name__} that is {_words}."
        globals()[f"check_{_name}_{_kind.__name__}"] = _number_check(_kind, _rel, _says)
        globals()[f"check_{_name}_{_kind.__name__}_sequence"] = _sequence_check(_kind, _rel, _says)
        __all__ += [f"check_{_name}_{_kind.__name__}", f"check_{_name}_{_kind.__name__}_sequence"]


def check_int(arg_value: Any, value: int, rel: int, arg_name: str | None = None, prim_name: str | None = None) -> int:
    """An int that stands to another one as it should."""
    _typed(arg_value, int, _called(arg_name, prim_name))
    return check(arg_name or "The argument", arg_value, "the number", value, rel, prim_name)


def check_number(arg_name: str, arg_value: Any, value: Any, rel: int, prim_name: str | None = None) -> Any:
    """A number that stands to another one as it should."""
    return check(arg_name, arg_value, "the number", value, rel, prim_name)


def _ranged(arg_value: Any, low: Any, high: Any, rel: int, called: str) -> Any:
    words, above, below = _RANGES[rel]
    if not (above(arg_value, low) and below(arg_value, high)):
        message = f"{called} must be {words.format(low, high)}, but is {arg_value!r}."
        raise ArgumentError(message)
    return arg_value


def check_int_range(
    arg_value: Any, lower_limit: Any, upper_limit: Any, rel: int, arg_name: str | None = None,
    prim_name: str | None = None,
) -> int:  # fmt: skip
    """An int within a range."""
    called = _called(arg_name, prim_name)
    _typed(arg_value, int, called)
    return _ranged(arg_value, lower_limit, upper_limit, rel, called)


def check_float_range(
    arg_value: Any, lower_limit: Any, upper_limit: Any, rel: int, arg_name: str | None = None,
    prim_name: str | None = None,
) -> float:  # fmt: skip
    """A float within a range."""
    called = _called(arg_name, prim_name)
    _typed(arg_value, float, called)
    return _ranged(arg_value, lower_limit, upper_limit, rel, called)
