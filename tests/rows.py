"""Many rows in one test: each one runs, and the failure names all that are wrong.

In: the names of rows, one by one. Out: an AssertionError at the end, with the first failure as its cause. Called by
tests whose rows are too many for tests of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Rows:
    """The failures of a test.

    Examples
    --------
    >>> with Rows() as rows:
    ...     for number in (1, 2, 3):
    ...         with rows.row(f"row {number}"):
    ...             assert number != 2, "two"
    Traceback (most recent call last):
    AssertionError: 1 of 3 rows fail
    row 2: AssertionError: two
    """

    def __init__(self) -> None:
        self.count = 0
        self.failures: list[tuple[str, Exception]] = []

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self.failures:
            shown = [f"{name}: {type(error).__name__}: {str(error).strip()[:500]}" for name, error in self.failures]
            message = f"{len(self.failures)} of {self.count} rows fail\n" + "\n".join(shown)
            raise AssertionError(message) from self.failures[0][1]

    @contextmanager
    def row(self, name: str) -> Iterator[None]:
        """One row; an error in it is kept."""
        self.count += 1
        try:
            yield
        except Exception as error:
            self.failures.append((name, error))
