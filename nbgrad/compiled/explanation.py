"""`Explanation`: the text that `explain` gives, with a page of its own.

In: the text, the whole text, and a function that draws the page. Out: a string that notebooks show as the page. Made by
explain.py; called by users.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


class Explanation(str):
    """The explanation of a function: a string to print, and a page to look at.

    A notebook shows the page. The page is drawn when it is first asked for: kernels run a few times then, to measure
    the time of each.

    Attributes
    ----------
    full : str
        The whole text, of which the string leaves out the middle of large graphs.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> found = nb.explain(lambda x: np.sum(np.sin(x)), np.zeros(3))
    >>> found.html.startswith("<!DOCTYPE html>")
    True
    """

    __slots__ = ("_draw", "_page", "full")

    full: str

    def __new__(cls, text: str, full: str, draw: Callable[[str], str]) -> Explanation:
        """A text with a page, which `draw` makes of the whole text."""
        made = super().__new__(cls, text)
        made.full = full
        made._draw = draw
        made._page = None
        return made

    _draw: Callable[[str], str] | None
    _page: str | None

    @property
    def fragment(self) -> str:
        """The page as an element for other pages."""
        if self._page is None:
            assert self._draw is not None
            self._page = self._draw(self.full)
            # The arguments and the program may go.
            self._draw = None
        return self._page

    @property
    def html(self) -> str:
        """The page as a file of its own, which reads nothing from elsewhere."""
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
            f"<title>nbgrad: {_title(self)}</title></head><body>\n{self.fragment}\n</body></html>\n"
        )

    def _repr_html_(self) -> str:
        return self.fragment

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file.

        Parameters
        ----------
        path : str or path
        """
        Path(path).write_text(self.html, encoding="utf-8")

    def __reduce__(self) -> tuple[type, tuple[str]]:
        """A copy is the text alone."""
        return str, (str(self),)


def _title(text: str) -> str:
    """The name of the function, of the first line."""
    return text.partition(":")[0].replace("<", "&lt;").replace(">", "&gt;")
