"""Tensors, Parameters, Cells and compiled functions on devices: what users do gives what the CPU gives, where the
arguments are; what mixes places, or names a wrong one, is an error. All of it runs in the simulator."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
import nbgrad.numpy as nnp
from nbgrad.device.memory.chosen_driver import using
from nbgrad.device.simulator.simulator import Simulator
from nbgrad.errors import ArgumentError, DeviceError, DtypeError, ShapeError, TracedValueError

pytestmark = pytest.mark.unoptimized

RNG = np.random.default_rng(5)
A = RNG.normal(size=(3, 4))
B = RNG.normal(size=(3, 4))


@pytest.fixture(autouse=True)
def simulated() -> Iterator[Simulator]:
    with using(Simulator(devices=2)) as simulator:
        assert isinstance(simulator, Simulator)
        yield simulator


def on(array: Any, device: str = "cuda") -> nb.Tensor:
    return nb.Tensor(np.asarray(array), device=device)


def same(found: Any, expected: Any, device: Any = "cuda", rtol: float = 1e-12) -> None:
    assert isinstance(found, nb.Tensor) and found.device == device, (type(found), found.device)
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=rtol, atol=rtol)
    assert found.dtype == np.asarray(expected).dtype


# ----- Where arrays are -----


def test_a_tensor_knows_its_device():
    x = on(A)
    assert x.device == "cuda" and x.device == "cuda:0" and x.device != "cuda:1" and x.device != "cpu"
    assert on(A, "cuda:1").device == "cuda:1" and str(on(A, "gpu").device) == "cuda:0"
    assert nb.Tensor(A).device == "cpu" and nb.Tensor(A, device="cpu").device == "cpu"
    assert nb.tensor(A, nb.float32, device="cuda").dtype == nb.float32


@pytest.mark.parametrize("dtype", "bool int8 uint64 float16 float32 float64 complex64 complex128".split())
def test_there_and_back(dtype):
    array = (10 * A).astype(dtype)
    for shape in ((12,), (3, 4), (2, 0), (1,)):
        given = np.resize(array, shape)
        x = on(given)
        assert x.shape == shape and x.dtype == given.dtype
        np.testing.assert_array_equal(x.asnumpy(), given)
        np.testing.assert_array_equal(x.cpu().asnumpy(), given)
    assert on(np.array(array.flat[0])).item() == array.flat[0]


def test_moving():
    x = nb.Tensor(A)
    assert x.to("cpu") is x and x.cpu() is x and x.to_device("cpu") is x
    y = x.to("cuda")
    assert y.to("cuda") is y and y.cuda() is y and y.to(y.device) is y and y.to(0) is y
    z = y.cuda("cuda:1")
    assert z.device == "cuda:1" and y.to(1).device == "cuda:1"
    same(z, A, "cuda:1")
    same(z.cpu(), A, "cpu")
    same(x.to(z), A, "cuda:1")
    same(x.to("cuda", nb.float32), A.astype("f"), rtol=1e-6)
    same(x.to(device="cuda", dtype=np.float32), A.astype("f"), rtol=1e-6)
    same(y.to(np.float32), A.astype("f"), rtol=1e-6)
    assert y.to("cuda", copy=True) is not y
    with nb.cuda.stream(nb.cuda.Stream()):
        same(x.to_device("cuda"), A)
    same(x.to_device("cuda", stream=nb.cuda.Stream()), A)


@pytest.mark.parametrize("name", ["tpu", "cuda:x", "cuda:-1", "cuda:2", "cpu:1", 5, -1, 1.5, True, object(), ""])
def test_wrong_names(name):
    for move in (lambda: nb.Tensor(A, device=name), lambda: nb.Tensor(A).to_device(name), lambda: nb.cuda.device(name)):
        with pytest.raises(ArgumentError):
            move()


def test_wrong_targets():
    x = nb.Tensor(A)
    for wrong in ((), ("nowhere",), ("cuda", "cpu"), (None,), (2,), (np.float32, np.float64)):
        with pytest.raises(ArgumentError):
            x.to(*wrong)
    with pytest.raises(ArgumentError, match="streams"):
        x.to_device("cpu", stream=0)
    with pytest.raises(ArgumentError):
        nb.cuda.device("cpu")


def test_text_and_numbers_are_copies():
    x = on(np.array([1.5, -2.0], np.float32))
    assert str(x) == "[ 1.5 -2. ]" and repr(x) == repr(x.cpu()) and f"{x[0]:.2f}" == "1.50"
    assert float(x[0]) == 1.5 and int(x[1]) == -2 and x[0].item() == 1.5 and bool(x[0] > 0)
    assert x.tolist() == [1.5, -2.0]
    assert len(x) == 2 and [float(v) for v in x] == [1.5, -2.0] and x.tobytes() == x.cpu().tobytes()
    array = x.asnumpy()
    array[0] = 7.0
    assert float(x[0]) == 1.5 and x.numpy() is not x.numpy()
    assert np.arange(4)[on(np.array(2)).item()] == 2 and range(3)[on(np.array(1))] == 1


def test_nothing_becomes_an_ndarray_by_itself():
    x = on(A)

    def add(v: Any) -> Any:
        return np.add(A, v, out=np.empty_like(A))

    for make in (np.asarray, np.array, add, lambda v: np.zeros((3, 4)).__setitem__(0, v[0])):
        with pytest.raises(DeviceError, match="asnumpy"):
            make(x)
    with pytest.raises((TypeError, BufferError)):
        memoryview(x)  # type: ignore[arg-type]
    assert not hasattr(x, "__array_interface__")


def test_copies_and_pickles():
    x, p = on(A, "cuda:1"), nb.Parameter(A, name="p", device="cuda")
    for again in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.copy()):
        same(again, A, "cuda:1")
    for again in (copy.copy(p), copy.deepcopy(p), pickle.loads(pickle.dumps(p)), p.clone()):
        assert isinstance(again, nb.Parameter) and again.name == "p"
        same(again.value(), A)


# ----- Computing -----


COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "arithmetic": lambda x, y: x * 2 + y / 3 - 1,
    "functions": lambda x, y: np.sin(x) * np.exp(y),
    "sums": lambda x, y: (x * y).sum(0) + np.mean(x),
    "shapes": lambda x, y: np.concatenate([x.T.reshape(3, 4), y[:, ::-1]])[1:5],
    "branches": lambda x, y: np.where(x > y, x, 0.5),
    "constants": lambda x, y: x * np.arange(4.0) + np.ones((3, 1)),
    "matrices": lambda x, y: np.concatenate([x, y])[np.array([0, 2, 5])],
    "part": lambda x, y: x[1, 2] * y[0],
}


@pytest.mark.parametrize("name", COMPUTED)
def test_results_are_where_the_arguments_are(name):
    function = COMPUTED[name]
    same(function(on(A), on(B)), function(A, B))
    same(nb.jit(function)(on(A), on(B)), function(A, B))
    same(function(on(A, "cuda:1"), on(B, "cuda:1")), function(A, B), "cuda:1")


@pytest.mark.parametrize("name", COMPUTED)
def test_gradients(name):
    def total(x: Any, y: Any) -> Any:
        return (COMPUTED[name](x, y) ** 2).sum()

    expected = nb.grad(total, (0, 1))(A, B)
    for transformed in (nb.grad(total, (0, 1)), nb.jit(nb.grad(total, (0, 1)))):
        for _ in range(3):
            for one, other in zip(transformed(on(A), on(B)), expected, strict=True):
                same(one, other, rtol=1e-9)


def test_what_goes_anywhere():
    x = on(A)
    same(x + 1, A + 1)
    same(x + np.float64(1), A + 1)
    same(x + B, A + B)
    same(B + x, A + B)
    same(np.add(B, x), A + B)
    same(x + nb.Tensor(np.float64(2.0)), A + 2)
    same(x + nnp.ones((3, 4)), A + 1)
    same(x + nb.ops.ones((3, 4), nb.float64), A + 1)
    assert (nb.ops.rand(3, 4) * x).device == "cuda"


def test_places_do_not_depend_on_whether_something_was_printed():
    for make in (lambda: nb.Tensor(A) * 2, lambda: nnp.ones((3, 4)) * 2):
        outcomes = []
        for look in (False, True):
            other = make()
            if look:
                str(other)
            try:
                outcomes.append((other + on(A)).device == "cuda")
            except DeviceError:
                outcomes.append(None)
        assert outcomes[0] == outcomes[1]


MIXED: dict[str, Callable[[], Any]] = {
    "operator": lambda: on(A) + nb.Tensor(B),
    "reflected": lambda: nb.Tensor(B) + on(A),
    "function": lambda: np.maximum(on(A), nb.Tensor(B)),
    "concatenate": lambda: np.concatenate([on(A), nb.Tensor(B)]),
    "devices": lambda: on(A) * on(B, "cuda:1"),
    "made of": lambda: on(A) * (nb.Tensor(B) * 2).sum(0),
    "Parameter": lambda: on(A) * nb.Parameter(B, name="w"),
    "jit": lambda: nb.jit(lambda x, y: x * y)(on(A), nb.Tensor(B)),
    "jit, outside": lambda: nb.jit(lambda x: x * on(B, "cuda:1"))(on(A)),
    "jit, two results": lambda: nb.jit(lambda x, y: (x * 2, y * 2))(on(A), on(B, "cuda:1")),
    "grad": lambda: nb.grad(lambda x, y: (x * y).sum())(nb.Tensor(A), on(B)),
    "write": lambda: on(A).__setitem__(0, nb.Tensor(B[0])),
    "write to the CPU": lambda: nb.Tensor(A).__setitem__(0, on(B[0])),
    "out": lambda: np.add(on(A), on(B), out=nb.Tensor(A)),
    "vmap": lambda: nb.vmap(lambda x, y: x * y)(on(A), nb.Tensor(B)),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixed_places_are_refused(name):
    with pytest.raises(DeviceError, match=r"different places|one device"):
        MIXED[name]()


def test_writing():
    expected, x = A.copy(), on(A)
    part = x[1:]
    for array in (x, expected):
        array[0] = 5.0
        array[1, 2:] = B[0, :2]
        array[:, 1] *= 2
    part[0, 0] = 9.0
    expected[1, 0] = 9.0
    same(x, expected)
    same(part, expected[1:])
    x[...] = 0.5
    same(x, np.full((3, 4), 0.5))
    same(part, np.full((2, 4), 0.5))
    x += 1.0
    assert x.device == "cuda"
    y = on(A)
    y[on(A > 0)] = 0.0
    same(y, np.where(A > 0, 0.0, A))


def test_indices_on_the_device():
    x, rows = on(A), np.array([2, 0, -1])
    same(x[on(rows)], A[rows])
    same(np.take(x, on(rows), axis=0), A[rows])
    same(x[on(A > 0)], A[A > 0])
    for found, expected in zip(np.nonzero(x > 0), np.nonzero(A > 0), strict=True):
        same(found, expected)
    same(np.argwhere(x > 0), np.argwhere(A > 0))
    same(np.searchsorted(np.sort(x[0]), x[1]), np.searchsorted(np.sort(A[0]), A[1]))
    with pytest.raises(IndexError):
        str(x[on(np.array([0, 3]))])


def test_creation_on_a_device():
    same(nnp.zeros((2, 3), device="cuda"), np.zeros((2, 3)))
    same(nnp.arange(5.0, device="cuda:1"), np.arange(5.0), "cuda:1")
    same(nnp.linspace(0, 1, 4, device="cuda"), np.linspace(0, 1, 4))
    same(nnp.eye(3, device="cuda"), np.eye(3))
    same(nnp.full((2,), 7.0, device="cuda"), np.full(2, 7.0))
    same(nnp.asarray(A, device="cuda"), A)
    for like in (np.zeros_like, np.ones_like):
        same(like(on(A)), like(A))
    with pytest.raises(ArgumentError):
        nnp.zeros(2, device="tpu")


def test_random_numbers_are_those_of_the_cpu():
    def draw(x: Any) -> Any:
        return x + nb.ops.rand(*x.shape, dtype=nb.float64)

    found = []
    for given in (nb.Tensor(A), on(A)):
        for function in (draw, nb.jit(draw)):
            nb.set_seed(3)
            found.append([function(given).asnumpy() for _ in range(4)])
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])
    assert nb.jit(draw)(nb.Tensor(A)).device == "cpu"  # also after the state was written on a device


# ----- Transforms -----


def test_results_have_the_kind_of_the_arguments():
    w = on(B)

    def f(x: Any) -> Any:
        return (x * w).sum()

    gradient = nb.grad(f)(A)
    assert type(gradient) is np.ndarray
    np.testing.assert_allclose(gradient, B)
    value, gradient = nb.jit(nb.value_and_grad(f))(A)
    assert isinstance(value, np.floating) and type(gradient) is np.ndarray
    same(nb.grad(f)(on(A)), B)
    same(nb.grad(lambda x, y: y * 2)(on(A), 1.0), np.zeros((3, 4)))
    same(nb.jit(nb.grad(lambda x, y: y * 2))(on(A), 1.0), np.zeros((3, 4)))
    assert isinstance(nb.grad(lambda s: (s * w).sum())(2.0), np.floating)


def test_derivatives_that_come_from_no_array():
    def two(x: Any, y: Any) -> Any:
        return (x * 2).sum(), (y * 3).sum()

    first, second = nb.grad(two, (0, 1))(on(A), on(B, "cuda:1"))
    same(first, np.full((3, 4), 2.0))
    same(second, np.full((3, 4), 3.0), "cuda:1")

    def inside(x: Any) -> Any:
        gradient = nb.grad(lambda v: (v * 2).sum())(x)
        assert gradient.device == "cuda"
        return gradient

    same(nb.jit(inside)(on(A)), np.full((3, 4), 2.0))
    same(nb.jacfwd(lambda v: v[1:] * 2)(on(A[0])), 2 * np.eye(4)[1:])


def test_other_transforms():
    x = on(A[0])

    def f(v: Any) -> Any:
        return (np.sin(v) * v).sum()

    same(nb.hessian(f)(x), nb.hessian(f)(A[0]), rtol=1e-9)
    same(nb.jacrev(np.sin)(x), np.diag(np.cos(A[0])))
    same(nb.jacfwd(np.sin)(x), np.diag(np.cos(A[0])))
    same(nb.jvp(np.sin, x, on(B[0]))[1], np.cos(A[0]) * B[0])
    out, pull = nb.vjp(np.sin, x)
    same(out, np.sin(A[0]))
    same(pull(on(B[0]))[0], np.cos(A[0]) * B[0])
    same(nb.hvp(f, x, on(B[0])), nb.hvp(f, A[0], B[0]), rtol=1e-9)
    same(nb.vmap(f)(on(A)), np.sum(np.sin(A) * A, 1))
    same(nb.vmap(nb.grad(f))(on(A)), np.cos(A) * A + np.sin(A))
    nb.check_grads(f, (nb.Tensor(A[0]),))


def test_moving_inside_of_recordings():
    with pytest.raises(TracedValueError, match="before"):
        nb.grad(lambda x: x.to("cuda").sum())(nb.Tensor(A))
    with pytest.raises(TracedValueError, match="before"):
        nb.jit(lambda x: x.cpu() * 2)(on(A))
    same(nb.grad(lambda x: (x.to("cuda") ** 2).sum())(on(A)), 2 * A)
    same(nb.jit(lambda x: x + nb.Tensor(B, device="cuda"))(on(A)), A + B)


def test_guards_and_checks():
    @nb.jit
    def f(x: Any, k: Any) -> Any:
        return x[k] if x.sum() > 0 else -x[k]

    for sign in (1.0, -1.0, 1.0, -1.0):
        for _ in range(3):
            same(f(on(sign * np.ones(3)), on(np.array(1))), np.float64(1.0))
    with pytest.raises(IndexError):
        f(on(np.ones(3)), on(np.array(10**13)))


def test_compiled_programs_are_found_again():
    f = nb.jit(lambda x, s: x * s)
    for device in ("cuda", "cuda:1", "cpu", "cuda"):
        for _ in range(3):
            same(f(nb.Tensor(A, device=device), 2.0), A * 2, nb.Tensor(A, device=device).device)
    assert f.compiled_signatures == 3
    same(f(on(A[0]), 3.0), A[0] * 3)
    lazy = on(A) + 1
    same(f(lazy, 2.0), (A + 1) * 2)
    assert f.compiled_signatures == 4


def test_the_repeated_call_compiles_nothing(simulated):
    f = nb.jit(nb.grad(lambda x: np.sum(np.sin(x) ** 2)))
    x = on(A)
    f(x), f(x)
    before = sum(simulated.launches.values())
    f(x)
    once = sum(simulated.launches.values()) - before
    assert once > 0 and len(f.programs()) == 1


def test_results_go_where_the_caller_wants():
    f = nb.jit(lambda x: (np.sin(x), x.sum()))
    out = on(np.zeros((3, 4))), on(np.zeros(()))
    address = out[0]._node.value.pointer
    for _ in range(4):
        assert f(on(A), out=out) is out
        same(out[0], np.sin(A))
        same(out[1], A.sum())
    assert out[0]._node.value.pointer == address
    g = nb.jit(lambda x: np.cumsum(x[::-1]))
    x = on(A[0])
    g(x, out=x)
    same(x, np.cumsum(A[0][::-1]))
    held = on(np.zeros((3, 4)))
    lazy, other = held + 1, held.copy()
    nb.jit(lambda x: x * 2)(on(A), out=held)
    same(held, A * 2)
    same(lazy, np.ones((3, 4)))
    same(other, np.zeros((3, 4)))


def test_wrong_out():
    f = nb.jit(lambda x: x * 2)
    for out, error in (
        (np.empty((3, 4)), ArgumentError),
        (nb.Tensor(A), ArgumentError),
        (on(A, "cuda:1"), ArgumentError),
        (on(A[0]), ShapeError),
        (on(A.astype("f")), DtypeError),
        ([on(A)], ArgumentError),
        (3.0, ArgumentError),
    ):
        with pytest.raises(error):
            f(on(A), out=out)
    twice = on(A)
    with pytest.raises(ArgumentError, match="shares memory with another array of out"):
        nb.jit(lambda x: (x, x * 2))(on(A), out=(twice, twice))
    with pytest.raises(ArgumentError):
        f(A, out=on(A))


def test_the_interpreter_gives_the_same(monkeypatch):
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    same(nb.jit(nb.grad(lambda x: (x**3).sum()))(on(A)), 3 * A**2)
    same(on(A) * 2, A * 2)


# ----- Parameters and Cells -----


def test_parameters():
    p = nb.Parameter(A, name="p", device="cuda")
    assert p.device == "cuda" and nb.Parameter(on(A), name="q").device == "cuda"
    same(p * 2, 2 * A)
    p.set_data(nb.Tensor(B))  # copied to where the Parameter is
    same(p.value(), B)
    p.set_data(A)
    same(p.value(), A)
    p[0] = 1.0
    assert p.device == "cuda"
    (gradient,) = nb.grad(lambda x: (p * x).sum(), None, [p])(on(B))
    same(gradient, B)
    q = nb.Parameter(A, name="q")
    q.set_data(on(B))
    same(q.value(), B, "cpu")
    assert p.to("cpu").device == "cpu" and p.device == "cuda"


def test_compiled_functions_write_parameters():
    p = nb.Parameter(np.zeros((3, 4)), name="p", device="cuda")
    count = nb.Parameter(np.zeros(1), name="count")

    @nb.jit
    def f(x: Any) -> Any:
        p.set_data(p + x)
        count.set_data(count + 1)
        return p * 2

    for k in range(1, 6):
        same(f(on(A)), 2 * k * A)
        assert float(count.asnumpy()[0]) == k
    same(p.value(), 5 * A)


class _Net(nb.nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first = nb.nn.LayerNorm((4,))
        self.w = nb.Parameter(np.full((4,), 0.5, np.float32), name="w")

    def construct(self, x: Any) -> Any:
        return np.tanh(self.first(x) * self.w)


@pytest.mark.parametrize("make", [nb.nn.SGD, nb.nn.Momentum, nb.nn.Adam, nb.nn.AdamWeightDecay, nb.nn.RMSProp])
@pytest.mark.parametrize("before", [False, True])
def test_training_is_that_of_the_cpu(make, before):
    losses = []
    for device in ("cpu", "cuda"):
        net = _Net()
        arguments = {"momentum": 0.9} if make is nb.nn.Momentum else {}
        if before:
            net.to(device)
        optimizer = make(net.trainable_params(), learning_rate=[0.1, 0.05, 0.02], **arguments)
        net.to(device)  # the optimizer follows
        step = nb.nn.TrainOneStepCell(nb.nn.WithLossCell(net, nb.nn.MSELoss()), optimizer)
        x, y = (nb.Tensor(v.astype("f"), device=device) for v in (A, B))
        losses.append([float(step(x, y)) for _ in range(5)])
        assert all(p.device == device for p in net.get_parameters())
    np.testing.assert_allclose(losses[0], losses[1], rtol=2e-4)
    assert losses[1][-1] < losses[1][0]


@pytest.mark.parametrize("transform", [lambda f: f, nb.jit], ids=["plain", "jit"])
def test_gradients_of_what_is_not_used_are_where_it_is(transform):
    gradient = transform(nb.grad(lambda x, y: np.sum(x * 2), (0, 1)))
    here, there = nb.Tensor(A), nb.Tensor(A, device="cuda")
    for x, y in ((here, there), (there, here), (there, there), (here, here)):
        by_x, by_y = gradient(x, y)
        assert (by_x.device, by_y.device) == (x.device, y.device)
        assert np.all(by_x.asnumpy() == 2) and not by_y.asnumpy().any()


@pytest.mark.parametrize("after", [False, True], ids=["moved before", "moved after"])
@pytest.mark.parametrize("make", [nb.nn.Momentum, nb.nn.Adam])
def test_the_first_step_of_an_optimizer_may_be_recorded(make, after):
    losses = []
    for device in ("cpu", "cuda"):
        net = _Net().to("cpu" if after else device)
        optimizer = make(net.trainable_params(), 0.1, 0.9)
        net.to(device)
        gradient = nb.value_and_grad(lambda x, net=net: np.mean(net(x) ** 2), None, optimizer.parameters)

        @nb.jit
        def step(x, gradient=gradient, optimizer=optimizer):
            loss, slopes = gradient(x)
            optimizer(slopes)
            return loss

        x = nb.Tensor(A.astype("f"), device=device)
        losses.append([float(step(x)) for _ in range(3)])
        assert all(p.device == device for p in optimizer.get_parameters())
    np.testing.assert_allclose(losses[0], losses[1], rtol=2e-4)


def test_cells_move(tmp_path):
    net = _Net().cuda()
    assert all(p.device == "cuda" for p in net.get_parameters())
    result = net(on(A.astype("f")))
    assert result.device == "cuda"
    compiled = nb.jit(net)
    same(compiled(on(A.astype("f"))), result.asnumpy(), rtol=1e-5)
    net.to("cuda:1")
    same(compiled(on(A.astype("f"), "cuda:1")), result.asnumpy(), "cuda:1", rtol=1e-5)
    net.cpu()
    same(compiled(nb.Tensor(A.astype("f"))), result.asnumpy(), "cpu", rtol=1e-5)
    with pytest.raises(DeviceError, match="different places"):
        net(on(A.astype("f")))
    with pytest.raises(ArgumentError):
        net.to("tpu")


def test_checkpoints(tmp_path):
    pytest.importorskip("safetensors")
    net, other = _Net().cuda(), _Net().cuda()
    net.w.set_data(np.arange(4, dtype=np.float32))
    nb.save_checkpoint(net, tmp_path / "net")
    loaded = nb.load_checkpoint(tmp_path / "net", other)
    assert loaded["w"].device == "cpu"
    same(other.w.value(), np.arange(4, dtype=np.float32))


def test_dropout_is_that_of_the_cpu():
    layer = nb.nn.Dropout(p=0.5)
    layer.set_train()
    found = []
    for device in ("cpu", "cuda"):
        nb.set_seed(1)
        found.append(layer(nb.Tensor(np.ones((8, 8), np.float32), device=device)).asnumpy())
    np.testing.assert_array_equal(*found)
    assert 0 < np.count_nonzero(found[0]) < 64


# ----- Memory and failures -----


def test_memory_is_given_back(simulated):
    x = on(np.ones(1 << 16))
    y = x * 2
    str(y), str(nb.grad(lambda v: (v * v).sum())(x))
    gc.collect()
    before = nb.cuda.memory_info()[0]
    for _ in range(5):
        str(nb.grad(lambda v: (v * v).sum())(x))
    gc.collect()
    assert nb.cuda.memory_info()[0] == before
    del x, y
    gc.collect()
    assert nb.cuda.memory_info()[0] >= before + 2 * 8 * (1 << 16)
    simulated.check()


def test_a_full_device_is_an_error_and_the_cpu_goes_on(simulated):
    simulated.fail("allocate")
    with pytest.raises(DeviceError):
        on(np.ones(1000))
    same(nb.Tensor(A) * 2, A * 2, "cpu")
    same(on(A) * 2, A * 2)


def test_freed_memory_is_an_error(simulated):
    x = on(A)
    array = x._node.value
    simulated.free(array.pointer, 0, 0)
    array.owner.pointer = 0
    with pytest.raises(DeviceError):
        x.asnumpy()


def test_without_a_driver(monkeypatch):
    from nbgrad.device.driver import cuda_driver
    from nbgrad.device.memory import chosen_driver

    class Missing:
        def __init__(self) -> None:
            raise DeviceError("There is no NVIDIA driver on this machine.")

    monkeypatch.setattr(chosen_driver, "_chosen", [])
    monkeypatch.setattr(cuda_driver, "CudaDriver", Missing)
    monkeypatch.delenv("NBGRAD_CUDA_SIMULATOR", raising=False)
    chosen_driver._default.cache_clear()
    assert not nb.cuda.is_available() and nb.cuda.device_count() == 0
    with pytest.raises(DeviceError, match="no NVIDIA driver"):
        nb.Tensor(A).to("cuda")
    same(nb.Tensor(A) * 2, A * 2, "cpu")
