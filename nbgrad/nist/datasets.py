"""NIST's data: observations, starting points and certified values.

In: nist_strd.json beside this file, or another file of the same form. Out: one `Dataset` per set that has a model.
Called by `python -m nbgrad`. A file that does not have the form is refused with a sentence that names the missing part.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .models import MODELS, Model


class DataError(Exception):
    """A data file cannot be used."""


@dataclass(frozen=True)
class Dataset:
    """One regression: the model y = model(b, x), `n` observations and the `p` certified parameters."""

    name: str
    formula: str
    model: Model
    x: np.ndarray
    y: np.ndarray
    starts: tuple[np.ndarray, ...]
    certified: np.ndarray
    residual_sum_of_squares: float
    x_name: str = "x"
    y_name: str = "y"

    @property
    def parameter_names(self) -> list[str]:
        """b1, b2, ..., as NIST calls them."""
        return [f"b{k + 1}" for k in range(self.certified.size)]


def load(path: str | Path | None = None) -> list[Dataset]:
    """The datasets of a file, by default of the package's own.

    Raises
    ------
    DataError
        If the file cannot be read or does not have the form of nist_strd.json.
    """
    place = Path(__file__).with_name("nist_strd.json") if path is None else Path(path)
    try:
        content = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        message = f"The data file {place} cannot be read: {error}."
        raise DataError(message) from error
    except json.JSONDecodeError as error:
        message = f"The data file {place} is not JSON: {error}."
        raise DataError(message) from error
    names = [name for name in MODELS if isinstance(content, dict) and name in content]
    if not names:
        message = f"The data file {place} holds none of the datasets {', '.join(MODELS)}."
        raise DataError(message)
    return [_dataset(name, content[name], place) for name in names]


def _dataset(name: str, entry: Mapping[str, Any], place: object) -> Dataset:
    try:
        dataset = Dataset(
            name,
            str(entry["model"]),
            MODELS[name],
            np.array(entry["x"], dtype=np.float64),
            np.array(entry["y"], dtype=np.float64),
            tuple([np.array(start, dtype=np.float64) for start in entry["start"]]),
            np.array(entry["certified"], dtype=np.float64),
            float(entry["residual_sum_of_squares"]),
            str(entry.get("x_name", "x")),
            str(entry.get("y_name", "y")),
        )
        residuals = dataset.y - dataset.model(dataset.certified, dataset.x)
        complete = residuals.shape == dataset.x.shape == dataset.y.shape == (dataset.x.size,) and dataset.starts
        complete = complete and all(start.shape == dataset.certified.shape for start in dataset.starts)
    except KeyError as error:
        message = f"Dataset {name} of {place} has no entry {error}."
        raise DataError(message) from error
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        message = f"Dataset {name} of {place} cannot be used: {error}."
        raise DataError(message) from error
    if not complete:
        message = f"Dataset {name} of {place} needs as many x as y, and starts with as many values as are certified."
        raise DataError(message)
    return dataset
