"""The time of tasks of tasks.py: what several modules of the suite have in common.

In: names in `params`. Out: `time_call` for asv. The class is abstract, which keeps asv from taking it for a benchmark.
`least` is the processor time of any call; kernels.py and kernels_beside.py use it.
"""

import abc
import time

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


def least(call, budget=0.3):
    """The least processor time of a call within about so many seconds; short calls are timed many at once."""
    call()  # the first may compile
    count, best, end = 1, float("inf"), time.process_time() + budget
    while best == float("inf") or time.process_time() < end:
        start = time.process_time()
        for _ in range(count):
            call()
        seconds = time.process_time() - start
        if seconds < 1e-3:
            count *= 4
            continue
        best = min(best, seconds / count)
    return best
