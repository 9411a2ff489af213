"""Further training scripts as users of PyTorch write them: graphs, policies, flows, checkpoints, hooks.

In: PyTorch, or `nbgrad.mint.torch_names`. Out: losses, and the names and values of Parameters. Called by
test_torch_scripts.py and, with PyTorch itself, by recorded/record_torch_scripts.py.
"""

from __future__ import annotations

import copy
import io
import itertools

import numpy as np

from .torch_scripts import data, init, params, script


@script
def gnn(torch):
    nn = torch.nn

    class GCN(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.lin = nn.Linear(i, o, bias=False)
            self.b = nn.Parameter(torch.zeros(o))
            self.att = nn.Parameter(torch.ones(2 * o))

        def forward(self, x, e):
            h = self.lin(x)
            src, dst = e
            deg = torch.zeros(x.size(0)).index_add_(0, dst, torch.ones(e.size(1)))
            n = deg.clamp(min=1).pow(-0.5)
            a = nn.functional.leaky_relu((torch.cat([h[src], h[dst]], dim=-1) * self.att).sum(-1), 0.2)
            a = a.exp()
            den = torch.zeros(x.size(0)).scatter_add(0, dst, a)
            a = a / den[dst]
            out = torch.zeros(x.size(0), h.size(1)).index_add(0, dst, h[src] * (n[src] * n[dst] * a).unsqueeze(-1))
            return out + self.b

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.c1 = GCN(4, 6)
            self.c2 = GCN(6, 3)

        def forward(self, x, e, batch):
            x = torch.relu(self.c1(x, e))
            x = self.c2(x, e)
            p = torch.zeros(2, 3)
            p = p.scatter_add(0, batch[:, None].expand(-1, 3), x)
            mx = torch.full((2, 3), -1e9).scatter_reduce(0, batch[:, None].expand(-1, 3), x, reduce="amax")
            return p + mx

    m = init(torch, Net())
    opt = torch.optim.Adamax(m.parameters(), lr=1e-2)
    x = data(torch, 6, 4)
    e = torch.tensor([[0, 1, 2, 3, 4, 5, 0, 2], [1, 2, 0, 4, 5, 3, 2, 1]])
    b = torch.tensor([0, 0, 0, 1, 1, 1])
    losses = []
    for _ in range(5):
        loss = nn.functional.nll_loss(torch.log_softmax(m(x, e, b), dim=1), torch.tensor([0, 2]))
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses, params(m)


@script
def reinforce(torch):
    nn = torch.nn
    D = torch.distributions
    pi = init(torch, nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)))
    v = init(torch, nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), 3)
    opt = torch.optim.Adam(list(pi.parameters()) + list(v.parameters()), lr=1e-2)
    losses = []
    for i in range(4):
        s = data(torch, 10, 4, seed=i)
        a = torch.tensor(np.random.default_rng(i).integers(0, 2, 10))
        R = data(torch, 10, seed=i + 9)
        dist = D.Categorical(logits=pi(s))
        lp = dist.log_prob(a)
        val = v(s).squeeze(-1)
        adv = (R - val).detach()
        adv = (adv - adv.mean()) / (torch.std(adv) + 1e-8)
        old = lp.detach() - 0.1
        ratio = torch.exp(lp - old)
        l1 = ratio * adv
        l2 = torch.clamp(ratio, 0.8, 1.2) * adv
        loss = -torch.min(l1, l2).mean() + 0.5 * nn.functional.smooth_l1_loss(val, R) - 0.01 * dist.entropy().mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(pi.parameters(), 0.05)
        opt.step()
        losses.append(loss.item())
    return losses, params(pi) + params(v)


