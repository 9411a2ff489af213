"""Benchmarks of a project's own gradients, for a dashboard of asv.

In: functions of arrays, and their arguments. Out: a class that asv runs: times, memory, kernels and errors of each
function's gradient, by nbgrad and by other libraries. Called by users; asv_bench/template is a project that does. asv
itself is not imported.
"""

from .gradient_benchmarks import Gradients as Gradients

__all__ = ["Gradients"]
