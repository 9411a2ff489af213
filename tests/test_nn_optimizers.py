"""Optimizers, learning-rate schedules, clipping and `assign`: against PyTorch's trajectories and formulas on paper."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import nn
from nbgrad.errors import ArgumentError, CellError, DtypeError, NbgradError, RangeError, ShapeError

from .recorded.record_torch_optimizers import FILE, WEIGHTS, gradient

pytestmark = pytest.mark.unoptimized

RECORDED = json.loads(FILE.read_text(encoding="utf-8"))
ARGUMENTS = {"lr": "learning_rate", "amsgrad": "use_amsgrad", "alpha": "decay", "initial_accumulator_value": "accum"}
"""nbgrad's names of PyTorch's arguments, where they differ."""


def recordings(cell: Any) -> int:
    """How often a compiled optimizer or step was recorded."""
    return sum(map(len, cell._compiled._specializations.values()))


def weights(dtype: Any = np.float64) -> list[nb.Parameter]:
    """The recorded initial weights."""
    return [nb.Parameter(weight.astype(dtype), name=f"w{k}") for k, weight in enumerate(WEIGHTS)]


def converted(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """nbgrad's arguments."""
    given = {ARGUMENTS.get(key, key): value for key, value in arguments.items() if key != "betas"}
    if "betas" in arguments:
        given["beta1"], given["beta2"] = arguments["betas"]
    if name == "RMSprop":
        given["epsilon"] = given.pop("eps") ** 2
    elif name == "Adagrad":
        del given["eps"]
    return given


def follow(optimizer: nn.Optimizer, steps: int, tolerance: float, expected: list[Any]) -> None:
    """Take steps with the recorded gradients and compare the weights after each."""
    for step in range(steps):
        values = [weight.asnumpy() for weight in optimizer.parameters]
        gradients = [nb.Tensor(np.asarray(gradient(value, step), value.dtype)) for value in values]
        assert optimizer(tuple(gradients))
        for weight, right in zip(optimizer.parameters, expected[step], strict=True):
            np.testing.assert_allclose(weight.asnumpy(), np.array(right), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda c: f"{c['optimizer']}-{len(c['arguments'])}")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_trajectories_are_those_of_pytorch(case: dict[str, Any], dtype: Any) -> None:
    name = {"RMSprop": "RMSProp"}.get(case["optimizer"], case["optimizer"])
    given = converted(case["optimizer"], case["arguments"])
    # Its first steps leave float32 no digits where PyTorch's epsilon hides the difference.
    tolerance = 1e-9 if dtype == np.float64 else 2e-5
    parameters = weights(dtype)
    optimizer = getattr(nn, name)(parameters, **given)
    if name == "RMSProp":
        for square in optimizer.ms:
            square.set_data(np.zeros(square.shape))  # PyTorch starts here
    follow(optimizer, len(case["weights"]), tolerance, case["weights"])
    assert [p.dtype for p in parameters] == [dtype] * len(parameters)
    assert recordings(optimizer) == 1


def test_momentum_is_sgd_with_momentum() -> None:
    for case in RECORDED["cases"]:
        given = dict(case["arguments"])
        if case["optimizer"] != "SGD" or "momentum" not in given or "dampening" in given:
            continue
        optimizer = nn.Momentum(
            weights(), given["lr"], given["momentum"], given.get("weight_decay", 0.0), 1.0, given.get("nesterov", False)
        )
        follow(optimizer, len(case["weights"]), 1e-12, case["weights"])


# ----- MindSpore's formulas that PyTorch does not have, in NumPy -----


def adam_weight_decay(w: np.ndarray, g: np.ndarray, t: int, state: dict[str, Any]) -> np.ndarray:
    state["m"] = 0.8 * state.get("m", 0.0) + 0.2 * g
    state["v"] = 0.9 * state.get("v", 0.0) + 0.1 * g * g
    return w - 0.1 * (state["m"] / (np.sqrt(state["v"]) + 0.01) + 0.3 * w)


def adam_epsilon(w: np.ndarray, g: np.ndarray, t: int, state: dict[str, Any]) -> np.ndarray:
    state["m"] = 0.8 * state.get("m", 0.0) + 0.2 * g
    state["v"] = 0.9 * state.get("v", 0.0) + 0.1 * g * g
    rate = 0.1 * math.sqrt(1 - 0.9**t) / (1 - 0.8**t)
    return w - rate * state["m"] / (np.sqrt(state["v"]) + 0.5)