@script
def accumulate_ema_freeze(torch):
    nn = torch.nn
    m = init(torch, nn.Sequential(nn.Linear(3, 6), nn.LayerNorm(6), nn.SiLU(), nn.Linear(6, 2)))
    for p in m[0].parameters():
        p.requires_grad = False
    ema = copy.deepcopy(m).requires_grad_(False)
    opt = torch.optim.AdamW(filter(lambda p: p.requires_grad, m.parameters()), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    losses = []
    for i in range(8):
        x = data(torch, 4, 3, seed=i)
        with torch.autocast("cpu", enabled=False):
            loss = (m(x) - x[:, :2]).pow(2).mean() / 2
        scaler.scale(loss).backward()
        if (i + 1) % 2 == 0:
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(m.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
            with torch.no_grad():
                for pe, p in zip(ema.parameters(), m.parameters(), strict=False):
                    pe.mul_(0.9).add_(p.data, alpha=0.1)
        if i == 4:
            for p in m[0].parameters():
                p.requires_grad_(True)
            opt.add_param_group({"params": m[0].parameters(), "lr": 1e-3})
        losses.append(loss.item())
    for _k, w in ema.state_dict().items():
        losses.append(w.sum().item())
    return losses, params(m) + params(ema)


@script
def resume(torch):
    nn = torch.nn

    def make():
        m = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 1))
        o = torch.optim.Adam(m.parameters(), lr=0.05, amsgrad=True)
        s = torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=12)
        return m, o, s

    m, o, s = make()
    init(torch, m)
    losses = []

    def step(m, o, s, i):
        x = data(torch, 6, 3, seed=i)
        o.zero_grad()
        one = nn.functional.huber_loss(m(x), x.sum(1, keepdim=True) * 3)
        one.backward()
        o.step()
        s.step()
        losses.append(one.item())

    for i in range(4):
        step(m, o, s, i)
    f = io.BytesIO()
    torch.save({"m": m.state_dict(), "o": o.state_dict(), "s": s.state_dict(), "e": 4}, f)
    f.seek(0)
    best = copy.deepcopy(m.state_dict())
    c = torch.load(f, weights_only=False)
    m2, o2, s2 = make()
    r = m2.load_state_dict(c["m"])
    losses.append(float(len(r.missing_keys)))
    o2.load_state_dict(c["o"])
    s2.load_state_dict(c["s"])
    for i in range(4, 8):
        step(m2, o2, s2, i)
    for i in range(4, 8):
        step(m, o, s, i)
    m.load_state_dict(best)
    losses.append(sum(p.sum().item() for p in m.parameters()))
    return losses, params(m2) + params(m)


@script
def custom_fn_and_hooks(torch):
    nn = torch.nn

    class Ste(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_backward(x)
            ctx.k = k
            return torch.sign(x) * k

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (x.abs() < 1).to(g.dtype) * ctx.k, None

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 4)
            self.b = nn.Linear(4, 2)

        def forward(self, x):
            return self.b(Ste.apply(self.a(x), 0.7))

    m = init(torch, M())
    acts = {}
    grads = []
    h = m.a.register_forward_hook(lambda mod, i, o: acts.__setitem__("a", o.detach()))
    h2 = m.b.register_full_backward_hook(lambda mod, gi, go: grads.append(go[0].sum().item()))
    m.a.weight.register_hook(lambda g: g * 2)
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    losses = []
    for i in range(3):
        loss = m(data(torch, 4, 3, seed=i)).pow(2).sum()
        m.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        losses.append(acts["a"].sum().item())
    h.remove()
    h2.remove()
    return losses + grads, params(m)


@script
def manual_sgd(torch):
    w = torch.nn.Parameter(data(torch, 3, 2))
    b = torch.zeros(2, requires_grad=True)
    losses = []
    for i in range(4):
        x = data(torch, 5, 3, seed=i)
        loss = ((x @ w + b - 1) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for p in (w, b):
                p -= 0.1 * p.grad
                p.grad.zero_()
        losses.append(loss.item())
    d = w.data
    d -= 0.5
    d *= 2
    losses.append(w.sum().item())
    w.data = w.data.clamp(min=-1.0)
    w.data.add_(1.0)
    losses.append(w.sum().item())
    w.data[0] = 7.0
    losses.append(w.sum().item())
    return losses, [("w", w.detach().numpy()), ("b", b.detach().numpy())]


@script
def flow(torch):
    nn = torch.nn
    D = torch.distributions

    class Coupling(nn.Module):
        def __init__(self, d, mask):
            super().__init__()
            self.register_buffer("mask", mask)
            self.self = nn.Sequential(nn.Linear(d, 6), nn.Tanh(), nn.Linear(6, d))
            self.t = nn.Sequential(nn.Linear(d, 6), nn.Tanh(), nn.Linear(6, d))
            self.scale = nn.Parameter(torch.zeros(d))

        def forward(self, x):
            xm = x * self.mask
            sc = torch.tanh(self.self(xm)) * torch.exp(self.scale) * (1 - self.mask)
            return xm + (1 - self.mask) * (x * sc.exp() + self.t(xm)), sc.sum(dim=1)

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = nn.ModuleList(
                Coupling(4, torch.tensor([1.0, 0, 1, 0] if k % 2 else [0.0, 1, 0, 1])) for k in range(4)
            )
            self.base = D.MultivariateNormal(torch.zeros(4), torch.eye(4))

        def log_prob(self, x):
            ld = torch.zeros(x.shape[0])
            for step in self.steps:
                x, d = step(x)
                ld += d
            return self.base.log_prob(x) + ld

    f = init(torch, Flow())
    opt = torch.optim.RAdam(f.parameters(), lr=1e-2)
    x = data(torch, 20, 4) * 2 + 1
    losses = []
    for _ in range(8):
        loss = -f.log_prob(x).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses, params(f)


@script
def neural_ode(torch):
    nn = torch.nn

    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2, 8), nn.Softplus(), nn.Linear(8, 2))

        def forward(self, t, y):
            return self.net(y**3) + 0.1 * t

    f = init(torch, Field())
    opt = torch.optim.Adadelta(f.parameters(), lr=0.5)
    y0 = torch.tensor([[2.0, 0.0]])
    ts = torch.linspace(0, 1, 9)
    losses = []

    def rk4(f, y, ts):
        out = [y]
        for a, b in itertools.pairwise(ts):
            h = b - a
            k1 = f(a, y)
            k2 = f(a + h / 2, y + h * k1 / 2)
            k3 = f(a + h / 2, y + h * k2 / 2)
            k4 = f(b, y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            out.append(y)
        return torch.stack(out)

    for _ in range(4):
        p = rk4(f, y0, ts)
        loss = torch.mean(torch.abs(p - torch.cos(ts)[:, None, None]))
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses, params(f)


@script
def contrastive(torch):
    nn = torch.nn
    F = nn.functional
    e = init(torch, nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4)))
    opt = torch.optim.Rprop(e.parameters(), lr=1e-2)
    losses = []
    for i in range(4):
        x = data(torch, 6, 5, seed=i)
        z = torch.cat([F.normalize(e(x), dim=-1), F.normalize(e(x + 0.1), dim=-1)])
        sim = z @ z.T / 0.5
        sim = sim.masked_fill(torch.eye(12, dtype=torch.bool), float("-inf"))
        tg = torch.cat([torch.arange(6, 12), torch.arange(0, 6)])
        loss = (
            F.cross_entropy(sim, tg)
            + F.triplet_margin_loss(z[:6], z[6:], torch.roll(z[:6], 1, 0), margin=0.5)
            + F.cosine_embedding_loss(z[:6], z[6:], torch.ones(6))
        )
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses, params(e)


