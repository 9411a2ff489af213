"""`explain` for programs on devices: kernels as loops, launches, and where arrays live.

In: a device program, and the first lines that explain.py wrote. Out: text. Called by explain.py.
"""

from __future__ import annotations

from typing import Any

from ..compiler.loops import Loop, show
from ..graph.ir import Node
from ..graph.show import show as show_graph


def explain_device(program: Any, head: list[str]) -> str:
    """The graph, the kernels and the memory of a function on a device, as text.

    Parameters
    ----------
    program : DeviceProgram
    head : list of str
        The first lines.
    """
    plan = program.plan
    lines = [*head, "", show_graph(program.graph), "", *_kernels(plan)]
    lines.append(
        f"memory: scratch {plan.bytes:,} bytes for all intermediates, {len(plan.bases)} inputs and constants, "
        f"{len(program.outputs)} outputs"
    )
    return "\n".join(lines)


def _kernels(plan: Any) -> list[str]:
    """The lines of a plan's kernels, and of those of the bodies of loops."""
    from ..device.kernels.launches import Fill, Launch
    from ..runtime.device_turns import DeviceTurns

    lines: list[str] = []
    for number, unit in enumerate(plan.units):
        together = f" ({len(unit)} loops over the same rows, as one kernel)" if len(unit) > 1 else ""
        lines.append(f"kernel {number}{together}:")
        for kernel in unit:
            lines.append(_kernel(kernel, plan))
        for planned in plan.actions:
            if planned.unit != number:
                continue
            action = planned.action
            if isinstance(action, Launch):
                shared = f", {action.shared:,} bytes of shared memory" if action.shared else ""
                kind = action.kernel.key.split()[0]
                lines.append(f"# launch ({kind}): {action.blocks:,} blocks of {action.threads} threads{shared}")
            elif isinstance(action, Fill):
                lines.append(f"# fill: {action.nbytes:,} bytes with {action.byte}")
            elif isinstance(action, DeviceTurns):
                lines.append(f"# {action.count:,} turns of:")
                lines += [f"#   {line}" for line in _kernels(action.plan)]
            else:
                lines.append(f"# call: {getattr(action.run, '__name__', 'library routine')}")
        lines.append("")
    return lines


def _kernel(kernel: Any, plan: Any) -> str:
    if isinstance(kernel, Loop):
        nodes: dict[Node, None] = dict.fromkeys(kernel.buffers)
        places = ", ".join(f"b{k} = {plan.where(node)}" for k, node in enumerate(nodes))
        return f"# {places}\n{show(kernel)}"
    reads, writes = [", ".join(plan.where(node) for node in nodes) for nodes in (kernel.reads, kernel.targets)]
    node = kernel.node
    return f"{node.name} -> {node.dtype}{list(node.shape)}\n# reads {reads}; writes {writes}"
