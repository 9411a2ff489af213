"""Docstrings of `nbgrad.ops`: short in the source, complete for users; words that many of them need are said once.

In: a docstring in the short form, and the signature of its function. Out: the same in numpydoc's sections. Called by
`documented` here, and by `spelled` and `as_numpy` of declarations.py, when a module of functions is imported. After the
sentences, the short form has one line for each special parameter, result and error, then notes and examples::

    dim : int or None
        None for all elements.
    -> Tensor, shape (..., n)
    ShapeError : If the axis does not exist.

Parameters that it does not list come from `WORDS` or their annotation, and the result from the annotation. Examples
begin with the import of nbgrad as nb.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

SPELLINGS = (
    ("axis", "dim", "dims"),
    ("keepdims", "keep_dims", "keepdim"),
    ("input", "x", "input_x", "A"),
    ("indices", "index"),
)
"""Names of parameters that mean the same."""

WORDS = {
    # Arrays
    "input": "Tensor, ndarray or number",
    "x=None": "Tensor or ndarray, optional",
    "other": "Tensor, ndarray or number",
    "x1": "Tensor or ndarray",
    "x2": "Tensor or ndarray",
    "y": "Tensor, ndarray or number",
    "abs": "Tensor, ndarray or number",
    "angle": "Tensor, ndarray or number",
    "input2": "Tensor or ndarray",
    "inputs": "Tensor or ndarray",
    "tensors": "list or tuple of Tensor",
    "src": "Tensor or ndarray",
    "updates": "Tensor or ndarray",
    "value": "number or Tensor",
    "fill_value": "number or 0-d Tensor",
    "weights=None": "Tensor or ndarray, optional",
    "prepend=None": "Tensor, ndarray or number, optional | Joined to the array before its first element.",
    "append=None": "Tensor, ndarray or number, optional | Joined to the array after its last element.",
    "where=True": "Tensor or ndarray of bool | Elements to include.",
    "indices": "Tensor or ndarray of int",
    # Axes and shapes
    "axis": "int",
    "axis=None": "int, tuple of int or None | None for all.",
    "axis=()": "int, tuple of int or None | None or () for all.",
    "dims": "int or tuple of int",
    "dims=None": "int, tuple of int or None",
    "axes": "int or pair of lists of int",
    "keepdims": "bool | Whether the reduced axes stay, with extent 1.",
    "size": "int or tuple of int",
    "begin": "tuple of int",
    "n": "int",
    "n=None": "int, optional | The number of points: the axis is cut, or continued with zeros.",
    "m=None": "int, optional",
    "s=None": "tuple of int, optional | The numbers of points along the axes, or the last ones if `axis` is None.",
    "source": "int or tuple of int",
    "destination": "int or tuple of int",
    "multiples": "int or tuple of int",
    "repeats": "int, or Tensor or ndarray of int",
    "shifts": "int or tuple of int",
    "indices_or_sections": "int or list of int | The number of parts, or the positions between them.",
    "stride=1": "int",
    "dilation=1": "int",
    # Choices and numbers
    "dtype=None": "dtype, optional | Of the result.",
    "dtype='int32'": "dtype | Of the result.",
    "initial=None": "number, optional | The value to start from; needed with `where`.",
    "norm=None": '{None, "backward", "ortho", "forward"} | The direction that is scaled by 1 / n, or both by its root.',
    "ord=2": "number | Also inf and -inf.",
    "ord='fro'": 'number or "fro"',
    "p=None": 'number or "fro", optional | The norm; 2 by default.',
    "rtol=1e-05": "float",
    "atol=1e-08": "float",
    "dx=1.0": "number",
    "reduction": '{"mean", "sum", "none"}',
    "seed": "int, optional | If given, the numbers depend on it alone.",
    "generator": "Generator, optional | By default the one that `nb.set_seed` seeds.",
}
_RESULTS = {
    "Tensor": "Tensor",
    "bool": "bool",
    "int": "int",
    "Shape": "tuple of int",
    "tuple[Tensor, ...]": "tuple of Tensor",
    "tuple[Tensor, Tensor]": "tuple of two Tensors",
}
_ENTRY = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.*)")

Function = TypeVar("Function", bound=Callable[..., Any])


def documented(function: Function) -> Function:
    """The function, with its docstring completed."""
    if function.__doc__:
        function.__doc__ = completed(function.__doc__, inspect.signature(function))
    return function


def completed(doc: str, signature: inspect.Signature, spelled: bool = False) -> str:
    """A docstring in the short form as numpydoc has it.

    Parameters
    ----------
    doc : str
    signature : inspect.Signature
    spelled : bool
        Whether the function takes the names of `SPELLINGS`, which is said of its axis.
    """
    text, *examples = re.split("^(?=>>>)", inspect.cleandoc(doc), maxsplit=1, flags=re.MULTILINE)
    text, *notes = re.split("^(?=Notes\n)", text, maxsplit=1, flags=re.MULTILINE)
    head, special, results, errors = _entries(text.split("\n"), signature)
    if not results and signature.return_annotation in _RESULTS:
        results = [_RESULTS[signature.return_annotation]]
    imports = [] if not examples or "nbgrad as nb" in examples[0] else [">>> import nbgrad as nb"]
    sections = {
        "Parameters": _parameters(signature, special, spelled),
        "Returns": results,
        "Raises": errors,
    }
    titled = ["\n".join([title, "-" * len(title), *lines]) for title, lines in sections.items() if lines]
    titled += notes
    titled += ["\n".join(["Examples", "--------", *imports, *examples])] if examples else []
    return "\n\n".join(part.rstrip() for part in ("\n".join(head), *titled))


def _entries(
    lines: list[str], signature: inspect.Signature
) -> tuple[list[str], dict[str, list[str]], list[str], list[str]]:
    """The lines of the sentences, of each parameter that is listed, of results and of errors."""
    head: list[str] = []
    special: dict[str, list[str]] = {}
    results: list[str] = []
    errors: list[str] = []
    current = head
    for line in lines:
        found = _ENTRY.fullmatch(line)
        names = found[1].replace("*", "").split(", ") if found else []
        if line.startswith("-> "):
            current = results
            current.append(line.removeprefix("-> "))
        elif found and names[0].endswith("Error"):
            current = errors
            current += [found[1], f"    {found[2]}"]
        elif names and names[0] in signature.parameters:
            special.update({name: [] for name in names})
            current = special[names[0]]
            current.append(line)
        elif line or current is head:
            current.append(line)
    return head, special, results, errors


def _parameters(signature: inspect.Signature, special: Mapping[str, list[str]], spelled: bool) -> list[str]:
    """The lines of all parameters, in the order of the signature."""
    lines: list[str] = []
    for parameter in signature.parameters.values():
        kind, _, sentence = _word(parameter).partition(" | ")
        entry = [f"{parameter.name} : {kind}", *([f"    {sentence}"] if sentence else [])] if kind else []
        entry = special.get(parameter.name, entry)
        if spelled and entry and parameter.name in SPELLINGS[0]:
            entry = [*entry, f"    Also called `{'dim' if parameter.name == 'axis' else 'axis'}`."]
        lines += entry
    return lines


def _word(parameter: inspect.Parameter) -> str:
    """The entry of `WORDS`, or the annotation if that says more than Any."""
    group = next((names for names in SPELLINGS if parameter.name in names), ())
    known = parameter.annotation not in ("Any", parameter.empty)
    for name in (parameter.name, *group):
        for key in (name,) if known else (f"{name}={parameter.default!r}", name):
            if key in WORDS:
                return WORDS[key]
    return str(parameter.annotation) if known else ""
