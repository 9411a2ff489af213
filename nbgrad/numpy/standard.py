"""The Python array API standard: the parts of its namespace that NumPy's does not have, or has otherwise.

In: Tensors. Out: Tensors, and facts about `nbgrad.numpy`, which is the standard's namespace for Tensors:
`x.__array_namespace__()`. Called by libraries that compute with the arrays of any library that follows the standard,
SciPy, scikit-learn and array-api-compat among them. `tests/test_array_api.py` and the conformance suite of the
standard's authors, which CI runs, say whether all of it is there. See https://data-apis.org/array-api.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..record.foreign_arrays import from_dlpack
from ..record.placement import device_of
from ..record.tensor import Tensor

VERSION = "2025.12"
"""The edition of the standard that `nbgrad.numpy` follows."""
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", VERSION)
"""Later editions only add to earlier ones."""
_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = (*_KINDS["signed integer"], *_KINDS["unsigned integer"])
_KINDS["numeric"] = (*_KINDS["integral"], *_KINDS["real floating"], *_KINDS["complex floating"])


def namespace(api_version: str | None = None) -> Any:
    """`nbgrad.numpy`, as the namespace of an edition of the standard.

    Raises
    ------
    ArgumentError
        For an edition that does not exist, or is newer than `VERSION`.
    """
    if api_version is not None and api_version not in VERSIONS:
        message = (
            f"nbgrad.numpy follows the array API standard in its editions {', '.join(VERSIONS)}, not {api_version!r}."
        )
        raise ArgumentError(message)
    return sys.modules[__package__ or ""]


class NamespaceInfo:
    """The abilities of `nbgrad.numpy`, as the standard's inspection functions tell them.

    Examples
    --------
    >>> import nbgrad.numpy as np
    >>> info = np.__array_namespace_info__()
    >>> info.default_device(), sorted(info.dtypes(kind="real floating"))
    ('cpu', ['float32', 'float64'])
    """

    def capabilities(self) -> dict[str, Any]:
        """Boolean indexing and results whose shapes depend on values work, outside `jit`."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The device of new arrays."""
        return "cpu"

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of new arrays of Python numbers."""
        device_of("cpu" if device is None else device)
        names = {"real floating": "float64", "complex floating": "complex128", "integral": "int64", "indexing": "int64"}
        return {kind: np.dtype(name) for kind, name in names.items()}

    def devices(self) -> tuple[Any, ...]:
        """All devices; looking for GPUs starts CUDA."""
        from .. import cuda

        return ("cpu", *[cuda.device(number) for number in range(cuda.device_count())])

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """The standard's dtypes of one or several kinds, by name; float16 is there too, but not in the standard."""
        device_of("cpu" if device is None else device)
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        unknown = [one for one in kinds if one not in _KINDS]
        if unknown:
            message = f"There is no kind {unknown[0]!r} of dtypes; the kinds are {', '.join(_KINDS)}."
            raise ArgumentError(message)
        return {name: np.dtype(name) for one in kinds for name in _KINDS[one]}


__array_namespace_info__ = NamespaceInfo
__array_api_version__ = VERSION
__all__ = ["__array_api_version__", "__array_namespace_info__", "finfo", "from_dlpack", "iinfo"]


def finfo(dtype: Any) -> np.finfo[Any]:
    """The limits of a float dtype, or of that of an array, as `numpy.finfo`.

    Examples
    --------
    >>> import nbgrad.numpy as np
    >>> np.finfo(np.ones(2)).bits
    64
    """
    return np.finfo(_dtype_of(dtype))


def iinfo(type: Any, /) -> np.iinfo[Any]:
    """The limits of an integer dtype, or of that of an array, as `numpy.iinfo`.

    Examples
    --------
    >>> import nbgrad.numpy as np
    >>> int(np.iinfo(np.int8).max)
    127
    """
    return np.iinfo(_dtype_of(type))


def _dtype_of(value: Any) -> Any:
    """The dtype of an array or a scalar, or the dtype that was given."""
    return np.dtype(value.dtype) if isinstance(value, Tensor | np.ndarray | np.generic) else np.dtype(value)
