"""The work of each pass grows with the number of nodes, and not faster: lines of Python that run are counted."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from nbgrad.graph.builders import slice_axes
from nbgrad.graph.ir import Node, placeholder
from nbgrad.graph.loops.scanned_parts import joined

FOLDER = Path(__file__).resolve().parents[1] / "asv_bench"
sys.path.insert(0, str(FOLDER))
try:
    from benchmarks import graphs
finally:
    sys.path.remove(str(FOLDER))

SHORT, LONG = 40, 160


def lines_run(call: Callable[[], Any]) -> tuple[Any, Counter[str]]:
    """What a call gives, and how many lines ran in each file; each turn of a comprehension is one."""
    lines: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            lines[frame.f_code.co_filename] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = call()
    finally:
        sys.settrace(before)
    return result, lines


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_lines_for_each_node_do_not_grow_with_the_graph(name: str) -> None:
    graphs.seconds_by_pass(name, SHORT)  # memos are filled
    (few, _), short = lines_run(lambda: graphs.seconds_by_pass(name, SHORT))
    (many, _), long = lines_run(lambda: graphs.seconds_by_pass(name, LONG))
    assert many > 3.5 * few
    assert sum(long.values()) / many <= 1.25 * sum(short.values()) / few
    for file, count in long.items():
        if count > many:
            assert count / many <= 1.6 * max(short[file], few) / few, file


@pytest.mark.parametrize("moving", [False, True])
def test_lines_for_each_slice_that_is_joined_do_not_grow_with_their_number(moving: bool) -> None:
    """Turns of a loop may read equal slices, or pieces of a few that follow each other."""

    def pieces(count: int) -> list[Node]:
        array = placeholder((count, 3), np.dtype(float))
        starts = [k % 5 if moving else 0 for k in range(count)]
        return [slice_axes(array, [(start, 1, 1), (0, 3, 1)]) for start in starts]

    short, long = (lines_run(lambda count=n: joined(pieces(count), 0))[1] for n in (100, 800))
    assert sum(long.values()) < 12 * sum(short.values())
