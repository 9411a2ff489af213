"""Python's `max`, `min`, `sorted`, `any` and `all` of recorded numbers, in code that `differentiable_source` runs.

In: the arguments of the builtin. Out: its result; where it depends on recorded numbers that stand for many (in `vmap`,
in the calls of a compiled function, in the turns of a loop), a choice among them for each one, in place of comparisons
whose answers Python would need. Called by replacements.py.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import Any

import numpy

from .. import numpy as np
from ..record.tensor import Tensor
from ..tensors.python_numbers import number
from .handled_errors import is_pythons_number
from .truth_values import is_recorded

_NUMBERS = (int, float, numpy.number, numpy.bool_)
_MISSING: Any = object()


def _items(values: Iterable[Any]) -> list[Any] | None:
    """The items of an iterable that is no iterator, if they are numbers and one of them stands for many."""
    if isinstance(values, Tensor):
        values = [*values] if values.ndim == 1 else []
    elif not isinstance(values, list | tuple):
        return None
    items = [*values]
    numbers = all(_is_number(item) for item in items)
    return items if numbers and any(map(is_recorded, items)) else None


def _is_number(item: Any) -> bool:
    return isinstance(item, _NUMBERS) or (isinstance(item, Tensor) and item.ndim == 0 and item.dtype.kind in "biuf")


def _extreme(name: str, args: tuple[Any, ...], key: Any, default: Any) -> Any:
    original = getattr(builtins, name)
    given = args
    if len(args) == 1:
        given = (args[0],) if isinstance(args[0], Tensor | list | tuple) else ([*args[0]],)
    options = {} if default is _MISSING else {"default": default}
    items = _items(given[0] if len(given) == 1 else given)
    if items is None:
        return original(*given, key=key, **options)
    measures = items if key is None else [key(item) for item in items]
    if not all(map(_is_number, measures)):
        return original(*given, key=key, **options)
    best, found = measures[0], items[0]
    for measure, item in zip(measures[1:], items[1:], strict=True):
        better = np.greater(measure, best) if name == "max" else np.less(measure, best)
        best = _chosen(better, measure, best)
        found = best if key is None else _chosen(better, item, found)
    return found


def _chosen(condition: Any, yes: Any, no: Any) -> Any:
    """One of two values; of Python's numbers, what stands for one."""
    found = np.where(condition, yes, no)
    return number(found) if is_pythons_number(yes) and is_pythons_number(no) else found


def max_(*args: Any, key: Callable[[Any], Any] | None = None, default: Any = _MISSING) -> Any:
    """`max`: of equal numbers the first one."""
    return _extreme("max", args, key, default)


def min_(*args: Any, key: Callable[[Any], Any] | None = None, default: Any = _MISSING) -> Any:
    """`min`: of equal numbers the first one."""
    return _extreme("min", args, key, default)


def sorted_(iterable: Any, /, *, key: Callable[[Any], Any] | None = None, reverse: Any = False) -> Any:
    """`sorted`: equal numbers stay in their order."""
    given = iterable if isinstance(iterable, Tensor | list | tuple) else [*iterable]
    items = _items(given)
    measures = items if key is None or items is None else [key(item) for item in items]
    if items is None or measures is None or not all(map(_is_number, measures)):
        return sorted(given, key=key, reverse=reverse)
    measured = np.stack([np.asarray(measure) for measure in measures])
    order = np.argsort(-measured if reverse else measured, kind="stable")
    line = np.stack([np.asarray(item) for item in items])[order]
    return [line[k] for k in range(len(items))]


def _decided(iterable: Iterable[Any], decides: bool) -> Any:
    """The disjunction (`decides` is true) or conjunction of truth values, as far as Python would look at them."""
    found: Any = not decides
    for item in iterable:
        if is_recorded(item):
            truth = np.not_equal(item, 0)
            known = isinstance(found, bool)
            found = truth if known else (np.logical_or if decides else np.logical_and)(found, truth)
        elif bool(item) is decides:
            return decides
    return found


def any_of(iterable: Iterable[Any], /) -> Any:
    """`any`."""
    return _decided(iterable, True)


def all_of(iterable: Iterable[Any], /) -> Any:
    """`all`."""
    return _decided(iterable, False)


BUILTINS: dict[Any, Any] = {max: max_, min: min_, sorted: sorted_, any: any_of, all: all_of}
"""By the builtin: the function in its place."""
