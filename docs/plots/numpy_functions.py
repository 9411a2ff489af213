"""
Every function of NumPy, against size
=====================================

For each function of :doc:`/docs/speed`: NumPy's time over that of the compiled function, and the time of JAX's
compiled gradient over nbgrad's, for 1000 and for 100,000 elements.
"""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

page = Path("../speed.md").read_text(encoding="utf-8")
start = page.index("| call | worst |")
lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in page[start:].splitlines() if line.startswith("|")]
columns = [name.strip() for name in lines[0]]
numbers = np.array([[np.nan if cell.strip() == "-" else float(cell) for cell in line[-9:]] for line in lines[2:]])
names = [line[0].strip() for line in lines[2:]]
places = {name: columns.index(name) - len(columns) for name in columns[1:]}

figure, axes = plt.subplots(1, 2, figsize=(9, 4.5), sharey=True)
for axis, kind, other in ((axes[0], "value", "NumPy"), (axes[1], "gradient", "JAX")):
    small, large = (numbers[:, places[f"{kind}, {size}"]] for size in ("1e3", "1e5"))
    both = ~np.isnan(small + large)
    axis.plot([1e3, 1e5], [small[both], large[both]], "-", color="C0", alpha=0.12)
    middle = np.median([small[both], large[both]], axis=1)
    axis.plot([1e3, 1e5], middle, "o-", color="k", label=f"median: {middle[0]:.1f} and {middle[1]:.1f}")
    axis.axhline(1.0, color="C3", linewidth=1)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_ylim(0.05, 300)
    axis.set_title(f"{kind}s of {both.sum()} calls")
    axis.set_xlabel("elements")
    axis.set_ylabel(f"time of {other} / time of nbgrad")
    axis.legend()
figure.tight_layout()
plt.show()

# %%
# The same, sorted, with the other forms of arrays:

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True)
for axis, kind in zip(axes, ("value", "gradient"), strict=True):
    for form in ("1e3", "1e5", "float32", "transposed"):
        ratios = np.sort(numbers[:, places[f"{kind}, {form}"]])
        ratios = ratios[~np.isnan(ratios)]
        axis.plot(np.linspace(0.0, 100.0, len(ratios)), ratios, label=form)
    axis.axhline(1.0, color="0.5", linewidth=1)
    axis.set_yscale("log")
    axis.set_ylim(0.05, 300)
    axis.set_xlabel("per cent of the calls")
    axis.set_title(f"{kind}s")
    axis.legend()
axes[0].set_ylabel("ratio of times")
figure.tight_layout()
plt.show()
