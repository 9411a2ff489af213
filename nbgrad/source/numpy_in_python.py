"""Parts of NumPy that are written in Python by NumPy's functions, and so run with nbgrad's: `polynomial`, `emath`.

In: NumPy's modules. Out: the same code with nbgrad's functions. Called by `nbgrad.numpy`, at the first use of a name.
"""

from __future__ import annotations

import numpy as np

from .rebinding import converted

polynomial = converted(np.polynomial, "numpy.polynomial")
emath = converted(np.emath, "numpy.lib")
poly1d = converted(np.poly1d, "numpy.lib")
