"""Drawing the fits: data and model above, residuals below, one column per dataset.

In: reports and a file name. Out: a picture in the format that the name's ending says. Called by `python -m nbgrad
--plot FILE`. Matplotlib is imported here and nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .report import Report


class PlotError(Exception):
    """A picture cannot be drawn or written."""


def canvas() -> tuple[Any, Any]:
    """Matplotlib's Figure and its window-less canvas.

    Raises
    ------
    PlotError
        If Matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        message = "--plot needs Matplotlib, which is not installed; it comes with the `plot` extra: nbgrad[plot]."
        raise PlotError(message) from error
    return Figure, FigureCanvasAgg


def check_target(path: str) -> None:
    """Refuse, before the work begins, a plot that could not be written after it.

    Raises
    ------
    PlotError
        If Matplotlib is missing, or does not know the format, or the folder does not exist.
    """
    figure, agg = canvas()
    ending = os.path.splitext(path)[1].lstrip(".").lower()
    known = agg(figure()).get_supported_filetypes()
    if ending not in known:
        message = f"The plot {path!r} must end in one of {', '.join(sorted(known))}."
        raise PlotError(message)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        message = f"The plot cannot be written, because the folder {folder} does not exist."
        raise PlotError(message)


def plot(results: Sequence[Report], path: str) -> None:
    """Draw the reports into a file.

    Raises
    ------
    PlotError
        If Matplotlib is missing or the file cannot be written.
    """
    make_figure, agg = canvas()
    figure = make_figure(figsize=(5.2 * len(results), 5.6), layout="constrained")
    agg(figure)
    axes = figure.subplots(2, len(results), squeeze=False, sharex="col", height_ratios=(3, 1))
    for column, result in enumerate(results):
        dataset, found = result.dataset, result.fits[-1]
        above, below = axes[:, column]
        line = np.linspace(dataset.x.min(), dataset.x.max(), 400)
        above.plot(dataset.x, dataset.y, "o", markersize=4, label="observations")
        above.plot(line, dataset.model(found.parameters, line), label="fit")
        above.set(title=f"{dataset.name}\n{dataset.formula}", ylabel=dataset.y_name)
        above.title.set_fontsize("small")
        above.legend()
        below.axhline(0, color="gray", linewidth=0.8)
        below.plot(dataset.x, dataset.y - dataset.model(found.parameters, dataset.x), "o", markersize=4)
        below.set(xlabel=dataset.x_name, ylabel="residual")
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        message = f"The plot cannot be written: {error}."
        raise PlotError(message) from error
