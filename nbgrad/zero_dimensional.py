"""0-d arrays: Tensors that NumPy would not give as scalars.

In: nothing. Out: the class of what `np.array(1.0)`, `np.zeros(())` and `x[0, ...]` are. `x += y` writes into them, and
`isinstance` says that they are arrays; `x[0]` and sums are Tensors like others, of which both say that they are
scalars. Used by aliasing.py, by operators in place (numpy/ufuncs.py), and by numpy/construction.py.
"""

from __future__ import annotations

from .tensor import Tensor


class ZeroDimensional(Tensor):
    """A Tensor without axes that is an array, not a scalar."""

    __slots__ = ()


ZeroDimensional.__name__ = ZeroDimensional.__qualname__ = "Tensor"
