"""The steps of a followed loop, as the words that native code reads.

In: a `Follower` that knows what to expect, and the arguments of its functions when they are noted. Out: `Tables` of
runtime/native_steps.py. Called by followed.py. What native code does not know (views, several results) is a
step that no call fits, so that Python sees to it.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from ..graph.ir import Node
from ..graph.loops.follower import Arguments, Follower, Step
from ..runtime.native_steps import LIST, NAMES, NODE, NUMBER, OBJECT, POSITIONS, TUPLE, Tables, float_bits

Outline = list[tuple[int, Any, int, Any]]
"""For each argument: what it is in, its place or name there, its kind, and the number, object or length."""
_SEQUENCES = {list: LIST, tuple: TUPLE}


def outline_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int, int, Outline]:
    """How many arguments there are by position and by name, and all that are in them, without their nodes."""
    found: Outline = []
    waiting = [(POSITIONS, k, value) for k, value in enumerate(args)]
    waiting += [(NAMES, name, value) for name, value in kwargs.items()]
    for parent, index, value in waiting:
        kind = value.__class__
        if kind in _SEQUENCES:
            waiting += [(len(found), k, one) for k, one in enumerate(value)]
            found.append((parent, index, _SEQUENCES[kind], len(value)))
        elif kind is float:
            found.append((parent, index, NUMBER, value))
        elif hasattr(value, "_node"):
            found.append((parent, index, NODE, None))
        else:
            found.append((parent, index, OBJECT, value))
    return len(args), len(kwargs), found


def tables_of(follower: Follower) -> Tables:
    """The tables that native code reads of a follower."""
    kept: list[Any] = [follower.steps, follower.fixed]
    rows = [_row(step, kept) for step in follower.steps]
    elements = [id(one) for of, element in follower.fixed.items() for one in (*of, element)]
    return Tables(follower.words, follower.nodes, rows, elements, kept)


def _row(step: Step, kept: list[Any]) -> list[int]:
    """The words of a step."""
    call, way, one, kind, other_way, other, parts, is_view, (of, _) = step
    if call is None or is_view or of is not None or len(parts) > 1:
        return [0] * 9
    ((pattern, sources, hidden),) = parts
    key = call
    if kind is Arguments:
        frame, places, outline = other
        key, number, word = frame[0], OBJECT, _arguments(outline, places, kept)
    elif kind is Node:
        number, word = NODE, id(other)
    elif kind is float:
        number, word = NUMBER, float_bits(other)
    else:
        number, word = OBJECT, id(other)
    words = [id(key), way, id(one), number, other_way, word, len(hidden), id(pattern), len(sources)]
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
        elif kind in (LIST, TUPLE):
            way, word = id(list if kind == LIST else tuple), value
        words += [parent, id(index) if parent == NAMES else index, kind, way, word, 0]
    table = array("q", words)
    kept += [table, outline]
    return table.buffer_info()[0]
