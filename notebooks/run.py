"""Run notebooks from their first cell to their last, with warnings as errors.

In: names of notebooks, or none for all in this folder; `--write` stores what they print and draw. Out: a line with the
seconds for each; the first failure stops the run with the cell's source and its error. What a cell prints must be what
is stored with it, unless the cell is tagged `varies` (its numbers depend on the CPU). Called by `.ci/run`.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets.config import Config

SETUP = """import warnings; warnings.simplefilter("error")
for category in (DeprecationWarning, PendingDeprecationWarning):
    warnings.filterwarnings("ignore", category=category, module="(?!__main__|nbgrad)")"""  # others' own affairs
PRIVATE = Config({"ConnectionFileMixin": {"transport": "ipc"}})  # with no port that others could connect to


def shown(cell: nbformat.NotebookNode) -> str:
    """What a cell prints, and the text of its result; pictures and progress bars (on stderr) are left out."""
    printed = [output.text for output in cell.outputs if output.get("name") == "stdout"]
    return "".join(printed + [o.data["text/plain"] for o in cell.outputs if o.output_type == "execute_result"])


def run(path: Path, write: bool) -> str:
    """Run a notebook; returns what is wrong with it, or nothing."""
    stored, fresh = (nbformat.read(path, as_version=4) for _ in range(2))
    fresh.cells.insert(0, nbformat.v4.new_code_cell(SETUP))
    try:
        NotebookClient(fresh, timeout=300, kernel_name="python3", config=PRIVATE).execute()
    except CellExecutionError as error:
        return re.sub(r"\x1b\[[\d;]*m", "", str(error))  # without colours
    cells = zip(stored.cells, fresh.cells[1:], strict=True)
    for old, new in [pair for pair in cells if pair[0].cell_type == "code"]:
        if not write and "varies" not in old.metadata.get("tags", []) and shown(old) != shown(new):
            return f"{old.source}\n-- prints --\n{shown(new)}\n-- but stored is --\n{shown(old)}"
        old.outputs = [output for output in new.outputs if output.get("name") != "stderr"]
    if write:
        nbformat.write(stored, path)
    return ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="store what the cells print and draw")
    parser.add_argument("notebook", nargs="*", type=Path, default=sorted(Path(__file__).parent.glob("*.ipynb")))
    arguments = parser.parse_args()
    for notebook in arguments.notebook:
        start = time.perf_counter()
        if problem := run(notebook, arguments.write):
            sys.exit(f"{notebook}:\n{problem}")
        print(f"{notebook.name}: {time.perf_counter() - start:.1f} s")
