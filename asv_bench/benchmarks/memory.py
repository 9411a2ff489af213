"""Memory: the peak of a process that computes a task, and the arrays that a plan keeps between its loops."""

from pathlib import Path

from .libraries import NbGrad
from .measured import Beside, fresh_process
from .tasks import TASKS

GROWTH = """
import sys
from pathlib import Path
from benchmarks.libraries import LIBRARIES

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

call, _ = LIBRARIES[sys.argv[2]]().prepare(sys.argv[1])
before = peak()
for _ in range(3):
    call()
print(round((peak() - before) / 1024, 1))
"""


class Tasks(Beside):
    """Each task; the process has Python, NumPy, the library and the inputs in it, too."""

    params = tuple(TASKS)
    param_names = ("task",)

    def task(self, name):
        return name

    def peakmem_call(self, task, library):
        self.call()

    def track_megabytes_beside_inputs(self, task, library):
        """What a fresh process grows by when it computes the task, without its inputs."""
        return float(fresh_process("-c", GROWTH, task, library, cwd=Path(__file__).resolve().parents[1]))

    track_megabytes_beside_inputs.unit = "MB"


class Plans:
    """All intermediate arrays of a call of nbgrad; they share one arena."""

    params = tuple(TASKS)
    param_names = ("task",)
    timeout = 300

    def setup(self, task):
        self.function = NbGrad().function(TASKS[task])
        self.function(*TASKS[task].arrays())

    def track_intermediate_bytes(self, task):
        return self.function.programs()[0].plan.arena_bytes

    track_intermediate_bytes.unit = "bytes"
