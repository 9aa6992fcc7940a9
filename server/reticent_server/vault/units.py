"""Counts the rows of every protected unit while a file is loaded."""

from collections import Counter

from reticent_server.domain.schema import Unit
from reticent_server.errors import CuratorError
from reticent_server.vault.blocks import FileBlock
from reticent_server.vault.cells import texts_of


class UnitCounter:
    """Refuses a table in which some unit has more than `max_rows` rows.

    Units are told apart by the text of their cell, stripped of blanks; typed whole numbers have no
    point.
    """

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._rows: Counter[str] = Counter()

    def add(self, block: FileBlock) -> None:
        """Counts a block. Raises CuratorError naming the first row too many, or without a unit."""
        column, most = self._unit.column, self._unit.max_rows
        if column is None:
            return
        for index, unit in enumerate(unit_texts(block, column)):
            self._rows[unit] += 1
            if self._rows[unit] > most:
                raise CuratorError(
                    f"In {block.place(index)}, column {column}: the unit {unit[:40]!r} has more "
                    f"than {most} rows, which `unit: max_rows` allows."
                )


def unit_texts(block: FileBlock, column: str) -> list[str]:
    """The unit of each row of a block. Raises CuratorError naming the first row without one."""
    cells = texts_of(block.columns[column])
    if cells is None:
        raise CuratorError(f"The unit column {column} must hold texts or numbers.")
    units: list[str] = cells.to_pylist()
    for index, unit in enumerate(units):
        if not unit:
            raise CuratorError(f"In {block.place(index)}, column {column}: no unit is given.")
    return units
