"""NumPy's namespace for recorded values: `import nbgrad.numpy as np` in place of `import numpy as np`.

In: Tensors, arrays, numbers, nested lists of them. Out: Tensors. It has every public name of NumPy's.
functions/table.py lists the functions that are nbgrad's own by the module that holds them; a module is imported when
one of its functions is first used, so that importing nbgrad stays fast. All other names are found by drop_in.py:
constants, dtypes, files and settings are NumPy's.

NumPy's own functions reach the same code by NumPy's protocols (table.py), so that most functions differentiate
with `import numpy as np`. What NumPy does not ask Tensors about needs this namespace: arrays made of recorded values,
`np.array([x[0], x[1]])`; recorded values written into new arrays, `a = np.zeros(3); a[0] = x[0]`; and
`isinstance(x, np.ndarray)`. Its functions give Tensors also where nothing is recorded. These print and compute like
arrays; `np.asarray` of NumPy itself, `float(x)` and `x.item()` give their values. `nb.differentiable_source` runs code
that cannot be changed with this namespace.

Examples
--------
>>> import nbgrad as nb, nbgrad.numpy as np
>>> def rotated(angle, x):
...     c, s = np.cos(angle), np.sin(angle)
...     return np.sum(np.array([[c, -s], [s, c]]) @ x * np.array([1.0, 0.0]))
>>> nb.grad(rotated)(0.0, np.array([1.0, 2.0]))
np.float64(-2.0)
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as _numpy

from ..functions.table import home_of, module_of, names_of_functions
from ..record.tensor import Tensor, part_of_tensor

OWN = {
    "standard": "__array_api_version__ __array_namespace_info__ finfo from_dlpack iinfo",
    "scalar_types": "ndarray isscalar isdtype",
}
"""The names that modules of this folder hold."""
_LATER = {
    "stop_gradient": "nbgrad.transforms.custom",
    **dict.fromkeys(("polynomial", "emath", "poly1d"), "nbgrad.source.numpy_in_python"),
}
"""Names that modules above this folder make."""
_OF_MINDSPORE = {
    "rand": "nbgrad.ops.random_tensors:rand",
    "randn": "nbgrad.ops.random_tensors:randn",
    "randint": "nbgrad.ops.rarer.random_choices:integers_drawn",
    "asfarray": "nbgrad.ops.rarer.arranged_values:float_array",
    "in1d": "nbgrad.ops.rarer.arranged_values:elements_in",
    "sometrue": "nbgrad.numpy:any",
    "trapz": "nbgrad.numpy:trapezoid",
}
"""Functions of MindSpore's module of this name that NumPy lacks or has dropped, for ported scripts; they are in no
`__all__`."""
_own = {name: module for module, names in OWN.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    # Builtins that NumPy has names for (any, max, bool, ...) may be hidden here.
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    if name in _OF_MINDSPORE:
        home, _, real = _OF_MINDSPORE[name].partition(":")
        return getattr(import_module(home), real)
    if name == "__all__":
        return __dir__()
    module, home = _own.get(name), home_of(name)
    drop_in = import_module(".drop_in", __name__)
    if module is not None:
        found = getattr(import_module(f".{module}", __name__), name)
    elif home is not None:
        found = drop_in.own(module_of(home.module), home.name)
    elif hasattr(_numpy, name):
        found = drop_in.counterpart(name)
    else:  # Python asks this too before it imports a file of this folder
        message = f"Neither nbgrad.numpy nor NumPy has {name!r}."
        raise AttributeError(message)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    drop_in = import_module(".drop_in", __name__)
    return sorted({*_own, *names_of_functions(), *_LATER, *drop_in.public_names()})


@part_of_tensor
class Namespace(Tensor):
    """The method of an array that the array API standard asks for."""

    __slots__ = ()

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return import_module(".standard", __name__).namespace(api_version)
