"""The verdict on a dataset: digits, errors and times, as a table and as JSON.

In: datasets. Out: a `Report` of each, its table as text, its JSON as a dictionary, and the misses of certified values.
Called by `python -m nbgrad`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import nbgrad as nb

from .datasets import Dataset
from .fit import Fit, fit
from .jacobian import Comparison, compare

DIGITS_REQUIRED = 8.0
CERTIFIED_DIGITS = 11.0
"""NIST gives eleven digits; more cannot agree."""
ERROR_ALLOWED = 1e-12


@dataclass(frozen=True)
class Report:
    """Both fits of a dataset and the comparison of Jacobians."""

    dataset: Dataset
    fits: tuple[Fit, ...]
    jacobian: Comparison


def digits(found: float, certified: float) -> float:
    """The number of leading digits of a certified value that agree, as a real number (NIST's log relative error)."""
    error = abs(found - certified) / (abs(certified) or 1.0)
    if not math.isfinite(error):
        return 0.0
    return CERTIFIED_DIGITS if error == 0 else min(CERTIFIED_DIGITS, max(0.0, -math.log10(error)))


def report(dataset: Dataset) -> Report:
    """Fit a dataset from each of its starting points and compare Jacobians there and at the fits."""
    jacobian = nb.jit(nb.jacfwd(dataset.model))
    fits = tuple([fit(dataset, jacobian, start) for start in range(len(dataset.starts))])
    points = [*dataset.starts, *[found.parameters for found in fits]]
    return Report(dataset, fits, compare(dataset, jacobian, points))


def rows(result: Report, found: Fit) -> list[tuple[str, float, float, float]]:
    """(name, certified, found, digits that agree) of every certified value."""
    dataset = result.dataset
    names = [*dataset.parameter_names, "sum of squares"]
    certified = [*dataset.certified.tolist(), dataset.residual_sum_of_squares]
    values = [*found.parameters.tolist(), found.residual_sum_of_squares]
    return [(n, c, v, digits(v, c)) for n, c, v in zip(names, certified, values, strict=True)]


def misses(result: Report) -> list[str]:
    """One sentence for each result that is not as good as required."""
    name = result.dataset.name
    missed = [
        f"{name}, {row} from start {found.start + 1}: {value:.10e} has {agree:.1f} digits of the certified "
        f"{certified:.10e}, but {DIGITS_REQUIRED:.0f} are required."
        for found in result.fits
        for row, certified, value, agree in rows(result, found)
        if agree < DIGITS_REQUIRED
    ]
    if not result.jacobian.error <= ERROR_ALLOWED:
        missed.append(
            f"{name}: the Jacobian differs from the complex-step derivative by {result.jacobian.error:.1e} relative, "
            f"but at most {ERROR_ALLOWED:.0e} is allowed."
        )
    return missed


def table(result: Report) -> str:
    """A report as text."""
    dataset = result.dataset
    lines = [f"{dataset.name}: {dataset.formula}   ({dataset.x.size} observations)", ""]
    header = f"  {'':<15}{'certified':>19}"
    for found in result.fits:
        header += f"{f'from start {found.start + 1}':>22}{'digits':>8}"
    lines.append(header)
    for cells in zip(*[rows(result, found) for found in result.fits], strict=True):
        name, certified, _, _ = cells[0]
        line = f"  {name:<15}{certified:>19.10e}"
        for _, _, value, agree in cells:
            line += f"{value:>22.13e}{agree:>8.1f}"
        lines.append(line)
    effort = [f"{found.evaluations} + {found.steps}" for found in result.fits]
    jacobian = result.jacobian
    errors = f"{jacobian.error:.1e} by nbgrad, {jacobian.error_of_differences:.1e} by central differences"
    times = f"{1e6 * jacobian.seconds:.1f} us by nbgrad, {1e6 * jacobian.seconds_of_differences:.1f} us by differences"
    lines += [
        "",
        f"  evaluations + refining steps   {', '.join(effort)}",
        f"  worst error of the Jacobian    {errors} (against complex steps)",
        f"  time for one Jacobian          {times}",
    ]
    return "\n".join(lines)


def summary(results: Sequence[Report]) -> str:
    """The closing lines."""
    missed = [sentence for result in results for sentence in misses(result)]
    if missed:
        return "\n".join(["MISSED", *[f"  {sentence}" for sentence in missed]])
    agree = [row[3] for result in results for found in result.fits for row in rows(result, found)]
    worst = max(result.jacobian.error for result in results)
    return (
        f"All {len(agree)} certified values reached: at least {min(agree):.1f} digits agree ({DIGITS_REQUIRED:.0f} "
        f"required); the Jacobian is exact to {worst:.1e} ({ERROR_ALLOWED:.0e} allowed)."
    )


def as_json(results: Sequence[Report]) -> dict[str, Any]:
    """The reports as plain data; times in seconds, infinities as null."""
    return {
        "passed": not any(misses(result) for result in results),
        "digits_required": DIGITS_REQUIRED,
        "jacobian_error_allowed": ERROR_ALLOWED,
        "misses": [sentence for result in results for sentence in misses(result)],
        "datasets": {result.dataset.name: _entry(result) for result in results},
    }


def _entry(result: Report) -> dict[str, Any]:
    dataset, jacobian = result.dataset, result.jacobian
    return {
        "model": dataset.formula,
        "parameters": dataset.parameter_names,
        "certified": dataset.certified.tolist(),
        "certified_sum_of_squares": dataset.residual_sum_of_squares,
        "fits": [
            {
                "start": dataset.starts[found.start].tolist(),
                "parameters": [_finite(value) for value in found.parameters.tolist()],
                "sum_of_squares": _finite(found.residual_sum_of_squares),
                "digits": [row[3] for row in rows(result, found)],
                "evaluations": found.evaluations,
                "refining_steps": found.steps,
            }
            for found in result.fits
        ],
        "jacobian": {
            "error": _finite(jacobian.error),
            "error_of_central_differences": _finite(jacobian.error_of_differences),
            "seconds": jacobian.seconds,
            "seconds_of_central_differences": jacobian.seconds_of_differences,
        },
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
