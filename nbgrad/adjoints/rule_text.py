"""The reverse kernel as a file that people keep: the kernel's derivative, and a rule for `nb.primitive` that calls it.

In: a specialization. Out: `RuleText`. Called by kernel.py.
"""

from __future__ import annotations

from .cotangents import bar
from .specializations import Specialization


class RuleText:
    """The reverse kernel as text.

    Attributes
    ----------
    source : str
        A file of Python: the reverse kernel, and `<name>_rule(*inputs, *outputs, *cotangents, *gradients)`, which
        `nb.primitive(..., vjp=)` takes.
    """

    def __init__(self, spec: Specialization) -> None:
        self.spec = spec

    def __repr__(self) -> str:
        return self.source

    @property
    def source(self) -> str:
        """The text."""
        spec, form = self.spec, self.spec.form
        derived, adjoint = spec.reverse(spec.differentiable_inputs)
        title = form.name.strip("_<>")
        wanted = spec.differentiable_inputs
        shown = {output: output if isinstance(output, str) else f"result_{output}" for output in spec.outputs}
        given = [*spec.inputs, *[f"{shown[o]}_after" if isinstance(o, str) else shown[o] for o in spec.outputs]]
        seeds = {output: f"{shown[output]}_cotangent" for output in spec.float_outputs}
        gradients = {name: f"{name}_gradient" for name in wanted}
        lines = [f"def {title}_rule({', '.join([*given, *seeds.values(), *gradients.values()])}):"]
        bars: list[str] = []
        for name in adjoint.arrays:
            target = gradients.get(name, bar(name))
            if bar(name) in derived.filled:
                if name not in gradients:
                    lines.append(f"    {target} = np.empty_like({name})")
            elif name in gradients:
                lines.append(f"    {target}[...] = {seeds.get(name, '0.0')}")
            elif name in seeds:
                lines.append(f"    {target} = {seeds[name]}.copy()")
            else:
                lines.append(f"    {target} = np.zeros_like({name})")
            bars.append(target)
        for name in wanted:
            if name in form.ranks and name not in adjoint.arrays:
                lines.append(f"    {gradients[name]}[...] = 0.0")
        arguments: list[str] = []
        for name in form.parameters:
            if name in spec.left_out:
                arguments.append(f"np.zeros_like({name}_after)")
            else:
                arguments.append(name if name in form.ranks else f"{name}[()]")
        for output in adjoint.seeds:
            ndim = getattr(form.results[output], "ndim", 0)
            arguments.append(seeds[output] if ndim else f"{seeds[output]}[()]")
        seeds_from = len(form.parameters)
        call = f"{derived.name}({', '.join([*arguments[:seeds_from], *bars, *arguments[seeds_from:]])})"
        if adjoint.numbers:
            lines.append(f"    numbers = {call}")
            lines += [f"    {gradients[name]}[...] = numbers[{k}]" for k, name in enumerate(adjoint.numbers)]
        else:
            lines.append(f"    {call}")
        head = f'"""The reverse kernel of {form.name}(), written by nbgrad."""'
        imports = f"import math\n\nimport numpy as np\nfrom numba import njit{', prange' if derived.parts else ''}"
        return f"{head}\n\n{imports}\n\n\n{derived.source}\n\n" + "\n".join(lines) + "\n"