def adam_nesterov(w: np.ndarray, g: np.ndarray, t: int, state: dict[str, Any]) -> np.ndarray:
    state["m"] = 0.8 * state.get("m", 0.0) + 0.2 * g
    state["v"] = 0.9 * state.get("v", 0.0) + 0.1 * g * g
    rate = 0.1 * math.sqrt(1 - 0.9**t) / (1 - 0.8**t)
    return w - rate * (0.8 * state["m"] + 0.2 * g) / (np.sqrt(state["v"]) + 0.5)


def rms_prop(w: np.ndarray, g: np.ndarray, t: int, state: dict[str, Any]) -> np.ndarray:
    g = g + 0.2 * w
    state["s"] = 0.8 * state.get("s", 1.0) + 0.2 * g * g
    state["m"] = 0.5 * state.get("m", 0.0) + 0.1 * g / np.sqrt(state["s"] + 0.25)
    return w - state["m"]


def centered(w: np.ndarray, g: np.ndarray, t: int, state: dict[str, Any]) -> np.ndarray:
    state["s"] = 0.8 * state.get("s", 1.0) + 0.2 * g * g
    state["g"] = 0.8 * state.get("g", 0.0) + 0.2 * g
    return w - 0.1 * g / np.sqrt(state["s"] - state["g"] ** 2 + 0.25)


def adagrad_without_slots(w: np.ndarray, g: np.ndarray, t: int, state: dict[str, Any]) -> np.ndarray:
    return w - 0.1 * g / 2.0


FORMULAS: list[tuple[Any, Any]] = [
    (adam_weight_decay, lambda p: nn.AdamWeightDecay(p, 0.1, 0.8, 0.9, 0.01, 0.3)),
    (adam_epsilon, lambda p: nn.Adam(p, 0.1, 0.8, 0.9, 0.5)),
    (adam_nesterov, lambda p: nn.Adam(p, 0.1, 0.8, 0.9, 0.5, use_nesterov=True)),
    (rms_prop, lambda p: nn.RMSProp(p, 0.1, 0.8, 0.5, 0.25, weight_decay=0.2)),
    (centered, lambda p: nn.RMSProp(p, 0.1, 0.8, epsilon=0.25, centered=True)),
    (adagrad_without_slots, lambda p: nn.Adagrad(p, 4.0, 0.1, update_slots=False)),
]


@pytest.mark.parametrize(("formula", "made"), FORMULAS, ids=lambda f: getattr(f, "__name__", "")[:20])
def test_formulas_of_mindspore(formula: Any, made: Any) -> None:
    expected: list[Any] = []
    values, states = list(WEIGHTS), [{} for _ in WEIGHTS]
    for step in range(4):
        values = [formula(w, gradient(w, step), step + 1, s) for w, s in zip(values, states, strict=True)]
        expected.append(values)
    follow(made(weights()), 4, 1e-12, expected)


def test_float16_is_updated_in_float32() -> None:
    w = nb.Parameter(np.array([1.0, 2.0], np.float16), name="w")
    optimizer = nn.Adam([w], 0.125, eps=1e-12)
    for _ in range(3):
        optimizer([nb.Tensor(np.array([1e-4, -1e-4], np.float16))])  # whose squares are 0 in float16
    np.testing.assert_array_equal(w.asnumpy(), np.array([0.625, 2.375], np.float16))
    assert w.dtype == np.float16 and optimizer.moment2[0].dtype == np.float32
    scaled = nn.SGD([w], 1024.0, loss_scale=1024.0)
    scaled([nb.Tensor(np.array([1e-4, 0.0], np.float16))])  # 1e-7 would be rounded to 1.2e-7
    assert w.asnumpy()[0] == np.float16(0.625 - float(np.float16(1e-4)))


def test_adagrad_leaves_weights_without_gradient() -> None:
    w = nb.Parameter(np.array([1.0, 2.0]), name="w")
    optimizer = nn.Adagrad([w], accum=0.0, learning_rate=1.0)
    optimizer([nb.Tensor(np.array([0.0, 3.0]))])
    np.testing.assert_array_equal(w.asnumpy(), [1.0, 1.0])


