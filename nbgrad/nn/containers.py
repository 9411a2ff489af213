"""Cells made of Cells: `SequentialCell`, `CellList`, `CellDict`.

In: Cells. Out: a Cell that calls them in order, or one that only holds them under names. Called by users.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..errors import DtypeError, NameTakenError, RangeError
from .cell import Cell


class _Container(Cell):
    """Cells that come and go: whenever that is, their Parameters get names with the container's own prefix."""

    def _prefix_of_children(self) -> str:
        return self._prefix


class _Numbered(_Container):
    """Cells under the names 0, 1, 2, ..."""

    def __init__(self, *args: Any, auto_prefix: bool = True) -> None:
        super().__init__(auto_prefix=auto_prefix)
        cells: Any = args
        if len(args) == 1 and not isinstance(args[0], Cell):
            cells = args[0]
        if isinstance(cells, Mapping):
            for name, cell in cells.items():
                self.insert_child_to_cell(name, _cell(cell, self))
            return
        if not isinstance(cells, Iterable):
            message = f"{type(self).__name__} takes Cells or a list of Cells, but got {type(cells).__name__}."
            raise DtypeError(message)
        for cell in cells:
            self.append(cell)

    def _renumber(self, cells: list[tuple[str, Cell]]) -> None:
        """Hold these Cells instead, under names that say their positions; names that users gave stay."""
        for name in list(self._cells):
            delattr(self, name)
        for position, (name, cell) in enumerate(cells):
            setattr(self, str(position) if name.isdigit() else name, cell)

    def append(self, cell: Cell) -> Any:
        """Add a Cell at the end; returns this container."""
        setattr(self, str(len(self._cells)), _cell(cell, self))
        return self

    def insert(self, index: int, cell: Cell) -> None:
        """Put a Cell before the one at a position."""
        cells = list(self._cells.items())
        if not -len(cells) <= index <= len(cells):
            message = f"Position {index} is out of range for {len(cells)} Cells."
            raise RangeError(message)
        cells.insert(index, ("0", _cell(cell, self)))
        self._renumber(cells)

    def extend(self, cells: Iterable[Cell]) -> Any:
        """Add Cells at the end; returns this container."""
        for cell in cells:
            self.append(cell)
        return self

    def __iadd__(self, cells: Iterable[Cell]) -> Any:
        return self.extend(cells)

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def _name(self, index: Any) -> str:
        if not isinstance(index, int):
            message = f"{type(self).__name__} is indexed by integers and slices, not by {type(index).__name__}."
            raise DtypeError(message)
        if not -len(self) <= index < len(self):
            message = f"Position {index} is out of range for {len(self)} Cells."
            raise RangeError(message)
        return list(self._cells)[index]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str) and index in self._cells:
            return self._cells[index]
        if isinstance(index, slice):
            chosen = type(self)(auto_prefix=False)
            for name, cell in list(self._cells.items())[index]:
                setattr(chosen, name, cell)
            return chosen
        return self._cells[self._name(index)]

    def __setitem__(self, index: int, cell: Cell) -> None:
        setattr(self, self._name(index), _cell(cell, self))

    def __delitem__(self, index: Any) -> None:
        names = list(self._cells)[index] if isinstance(index, slice) else [self._name(index)]
        self._renumber([(name, cell) for name, cell in self._cells.items() if name not in names])

    def pop(self, index: int = -1) -> Cell:
        """Take a Cell out and return it."""
        cell = self._cells[self._name(index)]
        del self[index]
        return cell


class SequentialCell(_Numbered):
    """Cells that are called one after the other, each on the output of the one before.

    Parameters
    ----------
    *args : Cells, or one list of Cells, or one ordered dict of names and Cells

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.SequentialCell(nb.nn.Dense(2, 3), nb.nn.ReLU(), nb.nn.Dense(3, 1))
    >>> net(nb.Tensor([[1.0, 2.0]])).shape, [p.name for p in net.trainable_params()]
    ((1, 1), ['0.weight', '0.bias', '2.weight', '2.bias'])
    """

    def construct(self, input_x: Any) -> Any:
        """Call all Cells in order."""
        for cell in self._cells.values():
            input_x = cell(input_x)
        return input_x


class CellList(_Numbered):
    """A list of Cells whose Parameters are found; it cannot be called itself.

    Parameters
    ----------
    *args : Cells, or one list of Cells

    Examples
    --------
    >>> import nbgrad as nb
    >>> layers = nb.nn.CellList([nb.nn.Dense(2, 2), nb.nn.Dense(2, 1, has_bias=False)])
    >>> [p.name for p in layers.get_parameters()]
    ['0.weight', '0.bias', '1.weight']
    """


class CellDict(_Container):
    """Cells by name, whose Parameters are found; it cannot be called itself.

    Parameters
    ----------
    cells : mapping, or iterable of (name, Cell), optional

    Examples
    --------
    >>> import nbgrad as nb
    >>> heads = nb.nn.CellDict({"a": nb.nn.Dense(2, 1), "b": nb.nn.Dense(2, 1)})
    >>> list(heads.keys()), heads["a"](nb.Tensor([[1.0, 2.0]])).shape
    (['a', 'b'], (1, 1))
    """

    def __init__(self, cells: Any = None, auto_prefix: bool = True) -> None:
        super().__init__(auto_prefix=auto_prefix)
        self.update(cells or ())

    def update(self, cells: Any) -> None:
        """Add Cells from a mapping or from pairs."""
        for name, cell in cells.items() if isinstance(cells, Mapping | CellDict) else cells:
            self[name] = cell

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __contains__(self, name: object) -> bool:
        return name in self._cells

    def __getitem__(self, name: str) -> Cell:
        if name not in self._cells:
            message = f"There is no Cell {name!r}; there are {', '.join(map(repr, self._cells)) or 'none'}."
            raise NameTakenError(message)
        return self._cells[name]

    def __setitem__(self, name: str, cell: Cell) -> None:
        self.insert_child_to_cell(name, _cell(cell, self))

    def __delitem__(self, name: str) -> None:
        delattr(self, name)

    def pop(self, name: str) -> Cell:
        """Take a Cell out and return it."""
        cell = self[name]
        del self[name]
        return cell

    def clear(self) -> None:
        """Take all Cells out."""
        for name in list(self._cells):
            delattr(self, name)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._cells.keys()

    def values(self) -> Iterable[Cell]:
        """The Cells."""
        return self._cells.values()

    def items(self) -> Iterable[tuple[str, Cell]]:
        """Names and Cells."""
        return OrderedDict(self._cells).items()


def _cell(value: Any, container: Cell) -> Cell:
    if not isinstance(value, Cell):
        message = f"{type(container).__name__} holds Cells only, but got {type(value).__name__}."
        raise DtypeError(message)
    return value
