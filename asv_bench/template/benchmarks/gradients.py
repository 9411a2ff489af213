"""What asv measures: a class of functions, and their arguments."""

import numpy as np

from nbgrad.bench import Gradients

from .models import misfit, roughness


class Models(Gradients):
    """Each of our functions, with other libraries as further lines of the plots."""

    functions = {"misfit": misfit, "roughness": roughness}
    libraries = ("nbgrad", "differences", "autograd", "jax")  # those that are not installed are left out

    def arguments(self, function):
        rng = np.random.default_rng(0)
        if function == "misfit":
            days = np.linspace(0.0, 30.0, 200)
            return np.array([900.0, 0.4, 12.0]), days, rng.uniform(50.0, 1000.0, days.size)
        return rng.standard_normal(500), rng.standard_normal(500), 10.0