def test_empty_and_large_groups_of_shapes() -> None:
    parameters = [nb.Parameter(np.ones(shape), name=f"p{k}") for k, shape in enumerate([(0, 3), (), (2, 1, 2)])]
    nn.Adam(parameters, 0.5)([nb.Tensor(np.ones(p.shape)) for p in parameters])
    assert [p.shape for p in parameters] == [(0, 3), (), (2, 1, 2)]
    np.testing.assert_allclose(parameters[2].asnumpy(), 0.5, rtol=1e-6)


# ----- Arguments that all share -----


def one(value: float = 1.0, name: str = "w") -> nb.Parameter:
    return nb.Parameter(np.array([value]), name=name)


def step(optimizer: nn.Optimizer, *values: float) -> list[float]:
    """The weights after a step with these gradients."""
    optimizer([nb.Tensor(np.array([value])) for value in values])
    return [float(weight.asnumpy()[0]) for weight in optimizer.parameters]


def test_weight_decay_leaves_out_beta_and_gamma_as_mindspore_does() -> None:
    def after(make: Any) -> list[float]:
        return step(make([one(1.0, "layer.gamma"), one(1.0, "layer.weight")]), 0.0, 0.0)

    np.testing.assert_allclose(after(lambda p: nn.Momentum(p, 0.5, 0.0, 0.1)), [1.0, 0.95])
    np.testing.assert_allclose(after(lambda p: nn.SGD(p, 0.5, weight_decay=0.1)), [0.95, 0.95])
    np.testing.assert_allclose(after(lambda p: nn.AdamW(p, 0.5, weight_decay=0.1)), [0.95, 0.95])
    np.testing.assert_allclose(after(lambda p: nn.AdamWeightDecay(p, 0.5, weight_decay=0.1)), [1.0, 0.95])
    np.testing.assert_allclose(after(lambda p: nn.Momentum([{"params": p}], 0.5, 0.0, 0.1)), [0.95, 0.95])


def test_loss_scale_divides_gradients_and_not_weight_decay() -> None:
    assert step(nn.Momentum([one()], 0.5, 0.0, weight_decay=0.5, loss_scale=8.0), 4.0) == [0.5]


def test_groups() -> None:
    a, b, c = one(1.0, "a"), one(1.0, "b"), one(1.0, "c")
    groups = [{"params": [a], "lr": 0.5}, {"params": (b, c), "weight_decay": 0.25}, {"order_params": [b, a, c]}]
    optimizer = nn.SGD(iter(groups), learning_rate=1.0, weight_decay=1.0)
    assert [p.name for p in optimizer.parameters] == ["b", "a", "c"]
    assert step(optimizer, 0.5, 0.5, 0.0) == [0.25, 0.25, 0.75]
    assert [float(rate) for rate in optimizer.get_lr()] == [1.0, 0.5, 1.0]
    assert {"learning_rate_group_0", "learning_rate_group_1", "global_step"} == set(optimizer.parameters_dict())
    assert [float(rate) for rate in optimizer.learning_rate] == [1.0, 0.5, 1.0]
    nb.ops.assign(optimizer.learning_rate_group_0, 0.0)
    assert step(optimizer, 0.0, 1.0, 0.0)[1] == 0.25
    with pytest.raises(ArgumentError, match="learning_rate_group_1"):
        optimizer.learning_rate = nb.Tensor(0.5)


def test_a_changed_learning_rate_compiles_nothing() -> None:
    optimizer = nn.SGD([one()], 1.0)
    assert step(optimizer, 0.5) == [0.5]
    optimizer.learning_rate = nb.Tensor(0.5)
    assert step(optimizer, 0.5) == [0.25]
    nb.ops.assign(optimizer.learning_rate, 0.25)
    assert step(optimizer, 1.0) == [0.0]
    assert recordings(optimizer) == 1
    assert optimizer.learning_rate.dtype == np.float64 and nn.SGD([nb.Parameter([1.0])]).learning_rate.dtype == "f4"
    with pytest.raises(DtypeError, match="Tensor"):
        optimizer.learning_rate = 0.5
    optimizer.learning_rate = nn.WarmUpLR(1.0, 4)
    assert step(optimizer, -1.0) == [0.75] and float(optimizer.get_lr()) == 1.0


