"""Python loops that are recorded whole: many small steps, where what happens between operations dominates."""

from . import measured


class Tasks(measured.Measured):
    """1000 steps of Runge and Kutta on two numbers, and an LSTM of 50 steps."""

    params = ("ode", "lstm")
