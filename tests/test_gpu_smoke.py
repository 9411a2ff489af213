"""The first things to try on a GPU, one part of the CUDA target after the other: the first failure says where to look.

`.ci/gpu` runs these tests before all others; each also runs in the simulator. What they expect is worked out on paper.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import nbgrad as nb

from .gpu import Place, close, on


def test_the_driver_finds_a_device(place: Place) -> None:
    found = nb.cuda.get_device_properties()
    assert found.name and found.capability >= (7, 5) and found.multiprocessors > 0
    free, total = nb.cuda.memory_info()
    assert 0 < free <= total == found.memory


def test_arrays_go_there_and_back(place: Place) -> None:
    x = np.arange(1000.0)
    np.testing.assert_array_equal(on(x).asnumpy(), x)


def test_a_map(place: Place) -> None:
    x = np.arange(place.size(1_000_000, 1000), dtype=np.float32) % 256
    np.testing.assert_array_equal(nb.jit(lambda x: x * x + 1)(on(x)).asnumpy(), x * x + 1)  # whole numbers: exact


def test_a_map_with_functions(place: Place) -> None:
    x = np.linspace(-3.0, 3.0, place.size(1_000_000, 1000))
    f = nb.jit(lambda x: np.sin(x) ** 2 + np.cos(x) ** 2 + np.exp(x) * np.exp(-x))
    close(f(on(x)), np.full(len(x), 2.0), 1e-14)


def test_a_sum(place: Place) -> None:
    n = place.size(1_000_000, 1000)
    assert float(nb.jit(np.sum)(on(np.arange(float(n))))) == n * (n - 1) / 2


def test_a_product_of_matrices(place: Place) -> None:
    n = place.size(200, 20)
    i, j = np.indices((n, n)).astype(float)
    # The sum over k of (i + k) * (k - j), by the sums of k and k**2.
    first, second = n * (n - 1) / 2, (n - 1) * n * (2 * n - 1) / 6
    np.testing.assert_array_equal((on(i + j) @ on(i - j)).asnumpy(), second + (i - j) * first - n * i * j)


def test_a_compiled_gradient(place: Place) -> None:
    x = np.linspace(-2.0, 2.0, place.size(100_000, 500))
    gradient = nb.jit(nb.grad(lambda x: np.sum(x * np.exp(-x * x))))
    for _ in range(3):
        close(gradient(on(x)), (1 - 2 * x * x) * np.exp(-x * x), 1e-14)


def test_a_training_step(place: Place) -> None:
    class Line(nb.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = nb.Parameter(nb.Tensor([6.0], nb.float32), name="w")
            self.b = nb.Parameter(nb.Tensor([1.0], nb.float32), name="b")

        def construct(self, x: Any) -> Any:
            return self.w * x + self.b

    net = Line().to("cuda")
    optimizer = nb.nn.SGD(net.trainable_params(), learning_rate=0.125)
    step = nb.nn.TrainOneStepCell(nb.nn.WithLossCell(net, nb.nn.MSELoss()), optimizer)
    x, y = [on(np.array(column, np.float32)) for column in ([[0.0], [1.0]], [[1.0], [3.0]])]
    # Errors of 0 and 4: the loss is 8, both slopes are 4.
    assert float(step(x, y)) == 8.0
    assert float(net.w.asnumpy()[0]) == 5.5 and float(net.b.asnumpy()[0]) == 0.5
