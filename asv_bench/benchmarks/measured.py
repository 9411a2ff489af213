"""One work by several libraries: what the modules of the suite have in common.

In: tasks, and which libraries do them. Out: classes for asv, in which `library` is the last parameter: a series of a
plot each. A library that is not installed, or has no such function, is skipped. The classes are abstract, which keeps
asv from taking them for benchmarks. `least` is the processor time of any call; kernels.py and kernels_beside.py use it.
"""

import abc
import os
import subprocess
import sys
import time
from importlib.util import find_spec

from .libraries import LIBRARIES

PEERS = ("nbgrad", "jax", "torch", "autograd")
MODULES = {"mindspore-jit": "mindspore"}
"""What is imported for a library that has another name."""


def needed(library):
    """Skip a benchmark unless a library is installed."""
    module = MODULES.get(library, library)
    if find_spec(module) is None:
        raise NotImplementedError(f"{module} is not installed")


def fresh_process(*arguments, cwd=None, **environment):
    """The output of a new Python process with the paths of this one, which asv sets in a way of its own."""
    paths = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": paths, **environment}
    return subprocess.check_output([sys.executable, *arguments], env=environment, cwd=cwd, text=True)


def prepared(task, library):
    """A call without arguments that does a task, after a first call."""
    needed(library)
    try:
        if library == "numba":
            from .by_hand import ByHand as Chosen
        else:
            Chosen = LIBRARIES[library]
        call, _ = Chosen().prepare(task)
        call()
    except AttributeError as error:  # autograd and PyTorch lack names of NumPy's
        if library == "nbgrad":
            raise
        raise NotImplementedError(f"{library}: {error}") from error
    return call


class Beside(abc.ABC):
    """A task of a subclass's parameters, by each library, called once before it is timed, so that its memory is there.

    `params` and `param_names` of a subclass are those of the task; `library` comes after them.
    """

    params = ()
    param_names = ()
    libraries = PEERS
    timeout = 300

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        own = vars(cls).get("params", ())
        if not isinstance(own, property):
            several = not own or isinstance(own[0], tuple)
            cls.params = (*(own if several else (own,)), cls.libraries)
            cls.param_names = (*cls.param_names, "library")

    @abc.abstractmethod
    def task(self, *params):
        """The `Task`, or its name in tasks.py."""

    def setup(self, *params):
        self.call = prepared(self.task(*params[:-1]), params[-1])


class Measured(Beside):
    """Tasks of tasks.py by name, and the loops of by_hand.py as the series "numba"."""

    param_names = ("task",)
    libraries = (*PEERS, "numba")

    @property
    @abc.abstractmethod
    def params(self):
        """Names of tasks."""

    def task(self, name):
        return name

    def time_call(self, task, library):
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
