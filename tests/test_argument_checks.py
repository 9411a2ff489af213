"""`_checkparam`: what MindSpore 2.10 gives, and raises, for the same calls."""

from __future__ import annotations

from typing import Any

import pytest
from nbgrad.nn.loss.loss import _Loss  # pyright: ignore[reportMissingImports]

from nbgrad import _checkparam as c  # pyright: ignore[reportAttributeAccessIssue]
from nbgrad import nn

VALUES = (1, 0, -1, 1.5, 0.0, True, "a")
T, V = TypeError, ValueError


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("check_positive_int", (1, V, V, T, T, T, T)),
        ("check_non_negative_int", (1, 0, V, T, T, T, T)),
        ("check_positive_float", (T, T, T, 1.5, V, T, T)),
        ("check_non_negative_float", (T, T, T, 1.5, 0.0, T, T)),
        ("check_bool", (T, T, T, T, T, True, T)),
        ("check_is_float", (T, T, T, 1.5, 0.0, T, T)),
        ("check_is_int", (1, 0, -1, T, T, T, T)),
    ],
)
def test_numbers(name: str, expected: tuple[Any, ...]) -> None:
    for value, result in zip(VALUES, expected, strict=True):
        if isinstance(result, type):
            with pytest.raises(result):
                getattr(c, name)(value, "x", "C")
        else:
            assert getattr(c, name)(value, "x", "C") is value


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: c.check_value_type("x", 3, [int]), 3),
        (lambda: c.check_value_type("x", True, [int]), T),
        (lambda: c.check_value_type("x", "s", (int, float)), T),
        (lambda: c.check_int(3, 3, c.GE), 3),
        (lambda: c.check_int(2, 3, c.GE), V),
        (lambda: c.check_int(2.0, 3, c.LE), T),
        (lambda: c.check_int_range(3, 1, 3, c.INC_LEFT), V),
        (lambda: c.check_int_range(3, 1, 3, c.INC_BOTH), 3),
        (lambda: c.check_int_range(1, 1, 3, c.INC_LEFT), 1),
        (lambda: c.check_float_range(0.5, 0, 1, c.INC_NEITHER), 0.5),
        (lambda: c.check_float_range(1, 0, 1, c.INC_BOTH), T),
        (lambda: c.check_string("a", ["a", "b"]), "a"),
        (lambda: c.check_string("c", ["a", "b"]), V),
        (lambda: c.check_subclass("x", int, (float, int), "C"), None),
        (lambda: c.check_subclass("x", int, (str,), "C"), T),
        (lambda: c.check_isinstance("x", 1, str), V),
        (lambda: c.check("x", 1, "y", 2), V),
        (lambda: c.check("x", 1, "y", 2, c.LE), 1),
        (lambda: c.check_and_canonicalize_axes((0, -1), 3), (0, 2)),
        (lambda: c.check_positive_int_sequence([1, 2]), [1, 2]),
        (lambda: c.check_number("x", 0, 0, c.GT, "C"), V),
    ],
)
def test_other_checks(call: Any, expected: Any) -> None:
    if isinstance(expected, type):
        with pytest.raises(expected):
            call()
    else:
        assert call() == expected


def test_messages_name_the_argument() -> None:
    with pytest.raises(ValueError, match="size of Window must be greater than 0, 0, but is -3"):
        c.check_positive_int(-3, "size", "Window")


def test_losses_of_earlier_releases() -> None:
    assert _Loss is nn.LossBase