@script
def deepsets_misc(torch):
    nn = torch.nn

    class DS(nn.Module):
        def __init__(self):
            super().__init__()
            self.phi = nn.Sequential(nn.Linear(2, 6), nn.ELU())
            self.rho = nn.ModuleDict({"mean": nn.Linear(6, 1), "max": nn.Linear(6, 1)})
            self.ps = nn.ParameterList([torch.ones(1) * k for k in range(2)])
            self.pd = nn.ParameterDict({"a": nn.Parameter(torch.ones(1))})
            self.bil = nn.Bilinear(6, 6, 1)
            self.mha = nn.MultiheadAttention(6, 2, batch_first=True)
            self.gn = nn.GroupNorm(2, 6)
            self.pr = nn.PReLU(6)

        def forward(self, x):
            h = self.phi(x)
            a, _ = self.mha(h, h, h, need_weights=False)
            h = h + a
            mx = h.max(dim=1).values
            mn = torch.mean(h, 1)
            mn = self.pr(self.gn(mn))
            return (
                self.rho["mean"](mn) * self.ps[0] + self.rho["max"](mx) * self.ps[1] + self.pd["a"] + self.bil(mn, mx)
            )

    m = init(torch, DS())
    opt = torch.optim.Adam(m.parameters(), 1e-2, weight_decay=0.01)
    losses = []
    for i in range(4):
        x = data(torch, 5, 7, 2, seed=i)
        loss = nn.MSELoss()(m(x), x.sum(dim=(1, 2)).unsqueeze(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses, params(m)


@script
def unet1d(torch):
    nn = torch.nn
    F = nn.functional

    class U(nn.Module):
        def __init__(self):
            super().__init__()
            self.d1 = nn.Conv1d(2, 4, 3, padding=1, padding_mode="circular")
            self.d2 = nn.Conv1d(4, 8, 4, stride=2, padding=1)
            self.n = nn.InstanceNorm1d(8, affine=True)
            self.u = nn.ConvTranspose1d(8, 4, 4, stride=2, padding=1)
            self.o = nn.Conv1d(8, 1, 1)
            self.up = nn.Upsample(scale_factor=2, mode="linear", align_corners=False)
            self.m = nn.MaxPool1d(2)

        def forward(self, x):
            a = F.gelu(self.d1(x))
            b = F.silu(self.n(self.d2(a)))
            c = self.u(b) + self.up(self.m(a))
            return self.o(torch.cat((a, c), 1))

    m = init(torch, U())
    nn.utils.weight_norm(m.d2)
    opt = torch.optim.SGD(m.parameters(), 0.05)
    losses = []
    for i in range(4):
        x = data(torch, 3, 2, 8, seed=i)
        loss = F.l1_loss(m(x), x[:, :1])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    v = nn.utils.parameters_to_vector(m.parameters())
    nn.utils.vector_to_parameters(v * 0.5, m.parameters())
    losses.append(v.sum().item())
    losses.append(m(x).sum().item())
    nn.utils.remove_weight_norm(m.d2)
    losses.append(m(x).sum().item())
    return losses, params(m)
