"""Blocks in which a NaN in a gradient is an error that names the line it comes from.

In: nothing, or whether to look. Out: objects for `with`. Called by users. The forward computation must be in the block
too: that is where lines are noted.
"""

from __future__ import annotations

from typing import Any

from ..process.modes import Mode, enter, mode


class set_detect_anomaly:  # noqa: N801 - PyTorch's name
    """Look for NaN in gradients, or no more: from now on in this thread, or for a `with` block.

    Parameters
    ----------
    mode : bool
    check_nan : bool
        Whether NaN is an error; otherwise lines are noted only.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._wanted = bool(mode) and bool(check_nan)
        self._before: Mode | None = enter(self._mode())

    def _mode(self) -> Mode:
        return mode().but(anomaly=self._wanted)

    def __enter__(self) -> None:
        if self._before is None:
            self._before = enter(self._mode())

    def __exit__(self, *_: Any) -> None:
        if self._before is not None:
            enter(self._before)
            self._before = None


class detect_anomaly(set_detect_anomaly):  # noqa: N801 - PyTorch's name
    """A block in which `backward` raises for a NaN, with the line of the operation whose derivative made it.

    Parameters
    ----------
    check_nan : bool

    Examples
    --------
    >>> import nbgrad as nb
    >>> x = nb.tensor(0.0, requires_grad=True)
    >>> with nb.autograd.detect_anomaly():
    ...     (x.sqrt() * x).backward()
    Traceback (most recent call last):
        ...
    nbgrad.errors.AutogradError: Function 'SqrtBackward0' returned nan values in its 0th output...
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._wanted = bool(check_nan)
        self._before = None
