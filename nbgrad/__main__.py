"""The command line: `python -m nbgrad` fits NIST's datasets; `info` and `explain` are for users' own questions.

In: arguments. Out: text or JSON on standard output, and an exit code: 0, 1 if a certified value is missed, 2 if the
command cannot be carried out, with one sentence on standard error that says why.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .errors import NbgradError


class CommandError(Exception):
    """The command cannot be carried out; the message says why."""


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(
        prog="python -m nbgrad", description="Gradients of NumPy functions, compiled.", allow_abbrev=False
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    fit = commands.add_parser(
        "fit",
        help="fit NIST's certified nonlinear regressions (the default)",
        description="Fit NIST's certified nonlinear regressions with nbgrad's Jacobian, and compare.",
    )
    fit.add_argument("--plot", metavar="FILE", help="draw data, fits and residuals into FILE (needs the plot extra)")
    fit.add_argument("--json", action="store_true", help="print JSON instead of a table")
    fit.add_argument("--data", metavar="FILE", help="read the datasets from FILE instead of from the package")
    commands.add_parser("info", help="print versions, CPU, threads, BLAS, CUDA and cache")
    explain = commands.add_parser(
        "explain",
        help="print what is compiled for a function of yours",
        description="Record FUNCTION of FILE.py on the given arrays, and print what is compiled for it.",
    )
    explain.add_argument("function", metavar="FILE.py:FUNCTION")
    explain.add_argument("arrays", metavar="ARG.npy", nargs="+", help="one file per argument, written by numpy.save")
    explain.add_argument("--grad", action="store_true", help="its value and gradient by all floating-point arguments")
    explain.add_argument("--html", metavar="FILE", help="write a page with pictures to FILE instead")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help")):
        given.insert(0, "fit")
    options = parser().parse_args(given)
    try:
        match options.command:
            case "fit":
                code = run_fit(options.data, options.plot, options.json)
            case "info":
                code = run_info()
            case _:
                code = run_explain(options.function, options.arrays, options.grad, options.html)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader, `head` say, has seen enough: the remaining output goes nowhere, also at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except CommandError as error:
        print(f"nbgrad: {error}", file=sys.stderr)
        return 2


def run_fit(data: str | None, picture: str | None, as_json: bool) -> int:
    """The main job."""
    from .nist import report
    from .nist.datasets import DataError, load
    from .nist.plot import PlotError, check_target, plot

    try:
        datasets = load(data)
        if picture is not None:
            check_target(picture)
        results = [report.report(dataset) for dataset in datasets]
        if picture is not None:
            plot(results, picture)
    except (DataError, PlotError) as error:
        raise CommandError(str(error)) from error
    if as_json:
        print(json.dumps(report.as_json(results), indent=2, allow_nan=False))
    else:
        print("NIST's certified nonlinear regressions, fitted with nbgrad's Jacobian\n")
        for result in results:
            print(report.table(result), end="\n\n")
        print(report.summary(results))
        if picture is not None:
            print(f"The plot is in {picture}.")
    return 1 if any(report.misses(result) for result in results) else 0


def run_info() -> int:
    """Print the facts about this installation."""
    from .info import info

    facts = info()
    width = max(len(name) for name, _ in facts)
    for name, text in facts:
        print(f"{name:<{width}}  {text}")
    return 0


def run_explain(target: str, arrays: Sequence[str], gradient: bool, page: str | None = None) -> int:
    """Print the explanation of a user's function, or of its gradient; or write it to a file, as a page."""
    import nbgrad as nb

    function = load_function(target)
    loaded = [load_array(path) for path in arrays]
    try:
        inspect.signature(function).bind(*loaded)
    except TypeError as error:
        message = f"{target} cannot be called with {len(loaded)} arrays: {error}."
        raise CommandError(message) from error
    try:
        if gradient:
            positions = tuple([k for k, array in enumerate(loaded) if array.dtype.kind == "f"])
            function = nb.value_and_grad(function, positions)
        found = nb.explain(function, *loaded)
        if page is not None:
            found.save(page)
    except (NbgradError, OSError) as error:
        raise CommandError(str(error)) from error
    print(found if page is None else f"The page is in {page}.")
    return 0


def load_function(target: str) -> Callable[..., Any]:
    """The function that `FILE.py:FUNCTION` names.

    Raises
    ------
    CommandError
        If there is no such file, it fails when it is run, or it has no such function.
    """
    name, colon, attribute = target.rpartition(":")
    if not colon or not name or not attribute:
        message = f"{target!r} does not name a function: write FILE.py:FUNCTION, for example model.py:loss."
        raise CommandError(message)
    path = Path(name)
    if not path.is_file() or path.suffix != ".py":
        message = f"There is no Python file {name!r}."
        raise CommandError(message)
    spec = importlib.util.spec_from_file_location(f"explained_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        message = f"{name} cannot be imported: {type(error).__name__}: {error}"
        raise CommandError(message) from error
    function = getattr(module, attribute, None)
    if not callable(function):
        known = sorted(k for k, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == spec.name)
        message = f"{name} has no function {attribute!r}; it has {', '.join(known) or 'none'}."
        raise CommandError(message)
    return function


def load_array(path: str) -> np.ndarray:
    """The array in a file that `numpy.save` wrote.

    Raises
    ------
    CommandError
        If it cannot be read, or holds no numbers.
    """
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        message = f"The array {path!r} cannot be read: {error}"
        raise CommandError(message) from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
        message = f"The file {path!r} must hold one array of numbers, as numpy.save writes it."
        raise CommandError(message)
    return array


if __name__ == "__main__":
    sys.exit(main())
