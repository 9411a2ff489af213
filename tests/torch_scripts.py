"""Training scripts as users of PyTorch write them: networks of several kinds.

In: PyTorch, or `nbgrad.mint.torch_names`. Out: losses, and the names and values of Parameters. Called by
test_torch_scripts.py and, with PyTorch itself, by recorded/record_torch_scripts.py.
"""

from __future__ import annotations

import math

import numpy as np


def data(torch, *shape, seed=0):
    """Normal numbers, the same for both."""
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape))


def init(torch, model, seed=1, scale=0.3):
    """A module with other values to begin with, the same for both."""
    draws = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.tensor(draws.standard_normal(tuple(p.shape)) * scale))
    return model


def params(model):
    """Names and values of Parameters."""
    return [(n, p.detach().numpy()) for n, p in model.named_parameters()]


SCRIPTS = {}


def script(f):
    """Add a script to the table."""
    SCRIPTS[f.__name__] = f
    return f


@script
def mlp(torch):
    nn = torch.nn
    net = init(torch, nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 3)))
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2, weight_decay=0.1)
    sch = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10)
    x = data(torch, 32, 4)
    y = torch.tensor(np.random.default_rng(3).integers(0, 3, 32))
    losses = []
    for _ in range(10):
        opt.zero_grad()
        loss = nn.CrossEntropyLoss(label_smoothing=0.1)(net(x), y)
        loss.backward()
        g = torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        opt.step()
        sch.step()
        losses.append(loss.item())
        losses.append(float(g))
        losses.append(sch.get_last_lr()[0])
    return losses, params(net)


@script
def cnn(torch):
    nn = torch.nn
    F = nn.functional

    class Block(nn.Module):
        def __init__(self, i, o, stride=1):
            super().__init__()
            self.conv1 = nn.Conv2d(i, o, 3, stride=stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(o)
            self.conv2 = nn.Conv2d(o, o, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(o)
            self.short = nn.Sequential()
            if stride != 1 or i != o:
                self.short = nn.Sequential(nn.Conv2d(i, o, 1, stride=stride, bias=False), nn.BatchNorm2d(o))

        def forward(self, x):
            out = F.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            out += self.short(x)
            return F.relu(out)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 4, 3, padding=1)
            self.layers = nn.Sequential(*[Block(4, 4), Block(4, 8, 2)])
            self.pool = nn.AdaptiveAvgPool2d((1, 1))
            self.fc = nn.Linear(8, 5)

        def forward(self, x):
            x = self.layers(F.max_pool2d(self.stem(x), 2))
            x = self.pool(x)
            x = torch.flatten(x, 1)
            return self.fc(x)

    net = init(torch, Net())
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3, nesterov=True)
    sch = torch.optim.lr_scheduler.StepLR(opt, 3, 0.5)
    x = data(torch, 6, 3, 8, 8)
    y = torch.tensor([0, 1, 2, 3, 4, 0])
    losses = []
    for _ in range(8):
        net.train()
        out = net(x)
        loss = F.cross_entropy(out, y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sch.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        losses.append(net(x).sum().item())
    losses.append((net(x).argmax(dim=1) == y).float().mean().item())
    return losses, params(net) + [(n, b.numpy()) for n, b in net.named_buffers() if "num_" not in n]


def rnn_(kind):
    def f(torch):
        nn = torch.nn

        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.emb = nn.Embedding(10, 6, padding_idx=0)
                self.rnn = getattr(nn, kind)(6, 5, num_layers=2, batch_first=True, bidirectional=True)
                self.out = nn.Linear(10, 4)

            def forward(self, t, lengths):
                e = self.emb(t)
                p = nn.utils.rnn.pack_padded_sequence(e, lengths, batch_first=True, enforce_sorted=False)
                o, h = self.rnn(p)
                o, _one = nn.utils.rnn.pad_packed_sequence(o, batch_first=True)
                h = h[0] if isinstance(h, tuple) else h
                return self.out(o).mean(dim=1) + self.out(torch.cat([h[-2], h[-1]], dim=-1))

        m = init(torch, M())
        opt = torch.optim.RMSprop(m.parameters(), lr=1e-2, momentum=0.5, centered=True)
        t = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 0, 0, 0], [8, 9, 1, 2, 0]])
        y = torch.tensor([0, 3, 1])
        losses = []
        for _ in range(6):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(m(t, torch.tensor([5, 2, 4])), y)
            loss.backward()
            opt.step()
            losses.append(loss.item())
        return losses, params(m)

    return f


