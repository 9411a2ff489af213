"""A fresh process: import and first gradient, with what the disk remembers and with an empty disk cache."""

import tempfile

from .measured import PEERS, fresh_process, needed

GRADIENTS = {
    "nbgrad": "import numpy as np, nbgrad as nb; nb.grad(lambda x: np.sum(np.sin(x) * x))(np.ones(3))",
    "jax": "import jax, jax.numpy as np; jax.grad(lambda x: np.sum(np.sin(x) * x))(np.ones(3)).block_until_ready()",
    "torch": "import torch; x = torch.ones(3, requires_grad=True); torch.sum(torch.sin(x) * x).backward()",
    "autograd": "import autograd, autograd.numpy as np; autograd.grad(lambda x: np.sum(np.sin(x) * x))(np.ones(3))",
}
LIGHT = "; import sys; assert 'numba' not in sys.modules and 'scipy' not in sys.modules"


class FreshProcess:
    """The whole process, from start to exit."""

    params = PEERS
    param_names = ("library",)
    timeout = 120

    def setup(self, library):
        needed(library)
        fresh_process("-c", GRADIENTS[library])

    def time_import(self, library):
        fresh_process("-c", f"import {library}")

    def time_first_gradient(self, library):
        """In nbgrad's process, neither Numba nor SciPy is loaded."""
        fresh_process("-c", GRADIENTS[library] + (LIGHT if library == "nbgrad" else ""))


class EmptyCache:
    """The same process, in which Numba compiles the scalar operations, and LLVM the loops."""

    timeout = 120

    def time_first_gradient(self):
        with tempfile.TemporaryDirectory() as folder:
            fresh_process("-c", GRADIENTS["nbgrad"], NBGRAD_CACHE_DIR=folder)
