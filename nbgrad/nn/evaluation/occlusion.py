"""Which parts of an image a network looks at: how its output changes where parts are covered.

In: a network, an image, a class. Out: an array of differences. Called by users and, by name, by `train.Model`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, ShapeError
from ...record.tensor import Tensor
from ..cell import Cell
from ..layer_arguments import positive, real
from .metrics_base import Metric


class OcclusionSensitivity(Metric):
    """The output for a class, minus that of the image with a cuboid covered, for every place of the cuboid.

    Parameters
    ----------
    pad_val : float
        The value of what is covered.
    margin : int or sequence of int
        How far the cuboid goes from its place, for all axes but the first, or for each: from `place - margin` up to
        `place + margin`, exclusive.
    n_batch : int
        How many covered images the network is given at once.
    b_box : sequence of int, optional
        The least and the greatest place along each axis but the first.

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.Dense(4, 1, nb.Tensor([[1.0, 2.0, 3.0, 4.0]]), nb.Tensor([5.0]))
    >>> metric = nb.train.OcclusionSensitivity(margin=1)
    >>> metric.update(net, nb.ops.ones((1, 4)), nb.Tensor(0))
    >>> print(metric.eval())
    [1. 3. 5. 7.]
    """

    def __init__(
        self, pad_val: float = 0.0, margin: Any = 2, n_batch: int = 128, b_box: Sequence[int] | None = None
    ) -> None:
        self.pad_val, self.n_batch = real(pad_val, "pad_val"), positive(n_batch, "n_batch")
        self.margin, self.b_box = margin, b_box
        super().__init__()

    def clear(self) -> None:
        """Forget all images."""
        self._differences: np.ndarray | None = None

    def update(self, *inputs: Any) -> None:
        """Take a network, an image of shape (1, ...), and the number of a class.

        Raises
        ------
        ArgumentError, DtypeError, ShapeError
            If there are not three inputs, the first is no Cell, or the image has another first extent.
        """
        if len(inputs) != 3:
            message = (
                f"OcclusionSensitivity.update takes a network, an image and a class, but got {len(inputs)} inputs."
            )
            raise ArgumentError(message)
        model, image, label = inputs[0], self._convert_data(inputs[1]), self._convert_data(inputs[2])
        if not isinstance(model, Cell):
            message = f"OcclusionSensitivity needs a Cell as network, but got {type(model).__name__}."
            raise DtypeError(message)
        if image.ndim < 2 or len(image) != 1 or label.size != 1:
            message = (
                f"OcclusionSensitivity takes one image of shape (1, ...) and one class, but got {image.shape} and "
                f"{label.shape}."
            )
            raise ShapeError(message)
        extents = image.shape[1:]
        margins = [self.margin] * len(extents) if isinstance(self.margin, int) else list(self.margin)
        box = self.b_box or [bound for n in extents for bound in (0, n - 1)]
        if len(margins) != len(extents) or len(box) != 2 * len(extents):
            message = f"margin needs {len(extents)} numbers, b_box two for each axis, but got {margins} and {box}."
            raise ArgumentError(message)
        shape = [last - first + 1 for first, last in zip(box[::2], box[1::2], strict=True)]
        places = np.argwhere(np.ones(shape)) + np.array(box[::2])
        number = int(label.reshape(()))
        outputs = [self._output(model, image, number)[0]]
        for start in range(0, len(places), self.n_batch):
            group = np.repeat(image, len(places[start : start + self.n_batch]), 0)
            for covered, place in zip(group, places[start : start + self.n_batch], strict=True):
                cuboid = [slice(max(k - m, 0), min(k + m, n)) for k, m, n in zip(place, margins, extents, strict=True)]
                covered[tuple(cuboid)] = self.pad_val
            outputs.extend(self._output(model, group, number))
        self._differences = np.squeeze(outputs[0] - np.array(outputs[1:], image.dtype).reshape(shape))

    def _output(self, model: Cell, images: np.ndarray, number: int) -> np.ndarray:
        return model(Tensor(images)).asnumpy()[:, number]

    def eval(self) -> np.ndarray:
        """The differences for the last image, in the shape of the places, without axes of extent 1."""
        self._checked(self._differences is not None)
        assert self._differences is not None
        return self._differences
