"""The examples of pages run as doctests of pytest; scripts run when the site is built.

Examples on shared memory need NumPy 2.1, which lets DLPack's arrays be written to. Called by pytest.
"""

import numpy as np

collect_ignore = ["interoperation.md"] if np.lib.NumpyVersion(np.__version__) < "2.1.0" else []
collect_ignore_glob = ["*.py", "building/*", "gallery/*", "generated/*", "plots/*"]
