"""Graphs: microseconds of Python for each node of a long one, at two lengths, which must be about equal.

The shapes of graphs are those that loops leave behind. LLVM is left out: the kernels of a long loop are few, and most
are found in the cache.
"""

import time

import numpy as np

import nbgrad as nb
from nbgrad.compiler.fuse import fuse
from nbgrad.graph.differentiate import vjp
from nbgrad.graph.ir import broadcast, literal, placeholder, topological
from nbgrad.graph.simplify import simplify
from nbgrad.graph.trace import recording
from nbgrad.process.gc_pause import RareCollection
from nbgrad.record.tensor import Tensor
from nbgrad.runtime.cpu_plan import plan


def chain(x, turns):
    """Elementwise operations on one array."""
    for _ in range(turns):
        x = np.sin(x) * 0.5 + x / 1.5
    return np.sum(x)


def runge_kutta(x, turns):
    """Small vectors, of which views are read."""

    def slope(y):
        return np.tanh(y) * 0.3 - y * y[::-1]

    for _ in range(turns // 8):
        a = slope(x)
        b = slope(x + 0.005 * a)
        c = slope(x + 0.005 * b)
        x = x + 0.01 / 6 * (a + 2 * b + 2 * c + slope(x + 0.01 * c))
    return np.sum(x)


def recurrence(x, turns):
    """Elements that are read and written."""
    y = nb.numpy.zeros(8)
    for k in range(turns // 2):
        y[k % 8] = x[k % 8] * 0.5 + y[(k + 1) % 8]
    return np.sum(y)


def products(x, turns):
    """Products of small matrices."""
    v = x
    for _ in range(turns):
        v = np.tanh(x @ v)
    return np.sum(v)


GRAPHS = {"chain": (chain, (1000,)), "rk4": (runge_kutta, (2,)), "recurrence": (recurrence, (8,))}
GRAPHS["products"] = (products, (4, 4))


def seconds_by_pass(name, turns):
    """The number of nodes of a function and its gradient, and the CPU time of each pass over them."""
    function, shape = GRAPHS[name]
    x = placeholder(shape, np.dtype(float), np.ones(shape))
    marks = [time.process_time()]
    with recording([x]):
        output = function(Tensor._of(x), turns)._node
    marks.append(time.process_time())
    (slope,) = vjp([output], [broadcast(literal(1, output.dtype), ())], [x])
    marks.append(time.process_time())
    with RareCollection():
        graph = simplify([output, slope])
        marks.append(time.process_time())
        fused = fuse(graph)
        marks.append(time.process_time())
        read = [n for step in fused.steps for n in step.buffers]
        constants = [n for n in dict.fromkeys(read) if n.name == "constant"]
        plan(fused, [x], constants)
        marks.append(time.process_time())
    passes = ("record", "differentiate", "simplify", "fuse", "plan")
    return len(topological([output, slope])), dict(zip(passes, np.diff(marks).tolist(), strict=True))


class EachNode:
    """Microseconds for a node in all passes together."""

    params = (tuple(GRAPHS), (500, 5000))
    param_names = ("graph", "turns")
    timeout = 300

    def setup(self, graph, turns):
        seconds_by_pass(graph, 16)

    def track_microseconds(self, graph, turns):
        count, seconds = seconds_by_pass(graph, turns)
        return 1e6 * sum(seconds.values()) / count

    track_microseconds.unit = "us"


class AskedTurns:
    """A loop that asks for a truth value at each turn: microseconds for a turn."""

    params = (200, 1000)
    param_names = ("turns",)
    timeout = 300

    def setup(self, turns):
        def fall(x):
            while x[1] > 0.0:
                x = x - np.array([0.0, 1.0 / turns])
            return np.sum(x * x)

        self.gradient = nb.grad(fall)
        self.gradient(np.ones(2))

    def track_microseconds_for_a_turn(self, turns):
        start = time.process_time()
        self.gradient(np.ones(2))
        return 1e6 * (time.process_time() - start) / turns

    track_microseconds_for_a_turn.unit = "us"