@pytest.mark.parametrize(
    "rates", [[0.5, 0.25], (r for r in (0.5, 0.25)), np.array([0.5, 0.25]), nb.Tensor([0.5, 0.25])]
)
def test_a_learning_rate_for_each_step(rates: Any) -> None:
    optimizer = nn.SGD([one(0.0)], rates)
    assert float(optimizer.get_lr()) == 0.5
    assert [step(optimizer, -1.0)[0] for _ in range(4)] == [0.5, 0.75, 1.0, 1.25]
    assert recordings(optimizer) == 1


def test_schedules_of_learning_rate_and_weight_decay_run_inside_the_update() -> None:
    class Steps(nn.Cell):
        def construct(self, global_step: nb.Tensor) -> nb.Tensor:
            return global_step.astype(nb.float32)

    optimizer = nn.SGD([one(1.0)], nn.ExponentialDecayLR(0.5, 0.5, 1), weight_decay=Steps())
    assert [step(optimizer, 0.0)[0] for _ in range(3)] == [1.0, 0.75, 0.5625]
    assert recordings(optimizer) == 1 and int(optimizer.global_step) == 3


def test_frozen_parameters_stay_until_they_are_trainable() -> None:
    w, fixed = one(1.0, "w"), one(1.0, "fixed")
    fixed.requires_grad = False
    optimizer = nn.Momentum([w, fixed], 0.5, 0.0)
    assert step(optimizer, 1.0, 1.0) == [0.5, 1.0]
    fixed.requires_grad = True
    assert step(optimizer, 1.0, 1.0) == [0.0, 0.5]
    fixed.requires_grad = False
    assert step(optimizer, 1.0, 1.0) == [-0.5, 0.5]


def test_state_is_found_under_its_names() -> None:
    optimizer = nn.Adam([one(1.0, "a"), one(1.0, "b")], use_amsgrad=True)
    state = [f"{prefix}.{name}" for prefix in ("moment1", "moment2", "vhat") for name in "ab"]
    assert list(optimizer.parameters_dict()) == ["global_step", "learning_rate", *state]
    assert optimizer.trainable_params() == [] and isinstance(optimizer.parameters, nb.ParameterTuple)
    # Neither the weights nor their names belong to the optimizer.
    holder = nn.Cell()
    holder.optimizer = optimizer
    assert [p.name for p in optimizer.parameters] == ["a", "b"]
    assert "optimizer.moment1.a" in holder.parameters_dict()


def test_an_optimizer_of_ones_own_may_define_construct() -> None:
    class Descent(nn.Optimizer):
        def construct(self, gradients: Any) -> bool:
            rate = self.get_lr()
            for weight, g in zip(self.parameters, self.scale_grad(self.decay_weight(gradients)), strict=True):
                nb.ops.assign_sub(weight, rate * g)
            nb.ops.assign_add(self.global_step, 1)
            return True

    optimizer = Descent(0.5, [one()], weight_decay=0.5, loss_scale=2.0)
    assert step(optimizer, 1.0) == [0.5] and int(optimizer.global_step) == 1
    with pytest.raises(CellError, match="update"):
        nn.Optimizer(0.5, [one()])([nb.Tensor(np.ones(1))])


