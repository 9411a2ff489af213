"""
Gradients beside other libraries
================================

The time of a gradient over that of nbgrad, for each task of :doc:`/docs/benchmarks`, and the memory that each takes.
"""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

page = Path("../benchmarks.md").read_text(encoding="utf-8")
colours = {
    "JAX": "C0",
    "PyTorch": "C3",
    "autograd": "C2",
    "Numba by hand": "k",
    "MindSpore": "C4",
    "MindSpore, jit": "C5",
}


def table(name):
    """The names of the columns and the rows between two markers."""
    lines = re.search(rf"<!-- {name} -->\n(.*?)\n\n", page, re.DOTALL)[1].splitlines()
    rows = [[cell.strip().replace("\\*", "*") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return rows[0], rows[2:]


def ratio(cell):
    """The number in brackets."""
    found = re.search(r"\(([\d.e+]+)\)", cell)
    return float(found[1]) if found else np.nan


def drawn(name, height):
    """A figure of the ratios of one table."""
    columns, rows = table(name)
    figure, axis = plt.subplots(figsize=(9, height))
    for place, library in enumerate(columns):
        if library in colours:
            marker = "x" if library == "Numba by hand" else "o"
            ratios = [ratio(row[place]) for row in rows]
            axis.plot(ratios, range(len(rows)), marker, color=colours[library], label=library, alpha=0.8)
    axis.set_yticks(range(len(rows)), [row[0] for row in rows])
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.axvline(1.0, color="0.5", linewidth=1)
    axis.grid(axis="x", alpha=0.3)
    axis.set_xlabel("time / time of nbgrad")
    axis.legend(loc="lower right")
    figure.tight_layout()
    plt.show()


drawn("benchmarks", 7.0)

# %%
# Networks:

drawn("networks", 2.6)

# %%
# Memory that a process grows by after its imports:

columns, rows = table("benchmarks")
libraries = columns[-1].removeprefix("MB: ").split(", ")
rows = [row for row in rows if row[-1]]
figure, axis = plt.subplots(figsize=(9, 6.5))
for place, library in enumerate(libraries):
    values = [np.nan if v == "-" else float(v) for v in (row[-1].split(", ")[place] for row in rows)]
    axis.plot(values, range(len(rows)), "o", color=colours.get(library, "k"), label=library, alpha=0.8)
axis.set_yticks(range(len(rows)), [row[0] for row in rows])
axis.invert_yaxis()
axis.set_xscale("log")
axis.set_xlabel("MB")
axis.grid(axis="x", alpha=0.3)
axis.legend(loc="lower right")
figure.tight_layout()
plt.show()
