"""Modules, optimizers, data and distributions in PyTorch's words; facts are PyTorch's documentation and arithmetic."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
from nbgrad.mint.torch_names.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from nbgrad.mint.torch_names.utils.data import DataLoader, TensorDataset, random_split

import nbgrad as nb
import nbgrad.mint.torch_names as torch
from nbgrad.errors import ArgumentError, AutogradError
from nbgrad.mint.torch_names import nn

pytestmark = pytest.mark.unoptimized


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 3)
        self.bn = nn.BatchNorm1d(3)
        self.register_buffer("scale", torch.ones(3))
        self.register_buffer("passing", torch.zeros(1), persistent=False)
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(3, 1, bias=False))

    def forward(self, x):
        return self.head(self.bn(self.fc(x)) * self.scale)


# ----- Leaves written in place -----


def test_data_under_another_name_is_written_in_place() -> None:
    for w in (nn.Parameter(torch.ones(3)), torch.ones(3, requires_grad=True)):
        d = w.data
        d -= 0.25
        d *= 2.0
        assert w.tolist() == [1.5] * 3
        assert w.requires_grad


def test_a_parameter_of_a_loop_is_written_in_place() -> None:
    net = nn.Linear(2, 1)
    net(torch.ones(1, 2)).sum().backward()
    before = [p.detach().clone() for p in net.parameters()]
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.5 * p.grad
    for old, p in zip(before, net.parameters(), strict=True):
        np.testing.assert_allclose((old - p.detach()).numpy(), (0.5 * p.grad).numpy(), rtol=1e-5)


def test_parameters_of_mindspore_bind_anew() -> None:
    w = kept = nb.Parameter(nb.Tensor([1.0]), name="w")
    w -= 1.0
    assert kept.value().tolist() == [1.0]


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda w: pickle.loads(pickle.dumps(w))])
def test_copies_of_leaves_are_leaves(copied) -> None:
    w = copied(nn.Parameter(torch.ones(2)))
    (w * w).sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]


# ----- Modules -----


def test_names_of_all_that_a_module_holds() -> None:
    net = Net()
    assert [name for name, _ in net.named_parameters()] == [
        "fc.weight",
        "fc.bias",
        "bn.weight",
        "bn.bias",
        "head.1.weight",
    ]
    assert [name for name, _ in net.named_buffers()] == ["scale", "passing", "bn.running_mean", "bn.running_var"]
    assert [name for name, _ in net.named_modules()] == ["", "fc", "bn", "head", "head.0", "head.1"]
    assert [name for name, _ in net.named_children()] == ["fc", "bn", "head"]
    assert "passing" not in net.state_dict()
    assert "scale" in net.state_dict()
    assert net.get_submodule("head.1") is net.head[1]
    assert net.get_parameter("bn.weight") is net.bn.weight
    assert isinstance(net.fc, nn.Linear)
    assert not isinstance(net.bn, nn.Linear)
    assert isinstance(net.fc.weight, nn.Parameter)


def test_training_and_evaluation() -> None:
    net = Net()
    assert net.training
    assert net.bn.training
    assert net.eval() is net
    assert not net.head[0].training
    seen = []

    class Frozen(nn.BatchNorm1d):
        def train(self, mode=True):
            seen.append(mode)
            return super().train(False)

    net.bn = Frozen(3)
    net.train()
    assert seen == [True]
    assert not net.bn.training
    assert net.fc.training


def test_a_subclass_of_a_layer_may_have_a_forward_of_its_own() -> None:
    class Masked(nn.Linear):
        def forward(self, x):
            return nn.functional.linear(x, self.weight * 0, self.bias) + super().forward(x)

    layer = Masked(2, 1)
    x = torch.ones(1, 2)
    expected = x @ layer.weight.T + 2 * layer.bias
    np.testing.assert_allclose(layer(x).detach().numpy(), expected.detach().numpy(), rtol=1e-6)


def test_states_are_loaded_by_name() -> None:
    net, other = Net(), Net()
    result = other.load_state_dict(net.state_dict())
    assert (result.missing_keys, result.unexpected_keys) == ([], [])
    assert other.fc.weight.tolist() == net.fc.weight.tolist()
    arrays = {name: value.numpy() for name, value in net.state_dict().items()}
    arrays["extra"] = np.zeros(1)
    del arrays["scale"]
    assert other.load_state_dict(arrays, strict=False) == (["scale"], ["extra"])
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"extra".*\n.*Missing key.*"scale"'):
        other.load_state_dict(arrays)
    with pytest.raises(RuntimeError, match=r"size mismatch for fc.weight"):
        other.load_state_dict({**net.state_dict(), "fc.weight": torch.ones(2, 2)})


def test_writes_to_a_state_are_writes_to_the_module() -> None:
    net = Net()
    for value in net.state_dict().values():
        value.zero_()
    assert not any(p.detach().numpy().any() for p in net.parameters())
    kept = copy.deepcopy(net.state_dict())
    net.fc.bias.data.fill_(1.0)
    assert kept["fc.bias"].tolist() == [0.0] * 3


def test_dtypes_of_a_module() -> None:
    net = Net().double()
    assert {p.dtype for p in net.state_dict().values()} == {torch.float64}
    net(torch.ones(2, 2, dtype=torch.float64)).sum().backward()
    assert net.fc.weight.grad.dtype == torch.float64
    assert {p.dtype for p in net.to(torch.float32).parameters()} == {torch.float32}
    assert nn.Linear(2, 1, device="cpu", dtype=torch.float64).weight.dtype == torch.float64


def test_frozen_parameters_take_no_part() -> None:
    net = Net()
    net.fc.requires_grad_(False)
    net(torch.randn(4, 2)).sum().backward()
    assert net.fc.weight.grad is None
    assert net.head[1].weight.grad is not None
    net.fc.weight.requires_grad = True
    net(torch.randn(4, 2)).sum().backward()
    assert net.fc.weight.grad is not None
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


def test_cells_of_mindspore_become_modules() -> None:
    net = nn.Sequential(nb.nn.Dense(2, 2), nb.nn.ReLU())
    assert len(list(net[0].parameters())) == 2
    net(torch.ones(1, 2)).sum().backward()
    assert net[0].weight.grad is not None
    assert isinstance(net[0], nn.Linear)


def test_weights_that_are_tied_count_once() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(5, 3)
            self.out = nn.Linear(3, 5, bias=False)
            self.table.weight = self.out.weight

    net = Tied()
    assert len(list(net.parameters())) == 1
    assert net.table.weight is net.out.weight
    assert list(net.state_dict()) == ["table.weight", "out.weight"]
    again = copy.deepcopy(net)
    assert again.table.weight is again.out.weight


def test_a_module_without_forward_says_so() -> None:
    with pytest.raises(AttributeError, match='missing the required "forward"'):
        nn.Module()(1)


def test_spectral_norm_divides_by_the_greatest_singular_value() -> None:
    layer = nn.utils.spectral_norm(nn.Linear(4, 3), n_power_iterations=50)
    layer(torch.ones(1, 4))
    assert abs(np.linalg.norm(layer.weight.detach().numpy(), 2) - 1.0) < 1e-4
    assert sorted(dict(layer.named_parameters())) == ["bias", "weight_orig"]
    assert isinstance(nn.utils.remove_spectral_norm(layer).weight, nn.Parameter)


def test_initial_values() -> None:
    torch.manual_seed(0)
    w = nn.Parameter(torch.zeros(200, 300))
    for fill, deviation in (
        (nn.init.xavier_normal_, (2 / 500) ** 0.5),
        (nn.init.kaiming_uniform_, (2 / 300) ** 0.5),
        (nn.init.normal_, 1.0),
    ):
        assert fill(w) is w
        assert abs(float(w.detach().numpy().std()) / deviation - 1) < 0.02
    q = nn.init.orthogonal_(w).detach().numpy()
    np.testing.assert_allclose(q @ q.T, np.eye(200), atol=1e-5)
    assert np.abs(nn.init.trunc_normal_(w, std=1.0, a=-1.0, b=1.0).detach().numpy()).max() <= 1.0
    assert nn.init.dirac_(nn.Parameter(torch.zeros(2, 2, 3))).detach().numpy()[1, 1, 1] == 1.0
    assert nn.init.calculate_gain("relu") == 2**0.5


# ----- Optimizers -----


def test_weights_without_gradients_stay() -> None:
    a, b = torch.ones(2, requires_grad=True), nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([{"params": [a], "lr": 0.5}, {"params": [b]}], lr=0.1)
    a.sum().backward()
    optimizer.step()
    np.testing.assert_allclose(a.detach().numpy(), 0.5, rtol=1e-6)
    assert b.tolist() == [1.0, 1.0]
    optimizer.zero_grad()
    assert a.grad is None
    with pytest.raises(ArgumentError, match="more than one parameter group"):
        optimizer.add_param_group({"params": [b]})
    with pytest.raises(ArgumentError, match="Invalid learning rate"):
        torch.optim.SGD([a], lr=-1.0)


def test_an_optimizer_of_ones_own() -> None:
    class Signs(torch.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    self.state[p]["count"] = self.state[p].get("count", 0) + 1
                    p.add_(p.grad.sign(), alpha=-group["lr"])

    w = nn.Parameter(torch.tensor([1.0, -1.0]))
    optimizer = Signs([w], 0.25)
    (w * w).sum().backward()
    optimizer.step()
    assert w.tolist() == [0.75, -0.75]
    assert optimizer.state_dict()["state"][0] == {"count": 1}


def test_scaled_losses_leave_out_steps_that_overflow() -> None:
    w = nn.Parameter(torch.ones(1))
    optimizer, scaler = torch.optim.SGD([w], lr=1.0), torch.amp.GradScaler(init_scale=4.0)
    scaler.scale((w * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert (w.tolist(), scaler.get_scale()) == ([1.0], 2.0)
    scaler.unscale_(optimizer)
    with pytest.raises(AutogradError, match="already been called"):
        scaler.unscale_(optimizer)


# ----- Sequences, data, distributions, names -----


def test_sequences_of_different_lengths() -> None:
    x = pad_sequence([torch.ones(3, 2), torch.ones(1, 2) * 2], batch_first=True, padding_value=-1.0)
    assert x[1].tolist() == [[2.0, 2.0], [-1.0, -1.0], [-1.0, -1.0]]
    packed = pack_padded_sequence(x, [3, 1], batch_first=True)
    assert packed.data[:, 0].tolist() == [1.0, 2.0, 1.0, 1.0]
    assert packed.batch_sizes.tolist() == [2, 1, 1]
    back, lengths = pad_packed_sequence(packed, batch_first=True, total_length=4)
    assert back[1, :, 0].tolist() == [2.0, 0.0, 0.0, 0.0]
    assert lengths.tolist() == [3, 1]
    output, (h, _) = nn.LSTM(2, 3)(torch.ones(4, 2))
    assert (output.shape, h.shape) == ((4, 3), (1, 3))


def test_batches_of_data() -> None:
    torch.manual_seed(3)
    data = TensorDataset(torch.arange(10), torch.arange(10) * 2)
    batches = [x.tolist() for x, y in DataLoader(data, batch_size=4, shuffle=True)]
    assert sorted(x for one in batches for x in one) == list(range(10))
    assert [len(one) for one in batches] == [4, 4, 2]
    assert len(DataLoader(data, batch_size=4, drop_last=True)) == 2
    first, second = random_split(data, [0.7, 0.3])
    assert (len(first), len(second)) == (7, 3)
    (batch,) = DataLoader([{"x": np.ones(2), "y": 1}] * 3, batch_size=3)
    assert (batch["x"].shape, batch["y"].tolist()) == ((3, 2), [1, 1, 1])


def test_distributions_beside_scipy() -> None:
    from scipy import stats

    laws = torch.distributions
    x = np.array([0.25, 0.5])
    pairs = [
        (laws.Normal(0.5, 2.0), stats.norm(0.5, 2.0)),
        (laws.Gamma(2.0, 3.0), stats.gamma(2.0, scale=1 / 3)),
        (laws.Beta(2.0, 3.0), stats.beta(2.0, 3.0)),
        (laws.StudentT(4.0), stats.t(4.0)),
        (laws.Exponential(2.0), stats.expon(scale=0.5)),
        (laws.Laplace(0.0, 2.0), stats.laplace(0.0, 2.0)),
        (laws.HalfNormal(2.0), stats.halfnorm(scale=2.0)),
    ]
    for own, known in pairs:
        np.testing.assert_allclose(own.log_prob(torch.tensor(x)).numpy(), known.logpdf(x), rtol=1e-5)
        np.testing.assert_allclose(own.variance.item(), known.var(), rtol=1e-5)
        np.testing.assert_allclose(own.entropy().item(), known.entropy(), rtol=1e-5)
        assert own.rsample((5,)).shape == (5,)
    dirichlet = laws.Dirichlet(torch.tensor([1.0, 2.0, 3.0]))
    value = np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(
        dirichlet.log_prob(torch.tensor(value)).item(), stats.dirichlet([1.0, 2.0, 3.0]).logpdf(value), rtol=1e-5
    )
    np.testing.assert_allclose(dirichlet.entropy().item(), stats.dirichlet([1.0, 2.0, 3.0]).entropy(), rtol=1e-5)
    choice = laws.Categorical(logits=torch.tensor([[0.0, 1.0], [2.0, 0.0]]))
    np.testing.assert_allclose(np.exp(choice.log_prob(torch.tensor([1, 0])).numpy()), [0.731059, 0.880797], rtol=1e-5)
    assert choice.sample((3,)).shape == (3, 2)
    a, b = laws.Bernoulli(torch.tensor(0.2)), laws.Bernoulli(logits=torch.tensor(0.0))
    expected = 0.2 * np.log(0.4) + 0.8 * np.log(1.6)
    np.testing.assert_allclose(laws.kl_divergence(a, b).item(), expected, rtol=1e-5)
    np.testing.assert_allclose(
        laws.kl_divergence(laws.Normal(0.0, 1.0), laws.Normal(1.0, 2.0)).item(), np.log(2.0) + 0.25 - 0.5, rtol=1e-5
    )


def test_draws_of_choices_have_their_frequencies() -> None:
    torch.manual_seed(1)
    draws = torch.distributions.Categorical(torch.tensor([0.2, 0.5, 0.3])).sample((20000,)).numpy()
    np.testing.assert_allclose(np.bincount(draws) / 20000, [0.2, 0.5, 0.3], atol=0.02)


def test_sizes_can_be_called_and_are_numbers() -> None:
    x = torch.ones(2, 3)
    assert (x.size(), x.size(0), x.size(-1), x.size) == ((2, 3), 2, 3, 6)
    assert (x * x.size).dtype == torch.float32
    assert pickle.loads(pickle.dumps(x.size)) == 6


def test_values_and_positions_have_names() -> None:
    x = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
    for pair in (x.max(dim=1), torch.max(x, 1), torch.sort(x, dim=1, descending=True)):
        values, indices = pair
        assert pair.values.tolist() == values.tolist()
        assert pair.indices.tolist() == indices.tolist()
    assert torch.topk(x, 1).values.tolist() == [[5.0], [7.0]]
    assert nb.jit(lambda x: torch.max(x, 1))(x).indices.tolist() == [1, 0]


def test_files_keep_states() -> None:
    file = io.BytesIO()
    net = Net()
    torch.save({"net": net.state_dict(), "epoch": 3}, file)
    file.seek(0)
    found = torch.load(file)
    assert found["epoch"] == 3
    assert Net().load_state_dict(found["net"]).missing_keys == []


def test_other_names_of_dtypes_and_devices() -> None:
    assert torch.tensor([1.0], dtype=torch.double).dtype == torch.float64
    assert torch.zeros(2, dtype=torch.long, device=torch.device("cpu")).dtype == torch.int64
    assert (torch.device("cuda:1").type, torch.device("cuda", 1).index) == ("cuda", 1)
    assert torch.unique(torch.tensor([3, 1, 3])).tolist() == [1, 3]
    assert torch.unflatten(torch.arange(6), 0, (2, -1)).shape == (2, 3)
    assert torch.tensordot(torch.ones(2, 3), torch.ones(3, 2), dims=1).shape == (2, 2)


def test_further_functions_beside_numpy() -> None:
    x = np.random.default_rng(0).standard_normal((3, 4))
    t = torch.tensor(x)
    pairs = [
        (torch.std(t, unbiased=False), x.std()),
        (torch.var(t, 0), x.var(0, ddof=1)),
        (t.std(dim=0, unbiased=True), x.std(0, ddof=1)),
        (t.norm(p=1), np.abs(x).sum()),
        (t.norm(p=2, dim=1), np.linalg.norm(x, axis=1)),
        (torch.softmax(t, dim=0).sum(dim=0), np.ones(4)),
        (t.softmax(dim=1).sum(dim=1), np.ones(3)),
        (torch.aminmax(t, dim=1).max, x.max(1)),
        (torch.corrcoef(t), np.corrcoef(x)),
        (torch.cumulative_trapezoid(t, dim=1)[:, -1], np.trapezoid(x, axis=1)),
        (torch.gradient(t, dim=1)[0], np.gradient(x, axis=1)),
        (torch.squeeze(t, 0), x),
        (torch.linalg.lstsq(t.T, t.T[:, :1]).solution, np.linalg.lstsq(x.T, x.T[:, :1], rcond=None)[0]),
        (torch.special.ndtr(torch.zeros(1)), [0.5]),
        (torch.rsub(t, 1.0, alpha=2), 1 - 2 * x),
        (t.unflatten(1, (2, -1)), x.reshape(3, 2, 2)),
        (t.new_tensor([1, 2]), [1.0, 2.0]),
    ]
    for found, expected in pairs:
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10, atol=1e-14)
    modes = torch.mode(torch.tensor([[1, 2, 2, 1], [3, 3, 0, 1]]))
    assert (modes.values.tolist(), modes.indices.tolist()) == ([1, 3], [3, 1])


def test_momentum_goes_against_the_rates_of_cycles() -> None:
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.3, step_size_up=2)
    found = []
    for _ in range(3):
        optimizer.step()
        scheduler.step()
        found.append([optimizer.param_groups[0][name] for name in ("lr", "momentum")])
    np.testing.assert_allclose(found, [[0.2, 0.85], [0.3, 0.8], [0.2, 0.85]])


def test_hooks_of_a_first_layer_see_the_gradients_of_its_outputs() -> None:
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda module, inputs, outputs: seen.append((inputs, outputs[0].tolist())))
    layer(torch.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1.0]])]
    x = torch.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    assert seen[1][0][0].tolist() == layer.weight.tolist()


def test_modules_side_by_side() -> None:
    nets = [nn.Linear(3, 2) for _ in range(4)]
    parameters, _ = torch.func.stack_module_state(nets)
    x = torch.randn(5, 3)
    call = torch.func.vmap(lambda p, x: torch.func.functional_call(nets[0], p, (x,)), in_dims=(0, None))
    found = call(parameters, x)
    for net, one in zip(nets, found, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), net(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_compiled_modules_in_both_modes() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5)).eval()
    x, f = torch.ones(4, 2), torch.compile(lambda x: net(x).sum())
    f(x).backward()
    assert net[0].bias.grad.tolist() == [4.0] * 3
    with torch.no_grad():
        np.testing.assert_allclose(f(x).item(), net(x).sum().item(), rtol=1e-6)
        net.train()
        assert f(x).item() != f(x).item()


def test_functions_of_values_by_pytorchs_names() -> None:
    net = Net().eval()
    parameters = {name: value.detach() * 2 for name, value in net.named_parameters()}
    buffers = {name: value.detach() + 1 for name, value in net.named_buffers()}
    x = torch.randn(4, 2)
    before = net(x).detach().numpy()
    found = torch.func.functional_call(net, (parameters, buffers), (x,))
    np.testing.assert_array_equal(net(x).detach().numpy(), before)
    other = Net().eval()
    other.load_state_dict({**parameters, **{name: buffers[name] for name in net.state_dict() if name in buffers}})
    np.testing.assert_allclose(found.detach().numpy(), other(x).detach().numpy(), rtol=1e-5)


def test_compiled_functions_remember_parameters_that_are_leaves():
    w = nb.Parameter(nb.Tensor(np.array([2.0])), name="w").requires_grad_()
    total = nb.jit(lambda x: (w * w * x).sum())
    for _ in range(2):
        total(nb.Tensor(np.array([3.0]))).backward()
    np.testing.assert_allclose(w.grad.asnumpy(), [2 * 2 * 2.0 * 3.0], rtol=1e-12, atol=1e-14)
    with nb.no_grad():
        assert not total(nb.Tensor(np.array([3.0]))).requires_grad
