"""Gathers are reads, and scatter-adds are writes, of the loops that use them; sorting."""

from . import measured
from .tasks import Task

FORMS = {
    "rows": lambda xp, table, k: xp.sum(table[k] ** 2),
    "columns": lambda xp, table, k: xp.sum(table[:, k % 64] ** 2),
    "elements": lambda xp, table, k: xp.sum(table[k, k % 64] ** 2),
    "take_along_axis": lambda xp, table, k: xp.sum(xp.take_along_axis(table, k[:, None] % 64, axis=1) ** 2),
}


class Tasks(measured.Measured):
    """Bundle adjustment: cameras and points are gathered, their gradients scattered."""

    params = ("bundle",)


class Gathers(measured.Beside):
    """From a table of 1000 rows of 64: values, and the gradient of the table."""

    params = tuple(FORMS)
    param_names = ("what",)

    def task(self, what):
        return Task("", FORMS[what], lambda rng: (rng.standard_normal((1000, 64)), rng.integers(0, 1000, 1000)))

    def time_value_and_grad(self, what, library):
        self.call()


class Sorting(measured.Beside):
    """The sum of the hundred largest of many numbers, and its gradient."""

    def task(self):
        return Task("", lambda xp, x: xp.sum(xp.sort(x)[-100:] ** 2), lambda rng: (rng.random(100_000),))

    def time_value_and_grad(self, library):
        self.call()
