"""A fresh process with a warm disk cache: import and first gradient; neither Numba nor SciPy is loaded."""

import subprocess
import sys

CODE = """
import time; start = time.perf_counter()
import numpy as np, nbgrad as nb
nb.grad(lambda x: np.sum(np.sin(x) * x))(np.ones(3))
import sys; assert "numba" not in sys.modules and "scipy" not in sys.modules
"""


class FreshProcess:
    """The whole process, from start to exit."""

    def setup(self):
        subprocess.run([sys.executable, "-c", CODE.split("import sys; assert")[0]], check=True)

    def time_first_gradient(self):
        subprocess.run([sys.executable, "-c", CODE], check=True)