for k in ("RNN", "LSTM", "GRU"):
    SCRIPTS["rnn_" + k] = rnn_(k)


@script
def transformer(torch):
    nn = torch.nn

    class PE(nn.Module):
        def __init__(self, d, n=20):
            super().__init__()
            pos = torch.arange(n).unsqueeze(1)
            div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
            pe = torch.zeros(1, n, d)
            pe[0, :, 0::2] = torch.sin(pos * div)
            pe[0, :, 1::2] = torch.cos(pos * div)
            self.register_buffer("pe", pe)

        def forward(self, x):
            return x + self.pe[:, : x.size(1)]

    class LM(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(11, 8)
            self.pe = PE(8)
            layer = nn.TransformerEncoderLayer(
                d_model=8,
                nhead=2,
                dim_feedforward=16,
                dropout=0.0,
                batch_first=True,
                activation="gelu",
                norm_first=True,
            )
            self.enc = nn.TransformerEncoder(layer, num_layers=2, norm=nn.LayerNorm(8)) if True else None
            self.head = nn.Linear(8, 11, bias=False)
            self.head.weight = self.emb.weight

        def forward(self, t):
            mask = nn.Transformer.generate_square_subsequent_mask(t.size(1))
            x = self.enc(self.pe(self.emb(t) * math.sqrt(8)), mask=mask, is_causal=True)
            return self.head(x)

    m = init(torch, LM())
    assert len(list(m.parameters())) == len({id(p) for p in m.parameters()})
    opt = torch.optim.Adam(m.parameters(), lr=1e-2, betas=(0.9, 0.98), eps=1e-9)
    sch = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min((s + 1) ** -0.5, (s + 1) * 3**-1.5))
    t = torch.tensor(np.random.default_rng(5).integers(0, 11, (4, 7)))
    losses = []
    for _ in range(5):
        logits = m(t[:, :-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, 11), t[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        sch.step()
        losses.append(loss.item())
    return losses, params(m)


@script
def transformer_full(torch):
    nn = torch.nn
    m = init(
        torch,
        nn.Transformer(
            d_model=8,
            nhead=2,
            num_encoder_layers=1,
            num_decoder_layers=2,
            dim_feedforward=16,
            dropout=0.0,
            batch_first=True,
        ),
    )
    m.train()
    src, tgt = data(torch, 2, 5, 8), data(torch, 2, 4, 8, seed=2)
    mask = m.generate_square_subsequent_mask(4)
    pad = torch.tensor([[False] * 5, [False, False, False, True, True]])
    opt = torch.optim.Adagrad(m.parameters(), lr=0.05)
    losses = []
    for _ in range(4):
        out = m(src, tgt, tgt_mask=mask, src_key_padding_mask=pad, memory_key_padding_mask=pad)
        loss = (out**2 * torch.arange(1, 9)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses, params(m)


@script
def vae(torch):
    nn = torch.nn
    F = nn.functional

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.enc = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
            self.mu = nn.Linear(8, 2)
            self.lv = nn.Linear(8, 2)
            self.dec = nn.Sequential(nn.Linear(2, 8), nn.ReLU(inplace=True), nn.Linear(8, 6), nn.Sigmoid())

        def reparam(self, mu, lv, eps):
            std = torch.exp(0.5 * lv)
            return mu + eps * std

        def forward(self, x, eps):
            h = self.enc(x)
            mu, lv = self.mu(h), self.lv(h)
            return self.dec(self.reparam(mu, lv, eps)), mu, lv

    m = init(torch, VAE())
    opt = torch.optim.Adam(m.parameters(), 1e-2)
    x = torch.sigmoid(data(torch, 12, 6))
    losses = []
    for i in range(6):
        r, mu, lv = m(x, data(torch, 12, 2, seed=i))
        bce = F.binary_cross_entropy(r, x, reduction="sum")
        kld = -0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())
        loss = bce + kld
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    N = torch.distributions
    q = N.Normal(mu, torch.exp(0.5 * lv))
    p = N.Normal(torch.zeros_like(mu), torch.ones_like(mu))
    losses.append(N.kl_divergence(q, p).sum().item())
    losses.append(N.Independent(q, 1).log_prob(mu * 0.5).sum().item())
    return losses, params(m)


@script
def gan(torch):
    nn = torch.nn
    G = init(torch, nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.BatchNorm1d(8), nn.Linear(8, 3), nn.Tanh()))
    D = init(torch, nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1)), 2)
    og = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.999))
    od = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.999))
    crit = nn.BCEWithLogitsLoss()
    losses = []
    real = data(torch, 8, 3)
    for i in range(6):
        z = data(torch, 8, 2, seed=i)
        D.zero_grad()
        lr_ = crit(D(real), torch.ones(8, 1))
        lr_.backward()
        fake = G(z)
        lf = crit(D(fake.detach()), torch.zeros(8, 1))
        lf.backward()
        od.step()
        G.zero_grad()
        lg = crit(D(fake), torch.ones(8, 1))
        lg.backward()
        og.step()
        losses += [lr_.item(), lf.item(), lg.item()]
    return losses, params(G) + params(D)


