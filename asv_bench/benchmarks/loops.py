"""Loops: Python's, where what happens between operations dominates, and long ones within memory budgets."""

from . import measured
from .libraries import NbGrad


class Tasks(measured.Measured):
    """1000 steps of Runge and Kutta on two numbers, and an LSTM of 50 steps."""

    params = ("ode", "lstm")


class Budgets:
    """The gradient of 1,000,000 turns on one number within a budget; loops_in_memory.py has the ratios."""

    params = ("none", "1 MB", "5 kB")
    param_names = ("budget",)
    timeout = 300

    def setup(self, budget):
        nb = NbGrad().nb

        def program(rate):
            return nb.scan(lambda x, _: (x + 1e-6 * rate * x * (1 - x), None), 0.3, length=1_000_000)[0]

        self.gradient = nb.jit(nb.grad(program), memory=None if budget == "none" else budget)
        self.gradient(1.1)

    def time_gradient(self, budget):
        self.gradient(1.1)

    def track_planned_bytes(self, budget):
        return self.gradient.programs()[0].plan.arena_bytes
