"""The time of tasks of tasks.py: what several modules of the suite have in common.

In: names in `params`. Out: `time_call` for asv. The class is abstract, which keeps asv from taking it for a benchmark.
"""

import abc

from .libraries import NbGrad


class Measured(abc.ABC):
    """A compiled derivative, called once before it is timed, so that its memory is there."""

    param_names = ("task",)
    timeout = 300

    @property
    @abc.abstractmethod
    def params(self):
        """Names of tasks."""

    def setup(self, task):
        self.call, _ = NbGrad().prepare(task)
        self.call()

    def time_call(self, task):
        self.call()