@script
def wgan_gp(torch):
    nn = torch.nn
    D = init(torch, nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)))
    opt = torch.optim.NAdam(D.parameters(), lr=1e-2)
    losses = []
    for i in range(5):
        real, fake = data(torch, 6, 3, seed=i), data(torch, 6, 3, seed=i + 100)
        a = torch.sigmoid(data(torch, 6, 1, seed=i + 50))
        inter = (a * real + (1 - a) * fake).requires_grad_(True)
        out = D(inter)
        g = (
            torch.autograd.grad(
                outputs=out,
                inputs=inter,
                grad_outputs=torch.ones_like(out),
                create_graph=True,
                retain_graph=True,
                only_inputs=True,
            )[0]
            if True
            else None
        )
        gp = ((g.view(g.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()
        loss = D(fake).mean() - D(real).mean() + 10 * gp
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses, params(D)


@script
def pinn(torch):
    nn = torch.nn

    class P(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(2, 10), nn.Linear(10, 10), nn.Linear(10, 1)])
            self.nu = nn.Parameter(torch.tensor(0.1))

        def forward(self, x, t):
            h = torch.cat([x, t], dim=1)
            for one in self.layers[:-1]:
                h = torch.tanh(one(h))
            return self.layers[-1](h)

    m = init(torch, P())
    opt = torch.optim.Adam([{"params": m.layers.parameters()}, {"params": [m.nu], "lr": 1e-1}], lr=1e-2)
    losses = []
    x = data(torch, 15, 1).requires_grad_()
    t = data(torch, 15, 1, seed=4).requires_grad_()
    for _ in range(4):
        u = m(x, t)
        ux, ut = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
        uxx = torch.autograd.grad(ux, x, grad_outputs=torch.ones_like(ux), create_graph=True)[0]
        res = ut + u * ux - m.nu * uxx
        loss = torch.mean(res**2) + ((u - torch.sin(x.detach())) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    lb = torch.optim.LBFGS(m.parameters(), lr=0.5, max_iter=6, history_size=4, line_search_fn="strong_wolfe")

    def closure():
        lb.zero_grad()
        u = m(x, t)
        ux, ut = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
        uxx = torch.autograd.grad(ux.sum(), x, create_graph=True)[0]
        loss = ((ut + u * ux - m.nu * uxx) ** 2).mean()
        loss.backward()
        return loss

    for _ in range(2):
        losses.append(lb.step(closure).item())
    lb2 = torch.optim.LBFGS(m.parameters(), lr=0.1, max_iter=5)
    for _ in range(2):
        losses.append(
            lb2.step(
                lambda: [lb2.zero_grad(), (found := ((m(x, t) - torch.sin(x)) ** 2).mean()).backward(), found][2]
            ).item()
        )
    return losses, params(m)


@script
def maml(torch):
    nn = torch.nn
    F = nn.functional
    m = init(torch, nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)))
    opt = torch.optim.SGD(m.parameters(), lr=1e-2)
    losses = []
    for it in range(3):
        opt.zero_grad()
        total = 0.0
        for task in range(3):
            x = data(torch, 5, 1, seed=task + 10 * it)
            y = torch.sin(x + task)
            w = dict(m.named_parameters())
            for _ in range(2):
                loss = F.mse_loss(torch.func.functional_call(m, w, (x,)), y)
                g = torch.autograd.grad(loss, list(w.values()), create_graph=True)
                w = {k: p - 0.1 * gi for (k, p), gi in zip(w.items(), g, strict=False)}
            out = F.mse_loss(torch.func.functional_call(m, w, (x + 0.3,)), torch.sin(x + 0.3 + task))
            total = total + out
        (total / 3).backward()
        opt.step()
        losses.append(float(total))
    return losses, params(m)
