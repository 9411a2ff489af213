"""nbgrad beside PyTorch, JAX and MindSpore on networks: the same work, in one run, in turns; medians and ratios.

    python network_ratios.py [--torch-python P] [--jax-python P] [--mindspore-python P] [--rounds N] [--only TASK ...]
                             [--readme FILE]

In: an interpreter for each peer that shall take part. Out: a table of times and of memory, and with --readme the same
table between the markers of a README. Tasks:
    mlp       value and gradients of all weights, 784-256-128-10, batch 128, float32
    gradnet   the gradient of f(x) = w x + b by a Cell inside a Cell, compiled, one element
    cell      an un-jitted gradient of a Cell of 20 elementwise operations, 8 float32
Every measurement runs in a process of its own. Peers run as their users run them: PyTorch eager, JAX with jit,
MindSpore in PYNATIVE mode ("mindspore") and with jit ("mindspore-jit").
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

TASKS = {
    "mlp": ["nbgrad", "torch", "jax", "mindspore", "mindspore-jit"],
    "gradnet": ["nbgrad", "mindspore", "mindspore-jit"],
    "cell": ["nbgrad", "torch", "mindspore"],
}
TEXTS = {
    "mlp": "value and gradients of all weights of an MLP 784-256-128-10, batch 128, float32, compiled",
    "gradnet": "a Cell whose construct is the gradient of a Cell, one element, compiled",
    "cell": "not compiled: the gradient of a Cell of 20 operations, 8 float32",
}
SIZES = [(784, 256), (256, 128), (128, 10)]


def mlp_inputs():
    """Weights, biases, a batch and its labels."""
    rng = np.random.default_rng(0)
    weights = [(rng.standard_normal((m, n)) / np.sqrt(n)).astype(np.float32) for n, m in SIZES]
    biases = [np.zeros(m, np.float32) for _, m in SIZES]
    return weights, biases, rng.standard_normal((128, 784)).astype(np.float32), rng.integers(0, 10, 128)


def mlp_nbgrad():
    import nbgrad as nb
    import nbgrad.nn as nn

    weights, biases, x, y = mlp_inputs()
    net, loss_fn = mindspore_like(nn, nb, weights, biases)
    gradient = nb.jit(nb.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params()))
    x, y = nb.Tensor(x), nb.Tensor(y)
    return lambda: gradient(x, y)


def mindspore_like(nn, library, weights, biases):
    """The MLP in the interface that nbgrad and MindSpore share."""
    layers = []
    for k, ((n, m), w, b) in enumerate(zip(SIZES, weights, biases, strict=True)):
        layers.append(nn.Dense(n, m, weight_init=library.Tensor(w), bias_init=library.Tensor(b)))
        if k < 2:
            layers.append(nn.ReLU())
    return nn.SequentialCell(layers), nn.CrossEntropyLoss()


def mlp_mindspore(jit=False):
    import mindspore as ms
    from mindspore import nn

    weights, biases, x, y = mlp_inputs()
    net, loss_fn = mindspore_like(nn, ms, weights, biases)

    def forward(x, y):
        return loss_fn(net(x), y)

    gradient = ms.value_and_grad(forward, None, net.trainable_params())
    if jit:
        gradient = ms.jit(gradient)
    x, y = ms.Tensor(x), ms.Tensor(y.astype(np.int32))

    def call():
        value, gradients = gradient(x, y)
        return value.asnumpy(), [g.asnumpy() for g in gradients]

    return call


def mlp_torch():
    import torch

    torch.set_num_threads(os.cpu_count() or 1)
    weights, biases, x, y = mlp_inputs()
    layers = []
    for k, ((n, m), w, b) in enumerate(zip(SIZES, weights, biases, strict=True)):
        layer = torch.nn.Linear(n, m)
        layer.weight.data, layer.bias.data = torch.from_numpy(w), torch.from_numpy(b)
        layers += [layer, torch.nn.ReLU()] if k < 2 else [layer]
    net, loss_fn = torch.nn.Sequential(*layers), torch.nn.CrossEntropyLoss()
    parameters = list(net.parameters())
    x, y = torch.from_numpy(x), torch.from_numpy(y)

    def call():
        value = loss_fn(net(x), y)
        return value, torch.autograd.grad(value, parameters)

    return call


def mlp_jax():
    import jax
    import jax.numpy as jnp

    weights, biases, x, y = mlp_inputs()
    parameters = [(jnp.asarray(w), jnp.asarray(b)) for w, b in zip(weights, biases, strict=True)]
    x, y = jnp.asarray(x), jnp.asarray(y)

    def loss(parameters, x, y):
        for k, (w, b) in enumerate(parameters):
            x = x @ w.T + b
            x = jax.nn.relu(x) if k < 2 else x
        return -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1).mean()

    gradient = jax.jit(jax.value_and_grad(loss))
    return lambda: jax.block_until_ready(gradient(parameters, x, y))


def gradnet(library, nn, compile_):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = library.Parameter(library.Tensor(np.array([6.0], np.float32)), name="w")
            self.b = library.Parameter(library.Tensor(np.array([1.0], np.float32)), name="b")

        def construct(self, x):
            return self.w * x + self.b

    class GradNet(nn.Cell):
        def __init__(self, net):
            super().__init__()
            self.net = net
            self.grad_op = library.ops.GradOperation()

        def construct(self, x):
            return self.grad_op(self.net)(x)

    x = library.Tensor(np.array([100.0], np.float32))
    call = compile_(GradNet(Net()))
    return lambda: call(x).asnumpy()


def gradnet_nbgrad():
    import nbgrad as nb

    return gradnet(nb, nb.nn, nb.jit)


def gradnet_mindspore(jit=False):
    import mindspore as ms

    if jit:
        ms.set_context(mode=ms.GRAPH_MODE)
    return gradnet(ms, ms.nn, lambda net: net)


def cell(library, nn, ops):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = library.Parameter(library.Tensor(np.linspace(0.5, 1.5, 8).astype(np.float32)), name="w")

        def construct(self, x):
            for _ in range(5):
                x = ops.sin(x) * self.w
                x = x + 0.5
                x = ops.tanh(x)
            return x

    gradient = library.grad(Net())
    x = library.Tensor(np.linspace(0.0, 1.0, 8).astype(np.float32))
    return lambda: gradient(x).asnumpy()


def cell_nbgrad():
    import nbgrad as nb

    return cell(nb, nb.nn, nb.ops)


def cell_mindspore():
    import mindspore as ms

    return cell(ms, ms.nn, ms.ops)


def cell_torch():
    import torch

    w = torch.linspace(0.5, 1.5, 8, requires_grad=True)
    start = torch.linspace(0.0, 1.0, 8)

    def call():
        x = first = start.detach().requires_grad_()
        for _ in range(5):
            x = torch.tanh(torch.sin(x) * w + 0.5)
        return torch.autograd.grad(x.sum(), first)[0].numpy()

    return call


def worker(task, library):
    """Seconds of one call (a median), and the growth of the peak of resident memory since the imports, in MB."""
    name, _, mode = library.partition("-")
    setup = globals()[f"{task}_{name}"]
    call = setup(jit=True) if mode else setup()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(30):
        call()
    count, samples = (20 if task == "mlp" else 100), []
    for _ in range(15):
        start = time.perf_counter()
        for _ in range(count):
            call()
        samples.append((time.perf_counter() - start) / count)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return statistics.median(samples), (after - before) / 1024


def main():
    """Run the tasks in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for peer in ("torch", "jax", "mindspore"):
        parser.add_argument(f"--{peer}-python", help=f"an interpreter that has {peer}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(TASKS))
    parser.add_argument("--readme", help="a file with the markers <!-- networks --> and <!-- /networks -->")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(worker(*options.worker)))
        return
    pythons = {"nbgrad": sys.executable}
    for peer in ("torch", "jax", "mindspore"):
        given = getattr(options, f"{peer}_python")
        if given:
            pythons[peer] = given
    rows = ["| task | library | time of a call | library / nbgrad | peak memory |", "| --- | --- | --- | --- | --- |"]
    for task in options.only:
        libraries = [library for library in TASKS[task] if library.partition("-")[0] in pythons]
        samples = {library: [] for library in libraries}
        for turn in range(options.rounds + 1):
            for library in libraries:
                command = [pythons[library.partition("-")[0]], __file__, "--worker", task, library]
                run = subprocess.run(command, capture_output=True, text=True, check=False)
                if run.returncode:
                    raise SystemExit(f"{library} {task} failed:\n{run.stderr[-2000:]}")
                if turn:
                    samples[library].append(json.loads(run.stdout.splitlines()[-1]))
        times = {library: statistics.median(s[0] for s in samples[library]) for library in libraries}
        for library in libraries:
            memory = statistics.median(s[1] for s in samples[library])
            ratio = times[library] / times["nbgrad"]
            text = TEXTS[task] if library == "nbgrad" else ""
            rows.append(f"| {text} | {library} | {times[library] * 1e6:.3g} us | {ratio:.2f} | {memory:.0f} MB |")
            print(rows[-1], flush=True)
    if options.readme:
        path = Path(options.readme)
        before, rest = path.read_text().split("<!-- networks -->")
        after = rest.split("<!-- /networks -->")[1]
        path.write_text(f"{before}<!-- networks -->\n" + "\n".join(rows) + f"\n<!-- /networks -->{after}")


if __name__ == "__main__":
    main()