BAD: list[tuple[Any, type[NbgradError], str]] = [
    (lambda: nn.SGD([]), ArgumentError, "empty"),
    (lambda: nn.SGD([{"params": []}]), ArgumentError, "empty"),
    (lambda: nn.SGD([1.0]), DtypeError, "float"),
    (lambda: nn.SGD([nb.Tensor([1.0])]), DtypeError, "Tensor"),
    (lambda: nn.SGD(one()), DtypeError, "in a list"),
    (lambda: nn.SGD(nn.Cell()), DtypeError, "trainable_params"),
    (lambda: nn.SGD([nb.Parameter(np.array([1]))]), DtypeError, "int64"),
    (lambda: nn.SGD([one(), one()]), ArgumentError, "name"),
    (lambda: nn.SGD([p := one(), p]), ArgumentError, "twice"),
    (lambda: nn.SGD([{"params": [p := one()]}, {"params": [p]}]), ArgumentError, "twice"),
    (lambda: nn.SGD([one(), {"params": [one()]}]), DtypeError, "groups only"),
    (lambda: nn.SGD([{"params": [one()], "momentum": 0.9}]), ArgumentError, "momentum"),
    (lambda: nn.SGD([{"params": [one()]}, {"order_params": [one()]}]), ArgumentError, "order_params"),
    (lambda: nn.SGD([one()], -0.1), ArgumentError, "at least 0"),
    (lambda: nn.SGD([one()], [0.1, -0.1]), ArgumentError, "at least 0"),
    (lambda: nn.SGD([one()], np.array([np.nan])), ArgumentError, "NaN"),
    (lambda: nn.SGD([one()], nb.Tensor([[0.1]])), ArgumentError, "one axis"),
    (lambda: nn.SGD([one()], []), ArgumentError, "shape"),
    (lambda: nn.SGD([one()], "0.1"), DtypeError, "number"),
    (lambda: nn.SGD([one()], True), DtypeError, "number"),
    (lambda: nn.SGD([one()], 0.1, weight_decay=-1.0), ArgumentError, "weight_decay"),
    (lambda: nn.SGD([one()], 0.1, loss_scale=0.0), ArgumentError, "loss_scale"),
    (lambda: nn.SGD([one()], 0.1, nesterov=True), ArgumentError, "nesterov"),
    (lambda: nn.SGD([one()], 0.1, 0.9, nesterov=1), DtypeError, "nesterov"),
    (lambda: nn.Momentum([one()], 0.1, -0.5), ArgumentError, "momentum"),
    (lambda: nn.Adam([one()], beta1=1.0), ArgumentError, "beta1"),
    (lambda: nn.Adam([one()], eps=0.0), ArgumentError, "eps"),
    (lambda: nn.Adagrad([one()], 0.0, update_slots=False), ArgumentError, "accum"),
    (lambda: nn.CosineDecayLR(0.5, 0.1, 3), ArgumentError, "max_lr"),
    (lambda: nn.ExponentialDecayLR(0.5, 0.1, 0), ArgumentError, "decay_steps"),
    (lambda: nn.ExponentialDecayLR(0.5, 0.1, 1.5), DtypeError, "decay_steps"),
    (lambda: nn.piecewise_constant_lr([3, 3], [0.1, 0.2]), ArgumentError, "increase"),
    (lambda: nn.piecewise_constant_lr([3], [0.1, 0.2]), ArgumentError, "as many"),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD)
