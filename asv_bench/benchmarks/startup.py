"""A fresh process: import and first gradient, with what the disk remembers and with an empty disk cache."""

import os
import subprocess
import sys
import tempfile

GRADIENT = "import numpy as np, nbgrad as nb; nb.grad(lambda x: np.sum(np.sin(x) * x))(np.ones(3))"
LIGHT = "; import sys; assert 'numba' not in sys.modules and 'scipy' not in sys.modules"


def run(code, **environment):
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **environment})


class FreshProcess:
    """The whole process, from start to exit."""

    timeout = 120

    def setup(self):
        run(GRADIENT)

    def time_import(self):
        run("import nbgrad")

    def time_first_gradient(self):
        """Neither Numba nor SciPy is loaded."""
        run(GRADIENT + LIGHT)

    def time_first_gradient_with_an_empty_cache(self):
        """Numba compiles the scalar operations, LLVM the loops."""
        with tempfile.TemporaryDirectory() as folder:
            run(GRADIENT, NBGRAD_CACHE_DIR=folder)
