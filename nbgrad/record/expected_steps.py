"""The steps of a followed loop, as the words that native code reads.

In: a `Follower` that knows what to expect, and the arguments of its functions when they are noted. Out: `Tables` of
runtime/native_steps.py. Called by followed.py. What native code does not know (several results, arrays of NumPy's)
is a step that no call fits, so that Python sees to it.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from ..graph.ir import Node
from ..graph.loops.follower import Arguments, Follower, Step
from ..runtime.native_steps import (
    BY_KEY,
    INTEGER,
    KEY,
    LIST,
    NAMES,
    NODE,
    NUMBER,
    OBJECT,
    POSITIONS,
    SLICE,
    STEP_HEAD,
    TUPLE,
    WHOLE_KEY,
    Tables,
    float_bits,
)

Outline = list[tuple[int, Any, int, Any]]
"""For each argument: what it is in, its place or name there, its kind, and the number, object or length."""
_SEQUENCES = {list: LIST, tuple: TUPLE}
_CLASSES = {LIST: list, TUPLE: tuple, SLICE: slice}
_KEYS = (int, slice, tuple)


def outline_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int, int, Outline]:
    """How many arguments there are by position and by name, and all that are in them, without their nodes."""
    waiting = [(POSITIONS, k, value) for k, value in enumerate(args)]
    waiting += [(NAMES, name, value) for name, value in kwargs.items()]
    return len(args), len(kwargs), _parts(waiting)


def _parts(waiting: list[tuple[int, Any, Any]]) -> Outline:
    """Some arguments, each with what it is in, and all that is in them."""
    found: Outline = []
    for parent, index, value in waiting:
        kind = value.__class__
        if kind in _SEQUENCES:
            waiting += [(len(found), k, one) for k, one in enumerate(value)]
            found.append((parent, index, _SEQUENCES[kind], len(value)))
        elif kind is slice:
            waiting += [(len(found), k, one) for k, one in enumerate((value.start, value.stop, value.step))]
            found.append((parent, index, SLICE, 3))
        elif kind is float:
            found.append((parent, index, NUMBER, value))
        elif kind is int and abs(value) < 1 << 62:
            found.append((parent, index, INTEGER, value))
        elif hasattr(value, "_node"):
            found.append((parent, index, NODE, None))
        else:
            found.append((parent, index, OBJECT, value))
    return found


def tables_of(follower: Follower) -> Tables:
    """The tables that native code reads of a follower."""
    kept: list[Any] = [follower.steps, follower.fixed]
    rows = [_row(step, kept) for step in follower.steps]
    elements = [id(one) for of, element in follower.fixed.items() for one in (*of, element)]
    return Tables(follower.words, follower.nodes, rows, elements, kept)


def _row(step: Step, kept: list[Any]) -> list[int]:
    """The words of a step."""
    call, way, one, kind, other_way, other, parts, is_view, (of, _), given = step
    if call is None or of is not None or len(parts) > 1 or given:
        return [0] * STEP_HEAD
    ((pattern, sources, hidden),) = parts
    key = call
    if kind is Arguments:
        frame, places, outline = other
        key, number, word = frame[0], OBJECT, _arguments(outline, places, kept)
    elif kind is Node:
        number, word = NODE, id(other)
    elif kind is float:
        number, word = NUMBER, float_bits(other)
    elif kind in _KEYS:
        number, word = KEY, _arguments((0, 0, _parts([(WHOLE_KEY, 0, other)])), (), kept)
    else:
        number, word = OBJECT, id(other)
    view = BY_KEY if is_view is True else id(is_view) if is_view else 0
    words = [id(key), way, id(one), number, other_way, word, len(hidden), id(pattern), view, len(sources)]
    for place, constant in sources:
        words += [place, id(constant)]
    return words


def _arguments(outline: tuple[int, int, Outline], places: Sequence[tuple[int, Node | None]], kept: list[Any]) -> int:
    """The address of the words of a function's arguments."""
    by_position, by_name, found = outline
    words = [by_position, by_name, len(found)]
    sources = iter(places)
    for parent, index, kind, value in found:
        way, word = 0, id(value)
        if kind == NODE:
            way, constant = next(sources)
            word = id(constant)
        elif kind == NUMBER:
            word = float_bits(value)
        elif kind == INTEGER:
            word = value
        elif kind in _CLASSES:
            way, word = id(_CLASSES[kind]), value
        words += [parent, id(index) if parent == NAMES else index, kind, way, word, 0]
    table = array("q", words)
    kept += [table, outline]
    return table.buffer_info()[0]