def test_wrong_arguments(call: Any, error: type[NbgradError], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_gradients_that_do_not_fit_change_nothing() -> None:
    optimizer = nn.Adam([one(1.0, "a"), one(2.0, "b")], 0.5)
    good = nb.Tensor(np.ones(1))
    wrong: list[tuple[Any, type[NbgradError]]] = [
        ((good,), ArgumentError),
        ((good, good, good), ArgumentError),
        ((good, nb.Tensor(np.ones(2))), ShapeError),
        ((good, nb.Tensor(np.ones((1, 1)))), ShapeError),
        ((good, nb.Tensor(np.ones(1, int))), DtypeError),
        ((good, None), DtypeError),
        ({"a": good, "b": good}, DtypeError),
        (good, ArgumentError),
    ]
    for gradients, error in wrong:
        with pytest.raises(error):
            optimizer(gradients)
    assert [float(p.asnumpy()[0]) for p in optimizer.parameters] == [1.0, 2.0] and int(optimizer.global_step) == 0
    single = nn.SGD([one()], 1.0)
    single(nb.Tensor(np.array([0.5])))
    single([np.array([0.25])])
    assert float(single.parameters[0].asnumpy()[0]) == 0.25


# ----- Schedules -----

SCHEDULES: list[tuple[Any, Any]] = [
    (nn.ExponentialDecayLR(0.5, 0.9, 4), lambda t: 0.5 * 0.9 ** (t / 4)),
    (nn.ExponentialDecayLR(0.5, 0.9, 4, True), lambda t: 0.5 * 0.9 ** (t // 4)),
    (nn.NaturalExpDecayLR(0.5, 0.9, 4), lambda t: 0.5 * math.exp(-0.9 * t)),
    (nn.NaturalExpDecayLR(0.5, 0.9, 4, True), lambda t: 0.5 * math.exp(-0.9 * (t // 4 * 4))),
    (nn.InverseDecayLR(0.5, 0.9, 4), lambda t: 0.5 / (1 + 0.9 * t / 4)),
    (nn.InverseDecayLR(0.5, 0.9, 4, True), lambda t: 0.5 / (1 + 0.9 * (t // 4))),
    (nn.CosineDecayLR(0.1, 0.5, 4), lambda t: 0.3 + 0.2 * math.cos(math.pi * min(t, 4) / 4)),
    (nn.PolynomialDecayLR(0.5, 0.1, 4, 2.0), lambda t: 0.4 * (1 - min(t, 4) / 4) ** 2 + 0.1),
    (
        nn.PolynomialDecayLR(0.5, 0.1, 4, 0.5, True),
        lambda t: 0.4 * (1 - t / (4 * max(math.ceil(t / 4), 1))) ** 0.5 + 0.1,
    ),
    (nn.WarmUpLR(0.5, 4), lambda t: 0.5 * min(t, 4) / 4),
]


@pytest.mark.parametrize(("schedule", "formula"), SCHEDULES)
def test_schedules_are_their_formulas(schedule: Any, formula: Any) -> None:
    for t in (0, 1, 3, 4, 5, 8, 11, 1000):
        got = schedule(nb.Tensor(t, nb.int32))
        assert got.dtype == np.float32 and got.shape == ()
        np.testing.assert_allclose(got.asnumpy(), formula(t), rtol=1e-6)
    assert schedule(nb.Tensor([1, 2])).shape == (2,) and "4" in repr(schedule)


LISTS: list[tuple[list[float], list[float]]] = [
    # What MindSpore's documentation prints for these arguments.
    (nn.piecewise_constant_lr([2, 5, 10], [0.1, 0.05, 0.01]), [0.1] * 2 + [0.05] * 3 + [0.01] * 5),
    (nn.exponential_decay_lr(0.1, 0.9, 6, 2, 1), [0.1, 0.1, 0.09, 0.09, 0.081, 0.081]),
    (nn.natural_exp_decay_lr(0.1, 0.9, 6, 2, 2, True), [0.1] * 4 + [0.016529888822158657] * 2),
    (
        nn.inverse_decay_lr(0.1, 0.5, 6, 1, 1, True),
        [0.1, 0.06666666666666667, 0.05, 0.04, 0.03333333333333333, 0.028571428571428574],
    ),
    (nn.cosine_decay_lr(0.01, 0.1, 6, 2, 2), [0.1, 0.1, 0.055, 0.055, 0.01, 0.01]),
    (nn.polynomial_decay_lr(0.1, 0.01, 6, 2, 2, 0.5), [0.1, 0.1, 0.07363961030678928, 0.07363961030678928, 0.01, 0.01]),
    (nn.warmup_lr(0.1, 6, 2, 2), [0.0, 0.0, 0.05, 0.05, 0.1, 0.1]),
]


@pytest.mark.parametrize(("got", "expected"), LISTS)
def test_lists_of_learning_rates(got: list[float], expected: list[float]) -> None:
    assert all(type(rate) is float for rate in got)
    np.testing.assert_allclose(got, expected, rtol=1e-14)


# ----- Clipping -----


@pytest.mark.parametrize("case", RECORDED["clipped"], ids=lambda c: c["norm_type"])
def test_clip_by_norm_is_that_of_pytorch(case: dict[str, Any]) -> None:
    given = tuple(nb.Tensor(weight) for weight in WEIGHTS)
    got = nb.ops.clip_by_norm(given, case["max_norm"], float(case["norm_type"]))
    assert isinstance(got, tuple)
    for value, expected in zip(got, case["values"], strict=True):
        np.testing.assert_allclose(value.asnumpy(), np.array(expected), rtol=1e-13)


def test_clip_by_norm_of_small_dtypes_and_bad_values() -> None:
    half = nb.ops.clip_by_norm(nb.Tensor(np.full(4, 300.0, np.float16)), 300.0)
    assert half.dtype == np.float16
    np.testing.assert_array_equal(half.asnumpy(), np.full(4, 150.0))
    large = nb.ops.clip_by_norm([nb.Tensor(np.array([1e30, 0.0], np.float32))], 2.0)
    assert isinstance(large, list)
    np.testing.assert_allclose(large[0].asnumpy(), [2.0, 0.0], rtol=1e-6)
    np.testing.assert_array_equal(nb.ops.clip_by_norm(nb.Tensor(np.zeros(3)), 1.0).asnumpy(), np.zeros(3))
    bad = nb.Tensor(np.array([np.inf, 1.0]))
    assert np.isnan(nb.ops.clip_by_norm(bad, 1.0).asnumpy()).any()
    with pytest.raises(RangeError, match="not finite"):
        nb.ops.clip_by_norm(bad, 1.0, error_if_nonfinite=True)
    for call in (
        lambda: nb.ops.clip_by_norm([], 1.0),
        lambda: nb.ops.clip_by_norm(bad, -1.0),
        lambda: nb.ops.clip_by_norm([1.0], 1.0),
    ):
        with pytest.raises(NbgradError):
            call()
    nb.check_grads(lambda x: nb.ops.clip_by_norm(x, 0.5), (WEIGHTS[0],), order=2)


# ----- assign -----


def test_assign() -> None:
    w = nb.Parameter(nb.Tensor([1.0, 2.0]), name="w")
    assert nb.ops.assign(w, np.array([3.0, 4.0])).tolist() == [3.0, 4.0] == w.tolist()
    assert nb.ops.assign_add(w, 1.0).tolist() == [4.0, 5.0]
    assert nb.ops.assign_sub(w, nb.Tensor([4.0, 4.0])).tolist() == [0.0, 1.0] and w.dtype == np.float32
    number = nb.Parameter(7, name="n")
    assert nb.ops.assign_add(number, 1).item() == 8 and number.dtype == np.int32

    @nb.jit
    def count(x: nb.Tensor) -> nb.Tensor:
        nb.ops.assign_add(number, 1)
        return x * number

    assert [count(nb.Tensor(1.0)).item() for _ in range(3)] == [9.0, 10.0, 11.0] and int(number) == 11


BAD_ASSIGNMENTS: list[tuple[Any, Any, type[NbgradError]]] = [
    (nb.Tensor([1.0]), 1.0, DtypeError),
    (nb.Parameter([1.0, 2.0]), 1.0, ShapeError),
    (nb.Parameter([1.0, 2.0]), [1.0], ShapeError),
    (nb.Parameter(1), 1.5, DtypeError),
    (nb.Parameter(1), np.array(2**40), DtypeError),
    (nb.Parameter(1), 2**40, ArgumentError),
    (nb.Parameter(1), "1", DtypeError),
]


@pytest.mark.parametrize(("variable", "value", "error"), BAD_ASSIGNMENTS)
def test_assign_refuses_what_does_not_fit(variable: Any, value: Any, error: type[NbgradError]) -> None:
    before = variable.tolist()
    with pytest.raises(error):
        nb.ops.assign(variable, value)
    assert variable.tolist() == before
    with pytest.raises(ShapeError):
        nb.ops.assign_add(nb.Parameter([1.0]), [1.0, 2.0])


def test_gradients_of_groups_lose_their_means() -> None:
    rng = np.random.default_rng(3)
    w, g = rng.normal(size=(2, 16, 1, 2)), rng.normal(size=(2, 16, 1, 2))
    weights = [nb.Parameter(nb.Tensor(w), name=name) for name in ("first", "second")]
    narrow = nb.Parameter(nb.Tensor(w[:, :3]), name="narrow")
    groups = [
        {"params": [weights[0], narrow], "weight_decay": 0.5, "grad_centralization": True},
        {"params": weights[1:]},
    ]
    nn.SGD(groups, 0.1)([nb.Tensor(g), nb.Tensor(g[:, :3]), nb.Tensor(g)])
    decayed = g + 0.5 * w
    np.testing.assert_allclose(weights[0], w - 0.1 * (decayed - decayed.mean((1, 2, 3), keepdims=True)), rtol=1e-12)
    np.testing.assert_allclose(narrow, (w - 0.1 * decayed)[:, :3], rtol=1e-12)
    np.testing.assert_allclose(weights[1], w - 0.1 * g, rtol=1e-12)
