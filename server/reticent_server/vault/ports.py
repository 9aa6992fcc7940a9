# SPDX-License-Identifier: Apache-2.0
"""What the engine asks of a reader of private rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.private import Private


class Reader(Protocol):
    """Reads one version's rows in stored order; exactly `n` of them."""

    @property
    def n(self) -> int:
        """The version's public number of rows."""

    def batches(self, columns: Sequence[str]) -> Iterator[Private[Any]]:
        """Private[pyarrow.RecordBatch]es with the requested columns.

        Each column is float64 (numeric and integer values; boolean 0/1; categorical codes), NOT
        NULL, 0 where missing; a column that may be missing is followed by `<name>:missing` (bool).
        """
        ...


@runtime_checkable
class MarkingReader(Reader, Protocol):
    """A reader of rows that others may change after they were checked.

    Each column is followed by `<name>:bad` (uint8, 0 or 1): the cell cannot be read, and a value
    within the bounds stands in its place. The record is then to contribute nothing.
    """

    @property
    def marks_bad_cells(self) -> bool:
        """Whether batches have a mark beside each column."""


@runtime_checkable
class PartitionedReader(Reader, Protocol):
    """A reader whose rows other processes can read in parts."""

    def partitions(self) -> Sequence[tuple[int, Reader]]:
        """Readers that pickle, of consecutive rows, each with the position of its first row."""
        ...


@dataclass(frozen=True, slots=True)
class RowsOfPersons:
    """Consecutive rows, one person's together; private. slots: (rows,) the person of each, in
    0…N − 1.

    columns: (rows,) float64 each. missing: masks (True: missing, or not to be read) of those that
    have any.
    """

    slots: NDArray[np.int64]
    columns: Mapping[str, NDArray[np.float64]]
    missing: Mapping[str, NDArray[np.bool_]]

    def part(self, start: int, stop: int) -> "RowsOfPersons":
        """The rows at [start, stop)."""
        return RowsOfPersons(
            self.slots[start:stop],
            {name: values[start:stop] for name, values in self.columns.items()},
            {name: mask[start:stop] for name, mask in self.missing.items()},
        )

    @staticmethod
    def joined(parts: "Sequence[RowsOfPersons]") -> "RowsOfPersons":
        """Several parts as one."""
        if len(parts) == 1:
            return parts[0]
        return RowsOfPersons(
            np.concatenate([part.slots for part in parts]),
            {name: np.concatenate([p.columns[name] for p in parts]) for name in parts[0].columns},
            {name: np.concatenate([p.missing[name] for p in parts]) for name in parts[0].missing},
        )


@runtime_checkable
class PersonTables(Protocol):
    """A reader of rows that belong to persons, of one table or of several that are linked."""

    @property
    def persons(self) -> int:
        """N, which is public."""
        ...

    def rows_of_persons(
        self, table: str | None, columns: Sequence[str]
    ) -> Iterator[Private[RowsOfPersons]]:
        """The rows of a table, one person's together; some persons may have none."""
        ...
