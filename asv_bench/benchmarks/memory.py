"""Memory: the peak of a process that computes a task, and the arrays that a plan keeps between its loops."""

import subprocess
import sys
from pathlib import Path

from .libraries import NbGrad
from .tasks import TASKS

GROWTH = """
import sys
from pathlib import Path
from benchmarks.libraries import NbGrad
from benchmarks.tasks import TASKS

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

task = TASKS[sys.argv[1]]
function, inputs = NbGrad().function(task), task.arrays()
before = peak()
for _ in range(3):
    function(*inputs)
print(round((peak() - before) / 1024, 1))
"""


class Tasks:
    """Each task; the process has Python, NumPy, nbgrad and the inputs in it, too."""

    params = tuple(TASKS)
    param_names = ("task",)
    timeout = 300

    def setup(self, task):
        self.inputs = TASKS[task].arrays()
        self.function = NbGrad().function(TASKS[task])
        self.function(*self.inputs)

    def peakmem_call(self, task):
        self.function(*self.inputs)

    def track_intermediate_bytes(self, task):
        """All intermediate arrays of a call; they share one arena."""
        return self.function.programs()[0].plan.arena_bytes

    def track_megabytes_beside_inputs(self, task):
        """What a fresh process grows by when it computes the task, without its inputs."""
        command = [sys.executable, "-c", GROWTH, task]
        folder = Path(__file__).resolve().parents[1]
        return float(subprocess.check_output(command, cwd=folder, text=True))

    track_intermediate_bytes.unit, track_megabytes_beside_inputs.unit = "bytes", "MB"
